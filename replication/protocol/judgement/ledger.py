"""The loss ledger: absences joined into rows of one tier, status and cause each.

Loss has tiers, never one number: what was promised decides the tier, where copies survive decides
the status, the earliest step without which the record survives is the cause.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from replication.protocol.ground.model import Span, clipped, is_seen, same_record
from replication.protocol.ground.topic_partition import (
    ANY_OCCURRENCE,
    LeaderTerm,
    Promise,
    State,
)
from replication.protocol.ground.verdict import Finding, Step
from replication.protocol.judgement.absence import Absence
from replication.protocol.judgement.contract import allowed_by, contract_of
from replication.protocol.judgement.declared_gaps import Gaps
from replication.protocol.judgement.divergence import is_cut_by_following
from replication.protocol.judgement.loss_cause import borders, cause_of
from replication.protocol.judgement.lost_record import Lost, lacks
from replication.protocol.judgement.reference import (
    Reference,
    lived_on_unseen,
    log_is_covered,
    tail_is_known,
)
from replication.protocol.judgement.term_starts import TermStarts
from replication.protocol.judgement.unseen_terms import never_began

TIERS = (
    "consumed", "acknowledged_by_isr", "committed", "acknowledged_by_leader",
    "never_acknowledged", "undetermined",
)  # fmt: skip
Identity = tuple[int | None, int | None]
BY_HIGH_WATERMARK = ("committed", "never_acknowledged", "undetermined")
FULLY_KNOWN = 3
TIER_OF = {
    "consumed": "consumed",
    "acks_all": "acknowledged_by_isr",
    "acks_1": "acknowledged_by_leader",
}


@dataclass(slots=True)
class SurvivingCopy:
    """A place that still holds lost records. kind: replica (a current log) or salvage.

    as_of: ms since the Unix epoch of the newest record beside them. shown_by: the event that
    showed the copy.
    """

    replica: int
    kind: str
    as_of: int | None
    destroyed_when: str | None
    shown_by: str | None = None


@dataclass(slots=True)
class Loss:
    """One row: records [first_offset, end_offset) of one identity, tier, status and cause.

    lost_in: the first term of a leader that lacks them for good. allowed_by: (setting, value).
    more: others may be gone, too: of what clients were told some is in doubt or declared missing.
    """

    first_offset: int
    end_offset: int
    record: Span
    tier: str
    absences: list[Absence]
    status: str = "lost"
    contract: str = "unknown"
    cause: str = "unknown"
    contributing: tuple[str, ...] = ()
    copies: list[SurvivingCopy] = field(default_factory=list)
    missing_replicas: tuple[int, ...] = ()
    finding: Finding | None = None
    lost_in: LeaderTerm | None = None
    allowed_by: list[tuple[str, str]] = field(default_factory=list)
    more: bool = False

    @property
    def term(self) -> LeaderTerm | None:
        """The first later term that lacked the records."""
        return self.absences[0].term

    @property
    def was_committed(self) -> bool:
        """Whether the records are known to have been committed; acknowledged they may be anyway."""
        if self.tier == "acknowledged_by_leader":
            return False
        return any(
            a.was_committed or (a.promise.how != "acks_1" and not a.perhaps_by_zombie)
            for a in self.absences
        )

    @property
    def acknowledged_from(self) -> int | None:
        """Ms since the Unix epoch from which producers were told of them; None: not known."""
        return _if_all_known(min, [p.observed_at for p in self._acknowledgements])

    @property
    def acknowledged_until(self) -> int | None:
        """The same, of the last time."""
        return _if_all_known(max, [p.until for p in self._acknowledgements])

    @property
    def _acknowledgements(self) -> list[Promise]:
        return [a.promise for a in self.absences if a.promise.how in ("acks_all", "acks_1")]

    @property
    def end_offset_bound(self) -> str:
        """exact where producers or consumers name the records, and all that they were told is here;
        at_least for a high watermark."""
        return "at_least" if self.more or self.tier in BY_HIGH_WATERMARK else "exact"


def _if_all_known(choose: Callable[[list[int]], int], moments: list[int | None]) -> int | None:
    known = [at for at in moments if at is not None]
    return choose(known) if known and len(known) == len(moments) else None


def losses(
    state: State, ref: Reference, absences: list[Absence], gaps: Gaps | None = None
) -> list[Loss]:
    """The ledger's rows, in offset order."""
    rows = []
    told_apart = sorted(borders(state))
    unnamed = [p for p in state.history.acknowledgements if not is_seen(p.span)]
    for first, end, record, tier, parts in _segments(state, ref.starts, absences, unnamed):
        inside = [b for b in told_apart if first < b < end]
        for a, b in pairwise([first, *inside, end]):
            span = Span(a, b, *record[2:])
            tier = _known_tier(state, gaps, tier, span, parts)
            loss = Loss(a, b, span, tier, parts)
            _decide_status(state, ref, loss)
            cause = cause_of(state, span, tier, parts)
            loss.cause, loss.contributing = cause.name, cause.contributing
            loss.contract = contract_of(state, cause, tier, span)
            loss.lost_in, loss.allowed_by = cause.term, allowed_by(state, cause, tier, span)
            loss.more = gaps is not None and bool(gaps.clients)
            rows.append(loss)
    joined = _joined(rows)
    for loss in joined:
        loss.finding = _finding(loss)
    return joined


