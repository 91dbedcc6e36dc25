"""Which later leader began its term without the promised records."""

from replication.protocol.ground.topic_partition import (
    ANY_OCCURRENCE,
    LeaderTerm,
    Promise,
    State,
)
from replication.protocol.judgement.term_starts import TermStarts, term_start

BY_CLIENTS = ("acks_all", "acks_1", "consumed")


def first_lacking_terms(
    state: State, starts: TermStarts, promise: Promise
) -> list[tuple[int, int, LeaderTerm | None]]:
    """The promise cut into stretches by the first later term that began at or below them."""
    first, end = promise.span.first_offset, promise.span.end_offset
    if promise.latest_term is None:
        return [(first, end, None)]
    later = _first_after(state, starts, promise, promise.latest_term)
    if starts.lowest_from[later] >= end:
        return [(first, end, None)]
    result: list[tuple[int, int, LeaderTerm | None]] = []
    for place in range(later, len(starts.terms)):
        if first >= end:
            break
        term, start = starts.terms[place], starts.starts[place]
        if start is not None and start < end:
            cut = max(start, first)
            by, written_in = appender(starts, promise), promise.span.leader_epoch
            if promise.how == "acks_all" and led_on_after(
                state, term, cut, end, by, written_in, perhaps=True
            ):
                continue  # It may have been acknowledged after this term.
            if cut < end:
                result.append((cut, end, term))
                end = cut
    if first < end:
        result.append((first, end, None))
    return sorted(result, key=lambda r: r[0])


def _first_after(
    state: State, starts: TermStarts, promise: Promise, latest_term: tuple[int, int]
) -> int:
    """The place of the first term that began after the promise was made.

    Before KIP-320 a follower fetches on from who leads on in an epoch of which it has not heard: it
    may have learned there of records that were written there, unless their own epochs tell.
    """
    place = starts.after((latest_term[0], _last_that_may_have_it(starts, promise, latest_term)))
    led, flags = starts.leaders_in(latest_term[0]), state.behaviour()
    fenced = flags is None or flags.has("fetch_carries_leader_epoch")
    told = promise.how in BY_CLIENTS or promise.replica in led
    if fenced or told or promise.span.leader_epoch is not None:
        return place
    while place < len(starts.terms) and {starts.terms[place].leader} == led:
        if not starts.terms[place].leads_on:
            break
        place += 1
    return place


def _last_that_may_have_it(
    starts: TermStarts, promise: Promise, latest_term: tuple[int, int]
) -> int:
    """The last time that the epoch's leader led in it and may have had the records: any, unless it
    led there again from below them, wrote nothing up to them, and by its own line then followed.

    Who answers for a record has it in its log: so it answered before.
    """
    leader_epoch, occurrence = latest_term
    if occurrence != ANY_OCCURRENCE or promise.span.leader_epoch != leader_epoch:
        return occurrence
    if promise.how not in BY_CLIENTS or len(starts.leaders_in(leader_epoch)) != 1:
        return occurrence
    place = starts.after(latest_term) - 1
    while place > 0 and _led_without(starts.terms[place], promise.span.first_offset):
        place -= 1
        occurrence = starts.terms[place].occurrence
    return occurrence


def _led_without(term: LeaderTerm, offset: int) -> bool:
    """Whether a leader led once more in its epoch, and had nothing at the offset all the while."""
    ends = (term.start_offset, term.end_log_end_offset)
    followed = term.ended == "followed" and term.end_is_certain
    return term.occurrence > 0 and followed and all(x is not None and x <= offset for x in ends)


def appender(starts: TermStarts, promise: Promise) -> int | None:
    """The leader that wrote the records: of their leader epoch. None where nothing names it."""
    led = starts.leaders_in(promise.span.leader_epoch)
    return led.pop() if len(led) == 1 else None


def led_on_after(
    state: State,
    missed: LeaderTerm,
    first: int,
    end: int,
    wrote: int | None = None,
    written_in: int | None = None,
    *,
    perhaps: bool = False,
) -> LeaderTerm | None:
    """The term in which a leader from before `missed` leads on, as if that had not been.

    It held [first, end), which the missed term lacked, and still does: had it followed, it would
    have cut it. wrote: the leader that appended it, where known: no other can have answered its
    producer. A leader that leads on in a higher epoch has not stopped leading. perhaps: or may have
    held them, as its line names no log end (before 1.0), and it wrote nothing at or below them.
    """
    start = term_start(state, missed)
    if start is None or start > first:
        return None
    terms = state.history.terms
    led_before = {t.leader for t in terms if t.order < missed.order} - {missed.leader}
    if wrote is not None:
        led_before &= {wrote}
    for term in terms:
        if (
            term.leads_on
            and term.order > missed.order
            and term.leader in led_before
            and _began_with(state, term, end, perhaps=perhaps)
            and not _cut_before(state, term, first, written_in)
            and not _began_below(state, missed, term, first, written_in)
        ):
            return term
    return None


def _began_with(state: State, term: LeaderTerm, end: int, *, perhaps: bool) -> bool:
    """Whether the leader's log reached the offset when the term began. perhaps: or may have."""
    if term.start_offset is not None:
        return term.start_offset >= end
    start = term_start(state, term)
    return perhaps and (start is None or start >= end)


def _began_below(
    state: State, missed: LeaderTerm, term: LeaderTerm, first: int, written_in: int | None
) -> bool:
    """Whether a leader had led after the missed term already, from the offset or below it, and not
    before the records were written: it had lost them, unseen."""
    if written_in is None:
        return False
    return any(
        t.leader == term.leader
        and missed.order < t.order < term.order
        and t.leader_epoch > written_in
        and t.start_offset is not None
        and t.start_offset <= first
        for t in state.history.terms
    )


def _cut_before(state: State, term: LeaderTerm, first: int, written_in: int | None) -> bool:
    """Whether a leader's log had been cut to the offset, or lost it, before it led in the term, and
    not before the record was written."""
    cuts = [(t.replica, t.to_offset, t.term_epoch) for t in state.history.truncations]
    cuts += [(s.replica, s.left_end_offset, s.leader_epoch) for s in state.history.storage_losses]
    return any(
        replica == term.leader
        and to_offset <= first
        and (leader_epoch is None or (written_in or 0) <= leader_epoch < term.leader_epoch)
        for replica, to_offset, leader_epoch in cuts
    )
