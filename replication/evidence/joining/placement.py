"""When a copy of a log directory was taken: its place among the lives of its broker's process.

A copy carries no time of its own. But a start prints the log end of every partition it loads, and
a clean stop leaves a marker: so a copy fits before a start, after the last stop, or inside a life.
Slots: life k is k + 0.5, the stop before start k is k, the end is the number of lives. Counted are
starts that lines tell of: what a log tells of before its first one is life -1.
Names of folders are labels and say nothing.
"""

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cmp_to_key
from itertools import pairwise

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.topic_lives import GONE
from replication.evidence.log_directories.log_directory import NothingLeft

# No recovery point: none was written yet, or no checkpoints lie beside a copy.
_UNWRITTEN, _UNTOLD = -1, -2
_LOADED = frozenset(("high_watermark_loaded", "replica_loaded"))
LOG_ENDS = frozenset(
    ("log_loaded", "became_leader", "became_follower", "truncated", "truncation_without_effect",
     "log_appended")
)  # fmt: skip


@dataclass(slots=True)
class Life:
    """One life of a broker process by its log: log ends seen, and how it began and ended.

    ended_clean: None where the log breaks off while stopping, as KRaft brokers' logs do. ends: per
    partition the lowest, the highest and the last log end. loaded: what its start loaded, of each
    name: several, where one of a deleted topic lay beside it. recovered: its start looked through
    segments that no clean stop had vouched for. printed: its start is in the log. broker_epoch:
    that it registered with, which a clean stop leaves beside its marker. high_watermarks: of each
    partition the first high watermark above 0 that was loaded. cuts: to where its log was cut; 0
    where it was deleted. led: the leader epochs in which the broker came to lead it, or,
    as -1, did not. began: those in which it led, each with the end of its log as it began to.
    """

    printed: bool = True

    began_clean: bool | None = None
    ended_clean: bool | None = False
    started_at: int | None = None
    loaded: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    ends: dict[tuple[str, int], tuple[int, int, int]] = field(default_factory=dict)
    registered: bool = False
    broker_epoch: int | None = None
    recovered: bool = False
    leader_epochs: set[int] = field(default_factory=set)
    high_watermarks: dict[tuple[str, int], int] = field(default_factory=dict)
    cuts: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    led: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    began: dict[tuple[str, int], list[tuple[int, int]]] = field(default_factory=dict)


# A line's place in all that a broker wrote: clock, kind of file, line, which file.
Order = tuple[int, int, int, int]
Ordered = tuple[Order, LogLineFact]


def lives_of(processes: list[Ordered], partitions: Iterable[Iterable[Ordered]]) -> list[Life]:
    """The lives of one broker's process.

    processes: the lines about the process, in order; partitions: for each topic partition the
    lines about it, in order. A log may begin in the middle of a life: at its first log end.
    """
    starts = [order for order, fact in processes if fact.kind == "process_started"]
    lives = [Life(started_at=f.at) for _, f in processes if f.kind == "process_started"]
    early = Life(printed=False)
    begun: Ordered | None = None
    early_epochs: dict[int, Order] = {}
    for lines in partitions:
        for order, fact in lines:
            which = bisect_right(starts, order) - 1
            life = lives[which] if which >= 0 else early
            leader_epoch = fact.fields.get("leader_epoch")
            if isinstance(leader_epoch, int):
                if which < 0:
                    early_epochs[leader_epoch] = max(order, early_epochs.get(leader_epoch, order))
                else:
                    life.leader_epochs.add(leader_epoch)
            if fact.kind in LOG_ENDS:
                if which < 0 and (begun is None or order < begun[0]):
                    begun = (order, fact)
                _take_log_end(life, fact)
            _take_high_watermark(life, fact)
            if fact.kind == "segment_recovered" and which >= 0:
                # Every log's last segment is recovered where no marker lay, and none where one did.
                life.recovered = True
    if begun is not None:
        early.started_at = begun[1].at
        early.leader_epochs = {e for e, last in early_epochs.items() if last >= begun[0]}
        lives.insert(0, early)
    _take_processes(lives, processes, begun[0] if begun is not None else None)
    for before, life in pairwise(lives):
        if life.began_clean is None and life.recovered:
            # No release before 0.11 says on INFO whether it found the marker.
            life.began_clean = before.ended_clean = False
    return lives


