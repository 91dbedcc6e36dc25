"""A broker log's facts about topic partitions, packed small and kept apart by partition.

A gigabyte of broker log holds millions of facts; as objects they would fill the memory. They are
packed as they are read, each partition's together, and unpacked one partition at a time.
"""

import marshal
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from replication.evidence.broker_log import LogLineFact

# So many facts wait to be packed, of all partitions of a file together.
_PENDING = 20_000
_QUICKLY = 1

# Whom a fact is about: the broker that its line names as its writer, topic, partition.
About = tuple[int | None, str, int]


@dataclass(frozen=True, slots=True)
class PackedLines:
    """One file's facts about one partition, in the order of its lines."""

    path: str
    about: About
    packed: tuple[bytes, ...]

    def __iter__(self) -> Iterator[LogLineFact]:
        broker, topic, partition = self.about
        for packed in self.packed:
            for kind, at, line, fields in marshal.loads(zlib.decompress(packed)):
                yield LogLineFact(kind, at, line, self.path, broker, topic, partition, fields)


class Packer:
    """Takes a file's facts one by one."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._packed: dict[About, list[bytes]] = {}
        self._waiting: dict[About, list[tuple[object, ...]]] = {}
        self._count = 0

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
        for about, facts in self._waiting.items():
            packed = zlib.compress(marshal.dumps(facts), _QUICKLY)
            self._packed.setdefault(about, []).append(packed)
        self._waiting.clear()
        self._count = 0

    def done(self) -> list[PackedLines]:
        """All that was taken, in the order in which partitions were first told of."""
        self._pack()
        return [PackedLines(self._path, a, tuple(packed)) for a, packed in self._packed.items()]
