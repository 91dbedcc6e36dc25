"""Parts of a metadata log, by hand, and the history that they tell."""

from typing import Any

from replication.evidence.metadata_log.history import TopicLifetime
from replication.evidence.metadata_log.log_parts import (
    Begins,
    Lost,
    Part,
    PlacedRecord,
    Records,
    Snapshot,
)
from replication.evidence.metadata_log.replay import Cluster, apply, history_of, start_over
from replication.evidence.unreadable import Unreadable
from tests.evidence.metadata_log.placed import placed, registers

TOPIC = placed("TopicRecord", 0, topic_id="id", name="t")


def partition(offset: int = 1, **more: Any) -> PlacedRecord:
    values = {
        "topic_id": "id", "partition": 0, "leader": 1, "leader_epoch": 0, "partition_epoch": 0,
        "isr": [1, 2], "replicas": [1, 2], "adding_replicas": [], "removing_replicas": [],
    }  # fmt: skip
    return placed("PartitionRecord", offset, 1000, **{**values, **more})


def change(offset: int, **values: Any) -> PlacedRecord:
    return placed("PartitionChangeRecord", offset, 1000, topic_id="id", partition=0, **values)


def batch(*entries: PlacedRecord, leader_epoch: int = 1) -> Records:
    return Records(entries[0].offset, entries[-1].offset + 1, leader_epoch, list(entries))


def test_a_changes_before_is_what_the_records_made_of_it() -> None:
    cluster = Cluster()
    for entry in (TOPIC, registers(1, fenced=False), partition(), change(2, leader=2)):
        apply(cluster, entry)
    first, second = cluster.changes
    assert (first.before, first.election, first.after.topic) == (None, "initial", "t")
    assert (second.before, second.election) == (first.after, "clean")
    assert cluster.partitions == {"id": {0: second.after}}


def test_a_snapshot_takes_the_states_place_and_tells_of_removed_topics() -> None:
    cluster = Cluster()
    for entry in (
        TOPIC,
        registers(),
        partition(),
        placed("FeatureLevelRecord", name="f", feature_level=1),
    ):
        apply(cluster, entry)
    start_over(cluster, [placed("TopicRecord", 9, 4000, topic_id="other", name="u")])
    assert (cluster.partitions, cluster.standing, cluster.features) == ({}, {}, {})
    assert cluster.topics == {"id": TopicLifetime("t", 1000, 4000)}
    assert len(cluster.changes) == 1


def test_what_stands_in_a_snapshot_is_no_election_and_of_no_known_age() -> None:
    told: list[Part] = [Snapshot(10, [TOPIC, partition(9)]), batch(change(10, leader=2))]
    found = history_of("copy", told)
    assert [one.election for one in found.changes] == [None, "clean"]
    assert found.topics["id"].created_at is None
    assert (found.first_offset, found.end_offset) == (10, 11)


def test_records_below_what_was_told_do_not_count_twice() -> None:
    told: list[Part] = [Snapshot(10, [TOPIC, partition(9)]), batch(change(9), change(10))]
    found = history_of("copy", told)
    assert [one.metadata_offset for one in found.changes] == [9, 10]


def test_one_lost_partition_is_reported_once_until_it_is_registered_again() -> None:
    told: list[Part] = [
        batch(TOPIC, partition()), Lost(("id", 0)), batch(change(2)), batch(change(3)),
        batch(partition(4)), batch(change(5)),
    ]  # fmt: skip
    found = history_of("copy", told)
    assert [one.metadata_offset for one in found.changes] == [1, 4, 5]
    assert [one.reason for one in found.unreadable] == [
        "changes of partition 0 of topic t from metadata offset 2 on cannot be applied: its state "
        "before is not known"
    ]
    assert (found.damaged_from, found.known_end_offset) == (2, 2)


def test_a_gap_that_a_snapshot_bridges_may_hide_an_election_of_a_controller() -> None:
    """Batches behind the gap are of a run of their own: the epoch before it did not go on."""
    told: list[Part] = [
        batch(TOPIC), Lost(), Snapshot(10, [TOPIC]),
        *[batch(placed("NoOpRecord", offset), leader_epoch=3) for offset in range(10, 15)],
    ]  # fmt: skip
    found = history_of("copy", told)
    assert found.epoch_starts == ((1, 0), (3, 10))
    assert found.unreadable == ()


def test_the_end_of_a_copy_is_committed_by_a_lone_voter_or_up_to_a_snapshot() -> None:
    told: list[Part] = [batch(TOPIC), batch(partition())]
    assert history_of("copy", told).committed_end_offset is None
    assert history_of("copy", told, voters=(1,)).committed_end_offset == 2
    assert history_of("copy", told, voters=(1, 2, 3), snapshot_ends=[1]).committed_end_offset == 1


def test_what_is_said_of_the_copy() -> None:
    note = Unreadable("copy", "file", "something")
    told: list[Part] = [note, Begins(7)]
    found = history_of("copy", told, {"node.id": " 3", "cluster.id": "c "})
    assert (found.node_id, found.cluster_id, found.unreadable) == (3, "c", (note,))
    assert (found.first_offset, found.end_offset) == (7, 7)
    voters = placed("KRaftVoters", 7, voters=[{"voter_id": 2}, {"voter_id": 1}])
    leader = placed("LeaderChange", 8, leader_id=2, voters=[])
    found = history_of("copy", [batch(voters), batch(leader, leader_epoch=4)])
    assert found.voters == (1, 2)
    assert [(c.controller, c.leader_epoch) for c in found.controllers] == [(2, 4)]
