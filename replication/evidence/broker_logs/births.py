"""Which topics a broker log may tell several lives of: what is cheap to notice while reading it."""

from dataclasses import dataclass, field

from replication.evidence.broker_logs.broker_log import LogLineFact

Partition = tuple[int | None, str, int]
_ENDS = frozenset(("log_marked_deleted", "log_deleted"))


@dataclass(slots=True)
class Births:
    """Signs of topics that were created anew, of each writer's partitions.

    at_zero: when last a line named leader and partition epoch 0; above_zero: when first one named
    a higher one. ended: topics of which a log was deleted.
    """

    at_zero: dict[Partition, int] = field(default_factory=dict)
    above_zero: dict[Partition, int] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def take(self, fact: LogLineFact) -> None:
        """Notes what one line about a topic partition shows."""
        if fact.topic is None or fact.partition is None:
            return
        if fact.kind in _ENDS:
            self.ended.add(fact.topic)
        leader_epoch = fact.fields.get("leader_epoch")
        if not isinstance(leader_epoch, int) or fact.at is None:
            return
        key = (fact.broker, fact.topic, fact.partition)
        if leader_epoch == 0 and fact.fields.get("partition_epoch") in (0, None):
            self.at_zero[key] = max(fact.at, self.at_zero.get(key, fact.at))
        else:
            self.above_zero[key] = min(fact.at, self.above_zero.get(key, fact.at))

    def add(self, other: "Births", writer: int | None) -> None:
        """Takes in another log's of the same broker; writer: whose lines are that name nobody."""
        self.ended |= other.ended
        for mine, theirs, first in (
            (self.at_zero, other.at_zero, False),
            (self.above_zero, other.above_zero, True),
        ):
            for (broker, topic, partition), at in theirs.items():
                key = (broker if broker is not None else writer, topic, partition)
                known = mine.get(key, at)
                mine[key] = min(at, known) if first else max(at, known)

    def topics(self) -> set[str]:
        """Topics of which there may be several lives; most of them have one after all."""
        again = {k[1] for k, at in self.at_zero.items() if at > self.above_zero.get(k, at)}
        return self.ended | again
