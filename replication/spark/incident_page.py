"""What jobs/report.py does: the incident page from the Delta tables, read at one cut.

The page is that of `diagnose --report` on the same events: the answer is put together from the
answer tables, and the most damaged partitions' events come from replica_events.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import functions as F

from replication import places
from replication.command_line import Parser, incident_name
from replication.decisions.answer import due
from replication.decisions.page_section import decisions_html
from replication.progress import line_of
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import Identity, fold_partition, identity_of
from replication.protocol.judgement.judge import INVARIANTS
from replication.reports import ranking
from replication.reports.answer import FORMAT_VERSION
from replication.reports.do_now import sends_to_decide
from replication.reports.evidence_lines import read_lines
from replication.reports.page import Beside, write_page
from replication.spark import contracts, fold_stream, session, views
from replication.spark.cut import BATCHES
from replication.spark.tables import TablesError
from replication.spark.views import Opened

EXIT_OK = 0
# Events that are fetched for the stories; the page shows fewer. One partition is always fetched.
MOST_EVENTS = 400_000
MOST_PARTITIONS = 2_000
UNNAMED = "."
IDENTITY = ("cluster_id", "topic", "topic_id", "partition")
NOT_DESCRIBED: dict[str, Any] = {"versions": [], "kind": None}
ORDER = {module.__name__.rpartition(".")[2]: i for i, module in enumerate(INVARIANTS)}


def parser() -> argparse.ArgumentParser:
    """The command line of jobs/report.py."""
    made = Parser(
        prog="report.py",
        description="One self-contained HTML page about what the tables say now.",
        epilog="Exit status: 0 the page was written, 2 the call or the tables are unusable, "
        "4 a defect of this tool, 5 what it depends on failed and may come back.",
    )
    made.add_argument(
        "--tables", required=True, type=places.tables_folder, metavar="DIR", help=places.TABLES_HELP
    )
    made.add_argument(
        "--out", required=True, type=places.folder, metavar="FILE.html", help="the page to write"
    )
    made.add_argument("--topic", metavar="NAME", help="only this topic")
    made.add_argument(
        "--incident", metavar="NAME", type=incident_name,
        help="which one, where the tables hold several; `.` for the one that has no name",
    )  # fmt: skip
    return made


def main(argv: list[str]) -> int:
    """Runs the job; returns the exit status."""
    flags = parser().parse_args(argv)
    spark = session.start("replication-analyzer report", (), [flags.tables.absolute()])
    try:
        found = views.opened(spark, flags.tables.absolute())
        incident = incident_of(found, flags.incident)
        answer = answer_of(found, flags.topic, incident)
        told = events_of(found, answer, incident)
        detailed, beside = with_details(answer, told)
        write_page(flags.out, detailed, told, read_lines, beside)
        print(line_of(f"report.py: {flags.out}"), file=sys.stderr)
        return EXIT_OK
    finally:
        spark.stop()


def incident_of(found: Opened, asked: str | None) -> str | None:
    """The incident that the page is about; None: the one that has no name.

    Raises TablesError where the tables do not hold the one asked for, or hold several.
    """
    rows = found.frame("verdicts").select("incident").distinct().collect()
    held = {row["incident"] for row in rows}
    wanted = None if asked == UNNAMED else asked
    names = ", ".join(sorted(name or UNNAMED for name in held))
    if asked is None and len(held) > 1:
        raise TablesError(
            f"{found.store.folder} holds several incidents ({names}): choose one by --incident NAME"
        )
    if asked is not None and wanted not in held:
        raise TablesError(f"no incident {asked} in {found.store.folder}, which holds {names}")
    return wanted if asked is not None else held.pop()


def answer_of(
    found: Opened, topic: str | None = None, incident: str | None = None
) -> dict[str, Any]:
    """The outward contract's answer as the tables hold it, but for elections.

    Raises TablesError where the tables have no partition of that topic.
    """
    verdicts = _rows(found, "verdicts", topic, incident)
    if not verdicts:
        raise TablesError(f"no topic {topic} in {found.store.folder}")
    verdicts.sort(key=lambda v: (*ranking.identity_of(v), ORDER.get(v["invariant"], len(ORDER))))
    risks = _rows(found, "at_risk", topic, incident)
    partitions = _partitions(verdicts, _rows(found, "replica_states", topic, incident))
    return {
        "format_version": FORMAT_VERSION,
        "incident": incident,
        "clusters": _clusters(found, partitions, incident),
        "input": _counts(found, incident),
        "partitions": partitions,
        "verdicts": verdicts,
        "losses": _rows(found, "loss_ledger", topic, incident),
        "divergences": _rows(found, "divergences", topic, incident),
        "findings": _rows(found, "findings", topic, incident),
        "at_risk": [r for r in risks if not r["over"]],
        "past_risks": [r for r in risks if r["over"]],
    }


def _rows(
    found: Opened, table: str, topic: str | None, incident: str | None
) -> list[dict[str, Any]]:
    """A table's answer columns, by identity; rows of one partition stay in their order."""
    frame = found.frame(table).filter(F.col("incident").eqNullSafe(F.lit(incident)))
    if topic is not None:
        frame = frame.filter(F.col("topic") == topic)
    names = [c.name for c in contracts.tables()[table].answer_columns]
    rows = [row.asDict(recursive=True) for row in frame.select(*names).collect()]
    return sorted(rows, key=ranking.identity_of)


