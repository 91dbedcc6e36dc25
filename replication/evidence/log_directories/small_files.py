"""Reads the small text files that a broker keeps beside its segments.

Each file has a `read_` function for a path and a `parse_` function for its text, because a digest
holds the text without the file. All of them answer an Unreadable for anything that is not what
Kafka writes: a half-understood checkpoint would prove things that never were."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.evidence.opening import regular
from replication.evidence.unreadable import Unreadable
from replication.protocol.ground.wire import MAX_OFFSET

# A checkpoint of a hundred thousand partitions takes some five megabytes.
LARGEST_FILE = 16 << 20
QUOTED = 60
TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")
# As java.util.Date prints it.
WRITTEN = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d\d) (\d\d:\d\d:\d\d) (\S+) (\d{4})")
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """`meta.properties`: whose log directory this is. `version` 0 is ZooKeeper's, with `broker.id`;
    1 is KRaft's, with `node.id` and from 3.7 on the directory's own id. Source: MetaProperties,
    KIP-858. `written`: the date in its comment, which java.util.Properties puts there in the zone
    of the broker's process (`Fri Nov 20 15:20:07 UTC 2026`)."""

    cluster_id: str | None
    broker_id: int | None
    directory_id: str | None
    version: int
    written: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CleanShutdown:
    """`.kafka_cleanshutdown`: the broker stopped in order after it wrote everything. The broker
    epoch it had is told from 3.7 on. Source: CleanShutdownFileHandler, KIP-966."""

    broker_epoch: int | None


@dataclass(frozen=True, slots=True)
class QuorumState:
    """`quorum-state` of the metadata log: what this node knows of the controllers' own election.
    Source: QuorumStateData, KIP-595, KIP-853."""

    leader_id: int | None
    leader_epoch: int
    voted_id: int | None
    voters: tuple[int, ...]


def read_offset_checkpoint(path: Path) -> dict[tuple[str, int], int] | Unreadable:
    """A `...-offset-checkpoint` of a log directory: topic and partition to offset."""
    text = _read_text(path)
    return text if isinstance(text, Unreadable) else parse_offset_checkpoint(text, str(path))


def parse_offset_checkpoint(text: str, path: str) -> dict[tuple[str, int], int] | Unreadable:
    """A file of no bytes, as a crash in the first minute leaves it, has no entries."""
    rows = _checkpoint_rows(text, path, 3)
    if isinstance(rows, Unreadable):
        return rows
    entries: dict[tuple[str, int], int] = {}
    for number, (topic, partition, offset) in rows:
        key = (topic, _number(partition))
        value = _number(offset)
        if key[1] < 0 or value < 0 or key in entries:
            return _bad_line(path, number, f"{topic} {partition} {offset}")
        entries[key] = value
    return entries


def read_leader_epoch_checkpoint(path: Path) -> list[tuple[int, int]] | Unreadable:
    """`leader-epoch-checkpoint`: (leader epoch, its start offset), in the order of the file."""
    text = _read_text(path)
    return text if isinstance(text, Unreadable) else parse_leader_epoch_checkpoint(text, str(path))


def parse_leader_epoch_checkpoint(text: str, path: str) -> list[tuple[int, int]] | Unreadable:
    """A file of no bytes has no entries."""
    rows = _checkpoint_rows(text, path, 2)
    if isinstance(rows, Unreadable):
        return rows
    entries = []
    for number, (leader_epoch, start_offset) in rows:
        entry = (_number(leader_epoch), _number(start_offset))
        if min(entry) < 0:
            return _bad_line(path, number, f"{leader_epoch} {start_offset}")
        entries.append(entry)
    return entries


def read_partition_metadata(path: Path) -> str | Unreadable:
    """`partition.metadata`: the topic id as Kafka prints it, 22 characters."""
    text = _read_text(path)
    return text if isinstance(text, Unreadable) else parse_partition_metadata(text, str(path))


