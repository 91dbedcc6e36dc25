"""A leader that got another log directory while it was in sync."""

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.judgement.another_directory import led_from_another_directory
from replication.protocol.judgement.view import view_of
from tests.protocol.judgement.told import copy, elected, given, told, verdict


@pytest.mark.parametrize(("lines_of", "found"), [((1, 2), "HOLDS"), ((2,), "UNKNOWN")])
def test_who_got_another_directory_in_sync_may_have_led_without_what_it_had(
    lines_of: tuple[int, ...], found: str
) -> None:
    """Back before it is fenced it leads on in its epoch; only its own lines would tell."""
    moved = ev.CoverageDeclared("same_directory", 1, False, "at offset 5")
    facts = [
        *given(*lines_of, version="4.1.0"),
        elected(1, 0, "initial", (1, 2)),
        *([ev.BecameLeader(1, 0, 0, 0)] if 1 in lines_of else []),
        ev.RecordsAcknowledged(0, 2, "all", 0, 0),
        elected(2, 1, "clean", (1, 2)),
        ev.BecameLeader(2, 1, 2, 2),
        copy(2, (0, 2, 0, 0), mark=2),
    ]
    for name in ("committed_records_survive", "acknowledged_records_survive"):
        assert verdict(facts, name) == "HOLDS"
        assert verdict([*facts, moved], name) == found
    unsure = led_from_another_directory(view_of(told([*facts, moved])), "any")
    assert (unsure is not None) == (found == "UNKNOWN")
