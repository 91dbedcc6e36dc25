"""Named scenarios: known ways to lose records or not to, each on the versions where it happens.

A scenario drives one experiment to a situation and checks by the truth that it got there; whether
`diagnose` sees it is judged elsewhere, the same way for all.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.kafka_lab import node_settings, tap, wire
from tests.kafka_lab.cluster import Plan
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.logs_on_disk import checkpoint_entries
from tests.kafka_lab.processes import wait_for
from tests.kafka_lab.producer import Batch, Load, Producer
from tests.kafka_lab.truth import HOLDS, VIOLATED
from tests.kafka_lab.versions import SUPPORTED, Version

ALL = SUPPORTED
SINCE_2_8 = ("2.8.2", "3.9.1", "4.1.1", "4.3.0")
KRAFT = ("3.9.1", "4.1.1", "4.3.0")
WITH_ELR = ("4.1.1", "4.3.0")

Steps = Callable[[Experiment], None]
Planned = Callable[[Version], Plan]


@dataclass(frozen=True)
class Scenario:
    """`intended`: committed, acknowledged and log matching of t-0, as the steps must lead to.

    `without_epochs` is what they lead to before 0.11, if that differs.
    """

    name: str
    versions: tuple[str, ...]
    steps: Steps
    plan: Planned
    intended: tuple[str, str, str]
    without_epochs: tuple[str, str, str] | None = None

    def run(self, version: Version, directory: Path) -> Experiment:
        with Experiment(self.plan(version), directory) as experiment:
            experiment.cluster.journal.write(action="scenario", name=self.name)
            self.steps(experiment)
            experiment.finish()
        truth = experiment.truths["t", 0]
        reached = tuple(truth.verdicts.values())
        old = self.without_epochs is not None and not version.at_least(0, 11)
        intended = self.without_epochs if old else self.intended
        if reached != intended:
            raise AssertionError(
                f"{self.name} on {version.name} led to {reached}, not {intended}; see {directory}"
            )
        return experiment


SCENARIOS: dict[str, Scenario] = {}
NOTHING_LOST = (HOLDS, HOLDS, HOLDS)
COMMITTED_LOST = (VIOLATED, VIOLATED, HOLDS)
ACKNOWLEDGED_LOST = (HOLDS, VIOLATED, HOLDS)
LOST_AND_DIVERGED = (VIOLATED, VIOLATED, VIOLATED)


def scenario(
    versions: tuple[str, ...],
    intended: tuple[str, str, str],
    plan: Planned = Plan,
    without_epochs: tuple[str, str, str] | None = None,
) -> Callable[[Steps], Steps]:
    def add(steps: Steps) -> Steps:
        name = steps.__name__
        SCENARIOS[name] = Scenario(name, versions, steps, plan, intended, without_epochs)
        return steps

    return add


# Nothing is lost.


@scenario(ALL, NOTHING_LOST)
def healthy_rolling_restart(lab: Experiment) -> None:
    """Every broker stopped cleanly, copied and started, under load."""
    lab.cluster.create_topic("t", {0: [1, 2, 3], 1: [2, 3, 1]}, min_insync_replicas=2)
    load = Load(lab.cluster, lab.acks, ["all", "all"], partitions=(0, 1), pause=0.3)
    for broker in (1, 2, 3):
        time.sleep(1)
        lab.cluster.terminate(broker)
        lab.capture.copy_disk(broker, "before-restart")
        lab.cluster.start_broker(broker)
        for partition in (0, 1):
            lab.cluster.wait_for_isr("t", partition, 1, 2, 3)
    load.stop()


def _long_sessions_short_lag(version: Version) -> Plan:
    """So that a frozen follower is dropped by the leader before the controller misses it."""
    session = "broker.session.timeout.ms" if version.kraft else "zookeeper.session.timeout.ms"
    return Plan(
        version, brokers=(1, 2), settings={session: "15000", "replica.lag.time.max.ms": "3000"}
    )


def _controller(lab: Experiment) -> int | None:
    """With ZooKeeper a broker is the controller."""
    with lab.cluster.zookeeper() as asked:
        found = asked.get("/controller")
    return None if found is None else int(found.json()["brokerid"])


def controller_on(lab: Experiment, broker: int) -> None:
    """With ZooKeeper: whoever else is the controller starts anew until it is this one."""
    if lab.cluster.version.kraft:
        return
    while (found := _controller(lab)) != broker:
        if found is not None:
            lab.cluster.terminate(found)
            lab.cluster.start_broker(found)


@scenario(ALL, NOTHING_LOST, _long_sessions_short_lag)
def isr_shrink_expand(lab: Experiment) -> None:
    """The leader itself drops a follower that stays behind, goes on alone, and takes it back."""
    controller_on(lab, 1)
    lab.cluster.create_topic("t", {0: [1, 2]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(5, 2)
    lab.cluster.freeze(2)
    time.sleep(1)
    producer.must(3, acks="1")
    lab.cluster.wait_for_isr("t", 0, 1)
    producer.must(5)
    lab.cluster.resume(2)
    lab.cluster.wait_for_isr("t", 0, 1, 2)
    producer.must(4)


@scenario(SINCE_2_8, NOTHING_LOST)
def reassignment(lab: Experiment) -> None:
    """A partition moves from brokers 1, 2 to 3, 2 and on to 3, 1, under load."""
    lab.cluster.create_topic("t", {0: [1, 2]}, min_insync_replicas=1)
    load = Load(lab.cluster, lab.acks, ["all", "1"], pause=0.2)
    time.sleep(2)
    for replicas in ([3, 2], [3, 1]):
        lab.capture.copy_disk(1, "live")
        lab.cluster.reassign("t", 0, replicas)
        lab.cluster.wait_for_isr("t", 0, *replicas)
        time.sleep(2)
    load.stop()


@scenario(ALL, NOTHING_LOST)
def disk_replaced_by_an_empty_one(lab: Experiment) -> None:
    """A follower loses its whole disk, comes back empty and fetches everything again."""
    lab.cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=2)
    producer = lab.producer()
    producer.must(8, 2)
    lab.cluster.kill(3)
    lab.cluster.wait_for_isr("t", 0, 1, 2)
    producer.must(3, 2)
    lab.capture.copy_disk(3, "broken-disk")
    lab.cluster.replace_disk(3)
    lab.cluster.start_broker(3)
    lab.cluster.wait_for_isr("t", 0, 1, 2, 3)
    producer.must(3, 2)


def _two_disks(version: Version) -> Plan:
    return Plan(version, log_dirs=2)


@scenario(("1.1.1", "2.8.2", "3.9.1", "4.1.1", "4.3.0"), NOTHING_LOST, _two_disks)
def two_log_dirs(lab: Experiment) -> None:
    """Brokers with two disks each, several partitions spread over them, one broker killed."""
    spread = {0: [1, 2], 1: [2, 3], 2: [3, 1], 3: [1, 3]}
    lab.cluster.create_topic("t", spread, min_insync_replicas=1)
    load = Load(lab.cluster, lab.acks, ["all"], partitions=tuple(spread), pause=0.1)
    time.sleep(4)
    lab.cluster.kill(2)
    time.sleep(1)
    lab.capture.copy_disk(2, "before-restart")
    lab.cluster.start_broker(2)
    for partition, replicas in spread.items():
        lab.cluster.wait_for_isr("t", partition, *replicas)
    load.stop()


def _rolling_segments(version: Version) -> Plan:
    settings = {"log.retention.check.interval.ms": "1000", "log.segment.bytes": "1048576"}
    if version.at_least(3, 9):
        settings["log.initial.task.delay.ms"] = "500"
    return Plan(version, settings=settings)


@scenario(ALL, NOTHING_LOST, _rolling_segments)
def copies_under_load(lab: Experiment) -> None:
    """Directories of running brokers copied one after another, seconds apart, under load."""
    lab.capture.with_indexes = True
    lab.cluster.create_topic("t", {0: [1, 2, 3], 1: [3, 1, 2]}, min_insync_replicas=2)
    load = Load(
        lab.cluster,
        lab.acks,
        ["all", "all", "1"],
        partitions=(0, 1),
        pause=0.05,
        batch=20,
        value_bytes=300,
    )
    time.sleep(4)
    for label in ("monday", "again"):
        for broker in (2, 1, 3):
            lab.capture.copy_disk(broker, label)
            time.sleep(2)
    load.stop()


@scenario(WITH_ELR, NOTHING_LOST, _rolling_segments)
def retention(lab: Experiment) -> None:
    """Old segments deleted by time, and a part by request: gone, but not lost."""
    lab.cluster.create_topic(
        "t", {0: [1, 2, 3]}, min_insync_replicas=2, segment_ms=1000, retention_ms=3000
    )
    producer = lab.producer()
    producer.must(10, 2)
    time.sleep(2)
    producer.must(2)
    wait_for("retention", lambda: _log_start(lab) > 0, 60)
    time.sleep(1)
    kept = producer.must(10, 2)
    first = kept[0].offset
    assert first is not None
    request = wire.delete_records_request("t", 0, first + 5)
    lab.cluster.order(
        "delete records", request, lambda answer: answer.topics[0].partitions[0].error_code
    )
    time.sleep(2)
    lab.excused = _below_start(lab)
    producer.must(3)


def _log_start(lab: Experiment, broker: int = 1) -> int:
    """The broker's log start, as the first segment's name tells it."""
    place = lab.cluster.data(broker)[0] / "t-0"
    return min(int(path.stem) for path in place.glob("*.log"))


def _below_start(lab: Experiment) -> Callable[[str], bool]:
    """Excuses acknowledged records below the place where, in the end, some log starts.

    Nothing but retention and the request to delete takes records away at that end.
    """

    def excused(payload_id: str) -> bool:
        deleted_on_request = [
            checkpoint_entries(lab.cluster.data(broker)[0] / "log-start-offset-checkpoint").get(
                ("t", 0), 0
            )
            for broker in (1, 2, 3)
        ]
        start = max(*deleted_on_request, *(_log_start(lab, broker) for broker in (1, 2, 3)))
        offsets = {
            line["payload_id"]: line["offset"]
            for line in lab.acks.journal.lines()
            if line["status"] == "acked"
        }
        return payload_id in offsets and offsets[payload_id] < start

    return excused


def _compacting(version: Version) -> Plan:
    settings = {"log.cleaner.backoff.ms": "1000", "log.retention.check.interval.ms": "1000"}
    if version.at_least(3, 9):
        settings["log.initial.task.delay.ms"] = "500"
    return Plan(version, settings=settings, of_broker={3: {"log.cleaner.enable": "false"}})


@scenario(("4.1.1", "4.3.0"), NOTHING_LOST, _compacting)
def compaction(lab: Experiment) -> None:
    """Two replicas compact on their own time, the third never: their logs differ lawfully."""
    lab.cluster.create_topic(
        "t",
        {0: [1, 2, 3]},
        min_insync_replicas=2,
        cleanup_policy="compact",
        segment_ms=1000,
        min_cleanable_dirty_ratio="0.01",
    )
    producer = lab.producer()
    producer.keys = 5
    for _ in range(6):
        producer.must(6, 3)
        time.sleep(1.5)
    lab.cluster.terminate(2)
    lab.capture.copy_disk(2, "before-restart")
    lab.cluster.start_broker(2)
    lab.cluster.wait_for_isr("t", 0, 1, 2, 3)
    producer.must(2, 2)
    time.sleep(6)


@scenario(KRAFT, NOTHING_LOST)
def topic_recreated(lab: Experiment) -> None:
    """The topic is deleted and made anew under the same name while a replica is down."""
    lab.cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(10, 2)
    lab.cluster.terminate(3)
    lab.capture.copy_disk(3, "before-restart")
    lab.cluster.delete_topic("t")
    time.sleep(2)
    lab.cluster.create_topic("t", {0: [1, 2]}, min_insync_replicas=1)
    producer.must(5, 2)
    lab.cluster.start_broker(3)
    producer.must(3)
    time.sleep(2)


# Acknowledged records are lost, lawfully.


@scenario(ALL, ACKNOWLEDGED_LOST)
def acks_one_loss(lab: Experiment) -> None:
    """Records that only the leader had, acknowledged with acks=1, die with it."""
    lab.cluster.create_topic("t", {0: [1, 2]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(10, 2)
    time.sleep(1)
    lab.cluster.freeze(2)
    producer.must(6, 2, acks="1")
    lab.cluster.kill(1)
    lab.capture.copy_disk(1, "before-restart")
    lab.cluster.resume(2)
    lab.cluster.wait_for_leader("t", 0, 2)
    producer.must(3, 2)
    lab.cluster.start_broker(1)
    lab.cluster.wait_for_isr("t", 0, 1, 2)
    producer.must(2, 2)


@scenario(ALL, ACKNOWLEDGED_LOST)
def zombie_leader(lab: Experiment) -> None:
    """A frozen leader wakes up deposed and first serves what waits in its socket."""
    lab.cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(10, 2)
    stale = lab.producer("p2")
    stale.must(1, acks="1", broker=1)
    lab.cluster.wait_for_isr("t", 0, 1, 2, 3)
    time.sleep(1)
    lab.cluster.freeze(1)
    waiting = [stale.start(1, lab.acks.new_ids("z0", 1), "1") for _ in range(5)]
    lab.cluster.wait_for_leader("t", 0, 2, 3)
    producer.must(6, 2)
    lab.cluster.resume(1)
    for batch in waiting:
        stale.finish(1, batch)
    lab.cluster.wait_for_isr("t", 0, 1, 2, 3)
    producer.must(3, 2)


# Committed records are lost.


@scenario(ALL, COMMITTED_LOST, without_epochs=LOST_AND_DIVERGED)
def unclean_election(lab: Experiment) -> None:
    """The last replica of the ISR dies, one that was behind is elected all the same."""
    lab.cluster.create_topic(
        "t", {0: [1, 2, 3]}, min_insync_replicas=1, unclean_leader_election_enable="true"
    )
    producer = lab.producer()
    producer.must(10, 2)
    time.sleep(1)
    lab.cluster.kill(2, 3)
    lab.cluster.wait_for_isr("t", 0, 1)
    producer.must(5, 2)
    time.sleep(1)
    lab.cluster.kill(1)
    for broker in (1, 2, 3):
        lab.capture.copy_disk(broker, "before-restart")
    lab.cluster.start_broker(2)
    lab.cluster.wait_for_leader("t", 0, 2)
    lab.cluster.start_broker(3)
    lab.cluster.wait_for_isr("t", 0, 2, 3)
    producer.must(3, 2)
    lab.cluster.start_broker(1)
    lab.cluster.wait_for_isr("t", 0, 1, 2, 3)
    producer.must(2, 2)


def _elr(switch: bool | None) -> Planned:
    return lambda version: Plan(version, eligible_leader_replicas=switch)


def _last_one_loses_its_tail(lab: Experiment, end_others: Callable[[int], object]) -> None:
    """ISR shrinks to broker 1, which then dies and loses unflushed records."""
    lab.cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=2)
    producer = lab.producer()
    producer.must(15, 2)
    time.sleep(1)
    end_others(2)
    lab.cluster.wait_for_isr("t", 0, 1, 3)
    end_others(3)
    lab.cluster.wait_for_isr("t", 0, 1)
    lab.cluster.kill(1)
    lab.cut(1, 5)
    for broker in (1, 2, 3):
        lab.capture.copy_disk(broker, "before-restart")


@scenario(KRAFT, COMMITTED_LOST, _elr(False))
def last_replica_standing_elr_off(lab: Experiment) -> None:
    """The last member of the ISR comes back short, is elected cleanly, and the others follow."""
    _last_one_loses_its_tail(lab, lab.cluster.terminate)
    lab.cluster.start_broker(1)
    lab.cluster.wait_for_leader("t", 0, 1)
    lab.cluster.start_broker(2, wait=False)
    lab.cluster.start_broker(3)
    lab.cluster.wait_for_isr("t", 0, 1, 2, 3)
    lab.producer("p2").must(2, 2)


@scenario(WITH_ELR, NOTHING_LOST, _elr(True))
def last_replica_standing_elr_on(lab: Experiment) -> None:
    """The controller strikes the short one and elects broker 3, which left cleanly."""
    _last_one_loses_its_tail(lab, lab.cluster.terminate)
    lab.cluster.start_broker(1)
    time.sleep(2)
    lab.cluster.start_broker(3)
    lab.cluster.wait_for_leader("t", 0, 3)
    lab.cluster.start_broker(2)
    lab.cluster.wait_for_isr("t", 0, 1, 2, 3)
    lab.producer("p2").must(2, 2)


@scenario(WITH_ELR, COMMITTED_LOST, _elr(True))
def last_replica_standing_all_unclean(lab: Experiment) -> None:
    """All were killed: nobody is eligible, the last known leader is taken with what it has left."""
    _last_one_loses_its_tail(lab, lab.cluster.kill)
    lab.cluster.start_broker(1)
    time.sleep(2)
    lab.cluster.start_broker(3)
    lab.cluster.wait_for_leader("t", 0)
    lab.cluster.start_broker(2)
    lab.cluster.wait_for_isr("t", 0, 1, 2, 3)
    lab.producer("p2").must(2, 2)


def held_follower(version: Version) -> Plan:
    """KIP-101 scenario 1: long fetch waits, and a tap before broker 2."""
    return Plan(
        version,
        brokers=(1, 2),
        tapped=(2,),
        settings={
            "replica.fetch.wait.max.ms": "20000",
            "replica.socket.timeout.ms": "60000",
            "replica.lag.time.max.ms": "600000",
            "controlled.shutdown.enable": "false",
        },
    )


def _truncated_to_an_old_high_watermark(lab: Experiment) -> None:
    """Broker 1 (the controller) restarts while its high watermark is one behind; 2 then dies."""
    cluster = lab.cluster
    controller_on(lab, 1)
    cluster.create_topic("t", {0: [2, 1]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.timeout_ms = 30_000
    producer.must(11)
    lab.wait_checkpointed(1, 10)
    time.sleep(0.6)
    cluster.kill(1)
    held = (tap.FETCH, tap.OFFSET_FOR_LEADER_EPOCH)
    cluster.taps[2].hold(*held)
    lab.capture.copy_disk(1, "before-restart")
    cluster.start_broker(1)
    time.sleep(3)
    cluster.kill(2)
    lab.capture.copy_disk(2, "before-restart")
    cluster.wait_for_leader("t", 0, 1)
    cluster.taps[2].release()


@scenario(("0.10.2.2",), LOST_AND_DIVERGED, held_follower)
def kip101_scenario_1_divergence(lab: Experiment) -> None:
    """An acknowledged record is lost with clean elections only, and the logs differ for ever."""
    _truncated_to_an_old_high_watermark(lab)
    producer = lab.producer("p2")
    producer.must(1)
    lab.cluster.start_broker(2)
    lab.cluster.wait_for_isr("t", 0, 1, 2)
    producer.must(2)


@scenario(("1.1.1",), NOTHING_LOST, held_follower)
def kip101_scenario_1_control(lab: Experiment) -> None:
    """The same steps where followers ask for epochs: nothing is truncated before the answer."""
    _truncated_to_an_old_high_watermark(lab)
    producer = lab.producer("p2")
    producer.must(1)
    lab.cluster.start_broker(2)
    lab.cluster.wait_for_isr("t", 0, 1, 2)
    producer.must(2)


def two_brokers(version: Version) -> Plan:
    return Plan(version, brokers=(1, 2))


def _both_die_and_the_follower_is_short(lab: Experiment) -> None:
    cluster = lab.cluster
    cluster.create_topic("t", {0: [1, 2]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(10)
    lab.wait_checkpointed(1, 10)
    cluster.kill(1, 2)
    lab.cut(2, 1)
    for broker in (1, 2):
        lab.capture.copy_disk(broker, "before-restart")
    cluster.wait_unregistered(1)
    cluster.start_broker(2)
    cluster.wait_for_leader("t", 0, 2)
    producer.must(1)
    cluster.start_broker(1)
    cluster.wait_for_isr("t", 0, 1, 2)
    producer.must(2)


@scenario(("0.10.2.2",), LOST_AND_DIVERGED, two_brokers)
def kip101_scenario_2(lab: Experiment) -> None:
    """The short follower leads; the old leader truncates to its high watermark, not to the fork."""
    _both_die_and_the_follower_is_short(lab)


@scenario(("1.1.1",), COMMITTED_LOST, two_brokers)
def kip101_scenario_2_control(lab: Experiment) -> None:
    """The same with epochs: the record is lost, the logs agree."""
    _both_die_and_the_follower_is_short(lab)


def _fast_failover(lab: Experiment) -> None:
    """KIP-279: two elections that the returning follower has not seen."""
    cluster = lab.cluster
    cluster.create_topic(
        "t", {0: [1, 2]}, min_insync_replicas=1, unclean_leader_election_enable="true"
    )
    producer = lab.producer()
    producer.must(10)
    lab.wait_checkpointed(2, 10)
    time.sleep(1)
    cluster.taps[1].hold(tap.FETCH)
    cluster.taps[1].wait_held()
    producer.must(2, acks="1")
    cluster.kill(1)
    cluster.taps[1].release()
    cluster.wait_for_leader("t", 0, 2)
    producer.must(2)
    cluster.kill(2)
    lab.capture.copy_disk(2, "before-restart")
    cluster.start_broker(1)
    cluster.wait_for_leader("t", 0, 1)
    producer.must(3)
    cluster.start_broker(2)
    cluster.wait_for_isr("t", 0, 1, 2)
    producer.must(2)


def leader_tapped(version: Version) -> Plan:
    return Plan(version, brokers=(1, 2), tapped=(1,))


@scenario(("1.1.1",), LOST_AND_DIVERGED, leader_tapped)
def kip279_fast_failover(lab: Experiment) -> None:
    """The follower asks for an epoch the leader never had, and keeps what it should drop."""
    _fast_failover(lab)


@scenario(("2.8.2",), COMMITTED_LOST, leader_tapped)
def kip279_control(lab: Experiment) -> None:
    """The same after KIP-279: the follower truncates to the fork."""
    _fast_failover(lab)


def _leader_short_and_first(lab: Experiment) -> None:
    cluster = lab.cluster
    cluster.create_topic("t", {0: [1, 2]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(10)
    lab.wait_checkpointed(1, 10)
    cluster.kill(1, 2)
    lab.cut(1, 1)
    for broker in (1, 2):
        lab.capture.copy_disk(broker, "before-restart")
    cluster.wait_unregistered(2)
    cluster.start_broker(1)
    cluster.wait_for_leader("t", 0, 1)
    producer.must(1)
    cluster.start_broker(2)
    cluster.wait_for_isr("t", 0, 1, 2)
    producer.must(2)


@scenario(("1.1.1",), LOST_AND_DIVERGED, two_brokers)
def same_epoch_power_loss(lab: Experiment) -> None:
    """The leader loses its last record, returns in the same epoch and writes the offset again."""
    _leader_short_and_first(lab)


@scenario(("2.8.2",), COMMITTED_LOST, two_brokers)
def same_epoch_power_loss_control(lab: Experiment) -> None:
    """From 2.8 the controller's start raises the epoch: lost, but the logs agree."""
    _leader_short_and_first(lab)


