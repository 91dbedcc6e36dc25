"""Which broker wrote which lines: its own logs', and those of others' files that name it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.packed_facts import PackedLines
from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.joining.partition_join import file_rank
from replication.evidence.joining.placement import Order, Ordered
from replication.evidence.joining.repeated_lines import each_once
from replication.evidence.joining.replicas_own_lines import replicas_own_lines


@dataclass(slots=True)
class BrokerLines:
    """What one broker wrote. partitions: (number of the log, lines) by (topic, partition).

    topic_ids: by topic those that its lines about partitions print.
    """

    processes: list[Ordered] = field(default_factory=list)
    partitions: dict[tuple[str, int], list[tuple[int, PackedLines]]] = field(default_factory=dict)
    topic_ids: dict[str, set[str]] = field(default_factory=dict)

    def by_partition(self) -> Iterator[list[Ordered]]:
        """Each partition's lines in order."""
        for found in self.partitions.values():
            yield in_order(found)

    def of_topic(self, topic: str) -> list[Ordered]:
        """The lines about all partitions of a topic, in order."""
        return in_order(
            each for (name, _), found in self.partitions.items() if name == topic for each in found
        )


def lines_by_broker(logs: Iterable[BrokerLog]) -> dict[int, BrokerLines]:
    """Every broker's lines. A file's lines that name nobody are its own broker's, if it has one."""
    result: dict[int, BrokerLines] = {}
    for number, log in enumerate(logs):
        for writer in log.writers:
            broker = writer if writer is not None else log.broker
            if broker is None:
                continue
            lines = result.setdefault(broker, BrokerLines())
            lines.processes += [(_order(f, number), f) for f in log.processes if f.broker == writer]
            for packed in log.lines:
                if packed.about[0] == writer:
                    key = (packed.about[1], packed.about[2])
                    lines.partitions.setdefault(key, []).append((number, packed))
            for who, topic, topic_id in log.in_lines:
                if who == writer:
                    lines.topic_ids.setdefault(topic, set()).add(topic_id)
    for lines in result.values():
        lines.processes.sort(key=lambda ordered: ordered[0])
        happened = {id(fact) for fact in each_once(fact for _, fact in lines.processes)}
        lines.processes = [each for each in lines.processes if id(each[1]) in happened]
    return result


def in_order(found: Iterable[tuple[int, PackedLines]]) -> list[Ordered]:
    """Packed lines of several files, each with its file's number, in one order: those about the
    broker's own replicas."""
    lines = [(_order(fact, log), fact) for log, packed in found for fact in packed]
    lines.sort(key=lambda ordered: ordered[0])
    own = {id(fact) for fact in replicas_own_lines(fact for _, fact in lines)}
    return [each for each in lines if id(each[1]) in own]


def _order(fact: LogLineFact, log: int) -> Order:
    return (fact.at if fact.at is not None else 0, file_rank(fact.path), fact.line, log)


# What tells that a broker has no log of a partition any more, and that it has one. A start loads
# what waits to be deleted, too, by a line that names the partition alone.
_GONE = frozenset(("log_marked_deleted", "replica_removed"))
_THERE = frozenset(("log_created", "became_leader", "became_follower", "leader_and_isr_received"))


def deleted_by(lines: BrokerLines | None) -> frozenset[tuple[str, int]]:
    """The partitions whose logs a broker deleted, by its lines, and has not made again since."""
    found = set()
    for about, own in lines.partitions.items() if lines is not None else ():
        told = [f.kind for _, f in in_order(own) if f.kind in _GONE or f.kind in _THERE]
        if told and told[-1] in _GONE:
            found.add(about)
    return frozenset(found)
