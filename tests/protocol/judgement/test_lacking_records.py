"""What one log is known to lack of another, by when both were read."""

import pytest

from replication.protocol.folding.fold import apply
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.at_risk import dangers
from replication.protocol.judgement.lacking_records import Compared
from replication.protocol.judgement.reference import tail_is_known
from tests.protocol.judgement.danger_stories import (
    came_back,
    given,
    live,
    log_without_epochs,
    of_two,
    story,
)


def test_a_member_that_crashed_fetches_no_more_and_may_be_elected_without_ever_leading() -> None:
    """Killed at ten records it stays in the ISR until its session ends, and was read no more; the
    controller may even elect it. What the leader alone was given is lost when it is back."""
    crashed = [live(1, 1000, 10), live(2, 1100, 10), ev.ReplicaStopped(2, "process_crash")]
    alone = [*crashed, live(1, 2000, 14)]
    elected = [*alone, ev.LeadershipRecorded(leader=2, leader_epoch=1, isr=(2,), partition_epoch=2,
                                             election_kind="clean")]  # fmt: skip
    nobody = [*elected, ev.LeadershipRecorded(leader=None, leader_epoch=2, isr=(2,),
                                              partition_epoch=3)]  # fmt: skip
    for facts, failure in (
        (crashed, None), (alone, "leader_stops"),
        (elected, "clean_election"), (nobody, "clean_election"),
    ):  # fmt: skip
        found = dangers(of_two(*facts, isr=(1, 2)))
        told = [(d.failure, d.next_leader, d.first_offset, d.end_offset, d.cause) for d in found]
        tail = [("leader_loses_its_tail", None, 10, 14, "storage_loss")] if facts is alone else []
        down = [("leader_loses_its_log", None, 0, 10, "storage_loss")]
        down = down if facts in (elected, nobody) else []
        expected = [(failure, 2, 10, 14, "acks_one_failover")] if failure else []
        assert told == down + expected + tail
    led = [*elected, live(2, 3000, 10), ev.BecameLeader(2, 1)]
    assert "clean_election" not in {d.failure for d in dangers(of_two(*led, isr=(1, 2)))}


def test_a_member_is_known_by_the_line_of_its_start_until_its_log_is_read_again() -> None:
    """It crashed with ten records and came back with eight; the leader was read before that. Back
    from a clean stop it may only just have left the ISR: half a second and two must lie between."""
    killed = [live(1, 1000, 10), live(2, 1100, 10), ev.ReplicaStopped(2, "process_crash")]
    before = [*killed, live(1, 2000, 14)]
    short, unwritten = (8, 14, "storage_loss"), (10, 14, "acks_one_failover")
    for facts, named in (
        ([*before, came_back(8, 2100, clean=False)], [short]),
        ([*before, live(2, 2050, 8), came_back(8, 2100, clean=False)], [short]),
        ([*before, came_back(10, 2100, clean=True)], []),
        ([*before, came_back(10, 2600, clean=True)], [unwritten]),
        ([*before, came_back(8, 2100, clean=False), live(2, 2200, 14)], []),
    ):
        found = dangers(of_two(*facts, isr=(1, 2)))
        told = [(d.first_offset, d.end_offset, d.cause) for d in found if d.next_leader == 2]
        assert told == named
    unread = [live(1, 1000, 10), ev.ReplicaStopped(2, "process_crash")]
    state = of_two(*unread, came_back(8, 2100, clean=False), isr=(1, 2))
    assert dangers(state) == [], "without digests it may have fetched long since"


@pytest.mark.parametrize(
    ("kind", "heard", "named"),
    [("unclean", 0, 7), ("unclean", 2, 12), ("clean", 0, 5), ("clean", 1, 7), ("unknown", 0, 7)],
)
def test_who_is_away_has_nothing_of_terms_of_which_it_never_heard(
    kind: str, heard: int, named: int
) -> None:
    """Broker 2 holds offsets as high as those that broker 1 wrote in epoch 2, which bear no epoch.
    It took over from who began epoch 1 at offset 5; elected uncleanly it may have more."""
    facts = [
        live(1, 1000, 5, None), live(2, 1100, 12, None), ev.BecameFollower(2, heard, 1),
        ev.ReplicaStopped(2, "process_crash"),
        ev.LeadershipRecorded(1, 1, (1,), 1, "unclean"), ev.BecameLeader(1, 1, 5),
        ev.LeadershipRecorded(1, 2, (1,), 2, kind), ev.BecameLeader(1, 2, 7),
        live(1, 2000, 14, None),
    ]  # fmt: skip
    found = dangers(of_two(*facts, unclean=True, isr=(1,)))
    first = min(d.first_offset for d in found if d.next_leader == 2)
    assert first == named


def test_a_record_that_shows_its_epoch_is_known_by_that_wherever_a_leader_began() -> None:
    """The leader of epoch 2 had lost what both logs still show of epoch 1."""
    facts = [
        live(2, 1000, 10, 1), ev.ReplicaStopped(2, "process_crash"),
        ev.LeadershipRecorded(1, 2, (1,), 1, "preferred"), ev.BecameLeader(1, 2, 0),
        ev.LeadershipRecorded(1, 3, (1,), 2, "clean"), ev.BecameLeader(1, 3, 10),
        live(1, 2000, 10, 1),
    ]  # fmt: skip
    state = of_two(*facts, isr=(1,))
    assert Compared(state).lacking(state.replicas[1], state.replicas[2]) == []
    assert Compared(state).shared(state.replicas[1], state.replicas[2]) == [(0, 10)]


