"""What the members of an ISR beside which a leader was elected had of a record that is gone."""

from replication.protocol.ground.model import clipped, same_record
from replication.protocol.ground.topic_partition import LeaderTerm, State
from replication.protocol.judgement.lost_record import (
    SLACK,
    Lost,
    cuts,
    has_since,
    is_after,
    lacks,
    lacks_nothing_by_rule,
    never_had,
    written_at,
)
from replication.protocol.judgement.reference import log_is_covered
from replication.protocol.judgement.term_starts import UNSURE_KINDS
from replication.protocol.judgement.unseen_terms import never_began, truncates_to_high_watermark


def has_led_with(state: State, member: int, term: LeaderTerm, lost: Lost) -> bool:
    """Whether a member last led with the record before that term, or wrote it there."""
    led = _last_led(state, member, term)
    return led is not None and (_led_with(state, led, lost) or has_since(state, led, lost))


def _led_with(state: State, led: LeaderTerm, lost: Lost) -> bool:
    return led.leader_epoch == lost.written_in or lacks(state, led, lost) is False


def _led_last_by_rule(state: State, led: LeaderTerm, term: LeaderTerm, lost: Lost) -> bool:
    """Whether nobody led between two terms, and the leader of the first lacked nothing that had
    been committed: a record of which nothing tells who wrote it, it wrote or began with."""
    if lost.tier == "acknowledged_by_leader" or not lacks_nothing_by_rule(state, led, lost):
        return False
    between = [t for t in state.history.terms if led.order < t.order < term.order]
    return all(never_began(state, t) for t in between)


def kept_it(state: State, member: int, term: LeaderTerm, lost: Lost) -> bool:
    """Whether a member had the record when another was elected: its log has it still, or had when
    it was cut later, and nobody led since who may have had it, too; or it had last led with it, and
    its lines tell of no loss."""
    if has_led_with(state, member, term, lost) and log_is_covered(state, member):
        return True
    later = [t for t in state.history.terms if t.order >= term.order and t.leader != member]
    if not log_is_covered(state, member) and not all(lacks(state, t, lost) for t in later):
        return False  # It may have fetched it again.
    replica = state.replicas.get(member)
    held = list(replica.log.spans) if replica is not None and state.log_is_known(replica) else []
    for cut in state.history.truncations:
        if cut.replica == member and (cut.term_epoch or 0) >= term.leader_epoch:
            held += cut.dropped
    there = clipped(held, lost.offset, lost.offset + 1)
    return any(same_record(span, lost.record) is True for span in there)


def _last_led(state: State, member: int, term: LeaderTerm) -> LeaderTerm | None:
    led = [
        t
        for t in state.history.terms
        if t.order < term.order and t.leader == member and not never_began(state, t)
    ]
    return led[-1] if led else None


def deposed_cleanly(state: State, lost: Lost, term: LeaderTerm, waited_for: set[int]) -> bool:
    """Whether the members of the ISR, one of them elected after the record's leader, never had it:
    one of them would lead without it, had nobody been elected beside them."""
    wrote = {t.leader for t in state.history.terms if t.leader_epoch == lost.written_in}
    after = [
        t
        for t in state.history.terms
        if lost.written_in is not None
        and lost.written_in < t.leader_epoch < term.leader_epoch
        and t.leader in waited_for - wrote
        and t.election_kind not in UNSURE_KINDS
    ]
    return bool(after) and all(
        never_had(state, member, lost)
        or any(t.leader == member and _told_after(t, lost) for t in after)
        for member in waited_for
    )


def _told_after(term: LeaderTerm, lost: Lost) -> bool:
    """Whether the record was told of after that election, by more than clocks differ."""
    if term.observed_at is None or lost.told_at is None:
        return False
    return term.observed_at + SLACK < lost.told_at


def may_have_come_back_without(state: State, member: int, term: LeaderTerm, lost: Lost) -> bool:
    """Whether a member that led last with the record may have come back without from a stop, before
    another was elected beside it (ZooKeeper: in its own epoch) or after that: then it is its disk
    that lost it. Its lines would tell."""
    if log_is_covered(state, member) or kept_it(state, member, term, lost):
        return False
    if not any(state.told_of("broker_log", r) for r in state.ever_assigned | state.replicas.keys()):
        return False  # Of directories and the controller's word alone, what these tell is told.
    since = (written_at(lost) or (0, 0))[0]
    return any(
        t.leader == member and since <= t.leader_epoch and t.order < term.order
        for t in state.history.terms
    )


def may_have_led_without(state: State, term: LeaderTerm | None, offset: int) -> bool:
    """Whether a member of the ISR may have led without what was committed, before KIP-101: it had
    cut it at its own high watermark, or kept another record there.

    Nobody had before a leader took over with less than the one before it: from beside the ISR, or
    after a cut or a crash. term: the last one that counts; None: all do.
    """
    if not truncates_to_high_watermark(state):
        return False
    terms = [
        t
        for t in state.history.terms
        if (term is None or t.order <= term.order) and not never_began(state, t)
    ]
    short = [(s.replica, s.at) for s in state.history.unclean_starts if s.log_end_offset <= offset]
    first = state.history.terms[0].leader
    return any(
        (
            led.leader_epoch > 0
            and led.leader != before
            and led.election_kind in UNSURE_KINDS
            and state.unclean_permitted_in(led) is not False
        )
        or (led.leader != first and not log_is_covered(state, led.leader))
        or any(who == led.leader and at < led.started_at for who, at in short)
        or any(not is_after(cut, led) for cut in cuts(state, led.leader, offset))
        for before, led in zip([None, *(t.leader for t in terms)], terms, strict=False)
    )


def came_back_without(state: State, member: int, term: LeaderTerm, lost: Lost) -> bool:
    """Whether a member that had last led with the record is next seen back from a stop that was not
    clean with so little, and no cut tells why: its disk lost it, whoever was elected meanwhile. Of
    cuts only its lines tell. Who came by it only as a follower may have been back before that; who
    was seen with it after the stop that ended its term lost it in a later life, if at all."""
    led = _last_led(state, member, term) if log_is_covered(state, member) else None
    if led is None or not led.start_event_id:
        return False
    if not _led_with(state, led, lost) and not _led_last_by_rule(state, led, term, lost):
        return False
    if (
        led.ended == "stopped"
        and led.end_is_certain
        and (led.end_log_end_offset or 0) > lost.offset
    ):
        return False
    back = next(
        (
            s
            for s in state.history.unclean_starts
            if s.replica == member and s.at > led.started_at and s.told
        ),
        None,
    )
    if back is None or back.log_end_offset > lost.offset:
        return False
    return not any(led.started_at < cut.at < back.at for cut in cuts(state, member, lost.offset))
