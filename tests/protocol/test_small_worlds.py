"""What the smallest worlds can break in each generation; small_worlds.py explores more."""

from dataclasses import replace

import pytest

from replication.protocol.ground.boundaries import REMEDIES
from tests.protocol.small_worlds import CLEAN, GENERATIONS, SORTS, WORLDS, explore, kept
from tests.protocol.world_promises import PROMISES
from tests.protocol.world_states import Limits, act, key, start

ONE_OF_EACH = Limits("one record, one election, one stop", records=1, elections=1)
NO_STOPS = Limits("two elections", stops=0)
DELETION = next(w for w in CLEAN if w.name == "record deletion")

# What a world can break, by release. What is missing from a set cannot be broken in that world.
SURVIVE = {"committed_records_survive", "acknowledged_records_survive"}
CUT_TOO_MUCH = {"truncation_spares_committed", "isr_reaches_high_watermark"}
OUTCOMES = [
    ("0.10.2.2", ONE_OF_EACH, {*SURVIVE, *CUT_TOO_MUCH}),
    ("0.11.0.0", ONE_OF_EACH, set()),
    ("2.8.1", ONE_OF_EACH, set()),
    ("4.1.0", ONE_OF_EACH, set()),
    ("1.1.1", NO_STOPS, CUT_TOO_MUCH),
    pytest.param("2.0.1", NO_STOPS, set(), marks=pytest.mark.slow),
    pytest.param("2.1.0", NO_STOPS, set(), marks=pytest.mark.slow),
    ("2.1.0", DELETION, {"log_start_within_high_watermark"}),
    ("2.4.1", DELETION, set()),
]


@pytest.mark.parametrize(("release", "limits", "broken"), OUTCOMES)
def test_what_can_be_broken(release: str, limits: Limits, broken: set[str]) -> None:
    outcome = explore(release, limits)

    assert outcome.complete
    assert outcome.states > 200
    assert set(outcome.broken) == broken


MISSED_EPOCH = Limits(
    "a missed epoch", replicas=3, elections=2, records=1, stops=0, lost_responses=False,
    controller="kraft",
)  # fmt: skip


@pytest.mark.parametrize("remedy", ["", *(r.flag for r in REMEDIES)])
def test_either_remedy_of_a_missed_epoch_leaves_nothing_broken(remedy: str) -> None:
    outcome = explore("4.1.1", replace(MISSED_EPOCH, remedy=remedy))

    assert outcome.complete
    assert outcome.states > 2_000
    assert set(outcome.broken) == (set() if remedy else {"isr_reaches_high_watermark"})


def test_followers_that_differ_in_name_only_are_one_state() -> None:
    first = start("2.8.1", Limits("three", replicas=3))
    b, c = act(first, "restart B kind=process"), act(first, "restart C kind=process")

    assert b is not None
    assert c is not None
    assert key(b) == key(c)
    assert key(b) != key(first)


@pytest.mark.parametrize("sort", SORTS)
def test_every_kept_counterexample_breaks_its_promise(sort: str) -> None:
    promises = {p.name: p for p in PROMISES}
    stories = [(release, *story) for release in GENERATIONS for story in kept(sort, release)]
    for release, name, world, commands in stories:
        limits = next(w for w in WORLDS if w.name == world)
        assert limits in SORTS[sort]
        node = start(release, limits)
        for command in commands:
            before, after = node, act(node, command)
            assert after is not None
            node = after
        promise = promises[name]
        if promise.step is not None:
            assert not promise.step(before, node), f"{name} in {release}"
        else:
            assert promise.state is not None
            assert not promise.state(node), f"{name} in {release}"

    assert len(stories) > 50


def test_eligible_leader_replicas_survive_a_power_loss() -> None:
    assert "committed_records_survive" in {name for name, _, _ in kept("lossy", "3.7.0")}
    assert kept("lossy", "4.1.0") == []
