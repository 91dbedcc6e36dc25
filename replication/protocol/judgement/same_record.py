"""Whether the record that stands at an offset of the log that counts is the promised one."""

import math
from bisect import bisect_left
from collections.abc import Sequence

from replication.protocol.ground.events import BESIDE_THE_ISR
from replication.protocol.ground.model import (
    Span,
    clipped,
    is_seen,
    same_record,
    touching,
    uncovered,
)
from replication.protocol.ground.topic_partition import (
    ANY_OCCURRENCE,
    LeaderTerm,
    Promise,
    State,
)
from replication.protocol.judgement.absence import Absence, Doubt, absence
from replication.protocol.judgement.earlier_logs import held_then, stands_all, stayed_below
from replication.protocol.judgement.lacking_terms import BY_CLIENTS
from replication.protocol.judgement.reference import (
    Lineage,
    Reference,
    lived_on_unseen,
    log_is_covered,
    newest_leader_epoch,
)
from replication.protocol.judgement.term_starts import (
    UNSURE_KINDS,
    TermStarts,
    term_start,
)
from replication.protocol.judgement.unseen_terms import (
    kept_since_in_sync,
    may_have_lost_storage_in_isr,
    never_began,
    unnamed_writers_epoch,
)


def compare(
    state: State,
    ref: Reference,
    promise: Promise,
    first: int,
    end: int,
    held: Span,
    term: LeaderTerm | None,
) -> Absence | Doubt | None:
    if lived_on_unseen(state, ref.replica):
        return Doubt(
            first,
            end,
            promise,
            f"leader {ref.leader} lived on after the copy of its log, and nothing tells how",
            f"the broker log of broker {ref.leader}",
        )
    same = same_record(promise.span, held)
    if same is None and promise.span.content is None:
        same = _by_position(state, ref, promise, held, first, end, term)
        if same is True and not is_seen(held) and _has_unplaced_term(state, ref, promise):
            same = None
    if same is True:
        if term is None:
            return None
        return absence(state, ref, promise, first, end, term, back=True, final=False)
    if same is False and _is_mismatched(state, promise, held, first, end):
        return Doubt(
            first,
            end,
            promise,
            "copies hold the same content there under different leader epochs",
            "the segments read again: the epoch is outside the CRC",
        )
    if same is False and not _may_be_of_an_unseen_term(state, promise, end):
        return absence(state, ref, promise, first, end, term, back=False, final=True, held=held)
    if same is False:
        return Doubt(
            first,
            end,
            promise,
            f"replica {promise.replica} had committed up to {promise.span.end_offset}, "
            "perhaps in an epoch of which its lines are missing",
            f"the whole state-change.log of broker {promise.replica}",
        )
    if promise.span.content is not None:
        if held.content is None:
            return Doubt(
                first,
                end,
                promise,
                "nobody saw the content of the record that stands there",
                f"the log directory of broker {ref.leader} as it is now",
            )
        return Doubt(
            first,
            end,
            promise,
            "the same content stands there under another leader epoch",
            "the segments' payloads",
        )
    return _known_by_offset(state, promise, first, end)


def _known_by_offset(state: State, promise: Promise, first: int, end: int) -> Doubt:
    """Of a record that nothing names but its offset, which may have been written anew."""
    reason = "a truncation or epoch start at or below it may have followed"
    named = state.covered("payload_ids") or not state.told_of("payload_ids")
    why = state.why_missing("payload_ids")
    wanted = "an acknowledgement log with payload ids"
    if promise.how not in BY_CLIENTS and state.covered("acknowledgements"):
        wanted = "broker logs with kafka.cluster.Partition at TRACE"
    return Doubt(
        first,
        end,
        promise,
        f"known by offset alone, and {reason}" if named else f"{why}, and {reason}",
        wanted
        if named
        else "--payload-id-in, or an acknowledgement log whose payload ids are the records' keys",
        by_offset=True,
    )


