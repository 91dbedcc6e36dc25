"""The Delta tables: made from schemas/, written exactly once per micro-batch, read at one cut.

Every write carries a transaction id (the query and the table) and the micro-batch as its version:
a micro-batch that is run again after a crash finds what is already there and writes only the rest.
The row of `_batches` comes last and names the version of each table: that is what readers read.
"""

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from replication.places import Place
from replication.spark import contracts, hadoop_files
from replication.spark.analyzer_version import analyzer_version
from replication.spark.batch_rows import batch_rows, few_rows, has_few_rows
from replication.spark.cut import BATCHES, WRITTEN_BY, Cut, cut_of, newest_of
from replication.spark.delta_schemas import (
    MARK,
    OLDER_STATISTICS,
    STATISTICS,
    fields_of,
    first_commit,
    lacks,
    named,
    quoted,
    statistics,
)
from replication.spark.failures import OF_DELTA, first_cause, is_conflict
from replication.spark.fence import Fence
from replication.spark.locks import commits_locked
from replication.spark.log_files import (
    DamagedError,
    added,
    check_files,
    files_of,
    newest_version,
    opened,
    version_there,
)
from replication.spark.lost_tables import lost, named_by, without_batches, without_tables
from replication.spark.other_writers import (
    BY_QUERIES,
    RETENTION,
    OtherCommit,
    made_by_others,
)
from replication.spark.small_commit import NotSmallError, SmallCommit, arrow_rows, is_made
from replication.spark.spark_commit import CameSecondError, SparkCommit

# What the fold hands over to itself: written, and read once, by no figures.
REFOLDS = "_refolds"
ROWS = "rows/"
# So many commits of a table until Delta puts what they come to into one file.
CHECKPOINT_EVERY = 100
FIRST_COMMIT = f"{0:020d}.json"
START = -1
# What rows of `_batches` count, micro-batch by micro-batch.
ADDED_UP = (
    "rows_in", "applied", "duplicates", "quarantined", "held", "superseded", "findings",
    "held_in_state",
)  # fmt: skip
# A longer list of partitions to replace is given as a table of its own to a full rewrite.
REPLACED_BY_NAME = 2_000
# A commit that meets one of another process (OPTIMIZE, DELETE) is tried again this often.
COMMIT_TRIES = 6


class TablesError(RuntimeError):
    """The tables cannot be used as asked; the text says why and what to do."""


class MiscountedError(RuntimeError):
    """A table does not hold as many rows as were counted: a defect of this tool, or somebody else
    has written into the tables."""


@dataclass(frozen=True)
class Writer:
    """Who writes: a run of a query. app: what its transaction ids begin with. fence: what lets it,
    None where nobody else can write. incident: the one that the run is of, None: any."""

    run: str
    run_number: int
    query: str
    token: str
    app: str
    fence: Fence | None = None
    incident: str | None = None

    @property
    def replaced(self) -> str:
        """SQL: the rows that those of this run replace."""
        return "true" if self.incident is None else f"incident = {quoted(self.incident)}"


