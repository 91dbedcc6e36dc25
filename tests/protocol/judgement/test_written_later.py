"""Of two records that were acknowledged at one offset, the later one stands."""

import pytest

from replication.evidence.joining.copies import UNSEEN_CONTENT
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.reference import reference
from replication.protocol.judgement.same_record import may_have_written
from replication.protocol.judgement.written_later import written_later
from tests.protocol.judgement.told import ACKNOWLEDGED, copy, elected, given, told, verdict


def bare(replica: int, span: tuple[int, int, int], *, stopped: bool = True) -> ev.Fact:
    """A log of the formats without leader epochs: (first offset, end offset, content)."""
    first, end, content = span
    held = (Span(first, end, None, content),)
    return ev.ReplicaLogObserved(replica, 0, end, held, None, None, (), stopped)


def replaced_before_epochs(*, cut: bool) -> list[ev.Fact]:
    """Brokers 2 and 1 acknowledge another record each at offset 0, which is compacted since.

    Broker 2 cuts its own, and leads again; no line tells where a term begins.
    """
    cuts: list[ev.Fact] = [ev.Truncated(2, 0, reason="high_watermark")]
    return [
        *given(1, 2, 3, version="0.10.2.2"),
        ev.PartitionDescribed(cleanup_policy="compact"),
        elected(2, 0, "initial"),
        ev.BecameLeader(2, 0),
        ev.RecordsAcknowledged(0, 1, "1", None, 7, leader=2),
        bare(2, (0, 1, 7), stopped=False),
        ev.ReplicaStopped(2, "process_crash"),
        elected(1, 1, "clean"),
        ev.BecameLeader(1, 1),
        ev.RecordsAcknowledged(0, 1, "all", None, UNSEEN_CONTENT, leader=1),
        ev.ReplicaStarted(2, 0, 1, None, False),
        ev.BecameFollower(2, 1, 1),
        *(cuts if cut else []),
        elected(2, 2),
        ev.BecameLeader(2, 2),
        *(bare(r, (4, 6, 0)) for r in (1, 2, 3)),
    ]


def test_of_two_records_at_a_compacted_offset_the_one_that_had_been_cut_is_lost() -> None:
    lost = answer(told(replaced_before_epochs(cut=True))).losses
    assert [(x["first_offset"], x["end_offset"], x["tier"]) for x in lost] == [
        (0, 1, "acknowledged_by_leader")
    ]
    # Nothing shows that the clients were told the records' own offsets.
    assert verdict(replaced_before_epochs(cut=False), ACKNOWLEDGED) == "UNKNOWN"


OWN_OFFSETS = ev.CoverageDeclared("acknowledged_offsets", None, True)


def of_two(first: str, again: str, **more: object) -> list[ev.Fact]:
    """Broker 1 alone led, crashed and led again: it answered for two records at offset 0, which is
    compacted since."""
    again_from_there: list[ev.Fact] = [
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, None, None, False),
        elected(1, 1, "same_leader"),
        ev.BecameLeader(1, 1, 0, 0),
    ]
    return [
        *given(1, 2, 3),
        *([] if more.get("unsure") else [OWN_OFFSETS]),
        ev.CoverageDeclared("controller_history", None, True),
        ev.PartitionDescribed(cleanup_policy="compact"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0),
        ev.RecordsAcknowledged(0, 1, first, None, UNSEEN_CONTENT),
        *([] if more.get("once") else again_from_there),
        *([ev.LogStartAdvanced(1, 1, "deletion")] if more.get("removed") else []),
        ev.RecordsAcknowledged(0, 1, again, None, UNSEEN_CONTENT + 1),
        *(copy(r, (4, 6, 1, 0), mark=6) for r in (1, 2, 3)),
    ]


@pytest.mark.parametrize(
    ("first", "again", "tier", "committed"),
    [
        ("1", "1", "acknowledged_by_leader", "UNKNOWN"),
        ("1", "all", "acknowledged_by_leader", "UNKNOWN"),
        ("all", "1", "acknowledged_by_leader", "UNKNOWN"),
        ("all", "all", "acknowledged_by_isr", "VIOLATED"),
    ],
)
def test_of_two_records_at_a_compacted_offset_one_is_lost_whichever_was_first(
    first: str, again: str, tier: str, committed: str
) -> None:
    facts = of_two(first, again)
    lost = answer(told(facts)).losses
    assert [(x["first_offset"], x["end_offset"], x["tier"], x["cause"]) for x in lost] == [
        (0, 1, tier, "unknown")
    ]
    assert (verdict(facts, ACKNOWLEDGED), verdict(facts)) == ("VIOLATED", committed)
    assert verdict(of_two(first, again, unsure=True), ACKNOWLEDGED) == "UNKNOWN"
    # Nobody can have written there twice: perhaps the topic was created anew.
    assert verdict(of_two(first, again, once=True), ACKNOWLEDGED) == "UNKNOWN"
    assert verdict(of_two(first, again, removed=True), ACKNOWLEDGED) != "VIOLATED"


def test_which_was_first_tells_who_can_have_written_each() -> None:
    found = {}
    for cut in (True, False):
        state = told(replaced_before_epochs(cut=cut))
        starts = reference(state).starts
        for promise in state.history.acknowledgements:
            writers = may_have_written(state, starts, 0, promise)
            found[cut, promise.how] = written_later(state, starts, promise, 0, writers)

    assert (found[True, "acks_1"], found[True, "acks_all"]) == (True, False)
    assert (found[False, "acks_1"], found[False, "acks_all"]) == (None, None)