def _take_processes(lives: list[Life], processes: list[Ordered], begun: Order | None) -> None:
    """Says of each life how it began and ended. begun: since when there is one before any start."""
    index = -1 if begun is None else 0
    started = False
    for order, fact in processes:
        if fact.kind == "process_started":
            index += 1
            started = True
            continue
        if index < 0 or (not started and begun is not None and order < begun):
            continue
        life = lives[index]
        if fact.kind == "broker_epoch_granted":
            life.registered = True
            life.broker_epoch = fact.fields.get("broker_epoch")
        elif fact.kind in ("clean_shutdown_found", "unclean_recovery"):
            life.began_clean = fact.kind == "clean_shutdown_found"
            if index > 0:
                # A life that never came so far as to load its logs leaves the marker as it was.
                lives[index - 1].ended_clean = life.began_clean
        elif fact.kind in ("stopping", "process_signalled", "broker_shutdown_granted"):
            life.ended_clean = None
        elif fact.kind == "stopped_cleanly":
            life.ended_clean = True


def _take_log_end(life: Life, fact: LogLineFact) -> None:
    assert fact.topic is not None
    assert fact.partition is not None
    key = (fact.topic, fact.partition)
    name = {"truncated": "to_offset", "log_appended": "end_offset"}.get(fact.kind, "log_end_offset")
    end = fact.fields.get(name)
    if fact.kind == "truncation_without_effect":
        # Up to 0.11 the line before it names an offset that the log did not reach.
        last_offset = fact.fields.get("last_offset")
        end = None if last_offset is None else last_offset + 1
    if end is None:
        return
    loaded = life.loaded.get(key, set())
    if fact.kind == "log_loaded" and loaded >= set(life.ends.get(key, ())):
        life.loaded[key] = {*loaded, end}
    lowest, highest, _ = life.ends.get(key, (end, end, end))
    life.ends[key] = (min(lowest, end), max(highest, end), end)


def _take_high_watermark(life: Life, fact: LogLineFact) -> None:
    """Notes what a line tells of a partition's high watermark, or of why it may fall."""
    if fact.topic is None or fact.partition is None:
        return
    key = (fact.topic, fact.partition)
    if fact.kind in _LOADED and (fact.fields.get("high_watermark") or 0) > 0:
        life.high_watermarks.setdefault(key, fact.fields["high_watermark"])
    elif fact.kind == "truncated" or fact.kind in GONE:
        life.cuts.setdefault(key, set()).add(fact.fields.get("to_offset") or 0)
    elif fact.kind == "became_leader":
        leader_epoch, end = fact.fields.get("leader_epoch", -1), fact.fields.get("log_end_offset")
        life.led.setdefault(key, set()).add(leader_epoch)
        if end is not None:
            life.began.setdefault(key, []).append((leader_epoch, end))
    elif fact.kind == "became_follower":
        life.led.setdefault(key, set()).add(-1)


