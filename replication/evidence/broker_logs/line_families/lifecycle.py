"""Lines of a broker process's life: start, version, signal, stop, clean or not."""

from replication.evidence.broker_logs.line_families.family import (
    LineFamily,
    example,
    ignored,
)

_SERVER = ("KafkaServer", "KafkaRaftServer", "BrokerServer", "ControllerServer")
_MANAGER = ("LogManager",)

# The first line a broker of 1.0 or later writes at INFO, in both modes.
_FIRST_LINE = LineFamily(
    kind="process_started",
    versions="1.0 - 4.3",
    loggers=("Log4jControllerRegistration", "CoreUtils"),
    words=("Registered",),
    trigger="kafka.Log4jController",
    pattern=r"^Registered `?kafka:type=kafka\.Log4jController`? MBean$",
    examples=(
        example("Registered kafka:type=kafka.Log4jController MBean"),
        example("Registered `kafka:type=kafka.Log4jController` MBean"),
    ),
)

# Up to 0.11 this is the first line that tells a start; later it follows the line above.
# The reader turns it into `process_started` for files that never had the other.
_STARTING = LineFamily(
    kind="server_starting",
    versions="0.10 - 3.9 (ZooKeeper)",
    loggers=("KafkaServer",),
    words=("starting",),
    pattern=r"^(?:\[Kafka ?Server (?:id=)?(?P<node>\d+)\],? )?starting$",
    examples=(example("starting"),),
)

_VERSION = LineFamily(
    kind="kafka_version",
    versions="0.10 - 4.3",
    loggers=("AppInfoParser",),
    words=("Kafka",),
    trigger="Kafka version",
    pattern=r"^Kafka version ?: (?P<version>\S+)$",
    examples=(
        example("Kafka version : 0.10.2.2", version="0.10.2.2"),
        example("Kafka version: 4.1.1", version="4.1.1"),
    ),
)

_STARTED = LineFamily(
    kind="server_started",
    versions="0.10 - 4.3",
    loggers=_SERVER,
    words=("started", "Kafka"),
    trigger="started",
    pattern=r"^\[Kafka ?(?:Raft)?Server (?:id=|nodeId=)?(?P<node>\d+)\],? (?:Kafka Server )?started$",
    examples=(
        example("[Kafka Server 1], started", node=1),
        example("[KafkaServer id=1] started", node=1),
        example("[KafkaRaftServer nodeId=1] Kafka Server started", node=1),
    ),
)

_STATE_CHANGED = LineFamily(
    kind="server_state_changed",
    versions="2.8 - 4.3 (KRaft)",
    loggers=("BrokerServer",),
    words=("Transition",),
    trigger="Transition from ",
    pattern=r"^\[BrokerServer id=(?P<node>\d+)\] Transition from \w+ to (?P<state>\w+)",
    examples=(
        example(
            "[BrokerServer id=2] Transition from SHUTDOWN to STARTING", node=2, state="STARTING"
        ),
    ),
)  # fmt: skip

_CONTROLLER_STARTING = LineFamily(
    kind="server_state_changed",
    versions="2.8 - 4.3 (KRaft)",
    loggers=("ControllerServer",),
    words=("Starting",),
    trigger="Starting controller",
    pattern=r"^\[ControllerServer id=(?P<node>\d+)\] Starting controller",
    constants={"state": "STARTING"},
    examples=(
        example("[ControllerServer id=100] Starting controller", node=100, state="STARTING"),
    ),
)  # fmt: skip

_SIGNAL = LineFamily(
    kind="process_signalled",
    versions="1.0 - 4.3",
    loggers=("LoggingSignalHandler",),
    words=("Terminating",),
    trigger="due to signal ",
    pattern=r"^Terminating process due to signal (?P<signal>\w+)$",
    examples=(example("Terminating process due to signal SIGTERM", signal="SIGTERM"),),
)

_STOPPING = LineFamily(
    kind="stopping",
    versions="0.10 - 4.3",
    loggers=_SERVER,
    words=("shutting",),
    pattern=r"^\[(?:Kafka ?|Broker|Controller)Server (?:id=)?(?P<node>\d+)\],? shutting down$",
    examples=(
        example("[Kafka Server 1], shutting down", node=1),
        example("[KafkaServer id=1] shutting down", node=1),
        example("[BrokerServer id=1] shutting down", node=1),
    ),
)

# 4.x brokers stop logging before they get here, so the line is missing after a clean stop too.
_STOPPED = LineFamily(
    kind="stopped_cleanly",
    versions="0.10 - 3.9",
    loggers=_SERVER,
    words=("shut",),
    trigger="shut down completed",
    pattern=r"^\[(?:Kafka ?|Broker|Controller)Server (?:id=)?(?P<node>\d+)\],? shut down completed$",
    examples=(
        example("[Kafka Server 1], shut down completed", node=1),
        example("[KafkaServer id=1] shut down completed", node=1),
        example("[BrokerServer id=1] shut down completed", node=1),
    ),
)

# Its logs were not even loaded.
_STOPPED_EARLY = ignored(
    "1.0 - 3.9: a start that failed before the broker knew its id",
    _SERVER,
    ("shutting", "shut"),
    "shut",
    r"^(?:shutting down|shut down completed)$",
    "shutting down",
)

