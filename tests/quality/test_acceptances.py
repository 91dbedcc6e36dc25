"""A finding that somebody has handled fails nothing until its day, and is told all the same."""

import re
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs import check_quality
from replication.evidence.event_dumps import write_events
from replication.paths import project_root
from replication.quality import acceptances, suites
from replication.quality.suites import SuiteError
from tests.quality.conftest import events_of
from tests.spark.jobs_in_process import run_replay

ENTRY = """
[[accepted]]
finding = "13ff94368ca89895"
until = 2026-12-31
reason = "given back by recover"
who = "Ann"
"""


def test_an_entry_is_in_force_up_to_its_day(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(ENTRY)
    (entry,) = acceptances.load(tmp_path / "a.toml")
    day = date(2026, 12, 31)
    assert acceptances.in_force([entry], day) == {entry.finding: entry}
    assert acceptances.in_force([entry], day + timedelta(days=1)) == {}
    assert acceptances.load(None) == []


def test_what_became_of_an_entry_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(ENTRY)
    entries = acceptances.load(tmp_path / "a.toml")

    def said(accepted: set[str], failing: set[str]) -> str:
        return next(acceptances.words(entries, accepted, failing))

    finding = entries[0].finding
    told = f"finding {finding} until 2026-12-31, by Ann: given back by recover"
    assert said({finding}, set()) == f"ACCEPTED  {told}"
    assert said(set(), {finding}) == f"ACCEPTED NO LONGER  {told}"
    assert said({"other"}, {"another"}).startswith(f"ACCEPTED IN VAIN  {told} - no row")
    assert list(acceptances.words(entries, {"other"}, {"another"}, all_asked=False)) == []


def test_a_file_that_is_mounted_before_anything_is_accepted_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("accepted = []")
    assert acceptances.load(tmp_path / "a.toml") == []


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("[[accepted]]", "[[acepted]]", r"unknown key acepted \(did you mean accepted\?\)"),
        ("[[accepted]]", "", "unknown key finding"),
        (ENTRY, "accepted = 3", r"has no \[\[accepted\]\]"),
        (ENTRY, "", r"has no \[\[accepted\]\]"),
        ("until", "untill", r"number 1: has an unknown key untill \(did you mean until\?\)"),
        ('who = "Ann"', "", "number 1: lacks who"),
        ('"Ann"', '" "', "who is a text in quotes, not ' '"),
        ("2026-12-31", '"2026-12-31"', "until is a day without quotes"),
        ("2026-12-31", "2026-12-31T08:00:00Z", "until is a day without quotes"),
        ("2026-12-31", "2026-13-31", "line 4, column 13.*until = 2026-13-31"),
        (ENTRY, ENTRY + ENTRY, "is accepted twice"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(
    tmp_path: Path, before: str, after: str, says: str
) -> None:
    assert before in ENTRY
    (tmp_path / "a.toml").write_text(ENTRY.replace(before, after))
    with pytest.raises(SuiteError, match=f"a.toml.*{says}"):
        acceptances.load(tmp_path / "a.toml")


@pytest.mark.spark
def test_an_accepted_loss_fails_nothing_until_its_day(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    write_events(tmp_path / "in" / "e.jsonl", events_of("unclean_election__4.1.1"))
    run_replay(session, tmp_path, "tables")
    shipped = project_root() / "conf" / "expectations"
    own = tmp_path / "own"
    own.mkdir()
    (own / "loss_ledger.toml").write_text(OWN)
    chosen = suites.load(shipped, ("verdicts", "loss_ledger"), own)

    docs = tmp_path / "docs"

    def checked(until: date, finding: str = "13ff94368ca89895") -> tuple[int, str]:
        file = tmp_path / "accepted.toml"
        file.write_text(
            ENTRY.replace("2026-12-31", str(until)).replace("13ff94368ca89895", finding)
        )
        asked = ["--tables", str(tmp_path / "tables"), "--accepted", str(file)]
        asked += ["--data-docs", str(docs)]
        flags = check_quality.parser().parse_args(asked)
        return check_quality.check(session, flags, chosen), capsys.readouterr().out

    today = datetime.now(UTC).date()
    status, said = checked(today + timedelta(days=1))
    assert (status, "FAILED" in said) == (0, False), said
    assert "ACCEPTED  finding 13ff94368ca89895 until" in said
    assert "; allowed exceptions: " in said
    assert "ALLOWED  " not in said
    until = today + timedelta(days=1)
    entry = f"finding 13ff94368ca89895 until {until}, by Ann: given back by recover"
    for suite, name in (("verdicts", "no_committed_loss"), ("loss_ledger", "by_query")):
        (page,) = (docs / "validations" / suite).rglob("*.html")
        (told,) = re.findall(rf"<span >\s*{name}: .*?</span>.*?</table>", page.read_text(), re.S)
        assert f"Read with it: 1 row would fail if nobody had accepted {entry}" in told
        assert ">no row fails but what is accepted<" in told
        index = (docs / "index.html").read_text()
        assert f"{suite}: passed but for what is accepted, run" in index
        assert f"<p>ACCEPTED  {entry}</p>" in index
        assert "<p>1 topic, 1 partition: 10 records lost, 0 records recoverable, 0 records" in index
    shutil.rmtree(docs)
    status, said = checked(today - timedelta(days=1))
    assert status == 1
    assert {f"loss_ledger.{kind}" in said for kind in ("by_query", "by_limit", "by_share")} == {
        True
    }
    assert "ACCEPTED NO LONGER  finding 13ff94368ca89895" in said
    status, said = checked(today, "13ff94368ca89896")
    assert status == 1
    assert "ACCEPTED IN VAIN  finding 13ff94368ca89896" in said


OWN = "".join(
    f"""
[[expectation]]
name = "by_{kind}"
family = "health"
severity = "critical"
meaning = "m"
kind = "{kind}"
sql = "SELECT topic_partition_id, finding_id, {more} FROM {{batch}}"
{limit}
"""
    for kind, more, limit in (
        ("query", "first_offset", ""),
        ("limit", "CAST(records AS DOUBLE) AS observed", "at_most = 0"),
        ("share", "true AS broken", "at_most = 0.5"),
    )
).replace("\n[[", 'about = "x"\n[[', 1)
