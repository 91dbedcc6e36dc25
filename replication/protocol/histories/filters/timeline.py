"""From the state of a partition to a timeline: its leaders in order, and which broker's steps are
known."""

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from replication.protocol.folding.story import catch_up
from replication.protocol.ground.model import Span
from replication.protocol.ground.story import WRITES, OwnStep, Recorded
from replication.protocol.ground.topic_partition import Promise, State
from replication.protocol.ground.versions import Behaviour
from replication.protocol.histories.assumptions import (
    CLOCKS_AGREE,
    LINES_ARE_MISSING,
    NOTHING_BEFORE,
    REPLICAS_AS_SEEN,
    TOPIC_CREATED_ONCE,
    Assumed,
)
from replication.protocol.histories.filters.by_offset import (
    Before,
    Spread,
    Steps,
    before_each,
)
from replication.protocol.histories.filters.clients import (
    Begun,
    begun,
    created_by,
    is_of,
    written_by,
)
from replication.protocol.histories.filters.windows import Window, not_heard, windows_of
from replication.protocol.rules.produce_admission import effective_min_insync_replicas

# A replica that nothing names, where nothing names the assignment.
UNSEEN_REPLICA = -1

# Leader epoch and content of a record, as far as they are known.
Label = tuple[int | None, int | None]
# How a client knows of a record, its leader epoch and content, by which broker; and whether it
# was surely a record of this topic, and not of one of the same name that was deleted before; the
# last leader epoch in which it can have been written.
Told = tuple[str, int | None, int | None, int | None, bool, int | None]


@dataclass(slots=True)
class Timeline:
    """One partition's story, ready to be asked offset by offset.

    covered: brokers whose lines are all here; traced: those whose every step is. promises: what
    clients were told. min_insync_replicas: those that may have counted, from the least on.
    every_send_answered: each known send was answered, and all are known.
    final_leader: the leader at the end, None where nothing tells. log_start: what lies below was
    removed lawfully. starts_by: by window, the highest start of a leader epoch up to it.
    ends_early: the controller's history is known to go on after its end here. created_by: by which
    step of the fold the topic is known to be this one; None: by none. begun: when
    leader epochs began, as far as the clocks may be asked. kept_below: by place of a follower and
    of its leader, below which offset it surely keeps its records, and from where on it surely cuts.
    """

    state: State
    replicas: list[int]
    own: dict[int, list[OwnStep]]
    windows: list[Window]
    promises: list[Promise]
    covered: set[int]
    traced: set[int]
    flags: Behaviour | None
    kraft: bool
    acks_covered: bool
    every_send_answered: bool
    compacted: bool
    assigned: tuple[int, ...] | None
    min_insync_replicas: range
    final_leader: int | None = None
    log_start: int = 0
    labels: list[Span] = field(default_factory=list)
    written: list[Span] = field(default_factory=list)
    last_copy: dict[int, int] = field(default_factory=dict)
    not_captured: set[int] = field(default_factory=set)
    recorded: list[Recorded] = field(default_factory=list)
    by_epoch: dict[int, Window] = field(default_factory=dict)
    index: dict[int, Steps] = field(default_factory=dict)
    shown_at: Spread[Label] = field(default_factory=lambda: Spread(()))
    written_at: Spread[Label] = field(default_factory=lambda: Spread(()))
    told_to_clients: Spread[Told] = field(default_factory=lambda: Spread(()))
    last_away: int = -1
    controller_is_known: bool = False
    first_led: dict[int, int] = field(default_factory=dict)
    not_heard: set[int] = field(default_factory=set)
    items_read: int = 0
    starts: list[int] = field(default_factory=list)
    starts_by: list[int] = field(default_factory=list)
    ends_early: bool = False
    created_by: int | None = 0
    begun: Begun = field(default_factory=Begun)
    kept_below: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def start_of(self, leader_epoch: int) -> int | None:
        """The offset at which a leader epoch begins, by any epoch file or log."""
        window = self.by_epoch.get(leader_epoch)
        return None if window is None else window.start

    def starts_up_to(self, offset: int) -> int:
        """How many leader epochs begin at the offset or below."""
        return bisect_right(self.starts, offset)

    def takes_late_answers(self, leader_epoch: int) -> bool:
        """Whether a follower may take an answer that its leader gave in an earlier epoch: until
        KAFKA-18991 it compares the offset alone."""
        window = self.by_epoch.get(leader_epoch)
        if window is None or window.leader is None:
            return False
        dropped = self.flags is not None and self.flags.has("late_fetch_response_dropped")
        return not dropped and self.first_led[window.leader] < leader_epoch

    def led_again(self, leader: int | None, after: int, before: int) -> list[int]:
        """The leader epochs between two that the same broker led."""
        if leader is None:
            return []
        epochs = [w.leader_epoch for w in self.windows if w.leader == leader]
        return [e for e in epochs if after < e < before]

    @property
    def fences_fetches(self) -> bool:
        """Whether fetches are known to carry the leader epoch (KIP-320)."""
        return self.kraft or (self.flags is not None and self.has("fetch_carries_leader_epoch"))

    @property
    def begins_late(self) -> bool:
        """Whether nothing tells of the partition's first leader epoch: others wrote before."""
        return not self.windows or self.windows[0].leader_epoch > 0

    def has(self, flag: str) -> bool:
        """Whether the release has a flag; an unknown release has the later rule."""
        return self.flags is None or self.flags.has(flag)


