"""What one record makes of one partition, and how its leader was elected."""

from dataclasses import replace
from typing import Any

import pytest

from replication.evidence.metadata_log import partition_records
from replication.evidence.metadata_log.broker_records import Standing
from replication.evidence.metadata_log.history import PartitionRegistration

BEFORE = PartitionRegistration("id", "t", 0, 2, 4, 9, (1, 2, 3), (1, 2, 3))
ALIVE = Standing("i", fenced=False, in_controlled_shutdown=False)


def test_a_change_raises_the_partition_epoch_and_with_a_leader_field_the_leader_epoch() -> None:
    after = partition_records.changed(BEFORE, {"isr": [1, 2]})
    assert after == replace(BEFORE, isr=(1, 2), partition_epoch=10)
    after = partition_records.changed(BEFORE, {"leader": -1, "isr": []})
    assert after == replace(BEFORE, leader=None, leader_epoch=5, isr=(), partition_epoch=10)
    assert partition_records.changed(BEFORE, {"leader": 2}).leader_epoch == 5


def test_a_change_keeps_what_it_does_not_name() -> None:
    rich = replace(BEFORE, adding=(4,), elr=(3,), last_known_elr=(1,), recovering=True)
    assert partition_records.changed(rich, {}) == replace(rich, partition_epoch=10)
    after = partition_records.changed(rich, {"leader_recovery_state": 0, "adding_replicas": []})
    assert after == replace(rich, adding=(), recovering=False, partition_epoch=10)


def test_only_what_has_an_elr_is_cleared_and_only_of_that_topic() -> None:
    with_elr = replace(BEFORE, elr=(3,))
    cleared = replace(BEFORE, partition_epoch=10)
    assert partition_records.without_elr(BEFORE, "") is None
    assert partition_records.without_elr(with_elr, "u") is None
    assert partition_records.without_elr(with_elr, "t") == cleared
    assert partition_records.without_elr(replace(BEFORE, last_known_elr=(1,)), "") == cleared


@pytest.mark.parametrize(
    ("old_leader", "kind"),
    [
        (ALIVE, "preferred"),
        (None, "preferred"),
        (replace(ALIVE, fenced=True), "clean"),
        (replace(ALIVE, in_controlled_shutdown=True), "clean"),
    ],
)
def test_preferred_is_the_head_while_the_old_leader_could_have_gone_on(
    old_leader: Standing | None, kind: str
) -> None:
    after = partition_records.changed(BEFORE, {"leader": 1})
    assert partition_records.how_elected(BEFORE, after, old_leader, False) == kind


def test_the_old_leader_out_of_the_isr_or_another_head_makes_it_clean() -> None:
    for change in ({"leader": 1, "isr": [1, 3]}, {"leader": 3}):
        after = partition_records.changed(BEFORE, change)
        assert partition_records.how_elected(BEFORE, after, ALIVE, False) == "clean"


def test_the_mark_of_an_unclean_election_counts_when_it_is_set() -> None:
    change: dict[str, Any] = {"leader": 3, "leader_recovery_state": 1}
    after = partition_records.changed(BEFORE, change)
    assert partition_records.how_elected(BEFORE, after, ALIVE, True) == "unclean"
    marked = replace(BEFORE, recovering=True)
    after = partition_records.changed(marked, change)
    assert partition_records.how_elected(marked, after, ALIVE, True) == "clean"
