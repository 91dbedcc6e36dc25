"""Runbooks of alerts: each query is asked of real tables, each command is taken by its job."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from ruamel.yaml import YAML

from replication.cli import _parser as tool_parser
from replication.evidence.event_dumps import write_events
from replication.evidence.importer import import_evidence
from replication.paths import project_root
from replication.quality import checks
from replication.spark import expectation_results, views
from replication.spark.alerting import Alerting, Channels
from replication.spark.alerts import alerts_of
from replication.spark.progress import Progress
from replication.spark.tables import Store
from tests.docs.test_running import PARSERS
from tests.quality.test_outcomes import outcome
from tests.spark.jobs_in_process import run_replay
from tests.spark.test_alerts import RULES, answered, at_risk, loss, verdict
from tests.spark.test_duckdb import connected

LABELS = {
    "topic": "t", "partition": "0", "invariant": "committed_records_survive", "job": "j",
    "namespace": "kafka",
    "suite": "verdicts", "expectation": "no_committed_loss", "tables": "/share/tables",
}  # fmt: skip
# What the rules cannot know.
GIVEN = {"TABLES": "/share/tables", "PATH": "evidence", "FOLDER": "out"}


def of_rules() -> dict[str, str]:
    """Alert and severity -> its runbook, with labels as Prometheus puts them."""
    rules = YAML(typ="safe").load(RULES.read_text())["groups"][0]["rules"]
    return {
        f"{r['alert']} {r['labels']['severity']}": re.sub(
            r"\{\{ \$labels\.(\w+) \}\}", lambda m: LABELS[m[1]], r["annotations"]["runbook"]
        )
        for r in rules
    }


def of_webhook() -> dict[str, str]:
    answer = answered(
        at_risk(), loss_ledger=[loss(), loss(status="recoverable"), loss(status="undetermined")],
        verdicts=[verdict("leader_in_isr", "VIOLATED"), verdict("log_matching", "VIOLATED")],
    )  # fmt: skip
    answer.silent = {"Id-1": {2: "nothing came from it after noon"}}
    answer.tables = "/my tables"
    return {f"webhook {a.labels['alertname']}": a.annotations["runbook"] for a in alerts_of(answer)}


RUNBOOKS = of_rules() | of_webhook()


def queries(text: str) -> list[str]:
    return re.findall(r"(SELECT .+?)(?=\. [A-Z]|[;.]?$|; )", text)


def commands(text: str) -> list[list[str]]:
    found = re.findall(r"(replication-[a-z]+ .+?)(?=\. [A-Z]|\.?$|[;:,] )", text)
    return [[GIVEN.get(word, word) for word in shlex.split(each)] for each in found]


@pytest.mark.parametrize("alert", RUNBOOKS)
def test_a_command_of_a_runbook_is_one_that_is_taken(alert: str) -> None:
    for name, *words in commands(RUNBOOKS[alert]):
        taken = tool_parser() if name == "replication-analyzer" else PARSERS[name]()
        taken.parse_args(words)
    # Nothing is told as a file of a checkout, with flags left out.
    assert not re.search(r"jobs/(?!check_quality.py --metrics again)", RUNBOOKS[alert])


def test_there_are_queries_and_commands() -> None:
    assert sum(len(queries(text)) for text in RUNBOOKS.values()) > 15
    assert {c[0] for text in RUNBOOKS.values() for c in commands(text)} == {
        "replication-report", "replication-analyzer",
    }  # fmt: skip


# Time travel, ALTER TABLE and files by their path are Spark's.
OF_PAGES = [
    sql.strip()
    for page in [project_root() / "README.md", *sorted((project_root() / "docs").glob("*.md"))]
    for block in re.findall(r"```sql\n(.+?)```", page.read_text("utf-8"), re.DOTALL)
    for sql in block.split(";\n")
    if sql.strip() and "delta.`" not in sql and "read_" not in sql
]


def test_each_query_of_a_runbook_or_a_page_is_understood_by_duckdb() -> None:
    asked = {sql for text in RUNBOOKS.values() for sql in queries(text)} | set(OF_PAGES)
    assert len(OF_PAGES) > 1
    connection = connected({})
    for sql in sorted(asked):
        assert connection.execute(sql).fetchall() in ([], [(None,)], [(0,)]), sql


@pytest.mark.spark
def test_each_query_of_a_runbook_is_answered(spark: SparkSession, folder: Path) -> None:
    evidence = project_root() / "tests" / "incidents" / "unclean_election__4.1.1"
    write_events(folder / "in" / "e.jsonl", import_evidence([evidence]).events())
    run_replay(spark, folder, tables="tables")
    store = Store(spark, folder / "tables")
    rows = checks.result_rows([outcome("a", "critical", 1)], "r", ("r", 0), 1, (["c"], []))
    expectation_results.append(store, rows)
    views.opened(spark, folder / "tables").register()
    told = {sql: spark.sql(sql).count() for text in RUNBOOKS.values() for sql in queries(text)}
    assert sum(count > 0 for count in told.values()) > 3
    # Those of the real loss, as the webhook tells of it, lead to it.
    job = Alerting(Channels(), folder, Progress())
    job.begin(store, "none", ["fold"])
    found: list[Any] = job.standing()
    lost = [a for a in found if a.labels["alertname"] == "RecordsLost"]
    assert [a.labels["next_leader_epoch"] for a in lost] == ["2"]
    for sql in queries(lost[0].annotations["runbook"]):
        assert spark.sql(sql).count() > 0
    assert f"--tables {folder / 'tables'} " in lost[0].annotations["runbook"]
