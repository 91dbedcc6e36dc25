"""The loss ledger: what every admitted history loses, as rows of one tier, status and cause each.

Loss has tiers, never one number: what was promised decides the tier, where copies survive decides
the status, the step without which the record survives is the cause.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import LeaderTerm, Promise, State
from replication.protocol.histories.ask import MOST_KEPT, Histories
from replication.protocol.histories.engine import Effort, TooMany
from replication.protocol.histories.filters.at_offset import Claim
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.search import MOST_STATES, MOST_STEPS, Search
from replication.protocol.histories.stretches import Admitted, Outcomes, Stretch
from replication.protocol.judgement.cause import Cause, cause_of
from replication.protocol.judgement.contract import allowed_by, contract_of
from replication.protocol.judgement.copies import SurvivingCopy, surviving_copies
from replication.protocol.judgement.fates import Fate, Fates
from replication.protocol.judgement.loss import TIER_OF, TIERS, Loss, finding_of
from replication.protocol.judgement.questions import (
    ACKNOWLEDGED,
    COMMITTED,
    CONSUMED,
    fate_of,
    held_by,
    last_leaders,
)
from replication.protocol.judgement.reference import is_compacted_away, is_kept

# How many steps the causes of all losses of a partition may take.
MOST_STEPS_OF_CAUSES = 400_000


@dataclass(frozen=True, slots=True)
class _Gone:
    """A record that every history loses at a run. records: as a mask; claim: what a client was
    told of it; committed: every history commits it before."""

    records: int
    claim: Claim | None
    committed: bool


@dataclass(slots=True)
class _Shared:
    """What all rows may take and took. assumed: what they rest on, preferred if it is enough for
    the next. By the search that runs share: the one that forgets nothing, with its ends; causes."""

    effort: Effort
    assumed: list[frozenset[str]] = field(default_factory=list)
    exact: dict[Search, tuple[Search, frozenset[At]]] = field(default_factory=dict)
    causes: dict[tuple[object, ...], Cause] = field(default_factory=dict)


def losses(fates: Fates) -> list[Loss]:
    """The ledger's rows, in offset order."""
    state, rows = fates.histories.state, []
    more = any(fates.undecided(name) for name in (ACKNOWLEDGED, COMMITTED)) or any(
        not state.covered(s) for s in ("acknowledgements",) if state.told_of(s)
    )
    broken: dict[int, tuple[Fate, frozenset[str]]] = {}
    for name in (COMMITTED, ACKNOWLEDGED, CONSUMED):
        for fate, assuming in fates.broken(name):
            before = broken.get(id(fate))
            broken[id(fate)] = (fate, assuming if before is None else before[1] & assuming)
    ordered = sorted(broken.values(), key=lambda each: each[0].stretch.first)
    shared = _Shared(Effort(MOST_STEPS_OF_CAUSES, MOST_STATES))
    for fate, assuming in ordered:
        rows += _rows(fates.histories, fate.stretch, assuming, more, shared)
    joined = _joined(rows)
    for loss in joined:
        loss.finding = finding_of(state, loss)
    return joined


def _rows(
    histories: Histories,
    stretch: Stretch,
    assuming: frozenset[str],
    more: bool,
    shared: _Shared,
) -> list[Loss]:
    """The rows of one run, and what they rest on: more than that something is lost may, its cause
    above all. assuming: what that rests on."""
    found: dict[frozenset[str], list[Loss]] = {}

    def told(admitted: Admitted) -> Outcomes:
        names = admitted.run.assumed.names
        if names not in found:
            found[names] = _Run(histories.state, admitted, more, shared).rows()
        return frozenset([tuple(_told(row) for row in found[names])])

    _, needed = histories.decide(stretch, told, {told(stretch.admitted): assuming})
    needed |= assuming
    if needed != assuming and needed not in shared.assumed:
        others = (each for each in shared.assumed if assuming <= each <= stretch.assumed.names)
        needed = next((x for x in others if histories.is_enough(stretch, told, x)), needed)
        shared.assumed.append(needed)
    rows = found.get(needed, found[stretch.assumed.names])
    for row in rows:
        row.assuming = needed
    return rows


def _told(row: Loss) -> tuple[object, ...]:
    return (
        row.record[2:], row.tier, row.status, row.cause.name, row.cause.one_of, row.contract,
        None if row.lost_in is None else row.lost_in.order,
    )  # fmt: skip