def _is_mismatched(state: State, promise: Promise, held: Span, first: int, end: int) -> bool:
    """Whether only a leader epoch makes another record of it, on which copies do not agree."""
    if held.content is None or promise.span.content is not None:
        return False
    return any(
        other.content == held.content and other.leader_epoch != held.leader_epoch
        for other in all_known(state, first, end)
    )


def _may_be_of_an_unseen_term(state: State, promise: Promise, end: int) -> bool:
    """Whether a high watermark that a line tells may be of a later epoch than the replica's lines.

    A line more would make it so. That the replica lost what lay below it is seen where its log was
    cut since, or came back shorter.
    """
    if promise.how not in ("load", "start_line") or promise.span.content is not None:
        return False
    replica, since = promise.replica, promise.at
    cut = any(
        t.replica == replica and t.to_offset < end and t.at > since
        for t in state.history.truncations
    )
    short = any(
        s.replica == replica and s.left_end_offset < end and s.at > since
        for s in state.history.storage_losses
    )
    return not cut and not short


def _has_unplaced_term(state: State, ref: Reference, promise: Promise) -> bool:
    """Whether a later leader may have begun below the promise where only a part of the log was
    seen: its epoch may begin among the rest."""
    if ref.replica is None or not ref.replica.partial or promise.latest_term is None:
        return False
    later = [t for t in state.history.terms if t.order > promise.latest_term]
    return any(term_start(state, t) is None for t in later)


def _by_position(
    state: State,
    ref: Reference,
    promise: Promise,
    held: Span,
    first: int,
    end: int,
    term: LeaderTerm | None,
) -> bool | None:
    """For a record known by offset alone: whether the record that stands there is the same one."""
    if promise.latest_term is not None:
        if _is_superseded_in_its_lineage(state, ref, promise, held, first, end):
            return True if _is_of_its_makers_log(state, ref, promise, held, first, end) else None
        if term is None:
            return True
        if held.leader_epoch is None:
            return False if _has_written_since(state, ref, term, first) else None
        return held.leader_epoch <= promise.latest_term[0]
    if not _first_to_stand_there(state, ref, end - 1) and not _never_cut(
        state, promise, first, end
    ):
        return None
    if any(same_record(held, other) is False for other in all_known(state, first, end)):
        return None
    return True


def _has_written_since(state: State, ref: Reference, term: LeaderTerm, first: int) -> bool:
    """Whether the log that counts is of that term's leader, which has led ever since, and began at
    the offset or below it: what stands there, it has written itself since then."""
    if term.leader != ref.leader or not log_is_covered(state, term.leader):
        return False
    start = ref.starts.of(term)
    since = [t for t in ref.starts.terms if t.order >= term.order and not never_began(state, t)]
    led_on = all(t.leader == term.leader for t in since)
    led_on = led_on and all(t.leads_on for t in since if t.order > term.order)
    return led_on and start is not None and start <= first


def _is_of_its_makers_log(
    state: State, ref: Reference, promise: Promise, held: Span, first: int, end: int
) -> bool:
    """Whether the only leader of the promise's epoch made it, past where its term began, when its
    log held the record that stands there: what a leader commits are its own log's records."""
    maker, latest = promise.replica, promise.latest_term
    if maker is None or latest is None or ref.starts.leaders_in(latest[0]) != {maker}:
        return False
    began = [term_start(state, t) for t in state.history.terms if t.leader_epoch == latest[0]]
    known = [start for start in began if start is not None]
    if len(known) < len(began) or min(known) >= promise.span.end_offset:
        return False
    then = held_then(state, maker, promise.at, first, end)
    return stands_all(then, first, end, [Span(first, end, *held[2:])])


