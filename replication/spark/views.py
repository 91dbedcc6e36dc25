"""The tables as readers see them: at one cut, with the documented views over them.

Opens a folder of tables for a reader, or says in one line why it cannot be read; makes the views
of schemas/ in a session or a catalog, and writes them as a script.
"""

import argparse
import re
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from replication import places
from replication.command_line import Parser
from replication.paths import project_root
from replication.places import Place
from replication.spark import contracts, dialects, runs, session
from replication.spark.cut import BATCHES, Cut, cut_of, newest_of
from replication.spark.failures import first_cause
from replication.spark.other_writers import RESULTS, SPARK_SQL
from replication.spark.tables import Store, TablesError

EXIT_OK = 0
# The commits that this tool has not made, one a row in words: for the checks alone.
OTHERS = "commits_of_others"
SCRIPT = "views.sql"
QUESTIONS = "conf/questions.sql"


@dataclass(frozen=True)
class Opened:
    """Tables that can be read, and the versions that the newest rows of `_batches` name.

    run, micro_batch_id: the newest micro-batch of the fold among them.
    """

    store: Store
    cut: Cut
    run: str
    micro_batch_id: int

    _frames: dict[str, DataFrame] = field(default_factory=dict, repr=False)

    def frame(self, table: str) -> DataFrame:
        """A table at the cut."""
        if table not in self._frames:
            self._frames[table] = self.store.at_cut(table, self.cut)
        return self._frames[table]

    def versions(self) -> dict[str, int]:
        """The version of each table that is read here."""
        there = [table for table in stored() if _is_table(self.store.folder / table)]
        return {t: self.cut[t] if t in self.cut else self.store.version(t) for t in there}

    def register(self, keep_below: int = 0, asked: str | None = None) -> dict[str, str]:
        """Makes each table and documented view a temporary view; returns name -> view's name.

        keep_below: tables of fewer bytes are kept in memory: each look at a Delta table costs jobs
        of its own to find its files, which for a small table is most of the work. Those of few rows
        are there already. asked: SQL; only those views are made that it names, in any way.
        """
        names = None if asked is None else _named_in(asked)
        for table in stored():
            if (names is None or table in names) and _is_table(self.store.folder / table):
                frame = self.frame(table)
                if self.store.size(table) < keep_below and not self._is_at_hand(table):
                    frame = frame.coalesce(1).persist()
                    frame.count()  # Read at first use, two tasks of one job would both read it.
                frame.createOrReplaceTempView(table)
        for view, sql in documented().items():
            if names is None or view in names:
                self.store.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW `{view}` AS {sql}")
        if names is None or OTHERS in names:
            told = [(str(commit),) for commit in self.store.changed_by_others()]
            found = self.store.spark.createDataFrame(told, "detail string")
            found.createOrReplaceTempView(OTHERS)
        return {name: name for name in (*contracts.tables(), OTHERS)}

    def _is_at_hand(self, table: str) -> bool:
        return self.store.has_few_rows(table, self.cut.get(table))


def _named_in(sql: str) -> set[str]:
    """The words of SQL, and of the documented views among them."""
    found: set[str] = set()
    left = [sql]
    while left:
        words = set(re.findall(r"\w+", left.pop())) - found
        found |= words
        left += [documented()[view] for view in words & set(documented())]
    return found


def few_rows(spark: SparkSession, folder: Place) -> bool:
    """Whether every table of a folder has so few rows that it is read without Spark.

    Raises TablesError where one is damaged.
    """
    store = Store(spark, folder)
    return all(store.has_few_rows(t) for t in stored() if _is_table(folder / t))


def stored() -> list[str]:
    """The names of the tables that lie on disk."""
    return [t.name for t in contracts.tables().values() if t.written != "view"]


def folded() -> list[str]:
    """The names of those that a fold makes: they belong together, at one cut."""
    return [t.name for t in contracts.tables().values() if t.is_of_jobs and t.name != RESULTS]


def documented() -> dict[str, str]:
    """View -> its SQL. A view uses tables, and views that come before it in the alphabet."""
    return {t.name: t.sql for t in contracts.tables().values() if t.sql is not None}


def of_events() -> list[str]:
    """The documented views of which each row is of an event: empty where replica_events is."""
    found = {"replica_events"}
    for view, sql in documented().items():
        if found & set(re.findall(r"\bFROM (\w+)", sql)):
            found.add(view)
    return sorted(found - {"replica_events"})


