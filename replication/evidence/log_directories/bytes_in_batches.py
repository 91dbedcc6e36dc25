"""Which batches hold given bytes: told without unpacking their records one by one."""

from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path

from replication.evidence.digest import BATCH_HEADER, message_value
from replication.evidence.log_directories.compression import decompress
from replication.evidence.log_directories.record_payloads import LARGEST_BATCH
from replication.evidence.log_directories.segments import RecordBatch
from replication.evidence.opening import regular

_CHUNK = 8 << 20


@dataclass(slots=True)
class BytesInBatches:
    """Where `wanted` is in segment files. A file is looked through once, when first asked for.

    What cannot be read or unpacked may hold it: whoever reads the batch then says why it cannot.
    """

    wanted: bytes
    _places: dict[Path, list[int]] = field(default_factory=dict)

    def may_hold(self, path: Path, batch: RecordBatch) -> bool:
        """Whether the bytes are among a batch's, unpacked. True where nothing tells."""
        if not self.wanted:
            return True
        try:
            if batch.codec == 0:
                places = self._places_in(path)
                at = bisect_left(places, batch.position)
                return at < len(places) and places[at] < batch.position + batch.size
            if batch.size > LARGEST_BATCH:
                return True
            with path.open("rb") as stream:
                stream.seek(batch.position)
                content = stream.read(batch.size)
            packed = content[BATCH_HEADER.size :] if batch.magic == 2 else message_value(content)
            return self.wanted in decompress(batch.codec, packed)
        except (OSError, ValueError, IndexError):
            return True

    def _places_in(self, path: Path) -> list[int]:
        if path not in self._places:
            self._places[path] = list(self._found(path))
        return self._places[path]

    def _found(self, path: Path) -> list[int]:
        """Every byte of the file at which the wanted ones begin, in order."""
        found: list[int] = []
        kept, begins = b"", 0
        with regular(path).open("rb") as stream:
            while piece := stream.read(_CHUNK):
                held = kept + piece
                at = held.find(self.wanted)
                while at >= 0:
                    found.append(begins + at)
                    at = held.find(self.wanted, at + 1)
                kept = held[len(held) - len(self.wanted) + 1 :] if len(self.wanted) > 1 else b""
                begins += len(held) - len(kept)
        return found
