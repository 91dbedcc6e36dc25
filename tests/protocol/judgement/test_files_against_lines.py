"""Files of log directories are held against lines at INFO; what may be lawful is no finding."""

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import EpochEntry, Span
from replication.protocol.judgement.files_against_lines import files_against_lines
from tests.protocol.judgement.told import elected, given, told, verdict

CONFORMANCE = "version_conformance"


def led(*, covered: tuple[int, ...] = (1, 2, 3), version: str = "3.9.1") -> list[ev.Fact]:
    """Broker 2, which led before, takes epoch 1 at offset 10 with 8 committed, by its own line."""
    return [
        *given(*covered, version=version),
        elected(2, 0, "initial"),
        ev.BecameLeader(2, 0, 0, 0),
        elected(2, 1),
        ev.BecameLeader(2, 1, 10, 8),
    ]


def directory(
    replica: int, second: int, mark: int | None = None, point: int | None = None,
    *, stopped: bool = True,
) -> ev.Fact:  # fmt: skip
    """A log of 20 records whose epoch file has epoch 1 from `second` on."""
    spans = (Span(0, second, 0, None), Span(second, 20, 1, None))
    entries = (EpochEntry(0, 0), EpochEntry(1, second))
    return ev.ReplicaLogObserved(replica, 0, 20, spans, mark, point, entries, stopped)


@pytest.mark.parametrize("replica", [1, 3])
@pytest.mark.parametrize(("second", "findings"), [(9, 1), (10, 0), (11, 0)])
def test_no_epoch_begins_before_its_leader_began_it(
    replica: int, second: int, findings: int
) -> None:
    facts = [*led(), directory(2, 10), directory(replica, second)]
    assert len(files_against_lines(told(facts))) == findings
    assert (verdict(facts, CONFORMANCE) == "VIOLATED") is bool(findings)


@pytest.mark.parametrize("leaders", [[], [directory(2, 9)]])
def test_a_leader_may_have_led_in_the_same_epoch_by_lines_that_are_missing(
    leaders: list[ev.Fact],
) -> None:
    assert verdict([*led(), *leaders, directory(3, 9)], CONFORMANCE) != "VIOLATED"


def test_a_copy_from_before_the_term_is_no_high_watermark_that_fell() -> None:
    assert verdict([*led(), directory(2, 10, 7)], CONFORMANCE) != "VIOLATED"


def test_the_order_of_file_and_line_does_not_count() -> None:
    facts = [*led(), directory(2, 10)]
    assert verdict([*facts[:-2], directory(3, 9), *facts[-2:]], CONFORMANCE) == "VIOLATED"


@pytest.mark.parametrize(
    "before",
    [
        led(covered=(1, 2)),
        led(version="3.9.1-vendor"),
    ],
)
def test_lines_that_are_missing_or_rules_that_are_not_known_say_nothing(
    before: list[ev.Fact],
) -> None:
    assert verdict([*before, directory(2, 10), directory(3, 9)], CONFORMANCE) != "VIOLATED"


def test_the_same_leader_may_begin_its_epoch_again_with_less() -> None:
    """Before KRaft a broker that comes back leads on in the same epoch, with what its disk kept."""
    again = [ev.ReplicaStarted(2, 0, 7, None, False), ev.BecameLeader(2, 1, 7, 7)]
    assert verdict([*led(version="2.8.1"), *again, directory(3, 7)], CONFORMANCE) != "VIOLATED"


@pytest.mark.parametrize(
    ("point", "stopped", "found"), [(20, True, False), (21, True, True), (21, False, False)]
)
def test_a_clean_stop_leaves_no_recovery_point_past_the_log(
    point: int, stopped: bool, found: bool
) -> None:
    facts = [*led(), directory(3, 10, None, point, stopped=stopped)]
    assert (verdict(facts, CONFORMANCE) == "VIOLATED") is found
