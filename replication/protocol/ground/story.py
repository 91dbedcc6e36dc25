"""The story of a partition: what each broker did in its own order, what the controller recorded.

The order of events across brokers is nobody's knowledge, so none is kept: a story has each broker's
own steps, one behind the other, and the controller's records, which their epochs order. It is what
`histories` reads. Its size follows role changes, truncations and copies, never records: appends
that continue each other are one step, and so are high watermarks that rise.
"""

from dataclasses import dataclass, field

from replication.protocol.ground.model import EpochEntry, Span

# What a broker does while it neither changes its role nor loses anything.
WRITES = ("wrote", "fetched")


@dataclass(slots=True)
class OwnStep:
    """One step of one broker, as its lines, its trace or a copy of its directory tell it.

    kind: started, stopped, led, followed, cut, wrote (as leader), fetched (as follower),
    high_watermark, checkpoint, log_start, copy, or replaced (only of ordered stories: another was
    elected). log_end_offset: of started, stopped, led,
    followed and copy; of cut what is left (None: the rule decides), of wrote and fetched where the
    records end. first_offset: of wrote and fetched; of cut where the log ended before. leader: whom
    it follows. clean: of started whether a clean stop was found, of stopped whether it was one, of
    copy whether the broker was cleanly stopped. spans, epoch_entries: of a copy. kind_of_copy:
    current, live or part.
    """

    kind: str
    event_id: str
    leader_epoch: int | None = None
    log_end_offset: int | None = None
    high_watermark: int | None = None
    first_offset: int | None = None
    log_start_offset: int | None = None
    leader: int | None = None
    content: int | None = None
    clean: bool | None = None
    reason: str | None = None
    spans: tuple[Span, ...] = ()
    epoch_entries: tuple[EpochEntry, ...] = ()
    kind_of_copy: str | None = None
    observed_at: int | None = None


@dataclass(slots=True)
class Recorded:
    """The controller's word of the partition after one change of it."""

    leader_epoch: int
    partition_epoch: int | None
    leader: int | None
    isr: tuple[int, ...] | None
    election_kind: str | None
    event_id: str
    assigned_replicas: tuple[int, ...] | None = None
    observed_at: int | None = None


@dataclass(slots=True)
class Story:
    """own: by broker, its steps. recorded: the controller's records, in the order told.

    min_insync_replicas: every value that the setting was told to have. set_aside: spans of records
    in directories that are no replica's current log. noted: by broker, the log end and high
    watermark up to which its steps are noted here. ordered: events were folded in the order in
    which they happened, as a machine tells them; of real clusters nobody knows it. unseen: brokers
    that are down and of whose directories there is no copy: nobody knows what they come back with.
    """

    own: dict[int, list[OwnStep]] = field(default_factory=dict)
    recorded: list[Recorded] = field(default_factory=list)
    min_insync_replicas: list[int] = field(default_factory=list)
    set_aside: list[Span] = field(default_factory=list)
    noted: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    ordered: bool = False
    unseen: set[int] = field(default_factory=set)