class _Run:
    """One run of offsets at which every history loses something."""

    def __init__(self, state: State, admitted: Admitted, more: bool, shared: _Shared) -> None:
        self.state, self.more, self.shared = state, more, shared
        self.before = 0
        if admitted.search in shared.exact:
            self.search, ends = shared.exact[admitted.search]
            self.before = self.search.effort.steps
        else:
            self.search, ends = self._exactly(admitted)
            if len(shared.exact) >= MOST_KEPT:
                shared.exact.clear()
                shared.causes.clear()
            shared.exact[admitted.search] = self.search, ends
        run = admitted.run
        self.admitted = Admitted(admitted.first, admitted.end, run, self.search, ends)
        self.leaders = last_leaders(self.admitted)

    def _exactly(self, admitted: Admitted) -> tuple[Search, frozenset[At]]:
        """The search that forgets nothing; where that takes too much, the one that there is."""
        spent = self.shared.effort
        left = spent.most_steps - spent.steps
        effort = Effort(min(MOST_STEPS, left), MOST_STATES)
        beginnings = admitted.search.beginnings
        search = Search(admitted.run, exact=True, effort=effort, beginnings=beginnings)
        try:
            return search, frozenset(search.ends())
        except TooMany:
            spent.steps += effort.steps
            admitted.search.effort.allow(left - effort.steps)
            self.before = admitted.search.effort.steps
            return admitted.search, admitted.ends

    def rows(self) -> list[Loss]:
        """The rows; what they took is counted."""
        rows = self._told()
        self.shared.effort.steps += self.search.effort.steps - self.before
        return rows

    def _told(self) -> list[Loss]:
        gone = sorted(self._gone(), key=lambda g: TIERS.index(self._tier(g)))
        rows: list[Loss] = []
        told: dict[int, Loss] = {}
        for each in gone:
            if each.records in told:
                continue  # The stronger promise about the same record has its row.
            told[each.records] = self._row(each)
        rows += told.values()
        return sorted(rows, key=lambda loss: repr(loss.record))

    def _each(self) -> Iterator[tuple[At, int | None]]:
        for at in self.admitted.ends:
            for leader in self.leaders:
                yield at, leader

    def _gone(self) -> Iterator[_Gone]:
        surely = ~0
        for at, leader in self._each():
            surely &= _lost_committed(at, leader)
        claimed = 0
        for claim in self.admitted.run.claims:
            fates = [fate_of(self.admitted, at, claim, leader) for at, leader in self._each()]
            if not all(lost and not kept for lost, kept in fates):
                continue
            records = 0
            for lost, _ in fates:
                records |= lost
            claimed |= records
            by_all = all(
                _lost_committed(at, leader) & lost == lost
                for (at, leader), (lost, _) in zip(self._each(), fates, strict=True)
            )
            yield _Gone(records, claim, by_all)
        rest = surely & ~claimed & ~1
        while rest:
            bit = rest & -rest
            yield _Gone(bit, None, True)
            rest &= ~bit
        if not claimed and not surely & ~1:
            yield _Gone(0, None, True)  # Each history loses one, but not all the same.

    def _tier(self, gone: _Gone) -> str:
        if gone.claim is not None:
            tier = TIER_OF[gone.claim.how]
            committed = tier == "acknowledged_by_leader" and gone.committed
            return "committed" if committed else tier
        if self.state.told_of("acknowledgements") and not self.state.covered("acknowledgements"):
            return "undetermined"
        if not self.state.covered("all_producers") or self.admitted.run.by_offset_alone:
            return "committed"
        return "never_acknowledged"

    def _losing(self, gone: _Gone) -> Callable[[At], int]:
        def losing(at: At) -> int:
            lost = 0
            for leader in self.leaders:
                if gone.claim is not None:
                    lost |= fate_of(self.admitted, at, gone.claim, leader)[0]
                else:
                    lost |= _lost_committed(at, leader) & ~1
            return lost & gone.records if gone.records else lost

        return losing

    def _row(self, gone: _Gone) -> Loss:
        run, first, end = self.admitted.run, self.admitted.first, self.admitted.end
        span = Span(first, first + 1 if end is None else end, *self._identity(gone))
        tier = self._tier(gone)
        how = None if gone.claim is None else gone.claim.how
        key = (self.search, gone.records, gone.claim, tier)
        if key not in self.shared.causes:
            self.shared.causes[key] = cause_of(
                self.search,
                self._losing(gone),
                by_clients=how is not None and how != "acks_1",
                acks_one=tier == "acknowledged_by_leader",
            )
        cause = self.shared.causes[key]
        status, missing = self._status(gone)
        copies: list[SurvivingCopy] = []
        if status != "recovered":
            leaders = {run.line.replicas[p] for p in self.leaders if p is not None}
            copies = surviving_copies(self.state, leaders, span, self._holders(gone))
            if status == "lost" and any(c.destroyed_when for c in copies):
                status = "recoverable"
        promises = [p for p in run.line.promises if _is_of(p, gone.claim, first)]
        promised = self._may_be_committed(gone)
        term = _term(self.state, cause)
        return Loss(
            *span[:2], span, tier, promises, status, cause,
            self._contract(cause, tier, promised),
            copies, missing, None, term,
            allowed_by(self.state, cause, tier, term, may_be_committed=promised),
            self.more,
        )  # fmt: skip

    def _contract(self, cause: Cause, tier: str, promised: bool) -> str:
        """What every history's own cause makes of it; unknown where they do not agree."""
        found = {
            contract_of(self.state, one, tier, _term(self.state, one), may_be_committed=promised)
            for one in cause.each or (cause,)
        }
        return found.pop() if len(found) == 1 else "unknown"

    def _identity(self, gone: _Gone) -> tuple[int | None, int | None]:
        records = gone.records & self.search.records.shown
        labels = self.admitted.run.labels
        if records and records & (records - 1) == 0 and records == gone.records:
            return labels[records.bit_length() - 2]
        if gone.claim is not None:
            return gone.claim.leader_epoch, gone.claim.content
        if gone.records and gone.records & (gone.records - 1) == 0:
            return self.search.records.epochs[gone.records.bit_length() - 1], None
        return None, None

    def _may_be_committed(self, gone: _Gone) -> bool:
        """Whether some history commits the record before it is lost."""
        lost = (_lost_committed(at, leader) for at, leader in self._each())
        return not gone.records or any(records & gone.records for records in lost)

    def _holders(self, gone: _Gone) -> dict[int, bool]:
        """By broker, whether it holds in every history what is lost there; False where in some, or
        where it may, since records that are lost are not kept apart, or compaction took it."""
        found: dict[int, bool] = {}
        losing = self._losing(gone)
        lost = [(at.records, losing(at) or gone.records) for at in self.admitted.ends]
        for number, place in self.admitted.run.place.items():
            held = [bool(each >> r[place] & 1 if each else r[place]) for r, each in lost]
            if any(held) and not is_compacted_away(self.state, number, self.admitted.first):
                found[number] = all(held) and is_kept(self.state, number, self.admitted.first)
        return found

    def _status(self, gone: _Gone) -> tuple[str, tuple[int, ...]]:
        back, lost = set(), self._losing(gone)
        for at, leader in self._each():
            mine, held = lost(at) or gone.records, held_by(at, leader)
            back |= ({True} if mine & held else set()) | ({False} if mine & ~held else set())
        if back == {True}:
            return "recovered", ()
        if True in back:
            return "undetermined", ()
        leaders = {self.admitted.run.line.replicas[p] for p in self.leaders if p is not None}
        holders = {n: sure for n, sure in self._holders(gone).items() if n not in leaders}
        if any(holders.values()) and gone.records:  # Else nothing tells which record it is.
            return "recoverable", ()
        if holders:
            return "undetermined", tuple(sorted(holders))
        return "lost", ()


