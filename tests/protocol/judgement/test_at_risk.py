"""Dangers by forks: the named failure is really made, and the named records are really lost.

The machine knows what is. At the end of each random schedule its facts are folded; then every
failure that one danger could name is made in a copy of the machine. What a fork loses must have
been named before (recall), and what was named must be lost in its fork (precision).
"""

from collections import Counter
from dataclasses import replace

import pytest

from replication.machine.machine_state import Impossible
from replication.machine.partition_machine import PartitionMachine
from replication.machine.replica import begin_process
from replication.machine.scenario import Runner
from replication.machine.scenario_text import Stanza, parse
from replication.protocol.folding.fold import Rejected, apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import EpochEntry, Span
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.judgement.at_risk import (
    Danger,
    dangers,
    failures,
    other_causes,
    outlook,
)
from replication.protocol.judgement.reference import tail_is_known
from replication.protocol.judgement.risk_rows import present_row
from tests.protocol.schedules import schedule_machine
from tests.protocol.world_states import copied, logs_of, records_of, valid_leader

PROMISED = ("consumed", "acknowledged_by_isr", "committed", "acknowledged_by_leader")
Lost = dict[tuple[str, int | None], set[int]]


def folded(*machines: PartitionMachine) -> State:
    """What a complete trace of the machine tells; of a copy's, after that of whom it was copied."""
    state = new_state("", "t", "", 0)
    facts = [step.fact for machine in machines for step in machine.world.steps]
    for n, fact in enumerate(facts):
        try:
            apply(state, ev.Event(str(n), "trace", "", "t", "", 0, n, fact, None, "traced"))
        except Rejected:
            continue
    return state


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
        whole_story = schedule_machine(seed).story.machine
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


def test_what_is_named_is_lost_in_its_fork_and_what_a_fork_loses_was_named() -> None:
    named = Counter[str]()
    forked = 0
    for seed in range(400):
        machine = schedule_machine(seed).story.machine
        state = folded(machine)
        at_risk = dangers(state)
        lost = forks(machine, at_risk)
        for danger in at_risk:
            fork = (danger.failure, danger.next_leader)
            if fork in lost:
                named[danger.failure] += 1
                assert offsets_of(danger) <= lost[fork], (seed, danger)
        for (failure, _), offsets in lost.items():
            if failure == "leader_stops" and controller_sees_all(machine):
                told = {o for d in at_risk if d.failure == failure for o in offsets_of(d)}
                promised = offsets & promised_offsets(state, machine)
                forked += len(promised)
                assert promised <= told, (seed, failure, promised - told)
    assert sum(named.values()) - named["leader_loses_its_log"] > 20
    assert named["leader_loses_its_log"] > 10
    assert forked > 20


def offsets_of(danger: Danger) -> set[int]:
    return set(range(danger.first_offset, danger.end_offset))


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


def story(text: str) -> State:
    """The state that the fold reaches over the machine's facts in a scenario."""
    runner = Runner()
    for stanza in parse(text):
        if isinstance(stanza, Stanza):
            runner.run(stanza)
    assert runner.story is not None
    return folded(runner.story.machine)


GIVEN = """given isr={isr} min_insync_replicas=2 kafka={kafka} unclean={unclean}
A{a} e0  {one} |
B{b} e0  {two} |
C  e0  {three} |
----
"""


def given(isr: str = "A,B,C", *, leader: str = "A", kafka: str = "3.9.1", unclean: str = "no",
          logs: tuple[str, str, str] = ("0:m*10", "0:m*10", "0:m*10")) -> str:  # fmt: skip
    """A partition of A, B and C, all of whose records are committed on the leader."""
    marks = {"a": "*" if leader == "A" else " ", "b": "*" if leader == "B" else " "}
    return GIVEN.format(
        isr=isr, kafka=kafka, unclean=unclean, one=logs[0], two=logs[1], three=logs[2], **marks
    )


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


