"""A real cluster on which a history of `preflight` is performed, command by command."""

import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kafka.protocol.consumer import FetchRequest

from replication.foresight.worlds import ACKS_1, ACKS_ALL, COMMITTED, KINDS, READ
from replication.machine.machine_state import World
from replication.machine.states import valid_leader
from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.directed.histories import FAULTS, Run, labels
from tests.kafka_lab.directed.nobody import NobodyControls
from tests.kafka_lab.directed.outcome import Answers, Seen
from tests.kafka_lab.logs_on_disk import batches, cut_suffix, read_batches, records
from tests.kafka_lab.processes import LabTimeout, wait_for
from tests.kafka_lab.producer import Producer
from tests.kafka_lab.tap import FETCH
from tests.kafka_lab.versions import Version

BROKERS = (1, 2, 3)
NUMBER = {"A": 1, "B": 2, "C": 3}

# A follower is dropped after this; a broker is taken for dead after that.
LAG_MS, SESSION_MS = 4_000, 3_000
TIMES = {
    "replica.lag.time.max.ms": LAG_MS,
    "broker.session.timeout.ms": SESSION_MS,
    "broker.heartbeat.interval.ms": 300,
    "zookeeper.session.timeout.ms": SESSION_MS,
}


def plan_of(release: str) -> Plan:
    """A cluster for every run of a release."""
    version = Version(release)
    eligible = True if version.at_least(4, 1) else None
    times = {name: str(value) for name, value in TIMES.items()}
    kraft = {name: value for name, value in times.items() if not name.startswith("zookeeper")}
    other = {name: value for name, value in times.items() if not name.startswith("broker")}
    return Plan(
        version, BROKERS, settings=kraft if version.kraft else other, tapped=BROKERS,
        eligible_leader_replicas=eligible,
    )  # fmt: skip


