"""Reads one text log of a broker, or of several that wrote into one file."""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from replication.evidence.broker_logs.births import Births
from replication.evidence.broker_logs.broker_log import LogLineFact, read_broker_log
from replication.evidence.broker_logs.excerpts import is_kafkas, read_excerpt
from replication.evidence.broker_logs.line_families.kinds import FATAL_KINDS
from replication.evidence.broker_logs.log_layouts import looks_like_broker_log
from replication.evidence.broker_logs.log_places import log_directory
from replication.evidence.broker_logs.packed_facts import PackedLines, Packer
from replication.evidence.broker_logs.starts import Mark, Starts, mark
from replication.evidence.broker_logs.telling_lines import Telling
from replication.evidence.broker_logs.untold_starts import UntoldStarts
from replication.evidence.broker_logs.writer_handles import Places
from replication.evidence.broker_logs.writers import Writers
from replication.evidence.collecting.several_outputs import LOGS, outputs_of
from replication.evidence.opening import Part
from replication.evidence.unreadable import Unreadable

# What tells of a broker's process that it started or stopped.
LIFE_KINDS = frozenset(
    ("process_started", "process_signalled", "stopping", "stopped_cleanly", "clean_shutdown_found",
     "unclean_recovery")
)  # fmt: skip
# Facts about no topic partition that joining looks at.
PROCESS_KINDS = frozenset(
    ("process_started", "process_signalled", "stopping", "stopped_cleanly", "clean_shutdown_found",
     "unclean_recovery", "broker_epoch_granted", "broker_shutdown_granted", "kafka_version",
     "settings", "cluster_settings_changed", "topic_settings_changed", "topic_created",
     "topic_removed", *FATAL_KINDS)
)  # fmt: skip
# So long a start waits for ZooKeeper, at most, before it names its cluster.
_NAMED_WITHIN = 120_000
_CONFIGURED_WITHIN = 1_000
# Threads write their lines in another order than their stamps, by less than this, ms.
_OUT_OF_ORDER = 1_000
# What files beside one tell of its writers: their ids, the log directories of some, their starts
# in all pieces of a rotated log, and which piece it is.
Beside = tuple[frozenset[int], dict[int, set[str]], Starts, int]


class ClockRun(NamedTuple):
    """Lines of a file whose stamps do not fall: its first line, the first and the last stamp."""

    line: int
    first: int
    last: int


@dataclass(slots=True)
class BrokerLog:
    """A broker's text log: whose it is, and which facts it holds.

    cluster_ids: all that its lines name; starts: of each start that names one: since when, the
    cluster, which broker. controllers: (since when, broker, controller epoch) each time that
    another one decides (ZooKeeper). processes: facts about the process itself or a whole topic, as
    far as joining needs them. lines: those about topic partitions, packed. writers: the
    brokers that lines name, None for lines that name none, by their first line. topic_ids: (writer,
    topic, topic id) -> when it was first printed; in_lines those of them that are in lines about
    partitions. homes: (writer, log directory on its machine) where it created logs. first_at,
    last_at: ms since 1970, as lines print them.
    telling: lines that say something of losses by themselves. ahead: milliseconds by which its
    clock is ahead of UTC, None where that was not found. names_zone: its stamps say their zone.
    several: several brokers wrote it; shared: directories show that others than it names wrote it,
    too; nobodys: how many of its lines may be of more than one, and
    unsure: of which, by the partition that they are about, None for those about the process.
    births: signs of topics that were created anew. runs: the stretches in which its stamps do not
    fall, one where they never do. marks: where brokers start and stop. untold: starts of which the
    first line is not there. damaged: some lines of it could not be read. cluster_unknown: of which
    of several clusters it is cannot be told.
    """

    path: str
    broker: int | None = None
    cluster_id: str = ""
    cluster_ids: list[str] = field(default_factory=list)
    starts: list[tuple[int, str, int | None]] = field(default_factory=list)
    controllers: list[tuple[int, int, int]] = field(default_factory=list)
    known_by: str = ""
    count: int = 0
    processes: list[LogLineFact] = field(default_factory=list)
    lines: list[PackedLines] = field(default_factory=list)
    writers: list[int | None] = field(default_factory=list)
    topic_ids: dict[tuple[int | None, str, str], int | None] = field(default_factory=dict)
    in_lines: set[tuple[int | None, str, str]] = field(default_factory=set)
    homes: set[tuple[int | None, str]] = field(default_factory=set)
    first_at: int | None = None
    last_at: int | None = None
    telling: list[LogLineFact] = field(default_factory=list)
    births: Births = field(default_factory=Births)
    marks: list[Mark] = field(default_factory=list)
    untold: UntoldStarts = field(default_factory=UntoldStarts)
    ahead: int | None = None
    names_zone: bool = False
    several: bool = False
    shared: bool = False
    nobodys: int = 0
    unsure: dict[tuple[str, int] | None, set[int]] = field(default_factory=dict)
    runs: list[ClockRun] = field(default_factory=list)
    damaged: bool = False
    cluster_unknown: bool = False

    @property
    def speaks_for_one(self) -> bool:
        """Whether a line that names no broker can only be of this log's."""
        named = {w for w in self.writers if w is not None}
        return not (self.several or self.shared) and len(named) < 2