def _tier(absence: Absence) -> str:
    return "committed" if absence.was_committed else TIER_OF.get(absence.promise.how, "committed")


def _known_tier(
    state: State, gaps: Gaps | None, tier: str, record: Span, parts: list[Absence]
) -> str:
    """The tier of records below a high watermark, by what the acknowledgements can tell of them.

    Under a log of every producer nobody was told of them, unless an acknowledgement at acks=1 is,
    or may be, theirs; where some acknowledgements are declared missing, one of those may be.
    """
    if tier != "committed":
        return tier
    if gaps is not None and "acknowledgements" in gaps.clients:
        return "undetermined"
    if any(_is_ack(part) for part in parts) or not state.covered("all_producers"):
        return tier
    told = state.history.promised_in("acknowledgements", *record[:2])
    may_be_told = any(same_record(p.span, record) is not False for p in told)
    return tier if may_be_told else "never_acknowledged"


def _segments(
    state: State, starts: TermStarts, absences: list[Absence], unnamed: list[Promise]
) -> list[tuple[int, int, Span, str, list[Absence]]]:
    """Absences cut at each other's borders, one segment per record identity, the best tier.

    A promise that knows less of the record's identity (a high watermark's offset, a traced append
    without its bytes) strengthens the one record it can mean, of those that were written by then;
    where it could mean several, it adds nothing to them. Two acknowledgements of one offset are of
    two records, though one of them (unnamed) names none.
    """
    known: dict[Identity, list[Absence]] = {}
    for absence in sorted(absences, key=_sureness):
        identity = absence.promise.span[2:]
        rest = [(absence.first_offset, absence.end_offset)]
        if _specific(identity) < FULLY_KNOWN:
            rest = _add_to_better_known(state, starts, known, absence, identity, unnamed)
        for first, end in rest:
            part = replace(absence, first_offset=first, end_offset=end)
            known.setdefault(identity, []).append(part)
    result = []
    for identity, parts in sorted(known.items(), key=lambda kv: repr(kv[0])):
        result += _cut(identity, parts)
    return sorted(result, key=lambda r: (r[0], r[1], repr(r[2])))


def _sureness(absence: Absence) -> tuple[int, bool, tuple[int, int]]:
    """Those first that know most of the record's identity, and were made first."""
    latest = absence.promise.latest_term or (-1, 0)
    return -_specific(absence.promise.span[2:]), not _is_ack(absence), latest


def _is_ack(absence: Absence) -> bool:
    return absence.promise.how in ("acks_all", "acks_1")


