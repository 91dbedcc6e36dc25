"""Where promised records went: the question behind every "survives" invariant.

A promise is a run of records that was committed, acknowledged or consumed. Every later valid
leader must hold it. A record is absent from a leader's log only if another record occupies its
offset, or the leader took over with its log ending at or below it, or the leader was cleanly
stopped with a lower log end. Everything else is doubt, never absence.
"""

from dataclasses import replace
from itertools import pairwise

from replication.protocol.ground.model import (
    Span,
    clipped,
    is_seen,
    overlaps,
    touching,
    uncovered,
)
from replication.protocol.ground.topic_partition import (
    ANY_OCCURRENCE,
    LeaderTerm,
    Promise,
    State,
)
from replication.protocol.ground.verdict import Step
from replication.protocol.judgement.absence import Absence, Doubt, absence
from replication.protocol.judgement.earlier_logs import held_then
from replication.protocol.judgement.lacking_terms import first_lacking_terms
from replication.protocol.judgement.objections import objection
from replication.protocol.judgement.reference import (
    LEADERS_NAME,
    Reference,
    lived_on_unseen,
    log_is_covered,
    tail_is_known,
    what_is_missing,
)
from replication.protocol.judgement.same_record import compare, lineage, may_have_written
from replication.protocol.judgement.unseen_terms import (
    lacked_unseen,
    may_have_lacked,
    never_began,
    unnamed_writers_epoch,
)
from replication.protocol.judgement.without_epochs import lacked_whoever_wrote
from replication.protocol.judgement.written_later import (
    counts_as_lost,
    one_of_two,
    others_there,
    taken_by_others,
    written_later,
)


def fate(state: State, ref: Reference, promise: Promise) -> tuple[list[Absence], list[Doubt]]:
    """What became of one promise: the parts absent from a later leader, and the parts in doubt.

    What was removed lawfully since need not be anywhere.
    """
    removed = (
        state.history.removed_below(promise.latest_term) if promise.latest_term is not None else 0
    )
    if removed > promise.span.first_offset:
        if removed >= promise.span.end_offset:
            return [], []
        promise = replace(promise, span=promise.span._replace(first_offset=removed))
    if ref.candidates:
        return _fate_by_all(state, ref, promise)
    absences: list[Absence] = []
    doubts: list[Doubt] = []
    by_content = _by_what_its_leader_held(state, promise) or _by_who_answered(state, ref, promise)
    if by_content:
        for one in by_content:
            found = fate(state, ref, one)
            absences += found[0]
            doubts += found[1]
        return absences, doubts
    for first, end, term in first_lacking_terms(state, ref.starts, promise):
        for part in _against_reference(state, ref, promise, first, end, term):
            if isinstance(part, Absence):
                doubt = objection(state, ref.starts, part)
                if doubt is not None:
                    doubts.append(doubt)
                if doubt is None:
                    absences.append(part)
                elif doubt.of_who_answered and part.final is True:
                    absences.append(replace(part, perhaps_by_zombie=True))
            elif isinstance(part, Doubt) and part.by_offset and promise.latest_term is None:
                more = _by_any_writer(state, ref, part)
                absences += more[0]
                doubts += more[1]
            elif isinstance(part, Doubt):
                doubts.append(part)
    if not absences and not doubts:
        for named in _as_it_stands(ref, promise):
            found = fate(state, ref, named)
            absences += found[0]
            doubts += found[1]
        more = _compacted(state, ref, promise)
        absences += more[0]
        doubts += more[1]
        doubts += lacked_unseen(state, ref, promise)
        doubts += lacked_whoever_wrote(state, ref, promise)
    return absences, doubts


def _by_what_its_leader_held(state: State, promise: Promise) -> list[Promise]:
    """A promise that a leader's line made by offset alone, by the records that it held then.

    Before leader epochs only contents name records. Empty where some of them were not seen.
    """
    span = promise.span
    if promise.how != "start_line" or is_seen(span) or promise.latest_term is None:
        return []
    if promise.replica is None or promise.latest_term[1] == ANY_OCCURRENCE:
        return []
    held = held_then(state, promise.replica, promise.at, span.first_offset, span.end_offset)
    if uncovered(span.first_offset, span.end_offset, held):
        return []
    if any(one.leader_epoch is not None for one in held):
        return []
    return [replace(promise, span=one) for one in held]


