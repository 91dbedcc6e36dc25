"""What jobs/replay.py does: the same fold over a historical dump, without a state store."""

import argparse
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from replication import places
from replication.command_line import INCIDENT_HELP, Parser, incident_name
from replication.places import Place
from replication.reports.inventory_words import counted
from replication.spark import (
    answer_tables,
    event_frames,
    fold_stream,
    quarantine,
    runs,
    session,
    settings,
    views,
)
from replication.spark.event_files import (
    Slice,
    SourceError,
    event_files,
    next_slice,
    still_readable,
)
from replication.spark.fold_batch import fold_events
from replication.spark.ingest import marked
from replication.spark.locks import FOLDER, CheckpointLock
from replication.spark.progress import Progress, sum_of
from replication.spark.runs import Run
from replication.spark.settings import Settings
from replication.spark.tables import Store, Writer, check_counts

FLAGS = ("held_limit", "write_threads")
DECIDING = ("committed_records_survive", "log_matching")
EXIT_HOLDS, EXIT_VIOLATED, EXIT_UNKNOWN = 0, 1, 3


def parser() -> argparse.ArgumentParser:
    """The command line of jobs/replay.py."""
    made = Parser(
        prog="replay.py",
        description="Folds a folder of event files at once: events in, verdicts out, in Delta "
        "tables.",
        epilog="Exit status: 0 nothing violated, 1 something is violated, 3 nothing violated but "
        "undecided somewhere, 2 the call or the input is unusable, 4 a defect of this tool, 5 what "
        "it depends on failed and may come back (a full disk).",
    )
    made.add_argument(
        "--source", required=True, type=places.folder, metavar="DIR",
        help="a folder of JSON Lines (.gz too) or Parquet event files",
    )  # fmt: skip
    made.add_argument(
        "--tables", required=True, type=places.tables_folder, metavar="DIR", help=places.TABLES_HELP
    )
    made.add_argument(
        "--keep-events",
        action="store_true",
        help=f"copy the events into replica_events too: without it that table is empty, and the "
        f"views on it ({', '.join(views.of_events())}) are",
    )
    made.add_argument(
        "--strict", action="store_true", help="exit status 3 for any verdict that is UNKNOWN"
    )
    made.add_argument(
        "--new-run", metavar="NAME",
        help="replace the answers that an earlier run has written, under this name",
    )  # fmt: skip
    made.add_argument("--incident", metavar="NAME", type=incident_name, help=INCIDENT_HELP)
    settings.add_flags(made, FLAGS)
    return made


def main(argv: list[str]) -> int:
    """Runs the job; returns the exit status."""
    flags = parser().parse_args(argv)
    progress = Progress()
    chosen = settings.load(vars(flags))
    source, tables = flags.source.absolute(), flags.tables.absolute()
    slices = slices_of(source) if isinstance(source, Path) else []
    spark = session.start("replication-analyzer replay", [tables], [source])
    try:
        job = ReplayJob(spark, tables.absolute(), chosen, progress, flags.incident)
        slices = slices or slices_of(source.absolute())
        verdicts = job.run(slices, flags.new_run, flags.keep_events)
        status = exit_status(verdicts, flags.strict)
        ended = why(status, verdicts, job.held, job.assumed)
        progress.say("; ".join(part for part in (ended, job.left_out) if part))
        return status
    finally:
        spark.stop()


def slices_of(folder: Place) -> list[Slice]:
    """Every event file of a folder as one slice, taken for complete.

    Raises SourceError where there is none.
    """
    files = event_files(folder)
    if not files:
        raise SourceError(f"no event files in {folder}")
    found = [next_slice(path, 0, settled=True) for path in files]
    return [part for part in found if part is not None]


def exit_status(verdicts: dict[tuple[str, str], int], strict: bool) -> int:
    """From (invariant, verdict) -> topic partitions. No verdict at all decides nothing."""
    if any(verdict == "VIOLATED" for _, verdict in verdicts):
        return EXIT_VIOLATED
    unknown = {invariant for invariant, verdict in verdicts if verdict == "UNKNOWN"}
    if unknown & set(DECIDING) or (strict and unknown) or not verdicts:
        return EXIT_UNKNOWN
    return EXIT_HOLDS


