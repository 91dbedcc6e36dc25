"""Which incarnation a client's promise is of, and which are left out with a word."""

from replication.evidence.joining.clients_promises import placed, said_of_unsure
from replication.evidence.joining.lifetimes import Incarnations
from tests.evidence.joining.lines import acknowledged

TWO = Incarnations({"t": [("a", None, 20), ("b", 20, None)]})


def test_promises_of_a_topic_that_was_never_created_anew_are_its() -> None:
    found = placed([acknowledged("x"), acknowledged("y", partition=1)], Incarnations(), {})
    assert sorted(found.by_incarnation) == [("t", "", 0), ("t", "", 1)]
    assert not found.unsure


def test_an_id_in_the_promise_tells() -> None:
    found = placed([acknowledged("x", ts=50, topic_id="a")], TWO, {})
    assert list(found.by_incarnation) == [("t", "a", 0)]


def test_what_cannot_be_told_is_left_out_and_named() -> None:
    found = placed([acknowledged("x", ts=50)], TWO, {})
    assert (found.by_incarnation, found.unsure) == ({}, {("t", 0)})
    (note,) = said_of_unsure(found.unsure)
    assert note.startswith("t-0: the topic was created anew")
    # Nobody was promised what failed.
    assert not placed([acknowledged("x", ts=50, status="failed")], TWO, {}).unsure