@scenario(("1.1.1", "2.8.2"), LOST_AND_DIVERGED, _long_sessions_short_lag)
def same_epoch_lone_leader(lab: Experiment) -> None:
    """A leader alone in its ISR loses its tail and writes the same offsets in the same epoch."""
    cluster = lab.cluster
    controller_on(lab, 1)
    cluster.create_topic("t", {0: [1, 2]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(10)
    lab.wait_checkpointed(2, 10)
    cluster.freeze(2)
    time.sleep(1)
    producer.must(1, acks="1")
    cluster.wait_for_isr("t", 0, 1)
    cluster.kill(2)
    cluster.kill(1)
    lab.cut(1, 3)
    for broker in (1, 2):
        lab.capture.copy_disk(broker, "before-restart")
    cluster.start_broker(1)
    cluster.wait_for_leader("t", 0, 1)
    producer.must(2)
    cluster.start_broker(2)
    cluster.wait_for_isr("t", 0, 1, 2)
    producer.must(2)


def _patient_and_tapped(version: Version) -> Plan:
    session = "broker.session.timeout.ms"
    patience = {session: "60000", "replica.lag.time.max.ms": "120000"}
    return Plan(version, tapped=(1,), settings=patience)


@scenario(KRAFT, COMMITTED_LOST, _patient_and_tapped)
def leader_missed_an_epoch(lab: Experiment) -> None:
    """Clean elections alone: broker 1 leads, sleeps through an epoch of 3, and leads again.

    It counts broker 2 at the log end of before, though 2 has truncated since: so it commits and
    acknowledges what 2 does not hold, and 2, a member of the ISR, is elected.
    """
    cluster, broker_1 = lab.cluster, lab.cluster.taps[1]
    cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=2)
    producer = lab.producer()
    producer.must(10)
    cluster.wait_for_isr("t", 0, 1, 2, 3)
    time.sleep(1)
    broker_1.hold(tap.FETCH, from_clients="broker-3")
    broker_1.wait_held()
    waiting = producer.start(1, lab.acks.new_ids("w0", 1), "all")
    time.sleep(2)
    cluster.freeze(1)
    # What broker 1 was waiting for of the metadata log is answered before the election.
    time.sleep(2)
    cluster.elect("t", 0, 3)
    time.sleep(3)
    broker_1.hold(tap.FETCH)
    cluster.elect("t", 0, 1)
    cluster.resume(1)
    time.sleep(2)
    broker_1.hold(tap.FETCH, from_clients="broker-2")
    producer.finish(1, waiting)
    cluster.elect("t", 0, 2)
    cluster.wait_for_leader("t", 0, 2)
    broker_1.release()
    cluster.wait_for_isr("t", 0, 1, 2, 3)
    producer.must(2)


# The same without patience: sessions and lag times are Kafka's defaults.

DEFAULT_PATIENCE = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "replica.lag.time.max.ms": "30000",
}
CONTROLLER = node_settings.CONTROLLER_ID


