"""Metadata transactions, record by record."""

from replication.evidence.metadata_log.transactions import OpenTransaction, due
from tests.evidence.metadata_log.placed import placed

BEGIN, END = placed("BeginTransactionRecord", 3), placed("EndTransactionRecord", 9)
TOPIC = placed("TopicRecord", 4)


def test_outside_of_a_transaction_a_record_counts_at_once() -> None:
    assert due(None, TOPIC, is_control=False) == (None, [TOPIC])


def test_inside_it_counts_at_the_end_and_a_control_record_at_once() -> None:
    opened, now = due(None, BEGIN, is_control=False)
    assert (opened, now) == (OpenTransaction(3, []), [])
    opened, now = due(opened, TOPIC, is_control=False)
    assert (opened, now) == (OpenTransaction(3, [TOPIC]), [])
    leader = placed("LeaderChange", 5)
    assert due(opened, leader, is_control=True) == (opened, [leader])
    assert due(opened, END, is_control=False) == (None, [TOPIC])


def test_an_aborted_one_never_counts_and_an_end_alone_ends_nothing() -> None:
    abort = placed("AbortTransactionRecord", 5)
    assert due(OpenTransaction(3, [TOPIC]), abort, is_control=False) == (None, [])
    assert due(None, END, is_control=False) == (None, [])
