"""Which of the recovered records a cluster has already, each at the very offset that it was at.

A record is lost under one leader and may be there under another one: a folder that `recover` filled
before an election names records that the leader of today has. So before anything is produced to
the topic that the records are of, its log is read at their offsets: the same key, value and
timestamp at the same offset is the same record. What a consumer of committed records is not given
(an aborted transaction) is not there.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from replication.recovery.connecting import said

# How long one answer of the cluster is waited for; how far the log is read from one record to the
# next before it is left out, in offsets.
LOOK_SECONDS = 15.0
_LONGEST_WAY = 5_000
OPEN = "a transaction is open before their offsets"


@dataclass(slots=True)
class Looked:
    """there: the records that are there, by their number in the order of the folder. unknown: how
    many could not be looked up, by why."""

    there: set[int] = field(default_factory=set)
    unknown: dict[str, int] = field(default_factory=dict)


# By offset: the number of each record that was there, and its content.
Wanted = dict[int, list[tuple[int, bytes]]]


def look(
    kafka: Any, connection: dict[str, Any], name: str, wanted: dict[tuple[str, int], Wanted]
) -> Looked:
    """Reads the topic partitions at the wanted offsets.

    kafka: the library. connection: the client's settings. name: of the consumer group that nothing
    is committed for. What the cluster does not answer is among `unknown`."""
    result = Looked()
    common = {**connection, "group.id": name, "enable.auto.commit": False}
    settings = {"enable.partition.eof": True, "auto.offset.reset": "error"}
    every = kafka.Consumer({**common, "isolation.level": "read_uncommitted"})
    visible = kafka.Consumer({**common, **settings, "isolation.level": "read_committed"})
    try:
        for place, offsets in sorted(wanted.items()):
            left = set(offsets)
            try:
                for why, of in _cannot_be_read(kafka, every, visible, place, offsets):
                    left -= of
                    if why:
                        _count(result, why, of, offsets)
                for run in _runs(sorted(left)):
                    _read(kafka, visible, place, run, offsets, result)
                    left -= set(run)
            except kafka.KafkaException as error:
                _count(result, said(error), left, offsets)
    finally:
        every.close()
        visible.close()
    return result


def wanted_of(records: Iterable[tuple[int, dict[str, Any]]]) -> dict[tuple[str, int], Wanted]:
    """What to look up of numbered records, by topic partition."""
    wanted: dict[tuple[str, int], Wanted] = {}
    for number, record in records:
        offsets = wanted.setdefault((record["topic"], record["partition"]), {})
        content = _content(record["key"], record["value"], record.get("timestamp"))
        offsets.setdefault(record["offset"], []).append((number, content))
    return wanted


def _content(key: bytes | None, value: bytes | None, timestamp: int | None) -> bytes:
    # Message format 0 has no timestamps; a client calls that -1.
    told = (key, value, -1 if timestamp is None else timestamp)
    return hashlib.sha256(repr(told).encode()).digest()[:16]


def _count(result: Looked, why: str, of: Iterable[int], offsets: Wanted) -> None:
    count = sum(len(offsets[offset]) for offset in of)
    if count:
        result.unknown[why] = result.unknown.get(why, 0) + count


def _cannot_be_read(
    kafka: Any, every: Any, visible: Any, place: tuple[str, int], offsets: Wanted
) -> Iterator[tuple[str, set[int]]]:
    """Offsets that no record can be read at, and why; "" where surely none is there."""
    at = kafka.TopicPartition(*place)
    start, end = every.get_watermark_offsets(at, LOOK_SECONDS)
    _, stable = visible.get_watermark_offsets(at, LOOK_SECONDS)
    below = f"{place[0]}-{place[1]} begins at {start} now, above their offsets"
    yield below, {o for o in offsets if o < start}
    yield OPEN, {o for o in offsets if max(stable, start) <= o < end}
    yield "", {o for o in offsets if o >= end}


def _runs(offsets: list[int]) -> Iterator[list[int]]:
    """Offsets in order, those near to each other together."""
    run: list[int] = []
    for offset in offsets:
        if run and offset - run[-1] > _LONGEST_WAY:
            yield run
            run = []
        run.append(offset)
    if run:
        yield run


def _read(
    kafka: Any,
    consumer: Any,
    place: tuple[str, int],
    run: list[int],
    offsets: Wanted,
    result: Looked,
) -> None:
    """Notes which records of a run the log has."""
    consumer.assign([kafka.TopicPartition(*place, run[0])])
    reached = run[0]
    while reached <= run[-1]:
        message = consumer.poll(LOOK_SECONDS)
        error = None if message is None else message.error()
        if message is None or error is not None:
            if error is not None and error.code() == kafka.KafkaError._PARTITION_EOF:
                return
            why = "no answer came in time" if error is None else error.str()
            _count(result, why, [o for o in run if o >= reached], offsets)
            return
        offset = message.offset()
        content = _content(message.key(), message.value(), message.timestamp()[1])
        same = [number for number, known in offsets.get(offset, ()) if known == content]
        result.there.update(same)
        reached = offset + 1
