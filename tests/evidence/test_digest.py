"""The digest: what comes out of it is what the directory itself says, and damage is told."""

import ast
import gzip
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.evidence import digest
from replication.evidence.log_directories.digest_reader import (
    is_digest,
    read_digest,
    restore_cluster_metadata,
)
from replication.evidence.log_directories.log_directory import (
    LogDirectory,
    PartitionDirectory,
    read_log_directory,
)
from replication.evidence.log_directories.record_payloads import read_record_identities
from replication.evidence.log_directories.segments import RecordBatch
from replication.evidence.unreadable import Unreadable
from tests.evidence.segment_bytes import (
    CONTROL,
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    Record,
    batch,
    compress,
    message,
    wrapper,
)

SCRIPT = Path(digest.__file__)
HEX = "3de5eac4db4a4ea290f3202396f7028e"
LONG_LOG = b"".join(
    batch(3 * at, *[Record()] * (at % 3 + 1), leader_epoch=at // 700, producer=(at % 5, 0, at))
    for at in range(2 * digest.BATCHES_PER_LINE + 3)
)


def log(base_offset: int) -> str:
    return f"{base_offset:020d}.log"


def fill(folder: Path) -> Path:
    """A log directory with something of everything, whole and damaged."""
    damaged = bytearray(batch(7))
    damaged[57] = 0xFF
    files: dict[str, str | bytes] = {
        "meta.properties": "version=1\nnode.id=3\ncluster.id=c\ndirectory.id=d\n",
        ".kafka_cleanshutdown": '{"version":0,"brokerEpoch":32}',
        "replication-offset-checkpoint": "0\n2\nlong 0 24\nu 0 9\n",
        "recovery-point-offset-checkpoint": "",
        "log-start-offset-checkpoint": b"0\n1\n\xff\n",
        f"long-0/{log(0)}": LONG_LOG,
        f"long-0/{log(9000)}": batch(9000, codec=ZSTD, flags=CONTROL),
        "long-0/leader-epoch-checkpoint": "0\n1\n0 0\n",
        "long-0/partition.metadata": "version: 0\ntopic_id: 4Uu25ilRQ3mamw4tl1E6PA",
        f"long-0/{9001:020d}.snapshot": b"?",
        f"old-1/{log(0)}": message(0, magic=0) + message(1) + wrapper(3, message(0), message(1)),
        f"old-1/{log(4)}": wrapper(5, message(0), message(1), codec=SNAPPY)
        + wrapper(7, message(0), message(1), codec=LZ4)
        + message(8, Record(value=b"junk"), attributes=GZIP)
        + message(9),
        f"torn-0/{log(0)}": batch(0) + bytes(damaged) + batch(8)[:40],
        f"torn-0/{log(0)}.swap": b"",
        f"swap-0/{log(0)}": batch(0),
        f"swap-0/{log(3)}.swap": batch(5),
        f"swap-0/{log(3)}": batch(3),
        "torn-0/leader-epoch-checkpoint": "?",
        f"back-0/{log(0)}": batch(5) + batch(0),
        f"zeros-0/{log(0)}": batch(0) + bytes(500),
        f"text-0/{log(0)}": "version https://git-lfs.github.com/spec/v1\n",
        "none-0/partition.metadata": "version: 0\ntopic_id: 4Uu25ilRQ3mamw4tl1E6PA",
        f"gone-0.{HEX}-delete/{log(0)}": batch(0),
        f"__cluster_metadata-0/{log(0)}": batch(0) * 3,
        "__cluster_metadata-0/quorum-state": "{}",
        f"__cluster_metadata-0/{5:020d}-{1:010d}.checkpoint": b"",
        "broker-1/server.log": "text",
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("broker"))


@pytest.fixture(scope="module")
def digested(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("digest") / "broker.jsonl.gz"
    assert digest.main([str(directory), "--out", str(target)]) == 0
    return target


def without_paths(items: tuple[Unreadable, ...]) -> list[tuple[str, str, str]]:
    return [(Path(item.path).name, item.where, item.reason) for item in items]


def content_of(
    partition: PartitionDirectory,
) -> tuple[PartitionDirectory, list[tuple[str, str, str]], list[int], tuple[RecordBatch, ...]]:
    return (
        replace(partition, path=Path(partition.path.name), unreadable=()),
        without_paths(partition.unreadable),
        [base_offset for base_offset, _ in partition.segment_files],
        partition.batches,
    )


def contents(directory: LogDirectory) -> object:
    """A log directory's value apart from its paths, with all batches."""
    return (
        directory.meta,
        directory.clean_shutdown,
        without_paths(directory.unreadable),
        directory.has_cluster_metadata is not None,
        [content_of(partition) for partition in directory.partitions],
    )


def test_a_digest_gives_what_the_directory_gives(directory: Path, digested: Path) -> None:
    from_directory = read_log_directory(directory)
    from_digest = read_digest(digested)
    assert len(from_directory.partitions) == 9
    assert sum(len(partition.unreadable) for partition in from_directory.partitions) == 7
    assert contents(from_digest) == contents(from_directory)
    assert from_digest.path == digested


def test_a_digest_has_no_records(digested: Path) -> None:
    path, first = next(read_digest(digested).partitions[0].iter_batches_with_path())
    answer = read_record_identities(path, first)
    assert isinstance(answer, Unreadable)
    assert answer.reason == "a digest holds headers only, no records"


def test_a_digest_is_small(directory: Path, digested: Path) -> None:
    assert digested.stat().st_size < len(LONG_LOG) // 8


def test_a_digest_knows_when_it_was_made(digested: Path) -> None:
    for partition in read_digest(digested).partitions:
        if partition.path.name != "none-0":
            assert partition.captured_between is not None
            begin, end = partition.captured_between
            assert 1_700_000_000_000 < begin <= end


def test_digests_are_known_by_content(directory: Path, digested: Path, tmp_path: Path) -> None:
    assert is_digest(digested)
    other = tmp_path / "server.log.gz"
    other.write_bytes(gzip.compress(b"[2026-11-20 15:17:30,518] INFO\n"))
    assert not is_digest(other)
    assert not is_digest(directory / "meta.properties")
    assert not is_digest(directory)
    assert not is_digest(tmp_path / "missing")


def test_any_reader_of_gzip_and_json_can_read_it(digested: Path) -> None:
    with gzip.open(digested, "rt", encoding="ascii") as stream:
        lines = [json.loads(line) for line in stream]
    assert lines[0]["digest"] == "replication-analyzer-digest"
    assert lines[-1]["end"] is True
    assert lines[-1]["batch_count"] == sum(
        line["batches"]["count"] for line in lines if "batches" in line
    )


def test_the_controllers_log_comes_back_whole(
    directory: Path, digested: Path, tmp_path: Path
) -> None:
    restored = restore_cluster_metadata(digested, tmp_path)
    assert restored == tmp_path / "__cluster_metadata-0"
    original = directory / "__cluster_metadata-0"
    names = sorted(path.name for path in restored.iterdir())
    assert names == sorted(path.name for path in original.iterdir())
    for name in names:
        assert (restored / name).read_bytes() == (original / name).read_bytes()


def test_a_long_controllers_log_loses_its_oldest_part_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "broker" / "__cluster_metadata-0"
    metadata.mkdir(parents=True)
    for base_offset in (0, 1000, 2000):
        (metadata / log(base_offset)).write_bytes(bytes([1]) * 1000)
    monkeypatch.setattr(digest, "CLUSTER_METADATA_LIMIT", 2100)
    monkeypatch.setattr(digest, "PIECE", 300)
    target = tmp_path / "out.gz"
    assert digest.main([str(tmp_path / "broker"), "--out", str(target)]) == 0
    (note,) = read_digest(target).unreadable
    assert note.reason.endswith(f"left out, oldest first to go: __cluster_metadata-0/{log(0)}")
    restored = restore_cluster_metadata(target, tmp_path)
    assert restored is not None
    kept = {path.name: path.read_bytes() for path in restored.iterdir()}
    assert kept == {log(1000): bytes([1]) * 1000, log(2000): bytes([1]) * 1000}


def test_a_digest_without_a_controllers_log_restores_none(tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    target = tmp_path / "out.gz"
    assert digest.main([str(tmp_path / "broker"), "--out", str(target)]) == 0
    assert restore_cluster_metadata(target, tmp_path) is None
    assert read_digest(target).partitions == ()


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A folder in a file's place stands for whatever the broker or the disk does beside us."""
    broker = tmp_path / "broker"
    for name in (f"t-0/{log(0)}", "t-0/leader-epoch-checkpoint", "meta.properties"):
        (broker / name).mkdir(parents=True)
    target = tmp_path / "out.gz"
    assert digest.main([str(broker), "--out", str(target)]) == 0
    assert contents(read_digest(target)) == contents(read_log_directory(broker))
    (partition,) = read_digest(target).partitions
    assert not partition.end_is_certain
    assert [item.reason for item in partition.unreadable] == ["Is a directory"] * 2


def test_it_runs_alone_with_nothing_but_python(directory: Path, tmp_path: Path) -> None:
    """Copied elsewhere, without site-packages, as on a broker."""
    script = shutil.copy(SCRIPT, tmp_path / "digest.py")
    target = tmp_path / "out.gz"
    command = [sys.executable, "-I", "-S", str(script), str(directory), "--out", str(target)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert ran.stderr.startswith("digest: ")
    assert contents(read_digest(target)) == contents(read_log_directory(directory))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digest.py", "out.gz"]


def test_it_is_written_for_python_3_6() -> None:
    """The grammar of 3.6, and modules that 3.6 has."""
    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 6))
    imported = set()
    for node in ast.walk(tree):
        assert not isinstance(node, ast.NamedExpr | ast.Match)
        assert not (isinstance(node, ast.arguments) and node.posonlyargs)
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    newer = {"dataclasses", "contextvars", "graphlib", "tomllib", "zoneinfo", "__future__"}
    assert imported <= set(sys.stdlib_module_names) - newer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{broker}/missing", "--out", "{out}"], "is no directory"),
        (["{broker}", "--out", "{broker}/t-0/out.gz"], "must not lie inside the log directory"),
        (["{broker}", "--out", "{out}/no/such/folder"], "No such file or directory"),
    ],
)
def test_calls_that_cannot_work(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    broker = tmp_path / "broker"
    (broker / "t-0").mkdir(parents=True)
    filled = [text.format(broker=broker, out=tmp_path / "out.gz") for text in arguments]
    assert digest.main(filled) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.gz").exists()


@pytest.mark.slow
def test_a_cut_digest_gives_what_stands_whole(digested: Path, tmp_path: Path) -> None:
    partitions = read_digest(digested).partitions
    whole = {partition.path.name: partition.batches for partition in partitions}
    packed = digested.read_bytes()
    cut = tmp_path / "cut.gz"
    complete = set()
    for size in range(0, len(packed), 53):
        cut.write_bytes(packed[:size])
        answer = read_digest(cut)
        assert answer.unreadable, size
        for partition in answer.partitions:
            batches = partition.batches
            expected = whole[partition.path.name]
            assert batches == expected[: len(batches)], size
            if len(batches) < len(expected):
                assert partition.unreadable, size
                assert not partition.end_is_certain
            elif batches:
                complete.add(partition.path.name)
    assert len(complete) >= 6


@pytest.mark.slow
@given(st.data())
def test_a_changed_digest_never_raises_and_never_lies(
    digested: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """gzip's own check sums guard each member: what is answered is what the directory held."""
    packed = bytearray(digested.read_bytes())
    at = data.draw(st.integers(0, len(packed) - 1))
    bits = data.draw(st.integers(1, 255))
    packed[at] ^= bits
    changed = tmp_path_factory.getbasetemp() / "changed.gz"
    changed.write_bytes(packed)
    honest = read_digest(digested)
    answer = read_digest(changed)
    assert answer.meta in (None, honest.meta)
    assert answer.clean_shutdown in (None, honest.clean_shutdown)
    whole = {partition.path.name: partition for partition in honest.partitions}
    for partition in answer.partitions:
        expected = whole[partition.path.name]
        assert partition.batches == expected.batches[: len(partition.batches)]
        assert partition.epoch_entries == expected.epoch_entries
        assert partition.high_watermark in (None, expected.high_watermark)
        if partition.end_is_certain:
            assert partition.log_end_offset == expected.log_end_offset


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["[]"],
        ["{}"],
        ['{"digest":"replication-analyzer-digest","format_version":2}'],
        ['{"partition_directory":"nonsense","names":[]}'],
        ['{"partition_directory":"t-0","names":5}'],
        ['{"file":"meta.properties","base64":"?"}'],
        ['{"file":5}'],
        ['{"captured_ms":["x"],"end":true}'],
    ],
)
def test_lines_of_another_making(tmp_path: Path, lines: list[str]) -> None:
    target = tmp_path / "other.gz"
    target.write_bytes(gzip.compress("".join(line + "\n" for line in lines).encode()))
    answer = read_digest(target)
    assert answer.partitions == ()
    assert answer.unreadable
    assert restore_cluster_metadata(target, tmp_path) is None


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"count": 1},
        {"count": -1, "crc": ""},
        {"count": 10**12, "crc": "AAAA"},
    ],
)
def test_columns_of_another_making(tmp_path: Path, columns: dict[str, object]) -> None:
    name = log(0)
    lines = [
        {"digest": "replication-analyzer-digest", "format_version": 1},
        {"partition_directory": "t-0", "names": [name]},
        {"segment": f"t-0/{name}"},
        {"batches": columns},
        {"end": True},
    ]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    target = tmp_path / "other.gz"
    target.write_bytes(gzip.compress(text.encode()))
    (partition,) = read_digest(target).partitions
    assert partition.batches == ()
    assert not partition.end_is_certain


