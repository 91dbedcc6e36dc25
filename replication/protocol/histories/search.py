"""One run of offsets, followed leader epoch by leader epoch through all that may have happened.

Leader epochs ascend: from KIP-320 on brokers act on each other only within one, so this is an order
of everything that mattered. Within an epoch the leader goes through its own steps first, then each
follower against what the leader exposed; all they do unseen is monotone, so no interleaving counts.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import product
from operator import attrgetter

from replication.protocol.histories.assumptions import ELECTIONS_AS_RECORDED
from replication.protocol.histories.beginnings import Beginnings
from replication.protocol.histories.endings import MOST_KINDS
from replication.protocol.histories.engine import Effort, Followed, follow, retrace
from replication.protocol.histories.filters.at_offset import Run
from replication.protocol.histories.filters.by_offset import EVERYWHERE, NEVER
from replication.protocol.histories.filters.windows import Window
from replication.protocol.histories.follow import Followers
from replication.protocol.histories.lead import LedEpoch
from replication.protocol.histories.moves.by_rule import BY_HIGH_WATERMARK, truncation_of
from replication.protocol.histories.moves.states import At, Broker
from replication.protocol.histories.records import Records

MOST_STATES = 1500
MOST_STEPS = 400_000


class Search:
    """All histories of one run. exact: nothing is forgotten that a story in words would tell.
    beginnings: those that other runs of the partition share with it."""

    def __init__(
        self,
        run: Run,
        *,
        exact: bool = False,
        effort: Effort | None = None,
        beginnings: Beginnings | None = None,
    ) -> None:
        self.run, self.line = run, run.line
        self.beginnings = beginnings or Beginnings()
        self._retraced: dict[bool, Followed[At, Window]] = {}
        # Whoever follows state by state asks of the same leader epoch again and again.
        self._led: dict[tuple[int, int], LedEpoch] = {}
        self.effort = effort or Effort(MOST_STEPS, MOST_STATES)
        line = self.line
        truncation = truncation_of(line.flags)
        self.brokers = [
            Broker(
                r in line.covered,
                r in line.traced and not line.compacted,  # Copies of a compacted log have holes.
                truncation,
                run.assumed.unseen_losses,
                fenced=line.fences_fetches,
            )
            for r in line.replicas
        ]
        self.covered = sum(1 << i for i, b in enumerate(self.brokers) if b.covered)
        self.records = Records(run, exact=exact)
        self._last_doubt, self._last_away = self._doubtful_until()
        self._alike_from: int | None = None
        self._look_at = 0
        self.followers = Followers(run, self.brokers, self.records.epochs, self.effort)

    def ends(self) -> set[At]:
        """Every state in which the evidence admits that the partition is at the end."""
        windows, states = self._begun()
        return self.admitted(follow(windows, states, self.after, self._idle, self.effort))

    def retraced(self, *, whole: bool = True) -> Followed[At, Window]:
        """The same with the way to each end, before the last copies are asked. whole: from the
        first leader epoch on, not only from where evidence first names the offset."""
        if whole not in self._retraced:
            windows, states = (self.windows(), self.starts()) if whole else self._begun()
            self._retraced[whole] = retrace(windows, states, self.after, self._settled, self.effort)
        return self._retraced[whole]

    def _begun(self) -> tuple[list[Window], set[At]]:
        """The leader epochs from which on evidence names the offset, and the states by then;
        what comes before is shared with other runs."""
        windows = self.windows()
        untold = self.run.untold() if len(windows) == len(self.line.windows) else 0

        def after(states: set[At], window: Window) -> set[At]:
            found = self.after(states, window)
            self.effort.spend(len(found), len(found))
            return found

        begun = self.beginnings.after(windows[:untold], self.records, self.starts, after)
        return windows[untold:], begun

    def windows(self) -> list[Window]:
        """The leader epochs in which anything can have happened at the offset."""
        run, windows = self.run, self.line.windows
        known = [e for e in run.epochs[1:] if e is not None]
        if all(b.traced for b in self.brokers) and not any(run.followed_on):
            known.append(run.first_shown)  # What no step tells of did not happen.
        elif run.unseen or not known or len(known) < len(run.labels):
            return windows
        first = min([run.first_shown, *known])
        return windows[bisect_left(windows, first, key=lambda w: w.leader_epoch) :] or windows[-1:]

    def starts(self) -> set[At]:
        """The states before the first leader epoch: nothing is there, or, where the evidence may
        begin in the midst of the partition's life, a record that was written before."""
        found = {At((0,) * len(self.brokers))}
        if self.run.written_before:
            for start in self._written_before():
                found.add(start)
                self.effort.spend(0, len(found) // 8)
        return self.followers.without_leader(found, -1)

    def _written_before(self) -> Iterator[At]:
        """What replicas may hold as the evidence begins; one of it committed by then, or none."""
        records, run, count = self.records, self.run, len(self.brokers)
        led = [w for w in self.line.windows if w.leader is not None]
        first = led[0].leader_epoch if led else 0
        known = [r for r in range(1, len(run.labels) + 1) if (run.epochs[r] or 0) <= first]
        if run.unseen and (not known or not run.assumed.moments_known):
            known.append(records.unseen_of(-1, 0))
        # In the first leader epoch of all nobody else can have committed it before its leader.
        # So it is where a machine tells the story: its first leader is the only one there was.
        alone = led and (not first or self.line.state.story.ordered)
        leader = run.place.get(led[0].leader or 0) if alone else None
        if leader is not None and not self.covered >> leader & 1:
            leader = None
        ordered = self.line.state.story.ordered and not self._leads_above_it(leader)
        for held in product((0, *known), repeat=count):
            appended = sum(1 << r for r in {*held} - {0})
            had = sum(1 << i for i, r in enumerate(held) if r) & self.covered
            yield At(held, 0, had, appended)
            if ordered:
                continue  # A machine's first leader has the high watermark that counts.
            for record in {*held} - {0}:
                holders = sum(1 << i for i, r in enumerate(held) if r == record)
                for above in _within(holders & self.covered):
                    if leader is None or above >> leader & 1:
                        yield At(held, above, had, appended, 1 << record, 1 << record)

    def _leads_above_it(self, leader: int | None) -> bool:
        """Whether the first step that tells the first leader's high watermark has it above."""
        items = [i for _, row in sorted(self.run.items[leader or 0].items()) for i in row]
        return next((bool(i.above) for i in items if i.above is not None), False)

    def _settled(self, states: set[At], window: Window) -> bool:
        """Whether in every state all replicas hold one record, which is committed in it or in one
        like it, all others were missed where that counts, and nothing from this epoch on can change
        that."""
        if window.leader_epoch <= self._last_doubt or window.number <= self._last_away:
            return False
        answered, clients = self.records.answered, self.records.seen_by_clients
        for at in states:
            record = at.records[0]
            others = ~(1 << record)
            if not record or any(r != record for r in at.records):
                return False
            by_any, committed = at.committed_by_any | ~others, at.committed | ~others
            if at.missed_committed and not self.records.exact:
                committed = at.committed  # Of that nothing more is kept.
            still_to_miss = (
                at.appended & answered & ~at.missed
                | at.committed_by_any & clients & answered & ~at.missed_by_any
                | at.committed & ~at.missed_committed & ~1
            )
            alike = at._replace(committed_by_any=by_any, committed=committed)
            if alike not in states or still_to_miss & others:
                return False
        held = {at.records[0] for at in states}
        return all(self.run.is_certain(record, window.leader_epoch) for record in held)

    def _idle(self, states: set[At], window: Window) -> int:
        """How many leader epochs from this one on change nothing of the states taken together."""
        number, count = window.number, len(self.line.windows)
        if self._settled(states, window):
            return count - number
        endings = self.beginnings.endings_of(self.run)
        if self._alike_from is None:
            self._alike_from = self._look_at = endings.alike_from(self.run)
        if number < self._look_at:
            return 0
        # Looked at after 0, 1, 2, 4, .. leader epochs, so that what it takes is made up for.
        self._look_at = max(number + 1, 2 * number - self._alike_from)
        left = endings.left(self.run, number)
        if len(left) > min(MOST_KINDS, (count - number) // 2):
            return 0  # To look at each kind would take more than to follow them.
        windows = self.line.windows
        changes = (n for n in left if self.after(states, windows[n]) != states)
        return next(changes, count) - number

    def _doubtful_until(self) -> tuple[int, int]:
        """The leader epoch, and the number of the window, up to which a replica may still come to
        lack what all hold."""
        doubt, away = max(self.run.last_doubt, default=NEVER), NEVER
        open_ends = [b for b in self.brokers if not b.covered]
        if any(b.unseen_losses != 0 or b.truncation == BY_HIGH_WATERMARK for b in open_ends):
            return EVERYWHERE, EVERYWHERE
        if open_ends:
            away = self.line.last_away
        return doubt, away

    def after(self, states: set[At], window: Window) -> set[At]:
        """The states after one leader epoch."""
        return self.beginnings.transitions.after(states, window, self.records, self._followed)

    def _followed(self, states: set[At], window: Window) -> set[At]:
        found: set[At] = set()
        for leader in self._leaders(window):
            found |= self._led_by(states, window, leader)
            self.effort.spend(len(found), len(found) // 8)
        by = self.run.committed_by
        if by is not None and window.leader_epoch >= by:
            found = {at for at in found if _committed(at)}
        return self.records.forget(found, self.covered)

    def may_commit_first_after(self, leader_epoch: int) -> bool:
        """Whether a history commits nothing at the offset up to the end of a leader epoch."""

        def after(states: set[At], window: Window) -> set[At]:
            found = self.after(states, window)
            if window.leader_epoch > leader_epoch:
                return found
            return {at for at in found if not _committed(at)}

        starts = {at for at in self.starts() if not _committed(at)}
        ends = follow(self.windows(), starts, after, lambda *_: 0, self.effort)
        return bool(self.admitted(ends))

    def _leaders(self, window: Window) -> list[int | None]:
        if not window.unnamed and not window.shown:
            return [window.leader]
        may_lead = [r for r in self.line.replicas if r not in self.line.covered]
        if ELECTIONS_AS_RECORDED in self.run.assumed.names:
            return list(may_lead) if window.shown and may_lead else [None]
        return [None, *may_lead]

    def _led_by(self, states: set[At], window: Window, leader: int | None) -> set[At]:
        if leader is None or leader not in self.run.place:
            return self.followers.without_leader(states, window.leader_epoch)
        key = window.number, leader
        if key not in self._led:
            self._led[key] = LedEpoch(self.run, window, leader, self.records, self.followers)
        return self._led[key].after(states, self.effort)

    def admitted(self, states: set[At]) -> set[At]:
        """The ends that the last copies and what clients were told admit."""
        run, line = self.run, self.line
        torn = [f.place for f in run.final if f.torn and not self.brokers[f.place].covered]
        # If disks lose nothing, a log that nobody copied ends as its broker's steps leave it.
        for number in line.not_captured if run.assumed.unseen_losses != 0 else ():
            place = run.place[number]
            if not self.brokers[place].covered or number in line.state.story.unseen:
                torn.append(place)
        for place in torn:  # The end of a log that is not seen to the offset may be lost.
            states = states | {
                at._replace(records=(*at.records[:place], 0, *at.records[place + 1 :]))
                for at in states
            }
            self.effort.spend(0, len(states) // 8)
        return {at for at in states if self._agrees(at) and self._told(at)}

    def _agrees(self, at: At) -> bool:
        for place, item, _, floating in self.run.final:
            if self.brokers[place].covered and not floating:
                continue
            record = at.records[place]
            if item.records is not None and record not in item.records:
                return False
            if item.has and not record:
                return False
            shown = 0 < record <= len(self.run.labels)
            if item.above and shown and not (at.committed_by_any or at.committed):
                return False
        return True

    def _told(self, at: At) -> bool:
        for claim in filter(attrgetter("sure"), self.run.claims):
            mask = at.appended if claim.how == "acks_1" else at.committed_by_any
            if not self.records.meant(claim) & mask:
                return False
        return True


def _committed(at: At) -> bool:
    """Whether some record of the offset was below a leader's high watermark."""
    return bool(at.committed | at.committed_by_any)


def _within(mask: int) -> Iterator[int]:
    """Every mask of some of the same bits, none and all among them."""
    part = mask
    while True:
        yield part
        if not part:
            return
        part = (part - 1) & mask
