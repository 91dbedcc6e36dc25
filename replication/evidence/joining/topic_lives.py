"""The lives of a topic that was deleted and created anew under its name, by the brokers' lines.

Where no metadata log tells, and most lines print no topic id, a new life shows in what a broker
prints: another topic id, a controller that names a new topic, a log created where one was deleted,
a leader epoch that begins again at 0. Each broker's own lines are cut there.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from replication.evidence.broker_logs.births import are_of_two_lives, first_leader, is_creation
from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.log_directories.log_directory import PartitionDirectory

# Lines that name the epochs as they are, by a broker that takes its role or by the controller. A
# broker that is the controller decides on before it has read what it sent to itself.
_ELECTED = frozenset(("partition_state_changed", "leader_selected"))
_DECIDED = _ELECTED | {"replica_removed_from_isr"}
_ROLES = frozenset(("became_leader", "became_follower")) | _DECIDED
# A request may be a stale one, and is refused then; the lines that follow one that is not.
_REQUEST = "leader_and_isr_received"
_OBEYED = frozenset(("log_created", "role_change_started", "became_leader", "became_follower"))
# No broker says so of a partition of which it has no log.
_OF_A_LOG = frozenset(
    ("log_created", "became_leader", "became_follower", "epoch_entry_added", "segment_recovered",
     "truncated", "isr_expanded", "isr_shrink_proposed", "isr_updated")
)  # fmt: skip
# Written between the creation of one partition's log and the first line about its leader.
_CREATION = frozenset(
    ("log_created", "partition_assigned", "replica_created", "replica_loaded",
     "high_watermark_missing")
)  # fmt: skip
GONE = frozenset(("log_marked_deleted", "log_deleted", "replica_removed"))
# About what lies on a disk, of whatever life.
ON_DISK = frozenset(("log_loaded", "log_marked_stray")) | GONE
# So many lines of a stretch tell how it begins.
_BEGINNING = 20
# An epoch that falls, but not to 0, begins anew only after so long without any line.
_AGES = 24 * 3_600_000


@dataclass(slots=True)
class Stretch:
    """One broker's lines about one life of a topic, in order.

    begins: whether its beginning was seen. topic_id: as far as its lines print one.
    """

    facts: list[LogLineFact] = field(default_factory=list)
    begins: bool = False
    topic_id: str = ""

    @property
    def first_at(self) -> int | None:
        """When its first line was written, by the broker's clock."""
        return next((f.at for f in self.facts if f.at is not None), None)


@dataclass(slots=True)
class _Epochs:
    """The highest epochs that were named so far."""

    leader_epoch: int | None = None
    partition_epoch: int | None = None


@dataclass(slots=True)
class _Partition:
    """What a broker's lines last said of one partition.

    obeyed, decided, cached: the epochs that it named as a broker, as the controller, and in what
    the controller told everybody. had_log: it was seen with a log. gone: its log was deleted since.
    asked: where a request began that may be of a new life, created: where a log was created that
    may be. first_led: its leader when it was created.
    """

    obeyed: _Epochs = field(default_factory=_Epochs)
    decided: _Epochs = field(default_factory=_Epochs)
    cached: _Epochs = field(default_factory=_Epochs)
    at: int | None = None
    existed: bool = False
    had_log: bool = False
    gone: bool = False
    asked: int | None = None
    created: int | None = None
    first_led: set[int | str] = field(default_factory=set)

    @property
    def lived(self) -> bool:
        """Whether a leader epoch of it was named."""
        return {self.obeyed.leader_epoch, self.decided.leader_epoch} != {None}

    def epochs(self, fact: LogLineFact) -> _Epochs:
        """Those that a line's are held against, and counted among."""
        if _is_cached(fact):
            return self.cached
        return self.decided if fact.kind in _DECIDED else self.obeyed