TEXTS = st.one_of(
    st.binary(max_size=600),
    st.text("ab", max_size=3000).map(str.encode),
    st.integers(1, 70_000).map(lambda size: b"kafka" * (size // 5)),
)


@given(text=TEXTS, raw_snappy=st.booleans())
def test_the_plain_decoders_undo_what_producers_do(text: bytes, raw_snappy: bool) -> None:
    for codec in (GZIP, SNAPPY, LZ4):
        packed = compress(codec, text, raw_snappy=raw_snappy)
        assert digest.decompress_plainly(codec, packed) == text
    for check in (True, False):
        framed = lz4.frame.compress(
            text, content_checksum=check, block_checksum=check, block_linked=check, block_size=4
        )
        assert digest.decompress_plainly(LZ4, framed) == text


@given(
    codec=st.sampled_from([GZIP, SNAPPY, LZ4]),
    text=TEXTS,
    flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), max_size=4),
    cut=st.integers(0, 50),
)
def test_the_plain_decoders_refuse_damage(
    codec: int, text: bytes, flips: list[tuple[int, int]], cut: int
) -> None:
    packed = bytearray(compress(codec, text))
    for at, bits in flips:
        packed[at % len(packed)] ^= bits
    del packed[len(packed) - cut :]
    try:
        digest.decompress_plainly(codec, bytes(packed))
    except ValueError:
        return
