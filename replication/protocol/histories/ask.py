"""Asks the histories of a partition, run by run of offsets, under assumptions that get fewer.

A question is decided where every admitted history answers it alike. It is asked first with all that
the evidence leaves to be assumed; where no history is left, fewer assumptions are made; where it is
decided, it is asked again without each, so that the answer names only what it rests on.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping

from replication.protocol.ground.topic_partition import State
from replication.protocol.histories import assumptions as named
from replication.protocol.histories.assumptions import (
    HEARD_EARLY,
    LINES_MISSING,
    STRICT,
    WIDEST,
    Assumed,
    only,
    without,
)
from replication.protocol.histories.beginnings import Beginnings
from replication.protocol.histories.engine import Effort, TooMany
from replication.protocol.histories.filters.at_offset import Run
from replication.protocol.histories.filters.clients import clocks_tell, created_by, is_of
from replication.protocol.histories.filters.signs import tells_of_a_loss
from replication.protocol.histories.filters.timeline import (
    Timeline,
    borders,
    lived_before,
    timeline_of,
)
from replication.protocol.histories.search import MOST_STATES, MOST_STEPS, Search
from replication.protocol.histories.stretches import (
    KEPT,
    OPEN,
    Admitted,
    Found,
    Outcomes,
    Question,
    Stretch,
)

# Under which nothing is taken for granted, one after the other until a history is left.
LAST = (STRICT, WIDEST, HEARD_EARLY)
# As the first leader epoch of a record that nothing shows.
NOWHERE = 1 << 60
# How many steps the histories of one partition may take together; kept evidence needs 450,000.
MOST_STEPS_OF_ALL = 1_000_000
# The same with the items that are read for them: before fetches carry a leader epoch each run of
# offsets reads all of its brokers' items.
MOST_READ_OF_ALL = 8_000_000
# An answer is asked again with fewer assumptions in so many times the steps it took and so many
# more, and with so many steps for all of a partition's; what takes longer is taken to be needed.
MOST_TIMES_AS_MANY = 20
MOST_STEPS_OF_FEWER = 10_000
MOST_STEPS_OF_ALL_FEWER = 60_000
# So many runs of offsets are kept for others like them: what lives long costs time, too.
MOST_KEPT = 200
_ORDER = {named.RECORDS_AS_SEEN: 0, named.EVERY_SEND_IS_KNOWN: 2}


class Histories:
    """The histories of one topic partition. strict: nothing is assumed."""

    def __init__(self, state: State, *, strict: bool = False) -> None:
        self.state, self.strict = state, strict
        self._lines: dict[frozenset[str], Timeline] = {}
        # What was followed of the run that was asked last, and of the last runs by what they share.
        self._asked_at = -1
        self._asked: dict[Assumed, Admitted] = {}
        self._found: dict[tuple[object, Assumed], Admitted] = {}
        self._beginnings = Beginnings()
        self._effort = Effort(MOST_STEPS_OF_ALL, MOST_STATES)
        # For what is enough elsewhere, and for what is left out one by one.
        self._left = {True: MOST_STEPS_OF_ALL_FEWER, False: MOST_STEPS_OF_ALL_FEWER}
        self._rungs: list[Assumed] = []
        self._of_elections: frozenset[str] | None = None
        self._last: Admitted | None = None

    @property
    def steps(self) -> int:
        """What the searches took so far: their steps, and the items that were read."""
        return self._effort.steps + sum(line.items_read for line in self._lines.values())

    def line(self, assumed: Assumed) -> Timeline:
        """The timeline under assumptions."""
        made = assumed.names & named.OF_THE_TIMELINE
        if made not in self._lines:
            self._lines[made] = timeline_of(self.state, assumed)
        return self._lines[made]

    def rungs(self) -> list[Assumed]:
        """From all that can be assumed here down to nothing."""
        if not self._rungs:
            self._rungs = self._worked_out()
        return self._rungs

    def _worked_out(self) -> list[Assumed]:
        line = self.line(STRICT if self.strict else named.EVERYTHING)
        last = LAST[:-1] if line.fences_fetches else LAST
        if self.strict:
            return [*last]
        names = frozenset(self._assumable())
        # What cannot be assumed here changes nothing of the timeline.
        self._lines[names & named.OF_THE_TIMELINE] = line
        found = [Assumed(names, 0)]
        if names & named.NOTHING_UNSEEN:
            names -= named.NOTHING_UNSEEN
            found.append(Assumed(names, 0))
        # An election that nothing recorded is thought of before a disk that lost unseen.
        passed_over = names - {named.LEADERS_IN_SYNC}
        fewer = passed_over - {named.ELECTIONS_AS_RECORDED}
        found += [Assumed(each, 0) for each in (passed_over, fewer)]
        found += [Assumed(each, 1) for each in (names, passed_over, fewer)]
        names = fewer
        names -= {named.DISKS_KEEP}
        found.append(Assumed(names, None))
        # Beside it nothing else is assumed: what was misread would decide by that.
        return [*dict.fromkeys([*found, *last, LINES_MISSING])]

    def _assumable(self) -> Iterator[str]:
        line = self.line(named.EVERYTHING)
        uncovered = [r for r in line.replicas if r not in line.covered]
        yield named.DISKS_KEEP
        if lived_before(self.state, line.covered):
            yield named.NOTHING_BEFORE
        if line.assigned is None and len(line.replicas) > 1:
            yield named.REPLICAS_AS_SEEN
        if any(_may_have_lived_on(line, r) for r in uncovered) or any(
            _is_of_no_moment(line, r) for r in line.covered
        ):
            yield named.COPIES_ARE_CURRENT
        created = created_by(self.state, line.covered)
        if not all(is_of(promise, created) for promise in line.promises):
            yield named.TOPIC_CREATED_ONCE
        if clocks_tell(self.state):
            yield named.CLOCKS_AGREE
        if any(w.next_other is not None for w in line.windows):
            yield named.REPLACED_LEADERS_HAD_STOPPED
        unsure = any(w.kind in (None, "unknown") for w in line.windows)
        if unsure or line.ends_early or any(w.unnamed for w in line.windows):
            yield named.ELECTIONS_AS_RECORDED
        if unsure:
            yield named.LEADERS_IN_SYNC
        if line.every_send_answered:
            yield named.EVERY_SEND_IS_KNOWN
        elif not self.state.told_of("sends") and not tells_of_a_loss(line):
            yield named.RECORDS_AS_SEEN

    def stretches(self) -> list[Stretch]:
        """Every run of offsets, in order. What must be given up of elections at one offset is given
        up at all."""
        rungs = self.rungs()
        cuts = borders(self.line(rungs[0]))
        of_elections = rungs[0].names & named.OF_ELECTIONS
        nothing_unseen = bool(rungs[0].names & named.NOTHING_UNSEEN)

        def follow(stretch: Stretch) -> Found:
            found = self._follow_down(stretch, rungs)
            if not found.assumed.names & of_elections:
                return found
            given_up = self._given_up(stretches, rungs)
            fewer = [*dict.fromkeys(only(r, r.names - given_up) for r in rungs)]
            return self._follow_down(stretch, fewer) if found.assumed.names & given_up else found

        stretches = [
            Stretch(first, end, follow, vacuous=end is None and nothing_unseen)
            for first, end in zip(cuts, [*cuts[1:], None], strict=True)
        ]
        return stretches

    def _given_up(self, stretches: list[Stretch], rungs: list[Assumed]) -> frozenset[str]:
        """Which assumptions of elections leave no history at some run of offsets."""
        if self._of_elections is None:
            each = [self._follow_down(stretch, rungs) for stretch in stretches]
            told = [f.assumed.names for f in each if not f.admitted.too_many]
            told = [names for names in told if not names & LINES_MISSING.names]
            assumed = rungs[0].names & named.OF_ELECTIONS
            self._of_elections = assumed - assumed.intersection(*told)
        return self._of_elections

    def _follow_down(self, stretch: Stretch, rungs: list[Assumed]) -> Found:
        nothing_unseen = named.NOTHING_UNSEEN if stretch.vacuous else frozenset[str]()
        for assumed in [r for r in rungs if not r.names & nothing_unseen]:
            admitted = self.admitted(stretch.first, stretch.end, assumed)
            if admitted.ends or admitted.too_many:
                return Found(admitted, assumed)
        return Found(admitted, rungs[-1], contradicted=True)

    def admitted(
        self, first: int, end: int | None, assumed: Assumed, most: int = MOST_STEPS
    ) -> Admitted:
        """The ends of one run under assumptions. most: how many steps that may take."""
        if self._asked_at != first:
            self._asked_at, self._asked = first, {}
        most = min(most, self._effort.most_steps - self._effort.steps)
        asked = self._asked.get(assumed)
        if asked is not None and not _was_given_up_early(asked, most):
            return asked
        if self._last is not None and self.steps > MOST_READ_OF_ALL:
            # What there would be to read is not even looked at.
            run, search = self._last.run, self._last.search
            return Admitted(first, end, run, search, frozenset(), too_many=True)
        run = self._run(first, end, assumed)
        if end is not None and _rests_on_a_high_watermark(run):
            run.committed_by = self._committed_by(end, assumed, most)
        found = self._asked[assumed] = self._found_of(first, end, run, most)
        return found

    def _committed_by(self, first: int, assumed: Assumed, most: int) -> int | None:
        """The leader epoch by whose end, in every history of the run above, some record there was
        below a leader's high watermark: what is below it was, too."""
        cuts = borders(self.line(assumed))
        end = next((cut for cut in cuts if cut > first), None)
        above = self._found_of(first, end, self._run(first, end, assumed), most)
        if not above.ends or not all(at.committed | at.committed_by_any for at in above.ends):
            return None
        search = Search(above.run, effort=Effort(most, MOST_STATES))
        epochs = [window.leader_epoch for window in above.line.windows]
        try:
            number = bisect_left(epochs, True, key=lambda e: not search.may_commit_first_after(e))
        except TooMany:
            number = len(epochs)
        self._effort.steps += search.effort.steps
        return epochs[number] if number < len(epochs) else None

    def _run(self, first: int, end: int | None, assumed: Assumed) -> Run:
        line = self.line(assumed)
        unseen = not assumed.names & named.NOTHING_UNSEEN
        run = Run(line, first, assumed, unseen=unseen)
        if end is not None and not unseen and not run.claims:
            nameless = not run.labels and (run.first_shown < NOWHERE or _is_unread(line, first))
            if nameless or _is_below_a_promise(line, first):
                run = Run(line, first, assumed, unseen=True)  # Some record is there.
        return run

    def _found_of(self, first: int, end: int | None, run: Run, most: int) -> Admitted:
        key = (run.signature(), run.assumed)
        known = self._found.get(key)
        if known is None or _was_given_up_early(known, most):
            if len(self._found) > MOST_KEPT:
                self._found = {}
            known = self._found[key] = self._follow(first, end, run, most)
        return Admitted(first, end, known.run, known.search, known.ends, known.too_many)

    def _follow(self, first: int, end: int | None, run: Run, most: int) -> Admitted:
        left = self._effort.most_steps - self._effort.steps
        effort = Effort(min(most, left), MOST_STATES)
        search = Search(run, effort=effort, beginnings=self._beginnings)
        try:
            ends, too_many = frozenset(search.ends()), False
        except TooMany:
            ends, too_many = frozenset(), True
        self._effort.steps += search.effort.steps
        self._last = Admitted(first, end, run, search, ends, too_many)
        return self._last

    def decide(
        self, stretch: Stretch, question: Question, known: Mapping[Outcomes, frozenset[str]]
    ) -> tuple[Outcomes, frozenset[str]]:
        """What the histories of a run answer, and which assumptions that rests on: the smallest set
        that is found by leaving one after the other out.

        known: by outcomes, what the answers of other runs rest on. If that is enough here as well
        it is taken; of what keeps a promise elsewhere nothing is left out. Where no history is left
        or more than are followed, either answer is possible.
        """
        if KEPT in known and self._is_kept_under(known[KEPT], stretch, question):
            return KEPT, known[KEPT]
        if stretch.contradicted or stretch.admitted.too_many:
            return OPEN, frozenset()
        outcomes = question(stretch.admitted)
        needed = known.get(KEPT, frozenset()) if outcomes == KEPT else frozenset()
        unseen = self.rungs()[0].names & named.NOTHING_UNSEEN
        if stretch.vacuous and (unseen <= needed or outcomes != KEPT):
            return KEPT, unseen
        if len(outcomes) != 1 or stretch.assumed in LAST:
            return outcomes, frozenset()
        kept, enough = stretch.assumed, known.get(outcomes, stretch.assumed.names)
        fewer = only(kept, enough)
        if fewer != kept and self._still(stretch, question, outcomes, fewer, elsewhere=True):
            return outcomes, fewer.names
        # First what keeps records out that nothing shows: without it there are many histories. That
        # every send is known is told by clients, and left out last.
        for name in sorted(kept.names - needed, key=lambda n: (_ORDER.get(n, 1), n)):
            fewer = without(kept, name)
            if self._still(stretch, question, outcomes, fewer):
                kept = fewer
        if stretch.vacuous and kept.names:
            by_clients = named.EVERY_SEND_IS_KNOWN in unseen
            if by_clients or not kept.names <= needed:
                return KEPT, unseen
        return outcomes, kept.names

    def is_enough(self, stretch: Stretch, question: Question, names: frozenset[str]) -> bool:
        """Whether these assumptions alone decide a question as all that are made do."""
        fewer = only(stretch.assumed, names)
        outcomes = question(stretch.admitted)
        return self._still(stretch, question, outcomes, fewer, elsewhere=True)

    def _is_kept_under(self, names: frozenset[str], stretch: Stretch, question: Question) -> bool:
        """Whether a promise is kept under these assumptions: then it is under all that are made,
        and what these leave need not be followed."""
        if stretch.vacuous:
            return False
        fewer = only(self.rungs()[0], names)
        return self._decides(stretch, question, KEPT, fewer, MOST_STEPS_OF_FEWER, elsewhere=True)

    def _still(
        self,
        stretch: Stretch,
        question: Question,
        outcomes: Outcomes,
        assumed: Assumed,
        *,
        elsewhere: bool = False,
    ) -> bool:
        """Whether fewer assumptions decide it, too; they do not where that takes too long."""
        most = MOST_TIMES_AS_MANY * stretch.admitted.search.effort.steps + MOST_STEPS_OF_FEWER
        return self._decides(stretch, question, outcomes, assumed, most, elsewhere=elsewhere)

    def _decides(
        self,
        stretch: Stretch,
        question: Question,
        outcomes: Outcomes,
        assumed: Assumed,
        most: int,
        *,
        elsewhere: bool,
    ) -> bool:
        """Whether every history under assumptions answers so. elsewhere: these assumptions decide
        other runs. Else one try leaves room for others."""
        left = self._left[elsewhere] // (1 if elsewhere else 4)
        before = self._effort.steps
        admitted = self.admitted(stretch.first, stretch.end, assumed, min(most, left))
        self._left[elsewhere] -= self._effort.steps - before
        if admitted.too_many or not admitted.ends:
            return False
        if not assumed.names & LINES_MISSING.names:
            stretch.is_explained = True
        return question(admitted) == outcomes


