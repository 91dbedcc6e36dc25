"""A line that was handed over twice happened once; one that was written twice happened twice."""

from replication.evidence.joining.repeated_lines import each_once
from tests.evidence.joining.lines import line

LINE = line("became_leader", at=5, leader_epoch=1)
COPY = LINE._replace(path="copy/server.log", line=7)


def test_a_line_of_two_files_happened_once() -> None:
    assert list(each_once([LINE, COPY])) == [LINE]


def test_a_line_that_stands_twice_in_one_file_happened_twice() -> None:
    assert list(each_once([LINE, LINE._replace(line=2)])) == [LINE, LINE._replace(line=2)]
    assert len(list(each_once([COPY, LINE, LINE._replace(line=2)]))) == 2


def test_another_moment_or_another_word_is_another_line() -> None:
    for other in (COPY._replace(at=6), COPY._replace(fields={"leader_epoch": 2})):
        assert list(each_once([LINE, other])) == [LINE, other]
    timeless = [LINE._replace(at=None), COPY._replace(at=None)]
    assert list(each_once(timeless)) == timeless


def test_a_file_that_was_doubled_within_itself_holds_each_line_once() -> None:
    later = LINE._replace(at=9_000, line=2)
    doubled = [LINE, LINE._replace(line=3), later, later._replace(line=4)]
    assert list(each_once(doubled)) == [LINE, later]
