"""The contract of a loss, and the settings that let it happen, by its cause."""

import pytest

from replication.protocol.folding.fold import new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import LeaderTerm, Replica, State
from replication.protocol.judgement.contract import allowed_by, contract_of
from replication.protocol.judgement.loss_cause import Cause
from tests.protocol.judgement.told import copy, elected, given, told


def under(**settings: object) -> State:
    """A partition of which the settings alone are known."""
    state = new_state("c", "t", "", 0)
    for name, value in settings.items():
        setattr(state.settings, name, value)
    return state


def at(offset: int, leader_epoch: int | None = None) -> Span:
    """A lost record."""
    return Span(offset, offset + 1, leader_epoch, 7)


@pytest.mark.parametrize(
    ("permitted", "contract", "settings"),
    [
        (True, "not_promised", [("unclean.leader.election.enable", "true")]),
        (False, "broken", []),
        (None, "unknown", []),
    ],
)
def test_an_unclean_election_is_judged_by_the_setting_of_its_time(
    permitted: bool | None, contract: str, settings: list[tuple[str, str]]
) -> None:
    cause = Cause("unclean_election", election=LeaderTerm(1, 2, unclean_permitted=permitted))
    state = under()
    assert contract_of(state, cause, "acknowledged_by_isr", at(3)) == contract
    assert allowed_by(state, cause, "acknowledged_by_isr", at(3)) == settings


@pytest.mark.parametrize(
    ("needed", "contract"), [(2, "broken"), (1, "not_promised"), (None, "unknown")]
)
def test_disks_may_lose_what_fewer_than_min_insync_replicas_lost(
    needed: int | None, contract: str
) -> None:
    cause = Cause("storage_loss", lossy=frozenset({1}))
    assert contract_of(under(min_insync_replicas=needed), cause, "committed", at(3)) == contract


def test_acks_one_promises_one_copy() -> None:
    cause = Cause("acks_one_failover")
    assert contract_of(under(), cause, "acknowledged_by_leader", at(3)) == "not_promised"
    assert allowed_by(under(), cause, "acknowledged_by_leader", at(3)) == [("acks", "1")]


def test_what_went_in_a_way_that_nobody_knows_may_have_been_committed() -> None:
    assert contract_of(under(), Cause("unknown"), "acknowledged_by_leader", at(3)) == "unknown"
    assert allowed_by(under(), Cause("unknown"), "acknowledged_by_leader", at(3)) == []


def test_what_was_cut_of_acks_one_may_have_been_committed() -> None:
    """Its leader's high watermark may have passed it when a follower was cut below (KIP-101)."""
    cause = Cause("truncate_to_high_watermark")
    assert contract_of(under(), cause, "acknowledged_by_leader", at(3)) == "unknown"
    assert allowed_by(under(), cause, "acknowledged_by_leader", at(3)) == []


@pytest.mark.parametrize(
    ("permitted", "contract"), [(True, "not_promised"), (False, "unknown"), (None, "unknown")]
)
def test_what_an_election_that_settings_forbid_took_at_acks_one_may_have_been_committed(
    permitted: bool | None, contract: str
) -> None:
    cause = Cause("unclean_election", election=LeaderTerm(1, 2, unclean_permitted=permitted))
    allowed = allowed_by(under(), cause, "acknowledged_by_leader", at(3))
    assert contract_of(under(), cause, "acknowledged_by_leader", at(3)) == contract
    assert ("acks", "1") in allowed if permitted else allowed == []


def test_whether_a_second_disk_lost_it_may_not_be_known() -> None:
    """Broker 2 came back with less from a stop of which nothing tells that it was clean."""
    cause = Cause("storage_loss", lossy=frozenset({1}))
    state = under(min_insync_replicas=2)
    state.replicas[2] = Replica(2, came_back_with=3)
    state.coverage["broker_log", 2] = (True, None)
    assert contract_of(state, cause, "committed", at(3)) == "unknown"
    assert contract_of(state, cause, "committed", at(2)) == "broken"
    # The line of such a start may be nobody's.
    state.coverage["broker_log", 2] = (False, "in a file of several")
    assert contract_of(state, cause, "committed", at(2)) == "unknown"


@pytest.mark.parametrize(
    ("release", "isr", "contract"),
    [
        ("1.1.1", (1,), "unknown"),
        ("4.1.1", (1,), "not_promised"),
        ("4.1.1", (1, 2), "unknown"),
    ],
)
def test_what_went_with_the_disk_of_who_answered_for_it_alone_may_have_been_committed(
    release: str, isr: tuple[int, ...], contract: str
) -> None:
    cause = Cause("storage_loss", lossy=frozenset({1}), isr=isr)
    state = under(min_insync_replicas=2, kafka_version=release)
    assert contract_of(state, cause, "acknowledged_by_leader", at(3)) == contract


@pytest.mark.parametrize(
    ("mark", "written_in", "contract"),
    [(3, 1, "not_promised"), (4, 1, "unknown"), (None, 1, "unknown"), (3, None, "unknown")],
)
def test_what_no_high_watermark_had_reached_was_promised_by_nobody(
    mark: int | None, written_in: int | None, contract: str
) -> None:
    state = under()
    state.history.terms = [
        LeaderTerm(1, 2, start_event_id="1", end_high_watermark=mark),
        LeaderTerm(2, 3, start_event_id="2"),
    ]
    cause = Cause("unknown", term=state.history.terms[1])
    found = contract_of(state, cause, "acknowledged_by_leader", at(3, written_in))
    assert found == contract


