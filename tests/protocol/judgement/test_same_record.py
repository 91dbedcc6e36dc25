"""By offset alone, a record of another lineage is not the promised one."""

from dataclasses import replace

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import Promise
from replication.protocol.judgement.absence import Doubt
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.reference import reference
from replication.protocol.judgement.same_record import compare, may_have_written
from replication.protocol.judgement.term_starts import term_starts
from tests.protocol.judgement.told import (
    ACKNOWLEDGED,
    COMMITTED,
    copy,
    elected,
    given,
    told,
    verdict,
)


def loaded(mark: int) -> list[ev.Fact]:
    """Epoch 1 starts at 10; its leader loads a high watermark; the next leader has epoch 0 there.

    Acknowledgements and broker 1's directories are withheld.
    """
    return [
        *given(1, 2, 3, acks=False),
        elected(3, 0, "initial"),
        ev.BecameLeader(3, 0, 0, 0),
        elected(1, 1),
        ev.BecameLeader(1, 1, 10, 10),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 12, None, False),
        ev.CheckpointObserved(1, mark),
        elected(2, 2, "clean"),
        ev.BecameLeader(2, 2, 12, 9),
        copy(2, (0, 12, 0, 0), (12, 13, 2, 0), mark=13),
        copy(3, (0, 12, 0, 0), (12, 13, 2, 0), mark=13),
    ]


def test_a_record_of_a_lower_epoch_above_the_terms_start_is_not_the_promised_one() -> None:
    assert verdict(loaded(mark=12)) != "HOLDS"


def test_what_a_high_watermark_below_that_start_covers_stands_there() -> None:
    assert verdict(loaded(mark=10)) == "HOLDS"


def test_the_doubt_is_of_the_offsets_above_the_start() -> None:
    state = told(loaded(mark=12))
    promise = max(state.history.commitments, key=lambda p: (p.how == "load", p.span.end_offset))
    held = state.replicas[2].log.spans[0]

    found = compare(state, reference(state), promise, 10, 12, held, None)

    assert isinstance(found, Doubt)


@pytest.mark.parametrize("acknowledgements", [False, True])
def test_no_acknowledgement_tells_whose_records_a_high_watermark_covers(
    acknowledgements: bool,
) -> None:
    facts = loaded(mark=12)
    if acknowledgements:
        facts.insert(1, ev.CoverageDeclared("acknowledgements", None, True))
    judged = answer(told(facts)).verdicts
    settled_by = next(v["settled_by"] for v in judged if v["invariant"] == COMMITTED)
    named = any("acknowledgement log" in each for each in settled_by)
    assert (named, bool(settled_by)) == (not acknowledgements, True)


def passed_over(mark: int) -> list[ev.Fact]:
    """Epoch 1 began one record short and died; broker 2, which had that record, led in epoch 2 and
    tells its high watermark as it stops leading."""
    return [
        *given(1, 2, 3, acks=False),
        elected(3, 0, "initial"),
        ev.BecameLeader(3, 0, 0, 0),
        elected(1, 1),
        ev.BecameLeader(1, 1, 9, 9),
        elected(2, 2),
        ev.BecameLeader(2, 2, 10, 9),
        elected(3, 3),
        ev.BecameFollower(2, 3, 3, 12, mark),
        copy(2, (0, 10, 0, 0), (10, 12, 2, 0), mark=None),
        copy(3, (0, 10, 0, 0), (10, 12, 2, 0), mark=None),
    ]


def test_what_a_leader_commits_are_its_own_logs_records() -> None:
    """Up to 10 it may have learned of others, in whose log another record stood at offset 9."""
    assert verdict(passed_over(mark=11)) == "HOLDS"
    assert verdict(passed_over(mark=10)) == "UNKNOWN"


