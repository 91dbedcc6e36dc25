"""Who may be elected next, at whose failure, and what that puts at risk."""

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import Replica
from replication.protocol.judgement.at_risk import dangers
from replication.protocol.judgement.who_may_lead import failures
from tests.protocol.judgement.danger_stories import came_back, given, live, of_two, story


def test_who_is_back_first_of_all_leads_with_what_it_has_by_then() -> None:
    """All are down and anybody may be elected, before the controller hears of it and after: what
    the last leader had is lost with the directory of whoever comes first."""
    for kafka, unclean, named in (
        ("3.9.1", "yes", {1, 2, 3}), ("1.1.1", "yes", {1, 2, 3}), ("4.1.1", "yes", set()),
        ("3.9.1", "no", {1}),
    ):  # fmt: skip
        told = given(isr="A", kafka=kafka, unclean=unclean)
        crashes = "".join(f"crash {each} kind=process\n" for each in "BCA")
        for steps, leads in ((crashes, True), (f"{crashes}fence B\nfence C\nfence A\n", False)):
            state = story(f"{told}\n{steps}----\n")
            assert (state.registration.leader is not None) == leads
            found = [d for d in dangers(state) if d.failure == "leader_loses_its_log"]
            assert {d.broker for d in found} == (named & {1} if leads else named), kafka
            assert all(d.holders for d in found)
        if unclean == "yes":
            runs = story(f"{told}\n{crashes}start B\n----\n")
            assert not [d for d in dangers(runs) if d.failure == "leader_loses_its_log"]


def test_who_stopped_behind_may_be_elected_uncleanly_when_it_is_back_first() -> None:
    """Whoever of them comes back while nobody else runs; where one still runs, that one leads."""
    told = given(isr="A", unclean="yes", logs=("0:m*10", "0:m*8", "0:m*7"))
    for stopped, named in (("C", {(8, 2)}), ("CB", {(7, 3), (8, 2)})):
        steps = "".join(f"stop {each}\nfence {each}\n" for each in stopped)
        found = dangers(story(f"{told}\n{steps}----\n"))
        assert {(d.first_offset, d.next_leader) for d in found if d.next_leader} == named


@pytest.mark.parametrize(
    ("isr", "unclean", "kafka", "named"),
    [("A,B", "yes", "3.9.1", True), ("A,B", "yes", "2.8.2", True), ("A,B", "no", "3.9.1", False),
     ("A,B,C", "yes", "3.9.1", False)],
)  # fmt: skip
def test_once_the_leader_is_gone_its_heir_is_one_failure_from_an_unclean_election(
    isr: str, unclean: str, kafka: str, named: bool
) -> None:
    """A was killed, and no controller has noticed: B will lead, and C, which runs, is behind."""
    told = given(isr=isr, unclean=unclean, kafka=kafka, logs=("0:m*10", "0:m*10", "0:m*7"))
    state = story(f"{told}\ncrash A kind=process\n----\n")
    assert state.registration.leader == 1
    expected = ("leader_stops", 2, 3, True)
    assert (expected in failures(state)) == named
    found = [
        (d.failure, d.broker, d.next_leader, d.first_offset, d.end_offset, d.cause)
        for d in dangers(state)
    ]
    assert (("leader_stops", 2, 3, 7, 10, "unclean_election") in found) == named
    both = story(f"{told}\ncrash A kind=process\ncrash B kind=process\n----\n")
    assert (("leader_stops", 1, 3, True) in failures(both)) == named


def test_a_member_that_must_return_may_come_back_with_nothing_though_another_led_last() -> None:
    """B crashed, then A, which held more, before B's session had ended: nobody but B may lead."""
    told = given(isr="A,B", logs=("0:m*10", "0:m*10", "0:m*7"))
    steps = "crash B kind=process\nproduce A x*2 acks=1\ncrash A kind=process\nfence A\nfence B"
    state = story(f"{told}\n{steps}\n----\n")
    assert (state.registration.leader, state.registration.isr) == (None, (2,))
    assert {
        (d.failure, d.broker, d.first_offset, d.end_offset, d.holders) for d in dangers(state)
    } >= {
        ("clean_election", 2, 10, 12, (1,)),
        ("leader_loses_its_log", 2, 0, 7, (1, 3)),
        ("leader_loses_its_log", 2, 7, 10, (1,)),
    }


def test_a_leader_that_lost_records_leads_on_once_no_other_member_runs() -> None:
    """Killed and read without what it had written, it is the leader still until that is noticed."""
    had = [live(1, 1000, 10), live(2, 1100, 10), ev.ReplicaStopped(1, "process_crash")]
    cut = [*had, live(1, 2000, 6), live(2, 2100, 10)]
    killed = [*cut, ev.ReplicaStopped(1, "process_crash")]
    back = [*cut, came_back(6, 2200, clean=False, replica=1)]
    both = [*killed, ev.ReplicaStopped(2, "process_crash")]
    emptied = [*had, ev.ReplicaLogObserved(1, 0, 0, (), stopped=False, copy="live"),
               live(2, 2100, 10), ev.ReplicaStopped(1, "process_crash")]  # fmt: skip
    for facts, named in (
        (had, []),
        (killed, [("leader_stops", 2, 6, 10)]),
        (back, [("leader_stops", 2, 6, 10)]),
        (both, [("clean_election", 1, 6, 10)]),
        (emptied, [("leader_stops", 2, 0, 10)]),
        ([*back, ev.BecameLeader(1, 0)], []),
    ):
        state = of_two(*facts, isr=(1, 2))
        found = [d for d in dangers(state) if d.next_leader == 1]
        assert [(d.failure, d.broker, d.first_offset, d.end_offset) for d in found] == named
        assert {(d.cause, d.holders) for d in found} <= {("storage_loss", (2,))}
        assert {(d.failure, d.broker, 1, False) for d in found} <= set(failures(state))
    (alone,) = (d for d in dangers(of_two(*killed, isr=(1,), unclean=True)) if d.next_leader == 1)
    assert (alone.failure, alone.first_offset, alone.holders) == ("clean_election", 6, (2,))
    state = of_two(*killed, isr=(1, 2, 3))
    state.settings.assigned_replicas, state.replicas[3] = (1, 2, 3), Replica(3, stopped=False)
    assert not [d for d in dangers(state) if d.next_leader == 1], "2 or 3 leads"
    newer = [*had, live(1, 2000, 6), live(2, 2100, 10, leader_epoch=1)]
    assert not [d for d in dangers(of_two(*newer, isr=(1, 2))) if d.next_leader == 1]


def test_where_the_default_of_the_release_lets_another_lead_that_is_the_answer() -> None:
    unsaid = story(given(isr="A", kafka="0.10.2.2"))
    assert dangers(unsaid)
    unsaid.settings.unclean_leader_election = None
    assert dangers(unsaid) == []
