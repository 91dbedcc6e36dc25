"""Events for the tests of the Spark side: a small made trace, and the frames the fold takes."""

import random
from dataclasses import replace
from typing import Any

import pandas as pd

from replication.protocol.ground import wire
from replication.protocol.ground.events import (
    BecameFollower,
    BecameLeader,
    CoverageDeclared,
    Event,
    FetchAnswered,
    FetchRequested,
    FollowerAppended,
    HighWatermarkAdvanced,
    LeaderAppended,
    LeadershipRecorded,
    PartitionDescribed,
    RecordsAcknowledged,
    Source,
    Truncated,
)
from replication.spark import contracts, transport


def made_trace(
    partition: int = 0, rounds: int = 5, generation: int = 0, trace_id: str = "trace"
) -> list[Event]:
    """A lawful life of one partition, with one unclean election that loses the last round."""
    facts: list[Any] = [
        PartitionDescribed((1, 2), 1, True, "delete", "4.1.1", "4.1", "kraft"),
        CoverageDeclared("acknowledgements", None, True),
        CoverageDeclared("replica_trace", 1, True),
        CoverageDeclared("replica_trace", 2, True),
        LeadershipRecorded(1, 0, (1, 2), 0, "initial", (1, 2)),
        BecameLeader(1, 0, 0, 0, 0),
        BecameFollower(2, 0, 1, 0, 0, 0),
    ]
    for r in range(rounds):
        first, end = r * 3, r * 3 + 3
        facts += [
            LeaderAppended(1, first, end, 0),
            FetchRequested(2, 1, first, 0, 0 if r else None, 0),
            FetchAnswered(2, 1, first, 0),
            FollowerAppended(2, first, end, 0),
            FetchRequested(2, 1, end, 0, 0, 0),
            HighWatermarkAdvanced(1, end),
            RecordsAcknowledged(first, end, "all", 0),
        ]
    end = rounds * 3
    facts += [
        LeadershipRecorded(1, 0, (1,), 1, None, (1, 2)),
        LeaderAppended(1, end, end + 3, 0),
        HighWatermarkAdvanced(1, end + 3),
        RecordsAcknowledged(end, end + 3, "all", 0),
        LeadershipRecorded(2, 1, (2,), 2, "unclean", (1, 2)),
        BecameLeader(2, 1, end, end, 2),
        BecameFollower(1, 1, 2, end + 3, end + 3, 2),
        Truncated(1, end, end + 3, "diverging_epoch"),
        LeaderAppended(2, end, end + 1, 1),
    ]
    return [
        identified(
            Event("", trace_id, "cluster", "t", "id", partition, n, fact, 1_000 + n, "traced",
                  Source("broker-1/server.log", n + 1), generation)
        )
        for n, fact in enumerate(facts)
    ]  # fmt: skip


def identified(event: Event) -> Event:
    """The event with the identity that its content gives."""
    return replace(event, event_id=wire.content_id(wire.to_row(replace(event, event_id=""))))


def other_content(event: Event) -> Event:
    """Another event for the same slot."""
    return identified(replace(event, fact=HighWatermarkAdvanced(1, 999)))


def shuffled(events: list[Event], seed: int) -> list[Event]:
    """The events in an order that the seed gives."""
    return random.Random(seed).sample(events, len(events))


def frame_of(events: list[Event], ingest: int = 0) -> pd.DataFrame:
    """What transport.narrow makes of the events, made here without Spark."""
    kinds = contracts.event_kinds()
    rows = []
    for event in events:
        row = wire.to_row(event)
        kind = event.fact.kind
        names, word = transport.ARGUMENTS.get(kind, ([], None))
        numbers = [row.get(n, transport.ABSENT) for n in names]
        numbers += [transport.ABSENT] * (transport.NUMBERS - len(numbers))
        facts = {k: v for k, v in row.items() if k in wire.FACT_COLUMNS}
        rest = None if kind in transport.ARGUMENTS else wire.json.dumps(facts)
        identity = (event.cluster_id, event.topic, event.topic_id, str(event.partition))
        source = event.source
        rows.append((
            "/".join(identity), event.trace_generation, event.trace_id, event.sequence,
            event.event_id, kinds.index(kind),
            transport.ABSENT if event.observed_at is None else event.observed_at,
            event.grade == "traced", source.path if source else None,
            source.line if source and source.line is not None else transport.ABSENT,
            source.byte_offset if source and source.byte_offset is not None else transport.ABSENT,
            *numbers, row.get(word) if word else None, rest, ingest,
        ))  # fmt: skip
    return pd.DataFrame(rows, columns=list(transport.COLUMNS))
