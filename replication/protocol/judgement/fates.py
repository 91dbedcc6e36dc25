"""What the histories of one partition answer, run of offsets by run of offsets."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from replication.protocol.ground.topic_partition import State
from replication.protocol.histories.ask import Histories
from replication.protocol.histories.filters.timeline import Timeline
from replication.protocol.histories.stretches import KEPT, Outcomes, Stretch
from replication.protocol.judgement.questions import BROKEN, MATCHING, QUESTIONS, agree_for_sure

Answer = tuple[Outcomes, frozenset[str]]


@dataclass(slots=True)
class Fate:
    """One run of offsets: of each question the outcomes, and which assumptions decide it."""

    stretch: Stretch
    answers: dict[str, Answer] = field(default_factory=dict)


@dataclass(slots=True)
class Fates:
    """All runs of one partition's offsets."""

    histories: Histories
    runs: list[Fate] = field(default_factory=list)
    # By question and outcomes, what the answers of the runs asked so far rest on.
    _known: dict[str, dict[Outcomes, frozenset[str]]] = field(default_factory=dict)

    @property
    def line(self) -> Timeline:
        """The timeline under all that is assumed."""
        return self.histories.line(self.histories.rungs()[0])

    def answer(self, name: str) -> Iterable[tuple[Fate, Outcomes, frozenset[str]]]:
        """Each run with what is answered there; asked when it is first wanted, all that there is to
        ask at once: it is followed but once."""
        for fate in self.runs:
            if not fate.answers:
                fate.answers = {each: self._ask(fate.stretch, each) for each in QUESTIONS}
            yield fate, *fate.answers[name]

    def _ask(self, stretch: Stretch, name: str) -> Answer:
        if stretch.end is not None and stretch.end <= self.line.log_start:
            return KEPT, frozenset()  # Removed lawfully.
        assigned = self.line.assigned
        if (
            name == MATCHING
            and assigned
            and agree_for_sure(self.histories.state, assigned, stretch.first)
        ):
            return KEPT, frozenset()
        known = self._known.setdefault(name, {})
        outcomes, assuming = self.histories.decide(stretch, QUESTIONS[name], known)
        before = known.get(outcomes, frozenset()) if outcomes == KEPT else frozenset()
        known[outcomes] = before | assuming
        return outcomes, assuming

    def broken(self, name: str) -> list[tuple[Fate, frozenset[str]]]:
        """The runs in which every history breaks a promise."""
        return [(f, assuming) for f, o, assuming in self.answer(name) if o == BROKEN]

    def undecided(self, name: str) -> list[Fate]:
        """The runs in which some history keeps a promise and another breaks it."""
        return [fate for fate, o, _ in self.answer(name) if o not in (BROKEN, KEPT)]

    def assumed_to_hold(self, name: str) -> frozenset[str]:
        """What it rests on that every run keeps a promise."""
        return frozenset().union(*(assuming for _, _, assuming in self.answer(name)))


def fates_of(state: State, *, strict: bool = False) -> Fates:
    """The runs of a partition's offsets. strict: nothing is assumed."""
    histories = Histories(state, strict=strict)
    return Fates(histories, [Fate(stretch) for stretch in histories.stretches()])
