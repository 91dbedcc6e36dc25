"""Lines by which brokers name the leader: role changes, and the partition states they were sent."""

import re

from replication.evidence.broker_logs.line_families.family import (
    BROKER_PREFIX,
    PARTITION_PREFIX,
    TP,
    Example,
    Found,
    LineFamily,
    example,
    found_by_groups,
    ignored,
)
from replication.evidence.broker_logs.line_families.partition_state import (
    named_partition,
    partition_state,
)

_STATE_CHANGE = ("state.change.logger",)


def _with_state(match: re.Match[str]) -> list[Found]:
    """Groups, and the printed partition state where a group `state` holds one."""
    found = found_by_groups(match)
    fields = found.fields
    state = fields.pop("state", "")
    merged = {**partition_state(state), **fields}
    role = merged.get("role")
    if role is not None:
        merged["role"] = role.lower()
    named = named_partition(state)
    topic, partition = (found.topic, found.partition) if named is None else named
    return [Found(merged, found.node, topic, partition)]


_LEADER_STARTS = LineFamily(
    kind="became_leader",
    versions="2.6 - 4.3",
    loggers=_STATE_CHANGE,
    words=("Leader",),
    trigger=" starts at leader epoch ",
    pattern=BROKER_PREFIX
    + r"Leader (?P<tp>\S+)(?: with topic id (?P<topic_id>\S+))? starts at leader epoch "
    r"(?P<leader_epoch>\d+) from offset (?P<log_end_offset>-?\d+) with "
    r"(?:partition epoch (?P<partition_epoch>-?\d+), )?high watermark (?P<high_watermark>-?\d+),? "
    r"ISR \[(?P<isr>[\d,]*)\],? (?:addingReplicas|adding replicas) \[(?P<adding>[\d,]*)\] "
    r"(?:removingReplicas|and removing replicas) \[(?P<removing>[\d,]*)\]"
    r"\s?(?:\(under-min-isr\))?\s?\. Previous leader "
    r"(?:(?P<previous_leader>\S+) and previous leader )?epoch was (?P<previous_leader_epoch>-?\d+)\.$",
    examples=(
        example(
            "[Broker id=1] Leader t-0 starts at leader epoch 0 from offset 0 with high watermark 0 "
            "ISR [1,2] addingReplicas [] removingReplicas []. Previous leader epoch was -1.",
            node=1, topic="t", partition=0, leader_epoch=0, log_end_offset=0, high_watermark=0,
            isr=(1, 2), adding=(), removing=(), previous_leader_epoch=None,
        ),
        example(
            "[Broker id=2] Leader t-0 with topic id Some(Ix8NaKEJR-atO-v7XPgawQ) starts at leader "
            "epoch 1 from offset 20 with partition epoch 1, high watermark 20, ISR [2], adding "
            "replicas [] and removing replicas [] . Previous leader Some(1) and previous leader "
            "epoch was 0.",
            node=2, topic="t", partition=0, topic_id="Ix8NaKEJR-atO-v7XPgawQ", leader_epoch=1,
            log_end_offset=20, partition_epoch=1, high_watermark=20, isr=(2,), adding=(),
            removing=(), previous_leader=1, previous_leader_epoch=0,
        ),
    ),
)  # fmt: skip


def _leader_starts_in_partition(versions: str, trigger: str, *examples_: Example) -> LineFamily:
    """The INFO line of leaders before state-change.log took it over."""
    return LineFamily(
        kind="became_leader",
        versions=versions,
        loggers=("Partition",),
        words=(),
        trigger=trigger,
        pattern=PARTITION_PREFIX
        + r"\S+ starts at [Ll]eader [Ee]poch (?P<leader_epoch>\d+) from offset "
        r"(?P<log_end_offset>-?\d+)(?: with high watermark (?P<high_watermark>-?\d+))?\. "
        r"Previous [Ll]eader [Ee]poch was:? (?P<previous_leader_epoch>-?\d+)\.?$",
        examples=examples_,
    )


