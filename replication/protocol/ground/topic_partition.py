"""The state of one topic partition that the fold changes and the invariants read.

`replicas` is what each replica holds now; `registration` is what the controller last said;
`history` is what promises were made on the way: terms of leadership, commitments,
acknowledgements, truncations. All of it is O(leader epochs), never O(records).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from replication.protocol.ground.events import Event
from replication.protocol.ground.held_steps import Calm, Conformance, Place
from replication.protocol.ground.model import DERIVED, EpochEntry, Span, is_seen
from replication.protocol.ground.replica_log import ReplicaLog
from replication.protocol.ground.risks import Risks
from replication.protocol.ground.story import Story
from replication.protocol.ground.versions import Behaviour, known_behaviour

# As the occurrence in the order of a term: any time that its leader led in that epoch.
ANY_OCCURRENCE = 1 << 30
# How many of the newest promises of a kind may still be lengthened; those before them are final.
LENGTHENED = 4


@dataclass(slots=True)
class Replica:
    """One replica as far as events tell. leader: whom it follows; role: leader or follower.

    tail_known: the log ends where we think it does. clean_start: whether its last start since it
    last led found a clean stop; None: it has not been seen to start since. stale: the broker lived
    on after the copy that shows its log, so the log has moved on unseen. came_back_with: the lowest
    log end that it came back with from a stop that was not seen to be clean. partial: only some
    stretches of the log were seen, and nobody knows where it ends. seen_at: when the log was read
    beside the running broker for the last time, by its machine's clock; sightings: where it ended
    then and before, uncut, as (when it was first seen to, log end), the newest last. claimed,
    fetched and answered are conformance's: a leader's high watermark that no fetch explains yet;
    whether a follower was seen to fetch at its present log end, and to be answered there.
    kafka_version: what its broker runs, where brokers run several releases. filed_epoch: the last
    leader epoch that its epoch file named when it was read last. high_watermark_before_start: the
    one before a start that was not clean and does not say which one it loaded; as long as the two
    are equal, it is a bound. crashed: its broker ended without a clean stop and was not seen since.
    shown_end: where the log ended in the last copy that shows its records; None: its broker was
    seen to run since.
    """

    replica: int
    log: ReplicaLog = field(default_factory=ReplicaLog)
    high_watermark: int | None = None
    epoch_entries: tuple[EpochEntry, ...] = ()
    role: str | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    remote_log_end_offsets: dict[int, int] = field(default_factory=dict)
    stopped: bool | None = None
    captured: bool = False
    tail_known: bool = False
    just_started: bool = False
    stale: bool = False
    as_of: str | None = None
    observed_at: int | None = None
    known_log_end_offset: int | None = None
    clean_start: bool | None = None
    led_in_epoch: bool = False
    term_occurrence: int = 0
    checkpointed: tuple[int | None, int] | None = None
    promised_below: tuple[tuple[int, int] | None, int] | None = None
    came_back_with: int | None = None
    partial: bool = False
    claimed: int | None = None
    fetched: bool = False
    answered: bool = False
    kafka_version: str | None = None
    filed_epoch: int | None = None
    seen_at: int | None = None
    sightings: list[tuple[int, int]] = field(default_factory=list)
    high_watermark_before_start: int | None = None
    crashed: bool = False
    shown_end: int | None = None

    @property
    def known_high_watermark(self) -> int | None:
        """The high watermark; None where it is at most what it was before a crash."""
        return (
            None if self.high_watermark == self.high_watermark_before_start else self.high_watermark
        )

    def shows(self, offset: int) -> bool:
        """Whether what is at the offset was seen; only a part of a log leaves that open."""
        if not self.partial or offset < self.log.log_start_offset:
            return True
        return any(s.first_offset <= offset < s.end_offset and is_seen(s) for s in self.log.spans)


@dataclass(slots=True)
class Registration:
    """What the controller last recorded of the partition. last_members: the last ISR with any."""

    leader: int | None = None
    leader_epoch: int = -1
    partition_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_leader_replicas: tuple[int, ...] = ()
    recovering: bool = False
    election_kind: str | None = None
    event_id: str = ""
    last_members: tuple[int, ...] | None = None


@dataclass(slots=True)
class LeaderTerm:
    """One stretch of leadership: a broker leading in an epoch between its starts.

    start_offset: the leader's log end when it took over, None if never seen. occurrence counts the
    same broker leading again in the same epoch after a restart (ZooKeeper mode). led_until_now_in:
    the earlier epoch, where the leader itself told so as it started. unclean_permitted and
    min_insync_replicas: whether unclean election was allowed then, and how many members acks=all
    needed. started_at: the step of the fold that noted its start.
    ended: how its leader's own lines end it: stopped, followed or re_elected (in a later epoch);
    None where no line does.
    """

    leader_epoch: int
    leader: int
    occurrence: int = 0
    start_offset: int | None = None
    high_watermark: int | None = None
    isr: tuple[int, ...] | None = None
    election_kind: str | None = None
    recorded: bool = False
    observed_at: int | None = None
    event_id: str = ""
    start_event_id: str = ""
    led_until_now_in: int | None = None
    unclean_permitted: bool | None = None
    started_at: int = 0
    ended: str | None = None
    min_insync_replicas: int | None = None

    @property
    def order(self) -> tuple[int, int]:
        """Terms order by leader epoch, then by occurrence."""
        return (self.leader_epoch, self.occurrence)


@dataclass(slots=True)
class Promise:
    """Records that somebody was promised: committed, acknowledged or consumed.

    latest_term: the order of the last term in which it can have been made (None: unknown).
    how: leader_high_watermark, checkpoint, start_line, acks_all, acks_1, consumed. replica: whose
    high watermark it was, or which broker answered the producer. at: the step of the fold. until:
    of acknowledgements, ms since the Unix epoch of the last one; None: not known.
    """

    span: Span
    latest_term: tuple[int, int] | None
    how: str
    event_id: str
    replica: int | None = None
    observed_at: int | None = None
    at: int = 0
    until: int | None = None


@dataclass(slots=True)
class Truncation:
    """One cut of a replica's log, as observed or as the rule gives. at: the step of the fold."""

    replica: int
    from_offset: int | None
    to_offset: int
    reason: str
    event_id: str
    observed_at: int | None
    dropped: list[Span]
    term_epoch: int | None
    at: int = 0


