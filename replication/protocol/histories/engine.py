"""Following everything that may have happened: a search that knows nothing of what it follows.

`walk` finds the ways of one actor through its own steps, with free moves in between; `follow` takes
a set of states through the stages of a story, one after the other, and can tell by which states one
came to be. Steps are counted, never timed; past a bound nothing is decided.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

At = TypeVar("At", bound=Hashable)
Step = TypeVar("Step")
Stage = TypeVar("Stage")


class TooMany(Exception):
    """There are more histories than are followed."""


@dataclass(slots=True)
class Effort:
    """How many steps a search may take, how many states it may hold at once; what it took."""

    most_steps: int
    most_states: int
    steps: int = 0
    states: int = 0

    def spend(self, steps: int, states: int = 0) -> None:
        """Counts; raises TooMany past a bound."""
        self.steps += steps
        self.states = max(self.states, states)
        if self.steps > self.most_steps or states > self.most_states:
            raise TooMany

    def allow(self, more: int) -> None:
        """Bounds what is still to come, too."""
        self.most_steps = min(self.most_steps, self.steps + max(more, 0))


def walk(
    steps: Sequence[Step],
    starts: Iterable[At],
    moves: Callable[[At], Iterable[At]],
    accept: Callable[[Step, At], Iterable[At]],
    effort: Effort,
    *,
    at_rest: bool = False,
) -> set[At]:
    """Every state in which an actor may end that goes through its own steps in their order.

    moves: what it may do by itself, before each step and, unless it is at rest then, after the
    last. accept: the states after one of its steps; none where that step contradicts the state.
    What a step does to the same states is worked out once: an actor may do alike a thousand times.
    """
    known: dict[tuple[Step, frozenset[At]], frozenset[At]] = {}
    states = frozenset(starts)
    for step in steps:
        before = (step, states)
        if before not in known:
            reached = _with_moves(states, moves)
            known[before] = frozenset(after for at in reached for after in accept(step, at))
            effort.spend(len(reached))
        states = known[before]
        effort.spend(1)
    ends = set(states) if at_rest and steps else _with_moves(states, moves)
    effort.spend(len(ends))
    return ends


def _with_moves(states: Iterable[At], moves: Callable[[At], Iterable[At]]) -> set[At]:
    """The states, and all that moves lead to from them."""
    reached, todo = set(states), [*states]
    while todo:
        for after in moves(todo.pop()):
            if after not in reached:
                reached.add(after)
                todo.append(after)
    return reached


@dataclass(slots=True)
class Followed(Generic[At, Stage]):
    """The states at the end; by layer, from which states of the layer before each was reached.
    stages: all of them; of those after the last layer none changes a state."""

    ends: set[At]
    layers: list[dict[At, list[At]]]
    stages: Sequence[Stage]

    @property
    def more(self) -> int:
        """How many stages come after the last layer."""
        return len(self.stages) + 1 - len(self.layers)

    def path_to(self, end: At) -> list[At]:
        """The states on one way to an end, one a stage, the first one first."""
        path = [end]
        for layer in reversed(self.layers[1:]):
            path.append(layer[path[-1]][0])
        return [*path[::-1], *[end] * self.more]

    def ways_to(self, ends: Iterable[At]) -> Iterator[list[At]]:
        """Ways to these ends, on which each state lies that any way to one of them passes."""
        reached: list[dict[At, list[At]]] = [{end: [] for end in ends}]
        for layer in reversed(self.layers[1:]):
            before: dict[At, list[At]] = {}
            for state in reached[-1]:
                for parent in layer[state]:
                    before.setdefault(parent, []).append(state)
            reached.append(before)
        reached.reverse()
        seen: list[set[At]] = [set() for _ in reached]
        for number, states in enumerate(reached):
            for state in states:
                if state in seen[number]:
                    continue
                way = [state]
                for n in range(number, 0, -1):
                    way.insert(0, _rather_new(self.layers[n][way[0]], seen[n - 1]))
                for n in range(number, len(reached) - 1):
                    way.append(_rather_new(reached[n][way[-1]], seen[n + 1]))
                for passed, at in zip(seen, way, strict=True):
                    passed.add(at)
                yield [*way, *way[-1:] * self.more]


def _rather_new(states: list[At], seen: set[At]) -> At:
    return next((state for state in states if state not in seen), states[0])


def follow(
    stages: Sequence[Stage],
    starts: set[At],
    after: Callable[[set[At], Stage], set[At]],
    idle: Callable[[set[At], Stage], int],
    effort: Effort,
) -> set[At]:
    """The states that the stages lead to. idle: how many stages from this one on change nothing."""
    states, number = starts, 0
    while number < len(stages) and states:
        passed_over = idle(states, stages[number])
        if not passed_over:
            states = after(states, stages[number])
            effort.spend(len(states), len(states))
        number += passed_over or 1
    return states


def retrace(
    stages: Sequence[Stage],
    starts: set[At],
    after: Callable[[set[At], Stage], set[At]],
    settled: Callable[[set[At], Stage], bool],
    effort: Effort,
) -> Followed[At, Stage]:
    """The same, stage by stage and state by state, so that the ways to each end are known."""
    layers: list[dict[At, list[At]]] = [{start: [] for start in starts}]
    for stage in stages:
        if settled(set(layers[-1]), stage):
            break
        found: dict[At, list[At]] = {}
        for state in sorted(layers[-1], key=repr):
            for reached in after({state}, stage):
                found.setdefault(reached, []).append(state)
            effort.spend(1, len(found))
        layers.append(found)
    return Followed(set(layers[-1]), layers, stages)