_LEADER_STARTS_TO_2_3 = _leader_starts_in_partition(
    "0.11 - 2.3",
    " starts at Leader Epoch ",
    example(
        "[Partition t-0 broker=1] t-0 starts at Leader Epoch 0 from offset 0. Previous Leader Epoch "
        "was: -1",
        node=1, topic="t", partition=0, leader_epoch=0, log_end_offset=0,
        previous_leader_epoch=None,
    ),
    example(
        "Partition [t,0] on broker 1: t-0 starts at Leader Epoch 1 from offset 11. Previous Leader "
        "Epoch was: 0",
        node=1, topic="t", partition=0, leader_epoch=1, log_end_offset=11, previous_leader_epoch=0,
    ),
)  # fmt: skip
_LEADER_STARTS_TO_2_5 = _leader_starts_in_partition(
    "2.4 - 2.5",
    " starts at leader epoch ",
    example(
        "[Partition t-0 broker=1] t-0 starts at leader epoch 2 from offset 7 with high watermark 5. "
        "Previous leader epoch was 1.",
        node=1, topic="t", partition=0, leader_epoch=2, log_end_offset=7, high_watermark=5,
        previous_leader_epoch=1,
    ),
)  # fmt: skip

# 3.6 to 4.1 print the new leader as the previous one, so the caller must know the version.
_FOLLOWER_STARTS = LineFamily(
    kind="became_follower",
    versions="2.6 - 4.3",
    loggers=_STATE_CHANGE,
    words=("Follower",),
    trigger=" starts at leader epoch ",
    pattern=BROKER_PREFIX
    + r"Follower (?P<tp>\S+) starts at leader epoch (?P<leader_epoch>\d+) from offset "
    r"(?P<log_end_offset>-?\d+) with (?:partition epoch (?P<partition_epoch>-?\d+) and )?"
    r"high watermark (?P<high_watermark>-?\d+)\.(?: Current leader is (?P<leader>-?\d+)\.)? "
    r"Previous leader (?:(?P<previous_leader>\S+) and previous leader )?"
    r"epoch was (?P<previous_leader_epoch>-?\d+)\.$",
    examples=(
        example(
            "[Broker id=2] Follower t-0 starts at leader epoch 0 from offset 0 with high watermark "
            "0. Previous leader epoch was -1.",
            node=2, topic="t", partition=0, leader_epoch=0, log_end_offset=0, high_watermark=0,
            previous_leader_epoch=None,
        ),
        example(
            "[Broker id=1] Follower t-0 starts at leader epoch 1 from offset 32 with partition "
            "epoch 1 and high watermark 20. Current leader is 2. Previous leader Some(2) and "
            "previous leader epoch was 1.",
            node=1, topic="t", partition=0, leader_epoch=1, log_end_offset=32, partition_epoch=1,
            high_watermark=20, leader=2, previous_leader=2, previous_leader_epoch=1,
        ),
        example(
            "[Broker id=3] Follower t-0 starts at leader epoch 1 from offset 20 with partition "
            "epoch 3 and high watermark 20. Current leader is -1. Previous leader Some(-1) and "
            "previous leader epoch was 1.",
            node=3, topic="t", partition=0, leader_epoch=1, log_end_offset=20, partition_epoch=3,
            high_watermark=20, leader=None, previous_leader=None, previous_leader_epoch=1,
        ),
    ),
)  # fmt: skip

