"""A log's zone by what the metadata log and its own lines both show."""

from dataclasses import replace

import pytest

from replication.evidence.joining.clocks import Clocks
from tests.evidence.joining.history import created, history
from tests.evidence.joining.lines import line, log

HOUR = 3_600_000
# Leader epoch 1 began at two o'clock by the controller.
CHANGE = created("", "t", at=2 * HOUR)
KNOWN = history(changes=(replace(CHANGE, after=replace(CHANGE.after, leader_epoch=1)),))


def ahead_of_utc(second_epoch_at: int) -> tuple[int | None, list[str], int | None]:
    lines = (
        line("became_leader", at=second_epoch_at - 60_000, number=1, leader_epoch=0),
        line("became_leader", at=second_epoch_at, number=2, leader_epoch=1),
    )
    notes: list[str] = []
    (moved,) = Clocks([], KNOWN, None, []).in_utc([log(1, *lines)], notes)
    last = [fact.at for packed in moved.lines for fact in packed][-1]
    return moved.ahead, notes, last


def test_local_time_is_moved_to_utc_with_a_note() -> None:
    ahead, (note,), at = ahead_of_utc(4 * HOUR)
    assert (ahead, at) == (2 * HOUR, 2 * HOUR)
    assert "UTC+02:00" in note


@pytest.mark.parametrize("at", [2 * HOUR, 2 * HOUR + 60_000])
def test_a_log_in_utc_is_left_as_it_is(at: int) -> None:
    assert ahead_of_utc(at) == (0, [], at)


def test_what_no_zone_explains_is_left_as_it_is() -> None:
    assert ahead_of_utc(2 * HOUR + 450_000) == (None, [], 2 * HOUR + 450_000)
