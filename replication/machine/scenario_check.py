"""What `check` prints: the invariants' verdicts on a machine's facts, with their proofs in words.

The facts that the machine emitted are folded as any evidence is, and judged by the same
invariants; this file only words the witness in the scenario's own names and commands.
"""

from collections.abc import Iterator
from typing import Any

from replication.machine.machine_state import Step, World
from replication.protocol.folding.fold import apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span, clipped
from replication.protocol.ground.picture import record_name
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.judge import INVARIANTS, PartitionAnswer, answer

INVARIANT_NAMES = tuple(module.NAME for module in INVARIANTS)
ALWAYS_SHOWN = ("committed_records_survive", "log_matching")


def events_of(world: World) -> list[ev.Event]:
    """The machine's facts as the events of one complete trace: of the topic as it is now.

    An earlier incarnation of the topic is another topic partition: nothing crosses from it.
    """
    topic_id = world.topic_id
    return [
        ev.Event(str(n), "scenario", "", "scenario", topic_id, 0, n, step.fact, None, "traced")
        for n, step in enumerate(world.steps)
        if n >= world.first_step
    ]


def fold_steps(world: World) -> State:
    """The state that the fold reaches over everything that happened."""
    state = new_state("", "scenario", world.topic_id, 0)
    state.story.ordered = True
    for event in events_of(world):
        apply(state, event)
    return state


def check(world: World, which: str | None = None) -> list[str]:
    """The lines that `check` prints.

    which: None for the two main invariants and whatever is violated, "all", or one by name.
    """
    judged = answer(fold_steps(world))
    lines: list[str] = []
    for verdict in judged.verdicts:
        name = verdict["invariant"]
        wanted = name == which or which == "all"
        if which is None:
            wanted = name in ALWAYS_SHOWN or verdict["verdict"] == "VIOLATED"
        if not wanted:
            continue
        lines.append(f"{name} {verdict['verdict']}")
        if verdict["verdict"] == "VIOLATED":
            lines += _indented(_proof(world, judged, verdict))
        elif verdict["verdict"] == "UNKNOWN":
            lines.append(f"  {verdict['reason']}")
    return lines


def _indented(steps: list[tuple[str, str]]) -> list[str]:
    """Facts with the commands that made them in one column."""
    width = max((len(what) for what, why in steps if why), default=0)
    return [f"  {what.ljust(width)} {why}".rstrip() for what, why in steps]


def _proof(world: World, judged: PartitionAnswer, verdict: dict[str, Any]) -> list[tuple[str, str]]:
    ids = verdict["finding_ids"]
    name = verdict["invariant"]
    if name == "log_matching":
        settled = [d for d in judged.divergences if d["finding_id"] in ids]
        return [line for d in settled for line in _divergence(world, d)]
    if name.endswith("_survive"):
        losses = [x for x in judged.losses if x["finding_id"] in ids]
        return [line for loss in losses for line in _loss(world, judged, loss)]
    findings = [f for f in judged.findings if f["finding_id"] in ids]
    return [(f["summary"], "") for f in findings]


def _divergence(world: World, divergence: dict[str, Any]) -> list[tuple[str, str]]:
    first, end = divergence["first_offset"], divergence["end_offset"]
    result = []
    for replica in divergence["replicas"]:
        held = clipped(world.broker(replica).log.spans, first, end)
        names = ", ".join(_spelled(world, s) for s in held)
        result.append((f"{world.name(replica)} holds {names} at {_range(first, end)}", ""))
    return result


def _spelled(world: World, span: Span) -> str:
    count = span.end_offset - span.first_offset
    name = record_name(span, lambda c: world.contents[c])
    return name if count == 1 else f"{name}*{count}"


def _range(first: int, end: int) -> str:
    return f"offset {first}" if end == first + 1 else f"offsets {first}..{end - 1}"


