"""Lines of controllers: elections, partition states, brokers that come and go. ZooKeeper and KRaft."""

import re

from replication.evidence.broker_logs.line_families.family import (
    CONTROLLER_PREFIX,
    QUORUM_CONTROLLER_PREFIX,
    TP,
    ZK_CONTROLLER_PREFIX,
    Found,
    LineFamily,
    example,
    found_by_groups,
    ignored,
    read_field,
    topic_partition,
)
from replication.evidence.broker_logs.line_families.partition_state import (
    named_partition,
    partition_state,
)

_STATE_CHANGE = ("state.change.logger",)
_ZK = ("KafkaController",)
_SELECTORS = (
    "OfflinePartitionLeaderSelector",
    "ReassignedPartitionLeaderSelector",
    "PreferredReplicaPartitionLeaderSelector",
    "ControlledShutdownLeaderSelector",
)
_REPLICATION = ("ReplicationControlManager",)
_HEARTBEAT = ("BrokerHeartbeatManager", "ReplicationControlManager")


def _with_state(match: re.Match[str]) -> list[Found]:
    found = found_by_groups(match)
    state = found.fields.pop("state", "")
    named = named_partition(state)
    topic, partition = (found.topic, found.partition) if named is None else named
    return [Found({**partition_state(state), **found.fields}, found.node, topic, partition)]


# --- ZooKeeper ---------------------------------------------------------------------------------

_READY = LineFamily(
    kind="became_controller",
    versions="0.10 - 3.9 (ZooKeeper)",
    loggers=_ZK,
    words=("Broker", "Ready"),
    trigger="eady to serve as the new controller with epoch ",
    pattern=ZK_CONTROLLER_PREFIX + r"(?:Broker \d+ is r|R)eady to serve as the new controller with epoch "
    r"(?P<controller_epoch>\d+)$",
    examples=(
        example(
            "[Controller 1]: Broker 1 is ready to serve as the new controller with epoch 1",
            node=1, controller_epoch=1,
        ),
        example(
            "[Controller id=2] Ready to serve as the new controller with epoch 2",
            node=2, controller_epoch=2,
        ),
    ),
)  # fmt: skip

# Every broker prints it when it stops cleanly, whether it was controller or not.
_RESIGNED = LineFamily(
    kind="controller_resigned",
    versions="0.10 - 3.9 (ZooKeeper)",
    loggers=_ZK,
    words=("Resigned", "Broker"),
    trigger="esigned",
    pattern=ZK_CONTROLLER_PREFIX + r"(?:Resigned|Broker \d+ resigned as the controller)$",
    examples=(
        example("[Controller 1]: Broker 1 resigned as the controller", node=1),
        example("[Controller id=1] Resigned", node=1),
    ),
)

_CHANGED_STATE = LineFamily(
    kind="partition_state_changed",
    versions="0.10 - 2.5 TRACE, 2.6 - 3.9 (ZooKeeper)",
    loggers=_STATE_CHANGE,
    words=("changed", "Changed"),
    trigger="hanged partition ",
    pattern=CONTROLLER_PREFIX + r"[Cc]hanged partition " + TP + r" (?:state )?from (?P<from_state>\w+) to "
    r"(?P<to_state>\w+)(?: with state (?P<state>LeaderAndIsr\(.*\))| with leader (?P<leader>-?\d+)"
    r"| with assigned replicas (?P<replicas>[\d,]*))?$",
    convert=_with_state,
    examples=(
        example(
            "[Controller id=3 epoch=1] Changed partition t-0 from OfflinePartition to "
            "OnlinePartition with state LeaderAndIsr(leader=2, leaderEpoch=1, isr=List(2), "
            "zkVersion=1)",
            node=3, topic="t", partition=0, controller_epoch=1, from_state="OfflinePartition",
            to_state="OnlinePartition", leader=2, leader_epoch=1, isr=(2,), partition_epoch=1,
        ),
        example(
            "[Controller id=3 epoch=1] Changed partition t-0 from NewPartition to OnlinePartition "
            "with state LeaderAndIsr(leader=0, leaderEpoch=0, isrWithBrokerEpoch=List(BrokerState("
            "brokerId=0, brokerEpoch=-1), BrokerState(brokerId=1, brokerEpoch=-1)), "
            "leaderRecoveryState=RECOVERED, partitionEpoch=0)",
            node=3, topic="t", partition=0, controller_epoch=1, from_state="NewPartition",
            to_state="OnlinePartition", leader=0, leader_epoch=0, isr=(0, 1), recovering=False,
            partition_epoch=0,
        ),
        example(
            "[Controller id=3 epoch=1] Changed partition t-0 state from OnlinePartition to "
            "OfflinePartition",
            node=3, topic="t", partition=0, controller_epoch=1, from_state="OnlinePartition",
            to_state="OfflinePartition",
        ),
        example(
            "Controller 1 epoch 3 changed partition [t,0] from OfflinePartition to OnlinePartition "
            "with leader 1",
            node=1, topic="t", partition=0, controller_epoch=3, from_state="OfflinePartition",
            to_state="OnlinePartition", leader=1,
        ),
        example(
            "Controller 1 epoch 1 changed partition [t,0] state from NonExistentPartition to "
            "NewPartition with assigned replicas 2,1",
            node=1, topic="t", partition=0, controller_epoch=1, from_state="NonExistentPartition",
            to_state="NewPartition", replicas=(2, 1),
        ),
    ),
)  # fmt: skip

