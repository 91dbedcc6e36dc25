"""All that is known of a partition in one order."""

from dataclasses import replace

import pytest

from replication.evidence.joining.event_order import RANKS
from replication.evidence.joining.line_steps import Step
from replication.evidence.joining.partition_events import (
    _before_its_cut,
    _placed,
    events_of,
)
from replication.evidence.joining.registrations import Recorded
from replication.protocol.ground import events as ev
from tests.evidence.joining.evidence import evidence, leads, started
from tests.evidence.joining.lines import acknowledged, line
from tests.evidence.test_placement import copy_of
from tests.protocol.judgement.told import told as folded


def kinds(each: object) -> list[str]:
    return [event.fact.kind for event in events_of(each, "trace", 0)]  # type: ignore[arg-type]


def test_every_rank_is_of_a_kind_of_event() -> None:
    assert set(RANKS) <= set(ev.FACT_TYPES)


def test_clocks_interleave_the_controller_the_brokers_and_the_clients() -> None:
    recorded = Recorded(ev.LeadershipRecorded(1, 0, assigned_replicas=(1, 2)), 5, ev.Source("x"))
    found = evidence(
        started(),
        leads(0, 6),
        recorded=[recorded],
        acknowledgements=[acknowledged("a", 7, offset=0)],
    )
    assert kinds(found) == [
        "partition_described", "coverage_declared", "leadership_recorded", "became_leader",
        "records_acknowledged", "input_ended",
    ]  # fmt: skip


def test_who_held_a_replica_between_two_assignments_is_no_stranger_to_the_fold() -> None:
    """Only the lines of broker 3 tell that the partition was reassigned to it, and away again."""
    recorded = Recorded(ev.LeadershipRecorded(1, 0, assigned_replicas=(1, 2)), 5, ev.Source("x"))
    found = evidence(leads(1, 6), broker=3, recorded=[recorded])
    state = folded(events_of(found, "trace", 0))

    assert state.ever_assigned == {1, 2, 3}
    assert state.replicas[3].role == "leader"
    assert state.settings.assigned_replicas == (1, 2)


def test_a_brokers_clock_that_runs_back_does_not_change_its_order() -> None:
    lines = [leads(0, 9), line("truncated", at=2, number=10, to_offset=3)]
    found = [e for e in events_of(evidence(*lines), "trace", 0) if e.source is not None]
    assert [event.fact.kind for event in found] == ["became_leader", "truncated"]
    assert [event.observed_at for event in found] == [9, 2]


def test_events_are_numbered_without_a_gap_and_hold_no_date_that_is_none() -> None:
    far = leads(0, 1)._replace(at=1 << 60)
    found = list(events_of(evidence(far), "trace", 3))
    assert [event.sequence for event in found] == list(range(len(found)))
    assert {event.trace_generation for event in found} == {3}
    assert all(event.observed_at is None for event in found)


def test_who_gave_its_replica_away_is_no_stranger_before_the_controller_has_spoken() -> None:
    """The newest description names brokers 2 and 3; the controller's first record, broker 1."""
    recorded = Recorded(ev.LeadershipRecorded(1, 0, assigned_replicas=(1, 3)), 5, ev.Source("x"))
    loaded = line("log_loaded", at=4, number=1, log_end_offset=0)
    told = ev.PartitionDescribed(assigned_replicas=(2, 3))
    found = evidence(started(), loaded, leads(0, 6), recorded=[recorded], described=told)
    state = folded(events_of(found, "trace", 0))

    assert state.replicas[1].role == "leader"


@pytest.mark.parametrize(("reached", "before"), [((), True), ((70,), True), ((59,), False)])
def test_a_copy_of_a_running_broker_is_from_before_a_cut_only_if_the_log_had_reached_so_far(
    reached: tuple[int, ...], before: bool
) -> None:
    """Before leader epochs nothing else tells; what is longer than the trace's log was is later."""
    told: list[tuple[str, ev.Fact | None]] = [
        ("life", None),
        *(("log_appended", ev.FollowerAppended(1, 50, end)) for end in reached),
        ("became_follower", ev.BecameFollower(1, 2, 2)),
        ("truncated", ev.Truncated(1, 59, None, "high_watermark")),
    ]
    steps = [Step(kind, fact, 0, ev.Source("x")) for kind, fact in told]
    copy = copy_of("d", 62, clean=False)
    copy = replace(copy, directory=replace(copy.directory, spans=((None, 0, 62),)))
    found = _before_its_cut(copy, steps, len(steps), in_life=True)
    assert found == (len(steps) - 2 if before else len(steps))


