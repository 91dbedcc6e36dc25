"""Whether a leader whose start nobody saw, or of which nothing tells, may have lacked records."""

from collections.abc import Sequence

from replication.protocol.ground.model import Span, is_seen, uncovered
from replication.protocol.ground.topic_partition import (
    LeaderTerm,
    Promise,
    State,
    StorageLoss,
    Truncation,
)
from replication.protocol.judgement.absence import Doubt
from replication.protocol.judgement.earlier_logs import held_then, stands_all
from replication.protocol.judgement.lacking_terms import appender, led_on_after
from replication.protocol.judgement.reference import (
    Reference,
    all_logs_are_covered,
    log_is_covered,
    newest_leader_epoch,
)
from replication.protocol.judgement.term_starts import UNSURE_KINDS, TermStarts, tells_of_before

ANY_OCCURRENCE = 1 << 62
# Reasons for cuts that the answer to a follower's fetch gives.
BY_ANSWER = ("diverging_epoch", "out_of_range")
# High watermarks that some line or file tells, of whatever moment before it.
BY_HIGH_WATERMARK = ("checkpoint", "load", "start_line")


def may_have_lacked(state: State, ref: Reference, promise: Promise) -> list[Doubt]:
    """That a later leader of whose start nothing tells may have lacked the records."""
    first, end = promise.span.first_offset, promise.span.end_offset
    if ref.replica is not None:
        first = max(first, ref.replica.log.log_start_offset)
    term = first_in_doubt(state, ref, promise)
    if term is None or first >= end:
        return []
    reason = f"nothing tells whether broker {term.leader} held it when it took epoch "
    settled_by = f"the broker log of broker {term.leader}"
    return [Doubt(first, end, promise, f"{reason}{term.leader_epoch}", settled_by)]


def lacked_unseen(state: State, ref: Reference, promise: Promise) -> list[Doubt]:
    """That the log which counts holds the records, but a leader between may have lacked them."""
    first, end = promise.span.first_offset, promise.span.end_offset
    if ref.replica is not None:
        first = max(first, ref.replica.log.log_start_offset)
    if promise.latest_term is None or first >= end:
        return []
    may_have_lacked_it = may_have_lacked(state, ref, promise)
    if may_have_lacked_it:
        return may_have_lacked_it
    lacking = _lacked_before_promised(state, ref.starts, promise)
    if lacking is not None:
        return [
            Doubt(
                first,
                end,
                promise,
                f"broker {lacking.leader} led epoch {lacking.leader_epoch} without it, and nothing "
                "tells whether it had been committed before",
                "an acknowledgement log of the producers",
            )
        ]
    beside = _led_beside_who_answered(state, ref.starts, promise)
    if beside is not None:
        return [
            Doubt(
                first,
                end,
                promise,
                f"broker {beside.leader} was elected beside the ISR in epoch {beside.leader_epoch} "
                "and led without it, and nothing tells whether it was answered for before the one "
                "that wrote it led on",
                f"the lines of broker {promise.replica or 'that wrote it'} with "
                "kafka.cluster.Partition at TRACE",
            )
        ]
    cut = _cut_below(state, ref, promise)
    if cut is not None:
        return [
            Doubt(
                max(first, cut.to_offset),
                end,
                promise,
                f"replica {promise.replica} then cut its log to {cut.to_offset}, below its high "
                "watermark, on the word of a leader: that one may have lacked what it cut",
                f"the log directory of broker {promise.replica} as it was before",
            )
        ]
    missed = unnamed_leader_epoch(state, ref.starts, promise.latest_term[0])
    if missed is None:
        return []
    return [
        Doubt(
            first,
            end,
            promise,
            f"nothing tells who led in epoch {missed}, and whether it held them",
            "the controller's history (metadata log or state-change.log)",
        )
    ]


