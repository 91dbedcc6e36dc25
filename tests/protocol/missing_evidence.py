"""Facts taken out of a trace, declared missing or without a word: what refinement withholds."""

import random
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import replace

from replication.protocol.ground import events as ev

Facts = tuple[ev.Fact, ...]
SUBJECTS = {
    "acknowledgements": "acknowledgements",
    "consumptions": "consumptions",
    "controller": "controller_history",
}


def source_of(fact: ev.Fact) -> Hashable:
    """Whose evidence a fact is: a broker's number, the controller's, the clients'; None: given."""
    match fact:
        case ev.PartitionDescribed() | ev.CoverageDeclared():
            return None
        case ev.LeadershipRecorded():
            return "controller"
        case ev.RecordsAcknowledged():
            return "acknowledgements"
        case ev.RecordsConsumed():
            return "consumptions"
        case ev.FetchRequested():
            return fact.leader
    return getattr(fact, "replica", None)


def without(facts: Facts, gone: frozenset[int]) -> Facts:
    """The trace without the facts at these places, and with what is missing declared."""
    sources = {source_of(facts[place]) for place in gone}
    left: list[ev.Fact] = []
    for place, fact in enumerate(facts):
        if place in gone:
            continue
        if isinstance(fact, ev.CoverageDeclared):
            traced = fact.subject == "replica_trace" and fact.replica in sources
            if traced or any(SUBJECTS.get(str(s)) == fact.subject for s in sources):
                fact = replace(fact, complete=False)
        left.append(fact)
    return tuple(left)


def removals(facts: Facts, chance: random.Random) -> Iterator[frozenset[int]]:
    """Ways to strip a trace: all, the first, the last, one or some of a source; some of any."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for place, fact in enumerate(facts):
        if source_of(fact) is not None:
            places[source_of(fact)].append(place)
    for known in places.values():
        cut = chance.randrange(len(known))
        yield frozenset(known)
        yield frozenset(known[cut:])
        yield frozenset(known[: cut + 1])
        yield frozenset({known[cut]})
        yield frozenset(p for p in known if chance.random() < 0.5)
    every = [p for known in places.values() for p in known]
    yield frozenset(chance.sample(every, chance.randint(1, min(6, len(every)))))
    yield frozenset(p for p in every if chance.random() < 0.5)


def silently_without(facts: Facts, gone: frozenset[int]) -> Facts:
    """The trace without the facts at these places, and without any word on their sources."""
    sources = {source_of(facts[place]) for place in gone}
    silent = {SUBJECTS.get(str(s)) for s in sources}
    return tuple(
        fact
        for place, fact in enumerate(facts)
        if place not in gone
        and not (
            isinstance(fact, ev.CoverageDeclared)
            and (
                fact.subject in silent
                or (fact.subject == "replica_trace" and fact.replica in sources)
            )
        )
    )
