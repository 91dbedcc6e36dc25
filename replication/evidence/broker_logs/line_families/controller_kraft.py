"""Lines of KRaft controllers: elections, changes of partitions, topics that come and go."""

import re

from replication.evidence.broker_logs.line_families.family import (
    QUORUM_CONTROLLER_PREFIX,
    Found,
    LineFamily,
    example,
    found_by_groups,
    ignored,
    read_field,
    topic_partition,
)
from replication.evidence.broker_logs.line_families.partition_state import (
    found_with_state,
    partition_state,
)

_REPLICATION = ("ReplicationControlManager",)
_HEARTBEAT = ("BrokerHeartbeatManager", "ReplicationControlManager")


_ACTIVE = LineFamily(
    kind="became_controller",
    versions="2.8 - 4.3 (KRaft)",
    loggers=("QuorumController",),
    words=("Becoming",),
    trigger="Becoming the active controller at epoch ",
    pattern=QUORUM_CONTROLLER_PREFIX + r"Becoming the active controller at epoch "
    r"(?P<controller_epoch>\d+)",
    examples=(
        example(
            "[QuorumController id=100] Becoming the active controller at epoch 1, next write offset "
            "1.",
            node=100, controller_epoch=1,
        ),
    ),
)  # fmt: skip

_RENOUNCED = LineFamily(
    kind="controller_resigned",
    versions="2.8 - 4.3 (KRaft)",
    loggers=("QuorumController",),
    words=("Renouncing",),
    trigger="Renouncing the leadership",
    pattern=QUORUM_CONTROLLER_PREFIX + r"Renouncing the leadership"
    r"(?:.*? (?:at|old) epoch (?P<controller_epoch>\d+))?",
    examples=(
        example(
            "[QuorumController id=100] Renouncing the leadership due to a metadata log event. We "
            "were the leader at epoch 3, but in the new epoch 4, the leader is 101. Reverting to "
            "last stable offset 90.",
            node=100, controller_epoch=3,
        ),
    ),
)  # fmt: skip

_CHANGES = re.compile(r"(\w+): (\[[^\]]*\]|[^\s,]+) -> (\[[^\]]*\]|[^\s,]+)")
_CHANGED_FIELDS = {
    "isr": "isr",
    "leader": "leader",
    "leaderEpoch": "leader_epoch",
    "partitionEpoch": "partition_epoch",
    "elr": "elr",
    "lastKnownElr": "last_known_elr",
    "replicas": "replicas",
}


def _partition_changed(match: re.Match[str]) -> list[Found]:
    """Old and new value of what changed, `recovering_before` / `recovering_after` among it;
    what did not change is not printed. UNCLEAN is said of every change while a partition recovers.
    """
    found = found_by_groups(match)
    fields = found.fields
    fields["unclean"] = fields.pop("mark", "") != ""
    for name, before, after in _CHANGES.findall(fields.pop("rest")):
        if name == "leaderRecoveryState":
            fields["recovering_before"] = before == "RECOVERING"
            fields["recovering_after"] = after == "RECOVERING"
        elif name in _CHANGED_FIELDS:
            ours = _CHANGED_FIELDS[name]
            fields[ours + "_before"] = read_field(ours, before)
            fields[ours + "_after"] = read_field(ours, after)
    return [found]


