"""What really became of each offset of a machine's story, in the terms of the histories' ends.

Leader epochs order what happened, as they do there: a leader lacks what was appended or committed
in an earlier epoch, or in its own before it began.
"""

from dataclasses import dataclass, field

from replication.machine.machine_state import World
from replication.protocol.ground import events as ev
from replication.protocol.histories.filters.at_offset import Run
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.stretches import Admitted

Record = tuple[int | None, int | None]
"""Leader epoch and content."""
Order = tuple[int, int]
"""Leader epoch, and the number of the step."""
Began = tuple[Order, int, dict[int, Record]]
"""When a leader began, the log start then, and its records."""


@dataclass
class _Replica:
    records: dict[int, Record] = field(default_factory=dict)
    high_watermark: int = 0
    leads: int | None = None


@dataclass
class _Offset:
    appended: dict[Record, Order] = field(default_factory=dict)
    by_any: dict[Record, Order] = field(default_factory=dict)
    committed: dict[Record, Order] = field(default_factory=dict)


@dataclass(frozen=True)
class TrueEnd:
    """One offset at the end of a story. The others are sets of records.

    held: what each broker holds there, of those whose log start is not above.
    """

    held: tuple[tuple[int, Record | None], ...]
    appended: frozenset[Record]
    by_any: frozenset[Record]
    committed: frozenset[Record]
    missed: frozenset[Record]
    missed_by_any: frozenset[Record]
    missed_committed: frozenset[Record]


