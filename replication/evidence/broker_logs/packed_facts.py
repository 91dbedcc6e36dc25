"""A broker log's facts about topic partitions, packed small and kept apart by partition.

A gigabyte of broker log holds millions of facts; as objects they would fill the memory. They are
packed as they are read, each partition's together, and unpacked one partition at a time. Where many
machines share a folder the packed facts lie in a file there, so that no one machine holds all.
"""

import marshal
import os
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from replication.evidence.broker_logs.broker_log import LogLineFact

# So many facts wait to be packed, of all partitions of a file together.
_PENDING = 20_000
_QUICKLY = 1

# Whom a fact is about: the broker that its line names as its writer, topic, partition.
About = tuple[int | None, str, int]
# A packed run of facts, or where it lies: (offset, size) in the file of its PackedLines.
Packed = bytes | tuple[int, int]


@dataclass(frozen=True, slots=True)
class PackedLines:
    """One file's facts about one partition, in the order of its lines."""

    path: str
    about: About
    packed: tuple[Packed, ...]
    kept_in: Path | None = None
    # Milliseconds by which the writer's clock is printed ahead of UTC.
    ahead: int = 0

    def __iter__(self) -> Iterator[LogLineFact]:
        broker, topic, partition = self.about
        for packed in self._blocks():
            for kind, at, line, fields in marshal.loads(zlib.decompress(packed)):
                at = None if at is None else at - self.ahead
                yield LogLineFact(kind, at, line, self.path, broker, topic, partition, fields)

    def _blocks(self) -> Iterator[bytes]:
        if self.kept_in is None:
            yield from (p for p in self.packed if isinstance(p, bytes))
            return
        with self.kept_in.open("rb") as stream:
            for place in self.packed:
                assert isinstance(place, tuple)
                stream.seek(place[0])
                yield stream.read(place[1])


class Packer:
    """Takes a file's facts one by one. folder: where packed facts are kept; in memory without."""

    def __init__(self, path: str, folder: Path | None = None) -> None:
        self._path = path
        self._packed: dict[About, list[Packed]] = {}
        self._waiting: dict[About, list[tuple[object, ...]]] = {}
        self._count = 0
        self._kept_in = None if folder is None else folder / f"{uuid.uuid4().hex}.facts"

    def add(self, fact: LogLineFact) -> None:
        """Takes a fact about a topic partition."""
        assert fact.topic is not None
        assert fact.partition is not None
        about = (fact.broker, fact.topic, fact.partition)
        row = (fact.kind, fact.at, fact.line, fact.fields)
        waiting = self._waiting.get(about)
        if waiting is None:
            self._waiting[about] = [row]
        else:
            waiting.append(row)
        self._count += 1
        if self._count >= _PENDING:
            self._pack()

    def _pack(self) -> None:
        blocks = [
            (about, zlib.compress(marshal.dumps(facts), _QUICKLY))
            for about, facts in self._waiting.items()
        ]
        self._waiting.clear()
        self._count = 0
        if self._kept_in is None:
            for about, block in blocks:
                self._packed.setdefault(about, []).append(block)
            return
        with self._kept_in.open("ab") as stream:
            end = stream.seek(0, os.SEEK_END)
            for about, block in blocks:
                self._packed.setdefault(about, []).append((end, len(block)))
                end += stream.write(block)

    def done(self) -> list[PackedLines]:
        """All that was taken, in the order in which partitions were first named."""
        self._pack()
        return [
            PackedLines(self._path, about, tuple(packed), self._kept_in)
            for about, packed in self._packed.items()
        ]