def _specific(identity: Identity) -> int:
    """How much of a record's identity is known; content counts more than the leader epoch."""
    return 2 * (identity[1] is not None) + (identity[0] is not None)


def _add_to_better_known(
    state: State,
    starts: TermStarts,
    known: dict[Identity, list[Absence]],
    absence: Absence,
    identity: Identity,
    unnamed: list[Promise],
) -> list[tuple[int, int]]:
    """Adds the absence, offset by offset, to the one better known record it can mean there; the
    offsets left over."""
    candidates = [
        (other, p)
        for other, parts in known.items()
        if _compatible(identity, other) and _specific(other) > _specific(identity)
        if not _is_later(other, absence.promise)
        for p in parts
        if p.first_offset < absence.end_offset and absence.first_offset < p.end_offset
    ]
    written_over = {
        other: _written_over_from(state, starts, other, absence.promise) for other, _ in candidates
    }
    # What is acknowledged without a name where a named record is, too, is another one.
    acked = [p for _, p in candidates if _is_ack(p)] if _specific(identity) == 0 else []
    cuts = {o for _, p in candidates for o in (p.first_offset, p.end_offset)}
    cuts |= {o for p in unnamed for o in p.span[:2]} if acked else set()
    cuts |= {o for o in written_over.values() if o is not None}
    ends = (absence.first_offset, absence.end_offset)
    rest: list[tuple[int, int]] = []
    for first, end in pairwise(sorted({*ends, *(o for o in cuts if ends[0] < o < ends[1])})):
        meant = {i for i, p in candidates if p.first_offset <= first and p.end_offset >= end}
        told = {
            p.promise.event_id for p in acked if p.first_offset <= first and p.end_offset >= end
        }
        if told and _is_ack(absence):
            meant = set()
        elif told and any(
            p.span.first_offset <= first and p.span.end_offset >= end and p.event_id not in told
            for p in unnamed
        ):
            meant.add(identity)
        one = meant.pop() if len(meant) == 1 else None
        bound = None if one is None else written_over.get(one)
        if (
            one is not None
            and bound is not None
            and bound <= first
            and _by_answer_alone(known[one], first)
        ):
            rest.append((first, end))
        elif one is not None:
            known[one].append(replace(absence, first_offset=first, end_offset=end))
        elif not meant:
            rest.append((first, end))
    return rest


def _by_answer_alone(parts: list[Absence], offset: int) -> bool:
    """Whether nothing but an answer at acks=1 tells what was promised of a record."""
    here = [p for p in parts if p.first_offset <= offset < p.end_offset]
    return all(_tier(p) == "acknowledged_by_leader" for p in here)


def _written_over_from(
    state: State, starts: TermStarts, identity: Identity, promise: Promise
) -> int | None:
    """From which offset on a high watermark may be of other records than these: a later leader had
    begun below them by then, or nothing tells from where. None where none had."""
    written_in, latest = identity[0], promise.latest_term
    if written_in is None or latest is None or promise.how in TIER_OF:
        return None
    later = range(starts.after((written_in, ANY_OCCURRENCE)), starts.after(latest))
    begun = [place for place in later if not never_began(state, starts.terms[place])]
    return min((starts.starts[place] or 0 for place in begun), default=None)


def may_be_about(loss: Loss, absence: Absence) -> bool:
    """Whether a row may be of records that are absent: of offsets alone, any there may that had
    been written when they were promised."""
    overlap = loss.first_offset < absence.end_offset and absence.first_offset < loss.end_offset
    if _is_later(loss.record[2:], absence.promise):
        return False
    epochs = {loss.record.leader_epoch, absence.promise.span.leader_epoch} - {None}
    return overlap and len(epochs) < 2


def _is_later(identity: Identity, promise: Promise) -> bool:
    """Whether a record was written in an epoch that began only after the promise was made."""
    leader_epoch, latest = identity[0], promise.latest_term
    return leader_epoch is not None and latest is not None and leader_epoch > latest[0]


