"""An answer by topic partition, the most damaged first, and in a few words what is wrong."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from replication.protocol.judgement.bounded import Identity
from replication.reports.headline import is_open, matters
from replication.reports.natural import natural
from replication.reports.safe_text import plain

# Overview classes, worst first.
CLASSES = (
    "lost", "diverged", "recoverable", "at_risk", "broken", "recovered", "undecided", "fine",
)  # fmt: skip
STATUS_CLASS = {
    "lost": "lost",
    "undetermined": "lost",
    "recoverable": "recoverable",
    "at_risk": "at_risk",
    "recovered": "recovered",
}


@dataclass(slots=True)
class Partition:
    """Everything the answer says about one topic partition. index: its place in the answer."""

    index: int
    state: dict[str, Any]
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    losses: list[dict[str, Any]] = field(default_factory=list)
    divergences: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    at_risk: list[dict[str, Any]] = field(default_factory=list)
    label: str = ""

    @property
    def identity(self) -> Identity:
        """As the core has it: absent ids are empty."""
        return identity_of(self.state)

    def records(self, *statuses: str) -> int:
        """How many records the loss ledger has under those statuses."""
        return sum(x["records"] for x in self.losses if x["status"] in statuses)

    @property
    def undecided(self) -> bool:
        """Whether something that matters is not decided."""
        return any(is_open(v) and matters(v) for v in self.verdicts)

    @property
    def damage(self) -> str:
        """The worst of CLASSES that applies."""
        found = {STATUS_CLASS[x["status"]] for x in self.losses}
        if any(d["status"] == "settled" for d in self.divergences):
            found.add("diverged")
        if self.at_risk:
            found.add("at_risk")
        for verdict in self.verdicts:
            if verdict["verdict"] == "VIOLATED":
                found.add("broken")
        if self.undecided:
            found.add("undecided")
        return next((c for c in CLASSES if c in found), "fine")


def records_at_risk(dangers: Iterable[Mapping[str, Any]]) -> int:
    """How many records the dangers of one partition name, each once."""
    count = reached = 0
    for first, end in sorted((d["first_offset"], d["end_offset"]) for d in dangers):
        count += max(0, end - max(first, reached))
        reached = max(reached, end)
    return count


def identity_of(row: Mapping[str, Any]) -> Identity:
    """(cluster id, topic, topic id, partition) of any row of the answer, absent ids empty."""
    return (row["cluster_id"] or "", row["topic"], row["topic_id"] or "", row["partition"])


def partitions(answer: dict[str, Any]) -> list[Partition]:
    """The answer by topic partition, the most damaged first."""
    found = {identity_of(p): Partition(i, p) for i, p in enumerate(answer["partitions"])}
    for name in ("verdicts", "losses", "divergences", "findings", "at_risk"):
        for row in answer.get(name, ()):
            partition = found.get(identity_of(row))
            if partition is not None:
                getattr(partition, name).append(row)
    _label(found.values())
    return sorted(found.values(), key=_rank)


def _label(found: Iterable[Partition]) -> None:
    """The name Kafka prints, with the topic id or cluster where the name alone is not unique."""
    by_name: dict[str, list[Partition]] = {}
    for partition in found:
        name = f"{partition.state['topic']}-{partition.state['partition']}"
        by_name.setdefault(name, []).append(partition)
    for name, same in by_name.items():
        clusters = {p.state["cluster_id"] for p in same}
        for partition in same:
            extra = []
            if len(same) > 1 and partition.state["topic_id"]:
                extra.append(f"topic id {partition.state['topic_id']}")
            if len(clusters) > 1:
                extra.append(f"cluster {partition.state['cluster_id'] or 'unknown'}")
            partition.label = plain(f"{name} ({', '.join(extra)})" if extra else name)


def _rank(partition: Partition) -> tuple[Any, ...]:
    return (
        CLASSES.index(partition.damage),
        -partition.records("lost", "undetermined"),
        -partition.records("recoverable"),
        -records_at_risk(partition.at_risk),
        -len(partition.divergences),
        natural(partition.state["topic"]),
        partition.state["partition"],
        partition.index,
    )


def damage_words(partition: Partition) -> str:
    """What is wrong with a partition, in a few words for a row of the overview."""
    parts = []
    for statuses, words in (
        (("lost", "undetermined"), "lost"),
        (("recoverable",), "recoverable"),
        (("recovered",), "missing for a while, back now"),
    ):
        count = partition.records(*statuses)
        if count:
            parts.append(f"{count:,} {words}")
    if partition.at_risk:
        parts.append(f"{records_at_risk(partition.at_risk):,} at risk")
    settled = sum(d["status"] == "settled" for d in partition.divergences)
    if settled:
        parts.append(f"replicas diverged in {settled} place{'' if settled == 1 else 's'}")
    if not parts:
        broken = [v["invariant"] for v in partition.verdicts if v["verdict"] == "VIOLATED"]
        parts = [f"{name} broken" for name in broken]
    if partition.undecided:
        parts.append("not fully decided")
    return "; ".join(parts) or "nothing wrong"
