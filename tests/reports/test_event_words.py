"""What happened at one event, in words and as a moment of the page."""

from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.folding import fold
from replication.protocol.ground import events as ev
from replication.reports import event_words, inventory_words, moments
from replication.reports.words import draw
from tests.protocol.judgement.told import copy, told

INCIDENTS = Path(__file__).parents[1] / "incidents"
# What a broker's own lines tell of its steps.
PRINTED = (
    ev.ReplicaStarted, ev.ReplicaStopped, ev.BecameLeader, ev.BecameFollower, ev.Truncated,
    ev.CheckpointObserved, ev.LogStartAdvanced, ev.HighWatermarkAdvanced,
)  # fmt: skip


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


@pytest.mark.parametrize(
    "incident", ["unclean_election__2.8.2", "chaos__4.1.1__seed2", "same_epoch_power_loss__1.1.1"]
)
def test_a_crash_is_told_between_the_lines_that_bound_it(incident: str) -> None:
    events = list(import_evidence([INCIDENTS / incident]).events())
    names = {(e.cluster_id, e.topic, e.topic_id, e.partition) for e in events}
    told_between = 0
    for name in sorted(names):
        own = [e for e in events if (e.cluster_id, e.topic, e.topic_id, e.partition) == name]
        before: dict[int, int] = {}
        for m in moments.story(name, own, set(), len(own)).moments:
            fact, at = m.event.fact, m.event.observed_at
            if (
                not isinstance(fact, PRINTED)
                or m.event.source is None
                or m.event.source.line is None
            ):
                continue
            if isinstance(fact, ev.ReplicaStopped) and fact.reason == "process_crash":
                last = inventory_words.moment(before[fact.replica])
                assert m.words == (
                    f"Broker {fact.replica} crashed after its line of {last}; its next start "
                    "begins with the line named here."
                )
                told_between += 1
            elif at is not None:
                before[fact.replica] = at
    assert told_between


def test_a_crash_that_a_step_tells_by_itself_has_its_own_moment() -> None:
    state = fold.new_state("c", "t", "id", 0)
    fact = ev.ReplicaStopped(1, "process_crash")
    seen = ev.Event("e", "trace", "c", "t", "id", 0, 0, fact, 1_000, "forensic", None, 0)
    assert event_words.sentence(seen, state) == "Broker 1 crashes."
