"""The step that took a record: by term, by cut and by disk, each alone."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from replication.evidence.joining.copies import UNSEEN_CONTENT
from replication.protocol.folding.fold import apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import Promise, State
from replication.protocol.judgement import loss_cause
from replication.protocol.judgement.absence import Absence
from replication.protocol.judgement.contract import contract_of
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.loss_cause import borders, cause_of, losing_term
from replication.protocol.judgement.lost_record import Lost, lacks
from tests.protocol.judgement.told import ACKNOWLEDGED, copy, elected, given, told, verdict

RECORD = Span(3, 4, 0, 0)


def story(
    kind: str, start: int, isr: tuple[int, ...] = (1, 2, 3), covered: tuple[int, ...] = (1, 2, 3)
) -> list[ev.Fact]:
    """Broker 1 led with five records; broker 2 takes over from this offset on."""
    return [
        *given(*covered),
        elected(1, 0, "initial", isr),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, kind),
        ev.BecameLeader(2, 1, start, 0),
        copy(2, (0, start, 0, 0), (start, 9, 1, 0), mark=9),
    ]


def test_the_term_whose_leader_began_below_the_record_lost_it() -> None:
    state = told(story("clean", 3))
    term = losing_term(state, Lost(RECORD, "acknowledged_by_leader", None), [])
    assert term is not None
    assert (term.leader, term.leader_epoch) == (2, 1)
    assert 3 in borders(state)
    kept = told(story("clean", 5))
    assert losing_term(kept, Lost(RECORD, "acknowledged_by_leader", None), []) is None


def test_only_the_leader_had_promised_it() -> None:
    state = told(story("clean", 3))
    assert cause_of(state, RECORD, "acknowledged_by_leader", []).name == "acks_one_failover"


def test_a_leader_of_whom_no_line_tells_may_have_lost_it_from_its_disk() -> None:
    state = told(story("clean", 3, covered=(1, 3)))
    assert cause_of(state, RECORD, "acknowledged_by_leader", []).name == "unknown"


def test_a_cause_that_rests_on_what_a_leader_had_is_not_told_where_nothing_shows_that() -> None:
    """Broker 3 was elected uncleanly after broker 2 had failed to get it from the first leader: it
    lost the record only if it had it, and what it had is not known."""
    facts = [
        *story("clean", 3, covered=(1, 2))[:-1],
        elected(3, 2, "unclean", (3,)),
        elected(1, 3, "unclean", (1,)),
        ev.BecameLeader(1, 3, 3, 0),
    ]
    cause = cause_of(told(facts), RECORD, "acknowledged_by_leader", [])
    assert (cause.name, cause.contributing) == (
        "unknown",
        ("acks_one_failover", "storage_loss", "unclean_election"),
    )
    began = [*facts[:-2], ev.BecameLeader(3, 2, 3, 0), *facts[-2:]]
    assert cause_of(told(began), RECORD, "acknowledged_by_leader", []).name == "acks_one_failover"


@pytest.mark.parametrize(("covered", "name"), [
    ((1, 2, 3), "truncate_to_high_watermark"), ((1, 3), "unknown"),
])  # fmt: skip
def test_who_was_cut_by_a_leader_that_may_have_lacked_it_is_not_to_blame(
    covered: tuple[int, ...], name: str
) -> None:
    """Broker 1 follows broker 2 and is cut, then leads again. With what broker 2 had begun no line
    tells: it may have lost the record from its disk."""
    facts = [
        *given(*covered, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "clean"),
        ev.BecameFollower(1, 1, 2, 5, 0),
        ev.Truncated(1, 3, 5, "high_watermark"),
        elected(1, 2, "clean"),
        ev.BecameLeader(1, 2, 3, 0),
        copy(1, (0, 3, 0, 0), (3, 9, 2, 0), mark=9),
    ]
    assert cause_of(told(facts), RECORD, "acknowledged_by_isr", []).name == name


@pytest.mark.parametrize(("left", "name"), [
    (0, "unknown"), (3, "truncate_to_high_watermark"), (None, "truncate_to_high_watermark"),
])  # fmt: skip
def test_what_a_follower_cut_and_was_to_fetch_again_it_may_have_lost_with_its_disk(
    left: int | None, name: str
) -> None:
    """Broker 1 follows broker 2 and is cut, comes back with that many records, and leads again."""
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "clean"),
        ev.BecameFollower(1, 1, 2, 5, 0),
        ev.Truncated(1, 3, 5, "high_watermark"),
        elected(1, 2, "clean"),
        ev.BecameLeader(1, 2, 3 if left is None else left, 0),
        copy(1, (0, 3, 0, 0), (3, 9, 2, 0), mark=9),
    ]
    if left is not None:
        stopped = ev.ReplicaStopped(1, "process_crash")
        facts[-3:-3] = [stopped, ev.ReplicaStarted(1, 0, left, None, False)]
    assert cause_of(told(facts), RECORD, "acknowledged_by_isr", []).name == name


@pytest.mark.parametrize(("covered", "name"), [
    ((1, 2, 3), "out_of_range_reset"), ((1, 3), "unknown"),
])  # fmt: skip
def test_what_is_out_of_range_its_leader_may_have_lost_itself(
    covered: tuple[int, ...], name: str
) -> None:
    """Broker 2 wrote the record in epoch 1; by its log's end broker 1 cuts, which leads then."""
    facts = [
        *given(*covered, version="0.10.2.2"),
        elected(2, 1, "clean"),
        ev.BecameLeader(2, 1),
        ev.BecameFollower(1, 1, 2, 5, 0),
        ev.Truncated(1, 3, 5, "out_of_range"),
        elected(1, 2, "clean"),
        ev.BecameLeader(1, 2, 3, 0),
        copy(1, (0, 3, 0, 0), (3, 9, 2, 0), mark=9),
    ]
    record = Span(3, 4, 1, 0)
    assert cause_of(told(facts), record, "acknowledged_by_isr", []).name == name


@pytest.mark.parametrize(("covered", "again", "name"), [
    ((1, 2, 3), False, "unclean_election"), ((1, 2, 3), True, "unknown"),
    ((1, 3), False, "unknown"),
])  # fmt: skip
def test_what_was_out_of_range_of_a_leader_elected_beside_the_isr_that_election_took(
    covered: tuple[int, ...], again: bool, name: str
) -> None:
    """Before epochs no line tells from where a leader began: its end, as a follower found it, does,
    unless it came back from a crash in between. Broker 1 wrote it, cuts it, and leads next."""
    crashed = [
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaStarted(2, 0, 3, None, False),
    ]
    facts = [
        *given(*covered, version="0.10.2.2"),
        elected(1, 0, "initial", (1,)),
        ev.BecameLeader(1, 0),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1),
        *(crashed if again else []),
        ev.BecameFollower(1, 1, 2, 5, 0),
        ev.Truncated(1, 3, 5, "out_of_range"),
        elected(1, 2, "clean", (1, 2)),
        ev.BecameLeader(1, 2, 3, 0),
        copy(1, (0, 3, 0, 0), (3, 9, 2, 0), mark=9),
    ]
    assert cause_of(told(facts), RECORD, "acknowledged_by_isr", []).name == name


def test_a_leader_that_came_back_short_from_a_crash_may_have_had_it() -> None:
    """Broker 2 follows, crashes, and comes back with nothing before it leads."""
    crashed = story("clean", 3)
    crashed[4:4] = [
        ev.BecameFollower(2, 0, 1),
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaStarted(2, 0, 0, None, False),
    ]
    crashed.insert(4, ev.ReplicaStarted(2, 0, 0, None, True))
    assert cause_of(told(crashed), RECORD, "acknowledged_by_leader", []).name == "unknown"


def test_an_unclean_election_outside_the_isr_took_it() -> None:
    cause = cause_of(told(story("unclean", 3, (1, 3))), RECORD, "acknowledged_by_isr", [])
    assert (cause.name, cause.contributing) == ("unclean_election", ())
    assert cause.election is not None
    assert cause.election.leader == 2


def test_who_leads_on_without_the_record_was_elected_without_it() -> None:
    """That a high watermark was learned as late as in epoch 1 does not make epoch 2 the culprit."""
    facts = story("unclean", 3, (1, 3))
    facts[-1:] = [elected(2, 2, "same_leader"), ev.BecameLeader(2, 2, 9, 3), *facts[-1:]]
    lost = Lost(Span(3, 4, None, 7), "committed", (1, 1 << 30))
    found = losing_term(told(facts), lost, [])
    assert found is not None
    assert (found.leader_epoch, found.election_kind) == (1, "unclean")


def test_what_the_leader_before_still_holds_the_unclean_election_took() -> None:
    """Before leader epochs: that the new leader had cut its log before is no cause."""
    state = without_epochs(
        (10, elected(1, 0, "initial", (1,))),
        (20, ev.BecameLeader(1, 0)),
        (21, ev.BecameFollower(2, 0, 1)),
        (22, ev.Truncated(2, 3, None, "high_watermark")),
        (30, ev.LeadershipRecorded(2, 1, (2,), 1, "unclean")),
        (40, ev.BecameLeader(2, 1)),
        (50, ev.ReplicaLogObserved(1, 0, 5, (Span(0, 5, None, 0),), 5, None, (), True)),
        (50, ev.ReplicaLogObserved(2, 0, 4, (Span(0, 3, None, 0), Span(3, 4, None, 1)), 4, None,
                                   (), True)),
    )  # fmt: skip
    promise = Promise(Span(3, 4, None, 0), (1, 1 << 30), "checkpoint", "a", 1)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]
    assert cause_of(state, Span(3, 4, None, 0), "committed", gone).name == "unclean_election"


