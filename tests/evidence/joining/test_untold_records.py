"""Records that a producer's own log should tell of show that lines of it are missing."""

from replication.evidence.joining.places import Place
from replication.evidence.joining.untold_records import Untold, untold_by
from replication.protocol.ground.model import Span
from tests.evidence.joining.lines import acknowledged


def told() -> Untold:
    """By lines on "a", and on offset 1 without an id."""
    known = untold_by([acknowledged("a", offset=0), acknowledged(None, offset=1)])
    assert known is not None
    return known


def shows(*records: tuple[int, str, int | None]) -> bool:
    """(offset, key, producer id) of each."""
    known = told()
    for offset, key, producer_id in records:
        known.take(offset, [key], producer_id)
    return known.shows({}, (), None) is not None


def test_a_record_that_no_line_tells_of_beside_one_of_the_same_producer() -> None:
    assert shows((0, "a", 7), (2, "c", 7))
    assert not shows((0, "a", 7), (1, "b", 7))
    # The same record at another offset is a duplicate.
    assert not shows((0, "a", 7), (2, "a", 7))


def test_other_producers_and_those_without_an_id_may_write_no_log() -> None:
    assert not shows((0, "a", 7), (2, "c", 8))
    assert not shows((0, "a", None), (2, "c", None))


def lacks(name: str, offset: int, content: int = 1, end: int | None = None) -> bool:
    """Whether a record that the leader's log (offsets 0..2, content 0) lacks shows something."""
    places = {name: [Place(offset, 0, content)]}
    return told().shows(places, [Span(0, 3, 1, 0)], end) is not None


def test_a_record_that_no_line_tells_of_and_the_leader_lacks() -> None:
    assert lacks("c", 2)
    assert lacks("c", 5, end=3)
    # It holds it, may hold it, or a line tells of it.
    assert not lacks("c", 2, content=0)
    assert not lacks("c", 5)
    assert not lacks("a", 2)
    assert not lacks("b", 1)


def test_lines_that_name_nothing_tell_of_any_record() -> None:
    assert untold_by([acknowledged("a", offset=0), acknowledged(None, offset=None)]) is None
    assert untold_by([]) is None
