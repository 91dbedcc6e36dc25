"""What faults are tried on: a folder with a source, its stream, and the tables wanted of it."""

import io
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.spark import contracts, failures
from replication.spark.event_files import SourceError
from replication.spark.kafka_source import KafkaSource
from replication.spark.locks import LockedError
from replication.spark.maintain import Kept, Maintenance
from replication.spark.progress import Progress
from replication.spark.tables import TablesError
from tests.spark.event_rows import made_trace, other_content
from tests.spark.jobs_in_process import rows, run_replay, run_stream

Tables = dict[str, list[dict[str, Any]]]
LEFT_OUT = ("_batches", "_refolds", "expectation_results")


@dataclass
class Bench:
    """What a fault works on. folder/in is the source; chance is seeded; wanted: the tables of an
    undisturbed run. trials: how often a fault of many forms is tried. It leaves behind: lines that
    were rightly refused, what it found wrong, and what is to be undone."""

    spark: SparkSession
    folder: Path
    chance: random.Random
    wanted: Tables = field(default_factory=dict)
    trials: int = 12
    refused: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    afterwards: list[Callable[[], Any]] = field(default_factory=list)

    def stream(self, **flags: Any) -> str:
        """One run of the stream to its end."""
        return run_stream(self.spark, self.folder, profile="small-batches", **flags)

    def deliver(self, *numbers: int) -> None:
        """Puts some of the files into the source folder."""
        for number, events in enumerate(source()):
            if not numbers or number in numbers:
                write_events(self.folder / "in" / f"{number}.jsonl", events)


def source() -> list[list[Any]]:
    """Files of events: two partitions in turns, duplicates, a late conflict, a second trace."""
    one, two = made_trace(0), made_trace(1)
    newer = made_trace(1, generation=1, trace_id="again", rounds=3)
    return [one[:30] + two[:20], [*one[30:], other_content(one[8]), one[3]], two[20:], newer]


def maintained(bench: Bench) -> None:
    """A round of maintenance that keeps of versions and rows of _batches what is in use."""
    tables, kept = bench.folder / "tables", bench.folder / "checkpoint"
    Maintenance(bench.spark, tables, kept, Progress(sys.stderr)).run(Kept(0.0, 0.0), 2)


def failed_outside(bench: Bench, words: str, source: KafkaSource | None = None) -> str:
    """What a start said that failed for what it stands on; "" where it came to its end."""
    try:
        bench.stream(source=source)
    except Exception as error:
        status, said = ending(error)
        if status != failures.EXIT_TRY_AGAIN or words not in said:
            raise AssertionError(f"exit {status}: {said}") from error
        return said
    return ""


def ending(error: Exception) -> tuple[int, str]:
    """The exit status of a job that fails so, and its last line."""

    def again(argv: list[str]) -> int:
        raise error

    if isinstance(error, TablesError | LockedError | SourceError):
        return failures.EXIT_UNUSABLE, str(error)
    with redirect_stderr(io.StringIO()) as out:
        status = failures.exit_status(again, ["stream.py"])
    return status, out.getvalue().strip().splitlines()[-1]


def refused(bench: Bench, words: str, **flags: Any) -> None:
    """Fails unless the stream refuses to start, in such words."""
    text = ""
    try:
        bench.stream(**flags)
    except (TablesError, LockedError) as error:
        text = str(error)
    if not text or not all(part in text for part in words.split(".*")):
        raise AssertionError(f"wanted a refusal with {words!r}, got {text!r}")


def state_of(spark: SparkSession, folder: Path, refused: Sequence[str] = ()) -> Tables:
    """The rows of every table, without who wrote them; events and line refusals once each.

    refused: raw lines that are to stand in quarantine, and are left out here.
    """
    found = {}
    left = list(refused)
    for table in contracts.tables().values():
        if table.is_of_jobs and table.name not in LEFT_OUT:
            unique = {}
            for row in rows(spark, folder, table.name):
                if row.get("raw") in left:
                    left.remove(row["raw"])
                else:
                    unique[repr(row)] = row
            found[table.name] = [unique[text] for text in sorted(unique)]
    assert not left, f"not in quarantine: {left}"
    return found


def differences(
    spark: SparkSession, folder: Path, wanted: Tables, refused: Sequence[str] = ()
) -> list[str]:
    """In words, the tables that differ from what is wanted."""
    found = state_of(spark, folder, refused)
    return [
        f"{table}: {len(found[table])} rows, undisturbed {len(kept)}"
        for table, kept in wanted.items()
        if found[table] != kept
    ]


def undisturbed(spark: SparkSession, folder: Path) -> Tables:
    """The tables of a run that nothing disturbs, which must be those of a replay."""
    bench = Bench(spark, folder, random.Random(0))
    (folder / "in").mkdir(parents=True)
    bench.deliver()
    bench.stream()
    wanted = state_of(spark, folder / "tables")
    run_replay(spark, folder, keep_events=True)
    apart = differences(spark, folder / "replayed", wanted)
    assert apart == [], apart
    return wanted