_PARTITION_CHANGED = LineFamily(
    kind="partition_changed",
    versions="3.3 - 4.3 (KRaft): UNCLEAN at INFO, the others at DEBUG",
    loggers=_REPLICATION,
    words=("UNCLEAN", "partition"),
    trigger="partition change for ",
    pattern=QUORUM_CONTROLLER_PREFIX + r"(?P<mark>UNCLEAN )?partition change for (?P<tp>\S+) with topic ID "
    r"(?P<topic_id>[^:\s]+): (?P<rest>.*)$",
    convert=_partition_changed,
    examples=(
        example(
            "[QuorumController id=100] UNCLEAN partition change for t-0 with topic ID "
            "hODiJheLTSmkSgOPRwQXyg: isr: [] -> [2], leader: -1 -> 2, leaderRecoveryState: RECOVERED"
            " -> RECOVERING, leaderEpoch: 1 -> 2, elr: [1] -> [], lastKnownElr: [1] -> [], "
            "partitionEpoch: 3 -> 4",
            node=100, topic="t", partition=0, topic_id="hODiJheLTSmkSgOPRwQXyg", unclean=True,
            isr_before=(), isr_after=(2,), leader_before=None, leader_after=2,
            recovering_before=False, recovering_after=True, leader_epoch_before=1,
            leader_epoch_after=2, elr_before=(1,), elr_after=(), last_known_elr_before=(1,),
            last_known_elr_after=(), partition_epoch_before=3, partition_epoch_after=4,
        ),
        example(
            "[QuorumController id=100] partition change for t-1 with topic ID "
            "qSMoNKWOSQ6Q-w4CrVSYLQ: isr: [2, 3, 1] -> [2, 3], partitionEpoch: 0 -> 1",
            node=100, topic="t", partition=1, topic_id="qSMoNKWOSQ6Q-w4CrVSYLQ", unclean=False,
            isr_before=(2, 3, 1), isr_after=(2, 3), partition_epoch_before=0,
            partition_epoch_after=1,
        ),
        example(
            "[QuorumController id=100] partition change for t-1 with topic ID "
            "rZgaocpBQhyOSXnO0vab2Q: replicas: [3, 2, 1] -> [3, 2], isr: [3] -> [3, 2], "
            "removingReplicas: [1] -> [], addingReplicas: [2] -> [], leaderEpoch: 4 -> 5, "
            "partitionEpoch: 11 -> 12",
            node=100, topic="t", partition=1, topic_id="rZgaocpBQhyOSXnO0vab2Q", unclean=False,
            replicas_before=(3, 2, 1), replicas_after=(3, 2), isr_before=(3,), isr_after=(3, 2),
            leader_epoch_before=4, leader_epoch_after=5, partition_epoch_before=11,
            partition_epoch_after=12,
        ),
    ),
)  # fmt: skip

_HOW = {
    "an unclean election": "unclean",
    "a clean election": "clean",
    "ELR": "eligible_leader_replica",
    "the last known leader": "last_known_leader",
}


def _elected(match: re.Match[str]) -> list[Found]:
    """The topic is known by its id only; `previous` is the partition's state before."""
    found = found_by_groups(match)
    fields = found.fields
    fields["how"] = _HOW.get(fields["how"], fields["how"])
    previous = fields.pop("state", None)
    if previous is not None:
        fields["previous"] = partition_state(previous)
    return [found]


# Clean ones are TRACE, those from the ELR TRACE before 4.1, and "to -1" is no election.
_ELECTED = LineFamily(
    kind="leader_elected",
    versions="3.3 - 4.3 (KRaft)",
    loggers=("PartitionChangeBuilder",),
    words=("Setting",),
    trigger="Setting new leader for topicId ",
    pattern=r"^Setting new leader for topicId (?P<topic_id>[\w-]+), partition (?P<partition>\d+) to "
    r"(?P<leader>-?\d+) using (?P<how>an unclean election|a clean election|ELR|[^.]+?)"
    r"(?:\. Previous partition: (?P<state>PartitionRegistration\(.*?\)), change record: .*)?\.?$",
    convert=_elected,
    examples=(
        example(
            "Setting new leader for topicId X7n8wVQPSoW6uf_6mz8VJQ, partition 0 to 2 using an "
            "unclean election",
            partition=0, topic_id="X7n8wVQPSoW6uf_6mz8VJQ", leader=2, how="unclean",
        ),
        example(
            "Setting new leader for topicId qSMoNKWOSQ6Q-w4CrVSYLQ, partition 0 to -1 using a clean "
            "election",
            partition=0, topic_id="qSMoNKWOSQ6Q-w4CrVSYLQ", leader=None, how="clean",
        ),
        example(
            "Setting new leader for topicId sBBZh3tIQpuFZ_1PSDgssg, partition 0 to 3 using ELR. "
            "Previous partition: PartitionRegistration(replicas=[1, 2, 3], directories=["
            "8Myk65hLHlEZk3q0Htd06g, WgG12TG9lZGirESkNIXHNw, mgjKWAs6cKVN5ZjPL0TM9A], isr=[], "
            "removingReplicas=[], addingReplicas=[], elr=[3], lastKnownElr=[1], leader=-1, "
            "leaderRecoveryState=RECOVERED, leaderEpoch=1, partitionEpoch=4), change record: "
            "PartitionChangeRecord(partitionId=0, topicId=sBBZh3tIQpuFZ_1PSDgssg, isr=null, "
            "leader=-2, replicas=null, removingReplicas=null, addingReplicas=null, "
            "leaderRecoveryState=-1, directories=null, eligibleLeaderReplicas=null, "
            "lastKnownElr=null)",
            partition=0, topic_id="sBBZh3tIQpuFZ_1PSDgssg", leader=3,
            how="eligible_leader_replica",
            previous={
                "leader": None, "leader_epoch": 1, "isr": (), "partition_epoch": 4,
                "replicas": (1, 2, 3), "adding": (), "removing": (), "elr": (3,),
                "last_known_elr": (1,), "recovering": False,
            },
        ),
    ),
)  # fmt: skip

