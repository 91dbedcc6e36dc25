"""One record that is gone: which leaders lacked it, and by which steps a log can have lost it."""

import math
from dataclasses import dataclass
from itertools import pairwise

from replication.protocol.ground.model import Span, clipped, same_record
from replication.protocol.ground.topic_partition import LeaderTerm, State, StorageLoss, Truncation
from replication.protocol.judgement.reference import log_is_covered
from replication.protocol.judgement.same_record import keeps_committed
from replication.protocol.judgement.term_starts import UNSURE_KINDS, term_start
from replication.protocol.judgement.unseen_terms import (
    kept_since_in_sync,
    known_end,
    may_have_fetched_before,
    may_have_lost_storage_in_isr,
    truncates_to_high_watermark,
)

# Clocks of a producer and a broker that differ by more than this say nothing of who was first, ms.
SLACK = 1_000
# To its high watermark a follower cuts by rule, or for want of an answer (KAFKA-7415).
BY_EPOCH = ("leader_epoch", "diverging_epoch")


@dataclass(frozen=True, slots=True)
class Lost:
    """The record at one offset that is gone. written_in: its leader epoch, None if nobody saw it.

    not_after: the order of the term by whose end it had been promised, None if not known. told_at:
    when its producer was told, by its clock. answered_by: who wrote it, as far as that is who
    answered (acks=1).
    """

    record: Span
    tier: str
    not_after: tuple[int, int] | None
    told_at: int | None = None
    answered_by: int | None = None

    @property
    def offset(self) -> int:
        """Where it stood."""
        return self.record.first_offset

    @property
    def written_in(self) -> int | None:
        """Its leader epoch."""
        return self.record.leader_epoch


def written_at(lost: Lost) -> tuple[int, int] | None:
    """The order of the term in which it was written, as far as that is known."""
    if lost.written_in is None:
        return lost.not_after
    return (lost.written_in, 0)


def lacks(state: State, term: LeaderTerm, lost: Lost) -> bool | None:
    """Whether the leader of a term took over without the record; None where nothing tells.

    Its log ended at or below the offset, or it held another record there: a longer log is no
    better log (KIP-279).
    """
    start = term_start(state, term)
    if start is None:
        if _was_out_of_range(state, term, lost):
            return True
        again = _next_start(state, term)
        return None if again is None else lacks(state, again, lost)
    if start <= lost.offset:
        if term.occurrence and term.leader_epoch == lost.written_in:
            # The record may have been written after the restart.
            if _had_not_reached(state, term, lost.offset) or _had_another(state, term, lost):
                return False
            if _has_then(state, term, lost):
                return False
            return taken_from(state, lost, term.leader, term) is not None or None
        return True
    if lost.written_in is not None and _slept_through(state, term, lost.written_in):
        return True
    if _joined_without_it(state, term, lost):
        return True
    if _wrote_and_kept(state, term, lost) or (
        lost.written_in is None and _alone_so_far(state, term)
    ):
        return False
    held = _held_by(state, term, lost.offset)
    if held is None:
        return True if _followed_without_it(state, term, lost) else None
    same = same_record(held, lost.record)
    return None if same is None else not same


def _was_out_of_range(state: State, term: LeaderTerm, lost: Lost) -> bool:
    """Whether a follower found the leader's log to end at or below a record of an earlier term, and
    the leader had not come back short since it began: it lacked the record from the start."""
    earlier = lost.written_in is not None and lost.written_in < term.leader_epoch
    if not earlier or term.occurrence or not log_is_covered(state, term.leader):
        return False
    history = state.history
    back = [s.at for s in history.unclean_starts if s.replica == term.leader]
    back += [s.at for s in history.storage_losses if s.replica == term.leader]
    return any(
        cut.reason == "out_of_range"
        and cut.term_epoch == term.leader_epoch
        and cut.to_offset <= lost.offset < (cut.from_offset or 0)
        and not any(term.started_at <= at <= cut.at for at in back)
        for cut in history.truncations
    )


