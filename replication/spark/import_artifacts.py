"""What jobs/import_artifacts.py does: `replication-analyzer import`, distributed over files.

Files and replicas' directories are read by the workers, a task each; the driver sees whose they are
and which partition each line is about, not the lines; the workers then join and write the events
partition by partition. Drivers and workers share the file system of the evidence and of --out.
"""

import argparse
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark import RDD
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from replication import places
from replication.command_line import INCIDENT_HELP, incident_name
from replication.evidence.collecting.collection import NoEvidence
from replication.evidence.event_dumps import write_events
from replication.evidence.importer import Import, import_evidence
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import finished, identified
from replication.evidence.unreadable import Unreadable
from replication.protocol.ground.events import Event
from replication.protocol.ground.versions import behaviour
from replication.spark import session
from replication.spark.failures import first_cause
from replication.spark.progress import Progress

EXIT_OK, EXIT_UNUSABLE, EXIT_DEFECT = 0, 2, 4
ENDINGS = {"json": "jsonl", "parquet": "parquet"}
# Tasks per core: partitions and files differ in size.
TASKS_PER_CORE = 16


class Unusable(ValueError):
    """The call cannot be followed; the text says what, where and what to do."""


def parser() -> argparse.ArgumentParser:
    """The command line of jobs/import_artifacts.py."""
    made = argparse.ArgumentParser(
        prog="import_artifacts.py",
        description="Evidence (broker logs, log directories, client logs ...) to event files that "
        "stream.py and replay.py read: the events of `replication-analyzer import`, made by many "
        "workers.",
        epilog="Exit status: 0 done, 2 the call or the input is unusable, 4 a defect of this tool.",
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
        "--kafka", metavar="VERSION", help="judge by this release, whatever the logs name"
    )
    made.add_argument("--topic", metavar="NAME", help="only this topic")
    made.add_argument(
        "--generation",
        type=int,
        default=0,
        help="higher wins when the same partitions are imported again",
    )
    made.add_argument("--incident", metavar="NAME", type=incident_name, help=INCIDENT_HELP)
    return made


def main(argv: list[str]) -> int:
    """Runs the job; returns the exit status."""
    flags = parser().parse_args(argv)
    progress = Progress()
    try:
        check(flags)
        flags.paths = [path.absolute() for path in flags.paths]
        spark = session.start("replication-analyzer import", [flags.out.absolute()], flags.paths)
    except (Unusable, session.SessionError) as error:
        progress.say(f"import_artifacts.py: {error}")
        return EXIT_UNUSABLE
    try:
        print(ImportJob(spark, progress).run(flags))
        return EXIT_OK
    except (NoEvidence, Unusable) as error:
        progress.say(f"import_artifacts.py: {error}")
        return EXIT_UNUSABLE
    except PySparkException as error:
        progress.say(f"import_artifacts.py: {first_cause(error)}")
        return EXIT_DEFECT
    finally:
        spark.stop()


def check(flags: argparse.Namespace) -> None:
    """What can be refused before Spark starts. Raises Unusable."""
    if flags.kafka:
        try:
            behaviour(flags.kafka)
        except ValueError as error:
            raise Unusable(f"--kafka: {error}") from None
    for path in flags.paths:
        if not path.exists():
            raise Unusable(f"{path}: no such file or folder")
    if flags.out.exists() and (not flags.out.is_dir() or any(flags.out.iterdir())):
        raise Unusable(f"--out {flags.out}: is there and not an empty folder; name a new one")