def test_what_everybody_holds_is_lost_with_the_last_members_directory_unless_another_leads() -> (
    None
):
    """Equal logs: the followers cut to the empty one. Another member, an unclean heir or an
    eligible replica that stopped cleanly would lead instead."""
    for isr, unclean, named in (
        ("A", "no", [(0, 10, (2, 3))]), ("A", "yes", []), ("A,B", "no", []),
    ):  # fmt: skip
        found = dangers(story(given(isr=isr, unclean=unclean)))
        assert [(d.first_offset, d.end_offset, d.holders) for d in found] == named
    assert all(d[0] != "leader_loses_its_log" for d in told_of_eligible("stop B"))
    unsaid = story(given(isr="A", kafka="0.10.2.2"))
    assert dangers(unsaid)
    unsaid.settings.unclean_leader_election = None
    assert dangers(unsaid) == [], "that release's default lets another lead"


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


def test_an_unclean_election_would_take_the_first_alive_not_the_longest_log() -> None:
    told = given(isr="B", leader="B", unclean="yes", logs=("0:m*7", "0:m*10", "0:m*9"))
    found = dangers(story(told))
    assert [(d.first_offset, d.end_offset, d.holders, d.next_leader, d.cause) for d in found] == [
        (7, 10, (), 1, "unclean_election"),
        # Whoever is behind may be down as well: then the last one leads on without its tail.
        (9, 10, (), None, "last_replica_standing"),
    ]


def test_who_stopped_behind_may_be_elected_uncleanly_when_it_is_back_first() -> None:
    """Whoever of them comes back while nobody else runs; where one still runs, that one leads."""
    told = given(isr="A", unclean="yes", logs=("0:m*10", "0:m*8", "0:m*7"))
    for stopped, named in (
        ("C", [(8, 10, 2)]),
        ("C B", [(7, 10, 3), (8, 10, 2), (8, 10, None)]),
    ):
        steps = "".join(f"stop {each}\nfence {each}\n" for each in stopped.split())
        found = dangers(story(f"{told}\n{steps}----\n"))
        heirs = [(d.first_offset, d.end_offset, d.next_leader) for d in found]
        assert set(named) <= set(heirs)
        assert ((7, 10, 3) in heirs) == (stopped == "C B")
    forbidden = given(isr="A", logs=("0:m*10", "0:m*8", "0:m*7"))
    found = dangers(story(f"{forbidden}\nstop B\nfence B\nstop C\nfence C\n----\n"))
    assert {d.next_leader for d in found} == {None}


def test_without_a_leader_each_candidate_lacks_what_it_lacks() -> None:
    told = given(isr="A", logs=("0:m*10", "0:m*9", "0:m*7")) + "\nstop A\nfence A\n----\n"
    found = dangers(story(told))
    assert {(d.failure, d.broker, d.first_offset, d.end_offset) for d in found} == {
        ("unclean_election", 2, 9, 10),
        ("unclean_election", 3, 7, 10),
        ("leader_loses_its_tail", 1, 9, 10),
        ("leader_loses_its_log", 1, 0, 7),
        ("leader_loses_its_log", 1, 7, 9),
    }


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


def test_without_version_or_in_sync_replicas_nothing_is_claimed() -> None:
    state = story(given(isr="A", logs=("0:m*10", "0:m*8", "0:m*7")))
    state.settings.kafka_version = None
    assert dangers(state) == []


def told_of_eligible(away: str) -> list[tuple[str, int | None, int, int]]:
    """Broker 2 was eligible when it went away; then the leader acknowledged three records alone."""
    steps = f"{away}\nfence B\ncontroller\nproduce A x*3 acks=1\n----\n"
    found = dangers(story(given("A,B", kafka="4.1.0") + "\n" + steps))
    return [(d.failure, d.next_leader, d.first_offset, d.end_offset) for d in found]


def test_who_stopped_cleanly_is_eligible_when_it_is_back() -> None:
    assert ("leader_stops", 2, 10, 13) in told_of_eligible("stop B")