def _had_not_reached(state: State, again: LeaderTerm, offset: int) -> bool:
    """Whether a leader is known not to have written the offset in its epoch before it restarted."""
    before = [
        t
        for t in state.history.terms
        if t.leader_epoch == again.leader_epoch and t.occurrence < again.occurrence
    ]
    return bool(before) and all(
        t.end_is_certain and t.end_log_end_offset is not None and t.end_log_end_offset <= offset
        for t in before
    )


def _had_another(state: State, again: LeaderTerm, lost: Lost) -> bool:
    """Whether what a leader lost there with its storage before it restarted in its epoch is known,
    and is another record: the lost one was written after."""
    return any(
        loss.replica == again.leader
        and loss.leader_epoch == again.leader_epoch
        and not is_after(loss, again)
        and any(
            same_record(held, lost.record) is False
            for held in clipped(loss.spans, lost.offset, lost.offset + 1)
        )
        for loss in state.history.storage_losses
    )


def _has_then(state: State, term: LeaderTerm, lost: Lost) -> bool:
    """Whether the very record stands in a leader's log that began below it: it wrote it since."""
    held = _held_by(state, term, lost.offset)
    return held is not None and same_record(held, lost.record) is True


def _next_start(state: State, term: LeaderTerm) -> LeaderTerm | None:
    """Where the leader of a term whose start was not seen is next seen to lead: its log was the
    same then, if nobody led and it lost nothing in between."""
    later = [t for t in state.history.terms if t.order > term.order]
    again = later[0] if later else None
    if again is None or again.leader != term.leader or again.start_offset is None:
        return None
    cuts: list[Truncation | StorageLoss] = [*state.history.truncations]
    for cut in [*cuts, *state.history.storage_losses]:
        leader_epoch = _epoch_of(cut)
        if cut.replica == term.leader and (leader_epoch or 0) >= term.leader_epoch:
            return None
    return again


def _slept_through(state: State, term: LeaderTerm, leader_epoch: int) -> bool:
    """Whether the leader led before the epoch and leads on after it, without having followed."""
    if not term.leads_on or term.leader_epoch <= leader_epoch:
        return False
    before = [t for t in state.history.terms if t.leader == term.leader and t.order < term.order]
    return bool(before) and before[-1].leader_epoch < leader_epoch


def _wrote_and_kept(state: State, term: LeaderTerm, lost: Lost) -> bool:
    """Whether the leader wrote the record itself and lost nothing there before the term."""
    wrote = any(
        t.leader == term.leader and t.leader_epoch == lost.written_in for t in state.history.terms
    )
    if not wrote or _led_short_of(state, term, lost) or _may_have_followed(state, term, lost):
        return False
    steps = cuts(state, term.leader, lost.offset)
    return not any(not is_after(c, term) and is_of(state, c, lost) for c in steps)


def _may_have_followed(state: State, term: LeaderTerm, lost: Lost) -> bool:
    """Whether another leader had led since the record was written, and what the term's leader did
    meanwhile not all of its lines tell."""
    if log_is_covered(state, term.leader):
        return False
    return any(
        t.leader != term.leader and (lost.written_in or 0) < t.leader_epoch < term.leader_epoch
        for t in state.history.terms
    )


def _joined_without_it(state: State, term: LeaderTerm, lost: Lost) -> bool:
    """Whether the leader was taken into the ISR of one that lacked the record, and elected from
    there: where truncation goes by epochs it holds what that one held."""
    before = [t for t in state.history.terms if t.order < term.order]
    if not before or lost.written_in is None or not keeps_committed(state):
        return False
    led = before[-1]
    return (
        lost.written_in < led.leader_epoch
        and term.election_kind not in UNSURE_KINDS
        and led.isr is not None
        and term.leader not in led.isr
        and term.leader in (term.isr_before or ())
        and lacks(state, led, lost) is True
    )