@dataclass(slots=True)
class Copy:
    """Spans that a replica's current log lacks: from an older copy or a directory set aside.

    kind: older, stray, future, failed. as_of: the event that showed it.
    """

    replica: int
    spans: list[Span]
    as_of: str
    kind: str = "older"
    observed_at: int | None = None


@dataclass(slots=True)
class StorageLoss:
    """A replica came back with less than it had been known to hold.

    isr: the last ISR with members by then. leader_epoch: the last that the replica knew. spans: of
    what it lost, as far as that was seen. at: the step of the fold.
    """

    replica: int
    had_end_offset: int
    left_end_offset: int
    event_id: str
    isr: tuple[int, ...] | None
    leader_epoch: int | None
    spans: list[Span] = field(default_factory=list)
    at: int = 0


@dataclass(slots=True)
class UncleanStart:
    """A replica came back from a stop that was not seen to be clean, with this log end: of what it
    had before, nothing may tell. leader_epoch: the last that it knew. at: the step of the fold.
    told: the log end; else it is 0, since nobody knows."""

    replica: int
    log_end_offset: int
    leader_epoch: int | None
    at: int
    told: bool = True


@dataclass(frozen=True, slots=True)
class Derived:
    """A value that nobody observed and that a rule forces between two observations.

    what: high_watermark (it is at least offset), epoch_entry (leader_epoch begins at offset in the
    replica's epoch cache) or truncation (to offset). rule: the file in rules/ that forces it, or
    `assign`, by which an epoch cache grows. because: what it rests on, in words.
    """

    what: str
    replica: int
    offset: int
    leader_epoch: int | None
    rule: str
    because: str


@dataclass(slots=True)
class Removal:
    """A valid leader's log began at an offset, in a term: what lay below it was removed lawfully
    (retention, deleteRecords), and whoever leads later need not have it."""

    leader_epoch: int
    occurrence: int
    below: int


