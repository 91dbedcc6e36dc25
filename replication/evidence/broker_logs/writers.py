"""Which broker wrote a line that names none, in a file that several brokers wrote.

One installation that runs three brokers logs into one server.log, and collectors merge many hosts'
into one. Then a line is a broker's only where what ties lines to brokers (`writer_handles`) leaves
that one alone. Else it is nobody's: of one of those that are left.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.line_families.family import brokers_among
from replication.evidence.broker_logs.starts import Mark, Starts, mark
from replication.evidence.broker_logs.writer_handles import (
    Announcements,
    Homes,
    Places,
    Replicas,
    Roles,
    Signals,
    not_the_leader,
)
from replication.evidence.unreadable import Unreadable

# A broker that no line names.
_UNNAMED = -1


@dataclass(slots=True)
class Writers:
    """What lines tell of their writers. named: the brokers that lines name as their writer; there:
    all of which lines tell at all, and who may have written lines that name nobody."""

    named: set[int] = field(default_factory=set)
    there: set[int] = field(default_factory=set)
    homes: Homes = field(default_factory=Homes)
    places: Places = field(default_factory=Places)
    announcements: Announcements = field(default_factory=Announcements)
    signals: Signals = field(default_factory=Signals)
    roles: Roles = field(default_factory=Roles)
    replicas: Replicas = field(default_factory=Replicas)
    marks: list[Mark] = field(default_factory=list)
    # Of this file and the rotated ones before and behind it, and which of them it is.
    starts: Starts | None = None
    piece: int = 0

    def learn(self, fact: LogLineFact) -> None:
        """Takes a line in the order of the file; all lines, before `resolved` is asked."""
        if fact.broker is not None:
            self.named.add(fact.broker)
            self.there.add(fact.broker)
        self.there.update(brokers_among(fact.fields))
        self.homes.learn(fact)
        self.places.learn(fact)
        told = mark(fact)
        if told is not None:
            self.marks.append(told)
        self.signals.learn(fact)
        self.roles.learn(fact)
        self.replicas.learn(fact)

    def learn_beside(
        self, named: Iterable[int], homes: Mapping[int, set[str]], starts: Starts, piece: int
    ) -> None:
        """What files beside this one tell, of the same installation. piece: which it is of those
        that starts were learnt from."""
        self.starts, self.piece = starts, piece
        self.named.update(named)
        self.there.update(self.named)
        for broker, directories in homes.items():
            self.homes.of.setdefault(broker, set()).update(directories)

    def resolved(
        self, facts: Iterable[LogLineFact | Unreadable]
    ) -> Iterator[LogLineFact | Unreadable]:
        """The facts with their writers; field `one_of` of a line that may be of several, as far as
        lines name those."""
        starts = self.starts or Starts.of([self.marks], self.named)
        if self.places.outside or self.places.at_least > len(self.there):
            self.there.add(_UNNAMED)
        for fact in facts:
            if isinstance(fact, LogLineFact):
                self.announcements.take(fact)
                at = (self.piece, fact.line)
                if fact.broker is None and at not in starts.accounted:
                    fact = self._with_writer(fact, starts)
                if starts.stand_ins.get(at, -1) == fact.broker:
                    yield fact._replace(kind="process_started", fields={})
            yield fact

    def _with_writer(self, fact: LogLineFact, starts: Starts) -> LogLineFact:
        left = self._may_have_written(fact, starts)
        if len(left) == 1 and _UNNAMED not in left:
            return fact._replace(broker=left.pop())
        return fact._replace(fields={**fact.fields, "one_of": tuple(sorted(left - {_UNNAMED}))})

    def _may_have_written(self, fact: LogLineFact, starts: Starts) -> set[int]:
        """Whom all handles leave; where they contradict one another, anybody."""
        left = set(self.there)
        for handle in (
            starts.may_have_written(fact, self.piece, self.there),
            self.signals.may_have_written(fact),
            self.announcements.may_have_written(fact),
            self.homes.may_have_written(fact, self.there),
            self.replicas.may_have_written(fact),
            self.roles.may_have_cut(fact, self.there),
            self.roles.may_have_loaded(fact, self.there),
            not_the_leader(fact, self.there),
        ):
            left = left if handle is None else left & handle
        return left or set(self.there)
