"""The follower's rules: high watermark, truncation in every generation, resets, start-up."""

import pytest

from replication.protocol.ground.model import EpochEndOffset, EpochEntry
from replication.protocol.ground.versions import behaviour
from replication.protocol.rules.high_watermark_of_follower import high_watermark_of_follower
from replication.protocol.rules.out_of_range_reset import Reset, out_of_range_reset
from replication.protocol.rules.start_up_recovery import OnDisk, start_up_recovery
from replication.protocol.rules.truncate_by_common_epoch import truncate_by_common_epoch
from replication.protocol.rules.truncate_on_fetch import (
    truncate_on_fetch,
    truncates_before_fetching,
)
from replication.protocol.rules.truncate_to_high_watermark import truncate_to_high_watermark
from replication.protocol.rules.truncate_to_leader_end_offset import truncate_to_leader_end_offset
from replication.protocol.rules.truncation_effect import emptied_at, truncation_effect
from replication.protocol.rules.when_to_truncate import when_to_truncate

CACHE = (EpochEntry(0, 0), EpochEntry(2, 6), EpochEntry(5, 8))


def test_high_watermark_of_follower() -> None:
    old, new = behaviour("2.3.1"), behaviour("2.4.0")

    assert high_watermark_of_follower(9, 0, 7, old) == 7
    assert high_watermark_of_follower(3, 0, 7, old) == 3
    assert high_watermark_of_follower(3, 5, 7, old) == 3
    assert high_watermark_of_follower(3, 5, 7, new) == 5


# what, known leader, known epoch, leader, epoch, due by release
CHECKS = [
    ("start", None, None, 1, 3, {"0.9.0.1": True, "2.0.1": True, "3.9.1": True}),
    ("unknown leader", None, 3, 1, 3, {"2.0.1": True, "2.1.0": True}),
    ("unknown epoch", 1, None, 1, 3, {"2.0.1": True, "2.1.0": True}),
    ("another leader", 2, 2, 1, 3, {"0.9.0.1": True, "2.0.1": True, "2.1.0": True}),
    ("same leader, next epoch", 1, 2, 1, 3, {"1.1.1": False, "2.0.1": False, "2.1.0": True}),
    ("same leader, one missed", 1, 1, 1, 3, {"2.0.0": False, "2.0.1": True, "2.1.0": True}),
    ("same epoch", 1, 3, 1, 3, {"2.0.0": False, "2.0.1": False, "2.1.0": False}),
    ("another leader, same epoch", 2, 3, 1, 3, {"2.0.0": True, "2.1.0": False}),
]


@pytest.mark.parametrize(("what", "known", "known_in", "leader", "leader_epoch", "due"), CHECKS)
def test_when_to_truncate(
    what: str,
    known: int | None,
    known_in: int | None,
    leader: int,
    leader_epoch: int,
    due: dict[str, bool],
) -> None:
    for release, expected in due.items():
        actual = when_to_truncate(
            None if known is None or known_in is None else (known, known_in),
            leader,
            leader_epoch,
            behaviour(release),
        )

        assert actual is expected, f"{what} under {release}"


def test_truncate_to_high_watermark() -> None:
    cut = truncate_to_high_watermark(4)

    assert (cut.to_offset, cut.finished, cut.rule) == (4, True, "truncate_to_high_watermark")


def test_truncate_to_leader_end_offset() -> None:
    assert truncate_to_leader_end_offset(5, 7, 10, 4).to_offset == 7
    assert truncate_to_leader_end_offset(5, 12, 10, 4).to_offset == 10
    undefined = truncate_to_leader_end_offset(5, None, 10, 4)
    assert (undefined.to_offset, undefined.rule) == (4, "truncate_to_high_watermark")
    without_epochs = truncate_to_leader_end_offset(None, 10, 10, 4)
    assert without_epochs.finished
    assert without_epochs.because == "the leader ends epoch none at 10"


