"""Which parts of which files are read: by content, whole lines, each byte once."""

import gzip
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replication.spark.event_files import (
    GZIPPED,
    LINES,
    PARQUET,
    PRUNED,
    REFUSED,
    Admission,
    SourceError,
    event_files,
    lines_of,
    next_slice,
    number_of,
)
from replication.spark.maintain import _write_joined


def test_whole_lines_of_a_growing_file_are_taken_and_the_rest_later(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    file = source / "a.jsonl"
    file.write_bytes(b'{"a":1}\n{"b":')
    admission = Admission(source, tmp_path / "notes", settle_seconds=60)
    assert admission.admit() == 1
    assert admission.admit() == 0
    assert admission.waiting() == [f"{file}: 5 bytes after its last whole line"]
    with file.open("ab") as grown:
        grown.write(b'2}\n{"c":3}\n')
    again = Admission(source, tmp_path / "notes", settle_seconds=60)
    assert again.admit() == 1
    assert again.waiting() == []
    notes = sorted((tmp_path / "notes").glob("*.json"))
    assert len(notes) == 2
    assert list(lines_of(str(file), 8, file.stat().st_size)) == [b'{"b":2}', b'{"c":3}']


def test_an_unfinished_last_line_is_taken_once_the_file_stands_still(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"a":1}\n{"b":')
    assert next_slice(file, 8, settled=False) is None
    part = next_slice(file, 8, settled=True)
    assert part is not None
    assert (part.first_byte, part.end_byte) == (8, 13)


def test_a_last_line_longer_than_a_probe_is_found(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"x\n" + b"y" * 200_000)
    part = next_slice(file, 0, settled=False)
    assert part is not None
    assert part.end_byte == 2


def test_files_are_known_by_content_not_by_name(tmp_path: Path) -> None:
    packed = tmp_path / "no-ending"
    packed.write_bytes(gzip.compress(b"{}\n{}\n"))
    part = next_slice(packed, 0, settled=False)
    assert part is not None
    assert part.format == GZIPPED
    assert list(lines_of(str(packed), 0, part.end_byte)) == [b"{}", b"{}"]
    text = tmp_path / "text.parquet"
    text.write_bytes(b"{}\n")
    part = next_slice(text, 0, settled=False)
    assert part is not None
    assert part.format == LINES


def test_a_broken_gzip_file_waits_and_then_is_refused_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress(os.urandom(5_000))[:-900])
    assert next_slice(file, 0, settled=False) is None
    part = next_slice(file, 0, settled=True)
    assert part is not None
    assert part.format == REFUSED
    assert "broken gzip" in part.reason
    assert part.rows >= 1


def test_binary_junk_is_refused_whole_with_its_lines_counted(tmp_path: Path) -> None:
    file = tmp_path / "junk"
    file.write_bytes(b"\x00\x01\n\x02\n\xff")
    part = next_slice(file, 0, settled=False)
    assert part is not None
    assert (part.format, part.rows) == (REFUSED, 3)


def test_a_nul_costs_its_own_line_where_other_lines_may_be_events(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    for text in (
        b'{"a": 1}\n{"b": \x00}\n', b'\x00\x00\n{"a": 1}\n', b'{"a": 1}\n' + bytes(4_096)
    ):  # fmt: skip
        file.write_bytes(text)
        part = next_slice(file, 0, settled=True)
        assert part is not None
        assert (part.format, part.end_byte) == (LINES, len(text))
    file.write_bytes('{"a": 1}\n{"a": 2}\n'.encode("utf-16-le"))
    part = next_slice(file, 0, settled=True)
    assert part is not None
    assert part.format == REFUSED


def parquet(path: Path, **columns: pa.Array) -> Path:
    base = {
        "format_version": pa.array([1], pa.int64()),
        "event_id": pa.array(["e"]),
        "trace_id": pa.array(["t"]),
        "topic": pa.array(["t"]),
        "partition": pa.array([0], pa.int64()),
        "sequence": pa.array([0], pa.int64()),
        "kind": pa.array(["input_ended"]),
    }
    pq.write_table(pa.table({**base, **columns}), path)
    return path


def test_a_parquet_file_of_the_contract_is_taken(tmp_path: Path) -> None:
    spans = pa.array([None], pa.list_(pa.struct([("first_offset", pa.int64())])))
    part = next_slice(parquet(tmp_path / "a", spans=spans), 0, settled=False)
    assert part is not None
    assert part.format == PARQUET


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"partition": pa.array([0], pa.int32())}, "column partition is int32, not bigint"),
        ({"colour": pa.array(["red"])}, "column colour is none of the event contract"),
        ({"isr": pa.array([[1]], pa.list_(pa.int32()))}, "column isr is list<"),
    ],
)
def test_a_parquet_file_of_another_schema_is_refused_whole(
    tmp_path: Path, columns: dict[str, pa.Array], reason: str
) -> None:
    part = next_slice(parquet(tmp_path / "a", **columns), 0, settled=False)
    assert part is not None
    assert (part.format, part.reason_code, part.rows) == (REFUSED, "foreign_schema", 1)
    assert part.reason.startswith(reason)


