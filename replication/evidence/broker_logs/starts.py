"""Which broker starts where, in a file that several brokers wrote and in all its rotated pieces.

A starting broker prints what names nobody: its very first line, its version, what it loads. Such a
line is one's where no other broker can be starting there. What went on before the file begins is
not known: nothing is said about a start before a line of the broker shows what state it was in.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from replication.evidence.broker_logs.broker_log import LogLineFact

# Printed by a broker that starts only.
START_KINDS = frozenset(
    ("process_started", "server_starting", "cluster_id", "kafka_version", "unclean_recovery",
     "clean_shutdown_found", "segment_recovered", "corruption_found", "corrupt_segment_deleted",
     "corrupt_index_found")
)  # fmt: skip
_BEGUN, _NAMED, _STARTED, _STOPPED = "begun", "named", "started", "stopped"

# Of a line: its piece of the file, and its place there.
Position = tuple[float, float]
_BEFORE_ALL: Position = (-inf, -inf)
_BEHIND_ALL: Position = (inf, inf)


class Mark(NamedTuple):
    """A line that tells of a start or a stop. broker: None of a process's very first line."""

    line: int
    what: str
    broker: int | None


def mark(fact: LogLineFact) -> Mark | None:
    """What a line tells of a start, if anything."""
    if fact.kind == "process_started":
        return Mark(fact.line, _BEGUN, None)
    if fact.broker is None:
        return None
    if fact.kind == "server_started":
        return Mark(fact.line, _STARTED, fact.broker)
    if fact.kind in ("stopping", "stopped_cleanly"):
        return Mark(fact.line, _STOPPED, fact.broker)
    if fact.kind == "server_state_changed" and fact.fields.get("state") == "STARTING":
        return Mark(fact.line, _NAMED, fact.broker)
    # With KRaft settings are printed at any time, too.
    roles = fact.fields["values"].get("process.roles") if fact.kind == "settings" else None
    if names_who_starts(fact) and roles in (None, "", "[]"):
        return Mark(fact.line, _NAMED, fact.broker)
    return None


def names_who_starts(fact: LogLineFact) -> bool:
    """Whether a broker prints the line once it starts, with its id, before it loads its logs: its
    settings, or with KRaft that it is STARTING (which prints the settings later)."""
    return fact.broker is not None and fact.kind in ("settings", "cluster_id")


@dataclass(slots=True)
class _Start:
    """after: the broker's last line that tells what state it was in before, None where there is
    none. since: the process's first line, or the first that it may be; None: not known."""

    broker: int
    after: Position | None
    named: Position
    end: Position = _BEHIND_ALL
    ended: bool = False
    since: Position | None = None
    settled: bool = False


