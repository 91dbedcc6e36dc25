"""Directories alone of a topic that may have been created anew: nothing is said to be lost."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.importer import import_evidence
from replication.evidence.joining.lives_in_doubt import OTHER_LOGS, SET_ASIDE, lives_in_doubt
from replication.evidence.joining.registrations import Recorded
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from tests.evidence.joining.evidence import evidence, follows
from tests.evidence.joining.lines import line
from tests.evidence.segment_bytes import Record, batch

DELETED = "t-0.0123456789abcdef0123456789abcdef-delete"


def held(at: Path, *values: bytes, topic_id: str | None = None) -> None:
    """A replica of broker 1 with one record for each value."""
    replica = at
    replica.mkdir(parents=True)
    log = b"".join(batch(n, Record(value)) for n, value in enumerate(values))
    (replica / "00000000000000000000.log").write_bytes(log)
    (at.parent / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=c\n")
    if topic_id is not None:
        (replica / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")


def doubt(root: Path) -> str | None:
    """What is declared missing of the controller's history, and why."""
    facts = [event.fact for event in import_evidence([root]).events()]
    told = [f.detail for f in facts if getattr(f, "subject", None) == "controller_history"]
    assert len(told) < 2
    return told[0] if told else None


def test_a_deleted_directory_beside_its_replica_may_be_the_topics_first_life(
    tmp_path: Path,
) -> None:
    held(tmp_path / "final" / "t-0", b"a")
    assert doubt(tmp_path) is None
    held(tmp_path / "final" / DELETED, b"a", b"b")
    assert doubt(tmp_path) == SET_ASIDE


def test_copies_that_share_no_record_may_be_of_two_lives(tmp_path: Path) -> None:
    held(tmp_path / "before" / "t-0", b"a", b"b", b"c")
    held(tmp_path / "final" / "t-0", b"a", b"d")
    assert doubt(tmp_path) is None
    held(tmp_path / "other" / "t-0", b"x", b"b")
    assert doubt(tmp_path) == OTHER_LOGS


def test_topic_ids_tell_lives_apart(tmp_path: Path) -> None:
    topic_id = "uMa683oOR9mwAbrdybdymw"
    held(tmp_path / "before" / "t-0", b"a", topic_id=topic_id)
    held(tmp_path / "final" / "t-0", b"b", topic_id=topic_id)
    assert doubt(tmp_path) is None


@pytest.mark.parametrize(
    ("lines", "more", "found"),
    [
        ((), {}, SET_ASIDE),
        # Of a replica that was moved away and back lines tell, and ZooKeeper of all.
        ((line("log_marked_deleted"),), {}, None),
        ((), {"by_zookeeper": True}, None),
    ],
)
def test_lines_that_begin_after_a_deletion_tell_of_one_life_alone(
    lines: tuple[LogLineFact, ...], more: dict[str, bool], found: str | None
) -> None:
    recorded = [Recorded(ev.LeadershipRecorded(1, 0), None, ev.Source("x"))]
    copies = [
        SimpleNamespace(broker=1, spans=(), directory=SimpleNamespace(kind=kind))
        for kind in ("replica", "deleted")
    ]
    told = evidence(follows(0, 1), *lines, recorded=recorded, copies=copies, **more)
    assert lives_in_doubt(told) == found


@pytest.mark.parametrize(("leader_epoch", "found"), [(0, None), (2, OTHER_LOGS)])
def test_a_history_that_begins_in_the_midst_of_a_life_does_not_tell_what_was_before(
    leader_epoch: int, found: str | None
) -> None:
    recorded = [Recorded(ev.LeadershipRecorded(1, leader_epoch), None, ev.Source("x"))]
    copies = [
        SimpleNamespace(
            broker=1, spans=[Span(0, 5, 0, content)], directory=SimpleNamespace(kind="replica")
        )
        for content in (0, 1)
    ]
    assert lives_in_doubt(evidence(recorded=recorded, copies=copies)) == found
