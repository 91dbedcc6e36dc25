"""Why records are gone: the earliest step without which they survive, and what else contributed.

Told by taking steps away, not by time. A record leaves the leaders' line of records when a leader
without it takes over for good. That leader had lost it from its disk, or cut it from its log, or
never had it: without the loss or the cut it leads with the record; without an unclean election
some member of the ISR leads, which helps only if one of them still has the record.
"""

from dataclasses import dataclass, replace

from replication.protocol.ground.model import Span, clipped, same_record
from replication.protocol.ground.topic_partition import LeaderTerm, State, StorageLoss, Truncation
from replication.protocol.judgement.absence import Absence
from replication.protocol.judgement.lacking_terms import led_on_after
from replication.protocol.judgement.reference import log_is_known
from replication.protocol.judgement.term_starts import term_start
from replication.protocol.judgement.unseen_terms import never_began, truncates_to_high_watermark

UNCLEAN = ("unclean", "last_known_leader")
BY_DISK = ("storage_loss", "last_replica_standing")
# To its high watermark a follower cuts by rule, or for want of an answer (KAFKA-7415).
BY_EPOCH = ("leader_epoch", "diverging_epoch")
BY_CUT = {
    "high_watermark": "truncate_to_high_watermark",
    "leader_epoch": "truncate_to_high_watermark",
    "diverging_epoch": "truncate_to_high_watermark",
    "out_of_range": "out_of_range_reset",
}