def _by_who_answered(state: State, ref: Reference, promise: Promise) -> list[Promise]:
    """An acknowledgement of offsets alone, as far as by the records that stood there in the log of
    who answered when its only reign ended: what it answers for is in its log. Empty where none is
    known."""
    if promise.how not in ("acks_1", "acks_all") or is_seen(promise.span):
        return []
    if promise.replica is None or promise.latest_term is not None:
        return []
    reign = _only_reign(state, ref, promise.replica)
    first, end = promise.span[:2]
    held = held_then(state, promise.replica, reign[-1].started_at, first, end) if reign else []
    found = [
        replace(
            promise,
            span=one,
            latest_term=None if one.leader_epoch is None else (one.leader_epoch, ANY_OCCURRENCE),
        )
        for one in held
    ]
    rest = uncovered(first, end, held) if found else []
    left = [
        replace(promise, span=promise.span._replace(first_offset=a, end_offset=b)) for a, b in rest
    ]
    return found + left


def _as_it_stands(ref: Reference, promise: Promise) -> list[Promise]:
    """A promise known by offset alone, by the epochs of the very records that stand there."""
    if promise.latest_term is not None or promise.span.content is not None:
        return []
    return [
        replace(promise, span=held, latest_term=(held.leader_epoch, ANY_OCCURRENCE))
        for held in clipped(ref.spans, promise.span.first_offset, promise.span.end_offset)
        if held.leader_epoch is not None
    ]


def _compacted(state: State, ref: Reference, promise: Promise) -> tuple[list[Absence], list[Doubt]]:
    """What became of records of an unknown epoch that compaction took from the log that counts.

    They were written in some term that reached them. What is so whichever it was, is proven.
    """
    absences: list[Absence] = []
    doubts: list[Doubt] = []
    if promise.latest_term is not None or ref.replica is None or not ref.replica.captured:
        return absences, doubts
    unnamed = unnamed_writers_epoch(state, ref.starts)
    whole = unnamed is None
    log = ref.replica.log
    first = max(promise.span.first_offset, log.log_start_offset)
    end = min(promise.span.end_offset, log.spans[-1].end_offset if log.spans else 0)
    for a, b in uncovered(first, end, log.spans) if first < end else []:
        for low, high in pairwise(sorted({a, b, *_borders(ref, a, b), *_told_from(state, a, b)})):
            taken = taken_by_others(state, ref.starts, promise, low)
            writers = [
                e
                for e in may_have_written(state, ref.starts, low, promise)
                if e not in taken or not _lines_tell(state, ref, e)
            ]
            later = written_later(state, ref.starts, promise, low, writers)
            if whole and later is True:
                gone = _replaced(state, ref, promise, low, high, set(writers))
                absences += gone[0]
                doubts += gone[1]
                continue
            fates = [fate(state, ref, _named(promise, low, high, e)) for e in sorted(set(writers))]
            lost = [found[0] for found in fates]
            replaced = later is not False
            if whole and lost and all(lost):
                absences += _whoever_wrote(promise, lost)
                continue
            if later is None and counts_as_lost(state, ref.starts, promise, low):
                absences += _one_of_several(state, ref, promise, low, high)
            if (
                any(lost)
                or (replaced and (not lost or one_of_two(state, promise, low)))
                or _led_untold(state, ref)
            ):
                doubts.append(_unsure(promise, low, high))
            elif unnamed is not None:
                doubts.append(_of_unnamed(promise, low, high, unnamed))
            elif ref.starts.vague:
                named = [_named(promise, low, high, e) for e in sorted(set(writers))]
                doubts += [doubt for one in named for doubt in may_have_lacked(state, ref, one)]
    return absences, doubts


def _led_untold(state: State, ref: Reference) -> bool:
    """Whether the leader changed, as answers to producers or what is told of leaders shows, and of
    one that answered nothing tells that it led."""
    answered = {p.replica for p in state.history.acknowledgements} - {None}
    return not answered <= ref.starts.leaders and len(answered | ref.starts.leaders) > 1


def _told_from(state: State, first: int, end: int) -> set[int]:
    """Offsets in between at which other records may have been acknowledged."""
    told = state.history.promised_in("acknowledgements", first, end)
    borders = {o for p in told for o in p.span[:2]}
    return {o for o in borders if first < o < end}