_SENT = LineFamily(
    kind="leader_and_isr_sent",
    versions="0.10 - 3.9 (ZooKeeper) TRACE",
    loggers=_STATE_CHANGE,
    words=("sending", "Sending"),
    trigger=" LeaderAndIsr request ",
    pattern=CONTROLLER_PREFIX + r"[Ss]ending become-(?P<role>leader|follower) LeaderAndIsr request "
    r"(?P<state>[\w.$]*\(.*\)) to broker (?P<replica>\d+) for partition " + TP + r"$",
    convert=_with_state,
    examples=(
        example(
            "Controller 1 epoch 1 sending become-follower LeaderAndIsr request (Leader:2,ISR:2,1,"
            "LeaderEpoch:0,ControllerEpoch:1) to broker 1 for partition [t,0]",
            node=1, topic="t", partition=0, controller_epoch=1, role="follower", leader=2,
            isr=(2, 1), leader_epoch=0, replica=1,
        ),
        example(
            "[Controller id=3 epoch=1] Sending become-leader LeaderAndIsr request PartitionState("
            "controllerEpoch=1, leader=1, leaderEpoch=0, isr=1,2, zkVersion=0, replicas=1,2, "
            "isNew=true) to broker 1 for partition t-0",
            node=3, topic="t", partition=0, controller_epoch=1, role="leader", leader=1,
            leader_epoch=0, isr=(1, 2), partition_epoch=0, replicas=(1, 2), is_new=True, replica=1,
        ),
    ),
)  # fmt: skip

# To whom is left out: every live broker.
_METADATA_SENT_TO_MANY = ignored(
    "2.6 - 3.9 (ZooKeeper): counts partitions, names none",
    _STATE_CHANGE,
    ("Sending",),
    "ending UpdateMetadata request to brokers ",
    r"Sending UpdateMetadata request to brokers \w+\([\d, ]*\) for \d+ partitions$",
    "[Controller id=1 epoch=1] Sending UpdateMetadata request to brokers HashSet(1) for 0 partitions",
)

_CHANGE_FAILED = LineFamily(
    kind="partition_state_change_failed",
    versions="1.1 - 3.9 (ZooKeeper): most often, nobody could be elected",
    loggers=_STATE_CHANGE,
    words=("Controller",),
    trigger=" failed to change state for partition ",
    pattern=CONTROLLER_PREFIX + r"Controller \d+ epoch \d+ failed to change state for partition " + TP
    + r" from (?P<from_state>\w+) to (?P<to_state>\w+)$",
    examples=(
        example(
            "[Controller id=1 epoch=1] Controller 1 epoch 1 failed to change state for partition t-1 "
            "from OfflinePartition to OnlinePartition",
            node=1, topic="t", partition=1, controller_epoch=1, from_state="OfflinePartition",
            to_state="OnlinePartition",
        ),
    ),
)  # fmt: skip

_SENDING_MANY = ignored(
    "2.6 - 3.9 (ZooKeeper): counts partitions, names none",
    _STATE_CHANGE,
    ("Sending",),
    " LeaderAndIsr request to broker ",
    r"Sending LeaderAndIsr request to broker \d+ with \d+ become-leader and \d+ become-follower "
    r"partitions$",
    "[Controller id=1 epoch=1] Sending LeaderAndIsr request to broker 1 with 1 become-leader and 0 "
    "become-follower partitions",
)

