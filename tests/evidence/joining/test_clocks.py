"""A log's zone by what the metadata log and its own lines both show."""

from dataclasses import replace

import pytest

from replication.evidence.joining.clocks import Clocks, dated
from replication.evidence.joining.one_cluster import ClusterEvidence, with_logs_in_utc
from tests.evidence.joining.history import created, history
from tests.evidence.joining.lines import acknowledged, line, log

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


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("Fri Nov 20 15:20:07 UTC 2026", {0}),
        ("Fri Nov 20 15:20:07 GMT-03:30 2026", {-210}),
        ("Fri Nov 20 15:20:07 CET 2026", {60}),
        ("Fri Nov 20 15:20:07 IST 2026", {330, 60, 120}),
        ("Fri Nov 20 15:20:07 XYZ 2026", set()),
        ("Fri Nov 31 15:20:07 UTC 2026", set()),
    ],
)
def test_what_the_zone_of_a_date_may_stand_for(text: str, offsets: set[int]) -> None:
    at, found = dated(text)
    assert found == offsets
    assert at == (1_795_188_007_000 if "20 15" in text else 0)


def test_a_log_whose_stamps_name_their_zone_is_moved_by_nothing() -> None:
    (moved,) = Clocks([], KNOWN, None, []).in_utc([log(1, names_zone=True)], [])
    assert moved.ahead == 0


def test_where_nothing_tells_the_zone_no_clock_is_held_against_another() -> None:
    lines = log(1, line("became_leader", at=1, leader_epoch=0), first_at=1, last_at=1)
    cluster = ClusterEvidence("", logs=(lines,), acknowledgements=(acknowledged("a"),))
    held, (note,) = with_logs_in_utc(cluster, [])
    assert not held.clocks_compare
    assert "--time-zone says the zone" in note