def _lost_committed(at: At, leader: int | None) -> int:
    """The records that were committed and then missing from a later leader's log, as a mask."""
    return at.committed & (at.missed_committed | ~held_by(at, leader))


def _is_of(promise: Promise, claim: Claim | None, offset: int) -> bool:
    if claim is None or not promise.span[0] <= offset < promise.span[1]:
        return False
    return (promise.how, *promise.span[2:], promise.replica) == claim[:4]


def _term(state: State, cause: Cause) -> LeaderTerm | None:
    """The term of the leader that lacks the record."""
    window = cause.window
    if window is None:
        return None
    terms = [
        t
        for t in state.history.terms
        if (t.leader_epoch, t.leader) == (window.leader_epoch, window.leader)
    ]
    # Who wrote it in the same epoch lacks it since it led again.
    again = cause.written_in == window.leader_epoch
    return (terms[-1] if again else terms[0]) if terms else None


def _joined(rows: list[Loss]) -> list[Loss]:
    """Neighbouring rows with everything but their offsets equal become one, which rests on all that
    any of them does."""
    result: list[Loss] = []
    for loss in rows:
        before = (r for r in result if r.end_offset == loss.first_offset and _same_story(r, loss))
        last = next(before, None)
        if last is not None:
            last.end_offset = loss.end_offset
            last.promises += [p for p in loss.promises if p not in last.promises]
            last.assuming |= loss.assuming
        else:
            result.append(loss)
    return sorted(result, key=lambda r: (r.first_offset, r.end_offset, repr(r.record)))


def _same_story(a: Loss, b: Loss) -> bool:
    """What rests on nothing stays apart from what does; else one may rest on more than the other,
    for which of a few assumptions is left out first is chance."""

    def story(x: Loss) -> tuple[object, ...]:
        return (
            x.tier, x.status, x.cause.name, x.cause.contributing, x.cause.one_of, x.contract,
            x.record.leader_epoch, [(c.replica, c.kind) for c in x.copies],
            None if x.lost_in is None else x.lost_in.order, bool(x.assuming),
        )  # fmt: skip

    alike = a.assuming <= b.assuming or b.assuming <= a.assuming
    return alike and story(a) == story(b)