_SKIPPED_KRAFT = LineFamily(
    kind="leadership_kept",
    versions="3.3 - 4.3",
    loggers=_STATE_CHANGE,
    words=("Skipped",),
    trigger=" state change for ",
    pattern=BROKER_PREFIX
    + r"Skipped the become-(?P<role>leader|follower) state change for (?P<tp>\S+) with topic id "
    r"(?P<topic_id>[^\s,]+)(?: and partition state |, partition registration )(?P<state>\w+\(.*\)) "
    r"(?:and isNew=(?P<is_new>\w+) )?since it is already (?:the leader|a follower) with leader epoch "
    r"(?P<leader_epoch>\d+)\.(?: Current high watermark (?P<high_watermark>-?\d+), "
    r"ISR \[(?P<isr>[\d,]*)\], adding replicas \[(?P<adding>[\d,]*)\] and removing replicas "
    r"\[(?P<removing>[\d,]*)\]\.)?$",
    convert=_with_state,
    examples=(
        example(
            "[Broker id=2] Skipped the become-leader state change for t-0 with topic id "
            "Some(Ix8NaKEJR-atO-v7XPgawQ) and partition state LeaderAndIsrPartitionState("
            "topicName='t', partitionIndex=0, controllerEpoch=-1, leader=2, leaderEpoch=1, "
            "isr=[2, 1], partitionEpoch=2, replicas=[1, 2], addingReplicas=[], removingReplicas=[], "
            "isNew=false, leaderRecoveryState=0) since it is already the leader with leader epoch 1. "
            "Current high watermark 26, ISR [2,1], adding replicas [] and removing replicas [].",
            node=2, topic="t", partition=0, role="leader", topic_id="Ix8NaKEJR-atO-v7XPgawQ",
            leader=2, leader_epoch=1, isr=(2, 1), partition_epoch=2, replicas=(1, 2), adding=(),
            removing=(), is_new=False, recovering=False, high_watermark=26,
        ),
        example(
            "[Broker id=1] Skipped the become-follower state change for t-1 with topic id "
            "Some(er_tSOR5RWS2qEkoUOJtCA), partition registration PartitionRegistration("
            "replicas=[2, 3, 1], directories=[aMp_ybREC7CG7VZc2vwsQg, uScqQ9p3l0BldiLJaZeTfw, "
            "7ZX_p-XiaS4qRcKtYJNo8g], isr=[1, 2, 3], removingReplicas=[], addingReplicas=[], "
            "elr=[], lastKnownElr=[], leader=2, leaderRecoveryState=RECOVERED, leaderEpoch=0, "
            "partitionEpoch=2) and isNew=false since it is already a follower with leader epoch 0.",
            node=1, topic="t", partition=1, role="follower", topic_id="er_tSOR5RWS2qEkoUOJtCA",
            leader=2, leader_epoch=0, isr=(1, 2, 3), partition_epoch=2, replicas=(2, 3, 1),
            adding=(), removing=(), elr=(), last_known_elr=(), recovering=False, is_new=False,
        ),
    ),
)  # fmt: skip

# ZooKeeper mode: no epochs, no ISR; the request printed just before it has them (TRACE to 2.5).
_SKIPPED_ZOOKEEPER = LineFamily(
    kind="leadership_kept",
    versions="0.10 - 3.9 (ZooKeeper)",
    loggers=_STATE_CHANGE,
    words=("Skipped", "skipped"),
    trigger=" state change after marking ",
    pattern=BROKER_PREFIX
    + r"[Ss]kipped the become-(?P<role>leader|follower) state change after marking its partition as "
    r"\w+ with correlation id \d+ from controller \d+ epoch (?P<controller_epoch>\d+) for partition "
    + TP
    + r"(?: \(last update controller epoch \d+\))? since (?:it is already the leader|"
    r"the new leader (?P<leader>-?\d+) is the same as the old leader)",
    convert=_with_state,
    examples=(
        example(
            "[Broker id=2] Skipped the become-leader state change after marking its partition as "
            "leader with correlation id 9 from controller 3 epoch 1 for partition t-0 (last update "
            "controller epoch 1) since it is already the leader for the partition.",
            node=2, topic="t", partition=0, role="leader", controller_epoch=1,
        ),
        example(
            "[Broker id=1] Skipped the become-follower state change after marking its partition as "
            "follower with correlation id 5 from controller 1 epoch 1 for partition t-1 (last "
            "update controller epoch 1) since the new leader 2 is the same as the old leader",
            node=1, topic="t", partition=1, role="follower", controller_epoch=1, leader=2,
        ),
        example(
            "Broker 1 skipped the become-leader state change after marking its partition as leader "
            "with correlation id 8 from controller 1 epoch 3 for partition t-0 since it is already "
            "the leader for the partition.",
            node=1, topic="t", partition=0, role="leader", controller_epoch=3,
        ),
    ),
)  # fmt: skip

