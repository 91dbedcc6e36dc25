"""In which order one topic name's incarnations came."""

from replication.evidence.joining.lifetimes import _lifetimes


def test_a_replica_that_was_moved_away_does_not_make_its_topic_the_older_one() -> None:
    recorded: dict[str, tuple[int | None, int | None]] = {"old": (10, None), "new": (20, None)}
    assert _lifetimes(recorded, {}, {"new"}) == [("old", None, 20), ("new", 20, None)]
    # Where no record tells, what is set aside is of the older one.
    untold: dict[str, tuple[int | None, int | None]] = {"old": (None, None), "new": (None, None)}
    assert [life[0] for life in _lifetimes(untold, {}, {"old"})] == ["old", "new"]