def test_what_its_log_held_is_not_known_where_its_lines_are_missing() -> None:
    lines = ev.CoverageDeclared("broker_log", 2, False)

    assert verdict([lines if fact == ev.CoverageDeclared("broker_log", 2, True) else fact
                    for fact in passed_over(mark=11)]) == "UNKNOWN"  # fmt: skip


def flip_flop(*covered: int, controller: bool) -> list[ev.Fact]:
    """Broker 3 took epoch 2 with an older record at offset 0 and committed it; broker 2 wrote
    another there in epoch 1 and leads epoch 3 with that."""
    elections = [
        elected(1, 0, "initial"),
        elected(2, 1, "clean"),
        elected(3, 2, "unclean", (3,)),
        elected(2, 3, "unclean", (2,)),
    ]
    return [
        *given(*covered),
        *(elections if controller else []),
        ev.BecameFollower(3, 1, 2, 1, 0),
        ev.BecameLeader(2, 1, 0, 0),
        ev.BecameLeader(3, 2, 1, 0),
        ev.BecameFollower(3, 3, 2, 1, 1),
        ev.BecameLeader(2, 3, 2, 0),
        copy(2, (0, 2, 1, 1), (2, 3, 3, 2), mark=3),
    ]


def test_a_leader_elected_in_a_way_that_nothing_tells_may_have_led_beside() -> None:
    assert verdict(flip_flop(2, 3, controller=False)) != "HOLDS"
    assert verdict(flip_flop(2, 3, controller=True)) != "HOLDS"


def test_a_leader_beside_the_isr_that_keeps_these_records_led_with_them() -> None:
    """The last known leader came back with all it had; a later one tells what it had committed."""
    facts = [
        *given(1, 2, 3, acks=False),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.ReplicaStopped(1, "clean", 34),
        ev.ReplicaStarted(1, 0, 34, None, True),
        elected(1, 2, "last_known_leader", (1,)),
        ev.BecameLeader(1, 2, 34, 34),
        elected(2, 3, "clean", (2,)),
        ev.BecameLeader(2, 3, 74, 74),
        copy(1, (0, 34, 0, 0), (34, 74, 2, 0)),
        copy(2, (0, 34, 0, 0), (34, 74, 2, 0)),
    ]

    assert verdict(facts) == "HOLDS"
    # Without its copy: only its own lines tell that it did not lead twice in the first epoch.
    without_it = [*facts[:-2], facts[-1]]
    unseen = ev.CoverageDeclared("broker_log", 1, True)
    assert verdict(without_it) == "HOLDS"
    assert verdict([fact for fact in without_it if fact != unseen]) == "UNKNOWN"


def in_one_epoch(*covered: int) -> list[ev.Fact]:
    """With ZooKeeper a leader may lose its log's end, restart and write it anew in its epoch."""
    return [
        *given(*covered),
        elected(1, 0, "initial"),
        *([ev.BecameLeader(1, 0, 0, 0)] if 1 in covered else []),
        ev.RecordsAcknowledged(0, 2, "1"),
        copy(1, (0, 3, 0, 0), mark=3),
        copy(2, (0, 3, 0, 0), mark=3),
    ]


def test_offsets_alone_name_records_of_one_epoch_where_its_leaders_lines_are_here() -> None:
    assert verdict(in_one_epoch(1), ACKNOWLEDGED) == "HOLDS"
    assert verdict(in_one_epoch(2), ACKNOWLEDGED) == "UNKNOWN"


def failed_over(answered: int | None, acks: str = "1") -> list[ev.Fact]:
    """Broker 1 crashed in epoch 0, which broker 2 has up to offset 3; it may have had offset 3."""
    return [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1),
        ev.BecameLeader(2, 1, 3, 3),
        ev.RecordsAcknowledged(3, 4, acks, leader=answered),
        copy(2, (0, 3, 0, 0), (3, 6, 1, 0), mark=6),
        copy(3, (0, 3, 0, 0), (3, 6, 1, 0), mark=6),
    ]


