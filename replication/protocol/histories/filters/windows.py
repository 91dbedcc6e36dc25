"""The leader epochs of a partition in order, each with its leader and its ISRs."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, pairwise

from replication.protocol.ground.model import Span
from replication.protocol.ground.story import OwnStep, Recorded

# Elections of a replica that need not have what was committed; None: nothing tells the kind.
UNSURE = ("unclean", "last_known_leader", "unknown", None)
# So many epochs may have come after the last that evidence names: one to lose, one to lack.
LATER_EPOCHS = 2
# Of the epochs between two that evidence names so many are looked at.
MOST_UNNAMED = 1000


@dataclass(slots=True)
class Window:
    """One leader epoch. isrs: those that the controller recorded in it, in order; None: unknown.

    leader: None where nobody led, or where nobody knows: then `unnamed` where nothing names the
    epoch, `shown` where a log shows that somebody led in it. start: the offset at which the epoch
    begins, by any epoch file or log. recorded: the controller's record of it is here. led: its
    leader did begin to lead, as records of the epoch show, or a replica that joined the ISR in it.
    """

    leader_epoch: int
    number: int = 0
    leader: int | None = None
    isrs: list[frozenset[int]] | None = None
    kind: str | None = None
    recorded: bool = False
    led: bool = False
    start: int | None = None
    unnamed: bool = False
    shown: bool = False
    next_other: "Window | None" = None
    before: "Window | None" = None

    @property
    def may_write(self) -> bool:
        """Whether somebody may have written in it: not where it is known that nobody led."""
        return self.leader is not None or self.unnamed or self.shown

    @property
    def leader_was_away(self) -> bool:
        """Whether the leader may have been down before: nobody led, or it leads anew."""
        if self.before is None:
            return False
        anew = self.before.leader == self.leader and self.kind != "same_leader"
        return self.before.leader is None or anew


def windows_of(
    own: dict[int, list[OwnStep]],
    recorded: list[Recorded],
    shown: list[Span],
    *,
    known: bool,
    promised: bool,
) -> list[Window]:
    """The leader epochs in order. own: each replica's steps; shown: the records that anything
    shows. known: no epoch can be missing among these; promised: clients were told of records."""
    windows: dict[int, Window] = {}

    def window(leader_epoch: int) -> Window:
        return windows.setdefault(leader_epoch, Window(leader_epoch))

    for record in recorded:
        _take_record(window(record.leader_epoch), record)
    for number, steps in own.items():
        for step in steps:
            if step.kind == "led" and step.leader_epoch is not None:
                led = window(step.leader_epoch)
                led.leader = number if led.leader is None else led.leader
            elif step.kind == "followed" and step.leader_epoch is not None:
                led = window(step.leader_epoch)
                led.leader = step.leader if led.leader is None else led.leader
            elif step.kind == "wrote" and step.leader_epoch is not None:
                led = window(step.leader_epoch)
                led.leader = number if led.leader is None else led.leader
            for leader_epoch, start in _starts(step):
                begun = window(leader_epoch)
                begun.start = start if begun.start is None else min(begun.start, start)
                begun.led = True
    for span in shown:
        if span.leader_epoch is not None:
            window(span.leader_epoch).led = True
    if not windows and (shown or promised):
        window(0)  # Whoever led, led in some epoch.
    if windows and not known:
        named = sorted(windows)
        for before, after in pairwise((-1, *named, named[-1] + LATER_EPOCHS + 1)):
            for leader_epoch in _between(before, after):
                window(leader_epoch).unnamed = True
    result = [windows[e] for e in sorted(windows)]
    for w in result:
        w.shown = w.leader is None and not w.recorded and not w.unnamed
    _link(result)
    return result


def _between(before: int, after: int) -> Iterable[int]:
    """The leader epochs between two that evidence names; of very many the first and the last, which
    leave room for all that may have happened in them."""
    if after - before - 1 <= MOST_UNNAMED:
        return range(before + 1, after)
    half = MOST_UNNAMED // 2
    return chain(range(before + 1, before + 1 + half), range(after - half, after))


def _take_record(window: Window, record: Recorded) -> None:
    window.recorded = True
    if record.leader is not None:
        window.leader = record.leader
    if record.isr:
        isr = frozenset(record.isr)
        window.isrs = window.isrs or []
        window.led = window.led or (bool(window.isrs) and not isr <= window.isrs[-1])
        if not window.isrs or window.isrs[-1] != isr:
            window.isrs.append(isr)
    if record.election_kind and window.kind is None:
        window.kind = record.election_kind


def _starts(step: OwnStep) -> list[tuple[int, int]]:
    """(leader epoch, first offset of its own), as a copy shows them. Where a copy itself begins, in
    the midst of a log or above what retention took, its epoch may have begun before."""
    begins = step.log_start_offset or 0
    found = [
        (e.leader_epoch, e.start_offset)
        for e in step.epoch_entries
        if e.start_offset > begins or not begins
    ]
    seen = begins
    for span in step.spans:
        whole = span.first_offset == seen and (seen > begins or not begins)
        inside = span.first_offset > begins or not begins
        if span.leader_epoch is not None and inside and (whole or step.kind_of_copy != "part"):
            found.append((span.leader_epoch, span.first_offset))
        seen = span.end_offset
    return found


def _link(windows: list[Window]) -> None:
    """Numbers the windows, and lets each know its neighbours."""
    told = [w for w in windows if w.isrs]
    for w, after in pairwise(told):
        isrs, first = w.isrs or [], (after.isrs or [frozenset()])[0]
        another = after.leader != w.leader and after.kind not in UNSURE[:3]
        if another and not first <= isrs[-1]:
            isrs.append(isrs[-1] | first)  # A member joined, and nothing recorded it.
    led: Window | None = None
    for number in range(len(windows) - 1, -1, -1):
        w = windows[number]
        w.number, w.before = number, windows[number - 1] if number else None
        w.next_other = led.next_other if led is not None and led.leader == w.leader else led
        if w.leader is not None:
            led = w


def not_heard(windows: list[Window]) -> set[int]:
    """The windows whose leader led before, and need not have heard of the leaders in between: it
    was a member of the ISR all along. A broker that joins the ISR again has fetched from another.
    """
    found: set[int] = set()
    out: dict[int, bool] = {}  # Of those that led: whether the ISR has been without them since.
    for w in windows:
        if w.leader is not None:
            if not out.get(w.leader, True) or (w.leader in out and w.kind in UNSURE):
                found.add(w.number)
            out[w.leader] = False
        for isr in w.isrs or ():
            for number in [*out]:
                if number not in isr:
                    out[number] = True
                elif out[number]:
                    del out[number]
    return found