def _default_patience(version: Version) -> Plan:
    return Plan(version, tapped=(1, CONTROLLER), settings=DEFAULT_PATIENCE)


def _tail_on_two_of_three(lab: Experiment) -> tuple[Producer, Batch]:
    """Broker 1 waits for broker 3 alone before it acknowledges: 2 has fetched and asked past."""
    cluster, broker_1 = lab.cluster, lab.cluster.taps[1]
    cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=2)
    producer = lab.producer()
    producer.timeout_ms = 90_000
    producer.must(10)
    cluster.wait_for_isr("t", 0, 1, 2, 3)
    time.sleep(1)
    broker_1.hold(tap.FETCH, from_clients="broker-3")
    broker_1.wait_held()
    waiting = producer.start(1, lab.acks.new_ids("w0", 1), "all")
    wait_for("broker 2 to fetch", lambda: lab.holds(2, waiting.payload_ids[0]), 10, pause=0.02)
    time.sleep(0.7)
    return producer, waiting


def _epoch_of_broker_3(lab: Experiment, waiting: Batch) -> None:
    """Broker 3 leads without the tail, so that 2 cuts it off."""
    lab.cluster.elect("t", 0, 3)
    tail = waiting.payload_ids[0]
    wait_for("broker 2 to truncate", lambda: not lab.holds(2, tail), 10, pause=0.02)


