"""By declared clocks: in which leader epoch a record known by offset alone was acknowledged."""

from typing import Any

import pytest

from replication.evidence.joining.by_clock import ClocksDisagree, EpochsByClock, epochs_by_clock
from replication.evidence.joining.places import Place
from replication.evidence.joining.promised_records import promised
from replication.evidence.joining.registrations import Recorded
from replication.protocol.ground import events as ev
from tests.evidence.joining.evidence import evidence
from tests.evidence.joining.lines import acknowledged, line
from tests.protocol.judgement.told import ACKNOWLEDGED, copy, given, verdict
from tests.protocol.judgement.told import elected as elected_by

KRAFT = ev.PartitionDescribed(controller="kraft")


def elected(leader: int, leader_epoch: int, at: int) -> Recorded:
    return Recorded(ev.LeadershipRecorded(leader, leader_epoch), at, ev.Source("x"))


def two_leaders(bound: int | None, *acks: Any, ends: int | None = None, **more: Any) -> Any:
    """Broker 1 leads from 1000 on, broker 2 from 5000 on and from offset 20; broker 1's lines tell
    that it follows then, with this log end."""
    followed = [] if ends is None else [
        line("became_follower", at=5_010, number=2, leader_epoch=1, log_end_offset=ends)
    ]  # fmt: skip
    known = {"described": KRAFT, "recorded": [elected(1, 0, 1_000), elected(2, 1, 5_000)], **more}
    found = evidence(
        line("became_leader", at=1_001, number=1, leader_epoch=0, log_end_offset=0),
        *followed, clock_bound=bound, acknowledgements=list(acks), **known,
    )  # fmt: skip
    found.lines[2] = [
        line("became_leader", at=5_005, number=1, leader_epoch=1, log_end_offset=20),
        line("isr_updated", at=9_000, number=2),
    ]
    return found


def told(offset: int, ts: int, number: int = 1, sent: int | None = None) -> Any:
    return acknowledged(None, ts=ts, offset=offset, line=number, sent=sent)


def epochs(bound: int | None, *acks: Any, ends: int | None = None) -> list[int | None]:
    clocks = epochs_by_clock(two_leaders(bound, ends=ends))
    return [] if clocks is None else [clocks.epoch_of(a) for a in acks]


def test_before_the_next_leader_began_the_leader_before_it_answered() -> None:
    assert epochs(500, told(25, 4_499), told(25, 4_500)) == [0, None]
    assert epochs(None, told(25, 4_499)) == []


def test_after_its_start_a_leader_answered_where_its_predecessors_lines_end() -> None:
    assert epochs(500, told(25, 5_511), told(26, 5_510), ends=30) == [1, None]
    # Nothing tells that broker 1 has stopped answering.
    assert epochs(500, told(25, 8_000)) == [None]


def test_an_answer_may_be_long_on_its_way_where_its_sending_is_told() -> None:
    """Broker 1 wrote it, and was frozen as it answered; the other was sent after it had led."""
    frozen, later = told(25, 8_000, sent=4_000), told(26, 8_000, sent=5_511)
    assert epochs(500, frozen, later, ends=30) == [None, 1]


def test_where_the_newest_leader_has_ended_no_older_one_is_meant() -> None:
    found = two_leaders(500)
    found.lines[2].insert(1, line("stopped_cleanly", at=6_000, number=2))
    clocks = epochs_by_clock(found)
    assert clocks is not None
    assert clocks.epoch_of(told(25, 8_000)) is None


def test_what_stands_below_a_leaders_start_it_did_not_write() -> None:
    assert epochs(500, told(19, 6_000), ends=30) == [None]


def test_what_the_evidence_does_not_reach_is_not_told() -> None:
    assert epochs(500, told(25, 9_501), ends=30) == [None]


@pytest.mark.parametrize(
    ("ack", "why"),
    [
        (told(3, 400), "when no broker led"),
        (told(30, 4_000), "whose leader's log ended at 30"),
    ],
)
def test_a_bound_that_the_evidence_contradicts_is_refused(ack: Any, why: str) -> None:
    clocks = epochs_by_clock(two_leaders(500, ends=30))
    assert clocks is not None
    with pytest.raises(ClocksDisagree, match=why):
        clocks.epoch_of(ack)


def test_one_offset_is_told_once_in_an_epoch() -> None:
    clocks = epochs_by_clock(two_leaders(500))
    assert clocks is not None
    assert clocks.epoch_of(told(3, 2_000, 1)) == clocks.epoch_of(told(3, 2_000, 1)) == 0
    with pytest.raises(ClocksDisagree, match=r"in which acks.jsonl line 1 was, too"):
        clocks.epoch_of(told(3, 2_100, 2))


