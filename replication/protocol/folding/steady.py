"""The uneventful steps of a trace, folded without an Event: nearly all events of a healthy log.

The faster twin of fold.apply and of conformance.hold, which it must leave the same state as.
Each function does for one kind what fold.apply does where nothing new is learnt: an append that
continues the log, a high watermark or an acknowledgement that extends the last promise. It returns
False, with the state unchanged, wherever fold.apply would do more; then the caller makes the Event
and calls that. A test holds both against each other on random traces.

The arguments after state are the fact's numbers in the order of its fields; ABSENT is not observed.
"""

from collections.abc import Callable

from replication.protocol.folding.conformance.expected import KEPT
from replication.protocol.folding.conformance.leaders import forget_old
from replication.protocol.folding.fold import ANY_OCCURRENCE
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import Promise, Replica, State

ABSENT = -1
# How far back fold._add_promise looks for a promise to extend.
LOOKED_BACK = 4
# Makes a named tuple without its constructor's own call: a tenth of a step.
_new = tuple.__new__

Step = Callable[[State, int, int, int, int, int, int, str | None, bool], bool]


def _known(state: State, number: int, traced: bool) -> Replica | None:
    """The replica, if its next step can be uneventful."""
    if traced and state.grade != "traced":
        return None
    if state.ever_assigned and number not in state.ever_assigned:
        return None
    return state.replicas.get(number)


