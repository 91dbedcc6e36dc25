"""The watcher of the tables outlives what it cannot read, and its metrics say since when."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs import check_quality
from jobs.check_quality import Due, Looks
from replication.paths import project_root
from replication.quality import suites
from replication.quality.command import Every
from replication.spark import session as sessions
from replication.spark.cut import BATCHES
from replication.spark.ending import Stop
from replication.spark.tables import Store, TablesError
from tests.spark.jobs_in_process import waited_for

CHOSEN = suites.load(project_root() / "conf" / "expectations", ("findings",))


def test_where_no_time_is_told_a_look_that_failed_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing may be written any more: the stream has ended over the same table."""
    now = 100.0
    monkeypatch.setattr("jobs.check_quality.time.monotonic", lambda: now)
    due = Due(Every(3))
    due.failed()
    store = Store(None, tmp_path)  # type: ignore[arg-type]
    looked = []
    for now in (101.0, 159.0, 160.0):
        if due.now(store):
            looked.append(now)
    assert looked == [160.0]


def test_each_look_has_its_number_and_time_and_what_stays_is_told_in_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    looks = Looks()
    for number, text in ((1, "a\nb"), (2, "a\nb"), (4, "a\nb"), (5, "c"), (6, "a\nb")):
        looks.number = number
        looks.say(text)
    said = re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", capsys.readouterr().out)
    assert said == (
        "look 1 at TIME\na\nb\nlook 2 at TIME: nothing has changed since look 1\n"
        "look 4 at TIME: nothing has changed since look 2\nlook 5 at TIME\nc\n"
        "look 6 at TIME\na\nb\n"
    )


@pytest.mark.spark
@pytest.mark.parametrize("every", ["1s", "1"])
@pytest.mark.parametrize("table", ["verdicts", BATCHES])
def test_a_dropped_table_does_not_end_the_watcher(
    session: SparkSession, healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    table: str, every: str, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    tables, file = tmp_path / "tables", tmp_path / "quality.prom"
    shutil.copytree(healthy, tables)
    monkeypatch.setattr(check_quality, "POLL_SECONDS", 0.2)
    monkeypatch.setattr(check_quality, "RETRY_SECONDS", 0.5)
    asked = ["--tables", str(tables), "--every", every, "--metrics", str(file)]
    flags, stop = check_quality.parser().parse_args(asked), Stop()

    def told(name: str) -> float:
        text = file.read_text() if file.exists() else ""
        found = re.search(rf"^replication_quality_{name}{{.*}} (\S+)", text, re.M)
        return float(found[1]) if found else 0.0

    def checks() -> set[str]:
        return set(re.findall(r"^replication_expectation_failed.*", file.read_text(), re.M))

    said: list[str] = []

    def is_told_in_vain() -> bool:
        told = capsys.readouterr()
        said.append(told.out)
        return "it looks again every" in told.err

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(check_quality.follow, session, flags, CHOSEN, stop)
        waited_for(lambda: told("checked_timestamp_seconds") > 0, following)
        shutil.move(tables / table, tmp_path / "kept")
        waited_for(lambda: told("look_failed") == 1, following)
        last, failed = told("checked_timestamp_seconds"), checks()
        assert failed
        waited_for(is_told_in_vain, following)
        assert (told("checked_timestamp_seconds"), checks()) == (last, failed)
        shutil.move(tmp_path / "kept", tables / table)
        waited_for(lambda: told("look_failed") == 0, following)
        assert told("checked_timestamp_seconds") > last
        stop.asked = True
        assert following.result(60) == 2
    told = "".join(said) + capsys.readouterr().out
    numbers = [int(n) for n in re.findall(r"^look (\d+) at 20", told, re.M)]
    assert numbers[0] == 1
    assert len(numbers) > 1
    assert told.count("verdicts: 11 invariants") == 1, "nothing has changed after the first look"


@pytest.mark.spark
def test_what_cannot_be_read_from_the_start_ends_the_watcher(
    session: SparkSession, tmp_path: Path
) -> None:
    """A misspelt --tables is told by the status, at once."""
    file = tmp_path / "quality.prom"
    asked = ["--tables", str(tmp_path / "nowhere"), "--metrics", str(file)]
    flags = check_quality.parser().parse_args([*asked, "--every", "1s"])
    with pytest.raises(TablesError, match="is no folder"):
        check_quality.follow(session, flags, CHOSEN, Stop())
    assert 'nowhere"} 1.0' in file.read_text()
    file.unlink()
    with pytest.raises(TablesError, match="is no folder"):
        check_quality.check(session, check_quality.parser().parse_args(asked), CHOSEN)
    assert 'look_failed{tables="' in file.read_text()
    assert 'nowhere"} 1.0' in file.read_text()
    assert sessions.is_alive(session)
