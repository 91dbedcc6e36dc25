"""What became of a promise, part by part."""

import pytest

from replication.evidence.joining.copies import UNSEEN_CONTENT
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import EpochEntry, Span
from replication.protocol.judgement.absence import Absence, Doubt, absence
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.reference import reference
from replication.protocol.judgement.survival import fate
from replication.protocol.judgement.term_starts import term_start
from replication.protocol.judgement.view import view_of
from tests.protocol.judgement.told import ACKNOWLEDGED, copy, elected, given, told, verdict


def acknowledged_by_offset_alone(acks: str) -> list[ev.Fact]:
    """Broker 1 acknowledges by offset alone; broker 2 leads epoch 1 from 0; broker 1 leads on."""
    return [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1),
        ev.BecameLeader(2, 1, 0, 0),
        ev.RecordsAcknowledged(0, 2, acks),
        elected(1, 2),
        ev.BecameLeader(1, 2, 2, 0),
        ev.BecameFollower(2, 2, 1, 0, 0),
        copy(1, (0, 2, 0, 0), (2, 3, 2, 0), mark=0),
        copy(2, (0, 2, 0, 0), (2, 3, 2, 0), mark=0),
        copy(3, (0, 2, 0, 0), (2, 3, 2, 0), mark=0),
    ]


def test_a_record_known_by_offset_is_followed_under_the_epoch_that_stands_there() -> None:
    assert verdict(acknowledged_by_offset_alone("1"), ACKNOWLEDGED) == "VIOLATED"


def test_a_promise_falls_into_what_is_absent_and_what_is_in_doubt() -> None:
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 4, "all", 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1),
        ev.BecameLeader(2, 1, 2, 2),
        copy(2, (0, 2, 0, 0), (2, 3, 1, 5), mark=3),
    ]
    state = told(facts)
    ref = reference(state)
    absences, doubts = fate(state, ref, state.history.acknowledgements[0])

    assert [(a.first_offset, a.end_offset, a.back) for a in absences] == [
        (2, 3, False),
        (3, 4, False),
    ]
    assert all(isinstance(a, Absence) for a in absences)
    assert doubts == list[Doubt]()
    last = state.history.terms[-1]
    assert absences[0].term is last
    assert term_start(state, last) == 2
    again = absence(state, ref, absences[0].promise, 2, 3, last, back=False, final=True)
    assert [s.because for s in again.steps][1] == (
        "broker 2 leads epoch 1 from offset 2: its log ended below 3"
    )


def test_what_was_deleted_is_not_asked_for_where_only_lines_tell_it() -> None:
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 2, "all", 0, 0),
        ev.LogStartAdvanced(1, 2, "deletion"),
        copy(2, (0, 2, 0, 0), mark=2),
    ]
    state = told(facts)

    assert fate(state, reference(state), state.history.acknowledgements[0]) == ([], [])


def compacted(start: int, ended: ev.Fact, *promised: ev.Fact) -> list[ev.Fact]:
    """Broker 1 writes 0..9 in epoch 0, broker 2 leads epoch 1 from start, broker 1 from 10 again.

    Compaction has left the last two records of each.
    """
    held = ((8, 10, 0, 0), (10, 12, 2, 0))
    return [
        *given(1, 2, 3),
        ev.PartitionDescribed(cleanup_policy="compact"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "unclean"),
        ended,
        ev.BecameLeader(2, 1, start, start),
        elected(1, 2, "unclean"),
        ev.BecameFollower(2, 2, 1, start, start),
        ev.BecameLeader(1, 2, 10, 10),
        *promised,
        *(copy(r, *held) for r in (1, 2, 3)),
    ]


STOPPED = ev.ReplicaStopped(1, "process_crash")
NAMED = ev.RecordsAcknowledged(3, 6, "all", 0, 0)
GONE_FROM_SIGHT = ev.RecordsAcknowledged(3, 6, "all", None, UNSEEN_CONTENT)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (compacted(0, STOPPED, NAMED), "VIOLATED"),
        (compacted(0, STOPPED, GONE_FROM_SIGHT), "VIOLATED"),
        (compacted(8, STOPPED, NAMED), "HOLDS"),
        (compacted(8, STOPPED, GONE_FROM_SIGHT), "HOLDS"),
    ],
    ids=["of a known epoch", "of the only epoch it can be", "above them", "above them, unseen"],
)
def test_compaction_excuses_no_leader_whose_log_ended_below(
    facts: list[ev.Fact], expected: str
) -> None:
    assert verdict(facts, ACKNOWLEDGED) == expected


