"""Dangers by forks: the named failure is really made, and the named records are really lost.

The machine knows what is. At the end of each random schedule its facts are folded; then every
failure that one danger could name is made in a copy of the machine. What a fork loses must have
been named before (recall), and what was named must be lost in its fork (precision).
"""

from collections import Counter

import pytest

from replication.machine.machine_state import Impossible
from replication.machine.partition_machine import PartitionMachine
from replication.machine.replica import begin_process
from replication.machine.states import copied, logs_of, records_of, valid_leader
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.judgement.at_risk import Danger, dangers, other_causes
from replication.protocol.judgement.risk_rows import present_row
from tests.protocol.judgement.danger_stories import (
    came_back,
    folded,
    given,
    live,
    of_two,
    offsets_of,
    story,
)
from tests.protocol.schedules import schedule_story

PROMISED = ("consumed", "acknowledged_by_isr", "committed", "acknowledged_by_leader")
Lost = dict[tuple[str, int | None], set[int]]


def forks(machine: PartitionMachine, at_risk: list[Danger]) -> Lost:
    """By failure: the offsets of the leader's log that the leader after it does not hold."""
    leader = valid_leader(machine.world)
    if leader is None or not leader.running or leader.isolated:
        return {}
    before = records_of(leader.log.spans)
    found: Lost = {}
    fork = copied(machine)
    fork.stop(leader.replica, "process_crash")
    fork.fence(leader.replica)
    after = fork.world.controller.leader
    if after is not None:
        found["leader_stops", after] = lacking(before, fork, after)
    else:
        for number, broker in fork.world.brokers.items():
            if number != leader.replica and not broker.running:
                back = copied(fork)
                back.start(number)
                back.elect_by_rule()
                if back.world.controller.leader == number:
                    found["leader_stops", number] = lacking(before, back, number)
    found["leader_loses_its_log", None] = lost_with_its_directory(machine, leader.replica)
    tail = [d.first_offset for d in at_risk if d.failure == "leader_loses_its_tail"]
    if after is not None and not tail:
        return found
    fork = copied(machine)
    try:
        fork.stop(leader.replica, "power_loss", surviving=min(tail, default=0))
        fork.fence(leader.replica)
        fork.start(leader.replica)
        fork.elect_by_rule()
    except Impossible:
        return found
    after = fork.world.controller.leader
    if after is not None:
        found["leader_loses_its_tail", None] = lacking(before, fork, after)
    return found


def lost_with_its_directory(machine: PartitionMachine, replica: int) -> set[int]:
    """What is gone of its log when it comes back with an emptied directory, and who was down has
    been noticed; nothing where another leads by then, or nobody: the others hold what they hold."""
    fork = copied(machine)
    if not fork.world.brokers[replica].running:
        # What it comes back with is lost again at once, before the others are heard of.
        begin_process(fork.world, fork.world.brokers[replica])
    before = records_of(fork.world.brokers[replica].log.spans)
    fork.stop(replica, "disk_loss")
    away = [r for r, broker in fork.world.brokers.items() if not broker.running and r != replica]
    for each in [*sorted(away), replica]:
        fork.fence(each)
    if fork.world.controller.leader is not None:
        return set()
    fork.start(replica)
    fork.elect_by_rule()
    return lacking(before, fork, replica) if fork.world.controller.leader == replica else set()


def left_alone(machine: PartitionMachine) -> list[tuple[PartitionMachine, State]]:
    """Its leader as the only member of the ISR: up, killed, and shut down; and what is known."""
    leader = valid_leader(machine.world)
    if leader is None or not leader.running or leader.isolated:
        return []
    alone = copied(machine)
    try:
        alone.propose_isr(leader.isr - {leader.replica})
        if alone.world.isr_changes_wait:
            alone.decide_isr()
    except Impossible:
        return []
    found = [(alone, folded(machine, alone))]
    for reason in ("process_crash", "clean"):
        down = copied(alone)
        down.stop(leader.replica, reason)
        down.fence(leader.replica)
        found.append((down, folded(machine, alone, down)))
    return found