def _is_superseded_in_its_lineage(
    state: State, ref: Reference, promise: Promise, held: Span, first: int, end: int
) -> bool:
    """Whether the promise may be of other records than what stands there: of a later term's, by
    whose end it was made, which began at or below them or with a log beside theirs."""
    assert promise.latest_term is not None
    by = _superseded_by(state, ref, Span(first, end, *held[2:]))
    return by is not None and by <= promise.latest_term[0]


def _superseded_by(state: State, ref: Reference, held: Span) -> int | None:
    """The first later leader epoch that began below the records' end, or may have led beside."""
    if held.leader_epoch is None:
        return None
    starts = ref.starts
    first = starts.after((held.leader_epoch, ANY_OCCURRENCE))
    later: Sequence[int] = range(first, len(starts.terms))
    if starts.lowest_from[first] >= held.end_offset:
        all_keep = all(_keeps(state, leader, held) for leader in starts.leaders)
        odd = starts.beside_the_isr if all_keep else starts.unsure
        later = odd[bisect_left(odd, first) :]
    for place in later:
        term, start = starts.terms[place], starts.starts[place]
        if (start is not None and start < held.end_offset) or _led_beside(state, ref, term, held):
            return term.leader_epoch
    return None


def lineage(state: State, ref: Reference) -> Lineage:
    """The reference log's spans up to the first that nobody saw or that is out of line."""
    found = Lineage()
    replica = ref.replica
    if replica is None or lived_on_unseen(state, replica):
        return found
    end, newest, lowest = replica.log.log_start_offset, -1, -math.inf
    for span in replica.log.spans:
        behind = span.first_offset == end or (replica.captured and span.first_offset > end)
        if (
            not behind
            or not is_seen(span)
            or span.leader_epoch is None
            or span.leader_epoch < newest
        ):
            break
        by = _superseded_by(state, ref, span)
        lowest = max(lowest, -math.inf if by is None else -by)
        end, newest = span.end_offset, span.leader_epoch
        found.ends.append(end)
        found.leader_epochs.append(newest)
        found.undisputed.append(lowest)
    return found


def _led_beside(state: State, ref: Reference, term: LeaderTerm, held: Span) -> bool:
    """Whether the leader of a term may have held others than these records at their offsets.

    One elected beside the ISR, unless it holds them still and has not cut there since; or in a way
    that nothing tells, unless it never cut there, or nobody had led before them who wrote so far.
    """
    if term.election_kind not in UNSURE_KINDS or never_began(state, term):
        return False
    if term.occurrence and term.start_offset is not None:
        return False  # Back in its epoch it has, up to there, what it had when that began.
    if _had_only_these(state, ref, term, held):
        return False
    if term.election_kind in BESIDE_THE_ISR:
        if _was_cut_since(state, term, held):
            return True
        return not _has(state, term.leader, held) and not _set_aside(state, term, held)
    if _keeps(state, term.leader, held):
        return False
    made_in = held.leader_epoch or 0
    for offset in (held.first_offset, held.end_offset - 1):
        if any(e < made_in for e in may_have_written(state, ref.starts, offset)):
            return True
    return False


def _had_only_these(state: State, ref: Reference, term: LeaderTerm, held: Span) -> bool:
    """Whether nobody but the one term of their leader epoch can have written there before
    a leader began above them: what it had there then are these very records."""
    made_in, start = held.leader_epoch, ref.starts.of(term)
    if made_in is None or made_in >= term.leader_epoch or start is None or start < held.end_offset:
        return False
    if unnamed_writers_epoch(state, ref.starts) is not None:
        return False
    if state.settings.controller != "kraft" and not all(
        log_is_covered(state, leader) for leader in ref.starts.leaders_in(made_in)
    ):
        return False
    return all(
        [e for e in may_have_written(state, ref.starts, offset) if e < term.leader_epoch]
        == [made_in]
        for offset in (held.first_offset, held.end_offset - 1)
    )


def _keeps(state: State, number: int, held: Span) -> bool:
    """Whether a replica has these very records and never cut there."""
    return not _was_cut(state, number, held) and _has(state, number, held)