def _led_short_of(state: State, term: LeaderTerm, lost: Lost) -> bool:
    """Whether the leader had begun to lead at or below the record since that was written: its disk
    lost it, though nobody saw up to where its log had reached."""
    led = [t for t in state.history.terms if t.leader == term.leader and t.order <= term.order]
    starts = [term_start(state, t) for t in led if t.leader_epoch > (lost.written_in or 0)]
    return any(start is not None and start <= lost.offset for start in starts)


def _followed_without_it(state: State, term: LeaderTerm, lost: Lost) -> bool:
    """Whether the leader had cut its log there on the word of a leader that lacked the record, and
    nobody else has led since who may have had it: what stands there now is another."""
    steps = [c for c in cuts(state, term.leader, lost.offset) if not is_after(c, term)]
    last = steps[-1] if steps else None
    if not isinstance(last, Truncation) or last.term_epoch is None or lost.written_in is None:
        return False
    led = [
        t
        for t in state.history.terms
        if (last.term_epoch, 0) <= t.order < term.order and t.leader != term.leader
    ]
    return (
        lost.written_in < last.term_epoch
        and bool(led)
        and led[0].leader_epoch == last.term_epoch
        and all(lacks(state, t, lost) for t in led)
    )


def _alone_so_far(state: State, term: LeaderTerm) -> bool:
    """Whether nobody else had led by then: what its longer log holds, it wrote itself."""
    return {t.leader for t in state.history.terms if t.order <= term.order} == {term.leader}


def _held_by(state: State, term: LeaderTerm, offset: int) -> Span | None:
    """What stood at the offset in the leader's log when the term began.

    What it lost first after that, else what stands there still.
    """
    replica = state.replicas.get(term.leader)
    if replica is None:
        return None
    later = [c for c in cuts(state, term.leader, offset) if is_after(c, term)]
    if later:
        first = min(later, key=lambda c: c.at)
        spans = first.dropped if isinstance(first, Truncation) else first.spans
    elif state.log_is_known(replica):
        spans = replica.log.spans
    else:
        return None
    held = next(iter(clipped(spans, offset, offset + 1)), None)
    if held is not None and (held.leader_epoch or 0) > term.leader_epoch:
        return None
    return held


def has_since(state: State, term: LeaderTerm, lost: Lost) -> bool:
    """Whether the leader of a term holds the very record now, and was not cut there since."""
    replica = state.replicas.get(term.leader)
    if replica is None or not state.log_is_known(replica):
        return False
    held = next(iter(clipped(replica.log.spans, lost.offset, lost.offset + 1)), None)
    if held is None or same_record(held, lost.record) is not True:
        return False
    return not any(is_after(c, term) for c in cuts(state, term.leader, lost.offset))


def has_by_rule(state: State, term: LeaderTerm, lost: Lost) -> bool:
    """Whether a leader began with the record, which had been committed: it came from the ISR, which
    has it by the release's rules or by the leader's own lines. No log has to show it."""
    by_then = lost.not_after is not None and lost.not_after < term.order
    if lost.tier == "acknowledged_by_leader" or not by_then:
        return False
    start = term_start(state, term)
    # Where no line tells its start, nor do they tell that it kept what it had.
    short = not _kept_by_lines(state, term) if start is None else start <= lost.offset
    return not short and lacks_nothing_by_rule(state, term, lost)


def _kept_by_lines(state: State, term: LeaderTerm) -> bool:
    return truncates_to_high_watermark(state) and kept_since_in_sync(state, term)


def lacks_nothing_by_rule(state: State, term: LeaderTerm, lost: Lost) -> bool:
    """Whether a leader from the ISR began with all that had been committed up to the record, by the
    release's rules or by its own lines."""
    if term.election_kind in UNSURE_KINDS:
        return False
    if not keeps_committed(state) and not _kept_by_lines(state, term):
        return False
    led = [t for t in state.history.terms if t.order < term.order]
    missed_epoch = any(t.leads_on and t.leader != before.leader for before, t in pairwise(led))
    if missed_epoch or may_have_lost_storage_in_isr(state, term, lost.offset + 1):
        return False
    # One elected beside the ISR made it anew, of those who have what it had; nobody asks of one in
    # whose reign the record may have been written (no leader epoch is below 0).
    since = [t for t in led if (0, 0) <= (lost.not_after or (-1, 0)) < t.order]
    return all(t.election_kind not in UNSURE_KINDS or lacks(state, t, lost) is False for t in since)


