"""The two histories behind an UNKNOWN: one that keeps the promise, one that breaks it.

Both fit the evidence. Told leader epoch by leader epoch; where they part first is what an artefact
would have to tell, and so what settles the question is worked out, not written by hand.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from replication.protocol.histories.engine import Effort, TooMany
from replication.protocol.histories.filters.timeline import UNSEEN_REPLICA
from replication.protocol.histories.filters.windows import Window
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.search import Search
from replication.protocol.histories.stretches import Admitted, Stretch
from replication.protocol.judgement.questions import (
    ACKNOWLEDGED,
    ANY_ACKNOWLEDGED,
    CONSUMED,
    MATCHING,
    QUESTIONS,
    last_leaders,
)
from replication.protocol.judgement.settling import artefacts

# Steps and states: to tell two histories, more is kept apart than to decide.
EFFORT = (700_000, 20_000)


@dataclass(slots=True)
class Told:
    """One step of a history. leader_epoch: None for what comes after the evidence ends. broker:
    whose it is, None for what nobody shows."""

    leader_epoch: int | None
    leader: int | None
    broker: int | None
    step: str
    record: str


@dataclass(slots=True)
class TwoHistories:
    """kept, broken: the steps of each. part_at: the first leader epoch in which they differ, and
    what each does there that the other does not. settled_by: what would tell which one it was."""

    first_offset: int
    end_offset: int | None
    kept: list[Told] = field(default_factory=list)
    broken: list[Told] = field(default_factory=list)
    settled_by: list[str] = field(default_factory=list)

    @property
    def parts(self) -> tuple[list[Told], list[Told]]:
        """What each history does in the first leader epoch in which they differ."""
        epochs = {t.leader_epoch for t in (*self.kept, *self.broken)}
        for leader_epoch in sorted(epochs, key=lambda e: (e is None, e)):
            mine = [t for t in self.kept if t.leader_epoch == leader_epoch]
            other = [t for t in self.broken if t.leader_epoch == leader_epoch]
            if mine != other:
                return (
                    [t for t in mine if t not in other],
                    [t for t in other if t not in mine],
                )
        return [], []

    def as_json(self) -> dict[str, Any]:
        """The histories in the shape of the outward contract."""
        kept, broken = self.parts
        at = next(iter((*kept, *broken)), None)
        return {
            "first_offset": self.first_offset,
            "end_offset": self.end_offset,
            "lost_in_both": False,
            "kept": [_row(t) for t in self.kept],
            "broken": [_row(t) for t in self.broken],
            "part_at": None
            if at is None
            else {
                "leader_epoch": at.leader_epoch,
                "kept": [words(t) for t in kept],
                "broken": [words(t) for t in broken],
            },
        }


def _row(told: Told) -> dict[str, Any]:
    return {
        "leader_epoch": told.leader_epoch,
        "leader": told.leader,
        "broker": told.broker,
        "step": told.step,
        "record": told.record,
        "words": words(told),
    }


def words(told: Told) -> str:
    """One step as a sentence without its full stop."""
    who = "some broker" if told.broker is None else f"broker {told.broker}"
    leader = "some leader" if told.leader is None else f"leader {told.leader}"
    return {
        "wrote": f"{who} appends {told.record} as leader",
        "fetched": f"{who} fetches {told.record}",
        "lost": f"{who} no longer has {told.record}",
        "committed": f"{told.record} is committed by {leader}",
        "committed_late": f"{told.record} is below the high watermark of {leader}, "
        "which another had replaced by then",
        "missed": f"{who} begins to lead without {told.record}",
        "disk": f"a disk loses {told.record}; no line reports the loss itself",
        "answered": f"a producer gets an answer for {told.record}, and no evidence shows that",
        "consumed": f"a consumer is given {told.record}, and no evidence shows that",
        "ends_with": f"{who} leads next and has {told.record}",
        "ends_without": f"{who} leads next without {told.record}",
        "cuts_next": f"{who} cuts {told.record} when it next follows a leader",
        "keeps_next": f"{who} keeps {told.record} when it next follows a leader",
    }[told.step]


def two_histories(stretch: Stretch, question: str) -> TwoHistories:
    """The histories behind a question that a run of offsets leaves open."""
    admitted = stretch.admitted
    found = TwoHistories(stretch.first, stretch.end)
    if stretch.told is None:
        stretch.told = Search(admitted.run, exact=True, effort=Effort(*EFFORT))
    search = stretch.told
    brokers: set[int] = set()
    kept = broken = None
    with suppress(TooMany):
        if not admitted.too_many:
            kept, broken = _pair(search, admitted, question)
    if kept is not None and broken is not None:
        windows = search.windows()
        found.kept, found.broken = _told(search, windows, kept), _told(search, windows, broken)
        if found.kept == found.broken:
            with_it, without = _apart(search, admitted, question, found.broken, broken[-1])
            found.kept += with_it
            found.broken += without
        mine, other = found.parts
        brokers = {t.broker for t in (*mine, *other) if t.broker is not None}
        brokers |= {t.leader for t in (*mine, *other) if t.leader is not None}
    after = any(t.leader_epoch is None for t in found.broken)
    found.settled_by = artefacts(admitted.line, brokers, question, after_all=after)
    return found


def _apart(
    search: Search, admitted: Admitted, question: str, told: list[Told], end: At
) -> tuple[list[Told], list[Told]]:
    """What tells two histories apart in which all brokers do the same: what a client learned, or
    what comes after the evidence ends. There a broker leads that has a record or one that lacks it,
    or a follower cuts the record in which it differs or keeps it."""
    leaders = [p for p in last_leaders(admitted) if p is not None]

    def after(place: int, step: str, record: int) -> list[Told]:
        number = search.line.replicas[place]
        broker = None if number == UNSEEN_REPLICA else number
        leader = broker if place in leaders else None
        return [Told(None, leader, broker, step, _name(search, record))]

    if question == MATCHING:
        last = {end.records[p] for p in leaders}
        for place, record in enumerate(end.records):
            if record and record not in last:
                return after(place, "cuts_next", record), after(place, "keeps_next", record)
        return [], []
    step = {ACKNOWLEDGED: "answered", CONSUMED: "consumed"}.get(question)
    gone = [t.record for t in told if t.step == "missed"]
    parted: tuple[int, int, int] | None = None
    for record in _each(end.committed_by_any | end.appended):
        has = [p for p in leaders if end.records[p] == record]
        lacks = [p for p in leaders if end.records[p] != record]
        if has and lacks:
            parted = record, has[0], lacks[0]
        elif lacks:
            gone.append(_name(search, record))
    unheard = _is_unheard(admitted, question)
    if parted is not None and not (unheard and gone):
        record, has_it, lacks_it = parted
        without = after(lacks_it, "ends_without", record)
        if unheard:
            return [], [*_learned("answered", _name(search, record), told), *without]
        return after(has_it, "ends_with", record), without
    gone = gone or [t.record for t in told if t.step == "lost"]
    return [], [] if step is None or not gone else _learned(step, gone[0], told)


def _is_unheard(admitted: Admitted, question: str) -> bool:
    """Whether nothing shows which records here a producer got an answer for."""
    shown = any(claim.how in ANY_ACKNOWLEDGED for claim in admitted.run.claims)
    return question == ACKNOWLEDGED and not admitted.line.acks_covered and not shown


def _learned(step: str, record: str, told: list[Told]) -> list[Told]:
    """What a client learns of a record, in the leader epoch in which it was written."""
    wrote = [t.leader_epoch for t in told if (t.step, t.record) == ("wrote", record)]
    wrote = wrote or [t.leader_epoch for t in told]
    return [Told(wrote[-1], None, None, step, record)] if wrote else []


def _pair(
    search: Search, admitted: Admitted, question: str
) -> tuple[list[At] | None, list[At] | None]:
    """A way to an end that keeps the promise, and one to an end that breaks it."""
    ask, followed = QUESTIONS[question], search.retraced()
    kept: list[At] | None = None
    broken: list[At] | None = None
    for reached in sorted(followed.ends):
        for end in sorted(search.admitted({reached})):
            one = Admitted(admitted.first, admitted.end, admitted.run, search, frozenset([end]))
            outcomes = ask(one)
            path = [*followed.path_to(reached)[:-1], end]
            kept = path if kept is None and False in outcomes else kept
            broken = path if True in outcomes and (broken is None or len(outcomes) == 1) else broken
        if kept is not None and broken is not None:
            return kept, broken
    return kept, broken


def _told(search: Search, windows: list[Window], path: list[At]) -> list[Told]:
    """The steps of one history, leader epoch by leader epoch."""
    found: list[Told] = []
    for window, before, after in zip(windows, path, path[1:], strict=False):
        found += _within(search, window, before, after)
    return found


def _within(search: Search, window: Window, before: At, after: At) -> list[Told]:
    numbers = search.line.replicas
    leader = window.leader
    written = after.appended & ~before.appended

    def told(broker: int | None, step: str, record: int) -> Told:
        named = None if broker == UNSEEN_REPLICA else broker
        return Told(window.leader_epoch, leader, named, step, _name(search, record))

    found = [told(leader, "wrote", r) for r in _each(written)]
    for place, number in enumerate(numbers):
        had, has = before.records[place], after.records[place]
        if had == has:
            continue
        if had:
            found.append(told(number, "lost", had))
        if has and not (number == leader and written >> has & 1):
            found.append(told(number, "fetched", has))
    found += [told(leader, "committed", r) for r in _each(after.committed & ~before.committed)]
    late = after.committed_by_any & ~after.committed & ~before.committed_by_any
    found += [told(leader, "committed_late", r) for r in _each(late)]
    missed = after.missed_committed & ~before.missed_committed
    missed |= after.missed & ~before.missed
    found += [told(leader, "missed", r) for r in _each(missed)]
    found += [told(None, "disk", r) for r in _each(after.lost & ~before.lost)]
    return found


def _each(mask: int) -> list[int]:
    return [r for r in range(1, mask.bit_length()) if mask >> r & 1]


def _name(search: Search, record: int) -> str:
    """A record in words."""
    epochs, labels = search.records.epochs, search.run.labels
    leader_epoch = epochs[record] if record < len(epochs) else None
    of = "" if leader_epoch is None else f" of leader epoch {leader_epoch}"
    if leader_epoch is not None and leader_epoch < 0:
        return "a record from before the evidence begins"
    if record > len(labels):
        return f"a record{of} that no evidence shows"
    same = [number for number, (e, _) in enumerate(labels, 1) if e == leader_epoch]
    if len(same) > 1:
        return f"the record{of} (number {same.index(record) + 1} of {len(same)} there)"
    return f"the record{of}"