# what, leader's answer, cut to, finished; the follower's log ends at 10, its high watermark is 4
ROUNDS = [
    ("undefined", (None, None), 4, True),
    ("an older leader's answer", (None, 7), 7, True),
    ("an older leader is ahead", (None, 12), 10, True),
    ("same epoch, leader shorter", (5, 9), 9, True),
    ("same epoch, leader longer", (5, 12), 10, True),
    ("an earlier epoch, leader longer", (2, 9), 8, True),
    ("an earlier epoch, leader shorter", (2, 7), 7, True),
    ("an epoch it lacks", (3, 9), 8, False),
    ("an epoch after all of its own", (7, 9), 9, True),
]


@pytest.mark.parametrize(("what", "reply", "to_offset", "finished"), ROUNDS)
def test_truncate_by_common_epoch(
    what: str, reply: tuple[int | None, int | None], to_offset: int, finished: bool
) -> None:
    cut = truncate_by_common_epoch(EpochEndOffset(*reply), CACHE, 10, 4, behaviour("2.1.0"))

    assert (cut.to_offset, cut.finished) == (to_offset, finished)


def test_truncate_on_fetch_keeps_the_formula_and_stays_fetching() -> None:
    cut = truncate_on_fetch(EpochEndOffset(3, 9), CACHE, 10, 4, behaviour("2.8.1"))

    assert (cut.to_offset, cut.finished, cut.rule) == (8, True, "truncate_on_fetch")
    assert truncates_before_fetching(None, behaviour("2.8.1"))
    assert not truncates_before_fetching(3, behaviour("2.8.1"))
    assert truncates_before_fetching(3, behaviour("2.7.2"))


def test_because_names_what_decided() -> None:
    b = behaviour("2.1.0")

    assert (
        "ends its latest epoch at 7"
        in truncate_by_common_epoch(EpochEndOffset(None, 7), CACHE, 10, 4, b).because
    )
    assert (
        "ends epoch 2 at 7"
        in truncate_by_common_epoch(EpochEndOffset(2, 7), CACHE, 10, 4, b).because
    )

    assert (
        "its own epoch 2 ends at 8"
        in truncate_by_common_epoch(EpochEndOffset(2, 9), CACHE, 10, 4, b).because
    )
    assert (
        "the leader ends epoch 2 at 8"
        in truncate_by_common_epoch(EpochEndOffset(2, 8), CACHE, 10, 4, b).because
    )


def test_truncation_effect_on_the_high_watermark() -> None:
    old = truncation_effect(5, 0, 10, 8, CACHE, behaviour("2.3.1"), first_segment_offset=0)
    new = truncation_effect(5, 0, 10, 8, CACHE, behaviour("2.4.0"), first_segment_offset=0)

    assert (old.log_end_offset, old.high_watermark) == (5, 8)
    assert (new.log_end_offset, new.high_watermark) == (5, 5)
    assert new.epoch_entries == CACHE[:1]
    assert not new.emptied


def test_truncation_that_cuts_nothing_may_still_drop_an_epoch() -> None:
    cache = (*CACHE, EpochEntry(7, 10))

    for at in (10, 11):
        old = truncation_effect(at, 0, 10, 8, cache, behaviour("2.6.0"), first_segment_offset=0)
        new = truncation_effect(at, 0, 10, 8, cache, behaviour("2.6.1"), first_segment_offset=0)

        assert old.epoch_entries == cache
        assert new.epoch_entries == CACHE
        assert (new.log_end_offset, new.high_watermark) == (10, 8)


def test_truncation_below_the_first_segment_empties_the_log() -> None:
    new = truncation_effect(3, 5, 10, 8, CACHE, behaviour("2.4.1"), first_segment_offset=5)
    old = truncation_effect(3, 5, 10, 8, CACHE, behaviour("2.4.0"), first_segment_offset=5)
    inside = truncation_effect(3, 5, 10, 8, CACHE, behaviour("2.4.1"), first_segment_offset=0)
    at_base = truncation_effect(5, 5, 10, 8, CACHE, behaviour("2.4.1"), first_segment_offset=5)

    assert (new.log_start_offset, new.log_end_offset, new.high_watermark) == (3, 3, 3)
    assert new.emptied
    assert new.epoch_entries == ()
    assert old.high_watermark == 3
    assert (inside.log_start_offset, inside.log_end_offset, inside.emptied) == (3, 3, False)
    assert inside.epoch_entries == CACHE[:1]
    assert not at_base.emptied
    assert emptied_at(7, 2, behaviour("2.4.1")).high_watermark == 7
    assert emptied_at(7, 2, behaviour("2.4.0")).high_watermark == 2
    assert emptied_at(3, 8, behaviour("2.3.1")).high_watermark == 8


