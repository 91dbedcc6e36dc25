"""The promises of docs/protocol_releases.md 5, each a question to a small world or to its steps."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from replication.machine.machine_state import Broker, World
from replication.machine.states import Logs, Record, copied, logs_of, valid_leader
from tests.protocol.world_states import Node


def committed_prefixes_agree(node: Node) -> bool:
    """Below both high watermarks two replicas hold the same records; a zombie's does not count."""
    world = node.machine.world
    leader = valid_leader(world)
    marks = {
        r: b.high_watermark
        for r, b in world.brokers.items()
        if b.running and (b.role == "follower" or b is leader)
    }
    return all(
        _agree(node.logs[a], node.logs[b], min(marks[a], marks[b]))
        for a, b in itertools.combinations(marks, 2)
    )


def _agree(a: dict[int, tuple[int, int]], b: dict[int, tuple[int, int]], below: int) -> bool:
    return all(a[o] == b[o] for o in a.keys() & b.keys() if o < below)


def epoch_and_offset_name_a_record(node: Node) -> bool:
    """One offset and leader epoch in two logs: the same record, and equal logs below it."""
    for a, b in itertools.combinations(node.logs.values(), 2):
        shared = sorted(a.keys() & b.keys(), reverse=True)
        top = next((o for o in shared if a[o][0] == b[o][0] >= 0), None)
        if top is not None and not _agree(a, b, top + 1):
            return False
    return True


def leader_high_watermark_monotonic(before: Node, after: Node) -> bool:
    for b in after.machine.world.brokers.values():
        old = before.machine.world.brokers[b.replica]
        if _leads_on(old, b) and b.high_watermark < old.high_watermark:
            return False
    return True


def _leads_on(old: Broker, new: Broker) -> bool:
    """Within one leadership: a restart begins another."""
    same = new.role == old.role == "leader" and new.leader_epoch == old.leader_epoch
    return same and new.broker_epoch == old.broker_epoch


def high_watermark_within_log(node: Node) -> bool:
    brokers = node.machine.world.brokers.values()
    return all(b.high_watermark <= b.log.log_end_offset for b in brokers if b.running)


def log_start_within_high_watermark(node: Node) -> bool:
    brokers = node.machine.world.brokers.values()
    return all(b.log.log_start_offset <= b.high_watermark for b in brokers if b.running)


def isr_reaches_high_watermark(node: Node) -> bool:
    """In a leader's view; of a member that it has not heard of yet it has none."""
    for leader in node.machine.world.brokers.values():
        if leader.role != "leader":
            continue
        for replica in (leader.isr | (leader.proposed or frozenset())) - {leader.replica}:
            known = leader.followers[replica].log_end_offset
            if known is not None and known < leader.high_watermark:
                return False
    return True


def epochs_rise_along_a_log(node: Node) -> bool:
    for log in node.logs.values():
        epochs = [log[o][0] for o in sorted(log)]
        if any(a > b for a, b in itertools.pairwise(epochs)):
            return False
    return True


def epoch_cache_rises(node: Node) -> bool:
    """Strictly in both columns, and within the log."""
    for b in node.machine.world.brokers.values():
        for a, c in itertools.pairwise(b.epoch_entries):
            if a.leader_epoch >= c.leader_epoch or a.start_offset >= c.start_offset:
                return False
        last = b.epoch_entries[-1].start_offset if b.epoch_entries else 0
        if b.running and last > b.log.log_end_offset:
            return False
    return True


def committed_records_survive(node: Node) -> bool:
    """The leader that the controller names has every record committed before."""
    return _has_all(node, node.committed)


def acknowledged_records_survive(node: Node) -> bool:
    """The same for what was acknowledged with acks=all."""
    return _has_all(node, node.acknowledged)


def reads_stay_true(node: Node) -> bool:
    """No leader shows another record where a consumer has read one."""
    leader = valid_leader(node.machine.world)
    if leader is None:
        return True
    log = node.logs[leader.replica]
    return all(log.get(o, (e, x)) == (e, x) for o, e, x in node.read if o < leader.high_watermark)


