"""The executable machine: one topic partition under commands, by the rules of a Kafka version.

Each command is one step of a client, a broker or the controller. The machine changes its World and
emits facts; nothing here judges. Commands raise Impossible, with a reason for people, when they
cannot happen. Scenarios, random runs and the counterfactual share it.

What is not modelled: several partitions per request, segments (the first starts where the log was
given or restarted, and is all of it), record batches (a fetch answers with runs of records), the
metadata quorum.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replication.machine import broker as brokers
from replication.machine import client, controller
from replication.machine.machine_state import Broker, Follower, Impossible, World
from replication.machine.producer_state import Batch
from replication.machine.registered import describe
from replication.machine.registration import notify
from replication.machine.replica import cached_epochs
from replication.protocol.ground import events as ev
from replication.protocol.ground.leader_epoch_cache import assign
from replication.protocol.ground.model import Span
from replication.protocol.ground.replica_log import ReplicaLog
from replication.protocol.ground.versions import Behaviour, parse_version
from replication.protocol.rules.last_caught_up import FetchMemory


@dataclass(frozen=True, slots=True)
class Given:
    """One replica at the start: its spans, high watermark, and the leader epoch it knows."""

    replica: int
    spans: tuple[Span, ...]
    high_watermark: int
    leader_epoch: int
    log_start_offset: int = 0
    leads: bool = False
    stopped: bool = False


class PartitionMachine:
    """One topic partition, several brokers, one controller. world: everything there is.

    Its methods are the commands of all actors by one name each; what they do is in client, broker
    and controller.
    """

    def __init__(
        self,
        behaviour: Behaviour,
        replicas: Iterable[Given],
        isr: Iterable[int],
        *,
        min_insync_replicas: int = 1,
        unclean_leader_election: bool | None = None,
        names: Mapping[int, str] | None = None,
        contents: Iterable[str] = (),
        behaviours: Mapping[int, Behaviour] | None = None,
        assigned_replicas: Iterable[int] | None = None,
        cleanup_policy: str = "delete",
    ) -> None:
        """Builds the partition as given and emits what describes it.

        behaviours: of brokers that run another version. assigned_replicas: all, in the order
        given, unless said. Impossible when two replicas lead.
        """
        given = list(replicas)
        everyone = tuple(g.replica for g in given)
        assigned = everyone if assigned_replicas is None else tuple(assigned_replicas)
        unclean = unclean_leader_election
        self.world = World(
            behaviour,
            assigned,
            min_insync_replicas,
            behaviour.unclean_leader_election if unclean is None else unclean,
            dict(names or {r: str(r) for r in everyone}),
            contents=list(contents),
            command="given",
            topic_id="1" if parse_version(behaviour.kafka_version) >= (2, 8) else "",
            cleanup_policy=cleanup_policy,
        )
        leaders = [g for g in given if g.leads]
        if len(leaders) > 1:
            raise Impossible("two replicas lead")
        c = self.world.controller
        c.leader = leaders[0].replica if leaders else None
        c.leader_epoch = leaders[0].leader_epoch if leaders else max(g.leader_epoch for g in given)
        c.isr = tuple(r for r in assigned if r in set(isr))
        c.active = {g.replica for g in given if not g.stopped}
        for g in given:
            self.world.brokers[g.replica] = self._broker(g, (behaviours or {}).get(g.replica))
        describe(self.world)
        for g in given:
            if g.replica in assigned:
                self._place(g)
            elif g.stopped:
                self.world.brokers[g.replica].running = False

    def _broker(self, given: Given, behaviour: Behaviour | None) -> Broker:
        broker = Broker(given.replica, behaviour or self.world.behaviour, ReplicaLog())
        ends = [s.end_offset for s in given.spans]
        broker.log.replace(
            list(given.spans), given.log_start_offset, max([given.log_start_offset, *ends])
        )
        broker.high_watermark = broker.checkpointed_high_watermark = given.high_watermark
        broker.first_segment_offset = given.log_start_offset
        broker.topic_id = self.world.topic_id
        broker.epoch_entries = cached_epochs(broker)
        return broker

    def _place(self, given: Given) -> None:
        """A replica as given: it leads or follows already, with nothing left to truncate."""
        world, c = self.world, self.world.controller
        broker = world.brokers[given.replica]
        log = broker.log
        world.emit(
            ev.ReplicaLogObserved(
                given.replica,
                log.log_start_offset,
                log.log_end_offset,
                given.spans,
                given.high_watermark,
                None,
                broker.epoch_entries,
                True,
            )
        )
        if given.stopped:
            broker.running = False
            return
        world.emit(
            ev.ReplicaStarted(
                given.replica,
                log.log_start_offset,
                log.log_end_offset,
                given.high_watermark,
                True,
            )
        )
        told = given.leader_epoch == c.leader_epoch
        broker.leader = c.leader if told else None
        broker.leader_epoch = given.leader_epoch
        broker.partition_epoch = c.partition_epoch
        end = log.log_end_offset
        if not given.leads:
            broker.role = "follower"
            if broker.leader is not None:
                broker.truncated_for = (broker.leader, given.leader_epoch)
            world.emit(
                ev.BecameFollower(
                    given.replica, given.leader_epoch, broker.leader, end, given.high_watermark
                )
            )
            return
        broker.role, broker.isr = "leader", frozenset(c.isr)
        own = [s.first_offset for s in given.spans if s.leader_epoch == given.leader_epoch]
        broker.leader_epoch_start_offset = min(own, default=end)
        if broker.behaviour.has("epoch_cached_at_election"):
            broker.epoch_entries = assign(
                broker.epoch_entries,
                given.leader_epoch,
                broker.leader_epoch_start_offset,
                broker.behaviour,
            )
        for r in world.assigned_replicas:
            if r != broker.replica:
                time = world.now_ms if r in broker.isr else 0
                broker.followers[r] = Follower(None, FetchMemory(time))
        world.emit(
            ev.BecameLeader(
                given.replica,
                given.leader_epoch,
                end,
                given.high_watermark,
            )
        )
        world.emit(ev.HighWatermarkAdvanced(given.replica, given.high_watermark), 0)

    # Clients.

    def produce(
        self, label: str, count: int = 1, *, to: int | None = None, acks: str | None = None
    ) -> bool:
        """See client.produce."""
        return client.produce(self.world, label, count, to=to, acks=acks)

    def produce_in_order(
        self, label: str, batch: Batch, count: int = 1, *, to: int, acks: str | None = None
    ) -> str:
        """See client.produce_in_order."""
        return client.produce_in_order(self.world, label, batch, count, to=to, acks=acks)

    def write_marker(self, label: str, batch: Batch, *, to: int) -> None:
        """See client.write_marker."""
        client.write_marker(self.world, label, batch, to=to)

    def consume(
        self,
        replica: int,
        offset: int,
        *,
        read_committed: bool = False,
        last_epoch: int | None = None,
        near: int | None = None,
    ) -> int:
        """See client.consume."""
        return client.consume(
            self.world,
            replica,
            offset,
            read_committed=read_committed,
            last_epoch=last_epoch,
            near=near,
        )

    def latest(self, replica: int) -> None:
        """See client.latest."""
        client.latest(self.world, replica)

    def delete_records(self, before: int | None) -> None:
        """See client.delete_records."""
        client.delete_records(self.world, before)

    # Brokers.

    def fetch(
        self,
        replica: int,
        *,
        response: str = "ok",
        max_records: int | None = None,
        at_once: bool = False,
    ) -> None:
        """See broker.fetch."""
        brokers.fetch(
            self.world, replica, response=response, max_records=max_records, at_once=at_once
        )

    def send_fetch(self, replica: int) -> None:
        """See broker.send_fetch."""
        brokers.send_fetch(self.world, replica)

    def arrive(self, replica: int) -> None:
        """See broker.arrive."""
        brokers.arrive(self.world, replica)

    def receive(self, replica: int) -> None:
        """See broker.receive."""
        brokers.receive(self.world, replica)

    def truncate(self, replica: int) -> None:
        """See broker.truncate."""
        brokers.truncate(self.world, replica)

    def stop(
        self,
        replica: int,
        reason: str = "clean",
        *,
        surviving: int | None = None,
        high_watermark_checkpoint: int | None = None,
        epochs_lost: bool = False,
        directory_deleted: bool = False,
    ) -> None:
        """See broker.stop."""
        brokers.stop(
            self.world,
            replica,
            reason,
            surviving=surviving,
            high_watermark_checkpoint=high_watermark_checkpoint,
            epochs_lost=epochs_lost,
            directory_deleted=directory_deleted,
        )

    def start(self, replica: int, *, deliver: bool = True) -> None:
        """See broker.start."""
        brokers.start(self.world, replica, deliver=deliver)

    def write_high_watermark_checkpoint(self, replica: int) -> None:
        """See broker.write_high_watermark_checkpoint."""
        brokers.write_high_watermark_checkpoint(self.world, replica)

    def isolate(self, replica: int, isolated: bool = True) -> None:
        """See broker.isolate."""
        brokers.isolate(self.world, replica, isolated)

    def upgrade(self, replica: int, behaviour: Behaviour) -> None:
        """See broker.upgrade."""
        brokers.upgrade(self.world, replica, behaviour)

    def compact(self, replica: int, offsets: Iterable[int]) -> None:
        """See broker.compact."""
        brokers.compact(self.world, replica, offsets)

    def propose_isr(self, remove: Iterable[int] = (), add: Iterable[int] = ()) -> None:
        """See broker.propose_isr."""
        brokers.propose_isr(self.world, remove, add)

    def check_lag(self) -> None:
        """See broker.check_lag."""
        brokers.check_lag(self.world)

    def tick(self, milliseconds: int) -> None:
        """Time passes."""
        self.world.now_ms += milliseconds

    # The controller.

    def elect(
        self,
        leader: int,
        *,
        leader_epoch: int | None = None,
        isr: Iterable[int] | None = None,
        deliver: Iterable[int] | None = None,
    ) -> None:
        """See controller.elect."""
        controller.elect(self.world, leader, leader_epoch=leader_epoch, isr=isr, deliver=deliver)

    def elect_by_rule(self, cause: str = "offline") -> None:
        """See controller.elect_by_rule."""
        controller.elect_by_rule(self.world, cause)

    def fence(self, replica: int) -> None:
        """See controller.fence."""
        controller.fence(self.world, replica)

    def unfence(self, replica: int) -> None:
        """See controller.unfence."""
        controller.unfence(self.world, replica)

    def drain(self, replica: int) -> None:
        """See controller.drain."""
        controller.drain(self.world, replica)

    def depose(self) -> None:
        """See controller.depose."""
        controller.depose(self.world)

    def rebalance(self, percentage: int = 10) -> None:
        """See controller.rebalance."""
        controller.rebalance(self.world, percentage)

    def recreate(self) -> None:
        """See controller.recreate."""
        controller.recreate(self.world)

    def reassign(self, target: Iterable[int], deliver: Iterable[int] | None = None) -> None:
        """See controller.reassign."""
        controller.reassign(self.world, target, deliver)

    def decide_isr(self, error: str | None = None) -> None:
        """See controller.decide_isr."""
        controller.decide_isr(self.world, error)

    def ask_for_isr(
        self,
        replica: int,
        isr: Iterable[int],
        *,
        leader_epoch: int | None = None,
        partition_epoch: int | None = None,
        recovering: bool = False,
    ) -> None:
        """See controller.ask_for_isr."""
        controller.ask_for_isr(
            self.world,
            replica,
            isr,
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
            recovering=recovering,
        )

    def upgrade_controller(self, behaviour: Behaviour) -> None:
        """See controller.upgrade_controller."""
        controller.upgrade_controller(self.world, behaviour)

    def deliver(self, replicas: Iterable[int], late: int = 0) -> None:
        """See registration.notify."""
        notify(self.world, replicas, late)
