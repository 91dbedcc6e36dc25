"""What happened at one event, in words and as a moment of the page."""

from replication.protocol.folding import fold
from replication.protocol.ground import events as ev
from replication.reports import event_words, moments


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
