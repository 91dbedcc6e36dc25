"""Watches what every replica holds, and who leads, while the experiment runs.

The disks are read through the page cache, so also records that are never flushed are seen. This is
the laboratory's privilege; the product sees only what is copied into the evidence.
"""

import threading
import time
from pathlib import Path

from tests.kafka_lab.cluster import Cluster
from tests.kafka_lab.logs_on_disk import checkpoint_entries, read_batches, segment_files
from tests.kafka_lab.notes import HighWatermarkSample, LeaderSample, LogSample, Notes
from tests.kafka_lab.site import partitions_of

HIGH_WATERMARK_FILE = "replication-offset-checkpoint"


class Sampler:
    """Samples every `pause` seconds in a thread; `look` takes one now, in the caller's."""

    def __init__(self, cluster: Cluster, pause: float = 0.1) -> None:
        self.cluster = cluster
        self.notes = Notes()
        self.errors: list[Exception] = []
        self._stats: dict[object, object] = {}
        self._known: dict[bytes, bytes] = {}
        self._znodes: dict[tuple[str, int], tuple[int, int]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._pause = pause
        self._threads = [threading.Thread(target=self._run, args=(self.look,), daemon=True)]
        if not cluster.version.kraft:
            self._threads.append(
                threading.Thread(target=self._run, args=(self._look_at_znodes,), daemon=True)
            )
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=10)
        self.look()
        if self.errors:
            raise self.errors[0]

    def look(self) -> None:
        """One look at every disk; a directory that did not change is not read."""
        with self._lock:
            for broker in self.cluster.brokers:
                for directory in self.cluster.data(broker):
                    self._look_at_high_watermarks(broker, directory)
                for topic, partition in partitions_of(dict(self.cluster.assignments)):
                    self._look_at_log(broker, topic, partition)

    def _run(self, job: object) -> None:
        while not self._stop.wait(self._pause):
            try:
                job()  # type: ignore[operator]
            except FileNotFoundError:
                # A file renamed between being listed and being read; the next look sees it.
                continue
            except Exception as error:
                self.errors.append(error)
                return

    def _look_at_log(self, broker: int, topic: str, partition: int) -> None:
        """In whichever directory it lies; while it goes from one to another nothing is noted."""
        name = f"{topic}-{partition}"
        directories = self.cluster.data(broker)
        place = next((one / name for one in directories if (one / name).is_dir()), None)
        known = (broker, name)
        if place is None:
            moving = any(any(one.glob(f"{name}.*-future")) for one in directories)
            if not moving and self._stats.pop(known, None) is not None:
                self._keep_log(broker, topic, partition, ())
            return
        stats = tuple(
            (path.name, path.stat().st_size, path.stat().st_mtime_ns)
            for path in segment_files(place)
        )
        if stats == self._stats.get(known):
            return
        self._stats[known] = stats
        self._keep_log(broker, topic, partition, read_batches(place))

    def _keep_log(self, broker: int, topic: str, partition: int, found: tuple[bytes, ...]) -> None:
        shared = tuple(self._known.setdefault(batch, batch) for batch in found)
        self.notes.logs.append(LogSample(time.time(), broker, topic, partition, shared))

    def _look_at_high_watermarks(self, broker: int, directory: Path) -> None:
        path = directory / HIGH_WATERMARK_FILE
        if not path.exists():
            return
        written_at = path.stat().st_mtime
        if self._stats.get(path) == written_at:
            return
        self._stats[path] = written_at
        for (topic, partition), offset in checkpoint_entries(path).items():
            self.notes.high_watermarks.append(
                HighWatermarkSample(written_at, broker, topic, partition, offset)
            )

    def _look_at_znodes(self) -> None:
        try:
            with self.cluster.zookeeper() as asked:
                while not self._stop.wait(self._pause / 2):
                    for topic, partition in partitions_of(dict(self.cluster.assignments)):
                        found = asked.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
                        if found is None:
                            continue
                        change = (found.version, found.modified_ms)
                        if self._znodes.get((topic, partition)) == change:
                            continue
                        self._znodes[topic, partition] = change
                        state = found.json()
                        self.notes.leaders.append(
                            LeaderSample(
                                found.modified_ms / 1000,
                                topic,
                                partition,
                                found.version,
                                state["leader"],
                                state["leader_epoch"],
                                tuple(state["isr"]),
                            )
                        )
        except OSError:
            # ZooKeeper too busy to answer in time: asked anew at the next turn.
            return