def _counted_by_a_stale_end(lab: Experiment, producer: Producer, waiting: Batch) -> None:
    """Broker 1 leads again and acknowledges; 2 leads before it has fetched the tail again."""
    producer.finish(1, waiting)
    lab.cluster.elect("t", 0, 2)
    # A metadata cache tells of it before the replica manager acts on it.
    lab.cluster.wait_for_leader("t", 0, 2)
    time.sleep(0.5)
    lab.cluster.taps[1].release()


@scenario(KRAFT, COMMITTED_LOST, _default_patience)
def missed_epoch_of_a_frozen_leader(lab: Experiment) -> None:
    """Broker 1 stands still for less than its session and sleeps through an epoch of 3."""
    cluster, broker_1 = lab.cluster, lab.cluster.taps[1]
    producer, waiting = _tail_on_two_of_three(lab)
    cluster.freeze(1)
    # What broker 1 was waiting for of the metadata log is answered before the election.
    time.sleep(0.7)
    _epoch_of_broker_3(lab, waiting)
    broker_1.hold(tap.FETCH, from_clients="broker-2")
    cluster.elect("t", 0, 1)
    cluster.resume(1)
    _counted_by_a_stale_end(lab, producer, waiting)
    cluster.wait_for_isr("t", 0, 1, 2, 3)
    producer.must(2)


