"""A partition.metadata that was changed makes no second topic."""

from pathlib import Path

import pytest

from replication.evidence.collecting.collection import BrokerDirectory
from replication.evidence.joining.misread_topic_ids import without_misread_topic_ids
from replication.evidence.joining.one_cluster import ClusterEvidence
from replication.evidence.log_directories.log_directory import read_log_directory
from replication.evidence.tools.topic_descriptions import TopicDescription
from tests.evidence.joining.test_lives_of_directories import A, B, written


def ids(root: Path, told: str | None = None) -> tuple[list[str | None], list[str]]:
    """The topic ids that are left, broker by broker, and which of them were said to be misread.

    told: what kafka-topics says."""
    copied = tuple(
        BrokerDirectory(number, "c", read_log_directory(folder), None, "test")
        for number, folder in enumerate(sorted(root.iterdir()), 1)
    )
    described = TopicDescription("t", told, 1, 3, {}, None, "x", 1)
    cluster = ClusterEvidence("c", copied, descriptions=(described,) if told else ())
    left, unreadable = without_misread_topic_ids(cluster)
    found = [p.topic_id for d in left.directories for p in d.directory.partitions]
    assert all(u.path.endswith("t-0/partition.metadata") for u in unreadable)
    return found, [u.reason.split()[3].rstrip(",") for u in unreadable]


def test_an_id_that_one_directory_names_over_anothers_records_is_misread(tmp_path: Path) -> None:
    written(tmp_path / "1" / "t-0", b"same", A)
    written(tmp_path / "2" / "t-0", b"same", B)
    written(tmp_path / "3" / "t-0", b"same", A)

    assert ids(tmp_path) == ([A, None, A], [B])


@pytest.mark.parametrize(("told", "left"), [(A, [A, None]), (B, [None, B]), (None, [None, None])])
def test_of_two_the_one_that_something_else_names_is_right(
    tmp_path: Path, told: str | None, left: list[str | None]
) -> None:
    written(tmp_path / "1" / "t-0", b"same", A)
    written(tmp_path / "2" / "t-0", b"same", B)

    found, misread = ids(tmp_path, told)
    assert found == left
    assert misread == [i for i, kept in zip((A, B), left, strict=True) if kept is None]


def test_a_topic_with_records_of_its_own_is_another_topic(tmp_path: Path) -> None:
    written(tmp_path / "1" / "t-0", b"one", A)
    written(tmp_path / "2" / "t-0", b"two", B)
    written(tmp_path / "3" / "t-0", None, A)

    assert ids(tmp_path) == ([A, B, A], [])
