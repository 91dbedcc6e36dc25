"""What evidence cannot show (docs/limits.md): by which of these classes a verdict is not the truth.

A class excuses a verdict only where what makes it so is shown: that no promise about the lost
records is told at all, or what became of each record that the verdict names. Everything else is
wrong.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from replication.machine.machine_state import World
from replication.protocol.folding.fold import apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span, same_record
from replication.protocol.ground.topic_partition import Promise, State
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.ledger import Loss
from replication.protocol.judgement.reference import UNSURE_KINDS, Reference
from replication.protocol.judgement.view import View, view_of

STORAGE = "storage lost, and nothing recorded it"
CUT_OFF = "a leader cut off promised on, and no line shows it alive"
LACKED = "a member of the ISR lacked what was committed, and nothing recorded that"
NEVER_LED = "elected, and never led: only the controller knew of it"
DELETED = "deleted, or too old to keep, and no line tells of it"
OLDER_COPY = "a copy of a clean stop, and no line tells that its broker lived on"
CLASSES = (STORAGE, CUT_OFF, LACKED, NEVER_LED, DELETED, OLDER_COPY)
COMMITTED = "committed_records_survive"
BY_STORAGE = ("storage_loss", "last_replica_standing", "log_dir_failure")
Record = tuple[int, int | None, int | None]
"""Offset, leader epoch, content."""


@dataclass
class Truth:
    """What is so in a world. verdicts: by the complete trace. once_lost: every record that a later
    valid leader began without, though it had not been removed lawfully by then."""

    world: World
    verdicts: dict[str, str]
    view: View
    once_lost: set[Record] = field(default_factory=set)
    after_successor: set[Record] = field(default_factory=set)
    removed: set[Record] = field(default_factory=set)


def truth_of(world: World) -> Truth:
    """The truth of a story, from every step of it."""
    state = new_state("", "world", "", 0)
    found = Truth(world, {}, View.__new__(View))
    committed: set[Record] = set()
    written: set[Record] = set()
    removed = 0
    for number, step in enumerate(world.steps):
        fact = step.fact
        apply(state, ev.Event(str(number), "w", "", "w", "", 0, number, fact, None, "traced"))
        if isinstance(fact, ev.LogStartAdvanced):
            removed = max(removed, fact.log_start_offset)
            replica = state.replicas[fact.replica]
            if replica.role == "leader" and _is_registered(state, fact.replica):
                found.removed |= {r for r in written if r[0] < fact.log_start_offset}
        elif isinstance(fact, ev.LeaderAppended):
            span = Span(fact.first_offset, fact.end_offset, fact.leader_epoch, fact.content)
            written |= _records([span])
        elif isinstance(fact, ev.HighWatermarkAdvanced):
            replica = state.replicas[fact.replica]
            below = _records(replica.log.spans, fact.high_watermark)
            if replica.role == "leader" and _is_registered(state, fact.replica):
                committed |= below
            elif replica.role == "leader":
                found.after_successor |= below - committed
        elif isinstance(fact, ev.RecordsAcknowledged):
            span = Span(fact.first_offset, fact.end_offset, fact.leader_epoch, fact.content)
            if (fact.leader_epoch or 0) < state.registration.leader_epoch:
                found.after_successor |= _records([span]) - committed
        elif isinstance(fact, ev.BecameLeader) and _is_registered(state, fact.replica):
            held = _records(state.replicas[fact.replica].log.spans)
            found.once_lost |= {r for r in committed - held if r[0] >= removed}
    found.view = view_of(state)
    found.verdicts = {v["invariant"]: v["verdict"] for v in answer(state).verdicts}
    return found


def _is_registered(state: State, replica: int) -> bool:
    known = state.replicas[replica]
    return known.leader_epoch == state.registration.leader_epoch


def _records(spans: Iterable[Span], below: int = 1 << 62) -> set[Record]:
    return {
        (offset, s.leader_epoch, s.content)
        for s in spans
        for offset in range(s.first_offset, min(s.end_offset, below))
    }


def limit(truth: Truth, name: str, state: State, found: str) -> str | None:
    """The class by which a verdict on a promise is not the truth; None: it is wrong."""
    if name == "log_matching":
        return None
    if found == "HOLDS":
        return _why_unseen(truth, name, state)
    return _why_no_loss(truth, name, state)


def _why_unseen(truth: Truth, name: str, state: State) -> str | None:
    """Why a loss that is true shows nowhere."""
    lost = _about(truth.view, name)
    if all(_is_back_unseen(state, loss) for loss in lost):
        return LACKED
    if _only_by_whom_never_led(truth, lost):
        return NEVER_LED
    if any(_is_told(state, name, loss) for loss in lost):
        return None
    if any(loss.cause in BY_STORAGE or set(loss.contributing) & set(BY_STORAGE) for loss in lost):
        return STORAGE
    for loss in lost:
        seen = [t for t in state.history.terms if loss.lost_in and t.order == loss.lost_in.order]
        if not seen or seen[0].election_kind in UNSURE_KINDS:
            return None
    return LACKED


def _is_back_unseen(state: State, loss: Loss) -> bool:
    """Whether the records are in the log that counts, and nothing tells that a member of the ISR
    led without them in between, or that they had been committed before."""
    between = [t for t in state.history.terms if loss.lost_in and t.order == loss.lost_in.order]
    return loss.status == "recovered" and all(
        t.election_kind not in UNSURE_KINDS
        and (t.start_offset is None or not _is_told(state, COMMITTED, loss, t.order))
        for t in between
    )


def _about(view: View, name: str) -> list[Loss]:
    if name == "acknowledged_records_survive":
        return view.rows_of("acks_all", "acks_1")
    how = ("consumed", "acks_all", "checkpoint", "load", "start_line", "high_watermark")
    about = {id(x) for x in view.rows_of(*how)}
    return [x for x in view.losses if x.tier != "acknowledged_by_leader" or id(x) in about]


def _is_told(state: State, name: str, loss: Loss, before: tuple[int, int] | None = None) -> bool:
    """Whether some promise that the evidence tells, made before a term, may be of the lost."""
    history = state.history
    told: list[Promise] = list(history.acknowledgements)
    if name == COMMITTED:
        told = [p for p in told if p.how != "acks_1"] + history.commitments
    return any(
        p.span.first_offset < loss.end_offset
        and loss.first_offset < p.span.end_offset
        and same_record(p.span, loss.record) is not False
        and not _is_anothers(state, loss, p)
        and (before is None or (p.latest_term is not None and p.latest_term < before))
        for p in told
    )


def _is_anothers(state: State, loss: Loss, promise: Promise) -> bool:
    """Whether a promise by offset alone is of other records than the lost: answered for by who did
    not lead in their epoch, or the mark that a line tells of who led without them, since then."""
    led = {t.leader for t in state.history.terms if t.leader_epoch == loss.record.leader_epoch}
    if promise.how in ("acks_all", "acks_1"):
        return promise.replica is not None and bool(led) and promise.replica not in led
    lost_in, latest = loss.lost_in, promise.latest_term
    if promise.how != "start_line" or lost_in is None or latest is None:
        return False
    return promise.replica == lost_in.leader and latest[0] >= lost_in.leader_epoch


def _never_led(world: World) -> bool:
    c = world.controller
    leader = world.brokers.get(c.leader or 0)
    if leader is None:
        return False
    return not any(
        isinstance(s.fact, ev.BecameLeader)
        and (s.fact.replica, s.fact.leader_epoch) == (c.leader, c.leader_epoch)
        for s in world.steps
    )


def _only_by_whom_never_led(truth: Truth, lost: list[Loss]) -> bool:
    """Whether no leader that began lacked the records: only one that was elected and never led."""
    if not _never_led(truth.world):
        return False
    return not any(
        (offset, *loss.record[2:]) in truth.once_lost
        for loss in lost
        for offset in range(loss.first_offset, loss.end_offset)
    )


def _why_no_loss(truth: Truth, name: str, state: State) -> str | None:
    """Why a loss that evidence shows is none: of each record that it names."""
    view = _as_led(truth, view_of(state))
    if _is_older_copy(truth.world, view):
        return OLDER_COPY
    start = truth.view.ref.replica.log.log_start_offset if truth.view.ref.replica else 0
    why: set[str | None] = set()
    for loss in _about(view, name):
        for offset in range(loss.first_offset, loss.end_offset):
            record = (offset, *loss.record[2:])
            untold = state.history.removed_below((record[1] or 0, 0)) <= offset
            if offset < start or (untold and any(_may_be(record, r) for r in truth.removed)):
                why.add(DELETED)
            elif any(_may_be(record, r) for r in truth.once_lost):
                why.add(None)
            elif any(_may_be(record, r) for r in truth.after_successor):
                why.add(CUT_OFF)
            else:
                why.add(NEVER_LED if _never_led(truth.world) else None)
    return None if None in why or not why else sorted(str(w) for w in why)[0]


def _as_led(truth: Truth, view: View) -> View:
    """The view in which the true leader leads, where evidence names none."""
    leader = truth.view.ref.leader
    if leader is None or leader not in {r.replica for r in view.ref.candidates}:
        return view
    known = Reference(leader, view.state.replicas[leader], None, view.ref.starts)
    return view_of(view.state, known)


def _is_older_copy(world: World, view: View) -> bool:
    """Whether the leader's log is known by a copy alone, and it wrote more since."""
    replica = view.ref.replica
    if replica is None or not (replica.captured and replica.stopped) or replica.role is not None:
        return False
    return replica.log.log_end_offset < world.brokers[replica.replica].log.log_end_offset


def _may_be(named: Record, record: Record) -> bool:
    """Whether a row, which may join records of one epoch, can mean the record."""
    return named[0] == record[0] and (named[1] in (None, record[1]) or record[1] is None)
