"""Lines that tell less than they seem to are found by their place."""

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.lines_without_effect import loaded_under_one_name, not_obeyed


def line(number: int, kind: str, **fields: object) -> LogLineFact:
    return LogLineFact(kind, number, number, "server.log", 1, "t", 0, dict(fields))


def test_two_logs_of_one_name_with_other_ends_are_not_told_apart() -> None:
    loads = [line(2, "log_loaded", log_end_offset=5), line(3, "log_loaded", log_end_offset=9)]
    found = loaded_under_one_name([line(1, "process_started"), *loads])
    assert found == {("server.log", 2), ("server.log", 3)}
    assert not loaded_under_one_name([loads[0], line(3, "became_follower"), loads[1]])


def test_a_refused_request_changes_nothing() -> None:
    asked = line(1, "leader_and_isr_received", leader=2, leader_epoch=4)
    assert not_obeyed([asked, line(2, "leader_and_isr_ignored", leader_epoch=4)]) == {
        ("server.log", 1)
    }
    assert not not_obeyed([asked, line(2, "leader_and_isr_ignored", leader_epoch=3)])