def test_what_an_unclean_election_brought_back_it_did_not_take() -> None:
    """Broker 1 began epoch 1 without the record that broker 2 has and leads with again."""
    state = told([
        *given(1, 2, 3),
        elected(2, 0, "initial", (1, 2)),
        ev.BecameLeader(2, 0, 0, 0),
        elected(1, 1, "clean", (1,)),
        ev.BecameFollower(2, 1, 1, 5, 0),
        ev.BecameLeader(1, 1, 3, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 2, "unclean", (2,)),
        ev.BecameLeader(2, 2, 5, 0),
        *(copy(r, (0, 5, 0, 0), (5, 6, 2, 0), mark=6) for r in (1, 2)),
    ])  # fmt: skip
    lost = Lost(RECORD, "acknowledged_by_leader", (0, 1 << 30))
    found = losing_term(state, lost, [])
    assert found is None or found.leader_epoch != 2


def test_what_the_last_leader_wrote_itself_no_election_took() -> None:
    """Gone from its own log: it took over before the record was written."""
    lost = Lost(Span(10, 11, 1, 0), "committed", None)

    assert losing_term(told(story("unclean", 5)), lost, []) is None


def without_epochs(*facts: tuple[int, ev.Fact]) -> State:
    """Of a release without leader epochs in records; each fact with when it was, in ms."""
    state = new_state("", "t", "", 0)
    described = ev.PartitionDescribed((1, 2), 1, False, "delete", "0.10.2.2", None, "zookeeper")
    covered = [(0, ev.CoverageDeclared("broker_log", r, True)) for r in (1, 2)]
    for n, (at, fact) in enumerate([(0, described), *covered, *facts]):
        apply(state, ev.Event(str(n), "trace", "", "t", "", 0, n, fact, at, "forensic"))
    return state


def absent(told_at: int) -> list[Absence]:
    """An acknowledgement at acks=1 of a record that no copy shows."""
    promise = Promise(Span(5, 6, None, 9), None, "acks_1", "a", None, told_at)
    return [Absence(5, 6, promise, None, back=False, final=True)]


GONE = Span(5, 6, None, 9)


@pytest.mark.parametrize("later", [False, True])
def test_the_first_change_of_leader_by_a_clock_is_no_cause_where_a_later_one_may_be(
    later: bool,
) -> None:
    """Nothing tells what broker 1 had as it took over, nor who led in epoch 2; later it comes back
    with nothing, and an election beside the ISR makes it lead."""
    beside = (
        (40, ev.ReplicaStopped(1, "process_crash")),
        (50, elected(2, 3, "unknown", (2,))),
        (60, ev.ReplicaStarted(1, 0, 0, None, False)),
        (70, elected(1, 4, "unclean", (1,))),
        (80, ev.BecameLeader(1, 4)),
    )
    state = without_epochs(
        (5, ev.CoverageDeclared("broker_log", 2, False)),
        (10, elected(2, 0, "initial", (1, 2))),
        (12, ev.BecameFollower(1, 0, 2)),
        (20, elected(1, 1, isr=(1,))),
        (30, ev.BecameLeader(1, 1)),
        *(beside if later else ()),
    )
    (gone,) = absent(15)
    gone = [replace(gone, promise=replace(gone.promise, replica=2))]
    found = cause_of(state, GONE, "acknowledged_by_leader", gone).name
    assert found == ("unknown" if later else "acks_one_failover")


@pytest.mark.parametrize("had", [None, 6])
def test_a_cut_from_before_the_record_was_told_of_did_not_take_it(had: int | None) -> None:
    """Broker 1 cuts to 2 as a follower, leads, answers for offset 5, dies, and leads again at 5.

    What broker 2 answered for at acks=1 the cut took only where it had been fetched.
    """
    state = without_epochs(
        (10, elected(2, 0, "initial")),
        (10_000, ev.BecameFollower(1, 0, 2)),
        (10_001, ev.Truncated(1, 2, had, "high_watermark")),
        (20_000, elected(1, 1)),
        (20_000, ev.BecameLeader(1, 1)),
        (31_000, ev.ReplicaStopped(1, "process_crash")),
        (32_000, ev.ReplicaStarted(1, 0, 5, None, False)),
        (33_000, elected(1, 2, "same_leader", (1,))),
        (33_000, ev.BecameLeader(1, 2)),
    )
    cause = cause_of(state, GONE, "acknowledged_by_leader", absent(30_000))
    assert cause.name == "storage_loss"
    assert cause.lossy == {1}
    before = cause_of(state, GONE, "acknowledged_by_leader", absent(9_000))
    name = "truncate_to_high_watermark"
    assert (before.name, before.contributing) == ((name, ()) if had else ("unknown", (name,)))


def test_a_cut_at_the_start_of_the_records_own_epoch_did_not_take_it_later() -> None:
    """Broker 1 is back and cuts to 2 as it follows broker 2 in epoch 1 again, in which offset 5 is
    told of much later; both lose their power, and broker 1 leads without it."""
    state = without_epochs(
        (10, elected(1, 0, "initial")),
        (20, ev.BecameLeader(1, 0)),
        (9_000, elected(2, 1)),
        (9_100, ev.BecameLeader(2, 1)),
        (9_200, ev.BecameFollower(1, 1, 2)),
        (9_900, ev.ReplicaStarted(1, 0, None, None, True)),
        (10_000, ev.BecameFollower(1, 1, 2)),
        (10_001, ev.Truncated(1, 2, None, "high_watermark")),
        (31_000, ev.ReplicaStopped(1, "process_crash")),
        (31_000, ev.ReplicaStopped(2, "process_crash")),
        (32_000, ev.ReplicaStarted(1, 0, 5, None, False)),
        (33_000, elected(1, 2, "clean", (1,))),
        (33_000, ev.BecameLeader(1, 2)),
    )
    record = GONE._replace(leader_epoch=1)
    told_of = Promise(record, (1, 0), "acks_all", "a", None, 30_000)
    gone = [Absence(5, 6, told_of, None, back=False, final=True)]
    found = cause_of(state, record, "acknowledged_by_isr", gone)
    assert "truncate_to_high_watermark" not in (found.name, *found.contributing)
    before = [replace(gone[0], promise=replace(told_of, observed_at=9_500))]
    name = cause_of(state, record, "acknowledged_by_isr", before).name
    assert name == "truncate_to_high_watermark"


def test_who_leads_on_with_a_longer_log_that_only_it_wrote_has_lost_nothing_yet() -> None:
    """Broker 1 crashes twice in its epoch; the second time it comes back without offset 5."""
    state = without_epochs(
        (10, elected(1, 0, "initial")),
        (20, ev.BecameLeader(1, 0)),
        (31_000, ev.ReplicaStopped(1, "process_crash")),
        (32_000, ev.ReplicaStarted(1, 0, 6, None, False)),
        (33_000, ev.BecameLeader(1, 0)),
        (41_000, ev.ReplicaStopped(1, "process_crash")),
        (42_000, ev.ReplicaStarted(1, 0, 5, None, False)),
        (43_000, ev.BecameLeader(1, 0)),
    )
    cause = cause_of(state, GONE, "acknowledged_by_leader", absent(30_000))
    assert (cause.name, cause.lossy) == ("storage_loss", {1})
    assert cause.term is not None
    assert cause.term.occurrence == 2


def test_who_led_with_it_and_leads_next_without_lost_it_from_its_disk() -> None:
    """Of offset 12 only a high watermark tells, which broker 1 had reached in epoch 1."""
    facts = [
        *given(1, 2, 3),
        elected(2, 0, "initial"),
        ev.BecameLeader(2, 0, 0, 0),
        elected(1, 1, "clean"),
        ev.BecameLeader(1, 1, 10, 10),
        elected(1, 3, "clean", (1,)),
        ev.BecameLeader(1, 3, 0, 0),
    ]
    record = Span(12, 13, None, None)
    promise = Promise(record, (1, 1 << 30), "checkpoint", "a", 2)
    gone = [Absence(12, 13, promise, None, back=False, final=True)]
    assert cause_of(told(facts), record, "committed", gone).name == "storage_loss"
    place = next(n for n, fact in enumerate(facts) if fact == elected(1, 1, "clean"))
    facts[place] = elected(1, 1, "unclean")
    assert cause_of(told(facts), record, "committed", gone).name == "unknown"


