"""Which log each directory or dump is of, and when a dump stands in for a directory."""

import dataclasses
from dataclasses import replace
from pathlib import Path

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.collecting.collection import BrokerDirectory, BrokerDump
from replication.evidence.joining.copied_replicas import (
    copied_directories,
    dumped_copies,
    leave_out_checkpoints_of_earlier_lives,
    registrations,
)
from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.one_cluster import ClusterEvidence
from replication.evidence.log_directories.digest_lines import SeenDirectory
from replication.evidence.log_directories.small_files import MetaProperties
from replication.evidence.metadata_log.history import BrokerChange
from replication.evidence.tools.dumped_logs import SegmentDump
from tests.evidence.joining.history import history
from tests.evidence.test_placement import copy_of

TWO = Incarnations({"t": [("a", None, 20), ("b", 20, None)]})


def directory(topic_id: str | None = None, name: str = "copy") -> BrokerDirectory:
    parent = copy_of(name, 5, clean=False).parent
    partitions = tuple(replace(p, topic_id=topic_id) for p in parent.partitions)
    return BrokerDirectory(1, "c", replace(parent, partitions=partitions), None, "test")


def dump(broker: int = 1) -> BrokerDump:
    segment = SegmentDump(
        name="0.log", topic="t", partition=0, base_offset=0, path=Path("dump.txt"),
        lines=range(1, 2), first_offset=0, end_offset=5, size=100, holes=(), batch_count=1,
        latest_epoch=3, max_timestamp=7, fingerprint=b"x", has_keys=False,
    )  # fmt: skip
    return BrokerDump(broker, "c", [segment])


def test_a_directory_is_of_the_topic_whose_id_lies_in_it() -> None:
    found, unreadable = copied_directories([directory("b")], TWO)
    assert (list(found), unreadable) == ([("t", "b", 0)], [])
    assert found["t", "b", 0][0].registrations is None


def test_without_an_id_a_name_that_was_used_twice_tells_nothing() -> None:
    assert list(copied_directories([directory()], Incarnations())[0]) == [("t", "", 0)]
    found, (why,) = copied_directories([directory()], TWO)
    assert found == {}
    assert "to which of its lives" in str(why.reason)


def test_a_partitions_folder_may_be_left_out_of_another_copy_that_names_it() -> None:
    here, bare = directory(), directory(name="later")
    named = frozenset({("t", 0)})
    bare = replace(bare, directory=replace(bare.directory, partitions=(), named=named))
    for others, found in (([], False), ([bare], True), ([replace(bare, broker=2)], False)):
        (copy,) = copied_directories([here, *others], Incarnations())[0]["t", "", 0]
        assert copy.named_elsewhere is found


@pytest.mark.parametrize(("read_at", "later"), [(30, [(0, 30)]), (10, []), (None, [])])
def test_a_broker_that_was_seen_with_an_earlier_topics_log_has_nothing_of_the_later_one(
    read_at: int | None, later: list[tuple[int, int]]
) -> None:
    """It was down when the topic was created anew; a copy that names no time tells nothing."""
    kept = directory("a")
    if read_at is not None:
        [log] = kept.directory.partitions
        fields = {f.name: getattr(log, f.name) for f in dataclasses.fields(log)}
        seen = SeenDirectory(**fields, told_at=5, read_at=read_at)
        kept = replace(kept, directory=replace(kept.directory, partitions=(seen,)))
    found, _ = copied_directories([kept], TWO)
    told = [(c.directory.log_end_offset, c.read_at) for c in found.get(("t", "b", 0), ())]
    assert told == later
    both, _ = copied_directories([kept, directory("b", "beside")], TWO)
    assert len(both["t", "b", 0]) == 1


def test_a_dump_stands_in_for_a_directory_that_is_not_here() -> None:
    found, notes = dumped_copies(ClusterEvidence("c", dumps=(dump(),)), Incarnations(), {})
    (copy,) = found["t", "", 0]
    assert (copy.is_dump, copy.latest_epoch, copy.latest_timestamp) == (True, 3, 7)
    assert "whether its log goes on" in notes[0]


def test_a_dump_of_one_of_two_incarnations_is_not_used() -> None:
    found, (note,) = dumped_copies(ClusterEvidence("c", dumps=(dump(),)), TWO, {})
    assert found == {}
    assert "created anew" in note


@pytest.mark.parametrize(
    ("ids", "end"),
    [(("A", "B"), 10), (("A", "A"), None), (("A", None), None)],
    ids=["two of one moment", "one directory twice", "unnamed"],
)
def test_the_metadata_log_of_one_log_directory_dates_the_other_beside_it(
    ids: tuple[str | None, ...], end: int | None
) -> None:
    """A broker keeps it in one of its log directories; a copy of all is of one moment."""
    found = []
    for name, directory_id in zip(("x/data-0", "x/data-1"), ids, strict=True):
        kept = directory("a", name)
        meta = MetaProperties("c", 1, directory_id, 1)
        found.append(replace(kept, directory=replace(kept.directory, meta=meta)))
    found[0] = replace(found[0], metadata=history())
    found.append(directory("a", "y/data-1"))
    copies = copied_directories(found, Incarnations())[0]["t", "a", 0]
    assert [c.metadata_end for c in copies] == [10, end, None]


def test_registrations_are_counted_where_the_log_is_whole() -> None:
    changes = tuple(
        BrokerChange(b, kind, 1, None, 1, 1)
        for b, kind in ((1, "registered"), (1, "fenced"), (2, "registered"), (1, "registered"))
    )
    assert registrations(history(brokers=changes), 1) == 2
    assert registrations(history(brokers=changes, first_offset=3), 1) is None
    assert registrations(None, 1) is None


@pytest.mark.parametrize(
    ("topic_id", "above", "reached", "kept"),
    [("a", 9, 9, 9), ("b", 9, 9, None), ("b", 9, 12, None), ("b", 9, 8, 9), ("b", 5, 9, 5)],
)
def test_a_checkpoint_above_the_log_may_be_of_an_earlier_topic_of_the_name(
    topic_id: str, above: int, reached: int, kept: int | None
) -> None:
    """Where the broker's log of that topic had reached the offset; else only this log had."""
    of_topic = directory(topic_id)
    partitions = tuple(
        replace(p, high_watermark=above, recovery_point=above, log_end_offset=5)
        for p in of_topic.directory.partitions
    )
    told = replace(of_topic, directory=replace(of_topic.directory, partitions=partitions))
    copies, _ = copied_directories([told], TWO)
    fields = {"leader_epoch": 1, "log_end_offset": reached}
    line = LogLineFact("became_leader", 1, 1, "server.log", 1, "t", 0, fields)
    leave_out_checkpoints_of_earlier_lives(copies, {1: {("t", "a", 0): [[line]]}}, TWO)
    (copy,) = copies["t", topic_id, 0]
    assert (copy.directory.high_watermark, copy.directory.recovery_point) == (kept, kept)
