"""Lines of default levels alone are held against the rules, and without them nothing is."""

import pytest

from replication.evidence.joining.line_steps import steps_of_lines
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.judge import answer
from tests.evidence.joining.lines import line
from tests.protocol.judgement.told import conforms, told


def conformance(*facts: ev.Fact, version: str = "3.9.1") -> tuple[str, str]:
    """Verdict and reason on forensic facts of three replicas."""
    described = ev.PartitionDescribed((1, 2, 3), 1, True, "delete", version, None, "kraft")
    found = conforms(told([described, *facts]))
    return found.verdict, found.reason


@pytest.mark.parametrize(
    ("mark", "version", "expected"),
    [
        (10, "3.9.1", "UNKNOWN"),
        (11, "3.9.1", "VIOLATED"),
        (11, "2.3.1", "UNKNOWN"),
        (11, "2.4.0-vendor", "UNKNOWN"),
        (None, "3.9.1", "UNKNOWN"),
    ],
)
def test_no_leader_starts_with_a_high_watermark_past_its_log(
    mark: int | None, version: str, expected: str
) -> None:
    verdict, reason = conformance(ev.BecameLeader(1, 3, 10, mark), version=version)
    assert verdict == expected
    assert ("become_leader" in reason) is (expected == "VIOLATED")


def test_a_followers_two_numbers_are_read_apart() -> None:
    assert conformance(ev.BecameFollower(1, 3, 2, 10, 11))[0] == "UNKNOWN"


@pytest.mark.parametrize(("joins", "expected"), [(2, "VIOLATED"), (3, "HOLDS")])
def test_of_a_replica_that_no_assignment_names_no_fetch_is_missing(
    joins: int, expected: str
) -> None:
    """A reassignment of which only the end is known: broker 3's steps are refused, not its join."""
    facts = [
        ev.PartitionDescribed((1, 2), 1, True, "delete", "2.8.2", None, "zookeeper"),
        *(ev.CoverageDeclared("replica_trace", r, True) for r in (1, 2)),
        ev.ReplicaStarted(1, 0, 0, 0, True),
        ev.LeadershipRecorded(1, 0, (1,), 0, "initial"),
        ev.BecameLeader(1, 0, 0, 0),
        ev.LeaderAppended(1, 0, 5, 0),
        ev.LeadershipRecorded(1, 0, (1, joins), 1),
        ev.InputEnded(),
    ]
    assert conforms(told(facts, "traced")).verdict == expected


def cut(to: int, end: int | None, of: int | None = 0) -> ev.Fact:
    return ev.Truncated(1, to, 30, "leader_epoch", of, end)


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (cut(20, 20), "UNKNOWN"),
        (cut(18, 20), "UNKNOWN"),
        (cut(21, 20), "VIOLATED"),
        # The leader's own epoch 3 began at 25: what it had of epoch 0 cannot end later.
        (cut(20, 25), "UNKNOWN"),
        (cut(20, 26), "VIOLATED"),
        (cut(20, 26, of=3), "UNKNOWN"),
        (cut(29, None, None), "UNKNOWN"),
    ],
)
def test_a_cut_fits_the_answer_and_the_answer_its_leader(fact: ev.Fact, expected: str) -> None:
    follows = (ev.BecameLeader(2, 3, 25, 20), ev.BecameFollower(1, 3, 2, 30, 20))
    verdict, reason = conformance(*follows, fact)
    assert verdict == expected
    assert ("truncate_on_fetch" in reason) is (expected == "VIOLATED")


def test_a_late_answer_may_be_of_the_leaders_earlier_epoch() -> None:
    before = (ev.BecameLeader(2, 1, 28, 20), ev.BecameLeader(2, 3, 25, 20))
    assert conformance(*before, ev.BecameFollower(1, 3, 2, 30, 20), cut(20, 26))[0] == "UNKNOWN"