@dataclass(frozen=True, slots=True)
class Lost:
    """The record at one offset that is gone. written_in: its leader epoch, None if nobody saw it.

    not_after: the order of the term by whose end it had been promised, None if not known.
    """

    record: Span
    tier: str
    not_after: tuple[int, int] | None

    @property
    def offset(self) -> int:
        """Where it stood."""
        return self.record.first_offset

    @property
    def written_in(self) -> int | None:
        """Its leader epoch."""
        return self.record.leader_epoch


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause and the contributing ones in the ledger's words.

    election: of a leader without the record, where that was unclean. lossy: who lost the record
    from its disk. term: the first of a leader without it.
    """

    name: str
    contributing: tuple[str, ...] = ()
    election: LeaderTerm | None = None
    lossy: frozenset[int] = frozenset()
    term: LeaderTerm | None = None


def borders(state: State) -> set[int]:
    """Offsets at which the story of lost records may change."""
    history = state.history
    found: set[int | None] = {term_start(state, t) for t in history.terms}
    for cut in history.truncations:
        found |= {cut.to_offset, cut.from_offset}
    for loss in history.storage_losses:
        found |= {loss.left_end_offset, loss.had_end_offset}
    for replica in state.replicas.values():
        found |= {s.first_offset for s in replica.log.spans} | {replica.log.log_end_offset}
    return {b for b in found if b is not None}


def cause_of(state: State, record: Span, tier: str, absences: list[Absence]) -> Cause:
    """Why the record at record.first_offset is gone."""
    orders = [a.promise.latest_term for a in absences if a.promise.latest_term is not None]
    lost = Lost(record, tier, min(orders, default=None))
    term = losing_term(state, lost, absences)
    return replace(_cause(state, lost, term), term=term)


def _cause(state: State, lost: Lost, term: LeaderTerm | None) -> Cause:
    """The cause where the leader of this term was the first for good without the record."""
    leader = term.leader if term is not None else _last_leader(state)
    if leader is None:
        return Cause("unknown")
    unclean = term is not None and term.election_kind in UNCLEAN
    lossy = _lossy(state, lost, term)
    election = term if unclean else None
    took = _taken_from(state, lost, leader, term)
    if term is not None and unclean and term.isr_before and leader not in term.isr_before:
        return _by_election(state, lost, term, took, lossy)
    extra = ("unclean_election",) if unclean else ()
    if isinstance(took, StorageLoss) or (took is None and _restarted_short(state, lost, term)):
        return _by_storage(state, term, took, extra, election, lossy | {leader})
    if took is not None:
        return Cause(_cut_name(state, took), extra, election, lossy)
    if unclean:
        return Cause("unclean_election", (), election, lossy)
    if lost.tier == "acknowledged_by_leader":
        name = "unknown" if _may_have_lost(state, lost, leader, term) else "acks_one_failover"
        return Cause(name, (), None, lossy)
    return Cause(_by_known_defect(state, lost, term), (), None, lossy)


def _by_election(
    state: State,
    lost: Lost,
    term: LeaderTerm,
    took: Truncation | StorageLoss | None,
    lossy: frozenset[int],
) -> Cause:
    """The unclean election of a replica outside the ISR, unless all members had lost the record.

    What a replica loses or cuts outside the ISR is not yet missed: it fetches it again.
    """
    if term.isr_before and set(term.isr_before) <= lossy:
        return _by_storage(state, term, None, ("unclean_election",), term, lossy)
    extra: tuple[str, ...] = ()
    if isinstance(took, StorageLoss):
        extra = ("storage_loss",)
    elif took is not None:
        extra = (_cut_name(state, took),)
    return Cause("unclean_election", extra, term, lossy)


def losing_term(state: State, lost: Lost, absences: list[Absence]) -> LeaderTerm | None:
    """The first of those terms in a row, up to the last one, whose leaders lack the record.

    Where the record is back under the last leader: the first term that is known to lack it.
    """
    found: LeaderTerm | None = None
    after = _written_at(lost)
    for term in state.history.terms:
        if after is None or term.order <= after or never_began(state, term):
            continue
        lacking = lacks(state, term, lost)
        if lacking is False:
            found = None
        elif lacking and found is None:
            found = term
    if found is not None:
        return _elected_in(state, found)
    known = [a.term for a in absences if a.term is not None]
    if known or lost.written_in is not None:
        # Gone from the last leader's own log, where no later one began without it.
        return known[0] if known else None
    return _term_by_time(state, lost, absences)


def _elected_in(state: State, term: LeaderTerm) -> LeaderTerm:
    """The unclean election of a leader that came to lead only in a later epoch."""
    chain = [term]
    for earlier in reversed([t for t in state.history.terms if t.order < term.order]):
        if earlier.leader != term.leader or not never_began(state, earlier):
            break
        chain.append(earlier)
    return next((t for t in reversed(chain) if t.election_kind in UNCLEAN), term)


def _written_at(lost: Lost) -> tuple[int, int] | None:
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
        again = _next_start(state, term)
        return None if again is None else lacks(state, again, lost)
    if start <= lost.offset:
        if term.occurrence and term.leader_epoch == lost.written_in:
            # The record may have been written after the restart.
            return _taken_from(state, lost, term.leader, term) is not None or None
        return True
    if lost.written_in is not None and _slept_through(state, term, lost.written_in):
        return True
    if _wrote_and_kept(state, term, lost):
        return False
    held = _held_by(state, term, lost.offset)
    if held is None:
        return None
    same = same_record(held, lost.record)
    return None if same is None else not same


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
    cuts = _cuts(state, term.leader, lost.offset) if wrote else []
    return wrote and not any(not _is_after(c, term) and _is_of(c, lost) for c in cuts)


def _held_by(state: State, term: LeaderTerm, offset: int) -> Span | None:
    """What stood at the offset in the leader's log when the term began.

    What it lost first after that, else what stands there still.
    """
    replica = state.replicas.get(term.leader)
    if replica is None:
        return None
    later = [c for c in _cuts(state, term.leader, offset) if _is_after(c, term)]
    if later:
        first = min(later, key=lambda c: c.at)
        spans = first.dropped if isinstance(first, Truncation) else first.spans
    elif log_is_known(state, replica):
        spans = replica.log.spans
    else:
        return None
    held = next(iter(clipped(spans, offset, offset + 1)), None)
    if held is not None and (held.leader_epoch or 0) > term.leader_epoch:
        return None
    return held


def _cuts(state: State, replica: int, offset: int) -> list[Truncation | StorageLoss]:
    """The steps by which the replica's log lost what stood at the offset, in its own order."""
    found: list[Truncation | StorageLoss] = [
        t
        for t in state.history.truncations
        if t.replica == replica
        and t.to_offset <= offset
        and (t.from_offset is None or offset < t.from_offset)
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


def _is_after(cut: Truncation | StorageLoss, term: LeaderTerm) -> bool:
    """Whether the leader of a term lost records only after it had begun to lead."""
    if term.start_event_id:
        return cut.at > term.started_at
    leader_epoch = _epoch_of(cut)
    return leader_epoch is not None and leader_epoch > term.leader_epoch


def _is_of(cut: Truncation | StorageLoss, lost: Lost) -> bool:
    """Whether a cut can have taken this very record."""
    leader_epoch = _epoch_of(cut)
    if lost.written_in is not None and leader_epoch is not None and leader_epoch < lost.written_in:
        return False
    spans = cut.dropped if isinstance(cut, Truncation) else cut.spans
    held = next(iter(clipped(spans, lost.offset, lost.offset + 1)), None)
    return held is None or same_record(held, lost.record) is not False


def _taken_from(
    state: State, lost: Lost, replica: int, term: LeaderTerm | None
) -> Truncation | StorageLoss | None:
    """The last step, before it led, by which a replica lost the record that it had.

    A cut on the word of a leader that lacks the record itself is what the rules want; that leader
    is to blame.
    """
    cuts = [c for c in _cuts(state, replica, lost.offset) if term is None or not _is_after(c, term)]
    if not cuts or not _is_of(cuts[-1], lost):
        return None
    last = cuts[-1]
    if isinstance(last, StorageLoss):
        return last
    followed = next((t for t in state.history.terms if t.leader_epoch == last.term_epoch), None)
    lacking = None if followed is None else lacks(state, followed, lost)
    written = _written_at(lost)
    if followed is None or written is None:
        lacking = None
    elif followed.leader_epoch <= written[0]:
        # By whose end it had been promised, that leader has had it.
        earlier = lost.written_in is None and followed.leader_epoch < written[0]
        lacking = earlier and _never_reached(state, followed, lost.offset)
    if lacking or (lacking is None and last.reason in BY_EPOCH):
        return None
    return last


def _never_reached(state: State, term: LeaderTerm, offset: int) -> bool:
    """Whether the leader's log ended at or below the offset at both ends of its term."""
    start, end = term_start(state, term), term.end_log_end_offset
    return start is not None and end is not None and max(start, end) <= offset


def _lossy(state: State, lost: Lost, term: LeaderTerm | None) -> frozenset[int]:
    """Who lost the record from its disk before the term."""
    found = set()
    for loss in state.history.storage_losses:
        if not loss.left_end_offset <= lost.offset < loss.had_end_offset or not _is_of(loss, lost):
            continue
        if term is not None and loss.leader_epoch is not None:
            if loss.leader_epoch > term.leader_epoch:
                continue
            if loss.replica == term.leader and _is_after(loss, term):
                continue
        found.add(loss.replica)
    return frozenset(found)


def _may_have_lost(state: State, lost: Lost, leader: int, term: LeaderTerm | None) -> bool:
    """Whether the leader's disk came back shorter, from an end that nobody saw: it may have fetched
    the record before."""
    return any(
        loss.replica == leader
        and loss.had_end_offset <= lost.offset
        and (term is None or not _is_after(loss, term))
        and _is_of(loss, lost)
        for loss in state.history.storage_losses
    )


def _restarted_short(state: State, lost: Lost, term: LeaderTerm | None) -> bool:
    """Whether the record was written by the leader itself, which leads again without it and had
    nobody to follow in between."""
    if term is None:
        return False
    terms = [t for t in state.history.terms if t.order <= term.order]
    # Who wrote a record without an epoch only a single leader tells.
    between = [t for t in terms if lost.written_in is None or (lost.written_in, 0) <= t.order]
    alone = bool(between) and {t.leader for t in between} == {term.leader}
    start = term_start(state, term)
    return alone and start is not None and start <= lost.offset and len(between) > 1


def _by_storage(
    state: State,
    term: LeaderTerm | None,
    took: StorageLoss | None,
    extra: tuple[str, ...],
    election: LeaderTerm | None,
    lossy: frozenset[int],
) -> Cause:
    """Storage loss, or that of the last one that stood (KIP-966): of a member of an ISR that was
    below min.insync.replicas before the election that failed."""
    term = _led_short(state, term, took)
    needed = state.min_insync_replicas_in(term)
    isr = _isr_in_force(term, took)
    if needed is not None and needed >= 2 and isr and len(isr) < needed:
        return Cause("last_replica_standing", ("storage_loss", *extra), election, lossy)
    return Cause("storage_loss", extra, election, lossy)


def _led_short(
    state: State, term: LeaderTerm | None, took: StorageLoss | None
) -> LeaderTerm | None:
    """The first term that the replica led after it had come back short."""
    if term is None or took is None:
        return term
    led = [t for t in state.history.terms if t.leader == took.replica]
    return next((t for t in led if t.start_event_id and not _is_after(took, t)), term)


def _isr_in_force(term: LeaderTerm | None, took: StorageLoss | None) -> tuple[int, ...] | None:
    """The ISR before the election of the leader that came back short.

    Leading again in one's own epoch, or in one raised for a smaller ISR, is no election.
    """
    if term is not None:
        isr = term.isr if term.election_kind == "same_leader" else term.isr_before
        if isr:
            return isr
    return None if took is None else took.isr


def _cut_name(state: State, cut: Truncation) -> str:
    if cut.reason == "unknown" and truncates_to_high_watermark(state):
        return "truncate_to_high_watermark"
    return BY_CUT.get(cut.reason, "unknown")


def _last_leader(state: State) -> int | None:
    if state.registration.leader is not None:
        return state.registration.leader
    terms = state.history.terms
    return terms[-1].leader if terms else None


def _term_by_time(state: State, lost: Lost, absences: list[Absence]) -> LeaderTerm | None:
    """For records whose epoch is unknown: the first change of leader after the promise was made,
    among those that could lose it. Clocks decide only between several.

    Only the cause rests on it, never the verdict.
    """
    terms = state.history.terms
    led = [t for t in terms if not never_began(state, t)]
    could = [t for t in led if lacks(state, t, lost) is not False]
    changes = [t for t in could if t is not terms[0]]
    if len(changes) == 1 and changes[0].start_offset is not None:
        return changes[0]
    made = [a.promise.observed_at for a in absences if a.promise.observed_at is not None]
    if not made:
        return None
    return next((t for t in could if t.observed_at is not None and t.observed_at > min(made)), None)


def _by_known_defect(state: State, lost: Lost, term: LeaderTerm | None) -> str:
    """Causes of losses by clean elections: the protocol failed, and only a known defect says how.

    A leader that slept through a term still counts its followers at the log ends that they had
    before (Partition.makeLeader forgets them for a new leader only); KAFKA-13141 and KAFKA-7128.
    """
    if term is not None and term.election_kind not in ("clean", "preferred", "same_leader"):
        return "unknown"
    offset = lost.offset
    for missed in state.history.terms:
        again = led_on_after(state, missed, offset, offset + 1, written_in=lost.written_in)
        if again is not None and (term is None or term is missed or again.order < term.order):
            return "premature_high_watermark"
    if term is None:
        return "unknown"
    start = term_start(state, term)
    if start is not None and start > offset:
        return "divergence_overwrite"
    flags = state.behaviour()
    if flags is None:
        return "unknown"
    if flags.has("leader_answers_diverging_epoch") and not flags.has(
        "diverging_fetch_is_no_progress"
    ):
        return "premature_high_watermark"
    if flags.has("truncates_to_leader_end_offset") and not flags.has(
        "isr_expansion_waits_for_epoch_start"
    ):
        return "early_isr_join"
    return "unknown"
