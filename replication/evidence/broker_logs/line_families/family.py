"""What a line family is: one wording of a broker's log line, as data, and how it becomes facts.

A family names the words its lines begin with, a pattern with named groups, and real example lines.
Groups are named like the fields they fill, and the field's name alone decides how its text is read.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from replication.evidence.broker_logs.line_families.kinds import (
    LEADERS,
    NAMES_OF_BROKERS,
    REPLICA_LISTS,
    lacking,
    misnamed,
)
from replication.protocol.ground import wire

Fields = dict[str, Any]


class Found(NamedTuple):
    """What a message says about one topic partition (or about none): a fact without place and time.

    `node` is the broker or controller that the message itself names as its writer.
    """

    fields: Fields
    node: int | None = None
    topic: str | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A line as a broker wrote it (its message only), and what has to be read from it."""

    message: str
    found: tuple[Found, ...]


def _nothing(_: re.Match[str]) -> list[Found]:
    return []


Converter = Callable[[re.Match[str]], list[Found]]
# The groups that say where and by whom; all others are fields.
_PLACES = ("tp", "topic", "partition", "node")


@dataclass(frozen=True, slots=True)
class LineFamily:
    """One wording. `words` are the possible first words of the text behind the writer's prefix
    (none: any word); `trigger` is what the text must hold besides to be claimed by this family.
    A line that is claimed and does not match `pattern` is of a wording we do not know. ValueError
    where it names a field otherwise than the readers of its kind do (`kinds.py`), or lacks one.
    """

    kind: str
    versions: str
    loggers: tuple[str, ...]
    words: tuple[str, ...]
    pattern: str
    examples: tuple[Example, ...]
    trigger: str = ""
    constants: Mapping[str, Any] = field(default_factory=dict)
    convert: Converter | None = None
    compiled: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", re.compile(self.pattern))
        if self.kind:
            self._hold_to_its_kind()

    def _hold_to_its_kind(self) -> None:
        groups = {group.partition("__")[0] for group in self.compiled.groupindex}
        said = [set(one.fields) for example in self.examples for one in example.found]
        # What a converter makes of its groups, the examples alone tell.
        every = [set[str]() if self.convert else groups.difference(_PLACES), *said]
        wrong = [misnamed(self.kind, names) for names in (self.constants, *every)]
        wrong += [lacking(self.kind, names) for names in said]
        if any(wrong):
            raise ValueError(next(text for text in wrong if text))

    def read(self, message: str) -> list[Found] | None:
        """What the message says, or None where it is not of this wording."""
        match = self.compiled.search(message)
        if match is None:
            return None
        try:
            found = self.convert(match) if self.convert else [found_by_groups(match)]
        except (ValueError, KeyError, IndexError, RecursionError):
            # Right up to here, and then a number or a list that is none.
            return None
        for item in found:
            if is_beyond_kafka(item):
                return None
            if self.constants:
                item.fields.update(self.constants)
        return found


_SMALL = re.compile(r"(?:leader|isr|replicas?|broker|controller|follower|node|(?:leader|controller|"
                    r"partition|fetched|diverging)_epoch\w*)$")  # fmt: skip


def is_beyond_kafka(found: Found) -> bool:
    """Whether a fact has a number that no broker can have printed."""
    fields, node, _, partition = found
    for name, value in fields.items():
        # This is asked of every fact, and most values are small numbers or text.
        if type(value) is int:
            if not -2 <= value <= wire.MAX_INT32 and _beyond(name, value):
                return True
        elif type(value) is not str and any(_beyond(name, n) for n in _whole_numbers(value)):
            return True
    return any(number is not None and _beyond("node", number) for number in (node, partition))


def _beyond(name: str, number: int) -> bool:
    """Too large, or too far below nothing: -1 and -2 (LeaderDuringDelete) are Kafka's."""
    if -2 <= number <= wire.MAX_INT32:
        return False
    return number < 0 or number > wire.MAX_OFFSET or _SMALL.search(name) is not None


