"""Evidence and answer: what is decided, what that assumes, and which two histories are left."""

from typing import Any

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.histories.assumptions import (
    COPIES_ARE_CURRENT,
    DISKS_KEEP,
    ELECTIONS_AS_RECORDED,
    LEADERS_IN_SYNC,
    RECORDS_AS_SEEN,
    REPLICAS_AS_SEEN,
)
from replication.protocol.judgement.judge import answer
from replication.reports.history_words import two_histories_text
from tests.protocol.judgement.told import (
    ACKNOWLEDGED,
    COMMITTED,
    copy,
    elected,
    event,
    given,
    told,
)

Facts = list[ev.Fact]
UNTOLD: Facts = [*given(acks=False), elected(1, 0, "initial"), ev.BecameLeader(1, 0, 0, 0)]
BEGUN: Facts = [*given(), elected(1, 0, "initial"), ev.BecameLeader(1, 0, 0, 0)]
ALONE = ev.LeadershipRecorded(1, 0, (1,), 1)
# Alone at hand: a broker that came back, led and has ten records.
CAME_BACK: Facts = [
    ev.CoverageDeclared("controller_history", None, True), *given(2, acks=False),
    elected(1, 0, "initial"), ev.ReplicaStarted(2, 0, 0), ev.BecameFollower(2, 0, 1, 0, 0),
    ev.ReplicaStopped(2, "process_crash"), elected(2, 1, "clean", (2,)),
    ev.ReplicaStarted(2, 0, 4, None, False), ev.BecameLeader(2, 1, 4, 4),
    copy(2, (0, 4, 0, 0), (4, 9, 1, 0), mark=9),
]  # fmt: skip
DAMAGED = ev.CoverageDeclared("whole_log", 2, False, "damaged records: server.log, line 7")
PASSED_OVER: Facts = [elected(2, 1, "unclean", (2,)), ev.BecameLeader(2, 1, 0, 0)]
PROMISED = ev.RecordsAcknowledged(0, 2, "all", 0, 0)
OTHERS = [copy(r, (0, 3, 1, 1), mark=3) for r in (1, 2, 3)]
EQUAL = [copy(r, (0, 2, 0, 0), mark=2) for r in (1, 2, 3)]


def judged(facts: Facts, name: str = COMMITTED, *, strict: bool = False) -> dict[str, Any]:
    verdicts = answer(told(facts), strict=strict).verdicts
    return next(v for v in verdicts if v["invariant"] == name)


@pytest.mark.parametrize(
    ("facts", "by_default", "strictly"),
    [
        ([*BEGUN, PROMISED, *EQUAL], "HOLDS", "UNKNOWN"),
        ([*BEGUN, ALONE, PROMISED, *PASSED_OVER, *OTHERS], "VIOLATED", "UNKNOWN"),
        # Nothing tells how broker 2 was elected, nor what broker 1 wrote.
        ([*UNTOLD, ALONE, *PASSED_OVER, *OTHERS], "UNKNOWN", "UNKNOWN"),
        ([ev.PartitionDescribed((1, 2, 3), 1, False)], "UNKNOWN", "UNKNOWN"),
        (CAME_BACK, "HOLDS", "UNKNOWN"),
        ([DAMAGED, *CAME_BACK], "UNKNOWN", "UNKNOWN"),
        # A broker whose log is whole and has no line of the partition shows nothing.
        ([ev.CoverageDeclared("broker_log", 3, True)], "UNKNOWN", "UNKNOWN"),
    ],
)
def test_a_verdict_is_what_all_histories_say(facts: Facts, by_default: str, strictly: str) -> None:
    assert judged(facts)["verdict"] == by_default
    strict = judged(facts, strict=True)
    assert (strict["verdict"], strict["assuming"]) == (strictly, [])


