"""The last line of the checks adds up all verdicts; an owner may have what is UNKNOWN fail."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs import check_quality
from replication.evidence.event_dumps import write_events
from replication.paths import project_root
from replication.progress import LOG_FORMAT
from replication.protocol.judgement.bounded import fold_all
from replication.protocol.judgement.defects import undecided
from replication.quality import suites
from replication.quality.suites import DECIDED
from replication.quality.verdict_sums import NAMES, sums_of
from tests.quality.conftest import EXPECTED, events_of
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import run_replay

SHIPPED = project_root() / "conf" / "expectations"
DDL = (
    "topic_partition_id string, invariant string, verdict string, not_supplied boolean, "
    "reason string, run string"
)


def test_what_an_owner_chooses_to_fail_is_asked_whichever_suite_is_chosen() -> None:
    def severities(*only: str, chosen: bool) -> list[str]:
        found = suites.load(SHIPPED, only, None, chosen)
        return [e.severity for s in found for e in s.expectations if e.name == DECIDED]

    assert severities(chosen=False) == ["info"]
    assert severities("findings", chosen=False) == []
    assert severities(chosen=True) == ["critical"]
    assert severities("findings", chosen=True) == ["critical"]
    others = {(s.table, e.name): e for s in suites.load(SHIPPED) for e in s.expectations}
    for suite in suites.load(SHIPPED, (), None, True):
        for each in suite.expectations:
            assert each.name == DECIDED or each == others[suite.table, each.name]


@pytest.mark.spark
def test_the_sum_counts_every_invariant_of_every_partition_once(session: SparkSession) -> None:
    def rows(partition: int, word: str, **changes: Any) -> list[tuple[Any, ...]]:
        row = {"not_supplied": False, "reason": None, "run": "r"} | changes
        where = f"c/t/i/{partition}"
        return [(where, n, word, row["not_supplied"], row["reason"], row["run"]) for n in NAMES]

    state = next(iter(fold_all(events_of("unclean_election__4.1.1")))).state
    [reason] = {v["reason"] for v in undecided(state, "x").verdicts}
    told = [
        *rows(0, "HOLDS"), rows(0, "HOLDS", run="again")[0],  # A row that is there twice.
        *rows(1, "VIOLATED")[:3], *rows(1, "UNKNOWN")[3:5],
        *rows(1, "UNKNOWN", not_supplied=True)[5:9],  # Two have no row.
        *rows(2, "UNKNOWN", reason=reason),
    ]  # fmt: skip
    states = session.createDataFrame(
        [(f"c/t/i/{n}",) for n in (0, 1, 3)], "topic_partition_id string"
    )
    sums = sums_of(session.createDataFrame(told, DDL), states)
    assert sums.figures() == {
        "partitions": 4, "invariants": 11, "HOLDS": 11, "VIOLATED": 3, "UNKNOWN": 6,
        "not_judged": 2 + 11 + 11, "not_supplied": 4,
    }  # fmt: skip
    assert str(sums) == (
        "verdicts: 11 invariants of 4 topic partitions = 11 HOLDS + 3 VIOLATED + 6 UNKNOWN + "
        "24 not judged; 4 of the UNKNOWN for want of a kind of evidence that was never handed "
        "over; why some were not judged: the table quarantine, or what failed above"
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
    assert last.startswith(
        f"verdicts: 11 invariants of {len(folded)} topic partitions = {counts['HOLDS']} HOLDS + "
        f"{counts['VIOLATED']} VIOLATED + {counts['UNKNOWN']} UNKNOWN + 0 not judged; "
    )
    figures = json.loads(log.splitlines()[-1])["verdicts"]
    assert {word: figures[word] for word in counts} == counts


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
        chosen = suites.load(SHIPPED, tuple(flags.suite), None, flags.fail_on_unknown)
        return check_quality.check(session, flags, chosen), capsys.readouterr().out

    status, said = checked()
    assert (status, f"FAILED  info  verdicts.{DECIDED}: 2 rows" in said) == (0, True), said
    status, said = checked("--fail-on-unknown")
    assert (status, f"FAILED  critical  verdicts.{DECIDED}: 2 rows" in said) == (1, True)
    assert "committed_records_survive: trace_gap" in said
    assert "replication-analyzer collect PATH" in said
