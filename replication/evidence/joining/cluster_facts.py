"""What is known of a cluster as a whole: releases, brokers, kind of controller."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.joining.ended_brokers import ended
from replication.evidence.joining.one_cluster import ClusterEvidence
from replication.evidence.metadata_log.metadata_versions import branch_of


@dataclass(slots=True)
class ClusterFacts:
    """What is known of a cluster as a whole. features: finalized levels by the metadata log.
    releases: by broker, which one it ran last. ended: brokers that are down at the end of it.
    """

    cluster_id: str
    kafka_versions: list[str] = field(default_factory=list)
    controller: str | None = None
    brokers: list[int] = field(default_factory=list)
    inter_broker_version: str | None = None
    clocks_compare: bool = True
    features: dict[str, int] | None = None
    releases: dict[int, str] = field(default_factory=dict)
    ended: frozenset[int] = frozenset()


def broker_settings(logs: Iterable[BrokerLog]) -> dict[str, str]:
    """What brokers' logs print of server.properties; the last that prints a setting counts."""
    result: dict[str, str] = {}
    for values in (values for _, values in _printed_settings(logs)):
        result.update(values)
    return result


def facts_of(cluster: ClusterEvidence, kafka_version: str | None) -> tuple[ClusterFacts, list[str]]:
    """The facts, and notes. kafka_version: judge by this release, whatever the logs name."""
    versions = {
        str(fact.fields["version"])
        for log in cluster.logs
        for fact in log.processes
        if fact.kind == "kafka_version"
    }
    settings, told = broker_settings(cluster.logs), [kafka_version] if kafka_version else []
    registered = None if told or versions else _registered_release(cluster)
    facts = ClusterFacts(
        cluster.cluster_id,
        kafka_versions=told or sorted(versions) or ([registered] if registered else []),
        controller=_controller(cluster, settings),
        brokers=sorted(
            _brokers(cluster) | (cluster.zookeeper.brokers if cluster.zookeeper else set())
        ),
        features=None if cluster.history is None else dict(cluster.history.features),
    )
    facts.releases = _releases_run(cluster, facts.brokers)
    facts.ended = ended(cluster)
    if facts.controller == "zookeeper" and (kafka_version is None or versions == {kafka_version}):
        facts.inter_broker_version = settings.get("inter.broker.protocol.version")
    notes = _by_zookeeper(cluster)
    if registered:
        notes.append(
            f"no line names the release; the brokers registered the features of Kafka "
            f"{registered}, and its rules are applied"
        )
    if kafka_version and versions - {kafka_version}:
        named = ", ".join(sorted(versions))
        notes.append(
            f"warning: judged by the rules of Kafka {kafka_version} as told, though the logs "
            f"name {named}"
        )
    return facts, notes


def _registered_release(cluster: ClusterEvidence) -> str | None:
    """The one release whose features every broker registered with the controller; else None."""
    changes = cluster.history.brokers if cluster.history is not None else ()
    levels = {change.metadata_version for change in changes if change.kind == "registered"}
    releases = {None if level is None else branch_of(level) for level in levels}
    return releases.pop() if len(releases) == 1 else None


def _releases_run(cluster: ClusterEvidence, brokers: Iterable[int]) -> dict[int, str]:
    """By broker, the release of its last start that its log names, else the branch whose features
    it registered last; none where other brokers' logs name a release of that branch."""
    changes = cluster.history.brokers if cluster.history is not None else ()
    registered = {c.broker: c.metadata_version for c in changes if c.kind == "registered"}
    starts = sorted(
        (fact.at or 0, writer, str(fact.fields["version"]))
        for log in cluster.logs
        for fact in log.processes
        if fact.kind == "kafka_version"
        and (writer := fact.broker if fact.broker is not None else log.broker) is not None
    )
    known = {*brokers, *registered}
    found = {writer: release for _, writer, release in starts if writer in known}
    named = [*found.values()]
    for broker in registered.keys() - found.keys():
        level = registered[broker]
        branch = None if level is None else branch_of(level)
        if branch is not None and not any(f"{n}.".startswith(f"{branch}.") for n in named):
            found[broker] = branch
    return found


def _printed_settings(logs: Iterable[BrokerLog]) -> list[tuple[int | None, dict[str, str]]]:
    return [
        (fact.broker if fact.broker is not None else log.broker, fact.fields["values"])
        for log in logs
        for fact in log.processes
        if fact.kind == "settings"
    ]


def _brokers(cluster: ClusterEvidence) -> set[int]:
    """Whoever has directories of partitions, a dump of one, or a log as a broker."""
    brokers = {d.broker for d in cluster.directories if d.directory.partitions}
    brokers |= {d.broker for d in cluster.dumps}
    for writer, values in _printed_settings(cluster.logs):
        if "broker" in values.get("process.roles", "broker") and writer is not None:
            brokers.add(writer)
    return brokers


def _by_zookeeper(cluster: ClusterEvidence) -> list[str]:
    """What ZooKeeper tells of the cluster as a whole."""
    zookeeper = cluster.zookeeper
    if zookeeper is None:
        return []
    known = {d.broker for d in cluster.directories} | {d.broker for d in cluster.dumps}
    known |= {w for log in cluster.logs for w in (log.broker, *log.writers) if w is not None}
    notes = [
        f"{zookeeper.files[0]}: ZooKeeper names broker {broker}, of which nothing was handed over"
        for broker in sorted(zookeeper.brokers - known)
    ]
    if zookeeper.controller_epoch is not None:
        times = zookeeper.controller_epoch
        notes.append(
            f"{zookeeper.files[0]}: a controller was elected {times} "
            f"time{'' if times == 1 else 's'} (/controller_epoch)"
        )
    return notes


def _controller(cluster: ClusterEvidence, settings: dict[str, str]) -> str | None:
    """kraft or zookeeper; None where nothing tells."""
    if cluster.history is not None:
        return "kraft"
    metas = [d.directory.meta for d in cluster.directories]
    if (
        cluster.zookeeper is not None
        or settings.get("zookeeper.connect", "") not in ("", "null")
        or any(meta and meta.version == 0 for meta in metas)
    ):
        return "zookeeper"
    return "kraft" if settings.get("process.roles", "").strip("[]") else None
