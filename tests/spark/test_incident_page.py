"""The incident page from the tables is the page of `diagnose` on the same events."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication import cli
from replication.reports.evidence_lines import read_lines
from replication.reports.page import page
from replication.spark import views
from replication.spark.incident_page import answer_of, events_of, with_details
from replication.spark.tables import TablesError
from tests.spark.jobs_in_process import run_replay

pytestmark = pytest.mark.spark
INCIDENTS = Path(__file__).parents[1] / "incidents"
# Two partitions, traced, one of them with a loss.
NAME = "chaos__1.1.1__seed39__trace"


def without_evidence(text: str) -> str:
    """The page but for its sections on what was read: the tables know no files of evidence."""
    head, _, rest = text.partition("<section id=evidence>")
    assert rest
    shown = head + rest.partition("</section>")[2]
    return re.sub(r'<section id="inventory">.*?</section>', "", shown, flags=re.DOTALL)


def first_difference(one: str, other: str) -> str | None:
    """Where two texts part, in both; comparing pages as a whole would take pytest minutes."""
    if one == other:
        return None
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), -1)
    return f"{one[at - 40 : at + 80]!r} is not {other[at - 40 : at + 80]!r}"


def from_tables(spark: SparkSession, tables: Path, topic: str | None = None) -> str:
    found = views.opened(spark, tables)
    answer = answer_of(found, topic)
    told = events_of(found, answer)
    detailed, beside = with_details(answer, told)
    return page(detailed, told, read_lines, beside)


def test_it_is_the_page_of_diagnose(spark: SparkSession, folder: Path) -> None:
    dump = folder / "in" / "events.jsonl"
    assert cli.main(["import", str(INCIDENTS / NAME), "--out", str(dump)]) == 0
    target = folder / "page.html"
    cli.main(["diagnose", str(dump), "--report", str(target)])
    expected = without_evidence(target.read_text(encoding="utf-8"))
    run_replay(spark, folder, keep_events=True)
    made = from_tables(spark, folder / "replayed")
    assert first_difference(without_evidence(made), expected) is None
    assert "<article" in made
    assert '"quotes":{"' in made
    with pytest.raises(TablesError, match="no topic nowhere"):
        from_tables(spark, folder / "replayed", "nowhere")


def test_without_events_it_says_so(spark: SparkSession, folder: Path) -> None:
    dump = folder / "in" / "events.jsonl"
    cli.main(["import", str(INCIDENTS / NAME), "--out", str(dump)])
    run_replay(spark, folder)
    text = from_tables(spark, folder / "replayed")
    assert "No partition is told event by event" in text
    assert "<article" in text
