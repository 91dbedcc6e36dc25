"""A random schedule of the machine: what the search of `preflight` does, and more of it."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from replication.foresight.failures import Failure
from replication.foresight.moves import Move, Spent, do, moves
from replication.foresight.search import Bound, is_settled
from replication.foresight.settings import Settings
from replication.foresight.worlds import Left, Node, after, lost, start
from replication.machine.machine_state import Impossible
from replication.machine.partition_machine import PartitionMachine
from replication.machine.states import logs_of

RECORDS, LAGS, PREFERRED, STEPS = 4, 4, 2, 30
WEIGHTS = {"produce": 6, "fetch": 10, "isr": 2, "start": 3, "fence": 3, "rejoin": 2}


@dataclass
class Walk:
    """Commands under settings from this first leader on, and the kinds of which they lost one."""

    settings: Settings
    failure: Failure
    leader: int
    moves: list[Move] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    spent: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.node = start(self.settings, self.failure, RECORDS, self.leader)
        self.looked_at = self.node.left._replace(records=Bound().records)
        self.node = replace(self.node, left=_more(self.node.left))

    def possible(self) -> list[Spent]:
        """What can happen next; nothing where no failure is left and the leader stays."""
        if is_settled(self.node):
            return []
        return list(moves(self.node, self.settings, self.failure))

    def go(self, move: Move, spends: str) -> None:
        """Does it, as far as it is possible."""
        self.node = _after(self.node, move, spends)
        self.moves.append(move)
        self.spent.append(spends)
        self.lost.update(lost(self.node))

    def text(self) -> str:
        """Its commands."""
        return "\n  ".join([f"leader {self.leader}", *(" ; ".join(move) for move in self.moves)])

    def beyond(self) -> list[str]:
        """What of it the search does not look at."""
        names = {"records": "records", "lags": "lags", "preferred": "moves of leadership"}
        found = [
            f"{used} {names[what]} where the search has {had}"
            for what in names
            if (used := self.spent.count(what)) > (had := getattr(self.looked_at, what))
        ]
        late = any("response=" in move[0] for move in self.moves)
        return [*found, *(["an answer to a fetch that is lost or late"] if late else [])]


def _more(left: Left) -> Left:
    return left._replace(lags=LAGS, preferred=PREFERRED)


def walk(settings: Settings, failure: Failure, seed: int) -> Walk:
    """The schedule of this seed."""
    chance = random.Random(seed)
    one = Walk(settings, failure, chance.choice((1, 1, settings.replicas)))
    for _ in range(STEPS):
        possible = one.possible()
        if not possible:
            break
        weights = [WEIGHTS.get(move[0].split()[0], 1) for move, _ in possible]
        move, spends = chance.choices(possible, weights)[0]
        if move[0].startswith("fetch") and chance.random() < 0.25:
            move = (_fetched_otherwise(one.node, move[0], chance),)
        one.go(move, spends)
    return one


def _fetched_otherwise(node: Node, line: str, chance: random.Random) -> str:
    """An answer that is lost, or that comes late."""
    name = line.split()[1]
    if node.world.brokers[_replica(node.machine, line)].in_flight is not None:
        return f"receive {name}"
    return f"{line} response={chance.choice(('lost', 'delayed'))}"


def _after(node: Node, move: Move, spends: str) -> Node:
    """The state after a move, in place: nobody comes back to the one before. What turns out to be
    impossible does not happen; the commands before it have."""
    machine = node.machine
    machine.world.steps.clear()
    try:
        for line in move:
            _do(machine, line)
    except Impossible:
        return replace(node, logs=logs_of(machine.world))
    left: Left = node.left
    if spends:
        left = left._replace(**{spends: getattr(left, spends) - 1})
    then = after(node, machine, left)
    if spends == "stops":
        then = replace(then, stopped=then.stopped | {_replica(machine, move[-1])})
    return then


def _replica(machine: PartitionMachine, line: str) -> int:
    name = line.split()[1]
    return next(r for r, n in machine.world.names.items() if n == name)


def _do(machine: PartitionMachine, line: str) -> None:
    if line.startswith("receive"):
        machine.receive(_replica(machine, line))
    elif "response=" in line:
        machine.fetch(_replica(machine, line), response=line.partition("response=")[2])
    else:
        do(machine, line)


def again(of: Walk, told: Sequence[Move]) -> Walk:
    """These of its commands, those left out that cannot happen then."""
    one = Walk(of.settings, of.failure, of.leader)
    for move in told:
        for candidate, spends in one.possible():
            if _shape(candidate) == _shape(move):
                otherwise = move[0].startswith("receive") or "response=" in move[0]
                one.go(move if otherwise else candidate, spends)
                break
    return one


def _shape(move: Move) -> tuple[str, ...]:
    """A move without what depends on the commands before: which record is written, and how."""
    lines = (line.replace("receive", "fetch", 1).partition(" response=")[0] for line in move)
    return tuple(
        " ".join(line.split()[:2]) if line.startswith("produce") else line for line in lines
    )


def shortened(one: Walk, kinds: set[str]) -> Walk:
    """Without each command without which a record of one of these kinds is lost as well."""
    at = 0
    while at < len(one.moves):
        less = again(one, [*one.moves[:at], *one.moves[at + 1 :]])
        if less.lost & kinds:
            one = less
        else:
            at += 1
    return one
