"""Log directories: found by what is in them, and read as a whole."""

import os
import tracemalloc
from pathlib import Path

import pytest

from replication.evidence.log_directories.log_directory import (
    MOST_UNREADABLE,
    LogDirectory,
    PartitionDirectory,
    find_log_directories,
    parse_directory_name,
    read_log_directory,
)
from replication.evidence.log_directories.small_files import CleanShutdown, MetaProperties
from replication.evidence.unreadable import Unreadable
from tests.evidence.segment_bytes import CREATED, Record, batch, message, wrapper

TOPIC_ID = "4Uu25ilRQ3mamw4tl1E6PA"
HEX = "3de5eac4db4a4ea290f3202396f7028e"


def put(folder: Path, files: dict[str, str | bytes]) -> Path:
    """Writes files by their names relative to `folder`."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def log(base_offset: int) -> str:
    return f"{base_offset:020d}.log"


def only_partition(folder: Path, *, verify_crc: bool = False) -> PartitionDirectory:
    (partition,) = read_log_directory(folder, verify_crc=verify_crc).partitions
    return partition


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A log directory as a broker of 4.x leaves it after a clean stop."""
    first = batch(20, Record(), Record(), leader_epoch=2) + batch(22, leader_epoch=2)
    second = batch(23, Record(timestamp=CREATED + 8), leader_epoch=5)
    return put(
        tmp_path / "broker",
        {
            "meta.properties": "version=1\nnode.id=3\ncluster.id=c\ndirectory.id=d\n",
            ".kafka_cleanshutdown": '{"version":0,"brokerEpoch":32}',
            "replication-offset-checkpoint": "0\n2\nt 0 24\nother 0 9\n",
            "recovery-point-offset-checkpoint": "0\n1\nt 0 24\n",
            "log-start-offset-checkpoint": "0\n1\nt 0 21\n",
            "cleaner-offset-checkpoint": "",
            "bootstrap.checkpoint": b"\0\0",
            f"t-0/{log(20)}": first,
            f"t-0/{log(23)}": second,
            f"t-0/{20:020d}.index": bytes(80),
            f"t-0/{20:020d}.snapshot": b"?",
            f"t-0/{24:020d}.snapshot": b"?",
            "t-0/leader-epoch-checkpoint": "0\n2\n2 20\n5 23\n",
            "t-0/partition.metadata": f"version: 0\ntopic_id: {TOPIC_ID}",
        },
    )


def test_everything_that_a_directory_says(broker: Path) -> None:
    directory = read_log_directory(broker, verify_crc=True)
    (partition,) = directory.partitions
    assert directory == LogDirectory(
        path=broker,
        meta=MetaProperties("c", 3, "d", 1),
        clean_shutdown=CleanShutdown(32),
        partitions=(partition,),
        unreadable=(),
        has_cluster_metadata=None,
        named=frozenset({("t", 0), ("other", 0)}),
    )
    assert partition == PartitionDirectory(
        path=broker / "t-0",
        topic="t",
        partition=0,
        kind="replica",
        topic_id=TOPIC_ID,
        log_start_offset=21,
        first_batch_offset=20,
        log_end_offset=24,
        end_is_certain=True,
        batch_count=3,
        spans=((2, 20, 23), (5, 23, 24)),
        epoch_entries=((2, 20), (5, 23)),
        high_watermark=24,
        recovery_point=24,
        last_snapshot_offset=24,
        max_timestamp=CREATED + 8,
        unreadable=(),
        segments=(),
    )
    folder = broker / "t-0"
    assert partition.segment_files == ((20, folder / log(20)), (23, folder / log(23)))
    assert [item.base_offset for item in partition.batches] == [20, 22, 23]
    assert [(path.name, item.position) for path, item in partition.iter_batches_with_path()] == [
        (log(20), 0),
        (log(20), len(batch(20, Record(), Record()))),
        (log(23), 0),
    ]