def _led_beside_who_answered(
    state: State, starts: TermStarts, promise: Promise
) -> LeaderTerm | None:
    """A leader elected beside the ISR that led without records which who wrote them leads on with:
    alone in its ISR, that one may have answered for them at acks=all before, or only since."""
    assert promise.latest_term is not None
    first, end, made_in, _ = promise.span
    if promise.how != "acks_all":
        return None
    wrote = appender(starts, promise)
    for place in range(starts.after(promise.latest_term), len(starts.terms)):
        term, start = starts.terms[place], starts.starts[place]
        if start is None or start >= end or term.election_kind not in UNSURE_KINDS:
            continue
        if led_on_after(state, term, max(start, first), end, wrote, made_in, perhaps=True):
            return term
    return None


def _cut_below(state: State, ref: Reference, promise: Promise) -> Truncation | None:
    """The cut of a replica below the high watermark that its own line or file had told, as its
    leader had other records or none there: what it cut had been committed. Not where what it cut is
    seen to be what stands in the log that counts."""
    if promise.how not in BY_HIGH_WATERMARK or is_seen(promise.span):
        return None
    for cut in state.history.truncations:
        if cut.replica != promise.replica or cut.at <= promise.at:
            continue
        first = max(cut.to_offset, promise.span.first_offset)
        end = min(promise.span.end_offset, known_end(state, cut) or promise.span.end_offset)
        if first < end and not stands_all(cut.dropped, first, end, ref.spans):
            return cut
    return None


def _lacked_before_promised(
    state: State, starts: TermStarts, promise: Promise
) -> LeaderTerm | None:
    """A leader between the one that wrote the records and the last by whose end a high watermark
    may have reached them, that began without them, though they may have been committed then.

    Not one from the ISR, which has what is committed; and not where who wrote them led on after.
    Who wrote them may be that one: it led once more in its epoch, from below them."""
    latest_term, made_in = promise.latest_term, promise.span.leader_epoch
    if made_in is None or latest_term is None:
        return None
    wrote, end = appender(starts, promise), promise.span.end_offset
    for term, start in zip(starts.terms, starts.starts, strict=True):
        if term.leader_epoch == made_in and _led_again_below(
            state, starts.terms, promise, term, end
        ):
            return term
        if promise.how not in BY_HIGH_WATERMARK:
            continue
        between = made_in < term.leader_epoch and term.order <= latest_term
        if between and start is not None and start < end and _may_lack(state, term, end):
            first = max(start, promise.span.first_offset)
            if not led_on_after(state, term, first, end, wrote, made_in):
                return term
    return None


def _led_again_below(
    state: State, terms: Sequence[LeaderTerm], promise: Promise, term: LeaderTerm, end: int
) -> bool:
    """Whether a leader led once more in its epoch without what it had written there before: its log
    began below the end, and neither line nor copy tells that it came as far then, or since then."""
    if not term.occurrence or term.start_offset is None or term.start_offset >= end:
        return False
    if promise.latest_term is not None and term.order > promise.latest_term:
        return False
    since = [
        (t.start_offset or 0, _came_to(state, t))
        for t in terms
        if t.leader_epoch == term.leader_epoch and t.occurrence >= term.occurrence
    ]
    written = [Span(start, came_to, None, None) for start, came_to in sorted(since)]
    return bool(uncovered(max(term.start_offset, promise.span.first_offset), end, written))


def _came_to(state: State, term: LeaderTerm) -> int:
    """How far a leader's log is known to have come in its term: one that leads still, by now."""
    if term.end_log_end_offset is not None or term.ended is not None:
        return term.end_log_end_offset or 0
    replica = state.replicas.get(term.leader)
    known = replica is not None and state.log_is_known(replica) and not replica.stale
    return replica.log.log_end_offset if replica is not None and known else 0


def _may_lack(state: State, term: LeaderTerm, end: int) -> bool:
    """Whether a leader may have begun without records below that offset that were committed."""
    by_rule = term.election_kind not in UNSURE_KINDS and not truncates_to_high_watermark(state)
    return not by_rule or lost_storage_in_isr(state, term, end)