def why(
    status: int, verdicts: dict[tuple[str, str], int], held: int = 0, assumed: Sequence[str] = ()
) -> str:
    """What an exit status means here: which invariants, in how many topic partitions, what is not
    decided beside a violation, and the query that shows the rest. held: events behind a gap.
    assumed: what verdicts take for granted."""
    waiting = (
        f"; {counted(held, 'event')} {'was' if held == 1 else 'were'} not used, since an earlier "
        "event of their trace is missing: SELECT reason FROM verdicts WHERE reason LIKE "
        "'trace_gap%'"
    )
    granted = (
        f"; taken for granted: {', '.join(assumed)} (SELECT invariant, verdict, assuming FROM "
        "verdicts; replication-analyzer explain NAME)"
    )
    behind = (granted if assumed else "") + (waiting if held else "")
    if status == EXIT_HOLDS:
        return f"exit status 0: nothing is violated{behind}"
    if not verdicts:
        return (
            f"exit status {status}: no event was judged: --source holds none that counts. Import "
            f"evidence into it (replication-import); quarantine has what was refused{behind}"
        )
    words = ("VIOLATED", "UNKNOWN") if status == EXIT_VIOLATED else ("UNKNOWN",)
    told = []
    for word in words:
        named = ", ".join(
            f"{invariant} in {counted(count, 'topic partition')}"
            for (invariant, verdict), count in sorted(verdicts.items())
            if verdict == word
        )
        told += [f"{word}: {named}"] * bool(named)
    asked = " OR ".join(f"verdict = '{word}'" for word in words[: len(told)])
    return f"exit status {status}: {'; '.join(told)} (SELECT * FROM verdicts WHERE {asked}){behind}"


def without_events() -> str:
    """What is empty after a replay that keeps no events, and the flag that fills it."""
    names = views.of_events()
    return (
        f"replica_events has no event of this replay, so the views {', '.join(names[:-1])} and "
        f"{names[-1]} are empty, and lost_records has no times of acknowledgement: "
        "--keep-events fills them"
    )