def timeline_of(state: State, assumed: Assumed) -> Timeline:
    """The timeline of a partition's state."""
    catch_up(state)
    story = state.story
    covered, traced = _brokers_covered(state)
    if LINES_ARE_MISSING in assumed.names:
        covered, traced = set(), set()
    if NOTHING_BEFORE not in assumed.names and not story.ordered:
        covered -= lived_before(state, covered)
        traced &= covered
    recorded = sorted(
        story.recorded, key=lambda r: (r.leader_epoch, r.partition_epoch or 0)
    )  # Stable: what has no epoch of its own keeps the order it was told in.
    acks_covered = state.covered("acknowledgements")
    settings = state.settings
    replicas = _replicas(state, recorded, assumed)
    line = Timeline(
        state,
        replicas,
        {r: story.own.get(r, []) for r in replicas},
        [],
        [*state.history.acknowledgements, *state.history.consumptions],
        covered,
        traced,
        state.behaviour(),
        settings.controller == "kraft",
        acks_covered,
        acks_covered and not state.told_of("sends"),
        "compact" in (settings.cleanup_policy or ""),
        settings.assigned_replicas,
        _min_insync_replicas(state),
        recorded=recorded,
    )
    line.labels, line.written = _labels(state), _written(state)
    if TOPIC_CREATED_ONCE not in assumed.names:
        line.created_by = created_by(state, covered)
    if CLOCKS_AGREE in assumed.names:
        line.begun = begun(state)
    line.ends_early = not state.coverage.get(("controller_history_end", None), (True, None))[0]
    line.controller_is_known = _controller_is_known(state, line, recorded)
    line.windows = windows_of(
        line.own,
        recorded,
        [*line.labels, *line.written],
        known=line.controller_is_known or line.covered.issuperset(replicas),
        promised=bool(line.promises),
    )
    line.by_epoch = {w.leader_epoch: w for w in line.windows}
    line.final_leader = _final_leader(state, line, recorded)
    for r in replicas:
        copies = [i for i, step in enumerate(line.own[r]) if step.kind == "copy"]
        if copies:
            line.last_copy[r] = copies[-1]
        else:
            line.not_captured.add(r)
    line.log_start = _log_start(line)
    _make_index(line)
    return line


def _min_insync_replicas(state: State) -> range:
    """What may have counted as min.insync.replicas, with all replicas that there ever were."""
    told = [*state.story.min_insync_replicas] or [1]
    flags, known = state.behaviour(), [r.assigned_replicas for r in state.story.recorded]
    sizes = [len(a) for a in (state.settings.assigned_replicas, *known) if a]
    if flags is not None:  # Where no assignment is known there may be one replica.
        sizes = sizes or [1, max(told)]
        told = [effective_min_insync_replicas(m, size, flags) for m in told for size in sizes]
    return range(min(told), max(told) + 1)


def _make_index(line: Timeline) -> None:
    """Lets runs of offsets find what concerns them."""
    away = [w.number for w in line.windows if w.leader not in line.covered and w.leader_was_away]
    line.last_away = max(away, default=-1)
    for window in reversed(line.windows):
        if window.leader is not None:
            line.first_led[window.leader] = window.leader_epoch
    line.not_heard = not_heard(line.windows)
    line.starts_by = list(accumulate((w.start or 0 for w in line.windows), max))
    line.starts = sorted(w.start for w in line.windows if w.start is not None)
    line.shown_at = Spread((s[0], s[1], s[2:]) for s in line.labels)
    line.written_at = Spread((s[0], s[1], s[2:]) for s in line.written)
    line.told_to_clients = Spread(
        (p.span[0], p.span[1], (p.how, *p.span[2:], p.replica, *_bounds(line, p)))
        for p in line.promises
    )
    for number, steps in line.own.items():
        covered = number in line.covered
        before = before_each(steps, covered=covered)
        ends = [_end_told(line, *told) for told in zip(steps, before, strict=True)]
        line.index[number] = Steps(steps, before, ends, covered=covered)


def _bounds(line: Timeline, promise: Promise) -> tuple[bool, int | None]:
    """Whether it is surely of this topic, and by which leader epoch its records were written, where
    nothing tells the epoch itself."""
    untold = promise.span.leader_epoch is None
    return is_of(promise, line.created_by), written_by(promise, line.begun) if untold else None


