"""Reads the output of `kafka-topics --describe`, every version from 0.10 to 4.3.

One line for a topic (identity, settings), one for each partition (assignment, leader, ISR, from 3.7
the ELR). It says what the asked broker believed at one moment, without epochs or offsets. Several
outputs in one file are told apart by a comment line with the time before each:
`# 2026-11-20T15:28:05.103Z`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from replication.evidence.text_lines import iso_milliseconds, text_lines
from replication.evidence.unreadable import Unreadable
from replication.protocol.ground.wire import MAX_INT32

# As the tool prints them; longer names first where one ends with another.
_LABELS = (
    "TopicId",
    "Topic",
    "PartitionCount",
    "ReplicationFactor",
    "Configs",
    "MarkedForDeletion",
    "Partition",
    "LastKnownElr",
    "Elr",
    "Leader",
    "Adding Replicas",
    "Removing Replicas",
    "Offline Replicas",
    "Replicas",
    "Isr",
)
# Tabs separate the fields; what was pasted from a terminal has spaces in their place.
_FIELD_START = re.compile(r"(?:^|(?<=\s))(" + "|".join(_LABELS) + r"):[ ]?")
_SETTING = re.compile(r"^([a-z][a-z0-9]*(?:\.[a-z0-9]+)+)=(.*)$", re.DOTALL)
_TOPIC_ID = re.compile(r"^[A-Za-z0-9_-]{22}$")
_TOPIC_NAME = re.compile(r"^[A-Za-z0-9._-]{1,249}$")
_DESCRIPTION = re.compile(
    r"^\s*Topic:\s?\S+\s+(TopicId:\s?\S+\s+)?(PartitionCount:|Partition:\s?\d)"
)
# How a line begins that a terminal wrapped, and a list of replicas that goes on in the next one.
GOES_ON = re.compile(
    r"^\s*(?:TopicId|PartitionCount|ReplicationFactor|Configs|Partition|Leader|Replicas|Isr|Elr"
    r"|LastKnownElr|Adding Replicas|Removing Replicas|Offline Replicas):"
)
_LIST_GOES_ON = re.compile(r"(?s).*\d(?:,\s*\n|\s*\n,)\d[\d,]*(?:\s+[A-Z].*)?$")
# A mail's marks in front of what it quotes.
QUOTED = re.compile(r"^(?:> ?)+")
_LINES_TO_KNOW_A_FILE_BY = 40


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic and its settings. `configs` are those the tool printed: set on the topic, and from
    3.x some defaults too. `at` is milliseconds since 1970, None where no comment line gives it."""

    topic: str
    topic_id: str | None
    partition_count: int
    replication_factor: int
    configs: dict[str, str]
    at: int | None
    path: str
    line: int
    marked_for_deletion: bool = False


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition. `elr` and `last_known_elr` are None where the version or cluster has none."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None
    last_known_elr: tuple[int, ...] | None
    at: int | None
    path: str
    line: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    marked_for_deletion: bool = False


class _BadLine(ValueError):
    """What is wrong with a line, for the user."""


def is_topic_description(path: Path) -> bool:
    """Whether one of the first lines is one of `kafka-topics --describe`."""
    for number, line in text_lines(path):
        if isinstance(line, Unreadable) or number > _LINES_TO_KNOW_A_FILE_BY:
            return False
        if _DESCRIPTION.match(QUOTED.sub("", line)):
            return True
    return False


def read_topic_descriptions(
    path: Path,
) -> Iterator[TopicDescription | PartitionDescription | Unreadable]:
    """What each line describes, in the order of the file.

    A last line without a line end is not trusted: a list of replicas that was cut is a list too.
    """
    at: int | None = None
    for number, line in _unwrapped(path):
        if isinstance(line, Unreadable):
            yield line
            continue
        text = line.strip()
        if not text or text.startswith("#"):
            at = _time_of_comment(text, at)
            continue
        try:
            if not line.endswith("\n"):
                raise _BadLine("the file ends within this line")
            yield _description(_fields(line.rstrip("\r\n")), at, str(path), number)
        except _BadLine as error:
            yield Unreadable(str(path), f"line {number}", str(error))


