"""Batches that the cleaner has marked, each replica at its own time, hold the same records."""

from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.ground import events as ev
from tests.evidence.segment_bytes import CREATED, Record, batch

TRANSACTIONAL, CONTROL, MARKED = 0x10, 0x20, 0x40
COMMIT, ABORT = b"\0\0\0\1", b"\0\0\0\0"


def marker(kind: bytes, *, horizon: int | None = None) -> bytes:
    flags = TRANSACTIONAL | CONTROL | (0 if horizon is None else MARKED)
    base = CREATED if horizon is None else horizon
    record = Record(key=kind, value=bytes(6))
    return batch(0, record, flags=flags, producer=(5, 0, -1), base_timestamp=base)


def tombstone(key: bytes, *, horizon: int | None = None) -> bytes:
    base = CREATED if horizon is None else horizon
    flags = 0 if horizon is None else MARKED
    return batch(0, Record(key=key, value=None), flags=flags, base_timestamp=base)


def contents(folder: Path, *logs: bytes) -> list[int | None]:
    """What number each replica's only record was given."""
    for broker, log in enumerate(logs, start=1):
        data = folder / f"broker-{broker}"
        (data / "t-0").mkdir(parents=True)
        meta = f"version=1\nnode.id={broker}\ncluster.id=c\n"
        (data / "meta.properties").write_text(meta)
        (data / "t-0" / "00000000000000000000.log").write_bytes(log)
    return [
        event.fact.spans[0].content
        for event in import_evidence([folder]).events()
        if isinstance(event.fact, ev.ReplicaLogObserved)
    ]


@pytest.mark.parametrize(
    ("marked", "plain", "other"),
    [
        (marker(COMMIT, horizon=CREATED + 9_000), marker(COMMIT), marker(ABORT)),
        (tombstone(b"k", horizon=CREATED + 9_000), tombstone(b"k"), tombstone(b"l")),
    ],
    ids=["marker", "tombstone"],
)
def test_a_mark_of_the_cleaner_is_no_difference(
    marked: bytes, plain: bytes, other: bytes, tmp_path: Path
) -> None:
    assert marked != plain
    first, second, third = contents(tmp_path, marked, plain, other)
    assert first == second
    assert first != third