def test_a_cut_parquet_file_waits_and_then_is_refused(tmp_path: Path) -> None:
    whole = parquet(tmp_path / "a").read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(whole[:-20])
    assert next_slice(cut, 0, settled=False) is None
    part = next_slice(cut, 0, settled=True)
    assert part is not None
    assert part.reason_code == "unreadable_file"


def test_a_missing_folder_and_a_file_are_no_source(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        event_files(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="is a file"):
        event_files(tmp_path / "file")


def test_a_note_that_is_being_written_is_none_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's file source passes over names that begin with . or _, and takes all others."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text("{}\n")
    admission = Admission(tmp_path / "in", tmp_path / "notes", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", lambda one, other: None)
        admission.admit()
    (unfinished,) = (tmp_path / "notes").iterdir()
    assert unfinished.name.startswith(".")


def test_hidden_and_unfinished_names_are_left_alone(tmp_path: Path) -> None:
    for name in (".hidden", "_log", "a.jsonl.tmp", "b.partial"):
        (tmp_path / name).write_text("{}\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.jsonl").write_text("{}\n")
    assert [p.name for p in event_files(tmp_path)] == ["a.jsonl"]


def test_a_file_that_was_cut_or_rewritten_is_read_anew_and_said(tmp_path: Path) -> None:
    """Also by a later process, and where the new content is longer; a touched file is not."""
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "a.jsonl"
    whole = b"".join(b'{"n":%d}\n' % n for n in range(2_000))
    for number, (changed, words) in enumerate((
        (whole[: len(whole) // 2], "cut to"),
        (b'{"n":9}\n' + whole[8:] + b'{"n":1}\n', "rewritten"),
        (whole[:-8] + b'{"x":7}\n' + b'{"n":1}\n', "rewritten"),
    )):  # fmt: skip
        said: list[str] = []
        notes = tmp_path / f"notes {number}"
        file.write_bytes(whole)
        assert Admission(tmp_path / "in", notes, 0, said.append).admit() == 1
        os.utime(file, (1, 1))
        assert Admission(tmp_path / "in", notes, 0, said.append).admit() == 0
        file.write_bytes(changed)
        admission = Admission(tmp_path / "in", notes, 0, said.append)
        assert admission.admit() == 1
        assert admission.admit() == 0
        assert [words in text for text in said] == [True]
        newest = json.loads(max(notes.glob("*.json")).read_text())
        assert (newest["first_byte"], newest["end_byte"]) == (0, len(changed))


WHOLE = gzip.compress(b"".join(b'{"n":%d}\n' % (n * n * 7919) for n in range(9_000)), mtime=0)


@pytest.mark.parametrize("kind", ["gzip", "gzip of another content", "gzip, damaged", "parquet"])
def test_a_packed_file_that_was_refused_is_read_once_it_is_whole(kind: str, tmp_path: Path) -> None:
    """Copied again under its name: longer, or as long as it was with other bytes in the middle."""
    (tmp_path / "in").mkdir()
    file, middle = tmp_path / "in" / "events", len(WHOLE) // 2
    columns = parquet(tmp_path / "whole").read_bytes()
    broken, whole = {
        "gzip": (WHOLE[:middle], WHOLE),
        "gzip of another content": (WHOLE[:middle], gzip.compress(b"one\n")),
        "gzip, damaged": (WHOLE[:middle] + b"\0" * 9 + WHOLE[middle + 9 :], WHOLE),
        "parquet": (columns[:-9], columns),
    }[kind]
    file.write_bytes(broken)
    for again in (Admission(tmp_path / "in", tmp_path / "notes", 0) for _ in range(2)):
        again.admit()
        os.utime(file, (1, 1))
        assert again.admit() == 0
    file.unlink()
    file.write_bytes(whole)
    assert again.admit() == 1
    assert Admission(tmp_path / "in", tmp_path / "notes", 0).admit() == 0
    refused, read = [json.loads(p.read_text()) for p in sorted((tmp_path / "notes").glob("*"))]
    assert refused["format"] == REFUSED
    assert "each later state of the file is read" in refused["reason"]
    assert read["format"] in (GZIPPED, PARQUET)
    assert (read["first_byte"], read["end_byte"]) == (0, len(whole))


def test_a_member_that_was_cut_costs_no_member_before_it_twice(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    file, first = tmp_path / "in" / "a.gz", gzip.compress(b"one\n")
    admission = Admission(tmp_path / "in", tmp_path / "notes", 0)
    for data in (first, first + WHOLE[:-20], first + WHOLE[:-10], first + WHOLE):
        file.write_bytes(data)
        assert admission.admit() == 1
    notes = [json.loads(p.read_text()) for p in sorted((tmp_path / "notes").glob("*"))]
    assert [n["format"] for n in notes] == [GZIPPED, REFUSED, REFUSED, GZIPPED]
    assert notes[-1]["first_byte"] == len(first)


def test_a_file_that_could_not_be_opened_is_refused_once_and_then_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(b"one\ntwo\n")
    admission = Admission(tmp_path / "in", tmp_path / "notes", 0)
    sound = Path.open

    def denied(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if path.name == "a.jsonl":
            raise PermissionError("Permission denied")
        return sound(path, mode, *rest, **more)

    with monkeypatch.context() as closed:
        closed.setattr(Path, "open", denied)
        assert [admission.admit() for _ in range(3)] == [1, 0, 0]
    assert [admission.admit() for _ in range(3)] == [1, 0, 0]
    newest = json.loads(max((tmp_path / "notes").glob("*.json")).read_text())
    assert (newest["format"], newest["first_byte"], newest["end_byte"]) == (LINES, 0, 8)


def test_members_appended_to_a_gzip_file_are_read_and_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "a.jsonl.gz"
    first, second = gzip.compress(b"one\ntwo\n"), gzip.compress(b"three\n")
    file.write_bytes(first)
    admission = Admission(tmp_path / "in", tmp_path / "notes", settle_seconds=60)
    assert admission.admit() == 1
    file.write_bytes(first + second[:-3])
    assert admission.admit() == 0
    file.write_bytes(first + second)
    assert admission.admit() == 1
    notes = [json.loads(p.read_text()) for p in sorted((tmp_path / "notes").glob("*.json"))]
    read = [list(lines_of(n["path"], n["first_byte"], n["end_byte"])) for n in notes]
    assert read == [[b"one", b"two"], [b"three"]]


def test_a_folder_that_takes_long_to_look_at_is_looked_at_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    now, spent = [100.0], [0.0]

    def thread_time() -> float:
        spent[0] += 0.5
        return spent[0]

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.thread_time", thread_time)
    admission = Admission(tmp_path / "in", tmp_path / "notes", settle_seconds=0)
    assert admission.admit() == 0
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")
    now[0] += 9.9
    assert admission.admit() == 0
    now[0] += 0.2
    assert admission.admit() == 1


def test_notes_that_were_joined_keep_their_time(tmp_path: Path) -> None:
    """Spark passes over files a week older than the newest it has seen: the clock may go back."""
    (tmp_path / "in").mkdir()
    notes = tmp_path / "notes"
    for name in "ab":
        (tmp_path / "in" / name).write_text("{}\n")
    ahead = time.time() + 40 * 86_400
    Admission(tmp_path / "in", notes, 0).admit()
    for path in notes.glob("*.json"):
        os.utime(path, (ahead, ahead))
    _write_joined(notes / PRUNED, sorted(notes.glob("*.json")))
    for path in notes.glob("*.json"):
        path.unlink()
    (tmp_path / "in" / "c").write_text("{}\n")
    assert Admission(tmp_path / "in", notes, 0).admit() == 1
    [new] = notes.glob("*.json")
    assert new.stat().st_mtime > ahead


def test_of_files_that_are_gone_no_note_stays_but_the_newest(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    notes = tmp_path / "notes"
    admission = Admission(tmp_path / "in", notes, 0)
    for name in "abc":
        (tmp_path / "in" / name).write_text(name)
        admission.admit()
    for name in "ac":
        (tmp_path / "in" / name).unlink()
    written = sorted(notes.glob("*.json"))
    _write_joined(notes / PRUNED, written)
    joined = (notes / PRUNED).read_text().splitlines()
    assert [json.loads(line)["path"][-1] for line in joined] == ["b", "c"]
    for path in written:
        path.unlink()
    (tmp_path / "in" / "a").write_text("a")
    assert Admission(tmp_path / "in", notes, 0).admit() == 1
    assert [number_of(path) for path in notes.glob("*.json")] == [3]
    shutil.rmtree(tmp_path / "in")
    _write_joined(notes / PRUNED, sorted(notes.glob("*.json")))
    joined = (notes / PRUNED).read_text().splitlines()
    assert [json.loads(line)["path"][-1] for line in joined] == ["b", "c", "a"]


def test_a_note_that_is_lost_has_its_file_read_anew_and_a_broken_one_is_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("a\n")
    notes = tmp_path / "notes"
    Admission(tmp_path / "in", notes, 0).admit()
    [lost] = notes.glob("*.json")
    lost.unlink()
    assert Admission(tmp_path / "in", notes, 0).admit() == 1
    [new] = notes.glob("*.json")
    # Spark has seen the old name, and would pass over it.
    assert new.name != lost.name
    new.write_text(new.read_text()[:20])
    with pytest.raises(SourceError, match="no whole note of what was read: delete it"):
        Admission(tmp_path / "in", notes, 0)


def test_a_line_whose_end_comes_after_it_was_taken_for_finished_is_read_as_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a"
    notes = tmp_path / "notes"

    def slices() -> list[tuple[int, int]]:
        read = [json.loads(n.read_text()) for n in sorted(notes.glob("*.json"))]
        return [(n["first_byte"], n["end_byte"]) for n in read]

    path.write_text("one\ntwo ha")
    admission = Admission(tmp_path / "in", notes, 0)
    assert (admission.admit(), admission.admit()) == (1, 0)
    for text in ("one\ntwo halves\nth", "one\ntwo halves\nthree\n"):
        path.write_text(text)
        # The same after a restart.
        assert Admission(tmp_path / "in", notes, 0).admit() == 1
    assert slices() == [(0, 10), (4, 17), (15, 21)]