_REMOVED_FROM_ISR = LineFamily(
    kind="replica_removed_from_isr",
    versions="2.4 - 3.9 (ZooKeeper)",
    loggers=_STATE_CHANGE,
    words=("Partition",),
    trigger=" after removing replica ",
    pattern=CONTROLLER_PREFIX + r"Partition (?P<tp>\S+) state changed to (?P<state>\(Leader:.*?\)) after "
    r"removing replica (?P<replica>\d+) from the ISR",
    convert=_with_state,
    examples=(
        example(
            "[Controller id=1 epoch=1] Partition t-1 state changed to (Leader:3,ISR:3,LeaderEpoch:1,"
            "ZkVersion:1,ControllerEpoch:1) after removing replica 2 from the ISR as part of "
            "transition to OfflineReplica",
            node=1, topic="t", partition=1, controller_epoch=1, leader=3, isr=(3,), leader_epoch=1,
            partition_epoch=1, replica=2,
        ),
        example(
            "[Controller id=3 epoch=1] Partition t-0 state changed to (Leader:-1,ISR:1,LeaderEpoch:2"
            ",ZkVersion:2,ControllerEpoch:1) after removing replica 1 from the ISR as part of "
            "transition to OfflineReplica",
            node=3, topic="t", partition=0, controller_epoch=1, leader=None, isr=(1,),
            leader_epoch=2, partition_epoch=2, replica=1,
        ),
    ),
)  # fmt: skip

# 0.10 - 1.0: the ISR printed is the one before.
_REMOVING_FROM_ISR = LineFamily(
    kind="replica_removed_from_isr",
    versions="0.10 - 1.0 DEBUG (shipped as TRACE)",
    loggers=_ZK,
    words=("Removing",),
    trigger="Removing replica ",
    pattern=ZK_CONTROLLER_PREFIX + r"Removing replica (?P<replica>\d+) from ISR (?P<from_isr>[\d,]*) for "
    r"partition " + TP + r"\.$",
    examples=(
        example(
            "[Controller 1]: Removing replica 2 from ISR 1,2 for partition [t,0].",
            node=1, topic="t", partition=0, replica=2, from_isr=(1, 2),
        ),
    ),
)  # fmt: skip

_LEADER_MADE_ISR = LineFamily(
    kind="isr_changed_by_leader",
    versions="2.7 - 3.9 (ZooKeeper) DEBUG (shipped as TRACE)",
    loggers=_ZK,
    words=("ISR",),
    trigger="ISR for partition ",
    pattern=ZK_CONTROLLER_PREFIX + r"ISR for partition (?P<tp>\S+) updated to \[(?P<isr>[\d,]*)\] and "
    r"(?:zkVersion|version|partitionEpoch) updated to \[(?P<partition_epoch>\d+)\]",
    examples=(
        example(
            "[Controller id=1] ISR for partition t-0 updated to [1,2] and zkVersion updated to [2]",
            node=1, topic="t", partition=0, isr=(1, 2), partition_epoch=2,
        ),
    ),
)  # fmt: skip

_SELECTED = LineFamily(
    kind="leader_selected",
    versions="0.10 - 1.0",
    loggers=_SELECTORS,
    words=("Selected",),
    trigger="Selected new leader and ISR ",
    pattern=r"^\[(?P<selector>\w+)\]: Selected new leader and ISR (?P<state>\{.*?\}) for [\w ]*partition "
    + TP + r"$",
    convert=_with_state,
    examples=(
        example(
            '[OfflinePartitionLeaderSelector]: Selected new leader and ISR {"leader":1,'
            '"leader_epoch":1,"isr":[1]} for offline partition [t,0]',
            topic="t", partition=0, selector="OfflinePartitionLeaderSelector", leader=1,
            leader_epoch=1, isr=(1,),
        ),
    ),
)  # fmt: skip