_CLUSTER_ID_ZOOKEEPER = LineFamily(
    kind="cluster_id",
    versions="0.10.1 - 3.9 (ZooKeeper)",
    loggers=("KafkaServer",),
    words=("Cluster",),
    trigger="Cluster ID = ",
    pattern=r"Cluster ID = (?P<cluster_id>\S{22})$",
    examples=(example("Cluster ID = 4HvryuWgRUWjvEZfJVSgVw", cluster_id="4HvryuWgRUWjvEZfJVSgVw"),),
)

_CLUSTER_ID_KRAFT = LineFamily(
    kind="cluster_id",
    versions="2.8 - 4.3 (KRaft)",
    loggers=("BrokerLifecycleManager",),
    words=("Incarnation",),
    trigger=" in cluster ",
    pattern=r"^\[BrokerLifecycleManager id=(?P<node>\d+)\] Incarnation (?P<incarnation>\S+) of broker \d+ "
    r"in cluster (?P<cluster_id>\S+) is now STARTING\.$",
    examples=(
        example(
            "[BrokerLifecycleManager id=1] Incarnation R5NJFjR5TWKBo_EIOYo6sQ of broker 1 in cluster "
            "a__laQpVT76GIEI8BaH6mw is now STARTING.",
            node=1, incarnation="R5NJFjR5TWKBo_EIOYo6sQ", cluster_id="a__laQpVT76GIEI8BaH6mw",
        ),
    ),
)  # fmt: skip

_CLUSTER_ID_CONTROLLER = LineFamily(
    kind="cluster_id",
    versions="3.0 - 4.3 (KRaft controller)",
    loggers=("QuorumController",),
    words=("Creating",),
    trigger="with clusterId ",
    pattern=r"^\[(?:QuorumController id=|Controller )(?P<node>\d+)\] Creating new QuorumController with "
    r"clusterId (?P<cluster_id>[\w-]+)",
    examples=(
        example(
            "[QuorumController id=100] Creating new QuorumController with clusterId "
            "a__laQpVT76GIEI8BaH6mw.",
            node=100, cluster_id="a__laQpVT76GIEI8BaH6mw",
        ),
    ),
)  # fmt: skip

_REGISTERED = LineFamily(
    kind="broker_epoch_granted",
    versions="2.8 - 4.3 (KRaft)",
    loggers=("BrokerLifecycleManager",),
    words=("Successfully",),
    trigger="registered broker ",
    pattern=r"^\[BrokerLifecycleManager id=(?P<node>\d+)\] Successfully registered broker \d+ with broker "
    r"epoch (?P<broker_epoch>\d+)$",
    examples=(
        example(
            "[BrokerLifecycleManager id=1] Successfully registered broker 1 with broker epoch 11",
            node=1, broker_epoch=11,
        ),
    ),
)  # fmt: skip

_CLEAN = LineFamily(
    kind="clean_shutdown_found",
    versions="0.10 - 2.7 DEBUG, 2.8 - 4.3",
    loggers=_MANAGER,
    words=("Skipping", "Found"),
    trigger="clean shutdown file",
    pattern=r"^(?:Skipping recovery (?:for all logs in|of (?P<logs>\d+) logs from) (?P<directory>.+) since "
    r"clean shutdown file was found|Found clean shutdown file\. Skipping recovery for all logs in data "
    r"directory: (?P<directory__2>.+))$",
    examples=(
        example(
            "Skipping recovery for all logs in /var/lib/kafka/b2/data since clean shutdown file was "
            "found",
            directory="/var/lib/kafka/b2/data",
        ),
        example(
            "Skipping recovery of 1 logs from /var/lib/kafka/b1 since clean shutdown file was found",
            logs=1, directory="/var/lib/kafka/b1",
        ),
        example(
            "Found clean shutdown file. Skipping recovery for all logs in data directory: "
            "/var/lib/kafka/b1/data",
            directory="/var/lib/kafka/b1/data",
        ),
    ),
)  # fmt: skip

# 2.8 prints it also for a directory that is empty because it is new.
_UNCLEAN = LineFamily(
    kind="unclean_recovery",
    versions="2.8 - 4.3",
    loggers=_MANAGER,
    words=("Attempting", "Recovering"),
    trigger="no clean shutdown file",
    pattern=r"^(?:Attempting recovery for all logs in|Recovering (?P<logs>\d+) logs from) "
    r"(?P<directory>.+) since no clean shutdown file was found$",
    examples=(
        example(
            "Attempting recovery for all logs in /var/lib/kafka/b1/data since no clean shutdown "
            "file was found",
            directory="/var/lib/kafka/b1/data",
        ),
        example(
            "Recovering 1 logs from /var/lib/kafka/b1 since no clean shutdown file was found",
            logs=1, directory="/var/lib/kafka/b1",
        ),
    ),
)  # fmt: skip

FAMILIES: tuple[LineFamily, ...] = (
    _FIRST_LINE,
    _STARTING,
    _VERSION,
    _STARTED,
    _STATE_CHANGED,
    _CONTROLLER_STARTING,
    _SIGNAL,
    _STOPPING,
    _STOPPED,
    _STOPPED_EARLY,
    _CLUSTER_ID_ZOOKEEPER,
    _CLUSTER_ID_KRAFT,
    _CLUSTER_ID_CONTROLLER,
    _REGISTERED,
    _CLEAN,
    _UNCLEAN,
)
