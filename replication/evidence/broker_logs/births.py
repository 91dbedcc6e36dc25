"""Which topics a broker log may tell several lives of: what is cheap to notice while reading it."""

from dataclasses import dataclass, field

from replication.evidence.broker_logs.broker_log import LogLineFact

Partition = tuple[int | None, str, int]
_ENDS = frozenset(("log_marked_deleted", "log_deleted", "replica_removed"))
# Copies of one log, by clocks that differ a little, tell of one creation.
_AT_ONCE = 60_000


@dataclass(slots=True)
class Births:
    """Signs of topics that were created anew, of each writer's partitions.

    at_zero: when last a line named leader and partition epoch 0; above_zero: when first one named
    a higher one. first_led: the leader at both, by those lines. created: when a controller first
    and last said that it makes one. ended: topics of which a log was deleted.
    """

    at_zero: dict[Partition, int] = field(default_factory=dict)
    above_zero: dict[Partition, int] = field(default_factory=dict)
    first_led: dict[Partition, set[int | str]] = field(default_factory=dict)
    created: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def take(self, fact: LogLineFact) -> None:
        """Notes what one line about a topic partition shows."""
        if fact.topic is None or fact.partition is None:
            return
        if fact.kind in _ENDS:
            self.ended.add(fact.topic)
        if is_creation(fact) and fact.at is not None:
            self._make((fact.topic, fact.partition), fact.at, fact.at)
        leader_epoch = fact.fields.get("leader_epoch")
        if not isinstance(leader_epoch, int) or fact.at is None:
            return
        key = (fact.broker, fact.topic, fact.partition)
        if leader_epoch == 0 and fact.fields.get("partition_epoch") in (0, None):
            self.at_zero[key] = max(fact.at, self.at_zero.get(key, fact.at))
            first = first_leader(fact)
            if first is not None:
                self.first_led.setdefault(key, set()).add(first)
        else:
            self.above_zero[key] = min(fact.at, self.above_zero.get(key, fact.at))

    def add(self, other: "Births", writer: int | None) -> None:
        """Takes in another log's of the same broker; writer: whose lines are that name nobody."""
        self.ended |= other.ended
        for place, (first, last) in other.created.items():
            self._make(place, first, last)
        for mine, theirs, is_first in (
            (self.at_zero, other.at_zero, False),
            (self.above_zero, other.above_zero, True),
        ):
            for (broker, topic, partition), at in theirs.items():
                key = (broker if broker is not None else writer, topic, partition)
                known = mine.get(key, at)
                mine[key] = min(at, known) if is_first else max(at, known)
        for (broker, topic, partition), leaders in other.first_led.items():
            key = (broker if broker is not None else writer, topic, partition)
            self.first_led.setdefault(key, set()).update(leaders)

    def topics(self) -> set[str]:
        """Topics of which there may be several lives; most of them have one after all."""
        again = {k[1] for k, at in self.at_zero.items() if at > self.above_zero.get(k, at)}
        again |= {k[1] for k, leaders in self.first_led.items() if are_of_two_lives(leaders)}
        made_anew = {k[0] for k, (first, last) in self.created.items() if last - first > _AT_ONCE}
        return self.ended | again | made_anew

    def _make(self, place: tuple[str, int], first: int, last: int) -> None:
        known = self.created.get(place, (first, last))
        self.created[place] = (min(first, known[0]), max(last, known[1]))


def is_creation(fact: LogLineFact) -> bool:
    """Whether a controller says that it makes this partition, which it does once in its life."""
    return (
        fact.kind == "partition_state_changed"
        and fact.fields.get("from_state") == "NonExistentPartition"
    )


def first_leader(fact: LogLineFact) -> int | str | None:
    """The first leader of a topic, at leader and partition epoch 0: the broker that a line
    names, or whether its writer does; None where the line is not about that, or nobody does."""
    if fact.fields.get("leader_epoch") != 0 or fact.fields.get("partition_epoch") not in (0, None):
        return None
    leader = fact.fields.get("leader")
    if isinstance(leader, int):
        return leader if leader >= 0 else None
    return fact.kind if fact.kind in ("became_leader", "became_follower") else None


def are_of_two_lives(leaders: set[int | str]) -> bool:
    """Whether first leaders cannot all be one life's, which was created with one."""
    named = sum(isinstance(leader, int) for leader in leaders)
    return named > 1 or len(leaders) - named > 1