@dataclass(slots=True)
class Starts:
    """All starts of the brokers that wrote a file. first_lines: whose the first line of a process
    is. stand_ins: where a broker is named whose start overlaps others', so that of its first line
    nobody can say which it is; from there on it has started. accounted: such first lines."""

    first_lines: dict[Position, int] = field(default_factory=dict)
    stand_ins: dict[Position, int] = field(default_factory=dict)
    accounted: set[Position] = field(default_factory=set)
    _marks: dict[int, list[tuple[Position, str]]] = field(default_factory=dict)
    _begun: list[Position] = field(default_factory=list)
    # Those of them of which nothing is known yet.
    _free: list[Position] = field(default_factory=list)
    _starts: list[_Start] = field(default_factory=list)
    _of_broker: dict[int, list[_Start]] = field(default_factory=dict)
    _from_the_beginning: bool = False

    @classmethod
    def of(cls, pieces: Sequence[Sequence[Mark]], writers: Iterable[int]) -> "Starts":
        """pieces: of one file, each following the one before without a gap. writers: all brokers
        that name themselves in them."""
        starts = cls()
        for number, piece in enumerate(pieces):
            for line, what, broker in piece:
                if broker is None:
                    starts._begun.append((number, line))
                else:
                    starts._marks.setdefault(broker, []).append(((number, line), what))
        starts._free = list(starts._begun)
        for broker, marks in starts._marks.items():
            starts._of_broker[broker] = starts._of(broker, marks)
            starts._starts += starts._of_broker[broker]
        starts._starts.sort(key=lambda start: start.named)
        starts._from_the_beginning = starts._is_whole(set(writers))
        while starts._claim() or starts._account():
            pass
        return starts

    def _of(self, broker: int, marks: list[tuple[Position, str]]) -> list[_Start]:
        """The starts of one broker; settings are printed anew while it runs, too."""
        found: list[_Start] = []
        after, last = None, None
        for at, what in marks:
            if what == _NAMED:
                if last is not None and self._begins_between(last.named, at):
                    last.end = at
                    last = None
                if last is None:
                    last = _Start(broker, after, at)
                    found.append(last)
                continue
            if last is None and what == _STARTED:
                found.append(_Start(broker, after, at, at, ended=True))
            elif last is not None:
                last.end, last.ended = at, True
            after, last = at, None
        return [s for s in found if s.after is None or self._begins_between(s.after, s.end)]

    def _begins_between(self, after: Position, before: Position) -> bool:
        return bisect_right(self._begun, after) < bisect_left(self._begun, before)

    def _is_whole(self, writers: set[int]) -> bool:
        """Whether the file begins before all its brokers started: each is seen to start, and there
        are as many first lines."""
        first = {s.broker: s for s in reversed(self._starts) if s.after is None and s.ended}
        if not writers or not writers <= set(first):
            return False
        last = max(s.end for s in first.values())
        begun = sum(at < last for at in self._begun)
        return begun == sum(s.named < last for s in self._starts)

    def _after(self, start: _Start) -> Position | None:
        return _BEFORE_ALL if start.after is None and self._from_the_beginning else start.after

    def _claim(self) -> bool:
        """Gives each first line to the start that can have no other."""
        claimed = False
        for start in self._starts:
            after = self._after(start)
            if start.settled or after is None:
                continue
            low, high = bisect_right(self._free, after), bisect_left(self._free, start.end)
            if high - low == 1:
                start.since, start.settled, claimed = self._free.pop(low), True, True
                self.first_lines[start.since] = start.broker
        return claimed

    def _account(self) -> bool:
        """Takes starts that overlap together, where as many first lines are before them."""
        steps: list[tuple[Position, int, _Start | None]] = [(at, 0, None) for at in self._free]
        for start in self._starts:
            if not start.settled:
                steps += [(start.named, 1, start), (start.end, 2, start)]
        begun: list[Position] = []
        named: list[_Start] = []
        ended, settled = 0, False
        for at, step, start_of in sorted(steps, key=lambda each: each[:2]):
            if start_of is None:
                begun.append(at)
            elif step == 1:
                named.append(start_of)
            else:
                ended += 1
            if named and ended == len(named):
                settled = self._settle(begun, named) or settled
                # Of a start that is not named yet the first line may be any of these.
                begun, named, ended = begun[len(named) :], [], 0
        return settled

    def _settle(self, begun: list[Position], named: list[_Start]) -> bool:
        if len(begun) != len(named) or any(self._after(s) is None for s in named):
            return False
        for start in named:
            start.since, start.settled = min(begun[0], start.named), True
            self.stand_ins[start.named] = start.broker
        self.accounted.update(begun)
        self._free = [at for at in self._free if at not in self.accounted]
        return True

    def may_have_written(
        self, fact: LogLineFact, piece: int, brokers: Iterable[int]
    ) -> set[int] | None:
        """Those who may be starting at a line that only a starting broker prints."""
        loaded = fact.kind == "log_loaded" and fact.fields.get("log_end_offset")
        if not loaded and fact.kind not in START_KINDS:
            return None
        at = (piece, fact.line)
        if at in self.first_lines:
            return {self.first_lines[at]}
        return {broker for broker in brokers if self._may_be_starting(broker, at)}

    def _may_be_starting(self, broker: int, at: Position) -> bool:
        if not self._begun:
            # Of what somebody pasted no process's first line is there: none can be missed.
            return True
        # Of its starts the last that is named before, and the next.
        own = self._of_broker.get(broker, [])
        which = bisect_right(own, at, key=lambda start: start.named)
        if any(self._since(s) <= at <= s.end for s in own[max(0, which - 1) : which + 1]):
            return True
        marks = self._marks.get(broker, [])
        if marks and marks[-1][0] > at:
            return False
        # It may have begun to start, and the file ends before it names itself.
        before = max((place for place, _ in marks), default=None)
        if before is None:
            before = _BEFORE_ALL if self._from_the_beginning else None
        return before is None or bisect_right(self._free, before) < bisect_right(self._free, at)

    def _since(self, start: _Start) -> Position:
        """From where on a broker may be starting."""
        after = self._after(start)
        if start.since is not None:
            return min(start.since, start.named)
        if after is None:
            return _BEFORE_ALL
        first = bisect_right(self._free, after)
        return min([start.named, *self._free[first : first + 1]])
