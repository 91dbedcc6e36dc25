"""What a truncation says of itself: which rule it is by, whether it is the last, and why.

Where it cuts is held by scenarios and random schedules, of which `tests.protocol.mutants` shows
that they notice each condition changed.
"""

import pytest

from replication.protocol.ground.model import EpochEndOffset, EpochEntry
from replication.protocol.ground.versions import behaviour
from replication.protocol.rules.truncate_by_common_epoch import truncate_by_common_epoch
from replication.protocol.rules.truncate_on_fetch import truncate_on_fetch
from replication.protocol.rules.truncate_to_high_watermark import truncate_to_high_watermark
from replication.protocol.rules.truncate_to_leader_end_offset import truncate_to_leader_end_offset

CACHE = (EpochEntry(0, 0), EpochEntry(2, 6), EpochEntry(5, 8))


def test_each_rule_names_itself_and_says_whether_it_is_done() -> None:
    by_mark = truncate_to_high_watermark(4)
    undefined = truncate_to_leader_end_offset(5, None, 10, 4)
    on_fetch = truncate_on_fetch(EpochEndOffset(3, 9), CACHE, 10, 4, behaviour("2.8.1"))
    again = truncate_by_common_epoch(EpochEndOffset(3, 9), CACHE, 10, 4, behaviour("2.1.0"))

    assert (by_mark.to_offset, by_mark.finished) == (4, True)
    assert by_mark.rule == undefined.rule == "truncate_to_high_watermark"
    assert (on_fetch.to_offset, on_fetch.finished, on_fetch.rule) == (8, True, "truncate_on_fetch")
    assert (again.to_offset, again.finished) == (8, False)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ((None, 7), "ends its latest epoch at 7"),
        ((2, 7), "ends epoch 2 at 7"),
        ((2, 9), "its own epoch 2 ends at 8"),
        ((2, 8), "the leader ends epoch 2 at 8"),
    ],
)
def test_because_names_what_decided(reply: tuple[int | None, int], words: str) -> None:
    cut = truncate_by_common_epoch(EpochEndOffset(*reply), CACHE, 10, 4, behaviour("2.1.0"))

    assert words in cut.because


def test_a_leader_without_epochs_is_said_to_have_none() -> None:
    cut = truncate_to_leader_end_offset(None, 10, 10, 4)

    assert (cut.finished, cut.because) == (True, "the leader ends epoch none at 10")
