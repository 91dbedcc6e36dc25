"""Elects each replica of a stopped cluster, and each older copy, by the plan of `decide`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.kafka_lab.dump_tool import dump_segments
from tests.kafka_lab.elections.asking import asked, candidate_of
from tests.kafka_lab.elections.carrying_out import Hands
from tests.kafka_lab.elections.measured import Elected, Log
from tests.kafka_lab.elections.stopped import PARTITION, TOPIC, Stopped, log_of
from tests.kafka_lab.elections.stories import BEFORE
from tests.kafka_lab.elections.tools import write_tools
from tests.kafka_lab.logs_on_disk import segment_files

# What comes before somebody leads; the others follow after.
FOLLOWING = ("start_to_follow", "prefer", "unclean_off")


class Disagreement(Exception):
    """Kafka's own tool reads another log than the laboratory does."""


def elect(
    stopped: Stopped, replica: int, *, every_step: bool, running: tuple[int, ...] = ()
) -> Elected:
    """The disks put back, the plan carried out, and what the logs hold then. every_step: also what
    changes none of the logs that count. running: brokers that run as the plan begins."""
    cluster = stopped.cluster
    down = [str(n) for n in stopped.measured.replicas if n not in running]
    _, row = asked(
        stopped.evidence,
        *("--elect", str(replica), "--down", ",".join(down)),
        away=stopped.measured.away,
    )
    assert row is not None
    stopped.put_back(with_controller=bool(running))
    for broker in running:
        cluster.start_broker(broker)
    scratch = stopped.experiment.directory / f"elect-{replica}"
    hands = Hands(cluster, write_tools(cluster.version, scratch / "bin"), scratch)
    steps: list[dict[str, Any]] = row["steps"]
    first = [step for step in steps if step["action"] not in FOLLOWING]
    for step in first:
        if step["command"] is None:
            # The plan says that no command line does it: there is nothing to carry out.
            return Elected(replica, False, {}, {}, [asdict(one) for one in hands.done])
        hands.carry_out(step)
    led = cluster.leader(TOPIC, PARTITION) == replica
    log = log_of(cluster, replica)
    at_stake = {copy["replica"] for copy in candidate_of(row, replica)["copies"]}
    for step in steps:
        if step["action"] not in FOLLOWING or not led:
            continue
        # Who has nothing that the leader lacks follows it as ever: it need not be seen each time.
        follows = step["action"] == "start_to_follow" and step["broker"] in at_stake
        if every_step or follows or step["action"] == "unclean_off":
            hands.carry_out(step)
    after = {n: log_of(cluster, n) for n in stopped.measured.replicas if cluster.running(n)}
    if led:
        _hold_against_the_tool(stopped, replica, log)
    cluster.kill_everything()
    return Elected(replica, led, log, after, [asdict(one) for one in hands.done])


def put_back_and_elect(stopped: Stopped) -> list[Elected]:
    """Each older copy of which `decide` has the steps, put in the place of its broker's directory
    and elected by them; every follower follows."""
    _, row = asked(stopped.evidence, away=stopped.measured.away)
    found = []
    for x in row["older_copies"] if row is not None else ():
        if not x["steps"]:
            continue
        replica = x["replica"]
        stopped.put_back(with_controller=False)
        scratch = stopped.experiment.directory / f"put-back-{replica}"
        tools = write_tools(stopped.cluster.version, scratch / "bin")
        older = stopped.evidence / f"broker-{replica}" / f"disk-{BEFORE}"
        hands = Hands(stopped.cluster, tools, scratch, older)
        log: Log = {}
        for step in x["steps"]:
            if step["action"] in FOLLOWING and not log:
                log = log_of(stopped.cluster, replica)
            hands.carry_out(step)
        led = stopped.cluster.leader(TOPIC, PARTITION) == replica
        after = {n: log_of(stopped.cluster, n) for n in stopped.measured.replicas}
        _hold_against_the_tool(stopped, replica, log)
        stopped.cluster.kill_everything()
        found.append(Elected(replica, led, log, after, [asdict(one) for one in hands.done]))
    return found


def _hold_against_the_tool(stopped: Stopped, replica: int, log: Log) -> None:
    """kafka-dump-log reads the elected log as the laboratory does."""
    version = stopped.cluster.version
    files = [
        path
        for data in stopped.cluster.data(replica)
        for path in segment_files(data / f"{TOPIC}-{PARTITION}")
    ]
    dumped = {
        one.offset: one.payload_id
        for found in dump_segments(version, files).values()
        for one in found
    }
    missing = {o: name for o, (name, _) in log.items() if dumped.get(o) != name}
    if missing or any(o in dumped for o in range(max(log, default=-1) + 1) if o not in log):
        raise Disagreement(f"broker {replica} on {version.name}: {missing}, {dumped}")


def write_outputs(directory: Path, found: Elected, name: str = "elect") -> None:
    """What each command printed, for whoever looks into a failure."""
    lines = []
    for step in found.steps:
        lines += [f"== {step['action']} {step['broker']}: {step['command']}", step["output"]]
        lines += [f"-- check ({step['passed']}): {step['check']}", step["printed"]]
    (directory / f"{name}-{found.replica}.txt").write_text("\n".join(lines))