_SELECTED_AFTER_REMOVAL = LineFamily(
    kind="leader_selected",
    versions="0.10 - 1.0",
    loggers=_ZK,
    words=("New",),
    trigger="New leader and ISR for partition ",
    pattern=ZK_CONTROLLER_PREFIX + r"New leader and ISR for partition " + TP + r" is (?P<state>\{.*?\})$",
    constants={"selector": "replica_removed_from_isr"},
    convert=_with_state,
    examples=(
        example(
            '[Controller 1]: New leader and ISR for partition [t,0] is {"leader":1,"leader_epoch":2,'
            '"isr":[1]}',
            node=1, topic="t", partition=0, leader=1, leader_epoch=2, isr=(1,),
            selector="replica_removed_from_isr",
        ),
    ),
)  # fmt: skip

_INITIALIZED = LineFamily(
    kind="leader_selected",
    versions="0.10 - 1.0 DEBUG (shipped as TRACE)",
    loggers=("PartitionStateMachine",),
    words=("Initializing",),
    trigger="Initializing leader and isr ",
    pattern=r"^\[Partition state machine on Controller (?P<node>\d+)\]: Initializing leader and isr for "
    r"partition " + TP + r" to (?P<state>\(Leader:.*\))$",
    constants={"selector": "new_partition"},
    convert=_with_state,
    examples=(
        example(
            "[Partition state machine on Controller 1]: Initializing leader and isr for partition "
            "[t,0] to (Leader:2,ISR:2,1,LeaderEpoch:0,ControllerEpoch:1)",
            node=1, topic="t", partition=0, leader=2, isr=(2, 1), leader_epoch=0,
            controller_epoch=1, selector="new_partition",
        ),
    ),
)  # fmt: skip

_CONTROLLED_SHUTDOWN = LineFamily(
    kind="leader_selected",
    versions="0.10 - 1.0 DEBUG (shipped as TRACE)",
    loggers=_SELECTORS,
    words=("Partition",),
    trigger=" : current leader = ",
    pattern=r"^\[(?P<selector>\w+)\]: Partition " + TP + r" : current leader = (?P<previous_leader>-?\d+), "
    r"new leader = (?P<leader>-?\d+)$",
    examples=(
        example(
            "[ControlledShutdownLeaderSelector]: Partition [t,0] : current leader = 1, new leader = "
            "2",
            topic="t", partition=0, selector="ControlledShutdownLeaderSelector", previous_leader=1,
            leader=2,
        ),
    ),
)  # fmt: skip

_UNCLEAN_ZOOKEEPER = LineFamily(
    kind="unclean_leader_elected",
    versions="0.10 - 1.0",
    loggers=(*_SELECTORS, *_ZK),
    words=("No",),
    trigger="There's potential data loss",
    pattern=r"No broker in ISR is alive for " + TP + r"\. Elect leader (?P<leader>\d+) from live brokers "
    r"(?P<live>[\d, ]*)\. There's potential data loss\.$",
    examples=(
        example(
            "[OfflinePartitionLeaderSelector]: No broker in ISR is alive for [t,0]. Elect leader 1 "
            "from live brokers 1,3. There's potential data loss.",
            topic="t", partition=0, leader=1, live=(1, 3),
        ),
    ),
)  # fmt: skip

_LAST_RETAINED = LineFamily(
    kind="last_isr_retained",
    versions="0.10 - 2.3",
    loggers=(*_ZK, *_STATE_CHANGE),
    words=("Retaining",),
    trigger="Retaining last ISR ",
    pattern=r"(?:^\[Controller (?:id=)?(?P<node>\d+)(?: epoch=\d+)?\]:? )?Retaining last ISR "
    r"(?P<isr>\d+) of partition " + TP + r" since unclean leader election is disabled$",
    examples=(
        example(
            "[Controller 1]: Retaining last ISR 1 of partition [t,0] since unclean leader election "
            "is disabled",
            node=1, topic="t", partition=0, isr=(1,),
        ),
    ),
)  # fmt: skip

_CACHED_LEADERS = re.compile(r"(\[[^\],\s]+,\d+\]|[^\s,(]+-\d+) -> (\(Leader:.*?\))")


def _all_leaders(match: re.Match[str]) -> list[Found]:
    node = int(match["node"])
    return [
        Found(partition_state(state), node, *topic_partition(name))
        for name, state in _CACHED_LEADERS.findall(match["rest"])
    ]


