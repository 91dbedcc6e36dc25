"""What a leader would come back without: it had it, and another still has it."""

from collections import Counter
from dataclasses import replace

from replication.machine.machine_state import Impossible
from replication.machine.states import copied, records_of, valid_leader
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.at_risk import dangers
from replication.protocol.judgement.lacking_records import Compared
from replication.protocol.judgement.lost_by_a_leader import lost_by
from replication.protocol.judgement.who_may_lead import failures
from tests.protocol.judgement.danger_stories import (
    folded,
    live,
    log_without_epochs,
    of_two,
    offsets_of,
)
from tests.protocol.judgement.told import event
from tests.protocol.schedules import schedule_story


def test_of_a_log_in_several_spans_only_what_was_lost_is_named() -> None:
    """No span that ends below the loss makes a range that runs backwards."""
    spans = (Span(0, 2, 0, 1), Span(2, 5, 0, 2), Span(5, 10, 0, 3))
    whole = ev.ReplicaLogObserved(2, 0, 10, spans, stopped=False, copy="live")
    state = of_two(event(0, whole, 1000), live(1, 2000, 6), isr=(1,))
    assert lost_by(Compared(state), state.replicas[1])[1] == [(6, 10, "undetermined")]


def test_what_a_leader_that_is_away_would_lead_on_without_it_had_and_lost() -> None:
    """After a power failure, alone with one that runs or with none, before that is noticed; and
    once it is, with nobody else to be elected: then the machine has it lead on without."""
    named = Counter[tuple[str, bool]]()
    for seed in range(150):
        whole_story = schedule_story(seed).machine
        leader = valid_leader(whole_story.world)
        if leader is None or not leader.running or leader.isolated:
            continue
        before, others = records_of(leader.log.spans), sorted(leader.isr - {leader.replica})
        for away, noticed in (([], False), (others, False), (others[1:], False), (others, True)):
            fork = copied(whole_story)
            try:
                for each in away:
                    if fork.world.brokers[each].running:
                        fork.stop(each, "process_crash")
                    if noticed:
                        fork.fence(each)
                fork.stop(leader.replica, "power_loss", surviving=0)
                if noticed:
                    fork.fence(leader.replica)
            except Impossible:
                continue
            if noticed and fork.world.controller.leader is not None:
                continue
            left = records_of(fork.world.brokers[leader.replica].log.spans)
            state = folded(whole_story, fork)
            found = [d for d in dangers(state) if d.next_leader == leader.replica]
            for danger in found:
                assert offsets_of(danger) <= before.keys() - left.keys(), (seed, danger)
                named[danger.failure, noticed] += 1
            if noticed and found:
                fork.start(leader.replica)
                assert fork.world.controller.leader == leader.replica, seed
    assert min(named["leader_stops", False], named["clean_election", False]) > 5, named
    assert named["clean_election", True] > 5, named


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
            assert {(d.failure, d.broker, 1, False) for d in found} <= set(failures(state))
    both = [*killed, ev.ReplicaStopped(2, "process_crash"), short, nobody]
    assert [d.first_offset for d in dangers(of_two(*both, isr=(1,), unclean=True))
            if d.next_leader == 1] == [6], "whoever is back first"  # fmt: skip
    other = replace(nobody, isr=(1, 2))
    assert not [d for d in dangers(of_two(*killed, short, other, isr=(1, 2)))
                if d.next_leader == 1], "2 is elected"  # fmt: skip
    whole = [*killed, nobody, live(2, 2000, 10)]
    assert not [d for d in dangers(of_two(*whole, isr=(1,))) if d.next_leader == 1]


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
