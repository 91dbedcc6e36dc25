"""What a broker did, by the controllers and by logs, and its lines do not tell."""

from dataclasses import replace

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.missing_lines import missing_lines
from replication.evidence.joining.registrations import Recorded
from replication.protocol.ground import events as ev
from tests.evidence.joining.evidence import evidence, follows, leads, started
from tests.evidence.joining.lines import line
from tests.evidence.test_placement import copy_of

KRAFT = ev.PartitionDescribed(controller="kraft")
ZOOKEEPER = ev.PartitionDescribed(controller="zookeeper")
CREATED = line("log_created")


def elected(leader: int, leader_epoch: int) -> Recorded:
    return Recorded(ev.LeadershipRecorded(leader, leader_epoch), None, ev.Source("x"))


def of_epochs(*leader_epochs: int, broker: int = 2) -> Copy:
    copy = copy_of("copy", 10, clean=True)
    spans = tuple((e, n, n + 1) for n, e in enumerate(leader_epochs))
    directory = replace(copy.directory, spans=spans, epoch_entries=None)
    return replace(copy, broker=broker, directory=directory)


def missing(
    *lines: LogLineFact,
    copy: Copy | None = None,
    by: ev.PartitionDescribed = KRAFT,
    settled_below: int = 0,
) -> bool:
    """Whether lines of broker 1 are missing, which led in epochs 0 and 2, and broker 2 in 1."""
    recorded = [elected(1, 0), elected(2, 1), elected(1, 2)]
    copies = [] if copy is None else [copy]
    found = evidence(started(), *lines, recorded=recorded, described=by, copies=copies)
    return missing_lines(replace(found, settled_below=settled_below), 1) is not None


def test_who_led_in_an_epoch_that_a_log_has_records_of_has_told_so() -> None:
    """The newer half of its file is not here."""
    whole = [CREATED, leads(0, 1), follows(1, 2), leads(2, 3)]
    assert not missing(*whole, copy=of_epochs(0, 1, 2))
    assert missing(*whole[:3], copy=of_epochs(0, 1, 2))
    # Of an epoch without a record it may never have heard.
    assert not missing(*whole[:3], copy=of_epochs(0, 1))
    # That it follows there is another line.
    assert missing(*whole[:3], follows(2, 4), copy=of_epochs(0, 1, 2))


def test_who_led_before_its_lines_begin_has_lost_lines() -> None:
    assert missing(follows(1, 2), leads(2, 3))
    assert not missing(CREATED, follows(1, 2), leads(2, 3))
    assert not missing(leads(0, 1), leads(2, 3))


def test_without_the_state_change_log_nothing_tells_of_leaders() -> None:
    assert missing(CREATED)
    assert missing()
    # Other lines name epochs as well.
    assert missing(CREATED, line("epoch_entry_added", leader_epoch=0))


def test_who_tells_of_no_role_when_its_log_was_made_has_lost_lines_of_roles() -> None:
    """A server.log from the start, and the newer half of its state-change.log."""
    hour = 3_600_000
    assert missing(CREATED, follows(1, hour), leads(2, hour + 1))
    assert not missing(CREATED, follows(1, 9), leads(2, hour))
    assert not missing(CREATED._replace(at=None), follows(1, hour), leads(2, hour))


@pytest.mark.parametrize(
    ("lines", "by", "expected"),
    [
        ([CREATED, leads(0, 1)], KRAFT, True),
        ([CREATED, leads(0, 1), follows(1, 2)], KRAFT, False),
        ([CREATED, leads(0, 1)], ZOOKEEPER, True),
        ([CREATED, leads(0, 1), leads(1, 2)], ZOOKEEPER, False),
    ],
)
def test_whose_log_knows_of_an_epoch_has_followed_in_it(
    lines: list[LogLineFact], by: ev.PartitionDescribed, expected: bool
) -> None:
    """Up to 2.5 what it follows stands in another file than what it leads."""
    assert missing(*lines, copy=of_epochs(0, 1, broker=1), by=by) is expected


def test_lines_that_a_stream_has_forgotten_are_not_missing() -> None:
    """Settled below epoch 2: of the epochs before it no line is left."""
    assert missing(leads(2, 3), copy=of_epochs(0, 1, 2))
    assert not missing(leads(2, 3), copy=of_epochs(0, 1, 2), settled_below=2)
    assert missing(copy=of_epochs(0, 1, 2), settled_below=2)
    assert not missing(follows(1, 2), leads(2, 3), copy=of_epochs(0, 1, broker=1), settled_below=2)


@pytest.mark.parametrize(("isr", "expected"), [((1, 2), True), ((2,), False)])
def test_who_was_in_anothers_isr_has_followed(isr: tuple[int, ...], expected: bool) -> None:
    """No copy of its log is here, and no line of its state-change.log."""
    beside = ev.LeadershipRecorded(2, 1, isr)
    recorded = [elected(1, 0), Recorded(beside, None, ev.Source("x"))]
    found = evidence(started(), CREATED, leads(0, 1), recorded=recorded, described=ZOOKEEPER)
    assert (missing_lines(found, 1) is not None) is expected
