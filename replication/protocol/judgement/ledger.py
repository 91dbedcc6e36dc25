"""The loss ledger: what every admitted history loses, as rows of one tier, status and cause each.

Loss has tiers, never one number: what was promised decides the tier, where copies survive decides
the status, the step without which the record survives is the cause.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from replication.protocol.ground.model import Span, clipped, same_record
from replication.protocol.ground.topic_partition import LeaderTerm, Promise, State
from replication.protocol.ground.verdict import Finding, Step
from replication.protocol.histories.ask import Admitted
from replication.protocol.histories.engine import TooMany
from replication.protocol.histories.filters.at_offset import Claim
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.search import Search
from replication.protocol.judgement.cause import Cause, cause_of
from replication.protocol.judgement.contract import allowed_by, contract_of
from replication.protocol.judgement.copies import SurvivingCopy, surviving_copies
from replication.protocol.judgement.fates import Fate, Fates
from replication.protocol.judgement.questions import (
    ACKNOWLEDGED,
    COMMITTED,
    CONSUMED,
    fate_of,
    held_by,
    last_leaders,
)

TIERS = (
    "consumed", "acknowledged_by_isr", "committed", "acknowledged_by_leader",
    "never_acknowledged", "undetermined",
)  # fmt: skip
BY_HIGH_WATERMARK = ("committed", "never_acknowledged", "undetermined")
TIER_OF = {
    "consumed": "consumed",
    "acks_all": "acknowledged_by_isr",
    "acks_1": "acknowledged_by_leader",
}


@dataclass(slots=True)
class Loss:
    """One row: records [first_offset, end_offset) of one identity, tier, status and cause.

    promises: what clients were told of them. lost_in: the first term of a leader that lacks them
    for good. allowed_by: (setting, value). more: others may be gone, too: of what clients were told
    some is in doubt or declared missing. assuming: what is taken for granted.
    """

    first_offset: int
    end_offset: int
    record: Span
    tier: str
    promises: list[Promise]
    status: str
    cause: Cause
    contract: str = "unknown"
    copies: list[SurvivingCopy] = field(default_factory=list)
    missing_replicas: tuple[int, ...] = ()
    finding: Finding | None = None
    lost_in: LeaderTerm | None = None
    allowed_by: list[tuple[str, str]] = field(default_factory=list)
    more: bool = False
    assuming: frozenset[str] = frozenset()

    @property
    def was_committed(self) -> bool:
        """Whether the records are known to have been committed."""
        return self.tier != "acknowledged_by_leader"

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
        return [p for p in self.promises if p.how in ("acks_all", "acks_1")]

    @property
    def end_offset_bound(self) -> str:
        """exact where producers or consumers name the records, and all that they were told is here;
        at_least for a high watermark."""
        return "at_least" if self.more or self.tier in BY_HIGH_WATERMARK else "exact"


def _if_all_known(choose: Callable[[list[int]], int], moments: list[int | None]) -> int | None:
    known = [at for at in moments if at is not None]
    return choose(known) if known and len(known) == len(moments) else None


@dataclass(frozen=True, slots=True)
class _Gone:
    """A record that every history loses at a run. records: as a mask; claim: what a client was
    told of it; committed: every history commits it before."""

    records: int
    claim: Claim | None
    committed: bool


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
    for fate, assuming in ordered:
        rows += _Run(fates, fate.stretch.admitted, assuming, more).rows()
    joined = _joined(rows)
    for loss in joined:
        loss.finding = _finding(state, loss)
    return joined


class _Run:
    """One run of offsets at which every history loses something."""

    def __init__(
        self, fates: Fates, admitted: Admitted, assuming: frozenset[str], more: bool
    ) -> None:
        self.state, self.assuming, self.more = fates.histories.state, assuming, more
        self.search = Search(admitted.run, exact=True)
        try:
            ends = frozenset(self.search.ends())
        except TooMany:
            self.search, ends = admitted.search, admitted.ends
        run = admitted.run
        self.admitted = Admitted(admitted.first, admitted.end, run, self.search, ends)
        self.leaders = last_leaders(self.admitted)

    def rows(self) -> list[Loss]:
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
        cause = cause_of(
            self.search,
            self._losing(gone),
            by_clients=how is not None and how != "acks_1",
            acks_one=how == "acks_1",
        )
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
            self.more, self.assuming,
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
        """By broker, whether it holds the record in every history; False where in some."""
        found: dict[int, bool] = {}
        for number, place in self.admitted.run.place.items():
            held = [bool(gone.records >> at.records[place] & 1) for at in self.admitted.ends]
            if any(held):
                found[number] = all(held)
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
        if any(holders.values()):
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
    return Claim(promise.how, *promise.span[2:], promise.replica) == claim


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
    """Neighbouring rows with everything but their offsets equal become one."""
    result: list[Loss] = []
    for loss in rows:
        before = (r for r in result if r.end_offset == loss.first_offset and _same_story(r, loss))
        last = next(before, None)
        if last is not None:
            last.end_offset = loss.end_offset
            last.promises += [p for p in loss.promises if p not in last.promises]
        else:
            result.append(loss)
    return sorted(result, key=lambda r: (r.first_offset, r.end_offset, repr(r.record)))


def _same_story(a: Loss, b: Loss) -> bool:
    def story(x: Loss) -> tuple[object, ...]:
        return (
            x.tier, x.status, x.cause.name, x.cause.contributing, x.cause.one_of, x.contract,
            x.record.leader_epoch, [(c.replica, c.kind) for c in x.copies],
            None if x.lost_in is None else x.lost_in.order, x.assuming,
        )  # fmt: skip

    return story(a) == story(b)


WORDS = {
    "consumed": "given to a consumer",
    "acknowledged_by_isr": "acknowledged with acks=all",
    "committed": "committed (below a valid high watermark)",
    "never_acknowledged": "committed, never acknowledged to a producer",
    "undetermined": "committed, perhaps acknowledged: some acknowledgements are missing",
    "acknowledged_by_leader": "acknowledged with acks=1",
}
ENDINGS = {
    "lost": "on no replica any more",
    "recoverable": "not in the leader's history, a copy survives",
    "recovered": "missing under an earlier leader, and back",
}


def _finding(state: State, loss: Loss) -> Finding:
    committed = loss.was_committed
    last = loss.end_offset - 1
    where = (
        f"offset {last}" if last == loss.first_offset else f"offsets {loss.first_offset}..{last}"
    )
    ending = ENDINGS.get(loss.status, "missing under a leader; whether they are back nothing tells")
    if loss.status == "undetermined" and loss.missing_replicas:
        ending = "not in the leader's history; a replica's log was not handed over"
    return Finding(
        COMMITTED if committed else ACKNOWLEDGED,
        "critical" if committed and loss.status != "recovered" else "warning",
        f"{where}, {WORDS[loss.tier]}: {ending} ({loss.cause.name})",
        ("loss", *loss.record[:1], loss.end_offset, *loss.record[2:], loss.tier),
        _steps(state, loss, where)[:12],
    )


def _steps(state: State, loss: Loss, where: str) -> list[Step]:
    """What the proof rests on: what was promised, who led without it, what the leader holds."""
    steps = [
        Step(p.event_id, f"{where}: {WORDS[TIER_OF[p.how]]}") for p in loss.promises if p.event_id
    ]
    if not steps:
        steps = [
            Step(p.event_id, f"{where}: below broker {p.replica}'s high watermark")
            for p in state.history.promised_in("commitments", loss.first_offset, loss.end_offset)
            if same_record(p.span, loss.record) is not False
        ][:3]
    term = loss.lost_in
    if term is not None:
        steps.append(Step(
            term.start_event_id or term.event_id,
            f"broker {term.leader} leads epoch {term.leader_epoch} without {where}",
        ))  # fmt: skip
    for number in sorted(state.replicas):
        replica = state.replicas[number]
        if not replica.as_of:
            continue
        held = clipped(replica.log.spans, loss.first_offset, loss.first_offset + 1)
        other = [s for s in held if same_record(s, loss.record) is False]
        if other:
            leader_epoch = other[0].leader_epoch
            of = "" if leader_epoch is None else f" of epoch {leader_epoch}"
            steps.append(Step(
                replica.as_of, f"broker {number} holds another record{of} at {where}"
            ))  # fmt: skip
        elif not held and replica.log.log_end_offset <= loss.first_offset:
            steps.append(Step(
                replica.as_of, f"broker {number}'s log ends at {replica.log.log_end_offset}"
            ))  # fmt: skip
    return steps
