"""The last line of the checks adds up all verdicts; an owner may have what is UNKNOWN fail, or what
is assumed."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs import check_quality
from replication import progress
from replication.evidence.event_dumps import write_events
from replication.evidence.importer import import_evidence
from replication.paths import project_root
from replication.progress import LOG_FORMAT
from replication.protocol.judgement.bounded import fold_all
from replication.protocol.judgement.defects import undecided
from replication.quality import suites
from replication.quality.suites import DECIDED, NOTHING_ASSUMED
from replication.quality.verdict_sums import NAMES, sums_of
from replication.spark import views
from tests.quality.conftest import EXPECTED, INCIDENTS, events_of
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import run_replay
from tests.spark.questions import questions

SHIPPED = project_root() / "conf" / "expectations"
DDL = (
    "topic_partition_id string, invariant string, verdict string, not_supplied boolean, "
    "reason string, run string, assuming array<string>"
)


@pytest.mark.parametrize(
    ("flag", "name"), [("--fail-on-unknown", DECIDED), ("--fail-on-assumed", NOTHING_ASSUMED)]
)
def test_what_an_owner_chooses_to_fail_is_asked_whichever_suite_is_chosen(
    flag: str, name: str
) -> None:
    chosen = check_quality.parser().parse_args(["--tables", "t", flag]).fail_on

    def severities(*only: str, chosen: list[str]) -> list[str]:
        found = suites.load(SHIPPED, only, None, chosen)
        return [e.severity for s in found for e in s.expectations if e.name == name]

    assert check_quality.parser().parse_args(["--tables", "t"]).fail_on == []
    assert severities(chosen=[]) == ["info"]
    assert severities("findings", chosen=[]) == []
    assert severities(chosen=chosen) == ["critical"]
    assert severities("findings", chosen=chosen) == ["critical"]
    others = {(s.table, e.name): e for s in suites.load(SHIPPED) for e in s.expectations}
    for suite in suites.load(SHIPPED, (), None, chosen):
        for each in suite.expectations:
            assert each.name == name or each == others[suite.table, each.name]


@pytest.mark.spark
def test_the_sum_counts_every_invariant_of_every_partition_once(session: SparkSession) -> None:
    def rows(partition: int, word: str, **changes: Any) -> list[tuple[Any, ...]]:
        row = {"not_supplied": False, "reason": None, "run": "r", "assuming": []} | changes
        return [(f"c/t/i/{partition}", n, word, *row.values()) for n in NAMES]

    state = next(iter(fold_all(events_of("unclean_election__4.1.1")))).state
    [reason] = {v["reason"] for v in undecided(state, "x").verdicts}
    told = [
        *rows(0, "HOLDS", assuming=["b"])[:2], *rows(0, "HOLDS", assuming=None)[2:],
        rows(0, "HOLDS", run="again", assuming=["b"])[0],  # A row that is there twice.
        *rows(1, "VIOLATED", assuming=["c"])[:3], *rows(1, "UNKNOWN")[3:5],
        *rows(1, "UNKNOWN", not_supplied=True)[5:9],  # Two have no row.
        *rows(2, "UNKNOWN", reason=reason),
    ]  # fmt: skip
    states = session.createDataFrame(
        [(f"c/t/i/{n}",) for n in (0, 1, 3)], "topic_partition_id string"
    )
    sums = sums_of(session.createDataFrame(told, DDL), states)
    assert sums.figures() == {
        "partitions": 4, "invariants": 11, "HOLDS": 11, "VIOLATED": 3, "UNKNOWN": 6,
        "not_judged": 2 + 11 + 11, "not_supplied": 4, "holds_assuming": 2, "assuming": ["b"],
    }  # fmt: skip
    assert list(sums.granted(f"'{NAMES[1]}', '{NAMES[2]}'")) == [
        f"{NAMES[1]} HOLDS for 1 of 4 topic partitions taking b for granted"
    ]
    assert list(sums.left_open(NAMES[4])) == [
        f"{NAMES[4]} is UNKNOWN for 1 of 4 topic partitions",
        f"{NAMES[4]} has no verdict for 2 of 4 topic partitions",
    ]
    assert str(sums) == (
        "verdicts: 11 invariants of 4 topic partitions = 11 HOLDS (2 of them taking b for "
        "granted) + 3 VIOLATED + 6 UNKNOWN + 24 without a verdict; 4 of the UNKNOWN for want of a "
        "kind of evidence that was never handed over; why some have no verdict: the table "
        "quarantine, or what failed above"
    )


@pytest.mark.spark
def test_the_last_line_is_the_sum_of_what_the_laptop_answers(
    session: SparkSession, all_incidents: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv(LOG_FORMAT, "json")
    flags = check_quality.parser().parse_args(["--tables", str(all_incidents)])
    check_quality.check(session, flags, suites.load(SHIPPED, ("divergences",)))
    said, log = capsys.readouterr()
    folded = [f for incident in EXPECTED for f in fold_all(events_of(incident))]
    words = [v["verdict"] for f in folded for v in f.answer.verdicts]
    counts = {word: words.count(word) for word in ("HOLDS", "VIOLATED", "UNKNOWN")}
    assert all(counts.values())
    assert len(words) == len(folded) * len(NAMES)
    last = said.splitlines()[-1]
    holding = [v["assuming"] for f in folded for v in f.answer.verdicts if v["verdict"] == "HOLDS"]
    [assumed] = [each for each in holding if each]
    assert last.startswith(
        f"verdicts: 11 invariants of {len(folded)} topic partitions = {counts['HOLDS']} HOLDS (1 "
        f"of them taking {assumed[0]} for granted) + {counts['VIOLATED']} VIOLATED + "
        f"{counts['UNKNOWN']} UNKNOWN + 0 without a verdict; "
    )
    figures = json.loads(log.splitlines()[-1])["verdicts"]
    assert {word: figures[word] for word in counts} == counts


@pytest.mark.spark
def test_who_collects_logs_gets_each_line_and_each_failure_as_an_object(
    session: SparkSession, all_incidents: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv(LOG_FORMAT, "json")
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.01)
    flags = check_quality.parser().parse_args(["--tables", str(all_incidents)])
    chosen = suites.load(SHIPPED, ("verdicts",))
    assert check_quality.check(session, flags, chosen) == 1
    said, log = capsys.readouterr()
    lines = [json.loads(line) for line in log.splitlines()]
    assert any(line["message"].startswith("... ") for line in lines)
    told = {line["expectation"]["name"]: line for line in lines if "expectation" in line}
    loss = told["no_committed_loss"]
    assert (loss["level"], loss["expectation"]["outcome"]) == ("error", "failed")
    assert loss["message"].removeprefix("check_quality.py: ") in said
    assert all(f"finding {each}" in said for each in loss["expectation"]["findings"][:1])
    assert loss["expectation"]["first_rows"][0] in said
    passed = told["no_consumed_loss"]
    assert (passed["level"], passed["expectation"]["outcome"]) == ("info", "passed")
    counted = lines[-1]["expectations"]
    assert counted["not_judged"] == 0
    assert f"{counted['passed']} of {sum(counted.values())} expectations passed" in said


@pytest.mark.spark
def test_unknown_about_promised_records_fails_only_where_its_owner_wants_it(
    session: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gap = made_trace(1)
    write_events(folder / "in" / "a.jsonl", [*gap[:10], *gap[11:]])
    run_replay(session, folder, "tables", keep_events=True)

    def checked(*more: str) -> tuple[int, str]:
        asked = ["--tables", str(folder / "tables"), "--suite", "verdicts", *more]
        flags = check_quality.parser().parse_args(asked)
        chosen = suites.load(SHIPPED, tuple(flags.suite), None, flags.fail_on)
        return check_quality.check(session, flags, chosen), capsys.readouterr().out

    status, said = checked()
    assert (status, f"FAILED  info  verdicts.{DECIDED}: 2 rows" in said) == (0, True), said
    status, said = checked("--fail-on-unknown")
    assert (status, f"FAILED  critical  verdicts.{DECIDED}: 2 rows" in said) == (1, True)
    assert "committed_records_survive: trace_gap" in said
    assert "replication-analyzer collect PATH" in said


@pytest.mark.spark
def test_what_is_taken_for_granted_is_told_and_fails_where_its_owner_wants_it(
    session: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of a cluster's evidence is missing, and yet nothing is violated or undecided."""
    evidence = folder / "evidence"
    shutil.copytree(INCIDENTS / "kip101_scenario_1__1.1.1__control", evidence)
    shutil.rmtree(evidence / "broker-2")
    write_events(folder / "in" / "a.jsonl", list(import_evidence([evidence]).events()))
    run_replay(session, folder, "tables", keep_events=True)
    docs = folder / "docs"

    def checked(*more: str) -> tuple[int, str]:
        asked = ["--tables", str(folder / "tables"), "--suite", "verdicts", *more]
        flags = check_quality.parser().parse_args(asked)
        chosen = suites.load(SHIPPED, tuple(flags.suite), None, flags.fail_on)
        return check_quality.check(session, flags, chosen), capsys.readouterr().out

    status, said = checked("--fail-on-unknown", "--data-docs", str(docs))
    assert status == 0, said
    assert f"FAILED  info  verdicts.{NOTHING_ASSUMED}: 2 rows" in said
    last = said.splitlines()[-1]
    assert re.search(r" HOLDS \(\d of them taking disks_keep(, \w+)* for granted\) \+ ", last), last
    open_here = "consumed_records_survive is UNKNOWN for 1 of 1 topic partition"
    assert f"PASSED  critical  verdicts.no_consumed_loss: no row fails; {open_here}\n" in said
    [page] = list(docs.rglob("validations/verdicts/**/*.html"))
    text = " ".join(re.sub("<[^>]*>", " ", page.read_text()).split())
    told = "committed_records_survive HOLDS for 1 of 1 topic partition taking disks_keep"
    for name in ("no_committed_loss", DECIDED):
        about = text.partition(f" {name}: ")[2]
        assert told in about.partition("Severity: ")[2].partition("Severity: ")[0], about[:900]
    assert open_here in text

    status, said = checked("--fail-on-assumed")
    assert (status, f"FAILED  critical  verdicts.{NOTHING_ASSUMED}: 2 rows" in said) == (1, True)
    assert "committed_records_survive HOLDS taking disks_keep" in said
    views.opened(session, folder / "tables").register()
    (sql,) = [sql for question, sql in questions() if question.startswith("Which verdicts take")]
    assert {row["invariant"] for row in session.sql(sql).collect()} >= {
        "committed_records_survive", "acknowledged_records_survive",
    }  # fmt: skip