def with_excerpts(path: Path, zone: tzinfo) -> Iterator[LogLineFact | Unreadable]:
    """A broker log's facts, and those of lines without a header in a file that may be pasted."""
    outputs = outputs_of(path)
    if outputs is None:
        yield from _with_excerpts(path, zone, [path])
        return
    parts = [Part.of(path, outputs[kind]) for kind in LOGS if kind in outputs]
    yield from _with_excerpts(_log_part(path), zone, parts)


def _with_excerpts(
    path: Path, zone: tzinfo, parts: Sequence[Path]
) -> Iterator[LogLineFact | Unreadable]:
    """In the order of the lines: what a line tells is read by those before it."""
    read: Iterable[LogLineFact | Unreadable] = chain.from_iterable(
        read_broker_log(part, time_zone=zone)
        for part in parts
        if part is path or looks_like_broker_log(part)
    )
    if len(parts) > 1:
        read = sorted(read, key=_line)
    more = deque(sorted(excerpt(path, headed=False), key=_line))
    told: set[int] = set()
    for fact in read:
        line = _line(fact)
        while more and _line(more[0]) < line:
            if _line(more[0]) not in told:
                yield more[0]
            more.popleft()
        if isinstance(fact, LogLineFact) or "is cut short" in fact.reason:
            told.add(line)
        yield fact
    yield from (fact for fact in more if _line(fact) not in told)


_LINE = re.compile(r"line (\d+)")


def _line(fact: LogLineFact | Unreadable) -> int:
    if isinstance(fact, LogLineFact):
        return fact.line
    named = _LINE.fullmatch(fact.where)
    return int(named[1]) if named else 0


def _log_part(path: Path) -> Path:
    """The file, of one of several kinds of output its lines of logs alone."""
    outputs = None if isinstance(path, Part) else outputs_of(path)
    if outputs is None:
        return path
    return Part.of(path, [n for kind in LOGS for n in outputs.get(kind, ())])


def excerpt(path: Path, *, headed: bool) -> list[LogLineFact | Unreadable]:
    """What lines say that a reader of whole logs leaves out; nothing where the file is large."""
    return list(read_excerpt(_log_part(path), headed=headed))


def holds_kafkas_lines(path: Path) -> bool:
    """Whether a small file has a line of a broker, though none that is read."""
    return is_kafkas(path)