_RECEIVED = LineFamily(
    kind="leader_and_isr_received",
    versions="0.10 - 3.9 (ZooKeeper)",
    loggers=_STATE_CHANGE,
    words=("received", "Received"),
    trigger="eceived LeaderAndIsr request ",
    pattern=BROKER_PREFIX
    + r"[Rr]eceived LeaderAndIsr request (?P<state>[\w.$]*\(.*\)) correlation id \d+ from controller "
    r"\d+ epoch (?P<controller_epoch>\d+)(?: for partition " + TP + r")?$",
    convert=_with_state,
    examples=(
        example(
            "Broker 1 received LeaderAndIsr request PartitionState(controllerEpoch=1, leader=2, "
            "leaderEpoch=0, isr=[2, 1], zkVersion=0, replicas=[1, 2]) correlation id 2 from "
            "controller 1 epoch 1 for partition [t,0]",
            node=1, topic="t", partition=0, controller_epoch=1, leader=2, leader_epoch=0,
            isr=(2, 1), partition_epoch=0, replicas=(1, 2),
        ),
        example(
            "[Broker id=1] Received LeaderAndIsr request PartitionState(controllerEpoch=1, "
            "leader=2, leaderEpoch=1, isr=2, zkVersion=1, replicas=1,2, isNew=false) correlation "
            "id 1 from controller 3 epoch 1 for partition t-0",
            node=1, topic="t", partition=0, controller_epoch=1, leader=2, leader_epoch=1, isr=(2,),
            partition_epoch=1, replicas=(1, 2), is_new=False,
        ),
        example(
            "[Broker id=1] Received LeaderAndIsr request LeaderAndIsrPartitionState(topicName='t', "
            "partitionIndex=0, controllerEpoch=1, leader=1, leaderEpoch=0, isr=[1, 2], zkVersion=0, "
            "replicas=[1, 2], addingReplicas=[], removingReplicas=[], isNew=true) correlation id 2 "
            "from controller 3 epoch 1",
            node=1, topic="t", partition=0, controller_epoch=1, leader=1, leader_epoch=0,
            isr=(1, 2), partition_epoch=0, replicas=(1, 2), adding=(), removing=(), is_new=True,
        ),
    ),
)  # fmt: skip

_IGNORED_REQUEST = LineFamily(
    kind="leader_and_isr_ignored",
    versions="0.10 - 3.9 (ZooKeeper)",
    loggers=_STATE_CHANGE,
    words=("ignoring", "Ignoring"),
    trigger="gnoring LeaderAndIsr request from controller ",
    pattern=BROKER_PREFIX
    + r"[Ii]gnoring LeaderAndIsr request from controller \d+ with correlation id \d+ epoch "
    r"(?P<controller_epoch>\d+) for partition "
    + TP
    + r" (?:since|as) (?:its associated leader epoch (?P<leader_epoch>\d+))?(?P<reason>.*)$",
    convert=lambda match: [_without_reason(found_by_groups(match))],
    examples=(
        example(
            "Broker 1 ignoring LeaderAndIsr request from controller 1 with correlation id 1 epoch 3 "
            "for partition [t,0] since its associated leader epoch 0 is not higher than the current "
            "leader epoch 0",
            node=1, topic="t", partition=0, controller_epoch=3, leader_epoch=0,
            current_leader_epoch=0,
        ),
        example(
            "[Broker id=1] Ignoring LeaderAndIsr request from controller 1 with correlation id 10 "
            "epoch 1 for partition t-0 since its associated leader epoch 1 matches the current "
            "leader epoch",
            node=1, topic="t", partition=0, controller_epoch=1, leader_epoch=1,
            current_leader_epoch=1,
        ),
    ),
)  # fmt: skip

_CURRENT_EPOCH = re.compile(r"current leader epoch (\d+)")


def _without_reason(found: Found) -> Found:
    """The reason names the epoch the broker is at, or says that it equals the request's."""
    reason = found.fields.pop("reason", "")
    current = _CURRENT_EPOCH.search(reason)
    if current:
        found.fields["current_leader_epoch"] = int(current[1])
    elif "matches the current leader epoch" in reason:
        found.fields["current_leader_epoch"] = found.fields.get("leader_epoch")
    return found


_NOT_A_FOLLOWER = LineFamily(
    kind="become_follower_failed",
    versions="0.10 - 3.9 (ZooKeeper)",
    loggers=_STATE_CHANGE,
    words=("Received", "received"),
    trigger="but cannot become follower since the new leader ",
    pattern=BROKER_PREFIX
    + r"[Rr]eceived LeaderAndIsrRequest with correlation id \d+ from controller \d+ epoch "
    r"(?P<controller_epoch>\d+) for partition " + TP + r"(?: \(last update controller epoch \d+\))? "
    r"but cannot become follower since the new leader (?P<leader>-?\d+) is unavailable\.$",
    examples=(
        example(
            "[Broker id=3] Received LeaderAndIsrRequest with correlation id 1 from controller 3 "
            "epoch 2 for partition t-0 (last update controller epoch 1) but cannot become follower "
            "since the new leader 1 is unavailable.",
            node=3, topic="t", partition=0, controller_epoch=2, leader=1,
        ),
    ),
)  # fmt: skip