def test_directories_set_aside_do_not_take_what_belongs_to_the_name(broker: Path) -> None:
    for suffix in ("delete", "stray", "future"):
        os.rename(broker / "t-0", broker / f"t-0.{HEX}-{suffix}")
        partition = only_partition(broker)
        assert (partition.topic, partition.partition) == ("t", 0)
        assert partition.kind == {"delete": "deleted"}.get(suffix, suffix)
        assert partition.topic_id == TOPIC_ID
        assert (partition.high_watermark, partition.recovery_point) == (None, None)
        assert (partition.log_start_offset, partition.log_end_offset) == (20, 24)
        os.rename(broker / f"t-0.{HEX}-{suffix}", broker / "t-0")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t-0", ("t", 0, "replica")),
        ("a-b.c_d-17", ("a-b.c_d", 17, "replica")),
        (f"my-topic-3.{HEX}-delete", ("my-topic", 3, "deleted")),
        (f"t-0.{HEX}-future", ("t", 0, "future")),
        (f"t-0.{HEX}-stray", ("t", 0, "stray")),
        (f"t-0.{HEX}", None),
        ("t", None),
        ("t-", None),
        ("-5", None),
        ("t-99999999999", None),
    ],
)
def test_directory_names(name: str, expected: tuple[str, int, str] | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="does not name a partition's directory"):
            parse_directory_name(name)
    else:
        assert parse_directory_name(name) == expected


def test_only_what_is_in_a_folder_makes_it_a_partition(tmp_path: Path) -> None:
    """`broker-1` is named like a partition, and `t-99999999999` like none."""
    put(
        tmp_path,
        {
            "meta.properties": "version=0\nbroker.id=1\n",
            "broker-1/server.log": "text",
            "t-99999999999/leader-epoch-checkpoint": "0\n0\n",
            "empty-0/.keep": "",
            "t-0": "a file",
            "u-0/leader-epoch-checkpoint": "0\n0\n",
            "v-0/partition.metadata": "version: 0\ntopic_id: " + TOPIC_ID,
            f"w-0/{log(0)}": b"",
        },
    )
    directory = read_log_directory(tmp_path)
    assert [partition.path.name for partition in directory.partitions] == ["u-0", "v-0", "w-0"]
    ends = [partition.log_end_offset for partition in directory.partitions]
    assert ends == [None, None, 0]
    assert [partition.log_start_offset for partition in directory.partitions] == [None, None, 0]


def test_log_directories_are_found_at_any_depth(tmp_path: Path, broker: Path) -> None:
    put(
        tmp_path,
        {
            "a/b/disk-1/meta.properties": "version=0\nbroker.id=1\n",
            f"a/b/disk-1/t-0/{log(0)}": batch(0),
            f"a/b/disk-2/t-1/{log(0)}": batch(0),
            "a/b/disk-3/replication-offset-checkpoint": "",
            "a/b/logs/server.log": "text",
            "a/b/logs-0/server.log": "text",
            f"controller/__cluster_metadata-0/{log(0)}": batch(0),
            f"a/b/disk-1/older-copy/t-0/{log(0)}": batch(0),
        },
    )
    (tmp_path / "link").symlink_to(tmp_path / "a")
    found = [path.relative_to(tmp_path).as_posix() for path in find_log_directories([tmp_path])]
    expected = ["a/b/disk-1", "a/b/disk-1/older-copy", "a/b/disk-2", "a/b/disk-3", "broker"]
    assert found == [*expected, "controller"]
    twice = find_log_directories([tmp_path / "a", tmp_path, broker])
    assert len(twice) == len(found)
    assert find_log_directories([broker]) == [broker]
    assert find_log_directories([tmp_path / "nowhere", tmp_path / "a/b/logs"]) == []


def test_the_controllers_log_is_only_named(tmp_path: Path) -> None:
    put(tmp_path, {f"__cluster_metadata-0/{log(0)}": batch(0), f"t-0/{log(0)}": batch(0)})
    directory = read_log_directory(tmp_path)
    assert directory.has_cluster_metadata == tmp_path / "__cluster_metadata-0"
    assert [partition.topic for partition in directory.partitions] == ["t"]
    assert directory.meta is None
    assert directory.clean_shutdown is None


@pytest.mark.parametrize("emptied", ["", "0\n0\n"])
def test_an_emptied_epoch_cache_beside_records_that_have_leader_epochs_tells_nothing(
    broker: Path, emptied: str
) -> None:
    (broker / "t-0/leader-epoch-checkpoint").write_text(emptied)
    assert read_log_directory(broker).partitions[0].epoch_entries is None


