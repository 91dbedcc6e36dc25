"""What kafka-log-dirs printed: sizes, no offsets; by them a dump is known to be whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.evidence.text_lines import text_lines
from replication.evidence.tools.printed_values import (
    LARGEST_JSON,
    BadLine,
    json_number,
    parsed_json,
    replica_of,
)
from replication.evidence.unreadable import Unreadable


@dataclass(frozen=True, slots=True)
class LogDirectorySize:
    """One replica by kafka-log-dirs: bytes on disk; `is_future`: being moved to that directory.
    `offset_lag`: how far behind, a future one behind the current one; None where not printed."""

    broker: int
    directory: str
    topic: str
    partition: int
    size: int
    is_future: bool
    path: str
    offset_lag: int | None = None


@dataclass(frozen=True, slots=True)
class LogDirectoryError:
    """A log directory that its broker could not describe (offline, for one)."""

    broker: int
    directory: str
    error: str
    path: str


def read_log_dirs(path: Path) -> Iterator[LogDirectorySize | LogDirectoryError | Unreadable]:
    """The JSON of one or more runs of `kafka-log-dirs --describe`, on one line or on many."""
    pieces: list[str] = []
    size = start = 0
    for number, line in text_lines(path, LARGEST_JSON):
        if isinstance(line, Unreadable):
            yield line
            continue
        if not pieces and not line.lstrip().startswith("{"):
            continue
        start = start if pieces else number
        pieces.append(line)
        size += len(line)
        if size > LARGEST_JSON:
            break
        if line.rstrip().endswith("}"):
            found = parsed_json("".join(pieces))
            if found is not None:
                yield from _log_dirs(found, str(path), start)
                pieces, size = [], 0
    if pieces:
        yield Unreadable(str(path), f"line {start}", "the JSON that begins here is cut or damaged")


def _log_dirs(
    found: Any, path: str, line: int
) -> Iterator[LogDirectorySize | LogDirectoryError | Unreadable]:
    try:
        for broker in found["brokers"]:
            number = json_number(broker["broker"])
            for directory in broker["logDirs"]:
                name = str(directory["logDir"])
                if directory.get("error"):
                    yield LogDirectoryError(number, name, str(directory["error"]), path)
                for replica in directory["partitions"]:
                    yield _log_dir_replica(number, name, replica, path)
    except (KeyError, TypeError, BadLine) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        yield Unreadable(path, f"line {line}", f"this is no output of kafka-log-dirs: {what}")


def _log_dir_replica(broker: int, name: str, replica: Any, path: str) -> LogDirectorySize:
    topic, partition = replica_of(str(replica["partition"]))
    if topic is None or partition is None:
        raise BadLine(f"{replica['partition']} is no topic partition")
    return LogDirectorySize(
        broker=broker,
        directory=name,
        topic=topic,
        partition=partition,
        size=json_number(replica["size"]),
        is_future=replica.get("isFuture") is True,
        path=path,
        offset_lag=lag if isinstance(lag := replica.get("offsetLag"), int) else None,
    )
