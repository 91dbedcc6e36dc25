"""What kafka-metadata-quorum printed: the committed end of the metadata log."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from replication.evidence.text_lines import text_lines
from replication.evidence.tools.printed_values import (
    BadLine,
    json_number,
    known_number,
    parsed_json,
    whole_number,
)
from replication.evidence.unreadable import Unreadable

_STATUS_LINE = re.compile(r"^([A-Z][A-Za-z]+):\s+(\S.*|)$")
REPLICA_ROW = re.compile(r"^\d+\s+\S.*\s(?:Leader|Follower|Observer)$")
REPLICATION_HEADER = re.compile(r"^(?:Node|Replica)Id\s+(?:\S+\s+)?LogEndOffset\s+Lag\s")


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """`describe --status`. `high_watermark` is the committed end of the metadata log, exclusive."""

    cluster_id: str | None
    leader: int | None
    leader_epoch: int | None
    high_watermark: int | None
    voters: tuple[int, ...]
    observers: tuple[int, ...]
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """One line of `describe --replication`. `role`: Leader, Follower or Observer."""

    node: int
    directory_id: str | None
    log_end_offset: int
    role: str
    path: str
    line: int


def read_metadata_quorum(path: Path) -> Iterator[QuorumStatus | QuorumReplica | Unreadable]:
    """`describe --status` and `describe --replication`, from 3.3 on, one or several in a file."""
    status: dict[str, str] = {}
    columns: list[str] = []
    first = number = 0
    for number, line in text_lines(path):
        if isinstance(line, Unreadable):
            yield line
            continue
        text = line.strip()
        pair = _STATUS_LINE.match(text)
        if pair:
            if pair[1] in status:
                yield _quorum_status(status, str(path), first)
                status = {}
            first = first if status else number
            status[pair[1]] = pair[2].strip()
            columns = []
        elif REPLICATION_HEADER.match(text):
            columns = _columns(text)
        elif columns and text and not text.startswith("#"):
            yield _quorum_replica(columns, text, line.endswith("\n"), str(path), number)
    if status:
        yield _quorum_status(status, str(path), first)


def _columns(text: str) -> list[str]:
    return re.split(r"\t+\s*|\s{2,}", text)


def _quorum_status(status: dict[str, str], path: str, line: int) -> QuorumStatus | Unreadable:
    try:
        return QuorumStatus(
            cluster_id=status.get("ClusterId") or None,
            leader=known_number(status, "LeaderId"),
            leader_epoch=known_number(status, "LeaderEpoch"),
            high_watermark=known_number(status, "HighWatermark"),
            voters=_nodes(status.get("CurrentVoters", "[]")),
            observers=_nodes(status.get("CurrentObservers", "[]")),
            path=path,
            line=line,
        )
    except BadLine as error:
        return Unreadable(path, f"line {line}", str(error))


def _nodes(text: str) -> tuple[int, ...]:
    """`[1,2]` up to 3.8; `[{"id": 1, "directoryId": .., "endpoints": [..]}, ..]` since."""
    found = parsed_json(text)
    if not isinstance(found, list):
        raise BadLine(f"{text[:60]} is no list of nodes")
    return tuple(json_number(one.get("id") if isinstance(one, dict) else one) for one in found)


def _quorum_replica(
    columns: list[str], text: str, complete: bool, path: str, line: int
) -> QuorumReplica | Unreadable:
    where = f"line {line}"
    values = _columns(text)
    if not complete:
        return Unreadable(path, where, "the file ends within this line")
    if len(values) != len(columns):
        # Pasted from a terminal, where one space may be all that is left between two columns.
        values = text.split()
    pairs = dict(zip(columns, values, strict=False))
    try:
        node = pairs.get("NodeId", pairs.get("ReplicaId", ""))
        role = values[-1]
        if role not in ("Leader", "Follower", "Observer"):
            raise BadLine(f"{text[:60]} is no replica of the metadata quorum")
        directory = pairs.get("DirectoryId", pairs.get("ReplicaDirectoryId"))
        return QuorumReplica(
            node=whole_number({"NodeId": node}, "NodeId"),
            directory_id=directory,
            log_end_offset=whole_number(pairs, "LogEndOffset"),
            role=role,
            path=path,
            line=line,
        )
    except BadLine as error:
        return Unreadable(path, where, str(error))
