"""What jobs/import_artifacts.py does: `replication-analyzer import`, distributed over files.

Files and replicas' directories are read by the workers, a task each; the driver sees whose they are
and which partition each line is about, not the lines; the workers then join and write the events
partition by partition. Where evidence and --out are paths of machines, driver and workers share
them; of a store Spark brings the evidence to each machine, and writes the events to it.
"""

import argparse
import os
import pickle
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import RDD
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

from replication import places
from replication.command_line import (
    Parser,
    scope_arguments,
    told_of,
)
from replication.evidence.event_dumps import arrow_schema, write_events
from replication.evidence.importer import Import, import_evidence
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import finished, identified
from replication.evidence.unreadable import Unreadable
from replication.places import HadoopPath, Place
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.protocol.ground.versions import behaviour
from replication.reports.inventory_words import counted
from replication.spark import contracts, evidence_tables, session
from replication.spark.evidence_at_hand import AtHand, shown
from replication.spark.progress import Progress
from replication.spark.tables import Store

EXIT_OK = 0
ENDINGS = {"json": "jsonl", "parquet": "parquet"}
# Tasks per core: partitions and files differ in size.
TASKS_PER_CORE = 16
EVENTS_AT_ONCE = 10_000


class Unusable(ValueError):
    """The call cannot be followed; the text says what, where and what to do."""


def parser() -> argparse.ArgumentParser:
    """The command line of jobs/import_artifacts.py."""
    made = Parser(
        prog="import_artifacts.py",
        description="Evidence (broker logs, log directories, client logs ...) to event files that "
        "stream.py and replay.py read: the events of `replication-analyzer import`, made by many "
        "workers.",
        epilog="Exit status: 0 done, 2 the call or the input is unusable, 4 a defect of this "
        "tool, 5 what it depends on failed and may come back.",
    )
    made.add_argument(
        "paths", nargs="+", type=places.folder, metavar="PATH",
        help="evidence folders or files; absolute where workers run elsewhere than spark-submit",
    )  # fmt: skip
    made.add_argument(
        "--out",
        required=True,
        type=places.folder,
        metavar="DIR",
        help="a new folder for the event files",
    )
    made.add_argument(
        "--format", choices=tuple(ENDINGS), default="parquet", help="of the event files"
    )
    made.add_argument(
        "--generation",
        type=int,
        default=0,
        help="higher wins when the same partitions are imported again",
    )
    made.add_argument(
        "--tables", type=places.tables_folder, metavar="DIR",
        help="judge here, too, and write what only the evidence tells into Delta tables of this "
        "folder: lost_records_keys, affected_groups, affected_transactions, decisions",
    )  # fmt: skip
    scope_arguments(made)
    return made


def main(argv: list[str]) -> int:
    """Runs the job; returns the exit status."""
    flags = parser().parse_args(argv)
    progress = Progress()
    check(flags)
    flags.paths = [path.absolute() for path in flags.paths]
    flags.tables = flags.tables and flags.tables.absolute()
    written = [flags.out.absolute(), *([flags.tables] if flags.tables else [])]
    spark = session.start("replication-analyzer import", written, flags.paths)
    try:
        print(ImportJob(spark, progress).run(flags))
        return EXIT_OK
    finally:
        spark.stop()


def check(flags: argparse.Namespace) -> None:
    """What can be refused before Spark starts. Raises Unusable."""
    if flags.kafka:
        try:
            behaviour(flags.kafka)
        except ValueError as error:
            raise Unusable(f"--kafka: {error}") from None
    try:
        told_of(flags)
    except ValueError as error:
        raise Unusable(str(error)) from None
    _check_places([p for p in flags.paths if isinstance(p, Path)], flags.out)


def _check_places(paths: Iterable[Place], out: Place) -> None:
    for path in paths:
        if not path.exists():
            raise Unusable(f"{path}: no such file or folder")
    if isinstance(out, HadoopPath) and not places.is_bound():
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Unusable(f"--out {out}: is there and not an empty folder; name a new one")


