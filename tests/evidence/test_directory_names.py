"""One grammar of partition directories' names: every reader takes the same names for the same."""

from pathlib import Path

import pytest

from replication.evidence.broker_logs.line_families import INDEX
from replication.evidence.digest import DIRECTORY_NAME
from replication.evidence.log_directories.log_directory import parse_directory_name
from replication.evidence.tools.dump_log import DumpedSegment, read_dump_log

ASIDE = "." + "0f" * 16


@pytest.mark.parametrize(
    ("name", "topic", "partition", "kind"),
    [
        ("t-0", "t", 0, None),
        ("a-1-b-12", "a-1-b", 12, None),
        (f"t-0{ASIDE}-delete", "t", 0, "delete"),
        (f"t-0{ASIDE}-stray", "t", 0, "stray"),
        (f"t-0{ASIDE}-future", "t", 0, "future"),
    ],
)
def test_a_name_is_read_alike_by_all(
    name: str, topic: str, partition: int, kind: str | None, tmp_path: Path
) -> None:
    found = DIRECTORY_NAME.fullmatch(name)
    assert found is not None
    assert (found["topic"], int(found["partition"]), found["kind"]) == (topic, partition, kind)
    assert parse_directory_name(name)[:2] == (topic, partition)
    marked = INDEX.read(f"Log in /d/t-0 marked stray and renamed to /d/{name}", "LogManager")
    assert marked is not None
    assert marked[1] is not None
    assert (marked[1][0].topic, marked[1][0].partition) == (topic, partition)
    # What was set aside is no replica's log, and a dump of it stands for none.
    dump = tmp_path / "dump.txt"
    dump.write_text(f"Dumping /d/{name}/{0:020}.log\nLog starting offset: 0\n")
    (segment,) = [one for one in read_dump_log(dump) if isinstance(one, DumpedSegment)]
    assert (segment.topic, segment.partition) == ((topic, partition) if not kind else (None, None))


@pytest.mark.parametrize("name", ["t", "t-", "t-x", "-1", f"t-0{ASIDE}-gone", "t-1234567890"])
def test_what_names_no_partition(name: str) -> None:
    assert DIRECTORY_NAME.fullmatch(name) is None
    with pytest.raises(ValueError, match="does not name"):
        parse_directory_name(name)
