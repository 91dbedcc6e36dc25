"""What jobs/maintain.py does: few files, no files that nothing names, few notes; beside a stream.

Compaction moves rows between files, which readers and the stream pass over. Old files go when they
are older than asked and no version that the newest rows of `_batches` name, or a script of views
beside the tables pins, still needs them; so do commits that a Delta checkpoint has taken over. A
commit that meets one of the stream is made again while the stream's wait.

Where asked, old rows of `_batches` are summed up, and events are deleted that the fold has folded
long ago. What is deleted cannot be folded again: a row of `_batches` says how far that goes.
"""

import argparse
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replication import places
from replication.command_line import Parser
from replication.places import Place
from replication.reports.inventory_words import counted
from replication.spark import contracts, ingest, live, session, views
from replication.spark.cut import BATCHES
from replication.spark.delta_schemas import MARK, named
from replication.spark.event_files import PRUNED, number_of
from replication.spark.failures import OF_DELTA, is_conflict
from replication.spark.locks import commits_locked
from replication.spark.lost_tables import lost, named_by
from replication.spark.other_writers import RETENTION
from replication.spark.progress import Progress
from replication.spark.tables import (
    ADDED_UP,
    REPLACED_BY_NAME,
    Store,
    TablesError,
    Writer,
    completed,
)
from replication.spark.topic_partition_ids import TOPIC_PARTITION_ID

EXIT_OK = 0
HOUR = 3_600.0
# A file younger than this may belong to a commit under way.
COMMIT_HOURS = 1.0
GIVES_WAY = "gives way to the stream, the next round does it"
# By what people look for events; also what makes one topic partition of one cluster.
CLUSTERED = ("cluster_id", "topic", "partition")
GIBIBYTE = 1 << 30
# Delta's own guard is against readers of unknown versions; here they are known. Its VACUUM takes no
# hours but 0 at their word (delta-io/delta#5028), and writes two commits about itself: a table that
# is quiet for a month would end behind them, and the version that _batches names be cleaned away.
SWITCHED_OFF = (
    "spark.databricks.delta.retentionDurationCheck.enabled",
    "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled",
    "spark.databricks.delta.vacuum.logging.enabled",
)
# How long Delta remembers which files were removed when; its log must last as long.
REMEMBERED, LOG_KEPT = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
DAY, WEEK, LOG_HOURS = 24, 7 * 24, 30 * 24


def parser() -> argparse.ArgumentParser:
    """The command line of jobs/maintain.py."""
    made = Parser(
        prog="maintain.py",
        description="Compacts the Delta tables, deletes files that no version in use needs, and "
        "joins the stream's notes of what it has read. May run beside the stream.",
        epilog="Exit status: 0 done, 2 the tables cannot be read, 4 a defect of this tool, 5 what "
        "it depends on failed and may come back.",
    )
    made.add_argument(
        "--tables", required=True, type=places.tables_folder, metavar="DIR", help=places.TABLES_HELP
    )
    made.add_argument(
        "--checkpoint-dir", type=places.folder, metavar="DIR",
        help="that of the stream, whose notes are joined. Without it old files of replica_events "
        "stay, since nothing tells how far the fold has read them",
    )  # fmt: skip
    made.add_argument(
        "--keep-hours", type=float, default=168.0, metavar="HOURS",
        help="old versions of the tables stay readable for so many whole hours, at least 1 (168)",
    )  # fmt: skip
    made.add_argument(
        "--keep-batches-hours", type=float, metavar="HOURS",
        help="sum up the rows of _batches that are older. Without it each micro-batch keeps its "
        "row",
    )  # fmt: skip
    made.add_argument(
        "--keep-events-hours", type=float, metavar="HOURS",
        help="delete the events that are older and folded, and the files that a stream of shipped "
        "lines wrote them into; events of partitions with a gap in their trace stay. What is "
        "deleted cannot be folded again, neither by --new-run nor where an event comes that late. "
        "Needs --checkpoint-dir",
    )  # fmt: skip
    made.add_argument(
        "--files", type=int, default=16, metavar="N",
        help="compact a table that has at least so many files (16)",
    )  # fmt: skip
    made.add_argument(
        "--cluster-below", type=float, default=1.0, metavar="GIB",
        help="where replica_events has at most so many GiB, compaction writes all of it anew, with "
        "the events of one topic partition side by side: queries by cluster, topic or partition "
        "then read fewer files (1)",
    )  # fmt: skip
    return made


