"""Records that went with a deleted topic, as rows that `recover` looks for in its copies."""

from collections.abc import Iterable, Iterator
from typing import Any

from replication.protocol.ground.model import joined_ranges, ranges_without
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.bounded import FoldedPartition
from replication.protocol.judgement.lawful_removals import (
    Ranges,
    acknowledged_ranges,
    committed_ranges,
    ranges_seen,
)
from replication.recovery.ledger_rows import WITH_TOPIC


def rows_of_deleted_topics(folded: Iterable[FoldedPartition]) -> list[dict[str, Any]]:
    """Rows in the shape of the loss ledger's, for each record of a deleted topic that anything
    shows: the strongest promise about it is its tier."""
    return [
        _row(f.state, tier, first, end)
        for f in folded
        if f.defect is None and f.state.settings.deleted
        for tier, ranges in _by_tier(f.state)
        for first, end in ranges
    ]


def _by_tier(state: State) -> Iterator[tuple[str, Ranges]]:
    told: Ranges = []
    for tier, ranges in (
        ("acknowledged_by_isr", acknowledged_ranges(state, "acks_all")),
        ("acknowledged_by_leader", acknowledged_ranges(state, "acks_1")),
        ("committed", committed_ranges(state)),
        ("undetermined", ranges_seen(state)),
    ):
        for first, end in told:
            ranges = ranges_without(ranges, first, end)
        yield tier, ranges
        told = joined_ranges([*told, *ranges])


def _row(state: State, tier: str, first: int, end: int) -> dict[str, Any]:
    return {
        "cluster_id": state.cluster_id or None,
        "topic": state.topic,
        "topic_id": state.topic_id or None,
        "partition": state.partition,
        "first_offset": first,
        "end_offset": end,
        "leader_epoch": None,
        "tier": tier,
        "status": WITH_TOPIC,
        "finding_id": None,
        "acknowledged_from": None,
        "acknowledged_until": None,
        "next_leader_epoch": None,
        "cause": "",
        "causes": [],
    }