def read_log(
    path: Path,
    facts: Iterable[LogLineFact | Unreadable],
    facts_folder: Path | None,
    unreadable: list[Unreadable],
) -> BrokerLog:
    """One broker log, its facts sorted by what joining needs of them."""
    log = BrokerLog(str(path))
    packer = Packer(str(path), facts_folder)
    votes: Counter[int] = Counter()
    writers: dict[int | None, None] = {}
    telling, places, last_line = Telling(), Places(), 0
    for fact in facts:
        if isinstance(fact, Unreadable):
            unreadable.append(fact)
            log.damaged = True
            continue
        log.count += 1
        log.untold.take(fact)
        telling.take(fact)
        places.learn(fact)
        if fact.at is not None:
            log.first_at = fact.at if log.first_at is None else min(log.first_at, fact.at)
            log.last_at = fact.at if log.last_at is None else max(log.last_at, fact.at)
            # What is read as an excerpt comes behind, of lines before.
            last_line = max(last_line, fact.line)
            if fact.line == last_line:
                _take_stamp(log.runs, fact.line, fact.at)
        writers[fact.broker] = None
        log.nobodys += "one_of" in fact.fields
        if fact.broker is not None:
            votes[fact.broker] += 1
        elif "one_of" in fact.fields and (fact.partition is not None or fact.kind in LIFE_KINDS):
            about = None if fact.partition is None else (str(fact.topic), fact.partition)
            log.unsure.setdefault(about, set()).update(fact.fields["one_of"])
        if fact.partition is None or fact.kind in FATAL_KINDS:
            _take_process_fact(log, fact)
            told = mark(fact)
            if told is not None:
                log.marks.append(told)
        if fact.topic is None:
            continue
        printed = fact.fields.get("topic_id")
        if printed:
            key = (fact.broker, fact.topic, str(printed))
            first = log.topic_ids.get(key)
            if key not in log.topic_ids or (
                fact.at is not None and (first is None or fact.at < first)
            ):
                log.topic_ids[key] = fact.at
            if fact.partition is not None:
                log.in_lines.add(key)
        if fact.partition is not None:
            packer.add(fact)
            log.births.take(fact)
            _take_controller(log, fact)
        if fact.kind == "log_created":
            log.homes.add((fact.broker, log_directory(fact) or ""))
    log.lines = packer.done()
    log.telling = telling.lines
    log.writers = list(writers)
    log.broker = votes.most_common(1)[0][0] if votes else None
    log.shared = places.outside or places.at_least > max(1, len(votes))
    return log


def _take_stamp(runs: list[ClockRun], line: int, at: int) -> None:
    """Notes whether stamps fall at a line."""
    if not runs or at + _OUT_OF_ORDER < runs[-1].last:
        runs.append(ClockRun(line, at, at))
    elif at > runs[-1].last:
        runs[-1] = runs[-1]._replace(last=at)


def read_log_of_several(
    path: Path,
    zone: tzinfo,
    facts_folder: Path | None,
    beside: Beside,
) -> BrokerLog:
    """A log that several brokers wrote, once more: each line with its writer, if it is known."""
    writers = Writers()
    for fact in with_excerpts(path, zone):
        if isinstance(fact, LogLineFact):
            writers.learn(fact)
    writers.learn_beside(*beside)
    log = read_log(path, writers.resolved(with_excerpts(path, zone)), facts_folder, [])
    # No line is of a broker because most others are.
    log.broker = None
    log.several = True
    return log


def _take_process_fact(log: BrokerLog, fact: LogLineFact) -> None:
    if fact.kind == "cluster_id":
        named = str(fact.fields["cluster_id"])
        log.cluster_id = log.cluster_id or named
        if named not in log.cluster_ids:
            log.cluster_ids.append(named)
        if log.starts and log.starts[-1][2] is None:
            # It failed before it printed its settings, so it wrote nothing of partitions.
            log.starts.pop()
        broker = fact.broker if fact.broker is not None else _configured(log)
        log.starts.append((_begun(log, fact.at or 0), named, broker))
    elif fact.kind in PROCESS_KINDS:
        log.processes.append(fact)
        if fact.kind == "settings" and log.starts and log.starts[-1][2] is None:
            # A process prints its settings next after its cluster.
            log.starts[-1] = (*log.starts[-1][:2], fact.broker)


def _take_controller(log: BrokerLog, fact: LogLineFact) -> None:
    decides = fact.kind == "partition_state_changed" and fact.at is not None
    controller_epoch = fact.fields.get("controller_epoch")
    if decides and fact.broker is not None and controller_epoch is not None:
        last = log.controllers[-1][1:] if log.controllers else None
        if last != (fact.broker, controller_epoch):
            log.controllers.append((fact.at or 0, fact.broker, controller_epoch))


def _configured(log: BrokerLog) -> int | None:
    """Whose start it is that named no cluster yet: up to 0.11 its settings are before it."""
    before = log.processes[-2:]
    if [f.kind for f in before] != ["settings", "process_started"]:
        return None
    settings, started = (f.at or 0 for f in before)
    return before[0].broker if started - settings <= _CONFIGURED_WITHIN else None


def _begun(log: BrokerLog, named: int) -> int:
    """When the start began that named its cluster then."""
    starts = (f.at for f in reversed(log.processes) if f.kind == "process_started")
    begun = next(starts, None)
    return named if begun is None or not 0 <= named - begun <= _NAMED_WITHIN else begun