@pytest.mark.parametrize(("answered", "found"), [(None, "UNKNOWN"), (1, "VIOLATED"), (2, "HOLDS")])
def test_who_answered_at_acks_one_wrote_the_record(answered: int | None, found: str) -> None:
    assert verdict(failed_over(answered), ACKNOWLEDGED) == found


def test_a_later_leader_may_answer_an_idempotent_producer_for_an_earlier_one() -> None:
    """Only at acks=all; a leader before the one that wrote the record never answers for it."""
    state = told(failed_over(2, "all"))
    starts, promise = reference(state).starts, state.history.acknowledgements[0]

    assert may_have_written(state, starts, 1, promise) == [0]
    assert may_have_written(state, starts, 1, replace(promise, how="acks_1")) == []
    assert may_have_written(state, starts, 5, replace(promise, replica=1)) == []


def test_a_later_leader_answers_for_an_earlier_one_only_with_what_it_has() -> None:
    """Broker 2 began to lead with a log that ended at the offset; from broker 1, which leads next,
    it may have fetched the record; elected then without ever hearing of it, it answered nobody."""
    unheard = [elected(1, 2), ev.BecameLeader(1, 2, 6, 6), elected(2, 3)]
    again = [*unheard, ev.BecameLeader(2, 3, 7, 7)]
    on = [elected(2, 2, "same_leader"), ev.BecameLeader(2, 2, 6, 6, None, 1)]
    for then, writers in (([], [1]), (on, [1]), (unheard, [1]), (again, [0, 1])):
        facts = failed_over(2, "all")
        facts[facts.index(elected(2, 1))] = elected(2, 1, "unclean")
        state = told([*facts[:-2], *then, *facts[-2:]])
        starts, promise = reference(state).starts, state.history.acknowledgements[0]
        assert may_have_written(state, starts, 3, promise) == writers


def test_before_idempotent_producers_only_who_wrote_a_record_answered() -> None:
    facts = [ev.PartitionDescribed(kafka_version="0.10.2.2"), *failed_over(2, "all")[1:]]
    state = told([failed_over(2)[0], *facts])
    starts, promise = reference(state).starts, state.history.acknowledgements[0]

    assert may_have_written(state, starts, 1, promise) == []


def learned_unseen() -> list[ev.Fact]:
    """Broker 1, of which lines are missing, leads epochs 1 to 3, of which it says 1 and 3 only: at
    the start of epoch 3 its high watermark covers what it wrote in epoch 2."""
    return [
        *given(2, acks=False),
        elected(2, 0, "initial"),
        ev.BecameLeader(2, 0, 0, 0),
        ev.Truncated(1, 3, 5, "follower"),
        elected(1, 1, "clean"),
        ev.BecameLeader(1, 1, 5, 5),
        elected(1, 2, "clean"),
        elected(1, 3, "clean"),
        ev.BecameLeader(1, 3, 11, 11),
        copy(1, (0, 5, 0, 0), (5, 8, 1, 0), (8, 11, 2, 0), (11, 12, 3, 0), mark=12),
        copy(2, (0, 5, 0, 0), (5, 8, 1, 0), (8, 11, 2, 0), (11, 12, 3, 0), mark=12),
    ]


def test_a_cut_before_a_high_watermark_was_learned_took_nothing_that_it_covered() -> None:
    assert verdict(learned_unseen()) != "VIOLATED"


