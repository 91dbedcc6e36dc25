"""Where a broker's clock was set back while it wrote its logs, told by the order of its lines.

A file's lines are in the order in which they were written, and so are the pieces of a rotated log;
their stamps fall where the clock was set back, as summer time ended or a machine was started anew.
They fall, too, where somebody put several logs into one file: the same one twice, pieces in another
order, logs of other loggers. What only counts up in the life of a cluster tells which it is, else
another file of the broker, else what the two stretches have in common.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.collecting.broker_text_log import BrokerLog, ClockRun
from replication.evidence.collecting.installations import age_of_piece, unrotated

# Clocks that are stepped by less keep their order by themselves, ms.
_STEPPED = 1_000
# A piece that was written before another one ends so soon before that begins.
_FOLLOWS = 2 * 60_000
# Other files of a broker go on for so long before and behind the lines of the one that tells.
_AROUND = 60_000
# What counts up in a cluster's life, by the fields that name it; of partitions in these lines.
_OF_CLUSTER = ("controller_epoch", "broker_epoch")
_OF_PARTITION = ("leader_epoch", "partition_epoch")
_ROLES = frozenset(
    ("became_leader", "became_follower", "leader_and_isr_received", "leadership_cached",
     "partition_state_changed", "isr_updated")
)  # fmt: skip
_Count = tuple[str, str | None, int | None]


@dataclass(slots=True)
class _Stretch:
    """A stretch of a rotated log: lines by one clock. tells: whether any is about a partition.

    kinds: of its lines; counts: the lowest and the highest number of each count."""

    log: BrokerLog
    run: ClockRun
    tells: bool = False
    kinds: set[str] = field(default_factory=set)
    counts: dict[_Count, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetBack:
    """A moment at which a broker's clock was set back: the line behind it, and both stamps."""

    path: str
    line: int
    before: int
    after: int


@dataclass(slots=True)
class ClockRuns:
    """The clocks by which one broker wrote its logs, in turn: each from one setting to the next.

    ends: the last stamp of each. by_file: of each file from which line on which clock, if the stamp
    is not after that clock's end. set_back: where, for all but the first.
    """

    ends: list[int]
    by_file: dict[str, list[tuple[int, int]]]
    set_back: list[SetBack]

    def of(self, fact: LogLineFact) -> int:
        """By which of the clocks a line was written."""
        which = 0
        for line, clock in self.by_file.get(fact.path, ()):
            if fact.line >= line:
                which = clock
        while which + 1 < len(self.ends) and (fact.at or 0) > self.ends[which] + _AROUND:
            which += 1
        return which


def clock_runs(logs: Iterable[BrokerLog]) -> ClockRuns | None:
    """The clocks of one broker's logs; None where its clock was never set back."""
    logs = list(logs)
    begins = frozenset(log.runs[0].first for log in logs if log.runs)
    every = [_stretches(pieces) for pieces in _rotated(logs)]
    first = [_apart(stretches, begins, []) for stretches in every]
    known = [step for parts in first for step in _steps(parts)]
    if not known:
        return None
    rotated = [_apart(stretches, begins, known) for stretches in every]
    most = max(rotated, key=lambda found: (len(found), sum(len(part) for part in found)))
    ends = [max(s.run.last for s in part) for part in most]
    firsts = [min(s.run.first for s in part) for part in most]
    by_file: dict[str, list[tuple[int, int]]] = {}
    for found in rotated:
        which = -1
        for part in (part for part in found if part):
            which = _next_clock(part, which + 1, firsts, ends)
            for stretch in part:
                by_file.setdefault(stretch.log.path, []).append((stretch.run.line, which))
    return ClockRuns(ends, by_file, _steps(most))


def _steps(parts: list[list[_Stretch]]) -> list[SetBack]:
    """Where the clock was set back by which a rotated log was cut."""
    return [
        SetBack(later[0].log.path, later[0].run.line, earlier[-1].run.last, later[0].run.first)
        for earlier, later in pairwise(parts)
    ]


def _next_clock(part: list[_Stretch], lowest: int, begins: list[int], ends: list[int]) -> int:
    """The first clock from the lowest on by which a part of another file can begin. It may begin
    before all that tells of a clock."""
    first = part[0].run.first
    possible = range(min(lowest, len(ends) - 1), len(ends))
    within = (n for n in possible if begins[n] - _AROUND <= first <= ends[n] + _AROUND)
    before = (n for n in possible if first <= ends[n] + _AROUND)
    return next(within, next(before, possible[-1]))