BULK = 2000


@scenario(KRAFT, COMMITTED_LOST, _default_patience)
def missed_epoch_of_a_busy_leader(lab: Experiment) -> None:
    """No process stops: broker 1 makes thousands of logs while 3 leads, and applies both at once.

    The link from broker 2 to broker 1 is stuck afterwards, for less than the lag time.
    """
    cluster, broker_1 = lab.cluster, lab.cluster.taps[1]
    producer, waiting = _tail_on_two_of_three(lab)
    bulk: dict[int, list[int]] = {partition: [1] for partition in range(BULK)}
    request = wire.create_topic_request(cluster.version, "bulk", bulk, {})
    cluster.order("create bulk", request, lambda answer: answer.topics[0].error_code)
    _epoch_of_broker_3(lab, waiting)
    broker_1.hold(tap.FETCH, from_clients="broker-2")
    cluster.elect("t", 0, 1)
    _counted_by_a_stale_end(lab, producer, waiting)
    cluster.wait_for_isr("t", 0, 1, 2, 3)
    producer.must(2)


@scenario(KRAFT, COMMITTED_LOST, _default_patience)
def missed_epoch_and_a_crash(lab: Experiment) -> None:
    """Broker 1 hears nothing of the metadata while 3 leads and crashes: two remain in the ISR.

    The high watermark moves as broker 1 takes up leadership: nobody need fetch.
    """
    cluster, broker_1 = lab.cluster, lab.cluster.taps[1]
    producer, waiting = _tail_on_two_of_three(lab)
    cluster.taps[CONTROLLER].hold(tap.FETCH, from_clients="raft-client-1")
    cluster.taps[CONTROLLER].wait_held()
    _epoch_of_broker_3(lab, waiting)
    cluster.reassign("t", 0, [3, 1, 2])
    broker_1.hold(tap.FETCH, from_clients="broker-2")
    cluster.kill(3)
    lab.capture.copy_disk(3, "before-restart")
    wait_for("leader 1", lambda: cluster.leader("t", 0) == 1, 30)
    cluster.taps[CONTROLLER].release()
    _counted_by_a_stale_end(lab, producer, waiting)
    cluster.start_broker(3)
    cluster.wait_for_isr("t", 0, 1, 2, 3)
    producer.must(2)