def _whole_numbers(value: Any) -> Iterator[int]:
    """Every whole number in a field."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | tuple | list):
        for inner in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
            yield from _whole_numbers(inner)


def example(message: str, *found: Found, **named: Any) -> Example:
    """An example with one fact from keywords (`node`, `topic`, `partition`, then fields) or several."""
    if found:
        return Example(message, found)
    place = {name: named.pop(name) for name in ("node", "topic", "partition") if name in named}
    return Example(message, (Found(named, **place),))


def ignored(
    why: str,
    loggers: tuple[str, ...],
    words: tuple[str, ...],
    trigger: str,
    pattern: str,
    line: str,
) -> LineFamily:
    """A wording that shares its first words with a family and tells nothing: known, and left out."""
    return LineFamily(
        kind="",
        versions=why,
        loggers=loggers,
        words=words,
        trigger=trigger,
        pattern=pattern,
        convert=_nothing,
        examples=(Example(line, ()),),
    )


# Lines name the same partitions and replicas again and again.
_REMEMBERED = 1 << 14
_TOPIC_PARTITION_IN_BRACKETS = re.compile(r"^\[(.+),(\d+)\]$")


@lru_cache(maxsize=_REMEMBERED)
def topic_partition(text: str) -> tuple[str, int]:
    """`t-0` and `[t,0]` alike; a topic's name may hold dashes, so the last one counts."""
    in_brackets = _TOPIC_PARTITION_IN_BRACKETS.match(text)
    if in_brackets:
        return in_brackets[1], int(in_brackets[2])
    topic, _, partition = text.rpartition("-")
    return topic, int(partition)


_NUMBER = re.compile(r"-?\d+")
_BROKER_STATE = re.compile(r"brokerId=(\d+)")
_REPLICA_OBJECT = re.compile(r"[Rr]eplicaId[:=] ?(\d+)")


def whole_number(text: str) -> int | None:
    """Kafka prints -1 for what does not exist."""
    value = int(text)
    return None if value == -1 else value


@lru_cache(maxsize=_REMEMBERED)
def replica_list(text: str) -> tuple[int, ...]:
    """`1,2`, `[1, 2]`, `BrokerState(brokerId=1, brokerEpoch=7), ..` or `ReplicaId: 1; Topic: ..`."""
    if "brokerId=" in text:
        return tuple(int(number) for number in _BROKER_STATE.findall(text))
    if "eplicaId" in text:
        return tuple(int(number) for number in _REPLICA_OBJECT.findall(text))
    return tuple(int(number) for number in _NUMBER.findall(text))


def topic_id(text: str) -> str | None:
    """`Some(xyz)` and `xyz` alike; `None` is no topic id."""
    bare = text.removeprefix("Some(").removesuffix(")")
    return None if bare in ("None", "") else bare


def yes_or_no(text: str) -> bool:
    return text.lower() == "true"


def optional_leader(text: str) -> int | None:
    bare = text.removeprefix("Some(").removesuffix(")")
    return None if bare in ("None", "-1") else int(bare)


_NUMBERS = (
    "leader_epoch previous_leader_epoch controller_epoch partition_epoch broker_epoch "
    "current_leader_epoch leader_epoch_before leader_epoch_after partition_epoch_before "
    "partition_epoch_after last_fetched_epoch requested_epoch log_start_offset log_end_offset "
    "high_watermark to_offset from_offset end_offset start_offset first_offset fetch_offset "
    "reset_to offset leader_log_end_offset leader_high_watermark from_high_watermark "
    "to_high_watermark candidate_high_watermark replica follower broker bytes segment byte_offset "
    "partitions logs cleanup_records segments required_offset"
)
_READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(REPLICA_LISTS, replica_list),
    **dict.fromkeys(_NUMBERS.split(), whole_number),
    **dict.fromkeys(LEADERS, optional_leader),
    **dict.fromkeys(("is_new", "completed"), yes_or_no),
    "topic_id": topic_id,
    # An empty log's last offset is -1 by arithmetic, not by absence.
    "last_offset": int,
}


def brokers_among(fields: Fields) -> Iterator[int]:
    """All brokers that a line's fields name, but for its writer."""
    for name in NAMES_OF_BROKERS:
        value = fields.get(name)
        if isinstance(value, int):
            yield value
        elif isinstance(value, tuple):
            yield from value


def read_field(name: str, text: str) -> Any:
    """The value of the field of that name, read from Kafka's text; names not listed stay text."""
    reader = _READERS.get(name)
    return text if reader is None else reader(text)


class _Plan(NamedTuple):
    """How a pattern's groups are read, by their numbers: fields, and where and by whom."""

    fields: tuple[tuple[int, str, Callable[[str], Any] | None], ...]
    places: tuple[tuple[int, str], ...]


