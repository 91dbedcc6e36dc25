"""Which incarnation of a partition clients' acknowledgements and consumptions are of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from replication.evidence.clients.client_logs import Acknowledgement, Consumption
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.incarnations import (
    incarnations_of_promises,
    payloads_by_incarnation,
)
from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.one_cluster import Key

PromiseT = TypeVar("PromiseT", Acknowledgement, Consumption)


@dataclass(frozen=True, slots=True)
class Placed(Generic[PromiseT]):
    """Promises by what they are of. unsure: (topic, partition) of those that cannot be told."""

    by_incarnation: dict[Key, list[PromiseT]] = field(default_factory=dict)
    unsure: frozenset[tuple[str, int]] = frozenset()


def placed(
    promises: Iterable[PromiseT],
    incarnations: Incarnations,
    copies: Mapping[Key, Sequence[Copy]],
) -> Placed[PromiseT]:
    """Every promise that can be placed. Only failed sends may be left out without a word."""
    result: dict[Key, list[PromiseT]] = {}
    unsure: set[tuple[str, int]] = set()
    mixed: dict[tuple[str, int], list[PromiseT]] = {}
    for promise in promises:
        mixed.setdefault((promise.topic, promise.partition), []).append(promise)
    for (topic, number), mine in mixed.items():
        order = [topic_id for topic_id, _, _ in incarnations.of(topic)]
        standing: dict[str, set[str]] = {}
        if len(order) > 1 and any(not p.topic_id for p in mine):
            held = [(i, c) for i in order for c in copies.get((topic, i, number), ())]
            standing = payloads_by_incarnation(held, {p.payload_id or "" for p in mine})
        for promise, topic_id in incarnations_of_promises(mine, order, standing, incarnations.at):
            if topic_id is not None:
                result.setdefault((topic, topic_id, number), []).append(promise)
            elif isinstance(promise, Consumption) or promise.status == "acked":
                unsure.add((topic, number))
    return Placed(result, frozenset(unsure))


def said_of_unsure(unsure: Iterable[tuple[str, int]]) -> list[str]:
    """A note on each partition of which some promises could not be used."""
    return [
        f"{topic}-{number}: the topic was created anew, and nobody can tell to "
        "which of its lives some lines of clients' logs belong; those lines were "
        "not used"
        for topic, number in sorted(unsure)
    ]
