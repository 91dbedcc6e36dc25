"""Which batches may hold given bytes: never fewer than unpacking each record shows."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replication.evidence.log_directories import bytes_in_batches
from replication.evidence.log_directories.bytes_in_batches import BytesInBatches
from replication.evidence.log_directories.record_payloads import read_record_identities
from replication.evidence.log_directories.segments import RecordBatch, read_batches
from tests.evidence.segment_bytes import GZIP, LZ4, SNAPPY, ZSTD, Record, batch, message, wrapper

KEYS = st.lists(st.text("ab", max_size=3).map(str.encode), min_size=1, max_size=4)


def segment(path: Path, content: bytes) -> list[RecordBatch]:
    path.write_bytes(content)
    return [b for b in read_batches(path) if isinstance(b, RecordBatch)]


@settings(max_examples=60)
@given(st.lists(st.tuples(KEYS, st.sampled_from((0, GZIP, SNAPPY, LZ4, ZSTD))), max_size=6),
       st.text("ab", max_size=3).map(str.encode), st.integers(1, 40))  # fmt: skip
def test_no_batch_with_the_key_is_missed(
    batches: list[tuple[list[bytes], int]], wanted: bytes, chunk: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(bytes_in_batches, "_CHUNK", chunk)
        patch.setattr(bytes_in_batches, "_AHEAD", chunk)
        path = Path(folder) / "00000000000000000000.log"
        content, offset = b"", 0
        for keys, codec in batches:
            content += batch(offset, *(Record(b"v", key=key) for key in keys), codec=codec)
            offset += len(keys)
        searched = BytesInBatches(wanted)
        for one in segment(path, content):
            records = read_record_identities(path, one)
            assert isinstance(records, list)
            if any(r.key_bytes == wanted for r in records):
                assert searched.may_hold(path, one)
            elif wanted not in b"".join([r.key_bytes or b"" for r in records]) + b"v":
                assert not searched.may_hold(path, one)


def test_formats_before_2_and_what_cannot_be_read(tmp_path: Path) -> None:
    inner = [message(n, Record(b"v", key=b"key-%d" % n), magic=1) for n in range(2)]
    content = wrapper(1, *inner, magic=1, codec=GZIP) + message(2, Record(b"v", key=b"last"))
    path = tmp_path / "00000000000000000000.log"
    packed, plain = segment(path, content)
    assert BytesInBatches(b"key-1").may_hold(path, packed)
    assert not BytesInBatches(b"key-2").may_hold(path, packed)
    assert BytesInBatches(b"last").may_hold(path, plain)
    assert not BytesInBatches(b"key-1").may_hold(path, plain)
    broken = bytearray(content)
    broken[40:60] = bytes(20)
    path.write_bytes(bytes(broken))
    assert BytesInBatches(b"no").may_hold(path, packed)
    path.unlink()
    assert BytesInBatches(b"no").may_hold(path, plain)
