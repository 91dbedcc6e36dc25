"""What lines tell of records that were removed lawfully: by what, up to where, by which setting."""

from typing import Any

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.told_removals import told_removals
from replication.protocol.ground import events as ev
from tests.evidence.joining.evidence import evidence
from tests.evidence.joining.lines import line

ROW: dict[str, Any] = {"why": "log_start", "first_offset": 0, "end_offset": 50}


def start(offset: int, at: int, reason: str | None = None) -> LogLineFact:
    return line("log_start_advanced", at=at, number=at, log_start_offset=offset, reason=reason)


def segments(
    *bases: int, at: int, why: str = "retention_size", limit: int | None = 9
) -> LogLineFact:
    told = {} if limit is None else {"limit": limit}
    return line("segments_deleted", at=at, number=at, reason=why, base_offsets=bases, **told)


SIZE, TIME = ("retention_size", "retention.bytes=9"), ("retention_time", None)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        # Before 2.6 no line says why a log starts later.
        ([start(50, 1)], [("not_told", None, 0, 50)]),
        ([start(50, 1, "client delete records request")], [("delete_records", None, 0, 50)]),
        (
            [start(20, 1), segments(0, 10, at=2), start(50, 3), segments(20, 30, at=4)],
            [(*SIZE, 0, 50)],
        ),
        (
            # What the first line that is left tells of begins at 30.
            [segments(30, at=1, why="retention_time", limit=None), start(40, 2),
             start(50, 3, "client delete records request")],
            [("not_told", None, 0, 30), (*TIME, 30, 40), ("delete_records", None, 40, 50)],
        ),
        # A follower does as its leader did; what is cut from a log's end is no removal.
        (
            [start(50, 1, "leader offset increment"),
             segments(0, at=2, why="log_start_offset", limit=None),
             segments(40, at=3, why="truncation", limit=None)],
            [("not_told", None, 0, 50)],
        ),
        # A removal beyond the known log start is left out.
        ([start(70, 1, "client delete records request")], [("not_told", None, 0, 50)]),
    ],
)  # fmt: skip
def test_what_removed_which_offsets(
    lines: list[LogLineFact], told: list[tuple[str, str | None, int, int]]
) -> None:
    row = told_removals(evidence(*lines)).added_to(ROW)
    names = ("how", "setting", "first_offset", "end_offset")
    assert [tuple(by[name] for name in names) for by in row["by"]] == told


def test_a_deleted_topic_is_told_with_its_time_and_the_next_one() -> None:
    gone = line("log_marked_deleted", at=7, number=3)
    described = ev.PartitionDescribed(deleted=True)
    row = {**ROW, "why": "topic_deleted"}
    lives = [("", None, 5), ("new", 6, None)]
    found = told_removals(evidence(gone, described=described, lifetimes=lives)).added_to(row)
    assert (found["deleted_at"], found["line"]) == ("1970-01-01T00:00:00.005Z", 3)
    assert (found["next_topic_id"], found["next_created_at"]) == ("new", "1970-01-01T00:00:00.006Z")
    # A life that ends only since the next begins: the broker's own line is nearer.
    lives = [("", None, 6), ("new", 6, None)]
    found = told_removals(evidence(gone, described=described, lifetimes=lives)).added_to(row)
    assert found["deleted_at"] == "1970-01-01T00:00:00.007Z"
    # Where nothing records it, a broker's line tells; where none does, nothing.
    printed = told_removals(evidence(gone, described=described)).added_to(row)
    assert (printed["deleted_at"], printed["next_topic_id"]) == ("1970-01-01T00:00:00.007Z", None)
    assert told_removals(evidence(described=described)).added_to(row)["deleted_at"] is None
