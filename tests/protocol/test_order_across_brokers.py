"""Which answers depend on how the events of different brokers are woven into one order.

Only whether brokers that were traced kept to the rules of their release does
(docs/decisions/order_across_brokers.md). Each kept incident is folded as its import ordered it, and
in orders drawn at random in which each broker's own events, and those of each kind that no broker
tells, stay in their order.
"""

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import fold_all, identity_of

INCIDENTS = Path(__file__).parents[1] / "incidents"
NAMES = sorted(path.name for path in INCIDENTS.iterdir() if path.is_dir())
# Judged step by step as the events come: a fetch that is folded before the append that it fetched
# looks like one that no rule allows. Only traces tell such steps.
IN_ORDER = "version_conformance"
Order = Callable[[list[Event], random.Random], list[Event]]


@cache
def events_of(incident: str) -> tuple[Event, ...]:
    return tuple(import_evidence([INCIDENTS / incident]).events())


def source_of(event: Event) -> object:
    """Whose own order an event stands in: a broker's, or that of its kind."""
    told_by = getattr(event.fact, "replica", None)
    return type(event.fact) if told_by is None else told_by


def woven_anew(events: list[Event], rng: random.Random) -> list[Event]:
    """The events of one topic partition, each source's in their own order, numbered anew."""
    of_source: dict[object, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.sequence):
        of_source[source_of(event)].append(event)
    turns = [source for source, own in of_source.items() for _ in own]
    rng.shuffle(turns)
    own = {source: iter(found) for source, found in of_source.items()}
    return [replace(next(own[source]), sequence=at) for at, source in enumerate(turns)]


def in_any_order(events: list[Event], rng: random.Random) -> list[Event]:
    """For comparison: no source's own order is kept either."""
    return [replace(event, sequence=at) for at, event in enumerate(rng.sample(events, len(events)))]


def reordered(events: tuple[Event, ...], order: Order, seed: int) -> list[Event]:
    by_partition: dict[Any, list[Event]] = defaultdict(list)
    for event in events:
        by_partition[identity_of(event)].append(event)
    rng = random.Random(seed)
    return [e for identity in sorted(by_partition) for e in order(by_partition[identity], rng)]


def answers(events: list[Event], strict: bool = False) -> dict[Any, Any]:
    """What is compared: verdicts with what they rest on, losses with cause, tier and status,
    divergences."""
    found: dict[Any, Any] = {}
    for folded in fold_all(events, strict=strict):
        where = folded.identity
        for v in folded.answer.verdicts:
            found[where, v["invariant"]] = (v["verdict"], v["assuming"])
        for kind, rows in (("losses", folded.answer.losses), ("d", folded.answer.divergences)):
            told = ("first_offset", "end_offset", "tier", "status", "cause", "contract", "replicas")
            found[where, kind] = [tuple(str(row.get(name)) for name in told) for row in rows]
    return found


def differing(incident: str, order: Order, seed: int, strict: bool = False) -> Counter[str]:
    """By invariant (or losses, divergences), how many answers are others in that order."""
    events = events_of(incident)
    told, other = answers(list(events), strict), answers(reordered(events, order, seed), strict)
    assert told.keys() == other.keys()
    return Counter(what for (where, what) in told if told[where, what] != other[where, what])


@pytest.mark.parametrize("incident", NAMES)
def test_no_verdict_loss_or_divergence_depends_on_the_order_across_brokers(incident: str) -> None:
    """In one order by default, in another strictly."""
    found = differing(incident, woven_anew, 1) + differing(incident, woven_anew, 2, strict=True)
    allowed = {IN_ORDER} if incident.endswith("__trace") else set()
    assert set(found) <= allowed


def test_each_broker_s_own_order_does_matter() -> None:
    found: Counter[str] = Counter()
    for incident in NAMES[-4:]:
        found += differing(incident, in_any_order, 1)
    assert set(found) > {IN_ORDER, "acknowledged_records_survive"}


def main(seeds: int) -> None:
    """Prints the figures of the page."""
    for order in (woven_anew, in_any_order):
        for strict in (False, True):
            found: Counter[str] = Counter()
            compared = 0
            for incident in NAMES:
                compared += seeds * len(answers(list(events_of(incident)), strict))
                for seed in range(seeds):
                    found += differing(incident, order, seed, strict)
            print(order.__name__, "strict" if strict else "default", compared, dict(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