def without_offset_1() -> list[ev.Fact]:
    """Broker 1 leads epoch 1 from offset 1, broker 2, with one record more of epoch 0, epoch 2.

    When broker 1 is back it has lost its log.
    """
    return [
        *given(1, 2, 3, acks=False),
        elected(3, 0, "initial"),
        ev.BecameLeader(3, 0, 0, 0),
        elected(1, 1, "preferred"),
        ev.BecameLeader(1, 1, 1, 1),
        ev.BecameFollower(3, 1, 1, 2, 1),
        ev.ReplicaStopped(3, "process_crash"),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 2, "clean", (2,)),
        ev.BecameLeader(2, 2, 2, 1),
        ev.ReplicaStarted(1, 0, 0, None, False),
        elected(1, 3, "clean", (1, 2)),
        ev.BecameFollower(2, 3, 1, 3, 3),
        copy(1, (0, 2, 0, 0), (2, 3, 2, 0), mark=3),
        copy(2, (0, 2, 0, 0), (2, 3, 2, 0), mark=3),
    ]


def test_what_a_leader_lost_after_it_began_it_did_not_lack_then() -> None:
    assert verdict(without_offset_1()) == "HOLDS"


@pytest.mark.parametrize(("back_with", "found"), [(None, "HOLDS"), (3, "HOLDS"), (1, "UNKNOWN")])
def test_who_was_elected_beside_the_isr_and_holds_them_still_held_no_others(
    back_with: int | None, found: str
) -> None:
    """Broker 1, the last known leader, leads on where it crashed; broker 2 follows it, then leads.

    If it crashes once more it may have held others at the offsets that it came back without.
    """
    again: list[ev.Fact] = []
    if back_with is not None:
        again.append(ev.ReplicaStopped(1, "process_crash"))
        again.append(ev.ReplicaStarted(1, 0, back_with, None, False))
    facts = [
        *given(1, 2, acks=False),
        elected(3, 0, "initial"),
        ev.BecameLeader(3, 0, 0, 0),
        ev.ReplicaStopped(3, "process_crash"),
        elected(1, 1, "last_known_leader", (1,)),
        ev.BecameLeader(1, 1, 2, 2),
        ev.BecameFollower(2, 1, 1, 2, 2),
        *again,
        elected(2, 2, "clean", (2,)),
        ev.BecameLeader(2, 2, 3, 3),
        copy(1, (0, 2, 0, 0), (2, 3, 1, 0), mark=3),
        copy(2, (0, 2, 0, 0), (2, 3, 1, 0), mark=3),
        copy(3, (0, 2, 0, 0), (2, 3, 1, 0), mark=3),
    ]

    assert verdict(facts) == found


@pytest.mark.parametrize(("cut_to", "found"), [(None, "HOLDS"), (2, "HOLDS"), (1, "UNKNOWN")])
@pytest.mark.parametrize(("shown", "kept"), [((2, 3, 1, 0), True), ((2, 3, 0, 0), False)])
def test_a_directory_set_aside_shows_what_who_was_elected_beside_the_isr_led_with(
    cut_to: int | None, found: str, shown: tuple[int, int, int, int], kept: bool
) -> None:
    """Its directory failed when it had led on; without a record of that term it may be from before,
    and what it cut since it began it may have held as another."""
    cut = [ev.Truncated(1, cut_to, None, "leader_epoch")] if cut_to is not None else []
    facts = [
        *given(1, 2, acks=False),
        elected(3, 0, "initial"),
        ev.BecameLeader(3, 0, 0, 0),
        ev.ReplicaStopped(3, "process_crash"),
        elected(1, 1, "last_known_leader", (1,)),
        ev.BecameLeader(1, 1, 2, 2),
        ev.BecameFollower(2, 1, 1, 2, 2),
        *cut,
        elected(2, 2, "clean", (2,)),
        ev.BecameLeader(2, 2, 3, 3),
        replace(copy(1, (0, 2, 0, 0), shown), copy="failed"),
        copy(2, (0, 2, 0, 0), (2, 3, 1, 0), mark=3),
        copy(3, (0, 2, 0, 0), (2, 3, 1, 0), mark=3),
    ]

    assert verdict(facts) == (found if kept else "UNKNOWN")


