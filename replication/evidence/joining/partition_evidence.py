"""All that was collected about one topic partition, before it becomes events."""

from dataclasses import dataclass, field

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.packed_facts import PackedLines
from replication.evidence.clients.client_logs import Acknowledgement, Consumption
from replication.evidence.collecting.archives import Unpacked
from replication.evidence.joining.copies import (
    Contents,
    Copy,
)
from replication.evidence.joining.payload_ids import Naming
from replication.evidence.joining.registrations import Recorded, SettledTerm
from replication.evidence.joining.settings_in_time import InForce
from replication.evidence.joining.topic_lives import Lifetime
from replication.protocol.ground import events as ev


@dataclass(slots=True)
class PartitionEvidence:
    """Everything known of one incarnation of one topic partition.

    packed, processes: each broker's lines about the partition and about its own process, from which
    `partition_join.finished` makes `lines`. settings: what the cluster says of the partition's;
    kafka_topics_settings, kafka_topics_replicas, kafka_topics_leader: what kafka-topics printed of
    them, at kafka_topics_at (ms); reassigned: the assignment that they tell of after all else that
    names one. listed_replicas: brokers that have a replica by kafka-log-dirs. later_history: what
    of the controllers' log is known to follow the copy at hand. payload_id_in: where payload ids
    are, if the user said so; naming: where they were found to. unpacked: how places in archives
    are named. unsure_lines: brokers of which lines may be missing, being anybody's in a file of
    several. damaged_lines: brokers of which some lines could not be read: no trace of theirs is
    whole. by_zookeeper: the history is ZooKeeper's. silent: brokers that tell nothing
    any more, and since when. clocks_compare: the brokers' clocks may be held against others;
    clock_bound: by how much all clocks differ at most, ms, where the user says so.
    missing: what clients wrote (acknowledgements, consumptions) of which some is missing, and how
    that shows; unplaced_by_isr: that records acknowledged at acks=all have no place;
    unanswered: that sends were never answered, and no copy shows their records.
    settings_in_time: as they were in force one after the other, by the controllers' records;
    printed: what brokers printed of the topic's own where there are none. settled_below: the leader
    epoch before which a stream has forgotten what lines told (shipping/settled.py): that none is
    left shows nothing. settled_term: what it knows of that epoch, in whose middle more may be
    forgotten. lifetimes: all topics that had the name, oldest first.
    """

    cluster_id: str
    topic: str
    topic_id: str
    partition: int
    described: ev.PartitionDescribed = field(default_factory=ev.PartitionDescribed)
    recorded: list[Recorded] = field(default_factory=list)
    history_complete: bool = False
    packed: dict[int, list[PackedLines]] = field(default_factory=dict)
    processes: dict[int, list[LogLineFact]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    settings_in_time: list[InForce] = field(default_factory=list)
    printed: dict[str, str | None] | None = None
    kafka_topics_settings: dict[str, str] = field(default_factory=dict)
    kafka_topics_replicas: tuple[int, ...] | None = None
    kafka_topics_at: int | None = None
    kafka_topics_leader: int | None = None
    clocks_compare: bool = True
    clock_bound: int | None = None
    reassigned: tuple[int, ...] | None = None
    listed_replicas: set[int] = field(default_factory=set)
    later_history: str | None = None
    lines: dict[int, list[LogLineFact]] = field(default_factory=dict)
    copies: list[Copy] = field(default_factory=list)
    contents: Contents = field(default_factory=Contents)
    acknowledgements: list[Acknowledgement] = field(default_factory=list)
    consumptions: list[Consumption] = field(default_factory=list)
    truncates_by: str = "unknown"
    bytes_verified: bool = False
    payload_id_in: str | None = None
    naming: Naming = field(default_factory=Naming)
    has_acknowledgement_log: bool = False
    has_all_producers: bool = False
    has_consumption_log: bool = False
    missing: dict[str, str] = field(default_factory=dict)
    unplaced_by_isr: str | None = None
    unanswered: str | None = None
    notes: list[str] = field(default_factory=list)
    unpacked: Unpacked | None = None
    unsure_lines: dict[int, str] = field(default_factory=dict)
    damaged_lines: set[int | None] = field(default_factory=set)
    by_zookeeper: bool = False
    silent: dict[int, str] = field(default_factory=dict)
    settled_below: int = 0
    settled_term: SettledTerm | None = None
    lifetimes: list[Lifetime] = field(default_factory=list)

    def shown(self, text: str) -> str:
        """The text with places in archives as the user knows them."""
        return text if self.unpacked is None else self.unpacked.shown(text)