def _appending(leads: bool) -> Step:
    """The step for leader_appended (leads) and follower_appended, which are all but one."""

    def appended(
        state: State, replica: int, first: int, end: int, leader_epoch: int, content: int,
        unused: int, word: str | None, traced: bool,
    ) -> bool:  # fmt: skip
        """The records continue the last span of the log.

        A leader's are of its own epoch; a follower was seen to fetch where they begin, and no
        channel is open: where conformance.followers.follower_appended has nothing to say.
        """
        known = _known(state, replica, traced)
        if known is None or end <= first or leader_epoch < 0:
            return False
        log = known.log
        if not log.spans or log.log_end_offset != first:
            return False
        last = log.spans[-1]
        if (
            last.end_offset != first
            or last.leader_epoch != leader_epoch
            or last.content != (content if content >= 0 else None)
            or not known.epoch_entries
            or known.epoch_entries[-1].leader_epoch < leader_epoch
        ):
            return False
        if leads:
            if known.role == "leader" and replica in state.conformance.traced:
                reign = state.conformance.reigns.get(leader_epoch)
                if known.leader_epoch != leader_epoch or reign is None:
                    return False
                reign.ends.append(end)
                if len(reign.ends) > KEPT:
                    del reign.ends[: KEPT // 2]
        elif known.role == "follower" and replica in state.conformance.traced:
            held = state.conformance
            if not known.fetched or held.channels:
                return False
            known.fetched = known.answered = False
        log.spans[-1] = _new(Span, (last.first_offset, end, leader_epoch, last.content))
        log.log_end_offset = known.known_log_end_offset = end
        state.applied += 1
        return True

    return appended


def fetch_requested(
    state: State, replica: int, leader: int, fetch_offset: int, leader_epoch: int,
    last_fetched_epoch: int, log_start_offset: int, word: str | None, traced: bool,
) -> bool:  # fmt: skip
    """fetch_requested between the leader's high watermark and its log end, by one it knows.

    The twin of conformance.leaders.fetch_requested where the rules have nothing to say.
    """
    if traced and state.grade != "traced":
        return False
    if state.ever_assigned and replica not in state.ever_assigned:
        return False
    known = state.replicas.get(leader)
    if known is None:
        return False
    held = state.conformance
    if known.role != "leader" or known.leader_epoch is None or leader not in held.traced:
        known.remote_log_end_offsets[replica] = fetch_offset
        state.applied += 1
        return True
    reign = held.reigns.get(known.leader_epoch)
    ends, mark, log = known.remote_log_end_offsets, known.high_watermark, known.log
    before = ends.get(replica)
    if reign is None or mark is None or before is None or held.channels or reign.lost:
        return False
    if not before <= mark <= fetch_offset <= log.log_end_offset:
        return False
    if fetch_offset < log.log_start_offset or replica not in reign.qualified:
        return False
    if leader_epoch >= 0:
        if leader_epoch != known.leader_epoch:
            return False
        # Of a follower whose log ends in another epoch than its leader's, fetch_admission decides.
        entries = known.epoch_entries
        if last_fetched_epoch >= 0 and (
            not entries or entries[-1].leader_epoch != last_fetched_epoch
        ):
            return False
    if known.claimed is not None and known.claimed != fetch_offset:
        return False
    if replica in held.traced:
        follower = state.replicas.get(replica)
        if (
            follower is None
            or follower.log.log_end_offset != fetch_offset
            or follower.leader_epoch != known.leader_epoch
            or follower.role != "follower"
        ):
            return False
        follower.fetched = True
        if reign.asked.get(replica) != fetch_offset:
            held.predicted += 1
    if known.claimed is not None:
        known.claimed = None
        held.predicted += 1
    reign.asked[replica] = ends[replica] = fetch_offset
    state.applied += 1
    return True


def fetch_answered(
    state: State, replica: int, leader: int, high_watermark: int, log_start_offset: int,
    diverging_epoch: int, diverging_end_offset: int, error: str | None, traced: bool,
) -> bool:  # fmt: skip
    """fetch_answered: the follower takes over a high watermark that its leader was seen at."""
    known = _known(state, replica, traced)
    if known is None or error is not None or diverging_epoch >= 0:
        return False
    if log_start_offset > known.log.log_start_offset:
        return False
    if high_watermark >= 0:
        held = state.conformance
        if replica in held.traced and known.role == "follower":
            reign = held.reigns.get(known.leader_epoch if known.leader_epoch is not None else -1)
            if reign is None or high_watermark not in reign.high_watermarks:
                return False
            if high_watermark < known.log.log_start_offset:
                return False
        known.high_watermark = min(high_watermark, known.log.log_end_offset)
    known.answered = True
    state.applied += 1
    return True


def high_watermark_advanced(
    state: State, replica: int, high_watermark: int, a2: int, a3: int, a4: int, a5: int,
    word: str | None, traced: bool,
) -> bool:  # fmt: skip
    """high_watermark_advanced by a leader in whose term something was committed before."""
    known = _known(state, replica, traced)
    if known is None or known.role != "leader" or known.promised_below is None:
        return False
    leader_epoch = known.leader_epoch
    before = known.high_watermark
    if leader_epoch is None or before is None or high_watermark < before:
        return False
    if leader_epoch < state.registration.leader_epoch or high_watermark > known.log.log_end_offset:
        return False
    by_term = (leader_epoch, known.term_occurrence)
    if known.promised_below[0] != by_term:
        return False
    held = state.conformance
    reign = None
    if replica in held.traced and high_watermark > before:
        reign = held.reigns.get(leader_epoch)
        if reign is None or held.open or known.claimed is not None or not reign.high_watermarks:
            return False
    start = max(known.log.log_start_offset, known.promised_below[1])
    if high_watermark > start:
        last = known.log.spans[-1] if known.log.spans else None
        if last is None or last.first_offset > start or last.end_offset < high_watermark:
            return False
        if last.leader_epoch is None or last.leader_epoch > leader_epoch:
            return False
        span = _new(Span, (start, high_watermark, last.leader_epoch, last.content))
        commitments = state.history.commitments
        if _is_covered(commitments, span) or not _extend(
            commitments, span, by_term, "high_watermark"
        ):
            return False
        known.promised_below = (by_term, high_watermark)
    if reign is not None:
        # What conformance.leaders.high_watermark_advanced notes.
        ends = known.remote_log_end_offsets
        if high_watermark == known.log.log_end_offset or high_watermark in ends.values():
            held.predicted += 1
        else:
            known.claimed = high_watermark
        marks = reign.high_watermarks
        marks.append(high_watermark)
        if len(marks) > KEPT:
            forget_old(marks)
    known.high_watermark = high_watermark
    state.applied += 1
    return True


def records_acknowledged(
    state: State, first: int, end: int, leader_epoch: int, content: int, a4: int, a5: int,
    acks: str | None, traced: bool,
) -> bool:  # fmt: skip
    """records_acknowledged next to those acknowledged before."""
    if traced and (state.grade != "traced" or leader_epoch < state.registration.leader_epoch):
        return False
    if end <= first or leader_epoch < 0:
        return False
    span = _new(Span, (first, end, leader_epoch, content if content >= 0 else None))
    how = "acks_all" if acks == "all" else "acks_1"
    if not _extend(state.history.acknowledgements, span, (leader_epoch, ANY_OCCURRENCE), how):
        return False
    state.applied += 1
    return True


def _is_covered(promises: list[Promise], span: Span) -> bool:
    """Whether any promise holds the span, whoever made it: then the order of terms decides."""
    for promise in promises:
        held = promise.span
        if (
            held.first_offset <= span.first_offset
            and held.end_offset >= span.end_offset
            and held[2:] == span[2:]
        ):
            return True
    return False


def _extend(promises: list[Promise], span: Span, by_term: tuple[int, int], how: str) -> bool:
    """Lengthens the one of the last promises that the span continues; False where none is."""
    for old in promises[: -LOOKED_BACK - 1 : -1]:
        held = old.span
        if (
            old.by_term == by_term
            and old.how == how
            and held[2:] == span[2:]
            and held.first_offset <= span.first_offset <= held.end_offset
        ):
            if span.end_offset > held.end_offset:
                old.span = _new(Span, (held.first_offset, span.end_offset, *held[2:]))
            return True
    return False


STEPS: dict[str, Step] = {
    "leader_appended": _appending(leads=True),
    "follower_appended": _appending(leads=False),
    "fetch_requested": fetch_requested,
    "fetch_answered": fetch_answered,
    "high_watermark_advanced": high_watermark_advanced,
    "records_acknowledged": records_acknowledged,
}