@pytest.mark.parametrize(("crashed", "found"), [(False, [1]), (True, [0, 1])])
def test_who_leads_on_from_below_an_offset_had_not_written_it(
    crashed: bool, found: list[int]
) -> None:
    """Of the start of epoch 1 no line tells the log end: its first record does."""
    crash: list[ev.Fact] = [
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, None, None, False),
    ]
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0),
        *(crash if crashed else []),
        elected(1, 1, "same_leader", (1,)),
        ev.BecameLeader(1, 1),
        copy(1, (0, 5, 0, 0), (5, 9, 1, 0)),
    ]
    state = told(facts)

    assert may_have_written(state, reference(state).starts, 7) == found


@pytest.mark.parametrize(
    ("cut", "covered", "found"),
    [((), (1, 2, 3), [3]), ((5,), (1, 2, 3), [1, 3]), ((), (2, 3), [1, 3])],
)
def test_who_has_a_later_epoch_below_an_offset_and_never_cut_there_had_not_written_it(
    cut: tuple[int, ...], covered: tuple[int, ...], found: list[int]
) -> None:
    """Broker 1 led epoch 1 from 3 on, and follows in epoch 2: its log end then no line tells."""
    facts = [
        *given(*covered, version="1.1.1"),
        elected(1, 1, "initial"),
        ev.BecameLeader(1, 1, 3),
        elected(2, 2),
        ev.BecameFollower(1, 2, 2),
        *(ev.Truncated(1, to, None, "leader_epoch") for to in cut),
        ev.BecameLeader(2, 2, 3),
        elected(1, 3),
        ev.BecameFollower(2, 3, 1),
        ev.BecameLeader(1, 3, 7),
        copy(1, (0, 3, 0, 0), (3, 7, 2, 0), (9, 12, 3, 0), mark=12),
    ]
    state = told(facts)
    promise = Promise(Span(7, 8, None, None), None, "acks_1", "", 1)

    assert may_have_written(state, reference(state).starts, 7, promise) == found


@pytest.mark.parametrize(
    ("shrinks", "release", "ended", "acks", "found"),
    [
        (True, "4.1.1", 7, "acks_all", [3]),
        (True, "4.1.1", 7, "acks_1", [1, 3]),  # It waits for nobody.
        (True, "3.6.1", 7, "acks_all", [1, 3]),  # Alone it commits by itself.
        (False, "4.1.1", 7, "acks_all", [1, 3]),  # Broker 2 may have stood for the second member.
        (True, "4.1.1", 5, "acks_all", [1, 3]),  # Broker 3 lost what it may have had.
    ],
)
def test_what_a_member_of_every_isr_had_not_fetched_was_not_answered_at_acks_all(
    shrinks: bool, release: str, ended: int, acks: str, found: list[int]
) -> None:
    """Broker 1 leads, crashes, and leads again from 5. For acks=all it waited for broker 3, which
    has epoch 3 from 5 on."""
    with_2 = ev.LeadershipRecorded(1, 1, (1, 2), 2)
    facts = [
        *given(1, 2, 3, version=release),
        ev.PartitionDescribed(min_insync_replicas=2, controller="kraft"),
        ev.CoverageDeclared("controller_history", None, True),
        ev.ReplicaStarted(3, 0, 3, None, True),
        elected(1, 1, "initial"),
        ev.BecameLeader(1, 1, 3),
        ev.LeadershipRecorded(1, 1, (1, 3), 1),
        ev.LeadershipRecorded(1, 1, (1,), 2) if shrinks else with_2,
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStopped(3, "process_crash"),
        ev.ReplicaStarted(3, 0, ended, None, ended != 5),
        ev.ReplicaStarted(1, 0, 5, None, False),
        elected(1, 3, isr=(1,)),
        ev.BecameLeader(1, 3, 5),
        ev.LeadershipRecorded(1, 3, (1, 3), 4),
        *(copy(r, (0, 3, 0, 0), (3, 5, 1, 0), (5, 12, 3, 0), mark=12) for r in (1, 2, 3)),
    ]
    state = told(facts)
    promise = Promise(Span(6, 7, None, None), None, acks, "", 1)

    assert may_have_written(state, reference(state).starts, 6, promise) == found