def taken_by_a_zombie() -> list[ev.Fact]:
    """Broker 1 leads from offset 3 on; broker 2, deposed and not aware of it, takes another record
    there after that, and leads again. What stood there is compacted since."""
    return [
        *given(1, 2, 3),
        ev.CoverageDeclared("controller_history", None, True),
        elected(2, 0, "initial"),
        ev.BecameLeader(2, 0, 0, 0),
        elected(1, 1, "clean", (1,)),
        ev.BecameLeader(1, 1, 3, 3),
        ev.RecordsAcknowledged(3, 4, "all", None, UNSEEN_CONTENT, leader=1),
        ev.RecordsAcknowledged(3, 4, "1", None, UNSEEN_CONTENT + 1, leader=2),
        ev.BecameFollower(2, 1, 1, 4, 3),
        ev.Truncated(2, 3, reason="leader_epoch"),
        elected(2, 2, "preferred"),
        ev.BecameLeader(2, 2, 6, 6),
        elected(2, 3, "same_leader"),
        ev.BecameLeader(2, 3, 6, 6),
        *(copy(r, (5, 6, 1, 0), mark=6) for r in (1, 2, 3)),
    ]


def test_a_record_that_only_the_deposed_leader_can_have_written_is_the_one_that_is_lost() -> None:
    lost = answer(told(taken_by_a_zombie())).losses
    assert [(x["tier"], x["status"]) for x in lost] == [("acknowledged_by_leader", "lost")]
    assert verdict(taken_by_a_zombie()) == "HOLDS"


def answered_by_a_zombie() -> list[ev.Fact]:
    """The same after an unclean election, and the deposed leader answers with acks=all: whether
    before it was deposed, nothing tells."""
    return [
        *given(1, 2, 3),
        ev.CoverageDeclared("controller_history", None, True),
        elected(2, 0, "initial"),
        ev.BecameLeader(2, 0, 0, 0),
        elected(1, 1, "unclean", (1,)),
        ev.BecameLeader(1, 1, 3, 3),
        ev.RecordsAcknowledged(3, 4, "1", None, UNSEEN_CONTENT, leader=1),
        ev.RecordsAcknowledged(3, 4, "all", None, UNSEEN_CONTENT + 1, leader=2),
        ev.BecameFollower(2, 1, 1, 4, 4),
        ev.Truncated(2, 3, reason="leader_epoch"),
        *(copy(r, (5, 6, 1, 0), mark=6) for r in (1, 2, 3)),
    ]


def test_what_a_deposed_leader_answered_for_and_another_record_replaced_is_no_committed_one() -> (
    None
):
    lost = answer(told(answered_by_a_zombie())).losses
    assert [(x["tier"], x["status"], x["cause"]) for x in lost] == [
        ("acknowledged_by_isr", "lost", "unclean_election")
    ]
    assert verdict(answered_by_a_zombie(), ACKNOWLEDGED) == "VIOLATED"
    assert verdict(answered_by_a_zombie()) == "UNKNOWN"


@pytest.mark.parametrize(
    ("how", "version", "writers"),
    [("all", "0.10.2.2", [2]), ("1", "0.10.2.2", [0, 2]), ("all", "2.8.1", [0, 2])],
)
def test_what_was_promised_above_a_leaders_last_high_watermark_it_wrote_later(
    how: str, version: str, writers: list[int]
) -> None:
    """Broker 1 followed at 4 and leads again; from KIP-98 on it may answer anew for what it wrote
    before."""
    facts = [
        *given(1, 2, 3, version=version),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0),
        elected(2, 1),
        ev.BecameFollower(1, 1, 2, None, 4),
        elected(1, 2),
        ev.BecameLeader(1, 2),
        ev.RecordsAcknowledged(5, 6, how, None, 7, leader=1),
    ]
    state = told(facts)
    (promise,) = state.history.acknowledgements

    assert may_have_written(state, reference(state).starts, 5, promise) == writers


def test_a_leader_may_have_written_before_what_compaction_left_of_its_epoch() -> None:
    """Broker 2 answered at acks=1 in epoch 1, cut off; broker 3 at acks=all, which leads again."""
    held = (Span(0, 2, 0, 0), Span(2, 5, 1, 0), Span(12, 20, 2, 0))
    facts = [
        *given(version="3.9.1"),
        ev.PartitionDescribed(cleanup_policy="compact", kafka_version="3.9.1", controller="kraft"),
        elected(3, 0, "initial"),
        elected(2, 1, "preferred"),
        elected(3, 2, "preferred"),
        ev.RecordsAcknowledged(6, 7, "1", None, UNSEEN_CONTENT, leader=2),
        ev.RecordsAcknowledged(6, 7, "all", None, UNSEEN_CONTENT + 1, leader=3),
        ev.ReplicaLogObserved(2, 0, 20, held, 20, None, None, True),
        *(ev.ReplicaLogObserved(r, 0, 20, held[2:], 20, None, None, True) for r in (1, 3)),
    ]
    assert verdict(facts) == "UNKNOWN"