def test_who_crashed_is_eligible_no_more_when_it_is_back() -> None:
    """Its registration takes it out (KIP-966): only the leader's own storage is left to lose."""
    assert told_of_eligible("crash B kind=process") == [("leader_loses_its_tail", None, 10, 13)]


def live(replica: int, at: int, end: int, leader_epoch: int | None = 0) -> ev.Event:
    """Its log when it was read beside its broker."""
    spans = (Span(0, end, leader_epoch, None),)
    fact = ev.ReplicaLogObserved(replica, 0, end, spans, stopped=False, copy="live")
    return ev.Event(f"{replica}-{at}", "trace", "", "t", "", 0, 0, fact, at, "forensic")


def of_two(*facts: ev.Event | ev.Fact, unclean: bool = False, isr: tuple[int, ...]) -> State:
    """A partition of 1 and 2 that 1 leads."""
    state = new_state("", "t", "", 0)
    known: list[ev.Fact] = [
        ev.PartitionDescribed(
            kafka_version="3.9.1", assigned_replicas=(1, 2), unclean_leader_election=unclean,
            min_insync_replicas=1, controller="kraft",
        ),
        ev.CoverageDeclared("broker_log", 1, True),
        ev.CoverageDeclared("broker_log", 2, True),
        ev.LeadershipRecorded(leader=1, leader_epoch=0, isr=isr, partition_epoch=1),
        ev.BecameLeader(1, 0),
    ]  # fmt: skip
    for n, fact in enumerate([*known, *facts]):
        told = (
            ev.Event(str(n), "trace", "", "t", "", 0, n, fact, 0, "forensic")
            if not isinstance(fact, ev.Event)
            else fact
        )
        apply(state, told)
    return state


def behind(*seen: tuple[int, int, int]) -> list[tuple[int, int]]:
    """What an unclean election would cost; seen: replica, when, its log end."""
    logs = [live(*each) for each in sorted(seen, key=lambda s: s[1])]
    state = of_two(*logs, unclean=True, isr=(1,))
    return [(d.first_offset, d.end_offset) for d in dangers(state) if d.next_leader == 2]


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
        expected = [(failure, 2, 10, 14, "acks_one_failover")] if failure else []
        assert told == expected + tail
    led = [*elected, live(2, 3000, 10), ev.BecameLeader(2, 1)]
    assert "clean_election" not in {d.failure for d in dangers(of_two(*led, isr=(1, 2)))}