def never_had(state: State, number: int, lost: Lost) -> bool:
    """Whether a replica never had the record: it holds another or none there, and was never cut
    there, by a trace of its steps, or by all its lines where it never came back from a crash."""
    replica = state.replicas.get(number)
    if replica is None or not state.log_is_known(replica):
        return False
    crashed = any(s.replica == number for s in state.history.unclean_starts)
    if not state.is_traced(number) and (crashed or not log_is_covered(state, number)):
        return False
    held = clipped(replica.log.spans, lost.offset, lost.offset + 1)
    if any(same_record(span, lost.record) is not False for span in held):
        return False
    return not any(is_of(state, cut, lost) for cut in cuts(state, number, lost.offset))


def cuts(state: State, replica: int, offset: int) -> list[Truncation | StorageLoss]:
    """The steps by which the replica's log lost what stood at the offset, in its own order."""
    found: list[Truncation | StorageLoss] = [
        t
        for t in state.history.truncations
        if t.replica == replica
        and t.to_offset <= offset
        and offset < (known_end(state, t) or math.inf)
    ]
    found += [
        s
        for s in state.history.storage_losses
        if s.replica == replica and s.left_end_offset <= offset < s.had_end_offset
    ]
    return sorted(found, key=lambda c: c.at)


def _epoch_of(cut: Truncation | StorageLoss) -> int | None:
    """The leader epoch that the replica knew when its log got shorter."""
    return cut.term_epoch if isinstance(cut, Truncation) else cut.leader_epoch


def is_after(cut: Truncation | StorageLoss, term: LeaderTerm) -> bool:
    """Whether the leader of a term lost records only after it had begun to lead."""
    if term.start_event_id:
        return cut.at > term.started_at
    leader_epoch = _epoch_of(cut)
    return leader_epoch is not None and leader_epoch > term.leader_epoch


def is_of(state: State, cut: Truncation | StorageLoss, lost: Lost) -> bool:
    """Whether a cut can have taken this very record. Where epochs do not tell which was first, for
    the record's is not known or is the cut's as well, the clocks do."""
    leader_epoch = _epoch_of(cut)
    untold = lost.written_in is None or lost.written_in == leader_epoch
    made = cut.observed_at if isinstance(cut, Truncation) and untold else None
    if made is not None and lost.told_at is not None and made + SLACK < lost.told_at:
        return False
    if lost.written_in is not None and leader_epoch is not None and leader_epoch < lost.written_in:
        return False
    first = isinstance(cut, Truncation) and cut.before_fetching
    if first and leader_epoch == lost.written_in and not may_have_fetched_before(state, cut):
        return False  # It is of the very epoch.
    spans = cut.dropped if isinstance(cut, Truncation) else cut.spans
    held = next(iter(clipped(spans, lost.offset, lost.offset + 1)), None)
    return held is None or same_record(held, lost.record) is not False


def taken_from(
    state: State, lost: Lost, replica: int, term: LeaderTerm | None
) -> Truncation | StorageLoss | None:
    """The last step, before it led, by which a replica lost the record that it had.

    A cut on the word of a leader that lacks the record itself is what the rules want; that leader
    is to blame.
    """
    steps = [c for c in cuts(state, replica, lost.offset) if term is None or not is_after(c, term)]
    if not steps or not is_of(state, steps[-1], lost) or _kept_its_epoch(state, steps[-1], lost):
        return None
    last = steps[-1]
    if isinstance(last, StorageLoss):
        return last
    followed = next((t for t in state.history.terms if t.leader_epoch == last.term_epoch), None)
    lacking = None if followed is None else lacks(state, followed, lost)
    written = written_at(lost)
    if followed is None or written is None:
        lacking = None
    elif followed.leader_epoch <= written[0]:
        # By whose end it had been promised, that leader has had it.
        earlier = lost.written_in is None and followed.leader_epoch < written[0]
        lacking = earlier and _never_reached(state, followed, lost.offset)
    if lacking or (lacking is None and last.reason in BY_EPOCH):
        return None
    return last


