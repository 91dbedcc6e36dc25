"""What becomes committed within a leader epoch, and what a leader that begins turns out to lack."""

from itertools import pairwise

from replication.protocol.ground.versions import Behaviour
from replication.protocol.histories.moves.by_rule import may_commit
from replication.protocol.histories.moves.states import At, Had, Masks


class Commits:
    """The commitments of one leader in one epoch.

    isrs: those of the epoch in their order, None where nothing tells them. place: of each replica.
    minimum: the least min.insync.replicas that was told. again: the leader led before without a
    stop between, and keeps what it knew of its followers. zombie: another may have been elected
    before it committed. in_sync: it is taken to have had all that was committed.
    """

    def __init__(
        self,
        isrs: list[frozenset[int]] | None,
        place: dict[int, int],
        leader: int,
        minimum: int,
        flags: Behaviour | None,
        *,
        again: bool,
        zombie: bool,
        in_sync: bool,
    ) -> None:
        self.isrs, self.place, self.leader = isrs, place, leader
        self.minimum, self.flags = minimum, flags
        self.again, self.zombie, self.in_sync = again, zombie, in_sync
        self.known: dict[object, set[Masks]] = {}

    def after(self, at: At, steps: tuple[tuple[str, int], ...], had: Had) -> set[Masks]:
        """The masks after a leader's steps, for each way in which its commitments were possible.

        had: by place, the records that each follower showed the leader.
        """
        masks: Masks = at[3:9]
        key = (masks, steps, had, at.records if self.again else None)
        if key not in self.known:
            found = {masks}
            told = any(kind == "replaced" for kind, _ in steps)
            last = max((n for n, (kind, _) in enumerate(steps) if kind == "began"), default=0)
            began = last if self._is_told_the_epoch() else 0
            for number, (kind, record) in enumerate(steps):
                zombie = self.zombie and number >= began
                later = {r for k, r in steps[number:] if k == "appended"}
                if told:  # Of an ordered story it is known when another was elected.
                    zombie = any(k == "replaced" for k, _ in steps[:number])
                joins = number >= last
                found = {
                    m
                    for old in found
                    for m in self._step(
                        old, kind, record, had, later, at, zombie, surely=told, joins=joins
                    )
                }
            self.known[key] = found
        return self.known[key]

    def _is_told_the_epoch(self) -> bool:
        """Whether who begins to lead after a start is told the epoch in force then (KIP-380):
        before it nobody else had been elected."""
        return self.flags is not None and self.flags.has("restart_is_noticed")

    def _step(
        self,
        masks: Masks,
        kind: str,
        record: int,
        had: Had,
        later: set[int],
        at: At,
        zombie: bool,
        *,
        surely: bool,
        joins: bool,
    ) -> list[Masks]:
        appended, by_any, committed, missed, missed_any, missed_committed = masks
        bit = 1 << record
        if kind == "began":
            lacks = ~bit if record else ~0
            if self.in_sync and committed & ~missed_committed & lacks & ~1:
                return []
            return [(
                appended, by_any, committed,
                missed | appended & lacks,
                missed_any | by_any & lacks,
                missed_committed | committed & lacks,
            )]  # fmt: skip
        if kind == "appended":
            return [(appended | bit, *masks[1:])]
        if (
            kind == "committed"
            and not by_any & bit
            and not self._possible(record, had, later, at, joins=joins)
        ):
            return []
        if kind == "replaced":
            return [masks]
        rest = (missed, missed_any, missed_committed)
        valid: Masks = (appended, by_any | bit, committed | bit, *rest)
        late: Masks = (appended, by_any | bit, committed, *rest)
        if not zombie or committed & bit:
            return [valid]
        return [late] if surely else [valid, late]

    def _possible(self, record: int, had: Had, later: set[int], at: At, *, joins: bool) -> bool:
        """Whether in some ISR of the epoch all members had shown something at the offset, with
        those that joined it afterwards. joins: not where the leader has started since, which may
        have come back with less and a lower high watermark."""
        isrs = self.isrs
        if isrs is None:
            return True

        def has(number: int) -> bool:
            place = self.place[number]
            if had[place] - later:
                return True  # A leader counts positions: whatever was there by then.
            known = at.records[place] == record or bool(at.appended >> record & 1)
            return self.again and known

        for number, isr in enumerate(isrs):
            if self.leader not in isr:
                continue
            joined = [
                member for before, after in pairwise(isrs[number:]) for member in after - before
            ]
            if joins and not all(has(member) for member in joined if member != self.leader):
                continue  # Who joins has reached the high watermark (`maybeExpandIsr`).
            all_have_it = all(has(member) for member in isr if member != self.leader)
            if may_commit(all_have_it, len(isr), self.minimum, self.flags):
                return True
        return False
