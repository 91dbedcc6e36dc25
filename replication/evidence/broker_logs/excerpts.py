"""Reads lines of brokers as people paste them: without a time, quoted, wrapped, or out of a trace.

Every line is tried for what it says by itself. What is no line of a broker is passed over, so that
a whole issue thread can be handed over as one file.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.line_families import INDEX
from replication.evidence.broker_logs.line_families.family import topic_partition
from replication.evidence.broker_logs.log_layouts import split_line
from replication.evidence.text_lines import text_lines
from replication.evidence.unreadable import Unreadable

# What people paste is small; a whole log is read in another way.
LARGEST = 2 << 20
# What mail, issue trackers and terminals put in front of a line.
_QUOTED = re.compile(r"^(?:[>|`*•\s]|-\s|\d{1,5}[:.)]\s|\S+@\S+[:$#]\s)+")
_TP = r"(?P<tp>[^\s\[\],:]+-\d{1,9}|\[[^\],\s]+,\d{1,9}\])"
# As many digits as any offset has.
_LONGEST_NUMBER = 18
# Messages of exceptions stand in traces, without a logger. Kind, pattern; groups but `tp` are
# offsets. Kafka: ReplicaFetcherThread.processPartitionData, UnifiedLog.append and
# maybeIncrementLogStartOffset, AbstractFetcherThread.
_EXCEPTIONS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "fetch_offset_mismatch",
            rf"Offset mismatch for (?:the future replica|partition) {_TP}: fetched offset = "
            r"(?P<fetch_offset>\d+), log end offset = (?P<log_end_offset>\d+)",
        ),
        (
            "unexpected_append_offset",
            rf"Unexpected offset in append to {_TP}\. First offset (?:or last offset of the first "
            r"batch )?(?P<first_offset>\d+) is less than the next offset (?P<log_end_offset>\d+)",
        ),
        ("offsets_out_of_order", rf"Out of order offsets found in append to {_TP}:"),
        (
            "log_start_above_high_watermark",
            r"Cannot increment the log start offset to (?P<log_start_offset>\d+) of partition "
            rf"{_TP} since it is larger than the high watermark (?P<high_watermark>\d+)",
        ),
        (
            "unknown_leader_epoch",
            rf"(?i:(?:partition|partition:) {_TP}\b.{{0,200}}?UNKNOWN_LEADER_EPOCH"
            r"|UNKNOWN_LEADER_EPOCH.{0,200}?partition (?P<tp_2>[^\s\[\],:]+-\d{1,9}))",
        ),
        (
            "fetch_processing_failed",
            rf"Error processing data for partition {_TP} (?:at )?offset (?P<fetch_offset>\d+)",
        ),
        (
            "unknown_leader_epoch",
            rf"Partition {_TP} has a newer epoch \((?P<leader_epoch>\d+)\) than the current leader",
        ),
    )
)
_TRIGGERS = re.compile(
    r"mismatch for|in append to|Cannot increment|UNKNOWN_LEADER|newer epoch|processing data for"
)
_WRITER = re.compile(
    r"\breplicaId=(\d{1,9})\b|\[Broker id=(\d{1,9})\]|\bbroker=(\d{1,9})\]|on broker (\d{1,9}): "
)


def read_excerpt(path: Path, *, headed: bool) -> Iterator[LogLineFact]:
    """What the lines say, in their order. headed: lines that begin with a time too; without, only
    those that a reader of whole logs leaves out."""
    lines = [(n, t.rstrip("\r\n")) for n, t in text_lines(path) if not isinstance(t, Unreadable)]
    writer: int | None = None
    for index, (number, text) in enumerate(lines):
        bare = _QUOTED.sub("", text)
        at, message, logger, has_head = split_line(bare)
        quoted = bare is not text and bare != text
        if has_head:
            named = _WRITER.search(message)
            writer = int(next(filter(None, named.groups()))) if named else None
        if headed or not has_head or quoted:
            wrapped = [t for _, t in lines[index + 1 : index + 3]]
            found = list(_facts(message, logger, wrapped))
            for kind, fields, node, topic, partition in found:
                yield LogLineFact(kind, at, number, str(path), node, topic, partition, fields)
            if found:
                continue
        for kind, pattern in _EXCEPTIONS if _TRIGGERS.search(text) else ():
            match = pattern.search(text)
            if match:
                named = _WRITER.search(message)
                owner = int(next(filter(None, named.groups()))) if named else writer
                groups = {k: v for k, v in match.groupdict().items() if v is not None}
                place = topic_partition(groups.pop("tp", None) or groups.pop("tp_2"))
                if any(len(value) > _LONGEST_NUMBER for value in groups.values()):
                    continue
                fields = {name: int(value) for name, value in groups.items()}
                yield LogLineFact(kind, at, number, str(path), owner, *place, fields)
                break


def _facts(
    message: str, logger: str | None, following: list[str]
) -> Iterator[tuple[str, dict[str, object], int | None, str | None, int | None]]:
    """A message's facts; where it is none, with the lines that it may have been wrapped into."""
    text = message
    for more in ("", *following):
        text = f"{text} {_QUOTED.sub('', more)}".rstrip() if more else text
        _, text_only, behind, _ = split_line(text)
        for name in {logger, behind, None}:
            answer = INDEX.read(text_only, name)
            if answer is not None and answer[1]:
                family = answer[0]
                for fields, node, topic, partition in answer[1]:
                    yield family.kind, fields, node, topic, partition
                return
        if more and split_line(_QUOTED.sub("", more))[3]:
            return