def may_be_anothers(state: State, lost: Lost, cut: Truncation) -> bool:
    """Whether the leader on whose word a log was cut may have lacked the record itself: nothing
    tells how it began, for lines of its broker may be missing."""
    followed = next((t for t in state.history.terms if t.leader_epoch == cut.term_epoch), None)
    if followed is None:
        return not log_is_covered(state, cut.replica)
    if cut.reason == "out_of_range" and lost.written_in is None:
        # It is not in the leader's log; that was before or after it was written there.
        return lacks(state, followed, lost) is not False
    # What is out of range is not in the leader's log, whoever wrote it.
    wrote = lost.written_in is not None and followed.leader_epoch <= lost.written_in
    if wrote and cut.reason != "out_of_range":
        return False
    return not log_is_covered(state, followed.leader) and lacks(state, followed, lost) is not False


def may_be_written_since(state: State, lost: Lost, cut: Truncation) -> bool:
    """Whether a record that names no epoch may be of the leader on whose word a log was cut, which
    wrote it there only then."""
    if lost.written_in is not None or lost.not_after is None or cut.term_epoch is None:
        return False
    return cut.term_epoch <= lost.not_after[0] and any(
        (term_start(state, t) or 0) <= lost.offset
        for t in state.history.terms
        if t.leader_epoch == cut.term_epoch
    )


def known_to_have_had(state: State, lost: Lost, cut: Truncation) -> bool:
    """Whether a replica had the record that its log was cut below: a line tells from where, or a
    copy shows it; it wrote the record, or had to have it, since more than its leader was promised.
    """
    if lost.tier != "acknowledged_by_leader" or lost.offset < (cut.from_offset or 0):
        return True
    wrote = {t.leader for t in state.history.terms if t.leader_epoch == lost.written_in}
    shown = clipped(cut.dropped, lost.offset, lost.offset + 1)
    return wrote == {cut.replica} or any(same_record(s, lost.record) is not False for s in shown)


def may_have_taken_another(state: State, lost: Lost, loss: StorageLoss) -> bool:
    """Whether a disk may have lost another record there, that clients had been told of as well: of
    what only its leader was promised, nothing tells that the replica had it."""
    if lost.tier != "acknowledged_by_leader" or clipped(loss.spans, lost.offset, lost.offset + 1):
        return False
    told = state.history.promised_in("acknowledgements", lost.offset, lost.offset + 1)
    # Beside its own acknowledgement one that names no record is another's.
    others = [p.span for p in told if same_record(p.span, lost.record) is None]
    if not any(same_record(p.span, lost.record) for p in told):
        others = []
    committed = state.history.promised_in("commitments", lost.offset, lost.offset + 1)
    others += [p.span for p in (*told, *committed) if same_record(p.span, lost.record) is False]
    return any(
        loss.leader_epoch is None or (span.leader_epoch or 0) <= loss.leader_epoch
        for span in others
    )


def _kept_its_epoch(state: State, cut: Truncation | StorageLoss, lost: Lost) -> bool:
    """Whether a cut by epochs was made in the record's own epoch: of what its leader wrote in it
    such a follower cuts nothing, unless the leader came back in its epoch with less (ZooKeeper)."""
    if not isinstance(cut, Truncation) or cut.reason not in BY_EPOCH:
        return False
    came_back = any(t.occurrence and t.leader_epoch == lost.written_in for t in state.history.terms)
    return lost.written_in is not None and cut.term_epoch == lost.written_in and not came_back


def _never_reached(state: State, term: LeaderTerm, offset: int) -> bool:
    """Whether the leader's log ended at or below the offset at both ends of its term."""
    start, end = term_start(state, term), term.end_log_end_offset
    return start is not None and end is not None and max(start, end) <= offset
