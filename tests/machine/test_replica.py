"""The two roles of a replica, leader and follower, and what it does to its own log."""

import pytest

from replication.machine.follower import ask, fetch_once, follow, take, truncate_in_rounds
from replication.machine.leader import (
    advance_high_watermark,
    append_for_producer,
    counted_isr,
    delete_before,
    lead,
)
from replication.machine.machine_state import Impossible
from replication.machine.replica import (
    begin_process,
    cached_epochs,
    empty_at,
    end_process,
    forget_replica,
    stop_replica,
)
from replication.protocol.ground.model import EpochEntry
from tests.machine.worlds import world_of


def test_a_leader_counts_the_larger_set_while_a_change_is_in_flight() -> None:
    world = world_of(isr=(1, 2), wait=True)
    leader = world.broker(1)

    leader.proposed = frozenset({1, 3})

    assert counted_isr(leader) == {1, 2, 3}


def test_the_high_watermark_waits_for_a_member_that_has_not_fetched() -> None:
    world = world_of(high_watermark=1)
    leader = world.broker(1)

    advance_high_watermark(world, leader)
    assert leader.high_watermark == 1
    for replica in (2, 3):
        fetch_once(world, world.broker(replica))

    assert leader.high_watermark == 2


def test_who_does_not_lead_appends_nothing_and_a_leader_deletes_what_is_committed() -> None:
    world = world_of()

    with pytest.raises(Impossible, match="does not lead"):
        append_for_producer(world, world.broker(2), 0)
    delete_before(world, world.broker(1), 1)

    assert world.broker(1).log.log_start_offset == 1


def test_a_leader_of_a_new_epoch_caches_it_and_keeps_what_it_knew() -> None:
    world = world_of()
    leader = world.broker(1)
    fetch_once(world, world.broker(2))
    world.controller.leader_epoch = 3

    lead(world, leader, world.controller)

    assert leader.epoch_entries == (EpochEntry(0, 0), EpochEntry(3, 2))
    assert leader.followers[2].log_end_offset == 2


def test_a_follower_asks_takes_and_cuts() -> None:
    world = world_of(ends=(3, 2, 5))
    second, third = world.broker(2), world.broker(3)

    request = ask(world, second)
    answer = fetch_once(world, second)
    assert request is not None
    assert answer is not None
    take(world, second, answer)
    diverging = fetch_once(world, third)
    assert diverging is not None
    take(world, third, diverging)

    assert request.fetch.fetch_offset == 2
    assert (second.log.log_end_offset, third.log.log_end_offset) == (3, 3)


def test_a_follower_of_2_7_truncates_before_it_fetches() -> None:
    world = world_of("2.7.2", ends=(3, 2, 5), kraft=False)
    third = world.broker(3)
    world.controller.leader_epoch = 1
    lead(world, world.broker(1), world.controller)

    follow(world, third, world.controller)
    assert third.truncating
    truncate_in_rounds(world, third)

    assert (third.truncating, third.log.log_end_offset) == (False, 3)


def test_a_process_ends_and_begins_with_what_the_disk_holds() -> None:
    world = world_of()
    broker = world.broker(2)

    end_process(world, broker, "power_loss", surviving=1, high_watermark_checkpoint=2)
    begin_process(world, broker)

    assert (broker.log.log_end_offset, broker.high_watermark) == (1, 1)
    assert (broker.broker_epoch, broker.role) == (2, None)


def test_a_replica_is_emptied_or_forgotten() -> None:
    world = world_of()
    empty_at(world, world.broker(2), 7, "why not")
    stop_replica(world, world.broker(3))
    forget_replica(world.broker(1))

    assert world.broker(2).log.log_start_offset == world.broker(2).log.log_end_offset == 7
    assert [world.broker(n).log.log_end_offset for n in (1, 3)] == [0, 0]
    assert cached_epochs(world.broker(1)) == ()