def opened(spark: SparkSession, folder: Place) -> Opened:
    """The tables of a folder, read at one cut: what comes in meanwhile is left for the next look.

    Raises TablesError where tables are missing, of another schema, or hold no answer yet.
    """
    store = Store(spark, folder)
    if not folder.is_dir():
        raise TablesError(f"{folder} is no folder: give the --tables of jobs/stream.py")
    # Spark says on two hundred lines that a file is gone, once for each task that asks for it.
    for table in stored():
        if _is_table(folder / table):
            store.check_files(table)
    missing = [t for t in folded() if not _is_table(folder / t)]
    if missing:
        raise TablesError(
            f"{folder} has no table {', '.join(missing)}: jobs/stream.py and jobs/replay.py make "
            "all of them; a lost one comes back when the events are folded into new tables"
        )
    batches = store.version(BATCHES)
    rows = store.batches(batches)
    fold = newest_of(row for row in rows if row["micro_batch_id"] >= 0).get("fold")
    if fold is None:
        others = store.changed_by_others()
        begun = newest_of(rows).get("fold")
        told = others[0] if others else "nothing has been folded into it yet"
        if runs.is_unfinished(begun) and not others:
            raise TablesError(f"{folder}: {runs.unfinished(begun)}")
        raise TablesError(f"{folder} is empty: {told}")
    cut = cut_of(rows, folder)
    cut[BATCHES] = batches
    found = Opened(store, cut, fold["run"], fold["micro_batch_id"])
    for table in folded():
        _check_columns(found, table)
    if found.frame("verdicts").isEmpty():
        raise TablesError(f"{folder} is empty: its newest micro-batch holds no verdict")
    return found


def _is_table(path: Place) -> bool:
    return (path / "_delta_log").is_dir()


def _check_columns(opened: Opened, table: str) -> None:
    store, cut = opened.store, opened.cut
    if table not in cut:
        raise TablesError(
            f"{store.path(table)} is not named by {BATCHES}: it is of an older version of the "
            "tables, or of another folder. Fold the events into new tables"
        )
    try:
        found = dict(opened.frame(table).dtypes)
    except PySparkException as error:
        reason = first_cause(error)
        raise TablesError(
            f"{store.path(table)} cannot be read at version {cut[table]}, which {BATCHES} names: "
            f"{reason}"
        ) from None
    wanted = {c.name: c.type for c in contracts.tables()[table].columns}
    lacking = sorted(set(wanted) - set(found))
    other = sorted(n for n in set(wanted) & set(found) if found[n] != wanted[n])
    if lacking or other:
        column = (lacking or other)[0]
        problem = (
            f"has no column {column}"
            if lacking
            else f"has {column} as {found[column]}, not as {wanted[column]}"
        )
        raise TablesError(
            f"{store.path(table)} {problem}: it is of an older version of the tables. Fold the "
            "events into new tables"
        )


def script(found: Opened, follow: bool) -> str:
    """SQL that makes the tables and the documented views temporary views of a spark-sql session.

    follow: of the newest commit each time they are asked, instead of the cut.
    """
    lines = ["-- Views over the tables of the replication analyzer; read by spark-sql -i."]
    if not follow:
        lines.append(f"-- As of run {found.run!r}, micro-batch {found.micro_batch_id}.")
    for table in stored():
        path = found.store.path(table).replace("`", "``")
        if not _is_table(found.store.folder / table):
            continue
        at = ""
        if not follow and table in found.cut:
            condition = found.cut.condition(table)
            at = f" VERSION AS OF {found.cut[table]}"
            at += "" if condition is None else f" WHERE {condition}"
        lines.append(
            f"CREATE OR REPLACE TEMPORARY VIEW `{table}` AS SELECT * FROM delta.`{path}`{at};"
        )
    known = contracts.tables()
    for view, sql in documented().items():
        lines.append(f"\n-- {known[view].about}")
        lines.append(f"CREATE OR REPLACE TEMPORARY VIEW `{view}` AS\n{sql};")
    return "\n".join(lines) + "\n"


def text(engine: str) -> str:
    """SQL that makes the documented views, for an engine that knows the tables by their names."""
    lines = ["-- The documented views of the replication analyzer, over its tables by their names."]
    lines.append(dialects.beforehand(engine))
    known = contracts.tables()
    for view, sql in documented().items():
        said = dialects.for_engine(sql, engine)
        lines.append(f"\n-- {known[view].about}\nCREATE OR REPLACE VIEW {view} AS\n{said};")
    return "\n".join(lines) + "\n"


def questions(engine: str) -> str:
    """The questions that people ask, in an engine's words: for after the views."""
    asked = (project_root() / QUESTIONS).read_text(encoding="utf-8")
    return dialects.for_engine(asked, engine)


def put_into_catalog(found: Opened, schema: str) -> list[str]:
    """Makes each table and documented view a lasting view of a schema; returns their names.

    They show each table's newest commit. schema: catalog.schema, or schema in the session's own.
    """
    # A lasting view may not rest on temporary ones, and a session of its own has none.
    spark = found.store.spark.newSession()
    quoted = ".".join(f"`{part}`" for part in schema.split("."))
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quoted}")
    # A view keeps the catalog and schema in which it was made: there it finds the others.
    spark.sql(f"USE {quoted}")
    names = [t for t in stored() if _is_table(found.store.folder / t)]
    for table in names:
        path = found.store.path(table).replace("`", "``")
        spark.sql(f"CREATE OR REPLACE VIEW `{table}` AS SELECT * FROM delta.`{path}`")
    for view, sql in documented().items():
        spark.sql(f"CREATE OR REPLACE VIEW `{view}` AS {sql}")
    return [*names, *documented()]