def test_a_leader_that_starts_again_in_an_epoch_that_has_passed_led_under_its_last_isr() -> None:
    """Broker 1 stood alone in epoch 0 when it lost its disk; its line comes after epoch 1's."""
    facts = [
        ev.PartitionDescribed((1, 2), 2, False, "delete", "1.1.1", None, "zookeeper"),
        ev.CoverageDeclared("broker_log", 1, True),
        ev.LeadershipRecorded(1, 0, (1, 2), 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeadershipRecorded(1, 0, (1,), 1),
        ev.ReplicaStopped(1, "process_crash"),
        ev.LeadershipRecorded(1, 1, (1,), 2, "same_leader"),
        ev.ReplicaStarted(1, 0, 0, None, False),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameLeader(1, 1, 0, 0),
    ]
    state = told(facts)
    again = next(t for t in state.history.terms if t.order == (0, 1))
    assert again.isr_before == (1,)
    promise = Promise(Span(5, 6, 0, 9), None, "acks_all", "a", None, 5)
    gone = [Absence(5, 6, promise, again, back=False, final=True)]
    cause = cause_of(state, promise.span, "acknowledged_by_isr", gone)
    assert cause.name == "last_replica_standing"


def test_who_alone_can_have_written_a_record_still_has_it_when_it_leads_again() -> None:
    """Broker 1 wrote offset 5 anew in epoch 1, and leads with it in epoch 3; no copy shows it."""
    facts = [
        *given(1, 2, 3),
        elected(2, 0, "initial"),
        ev.BecameLeader(2, 0, 0, 0),
        ev.BecameFollower(2, 1, 1, 8, 5),
        elected(1, 1, "preferred"),
        ev.BecameLeader(1, 1, 5, 5),
        ev.BecameFollower(1, 2, 2, 7, 5),
        elected(2, 2, "preferred"),
        ev.BecameLeader(2, 2, 8, 5),
        elected(1, 3, "clean", (1,)),
        ev.BecameLeader(1, 3, 7, 5),
        elected(2, 4, "unclean", (2,)),
        ev.BecameLeader(2, 4, 9, 5),
        copy(2, (0, 8, 0, 0), (8, 9, 2, 0), (9, 12, 4, 0)),
    ]
    promise = Promise(Span(5, 6, None, 9), None, "acks_all", "a", None, 5)
    gone = [Absence(5, 6, promise, None, back=False, final=True)]
    cause = cause_of(told(facts), promise.span, "acknowledged_by_isr", gone)
    assert cause.name == "unclean_election"
    assert cause.term is not None
    assert cause.term.leader_epoch == 4


def test_a_leader_that_leads_on_answers_for_what_it_wrote_before() -> None:
    """Broker 2 was elected in between and never reached it: by offset alone nothing is lost."""
    facts = [
        *given(1, 2),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1),
        ev.BecameLeader(2, 1, 0, 0),
        elected(1, 2, "clean", (1,)),
        ev.BecameLeader(1, 2, 1, 0),
        ev.RecordsAcknowledged(0, 1, "all"),
        copy(1, (0, 1, 0, 0)),
    ]
    assert verdict(facts, ACKNOWLEDGED) != "VIOLATED"


def test_a_leader_that_leads_on_after_an_epoch_unseen_has_what_it_had() -> None:
    """Broker 1 stops cleanly with the record, and leads on from epoch 0 in epoch 2; of epoch 1
    nothing is told. Broker 2 is elected beside the ISR without offset 5."""
    state = without_epochs(
        (10, elected(1, 0, "initial")),
        (20, ev.BecameLeader(1, 0)),
        (30_001, ev.ReplicaStopped(1, "clean")),
        (30_002, ev.ReplicaStarted(1, 0, 6, None, True)),
        (30_003, ev.BecameLeader(1, 0)),
        (31_000, elected(1, 2, "unknown", (1,))),
        (31_001, ev.BecameLeader(1, 2)),
        (41_000, elected(2, 3, "unclean", (2,))),
        (41_001, ev.BecameLeader(2, 3, 4, 4)),
    )
    promise = Promise(GONE, (0, 0), "checkpoint", "x", 1, 30_000)
    cause = cause_of(state, GONE, "committed", [Absence(5, 6, promise, None, False, True)])

    assert cause.name == "unclean_election"


@pytest.mark.parametrize(
    ("tier", "version", "cause"),
    [
        ("committed", "3.9.1", "unclean_election"),
        ("committed", "2.8.0", "unknown"),
        ("acknowledged_by_leader", "3.9.1", "unknown"),
    ],
)
def test_a_leader_from_the_isr_with_a_longer_log_had_what_was_committed(
    tier: str, version: str, cause: str
) -> None:
    """Broker 2 led epoch 1 from offset 5, with records that nobody saw; broker 3 was elected beside
    the ISR with three. The rules of 2.8.0 let a follower join with others' records."""
    facts = [
        *given(1, 2, 3, version=version),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "clean", (2,)),
        ev.BecameLeader(2, 1, 5, 4),
        elected(3, 2, "unclean", (3,)),
        ev.BecameLeader(3, 2, 3, 3),
        ev.BecameFollower(2, 2, 3, 7, 5),
        ev.Truncated(2, 3, 7, "leader_epoch"),
        copy(3, (0, 3, 0, 0), (3, 9, 2, 0), mark=9),
    ]
    promise = Promise(RECORD, (0, 1 << 30), "checkpoint", "a", 1)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]

    assert cause_of(told(facts), RECORD, tier, gone).name == cause


def restarted(leader: int, leader_epoch: int, end: int) -> list[ev.Fact]:
    """A leader that crashed leads again with so much."""
    return [
        ev.ReplicaStopped(leader, "process_crash"),
        ev.ReplicaStarted(leader, 0, end, None, False),
        elected(leader, leader_epoch, "clean", (leader,)),
        ev.BecameLeader(leader, leader_epoch, end, end),
    ]


def lost_from_its_disk_alone() -> State:
    """Nobody saw a record that two brokers had; the second leads from above it, loses it with its
    disk, and leads without it twice: it may have written it in between. A fact a second."""
    facts = [
        *given(1, 2, 3, version="3.9.1"),
        elected(1, 0, "initial", (1, 2)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(3, 4, "all", content=7, leader=1),
        elected(2, 1, "clean", (2,)),
        ev.BecameLeader(2, 1, 4, 3),
        *restarted(2, 2, 3),
        *restarted(2, 3, 3),
        elected(1, 4, "clean", (1,)),
        ev.BecameLeader(1, 4, 9, 9),
        copy(1, (0, 3, 0, 0), (3, 9, 3, 0)),
        copy(2, (0, 3, 0, 0), (3, 9, 3, 0)),
    ]
    state = new_state("", "t", "", 0)
    for n, fact in enumerate(facts):
        known = ev.Event(str(n), "trace", "", "t", "", 0, n, fact, n * 1_000, "forensic")
        apply(state, known)
    return state


def test_a_leader_from_the_isr_with_a_longer_log_is_not_who_lost_it() -> None:
    """Which epoch wrote the record is not known: by time alone the first change would be it."""
    (loss,) = answer(lost_from_its_disk_alone()).losses
    assert (loss["cause"], loss["leader_epoch"]) == ("storage_loss", None)


@pytest.mark.parametrize(
    ("version", "clean", "cause"),
    [
        ("3.9.1", False, "storage_loss"),
        ("3.9.1", True, "unknown"),
        ("2.8.0", False, "unknown"),
    ],
)
def test_what_a_member_of_the_isr_had_to_have_and_came_back_without_its_disk_lost(
    version: str, clean: bool, cause: str
) -> None:
    """Nobody saw how much broker 2 had: by the release's rules, all that was acknowledged."""
    facts = [
        *given(1, 2, 3, version=version),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(3, 4, "all", 0, 0, leader=1),
        ev.BecameFollower(2, 0, 1),
        ev.ReplicaStopped(2, "clean" if clean else "process_crash"),
        ev.ReplicaStarted(2, 0, 3, None, clean),
        elected(2, 1),
        ev.BecameLeader(2, 1, 3, 3),
        copy(2, (0, 3, 0, 0), (3, 9, 1, 0), mark=9),
    ]
    promise = Promise(RECORD, (0, 0), "acks_all", "a", 1)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]

    assert cause_of(told(facts), RECORD, "acknowledged_by_isr", gone).name == cause


def test_where_nobody_else_is_known_to_have_led_no_failover_lost_a_record_of_acks_1() -> None:
    """The older lines are gone: broker 2 may have answered itself, and lost its disk since."""

    def cause(*before: ev.Fact) -> str:
        facts = [
            *given(1, 2),
            *before,
            elected(2, 3, "clean", (2,)),
            ev.BecameLeader(2, 3, 0, 0),
            copy(2, (0, 9, 3, 0), mark=9),
        ]
        promise = Promise(RECORD, None, "acks_1", "a", None)
        gone = [Absence(3, 4, promise, None, back=False, final=True)]
        return cause_of(told(facts), RECORD, "acknowledged_by_leader", gone).name

    assert cause() == "unknown"
    assert cause(elected(1, 0, "initial"), ev.BecameLeader(1, 0, 0, 0)) == "acks_one_failover"


@pytest.mark.parametrize(("first", "cause"), [(0, "unclean_election"), (2, "unknown")])
def test_the_first_leader_that_is_known_may_have_taken_over_from_another(
    first: int, cause: str
) -> None:
    """The older half of the lines is gone: who answered may have led before the first known epoch,
    and a clean election may have lost the record then."""
    facts = [
        *given(1),
        elected(2, first, "initial" if first == 0 else "unknown", (2,)),
        elected(1, first + 2, "unclean", (1,)),
        elected(2, first + 4, "unclean", (2,)),
        ev.BecameLeader(2, first + 4, 7, 3),
        copy(2, (0, 3, 0, 0), (3, 7, first, 0), (7, 9, first + 4, 0), mark=9),
    ]
    state = told(facts)
    for at, term in enumerate(state.history.terms, 1):
        term.observed_at = at * 10_000
    record = Span(3, 4, None, 5)
    promise = Promise(record, None, "acks_1", "a", 1, 5_000)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]
    assert cause_of(state, record, "acknowledged_by_leader", gone).name == cause


