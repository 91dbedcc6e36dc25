"""Where a dump, which tells no time, stands among its broker's steps."""

from types import SimpleNamespace
from typing import Any

from replication.evidence.joining.dumps_moment import earliest_place
from replication.evidence.joining.line_steps import Step
from replication.protocol.ground import events as ev


def place(end: int, latest_epoch: int, *facts: ev.Fact | None, created: bool = False) -> int:
    """The dump's place; with `created`, the first step is the log's creation."""
    steps = [Step("x", fact, number, None) for number, fact in enumerate(facts)]
    if created:
        steps[0] = steps[0]._replace(kind="log_created")
    dump: Any = SimpleNamespace(log_end_offset=end, latest_epoch=latest_epoch)
    return earliest_place(steps, dump)


def leads(leader_epoch: int, end: int | None = None) -> ev.Fact:
    return ev.BecameLeader(1, leader_epoch, end)


def test_it_stands_before_all_steps_where_nothing_speaks_against_it() -> None:
    assert place(5, -1, leads(0), leads(1)) == 0
    assert place(5, 0, leads(0), leads(1)) == 0


def test_its_newest_epoch_was_reached_first() -> None:
    assert place(5, 1, leads(0), leads(1), leads(2)) == 2
    assert place(5, 7, leads(0), leads(1)) == 2


def test_it_is_behind_the_creation_of_the_log() -> None:
    created = ev.ReplicaStarted(1, 0, 0)
    assert place(5, -1, created, leads(0, 0), leads(1, 9), created=True) == 2


def test_a_cut_below_its_end_comes_later_and_cuts_it_too() -> None:
    assert place(5, 1, leads(0), leads(1), ev.Truncated(1, 3), leads(2)) == 2


def test_a_cut_of_nothing_tells_that_the_log_was_shorter_then_and_no_cut() -> None:
    follows = ev.BecameFollower(1, 1, 2)
    nothing, all_of_it = (ev.Truncated(1, end, end, "leader_epoch") for end in (3, 5))
    assert place(5, 0, leads(0), follows, nothing) == 3
    assert place(5, 0, leads(0), follows, all_of_it, nothing) == 0
