"""Why an absence that offsets show may be no broken promise: the promise itself is in question.

Each objection looks at one absence and gives a doubt, or None where it has nothing against it.
"""

from replication.protocol.ground.model import clipped, is_seen, same_record, touching
from replication.protocol.ground.topic_partition import (
    ANY_OCCURRENCE,
    LeaderTerm,
    Promise,
    State,
)
from replication.protocol.judgement.absence import Absence, Doubt
from replication.protocol.judgement.lost_record import Lost, lacks
from replication.protocol.judgement.reference import (
    all_logs_are_covered,
    log_is_covered,
    newest_leader_epoch,
    tail_is_known,
)
from replication.protocol.judgement.term_starts import UNSURE_KINDS, TermStarts
from replication.protocol.judgement.unseen_terms import cut_or_lost_since, unnamed_leader_epoch

BY_LEADER = ("acks_all", "checkpoint", "load", "start_line")
BY_HIGH_WATERMARK = ("checkpoint", "load", "start_line")


def objection(state: State, starts: TermStarts, absence: Absence) -> Doubt | None:
    """The first objection to an absence."""
    for objects in (
        removed_before_or_after,
        promised_by_zombie,
        answered_after_leading_again,
        foreign_to_its_leader,
        promised_later,
    ):
        doubt = objects(state, starts, absence)
        if doubt is not None:
            told = absence.promise.how == "acks_all"
            doubt.of_who_answered = told and objects in OF_WHO_ANSWERED
            return doubt
    return None


def promised_by_zombie(state: State, starts: TermStarts, absence: Absence) -> Doubt | None:
    """Whether the leader that promised was superseded by then: what it does alone commits nothing.

    Only an election beside the ISR leaves its leader free to commit without its successor; and only
    a leader that its own lines show alive may have gone on. One whose lines are missing is taken
    for stopped, as it has to be for such an election.
    """
    promise = absence.promise
    if promise.how not in BY_LEADER:
        return None
    for led in _terms_of(state, promise):
        doubt = _by_this_zombie(state, absence, led)
        if doubt is not None:
            return doubt
    return None


def _by_this_zombie(state: State, absence: Absence, led: LeaderTerm) -> Doubt | None:
    promise = absence.promise
    if _is_traced(state, led.leader):
        return None
    after = [t for t in state.history.terms if t.order > led.order and t.leader != led.leader]
    if not after:
        return _by_its_unseen_zombie(state, absence, led)
    if after[0].election_kind not in UNSURE_KINDS:
        return None
    successor = after[0]
    lived = _lived_on(state, led, successor.order)
    if lived is None or _needed_more(state, promise, successor):
        return None
    if _started_anew(state, led, successor):
        return None
    return _doubt(
        absence,
        f"broker {led.leader} {lived} when broker {successor.leader} was elected beside the ISR, "
        f"and nothing tells whether it promised this before",
        f"the lines of broker {led.leader} with kafka.cluster.Partition at TRACE",
    )


def _by_its_unseen_zombie(state: State, absence: Absence, led: LeaderTerm) -> Doubt | None:
    """The same of a successor of which only logs tell, by its epoch, and no controller."""
    newest = newest_leader_epoch(state)
    told = max(state.history.terms[-1].leader_epoch, state.registration.leader_epoch)
    lived = _lived_on(state, led, (newest, 0)) if newest > told else None
    if lived is None:
        return None
    return _doubt(
        absence,
        f"broker {led.leader} {lived}, and nothing tells how the leader of epoch {newest} was "
        "elected, and whether it promised this before",
        f"the lines of broker {led.leader} with kafka.cluster.Partition at TRACE",
    )


def _terms_of(state: State, promise: Promise) -> list[LeaderTerm]:
    """The last term by whose end the promise had been made; any, where nothing bounds that."""
    if promise.latest_term is None:
        return state.history.terms
    terms = [t for t in state.history.terms if t.order <= promise.latest_term]
    return terms[-1:] if terms and terms[-1].leader_epoch == promise.latest_term[0] else []


def _is_traced(state: State, replica: int) -> bool:
    return state.covered("replica_trace", replica)