@dataclass
class ImportJob:
    """One import by the workers of one session."""

    spark: SparkSession
    progress: Progress

    def run(self, flags: argparse.Namespace) -> str:
        """Imports; what was written, in words. Raises NoEvidence, Unusable."""
        out = flags.out.absolute()
        # Readers of event folders pass over such names: none sees half an import.
        work = out / f"_import-{uuid.uuid4().hex}"
        try:
            work.mkdir(parents=True)
        except OSError as error:
            raise Unusable(f"--out {out}: {error.strerror}") from None
        try:
            return self._run(flags, out, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _run(self, flags: argparse.Namespace, out: Path, work: Path) -> str:
        started = time.monotonic()
        imported = import_evidence(
            flags.paths,
            kafka_version=flags.kafka,
            topic=flags.topic,
            generation=flags.generation,
            incident=flags.incident or "",
            spread=self.spread,
            facts_folder=work,
        )
        nothing = imported.nothing(flags.topic)
        if nothing:
            raise Unusable(nothing)
        partitions = len(imported.partitions)
        read = time.monotonic() - started
        self.progress.say(
            f"{imported.collection.files} files read: {partitions} partitions ({read:.1f} s)"
        )
        written = self._write(imported, work, ENDINGS[flags.format])
        for note in (*imported.notes, *(n for w in written for n in w.notes)):
            self.progress.say(f"note: {note}")
        for path in imported.collection.event_dumps:
            self.progress.say(f"note: {path}: holds events already and was not imported")
        places = {*imported.collection.unreadable, *(u for w in written for u in w.unreadable)}
        for place in sorted(places, key=lambda u: (u.path, u.where, u.reason)):
            shown = imported.collection.unpacked.shown(place.path)
            self.progress.say(f"unreadable: {shown} ({place.where}): {place.reason}")
        for part in written:
            os.replace(part.path, out / part.path.name)
        count = sum(w.events for w in written)
        self.progress.say(f"{count} events written ({time.monotonic() - started:.1f} s in all)")
        return f"{count} events of {partitions} partitions in {out}"

    def spread(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """`map` by the workers."""
        every = list(items)
        if not every:
            return []
        return self._shared_out(every).map(function).collect()

    def _shared_out(self, items: list[Any]) -> RDD[Any]:
        """Each item in one task, each task with few items: they differ much in size."""
        context = self.spark.sparkContext
        most = context.defaultParallelism * TASKS_PER_CORE
        return context.parallelize(items, min(len(items), most))

    def _write(self, imported: Import, work: Path, ending: str) -> list["Written"]:
        """Joins and writes by the workers: every partition whole in one file."""
        each = [shipped(p) for p in imported.partitions]
        if not each:
            return []
        writer = partial(
            write_part,
            work=work,
            ending=ending,
            trace_id=imported.trace_id,
            generation=imported.generation,
            incident=imported.incident,
        )
        return self._shared_out(each).mapPartitionsWithIndex(writer).collect()


@dataclass(frozen=True)
class Written:
    """One event file, and what could not be read on the way to it."""

    path: Path
    events: int
    unreadable: tuple[Unreadable, ...]
    notes: tuple[str, ...]


def shipped(evidence: PartitionEvidence) -> PartitionEvidence:
    """A partition without what its copies know of their neighbours, which is of no more use."""
    copies = [
        replace(c, parent=replace(c.parent, partitions=(), unreadable=())) for c in evidence.copies
    ]
    return replace(evidence, copies=copies)


def write_part(
    index: int,
    partitions: Iterable[PartitionEvidence],
    *,
    work: Path,
    ending: str,
    trace_id: str,
    generation: int,
    incident: str,
) -> Iterator[Written]:
    """What one task does: the last step of joining, and the events to a file."""
    unreadable: list[Unreadable] = []
    notes: list[str] = []

    def events() -> Iterator[Event]:
        for partition in partitions:
            whole = finished(partition)
            unreadable.extend(
                replace(u, path=whole.shown(u.path)) for u in whole.contents.unreadable
            )
            yield from identified(whole, trace_id, generation, incident)
            notes.extend(whole.shown(note) for note in whole.notes)

    # A task that is run twice writes a file of its own before it takes the name.
    attempt = work / f"{uuid.uuid4().hex}.{ending}"
    count = write_events(attempt, events())
    path = work / f"part-{index:05d}.{ending}"
    os.replace(attempt, path)
    yield Written(path, count, tuple(unreadable), tuple(notes))
