"""When a copy of a log directory was taken: its place among the lives of its broker's process.

A copy carries no time of its own. But a start prints the log end of every partition it loads, and
a clean stop leaves a marker: so a copy fits before a start, after the last stop, or inside a life.
Slots: life k is k + 0.5, the stop before start k is k, the end is the number of lives.
Names of folders are labels and say nothing.
"""

from dataclasses import dataclass, field
from functools import cmp_to_key

from replication.evidence.broker_log import LogLineFact
from replication.evidence.copies import Copy

LOG_ENDS = frozenset(("log_loaded", "became_leader", "became_follower", "truncated"))


@dataclass(slots=True)
class Life:
    """One life of a broker process by its log: log ends seen, and how it began and ended.

    ended_clean: None where the log breaks off while stopping, as KRaft brokers' logs do.
    """

    began_clean: bool | None = None
    ended_clean: bool | None = False
    started_at: int | None = None
    loaded: dict[tuple[str, int], int] = field(default_factory=dict)
    ends: dict[tuple[str, int], list[int]] = field(default_factory=dict)


def lives_of(facts: list[LogLineFact]) -> list[Life]:
    """The lives of one broker's process, from its facts in order."""
    lives: list[Life] = []
    for fact in facts:
        if fact.kind == "process_started" or not lives:
            if fact.kind != "process_started" and fact.kind not in LOG_ENDS:
                continue
            lives.append(Life(started_at=fact.at))
        life = lives[-1]
        if fact.kind in ("clean_shutdown_found", "unclean_recovery"):
            life.began_clean = fact.kind == "clean_shutdown_found"
            if len(lives) > 1:
                lives[-2].ended_clean = life.began_clean
        elif fact.kind == "stopping":
            life.ended_clean = None
        elif fact.kind == "stopped_cleanly":
            life.ended_clean = True
        elif fact.kind in LOG_ENDS and fact.topic is not None and fact.partition is not None:
            key = (fact.topic, fact.partition)
            end = fact.fields.get("log_end_offset")
            if fact.kind == "truncated":
                end = fact.fields.get("to_offset")
            if end is None:
                continue
            if fact.kind == "log_loaded":
                life.loaded.setdefault(key, end)
            life.ends.setdefault(key, []).append(end)
    return lives


def place(copies: list[Copy], lives: list[Life]) -> None:
    """Gives every copy of one broker a slot; copies of one directory get one slot together."""
    by_parent: dict[str, list[Copy]] = {}
    for copy in copies:
        by_parent.setdefault(str(copy.parent.path), []).append(copy)
    groups = sorted(by_parent.values(), key=cmp_to_key(_by_content))
    last = -1.0
    slots = [_possible(group, lives) for group in groups]
    for index, group in enumerate(groups):
        fitting = [s for s in slots[index] if s >= last] or slots[index]
        slot = fitting[-1] if fitting else float(len(lives))
        last = max(last, slot)
        for copy in group:
            copy.slot = slot
    _separate(groups)


def _separate(groups: list[list[Copy]]) -> None:
    """Groups in one slot keep their order by content, in small steps."""
    seen: dict[float, int] = {}
    for group in groups:
        slot = group[0].slot
        step = seen.get(slot, 0)
        seen[slot] = step + 1
        for copy in group:
            copy.slot = slot + step * 1e-6


def _possible(group: list[Copy], lives: list[Life]) -> list[float]:
    """The slots that nothing in the copies contradicts, in time order."""
    count = len(lives)
    if not count:
        return []
    clean = group[0].clean
    result: list[float] = []
    for k, life in enumerate(lives):
        if k > 0 and _fits_start(group, life, clean):
            result.append(float(k))
        if not clean and _fits_life(group, life, last=k == count - 1):
            result.append(k + 0.5)
    if lives[-1].ended_clean in (clean, None) and _fits_end(group, lives[-1]):
        result.append(float(count))
    return result


def _fits_start(group: list[Copy], life: Life, clean: bool) -> bool:
    """Whether the copies are what this life's start loaded: same log ends, same marker."""
    if life.began_clean is not None and life.began_clean != clean:
        return False
    fits = False
    for copy in group:
        loaded = life.loaded.get((copy.directory.topic, copy.directory.partition))
        if loaded is None:
            continue
        if loaded != copy.directory.log_end_offset:
            return False
        fits = True
    return fits


def _fits_life(group: list[Copy], life: Life, last: bool) -> bool:
    """Whether a copy of a running broker can be from this life: its log end was reached in it."""
    for copy in group:
        ends = life.ends.get((copy.directory.topic, copy.directory.partition))
        end = copy.directory.log_end_offset
        if not ends or end is None:
            continue
        if end < min(ends):
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


def _by_content(a: list[Copy], b: list[Copy]) -> int:
    """Which of two copies of a broker's directory is older, by what only grows with time."""
    for x, y in (
        (a[0].metadata_end, b[0].metadata_end),
        (a[0].broker_epoch, b[0].broker_epoch),
        (a[0].latest_epoch, b[0].latest_epoch),
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
