"""Scenarios in which the wrong replica was elected, though another one had what was promised."""

import time

from tests.kafka_lab.elections.stopped import FENCED
from tests.kafka_lab.elections.stories import sixteen_plan, sixteen_steps
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.processes import wait_for
from tests.kafka_lab.scenarios import COMMITTED_LOST, KRAFT, SCENARIOS, scenario

# All scenarios, these among them.
__all__ = ["SCENARIOS"]


@scenario(KRAFT, COMMITTED_LOST, sixteen_plan)
def newest_leader_epoch_elected(lab: Experiment) -> None:
    """Of two survivors as long as each other the one with the newest leader epoch is elected: what
    acks=all promised was in the older one."""
    sixteen_steps(lab)
    time.sleep(FENCED)
    for broker in (1, 2, 3):
        lab.capture.copy_disk(broker, "before-restart")
    lab.cluster.start_broker(2)
    lab.cluster.elect_unclean("t", 0)
    lab.cluster.wait_for_leader("t", 0, 2)
    lab.cluster.start_broker(3)
    lab.cluster.start_broker(1)
    lab.cluster.wait_for_isr("t", 0, 1, 2, 3)
    lab.producer("p3").must(2)


@scenario(KRAFT, COMMITTED_LOST)
def runbook_takes_the_best_copy_away(lab: Experiment) -> None:
    """The assignment without the dead broker, as a runbook for an offline partition has it: once it
    is back its directory, which alone had the last records, is set aside. Of a broker that runs by
    then it is deleted."""
    cluster = lab.cluster
    cluster.create_topic("t", {0: [1, 2, 3]}, min_insync_replicas=1)
    producer = lab.producer()
    producer.must(8, 2)
    time.sleep(1)
    cluster.kill(2, 3)
    cluster.wait_for_isr("t", 0, 1)
    producer.must(4, 2)
    time.sleep(1)
    cluster.kill(1)
    time.sleep(FENCED)
    for broker in (1, 2, 3):
        lab.capture.copy_disk(broker, "before-restart")
    cluster.start_broker(2)
    cluster.start_broker(3)
    cluster.elect_unclean("t", 0)
    cluster.wait_for_isr("t", 0, 2, 3)
    cluster.reassign("t", 0, [2, 3])
    producer.must(2)
    cluster.start_broker(1)
    place = cluster.data(1)[0]
    wait_for("the copy to be taken away", lambda: not (place / "t-0").is_dir(), 60)
    producer.must(2)