@pytest.mark.parametrize(("version", "start", "end", "cause"), [
    ("0.10.2.2", 5, 9, "unknown"), ("1.1.1", 5, 9, "unknown"), ("2.8.1", 5, 9, "acks_one_failover"),
    ("0.10.2.2", 3, 9, "acks_one_failover"),
    # Where its log ended as it was elected only its next start tells: broker 1 had cut its own.
    ("0.10.2.2", None, 9, "unknown"), ("0.10.2.2", None, 1, "acks_one_failover"),
])  # fmt: skip
def test_what_a_member_of_the_isr_has_another_record_for_may_have_been_committed(
    version: str, start: int | None, end: int, cause: str
) -> None:
    """Broker 3 answered. Broker 1 was in its ISR, and elected, with what it had written before."""
    facts = [
        *given(1, 2, 3, version=version),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(3, 1),
        ev.BecameLeader(3, 1, 3, 3),
        ev.BecameFollower(1, 1, 3, end, 0),
        ev.Truncated(1, min(3, end), end, "high_watermark"),
        elected(1, 2),
        ev.BecameLeader(1, 2, start, start),
        *([] if start is not None else [ev.BecameLeader(1, 2, 9, 9)]),
        *([copy(1, (0, 5, 0, 9), (5, 9, 2, 0), mark=9)] if start == 5 else []),
    ]
    record = RECORD._replace(leader_epoch=1)
    promise = Promise(record, (1, 0), "acks_1", "a", 3)
    gone = [Absence(3, 4, promise, told(facts).history.terms[2], back=False, final=True)]
    assert cause_of(told(facts), record, "acknowledged_by_leader", gone).name == cause


@pytest.mark.parametrize(("answered", "cause"), [(2, "unknown"), (3, "acks_one_failover")])
def test_what_another_broker_answered_for_a_failover_lost(answered: int, cause: str) -> None:
    """Broker 2 led when the producer was told, by the clocks, and leads again without the record;
    a leader that was deposed and not aware of it may have answered."""
    facts = [
        *given(2),
        elected(3, 0, "initial"),
        elected(2, 1),
        ev.BecameLeader(2, 1),
        *restarted(2, 3, 3),
        copy(2, (0, 3, 0, 0), (3, 9, 3, 0), mark=9),
    ]
    state = told(facts)
    for at, term in enumerate(state.history.terms):
        term.observed_at = at * 10_000
    record = RECORD._replace(leader_epoch=None)
    promise = Promise(record, None, "acks_1", "a", answered, 15_000)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]

    assert cause_of(state, record, "acknowledged_by_leader", gone).name == cause
    lost = Lost(record, "acknowledged_by_leader", None, 15_000, answered)
    again = state.history.terms[-1]
    assert loss_cause._restarted_short(state, lost, again) is (answered == 2)


@pytest.mark.parametrize(("told_at", "cause"), [(20_000, "acks_one_failover"),
                                                (500, "unclean_election")])  # fmt: skip
def test_what_a_deposed_leader_took_the_last_known_leader_lacked_when_it_deposed_it(
    told_at: int, cause: str
) -> None:
    """Broker 2 was elected cleanly and crashed before it led; broker 1 had not heard of it and
    answered on. That broker 2 is elected again, from no ISR any more, changes nothing."""
    facts = [
        *given(1, 2, version="4.1.1"),
        elected(1, 0, "initial", (1, 2)),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "clean", (2,)),
        ev.LeadershipRecorded(None, 2, (), 2),
        ev.ReplicaStarted(2, 0, 3, 3, False),
        elected(2, 3, "last_known_leader", (2,)),
        ev.BecameLeader(2, 3, 3, 0),
        copy(2, (0, 3, 0, 0), (3, 9, 3, 0), mark=9),
    ]
    state = told(facts)
    for term in state.history.terms:
        term.observed_at = term.leader_epoch * 10_000
    promise = Promise(RECORD, None, "acks_1", "a", 1, told_at)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]

    assert cause_of(state, RECORD, "acknowledged_by_leader", gone).name == cause


def test_a_writer_that_once_began_below_its_record_has_it_no_more_when_it_leads_on() -> None:
    """Broker 2 answered for offset 5 in epoch 1, crashed, and came back with five records; it leads
    again, and on, with others there. Nobody saw how far its log had reached."""
    facts = [
        *given(2, 3),
        elected(3, 0, "initial", (2, 3)),
        ev.BecameLeader(3, 0, 0, 0),
        elected(2, 1, "clean", (2,)),
        ev.BecameLeader(2, 1, 2, 2),
        elected(3, 3, "unclean", (3,)),
        ev.BecameLeader(3, 3, 2, 2),
        ev.ReplicaStarted(2, 0, 5, 0, False),
        elected(2, 9, "unclean", (2,)),
        ev.BecameLeader(2, 9, 5, 2),
        elected(2, 10, "same_leader", (2,)),
        ev.BecameLeader(2, 10, 8, 2),
        copy(2, (0, 2, 0, 0), (2, 5, 1, 1), (5, 9, 9, 2), mark=9),
    ]
    promise = Promise(Span(5, 6, 1, 7), (1, 1 << 30), "acks_all", "a", None, 5)
    gone = [Absence(5, 6, promise, None, back=False, final=True)]
    cause = cause_of(told(facts), promise.span, "acknowledged_by_isr", gone)
    # The only member of the ISR had lost it: nobody would have led with it.
    assert (cause.name, cause.election and cause.election.leader_epoch) == ("storage_loss", 3)


@pytest.mark.parametrize(("leader", "cause"), [(1, "premature_high_watermark"), (3, "unknown")])
def test_a_leader_that_slept_through_an_epoch_answered_for_what_it_wrote_itself(
    leader: int, cause: str
) -> None:
    """Broker 2 was elected in epoch 2; broker 1 leads on in epoch 3 and had not heard of it."""
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        *([elected(3, 1), ev.BecameLeader(3, 1, 3, 0)] if leader == 3 else []),
        elected(2, 2, "clean"),
        ev.BecameLeader(2, 2, 3, 0),
        elected(1, 3, "clean"),
        ev.BecameLeader(1, 3, 9, 0),
    ]
    state = told(facts)
    state.history.terms[-1].leads_on = True
    lost = Lost(RECORD._replace(leader_epoch=0 if leader == 1 else 1), "acknowledged_by_isr", None)
    assert loss_cause._by_known_defect(state, lost, None) == cause


@pytest.mark.parametrize(
    ("told_at", "answered", "cause"),
    [
        (15_000, 1, "acks_one_failover"),
        (15_000, None, "truncate_to_high_watermark"),
        (10_500, 1, "truncate_to_high_watermark"),
    ],
)
def test_before_epochs_what_a_deposed_leader_answered_for_its_successor_never_had(
    told_at: int, answered: int | None, cause: str
) -> None:
    """Broker 1 slept, answered, heard that broker 2 leads and cut; later it leads again."""
    state = without_epochs(
        (10, elected(1, 0, "initial", (1, 2))),
        (20, ev.BecameLeader(1, 0)),
        (10_000, elected(2, 1)),
        (10_010, ev.BecameLeader(2, 1)),
        (16_000, ev.BecameFollower(1, 1, 2)),
        (16_010, ev.Truncated(1, 4, 7, "high_watermark")),
        (30_000, elected(1, 2)),
        (30_010, ev.BecameLeader(1, 2)),
    )
    record = Span(5, 6, None, 7)
    promise = Promise(record, None, "acks_1", "a", answered, told_at)
    gone = [Absence(5, 6, promise, None, back=False, final=True)]
    assert cause_of(state, record, "acknowledged_by_leader", gone).name == cause


@pytest.mark.parametrize(("ahead", "deposed"), [(0, True), (100_000, False)])
def test_clocks_that_run_against_leader_epochs_tell_of_no_deposed_leader(
    ahead: int, deposed: bool
) -> None:
    """The broker that told of the first term is minutes ahead of the one that told of the next."""
    state = without_epochs(
        (10 + ahead, elected(1, 0, "initial", (1, 2))),
        (20 + ahead, ev.BecameLeader(1, 0)),
        (10_000, elected(2, 1)),
        (10_010, ev.BecameLeader(2, 1)),
        (10_020, elected(1, 2)),
        (10_030, ev.BecameLeader(1, 2)),
        (10_040, elected(2, 3)),
        (10_050, ev.BecameLeader(2, 3)),
    )
    lost = Lost(Span(5, 6, None, 7), "acknowledged_by_leader", None, 15_000, 1)
    assert (loss_cause._deposed_by_then(state, lost) is not None) == deposed


def test_who_cut_it_on_the_word_of_a_leader_without_it_lacks_it() -> None:
    """Broker 2 lacks the record by its unclean election; broker 1 cuts it, follows and leads from
    above it, until its disk is empty: what stood there nobody saw, but it was broker 2's."""
    facts = [
        *given(1, 2),
        elected(1, 0, "initial", (1,)),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 3, 3),
        ev.BecameFollower(1, 1, 2, 5, 3),
        ev.Truncated(1, 3, 5, "leader_epoch"),
        elected(1, 2, "clean", (1,)),
        ev.BecameLeader(1, 2, 6, 6),
    ]
    lost = Lost(RECORD, "acknowledged_by_leader", (0, 1 << 30))
    state = told(facts)
    assert lacks(state, state.history.terms[-1], lost) is True
    assert losing_term(state, lost, []) is state.history.terms[1]
    had_it = [f for f in facts if f != ev.BecameLeader(2, 1, 3, 3)]
    state = told(had_it)
    assert lacks(state, state.history.terms[-1], lost) is None


