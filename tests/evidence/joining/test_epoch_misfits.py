"""A copy whose epoch file contradicts its records counts as unread from there on."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from replication.evidence.joining.epoch_misfits import doubted, leaderless, still_shown
from replication.evidence.joining.places import Place
from replication.evidence.joining.registrations import Recorded
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span

Runs = list[tuple[int | None, int, int]]


def unread_from(
    runs: Runs, entries: tuple[tuple[int, int], ...] | None, version: str | None = "2.8.2",
    clean: bool = True, nobody: frozenset[int] = frozenset(),
) -> int | None:  # fmt: skip
    directory = SimpleNamespace(epoch_entries=entries, kind="replica", path=Path("d/t-0"))
    copy: Any = SimpleNamespace(
        directory=directory, clean=clean, read_at=None, unread_from=None,
        spans=[Span(first, end, leader_epoch, 0) for leader_epoch, first, end in runs],
    )  # fmt: skip
    named = list(doubted([copy], ev.PartitionDescribed(kafka_version=version), nobody))
    assert len(named) == (copy.unread_from is not None)
    assert all(s.end_offset <= (copy.unread_from or 99) for s in copy.spans)
    return copy.unread_from  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("runs", "entries"),
    [
        ([(0, 0, 20), (1, 20, 30)], ((0, 0), (1, 20))),
        # Epochs without records, compacted starts, records before leader epochs, no file.
        ([(0, 0, 20)], ((0, 0), (1, 20))),
        ([(0, 3, 18), (2, 25, 30)], ((0, 0), (1, 18), (2, 20))),
        ([(None, 0, 30)], ((4, 10),)),
        ([(0, 0, 20), (1, 20, 30)], None),
    ],
)
def test_files_of_one_moment(runs: Runs, entries: tuple[tuple[int, int], ...] | None) -> None:
    assert unread_from(runs, entries) is None


def test_records_of_an_epoch_that_the_file_has_ended() -> None:
    assert unread_from([(0, 0, 25)], ((0, 0), (1, 20))) == 20
    # Before 2.0.1 the file kept the higher epoch where epochs fell.
    assert unread_from([(0, 0, 25)], ((0, 0), (1, 20)), "1.1.1") is None
    assert unread_from([(0, 0, 25)], ((0, 0), (1, 20)), None) is None


def test_records_of_an_epoch_that_the_file_does_not_name() -> None:
    newer: Runs = [(0, 0, 20), (1, 20, 30)]
    assert unread_from(newer, ((0, 0),)) == 20
    # Of a broker that was not stopped it may lag behind.
    assert unread_from(newer, ((0, 0),), clean=False) is None
    assert unread_from(newer, ((0, 0), (2, 25)), clean=False) == 20


@pytest.mark.parametrize(
    ("runs", "entries", "first"),
    [
        ([(0, 0, 20), (1, 20, 30)], ((0, 0), (1, 20)), 20),
        # By the file alone, where no record of the epoch stands; by the records alone.
        ([(0, 0, 20)], ((0, 0), (1, 20)), 20),
        ([(0, 0, 20), (1, 20, 30)], None, 20),
        ([(0, 0, 20), (2, 20, 30)], ((0, 0), (2, 20)), None),
    ],
)
def test_an_epoch_in_which_the_controllers_have_no_leader(
    runs: Runs, entries: tuple[tuple[int, int], ...] | None, first: int | None
) -> None:
    assert unread_from(runs, entries, nobody=frozenset({1})) == first
    assert unread_from(runs, entries) is None


def test_what_counts_as_unread_tells_no_client_where_its_record_is() -> None:
    """One bit of a leader epoch gave an acknowledged record an epoch in which nobody has it."""
    copies: list[Any] = [
        SimpleNamespace(spans=[Span(0, 4, 0, 0)]), SimpleNamespace(spans=[Span(0, 23, 0, 0)])
    ]  # fmt: skip
    named = {"sound": [Place(4, 2, 0), Place(4, 0, 0)], "gone": [Place(4, 2, 0)]}
    assert still_shown(named, copies) == {"sound": [Place(4, 0, 0)], "gone": []}


def test_which_epochs_have_no_leader() -> None:
    def recorded(leader: int | None, leader_epoch: int, line: int | None = None) -> Recorded:
        fact = ev.LeadershipRecorded(leader, leader_epoch, (1,), leader_epoch)
        return Recorded(fact, None, ev.Source("metadata", line))

    # A broker's line may lack what the controllers' records have.
    history = [recorded(1, 0), recorded(None, 1), recorded(2, 2), recorded(None, 3, line=7)]
    assert leaderless(history) == {1}
    assert leaderless([*history, recorded(1, 1)]) == set()