def place(
    copies: list[Copy],
    lives: list[Life],
    registrations: int | None = None,
    reused: Container[str] = (),
) -> None:
    """Gives every copy of one broker a slot; copies of one directory get one slot together.

    A copy whose log ends are just what a start loaded is from before that start. Any other is from
    the life its newest record's time falls into, the end counting as the last life's. A KRaft copy
    carries the controllers' log: how often the broker had registered by then says in which life it
    was taken. registrations: how often it registered in all. reused: names that several topics
    bore, of which lines may be about another. What was emptied is of after the last life.
    """
    unprinted = sum(1 for life in lives if not life.printed)
    for copy in copies:
        key, flushed = (copy.directory.topic, copy.directory.partition), _recovery_point(copy)
        copy.flush_may_have_fallen = any(
            to <= flushed for life in lives for to in life.cuts.get(key, ())
        )
        if isinstance(copy.directory, NothingLeft):
            copy.slot = float(len(lives) - unprinted)
    copies = [c for c in copies if not isinstance(c.directory, NothingLeft)]
    by_parent: dict[str, list[Copy]] = {}
    for copy in copies:
        by_parent.setdefault(str(copy.parent.path), []).append(copy)
    groups = sorted(by_parent.values(), key=cmp_to_key(_by_content))
    # What lies set aside beside a partition is another log under its name: lines tell of this one.
    present = [[c for c in g if c.directory.kind == "replica"] or g for g in groups]
    for life in lives:
        life.high_watermarks = {
            key: high_watermark
            for key, high_watermark in life.high_watermarks.items()
            if key[0] not in reused
        }
    if not lives and not _is_ordered(groups):
        # The shortest counts as the last: it claims least, and the broker lived on after it.
        groups.sort(key=lambda g: -sum(c.directory.log_end_offset or 0 for c in g))
        for copy in copies:
            copy.order_known = False
    ranges = [_lives_by_registration(group, lives, registrations) for group in groups]
    slots = [
        _slot(told, lives, possible, position == len(groups) - 1)
        for position, (told, possible) in enumerate(zip(present, ranges, strict=True))
    ]
    # A topic that was created anew begins at epoch 0 again.
    _in_known_order([[c for c in g if c.directory.topic not in reused] for g in groups], slots)
    for group, possible, slot in zip(groups, ranges, slots, strict=True):
        for copy in group:
            # A marker that no stop left: it is of a life whose lines are not here.
            if slot is None:
                copy.order_known = False
            copy.slot = float(possible[-1] + 1) if slot is None else slot
            copy.slot -= unprinted
            of_it = copy.directory.topic not in reused
            if slot == len(lives) and of_it and _is_cut(copy, lives):
                copy.unread_from = copy.directory.log_end_offset
    _separate(groups)


def _in_known_order(groups: list[list[Copy]], slots: list[float | None]) -> None:
    """Of two copies that tell which is older, that one is not placed after the other: lines that
    name where a log ended last may be of before it was cut, where those of the cut are missing. Not
    of a clean stop, whose marker tells more than a log whose first segments may be missing."""
    for place in range(len(groups) - 2, -1, -1):
        if any(copy.clean for copy in groups[place]):
            continue
        for later in range(place + 1, len(groups)):
            slot, bound = slots[place], slots[later]
            if slot is None or bound is None or slot <= bound:
                continue
            if groups[place] and groups[later] and _is_older(groups[place], groups[later]):
                slots[place] = bound


def _lives_by_registration(
    group: list[Copy], lives: list[Life], registrations: int | None
) -> range:
    """The lives in or after which a copy can have been taken: all, where nothing tells.

    A process may die before it registers; such a life belongs to the registration before it. Those
    before the first of them, of a copy from before it: lines may begin later.
    """
    seen = group[0].registrations
    registered = [k for k, life in enumerate(lives) if life.registered]
    which = _ended_with(group[0].broker_epoch, [lives[k].broker_epoch for k in registered])
    if which is None and seen is not None and registrations is not None and registered:
        # The controllers' log at hand may end before the broker's does.
        which = len(registered) - 1 - (max(registrations, len(registered)) - seen)
    if which is None or which >= len(registered):
        return range(len(lives))
    if which < 0:
        return range(registered[0])
    end = registered[which + 1] if which + 1 < len(registered) else len(lives)
    return range(registered[which], end)


def _ended_with(broker_epoch: int | None, registered: list[int | None]) -> int | None:
    """Which of the lives that registered with these epochs left a marker that names one; -1 for one
    before them all, None where nothing tells."""
    if broker_epoch is None or not registered or None in registered:
        return None
    if broker_epoch in registered:
        return registered.index(broker_epoch)
    return -1 if broker_epoch < min(e for e in registered if e is not None) else None


