"""What went by Kafka's rules is counted, and what the ledger names is not among it."""

from dataclasses import astuple

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.lawful_removals import lawful_removals
from replication.protocol.judgement.view import view_of
from tests.protocol.judgement.told import copy, given, told

COMPACT = ev.PartitionDescribed(cleanup_policy="compact")
LEADS = ev.LeadershipRecorded(1, 0, (1, 2, 3), 0, "initial")


def acknowledged(first: int, end: int) -> ev.Fact:
    return ev.RecordsAcknowledged(first, end, "all", 0, 0)


def begins_at(start: int, *spans: Span) -> ev.Fact:
    return ev.ReplicaLogObserved(1, start, 9, spans or (Span(start, 9, 0, 0),), 9, None, None, True)


@pytest.mark.parametrize(
    ("facts", "removed"),
    [
        ([acknowledged(0, 9), copy(1, (0, 9, 0, 0))], []),
        ([acknowledged(1, 9), begins_at(4)], [("log_start", 0, 4, 3, 3)]),
        # A copy shows what was acknowledged to nobody.
        ([acknowledged(3, 9), copy(1, (0, 9, 0, 0)), begins_at(4)], [("log_start", 0, 4, 1, 4)]),
        ([ev.PartitionDescribed(deleted=True), acknowledged(2, 5), copy(1, (0, 9, 0, 0))],
         [("topic_deleted", 0, 9, 3, 9)]),
        # Nothing was ever written: nothing went.
        ([ev.PartitionDescribed(deleted=True)], []),
        ([COMPACT, acknowledged(0, 9), begins_at(0, Span(0, 3, 0, 0), Span(7, 9, 0, 0))],
         [("compaction", 3, 7, 4, 4)]),
        # A hole in a log that is not compacted is no lawful one.
        ([acknowledged(0, 9), begins_at(0, Span(0, 3, 0, 0), Span(7, 9, 0, 0))], []),
    ],
)  # fmt: skip
def test_what_was_removed(facts: list[ev.Fact], removed: list[tuple[object, ...]]) -> None:
    rows = lawful_removals(view_of(told([*given(), LEADS, *facts])))
    assert [astuple(row) for row in rows] == removed


def test_without_an_acknowledgement_log_none_is_counted() -> None:
    state = told([*given(acks=False), LEADS, copy(1, (0, 9, 0, 0)), begins_at(4)])
    (row,) = lawful_removals(view_of(state))
    assert (row.acknowledged, row.seen) == (None, 4)
