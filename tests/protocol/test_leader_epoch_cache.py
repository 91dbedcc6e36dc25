"""The epoch cache's operations, and the lookup table in its four columns."""

import pytest

from replication.protocol.ground.leader_epoch_cache import (
    as_asked,
    assign,
    end_offset_for_epoch,
    latest_epoch,
    truncate_from_end,
    truncate_from_start,
)
from replication.protocol.ground.model import EpochEndOffset, EpochEntry
from replication.protocol.ground.versions import behaviour

CACHE = (EpochEntry(2, 10), EpochEntry(4, 20), EpochEntry(7, 30))
LOG_END = 45
UNDEFINED = EpochEndOffset(None, None)
COLUMNS = ("1.1.0", "1.1.1", "2.0.0", "2.0.1")

# case: cache, requested epoch, the answer in each of the four columns
LOOKUPS = [
    ("no epoch on either side", (), None, [(None, 45), (None, None), (None, None), (None, None)]),
    ("no epoch asked", CACHE, None, [(None, None)] * 4),
    ("nothing cached", (), 3, [(None, None)] * 4),
    ("latest", CACHE, 7, [(None, 45), (None, 45), (7, 45), (7, 45)]),
    ("cached", CACHE, 4, [(None, 30), (None, 30), (4, 30), (4, 30)]),
    ("first cached", CACHE, 2, [(None, 20), (None, 20), (2, 20), (2, 20)]),
    ("gap", CACHE, 5, [(None, 30), (None, 30), (4, 30), (4, 30)]),
    ("gap above the first", CACHE, 3, [(None, 20), (None, 20), (2, 20), (2, 20)]),
    ("before the cache", CACHE, 1, [(None, None), (None, None), (None, None), (1, 10)]),
    ("after the cache", CACHE, 8, [(None, None)] * 4),
]


@pytest.mark.parametrize(("case", "cache", "requested", "answers"), LOOKUPS)
def test_lookup(
    case: str,
    cache: tuple[EpochEntry, ...],
    requested: int | None,
    answers: list[tuple[int | None, int | None]],
) -> None:
    for release, expected in zip(COLUMNS, answers, strict=True):
        actual = as_asked(
            end_offset_for_epoch(cache, requested, LOG_END, behaviour(release)), behaviour(release)
        )

        assert tuple(actual) == expected, f"{case} under {release}"


def test_an_answer_spoken_in_an_old_protocol_names_no_epoch() -> None:
    old = behaviour("2.8.0", "1.1")

    for requested, end in ((5, 30), (1, 10), (7, LOG_END)):
        answer = end_offset_for_epoch(CACHE, requested, LOG_END, old)

        assert as_asked(answer, old) == EpochEndOffset(None, end)


def test_assign_from_2_0_1_drops_what_cannot_stay() -> None:
    b = behaviour("2.0.1")

    assert assign(CACHE, 7, 30, b) == CACHE
    assert assign(CACHE, 7, 35, b) == CACHE
    assert assign(CACHE, 7, 25, b) == (*CACHE[:2], EpochEntry(7, 25))
    assert assign(CACHE, 8, 30, b) == (*CACHE[:2], EpochEntry(8, 30))
    assert assign(CACHE, 3, 40, b) == (CACHE[0], EpochEntry(3, 40))
    assert assign(CACHE, 9, 15, b) == (CACHE[0], EpochEntry(9, 15))
    assert assign((), 0, 0, b) == (EpochEntry(0, 0),)


def test_assign_up_to_2_0_0_ignores_what_does_not_rise() -> None:
    b = behaviour("2.0.0")

    assert assign(CACHE, 8, 30, b) == (*CACHE, EpochEntry(8, 30))
    assert assign(CACHE, 7, 25, b) == CACHE
    assert assign(CACHE, 6, 40, b) == CACHE
    assert assign(CACHE, 9, 29, b) == CACHE


def test_truncate_from_end_and_start() -> None:
    assert truncate_from_end(CACHE, 30) == CACHE[:2]
    assert truncate_from_end(CACHE, 31) == CACHE
    assert truncate_from_end(CACHE, 0) == ()
    assert truncate_from_start(CACHE, 9) == CACHE
    assert truncate_from_start(CACHE, 25) == (EpochEntry(4, 25), CACHE[2])
    assert truncate_from_start(CACHE, 30) == (EpochEntry(7, 30),)


def test_questions() -> None:
    assert latest_epoch(CACHE) == 7
    assert latest_epoch(()) is None