def test_what_may_have_been_written_after_the_short_log_led_is_in_doubt() -> None:
    """Broker 2 stopped: it may have written on from 0 and come back with less."""
    facts = compacted(0, STOPPED, GONE_FROM_SIGHT)
    place = next(n for n, f in enumerate(facts) if isinstance(f, ev.BecameFollower))
    facts[place : place + 1] = [ev.ReplicaStopped(2, "process_crash")]
    assert verdict(facts, ACKNOWLEDGED) == "UNKNOWN"


@pytest.mark.parametrize(("who", "expected"), [(1, "HOLDS"), (2, "HOLDS"), (3, "UNKNOWN")])
def test_what_compaction_took_is_in_doubt_where_a_leader_answered_of_which_nothing_tells(
    who: int, expected: str
) -> None:
    facts = compacted(8, STOPPED, ev.RecordsAcknowledged(3, 4, "1", leader=who))
    assert verdict(facts, ACKNOWLEDGED) == expected


def test_which_of_two_acknowledged_records_was_replaced_is_in_doubt_where_nothing_tells() -> None:
    """As above, but another record was acknowledged at these offsets as well."""
    facts = compacted(0, STOPPED, ev.RecordsAcknowledged(3, 6, "all"), GONE_FROM_SIGHT)
    place = next(n for n, f in enumerate(facts) if isinstance(f, ev.BecameFollower))
    facts[place : place + 1] = [ev.ReplicaStopped(2, "process_crash")]
    assert verdict(facts, ACKNOWLEDGED) == "UNKNOWN"


def test_what_another_record_replaced_is_in_doubt_though_nothing_tells_who_led() -> None:
    held = [copy(r, (8, 10, 0, 0)) for r in (1, 2, 3)]
    facts = [*given(), ev.PartitionDescribed(cleanup_policy="compact", leader=1), GONE_FROM_SIGHT]
    assert verdict([*facts, *held], ACKNOWLEDGED) == "HOLDS"
    twice = ev.RecordsAcknowledged(3, 6, "all")
    assert verdict([*facts, twice, *held], ACKNOWLEDGED) == "UNKNOWN"


@pytest.mark.parametrize(("clean", "found"), [(False, "UNKNOWN"), (True, "HOLDS")])
def test_a_clean_stop_tells_nothing_of_what_its_leader_lost_before(clean: bool, found: str) -> None:
    """Broker 1 acknowledged at offsets 0 and 1, crashed, and is back with an empty log."""
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 2, "1"),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1),
        ev.BecameLeader(2, 1, 0, 0),
        ev.ReplicaStarted(1, 0, 0, None, clean),
        ev.ReplicaStopped(1, "clean"),
        copy(1),
        copy(2, (0, 3, 1, 0)),
        copy(3, (0, 3, 1, 0)),
    ]

    assert verdict(facts, ACKNOWLEDGED) == found


def test_who_was_elected_and_never_led_has_cost_nothing() -> None:
    facts = [
        *given(1, 2, 3, version="3.9.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(3, 1, isr=(3,)),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 2, "unclean", isr=(2,)),
        ev.BecameLeader(2, 2, 3, 3),
        ev.RecordsAcknowledged(5, 6, "1", None, UNSEEN_CONTENT),
    ]
    cut = ev.Truncated(3, 3, None, "leader_epoch")
    copies = [copy(r, (0, 3, 0, 0), (3, 8, 2, 0)) for r in (1, 2, 3)]

    def causes(*facts: ev.Fact) -> list[object]:
        return [x["cause"] for x in answer(told(facts)).losses]

    assert causes(*facts, ev.BecameFollower(3, 2, 2, 6, 3), cut, *copies) == ["unclean_election"]
    # It never had the record, so without the unclean election it would have led without.
    assert causes(*facts, *copies) == ["acks_one_failover"]


def removed_then_elected_beside(*before: ev.Fact) -> list[ev.Fact]:
    """Broker 1 commits two records; broker 2 is elected beside the ISR with an empty log."""
    return [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 2, "all", 0, 0),
        *before,
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 0, 0),
        copy(2, (0, 5, 1, 1), mark=5),
        copy(3, (0, 5, 1, 1), mark=5),
    ]


def test_what_a_leader_removed_lawfully_no_later_leader_need_have() -> None:
    removed = ev.LogStartAdvanced(1, 2, "deletion")

    assert verdict(removed_then_elected_beside()) == "VIOLATED"
    assert verdict(removed_then_elected_beside(removed), ACKNOWLEDGED) == "HOLDS"


