"""The table of commands: one row for each action of each release and mode."""

import re

import pytest

from replication.decisions.commands import (
    CONTROLLERS,
    ELECT,
    KRAFT,
    LEAD_UNCLEANLY,
    MOVE_AWAY,
    ROWS,
    START,
    ZOOKEEPER,
    Row,
    row_of,
)
from replication.decisions.tried import TRIED
from replication.protocol.ground.versions import KNOWN_BRANCHES, controllers_of

PLACES = [
    (branch, mode)
    for branch in KNOWN_BRANCHES
    for mode in controllers_of(".".join(map(str, branch)))
]
# Where the setting alone elects nobody, the start after it does: no other release has that step,
# and these have no plain start. ZooKeeper has no controllers of their own to start.
ACTIONS = sorted({row.action for row in ROWS} - {START, LEAD_UNCLEANLY, CONTROLLERS})
LABORATORY = [
    *(f"{release} ZooKeeper" for release in ("0.10.2.2", "1.1.1", "2.3.1", "2.8.2", "3.9.1")),
    *(f"{release} KRaft" for release in ("3.6.2", "3.9.1", "4.1.1", "4.3.0")),
]
NAMES = {"topic": "t", "partition": 0, "broker": 1, "directory": "d", "offset": 7}


@pytest.mark.parametrize("action", ACTIONS)
def test_each_release_has_one_row(action: str) -> None:
    for branch, mode in PLACES:
        rows = [
            row
            for row in ROWS
            if row.action == action and mode in row.modes
            if row.since <= branch and (row.until is None or branch < row.until)
        ]
        assert len(rows) == 1, (action, branch, mode)
        assert row_of(action, branch, mode) is rows[0]


def test_the_start_that_elects_uncleanly_is_where_the_setting_does_not() -> None:
    for branch, mode in PLACES:
        elects = row_of(ELECT, branch, mode)
        assert elects is not None
        starts = row_of(LEAD_UNCLEANLY, branch, mode)
        assert (starts is not None) is elects.sets_only, (branch, mode)
        assert (row_of(START, branch, mode) is None) is elects.sets_only, (branch, mode)


def test_controllers_are_started_where_they_are_servers_of_their_own() -> None:
    for branch, mode in PLACES:
        assert (row_of(CONTROLLERS, branch, mode) is not None) is (mode == KRAFT), (branch, mode)


def test_what_was_tried_is_of_rows_that_are_there() -> None:
    keys = [row.key for row in ROWS]
    assert len(keys) == len(set(keys))
    assert TRIED.keys() <= set(keys)


@pytest.mark.parametrize("place", LABORATORY)
def test_each_row_was_tried_on_each_broker_of_the_laboratory_that_it_is_for(place: str) -> None:
    """Every release has a part of the rows; a row that was changed has to be tried again."""
    release, mode = place.split()
    numbers, mode = tuple(map(int, release.split("."))), mode.lower()
    rows = [row_of(action, numbers, mode) for action in {row.action for row in ROWS}]
    here = [row for row in rows if row is not None and row.command is not None]
    assert len(here) > 10
    # Added after the last run of the laboratory's elections; what it prints says `tried: no`.
    due = {MOVE_AWAY}
    assert [row.key for row in here if place not in row.tried and row.action not in due] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.action} {row.since} {row.modes}")
def test_a_row_is_whole(row: Row) -> None:
    assert row.check
    assert row.prints
    assert row.command or row.note, "an action without a command says what does it"
    filled = [
        (text or "").format(**NAMES)
        for text in (row.command, row.check, row.prints, row.undo, row.shows, row.hides)
    ]
    assert not any(re.search(r"\{[a-z]*\}", text) for text in filled), "each name is filled in"
    assert all(re.compile(text) for text in filled[4:])
    # A check that no script can make is none; what a tool that fails prints passes nowhere.
    assert row.shows
    for failed in ("", "command not found", "Connection refused", "No such file or directory"):
        assert not any(re.search(filled[4], line) for line in failed.splitlines() or [""])


def test_no_command_names_what_its_release_has_not() -> None:
    for branch, mode in PLACES:
        for action in ACTIONS:
            row = row_of(action, branch, mode)
            assert row is not None
            told = f"{row.command} {row.check} {row.undo}"
            if mode == KRAFT or branch >= (3, 0):
                assert "--zookeeper" not in told, (action, branch, mode)
            if branch < (2, 4):
                assert "kafka-leader-election" not in told, (action, branch, mode)
            if branch >= (3, 0):
                assert "kafka-preferred-replica-election" not in told


def test_kraft_before_3_1_has_no_command_for_an_unclean_election() -> None:
    found = row_of("elect_uncleanly", (3, 0), KRAFT)
    assert found is not None
    assert found.command is None
    of_zookeeper = row_of("elect_uncleanly", (3, 0), ZOOKEEPER)
    assert of_zookeeper is not None
    assert of_zookeeper.command is not None
