"""Only the leader that wrote an acks=all record can have answered for it later."""

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.lacking_terms import appender, first_lacking_terms
from replication.protocol.judgement.term_starts import term_starts
from tests.protocol.judgement.told import copy, elected, given, told, verdict


def story(leads_on: int) -> list[ev.Fact]:
    """Broker 1 writes offsets 0..4 in epoch 0, broker 2 leads epoch 1 from 0, leads_on epoch 2."""
    return [
        *given(1, 2, 3),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(3, 1),
        ev.BecameLeader(3, 1, 5, 0),
        elected(2, 2, "unclean"),
        ev.BecameLeader(2, 2, 0, 0),
        elected(leads_on, 3, "unclean"),
        *([ev.BecameFollower(1, 2, 2, 5, 0)] if leads_on == 3 else []),
        ev.BecameLeader(leads_on, 3, 5, 0),
        ev.RecordsAcknowledged(0, 5, "all", 0, 0),
        copy(1, (0, 5, 0, 0), (5, 6, 3, 0), mark=6),
        copy(2, (0, 5, 0, 0), (5, 6, 3, 0), mark=6),
        copy(3, (0, 5, 0, 0), (5, 6, 3, 0), mark=6),
    ]


def test_another_leader_that_leads_on_answers_for_nothing() -> None:
    assert verdict(story(leads_on=3)) == "VIOLATED"


def test_who_wrote_it_is_who_leads_in_its_epoch() -> None:
    state = told(story(leads_on=3))
    promise = state.history.acknowledgements[0]
    starts = term_starts(state)

    assert appender(starts, promise) == 1
    assert [t.leader for _, _, t in first_lacking_terms(state, starts, promise) if t] == [2]


def test_who_wrote_it_and_leads_on_in_a_higher_epoch_may_answer_then() -> None:
    facts = story(leads_on=1)
    state = told(facts)
    promise = state.history.acknowledgements[0]

    assert [t for _, _, t in first_lacking_terms(state, term_starts(state), promise) if t] == []


def test_a_cut_from_before_it_was_written_has_not_taken_it() -> None:
    """Broker 1 cut a record of epoch 0 in epoch 1, wrote another in epoch 2 and leads on in 4."""
    facts = [
        *given(1, 2, 3, version="1.1.0"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        elected(3, 1),
        ev.BecameLeader(3, 1, 0, 0),
        ev.BecameFollower(1, 1, 3, 2, 0),
        ev.Truncated(1, 0, 2, "high_watermark"),
        elected(1, 2, "preferred"),
        ev.BecameLeader(1, 2, 0, 0),
        elected(2, 3, "unclean", isr=(2,)),
        ev.BecameLeader(2, 3, 0, 0),
        elected(1, 4, "unclean", isr=(1,)),
        ev.BecameLeader(1, 4, 3, 0),
        ev.RecordsAcknowledged(0, 3, "all", 2, 1),
    ]
    state = told(facts)
    promise = state.history.acknowledgements[0]

    assert [t for _, _, t in first_lacking_terms(state, term_starts(state), promise) if t] == []


def test_who_came_back_without_it_does_not_lead_on_with_it() -> None:
    """Broker 1 lost its disk unseen, leads again from 0 and leads on in the epoch after, with five
    other records."""
    facts = [
        *story(leads_on=2)[:-6],
        elected(2, 1, "unclean", isr=(2,)),
        ev.BecameLeader(2, 1, 0, 0),
        ev.ReplicaStarted(1, 0, 0, 0, False),
        elected(1, 2, "unclean", isr=(1,)),
        ev.BecameLeader(1, 2, 0, 0),
        elected(1, 3, "same_leader", isr=(1,)),
        ev.BecameLeader(1, 3, 5, 0),
        ev.RecordsAcknowledged(0, 5, "all", 0, 0),
        copy(1, (0, 5, 2, 0), (5, 6, 3, 0), mark=6),
    ]
    state = told(facts)
    promise = state.history.acknowledgements[0]

    lacking = first_lacking_terms(state, term_starts(state), promise)
    assert [t.leader_epoch for _, _, t in lacking if t] == [1]


def unheard_of(replica: int, leads_on: bool = True) -> list[ev.Fact]:
    """Broker 1 leads on in epoch 1 and writes offset 3 there; broker 2, which heard of epoch 0
    alone, has fetched it and has a high watermark above it."""
    held = (Span(0, 4, None, 0),)
    return [
        *given(1, 2, 3, version="0.10.2.2", acks=False),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, 1, 0, 0),
        elected(1, 1, "same_leader"),
        *([] if leads_on else [ev.ReplicaStopped(1, "process_crash"), ev.ReplicaStarted(1, 0, 3)]),
        ev.BecameLeader(1, 1, 3, 0),
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaLogObserved(replica, 0, 4, held, 4, None, None, True),
        ev.ReplicaLogObserved(1, 0, 4, held, None, None, None, True),
    ]