def _lived_on(state: State, led: LeaderTerm, successor: tuple[int, int]) -> str | None:
    """How a leader may have led on by its own lines when its successor, of that order, was elected;
    None where it had stopped.

    KRaft ends a leader's epoch as it asks to stop: until it learns that, it writes on, and alone in
    the ISR its high watermark rises. ZooKeeper leaves such a leader in its place until it is gone.
    """
    own = [
        t
        for t in state.history.terms
        if t.leader == led.leader and led.order <= t.order < successor
    ]
    last = own[-1]
    if last.ended == "stopped":
        let_go = state.settings.controller != "zookeeper" and last.end_is_certain
        return "had asked for its clean stop, and may have led on for a moment," if let_go else None
    if last.ended is None and not (last.start_event_id and log_is_covered(state, led.leader)):
        return None
    return "lived on"


def _started_anew(state: State, led: LeaderTerm, successor: LeaderTerm) -> bool:
    """Whether the leader stopped and led once more before its successor's epoch: by the word that a
    controller has for a broker that starts. What it promised before its stop came before."""
    return led.ended == "stopped" and any(
        t.leader == led.leader and led.order < t.order < successor.order and t.start_event_id
        for t in state.history.terms
    )


def _needed_more(state: State, promise: Promise, successor: LeaderTerm) -> bool:
    """Whether acks=all needed more members than the ISR had at the end, so that it came before."""
    needed, isr = state.min_insync_replicas_in(successor), successor.isr_before
    return promise.how == "acks_all" and needed is not None and 0 < len(isr or ()) < needed


def answered_after_leading_again(
    state: State, starts: TermStarts, absence: Absence
) -> Doubt | None:
    """Whether the leader that wrote the records led on later, where its lines would tell and are
    missing: then it may have answered the producer after the term that lacked them."""
    if absence.promise.how != "acks_all" or absence.term is None:
        return None
    for wrote in sorted(_may_have_appended(state, starts, absence.promise)):
        if wrote == absence.term.leader or log_is_covered(state, wrote):
            continue
        doubt = _may_have_led_on(state, starts, absence, absence.term, wrote)
        if doubt is not None:
            return doubt
    return None


def _may_have_appended(state: State, starts: TermStarts, promise: Promise) -> set[int]:
    """Who may have written the records: of an epoch that nothing names, any replica."""
    made_in = promise.span.leader_epoch
    led = starts.leaders_in(made_in)
    if led or made_in is None:
        return led
    return set(state.replicas) | set(state.settings.assigned_replicas or ())


def _may_have_led_on(
    state: State, starts: TermStarts, absence: Absence, missed: LeaderTerm, wrote: int
) -> Doubt | None:
    for term in state.history.terms:
        if term.leader == wrote and term.order > missed.order:
            start = starts.of(term)
            if start is None or start >= absence.end_offset:
                return _doubt(
                    absence,
                    f"broker {wrote} led again in epoch {term.leader_epoch}, and nothing tells "
                    "whether it had led on",
                    f"the broker log of broker {wrote}",
                )
    if not _later_leaders_are_told(state, starts, missed):
        return _doubt(
            absence,
            f"nothing tells whether broker {wrote} led on after epoch {missed.leader_epoch}",
            f"the broker log of broker {wrote}",
        )
    return None


def _later_leaders_are_told(state: State, starts: TermStarts, missed: LeaderTerm) -> bool:
    """Whether it is known who led after a term, up to the newest leader epoch that anything names.

    Where neither the controller's history nor all lines are here, a last epoch may be unknown.
    """
    last = starts.terms[-1]
    if newest_leader_epoch(state) > last.leader_epoch:
        return False
    if unnamed_leader_epoch(state, starts, missed.leader_epoch) is not None:
        return False
    history = state.covered("controller_history")
    return history or last.recorded or all_logs_are_covered(state)


