"""The uneventful steps of a trace, folded without an Event: nearly all events of a healthy log.

The faster twin of fold.apply and of conformance.hold, which it must leave the same state as. Each
function does for one kind what the functions of that name in steps/ and conformance/ do where
nothing new is learnt: an append that continues the log, a high watermark or an acknowledgement that
extends the last promise. It returns False, with the state unchanged, wherever they would do more;
then the caller makes the Event and calls fold.apply. tests/protocol/test_steady.py holds both
against each other on random traces.

What no step in here changes (the leader, the epochs, what conformance keeps of them) is looked up
once, into State.calm, and forgotten by fold.apply; what is left to check at each step are offsets.

The arguments after state are the fact's numbers in the order of its fields; ABSENT is not observed.
"""

from collections.abc import Callable
from typing import Any

from replication.protocol.folding import fold
from replication.protocol.folding.conformance.expected import KEPT
from replication.protocol.folding.conformance.leaders import forget_old
from replication.protocol.folding.steps.terms import is_succeeded
from replication.protocol.ground import events as ev
from replication.protocol.ground.held_steps import Calm
from replication.protocol.ground.model import Span
from replication.protocol.ground.replica_log import ReplicaLog
from replication.protocol.ground.topic_partition import (
    ANY_OCCURRENCE,
    LENGTHENED,
    Promise,
    Replica,
    State,
)

ABSENT = -1
# Makes a named tuple without its constructor's own call: a tenth of a step.
_new = tuple.__new__

Step = Callable[[State, int, int, int, int, int, int, str | None, bool], bool]


def _calm(state: State) -> Calm:
    """An empty note of what uneventful steps rest on, from now until the next eventful one."""
    calm = state.calm = Calm(state.grade == "traced")
    return calm


def _known(state: State, number: int) -> Replica | None:
    """The replica, if its next step can be uneventful."""
    if state.ever_assigned and number not in state.ever_assigned:
        return None
    return state.replicas.get(number)


def _log_of(known: Replica) -> tuple[ReplicaLog, int, int, int | None] | None:
    """(log, leader epoch, content as a number, content) where an append may continue it."""
    log, entries = known.log, known.epoch_entries
    if not log.spans or not entries:
        return None
    last = log.spans[-1]
    leader_epoch, content = last.leader_epoch, last.content
    if leader_epoch is None or last.end_offset != log.log_end_offset:
        return None
    if entries[-1].leader_epoch < leader_epoch:
        return None
    return log, leader_epoch, ABSENT if content is None else content, content


def _leading(state: State, calm: Calm, replica: int) -> tuple[Any, ...] | None:
    """What a leader's next append rests on: its log, and where conformance notes its end."""
    known = _known(state, replica)
    told = None if known is None else _log_of(known)
    if known is None or told is None:
        return None
    ends = None
    if known.role == "leader" and replica in state.conformance.traced:
        term = state.conformance.terms.get(told[1])
        if known.leader_epoch != told[1] or term is None:
            return None
        ends = term.ends
    found = calm.leading[replica] = (known, *told, ends)
    return found