def test_records_written_later_at_removed_offsets_are_kept() -> None:
    again = [ev.RecordsAcknowledged(0, 1, "all", 1, 2)]
    facts = removed_then_elected_beside(ev.LogStartAdvanced(1, 2, "deletion"))

    assert verdict([*facts, *again], ACKNOWLEDGED) == "VIOLATED"


def test_a_follower_removes_nothing_from_the_promise() -> None:
    removed = ev.LogStartAdvanced(3, 2, "retention")

    assert verdict(removed_then_elected_beside(removed)) == "VIOLATED"


def test_a_follower_tells_from_where_on_its_leaders_log_begins() -> None:
    told_by_2 = [ev.BecameFollower(2, 0, 1, 0, 0), ev.LogStartAdvanced(2, 2, "leader")]

    assert verdict(removed_then_elected_beside(*told_by_2), ACKNOWLEDGED) == "HOLDS"


def by_offset(*facts: ev.Fact) -> list[ev.Fact]:
    """Broker 1 leads epoch 0 and broker 2 epoch 1 from offset 3; offset 4 is acknowledged."""
    return [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        *facts,
        elected(2, 1),
        ev.BecameLeader(2, 1, 3, 3),
        ev.RecordsAcknowledged(4, 5, "1"),
        *(copy(r, (0, 3, 0, 0), (3, 6, 1, 0)) for r in (1, 2, 3)),
    ]


DIED = (ev.ReplicaStopped(1, "process_crash"), ev.ReplicaStarted(1, 0, 3, None, False))
LEFT = (
    ev.ReplicaStopped(1, "clean"),
    copy(1, (0, 3, 0, 0)),
    ev.ReplicaStarted(1, 0, 3, None, True),
)


@pytest.mark.parametrize(
    ("ended", "found"),
    [
        (DIED, "UNKNOWN"),
        (LEFT, "HOLDS"),
        ((ev.BecameFollower(1, 1, 2, 3, 3),), "HOLDS"),
        ((ev.BecameFollower(1, 1, 2, 5, 3),), "UNKNOWN"),
    ],
)
def test_a_record_known_by_offset_is_of_the_only_leader_that_can_have_written_it(
    ended: tuple[ev.Fact, ...], found: str
) -> None:
    """A leader that crashed may have held more than is left; one that followed told its end."""
    cut = ev.Truncated(2, 0, 2, "leader_epoch")  # So that no log was never cut.
    assert verdict(by_offset(cut, *ended), ACKNOWLEDGED) == found


def test_a_leader_that_led_twice_in_an_epoch_may_have_written_an_offset_twice() -> None:
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        *DIED,
        ev.BecameLeader(1, 0, 3, 3),
        ev.RecordsAcknowledged(4, 5, "all"),
        *(copy(r, (0, 6, 0, 0)) for r in (1, 2, 3)),
    ]

    assert verdict(facts, ACKNOWLEDGED) == "UNKNOWN"


def handed_on(
    *before: ev.Fact, kind: str = "clean", release: str = "3.9.1", acks: str = "all"
) -> list[ev.Fact]:
    """Broker 2 crashes; broker 1 leads on from 16. Compaction has left nothing from 16 to 30.

    before: what broker 1 did under broker 2.
    """
    return [
        *given(1, 2, 3, version=release),
        ev.PartitionDescribed(cleanup_policy="compact"),
        elected(2, 0, "initial"),
        ev.BecameLeader(2, 0, 0, 0),
        ev.BecameFollower(1, 0, 2, 0, 0),
        *before,
        ev.ReplicaStopped(2, "process_crash"),
        elected(1, 1, kind),
        ev.BecameLeader(1, 1, 16, 16),
        ev.RecordsAcknowledged(20, 22, acks),
        *(copy(r, (10, 16, 0, 0), (30, 40, 1, 0)) for r in (1, 2, 3)),
    ]


def test_what_the_next_leader_from_the_isr_began_without_was_not_committed_before() -> None:
    """So offsets that were told at acks=all are the next leader's; by what the release keeps."""
    assert verdict(handed_on(), ACKNOWLEDGED) == "HOLDS"
    assert verdict(handed_on(kind="unclean"), ACKNOWLEDGED) == "UNKNOWN"
    assert verdict(handed_on(acks="1"), ACKNOWLEDGED) == "UNKNOWN"


def test_where_a_release_may_lose_what_is_committed_the_next_leaders_own_lines_tell() -> None:
    """It had what was committed when it joined the ISR; it was not cut, nor back from a crash."""
    cut = (ev.BecameFollower(1, 0, 2, 18, 0), ev.Truncated(1, 18, 16, "leader_epoch"))
    assert verdict(handed_on(release="1.1.1"), ACKNOWLEDGED) == "HOLDS"
    assert verdict(handed_on(*cut, release="1.1.1"), ACKNOWLEDGED) == "UNKNOWN"


