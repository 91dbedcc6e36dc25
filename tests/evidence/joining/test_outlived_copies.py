"""Copies that the controllers' record shows to be older than their replica."""

from dataclasses import replace
from typing import Any

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.outlived_copies import is_outlived
from replication.evidence.joining.registrations import Recorded
from replication.protocol.ground import events as ev
from tests.evidence.joining.evidence import evidence, follows, started
from tests.evidence.joining.lines import line
from tests.evidence.test_placement import copy_of

OLD = [(1, 0, (1, 3)), (3, 1, (3,)), (3, 1, (3, 1))]


def of(broker: int, end: int, *spans: tuple[int, int, int]) -> Copy:
    """Spans of (leader epoch, first offset, end offset)."""
    copy = copy_of("copy", end, clean=False)
    entries = tuple((span[0], span[1]) for span in spans)
    directory = replace(copy.directory, spans=spans, epoch_entries=entries)
    return replace(copy, broker=broker, directory=directory)


def outlived(
    end: int,
    *lines: LogLineFact,
    history: list[tuple[int, int, tuple[int, ...]]] = OLD,
    started_at: int = 5,
    **more: Any,
) -> bool:
    """Whether broker 1's copy with records of epoch 0 up to `end` is older than its replica."""
    recorded = [
        Recorded(ev.LeadershipRecorded(leader, leader_epoch, isr, n), None, ev.Source("x"))
        for n, (leader, leader_epoch, isr) in enumerate(history)
    ]
    mine = of(1, end, (0, 0, end))
    leaders = of(3, 9, (0, 0, started_at), (1, started_at, 9))
    found = evidence(*lines, recorded=recorded, copies=[mine, leaders], **more)
    return is_outlived(found, mine)


def test_who_came_into_the_isr_had_cut_what_lay_behind_the_epochs_start() -> None:
    assert outlived(7)
    assert outlived(4)
    # It may be from right after, before anything was written there.
    assert not outlived(5)


@pytest.mark.parametrize(
    "history",
    [
        [(1, 0, (1, 3)), (3, 1, (1, 3))],
        [(1, 0, (1, 3)), (3, 1, (3, 1)), (3, 1, (3,))],
        [(1, 0, (1,)), (1, 0, (1, 3))],
    ],
)
def test_who_was_in_the_isr_before_the_election_may_never_have_followed(
    history: list[tuple[int, int, tuple[int, ...]]],
) -> None:
    assert not outlived(7, history=history)


def test_who_led_since_has_the_epoch() -> None:
    assert outlived(7, history=[(3, 0, (1, 3)), (1, 1, (1, 3))])


@pytest.mark.parametrize("wrote", [True, False])
def test_who_led_since_has_what_it_wrote(wrote: bool) -> None:
    """Broker 1 led epoch 1 from where its copy ends; elected as it stopped, it never heard."""
    mine = replace(of(1, 5, (0, 0, 5)), clean=True)
    other = of(3, 9, (0, 0, 5), *([(1, 5, 9)] if wrote else []))
    recorded = [
        Recorded(ev.LeadershipRecorded(leader, leader_epoch, (1, 3)), None, ev.Source("x"))
        for leader, leader_epoch in ((3, 0), (1, 1))
    ]
    assert is_outlived(evidence(recorded=recorded, copies=[mine, other]), mine) == wrote


@pytest.mark.parametrize(
    ("end", "history", "found"),
    [
        (43, OLD, True),
        (9, OLD, False),
        (43, [*OLD, (1, 2, (1,))], False),
        (43, [(1, 0, (1, 3)), (3, 1, (1, 3))], False),
    ],
)
def test_who_joined_the_last_leaders_isr_has_no_more_than_that_one(
    end: int, history: list[tuple[int, int, tuple[int, ...]]], found: bool
) -> None:
    """Before leader epochs nothing else tells."""
    recorded = [
        Recorded(ev.LeadershipRecorded(leader, leader_epoch, isr, n), None, ev.Source("x"))
        for n, (leader, leader_epoch, isr) in enumerate(history)
    ]
    mine, leaders = of(1, end), of(3, 9)
    assert is_outlived(evidence(recorded=recorded, copies=[mine, leaders]), mine) == found


def test_where_its_lines_are_here_they_tell() -> None:
    whole = [started(), line("log_created"), follows(0, 1), follows(1, 2)]
    assert not outlived(7, *whole, history=[(3, 0, (3,)), *OLD[1:]])
    assert outlived(7, *whole, history=[(3, 0, (3,)), *OLD[1:]], damaged_lines={1})


def test_a_copy_may_be_older_than_one_whose_checkpoints_alone_are_here() -> None:
    lines = [started(), line("log_created"), follows(0, 1)]
    old = replace(of(1, 5, (0, 0, 5)), named_elsewhere=True)
    assert is_outlived(evidence(copies=[old]), old)
    assert not is_outlived(evidence(copies=[old]), replace(old, named_elsewhere=False))
    assert not is_outlived(evidence(*lines, copies=[old]), old)
