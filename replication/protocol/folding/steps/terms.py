"""Terms of leadership in the history: found or made, and how each one ends."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice, takewhile

from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import LeaderTerm, Replica, State, UncleanStart


def term_of(state: State, leader_epoch: int, leader: int, occurrence: int = 0) -> LeaderTerm:
    """The term of a leader in an epoch, a new one in its place where none is known."""
    terms, order = state.history.terms, (leader_epoch, occurrence, leader)
    place = bisect_left(terms, order, key=order_of)
    if place < len(terms) and order_of(terms[place]) == order:
        return terms[place]
    term = LeaderTerm(leader_epoch, leader, occurrence)
    terms.insert(place, term)
    del state.history.left_in_isr[place:]
    return term


def was_left_in_isr(state: State, leader: int, leader_epoch: int) -> bool:
    """Whether a member of the ISR owes its place to an unclean election that left the ISR as it
    was: such a leader is alone in its ISR, who else is recorded there may lack what it has.

    What each earlier term left so is noted: a partition may have had thousands of them."""
    terms, left = state.history.terms, state.history.left_in_isr
    earlier = bisect_left(terms, leader_epoch, key=lambda term: term.leader_epoch)
    for term in islice(terms, len(left), earlier):
        left.append(_left_by(term, left[-1] if left else frozenset()))
    return earlier > 0 and leader in left[earlier - 1]


def _left_by(term: LeaderTerm, before: frozenset[int]) -> frozenset[int]:
    if term.election_kind in ev.UNCLEAN_KINDS:
        return frozenset(term.isr or ()) - {term.leader}
    if term.isr is None or before.issubset(term.isr):
        return before
    return before.intersection(term.isr)  # Who else is in it came into the ISR since.


def note_recorded(state: State, term: LeaderTerm) -> None:
    """What a term left in the ISR has to be asked anew: its election was told once more."""
    place = bisect_left(state.history.terms, order_of(term), key=order_of)
    del state.history.left_in_isr[place:]


def end_term(state: State, replica: Replica, how: str) -> None:
    """Notes how the term in which a replica leads ends by its own lines; the first one counts."""
    if replica.role != "leader":
        return
    term = last_led(state, replica)
    if term is not None and term.ended is None:
        term.ended = how


def last_led(state: State, replica: Replica) -> LeaderTerm | None:
    """The term in which a replica led in the last epoch that it knows of."""
    if replica.leader_epoch is None:
        return None
    terms = state.history.terms
    order = (replica.leader_epoch, replica.term_occurrence, replica.replica)
    place = bisect_left(terms, order, key=order_of)
    found = place < len(terms) and order_of(terms[place]) == order
    return terms[place] if found else None


def lived_since_it_led(state: State, replica: Replica) -> bool:
    """Whether a broker was seen to start since it led last, and did more since than load its log:
    it may have followed, where the lines that would tell are missing."""
    led = last_led(state, replica)
    began = -1 if led is None else led.started_at
    # More than two say no more than two do.
    starts = islice(unclean_starts_since(state, replica, began), 2)
    count = len(list(starts)) + (replica.clean_start is True)
    return count > (1 if replica.just_started else 0)


def unclean_starts_since(state: State, replica: Replica, step: int) -> Iterator[UncleanStart]:
    """The newest first; they are kept in the order of the fold's steps."""
    since = takewhile(lambda start: start.at > step, reversed(state.history.unclean_starts))
    return (start for start in since if start.replica == replica.replica)


def order_of(term: LeaderTerm) -> tuple[int, int, int]:
    """The order in which the history keeps its terms."""
    return (term.leader_epoch, term.occurrence, term.leader)


def is_superseded(state: State, leader_epoch: int | None) -> bool:
    """Whether the controller has registered a later epoch by now."""
    return leader_epoch is not None and leader_epoch < state.registration.leader_epoch


def is_succeeded(state: State, leader_epoch: int) -> bool:
    """Whether a later epoch has begun by now, by the controller's word or by its leader's own."""
    terms = state.history.terms
    begun = terms[-1].leader_epoch if terms else leader_epoch
    return leader_epoch < begun or leader_epoch < state.registration.leader_epoch


def is_deposed(state: State, leader: Replica) -> bool:
    """Whether another leads a later epoch than this leader's by now, by the controller's word or by
    that one's own. What the very broker led later came after this, by the order of its own lines;
    followers of it may have been read first. That nobody leads deposes nobody: what it commits
    until another is elected, the members of the ISR that the controller knows have."""
    own, registration = leader.leader_epoch, state.registration
    if own is None or not is_succeeded(state, own):
        return False
    later = takewhile(lambda term: term.leader_epoch > own, reversed(state.history.terms))
    by_another = registration.leader not in (None, leader.replica)
    by_the_controller = registration.leader_epoch > own and by_another
    return by_the_controller or any(term.leader != leader.replica for term in later)