def test_the_next_leader_may_have_come_back_from_a_crash_without_what_it_held() -> None:
    crashed = (ev.ReplicaStopped(1, "process_crash"), ev.ReplicaStarted(1, 0, 14, None, False))
    left = (ev.ReplicaStopped(1, "clean"), ev.ReplicaStarted(1, 0, 14, None, True))
    for release in ("1.1.1", "3.9.1"):
        assert verdict(handed_on(*crashed, release=release), ACKNOWLEDGED) == "UNKNOWN"
        assert verdict(handed_on(*left, release=release), ACKNOWLEDGED) == "HOLDS"


def test_one_start_told_by_two_lines_is_no_return_from_a_crash() -> None:
    made = ev.ReplicaStarted(1, 0, 0, None, False)
    assert verdict([made, made, *handed_on()], ACKNOWLEDGED) == "HOLDS"
    again = ev.ReplicaStarted(1, 0, 5, None, False)
    assert told([made, made]).replicas[1].came_back_with is None
    assert told([made, again]).replicas[1].came_back_with == 5


def test_a_start_after_a_stop_is_of_another_process_though_the_log_was_made_last() -> None:
    """The line of a new log follows that of its role: the next start is no second one of it."""
    facts = [
        *given(1, 2, 3),
        ev.BecameFollower(2, 0, 1, 0, 0),
        ev.ReplicaStarted(2, 0, 0, None, None),
        ev.HighWatermarkAdvanced(2, 5),
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaStarted(2, 0, 8, None, None),
    ]
    assert told(facts).replicas[2].known_high_watermark is None
    assert told(facts[:-2]).replicas[2].known_high_watermark == 5


@pytest.mark.parametrize(
    ("behind", "cut_to", "again", "found"),
    [
        ((), 5, False, "UNKNOWN"),
        ((), 6, False, "HOLDS"),
        ((ev.RecordsAcknowledged(6, 7, "all", None, None, 3),), None, False, "HOLDS"),
        ((ev.RecordsAcknowledged(6, 7, "all", None, None, 2),), 5, False, "UNKNOWN"),
        # It never cut what it had written, and that stands in the log that counts.
        ((), None, False, "HOLDS"),
        ((ev.RecordsAcknowledged(6, 7, "all", None, None, 3),), None, True, "UNKNOWN"),
    ],
)
def test_what_a_leader_answered_for_at_acks_one_it_committed_with_what_it_wrote_after(
    behind: tuple[ev.Fact, ...], cut_to: int | None, again: bool, found: str
) -> None:
    """Without leader epochs in records: broker 3 answers for offset 5, broker 2 leads from the ISR,
    broker 1, which cut to 5 to follow it, leads then; or broker 3 leads once more. To its high
    watermark it cuts before it follows."""
    log = (Span(0, 9, None, 0),)
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(3, 0, "initial"),
        ev.BecameLeader(3, 0),
        ev.RecordsAcknowledged(5, 6, "1", None, None, 3),
        *behind,
        elected(2, 1),
        ev.BecameFollower(1, 1, 2),
        ev.Truncated(1, 5, 8, "high_watermark"),
        ev.BecameLeader(2, 1),
        ev.BecameFollower(3, 1, 2),
        *([] if cut_to is None else [ev.Truncated(3, cut_to, 8, "high_watermark")]),
        *([elected(3, 2), ev.BecameLeader(3, 2)] if again else []),
        elected(1, 3),
        ev.BecameLeader(1, 3),
        *(ev.ReplicaLogObserved(r, 0, 9, log, 9, None, (), True) for r in (1, 2, 3)),
    ]
    assert verdict(facts, ACKNOWLEDGED) == found