def _slot(group: list[Copy], lives: list[Life], possible: range, newest: bool) -> float | None:
    """Where a copy fits; None where nothing tells, or for a clean stop that no line knows."""
    count = len(lives)
    if not count or not possible:
        return 0.0
    clean = group[0].clean
    last = lives[-1]
    # A log that breaks off while stopping may have stopped cleanly or not: the newest copy tells.
    ended = last.ended_clean == clean or (last.ended_clean is None and (clean or newest))
    at_end = ended and _fits_end(group, last) and count - 1 in possible
    exact = [
        k for k in range(1, count) if k - 1 in possible and _fits_start(group, lives, k, clean)
    ]
    # Of a clean stop it is rather from before: of what came then it would prove that it is gone.
    undistinguished = bool(exact) and newest and not clean and _same_as_loaded(group, last)
    told = len(possible) < count
    if at_end and (
        undistinguished or (not exact and (clean or told or _is_of_last_life(group, lives)))
    ):
        return float(count)
    if exact:
        return float(exact[-1])
    if clean:
        return float(possible[-1] + 1) if told or last.ended_clean is not False else None
    cut_off = any(_is_cut_off(copy) for copy in group)
    running = [
        k
        for k in possible
        if (cut_off or _fits_life(group, lives[k])) and not _high_watermarks_fell(group, lives, k)
    ]
    newest_record = group[0].latest_timestamp
    if cut_off and sum((lives[k].started_at or 0) >= (newest_record or 0) for k in running[1:]):
        return None  # What was newest is not here: it is of that time, or of any life since.
    if newest_record is not None and len(running) > 1 and _is_undated(lives):
        return None  # Of which of these lives it is, only a clock could tell.
    if newest_record is not None:
        unseen = _unseen_start(group, lives, possible, running)
        if unseen is not None:
            return float(unseen)
        begun = [k for k in running if (lives[k].started_at or 0) <= newest_record]
        running = begun[-1:] or running[:1]
    if at_end and (not running or running[-1] == count - 1):
        return float(count)
    return running[-1] + 0.5 if running else float(count)


def _unseen_start(
    group: list[Copy], lives: list[Life], possible: range, running: list[int]
) -> int | None:
    """The start before which a copy was taken that fits no life from its newest record's on: the
    next one of which no line tells what it loaded."""
    newest = group[0].latest_timestamp or 0
    since = max((k for k in possible if (lives[k].started_at or 0) <= newest), default=None)
    if since is None or since in running or not any(k < since for k in running):
        return None
    told = {(c.directory.topic, c.directory.partition) for c in group}
    later = (k for k in range(since + 1, len(lives)) if k - 1 in possible)
    return next((k for k in later if not told & lives[k].loaded.keys()), None)


def _is_of_last_life(group: list[Copy], lives: list[Life]) -> bool:
    """Whether an unclean copy that could be from the end is not rather from an earlier life."""
    newest_record = group[0].latest_timestamp
    if newest_record is not None and len(lives) > 1 and _is_undated(lives):
        return False
    return newest_record is None or (lives[-1].started_at or 0) <= newest_record


def _is_undated(lives: list[Life]) -> bool:
    """Whether the lives' beginnings may be held against no other clock."""
    return all(life.started_at is None for life in lives)


def _same_as_loaded(group: list[Copy], life: Life) -> bool:
    """Whether nothing tells a copy from before the life's start from one after its end."""
    for copy in group:
        ends = life.ends.get((copy.directory.topic, copy.directory.partition))
        if ends and set(ends) != {copy.directory.log_end_offset}:
            return False
    return True


def _separate(groups: list[list[Copy]]) -> None:
    """Groups in one slot keep their order by content, in small steps."""
    seen: dict[float, int] = {}
    for group in groups:
        slot = group[0].slot
        step = seen.get(slot, 0)
        seen[slot] = step + 1
        for copy in group:
            copy.slot = slot + step * 1e-6


def _fits_start(group: list[Copy], lives: list[Life], k: int, clean: bool) -> bool:
    """Whether the copies are what start k loaded: same log ends, same marker, no newer epoch."""
    life = lives[k]
    began_clean = life.began_clean if life.began_clean is not None else lives[k - 1].ended_clean
    if began_clean is not None and began_clean != clean:
        return False
    known_epochs = [e for earlier in lives[:k] for e in earlier.leader_epochs]
    newest = max((e for each in lives for e in each.leader_epochs), default=-1)
    if known_epochs and max(known_epochs) < group[0].latest_epoch <= newest:
        return False  # Where no line names so new an epoch, lines of roles are missing.
    fits = False
    for copy in group:
        loaded = life.loaded.get((copy.directory.topic, copy.directory.partition))
        if loaded is None:
            continue
        if copy.directory.log_end_offset not in loaded or not _fits_high_watermark(copy, life):
            return False
        fits = True
    return fits


