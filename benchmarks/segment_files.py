"""Makes log directories of three replicas: what the segment reader is measured on.

Every batch header is whole and its CRC right; the records behind it are zeros that the file system
does not store, so that ten gigabytes take the room of their headers. Readers of headers step over
the records either way; whoever checks the CRC reads the zeros as it would read records.
"""

import os
import struct
from pathlib import Path

import crc32c

BROKERS = (1, 2, 3)
PARTITIONS = 4
RECORDS_OF_BATCH = 100
BATCH_BYTES = 16 << 10
SEGMENT_BYTES = 256 << 20
STARTED = 1_795_000_000_000
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
BATCHES_OF_EPOCH = 20_000

# Base offset, length, leader epoch, magic, CRC; then what the CRC covers.
OUTSIDE = struct.Struct(">qiibI")
COVERED = struct.Struct(">hiqqqhii")
_ZEROS = bytes(BATCH_BYTES - OUTSIDE.size - COVERED.size)


def batch_header(base_offset: int, leader_epoch: int) -> bytes:
    """The 61 bytes of a batch of an idempotent producer."""
    at = STARTED + base_offset // 10
    covered = COVERED.pack(
        0, RECORDS_OF_BATCH - 1, at, at + 9, 4_000, 0, base_offset & 0x7FFFFFFF, RECORDS_OF_BATCH
    )
    crc = crc32c.crc32c(_ZEROS, crc32c.crc32c(covered))
    return OUTSIDE.pack(base_offset, BATCH_BYTES - 12, leader_epoch, 2, crc) + covered


def write(folder: Path, size: int) -> None:
    """Writes size bytes of segments below folder: the same logs on every broker."""
    batches = size // BATCH_BYTES // PARTITIONS // len(BROKERS)
    for broker in BROKERS:
        partitions = {f"orders-{number}": max(1, batches) for number in range(PARTITIONS)}
        write_directory(folder / f"broker-{broker}" / "data", broker, partitions)


def write_directory(directory: Path, broker: int, partitions: dict[str, int]) -> None:
    """Writes one log directory. partitions: how many batches of each, by topic and number."""
    for name, batches in partitions.items():
        _write_partition(directory / name, batches)
    (directory / "meta.properties").write_text(
        f"version=1\nnode.id={broker}\ncluster.id={CLUSTER}\n"
    )
    ends = "".join(
        f"{' '.join(name.rsplit('-', 1))} {batches * RECORDS_OF_BATCH}\n"
        for name, batches in partitions.items()
    )
    high_watermarks = directory / "replication-offset-checkpoint"
    high_watermarks.write_text(f"0\n{len(partitions)}\n{ends}")


def _write_partition(directory: Path, batches: int) -> None:
    directory.mkdir(parents=True)
    in_segment = SEGMENT_BYTES // BATCH_BYTES
    for first in range(0, batches, in_segment):
        path = directory / f"{first * RECORDS_OF_BATCH:020d}.log"
        with path.open("wb") as stream:
            for batch in range(first, min(batches, first + in_segment)):
                header = batch_header(batch * RECORDS_OF_BATCH, batch // BATCHES_OF_EPOCH)
                os.pwrite(stream.fileno(), header, (batch - first) * BATCH_BYTES)
            stream.truncate((min(batches, first + in_segment) - first) * BATCH_BYTES)
    epochs = range((batches - 1) // BATCHES_OF_EPOCH + 1)
    lines = "".join(f"{e} {e * BATCHES_OF_EPOCH * RECORDS_OF_BATCH}\n" for e in epochs)
    (directory / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{lines}")
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: b3JkZXJzdG9waWMtMDAwMQ\n")
