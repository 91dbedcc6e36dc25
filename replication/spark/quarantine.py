"""What was refused on the way in: explained row by row, written with where it was and why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replication.reports.inventory_words import counted
from replication.spark import contracts, refused_rows
from replication.spark.delta_schemas import quoted
from replication.spark.event_files import REFUSED, Slice
from replication.spark.progress import REASON_LENGTH, shortened
from replication.spark.tables import Store, Writer

TABLE = "quarantine"
# So many reasons are said on a micro-batch's line.
MOST = 3
# Said where no row at all fits: most likely the files are something else.
NO_EVENTS = (
    " None of them is an event: brokers' logs, log directories and what Kafka's tools print become "
    "events by `replication-analyzer import PATH --out FOLDER`."
)
# What an entry tells by itself.
ENTRY = ("reason_code", "reason", "raw", "rows", "origin", "origin_line", "origin_offset")


@dataclass
class Refusals:
    """The refused rows and files of one micro-batch.

    lines: rows of refused_rows.explained, persisted; None where every row fits. rescued: how many
    of them protocol.wire takes after all. rows: how many lines or rows of the input are refused.
    entries: how many rows of the table that makes. counts: how many lines of each origin are
    refused. slices: of the files that they come from. why: the reasons in words for which most
    lines or rows are refused, and for how many, the most frequent first.
    """

    lines: DataFrame | None
    files: list[Slice]
    rescued: int
    rows: int
    entries: int
    counts: Mapping[str, int] = field(default_factory=dict)
    slices: Sequence[Slice] = ()
    why: Sequence[tuple[str, int]] = ()

    def events(self) -> DataFrame:
        """The rescued rows as columns of the event contract."""
        assert self.lines is not None
        parsed = self.lines.filter("event_row IS NOT NULL").select(
            F.from_json("event_row", contracts.event_ddl()).alias("e")
        )
        absent: dict[str, bool | float | int | str] = {"cluster_id": "", "topic_id": ""}
        return parsed.select("e.*").fillna(absent)

    def release(self) -> None:
        """Lets go of what is persisted."""
        if self.lines is not None:
            self.lines.unpersist()


def of(
    delivered: DataFrame | None, slices: Sequence[Slice], refused: int, incident: str | None
) -> Refusals:
    """The refusals among delivered rows, of which the first check refused that many, and slices.

    incident: the only one whose events are taken, None: any.
    """
    files = [s for s in slices if s.format == REFUSED]
    in_files = sum(s.rows for s in files)
    if delivered is None or not refused:
        return Refusals(None, files, 0, in_files, len(files), why=_most_often(files, []))
    lines = refused_rows.explained(delivered, incident).persist()
    no_events = lines.filter("event_row IS NULL")
    grouped = no_events.groupBy("origin").count().collect()
    counts = {row["origin"]: int(row["count"]) for row in grouped}
    in_lines = sum(counts.values())
    entries = refused_rows.entries_of(counts) + len(files)
    rescued = refused - in_lines
    most = F.desc("count"), F.asc("reason")
    first = no_events.groupBy("reason").count().orderBy(*most).take(MOST) if in_lines else []
    why = _most_often(files, [(row["reason"], row["count"]) for row in first])
    return Refusals(lines, files, rescued, in_lines + in_files, entries, counts, slices, why)


def _most_often(
    files: Sequence[Slice], lines: Sequence[tuple[str, int]]
) -> Sequence[tuple[str, int]]:
    """Of the reasons of refused files, and the first of lines, those that most rows have."""
    rows = Counter(dict(lines))
    for part in files:
        rows[part.reason] += part.rows
    return rows.most_common(MOST)


def write(
    session: SparkSession, store: Store, refusals: Refusals, writer: Writer, micro_batch_id: int
) -> None:
    """Appends the refusals of a micro-batch to the table; nothing where there are none."""
    if not refusals.rows and not refusals.files:
        return
    whole = [(s.reason_code, s.reason, None, s.rows, s.path, None, None) for s in refusals.files]
    rows = entries_frame(session, whole)
    if refusals.lines is not None and refusals.counts:
        lines = refused_rows.told(refusals.lines, refusals.counts, refusals.slices)
        lines = lines.withColumn("reason_code", F.lit("not_an_event"))
        rows = rows.unionByName(lines.select(*ENTRY))
    # A replay writes what its fold refused too, under the same transaction id but for this part.
    store.append(TABLE, told(rows, writer, micro_batch_id), writer, micro_batch_id, "refused")


def is_all(figures: Mapping[str, int]) -> bool:
    """Whether rows came in, and all of them are in quarantine. figures: sums of a run."""
    return 0 < figures["rows_in"] == figures.get("quarantined", 0)


def told_at_the_end(store: Store, runs: Mapping[str, str], figures: Mapping[str, int]) -> str:
    """How much of what came in is in quarantine, why most of it is, and the SQL that shows all; ""
    where nothing is. runs: query -> its run; figures: their sums."""
    rows, refused = figures["rows_in"], figures.get("quarantined", 0)
    if refused <= 0:
        return ""
    names, queries = sorted(set(runs.values())), sorted(runs)
    whole = store.at_version(TABLE, store.version(TABLE))
    of_runs = whole.filter(F.col("run").isin(*names) & F.col("query").isin(*queries))
    by_reason = of_runs.groupBy("reason").agg(F.sum("rows").alias("times"))
    most = by_reason.orderBy(F.desc("times"), F.asc("reason")).take(1)
    told = [f"; {r['times']} of them: {shortened(r['reason'], REASON_LENGTH)}" for r in most]
    share = f" ({share_of(refused, rows)} %)" if rows else ""
    asked = [", ".join(map(quoted, each)) for each in (names, queries)]
    others = of_runs.filter(F.col("reason_code") != "not_an_event")
    none = NO_EVENTS if is_all(figures) and "live" not in runs and others.isEmpty() else ""
    return (
        f"{refused} of {counted(rows, 'row')}{share} went to quarantine, and no answer rests on "
        f"them{''.join(told)}.{none} NEXT  each reason, by SQL over the tables (docs/tables.md): "
        "SELECT reason_code, reason, origin, sum(rows) AS rows FROM quarantine "
        f"WHERE run IN ({asked[0]}) AND query IN ({asked[1]}) GROUP BY ALL ORDER BY rows DESC"
    )


def share_of(part: int, whole: int) -> str:
    """So many per cent, in at most two digits; 100 only where it is all."""
    share = 100 * part / whole
    return f"{share:.2g}" if share < 99 else "100" if part == whole else "over 99"


def entries_frame(session: SparkSession, entries: Sequence[refused_rows.Entry]) -> DataFrame:
    """Entries with the columns of ENTRY."""
    types = {c.name: c.type for c in contracts.tables()[TABLE].told}
    return session.createDataFrame(entries, ", ".join(f"{name} {types[name]}" for name in ENTRY))


def told(entries: DataFrame, writer: Writer, micro_batch_id: int) -> DataFrame:
    """Entries that are no events as rows of the table, in one piece."""
    marked = entries.withColumns(
        {
            "event_id": F.lit(None).cast("string"),
            "topic_partition_id": F.lit(None).cast("string"),
            "sequence": F.lit(None).cast("bigint"),
            "query": F.lit(writer.query),
            "run": F.lit(writer.run),
            "micro_batch_id": F.lit(micro_batch_id).cast("bigint"),
        }
    )
    return marked.select(*[c.name for c in contracts.tables()[TABLE].told]).coalesce(1)