def _has(state: State, number: int, held: Span) -> bool:
    """Whether a replica's log is known to have these very records."""
    replica = state.replicas.get(number)
    if replica is None or not state.log_is_known(replica):
        return False
    return stands_all([held], *held[:2], touching(replica.log.spans, *held[:2]))


def _set_aside(state: State, term: LeaderTerm, held: Span) -> bool:
    """Whether another copy of its leader's log than the present one, of since the term began as a
    record of it shows, has these very records."""
    return not term.occurrence and any(
        copy.replica == term.leader
        and any(s.leader_epoch == term.leader_epoch for s in copy.spans)
        and stands_all([held], *held[:2], touching(copy.spans, *held[:2]))
        for copy in state.history.copies
    )


def _was_cut(state: State, replica: int, held: Span) -> bool:
    """Whether a replica is known, or not known not, to have cut its log at or below records."""
    if not log_is_covered(state, replica):
        return True
    cuts = [t.to_offset for t in state.history.truncations if t.replica == replica]
    cuts += [s.left_end_offset for s in state.history.storage_losses if s.replica == replica]
    return any(cut < held.end_offset for cut in cuts)


def _was_cut_since(state: State, term: LeaderTerm, held: Span) -> bool:
    """Whether a term's leader is known, or not known not, to have cut its log at or below records
    since it began, or may have lost them with its storage."""
    if not log_is_covered(state, term.leader):
        return True
    since = term.started_at if term.start_event_id else -1
    history = state.history
    cuts = [(t.replica, t.at, t.to_offset) for t in history.truncations]
    cuts += [(s.replica, s.at, s.left_end_offset) for s in history.storage_losses]
    cuts += [(s.replica, s.at, s.log_end_offset) for s in history.unclean_starts]
    return any(
        replica == term.leader and at > since and end < held.end_offset for replica, at, end in cuts
    )


def may_have_written(
    state: State, starts: TermStarts, offset: int, promise: Promise | None = None
) -> list[int]:
    """The leader epochs in which the offset, or the promised record there, may have been written,
    each once for every term.

    A leader that stopped, not cleanly, may have held more than is left of it.
    """
    found: list[int] = []
    for place, (term, start) in enumerate(zip(starts.terms, starts.earliest, strict=True)):
        lines = term.ended in ("led_on", "followed") or log_is_covered(state, term.leader)
        end = term.end_log_end_offset if term.end_is_certain and lines else None
        if (start is None or start <= offset) and not (
            never_began(state, term)
            or (end is not None and end <= offset)
            or _led_on_from_below(state, starts, place, offset)
            or (start is None and _led_on_from_above(state, starts, place, offset))
            or _did_not_come_so_far(state, term, offset)
            or (promise is not None and _refused_acks_all(state, promise, term))
            or (promise is not None and _answered_by_another(state, starts, promise, place, offset))
            or (promise is not None and _wrote_another(state, promise, term, offset))
            or (promise is not None and _was_not_passed_on(state, starts, promise, place, offset))
            or (promise is not None and _was_cut_before(state, promise, term, offset))
            or (promise is not None and _was_not_reached(state, starts, promise, place, offset))
            or (promise is not None and _a_member_lacked(state, starts, promise, place, offset))
        ):
            found.append(term.leader_epoch)
    return sorted(found)


def _led_on_from_below(state: State, starts: TermStarts, place: int, offset: int) -> bool:
    """Whether that term's leader led on in its next one with a log that ended at or below the
    offset: who leads cuts nothing."""
    after = place + 1
    while after < len(starts.terms) and never_began(state, starts.terms[after]):
        after += 1
    if after == len(starts.terms):
        return False
    term, start = starts.terms[after], starts.starts[after]
    led_on = term.leads_on and term.leader == starts.terms[place].leader
    # With less than it began with it has started again, without a line that says so.
    return led_on and start is not None and (starts.starts[place] or 0) <= start <= offset


