"""Which topics bore a name one after the other, and from when to when."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from replication.evidence.broker_logs.births import Births
from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.collecting.collection import BrokerDirectory
from replication.evidence.joining.broker_lines import BrokerLines
from replication.evidence.joining.lives_side_by_side import lives_of_topic
from replication.evidence.joining.one_cluster import INTERNAL, ClusterEvidence
from replication.evidence.joining.repeated_lines import each_once
from replication.evidence.joining.topic_lives import (
    Life,
    Lifetime,
    Stretch,
    lifetimes_of_lives,
    stretches,
)

# Kafka's tools refuse to: where one of these begins anew, ZooKeeper had been emptied.
_NEVER_DELETED = frozenset(("__consumer_offsets", "__transaction_state"))
# Created and deleted at, where that is known, by topic id.
_Times = dict[str, tuple[int | None, int | None]]


@dataclass(frozen=True, slots=True)
class Incarnations:
    """lifetimes: by name, oldest first. created_anew: lives that brokers' lines alone tell.
    undated: names whose lifetimes are by a clock that no other may be held against."""

    lifetimes: dict[str, list[Lifetime]] = field(default_factory=dict)
    created_anew: dict[str, list[Life]] = field(default_factory=dict)
    undated: frozenset[str] = frozenset()

    def of(self, topic: str) -> list[Lifetime]:
        """Those of a name, oldest first."""
        return self.lifetimes.get(topic, [])

    def at(self, topic: str, at: int | None) -> str:
        """The topic id that bore the name at a moment; the last one where nothing tells."""
        known = self.of(topic)
        if not known:
            return ""
        if at is not None and topic not in self.undated:
            for topic_id, created, deleted in known:
                if (created is None or created <= at) and (deleted is None or at < deleted):
                    return topic_id
        return known[-1][0]

    def is_deleted(self, topic: str, topic_id: str) -> bool:
        """Whether it was deleted, by all that tells."""
        lifetimes = [gone for i, _, gone in self.of(topic) if i == topic_id]
        deleted = lifetimes[-1:] not in ([], [None])
        lives = self.created_anew.get(topic, [])
        if lives and lives[-1].topic_id == topic_id:
            return deleted  # What its lines were cut into is one life.
        for life, following in pairwise(lives):
            # Epochs alone that begin anew do not say what became of the logs before.
            if life.topic_id == topic_id:
                deleted = life.ends_deleted or (
                    following.begins_empty
                    and topic not in _NEVER_DELETED
                    and not following.is_after_new_zookeeper(life)
                )
        return deleted


def incarnations(cluster: ClusterEvidence, brokers: dict[int, BrokerLines]) -> Incarnations:
    """All that the evidence tells of topics that were deleted and created anew.

    Without the metadata log an incarnation is as old as the first line that names it, and gone
    when a later one exists or when its directories are set aside.
    """
    created_anew = _created_anew(cluster, brokers)
    found = _recorded(cluster)
    first_seen = _first_printed(cluster.logs)
    for log in cluster.logs:
        for writer, topic, printed in log.topic_ids:
            if writer is not None or log.broker is not None:
                found.setdefault(topic, {}).setdefault(printed, (None, None))
    set_aside: set[str] = set()
    for p in (p for d in cluster.directories for p in d.directory.partitions):
        if p.topic_id:
            found.setdefault(p.topic, {}).setdefault(p.topic_id, (None, None))
            if p.kind in ("deleted", "stray"):
                set_aside.add(p.topic_id)
            for life in created_anew.get(p.topic, ()):
                if not life.topic_id and p.path.name in life.set_aside:
                    life.topic_id = p.topic_id
    recorded = set(_recorded(cluster))
    result = {name: _lifetimes(ids, first_seen, set_aside) for name, ids in found.items()}
    for name, lives in created_anew.items():
        last_seen = _last_seen(cluster.directories, name)
        ids = _by_age(found.get(name, {}), first_seen, set_aside, last_seen)
        result[name] = lifetimes_of_lives(lives, ids)
    undated = frozenset() if cluster.clocks_compare else frozenset(result) - recorded
    return Incarnations(result, created_anew, undated)


def _created_anew(
    cluster: ClusterEvidence, brokers: dict[int, BrokerLines]
) -> dict[str, list[Life]]:
    """The lives of topics that the brokers' lines show to have been created anew.

    Where the metadata log tells of a topic, it decides.
    """
    signs = Births()
    for log in cluster.logs:
        signs.add(log.births, log.broker)
    history = cluster.history
    told = {life.name for life in history.topics.values()} if history is not None else set()
    result: dict[str, list[Life]] = {}
    for topic in sorted(signs.topics() - told - INTERNAL):
        ordered = {broker: lines.of_topic(topic) for broker, lines in brokers.items()}
        facts = {b: list(each_once(f for _, f in found)) for b, found in ordered.items() if found}
        lives = lives_of_topic(_stretches(facts), compare=cluster.clocks_compare)
        if len(lives) > 1:
            result[topic] = lives
    return result


def _stretches(facts: dict[int, list[LogLineFact]]) -> dict[int, list[Stretch]]:
    """Each broker's lines about a topic, cut into lives; where others saw more, by weaker signs."""
    found = {broker: stretches(lines) for broker, lines in facts.items()}
    most = max((len(cut) for cut in found.values()), default=0)
    for broker, lines in facts.items():
        if len(found[broker]) < most:
            cut = stretches(lines, others=True)
            found[broker] = cut if len(cut) <= most else found[broker]
    return found