@dataclass
class Store:
    """The tables of one folder."""

    spark: SparkSession
    folder: Place
    _versions: dict[str, int] = field(default_factory=dict)
    _looked_at: dict[str, int] = field(default_factory=dict)
    _finished: dict[str, int] = field(default_factory=dict)
    _named: dict[str, int] = field(default_factory=dict)

    def path(self, table: str) -> str:
        """Where a table lies."""
        return str(self.folder / table)

    def create(self, *, by_evidence: bool = False) -> None:
        """Makes the tables that are not there yet, as schemas/ describes them: those of the fold,
        or those that an import writes by its evidence.

        Writes each table's first Delta commit itself: what CREATE TABLE would write, without the
        seconds that one costs for each table. Raises TablesError where one that was there is gone.
        """
        if not by_evidence:
            self._look_for_lost()
        for table in contracts.tables().values():
            if table.written == "view" or by_evidence == table.is_of_jobs:
                continue
            delta_log = self.folder / table.name / "_delta_log"
            if (delta_log / FIRST_COMMIT).exists():
                self._bring_up_to_date(table)
            else:
                self._begin(delta_log, first_commit(table, CHECKPOINT_EVERY))

    def _look_for_lost(self) -> None:
        """Learns which tables were written, and how far. Raises TablesError where one is gone."""
        rows = self.batches()
        problem = None if rows else without_batches(self.folder)
        if problem is not None:
            raise TablesError(problem)
        self._named = named_by(rows) | ({BATCHES: self.version(BATCHES)} if rows else {})
        self.check_there()

    def check_there(self) -> None:
        """Raises TablesError where a table is gone, or not as far as the newest micro-batches have
        written it: whatever is written next would make it anew, without what it held."""
        problem = lost(self.folder, dict(self._named))
        if problem is not None:
            raise TablesError(problem)

    def check_checkpoint(self, checkpoint_dir: Place) -> None:
        """Raises TablesError where a checkpoint directory goes on from tables that are all gone."""
        lacks_rows = not self.batches()
        problem = without_batches(self.folder) if lacks_rows else None
        if lacks_rows and problem is None:
            problem = without_tables(self.folder, checkpoint_dir)
        if problem is not None:
            raise TablesError(problem)

    def _begin(self, delta_log: Place, commit: str) -> None:
        """Writes a table's first commit, whole."""
        delta_log.mkdir(parents=True, exist_ok=True)
        first = delta_log / FIRST_COMMIT
        if not isinstance(first, Path):
            hadoop_files.put_by_delta(self.spark, first, commit.splitlines())
            return
        partial = first.with_name(f".{FIRST_COMMIT}.{uuid.uuid4().hex}.tmp")
        partial.write_text(commit, encoding="utf-8")
        partial.replace(first)

    def _bring_up_to_date(self, table: contracts.Table) -> None:
        """Gives a table of an older version what it lacks. Raises TablesError."""
        found = self._opened(table.name)
        if found is not None:
            schema = json.loads(found.schema().to_json())
        else:
            schema = json.loads(self._snapshot(table.name).schema().json())
        if lacks(table, schema):
            wanted = StructType.fromJson({"type": "struct", "fields": fields_of(table)})
            nothing = self.spark.createDataFrame([], wanted).write.format("delta").mode("append")
            try:
                nothing.options(mergeSchema="true", userMetadata=MARK).save(self.path(table.name))
            except AnalysisException as error:
                raise TablesError(
                    f"{self.path(table.name)} has columns of other types ({first_cause(error)}): "
                    "it was changed, or is of another version. Fold the events into new tables"
                ) from None
        wanted_statistics = statistics(table).get(STATISTICS)
        if wanted_statistics and self.statistics(table.name) in OLDER_STATISTICS:
            path = self.path(table.name).replace("`", "``")
            self.spark.sql(
                f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES "
                f"('{STATISTICS}' = '{wanted_statistics}')"
            )

    def append(
        self, table: str, rows: DataFrame, writer: Writer, micro_batch_id: int, part: str = ""
    ) -> None:
        """Appends a micro-batch's rows, once however often it is called for that micro-batch.

        part tells a second write to the same table in one micro-batch from the first.
        """
        self._put(table, rows, None, writer, micro_batch_id, part)

    def _is_to_make(self, table: str, transaction: tuple[str, int]) -> bool:
        """Whether a commit has not been made. Looked up only where this process has made no earlier
        one, and the table has any."""
        app, micro_batch_id = transaction
        known = self._finished.get(app, START)
        self._finished[app] = max(micro_batch_id, known)
        if START < known < micro_batch_id or newest_version(self.folder / table) == 0:
            return True
        return not self._holds(table, *transaction)

    def replace_where(
        self,
        table: str,
        rows: DataFrame,
        condition: str,
        writer: Writer,
        micro_batch_id: int,
        part: str = "",
    ) -> None:
        """Puts rows, to all of which the condition applies, in the place of those it applies to."""
        self._put(table, rows, condition, writer, micro_batch_id, part)

    def _put(
        self, table: str, rows: DataFrame, replaced: str | None, writer: Writer,
        micro_batch_id: int, part: str,
    ) -> None:  # fmt: skip
        """Both. replaced: as SparkCommit has it."""
        app = f"{writer.app}/{table}/{part}" if part else f"{writer.app}/{table}"
        transaction = (app, micro_batch_id)
        if self._is_to_make(table, transaction):
            self._save(SparkCommit(completed(table, rows), transaction, replaced), table, writer)

    def replace(
        self,
        table: str,
        rows: DataFrame,
        replaced: Sequence[str],
        touched: Sequence[str],
        writer: Writer,
        micro_batch_id: int,
    ) -> None:
        """Puts rows in the place of those of the topic partitions replaced, in one commit.

        touched: all topic partitions that rows are of, those that are new to the table too.
        """
        if not replaced:
            self.append(table, rows, writer, micro_batch_id)
            return
        if len(touched) <= REPLACED_BY_NAME:
            # Delta refuses rows that the condition does not cover: the new ones are named as well.
            self.replace_where(table, rows, named(touched), writer, micro_batch_id)
            return
        keys = self.spark.createDataFrame(
            [(name,) for name in replaced], "topic_partition_id string"
        )
        kept = self.newest(table).join(F.broadcast(keys), "topic_partition_id", "left_anti")
        both = kept.select(*rows.columns).unionByName(rows)
        self.overwrite(table, both, writer, micro_batch_id)

    def put_small(
        self,
        table: str,
        rows: Sequence[Mapping[str, Any]],
        replaced: Iterable[str],
        writer: Writer,
        micro_batch_id: int,
        of_query: str = "",
    ) -> bool:
        """Puts rows, as JSON has them, in the place of those of the topic partitions replaced, in
        one commit, once however often it is called for a micro-batch.

        of_query: only rows of that query give way. False where it is nothing for a small commit,
        as on a store.
        """
        if not isinstance(self.folder, Path):
            return False
        transaction = (f"{writer.app}/{table}", micro_batch_id)
        try:
            named_rows = arrow_rows(contracts.tables()[table], rows)
            if self._is_to_make(table, transaction):
                commit = SmallCommit(
                    contracts.tables()[table],
                    named_rows,
                    frozenset(replaced),
                    transaction,
                    of_query,
                )
                self._save(commit, table, writer)
        except NotSmallError:
            # What was not made may not count as made.
            self._finished.pop(transaction[0], None)
            return False
        return True

    def overwrite(self, table: str, rows: DataFrame, writer: Writer, micro_batch_id: int) -> None:
        """Makes rows the whole content of a table, in one commit."""
        self.replace_where(table, rows, "true", writer, micro_batch_id)

    def take_away(self, table: str, writer: Writer) -> None:
        """Takes away the rows of a writer's run."""
        own = F.col("run") == writer.run
        if not self.newest(table).filter(own).isEmpty():
            nothing = self.newest(table).limit(0)
            condition = f"run = {quoted(writer.run)}"
            self.replace_where(table, nothing, condition, writer, 0, "unfinished")

    def _save(
        self,
        written: SparkCommit | SmallCommit,
        table: str,
        writer: Writer | None,
    ) -> None:
        """Raises TakenOverError where a newer writer has raised the fence."""
        for attempt in range(COMMIT_TRIES):
            # Before this one: what others have committed can be taken back, and nothing of ours.
            self.look(table)
            try:
                # What did land is not made twice.
                if attempt and written.transaction and self._holds(table, *written.transaction):
                    break
                with commits_locked(self.folder):
                    written.save(self.path(table), writer.fence if writer else None)
                break
            except (CameSecondError, *OF_DELTA) as error:
                is_to_repeat = isinstance(error, CameSecondError) or is_conflict(error)
                if attempt == COMMIT_TRIES - 1 or not is_to_repeat:
                    raise
                time.sleep(0.2 * 2**attempt)
        self._versions.pop(table, None)

    def is_written(self, table: str, writer: Writer, micro_batch_id: int) -> bool:
        """Whether this micro-batch's commit to the table has been made already."""
        return self._holds(table, f"{writer.app}/{table}", micro_batch_id)

    def _holds(self, table: str, app: str, micro_batch_id: int) -> bool:
        found = self._opened(table)
        if found is not None:
            return is_made(found, (app, micro_batch_id))
        version = self._snapshot(table).transactions().get(app)
        return bool(version.isDefined() and version.get() >= micro_batch_id)

    def version(self, table: str) -> int:
        """The newest version of a table, as of this process's last look at or write to it."""
        known = self._versions.get(table)
        if known is None:
            known = self._versions[table] = newest_version(self.folder / table)
        return known

    def _opened(self, table: str) -> DeltaTable | None:
        """None where only Spark's Delta reads its log. Raises TablesError where it is damaged."""
        try:
            return opened(self.folder / table)
        except DamagedError as error:
            raise TablesError(str(error)) from None

    def size(self, table: str) -> int:
        """How many bytes the files of a table's newest version have."""
        found = self._opened(table)
        if found is not None:
            return sum(add["size_bytes"] for add in added(found))
        return int(self._snapshot(table).sizeInBytes())

    def files(self, table: str) -> int:
        """How many files a table's newest version has."""
        return int(self._snapshot(table).numOfFiles())

    def statistics(self, table: str) -> str | None:
        """The columns, with commas, of which Delta keeps each file's lowest and highest value; None
        where no property names them."""
        known = self._opened(table)
        if known is not None:
            return known.metadata().configuration.get(STATISTICS)
        found = self._snapshot(table).metadata().configuration().get(STATISTICS)
        return str(found.get()) if found.isDefined() else None

    def remembers_hours(self, table: str) -> float:
        """For how long Delta knows of a file that was removed from a table."""
        milliseconds = self._jvm.org.apache.spark.sql.delta.DeltaLog.tombstoneRetentionMillis(
            self._snapshot(table).metadata()
        )
        return float(milliseconds / 3_600_000)

    def _snapshot(self, table: str) -> Any:
        nothing = self._jvm.scala.Option.empty()
        return self._delta_log(table).update(False, nothing, nothing)

    def _delta_log(self, table: str) -> Any:
        forms = self._jvm.org.apache.spark.sql.delta.DeltaLog
        return forms.forTable(self.spark._jsparkSession, self.path(table))

    @property
    def _jvm(self) -> Any:
        jvm = self.spark.sparkContext._jvm
        assert jvm is not None
        return jvm

    def has_rows(self, table: str) -> bool:
        """Whether a table holds anything, by its log alone where that says how many rows."""
        return not self.newest(table).isEmpty()

    def newest(self, table: str) -> DataFrame:
        """A table as its newest commit has it: its neighbours may be one micro-batch apart."""
        return self.spark.read.format("delta").load(self.path(table))

    def finish(
        self,
        writer: Writer,
        micro_batch_id: int,
        figures: Mapping[str, Any],
        named: Sequence[str] | None = None,
    ) -> None:
        """Writes the row of `_batches` that makes a micro-batch visible to readers.

        figures: its counts, and by "rows/<table>" the change of the number of rows of each table.
        named: the tables that it names; by default those that the writer's query writes.
        """
        named = WRITTEN_BY[writer.query] if named is None else named
        row: dict[str, Any] = {c.name: 0 for c in contracts.tables()[BATCHES].told}
        changes = {n.removeprefix(ROWS): v for n, v in figures.items() if n.startswith(ROWS)}
        row |= {
            "newest_event_time": None,
            "incident": writer.incident,
            **{name: value for name, value in figures.items() if name in row},
            "run": writer.run,
            "run_number": writer.run_number,
            "query": writer.query,
            "micro_batch_id": micro_batch_id,
            "token": writer.token,
            "table_versions": {n: self.version(n) for n in named},
            "table_rows": {name: rows for name, rows in changes.items() if rows},
            "analyzer_version": analyzer_version(),
            "first_micro_batch_id": micro_batch_id,
            "finished_at": int(time.time() * 1000),
        }
        self._commit_row(row, writer, micro_batch_id)
        self._named |= {BATCHES: self._named.get(BATCHES, 0), **row["table_versions"]}

    def _commit_row(self, row: dict[str, Any], writer: Writer, micro_batch_id: int) -> None:
        """Appends a row of `_batches`, once however often it is called for a micro-batch."""
        # Delta knows no transaction version below 0; runs.py sees to it that START is done once.
        app = f"{writer.app}/{BATCHES}"
        transaction = None if micro_batch_id == START else (app, micro_batch_id)
        if transaction is not None and not self._is_to_make(BATCHES, transaction):
            return
        self.append_rows(BATCHES, [row], transaction, writer)

    def append_rows(
        self,
        name: str,
        rows: Sequence[Mapping[str, Any]],
        transaction: tuple[str, int] | None = None,
        writer: Writer | None = None,
    ) -> None:
        """Appends few rows, with their told columns, in one commit: on folders without Spark."""
        table = contracts.tables()[name]
        if isinstance(self.folder, Path):
            try:
                found = arrow_rows(table, rows)
                self._save(SmallCommit(table, found, frozenset(), transaction), name, writer)
                return
            except NotSmallError:
                pass
        values = [tuple(row[c.name] for c in table.told) for row in rows]
        frame = completed(name, self.spark.createDataFrame(values, table.ddl).coalesce(1))
        self._save(SparkCommit(frame, transaction), name, writer)

    def newest_batches(self) -> dict[str, Any]:
        """The newest row of `_batches` of each query, by query; {} where nothing was written."""
        return newest_of(self.batches())

    def holds(self, incident: str) -> bool:
        """Whether there are answers about an incident of that name."""
        return not self.newest("verdicts").filter(F.col("incident") == incident).isEmpty()

    def knows_run(self, query: str, name: str) -> bool:
        """Whether a run of that name has written for a query."""
        return any(row["query"] == query and row["run"] == name for row in self.batches())

    def batches(self, version: int | None = None) -> list[dict[str, Any]]:
        """Every row of `_batches`, of its newest version or of the one given; [] where there is no
        such table."""
        if version_there(self.folder / BATCHES) < 0:
            return []
        try:
            found = batch_rows(self.folder / BATCHES, version)
        except DamagedError as error:
            raise TablesError(str(error)) from None
        if found is None:
            frame = self.newest(BATCHES) if version is None else self.at_version(BATCHES, version)
            return [row.asDict() for row in frame.collect()]
        return found

    def retained_above(self, run: str) -> int:
        """The micro-batch of an ingest's run up to which maintenance has deleted events; -1: none
        were."""
        return max(
            (r["micro_batch_id"] for r in self.batches()
             if r["run"] == run and r["query"] == RETENTION), default=START,
        )  # fmt: skip

    def miscounted(self, runs: Mapping[str, str]) -> list[str]:
        """In words, each table whose rows at the cut are not as many as were counted.

        runs: query -> run. What is counted is what the fold and the ingest gave out, micro-batch by
        micro-batch; what is there is what the table holds of that run. Of events only those count
        that retention has left alone.
        """
        every = self.batches()
        batches = [row for row in every if runs.get(row["query"]) == row["run"]]
        above = {"replica_events": self.retained_above(runs.get("ingest", ""))}
        counted = {(q, t): 0 for q in runs for t in WRITTEN_BY[q] if t != REFOLDS}
        for row in batches:
            for table, change in (row["table_rows"] or {}).items():
                if row["micro_batch_id"] > above.get(table, START) or table not in above:
                    key = (row["query"], table)
                    counted[key] = counted.get(key, 0) + change
        cut = cut_of(batches, self.folder)
        alone = all(
            row in batches for row in every if row["query"] in runs or row["query"] == RETENTION
        )
        by_table: Counter[str] = Counter()
        for (_, table), rows in counted.items():
            by_table[table] += rows
        if alone and self._rows_by_log(cut, by_table) == dict(by_table):
            return []
        found = self._rows_of(runs, list(counted), cut, above)
        return [
            f"{table} holds {found[query, table]} rows of run {runs[query]!r}, {rows} were counted"
            for (query, table), rows in sorted(counted.items())
            if found[query, table] != rows
        ]

    def _rows_by_log(self, cut: Cut, tables: Iterable[str]) -> dict[str, int | None]:
        """How many rows each table has as its log says, None where that does not."""
        found: dict[str, int | None] = {}
        for table in tables:
            files = files_of(self.folder / table, cut.get(table))
            rows = list(files.values()) if files is not None else [None]
            found[table] = None if None in rows else sum(n for n in rows if n is not None)
        return found

    def _rows_of(
        self, runs: Mapping[str, str], keys: Iterable[tuple[str, str]], cut: Cut,
        above: Mapping[str, int],
    ) -> dict[tuple[str, str], int]:  # fmt: skip
        """How many rows of a run each (query, table) has at a cut."""
        frames = []
        for query, table in keys:
            own = self.at_cut(table, cut).filter(F.col("run") == runs[query])
            own = own.filter(F.col("query") == query) if table == "quarantine" else own
            if above.get(table, START) > START:
                own = own.filter(F.col("micro_batch_id") > above[table])
            frames.append(own.groupBy().agg(
                F.lit(query).alias("query"), F.lit(table).alias("table"), F.count("*").alias("n"),
            ))  # fmt: skip
        rows = reduce(DataFrame.union, frames).collect()
        return {(row["query"], row["table"]): row["n"] for row in rows}

    def look(self, table: str, since: int | None = None) -> None:
        """Looks at what was committed to a table since the last look. since: where the first look
        begins, by default now. Raises TablesError where others have changed rows."""
        if table not in BY_QUERIES and table != BATCHES:
            return
        known = self._looked_at.get(table, since)
        if known is None:
            known = self.version(table)
        found, self._looked_at[table] = made_by_others(self.folder / table, known)
        if found:
            raise TablesError(f"{self.folder}: {found[0]}")

    def check_files(self, table: str) -> None:
        """Raises TablesError where a file of a table is missing or not as long as it was."""
        try:
            check_files(self.folder / table)
        except DamagedError as error:
            raise TablesError(str(error)) from None

    def changed_by_others(self, tables: Iterable[str] | None = None) -> list[OtherCommit]:
        """The commits of any table, or of those given, that this tool has not made, by table."""
        if tables is None:
            tables = [t.name for t in contracts.tables().values() if t.written != "view"]
        there = [table for n in tables if ((table := self.folder / n) / "_delta_log").is_dir()]
        return [commit for table in there for commit in made_by_others(table, None)[0]]

    def sums(self, run: str, query: str) -> dict[str, int]:
        """The sums of a run's figures over its rows of `_batches`."""
        rows = [r for r in self.batches() if r["run"] == run and r["query"] == query]
        return {name: sum(row[name] or 0 for row in rows) for name in ADDED_UP}

    def cut(self) -> Cut:
        """The consistent cut that the rows of `_batches` name."""
        return cut_of(self.batches(), self.folder)

    def at_version(self, table: str, version: int) -> DataFrame:
        """A table as a version has it. One of few rows is read here at once: Spark's Delta would
        run jobs to find its files."""
        rows = few_rows(self.folder / table, version)
        if rows is not None:
            schema = from_arrow_schema(rows.schema)
            # Without a row it is one that needs no job, and takes what rests on it along.
            frame = self.spark.createDataFrame(rows if len(rows) else [], schema)
            return frame if len(rows) else frame.limit(0)
        reader = self.spark.read.format("delta").option("versionAsOf", version)
        return reader.load(self.path(table))

    def has_few_rows(self, table: str, version: int | None = None) -> bool:
        """Whether a version, the newest by default, is read at once. Raises TablesError."""
        try:
            of = self.version(table) if version is None else version
            return has_few_rows(self.folder / table, of)
        except DamagedError as error:
            raise TablesError(str(error)) from None

    def at_cut(self, table: str, cut: Cut | None = None) -> DataFrame:
        """A table as readers should see it: as `_batches` names it."""
        cut = self.cut() if cut is None else cut
        version = cut[table] if table in cut else self.version(table)
        frame = self.at_version(table, version)
        condition = cut.condition(table)
        return frame if condition is None else frame.filter(condition)


def completed(table: str, rows: DataFrame) -> DataFrame:
    """Rows of a table with the columns that are made of others."""
    made = contracts.tables()[table].made
    return rows.withColumns({name: F.expr(sql) for name, sql in made.items()})


def check_counts(store: Store, runs: Mapping[str, str]) -> None:
    """Raises MiscountedError where a table does not hold what was counted, TablesError where
    somebody else's commit explains it. runs: query -> run."""
    wrong = store.miscounted(runs)
    others = store.changed_by_others() if wrong else []
    if others:
        raise TablesError(f"{store.folder}: {'; '.join(wrong)}: {'; '.join(map(str, others))}")
    if wrong:
        raise MiscountedError(f"{store.folder}: {'; '.join(wrong)}")
