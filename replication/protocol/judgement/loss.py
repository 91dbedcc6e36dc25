"""A row of the loss ledger, and the finding that proves it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from replication.protocol.ground.model import Span, clipped, same_record
from replication.protocol.ground.story import OwnStep
from replication.protocol.ground.topic_partition import LeaderTerm, Promise, State
from replication.protocol.ground.verdict import Finding, Step
from replication.protocol.judgement.cause import BY_CUT, BY_DISK, Cause
from replication.protocol.judgement.copies import SurvivingCopy
from replication.protocol.judgement.questions import ACKNOWLEDGED, COMMITTED

TIERS = (
    "consumed", "acknowledged_by_isr", "committed", "acknowledged_by_leader",
    "never_acknowledged", "undetermined",
)  # fmt: skip
BY_HIGH_WATERMARK = ("committed", "never_acknowledged", "undetermined")
TIER_OF = {
    "consumed": "consumed",
    "acks_all": "acknowledged_by_isr",
    "acks_1": "acknowledged_by_leader",
}


@dataclass(slots=True)
class Loss:
    """One row: records [first_offset, end_offset) of one identity, tier, status and cause.

    promises: what clients were told of them. lost_in: the first term of a leader that lacks them
    for good. allowed_by: (setting, value). more: others may be gone, too: of what clients were told
    some is in doubt or declared missing. assuming: what is taken for granted.
    """

    first_offset: int
    end_offset: int
    record: Span
    tier: str
    promises: list[Promise]
    status: str
    cause: Cause
    contract: str = "unknown"
    copies: list[SurvivingCopy] = field(default_factory=list)
    missing_replicas: tuple[int, ...] = ()
    finding: Finding | None = None
    lost_in: LeaderTerm | None = None
    allowed_by: list[tuple[str, str]] = field(default_factory=list)
    more: bool = False
    assuming: frozenset[str] = frozenset()

    @property
    def was_committed(self) -> bool:
        """Whether the records are known to have been committed."""
        return self.tier != "acknowledged_by_leader"

    @property
    def acknowledged_from(self) -> int | None:
        """Ms since the Unix epoch from which producers were told of them; None: not known."""
        return _if_all_known(min, [p.observed_at for p in self._acknowledgements])

    @property
    def acknowledged_until(self) -> int | None:
        """The same, of the last time."""
        return _if_all_known(max, [p.until for p in self._acknowledgements])

    @property
    def _acknowledgements(self) -> list[Promise]:
        return [p for p in self.promises if p.how in ("acks_all", "acks_1")]

    @property
    def end_offset_bound(self) -> str:
        """exact where producers or consumers name the records, and all that they were told is here;
        at_least for a high watermark."""
        return "at_least" if self.more or self.tier in BY_HIGH_WATERMARK else "exact"


def _if_all_known(choose: Callable[[list[int]], int], moments: list[int | None]) -> int | None:
    known = [at for at in moments if at is not None]
    return choose(known) if known and len(known) == len(moments) else None


WORDS = {
    "consumed": "given to a consumer",
    "acknowledged_by_isr": "acknowledged with acks=all",
    "committed": "committed (below a valid high watermark)",
    "never_acknowledged": "committed, never acknowledged to a producer",
    "undetermined": "committed, perhaps acknowledged: some acknowledgements are missing",
    "acknowledged_by_leader": "acknowledged with acks=1",
}
ENDINGS = {
    "lost": "no replica has them any more",
    "recoverable": "not in the leader's history, a copy survives",
    "recovered": "missing under an earlier leader, and back",
}


def finding_of(state: State, loss: Loss) -> Finding:
    """What is said of a row, step by step."""
    committed = loss.was_committed
    last = loss.end_offset - 1
    where = (
        f"offset {last}" if last == loss.first_offset else f"offsets {loss.first_offset}..{last}"
    )
    ending = ENDINGS.get(loss.status, "missing under a leader; whether they are back nothing tells")
    if loss.status == "undetermined" and loss.missing_replicas:
        ending = "not in the leader's history; a replica's log was not handed over"
    why = loss.cause.name
    if not loss.cause.followed:
        why += ": more histories lose them than are followed"
    return Finding(
        COMMITTED if committed else ACKNOWLEDGED,
        "critical" if committed and loss.status != "recovered" else "warning",
        f"{where}, {WORDS[loss.tier]}: {ending} ({why})",
        ("loss", *loss.record[:1], loss.end_offset, *loss.record[2:], loss.tier),
        _steps(state, loss, where)[:12],
    )


def _steps(state: State, loss: Loss, where: str) -> list[Step]:
    """What the proof rests on: what was promised, which leader lacked it, what the leader holds."""
    steps = [
        Step(p.event_id, f"{where}: {WORDS[TIER_OF[p.how]]}") for p in loss.promises if p.event_id
    ][:6]
    if not steps:
        steps = [
            Step(p.event_id, f"{where}: below broker {p.replica}'s high watermark")
            for p in state.history.promised_in("commitments", loss.first_offset, loss.end_offset)
            if same_record(p.span, loss.record) is not False
        ][:3]
    steps += _losing_steps(state, loss)
    term = loss.lost_in
    if term is not None:
        steps.append(Step(
            _led_without(state, loss) or term.start_event_id or term.event_id,
            f"broker {term.leader} leads epoch {term.leader_epoch} without {where}",
        ))  # fmt: skip
    for number in sorted(state.replicas):
        replica = state.replicas[number]
        if not replica.as_of:
            continue
        held = clipped(replica.log.spans, loss.first_offset, loss.first_offset + 1)
        other = [s for s in held if same_record(s, loss.record) is False]
        if other:
            leader_epoch = other[0].leader_epoch
            of = "" if leader_epoch is None else f" of epoch {leader_epoch}"
            steps.append(Step(
                replica.as_of, f"broker {number} holds another record{of} at {where}"
            ))  # fmt: skip
        elif not held and replica.log.log_end_offset <= loss.first_offset:
            steps.append(Step(
                replica.as_of, f"broker {number}'s log ends at {replica.log.log_end_offset}"
            ))  # fmt: skip
    return steps


def _losing_steps(state: State, loss: Loss) -> list[Step]:
    """The steps by which brokers lost the records, where the cause is one: starts that found less
    on the disk, cuts of the log of the leader that lacks them."""
    first, found = loss.first_offset, []
    if loss.cause.name in BY_DISK:
        for number in sorted(loss.cause.lossy):
            start = _start_without(state.story.own.get(number, []), loss)
            if start is not None:
                words = f"broker {number} starts with its log ending at {start.log_end_offset}"
                found.append(Step(start.event_id, f"{words}: its disk has lost them"))
    elif loss.cause.name in BY_CUT.values() and loss.lost_in is not None:
        leader = loss.lost_in.leader
        for step in state.story.own.get(leader or 0, []) if leader is not None else ():
            end = step.log_end_offset
            if step.kind == "cut" and end is not None and end <= first < (step.first_offset or 0):
                found.append(Step(step.event_id, f"broker {leader} cuts its log to {end}"))
    return found[:3]


def _led_without(state: State, loss: Loss) -> str | None:
    """Where the leader begins to lead after the start that lost the records."""
    term = loss.lost_in
    if term is None or term.leader is None or term.leader not in loss.cause.lossy:
        return None
    steps = state.story.own.get(term.leader, [])
    start = _start_without(steps, loss)
    after = steps[steps.index(start) :] if start is not None else []
    led = (s for s in after if s.kind == "led" and s.leader_epoch == term.leader_epoch)
    return next((s.event_id for s in led), None)


def _start_without(steps: list[OwnStep], loss: Loss) -> OwnStep | None:
    """A broker's start with less than the records, behind what shows that it had come so far: a log
    end above them, or a role in the leader epoch in which they were written."""
    first, written, found, had = loss.first_offset, loss.record.leader_epoch, None, False
    for step in steps:
        end = step.log_end_offset
        if step.kind != "started":
            shown = end is not None and end > first
            in_its_epoch = written is not None and step.leader_epoch == written
            had = had or shown or in_its_epoch
        elif not step.clean and end is not None and end <= first and (had or found is None):
            found, had = step, False
    return found
