"""From what was collected about one topic partition to its events, in one causal order.

Controller records come in partition epoch order, each broker's lines in the order they were
written, copies between the lives of the process they fit, acknowledgements at their clock. Clocks
only interleave what nothing else orders.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import floor

from replication.evidence.joining.changed_settings import by_controllers
from replication.evidence.joining.copies import EARLY_IN_A_LIFE, Copy, in_time
from replication.evidence.joining.declared_coverage import declared_coverage, is_traced
from replication.evidence.joining.dumps_moment import earliest_place
from replication.evidence.joining.event_order import LAST, RANKS, Entry
from replication.evidence.joining.line_steps import TRACE_KINDS, Step, steps_of_lines
from replication.evidence.joining.outlived_copies import is_outlived
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.promised_records import promised
from replication.evidence.joining.shown_by_copies import shown_by
from replication.evidence.tools.dumped_logs import DumpedDirectory
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import LAST_MOMENT

_AT_LAST = float("inf")
# Fetches are made each half second, and a trace has their lines.
TRACE_GOES_ON = 1_000
_STOPS = ("stopping", "process_signalled", "broker_shutdown_granted")
ENDS_FIRST = "its lines end before those of other brokers"
# Only who holds a replica prints these of it.
_OF_ITS_OWN = ("log_loaded", "became_leader", "became_follower", "leader_and_isr_received")


def events_of(evidence: PartitionEvidence, trace_id: str, generation: int) -> Iterator[ev.Event]:
    """The partition's events with gap-free sequence numbers from 0; ids are left to the wire."""
    entries = list(_entries(evidence))
    entries.sort(key=lambda e: (e.at, e.rank, e.stream, e.index))
    facts: list[Entry] = [
        *[Entry(0, 0, 0, 0, d, None, "forensic", None) for d in _held_unassigned(evidence)],
        Entry(0, 0, 0, 0, evidence.described, None, "forensic", None),
        *[Entry(0, 0, 0, 0, c, None, "forensic", None) for c in declared_coverage(evidence)],
        *[Entry(0, 0, 0, 0, c, None, "forensic", None) for c in _silent(evidence, entries)],
        *entries,
        *[Entry(0, 0, 0, 0, d, None, "forensic", None) for d in _last_described(evidence)],
        Entry(0, 0, 0, 0, ev.InputEnded(), None, "forensic", None),
    ]
    for sequence, entry in enumerate(facts):
        yield ev.Event(
            event_id="",
            trace_id=trace_id,
            cluster_id=evidence.cluster_id,
            topic=evidence.topic,
            topic_id=evidence.topic_id,
            partition=evidence.partition,
            sequence=sequence,
            fact=entry.fact,
            observed_at=_date(entry.shown_at),
            grade=entry.grade,
            source=entry.source and replace(entry.source, path=evidence.shown(entry.source.path)),
            trace_generation=generation,
        )


def _date(at: int | None) -> int | None:
    """The millisecond, None where it is no date: producers choose the times of their records."""
    return at if at is not None and 0 <= at <= LAST_MOMENT else None


def _silent(evidence: PartitionEvidence, entries: list[Entry]) -> Iterator[ev.CoverageDeclared]:
    """Coverage ends where a broker's lines end: what it did since is missing. A trace that no copy
    and no stop ends, and others' steps go on behind it, ended before its broker did."""
    copied, hosts = {copy.broker for copy in evidence.copies}, _hosts(evidence)
    last: dict[int, Entry] = {}
    for entry in entries:
        # A copy of no known moment is put behind all.
        if not isinstance(entry.fact, ev.ReplicaLogObserved):
            last[entry.stream] = entry
    newest = max((e.at for b, e in last.items() if b in hosts), default=0)
    for broker in sorted(hosts):
        why, end = evidence.silent.get(broker), last.get(broker)
        if why is None and end is not None and broker not in copied:
            ended = _is_stopped(evidence, broker) or newest <= end.at + TRACE_GOES_ON
            why = None if ended or not is_traced(evidence, broker) else ENDS_FIRST
        if why is not None:
            yield ev.CoverageDeclared("replica_trace", broker, False, why)


def _is_stopped(evidence: PartitionEvidence, broker: int) -> bool:
    """Whether a broker's lines end in a stop."""
    kinds = (f.kind for f in reversed(evidence.lines.get(broker, [])))
    return next((k for k in kinds if k in _STOPS or k == "process_started"), None) in _STOPS


