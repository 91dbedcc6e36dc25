"""Where promised records went: the question behind every "survives" invariant.

A promise is a run of records that was committed, acknowledged or consumed. Every later valid
leader must hold it. A record is absent from a leader's log only if another record occupies its
offset, or the leader took over with its log ending at or below it, or the leader was cleanly
stopped with a lower log end. Everything else is doubt, never absence.
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise

from replication.protocol.ground.model import (
    Span,
    clipped,
    is_seen,
    overlaps,
    same_record,
    uncovered,
)
from replication.protocol.ground.topic_partition import Promise, Replica, State, Term
from replication.protocol.ground.verdict import Step
from replication.protocol.ground.versions import behaviour

UNSURE_KINDS = ("unclean", "last_known_leader", "unknown", None)


@dataclass(slots=True)
class Reference:
    """The log that counts now: the current leader's, else that of the last valid leader.

    candidates: where nothing names a leader, every replica that may be it, if all their logs are
    known; then only what holds for each of them is decided.
    """

    leader: int | None
    replica: Replica | None
    term: Term | None
    candidates: list[Replica] = field(default_factory=list)

    @property
    def spans(self) -> list[Span]:
        """The known spans of that log; empty when it was not handed over."""
        return self.replica.log.spans if self.replica else []


@dataclass(slots=True)
class Absence:
    """Part of a promise that a later leader's log lacks.

    term: the first later term known to lack it. back: the reference log holds it again. final:
    True when the reference log was seen to lack it, None when that log was not handed over.
    """

    first_offset: int
    end_offset: int
    promise: Promise
    term: Term | None
    back: bool
    final: bool | None
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class Doubt:
    """Part of a promise whose fate the evidence does not decide, and what would decide it."""

    first_offset: int
    end_offset: int
    promise: Promise
    reason: str
    settled_by: str


def log_is_known(state: State, replica: Replica | None) -> bool:
    """Whether the replica's log is known: a copy of it, or a complete trace of its steps."""
    if replica is None:
        return False
    if replica.captured:
        return True
    return state.coverage.get(("replica_trace", replica.replica), (False, None))[0]


def reference(state: State) -> Reference:
    """The current leader by the controller, else the leader of the last term."""
    leader = state.registration.leader
    terms = state.history.terms
    term = None
    if terms and terms[-1].leader_epoch > state.registration.leader_epoch:
        # The controller's history at hand ends before the brokers' does.
        leader = None
    if leader is not None:
        led = [t for t in terms if t.leader == leader]
        term = led[-1] if led else None
    elif terms:
        term = terms[-1]
        leader = term.leader
    replica = state.replicas.get(leader) if leader is not None else None
    if leader is None:
        return Reference(None, None, term, _candidates(state))
    return Reference(leader, replica if log_is_known(state, replica) else None, term)


def _candidates(state: State) -> list[Replica]:
    """Every assigned replica, if the assignment and all their logs are known; else none."""
    assigned = [state.replicas.get(r) for r in state.settings.assigned_replicas or ()]
    return [r for r in assigned if r is not None] if _all_logs_known(state, assigned) else []


def _all_logs_known(state: State, replicas: list[Replica | None]) -> bool:
    return all(log_is_known(state, r) for r in replicas)


def term_start(state: State, term: Term) -> int | None:
    """The log end of the leader when the term began, from its own line or any epoch cache.

    An epoch cache names the first record of the epoch, which is at or above that log end, and so do
    a log and what was committed: using it can only miss an absence, never invent one.
    """
    if term.start_offset is not None or term.occurrence:
        return term.start_offset
    starts = [
        entry.start_offset
        for replica in state.replicas.values()
        for entry in replica.epoch_entries
        if entry.leader_epoch == term.leader_epoch
        and not _may_begin_before(replica, entry.start_offset)
    ]
    starts += [
        span.first_offset
        for replica in state.replicas.values()
        for span in replica.log.spans
        if span.leader_epoch == term.leader_epoch
        and not _may_begin_before(replica, span.first_offset)
    ]
    starts += [
        promise.span.first_offset
        for promise in state.history.commitments
        if promise.span.leader_epoch == term.leader_epoch
    ]
    return min(starts, default=None)


def truncates_to_high_watermark(state: State) -> bool:
    """Whether the release is known to be one in which followers cut to their high watermark."""
    settings = state.settings
    if settings.kafka_version is None:
        return False
    try:
        flags = behaviour(settings.kafka_version, settings.inter_broker_version)
    except ValueError:
        return False
    return flags.truncation == "truncate_to_high_watermark"


