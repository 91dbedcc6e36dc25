"""Whose evidence is whose, where several clusters' lies together."""

from pathlib import Path

from replication.evidence.collecting.collection import BrokerDump, Collection
from replication.evidence.joining.one_cluster import evidence_of
from replication.evidence.tools.metadata_quorum import QuorumReplica, QuorumStatus
from tests.evidence.joining.history import history
from tests.evidence.joining.lines import acknowledged, log


def status(cluster_id: str | None, path: str) -> QuorumStatus:
    return QuorumStatus(cluster_id, 1, 1, 5, (1,), (), path, 1)


def test_a_cluster_has_what_names_it_and_the_files_said_to_be_its() -> None:
    node = QuorumReplica(1, None, 5, "Leader", "mine.txt", 1)
    collection = Collection(
        logs=[log(1, cluster_id="a"), log(2, cluster_id="b")],
        dumps=[BrokerDump(1, "b", []), BrokerDump(2, "a", [])],
        acknowledgements=[acknowledged("x", path="mine.txt"), acknowledged("y", path="other.txt")],
        histories={"b": history()},
        quorum=[status("a", "other.txt"), status("b", "mine.txt"), status(None, "mine.txt"), node],
    )
    mine = evidence_of(collection, "a", {"mine.txt"})
    assert [each.broker for each in mine.logs] == [1]
    assert [each.broker for each in mine.dumps] == [2]
    assert [each.payload_id for each in mine.acknowledgements] == ["x"]
    # What names its cluster is that one's, wherever it lies.
    assert mine.quorum == (status("a", "other.txt"), status(None, "mine.txt"), node)
    assert mine.history is None
    assert evidence_of(collection, "b", set()).history is not None
    assert Path(mine.logs[0].path).name == "server.log"
