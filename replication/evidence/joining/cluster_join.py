"""Joins one cluster's evidence: what belongs to which partition, in whose order.

Each step takes values and gives values; here they follow one another, and what they found of each
incarnation of each topic partition is put together.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.packed_facts import PackedLines
from replication.evidence.clients.client_logs import Acknowledgement, Consumption
from replication.evidence.collecting.broker_text_log import LIFE_KINDS, BrokerLog
from replication.evidence.collecting.collection import Collection
from replication.evidence.joining.broker_lines import BrokerLines, deleted_by, lines_by_broker
from replication.evidence.joining.clients_promises import Placed, placed, said_of_unsure
from replication.evidence.joining.cluster_facts import ClusterFacts, broker_settings, facts_of
from replication.evidence.joining.controllers_history import (
    RecordedHistory,
    from_metadata_log,
    from_znodes,
)
from replication.evidence.joining.copied_replicas import (
    copied_directories,
    dumped_copies,
    leave_out_checkpoints_of_earlier_lives,
    registrations,
)
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.emptied_replicas import emptied_replicas, names_alone
from replication.evidence.joining.lifetimes import Incarnations, incarnations
from replication.evidence.joining.lines_by_incarnation import lines_by_incarnation
from replication.evidence.joining.listed_replicas import listed_replicas
from replication.evidence.joining.metadata_reach import later_history, torn_history
from replication.evidence.joining.misread_topic_ids import without_misread_topic_ids
from replication.evidence.joining.one_cluster import (
    INTERNAL,
    ClusterEvidence,
    Key,
    evidence_of,
    with_logs_in_utc,
)
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_settings import (
    by_kafka_topics,
    changes_of,
    described_partitions,
    settings_of,
)
from replication.evidence.joining.placement import lives_of, place
from replication.evidence.joining.printed_settings import printed_settings, settings_lines
from replication.evidence.log_directories.left_out import without_folders
from replication.evidence.unreadable import Unreadable
from replication.protocol.ground import events as ev


@dataclass(frozen=True, slots=True)
class JoinedCluster:
    """One cluster, its partitions joined but for what `partition_join.finished` does."""

    facts: ClusterFacts
    partitions: list[PartitionEvidence]
    notes: list[str] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Known:
    """What the steps found. copies: by every partition that anything names, in that order; lines:
    by broker; processes: by broker what its lines tell of its process; unsure: as `_unsure` has it;
    damaged: whose logs could not be read whole."""

    cluster: ClusterEvidence
    brokers: dict[int, BrokerLines]
    incarnations: Incarnations
    histories: dict[Key, RecordedHistory]
    copies: dict[Key, list[Copy]]
    lines: dict[int, dict[Key, list[PackedLines]]]
    listed: dict[Key, set[int]]
    acknowledged: Placed[Acknowledgement]
    consumed: Placed[Consumption]
    later_history: str | None
    processes: dict[int, list[LogLineFact]]
    unsure: dict[tuple[str, int] | None, dict[int, str]]
    damaged: set[int | None]
    settings_lines: list[LogLineFact]


def join_cluster(
    collection: Collection,
    cluster_id: str,
    kafka_version: str | None = None,
    *,
    files: set[str],
    only_topics: frozenset[str] = frozenset(),
) -> JoinedCluster:
    """One cluster of a collection.

    files: paths that name no cluster and are this one's. kafka_version: judge by this release,
    whatever the evidence names. only_topics: all where none is named.
    """
    cluster = evidence_of(collection, cluster_id, files)
    facts, notes = facts_of(cluster, kafka_version)
    zone_is_told = collection.time_zone is not None
    cluster, said = with_logs_in_utc(
        cluster, collection.acknowledgements, zone_is_told=zone_is_told
    )
    notes += said
    facts.clocks_compare = cluster.clocks_compare
    known, said, unreadable = _known(cluster, facts)
    of_brokers = broker_settings(cluster.logs)
    partitions = [
        _partition(known, key, facts, of_brokers)
        for key in sorted(_keys(known))
        if key[0] not in INTERNAL and (not only_topics or key[0] in only_topics)
    ]
    return JoinedCluster(facts, partitions, notes + said, unreadable)


def _known(
    cluster: ClusterEvidence, facts: ClusterFacts
) -> tuple[_Known, list[str], list[Unreadable]]:
    """Step by step, with notes and with what could not be used."""
    cluster, misread = without_misread_topic_ids(cluster)
    brokers = lines_by_broker(cluster.logs)
    lives = incarnations(cluster, brokers)
    histories: dict[Key, RecordedHistory] = {}
    notes: list[str] = []
    if cluster.history is not None:
        histories = from_metadata_log(cluster.history)
    elif cluster.zookeeper is not None:
        histories, notes = from_znodes(cluster.zookeeper, lives)
    directories, unreadable = copied_directories(cluster.directories, lives)
    if cluster.history is not None:
        for key, copy in emptied_replicas(cluster.directories, cluster.history, directories):
            directories.setdefault(key, []).append(copy)
        notes += names_alone(cluster.directories, cluster.history)
    for d in cluster.directories:
        notes += without_folders(d.directory, deleted_by(brokers.get(d.broker)))
    dumps, said = dumped_copies(cluster, lives, directories)
    notes += said
    lines = {n: lines_by_incarnation(n, mine, lives) for n, mine in brokers.items()}
    copies: dict[Key, list[Copy]] = {}
    of_lines = chain.from_iterable(lines.values())
    for key in chain(histories, directories, dumps, of_lines, _of_nobodys(cluster, lives)):
        if key[0] not in INTERNAL:
            copies[key] = [*directories.get(key, ()), *dumps.get(key, ())]
    leave_out_checkpoints_of_earlier_lives(copies, lines, lives)
    _place(cluster, brokers, copies, {key[0] for key in copies if len(lives.of(key[0])) > 1})
    listed, said = listed_replicas(cluster.log_dirs, lives, copies)
    notes += said
    later, said = later_history(cluster.quorum, cluster.history)
    notes += said
    if later is None:
        later, said = torn_history(cluster.history, cluster.zookeeper)
        notes += said
    acknowledged = placed(cluster.acknowledgements, lives, copies)
    consumed = placed(cluster.consumptions, lives, copies)
    notes += said_of_unsure(acknowledged.unsure | consumed.unsure)
    known = _Known(
        cluster, brokers, lives, histories, copies, lines, listed, acknowledged, consumed, later,
        {n: _process_lines(mine, facts) for n, mine in brokers.items()},
        _unsure(cluster.logs),
        {writer for log in cluster.logs if log.damaged for writer in (log.broker, *log.writers)},
        settings_lines(cluster.logs),
    )  # fmt: skip
    return known, notes, misread + unreadable


def _of_nobodys(cluster: ClusterEvidence, lives: Incarnations) -> Iterator[Key]:
    """Partitions of lines that no broker is known to have written: those are only told."""
    for log in cluster.logs:
        for nobodys in log.lines if log.broker is None else ():
            _, topic, number = nobodys.about
            yield topic, lives.at(topic, None), number


def _place(
    cluster: ClusterEvidence,
    brokers: dict[int, BrokerLines],
    copies: dict[Key, list[Copy]],
    reused: Container[str],
) -> None:
    """Gives each copied directory its slot among the lives of its broker's process."""
    by_broker: dict[int, list[Copy]] = {}
    copied = (c for found in copies.values() for c in found if not c.is_dump)
    for copy in (c for c in copied if c.read_at is None):
        by_broker.setdefault(copy.broker, []).append(copy)
    for broker, mine in by_broker.items():
        if broker in brokers:
            lines = brokers[broker]
            lives = lives_of(lines.processes, lines.by_partition())
            for life in lives if not cluster.clocks_compare else ():
                life.started_at = None
            place(mine, lives, registrations(cluster.history, broker), reused)
        else:
            place(mine, [])