def _check_lasting(spark: SparkSession, schema: str) -> None:
    """Raises TablesError where a schema would end with the session."""
    kept = spark.conf.get("spark.sql.catalogImplementation", "in-memory")
    if kept == "in-memory" and schema.partition(".")[0] in (schema, "spark_catalog"):
        raise TablesError(
            f"--catalog {schema}: this session's catalog is kept in memory and ends with it. Give "
            "spark-submit --conf spark.sql.catalogImplementation=hive and the settings of the "
            "metastore, or name a schema of a catalog of your own (CATALOG.SCHEMA)"
        )


def _schema_name(given: str) -> str:
    if re.fullmatch(r"\w+(\.\w+)?", given):
        return given
    raise argparse.ArgumentTypeError(f"{given!r} is no SCHEMA or CATALOG.SCHEMA")


def parser() -> argparse.ArgumentParser:
    """The command line of jobs/create_views.py."""
    made = Parser(
        prog="create_views.py",
        description="Makes the documented views over the Delta tables: as a script for spark-sql, "
        "lasting in a catalog, or as text for an engine of your own.",
        epilog="Exit status: 0 done, 2 the tables cannot be read, 4 a defect of this tool, 5 what "
        "it depends on failed and may come back.",
    )
    made.add_argument("--tables", type=places.tables_folder, metavar="DIR", help=places.TABLES_HELP)
    made.add_argument(
        "--catalog", metavar="SCHEMA", type=_schema_name,
        help="make lasting views of the tables and the documented views in this schema of Spark's "
        "catalog, where BI tools find them (with the metastore of spark-submit's settings); they "
        "show each table's newest commit",
    )  # fmt: skip
    made.add_argument(
        "--text", choices=dialects.ENGINES,
        help="print the SQL of the documented views alone: register each table under its name in "
        "that engine first (docs/engines.md). Goes with --questions only, and starts no Spark",
    )  # fmt: skip
    made.add_argument(
        "--questions", action="store_true",
        help="with --text: print conf/questions.sql instead, to be asked after the views",
    )  # fmt: skip
    made.add_argument(
        "--out",
        type=places.folder,
        metavar="FILE",
        help=f"the script; without it {SCRIPT} in the tables",
    )
    made.add_argument(
        "--follow", action="store_true",
        help="views of each table's newest commit, not of the newest finished micro-batch: they "
        "stay current, and while a stream writes they may be one micro-batch apart",
    )  # fmt: skip
    return made


def _check_together(flags: argparse.Namespace) -> None:
    """Raises TablesError where a flag was given that would change nothing."""
    if flags.questions and not flags.text:
        raise TablesError("--questions goes with --text ENGINE: in whose words?")
    idle = {"--text": ("tables", "catalog", "out", "follow"), "--catalog": ("out", "follow")}
    for flag, others in idle.items():
        given = [f"--{name}" for name in others if getattr(flags, name)]
        if getattr(flags, flag.removeprefix("--")) and given:
            why = {
                "--text": "prints views over tables that the engine knows by their names; how to "
                "register these: docs/engines.md",
                "--catalog": "makes views in a catalog, of each table's newest commit",
            }[flag]
            raise TablesError(f"{' and '.join(given)}: leave out beside {flag}, which {why}")


def main(argv: list[str]) -> int:
    """Runs the job; returns the exit status."""
    flags = parser().parse_args(argv)
    _check_together(flags)
    if flags.text:
        print((questions if flags.questions else text)(flags.text), end="")
        return EXIT_OK
    if flags.tables is None:
        raise TablesError("--tables DIR is needed: which tables?")
    spark = session.start("replication-analyzer views", (), [flags.tables.absolute()])
    try:
        tables = flags.tables.absolute()
        found = opened(spark, tables)
        # Whatever does not fit shows here, not when somebody asks.
        found.register()
        if flags.catalog:
            _check_lasting(spark, flags.catalog)
            names = put_into_catalog(found, flags.catalog)
            print(f"{len(names)} views in {flags.catalog}: {', '.join(names)}")
            return EXIT_OK
        out = flags.out or tables / SCRIPT
        partial = out.with_name(out.name + ".partial")
        partial.write_text(script(found, flags.follow), encoding="utf-8")
        places.rename(partial, out)
        print(f"{SPARK_SQL} -i {out}")
        return EXIT_OK
    finally:
        spark.stop()
