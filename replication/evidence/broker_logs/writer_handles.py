"""What ties a line that names no broker to those that may have written it.

Each handle looks at the brokers' own lines of one file and answers, for a line, who may be its
writer; None where it says nothing. A broker's lines are in its own order, whatever other brokers'
are between them, so nothing here rests on clocks that agree.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.line_families.family import brokers_among
from replication.evidence.broker_logs.log_places import (
    directories_of_settings,
    is_aside,
    log_directory,
)
from replication.evidence.broker_logs.starts import names_who_starts
from replication.evidence.broker_logs.threads import leader_of_thread

# A fetcher cuts the log in the moment in which it says so.
_AT_ONCE_MILLISECONDS = 100
# Lines that a broker's own role changes by. Who prints the first alone may have stopped leading.
_ROLES = frozenset(
    ("became_leader", "became_follower", "leader_and_isr_received", "leader_and_isr_ignored",
     "fetcher_added", "fetcher_removed")
)  # fmt: skip
_CUTS = frozenset(("truncated", "truncation_without_effect", "truncated_fully"))
_FETCHER_KINDS = frozenset(
    ("truncation_reason", "truncated_below_high_watermark", "fetch_out_of_range",
     "fetch_offset_reset", "truncation_refused", "fenced", "fetching_failed", "fetch_failed",
     "fetch_response_received", "follower_appended")
)  # fmt: skip
_Place = tuple[str | None, int | None]


@dataclass(slots=True)
class Homes:
    """By log directory. of: the directories of each broker whose settings are here."""

    of: dict[int, set[str]] = field(default_factory=dict)

    def learn(self, fact: LogLineFact) -> None:
        if fact.kind != "settings" or fact.broker is None:
            return
        named = directories_of_settings(fact.fields["values"])
        if named is not None:
            self.of.setdefault(fact.broker, set()).update(named)

    def may_have_written(self, fact: LogLineFact, brokers: Iterable[int]) -> set[int] | None:
        """Those that have the directory, or may have it: of whose directories nothing is known."""
        home = log_directory(fact)
        if home is None:
            return None
        return {b for b in brokers if b not in self.of or home in self.of[b]}


@dataclass(slots=True)
class Places:
    """By where replicas lie: a broker has each in one directory until it moves it, and none outside
    of its settings. So what names another directory in between is another broker's line, but where
    both are one broker's: it moves a replica from one to the other. So is one that moves a log's
    start to where it is. With KRaft a broker prints its settings once its logs are loaded, so that
    all of the file tells which directories are somebody's.
    """

    _more: int = 1
    _homes: Homes = field(default_factory=Homes)
    _named: set[int] = field(default_factory=set)
    _last: dict[_Place, str] = field(default_factory=dict)
    _seen: dict[_Place, set[str]] = field(default_factory=dict)
    _turns: dict[_Place, set[str]] = field(default_factory=dict)
    _future: set[tuple[_Place, str]] = field(default_factory=set)
    # Of those whose settings were printed by then, nobody's.
    _foreign: set[str] = field(default_factory=set)
    # When a log's start was moved to where.
    _began: dict[_Place, dict[int, int | None]] = field(default_factory=dict)

    @property
    def at_least(self) -> int:
        """How many brokers wrote the file, as far as lines about one partition show."""
        owned = self._homes.of.values()
        apart = [
            len(homes)
            for place, turns in self._turns.items()
            if len(homes := {h for h in turns if (place, h) not in self._future}) > 1
            and not any(homes <= own for own in owned)
        ]
        return max([self._more, *apart])

    @property
    def outside(self) -> bool:
        """Whether a directory is named that none of the brokers has."""
        return bool(self._foreign - set().union(*self._homes.of.values()))

    def learn(self, fact: LogLineFact) -> None:
        """Takes a line in the order of the file."""
        self._learn_start(fact)
        self._homes.learn(fact)
        if fact.broker is not None:
            self._named.add(fact.broker)
        home = log_directory(fact) if fact.partition is not None else None
        if home is None:
            return
        place = (fact.topic, fact.partition)
        if is_aside(fact):
            if str(fact.fields["directory"]).rstrip("/\\").endswith("-future"):
                self._future.add((place, home))
            return
        seen = self._seen.setdefault(place, set())
        if home in seen and self._last[place] != home:
            self._turns[place] = seen
        seen.add(home)
        self._last[place] = home
        all_known = bool(self._named) and self._named <= self._homes.of.keys()
        if all_known and not any(home in own for own in self._homes.of.values()):
            self._foreign.add(home)

    def _learn_start(self, fact: LogLineFact) -> None:
        place = (fact.topic, fact.partition)
        if fact.kind in ("log_loaded", "log_created", "truncated_fully"):
            self._began.pop(place, None)
        elif fact.kind == "log_start_advanced":
            # A line that is there twice is of one moment.
            to = fact.fields["log_start_offset"]
            if self._began.setdefault(place, {}).setdefault(to, fact.at) != fact.at:
                self._more = 2


@dataclass(slots=True)
class Announcements:
    """By a fetcher's own line just before that says what it is about to cut."""

    _open: dict[tuple[_Place, object], dict[int, LogLineFact]] = field(default_factory=dict)

    def take(self, fact: LogLineFact) -> None:
        """A line that names its writer."""
        if fact.kind in ("truncation_reason", "fetch_offset_reset") and fact.broker is not None:
            place = ((fact.topic, fact.partition), fact.fields.get("to_offset"))
            self._open.setdefault(place, {})[fact.broker] = fact

    def may_have_written(self, fact: LogLineFact) -> set[int] | None:
        """Who announced this very cut; of several, whose it is cannot be told."""
        if fact.kind not in _CUTS:
            return None
        announced = self._open.pop(
            ((fact.topic, fact.partition), fact.fields.get("to_offset")), None
        )
        if not announced or not any(_at_once(before, fact) for before in announced.values()):
            return None
        return set(announced)


