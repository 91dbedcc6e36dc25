"""One frozen dataclass per observable fact: what a replica, a controller or a client did.

An event is an observation of one step. Fields that nobody observed are None: then the fold uses
the value that the declared Kafka version's rule gives and marks it inferred. Offsets that end
something are exclusive. `schemas/replica_events.json` is the same contract as data; a test holds
the two together.
"""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from replication.protocol.ground.model import EpochEntry, Span


@dataclass(frozen=True, slots=True)
class PartitionDescribed:
    """What is known of the partition as a whole: assignment, settings, version.

    Any field may be None (not known); a later description overrides field by field. deleted: the
    topic incarnation was deleted, which ends every promise about it. leader: as kafka-topics named
    it at some moment; the controller's own history comes first.
    """

    kind: ClassVar[str] = "partition_described"
    assigned_replicas: tuple[int, ...] | None = None
    min_insync_replicas: int | None = None
    unclean_leader_election: bool | None = None
    cleanup_policy: str | None = None
    kafka_version: str | None = None
    inter_broker_version: str | None = None
    controller: str | None = None
    deleted: bool | None = None
    leader: int | None = None


# Elections of who need not have what was committed, in the words of the outward contract.
UNCLEAN_KINDS = ("unclean", "last_known_leader")


@dataclass(frozen=True, slots=True)
class LeadershipRecorded:
    """The controller's registration of the partition after one change of it.

    election_kind: the words of the outward contract, None when no leader was elected.
    partition_epoch: ZooKeeper's zkVersion or KRaft's partition epoch.
    """

    kind: ClassVar[str] = "leadership_recorded"
    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...] | None = None
    partition_epoch: int | None = None
    election_kind: str | None = None
    assigned_replicas: tuple[int, ...] | None = None
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_leader_replicas: tuple[int, ...] | None = None
    recovering: bool | None = None


@dataclass(frozen=True, slots=True)
class ReplicaStarted:
    """A broker process loaded this replica's log. high_watermark: the checkpointed one, clamped.

    kafka_version: what this process runs, where the cluster's brokers run several releases.
    """

    kind: ClassVar[str] = "replica_started"
    replica: int
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    high_watermark: int | None = None
    clean: bool | None = None
    kafka_version: str | None = None


@dataclass(frozen=True, slots=True)
class ReplicaStopped:
    """The broker process ended. reason: clean, process_crash, power_loss, disk_loss or unknown.

    log_end_offset: what survived on the disk, where the loss of a suffix is known.
    """

    kind: ClassVar[str] = "replica_stopped"
    replica: int
    reason: str = "unknown"
    log_end_offset: int | None = None


@dataclass(frozen=True, slots=True)
class BecameLeader:
    """A broker took leadership. log_end_offset is its own, before any append of the new epoch.

    previous_leader_epoch: the epoch in which it led until now; None where it did not, or where
    nothing tells.
    """

    kind: ClassVar[str] = "became_leader"
    replica: int
    leader_epoch: int
    log_end_offset: int | None = None
    high_watermark: int | None = None
    partition_epoch: int | None = None
    previous_leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class BecameFollower:
    """A broker follows. log_end_offset and high_watermark are from before any truncation."""

    kind: ClassVar[str] = "became_follower"
    replica: int
    leader_epoch: int
    leader: int | None = None
    log_end_offset: int | None = None
    high_watermark: int | None = None
    partition_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Truncated:
    """A replica cut its log to to_offset (None: the rule decides). Where from_offset, the log end
    before, is the same, the cut left all there was.

    reason: high_watermark, leader_epoch, diverging_epoch, out_of_range, full, recovery, unknown.
    diverging_epoch, diverging_end_offset: the leader's answer that it cuts by, as a line names it.
    """

    kind: ClassVar[str] = "truncated"
    replica: int
    to_offset: int | None = None
    from_offset: int | None = None
    reason: str = "unknown"
    diverging_epoch: int | None = None
    diverging_end_offset: int | None = None

    @property
    def cuts_nothing(self) -> bool:
        """Whether it tells of no more than where the log ends."""
        return self.to_offset is not None and self.from_offset == self.to_offset


@dataclass(frozen=True, slots=True)
class LeaderAppended:
    """The leader wrote records [first_offset, end_offset) in its epoch."""

    kind: ClassVar[str] = "leader_appended"
    replica: int
    first_offset: int
    end_offset: int
    leader_epoch: int | None = None
    content: int | None = None


@dataclass(frozen=True, slots=True)
class FollowerAppended:
    """A follower wrote what it fetched. leader_epoch None: the epochs are the leader's there."""

    kind: ClassVar[str] = "follower_appended"
    replica: int
    first_offset: int
    end_offset: int
    leader_epoch: int | None = None
    content: int | None = None


@dataclass(frozen=True, slots=True)
class FetchRequested:
    """The leader handled a follower's fetch: the follower holds everything below fetch_offset."""

    kind: ClassVar[str] = "fetch_requested"
    replica: int
    leader: int
    fetch_offset: int
    leader_epoch: int | None = None
    last_fetched_epoch: int | None = None
    log_start_offset: int | None = None


