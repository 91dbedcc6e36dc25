"""What one process remembers of a spool between two micro-batches, so that only what is new is read
and only partitions of which something new was told are joined again.

Nothing of it decides: what is not remembered is worked out again, with the same outcome.
"""

import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from replication.evidence.collecting.collection import read_file
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.log_directories.digest_lines import SeenDirectory
from replication.evidence.log_directories.log_directory import LogDirectory
from replication.protocol.judgement.at_risk import TOLD_WITHIN_MS
from replication.protocol.judgement.lacking_records import FETCHED_WITHIN_MS

# After so many milliseconds what a digest did not see of another's log counts as missing.
WITHIN_MS = (0, FETCHED_WITHIN_MS, TOLD_WITHIN_MS)
# All but what many partitions share, which is looked at once, and names of places.
_SHARED = ("processes", "unpacked", "copies")
_own = attrgetter(*(f.name for f in fields(PartitionEvidence) if f.name not in _SHARED))
_of_copy = attrgetter(*(f.name for f in fields(Copy) if f.name not in ("directory", "parent")))


@dataclass(slots=True)
class Memory:
    """Of one cluster. readings: by file, what it held when it had that size and age. told: by
    partition, what its evidence was and the fingerprint of the events that came of it. last_lines:
    of packed lines, by what they hold, when the last one was printed."""

    readings: dict[Path, tuple[tuple[int, int], bytes]] = field(default_factory=dict)
    told: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    last_lines: dict[bytes, int] = field(default_factory=dict)

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
    """Of what is known of each partition of one import, before its last step.

    That a running broker's log is still the same is told by each round of its digest, and is no
    change: when it was read last counts only before the last line about the partition, or where it
    comes to lie so long after another log had grown that what it lacks counts as missing.
    """

    def __init__(self, unpacked: Path, last_lines: dict[bytes, int]) -> None:
        # A folder of one import, in whose place the next one has another.
        self._unpacked = str(unpacked).encode()
        self._shared: dict[int, bytes] = {}
        self._last_process: dict[int, int] = {}
        self._before = last_lines
        self.last_lines: dict[bytes, int] = {}

    def of(self, evidence: PartitionEvidence) -> bytes:
        """Equal for equal evidence read from the same places; in this process alone."""
        known: list[Any] = [_own(evidence)]
        last = max((self._last(evidence, b) for b in evidence.packed), default=0)
        last = max(last, *(r.at or 0 for r in evidence.recorded)) if evidence.recorded else last
        seen: list[tuple[int, SeenDirectory]] = []
        for copy in evidence.copies:
            directory: Any = copy.directory
            if isinstance(directory, SeenDirectory):
                seen.append((copy.broker, directory))
                if directory.read_at > last:
                    directory = replace(directory, read_at=0)
            known.append((_of_copy(copy), directory, self._of_parent(copy.parent)))
        known.append(_read_long_after(seen))
        pickled = pickle.dumps(known, pickle.HIGHEST_PROTOCOL)
        digest = hashlib.blake2b(pickled.replace(self._unpacked, b""), digest_size=16)
        for broker, lines in evidence.processes.items():
            digest.update(b"%d " % broker + self._of_shared(lines, lines))
        return digest.digest()

    def _last(self, evidence: PartitionEvidence, broker: int) -> int:
        """When a broker's last line about the partition or its own process was written."""
        processes = evidence.processes.get(broker, [])
        if id(processes) not in self._last_process:
            at = max((fact.at or 0 for fact in processes), default=0)
            self._last_process[id(processes)] = at
        found = [self._last_process[id(processes)]]
        for lines in evidence.packed[broker]:
            packed = hashlib.blake2b(repr(lines.packed).encode(), digest_size=16).digest()
            at = self._before.get(packed, -1)
            if at < 0:
                at = max((fact.at or 0 for fact in lines), default=0) + lines.ahead
            self.last_lines[packed] = at
            found.append(at - lines.ahead)
        return max(found)

    def _of_parent(self, parent: LogDirectory) -> bytes:
        """A log directory without the partitions that it holds."""
        return self._of_shared(parent, replace(parent, partitions=()))

    def _of_shared(self, whose: Any, known: Any) -> bytes:
        """Of what many partitions share: looked at once."""
        if id(whose) not in self._shared:
            self._shared[id(whose)] = hashlib.blake2b(pickle.dumps(known)).digest()
        return self._shared[id(whose)]


def _read_long_after(seen: list[tuple[int, SeenDirectory]]) -> list[tuple[int, int, int, int]]:
    """(replica, other, log end, within): that a log was read so long after the other had been seen
    to end there."""
    found = {
        (a, b, end, within)
        for a, last in seen
        for b, other in seen
        if a != b
        for at, end in (
            *other.grown,
            (other.told_at, other.log_end_offset or 0),
            (other.read_at, other.log_end_offset or 0),
        )
        for within in WITHIN_MS
        if last.read_at - at >= within
    }
    return sorted(found)
