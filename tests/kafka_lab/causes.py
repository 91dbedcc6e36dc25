"""Why a record is gone, and whether it had been promised: from what was done and what was set.

Several causes are given where no single step made the difference: any of them is right then.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.kafka_lab.history import LeaderTerm, seconds_of
from tests.kafka_lab.lineage import Replicas
from tests.kafka_lab.logs_on_disk import Held
from tests.kafka_lab.versions import Version

UNCLEAN, STORAGE, LAST_STANDING = "unclean_election", "storage_loss", "last_replica_standing"
ACKS_ONE, TRUNCATION = "acks_one_failover", "truncate_to_high_watermark"
PREMATURE, EARLY_JOIN = "premature_high_watermark", "early_isr_join"
# A disk is empty a moment before that is noted; its broker is down since longer.
EMPTYING = 0.5
# By which a broker goes down; one that ends by itself may have been down for longer.
ENDS = ("kill9", "exited", "ended_by_itself")
BROKEN, NOT_PROMISED = "broken", "not_promised"


@dataclass(frozen=True)
class Settings:
    """Of the topic, and the release that keeps it."""

    version: Version
    min_insync_replicas: int = 1
    unclean: bool = False


@dataclass(frozen=True)
class StorageLoss:
    """A disk that was cut or emptied while its broker was down: at some time of it, as an operator
    sees it, who is not told when."""

    at: float
    broker: int
    # None: everything that it held.
    removed: frozenset[str] | None
    down_since: float | None = None


@dataclass
class Why:
    """What may be named as cause and as contract, without a difference to anybody."""

    causes: set[str] = field(default_factory=set)
    contracts: set[str] = field(default_factory=set)


def storage_losses(actions: list[dict[str, Any]], partition: int) -> list[StorageLoss]:
    found = []
    stopped: dict[int, float] = {}
    for action in actions:
        at, broker = seconds_of(action["ts"]), action.get("broker")
        if action["action"] in ENDS:
            stopped[broker] = at
        elif "removed" in action and action.get("partition", partition) == partition:
            removed = frozenset(action["removed"])
            found.append(StorageLoss(at, broker, removed, stopped.get(broker)))
        elif action["action"] == "empty_disk" and _emptied(action, partition):
            found.append(StorageLoss(at, broker, None, stopped.get(broker)))
    return found


def _emptied(action: dict[str, Any], partition: int) -> bool:
    """Whether that disk held the partition, as runs tell whose brokers have several."""
    number = f"-{partition}"
    return "emptied" not in action or any(name.endswith(number) for name in action["emptied"])


@dataclass(frozen=True)
class Loss:
    """A record that is missing from the log of `term`'s leader as it takes up leadership at `at`.

    `promised`: it was committed, or acknowledged at acks=all. `again`: the leader had led in that
    term already, and was started anew.
    """

    held: Held
    since: float
    at: float
    term: LeaderTerm
    promised: bool
    again: bool = False


def why(loss: Loss, replicas: Replicas, storage: list[StorageLoss], settings: Settings) -> Why:
    found = Why()
    lossy = _lossy(loss, replicas, storage)
    # Of who was down at the election nobody can tell whether its disk was lost by then.
    perhaps = lossy | _lossy_while_down(loss, replicas, storage)
    leader, term = loss.term.leader, loss.term
    again = loss.again
    before = term.isr_at(loss.at) if again or term.before is None else term.waited_for
    unclean = term.unclean and not again
    of_storage = LAST_STANDING if len(before) < settings.min_insync_replicas > 1 else STORAGE
    if leader in lossy:
        found.causes.add(of_storage)
    if unclean:
        found.causes.add(UNCLEAN)
        if perhaps & set(before):
            found.causes.add(of_storage)
        only_there = set(before) <= lossy and leader not in lossy
        if only_there and _cuts_to_high_watermark(settings) and _held_before(loss, replicas):
            found.causes.add(TRUNCATION)
    if not found.causes and not loss.promised:
        found.causes.add(ACKS_ONE)
        if lossy:
            found.causes.add(of_storage)
    by_failover = found.causes <= {ACKS_ONE, of_storage} and leader not in lossy and not unclean
    if by_failover and _held_before(loss, replicas) and _cuts_to_high_watermark(settings):
        found.causes.add(TRUNCATION)
    if not found.causes:
        found.causes |= {PREMATURE, EARLY_JOIN}
    for cause in found.causes:
        for many in (lossy, perhaps):
            found.contracts.add(_contract(cause, loss.promised, len(many), settings))
    return found


def _lossy(loss: Loss, replicas: Replicas, storage: list[StorageLoss]) -> set[int]:
    """Brokers whose disks lost the record before it was missed."""
    return {
        one.broker
        for one in storage
        if one.at < loss.at
        and (
            loss.held.payload_id in one.removed
            if one.removed is not None
            else _had(replicas, one, loss.held)
        )
        and loss.held not in replicas.at(one.broker, loss.at)
    }


def _lossy_while_down(loss: Loss, replicas: Replicas, storage: list[StorageLoss]) -> set[int]:
    """Brokers that held the record when it was missed, and were down, and came back without."""
    return {
        one.broker
        for one in storage
        if one.down_since is not None
        and one.down_since < loss.at <= one.at
        and (one.removed is None or loss.held.payload_id in one.removed)
        and loss.held in replicas.at(one.broker, loss.at)
    }


def _had(replicas: Replicas, emptied: StorageLoss, held: Held) -> bool:
    """Whether an emptied disk held the record, or what compaction had left in its place."""
    begins = emptied.at - EMPTYING
    log = replicas.at(emptied.broker, begins)
    # It may have come by it just before it went down, when nobody had looked again by then.
    log |= replicas.held_within(emptied.broker, begins, emptied.at)
    first = replicas.first_seen(emptied.broker, held)
    return held in log or (
        first is not None
        and first < emptied.at
        and any(one.key == held.key and one.offset > held.offset for one in log)
    )


def _held_before(loss: Loss, replicas: Replicas) -> bool:
    """Whether the leader may have had it: of what came and went between two looks nobody knows."""
    if not any(replicas.first_seen(broker, loss.held) for broker in replicas.brokers):
        return True
    first = replicas.first_seen(loss.term.leader, loss.held)
    return first is not None and first < loss.at


def _cuts_to_high_watermark(settings: Settings) -> bool:
    """Whether followers do, before KIP-101."""
    return not settings.version.at_least(0, 11)


def _contract(cause: str, promised: bool, lossy: int, settings: Settings) -> str:
    if not promised or cause == ACKS_ONE:
        return NOT_PROMISED
    if cause == UNCLEAN:
        return NOT_PROMISED if settings.unclean else BROKEN
    if cause in (STORAGE, LAST_STANDING):
        return NOT_PROMISED if lossy >= settings.min_insync_replicas else BROKEN
    return BROKEN
