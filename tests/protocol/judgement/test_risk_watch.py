"""Since when and until when a failure could cost records, along the traces of stories."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from replication.protocol.folding.fold import Rejected, apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import EpochEntry, Span
from replication.protocol.ground.risks import Risk, RiskNotes
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement import risk_watch
from replication.protocol.judgement.at_risk import dangers
from replication.protocol.judgement.judge import answer
from tests.protocol.judgement.told import event
from tests.protocol.planted import schedule, trace
from tests.protocol.stories import played

SECOND = 1_000
BEHIND = """given isr=A min_insync_replicas=1 kafka=3.9.1 unclean=yes
A* e0  0:m*10 |
B  e0  0:m*8 |
----
ok
"""
CAUGHT_UP = """
fetch B
fetch B
controller
----
"""


def watched(text: str) -> State:
    """A scenario's facts, a second apart, folded and looked at as hosts do."""
    facts = [step.fact for step in played(text).world.steps]
    return seen_by_hosts([(fact, n) for n, fact in enumerate([*facts, ev.InputEnded()])], "traced")


def seen_by_hosts(facts: Sequence[tuple[ev.Fact, float]], grade: str = "forensic") -> State:
    """The state that facts of these seconds lead to, looked at as hosts do."""
    state = new_state("", "t", "", 0)
    for n, (fact, at) in enumerate(facts):
        each = event(n, fact, int(at * SECOND), grade)
        risk_watch.before(state, each)
        apply(state, each)
        risk_watch.after(state, each)
    return state


def test_a_danger_lasts_until_the_follower_has_the_records() -> None:
    stands = watched(BEHIND)
    danger, tail = answer(stands).at_risk
    ranges = [(d["first_offset"], d["end_offset"], d["failure"]) for d in (danger, tail)]
    assert ranges == [(8, 10, "leader_stops"), (8, 10, "leader_loses_its_tail")]
    assert (danger["over"], danger["until"]) == (False, None)
    over = answer(watched(BEHIND + CAUGHT_UP))
    assert over.at_risk == []
    [passed] = [d for d in over.past_risks if d["failure"] == "leader_stops"]
    assert passed["since"] == danger["since"] < passed["until"]
    assert passed["records"] == 2
    assert passed["over"]


def test_appends_between_two_telling_steps_are_counted_when_it_ends() -> None:
    grown = watched(BEHIND + "\nproduce A x\nproduce A y\ncrash A kind=disk\nfence A\n----\n")
    passed = [d for d in answer(grown).past_risks if d["failure"] == "leader_stops"]
    assert max(d["end_offset"] for d in passed) == 12


def test_without_records_in_danger_only_the_failures_are_kept() -> None:
    state = watched(BEHIND.replace("0:m*8", "0:m*10"))
    assert dangers(state) == []
    assert not state.risks.past
    assert all(not r.runs for r in state.risks.live)
    kept = sorted(r.failure for r in state.risks.live)
    assert kept == ["leader_loses_its_tail", "leader_stops"]


def seen(
    replica: int, end: int, at: float, copy: str = "live", high_watermark: int = 5
) -> tuple[ev.Fact, float]:
    spans = (Span(0, end, 0, None),)
    entries = (EpochEntry(0, 0),)
    marks = high_watermark, 5
    return ev.ReplicaLogObserved(replica, 0, end, spans, *marks, entries, False, copy), at


def running(
    *copies: tuple[ev.Fact, float], isr: tuple[int, ...] = (1,), assigned: tuple[int, ...] = (1, 2)
) -> State:
    """Brokers 1 (leader) and 2, which run on; their logs were read beside them."""
    facts = [
        (ev.PartitionDescribed(assigned, 1, True, "delete", "3.9.1", None, "kraft"), 0),
        (ev.LeadershipRecorded(1, 0, (1, 2), 0), 1),
        (ev.LeadershipRecorded(1, 0, isr, 1), 2),
        *copies,
        (ev.InputEnded(), 0),
    ]
    return seen_by_hosts(facts)


def test_a_follower_outside_the_isr_counts_as_of_when_its_log_was_read() -> None:
    found = answer(running(seen(1, 10, 60), seen(2, 7, 61))).at_risk
    assert {(d["first_offset"], d["end_offset"], d["next_leader"], d["cause"]) for d in found} == {
        (7, 10, 2, "unclean_election"),
        (7, 10, None, "storage_loss"),
    }
    assert {d["since"] for d in found} == {"1970-01-01T00:00:02.000Z"}, "since the ISR shrank"