def came_back(end: int, at: int, *, clean: bool, replica: int = 2) -> ev.Event:
    """What the line of a start says."""
    return ev.Event(
        f"s-{at}", "trace", "", "t", "", 0, 0, ev.ReplicaStarted(replica, 0, end, None, clean), at,
        "forensic",
    )  # fmt: skip


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
    It took over from who began epoch 1 at offset 5; beside the ISR it may have more of before."""
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


@pytest.mark.parametrize(("unclean", "more"), [(False, []), (None, ["unclean_election"])])
def test_where_nobody_knows_whether_another_may_lead_that_is_a_cause_as_well(
    unclean: bool | None, more: list[str]
) -> None:
    state = of_two(live(1, 1000, 10), live(2, 2000, 6), isr=(1,))
    state.settings.unclean_leader_election = unclean
    (tail,) = (d for d in dangers(state) if d.failure == "leader_loses_its_tail")
    assert other_causes(state, tail) == more


def test_from_a_leader_that_is_down_nobody_fetches() -> None:
    """Read once after it had crashed a member lacks what it lacks; from one that runs it may have
    fetched in the half second."""
    read = [live(1, 1000, 14), live(2, 1200, 10)]
    crashed = [live(1, 1000, 14), ev.ReplicaStopped(1, "process_crash"), live(2, 1200, 10)]
    for facts, named in ((read, []), (crashed, [(10, 14)])):
        found = [d for d in dangers(of_two(*facts, isr=(1, 2))) if d.next_leader == 2]
        assert [(d.first_offset, d.end_offset) for d in found] == named


def test_what_a_leader_that_is_away_would_lead_on_without_it_had_and_lost() -> None:
    """After a power failure, alone with one that runs or with none, before that is noticed."""
    named = Counter[str]()
    for seed in range(150):
        whole_story = schedule_machine(seed).story.machine
        leader = valid_leader(whole_story.world)
        if leader is None or not leader.running or leader.isolated:
            continue
        before, others = records_of(leader.log.spans), leader.isr - {leader.replica}
        for away in ([], sorted(others), sorted(others)[1:]):
            fork = copied(whole_story)
            try:
                for each in [r for r in away if fork.world.brokers[r].running]:
                    fork.stop(each, "process_crash")
                fork.stop(leader.replica, "power_loss", surviving=0)
            except Impossible:
                continue
            left = records_of(fork.world.brokers[leader.replica].log.spans)
            for danger in dangers(folded(whole_story, fork)):
                if danger.next_leader == leader.replica and danger.ends_when.startswith("another"):
                    assert offsets_of(danger) <= before.keys() - left.keys(), (seed, danger)
                    named[danger.failure] += 1
    assert min(named["leader_stops"], named["clean_election"]) > 5, named


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
        assert {(d.failure, d.broker, 1, False) for d in found} <= set(
            failures(state, outlook(state))
        )
    (alone,) = (d for d in dangers(of_two(*killed, isr=(1,), unclean=True)) if d.next_leader == 1)
    assert (alone.failure, alone.first_offset, alone.holders) == ("clean_election", 6, (2,))
    state = of_two(*killed, isr=(1, 2, 3))
    state.settings.assigned_replicas, state.replicas[3] = (1, 2, 3), Replica(3, stopped=False)
    assert not [d for d in dangers(state) if d.next_leader == 1], "2 or 3 leads"
    newer = [*had, live(1, 2000, 6), live(2, 2100, 10, leader_epoch=1)]
    assert not [d for d in dangers(of_two(*newer, isr=(1, 2))) if d.next_leader == 1]


@pytest.mark.parametrize(("controller", "named"), [("zookeeper", [1]), ("kraft", [])])
def test_the_leader_of_an_isr_that_is_down_may_be_back_first_without_its_tail(
    controller: str, named: list[int]
) -> None:
    """Both were killed, and hold all of it; whose disk had not got it all may lead. In KRaft the
    controller takes one of them out of the ISR, and then waits for the other."""
    down = [live(1, 1000, 10), live(2, 1100, 10)]
    down += [ev.ReplicaStopped(2, "process_crash"), ev.ReplicaStopped(1, "process_crash")]
    described = ev.PartitionDescribed(controller=controller)
    found = dangers(of_two(described, *down, isr=(1, 2)))
    assert [d.broker for d in found if (d.first_offset, d.end_offset) == (0, 10)] == named
    assert {(d.failure, d.holders, d.tier) for d in found} <= {
        ("leader_loses_its_log", (2,), "undetermined")
    }
    runs = [described, live(1, 1000, 10), live(2, 1100, 10), *down[-1:]]
    assert not dangers(of_two(*runs, isr=(1, 2))), "the other runs"


def test_who_led_last_may_come_back_without_what_it_lost_while_nobody_leads() -> None:
    """Killed, read with less than it had, and fenced: it is waited for, and leads with that."""
    killed = [live(1, 1000, 10), live(2, 1100, 10), ev.ReplicaStopped(1, "process_crash")]
    nobody = ev.LeadershipRecorded(leader=None, leader_epoch=1, isr=(1,), partition_epoch=2)
    emptied = ev.ReplicaLogObserved(1, 0, 0, (), stopped=True, copy="live")
    short = ev.ReplicaLogObserved(1, 0, 6, (Span(0, 6, 0, None),), stopped=True, copy="live")
    for seen, first, unclean, named in (
        (emptied, 0, False, True), (short, 6, False, True), (short, 6, True, False),
    ):  # fmt: skip
        for facts in ([*killed, seen, nobody], [*killed, nobody, seen]):
            state = of_two(*facts, isr=(1,), unclean=unclean)
            found = [d for d in dangers(state) if d.next_leader == 1]
            runs = [(d.failure, d.broker, d.first_offset, d.end_offset, d.holders) for d in found]
            assert runs == ([("clean_election", 1, first, 10, (2,))] if named else []), seen
            assert {(d.failure, d.broker, 1, False) for d in found} <= set(
                failures(state, outlook(state))
            )
    both = [*killed, ev.ReplicaStopped(2, "process_crash"), short, nobody]
    assert [d.first_offset for d in dangers(of_two(*both, isr=(1,), unclean=True))
            if d.next_leader == 1] == [6], "whoever is back first"  # fmt: skip
    other = replace(nobody, isr=(1, 2))
    assert not [d for d in dangers(of_two(*killed, short, other, isr=(1, 2)))
                if d.next_leader == 1], "2 is elected"  # fmt: skip
    whole = [*killed, nobody, live(2, 2000, 10)]
    assert not [d for d in dangers(of_two(*whole, isr=(1,))) if d.next_leader == 1]


def log_without_epochs(
    replica: int, at: int, end: int, *filed: tuple[int, int], stopped: bool = False
) -> ev.Event:
    """What a digest tells of a compacted log. filed: its epoch file."""
    fact = ev.ReplicaLogObserved(
        replica, 0, end, (Span(0, end, None, None),), stopped=stopped, copy="live",
        epoch_entries=tuple(EpochEntry(*each) for each in filed),
    )  # fmt: skip
    return ev.Event(f"{replica}-{at}", "trace", "", "t", "", 0, 0, fact, at, "forensic")


def test_what_a_last_leader_lost_it_had_also_where_a_digest_tells_no_epochs() -> None:
    """By the epoch file of who holds it; where none is kept, because no other ever led, whose term
    began at the log's first offset."""
    nobody = ev.LeadershipRecorded(leader=None, leader_epoch=2, isr=(1,), partition_epoch=3)
    another = [ev.LeadershipRecorded(leader=2, leader_epoch=1, isr=(2,), partition_epoch=2),
               ev.BecameLeader(2, 1)]  # fmt: skip
    again = ev.LeadershipRecorded(leader=1, leader_epoch=3, isr=(1,), partition_epoch=4)
    for filed, terms, named in (
        ([(0, 0)], [], [(6, 10)]), ([(0, 8)], [], [(6, 10)]), ([], [], [(6, 10)]),
        ([(0, 0)], [*another, again, ev.BecameLeader(1, 3)], []),
        ([(0, 0), (3, 8)], [*another, again, ev.BecameLeader(1, 3)], [(8, 10)]),
    ):  # fmt: skip
        fenced = replace(nobody, leader_epoch=4, partition_epoch=5) if terms else nobody
        facts = [log_without_epochs(1, 1000, 10, *filed), *terms,
                 log_without_epochs(2, 1100, 10, *filed), ev.ReplicaStopped(1, "process_crash"),
                 log_without_epochs(1, 1200, 6, *filed, stopped=True), fenced]  # fmt: skip
        for started in (None, 0):
            state = of_two(*facts, isr=(1,))
            state.history.terms[0].start_offset = started
            found = [d for d in dangers(state) if d.next_leader == 1]
            assert [(d.first_offset, d.end_offset) for d in found] == named, (filed, terms)


