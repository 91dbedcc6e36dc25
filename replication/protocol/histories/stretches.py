"""One run of offsets that was asked about: the ends that the evidence admits, under assumptions."""

from collections.abc import Callable
from dataclasses import dataclass

from replication.protocol.histories.assumptions import LINES_ARE_MISSING, Assumed
from replication.protocol.histories.filters.at_offset import Run
from replication.protocol.histories.filters.timeline import Timeline
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.search import Search

# What a question answers of one history: several, where even one history leaves it open.
Outcomes = frozenset[object]
KEPT: Outcomes = frozenset([False])
OPEN: Outcomes = frozenset([False, True])
Question = Callable[["Admitted"], Outcomes]


@dataclass(slots=True)
class Admitted:
    """Every end that the evidence admits of a run of offsets [first, end), under assumptions.

    end: None for the last run, of which nothing shows an end. too_many: there are more histories
    than are followed, and `ends` has none.
    """

    first: int
    end: int | None
    run: Run
    search: Search
    ends: frozenset[At]
    too_many: bool = False

    @property
    def line(self) -> Timeline:
        """The timeline that the run is of."""
        return self.run.line


@dataclass(slots=True)
class Found:
    """What was found of one run of offsets: the ends that count, and what they assume."""

    admitted: Admitted
    assumed: Assumed
    contradicted: bool = False


class Stretch:
    """One run of offsets [first, end), followed when it is first asked for under all that can be
    assumed there. end: None for the last run.

    vacuous: under what is assumed no record can be there at all.
    """

    def __init__(
        self, first: int, end: int | None, follow: Callable[["Stretch"], Found], *, vacuous: bool
    ) -> None:
        self.first, self.end, self.vacuous = first, end, vacuous
        self._follow = follow
        self._found: Found | None = None
        # A history was found under fewer assumptions, and no line need be missing for it.
        self.is_explained = False
        # The search that forgets nothing, once somebody has asked for a story of this run.
        self.told: Search | None = None

    @property
    def found(self) -> Found:
        """The run followed: under the most assumptions that leave a history."""
        if self._found is None:
            self._found = self._follow(self)
        return self._found

    @property
    def admitted(self) -> Admitted:
        """The ends that count."""
        return self.found.admitted

    @property
    def assumed(self) -> Assumed:
        """What they assume."""
        return self.found.assumed

    @property
    def contradicted(self) -> bool:
        """Whether no history explains the evidence, under whatever assumptions."""
        return self.found.contradicted

    @property
    def lines_missing(self) -> bool:
        """Whether a history is left only where lines of some broker are missing unseen.

        Under no assumption at all there is whatever history there is under some: where one was
        found, the run need not be followed to tell.
        """
        return not self.is_explained and LINES_ARE_MISSING in self.assumed.names