def _was_given_up_early(known: Admitted, most: int) -> bool:
    """Whether there were more histories than so few steps follow, and more steps are allowed."""
    return known.too_many and known.search.effort.most_steps < most


def _may_have_lived_on(line: Timeline, number: int) -> bool:
    last = line.last_copy.get(number)
    return last is not None and line.own[number][last].clean is not True


def _rests_on_a_high_watermark(run: Run) -> bool:
    """Whether of several records at the offset the high watermark in the copy of a broker whose
    lines are missing may tell which was committed: it may be above a higher offset, too."""
    line, replicas = run.line, run.line.replicas
    return (
        len(run.labels) > 1
        and not line.compacted
        and any(f.item.above and replicas[f.place] not in line.covered for f in run.final)
    )


def _is_of_no_moment(line: Timeline, number: int) -> bool:
    """Whether a broker's last copy is a part of a dump, of which nothing tells when it was made."""
    last, own = line.last_copy.get(number), line.own.get(number, [])
    return last is not None and own[last].kind_of_copy == "part" and last + 1 < len(own)


def _is_unread(line: Timeline, offset: int) -> bool:
    """Whether a log has a record at the offset that nobody could read. Copies of a compacted log
    have holes: there may be none."""
    return not line.compacted and (None, None) in line.shown_at.at(offset)


def _is_below_a_promise(line: Timeline, offset: int) -> bool:
    promises = (p for p in line.promises if is_of(p, line.created_by))
    return any(offset < p.span[1] for p in promises)
