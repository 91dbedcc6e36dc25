"""What the sampler saw, kept: so that the truth of a kept run can be worked out anew."""

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NOTES_FILE = "notes.jsonl.gz"


@dataclass(frozen=True)
class LogSample:
    """A replica's batches as seen at `at` (seconds since 1970)."""

    at: float
    broker: int
    topic: str
    partition: int
    batches: tuple[bytes, ...]


@dataclass(frozen=True)
class HighWatermarkSample:
    """A high watermark and when the broker wrote it: to its checkpoint, or to its log."""

    written_at: float
    broker: int
    topic: str
    partition: int
    high_watermark: int
    in_logs: bool = False


@dataclass(frozen=True)
class LeaderSample:
    """A partition's znode; `at` is ZooKeeper's clock at the write."""

    at: float
    topic: str
    partition: int
    znode_version: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


@dataclass
class Notes:
    """All samples of one run, each kind in the order in which they were taken."""

    logs: list[LogSample] = field(default_factory=list)
    high_watermarks: list[HighWatermarkSample] = field(default_factory=list)
    leaders: list[LeaderSample] = field(default_factory=list)

    def save(self, directory: Path) -> None:
        """Each batch once; logs name batches by number."""
        with gzip.open(directory / NOTES_FILE, "wt") as file:
            for line in self._lines():
                file.write(json.dumps(line) + "\n")

    def _lines(self) -> Iterator[dict[str, Any]]:
        numbers: dict[bytes, int] = {}
        for sample in self.logs:
            for batch in sample.batches:
                if batch not in numbers:
                    numbers[batch] = len(numbers)
                    yield {"batch": base64.b64encode(batch).decode()}
            yield {"log": {**vars(sample), "batches": [numbers[one] for one in sample.batches]}}
        for high_watermark in self.high_watermarks:
            yield {"high_watermark": vars(high_watermark)}
        for leader in self.leaders:
            yield {"leader": vars(leader)}

    @classmethod
    def load(cls, directory: Path) -> "Notes":
        notes, batches = cls(), list[bytes]()
        with gzip.open(directory / NOTES_FILE, "rt") as file:
            for line in file:
                ((kind, told),) = json.loads(line).items()
                if kind == "batch":
                    batches.append(base64.b64decode(told))
                elif kind == "log":
                    held = tuple(batches[number] for number in told["batches"])
                    notes.logs.append(LogSample(**{**told, "batches": held}))
                elif kind == "high_watermark":
                    notes.high_watermarks.append(HighWatermarkSample(**told))
                else:
                    isr = tuple(told["isr"])
                    notes.leaders.append(LeaderSample(**{**told, "isr": isr}))
        return notes
