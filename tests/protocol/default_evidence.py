"""What a story of the machine leaves behind at default log levels, artefact by artefact.

Brokers' lines (starts, stops, roles, truncations), log directories (at the end, some at a stop as
well), the controller's history and a producers' log, in the shapes in which the importer hands them
over. Nothing of it declares that something is missing: what is withheld is simply not there.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from replication.machine.machine_state import World
from replication.protocol.folding.fold import apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span, clipped
from replication.protocol.ground.topic_partition import State
from tests.protocol.judgement.told import told

UNSEEN = -1
"""A content that no copy holds: of records that were looked for by payload in vain."""
Withheld = frozenset[str]
LINES = (
    ev.ReplicaStarted,
    ev.ReplicaStopped,
    ev.BecameLeader,
    ev.BecameFollower,
    ev.Truncated,
    ev.LogStartAdvanced,
)


@dataclass(frozen=True)
class Left:
    """One fact and the artefact that tells it: "controller", "log 1", "directory 1", "acks"."""

    artefact: str
    fact: ev.Fact


@dataclass(frozen=True)
class Story:
    """All that a story left. replicas: of the partition. names_offsets: lines tell log ends."""

    described: ev.PartitionDescribed
    left: tuple[Left, ...]
    replicas: tuple[int, ...]
    controller: str


def left_by(world: World, chance: random.Random, *, as_on_disk: bool = False) -> Story:
    """Everything that the machine's story leaves; some stops are copied, and the end.

    as_on_disk: up to 0.10 records name no leader epoch, as it is; else they do in every release.
    """
    shadow = new_state("", "world", "", 0)
    left: list[Left] = []
    version = tuple(int(n) for n in (world.behaviour.kafka_version or "0").split(".")[:2])
    described = None
    for number, step in enumerate(world.steps):
        fact = step.fact
        if isinstance(fact, ev.PartitionDescribed):
            described = fact
        elif isinstance(fact, ev.LeadershipRecorded):
            left.append(Left("controller", fact))
        elif isinstance(fact, (ev.RecordsAcknowledged, ev.RecordsConsumed)):
            left.append(Left("acks" if fact.kind == "records_acknowledged" else "reads", fact))
        elif isinstance(fact, LINES):
            log = f"log {fact.replica}"
            left += [Left(log, line) for line in _lines(fact, version)]
        apply(shadow, ev.Event(str(number), "w", "", "w", "", 0, number, fact, None, "traced"))
        if isinstance(fact, ev.ReplicaStopped) and chance.random() < 0.3:
            left.append(
                _copy(world, shadow, fact.replica, fact.reason == "clean", None, as_on_disk)
            )
    assert described is not None
    ended = chance.random() < 0.7
    for r, b in world.brokers.items():
        clean = b.clean if not b.running else ended
        mark = b.high_watermark if b.running and ended else b.checkpointed_high_watermark
        left.append(_copy(world, shadow, r, clean, mark, as_on_disk))
    controller = world.behaviour.controller or "zookeeper"
    return Story(described, tuple(left), tuple(world.brokers), controller)


def _lines(fact: ev.Fact, version: tuple[int, ...]) -> Iterator[ev.Fact]:
    """A broker's step as its lines at INFO tell it."""
    match fact:
        case ev.ReplicaStarted():
            yield replace(fact, high_watermark=None)
            if fact.high_watermark:
                yield ev.CheckpointObserved(fact.replica, fact.high_watermark)
        case ev.ReplicaStopped():
            clean = fact.reason == "clean"
            yield ev.ReplicaStopped(fact.replica, "unknown" if clean else "process_crash")
        case ev.BecameLeader() | ev.BecameFollower() if version < (1, 0):
            yield replace(fact, log_end_offset=None, high_watermark=None)
        case ev.Truncated():
            yield replace(fact, from_offset=None)
        case _:
            yield fact


def _copy(
    world: World, shadow: State, replica: int, clean: bool, mark: int | None, as_on_disk: bool
) -> Left:
    held = shadow.replicas.get(replica)
    spans, start, end = (), 0, 0
    if held is not None:
        spans = tuple(held.log.spans)
        if as_on_disk and not world.behaviour.has("leader_epoch_in_record_batches"):
            spans = tuple(span._replace(leader_epoch=None) for span in spans)
        start, end = held.log.log_start_offset, held.log.log_end_offset
    entries = world.brokers[replica].epoch_entries if mark is not None else None
    has_cache = bool(entries) and any(s.leader_epoch is not None for s in spans)
    fact = ev.ReplicaLogObserved(
        replica, start, end, spans, mark, None, tuple(entries or ()) if has_cache else None,
        clean and (mark or 0) <= end,
    )  # fmt: skip
    return Left(f"directory {replica}", fact)


