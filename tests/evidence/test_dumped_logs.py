"""Segments as kafka-dump-log printed them, joined to one replica's log; and whose they are."""

from pathlib import Path

import pytest

from replication.evidence.collecting.owners import Owner, Surroundings
from replication.evidence.tools.dumped_logs import (
    NotOneLog,
    SegmentDump,
    dumped_directory,
    read_dumped_segments,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "dump.txt"


def batch(first: int, last: int, position: int, leader_epoch: int = 3, size: int = 100) -> str:
    return (
        f"baseOffset: {first} lastOffset: {last} count: {last - first + 1} baseSequence: -1 "
        f"lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: {leader_epoch} "
        f"isTransactional: false isControl: false position: {position} CreateTime: 5 size: {size} "
        f"magic: 2 compresscodec: none crc: {first} isvalid: true\n"
    )


def record(offset: int, key: str) -> str:
    return f"| offset: {offset} keySize: {len(key)} sequence: -1 headerKeys: [] key: {key}\n"


def segment(base: int, *batches: str, where: str = "/data/t-0") -> str:
    return f"Dumping {where}/{base:020}.log\nLog starting offset: {base}\n{''.join(batches)}"


def message(offset: int, position: int, codec: str = "NONE") -> str:
    return (
        f"offset: {offset} position: {position} CreateTime: 5 isvalid: true payloadsize: 6 "
        f"magic: 1 compresscodec: {codec} crc: {offset} keysize: -1\n"
    )


def read(file: Path, text: str) -> list[SegmentDump]:
    file.write_text(text)
    segments, unreadable, notes = read_dumped_segments(file)
    assert (unreadable, notes) == ([], [])
    return segments


def test_segments_of_several_partitions_in_one_file(file: Path) -> None:
    text = (
        segment(4, batch(4, 5, 0))
        + segment(0, batch(0, 8, 0), where="/data/u-0")
        + segment(6, batch(6, 7, 0), batch(9, 9, 100))
        + "Dumping /data/t-0/00000000000000000006.index\noffset: 9 position: 100\n"
        + segment(0, batch(0, 3, 0))
    )
    mine = [s for s in read(file, text) if s.topic == "t"]
    found = dumped_directory(mine, set())
    assert (found.log_start_offset, found.log_end_offset) == (0, 10)
    assert found.holes == ((8, 9),)
    assert [b.base_offset for b in found.iter_batches()] == [0, 4, 6, 9]
    assert not found.is_whole
    assert dumped_directory(mine, {399, 400}).is_whole


def test_keys_come_with_the_batches(file: Path) -> None:
    text = segment(0, batch(0, 1, 0), record(0, "a"), record(1, "b c"))
    (one,) = read(file, text)
    found = dumped_directory([one], set())
    assert [(r.offset, r.key) for r in found.record_keys()] == [(0, "a"), (1, "b c")]


def test_an_empty_segment_says_how_far_the_log_reached(file: Path) -> None:
    found = dumped_directory(read(file, segment(0, batch(0, 3, 0)) + segment(7)), set())
    assert found.log_end_offset == 7
    with pytest.raises(NotOneLog, match="no batch"):
        dumped_directory(read(file, segment(7)), set())


def test_messages_out_of_compressed_ones_join_by_offset(file: Path) -> None:
    inner = [message(o, p) for o, p in ((0, 0), (1, 0), (2, 77), (3, 77), (4, 160))]
    (one,) = read(file, segment(0, *inner))
    assert (one.end, one.size) == (5, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (segment(0, batch(2, 3, 100)), "lines are missing before the batch at byte 100"),
        (segment(0, batch(0, 1, 0), batch(4, 5, 200)), "lines are missing before the batch"),
        (segment(0, batch(0, 3, 0), batch(2, 5, 100)), "offsets run backwards: 2 after 3"),
    ],
)
def test_what_follows_missing_lines_does_not_count(file: Path, text: str, reason: str) -> None:
    file.write_text(text + segment(9, batch(9, 9, 0)))
    segments, (unreadable,), _ = read_dumped_segments(file)
    assert reason in unreadable.reason
    assert [b.base_offset for s in segments for b in dumped(s)] in ([0, 9], [9])