def _end_told(line: Timeline, step: OwnStep, before: Before) -> int | None:
    """Where a step tells that the log ended; with KRaft a leader's epoch begins at its log end."""
    end, anew = step.log_end_offset, before.restarted or before.role != "led"
    if step.kind == "led" and end is None and anew and not line.compacted and line.kraft:
        return line.start_of(before.leader_epoch)
    return end


def lived_before(state: State, covered: set[int]) -> set[int]:
    """Brokers whose lines begin in the midst of the partition's life: their first one that tells
    their log end has records below it."""
    found = set()
    for number in covered:
        told = (s for s in state.story.own.get(number, ()) if s.kind not in ("copy", "checkpoint"))
        first = next((s for s in told if s.log_end_offset is not None), None)
        if first is not None and first.kind not in WRITES and first.log_end_offset:
            found.add(number)
    return found


def _brokers_covered(state: State) -> tuple[set[int], set[int]]:
    """Brokers whose lines are all here, and those whose every step is."""
    covered, traced = set(), set()
    for (subject, broker), (whole, _) in state.coverage.items():
        if broker is not None and whole and subject in ("broker_log", "replica_trace"):
            covered.add(broker)
            if subject == "replica_trace":
                traced.add(broker)
    return covered, traced


def _replicas(state: State, recorded: list[Recorded], assumed: Assumed) -> list[int]:
    story, settings = state.story, state.settings
    ever = set(story.own) | set(settings.assigned_replicas or ())
    for record in recorded:
        ever |= set(record.isr or ()) | set(record.assigned_replicas or ())
        ever |= set() if record.leader is None else {record.leader}
    for steps in story.own.values():
        ever |= {s.leader for s in steps if s.leader is not None}
    ever |= {r for s, r in state.coverage if s == "log_directory" and r is not None}
    unknown = settings.assigned_replicas is None
    if unknown and (REPLICAS_AS_SEEN not in assumed.names or len(ever) < 2):
        ever.add(UNSEEN_REPLICA)
    return sorted(ever)


def _labels(state: State) -> list[Span]:
    """Every record that anything shows: copies, directories set aside, answers to clients."""
    found = list(state.story.set_aside)
    for steps in state.story.own.values():
        for step in steps:
            found += step.spans
    history = state.history
    for promise in (*history.acknowledgements, *history.consumptions):
        if promise.span[2:] != (None, None):
            found.append(promise.span)
    return found


def _written(state: State) -> list[Span]:
    """Every record that a step is said to have written, though no log need show it any more."""
    return [
        Span(step.first_offset or 0, step.log_end_offset or 0, step.leader_epoch, step.content)
        for steps in state.story.own.values()
        for step in steps
        if step.kind in WRITES and (step.leader_epoch, step.content) != (None, None)
    ]


def _controller_is_known(state: State, line: Timeline, recorded: list[Recorded]) -> bool:
    """Whether no leader epoch can be missing from the records of elections."""
    told = state.coverage.get(("controller_history", None))
    if told is not None:
        return told[0]
    return not line.kraft and bool(recorded)


def _final_leader(state: State, line: Timeline, recorded: list[Recorded]) -> int | None:
    last = recorded[-1] if recorded else None
    windows = line.windows
    while windows and windows[-1].unnamed:
        windows = windows[:-1]
    if last is not None and last.leader is not None and windows:
        newest = last.leader_epoch >= windows[-1].leader_epoch
        if newest:
            return last.leader
    if windows and windows[-1].shown:
        return state.settings.leader
    led = [w for w in windows if w.leader is not None]
    return led[-1].leader if led else state.settings.leader


def _log_start(line: Timeline) -> int:
    """From where on records can be lost: what lay below was removed lawfully. Where nobody knows
    which replica leads, what lies below the logs of all that may lead was removed."""
    starts = [0]
    if line.final_leader is None and line.replicas and not line.not_captured:
        last = [line.own[number][line.last_copy[number]] for number in line.replicas]
        if all(step.kind_of_copy != "part" for step in last):
            starts.append(min(step.log_start_offset or 0 for step in last))
    for number, steps in line.own.items():
        leads = number == line.final_leader
        starts += [
            s.log_start_offset or 0
            for s in steps
            if s.kind == "log_start" or (leads and s.kind in ("copy", "started"))
            if s.kind_of_copy != "part"
        ]
    return max(starts)


def borders(line: Timeline) -> list[int]:
    """The offsets at which the story changes: between two of them all offsets share one."""
    cuts = {0, line.log_start}
    for steps in line.own.values():
        for step in steps:
            cuts |= {
                o
                for o in (
                    step.log_end_offset, step.high_watermark, step.first_offset,
                    step.log_start_offset,
                )
                if o is not None
            }  # fmt: skip
            for span in step.spans:
                cuts |= set(span[:2])
            cuts |= {e.start_offset for e in step.epoch_entries}
    for span in (*line.labels, *line.written, *(p.span for p in line.promises)):
        cuts |= set(span[:2])
    return sorted(cuts)