@pytest.mark.parametrize(("permitted", "contract"), [(False, "broken"), (True, "unknown")])
def test_where_no_leader_is_known_to_have_lost_it_an_unclean_election_may_have_been_allowed_to(
    permitted: bool, contract: str
) -> None:
    """A log was cut below the records; of two leaders nothing tells which was the first without."""
    state = under()
    state.history.terms = [
        LeaderTerm(1, 2, election_kind="clean"),
        LeaderTerm(2, 3, election_kind="unclean", unclean_permitted=permitted),
    ]
    cause = Cause("truncate_to_high_watermark")
    assert contract_of(state, cause, "acknowledged_by_isr", at(3)) == contract
    known = Cause("truncate_to_high_watermark", term=state.history.terms[0])
    assert contract_of(state, known, "acknowledged_by_isr", at(3)) == "broken"


@pytest.mark.parametrize(
    ("isr_then", "written_in", "contract"),
    [((1,), 2, "not_promised"), ((1, 2, 3), 2, "unknown"), ((1, 2, 3), 3, "not_promised")],
)
def test_a_larger_isr_before_the_last_one_stood_may_have_committed_it(
    isr_then: tuple[int, ...], written_in: int, contract: str
) -> None:
    """What broker 1 answered for at acks=1 went with its disk when it was alone in the ISR."""
    state = under(min_insync_replicas=2, kafka_version="4.1.1")
    state.history.terms = [
        LeaderTerm(2, 1, isr_before=isr_then, start_event_id="1"),
        LeaderTerm(3, 1, isr_before=(1,), start_event_id="2"),
        LeaderTerm(4, 1, isr_before=(1,), start_event_id="3"),
    ]
    cause = Cause(
        "last_replica_standing", lossy=frozenset({1}), isr=(1,), term=state.history.terms[2]
    )
    found = contract_of(state, cause, "acknowledged_by_leader", at(3, written_in))
    assert found == contract


def test_who_is_assigned_and_of_whom_nothing_is_here_may_have_lost_it_as_well() -> None:
    """Two disks lost it of three that acks=all needed; of the third broker there is no evidence."""
    facts = [
        ev.PartitionDescribed((1, 2, 3), 3, True, "delete", "2.0.1", None, "zookeeper"),
        *(ev.CoverageDeclared("broker_log", r, True) for r in (1, 3)),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
    ]
    cause = Cause("storage_loss", lossy=frozenset({1, 3}))
    assert contract_of(told(facts), cause, "committed", at(3, 0)) == "unknown"
    all_told = told([*facts, ev.CoverageDeclared("broker_log", 2, True)])
    assert contract_of(all_told, cause, "committed", at(3, 0)) == "broken"


@pytest.mark.parametrize(("isr", "contract"), [((1, 2, 3), "not_promised"), ((1, 3), "unknown")])
def test_what_a_member_of_every_isr_never_had_was_never_committed(
    isr: tuple[int, ...], contract: str
) -> None:
    """How it went nobody knows. Broker 2 took nothing of broker 1, and its lines tell all."""
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, 1, 0, 0),
        ev.LeadershipRecorded(1, 0, isr, 1),
        ev.LeadershipRecorded(2, 1, (2,), 2, "clean"),
        ev.BecameLeader(2, 1, 0, 0),
        copy(2, (0, 9, 1, 0), mark=9),
    ]
    found = contract_of(told(facts), Cause("unknown"), "acknowledged_by_leader", at(3, 0))
    assert found == contract


@pytest.mark.parametrize(
    ("release", "kind", "contract"),
    [
        ("0.10.2.2", "unclean", "unknown"),
        ("0.10.2.2", "clean", "not_promised"),
        ("2.8.1", "unclean", "not_promised"),
    ],
)
def test_before_kip_101_a_member_of_the_isr_may_keep_another_record_than_was_committed(
    release: str, kind: str, contract: str
) -> None:
    """Broker 2 leads from beside the ISR, or from it; then broker 1, that held other records."""
    facts = [
        *given(1, 2, 3, version=release),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(1, 1, 2),
        elected(2, 1, kind, (2,)),
        ev.BecameLeader(2, 1),
        elected(1, 2),
        ev.BecameLeader(1, 2),
    ]
    state = told(facts)
    cause = Cause("acks_one_failover", term=state.history.terms[-1])
    assert contract_of(state, cause, "acknowledged_by_leader", at(3)) == contract


@pytest.mark.parametrize(("needed", "contract"), [(2, "unknown"), (3, "not_promised")])
def test_who_never_had_it_may_have_left_the_isr_before_it_was_committed(
    needed: int, contract: str
) -> None:
    """Broker 2 takes nothing and is dropped, then broker 3; broker 1 is back with an empty disk."""
    facts = [
        *given(1, 2, 3, version="4.1.1"),
        ev.PartitionDescribed(min_insync_replicas=needed, controller="kraft"),
        ev.LeadershipRecorded(1, 0, (1, 2, 3), 0, "initial", (1, 2, 3)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeadershipRecorded(1, 0, (1, 3), 1),
        ev.LeadershipRecorded(1, 0, (1,), 2),
        ev.ReplicaStarted(1, 0, 0, None, False),
        ev.LeadershipRecorded(1, 1, (1,), 3, "clean"),
        ev.BecameLeader(1, 1, 0, 0),
        copy(2, (0, 9, 1, 0), mark=9),
    ]
    state = told(facts)
    cause = Cause(
        "last_replica_standing", lossy=frozenset({1}), isr=(1,), term=state.history.terms[1]
    )
    assert contract_of(state, cause, "acknowledged_by_leader", at(3, 0)) == contract
