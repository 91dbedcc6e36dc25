"""What jobs/maintain.py does: few files, no files that nothing names, few notes; beside a stream.

Compaction moves rows between files, which readers and the stream pass over. Old files go when they
are older than asked and no version that the newest rows of `_batches` name, or a script of views
beside the tables pins, still needs them. A commit that meets one of the stream gives way to it.
"""

import argparse
import json
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from replication import places
from replication.spark import session, views
from replication.spark.event_files import PRUNED
from replication.spark.failures import EXIT_UNUSABLE, failed
from replication.spark.progress import Progress
from replication.spark.session import SessionError
from replication.spark.tables import BATCHES, Store, TablesError

EXIT_OK = 0
HOUR = 3_600.0
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def parser() -> argparse.ArgumentParser:
    """The command line of jobs/maintain.py."""
    made = argparse.ArgumentParser(
        prog="maintain.py",
        description="Compacts the Delta tables, deletes files that no version in use needs, and "
        "joins the notes of a stream's source folder. Safe beside a running stream.",
        epilog="Exit status: 0 done, 2 the tables cannot be read, 4 a defect of this tool, 5 what "
        "it stands on failed and may come back.",
    )
    made.add_argument(
        "--tables", required=True, type=places.folder, metavar="DIR", help="the Delta tables"
    )
    made.add_argument(
        "--checkpoint-dir", type=places.folder, metavar="DIR",
        help="of the stream: its notes are joined; without it files of replica_events stay, since "
        "nothing tells how far the fold has read them",
    )  # fmt: skip
    made.add_argument(
        "--keep-hours", type=float, default=168.0, metavar="HOURS",
        help="how long old versions stay readable (168)",
    )  # fmt: skip
    made.add_argument(
        "--files", type=int, default=16, metavar="N",
        help="a table of fewer files is not compacted (16)",
    )  # fmt: skip
    return made


def main(argv: list[str]) -> int:
    """Runs the job; returns the exit status."""
    flags = parser().parse_args(argv)
    progress = Progress()
    try:
        spark = session.start("replication-analyzer maintenance", [flags.tables.absolute()])
    except SessionError as error:
        progress.say(f"maintain.py: {error}")
        return EXIT_UNUSABLE
    try:
        if flags.keep_hours < 0 or flags.files < 1:
            raise TablesError("--keep-hours is at least 0, --files at least 1")
        checkpoint_dir = flags.checkpoint_dir and flags.checkpoint_dir.absolute()
        Maintenance(spark, flags.tables.absolute(), checkpoint_dir, progress).run(
            flags.keep_hours, flags.files
        )
        return EXIT_OK
    except TablesError as error:
        progress.say(f"maintain.py: {error}")
        return EXIT_UNUSABLE
    except PySparkException as error:
        return failed("maintain.py", error, progress.out)
    finally:
        spark.stop()


@dataclass
class Maintenance:
    """One round over the tables of a folder. checkpoint_dir: of the stream that writes them."""

    spark: SparkSession
    tables: Path
    checkpoint_dir: Path | None
    progress: Progress

    def run(self, keep_hours: float, files: int) -> None:
        """Compacts what has at least that many files, deletes what is old enough, joins notes.

        Raises TablesError where the folder holds no tables.
        """
        store = Store(self.spark, self.tables)
        found = [t for t in views.stored() if (self.tables / t / "_delta_log").is_dir()]
        if BATCHES not in found:
            raise TablesError(f"{self.tables} has no table {BATCHES}: give a stream's --tables")
        now = time.time()
        for table in found:
            if store.files(table) >= files:
                self._sql(f"OPTIMIZE {self._name(table)}", f"{table}: compacted")
        pinned = self._pinned(store)
        # Delta's own guard is against readers of unknown versions; here they are known.
        self.spark.conf.set(CHECK, "false")
        for table in found:
            hours = self._hours(table, pinned.get(table), keep_hours, now)
            if hours is not None:
                self._sql(f"VACUUM {self._name(table)} RETAIN {hours:.4f} HOURS")
        if self.checkpoint_dir is not None:
            self._join_notes(now - keep_hours * HOUR)

    def _name(self, table: str) -> str:
        return f"delta.`{str(self.tables / table).replace('`', '``')}`"

    def _sql(self, text: str, done: str = "") -> None:
        try:
            self.spark.sql(text).collect()
        except PySparkException as error:
            if "DELTA_CONCURRENT" not in str(error):
                raise
            done = f"{text.split()[0]} gives way to the stream, the next round does it"
        if done:
            self.progress.say(done)

    def _pinned(self, store: Store) -> dict[str, int]:
        """Table -> the oldest version in use: by `_batches`, or by scripts of views."""
        pinned = dict(store.cut())
        for script in self.tables.glob("*.sql"):
            for path, version in re.findall(
                r"delta\.`([^`]+)` VERSION AS OF (\d+)", script.read_text(encoding="utf-8")
            ):
                table = Path(path).name
                pinned[table] = min(int(version), pinned.get(table, int(version)))
        return pinned

    def _hours(
        self, table: str, version: int | None, keep_hours: float, now: float
    ) -> float | None:
        """How old a file must be to go; None where none of the table may."""
        hours = keep_hours
        if version is not None:
            after = self._written(table, version + 1)
            # What that version needs was put aside by a later commit, not before.
            hours = hours if after is None else max(hours, (now - after) / HOUR + 0.01)
        if table in ("replica_events", "_refolds"):
            read_to = self._folded_to(table)
            if read_to is None:
                return None
            after = self._written(table, read_to)
            hours = hours if after is None else max(hours, (now - after) / HOUR + 0.01)
        return hours

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

    def _join_notes(self, before: float) -> None:
        """Joins the notes of slices that were read long ago into one file."""
        assert self.checkpoint_dir is not None
        folder = self.checkpoint_dir / "ingest" / "admitted"
        read = self._ingested()
        old = [
            p
            for p in sorted(folder.glob("*.json"))
            if p.name in read and p.stat().st_mtime < before
        ]
        if len(old) < 2:
            return
        _write_joined(folder / PRUNED, old)
        for path in old:
            path.unlink()
        self.progress.say(f"{len(old)} notes of what was read joined into one")

    def _ingested(self) -> set[str]:
        """The names of the notes that finished micro-batches of the ingest have read."""
        assert self.checkpoint_dir is not None
        spark_location = self.checkpoint_dir / "ingest" / "spark"
        done = [int(p.name) for p in (spark_location / "commits").glob("*") if p.name.isdigit()]
        found = set()
        for log in (spark_location / "sources" / "0").glob("[0-9]*"):
            for line in log.read_text(encoding="utf-8").splitlines():
                if line.startswith("{"):
                    entry = json.loads(line)
                    if entry["batchId"] <= max(done, default=-1):
                        found.add(entry["path"].rsplit("/", 1)[-1])
        return found


def _write_joined(joined: Path, notes: Iterable[Path]) -> None:
    """One line a file of the source: its newest note, and where the next note's number begins."""
    known: dict[str, str] = {}
    if joined.exists():
        for line in joined.read_text(encoding="utf-8").splitlines():
            known[json.loads(line)["path"]] = line
    for path in notes:
        note = json.loads(path.read_text(encoding="utf-8"))
        known[note["path"]] = json.dumps(note | {"number": int(path.stem)})
    partial = joined.with_suffix(".partial")
    partial.write_text("".join(line + "\n" for line in known.values()), encoding="utf-8")
    os.replace(partial, joined)