def test_what_one_leader_wrote_in_one_epoch_after_the_other_it_had() -> None:
    """A controller with ZooKeeper raises the epoch as members die: what is older was its own."""
    nobody = ev.LeadershipRecorded(leader=None, leader_epoch=3, isr=(1,), partition_epoch=4)
    for leader, epochs, start, named in (
        (1, (1, 2), 10, [(6, 10)]), (1, (2,), 10, []), (2, (1, 2), 10, []), (1, (1, 2), 7, []),
    ):  # fmt: skip
        facts: list[ev.Event | ev.Fact] = [live(2, 1000, 10)]
        for leader_epoch in epochs:
            leads = leader if leader_epoch == 1 else 1
            facts += [ev.LeadershipRecorded(leader=leads, leader_epoch=leader_epoch, isr=(1,)),
                      ev.BecameLeader(leads, leader_epoch, start)]  # fmt: skip
        facts += [ev.ReplicaStopped(1, "process_crash"), live(1, 2000, 6),
                  ev.ReplicaStopped(1, "process_crash"), live(2, 2100, 10), nobody]  # fmt: skip
        found = [d for d in dangers(of_two(*facts, isr=(1,))) if d.next_leader == 1]
        assert [(d.first_offset, d.end_offset) for d in found] == named, (leader, epochs, start)


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


