"""In which order to start the brokers, over all partitions: whom a plan waits for comes first."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise

from replication.decisions import commands
from replication.decisions.choosing import ELECT, START, Choice
from replication.decisions.plan import Plan

# The partition's place in the answer, the broker that has to lead it first, the one that waits.
Wait = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class StartOrder:
    """brokers: all that are to start, in an order that keeps every plan; none where no plan has one
    wait, None where there is no such order. ring: then brokers of which each has to lead before the
    next one starts, and the last one before the first, with the places of the partitions that say
    so. early: who starts before the leader that its plan would rather have first, and destroys
    nothing by that."""

    brokers: list[int] | None
    ring: list[tuple[int, int, list[int]]]
    early: list[Wait] = field(default_factory=list)


def start_order(
    planned: Sequence[tuple[Choice, Plan]],
    down: AbstractSet[int] = frozenset(),
    away: AbstractSet[int] = frozenset(),
) -> StartOrder:
    """The order that all plans together leave. down: all brokers that are to start in the end;
    away: those that stay down."""
    waits: list[Wait] = [
        (place, choice.replica, n.broker)
        for place, (choice, plan) in enumerate(planned)
        if choice.replica is not None and choice.advice in (START, ELECT)
        for n in plan.not_yet
        if n.broker not in away
    ]
    # In which order the steps of the plans have them: kept as far as the others leave it.
    steps: list[Wait] = [
        (place, choice.replica, step.broker)
        for place, (choice, plan) in enumerate(planned)
        for step in plan.steps
        if step.action == commands.FOLLOW and choice.replica is not None and step.broker is not None
    ]
    before: dict[int, set[int]] = {}
    for _, first, then in waits:
        before.setdefault(first, set())
        before.setdefault(then, set()).add(first)
    for broker in down if before else ():
        before.setdefault(broker, set())
    order: list[int] = []
    while len(order) < len(before):
        ready = [b for b in before if b not in order and before[b] <= set(order)]
        if not ready:
            return StartOrder(None, _ring(waits, {b: before[b] - set(order) for b in before}))
        late = {then for _, first, then in steps if first not in order}
        order.append(min(ready, key=lambda b: (b in late, b)))
    early = [
        (place, first, then)
        for place, first, then in steps
        if {first, then} <= {*order} and order.index(then) < order.index(first)
    ]
    return StartOrder(order, [], early)


def keep_order(plan: Plan, order: Sequence[int]) -> None:
    """Puts the steps that start followers in the order of all plans: to their own plan it makes no
    difference which of them is first."""
    places = [n for n, step in enumerate(plan.steps) if step.action == commands.FOLLOW]
    last = len(order)
    steps = sorted(
        (plan.steps[n] for n in places),
        key=lambda s: order.index(s.broker) if s.broker in order else last,
    )
    for place, step in zip(places, steps, strict=True):
        plan.steps[place] = step


def _ring(waits: list[Wait], before: dict[int, set[int]]) -> list[tuple[int, int, list[int]]]:
    """One ring: from a broker that waits back to whom it waits for, until one comes again."""
    path = [min(b for b in before if before[b])]
    while path[-1] not in path[:-1]:
        path.append(min(before[path[-1]]))
    ring = path[path.index(path[-1]) :][::-1]
    return [
        (first, then, [place for place, a, b in waits if (a, b) == (first, then)])
        for first, then in pairwise(ring)
    ]