def _loss(world: World, judged: PartitionAnswer, loss: dict[str, Any]) -> list[tuple[str, str]]:
    """How records were promised, how they were lost, and which leader lacks them."""
    finding = next(f for f in judged.findings if f["finding_id"] == loss["finding_id"])
    first, end = loss["first_offset"], loss["end_offset"]
    places = [int(w["event_id"]) for w in finding["witness"]]
    promised = world.steps[places[0]]
    span = _lost_span(world, places[0], first, end)
    what = _spelled(world, span)
    were = "was" if end - first == 1 else "were"
    lines = [
        (
            f"{what} {were} {_promise(promised.fact)} at {_range(first, end)}",
            f"({_because(world, promised)})",
        )
    ]
    taken = next((n for n in places[1:] if isinstance(world.steps[n].fact, ev.BecameLeader)), None)
    if taken is None:
        return lines + _occupied(world, first, end)
    fact = world.steps[taken].fact
    assert isinstance(fact, ev.BecameLeader)
    leader = fact.replica
    lines += [
        (f"{what} {were} cut from {world.name(leader)}", f"({_cut(step)})")
        for step in _cuts(world, leader, span, taken)
    ]
    it = "it" if end - first == 1 else "them"
    lines.append(
        (
            f"{world.name(leader)} {'now leads' if leader == world.controller.leader else 'led'} "
            f"epoch {fact.leader_epoch} without {it}",
            f"({world.steps[taken].command})",
        )
    )
    return lines


def _occupied(world: World, first: int, end: int) -> list[tuple[str, str]]:
    """What the present leader holds in place of lost records."""
    c = world.controller
    if c.leader is None:
        return []
    held = clipped(world.broker(c.leader).log.spans, first, end)
    names = ", ".join(_spelled(world, s) for s in held) or "nothing"
    return [
        (f"{world.name(c.leader)} now leads epoch {c.leader_epoch} and holds {names} there", "")
    ]


def _promise(fact: ev.Fact) -> str:
    if isinstance(fact, ev.RecordsAcknowledged):
        return "acknowledged"
    return "consumed" if isinstance(fact, ev.RecordsConsumed) else "committed"


def _because(world: World, step: Step) -> str:
    fact = step.fact
    if isinstance(fact, ev.HighWatermarkAdvanced):
        return (
            f"{step.command}: {world.name(fact.replica)}'s high watermark "
            f"{step.before} -> {fact.high_watermark}"
        )
    return step.command


def _lost_span(world: World, promised_at: int, first: int, end: int) -> Span:
    """The record as it was when it was promised."""
    fact = world.steps[promised_at].fact
    if isinstance(fact, ev.RecordsAcknowledged | ev.RecordsConsumed):
        return Span(first, end, fact.leader_epoch, fact.content)
    replica = getattr(fact, "replica", None)
    for step in reversed(world.steps[: promised_at + 1]):
        for span in _written(step.fact, replica):
            if span.first_offset <= first < span.end_offset:
                return Span(first, min(end, span.end_offset), *span[2:])
    return Span(first, end, None, None)


def _written(fact: ev.Fact, replica: int | None) -> Iterator[Span]:
    if getattr(fact, "replica", None) != replica:
        return
    if isinstance(fact, ev.LeaderAppended | ev.FollowerAppended):
        yield Span(fact.first_offset, fact.end_offset, fact.leader_epoch, fact.content)
    elif isinstance(fact, ev.ReplicaLogObserved):
        yield from fact.spans


def _cuts(world: World, leader: int, span: Span, before: int) -> list[Step]:
    """The step that took these very records from the leader's log, if it ever held them."""
    held, last = False, None
    for step in world.steps[:before]:
        fact = step.fact
        if any(
            s.first_offset <= span.first_offset < s.end_offset and s[2:] == span[2:]
            for s in _written(fact, leader)
        ):
            held, last = True, None
        end = _end_after(fact, leader)
        if held and end is not None and end <= span.first_offset:
            held, last = False, step
    return [last] if last is not None else []


def _end_after(fact: ev.Fact, leader: int) -> int | None:
    if getattr(fact, "replica", None) != leader:
        return None
    if isinstance(fact, ev.Truncated):
        return fact.to_offset
    return fact.log_end_offset if isinstance(fact, ev.ReplicaStopped) else None


def _cut(step: Step) -> str:
    fact = step.fact
    if isinstance(fact, ev.Truncated):
        return f"{step.command}: {step.rule}, {fact.from_offset} -> {fact.to_offset}"
    return f"{step.command}: its disk lost them"