def _replaced(
    state: State, ref: Reference, promise: Promise, first: int, end: int, writers: set[int]
) -> tuple[list[Absence], list[Doubt]]:
    """Records that another leader's replaced, whatever compaction has left of those; and a doubt
    where one of those that may have written them may have been deposed when it answered."""
    named = [_named(promise, first, end, e) for e in sorted(writers)]
    about = named[0] if len(named) == 1 else promise
    found = absence(state, ref, about, first, end, None, back=False, final=None)
    steps = [*found.steps, Step(promise.event_id, "another record was acknowledged there later")]
    found = replace(found, final=True, steps=steps)
    for one in named:
        doubt = objection(state, ref.starts, replace(found, promise=one))
        if doubt is not None:
            gone = [replace(found, perhaps_by_zombie=True)] if doubt.of_who_answered else []
            return gone, [doubt]
    return [found], []


def _one_of_several(
    state: State, ref: Reference, promise: Promise, first: int, end: int
) -> list[Absence]:
    """Records in whose place others were acknowledged, whichever came first: at one offset two
    stand only one after the other. Committed one of them was if all surely had been."""
    found = absence(state, ref, promise, first, end, None, back=False, final=None)
    others = [p for p in others_there(state, promise, first) if p.span.content is not None]
    also = "another record was acknowledged there: one of them is gone"
    steps = [*found.steps, *(Step(p.event_id, also) for p in others)]
    found = replace(found, final=True, steps=steps, one_of_several=True)
    perhaps_by_zombie = any(p.how != "acks_all" for p in others)
    for one in (promise, *others):
        doubt = objection(state, ref.starts, replace(found, promise=one))
        if doubt is not None and not doubt.of_who_answered:
            return []
        perhaps_by_zombie = perhaps_by_zombie or doubt is not None
    return [replace(found, perhaps_by_zombie=perhaps_by_zombie)]


def _by_any_writer(state: State, ref: Reference, doubt: Doubt) -> tuple[list[Absence], list[Doubt]]:
    """What became of records known by offset alone, where it is the same whoever wrote them."""
    absences: list[Absence] = []
    doubts: list[Doubt] = []
    promise, first, end = doubt.promise, doubt.first_offset, doubt.end_offset
    whole = unnamed_writers_epoch(state, ref.starts, end) is None
    for low, high in pairwise(sorted({first, end, *_borders(ref, first, end)})):
        writers = may_have_written(state, ref.starts, low, promise) if whole else []
        fates = [fate(state, ref, _named(promise, low, high, e)) for e in sorted(set(writers))]
        # A leader that led twice in an epoch may have written there twice: its lines tell.
        once = bool(writers) and len(set(writers)) == len(writers)
        once = once and all(_lines_tell(state, ref, e) for e in writers)
        if once and all(found[0] for found in fates):
            absences += _whoever_wrote(promise, [found[0] for found in fates])
        elif (
            not once or any(found[0] or found[1] for found in fates)
        ) and not _survives_as_committed(state, ref, promise, low, high):
            doubts.append(replace(doubt, first_offset=low, end_offset=high))
    return absences, doubts


def _survives_as_committed(
    state: State, ref: Reference, promise: Promise, first: int, end: int
) -> bool:
    """Whether records that a leader answered for at acks=1 survive since they had been committed:
    in its only reign it answered at acks=all for one behind them, which it wrote after them, or its
    high watermark came past them."""
    if promise.how != "acks_1" or promise.replica is None:
        return False
    reign = _only_reign(state, ref, promise.replica)
    if not reign:
        return False
    reached = reign[-1].end_high_watermark if reign[-1].ended is not None else None
    behind = (reached or 0) >= end or any(
        p.how == "acks_all" and p.replica == promise.replica and p.span.first_offset >= end
        for p in state.history.acknowledgements
    )
    span = promise.span._replace(first_offset=first, end_offset=end)
    return behind and fate(state, ref, replace(promise, span=span, how="acks_all")) == ([], [])


def _only_reign(state: State, ref: Reference, leader: int) -> list[LeaderTerm]:
    """A broker's terms, if they are in a row and it led on in each; empty where it may have led
    twice."""
    began = [t for t in ref.starts.terms if not never_began(state, t)]
    own = [place for place, t in enumerate(began) if t.leader == leader]
    if not own or own[-1] - own[0] != len(own) - 1 or not log_is_covered(state, leader):
        return []
    reign = [began[place] for place in own]
    return reign if all(t.leads_on for t in reign[1:]) else []


