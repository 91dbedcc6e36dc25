"""Sends that the leader's log does not have and of which no producer was promised anything.

Those are sends with acks=0, and those without an answer, but for records that the ledger names:
whoever sends lost records again may send these, too. Only where the client's log names its records,
and a copy of the leader's log is at hand whole, was read, and is late enough to show that it lacks
them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from replication.evidence.clients.client_logs import Acknowledgement
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.places import Place, sequence_key
from replication.protocol.ground.model import Span, moment, same_record, touching
from replication.protocol.ground.topic_partition import State
from replication.recovery.ledger_rows import Rows
from replication.reports.inventory_words import counted

_TEXT, _NUMBER, _FLAG = pa.string(), pa.int64(), pa.bool_()
UNPROMISED = pa.schema(
    [
        ("client", _TEXT), ("payload_id", _TEXT), ("topic", _TEXT), ("partition", _NUMBER),
        ("acks", _TEXT), ("answer", _TEXT), ("sent_at", _TEXT), ("written", _FLAG),
        ("offset", _NUMBER), ("leader_epoch", _NUMBER), ("path", _TEXT), ("line", _NUMBER),
        ("cluster_id", _TEXT), ("topic_id", _TEXT),
    ]
)  # fmt: skip
# By what a client's log says of a send: what its producer got to hear.
_ANSWERS = {"sent": "none_asked", "unknown": "none_came"}


def unpromised(
    partition: PartitionEvidence,
    led: Copy | None,
    leader_log: list[Span],
    lost: Rows,
    state: State,
    *,
    may_compact: bool,
) -> Iterator[dict[str, Any]]:
    """Rows of UNPROMISED, client by client, one for each record. led: the copy of the leader's log;
    leader_log: what it holds at the evidence's end; lost: the ledger's rows; state: at the
    evidence's end. may_compact: compaction may have taken what is not there, so only what a copy
    shows is told; so where its log begins later.
    """
    if led is None or led.path in partition.contents.unread:
        return
    whole = led.directory.log_start_offset in (0, None) and not may_compact
    until = led.shown_at
    printed = partition.lines.get(led.broker, ())
    starts = sum(line.kind == "process_started" for line in printed)
    known = state.replicas.get(led.broker)
    stopped = known is not None and known.stopped is True
    if stopped and led.order_known and led.slot >= starts and not led.is_dump:
        until = max((line.at for line in printed if line.at is not None), default=until)
    lines = partition.acknowledgements
    told = {key for a in lines if a.status == "acked" for key in _keys(partition, a)}
    for a in lines:
        keys = _keys(partition, a)
        if a.status not in _ANSWERS or not keys or told & {*keys}:
            continue
        told.update(keys)  # One that was sent again is one record.
        places = [p for key in keys for p in partition.contents.places.get(key, ())]
        if any(_is_in(p, leader_log) or _may_follow(p, led) or _is_of(p, lost) for p in places):
            continue
        is_shown = whole and a.ts is not None and until is not None and a.ts <= until
        if not (places or is_shown):
            continue
        yield {
            "client": a.client,
            "payload_id": a.payload_id,
            "topic": partition.topic,
            "partition": partition.partition,
            "acks": a.acks,
            "answer": _ANSWERS[a.status],
            "sent_at": moment(a.ts if a.sent is None else a.sent),
            "written": True if places else None,
            "offset": places[0].offset if places else None,
            "leader_epoch": places[0].leader_epoch if places else None,
            "path": partition.shown(a.path),
            "line": a.line,
            "cluster_id": partition.cluster_id or None,
            "topic_id": partition.topic_id or None,
        }


def _keys(partition: PartitionEvidence, line: Acknowledgement) -> list[str]:
    """By what a client's line names its record."""
    name = partition.naming.name(line)
    keys = [] if name is None else [name]
    told = (line.producer_id, line.producer_epoch, line.sequence)
    if None not in told:
        keys.append(sequence_key(*(n for n in told if n is not None)))
    return keys


def _is_in(place: Place, log: list[Span]) -> bool:
    """Whether a log may hold a record that was seen at a place."""
    record = Span(place.offset, place.offset + 1, place.leader_epoch, place.content)
    here = touching(log, place.offset, place.offset + 1)
    return any(
        s.first_offset <= place.offset < s.end_offset and same_record(record, s) is not False
        for s in here
    )


def _may_follow(place: Place, led: Copy) -> bool:
    """Whether a record may have come into a log after it was copied: leader epochs only rise, so
    one of an earlier epoch than the copy's newest never does."""
    named = [e for e, _ in led.directory.epoch_entries or ()]
    newest = max(
        (*named, *(s.leader_epoch for s in led.spans if s.leader_epoch is not None)), default=-1
    )
    if place.leader_epoch is None or newest < 0:
        return place.offset >= (led.directory.log_end_offset or 0)
    return place.leader_epoch >= newest


def _is_of(place: Place, lost: Rows) -> bool:
    """Whether the ledger names the record that was seen at a place."""
    rows = lost.touching(place.offset, place.offset + 1)
    return any(row.may_be_of(place.leader_epoch) for row in rows)


def unpromised_words(rows: Iterable[dict[str, Any]]) -> list[str]:
    """What is said of them beside the lost records; nothing where there are none."""
    words = {"none_asked": "", "none_came": "unanswered "}
    rows = list(rows)
    own = Counter(
        (row["client"], words[row["answer"]] + f"with acks={row['acks']}") for row in rows
    )
    if not own:
        return []
    written = sum(row["written"] is True for row in rows)
    each = ", ".join(f"{client}: {n:,} {how}" for (client, how), n in sorted(own.items()))
    shown = f"a copy shows that {written:,} of them had been written" if written else (
        "whether they had been written no copy shows"
    )  # fmt: skip
    return [
        f"Sent, never promised: {counted(own.total(), 'record')} ({each}), not in the leader's "
        f"log; {shown}. Their producers may send these again; names: sent_never_promised.jsonl."
    ]