class Stage:
    """One cluster, on which runs are performed one after the other, each on a topic of its own."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder, self.number = cluster, folder, 0
        self.is_spoilt = False
        self.nobody = NobodyControls(cluster)

    def perform(self, run: Run) -> Seen:
        """Raises LabTimeout, OSError or ChildProcessError where the cluster cannot go on."""
        began = time.monotonic()
        self.number += 1
        self.now = 0
        self.run, self.topic, self.seen = run, f"d{self.number}", Seen()
        place = self.folder / f"{self.topic}.jsonl"
        self.answers = Answers(place, place.with_suffix(".whole"))
        self.answers.acked, self.read = {}, set[str]()
        self._create()
        for n, line in enumerate(run.lines):
            verb, *words = line.split()
            if verb in FAULTS:
                self._consume(n)
            self.now = n
            self._let_followers(n)
            getattr(self, f"do_{verb}")(n, *words)
        self.seen.lost = self._lost(run.machines[-1].world)
        self._all_back()
        self.seen.lost_for_good = self._lost(None)
        if not self.is_spoilt:
            self.cluster.delete_topic(self.topic)
        self.answers.close()
        self.seen.answered, self.seen.read = self.answers.acked, sorted(self.read)
        self.seen.seconds = round(time.monotonic() - began, 1)
        return self.seen

    # The cluster as the history has it.

    def _create(self) -> None:
        s = self.run.settings
        assigned = list(BROKERS[: s.replicas])
        self._hold([b for b in assigned if self._is_dropped(0, b, True)])
        flushed: dict[str, object] = {"flush_messages": 1} if s.flushed else {}
        self.cluster.create_topic(
            self.topic,
            {0: assigned},
            min_insync_replicas=s.min_insync_replicas,
            unclean_leader_election_enable=str(s.unclean).lower(),
            **flushed,
        )
        self.cluster.wait_for_isr(self.topic, 0, *assigned)
        if self.run.at != 1:
            self.cluster.elect(self.topic, 0, self.run.at)
            self.cluster.reassign(self.topic, 0, assigned)
            self.cluster.wait_for_leader(self.topic, 0, self.run.at)
            self.cluster.wait_for_isr(self.topic, 0, *assigned)

    def _let_followers(self, n: int) -> None:
        """Who may fetch before command n: members of the ISR that have all and are to keep it."""
        world, line = self.run.machines[n].world, self.run.lines[n]
        held = [
            b.replica
            for b in world.brokers.values()
            if b.role == "follower" and b.running and not self._is_free(n, b.replica)
        ]
        laggard = self._laggard(n) if line.startswith("produce") else None
        if laggard is not None and world.behaviour.has("log_end_is_in_sync"):
            self._hold([laggard])
            time.sleep(LAG_MS / 1000)
        self._hold(held)
        if line.startswith("produce"):
            for replica in held:
                self._hope(f"{replica} asks", lambda r=replica: self._asks(r), 3)

    def _hold(self, held: list[int]) -> None:
        for tap in self.cluster.taps.values():
            tap.hold(FETCH, from_clients=tuple(f"broker-{replica}-" for replica in held))

    def _is_free(self, n: int, replica: int) -> bool:
        world, line = self.run.machines[n].world, self.run.lines[n]
        if self._is_over(n):
            return True
        leader = valid_leader(world)
        if leader is None or replica not in world.controller.isr:
            return leader is None
        known = leader.followers[replica].log_end_offset
        behind = labels(world, replica) != labels(world, leader.replica)
        if line.startswith("produce") or behind or known not in (None, leader.log.log_end_offset):
            return False
        return not self._is_dropped(n, replica, world.behaviour.has("log_end_is_in_sync"))

    def _is_dropped(self, n: int, replica: int, soon: bool) -> bool:
        """Whether command n drops it from the ISR; soon: or one before the next record."""
        for line in self.run.lines[n:]:
            if line.startswith("isr") and NUMBER[line[-1]] == replica:
                return True
            if line.startswith("produce") or not soon:
                return False
        return False

    def _laggard(self, n: int) -> int | None:
        """Whom the leader drops after this record while another one, as far as it knows, lacks it
        too and stays: both would be dropped at once, unless the first stood still long before."""
        until = next(
            (i for i in range(n + 1, len(self.run.lines)) if self.run.lines[i][:4] == "prod"),
            len(self.run.lines),
        )
        drops = [i for i in range(n + 1, until) if self.run.lines[i].startswith("isr")]
        dropped = [NUMBER[self.run.lines[i][-1]] for i in drops]
        leader = valid_leader(self.run.machines[drops[0]].world) if drops else None
        if leader is None:
            return None
        end = leader.log.log_end_offset
        stays = leader.isr - {leader.replica, *dropped}
        known = [leader.followers[r].log_end_offset or 0 for r in stays]
        return dropped[0] if min(known, default=end) < end else None

    def _is_over(self, n: int) -> bool:
        """Whether what the history foretells from here on is told of other settings."""
        faults = (line.split()[0] in FAULTS for line in self.run.lines[:n])
        return self.run.is_attack and any(faults)

    def _asks(self, replica: int) -> bool:
        return any(tap.holds(f"broker-{replica}-") for tap in self.cluster.taps.values())

    def _hope(self, what: str, reached: Callable[[], bool], seconds: float) -> bool:
        """Waits for what the history foretells; where it does not come, the run has strayed."""
        if self._is_over(self.now + 1) and not what.startswith(("fence", "everybody")):
            seconds = min(seconds, 2.5)
        try:
            wait_for(what, reached, seconds, 0.05)
        except LabTimeout:
            self.seen.strayed.append(what)
            return False
        return True

    def _held_by(self, broker: int) -> list[str]:
        """The records on that broker's disk, by their names in the history."""
        place = self.cluster.data(broker)[0] / f"{self.topic}-0"
        return [h.payload_id.split(".")[1] for b in read_batches(place) for h in records(b)]

    def _as_foretold(self, n: int, seconds: float) -> None:
        """Leader and ISR after command n."""
        c = self.run.machines[n + 1].world.controller

        def reached() -> bool:
            state = self.cluster.state(self.topic, 0)
            told = (c.leader, set(c.isr))
            return state is None or (state.leader, set(state.isr)) == told

        self._hope(f"{self.run.lines[n]}: leader {c.leader}, ISR {c.isr}", reached, seconds)

    # The commands.

    def do_produce(self, n: int, name: str, label: str, acks: str) -> None:
        broker, world = NUMBER[name], self.run.machines[n + 1].world
        client = Producer(self.cluster, self.answers, label, self.topic, timeout_ms=15_000)
        try:
            batch = client.start(broker, [f"{self.topic}.{label}"], acks.removeprefix("acks="))
        except (OSError, KeyError) as error:
            self.seen.strayed.append(f"{label} was not sent: {error}")
            return
        threading.Thread(target=client.finish, args=(broker, batch), daemon=True).start()
        end = labels(world, broker)
        self._hope(f"{label} in the log of {name}", lambda: self._held_by(broker) == end, 5)
        self._answered(n)

    def _answered(self, n: int) -> None:
        for label in sorted(self.run.answered[n + 1]):
            name = f"{self.topic}.{label}"
            self._hope(f"an answer for {label}", lambda i=name: i in self.answers.acked, 8)

    def do_fetch(self, n: int, name: str) -> None:
        broker = NUMBER[name]
        end = labels(self.run.machines[n + 1].world, broker)
        prefix = f"broker-{broker}-"
        for _ in range(6):
            if not self._is_free(n, broker):
                self._hope(f"{name} asks", lambda: self._asks(broker), 5)
                for tap in self.cluster.taps.values():
                    tap.let_one(prefix)
                time.sleep(0.7)
            if self._hope(f"{name} has {end}", lambda: self._held_by(broker) == end, 1):
                break
        self._answered(n)

    def do_isr(self, n: int, remove: str) -> None:
        gone = NUMBER[remove.removeprefix("remove=")]

        def dropped() -> bool:
            state = self.cluster.state(self.topic, 0)
            return state is not None and gone not in state.isr

        self._hope(self.run.lines[n], dropped, 3 * LAG_MS / 1000)
        self._answered(n)

    def do_fence(self, n: int, name: str) -> None:
        broker = NUMBER[name]

        def noticed() -> bool:
            # Where no broker runs ZooKeeper has no controller: the first to start notices.
            state = self.cluster.state(self.topic, 0) if self.cluster.answering() else None
            return state is None or (
                state.leader != broker
                and (broker not in state.isr or (state.leader is None and len(state.isr) == 1))
            )

        self._hope(self.run.lines[n], noticed, 4 * SESSION_MS / 1000)
        if not self._then(n, "fence", "start"):
            self._as_foretold(n, 5)

    def _then(self, n: int, *verbs: str) -> bool:
        return n + 1 < len(self.run.lines) and self.run.lines[n + 1].split()[0] in verbs

    def do_start(self, n: int, name: str) -> None:
        if not self.cluster.running(NUMBER[name]):
            self.cluster.start_broker(NUMBER[name])
        self.nobody.end()
        if not self._then(n, "fence", "start"):
            self._as_foretold(n, 15)

    def do_crash(self, n: int, name: str, kind: str, to: str = "") -> None:
        """Crashes one behind the other in the history are one moment."""
        behind = [line.split() for line in self.run.lines[n:]]
        until = next((i for i, words in enumerate(behind) if words[0] != "crash"), len(behind))
        together = [NUMBER[words[1]] for words in behind[:until]]
        if self._is_back_unnoticed(n, name):
            self.nobody.begin()
        self.cluster.kill(*(b for b in together if self.cluster.running(b)))
        if kind == "kind=disk":
            self.cluster.replace_disk(NUMBER[name])
        elif kind == "kind=power" and not self.run.settings.flushed:
            self._cut(NUMBER[name], int(to.removeprefix("to=")))

    def _is_back_unnoticed(self, n: int, name: str) -> bool:
        """Whether it starts again before the controller has seen that it ended."""
        behaviour = self.run.settings.behaviour
        if self.cluster.version.kraft or behaviour.has("restart_is_noticed"):
            return False
        lines = self.run.lines[n:]
        back = next((i for i, line in enumerate(lines) if line == f"start {name}"), 0)
        return back > 0 and f"fence {name}" not in lines[:back]

    def _cut(self, broker: int, end: int) -> None:
        """Nothing here was flushed: the power may take it all."""
        place = self.cluster.data(broker)[0] / f"{self.topic}-0"
        more = len(read_batches(place)) - end
        if more > 0 and cut_suffix(place, more) is None:
            raise AssertionError(f"nothing to cut in {place}")

    def do_drain(self, n: int, name: str) -> None:
        """The broker does it as part of its stop."""
        self._stop(NUMBER[name])

    def do_stop(self, n: int, name: str, directory: str = "") -> None:
        self._stop(NUMBER[name])
        if directory:
            shutil.rmtree(self.cluster.data(NUMBER[name])[0] / f"{self.topic}-0")
        if not self._then(n, "fence", "start", "drain", "stop"):
            self._as_foretold(n, 8)

    def _stop(self, broker: int) -> None:
        if self.cluster.running(broker) and not self.cluster.terminate(broker):
            self.seen.strayed.append(f"broker {broker} did not stop cleanly")

    def do_isolate(self, n: int, name: str) -> None:
        """Frozen: as no history has the cut-off broker take writes."""
        if any(line.startswith(f"produce {name}") for line in self.run.lines[n:]):
            raise NotImplementedError("a broker that is cut off and takes writes")
        self.cluster.freeze(NUMBER[name])

    def do_rejoin(self, n: int, name: str) -> None:
        self.cluster.resume(NUMBER[name])

    def do_unfence(self, n: int, name: str) -> None:
        """The controller does it."""

    def do_deliver(self, n: int, name: str) -> None:
        self._as_foretold(n, 8)

    def do_elect(self, n: int, cause: str) -> None:
        if cause == "cause=preferred":
            self.cluster.elect_preferred(self.topic, 0)
        elif self.cluster.version.at_least(2, 4):
            self.cluster.elect_unclean(self.topic, 0)
        else:
            # As operators did: allow it, and have another controller look at all partitions.
            self.cluster.alter_topic(self.topic, unclean_leader_election_enable="true")
            with self.cluster.zookeeper() as asked:
                asked.delete("/controller")
        self._as_foretold(n, 10)

    def _consume(self, n: int) -> None:
        """A consumer reads all that the leader shows."""
        leader = valid_leader(self.run.machines[n].world)
        if leader is None:
            return
        shown = set(labels(self.run.machines[n].world, leader.replica)[: leader.high_watermark])

        def reached() -> bool:
            with suppress(OSError):
                self.read |= self._fetched(leader.replica)
            return shown <= self.read

        if shown - self.read:
            self._hope(f"a consumer reads {sorted(shown)}", reached, 5)

    def _fetched(self, broker: int) -> set[str]:
        topic = FetchRequest.FetchTopic
        part = topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            version=4, replica_id=-1, max_wait_ms=100, min_bytes=1, max_bytes=1 << 20,
            isolation_level=0, topics=[topic(topic=self.topic, partitions=[part])],
        )  # fmt: skip
        with self.cluster.connection(broker, "reader", 3.0) as connection:
            answer = connection.call(request).responses[0].partitions[0]
        found = bytes(answer.records or b"")
        return {h.payload_id.split(".")[1] for _, b in batches(found) for h in records(b)}

    # What became of it.

    def _lost(self, world: World | None) -> list[str]:
        """The kinds of which whoever leads lacks a record. world: where the history says who it
        is; where it is another one (the order in which brokers that ended together are noticed is
        the controller's), the run has strayed, and the loss counts."""
        wanted = None if world is None or self.run.is_attack else world.controller.leader
        try:
            if wanted is not None:
                self._hope(f"{wanted} leads", lambda: self._leads() == wanted, 6)
            leader = self.cluster.wait_for_leader(self.topic, 0, seconds=10)
        except (LabTimeout, AssertionError):
            self.seen.strayed.append("nobody leads")
            return []
        here = set(self._held_by(leader))
        acked = {i.split(".")[1]: acks for i, acks in self.answers.acked.items()}
        promised = {
            ACKS_ALL: {label for label, acks in acked.items() if acks == "all"},
            READ: self.read,
            COMMITTED: self.read | {label for label, acks in acked.items() if acks == "all"},
            ACKS_1: {label for label, acks in acked.items() if acks == "1"},
        }
        return [kind for kind in KINDS if promised[kind] - here]

    def _leads(self) -> int | None:
        return self.cluster.leader(self.topic, 0)

    def _all_back(self) -> None:
        self.nobody.end()
        for tap in self.cluster.taps.values():
            tap.release()
        for broker in BROKERS:
            self.cluster.processes[broker].resume()
        for broker in BROKERS:
            if not self.cluster.running(broker):
                self.cluster.start_broker(broker)
        self.is_spoilt = not self._hope("everybody in the ISR at the end", self._is_whole, 45)

    def _is_whole(self) -> bool:
        """Whether all are in the ISR and have what the leader has."""
        everybody = BROKERS[: self.run.settings.replicas]
        state = self.cluster.state(self.topic, 0)
        if state is None or state.leader is None:
            return False
        for broker in everybody:
            if not self.cluster.running(broker):
                # It has more than its leader, and would rather end than cut its log (up to 2.0.0).
                # It cuts where unclean elections are allowed: what its message leads operators to.
                self.cluster.alter_topic(self.topic, unclean_leader_election_enable="true")
                self.cluster.start_broker(broker)
        held = self._held_by(state.leader)
        return set(state.isr) == set(everybody) and all(self._held_by(b) == held for b in everybody)