@dataclass
class ImportJob:
    """One import by the workers of one session."""

    spark: SparkSession
    progress: Progress
    at_hand: AtHand = field(init=False)
    store: HadoopPath | None = None

    def __post_init__(self) -> None:
        self.at_hand = AtHand(self.spark)

    def run(self, flags: argparse.Namespace) -> str:
        """Imports; what was written, in words. Raises NoEvidence, Unusable."""
        out = flags.out.absolute()
        _check_places(flags.paths, out)
        # Readers of event folders pass over such names: none sees half an import.
        work = out / f"_import-{uuid.uuid4().hex}"
        try:
            work.mkdir(parents=True)
        except OSError as error:
            told = OSError(f"--out {flags.out}: {error.strerror}; name a folder that can be made")
            told.errno = error.errno
            raise told from None
        if isinstance(work, Path):
            try:
                return self._run(flags, out, work)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        self.store = work
        try:
            with tempfile.TemporaryDirectory(prefix="replication-import-") as own:
                # What archives hold is unpacked there, and brought to the workers.
                tempfile.tempdir = own
                return self._run(flags, out, work)
        finally:
            tempfile.tempdir = None
            work.remove()

    def _run(self, flags: argparse.Namespace, out: Place, work: Place) -> str:
        started, began = time.monotonic(), time.time_ns()
        if flags.tables is not None:
            evidence_tables.check_there(Store(self.spark, flags.tables))
        imported = import_evidence(
            [self._brought(path) for path in flags.paths],
            kafka_version=flags.kafka,
            topics=flags.topics,
            generation=flags.generation,
            incident=flags.incident or "",
            spread=self.spread,
            facts_folder=work if isinstance(work, Path) else None,
            payload_id_in=flags.payload_id_in,
            told=told_of(flags),
        )
        nothing = imported.nothing(flags.topics)
        if nothing:
            raise Unusable(self.at_hand.shown(nothing))
        partitions = counted(len(imported.partitions), "partition")
        read = time.monotonic() - started
        files = counted(imported.collection.files, "file")
        self.progress.say(f"{files} read: {partitions} ({read:.1f} s)")
        written = self._write(imported, work, ENDINGS[flags.format])
        self._say(imported, written)
        for part in written:
            if part.path is not None:
                places.rename(part.path, out / part.path.name)
        events = counted(sum(w.events for w in written), "event")
        if flags.tables is not None:
            self._tell(imported, flags.tables, began)
        self.progress.say(f"{events} written ({time.monotonic() - started:.1f} s in all)")
        return f"{events} of {partitions} in {out}"

    def _tell(self, imported: Import, tables: Place, began: int) -> None:
        """What only the evidence tells, into its tables."""
        told = evidence_tables.told_by(imported, began)
        for rows in told.values():
            for row in rows:
                if row.get("path"):
                    row["path"] = self.at_hand.shown(row["path"])
        evidence_tables.write(Store(self.spark, tables), imported, told)
        for table, rows in told.items():
            self.progress.say(f"{table}: {counted(len(rows), 'row')}")

    def _brought(self, path: Place) -> Path:
        """Evidence as files of this machine."""
        if isinstance(path, Path):
            return path
        try:
            return self.at_hand.take(path)
        except (OSError, ValueError) as error:
            raise Unusable(str(error)) from None

    def _say(self, imported: Import, written: Sequence["Written"]) -> None:
        """What was decided, and what could not be read."""
        shown = self.at_hand.shown
        for note in (*imported.notes, *(n for w in written for n in w.notes)):
            self.progress.say(f"note: {shown(note)}")
        for path in imported.collection.event_dumps:
            told = f"note: {path}: holds events already and was not imported"
            self.progress.say(shown(told))
        unread = {*imported.collection.unreadable, *(u for w in written for u in w.unreadable)}
        for place in sorted(unread, key=lambda u: (u.path, u.where, u.reason)):
            where = imported.collection.unpacked.shown(place.path)
            self.progress.say(shown(f"unreadable: {where} ({place.where}): {place.reason}"))

    def spread(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """`map` by the workers."""
        every = list(items)
        if not every:
            return []
        if self.store is not None:
            self.at_hand.share(self.store)
        return self._shared_out(every).map(self.at_hand.there(function)).collect()

    def _shared_out(self, items: list[Any]) -> RDD[Any]:
        """Each item in one task, each task with few items: they differ much in size."""
        context = self.spark.sparkContext
        most = context.defaultParallelism * TASKS_PER_CORE
        return context.parallelize(items, min(len(items), most))

    def _write(self, imported: Import, work: Place, ending: str) -> list["Written"]:
        """Joins and writes by the workers: every partition whole in one file."""
        each = [shipped(p) for p in imported.partitions]
        if not each:
            return []
        told = partial(
            told_events,
            trace_id=imported.trace_id,
            generation=imported.generation,
            incident=imported.incident,
            told=dict(self.at_hand.told),
        )
        if isinstance(work, Path):
            writer = self.at_hand.there(partial(write_part, work=work, ending=ending, told=told))
            return self._shared_out(each).mapPartitionsWithIndex(writer).collect()
        self.at_hand.share(work)
        return self._write_to(work / "events", each, self.at_hand.there(told), ending)

    def _write_to(
        self, folder: HadoopPath, each: list[PartitionEvidence], told: Any, ending: str
    ) -> list["Written"]:
        """As _write, where the JVM writes what the workers give it."""
        context = self.spark.sparkContext
        notes = context.accumulator((), _Notes())
        packed = self._shared_out(each).map(lambda partition: (pickle.dumps(partition),))
        frame = self.spark.createDataFrame(packed, "partition binary", verifySchema=False)
        if ending == "parquet":
            events = frame.mapInArrow(partial(_rows, told, notes), contracts.event_ddl())
            events.write.option("compression", "zstd").parquet(str(folder))
        else:
            frame.mapInArrow(partial(_lines, told, notes), "value string").write.text(str(folder))
        parts = [p for p in places.matching(folder, "part-*") if p.stat().st_size]
        files = []
        for index, part in enumerate(parts):
            named = folder.parent / f"part-{index:05d}.{ending}"
            places.rename(part, named)
            files.append(Written(named))
        return [*files, *notes.value]


@dataclass
class Written:
    """What one task has made: an event file (None: it is said elsewhere), and what could not be
    read on the way to it."""

    path: Place | None = None
    events: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def shipped(evidence: PartitionEvidence) -> PartitionEvidence:
    """A partition without what its copies know of their neighbours, which is of no more use."""
    copies = [
        replace(c, parent=replace(c.parent, partitions=(), unreadable=())) for c in evidence.copies
    ]
    return replace(evidence, copies=copies)


def told_events(
    partitions: Iterable[PartitionEvidence],
    found: Written,
    *,
    trace_id: str,
    generation: int,
    incident: str,
    told: Mapping[str, str],
) -> Iterator[Event]:
    """The last step of joining: the events of partitions. told: as `shown` has it."""
    for partition in partitions:
        whole = finished(partition)
        found.unreadable.extend(
            replace(u, path=shown(whole.shown(u.path), told)) for u in whole.contents.unreadable
        )
        for event in identified(whole, trace_id, generation, incident):
            found.events += 1
            if told and event.source is not None:
                path = shown(event.source.path, told)
                yield replace(event, source=replace(event.source, path=path))
            else:
                yield event
        found.notes.extend(shown(whole.shown(note), told) for note in whole.notes)


def write_part(
    index: int, partitions: Iterable[PartitionEvidence], *, work: Path, ending: str, told: Any
) -> Iterator[Written]:
    """What one task does: the events of its partitions to a file."""
    found = Written(work / f"part-{index:05d}.{ending}")
    # A task that is run twice writes a file of its own before it takes the name.
    attempt = work / f"{uuid.uuid4().hex}.{ending}"
    write_events(attempt, told(partitions, found))
    os.replace(attempt, str(found.path))
    yield found


class _Notes(AccumulatorParam[Any]):
    """What tasks have found, one after the other."""

    def zero(self, value: Any) -> Any:
        return ()

    def addInPlace(self, value1: Any, value2: Any) -> Any:
        return (*value1, *value2)


def _told(told: Any, notes: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[list[Event]]:
    """The events of pickled partitions, so many at a time."""
    found = Written()
    packed = (pickle.loads(each.as_py()) for batch in batches for each in batch.column(0))
    events = told(packed, found)
    while some := list(islice(events, EVENTS_AT_ONCE)):
        yield some
    notes.add((found,))


def _rows(told: Any, notes: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema()
    for events in _told(told, notes, batches):
        rows = [wire.to_row(event) for event in events]
        yield from pa.Table.from_pylist(rows, schema=schema).to_batches()


def _lines(told: Any, notes: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for events in _told(told, notes, batches):
        yield pa.RecordBatch.from_pydict({"value": [wire.to_json(event) for event in events]})