@dataclass
class ReplayJob:
    """One replay into one folder of tables."""

    spark: SparkSession
    tables: Place
    settings: Settings
    progress: Progress
    incident: str | None = None
    # What the quarantine has of it, in words; "": nothing.
    left_out: str = ""
    # How many events wait behind a missing one.
    held: int = 0
    # What some verdict takes for granted.
    assumed: list[str] = field(default_factory=list)

    def run(
        self, slices: list[Slice], new_run: str | None, keep_events: bool
    ) -> dict[tuple[str, str], int]:
        """Folds everything and replaces the answer tables.

        Returns (invariant, verdict) -> how many topic partitions. Raises TablesError, and
        LockedError where another replay is at work on the tables.
        """
        lock = CheckpointLock(self.tables / FOLDER / "replay", "replay", "tables of its own")
        if isinstance(lock.folder, Path):
            lock.take()
        try:
            return self._run(slices, new_run, keep_events)
        finally:
            lock.release()

    def _run(
        self, slices: list[Slice], new_run: str | None, keep_events: bool
    ) -> dict[tuple[str, str], int]:
        started = time.monotonic()
        store = Store(self.spark, self.tables)
        store.create()
        run = runs.bounded(store, fold_stream.QUERY, new_run, self.incident)
        if run.again:
            self.progress.say(
                f"run {run.name!r} had begun and not finished: what it had written is taken away"
            )
        writer = run.writer(uuid.uuid4().hex)
        answers = Answers()
        try:
            delivered, events, seen = self._delivered(store, slices, writer, keep_events, answers)
        except Exception:
            # Parquet with broken pages: the others are read again.
            checked = [still_readable(part) for part in slices]
            if checked == slices:
                raise
            slices = checked
            delivered, events, seen = self._delivered(store, slices, writer, keep_events, answers)
        refusals = quarantine.of(delivered, slices, int(seen["quarantined"]), self.incident)
        try:
            if refusals.rescued and events is not None:
                rescued = marked(refusals.events(), writer, 0)
                if keep_events:
                    store.append("replica_events", rescued, writer, 0, "rescued")
                    events = self._stored(store, writer)
                else:
                    events = events.unionByName(rescued)
                answers = self._folded(events, answers)
            if answers.outcome is not None:
                self._write(store, writer, run, answers)
            quarantine.write(self.spark, store, refusals, writer, 0)
        finally:
            refusals.release()
            answers.release()
        figures = dict(answers.outcome.figures) if answers.outcome is not None else {}
        figures["rows_in"] = int(seen["rows_in"]) + sum(s.rows for s in refusals.files)
        figures["quarantined"] = figures.get("quarantined", 0) + refusals.rows
        figures["rows/quarantine"] = figures.get("rows/quarantine", 0) + refusals.entries
        if keep_events:
            figures["rows/replica_events"] = figures["rows_in"] - refusals.rows
        figures["milliseconds"] = int((time.monotonic() - started) * 1000)
        store.finish(writer, 0, figures, runs.BOUNDED)
        check_counts(store, {fold_stream.QUERY: run.name})
        refused = answers.outcome.why_refused() if answers.outcome else []
        why = Counter(dict([*refusals.why, *refused])).most_common(quarantine.MOST)
        self.progress.report("replay", 0, figures, why)
        for note in answers.outcome.notes() if answers.outcome else []:
            self.progress.say(f"note: {note}")
        self.progress.say(sum_of(figures))
        self.held = figures.get("held", 0)
        self.left_out = quarantine.told_at_the_end(store, {run.query: run.name}, figures)
        if not keep_events:
            self.progress.say(without_events())
        self.progress.say(f"tables: {self.tables}")
        return answers.verdicts

    def _delivered(
        self, store: Store, slices: list[Slice], writer: Writer, keep_events: bool,
        answers: "Answers",
    ) -> tuple[DataFrame | None, DataFrame | None, dict[str, Any]]:  # fmt: skip
        """Folds what slices deliver; returns that, its events, and what was counted on the way."""
        delivered = event_frames.of_slices(self.spark, slices, self.incident)
        if delivered is None:
            return None, None, {"rows_in": 0, "quarantined": 0}
        seen = Observation()
        observed = delivered.observe(seen, *event_frames.counters())
        events = marked(event_frames.events(observed), writer, 0)
        if keep_events:
            store.append("replica_events", events, writer, 0)
            figures = dict(seen.get)
            self._folded(self._stored(store, writer), answers)
            return delivered, events, figures
        self._folded(events, answers)
        assert answers.outcome is not None
        # Where no row is an event, Spark leaves out the plan that would count them.
        folded = answers.outcome.figures["rows_in"] > 0
        figures = dict(seen.get) if folded else event_frames.counted(delivered)
        # Without the observer: these events may be folded once more.
        return delivered, marked(event_frames.events(delivered), writer, 0), figures

    def _stored(self, store: Store, writer: Writer) -> DataFrame:
        """The events of this run that have been kept."""
        return store.newest("replica_events").filter(F.col("run") == writer.run)

    def _folded(self, events: DataFrame, answers: "Answers") -> "Answers":
        answers.release()
        answers.frame = fold_events(events, self.settings.held_limit).persist()
        answers.outcome = answer_tables.outcome_of(answers.frame)
        return answers

    def _write(self, store: Store, writer: Writer, run: Run, answers: "Answers") -> None:
        assert answers.outcome is not None
        threads = self.settings.write_threads
        afresh = run.number > 0
        answer_tables.write(store, answers.outcome, writer, 0, threads, afresh)
        answers.verdicts, self.assumed = answer_tables.verdicts_of(answers.outcome, writer)


@dataclass
class Answers:
    """What a replay has folded: the persisted frame, its outcome, the verdicts it holds."""

    frame: DataFrame | None = None
    outcome: answer_tables.Outcome | None = None
    verdicts: dict[tuple[str, str], int] = field(default_factory=dict)

    def release(self) -> None:
        """Lets go of what is persisted."""
        if self.frame is not None:
            self.frame.unpersist()
