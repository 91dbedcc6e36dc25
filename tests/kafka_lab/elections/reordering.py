"""Elects the last replica of the assignment while another one lives, by `reorder.py` alone."""

import subprocess
import sys

from replication.decisions import reorder
from tests.kafka_lab.elections.carrying_out import Hands
from tests.kafka_lab.elections.stopped import PARTITION, TOPIC, Stopped
from tests.kafka_lab.elections.tools import write_tools


class NotReordered(Exception):
    """The script, or the election after it, did not do what it says."""


def reorder_and_elect(stopped: Stopped) -> list[str]:
    """The leader is dead and stays in the list; of the two that live the last one is elected. What
    each step printed."""
    cluster, replicas = stopped.cluster, stopped.measured.replicas
    stopped.put_back()
    dead, other, last = replicas
    for broker in (other, last):
        cluster.start_broker(broker)
    said = [_script(stopped, last), _script(stopped, last, "--execute")]
    scratch = stopped.experiment.directory / "reorder"
    hands = Hands(cluster, write_tools(cluster.version, scratch / "bin"), scratch)
    made = hands.carry_out(
        {
            "action": "elect_uncleanly",
            "broker": last,
            "command": "kafka-leader-election.sh --bootstrap-server B --election-type unclean "
            f"--topic {TOPIC} --partition {PARTITION}",
            "check": f"kafka-topics.sh --bootstrap-server B --describe --topic {TOPIC}",
            "shows": rf"Partition: {PARTITION}\s+Leader: {last}\s.*Replicas: {last},.*\b{dead}\b",
            "hides": None,
            "within": 120,
        }
    )
    said.append(made.printed)
    cluster.kill_everything()
    if not made.passed or made.status:
        raise NotReordered("\n".join(said))
    return said


def _script(stopped: Stopped, first: int, *more: str) -> str:
    port = next(iter(stopped.cluster.external[b] for b in stopped.cluster.answering()))
    done = subprocess.run(
        [
            *(sys.executable, reorder.__file__, "--bootstrap-server", f"127.0.0.1:{port}"),
            *("--topic", TOPIC, "--partition", str(PARTITION), "--first", str(first), *more),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != reorder.AS_WANTED:
        raise NotReordered(done.stdout + done.stderr)
    return done.stdout.strip()