@dataclass(slots=True)
class Refutation:
    """A step that contradicts an invariant, found by the fold where it happened."""

    invariant: str
    summary: str
    witness: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class History:
    """What was promised and what was done, in the order of events. derived: cuts of no line."""

    terms: list[LeaderTerm] = field(default_factory=list)
    commitments: list[Promise] = field(default_factory=list)
    acknowledgements: list[Promise] = field(default_factory=list)
    consumptions: list[Promise] = field(default_factory=list)
    truncations: list[Truncation] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    storage_losses: list[StorageLoss] = field(default_factory=list)
    unclean_starts: list[UncleanStart] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    refutations: list[Refutation] = field(default_factory=list)
    derived: list[Derived] = field(default_factory=list)
    # commitments by leader epoch and content: made again when needed, never written down.
    _committed: dict[tuple[int | None, int | None], list[Promise]] = field(
        default_factory=dict, compare=False, repr=False, metadata=DERIVED
    )
    _noted: int = field(default=0, compare=False, repr=False, metadata=DERIVED)
    # Of each of these that is final: the highest end offset up to it.
    _highest: dict[tuple[int | None, int | None], list[int]] = field(
        default_factory=dict, compare=False, repr=False, metadata=DERIVED
    )
    # By kind of promise: how many are final, and the highest end offset of these.
    _standing: dict[str, tuple[int, int]] = field(
        default_factory=dict, compare=False, repr=False, metadata=DERIVED
    )

    # Of the first terms: which members of the ISR each left to the next by an unclean election.
    left_in_isr: list[frozenset[int]] = field(
        default_factory=list, compare=False, repr=False, metadata=DERIVED
    )

    # Who has led by lines of its own, once that was asked.
    _have_led: set[int] | None = field(default=None, compare=False, repr=False, metadata=DERIVED)

    def has_led(self, replica: int) -> bool:
        """Whether it has led by its own lines, whose order is certain."""
        if self._have_led is None:
            self._have_led = {term.leader for term in self.terms if term.start_event_id}
        return replica in self._have_led

    def note_start(self, term: LeaderTerm, event_id: str) -> None:
        """Its leader's own line tells that a term began."""
        term.start_event_id = event_id
        if event_id and self._have_led is not None:
            self._have_led.add(term.leader)

    def committed_of(self, leader_epoch: int | None, content: int | None) -> list[Promise]:
        """The commitments of records of that leader epoch and content."""
        if self._noted != len(self.commitments):
            self.note_commitments()
        return self._committed.get((leader_epoch, content), [])

    def committed_up_to(self, span: Span) -> Iterator[Promise]:
        """The commitments of records of a span's leader epoch and content, the newest first, as
        long as one that is still to come ends at the span's end or above."""
        promises, highest = self.committed_of(*span[2:]), self._highest.get(span[2:], ())
        for number in range(len(promises) - 1, -1, -1):
            if number < len(highest) and highest[number] < span.end_offset:
                return
            yield promises[number]

    def promised_in(self, kind: str, first: int, end: int) -> list[Promise]:
        """The promises of a kind (commitments, ..) about offsets in [first, end), in order."""
        promises: list[Promise] = getattr(self, kind)
        count, highest = self._standing_of(kind, promises)
        after = promises[count:] if highest <= first else promises
        return [p for p in after if p.span[0] < end and p.span[1] > first]

    def promised_up_to(self) -> int:
        """The highest end offset of any promise."""
        found = 0
        for kind, promises in (
            ("commitments", self.commitments),
            ("acknowledgements", self.acknowledgements),
            ("consumptions", self.consumptions),
        ):
            _, highest = self._standing_of(kind, promises)
            newest = [p.span[1] for p in promises[-LENGTHENED:]]
            found = max(found, highest, *newest)
        return found

    def _standing_of(self, kind: str, promises: list[Promise]) -> tuple[int, int]:
        """How many promises of a kind are final, and the highest end offset of these."""
        count, highest = self._standing.get(kind, (0, 0))
        standing = len(promises) - LENGTHENED
        if standing > count:
            highest = max(highest, *[p.span[1] for p in promises[count:standing]])
            count = standing
            self._standing[kind] = (count, highest)
        return count, highest

    def note_commitments(self) -> None:
        """Keeps count of what was added to commitments."""
        for promise in self.commitments[self._noted :]:
            alike = self._committed.setdefault(promise.span[2:], [])
            alike.append(promise)
            if len(alike) > LENGTHENED:
                highest = self._highest.setdefault(promise.span[2:], [])
                standing = alike[len(highest)].span.end_offset
                highest.append(max(standing, highest[-1] if highest else 0))
        self._noted = len(self.commitments)


@dataclass(slots=True)
class Settings:
    """Topic and cluster settings that rules and contracts depend on; None is unknown.

    leader: as kafka-topics named it, which counts where no history does.
    """

    assigned_replicas: tuple[int, ...] | None = None
    min_insync_replicas: int | None = None
    unclean_leader_election: bool | None = None
    cleanup_policy: str | None = None
    kafka_version: str | None = None
    inter_broker_version: str | None = None
    controller: str | None = None
    deleted: bool | None = None
    leader: int | None = None