@dataclass(slots=True)
class _Ids:
    """The topic ids that a broker's lines have printed: of lives before, and since the last cut."""

    before: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)

    def tell(self, fact: LogLineFact) -> bool:
        """Whether a line that prints an id can only be a new topic's: it was never printed before,
        and the life that lines are about has one already."""
        named = str(fact.fields.get("topic_id") or "")
        if not named or fact.kind in ON_DISK:
            return False
        return bool(self.own) and named not in self.own | self.before

    def take(self, fact: LogLineFact) -> None:
        """Notes what a line prints."""
        named = str(fact.fields.get("topic_id") or "")
        if named and named not in self.before:
            self.own.add(named)

    def cut(self, before: list[LogLineFact]) -> None:
        """Begins a life; before: all lines of those before it."""
        self.before = {str(f.fields.get("topic_id") or "") for f in before} - {""}
        self.own = set()


def stretches(facts: Iterable[LogLineFact], *, others: bool = False) -> list[Stretch]:
    """One broker's lines about one topic, of all its partitions and in order, cut into lives.

    others: other brokers have seen more lives. Then a log created where there had been one begins a
    life too; else it may be of a disk that was lost.
    """
    lines = list(facts)
    known: dict[int, _Partition] = {}
    cuts: list[int] = []
    ids = _Ids()
    announced = -1
    for index, fact in enumerate(lines):
        assert fact.partition is not None
        seen = known.setdefault(fact.partition, _Partition())
        begins = None
        if ids.tell(fact):
            begins = index if seen.created is None else seen.created
        elif fact.kind == "partition_assigned":
            if any(p.existed for p in known.values()) and announced != fact.line:
                begins = index
        elif is_creation(fact):
            if seen.lived or seen.gone:
                begins = index
        elif fact.kind in GONE:
            seen.gone = True
        elif fact.kind == _REQUEST:
            seen.asked = index if _begins_anew(fact, seen) else None
        elif fact.kind in _OBEYED and seen.asked is not None:
            begins = seen.asked
        elif fact.kind == "leader_and_isr_ignored":
            seen.asked = None
        elif fact.kind == "log_created":
            seen.created = index if seen.existed or seen.gone else None
            begins = index if others and seen.had_log and (seen.lived or seen.gone) else None
        elif _is_cached(fact) and (
            _is_first_again(fact, seen.cached) or _is_led_by_another(fact, seen)
        ):
            begins = index
        elif fact.kind in _ROLES and _begins_anew(fact, seen):
            begins = index if seen.created is None else seen.created
        if fact.kind == "partition_assigned":
            announced = fact.line
        if begins is not None and begins > (cuts[-1] if cuts else -1):
            # All partitions of a topic begin anew together.
            asked = {p.asked for p in known.values()}
            cuts.append(_with_creations(lines, begins, cuts[-1] if cuts else 0, asked))
            known = {fact.partition: _Partition()}
            seen = known[fact.partition]
            ids.cut(lines[: cuts[-1]])
            for early in lines[cuts[-1] : index]:
                ids.take(early)
        ids.take(fact)
        _take(seen, fact)
    result: list[Stretch] = []
    for number, start in enumerate([0, *cuts]):
        end = cuts[number] if number < len(cuts) else len(lines)
        part = lines[start:end]
        # A line about what is left of an earlier life still prints that one's id.
        earlier = {stretch.topic_id for stretch in result}
        named = [f for f in part if f.fields.get("topic_id")]
        named.sort(key=lambda f: f.kind in ON_DISK)
        printed = [str(f.fields["topic_id"]) for f in named]
        own = next((i for i in printed if i not in earlier), "")
        result.append(Stretch(part, number > 0, own))
    return [stretch for stretch in result if stretch.facts]


