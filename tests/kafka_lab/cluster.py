"""A real cluster in plain Java processes: a controller or ZooKeeper, and brokers 1, 2, 3 ...

Everything lies under one directory: `broker-N/data`, `broker-N/logs`. All ports are on 127.0.0.1.
"""

import base64
import os
import shutil
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.paths import zookeeper_jars
from tests.kafka_lab import node_settings, wire
from tests.kafka_lab.journal import Journal, utc_text
from tests.kafka_lab.processes import JavaProcess, accepts, free_ports, run_tool, wait_for
from tests.kafka_lab.site import Site
from tests.kafka_lab.tap import Tap
from tests.kafka_lab.versions import Version
from tests.kafka_lab.zookeeper import ZooKeeperClient

START_SECONDS = 90.0
NO_LEADER = -1


@dataclass(frozen=True)
class PartitionState:
    """Who leads, by the controller's word or a broker's; `leader` is None when nobody does."""

    leader: int | None
    leader_epoch: int | None
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    topic_id: str | None = None


@dataclass
class Plan:
    """How a cluster is set up; `settings` go to every broker, `of_broker` to one. zookeeper: the
    server's release, where it is not the one that the brokers ship. zones: the time zone of a
    node's machine, UTC of those that are not named."""

    version: Version
    brokers: tuple[int, ...] = (1, 2, 3)
    grade: str = "default"
    settings: Mapping[str, str] = field(default_factory=dict)
    of_broker: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    eligible_leader_replicas: bool | None = None
    tapped: tuple[int, ...] = ()
    log_dirs: int = 1
    zookeeper: str | None = None
    zones: Mapping[int, str] = field(default_factory=dict)


