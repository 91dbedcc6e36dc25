"""Evidence of t-0, made by hand."""

from typing import Any

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.partition_evidence import PartitionEvidence
from tests.evidence.joining.lines import line, process


def evidence(*lines: LogLineFact, broker: int = 1, **more: Any) -> PartitionEvidence:
    """With these lines of one broker."""
    return PartitionEvidence("c", "t", "", 0, lines={broker: list(lines)} if lines else {}, **more)


def started(number: int = 0, at: int = 0) -> LogLineFact:
    return process("process_started", at, number)


def leads(leader_epoch: int, number: int, **more: Any) -> LogLineFact:
    return line("became_leader", at=number, number=number, leader_epoch=leader_epoch, **more)


def follows(leader_epoch: int, number: int, **more: Any) -> LogLineFact:
    return line("became_follower", at=number, number=number, leader_epoch=leader_epoch, **more)