def test_a_record_whose_epoch_a_log_shows_was_not_told_before_it_began() -> None:
    clocks = epochs_by_clock(two_leaders(500))
    assert isinstance(clocks, EpochsByClock)
    clocks.hold(told(25, 4_500), 1)
    with pytest.raises(ClocksDisagree, match="before its leader epoch, 1, began, at 5000"):
        clocks.hold(told(25, 4_499), 1)


def test_a_leader_does_not_begin_before_its_election() -> None:
    with pytest.raises(ClocksDisagree, match="leader epoch 0 begins at 1001, before its election"):
        epochs_by_clock(two_leaders(500, recorded=[elected(1, 0, 1_502), elected(2, 1, 5_000)]))


def test_an_epoch_that_nobody_recorded_leaves_all_open() -> None:
    for recorded in ([elected(2, 1, 5_000)], [elected(1, 0, 1_000)]):
        clocks = epochs_by_clock(two_leaders(500, recorded=recorded))
        assert clocks is not None
        assert clocks.epoch_of(told(25, 4_000)) is None


def test_with_zookeeper_a_leader_may_begin_twice_in_its_epoch() -> None:
    zookeeper = ev.PartitionDescribed(controller="zookeeper")
    found = two_leaders(500, described=zookeeper)
    found.lines[1].append(line("became_leader", at=1_900, number=3, leader_epoch=0))
    for each, expected in ((two_leaders(500, described=zookeeper), 0), (found, None)):
        clocks = epochs_by_clock(each)
        assert clocks is not None
        assert clocks.epoch_of(told(25, 4_000)) == expected


def test_the_epoch_names_the_record() -> None:
    told_of = two_leaders(500, told(25, 4_000))
    assert [e.fact for e in promised(told_of)] == [
        ev.RecordsAcknowledged(25, 26, "all", 0, observed_until=4_000)
    ]
    without = two_leaders(None, told(25, 4_000))
    assert [e.fact for e in promised(without)] == [
        ev.RecordsAcknowledged(25, 26, "all", observed_until=4_000)
    ]


@pytest.mark.parametrize(
    ("leader_epoch", "expected"), [(None, "UNKNOWN"), (0, "VIOLATED"), (1, "HOLDS")]
)
def test_what_that_decides(leader_epoch: int | None, expected: str) -> None:
    """Broker 2 is elected beside the ISR and writes from offset 20 on."""
    facts = [
        *given(), elected_by(1, 0, "initial"), ev.BecameLeader(1, 0, 0, 0),
        elected_by(2, 1, "unclean", (2,)), ev.BecameLeader(2, 1, 20, 0),
        copy(2, (0, 20, 0, 0), (20, 30, 1, 0), mark=30),
        ev.RecordsAcknowledged(25, 26, "all", leader_epoch),
    ]  # fmt: skip
    assert verdict(facts, ACKNOWLEDGED, strict=expected == "UNKNOWN") == expected


def test_at_acks_one_only_who_answered_wrote_it() -> None:
    clocks = epochs_by_clock(two_leaders(500))
    assert clocks is not None
    by = {n: acknowledged(None, ts=8_000, offset=25, acks="1", broker=n, line=n) for n in (1, 2)}

    assert [clocks.epoch_of(a) for a in by.values()] == [0, 1]
    later = acknowledged(None, ts=8_000, offset=26, broker=2, acks="all")
    assert clocks.epoch_of(later) is None


def test_who_answered_is_told_where_nothing_names_the_epoch() -> None:
    acks = [acknowledged(None, offset=n, broker=1 + n // 2, line=n) for n in range(4)]
    rows = [e.fact for e in promised(evidence(acknowledgements=acks))]

    assert [(r.first_offset, r.end_offset, r.leader) for r in rows] == [(0, 2, 1), (2, 4, 2)]


@pytest.mark.parametrize(("says", "told"), [(1, 1), (2, None)])
def test_a_broker_that_did_not_lead_then_is_not_who_answered(says: int, told: int | None) -> None:
    """The log shows that the record with an id was written in epoch 0, which broker 1 led."""
    named = acknowledged("k", offset=0, acks="1", broker=says)
    other = acknowledged(None, offset=1, acks="1", broker=1, line=2)
    found = evidence(
        acknowledgements=[named, other], recorded=[elected(1, 0, 1_000), elected(2, 1, 5_000)]
    )
    found.contents.places["k"] = [Place(0, 0, 7)]
    found.contents.payloads_read = True
    rows = [e.fact for e in promised(found)]

    assert [(r.leader_epoch, r.leader) for r in rows] == [(0, None), (None, told)]
    assert len(found.notes) == (told is None)