def _led_on_from_above(state: State, starts: TermStarts, place: int, offset: int) -> bool:
    """Whether that term's leader, of whose start nothing tells the log end, has led on since a term
    that began above the offset: who leads cuts nothing."""
    leader = starts.terms[place].leader
    if not log_is_covered(state, leader):
        return False
    while place and starts.terms[place].leads_on and starts.starts[place] is None:
        place -= 1
        while place and (
            starts.terms[place].leader != leader or never_began(state, starts.terms[place])
        ):
            place -= 1
    term, start = starts.terms[place], starts.earliest[place]
    return term.leader == leader and start is not None and start > offset


def _did_not_come_so_far(state: State, term: LeaderTerm, offset: int) -> bool:
    """Whether the log of a term's leader, which then followed, ended at or below the offset."""
    since = term.started_at if term.start_event_id else -1
    told_more = (term.end_log_end_offset or 0) > offset
    return (
        term.ended == "followed"
        and not told_more
        and stayed_below(state, term.leader, term.leader_epoch, offset, since)
    )


def _a_member_lacked(
    state: State, starts: TermStarts, promise: Promise, place: int, offset: int
) -> bool:
    """Whether a follower that the term's leader had to wait for, for acks=all, had not come so far
    by then. From 3.7 on (KAFKA-15583) all that commits is an ISR of as many members as that needs.

    Nobody has answered since, to an attempt made anew: whoever led then began below, and those
    after him came from his ISR.
    """
    term, flags = starts.terms[place], state.behaviour()
    if promise.how != "acks_all" or term.ended not in ("stopped", "followed"):
        return False
    if flags is None or not flags.has("high_watermark_waits_for_min_insync_replicas"):
        return False
    later = [
        p for p in range(place + 1, len(starts.terms)) if not never_began(state, starts.terms[p])
    ]
    if not later or any(starts.terms[p].election_kind in UNSURE_KINDS for p in later):
        return False
    start = starts.starts[later[0]]
    if start is None or start > offset or not state.covered("controller_history"):
        return False
    members = term.always_in_isr or ()
    return any(stayed_below(state, m, term.leader_epoch, offset) for m in members)


def _refused_acks_all(state: State, promise: Promise, term: LeaderTerm) -> bool:
    """Whether the term's leader refused whatever was sent at acks=all: in all of the term its ISR
    had fewer members than min.insync.replicas."""
    told = term.took_all is False and state.covered("controller_history")
    return promise.how == "acks_all" and told


def _answered_by_another(
    state: State, starts: TermStarts, promise: Promise, place: int, offset: int
) -> bool:
    """Whether the broker that answered the producer rules out that term's leader as the writer.

    Who wrote it answers; or, to an attempt made anew by an idempotent producer (KIP-98, acks=all
    only), a later leader that has it.
    """
    who, led = promise.replica, starts.terms[place].leader
    if who is None or promise.how not in ("acks_1", "acks_all") or led == who:
        return False
    flags = state.behaviour()
    anew = flags is None or flags.has("leader_epoch_in_record_batches")
    if promise.how == "acks_1" or not anew:
        return True
    return not _led_later_with_it(state, starts, who, place + 1, offset)


def _led_later_with_it(state: State, starts: TermStarts, who: int, first: int, offset: int) -> bool:
    """Whether a broker may have led, from that place on, with what had been written at the offset:
    not with a log that ended below, nor as it led on from there."""
    lacks = False
    for term, start in zip(starts.terms[first:], starts.starts[first:], strict=True):
        if term.leader != who:
            lacks = False  # It may have fetched it from this one.
        elif never_began(state, term):
            continue  # It answered nobody then.
        elif start is not None and start <= offset:
            lacks = True
        elif not lacks:
            return True
    return False