def _at_once(before: LogLineFact, after: LogLineFact) -> bool:
    if before.at is None or after.at is None:
        return False
    return 0 <= after.at - before.at <= _AT_ONCE_MILLISECONDS


@dataclass(slots=True)
class Signals:
    """By what a signal does at once: its line is of the only broker that shuts down then."""

    _signals: list[LogLineFact] = field(default_factory=list)
    _stopping: list[LogLineFact] = field(default_factory=list)

    def learn(self, fact: LogLineFact) -> None:
        """All lines, before any is asked about."""
        if fact.kind == "process_signalled":
            self._signals.append(fact)
        elif fact.kind == "stopping" and fact.broker is not None:
            self._stopping.append(fact)

    def may_have_written(self, fact: LogLineFact) -> set[int] | None:
        if fact.kind != "process_signalled":
            return None
        if sum(_at_once(s, fact) or _at_once(fact, s) for s in self._signals) != 1:
            return None
        stopping = {s.broker for s in self._stopping if _at_once(fact, s) and s.broker is not None}
        return stopping if len(stopping) == 1 else None


@dataclass(slots=True)
class Replicas:
    """By the assignment: only a replica cuts its log. Of a partition all that are named with it
    count, where some line names its replicas."""

    _named: dict[_Place, set[int]] = field(default_factory=dict)
    _assigned: set[_Place] = field(default_factory=set)

    def learn(self, fact: LogLineFact) -> None:
        """All lines, before any is asked about."""
        if fact.partition is None:
            return
        place = (fact.topic, fact.partition)
        named = self._named.setdefault(place, set())
        named.update(brokers_among(fact.fields))
        if fact.broker is not None and fact.kind in _ROLES:
            named.add(fact.broker)
        if fact.fields.get("replicas"):
            self._assigned.add(place)

    def may_have_written(self, fact: LogLineFact) -> set[int] | None:
        place = (fact.topic, fact.partition)
        if fact.kind not in ("truncated", "high_watermark_regressed"):
            return None
        return set(self._named[place]) if place in self._assigned else None


_LEADS, _ANY_ROLE = -2, -1