def foreign_to_its_leader(state: State, starts: TermStarts, absence: Absence) -> Doubt | None:
    """Whether a follower's high watermark lies over records of its own that its leader lacked.

    It learns a leader's high watermark before it has cut what that leader does not hold: only what
    was known under the lineage that holds a record counts for it. A leader that came back with less
    in its own epoch (ZooKeeper) is another lineage, of which no epoch makes it cut anything.
    """
    promise = absence.promise
    made_in = promise.span.leader_epoch
    if made_in is None:
        return _stands_otherwise(state, absence)
    if promise.latest_term is None:
        return None
    if promise.how not in BY_HIGH_WATERMARK and not _is_a_followers(starts, promise):
        return None
    for term in state.history.terms:
        if term.order < (made_in, 0) or term.leader == promise.replica:
            continue
        if term.order == (made_in, 0):
            foreign = _may_have_written_anew(state, term, absence)
        elif term.leader_epoch > promise.latest_term[0]:
            foreign = _holds_a_fork(state, term, absence)
            foreign = foreign or _may_tell_before_it_cuts(state, starts, term, absence)
        else:
            foreign = _lacked(state, starts, term, absence)
            foreign = foreign or _holds_another(state, starts, term, absence)
        if foreign:
            return _doubt(
                absence,
                f"replica {promise.replica} may have learned its high watermark from broker "
                f"{term.leader}, which took epoch {term.leader_epoch} without these records",
                f"the lines of broker {promise.replica} with kafka.cluster.Partition at TRACE",
            )
    return None


def _stands_otherwise(state: State, absence: Absence) -> Doubt | None:
    """The same of records without epochs, where the last leader may have told the mark and holds
    others there: a follower cut to its mark alone (before KIP-101), and keeps what stood below."""
    promise, terms = absence.promise, state.history.terms
    if promise.how not in BY_HIGH_WATERMARK or not terms or promise.replica is None:
        return None
    last, leader = terms[-1], state.replicas.get(terms[-1].leader)
    if last.leader == promise.replica or _is_traced(state, promise.replica):
        return None
    latest = promise.latest_term
    if latest is not None and latest[0] < last.leader_epoch:
        # Of a leader that it followed before it fetches on in an epoch of which it has not heard.
        others = state.replicas[promise.replica].leader != last.leader
        by_itself = latest[1] < ANY_OCCURRENCE
        if by_itself or (others and log_is_covered(state, promise.replica)):
            return None
    if leader is None or not any(
        same_record(held, promise.span) is False
        for held in touching(leader.log.spans, absence.first_offset, absence.end_offset)
    ):
        return None
    return _doubt(
        absence,
        f"replica {promise.replica} may have learned its high watermark from broker {last.leader}, "
        f"which leads epoch {last.leader_epoch} with other records there",
        f"the lines of broker {promise.replica} with kafka.cluster.Partition at TRACE",
    )


def _lacked(state: State, starts: TermStarts, term: LeaderTerm, absence: Absence) -> bool:
    """Whether a leader took over without some of the records: its log ended there, or had others.

    A longer log is no better log (KIP-279).
    """
    start = starts.of(term)
    if start is not None and start < absence.end_offset:
        return True
    promise = absence.promise
    return any(
        lacks(state, term, Lost(promise.span._replace(first_offset=offset), "committed", None))
        for offset in (absence.first_offset, absence.end_offset - 1)
    )


def _holds_another(state: State, starts: TermStarts, term: LeaderTerm, absence: Absence) -> bool:
    """Whether a leader of whose start no line tells holds another record there now, of an epoch
    before theirs: it may have had that one all the time."""
    replica, made_in = state.replicas.get(term.leader), absence.promise.span.leader_epoch
    if starts.of(term) is not None or log_is_covered(state, term.leader) or replica is None:
        return False
    held = touching(replica.log.spans, absence.first_offset, absence.end_offset)
    return any(
        span.first_offset < absence.end_offset
        and absence.first_offset < span.end_offset
        and span.leader_epoch is not None
        and span.leader_epoch < (made_in or 0)
        for span in held
    )


def _may_have_written_anew(state: State, term: LeaderTerm, absence: Absence) -> bool:
    """Whether the leader of the records' own epoch may have come back without them and written
    others there (ZooKeeper), where its lines, which would tell, are missing."""
    if state.settings.controller == "kraft" or log_is_covered(state, term.leader):
        return False
    return _has_others_of_the_epoch(state, term, absence)


def _holds_a_fork(state: State, term: LeaderTerm, absence: Absence) -> bool:
    """Whether a later leader holds other records of the very epoch there, which its leader had led
    twice (ZooKeeper): who follows cuts none of them, and may have, where its lines are missing."""
    promise = absence.promise
    if promise.replica is None or log_is_covered(state, promise.replica):
        return False
    return _has_others_of_the_epoch(state, term, absence)