def _whoever_wrote(promise: Promise, lost: list[list[Absence]]) -> list[Absence]:
    """The absences where several may have written the records: none of them names their epoch, nor
    the term that lacked them first, unless it is the same for all."""
    if len(lost) == 1:
        return lost[0]
    terms = {id(a.term): a.term for found in lost for a in found}
    term = next(iter(terms.values())) if len(terms) == 1 else None
    alike: dict[tuple[int, int], list[Absence]] = {}
    for a in (a for found in lost for a in found):
        alike.setdefault((a.first_offset, a.end_offset), []).append(a)
    return [
        replace(_in_common(alike[a.first_offset, a.end_offset]), promise=promise, term=term)
        for a in lost[0]
    ]


def _in_common(found: list[Absence]) -> Absence:
    """What is so of a record in each of several cases: whether it is back, and gone in the end."""
    final, back = {a.final for a in found}, {a.back for a in found}
    return replace(
        found[0],
        back=back == {True},
        perhaps_back=len(back) > 1,
        final=final.pop() if len(final) == 1 else None,
    )


def _lines_tell(state: State, ref: Reference, leader_epoch: int) -> bool:
    """Whether a second leadership in one epoch, which ZooKeeper allows, would be seen."""
    led = ref.starts.leaders_in(leader_epoch)
    return state.settings.controller == "kraft" or all(log_is_covered(state, r) for r in led)


def _borders(ref: Reference, first: int, end: int) -> set[int]:
    """Offsets in between at which another term may have written."""
    ends = {t.end_log_end_offset for t in ref.starts.terms}
    starts = {*ref.starts.starts, *ref.starts.earliest}
    return {o for o in {*starts, *ends} if o is not None and first < o < end}


def _named(promise: Promise, first: int, end: int, leader_epoch: int) -> Promise:
    """The promise as one of that leader epoch."""
    span = Span(first, end, leader_epoch, promise.span.content)
    return replace(promise, span=span, latest_term=(leader_epoch, ANY_OCCURRENCE))


def _unsure(promise: Promise, first: int, end: int) -> Doubt:
    return Doubt(
        first,
        end,
        promise,
        "compacted, and a leader's log ended at or below it: nothing tells whether before",
        "the log directories as they were before compaction",
    )


def _of_unnamed(promise: Promise, first: int, end: int, unnamed: int) -> Doubt:
    return Doubt(
        first,
        end,
        promise,
        f"compacted, and nothing tells who led in epoch {unnamed}, and with what",
        "the controller's history (metadata log or state-change.log)",
    )


def _stood_there(ref: Reference, promise: Promise, offset: int) -> bool:
    """Whether the log had the record there, as far as epochs tell, before it was compacted.

    A follower's epochs begin where compaction had left something for it to fetch.
    """
    assert ref.replica is not None
    before = [e.leader_epoch for e in ref.replica.epoch_entries if e.start_offset <= offset]
    if not before or promise.latest_term is None:
        return False
    made_in = promise.span.leader_epoch
    if made_in is None:
        return before[-1] <= promise.latest_term[0]
    later = ref.starts.after((made_in, ANY_OCCURRENCE))
    began = ref.starts.earliest[later:]
    return before[-1] == made_in and all(start is None or start > offset for start in began)


def _wrote_since(state: State, ref: Reference, term: LeaderTerm) -> bool:
    """Whether the leader of the log that counts led without the records itself, and has cut nothing
    since: what stood there then it had written anew, whatever compaction left of its epochs."""
    if term.leader != ref.leader or not term.start_event_id or term.start_offset is None:
        return False
    history = state.history
    cuts = [(t.replica, t.at) for t in history.truncations]
    cuts += [(s.replica, s.at) for s in history.storage_losses]
    cuts += [(s.replica, s.at) for s in history.unclean_starts]
    return log_is_covered(state, term.leader) and not any(
        replica == term.leader and at > term.started_at for replica, at in cuts
    )


def _fate_by_all(
    state: State, ref: Reference, promise: Promise
) -> tuple[list[Absence], list[Doubt]]:
    """The same where any replica may lead: what every log lacks is absent, what some lack doubt."""
    by_leader = [
        fate(state, Reference(r.replica, r, None, ref.starts), promise) for r in ref.candidates
    ]
    parts: list[Absence | Doubt] = [p for found in by_leader for kind in found for p in kind]
    borders = sorted({p.first_offset for p in parts} | {p.end_offset for p in parts})
    absences: list[Absence] = []
    doubts: list[Doubt] = []
    for first, end in pairwise(borders):
        lacking = [
            a
            for found, _ in by_leader
            for a in found
            if a.first_offset <= first and a.end_offset >= end
        ]
        if len(lacking) == len(ref.candidates):
            both = _in_common(lacking)
            absences.append(replace(both, first_offset=first, end_offset=end))
        elif any(p.first_offset <= first and p.end_offset >= end for p in parts):
            doubts.append(
                Doubt(
                    first,
                    end,
                    promise,
                    "nothing names the leader, and not every replica is known to hold it",
                    LEADERS_NAME,
                )
            )
    return absences, doubts


