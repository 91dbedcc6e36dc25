"""Whether a trace is whole: one missing line makes it none."""

import pytest

from replication.evidence.joining.traces import in_order, is_whole
from tests.evidence.joining.lines import line

WHOLE = [
    line("log_created", at=0),
    line("became_follower", at=1, leader_epoch=0, log_end_offset=0),
    line("log_appended", at=2, first_offset=0, end_offset=3),
    line("high_watermark_set", at=3, high_watermark=3),
    line("log_appended", at=4, first_offset=3, end_offset=5),
    line("truncated", at=5, to_offset=4),
    line("log_appended", at=6, first_offset=4, end_offset=6),
    line("became_leader", at=7, leader_epoch=1, log_end_offset=6, previous_leader_epoch=0),
]


def test_a_whole_trace_is_whole() -> None:
    assert is_whole(WHOLE, 1)


@pytest.mark.parametrize("missing", [2, 4, 5, 6])
def test_an_append_or_a_cut_that_is_missing_shows(missing: int) -> None:
    assert not is_whole([f for n, f in enumerate(WHOLE) if n != missing], 1)


def test_a_start_that_loads_more_than_there_was_shows() -> None:
    again = [line("process_started", at=8), line("log_loaded", at=9, log_end_offset=6)]
    assert is_whole([*WHOLE, *again], 1)
    more = [line("process_started", at=8), line("log_loaded", at=9, log_end_offset=7)]
    assert not is_whole([*WHOLE, *more], 1)


def test_a_high_watermark_waits_for_the_append_of_its_millisecond() -> None:
    early = line("high_watermark_set", at=2, high_watermark=3)
    told = [WHOLE[0], WHOLE[1], early, WHOLE[2]]
    assert in_order(told, 1) == [WHOLE[0], WHOLE[1], WHOLE[2], early]
    assert not is_whole(told[:3], 1)
    assert is_whole(in_order(told, 1), 1)


def test_a_cut_waits_for_the_role_of_its_millisecond_that_another_file_tells() -> None:
    """Who leads cuts nothing: it has heard of the new leader, though its own file comes second."""
    cut = line("truncated", at=5, to_offset=4)
    asked = line("leader_and_isr_received", at=5, leader=2, leader_epoch=1)
    asked = asked._replace(path="broker-1/state-change.log")
    assert in_order([cut, asked], 1) == [asked, cut]
    leads = line("leader_and_isr_received", at=5, leader=1, leader_epoch=1)
    later = asked._replace(at=6)
    for kept in ([cut, later], [cut, asked._replace(path=cut.path)], [cut, leads]):
        assert in_order(kept, 1) == kept