@dataclass(frozen=True, slots=True)
class FetchAnswered:
    """A follower received a fetch response. high_watermark: the leader's, before that fetch."""

    kind: ClassVar[str] = "fetch_answered"
    replica: int
    leader: int
    high_watermark: int | None = None
    log_start_offset: int | None = None
    diverging_epoch: int | None = None
    diverging_end_offset: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class HighWatermarkAdvanced:
    """A replica's high watermark was seen at this value (a follower's may lawfully fall)."""

    kind: ClassVar[str] = "high_watermark_advanced"
    replica: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class LogStartAdvanced:
    """Records below log_start_offset were removed lawfully. reason: retention, deletion, leader."""

    kind: ClassVar[str] = "log_start_advanced"
    replica: int
    log_start_offset: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RecordsAcknowledged:
    """A producer was told that records [first_offset, end_offset) are written.

    acks: "1" or "all". leader_epoch and content: those of the very records, where the importer
    found them in a copy; content None: known by offset alone. The importer gives a content that no
    log span carries to records that it looked for by payload and found in no copy. leader: the
    broker that answered, where the leader epoch is not known. observed_until: ms since the Unix
    epoch at which the last of them was told, observed_at that of the first; None: not known.
    """

    kind: ClassVar[str] = "records_acknowledged"
    first_offset: int
    end_offset: int
    acks: str
    leader_epoch: int | None = None
    content: int | None = None
    leader: int | None = None
    observed_until: int | None = None


@dataclass(frozen=True, slots=True)
class RecordsConsumed:
    """A consumer was given records [first_offset, end_offset). Identity as for acknowledgements."""

    kind: ClassVar[str] = "records_consumed"
    first_offset: int
    end_offset: int
    leader_epoch: int | None = None
    content: int | None = None


@dataclass(frozen=True, slots=True)
class ReplicaLogObserved:
    """A copy of a replica's directory: what it held at some moment between its neighbours.

    stopped: True when the copy is of a cleanly stopped broker, False when it is not provably
    so, None when not even the end of its log was seen. high_watermark: the checkpointed one (a
    lower bound). copy: current (the replica's log at this moment of the trace), live
    (the same, read beside the running broker at observed_at), part (of that log; what lies outside
    the spans was not seen, and the moment may be any later one), stray, future or failed (a
    directory set aside).
    """

    kind: ClassVar[str] = "replica_log_observed"
    replica: int
    log_start_offset: int
    log_end_offset: int
    spans: tuple[Span, ...]
    high_watermark: int | None = None
    recovery_point: int | None = None
    epoch_entries: tuple[EpochEntry, ...] | None = None
    stopped: bool | None = None
    copy: str = "current"


@dataclass(frozen=True, slots=True)
class CheckpointObserved:
    """A checkpoint file without the log beside it: a lower bound of the high watermark."""

    kind: ClassVar[str] = "checkpoint_observed"
    replica: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class CoverageDeclared:
    """Which evidence was handed over, so that absences can count.

    subject: acknowledgements, consumptions, controller_history, broker_log, replica_trace,
    log_directory, all_producers (the acknowledgements are those of every producer),
    controller_history_end (False only: the history goes on after the part that is
    here), committed_records (False only: of some acknowledged at acks=all nothing tells where they
    are), sends (False only: of some neither an answer nor a copy tells what became of their
    records), clocks (False only: the times of brokers' lines may not be held against those of
    clients), whole_log (False only: the broker found damaged records in its log as it started, and
    dropped them). replica: the broker it covers, None for the whole partition. complete:
    whether silence in it means that nothing happened; False declares that some of it is missing
    (declared_gaps.py). detail: what exactly, in words.
    """

    kind: ClassVar[str] = "coverage_declared"
    subject: str
    replica: int | None = None
    complete: bool = False
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class InputEnded:
    """The declared end of a trace for this partition: numbers still missing will not come."""

    kind: ClassVar[str] = "input_ended"


Fact = (
    PartitionDescribed
    | LeadershipRecorded
    | ReplicaStarted
    | ReplicaStopped
    | BecameLeader
    | BecameFollower
    | Truncated
    | LeaderAppended
    | FollowerAppended
    | FetchRequested
    | FetchAnswered
    | HighWatermarkAdvanced
    | LogStartAdvanced
    | RecordsAcknowledged
    | RecordsConsumed
    | ReplicaLogObserved
    | CheckpointObserved
    | CoverageDeclared
    | InputEnded
)

FACT_TYPES: dict[str, type[Any]] = {
    t.kind: t
    for t in (
        PartitionDescribed,
        LeadershipRecorded,
        ReplicaStarted,
        ReplicaStopped,
        BecameLeader,
        BecameFollower,
        Truncated,
        LeaderAppended,
        FollowerAppended,
        FetchRequested,
        FetchAnswered,
        HighWatermarkAdvanced,
        LogStartAdvanced,
        RecordsAcknowledged,
        RecordsConsumed,
        ReplicaLogObserved,
        CheckpointObserved,
        CoverageDeclared,
        InputEnded,
    )
}
FACT_FIELDS: dict[str, tuple[str, ...]] = {
    kind: tuple(f.name for f in fields(t)) for kind, t in FACT_TYPES.items()
}


@dataclass(frozen=True, slots=True)
class Source:
    """Where an event was read: a file, and the line or the byte in it."""

    path: str
    line: int | None = None
    byte_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A fact with its place: trace, topic partition, position in that partition's linear extension.

    sequence is gap-free from 0 per (trace, topic partition). observed_at: ms since the Unix epoch
    by the observer's clock; never used to decide a verdict. grade: traced or forensic. incident:
    the name that its import was given, "" where none was.
    """

    event_id: str
    trace_id: str
    cluster_id: str
    topic: str
    topic_id: str
    partition: int
    sequence: int
    fact: Fact
    observed_at: int | None = None
    grade: str = "forensic"
    source: Source | None = None
    trace_generation: int = 0
    incident: str = ""
