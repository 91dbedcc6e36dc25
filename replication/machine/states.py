"""A world of the machine as one state among many: its copy, its logs, its identity.

Whoever searches all that can happen needs these. States that differ only in the names of replicas
or of records are one.
"""

import hashlib
import itertools
import marshal
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from replication.machine.machine_state import Broker, Follower, World
from replication.machine.partition_machine import PartitionMachine
from replication.protocol.ground.model import Span
from replication.protocol.ground.replica_log import ReplicaLog

NOBODY = 9
Record = tuple[int, int, int]
"""Offset, leader epoch (-1 before 0.11), content."""
Logs = dict[int, dict[int, tuple[int, int]]]
"""By replica: offset -> (leader epoch, content)."""

_broker_values = attrgetter(*(f.name for f in fields(Broker)))
_follower_values = attrgetter(*(f.name for f in fields(Follower)))


def logs_of(world: World) -> Logs:
    """Every replica's records by offset."""
    return {r: records_of(b.log.spans) for r, b in world.brokers.items()}


def records_of(spans: Iterable[Span]) -> dict[int, tuple[int, int]]:
    """Offset -> (leader epoch, content)."""
    return {
        offset: (number(leader_epoch), number(content))
        for first, end, leader_epoch, content in spans
        for offset in range(first, end)
    }


def number(value: int | None) -> int:
    """What is not known, as -1."""
    return -1 if value is None else value


def copied(machine: PartitionMachine) -> PartitionMachine:
    """An independent copy, without the facts emitted so far."""
    old = machine.world
    c = replace(old.controller, active=set(old.controller.active))
    world = World(
        old.behaviour,
        old.assigned_replicas,
        old.min_insync_replicas,
        old.unclean_leader_election,
        old.names,
        {r: _copied_broker(b) for r, b in old.brokers.items()},
        c,
        list(old.contents),
        topic_id=old.topic_id,
    )
    new = object.__new__(PartitionMachine)
    new.world = world
    return new


def _copied_broker(b: Broker) -> Broker:
    new = Broker(*_broker_values(b))
    new.log = ReplicaLog(b.log.log_start_offset, b.log.log_end_offset, list(b.log.spans))
    new.followers = {r: Follower(*_follower_values(f)) for r, f in b.followers.items()}
    new.pending = list(b.pending)
    return new


def valid_leader(world: World) -> Broker | None:
    """The leader that the controller names, once it knows."""
    c = world.controller
    if c.leader is None:
        return None
    b = world.brokers[c.leader]
    return b if b.role == "leader" and b.leader_epoch == c.leader_epoch else None


def identity(
    world: World,
    logs: Logs,
    promised: Sequence[frozenset[Record]],
    left: tuple[Any, ...],
    classes: dict[int, int] | None = None,
) -> bytes:
    """A state's identity: the least over renamings of replicas, records named by appearance.

    promised: sets of records that count besides; left: what else tells states apart. classes: a
    number for each replica that tells it apart from those with another one.
    """
    shapes = {r: _shape(world, logs, b) for r, b in world.brokers.items()}
    if classes is not None:
        shapes = {r: (*shape, classes[r]) for r, shape in shapes.items()}
    ordered = sorted(shapes, key=shapes.__getitem__)
    orders: Iterable[tuple[int, ...]] = [tuple(ordered)]
    if any(shapes[a] == shapes[b] for a, b in itertools.pairwise(ordered)):
        orders = (
            order
            for order in itertools.permutations(ordered)
            if all(shapes[a] <= shapes[b] for a, b in itertools.pairwise(order))
        )
    return min(_digest(world, logs, promised, left, order, shapes) for order in orders)


def _digest(
    world: World,
    logs: Logs,
    promised: Sequence[frozenset[Record]],
    left: tuple[Any, ...],
    order: tuple[int, ...],
    shapes: dict[int, Any],
) -> bytes:
    to: dict[int | None, int] = {r: n for n, r in enumerate(order)}
    to[None] = NOBODY
    contents: dict[int, int] = {}
    c = world.controller
    whole = (
        [(shapes[r], *_renamed(world, logs, r, to, contents)) for r in order],
        (to[c.leader], c.leader_epoch, _renamed_set(c.isr, to), _renamed_set(c.eligible, to),
         _renamed_set(c.active, to), to[c.last_known_leader], c.recovering),
        [sorted((o, e, contents.setdefault(x, len(contents))) for o, e, x in sorted(records))
         for records in promised],
        left,
    )  # fmt: skip
    # Version 2 of marshal writes equal values as equal bytes.
    return hashlib.blake2b(marshal.dumps(whole, 2), digest_size=16).digest()


def _shape(world: World, logs: Logs, b: Broker) -> tuple[Any, ...]:
    """What a broker is without the names of others and of records."""
    c = world.controller
    return (
        b.role or "", number(b.leader_epoch), b.running, b.isolated, b.log.log_start_offset,
        b.log.log_end_offset, b.high_watermark, b.checkpointed_high_watermark, b.clean,
        tuple((o, e) for o, (e, _) in sorted(logs[b.replica].items())),
        tuple(tuple(e) for e in b.epoch_entries), b.partition_epoch == c.partition_epoch,
        b.truncating, b.fetching, b.leader_epoch_start_offset if b.role == "leader" else 0,
        b.replica in c.isr, b.replica == c.leader,
        tuple((p.span[0], p.leader_epoch) for p in b.pending),
    )  # fmt: skip


def _renamed(
    world: World, logs: Logs, replica: int, to: dict[int | None, int], contents: dict[int, int]
) -> tuple[Any, ...]:
    b = world.brokers[replica]
    sent = world.behaviour.has("fetch_answers_at_once_for_new_high_watermark")
    return (
        [contents.setdefault(x, len(contents)) for _, (_, x) in sorted(logs[replica].items())],
        to[b.leader],
        (to[b.truncated_for[0]], b.truncated_for[1]) if b.truncated_for else (),
        _renamed_set(b.isr, to),
        [NOBODY] if b.proposed is None else _renamed_set(b.proposed, to),
        sorted(
            (
                to[r], number(f.log_end_offset), f.memory.last_caught_up_ms > 0,
                f.memory.last_fetch_ms > 0, number(f.memory.leader_log_end_offset),
                f.broker_epoch == world.brokers[r].broker_epoch,
                number(f.last_sent_high_watermark) if sent else 0,
            )
            for r, f in b.followers.items()
        ),
    )  # fmt: skip


def _renamed_set(replicas: Iterable[int], to: dict[int | None, int]) -> list[int]:
    return sorted(to[r] for r in replicas)
