"""A project of Great Expectations: its owners open it, extend it, and find theirs beside ours."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from jobs import check_quality
from replication.evidence.event_dumps import write_events
from replication.paths import project_root
from replication.quality import offline_docs, suites
from replication.quality.great_expectations_suite import Judge, ProjectError
from replication.quality.offline_docs import WOULD_FAIL
from replication.quality.suites import Expectation, Suite
from replication.spark.other_writers import RESULTS
from replication.spark.tables import Store
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import run_replay

EXPECTATIONS = (project_root() / "docs" / "expectations_project.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"<!-- project.*?```python\n(.*?)```", EXPECTATIONS, re.S)
VERDICTS = ("HOLDS", "VIOLATED", "UNKNOWN")
PAGE = """<html><head><title>t</title>
<link rel="stylesheet" href="https://cdn.example/x.css">
<link rel="icon" href="data:,">
<script src="https://cdn.example/x.js"></script><script>
$(function () { fold("</div>"); })
</script></head><body class="x"><img alt="logo" src="https://cdn.example/l.png">kept
<a class="n" href="https://docs.example/x">words</a> <a href="b.html">b</a></body></html>"""


def test_a_page_loads_nothing_and_says_whose_it_is(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.html").write_text(PAGE)
    whose = offline_docs.whose_words(["<c>"], ["may"])
    for _ in range(2):
        assert offline_docs.make_offline(tmp_path, whose) == 1
    page = (tmp_path / "deep" / "a.html").read_text()
    assert "cdn.example" not in page
    assert "<script" not in page
    assert page.count("<style>") == 1
    assert (
        '<p class="whose">Cluster: &lt;c&gt;; incidents: may</p>kept\nwords <a href="b.html">b</a>'
        in page
    )


@pytest.mark.spark
def test_owners_extend_the_project_by_an_expectation_of_their_own(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    import great_expectations as gx

    tables, project, docs = folder / "tables", tmp_path / "project", tmp_path / "docs"
    lost = [replace(event, incident="may") for event in made_trace()]
    write_events(folder / "in" / "0.jsonl", lost)
    run_replay(spark, folder, "tables", keep_events=True)
    chosen = suites.load(project_root() / "conf" / "expectations", ("verdicts",))

    def checked(run: str, *more: str) -> int:
        asked = ["--tables", str(tables), "--project", str(project), "--run", run, *more]
        return check_quality.check(spark, check_quality.parser().parse_args(asked), chosen)

    assert checked("one") == 1
    # However it is called, a checkpoint of theirs is run.
    example = EXAMPLE.replace('Checkpoint(name="mine"', 'Checkpoint(name="replication_mine"')
    exec(example.replace('"gx"', repr(str(project))), {})
    context = gx.get_context(mode="file", project_root_dir=project)
    assert not context.checkpoints.get("replication_mine").run().success

    assert checked("two", "--data-docs", str(docs)) == 1
    found = Store(spark, tables).newest(RESULTS).filter("run = 'two'").collect()
    (own,) = [row for row in found if row["family"] == "own"]
    assert (own["suite"], own["outcome"], own["severity"]) == ("mine", "failed", "warning")
    assert own["expectation"] == "expect_column_values_to_be_in_set(verdict)"
    not_held = Store(spark, tables).newest("verdicts").filter("verdict <> 'HOLDS'").count()
    assert own["failing"] == not_held
    assert own["cluster_ids"] == ["cluster"]
    assert own["incidents"] == ["may"]
    assert len(found) == sum(len(suite.expectations) for suite in chosen) + 1
    kept = gx.get_context(mode="file", project_root_dir=project)
    assert {s.name for s in kept.suites.all()} == {
        "mine",
        "replication_batches",
        "replication_verdicts",
    }
    results = [key.run_id.run_name for key in kept.validation_results_store.list_keys()]
    assert results.count("two") == 3
    # Those of the site that the owners' checkpoint writes too.
    theirs = list((project / "gx" / "uncommitted" / "data_docs").rglob("*.html"))
    assert len(theirs) > 2
    ours = [p.read_text() for p in docs.rglob("replication_candidates*.html")]
    assert any("Failing rows: " in page for page in ours)
    assert not any("% null" in page or "Unexpected" in page for page in ours)
    pages = [p.read_text() for p in [*docs.rglob("*.html"), *theirs]]
    assert any("expect_column_values_to_be_in_set" in p or "belong to this set" in p for p in pages)
    for page in pages:
        assert 'href="http' not in page
        assert "<script" not in page
        assert "Cluster: cluster; incidents: may" in page
    # Those of ours that are not asked this time are not taken for theirs.
    chosen[:] = suites.load(project_root() / "conf" / "expectations", ("findings",))
    assert checked("findings") == 0
    later = Store(spark, tables).newest(RESULTS).filter("run = 'findings'").collect()
    assert [row["suite"] for row in later if row["family"] == "own"] == ["mine"]
    other = Judge("three", project=project, tables=(tmp_path, {"verdicts": ["verdict"]}))
    with pytest.raises(ProjectError, match="is of the tables in"):
        other.judge(chosen[0], {})


def test_the_index_lists_the_pages_without_a_script(tmp_path: Path) -> None:
    page = tmp_path / "validations" / "verdicts" / "run" / "1.html"
    page.parent.mkdir(parents=True)
    for path in (page, tmp_path / "index.html"):
        path.write_text("<html><head></head><body><script>list()</script></body></html>")
    for _ in range(2):
        offline_docs.make_offline(tmp_path, "Cluster: c")
    index = (tmp_path / "index.html").read_text()
    link = '<a href="validations/verdicts/run/1.html">verdicts: passed, run run</a>'
    assert index.count(link) == 1


def test_pages_are_listed_by_what_they_are_about_and_say_what_failed(tmp_path: Path) -> None:
    icons = '<i class="fas {} text-x" ></i>'
    texts = {
        "index.html": "",
        "expectations/at_risk.html": "",
        "expectations/verdicts.html": "",
        "validations/at_risk/one/20261127T09Z/b.html": icons.format("fa-check-circle"),
        "validations/verdicts/one/20261127T09Z/b.html": icons.format("fa-times"),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"<html><head></head><body>{text}</body></html>")
    offline_docs.make_offline(tmp_path, "Cluster: c")
    names = re.findall(
        r'<li[^>]*><a href="[^"]*">([^<]*)</a>', (tmp_path / "index.html").read_text()
    )
    assert names == [
        "verdicts: failed, run one, 20261127T09Z",
        "at_risk: passed, run one, 20261127T09Z",
        "What is expected of at_risk",
        "What is expected of verdicts",
    ]
    page = (tmp_path / "validations/verdicts/one/20261127T09Z/b.html").read_text()
    assert '<b class="text-danger">failed</b>' in page
    assert "<i" not in page.replace("<p class", "")


def test_what_failed_comes_first_and_the_critical_before_the_rest(tmp_path: Path) -> None:
    """By Great Expectations itself: its pages are by the alphabet."""

    def expected(name: str, severity: str) -> Expectation:
        return Expectation(name, "health", severity, f"{name} is so.", "query", sql="SELECT 1")

    judge = Judge("one", tmp_path)
    listed = [expected("a", "info"), expected("b", "warning"), expected("c", "critical")]
    listed += [expected("d", "critical"), expected("e", "warning")]
    judge.judge(Suite("at_risk", "x", tuple(listed)), {"e": ["t-0"], "d": ["t-0"]}, {})
    judge.judge(Suite("verdicts", "x", tuple(listed)), {}, {}, {"b": [f"{WOULD_FAIL} f"]})
    judge.judge(Suite("findings", "x", tuple(listed)), {"b": ["t-0"]}, {})
    judge.write_docs()
    for _ in range(2):
        offline_docs.make_offline(tmp_path, "Cluster: c", ["1 topic, <all> well"])
    index = (tmp_path / "index.html").read_text()
    (block,) = re.findall(r'<div class="pages">.*?</div>', index, re.S)
    said = re.findall(r'(?:<p>|<li[^>]*><a href="validations[^"]*">)([^<,]*)', block)
    assert said == [
        "1 topic", "at_risk: failed (critical)", "findings: failed (warning)",
        "verdicts: passed but for what is accepted",
    ]  # fmt: skip
    assert index.index("&lt;all&gt; well") < index.index("at_risk: failed") < index.index("<nav")
    orders = {"at_risk": ["d", "e", "a", "b", "c"], "verdicts": ["b", "a", "c", "d", "e"]}
    for table, order in orders.items():
        (path,) = (tmp_path / "validations" / table).rglob("*.html")
        page = path.read_text()
        assert re.findall(r"<span >\s*(\w): \w is so\.", page) == order
        assert re.findall(r"#section-\d+\"[^>]*>\s*(\w)\s*</a>", page) == order
        assert page.count("<div") == page.count("</div>")
        assert page.rstrip().endswith("</html>")


def assert_counts_are_true(details: list[str], counts: Counter[str]) -> None:
    """Great Expectations lists the first rows alone: what it counts among them is no sum."""
    for text in details:
        value, least, count = re.findall(r"= '(\w+)': (at least )?(\d+) rows?$", text)[0]
        assert int(count) <= counts[value] if least else int(count) == counts[value], text


def put_rules_into(project: Path, elsewhere: Path) -> None:
    """A checkpoint for each way in which a rule of the owners may come to nothing."""
    import great_expectations as gx

    context = gx.get_context(mode="file", project_root_dir=project)
    asset = context.data_sources.get("replication_tables").get_asset("verdicts")
    batch = asset.get_batch_definition("whole")
    known = gx.expectations
    in_set = known.ExpectColumnValuesToBeInSet
    none = 'col("topic")=="none"'
    held = {"column": "verdict", "value_set": ["HOLDS"]}
    rules = {
        "nothing": [in_set(**held, row_condition=none, condition_parser="great_expectations")],
        "missing": [known.ExpectColumnValuesToNotBeNull(column="verdct")],
        "raises": [known.ExpectColumnMeanToBeBetween(column="verdict", min_value=5)],
        "sql": [known.UnexpectedRowsExpectation(
            unexpected_rows_query="SELECT * FROM {batch} WHERE verdict <> 'HOLDS'")],
        "number": [known.ExpectTableRowCountToBeBetween(min_value=1000)],
        "words": [known.ExpectColumnMostCommonValueToBeInSet(column="topic", value_set=["q"])],
        "twice": [in_set(**held), in_set(column="verdict", value_set=[*VERDICTS])],
        "bare": [known.ExpectColumnValuesToNotBeNull(column="incident")],
        "unknown": [in_set(**held), known.ExpectColumnValuesToNotBeNull(column="topic")],
        "half": [in_set(**held)],
        "gone": [in_set(**held)],
        "unreadable": [in_set(**held)],
        "torn": [in_set(**held)],
    }  # fmt: skip
    for name, listed in rules.items():
        suite = context.suites.add(gx.ExpectationSuite(name=name, expectations=listed))
        definition = context.validation_definitions.add(
            gx.ValidationDefinition(name=name, data=batch, suite=suite)
        )
        kept = "BOOLEAN_ONLY" if name == "bare" else "SUMMARY"
        both = [definition]
        if name == "half":
            far = context.data_sources.add_spark_filesystem("far", base_directory=elsewhere)
            nowhere = far.add_directory_delta_asset("nowhere", data_directory="nowhere")
            nobody = nowhere.add_batch_definition_whole_directory("whole")
            both.append(context.validation_definitions.add(
                gx.ValidationDefinition(name="nowhere", data=nobody, suite=suite)
            ))  # fmt: skip
        context.checkpoints.add(
            gx.Checkpoint(name=name, validation_definitions=both, result_format=kept)
        )
    (project / "gx" / "checkpoints" / "unreadable.json").write_text("{")
    (project / "gx" / "expectations" / "torn.json").write_text("no JSON")
    (project / "gx" / "validation_definitions" / "gone.json").unlink()
    file = project / "gx" / "expectations" / "unknown.json"
    file.write_text(file.read_text().replace("expect_column_values_to_be_in_set", "expect_luck"))


def rows_of_own_rules(
    spark: SparkSession, folder: Path, project: Path
) -> Callable[[str], list[Row]]:
    """Makes tables of a replay; what the own rules of a project come to in a run of the checks."""
    write_events(folder / "in" / "0.jsonl", made_trace())
    run_replay(spark, folder, "tables")
    chosen = suites.load(project_root() / "conf" / "expectations", ("verdicts",))
    tables = folder / "tables"

    def rows(run: str) -> list[Row]:
        asked = ["--tables", str(tables), "--project", str(project), "--run", run]
        check_quality.check(spark, check_quality.parser().parse_args(asked), chosen)
        found = Store(spark, tables).newest(RESULTS).filter(f"run = '{run}' AND family = 'own'")
        return found.collect()

    return rows


@pytest.mark.spark
def test_no_rule_of_the_owners_costs_another_its_result(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    """Rules that match nothing, raise, count nothing, are of no type, or cannot be read."""
    tables, project = folder / "tables", tmp_path / "project"
    own = rows_of_own_rules(spark, folder, project)

    def checked(run: str) -> dict[tuple[str, str], Any]:
        return {(row["suite"], row["expectation"]): row for row in own(run)}

    assert checked("before") == {}
    put_rules_into(project, tmp_path)
    found = checked("after")
    rows = Store(spark, tables).newest("verdicts").collect()
    not_held = [row["verdict"] for row in rows if row["verdict"] != "HOLDS"]
    type_of = "expect_column_values_to_be_in_set(verdict)"
    said = {key: [row["detail"] for row in found[key]["failing_rows"]] for key in found}
    failing = {key: row["failing"] for key, row in found.items() if row["outcome"] != "passed"}
    by_value = sorted(f"verdict = {v!r}: " for v in set(not_held))
    assert [text.split(": ")[0] + ": " for text in sorted(said["twice", type_of])] == by_value
    assert_counts_are_true(said["twice", type_of], Counter(not_held))
    values = {
        ("missing", "expect_column_values_to_not_be_null(verdct)"): 1,
        ("raises", "expect_column_mean_to_be_between(verdict)"): 1,
        ("sql", "unexpected_rows_expectation"): len(not_held),
        ("number", "expect_table_row_count_to_be_between"): 1,
        ("words", "expect_column_most_common_value_to_be_in_set(topic)"): 1,
        ("twice", type_of): len(not_held),
        ("bare", "expect_column_values_to_not_be_null(incident)"): 1,
        ("unknown", "expect_luck(verdict)"): 1,
        ("half", type_of): len(not_held),
        ("half", "runs"): 1,
        ("nowhere", "runs"): 1,
        ("gone", "runs"): 1,
        ("unreadable", "runs"): 1,
        ("torn", "runs"): 1,
    }
    assert failing == values
    assert set(found) - set(failing) == {
        ("nothing", type_of), ("twice", f"{type_of}#2"),
        ("unknown", "expect_column_values_to_not_be_null(topic)"),
    }  # fmt: skip
    assert said["number", "expect_table_row_count_to_be_between"] == [f"observed {len(rows)}"]
    for key, words in {
        ("missing", "expect_column_values_to_not_be_null(verdct)"): (
            "cannot be judged: no column verdct (did you mean verdict?)"
        ),
        ("raises", "expect_column_mean_to_be_between(verdict)"): "numeric column",
        ("unknown", "expect_luck(verdict)"): "no expectation of this type",
        ("gone", "runs"): "validation_definitions/gone.json is not there",
        ("nowhere", "runs"): "cannot be run",
        ("unreadable", "runs"): "checkpoints/unreadable.json is no JSON: Expecting property name",
        ("torn", "runs"): "expectations/torn.json is no JSON: Expecting value: line 1",
    }.items():
        (text,) = said[key]
        assert words in text
        assert "validation error" not in text
        assert "\n" not in text


@pytest.mark.spark
def test_rules_of_the_owners_are_judged_on_the_versions_that_ours_are(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    tables, project = folder / "tables", tmp_path / "project"
    own = rows_of_own_rules(spark, folder, project)

    def failing(run: str) -> int:
        return sum(row["failing"] for row in own(run))

    failing("before")
    exec(EXAMPLE.replace('"gx"', repr(str(project))), {})
    judged = failing("first")
    # As a stream's next micro-batch that is not finished yet.
    more = Store(spark, tables).newest("verdicts")
    more.write.format("delta").mode("append").save(str(tables / "verdicts"))
    assert failing("second") == judged > 0
    kept = (project / "gx" / "great_expectations.yml").read_text()
    assert "version_as_of" not in kept
