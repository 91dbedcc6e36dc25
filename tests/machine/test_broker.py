"""One broker under commands: it fetches, stops, starts, is upgraded, and drops who lags."""

import pytest

from replication.machine import broker
from replication.machine.machine_state import Impossible
from replication.protocol.ground.versions import behaviour
from tests.machine.worlds import world_of


def test_a_delayed_answer_arrives_once() -> None:
    world = world_of(ends=(3, 2, 2))

    broker.fetch(world, 2, response="delayed")
    assert world.broker(2).log.log_end_offset == 2
    broker.receive(world, 2)

    assert world.broker(2).log.log_end_offset == 3
    with pytest.raises(Impossible, match="no response"):
        broker.receive(world, 2)


def test_a_request_on_its_way_is_answered_when_it_arrives() -> None:
    world = world_of(ends=(3, 2, 2))

    broker.send_fetch(world, 2)
    broker.arrive(world, 2)

    assert world.broker(2).log.log_end_offset == 3
    with pytest.raises(Impossible, match="on its way"):
        broker.arrive(world, 2)


def test_who_notices_that_a_broker_was_away() -> None:
    for release, kraft, isr, leader_epoch in (
        ("3.9.1", True, (2, 3), 1),
        ("2.2.0", False, (2, 3), 1),
        ("2.1.1", False, (1, 2, 3), 0),
    ):
        world = world_of(release, kraft=kraft)

        broker.stop(world, 1, "process_crash")
        broker.start(world, 1)

        assert (world.controller.isr, world.controller.leader_epoch) == (isr, leader_epoch)


def test_what_a_broker_may_not_do() -> None:
    world = world_of()

    with pytest.raises(Impossible, match="runs already"):
        broker.start(world, 1)
    with pytest.raises(Impossible, match="must be stopped"):
        broker.upgrade(world, 1, behaviour("4.1.0"))
    with pytest.raises(Impossible, match="not compacted"):
        broker.compact(world, 1, [0])
    broker.stop(world, 1)
    with pytest.raises(Impossible, match="stopped already"):
        broker.stop(world, 1)


def test_a_follower_that_lags_leaves_the_isr() -> None:
    world = world_of(ends=(3, 2, 3))
    broker.fetch(world, 3)
    world.now_ms += 30_001

    broker.check_lag(world)

    assert world.controller.isr == (1, 3)


def test_the_checkpoint_is_what_was_written_last() -> None:
    world = world_of(ends=(2,), isr=(1,))
    world.broker(1).checkpointed_high_watermark = 0

    broker.write_high_watermark_checkpoint(world, 1)

    assert world.broker(1).checkpointed_high_watermark == 2