@pytest.mark.parametrize(
    ("led", "answered", "found"),
    [(False, None, "UNKNOWN"), (True, None, "HOLDS"), (True, 1, "HOLDS"), (True, 2, "UNKNOWN")],
)
def test_who_appended_a_record_nobody_knows_where_nothing_tells_who_led(
    led: bool, answered: int | None, found: str
) -> None:
    """Without leader epochs: kafka-topics names broker 1, and of elections the lines may be missing
    (state-change.log). Broker 2 cut what it had."""
    log = (Span(0, 9, None, 0),)
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        ev.PartitionDescribed(leader=1),
        *([elected(1, 0, "initial"), ev.BecameLeader(1, 0)] if led else []),
        ev.Truncated(2, 5, 7, "high_watermark"),
        ev.RecordsAcknowledged(5, 6, "1", None, None, answered),
        *(ev.ReplicaLogObserved(r, 0, 9, log, 9, None, (), True) for r in (1, 2, 3)),
    ]
    assert verdict(facts, ACKNOWLEDGED) == found


@pytest.mark.parametrize(("crashed", "found"), [(False, [0]), (True, [0, 2])])
def test_who_leads_on_since_a_term_from_above_an_offset_has_not_written_it(
    crashed: bool, found: list[int]
) -> None:
    """Of the start of epoch 2 nothing tells the log end; it led on from epoch 1, which began at
    8."""
    crash: list[ev.Fact] = [
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, None, None, False),
    ]
    facts = [
        *given(1, 2, 3),
        elected(2, 0, "initial"),
        ev.BecameLeader(2, 0, 0, 0),
        elected(1, 1),
        ev.BecameLeader(1, 1, 8, 8),
        *(crash if crashed else []),
        elected(1, 2, "same_leader", (1,)),
        ev.BecameLeader(1, 2),
    ]
    state = told(facts)

    assert may_have_written(state, reference(state).starts, 5) == found


def back_in_its_epoch(log_end: int) -> list[ev.Fact]:
    """Broker 3 wrote past broker 2 and cut to it, then was elected from the ISR after it, stopped,
    and leads again in that epoch; then broker 2 tells a high watermark."""
    return [
        *given(1, 2, 3, acks=False),
        elected(3, 1),
        ev.BecameLeader(3, 1, 0, 0),
        elected(2, 3, "clean"),
        ev.BecameLeader(2, 3, 9, 9),
        ev.BecameFollower(3, 3, 2, 11, 9),
        ev.Truncated(3, 11, 9, "leader_epoch"),
        elected(3, 5, "clean"),
        ev.BecameLeader(3, 5, 12, 12),
        ev.BecameFollower(2, 5, 3, 12, 12),
        ev.ReplicaStopped(3, "clean"),
        ev.ReplicaStarted(3, 0, log_end, None, log_end == 14),
        ev.BecameLeader(3, 5, log_end, 12),
        elected(3, 6, "same_leader"),
        ev.BecameLeader(3, 6, 16, 12),
        ev.BecameFollower(2, 6, 3, 16, 16),
        copy(2, (0, 9, 1, 0), (9, 12, 3, 0), (12, 16, 5, 0)),
        copy(3, (0, 9, 1, 0), (9, 12, 3, 0), (12, 16, 5, 0)),
    ]


def test_who_is_back_in_its_epoch_has_up_to_there_what_it_had_when_that_began() -> None:
    assert verdict(back_in_its_epoch(log_end=14)) == "HOLDS"
    assert verdict(back_in_its_epoch(log_end=10)) != "HOLDS"