def _has_all(node: Node, records: frozenset[Record]) -> bool:
    leader = valid_leader(node.machine.world)
    if leader is None:
        return True
    log, begins = node.logs[leader.replica], leader.log.log_start_offset
    return all(log.get(o) == (e, x) for o, e, x in records if o >= begins)


def leader_in_isr(node: Node) -> bool:
    c = node.machine.world.controller
    return c.leader is None or c.leader in c.isr


def eligible_replicas_are_outside(node: Node) -> bool:
    """Eligible leader replicas are no members of the ISR, and none are kept at min.insync."""
    world = node.machine.world
    c = world.controller
    least = min(world.min_insync_replicas, len(world.assigned_replicas))
    return not (c.eligible & set(c.isr)) and not (c.eligible and len(c.isr) >= least)


def high_watermark_waits_for_min_insync(before: Node, after: Node) -> bool:
    world = after.machine.world
    least = min(world.min_insync_replicas, len(world.assigned_replicas))
    for b in world.brokers.values():
        old = before.machine.world.brokers[b.replica]
        if _leads_on(old, b) and b.high_watermark > old.high_watermark and len(b.isr) < least:
            return False
    return True


def leader_never_truncates(before: Node, after: Node) -> bool:
    for b in after.machine.world.brokers.values():
        old = before.machine.world.brokers[b.replica]
        if _leads_on(old, b) and b.log.log_end_offset < old.log.log_end_offset:
            return False
    return True


def truncation_spares_committed(before: Node, after: Node) -> bool:
    """A follower that runs on, or restarts with all it had, cuts nothing that was committed."""
    for b in after.machine.world.brokers.values():
        old = before.machine.world.brokers[b.replica]
        if not (b.running and old.running):
            continue
        now, begins = after.logs[b.replica], b.log.log_start_offset
        for offset, record in before.logs[b.replica].items():
            gone = now.get(offset) != record and offset >= begins
            if gone and (offset, *record) in before.committed:
                return False
    return True


def replicas_converge(node: Node) -> bool:
    """Once every broker runs, hears and has fetched all, no two logs differ anywhere."""
    if not _differ(node.logs):
        return True
    machine = copied(node.machine)
    leader = machine.world.controller.leader
    if leader is None or not machine.world.brokers[leader].running:
        return True
    for b in machine.world.brokers.values():
        if not b.running:
            machine.start(b.replica)
    machine.deliver(machine.world.assigned_replicas)
    for _ in range(4):
        for b in machine.world.brokers.values():
            if b.role == "follower" and b.running:
                machine.fetch(b.replica)
    return not _differ(_unless_offline(machine.world))


def _unless_offline(world: World) -> Logs:
    return logs_of(world) if world.controller.leader is not None else {}


def _differ(logs: Logs) -> bool:
    return any(
        a[o] != b[o]
        for a, b in itertools.combinations(logs.values(), 2)
        for o in a.keys() & b.keys()
    )


@dataclass(frozen=True)
class Promise:
    """One row of the page. state or step: the question, to a state or to the step between two."""

    row: str
    name: str
    state: Callable[[Node], bool] | None = None
    step: Callable[[Node, Node], bool] | None = None


def _of_state(row: str, question: Callable[[Node], bool]) -> Promise:
    return Promise(row, question.__name__, state=question)


def _of_step(row: str, question: Callable[[Node, Node], bool]) -> Promise:
    return Promise(row, question.__name__, step=question)


PROMISES = (
    _of_state("I1", committed_prefixes_agree),
    _of_state("I2", epoch_and_offset_name_a_record),
    _of_state("-", replicas_converge),
    _of_step("I3", leader_high_watermark_monotonic),
    _of_state("I6", high_watermark_within_log),
    _of_state("I7", log_start_within_high_watermark),
    _of_state("I8", isr_reaches_high_watermark),
    _of_state("I9", epochs_rise_along_a_log),
    _of_state("I12", epoch_cache_rises),
    _of_state("I13", committed_records_survive),
    _of_state("I14", acknowledged_records_survive),
    _of_state("I15", leader_in_isr),
    _of_state("I16", eligible_replicas_are_outside),
    _of_state("I17", reads_stay_true),
    _of_step("I18", high_watermark_waits_for_min_insync),
    _of_step("I19", leader_never_truncates),
    _of_step("I19", truncation_spares_committed),
)
