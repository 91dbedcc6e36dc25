"""One broker's lines, packed, by the incarnation of a topic partition that they are about."""

from collections.abc import Iterable, Iterator

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.packed_facts import PackedLines, Packer
from replication.evidence.joining.broker_lines import BrokerLines, in_order
from replication.evidence.joining.incarnations import incarnations_of_lines
from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.one_cluster import Key
from replication.evidence.joining.topic_lives import Life


def lines_by_incarnation(
    broker: int, lines: BrokerLines, incarnations: Incarnations
) -> dict[Key, list[PackedLines]]:
    """All of one broker's lines about partitions, unpacked only where a topic was created anew."""
    result: dict[Key, list[PackedLines]] = {}
    for key, packed in _each(broker, lines, incarnations):
        result.setdefault(key, []).extend(packed)
    return result


def _each(
    broker: int, lines: BrokerLines, incarnations: Incarnations
) -> Iterator[tuple[Key, list[PackedLines]]]:
    for lives in incarnations.created_anew.values():
        ids = {life.topic_id for life in lives}
        for life in lives:
            if broker in life.stretches:
                facts = life.stretches[broker].facts
                yield from _packed_again((fact, _printed(fact, ids, life)) for fact in facts)
    unsure: dict[str, list[tuple[int, PackedLines]]] = {}
    for (topic, number), found in lines.partitions.items():
        if topic in incarnations.created_anew:
            continue
        packed = [p for _, p in found]
        printed = lines.topic_ids.get(topic, set())
        if len(printed | {i for i, _, _ in incarnations.of(topic)}) > 1:
            unsure.setdefault(topic, []).extend(found)
        else:
            one = next(iter(printed), incarnations.at(topic, None))
            yield (topic, one, number), packed
    for topic, mixed in unsure.items():
        facts = [fact for _, fact in in_order(mixed)]
        order = [topic_id for topic_id, _, _ in incarnations.of(topic)]
        printed = lines.topic_ids.get(topic, set())
        yield from _packed_again(incarnations_of_lines(facts, order, incarnations.at, printed))


def _printed(fact: LogLineFact, ids: set[str], life: Life) -> str:
    """The id that a line prints, where it is one of a life: what lies on a disk may be of another
    life than the lines around it."""
    printed = str(fact.fields.get("topic_id") or "")
    return printed if printed and printed in ids else life.topic_id


def _packed_again(
    facts: Iterable[tuple[LogLineFact, str]],
) -> Iterator[tuple[Key, list[PackedLines]]]:
    """One broker's lines, each with the topic id it is of, by partition."""
    apart: dict[Key, dict[str, Packer]] = {}
    for fact, topic_id in facts:
        assert fact.topic is not None
        assert fact.partition is not None
        packers = apart.setdefault((fact.topic, topic_id, fact.partition), {})
        packers.setdefault(fact.path, Packer(fact.path)).add(fact)
    for key, packers in apart.items():
        yield key, [lines for packer in packers.values() for lines in packer.done()]
