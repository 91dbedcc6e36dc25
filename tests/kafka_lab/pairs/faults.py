"""What a fault script orders, carried out on a real cluster whatever the settings make of it.

All topics of a run are written to side by side. Each order waits until the cluster has taken note,
and no longer for what its settings do not allow, such as a leader.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kafka_lab import wire
from tests.kafka_lab.cluster import PartitionState, Plan
from tests.kafka_lab.experiment import Experiment
from tests.kafka_lab.logs_on_disk import read_batches, records
from tests.kafka_lab.pairs.lives import FORCED, Life
from tests.kafka_lab.processes import LabTimeout, wait_for
from tests.kafka_lab.producer import Producer

RUN_FILE = "run.json"
SETTLED = 30.0
# For how long nobody leads before it counts as nobody will.
LEADERLESS = 4.0
# A little more than KRaft brokers have here until they are fenced.
SESSION = 6.0


@dataclass
class Outcome:
    """What became of one topic. sent: payload ids in order; answered: offset by payload id;
    kept: payload ids in the last leader's log, None where nobody leads; forced: whether somebody
    ordered an unclean election, as nobody led."""

    life: Life
    sent: list[str] = field(default_factory=list)
    answered: dict[str, int | None] = field(default_factory=dict)
    kept: list[str] | None = None
    forced: bool = False

    @property
    def lost(self) -> set[int]:
        """Which sends, by their number in the script, were answered and are gone."""
        if self.kept is None:
            return set()
        kept = set(self.kept)
        return {n for n, i in enumerate(self.sent) if i in self.answered and i not in kept}


class Faults:
    """One run. copies: whether an operator copies the directory of a broker before its start."""

    def __init__(
        self, plan: Plan, lives: Sequence[Life], directory: Path, *, copies: bool = True
    ) -> None:
        self.lab = Experiment(plan, directory)
        self.directory = directory
        self.outcomes = {life.topic: Outcome(life) for life in lives}
        self.left_out = set(lives[0].left_out)
        self.copies = copies
        self._marks: dict[tuple[int, str], int] = {}
        self._producers: dict[str, Producer] = {}

    @property
    def topics(self) -> list[str]:
        return list(self.outcomes)

    def create(self, replicas: Sequence[int]) -> None:
        """Every topic on so many of these brokers, the first one leads."""
        for topic, outcome in self.outcomes.items():
            life = outcome.life
            self.lab.cluster.create_topic(
                topic,
                {0: list(replicas[: life.replicas])},
                min_insync_replicas=life.min_insync,
                unclean_leader_election_enable=str(life.unclean).lower(),
            )
            self._producers[topic] = self.lab.producer(f"c-{topic}", topic)
        self._each(lambda topic: self._whole(topic, replicas))

    def _whole(self, topic: str, replicas: Sequence[int]) -> None:
        own = replicas[: self.outcomes[topic].life.replicas]
        self.lab.cluster.wait_for_isr(topic, 0, *own)

    def write(self, batches: int = 1, count: int = 1, seconds: float = 20.0) -> None:
        """So many batches of records to each topic's leader, answered or not."""
        self._each(lambda topic: self._write(topic, batches, count, seconds))

    def _write(self, topic: str, batches: int, count: int, seconds: float) -> None:
        producer, outcome = self._producers[topic], self.outcomes[topic]
        producer.timeout_ms = int(seconds * 1000)
        for _ in range(batches):
            for told in producer.send(count, acks=outcome.life.acks):
                outcome.sent.append(told.payload_id)
                if told.status == "acked":
                    outcome.answered[told.payload_id] = told.offset

    def kill(self, *brokers: int) -> None:
        self.lab.cluster.kill(*brokers)
        self.taken_note(brokers)

    def stop(self, broker: int) -> None:
        self.lab.cluster.terminate(broker)
        self.taken_note([broker])

    def gone(self, broker: int) -> None:
        """Until a cluster of which nobody runs has forgotten that broker's session."""
        if self.lab.cluster.version.kraft:
            time.sleep(SESSION)
        else:
            self.lab.cluster.wait_unregistered(broker)

    def taken_note(self, brokers: Sequence[int]) -> None:
        """Until no partition is led by them, nor counts them, unless nobody else is left."""

        def noted(state: PartitionState | None) -> bool:
            if state is None or not self.lab.cluster.answering():
                return True
            gone = set(brokers)
            return state.leader not in gone and (state.leader is None or not gone & set(state.isr))

        self._until(noted, f"the end of {brokers}")

    def start(self, broker: int) -> None:
        """Starts it, unless that is what is left out; until it is in sync where somebody leads."""
        if f"restart.{broker}" in self.left_out:
            self.lab.note(f"broker {broker} is left down")
            return
        if self.copies:
            self.lab.capture.copy_disk(broker, "before-restart")
        self.lab.cluster.start_broker(broker)
        began = time.monotonic()

        def noted(state: PartitionState | None) -> bool:
            if state is None or broker not in state.replicas:
                return True
            if state.leader is None:
                return time.monotonic() - began > LEADERLESS
            return broker in state.isr

        self._until(noted, f"the start of {broker}")

    def force(self) -> None:
        """An unclean election wherever nobody leads, unless that is what is left out."""
        if FORCED in self.left_out:
            self.lab.note("no election is forced")
            return
        for topic in self.topics:
            if self.lab.cluster.leader(topic, 0) is None:
                self.outcomes[topic].forced = True
                with suppress(wire.Refused):
                    self.lab.cluster.elect_unclean(topic, 0)
        time.sleep(2)

    def mark(self, broker: int) -> None:
        """What its disk holds now was flushed: no later cut takes it."""
        for topic in self.topics:
            self._marks[broker, topic] = len(self._batches(broker, topic))

    def cut(self, broker: int) -> None:
        """The power went as that broker was killed: what was written since the mark is gone."""
        for topic in self.topics:
            more = len(self._batches(broker, topic)) - self._marks[broker, topic]
            if more > 0:
                self.lab.cut(broker, more, topic)

    def _batches(self, broker: int, topic: str) -> tuple[bytes, ...]:
        return read_batches(self.lab.cluster.data(broker)[0] / f"{topic}-0")

    def _each(self, act: Callable[[str], object]) -> None:
        errors: list[Exception] = []

        def run(topic: str) -> None:
            try:
                act(topic)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=(topic,)) for topic in self.topics]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def _until(self, noted: Callable[[PartitionState | None], bool], what: str) -> None:
        def all_noted() -> bool:
            return all(noted(self.lab.cluster.state(topic, 0)) for topic in self.topics)

        try:
            wait_for(what, all_noted, SETTLED)
        except LabTimeout as error:
            self.lab.note(str(error))
        time.sleep(1.0)

    def finish(self) -> None:
        """Evidence as of an operator, and what the last leaders hold, from their disks."""
        cluster = self.lab.cluster
        leaders = {topic: cluster.leader(topic, 0) for topic in self.topics}
        self.lab.collect()
        for topic, leader in leaders.items():
            if leader is not None:
                held = [h for batch in self._batches(leader, topic) for h in records(batch)]
                self.outcomes[topic].kept = [one.payload_id for one in held]

    def save(self, **told: object) -> None:
        """`RUN_FILE` beside the evidence."""
        rows = [
            {
                "life": outcome.life.as_json(),
                "sent": outcome.sent,
                "answered": outcome.answered,
                "kept": outcome.kept,
                "forced": outcome.forced,
            }
            for outcome in self.outcomes.values()
        ]
        (self.directory / RUN_FILE).write_text(json.dumps({**told, "topics": rows}, indent=1))


def load(directory: Path) -> tuple[dict[str, Any], list[Outcome]]:
    """What `save` wrote: what was told of the run, and its topics."""
    told = json.loads((directory / RUN_FILE).read_text())
    rows = told.pop("topics")
    return told, [Outcome(Life.of_json(row.pop("life")), **row) for row in rows]
