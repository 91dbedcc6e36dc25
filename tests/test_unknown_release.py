"""A release that the tool does not know: what all of KRaft has is known all the same."""

import tempfile
from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from tests.changed_evidence import changed_copy, verdicts_of

INCIDENT, RELEASE = "last_replica_standing__4.1.1__elr_off", "4.1.1"


def _judged(release: str) -> FoldedPartition:
    """The incident's broker logs alone, printed by another release."""

    def change(evidence: Path) -> None:
        for path in evidence.rglob("*"):
            if path.is_file() and not path.match("broker-*/*.log"):
                path.unlink()
        for log in evidence.rglob("server.log"):
            log.write_text(log.read_text().replace(RELEASE, release))

    with tempfile.TemporaryDirectory() as into:
        evidence = changed_copy(INCIDENT, change, Path(into))
        (found,) = fold_all(import_evidence([evidence]).events(), strict=False)
    return found


@pytest.mark.parametrize("release", ["4.1.1", "7.9.0-ccs", "9.9.9"])
def test_the_loss_is_told_whatever_the_release_is_called(release: str) -> None:
    """With ZooKeeper fetches may lack the leader epoch (before KIP-320), and a follower's log would
    show nothing of what its leader has; with KRaft they never do."""
    found = _judged(release)
    assert verdicts_of(found)["committed_records_survive"] == "VIOLATED"
    assert sum(loss["records"] for loss in found.answer.losses) == 9
