"""Changes of settings that close a loss: the fewest, then the cheapest, each with its price.

Whether a change closes a loss is asked of the machine as the loss was: first by the histories that
lost records under other settings, then by a search of its own.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from replication.foresight.failures import Failure
from replication.foresight.moves import act
from replication.foresight.search import Bound, History, search
from replication.foresight.settings import Settings
from replication.foresight.worlds import PROMISED, lost, start
from replication.protocol.ground.versions import NEWEST_KNOWN, behaviour, parse_version

MOST_CHANGES = 3
# A search that does not end within its bound proves nothing: after so many no more are made.
MOST_UNENDED = 1
ENOUGH_REPLICAS = 3
LAST_WITH_ZOOKEEPER = "3.9.1"


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what to set, the sentence of its price, and the settings after it."""

    name: str
    price: str
    field: str
    values: tuple[tuple[str, object], ...]

    def apply(self, settings: Settings) -> Settings:
        """The settings with this change."""
        return replace(settings, **dict(self.values))  # type: ignore[arg-type]


def candidates(settings: Settings) -> list[Change]:
    """What can be changed, the cheapest first."""
    return [
        *_unclean(settings),
        *_min_insync(settings),
        *_eligible(settings),
        *_racks(settings),
        *_releases(settings),
        *_more_replicas(settings),
        *_flushed(settings),
    ]


def _unclean(settings: Settings) -> Iterator[Change]:
    if settings.unclean:
        yield Change(
            "unclean.leader.election.enable=false",
            "with no member of the ISR alive nobody leads until one is back: no writes, no reads",
            "unclean",
            (("unclean", False),),
        )


def _min_insync(settings: Settings) -> Iterator[Change]:
    # With as many as there are replicas the absence of any one of them ends all writes.
    for least in range(settings.min_insync_replicas + 1, max(settings.replicas, ENOUGH_REPLICAS)):
        yield Change(
            f"min.insync.replicas={least}",
            f"acks=all writes are refused (NOT_ENOUGH_REPLICAS) while fewer than {least} replicas "
            "are in the ISR",
            "min_insync_replicas",
            (("min_insync_replicas", least),),
        )


def _eligible(settings: Settings) -> Iterator[Change]:
    known = behaviour(
        settings.kafka_version, settings.inter_broker_version, controller=settings.controller
    )
    possible = known.has("eligible_leader_replicas_known") and settings.controller == "kraft"
    if possible and not settings.eligible:
        yield Change(
            "eligible.leader.replicas.version=1",
            "a partition may wait without a leader for an eligible replica, where before the last "
            "member of the ISR would have led with less",
            "eligible",
            (("eligible", True),),
        )


def _racks(settings: Settings) -> Iterator[Change]:
    if settings.racks and len(set(settings.racks)) < settings.replicas:
        yield Change(
            "each replica in a rack of its own",
            "replicas are moved, which copies them",
            "racks",
            (("racks", tuple(range(settings.replicas))),),
        )


def _more_replicas(settings: Settings) -> Iterator[Change]:
    """Three. A fourth may lag as the others do."""
    more = ENOUGH_REPLICAS - settings.replicas
    if more <= 0:
        return
    racks = settings.racks
    if racks:
        racks = (*racks, *range(max(racks) + 1, max(racks) + 1 + more))
    yield Change(
        f"{ENOUGH_REPLICAS} replicas",
        f"{more} more {'copy' if more == 1 else 'copies'} of every record, on disks and on the "
        "network",
        "replicas",
        (("replicas", ENOUGH_REPLICAS), ("racks", racks)),
    )


def _flushed(settings: Settings) -> Iterator[Change]:
    if not settings.flushed:
        yield Change(
            "flush.messages=1",
            "each write waits until leader and followers have it on their disks: far fewer writes "
            "a second",
            "flushed",
            (("flushed", True),),
        )


def _releases(settings: Settings) -> Iterator[Change]:
    here = parse_version(settings.kafka_version)
    last = parse_version(LAST_WITH_ZOOKEEPER)
    if here < last:
        yield Change(
            f"Kafka {LAST_WITH_ZOOKEEPER}",
            "an upgrade of every broker",
            "release",
            (("kafka_version", LAST_WITH_ZOOKEEPER), ("inter_broker_version", None)),
        )
    newest = f"{NEWEST_KNOWN}.0"
    if here < parse_version(newest) and not settings.eligible:
        yield Change(
            f"Kafka {newest} (KRaft) with eligible leader replicas",
            "an upgrade of every broker"
            + ("" if settings.controller == "kraft" else ", and the migration from ZooKeeper"),
            "release",
            (
                ("kafka_version", newest),
                ("inter_broker_version", None),
                ("controller", "kraft"),
                ("eligible", True),
            ),
        )


def closing(
    settings: Settings, failure: Failure, bound: Bound, losing: list[History]
) -> list[Change] | None:
    """The fewest changes under which nothing promised is lost, None where none of up to three are.

    losing: histories that lose something promised under these settings.
    """
    known, unended = list(losing), 0
    possible = [c for c in candidates(settings) if c.field != "racks" or failure.together == "rack"]
    for count in range(1, MOST_CHANGES + 1):
        for chosen in itertools.combinations(possible, count):
            if len({c.field for c in chosen}) < count or not _makes_sense(settings, chosen):
                continue
            then = settings
            for change in chosen:
                then = change.apply(then)
            if any(_loses(then, failure, history) for history in known):
                continue
            found = search(then, failure, bound, PROMISED, first_only=True)
            if not found.lost and found.steps is None:
                return list(chosen)
            known += found.lost.values()
            unended += not found.lost
            if unended == MOST_UNENDED:
                return None
    return None


def _makes_sense(settings: Settings, chosen: tuple[Change, ...]) -> bool:
    """Whether one replica at least may be away from an ISR that acks=all is answered by."""
    then = settings
    for change in chosen:
        then = change.apply(then)
    return then.min_insync_replicas <= max(settings.min_insync_replicas, then.replicas - 1)


def _loses(settings: Settings, failure: Failure, history: History) -> bool:
    """Whether the same commands lose something promised under these settings."""
    if history.replicas > settings.replicas:
        return False
    node = start(settings, failure, 9, history.leader)
    for move in history.moves:
        kept = settings.flushed and any("kind=power" in line for line in move)
        then = None if kept else act(node, move, "")
        if then is None:
            return False
        node = then
        if any(kind in PROMISED for kind in lost(node)):
            return True
    return False
