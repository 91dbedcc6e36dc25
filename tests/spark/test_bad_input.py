"""Bad input: each misfit ends in quarantine with where and why, and the counts add up."""

import gzip
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event, HighWatermarkAdvanced, Source
from replication.spark import refused_rows, settings
from replication.spark.ending import Stop
from replication.spark.event_files import SourceError
from replication.spark.failures import exit_status
from replication.spark.progress import Progress
from replication.spark.stream import StreamJob, main
from tests.spark.event_rows import identified, made_trace, other_content
from tests.spark.jobs_in_process import answers, rows, run_replay, run_stream

pytestmark = pytest.mark.spark
GOOD = made_trace(0)


def line(**changes: Any) -> str:
    """The first event as a line with some columns changed; None takes a column out."""
    row = {**wire.to_row(GOOD[8]), **changes}
    return wire.json.dumps({k: v for k, v in row.items() if v is not None})


BAD_LINES: dict[str, tuple[bytes, str]] = {
    "truncated": (line()[:-20].encode(), "no JSON"),
    "unknown kind": (line(kind="replica_teleported").encode(), "unknown kind"),
    "negative offset": (line(fetch_offset=-1).encode(), "fetch_offset is out of range: -1"),
    "absurd offset": (line(fetch_offset=1 << 63).encode(), "fetch_offset is out of range"),
    "text for a number": (line(fetch_offset="7").encode(), "fetch_offset is no whole number"),
    "number for a text": (line(event_id=7).encode(), "event_id is no text: 7"),
    "fraction": (line(fetch_offset=7.5).encode(), "fetch_offset is no whole number"),
    "schema version": (line(format_version=2).encode(), "format_version 2 is not 1"),
    "foreign column": (line(acks="all").encode(), "column acks does not belong to"),
    "unknown column": (line(colour="red").encode(), "unknown column 'colour'"),
    "missing column": (line(leader=None).encode(), "fetch_requested needs leader"),
    "no sequence": (line(sequence=None).encode(), "sequence is missing"),
    "bad grade": (line(grade="hearsay").encode(), "grade 'hearsay'"),
    "two in a line": ((line() + line()).encode(), "no JSON"),
    "an array": (f"[{line()}]".encode(), "must be one JSON object"),
    "empty line": (b"", "an empty line"),
    "a NUL in it": (line().encode()[:40] + b"\0" + line().encode()[41:], "a NUL at byte 40"),
    "NULs behind it": (line().encode() + bytes(3), "no text: a NUL at byte"),
    "no utf-8": (line().encode()[:-2] + b'\xff"}', "no UTF-8"),
    "words": (b"INFO [Log partition=t-0] Truncating to 3", "no JSON"),
    "the same words": (b"INFO [Log partition=t-0] Truncating to 3", "no JSON"),
}


