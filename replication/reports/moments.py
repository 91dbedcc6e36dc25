"""The story of one topic partition as moments: what each event changed in what is known.

A page steps through these. Each moment carries the small difference to the one before, so that
thousands of them stay small; a reader adds them up from the first.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from replication.protocol.folding import fold
from replication.protocol.folding.reconstruction import derived_values
from replication.protocol.folding.sequencing import in_order
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.judgement.bounded import Identity
from replication.reports import event_words

# What a moment is drawn as on the time axis; those without a mark are routine.
ELECTION, UNCLEAN, ISR, LEADERLESS, STOP, CRASH, START, CUT, COPY, REMOVED = (
    "election", "unclean", "isr", "leaderless", "stop", "crash", "start", "cut", "copy", "removed"
)  # fmt: skip
ROUTINE = frozenset({
    "leader_appended", "follower_appended", "fetch_requested", "fetch_answered",
    "high_watermark_advanced", "coverage_declared",
})  # fmt: skip

CRASHES = ("process_crash", "power_loss", "disk_loss")

# One derived value as it is shown: what, offset, leader epoch, rule.
ShownValue = tuple[str, int, int | None, str]
# One span as it is shown: leader epoch, first offset, end offset, content, and whether its records
# were seen (True) or only follow from the log's end and the leader epochs known (False).
ShownSpan = tuple[int | None, int, int, int | None, bool]


@dataclass(slots=True)
class Moment:
    """One event, or the last of a run of routine events shown as one.

    merged: how many events it stands for. change: the difference to the moment before, keys
    `replicas` {number: {column: value}} with REPLICA_COLUMNS, `registration` [leader, leader epoch,
    ISR], `dropped` [[replica, first offset, end offset, why], ..] added, `promised`
    [[how, first offset, end offset], ..] replaced, `derived` {number: [how many of the values that
    rules forced before stay, the others now, ..]}.
    """

    event: ev.Event
    words: str
    rule: str | None
    mark: str | None
    merged: int
    change: dict[str, Any]


@dataclass(slots=True)
class Story:
    """Moments of one partition in the order of their events; total counts events, all of them."""

    moments: list[Moment]
    total: int
    shown: int


# log_end_exact: False where the replica may hold more than was seen by then.
REPLICA_COLUMNS = (
    "status", "leader_epoch", "log_start_offset", "log_end_offset", "high_watermark", "spans",
    "log_end_exact",
)  # fmt: skip


@dataclass(slots=True)
class _Picture:
    """What the last moment showed, to tell what changes; status and exactness are kept by event."""

    status: dict[int, str] = field(default_factory=dict)
    exact: dict[int, bool] = field(default_factory=dict)
    replicas: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    registration: tuple[Any, ...] = (None, None, None)
    dropped: int = 0
    losses: int = 0
    promised: tuple[int, int] = (0, 0)
    derived: dict[int, list[ShownValue]] = field(default_factory=dict)


def story(identity: Identity, events: Iterable[ev.Event], witnesses: set[str], most: int) -> Story:
    """Folds one partition's events and writes down every moment, at most `most` of them.

    witnesses: event_ids that proofs name; they are kept first, then what has a mark, then routine.
    """
    ordered = in_order(events).ready
    kept = _chosen(ordered, witnesses, most)
    state = fold.new_state(*identity)
    picture = _Picture()
    moments: list[Moment] = []
    merged = applied = 0
    for position, event in enumerate(ordered):
        wanted = position in kept
        words = event_words.sentence(event, state) if wanted else ""
        rule = event_words.rule(event, state) if wanted else None
        mark = _mark(event, state) if wanted else None
        try:
            fold.apply(state, event)
        except Exception as error:
            # Of a defect of ours the verdicts tell; here the event is one more that was refused.
            if wanted:
                words += f" Refused: {error}."
        applied += 1
        merged += 1
        _note_status(event, picture.status)
        _note_exactness(event, state, picture)
        if wanted:
            change = _change(state, picture)
            moments.append(Moment(event, words, rule, mark, merged, change))
            merged = 0
    return Story(moments, applied, len(moments))


def _chosen(ordered: list[ev.Event], witnesses: set[str], most: int) -> set[int]:
    """Positions of the events that get a moment of their own; the last one always does."""
    if len(ordered) <= most:
        return set(range(len(ordered)))
    ranks: tuple[list[int], list[int], list[int]] = ([], [], [])
    for position, event in enumerate(ordered):
        if event.event_id in witnesses:
            ranks[0].append(position)
        elif event.fact.kind not in ROUTINE:
            ranks[1].append(position)
        else:
            ranks[2].append(position)
    kept = {len(ordered) - 1}
    for positions in ranks:
        room = most - len(kept)
        if room <= 0:
            break
        stride = max(1, -(-len(positions) // room))
        kept.update(positions[::stride])
    return kept


def _mark(event: ev.Event, before: State) -> str | None:
    match event.fact:
        case ev.LeadershipRecorded(leader=None):
            return LEADERLESS
        case ev.LeadershipRecorded() as fact:
            if fact.election_kind is not None:
                return UNCLEAN if fact.election_kind == "unclean" else ELECTION
            return ISR if event_words.isr_changed(fact, before.registration) else None
        case ev.ReplicaStopped(reason=reason):
            return CRASH if reason in CRASHES else STOP
        case ev.ReplicaStarted():
            return START
        case ev.Truncated() as fact:
            return None if fact.cuts_nothing else CUT
        case ev.ReplicaLogObserved():
            return COPY
        case ev.LogStartAdvanced():
            return REMOVED
        case _:
            return None


def _note_status(event: ev.Event, status: dict[int, str]) -> None:
    """What each broker was last seen doing with this partition."""
    match event.fact:
        case ev.ReplicaStopped(replica=replica, reason=reason):
            known = {"clean": "stopped", "unknown": "down"}
            status[replica] = known.get(reason, "crashed")
        case ev.ReplicaStarted(replica=replica):
            status[replica] = "started"
        case ev.BecameLeader(replica=replica):
            status[replica] = "leader"
        case ev.BecameFollower(replica=replica):
            status[replica] = "follower"
        case ev.ReplicaLogObserved(replica=replica, copy="current", stopped=True):
            status[replica] = "stopped"
        case _:
            pass


def _note_exactness(event: ev.Event, state: State, picture: _Picture) -> None:
    """A log end is exact from an observation of it until the replica may append unseen."""
    for number in state.replicas:
        traced = state.covered("replica_trace", number)
        if traced:
            picture.exact[number] = True
        elif picture.status.get(number) in ("leader", "follower"):
            picture.exact[number] = False
    match event.fact:
        case ev.ReplicaStarted() | ev.BecameLeader() | ev.BecameFollower() as fact:
            if fact.log_end_offset is not None:
                picture.exact[fact.replica] = True
        case (
            ev.Truncated(replica=replica)
            | ev.ReplicaLogObserved(replica=replica, copy="current" | "live")
        ):
            picture.exact[replica] = True
        case _:
            pass


def _change(state: State, picture: _Picture) -> dict[str, Any]:
    change: dict[str, Any] = {}
    replicas = {}
    for number, replica in state.replicas.items():
        now = _seen(replica, picture.status.get(number, ""), picture.exact.get(number, False))
        was = picture.replicas.get(number, (None,) * len(REPLICA_COLUMNS))
        if now != was:
            picture.replicas[number] = now
            replicas[number] = {i: v for i, v in enumerate(now) if v != was[i]}
    if replicas:
        change["replicas"] = replicas
    registration = state.registration
    recorded = (
        registration.leader,
        registration.leader_epoch if registration.leader_epoch >= 0 else None,
        registration.isr,
    )
    if recorded != picture.registration:
        picture.registration = recorded
        change["registration"] = recorded
    dropped = _newly_dropped(state, picture)
    if dropped:
        change["dropped"] = dropped
    promised = _promised(state)
    extent = (len(promised), sum(p[2] - p[1] for p in promised))
    if extent != picture.promised:
        picture.promised = extent
        change["promised"] = promised
    derived = _newly_derived(state, picture)
    if derived:
        change["derived"] = derived
    return change


def _newly_derived(state: State, picture: _Picture) -> dict[int, list[Any]]:
    """By replica: how many derived values stay as they were, and those that follow them now."""
    now: dict[int, list[ShownValue]] = {number: [] for number in picture.derived}
    for d in derived_values(state):
        now.setdefault(d.replica, []).append((d.what, d.offset, d.leader_epoch, d.rule))
    changed: dict[int, list[Any]] = {}
    for number, values in now.items():
        was = picture.derived.get(number, [])
        if values != was:
            same = takewhile(lambda pair: pair[0] == pair[1], zip(was, values, strict=False))
            kept = sum(1 for _ in same)
            changed[number] = [kept, *values[kept:]]
    picture.derived = now
    return changed


def _newly_dropped(state: State, picture: _Picture) -> list[list[Any]]:
    history = state.history
    dropped: list[list[Any]] = []
    for cut in history.truncations[picture.dropped :]:
        if cut.from_offset is not None and cut.from_offset > cut.to_offset:
            dropped.append([cut.replica, cut.to_offset, cut.from_offset, "truncated"])
    for loss in history.storage_losses[picture.losses :]:
        dropped.append([loss.replica, loss.left_end_offset, loss.had_end_offset, "lost on disk"])
    picture.dropped = len(history.truncations)
    picture.losses = len(history.storage_losses)
    return dropped


def _promised(state: State) -> list[list[Any]]:
    """Acknowledged and consumed offsets as ranges without overlap, by how they were promised."""
    ranges: list[list[Any]] = []
    history = state.history
    by_how: dict[str, list[tuple[int, int]]] = {}
    for promise in (*history.acknowledgements, *history.consumptions):
        by_how.setdefault(promise.how, []).append(promise.span[:2])
    for how, spans in sorted(by_how.items()):
        for first, end in sorted(spans):
            if ranges and ranges[-1][0] == how and first <= ranges[-1][2]:
                ranges[-1][2] = max(ranges[-1][2], end)
            else:
                ranges.append([how, first, end])
    return ranges


def _seen(replica: Replica, status: str, exact: bool) -> tuple[Any, ...]:
    log = replica.log
    known = replica.known_log_end_offset is not None or bool(log.spans) or replica.captured
    return (
        status,
        replica.leader_epoch,
        log.log_start_offset,
        log.log_end_offset if known or log.log_end_offset else None,
        replica.high_watermark,
        shown_spans(replica),
        exact,
    )


def shown_spans(replica: Replica) -> list[ShownSpan]:
    """A replica's log as spans without holes: seen ones, and between them what must be there.

    Records that nobody saw get the leader epoch that the replica's own epoch entries give them;
    the last entry says nothing of what a follower of a later leader epoch holds above it.
    """
    spans: list[ShownSpan] = []
    position = replica.log.log_start_offset
    for span in replica.log.spans:
        if span.first_offset > position:
            spans += _unseen(replica, position, span.first_offset)
        spans.append((span.leader_epoch, span.first_offset, span.end_offset, span.content, True))
        position = max(position, span.end_offset)
    if replica.log.log_end_offset > position:
        spans += _unseen(replica, position, replica.log.log_end_offset)
    return spans


def _unseen(replica: Replica, first: int, end: int) -> list[ShownSpan]:
    spans: list[ShownSpan] = []
    entries = replica.epoch_entries
    bounds = [entry.start_offset for entry in entries[1:]]
    for position, entry in enumerate(entries):
        until = bounds[position] if position < len(bounds) else end
        if position == len(bounds) and entry.leader_epoch != replica.leader_epoch:
            break
        low, high = max(first, entry.start_offset), min(end, until)
        if low < high:
            spans.append((entry.leader_epoch, low, high, None, False))
    covered = spans[0][1] if spans else end
    if first < covered:
        spans.insert(0, (None, first, covered, None, False))
    reached = spans[-1][2] if spans else first
    if reached < end:
        spans.append((None, reached, end, None, False))
    return spans
