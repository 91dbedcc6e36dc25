"""What the smallest worlds can break in each generation; `make small-worlds` explores more."""

import pytest

from tests.protocol.small_worlds import CLEAN, explore
from tests.protocol.world_states import Limits, act, key, start

ONE_OF_EACH = Limits("one record, one election, one stop", records=1, elections=1)
NO_STOPS = Limits("two elections", stops=0)
DELETION = next(w for w in CLEAN if w.name == "record deletion")

# What a world can break, by release. What is missing from a set cannot be broken in that world.
SURVIVE = {"committed_records_survive", "acknowledged_records_survive"}
CUT_TOO_MUCH = {"truncation_spares_committed", "isr_reaches_high_watermark"}
OUTCOMES: list[tuple[str, Limits, set[str]]] = [
    ("0.10.2.2", ONE_OF_EACH, {*SURVIVE, *CUT_TOO_MUCH}),
    ("0.11.0.0", ONE_OF_EACH, set()),
    ("2.8.1", ONE_OF_EACH, set()),
    ("4.1.0", ONE_OF_EACH, set()),
    ("1.1.1", NO_STOPS, CUT_TOO_MUCH),
    ("2.0.1", NO_STOPS, set()),
    ("2.1.0", NO_STOPS, set()),
    ("2.1.0", DELETION, {"log_start_within_high_watermark"}),
    ("2.4.1", DELETION, set()),
]


@pytest.mark.parametrize(("release", "limits", "broken"), OUTCOMES)
def test_what_can_be_broken(release: str, limits: Limits, broken: set[str]) -> None:
    outcome = explore(release, limits)

    assert outcome.complete
    assert outcome.states > 200
    assert set(outcome.broken) == broken


def test_followers_that_differ_in_name_only_are_one_state() -> None:
    first = start("2.8.1", Limits("three", replicas=3))
    b, c = act(first, "restart B kind=process"), act(first, "restart C kind=process")

    assert b is not None
    assert c is not None
    assert key(b) == key(c)
    assert key(b) != key(first)