@pytest.mark.parametrize(("place", "cause"), [(5, "acks_one_failover"), (9, "unknown"),
                                              (11, "acks_one_failover")])  # fmt: skip
def test_a_crash_before_the_record_was_written_or_after_the_term_has_not_taken_it(
    place: int, cause: str
) -> None:
    """By the order of the leader's own lines: it came back short before it led in an epoch from
    before the record's, or after it had begun without the record; in between it may have had it."""
    facts = [
        *given(1, 2)[1:],
        elected(2, 0, "initial"),
        ev.BecameLeader(2, 0, 0, 0),
        elected(2, 1, "clean"),
        ev.BecameLeader(2, 1, 2, 2),
        elected(1, 2, "preferred"),
        ev.BecameLeader(1, 2, 3, 3),
        elected(2, 3, "clean"),
        ev.BecameLeader(2, 3, 3, 3),
    ]
    facts[place:place] = [
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaStarted(2, 0, 2, None, False),
    ]
    record = RECORD._replace(leader_epoch=2)
    promise = Promise(record, None, "acks_1", "a", 1)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]
    state = told([*given(1, 2)[:1], *facts])

    assert cause_of(state, record, "acknowledged_by_leader", gone).name == cause


@pytest.mark.parametrize(("covered", "kind", "cause"), [
    ((1, 2, 3), "clean", "premature_high_watermark"), ((2, 3), "clean", "unknown"),
    ((1, 2, 3), "unclean", "unknown"),
])  # fmt: skip
def test_who_leads_on_past_an_epoch_is_to_blame_only_where_nothing_else_can_be(
    covered: tuple[int, ...], kind: str, cause: str
) -> None:
    """It may have stopped where its lines have gaps; a later unclean election may have taken it."""
    facts = [
        *given(*covered),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 2, "clean"),
        ev.BecameLeader(2, 2, 3, 0),
        elected(1, 3, "clean"),
        ev.BecameLeader(1, 3, 9, 0),
        elected(3, 4, kind),
        ev.BecameLeader(3, 4, 9, 0),
    ]
    state = told(facts)
    state.history.terms[2].leads_on = True
    lost = Lost(RECORD, "acknowledged_by_isr", None)
    assert loss_cause._by_known_defect(state, lost, None) == cause


@pytest.mark.parametrize(("kind", "permitted", "cause"), [
    ("clean", True, "acks_one_failover"), ("unknown", False, "acks_one_failover"),
    ("unknown", True, "unknown"),
])  # fmt: skip
def test_a_failover_is_told_only_where_no_unclean_election_can_have_been(
    kind: str, permitted: bool, cause: str
) -> None:
    """Nothing tells which leader was the first without the record of broker 1, nor its epoch."""
    facts = [
        ev.PartitionDescribed((1, 2), 1, permitted, "delete", "2.8.1", None, "zookeeper"),
        *given(1, 2)[1:],
        elected(1, 4, "initial"),
        ev.BecameLeader(1, 4, 0, 0),
        elected(2, 5, kind),
        ev.BecameLeader(2, 5),
    ]
    promise = Promise(Span(3, 4, None, 7), None, "acks_1", "a", 1)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]
    state = told(facts)
    assert losing_term(state, Lost(promise.span, "acknowledged_by_leader", None), gone) is None
    assert cause_of(state, promise.span, "acknowledged_by_leader", gone).name == cause


def test_who_wrote_a_record_and_leads_on_was_not_elected_to_depose_itself() -> None:
    """By clocks that differ broker 1 seems to have been told of it long after epoch 1 began."""
    facts = [
        *given(1, 2),
        elected(1, 0, "initial", (1, 2)),
        ev.BecameLeader(1, 0, 0, 0),
        elected(1, 1, "same_leader", (1,)),
        ev.BecameLeader(1, 1, 5, 0),
        elected(2, 3, "unclean", (2,)),
        ev.BecameLeader(2, 3, 3, 3),
        copy(2, (0, 3, 0, 0), (3, 9, 3, 0), mark=9),
    ]
    state = told(facts)
    for term in state.history.terms:
        term.observed_at = term.leader_epoch
    promise = Promise(RECORD, None, "acks_1", "a", 1, 90_000)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]
    assert cause_of(state, RECORD, "acknowledged_by_leader", gone).name == "unclean_election"


def followed(*covered: int, version: str = "4.1.1") -> State:
    """Broker 1 wrote the record; broker 2 lacks it by its unclean election; broker 1 was taken into
    its ISR and leads from above, and nobody saw what stands there."""
    return told(
        [
            *given(*covered, version=version),
            elected(1, 0, "initial", (1,)),
            ev.BecameLeader(1, 0, 0, 0),
            elected(2, 1, "unclean", (2,)),
            ev.BecameLeader(2, 1, 3, 3),
            ev.LeadershipRecorded(2, 1, (2, 1), 2),
            elected(1, 3, "clean", (1,)),
            ev.BecameLeader(1, 3, 6, 6),
        ]
    )


@pytest.mark.parametrize(("version", "covered", "without"), [
    ("4.1.1", (1, 2), True), ("4.1.1", (2,), True), ("1.1.1", (2,), None), ("1.1.1", (1, 2), False),
])  # fmt: skip
def test_who_was_taken_into_the_isr_of_a_leader_without_it_lacks_it(
    version: str, covered: tuple[int, ...], without: bool | None
) -> None:
    state = followed(*covered, version=version)
    lost = Lost(RECORD, "acknowledged_by_leader", (0, 1 << 30))
    assert lacks(state, state.history.terms[-1], lost) is without


@pytest.mark.parametrize(("until", "found"), [(15_000, 2), (25_000, None), (None, None)])
def test_of_a_run_of_acknowledgements_only_the_first_and_the_last_time_is_known(
    until: int | None, found: int | None
) -> None:
    """The second record of a run may have been told of before or after broker 2 was elected."""
    state = without_epochs(
        (10, elected(1, 0, "initial", (1, 2))),
        (20, ev.BecameLeader(1, 0)),
        (20_000, elected(2, 1)),
        (20_010, ev.BecameLeader(2, 1)),
        (30_000, elected(1, 2)),
        (30_010, ev.BecameLeader(1, 2)),
    )
    lost = Lost(GONE, "acknowledged_by_leader", None, 12_000)
    promise = Promise(Span(4, 6, None, None), None, "acks_1", "a", None, 12_000, until=until)
    gone = [Absence(5, 6, promise, None, back=False, final=True)]
    term = losing_term(state, lost, gone)
    assert (None if term is None else term.leader) == found