def led_on_after(state: State, missed: Term, first: int, end: int) -> Term | None:
    """The term in which a leader from before `missed` leads on, as if that had not been.

    It held [first, end), which the missed term lacked, and still does: had it followed, it would
    have cut it.
    """
    start = term_start(state, missed)
    if start is None or start > first:
        return None
    terms = state.history.terms
    led_before = {t.leader for t in terms if t.order < missed.order} - {missed.leader}
    for term in terms:
        if (
            term.leads_on
            and term.order > missed.order
            and term.leader in led_before
            and term.start_offset is not None
            and term.start_offset >= end
            and not _cut_before(state, term, first)
        ):
            return term
    return None


def _cut_before(state: State, term: Term, first: int) -> bool:
    """Whether a leader's log had been cut to the offset, or lost it, before it led in the term."""
    cuts = [(t.replica, t.to_offset, t.term_epoch) for t in state.history.truncations]
    cuts += [(s.replica, s.left_end_offset, s.leader_epoch) for s in state.history.storage_losses]
    return any(
        replica == term.leader
        and to_offset <= first
        and (leader_epoch is None or leader_epoch < term.leader_epoch)
        for replica, to_offset, leader_epoch in cuts
    )


def _may_begin_before(replica: Replica, offset: int) -> bool:
    """Whether an epoch may begin among records that nobody saw, right before the offset."""
    return replica.partial and any(
        s.end_offset == offset and not is_seen(s) for s in replica.log.spans
    )


def unwitnessed_election(state: State) -> tuple[Term, Term] | None:
    """An election that could lose committed records, where nothing tells what was committed.

    A leader from the ISR holds what was committed, unless it had cut to its high watermark (before
    KIP-101). Any other may not, and then the high watermark of the leader before it decides: from
    its copies, its lines or its trace.
    """
    any_may_lack = truncates_to_high_watermark(state)
    terms = state.history.terms
    for before, term in pairwise(terms):
        if term.leader == before.leader:
            continue
        if term.election_kind not in UNSURE_KINDS and not any_may_lack:
            continue
        start = term_start(state, term)
        earlier = [t for t in terms if t.order <= before.order]
        if start is not None and all(term_start(state, t) == start for t in earlier):
            continue
        if not any(_witnessed(state, t) for t in earlier if t.leader == before.leader):
            return before, term
    return None


def _witnessed(state: State, term: Term) -> bool:
    """Whether the high watermark that a leader reached by the end of its term is known."""
    if state.coverage.get(("replica_trace", term.leader), (False, None))[0]:
        return True
    return any(
        p.replica == term.leader
        and p.by_term is not None
        and p.by_term[0] >= term.leader_epoch
        and p.span.end_offset > 0
        for p in state.history.commitments
    )


def fate(state: State, ref: Reference, promise: Promise) -> tuple[list[Absence], list[Doubt]]:
    """What became of one promise: the parts absent from a later leader, and the parts in doubt."""
    if ref.candidates:
        return _fate_by_all(state, ref, promise)
    absences: list[Absence] = []
    doubts: list[Doubt] = []
    for first, end, term in _first_lacking_terms(state, promise):
        for part in _against_reference(state, ref, promise, first, end, term):
            if isinstance(part, Absence):
                absences.append(part)
            elif isinstance(part, Doubt):
                doubts.append(part)
    return absences, doubts


def _fate_by_all(
    state: State, ref: Reference, promise: Promise
) -> tuple[list[Absence], list[Doubt]]:
    """The same where any replica may lead: what every log lacks is absent, what some lack doubt."""
    by_leader = [fate(state, Reference(r.replica, r, None), promise) for r in ref.candidates]
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
            absences.append(replace(lacking[0], first_offset=first, end_offset=end))
        elif any(p.first_offset <= first and p.end_offset >= end for p in parts):
            doubts.append(
                Doubt(
                    first,
                    end,
                    promise,
                    "nothing names the leader, and not every replica is known to hold it",
                    "the controller's history (metadata log or state-change.log)",
                )
            )
    return absences, doubts


def _first_lacking_terms(state: State, promise: Promise) -> list[tuple[int, int, Term | None]]:
    """The promise cut into stretches by the first later term that began at or below them."""
    first, end = promise.span.first_offset, promise.span.end_offset
    if promise.by_term is None:
        return [(first, end, None)]
    result: list[tuple[int, int, Term | None]] = []
    for term in state.history.terms:
        if first >= end:
            break
        if term.order <= promise.by_term:
            continue
        start = term_start(state, term)
        if start is not None and start < end:
            cut = max(start, first)
            if promise.how == "acks_all" and led_on_after(state, term, cut, end):
                continue  # It may have been acknowledged after this term.
            if cut < end:
                result.append((cut, end, term))
                end = cut
    if first < end:
        result.append((first, end, None))
    return sorted(result, key=lambda r: r[0])


