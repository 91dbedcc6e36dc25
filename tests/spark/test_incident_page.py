"""The incident page from the tables is the page of `diagnose` on the same events."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication import cli
from replication.reports.page import page
from replication.spark import views
from replication.spark.incident_page import answer_of, events_of
from replication.spark.tables import TablesError
from tests.spark.jobs_in_process import run_replay

pytestmark = pytest.mark.spark
INCIDENTS = Path(__file__).parents[1] / "incidents"
# One partition with a loss; several, some with a loss, some without.
NAMES = ("unclean_election__4.1.1", "chaos__1.1.1__seed39__trace")


def without_evidence(text: str) -> str:
    """The page but for its section on what was read: the tables know no files of evidence."""
    head, _, rest = text.partition("<section id=evidence>")
    assert rest
    return head + rest.partition("</section>")[2]


def from_tables(spark: SparkSession, tables: Path, topic: str | None = None) -> str:
    found = views.opened(spark, tables)
    answer = answer_of(found, topic)
    return page(answer, events_of(found, answer))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_page_of_diagnose(
    spark: SparkSession, folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = folder / "in" / "events.jsonl"
    assert cli.main(["import", str(INCIDENTS / name), "--out", str(dump)]) == 0
    target = folder / "page.html"
    cli.main(["diagnose", str(dump), "--report", str(target)])
    expected = without_quotes(without_evidence(target.read_text(encoding="utf-8")))
    run_replay(spark, folder, keep_events=True)
    made = from_tables(spark, folder / "replayed")
    assert without_quotes(without_evidence(made)) == expected
    assert "<article" in made


def without_quotes(text: str) -> str:
    """Lines of evidence are quoted by the command alone: here nobody reads them again."""
    head, *parts = text.split(',"quotes":{')
    return head + "".join(part.partition("}")[2] for part in parts)


def test_without_events_it_says_so(spark: SparkSession, folder: Path) -> None:
    dump = folder / "in" / "events.jsonl"
    cli.main(["import", str(INCIDENTS / NAMES[0]), "--out", str(dump)])
    run_replay(spark, folder)
    text = from_tables(spark, folder / "replayed")
    assert "No partition is told event by event" in text
    assert "<article" in text


def test_a_topic_that_is_not_there_is_named(spark: SparkSession, folder: Path) -> None:
    dump = folder / "in" / "events.jsonl"
    cli.main(["import", str(INCIDENTS / NAMES[0]), "--out", str(dump)])
    run_replay(spark, folder, keep_events=True)
    with pytest.raises(TablesError, match="no topic nowhere"):
        from_tables(spark, folder / "replayed", "nowhere")