def main(argv: list[str]) -> int:
    """Runs the job; returns the exit status."""
    flags = parser().parse_args(argv)
    progress = Progress()
    spark = session.start("replication-analyzer maintenance", [flags.tables.absolute()])
    try:
        kept = Kept(flags.keep_hours, flags.keep_batches_hours, flags.keep_events_hours)
        _check(kept, flags)
        checkpoint_dir = flags.checkpoint_dir and flags.checkpoint_dir.absolute()
        tables = flags.tables.absolute()
        round_ = Maintenance(spark, tables, checkpoint_dir, progress, flags.cluster_below)
        round_.run(kept, flags.files)
        return EXIT_OK
    finally:
        spark.stop()


@dataclass(frozen=True)
class Kept:
    """For how many hours is kept: what no version in use needs, rows of `_batches`, events. None:
    for ever."""

    versions: float
    batches: float | None = None
    events: float | None = None


def _check(kept: Kept, flags: argparse.Namespace) -> None:
    hours = [h for h in (kept.versions, kept.batches, kept.events) if h is not None]
    if min(hours) < 0 or flags.files < 1:
        raise TablesError("hours that are kept are at least 0, --files at least 1")
    if kept.events is not None and flags.checkpoint_dir is None:
        raise TablesError("--keep-events-hours needs --checkpoint-dir: what is not folded stays")


