"""One experiment: a cluster, what watches it, the evidence taken from it, and the truth."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kafka_lab.capture import Capture
from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.comparing import Comparison, compare
from tests.kafka_lab.history import TopicPartition
from tests.kafka_lab.logs_on_disk import (
    Cut,
    checkpoint_entries,
    cut_suffix,
    read_batches,
    records,
)
from tests.kafka_lab.processes import wait_for
from tests.kafka_lab.producer import AcknowledgementLog, Producer
from tests.kafka_lab.sampler import HIGH_WATERMARK_FILE, Sampler
from tests.kafka_lab.truth import PartitionTruth, Run, establish, read_lines, save_truths


class Experiment:
    """`directory`/cluster is the machines, `directory`/evidence what an operator takes."""

    def __init__(self, plan: Plan, directory: Path, *, names: str = "payload_id") -> None:
        self.directory = directory
        self.evidence = directory / "evidence"
        self.cluster = Cluster(plan, directory / "cluster")
        self.acks = AcknowledgementLog(
            self.evidence / "acks.jsonl", directory / "acknowledgements.jsonl", names
        )
        self.capture = Capture(self.cluster, self.evidence)
        self.truths: dict[TopicPartition, PartitionTruth] = {}
        self.excused: Callable[[str], bool] = lambda payload_id: False
        self._sampler: Sampler | None = None
        self._producers: list[Producer] = []

    def __enter__(self) -> "Experiment":
        self.cluster.__enter__()
        self._sampler = Sampler(self.cluster)
        return self

    def __exit__(self, *_: object) -> None:
        for producer in self._producers:
            producer.close()
        self.cluster.close()
        self.acks.close()

    @property
    def sampler(self) -> Sampler:
        assert self._sampler is not None, "the experiment has not begun"
        return self._sampler

    def producer(self, client: str = "p1", topic: str = "t") -> Producer:
        made = Producer(self.cluster, self.acks, client, topic, timeout_ms=20_000)
        self._producers.append(made)
        return made

    def cut(self, broker: int, batches: int, topic: str = "t", partition: int = 0) -> Cut:
        """Power loss: the last batches of a killed broker's log are gone, flushed ones excepted."""
        place = next(
            directory / f"{topic}-{partition}"
            for directory in self.cluster.data(broker)
            if (directory / f"{topic}-{partition}").is_dir()
        )
        if (place.parent / ".kafka_cleanshutdown").exists():
            raise AssertionError(f"broker {broker} was stopped cleanly: nothing can be lost")
        flushed = checkpoint_entries(place.parent / "recovery-point-offset-checkpoint")
        # What it held when it died, whether or not the sampler came by before: it is still there.
        self.sampler.look()
        found = cut_suffix(place, batches, flushed.get((topic, partition), 0))
        if found is None:
            raise AssertionError(f"nothing to cut in {place}")
        self.cluster.journal.write(action="cut_suffix", broker=broker, **vars(found))
        self.sampler.look()
        return found

    def empty_directory(self, broker: int) -> None:
        """The directory of a broker that is down loses all it holds, once that was looked at."""
        self.sampler.look()
        self.cluster.empty_directory(broker)
        self.sampler.look()

    def checkpointed(self, broker: int, topic: str = "t", partition: int = 0) -> int:
        """The high watermark in the broker's checkpoint file; 0 while there is none."""
        for directory in self.cluster.data(broker):
            entries = checkpoint_entries(directory / HIGH_WATERMARK_FILE)
            if (topic, partition) in entries:
                return entries[topic, partition]
        return 0

    def wait_checkpointed(
        self, broker: int, offset: int, seconds: float = 30, topic: str = "t"
    ) -> None:
        wait_for(
            f"high watermark {offset} in the checkpoint of broker {broker}",
            lambda: self.checkpointed(broker, topic) >= offset,
            seconds,
        )

    def holds(self, broker: int, payload_id: str, topic: str = "t", partition: int = 0) -> bool:
        """Whether the record is in that broker's log just now."""
        return any(
            held.payload_id == payload_id
            for directory in self.cluster.data(broker)
            for batch in read_batches(directory / f"{topic}-{partition}")
            for held in records(batch)
        )

    def note(self, text: str) -> None:
        self.cluster.journal.write(action="note", text=text)

    def collect(self) -> None:
        """Describes, stops, and copies the evidence of the end."""
        self.capture.describe(time.time())
        self.cluster.stop_all()
        self.sampler.stop()
        for node in self.cluster.nodes():
            self.capture.copy_disk(node, "final")
        self.capture.copy_logs()

    def finish(self) -> None:
        """Collects, and works out the truth."""
        self.collect()
        excused = [
            line["payload_id"]
            for line in read_lines(self.acks.journal.path)
            if self.excused(line["payload_id"])
        ]
        self.cluster.journal.write(action="excused", payload_ids=excused)
        self.cluster.save()
        self.sampler.notes.save(self.cluster.directory)
        run = Run.read(self.cluster, self.sampler.notes, self.evidence, self.acks.journal.path)
        self.truths = establish(run)
        save_truths(self.directory / "truth.json", self.truths)

    def compare(self, name: str) -> tuple[Comparison, dict[str, Any]]:
        return compare(name, self.evidence, self.truths)