_TRIGGERED = LineFamily(
    kind="unclean_election_triggered",
    versions="3.9 - 4.3 (KRaft)",
    loggers=_REPLICATION,
    words=("Triggering",),
    trigger="Triggering unclean leader election ",
    pattern=QUORUM_CONTROLLER_PREFIX + r"Triggering unclean leader election for offline partition "
    r"(?P<tp>\S+?)\.$",
    examples=(
        example(
            "[QuorumController id=100] Triggering unclean leader election for offline partition "
            "t-0.",
            node=100, topic="t", partition=0,
        ),
    ),
)  # fmt: skip

_CREATED_PARTITION = LineFamily(
    kind="partition_created",
    versions="3.3 - 4.3 (KRaft)",
    loggers=_REPLICATION,
    words=("Replayed",),
    trigger="Replayed PartitionRecord for ",
    pattern=QUORUM_CONTROLLER_PREFIX + r"Replayed PartitionRecord for new partition (?P<tp>\S+) with topic "
    r"ID (?P<topic_id>\S+)(?: and (?P<state>PartitionRegistration\(.*\)))?\.$",
    convert=found_with_state,
    examples=(
        example(
            "[QuorumController id=100] Replayed PartitionRecord for new partition t-0 with topic ID "
            "G9D0UQbvRAa1SHOqY48FbA and PartitionRegistration(replicas=[1, 2, 3], directories=["
            "rJY4t2iANEGOtpURFow0HQ, ZlIib4079Dgl6C5nAcBlSA, 4pvaWUipE2mceR2xBvdTsw], isr=[1, 2, 3],"
            " removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[], leader=1, "
            "leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0).",
            node=100, topic="t", partition=0, topic_id="G9D0UQbvRAa1SHOqY48FbA", leader=1,
            leader_epoch=0, isr=(1, 2, 3), partition_epoch=0, replicas=(1, 2, 3), adding=(),
            removing=(), elr=(), last_known_elr=(), recovering=False,
        ),
    ),
)  # fmt: skip

_TOPIC_CREATED = LineFamily(
    kind="topic_created",
    versions="2.8 - 4.3 (KRaft)",
    loggers=_REPLICATION,
    words=("Replayed",),
    trigger="Replayed TopicRecord for ",
    pattern=QUORUM_CONTROLLER_PREFIX + r"Replayed TopicRecord for topic (?P<topic>\S+) with topic ID "
    r"(?P<topic_id>\S+?)\.?$",
    examples=(
        example(
            "[QuorumController id=100] Replayed TopicRecord for topic t with topic ID "
            "G9D0UQbvRAa1SHOqY48FbA",
            node=100, topic="t", topic_id="G9D0UQbvRAa1SHOqY48FbA",
        ),
    ),
)  # fmt: skip

_TOPIC_REMOVED = LineFamily(
    kind="topic_removed",
    versions="2.8 - 4.3 (KRaft)",
    loggers=_REPLICATION,
    words=("Replayed",),
    trigger="Replayed RemoveTopicRecord for ",
    pattern=QUORUM_CONTROLLER_PREFIX + r"Replayed RemoveTopicRecord for topic (?P<topic>\S+) with ID "
    r"(?P<topic_id>\S+?)\.?$",
    examples=(
        example(
            "[QuorumController id=100] Replayed RemoveTopicRecord for topic t with ID "
            "vtpakRnaS-GLWtebB6vJfw.",
            node=100, topic="t", topic_id="vtpakRnaS-GLWtebB6vJfw",
        ),
    ),
)  # fmt: skip

