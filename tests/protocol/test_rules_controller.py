"""The controller's rules and the consumer's: elections, ELR, fencing, reassignment, visibility."""

from typing import Any

import pytest

from replication.protocol.ground.versions import Behaviour, behaviour
from replication.protocol.rules.broker_registration import broker_registration
from replication.protocol.rules.consumer_visibility import (
    consumer_visibility,
    consumer_was_truncated,
    latest_offset_available,
    may_read_from_follower,
)
from replication.protocol.rules.controller_fencing import controller_fencing
from replication.protocol.rules.election_kraft import election_kraft, raises_leader_epoch
from replication.protocol.rules.election_zookeeper import (
    Election,
    election_zookeeper,
    isr_without_dead_broker,
)
from replication.protocol.rules.eligible_leader_replicas import Eligible, eligible_leader_replicas
from replication.protocol.rules.last_stable_offset import (
    Transaction,
    last_stable_offset,
)
from replication.protocol.rules.preferred_leader_imbalance import preferred_leader_imbalance
from replication.protocol.rules.reassignment import Assignment, reassignment
from replication.protocol.rules.topic_identity import topic_identity

ALL = frozenset({1, 2, 3})


def test_zookeeper_elects_the_first_live_isr_member_in_assignment_order() -> None:
    found = election_zookeeper("offline", (1, 3, 2), ALL, frozenset({2, 3}), False)

    assert found == Election(3, (3, 2), "clean")


def test_zookeeper_unclean() -> None:
    isr, live = frozenset({1}), frozenset({2, 3})

    assert election_zookeeper("offline", (1, 3, 2), isr, live, True) == Election(3, (3,), "unclean")
    assert election_zookeeper("offline", (1, 3, 2), isr, live, True, recovers=True) == Election(
        3, (3,), "unclean", True
    )
    assert election_zookeeper("offline", (1, 3, 2), isr, live, False) == Election(None, (1,), None)
    assert election_zookeeper("offline", (1,), isr, frozenset(), True) == Election(None, (1,), None)


def test_zookeeper_preferred() -> None:
    order = (1, 2, 3)

    assert election_zookeeper("preferred", order, ALL, ALL, False, leader=2) == Election(
        1, (1, 2, 3), "preferred"
    )
    assert election_zookeeper("preferred", order, ALL, ALL, False, leader=1) is None
    assert election_zookeeper("preferred", order, ALL, frozenset({2, 3}), True, leader=2) is None
    assert election_zookeeper("preferred", order, frozenset({2}), ALL, True, leader=2) is None


def test_zookeeper_controlled_shutdown_and_reassignment() -> None:
    leaving = election_zookeeper(
        "controlled_shutdown", (1, 2, 3), ALL, ALL, False, leader=1, stopping=frozenset({1})
    )
    last = election_zookeeper(
        "controlled_shutdown", (1, 2), frozenset({1}), ALL, True, stopping=frozenset({1})
    )
    moved = election_zookeeper(
        "reassignment", (1, 2, 3), ALL, ALL, False, leader=1, target_replicas=(3, 2)
    )

    assert leaving == Election(2, (2, 3), "clean")
    assert last is None
    assert moved == Election(3, (3, 2), "clean")


def test_zookeeper_keeps_the_last_isr_member() -> None:
    assert isr_without_dead_broker((1, 2), 2, False, always_kept=False) == (1,)
    assert isr_without_dead_broker((1, 2), 3, False, always_kept=False) == (1, 2)
    assert isr_without_dead_broker((2,), 2, False, always_kept=False) == (2,)
    assert isr_without_dead_broker((2,), 2, True, always_kept=False) == ()
    assert isr_without_dead_broker((2,), 2, True, always_kept=True) == (2,)


KRAFT = behaviour("3.9.1", controller="kraft")
ELR = behaviour("4.1.0")

# what, cause, isr, active, leader, eligible, answer
KRAFT_ELECTIONS = [
    ("stays", "online", {2, 3}, {1, 2, 3}, 3, set(), Election(3, (2, 3), None)),
    ("first valid", "online", {2, 3}, {1, 2, 3}, None, set(), Election(2, (2, 3), "clean")),
    ("leader fenced", "online", {2, 3}, {1, 2}, 3, set(), Election(2, (2, 3), "clean")),
    ("nobody", "online", {3}, {1, 2}, 3, set(), Election(None, (3,), None)),
    ("unclean", "unclean", {3}, {1, 2}, 3, set(), Election(1, (1,), "unclean", True)),
    ("unclean, but clean", "unclean", {2}, {1, 2}, None, set(), Election(2, (2,), "clean")),
    ("unclean, nobody", "unclean", {3}, set(), 3, set(), Election(None, (3,), None)),
    ("preferred", "preferred", {1, 2}, {1, 2}, 2, set(), Election(1, (1, 2), "preferred")),
    ("preferred leads", "preferred", {1, 2}, {1, 2}, 1, set(), Election(1, (1, 2), None)),
    ("preferred is out", "preferred", {2, 3}, {1, 2, 3}, 3, set(), Election(3, (2, 3), None)),
    ("eligible", "online", set(), {1, 2}, None, {2, 3},
     Election(2, (2,), "eligible_leader_replica")),
    ("eligible leader stays", "online", set(), {2, 3}, 3, {2, 3}, Election(3, (3,), None)),
    ("eligible, but the isr is not empty", "online", {1}, {2}, None, {2},
     Election(None, (1,), None)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "cause", "isr", "active", "leader", "eligible", "answer"), KRAFT_ELECTIONS
)
def test_election_kraft(
    what: str,
    cause: str,
    isr: set[int],
    active: set[int],
    leader: int | None,
    eligible: set[int],
    answer: Election,
) -> None:
    found = election_kraft(
        cause, (1, 2, 3), frozenset(isr), frozenset(active), KRAFT,
        leader=leader, eligible=frozenset(eligible),
    )  # fmt: skip

    assert found == answer