def random_uuid() -> str:
    """As Kafka writes them: 22 characters, never a leading dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


class Cluster(Site):
    """Started by `start`, ended by `close`; use it as a context manager."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        super().__init__(directory, plan.version, plan.brokers, plan.log_dirs)
        self.plan = plan
        self.journal = Journal(directory / "actions.jsonl")
        self.cluster_id = random_uuid() if plan.version.kraft else ""
        self.processes: dict[int, JavaProcess] = {}
        # Of brokers that were upgraded: what they run from their next start on.
        self.releases: dict[int, Version] = {}
        self.topic_ids: dict[str, str] = {}
        self.topic_settings: dict[str, dict[str, str]] = {}
        # By what its machine's clock shows each node logs from its next start on.
        self.zones = dict(plan.zones)
        self.taps: dict[int, Tap] = {}
        self._keeper: JavaProcess | None = None
        self._lock = threading.RLock()
        ports = free_ports(3 + 3 * len(plan.brokers), seed=os.getpid())
        self.meeting_port = ports.pop()
        # Where the controller itself listens; others are told of a tap before it.
        self.controller_port = self.meeting_port
        if node_settings.CONTROLLER_ID in plan.tapped:
            self.controller_port = ports.pop()
        self.internal = {broker: ports.pop() for broker in plan.brokers}
        self.external = {broker: ports.pop() for broker in plan.brokers}
        self.tap_ports = {broker: ports.pop() for broker in plan.brokers}

    def __enter__(self) -> "Cluster":
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Starting and stopping.

    def start(self) -> None:
        for node in self.plan.tapped:
            if node == node_settings.CONTROLLER_ID:
                self.taps[node] = Tap(self.meeting_port, self.controller_port)
            else:
                self.taps[node] = Tap(self.tap_ports[node], self.internal[node])
        self._write_settings()
        if self.version.kraft:
            self._format()
        self.start_keeper()
        for broker in self.plan.brokers:
            self.start_broker(broker, wait=False)
        for broker in self.plan.brokers:
            self.wait_up(broker)
        if not self.version.kraft:
            with self.zookeeper() as asked:
                named = asked.get("/cluster/id")
            self.cluster_id = "" if named is None else str(named.json()["id"])

    def start_keeper(self) -> None:
        """The controller of KRaft, or ZooKeeper."""
        if self.version.kraft:
            self._start_node(node_settings.CONTROLLER_ID, "controller")
            port = self.controller_port
            wait_for("the controller", lambda: accepts(port), START_SECONDS)
        else:
            self._start_zookeeper()

    def kill_everything(self) -> None:
        """Every process, the controller or ZooKeeper last."""
        for _, process in sorted(self.processes.items()):
            if process.running:
                process.kill()
        if self._keeper is not None and self._keeper.running:
            self._keeper.kill()

    def close(self) -> None:
        self.kill_everything()
        for tap in self.taps.values():
            tap.close()
        self.journal.close()

    def start_broker(self, broker: int, *, wait: bool = True) -> None:
        if not self.version.kraft:
            self.wait_unregistered(broker)
        self._mend_directories(broker)
        self._start_node(broker, "broker")
        if wait:
            self.wait_up(broker)

    def upgrade(self, broker: int, release: Version) -> None:
        """Its next start is of this release."""
        self.releases[broker] = release
        self.journal.write(action="upgrade", broker=broker, release=release.name)

    def kill(self, *brokers: int) -> None:
        for broker in brokers:
            self.processes[broker].process.kill()
            self.journal.write(action="kill9", broker=broker)
        for broker in brokers:
            self.processes[broker].kill()

    def terminate(self, broker: int, seconds: float = 30) -> bool:
        self.journal.write(action="sigterm", broker=broker)
        clean = self.processes[broker].terminate(seconds)
        self.journal.write(action="exited", broker=broker, clean=clean)
        return clean

    def freeze(self, broker: int) -> None:
        self.journal.write(action="sigstop", broker=broker)
        self.processes[broker].freeze()

    def resume(self, broker: int) -> None:
        self.processes[broker].resume()
        self.journal.write(action="sigcont", broker=broker)

    def fail_directory(self, broker: int, number: int = 0) -> None:
        """That log directory of a running broker cannot be written: its next checkpoint fails, and
        the broker serves nothing from there until it starts again."""
        in_the_way = self._in_the_way(broker, number)
        while True:
            try:
                in_the_way.mkdir()
                break
            except FileExistsError:
                # The broker is writing its checkpoint just now.
                time.sleep(0.01)
        self.journal.write(action="fail_directory", broker=broker, number=number)

    def _in_the_way(self, broker: int, number: int) -> Path:
        return self.data(broker)[number] / "replication-offset-checkpoint.tmp"

    def _mend_directories(self, broker: int) -> None:
        for number in range(self.log_dirs):
            if self._in_the_way(broker, number).is_dir():
                self._in_the_way(broker, number).rmdir()

    def empty_directory(self, broker: int, number: int = 0) -> None:
        """The directory of a broker that is down loses all it holds, but for what KRaft wants to be
        there: the same directory, by its id."""
        data = self.data(broker)[number]
        kept = {
            name: (data / name).read_bytes()
            for name in ("meta.properties", "bootstrap.checkpoint")
            if self.version.kraft and (data / name).exists()
        }
        emptied = sorted(place.name for place in data.iterdir() if place.is_dir())
        shutil.rmtree(data)
        data.mkdir()
        self.journal.write(action="empty_disk", broker=broker, emptied=emptied)
        for name, content in kept.items():
            (data / name).write_bytes(content)

    def replace_disk(self, broker: int, number: int = 0) -> None:
        """An empty directory for a broker that is down; KRaft wants it formatted anew."""
        self.empty_directory(broker, number)
        data = self.data(broker)[number]
        properties = data / "meta.properties"
        if properties.exists():
            lines = properties.read_text().splitlines()
            renamed = [
                f"directory.id={random_uuid()}" if "directory.id" in line else line
                for line in lines
            ]
            properties.write_text("\n".join(renamed) + "\n")

    def set_clock(self, broker: int, zone: str) -> None:
        """By that zone's time its next start logs, as where the machine's clock was set."""
        self.zones[broker] = zone
        self.journal.write(action="set_clock", broker=broker, zone=zone)

    def move_directory(self, broker: int, number: int = 0) -> None:
        """A log directory of a broker that is down lies under another path from its next start."""
        path = self.home(broker) / "node.properties"
        settings = node_settings.read_properties(path)
        told = settings["log.dirs"].split(",")
        place = self.data(broker)[number]
        moved = self.home(broker) / f"moved-{len(list(self.home(broker).glob('moved-*')))}"
        moved.symlink_to(place.name)
        self.journal.write(
            action="move_directory", broker=broker, was=told[number], moved=str(moved)
        )
        told[number] = str(moved)
        node_settings.write_properties(path, {**settings, "log.dirs": ",".join(told)})

    def roll_back(self, broker: int, older: Path) -> None:
        """The directories of a broker that is down become what `save_directories` kept of them."""
        for directory in self.data(broker):
            shutil.rmtree(directory)
            shutil.copytree(older / directory.name, directory)
        self.journal.write(action="roll_back", broker=broker)

    def save_directories(self, broker: int, copy: Path) -> None:
        shutil.rmtree(copy, ignore_errors=True)
        for directory in self.data(broker):
            shutil.copytree(directory, copy / directory.name)

    def stop_all(self) -> None:
        """A clean end: followers first, so that little leadership moves; then the controller."""
        leaders = {
            state.leader
            for topic in self.assignments
            for partition in self.assignments[topic]
            if (state := self.state(topic, partition)) is not None
        }
        self.journal.write(action="quiet_point")
        live = [broker for broker in self.plan.brokers if self.running(broker)]
        for broker in sorted(live, key=lambda broker: (broker in leaders, broker)):
            self.terminate(broker)
        controller = self.processes.get(node_settings.CONTROLLER_ID)
        if controller is not None and controller.running:
            controller.terminate()

    def running(self, broker: int) -> bool:
        return broker in self.processes and self.processes[broker].running

    def answering(self) -> list[int]:
        return [
            broker
            for broker in self.plan.brokers
            if self.running(broker) and not self.processes[broker].frozen
        ]

    def wait_up(self, broker: int) -> None:
        """Until it answers and the cluster knows it."""
        process = self.processes[broker]

        def up() -> bool:
            if not process.running:
                raise ChildProcessError(f"broker {broker} ended: see {process.console}")
            return accepts(self.external[broker]) and self._registered(broker)

        wait_for(f"broker {broker}", up, START_SECONDS)
        self.journal.write(action="up", broker=broker)

    def wait_unregistered(self, broker: int) -> None:
        """ZooKeeper: a killed broker's registration outlives it by its session time-out."""
        with self.zookeeper() as asked:
            wait_for(
                f"the registration of broker {broker} to go",
                lambda: not asked.exists(f"/brokers/ids/{broker}"),
                START_SECONDS,
            )

    # Asking and ordering.

    def zookeeper(self) -> ZooKeeperClient:
        return ZooKeeperClient(self.meeting_port)

    def connection(self, broker: int, client: str, timeout: float = 10.0) -> wire.Connection:
        return wire.Connection(self.external[broker], client, timeout)

    def state(self, topic: str, partition: int) -> PartitionState | None:
        """The newest state that the controller, or a broker that answers, tells."""
        if not self.version.kraft:
            return self._state_of_znode(topic, partition)
        newest: PartitionState | None = None
        for broker in self.answering():
            found = self._state_by_broker(broker, topic, partition)
            if found is not None and (
                newest is None or (found.leader_epoch or 0) >= (newest.leader_epoch or 0)
            ):
                newest = found
        return newest

    def leader(self, topic: str, partition: int) -> int | None:
        state = self.state(topic, partition)
        return None if state is None else state.leader

    def knows(self, broker: int, topic: str) -> bool | None:
        """Whether that broker's metadata has the topic; None when it does not answer."""
        try:
            with self.connection(broker, "lab-admin", timeout=3.0) as connection:
                answer = connection.call(wire.metadata_request(self.version, [topic]))
        except OSError:
            return None
        return bool(answer.topics[0].partitions)

    def wait_for_isr(self, topic: str, partition: int, *isr: int, seconds: float = 60) -> None:
        def reached() -> bool:
            state = self.state(topic, partition)
            return state is not None and set(state.isr) == set(isr) and state.leader is not None

        wait_for(f"ISR {isr} of {topic}-{partition}", reached, seconds)

    def wait_for_leader(self, topic: str, partition: int, *wanted: int, seconds: float = 60) -> int:
        """Until one of `wanted`, or anybody, leads and knows it."""

        def reached() -> bool:
            leader = self.leader(topic, partition)
            if leader is None or leader not in (wanted or self.plan.brokers):
                return False
            if leader not in self.answering():
                return False
            found = self._state_by_broker(leader, topic, partition)
            return found is not None and found.leader == leader

        wait_for(f"leader {wanted} of {topic}-{partition}", reached, seconds)
        # The metadata cache of a broker is filled a moment before its replica manager acts on it.
        time.sleep(0.3)
        leader = self.leader(topic, partition)
        assert leader is not None
        return leader

    def create_topic(
        self, topic: str, assignment: dict[int, list[int]], **settings: object
    ) -> None:
        """`settings` with underscores for dots; returns when every partition has a leader."""
        configs = {name.replace("_", "."): str(value) for name, value in settings.items()}
        request = wire.create_topic_request(self.version, topic, assignment, configs)
        self.order(f"create topic {topic}", request, lambda answer: answer.topics[0].error_code)
        self.assignments[topic] = assignment
        self.topic_settings[topic] = configs
        for partition in assignment:
            self.wait_for_leader(topic, partition)
        self._learn_topic_id(topic)
        self.journal.write(
            action="create_topic",
            topic=topic,
            topic_id=self.topic_ids.get(topic),
            assignment=assignment,
            configs=configs,
        )

    def order(self, what: str, request: Any, error_code: Any, seconds: float = 30) -> None:
        """Sends an administrative request to whichever broker accepts it; raises Refused."""
        end = time.monotonic() + seconds
        while True:
            code: int | None = None
            for broker in self.answering():
                try:
                    with self.connection(broker, "lab-admin") as connection:
                        code = int(error_code(connection.call(request)))
                except OSError:
                    continue
                if code == 0:
                    return
            if time.monotonic() > end:
                raise wire.Refused(what, -1 if code is None else code)
            time.sleep(0.3)

    def delete_topic(self, topic: str, seconds: float = 60) -> None:
        """Returns when no broker that answers knows it any more. Raises Refused."""
        asked_at = time.time()
        request = wire.delete_topic_request(topic)

        def code(answer: Any) -> int:
            return int(answer.responses[0].error_code)

        self.order(f"delete topic {topic}", request, code, seconds)
        self.journal.write(action="delete_topic", topic=topic, ts=utc_text(asked_at))

        def gone() -> bool:
            if not self.version.kraft:
                with self.zookeeper() as asked:
                    marks = (f"/brokers/topics/{topic}", f"/admin/delete_topics/{topic}")
                    if any(asked.exists(path) for path in marks):
                        return False
            return all(self.knows(broker, topic) is False for broker in self.answering())

        wait_for(f"deletion of {topic}", gone, START_SECONDS)
        self.topic_ids.pop(topic, None)
        self.journal.write(action="deleted_topic", topic=topic)

    def reassign(
        self, topic: str, partition: int, replicas: list[int], seconds: float = 30
    ) -> None:
        """Orders it; the brokers move on their own time. Raises Refused."""
        if self.version.at_least(2, 4):
            self.order(
                f"reassign to {replicas}",
                wire.reassign_request(topic, partition, replicas),
                lambda answer: answer.error_code or answer.responses[0].partitions[0].error_code,
                seconds,
            )
        else:
            moved = {"topic": topic, "partition": partition, "replicas": replicas}
            self._order_by_znode("/admin/reassign_partitions", [moved], seconds)
        self.assignments[topic][partition] = replicas
        self.journal.write(action="reassign", partition=partition, replicas=replicas)

    def elect_preferred(self, topic: str, partition: int, seconds: float = 30) -> None:
        """A clean election of the first replica. Raises Refused."""
        if self.version.at_least(2, 4):
            request = wire.election_request(topic, partition)
            self.order("elect preferred", request, _code_of_election, seconds)
        else:
            named = {"topic": topic, "partition": partition}
            self._order_by_znode("/admin/preferred_replica_election", [named], seconds)
        self.journal.write(action="elect_preferred", partition=partition)

    def elect_unclean(self, topic: str, partition: int, seconds: float = 30) -> None:
        """An election of whoever runs, if nobody leads, whatever the settings; from 2.4 on. Raises
        Refused."""
        request = wire.election_request(topic, partition, unclean=True)
        self.journal.write(action="elect_unclean", partition=partition)
        self.order("elect unclean", request, _code_of_election, seconds)

    def alter_topic(self, topic: str, seconds: float = 30, **settings: object) -> None:
        """Sets some of its settings while it is in use, from 0.11 on. Raises Refused."""
        changed = {name.replace("_", "."): str(value) for name, value in settings.items()}
        configs = self.topic_settings[topic] | changed
        request = wire.alter_config_request(self.version, topic, configs)
        # They may be in force before the answer is here, and even without one.
        self.journal.write(action="alter_topic", topic=topic, configs=configs)
        self.order("alter topic", request, lambda answer: answer.responses[0].error_code, seconds)
        self.topic_settings[topic] = configs

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        """Asks the leader once; nobody may be there who answers. From 0.11 on."""
        leader = self.leader(topic, partition)
        if leader is None:
            return
        self.journal.write(
            action="delete_records", partition=partition, before_offset=before_offset
        )
        request = wire.delete_records_request(topic, partition, before_offset)
        with suppress(OSError), self.connection(leader, "lab-admin", timeout=3.0) as connection:
            connection.call(request)

    def create_partitions(self, topic: str, added: list[list[int]], seconds: float = 30) -> None:
        """More partitions for a topic in use; from 1.0 on. Raises Refused."""
        before = self.assignments[topic]
        request = wire.create_partitions_request(topic, len(before) + len(added), added)
        self.order("add partitions", request, lambda answer: answer.results[0].error_code, seconds)
        numbered = dict(enumerate(added, start=len(before)))
        self.assignments = {**self.assignments, topic: {**before, **numbered}}
        self.journal.write(action="create_partitions", topic=topic, added=numbered)

    def move_replica(self, broker: int, topic: str, partition: int, number: int) -> None:
        """Asks a broker once to move its replica to that directory of its; from 1.1 on."""
        settings = node_settings.read_properties(self.home(broker) / "node.properties")
        directory = settings["log.dirs"].split(",")[number]
        request = wire.alter_directory_request(directory, topic, partition)
        self.journal.write(
            action="move_replica", broker=broker, partition=partition, directory=directory
        )
        with suppress(OSError), self.connection(broker, "lab-admin", timeout=3.0) as connection:
            connection.call(request)

    def elect(self, topic: str, partition: int, leader: int) -> None:
        """A clean election: the broker becomes the preferred one, and the preferred one elected."""
        others = [r for r in self.assignments[topic][partition] if r != leader]
        self.reassign(topic, partition, [leader, *others])
        self.elect_preferred(topic, partition)
        wait_for(f"leader {leader}", lambda: self.leader(topic, partition) == leader, 20)

    # Inside.

    def _write_settings(self) -> None:
        everywhere, single = self.plan.settings, self.plan.of_broker
        for broker in self.plan.brokers:
            advertised = (
                self.tap_ports[broker] if broker in self.plan.tapped else self.internal[broker]
            )
            ports = (self.internal[broker], self.external[broker], advertised)
            settings = node_settings.broker_settings(
                self.version, broker, self.data(broker), ports, self.meeting_port
            )
            settings.update(everywhere)
            settings.update(single.get(broker, {}))
            node_settings.write_properties(self.home(broker) / "node.properties", settings)
        if self.version.kraft:
            node = node_settings.CONTROLLER_ID
            settings = node_settings.controller_settings(
                self.data(node)[0], self.controller_port, self.meeting_port
            )
            settings.update(everywhere)
            if not self.version.at_least(3, 9):
                del settings["advertised.listeners"]  # Refused of a controller.
            node_settings.write_properties(self.home(node) / "node.properties", settings)

    def _format(self) -> None:
        """Formats the controller with Kafka's tool; the brokers' directories differ only in ids."""
        node = node_settings.CONTROLLER_ID
        features: list[str] = []
        if self.plan.eligible_leader_replicas is not None and self.version.at_least(4, 0):
            level = int(self.plan.eligible_leader_replicas)
            features = ["--feature", f"eligible.leader.replicas.version={level}"]
        properties = str(self.home(node) / "node.properties")
        tool = ["kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", properties]
        run_tool(self.version.class_path, [*tool, *features])
        made = self.data(node)[0]
        for broker in self.plan.brokers:
            for directory in self.data(broker):
                shutil.copytree(made, directory)
                node_settings.write_properties(
                    directory / "meta.properties",
                    {
                        "version": 1,
                        "node.id": broker,
                        "cluster.id": self.cluster_id,
                        "directory.id": random_uuid(),
                    },
                )

    def _start_node(self, node: int, kind: str) -> None:
        home = self.home(node)
        logs = home / "logs"
        release = self.releases.get(node, self.version)
        options = [
            node_settings.logging_option(release, home / "logging.properties", self.plan.grade),
            f"-Dkafka.logs.dir={logs}",
        ]
        zone = self.zones.get(node, "UTC")
        options.append(f"-Duser.timezone={zone}")
        self.journal.write(action="start", zone=zone, **{kind: node})
        self.processes[node] = JavaProcess(
            release.class_path,
            options,
            ["kafka.Kafka", str(home / "node.properties")],
            home / "console.txt",
        )

    def _start_zookeeper(self) -> None:
        home = self.directory / "zookeeper"
        settings = node_settings.zookeeper_settings(home / "data", self.meeting_port)
        properties = node_settings.write_properties(home / "zoo.cfg", settings)
        (home / "data").mkdir(exist_ok=True)
        logging = node_settings.logging_option(self.version, home / "logging.properties", "default")
        jars = self.plan.zookeeper and zookeeper_jars(self.plan.zookeeper)
        self._keeper = JavaProcess(
            ":".join(map(str, jars)) if jars else self.version.class_path,
            [logging, f"-Dkafka.logs.dir={home}"],
            ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(properties)],
            home / "console.txt",
        )
        keeper = self._keeper

        def up() -> bool:
            if not keeper.running:
                raise ChildProcessError(f"ZooKeeper ended: see {keeper.console}")
            try:
                with self.zookeeper() as asked:
                    return asked.exists("/zookeeper")
            except OSError:
                return False

        wait_for("ZooKeeper", up, START_SECONDS)

    def _registered(self, broker: int) -> bool:
        if not self.version.kraft:
            with self.zookeeper() as asked:
                return asked.exists(f"/brokers/ids/{broker}")
        try:
            with self.connection(broker, "lab-admin", timeout=3.0) as connection:
                answer = connection.call(wire.metadata_request(self.version, []))
        except OSError:
            return False
        return broker in {known.node_id for known in answer.brokers}

    def _order_by_znode(
        self, path: str, partitions: list[dict[str, object]], seconds: float
    ) -> None:
        """Before the requests: the controller watches a znode, and removes it when done."""
        with self.zookeeper() as asked:
            if not asked.create(path, {"version": 1, "partitions": partitions}):
                raise wire.Refused(f"{path}: one is under way", wire.REASSIGNMENT_IN_PROGRESS)
            end = time.monotonic() + seconds
            while asked.exists(path) and time.monotonic() < end:
                time.sleep(0.1)

    def _state_of_znode(self, topic: str, partition: int) -> PartitionState | None:
        with self.zookeeper() as asked:
            found = asked.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
            assigned = asked.get(f"/brokers/topics/{topic}")
        if found is None or assigned is None:
            return None
        state = found.json()
        leader = None if state["leader"] == NO_LEADER else state["leader"]
        told = assigned.json()
        replicas = tuple(told["partitions"].get(str(partition), ()))
        return PartitionState(
            leader, state["leader_epoch"], tuple(state["isr"]), replicas, told.get("topic_id")
        )

    def _state_by_broker(self, broker: int, topic: str, partition: int) -> PartitionState | None:
        try:
            with self.connection(broker, "lab-admin", timeout=2.0) as connection:
                answer = connection.call(wire.metadata_request(self.version, [topic]))
        except OSError:
            return None
        newer = self.version.at_least(2, 8)
        for found in answer.topics[0].partitions:
            if found.partition_index == partition:
                leader = None if found.leader_id == NO_LEADER else found.leader_id
                return PartitionState(
                    leader,
                    found.leader_epoch if newer else None,
                    tuple(found.isr_nodes),
                    tuple(found.replica_nodes),
                    _as_text(answer.topics[0].topic_id) if newer else None,
                )
        return None

    def _learn_topic_id(self, topic: str) -> None:
        if not self.version.at_least(2, 8):
            return
        for broker in self.answering():
            with self.connection(broker, "lab-admin") as connection:
                answer = connection.call(wire.metadata_request(self.version, [topic]))
            told = _as_text(answer.topics[0].topic_id)
            if told is not None:
                self.topic_ids[topic] = told
                return


def _as_text(topic_id: uuid.UUID) -> str | None:
    """As Kafka writes it; None for the one that stands for none."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=") if topic_id.int else None


def _code_of_election(answer: Any) -> int:
    told = answer.replica_election_results
    code = int(answer.error_code or (told[0].partition_result[0].error_code if told else 0))
    return 0 if code == wire.ELECTION_NOT_NEEDED else code
