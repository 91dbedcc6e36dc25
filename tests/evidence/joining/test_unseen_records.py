"""What no copy shows is told apart by what was promised when."""

from replication.evidence.joining.copies import UNSEEN_CONTENT
from replication.evidence.joining.unseen_records import contents_of_unseen

FIRST, SECOND = UNSEEN_CONTENT, UNSEEN_CONTENT + 1


def test_two_records_of_one_offset_are_not_the_same() -> None:
    assert contents_of_unseen([(5, 10, "a"), (5, 20, "b")]) == {"a": FIRST, "b": SECOND}
    assert contents_of_unseen([(5, 10, "a"), (9, 20, "b")]) == {"a": FIRST, "b": FIRST}


def test_a_record_goes_on_what_was_promised_last_before_it() -> None:
    """Offset 5 was written twice; 6 follows the second of these."""
    told = [(5, 10, "a"), (5, 20, "b"), (6, 21, "c"), (6, 11, "d"), (7, 30, "e")]
    assert contents_of_unseen(told) == {
        "a": FIRST, "b": SECOND, "c": SECOND, "d": FIRST, "e": SECOND,
    }  # fmt: skip
