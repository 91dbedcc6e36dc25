"""Where in a story an offset matters, so that a run of offsets reads only its part of it."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Generic, NamedTuple, TypeVar

from replication.protocol.ground.story import WRITES, OwnStep

NEVER = -1
EVERYWHERE = 1 << 62
Told = TypeVar("Told", bound=Hashable)


class Spread(Generic[Told]):
    """What is known about ranges of offsets, by offset."""

    def __init__(self, stretches: Iterable[tuple[int, int, Told]]) -> None:
        begins: dict[int, list[Told]] = {}
        ends: dict[int, list[Told]] = {}
        for first, end, told in stretches:
            if first < end:
                begins.setdefault(first, []).append(told)
                ends.setdefault(end, []).append(told)
        self._cuts = sorted({*begins, *ends})
        self._told: list[tuple[Told, ...]] = []
        now: Counter[Told] = Counter()
        for cut in self._cuts:
            for told in ends.get(cut, ()):
                now[told] -= 1
                if not now[told]:
                    del now[told]
            now.update(begins.get(cut, ()))
            self._told.append(tuple(now))

    def at(self, offset: int) -> tuple[Told, ...]:
        """All that is known about an offset."""
        number = bisect_right(self._cuts, offset) - 1
        return self._told[number] if number >= 0 else ()


class Before(NamedTuple):
    """What one step of a broker has before it, and (starts_again) whether a start comes after.

    leader_epoch: that the step belongs to. role: what it was told last, restarted: since then it
    has stopped or started; followed: whom it followed last.
    """

    leader_epoch: int
    role: str | None
    restarted: bool
    stopped_clean: bool
    followed: int | None
    starts_again: bool


class Steps:
    """The steps of one broker with an index by offset. copies: the places of copies among them."""

    def __init__(
        self,
        steps: Sequence[OwnStep],
        before: Sequence[Before],
        ends: Sequence[int | None],
        *,
        covered: bool = False,
    ) -> None:
        """before: what each step has before it; ends: the log end that each step tells. covered:
        whether all of the broker's steps are here."""
        self.steps, self.before, self.ends = steps, before, ends
        self.by_epoch: dict[int, list[int]] = {}
        for number, had in enumerate(self.before):
            self.by_epoch.setdefault(had.leader_epoch, []).append(number)
        self.copies = [i for i, step in enumerate(steps) if step.kind == "copy"]
        told = list(zip(steps, ends, strict=True))
        self._highest = list(accumulate((_reach(s, e) for s, e in told), max))
        left = _ends_left(steps, ends) if covered else ends
        self._doubt = lowest_from(_doubted(s, e) for s, e in zip(steps, left, strict=True))
        self._alike = lowest_from(_least(*t) for t in told)
        self._reached = list(accumulate((had.leader_epoch for had in before), max))
        tells = (n if end is not None else len(steps) for n, end in enumerate(ends))
        self._next_telling = lowest_from(tells)
        self._came_back = [(before[n].leader_epoch, a, b) for n, a, b in _came_back(steps, ends)]

    def first_epoch(self, offset: int) -> int:
        """The leader epoch in which a step first tells of something at or above the offset."""
        number = bisect_right(self._highest, offset)
        return self.before[number].leader_epoch if number < len(self.steps) else EVERYWHERE

    def came_back_without(self, offset: int, leader_epoch: int) -> bool:
        """Whether the broker has by then started below the offset, with a log that had reached past
        it and was not cut since."""
        return any(e <= leader_epoch and a <= offset < b for e, a, b in self._came_back)

    def last_doubt(self, offset: int) -> int:
        """The last leader epoch in which a step, no copy, may tell that the record is not there,
        or that another is."""
        return self._epoch_at(bisect_right(self._doubt, offset) - 1)

    def part(self, offset: int) -> tuple[int, int]:
        """The steps, no copies, that tell of the offset something else than that all lies below
        it, or that all lies above it: the first, and the one after the last."""
        return bisect_right(self._highest, offset), bisect_right(self._alike, offset)

    def unlike_until(self, offset: int) -> int:
        """The leader epoch after which every step, no copy, reads at an offset as at all below it:
        by then one that reads so has told that the log ends above."""
        number = bisect_right(self._alike, offset)
        if number < len(self.steps):
            number = self._next_telling[number]
        return self._reached[min(number, len(self.steps) - 1)] if self.steps else NEVER

    def _epoch_at(self, number: int) -> int:
        return self.before[number].leader_epoch if number >= 0 else NEVER


def before_each(steps: Sequence[OwnStep], *, covered: bool) -> list[Before]:
    """What each step has before it. Where lines are missing, a record of a later leader epoch shows
    that the broker had come to it."""
    last_start = max((i for i, step in enumerate(steps) if step.kind == "started"), default=-1)
    found: list[Before] = []
    leader_epoch, role, restarted, clean = NEVER, None, True, False
    followed: int | None = None
    for number, step in enumerate(steps):
        takes_role = step.kind in ("led", "followed")
        if takes_role and step.leader_epoch is not None:
            leader_epoch = step.leader_epoch
        elif step.kind in WRITES and not covered:
            leader_epoch = max(leader_epoch, step.leader_epoch or 0)
        found.append(Before(leader_epoch, role, restarted, clean, followed, number <= last_start))
        if takes_role:
            role, restarted = step.kind, False
            followed = step.leader if step.kind == "followed" else followed
        elif step.kind in ("started", "stopped"):
            restarted, clean = True, step.kind == "stopped" and bool(step.clean)
    return found


def _came_back(
    steps: Sequence[OwnStep], ends: Sequence[int | None]
) -> Iterator[tuple[int, int, int]]:
    """Each start with less than was there: its number, its log end, and the log end before."""
    reached = 0
    for number, (step, end) in enumerate(zip(steps, ends, strict=True)):
        if step.kind == "started" and end is not None and end < reached:
            yield number, end, reached
        lower = step.kind in ("started", "cut") and end is not None
        reached = (end or 0) if lower else max(reached, end or 0)


def _ends_left(steps: Sequence[OwnStep], ends: Sequence[int | None]) -> list[int | None]:
    """The log end that each step tells; of a stop that tells none, what the start after it found:
    between the two nothing but the disk has done anything."""
    found, after = list(ends), None
    for number in range(len(steps) - 1, -1, -1):
        kind = steps[number].kind
        if kind == "stopped" and found[number] is None:
            found[number] = after
        if kind not in ("copy", "checkpoint"):
            after = ends[number] if kind == "started" else None
    return found


def _reach(step: OwnStep, end: int | None) -> int:
    """From where on a step tells nothing but that the log ends below."""
    if step.kind == "cut":
        return max(step.first_offset or 0, step.log_end_offset or 0)
    return max(end or 0, step.high_watermark or 0)


def _doubted(step: OwnStep, end: int | None) -> int:
    """Below which offset a step cannot tell that a record is not there, or that another is."""
    if step.kind in WRITES:
        return step.first_offset or 0
    if step.kind in ("started", "stopped", "cut"):
        return end or 0
    if step.kind in ("led", "followed"):
        return EVERYWHERE if end is None else end
    return EVERYWHERE


def _least(step: OwnStep, end: int | None) -> int:
    """Below which offset a step, no copy, reads the same at all offsets. No offset is below 0."""
    if step.kind == "copy":
        return EVERYWHERE
    told = (end, step.log_end_offset, step.first_offset, step.high_watermark)
    return min((offset for offset in told if offset), default=EVERYWHERE)


def lowest_from(values: Iterable[int]) -> list[int]:
    """For each place the lowest value from there on."""
    return list(accumulate(reversed(list(values)), min))[::-1]