@dataclass(slots=True)
class State:
    """Everything the fold keeps of one topic partition. risks: `risk_watch` keeps them."""

    cluster_id: str
    topic: str
    topic_id: str
    partition: int
    settings: Settings = field(default_factory=Settings)
    registration: Registration = field(default_factory=Registration)
    replicas: dict[int, Replica] = field(default_factory=dict)
    history: History = field(default_factory=History)
    coverage: dict[tuple[str, int | None], tuple[bool, str | None]] = field(default_factory=dict)
    ever_assigned: set[int] = field(default_factory=set)
    grade: str = "forensic"
    applied: int = 0
    ended: bool = False
    sources: dict[str, Place] = field(default_factory=dict)
    conformance: Conformance = field(default_factory=Conformance)
    risks: Risks = field(default_factory=Risks)
    story: Story = field(default_factory=Story)
    calm: Calm | None = field(default=None, compare=False, repr=False, metadata=DERIVED)

    def covered(self, subject: str, replica: int | None = None) -> bool:
        """Whether complete evidence of this kind was handed over."""
        return self.coverage.get((subject, replica), (False, None))[0]

    def told_of(self, subject: str, replica: int | None = None) -> bool:
        """Whether evidence of this kind is declared at all, complete or not."""
        return (subject, replica) in self.coverage

    def why_missing(self, subject: str, replica: int | None = None) -> str | None:
        """What is said of evidence of this kind beside whether it is complete."""
        return self.coverage.get((subject, replica), (True, None))[1]

    def log_is_known(self, replica: Replica | None) -> bool:
        """Whether the replica's log is known: a copy of it, or a complete trace of its steps."""
        if replica is None:
            return False
        return replica.captured or self.covered("replica_trace", replica.replica)

    def may_be_compacted(self) -> bool:
        """Whether a log may lack records by compaction: that is the topic's policy, or nobody
        knows it."""
        policy = self.settings.cleanup_policy
        return policy is None or "compact" in policy

    def still_has_records(self, replica: Replica) -> bool:
        """Whether the records are there that the replica's log is known to have got.

        No line and no trace tells which ones compaction takes: only a copy shows what it left,
        until its broker runs again.
        """
        return not self.may_be_compacted() or replica.shown_end == replica.log.log_end_offset

    def is_traced(self, replica: int) -> bool:
        """Whether every step of this broker's replica was handed over."""
        return replica in self.conformance.traced

    def is_wholly_traced(self) -> bool:
        """Whether every assigned replica's steps were handed over completely."""
        return bool(self.ever_assigned) and self.ever_assigned <= self.conformance.traced

    def behaviour(self, broker: int | None = None) -> Behaviour | None:
        """How a broker behaves; None for an unknown version or a vendor's.

        By the version that it runs, where one is known of it, else by the declared one.
        """
        settings, version = self.settings, None
        replica = None if broker is None else self.replicas.get(broker)
        if replica is not None:
            version = replica.kafka_version
        return known_behaviour(version or settings.kafka_version, settings.inter_broker_version)

    def versions(self) -> list[str]:
        """The releases that are known to be at work."""
        told = {r.kafka_version or self.settings.kafka_version for r in self.replicas.values()}
        return sorted(v for v in told | {self.settings.kafka_version} if v is not None)

    def min_insync_replicas_in(self, term: LeaderTerm | None) -> int | None:
        """What min.insync.replicas was when a leader was elected; as now where nothing tells."""
        if term is None or term.min_insync_replicas is None:
            return self.settings.min_insync_replicas
        return term.min_insync_replicas

    def unclean_permitted_in(self, term: LeaderTerm) -> bool | None:
        """Whether unclean election was allowed then; as set now where that is not known."""
        if term.unclean_permitted is None:
            return self.settings.unclean_leader_election
        return term.unclean_permitted

    def witness(self, event: Event) -> str:
        """Keeps where the event was read, since something in the history now rests on it."""
        place = place_of(event)
        if place is not None:
            self.sources[event.event_id] = place
        return event.event_id

    def place_of(self, event_id: str) -> Place | None:
        """Where an event was read that something rests on, or waits for a decision."""
        waiting = self.conformance.open
        kept = next((x.place for x in waiting if x.event_id == event_id), None)
        return self.sources.get(event_id, kept)

    def refute(
        self,
        invariant: str,
        event: Event,
        summary: str,
        earlier: str = "",
        earlier_because: str = "",
    ) -> None:
        """Notes that a step contradicts an invariant."""
        steps = [(earlier, earlier_because, None)] if earlier else []
        self.refute_by(invariant, summary, *steps, (event.event_id, summary, place_of(event)))

    def refute_by(
        self,
        invariant: str,
        summary: str,
        *steps: tuple[str, str, Place | None],
    ) -> None:
        """The same for events of which a note was kept: each (event id, because, place)."""
        for event_id, _, place in steps:
            if place is not None:
                self.sources[event_id] = place
        witness = tuple((event_id, because) for event_id, because, _ in steps)
        self.history.refutations.append(Refutation(invariant, summary, witness))


def place_of(event: Event) -> Place | None:
    """Where an event was read."""
    s = event.source
    return None if s is None else (s.path, s.line, s.byte_offset)
