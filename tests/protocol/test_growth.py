"""Folding takes twice the steps for twice the events, whatever a partition has gone through."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from replication.protocol.folding import fold
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import State
from tests.growth import LARGE_SIZES, SIZES, grows

Facts = Iterator[Any]


def _begin(members: tuple[int, ...] = (1, 2)) -> Facts:
    yield ev.PartitionDescribed(members, 1, True, "delete", "4.1.1", "4.1", "kraft")
    yield ev.LeadershipRecorded(1, 0, members, 0, "initial", members)
    yield ev.BecameLeader(1, 0, 0, 0, 0)
    for follower in members[1:]:
        yield ev.BecameFollower(follower, 0, 1, 0, 0, 0)


def clean_elections(count: int, kind: str = "clean") -> Facts:
    """By turns, a record each."""
    yield from _begin()
    for number in range(1, count + 1):
        leader, other = 1 + number % 2, 2 - number % 2
        yield ev.LeadershipRecorded(leader, number, (1, 2), number, kind, (1, 2))
        yield ev.BecameLeader(leader, number, number - 1, number - 1, number)
        yield ev.BecameFollower(other, number, leader, number - 1, number - 1, number)
        yield ev.LeaderAppended(leader, number - 1, number, number)
        yield ev.FetchRequested(other, leader, number - 1, number, number - 1, 0)
        yield ev.FetchAnswered(other, leader, number - 1, number)
        yield ev.FollowerAppended(other, number - 1, number, number)
        yield ev.FetchRequested(other, leader, number, number, number, 0)
        yield ev.HighWatermarkAdvanced(leader, number)
        yield ev.RecordsAcknowledged(number - 1, number, "all", number)


def preferred_elections(count: int) -> Facts:
    """As above, asked for."""
    yield from clean_elections(count, "preferred")


def unclean_elections(count: int) -> Facts:
    """By turns, each cuts what the one before had acknowledged."""
    yield from _begin()
    end, leader = 0, 1
    for number in range(1, count + 1):
        other, alone = 3 - leader, number > 1
        yield ev.LeaderAppended(leader, end, end + 2, number - 1)
        yield ev.HighWatermarkAdvanced(leader, end + 2 if alone else end)
        yield ev.RecordsAcknowledged(end, end + 2, "all" if alone else "1", number - 1)
        yield ev.LeadershipRecorded(other, number, (other,), number, "unclean", (1, 2))
        yield ev.BecameLeader(other, number, end, end, number)
        yield ev.BecameFollower(leader, number, other, end + 2, end + 2 if alone else end, number)
        yield ev.Truncated(leader, end, end + 2, "diverging_epoch")
        yield ev.LeaderAppended(other, end, end + 1, number)
        yield ev.FollowerAppended(leader, end, end + 1, number)
        end, leader = end + 1, other


def elections_with_restarts(count: int) -> Facts:
    """The leader crashes each time and comes back."""
    yield from _begin()
    for number in range(1, count + 1):
        leader, other = 1 + number % 2, 2 - number % 2
        yield ev.ReplicaStopped(other, "process_crash")
        yield ev.LeadershipRecorded(leader, number, (leader,), 2 * number, "clean", (1, 2))
        yield ev.BecameLeader(leader, number, number - 1, number - 1, 2 * number)
        yield ev.LeaderAppended(leader, number - 1, number, number)
        yield ev.ReplicaStarted(other, 0, number - 1, number - 1, False)
        yield ev.BecameFollower(other, number, leader, number - 1, number - 1, 2 * number)
        yield ev.FollowerAppended(other, number - 1, number, number)
        yield ev.LeadershipRecorded(leader, number, (1, 2), 2 * number + 1, None, (1, 2))
        yield ev.HighWatermarkAdvanced(leader, number)


def elections_with_power_losses(count: int) -> Facts:
    """As above, and each time the end of a log is gone."""
    for fact in elections_with_restarts(count):
        if isinstance(fact, ev.ReplicaStopped):
            yield ev.ReplicaStopped(fact.replica, "power_loss")
        elif isinstance(fact, ev.ReplicaStarted):
            yield ev.ReplicaStarted(
                fact.replica, 0, max(0, (fact.log_end_offset or 0) - 1), 0, False
            )
        else:
            yield fact


def left_in_the_isr(count: int) -> Facts:
    """After an unclean election that left the ISR as it was, clean ones."""
    yield from _begin((1, 2, 3))
    yield ev.LeadershipRecorded(3, 1, (1, 2, 3), 1, "unclean_within_isr", (1, 2, 3))
    for number in range(2, count + 2):
        leader = 1 + number % 3
        yield ev.LeadershipRecorded(leader, number, (1, 2, 3), number, "clean", (1, 2, 3))
        yield ev.BecameLeader(leader, number, 0, 0, number)


def changes_of_the_isr(count: int) -> Facts:
    """A follower falls behind and catches up."""
    yield from _begin()
    for n in range(count):
        isr = (1,) if n % 2 else (1, 2)
        yield ev.LeadershipRecorded(1, 0, isr, n + 1, None, (1, 2))
        yield ev.LeaderAppended(1, n, n + 1, 0)
        yield ev.FollowerAppended(2, n, n + 1, 0)


def truncations(count: int) -> Facts:
    """A follower cuts and fetches again, within one leader number."""
    yield from _begin()
    yield ev.LeaderAppended(1, 0, 2 * count + 2, 0)
    for n in range(count):
        yield ev.FollowerAppended(2, n, n + 2, 0)
        yield ev.BecameFollower(2, 0, 1, n + 2, n + 2, 0)
        yield ev.Truncated(2, n + 1, n + 2, "high_watermark")


def restarts_of_a_follower(count: int) -> Facts:
    """One that never leads, beside elections."""
    yield from _begin((1, 2, 3))
    for number in range(1, count + 1):
        leader = 1 + number % 2
        yield ev.LeadershipRecorded(leader, number, (1, 2, 3), number, "clean", (1, 2, 3))
        yield ev.BecameLeader(leader, number, number - 1, number - 1, number)
        yield ev.LeaderAppended(leader, number - 1, number, number)
        yield ev.ReplicaStopped(3, "process_crash")
        yield ev.ReplicaStarted(3, 0, number - 1, number - 1, False)
        for follower in (3 - leader, 3):
            yield ev.BecameFollower(follower, number, leader, number - 1, number - 1, number)
        yield ev.FollowerAppended(3, number - 1, number, number)
        yield ev.HighWatermarkAdvanced(3, number)


def a_leader_that_leads_again_and_again(count: int) -> Facts:
    """Alone, its follower without a word; at last a zombie tells high watermarks."""
    yield from _begin()
    for number in range(1, count + 1):
        yield ev.LeadershipRecorded(1, number, (1, 2), number, "clean", (1, 2))
        yield ev.BecameLeader(1, number, number - 1, number - 1, number)
        yield ev.LeaderAppended(1, number - 1, number, number)
        yield ev.BecameFollower(2, 0, 1, None, 0, 0)
        yield ev.HighWatermarkAdvanced(2, number)


def logs_that_begin_later(count: int) -> Facts:
    """Retention removes what each leader wrote before the next is elected."""
    for fact in clean_elections(count):
        yield fact
        if isinstance(fact, ev.HighWatermarkAdvanced):
            yield ev.LogStartAdvanced(fact.replica, fact.high_watermark - 1, "retention")


def logs_that_are_looked_at(count: int) -> Facts:
    """A digest beside the brokers: where each log ends, again and again."""
    yield from _begin()
    for n in range(count):
        yield ev.LeaderAppended(1, n, n + 1, 0)
        for replica in (1, 2):
            spans = (Span(0, n + 1, 0, None),)
            yield ev.ReplicaLogObserved(replica, 0, n + 1, spans, copy="live")


KINDS: list[Callable[[int], Facts]] = [
    clean_elections, preferred_elections, unclean_elections, elections_with_restarts,
    elections_with_power_losses, left_in_the_isr, changes_of_the_isr, truncations,
    restarts_of_a_follower, a_leader_that_leads_again_and_again, logs_that_begin_later,
    logs_that_are_looked_at,
]  # fmt: skip


def events_of(facts: Facts) -> list[ev.Event]:
    """Their events, in one trace."""
    return [
        ev.Event(f"e{n}", "trace", "c", "t", "id", 0, n, fact, 1_000 + n, "traced", None, 0)
        for n, fact in enumerate(facts)
    ]


CONTROLLER = ("controller_history", None)
ACKNOWLEDGEMENTS = ("acknowledgements", None)
LINES = [("broker_log", 1), ("broker_log", 2), ("broker_log", 3)]
TRACES = [("replica_trace", 1), ("replica_trace", 2)]
Covered = list[tuple[str, int | None]]


def state_of(kind: Callable[[int], Facts], count: int, covered: Covered) -> State:
    """So many of a kind, with these artefacts handed over whole."""
    state = fold.new_state("c", "t", "id", 0)
    for event in events_of(kind(count)):
        fold.apply(state, event)
    for artefact in covered:
        state.coverage[artefact] = (True, None)
    return state


def folding_of(kind: Callable[[int], Facts]) -> Callable[[int], Callable[[], None]]:
    """For a count, what folds so many of a kind."""

    def folding(count: int) -> Callable[[], None]:
        events = events_of(kind(count))

        def fold_all_of_them() -> None:
            state = fold.new_state("c", "t", "id", 0)
            for event in events:
                fold.apply(state, event)

        return fold_all_of_them

    return folding


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, id=kind.__name__, marks=[pytest.mark.slow] * (n > 3))
        for n, kind in enumerate(KINDS)
    ],
)
@pytest.mark.parametrize("sizes", [SIZES, pytest.param(LARGE_SIZES, marks=pytest.mark.sweep)])
def test_folding_grows_with_the_events_alone(
    kind: Callable[[int], Facts], sizes: tuple[int, ...]
) -> None:
    assert not grows(folding_of(kind), sizes)
