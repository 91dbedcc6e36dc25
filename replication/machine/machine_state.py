"""The state of the executable machine: one topic partition, its brokers and its controller.

Unlike topic_partition.State, which is what evidence tells, this is what is: every broker's own
knowledge, right or stale. Only the actors of this package change it.
"""

from dataclasses import dataclass, field

from replication.machine.producer_state import Batch
from replication.protocol.ground.events import Fact
from replication.protocol.ground.leader_epoch_cache import EpochCache
from replication.protocol.ground.model import EpochEndOffset, Span
from replication.protocol.ground.replica_log import ReplicaLog
from replication.protocol.ground.versions import Behaviour
from replication.protocol.rules.fetch_admission import FollowerFetch
from replication.protocol.rules.last_caught_up import FetchMemory

START_OF_TIME_MS = 1_000_000_000


class Impossible(ValueError):
    """The command cannot happen in this state; the text says why, for people."""


@dataclass(slots=True)
class Follower:
    """What a leader knows of one other assigned replica."""

    log_end_offset: int | None
    memory: FetchMemory
    last_sent_high_watermark: int | None = None
    broker_epoch: int | None = None
    log_start_offset: int = 0


@dataclass(frozen=True, slots=True)
class Response:
    """A fetch response on its way, with what its request said. outdated: as in Request."""

    leader: int
    fetch_offset: int
    request_leader_epoch: int | None
    error: str | None = None
    diverging: EpochEndOffset | None = None
    spans: tuple[Span, ...] = ()
    high_watermark: int = 0
    log_start_offset: int = 0
    outdated: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A fetch on its way. life: the broker epoch of the follower that sent it.

    outdated: since then the follower was put before a truncation, which throws the answer away.
    """

    leader: int
    fetch: FollowerFetch
    life: int
    outdated: bool = False


@dataclass(frozen=True, slots=True)
class PendingAck:
    """Records of a producer that waits for acks=all (or, in 0.8, for a number of replicas)."""

    span: Span
    leader_epoch: int
    acks: str
    name: str


@dataclass(slots=True)
class Broker:
    """One broker's replica and what the broker believes.

    leader, leader_epoch, partition_epoch: from its last notification, None after a start.
    truncated_for: the (leader, leader epoch) it last became follower of. first_segment_offset: the
    base of its log's oldest segment, which record deletion leaves where it is. fetching: False
    while the partition is out of the fetcher (fenced). truncating: must ask where to cut before it
    fetches. topic_id: of the directory that its log lies in, "" where that says none.
    """

    replica: int
    behaviour: Behaviour
    log: ReplicaLog
    high_watermark: int = 0
    checkpointed_high_watermark: int = 0
    first_segment_offset: int = 0
    epoch_entries: EpochCache = ()
    running: bool = True
    clean: bool = True
    isolated: bool = False
    broker_epoch: int = 1
    role: str | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    partition_epoch: int | None = None
    truncated_for: tuple[int, int] | None = None
    truncating: bool = False
    fetching: bool = True
    in_flight: Response | None = None
    leader_epoch_start_offset: int = 0
    isr: frozenset[int] = frozenset()
    proposed: frozenset[int] | None = None
    followers: dict[int, Follower] = field(default_factory=dict)
    pending: list[PendingAck] = field(default_factory=list)
    controller_epoch: int = 0
    topic_id: str = ""


@dataclass(slots=True)
class Controller:
    """The registration of the partition, and which brokers the controller takes for alive."""

    leader: int | None = None
    leader_epoch: int = 0
    partition_epoch: int = 0
    isr: tuple[int, ...] = ()
    eligible: frozenset[int] = frozenset()
    last_known_leader: int | None = None
    recovering: bool = False
    active: set[int] = field(default_factory=set)
    controller_epoch: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One emitted fact: its command, the value before where it changed one, and the rule."""

    fact: Fact
    command: str
    before: int | None = None
    rule: str | None = None


@dataclass(slots=True)
class World:
    """A partition with its brokers. steps: every fact so far; notes: words of this command.

    contents: the name of each content id, in the order of its first append. batches: what
    idempotent and transactional producers wrote. reassigned_to: the replicas that a reassignment
    under way is to end with; reassigned_from: those that it began with. registrations: as they were
    when each was recorded. requests: fetches on their way to a leader. topic_id: of this
    incarnation of the topic, "" before topic ids; first_step: where in steps it begins.
    """

    behaviour: Behaviour
    assigned_replicas: tuple[int, ...]
    min_insync_replicas: int
    unclean_leader_election: bool
    names: dict[int, str]
    brokers: dict[int, Broker] = field(default_factory=dict)
    controller: Controller = field(default_factory=Controller)
    contents: list[str] = field(default_factory=list)
    now_ms: int = START_OF_TIME_MS
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    command: str = ""
    isr_changes_wait: bool = False
    batches: dict[int, Batch] = field(default_factory=dict)
    reassigned_to: tuple[int, ...] | None = None
    reassigned_from: tuple[int, ...] | None = None
    registrations: list[Controller] = field(default_factory=list)
    requests: dict[int, Request] = field(default_factory=dict)
    topic_id: str = ""
    first_step: int = 0
    cleanup_policy: str = "delete"

    def emit(self, fact: Fact, before: int | None = None, rule: str | None = None) -> None:
        """Records that something happened."""
        self.steps.append(Step(fact, self.command, before, rule))

    def note(self, text: str) -> None:
        """Says something about this command that the picture does not show."""
        self.notes.append(text)

    def name(self, replica: int | None) -> str:
        """A broker as people call it."""
        return "none" if replica is None else self.names[replica]

    def broker(self, replica: int) -> Broker:
        """The broker of this number; Impossible if there is none."""
        if replica not in self.brokers:
            raise Impossible(f"there is no replica {replica}")
        return self.brokers[replica]

    def reachable(self, a: Broker, b: Broker) -> bool:
        """Whether two brokers can talk: both run and neither is cut off from the network."""
        return a.running and b.running and not a.isolated and not b.isolated
