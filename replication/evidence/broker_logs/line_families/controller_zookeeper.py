"""Lines of controllers in ZooKeeper mode: elections, states of partitions, what they send."""

import re

from replication.evidence.broker_logs.line_families.family import (
    CONTROLLER_PREFIX,
    TP,
    ZK_CONTROLLER_PREFIX,
    Found,
    LineFamily,
    example,
    ignored,
    read_field,
    topic_partition,
)
from replication.evidence.broker_logs.line_families.partition_state import (
    found_with_state,
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
    convert=found_with_state,
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
    convert=found_with_state,
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

# A reassignment raises the leader epoch before anybody is elected.
_SENT_AS_REASSIGNED = LineFamily(
    kind="leader_and_isr_sent",
    versions="0.10 - 3.9 (ZooKeeper), up to 2.3 at TRACE",
    loggers=_STATE_CHANGE,
    words=("sent", "Sent"),
    trigger=" for partition being reassigned ",
    pattern=CONTROLLER_PREFIX + r"[Ss]ent LeaderAndIsr request (?P<state>\(Leader:.*?\) with new .*) to leader "
    r"(?:(?P<replica>\d+)|-1) for partition being reassigned " + TP + r"$",
    constants={"role": "leader"},
    convert=found_with_state,
    examples=(
        example(
            "[Controller id=2 epoch=1] Sent LeaderAndIsr request (Leader:1,ISR:1,3,2,LeaderEpoch:1,"
            "ZkVersion:1,ControllerEpoch:1) with new replica assignment ReplicaAssignment("
            "replicas=2,3,1, addingReplicas=, removingReplicas=) to leader 1 for partition being "
            "reassigned t-1",
            node=2, topic="t", partition=1, controller_epoch=1, role="leader", leader=1,
            isr=(1, 3, 2), leader_epoch=1, partition_epoch=1, replicas=(2, 3, 1), adding=(),
            removing=(), replica=1,
        ),
        example(
            "[Controller id=1 epoch=1] Sent LeaderAndIsr request (Leader:2,ISR:2,LeaderEpoch:3,"
            "ControllerEpoch:1) with new assigned replica list 1,2 to leader 2 for partition being "
            "reassigned t-0",
            node=1, topic="t", partition=0, controller_epoch=1, role="leader", leader=2, isr=(2,),
            leader_epoch=3, replica=2,
        ),
        example(
            "[Controller id=1 epoch=2] Sent LeaderAndIsr request (Leader:-1,ISR:2,LeaderEpoch:3,"
            "ZkVersion:3,ControllerEpoch:2) with new replica assignment ReplicaAssignment("
            "replicas=1,2,3, addingReplicas=1, removingReplicas=3) to leader -1 for partition being "
            "reassigned t-1",
            node=1, topic="t", partition=1, controller_epoch=2, role="leader", leader=None,
            isr=(2,), leader_epoch=3, partition_epoch=3, replicas=(1, 2, 3), adding=(1,),
            removing=(3,),
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
    convert=found_with_state,
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
    convert=found_with_state,
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
    convert=found_with_state,
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
    convert=found_with_state,
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

FAMILIES: tuple[LineFamily, ...] = (
    _READY,
    _RESIGNED,
    _CHANGED_STATE,
    _SENT,
    _SENT_AS_REASSIGNED,
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
)