def _unwrapped(path: Path) -> Iterator[tuple[int, str | Unreadable]]:
    """The lines, without a mail's marks; what a terminal wrapped is one line again, with the number
    of its first."""
    held: tuple[int, str] | None = None
    for number, line in text_lines(path):
        if not isinstance(line, Unreadable):
            line = QUOTED.sub("", line)
            text = line.strip()
            if held is not None and (GOES_ON.match(line) or _LIST_GOES_ON.match(held[1] + text)):
                blank = "" if text[:1] == "," or held[1].rstrip().endswith(",") else " "
                held = (held[0], held[1].rstrip("\r\n") + blank + line.lstrip())
                continue
        if held is not None:
            yield held
            held = None
        if isinstance(line, Unreadable) or not _DESCRIPTION.match(line):
            yield number, line
        else:
            held = number, line
    if held is not None:
        yield held


def _time_of_comment(text: str, before: int | None) -> int | None:
    try:
        return iso_milliseconds(text.lstrip("# \t"))
    except (ValueError, OverflowError):
        return before


def _fields(line: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    tabbed = "\t" in line.strip()
    for part in line.split("\t") if tabbed else [line]:
        found = list(_FIELD_START.finditer(part))
        if tabbed and found and found[0][1] == "Configs":
            # A tab ends a field; a colon within settings belongs to their value.
            found = found[:1]
        ends = [one.start() for one in found[1:]] + [len(part)]
        for start, end in zip(found, ends, strict=False):
            value = part[start.end() : end].strip()
            if fields.setdefault(start[1], value) != value:
                raise _BadLine(f"names {start[1]} twice")
    return fields


def _description(
    fields: dict[str, str], at: int | None, path: str, line: int
) -> TopicDescription | PartitionDescription:
    topic = fields.get("Topic", "")
    if not fields or not _TOPIC_NAME.match(topic):
        raise _BadLine("this is no line of kafka-topics --describe")
    marked = fields.get("MarkedForDeletion") == "true"
    if "Partition" in fields:
        return PartitionDescription(
            topic=topic,
            partition=_number(fields, "Partition"),
            leader=_leader(fields),
            replicas=_replicas(fields, "Replicas"),
            isr=_replicas(fields, "Isr"),
            elr=_optional_replicas(fields, "Elr"),
            last_known_elr=_optional_replicas(fields, "LastKnownElr"),
            at=at,
            path=path,
            line=line,
            adding=_optional_replicas(fields, "Adding Replicas") or (),
            removing=_optional_replicas(fields, "Removing Replicas") or (),
            marked_for_deletion=marked,
        )
    topic_id = fields.get("TopicId")
    if topic_id is not None and not _TOPIC_ID.match(topic_id):
        raise _BadLine(f"has TopicId {topic_id[:60]}, which is no topic id")
    if "Configs" not in fields and not marked:
        raise _BadLine("this line of a topic has no Configs: it is cut")
    return TopicDescription(
        topic=topic,
        topic_id=topic_id,
        partition_count=_number(fields, "PartitionCount"),
        replication_factor=_number(fields, "ReplicationFactor"),
        configs=_configs(fields.get("Configs", "")),
        at=at,
        path=path,
        line=line,
        marked_for_deletion=marked,
    )


def _number(fields: dict[str, str], name: str) -> int:
    value = fields.get(name, "")
    if not _is_number(value):
        raise _BadLine(f"has {name} {value[:60] or 'missing'}, which is no number")
    return int(value)


def _is_number(text: str) -> bool:
    """Whether it is the number of a broker or a partition."""
    return re.fullmatch("[0-9]{1,10}", text) is not None and int(text) <= MAX_INT32


def _leader(fields: dict[str, str]) -> int | None:
    # "none" from the tool, "-1" where ZooKeeper's state has it so.
    return None if fields.get("Leader") in ("none", "-1") else _number(fields, "Leader")


def _replicas(fields: dict[str, str], name: str) -> tuple[int, ...]:
    if name not in fields:
        raise _BadLine(f"has no {name}: the line is cut")
    text = fields[name]
    if not text:
        return ()
    numbers = [number.strip() for number in text.split(",")]
    if not all(map(_is_number, numbers)):
        raise _BadLine(f"has {name} {text[:60]}, which is no list of broker ids")
    return tuple(int(number) for number in numbers)


def _optional_replicas(fields: dict[str, str], name: str) -> tuple[int, ...] | None:
    return None if fields.get(name, "N/A") == "N/A" else _replicas(fields, name)


def _configs(text: str) -> dict[str, str]:
    """`a.b=1,c.d=x,y`: a piece that is no setting of its own belongs to the value before it."""
    configs: dict[str, str] = {}
    name = None
    for piece in text.split(",") if text else []:
        setting = _SETTING.match(piece)
        if setting:
            name = setting[1]
            configs[name] = setting[2]
        elif name is None:
            raise _BadLine(f"has Configs {text[:60]}, which are no settings")
        else:
            configs[name] += f",{piece}"
    return configs