@dataclass
class Maintenance:
    """One round over the tables of a folder. checkpoint_dir: of the stream that writes them.
    cluster_below: events of no more gibibytes are clustered as they are compacted."""

    spark: SparkSession
    tables: Place
    checkpoint_dir: Place | None
    progress: Progress
    cluster_below: float = 1.0

    def run(self, kept: Kept, files: int) -> None:
        """Deletes and sums up what is old, compacts what has at least that many files, joins notes.

        Raises TablesError where the folder holds no tables.
        """
        store = Store(self.spark, self.tables)
        found = [t for t in views.stored() if (self.tables / t / "_delta_log").is_dir()]
        if BATCHES not in found:
            raise TablesError(f"{self.tables} has no table {BATCHES}: give a stream's --tables")
        problem = lost(self.tables, named_by(store.batches()))
        if problem is not None:
            self.progress.say(problem)
        now = time.time()
        if kept.events is not None:
            self._delete_events(store, now - kept.events * HOUR)
        if kept.batches is not None:
            self._sum_up(store, now - kept.batches * HOUR)
        many = [table for table in found if store.files(table) >= files]
        for table in many:
            self._compact(store, table)
        if not many:
            self.progress.say(f"no table is compacted: none has {files} files or more (--files)")
        pinned = self._pinned(store)
        for setting in SWITCHED_OFF:
            self.spark.conf.set(setting, "false")
        _silence_the_console(self.spark)
        for table in found:
            used = self._in_use(table, pinned.get(table), now)
            if used is None:
                self.progress.say(f"{table}: none of its files goes: {self._no_fold()}")
                continue
            if not self._remembered(store, table, used, kept.versions):
                continue
            # Whole hours, rounded up, as Delta would take the nearest; and none of files that may
            # wait for their commit.
            hours = math.ceil(max(kept.versions, used, COMMIT_HOURS))
            gone = f"{table}: files that no version of the last {hours} hours needs are deleted"
            self._sql(f"VACUUM {self._name(table)} RETAIN {hours} HOURS", gone)
            self._drop_commits(table, pinned.get(table), now - hours * HOUR)
        if self.checkpoint_dir is not None:
            if kept.events is not None:
                self._delete_event_files(now - kept.events * HOUR)
            for query in (ingest.QUERY, live.QUERY):
                self._join_notes(query, now - kept.versions * HOUR)

    def _compact(self, store: Store, table: str) -> None:
        """Few files in the place of many; of events not too many for it, those of one topic
        partition side by side. Without statistics of the columns Delta refuses that."""
        order = ", ".join(CLUSTERED)
        told = (store.statistics(table) or "").split(",")
        small = store.size(table) <= self.cluster_below * GIBIBYTE
        if table == "replica_events" and small and set(CLUSTERED) <= set(told):
            done = f"{table}: compacted by {order}"
            self._sql(f"OPTIMIZE {self._name(table)} ZORDER BY ({order})", done)
            return
        self._sql(f"OPTIMIZE {self._name(table)}", f"{table}: compacted")

    def _delete_events(self, store: Store, before: float) -> None:
        """Deletes the events of micro-batches of the ingest that finished long ago and are folded.

        The row of `_batches` that says so comes first: from then on nobody counts on them.
        """
        newest = store.newest_batches().get("ingest")
        read_to = self._folded_to("replica_events")
        if newest is None or read_to is None:
            self.progress.say(f"no events are deleted: {self._no_fold()}")
            return
        own = F.col("run") == newest["run"]
        old = (
            store.newest(BATCHES)
            .filter(own & (F.col("query") == "ingest"))
            .filter(F.col("finished_at") < int(before * 1000))
            .filter(F.element_at("table_versions", F.lit("replica_events")) <= read_to)
        )
        last = old.agg(F.max("micro_batch_id").alias("last")).collect()[0]["last"]
        if last is None or last <= store.retained_above(newest["run"]):
            self.progress.say(
                "no events are deleted: no micro-batch of the ingest is older, folded and not "
                "deleted yet (--keep-events-hours)"
            )
            return
        gapped = self._gapped(store)
        if len(gapped) > REPLACED_BY_NAME:
            self.progress.say(
                f"no events are deleted: {counted(len(gapped), 'partition')} not complete yet"
            )
            return
        app = f"{RETENTION}/{newest['run']}"
        writer = Writer(newest["run"], newest["run_number"], RETENTION, newest["token"], app)
        store.finish(writer, last, {}, ())
        old_events = f"run = '{newest['run']}' AND micro_batch_id <= {last}"
        kept = f" AND NOT coalesce({named(gapped, TOPIC_PARTITION_ID)}, false)" if gapped else ""
        self._sql(
            f"DELETE FROM {self._name('replica_events')} WHERE {old_events}{kept}",
            f"replica_events: those up to micro-batch {last} of the ingest deleted",
        )

    def _gapped(self, store: Store) -> list[str]:
        """Topic partitions that wait for an event of their trace: they may be folded again."""
        waiting = store.newest("verdicts").filter(F.col("reason").startswith("trace_gap"))
        found = waiting.select("topic_partition_id").distinct().collect()
        return sorted(row["topic_partition_id"] for row in found)

    def _sum_up(self, store: Store, before: float) -> None:
        """Puts one row of `_batches` in the place of the old ones of each run of a query.

        Rows on either side of deleted events stay apart: their counts are held against what is
        left.
        """
        rows = store.newest(BATCHES).filter(F.col("query") != RETENTION).collect()
        above = {run: store.retained_above(run) for run in {row["run"] for row in rows}}
        parts: dict[tuple[str, str, bool], list[dict[str, Any]]] = {}
        for row in sorted(rows, key=lambda r: r["micro_batch_id"]):
            last = above[row["run"]] if row["query"] == "ingest" else -1
            deleted = last >= 0 and row["micro_batch_id"] <= last
            key = (row["query"], row["run"], deleted)
            parts.setdefault(key, []).append(row.asDict())
        newest = {
            (row["query"], row["run"]): row["micro_batch_id"]
            for row in store.newest_batches().values()
        }
        summed = False
        for (query, run, _), found in sorted(parts.items()):
            old = [
                row for row in found
                if (row["finished_at"] or 0) < before * 1000
                and row["micro_batch_id"] != newest.get((query, run))
            ]  # fmt: skip
            if len(old) > 1:
                self._replace_batches(store, old)
                summed = True
        if not summed:
            self.progress.say("_batches: no two rows are old enough (--keep-batches-hours)")

    def _replace_batches(self, store: Store, old: list[dict[str, Any]]) -> None:
        """Old: consecutive rows of one run of a query, in order; their sum takes their place."""
        first, last = old[0], old[-1]
        total = summed_up(old)
        condition = (
            f"run = '{last['run']}' AND query = '{last['query']}' AND micro_batch_id BETWEEN "
            f"{first['micro_batch_id']} AND {last['micro_batch_id']}"
        )
        rows = store.spark.createDataFrame([total], contracts.tables()[BATCHES].ddl)
        columns = [c.name for c in contracts.tables()[BATCHES].told]
        written = (
            completed(BATCHES, rows.select(*columns))
            .coalesce(1)
            .write.format("delta")
            .mode("overwrite")
        )
        replacing = written.option("replaceWhere", condition).option("userMetadata", MARK)
        done = self.committed(lambda: replacing.save(store.path(BATCHES)))
        told = f"{counted(len(old), 'row')} of the {last['query']} summed up" if done else GIVES_WAY
        self.progress.say(f"_batches: {told}")

    def _name(self, table: str) -> str:
        return f"delta.`{str(self.tables / table).replace('`', '``')}`"

    def _sql(self, text: str, done: str = "") -> None:
        if not self.committed(lambda: self.spark.sql(text).collect()):
            done = f"{text.split()[0]} {GIVES_WAY}"
        if done:
            self.progress.say(done)

    def committed(self, work: Callable[[], object]) -> bool:
        """Does what commits to a table. Where a commit of the stream comes between, it is done once
        more while the stream's wait: one that never stops would come between each time. False where
        one came between all the same (a store without locks)."""
        for others_wait in (False, True):
            try:
                with commits_locked(self.tables, alone=True) if others_wait else nullcontext():
                    work()
                return True
            except OF_DELTA as error:
                if not is_conflict(error):
                    raise
        return False

    def _pinned(self, store: Store) -> dict[str, int]:
        """Table -> the oldest version in use: by `_batches`, or by scripts of views."""
        pinned = dict(store.cut())
        for script in self.tables.glob("*.sql"):
            for path, version in re.findall(
                r"delta\.`([^`]+)` VERSION AS OF (\d+)", script.read_text(encoding="utf-8")
            ):
                table = places.place(path).name
                pinned[table] = min(int(version), pinned.get(table, int(version)))
        return pinned

    def _in_use(self, table: str, version: int | None, now: float) -> float | None:
        """How many hours ago the first file went that a version in use needs, 0 where none did;
        None where none of the table's files may go."""
        in_use = [] if version is None else [version]
        if table in ("replica_events", "_refolds"):
            read_to = self._folded_to(table)
            if read_to is None:
                return None
            in_use.append(read_to)
        # What a version needs was put aside by a later commit, not before.
        written = [self._written(table, each + 1) for each in in_use]
        return max(((now - when) / HOUR + 0.01 for when in written if when), default=0.0)

    def _remembered(self, store: Store, table: str, used: float, keep_hours: float) -> bool:
        """Whether Delta knows yet what went so many hours ago.

        Of a file that it has forgotten it knows no use, and deletes it though an old version needs
        it. So a table is told to remember for longer, a day before that is due.
        """
        known = store.remembers_hours(table)
        if used > known:
            self.progress.say(
                f"{table}: none of its files goes: a version in use was replaced {used:.0f} hours "
                f"ago, and after {known:.0f} Delta forgets what it needs ({REMEMBERED})"
            )
            return False
        wanted = math.ceil(max(keep_hours, used + DAY))
        if wanted > known:
            hours = wanted + WEEK
            self._sql(
                f"ALTER TABLE {self._name(table)} SET TBLPROPERTIES ("
                f"'{REMEMBERED}' = 'interval {hours} hours', "
                f"'{LOG_KEPT}' = 'interval {max(LOG_HOURS, hours)} hours')"
            )
        return True

    def _drop_commits(self, table: str, pinned: int | None, before: float) -> None:
        """Deletes commits older than a Delta checkpoint from which every version in use can be
        made: Delta would keep them for thirty days. Of younger ones their checksums."""
        log = self.tables / table / "_delta_log"
        in_use = [pinned] if pinned is not None else []
        if table in ("replica_events", "_refolds"):
            read_to = self._folded_to(table)
            if read_to is None:
                return
            in_use.append(read_to)
        whole = [int(p.name[:20]) for p in log.glob("*.checkpoint*.parquet")]
        enough = [version for version in whole if version <= min(in_use, default=version)]
        if not enough:
            return
        for path in log.glob("*[0-9]*"):
            number = path.name.removeprefix(".")[:20]
            if not number.isdigit() or int(number) >= max(enough):
                continue
            # Checksums, of a version and of files, are for who has just written them; every look
            # at the table goes through all names (LogStore.listFrom), three in four of them these.
            if path.name.endswith(".crc") or path.stat().st_mtime < before:
                path.unlink(missing_ok=True)

    def _no_fold(self) -> str:
        """Why it is not known how far the fold has read."""
        if self.checkpoint_dir is None:
            return "only --checkpoint-dir tells how far the fold has read it"
        return f"no finished micro-batch of a fold is in {self.checkpoint_dir}"

    def _written(self, table: str, version: int) -> float | None:
        """When a version was committed, in seconds; None where there is none, or no longer."""
        commit = self.tables / table / "_delta_log" / f"{version:020d}.json"
        try:
            return commit.stat().st_mtime
        except OSError:
            return None

    def _folded_to(self, table: str) -> int | None:
        """The version of a table up to which the fold's query has read it; None: not known."""
        if self.checkpoint_dir is None:
            return None
        spark_location = self.checkpoint_dir / "fold" / "spark"
        done = sorted(
            int(p.name) for p in (spark_location / "commits").glob("*") if p.name.isdigit()
        )
        if not done:
            return None
        lines = (spark_location / "offsets" / str(done[-1])).read_text("utf-8").splitlines()
        offsets = [json.loads(line) for line in lines[2:] if line.startswith("{")]
        place = 0 if table == "replica_events" else 1
        return int(offsets[place]["reservoirVersion"]) if place < len(offsets) else None

    def _delete_event_files(self, before: float) -> None:
        """Deletes what a stream of shipped lines wrote long ago for the ingest to read, where that
        has: the events are in replica_events. The newest file stays."""
        assert self.checkpoint_dir is not None
        written = sorted(places.matching(self.checkpoint_dir / live.QUERY / "events", "*.jsonl"))
        read = self._read_to() if written else {}
        old = [
            path
            for path in written[:-1]
            if (found := path.stat()).st_mtime < before and found.st_size <= read.get(path.name, -1)
        ]
        for path in old:
            path.unlink()
        if written:
            self.progress.say(
                f"{counted(len(old), 'file')} of joined lines' events deleted, which were read"
            )

    def _read_to(self) -> dict[str, int]:
        """By a source file's name, up to which byte finished micro-batches of the ingest read."""
        assert self.checkpoint_dir is not None
        folder = self.checkpoint_dir / ingest.QUERY / "admitted"
        read = self._read_notes(ingest.QUERY)
        notes = [p.read_text("utf-8") for p in places.matching(folder, "*.json") if p.name in read]
        joined = folder / PRUNED
        if joined.is_file():
            notes += joined.read_text("utf-8").splitlines()
        found: dict[str, int] = {}
        for note in map(json.loads, notes):
            name = note["path"].rsplit("/", 1)[-1]
            found[name] = max(note["end_byte"], found.get(name, 0))
        return found

    def _join_notes(self, query: str, before: float) -> None:
        """Joins the notes of slices that were read long ago into one file."""
        assert self.checkpoint_dir is not None
        if not (self.checkpoint_dir / query).is_dir():
            return
        folder = self.checkpoint_dir / query / "admitted"
        if not folder.is_dir():
            # What a topic gives is not noted file by file: Spark's log of that source has offsets.
            self.progress.say(f"{query}: no notes to join, since it reads no files")
            return
        read = self._read_notes(query)
        old = [
            p
            for p in places.matching(folder, "*.json")
            if p.name in read and p.stat().st_mtime < before
        ]
        if len(old) < 2:
            self.progress.say(f"{query}: no two notes of what was read are old enough to join")
            return
        _write_joined(folder / PRUNED, old)
        for path in old:
            path.unlink()
        _forget_gone(self.checkpoint_dir / query / "spark" / "sources" / "0", folder)
        self.progress.say(f"{query}: {len(old)} notes of what was read joined into one")

    def _read_notes(self, query: str) -> set[str]:
        """The names of the notes that finished micro-batches of the query have read."""
        assert self.checkpoint_dir is not None
        spark_location = self.checkpoint_dir / query / "spark"
        done = [int(p.name) for p in (spark_location / "commits").glob("*") if p.name.isdigit()]
        found = set()
        for log in (spark_location / "sources" / "0").glob("[0-9]*"):
            for line in log.read_text(encoding="utf-8").splitlines():
                if line.startswith("{"):
                    entry = json.loads(line)
                    if entry["batchId"] <= max(done, default=-1):
                        found.add(entry["path"].rsplit("/", 1)[-1])
        return found