def test_a_follower_learns_on_from_who_leads_on_in_an_epoch_of_which_it_has_not_heard() -> None:
    assert verdict(unheard_of(replica=2)) == "HOLDS"
    assert verdict(unheard_of(replica=2, leads_on=False)) == "VIOLATED"
    fenced = [*given(1, 2, 3, version="2.8.1", acks=False), *unheard_of(replica=2)[4:]]
    assert verdict(fenced) == "VIOLATED"


def led_anew(ends_at: int, begins_at: int = 0) -> list[ev.Fact]:
    """Broker 1 answers for three records of epoch 0, comes back and leads there once more, and
    follows with a log that ends at ends_at; broker 2, which leads epoch 1, has the three."""
    return [
        *given(1, 2, 3, version="4.1.1"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.RecordsAcknowledged(0, 3, "all", 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, begins_at),
        ev.BecameLeader(1, 0, begins_at, 0),
        elected(2, 1, isr=(2,)),
        ev.BecameFollower(1, 1, 2, ends_at, 0),
        ev.BecameLeader(2, 1, 3, 0),
        copy(2, (0, 3, 0, 0), (3, 4, 1, 0), mark=4),
    ]


def test_who_led_once_more_in_its_epoch_and_wrote_nothing_there_had_answered_before() -> None:
    assert verdict(led_anew(ends_at=0)) == "VIOLATED"
    # It may have written them only then; or it had not lost them.
    assert verdict(led_anew(ends_at=3)) == "HOLDS"
    assert verdict(led_anew(ends_at=3, begins_at=3)) == "HOLDS"


def test_who_led_once_more_in_its_epoch_and_does_not_tell_how_far_may_have_lacked_them() -> None:
    told = led_anew(ends_at=0)
    (follows,) = [f for f in told if isinstance(f, ev.BecameFollower)]
    untold = [f for f in told if f is not follows]
    assert verdict(untold) == "UNKNOWN"
    assert verdict([f for f in led_anew(ends_at=3, begins_at=3) if f != follows]) == "HOLDS"
    # Of what had been committed by then only a producer tells.
    marks = [f for f in told if not isinstance(f, ev.RecordsAcknowledged)]
    assert verdict(marks) == "UNKNOWN"
    came_to_it = [ev.BecameFollower(1, 1, 2, 3, 0) if f is follows else f for f in marks]
    assert verdict(came_to_it) == "HOLDS"


def test_who_leads_still_has_come_as_far_as_its_log() -> None:
    facts = [
        *given(1, 2),
        *(ev.CoverageDeclared("replica_trace", r, True) for r in (1, 2)),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.BecameFollower(2, 0, 1, 0, 0),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 0),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeaderAppended(1, 0, 1, 0),
        ev.HighWatermarkAdvanced(1, 1),
    ]
    judged = {v["invariant"]: v["verdict"] for v in answer(told(facts, "traced")).verdicts}
    assert judged["committed_records_survive"] == "HOLDS"


def before_1_0(*more: ev.Fact, since: int | None = None) -> list[ev.Fact]:
    """Broker 1 writes a record in epoch 0, broker 2 leads epoch 1 without it, broker 1 leads on in
    epoch 2: up to 0.11 lines tell no log ends. since: broker 1 wrote an offset of epoch 2."""
    own = [] if since is None else [(since, since + 1, 2, 5)]
    return [
        *given(1, 2, 3, version="0.11.0.3"),
        elected(1, 0, "initial"),
        ev.BecameLeader(1, 0),
        elected(2, 1, isr=(2, 3)),
        ev.BecameLeader(2, 1),
        *more,
        elected(1, 2, "unclean"),
        ev.BecameLeader(1, 2),
        ev.BecameFollower(2, 2, 1),
        ev.RecordsAcknowledged(0, 1, "all", 0, 7, 1),
        copy(1, *([(0, 1, 0, 7)] if since != 0 else []), *own),
        copy(2, (0, 1, 1, 8)),
        copy(3),
    ]


def test_who_leads_on_may_answer_then_though_no_line_tells_where_its_log_ended() -> None:
    assert verdict(before_1_0()) != "VIOLATED"
    assert verdict(before_1_0(since=1)) != "VIOLATED"


def test_who_wrote_another_there_since_or_followed_has_not_led_on_with_it() -> None:
    cut = (ev.BecameFollower(1, 1, 2), ev.Truncated(1, 0, None, "high_watermark"))
    assert verdict(before_1_0(since=0)) == "VIOLATED"
    assert verdict(before_1_0(*cut, since=0)) == "VIOLATED"
    assert verdict(before_1_0(*cut)) == "VIOLATED"
