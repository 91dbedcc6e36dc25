"""Of two records that were acknowledged at one offset only one can still stand there."""

from dataclasses import replace

from replication.evidence.clients.client_logs import Acknowledgement
from replication.evidence.joining.acknowledged_twice import replaced
from tests.evidence.joining.evidence import evidence, leads
from tests.evidence.joining.lines import acknowledged

# Epoch 1 begins at 5: what stands there from then on was written anew.
ANEW = leads(1, 1, log_end_offset=5)


def told(
    offset: int, number: int, acks: str = "all", name: str | None = None, by: int | None = None
) -> Acknowledgement:
    found = acknowledged("", ts=number, line=number, offset=offset, acks=acks)
    return replace(found, payload_id=name, broker=by)


def lost(
    *unseen: Acknowledgement,
    there: tuple[Acknowledgement, ...] = (),
    before: tuple[Acknowledgement, ...] = (),
    wrote: tuple[int, ...] = (),
) -> set[int]:
    """before: those whose record only an older copy shows; wrote: who led when what stands at
    offset 6 was written."""
    acked = [*before, *unseen, *there]
    return {line for _, line in replaced(evidence(ANEW), acked, unseen, there, {6: set(wrote)})}


BELOW = told(2, 1)


def test_of_two_the_one_that_was_promised_less_counts_as_lost() -> None:
    assert lost(BELOW, told(6, 2), told(6, 3, acks="1")) == {3}
    assert lost(BELOW, told(6, 2, name="a"), told(6, 3, name="b")) == {2}
    assert lost(BELOW, told(6, 2), told(7, 3)) == set()


def test_of_two_the_one_by_who_wrote_what_stands_there_is_not_lost() -> None:
    two = (told(6, 2, acks="1", by=1), told(6, 3, by=2))

    assert lost(BELOW, *two, wrote=(2,)) == {2}
    assert lost(BELOW, *two, wrote=(1,)) == {3}
    assert lost(BELOW, *two, wrote=(1, 2)) == lost(BELOW, *two, wrote=()) == {2}


def test_all_are_lost_beside_one_that_stands_there() -> None:
    assert lost(BELOW, told(6, 2, name="a"), there=(told(6, 3, name="b"),)) == {2}


def test_the_same_line_from_two_files_is_one_record() -> None:
    assert lost(BELOW, told(6, 2), told(6, 2)) == set()
    assert lost(BELOW, told(6, 2, name="a"), told(6, 9, name="a")) == set()


def test_a_log_that_tells_offsets_twice_where_nothing_was_written_anew_says_nothing() -> None:
    assert lost(told(2, 1), told(2, 2), told(6, 3), told(6, 4)) == set()
    assert lost(told(6, 3), told(6, 4)) == set()
    assert lost(told(6, 3), told(6, 4), there=(told(9, 5, name="a"),)) == {3}
    acked = [BELOW, told(6, 2), told(6, 3)]
    assert replaced(evidence(), acked, acked, [], {}) == set()


def test_what_only_an_older_copy_shows_tells_as_well_that_offsets_are_offsets() -> None:
    anew = (told(6, 2, name="a"), told(6, 3, name="b"))
    assert lost(*anew, before=(BELOW,)) == {2}
    assert lost(*anew, before=(BELOW, told(2, 4, name="c"))) == set()