def _held_unassigned(evidence: PartitionEvidence) -> Iterator[ev.PartitionDescribed]:
    """Who ever held a replica, where the assignment that is told first does not name them all: the
    partition was reassigned in between."""
    hosts, assigned = _hosts(evidence), _assigned(evidence)
    first = set(evidence.described.assigned_replicas or ())
    if (first or assigned) and hosts - (first or assigned):
        yield ev.PartitionDescribed(tuple(sorted(hosts | assigned)))


def _last_described(evidence: PartitionEvidence) -> Iterator[ev.PartitionDescribed]:
    if evidence.reassigned is not None:
        yield ev.PartitionDescribed(assigned_replicas=evidence.reassigned)


def _entries(evidence: PartitionEvidence) -> Iterator[Entry]:
    clock = 0.0
    for index, (fact, at, source) in enumerate(by_controllers(evidence)):
        clock = max(clock, float(at or 0))
        yield Entry(clock, RANKS["leadership_recorded"], -1, index, fact, source, "forensic", at)
    for broker in sorted(_hosts(evidence)):
        yield from _broker_entries(evidence, broker)
    yield from promised(evidence)


def _hosts(evidence: PartitionEvidence) -> set[int]:
    """Brokers that hold or held a replica: others (controllers) print about it too."""
    told, lines = {c.broker for c in evidence.copies}, evidence.lines
    told |= {b for b, own in lines.items() if any(f.kind in _OF_ITS_OWN for f in own)}
    return told | (_assigned(evidence) & set(lines))


def _assigned(evidence: PartitionEvidence) -> set[int]:
    """All brokers that an assignment names."""
    assigned = set(evidence.described.assigned_replicas or ())
    return assigned.union(*(r.fact.assigned_replicas or () for r in evidence.recorded))


def _broker_entries(evidence: PartitionEvidence, broker: int) -> list[Entry]:
    """One broker's lines and copies in its own order; its clock is made to never run backwards."""
    steps = list(steps_of_lines(evidence, broker))
    traced = is_traced(evidence, broker)
    copies = sorted((c for c in evidence.copies if c.broker == broker), key=in_time)
    copies = [copy.until(_last_line(copy, steps)) for copy in copies]
    placed = _placed([seen for copy in copies for seen in copy.sightings()], steps)
    story = _Story(broker)
    crashed = {id(c) for c in copies[-1:] if c.parent.crashed and c.read_at is not None}
    for position, step in enumerate(steps):
        for copy in placed.get(position, ()):
            at = step.at if copy.read_at is None else copy.read_at
            at_then = max(story.clock, float(at or 0))
            story.add(_shown(evidence, copy), at_then, copy)
            if id(copy) in crashed:
                story.add(ev.ReplicaStopped(broker, "process_crash"), at_then, copy)
        story.clock = max(story.clock, float(step.at or 0))
        if step.fact is None:
            continue
        if step.kind not in TRACE_KINDS:
            story.add(step.fact, story.clock, step)
        elif traced:
            # A trace with a hole would give records to the wrong leader epoch.
            story.add(step.fact, story.clock, step, "traced")
    # After the last line nothing else tells the time: a copy closes the broker's story.
    for copy in placed.get(len(steps), ()):
        seen = copy.read_at
        at_last = _AT_LAST if seen is None else max(story.clock, float(seen))
        story.add(_shown(evidence, copy), at_last, copy)
        if id(copy) in crashed:
            story.add(ev.ReplicaStopped(broker, "process_crash"), at_last, copy)
    # What lies set aside beside a partition is no log that anybody goes on with.
    present = [copy for copy in copies if copy.directory.kind == "replica"] or copies
    if present and (not present[-1].order_known or is_outlived(evidence, present[-1])):
        # Another copy may be later: what the last one lacks may have come after it.
        lived_on = Step("life", None, None, ev.Source(copies[-1].path))
        story.add(ev.ReplicaStarted(broker), _AT_LAST, lived_on)
    return story.entries


def _last_line(copy: Copy, steps: list[Step]) -> int:
    """When the broker printed the last line before a digest read the copy."""
    read_at = copy.read_at or 0
    return max((s.at for s in steps if s.at is not None and s.at <= read_at), default=0)