def _silence_the_console(spark: SparkSession) -> None:
    """Takes from this thread's calls of the JVM what VACUUM prints to stdout for each table, be
    it that no file went."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    nowhere = jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream())
    getattr(getattr(jvm.scala, "Console$"), "MODULE$").setOutDirect(nowhere)


def summed_up(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Consecutive rows of `_batches` as one: their counts added up, all else as in the last one."""
    last = dict(rows[-1])
    for name in (*ADDED_UP, "milliseconds"):
        last[name] = sum(row[name] or 0 for row in rows)
    changes: dict[str, int] = {}
    for row in rows:
        for table, change in (row["table_rows"] or {}).items():
            changes[table] = changes.get(table, 0) + change
    times = [row["newest_event_time"] for row in rows if row["newest_event_time"] is not None]
    first = rows[0]["first_micro_batch_id"]
    return last | {
        "table_rows": changes,
        "newest_event_time": max(times, default=None),
        "first_micro_batch_id": rows[0]["micro_batch_id"] if first is None else first,
        "finished_at": max(row["finished_at"] or 0 for row in rows),
    }


def _forget_gone(seen: Place, notes: Place) -> None:
    """Takes notes that are gone out of the newest compacted log of what Spark's file source has
    seen (CompactibleFileStreamLog), which else carries each for ever."""
    compacted = max(
        places.matching(seen, "[0-9]*.compact"), key=lambda p: int(p.stem), default=None
    )
    if compacted is None:
        return
    version, *entries = compacted.read_text(encoding="utf-8").splitlines()
    there = {path.name for path in notes.glob("*.json")}
    kept = [e for e in entries if json.loads(e)["path"].rsplit("/", 1)[-1] in there]
    partial = compacted.with_name(f".{compacted.name}.partial")
    partial.write_text("\n".join([version, *kept]), encoding="utf-8")
    compacted.with_name(f".{compacted.name}.crc").unlink(missing_ok=True)
    places.rename(partial, compacted)


def _write_joined(joined: Place, notes: Iterable[Place]) -> None:
    """One line a file of the source: its newest note, and where the next note's number begins. Of
    files that are gone only the newest line of all stays, unless no file is there."""
    known: dict[str, str] = {}
    if joined.exists():
        for line in joined.read_text(encoding="utf-8").splitlines():
            known[json.loads(line)["path"]] = line
    for path in notes:
        note = json.loads(path.read_text(encoding="utf-8"))
        # Its time too: Spark passes over files that are a week older than the newest it has seen.
        place = {"number": number_of(path), "changed": path.stat().st_mtime}
        known[note["path"]] = json.dumps(note | place)
    there = {path for path in known if places.place(path).exists()}
    newest = max(known, key=lambda path: int(json.loads(known[path])["number"]))
    if there:
        known = {path: line for path, line in known.items() if path in there | {newest}}
    partial = joined.with_suffix(".partial")
    partial.write_text("".join(line + "\n" for line in known.values()), encoding="utf-8")
    places.rename(partial, joined)