def test_before_0_11_there_are_no_leader_epochs(tmp_path: Path) -> None:
    content = message(0) + wrapper(3, *(message(offset) for offset in range(3)))
    put(tmp_path, {f"t-0/{log(0)}": content, "meta.properties": "version=0\nbroker.id=1\n"})
    partition = only_partition(tmp_path, verify_crc=True)
    assert partition.spans == ((None, 0, 4),)
    assert partition.epoch_entries is None
    assert partition.topic_id is None
    assert partition.batch_count == 2


def test_what_was_set_aside_within_a_partition_is_not_read(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            f"t-0/{log(10)}": batch(10),
            f"t-0/{log(0)}.deleted": batch(0),
            f"t-0/{log(5)}.cleaned": batch(5),
            f"t-0/{log(7)}.swap": batch(7),
            "t-0/0.log": batch(0),
            f"t-0/x{log(0)}": batch(0),
        },
    )
    partition = only_partition(tmp_path)
    assert [item.base_offset for item in partition.iter_batches()] == [10]
    assert partition.log_start_offset == 10
    (swap,) = partition.unreadable
    assert swap.path == str(tmp_path / "t-0" / f"{log(7)}.swap")
    assert partition.end_is_certain


def test_a_cleaned_segment_takes_the_place_of_those_that_begin_within_it(tmp_path: Path) -> None:
    """What a stop broke off Kafka finishes when it starts: of two segments it had made one."""
    swap = f"t-0/{log(0)}.swap"
    put(
        tmp_path,
        {
            f"t-0/{log(0)}": batch(0) + batch(3),
            f"t-0/{log(6)}": batch(6),
            f"t-0/{log(9)}": batch(9),
            swap: batch(3) + batch(6),
        },
    )
    partition = only_partition(tmp_path)
    assert [item.base_offset for item in partition.iter_batches()] == [3, 6, 9]
    assert [path.name for _, path in partition.segment_files] == [f"{log(0)}.swap", log(9)]
    assert partition.unreadable == ()
    put(tmp_path, {swap: batch(3) + batch(6)[:-5]})
    partition = only_partition(tmp_path)
    assert [item.base_offset for item in partition.iter_batches()] == [0, 3, 6, 9]
    assert len(partition.unreadable) == 1


def test_an_empty_last_segment_tells_the_end(tmp_path: Path) -> None:
    put(tmp_path, {f"t-0/{log(0)}": batch(0), f"t-0/{log(9)}": b""})
    partition = only_partition(tmp_path)
    assert (partition.log_end_offset, partition.end_is_certain) == (9, True)


def test_a_stale_log_start_is_not_believed(tmp_path: Path) -> None:
    """Retention removes segments before the checkpoint is written again."""
    put(tmp_path, {f"t-0/{log(50)}": b"", "log-start-offset-checkpoint": "0\n1\nt 0 20\n"})
    assert only_partition(tmp_path).log_start_offset == 50


@pytest.mark.parametrize(
    ("files", "certain", "end"),
    [
        ({log(0): batch(0) + batch(1)[:30]}, False, 1),
        ({log(0): batch(0) + batch(1)[:30], log(1): batch(1)}, True, 2),
        ({log(0): batch(0), log(1): b"version https://git-lfs.github.com/spec/v1\n"}, False, 1),
        ({log(0): batch(0) + bytes(100)}, True, 1),
    ],
)
def test_the_end_is_certain_where_the_last_segment_is_whole(
    tmp_path: Path, files: dict[str, str | bytes], certain: bool, end: int
) -> None:
    put(tmp_path / "t-0", files)
    partition = only_partition(tmp_path)
    assert (partition.end_is_certain, partition.log_end_offset) == (certain, end)
    assert bool(partition.unreadable) == (log(1) in files or not certain)


@pytest.mark.parametrize(
    "files",
    [
        {log(0): batch(0, Record(), Record()) + batch(1)},
        {log(0): batch(0, Record(), Record()), log(1): batch(1)},
    ],
    ids=["within a segment", "across segments"],
)
def test_offsets_that_run_backwards(tmp_path: Path, files: dict[str, str | bytes]) -> None:
    put(tmp_path / "t-0", files)
    partition = only_partition(tmp_path)
    (told,) = partition.unreadable
    assert told.reason == "offsets run backwards: 1 after 1"
    assert not partition.end_is_certain
    assert [item.base_offset for item in partition.iter_batches()] == [0]
    assert (partition.batch_count, partition.log_end_offset) == (1, 2)