ALONE = (1,)
JOINED = [ev.LeadershipRecorded(1, 0, (1, 2), 1), ev.LeadershipRecorded(1, 0, ALONE, 2)]
REASSIGNED = [ev.LeadershipRecorded(1, 0, ALONE, 1, None, ALONE)]
LOWERED = [ev.PartitionDescribed(min_insync_replicas=n) for n in (1, 2)]


@pytest.mark.parametrize(
    ("changes", "needed", "acks", "found"),
    [
        ([], 2, "all", [2]),
        ([], 2, "1", [0, 2]),
        ([], 1, "all", [0, 2]),
        ([], None, "all", [0, 2]),
        (JOINED, 2, "all", [0, 2]),
        (LOWERED, 2, "all", [0, 2]),
        (REASSIGNED, 2, "all", [0, 2]),
    ],
    ids=[
        "too few",
        "at acks=1",
        "enough",
        "no setting",
        "enough once",
        "set lower once",
        "moved to one",
    ],
)
def test_who_had_too_few_in_its_isr_wrote_nothing_at_acks_all(
    changes: list[ev.Fact], needed: int | None, acks: str, found: list[int]
) -> None:
    """Broker 1 leads epoch 0 alone and stops; in epoch 2 broker 2 is in the ISR with it."""
    facts = [
        ev.PartitionDescribed((1, 2), needed, True, "delete", "4.3.0", None, "kraft"),
        ev.CoverageDeclared("controller_history", None, True),
        ev.LeadershipRecorded(1, 0, ALONE, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        *changes,
        ev.ReplicaStopped(1, "process_crash"),
        ev.LeadershipRecorded(1, 2, ALONE, 3, "unclean"),
        ev.BecameLeader(1, 2, 0, 0),
        ev.LeadershipRecorded(1, 2, (1, 2), 4),
        ev.RecordsAcknowledged(3, 6, acks, None, 9),
        copy(1, (8, 10, 2, 0)),
    ]
    untold = [f for f in facts if not isinstance(f, ev.CoverageDeclared)]
    for evidence, writers in ((facts, found), (untold, [0, 2])):
        state = told(evidence)
        promise = state.history.acknowledgements[0]
        assert may_have_written(state, reference(state).starts, 3, promise) == writers


def test_who_holds_another_record_there_that_was_never_cut_has_not_written_it() -> None:
    """Before leader epochs a copy alone does not tell in which one its record was written."""
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1),
        ev.BecameLeader(2, 1),
        ev.RecordsAcknowledged(3, 4, "1", None, 7),
        ev.ReplicaLogObserved(2, 0, 9, (Span(0, 9, None, 1),), 9, None, None, True),
    ]
    state = told(facts)
    promise = state.history.acknowledgements[0]
    assert may_have_written(state, reference(state).starts, 3, promise) == [0]


@pytest.mark.parametrize(("again", "found"), [(True, [1]), (False, [])])
def test_who_led_again_in_its_epoch_may_have_written_there_twice(
    again: bool, found: list[int]
) -> None:
    """Broker 2 came back empty in epoch 1 (ZooKeeper) and wrote anew what a copy shows."""
    facts = [
        *given(1, 2, 3, version="2.0.1"),
        elected(2, 1, "initial"),
        ev.BecameLeader(2, 1, 0, 0),
        ev.RecordsAcknowledged(3, 4, "1", None, 7),
        *([ev.ReplicaStopped(2, "process_crash"), ev.ReplicaStarted(2, 0, 0, None, False),
           ev.BecameLeader(2, 1, 0, 0)] if again else []),
        copy(2, (0, 9, 1, 1), mark=9),
    ]  # fmt: skip
    state = told(facts)
    promise = state.history.acknowledgements[0]
    assert may_have_written(state, reference(state).starts, 3, promise) == found