def test_what_was_read_before_the_leaders_log_says_nothing() -> None:
    assert dangers(running(seen(1, 10, 60), seen(2, 7, 59))) == []
    assert dangers(running(seen(1, 10, 60, "current"), seen(2, 7, 61, "current"))) == []


def test_a_leader_whose_log_is_the_same_later_on_held_it_from_the_first_time() -> None:
    """Digests beside two brokers never come at one moment."""
    told = running(seen(1, 10, 60), seen(2, 7, 61), seen(1, 10, 62))
    assert {d.first_offset for d in dangers(told)} == {7}
    grown = dangers(running(seen(1, 10, 60), seen(2, 7, 61), seen(1, 12, 62)))
    assert {(d.first_offset, d.end_offset) for d in grown} == {(7, 10)}, "of more nothing is known"


def test_a_member_of_the_isr_may_have_fetched_within_half_a_second() -> None:
    def found(at: float, *more: tuple[ev.Fact, float]) -> list[tuple[int, int, str, str]]:
        led = ev.BecameLeader(1, 0), 2
        told = dangers(running(led, seen(1, 10, 60), seen(2, 7, at), *more, isr=(1, 2)))
        return [(d.first_offset, d.end_offset, d.failure, d.cause) for d in told]

    assert found(60.4) == []
    assert found(60.5) == [(7, 10, "leader_stops", "acks_one_failover")]
    rest = (9, 10, "leader_stops", "acks_one_failover")
    assert found(61, seen(1, 10, 61, high_watermark=9)) == [rest], "the ISR may be another by now"
    committed = (7, 9, "leader_stops", "storage_loss")
    assert found(62, seen(1, 10, 62, high_watermark=9)) == [committed, rest]
    gone = ev.LeadershipRecorded(None, 1, (2,), 3), 62
    assert found(60.4, gone) == [
        (7, 10, "leader_loses_its_tail", "storage_loss"),
        (7, 10, "clean_election", "acks_one_failover"),
    ]


def test_who_was_elected_while_it_is_down_leaves_the_last_leaders_tail_in_danger() -> None:
    """It may never begin, and the last leader lead again: without what it alone has."""
    led, logs = (ev.BecameLeader(1, 0), 2), (seen(1, 10, 60), seen(2, 7, 61))
    elected = ev.LeadershipRecorded(2, 1, (1, 2), 3), 62
    begins = (7, 10, "clean_election", "acks_one_failover", 2)
    for down, named in (
        ((), [begins]),
        (((ev.ReplicaStopped(2, "process_crash"), 61),),
         [(7, 10, "leader_loses_its_tail", "storage_loss", 1), begins]),
    ):  # fmt: skip
        state = running(led, *logs, *down, elected, isr=(1, 2))
        told = [
            (d.first_offset, d.end_offset, d.failure, d.cause, d.broker) for d in dangers(state)
        ]
        assert told == named
        assert {d["since"] for d in answer(state).at_risk} == {"1970-01-01T00:01:02.000Z"}


def test_the_cause_follows_the_isr_though_no_log_has_changed() -> None:
    """KIP-966's last replica standing: a member of an ISR below min.insync.replicas."""
    logs = seen(1, 10, 60, high_watermark=9), seen(2, 7, 62, high_watermark=9)
    three = ev.PartitionDescribed((1, 2, 3), 3, False, "delete", "3.9.1", None, "kraft"), 3
    joined = ev.LeadershipRecorded(1, 0, (1, 2, 3), 2), 4
    shrunk = ev.LeadershipRecorded(1, 0, (1, 2), 3), 62
    for more, cause in (((), "storage_loss"), ((shrunk,), "last_replica_standing")):
        state = running((ev.BecameLeader(1, 0), 2), three, joined, *logs, *more, assigned=(1, 2, 3))
        told = [(first, end, why) for r in state.risks.live for first, end, _, why, _ in r.runs]
        assert (7, 9, cause) in told


def test_an_empty_isr_is_one_that_its_last_members_have_left() -> None:
    """With one needed, the last of them stood no more alone than it may."""
    gone = ev.LeadershipRecorded(None, 1, (), 3, eligible_leader_replicas=(1,)), 62
    led = ev.BecameLeader(1, 0), 2
    told = dangers(running(led, seen(1, 10, 60), seen(2, 7, 61), gone))
    assert {d.cause for d in told if d.failure == "leader_loses_its_tail"} == {"storage_loss"}


