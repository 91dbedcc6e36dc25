"""What the smallest worlds can break in each generation; `make small-worlds` explores more."""

import pytest

from tests.protocol.small_worlds import Limits, act, explore, key, start

CLEAN = Limits("one record, one election, one stop", records=1, elections=1)
NO_STOPS = Limits("two elections", stops=0)

# What a world can break, by release. What is missing from a set cannot be broken in that world.
OUTCOMES = [
    ("0.10.2.2", CLEAN, {"committed_records_survive", "truncation_spares_committed"}),
    ("0.11.0.0", CLEAN, set()),
    ("2.8.1", CLEAN, set()),
    ("4.1.0", CLEAN, set()),
    ("1.1.1", NO_STOPS, {"truncation_spares_committed"}),
    ("2.0.1", NO_STOPS, set()),
    ("2.1.0", NO_STOPS, set()),
]


@pytest.mark.parametrize(("release", "limits", "broken"), OUTCOMES)
def test_what_can_be_broken(release: str, limits: Limits, broken: set[str]) -> None:
    outcome = explore(release, limits)

    assert outcome.complete
    assert outcome.states > 400
    assert set(outcome.broken) == broken


def test_followers_that_differ_in_name_only_are_one_state() -> None:
    first = start("2.8.1", Limits("three", replicas=3))
    b, c = act(first, "restart B kind=process"), act(first, "restart C kind=process")

    assert b is not None
    assert c is not None
    assert key(b) == key(c)
    assert key(b) != key(first)