def parse_partition_metadata(text: str, path: str) -> str | Unreadable:
    """Kafka writes no newline after the id."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "version: 0":
        return _bad_line(path, 1, lines[0] if lines else "")
    for number, line in enumerate(lines[1:], start=2):
        name, _, value = line.partition(":")
        if name.strip() == "topic_id" and TOPIC_ID.fullmatch(value.strip()):
            return value.strip()
        if line.strip():
            return _bad_line(path, number, line)
    return Unreadable(path, "file", "it names no topic_id")


def read_meta_properties(path: Path) -> MetaProperties | Unreadable:
    """`meta.properties` of a log directory."""
    text = _read_text(path)
    return text if isinstance(text, Unreadable) else parse_meta_properties(text, str(path))


def parse_meta_properties(text: str, path: str) -> MetaProperties | Unreadable:
    """Java properties; names that are not known are passed over, as the broker does."""
    values: dict[str, str] = {}
    written: str | None = None
    if text and not text.endswith("\n"):
        return _cut(path, len(text.splitlines()))
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            name, _, value = stripped.partition("=")
            values[_unescape(name.strip())] = _unescape(value.strip())
        elif WRITTEN.fullmatch(stripped[1:]):
            written = stripped[1:]
    version = _number(values.get("version", ""))
    if version not in (0, 1):
        found = values.get("version")
        return Unreadable(path, "file", f"its version is {found!r}, known are 0 and 1")
    id_name = "node.id" if version == 1 else "broker.id"
    id_text = values.get(id_name)
    if id_text is not None and _number(id_text) < 0:
        return Unreadable(path, "file", f"its {id_name} is {id_text[:QUOTED]!r}")
    return MetaProperties(
        cluster_id=values.get("cluster.id") or None,
        broker_id=None if id_text is None else int(id_text),
        directory_id=values.get("directory.id") or None,
        version=version,
        written=written,
    )


def read_clean_shutdown(path: Path) -> CleanShutdown | Unreadable:
    """`.kafka_cleanshutdown`; call it only where the file exists, since existing is what it
    says."""
    text = _read_text(path)
    return text if isinstance(text, Unreadable) else parse_clean_shutdown(text, str(path))


def parse_clean_shutdown(text: str, path: str) -> CleanShutdown | Unreadable:
    """Empty up to 3.6, JSON since."""
    if not text.strip():
        return CleanShutdown(broker_epoch=None)
    content = _json_object(text, path)
    if isinstance(content, Unreadable):
        return content
    broker_epoch = content.get("brokerEpoch", -1)
    if type(broker_epoch) is not int:
        return Unreadable(path, "file", f"its brokerEpoch is {str(broker_epoch)[:QUOTED]}")
    return CleanShutdown(broker_epoch if broker_epoch >= 0 else None)


def read_quorum_state(path: Path) -> QuorumState | Unreadable:
    """`quorum-state` in the directory of the metadata log."""
    text = _read_text(path)
    return text if isinstance(text, Unreadable) else parse_quorum_state(text, str(path))


def parse_quorum_state(text: str, path: str) -> QuorumState | Unreadable:
    """Both data versions; version 1 (KIP-853) keeps its voters elsewhere and names none here."""
    content = _json_object(text, path)
    if isinstance(content, Unreadable):
        return content
    numbers = {name: content.get(name, -1) for name in ("leaderId", "leaderEpoch", "votedId")}
    voters = content.get("currentVoters") or []
    try:
        voter_ids = tuple(int(voter["voterId"]) for voter in voters)
    except (TypeError, KeyError, ValueError):
        return Unreadable(path, "file", "its currentVoters are no list of voters")
    for name, value in numbers.items():
        if type(value) is not int:
            return Unreadable(path, "file", f"its {name} is {str(value)[:QUOTED]}")
    if numbers["leaderEpoch"] < 0:
        return Unreadable(path, "file", "it names no leaderEpoch")
    return QuorumState(
        leader_id=numbers["leaderId"] if numbers["leaderId"] >= 0 else None,
        leader_epoch=numbers["leaderEpoch"],
        voted_id=numbers["votedId"] if numbers["votedId"] >= 0 else None,
        voters=voter_ids,
    )


def _checkpoint_rows(text: str, path: str, fields: int) -> list[tuple[int, list[str]]] | Unreadable:
    """The entries of a checkpoint file with their line numbers: version 0, their count, then one a
    line. A count that does not fit means that the file was cut."""
    lines = text.splitlines()
    if not text:
        return []
    if lines[0].strip() != "0":
        return _bad_line(path, 1, lines[0])
    count = _number(lines[1]) if len(lines) > 1 else -1
    if count < 0:
        return _bad_line(path, 2, lines[1] if len(lines) > 1 else "")
    rows = []
    for number, line in enumerate(lines[2:], start=3):
        if not line.strip():
            continue
        words = line.split()
        if len(words) != fields:
            return _bad_line(path, number, line)
        rows.append((number, words))
    if not text.endswith("\n"):
        return _cut(path, len(lines))
    if len(rows) != count:
        return Unreadable(path, "line 2", f"it announces {count} entries and holds {len(rows)}")
    return rows


def _read_text(path: Path) -> str | Unreadable:
    try:
        with regular(path).open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        return Unreadable(str(path), "file", error.strerror or str(error))
    if len(content) > LARGEST_FILE:
        return Unreadable(str(path), "file", "larger than 16 MB")
    return decode_text(content, str(path))


def decode_text(content: bytes, path: str) -> str | Unreadable:
    """The file's bytes as text; zeros and other bytes that no such file holds are refused."""
    zero = content.find(0)
    if zero >= 0:
        return Unreadable(path, f"byte {zero}", "zero bytes, as a crash of the machine leaves them")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        return Unreadable(path, f"byte {error.start}", "no text")


def _json_object(text: str, path: str) -> dict[str, Any] | Unreadable:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Unreadable(path, "file", f"no JSON: {error}")
    if not isinstance(content, dict):
        return Unreadable(path, "file", "no JSON object")
    return content


def _number(text: str) -> int:
    """A number of Kafka's range as written in these files, -1 for anything else."""
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit() and len(stripped) <= 19):
        return -1
    number = int(stripped)
    return number if number <= MAX_OFFSET else -1


def _cut(path: str, number: int) -> Unreadable:
    """Brokers end every line of these files; what is left of a number is another number."""
    return Unreadable(path, f"line {number}", "the file ends within this line")


def _bad_line(path: str, number: int, line: str) -> Unreadable:
    shown = line.strip()[:QUOTED]
    return Unreadable(path, f"line {number}", f"not understood: {shown!r}")


def _unescape(text: str) -> str:
    """Java's properties escape colons, blanks and whatever is not ASCII."""
    return ESCAPE.sub(lambda found: _escaped(found.group(1)), text)


def _escaped(code: str) -> str:
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(code, code)