def _fits_high_watermark(copy: Copy, life: Life) -> bool:
    """Whether a start can have loaded a copy's high watermark, as far as its log reaches."""
    directory = copy.directory
    loaded = life.high_watermarks.get((directory.topic, directory.partition))
    high_watermark, start, end = (
        directory.high_watermark, directory.log_start_offset, directory.log_end_offset,
    )  # fmt: skip
    if loaded is None or high_watermark is None or end is None or high_watermark < (start or 0):
        return True
    return loaded == min(high_watermark, end)


def _high_watermarks_fell(group: list[Copy], lives: list[Life], k: int) -> bool:
    """Whether the next start loaded a high watermark below a copy's, which in this life cannot have
    fallen: its broker led in the only leader epoch that its lines name, and cut nothing below."""
    for copy in group:
        key = (copy.directory.topic, copy.directory.partition)
        high_watermark, later = copy.directory.high_watermark, lives[k + 1 : k + 2]
        loaded = later[0].high_watermarks.get(key) if later else None
        if high_watermark is None or loaded is None or loaded >= high_watermark:
            continue
        # One at the log's end may have been above it, before storage was lost.
        exact = all(loaded < end for end in later[0].loaded.get(key, {loaded}))
        led = lives[k].led.get(key, set())
        if (
            exact
            and -1 not in led
            and len(led) < 2
            and min(lives[k].cuts.get(key, {high_watermark})) >= high_watermark
        ):
            return True
    return False


def _fits_life(group: list[Copy], life: Life) -> bool:
    """Whether a copy of a running broker can be from this life: its log end was reached in it, and
    what it has beyond where its broker began to lead bears that leader epoch."""
    for copy in group:
        key = (copy.directory.topic, copy.directory.partition)
        ends = life.ends.get(key)
        end = copy.directory.log_end_offset
        if not ends or end is None:
            continue
        if end < ends[0]:
            return False
        # A log gets shorter by a cut alone, or deleted and made anew, at 0; up to 0.10 records
        # bear no leader epochs.
        whole = life.printed and min(life.cuts.get(key, {-1})) < ends[0]
        began = life.began.get(key, ()) if whole else ()
        newest = _latest_epoch(copy)
        if any(start < end and -1 < newest < leader_epoch for leader_epoch, start in began):
            return False
    return True


def _fits_end(group: list[Copy], life: Life) -> bool:
    """Whether the copies can be from after the last life: never below its last log end."""
    for copy in group:
        ends = life.ends.get((copy.directory.topic, copy.directory.partition))
        end = copy.directory.log_end_offset
        if ends and end is not None and end < ends[-1]:
            return False
    return True


def _is_cut_off(copy: Copy) -> bool:
    """Whether what lies beside a log names offsets above its end: segments may be missing here."""
    directory = copy.directory
    above = max(directory.high_watermark or 0, directory.last_snapshot_offset or 0)
    return directory.log_end_offset is not None and above > directory.log_end_offset


def _is_cut(copy: Copy, lives: list[Life]) -> bool:
    """Whether a copy from after the last clean stop ends before the log did, by that life's lines:
    segments of it are not here."""
    directory = copy.directory
    ends = lives[-1].ends.get((directory.topic, directory.partition)) if lives else None
    end = directory.log_end_offset
    present = copy.clean and directory.kind == "replica"
    return present and ends is not None and end is not None and end < ends[-1]


def _is_ordered(groups: list[list[Copy]]) -> bool:
    """Whether what only ever grows tells which copy is the last: a log's end also falls."""
    return not groups or all(
        _is_older(group, groups[-1]) or _equal(group, groups[-1]) for group in groups[:-1]
    )