_CACHED = LineFamily(
    kind="leadership_cached",
    versions="0.10 - 3.9 (ZooKeeper)",
    loggers=_STATE_CHANGE,
    words=("cached", "Cached"),
    trigger="ached leader info ",
    pattern=BROKER_PREFIX
    + r"[Cc]ached leader info (?P<state>[\w.$]*\(.*\)) for partition "
    + TP
    + r" in response to UpdateMetadata request",
    convert=_with_state,
    examples=(
        example(
            "Broker 1 cached leader info (LeaderAndIsrInfo:(Leader:2,ISR:2,1,LeaderEpoch:0,"
            "ControllerEpoch:1),ReplicationFactor:2),AllReplicas:1,2) for partition t-0 in response "
            "to UpdateMetadata request sent by controller 1 epoch 1 with correlation id 3",
            node=1, topic="t", partition=0, leader=2, isr=(2, 1), leader_epoch=0,
            controller_epoch=1, replicas=(1, 2),
        ),
        example(
            "[Broker id=1] Cached leader info PartitionState(controllerEpoch=1, leader=2, "
            "leaderEpoch=2, isr=[2], zkVersion=3, replicas=[1, 2], offlineReplicas=[1]) for "
            "partition t-0 in response to UpdateMetadata request sent by controller 3 epoch 1 with "
            "correlation id 5",
            node=1, topic="t", partition=0, controller_epoch=1, leader=2, leader_epoch=2, isr=(2,),
            partition_epoch=3, replicas=(1, 2),
        ),
        example(
            "[Broker id=1] Cached leader info UpdateMetadataPartitionState(topicName='t', "
            "partitionIndex=0, controllerEpoch=1, leader=-1, leaderEpoch=0, isr=[1], zkVersion=1, "
            "replicas=[1, 2], offlineReplicas=[2]) for partition t-0 in response to UpdateMetadata "
            "request sent by controller 3 epoch 1 with correlation id 6",
            node=1, topic="t", partition=0, controller_epoch=1, leader=None, leader_epoch=0,
            isr=(1,), partition_epoch=1, replicas=(1, 2),
        ),
    ),
)  # fmt: skip


def _transition(kind: str, words: tuple[str, ...], pattern: str, line: str) -> LineFamily:
    """Start and end of a role change: what a broker does to its log happens between the two."""
    return LineFamily(
        kind=kind,
        versions="0.10 - 2.5 TRACE, later only at TRACE",
        loggers=_STATE_CHANGE,
        words=words,
        trigger="LeaderAndIsr request correlationId ",
        pattern=BROKER_PREFIX
        + pattern.replace(
            "CONTROLLER", r"from controller \d+ epoch (?P<controller_epoch>\d+)"
        ).replace("ROLE", r"the become-(?P<role>leader|follower) transition")
        + r" for partition "
        + TP
        + r"(?: with leader (?P<leader>-?\d+))?$",
        examples=(
            example(line, node=1, topic="t", partition=0, controller_epoch=1, role="follower"),
        ),
    )


_STARTED = _transition(
    "role_change_started",
    ("handling", "Handling"),
    r"[Hh]andling LeaderAndIsr request correlationId \d+ CONTROLLER starting ROLE",
    "Broker 1 handling LeaderAndIsr request correlationId 2 from controller 1 epoch 1 starting the "
    "become-follower transition for partition t-0",
)
_HANDLING_MANY = ignored(
    "2.6 - 3.9 (ZooKeeper): counts partitions, names none",
    _STATE_CHANGE,
    ("Handling",),
    "LeaderAndIsr request correlationId ",
    r"Handling LeaderAndIsr request correlationId \d+ from controller \d+ for \d+ partitions$",
    "[Broker id=1] Handling LeaderAndIsr request correlationId 3 from controller 1 for 1 partitions",
)

