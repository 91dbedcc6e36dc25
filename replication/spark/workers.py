"""What workers on other machines must have: Python packages, and the folders that the driver has.

A job's driver and workers read and write files by the same paths. Where a worker has a disk of its
own there, tables would name files that nobody else can read: so each job asks before its first
commit. Each worker looks for a file of the driver's, and the driver for one of each worker's.
"""

import importlib.util
import os
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from replication.places import HadoopPath, Place
from replication.spark.failures import first_cause

NEEDED = ("replication", "pandas", "pyarrow", "crc32c", "lz4", "zstandard", "cramjam")
# A share over a network may show a new file to others a little later.
PATIENCE_SECONDS = 5.0
# Tasks do not spread evenly: more of them than cores reach each worker.
TASKS_PER_CORE = 2
Report = tuple[str, list[str], list[str], dict[str, str]]


def problem(spark: SparkSession, written: Sequence[Place], read: Sequence[Place]) -> str | None:
    """Why the workers cannot do a job on these folders; None where they can, or are no others.

    written: folders that exist or are to be made; nothing of the look stays in them. read: folders
    or files in which nothing is written.
    """
    context = spark.sparkContext
    master = str(context.master)
    if master.startswith("local") and "cluster" not in master:
        return None
    tasks = context.defaultParallelism * TASKS_PER_CORE
    folders = [folder for folder in written if isinstance(folder, Path)]
    files = [path for path in read if isinstance(path, Path)]
    stores = [folder for folder in written if isinstance(folder, HadoopPath)]
    try:
        probes = [_Probe(folder) for folder in folders]
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    try:
        look = looker([(str(p.folder), p.name) for p in probes], [str(path) for path in files])
        reports = context.parallelize(range(tasks), tasks).mapPartitions(look).collect()
        unseen = (_unseen(spark, folder, tasks) for folder in stores)
        return judged(reports) or next((told for told in unseen if told), None)
    except PySparkException as error:
        return f"the workers cannot run this Python's tasks: {first_cause(error)}"
    finally:
        for probe in probes:
            probe.remove()


def _unseen(spark: SparkSession, folder: HadoopPath, tasks: int) -> str | None:
    """Why what workers write to a store is not read by the driver; None where it is."""
    probe = folder / f"_probe-{uuid.uuid4().hex}"
    was_there = folder.exists()
    try:
        numbers = spark.range(0, tasks, 1, tasks).selectExpr("CAST(id AS STRING)")
        numbers.write.text(str(probe))
        parts = [part for part in probe.iterdir() if part.name.startswith("part-")]
        found = {line for part in parts for line in part.read_text().splitlines()}
        if found != {str(number) for number in range(tasks)}:
            return f"{folder}: the driver does not read there what the workers write"
        return None
    except OSError as error:
        return f"{folder}: {error.strerror}"
    finally:
        probe.remove()
        if not was_there:
            with suppress(OSError):
                folder.rmdir()


class _Probe:
    """A folder of a look's own in a folder that is to be shared, with the driver's file in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"_probe-{uuid.uuid4().hex}"
        self._was_there = folder.exists()
        self._own = folder / self.name
        self._own.mkdir(parents=True)
        (self._own / "driver").write_text(self.name, encoding="utf-8")

    def remove(self) -> None:
        shutil.rmtree(self._own, ignore_errors=True)
        if not self._was_there:
            self.folder.rmdir()


def looker(
    places: Sequence[tuple[str, str]], read: Sequence[str]
) -> Callable[[Iterable[int]], Iterator[Report]]:
    """What a worker does: its host, the packages it lacks, the folders that are not the driver's,
    and the files it wrote, by what is in them.

    A function within one goes to the workers by value: they may not have this package at all.
    """

    def look(_: Iterable[int]) -> Iterator[Report]:
        host = socket.gethostname()
        lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
        strange, written = [path for path in read if not os.path.exists(path)], {}
        for folder, probe in places:
            own = os.path.join(folder, probe)
            ends = time.monotonic() + PATIENCE_SECONDS
            while not os.path.exists(os.path.join(own, "driver")) and time.monotonic() < ends:
                time.sleep(0.2)
            if not os.path.exists(os.path.join(own, "driver")):
                strange.append(folder)
                continue
            path = os.path.join(own, uuid.uuid4().hex)
            try:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(host)
                written[path] = host
            except OSError as error:
                strange.append(f"{folder} ({error.strerror})")
        yield host, lacking, strange, written

    return look


def judged(reports: Sequence[Report]) -> str | None:
    """The first thing that is wrong, in words; None where nothing is."""
    for host, lacking, strange, written in reports:
        if lacking:
            return (
                f"the worker on {host} has no {', '.join(lacking)}: give the workers an "
                "environment with the packages of the driver's (docs/running.md)"
            )
        unseen = strange or [path for path, text in written.items() if not _holds(path, text)]
        if unseen:
            return (
                f"{unseen[0]} is not the driver's on the worker on {host}: driver and workers "
                "must share these folders, by one path (docs/running.md)"
            )
    return None


def _holds(path: str, text: str) -> bool:
    """Whether the driver reads what a worker wrote, perhaps after a while."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return Path(path).read_text(encoding="utf-8") == text
        except OSError:
            if time.monotonic() > ends:
                return False
            time.sleep(0.2)
