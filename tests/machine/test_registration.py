"""How a registration changes, and how brokers hear of it."""

from replication.machine.leader import propose
from replication.machine.registered import describe, leading_broker, record_isr, registered
from replication.machine.registration import (
    decide,
    go_on_reassigning,
    kraft_change,
    notify,
    register,
    settle,
)
from replication.protocol.rules.election_zookeeper import Election
from tests.machine.worlds import world_of


def test_a_change_is_recorded_and_the_leader_hears_first() -> None:
    world = world_of()
    world.assigned_replicas = (3, 2, 1)

    register(world, Election(2, (1, 2), "clean"), 1, None)

    assert (world.controller.isr, world.controller.partition_epoch) == ((2, 1), 1)
    assert [type(s.fact).__name__ for s in world.steps[-4:]] == [
        "LeadershipRecorded", "BecameLeader", "BecameFollower", "BecameFollower",
    ]  # fmt: skip


def test_a_late_notification_is_ignored() -> None:
    world = world_of()
    register(world, Election(2, (1, 2), "clean"), 1, None)

    notify(world, [3], late=1)

    assert world.broker(3).leader == 2
    assert world.notes[-1] == "3 ignores the notification: stale_leader_epoch"


def test_a_proposal_waits_or_is_settled() -> None:
    waiting, settled = world_of(wait=True), world_of()
    for world in (waiting, settled):
        propose(world, leading_broker(world), frozenset({1, 2}))
        settle(world)

    assert waiting.controller.isr == (1, 2, 3)
    assert waiting.broker(1).proposed == {1, 2}
    assert settled.controller.isr == (1, 2)
    decide(waiting, waiting.broker(1), None)
    assert waiting.controller.isr == (1, 2)


def test_a_change_that_changes_nothing_is_not_recorded() -> None:
    world = world_of()

    kraft_change(world, frozenset({1, 2, 3}), frozenset(), "online")

    assert world.controller.partition_epoch == 0
    assert not go_on_reassigning(world)


def test_what_a_leaders_request_is_held_against() -> None:
    world = world_of()
    world.controller.active.discard(3)
    world.broker(1).followers[2].broker_epoch = 1
    world.broker(2).broker_epoch = 2

    found = registered(world, world.broker(1))

    assert (found.ineligible, found.restarted) == ({3}, {2})


def test_an_isr_that_is_recorded_ends_the_proposal() -> None:
    world = world_of(wait=True)
    propose(world, world.broker(1), frozenset({1}))

    record_isr(world, world.broker(1), frozenset({1}))

    assert world.broker(1).proposed is None
    assert world.broker(1).partition_epoch == world.controller.partition_epoch == 1
    assert len(world.registrations) == 2


def test_a_partition_is_described_with_what_is_observed_of_it() -> None:
    world = world_of()
    before = len(world.steps)

    describe(world)

    assert [type(s.fact).__name__ for s in world.steps[before:]] == [
        "PartitionDescribed", *["CoverageDeclared"] * 8, "LeadershipRecorded",
    ]  # fmt: skip