def test_last_known_leader_is_elected_only_with_nothing_better() -> None:
    def elected(b: Behaviour, active: set[int], isr: set[int], eligible: set[int]) -> Election:
        return election_kraft(
            "online", (1, 2, 3), frozenset(isr), frozenset(active), b,
            eligible=frozenset(eligible), last_known_leader=3,
        )  # fmt: skip

    last_known = Election(3, (3,), "last_known_leader", True)
    assert elected(ELR, {1, 3}, set(), set()) == last_known
    assert elected(ELR, {1, 2}, set(), set()).leader is None
    assert elected(ELR, {1, 3}, {2}, set()).leader is None
    assert elected(ELR, {1, 3}, set(), {2}).leader is None
    assert elected(KRAFT, {1, 3}, set(), set()).leader is None
    old = behaviour("3.1.0", controller="kraft")
    unclean = election_kraft("unclean", (1, 2), frozenset({2}), frozenset({1}), old)
    assert unclean == Election(1, (1,), "unclean", False)


def test_what_raises_the_leader_epoch() -> None:
    old = behaviour("3.5.2", controller="kraft")

    assert raises_leader_epoch(leader_changed=True, isr_shrank=False, behaviour=KRAFT)
    assert not raises_leader_epoch(leader_changed=False, isr_shrank=True, behaviour=KRAFT)
    assert raises_leader_epoch(leader_changed=False, isr_shrank=True, behaviour=old)
    assert not raises_leader_epoch(leader_changed=False, isr_shrank=False, behaviour=old)
    for also in ("replica_removed", "unclean"):
        assert raises_leader_epoch(
            leader_changed=False, isr_shrank=False, behaviour=KRAFT, **{also: True}
        )


def test_eligible_leader_replicas() -> None:
    def after(old: set[int], new: set[int], eligible: set[int], **more: Any) -> Eligible:
        return eligible_leader_replicas(
            frozenset(old),
            frozenset(new),
            frozenset(eligible),
            2,
            **more,
        )

    assert after({1, 2, 3}, {1, 2}, set()) == Eligible(frozenset(), None)
    assert after({1, 2}, {1}, {3}, new_leader=1) == Eligible(frozenset({2, 3}), None)
    assert after({1}, {1, 2}, {3}) == Eligible(frozenset(), None)
    assert after({1}, {2}, {2, 3}, new_leader=2) == Eligible(frozenset({1, 3}), None)
    assert after({1}, set(), {2}, old_leader=1) == Eligible(frozenset({1, 2}), 1)
    assert after({1}, set(), {2}, old_leader=1, last_known_leader=3).last_known_leader == 3
    assert after({1}, {1}, set(), old_leader=1).last_known_leader is None
    gone = after({1, 2}, {2}, set(), unclean_shutdown=frozenset({1}), new_leader=2)
    assert gone == Eligible(frozenset(), None)


def test_broker_registration() -> None:
    assert not broker_registration(None, None)
    assert broker_registration(None, 7)
    assert not broker_registration(7, 7)
    assert broker_registration(7, None)
    assert broker_registration(7, 6)


def test_controller_fencing() -> None:
    assert controller_fencing(3, 4, 9, 1, 9, 1) == "stale_controller"
    assert controller_fencing(4, 4, 1, None, 1, 0) == "apply"
    assert controller_fencing(5, 4, 2, 1, 3, 2) == "apply"
    assert controller_fencing(4, 4, 1, 2, 3, 2) == "stale_leader_epoch"
    assert controller_fencing(4, 4, 2, 2, 6, 7) == "stale_partition_epoch"
    assert controller_fencing(4, 4, 2, 2, 7, 7) == "repeated"
    assert controller_fencing(4, 4, 2, 2, 8, 7) == "apply"


def test_preferred_leader_imbalance() -> None:
    assignments = {f"t-{n}": (1, 2) for n in range(10)} | {"u-0": (2, 1)}
    one = {f"t-{n}": 1 for n in range(10)} | {"t-3": 2, "u-0": 2}
    two = one | {"t-5": None}

    assert preferred_leader_imbalance(one, assignments, 1) == ()
    assert preferred_leader_imbalance(two, assignments, 1) == ("t-3", "t-5")
    assert preferred_leader_imbalance(one, assignments, 1, 9) == ("t-3",)
    assert preferred_leader_imbalance({}, assignments, 3) == ()