def _against_reference(
    state: State, ref: Reference, promise: Promise, first: int, end: int, term: Term | None
) -> list[Absence | Doubt | None]:
    replica = ref.replica
    if replica is None:
        if term is not None:
            return [_absence(state, ref, promise, first, end, term, back=False, final=None)]
        who = "the current leader" if ref.leader is None else f"leader {ref.leader}"
        what = (
            f"the log directory of broker {ref.leader}"
            if ref.leader is not None
            else ("the controller's history (metadata log or state-change.log)")
        )
        return [Doubt(first, end, promise, f"the log of {who} was not handed over", what)]
    result: list[Absence | Doubt | None] = []
    log = replica.log
    first = max(first, log.log_start_offset)
    inside = min(end, log.log_end_offset)
    wanted = Span(first, inside, *promise.span[2:])
    for a, b, _, held in overlaps([wanted] if first < inside else [], log.spans):
        result.append(_compare(state, ref, promise, a, b, held, term))
    for a, b in uncovered(first, inside, log.spans):
        result += _in_hole(state, ref, promise, a, b, term)
    beyond = max(first, inside)
    if beyond < end:
        result.append(_beyond_end(state, ref, promise, beyond, end, term))
    return result


def _compare(
    state: State,
    ref: Reference,
    promise: Promise,
    first: int,
    end: int,
    held: Span,
    term: Term | None,
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
        same = _by_position(state, promise, held, first, end, term)
        if same is True and not is_seen(held) and _has_unplaced_term(state, ref, promise):
            same = None
    if same is True:
        if term is None:
            return None
        return _absence(state, ref, promise, first, end, term, back=True, final=False)
    if same is False and _is_mismatched(state, promise, held, first, end):
        return Doubt(
            first,
            end,
            promise,
            "copies hold the same content there under different leader epochs",
            "the segments read again: the epoch is outside the CRC",
        )
    if same is False and not _may_be_of_an_unseen_term(state, promise, end):
        return _absence(state, ref, promise, first, end, term, back=False, final=True, held=held)
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
    return Doubt(
        first,
        end,
        promise,
        "known by offset alone, and a truncation or epoch start at or below it may have followed",
        "an acknowledgement log with payload ids",
    )


def _is_mismatched(state: State, promise: Promise, held: Span, first: int, end: int) -> bool:
    """Whether only a leader epoch makes another record of it, on which copies do not agree."""
    if held.content is None or promise.span.content is not None:
        return False
    return any(
        other.content == held.content and other.leader_epoch != held.leader_epoch
        for other in _all_known(state, first, end)
    )


def _may_be_of_an_unseen_term(state: State, promise: Promise, end: int) -> bool:
    """Whether a high watermark that a line tells may be of a later epoch than the replica's lines.

    A line more would make it so. That the replica lost what lay below it is seen where its log was
    cut, or came back shorter.
    """
    if promise.how not in ("load", "start_line"):
        return False
    replica = promise.replica
    cut = any(t.replica == replica and t.to_offset < end for t in state.history.truncations)
    short = any(
        s.replica == replica and s.left_end_offset < end for s in state.history.storage_losses
    )
    return not cut and not short


def lived_on_unseen(state: State, replica: Replica | None) -> bool:
    """Whether the log that a copy shows may have been cut since, where no line would tell."""
    if replica is None or not replica.stale:
        return False
    return ("broker_log", replica.replica) not in state.coverage


def _has_unplaced_term(state: State, ref: Reference, promise: Promise) -> bool:
    """Whether a later leader may have begun below the promise where only a part of the log was
    seen: its epoch may begin among the rest."""
    if ref.replica is None or not ref.replica.partial or promise.by_term is None:
        return False
    later = [t for t in state.history.terms if t.order > promise.by_term]
    return any(term_start(state, t) is None for t in later)


def _by_position(
    state: State, promise: Promise, held: Span, first: int, end: int, term: Term | None
) -> bool | None:
    """For a record known by offset alone: whether the record that stands there is the same one."""
    if promise.by_term is not None:
        if term is None:
            return True
        if held.leader_epoch is None:
            return None
        return held.leader_epoch <= promise.by_term[0]
    if not _first_to_stand_there(state, first) and not _never_cut(state, first, end):
        return None
    if any(same_record(held, other) is False for other in _all_known(state, first, end)):
        return None
    return True


def _first_to_stand_there(state: State, first: int) -> bool:
    """Whether nobody led from, and nobody cut to, that offset or below it after the first term."""
    for later in state.history.terms[1:]:
        start = term_start(state, later)
        if start is None or start <= first:
            return False
    return all(t.to_offset > first for t in state.history.truncations)


def _never_cut(state: State, first: int, end: int) -> bool:
    """Whether every broker that ever led still holds what it appended to [first, end) as leader.

    Then an acknowledged record can only be the one that stands there. It takes the lines of all
    replicas, since a truncation is seen in nothing else, and of each leader a copy of the range
    and the line of its first term, since stops count from there.
    """
    if not state.ever_assigned:
        return False
    for number in state.ever_assigned | state.replicas.keys():
        if not any(
            state.coverage.get((subject, number), (False, None))[0]
            for subject in ("broker_log", "replica_trace")
        ):
            return False
    history = state.history
    first_terms = {t.leader: t for t in reversed(history.terms)}
    leaders = first_terms.keys()
    cuts = [t.to_offset for t in history.truncations if t.replica in leaders]
    cuts += [s.left_end_offset for s in history.storage_losses if s.replica in leaders]
    for leader in leaders:
        replica = state.replicas.get(leader)
        if replica is None or not log_is_known(state, replica):
            return False
        if uncovered(first, end, [s for s in replica.log.spans if is_seen(s)]):
            return False
        if replica.may_have_lost_from is not None:
            cuts.append(replica.may_have_lost_from)
    seen = all(t.start_event_id for t in first_terms.values())
    return seen and all(cut >= end for cut in cuts)


def _all_known(state: State, first: int, end: int) -> list[Span]:
    """What any replica holds or held in [first, end), as far as copies and traces show."""
    logs = [r.log.spans for r in state.replicas.values()]
    logs += [c.spans for c in state.history.copies]
    return [span for spans in logs for span in clipped(spans, first, end)]


def _in_hole(
    state: State, ref: Reference, promise: Promise, first: int, end: int, term: Term | None
) -> list[Absence | Doubt | None]:
    """Offsets inside the reference log that no known span covers: compacted, or unseen."""
    replica = ref.replica
    assert replica is not None
    shown = replica.log.spans[-1].end_offset if replica.log.spans else replica.log.log_start_offset
    if replica.captured and first < shown:
        # A copy shows every batch: a hole is compaction or a gap the log had from the start.
        return [None]
    if term is not None:
        return [_absence(state, ref, promise, first, end, term, back=False, final=None)]
    return [
        Doubt(
            first,
            end,
            promise,
            f"nobody saw what broker {ref.leader} holds there",
            f"the log directory of broker {ref.leader}",
        )
    ]


def tail_is_known(state: State, replica: Replica) -> bool:
    """Whether the log still ends where it was last seen to: a broker that runs on may have grown
    it, unless its whole trace is here."""
    traced = state.coverage.get(("replica_trace", replica.replica), (False, None))[0]
    return replica.tail_known and (traced or replica.stopped is not False)


def _beyond_end(
    state: State, ref: Reference, promise: Promise, first: int, end: int, term: Term | None
) -> Absence | Doubt:
    replica = ref.replica
    assert replica is not None
    if term is not None and replica.partial:
        return _absence(state, ref, promise, first, end, term, back=False, final=None)
    if term is not None or tail_is_known(state, replica):
        return _absence(state, ref, promise, first, end, term, back=False, final=True)
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


def _absence(
    state: State,
    ref: Reference,
    promise: Promise,
    first: int,
    end: int,
    term: Term | None,
    *,
    back: bool,
    final: bool | None,
    held: Span | None = None,
) -> Absence:
    steps = [Step(promise.event_id, _promised(promise, first, end))]
    if term is not None:
        start = term_start(state, term)
        steps.append(
            Step(
                term.start_event_id or term.event_id,
                f"broker {term.leader} leads epoch {term.leader_epoch} from offset {start}: "
                f"its log ended below {end}",
            )
        )
    replica = ref.replica
    if final and replica is not None:
        because = f"leader {ref.leader}'s log ends at {replica.log.log_end_offset}"
        if held is not None:
            leader_epoch = "" if held.leader_epoch is None else f" of epoch {held.leader_epoch}"
            because = (
                f"leader {ref.leader} holds another record{leader_epoch} at {_range(first, end)}"
            )
        steps.append(Step(replica.as_of or promise.event_id, because))
    return Absence(first, end, promise, term, back, final, steps)


def _range(first: int, end: int) -> str:
    return f"offset {first}" if end == first + 1 else f"offsets {first}..{end - 1}"


def _promised(promise: Promise, first: int, end: int) -> str:
    what = {
        "acks_all": "acknowledged to a producer with acks=all",
        "acks_1": "acknowledged to a producer with acks=1",
        "consumed": "given to a consumer",
        "checkpoint": f"below replica {promise.replica}'s checkpointed high watermark",
        "load": f"below the high watermark that replica {promise.replica} loaded",
        "start_line": f"below replica {promise.replica}'s high watermark at a transition",
        "high_watermark": f"below replica {promise.replica}'s high watermark",
    }[promise.how]
    return f"{_range(first, end)}: {what}"
