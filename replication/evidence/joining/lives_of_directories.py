"""Which of the topics of one name each copied replica is of.

Its partition.metadata tells, where it has one: a follower of 2.8 has none, and older releases know
no topic ids. Then the same batches as in a replica of a known life tell; then the line by which its
broker renamed it, to delete it; then when it was seen beside its broker, by lines of a digest; then
what lies beside it; and only then the time of its newest record, which a producer that tried again
may have made before the topic was there.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from replication.evidence.collecting.collection import BrokerDirectory
from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.topic_lives import life_of_directory
from replication.evidence.log_directories.digest_lines import SeenDirectory
from replication.evidence.log_directories.log_directory import PartitionDirectory

# So many batches from the log's start are compared.
_COMPARED = 1_000
_Replica = tuple[BrokerDirectory, PartitionDirectory]
_Lives = dict[Path, str | None]
_Rule = Callable[[_Replica, _Lives, Incarnations], str | None]


def lives_of_directories(
    directories: Iterable[BrokerDirectory], incarnations: Incarnations
) -> _Lives:
    """Topic ids by the replicas' paths; None where the name was used again and nothing tells."""
    replicas = [(d, p) for d in directories for p in d.directory.partitions]
    found: _Lives = {}
    for _, p in replicas:
        if p.topic_id is not None:
            found[p.path] = p.topic_id
        elif len(incarnations.of(p.topic)) < 2:
            found[p.path] = incarnations.at(p.topic, None)
    by_topic: dict[tuple[str, int], list[_Replica]] = {}
    for replica in replicas:
        by_topic.setdefault((replica[1].topic, replica[1].partition), []).append(replica)
    for alike in by_topic.values():
        if any(p.path not in found for _, p in alike):
            _told_apart(alike, found, incarnations)
    return found


def _told_apart(alike: list[_Replica], found: _Lives, incarnations: Incarnations) -> None:
    """Decides the replicas of one partition, by the surest sign first."""
    batches = {p.path: batches_of(p) for _, p in alike}
    _by_batches(batches, found)
    # What the third tells of a deleted log, the second is asked of those beside it once more.
    rules: tuple[_Rule, ...] = (
        _as_renamed, _as_seen, _beside_a_deleted_one, _by_time, _beside_a_deleted_one,
    )  # fmt: skip
    for rule in rules:
        for d, p in alike:
            life = rule((d, p), found, incarnations) if p.path not in found else None
            if life is not None:
                found[p.path] = life
        _by_batches(batches, found)
    for path in batches:
        found.setdefault(path, None)


def batches_of(directory: PartitionDirectory) -> frozenset[tuple[int, int, int]]:
    """(base offset, CRC, size in bytes) of the first batches: no two topics have one in common."""
    read = islice(directory.iter_batches(), _COMPARED)
    return frozenset((b.base_offset, b.crc, b.size) for b in read)


def _by_batches(batches: dict[Path, frozenset[tuple[int, int, int]]], found: _Lives) -> None:
    """Decides replicas that share batches with those of one known life alone, and so on."""
    again = True
    while again:
        again = False
        for path, mine in batches.items():
            known = ((found[o], theirs) for o, theirs in batches.items() if o in found)
            lives = {life for life, theirs in known if mine & theirs}
            if path not in found and len(lives) == 1:
                found[path] = lives.pop()
                again = True


def _as_renamed(replica: _Replica, found: _Lives, incarnations: Incarnations) -> str | None:
    """The life in which lines say that it was set aside under its present name."""
    p = replica[1]
    lives = incarnations.created_anew.get(p.topic, []) if p.kind == "deleted" else []
    return next((life.topic_id for life in lives if p.path.name in life.set_aside), None)


def _as_seen(replica: _Replica, found: _Lives, incarnations: Incarnations) -> str | None:
    """The life that had begun on its own broker when it was seen, as long as it was seen so."""
    d, p = replica
    lives = incarnations.created_anew.get(p.topic, [])
    undated = p.topic in incarnations.undated
    if not isinstance(p, SeenDirectory) or p.kind != "replica" or undated:
        return None
    begun = [
        (stretch.first_at, life.topic_id)
        for life in lives
        if (stretch := life.stretches.get(d.broker)) is not None and stretch.first_at is not None
    ]
    then = [max((b for b in begun if b[0] <= at), default=None) for at in (p.told_at, p.read_at)]
    return then[0][1] if then[0] is not None and then[0] == then[1] else None


def _beside_a_deleted_one(
    replica: _Replica, found: _Lives, incarnations: Incarnations
) -> str | None:
    """Beside the directory of an earlier life that is being deleted lies the one of a later."""
    beside, p = replica
    known = [topic_id for topic_id, _, _ in incarnations.of(p.topic)]
    earlier = {
        life
        for other in beside.directory.partitions
        if (other.topic, other.partition, other.kind) == (p.topic, p.partition, "deleted")
        and (life := found.get(other.path)) in known
    }
    if p.kind != "replica" or not earlier:
        return None
    later = known[max(known.index(life) for life in earlier if life is not None) + 1 :]
    return later[0] if len(later) == 1 else None


def _by_time(replica: _Replica, found: _Lives, incarnations: Incarnations) -> str | None:
    p = replica[1]
    if p.topic not in incarnations.created_anew:
        return None
    by_time = p.topic not in incarnations.undated
    return life_of_directory(p, incarnations.of(p.topic), by_time=by_time)
