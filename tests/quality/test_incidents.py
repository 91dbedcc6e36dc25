"""On real incidents the suites fail exactly where the ground truth says, and pass elsewhere."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs import check_quality
from replication.evidence.event_dumps import write_events
from replication.paths import project_root
from replication.protocol.ground import events as ev
from replication.protocol.judgement.bounded import fold_all
from replication.quality import checks, suites
from replication.quality.checks import Result
from replication.quality.great_expectations_suite import Judge
from replication.quality.suites import NOTHING_ASSUMED
from replication.spark import views
from replication.spark.ending import Stop
from replication.spark.other_writers import RESULTS
from replication.spark.tables import Store
from tests.quality.conftest import EXPECTED, INCIDENTS, events_of, incident_of
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import run_replay, run_stream, waited_for

pytestmark = pytest.mark.spark
SUITES = suites.load(project_root() / "conf" / "expectations")
# What the ground truth speaks of. Every other expectation passes on every incident.
MAY_FAIL = {
    "no_committed_loss", "no_acknowledged_loss", "no_divergence", "no_unclean_election",
    NOTHING_ASSUMED,
}  # fmt: skip


@pytest.fixture(scope="module")
def results(session: SparkSession, all_incidents: Path) -> dict[str, Result]:
    found = views.opened(session, all_incidents)
    judged = checks.run(session, SUITES, found.register(check_quality.KEPT_BELOW), Judge("truth"))
    assert len({f"{r.suite}.{r.expectation.name}" for r in judged}) == len(judged)
    return {r.expectation.name: r for r in judged if r.failing or r.expectation.name in MAY_FAIL}


def place(row: Mapping[str, Any]) -> tuple[str, str]:
    """(incident, topic partition) of a failing row."""
    incident = incident_of(row["topic_partition_id"].split("/")[0])
    return incident, f"{row['topic']}-{row['partition']}"


def truth(place_in_verdicts: int) -> set[tuple[str, str]]:
    """Where the ground truth has VIOLATED for one of the three deciding invariants."""
    return {
        (incident, topic_partition)
        for incident, partitions in EXPECTED.items()
        for topic_partition, expected in partitions.items()
        if expected["verdicts"][place_in_verdicts] == "VIOLATED"
    }


def offsets(result: Result) -> dict[tuple[str, str], list[int]]:
    """What is gone at the end: of records that were missing and are back the truth says nothing."""
    found: dict[tuple[str, str], set[int]] = {}
    for row in result.rows:
        if " recovered (" in row["detail"]:
            continue
        found.setdefault(place(row), set()).update(range(row["first_offset"], row["end_offset"]))
    return {where: sorted(numbers) for where, numbers in found.items()}


def expected_offsets(*lists: str) -> dict[tuple[str, str], list[int]]:
    found = {
        (incident, topic_partition): sorted(o for name in lists for o in expected.get(name, []))
        for incident, partitions in EXPECTED.items()
        for topic_partition, expected in partitions.items()
    }
    return {where: numbers for where, numbers in found.items() if numbers}


def test_nothing_fails_that_the_ground_truth_does_not_speak_of(results: dict[str, Result]) -> None:
    assert set(results) == MAY_FAIL


def test_committed_loss_is_found_where_it_is_and_offset_by_offset(
    results: dict[str, Result],
) -> None:
    result = results["no_committed_loss"]
    assert {place(row) for row in result.rows} == truth(0)
    assert offsets(result) == expected_offsets("lost_all")
    assert all(row["finding_id"] for row in result.rows)


def test_acknowledged_loss_is_found_where_it_is_and_offset_by_offset(
    results: dict[str, Result],
) -> None:
    result = results["no_acknowledged_loss"]
    assert {place(row) for row in result.rows} == truth(1)
    assert offsets(result) == expected_offsets("lost_all", "lost_one")


def test_divergence_is_found_with_its_replicas(results: dict[str, Result]) -> None:
    rows = results["no_divergence"].rows
    assert {place(row) for row in rows} == truth(2)
    found = {place(r): [[r["replicas"], r["first_offset"], r["end_offset"]]] for r in rows}
    assert found == {
        (incident, topic_partition): expected["divergent"]
        for incident, partitions in EXPECTED.items()
        for topic_partition, expected in partitions.items()
        if "divergent" in expected
    }


def test_unclean_elections_are_those_that_were_recorded(
    session: SparkSession, results: dict[str, Result]
) -> None:
    recorded = {
        (incident, e["topic_partition"], e["leader"], e["leader_epoch"])
        for incident in EXPECTED
        for e in json.loads((INCIDENTS / incident / "truth.json").read_text())["elections"]
        if e["kind"] == "unclean"
    }
    found = {
        (*place(row.asDict()), row["leader"], row["leader_epoch"])
        for row in session.table("unclean_elections").collect()
    }
    assert found == recorded
    assert results["no_unclean_election"].failing == len(recorded)


def test_no_row_of_a_healthy_incident_fails(results: dict[str, Result]) -> None:
    healthy = {
        incident
        for incident, partitions in EXPECTED.items()
        if all(expected["verdicts"] == ["HOLDS"] * 3 for expected in partitions.values())
    }
    assert len(healthy) == 8
    failing = {
        place(row)[0]
        for name, result in results.items()
        for row in result.rows
        if name != NOTHING_ASSUMED
    }
    assert not failing & healthy
    # Of the one that HOLDS by an assumption, its answer says so too.
    assumed = {place(row)[0] for row in results[NOTHING_ASSUMED].rows}
    assert assumed == {
        incident
        for incident in EXPECTED
        for folded in fold_all(events_of(incident))
        for v in folded.answer.verdicts
        if v["assuming"] and v["verdict"] == "HOLDS"
    }


def arguments(tables: Path, *more: str) -> Any:
    return check_quality.parser().parse_args(["--tables", str(tables), *more])


def test_the_job_passes_on_a_healthy_stream_and_writes_its_results(
    session: SparkSession, healthy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_quality.check(session, arguments(healthy, "--run", "one"), SUITES) == 0
    total = sum(len(s.expectations) for s in SUITES)
    said = capsys.readouterr().out
    assert f"{total - 1} of {total} expectations passed, 1 failed" in said
    assert said.startswith(f"FAILED  info  verdicts.{NOTHING_ASSUMED}: 1 row")
    rows = Store(session, healthy).newest(RESULTS).filter("run = 'one'").collect()
    assert len(rows) == total
    assert {
        (r["outcome"], r["failing"], r["checked_run"])
        for r in rows
        if r["expectation"] != NOTHING_ASSUMED
    } == {("passed", 0, "first")}
    assert {r["checked_micro_batch_id"] for r in rows} == {1}


def test_the_job_fails_on_lost_records_writes_rows_and_data_docs(
    session: SparkSession, all_incidents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [s for s in SUITES if s.table in ("verdicts", "divergences")]
    flags = arguments(all_incidents, "--run", "docs", "--data-docs", str(tmp_path / "docs"))
    assert check_quality.check(session, flags, chosen) == 1
    assert "FAILED  critical  verdicts.no_committed_loss: 9 rows" in capsys.readouterr().out
    written = Store(session, all_incidents).newest(RESULTS)
    loss = written.filter("run = 'docs' AND expectation = 'no_committed_loss'").collect()[0]
    assert (loss["outcome"], loss["observed_value"], len(loss["failing_rows"])) == ("failed", 9, 9)
    index = (tmp_path / "docs" / "index.html").read_text()
    assert "verdicts" in index
    pages = [p.read_text() for p in (tmp_path / "docs" / "validations").rglob("*.html")]
    assert any("no_committed_loss: Every record that was committed" in page for page in pages)
    [failed] = [p for p in pages if "no_committed_loss: Every record that was committed" in p]
    told = " ".join(failed.partition("no_committed_loss: Every")[2].partition("</span>")[0].split())
    assert "Severity: critical. Next: the proof: replication-analyzer explain " in told
    assert f"explain {loss['failing_rows'][0]['finding_id']} PATH; what was lost" in told
    assert failed.count("Severity: ") == sum(
        len(s.expectations) for s in chosen if s.table == "verdicts"
    )
    assert failed.count("Next: ") == failed.count("Failing rows: ")
    expected = (tmp_path / "docs" / "expectations" / "verdicts.html").read_text()
    assert "Where it fails: the proof: replication-analyzer explain FINDING PATH" in expected
    assert "Severity critical: where it fails, the job ends with status 1" in expected
    assert all('class="whose">Cluster: ' in page for page in pages)
    assert not any("<script" in page or 'stylesheet" href="http' in page for page in pages)


def test_an_unclean_election_that_cost_nothing_is_a_row_without_a_finding(
    session: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = [
        ev.PartitionDescribed((1, 2), 1, True, "delete", "3.9.1", None, "kraft"),
        ev.LeadershipRecorded(1, 0, (1,), 0, "initial", (1, 2)),
        ev.LeadershipRecorded(2, 1, (2,), 1, "unclean"),
        ev.InputEnded(),
    ]
    events = [
        ev.Event(str(n), "trace", "cluster", "t", "", 0, n, fact) for n, fact in enumerate(facts)
    ]
    write_events(folder / "in" / "unclean.jsonl", events)
    run_replay(session, folder, "tables", keep_events=True)
    chosen = [s for s in SUITES if s.table == "isr_and_leadership"]
    assert check_quality.check(session, arguments(folder / "tables", "--run", "x"), chosen) == 0
    assert "no_unclean_election: 1 row" in capsys.readouterr().out


def test_a_look_at_every_micro_batch_sees_the_loss_when_it_comes(
    session: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = made_trace()
    write_events(folder / "in" / "0.jsonl", events[:20])
    run_stream(session, folder)
    monkeypatch.setattr(check_quality, "POLL_SECONDS", 0.2)
    chosen = [s for s in SUITES if s.table == "verdicts"]
    flags = arguments(folder / "tables", "--every", "1", "--run", "live")
    store, stop = Store(session, folder / "tables"), Stop()

    def looks() -> set[str]:
        return {row["run"] for row in store.newest(RESULTS).select("run").collect()}

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(check_quality.follow, session, flags, chosen, stop)
        waited_for(lambda: looks() == {"live first/0"}, following)
        write_events(folder / "in" / "1.jsonl", events[20:])
        run_stream(session, folder)
        waited_for(lambda: looks() == {"live first/0", "live first/1"}, following)
        stop.asked = True
        assert following.result(60) == 1
    failed = (
        store.newest(RESULTS)
        .filter("outcome = 'failed' AND expectation = 'no_committed_loss'")
        .collect()
    )
    assert {row["run"] for row in failed} == {"live first/1"}