def unnamed_leader_epoch(state: State, starts: TermStarts, after: int) -> int | None:
    """A leader epoch above `after` in which a broker may have led of which nothing tells.

    Between epochs that only brokers' lines name, or the controllers' behind a gap in their own;
    where all brokers' logs are here, nobody did.
    """
    terms = starts.terms
    place = starts.after((after, ANY_OCCURRENCE))
    missed: int | None = after + 1
    known = place < len(terms) and tells_of_before(terms[place], after)
    if place >= len(terms) or terms[place].leader_epoch <= after + 1 or known:
        place = starts.gap_from[min(place + 1, len(terms))]
        missed = terms[place - 1].leader_epoch + 1 if place < len(terms) else None
    return None if missed is None or all_logs_are_covered(state) else missed


def unnamed_writers_epoch(state: State, starts: TermStarts, below: int | None = None) -> int | None:
    """A leader epoch in which a broker of which nothing tells may have written: an unnamed one, or
    one since the last known term, up to the newest that a log names. below: only what it may have
    written below that offset counts, as far as logs show where the newest one began.
    """
    missed = unnamed_leader_epoch(state, starts, -1)
    if missed is not None or not starts.terms or all_logs_are_covered(state):
        return missed
    last, newest = starts.terms[-1].leader_epoch, newest_leader_epoch(state)
    if newest <= last:
        return None
    if newest == last + 1 and below is not None and not state.may_be_compacted():
        logs = [r.log.spans for r in state.replicas.values()]
        shown = [s.first_offset for spans in logs for s in spans if s.leader_epoch == newest]
        if shown and min(shown) >= below:
            return None
    return last + 1


def never_began(state: State, term: LeaderTerm) -> bool:
    """Whether a broker was elected and never led: all its lines are here, and none tells of it."""
    return log_is_covered(state, term.leader) and not term.start_event_id


def first_in_doubt(
    state: State, ref: Reference, promise: Promise, *, from_isr_has: bool = False
) -> LeaderTerm | None:
    """The first later term whose start nobody saw and whose leader may have lacked the records.

    from_isr_has: not one that is known to have come from the ISR.
    """
    assert promise.latest_term is not None
    starts = ref.starts
    forked = _keeps_forks(state)
    if not forked and starts.all_placed_after(promise.latest_term):
        return None
    end = promise.span.end_offset
    after = starts.after(promise.latest_term)
    before = starts.terms[after - 1] if after else None
    held_by = before.leader if before else None
    for place in range(after, len(starts.terms)):
        term, start, earliest = starts.terms[place], starts.starts[place], starts.earliest[place]
        if start is not None and start >= end and earliest is not None and earliest < end:
            start = None  # Compaction hides it.
        elif start is None and never_began(state, term):
            continue
        if start is not None and not (forked and start >= end and _by_others_alone(state, term)):
            held_by = term.leader if start >= end else None
        elif (
            must_have_held(state, starts, promise, term, held_by)
            or (
                before is not None
                and promise.how != "acks_1"
                and term.election_kind not in UNSURE_KINDS
                and stands_still(state, ref, before)
            )
            or _has_led_with(state, ref, term, promise.span)
            or (from_isr_has and term.election_kind not in UNSURE_KINDS)
        ):
            held_by = term.leader
        else:
            return term
        before = term
    return None


def _keeps_forks(state: State) -> bool:
    """Whether a follower may keep below an epoch's records what that epoch's leader lacked: before
    KIP-320, or in an unknown release."""
    flags = state.behaviour()
    return flags is None or not flags.has("fetch_carries_leader_epoch")


def _by_others_alone(state: State, term: LeaderTerm) -> bool:
    """Whether only other replicas' logs tell where a leader began that was elected beside the ISR.

    Of one from the ISR a follower cuts what it lacks, or keeps what was committed."""
    if term.start_offset is not None or term.occurrence:
        return False
    if term.election_kind not in UNSURE_KINDS:
        return False
    own = state.replicas.get(term.leader)
    if own is None:
        return True
    named = {s.leader_epoch for s in own.log.spans} | {e.leader_epoch for e in own.epoch_entries}
    return term.leader_epoch not in named


