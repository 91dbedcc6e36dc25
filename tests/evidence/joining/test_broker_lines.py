"""Whose lines are whose, and in which order."""

from dataclasses import replace

from replication.evidence.joining.broker_lines import lines_by_broker
from tests.evidence.joining.lines import line, log, process


def test_lines_of_one_moment_and_partition_stand_together_in_order_of_the_clock() -> None:
    first = log(1, line("became_leader", at=5, number=1), line("became_follower", at=9, number=2))
    other = log(1, line("log_created", at=7, number=1))
    (lines,) = lines_by_broker([first, replace(other, path="broker-1/more.log")]).values()
    told = [[fact.kind for _, fact in found] for found in lines.by_partition()]
    assert told == [["became_leader", "log_created", "became_follower"]]
    assert [fact.kind for _, fact in lines.of_topic("t")] == told[0]
    assert lines.of_topic("u") == []


def test_a_line_that_two_files_hold_happened_once() -> None:
    started = process("process_started", at=3)
    again = replace(log(1), processes=[started._replace(broker=None, path="copy/server.log")])
    assert len(lines_by_broker([log(1, started), again])[1].processes) == 1


def test_lines_that_name_another_broker_are_that_ones_and_those_of_nobody_are_nobodys() -> None:
    named = replace(log(None, line("became_leader")), writers=[None, 2])
    packed = [replace(p, about=(2, "t", 0)) for p in named.lines]
    ids = {(None, "t", "a"), (2, "t", "b")}
    found = lines_by_broker([replace(named, lines=named.lines + packed, in_lines=ids)])
    assert sorted(found) == [2]
    assert [len(each) for each in found[2].partitions.values()] == [1]
    assert found[2].topic_ids == {"t": {"b"}}
