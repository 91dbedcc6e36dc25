"""Which batches hold given bytes: told without unpacking their records one by one."""

import hashlib
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path

from replication.evidence.digest import BATCH_HEADER, message_value
from replication.evidence.log_directories.compression import decompress
from replication.evidence.log_directories.record_payloads import LARGEST_BATCH
from replication.evidence.log_directories.segments import RecordBatch
from replication.evidence.opening import regular

_CHUNK = 8 << 20
# So many bytes are read at once, of so many files at a time.
_AHEAD, _MOST_FILES = 1 << 20, 8
# Of so many packed batches is kept that they hold nothing: replicas have the same ones.
_MOST_KEPT = 200_000


@dataclass(slots=True)
class BytesInBatches:
    """Where `wanted` is in segment files. A file is looked through once, when first asked for, and
    batches of the same bytes are unpacked once.

    What cannot be read or unpacked may hold it: whoever reads the batch then says why it cannot.
    """

    wanted: bytes
    _places: dict[Path, list[int]] = field(default_factory=dict)
    _ahead: dict[Path, tuple[int, bytes]] = field(default_factory=dict)
    _without: set[bytes] = field(default_factory=set)

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
            content = self._content(path, batch)
            packed = content[BATCH_HEADER.size :] if batch.magic == 2 else message_value(content)
            return self._is_in(batch.codec, packed)
        except (OSError, ValueError, IndexError):
            return True

    def _content(self, path: Path, batch: RecordBatch) -> bytes:
        """The bytes of a batch; those that follow are read with it and kept."""
        begins, held = self._ahead.get(path, (0, b""))
        first = batch.position - begins
        if not 0 <= first <= first + batch.size <= len(held):
            self._ahead.pop(path, None)
            with path.open("rb") as stream:
                stream.seek(batch.position)
                held = stream.read(max(batch.size, _AHEAD))
            while len(self._ahead) >= _MOST_FILES:
                self._ahead.pop(next(iter(self._ahead)))
            self._ahead[path], first = (batch.position, held), 0
        return held[first : first + batch.size]

    def _is_in(self, codec: int, packed: bytes) -> bool:
        same = hashlib.blake2b(packed, digest_size=16, key=bytes([codec])).digest()
        if same in self._without:
            return False
        if self.wanted in decompress(codec, packed):
            return True
        if len(self._without) < _MOST_KEPT:
            self._without.add(same)
        return False

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
