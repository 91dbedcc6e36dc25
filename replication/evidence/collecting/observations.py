"""What single lines of broker logs say of losses by themselves, for the answer."""

from typing import Any

from replication.evidence.collecting.collection import Collection

# Said besides by a line that is kept, with more in it.
_SAID_TWICE = frozenset(("no_truncation_needed",))


def observations(collection: Collection) -> list[dict[str, Any]]:
    """One row per telling line: cluster, broker (None: which is not told; `one_of` those that it
    may be), topic and partition (None: the whole broker), `kind` and `fields` as the line prints
    them, time, place; `repeats`: how many more lines of the file say the like. By topic, partition,
    time."""
    rows = []
    names = _topic_names(collection)
    for log in collection.logs:
        alone = log.broker if log.speaks_for_one else None
        cuts = {(f.topic, f.partition, f.fields.get("to_offset")) for f in log.telling
                if f.kind == "truncated"}  # fmt: skip
        for fact in log.telling:
            fields = {k: v for k, v in fact.fields.items() if v is not None}
            if fact.kind == "truncation_reason" and (
                fields.get("reason") in _SAID_TWICE
                or (fact.topic, fact.partition, fields.get("to_offset")) in cuts
            ):
                continue
            repeats, one_of = fields.pop("repeats", 0), fields.pop("one_of", ())
            broker = fact.broker if fact.broker is not None else alone
            rows.append(
                {
                    "cluster_id": log.cluster_id or None,
                    "broker": broker,
                    "one_of": list(one_of) if broker is None else [],
                    "topic": fact.topic or names.get(str(fields.get("topic_id"))),
                    "partition": fact.partition,
                    "kind": fact.kind,
                    "fields": {
                        k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()
                    },
                    "at": fact.at,
                    "path": collection.unpacked.shown(fact.path),
                    "line": fact.line,
                    "repeats": repeats,
                }
            )
    return sorted(rows, key=_order)


def _topic_names(collection: Collection) -> dict[str, str]:
    """By topic id: some lines print no name."""
    names = {i: topic.name for h in collection.histories.values() for i, topic in h.topics.items()}
    for directory in collection.directories:
        for partition in directory.directory.partitions:
            if partition.topic_id:
                names.setdefault(partition.topic_id, partition.topic)
    for log in collection.logs:
        for _, topic, topic_id in log.topic_ids:
            names.setdefault(topic_id, topic)
    return names


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    place = (row["cluster_id"] or "", row["topic"] or "", row["partition"] or 0)
    return (*place, row["at"] or 0, row["path"], row["line"])