# Of a topic that is deleted, or a replica that a reassignment takes away (ReplicaManager).
_REPLICA_REMOVED = LineFamily(
    kind="replica_removed",
    versions="0.10 - 2.5 TRACE (their default)",
    loggers=_STATE_CHANGE,
    words=("finished", "Finished"),
    trigger="inished handling stop replica (delete=true)",
    pattern=BROKER_PREFIX
    + r"[Ff]inished handling stop replica \(delete=true\) for partition "
    + TP
    + r"$",
    examples=(
        example(
            "Broker 1 finished handling stop replica (delete=true) for partition t-0",
            node=1, topic="t", partition=0,
        ),
        example(
            "[Broker id=2] Finished handling stop replica (delete=true) for partition t-0",
            node=2, topic="t", partition=0,
        ),
    ),
)  # fmt: skip

_OLD_CONTROLLER = ignored(
    "0.10 - 3.9 (ZooKeeper): of a request as a whole, names no partitions",
    _STATE_CHANGE,
    ("ignoring", "Ignoring"),
    "gnoring LeaderAndIsr request from controller ",
    BROKER_PREFIX
    + r"[Ii]gnoring LeaderAndIsr request from controller \d+ with correlation id \d+ since its "
    r"controller epoch \d+ is old\. Latest known controller epoch is \d+$",
    "[Broker id=3] Ignoring LeaderAndIsr request from controller 1 with correlation id 1 since its "
    "controller epoch 3 is old. Latest known controller epoch is 4",
)

_RECOVERED = LineFamily(
    kind="leader_recovered",
    versions="3.2 - 4.3",
    loggers=_STATE_CHANGE,
    words=("The",),
    trigger=" was marked as RECOVERING",
    pattern=BROKER_PREFIX + r"The topic partition (?P<tp>\S+) was marked as RECOVERING\.",
    examples=(
        example(
            "[Broker id=1] The topic partition t-0 was marked as RECOVERING. Marking the topic "
            "partition as RECOVERED.",
            node=1, topic="t", partition=0,
        ),
    ),
)  # fmt: skip

_REPLICA_CREATED = LineFamily(
    kind="replica_created",
    versions="3.3 - 4.3 (KRaft)",
    loggers=_STATE_CHANGE,
    words=("Creating",),
    trigger="Creating new partition ",
    pattern=BROKER_PREFIX + r"Creating new partition (?P<tp>\S+) with topic id (?P<topic_id>\S+?)\.$",
    examples=(
        example(
            "[Broker id=1] Creating new partition t-0 with topic id G9D0UQbvRAa1SHOqY48FbA.",
            node=1, topic="t", partition=0, topic_id="G9D0UQbvRAa1SHOqY48FbA",
        ),
    ),
)  # fmt: skip

# Of a replica that a reassignment gave the broker, or that it missed (ReplicaManager).
_REPLICA_WAS_MISSING = LineFamily(
    kind="replica_created",
    versions="3.3 - 4.3 (KRaft)",
    loggers=_STATE_CHANGE,
    words=("Expected",),
    trigger=" to exist, but it was missing. Creating...",
    pattern=BROKER_PREFIX + r"Expected partition (?P<tp>\S+) with topic id (?P<topic_id>\S+) to exist, "
    r"but it was missing\. Creating\.\.\.$",
    examples=(
        example(
            "[Broker id=2] Expected partition t-0 with topic id vGq_CAOeQIuGBLnyvY_SuA to exist, "
            "but it was missing. Creating...",
            node=2, topic="t", partition=0, topic_id="vGq_CAOeQIuGBLnyvY_SuA",
        ),
    ),
)  # fmt: skip

FAMILIES: tuple[LineFamily, ...] = (
    _LEADER_STARTS,
    _LEADER_STARTS_TO_2_3,
    _LEADER_STARTS_TO_2_5,
    _FOLLOWER_STARTS,
    _SKIPPED_KRAFT,
    _SKIPPED_ZOOKEEPER,
    _RECEIVED,
    _IGNORED_REQUEST,
    _OLD_CONTROLLER,
    _NOT_A_FOLLOWER,
    _CACHED,
    _STARTED,
    _HANDLING_MANY,
    _REPLICA_REMOVED,
    _RECOVERED,
    _REPLICA_CREATED,
    _REPLICA_WAS_MISSING,
)
