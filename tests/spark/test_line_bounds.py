"""Lines that are too long, too short and too many, and packed files of nearly nothing: refused."""

import gzip
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replication.evidence import event_dumps
from replication.evidence.event_dumps import arrow_schema, most_unpacked, read_events
from replication.evidence.text_lines import MANY_LINES
from replication.spark import event_files, line_bounds
from replication.spark.event_files import (
    GZIPPED,
    LINES,
    REFUSED,
    Slice,
    lines_of,
    next_slice,
    still_readable,
)
from replication.spark.line_bounds import Bounds


def admitted(path: Path, data: bytes, packed: bool) -> Slice:
    path.write_bytes(gzip.compress(data) if packed else data)
    part = next_slice(path, 0, settled=True)
    assert part is not None
    return part


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_no_machine_can_hold_is_refused_unread(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands before and behind it, wherever a piece of the file ends."""
    for module in (event_files, line_bounds, event_dumps):
        monkeypatch.setattr(module, "LONGEST_LINE", 1000)
    monkeypatch.setattr(line_bounds, "PIECE_BYTES", 64)
    for before in (0, 1, 900, 1000, 5000):
        for length in (999, 1000, 1001, 1063, 1064, 1065, 9000):
            for behind in (b"", b"\n", b"\nx\n"):
                data = b"a\n" * before + b"x" * length + behind
                path = tmp_path / f"{before}-{length}-{len(behind)}"
                part = admitted(path, data, packed)
                assert (part.format == REFUSED) == (length > 1000), path.name
                if part.format == REFUSED:
                    assert part.reason.startswith("a line of more than 1000 bytes begins at byte")
                    assert part.reason.endswith(f" {2 * before}")
                    if not packed:
                        assert part.rows == before + 1 + (behind == b"\nx\n")
                else:
                    read = list(lines_of(part.path, part.first_byte, part.end_byte))
                    assert b"\n".join(read) == data.removesuffix(b"\n")
                read = [u for u in read_events(path) if "longer than" in getattr(u, "reason", "")]
                assert len(read) == (length + bool(behind) > 1000)


def test_two_hundred_megabytes_without_an_end_are_looked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with path.open("wb") as file:
        file.truncate(200 << 20)
        file.seek(0)
        file.write(b"{" * (1 << 16))
    part = next_slice(path, 0, settled=True)
    assert part is not None
    assert (part.format, part.rows) == (REFUSED, 1)
    assert "a line of more than 33554432 bytes begins at byte 0" in part.reason
    [refused] = read_events(path)
    assert "longer than 33554432 bytes" in getattr(refused, "reason", "")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("line", [b"", b"{}", b" ", b"x" * 14])
def test_lines_of_nearly_nothing_are_no_events(line: bytes, packed: bool, tmp_path: Path) -> None:
    many = (line + b"\n") * (MANY_LINES + 1)
    part = admitted(tmp_path / "a", many, packed)
    assert part.format == REFUSED
    assert part.rows > 0
    few = (line + b"\n") * 1_000
    assert admitted(tmp_path / "b", few, packed).format == (GZIPPED if packed else LINES)
    longer = (b"x" * 15 + b"\n") * (MANY_LINES + 1)
    assert admitted(tmp_path / "c", longer, False).format == LINES


def test_a_packed_file_that_unpacks_to_much_more_is_refused_early(tmp_path: Path) -> None:
    for letter in (b"\n", b"{}\n", b"\0"):
        packed = gzip.compress(letter * ((100 << 20) // len(letter)))
        (tmp_path / "bomb.jsonl.gz").write_bytes(packed)
        part = next_slice(tmp_path / "bomb.jsonl.gz", 0, settled=True)
        assert part is not None
        assert part.format == REFUSED, letter
    bounds = Bounds(most_bytes=most_unpacked(len(packed)))
    went_through = []
    bounds.look(went_through.append(n) or b"\n" * (1 << 20) for n in range(1 << 20))
    assert len(went_through) <= 1 + most_unpacked(len(packed)) // (1 << 20)


def test_a_binary_file_without_line_ends_is_counted_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "core.dump"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    tracemalloc.start()
    part = next_slice(path, 0, settled=True)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert part is not None
    assert (part.format, part.rows) == (REFUSED, 1)
    assert most < 8 << 20


BOMBS = {
    "a long text that many rows name": ("topic", ["t" * 100_000], 3_000),
    "a list of very many numbers": ("isr", [[0] * 4_000_000], 1),
    "a page of one letter": ("topic", ["t" * (30 << 20)], 1),
}


@pytest.mark.parametrize("name", BOMBS)
def test_parquet_that_unpacks_to_much_more_is_refused_before_it_does(
    name: str, tmp_path: Path
) -> None:
    column, values, count = BOMBS[name]
    schema = arrow_schema()
    told = {field.name: pa.nulls(count, field.type) for field in schema}
    told[column] = pa.array(values * count, schema.field(column).type)
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table(told, schema=schema), path, compression="zstd")
    assert path.stat().st_size < 50_000
    part = next_slice(path, 0, settled=True)
    assert part is not None
    refused = still_readable(part)
    assert (refused.format, refused.rows) == (REFUSED, count)
    [said] = read_events(path)
    assert refused.reason == getattr(said, "reason", "") == "it unpacks to more than 16777216 bytes"