def _may_tell_before_it_cuts(
    state: State, starts: TermStarts, term: LeaderTerm, absence: Absence
) -> bool:
    """Whether a leader after all that a replica's log names lacked the records, and may have told
    the mark to a follower whose lines are missing before that cut them (KAFKA-14704)."""
    promise, flags = absence.promise, state.behaviour()
    if promise.replica is None or log_is_covered(state, promise.replica) or flags is None:
        return False
    if flags.truncation != "truncate_on_fetch" or flags.has("truncates_before_high_watermark"):
        return False
    return _lacked(state, starts, term, absence) and not _cannot_have_told(state, term, absence)


def _cannot_have_told(state: State, term: LeaderTerm, absence: Absence) -> bool:
    """Whether a leader that has led on ever since has a log that ends at or below the records, and
    is not known to have lost any: its high watermark never came to them."""
    replica = state.replicas.get(term.leader)
    led_on = all(t.leader == term.leader for t in state.history.terms if t.order >= term.order)
    if replica is None or not led_on or not tail_is_known(state, replica):
        return False
    if cut_or_lost_since(state, term):
        return False
    return replica.log.log_end_offset <= absence.first_offset


def _has_others_of_the_epoch(state: State, term: LeaderTerm, absence: Absence) -> bool:
    promise, replica = absence.promise, state.replicas.get(term.leader)
    if replica is None:
        return False
    held = clipped(replica.log.spans, absence.first_offset, absence.end_offset)
    return any(
        span.leader_epoch == promise.span.leader_epoch and same_record(span, promise.span) is False
        for span in held
    )


def _is_a_followers(starts: TermStarts, promise: Promise) -> bool:
    """Whether a traced high watermark is a follower's, which from 2.8.0 to 3.4.0 takes its leader's
    before it cuts what that one lacks (KAFKA-14704)."""
    assert promise.latest_term is not None
    followed = promise.replica not in starts.leaders_in(promise.latest_term[0])
    return promise.how == "high_watermark" and followed


def promised_later(state: State, starts: TermStarts, absence: Absence) -> Doubt | None:
    """Whether a replica may have learned its high watermark after the term that lacked the records,
    which stand in the log that counts: the lines that would tell whom it followed are missing. What
    its copy has lost may have been of a later epoch: that is lost with it."""
    promise = absence.promise
    if promise.how not in BY_HIGH_WATERMARK or promise.replica is None:
        return None
    if log_is_covered(state, promise.replica):
        return None
    lost = promise.how == "checkpoint" and not is_seen(promise.span)
    if not lost and (absence.term is None or absence.final is True):
        return None
    return _doubt(
        absence,
        f"nothing tells in which epoch replica {promise.replica} had learned its high watermark",
        f"the broker log of broker {promise.replica}",
    )


def removed_before_or_after(state: State, starts: TermStarts, absence: Absence) -> Doubt | None:
    """Whether records at such offsets were removed lawfully, and nothing tells whether these."""
    promise = absence.promise
    removed = state.history.removed_below(None)
    if promise.latest_term is not None:
        removed = _perhaps_removed_below(state, promise)
    if absence.first_offset >= removed:
        return None
    return _doubt(
        absence,
        f"a leader's log began at {removed} at some time, and nothing tells whether these records "
        "were removed then or written later",
        "an acknowledgement log with payload ids",
    )


def _perhaps_removed_below(state: State, promise: Promise) -> int:
    """Up to where leaders removed records before a high watermark was last seen over them: when it
    came there, no file or line tells, but not before they were written."""
    if promise.how not in BY_HIGH_WATERMARK:
        return 0
    made_in = -1 if promise.span.leader_epoch is None else promise.span.leader_epoch
    return max((r.below for r in state.history.removals if r.leader_epoch >= made_in), default=0)


def _doubt(absence: Absence, reason: str, settled_by: str) -> Doubt:
    return Doubt(absence.first_offset, absence.end_offset, absence.promise, reason, settled_by)


# What is acknowledged by whomever, and gone, is lost; only whether it was committed is in question.
OF_WHO_ANSWERED = (promised_by_zombie, answered_after_leading_again)
