"""Settings that every test shares."""

import os
from collections.abc import Iterator
from unittest import mock

import pytest
from hypothesis import settings

from replication import progress
from replication.evidence import digest

# A shared two-core machine stalls for seconds: deadlines would fail at random, so there are none.
# The same examples in every run: a red run then always means a change. New examples are drawn by
# `make soak`, and by HYPOTHESIS_PROFILE=search here; a failure prints the blob that repeats it.
settings.register_profile("house", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))


@pytest.fixture(autouse=True, scope="session")
def own_priority() -> Iterator[None]:
    """digest.py asks for the lowest priority, of the whole process: not of the one that tests."""
    with mock.patch.object(digest, "take_lowest_priority"):
        yield


@pytest.fixture(autouse=True, scope="session")
def patience() -> Iterator[None]:
    """On a machine that stalls a quick command would say how far it is, where tests compare."""
    with mock.patch.object(progress, "PATIENCE_SECONDS", 600.0):
        yield


def without_progress(said: str) -> str:
    """What a command of its own process said on stderr, without how far it was."""
    lines = said.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("... "))


# The groups that take longest begin first: none is left alone on one processor at the end.
LONGEST_FIRST = (
    "quality", "test_stream.py", "test_side_by_side.py", "test_bad_input.py", "test_kafka_lab.py",
    "test_kill.py", "test_live.py", "test_kafka_source.py", "test_import_artifacts.py",
    "test_change_feed.py", "test_alerts.py",
)  # fmt: skip


def group_of(item: pytest.Item) -> str:
    """Its file, or the folder of those that look at the same tables."""
    together = item.path.parent if item.path.parent.name == "quality" else item.path
    return together.name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a costly fixture run in one process, where several run."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item)))
    turns = {group: turn for turn, group in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: turns.get(group_of(item), len(turns)))
