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