def test_what_is_back_was_missed_by_the_election_of_who_came_to_lead_only_later() -> None:
    """Broker 2 was elected beside the ISR without the records, died before it heard of that, and
    led when it was back, from an ISR of its own; then broker 3 brings them back."""
    facts = [
        *given(1, 2, 3),
        elected(1, 0, "initial", (1, 3)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(3, 5, "all", 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1, "unclean", (2,)),
        elected(2, 3, "clean", (2,)),
        ev.BecameLeader(2, 3, 3, 0),
        elected(3, 4, "unclean", (3,)),
        ev.BecameLeader(3, 4, 5, 0),
        copy(3, (0, 5, 0, 0), (5, 9, 4, 0), mark=9),
    ]
    [loss] = answer(told(facts)).losses
    assert (loss["status"], loss["cause"], loss["contract"]) == (
        "recovered", "unclean_election", "not_promised",
    )  # fmt: skip


@pytest.mark.parametrize(("leader_epoch", "cause"), [(2, "storage_loss"), (4, "unknown")])
def test_no_disk_is_to_blame_where_elections_are_not_told_of(leader_epoch: int, cause: str) -> None:
    """Broker 2 is back with less and leads from the ISR; nobody need have led in one epoch before,
    but of several one may have begun with an unclean election."""
    facts = [
        *given(1, 2, 3, version="3.9.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(3, 4, "all", 0, 0, leader=1),
        ev.BecameFollower(2, 0, 1),
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaStarted(2, 0, 3, None, False),
        elected(2, leader_epoch),
        ev.BecameLeader(2, leader_epoch, 3, 3),
        copy(2, (0, 3, 0, 0), (3, 9, leader_epoch, 0), mark=9),
    ]
    promise = Promise(RECORD, (0, 0), "acks_all", "a", 1)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]
    assert cause_of(told(facts), RECORD, "acknowledged_by_isr", gone).name == cause


def test_no_term_took_what_may_have_been_written_in_it() -> None:
    """Broker 1, whose lines are missing, answered in one of two epochs; of the second somebody who
    came back told later. Lost from its disk the record was only if it was written in the first."""
    compacted = ev.PartitionDescribed(cleanup_policy="compact")
    facts: list[tuple[int, ev.Fact]] = [
        *((0, fact) for fact in (*given(2, 3, version="1.1.1"), compacted)),
        (10, elected(1, 0, "initial")),
        (20, ev.RecordsAcknowledged(6, 7, "1", None, UNSEEN_CONTENT, leader=1)),
        (30, elected(1, 1, "unknown")),
        (40, elected(3, 2, "clean", (3,))),
        (40, ev.BecameLeader(3, 2, 5)),
        *((50, copy(r, (0, 5, 1, 0), (9, 12, 2, 0), mark=12)) for r in (2, 3)),
    ]
    state = new_state("", "t", "", 0)
    for n, (at, fact) in enumerate(facts):
        apply(state, ev.Event(str(n), "trace", "", "t", "", 0, n, fact, at, "forensic"))
    (loss,) = answer(state).losses

    assert (loss["first_offset"], loss["leader_epoch"], loss["cause"]) == (6, None, "unknown")
    assert loss["contributing"] == ["acks_one_failover", "storage_loss"]


@pytest.mark.parametrize("covered", [True, False])
def test_others_may_have_heard_late_that_who_answered_leads_again(covered: bool) -> None:
    """Broker 2 was deposed and answers, before anybody is known to have heard that it leads."""
    facts = [
        *given(*((1, 2) if covered else (1,)), version="0.10.2.2"),
        elected(2, 0, "initial"),
        elected(1, 1),
        elected(2, 3, "unclean"),
        elected(1, 4, "unclean"),
    ]
    state = told(facts)
    for at, term in zip((10, 10_000, 20_000, 30_000), state.history.terms, strict=True):
        term.observed_at = at
    lost = Lost(Span(5, 6, None, 7), "acknowledged_by_leader", None, 15_000, 2)
    deposed = loss_cause._deposed_by_then(state, lost)
    assert (deposed is state.history.terms[1]) is covered
    assert (deposed is None) is not covered


@pytest.mark.parametrize(("earlier", "cause"), [("all", "unknown"), (None, "storage_loss")])
def test_no_disk_is_to_blame_that_may_have_lost_what_stood_there_before(
    earlier: str | None, cause: str
) -> None:
    """Broker 1 loses a record that it had answered for, comes back in its epoch, and answers for
    another there; broker 3, which comes back without, may have had either."""
    facts = [
        *given(1, 2, 3, version="1.1.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        *([ev.RecordsAcknowledged(3, 4, earlier, 0, 0)] if earlier else []),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 3, None, False),
        ev.BecameLeader(1, 0, 3, 3),
        ev.RecordsAcknowledged(3, 4, "1", 0, 1),
        copy(3, (0, 3, 0, 0), mark=4, stopped=False),
        ev.ReplicaStarted(3, 0, 3, None, False),
        elected(3, 1),
        ev.BecameLeader(3, 1, 3, 3),
        copy(3, (0, 3, 0, 0), (3, 9, 1, 0), mark=9),
    ]
    found = cause_of(told(facts), Span(3, 4, 0, 1), "acknowledged_by_leader", [])
    assert (found.name, cause == "unknown") == (cause, "storage_loss" in found.contributing)


@pytest.mark.parametrize(
    ("controller", "needed", "cause"),
    [(True, 2, "storage_loss"), (False, 1, "storage_loss"), (False, 2, "unknown")],
)
def test_without_an_isr_nobody_knows_whether_the_last_one_stood(
    controller: bool, needed: int, cause: str
) -> None:
    """Broker 1 leads again without a record that its disk has lost; of a smaller ISR than acks=all
    needs it would have been the last member (KIP-966)."""
    facts = [
        ev.PartitionDescribed((1, 2, 3), needed, False, "delete", "2.8.1", None, "zookeeper"),
        *(ev.CoverageDeclared("broker_log", r, True) for r in (1, 2, 3)),
        *([elected(1, 0, "initial")] if controller else []),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(3, 4, "all", 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 3, None, False),
        *([elected(1, 1)] if controller else []),
        ev.BecameLeader(1, 1, 3, 3),
        copy(1, (0, 3, 0, 0), mark=3),
    ]
    promise = Promise(RECORD, (0, 0), "acks_all", "a", 1)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]
    found = cause_of(told(facts), RECORD, "acknowledged_by_isr", gone)
    assert found.name == cause
    assert ("last_replica_standing" in found.contributing) is (cause == "unknown")


@pytest.mark.parametrize(("waited_for", "cause"), [((2, 3), "unclean_election"), ((3,), "unknown")])
def test_who_lost_its_disk_and_was_elected_beside_an_isr_that_may_have_lacked_it(
    waited_for: tuple[int, ...], cause: str
) -> None:
    """Broker 1 lost the record with its disk; broker 2 had led with it, broker 3 never."""
    facts = [
        *given(1, 2, 3, version="3.9.1"),
        elected(2, 0, "initial"),
        ev.BecameLeader(2, 0, 0, 0),
        ev.RecordsAcknowledged(3, 4, "all", 0, 0),
        elected(1, 1),
        ev.BecameLeader(1, 1, 4, 4),
        ev.ReplicaStopped(1, "process_crash"),
        elected(3, 2, "unclean", waited_for),
        ev.ReplicaStarted(1, 0, 3, None, False),
        elected(1, 3, "unclean", (1,)),
        ev.BecameLeader(1, 3, 3, 3),
        copy(1, (0, 3, 0, 0), (3, 9, 3, 0), mark=9),
    ]
    promise = Promise(RECORD, (0, 0), "acks_all", "a", 1)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]
    found = cause_of(told(facts), RECORD, "acknowledged_by_isr", gone)
    assert (found.name, "storage_loss" in found.contributing) == (cause, True)


@pytest.mark.parametrize(
    ("covered", "back_with", "cause"),
    [
        ((1, 2, 3), 3, "storage_loss"),
        ((1, 2, 3), 4, "unclean_election"),
        ((2, 3), 3, "unknown"),
    ],
)
def test_the_last_member_had_lost_it_before_another_was_elected(
    covered: tuple[int, ...], back_with: int, cause: str
) -> None:
    """Broker 1 led with the record, alone in the ISR, and crashed; broker 2, without the end of its
    log, took over: it would have led without it even if nobody had been elected beside it."""
    facts = [
        *given(*covered, version="3.9.1"),
        elected(1, 0, "initial", (1,)),
        *([ev.BecameLeader(1, 0, 0, 0)] if 1 in covered else []),
        ev.RecordsAcknowledged(3, 4, "all", 0, 0),
        ev.ReplicaStarted(2, 0, 4, None, False),
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaStarted(2, 0, 3, None, False),
        elected(2, 2, "unclean", (2,)),
        ev.BecameLeader(2, 2, 3, 3),
        *([ev.ReplicaStarted(1, 0, back_with, None, False)] if 1 in covered else []),
        copy(2, (0, 3, 0, 0), (3, 9, 2, 0), mark=9),
    ]
    promise = Promise(RECORD, (0, 0), "acks_all", "a", 1)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]
    found = cause_of(told(facts), RECORD, "acknowledged_by_isr", gone)
    assert found.name == cause
    assert {"storage_loss", "unclean_election"} <= {found.name, *found.contributing}


def test_a_last_known_leader_that_came_back_short_may_have_had_it_until_then() -> None:
    """Broker 2, the last one in the ISR, is elected as the last known leader, with less: whether it
    had had what broker 1 answered for at acks=1 nothing tells."""
    facts = [
        *given(1, 2, 3, version="4.1.0"),
        ev.ReplicaStarted(2, 0, 0, None, True),
        elected(1, 0, "initial", (1, 2)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(3, 4, "1", 0, 0),
        elected(None, 1, None, (2,)),
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaStarted(2, 0, 0, None, False),
        elected(2, 2, "last_known_leader", (2,)),
        ev.BecameLeader(2, 2, 0, 0),
        copy(2, (0, 9, 2, 0), mark=9),
    ]
    found = cause_of(told(facts), RECORD, "acknowledged_by_leader", [])
    assert (found.name, found.contributing) == ("unknown", ("storage_loss", "unclean_election"))


def test_who_came_back_short_had_nobody_to_follow_but_one_that_never_led() -> None:
    """Broker 1 lost the record with its power; broker 2, elected meanwhile, never came to lead, and
    had never had it."""
    facts = [
        *given(1, 2, 3, version="3.9.1"),
        elected(1, 0, "initial", (1,)),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(3, 4, "all", 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 1, "unclean", (2,)),
        ev.ReplicaStarted(1, 0, 3, None, False),
        elected(1, 2, "unclean", (1,)),
        ev.BecameLeader(1, 2, 3, 3),
        copy(1, (0, 3, 0, 0), (3, 9, 2, 0), mark=9),
        copy(2, (0, 3, 0, 0), mark=3),
    ]
    promise = Promise(RECORD, (0, 0), "acks_all", "a", 1)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]
    found = cause_of(told(facts), RECORD, "acknowledged_by_isr", gone)
    assert (found.name, found.contributing) == ("storage_loss", ("unclean_election",))


@pytest.mark.parametrize(("end", "lines_of_1", "cause"), [
    (2, True, "unclean_election"), (5, False, "unclean_election"), (2, False, "unknown"),
])  # fmt: skip
def test_a_copy_below_its_checkpoint_may_be_of_a_member_of_the_isr_that_had_lost_it(
    end: int, lines_of_1: bool, cause: str
) -> None:
    """Broker 1 is alone in the ISR and broker 2 is elected; whether a copy of 1 that ends below its
    checkpoint is torn, or 1 had lost what it committed, only its lines tell."""
    facts = [
        *given(*((1, 2) if lines_of_1 else (2,)), version="4.1.1"),
        elected(1, 0, "initial", (1,)),
        *([ev.BecameLeader(1, 0, 0, 0)] if lines_of_1 else []),
        ev.RecordsAcknowledged(3, 4, "all", 0, 9),
        copy(1, (0, end, 0, 9), mark=5, stopped=False),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 0, 0),
        copy(2, (0, 9, 1, 0), mark=9),
    ]
    lost = [x for x in answer(told(facts)).losses if x["first_offset"] <= 3 < x["end_offset"]]
    assert {x["cause"] for x in lost if x["tier"] == "acknowledged_by_isr"} == {cause}


