"""What rules force between two observations: derived, marked, and said by which rule."""

import pytest

from replication.protocol.folding.reconstruction import derived_values
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import EpochEntry, Span
from replication.protocol.ground.topic_partition import Derived
from replication.protocol.judgement.judge import answer
from replication.reports.words import draw
from tests.protocol.judgement.told import told, traced


def led(version: str = "2.8.2", controller: str = "zookeeper") -> list[ev.Fact]:
    """Broker 1 leads, and both followers are one fetch short of the log's end."""
    return [
        *traced(version, controller, min_insync=2, unclean=True),
        *(ev.FetchRequested(r, 1, 0) for r in (2, 3)),
        ev.LeaderAppended(1, 0, 10, 0),
        *(ev.FollowerAppended(r, 0, 10, 0) for r in (2, 3)),
        ev.FetchRequested(2, 1, 10),
    ]


def derived(facts: list[ev.Fact], what: str, grade: str = "traced") -> list[Derived]:
    return [d for d in derived_values(told(facts, grade)) if d.what == what]


def test_the_last_followers_fetch_forces_the_leaders_high_watermark() -> None:
    facts = led()
    assert derived(facts, "high_watermark") == []
    facts.append(ev.FetchRequested(3, 1, 10))
    (found,) = derived(facts, "high_watermark")
    assert (found.replica, found.offset, found.rule) == (1, 10, "high_watermark_of_leader")
    # As soon as it is observed, it is no derived value any more.
    facts.append(ev.HighWatermarkAdvanced(1, 10))
    assert derived(facts, "high_watermark") == []


@pytest.mark.parametrize(
    ("version", "isr", "found"),
    [("3.9.1", (1,), []), ("3.5.1", (1,), [10]), ("3.9.1", (1, 2), [10])],
)
def test_below_min_insync_replicas_it_stands_from_3_7_on(
    version: str, isr: tuple[int, ...], found: list[int]
) -> None:
    facts = led(version, "kraft")
    facts.append(ev.LeadershipRecorded(1, 0, isr, 1, None, (1, 2, 3)))
    facts.append(ev.FetchRequested(3, 1, 10))
    assert [d.offset for d in derived(facts, "high_watermark")] == found


def test_an_untraced_leader_forces_nothing() -> None:
    facts = [f for f in led() if f != ev.CoverageDeclared("replica_trace", 1, True)]
    facts.append(ev.FetchRequested(3, 1, 10))
    assert derived(facts, "high_watermark") == []


@pytest.mark.parametrize(("version", "rule"), [("2.8.2", "become_leader"), ("1.1.1", "assign")])
def test_an_epoch_entry_is_derived_until_a_file_shows_it(version: str, rule: str) -> None:
    facts = led(version)
    entries = {d.replica: (d.leader_epoch, d.offset, d.rule) for d in derived(facts, "epoch_entry")}
    assert entries == {1: (0, 0, rule), 2: (0, 0, "assign"), 3: (0, 0, "assign")}
    facts.append(
        ev.ReplicaLogObserved(
            2, 0, 10, (Span(0, 10, 0, None),), epoch_entries=(EpochEntry(0, 0),), stopped=False
        )
    )
    assert [d.replica for d in derived(facts, "epoch_entry")] == [1, 3]


def deposed(version: str) -> list[ev.Fact]:
    """Broker 1 has records 10 and 11 that broker 2, which leads now, never had."""
    return [
        *led(version),
        ev.LeaderAppended(1, 10, 12, 0),
        ev.LeadershipRecorded(2, 1, (1, 2, 3), 1, "clean", (1, 2, 3)),
        ev.BecameLeader(2, 1, 10, 0),
        ev.LeaderAppended(2, 10, 15, 1),
        ev.BecameFollower(1, 1, 2, 12, 0),
    ]


CUT = [(1, 10, "truncate_on_fetch")]


def cuts(facts: list[ev.Fact], grade: str = "traced") -> list[tuple[int, int, str]]:
    return [(d.replica, d.offset, d.rule) for d in derived(facts, "truncation", grade)]


def test_an_append_below_the_logs_end_shows_the_cut_of_a_missing_line() -> None:
    facts = deposed("2.8.2")
    assert cuts(facts) == []
    assert cuts([*facts, ev.FollowerAppended(1, 10, 15, 1)]) == CUT
    judged = answer(told([*facts, ev.FollowerAppended(1, 10, 15, 1)], "traced")).verdicts
    verdict = next(v for v in judged if v["invariant"] == "version_conformance")
    assert verdict["verdict"] != "VIOLATED"
    # No rule forces a cut elsewhere: then it is no missing line.
    assert cuts([*facts, ev.FollowerAppended(1, 9, 15, 1)]) == []


def test_a_copy_shows_the_cut_of_a_missing_line() -> None:
    held = (Span(0, 10, 0, None), Span(10, 15, 1, None))
    copy = ev.ReplicaLogObserved(1, 0, 15, held, stopped=True)
    assert cuts([*deposed("2.8.2"), copy]) == CUT
    line = ev.Truncated(1, 10, 12, "diverging_epoch")
    assert cuts([*deposed("2.8.2"), line, copy]) == []
    same = ev.ReplicaLogObserved(1, 0, 12, (Span(0, 12, 0, None),), stopped=True)
    assert cuts([*deposed("2.8.2"), same]) == []


def test_of_two_copies_after_the_role_nobody_knows_which_was_first() -> None:
    facts = [f for f in deposed("2.8.2") if not isinstance(f, ev.CoverageDeclared)]
    first = ev.ReplicaLogObserved(1, 0, 12, (Span(0, 12, 0, None),), stopped=False)
    held = (Span(0, 10, 0, None), Span(10, 15, 1, None))
    second = ev.ReplicaLogObserved(1, 0, 15, held, stopped=True)
    assert cuts([*facts[:-1], first, facts[-1], second], "forensic") == CUT
    assert cuts([*facts, first, second], "forensic") == []


def test_a_line_without_an_offset_gets_the_rules() -> None:
    state = told([*deposed("2.8.2"), ev.Truncated(1, None, 12, "leader_epoch")], "traced")
    assert state.replicas[1].log.log_end_offset == 10
    assert [t.to_offset for t in state.history.truncations] == [10]


def test_show_and_the_answer_say_what_is_derived() -> None:
    facts = [*led(), ev.FetchRequested(3, 1, 10)]
    words = "derived: broker 1: its high watermark is at least 10, by high_watermark_of_leader"
    assert words in draw(told(facts, "traced"), None)
    rows = answer(told(facts, "traced")).partition["derived"]
    assert {"high_watermark", "epoch_entry"} == {r["what"] for r in rows}
