"""What becomes of an outcome: words with the next step, metrics with alerts, the newest by SQL."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from pyspark.sql import SparkSession
from ruamel.yaml import YAML

from jobs.check_quality import Due, main
from replication.paths import project_root
from replication.quality import checks, suites
from replication.quality.candidates import ROW
from replication.quality.checks import Result
from replication.quality.command import Every, parser
from replication.quality.great_expectations_suite import Judge
from replication.quality.metrics import MOST_TOPICS, Metrics
from replication.quality.row_words import row_words
from replication.quality.suites import AllowedDeviation, Expectation, Suite
from replication.quality.verdict_sums import NAMES, Sums
from replication.spark import expectation_results
from replication.spark.other_writers import RESULTS
from replication.spark.tables import Store
from tests.spark.questions import questions

SUMS = Sums(2, {(NAMES[0], "HOLDS"): 1, (NAMES[0], "UNKNOWN"): 1})
RULES = project_root() / "conf" / "prometheus" / "alerts.yml"


def outcome(name: str, severity: str, failing: int, family: str = "health", **row: Any) -> Result:
    expectation = Expectation(name, family, severity, "It is so.", "query", sql="SELECT 1")
    rows = ({**dict.fromkeys(ROW), **row},) * failing
    return Result("verdicts", expectation, failing, 0, float(failing), rows)


def test_what_failed_names_the_next_step_and_what_is_one_finding() -> None:
    said = checks.text(
        [
            outcome("a", "critical", 1, finding_id="f1", incident="may"),
            outcome("b", "warning", 2, finding_id="f1"),
            outcome("c", "warning", 1, finding_id="f2"),
            outcome("d", "warning", 1, "evidence"),
            outcome("e", "info", 0, "integrity", finding_id="f3"),
        ]
    )
    assert "ONE FINDING  f1 fails 2 of these: verdicts.a, verdicts.b\n" in said
    assert "f2 fails" not in said
    assert (
        "from the evidence of incident may in PATH: replication-analyzer explain f1 PATH\n" in said
    )
    assert "diagnose PATH\n" in said
    assert "collect PATH\n" in said
    assert "into new tables" not in said
    assert "NEXT" not in checks.text([outcome("e", "info", 0, "integrity", finding_id="f3")])
    assert "into new tables" in checks.text([outcome("e", "info", 1, "integrity")])


def test_the_finding_of_the_next_step_is_one_that_is_printed() -> None:
    late = outcome("z", "critical", 1, finding_id="f9")
    said = checks.text([outcome("a", "warning", 1, finding_id="f1"), late])
    assert said.index("finding f9") < said.index("explain f9 PATH")
    assert "explain f1" not in said


def test_a_row_without_a_topic_names_its_cluster_and_says_what_was_observed() -> None:
    row = {**dict.fromkeys(ROW), "cluster_id": "c", "replicas": [1], "observed": 1.0}
    assert row_words(row | {"detail": "on Monday"}) == ("cluster c replica 1 observed 1: on Monday")
    whole = row | {"topic": "t", "partition": 0, "replicas": [1, 2], "incident": "may"}
    assert row_words(whole) == ("t-0 of cluster c of incident may replicas 1,2 observed 1")


def test_rows_that_may_deviate_are_told_with_the_reason() -> None:
    deviating = replace(outcome("a", "info", 0), allowed=5, reasons=("the topic was deleted",))
    assert checks.text([deviating]) == (
        "ALLOWED  verdicts.a: 5 rows may deviate: the topic was deleted\n"
        "1 of 1 expectation passed, 0 failed; allowed exceptions: 5 rows"
    )


def test_metrics_are_written_to_a_file_or_served(tmp_path: Path) -> None:
    file = tmp_path / "quality.prom"
    metrics = Metrics("/share/tables", file)
    metrics.show([outcome("a", "critical", 1), outcome("b", "warning", 0)], [], 12.5, SUMS)
    metrics.show([outcome("a", "critical", 0), outcome("c", "warning", 2)], [], 13.5, SUMS)
    text = file.read_text()
    told = dict(
        re.findall(r'^replication_expectation_failed\{.*expectation="(\w)",.*\} (\S+)', text, re.M)
    )
    assert told == {"a": "0.0", "c": "1.0"}
    verdicts = re.findall(r'^replication_quality_verdicts\{.*verdict="(\w+)"\} (\S+)', text, re.M)
    assert len(verdicts) == 4 * len(NAMES)
    assert sorted(each for each in verdicts if each[1] != "0.0") == [
        ("HOLDS", "1.0"), ("UNKNOWN", "1.0"),
    ]  # fmt: skip
    assert 'replication_quality_checked_timestamp_seconds{tables="/share/tables"} 13.5' in text
    assert generate_latest(metrics.registry).decode() == text


def of_file(file: Path, name: str, label: str) -> dict[str, float]:
    """The series of a metric, by one of their labels."""
    found = re.findall(rf'^{name}{{(?:.*,)?{label}="(.*?)".*}} (\S+)', file.read_text(), re.M)
    return {each: float(value) for each, value in found}


def test_what_was_not_asked_goes_on_saying_what_it_said(tmp_path: Path) -> None:
    """An alert would end though nothing passed."""
    file = tmp_path / "quality.prom"
    ledger = replace(outcome("c", "critical", 1, topic="t"), suite="loss_ledger")
    mine = replace(outcome("m", "warning", 1), suite="mine")
    both = [outcome("a", "critical", 1, topic="t"), outcome("b", "info", 1), ledger, mine]
    Metrics("/t", file).show(both, ["k"], 1.0, SUMS)
    asked = [outcome("a", "critical", 0), outcome("b", "critical", 1)]
    Metrics("/t", file).show(asked, ["k"], 2.0, SUMS, all_asked=False)
    failed = "replication_expectation_failed"
    assert of_file(file, failed, "expectation") == {"a": 0, "b": 1, "c": 1, "m": 1}
    assert file.read_text().count(f"{failed}{{") == 4
    checked = "replication_quality_checked_timestamp_seconds"
    assert of_file(file, checked, "tables") == {"/t": 1}  # What was not asked is no newer.
    Metrics("/t", file).show([*asked, ledger], ["k"], 3.0, SUMS)
    assert of_file(file, failed, "expectation") == {"a": 0, "b": 1, "c": 1}
    Metrics("/other", file).show([mine], ["k"], 4.0, SUMS, all_asked=False)
    assert of_file(file, failed, "tables") == {"/other": 1}
    assert of_file(file, "replication_quality_verdicts", "tables") == {"/other": 0}


def test_of_two_watchers_each_keeps_what_the_other_writes(tmp_path: Path) -> None:
    file = tmp_path / "quality.prom"
    first, second = Metrics("/t", file), Metrics("/t", file)
    ledger = replace(outcome("c", "critical", 1, topic="t"), suite="loss_ledger")
    first.show([outcome("a", "critical", 1)], [], 1.0, SUMS, all_asked=False)
    second.show([ledger], [], 2.0, SUMS, all_asked=False)
    first.show([outcome("a", "critical", 0)], [], 3.0, SUMS, all_asked=False)
    second.show([outcome("c", "critical", 0)], [], 4.0, SUMS, all_asked=False)
    first.look_failed()
    failed = "replication_expectation_failed"
    assert of_file(file, failed, "suite") == {"verdicts": 0, "loss_ledger": 1}
    checked = "replication_quality_checked_timestamp_seconds"
    assert of_file(file, checked, "tables") == {"/t": 2}  # The ledger was asked then.
    assert of_file(file, "replication_quality_look_failed", "tables") == {"/t": 1}


def test_a_call_in_vain_says_so_in_the_file_and_leaves_the_rest(tmp_path: Path) -> None:
    file, bad = tmp_path / "quality.prom", tmp_path / "accepted.toml"
    Metrics("/t", file).show([outcome("a", "critical", 1)], ["k"], 12.5, SUMS)
    told = file.read_text()
    bad.write_text("no TOML")
    asked = ["--tables", "/t", "--metrics", str(file), "--accepted", str(bad)]
    with pytest.raises(suites.SuiteError):
        main(asked)
    look = 'replication_quality_look_failed{tables="/t"} '
    assert file.read_text() == told.replace(f"{look}0.0", f"{look}1.0") != told
    with pytest.raises(suites.SuiteError):
        main(["--tables", "/misspelt", *asked[2:]])
    failed = "replication_quality_look_failed"
    assert of_file(file, failed, "tables") == {"/t": 1, "/misspelt": 1}
    assert of_file(file, "replication_expectation_failed", "tables") == {"/t": 1}
    Metrics("/t", file).show([outcome("a", "critical", 1)], ["k"], 12.5, SUMS)
    assert file.read_text() == told


@pytest.mark.parametrize(
    "text", ["no metrics {", "\xff", 'replication_expectation_failed{x="y"} 1\n']
)
def test_a_file_of_something_else_is_written_anew(tmp_path: Path, text: str) -> None:
    file = tmp_path / "quality.prom"
    file.write_text(text, encoding="latin-1")
    metrics = Metrics("/t", file)
    metrics.look_failed()
    assert file.read_text() == generate_latest(metrics.registry).decode()
    assert 'look_failed{tables="/t"} 1.0' in file.read_text()


def test_a_failed_check_names_cluster_and_topic_as_far_as_its_rows_do() -> None:
    metrics = Metrics("/share/tables", None)
    there = {"topic": "t", "cluster_id": "k", "partition": 0}
    many = outcome("many", "info", 1)
    rows = tuple({**dict.fromkeys(ROW), "topic": f"t{n}", "cluster_id": "k"} for n in range(99))
    metrics.show(
        [
            outcome("a", "critical", 2, **there),
            outcome("b", "warning", 1),
            outcome("c", "info", 0),
            replace(many, failing=99, rows=rows),
        ],
        ["k", "l"],
        1.0,
        SUMS,
    )
    text = generate_latest(metrics.registry).decode()
    told = re.findall(r'failed\{cluster="(.*?)",expectation="(\w)",.*topic="(.*?)"\} (\S+)', text)
    assert told == [
        ("k", "a", "t", "1.0"), ("k, l", "b", "", "1.0"), ("k, l", "c", "", "0.0"),
    ]  # fmt: skip
    assert text.count('expectation="many"') == MOST_TOPICS


@pytest.mark.parametrize("severity", suites.SEVERITIES)
def test_a_failed_check_is_an_alert(severity: str) -> None:
    metrics = Metrics("/share/tables", None)
    metrics.show([outcome("a", severity, 1, topic="t", cluster_id="k")], ["k"], 12.5, SUMS)
    text = generate_latest(metrics.registry).decode()
    rules = YAML(typ="safe").load(RULES.read_text())["groups"][0]["rules"]
    ours = [r for r in rules if "replication_expectation_failed" in r["expr"]]
    names = {
        n
        for r in ours
        for told in (r["expr"], r["annotations"]["summary"])
        for n in re.findall(
            r"replication_expect\w+|\b(?:severity|suite|tables|cluster|topic)\b", told
        )
    }
    assert all(name in text for name in names)
    told = [r["labels"]["severity"] for r in ours if f'severity="{severity}"' in r["expr"]]
    assert told == ([] if severity == "info" else [severity])


def test_of_one_loss_a_stream_and_the_checks_of_its_tables_do_not_both_tell() -> None:
    """The rules leave to the stream exactly what it tells itself: verdicts that are VIOLATED."""
    shipped = suites.load(project_root() / "conf" / "expectations", (), None)
    rules = YAML(typ="safe").load(RULES.read_text())["groups"][0]["rules"]
    for severity in ("critical", "warning"):
        [rule] = [r for r in rules if f'expectation_failed{{severity="{severity}"' in r["expr"]]
        [left] = re.findall(r'suite="verdicts", expectation=~"(.*?)"', rule["expr"])
        assert set(left.split("|")) == {
            e.name
            for s in shipped
            for e in s.expectations
            if s.table == "verdicts" and e.family == "health" and e.severity == severity
        }


@pytest.mark.parametrize(
    ("made", "in_vain", "status", "says"),
    [
        ([], [], 0, "ended after 0 looks; the worst status was 0"),
        ([0, 0], [], 0, "ended after 2 looks; the worst status was 0"),
        (
            [1, 0, 1, 1], [2], 1,
            "ended after 5 looks; the worst status was 1: a critical expectation failed in 3 "
            "looks; 1 look could not be made (status 2)",
        ),
        ([1, 2], [5], 1, "1: a critical expectation failed in 1 look; in 1 look some expectation "
         "could not be judged; 1 look could not be made (status 5)"),
        ([0], [2, 5], 5, "status was 5: 2 looks could not be made (status 5)"),
        ([2, 0], [], 2, "status was 2: in 1 look some expectation could not be judged"),
    ],
)  # fmt: skip
def test_over_looks_a_critical_failure_outranks_what_could_not_be_looked_at(
    made: list[int], in_vain: list[int], status: int, says: str
) -> None:
    """A supervisor that reads 2 takes the call for wrong, and would miss the failure."""
    found, words = checks.worst(made, in_vain)
    assert found == status
    assert words.endswith(says)


@pytest.mark.parametrize(
    ("text", "every"),
    [("3", Every(3)), ("90s", Every(0, 90)), ("15m", Every(0, 900)), ("2h", Every(0, 7200))],
)
def test_every_takes_a_time_or_a_number_of_micro_batches(text: str, every: Every) -> None:
    assert parser().parse_args(["--tables", "t", "--every", text]).every == every
    assert ("micro-batches" in str(every)) == text.isdigit()


@pytest.mark.parametrize("text", ["0", "0m", "-1", "1.5m", "5d", "m", ""])
def test_every_refuses_what_is_neither(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="number of micro-batches"):
        Every.of(text)


def test_by_the_clock_the_tables_are_judged_whether_anything_came_or_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = 100.0
    monkeypatch.setattr("jobs.check_quality.time.monotonic", lambda: now)
    due = Due(Every(seconds=60))
    store = Store(None, tmp_path)  # type: ignore[arg-type]
    looked = []
    for now in (100.0, 101.0, 159.0, 160.0, 161.0, 230.0, 231.0):
        if due.now(store):
            looked.append(now)
    assert looked == [100.0, 160.0, 230.0]


@pytest.mark.spark
def test_what_failed_is_asked_of_each_expectations_newest_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A run of one suite says nothing of the others."""
    store = Store(spark, tmp_path)

    def ran(run: str, at: int, results: Sequence[Result]) -> None:
        rows = checks.result_rows(results, run, ("first", 0), at, (["c"], []))
        expectation_results.append(store, rows)

    ledger = replace(outcome("c", "critical", 1), suite="loss_ledger")
    ran("all", 1, [outcome("a", "critical", 1), outcome("b", "critical", 0), ledger])
    ran("verdicts", 2, [outcome("a", "critical", 0), outcome("b", "critical", 1)])
    store.newest(RESULTS).createOrReplaceTempView(RESULTS)
    (sql,) = [sql for question, sql in questions() if "expectations failed" in question]
    found = [(r["suite"], r["expectation"]) for r in spark.sql(sql).collect()]
    assert found == [("loss_ledger", "c"), ("verdicts", "b")]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "at_most", "gives", "outcome", "says"),
    [
        ("limit", 1, "CAST(NULL AS DOUBLE)", "not_judged", "observed is NULL in 3 rows"),
        (
            "limit",
            1,
            "IF(id = 1, NULL, 0)",
            "not_judged",
            "observed is NULL in 1 row, the first t-1",
        ),
        ("limit", 1, "IF(id = 1, NULL, id)", "failed", "t-2 observed 2"),
        ("limit", 1, "IF(id = 2, NULL, 0)", "passed", None),
        ("limit", 1, "IF(id = 1, double('nan'), 0)", "failed", "t-1 observed nan"),
        ("limit", 1, "0", "passed", None),
        (
            "share",
            0.9,
            "CAST(NULL AS BOOLEAN)",
            "not_judged",
            "broken is NULL in 3 rows, the first",
        ),
        (
            "share",
            0.9,
            "IF(id = 1, NULL, false)",
            "not_judged",
            "broken is NULL in 1 row, the first t-1",
        ),
        ("share", 0.9, "IF(id = 1, NULL, true)", "failed", "t-0"),
        ("share", 0.9, "IF(id = 2, NULL, false)", "passed", None),
        ("share", 0.9, "false", "passed", None),
    ],
)
def test_what_is_null_is_not_judged_unless_another_row_fails(
    spark: SparkSession, kind: str, at_most: float, gives: str, outcome: str, says: str | None
) -> None:
    """Nothing can be held against at_most, and a critical expectation passed by it."""
    spark.range(3).createOrReplaceTempView("numbers")
    name = "observed" if kind == "limit" else "broken"
    deviating = AllowedDeviation("partition = 2 AND " + name + " IS NULL", "known")
    sql = f"SELECT 't' AS topic, id AS partition, {gives} AS {name} FROM {{batch}}"
    allowed = (deviating,) if outcome == "passed" else ()
    mine = Expectation("m", "health", "critical", "m", kind, sql, at_most=at_most, allowed=allowed)
    suite = Suite("numbers", "x", (mine,))
    (found,) = checks.run(spark, [suite], {"numbers": "numbers"}, Judge("null"))
    assert found.outcome == outcome
    told = [row_words(row) for row in found.rows]
    assert (says or "") in (told or [""])[0]
    assert bool(told) is (says is not None)


