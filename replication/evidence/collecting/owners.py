"""Whose a file is that names no broker: by where it lies, or by the log directory it speaks of.

Only what can be of nobody else counts: evidence of one broker alone around the file, a log
directory that of all known brokers just one has, or a folder with a name as people give to brokers.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

# A number behind a word for a broker, and behind it nothing but another word: what dates, versions
# and years look like is no broker.
_BROKERS_NAME = re.compile(
    r"(?:^|[^a-z0-9])(?:broker|kafka|node|controller|server|kafka-?logs?|brokerid|host)"
    r"(?:[-_ ]?id)?[-_ =]?(\d{1,9})(?:$|[-_. ][a-z(])",
    re.IGNORECASE,
)
_YEAR = re.compile(r"^(?:19|20)\d\d$|^20\d{6}$")


def broker_by_name(name: str) -> int | None:
    """The broker that a folder or a file is named after: `broker-2`, `kafka1`, `node_3.example`."""
    found = _BROKERS_NAME.search(name)
    return None if found is None or _YEAR.match(found[1]) else int(found[1])


@dataclass(frozen=True, slots=True)
class Owner:
    """A broker of a cluster ("" where none is named), and how it is known."""

    broker: int
    cluster_id: str
    known_by: str


@dataclass(slots=True)
class Surroundings:
    """What is known of brokers and places.

    roots: the folders handed over. places: (folder, broker, cluster id) of logs and log
    directories. homes: per log directory on the brokers' machines, the brokers that have it.
    brokers: all that are known to hold replicas. clusters: all that are named.
    """

    roots: list[Path]
    places: list[tuple[Path, int, str]] = field(default_factory=list)
    homes: dict[str, set[int]] = field(default_factory=dict)
    brokers: set[int] = field(default_factory=set)
    clusters: set[str] = field(default_factory=set)

    def owner(
        self,
        path: Path,
        directories: Iterable[str],
        headed: int | None = None,
        *,
        one_of_several: bool = False,
    ) -> Owner | str:
        """The owner of a file or of a part of it, or why nobody can tell. directories: the log
        directories that its content names. headed: the broker that a line above it names.
        one_of_several: lines of the file name several, so that it is not of one broker."""
        around = self._around(path)
        told = self._by_homes(set(directories))
        if headed is not None:
            if told not in (None, headed):
                return f"the line above names broker {headed}, its content broker {told}'s path"
            beside = around is not None and around[0] == headed
            if around is not None and not beside and not one_of_several:
                return (
                    f"the line above names broker {headed}, and it lies beside evidence of broker "
                    f"{around[0]}"
                )
            cluster = around[1] if around is not None and beside else ""
            return self._in_cluster(headed, cluster, "the line above that names it")
        if around is not None and told is not None and around[0] != told:
            return f"it lies beside evidence of broker {around[0]} but names broker {told}'s path"
        if around is not None:
            return self._in_cluster(around[0], around[1], "the evidence beside it")
        named = self._by_name(path)
        if named is not None and told is not None and named != told:
            return f"its folder names broker {named}, its content a log directory of broker {told}"
        if told is not None:
            return self._in_cluster(told, "", "the log directory that it names")
        if named is not None:
            return self._in_cluster(named, "", "its folder's name")
        return (
            "nothing shows which broker it is of: put it into a folder with that broker's log, or "
            "write a line above it that names the broker and nothing else (Broker 2:)"
        )

    def _in_cluster(self, broker: int, cluster_id: str, known_by: str) -> Owner | str:
        named = self.clusters - {""}
        if not cluster_id and len(named) > 1:
            return "nothing tells of which cluster it is"
        return Owner(broker, cluster_id or next(iter(named), ""), known_by)

    def _folders(self, path: Path) -> list[Path]:
        """The folders around a file, the nearest first, up to the one handed over."""
        roots = {root.resolve() for root in self.roots}
        found = []
        for folder in path.resolve().parents:
            if not any(folder == root or root in folder.parents for root in roots):
                break
            found.append(folder)
        return found

    def _around(self, path: Path) -> tuple[int, str] | None:
        """The one broker whose evidence lies in the nearest folder that has any of its own."""
        for folder in self._folders(path):
            if not any(place == folder for place, _, _ in self.places):
                continue
            below = [p for p in self.places if p[0] == folder or folder in p[0].parents]
            if len({broker for _, broker, _ in below}) != 1:
                return None
            clusters = {cluster for _, _, cluster in below} - {""}
            return below[0][1], next(iter(clusters)) if len(clusters) == 1 else ""
        return None

    def _by_name(self, path: Path) -> int | None:
        for folder in self._folders(path):
            found = broker_by_name(folder.name)
            if found is not None:
                return found
        return None

    def _by_homes(self, directories: set[str]) -> int | None:
        """The only broker that has these log directories, where those of all brokers are known."""
        having = [self.homes.get(d, set()) for d in directories]
        housed = set().union(*self.homes.values()) if self.homes else set()
        if not having or len(self.brokers | housed) < 2 or self.brokers - housed:
            return None
        owners = set.intersection(*having)
        return next(iter(owners)) if len(owners) == 1 else None
