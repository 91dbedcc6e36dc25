"""The settings of partitions by what an incident's evidence tells: metadata log, logs, tools."""

from collections.abc import Iterable
from pathlib import Path

from replication.evidence.collecting.collection import NoEvidence
from replication.evidence.importer import import_evidence
from replication.foresight.cluster import (
    CONTROLLER,
    ELR_FEATURE,
    MIN_INSYNC,
    UNCLEAN,
    Defaults,
    NoPartitions,
    Profile,
    Told,
    Unusable,
    grouped,
    may_be_eligible,
)
from replication.foresight.settings import Settings, last_told
from replication.protocol.ground.events import PartitionDescribed
from replication.protocol.ground.versions import (
    DEFAULT_MIN_INSYNC_REPLICAS,
    behaviour,
    controllers_of,
)


def profiles_of(paths: Iterable[Path], told: Told) -> list[Profile]:
    """The profiles of every partition whose replicas the evidence names. Raises Unusable."""
    try:
        imported = import_evidence(list(paths), kafka_version=told.kafka)
    except NoEvidence as error:
        raise NoPartitions(str(error)) from None
    found: dict[tuple[str, int], tuple[Settings, Defaults]] = {}
    clusters = {c.cluster_id: c for c in imported.clusters}
    releases: dict[str, set[str]] = {}
    for index, partition in enumerate(imported.partitions):
        events = imported.events_of(index)
        last = last_told(e.fact for e in events if isinstance(e.fact, PartitionDescribed))
        if not last.assigned_replicas or last.deleted:
            continue
        where = (partition.topic, partition.partition)
        cluster = clusters[partition.cluster_id]
        found[where] = _settings(where, last, told, cluster.features)
        releases.setdefault(partition.topic, set()).update(cluster.releases.values())
    if not found:
        raise NoPartitions(
            "no file here describes partitions (`kafka-topics --describe` does), and the evidence "
            "names the replicas of none"
        )
    profiles = grouped(found)
    for profile in profiles:
        run = {release for topic in profile.topics for release in releases[topic]}
        profile.brokers_run = sorted(run)
    return profiles


def _settings(
    where: tuple[str, int],
    fact: PartitionDescribed,
    told: Told,
    features: dict[str, int] | None,
) -> tuple[Settings, Defaults]:
    release = told.kafka or fact.kafka_version
    if release is None:
        raise Unusable(
            f"{where[0]}-{where[1]}: nothing tells which release its brokers run: say it by --kafka"
        )
    try:
        modes = controllers_of(release)
        controller = told.controller or fact.controller or modes[0]
        known = behaviour(release, controller=controller)
        unclean = fact.unclean_leader_election
        eligible = known.eligible_leader_replicas
        if features is not None:
            eligible = features.get(ELR_FEATURE, 0) > 0
        assert fact.assigned_replicas is not None
        settings = Settings(
            release,
            len(fact.assigned_replicas),
            fact.min_insync_replicas or DEFAULT_MIN_INSYNC_REPLICAS,
            known.unclean_leader_election if unclean is None else unclean,
            controller,
            eligible=eligible if told.eligible is None else told.eligible,
        )
        settings.behaviour  # noqa: B018
    except ValueError as error:
        raise Unusable(str(error)) from None
    said = {
        CONTROLLER: told.controller or fact.controller or (modes[0] if len(modes) == 1 else None),
        UNCLEAN: unclean,
        MIN_INSYNC: fact.min_insync_replicas,
    }
    defaults = {name: frozenset[int]() for name, value in said.items() if value is None}
    if told.eligible is None and features is None and may_be_eligible(settings):
        defaults[ELR_FEATURE] = frozenset()
    return settings, defaults
