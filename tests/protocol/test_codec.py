"""The codec: what was encoded is decoded to an equal state, and broken bytes are an error."""

from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.folding import codec, fold
from replication.protocol.ground.events import Event
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.bounded import fold_all

INCIDENTS = sorted(p for p in (Path(__file__).parents[1] / "incidents").iterdir() if p.is_dir())


@pytest.fixture(scope="module")
def events() -> list[Event]:
    return [e for path in INCIDENTS[:6] for e in import_evidence([path]).events()]


def states(events: list[Event]) -> list[State]:
    return [part.state for part in fold_all(events)]


def test_every_state_on_the_way_survives_the_round_trip(events: list[Event]) -> None:
    by_partition: dict[tuple[str, ...], State] = {}
    for event in events:
        identity = (event.cluster_id, event.topic, event.topic_id, event.partition)
        key = tuple(map(str, identity))
        state = by_partition.setdefault(key, fold.new_state(*identity))
        fold.apply(state, event)
        if event.sequence % 7 == 0:
            assert codec.decode(codec.encode(state)) == state
    assert len(by_partition) >= 4


def test_a_state_written_before_a_field_was_added_is_read_with_its_default() -> None:
    state = fold.new_state("c", "t", "", 0)
    short = codec.encode(state)
    assert codec.decode(short) == state
    assert len(short) < 60


def test_the_size_follows_epochs_not_records(events: list[Event]) -> None:
    for state in states(events):
        assert len(codec.encode(state)) < 20_000


@pytest.mark.parametrize("cut", [0, 3, 8, 40])
def test_cut_bytes_are_corrupt(events: list[Event], cut: int) -> None:
    data = codec.encode(states(events)[0])
    with pytest.raises(codec.CorruptState):
        codec.decode(data[:cut])


def test_a_changed_byte_and_a_newer_format_are_told_apart(events: list[Event]) -> None:
    data = codec.encode(states(events)[0])
    changed = data[:-1] + bytes([data[-1] ^ 1])
    with pytest.raises(codec.CorruptState, match="checksum"):
        codec.decode(changed)
    moved = data[:4] + bytes([data[4] ^ 1]) + data[5:]
    with pytest.raises(codec.UnknownFormat, match="fold the events anew"):
        codec.decode(moved)
    newer = data[:3] + bytes([codec.FORMAT + 1]) + data[4:]
    with pytest.raises(codec.UnknownFormat, match="this analyzer keeps format"):
        codec.decode(newer)
    with pytest.raises(codec.CorruptState, match="no state"):
        codec.decode(b"XYZ" + data[3:])