def _plan(pattern: re.Pattern[str]) -> _Plan:
    groups = [(n - 1, group.partition("__")[0]) for group, n in pattern.groupindex.items()]
    return _Plan(
        tuple((n, name, _READERS.get(name)) for n, name in groups if name not in _PLACES),
        tuple((n, name) for n, name in groups if name in _PLACES),
    )


_PLANS: dict[int, _Plan] = {}


def found_by_groups(match: re.Match[str]) -> Found:
    """Named groups to fields. `tp`, `topic` and `partition` say where, `node` who writes;
    `name__2` is a second place where the pattern may find `name`.
    """
    # Patterns live as long as the tables they are in, so their identity is a key.
    plan = _PLANS.get(id(match.re))
    if plan is None:
        plan = _PLANS[id(match.re)] = _plan(match.re)
    texts = match.groups()
    fields: Fields = {}
    for number, name, reader in plan.fields:
        text = texts[number]
        if text is not None:
            fields[name] = text if reader is None else reader(text)
    node = topic = partition = None
    for number, name in plan.places:
        text = texts[number]
        if text is None:
            continue
        if name == "tp":
            topic, partition = topic_partition(text)
        elif name == "node":
            node = int(text)
        elif name == "topic":
            topic = text
        else:
            partition = int(text)
    return Found(fields, node, topic, partition)


def fetcher(match: re.Match[str]) -> tuple[int | None, int | None]:
    """Follower and leader from FETCHER_PREFIX; up to 0.11 it does not name the follower."""
    leader = match["leader"] or match["leader__2"]
    node = match["node"]
    return None if node is None else int(node), None if leader is None else int(leader)


# The classes that write of one log; MergedLog is the name that Confluent's server gives UnifiedLog.
LOG_CLASSES = ("Log", "UnifiedLog", "MergedLog")

# What writers put in front of their messages. Each carries the group `node`, `tp` or both.
BROKER_PREFIX = r"^(?:\[Broker id=(?P<node>\d+)\] |Broker (?P<node__2>\d+) )"
CONTROLLER_PREFIX = (
    r"^(?:\[Controller id=(?P<node>\d+) epoch=(?P<controller_epoch>\d+)\] "
    r"|Controller (?P<node__2>\d+) epoch (?P<controller_epoch__2>\d+) )"
)
ZK_CONTROLLER_PREFIX = r"^\[Controller (?:id=)?(?P<node>\d+)\]:? "
QUORUM_CONTROLLER_PREFIX = r"^\[(?:QuorumController id=|Controller )(?P<node>\d+)\] "
PARTITION_PREFIX = (
    r"^(?:\[Partition (?P<tp>\S+) broker=(?P<node>\d+)\] "
    r"|Partition (?P<tp__2>\[[^\]]+\]) on broker (?P<node__2>\d+): )"
)
LOG_PREFIX = (
    r"^\[(?:Log|UnifiedLog|LogLoader|LocalLog|MergedLog) partition=(?P<tp>[^,]+), "
    r"dir=(?P<directory>[^\]]*)\] "
)
FETCHER_PREFIX = (
    r"^\[(?:ReplicaFetcher replicaId=(?P<node>\d+), leaderId=(?P<leader>\d+), fetcherId=\d+\] "
    r"|ReplicaFetcherThread-\d+-(?P<leader__2>\d+)\][,:] )"
)
FETCHER_MANAGER_PREFIX = r"^\[ReplicaFetcherManager on broker (?P<node>\d+)\] "

# How people and programs mark that they left out the rest of a line.
SHORTENED = r"(?:\.{2,}|\u2026|\[(?:\.{3}|\u2026)\]|\(truncated\))\s*$"

# Topic partitions: `t-0`, or `[t,0]` up to 0.11.
TP = r"(?P<tp__3>\[[^\],\s]+,\d+\]|[^\s\[\],]+-\d+)"

# Offset metadata: `17 [0 : 1234]` (to 1.1), `(offset=17 segment=[0:1234])`, `(offset=17, segment=..)`.
_OFFSET_METADATA = (
    r"(?:\(offset=(?P<{0}>-?\d+),? segment=\[-?\d+:-?\d+\]\)|(?P<{0}__2>-?\d+) \[-?\d+ : -?\d+\])"
)


def offset_metadata(name: str) -> str:
    """A pattern for a printed LogOffsetMetadata whose offset fills the field `name`."""
    return _OFFSET_METADATA.format(name)