def test_offsets_that_the_cleaner_took_are_no_fault(tmp_path: Path) -> None:
    put(tmp_path, {f"t-0/{log(0)}": batch(3) + batch(90, leader_epoch=0)})
    partition = only_partition(tmp_path)
    assert partition.unreadable == ()
    assert partition.spans == ((0, 3, 91),)
    assert partition.first_batch_offset == 3


def test_a_wrong_check_sum_is_left_out_when_asked(tmp_path: Path) -> None:
    changed = bytearray(batch(0))
    changed[-1] ^= 1
    put(tmp_path, {f"t-0/{log(0)}": bytes(changed) + batch(1)})
    careful = only_partition(tmp_path, verify_crc=True)
    assert [item.base_offset for item in careful.iter_batches()] == [1]
    assert len(careful.unreadable) == 1
    assert only_partition(tmp_path).batch_count == 2


def test_unreadable_small_files_are_told_where_they_belong(broker: Path) -> None:
    put(
        broker,
        {
            "meta.properties": bytes(5),
            ".kafka_cleanshutdown": "?",
            "replication-offset-checkpoint": "0\n9\n",
            "t-0/leader-epoch-checkpoint": "0\n1\nx y\n",
            "t-0/partition.metadata": "",
        },
    )
    directory = read_log_directory(broker)
    assert directory.meta is None
    assert directory.clean_shutdown is None
    assert sorted(Path(item.path).name for item in directory.unreadable) == [
        ".kafka_cleanshutdown",
        "meta.properties",
        "replication-offset-checkpoint",
    ]
    (partition,) = directory.partitions
    assert (partition.epoch_entries, partition.topic_id) == (None, None)
    assert (partition.high_watermark, partition.recovery_point) == (None, 24)
    assert [Path(item.path).name for item in partition.unreadable] == [
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    directory = read_log_directory(tmp_path / "gone")
    assert directory.partitions == ()
    missing = Unreadable(str(tmp_path / "gone"), "file", "No such file or directory")
    assert directory.unreadable == (missing,)


def test_a_list_of_unreadable_places_has_an_end(tmp_path: Path) -> None:
    extra = 7
    backwards = batch(5) + batch(0) * (MOST_UNREADABLE + extra)
    put(tmp_path, {f"t-0/{log(0)}": backwards})
    unreadable = only_partition(tmp_path).unreadable
    assert len(unreadable) == MOST_UNREADABLE + 1
    rest = Unreadable(str(tmp_path / "t-0"), "file", f"{extra} more unreadable places")
    assert unreadable[-1] == rest


@pytest.mark.slow
def test_a_log_of_any_length_is_kept_in_little_memory(tmp_path: Path) -> None:
    count = 20_000
    put(tmp_path, {f"t-0/{log(0)}": b"".join(map(batch, range(count)))})
    tracemalloc.start()
    try:
        partition = only_partition(tmp_path)
        read = sum(1 for _ in partition.iter_batches())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (partition.batch_count, read) == (count, count)
    assert peak < 2 << 20


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"


@pytest.mark.parametrize(
    ("files", "unread"),
    [
        ({0: POINTER}, ((0, None),)),
        ({0: batch(0, Record(), Record()), 5: POINTER}, ((5, None),)),
        ({0: batch(0), 5: POINTER, 9: batch(9)}, ((5, 9),)),
        ({0: b"\xff" * 80 + batch(0)}, ((0, None),)),
        ({0: batch(0) + batch(1)[:-3]}, ()),
        ({0: batch(0) + batch(1)}, ()),
    ],
)
def test_what_is_there_and_cannot_be_read(
    files: dict[int, str | bytes], unread: tuple[tuple[int, int | None], ...], tmp_path: Path
) -> None:
    """Unread is unknown, not absent; a torn tail is how a running log ends."""
    put(tmp_path, {f"t-0/{log(base)}": content for base, content in files.items()})
    assert only_partition(tmp_path, verify_crc=True).unread == unread
