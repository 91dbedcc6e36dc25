"""The question of every choice: is a record missing from the log that one replica holds?

What the next leader holds is the log: the others cut to it. So each question is that of a promise,
with the candidate as the leader; what earlier leaders lacked counts only where the candidate lacks
it, too. Log ends are never compared.
"""

from collections.abc import Sequence
from functools import partial

from replication.protocol.ground.model import Span
from replication.protocol.histories.engine import Effort, TooMany
from replication.protocol.histories.filters.at_offset import Claim
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.search import MOST_STATES, MOST_STEPS, Search
from replication.protocol.histories.stretches import KEPT, OPEN, Admitted, Outcomes, Question
from replication.protocol.judgement.questions import held_by, is_removed
from replication.protocol.judgement.reference import is_compacted_away

# The tiers of the loss ledger, the strongest promise first.
ACKNOWLEDGED_BY_ALL = "acknowledged_by_isr"
CONSUMED = "consumed"
COMMITTED = "committed"
ACKNOWLEDGED_BY_LEADER = "acknowledged_by_leader"
TIERS = (ACKNOWLEDGED_BY_ALL, CONSUMED, COMMITTED, ACKNOWLEDGED_BY_LEADER)
# What Kafka promises to keep; an answer at acks=1 is no such promise.
PROMISED = TIERS[:3]
# In masks of records: some record, whichever (histories/records.py).
SOME_RECORD = 1
_HOW = {ACKNOWLEDGED_BY_ALL: "acks_all", CONSUMED: "consumed", ACKNOWLEDGED_BY_LEADER: "acks_1"}


class Asked:
    """The questions to the histories of one partition. Of what an earlier leader lost they forget
    which record it was; where that counts, they are followed again without forgetting."""

    def __init__(self) -> None:
        self._exact: dict[int, tuple[Search, frozenset[At] | None]] = {}

    def lost(self, tier: str, candidate: int) -> Question:
        """Whether a record of that tier is missing from the candidate's log."""
        return partial(self._missing, (tier,), (candidate,), None)

    def costs(self, tier: str, candidate: int, others: tuple[int, ...]) -> Question:
        """Whether one is missing there that some other candidate has: what the choice costs."""
        return partial(self._missing, (tier,), (candidate,), others)

    def gone(self, tier: str, candidates: tuple[int, ...]) -> Question:
        """Whether one is missing from the logs of all candidates: no choice brings it back."""
        return partial(self._missing, (tier,), candidates, None)

    def has_more(self, tiers: tuple[str, ...], one: int, other: int) -> Question:
        """Whether one candidate has a record, of any of the tiers, that another one lacks."""
        return partial(self._missing, tiers, (other,), (one,))

    def lost_by_copy(self, tier: str, spans: Sequence[Span], end: int) -> Question:
        """Whether a record of that tier is missing from a log that holds these spans alone, and
        ends there."""
        return partial(self._missing_from, tier, tuple(spans), end)

    def ends(self, admitted: Admitted) -> frozenset[At] | None:
        """The ends with every record by its number; None where they are too many."""
        if not any((at.committed | at.appended | at.missed) & SOME_RECORD for at in admitted.ends):
            return admitted.ends
        key = id(admitted.search)
        if key not in self._exact:
            effort, beginnings = Effort(MOST_STEPS, MOST_STATES), admitted.search.beginnings
            search = Search(admitted.run, exact=True, effort=effort, beginnings=beginnings)
            try:
                found: frozenset[At] | None = frozenset(search.ends())
            except TooMany:
                found = None
            self._exact[key] = (admitted.search, found)
        return self._exact[key][1]

    def _missing_from(
        self, tier: str, spans: tuple[Span, ...], end: int, admitted: Admitted
    ) -> Outcomes:
        state, x = admitted.line.state, admitted.first
        span = next((s for s in spans if s.first_offset <= x < s.end_offset), None)
        hole = span is None and x < end and state.may_be_compacted()
        if hole and any(is_compacted_away(state, n, x) for n in state.replicas):
            return KEPT
        if is_removed(admitted):
            return KEPT
        ends = self.ends(admitted)
        if ends is None:
            return OPEN
        if hole:
            return OPEN  # Compaction may have taken its record, or it never had it.
        held = [0]
        if span is not None:
            numbers = admitted.run.records(span.leader_epoch, span.content)
            if not numbers:
                return OPEN  # Which record the copy has there is not told.
            held = [1 << number for number in numbers]
        found: set[object] = set()
        for at in ends:
            for mask in held:
                found |= _of_one(admitted, at, tier, ~mask & ~SOME_RECORD)
        return frozenset(found)

    def _missing(
        self,
        tiers: tuple[str, ...],
        logs: tuple[int, ...],
        had_by: tuple[int, ...] | None,
        admitted: Admitted,
    ) -> Outcomes:
        """Whether a record is in none of the logs, though one of `had_by` has it (None: or not)."""
        if is_removed(admitted):
            return KEPT
        ends = self.ends(admitted)
        if ends is None:
            return OPEN
        found: set[object] = set()
        for at in _or_torn(admitted, ends, logs):
            missing = ~_held(admitted, at, logs)
            if had_by is not None:
                missing &= _held(admitted, at, had_by)
            outcomes = {False}
            for tier in tiers:
                this = _of_one(admitted, at, tier, missing & ~SOME_RECORD)
                outcomes = {a or b for a in outcomes for b in this}
            found |= outcomes
        return frozenset(found)