def _keys(known: _Known) -> set[Key]:
    promised = {*known.acknowledged.by_incarnation, *known.consumed.by_incarnation}
    # A description alone is evidence too; beside other evidence it adds no partitions.
    return {*known.copies, *promised} or described_partitions(
        known.cluster.descriptions, known.incarnations
    )


def _partition(
    known: _Known, key: Key, facts: ClusterFacts, of_brokers: dict[str, str]
) -> PartitionEvidence:
    """All that was found of one partition."""
    cluster = known.cluster
    topic, topic_id, number = key
    history = known.histories.get(key, RecordedHistory())
    printed = by_kafka_topics(key, cluster.descriptions, known.incarnations)
    deleted = known.incarnations.is_deleted(topic, topic_id)
    has_acknowledgements = _has_log(known, key, cluster.acknowledgements)
    changed = printed_settings(known.settings_lines, topic, topic_id, known.incarnations)
    recorded = cluster.history is not None or cluster.zookeeper is not None
    return PartitionEvidence(
        facts.cluster_id,
        topic,
        topic_id,
        number,
        described=ev.PartitionDescribed(
            kafka_version=facts.kafka_versions[0] if facts.kafka_versions else None,
            inter_broker_version=facts.inter_broker_version,
            controller=facts.controller,
            deleted=True if deleted else None,
        ),
        recorded=list(history.recorded),
        history_complete=history.is_whole,
        by_zookeeper=history.by_zookeeper,
        packed={n: mine[key] for n, mine in known.lines.items() if key in mine},
        processes={n: known.processes[n] for n, mine in known.lines.items() if key in mine},
        copies=list(known.copies.get(key, ())),
        settings=settings_of(topic, of_brokers, cluster.history, cluster.zookeeper, changed),
        settings_in_time=changes_of(topic, of_brokers, cluster.history, cluster.zookeeper),
        printed=None if recorded else changed.of_topic,
        kafka_topics_settings=printed.settings,
        kafka_topics_replicas=printed.replicas,
        kafka_topics_at=printed.at,
        kafka_topics_leader=printed.leader,
        clocks_compare=cluster.clocks_compare,
        listed_replicas=known.listed.get(key, set()),
        acknowledgements=known.acknowledged.by_incarnation.get(key, []),
        consumptions=known.consumed.by_incarnation.get(key, []),
        has_acknowledgement_log=has_acknowledgements,
        has_consumption_log=_has_log(known, key, cluster.consumptions),
        has_all_producers=has_acknowledgements and cluster.all_producers,
        missing={
            subject: f"{count} line{'' if count == 1 else 's'} cannot be read"
            for subject, count in cluster.unread.items()
            if count
        },
        later_history=known.later_history,
        unpacked=cluster.unpacked,
        unsure_lines=known.unsure.get((topic, number), {}) | known.unsure.get(None, {}),
        damaged_lines=known.damaged,
        lifetimes=known.incarnations.of(topic),
    )


def _unsure(logs: Iterable[BrokerLog]) -> dict[tuple[str, int] | None, dict[int, str]]:
    """By partition, None for the process: the brokers whose own lines about it may be nobody's, and
    where."""
    found: dict[tuple[str, int] | None, dict[int, str]] = {}
    for log in logs:
        for about, brokers in log.unsure.items():
            either = " or ".join(str(b) for b in sorted(brokers))
            told = f"{log.path} holds lines that broker {either} may have written"
            of_these = found.setdefault(about, {})
            of_these.update((b, told) for b in brokers if b not in of_these)
    return found


def _process_lines(lines: BrokerLines, facts: ClusterFacts) -> list[LogLineFact]:
    """What a broker's lines tell of its process; of its release where there are several."""
    kinds = LIFE_KINDS if len(facts.kafka_versions) < 2 else LIFE_KINDS | {"kafka_version"}
    return [f for _, f in lines.processes if f.topic is None and f.kind in kinds]


def _has_log(known: _Known, key: Key, log: Sequence[object]) -> bool:
    """Whether a clients' log is here, and all that it says of the partition could be placed."""
    return bool(log) and (key[0], key[2]) not in known.acknowledged.unsure | known.consumed.unsure
