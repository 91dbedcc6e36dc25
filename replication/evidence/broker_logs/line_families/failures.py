"""Lines of a broker process that fails: its directories, its quorum, itself."""

import re

from replication.evidence.broker_logs.line_families.family import (
    FETCHER_PREFIX,
    TP,
    Found,
    LineFamily,
    example,
    topic_partition,
)

_SERVER = ("KafkaServer", "KafkaRaftServer", "BrokerServer", "ControllerServer")
_MANAGER = ("LogManager",)

_FATAL = LineFamily(
    kind="process_failed",
    versions="0.10 - 4.3",
    loggers=(*_SERVER, "KafkaServerStartable"),
    words=("Fatal",),
    trigger="Fatal error during ",
    pattern=r"^(?:\[(?:Kafka ?|Broker|Controller)Server (?:id=)?(?P<node>\d+)\],? )?"
    r"Fatal error during (?P<reason>.*?)\.?$",
    examples=(
        example(
            "[KafkaServer id=3] Fatal error during KafkaServer shutdown.",
            node=3, reason="KafkaServer shutdown",
        ),
    ),
)  # fmt: skip

_HALTING = LineFamily(
    kind="process_failed",
    versions="1.0 - 2.7",
    loggers=("KafkaServerStartable", "Kafka"),
    words=("Halting",),
    trigger="Halting Kafka",
    pattern=r"^(?P<reason>Halting Kafka)\.?$",
    examples=(example("Halting Kafka.", reason="Halting Kafka"),),
)

_EXITING = LineFamily(
    kind="process_failed",
    versions="2.8 - 4.3",
    loggers=("Kafka", "KafkaServerStartable"),
    words=("Exiting",),
    trigger="Exiting Kafka due to fatal exception",
    pattern=r"^Exiting Kafka due to (?P<reason>fatal exception(?: during startup)?)\.?$",
    examples=(
        example(
            "Exiting Kafka due to fatal exception during startup.",
            reason="fatal exception during startup",
        ),
    ),
)

_FAULT = LineFamily(
    kind="process_failed",
    versions="3.3 - 4.3 (KRaft)",
    loggers=("ProcessTerminatingFaultHandler",),
    words=("Encountered",),
    trigger="Encountered fatal fault: ",
    pattern=r"^Encountered fatal fault: (?P<reason>.{1,160})",
    examples=(
        example(
            "Encountered fatal fault: caught exception", reason="caught exception"
        ),
    ),
)  # fmt: skip

_EXITING_START = LineFamily(
    kind="process_failed",
    versions="1.0 - 2.7",
    loggers=("KafkaServerStartable",),
    words=("Exiting",),
    trigger="Exiting Kafka.",
    pattern=r"^(?P<reason>Exiting Kafka)\.$",
    examples=(example("Exiting Kafka.", reason="Exiting Kafka"),),
)

# Before KIP-112 one error of a disk ends the process.
_MANAGER_OF_REPLICAS = r"^(?:\[Replica Manager on Broker (?P<node>\d+)\]: )?"

_HALTING_DISK = LineFamily(
    kind="process_failed",
    versions="0.10 - 0.11",
    loggers=("ReplicaManager",),
    words=("Halting",),
    trigger="Halting due to unrecoverable I/O error",
    pattern=_MANAGER_OF_REPLICAS + r"(?P<reason>Halting due to unrecoverable I/O error while "
    r"handling produce request):?\s*$",
    examples=(
        example(
            "[Replica Manager on Broker 1]: Halting due to unrecoverable I/O error while handling "
            "produce request: ",
            node=1,
            reason="Halting due to unrecoverable I/O error while handling produce request",
        ),
    ),
)

_HALTING_CHECKPOINT = LineFamily(
    kind="process_failed",
    versions="0.10 - 0.11",
    loggers=("ReplicaManager",),
    words=("Error",),
    trigger="Error writing to highwatermark file",
    pattern=_MANAGER_OF_REPLICAS + r"(?P<reason>Error writing to highwatermark file):?\s*$",
    examples=(
        example(
            "[Replica Manager on Broker 1]: Error writing to highwatermark file: ",
            node=1, reason="Error writing to highwatermark file",
        ),
    ),
)  # fmt: skip