def dumped(one: SegmentDump) -> list[object]:
    return list(dumped_directory([one], set()).iter_batches()) if one.batch_count else []


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (batch(0, 1, 0), 'before any line "Dumping ..'),
        (segment(0, batch(0, 1, 0), where="/data/t-0.4f-delete"), "names no topic partition"),
        (segment(9, batch(0, 1, 0)), "begins at offset 0"),
        (
            segment(
                0,
                "offset: 0 position: 0 CreateTime: 5 isvalid: true keysize: -1 valuesize: 9 "
                "magic: 2 compresscodec: NONE producerId: -1 sequence: -1 headerKeys: []\n",
            ),
            "without --deep-iteration",
        ),
    ],
)
def test_what_cannot_be_used_is_said(file: Path, text: str, note: str) -> None:
    file.write_text(text)
    segments, _, notes = read_dumped_segments(file)
    assert segments == []
    assert len(notes) == 1
    assert note in notes[0]


def test_two_states_of_one_log_are_not_one(file: Path) -> None:
    short, long = segment(0, batch(0, 3, 0)), segment(0, batch(0, 3, 0), batch(4, 5, 100))
    with pytest.raises(NotOneLog, match="nothing tells which is later"):
        dumped_directory(read(file, short + long), set())
    with pytest.raises(NotOneLog, match="which of them"):
        dumped_directory(read(file, short + segment(4, batch(4, 5, 0), where="/b/t-0")), set())
    assert dumped_directory(read(file, long + long), set()).batch_count == 2


# -- whose it is ----------------------------------------------------------------------------------


def around(root: Path, places: dict[str, int], **more: object) -> Surroundings:
    found = [((root / folder).resolve(), broker, "c") for folder, broker in places.items()]
    return Surroundings([root], found, clusters={"c"}, **more)  # type: ignore[arg-type]


HOMES = {"/a": {1}, "/b": {2}, "/c": {1, 2}}


@pytest.mark.parametrize(
    ("path", "home", "expected"),
    [
        ("broker-1/dump", "/x", 1),
        ("broker-1/dumps/of-2/dump", "/x", 1),
        ("two/dump", "/x", None),
        ("broker-7/dump", "/x", 7),
        ("dump", "/b", 2),
        ("dump", "/c", None),
        ("dump", "/x", None),
        ("broker-1/dump", "/b", None),
        ("broker-7/dump", "/b", None),
    ],
)
def test_whose_a_dump_is(path: str, home: str, expected: int | None, tmp_path: Path) -> None:
    places = {"broker-1": 1, "broker-2/logs": 2, "two": 2, "two/below": 1}
    known = around(tmp_path, places, homes=HOMES, brokers={1, 2})
    found = known.owner(tmp_path / path, [home])
    assert (found.broker if isinstance(found, Owner) else None) == expected


def test_a_path_names_nobody_while_some_brokers_paths_are_unknown(tmp_path: Path) -> None:
    known = around(tmp_path, {}, homes=HOMES, brokers={1, 2, 3})
    assert isinstance(known.owner(tmp_path / "dump", ["/b"]), str)


def test_folders_outside_of_what_was_handed_over_say_nothing(tmp_path: Path) -> None:
    root = tmp_path / "incident-42" / "evidence"
    root.mkdir(parents=True)
    assert isinstance(around(root, {}).owner(root / "dump", []), str)


def test_of_several_clusters_the_one_around_it(tmp_path: Path) -> None:
    known = around(tmp_path, {"a": 1})
    known.clusters.add("d")
    assert known.owner(tmp_path / "a" / "dump", []) == Owner(1, "c", "the evidence beside it")
    assert isinstance(known.owner(tmp_path / "b-2" / "dump", []), str)
