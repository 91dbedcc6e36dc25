"""What one process remembers of a spool between two micro-batches, so that only what is new is read
and only partitions of which something new was told are joined again.

Nothing of it decides: what is not remembered is worked out again, with the same outcome.
"""

import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.collecting.collection import read_file
from replication.evidence.joining.partition_evidence import PartitionEvidence

# All but what the partitions of a broker share, which is looked at once, and names of places.
_own = attrgetter(
    *(f.name for f in fields(PartitionEvidence) if f.name not in ("processes", "unpacked"))
)


@dataclass(slots=True)
class Memory:
    """Of one cluster. readings: by file, what it held when it had that size and age. told: by
    partition, what its evidence was and the fingerprint of the events that came of it."""

    readings: dict[Path, tuple[tuple[int, int], bytes]] = field(default_factory=dict)
    told: dict[str, tuple[bytes, str]] = field(default_factory=dict)

    def spread(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """As `map`; a file that was read before as it is now is not read again."""
        if not (isinstance(function, partial) and function.func is read_file):
            yield from map(function, items)
            return
        read: dict[Path, tuple[tuple[int, int], bytes]] = {}
        for path in items:
            status = path.stat()
            state = (status.st_size, status.st_mtime_ns)
            known = self.readings.get(path)
            if known is None or known[0] != state:
                known = (state, pickle.dumps(function(path), pickle.HIGHEST_PROTOCOL))
            read[path] = known
            yield pickle.loads(known[1])
        self.readings = read


class Fingerprints:
    """Of what is known of each partition of one import, before its last step."""

    def __init__(self, unpacked: Path) -> None:
        # A folder of one import, in whose place the next one has another.
        self._unpacked = str(unpacked).encode()
        self._processes: dict[int, bytes] = {}

    def of(self, evidence: PartitionEvidence) -> bytes:
        """Equal for equal evidence read from the same places; in this process alone."""
        known = pickle.dumps(_own(evidence), pickle.HIGHEST_PROTOCOL)
        digest = hashlib.blake2b(known.replace(self._unpacked, b""), digest_size=16)
        for broker, lines in evidence.processes.items():
            digest.update(b"%d " % broker + self._of_process(lines))
        return digest.digest()

    def _of_process(self, lines: list[LogLineFact]) -> bytes:
        if id(lines) not in self._processes:
            self._processes[id(lines)] = hashlib.blake2b(pickle.dumps(lines)).digest()
        return self._processes[id(lines)]
