"""The shortest history under which settings lose a record: breadth first over the machine.

Every state that can be reached is looked at, up to a bound; a loss that is found is a shortest one.
"""

import time
from collections import deque
from dataclasses import dataclass, field

from replication.foresight.failures import Failure
from replication.foresight.moves import Move, act, moves
from replication.foresight.settings import Settings
from replication.foresight.worlds import KINDS, Node, key, lost, start
from replication.machine.states import valid_leader

MOST_THAT_END = 3
STATES, STATES_OF_MORE = 20_000, 5_000


@dataclass(frozen=True, slots=True)
class Bound:
    """How far a search goes. records: that clients write; states: that are looked at at most, by
    default as many as three replicas take to the end, and fewer of more, which do not end."""

    records: int = 1
    states: int | None = None

    def states_of(self, replicas: int) -> int:
        """How many states of a world of so many replicas are looked at at most."""
        if self.states is not None:
            return self.states
        return STATES if replicas <= MOST_THAT_END else STATES_OF_MORE


@dataclass(frozen=True, slots=True)
class History:
    """How records are lost: which of so many replicas leads at first, and the moves from there."""

    replicas: int
    leader: int
    moves: tuple[Move, ...]


@dataclass(slots=True)
class Found:
    """What a search found. lost: kind of records -> a shortest history that loses one. states: how
    many were looked at. steps: every history of so many moves was, None where all of them were.
    """

    states: int
    steps: int | None
    lost: dict[str, History] = field(default_factory=dict)
    seconds: float = 0.0


def search(
    settings: Settings,
    failure: Failure,
    bound: Bound,
    kinds: tuple[str, ...] = KINDS,
    *,
    first_only: bool = False,
) -> Found:
    """Looks for a loss of each of the kinds; first_only: of any one of them."""
    began = time.process_time()
    undecided, most = frozenset(kinds), bound.states_of(settings.replicas)
    came: dict[bytes, tuple[bytes, Move] | int] = {}
    waiting: deque[tuple[Node, bytes, int]] = deque()
    for leader in sorted({1, settings.replicas}):
        first = start(settings, failure, bound.records, leader)
        at = key(first, undecided)
        came[at] = leader
        waiting.append((first, at, 0))
        all_of_it = first.left.failures_and_stops
    found = Found(0, None)
    while waiting and undecided and found.steps is None:
        node, at, length = waiting.popleft()
        for move, spends in moves(node, settings, failure):
            then = act(node, move, spends)
            if then is None:
                continue
            there = key(then, undecided)
            if there in came:
                continue
            if len(came) >= most:
                found.steps = length
                break
            came[there] = (at, move)
            for kind in lost(then) if then.left.failures_and_stops < all_of_it else ():
                if kind in undecided:
                    found.lost[kind] = _way(came, there, settings.replicas)
                    undecided -= frozenset(kinds) if first_only else {kind}
            if not is_settled(then):
                waiting.append((then, there, length + 1))
    found.states = len(came)
    found.seconds = time.process_time() - began
    return found


def is_settled(node: Node) -> bool:
    """Whether nothing can be lost any more: no failure is left, a leader leads that no election
    can replace, and nobody else believes that it leads. A leader never cuts its log."""
    world, left = node.world, node.left
    leader = valid_leader(world)
    if left.failures_and_stops or leader is None or leader.isolated:
        return False
    if left.preferred and leader.replica != world.assigned_replicas[0]:
        return False
    return all(b.role != "leader" or b is leader for b in world.brokers.values())


def _way(came: dict[bytes, tuple[bytes, Move] | int], at: bytes, replicas: int) -> History:
    steps: list[Move] = []
    step = came[at]
    while not isinstance(step, int):
        at, move = step
        steps.append(move)
        step = came[at]
    return History(replicas, step, tuple(reversed(steps)))