@pytest.mark.parametrize(
    ("announced", "expected"),
    [
        ({"reason": "leader_epoch", "leader_epoch": 0, "end_offset": 20, "to_offset": 20}, (0, 20)),
        (
            {"reason": "leader_epoch", "leader_epoch": 0, "end_offset": 9, "to_offset": 9},
            (None, None),
        ),
        (
            {"reason": "leader_epoch", "leader_epoch": -1, "end_offset": -1, "to_offset": 20},
            (None, None),
        ),
        ({"reason": "high_watermark", "high_watermark": 20, "to_offset": 20}, (None, None)),
    ],
)
def test_the_answer_is_read_off_the_line_that_announces_the_very_cut(
    announced: dict[str, object], expected: tuple[int | None, int | None]
) -> None:
    evidence = PartitionEvidence("", "t", "", 0, ev.PartitionDescribed((1,)))
    evidence.lines[1] = [
        line("truncation_reason", number=1, **announced),
        line("truncated", number=2, to_offset=20),
    ]
    (fact,) = [s[1] for s in steps_of_lines(evidence, 1) if isinstance(s[1], ev.Truncated)]
    assert (fact.diverging_epoch, fact.diverging_end_offset) == expected


@pytest.mark.parametrize(
    ("point", "stopped", "found"), [(20, True, False), (21, True, True), (21, False, False)]
)
def test_a_clean_stop_leaves_no_recovery_point_past_the_log(
    point: int, stopped: bool, found: bool
) -> None:
    spans = (Span(0, 20, 0, None),)
    copied = ev.ReplicaLogObserved(1, 0, 20, spans, None, point, (), stopped)
    assert (conformance(copied)[0] == "VIOLATED") is found


@pytest.mark.parametrize(
    ("clean", "mark", "followed", "cut", "expected"),
    [
        (None, None, None, 0, "HOLDS"),
        (None, None, None, 2, "HOLDS"),
        (None, None, None, 3, "VIOLATED"),
        (None, 2, None, 0, "VIOLATED"),
        (None, None, 2, 0, "VIOLATED"),
        (True, None, None, 0, "VIOLATED"),
    ],
)
def test_a_crash_leaves_any_earlier_high_watermark(
    clean: bool | None, mark: int | None, followed: int | None, cut: int, expected: str
) -> None:
    """What a broker loads is as old as its last checkpoint; without a line of it, it is a bound."""
    facts = [
        ev.PartitionDescribed((1, 2), 1, True, "delete", "0.10.2.2", None, "zookeeper"),
        *(ev.CoverageDeclared("replica_trace", r, True) for r in (1, 2)),
        *(ev.ReplicaStarted(r, 0, 0, 0, True) for r in (1, 2)),
        ev.LeadershipRecorded(1, 0, (1, 2), 0, "initial", (1, 2)),
        ev.BecameLeader(1, 0),
        ev.BecameFollower(2, 0, 1),
        ev.FetchRequested(2, 1, 0),
        ev.LeaderAppended(1, 0, 4),
        ev.FollowerAppended(2, 0, 2),
        ev.FetchRequested(2, 1, 2),
        ev.HighWatermarkAdvanced(1, 2),
        ev.FollowerAppended(2, 2, 4),
        ev.HighWatermarkAdvanced(2, 2),
        ev.ReplicaStopped(2, "process_crash"),
        ev.ReplicaStarted(2, 0, 4, mark, clean),
        ev.BecameFollower(2, 1, 1, None, followed),
        ev.Truncated(2, cut, None, "high_watermark"),
        ev.InputEnded(),
    ]
    assert conforms(told(facts, "traced")).verdict == expected


def test_after_a_crash_no_high_watermark_has_fallen() -> None:
    facts = [
        ev.PartitionDescribed((1, 2), 1, True, "delete", "1.1.1", None, "zookeeper"),
        *(ev.CoverageDeclared("replica_trace", r, True) for r in (1, 2)),
        ev.ReplicaStarted(1, 0, 0, 0, True),
        ev.LeadershipRecorded(1, 0, (1,), 0, "initial", (1, 2)),
        ev.BecameLeader(1, 0, 0),
        ev.LeaderAppended(1, 0, 5, 0),
        ev.HighWatermarkAdvanced(1, 5),
        ev.ReplicaStopped(1, "process_crash"),
        ev.ReplicaStarted(1, 0, 5, None, False),
        ev.BecameLeader(1, 0, 5),
        ev.HighWatermarkAdvanced(1, 3),
    ]
    found = {v["invariant"]: v["verdict"] for v in answer(told(facts, "traced")).verdicts}
    assert found["leader_high_watermark_monotonic"] != "VIOLATED"
