"""Who may write: a query's newest writer has raised the fence, and an older one is refused.

The fence is in the log of each table that the query writes: a `txn` action with an application id
of its own, whose version is the generation, higher with each writer that begins. Each commit
looks at it in the log as far as the version that the commit is fixed to. Where a newer writer
raises it after that look, the log refuses the commit: deltalake commits at exactly the next version
or not at all, and Spark's Delta takes the fence for read and finds it changed. So nothing of an
older writer lands after the newer one has begun, on each store that puts a file only where there
is none: a process that stood still between look and commit is refused as any other.
"""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from replication.places import Place
from replication.spark.log_files import commits_after, newest_version

# So many commits back from the newest one are searched for who made them.
SEARCHED = 200


class TakenOverError(RuntimeError):
    """A newer writer has taken over these tables; the text says which."""


@dataclass
class Fence:
    """The right of one process to write what a query writes, until a newer one begins.

    seen: of each table of the query the version up to which its log has been looked at; last: that
    commit, by which a log that was made anew or put back is known.
    """

    query: str
    run: str
    generation: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)

    @property
    def app(self) -> str:
        """The application id of the fence in a table's log."""
        return f"fence/{self.query}"

    @property
    def tags(self) -> dict[str, str]:
        """What the commits of this process say of it in their commitInfo."""
        return {"query": self.query, "run": self.run, "process": str(os.getpid()),
                "host": socket.gethostname()}  # fmt: skip

    def check(self, table: Place, version: int, generation: Callable[[], int | None]) -> None:
        """Looks at the log of a table at least as far as the version that a commit rests on.

        generation: of the fence at that version, by the whole log; asked where a commit since the
        last look is gone, or that one is another now. Raises TakenOverError.
        """
        before = self.seen[table.name]
        commits = dict(commits_after(table, before - 1))
        seen = max(commits, default=-1)
        found: int | None = self.generation
        if before <= version <= seen and commits[before] == self.last[table.name]:
            for action in chain.from_iterable(commits[n] for n in range(before + 1, seen + 1)):
                if action.get("txn", {}).get("appId") == self.app:
                    found = int(action["txn"]["version"])
        else:
            found, seen = generation(), version
        if found is None or found < self.generation:
            raise TakenOverError(
                f"the log of {table} does not have this process (run {self.run!r}) as its writer "
                "any more: the table was put back or made anew, so this process stops writing"
            )
        if found > self.generation:
            raise self.taken_over(table)
        self.seen[table.name], self.last[table.name] = seen, commits.get(seen)

    def raised(self, table: Place, version: int) -> None:
        """Notes the version of a table that has this writer's fence."""
        self.seen[table.name] = version
        _, self.last[table.name] = next(commits_after(table, version - 1), (version, None))

    def taken_over(self, table: Place) -> TakenOverError:
        """What to raise where a newer writer has raised the fence of a table."""
        return TakenOverError(
            f"{last_writer(table, self.query)} has taken over the {self.query} tables of "
            f"{table.parent}: this process stops writing"
        )


def last_writer(table: Place, query: str) -> str:
    """Who of a query committed last to a table, in words."""
    newest = newest_version(table)
    for version in range(newest, max(-1, newest - SEARCHED), -1):
        _, actions = next(commits_after(table, version - 1), (version, []))
        for action in actions:
            tags = action.get("commitInfo", {}).get("tags") or {}
            if tags.get("query") == query:
                return f"run {tags['run']!r} (process {tags['process']} on {tags['host']})"
    return "a process that the log does not name"