# what, replicas, target, isr, leader, answer
REASSIGNMENTS = [
    ("begins", (1, 2), (2, 3), {1, 2}, 1, Assignment((2, 3, 1), False, False)),
    ("leader leaves", (1, 2, 3), (2, 3), {1, 2, 3}, 1, Assignment((2, 3), True, True)),
    ("leader stays", (1, 2, 3), (2, 3), {1, 2, 3}, 2, Assignment((2, 3), True, False)),
    ("only the target is in the isr", (1, 2, 3), (2, 3), {2, 3}, 2,
     Assignment((2, 3), True, False)),
    ("other order", (1, 2, 3), (3, 1, 2), {1}, 1, Assignment((3, 1, 2), True, False)),
    ("no leader", (1, 2), (2,), {2}, None, Assignment((2,), True, True)),
]  # fmt: skip


@pytest.mark.parametrize(("what", "replicas", "target", "isr", "leader", "answer"), REASSIGNMENTS)
def test_reassignment(
    what: str,
    replicas: tuple[int, ...],
    target: tuple[int, ...],
    isr: set[int],
    leader: int | None,
    answer: Assignment,
) -> None:
    for b in (behaviour("2.8.2"), KRAFT):
        assert reassignment(replicas, target, frozenset(isr), leader, b) == answer


def test_kraft_before_3_8_waits_for_what_a_reassignment_adds() -> None:
    old, lagging = behaviour("3.7.1", controller="kraft"), frozenset({1, 3})

    assert reassignment((2, 3, 1), (2, 3), lagging, 1, old).complete
    assert not reassignment((2, 3, 1), (2, 3), lagging, 1, KRAFT).complete
    assert not reassignment((2, 3, 1), (2,), frozenset({1}), 1, old).complete


def test_kraft_from_4_3_waits_for_what_it_adds_unless_more_leave_than_come() -> None:
    new, middle = (behaviour(v, controller="kraft") for v in ("4.3.0", "4.2.0"))
    running = ((3, 2, 1), (3, 2), frozenset({1, 3}), 1)

    assert reassignment(*running, new, before=(1, 2)).complete
    assert not reassignment(*running, middle, before=(1, 2)).complete
    assert not reassignment((3, 2, 1), (3, 2), frozenset({1}), 1, new, before=(1, 2)).complete
    assert not reassignment(*running, new, before=(1, 2, 4)).complete
    assert not reassignment(*running, new, before=(1, 2, 3)).complete


def test_topic_identity() -> None:
    assert topic_identity("a", "a") == "same"
    assert topic_identity("a", "b") == "different"
    assert topic_identity("", "b") == "unknown"
    assert topic_identity("a", "") == "unknown"


def test_last_stable_offset() -> None:
    done, open_, late = Transaction(2, 5), Transaction(7, None), Transaction(4, 10)

    assert last_stable_offset(10, []) == 10
    assert last_stable_offset(10, [done]) == 10
    assert last_stable_offset(5, [done]) == 2
    assert last_stable_offset(6, [done]) == 6
    assert last_stable_offset(10, [done, open_]) == 7
    assert last_stable_offset(10, [open_, late]) == 4
    assert last_stable_offset(6, [open_]) == 6


def test_consumer_visibility() -> None:
    assert consumer_visibility(2, 1, 10, 7, 5) == (2, 7)
    assert consumer_visibility(2, 1, 10, 7, 5, read_committed=True) == (2, 5)
    assert consumer_visibility(8, 1, 10, 7, 5) == (8, 8)
    assert consumer_visibility(10, 1, 10, 7, 5) == (10, 10)
    assert consumer_visibility(1, 1, 10, 12, 5) == (1, 10)
    assert consumer_visibility(11, 1, 10, 7, 5) == "OFFSET_OUT_OF_RANGE"
    assert consumer_visibility(0, 1, 10, 7, 5) == "OFFSET_OUT_OF_RANGE"


def test_reading_from_a_follower() -> None:
    new, old = behaviour("3.3.2"), behaviour("2.3.1")

    assert may_read_from_follower(True, 2, 8, 2, new)
    assert may_read_from_follower(True, 2, 8, 8, new)
    assert not may_read_from_follower(True, 2, 8, 9, new)
    assert not may_read_from_follower(True, 2, 8, 1, new)
    assert not may_read_from_follower(False, 2, 8, 5, new)
    assert may_read_from_follower(False, 2, 8, 5, behaviour("3.3.1"))
    assert not may_read_from_follower(True, 2, 8, 5, old)


def test_list_offsets_and_truncation_detection() -> None:
    assert latest_offset_available(3, 5, behaviour("2.1.1"))
    assert not latest_offset_available(4, 5, behaviour("2.2.0"))
    assert latest_offset_available(5, 5, behaviour("2.2.0"))
    assert consumer_was_truncated(50, 0, 0, 30)
    assert not consumer_was_truncated(50, 0, 0, 50)
    assert consumer_was_truncated(50, 2, 1, 60)
    assert consumer_was_truncated(50, 2, None, None)