# What the controller believes when a broker asks to be shut down.
_ALL_LEADERS = LineFamily(
    kind="leadership_cached",
    versions="1.0 - 3.9 (ZooKeeper) TRACE (shipped so)",
    loggers=_ZK,
    words=("All",),
    trigger="All leaders = ",
    pattern=ZK_CONTROLLER_PREFIX + r"All leaders = (?P<rest>.*)$",
    convert=_all_leaders,
    examples=(
        example(
            "[Controller id=1] All leaders = t-1 -> (Leader:2,ISR:1,2,LeaderEpoch:5,"
            "ControllerEpoch:3),t-0 -> (Leader:1,ISR:2,1,LeaderEpoch:6,ZkVersion:8,"
            "ControllerEpoch:3)",
            Found({"leader": 2, "leader_epoch": 5, "isr": (1, 2), "controller_epoch": 3}, 1, "t", 1),
            Found(
                {"leader": 1, "leader_epoch": 6, "isr": (2, 1), "partition_epoch": 8,
                 "controller_epoch": 3}, 1, "t", 0,
            ),
        ),
    ),
)  # fmt: skip

_ASSIGNMENT = re.compile(
    r"(\[[^\],\s]+,\d+\]|[^\s,(]+-\d+) -> "
    r"(?:ReplicaAssignment\(replicas=([\d,]*)|\w+\(([\d, ]*)\))"
)
_TOPIC_IDS = re.compile(r"TopicIdReplicaAssignment\(([^,]+),(Some\([^)]*\)|None),")


def _assigned(match: re.Match[str]) -> list[Found]:
    rest = match["rest"]
    ids = {topic: read_field("topic_id", text) for topic, text in _TOPIC_IDS.findall(rest)}
    found = []
    for name, replicas, others in _ASSIGNMENT.findall(rest):
        topic, partition = topic_partition(name)
        fields = {"replicas": read_field("replicas", replicas or others)}
        if topic in ids:
            fields["topic_id"] = ids[topic]
        found.append(Found(fields, int(match["node"]), topic, partition))
    return found


_NEW_TOPICS = LineFamily(
    kind="partition_assigned",
    versions="0.10 - 3.9 (ZooKeeper)",
    loggers=("KafkaController", "TopicChangeListener"),
    words=("New",),
    trigger="new partition replica assignment [",
    pattern=r"^\[(?:Controller id=|TopicChangeListener on Controller )(?P<node>\d+)\]:? New topics: "
    r".*new partition replica assignment \[(?P<rest>.*)\]$",
    convert=_assigned,
    examples=(
        example(
            "[TopicChangeListener on Controller 1]: New topics: [Set(t)], deleted topics: [Set()], "
            "new partition replica assignment [Map([t,0] -> List(2, 1))]",
            node=1, topic="t", partition=0, replicas=(2, 1),
        ),
        example(
            "[Controller id=1] New topics: [Set(t)], deleted topics: [HashSet()], new partition "
            "replica assignment [Set(TopicIdReplicaAssignment(t,Some(V7n8wVQPSoW6uf_6mz8VJQ),Map("
            "t-0 -> ReplicaAssignment(replicas=1,2, addingReplicas=, removingReplicas=), t-1 -> "
            "ReplicaAssignment(replicas=2,3, addingReplicas=, removingReplicas=))))]",
            Found({"replicas": (1, 2), "topic_id": "V7n8wVQPSoW6uf_6mz8VJQ"}, 1, "t", 0),
            Found({"replicas": (2, 3), "topic_id": "V7n8wVQPSoW6uf_6mz8VJQ"}, 1, "t", 1),
        ),
    ),
)  # fmt: skip

# --- KRaft -------------------------------------------------------------------------------------

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
    convert=_with_state,
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
    r"handleDirectoriesOffline\[(?P<broker>\d+)\]",
    (
        "[QuorumController id=100] handleDirectoriesOffline[2]: changing 2 partition(s)",
        {"node": 100, "broker": 2, "partitions": 2},
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
    _READY,
    _RESIGNED,
    _CHANGED_STATE,
    _SENT,
    _SENDING_MANY,
    _METADATA_SENT_TO_MANY,
    _CHANGE_FAILED,
    _REMOVED_FROM_ISR,
    _REMOVING_FROM_ISR,
    _LEADER_MADE_ISR,
    _SELECTED,
    _SELECTED_AFTER_REMOVAL,
    _INITIALIZED,
    _CONTROLLED_SHUTDOWN,
    _UNCLEAN_ZOOKEEPER,
    _LAST_RETAINED,
    _ALL_LEADERS,
    _NEW_TOPICS,
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