def left_to_a_member(machine: PartitionMachine) -> list[tuple[PartitionMachine, State]]:
    """Its only other member crashes, and then its leader, before the controller hears of the first:
    nobody leads until that member is back."""
    leader = valid_leader(machine.world)
    if leader is None or not leader.running or leader.isolated or len(leader.isr) != 2:
        return []
    (member,) = leader.isr - {leader.replica}
    if not machine.world.brokers[member].running:
        return []
    down = copied(machine)
    for replica in (member, leader.replica):
        down.stop(replica, "process_crash")
    for replica in (leader.replica, member):
        down.fence(replica)
    return [(down, folded(machine, down))]


def test_whoever_must_lead_on_loses_with_its_directory_what_is_named() -> None:
    """With others who hold the records, whether it leads or is down."""
    named, all_told = Counter[tuple[bool, bool]](), 0
    for seed in range(150):
        whole_story = schedule_story(seed).machine
        for machine, state in [*left_alone(whole_story), *left_to_a_member(whole_story)]:
            at_risk = dangers(state)
            leads = state.registration.leader is not None
            whole = [d for d in at_risk if d.failure == "leader_loses_its_log"]
            for danger in whole:
                lost = lost_with_its_directory(machine, danger.broker)
                assert offsets_of(danger) <= lost, (seed, danger)
                assert set(danger.holders) == really_hold(machine, danger), (seed, danger)
                named[leads, bool(danger.holders)] += 1
            clean = not machine.world.unclean_leader_election
            if leads and clean and valid_leader(machine.world) and controller_sees_all(machine):
                lost = lost_with_its_directory(machine, state.registration.leader or 0)
                promised = lost & promised_offsets(state, machine)
                told = {o for d in at_risk if d.next_leader is None for o in offsets_of(d)}
                assert promised <= told, (seed, promised - told)
                all_told += len(promised)
    assert min(named[True, True], named[False, True], all_told) > 20
    assert named[True, False] + named[False, False] == 0, "what nobody else holds is the tail"


def really_hold(machine: PartitionMachine, danger: Danger) -> set[int]:
    """Who else holds all of it."""
    logs = logs_of(machine.world)
    return {
        r
        for r in machine.world.assigned_replicas
        if r != danger.broker
        and all(logs[r].get(o) == logs[danger.broker][o] for o in offsets_of(danger))
    }


def controller_sees_all(machine: PartitionMachine) -> bool:
    """Whether the controller counts as alive those who are: evidence shows no more than that."""
    world = machine.world
    return world.controller.active == {r for r, b in world.brokers.items() if b.running}


def lacking(before: dict[int, tuple[int, int]], fork: PartitionMachine, leader: int) -> set[int]:
    log = logs_of(fork.world)[leader]
    start = fork.world.brokers[leader].log.log_start_offset
    return {o for o, record in before.items() if o >= start and log.get(o) != record}


@pytest.mark.slow
def test_what_is_named_is_lost_in_its_fork_and_what_a_fork_loses_was_named() -> None:
    named = Counter[str]()
    forked = 0
    for seed in range(400):
        machine = schedule_story(seed).machine
        state = folded(machine)
        at_risk = dangers(state)
        lost = forks(machine, at_risk)
        for danger in at_risk:
            fork = (danger.failure, danger.next_leader)
            if fork in lost:
                named[danger.failure] += 1
                assert offsets_of(danger), (seed, danger)
                assert offsets_of(danger) <= lost[fork], (seed, danger)
                assert set(danger.holders) == really_hold(machine, danger), (seed, danger)
        for (failure, _), offsets in lost.items():
            if failure == "leader_stops" and controller_sees_all(machine):
                told = {o for d in at_risk if d.failure == failure for o in offsets_of(d)}
                promised = offsets & promised_offsets(state, machine)
                forked += len(promised)
                assert promised <= told, (seed, failure, promised - told)
    assert sum(named.values()) - named["leader_loses_its_log"] > 20
    assert named["leader_loses_its_log"] > 10
    assert forked > 20


def promised_offsets(state: State, machine: PartitionMachine) -> set[int]:
    """Offsets of the leader's log that somebody was promised."""
    history = state.history
    leader = valid_leader(machine.world)
    assert leader is not None
    log = records_of(leader.log.spans)
    promises = [*history.acknowledgements, *history.commitments, *history.consumptions]
    return {
        offset
        for promise in promises
        for offset, record in records_of([promise.span]).items()
        if offset in log and (record[1] in (-1, log[offset][1]))
    }