def _recorded(cluster: ClusterEvidence) -> dict[str, _Times]:
    """By name what the controllers' records say, or else their lines."""
    found: dict[str, _Times] = {}
    if cluster.history is not None:
        for topic_id, life in cluster.history.topics.items():
            found.setdefault(life.name, {})[topic_id] = (life.created_at, life.deleted_at)
    for kept in cluster.zookeeper.topics if cluster.zookeeper is not None else ():
        if kept.topic_id:
            times = (kept.created_at, kept.deleted_at)
            found.setdefault(kept.topic, {})[kept.topic_id] = times
    for topic, printed in _printed(cluster.logs).items():
        for topic_id, times in printed.items():
            found.setdefault(topic, {}).setdefault(topic_id, times)
    return found


def _printed(logs: Iterable[BrokerLog]) -> dict[str, _Times]:
    """By name what controllers print of topics that they create and remove (KRaft)."""
    found: dict[str, _Times] = {}
    for fact in (fact for log in logs for fact in log.processes):
        if fact.kind not in ("topic_created", "topic_removed") or fact.topic is None:
            continue
        times = found.setdefault(fact.topic, {})
        created, removed = times.get(str(fact.fields["topic_id"]), (None, None))
        if fact.kind == "topic_created":
            created = fact.at if created is None else created
        else:
            removed = fact.at if removed is None else removed
        times[str(fact.fields["topic_id"])] = (created, removed)
    return found


def _first_printed(logs: Iterable[BrokerLog]) -> dict[str, int]:
    """When each topic id was first printed, by lines of which it is known whose they are."""
    result: dict[str, int] = {}
    for log in logs:
        for (writer, _, printed), at in log.topic_ids.items():
            if at is not None and (writer is not None or log.broker is not None):
                result[printed] = min(at, result.get(printed, at))
    return result


def _last_seen(directories: Iterable[BrokerDirectory], topic: str) -> dict[str, int]:
    """The newest record beside each of a topic's ids, in the log directories that hold it."""
    result: dict[str, int] = {}
    for d in directories:
        times = [p.max_timestamp or 0 for p in d.directory.partitions]
        for p in d.directory.partitions:
            if p.topic == topic and p.topic_id:
                result[p.topic_id] = max(max(times), result.get(p.topic_id, 0))
    return result


def _by_age(
    ids: _Times, first_seen: dict[str, int], set_aside: set[str], last_seen: dict[str, int]
) -> list[str]:
    """A topic's ids, oldest first: those set aside, then as they were printed or had records."""
    return sorted(
        (i for i in ids if i),
        key=lambda i: (i not in set_aside, first_seen.get(i, last_seen.get(i, 0)), i),
    )


def _lifetimes(ids: _Times, first_seen: dict[str, int], set_aside: set[str]) -> list[Lifetime]:
    """One topic name's incarnations, oldest first, each gone when the next one came.

    A directory is set aside of a replica that was moved away, too: where the controllers' records
    tell when each was created, they decide.
    """
    recorded = all(created is not None for created, _ in ids.values())
    rows = []
    for topic_id, (created, deleted) in ids.items():
        rows.append((topic_id, created or first_seen.get(topic_id), deleted))
    rows.sort(key=lambda r: (recorded or r[0] not in set_aside, r[1] is not None, r[1] or 0, r[0]))
    result: list[Lifetime] = []
    for index, (topic_id, created, deleted) in enumerate(rows):
        following = rows[index + 1][1] if index + 1 < len(rows) else None
        if deleted is None and index + 1 < len(rows):
            deleted = following if following is not None else created
            if deleted is None and topic_id in set_aside:
                deleted = 0
        result.append((topic_id, created if index else None, deleted))
    return result