@pytest.mark.parametrize(
    ("answered", "back_with", "content", "found"),
    [
        (1, 4, 0, "HOLDS"),
        (1, 4, 1, "VIOLATED"),
        (1, 3, 0, "UNKNOWN"),
        (None, 4, 0, "UNKNOWN"),
    ],
)
def test_what_was_answered_for_stood_in_the_log_of_who_answered(
    answered: int | None, back_with: int, content: int, found: str
) -> None:
    """Broker 1 answers for offset 3, crashes, is back and cuts to its high watermark. What it cut
    is known, unless its disk had lost it before."""
    spans = [Span(0, 3, None, 0), Span(3, 4, None, 0)]
    facts = [
        *given(1, 2, version="0.10.2.2"),
        elected(1, 0, "initial", (1, 2)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(3, 4, "1", leader=answered),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaLogObserved(1, 0, back_with, tuple(spans[: back_with - 2]), 2, None, None, False),
        ev.ReplicaStarted(1, 0, back_with, None, False),
        elected(2, 1, "clean", (2,)),
        ev.BecameLeader(2, 1),
        ev.BecameFollower(1, 1, 2),
        ev.Truncated(1, 2, back_with, "high_watermark"),
    ]
    after = (Span(0, 3, None, 0), Span(3, 4, None, content), Span(4, 6, None, 0))
    facts += [ev.ReplicaLogObserved(r, 0, 6, after, None, None, None, True) for r in (1, 2)]
    assert verdict(facts, ACKNOWLEDGED) == found


@pytest.mark.parametrize(("answered", "found"), [(2, "UNKNOWN"), (1, "HOLDS")])
def test_what_compaction_took_is_in_doubt_where_leaders_changed_and_nothing_tells_who_led(
    answered: int, found: str
) -> None:
    """Before leader epochs, without state-change.log: broker 1 answered, then this one."""
    facts = [
        *given(1, 2, version="0.10.2.2"),
        ev.PartitionDescribed((1, 2), cleanup_policy="compact", leader=2),
        ev.RecordsAcknowledged(3, 4, "1", None, None, 1),
        ev.RecordsAcknowledged(8, 9, "1", None, 5, answered),
        *(
            ev.ReplicaLogObserved(r, 0, 9, (Span(8, 9, None, 5),), 9, None, None, True)
            for r in (1, 2)
        ),
    ]
    assert verdict(facts, ACKNOWLEDGED) == found


@pytest.mark.parametrize(("leads", "status"), [(2, "lost"), (3, "recovered")])
def test_what_the_leader_wrote_anew_and_compaction_took_is_not_back(
    leads: int, status: str
) -> None:
    """Broker 2 was elected beside broker 1 with seven records, and leads still, or broker 3 does;
    the epochs of the compacted log begin where something is left of them."""
    log = ((6, 7, 0, 1), (39, 48, 1, 2))
    facts = [
        *given(1, 2, 3),
        ev.PartitionDescribed(cleanup_policy="compact"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 20, 13, False),
        ev.BecameLeader(1, 0, 20, 13),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 7, 7),
        *([elected(3, 2), ev.BecameLeader(3, 2, 48, 48)] if leads == 3 else []),
        *(copy(r, *log, mark=48) for r in (1, 2, 3)),
    ]
    losses = view_of(told(facts)).losses
    assert {x.status for x in losses if x.first_offset <= 9 < x.end_offset} == {status}


@pytest.mark.parametrize(("first", "found"), [(3, "UNKNOWN"), (0, "HOLDS")])
def test_what_compaction_took_is_in_doubt_where_nothing_tells_of_the_first_leaders(
    first: int, found: str
) -> None:
    """Before leader epochs, and the older lines are gone: a leader may have begun below it."""
    facts = [
        *given(1, version="0.10.2.2"),
        ev.PartitionDescribed((1, 2), cleanup_policy="compact"),
        elected(2, first, "unknown", (1, 2)),
        ev.RecordsAcknowledged(3, 4, "1", None, None, 2),
        *(
            ev.ReplicaLogObserved(r, 0, 9, (Span(8, 9, None, 5),), 9, None, None, True)
            for r in (1, 2)
        ),
    ]
    assert verdict(facts, ACKNOWLEDGED) == found


@pytest.mark.parametrize(
    ("kind", "filed", "written_in", "found"),
    [
        ("unclean", False, 0, "UNKNOWN"),
        ("unclean", False, None, "UNKNOWN"),
        ("unclean", True, 0, "HOLDS"),
        ("clean", False, 0, "HOLDS"),
    ],
)
def test_below_what_compaction_left_of_an_epoch_its_leader_may_have_begun(
    kind: str, filed: bool, written_in: int | None, found: str
) -> None:
    """What is left of epoch 1 begins at 12, of epoch 0 it ends at 2; offset 6 is compacted. The
    leader's own epoch file would tell where it began."""
    held = (Span(0, 2, 0, 0), Span(12, 20, 1, 0))
    file = (EpochEntry(0, 0), EpochEntry(1, 12)) if filed else None
    facts = [
        *given(1, 2, 3),
        ev.PartitionDescribed(cleanup_policy="compact"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(6, 7, "all", written_in, 0, leader=1),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1, kind, (2,)),
        ev.BecameLeader(2, 1),
        *(ev.ReplicaLogObserved(r, 0, 20, held, 20, None, file, True) for r in (1, 2, 3)),
    ]
    assert verdict(facts) == found