@pytest.mark.parametrize(("covered", "cause"), [((1, 2, 3), "early_isr_join"), ((1, 3), "unknown")])
def test_a_known_defect_is_not_told_of_a_leader_whose_disk_may_have_lost_it(
    covered: tuple[int, ...], cause: str
) -> None:
    """Broker 2, from the ISR, began without a record that had been committed."""
    facts = [
        *given(*covered, version="1.1.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1),
        *([ev.BecameLeader(2, 1, 3, 3)] if 2 in covered else []),
        copy(2, (0, 3, 0, 0), (3, 9, 1, 0), mark=9),
    ]
    promise = Promise(RECORD, (0, 0), "acks_all", "a", 1)
    gone = [Absence(3, 4, promise, None, back=False, final=True)]
    assert cause_of(told(facts), RECORD, "acknowledged_by_isr", gone).name == cause


def lost_by_offset(facts: Sequence[ev.Fact], acks: str = "acks_1") -> tuple[str, tuple[str, ...]]:
    """Cause and what contributed, of a record at offset 3 that nothing names but its offset."""
    record = Span(3, 4, None, 7)
    gone = [Absence(3, 4, Promise(record, None, acks, "a"), None, back=False, final=True)]
    tier = "acknowledged_by_leader" if acks == "acks_1" else "acknowledged_by_isr"
    found = cause_of(told(facts), record, tier, gone)
    return found.name, found.contributing


def test_what_the_last_leader_had_cut_is_no_cause_where_nothing_tells_who_was_the_first() -> None:
    """Before leader epochs: broker 3 cuts to its high watermark, and is elected beside the ISR."""
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0),
        elected(1, 1, "same_leader", (1, 2)),
        ev.BecameLeader(1, 1),
        ev.ReplicaStarted(3, 0, 5, None, False),
        ev.BecameFollower(3, 1, 1),
        ev.Truncated(3, 0, None, "high_watermark"),
        elected(2, 2, isr=(2,)),
        ev.BecameLeader(2, 2),
        elected(3, 3, "unclean", (3,)),
        ev.BecameLeader(3, 3),
    ]
    assert lost_by_offset(facts)[0] == "unknown"
    assert "unclean_election" in lost_by_offset(facts, "acks_all")[1]


@pytest.mark.parametrize(("covered", "cause"), [
    ((1, 2, 3), "acks_one_failover"), ((1, 2), "unknown"),
])  # fmt: skip
def test_a_failover_lost_it_whoever_wrote_it_or_nobody_knows(
    covered: tuple[int, ...], cause: str
) -> None:
    """Broker 3 led between, and may have lost it from its disk unless its lines tell."""
    facts = [
        *given(*covered),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(3, 1, isr=(2, 3)),
        *([ev.BecameLeader(3, 1, 3, 3)] if 3 in covered else []),
        elected(2, 2, isr=(2,)),
        ev.BecameLeader(2, 2, 3, 3),
        copy(2, (0, 3, 0, 0), (3, 9, 2, 0), mark=9),
    ]
    assert lost_by_offset(facts)[0] == cause


def test_a_leader_that_leads_on_from_the_records_own_epoch_has_it() -> None:
    """Before leader epochs nothing tells where broker 1 led on; broker 3 took over without it."""
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        ev.BecameLeader(1, 0),
        ev.BecameLeader(1, 1),
        elected(3, 2),
        ev.BecameLeader(3, 2),
    ]
    gone = [Absence(3, 4, Promise(RECORD, (0, 0), "acks_1", "a"), None, back=False, final=True)]
    assert cause_of(told(facts), RECORD, "acknowledged_by_leader", gone).name == "acks_one_failover"


@pytest.mark.parametrize(("version", "began", "cause"), [
    ("0.10.2.2", None, "unknown"), ("0.10.2.2", 9, "unknown"), ("0.10.2.2", 3, "acks_one_failover"),
    ("2.0.1", 9, "acks_one_failover"),
])  # fmt: skip
def test_a_leader_may_have_kept_another_record_where_the_one_before_it_committed(
    version: str, began: int | None, cause: str
) -> None:
    """Broker 2 led from beside the ISR. Before KIP-101 broker 1 cuts nothing below its own high
    watermark as it follows, and lets commit what 2 has at offsets at which it has others."""
    facts = [
        *given(1, 2, 3, version=version),
        elected(1, 0, "initial", (1,)),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 0, 0),
        ev.BecameFollower(1, 1, 2, began, None),
        elected(1, 2, "clean", (1,)),
        ev.BecameLeader(1, 2, began, None),
    ]
    mine = Promise(RECORD._replace(leader_epoch=1), (1, 0), "acks_1", "a")
    gone = [Absence(3, 4, mine, None, back=False, final=True)]
    assert cause_of(told(facts), mine.span, "acknowledged_by_leader", gone).name == cause


@pytest.mark.parametrize(("kind", "cause"), [("clean", "storage_loss"), ("unknown", "unknown")])
def test_who_came_back_with_less_may_have_been_elected_beside_who_had_it(
    kind: str, cause: str
) -> None:
    """Broker 1 came back empty, broker 2 led with the record; nothing tells how 1 was elected."""
    facts = [
        *given(1, 2, 3, version="2.0.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(1, 1, "same_leader"),
        ev.BecameLeader(1, 1, 5, 5),
        ev.ReplicaStopped(1, "process_crash"),
        elected(2, 2),
        ev.BecameLeader(2, 2, 5, 5),
        ev.ReplicaStarted(1, 0, 0, None, False),
        elected(1, 3, kind, (1,)),
        ev.BecameLeader(1, 3, 0, 0),
    ]
    gone = [Absence(3, 4, Promise(RECORD, (0, 0), "acks_all", "a"), None, back=False, final=True)]
    found = cause_of(told(facts), RECORD, "acknowledged_by_isr", gone)
    assert found.name == cause
    assert (found.contributing == ("storage_loss", "unclean_election")) is (kind == "unknown")


@pytest.mark.parametrize("controller", ["zookeeper", "kraft"])
@pytest.mark.parametrize(("lines_of", "some_of", "cause"), [
    ((1, 2, 3), (), "unclean_election"), ((2, 3), (), "unknown"), ((), (1, 2), "unknown"),
    ((), (), "unclean_election"),
])  # fmt: skip
def test_whom_an_unclean_election_passed_over_may_have_come_back_without_it(
    controller: str, lines_of: tuple[int, ...], some_of: tuple[int, ...], cause: str
) -> None:
    """Broker 1 alone was in the ISR. It may have come back empty, and would have led so. What the
    controller tells is told where no line was handed over at all."""
    facts = [
        *given(*lines_of, version="3.9.1"),
        *(ev.CoverageDeclared("broker_log", broker, False) for broker in some_of),
        ev.PartitionDescribed(controller=controller),
        elected(1, 0, "initial", (1,)),
        *([ev.BecameLeader(1, 0, 0, 0)] if 1 in lines_of else []),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 0, 0),
        copy(2, (0, 9, 1, 0), mark=9),
    ]
    gone = [Absence(3, 4, Promise(RECORD, (0, 0), "acks_all", "a"), None, back=False, final=True)]
    for record in (RECORD, RECORD._replace(leader_epoch=None)):
        found = cause_of(told(facts), record, "acknowledged_by_isr", gone)
        assert found.name == cause
        assert contract_of(told(facts), found, "acknowledged_by_isr", record) == "not_promised"


@pytest.mark.parametrize(("outside", "lines", "cause"), [
    (True, False, "unknown"), (True, True, "acks_one_failover"),
    (False, False, "acks_one_failover"),
])  # fmt: skip
def test_who_wrote_it_may_have_committed_it_without_the_new_leader_and_lost_it(
    outside: bool, lines: bool, cause: str
) -> None:
    """Broker 1 was alone in the ISR for a while; its disk may have lost it before 2 joined anew."""
    facts = [
        *given(*((1, 2, 3) if lines else (2, 3)), version="2.0.1"),
        elected(1, 0, "initial"),
        *([ev.BecameLeader(1, 0, 0, 0)] if lines else []),
        *([ev.LeadershipRecorded(1, 0, (1,), 1)] if outside else []),
        ev.LeadershipRecorded(1, 0, (1, 2), 2),
        ev.LeadershipRecorded(2, 1, (2,), 3, "clean"),
        ev.BecameLeader(2, 1, 3, 3),
    ]
    gone = [Absence(3, 4, Promise(RECORD, (0, 0), "acks_1", "a"), None, back=False, final=True)]
    assert cause_of(told(facts), RECORD, "acknowledged_by_leader", gone).name == cause
    # The same of a record that only who answered tells of.
    state, record = told(facts), RECORD._replace(leader_epoch=None)
    lost = Lost(record, "acknowledged_by_leader", None, None, 1)
    found = loss_cause._cause(state, lost, state.history.terms[-1])
    assert found.name == cause


