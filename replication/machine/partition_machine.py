"""The executable machine: one topic partition under commands, by the rules of a Kafka version.

Each command is one step of a producer, a broker or the controller. The machine changes its World
and emits facts; nothing here judges. Commands raise Impossible, with a reason for people, when
they cannot happen. Scenarios, random runs and the counterfactual share it.

What is not modelled: several partitions per request, segments (the first starts where the log was
given or restarted, and is all of it), record batches (a fetch answers with runs of records), the
metadata quorum.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replication.machine.machine_state import (
    Broker,
    Controller,
    Follower,
    Impossible,
    Response,
    World,
)
from replication.machine.producer_state import (
    Batch,
    aborted_contents,
    batch_of,
    known_of_producer,
    transactions_of,
)
from replication.machine.replica_machine import (
    after_isr_commit,
    arrive,
    ask,
    cached_epochs,
    delete_records,
    fetch,
    follow,
    forget_replica,
    lead,
    leadership_fact,
    produce,
    proposal_of,
    propose_isr,
    receive,
    record_isr,
    registered,
    remember_registration,
    start,
    stop,
    stop_replica,
    truncate,
)
from replication.protocol.ground import events as ev
from replication.protocol.ground.leader_epoch_cache import assign, end_offset_for_epoch
from replication.protocol.ground.model import Span, clipped
from replication.protocol.ground.replica_log import ReplicaLog
from replication.protocol.ground.versions import Behaviour, parse_version
from replication.protocol.rules.broker_registration import broker_registration
from replication.protocol.rules.consumer_visibility import (
    consumer_visibility,
    consumer_was_truncated,
    latest_offset_available,
    may_read_from_follower,
)
from replication.protocol.rules.controller_fencing import controller_fencing
from replication.protocol.rules.election_kraft import election_kraft, raises_leader_epoch
from replication.protocol.rules.election_zookeeper import (
    Election,
    election_zookeeper,
    isr_without_dead_broker,
)
from replication.protocol.rules.eligible_leader_replicas import eligible_leader_replicas
from replication.protocol.rules.isr_commit import (
    IsrProposal,
    isr_commit,
    keeps_pending,
    request_version,
)
from replication.protocol.rules.isr_shrink import Progress, isr_shrink
from replication.protocol.rules.last_caught_up import FetchMemory
from replication.protocol.rules.last_stable_offset import last_stable_offset
from replication.protocol.rules.preferred_leader_imbalance import preferred_leader_imbalance
from replication.protocol.rules.produce_admission import effective_min_insync_replicas
from replication.protocol.rules.producer_sequence import producer_sequence
from replication.protocol.rules.reassignment import Assignment, reassignment
from replication.protocol.rules.topic_identity import topic_identity

COVERED = ("controller_history", "broker_log", "acknowledgements", "consumptions", "payloads")


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
    """One topic partition, several brokers, one controller. world: everything there is."""

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
        )
        self.cleanup_policy = cleanup_policy
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
        self._describe()
        for g in given:
            if g.replica in assigned:
                self._place(g)

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

    def _describe(self) -> None:
        world = self.world
        world.emit(
            ev.PartitionDescribed(
                world.assigned_replicas,
                world.min_insync_replicas,
                world.unclean_leader_election,
                self.cleanup_policy,
                world.behaviour.kafka_version,
                world.behaviour.inter_broker_version,
                world.behaviour.controller,
            )
        )
        for subject in COVERED:
            world.emit(ev.CoverageDeclared(subject, None, True))
        for replica in world.brokers:
            world.emit(ev.CoverageDeclared("replica_trace", replica, True))
        world.emit(leadership_fact(world, None if world.controller.leader is None else "initial"))
        remember_registration(world)

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

    # Producers and consumers.

    def produce(
        self, label: str, count: int = 1, *, to: int | None = None, acks: str | None = None
    ) -> bool:
        """A producer sends count records to the registered leader, or to a zombie it knows."""
        world = self.world
        target = to if to is not None else world.controller.leader
        if target is None:
            raise Impossible("the partition has no leader")
        if label in world.contents:
            raise Impossible(f"record {label} exists already")
        world.contents.append(label)
        done = produce(world, world.broker(target), len(world.contents) - 1, count, acks)
        self._settle()
        return done

    def produce_in_order(
        self, label: str, batch: Batch, count: int = 1, *, to: int, acks: str | None = None
    ) -> str:
        """An idempotent producer sends, or sends again, a batch; what the leader makes of it."""
        world, broker = self.world, self.world.broker(to)
        known = known_of_producer(broker.log.spans, world.batches, batch.producer)
        answer = producer_sequence(
            batch.producer_epoch, batch.first_sequence, batch.last_sequence,
            known and known[:2],
            recent=known[2] if known and known[0] == batch.producer_epoch else frozenset(),
        )  # fmt: skip
        if answer != "append":
            world.note(f"{world.name(to)} answers {label}: {answer}")
            return answer
        if label not in world.contents:
            world.contents.append(label)
        content = world.contents.index(label)
        world.batches[content] = batch
        produce(world, broker, content, count, acks)
        self._settle()
        return answer

    def write_marker(self, label: str, batch: Batch, *, to: int) -> None:
        """The transaction coordinator ends a transaction at the leader."""
        world = self.world
        if label in world.contents:
            raise Impossible(f"{label} was written already")
        world.contents.append(label)
        world.batches[len(world.contents) - 1] = batch
        produce(world, world.broker(to), len(world.contents) - 1)
        self._settle()

    def consume(
        self,
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
        world, broker = self.world, self.world.broker(replica)
        if last_epoch is not None and self._was_truncated(broker, offset, last_epoch):
            return offset
        if near is not None:
            broker = self._preferred_replica(broker, near, offset)
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

    def _was_truncated(self, leader: Broker, position: int, last_epoch: int) -> bool:
        """Whether the leader's answer tells a consumer that what it read is no longer there."""
        world = self.world
        answer = end_offset_for_epoch(
            leader.epoch_entries, last_epoch, leader.log.log_end_offset, leader.behaviour
        )
        gone = consumer_was_truncated(position, last_epoch, answer.leader_epoch, answer.end_offset)
        if gone and answer.end_offset is None:
            world.note(
                f"the consumer resets: {world.name(leader.replica)} knows no epoch {last_epoch}"
            )
        elif gone:
            world.note(
                f"the consumer resets: {world.name(leader.replica)} ends epoch "
                f"{answer.leader_epoch} at {answer.end_offset}"
            )
        return gone

    def _preferred_replica(self, leader: Broker, near: int, offset: int) -> Broker:
        """The replica that a leader sends a consumer to, itself if the near one will not do."""
        world, known = self.world, leader.followers.get(near)
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

    def latest(self, replica: int) -> None:
        """A client asks a leader for its latest offset (ListOffsets)."""
        world, leader = self.world, self.world.broker(replica)
        if leader.role != "leader":
            raise Impossible(f"{world.name(replica)} does not lead")
        available = latest_offset_available(
            leader.high_watermark, leader.leader_epoch_start_offset, leader.behaviour
        )
        text = f"latest offset {leader.high_watermark}" if available else "OFFSET_NOT_AVAILABLE"
        world.note(f"{world.name(replica)} answers the client: {text}")

    def compact(self, replica: int, offsets: Iterable[int]) -> None:
        """A broker's log cleaner removes records whose keys have later ones."""
        world, broker = self.world, self.world.broker(replica)
        if "compact" not in self.cleanup_policy:
            raise Impossible("the topic is not compacted: given says no cleanup=compact")
        log = broker.log
        for offset in offsets:
            if not log.log_start_offset <= offset < broker.high_watermark:
                raise Impossible(f"the cleaner does not reach offset {offset}")
            log.spans = [
                *clipped(log.spans, 0, offset),
                *clipped(log.spans, offset + 1, log.log_end_offset),
            ]
        world.emit(
            ev.ReplicaLogObserved(
                replica, log.log_start_offset, log.log_end_offset, tuple(log.spans),
                None, None, broker.epoch_entries, True,
            )
        )  # fmt: skip

    def delete_records(self, before: int | None) -> None:
        """deleteRecords at the registered leader; None: up to its high watermark."""
        delete_records(self.world, self._leader(), before)

    def _leader(self) -> Broker:
        leader = self.world.controller.leader
        if leader is None:
            raise Impossible("the partition has no leader")
        broker = self.world.broker(leader)
        if broker.role != "leader":
            raise Impossible(f"{self.world.name(leader)} does not lead yet")
        return broker

    # Replication.

    def fetch(
        self,
        replica: int,
        *,
        response: str = "ok",
        max_records: int | None = None,
        at_once: bool = False,
    ) -> None:
        """A follower fetches once. response: ok, lost, or delayed until receive()."""
        follower = self.world.broker(replica)
        answer = fetch(self.world, follower, max_records=max_records, at_once=at_once)
        self._settle()
        if answer is None or response == "lost":
            return
        if response == "delayed":
            follower.in_flight = answer
        else:
            receive(self.world, follower, answer)

    def send_fetch(self, replica: int) -> None:
        """A follower's fetch is on its way until arrive()."""
        request = ask(self.world, self.world.broker(replica))
        if request is not None:
            self.world.requests[replica] = request

    def arrive(self, replica: int) -> None:
        """A fetch that was on its way reaches its leader."""
        follower = self.world.broker(replica)
        answer = arrive(self.world, follower)
        self._settle()
        if answer is not None:
            receive(self.world, follower, answer)

    def receive(self, replica: int) -> None:
        """The delayed response of a follower's fetch arrives."""
        follower = self.world.broker(replica)
        answer: Response | None = follower.in_flight
        if answer is None:
            raise Impossible(f"no response to {self.world.name(replica)} is delayed")
        follower.in_flight = None
        receive(self.world, follower, answer)

    def truncate(self, replica: int) -> None:
        """A follower tries again to learn where to cut its log."""
        truncate(self.world, self.world.broker(replica))

    # Brokers.

    def stop(
        self,
        replica: int,
        reason: str = "clean",
        *,
        surviving: int | None = None,
        high_watermark_checkpoint: int | None = None,
        epochs_lost: bool = False,
    ) -> None:
        """A broker ends: clean, process_crash, power_loss (to surviving) or disk_loss."""
        broker = self.world.broker(replica)
        stop(
            self.world,
            broker,
            reason,
            surviving=surviving,
            high_watermark_checkpoint=high_watermark_checkpoint,
            epochs_lost=epochs_lost,
        )

    def start(self, replica: int, *, deliver: bool = True) -> None:
        """A broker starts, registers, and learns the registration (unless deliver is False)."""
        world = self.world
        broker = world.broker(replica)
        if broker.running:
            raise Impossible(f"{world.name(replica)} runs already")
        if world.behaviour.controller == "kraft" and replica in world.controller.active:
            # A new life is not registered before the session of the last one has run out.
            self.fence(replica)
        last = broker.broker_epoch
        start(world, broker)
        unclean = broker_registration(last, last if broker.clean else None)
        if world.behaviour.eligible_leader_replicas and unclean:
            self._after_unclean_registration(replica)
        if replica not in world.controller.active:
            self.unfence(replica)
        if deliver:
            self.deliver([replica])

    def write_high_watermark_checkpoint(self, replica: int) -> None:
        """A broker writes its high watermark to the checkpoint file, as it does every 5 s."""
        broker = self.world.broker(replica)
        broker.checkpointed_high_watermark = broker.high_watermark

    def isolate(self, replica: int, isolated: bool = True) -> None:
        """Cuts a broker off from the others and the controller, or joins it again."""
        self.world.broker(replica).isolated = isolated

    def upgrade_controller(self, behaviour: Behaviour) -> None:
        """The controller gets another release, or the cluster another metadata version."""
        self.world.behaviour = behaviour

    def upgrade(self, replica: int, behaviour: Behaviour) -> None:
        """A stopped broker gets another release."""
        broker = self.world.broker(replica)
        if broker.running:
            raise Impossible(f"{self.world.name(replica)} must be stopped to be upgraded")
        broker.behaviour = behaviour

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
        """The controller registers this leader, whatever its rule would say, and tells brokers.

        isr: by default the present ISR's live members and the leader. deliver: who hears of it,
        by default every broker that runs and is not cut off.
        """
        world, c = self.world, self.world.controller
        broker = world.broker(leader)
        if not broker.running:
            raise Impossible(f"{world.name(leader)} is stopped")
        new_epoch = c.leader_epoch + 1 if leader_epoch is None else leader_epoch
        if new_epoch <= c.leader_epoch:
            raise Impossible(f"leader epoch {new_epoch} is not above {c.leader_epoch}")
        kind = "clean" if leader in c.isr else "unclean"
        if leader in c.eligible and kind == "unclean":
            kind = "eligible_leader_replica"
        if leader == c.leader:
            kind = "same_leader"
        members = [r for r in c.isr if r in c.active] if isr is None else list(isr)
        chosen = tuple(r for r in world.assigned_replicas if r in {*members, leader})
        c.active.add(leader)
        recovers = kind == "unclean" and world.behaviour.has("unclean_leader_is_recovering")
        self._remember_eligible(frozenset(c.isr), frozenset(chosen), new_leader=leader)
        if kind == "unclean":
            c.eligible = frozenset()
        self._register(Election(leader, chosen, kind, recovers), new_epoch, deliver)

    def elect_by_rule(self, cause: str = "offline") -> None:
        """The controller elects by its own rule. cause: offline, preferred or unclean."""
        world, c = self.world, self.world.controller
        unclean = world.unclean_leader_election or cause == "unclean"
        if world.behaviour.controller == "kraft":
            how = "unclean" if unclean and cause != "preferred" else cause
            self._kraft_change(frozenset(c.isr), c.eligible, how)
            return
        recovers = world.behaviour.has("unclean_leader_is_recovering")
        election = election_zookeeper(
            "preferred" if cause == "preferred" else "offline",
            world.assigned_replicas,
            frozenset(c.isr),
            frozenset(c.active),
            unclean,
            leader=c.leader,
            recovers=recovers,
        )
        if election is not None and (election.leader, election.isr) != (c.leader, c.isr):
            self._register(election, c.leader_epoch + 1, None)

    def fence(self, replica: int) -> None:
        """The controller counts a broker as dead: new leader, smaller ISR, by its rules."""
        world, c = self.world, self.world.controller
        c.active.discard(replica)
        isr = frozenset(c.isr)
        if world.behaviour.controller == "kraft":
            keeps = not world.behaviour.eligible_leader_replicas and isr == {replica}
            left = isr if keeps else isr - {replica}
            unclean = world.unclean_leader_election
            self._kraft_change(left, self._eligible(left), "unclean" if unclean else "online")
            return
        if c.leader == replica:
            self.elect_by_rule("offline")
            return
        always = world.behaviour.has("last_isr_member_always_kept")
        left_isr = isr_without_dead_broker(
            c.isr, replica, world.unclean_leader_election, always_kept=always
        )
        if left_isr != c.isr:
            kind = "same_leader" if c.leader is not None else None
            self._register(Election(c.leader, left_isr, kind), c.leader_epoch + 1, None)

    def rebalance(self, percentage: int = 10) -> None:
        """The controller's check of leader imbalance, for the head of this assignment."""
        world, name = self.world, "partition"
        preferred = world.assigned_replicas[0]
        leaders, assignments = {name: world.controller.leader}, {name: world.assigned_replicas}
        if preferred_leader_imbalance(leaders, assignments, preferred, percentage):
            self.elect_by_rule("preferred")

    def drain(self, replica: int) -> None:
        """A broker asks for its controlled shutdown: what it leads moves, and it leaves the ISR."""
        world, c = self.world, self.world.controller
        if world.behaviour.controller == "kraft" or c.leader != replica:
            self.fence(replica)
            return
        election = election_zookeeper(
            "controlled_shutdown",
            world.assigned_replicas,
            frozenset(c.isr),
            frozenset(c.active),
            world.unclean_leader_election,
            leader=c.leader,
            stopping=frozenset({replica}),
        )
        if election is None:
            world.note(f"{world.name(replica)} goes on leading: nobody else is in the ISR")
            return
        c.active.discard(replica)
        self._register(election, c.leader_epoch + 1, None)

    def depose(self) -> None:
        """Another broker becomes the controller; brokers hear from it, and only from it, now on."""
        world = self.world
        world.controller.controller_epoch += 1
        for broker in world.brokers.values():
            if broker.running and not broker.isolated:
                broker.controller_epoch = world.controller.controller_epoch

    def recreate(self) -> None:
        """The topic is deleted and created again under its name: another id, nothing in it.

        With ZooKeeper the deletion waits for every replica; KRaft goes ahead, and brokers that are
        away keep a directory with the old id.
        """
        world, c = self.world, self.world.controller
        hearing = [
            b for r in world.assigned_replicas if (b := world.broker(r)).running and not b.isolated
        ]
        if len(hearing) < len(world.assigned_replicas) and world.behaviour.controller != "kraft":
            raise Impossible("the deletion of a topic waits for its stopped replicas")
        if not hearing:
            raise Impossible("no broker is there to create the topic on")
        for broker in hearing:
            forget_replica(broker)
        if world.topic_id:
            world.topic_id = str(int(world.topic_id) + 1)
        world.first_step = len(world.steps)
        isr = tuple(b.replica for b in hearing)
        world.controller = Controller(
            isr[0], 0, 0, isr, active=set(isr), controller_epoch=c.controller_epoch
        )
        world.requests.clear()
        world.reassigned_to = None
        world.registrations.clear()
        self._describe()
        for broker in hearing:
            world.emit(ev.ReplicaStarted(broker.replica, 0, 0, 0, True))
        self.deliver(isr)

    def _is_of_this_topic(self, broker: Broker) -> None:
        """A broker holds its directory's topic id against the registered one (KIP-516)."""
        world = self.world
        if topic_identity(broker.topic_id, world.topic_id) == "different":
            forget_replica(broker)
            world.note(
                f"{world.name(broker.replica)} sets its log aside: "
                "its topic id is of an earlier incarnation"
            )
            world.emit(ev.ReplicaStarted(broker.replica, 0, 0, 0, True))
        broker.topic_id = broker.topic_id or world.topic_id

    def reassign(self, target: Iterable[int], deliver: Iterable[int] | None = None) -> None:
        """The controller is told to move the partition to these replicas, in this order.

        deliver: who hears of it, by default every replica that runs and is not cut off.
        """
        self.world.reassigned_to = tuple(target)
        self._go_on_reassigning(deliver)

    def _go_on_reassigning(
        self, deliver: Iterable[int] | None = None, isr: frozenset[int] | None = None
    ) -> bool:
        """Old and new replicas together, until the reassignment is complete.

        isr: as it is to be, by default as it is. Returns whether anything was registered.
        """
        world, c = self.world, self.world.controller
        kraft = world.behaviour.controller == "kraft"
        if world.reassigned_to is None or (c.leader is None and not kraft):
            return False
        members = frozenset(c.isr) if isr is None else isr
        then = reassignment(
            world.assigned_replicas, world.reassigned_to, members, c.leader, world.behaviour
        )
        if not then.complete and then.replicas == world.assigned_replicas:
            return False
        left = frozenset(world.assigned_replicas) - frozenset(then.replicas)
        if then.complete:
            world.reassigned_to = None
        if kraft:
            before, world.assigned_replicas = world.assigned_replicas, then.replicas
            members -= left
            self._kraft_change(
                members, self._eligible(members), "online", deliver=deliver, replicas_before=before
            )
        elif then.complete:
            self._complete_with_zookeeper(then, left, deliver)
        else:
            world.assigned_replicas = then.replicas
            self._register(Election(c.leader, c.isr, "same_leader"), c.leader_epoch + 1, deliver)
        for replica in sorted(left):
            stop_replica(world, world.broker(replica))
        return True

    def _complete_with_zookeeper(
        self, then: Assignment, left: frozenset[int], deliver: Iterable[int] | None
    ) -> None:
        """The leader epoch rises for the new replicas, and again for each that leaves the ISR."""
        world, c = self.world, self.world.controller
        election: Election | None = Election(c.leader, c.isr, "same_leader")
        if then.needs_election or c.leader not in c.active:
            election = election_zookeeper(
                "reassignment",
                world.assigned_replicas,
                frozenset(c.isr),
                frozenset(c.active),
                world.unclean_leader_election,
                leader=c.leader,
                target_replicas=then.replicas,
            )
        leaving = sorted(left & frozenset(c.isr))
        if not leaving:
            world.assigned_replicas = then.replicas
        if election is not None:
            chosen = Election(election.leader, c.isr, election.kind)
            self._register(chosen, c.leader_epoch + 1, deliver)
        world.assigned_replicas = then.replicas
        for replica in leaving:
            isr = tuple(r for r in c.isr if r != replica)
            self._register(Election(c.leader, isr, "same_leader"), c.leader_epoch + 1, deliver)

    def unfence(self, replica: int) -> None:
        """The controller counts a broker as alive; a partition without a leader gets one."""
        c = self.world.controller
        c.active.add(replica)
        if c.leader is None:
            self.elect_by_rule("offline")

    def deliver(self, replicas: Iterable[int], late: int = 0) -> None:
        """Brokers learn the registration: the leader first, then its followers.

        late: so many changes ago it was as they hear it now. A notification may be overtaken, and
        a broker that reads the metadata log lags behind its end.
        """
        world = self.world
        c = world.controller
        if late:
            if late >= len(world.registrations):
                raise Impossible(f"there were only {len(world.registrations) - 1} changes")
            c = world.registrations[-1 - late]
        hearing = [world.broker(r) for r in replicas]
        hearing.sort(key=lambda b: b.replica != c.leader)
        for broker in hearing:
            if not broker.running or broker.isolated:
                continue
            self._is_of_this_topic(broker)
            answer = controller_fencing(
                c.controller_epoch,
                broker.controller_epoch,
                c.leader_epoch,
                broker.leader_epoch,
                c.partition_epoch,
                broker.partition_epoch or 0,
            )
            broker.controller_epoch = max(broker.controller_epoch, c.controller_epoch)
            if answer != "apply":
                if late or answer != "repeated":
                    world.note(f"{world.name(broker.replica)} ignores the notification: {answer}")
                continue
            if broker.replica == c.leader:
                lead(world, broker, c)
            else:
                follow(world, broker, c)
        for broker in hearing:
            if broker.truncating:
                truncate(world, broker)
        self._settle()

    def propose_isr(self, remove: Iterable[int] = (), add: Iterable[int] = ()) -> None:
        """The leader proposes an ISR; members to remove have lagged, as far as it can see."""
        leader = self._leader()
        removed = frozenset(remove)
        for replica in removed:
            if replica not in leader.followers:
                raise Impossible(f"{self.world.name(replica)} is no follower of the leader")
            leader.followers[replica].memory = FetchMemory(0)
        propose_isr(self.world, leader, (leader.isr - removed) | frozenset(add))
        self._settle()

    def check_lag(self) -> None:
        """The leader drops members of its ISR that lag, by the rule (every half lag limit)."""
        world, leader = self.world, self._leader()
        progress = {
            r: Progress(f.log_end_offset, f.memory.last_caught_up_ms)
            for r, f in leader.followers.items()
            if r in leader.isr
        }
        lagging = isr_shrink(
            progress,
            leader.log.log_end_offset,
            world.now_ms,
            leader.behaviour.replica_lag_time_max_ms,
            leader.behaviour.replica_lag_max_messages,
            leader.behaviour,
        )
        if lagging:
            propose_isr(world, leader, leader.isr - lagging)
        self._settle()

    def decide_isr(self, error: str | None = None) -> None:
        """The controller answers the proposal in flight; error: instead of what it would say."""
        world = self.world
        leaders = [b for b in world.brokers.values() if b.proposed is not None and b.running]
        if not leaders:
            raise Impossible("no ISR change is in flight")
        for leader in leaders:
            self._decide(leader, error)

    def _decide(self, leader: Broker, error: str | None) -> None:
        world = self.world
        proposed = leader.proposed
        if proposed is None:
            return
        answer = error or isr_commit(
            proposal_of(leader, proposed), registered(world, leader), world.behaviour
        )
        if answer is not None:
            world.note(f"the controller refuses the ISR of {world.name(leader.replica)}: {answer}")
            if not keeps_pending(answer):
                leader.proposed = None
            return
        self._commit_isr(leader, proposed)
        if leader.role == "leader":
            after_isr_commit(world, leader)

    def ask_for_isr(
        self,
        replica: int,
        isr: Iterable[int],
        *,
        leader_epoch: int | None = None,
        partition_epoch: int | None = None,
        recovering: bool = False,
    ) -> None:
        """A broker's request for an ISR as it is (AlterPartition, or a conditional write).

        The epochs are those that the broker knows, unless said.
        """
        world, broker = self.world, self.world.broker(replica)
        if broker.role != "leader" and not broker.behaviour.has("maximal_isr"):
            raise Impossible(f"{world.name(replica)} does not lead: it writes no ISR")
        proposal = IsrProposal(
            replica,
            (broker.leader_epoch or 0) if leader_epoch is None else leader_epoch,
            (broker.partition_epoch or 0) if partition_epoch is None else partition_epoch,
            frozenset(isr),
            recovering,
            request_version(broker.behaviour),
        )
        decides = world.behaviour if broker.behaviour.has("maximal_isr") else broker.behaviour
        answer = isr_commit(proposal, registered(world, broker), decides)
        if answer is not None:
            world.note(f"the controller refuses the ISR of {world.name(replica)}: {answer}")
            return
        self._commit_isr(broker, proposal.isr, recovering)
        if broker.role == "leader":
            after_isr_commit(world, broker)

    def _commit_isr(
        self, leader: Broker, proposed: frozenset[int], recovering: bool = False
    ) -> None:
        world, c = self.world, self.world.controller
        shrank = not proposed >= leader.isr
        if world.behaviour.controller == "kraft":
            if self._go_on_reassigning(isr=proposed):
                c.recovering = recovering
                return
            self._remember_eligible(frozenset(c.isr), proposed)
            if raises_leader_epoch(
                leader_changed=False, isr_shrank=shrank, behaviour=world.behaviour
            ):
                isr = tuple(r for r in world.assigned_replicas if r in proposed)
                c.recovering = recovering
                self._register(Election(c.leader, isr, "same_leader"), c.leader_epoch + 1, None)
                return
        record_isr(world, leader, proposed, recovering=recovering)
        if world.behaviour.controller != "kraft":
            self._go_on_reassigning()

    def _settle(self) -> None:
        """Unless told to wait, the controller answers ISR proposals as they come."""
        world = self.world
        if world.isr_changes_wait:
            return
        for leader in list(world.brokers.values()):
            if leader.proposed is None or leader.isolated or leader.role != "leader":
                continue
            if leader.replica != world.controller.leader:
                continue
            self._decide(leader, None)

    def _min_insync(self) -> int:
        world = self.world
        return effective_min_insync_replicas(
            world.min_insync_replicas, len(world.assigned_replicas), world.behaviour
        )

    def _eligible(self, isr: frozenset[int]) -> frozenset[int]:
        """The ELR that goes with a smaller ISR, before anyone is elected."""
        c = self.world.controller
        if not self.world.behaviour.eligible_leader_replicas:
            return frozenset()
        return eligible_leader_replicas(
            frozenset(c.isr), isr, c.eligible, self._min_insync()
        ).replicas

    def _remember_eligible(
        self,
        old_isr: frozenset[int],
        new_isr: frozenset[int],
        *,
        new_leader: int | None = None,
        unclean: frozenset[int] = frozenset(),
    ) -> None:
        c = self.world.controller
        if not self.world.behaviour.eligible_leader_replicas:
            return
        known = eligible_leader_replicas(
            old_isr,
            new_isr,
            c.eligible,
            self._min_insync(),
            unclean_shutdown=unclean,
            old_leader=c.leader,
            new_leader=new_leader,
            last_known_leader=c.last_known_leader,
        )
        c.eligible, c.last_known_leader = known.replicas, known.last_known_leader

    def _after_unclean_registration(self, replica: int) -> None:
        """A broker that lost its clean-shutdown mark leaves ISR and ELR; its leaderships move."""
        c = self.world.controller
        if replica not in c.isr and replica not in c.eligible:
            return
        gone = frozenset({replica})
        left = frozenset(c.isr) - gone
        eligible = self._eligible(left) - gone
        cause = "unclean" if self.world.unclean_leader_election else "online"
        self._kraft_change(left, eligible, cause, unclean=gone)

    def _kraft_change(
        self,
        isr: frozenset[int],
        eligible: frozenset[int],
        cause: str,
        *,
        unclean: frozenset[int] = frozenset(),
        deliver: Iterable[int] | None = None,
        replicas_before: tuple[int, ...] = (),
    ) -> None:
        """One registration change in KRaft: elects, remembers the ELR, raises what must rise.

        replicas_before: the replica set, where this change alters it.
        """
        world, c = self.world, self.world.controller
        election = election_kraft(
            cause,
            world.assigned_replicas,
            isr,
            frozenset(c.active) - unclean,
            world.behaviour,
            leader=c.leader,
            eligible=eligible,
            last_known_leader=c.last_known_leader,
        )
        old, new = frozenset(c.isr), frozenset(election.isr)
        changed = election.kind is not None or election.leader != c.leader
        unclean_election = election.kind in ("unclean", "last_known_leader")
        raised = raises_leader_epoch(
            leader_changed=changed,
            isr_shrank=not new >= old,
            behaviour=world.behaviour,
            replica_removed=not set(replicas_before) <= set(world.assigned_replicas),
            unclean=unclean_election,
        )
        before = (c.isr, c.eligible, c.last_known_leader)
        self._remember_eligible(old, new, new_leader=election.leader, unclean=unclean)
        if unclean_election:
            c.eligible, c.last_known_leader = frozenset(), None
        same_replicas = replicas_before in ((), world.assigned_replicas)
        after = (election.isr, c.eligible, c.last_known_leader)
        if not raised and same_replicas and before == after:
            return
        if not changed and raised:
            kind: str | None = "same_leader"
        else:
            kind = election.kind if raised else None
        final = Election(election.leader, election.isr, kind, election.recovering)
        self._register(final, c.leader_epoch + int(raised), deliver)

    def _register(
        self, election: Election, leader_epoch: int, deliver: Iterable[int] | None
    ) -> None:
        world, c = self.world, self.world.controller
        changed = election.leader != c.leader
        order = world.assigned_replicas
        isr = sorted(election.isr, key=lambda r: order.index(r) if r in order else len(order))
        c.leader, c.isr, c.leader_epoch = election.leader, tuple(isr), leader_epoch
        c.recovering = c.recovering or election.recovering
        c.partition_epoch += 1
        world.emit(leadership_fact(world, election.kind))
        remember_registration(world)
        if changed and election.leader is None:
            world.note("the partition is offline")
        elif changed and not world.command.startswith("elect "):
            name = world.name(election.leader)
            world.note(f"{name} is elected ({election.kind}), leader epoch {leader_epoch}")
        self.deliver(world.assigned_replicas if deliver is None else deliver)
