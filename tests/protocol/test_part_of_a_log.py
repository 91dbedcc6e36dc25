"""A part of a log shows what stands in it, and leaves open what lies before, between and after."""

import pytest

from replication.protocol.folding.codec import decode, encode
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.judge import answer
from tests.protocol.judgement.told import told

OLD, NEW = 0, 1
START: list[ev.Fact] = [
    ev.PartitionDescribed((1, 2), 1, False, "delete", "3.9.1"),
    ev.CoverageDeclared("acknowledgements", None, True),
    ev.CoverageDeclared("controller_history", None, True),
    ev.LeadershipRecorded(1, OLD, (1, 2), 0, "initial", (1, 2)),
    ev.LeadershipRecorded(2, NEW, (2, 1), 1, "clean", (1, 2)),
]


def folded(facts: list[ev.Fact]) -> State:
    return decode(encode(told([*START, *facts])))


def verdict(facts: list[ev.Fact], invariant: str, *, strict: bool = False) -> str:
    judged = answer(folded(facts), strict=strict).verdicts
    found = {v["invariant"]: v["verdict"] for v in judged}
    return str(found[invariant])


def part(replica: int, *spans: Span, ends: bool = False) -> ev.Fact:
    """ends: the log is known to end where the part does."""
    first, end = spans[0].first_offset, spans[-1].end_offset
    known = False if ends else None
    return ev.ReplicaLogObserved(replica, first, end, spans, stopped=known, copy="part")


def whole(replica: int, *spans: Span) -> ev.Fact:
    first, end = spans[0].first_offset, spans[-1].end_offset
    return ev.ReplicaLogObserved(replica, first, end, spans, end, stopped=True)


def acknowledged(first: int, end: int, leader_epoch: int) -> ev.Fact:
    return ev.RecordsAcknowledged(first, end, "all", leader_epoch)


@pytest.mark.parametrize(
    ("promise", "expected"),
    [
        (acknowledged(2, 6, OLD), "UNKNOWN"),  # the new epoch may begin below it, unseen
        (acknowledged(8, 9, OLD), "VIOLATED"),  # a record of the new epoch stands there
        (acknowledged(8, 12, NEW), "HOLDS"),
        (acknowledged(12, 13, NEW), "UNKNOWN"),  # the log may go on
    ],
)
def test_what_was_not_seen_of_a_leader_is_neither_held_nor_gone(
    promise: ev.Fact, expected: str
) -> None:
    shown = [part(2, Span(8, 12, NEW, 0)), promise]
    strict = expected == "UNKNOWN"
    assert verdict(shown, "acknowledged_records_survive", strict=strict) == expected


def test_an_epoch_that_begins_behind_a_seen_record_begins_there() -> None:
    shown = [part(2, Span(7, 8, OLD, 0), Span(8, 12, NEW, 0)), acknowledged(2, 6, OLD)]
    assert verdict(shown, "acknowledged_records_survive") == "HOLDS"


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        ([whole(1, Span(0, 9, OLD, 0)), part(2, Span(0, 5, OLD, 0))], "UNKNOWN"),
        ([whole(1, Span(0, 9, OLD, 0)), part(2, Span(4, 9, OLD, 0))], "UNKNOWN"),
        ([whole(1, Span(4, 9, OLD, 0)), part(2, Span(4, 9, OLD, 0))], "HOLDS"),
        ([part(1, Span(0, 9, OLD, 0)), part(2, Span(0, 9, OLD, 0))], "UNKNOWN"),
        ([part(1, Span(0, 9, OLD, 0), ends=True), part(2, Span(0, 9, OLD, 0))], "HOLDS"),
        ([part(1, Span(0, 9, OLD, 0)), part(2, Span(7, 8, OLD, 1))], "VIOLATED"),
        ([part(1, Span(0, 9, OLD, 0)), whole(2, Span(0, 8, OLD, 0))], "HOLDS"),
        (
            [part(1, Span(0, 9, OLD, 0)), whole(2, Span(0, 8, OLD, 0), Span(8, 9, NEW, 0))],
            "UNKNOWN",
        ),
    ],
)
def test_logs_agree_only_where_both_were_seen(logs: list[ev.Fact], expected: str) -> None:
    assert verdict(logs, "log_matching", strict=expected == "UNKNOWN") == expected


def test_what_is_cut_to_a_high_watermark_that_nobody_knows_may_be_mended() -> None:
    """Kafka 0.10 cuts a follower to its checkpoint, and a dump comes without one."""
    old = ev.PartitionDescribed(kafka_version="0.10.2")
    logs = [whole(2, Span(0, 9, None, 0)), part(1, Span(0, 9, None, 1), ends=True)]
    assert verdict([old, *logs], "log_matching") == "UNKNOWN"
    seen = [*logs, ev.HighWatermarkAdvanced(1, 4)]
    assert verdict([old, *seen], "log_matching") == "VIOLATED"


def test_a_part_of_a_broker_that_lived_on_without_a_log_of_it_says_nothing() -> None:
    shown = [part(2, Span(0, 9, NEW, 0)), acknowledged(0, 9, NEW)]
    restarted = [shown[0], ev.ReplicaStarted(2), shown[1]]
    gaps = [ev.CoverageDeclared("broker_log", 2, False), *restarted]
    found = [
        verdict(facts, "acknowledged_records_survive", strict=True)
        for facts in (shown, restarted, gaps)
    ]
    assert found == ["UNKNOWN"] * 3
    assert verdict(shown, "acknowledged_records_survive") == "HOLDS"


def test_a_loss_that_a_part_does_not_reach_is_undetermined() -> None:
    leader = whole(2, Span(0, 6, OLD, 0), Span(6, 9, NEW, 1))
    for follower, status in [
        (part(1, Span(0, 5, OLD, 0)), "undetermined"),
        (part(1, Span(0, 6, OLD, 0), Span(6, 9, NEW, 1)), "lost"),
        (part(1, Span(5, 8, OLD, 0)), "recoverable"),
    ]:
        state = folded([follower, leader, acknowledged(6, 8, OLD)])
        (loss,) = answer(state).losses
        assert loss["status"] == status


def test_what_is_cut_later_is_cut_from_a_part() -> None:
    shown = [
        ev.CoverageDeclared("broker_log", 2, True),
        part(2, Span(0, 9, OLD, 0)),
        ev.ReplicaStarted(2, 0, 6, None, False),
    ]
    replica = folded(shown).replicas[2]
    assert replica.log.spans == [Span(0, 6, OLD, 0)]
    assert not replica.stale
    assert folded(shown).history.storage_losses == []


@pytest.mark.parametrize(
    ("invariant", "expected"),
    [
        ("acknowledged_records_survive", "UNKNOWN"),
        ("committed_records_survive", "UNKNOWN"),
        ("leader_epochs_monotonic", "UNKNOWN"),
        ("log_matching", "HOLDS"),
    ],
)
def test_what_held_may_not_where_the_controllers_history_goes_on(
    invariant: str, expected: str
) -> None:
    shown = [whole(1, Span(0, 9, OLD, 0)), whole(2, Span(0, 9, OLD, 0)), acknowledged(0, 9, OLD)]
    later = ev.CoverageDeclared("controller_history_end", None, False, "offsets 7..9")
    assert verdict(shown, invariant) == "HOLDS"
    assert verdict([*shown, later], invariant, strict=True) == expected
    lost = [whole(2, Span(0, 9, OLD, 1)), ev.RecordsAcknowledged(0, 9, "all", OLD, 0), later]
    assert verdict(lost, "acknowledged_records_survive") == "VIOLATED"
