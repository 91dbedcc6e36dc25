"""The records of one run of offsets, by number; and what may be forgotten of them."""

from operator import itemgetter

from replication.protocol.histories.assumptions import NOTHING_UNSEEN, Assumed
from replication.protocol.histories.filters.at_offset import Claim, Run
from replication.protocol.histories.moves.states import At, Leading

ANY_RECORD = -1
Essence = tuple[tuple[int, ...], int, int, int, int, int, int, int]
# A stretch of leadership: leader epoch, and how often its leader had begun to lead in it.
Stretch = tuple[int, int]
Seen = tuple[object, ...]
Kinds = tuple[Assumed, tuple[int, int, int, int | None], bool, tuple[Claim, ...], bool]


class Records:
    """Which records there are, who may write them, and of which of them somebody may ask.

    shown: those that evidence shows, as a mask. answered: those of which a producer at acks=1 was,
    or may have been, told; seen_by_clients: those told at acks=all or consumed. exact: nothing is
    forgotten that a story in words would tell.
    """

    def __init__(self, run: Run, *, exact: bool) -> None:
        self.run, self.exact = run, exact
        self.shown = (1 << len(run.labels) + 1) - 2
        # Where no record is thought of that nothing shows, one that nobody saw is the only one.
        self.only_one = bool(run.assumed.names & NOTHING_UNSEEN)
        self.epochs = list(run.epochs)
        self.leaders = {w.leader_epoch: w.leader for w in run.line.windows}
        self.unseen: dict[Stretch, int] = {}
        self.unseen_mask = 0
        # Answers that name an offset alone may be for each unseen record that is added, too.
        self.nameless = tuple(c for c in run.claims if (c.leader_epoch, c.content) == (None, None))
        self._ask_claims()

    def _ask_claims(self) -> None:
        self.answered = self.seen_by_clients = 0
        for claim in self.run.claims:
            if claim.how == "acks_1":
                self.answered |= self.meant(claim)
            else:
                self.seen_by_clients |= self.meant(claim)
        if not self.run.line.acks_covered:
            self.answered = ANY_RECORD  # Whatever was written may have been acknowledged.

    def meant(self, claim: Claim) -> int:
        """The records that a client's answer may be for, as a mask."""
        if claim.leader_epoch is None and claim.content is None:
            others = (r for r, e in enumerate(self.epochs) if not self._may_be_of(claim, e))
            return ~1 & ~sum(1 << r for r in others)
        return sum(1 << r for r in self.run.records(claim.leader_epoch, claim.content))

    def _may_be_of(self, claim: Claim, leader_epoch: int | None) -> bool:
        """Whether a client's answer can be for a record of a leader epoch. At acks=1 the broker
        that answers has appended the record; a repeated send of an idempotent producer, which asks
        for acks=all, may be answered by a later leader that has it."""
        if leader_epoch is None:
            return True
        wrote = self.leaders.get(leader_epoch)
        by_another = claim.how == "acks_1" and None not in (wrote, claim.broker)
        late = claim.by is not None and leader_epoch > claim.by
        return not late and not (by_another and wrote != claim.broker)

    def unseen_of(self, leader_epoch: int, occurrence: int) -> int:
        """The record that a stretch of leadership may have written though nothing shows it."""
        key = (leader_epoch, occurrence)
        if key not in self.unseen:
            number = self.unseen[key] = len(self.epochs)
            self.unseen_mask |= 1 << number
            self.epochs.append(leader_epoch)
            if self.nameless:
                self._ask_claims()
        return self.unseen[key]

    def number(self, stretches: list[Stretch]) -> None:
        """Numbers the unseen records of these stretches, the first of all; those that have their
        numbers keep them."""
        more = stretches[len(self.unseen) :]
        begin, end = len(self.epochs), len(self.epochs) + len(more)
        self.unseen.update(zip(more, range(begin, end), strict=True))
        self.unseen_mask |= (1 << end) - (1 << begin)
        self.epochs += map(itemgetter(0), more)
        if more and self.nameless:
            self._ask_claims()

    def kinds(self) -> Kinds:
        """What two runs must share to share what may have happened before evidence names either."""
        run = self.run
        numbers = (len(run.labels), self.answered, self.seen_by_clients, run.committed_by)
        return run.assumed, numbers, run.unseen, self.nameless, self.exact

    def seen_from(self, leader_epoch: int) -> Seen:
        """All that a leader epoch's moves read of the records: of their leader epochs the order,
        and which of them are its own."""
        run = self.run
        epochs = (*self.epochs, *run.written_by, run.committed_by, leader_epoch)
        ranks = {
            e: n for n, e in enumerate(sorted({e for e in epochs if e is not None and e >= 0}))
        }
        begun = {o: n for (e, o), n in self.unseen.items() if e == leader_epoch}
        return (
            *self.kinds(),
            tuple(e if e is None else ranks.get(e, e) for e in epochs),
            tuple(run.writers),
            tuple(begun.items()),
        )

    def writable(self, leader_epoch: int, leader: int, at: Leading, *, several: bool) -> list[int]:
        """The records that a leader may append. several: it may have written in more than one
        stretch of this epoch, so that a shown record of it need not be this stretch's."""
        run, found, named = self.run, [], False
        for record in range(1, len(run.labels) + 1):
            written_in = run.epochs[record]
            if written_in not in (None, leader_epoch) or at.appended >> record & 1:
                continue
            if run.writers[record] and leader not in run.writers[record]:
                continue
            by = run.written_by[record]
            if by is not None and leader_epoch > by:
                continue
            found.append(record)
            named = named or (written_in is not None and not several)
        another = at.appended & (1 | self.unseen_mask)
        if run.unseen and not named and not (self.only_one and another):
            found.append(self.unseen_of(leader_epoch, at.occurrence))
        return found

    def forget(self, states: set[At], covered: int) -> set[At]:
        """Drops what no verdict can rest on any more, and what another state admits as well.

        covered: the places of brokers whose lines are all here, as a mask. Whose high watermark
        ever was above the offset is only ever asked for: more admits more. Records that a disk lost
        are only ever counted: fewer admit more. Record 0 in the masks is some record, whichever,
        that was committed, or may have been acknowledged, and was missed.
        """
        unseen = self.unseen_mask
        kept: dict[Essence, list[tuple[int, int]]] = {}
        for at in states:
            essence, lost = self._essence(at, unseen, covered)
            ever = at.ever & covered
            others = kept.setdefault(essence, [])
            if any(e | ever == e and lost | d == lost for e, d in others):
                continue
            others[:] = [o for o in others if not (o[0] | ever == ever and o[1] | lost == o[1])]
            others.append((ever, lost))
        return {
            At(essence[0], essence[1], ever, *essence[2:], lost)
            for essence, others in kept.items()
            for ever, lost in others
        }

    def _essence(self, at: At, unseen: int, covered: int) -> tuple[Essence, int]:
        held, run_by = 0, self.run.committed_by
        for record in at.records:
            held |= 1 << record
        _, above, _, appended, by_any, committed, missed, missed_any, gone, lost = at
        one, clients = self.answered, self.seen_by_clients
        if gone and not self.exact:
            committed = gone = 1
        if not self.run.by_offset_alone:
            past = unseen & ~held & ~committed & ~(missed & one)
            gone_unseen = self.only_one and appended & past
            appended, by_any, committed = appended & ~past, by_any & ~past, committed & ~past
            appended |= 1 if gone_unseen else 0
            lost = lost & (held | ~unseen) | (1 if lost & ~held & unseen else 0)
        missed, missed_any = missed & one, missed_any & clients
        if one == ANY_RECORD and missed & ~self.shown and not self.exact:
            missed = missed & self.shown | 1
            gone_unseen = self.only_one and appended & ~(held | self.shown)
            appended, by_any = appended & (held | self.shown), by_any & (held | self.shown)
            appended |= 1 if gone_unseen else 0
            committed &= held | self.shown | 1
        some = 1 if by_any and run_by is not None else 0  # Some record, whichever.
        by_any = by_any & (held | clients) | some
        above &= covered
        return (at.records, above, appended, by_any, committed, missed, missed_any, gone), lost