def _wrote_another(state: State, promise: Promise, term: LeaderTerm, offset: int) -> bool:
    """Whether a copy shows what that epoch wrote there, and it is not the promised record; or its
    leader holds another there, and has cut nothing there since the term began."""
    if promise.span.content is None:
        return False
    kept = [
        span
        for span in held_then(state, term.leader, term.started_at, offset, offset + 1)
        if span.leader_epoch is None or span.leader_epoch <= term.leader_epoch
    ]
    if term.start_event_id and any(same_record(s, promise.span) is False for s in kept):
        return True
    if _may_have_led_again(state, term):
        return False
    return any(
        span.leader_epoch == term.leader_epoch and span.content not in (None, promise.span.content)
        for span in all_known(state, offset, offset + 1)
    )


def _may_have_led_again(state: State, term: LeaderTerm) -> bool:
    """Whether a term's leader led once more in its epoch after a stop, and may have written anew
    what it had lost (ZooKeeper): its lines tell."""
    if state.settings.controller == "kraft":
        return False
    return not log_is_covered(state, term.leader) or any(
        t.leader_epoch == term.leader_epoch and t.occurrence > term.occurrence
        for t in state.history.terms
    )


def _was_cut_before(state: State, promise: Promise, term: LeaderTerm, offset: int) -> bool:
    """Whether the very record, which names no epoch, had been cut from a log before that term."""
    content = promise.span.content
    if content is None or not term.start_event_id:
        return False
    cuts = [(t.at, t.dropped) for t in state.history.truncations]
    cuts += [(s.at, s.spans) for s in state.history.storage_losses]
    return any(
        at < term.started_at
        and any(s[2:] == (None, content) for s in clipped(dropped, offset, offset + 1))
        for at, dropped in cuts
    )


def _was_not_reached(
    state: State, starts: TermStarts, promise: Promise, place: int, offset: int
) -> bool:
    """Whether that term's leader followed before its high watermark had come to the offset: who
    waits for acks=all then is refused. To an attempt made anew (KIP-98) it may answer later."""
    if promise.how != "acks_all":
        return False
    led, flags = starts.terms[place], state.behaviour()
    later = [t for t in starts.terms[place + 1 :] if t.leader == led.leader]
    for term in later:
        if led.ended != "led_on" or not term.leads_on:
            break
        led = term
    anew = flags is None or flags.has("leader_epoch_in_record_batches")
    if anew and (promise.replica != led.leader or any(t.order > led.order for t in later)):
        return False
    reached = led.end_high_watermark
    return led.ended == "followed" and reached is not None and reached <= offset


def _missed_one_before(state: State, starts: TermStarts, place: int) -> bool:
    """Whether that term's leader leads on as if another's term right before had not been."""
    led = starts.terms[place]
    before = [t for t in starts.terms[:place] if not never_began(state, t)][-1:]
    return led.leads_on and any(t.leader != led.leader for t in before)


def _was_not_passed_on(
    state: State, starts: TermStarts, promise: Promise, place: int, offset: int
) -> bool:
    """Whether what that term's leader wrote there cannot have been committed: another one, elected
    from the ISR, began below, and by the release's rules or by its own lines lacks no such record.

    To join the ISR it had to hold what this leader had committed by then, in every release.
    """
    led = starts.terms[place]
    # Who leads on past another answers for what it wrote before; whether it did its own lines tell.
    own = [p for p in range(place, len(starts.terms)) if starts.terms[p].leader == led.leader]
    answers = any(_missed_one_before(state, starts, p) for p in own)
    answers = answers or (len(own) > 1 and not log_is_covered(state, led.leader))
    if promise.how in ("acks_1", "consumed") or answers:
        return False
    for after in range(place + 1, len(starts.terms)):
        term, start = starts.terms[after], starts.starts[after]
        if never_began(state, term) or (term.leader == led.leader and term.leads_on):
            continue
        return (
            start is not None
            and start <= offset
            and not _may_be_passed_on_later(state, starts, promise, after, offset)
            and term.leader != led.leader
            and term.election_kind not in UNSURE_KINDS
            and not may_have_lost_storage_in_isr(state, term, offset + 1)
            and (keeps_committed(state) or kept_since_in_sync(state, term, led.leader_epoch))
        )
    return False


