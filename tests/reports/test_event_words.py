"""What happened at one event, in words and as a moment of the page."""

import pytest

from replication.protocol.folding import fold
from replication.protocol.ground import events as ev
from replication.reports import event_words, moments
from replication.reports.words import draw
from tests.protocol.judgement.told import copy, told


def test_a_cut_of_nothing_is_no_cut() -> None:
    state = fold.new_state("c", "t", "id", 0)

    def event(end: int, before: int) -> ev.Event:
        fact = ev.Truncated(2, end, before, "leader_epoch")
        return ev.Event("e", "trace", "c", "t", "id", 0, 0, fact, 1_000, "forensic", None, 0)

    nothing, some = event(11, 11), event(11, 13)
    assert event_words.sentence(nothing, state) == (
        "Broker 2 has nothing to cut: its log ends at 11."
    )
    assert "from 13 to 11" in event_words.sentence(some, state)
    assert [moments._mark(each, state) for each in (nothing, some)] == [None, moments.CUT]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("compact", ["brokers 1, 2: the log still has offsets 0..1, 4", "compaction left no"]),
        ("delete", ["a dot: records that are there and were not seen."]),
    ],
)
def test_a_drawn_log_says_what_its_gaps_are(policy: str, said: list[str]) -> None:
    copies = [copy(r, (0, 2, 0, 0), (4, 5, 1, 0)) for r in (1, 2)]
    drawn = draw(told([ev.PartitionDescribed(cleanup_policy=policy), *copies]), None)
    assert all(words in drawn for words in said)
    assert ("still has" in drawn) is (policy == "compact")