def test_equal_replicas_are_no_danger_whatever_the_settings_permit() -> None:
    assert dangers(story(given(unclean="yes"))) == []
    assert dangers(story(given(isr="A", unclean="yes"))) == []


def test_the_last_in_sync_replica_may_come_back_without_what_it_alone_holds() -> None:
    found = dangers(story(given(isr="A", logs=("0:m*10", "0:m*8", "0:m*7"))))
    told = [(d.first_offset, d.end_offset, d.failure, d.holders) for d in found]
    assert told == [
        (0, 7, "leader_loses_its_log", (2, 3)),
        (7, 8, "leader_loses_its_log", (2,)),
        (8, 10, "leader_loses_its_tail", ()),
    ]
    assert {(d.cause, d.next_leader) for d in found} == {("last_replica_standing", None)}


def test_without_version_or_in_sync_replicas_nothing_is_claimed() -> None:
    state = story(given(isr="A", logs=("0:m*10", "0:m*8", "0:m*7")))
    state.settings.kafka_version = None
    assert dangers(state) == []


@pytest.mark.parametrize(("unclean", "more"), [(False, []), (None, ["unclean_election"])])
def test_where_nobody_knows_whether_another_may_lead_that_is_a_cause_as_well(
    unclean: bool | None, more: list[str]
) -> None:
    state = of_two(live(1, 1000, 10), live(2, 2000, 6), isr=(1,))
    state.settings.unclean_leader_election = unclean
    (tail,) = (d for d in dangers(state) if d.failure == "leader_loses_its_tail")
    assert other_causes(state, tail) == more


def test_a_cause_that_the_controller_may_still_turn_into_another_is_told_with_it() -> None:
    """2 lost what it had beside 3; where 3 is down it may be taken out of the ISR first."""
    state = of_two(
        live(1, 1000, 10), live(2, 1100, 10), ev.ReplicaStopped(2, "process_crash"),
        live(1, 2000, 14), came_back(8, 2100, clean=False), isr=(1, 2, 3),
    )  # fmt: skip
    state.settings.min_insync_replicas, state.settings.assigned_replicas = 2, (1, 2, 3)
    for three, others in (
        (Replica(3, stopped=False), ["acks_one_failover"]),
        (Replica(3, stopped=True), ["last_replica_standing", "acks_one_failover"]),
        (Replica(3, crashed=True), ["last_replica_standing", "acks_one_failover"]),
    ):
        state.replicas[3] = three
        (danger,) = (d for d in dangers(state) if d.next_leader == 2)
        assert danger.cause == "storage_loss"
        assert other_causes(state, danger) == others
        assert present_row(state, danger)["causes"][: 1 + len(others)] == ["storage_loss", *others]


def test_what_nobody_was_promised_may_be_gone_with_what_a_member_lost() -> None:
    """2 is back without what was committed; what 1 wrote last 2 may have had as well."""
    state = of_two(
        live(1, 1000, 10), live(2, 1100, 8), ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaLogObserved(2, 0, 0, (), stopped=False, copy="live"), live(1, 2000, 10),
        isr=(1, 2),
    )  # fmt: skip
    for mark, others in ((0, []), (8, ["storage_loss"])):
        state.replicas[1].high_watermark = mark
        told = Danger(8, 10, "undetermined", "leader_stops", 1, 2, "acks_one_failover", ())
        assert other_causes(state, told) == others


def test_what_a_member_cut_to_its_high_watermark_is_not_lost_with_a_disk() -> None:
    """Before KIP-101 who is back as a follower cuts first; the leader stops before it fetches."""
    facts = [
        live(1, 1000, 10), live(2, 1100, 10), came_back(10, 1200, clean=True),
        ev.BecameFollower(2, 0, 1), ev.Truncated(2, 8, reason="high_watermark", from_offset=10),
        live(2, 4000, 8), live(1, 4100, 10), live(2, 5000, 8),
    ]  # fmt: skip
    found = dangers(of_two(*facts, isr=(1, 2)))
    told = [(d.first_offset, d.end_offset, d.next_leader, d.cause) for d in found]
    assert told == [(8, 10, 2, "truncate_to_high_watermark")]