def _placed(copies: list[Copy], steps: list[Step]) -> dict[int, list[Copy]]:
    """The copies by the step that they precede; len(steps): behind them all."""
    starts = [i for i, step in enumerate(steps) if step.kind == "life"]
    placed: dict[int, list[Copy]] = {}
    for copy in copies:
        if isinstance(copy.directory, DumpedDirectory):
            position = earliest_place(steps, copy.directory)
        elif (read_at := copy.read_at) is not None:
            later = (n for n, step in enumerate(steps) if step.at is not None and step.at > read_at)
            position = next(later, len(steps))
        else:
            life = floor(copy.slot)
            before = life if copy.slot - life < EARLY_IN_A_LIFE else life + 1
            position = [*starts, len(steps)][min(max(before, 0), len(starts))]
            if before < 0:
                position = _last_load(steps[:position])
            if not copy.clean:
                position = _before_its_cut(copy, steps, position, in_life=before > life)
        placed.setdefault(position, []).append(copy)
    return placed


def _last_load(steps: list[Step]) -> int:
    """The place of a copy from before a life whose start no line tells: before its log was loaded,
    as lines of an earlier life may come first. A log that is made is told to be loaded, too.
    """
    made = {n - 1 for n, step in enumerate(steps) if step.kind == "log_created"}
    loads = [n for n, s in enumerate(steps) if s.kind == "log_loaded" and n not in made]
    return loads[-1] if loads else 0


def _before_its_cut(copy: Copy, steps: list[Step], end: int, *, in_life: bool) -> int:
    """The place of a copy of a running broker in the life that ends there: before its broker
    followed in an epoch of which the copy has nothing yet, and cut its log below what that shows.

    in_life: it may be of any moment of that life, which counts where no epochs tell. Not where the
    log, by its trace, had never reached so far before the cut, or by its lines had never been so
    short; nor where its checkpoint is above the high watermark to which the broker cut: as long as
    it leads that only grows.
    """
    shown = max((e for e, *_ in copy.directory.spans if e is not None), default=None)
    log_end = copy.directory.log_end_offset or 0
    begin = max((n for n in range(end) if steps[n].kind == "life"), default=0)
    follows: int | None = None
    roles: list[int] = []
    reached: int | None = None
    had: int | None = None
    for number in range(begin, end):
        fact = steps[number].fact
        if isinstance(fact, ev.LeaderAppended | ev.FollowerAppended):
            reached = max(reached or 0, fact.end_offset)
        elif isinstance(fact, ev.BecameFollower | ev.BecameLeader):
            follows = fact.leader_epoch
            roles.append(number)
        elif isinstance(fact, ev.Truncated) and (fact.to_offset or 0) < log_end:
            older = in_life if shown is None else follows is not None and follows > shown
            older = older and (reached is None or reached >= log_end)
            older = older and (had is None or had <= log_end)
            if shown is None and fact.reason == "high_watermark" and _only_led(steps, roles):
                older = older and (copy.directory.high_watermark or 0) <= (fact.to_offset or 0)
            if older and (fact.from_offset is None or fact.from_offset >= log_end):
                return roles[-1] if roles else number
        had = _least_end(fact, had)
    return end


def _least_end(fact: ev.Fact | None, had: int | None) -> int | None:
    """The least that a log's end was since its broker started, by its lines; None: not told."""
    if isinstance(fact, ev.Truncated) and had is not None:
        return min(had, fact.to_offset or 0)
    if isinstance(fact, ev.ReplicaStarted) and fact.log_end_offset is not None:
        return fact.log_end_offset
    return had


def _only_led(steps: list[Step], roles: list[int]) -> bool:
    """Whether a broker had no role but a leader's in its life before the last of these."""
    followed = [isinstance(steps[number].fact, ev.BecameFollower) for number in roles]
    return bool(roles) and not any(followed[:-1])


def _shown(evidence: PartitionEvidence, copy: Copy) -> ev.Fact:
    keeps = evidence.described.cleanup_policy in ("delete", "[delete]")
    return shown_by(copy, keeps, evidence.described)


@dataclass(slots=True)
class _Story:
    """A broker's entries so far, and its clock, ms, which never runs backwards."""

    broker: int
    clock: float = 0.0
    entries: list[Entry] = field(default_factory=list)

    def add(self, fact: ev.Fact, at: float, told: Step | Copy, grade: str = "forensic") -> None:
        """Of one moment's entries none comes before one that is there already."""
        rank = RANKS.get(fact.kind, LAST)
        if self.entries and self.entries[-1].at == at:
            rank = max(rank, self.entries[-1].rank)
        source = ev.Source(told.path) if isinstance(told, Copy) else told.source
        shown_at = told.shown_at if isinstance(told, Copy) else told.printed_at
        number = len(self.entries)
        self.entries.append(Entry(at, rank, self.broker, number, fact, source, grade, shown_at))