def _rising_together(a: list[Copy], b: list[Copy]) -> list[tuple[int, int]]:
    """What only grows in a topic's life and tells two copies apart, where none contradicts it."""
    pairs = [(x, y) for x, y in _of_one_life(a, b) if x != y]
    return pairs[:1] if len({x < y for x, y in pairs}) == 1 else []


def _is_older(a: list[Copy], b: list[Copy]) -> bool:
    grows = (
        (a[0].metadata_end, b[0].metadata_end),
        (a[0].broker_epoch, b[0].broker_epoch),
        *_rising_together(a, b),
    )
    return any(x is not None and y is not None and x < y for x, y in grows)


def _of_one_life(a: list[Copy], b: list[Copy]) -> Iterator[tuple[int, int]]:
    """What only grows in the life of a topic: leader epochs, log starts and recovery points of its
    partitions that both show. A topic that was created anew begins at 0 again."""
    others = {(c.directory.topic, c.directory.partition): c for c in b}
    for one in a:
        other = others.get((one.directory.topic, one.directory.partition))
        if other is None or not (_is_shown(one) and _is_shown(other)):
            continue
        if _may_be_of_one_life(one, other):
            yield _latest_epoch(one), _latest_epoch(other)
            yield one.directory.log_start_offset or 0, other.directory.log_start_offset or 0
            flushed = _recovery_point(one), _recovery_point(other)
            lower = one if flushed[0] < flushed[1] else other
            # A recovery point falls where the log is cut below it, to the log's end then.
            fell = lower.flush_may_have_fallen or min(flushed) >= (
                lower.directory.log_end_offset or 0
            )
            if _UNTOLD not in flushed and not fell:
                yield flushed


def _recovery_point(copy: Copy) -> int:
    """As far as its checkpoint says that the log was flushed, which names every log from its first
    writing on; _UNTOLD where no checkpoints lie beside the copy."""
    directory = copy.directory
    if directory.recovery_point is not None:
        return directory.recovery_point
    return _UNTOLD if directory.high_watermark is None else _UNWRITTEN


def _is_shown(copy: Copy) -> bool:
    """Whether any of the log was handed over: a folder of which no segment was tells nothing."""
    return copy.directory.log_start_offset is not None or bool(copy.directory.epoch_entries)


def _may_be_of_one_life(one: Copy, other: Copy) -> bool:
    """Whether two copies of a partition do not have two topic ids: of lives without ids their first
    records tell (lives_in_doubt.py)."""
    ids = one.directory.topic_id, other.directory.topic_id
    return None in ids or ids[0] == ids[1]


def _latest_epoch(copy: Copy) -> int:
    named = [e for e, _ in copy.directory.epoch_entries or ()]
    return max((*named, *(s[0] for s in copy.directory.spans if s[0] is not None)), default=-1)


def _equal(a: list[Copy], b: list[Copy]) -> bool:
    """Whether two copies show the same logs, so that their order says nothing."""
    held = [{(c.directory.topic, c.directory.partition): _shape(c) for c in g} for g in (a, b)]
    return held[0] == held[1]


def _shape(copy: Copy) -> tuple[object, ...]:
    d = copy.directory
    return d.log_start_offset, d.log_end_offset, d.spans, d.max_timestamp, copy.clean


def _by_content(a: list[Copy], b: list[Copy]) -> int:
    """Which of two copies of a broker's directory is older, by what only grows with time."""
    for x, y in (
        (a[0].metadata_end, b[0].metadata_end),
        (a[0].broker_epoch, b[0].broker_epoch),
        *_rising_together(a, b),
        (a[0].latest_timestamp, b[0].latest_timestamp),
        (int(a[0].clean), int(b[0].clean)),
    ):
        if x is not None and y is not None and x != y:
            return -1 if x < y else 1
    ends_a = sum(c.directory.log_end_offset or 0 for c in a)
    ends_b = sum(c.directory.log_end_offset or 0 for c in b)
    if ends_a != ends_b:
        return -1 if ends_a < ends_b else 1
    path_a, path_b = str(a[0].parent.path), str(b[0].parent.path)
    return -1 if path_a < path_b else 1
