"""Whether the controllers' history at hand reaches what was written."""

from replication.evidence.joining.metadata_reach import later_history, torn_history
from replication.evidence.tools.metadata_quorum import QuorumReplica, QuorumStatus
from replication.evidence.zookeeper.history import ZooKeeperHistory
from tests.evidence.joining.history import history


def status(high_watermark: int | None) -> QuorumStatus:
    return QuorumStatus("c", 1, 1, high_watermark, (1, 2, 3), (), "quorum.txt", 1)


def nodes(*ends: int, first: str = "Leader") -> list[QuorumReplica]:
    return [
        QuorumReplica(n, None, end, first if n == 0 else "Follower", "quorum.txt", n)
        for n, end in enumerate(ends)
    ]


def test_a_copy_that_ends_early_lacks_what_was_committed() -> None:
    later, notes = later_history([status(12)], history(end_offset=10))
    assert later is not None
    assert "10..11" in later
    assert "10..11" in notes[0]


def test_a_copy_that_reaches_it_lacks_nothing() -> None:
    assert later_history([status(10)], history(end_offset=10)) == (None, [])
    assert later_history([status(None)], history(end_offset=10)) == (None, [])
    assert later_history([], None) == (None, [])


def test_without_a_copy_it_is_asked_for() -> None:
    later, notes = later_history([status(12)], None)
    assert later is None
    assert "no copy of it is here" in notes[0]


def test_a_majority_of_voters_tells_what_was_committed() -> None:
    later, notes = later_history(nodes(14, 12, 3), history(end_offset=10))
    assert later is not None
    assert "10..11" in later
    assert "(node 0, 1 had them)" in notes[0]
    assert later_history(nodes(14, 9, 3), history(end_offset=10)) == (None, [])
    assert later_history(nodes(14, 12, 3, first="Follower"), history(end_offset=10)) == (None, [])


def test_what_stands_behind_a_torn_place_is_not_known() -> None:
    later, notes = torn_history(history(unknown_since=7), None)
    assert later == "the metadata log from offset 7 on"
    assert "hand over __cluster_metadata-0 of another node" in notes[0]
    later, notes = torn_history(None, ZooKeeperHistory(torn="log.1"))
    assert later is not None
    assert notes[0].startswith("log.1: ")
    assert torn_history(history(), ZooKeeperHistory(torn="log.1")) == (None, [])
    assert torn_history(None, ZooKeeperHistory()) == (None, [])