GOOD = {
    "rows": {"where": "id < 0"},
    "query": {"sql": "SELECT 'x' AS detail FROM {batch} WHERE id < 0"},
    "limit": {"sql": "SELECT 0.5D AS observed FROM {batch}", "at_most": 1},
    "share": {"sql": "SELECT id < 0 AS broken FROM {batch}", "at_most": 1},
    "unique": {"columns": ("id",)},
}
BROKEN = [
    ("id < 0", "id <<< 0", "PARSE_SYNTAX_ERROR"),
    ("id < 0", "idd < 0", "no column idd (did you mean id?)"),
    ("id < 0", "CAST(concat('x', id) AS INT) < 0", "CAST_INVALID_INPUT"),
    ("0.5D", "1 / (id - id)", "DIVIDE_BY_ZERO"),
    ("observed", "observd", "observed"),
    ("broken", "brokn", "broken"),
    ("'x'", "nosuch(id)", "UNRESOLVED_ROUTINE"),
]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "before", "after", "told"),
    [
        (k, *each)
        for k, v in GOOD.items()
        for each in BROKEN
        if each[0] in f"{v.get('sql')}{v.get('where')}"
    ],
)
def test_sql_that_cannot_be_asked_names_its_expectation(
    spark: SparkSession, kind: str, before: str, after: str, told: str
) -> None:
    text = str(GOOD[kind].get("sql") or GOOD[kind]["where"])
    key = "where" if kind == "rows" else "sql"
    spark.range(3).createOrReplaceTempView("numbers")
    good = [Expectation(f"good_{k}", "health", "info", "m", k, **v) for k, v in GOOD.items()]  # type: ignore[arg-type]
    broken = Expectation(
        "mine",
        "health",
        "info",
        "m",
        kind,
        **{**GOOD[kind], key: text.replace(before, after)},  # type: ignore[arg-type]
    )
    names = {"numbers": "numbers"}
    suite = Suite("numbers", "x", tuple(good))
    assert all(r.passed for r in checks.run(spark, [suite], names, Judge("good")))
    suite = Suite("numbers", "x", (*good[:2], broken, *good[2:]))
    results = checks.run(spark, [suite], names, Judge("broken"))
    (refused,) = [r for r in results if not r.passed]
    assert (refused.expectation.name, refused.is_judged) == ("mine", False)
    (detail,) = [row["detail"] for row in refused.rows]
    assert detail.startswith("cannot be judged: ")
    assert told in detail
    assert "\n" not in detail
    assert [r.expectation.name for r in results if r.passed] == [e.name for e in good]
    assert checks.exit_status(results) == checks.EXIT_NOT_JUDGED
    assert checks.text(results).splitlines()[0] == "NOT JUDGED  info  numbers.mine"
    assert checks.text(results).endswith(
        "5 of 6 expectations passed, 0 failed, 1 could not be judged"
    )
    critical = outcome("a", "critical", 1)
    assert checks.exit_status([*results, critical]) == checks.EXIT_FAILED
