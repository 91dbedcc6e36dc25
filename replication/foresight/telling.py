"""One telling of an incident by the machine, and what may be done in it: by evidence, or otherwise.

Offsets are the machine's own. Commands that cannot happen leave a telling as it is.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from replication.foresight.script import Registered, Script, Started, Stopped, Write
from replication.machine.machine_state import Broker, Impossible
from replication.machine.machine_state import World as MachineWorld
from replication.machine.partition_machine import Given, PartitionMachine
from replication.machine.states import copied, valid_leader
from replication.protocol.ground.events import (
    UNCLEAN_KINDS,
    LeadershipRecorded,
    RecordsAcknowledged,
)
from replication.protocol.ground.versions import Behaviour


class Change(NamedTuple):
    """What the registration's change was brought about by: lag, away, drain, preferred, forced,
    elect. replica: who lagged, was away, or was elected."""

    cause: str
    replica: int | None


@dataclass(frozen=True, slots=True)
class World:
    """The settings of one telling. acks: what producers ask for, None for what they asked;
    flushed: no power failure takes anything."""

    behaviour: Behaviour
    replicas: tuple[int, ...]
    min_insync_replicas: int
    unclean: bool
    acks: str | None = None
    flushed: bool = False


@dataclass(frozen=True, slots=True)
class Telling:
    """One telling so far. acked, committed: numbers of writes that were answered as asked for, and
    that a valid leader committed; with_isr: by how many members of the ISR each was answered;
    written: those that some leader took; done: what was done, in
    words; leaderless: ms without a leader; last: the last leader; unclean: whether the last
    registration was an unclean election."""

    machine: PartitionMachine
    acked: frozenset[int] = frozenset()
    committed: frozenset[int] = frozenset()
    with_isr: frozenset[tuple[int, int]] = frozenset()
    written: frozenset[int] = frozenset()
    done: tuple[str, ...] = ()
    leaderless: int = 0
    last: int | None = None
    unclean: bool = False

    def key(self) -> tuple[object, ...]:
        """What tells this telling from others. Of followers' high watermarks nothing is kept where
        no rule of the release cuts by them, of fetches only what their leader knows by them."""
        world = self.machine.world
        c = world.controller
        by_high_watermark = not world.behaviour.has("truncates_by_common_epoch")
        rows = tuple(
            (
                b.running, b.isolated, b.role, b.leader, b.leader_epoch, b.truncating,
                b.high_watermark if b.role == "leader" or by_high_watermark else 0,
                b.checkpointed_high_watermark if by_high_watermark else 0, b.clean,
                tuple(map(tuple, b.epoch_entries)), tuple(map(tuple, b.log.spans)),
                tuple((r, f.log_end_offset) for r, f in sorted(b.followers.items())),
                None if b.proposed is None else tuple(sorted(b.proposed)),
            )
            for _, b in sorted(world.brokers.items())
        )  # fmt: skip
        registered = (c.leader, c.leader_epoch, frozenset(c.isr), c.eligible, frozenset(c.active))
        promised = (self.acked, self.committed, self.with_isr)
        return rows, registered, c.last_known_leader, promised, self.last, self.unclean

    def looks(self, replicas: Iterable[int]) -> tuple[object, ...]:
        """What a telling under other settings has to agree in, to go on as this one."""
        world = self.machine.world
        c = world.controller
        kept = set(replicas)
        rows = tuple(
            (b.replica, b.running, b.isolated, b.role, b.high_watermark,
             tuple((s.first_offset, s.end_offset, s.content) for s in b.log.spans))
            for r, b in sorted(world.brokers.items())
            if r in kept
        )  # fmt: skip
        return c.leader, frozenset(c.isr) & kept, rows


def begin(script: Script, world: World) -> Telling:
    """The partition before its first record."""
    rows = [Given(r, (), 0, 0, 0, r == script.leader) for r in world.replicas]
    machine = PartitionMachine(
        world.behaviour,
        rows,
        world.replicas,
        min_insync_replicas=world.min_insync_replicas,
        unclean_leader_election=world.unclean,
    )
    return _noted(Telling(machine, last=script.leader), "")


def _noted(telling: Telling, done: str) -> Telling:
    """After a step: what it promised, and which broker leads."""
    world = telling.machine.world
    acked = telling.acked | _numbers(
        world, (s.fact.content for s in world.steps if isinstance(s.fact, RecordsAcknowledged))
    )
    registered = [s.fact for s in world.steps if isinstance(s.fact, LeadershipRecorded)]
    leader = valid_leader(world)
    committed = telling.committed
    if leader is not None:
        below = (s for s in leader.log.spans if s.end_offset <= leader.high_watermark)
        committed |= _numbers(world, (s.content for s in below))
    world.steps.clear()
    members = len(world.controller.isr)
    return replace(
        telling,
        acked=acked,
        with_isr=telling.with_isr | {(n, members) for n in acked - telling.acked},
        committed=committed,
        done=(*telling.done, done) if done else telling.done,
        last=world.controller.leader if leader is not None else telling.last,
        unclean=registered[-1].election_kind in UNCLEAN_KINDS if registered else telling.unclean,
    )


def _numbers(world: MachineWorld, contents: Iterable[int | None]) -> set[int]:
    """The numbers of the writes with these contents."""
    names = (world.contents[content] for content in contents if content is not None)
    return {int(name[1:]) for name in names if name.startswith("w")}


def _copy(telling: Telling) -> PartitionMachine:
    machine = copied(telling.machine)
    machine.world.command = "again"
    return machine


def fetched(telling: Telling, replica: int, *, lost: bool = False) -> Telling | None:
    """A follower fetches once (lost: it gets no answer); None where that changes nothing."""
    b = telling.machine.world.brokers[replica]
    if b.role != "follower" or not b.running or b.leader is None:
        return None
    machine = _copy(telling)
    try:
        machine.fetch(replica, response="lost" if lost else "ok")
    except Impossible:
        return None
    then = _noted(
        replace(telling, machine=machine), f"broker {replica} fetches{' in vain' if lost else ''}"
    )
    return None if then.key() == telling.key() else then


def wrote(telling: Telling, write: Write, world: World, *, at_leader: bool) -> Telling | None:
    """A producer's records are sent to their leader, or (at_leader) to whoever leads now. None
    where the leader of the evidence does not lead, or writes them elsewhere."""
    machine = _copy(telling)
    now = machine.world.controller.leader
    target = now if at_leader or write.leader is None else write.leader
    acks = write.acks if world.acks is None or write.acks is None else world.acks
    if target is None:
        return replace(telling, done=(*telling.done, f"write {write.number}: nobody leads"))
    b = machine.world.brokers[target]
    if not at_leader and (b.role != "leader" or b.log.log_end_offset > write.first):
        return None
    try:
        if not at_leader and b.log.log_end_offset < write.first:
            # Records that nobody was answered for.
            label = f"x{write.number}"
            machine.produce(label, write.first - b.log.log_end_offset, to=target)
        label, count = f"w{write.number}", write.end - write.first
        taken = machine.produce(label, count, to=target, acks=acks)
    except Impossible:
        taken = False
    if not taken and not at_leader:
        return None
    said = "writes" if taken else "refuses"
    then = replace(telling, machine=machine)
    if taken:
        then = replace(then, written=then.written | {write.number})
    return _noted(then, f"broker {target} {said} write {write.number}")


def stopped(telling: Telling, stop: Stopped, world: World) -> Telling | None:
    """A broker ends; None where it holds less than it came back with."""
    machine = _copy(telling)
    b = machine.world.brokers[stop.replica]
    if not b.running:
        return telling
    end = b.log.log_end_offset
    kept = end if stop.kept is None or world.flushed else stop.kept
    if kept > end:
        return None
    reason = "clean" if stop.reason == "clean" else "process_crash"
    try:
        if kept < end:
            surviving = max(kept, b.first_segment_offset)
            machine.stop(stop.replica, "power_loss", surviving=surviving)
        elif reason == "clean" or stop.high_watermark is None:
            machine.stop(stop.replica, reason)
        else:
            file = min(stop.high_watermark, b.high_watermark)
            machine.stop(stop.replica, reason, high_watermark_checkpoint=file)
    except Impossible:
        return None
    lost = f" and loses offsets {kept}..{end - 1}" if kept < end else ""
    return _noted(replace(telling, machine=machine), f"broker {stop.replica} stops{lost}")


def started(telling: Telling, start: Started) -> Telling:
    """A broker starts, and is cut off no longer. With ZooKeeper nobody was the controller while no
    broker ran: of those who ended meanwhile it hears only now."""
    machine = _copy(telling)
    b, world = machine.world.brokers[start.replica], machine.world
    nobody_ran = not any(one.running and not one.isolated for one in world.brokers.values())
    if nobody_ran and world.behaviour.controller == "zookeeper":
        world.controller.active.clear()
        if world.controller.leader != start.replica:
            world.controller.leader = None
    try:
        machine.isolate(start.replica, False)
        if not b.running:
            machine.start(start.replica)
        elif start.replica not in machine.world.controller.active:
            machine.unfence(start.replica)
        machine.deliver([start.replica])
    except Impossible:
        return telling
    return _noted(replace(telling, machine=machine), f"broker {start.replica} starts")


def back(telling: Telling, replica: int) -> Telling:
    """A broker that was away is there again."""
    b = telling.machine.world.brokers[replica]
    if not b.isolated or not b.running:
        return telling
    return started(telling, Started(replica, None))


def changed(telling: Telling, change: Change, registered: Registered) -> Telling | None:
    """The registration changes by this cause; None where it cannot."""
    machine = _copy(telling)
    c, replica = machine.world.controller, change.replica
    try:
        if change.cause == "lag" and replica is not None:
            if c.leader is None or replica not in c.isr or replica == c.leader:
                return None
            machine.propose_isr([replica])
        elif change.cause == "away" and replica is not None:
            machine.isolate(replica)
            machine.fence(replica)
        elif change.cause == "drain" and replica is not None:
            machine.drain(replica)
        elif change.cause == "preferred":
            machine.elect_by_rule("preferred")
        elif change.cause == "forced":
            machine.elect_by_rule("unclean")
        elif replica is not None:
            if replica not in c.isr and change.cause != "elect_unclean":
                return None
            machine.elect(replica, isr=registered.isr)
    except Impossible:
        return None
    who = "" if replica is None else f" (broker {replica})"
    return _noted(replace(telling, machine=machine), f"registration: {change.cause}{who}")


def time_passes(telling: Telling, milliseconds: int) -> Telling:
    """Counts the time in which nobody leads."""
    if telling.machine.world.controller.leader is not None or milliseconds <= 0:
        return telling
    return replace(telling, leaderless=telling.leaderless + milliseconds)


def fate(telling: Telling, write: Write, down: frozenset[int] = frozenset()) -> str:
    """What became of a write: kept, lost, or open: nobody leads, and who has it may lead by an
    unclean election alone, since all others stay down."""
    world = telling.machine.world
    leader, c = valid_leader(world), world.controller
    having = {b.replica for b in world.brokers.values() if _has(world, b, write)}
    if leader is not None:
        return "kept" if leader.replica in having else "lost"
    may_lead = {*c.isr, *c.eligible} - down
    if having & may_lead:
        return "kept"
    return "lost" if may_lead or not having else "open"


def _has(world: MachineWorld, broker: Broker, write: Write) -> bool:
    """Whether a broker's log has all records of a write."""
    count = sum(
        s.end_offset - s.first_offset
        for s in broker.log.spans
        if s.content is not None and world.contents[s.content] == f"w{write.number}"
    )
    return count == write.end - write.first
