"""Puts the events of one topic partition into the order of their trace, however they arrive.

`sequence` is gap-free from 0 per (trace, topic partition). The same slot with the same event_id is
a duplicate; a slot with two contents counts for nothing and is a gap; what lies behind a gap is
held. The trace with the highest generation wins (then the highest trace_id, so that the answer
does not depend on arrival). Each event that arrived is counted once: applied, duplicate,
quarantined, held or superseded.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.protocol.ground.topic_partition import State

HELD_LIMIT = 10_000
# How many missing ranges a stalled partition keeps; the others are found when it is folded again.
TRACKED_RANGES = 1_000
# What wire.content_id gives, and perhaps the id of another writer.
DERIVED_ID = re.compile("[0-9a-f]{32}")
# So much of a trace's id is printed.
_LONGEST_ID = 80

Trace = tuple[int, str]


@dataclass(slots=True)
class Sequencer:
    """How far the trace of one topic partition has been read.

    Shapes: sequence -> event for held, sequence -> event_ids for conflicts, [first, end) ranges of
    sequences for missing.

    stalled: more events than the limit lie behind a gap, so they were let go; the partition has to
    be folded again from the stored events once the gap closes. dropped counts those let go.
    other_import: another trace has the same generation, and nothing tells which of them has more.
    """

    trace: Trace | None = None
    next_sequence: int = 0
    end_sequence: int = 0
    applied: int = 0
    duplicates: int = 0
    quarantined: int = 0
    superseded: int = 0
    dropped: int = 0
    stalled: bool = False
    ended: bool = False
    held: dict[int, Event] = field(default_factory=dict)
    conflicts: dict[int, list[str]] = field(default_factory=dict)
    missing: list[list[int]] = field(default_factory=list)
    other_import: bool = False

    @property
    def held_count(self) -> int:
        """Events that wait behind a gap, those let go while stalled included."""
        return len(self.held) + self.dropped

    def counts(self) -> dict[str, int]:
        """How many of the events that arrived are in each class; the classes add up to all."""
        return {
            "applied": self.applied,
            "duplicates": self.duplicates,
            "quarantined": self.quarantined,
            "held": self.held_count,
            "superseded": self.superseded,
        }

    def start_trace(self, trace: Trace) -> bool:
        """Whether events of trace count now. A higher trace than the present one starts afresh.

        True: trace is the present one, or has become it; then everything of the former trace is
        superseded, and the caller drops the state that was folded from it when `applied` is 0.
        False: the present trace wins.
        """
        if self.trace is not None and trace != self.trace and trace[0] >= self.trace[0]:
            self.other_import = trace[0] == self.trace[0]
        if self.trace is None or trace > self.trace:
            counts = self.counts()
            self.superseded = sum(counts.values())
            self.trace = trace
            self.next_sequence = self.end_sequence = 0
            self.applied = self.duplicates = self.quarantined = self.dropped = 0
            self.stalled = self.ended = False
            self.held, self.conflicts, self.missing = {}, {}, []
            return True
        return trace == self.trace

    def is_next(self, first: int) -> bool:
        """Whether slot first is the next one, with nothing in the way of it and its followers."""
        return (
            first == self.next_sequence
            and not self.held
            and not self.conflicts
            and not self.stalled
            and not self.missing
        )

    def advance(self, count: int) -> None:
        """Counts the next slots as applied, after is_next() said that they are."""
        self.next_sequence += count
        self.end_sequence = max(self.end_sequence, self.next_sequence)
        self.applied += count

    def offer(self, event: Event, limit: int = HELD_LIMIT) -> "Arrival":
        """Takes one event of the present trace; ready() then gives what has become applicable."""
        sequence = event.sequence
        known = self.conflicts.get(sequence)
        if known is not None:
            if event.event_id in known:
                self.duplicates += 1
                return DUPLICATE
            known.append(event.event_id)
            self.quarantined += 1
            return Arrival("conflict", (event.event_id,))
        if sequence < self.next_sequence:
            # Which content was applied there is not kept: the stored events tell.
            self.duplicates += 1
            return LATE
        other = self.held.get(sequence)
        if other is not None:
            if other.event_id == event.event_id:
                self.duplicates += 1
                return DUPLICATE
            del self.held[sequence]
            if _ends_input(other):
                self.ended = any(map(_ends_input, self.held.values()))
            self.conflicts[sequence] = [other.event_id, event.event_id]
            self.quarantined += 2
            self._open(sequence)
            return Arrival("conflict", (other.event_id, event.event_id))
        self._close(sequence)
        self.ended = self.ended or _ends_input(event)
        if self.stalled:
            self.dropped += 1
            return HELD
        self.held[sequence] = event
        self._stall_beyond(limit)
        return HELD

    def ready(self, limit: int = HELD_LIMIT) -> Iterator[Event]:
        """The held events that are next in the trace, in order; each is counted as applied."""
        held = self.held
        while self.next_sequence in held:
            event = held.pop(self.next_sequence)
            self.next_sequence += 1
            self.applied += 1
            yield event
        self._stall_beyond(limit)

    def _stall_beyond(self, limit: int) -> None:
        """Lets go of what is held when it is more than limit and waits for a missing event."""
        blocked = bool(self.missing) and self.missing[0][0] == self.next_sequence
        if len(self.held) > limit and blocked:
            self.stalled = True
            self.dropped += len(self.held)
            self.held = {}

    def reject(self) -> None:
        """The event that ready() gave last was refused by the fold: quarantined, not applied."""
        self.applied -= 1
        self.quarantined += 1

    @property
    def wants_refold(self) -> bool:
        """Whether the gap in front of a stalled partition has closed."""
        return self.stalled and not (self.missing and self.missing[0][0] == self.next_sequence)

    def gaps(self) -> list[tuple[int, int]]:
        """The missing slots as [first, end) ranges, conflicting slots included, in order."""
        return [(first, end) for first, end in self.missing]

    def _close(self, sequence: int) -> None:
        """Sequence has arrived: opens the gap up to it, or takes it out of a gap."""
        if sequence >= self.end_sequence:
            # While stalled only the first gap has to be exact: when it closes, all is folded again.
            full = self.stalled and len(self.missing) >= TRACKED_RANGES
            if sequence > self.end_sequence and not full:
                if self.missing and self.missing[-1][1] == self.end_sequence:
                    self.missing[-1][1] = sequence
                else:
                    self.missing.append([self.end_sequence, sequence])
            self.end_sequence = sequence + 1
            return
        for index, (first, end) in enumerate(self.missing):
            if first <= sequence < end:
                rest = [[first, sequence], [sequence + 1, end]]
                self.missing[index : index + 1] = [r for r in rest if r[0] < r[1]]
                return

    def _open(self, sequence: int) -> None:
        """Sequence counts for nothing after all: it is missing again."""
        spot = [sequence, sequence + 1]
        merged: list[list[int]] = []
        for part in sorted([*self.missing, spot]):
            if merged and merged[-1][1] >= part[0]:
                merged[-1][1] = max(merged[-1][1], part[1])
            else:
                merged.append(part)
        self.missing = merged


def _ends_input(event: Event) -> bool:
    return event.fact.kind == "input_ended"


@dataclass(frozen=True, slots=True)
class Arrival:
    """What an offered event turned out to be: held, duplicate, late or conflict.

    event_ids: those that a conflict has newly put into quarantine. late: the slot was applied
    before; whether with the same content is for the holder of the stored events to say.
    """

    what: str
    event_ids: tuple[str, ...] = ()


DUPLICATE = Arrival("duplicate")
LATE = Arrival("late")
HELD = Arrival("held")


@dataclass(slots=True)
class Ordered:
    """What all events of one topic partition come to: ready ones in order, and the rest by name.

    conflicts: events of slots with two contents. sequencer: counts and gaps.
    """

    ready: list[Event]
    conflicts: list[Event]
    sequencer: Sequencer


def in_order(events: Iterable[Event]) -> Ordered:
    """Orders all events of one topic partition at once: the bounded form of Sequencer.

    The result does not depend on the order of events.
    """
    rows = list(events)
    sequencer = Sequencer()
    if not rows:
        return Ordered([], [], sequencer)
    winner = max((e.trace_generation, e.trace_id) for e in rows)
    sequencer.start_trace(winner)
    slots: dict[int, dict[str, Event]] = {}
    for event in rows:
        if not sequencer.start_trace((event.trace_generation, event.trace_id)):
            sequencer.superseded += 1
            continue
        slot = slots.setdefault(event.sequence, {})
        if event.event_id in slot:
            sequencer.duplicates += 1
        slot.setdefault(event.event_id, event)
    ready: list[Event] = []
    conflicts: list[Event] = []
    for sequence in sorted(slots):
        arrivals = [slots[sequence][event_id] for event_id in sorted(slots[sequence])]
        for event in arrivals:
            sequencer.offer(event, limit=len(rows))
        if len(arrivals) > 1:
            conflicts.extend(arrivals)
        ready.extend(sequencer.ready())
    return Ordered(ready, conflicts, sequencer)


def several_imports(sequencer: Sequencer) -> str | None:
    """Words for that another import of the partition has the generation of the one that counts,
    None where none has. They are the same in whatever order the events came."""
    if sequencer.trace is None or not sequencer.other_import:
        return None
    generation, trace = sequencer.trace
    return (
        f"there are several imports of it with trace_generation {generation}. The answer is of "
        f"{trace[:_LONGEST_ID]} alone, though another may have more: import all the evidence in "
        f"one call, or import what counts again with --generation {generation + 1}"
    )


# What only who has read all of a partition's evidence declares; such a trace ends with input_ended.
_OF_THE_WHOLE = ("broker_log", "log_directory")


class Gap(NamedTuple):
    """What of a trace is missing: in words (trace_gap: ..), and what would settle it."""

    reason: str
    settled_by: str


def gap_of(sequencer: Sequencer, state: State) -> Gap | None:
    """None when nothing is missing. state: what the events that are here were folded into."""
    gaps = sequencer.gaps()
    trace = sequencer.trace[1] if sequencer.trace else ""
    if not gaps:
        return None if state.ended else _cut_off(sequencer, state)
    fate = "the input ended without them" if sequencer.ended else "they have not arrived"
    conflicts = sequencer.conflicts
    apart = _named([(n, n + 1) for n in sorted(conflicts)])
    absent = _named([part for gap in gaps for part in _without(gap, conflicts)])
    told = [f"events {absent} of trace {trace} are missing: {fate}"] if absent else []
    if apart:
        two = max(map(len, conflicts.values())) == 2
        contents = "two contents, so neither counts" if two else "several contents, so none counts"
        event, were = ("events", "were each") if len(conflicts) > 1 else ("event", "was")
        told.append(f"{event} {apart} of trace {trace} {were} delivered with {contents}")
    told[-1] += _changed(sequencer)
    return Gap(f"trace_gap: {'; '.join(told)}", _settled_by(trace, absent, apart))


def _settled_by(trace: str, absent: str, apart: str) -> str:
    """What fills gaps. absent, apart: sequence numbers that are missing, and of two contents."""
    anew = "under a higher trace_generation (`import --generation N`), which replaces it"
    if not apart:
        return f"the missing events ({absent} of trace {trace}), or all of the trace again {anew}"
    missing = f"with the missing events ({absent}) and " if absent else ""
    return f"all of trace {trace} again, {missing}with one content of each event ({apart}), {anew}"


def _without(gap: tuple[int, int], conflicts: Iterable[int]) -> Iterator[tuple[int, int]]:
    """What of a gap has not arrived at all."""
    first, end = gap
    for conflict in sorted(n for n in conflicts if first <= n < end):
        if first < conflict:
            yield first, conflict
        first = conflict + 1
    if first < end:
        yield first, end


def _named(ranges: list[tuple[int, int]]) -> str:
    """The first ranges, and how many more there are."""
    named = ", ".join(str(a) if b == a + 1 else f"{a}..{b - 1}" for a, b in ranges[:5])
    return named + (f" and {len(ranges) - 5} more ranges" if len(ranges) > 5 else "")


def _cut_off(sequencer: Sequencer, state: State) -> Gap | None:
    """That a trace which declares at its head that some evidence is complete has not ended."""
    whole = any(done and what in _OF_THE_WHOLE for (what, _), (done, _) in state.coverage.items())
    if not whole or sequencer.trace is None:
        return None
    absent, trace = f"{sequencer.next_sequence} and later", sequencer.trace[1]
    return Gap(
        f"trace_gap: events {absent} of trace {trace} are missing: it does not come to its end "
        "(input_ended); its file was cut off, or the rest has not arrived yet",
        _settled_by(trace, absent, ""),
    )


def _changed(sequencer: Sequencer) -> str:
    """Which of the events right behind gaps are not what their event_id says, in words: such a one
    may itself have made the gap. Ids that have not the derived form say nothing; nor do any where
    not even the last event, which `import` writes at the end of all, has the id of its content:
    somebody else gave them."""
    held = sequencer.held
    behind = [held[end] for _, end in sequencer.gaps()[:5] if end in held]
    found = [
        str(event.sequence)
        for event in behind
        if DERIVED_ID.fullmatch(event.event_id) and not _is_derived(event)
    ]
    last = max(held, default=None)
    if not found or last is None or not _is_derived(held[last]):
        return ""
    return (
        f"; event {', '.join(found)} behind them has not the event_id that its content gives: if "
        "`import` wrote it, it was changed since"
    )


def _is_derived(event: Event) -> bool:
    return event.event_id == wire.content_id(wire.to_row(event))


def with_gap(verdicts: Iterable[dict[str, Any]], gap: Gap | None) -> list[dict[str, Any]]:
    """Verdicts behind a gap: a violation stays proven, all else is UNKNOWN."""
    if gap is None:
        return list(verdicts)
    (reason, settled), result = gap, []
    for verdict in verdicts:
        if verdict["verdict"] == "HOLDS":
            verdict = {
                **verdict, "verdict": "UNKNOWN", "reason": reason, "settled_by": [settled],
                "assuming": [],
            }  # fmt: skip
        elif verdict["verdict"] == "UNKNOWN":
            verdict = {
                **verdict,
                "reason": f"{reason}; besides: {verdict['reason']}",
                "settled_by": [settled, *verdict["settled_by"]],
            }
        result.append(verdict)
    return result
