"""Forced interleavings of two writers: the older one stands still, the newer one takes over.

In each trial an older writer makes one commit: few rows without Spark, rows that Spark appends or
puts in the place of others, rows of a table whose owner has switched on Delta's change data feed.
It stands still before it looks at the log, after that, or right before the commit, and in some
trials again when it repeats a commit that another one has forestalled. Meanwhile the newer one
takes over, and may commit. The older one must be refused in words that name the newer one, and no
commit of it may be there. Where only another commit comes between, it must cost nothing.

    python -m tests.spark.taken_over --seed 1 --trials 200 --on local

--on hdfs needs .jars/hdfs/.complete, --on s3 .jars/s3/.complete (`make` has both).
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from replication import places
from replication.paths import spark_jars
from replication.places import Place
from replication.spark import contracts, hadoop_files
from replication.spark.cut import BATCHES
from replication.spark.fence import Fence, TakenOverError
from replication.spark.log_files import commits_after, newest_version
from replication.spark.spark_commit import SparkTransaction
from replication.spark.tables import Store, Writer
from replication.spark.taking_over import take_over
from tests.spark import on_s3, standalone
from tests.spark.jobs_in_process import start_session

PARTITION = "c/t/i/0"
NEEDED: dict[str, Any] = {
    "string": "x", "bigint": 0, "boolean": True, "binary": b"x", "array": [], "map": {},
}  # fmt: skip
# The table whose owner has Delta keep what changed: only Spark's Delta writes that.
WITH_FEED = "divergences"
KINDS = {
    "few rows": "verdicts", "a row of _batches": BATCHES, "appended": "_refolds",
    "replaced": "verdicts", "all replaced": "verdicts", "with a feed": WITH_FEED,
}  # fmt: skip
# Before the look at what others have committed, behind that at the fence, right before the commit.
POINTS: dict[str, list[tuple[type, str, bool]]] = {
    "before the look": [(Store, "look", False)],
    "after the look": [(Fence, "check", True)],
    "before the commit": [
        (DeltaTable, "create_write_transaction", False), (SparkTransaction, "commit", False),
    ],
}  # fmt: skip


@dataclass
class Trials:
    """What a folder of tables has seen. stale: commits of an older writer after the newer's fence,
    in words; wrong: all else that is not as it must be."""

    spark: SparkSession
    folder: Place
    chance: random.Random
    seen: Counter[str] = field(default_factory=Counter)
    stale: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    names: int = 0

    def summary(self) -> str:
        """In one line."""
        seen = ", ".join(f"{name}: {count}" for name, count in sorted(self.seen.items()))
        return f"{seen}; stale commits: {len(self.stale)}; wrong besides: {len(self.wrong)}"

    def prepare(self) -> None:
        """Makes the tables."""
        Store(self.spark, self.folder).create()
        self.alter(WITH_FEED, "delta.enableChangeDataFeed = true")

    def alter(self, table: str, told: str) -> None:
        """A commit of somebody who may make it."""
        self.spark.sql(f"ALTER TABLE delta.`{self.folder / table}` SET TBLPROPERTIES ({told})")

    def writer(self, table: str) -> tuple[Writer, int]:
        """One that takes over, and the version of a table from which on it may write alone."""
        self.names += 1
        name = f"run-{self.names}"
        fence = take_over(self.spark, self.folder, (BATCHES, table), "fold", name)
        writer = Writer(name, self.names, "fold", name, f"fold/{name}", fence)
        return writer, fence.seen[table]

    def commit(self, kind: str, writer: Writer, number: int) -> None:
        """One of a writer, in a process of its own as far as Store tells."""
        store, table, rows = Store(self.spark, self.folder), KINDS[kind], [row(KINDS[kind], writer)]
        if kind == "a row of _batches":
            store.finish(writer, number, {}, ())
            return
        if kind == "few rows" and store.put_small(table, rows, [PARTITION], writer, number):
            return
        frame = frame_of(self.spark, table, rows)
        if kind == "appended":
            store.append(table, frame, writer, number)
        elif kind == "all replaced":
            store.overwrite(table, frame, writer, number)
        else:
            condition = f"topic_partition_id = '{PARTITION}'"
            store.replace_where(table, frame, condition, writer, number)

    def trial(self, kind: str) -> None:
        """One interleaving."""
        table, point = KINDS[kind], self.chance.choice(list(POINTS))
        older, _ = self.writer(table)
        newer: list[tuple[Writer, int]] = []

        def other() -> None:
            self.names += 1
            self.alter(table, f"'of.others' = '{self.names}'")

        def newer_one() -> None:
            newer.append(self.writer(table))
            for number in range(self.chance.choice((0, 0, 1, 2))):
                self.commit(kind, newer[0][0], number)

        ways: list[list[Callable[[], None]]] = [[newer_one]] * 3 + [[other, newer_one], [other]]
        meanwhile = self.chance.choice(ways)
        before, told = newest_version(self.folder / table), ""
        with standing(point, meanwhile):
            try:
                self.commit(kind, older, 0)
            except TakenOverError as error:
                told = str(error)
        what = f"{kind}, {point}, {', '.join(each.__name__ for each in meanwhile)}"
        landed = versions_of(self.folder / table, before, older)
        if newer:
            writer, since = newer[0]
            self.seen["taken over"] += 1
            self.stale += [
                f"{what}: version {v}, the fence is {since}" for v in landed if v > since
            ]
            if not told.startswith(f"run {writer.run!r} (process ") or landed:
                self.wrong.append(f"{what}: {told or 'not refused'}; versions {landed}")
        else:
            self.seen["no newer writer"] += 1
            if told or len(landed) != 1:
                self.wrong.append(f"{what}: {told or 'not refused'}; versions {landed}")


@contextmanager
def standing(point: str, meanwhile: Sequence[Callable[[], None]]) -> Iterator[None]:
    """Whoever comes to a point the first time stands still while the first thing happens, at the
    second time while the second does."""
    left = list(meanwhile)
    with ExitStack() as stack:
        for owner, name, after in POINTS[point]:
            stack.enter_context(_standing(owner, name, after, left))
        yield


@contextmanager
def _standing(
    owner: type, name: str, after: bool, left: list[Callable[[], None]]
) -> Iterator[None]:
    sound = getattr(owner, name)

    def stands(*given: Any, **named: Any) -> Any:
        happens = left.pop(0) if left else None
        if happens and not after:
            happens()
        found = sound(*given, **named)
        if happens and after:
            happens()
        return found

    setattr(owner, name, stands)
    try:
        yield
    finally:
        setattr(owner, name, sound)


def row(table: str, writer: Writer) -> dict[str, Any]:
    """A row of a table with nothing in it that may be null."""
    columns = contracts.tables()[table].told
    found = {c.name: None if c.nullable else NEEDED[c.type.split("<")[0]] for c in columns}
    return {**found, "topic_partition_id": PARTITION, "run": writer.run}


def frame_of(spark: SparkSession, table: str, rows: list[dict[str, Any]]) -> DataFrame:
    """Rows for a commit of Spark's."""
    told = contracts.tables()[table]
    values = [tuple(each[c.name] for c in told.told) for each in rows]
    return spark.createDataFrame(values, told.ddl).coalesce(1)