def _against_reference(
    state: State, ref: Reference, promise: Promise, first: int, end: int, term: LeaderTerm | None
) -> list[Absence | Doubt | None]:
    replica = ref.replica
    if replica is None:
        known = state.replicas.get(ref.leader) if ref.leader is not None else None
        first = max(first, known.log.log_start_offset if known is not None else 0)
        if first >= end:
            return []
        if term is not None:
            return [absence(state, ref, promise, first, end, term, back=False, final=None)]
        return [Doubt(first, end, promise, *what_is_missing(state, ref))]
    result: list[Absence | Doubt | None] = []
    log = replica.log
    first = max(first, log.log_start_offset)
    inside = min(end, log.log_end_offset)
    if term is None and first == log.log_start_offset:
        first = max(first, _certain_until(state, ref, promise, inside))
    wanted = Span(first, inside, *promise.span[2:])
    for a, b, _, held in overlaps([wanted] if first < inside else [], log.spans):
        result.append(compare(state, ref, promise, a, b, held, term))
    for a, b in uncovered(first, inside, touching(log.spans, first, inside)):
        result += _in_hole(state, ref, promise, a, b, term)
    beyond = max(first, inside)
    if beyond < end:
        result.append(_beyond_end(state, ref, promise, beyond, end, term))
    return result


def _certain_until(state: State, ref: Reference, promise: Promise, end: int) -> int:
    """Up to where a promise by offset alone is of the very records that stand there: what each of
    a thousand high watermarks covers is compared with the log once, not a thousand times."""
    if is_seen(promise.span) or promise.latest_term is None:
        return 0
    if ref.lineage is None:
        ref.lineage = lineage(state, ref)
    return ref.lineage.stands_until(promise.latest_term[0], end)


def _in_hole(
    state: State, ref: Reference, promise: Promise, first: int, end: int, term: LeaderTerm | None
) -> list[Absence | Doubt | None]:
    """Offsets inside the reference log that no known span covers: compacted, or unseen."""
    replica = ref.replica
    assert replica is not None
    shown = replica.log.spans[-1].end_offset if replica.log.spans else replica.log.log_start_offset
    if replica.captured and first < shown:
        # A copy shows every batch: a hole is compaction or a gap the log had from the start. But
        # a leader whose log ended there had nothing that could stand for what was compacted.
        if term is None:
            return [None]
        back = _stood_there(ref, promise, first) and not _wrote_since(state, ref, term)
        return [absence(state, ref, promise, first, end, term, back=back, final=None)]
    if term is not None:
        return [absence(state, ref, promise, first, end, term, back=False, final=None)]
    return [
        Doubt(
            first,
            end,
            promise,
            f"nobody saw what broker {ref.leader} holds there",
            f"the log directory of broker {ref.leader}",
        )
    ]


def _beyond_end(
    state: State, ref: Reference, promise: Promise, first: int, end: int, term: LeaderTerm | None
) -> Absence | Doubt:
    replica = ref.replica
    assert replica is not None
    unseen = replica.partial or lived_on_unseen(state, replica)
    if tail_is_known(state, replica) and not (term is not None and unseen):
        return absence(state, ref, promise, first, end, term, back=False, final=True)
    if term is not None:
        return absence(state, ref, promise, first, end, term, back=False, final=None)
    if replica.stale:
        return Doubt(
            first,
            end,
            promise,
            f"leader {ref.leader} lived on after the copy of its log, which ends at "
            f"{replica.log.log_end_offset}",
            f"the log directory of broker {ref.leader} as it is now",
        )
    if replica.partial:
        return Doubt(
            first,
            end,
            promise,
            f"of leader {ref.leader}'s log only a part was dumped, which ends at "
            f"{replica.log.log_end_offset}",
            f"the log directory of broker {ref.leader}, or a dump of all its segments",
        )
    return Doubt(
        first,
        end,
        promise,
        f"leader {ref.leader}'s copy ends at {replica.log.log_end_offset} but is not of a cleanly "
        "stopped broker: a short tail proves nothing",
        f"the log directory of broker {ref.leader}, copied after a clean stop",
    )