@dataclass(slots=True)
class Roles:
    """By roles and log ends, each broker's by its own clock: a leader cuts nothing, a follower
    nothing beyond where its log ended when its term began, and what a start loads ends where the
    next line about the broker's role says."""

    # Brokers that print when they follow, those that print their log's end then, and those that
    # print what the controller asks of them: fetchers' lines tell no more.
    _follow: set[int] = field(default_factory=set)
    _print_ends: set[int] = field(default_factory=set)
    _asked: set[int] = field(default_factory=set)
    # When a broker took which role: it leads, its log's end as a follower, or nothing is told.
    _told: dict[tuple[_Place, int], list[tuple[int, int]]] = field(default_factory=dict)
    _fetchers: dict[tuple[_Place, int], list[tuple[int, int]]] = field(default_factory=dict)
    _ends: dict[tuple[_Place, int], list[tuple[int, int]]] = field(default_factory=dict)
    _starts: dict[str, dict[int, list[int]]] = field(default_factory=dict)

    def learn(self, fact: LogLineFact) -> None:
        """All lines, before any is asked about."""
        broker, at = fact.broker, fact.at
        if broker is None or at is None:
            return
        if names_who_starts(fact):
            self._starts.setdefault(fact.kind, {}).setdefault(broker, []).append(at)
        if fact.kind not in _ROLES or fact.partition is None:
            return
        key = ((fact.topic, fact.partition), broker)
        end = fact.fields.get("log_end_offset")
        if fact.kind != "became_leader":
            self._follow.add(broker)
        if fact.kind.startswith("fetcher"):
            self._fetchers.setdefault(key, []).append((at, _ANY_ROLE))
            return
        if fact.kind == "leader_and_isr_received":
            self._asked.add(broker)
        if fact.kind == "became_follower" and end is not None:
            self._print_ends.add(broker)
        if end is not None:
            self._ends.setdefault(key, []).append((at, end))
        role = _LEADS if _leads(fact) else _ANY_ROLE if end is None else end
        self._told.setdefault(key, []).append((at, role))

    def may_have_cut(self, fact: LogLineFact, brokers: Iterable[int]) -> set[int] | None:
        """Of a cut: those that may not have led then, and may have had something to cut."""
        if fact.kind != "truncated" or fact.at is None:
            return None
        place, to = (fact.topic, fact.partition), fact.fields["to_offset"]
        return {b for b in brokers if self._may_cut((place, b), fact.at, to)}

    def _may_cut(self, key: tuple[_Place, int], at: int, to: int) -> bool:
        return any(
            role == _ANY_ROLE or role > to or (role == _LEADS and key[1] not in self._follow)
            for role in self._roles(key, at)
        )

    def _roles(self, key: tuple[_Place, int], at: int) -> list[int]:
        """The role that a broker had at a moment, and those that it took beside it: lines of one
        moment may be in any order."""
        told = list(self._told.get(key, ()))
        if key[1] not in self._asked | self._print_ends:
            told += self._fetchers.get(key, ())
        last = max((t for t in told if t[0] < at - _AT_ONCE_MILLISECONDS), default=None)
        beside = [role for t, role in told if abs(t - at) <= _AT_ONCE_MILLISECONDS]
        if last is None or self._started(key[1], last[0], at):
            return [*beside, _ANY_ROLE]
        return [*beside, last[1]]

    def _started(self, broker: int, since: int, until: int) -> bool:
        """Whether the broker started in between. With KRaft its settings are printed late."""
        times = self._starts.get("cluster_id", {}).get(broker)
        times = self._starts.get("settings", {}).get(broker, []) if times is None else times
        return any(since < at <= until for at in times)

    def may_have_loaded(self, fact: LogLineFact, brokers: Iterable[int]) -> set[int] | None:
        """Of a log that was loaded: those whose log may have ended there."""
        end = fact.fields.get("log_end_offset")
        if fact.kind != "log_loaded" or fact.at is None or end is None or is_aside(fact):
            return None
        place = (fact.topic, fact.partition)
        return {b for b in brokers if self._next_end((place, b), fact.at) in (None, end)}

    def _next_end(self, key: tuple[_Place, int], at: int) -> int | None:
        """Where the broker's log ended when it next took a role, if it prints that for each role
        and did not start anew before."""
        later = min((e for e in self._ends.get(key, ()) if e[0] >= at), default=None)
        if later is None or key[1] not in self._print_ends:
            return None
        return None if self._started(key[1], at, later[0]) else later[1]


def _leads(fact: LogLineFact) -> bool:
    if fact.kind == "leader_and_isr_received":
        return fact.fields.get("leader") == fact.broker
    return fact.kind == "became_leader"


def not_the_leader(fact: LogLineFact, brokers: Iterable[int]) -> set[int] | None:
    """Of a fetcher's line, or a line of its thread: nobody fetches from itself."""
    leader = fact.fields.get("leader") if fact.kind in _FETCHER_KINDS else None
    if leader is None:
        leader = leader_of_thread(fact.thread)
    return None if leader is None else set(brokers) - {leader}