def _has_led_with(state: State, ref: Reference, term: LeaderTerm, wanted: Span) -> bool:
    """Whether a leader had these records when its broker came back from its last stop that was not
    clean, and cut none of them until it led: what it held there is what stands in the log that
    counts."""
    history, first, end = state.history, wanted.first_offset, wanted.end_offset
    loaded = [
        (s.at, s.log_end_offset)
        for s in history.unclean_starts
        if s.replica == term.leader and s.at < term.started_at
    ]
    if ref.replica is None or not term.start_event_id or not loaded:
        return False
    since, loaded_end = max(loaded)
    cuts = [(t.replica, t.at, t.to_offset) for t in history.truncations]
    cuts += [(s.replica, s.at, s.left_end_offset) for s in history.storage_losses]
    if loaded_end < end or any(
        replica == term.leader and since < at < term.started_at and to < end
        for replica, at, to in cuts
    ):
        return False
    first = max(first, ref.replica.log.log_start_offset)
    held = held_then(state, term.leader, term.started_at, first, end)
    return stands_all(held, first, end, ref.spans)


def must_have_held(
    state: State, starts: TermStarts, promise: Promise, term: LeaderTerm, held_by: int | None = None
) -> bool:
    """Whether a later leader held the records at the start of its term, though no line tells.

    held_by: the leader of the term before, if it held them. It still does, where the controller or
    its own lines tell of the term: else it may have come back with less; or it wrote them itself
    and was never cut; or they were committed, it was elected from the ISR, and has neither lost
    storage nor, where followers cut to their high watermark, been cut since.
    """
    end = promise.span.end_offset
    if lost_storage_in_isr(state, term, end):
        return False
    told = log_is_covered(state, term.leader)
    if term.leader == held_by and (told or term.recorded):
        return True
    cut = any(t.replica == term.leader and t.to_offset < end for t in state.history.truncations)
    if starts.leaders_in(promise.span.leader_epoch) == {term.leader} and told and not cut:
        return True
    if promise.how == "acks_1" or term.election_kind in UNSURE_KINDS:
        return False
    if not truncates_to_high_watermark(state) or (told and not cut):
        return True
    return kept_since_in_sync(state, term, _reached_in(state, promise))


def _reached_in(state: State, promise: Promise) -> int:
    """The leader epoch in or after which the last of the records was committed: its own, or of what
    bears none, the first of the leader that answered for it; -1 where nothing tells."""
    _, end, made_in, _ = promise.span
    if made_in is not None:
        return made_in
    flags = state.behaviour()
    if flags is None or flags.has("leader_epoch_in_record_batches"):
        return -1  # To an attempt made anew a later leader answers (KIP-98).
    told = state.history.promised_in("acknowledgements", end - 1, end)
    answered = {p.replica for p in told}
    if answered != {promise.replica}:
        return -1
    return min((t.leader_epoch for t in state.history.terms if t.leader in answered), default=-1)


def lost_storage_in_isr(state: State, term: LeaderTerm, end: int) -> bool:
    """Whether a leader lost storage below that end before its term, and has not joined the ISR anew
    since."""
    return any(
        loss.replica == term.leader
        and loss.left_end_offset < end
        and not lost_after_it_began(loss, term)
        and _is_still_without(state, term, loss.leader_epoch)
        for loss in state.history.storage_losses
    )


def lost_after_it_began(loss: StorageLoss, term: LeaderTerm) -> bool:
    """Whether a term's leader lost storage only later, by the order of its own lines."""
    return bool(term.start_event_id) and loss.at > term.started_at


def cut_or_lost_since(state: State, term: LeaderTerm) -> bool:
    """Whether a term's leader cut its log, or lost of it, since the term began, as far as told."""
    history = state.history
    shorter = [(t.replica, t.at) for t in history.truncations]
    shorter += [(s.replica, s.at) for s in history.storage_losses]
    shorter += [(s.replica, s.at) for s in history.unclean_starts]
    return any(replica == term.leader and at > term.started_at for replica, at in shorter)


def may_have_lost_storage_in_isr(state: State, term: LeaderTerm, end: int) -> bool:
    """The same, or it came back so short, and had not been seen to stop cleanly."""
    return lost_storage_in_isr(state, term, end) or any(
        start.replica == term.leader
        and start.log_end_offset < end
        and start.at < term.started_at
        and _is_still_without(state, term, start.leader_epoch)
        for start in state.history.unclean_starts
    )