def _partitions(
    verdicts: list[dict[str, Any]], replicas: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    partitions: dict[Identity, dict[str, Any]] = {}
    unseen = ("leader", "leader_epoch", "isr", "assigned_replicas", "min_insync_replicas")
    for verdict in verdicts:
        partitions.setdefault(
            ranking.identity_of(verdict),
            {
                **{name: verdict[name] for name in IDENTITY},
                **dict.fromkeys(unseen),
                "replicas": [],
                "elections": [],
                "truncations": [],
            },
        )
    for row in sorted(replicas, key=lambda r: (*ranking.identity_of(r), r["replica"])):
        partition = partitions[ranking.identity_of(row)]
        partition |= {name: row[name] for name in unseen}
        spans = [[s["leader_epoch"], s["first_offset"], s["end_offset"]] for s in row["spans"]]
        kept = ("replica", "log_start_offset", "log_end_offset", "high_watermark", "as_of",
                "stopped")  # fmt: skip
        partition["replicas"].append({**{name: row[name] for name in kept}, "spans": spans})
        partition["truncations"] += [{"replica": row["replica"], **t} for t in row["truncations"]]
    return list(partitions.values())


def _clusters(
    found: Opened, partitions: list[dict[str, Any]], incident: str | None
) -> list[dict[str, Any]]:
    """Versions and controllers as events describe them, brokers as replicas name them."""
    brokers: dict[str | None, set[int]] = {}
    for partition in partitions:
        own = brokers.setdefault(partition["cluster_id"] or None, set())
        own.update(r["replica"] for r in partition["replicas"])
    told = found.frame("replica_events").filter(
        (F.col("kind") == "partition_described") & F.col("incident").eqNullSafe(F.lit(incident))
    )
    rows = (
        told.groupBy("cluster_id")
        .agg(F.collect_set("kafka_version").alias("versions"), F.max("controller").alias("kind"))
        .collect()
    )
    described = {row["cluster_id"] or None: row.asDict() for row in rows}
    return [
        {
            "cluster_id": cluster,
            "kafka_versions": sorted(described.get(cluster, NOT_DESCRIBED)["versions"]),
            "controller": described.get(cluster, NOT_DESCRIBED)["kind"],
            "brokers": sorted(brokers[cluster]),
        }
        for cluster in sorted(brokers, key=lambda c: c or "")
    ]


def _counts(found: Opened, incident: str | None) -> dict[str, Any]:
    own = found.frame("verdicts").filter(F.col("incident").eqNullSafe(F.lit(incident)))
    run = own.agg(F.max("run")).collect()[0][0]
    sums = found.store.sums(run, fold_stream.QUERY)
    refused = found.frame("quarantine").select("origin", "origin_line", "event_id", "reason")
    places = refused.orderBy("origin", "origin_line", "event_id").limit(1_000).collect()
    return {
        "files": None,
        "events": sums["rows_in"],
        "applied": sums["applied"],
        "duplicates": sums["duplicates"],
        "quarantined": sums["quarantined"],
        "held": sums["held"],
        "superseded": sums["superseded"],
        "unreadable": [
            {
                "path": row["origin"],
                "where": f"line {row['origin_line']}" if row["origin_line"] else row["event_id"],
                "reason": row["reason"],
            }
            for row in places
        ],
    }


def events_of(
    found: Opened, answer: dict[str, Any], incident: str | None = None
) -> Mapping[Identity, list[Event]]:
    """The events of the most damaged partitions, as many as the page could need."""
    events = found.frame("replica_events").filter(
        F.col("run").isin(_runs(found, incident)) & F.col("incident").eqNullSafe(F.lit(incident))
    )
    by = [F.coalesce(F.col(n), F.lit("")).alias(n) for n in ("cluster_id", "topic", "topic_id")]
    groups = events.groupBy(*by, "partition")
    counted = groups.agg(F.count("*").alias("count"), F.min("sequence").alias("first")).collect()
    # Where maintenance has deleted the beginning, no story rather than half of one.
    whole = [row for row in counted if row["first"] == 0]
    size = {tuple(row[name] for name in IDENTITY): row["count"] for row in whole}
    wanted: set[Identity] = set()
    total = 0
    for partition in ranking.partitions(answer):
        count = size.get(partition.identity, 0)
        if wanted and (total + count > MOST_EVENTS or len(wanted) >= MOST_PARTITIONS):
            break
        if count:
            wanted.add(partition.identity)
            total += count
    return _fetched(found, events, wanted)


def with_details(
    answer: dict[str, Any], told: Mapping[Identity, list[Event]]
) -> tuple[dict[str, Any], Beside]:
    """The answer with what is known of each loss beside the ledger's row: the election, settings,
    copies; and which replica is to lead now. No table of a fold holds these, so the events that are
    shown are folded once more."""
    folded = [fold_partition(identity, told[identity]) for identity in sorted(told)]
    details = [d for one in folded for d in one.answer.loss_details]
    rows = due(f.state for f in folded if f.defect is None) if sends_to_decide(answer) else ()
    return {**answer, "loss_details": details}, Beside(decisions_html(list(rows)))


def _runs(found: Opened, incident: str | None) -> list[str]:
    """The newest run of each query that may be of an incident."""
    own = F.col("incident").isNull() | F.col("incident").eqNullSafe(F.lit(incident))
    runs = found.frame(BATCHES).filter(own)
    rows = runs.groupBy("query").agg(F.max_by("run", "run_number")).collect()
    return [row[1] for row in rows]


def _fetched(found: Opened, events: Any, wanted: Iterable[Identity]) -> dict[Identity, list[Event]]:
    keys = sorted(wanted)
    if not keys:
        return {}
    schema = "c STRING, t STRING, i STRING, p BIGINT"
    chosen = F.broadcast(found.store.spark.createDataFrame(keys, schema))
    same = (
        (F.coalesce(F.col("cluster_id"), F.lit("")) == F.col("c"))
        & (F.col("topic") == F.col("t"))
        & (F.coalesce(F.col("topic_id"), F.lit("")) == F.col("i"))
        & (F.col("partition") == F.col("p"))
    )
    result: dict[Identity, list[Event]] = {}
    rows = events.join(chosen, same, "left_semi").select(*wire.COLUMNS)
    for row in rows.toLocalIterator():
        event = wire.from_row(row.asDict(recursive=True))
        result.setdefault(identity_of(event), []).append(event)
    return result