def led_on_from_below(*, again: bool = False) -> list[ev.Fact]:
    """Before leader epochs: broker 1, alone in the ISR, had committed up to 6 by its checkpoint,
    came back from a crash with less, and has led since. again: after broker 2 had."""
    other: list[ev.Fact] = [
        elected(2, 2),
        ev.BecameLeader(2, 2),
        ev.BecameFollower(1, 2, 2),
        elected(1, 3),
        ev.BecameLeader(1, 3),
    ]
    held = (Span(0, 8, None, 0),)
    return [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(1, 0, "initial", (1,)),
        ev.BecameLeader(1, 0),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaLogObserved(1, 0, 5, (Span(0, 5, None, 0),), 6, None, None, False),
        ev.ReplicaStarted(1, 0, 5, None, False),
        ev.BecameLeader(1, 0),
        elected(1, 1, "same_leader", (1,)),
        ev.BecameLeader(1, 1),
        *(other if again else []),
        *(ev.ReplicaLogObserved(r, 0, 8, held, 8, None, None, True) for r in (1, 2, 3)),
    ]


def test_what_stands_above_the_start_of_a_leader_that_led_ever_since_it_wrote_itself() -> None:
    lost = answer(told(led_on_from_below())).losses
    assert [(x["first_offset"], x["end_offset"], x["tier"]) for x in lost] == [(5, 6, "committed")]
    assert verdict(led_on_from_below()) == "VIOLATED"
    assert verdict(led_on_from_below(again=True)) == "UNKNOWN"


def led_again_beside_the_isr(*, forked: bool = False) -> list[ev.Fact]:
    """Broker 3 writes up to 2, is elected as the last known leader with that, then loses its disk;
    broker 2, which followed it, tells how far it had committed. forked: after another leader."""
    other: list[ev.Fact] = [elected(1, 1), ev.BecameLeader(1, 1, 1, 0)]
    return [
        *given(1, 2, 3, version="4.1.0"),
        elected(3, 0, "initial", (3, 2)),
        ev.BecameLeader(3, 0, 0, 0),
        ev.ReplicaStopped(3, "process_crash"),
        *(other if forked else []),
        ev.ReplicaStarted(3, 0, 2, None, False),
        elected(3, 2, "last_known_leader", (3,)),
        ev.BecameLeader(3, 2, 2, 0),
        ev.BecameFollower(2, 2, 3, 2, 0),
        ev.ReplicaStopped(3, "process_crash"),
        elected(2, 3, "clean", (2,)),
        ev.BecameLeader(2, 3, 18, 17),
        ev.ReplicaStarted(3, 0, 0, None, False),
        ev.BecameFollower(3, 3, 2, 0, 0),
        *(copy(r, (0, 2, 0, 0), (2, 18, 2, 1), (18, 20, 3, 2), mark=20) for r in (2, 3)),
    ]


def test_what_one_term_alone_can_have_written_a_later_leader_had_whatever_became_of_its_disk() -> (
    None
):
    assert verdict(led_again_beside_the_isr()) == "HOLDS"
    assert verdict(led_again_beside_the_isr(forked=True)) == "UNKNOWN"


@pytest.mark.parametrize(("start", "mark_of", "may"), [(5, 2, True), (5, 1, False), (3, 2, False)])
def test_what_a_leader_lacked_from_the_isr_one_beside_it_may_have_committed_later(
    start: int, mark_of: int, may: bool
) -> None:
    """Broker 2 led without what broker 1 wrote, which leads again beside it, with that or not."""
    facts = [
        *given(1, 2, 3, version="3.9.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "clean", (2,)),
        ev.BecameLeader(2, 1, 0, 0),
        ev.BecameFollower(1, 1, 2, 5, 0),
        elected(1, 2, "unclean", (1,)),
        ev.BecameLeader(1, 2, start, 0),
    ]
    state = told(facts)
    promise = Promise(Span(3, 4, None, None), (mark_of, 1 << 30), "start_line", "a", 1)
    assert (0 in may_have_written(state, term_starts(state), 3, promise)) is may
