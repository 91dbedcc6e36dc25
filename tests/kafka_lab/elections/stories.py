"""How a partition comes to have no leader: each story ends with every broker dead.

Topic `t` lies on brokers 1, 2 and 3, and 1 leads it at first.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.kafka_lab import tap
from tests.kafka_lab.cluster import Plan
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.processes import wait_for
from tests.kafka_lab.scenarios import (
    ALL,
    CONTROLLER,
    KRAFT,
    _default_patience,
    _epoch_of_broker_3,
    _long_sessions_short_lag,
    _tail_on_two_of_three,
    controller_on,
)
from tests.kafka_lab.versions import Version

Steps = Callable[[Experiment], None]
SINCE_1_1 = ("1.1.1", "2.8.2", "3.9.1", "4.1.1", "4.3.0")
ALTER_PARTITION = 56
# The copy of a directory that the newest one is not.
BEFORE = "before-restart"


@dataclass(frozen=True)
class Story:
    """On which versions it can be told, its steps, and the cluster that it is told on. disk_gone:
    whose disk is found to be empty, by the same name: nothing in the evidence can show that, and an
    operator who saw it says `--away`."""

    name: str
    versions: tuple[str, ...]
    steps: Steps
    plan: Callable[[Version], Plan]
    disk_gone: tuple[int, ...] = ()


STORIES: dict[str, Story] = {}


def story(
    versions: tuple[str, ...],
    plan: Callable[[Version], Plan] = Plan,
    disk_gone: tuple[int, ...] = (),
) -> Callable[[Steps], Steps]:
    def add(steps: Steps) -> Steps:
        STORIES[steps.__name__] = Story(steps.__name__, versions, steps, plan, disk_gone)
        return steps

    return add


@story(ALL)
def last_one_ahead(lab: Experiment) -> None:
    """The last member of the ISR wrote on alone, and died."""
    lab.cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(8, 2)
    time.sleep(1)
    lab.cluster.kill(3)
    lab.cluster.wait_for_isr("t", 0, 1, 2)
    producer.must(3, 2)
    time.sleep(0.5)
    lab.cluster.kill(2)
    lab.cluster.wait_for_isr("t", 0, 1)
    producer.must(4, 2)
    producer.must(2, 2, acks="1")
    time.sleep(1)
    lab.cluster.kill(1)


@story(ALL)
def last_one_loses_its_tail(lab: Experiment) -> None:
    """Two stopped cleanly, one after the other; the last one lost power, and with it a tail."""
    lab.cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=2)
    producer = lab.producer()
    producer.must(12, 2)
    time.sleep(1)
    lab.cluster.terminate(2)
    lab.cluster.wait_for_isr("t", 0, 1, 3)
    producer.must(2, 2)
    lab.cluster.terminate(3)
    lab.cluster.wait_for_isr("t", 0, 1)
    lab.cluster.kill(1)
    lab.cut(1, 5)


@story(ALL)
def all_lose_power(lab: Experiment) -> None:
    """All at once, and each comes back with another tail gone."""
    lab.cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=2)
    producer = lab.producer()
    producer.must(12, 2)
    time.sleep(1)
    lab.cluster.kill(1, 2, 3)
    lab.cut(1, 4)
    lab.cut(2, 1)


@story(KRAFT)
def all_lose_power_with_the_controller(lab: Experiment) -> None:
    """No controller is left that could strike anybody from the ISR: it knows a leader, and all of
    them in sync. Each but one comes back with a tail gone."""
    lab.cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=2)
    producer = lab.producer()
    producer.must(12, 2)
    time.sleep(1)
    lab.cluster.processes[CONTROLLER].kill()
    lab.cluster.kill(1, 2, 3)
    lab.cut(1, 4)
    lab.cut(2, 1)


@story(ALL, disk_gone=(1,))
def last_one_loses_its_disk(lab: Experiment) -> None:
    """The last member of the ISR comes back with an emptied directory."""
    lab.cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(8, 2)
    time.sleep(1)
    lab.cluster.kill(3)
    lab.cluster.wait_for_isr("t", 0, 1, 2)
    producer.must(2, 2)
    time.sleep(0.5)
    lab.cluster.kill(2)
    lab.cluster.wait_for_isr("t", 0, 1)
    producer.must(3, 2)
    lab.cluster.kill(1)
    lab.empty_directory(1)


@story(ALL)
def older_copy(lab: Experiment, unclean: str = "false") -> None:
    """The last member of the ISR lost power, and a tail; a copy from before still has that."""
    cluster = lab.cluster
    cluster.create_topic(
        "t", {0: [1, 2, 3]}, min_insync_replicas=1, unclean_leader_election_enable=unclean
    )
    producer = lab.producer()
    producer.must(6, 2)
    time.sleep(1)
    cluster.kill(2, 3)
    cluster.wait_for_isr("t", 0, 1)
    producer.must(4, 2)
    cluster.kill(1)
    lab.capture.copy_disk(1, BEFORE)
    lab.cut(1, 5)
    cluster.start_broker(1)
    cluster.wait_for_leader("t", 0, 1)
    cluster.kill(1)


@story(ALL)
def older_copy_and_unclean_on(lab: Experiment) -> None:
    """The same of a topic that allows unclean elections: every plan has to take that back."""
    older_copy(lab, unclean="true")


def _tapped(version: Version) -> Plan:
    return Plan(version, tapped=(1, 2, 3))


@story(ALL, _tapped)
def deposed_tail(lab: Experiment) -> None:
    """What only the first leader had at acks=1 died with it; the next one wrote other records."""
    cluster = lab.cluster
    cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(6, 2)
    time.sleep(1)
    cluster.taps[1].hold(tap.FETCH)
    cluster.taps[1].wait_held()
    producer.must(3, 2, acks="1")
    cluster.kill(1)
    cluster.taps[1].release()
    leader = cluster.wait_for_leader("t", 0, 2, 3)
    producer.must(2, 2)
    time.sleep(1)
    cluster.kill(5 - leader)
    cluster.wait_for_isr("t", 0, leader)
    producer.must(2, 2)
    time.sleep(1)
    cluster.kill(leader)


@story(ALL, _tapped)
def zombie(lab: Experiment) -> None:
    """A frozen leader woke up deposed, served what waited in its socket, and died."""
    cluster = lab.cluster
    cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(6, 2)
    stale = lab.producer("p2")
    stale.must(1, acks="1", broker=1)
    cluster.wait_for_isr("t", 0, 1, 2, 3)
    time.sleep(1)
    cluster.freeze(1)
    waiting = [stale.start(1, lab.acks.new_ids("z0", 1), "1") for _ in range(4)]
    leader = cluster.wait_for_leader("t", 0, 2, 3)
    producer.must(3, 2)
    time.sleep(1)
    for broker in (2, 3):
        cluster.taps[broker].hold(tap.FETCH, tap.OFFSET_FOR_LEADER_EPOCH)
    cluster.resume(1)
    for batch in waiting:
        stale.finish(1, batch)
    cluster.kill(1)
    cluster.kill(5 - leader)
    cluster.wait_for_isr("t", 0, leader)
    cluster.kill(leader)


@story(ALL)
def elected_uncleanly_before(lab: Experiment) -> None:
    """One was elected uncleanly and wrote on; then it died, too."""
    cluster = lab.cluster
    cluster.create_topic(
        "t", {0: [1, 2, 3]}, min_insync_replicas=1, unclean_leader_election_enable="true"
    )
    producer = lab.producer()
    producer.must(6, 2)
    time.sleep(1)
    cluster.kill(2, 3)
    cluster.wait_for_isr("t", 0, 1)
    producer.must(3, 2)
    time.sleep(1)
    cluster.kill(1)
    cluster.start_broker(2)
    cluster.wait_for_leader("t", 0, 2)
    producer.must(2, 2)
    time.sleep(1)
    cluster.kill(2)


@story(("0.10.2.2", "1.1.1", "2.8.2"), _long_sessions_short_lag)
def same_epoch_fork(lab: Experiment) -> None:
    """A leader alone in its ISR lost its tail and wrote the same offsets again in its epoch."""
    cluster = lab.cluster
    controller_on(lab, 1)
    cluster.create_topic("t", {0: [1, 2]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(8)
    lab.wait_checkpointed(2, 8)
    cluster.freeze(2)
    time.sleep(1)
    producer.must(1, acks="1")
    cluster.wait_for_isr("t", 0, 1)
    cluster.kill(2)
    cluster.kill(1)
    lab.cut(1, 3)
    lab.capture.copy_disk(1, BEFORE)
    cluster.start_broker(1)
    cluster.wait_for_leader("t", 0, 1)
    producer.must(2)
    cluster.kill(1)


def _two_disks(version: Version) -> Plan:
    return Plan(version, log_dirs=2)


@story(SINCE_1_1, _two_disks)
def failed_directory(lab: Experiment) -> None:
    """The followers run on without their replica's directory; the leader wrote on, and died."""
    cluster = lab.cluster
    cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(6, 2)
    time.sleep(1)
    for broker in (3, 2):
        places = [data / "t-0" for data in cluster.data(broker)]
        cluster.fail_directory(broker, next(n for n, p in enumerate(places) if p.is_dir()))
        cluster.wait_for_isr("t", 0, *range(1, broker))
        producer.must(2, 2)
    time.sleep(1)
    cluster.kill(1, 2, 3)