def withholdings(story: Story) -> Iterator[Withheld]:
    """Nothing; each artefact; each kind of them; and pairs of these."""
    kinds = [frozenset({"acks"}), frozenset({"payload ids"}), frozenset({"controller"})]
    for what in ("log", "directory"):
        each = [frozenset({f"{what} {r}"}) for r in story.replicas]
        kinds += [*each, frozenset().union(*each)]
    yield frozenset()
    yield from kinds
    seen = {frozenset[str](), *kinds}
    for a, b in combinations(kinds, 2):
        if a | b not in seen:
            seen.add(a | b)
            yield a | b


def evidence(story: Story, withheld: Withheld, lines_from: int = 0) -> tuple[ev.Fact, ...]:
    """The facts that an importer would make of what is left when these artefacts are withheld.
    lines_from: which of what is left is the first that lines of brokers tell."""
    logs = {f"log {r}" for r in story.replicas}
    gone = set(withheld)
    if logs <= gone and story.controller == "zookeeper":
        gone.add("controller")  # There its words are a broker's lines.
    told_by_lines = {*logs, "controller"} if story.controller == "zookeeper" else logs
    before = {x.artefact for x in story.left[:lines_from]} & told_by_lines
    left = [
        x
        for number, x in enumerate(story.left)
        if x.artefact not in gone and (number >= lines_from or x.artefact not in told_by_lines)
    ]
    described = story.described
    if logs <= gone:
        described = ev.PartitionDescribed(
            None if "controller" in gone else described.assigned_replicas
        )
    facts: list[ev.Fact] = [described]
    facts += [
        ev.CoverageDeclared(subject, None, True)
        for subject, artefact in (
            ("acknowledgements", "acks"),
            ("consumptions", "reads"),
            ("controller_history", "controller"),
        )
        if any(x.artefact == artefact for x in story.left) and artefact not in gone
        and (artefact != "controller" or story.controller == "kraft")
    ]  # fmt: skip
    if any(x.artefact.startswith("directory") for x in left):
        facts.append(ev.CoverageDeclared("payloads", None, True))
    for subject, artefact in (("broker_log", "log"), ("log_directory", "directory")):
        facts += [
            ev.CoverageDeclared(subject, r, f"{artefact} {r}" not in before)
            for r in story.replicas
            if f"{artefact} {r}" not in gone
        ]
    copies = [x.fact for x in left if isinstance(x.fact, ev.ReplicaLogObserved)]
    named = "payload ids" not in gone
    leader = _last_leader(left)
    for x in left:
        if isinstance(x.fact, (ev.RecordsAcknowledged, ev.RecordsConsumed)):
            facts += _as_told(x.fact, copies, leader, named)
        else:
            facts.append(x.fact)
    return tuple(facts)


def _last_leader(left: Iterable[Left]) -> int | None:
    recorded = [x.fact for x in left if isinstance(x.fact, ev.LeadershipRecorded)]
    return next((f.leader for f in reversed(recorded) if f.leader is not None), None)


def _as_told(
    fact: ev.RecordsAcknowledged | ev.RecordsConsumed,
    copies: list[ev.ReplicaLogObserved],
    leader: int | None,
    named: bool,
) -> Iterator[ev.Fact]:
    """What a client's log tells, offset by offset: identity is looked up in the copies."""
    for offset in range(fact.first_offset, fact.end_offset):
        held = [
            s
            for c in copies
            for s in clipped(c.spans, offset, offset + 1)
            if s.content == fact.content
        ]
        span = Span(offset, offset + 1, None, None)
        if named and held:
            span = held[0]
        elif named and copies and (leader is None or any(c.replica == leader for c in copies)):
            span = Span(offset, offset + 1, None, UNSEEN)
        yield replace(
            fact,
            first_offset=offset,
            end_offset=offset + 1,
            leader_epoch=span.leader_epoch,
            content=span.content,
        )


def folded(facts: Iterable[ev.Fact | ev.Event], grade: str = "forensic") -> State:
    """The state that evidence leads to; facts that the fold refuses are left out."""
    return told(facts, grade, refusing=False)