def leader_appended(
    state: State, replica: int, first: int, end: int, leader_epoch: int, content: int,
    unused: int, word: str | None, traced: bool,
) -> bool:  # fmt: skip
    """leader_appended where the records continue the last span, of the leader's own epoch."""
    calm = state.calm or _calm(state)
    found = calm.leading.get(replica) or _leading(state, calm, replica)
    if found is None or end <= first or (traced and not calm.traced):
        return False
    known, log, own_epoch, number, its_content, ends = found
    if log.log_end_offset != first or leader_epoch != own_epoch or content != number:
        return False
    if ends is not None:
        ends.append(end)
        if len(ends) > KEPT:
            del ends[: KEPT // 2]
    spans = log.spans
    spans[-1] = _new(Span, (spans[-1][0], end, own_epoch, its_content))
    log.log_end_offset = known.known_log_end_offset = end
    state.applied += 1
    return True


def _following(state: State, calm: Calm, replica: int) -> tuple[Any, ...] | None:
    """What a follower's next append rests on: its log, and whether its fetches are held."""
    known = _known(state, replica)
    told = None if known is None else _log_of(known)
    if known is None or told is None:
        return None
    held = known.role == "follower" and replica in state.conformance.traced
    if held and state.conformance.channels:
        return None
    found = calm.following[replica] = (known, *told, held)
    return found


def follower_appended(
    state: State, replica: int, first: int, end: int, leader_epoch: int, content: int,
    unused: int, word: str | None, traced: bool,
) -> bool:  # fmt: skip
    """follower_appended where the records continue the last span, as they were fetched.

    No channel is open: conformance.followers.follower_appended has nothing to say.
    """
    calm = state.calm or _calm(state)
    found = calm.following.get(replica) or _following(state, calm, replica)
    if found is None or end <= first or (traced and not calm.traced):
        return False
    known, log, own_epoch, number, its_content, held = found
    if log.log_end_offset != first or leader_epoch != own_epoch or content != number:
        return False
    if held:
        # The first append of an answer needs the fetch that it answers.
        if known.answered and not known.fetched:
            return False
        known.fetched = known.answered = False
    spans = log.spans
    spans[-1] = _new(Span, (spans[-1][0], end, own_epoch, its_content))
    log.log_end_offset = known.known_log_end_offset = end
    state.applied += 1
    return True


def _fetching(state: State, calm: Calm, replica: int, leader: int) -> tuple[Any, ...] | None:
    """What a follower's next fetch rests on, where the rules will have nothing to say."""
    known = state.replicas.get(leader)
    if known is None or (state.ever_assigned and replica not in state.ever_assigned):
        return None
    held, ends, log = state.conformance, known.remote_log_end_offsets, known.log
    if known.role != "leader" or known.leader_epoch is None or leader not in held.traced:
        untraced = calm.fetching[replica] = (leader, ends, None, None, 0, 0, None, None, None)
        return untraced
    term = held.terms.get(known.leader_epoch)
    if term is None or held.channels or term.lost or replica not in term.qualified:
        return None
    if replica not in term.asked_first:
        return None
    follower = None
    if replica in held.traced:
        follower = state.replicas.get(replica)
        if follower is None or follower.leader_epoch != known.leader_epoch:
            return None
        if follower.role != "follower":
            return None
    # Of a follower whose log ends in another epoch than its leader's, fetch_admission decides.
    entries = known.epoch_entries
    last = entries[-1].leader_epoch if entries else ABSENT
    own = None if follower is None else follower.log
    found = (leader, ends, known, log, known.leader_epoch, last, term.asked, follower, own)
    calm.fetching[replica] = found
    return found


def fetch_requested(
    state: State, replica: int, leader: int, fetch_offset: int, leader_epoch: int,
    last_fetched_epoch: int, log_start_offset: int, word: str | None, traced: bool,
) -> bool:  # fmt: skip
    """fetch_requested between the leader's high watermark and its log end, by one it knows.

    The twin of conformance.leaders.fetch_requested where the rules have nothing to say.
    """
    calm = state.calm or _calm(state)
    found = calm.fetching.get(replica)
    if found is None or found[0] != leader:
        found = _fetching(state, calm, replica, leader)
    if found is None or (traced and not calm.traced):
        return False
    _, ends, known, log, own_epoch, last_epoch, asked, follower, own = found
    if known is None:
        ends[replica] = fetch_offset
        state.applied += 1
        return True
    high_watermark, before, claimed = known.high_watermark, ends.get(replica), known.claimed
    if high_watermark is None or before is None:
        return False
    if not before <= high_watermark <= fetch_offset <= log.log_end_offset:
        return False
    if fetch_offset < log.log_start_offset or claimed not in (None, fetch_offset):
        return False
    if leader_epoch >= 0 and (
        leader_epoch != own_epoch or (last_fetched_epoch >= 0 and last_fetched_epoch != last_epoch)
    ):
        return False
    held = state.conformance
    if follower is not None:
        if own.log_end_offset != fetch_offset:
            return False
        follower.fetched = True
        if asked.get(replica) != fetch_offset:
            held.predicted += 1
    if claimed is not None:
        known.claimed = None
        held.predicted += 1
    asked[replica] = ends[replica] = fetch_offset
    state.applied += 1
    return True


def _answered(state: State, calm: Calm, replica: int) -> tuple[Any, ...] | None:
    """What a follower's next answer rests on: the high watermarks that its leader was seen at."""
    known = _known(state, replica)
    if known is None:
        return None
    held, high_watermarks = state.conformance, None
    if replica in held.traced and known.role == "follower":
        term = held.terms.get(known.leader_epoch if known.leader_epoch is not None else -1)
        high_watermarks = () if term is None else term.high_watermarks
    found = calm.answered[replica] = (known, known.log, high_watermarks)
    return found


def fetch_answered(
    state: State, replica: int, leader: int, high_watermark: int, log_start_offset: int,
    diverging_epoch: int, diverging_end_offset: int, error: str | None, traced: bool,
) -> bool:  # fmt: skip
    """fetch_answered: the follower takes over a high watermark that its leader was seen at."""
    calm = state.calm or _calm(state)
    found = calm.answered.get(replica) or _answered(state, calm, replica)
    if found is None or error is not None or diverging_epoch >= 0 or (traced and not calm.traced):
        return False
    known, log, high_watermarks = found
    if log_start_offset > log.log_start_offset:
        return False
    if high_watermark >= 0:
        if high_watermarks is not None and (
            high_watermark not in high_watermarks or high_watermark < log.log_start_offset
        ):
            return False
        end = log.log_end_offset
        known.high_watermark = high_watermark if high_watermark < end else end
    known.answered = True
    state.applied += 1
    return True


def _advancing(state: State, calm: Calm, replica: int) -> tuple[Any, ...] | None:
    """What a leader's next high watermark rests on: the term, and the promise that it extends."""
    known = _known(state, replica)
    if known is None or known.role != "leader" or known.promised_below is None:
        return None
    leader_epoch, last = known.leader_epoch, known.log.spans[-1] if known.log.spans else None
    if leader_epoch is None or is_succeeded(state, leader_epoch) or last is None:
        return None
    latest_term = (leader_epoch, known.term_occurrence)
    if known.promised_below[0] != latest_term:
        return None
    if last.leader_epoch is None or last.leader_epoch > leader_epoch:
        return None
    held, high_watermarks = state.conformance, None
    if replica in held.traced:
        term = held.terms.get(leader_epoch)
        if term is None or held.open or not term.high_watermarks:
            return None
        high_watermarks = term.high_watermarks
    history = state.history
    same = history.committed_of(last.leader_epoch, last.content)
    recent = [p for p in history.commitments[: -LENGTHENED - 1 : -1] if p.span[2:] == last[2:]]
    made = (latest_term, "high_watermark", replica)
    own = [p for p in recent if (p.latest_term, p.how, p.replica) == made]
    found = (
        known,
        known.log,
        latest_term,
        known.remote_log_end_offsets,
        high_watermarks,
        same,
        own,
    )
    calm.advancing[replica] = found
    return found


def high_watermark_advanced(
    state: State, replica: int, high_watermark: int, a2: int, a3: int, a4: int, a5: int,
    word: str | None, traced: bool,
) -> bool:  # fmt: skip
    """high_watermark_advanced by a leader in whose term something was committed before, or by its
    follower."""
    calm = state.calm or _calm(state)
    found = calm.advancing.get(replica)
    if found is None:
        taken = calm.taking_over.get(replica) or _taking_over(state, calm, replica)
        if taken is not None:
            return traced and calm.traced and _taken_over(state, high_watermark, *taken)
        found = _advancing(state, calm, replica)
    if found is None or (traced and not calm.traced):
        return False
    known, log, latest_term, ends, high_watermarks, same, own = found
    before, end = known.high_watermark, log.log_end_offset
    if before is None or high_watermark < before or high_watermark > end:
        return False
    moves = high_watermarks is not None and high_watermark > before
    if moves and known.claimed is not None:
        return False
    start = max(log.log_start_offset, known.promised_below[1])
    if high_watermark > start:
        last = log.spans[-1]
        if last[0] > start or last[1] < high_watermark:
            return False
        if _is_covered(same, start, high_watermark) or not _extend(own, start, high_watermark):
            return False
        known.promised_below = (latest_term, high_watermark)
    if moves:
        # What conformance.leaders.high_watermark_advanced notes.
        if high_watermark == end or high_watermark in ends.values():
            state.conformance.predicted += 1
        else:
            known.claimed = high_watermark
        high_watermarks.append(high_watermark)
        if len(high_watermarks) > KEPT:
            forget_old(high_watermarks)
    known.high_watermark = high_watermark
    state.applied += 1
    return True


def _taking_over(state: State, calm: Calm, replica: int) -> tuple[Any, ...] | None:
    """What a follower's next high watermark rests on: those that its leader was seen at. Nothing is
    promised by it where every leader's own steps are here."""
    known = _known(state, replica)
    if known is None or known.role != "follower" or known.leader_epoch is None:
        return None
    if known.known_log_end_offset is None or not state.is_wholly_traced():
        return None
    held, flags = state.conformance, state.behaviour(replica)
    term = held.terms.get(known.leader_epoch)
    if flags is None or replica not in held.traced or term is None:
        return None
    if term.leader is not None and term.leader not in held.traced:
        return None
    found = calm.taking_over[replica] = (known, known.log, term.high_watermarks)
    return found


def _taken_over(
    state: State, high_watermark: int, known: Replica, log: ReplicaLog, high_watermarks: list[int]
) -> bool:
    """high_watermark_advanced by a follower, to one that its leader had."""
    before, end = known.high_watermark, log.log_end_offset
    if high_watermark != before:
        cut = before is not None and high_watermark == min(before, end)
        # A follower is seldom more than a step behind.
        leaders = high_watermark in high_watermarks[-2:] or high_watermark in high_watermarks
        if not cut and not (leaders and log.log_start_offset <= high_watermark <= end):
            return False
        state.conformance.predicted += 1
        known.high_watermark = high_watermark
    state.applied += 1
    return True


def records_acknowledged(
    state: State, first: int, end: int, leader_epoch: int, content: int, leader: int, until: int,
    acks: str | None, traced: bool,
) -> bool:  # fmt: skip
    """records_acknowledged next to those acknowledged before."""
    if traced and (state.grade != "traced" or is_succeeded(state, leader_epoch)):
        return False
    if end <= first or leader_epoch < 0 or leader >= 0:
        return False
    latest_term = (leader_epoch, ANY_OCCURRENCE)
    how = "acks_all" if acks == "all" else "acks_1"
    of = (leader_epoch, content if content >= 0 else None)
    promises = state.history.acknowledgements
    for old in promises[: -LENGTHENED - 1 : -1]:
        same = old.latest_term == latest_term and old.how == how and old.span[2:] == of
        # Of what a broker is known to have answered this is no more.
        if same and old.replica is None and _extend((old,), first, end):
            if old.until is not None:
                old.until = None if until < 0 else max(old.until, until)
            state.applied += 1
            return True
    return False


def _is_covered(same: list[Promise], first: int, end: int) -> bool:
    """Whether any promise holds the offsets, whoever made it: then the order of terms decides."""
    for promise in same:  # noqa: SIM110 - a generator costs a tenth of the step
        if promise.span[0] <= first and promise.span[1] >= end:
            return True
    return False


def _extend(own: list[Promise] | tuple[Promise], first: int, end: int) -> bool:
    """Lengthens the first promise that goes on at first; False where none does."""
    for old in own:
        held = old.span
        if held[0] <= first <= held[1]:
            if end > held[1]:
                old.span = _new(Span, (held[0], end, held[2], held[3]))
            return True
    return False


def fold_event(state: State, event: ev.Event) -> None:
    """fold.apply, by the uneventful way where there is one. Raises Rejected."""
    step = _FACTS.get(type(event.fact))
    if step is None or not step(state, event.fact, event.grade == "traced"):
        fold.apply(state, event)


def _number(value: int | None) -> int:
    return ABSENT if value is None else value


def _leader_appended(state: State, f: ev.LeaderAppended, traced: bool) -> bool:
    leader_epoch, content = _number(f.leader_epoch), _number(f.content)
    first, end = f.first_offset, f.end_offset
    return leader_appended(
        state, f.replica, first, end, leader_epoch, content, ABSENT, None, traced
    )


def _follower_appended(state: State, f: ev.FollowerAppended, traced: bool) -> bool:
    leader_epoch, content = _number(f.leader_epoch), _number(f.content)
    first, end = f.first_offset, f.end_offset
    return follower_appended(
        state, f.replica, first, end, leader_epoch, content, ABSENT, None, traced
    )


def _fetch_requested(state: State, f: ev.FetchRequested, traced: bool) -> bool:
    leader_epoch, last, start = f.leader_epoch, f.last_fetched_epoch, f.log_start_offset
    return fetch_requested(
        state, f.replica, f.leader, f.fetch_offset, _number(leader_epoch), _number(last),
        _number(start), None, traced,
    )  # fmt: skip


def _fetch_answered(state: State, f: ev.FetchAnswered, traced: bool) -> bool:
    high_watermark, start, diverging = f.high_watermark, f.log_start_offset, f.diverging_epoch
    return fetch_answered(
        state, f.replica, f.leader, _number(high_watermark), _number(start), _number(diverging),
        ABSENT, f.error, traced,
    )  # fmt: skip


def _high_watermark_advanced(state: State, f: ev.HighWatermarkAdvanced, traced: bool) -> bool:
    nothing = (ABSENT, ABSENT, ABSENT, ABSENT, None)
    return high_watermark_advanced(state, f.replica, f.high_watermark, *nothing, traced)


def _records_acknowledged(state: State, f: ev.RecordsAcknowledged, traced: bool) -> bool:
    leader_epoch, content = _number(f.leader_epoch), _number(f.content)
    first, end = f.first_offset, f.end_offset
    return records_acknowledged(
        state, first, end, leader_epoch, content, _number(f.leader), _number(f.observed_until),
        f.acks, traced,
    )  # fmt: skip


_FACTS: dict[type[Any], Callable[[State, Any, bool], bool]] = {
    ev.LeaderAppended: _leader_appended,
    ev.FollowerAppended: _follower_appended,
    ev.FetchRequested: _fetch_requested,
    ev.FetchAnswered: _fetch_answered,
    ev.HighWatermarkAdvanced: _high_watermark_advanced,
    ev.RecordsAcknowledged: _records_acknowledged,
}
STEPS: dict[str, Step] = {
    "leader_appended": leader_appended,
    "follower_appended": follower_appended,
    "fetch_requested": fetch_requested,
    "fetch_answered": fetch_answered,
    "high_watermark_advanced": high_watermark_advanced,
    "records_acknowledged": records_acknowledged,
}