def _begins_anew(fact: LogLineFact, seen: _Partition) -> bool:
    """Whether a line can only be about a new topic of the name."""
    leader_epoch, before = fact.fields.get("leader_epoch"), seen.epochs(fact).leader_epoch
    if not isinstance(leader_epoch, int):
        return False
    if _is_led_by_another(fact, seen):
        return True
    if fact.kind not in _DECIDED and _is_first_again(fact, seen.cached):
        return True  # A controller asks replicas for an epoch first, and tells everybody then.
    if before is None:
        # Its log was deleted, and what is left of the broker's lines names no epoch before.
        return seen.gone and leader_epoch == 0
    if leader_epoch > 0:
        # No request of before that came late: a controller decides on what it read.
        if fact.kind in _DECIDED and leader_epoch < before and _falls(fact, seen):
            return True
        gap = fact.at is not None and seen.at is not None and fact.at - seen.at > _AGES
        return gap and leader_epoch < before and _falls(fact, seen)
    return leader_epoch < before or seen.gone or _falls(fact, seen)


def _is_led_by_another(fact: LogLineFact, seen: _Partition) -> bool:
    """Whether a line names another leader for the topic's creation than those before: each is
    created with one, and the next comes in another leader epoch."""
    first = first_leader(fact)
    return first is not None and are_of_two_lives(seen.first_led | {first})


def _is_cached(fact: LogLineFact) -> bool:
    """Whether a controller told it every broker, of replicas' partitions and of others alike; the
    list that a controller prints of what it knows itself names no replicas."""
    return fact.kind == "leadership_cached" and "replicas" in fact.fields


def _is_first_again(fact: LogLineFact, told: _Epochs) -> bool:
    """Whether a line is about a topic's first epochs after every broker had heard of later ones."""
    leader_epoch, partition_epoch = (
        fact.fields.get(f"{of}_epoch") for of in ("leader", "partition")
    )
    if leader_epoch != 0:
        return False
    falls = isinstance(partition_epoch, int) and partition_epoch < (told.partition_epoch or 0)
    return falls or (told.leader_epoch or 0) > 0


def _falls(fact: LogLineFact, seen: _Partition) -> bool:
    """Whether the partition epoch begins anew as well."""
    partition_epoch, before = (
        fact.fields.get("partition_epoch"),
        seen.epochs(fact).partition_epoch,
    )
    return isinstance(partition_epoch, int) and before is not None and partition_epoch < before


def _take(seen: _Partition, fact: LogLineFact) -> None:
    f: dict[str, Any] = fact.fields
    leader_epoch, partition_epoch = f.get("leader_epoch"), f.get("partition_epoch")
    asked = fact.kind == _REQUEST and seen.asked is None
    counts = fact.kind in _ROLES or _is_cached(fact) or asked
    if counts and isinstance(leader_epoch, int):
        first = first_leader(fact)
        seen.first_led |= set() if first is None else {first}
        known = seen.epochs(fact)
        known.leader_epoch = max(leader_epoch, known.leader_epoch or 0)
        if isinstance(partition_epoch, int):
            known.partition_epoch = max(partition_epoch, known.partition_epoch or 0)
        if known is not seen.cached:
            seen.created, seen.gone = None, False
    seen.had_log = seen.had_log or fact.kind in _OF_A_LOG
    seen.existed = seen.existed or fact.kind not in GONE
    seen.at = fact.at if fact.at is not None else seen.at


def _with_creations(
    lines: list[LogLineFact], begins: int, last: int, asked: Collection[int | None]
) -> int:
    """The index from which lines are of the new life: creations right before it belong to it, and
    requests that may be of a new life (asked: where they are), but for what comes before a
    controller's word that it makes the topic, or of which that is another word."""
    while begins > last + 1:
        first, before = lines[begins], lines[begins - 1]
        announced = first.kind == "partition_assigned"
        if announced and (before.kind, before.line) != (first.kind, first.line):
            break
        empty = before.kind == "log_loaded" and before.fields.get("log_end_offset") == 0
        if not empty and before.kind not in _CREATION and begins - 1 not in asked:
            break
        begins -= 1
    return begins