def _or_torn(admitted: Admitted, ends: frozenset[At], logs: tuple[int, ...]) -> set[At]:
    """The ends, and each without what the newest copy of one of the logs does not show: whoever
    copied a broker that crashed copied what it comes back with. The histories leave it open for
    brokers without lines alone; those with lines had it, by these, when they were last heard of."""
    found, brokers = set(ends), admitted.search.brokers
    for final in admitted.run.final:
        if not final.torn or final.place not in map(admitted.run.place.get, logs):
            continue
        if brokers[final.place].covered:
            place = final.place
            found |= {
                at._replace(records=(*at.records[:place], 0, *at.records[place + 1 :]))
                for at in found
            }
    return found


def _held(admitted: Admitted, at: At, replicas: tuple[int, ...]) -> int:
    """The records that some of the replicas hold, as a mask."""
    held = 0
    for number in replicas:
        place = admitted.run.place.get(number)
        held |= 0 if place is None else held_by(at, place)
    return held


def _of_one(admitted: Admitted, at: At, tier: str, missing: int) -> set[bool]:
    """Whether a record of a tier is among those that are missing, in one history."""
    if tier == COMMITTED:
        return {bool(at.committed & missing)}
    outcomes = {False}
    for claim in admitted.run.claims:
        if claim.how == _HOW[tier]:
            meant = told_of(admitted, at, claim)
            lost, kept = bool(meant & missing), bool(meant & ~missing)
            this = ({True} if lost else set()) | ({False} if kept or not lost else set())
            outcomes = {a or b for a in outcomes for b in this}
    if tier != CONSUMED and not admitted.line.acks_covered:
        # Whatever was written, or committed, may have been answered for.
        may_be = at.appended if tier == ACKNOWLEDGED_BY_LEADER else at.committed_by_any
        if may_be & missing:
            outcomes |= {False, True}
    return outcomes


def told_of(admitted: Admitted, at: At, claim: Claim) -> int:
    """The records that a client may have been told of in one history, as a mask."""
    mask = at.appended if claim.how == "acks_1" else at.committed_by_any
    return admitted.search.records.meant(claim) & mask & ~SOME_RECORD


def of_any_tier(admitted: Admitted, at: At) -> int:
    """Every record of any tier in one history, as a mask."""
    mask = at.committed
    if not admitted.line.acks_covered:
        mask |= at.appended | at.committed_by_any
    for claim in admitted.run.claims:
        mask |= told_of(admitted, at, claim)
    return mask & ~SOME_RECORD