def _may_be_passed_on_later(
    state: State, starts: TermStarts, promise: Promise, place: int, offset: int
) -> bool:
    """Whether a leader elected beside the ISR may have led with the record after all, by when a
    high watermark was at it. At acks=all only who wrote it answers."""
    if promise.how == "acks_all":
        return False
    until = None if promise.latest_term is None else starts.after(promise.latest_term)
    later = slice(place + 1, until)
    return any(
        term.election_kind in UNSURE_KINDS and (start is None or start > offset)
        for term, start in zip(starts.terms[later], starts.starts[later], strict=True)
        if not never_began(state, term)
    )


def keeps_committed(state: State) -> bool:
    """Whether clean elections of the release lose nothing but by a leader that missed an epoch."""
    flags = state.behaviour()
    return (
        flags is not None
        and flags.has("isr_expansion_waits_for_epoch_start")
        and flags.has("diverging_fetch_is_no_progress")
        == flags.has("leader_answers_diverging_epoch")
    )


def _first_to_stand_there(state: State, ref: Reference, last: int) -> bool:
    """Whether nobody led from, and nobody cut to, that offset or below it after the first term.

    Of an epoch that nothing tells of, nobody knows. With ZooKeeper a leader that lost its log's
    end may lead on in its epoch: its lines tell.
    """
    terms = state.history.terms
    if not terms or terms[-1].leader_epoch < newest_leader_epoch(state):
        return False
    if unnamed_writers_epoch(state, ref.starts) is not None:
        return False
    if state.settings.controller != "kraft" and not all(
        log_is_covered(state, first.leader) for first in state.history.terms[:1]
    ):
        return False
    for later in state.history.terms[1:]:
        start = term_start(state, later)
        if start is None or start <= last:
            return False
    return all(t.to_offset > last for t in state.history.truncations)


def _never_cut(state: State, promise: Promise, first: int, end: int) -> bool:
    """Whether every broker that ever led still holds what it appended to [first, end) as leader.

    Then an acknowledged record can only be the one that stands there. It takes the lines of all
    replicas, since a truncation is seen in nothing else, and of each leader a copy of the range
    and the line of its first term, since stops count from there. Where nobody is known to have led,
    or not who answered for it, nobody knows who appended it.
    """
    led = {t.leader for t in state.history.terms}
    answered = promise.replica if promise.how in ("acks_1", "acks_all") else None
    if not state.ever_assigned or not led or answered not in {None, *led}:
        return False
    for number in state.ever_assigned | state.replicas.keys():
        if not any(state.covered(subject, number) for subject in ("broker_log", "replica_trace")):
            return False
    history = state.history
    first_terms = {t.leader: t for t in reversed(history.terms)}
    leaders = first_terms.keys()
    cuts = [t.to_offset for t in history.truncations if t.replica in leaders]
    cuts += [s.left_end_offset for s in history.storage_losses if s.replica in leaders]
    for leader in leaders:
        replica = state.replicas.get(leader)
        if replica is None or not state.log_is_known(replica):
            return False
        if uncovered(first, end, [s for s in replica.log.spans if is_seen(s)]):
            return False
        if replica.may_have_lost_from is not None:
            cuts.append(replica.may_have_lost_from)
    seen = all(t.start_event_id for t in first_terms.values())
    return seen and all(cut >= end for cut in cuts)


def all_known(state: State, first: int, end: int) -> list[Span]:
    """What any replica holds or held in [first, end), as far as copies and traces show."""
    logs = [r.log.spans for r in state.replicas.values()]
    logs += [c.spans for c in state.history.copies]
    return [span for spans in logs for span in clipped(spans, first, end)]