# what, own end, leader start, leader end, unclean, by release
RESETS = [
    ("ahead", 10, 0, 6, True, {"2.0.0": Reset("truncate", 6), "2.0.1": Reset("truncate", 6)}),
    ("ahead, clean", 10, 0, 6, False, {"2.0.0": Reset("halt", 10), "2.0.1": Reset("truncate", 6)}),
    ("behind the start", 3, 5, 9, False, {"2.0.0": Reset("restart_at", 5)}),
    ("inside after all", 7, 5, 9, False, {"2.0.0": Reset("keep", 7)}),
    ("at the end", 9, 5, 9, False, {"2.0.0": Reset("keep", 9)}),
    ("at the start", 5, 5, 9, False, {"2.0.0": Reset("keep", 5)}),
]


@pytest.mark.parametrize(("what", "own_end", "start", "end", "unclean", "by_release"), RESETS)
def test_out_of_range_reset(
    what: str, own_end: int, start: int, end: int, unclean: bool, by_release: dict[str, Reset]
) -> None:
    for release, expected in by_release.items():
        assert out_of_range_reset(own_end, start, end, unclean, behaviour(release)) == expected


def test_start_up_after_a_clean_stop_changes_nothing() -> None:
    found = start_up_recovery(OnDisk(10, 0, 0, 8, CACHE), behaviour("3.9.1"))

    assert (found.log_start_offset, found.log_end_offset, found.high_watermark) == (0, 10, 8)
    assert found.epoch_entries == CACHE


def test_start_up_clamps_the_high_watermark() -> None:
    old, new = behaviour("2.3.1"), behaviour("2.4.0")

    assert start_up_recovery(OnDisk(5, 0, 0, 8), new).high_watermark == 5
    assert start_up_recovery(OnDisk(5), new).high_watermark == 0
    assert start_up_recovery(OnDisk(9, 4, 4, 1), old).high_watermark == 1
    assert start_up_recovery(OnDisk(9, 4, 4, 1), new).high_watermark == 4


def test_start_up_restores_epochs_from_batches_and_cuts_the_cache() -> None:
    stamped = (EpochEntry(0, 0), EpochEntry(2, 6), EpochEntry(7, 9))
    found = start_up_recovery(OnDisk(10, 0, 0, 0, CACHE, stamped), behaviour("3.9.1"))

    assert found.epoch_entries == (*CACHE, EpochEntry(7, 9))
    short = start_up_recovery(OnDisk(8, 0, 0, 0, CACHE), behaviour("3.9.1"))
    assert short.epoch_entries == CACHE[:2]
    same = start_up_recovery(OnDisk(10, 0, 0, 0, (), stamped), behaviour("3.9.1"))
    assert same.epoch_entries == stamped
    assert start_up_recovery(OnDisk(10, 0, 0, 0, CACHE), behaviour("0.10.2")).epoch_entries == ()


def test_start_up_with_a_log_start_checkpoint() -> None:
    b = behaviour("3.9.1")

    inside = start_up_recovery(OnDisk(10, 0, 7, 8, CACHE), b)
    lost = start_up_recovery(OnDisk(5, 0, 7, 4, CACHE), b)

    assert inside.log_start_offset == 7
    assert inside.epoch_entries == (EpochEntry(2, 7), EpochEntry(5, 8))
    assert not inside.emptied
    assert (lost.log_start_offset, lost.log_end_offset, lost.high_watermark) == (7, 7, 7)
    assert lost.emptied
    assert lost.epoch_entries == ()
    assert not start_up_recovery(OnDisk(7, 0, 7, 4, CACHE), b).emptied