@pytest.mark.parametrize(
    ("heard", "cut_to", "covered", "named"),
    [(0, 9, True, [(7, 9)]), (0, 7, True, []), (0, None, True, []), (0, 9, False, []),
     (2, 9, True, [])],
)  # fmt: skip
def test_who_is_back_keeps_what_it_had_below_its_cut(
    heard: int, cut_to: int | None, covered: bool, named: list[tuple[int, int]]
) -> None:
    """Broker 2 came back with twelve records and followed broker 1, whose epoch 2 had begun at
    offset 7: what it has from there up to its cut is of before, and both logs look alike."""
    cut = ev.Truncated(2, 9 if cut_to is None else cut_to, 12, "high_watermark")
    facts = [
        live(1, 1000, 5, None), live(2, 1100, 12, None), ev.BecameFollower(2, heard, 1),
        ev.CoverageDeclared("broker_log", 2, covered), ev.ReplicaStopped(2, "process_crash"),
        ev.LeadershipRecorded(1, 2, (1,), 2, "clean"), ev.BecameLeader(1, 2, 7),
        live(1, 2000, 14, None), ev.ReplicaStarted(2, None, 12, clean=False),
        ev.BecameFollower(2, 3, 1), *([] if cut_to is None else [cut]),
        live(2, 9000, 14, None),
    ]  # fmt: skip
    found = dangers(of_two(*facts, unclean=True, isr=(1,)))
    assert [(d.first_offset, d.end_offset) for d in found if d.next_leader == 2] == named


@pytest.mark.parametrize(("joined", "named"), [(True, [(6, 10)]), (False, [])])
def test_who_came_into_the_isr_of_the_last_leader_has_its_records(
    joined: bool, named: list[tuple[int, int]]
) -> None:
    """2 is away since epoch 0. 3 wrote from offset 6 on in epoch 2, 1 fetched it, and 3 was killed:
    of logs without epochs only the terms tell that what 2 has there is another."""
    facts = [
        ev.PartitionDescribed(assigned_replicas=(1, 2, 3), unclean_leader_election=True),
        ev.BecameFollower(2, 0, 1, 0), log_without_epochs(2, 900, 12),
        ev.ReplicaStopped(2, "process_crash"),
        ev.LeadershipRecorded(leader=3, leader_epoch=2, isr=(3,), partition_epoch=2,
                              election_kind="unclean"),
        ev.BecameLeader(3, 2, 6),
        ev.LeadershipRecorded(leader=3, leader_epoch=2, isr=(3, 1) if joined else (3,),
                              partition_epoch=3),
        log_without_epochs(1, 1000, 10),
    ]  # fmt: skip
    state = of_two(*facts, isr=(1,))
    assert Compared(state).lacking(state.replicas[1], state.replicas[2]) == named


def test_an_epoch_file_tells_which_terms_a_compacted_log_has_nothing_of() -> None:
    """2 is back as a follower in the epoch of 1, which wrote from offset 6 on, and has not cut."""
    led = [log_without_epochs(2, 900, 10, (0, 0)), ev.ReplicaStopped(2, "process_crash"),
           ev.LeadershipRecorded(leader=1, leader_epoch=2, isr=(1,), partition_epoch=2),
           ev.BecameLeader(1, 2, 6), log_without_epochs(1, 1000, 10, (0, 0), (2, 6)),
           came_back(10, 1050, clean=False), ev.BecameFollower(2, 2, 1, 10)]  # fmt: skip
    for filed, named in (([(0, 0)], [(6, 10)]), ([(0, 0), (2, 6)], [])):
        state = of_two(*led, log_without_epochs(2, 2000, 10, *filed), isr=(1,), unclean=True)
        found = [d for d in dangers(state) if d.next_leader == 2]
        assert [(d.first_offset, d.end_offset) for d in found] == named
        assert {d.cause for d in found} <= {"unclean_election"}


def test_what_a_leader_had_when_it_stopped_others_lack_that_have_been_seen_since() -> None:
    """Read after a clean stop it tells where its log ends; who follows nobody yet fetches none."""
    nobody = ev.LeadershipRecorded(leader=None, leader_epoch=1, isr=(1,), partition_epoch=2)
    spans = (Span(0, 12, 0, None),)
    ended = ev.Event("end", "trace", "", "t", "", 0, 0, ev.ReplicaLogObserved(
        1, 0, 12, spans, stopped=True, copy="current"), 1300, "forensic")  # fmt: skip
    follows = ev.BecameFollower(2, 0, 1, 5)
    crashed = ev.ReplicaStopped(2, "process_crash")
    for before, named in (([follows], 10), ([follows, crashed], 12)):
        seen = [*before, live(1, 1000, 10), live(2, 1200, 5), nobody, ended]
        found = dangers(of_two(*seen, isr=(1,), unclean=True))
        assert [(d.first_offset, d.end_offset) for d in found if d.broker == 2] == [(5, named)]


def test_what_a_copy_does_not_show_of_a_traced_log_stays_as_the_trace_told_it() -> None:
    """Logs of old releases have no leader epochs. Here B led and kept its own two records, as its
    high watermark was past them, and is a member of the ISR again."""
    told = given(isr="A,B", kafka="0.10.2.2", logs=("0:m*8 1:n*4", "0:m*10 1:n*2", "0:m*8 1:n*4"))
    state = story(told)
    before = {r: list(known.log.spans) for r, known in state.replicas.items()}
    assert before[1] != before[2]
    for replica in (1, 2):
        apply(state, live(replica, 3000 + replica, 12, leader_epoch=None))
    assert {r: known.log.spans for r, known in state.replicas.items()} == before
    assert not state.history.copies
    assert all(tail_is_known(state, known) for known in state.replicas.values())
    named = [(d.first_offset, d.end_offset, d.next_leader, d.cause) for d in dangers(state)]
    assert named == [(8, 10, 2, "early_isr_join")]
