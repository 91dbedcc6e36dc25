"""Producers and consumers: what they ask of a broker, and what they get."""

import pytest

from replication.machine import client
from replication.machine.machine_state import Impossible
from replication.machine.producer_state import Batch
from replication.protocol.ground.events import RecordsAcknowledged, RecordsConsumed
from tests.machine.worlds import world_of


def test_records_go_to_the_registered_leader_and_are_answered() -> None:
    world = world_of(isr=(1,))

    client.produce(world, "b", 2, acks="all")

    assert world.broker(1).log.log_end_offset == 4
    assert [s.fact for s in world.steps if isinstance(s.fact, RecordsAcknowledged)] == [
        RecordsAcknowledged(2, 4, "all", 0, 1)
    ]


def test_a_record_is_written_once_and_by_a_leader() -> None:
    world = world_of()

    with pytest.raises(Impossible, match="exists already"):
        client.produce(world, "a")
    with pytest.raises(Impossible, match="does not lead"):
        client.produce(world, "b", to=2)


def test_a_batch_sent_again_is_a_duplicate() -> None:
    world = world_of()
    batch = Batch("p", 0, 0, 1)

    first = client.produce_in_order(world, "b", batch, 2, to=1)
    again = client.produce_in_order(world, "b", batch, 2, to=1)

    assert (first, again) == ("append", "duplicate")
    assert world.broker(1).log.log_end_offset == 4


def test_a_consumer_reads_up_to_the_high_watermark() -> None:
    world = world_of(high_watermark=1)

    assert client.consume(world, 1, 0) == 1
    assert [s.fact for s in world.steps if isinstance(s.fact, RecordsConsumed)] == [
        RecordsConsumed(0, 1, 0, 0)
    ]


def test_what_a_leader_answers_a_client() -> None:
    world = world_of()

    client.latest(world, 1)
    client.delete_records(world, 3)

    assert world.notes == [
        "1 answers the client: latest offset 2",
        "1 refuses to delete records: OFFSET_OUT_OF_RANGE",
    ]
    with pytest.raises(Impossible, match="does not lead"):
        client.latest(world, 2)


def test_a_batch_sent_again_is_answered_for_as_the_first_one_was() -> None:
    """At acks=all only once it is committed; at acks=1 at once."""
    world = world_of()
    batch = Batch("p", 0, 0, 1)
    client.produce_in_order(world, "b", batch, 2, to=1)
    end = world.broker(1).log.log_end_offset

    for acks, waits in (("1", 0), ("all", 1)):
        assert client.produce_in_order(world, "b", batch, 2, to=1, acks=acks) == "duplicate"
        assert len(world.broker(1).pending) == waits

    told = [s.fact for s in world.steps if isinstance(s.fact, RecordsAcknowledged)]
    assert [(a.first_offset, a.end_offset, a.acks) for a in told] == [(end - 2, end, "1")]