def _is_still_without(state: State, term: LeaderTerm, known: int | None) -> bool:
    """Whether a leader that lost records when it knew that leader epoch did not join the ISR anew
    before its term."""
    since = -1 if known is None else known
    joined_anew = any(
        since < t.leader_epoch < term.leader_epoch
        and t.isr is not None
        and term.leader not in t.isr
        for t in state.history.terms
    )
    return since <= term.leader_epoch and not joined_anew


def truncates_to_high_watermark(state: State) -> bool:
    """Whether the release is known to be one in which followers cut to their high watermark."""
    flags = state.behaviour()
    return flags is not None and flags.truncation == "truncate_to_high_watermark"


def kept_since_in_sync(state: State, term: LeaderTerm, made_in: int = -1) -> bool:
    """Whether a leader that was elected from the ISR had cut nothing since it came into it, that
    had been written in that leader epoch.

    A member of the ISR has what was committed, and to join it takes that anew. So what it had cut
    before it led last, or before an ISR that it was not in, it has fetched again.
    """
    if not term.start_event_id or not log_is_covered(state, term.leader):
        return False
    led = [
        t
        for t in state.history.terms
        if t.leader == term.leader and t.start_event_id and t.order < term.order
    ]
    last = max(led, key=lambda t: t.started_at, default=None)
    since = [
        cut
        for cut in state.history.truncations
        if cut.replica == term.leader
        and (-1 if last is None else last.started_at) < cut.at < term.started_at
    ]
    if last is not None and since and _cut_as_it_stepped_down(since[0], last):
        since = since[1:]
    return all(_fetched_again(cut, term) or _is_before(state, cut, made_in) for cut in since)


def _cut_as_it_stepped_down(cut: Truncation, led: LeaderTerm) -> bool:
    """Whether a leader that followed cut no lower than it had committed: nothing above had been,
    and what was since, no member of the ISR was without."""
    committed = led.end_high_watermark
    return led.ended == "followed" and committed is not None and committed <= cut.to_offset


def _is_before(state: State, cut: Truncation, made_in: int) -> bool:
    """Whether a follower cut before it fetched what was written in that epoch; by epochs, too, once
    it follows there it cuts nothing of it, unless its leader comes back in its epoch with less."""
    again = any(t.occurrence and t.leader_epoch == made_in for t in state.history.terms)
    known = cut.term_epoch is not None and cut.term_epoch <= made_in
    if known and cut.before_fetching and not may_have_fetched_before(state, cut):
        return True
    by_epoch = cut.reason in ("leader_epoch", "diverging_epoch") and cut.term_epoch is not None
    return by_epoch and (cut.term_epoch or 0) <= made_in and not again


def may_have_fetched_before(state: State, cut: Truncation | StorageLoss) -> bool:
    """Whether a follower may have fetched in its leader epoch before it was cut by the answer to a
    fetch: its leader had come back in its epoch with less (ZooKeeper)."""
    return (
        isinstance(cut, Truncation)
        and cut.reason in BY_ANSWER
        and any(t.occurrence and t.leader_epoch == cut.term_epoch for t in state.history.terms)
    )


def known_end(state: State, cut: Truncation) -> int | None:
    """Where the log ended that was cut; None where it may have fetched on since that was told."""
    is_told = cut.from_is_told and not may_have_fetched_before(state, cut)
    return cut.from_offset if is_told else None


def _fetched_again(cut: Truncation, term: LeaderTerm) -> bool:
    """Whether the replica joined the ISR only after the cut, which a controller's word made."""
    told, outside = cut.partition_epoch, term.outside_at
    return told is not None and outside is not None and told <= outside


def stands_still(state: State, ref: Reference, term: LeaderTerm) -> bool:
    """Whether all that a leader held when its term had ended stands in the log that counts."""
    end = term.end_log_end_offset
    if end is None or ref.replica is None:
        return False
    first = ref.replica.log.log_start_offset
    held = held_then(state, term.leader, term.started_at, first, end)
    return stands_all(held, first, end, ref.spans)
