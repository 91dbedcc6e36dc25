"""A member of the ISR whose log shows that its leader committed nothing of its own."""

from dataclasses import replace

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.judgement.nothing_of_a_term import has_nothing_of
from tests.protocol.judgement.told import copy, told, verdict

SETTINGS = ev.PartitionDescribed((1, 2, 3), 1, False, "delete", "4.1.1", None, "kraft")
CRASHED = ev.ReplicaStopped(2, "process_crash")
ELECTED = ev.LeadershipRecorded(2, 1, (1, 2), 1, "clean")
STARTED = ev.BecameLeader(2, 1, 5, 3)


def story(*between: ev.Fact, held: int = 0) -> list[ev.Fact]:
    """3 leads, and crashes; 2 is elected at offset 5, beside 1, who has 8 and cuts nothing, and
    crashes with a send that nobody answered; 1 comes back with 8 and is elected, the last that had
    led. held: the leader epoch of what 1 has from offset 5 on."""
    return [
        SETTINGS,
        ev.CoverageDeclared("acknowledgements", None, True),
        ev.CoverageDeclared("controller_history", None, True),
        ev.CoverageDeclared("sends", None, False, "1 without an answer"),
        *(ev.CoverageDeclared("broker_log", r, True) for r in (1, 2, 3)),
        ev.LeadershipRecorded(3, 0, (1, 2, 3), 0, "initial"),
        ev.BecameLeader(3, 0, 0, 0),
        ELECTED,
        STARTED,
        ev.BecameFollower(1, 1, 2, 8, 3),
        *between,
        CRASHED,
        ev.ReplicaStopped(1, "process_crash"),
        ev.LeadershipRecorded(None, 2, (1,), 2),
        ev.ReplicaStarted(1, 0, 8, None, False),
        ev.LeadershipRecorded(1, 3, (1,), 3, "last_known_leader"),
        ev.BecameLeader(1, 3, 8, 3),
        ev.ReplicaStarted(2, 0, 5, None, False),
        *(copy(r, (0, 5, 0, 0), (5, 8, held, 0), (8, 9, 3, 0), mark=9) for r in (1, 2, 3)),
    ]


def test_who_was_in_the_isr_and_fetched_nothing_of_its_leader_has_all_that_it_committed() -> None:
    assert verdict(story()) == "HOLDS"


@pytest.mark.parametrize(
    "facts",
    [
        story(held=1),
        story(ev.Truncated(1, 6, 8, "diverging_epoch")),
        story(ev.LeadershipRecorded(2, 1, (2,), 2), ev.LeadershipRecorded(2, 1, (1, 2), 3)),
        story(ev.ReplicaStarted(1, 0, None, None, False)),
        [f for f in story() if f != ev.CoverageDeclared("broker_log", 1, True)],
        [f for f in story() if f != ev.CoverageDeclared("controller_history", None, True)],
        [replace(f, log_end_offset=None) if f == STARTED else f for f in story()],
        [replace(f, leader=2) if f == ev.LeadershipRecorded(3, 0, (1, 2, 3), 0, "initial") else f
         for f in story()],
        [replace(f, election_kind="unclean") if f == ELECTED else f for f in story()],
        [replace(f, isr=(2,)) if f == ELECTED else f for f in story()],
        [replace(f, kafka_version="3.6.1") if f == SETTINGS else f for f in story()],
        [replace(f, kafka_version="3.9.1", controller="zookeeper") if f == SETTINGS else f
         for f in story()],
    ],
)  # fmt: skip
def test_where_it_may_have_fetched_some_or_the_leader_did_not_wait_for_it_nobody_knows(
    facts: list[ev.Fact],
) -> None:
    assert verdict(facts) == "UNKNOWN"


def test_the_member_leads_next_from_behind_where_that_leader_began() -> None:
    state = told(story())
    term = state.history.terms[1]
    assert has_nothing_of(state, 1, term, 8)
    assert not has_nothing_of(state, 1, term, 5)
    assert not has_nothing_of(state, 1, term, None)
    assert not has_nothing_of(state, 3, term, 8)
