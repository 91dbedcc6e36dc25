"""Lines about a replica's own log, and about those that lie beside it."""

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.replicas_own_lines import replicas_own_lines
from replication.evidence.joining.topic_lives import stretches
from tests.evidence.joining.lines import line, process

HASH = "7528fd910c7240819a302853cf72fb6d"
CREATED = line("log_created", directory="/d1/t-0")
RENAMED = line("log_marked_deleted", directory=f"/d1/t-0.{HASH}-delete")
DELETED = line("log_deleted", directory=f"/d1/t-0.{HASH}-delete")
FUTURE = line("log_created", directory=f"/d2/t-0.{HASH}-future")
REPLACED = line("log_replaced")


def cut(directory: str) -> LogLineFact:
    return line("truncated", directory=directory, to_offset=0)


CASES: dict[str, tuple[list[LogLineFact], list[bool]]] = {
    "a log is renamed to be deleted, and deleted later": (
        [CREATED, RENAMED, CREATED, DELETED],
        [True, True, True, False],
    ),
    "up to 0.11 it is deleted at once": (
        [CREATED, line("log_deleted", directory="/d1/t-0")],
        [True, True],
    ),
    "a log in another directory is filled": (
        [CREATED, FUTURE, cut("/d2"), cut("/d1")],
        [True, False, False, True],
    ),
    "it takes the replica's place": (
        [CREATED, FUTURE, REPLACED, DELETED, cut("/d2")],
        [True, False, False, False, True],
    ),
    "it is given up": (
        [CREATED, FUTURE, line("log_marked_deleted", directory=f"/d2/t-0.{HASH}-delete"), RENAMED],
        [True, False, False, True],
    ),
    "one that was being filled is loaded": (
        [FUTURE, process("process_started"),
         line("log_loaded", directory=f"/d2/t-0.{HASH}-future", log_end_offset=0),
         line("log_loaded", directory="/d1/t-0", log_end_offset=9), cut("/d2")],
        [False, True, False, True, False],
    ),
    "one that waits to be deleted is loaded": (
        [line("log_loaded", directory=f"/d1/t-0.{HASH}-delete", log_end_offset=0),
         line("log_loaded", directory="/d1/t-0", log_end_offset=9)],
        [False, True],
    ),
    "a broker takes up a new disk": (
        [CREATED, line("log_created", directory="/d2/t-0"), cut("/d2")],
        [True, True, True],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_which_lines_are_the_replicas(name: str) -> None:
    facts, own = CASES[name]
    facts = [fact._replace(line=number) for number, fact in enumerate(facts)]
    kept = list(replicas_own_lines(facts))
    assert kept == [fact for fact, is_own in zip(facts, own, strict=True) if is_own]


def test_a_log_that_is_deleted_late_ends_no_life_that_began_since() -> None:
    facts = [
        CREATED,
        line("became_leader", leader_epoch=0, log_end_offset=0),
        RENAMED,
        CREATED,
        line("became_leader", leader_epoch=0, log_end_offset=0),
        DELETED,
        line("became_leader", leader_epoch=0, log_end_offset=436),
    ]
    facts = [fact._replace(line=number, at=number) for number, fact in enumerate(facts)]
    assert [s.first_at for s in stretches(replicas_own_lines(facts))] == [0, 3]