def test_what_the_last_leader_would_come_back_without_is_lost_once_it_does() -> None:
    """After a power failure, with nobody else to be elected, as the machine has it."""
    named = 0
    for seed in range(80):
        whole_story = schedule_machine(seed).story.machine
        leader = valid_leader(whole_story.world)
        if leader is None or not leader.running or leader.isolated:
            continue
        before, fork = records_of(leader.log.spans), copied(whole_story)
        try:
            for each in sorted(leader.isr - {leader.replica}):
                if fork.world.brokers[each].running:
                    fork.stop(each, "process_crash")
                fork.fence(each)
            fork.stop(leader.replica, "power_loss", surviving=0)
            fork.fence(leader.replica)
        except Impossible:
            continue
        if fork.world.controller.leader is not None:
            continue
        found = [d for d in dangers(folded(whole_story, fork)) if d.next_leader == leader.replica
                 and d.ends_when.startswith("another replica leads")]  # fmt: skip
        if found:
            fork.start(leader.replica)
            assert fork.world.controller.leader == leader.replica, seed
            left = records_of(fork.world.brokers[leader.replica].log.spans)
            for danger in found:
                assert offsets_of(danger) <= before.keys() - left.keys(), (seed, danger)
                named += 1
    assert named > 5


def test_a_leader_whose_only_other_member_is_down_is_the_last_that_has_its_tail() -> None:
    """It may be back first, though the ISR still names the other."""
    read = [live(1, 1000, 10), live(2, 1100, 10)]
    killed = ev.ReplicaStopped(2, "process_crash")
    for facts, named in (
        ([*read, live(1, 2000, 14)], []),
        ([*read, killed, live(1, 2000, 14)], [(10, 14)]),
        ([*read, killed, live(1, 2000, 14), ev.ReplicaStopped(1, "process_crash")], [(10, 14)]),
    ):
        found = dangers(of_two(*facts, isr=(1, 2)))
        tail = [d for d in found if d.failure == "leader_loses_its_tail"]
        assert [(d.first_offset, d.end_offset) for d in tail] == named


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
        told = Danger(8, 10, "undetermined", "leader_stops", 1, 2, "acks_one_failover", (), "")
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


def test_a_danger_stands_while_the_leader_goes_on_growing() -> None:
    """What it held when the other was read last counts, though it was read with more since."""
    assert behind((1, 1000, 10), (1, 2000, 12), (2, 2500, 5), (1, 3000, 15)) == [(5, 12)]
    assert behind((1, 1000, 10), (1, 2000, 12), (2, 2500, 5)) == [(5, 12)]
    assert behind((2, 900, 5), (1, 1000, 10)) == []


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


def test_what_was_cut_from_the_leader_since_does_not_count() -> None:
    assert behind((1, 1000, 10), (2, 2500, 5), (1, 3000, 8), (1, 4000, 12)) == []


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