def _rotated(logs: Iterable[BrokerLog]) -> Iterator[list[BrokerLog]]:
    """The pieces of each rotated log in the order in which they were written."""
    found: dict[tuple[Path, str], list[BrokerLog]] = {}
    for log in logs:
        path = Path(log.path)
        found.setdefault((path.parent, unrotated(path.name)), []).append(log)
    for pieces in found.values():
        orders = [
            sorted(pieces, key=lambda log: age_of_piece(Path(log.path).name, newest_first=newest))
            for newest in (True, False)
        ]
        yield min(orders, key=_falls)


def _falls(pieces: list[BrokerLog]) -> int:
    """How often the stamps fall from one piece to the next."""
    runs = [log.runs for log in pieces if log.runs]
    return sum(_is_fall(a[-1], b[0]) for a, b in pairwise(runs))


def _is_fall(earlier: ClockRun, later: ClockRun) -> bool:
    return later.first + _STEPPED < earlier.last


def _stretches(pieces: list[BrokerLog]) -> list[_Stretch]:
    """Those of a rotated log; where stamps fall, with what they hold."""
    stretches = [_Stretch(log, run) for log in pieces for run in log.runs]
    if any(_is_fall(a.run, b.run) for a, b in pairwise(stretches)):
        for log in pieces:
            _look_into(log, [s for s in stretches if s.log is log])
    return stretches


def _apart(
    stretches: list[_Stretch], begins: frozenset[int], known: list[SetBack]
) -> list[list[_Stretch]]:
    """The stretches of a rotated log, cut where its clock was set back; uncut where somebody put
    its files together otherwise. begins: the first stamps of the broker's files; known: what these
    tell by themselves."""
    parts: list[list[_Stretch]] = [stretches[:1]]
    for before, after in pairwise(stretches):
        if not _is_fall(before.run, after.run):
            parts[-1].append(after)
        elif _is_copied(after, begins):
            return [stretches]
        elif _is_set_back(before, after, stretches, known):
            parts.append([after])
        else:
            return [stretches]
    return parts


def _look_into(log: BrokerLog, stretches: list[_Stretch]) -> None:
    """Learns what kinds of lines a file's stretches hold, and how far they count."""
    for fact in chain(log.processes, *log.lines):
        stretch = next((s for s in reversed(stretches) if s.run.line <= fact.line), None)
        if stretch is None:
            continue
        stretch.kinds.add(fact.kind)
        stretch.tells = stretch.tells or fact.topic not in (None, "__cluster_metadata")
        for name in _OF_CLUSTER:
            _count(stretch, (name, None, None), fact)
        for name in _OF_PARTITION if fact.kind in _ROLES else ():
            _count(stretch, (name, fact.topic, fact.partition), fact)


def _count(stretch: _Stretch, what: _Count, fact: LogLineFact) -> None:
    number = fact.fields.get(what[0])
    if isinstance(number, int):
        low, high = stretch.counts.get(what, (number, number))
        stretch.counts[what] = (min(low, number), max(high, number))


def _is_copied(stretch: _Stretch, begins: frozenset[int]) -> bool:
    """Whether others are before it in its file and it begins as a file of the broker does."""
    return stretch.run is not stretch.log.runs[0] and stretch.run.first in begins


def _is_set_back(
    before: _Stretch, after: _Stretch, every: list[_Stretch], known: list[SetBack]
) -> bool:
    """Whether stamps fall since the clock was set back, not since files were put together."""
    earlier = every[: every.index(after)]
    if any(after.run.first == other.run.first for other in earlier):
        return False  # The same log once more.
    shared = before.counts.keys() & after.counts.keys()
    rise = any(_goes_on(before.counts[c], after.counts[c]) for c in shared)
    fall = any(_goes_on(after.counts[c], before.counts[c]) for c in shared)
    if rise != fall:
        return rise
    if any(
        before.run.last <= step.before + _AROUND and step.after <= after.run.first + _AROUND
        for step in known
    ):
        return True
    if not before.tells:
        return True  # A broker that starts: no file of its own holds so little.
    apart = before.run.first - after.run.last
    if apart <= 0:
        # Each logger has files of its own, and these are of one time.
        return bool(before.kinds & after.kinds)
    # An older piece may have been put behind the newer one.
    return apart > _FOLLOWS


def _goes_on(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether a count goes on from where it ended."""
    return one[1] <= other[0] and one != other