def test_each_bad_line_is_quarantined_with_its_line_and_reason(
    spark: SparkSession, folder: Path
) -> None:
    """One file, every second line bad; the good ones fold as if the others were not there."""
    good = [wire.to_json(event).encode() for event in GOOD]
    bad = [data for data, _ in BAD_LINES.values()]
    lines = [x for pair in zip(good, bad, strict=False) for x in pair] + good[len(bad) :]
    (folder / "in" / "mixed.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    said = run_stream(spark, folder)
    found = {r["origin_line"]: r for r in rows(spark, folder / "tables", "quarantine")}
    assert sorted(found) == [2 * n + 2 for n in range(len(bad))]
    for number, (name, (data, reason)) in enumerate(BAD_LINES.items()):
        row = found[2 * number + 2]
        assert reason in row["reason"], (name, row["reason"])
        assert row["raw"] == data.decode("utf-8", errors="replace").replace("\0", "\ufffd")
        assert row["origin"] == str(folder / "in" / "mixed.jsonl")
        with pytest.raises(wire.Misfit):
            wire.from_json(data.decode("utf-8", errors="replace").replace("\ufffd", "\x00"))
    assert (
        f"in all: {len(lines)} rows = {len(GOOD)} applied + 0 duplicates + {len(bad)} quarantined "
        "+ 0 held" in said
    )
    often = "quarantined (see table quarantine; 2 rows: no JSON: Expecting value: line 1 column 1 "
    assert often in said
    _, replayed = run_replay(spark, folder)
    assert answers(spark, folder / "replayed") == answers(spark, folder / "tables")
    assert rows(spark, folder / "replayed", "quarantine")[0]["reason"]
    assert f"+ {len(bad)} quarantined + 0 held" in replayed
    assert often in replayed


def a_parquet_file(path: Path) -> int:
    table = pa.table({"format_version": pa.array([1, 1], pa.int32()), "kind": ["a", "b"]})
    pq.write_table(table, path)
    return 2


def junk(path: Path) -> int:
    path.write_bytes(b"\x7fELF\x00\x01\n\x02\x00\n\xfe")
    return 3


def cut_gzip(path: Path) -> int:
    whole = gzip.compress("".join(wire.to_json(e) + "\n" for e in GOOD).encode())
    path.write_bytes(whole[:200])
    return -1


def a_broken_page(path: Path) -> int:
    write_events(path, made_trace(3)[:20])
    data = bytearray(path.read_bytes())
    data[4:400] = b"\xff" * 396
    path.write_bytes(bytes(data))
    return 20


WHOLE_FILES: list[tuple[str, Callable[[Path], int], str, str]] = [
    ("other.parquet", a_parquet_file, "foreign_schema", "format_version is int32, not bigint"),
    ("page.parquet", a_broken_page, "unreadable_file", "cannot be read"),
    ("core.dump", junk, "unreadable_file", "NUL bytes"),
    ("cut.jsonl.gz", cut_gzip, "unreadable_file", "broken gzip"),
]


def written_otherwise(events: list[Event]) -> list[str]:
    """Lines that are the same events in another form: one without its identity, some with nulls."""
    lines = [wire.to_json(event) for event in events]
    row = wire.json.loads(lines[4])
    del row["event_id"]
    lines[4] = wire.json.dumps(row)
    # What is null is absent, however it is spaced; a quote and a colon in a text change nothing.
    lines[5] = wire.json.dumps(wire.json.loads(lines[5]) | {"acks": None, "source_line": None})
    lines[6] = lines[6][:-1] + ',"error":null}'
    odd = replace(events[7], source=Source('a":b', 1))
    lines[7] = wire.to_json(odd)
    return lines


def test_unusable_files_are_quarantined_whole_and_the_job_goes_on(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a gzip file and a Parquet file of good events, which are read, in whatever form.

    A replay takes what the stream takes, whether it keeps the events or not.
    """
    monkeypatch.setattr(refused_rows, "TOLD_ONE_BY_ONE", 20)
    text = "".join(line + "\n" for line in written_otherwise(GOOD[:20])).encode()
    (folder / "in" / "a.jsonl.gz").write_bytes(gzip.compress(text))
    write_events(folder / "in" / "b.parquet", GOOD[20:])
    wanted = {}
    for name, make, code, reason in WHOLE_FILES:
        count = make(folder / "in" / name)
        wanted[str(folder / "in" / name)] = (code, reason, count)
    (folder / "in" / "server.log").write_text("[2026-01-01 00:00:00,000] INFO started\n" * 21)
    wanted[str(folder / "in" / "server.log")] = ("not_an_event", "21 lines that are no events", 21)
    said = run_stream(spark, folder)
    found = {r["origin"]: r for r in rows(spark, folder / "tables", "quarantine")}
    assert set(found) == set(wanted)
    for origin, (code, reason, count) in wanted.items():
        assert found[origin]["reason_code"] == code
        assert reason in found[origin]["reason"]
        assert found[origin]["rows"] == count or count < 0
    total = sum(r["rows"] for r in found.values())
    assert (
        f"in all: {len(GOOD) + total} rows = {len(GOOD)} applied + 0 duplicates + "
        f"{total} quarantined + 0 held" in said
    )
    stored = rows(spark, folder / "tables", "replica_events")
    assert {r["event_id"] for r in stored} == {e.event_id for e in GOOD}
    for kept in (False, True):
        tables = f"replayed-{kept}"
        run_replay(spark, folder, tables, keep_events=kept)
        assert answers(spark, folder / tables) == answers(spark, folder / "tables")
        replayed = rows(spark, folder / tables, "quarantine")
        assert [r | {"query": "ingest"} for r in replayed] == list(found.values())
        again = rows(spark, folder / tables, "replica_events")
        assert again == (stored if kept else [])


@pytest.fixture
def planned_anew(spark: SparkSession) -> Iterator[None]:
    """Spark plans anew between stages, as the jobs have it: what finds no row is left out."""
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    yield
    spark.conf.set("spark.sql.adaptive.enabled", "false")


@pytest.mark.usefixtures("planned_anew")
@pytest.mark.parametrize("junk", [[], ["junk", "{}"]])
def test_a_replay_takes_a_dump_of_which_no_row_has_an_event_id(
    spark: SparkSession, folder: Path, junk: list[str]
) -> None:
    nameless = [wire.to_row(event) | {"event_id": None} for event in GOOD]
    lines = [wire.json.dumps({k: v for k, v in r.items() if v is not None}) for r in nameless]
    (folder / "in" / "a.jsonl").write_text("".join(f"{line}\n" for line in [*junk, *lines]))
    _, said = run_replay(spark, folder)
    assert f"{len(GOOD)} applied + 0 duplicates + {len(junk)} quarantined" in said


@dataclass(frozen=True)
class Runs:
    """What two runs over one folder said, and what lay in quarantine after each, by event."""

    said: tuple[str, str]
    quarantined: tuple[dict[str, Any], dict[str, Any]]


CLASH = other_content(GOOD[-1])
GROWING = made_trace(2)


def unassigned(partition: int) -> Event:
    """An event behind those of made_trace, of a replica that is not assigned."""
    fact = HighWatermarkAdvanced(9, 1)
    return identified(Event("", "trace", "cluster", "t", "id", partition, len(GOOD), fact))


@pytest.fixture(scope="module")
def runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """A file that contradicts itself and one that still grows; then its rest, and two more."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "in").mkdir()

    def run() -> tuple[str, dict[str, Any]]:
        said = run_stream(spark, folder, settle_seconds="3600")
        return said, {r["event_id"]: r for r in rows(spark, folder / "tables", "quarantine")}

    # The stranger waits behind the slot that has two contents.
    write_events(folder / "in" / "a.jsonl", [*GOOD, CLASH, unassigned(0)])
    whole = "".join(wire.to_json(event) + "\n" for event in GROWING)
    cut = whole.index("\n", len(whole) // 2) + 30
    file = folder / "in" / "growing.jsonl"
    file.write_text(whole[:cut])
    first = run()
    write_events(folder / "in" / "b.jsonl", made_trace(1))
    write_events(folder / "in" / "c.jsonl", [unassigned(1)])
    with file.open("a") as grown:
        grown.write(whole[cut:])
    second = run()
    return Runs((first[0], second[0]), (first[1], second[1]))


def test_events_that_fit_nothing_are_refused_by_the_fold(runs: Runs) -> None:
    """An unassigned replica, and the same sequence with other content."""
    first, second = runs.quarantined
    assert set(first) == {GOOD[-1].event_id, CLASH.event_id}
    lost = unassigned(1)
    assert set(second) == {*first, lost.event_id}
    assert "replica 9 is not assigned" in second[lost.event_id]["reason"]
    assert second[lost.event_id]["origin"] == "replica_events"
    assert second[lost.event_id]["sequence"] == len(GOOD)


def test_a_growing_file_is_read_to_its_last_whole_line_and_the_rest_later(runs: Runs) -> None:
    first, second = runs.said
    assert "left for later, as it may still grow" in first
    assert " + 2 quarantined + 1 held" in first
    given = 3 * len(GOOD) + 3
    assert (
        f"in all: {given} rows = {given - 4} applied + 0 duplicates + 3 quarantined + 1 held"
        in second
    )


def test_an_empty_folder_is_said(spark: SparkSession, folder: Path) -> None:
    assert f"no event files in {folder / 'in'} yet" in run_stream(spark, folder)
    with pytest.raises(SourceError, match="no event files"):
        run_replay(spark, folder)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "/nowhere", "--tables", "t", "--checkpoint-dir", "c"], "does not exist"),
        (["--source", "kafka", "--tables", "t", "--checkpoint-dir", "c"], "--bootstrap-servers"),
        (["--source", ".", "--topic", "x", "--tables", "t", "--checkpoint-dir", "c"], "kafka only"),
        (["--source", ".", "--tables", "t", "--checkpoint-dir", "c", "--trigger", "x"], "trigger"),
        (["--source", ".", "--tables", "t", "--checkpoint-dir", "c", "--profile", "x"], "profile"),
    ],
)
def test_a_wrong_call_ends_with_2_and_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status(main, ["stream.py", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert re.fullmatch(f"stream.py: .*{message}.*", said), said


def test_a_stream_over_a_lost_source_says_so(spark: SparkSession, folder: Path) -> None:
    job = StreamJob(
        spark, folder / "t", folder / "c", settings.load({}), Progress(io.StringIO()), Stop()
    )
    with pytest.raises(SourceError, match="does not exist"):
        job.run(folder / "gone", None)