def test_the_last_one_may_lose_its_tail_whatever_a_third_holds_of_whom_nothing_is_known() -> None:
    logs = seen(1, 10, 60), seen(2, 7, 61)
    found = [
        d for d in dangers(running(*logs, assigned=(1, 2, 3))) if d.failure.endswith("its_tail")
    ]
    assert [(d.first_offset, d.end_offset) for d in found] == [(7, 10)]
    assert dangers(running(seen(1, 10, 60), assigned=(1, 2, 3))) == []


def test_who_is_outside_the_isr_may_have_died_unseen_so_the_next_may_be_elected() -> None:
    logs = seen(1, 10, 60), seen(2, 8, 61), seen(3, 7, 61)
    found = dangers(running(*logs, assigned=(1, 2, 3)))
    heirs = {(d.next_leader, d.first_offset) for d in found if d.failure == "leader_stops"}
    assert heirs == {(2, 8), (3, 7)}


def test_an_eligible_replica_that_may_be_down_saves_nobody_from_losing_the_tail() -> None:
    facts = running(seen(1, 10, 60), seen(2, 7, 61))
    facts.settings.kafka_version, facts.settings.unclean_leader_election = "4.1.1", False
    facts.registration.eligible_leader_replicas = (2,)
    found = {(d.failure, d.next_leader, d.first_offset) for d in dangers(facts)}
    assert found == {("leader_stops", 2, 7), ("leader_loses_its_tail", None, 7)}


Timed = list[tuple[ev.Fact, int]]
TOLD_OF = (
    ev.PartitionDescribed, ev.LeadershipRecorded, ev.ReplicaStarted, ev.ReplicaStopped,
    ev.BecameLeader, ev.BecameFollower, ev.Truncated,
)  # fmt: skip


def told_by_digests(seed: int) -> Timed:
    """What a running fleet ships of a random schedule: telling lines, one in twenty missing, and
    now and then what a broker's log looks like."""
    chance, shadow, facts = Random(seed), new_state("", "t", "", 0), Timed()
    for n, fact in enumerate(trace(*schedule(seed, length=60))):
        try:
            apply(shadow, event(n, fact, n, "traced"))
        except Rejected:
            continue
        if isinstance(fact, ev.PartitionDescribed):
            fact = replace(fact, min_insync_replicas=chance.choice((1, 2, 3)))
        if isinstance(fact, TOLD_OF) and chance.random() < 0.95:
            facts.append((fact, n * SECOND))
        for number, held in shadow.replicas.items():
            if chance.random() < 0.15:
                log, at = held.log, n * SECOND + chance.randrange(900)
                ends = log.log_start_offset, log.log_end_offset, tuple(log.spans)
                digest = ev.ReplicaLogObserved(number, *ends, held.high_watermark, stopped=False,
                                               copy="live")  # fmt: skip
                facts.append((digest, at))
    return facts


def risks_of(facts: Timed, grade: str, *, forgetful: bool) -> list[list[Risk]]:
    """What is known of dangers after each step. forgetful: each look starts without notes."""
    state, known = new_state("", "t", "", 0), []
    for n, (fact, at) in enumerate(facts):
        each = event(n, fact, at, grade)
        if forgetful:
            state.risks.notes = RiskNotes()
        risk_watch.before(state, each)
        try:
            apply(state, each)
        except Rejected:
            continue
        if forgetful:
            state.risks.notes = RiskNotes()
        risk_watch.after(state, each)
        known.append([replace(r) for r in (*state.risks.past, *state.risks.live)])
    return known


@pytest.mark.parametrize("seed", range(6))
def test_notes_spare_work_and_change_nothing(seed: int) -> None:
    facts = [(f, n * SECOND) for n, f in enumerate(trace(*schedule(seed, length=40)))]
    with_notes = risks_of(facts, "traced", forgetful=False)
    assert with_notes == risks_of(facts, "traced", forgetful=True)
    assert any(with_notes)


@pytest.mark.parametrize("seed", [15, 35, 79, 124, *range(4)])
def test_nor_do_they_where_digests_tell_of_running_brokers(seed: int) -> None:
    """A follower's line may be the first word of a leader: what could fail is another then."""
    facts = told_by_digests(seed)
    with_notes = risks_of(facts, "forensic", forgetful=False)
    assert with_notes == risks_of(facts, "forensic", forgetful=True)
    assert any(with_notes)