def test_an_election_that_may_have_come_too_late_to_matter_is_not_what_let_it_be_lost() -> None:
    """Broker 2 was back without it in its own epoch, or wrote it there once more and lost it then,
    before broker 1 was elected beside it: its disk lost it either way."""
    facts = [
        *given(1, 2, 3, version="1.1.1"),
        elected(2, 0, "initial", (2,)),
        ev.BecameLeader(2, 0, 0, 0),
        ev.ReplicaStarted(2, 0, 0, None, False),
        ev.BecameLeader(2, 0, 0, 0),
        elected(1, 1, "unclean", (1,)),
        ev.BecameLeader(1, 1, 0, 0),
        ev.ReplicaStarted(2, 0, 0, None, False),
        copy(1, (0, 9, 1, 0), mark=9),
    ]
    found = cause_of(told(facts), RECORD, "acknowledged_by_isr", [])
    assert (found.name, found.election) == ("storage_loss", None)
    once = cause_of(told([*facts[:6], *facts[8:]]), RECORD, "acknowledged_by_isr", [])
    assert once.name == "storage_loss"
    assert once.election is not None


def test_who_has_led_with_it_since_it_lost_it_has_not_lost_it() -> None:
    """Broker 1 lost its disk, fetched the record anew and led with it, when another was elected
    beside it."""
    facts = [
        *given(1, 2, 3, version="3.9.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(3, 1, "clean", (1, 3)),
        ev.BecameLeader(3, 1, 5, 5),
        ev.BecameFollower(1, 1, 3, 5, 5),
        ev.ReplicaStarted(1, 0, 0, None, False),
        elected(1, 2, "clean", (1,)),
        ev.BecameLeader(1, 2, 5, 5),
        elected(2, 3, "unclean", (2,)),
        ev.BecameLeader(2, 3, 0, 0),
        copy(1, (0, 5, 0, 0), mark=5),
    ]
    cause = cause_of(told(facts), RECORD, "acknowledged_by_isr", [])
    assert (cause.name, cause.lossy) == ("unclean_election", frozenset())


@pytest.mark.parametrize(("another", "name"), [
    (ev.RecordsAcknowledged(0, 1, "1", None, 8), "unknown"),
    (ev.RecordsAcknowledged(0, 1, "1"), "unknown"), (None, "storage_loss"),
])  # fmt: skip
def test_the_disk_of_who_was_elected_beside_the_isr_may_have_lost_another_record(
    another: ev.Fact | None, name: str
) -> None:
    """Broker 1 wrote one record, comes back without, and leads beside broker 3, which has none. The
    record that broker 2 wrote there it may never have had."""
    facts = [
        *given(1, 2, 3, version="3.9.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        *([another] if another else []),
        elected(2, 1, "clean", (2, 3)),
        ev.BecameLeader(2, 1, 0, 0),
        ev.RecordsAcknowledged(0, 1, "1", 1, 7),
        ev.BecameFollower(1, 1, 2, 1, 0),
        elected(3, 2, "clean", (3,)),
        ev.ReplicaStarted(1, 0, 0, None, False),
        elected(1, 3, "unclean", (1,)),
        ev.BecameLeader(1, 3, 0, 0),
        copy(3),
        copy(1),
    ]
    lost = Span(0, 1, 1, 7)
    assert cause_of(told(facts), lost, "acknowledged_by_leader", []).name == name


@pytest.mark.parametrize(("covered", "name"), [
    ((1, 2, 3), "unclean_election"), ((1, 3), "unknown"),
])  # fmt: skip
def test_of_what_is_back_a_leader_of_whom_no_line_tells_may_have_been_the_first_without_it(
    covered: tuple[int, ...], name: str
) -> None:
    """Broker 2 led between, who wrote it and the unclean election of broker 3; broker 1 has it."""
    facts = [
        *given(*covered, version="3.9.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "clean", (2,)),
        *([ev.BecameLeader(2, 1, 5, 5)] if 2 in covered else []),
        elected(3, 2, "unclean", (3,)),
        ev.BecameLeader(3, 2, 0, 0),
        elected(1, 3, "unclean", (1,)),
        ev.BecameLeader(1, 3, 5, 5),
        copy(1, (0, 5, 0, 0), mark=5),
        copy(2, (0, 5, 0, 0), mark=5),
    ]
    state = told(facts)
    promise = Promise(RECORD, (0, 0), "acks_1", "a")
    gone = [Absence(3, 4, promise, state.history.terms[2], back=True, final=None)]
    assert cause_of(state, RECORD, "acknowledged_by_leader", gone).name == name


@pytest.mark.parametrize(("isr", "needed", "name"), [
    ((1,), None, "unknown"), ((1, 2, 3), None, "storage_loss"), ((1,), 1, "storage_loss"),
    ((1,), 2, "last_replica_standing"),
])  # fmt: skip
def test_who_stood_last_where_nothing_tells_how_many_were_needed_is_not_known(
    isr: tuple[int, ...], needed: int | None, name: str
) -> None:
    facts = [
        *given(1, 2, 3, version="3.9.1")[1:],
        ev.PartitionDescribed((1, 2, 3), needed, kafka_version="3.9.1"),
        elected(1, 0, "initial", isr),
        ev.BecameLeader(1, 0, 5, 5),
        ev.ReplicaStarted(1, 0, 0, None, False),
        elected(1, 1, "clean", (1,)),
        ev.BecameLeader(1, 1, 0, 0),
        copy(1, mark=0),
    ]
    assert cause_of(told(facts), RECORD, "acknowledged_by_isr", []).name == name


@pytest.mark.parametrize(("start", "cause"), [(None, "unknown"), (3, "unclean_election")])
def test_what_was_back_a_later_leader_may_have_lost_again(start: int | None, cause: str) -> None:
    """A failover from broker 1 to broker 2 had lost it, an unclean election brought it back. Broker
    3 was elected so as well, and whether it had the record its lines alone would tell."""
    facts = [
        *given(1, 2, *([] if start is None else [3])),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "clean", (2,)),
        ev.BecameLeader(2, 1, 3, 3),
        elected(1, 2, "unclean", (1,)),
        ev.BecameLeader(1, 2, 5, 3),
        elected(3, 3, "unclean", (3,)),
        *([] if start is None else [ev.BecameLeader(3, 3, start, start)]),
    ]
    promise, first = Promise(RECORD, (0, 0), "acks_1", "a"), told(facts).history.terms[1]
    gone = [Absence(3, 4, promise, first, back=False, final=None)]
    assert cause_of(told(facts), RECORD, "acknowledged_by_leader", gone).name == cause


@pytest.mark.parametrize(("lines", "cause"), [(True, "divergence_overwrite"), (False, "unknown")])
def test_a_leader_whose_lines_are_missing_may_have_slept_through_an_epoch(
    lines: bool, cause: str
) -> None:
    """Broker 1 leads again after broker 3. Broker 2 was elected from its ISR with what broker 3 had
    written; broker 1 may have counted it at the log end that it had before."""
    told_of = [
        ev.BecameFollower(1, 1, 3, 3, 0), elected(1, 2), ev.BecameLeader(1, 2, 3, 3),
    ]  # fmt: skip
    facts = [
        *given(*([1, 2, 3] if lines else [2, 3]), version="1.1.1"),
        elected(1, 0, "initial"),
        *([ev.BecameLeader(1, 0, 0, 0)] if lines else []),
        elected(3, 1),
        ev.BecameLeader(3, 1, 3, 3),
        *(told_of if lines else told_of[1:2]),
        elected(2, 3),
        ev.BecameLeader(2, 3, 5, 5),
        copy(2, (0, 3, 0, 0), (3, 5, 1, 1), (5, 9, 3, 0), mark=9),
    ]
    record = RECORD._replace(leader_epoch=2)
    promise = Promise(record, (2, 0), "acks_all", "a")
    gone = [Absence(3, 4, promise, None, back=False, final=True)]
    assert cause_of(told(facts), record, "acknowledged_by_isr", gone).name == cause


def test_a_cut_on_the_word_of_who_may_have_written_it_since_has_not_taken_it() -> None:
    """Broker 1 cut its log as it followed broker 3, and leads next without what had been committed
    by then, of which nothing tells who wrote it."""
    facts = [
        *given(1, 2, 3, version="0.10.2.2"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(3, 1),
        ev.BecameLeader(3, 1, 3, 3),
        ev.BecameFollower(1, 1, 3, 5, 0),
        ev.Truncated(1, 0, 5, "high_watermark"),
        elected(1, 2),
        ev.BecameLeader(1, 2, 0, 0),
        copy(1, (0, 9, 2, 0), mark=9),
    ]
    record = Span(3, 4, None, None)
    gone = [Absence(3, 4, Promise(record, (1, 9), "load", "a", 3), None, back=False, final=True)]
    found = cause_of(told(facts), record, "committed", gone)
    assert (found.name, found.contributing) == ("unknown", ("truncate_to_high_watermark",))
    # Nor is it of a leader that came after the promise.
    assert loss_cause._by_its_writer(told(facts), record, gone).leader_epoch is None


@pytest.mark.parametrize("shown", [True, False])
def test_a_leader_whose_log_nobody_saw_is_not_taken_to_lack_what_the_one_before_it_holds(
    shown: bool,
) -> None:
    """Broker 3 was elected beside broker 2, which still holds the record."""
    facts = [
        *given(1, 2, 3, version="2.8.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(2, 1, "unclean", (2,)),
        ev.BecameLeader(2, 1, 5, 5),
        elected(3, 2, "unclean", (3,)),
        ev.BecameLeader(3, 2, 5, 5),
        copy(2, (0, 5, 0, 0), mark=5),
        *([copy(3, (0, 3, 0, 0), (3, 9, 0, 4))] if shown else []),
    ]
    lost = Lost(RECORD, "acknowledged_by_leader", (0, 0))
    found = losing_term(told(facts), lost, [])
    assert (found.leader if found is not None else None) == (3 if shown else None)