_FETCHER_HALTING = LineFamily(
    kind="process_failed",
    versions="0.10 - 0.11",
    loggers=("ReplicaFetcherThread",),
    words=("Disk", "Exiting", "Halting"),
    trigger=" for ",
    pattern=FETCHER_PREFIX + r"(?P<reason>Disk error while replicating data for \S+"
    # 0.10.0 names the topic alone.
    r"|(?:Exiting|Halting) because log truncation is not allowed for topic .+)$",
    examples=(
        example(
            "[ReplicaFetcherThread-0-1], Disk error while replicating data for t-0",
            leader=1, reason="Disk error while replicating data for t-0",
        ),
        example(
            "[ReplicaFetcherThread-0-1], Exiting because log truncation is not allowed for topic t, "
            "Current leader 1's latest offset 10 is less than replica 2's latest offset 11",
            leader=1,
            reason="Exiting because log truncation is not allowed for topic t, Current leader 1's "
            "latest offset 10 is less than replica 2's latest offset 11",
        ),
    ),
)  # fmt: skip

_HALTING_OFFLINE = LineFamily(
    kind="all_log_dirs_failed",
    versions="1.0 - 4.3",
    loggers=("ReplicaManager", "LogDirFailureHandler"),
    words=("Halting",),
    trigger="Halting broker because dir ",
    pattern=r"(?:^\[ReplicaManager broker=(?P<node>\d+)\] |^)Halting broker because dir "
    r"(?P<directory>.+) is offline$",
    examples=(
        example("Halting broker because dir /data/1 is offline", directory="/data/1"),
    ),
)  # fmt: skip

_UNREGISTERED = LineFamily(
    kind="quorum_unreachable",
    versions="2.8 - 4.3 (KRaft)",
    loggers=("BrokerLifecycleManager",),
    words=("Shutting",),
    trigger="unable to register with the controller quorum",
    pattern=r"^\[BrokerLifecycleManager id=(?P<node>\d+)\] Shutting down because we were unable to "
    r"register with the controller quorum\.$",
    examples=(
        example(
            "[BrokerLifecycleManager id=1] Shutting down because we were unable to register with "
            "the controller quorum.",
            node=1,
        ),
    ),
)  # fmt: skip

_CANDIDATE = LineFamily(
    kind="quorum_candidate",
    versions="2.8 - 4.3 (KRaft)",
    loggers=("QuorumState",),
    words=("Completed",),
    trigger="Completed transition to CandidateState",
    pattern=r"^\[RaftManager (?:nodeId|id)=(?P<node>\d+)\] Completed transition to CandidateState\("
    r"localId=\d+, (?:localDirectoryId=[\w-]+, ?)?epoch=(?P<controller_epoch>\d+)",
    examples=(
        example(
            "[RaftManager id=3] Completed transition to CandidateState(localId=3, "
            "localDirectoryId=lr1ecSWHT8mZTzOtwIRw7A,epoch=12, epochElection=EpochElection("
            "voterStates={}), highWatermark=Optional.empty, electionTimeoutMs=1541) from "
            "FollowerState(fetchTimeoutMs=2000, epoch=11, leader=1)",
            node=3, controller_epoch=12,
        ),
        example(
            "[RaftManager nodeId=3] Completed transition to CandidateState(localId=3, epoch=12, "
            "retries=1, electionTimeoutMs=1541)",
            node=3, controller_epoch=12,
        ),
    ),
)  # fmt: skip

# What went wrong with a disk, by the operation that failed (LogDirFailureChannel).
_DISK_ERROR = LineFamily(
    kind="disk_error",
    versions="1.0 - 4.3",
    loggers=("LogDirFailureChannel",),
    words=("Error", "Exception"),
    trigger=" in dir ",
    pattern=r"^(?:Error|Exception) while (?P<operation>.{1,80}?) (?:for|to|from) " + TP
    + r"(?: to \d+)? in (?:log )?dir (?P<directory>\S+)(?: with offset .*)?$",
    examples=(
        example(
            "Error while appending records to t-0 in dir /data/1",
            topic="t", partition=0, operation="appending records", directory="/data/1",
        ),
        example(
            "Error while flushing log for t-0 in dir /data/1 with offset 17",
            topic="t", partition=0, operation="flushing log", directory="/data/1",
        ),
    ),
)  # fmt: skip

_FILE_ERROR = LineFamily(
    kind="disk_error",
    versions="1.0 - 4.3",
    loggers=("LogDirFailureChannel",),
    words=("Error", "Disk"),
    trigger="rror while ",
    pattern=r"^(?:Disk error|Error) while (?P<operation>(?:writing to|reading|locking|loading|writing)"
    r"(?: checkpoint file| partition metadata file| directory| log dir| ID)?) (?P<directory>/\S+)$",
    examples=(
        example(
            "Error while writing to checkpoint file /data/1/recovery-point-offset-checkpoint",
            operation="writing to checkpoint file",
            directory="/data/1/recovery-point-offset-checkpoint",
        ),
        example(
            "Disk error while locking directory /data/1",
            operation="locking directory", directory="/data/1",
        ),
    ),
)  # fmt: skip

