"""Settings that every test shares."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from replication import progress
from replication.evidence import digest

# A shared two-core machine stalls for seconds: deadlines would fail at random, so there are none.
# The same examples in every run: a red run then always means a change. New examples are drawn by
# `make soak`, and by HYPOTHESIS_PROFILE=search here; a failure prints the blob that repeats it.
settings.register_profile("house", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))


# As the command has it (replication/entry.py): to look for garbage as often as Python does costs a
# fifth of a run, the more the more modules there are to look through.
gc.set_threshold(50_000)


def pytest_collection_finish() -> None:
    """The tests themselves stay until the end: they are looked through no more."""
    gc.freeze()


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
    "test_change_feed.py", "test_alerts.py", "test_shard_fold.py", "test_beginnings.py",
    "test_poison.py", "test_settled.py", "test_server.py", "test_groups.py",
)  # fmt: skip


def group_of(path: Path) -> str:
    """Its file, or the folder of those that look at the same tables."""
    return path.parent.name if path.parent.name == "quality" else path.name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    turns = {group: turn for turn, group in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: turns.get(group_of(item.path), len(turns)))


class GroupByGroup(LoadScopeScheduling):
    """Tests that share a costly fixture, or what is kept of evidence, run in one process, where
    several run: pytest-xdist's own groups do nothing under pytest 9.2, which keeps the names of
    tests where they are not looked for."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(Path(nodeid.partition("::")[0]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupByGroup:
    config.option.loadscopereorder = False
    return GroupByGroup(config, log)