@dataclass(slots=True)
class Life:
    """One life of a topic: its id where one is printed, its begin by some broker's clock."""

    topic_id: str = ""
    begun_at: int | None = None
    stretches: dict[int, Stretch] = field(default_factory=dict)

    @property
    def begins_empty(self) -> bool:
        """Whether a controller named a new topic, or its logs began with nothing in them."""
        begun = (s.facts[:_BEGINNING] for s in self.stretches.values() if s.begins)
        return any(
            f.kind in ("log_created", "partition_assigned") or f.fields.get("log_end_offset") == 0
            for facts in begun
            for f in facts
        )

    def is_after_new_zookeeper(self, before: "Life") -> bool:
        """Whether ZooKeeper's count of controllers began anew since a life before this one."""
        return min(self._controllers(), default=1 << 31) < max(before._controllers(), default=0)

    def _controllers(self) -> Iterator[int]:
        """The controller epochs under which its states were decided: not where replicas were taken
        out of its ISR, since lines of a broker that had no replica may be of a life before."""
        for fact in (f for s in self.stretches.values() for f in s.facts):
            if fact.kind in _ELECTED and isinstance(fact.fields.get("controller_epoch"), int):
                yield fact.fields["controller_epoch"]

    @property
    def set_aside(self) -> set[str]:
        """The names of its directories that brokers say they renamed, to delete them."""
        told = (f for s in self.stretches.values() for f in s.facts if f.kind in GONE)
        paths = (PurePath(str(f.fields.get("directory") or "")) for f in told)
        return {path.name for path in paths if path.name.endswith("-delete")}

    @property
    def ends_deleted(self) -> bool:
        """Whether a broker says that it deleted a log of it."""
        return any(f.kind in GONE for s in self.stretches.values() for f in s.facts)


# One incarnation: its topic id, and when it was created and deleted, where that is known.
Lifetime = tuple[str, int | None, int | None]
# Further than so from all that lines tell of, a record's time is not a broker's clock.
_BELIEVED = 24 * 3_600_000


def lifetimes_of_lives(lives: list[Life], ids: list[str]) -> list[Lifetime]:
    """The lives with their topic ids, oldest first; the lives are told theirs.

    ids: all that are known of the name, oldest first. Those that no line prints go to the newest
    lives without one. What is left without an id, where the release has none or nothing tells it,
    is named incarnation-1, -2 ..; but for the last life, which is the topic.
    """
    printed = {life.topic_id for life in lives}
    unplaced = [i for i in ids if i not in printed]
    for life in reversed(lives):
        if not life.topic_id and unplaced:
            life.topic_id = unplaced.pop()
    earlier: list[Lifetime] = [(topic_id, None, 0) for topic_id in unplaced]
    result: list[Lifetime] = []
    for number, life in enumerate(lives):
        is_last = number == len(lives) - 1
        if not life.topic_id and not is_last:
            life.topic_id = f"incarnation-{number + 1}"
        following = None if is_last else lives[number + 1].begun_at or 0
        result.append((life.topic_id, life.begun_at if number else None, following))
    return earlier + result


def life_of_directory(
    directory: PartitionDirectory, lives: list[Lifetime], *, by_time: bool = True
) -> str | None:
    """The life that a directory without a topic id is of, by its newest record's time.

    A directory that is being deleted is of no topic that lives. None where nothing tells. by_time:
    the lives' times may be held against a record's.
    """
    candidates = lives[:-1] if directory.kind == "deleted" else lives
    if len(candidates) == 1:
        return candidates[0][0]
    begun = [created for _, created, _ in lives if created is not None]
    at = directory.max_timestamp
    if at is None or not by_time or len(begun) != len(lives) - 1:
        return None
    if not begun[0] - _BELIEVED < at < begun[-1] + _BELIEVED:
        return None
    which = sum(1 for created in begun if created <= at)
    return lives[min(which, len(candidates) - 1)][0]