@story(KRAFT, _default_patience)
def missed_epoch(lab: Experiment) -> None:
    """The leader slept through an epoch, and acknowledged what a member of its ISR had cut."""
    cluster, broker_1 = lab.cluster, lab.cluster.taps[1]
    producer, waiting = _tail_on_two_of_three(lab)
    cluster.freeze(1)
    time.sleep(0.7)
    _epoch_of_broker_3(lab, waiting)
    broker_1.hold(tap.FETCH, from_clients="broker-2")
    cluster.elect("t", 0, 1)
    cluster.resume(1)
    producer.finish(1, waiting)
    cluster.kill(1, 2, 3)


def sixteen_plan(version: Version) -> Plan:
    # A member that cannot fetch stays one for as long as the story takes.
    patience = {"replica.lag.time.max.ms": "120000"}
    return Plan(
        version, tapped=(1, 3, CONTROLLER), eligible_leader_replicas=False, settings=patience
    )


@story(KRAFT, sixteen_plan)
def sixteen_steps(lab: Experiment) -> None:
    """A record of an old leader epoch is the committed one; a newer epoch was never committed.

    Leader 1 writes b; 2 falls out of the ISR; 3 leads and writes c, which 2 alone fetches; 1 leads
    again, 3 cuts c and fetches b: it is committed and acknowledged by 1 and 3. Both of them die.
    """
    cluster, broker_1, broker_3 = lab.cluster, lab.cluster.taps[1], lab.cluster.taps[3]
    controller = cluster.taps[CONTROLLER]
    cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=2)
    producer = lab.producer()
    producer.idempotent, producer.retries, producer.timeout_ms = True, 20, 4000
    producer.must(6)
    cluster.wait_for_isr("t", 0, 1, 2, 3)
    time.sleep(1)
    broker_1.hold(tap.FETCH)
    broker_1.wait_held()
    time.sleep(1)
    written = producer.start(1, lab.acks.new_ids("b0", 1), "all")
    wait_for("b at broker 1", lambda: lab.holds(1, written.payload_ids[0]), 10)
    cluster.kill(2)
    cluster.wait_for_isr("t", 0, 1, 3)
    broker_3.hold(tap.FETCH, from_clients="broker-1")
    controller.hold(ALTER_PARTITION)
    cluster.elect("t", 0, 3)
    cluster.wait_for_leader("t", 0, 3)
    producer.finish(1, written)
    other = lab.producer("p2")
    (c,) = lab.acks.new_ids("c0", 1)
    unanswered = other.start(3, [c], "all")
    cluster.start_broker(2)
    wait_for("c at broker 2", lambda: lab.holds(2, c), 20)
    cluster.kill(2)
    cluster.wait_for_isr("t", 0, 1, 3)
    controller.release()
    cluster.elect("t", 0, 1)
    cluster.wait_for_leader("t", 0, 1)
    broker_3.release()
    broker_1.release()
    other.finish(3, unanswered)
    producer.again(written)
    cluster.kill(3)
    cluster.wait_for_isr("t", 0, 1)
    cluster.kill(1)