def versions_of(table: Place, since: int, writer: Writer) -> list[int]:
    """The versions after one that a writer has committed."""
    return [
        version
        for version, actions in commits_after(table, since)
        if any(
            (a.get("commitInfo", {}).get("tags") or {}).get("run") == writer.run for a in actions
        )
    ]


@contextmanager
def place_of(kind: str, folder: Path) -> Iterator[tuple[SparkSession, Place]]:
    """A session and a folder for tables on a store of that kind."""
    with ExitStack() as stack:
        settings, root = {}, str(folder / "tables")
        if kind == "hdfs":
            root = f"{stack.enter_context(standalone.hdfs(folder))}/tables"
        elif kind == "s3":
            told = stack.enter_context(on_s3.server(folder))
            root = f"{on_s3.BUCKET}/tables"
            jars = [*spark_jars(), *sorted(on_s3.S3.resolve().glob("*.jar"))]
            settings = {f"spark.hadoop.{name}": value for name, value in told.items()}
            settings |= {"spark.jars": ",".join(map(str, jars))}
            settings |= dict(each.split("=", 1) for each in on_s3.KEPT)
        spark = start_session(folder / "warehouse", settings)
        stack.callback(spark.stop)
        hadoop_files.bind(spark)
        yield spark, places.place(root)


def main(argv: list[str]) -> int:
    """The command; exit status 0 when no stale commit landed."""
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--trials", type=int, default=200)
    flags.add_argument("--on", choices=("local", "hdfs", "s3"), default="local")
    told = flags.parse_args(argv)
    with (
        tempfile.TemporaryDirectory(prefix="taken-over-") as name,
        place_of(told.on, Path(name)) as (spark, folder),
    ):
        trials = Trials(spark, folder, random.Random(told.seed))
        trials.prepare()
        for number in range(1, told.trials + 1):
            trials.trial(trials.chance.choice(list(KINDS)))
            if number % 20 == 0 or number == told.trials:
                print(f"{told.on}: {trials.summary()}", flush=True)
    for text in (*trials.stale, *trials.wrong):
        print(text)
    return 1 if trials.stale or trials.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