_DIRECTORY_FAILED = LineFamily(
    kind="log_dir_failed",
    versions="1.0 - 4.3",
    loggers=("LogManager", "ReplicaManager"),
    words=("Stopping",),
    trigger="Stopping serving ",
    pattern=r"(?:^\[ReplicaManager broker=(?P<node>\d+)\] |^)Stopping serving (?:replicas|logs) in dir "
    r"(?P<directory>\S+?)(?: with uuid .*)?\.?$",
    examples=(
        example("Stopping serving logs in dir /var/lib/kafka/b1", directory="/var/lib/kafka/b1"),
        example(
            "[ReplicaManager broker=1] Stopping serving replicas in dir /var/lib/kafka/b1",
            node=1, directory="/var/lib/kafka/b1",
        ),
    ),
)  # fmt: skip


def _in_failed_directory(match: re.Match[str]) -> list[Found]:
    where, named = {"directory": match["directory"]}, match["partitions"].split(",")
    return [Found(where, int(match["node"]), *topic_partition(tp.strip())) for tp in named if tp]


_IN_FAILED_DIRECTORY = LineFamily(
    kind="log_dir_failed",
    versions="1.0 - 4.3",
    loggers=("ReplicaManager",),
    words=("Broker",),
    trigger=" because they are in the failed log dir",
    pattern=r"^(?:\[ReplicaManager broker=\d+\] )?Broker (?P<node>\d+) stopped fetcher for partitions "
    r"(?P<partitions>.*?)(?: and stopped moving logs for partitions \S*)? because they are in the "
    r"failed log dir(?:ectory)? (?P<directory>\S+?)\.?$",
    convert=_in_failed_directory,
    examples=(
        example(
            "[ReplicaManager broker=1] Broker 1 stopped fetcher for partitions t-1,t-0 and stopped "
            "moving logs for partitions  because they are in the failed log directory /data/1.",
            Found({"directory": "/data/1"}, 1, "t", 1),
            Found({"directory": "/data/1"}, 1, "t", 0),
        ),
        example(
            "[ReplicaManager broker=1] Broker 1 stopped fetcher for partitions t-1, t-0 because they "
            "are in the failed log dir /data/1",
            Found({"directory": "/data/1"}, 1, "t", 1),
            Found({"directory": "/data/1"}, 1, "t", 0),
        ),
    ),
)  # fmt: skip

_DIRECTORY_REFUSED = LineFamily(
    kind="log_dir_failed",
    versions="1.0 - 4.3",
    loggers=_MANAGER,
    words=("Failed",),
    trigger="Failed to create or validate data directory ",
    pattern=r"^Failed to create or validate data directory (?P<directory>\S+)",
    examples=(
        example(
            "Failed to create or validate data directory /var/lib/kafka/b1",
            directory="/var/lib/kafka/b1",
        ),
    ),
)  # fmt: skip

_ALL_DIRECTORIES_FAILED = LineFamily(
    kind="all_log_dirs_failed",
    versions="1.0 - 4.3",
    loggers=_MANAGER,
    words=("Shutdown",),
    trigger="Shutdown broker because ",
    pattern=r"^Shutdown broker because (?:all log dirs in (?P<directory>.+) have failed|none of the "
    r"specified log dirs from (?P<directory__2>.+) can be created or validated)$",
    examples=(
        example(
            "Shutdown broker because none of the specified log dirs from /data/1, /data/2 can be "
            "created or validated",
            directory="/data/1, /data/2",
        ),
        example(
            "Shutdown broker because all log dirs in /var/lib/kafka/b1 have failed",
            directory="/var/lib/kafka/b1",
        ),
    ),
)  # fmt: skip

FAMILIES: tuple[LineFamily, ...] = (
    _FATAL,
    _HALTING,
    _EXITING,
    _EXITING_START,
    _HALTING_DISK,
    _HALTING_CHECKPOINT,
    _FETCHER_HALTING,
    _FAULT,
    _HALTING_OFFLINE,
    _UNREGISTERED,
    _CANDIDATE,
    _DISK_ERROR,
    _FILE_ERROR,
    _DIRECTORY_FAILED,
    _IN_FAILED_DIRECTORY,
    _DIRECTORY_REFUSED,
    _ALL_DIRECTORIES_FAILED,
)
