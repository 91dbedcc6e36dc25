"""The controller under commands: elect, fence, drain, reassign, answer ISR requests."""

import pytest

from replication.machine import controller
from replication.machine.machine_state import Impossible
from replication.protocol.ground.versions import behaviour
from tests.machine.worlds import world_of


def test_a_fenced_leader_is_replaced_and_comes_back_as_a_follower() -> None:
    world = world_of()

    controller.fence(world, 1)
    controller.unfence(world, 1)

    c = world.controller
    assert (c.leader, c.leader_epoch, c.isr) == (2, 1, (2, 3))
    assert world.broker(2).role == "leader"
    assert world.broker(1).role == "follower"


def test_an_election_names_its_epoch() -> None:
    world = world_of()

    controller.elect(world, 3, leader_epoch=7, isr=[2, 3])

    assert (world.controller.leader, world.controller.leader_epoch) == (3, 7)
    with pytest.raises(Impossible, match="not above 7"):
        controller.elect(world, 2, leader_epoch=7)


def test_a_drained_zookeeper_leader_goes_on_where_nobody_else_is_in_sync() -> None:
    world = world_of("3.4.1", kraft=False, isr=(1,))

    controller.drain(world, 1)

    assert world.controller.leader == 1
    assert world.notes == ["1 goes on leading: nobody else is in the ISR"]


def test_a_deposed_controller_is_not_heard() -> None:
    world = world_of(kraft=False)
    world.broker(2).isolated = True

    controller.depose(world)

    assert [b.controller_epoch for b in world.brokers.values()] == [1, 0, 1]


def test_a_reassignment_puts_its_target_first() -> None:
    world = world_of(isr=(1, 2))

    controller.reassign(world, (3, 1))

    assert (world.assigned_replicas, world.reassigned_to) == ((3, 1, 2), (3, 1))


def test_a_topic_created_again_is_empty_and_another() -> None:
    world = world_of()

    controller.recreate(world)

    assert world.topic_id == "2"
    assert [b.log.log_end_offset for b in world.brokers.values()] == [0, 0, 0]


def test_a_request_for_an_isr_is_checked_by_the_controllers_release() -> None:
    world = world_of("3.2.3", isr=(1, 2))
    world.controller.active.discard(3)

    controller.ask_for_isr(world, 1, [1, 2, 3])
    assert world.controller.isr == (1, 2, 3)
    controller.upgrade_controller(world, behaviour("3.3.2", controller="kraft"))
    controller.ask_for_isr(world, 1, [1, 3])

    assert world.controller.isr == (1, 2, 3)
    assert world.notes == ["the controller refuses the ISR of 1: OPERATION_NOT_ATTEMPTED"]
    with pytest.raises(Impossible, match="no ISR change"):
        controller.decide_isr(world)


def test_a_preferred_election_and_the_check_of_leader_imbalance() -> None:
    world = world_of()
    controller.elect(world, 2)

    controller.rebalance(world, 0)

    assert world.controller.leader == 1