class TrueStory:
    """The ends of every offset. log_start: what lies below was removed by somebody."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._replicas = {r: _Replica() for r in world.brokers}
        self._offsets: dict[int, _Offset] = {}
        self._registered: tuple[int | None, int] = (None, -1)
        self.log_start = 0
        self._began: list[Began] = []
        for number, step in enumerate(world.steps):
            self._take(number, step.fact)
        self.end = 1 + max(self._offsets, default=-1)
        for r, broker in world.brokers.items():
            held = {
                o: (s.leader_epoch, s.content)
                for s in broker.log.spans
                for o in range(s.first_offset, s.end_offset)
            }
            mine = self._replicas[r].records
            assert held.items() <= mine.items(), f"broker {r}: {held}, told {mine}"

    def _at(self, offset: int) -> _Offset:
        return self._offsets.setdefault(offset, _Offset())

    def _take(self, number: int, fact: ev.Fact) -> None:
        if isinstance(fact, ev.LeadershipRecorded):
            self._registered = (fact.leader, fact.leader_epoch)
        replica = self._replicas.get(getattr(fact, "replica", None) or 0)
        if replica is None or isinstance(fact, (ev.FetchRequested, ev.FetchAnswered)):
            return
        match fact:
            case ev.LeaderAppended() | ev.FollowerAppended():
                for o in range(fact.first_offset, fact.end_offset):
                    record = (fact.leader_epoch, fact.content)
                    replica.records[o] = record
                    if isinstance(fact, ev.LeaderAppended):
                        order = (replica.leads or 0, number)
                        self._at(o).appended.setdefault(record, order)
            case ev.Truncated() if fact.to_offset is not None:
                self._end(replica, fact.to_offset)
                replica.high_watermark = min(replica.high_watermark, fact.to_offset)
            case ev.ReplicaStarted() | ev.ReplicaStopped():
                replica.leads = None
                if fact.log_end_offset is not None:
                    self._end(replica, fact.log_end_offset)
                if isinstance(fact, ev.ReplicaStarted):
                    replica.high_watermark = fact.high_watermark or 0
            case ev.HighWatermarkAdvanced():
                replica.high_watermark = fact.high_watermark
                self._committed(fact.replica, replica, number)
            case ev.BecameLeader():
                replica.leads = fact.leader_epoch
                self._began.append(
                    ((fact.leader_epoch, number), self.log_start, dict(replica.records))
                )
                self._committed(fact.replica, replica, number)
            case ev.BecameFollower():
                replica.leads = None
            case ev.LogStartAdvanced():
                self.log_start = max(self.log_start, fact.log_start_offset)
            case _:
                pass

    def _end(self, replica: _Replica, end: int) -> None:
        for offset in [o for o in replica.records if o >= end]:
            del replica.records[offset]

    def _committed(self, name: int, replica: _Replica, number: int) -> None:
        if replica.leads is None:
            return
        order = (replica.leads, number)
        for offset, record in replica.records.items():
            if offset < replica.high_watermark:
                self._at(offset).by_any.setdefault(record, order)
                if self._registered == (name, replica.leads):
                    self._at(offset).committed.setdefault(record, order)

    def at(self, offset: int) -> TrueEnd:
        """What became of one offset."""
        told = self._offsets.get(offset, _Offset())
        held = tuple(
            (r, self._replicas[r].records.get(offset))
            for r, broker in sorted(self.world.brokers.items())
            if broker.log.log_start_offset <= offset
        )

        def missed(promised: dict[Record, Order]) -> frozenset[Record]:
            return frozenset(
                r
                for r, order in promised.items()
                if any(
                    began > order and start <= offset and records.get(offset) != r
                    for began, start, records in self._began
                )
            )

        return TrueEnd(
            held, frozenset(told.appended), frozenset(told.by_any),
            frozenset(told.committed), missed(told.appended), missed(told.by_any),
            missed(told.committed),
        )  # fmt: skip


def is_admitted(end: TrueEnd, admitted: Admitted) -> bool:
    """Whether the true end is among the admitted ones, as far as a search keeps it."""
    reader = _Reader(end, admitted)
    return any(reader.reads(at) for at in admitted.ends)


class _Reader:
    """Compares a true end with admitted ones: by the numbers that records have in the run."""

    def __init__(self, end: TrueEnd, admitted: Admitted) -> None:
        self.end, self.run, self.search = end, admitted.run, admitted.search
        records, self.shown = self.search.records, (1 << len(self.run.labels) + 1) - 2
        self.clients, self.answered = records.seen_by_clients, records.answered
        self.held = dict(end.held)

    def numbers(self, record: Record) -> frozenset[int]:
        """The numbers that a record may have."""
        named: dict[bool, set[int]] = {True: set(), False: set()}
        for number, (written_in, content) in enumerate(self.run.labels, 1):
            in_no_copy = content is not None and content < 0
            if written_in in (None, record[0]) and (in_no_copy or content in (None, record[1])):
                named[in_no_copy].add(number)
        if named[False]:
            return frozenset(named[False])
        # An answer to a client names a record that no copy shows: this one, or another.
        unseen = self.search.records.unseen
        windows = self.run.line.windows
        before = not windows or (record[0] or 0) <= windows[0].leader_epoch
        named[True] |= {
            n for (written_in, _), n in unseen.items()
            if written_in == record[0] or (before and written_in < 0)
        }  # fmt: skip
        return frozenset(named[True])

    def reads(self, at: At) -> bool:
        """Whether this admitted end is the true one."""
        run: Run = self.run
        for number, record in self.held.items():
            if number not in run.place:
                continue
            named = at.records[run.place[number]]
            if (record is None) != (named == 0) or (record and named not in self.numbers(record)):
                return False
        return self._sets(at)

    def _sets(self, at: At) -> bool:
        end, shown = self.end, self.shown
        if bool(at.missed_committed) != bool(end.missed_committed):
            return False
        held = 0
        for record in at.records:
            held |= 1 << record
        pairs = [
            (end.appended, at.appended, shown),
            (end.by_any, at.committed_by_any, (held | self.clients) & shown),
            (end.missed, at.missed, self.answered & shown),
            (end.missed_by_any, at.missed_by_any, self.clients & self.answered & shown),
        ]
        if not at.missed_committed or self.search.records.exact:
            pairs.append((end.committed, at.committed, shown))
        return all(self._same(records, mask, kept) for records, mask, kept in pairs)

    def _same(self, records: frozenset[Record], mask: int, kept: int) -> bool:
        named = 0
        for record in records:
            numbers = sum(1 << n for n in self.numbers(record)) & kept
            if numbers and not numbers & mask:
                return False
            named |= numbers
        return not mask & kept & ~named
