"""Producers, consumers and the admin that deletes records: what they ask of a broker, and get.

A client knows only what brokers answer. Commands raise Impossible, with a reason for people, when
they cannot happen.
"""

from replication.machine.leader import answer_again, append_for_producer, delete_before
from replication.machine.machine_state import (
    Broker,
    Impossible,
    World,
)
from replication.machine.producer_state import (
    Batch,
    aborted_contents,
    batch_of,
    known_of_producer,
    transactions_of,
)
from replication.machine.registered import leading_broker
from replication.machine.registration import settle
from replication.protocol.ground import events as ev
from replication.protocol.ground.leader_epoch_cache import end_offset_for_epoch
from replication.protocol.ground.model import clipped
from replication.protocol.rules.consumer_visibility import (
    consumer_visibility,
    consumer_was_truncated,
    latest_offset_available,
    may_read_from_follower,
)
from replication.protocol.rules.last_stable_offset import last_stable_offset
from replication.protocol.rules.producer_sequence import producer_sequence


def produce(
    world: World, label: str, count: int = 1, *, to: int | None = None, acks: str | None = None
) -> bool:
    """A producer sends count records to the registered leader, or to a zombie it knows."""
    target = to if to is not None else world.controller.leader
    if target is None:
        raise Impossible("the partition has no leader")
    if label in world.contents:
        raise Impossible(f"record {label} exists already")
    world.contents.append(label)
    done = append_for_producer(world, world.broker(target), len(world.contents) - 1, count, acks)
    settle(world)
    return done


def produce_in_order(
    world: World, label: str, batch: Batch, count: int = 1, *, to: int, acks: str | None = None
) -> str:
    """An idempotent producer sends, or sends again, a batch; what the leader makes of it."""
    broker = world.broker(to)
    known = known_of_producer(broker.log.spans, world.batches, batch.producer)
    answer = producer_sequence(
        batch.producer_epoch, batch.first_sequence, batch.last_sequence,
        known and known[:2],
        recent=known[2] if known and known[0] == batch.producer_epoch else frozenset(),
    )  # fmt: skip
    if answer == "duplicate" and acks is not None:
        _sent_again(world, broker, label, batch, acks)
        return answer
    if answer != "append":
        world.note(f"{world.name(to)} answers {label}: {answer}")
        return answer
    if label not in world.contents:
        world.contents.append(label)
    content = world.contents.index(label)
    world.batches[content] = batch
    append_for_producer(world, broker, content, count, acks)
    settle(world)
    return answer


def _sent_again(world: World, broker: Broker, label: str, batch: Batch, acks: str | None) -> None:
    """A leader knows a batch: it writes nothing, and answers for what it wrote the first time."""
    world.note(f"{world.name(broker.replica)} knows {label}: duplicate")
    for content in {span.content for span in broker.log.spans if span.content is not None}:
        known = world.batches.get(content)
        if known is not None and _is_same(known, batch):
            answer_again(world, broker, content, acks)
    settle(world)


def _is_same(one: Batch, other: Batch) -> bool:
    """Whether two batches are one by what a log remembers of them."""
    return one.marker is None and (
        (one.producer, one.producer_epoch, one.first_sequence, one.last_sequence)
        == (other.producer, other.producer_epoch, other.first_sequence, other.last_sequence)
    )


def write_marker(world: World, label: str, batch: Batch, *, to: int) -> None:
    """The transaction coordinator ends a transaction at the leader."""
    if label in world.contents:
        raise Impossible(f"{label} was written already")
    world.contents.append(label)
    world.batches[len(world.contents) - 1] = batch
    append_for_producer(world, world.broker(to), len(world.contents) - 1)
    settle(world)


def consume(
    world: World,
    replica: int,
    offset: int,
    *,
    read_committed: bool = False,
    last_epoch: int | None = None,
    near: int | None = None,
) -> int:
    """A consumer reads from offset on one replica; the offset after what it got.

    last_epoch: of the last record it read (KIP-320): it first asks where that epoch ends. near:
    the replica in its own rack, which the leader may send it to (KIP-392).
    """
    broker = world.broker(replica)
    if last_epoch is not None and _was_truncated(world, broker, offset, last_epoch):
        return offset
    if near is not None:
        broker = _preferred_replica(world, broker, near, offset)
    log = broker.log
    transactions = transactions_of(log.spans, world.batches)
    seen = consumer_visibility(
        offset,
        log.log_start_offset,
        log.log_end_offset,
        broker.high_watermark,
        last_stable_offset(broker.high_watermark, transactions),
        read_committed=read_committed,
    )
    if isinstance(seen, str):
        world.note(f"the consumer gets {seen}")
        return offset
    aborted = aborted_contents(log.spans, world.batches) if read_committed else ()
    given = []
    for span in clipped(log.spans, *seen):
        batch = batch_of(span, world.batches)
        if (batch is not None and batch.marker is not None) or span.content in aborted:
            continue
        world.emit(ev.RecordsConsumed(*span))
        given.append(world.contents[span.content or 0])
    if read_committed:
        world.note(f"the consumer gets {', '.join(given) or 'nothing'}, next offset {seen[1]}")
    return seen[1]


def _was_truncated(world: World, leader: Broker, position: int, last_epoch: int) -> bool:
    """Whether the leader's answer tells a consumer that what it read is no longer there."""
    answer = end_offset_for_epoch(
        leader.epoch_entries, last_epoch, leader.log.log_end_offset, leader.behaviour
    )
    gone = consumer_was_truncated(position, last_epoch, answer.leader_epoch, answer.end_offset)
    if gone and answer.end_offset is None:
        world.note(f"the consumer resets: {world.name(leader.replica)} knows no epoch {last_epoch}")
    elif gone:
        world.note(
            f"the consumer resets: {world.name(leader.replica)} ends epoch "
            f"{answer.leader_epoch} at {answer.end_offset}"
        )
    return gone


def _preferred_replica(world: World, leader: Broker, near: int, offset: int) -> Broker:
    """The replica that a leader sends a consumer to, itself if the near one will not do."""
    known = leader.followers.get(near)
    if known is None or known.log_end_offset is None:
        return leader
    may = may_read_from_follower(
        near in leader.isr, known.log_start_offset, known.log_end_offset, offset,
        leader.behaviour,
    )  # fmt: skip
    if not may:
        return leader
    world.note(f"{world.name(leader.replica)} sends the consumer to {world.name(near)}")
    return world.broker(near)


def latest(world: World, replica: int) -> None:
    """A client asks a leader for its latest offset (ListOffsets)."""
    leader = world.broker(replica)
    if leader.role != "leader":
        raise Impossible(f"{world.name(replica)} does not lead")
    available = latest_offset_available(
        leader.high_watermark, leader.leader_epoch_start_offset, leader.behaviour
    )
    text = f"latest offset {leader.high_watermark}" if available else "OFFSET_NOT_AVAILABLE"
    world.note(f"{world.name(replica)} answers the client: {text}")


def delete_records(world: World, before: int | None) -> None:
    """deleteRecords at the registered leader; None: up to its high watermark."""
    delete_before(world, leading_broker(world), before)