_BROKER_SHUTS_DOWN = LineFamily(
    kind="broker_shutdown_granted",
    versions="3.0 - 4.3 (KRaft)",
    loggers=_HEARTBEAT,
    words=("Unfenced",),
    trigger="has requested and been granted ",
    pattern=QUORUM_CONTROLLER_PREFIX + r"(?:Unf|F)enced broker (?P<broker>\d+) has requested and been "
    r"granted an? (?P<how>controlled|immediate) shutdown\.$",
    examples=(
        example(
            "[QuorumController id=100] Unfenced broker 2 has requested and been granted a controlled "
            "shutdown.",
            node=100, broker=2, how="controlled",
        ),
    ),
)  # fmt: skip


_NAMES = re.compile(r"[^\s,]+-\d+")


def _partitions_moved(match: re.Match[str]) -> list[Found]:
    """`partitions` where they are counted (INFO), `named` where they are listed (DEBUG)."""
    found = found_by_groups(match)
    listed = found.fields.pop("listed", None)
    if listed is not None:
        names = [topic_partition(name) for name in _NAMES.findall(listed)]
        found.fields["partitions"] = len(names)
        found.fields["named"] = tuple(names)
    return [found]


def _moved(
    kind: str, word: str, event: str, *examples_: tuple[str, dict[str, object]]
) -> LineFamily:
    return LineFamily(
        kind=kind,
        versions="3.0 - 4.3 (KRaft)",
        loggers=_REPLICATION,
        words=(word,),
        trigger=" changing ",
        pattern=QUORUM_CONTROLLER_PREFIX
        + event
        + r": changing (?:(?P<partitions>\d+) partition\(s\)"
        r"|partition\(s\): (?P<listed>.*))$",
        convert=_partitions_moved,
        examples=tuple(example(line, **fields) for line, fields in examples_),
    )


_UNCLEAN_SHUTDOWN = _moved(
    "broker_unclean_shutdown",
    "handleBrokerUncleanShutdown:",
    "handleBrokerUncleanShutdown",
    (
        "[QuorumController id=100] handleBrokerUncleanShutdown: changing 1 partition(s)",
        {"node": 100, "partitions": 1},
    ),
)
_OFFLINE_DIRECTORIES = _moved(
    "offline_directories_partitions",
    "handleDirectoriesOffline",
    r"handleDirectoriesOffline\[(?P<broker>\d+)(?::(?P<directory_id>[\w-]+))?\]",
    (
        "[QuorumController id=100] handleDirectoriesOffline[2]: changing 2 partition(s)",
        {"node": 100, "broker": 2, "partitions": 2},
    ),
    (
        "[QuorumController id=100] handleDirectoriesOffline[3:znuFUZBvSceyEs1mkflQJA]: changing 1 "
        "partition(s)",
        {
            "node": 100,
            "broker": 3,
            "directory_id": "znuFUZBvSceyEs1mkflQJA",
            "partitions": 1,
        },
    ),
)

_SAME_AS_CHANGE = ignored(
    "3.3 - 4.3 DEBUG: `partition change for` says the same with old values",
    _REPLICATION,
    ("Replayed",),
    "Replayed partition change ",
    r"Replayed partition change PartitionChangeRecord\(",
    "[QuorumController id=100] Replayed partition change PartitionChangeRecord(partitionId=0, "
    "topicId=qSMoNKWOSQ6Q-w4CrVSYLQ, isr=[1], leader=-2) for topic t",
)

FAMILIES: tuple[LineFamily, ...] = (
    _ACTIVE,
    _RENOUNCED,
    _PARTITION_CHANGED,
    _ELECTED,
    _TRIGGERED,
    _CREATED_PARTITION,
    _TOPIC_CREATED,
    _TOPIC_REMOVED,
    _BROKER_SHUTS_DOWN,
    _UNCLEAN_SHUTDOWN,
    _OFFLINE_DIRECTORIES,
    _SAME_AS_CHANGE,
)
