"""Which broker wrote a line that names none, in a file that several brokers wrote.

One installation that runs three brokers logs into one server.log, and collectors merge many hosts'
into one. Then a line is a broker's only where something ties it to that one alone: the log
directory that it names (by the brokers' settings, or by lines that name directory and broker one
behind the other), or the fetcher's own line just before it that announces what it does. Else it is
nobody's.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.unreadable import Unreadable

# A fetcher cuts the log in the moment in which it says so.
_AT_ONCE_MILLISECONDS = 100
_BROKER = re.compile(r"[0-9]{1,9}")
_Place = tuple[str | None, int | None, object]


@dataclass(slots=True)
class Writers:
    """What a file's lines tell of its writers. named: the brokers that lines name as their writer.
    homes: per log directory those that may have it."""

    named: set[int] = field(default_factory=set)
    homes: dict[str, set[int]] = field(default_factory=dict)
    _announced: dict[_Place, LogLineFact | None] = field(default_factory=dict)

    @property
    def several(self) -> bool:
        return len(self.named) > 1

    def learn(self, fact: LogLineFact) -> None:
        """Takes a line in the order of the file; all lines, before `resolved` is asked."""
        if fact.broker is not None:
            self.named.add(fact.broker)
        if fact.kind == "settings":
            values = fact.fields["values"]
            broker = values.get("broker.id") or values.get("node.id") or ""
            places = values.get("log.dirs") or values.get("log.dir") or ""
            if _BROKER.fullmatch(broker):
                for place in filter(None, (p.strip() for p in places.strip("[]").split(","))):
                    self.homes.setdefault(place, set()).add(int(broker))
        announcer = self._announcer(fact)
        home = _home(fact)
        if announcer is not None and home is not None:
            self.homes.setdefault(home, set()).add(announcer)

    def resolved(
        self, facts: Iterable[LogLineFact | Unreadable]
    ) -> Iterator[LogLineFact | Unreadable]:
        """The facts with their writers, None for a line that may be of several."""
        self._announced.clear()
        for fact in facts:
            if isinstance(fact, Unreadable) or fact.broker is not None:
                if isinstance(fact, LogLineFact):
                    self._announcer(fact)
                yield fact
                continue
            writer = self._announcer(fact)
            homes = self.homes.get(_home(fact) or "", set())
            if writer is None and len(homes) == 1:
                writer = next(iter(homes))
            elif writer is not None and homes and writer not in homes:
                writer = None
            if fact.kind == "settings":
                values = fact.fields["values"]
                told = values.get("broker.id") or values.get("node.id") or ""
                writer = int(told) if _BROKER.fullmatch(told) else None
            yield fact._replace(broker=writer)

    def _announcer(self, fact: LogLineFact) -> int | None:
        """Who announced this very cut of a log just before, where only one did."""
        if fact.partition is None:
            return None
        place = (fact.topic, fact.partition, fact.fields.get("to_offset"))
        if fact.kind == "truncation_reason" and fact.broker is not None:
            before = self._announced.get(place)
            again = before is not None and before.broker != fact.broker
            # Two at once: whose the cut is cannot be told.
            self._announced[place] = (
                fact._replace(broker=None) if again and _at_once(before, fact) else fact
            )
            return None
        if fact.kind not in ("truncated", "truncation_without_effect") or fact.broker is not None:
            return None
        announced = self._announced.pop(place, None)
        return announced.broker if announced and _at_once(announced, fact) else None


def _at_once(before: LogLineFact | None, after: LogLineFact) -> bool:
    if before is None or before.at is None or after.at is None:
        return False
    return 0 <= after.at - before.at <= _AT_ONCE_MILLISECONDS


def _home(fact: LogLineFact) -> str | None:
    """The log directory that a line names; some name the partition's own in it."""
    named = fact.fields.get("directory")
    if not isinstance(named, str) or not named:
        return None
    directory = PurePosixPath(named)
    own = directory.name == f"{fact.topic}-{fact.partition}"
    return str(directory.parent if own else directory)