def _a_controller_apart(version: Version) -> Plan:
    return Plan(
        version,
        brokers=(4, 1, 2, 3),
        tapped=(1,),
        settings={"replica.lag.time.max.ms": "30000", "zookeeper.session.timeout.ms": "9000"},
    )


@scenario(("2.8.2",), COMMITTED_LOST, _a_controller_apart)
def missed_epoch_by_a_lost_request(lab: Experiment) -> None:
    """ZooKeeper: what the controller told broker 1 of an epoch of 3 dies with the controller.

    The next controller tells broker 1 of the last epoch alone, in which it leads again.
    """
    cluster, broker_1 = lab.cluster, lab.cluster.taps[1]
    controller_on(lab, 4)
    producer, waiting = _tail_on_two_of_three(lab)
    told = (tap.LEADER_AND_ISR, tap.STOP_REPLICA, tap.UPDATE_METADATA)
    broker_1.also_hold(*told, from_clients="4")
    _epoch_of_broker_3(lab, waiting)
    broker_1.also_hold(tap.FETCH, from_clients="broker-2")
    cluster.elect("t", 0, 1)
    cluster.kill(4)
    wait_for("another controller", lambda: _controller(lab) not in (None, 4), 60)
    broker_1.hold(tap.FETCH, from_clients="broker-2")
    _counted_by_a_stale_end(lab, producer, waiting)
    cluster.start_broker(4)
    cluster.wait_for_isr("t", 0, 1, 2, 3)
    producer.must(2)
