"""What single lines of broker logs say of losses by themselves, for the answer."""

from typing import Any

from replication.evidence.broker_logs.line_families.family import brokers_among
from replication.evidence.collecting.collection import Collection
from replication.evidence.tools.topic_descriptions import PartitionDescription

# Said besides by a line that is kept, with more in it.
_SAID_TWICE = frozenset(("no_truncation_needed",))
# Two lines of one cut are this near to each other, and are of other wordings: what the lines around
# them add is in both or in either.
_AT_ONCE_MILLISECONDS = 1_000
_ADDED = frozenset(("leader", "log_end_offset_before"))


def observations(collection: Collection) -> list[dict[str, Any]]:
    """One row per telling line: cluster, broker (None: which is not told; `one_of` those that it
    may be), topic and partition (None: the whole broker), `kind` and `fields` as the line prints
    them, time, place; `repeats`: how many more lines of the file say the like. By topic, partition,
    time."""
    rows: list[dict[str, Any]] = []
    names = _topic_names(collection)
    for log in collection.logs:
        alone = log.broker if log.speaks_for_one else None
        cuts = {(f.topic, f.partition, f.fields.get("to_offset")) for f in log.telling
                if f.kind == "truncated"}  # fmt: skip
        told: dict[tuple[object, ...], dict[str, Any]] = {}
        for fact in log.telling:
            fields = {k: v for k, v in fact.fields.items() if v is not None}
            if fact.kind == "truncation_reason" and (
                fields.get("reason") in _SAID_TWICE
                or (fact.topic, fact.partition, fields.get("to_offset")) in cuts
            ):
                continue
            repeats, one_of = fields.pop("repeats", 0), fields.pop("one_of", ())
            broker = fact.broker if fact.broker is not None else alone
            cut = (broker, fact.topic, fact.partition, fields.get("to_offset"))
            if fact.kind == "truncated" and _is_told(told.get(cut), fields, fact.at):
                _complete(told[cut], fields)
                told[cut]["repeats"] += repeats
                continue
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
            if fact.kind == "truncated":
                told[cut] = rows[-1]
    rows += _described(collection)
    return sorted(rows, key=_order)


def _is_told(row: dict[str, Any] | None, fields: dict[str, Any], at: int | None) -> bool:
    """Whether a row is of the same cut, which its broker told by two lines of other wordings: the
    same wording twice is two cuts."""
    if row is None or row["at"] is None or at is None:
        return False
    is_other_wording = row["fields"].keys() - _ADDED != fields.keys() - _ADDED
    return is_other_wording and abs(at - row["at"]) <= _AT_ONCE_MILLISECONDS


def _complete(row: dict[str, Any], fields: dict[str, Any]) -> None:
    """Adds to a row of a cut what the other line of the cut prints."""
    for name, value in fields.items():
        row["fields"].setdefault(name, value)
    if "log_end_offset" in row["fields"]:
        row["fields"].pop("log_end_offset_before", None)


def _described(collection: Collection) -> list[dict[str, Any]]:
    """What kafka-topics printed about partitions whose replicas are not all in the ISR."""
    rows: list[dict[str, Any]] = []
    for d in collection.descriptions:
        if not isinstance(d, PartitionDescription) or (
            set(d.isr) >= set(d.replicas) and d.leader is not None and not d.elr
        ):
            continue
        fields = {
            "leader": d.leader,
            "replicas": list(d.replicas),
            "isr": list(d.isr),
            "elr": None if d.elr is None else list(d.elr),
            "last_known_elr": None if d.last_known_elr is None else list(d.last_known_elr),
        }
        rows.append(
            {
                "cluster_id": None,
                "broker": None,
                "one_of": [],
                "topic": d.topic,
                "partition": d.partition,
                "kind": "partition_described",
                "fields": {k: v for k, v in fields.items() if v is not None},
                "at": d.at,
                "path": collection.unpacked.shown(d.path),
                "line": d.line,
                "repeats": 0,
            }
        )
    return rows


# Whose writer is a controller, which need be no broker.
_OF_CONTROLLERS = frozenset(
    ("leader_elected", "unclean_leader_elected", "last_isr_retained", "replica_removed_from_isr",
     "partition_state_change_failed", "offline_directories_partitions", "broker_unclean_shutdown",
     "quorum_candidate")
)  # fmt: skip


def brokers_of(rows: list[dict[str, Any]]) -> dict[str, set[int]]:
    """By cluster id the brokers that these lines name, their writers among them."""
    found: dict[str, set[int]] = {}
    for row in rows:
        named = set(brokers_among({k: v if not isinstance(v, list) else tuple(v)
                                   for k, v in row["fields"].items()}))  # fmt: skip
        if row["broker"] is not None and row["kind"] not in _OF_CONTROLLERS:
            named.add(row["broker"])
        if named:
            found.setdefault(row["cluster_id"] or "", set()).update(n for n in named if n >= 0)
    return found


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
