"""The controllers' own record of a partition: whole or not, and of which incarnation."""

from replication.evidence.joining.controllers_history import from_metadata_log, from_znodes
from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.zookeeper.history import (
    PartitionStateChange,
    TopicLife,
    ZooKeeperHistory,
)
from tests.evidence.joining.history import created, history


def test_each_partition_of_the_metadata_log_has_its_own_changes() -> None:
    changes = (created("a", "t", 1), created("b", "t", 2), created("z", None, 3))
    found = from_metadata_log(history(changes=changes))
    assert {key: len(each.recorded) for key, each in found.items()} == {
        ("t", "a", 0): 1, ("t", "b", 0): 1,
    }  # fmt: skip
    assert all(each.is_whole and not each.by_zookeeper for each in found.values())
    for partial in ({"first_offset": 5}, {"damaged_from": 5}):
        (one,) = from_metadata_log(history(changes=changes[:1], **partial)).values()
        assert not one.is_whole


def life(topic_id: str | None, *versions: int) -> TopicLife:
    states = tuple(
        PartitionStateChange("t", 0, v, 1, v, (1, 2), v, v, v, "log.1", None) for v in versions
    )
    return TopicLife("t", topic_id, 1, 1, None, {0: (1, 2)}, {0: states})


def test_znodes_are_whole_only_without_a_gap() -> None:
    whole, notes = from_znodes(ZooKeeperHistory("c", [life("a", 0, 1)]), Incarnations())
    gap, _ = from_znodes(ZooKeeperHistory("c", [life("a", 0, 2)]), Incarnations())
    assert (whole["t", "a", 0].is_whole, gap["t", "a", 0].is_whole, notes) == (True, False, [])
    assert whole["t", "a", 0].by_zookeeper


def test_of_lives_without_ids_only_the_last_is_used() -> None:
    zookeeper = ZooKeeperHistory("c", [life(None, 0, 1, 2), life(None, 0)])
    found, notes = from_znodes(
        zookeeper, Incarnations({"t": [("incarnation-1", None, 5), ("", 5, None)]})
    )
    assert [len(each.recorded) for each in found.values()] == [1]
    assert list(found) == [("t", "", 0)]
    assert not found["t", "", 0].is_whole
    assert "2 topics of this name" in notes[0]