def _compatible(a: Identity, b: Identity) -> bool:
    return all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))


def _cut(
    identity: Identity, parts: list[Absence]
) -> list[tuple[int, int, Span, str, list[Absence]]]:
    borders = sorted({p.first_offset for p in parts} | {p.end_offset for p in parts})
    result = []
    for first, end in pairwise(borders):
        here = [p for p in parts if p.first_offset <= first and p.end_offset >= end]
        if here:
            here.sort(key=lambda p: TIERS.index(_tier(p)))
            result.append((first, end, Span(first, end, *identity), _tier(here[0]), here))
    return result


def _decide_status(state: State, ref: Reference, loss: Loss) -> None:
    if all(p.back for p in loss.absences) or _leads_with(state, ref, loss):
        loss.status = "recovered"
        return
    for number, replica in sorted(state.replicas.items()):
        if number == ref.leader or not _holds(replica.log.spans, loss):
            continue
        if _still_counts(state, number) and state.still_has_records(replica):
            kind, when = "replica", _destroyed_when(state, ref, number, loss.first_offset)
        elif replica.stale:
            kind, when = "salvage", None  # A copy of what the replica may have lost since.
        else:
            continue
        copy = SurvivingCopy(number, kind, replica.observed_at, when, replica.as_of)
        loss.copies.append(copy)
    salvage: dict[tuple[int, str], SurvivingCopy] = {}
    for aside in state.history.copies:
        if _holds(aside.spans, loss):
            when = None if aside.kind == "older" else "the directory is deleted"
            found = SurvivingCopy(aside.replica, "salvage", aside.observed_at, when, aside.as_of)
            salvage[(aside.replica, aside.kind)] = found
    loss.copies += [salvage[key] for key in sorted(salvage)]
    # The log that counts may have them again: a leader was without them, nobody saw the last one's.
    last = ref.replica
    known = bool(ref.candidates) if last is None else tail_is_known(state, last)
    unseen = not known and not any(p.final for p in loss.absences)
    if any(p.perhaps_back for p in loss.absences):
        loss.status = "undetermined"
        return
    if any(c.kind == "replica" for c in loss.copies) and not unseen:
        loss.status = "recoverable"
        return
    assigned = set(state.settings.assigned_replicas or ()) | state.ever_assigned
    assigned |= set(state.replicas)
    loss.missing_replicas = tuple(
        sorted(r for r in assigned if not _is_known_to_lack(state, r, loss, r == ref.leader))
    )
    set_aside = any(c.kind != "older" for c in state.history.copies if _holds(c.spans, loss))
    if loss.missing_replicas or set_aside:
        loss.status = "recoverable" if set_aside and not unseen else "undetermined"


def _leads_with(state: State, ref: Reference, loss: Loss) -> bool:
    """Whether the last leader, whose log is not here, began with the records by its own lines."""
    term = ref.term
    if ref.replica is not None or term is None or not term.start_event_id:
        return False
    if not log_is_covered(state, term.leader) or any(p.final for p in loss.absences):
        return False
    return all(
        lacks(state, term, Lost(loss.record._replace(first_offset=offset), loss.tier, None))
        is False
        for offset in (loss.first_offset, loss.end_offset - 1)
    )


def _still_counts(state: State, replica: int) -> bool:
    known = state.replicas.get(replica)
    return state.log_is_known(known) and not lived_on_unseen(state, known)


def _is_known_to_lack(state: State, number: int, loss: Loss, leads: bool) -> bool:
    """Whether it was seen what the replica has at the lost offsets, and it is another record.

    That the leader's is another one has been proven before.
    """
    replica = state.replicas.get(number)
    if replica is None or not _still_counts(state, number):
        return False
    shown = replica.log.spans[-1].end_offset if replica.log.spans else 0
    if loss.end_offset > shown and not tail_is_known(state, replica):
        return False
    held = clipped(replica.log.spans, loss.first_offset, loss.first_offset + 1)
    if not leads and any(_may_be_it(span, loss) for span in held):
        return False
    if not state.still_has_records(replica) and any(same_record(s, loss.record) for s in held):
        return False
    return replica.shows(loss.first_offset) and replica.shows(loss.end_offset - 1)


