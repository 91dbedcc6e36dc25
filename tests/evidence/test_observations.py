"""One row of the answer for each thing that single lines tell, however many lines tell it."""

from typing import Any

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.telling_lines import Telling
from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.collecting.collection import Collection
from replication.evidence.collecting.observations import observations


def cut(line: int, at: int, **fields: Any) -> LogLineFact:
    """A line of broker 1 that says that t-0 was cut to offset 20."""
    return LogLineFact(
        "truncated", at, line, "server.log", None, "t", 0, {"to_offset": 20} | fields
    )


def rows(*facts: LogLineFact) -> list[tuple[int, dict[str, Any]]]:
    telling = Telling()
    for fact in facts:
        telling.take(fact)
    log = BrokerLog("server.log", 1, telling=telling.lines)
    return [(row["line"], row["fields"]) for row in observations(Collection(logs=[log]))]


def test_two_wordings_of_one_cut_are_one_row_with_what_both_print() -> None:
    whole = {"to_offset": 20, "log_end_offset": 30, "directory": "/data"}
    assert rows(cut(1, 5, log_end_offset=30), cut(2, 6, directory="/data")) == [(1, whole)]
    assert rows(cut(1, 5, directory="/data"), cut(2, 6, log_end_offset=30)) == [(1, whole)]


def test_the_same_wording_twice_is_two_cuts_and_so_are_lines_far_apart() -> None:
    assert len(rows(cut(1, 5, directory="/data"), cut(2, 6, directory="/data"))) == 2
    assert len(rows(cut(1, 5, log_end_offset=30), cut(2, 5_000, directory="/data"))) == 2
    assert len(rows(cut(1, 5, log_end_offset=30), cut(2, 6, to_offset=10, directory="/data"))) == 2