@pytest.mark.parametrize("strict", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("consumed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_clients_were_told_shows_no_log(consumed: bool, strict: bool) -> None:
    """A producer or a consumer that names the leader epoch tells of no replica what it holds."""
    facts: Facts = [
        ev.PartitionDescribed(kafka_version="3.9.1"),
        ev.CoverageDeclared("acknowledgements", None, True),
        ev.RecordsAcknowledged(0, 5, "all", 3, 0),
        *([ev.RecordsConsumed(0, 5, 3, 0)] if consumed else []),
    ]
    found = {v["invariant"]: v for v in answer(told(facts), strict=strict).verdicts}
    for name in (COMMITTED, ACKNOWLEDGED, "log_matching"):
        assert (found[name]["verdict"], bool(found[name]["settled_by"])) == ("UNKNOWN", True)


def test_three_equal_copies_and_nothing_else_hold_under_named_assumptions() -> None:
    copies = [copy(r, (0, 2, 0, 0), mark=2, stopped=False) for r in (1, 2, 3)]
    found = judged(copies)
    assert found["verdict"] == "HOLDS"
    assert set(found["assuming"]) <= {
        REPLICAS_AS_SEEN, COPIES_ARE_CURRENT, DISKS_KEEP, ELECTIONS_AS_RECORDED, LEADERS_IN_SYNC,
        RECORDS_AS_SEEN,
    }  # fmt: skip
    assert REPLICAS_AS_SEEN in found["assuming"]
    strict = judged(copies, strict=True)
    assert (strict["verdict"], strict["assuming"]) == ("UNKNOWN", [])


def test_an_unknown_shows_two_histories_and_asks_for_everything_at_once() -> None:
    found = judged([*UNTOLD, ALONE, *PASSED_OVER, *OTHERS])
    told_apart = found["histories"]
    assert told_apart["kept"] != told_apart["broken"]
    assert told_apart["part_at"]["leader_epoch"] in (0, 1)
    steps = [s["step"] for s in told_apart["broken"]]
    assert "missed" in steps
    assert "missed" not in [s["step"] for s in told_apart["kept"]]
    assert "the broker log of broker 1" in found["settled_by"]
    assert "an acknowledgement log of the producers" in found["settled_by"]


def test_where_all_brokers_do_alike_two_histories_part_by_what_a_producer_learned() -> None:
    facts: Facts = [
        *given(acks=False), ev.CoverageDeclared("acknowledgements", None, False),
        elected(1, 0, "initial", (1, 2)), ev.BecameLeader(1, 0, 0, 0), PROMISED,
        copy(1, (0, 3, 0, 0), mark=2), elected(2, 1, "clean", (2,)), ev.BecameLeader(2, 1, 2, 2),
        *(copy(r, (0, 2, 0, 0), mark=2) for r in (2, 1, 3)),
    ]  # fmt: skip
    two = judged(facts, ACKNOWLEDGED)["histories"]
    assert two["first_offset"] == 2
    assert two["part_at"]["kept"] == []
    (learned,) = two["part_at"]["broken"]
    assert learned.startswith("a producer gets an answer for")


def test_evidence_that_no_history_explains_has_gaps_by_name_and_strictly_no_verdict() -> None:
    """A leader alone below min.insync.replicas commits nothing from 3.7 on (KAFKA-15583)."""
    lines = [ev.CoverageDeclared("replica_trace", r, True) for r in (1, 2, 3)]
    facts: Facts = [
        ev.PartitionDescribed((1, 2, 3), 2, False, "delete", "4.1.1", "4.1", "kraft"), *lines,
        ev.CoverageDeclared("controller_history", None, True),
        ev.LeadershipRecorded(1, 0, (1,), 0, "initial"), ev.BecameLeader(1, 0, 0, 0),
        ev.LeaderAppended(1, 0, 5, 0), ev.HighWatermarkAdvanced(1, 5),
    ]  # fmt: skip
    found = judged(facts)
    assert (found["verdict"], "lines_are_missing" in found["assuming"]) == ("HOLDS", True)
    found = judged(facts, strict=True)
    assert (found["verdict"], found["assuming"]) == ("UNKNOWN", [])
    assert "no history that the rules of the release allow" in found["reason"]


def test_a_loss_tells_when_producers_were_told_and_what_it_assumes() -> None:
    promised = event(99, ev.RecordsAcknowledged(0, 2, "all", 0, 0, None, 2_000), at=1_000)
    (loss,) = answer(told([*BEGUN, ALONE, promised, *PASSED_OVER, *OTHERS])).losses
    day = "1970-01-01T00:00:0"
    told_at = (loss["acknowledged_from"], loss["acknowledged_until"])
    assert told_at == (f"{day}1.000Z", f"{day}2.000Z")
    # That no disk had lost it before the election is assumed, for the cause alone, and that the
    # leader alone in its ISR waited for nobody for a record that nothing shows; that it was a
    # record of this topic, since no line of a broker tells of its creation.
    assert (loss["tier"], loss["cause"]) == ("acknowledged_by_isr", "unclean_election")
    assert loss["assuming"] == ["disks_keep", "every_send_is_known", "topic_created_once"]


def lost_below(high_watermark: int) -> list[tuple[int, int, list[str]]]:
    """Broker 2 alone holds 2..9 of epoch 0; broker 1 leads, with two other records of epoch 2 in
    their place. Nothing but their directories is at hand."""
    facts: Facts = [
        ev.PartitionDescribed((1, 2), 1, False, leader=1),
        copy(1, (0, 2, 0, 0), (2, 4, 2, 0), mark=4),
        copy(2, (0, 2, 0, 0), (2, 10, 0, 1), mark=high_watermark),
    ]
    losses = answer(told(facts)).losses
    return [(x["first_offset"], x["end_offset"], x["assuming"]) for x in losses]


def test_a_high_watermark_tells_of_everything_below_it() -> None:
    ((first, end, assuming),) = lost_below(10)
    assert (first, end) == (2, 10)
    assert LEADERS_IN_SYNC not in assuming  # Who led epoch 2 lacked what was committed.
    assert lost_below(4) == []  # Either of two records may have been the committed one.


def test_a_clean_start_below_what_the_log_was_cut_to_lost_it_then() -> None:
    """Kafka 0.10.2 loads a log that it had cut just before a clean stop as if nothing were left of
    its last segment. The broker led before that, and had what it cut its log to."""
    promised = ev.RecordsAcknowledged(3, 4, "all", None, 0)
    held = (Span(0, 6, None, 0),)
    facts: Facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(2, 0, "initial"), ev.BecameLeader(2, 0), ev.BecameFollower(1, 0, 2),
        elected(1, 1), ev.BecameLeader(1, 1, 6), ev.BecameFollower(2, 1, 1), ev.Truncated(2, 6),
        elected(2, 2), ev.BecameLeader(2, 2), ev.BecameFollower(1, 2, 2),
        ev.Truncated(1, 5, None, "high_watermark"), ev.ReplicaStopped(1, "clean"),
        ev.ReplicaStarted(1, 0, 3, 3, True), ev.BecameFollower(1, 2, 2),
        ev.Truncated(1, 3, 3, "high_watermark"), promised,
        *(ev.ReplicaLogObserved(r, 0, 6, held, 6, None, (), True) for r in (1, 2, 3)),
    ]  # fmt: skip
    assert judged(facts)["verdict"] == "HOLDS"


def test_where_one_disk_lost_a_record_no_other_loss_is_thought_of() -> None:
    """Broker 2 came back without what broker 1's high watermark tells that it had. That broker 3
    lost a record that nobody saw, at the same offset and long before, would be a second loss."""
    facts: Facts = [
        *given(1, 2, 3, version="1.1.1"),
        ev.CoverageDeclared("sends", None, False),
        elected(3, 0, "initial", (3,)), ev.BecameLeader(3, 0, 0),
        ev.ReplicaStopped(3, "process_crash"), ev.ReplicaStarted(3, 0, 0, 0, False),
        ev.BecameLeader(3, 0, 0), ev.LeadershipRecorded(3, 0, (1, 2, 3), 1),
        ev.BecameFollower(1, 0, 3), ev.BecameFollower(2, 0, 3),
        elected(1, 1), ev.BecameLeader(1, 1, 0), ev.BecameFollower(2, 1, 1),
        ev.BecameFollower(3, 1, 1),
        ev.ReplicaStopped(2, "process_crash"), ev.ReplicaStarted(2, 0, 3, 3, False),
        copy(1, (0, 5, 1, 0), mark=5, stopped=False),
        ev.ReplicaStopped(1, "process_crash"), ev.ReplicaStarted(1, 0, 5, 5, False),
        elected(3, 2, "clean", (3,)), ev.BecameLeader(3, 2, 5),
        ev.BecameFollower(1, 2, 3), ev.BecameFollower(2, 2, 3),
        *(copy(r, (0, 5, 1, 0), mark=5) for r in (1, 2, 3)),
    ]  # fmt: skip
    found = judged(facts)
    assert (found["verdict"], DISKS_KEEP in found["assuming"]) == ("HOLDS", True)


@pytest.mark.parametrize(
    ("early", "version"), [(False, "0.10.2.2"), (True, "0.10.2.2"), (True, "2.8.2")]
)
def test_a_follower_may_hear_of_an_epoch_before_its_leader_does(early: bool, version: str) -> None:
    """Broker 2 is told of epoch 1 and fetches; its leader is still in epoch 0, which the fetch does
    not name before KIP-320, and commits."""
    commits: Facts = [ev.FollowerAppended(2, 0, 5), ev.HighWatermarkAdvanced(1, 5)]
    facts: Facts = [
        ev.PartitionDescribed((1, 2), 2, False, "delete", version, None, "zookeeper"),
        *(ev.CoverageDeclared("broker_log", r, True) for r in (1, 2)),
        ev.CoverageDeclared("controller_history", None, True),
        ev.LeadershipRecorded(1, 0, (1, 2), 0, "initial"), ev.LeadershipRecorded(1, 1, (1, 2), 1),
        ev.BecameLeader(1, 0, 0, 0), ev.LeaderAppended(1, 0, 5, 0),
        ev.BecameFollower(2, int(early), 1, 0, 0),
        *commits, ev.BecameLeader(1, 1, 5, 5), ev.BecameFollower(2, 1, 1, 5, 5),
        copy(1, (0, 5, 0, 0), mark=5), copy(2, (0, 5, 0, 0), mark=5),
    ]  # fmt: skip
    found = judged(facts, strict=True)
    understood = not early or version == "0.10.2.2"
    assert found["verdict"] == ("HOLDS" if understood else "UNKNOWN"), found["reason"]


@pytest.mark.parametrize("version", ["3.9.1", "2.8.2"])
def test_of_two_replicas_no_more_than_two_are_needed(version: str) -> None:
    """min.insync.replicas is 3 when a reassignment leaves two replicas: from 3.7 on two will do for
    the high watermark (Partition.effectiveMinIsr), before it waits for no minimum."""
    three, two = (1, 2, 3), (1, 2)
    facts: Facts = [
        ev.PartitionDescribed(two, 3, False, "delete", version, None, "kraft"),
        *(ev.CoverageDeclared("broker_log", r, True) for r in three),
        ev.CoverageDeclared("controller_history", None, True),
        ev.LeadershipRecorded(1, 0, (1, 2), 0, "initial", three),
        ev.LeadershipRecorded(1, 0, (1, 2), 1, None, two),
        ev.BecameLeader(1, 0, 0, 0), ev.BecameFollower(2, 0, 1, 0, 0),
        ev.LeaderAppended(1, 0, 5, 0), ev.FollowerAppended(2, 0, 5), ev.HighWatermarkAdvanced(1, 5),
        copy(1, (0, 5, 0, 0), mark=5), copy(2, (0, 5, 0, 0), mark=5),
    ]  # fmt: skip
    found = judged(facts, strict=True)
    assert found["verdict"] == "HOLDS", found["reason"]


@pytest.mark.parametrize(("joins", "verdict"), [(True, "HOLDS"), (False, "UNKNOWN")])
def test_who_joins_the_isr_has_what_its_leader_committed_alone(joins: bool, verdict: str) -> None:
    """Broker 1 led alone; whatever it committed by then, broker 2 had it as it joined. Broker 2
    leads next with two records, so that nothing else was committed."""
    isr = (1, 2) if joins else (1,)
    facts: Facts = [
        *given(1, 2, 3, acks=False), ev.CoverageDeclared("controller_history", None, True),
        elected(1, 0, "initial", (1,)), ev.LeadershipRecorded(1, 0, isr, 1),
        ev.BecameLeader(1, 0, 0, 0), ev.BecameFollower(2, 0, 1, 0, 0),
        elected(2, 1, "clean" if joins else "unclean", (2,)), ev.BecameLeader(2, 1, 2, 2),
        ev.BecameFollower(1, 1, 2, None, None), ev.Truncated(1, 2, None, "leader_epoch"),
        copy(1, (0, 2, 0, 0), mark=2), copy(2, (0, 2, 0, 0), mark=2),
    ]  # fmt: skip
    found = judged(facts, strict=True)
    assert found["verdict"] == verdict, found["reason"]


def test_who_joins_after_the_leader_came_back_with_less_need_not_have_it() -> None:
    """In ZooKeeper mode a leader may come back in its epoch, with a lower high watermark."""
    facts: Facts = [
        *given(1, 2, 3, acks=False), ev.CoverageDeclared("controller_history", None, True),
        elected(1, 0, "initial", (1,)), ev.BecameLeader(1, 0, 0, 0), ev.LeaderAppended(1, 0, 5, 0),
        ev.HighWatermarkAdvanced(1, 5),
        ev.ReplicaStopped(1, "process_crash"), ev.ReplicaStarted(1, 0, 3, None),
        ev.BecameLeader(1, 0, 3, 3), ev.BecameFollower(2, 0, 1, 0, 0),
        ev.LeadershipRecorded(1, 0, (1, 2), 1),
        copy(1, (0, 3, 0, 0), mark=3), copy(2, (0, 3, 0, 0), mark=3),
    ]  # fmt: skip
    found = judged(facts, strict=True)
    assert found["verdict"] == "VIOLATED", found["reason"]


@pytest.mark.parametrize(
    ("version", "restarts", "verdict"),
    [("3.9.1", True, "VIOLATED"), ("3.9.1", False, "UNKNOWN"), ("1.1.1", True, "UNKNOWN")],
)
def test_what_was_committed_before_a_leader_came_back_to_its_epoch_is_not_late(
    version: str, restarts: bool, verdict: str
) -> None:
    """From 2.2 on a broker that starts is told the epoch in force (KIP-380): nobody else had been
    elected by then. Before, a request may be of a time before its start."""
    again: Facts = [
        ev.ReplicaStopped(1, "process_crash"), ev.ReplicaStarted(1, 0, 5, None),
        ev.BecameLeader(1, 0, 5, 5),
    ]  # fmt: skip
    controller = "kraft" if version == "3.9.1" else "zookeeper"
    facts: Facts = [
        ev.PartitionDescribed((1, 2), 1, True, "delete", version, None, controller),
        *(ev.CoverageDeclared("broker_log", r, True) for r in (1, 2)),
        ev.CoverageDeclared("controller_history", None, True),
        elected(1, 0, "initial", (1,)), ev.BecameLeader(1, 0, 0, 0),
        ev.LeaderAppended(1, 0, 5, 0), ev.HighWatermarkAdvanced(1, 5),
        *(again if restarts else []),
        elected(2, 1, "unclean", (2,)), ev.BecameLeader(2, 1, 0, 0),
    ]  # fmt: skip
    found = judged(facts, strict=True)
    assert found["verdict"] == verdict, found["reason"]


@pytest.mark.parametrize("acks", [True, False])
def test_who_leads_after_the_evidence_ends_has_no_leader_epoch(acks: bool) -> None:
    """Nor is a broker log asked for that is here, and ends before; a client's answer comes first,
    where no acknowledgement log is here."""
    facts: Facts = [
        *given(acks=acks), ev.CoverageDeclared("controller_history_end", None, False),
        elected(1, 0, "initial"), ev.BecameLeader(1, 0, 0, 0), *([PROMISED] if acks else []),
        copy(1, (0, 2, 0, 0), mark=0), copy(2, (0, 2, 0, 0), mark=0), copy(3, mark=0),
        ev.CoverageDeclared("broker_log", 3, False),
    ]  # fmt: skip
    found = judged(facts, ACKNOWLEDGED, strict=True)
    two, wanted = found["histories"], " ".join(found["settled_by"])
    steps = [(told["leader_epoch"], told["step"]) for told in two["broken"]]
    assert (None, "ends_without") in steps
    assert [n for n, _ in steps if n not in (0, None)] == []
    assert ((0, "answered") in steps) is not acks
    assert two["part_at"]["leader_epoch"] == (None if acks else 0)
    assert ("after it ends, either broker 1 leads next" in found["reason"]) is acks
    if acks:
        assert ("broker log of broker 2" in wanted, "broker log of broker 3" in wanted) == (
            True,
            False,
        )
        assert "copied again" in wanted
    assert two_histories_text({**found, "topic": "t", "partition": 0}).count("later ") == 1