def _may_be_it(span: Span, loss: Loss) -> bool:
    """Whether nothing tells the span from the lost record: neither identity nor a later epoch."""
    if same_record(span, loss.record) is not None:
        return False
    made_by = [a.promise.latest_term[0] for a in loss.absences if a.promise.latest_term is not None]
    later = span.leader_epoch is not None and any(span.leader_epoch > e for e in made_by)
    return not later


def _holds(spans: list[Span], loss: Loss) -> bool:
    """Whether spans hold the lost record at its first offset, as far as can be told."""
    for span in clipped(spans, loss.first_offset, loss.first_offset + 1):
        if same_record(span, loss.record) is True:
            return True
    return False


def _destroyed_when(state: State, ref: Reference, replica: int, offset: int) -> str:
    """What would end the copy: a start as a follower only where the version's rule cuts there."""
    held = state.replicas[replica]
    isr = state.registration.isr or ()
    gone = f"broker {replica} loses this directory"
    if not is_cut_by_following(state, ref, held, offset):
        return gone
    if held.stopped or replica not in isr:
        return f"broker {replica} starts as a follower"
    return f"broker {replica} truncates its log or loses this directory"


def _joined(rows: list[Loss]) -> list[Loss]:
    """Neighbouring rows with everything but their offsets equal become one."""
    result: list[Loss] = []
    for loss in rows:
        last = result[-1] if result else None
        if last is not None and last.end_offset == loss.first_offset and _same_story(last, loss):
            last.end_offset = loss.end_offset
            last.absences += [a for a in loss.absences if a not in last.absences]
        else:
            result.append(loss)
    return result


def _same_story(a: Loss, b: Loss) -> bool:
    return (
        (a.tier, a.status, a.cause, a.contributing, a.contract, a.record.leader_epoch)
        == (b.tier, b.status, b.cause, b.contributing, b.contract, b.record.leader_epoch)
        and [(c.replica, c.kind) for c in a.copies] == [(c.replica, c.kind) for c in b.copies]
        and (a.term is b.term and a.lost_in is b.lost_in)
    )


def _finding(loss: Loss) -> Finding:
    committed = loss.was_committed
    invariant = "committed_records_survive" if committed else "acknowledged_records_survive"
    last = loss.end_offset - 1
    where = (
        f"offset {last}" if last == loss.first_offset else f"offsets {loss.first_offset}..{last}"
    )
    words = {
        "consumed": "given to a consumer",
        "acknowledged_by_isr": "acknowledged with acks=all",
        "committed": "committed (below a valid high watermark)",
        "never_acknowledged": "committed, never acknowledged to a producer",
        "undetermined": "committed, perhaps acknowledged: some acknowledgements are missing",
        "acknowledged_by_leader": "acknowledged with acks=1",
    }[loss.tier]
    ending = {
        "lost": "on no replica any more",
        "recoverable": "not in the leader's history, a copy survives",
        "recovered": "missing under an earlier leader, and back",
        "undetermined": "not in the leader's history; a replica's log was not handed over",
    }[loss.status]
    if loss.status == "undetermined" and not loss.missing_replicas:
        ending = "missing under a leader; whether they are back nothing tells"
    steps: list[Step] = []
    for absence in loss.absences:
        steps += [s for s in absence.steps if s not in steps]
    return Finding(
        invariant,
        "critical" if committed and loss.status != "recovered" else "warning",
        f"{where}, {words}: {ending} ({loss.cause})",
        (
            "loss",
            loss.first_offset,
            loss.end_offset,
            loss.record.leader_epoch,
            loss.record.content,
            loss.tier,
        ),
        steps[:12],
    )