@pytest.mark.parametrize(
    ("loaded", "cuts", "before"),
    [
        (None, ((59, None),), True),
        (62, ((59, None),), True),
        (80, ((59, None),), False),
        (80, ((70, 80), (59, None)), False),
        (80, ((62, 80), (59, None)), True),
        # Such a line is printed without effect, too, where the log is shorter.
        (None, ((90, None), (59, None)), True),
        (50, ((59, None),), True),
    ],
)
def test_a_copy_that_ends_below_what_its_broker_had_until_a_cut_is_from_after_the_cut(
    loaded: int | None, cuts: tuple[tuple[int, int | None], ...], before: bool
) -> None:
    told: list[tuple[str, ev.Fact | None]] = [
        ("life", None),
        ("log_loaded", ev.ReplicaStarted(1, 0, loaded)),
        ("became_follower", ev.BecameFollower(1, 2, 2)),
        *(("truncated", ev.Truncated(1, to, begun, "high_watermark")) for to, begun in cuts),
    ]
    steps = [Step(kind, fact, 0, ev.Source("x")) for kind, fact in told]
    copy = copy_of("d", 62, clean=False)
    copy = replace(copy, directory=replace(copy.directory, spans=((None, 0, 62),)))
    found = _before_its_cut(copy, steps, len(steps), in_life=True)
    assert found == (2 if before else len(steps))


@pytest.mark.parametrize(
    ("followed", "high_watermark", "before"),
    [(False, 57, False), (False, 17, True), (False, None, True), (True, 57, True)],
)
def test_a_copy_with_more_than_the_high_watermark_that_a_leader_then_cut_to_is_from_after_the_cut(
    followed: bool, high_watermark: int | None, before: bool
) -> None:
    """As long as it leads that only grows; as a follower it takes that of each leader."""
    told: list[tuple[str, ev.Fact | None]] = [
        ("life", None),
        *([("became_follower", ev.BecameFollower(2, 1, 0))] if followed else []),
        ("became_leader", ev.BecameLeader(2, 1)),
        ("became_follower", ev.BecameFollower(2, 1, 2)),
        ("truncated", ev.Truncated(2, 17, None, "high_watermark")),
    ]
    steps = [Step(kind, fact, 0, ev.Source("x")) for kind, fact in told]
    copy = copy_of("d", 60, clean=False)
    seen = replace(copy.directory, spans=((None, 0, 60),), high_watermark=high_watermark)
    copy = replace(copy, directory=seen)
    found = _before_its_cut(copy, steps, len(steps), in_life=True)
    assert found == (len(steps) - 2 if before else len(steps))


@pytest.mark.parametrize(("slot", "position"), [(-1.0, 4), (-0.5, 5), (0.0, 5), (1.0, 7), (2.0, 8)])
def test_a_copy_of_before_the_life_in_whose_midst_the_lines_begin_is_before_its_load(
    slot: float, position: int
) -> None:
    """A log that is made prints a load as well."""
    made, load = ("log_loaded", "log_created"), "log_loaded"
    kinds = (*made, "became_leader", load, load, "life", "stop", "life")
    steps = [Step(kind, None, 0, None) for kind in kinds]
    copy = replace(copy_of("d", 62, clean=True), slot=slot)

    assert list(_placed([copy], steps)) == [position]


def test_a_copy_of_before_all_lines_is_before_them_where_they_tell_of_no_start() -> None:
    copy = replace(copy_of("d", 62, clean=True), slot=-1.0)
    assert list(_placed([copy], [Step("stop", None, 0, None)])) == [0]


@pytest.mark.parametrize("kind", ["replica", "stray"])
def test_a_log_set_aside_beside_a_copy_of_no_known_moment_is_not_what_the_broker_went_on_with(
    kind: str,
) -> None:
    """A later copy of the very replica is; else the broker may have lived on with another log."""
    old = replace(copy_of("old", 26, clean=False), order_known=False)
    new = copy_of("new", 40, clean=True)
    new = replace(new, slot=1.0, directory=replace(new.directory, kind=kind))
    told_by = [e.source for e in events_of(evidence(started(), copies=[old, new]), "trace", 0)]
    paths = [source.path for source in told_by if source is not None]
    # A copy without segments only shows that the broker lived on.
    assert paths == ["old/t-0", "new/t-0", *(["new/t-0"] if kind == "stray" else [])]
