"""What kafka-dump-log prints of a partition's directory, made from its bytes.

`tests/dumps` holds what the tool itself printed of the incidents' final directories; a test holds
this against it, so that dumps of any other copy can be made without Java.
"""

import gzip
from collections.abc import Iterable
from pathlib import Path

from replication.evidence.log_directories.log_directory import read_log_directory
from replication.evidence.log_directories.record_payloads import read_record_identities
from replication.evidence.log_directories.segments import RecordBatch, read_batches
from replication.evidence.unreadable import Unreadable

DUMPS = Path(__file__).parent / "dumps"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def real_dump(incident: str, broker: str) -> str | None:
    """What the tool of the incident's version printed of a broker's final directory."""
    path = DUMPS / incident / f"{broker}.txt.gz"
    return gzip.decompress(path.read_bytes()).decode() if path.exists() else None


def dump_of(directory: Path, topics: Iterable[str] | None = None) -> str:
    """The tool's text of every segment of a log directory, with record keys."""
    wanted = None if topics is None else set(topics)
    lines: list[str] = []
    for partition in read_log_directory(directory).partitions:
        if partition.kind == "replica" and (wanted is None or partition.topic in wanted):
            for base_offset, path in partition.segment_files:
                name = f"/var/lib/kafka/{path.parent.name}/{path.name}"
                lines += [f"Dumping {name}", f"Log starting offset: {base_offset}"]
                for batch in read_batches(path):
                    if isinstance(batch, RecordBatch):
                        lines += _lines(path, batch)
    return "".join(f"{line}\n" for line in lines)


def _lines(path: Path, batch: RecordBatch) -> list[str]:
    records = read_record_identities(path, batch)
    keys = [] if isinstance(records, Unreadable) else [(r.offset, r.key) for r in records]
    if batch.magic < 2:
        key = keys[0][1] if keys else None
        size, printed = (-1, "") if key is None else (len(key.encode()), f" key: {key}")
        payload = batch.size - (34 if batch.magic else 26) - max(size, 0)
        return [
            f"offset: {batch.base_offset} position: {batch.position} "
            f"CreateTime: {_number(batch.max_timestamp)} isvalid: true payloadsize: {payload} "
            f"magic: {batch.magic} compresscodec: NONE crc: {batch.crc} keysize: {size}{printed} "
            "payload: x"
        ]
    head = (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.end_offset - 1} "
        f"count: {batch.record_count} baseSequence: {_number(batch.base_sequence)} "
        f"lastSequence: -1 producerId: {_number(batch.producer_id)} "
        f"producerEpoch: {_number(batch.producer_epoch)} "
        f"partitionLeaderEpoch: {_number(batch.leader_epoch)} "
        f"isTransactional: {str(batch.is_transactional).lower()} "
        f"isControl: {str(batch.is_control).lower()} deleteHorizonMs: OptionalLong.empty "
        f"position: {batch.position} CreateTime: {_number(batch.max_timestamp)} "
        f"size: {batch.size} magic: 2 compresscodec: {CODECS[batch.codec]} crc: {batch.crc} "
        "isvalid: true"
    )
    return [head, *(_record(offset, key) for offset, key in keys)]


def _record(offset: int, key: str | None) -> str:
    size, printed = (-1, "") if key is None else (len(key.encode()), f" key: {key}")
    return (
        f"| offset: {offset} CreateTime: 0 keySize: {size} valueSize: 1 sequence: -1 "
        f"headerKeys: []{printed} payload: x"
    )


def _number(value: int | None) -> int:
    return -1 if value is None else value
