"""What the smallest worlds can break in each generation; small_worlds.py explores more."""

import re

import pytest

from tests.protocol.small_worlds import CLEAN, KEPT, SORTS, WORLDS, explore
from tests.protocol.world_promises import EXPLAINED, GENERATIONS, PROMISES, differences
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


def test_followers_that_differ_in_name_only_are_one_state() -> None:
    first = start("2.8.1", Limits("three", replicas=3))
    b, c = act(first, "restart B kind=process"), act(first, "restart C kind=process")

    assert b is not None
    assert c is not None
    assert key(b) == key(c)
    assert key(b) != key(first)


def kept_stories() -> list[tuple[str, str, str, str, list[str]]]:
    """(sort, release, promise, world, commands) of every counterexample that is kept."""
    found = []
    for path in sorted(KEPT.glob("*.txt")):
        sort, release = path.stem.split("_")
        for story in re.split(r"^# ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            title, _, rest = story.partition("\n")
            match = re.fullmatch(r"(\w+): a shortest schedule .* in \S+ \((.*)\)\.", title)
            assert match, title
            commands = rest.split("ok\n\n", 1)[1].split("\n----", 1)[0].splitlines()
            found.append((sort, release, match[1], match[2], commands))
    return found


@pytest.mark.parametrize("sort", SORTS)
def test_every_kept_counterexample_breaks_its_promise(sort: str) -> None:
    promises = {p.name: p for p in PROMISES}
    stories = [s for s in kept_stories() if s[0] == sort]
    for _, release, name, world, commands in stories:
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


def test_every_difference_from_the_table_is_explained_and_no_other() -> None:
    broken: dict[str, set[str]] = {release: set() for release in GENERATIONS}
    for sort, release, name, _, _ in kept_stories():
        if sort == "clean":
            broken[release].add(name)

    differing = {(p.name, release) for p, release, _ in differences(broken)}

    assert differing == {(n, v) for d in EXPLAINED for n in d.names for v in d.versions}


def test_eligible_leader_replicas_survive_a_power_loss() -> None:
    lossy = {(release, name) for sort, release, name, _, _ in kept_stories() if sort == "lossy"}

    assert ("3.7.0", "committed_records_survive") in lossy
    assert not any(release == "4.1.0" for release, _ in lossy)
