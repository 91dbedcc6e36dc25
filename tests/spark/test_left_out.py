"""The last line of a job says how much went to quarantine, why, and the SQL that shows all."""

import io
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.spark import replay, session, views
from replication.spark.ending import Stop
from replication.spark.progress import Progress
from replication.spark.quarantine import told_at_the_end
from replication.spark.settings import load
from replication.spark.stream import StreamJob
from replication.spark.tables import Store
from tests.spark.event_rows import made_trace, other_content
from tests.spark.jobs_in_process import run_replay

pytestmark = pytest.mark.spark
TOLD = re.compile(
    r"(\d+) of (\d+) rows \(([\d.]+) %\) went to quarantine, and no answer rests on them; (\d+) of "
    r"them: (.+)\. NEXT  each reason, by SQL over the tables \(docs/tables.md\): (SELECT .+)"
)


def delivered(folder: Path, *junk: str) -> int:
    """A trace with two events at one place, and lines that are none; how many rows that is."""
    events = made_trace(0)
    write_events(folder / "in" / "a.jsonl", [*events, other_content(events[20])])
    with (folder / "in" / "a.jsonl").open("a") as dump:
        dump.writelines(f"{line}\n" for line in junk)
    return len(events) + 1 + len(junk)


def test_of_several_queries_one_is_told_by_its_own_entries(
    spark: SparkSession, folder: Path
) -> None:
    """Runs of two queries may have one name."""
    rows = delivered(folder, *["no event"] * 3)
    run_replay(spark, folder, "tables")
    store = Store(spark, folder / "tables")
    figures = {"rows_in": rows, "quarantined": 3}
    assert "; 3 of them" in told_at_the_end(store, {"fold": "first"}, figures)
    other = told_at_the_end(store, {"live": "first"}, figures)
    assert "3 of" in other
    assert "of them: " not in other
    assert told_at_the_end(store, {"fold": "first"}, {**figures, "quarantined": 0}) == ""


def asked(spark: SparkSession, tables: Path, line: str, rows: int) -> None:
    """The line is right, by its own SQL."""
    found = TOLD.search(line)
    assert found is not None, line
    views.opened(spark, tables).register()
    answer = spark.sql(found[6]).collect()
    refused = sum(row["rows"] for row in answer)
    assert (int(found[1]), int(found[2])) == (refused, rows)
    assert float(found[3]) == float(f"{100 * refused / rows:.2g}")
    assert int(found[4]) == answer[0]["rows"] == 3
    assert answer[0]["reason"] == found[5]


def test_a_stream_says_so_behind_everything_else(spark: SparkSession, folder: Path) -> None:
    rows = delivered(folder, *["no event"] * 3, '{"kind": "x"}')
    out = io.StringIO()

    def run() -> str:
        stream = StreamJob(
            spark, folder / "tables", folder / "checkpoint", load({}), Progress(out), Stop()
        )
        stream.run(folder / "in", None)
        return out.getvalue().splitlines()[-1]

    asked(spark, folder / "tables", run(), rows)
    asked(spark, folder / "tables", run(), rows)  # So it does when nothing new has come.


def test_where_nothing_is_an_event_a_stream_says_what_makes_events(
    spark: SparkSession, folder: Path
) -> None:
    """Its exit status is 3 then, until something is one."""
    (folder / "in" / "a.jsonl").write_text("Dumping t-0/00000000000000000000.log\n" * 3)
    for fits in (False, True):
        out = io.StringIO()
        stream = StreamJob(
            spark, folder / "tables", folder / "checkpoint", load({}), Progress(out), Stop()
        )
        stream.run(folder / "in", None)
        last = out.getvalue().splitlines()[-1]
        assert ("`replication-analyzer import PATH --out FOLDER`" in last) is not fits
        assert stream.nothing_fits is not fits
        write_events(folder / "in" / "b.jsonl", made_trace(0))


@pytest.mark.parametrize("junk", [0, 3])
def test_a_replay_says_so_beside_its_exit_status(
    spark: SparkSession, folder: Path, junk: int, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    if junk:
        rows = delivered(folder, *["no event"] * junk)
    else:
        write_events(folder / "in" / "a.jsonl", made_trace(0))
    monkeypatch.setattr(session, "start", lambda *_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    status = replay.main(["--source", str(folder / "in"), "--tables", str(folder / "tables")])
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"exit status {status}: ")
    if junk:
        asked(spark, folder / "tables", last, rows)
    else:
        assert "quarantine" not in last
