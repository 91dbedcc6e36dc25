"""Of a topic that was created anew, which life each copied replica is of, from real segments."""

from pathlib import Path

import pytest

from replication.evidence.broker_logs.births import Births
from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.collecting.collection import BrokerDirectory
from replication.evidence.joining.broker_lines import lines_by_broker
from replication.evidence.joining.lifetimes import Incarnations, incarnations
from replication.evidence.joining.lives_of_directories import lives_of_directories
from replication.evidence.joining.one_cluster import ClusterEvidence
from replication.evidence.joining.topic_lives import Life, Stretch
from replication.evidence.log_directories.digest_lines import directories_of
from replication.evidence.log_directories.log_directory import read_log_directory
from tests.evidence.joining.lines import line, log
from tests.evidence.segment_bytes import CREATED, Record, batch

# Created anew a second after the records that some of the directories hold.
A, B = "uMa683oOR9mwAbrdybdymw", "NVIwHGfuRjajCXo1wchaoQ"
TWO = [(A, None, CREATED + 1_000), (B, CREATED + 1_000, None)]
ANEW = Incarnations({"t": TWO}, {"t": [Life(), Life()]})
DELETED = "t-0.0123456789abcdef0123456789abcdef-delete"


def written(at: Path, value: bytes | None, topic_id: str | None = None) -> Path:
    """A replica with one record, or none."""
    at.mkdir(parents=True)
    log = b"" if value is None else batch(0, Record(value))
    (at / "00000000000000000000.log").write_bytes(log)
    if topic_id is not None:
        (at / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    return at


def lives(root: Path, incarnations: Incarnations = ANEW) -> dict[str, str | None]:
    copied = [
        BrokerDirectory(number, "c", read_log_directory(folder), None, "test")
        for number, folder in enumerate(sorted(root.iterdir()), 1)
    ]
    found = lives_of_directories(copied, incarnations)
    return {str(path.relative_to(root)): life for path, life in found.items()}


def test_the_same_batches_are_of_the_same_life_whatever_their_records_time(tmp_path: Path) -> None:
    """A producer that tried again made the record before the topic was there."""
    written(tmp_path / "1" / "t-0", b"late", B)
    written(tmp_path / "2" / "t-0", b"late")
    written(tmp_path / "3" / "t-0", b"early")

    assert lives(tmp_path) == {"1/t-0": B, "2/t-0": B, "3/t-0": A}


def test_beside_the_deleted_log_of_the_first_life_lies_the_second_ones(tmp_path: Path) -> None:
    written(tmp_path / "1" / DELETED, b"early", A)
    written(tmp_path / "1" / "t-0", None)
    written(tmp_path / "2" / "t-0", None)

    assert lives(tmp_path) == {f"1/{DELETED}": A, "1/t-0": B, "2/t-0": None}


def test_a_deleted_log_whose_records_tell_its_life_tells_that_of_the_one_beside_it(
    tmp_path: Path,
) -> None:
    written(tmp_path / "1" / DELETED, b"early")
    written(tmp_path / "1" / "t-0", None)

    two = Incarnations(
        {"t": [("x", None, CREATED + 1_000), ("", CREATED + 1_000, None)]}, ANEW.created_anew
    )
    assert lives(tmp_path, two) == {f"1/{DELETED}": "x", "1/t-0": ""}


@pytest.mark.parametrize(
    ("seen", "life"), [((50, 90), "x"), ((100, 180), ""), ((50, 150), None), ((10, 20), None)]
)
def test_what_lines_of_a_digest_tell_is_of_the_life_that_its_broker_had_begun_by_then(
    seen: tuple[int, int], life: str | None
) -> None:
    """They tell no batch and no record's time."""
    began = [Life("x", None, {3: begun_at(30)}), Life("", 100, {3: begun_at(100)})]
    two = Incarnations({"t": [("x", None, 100), ("", 100, None)]}, {"t": began})
    told = {"replication_digest": 1, "n": 1, "started": 0, "directory": "/d", "path": "d.lines"}
    log = {"topic_id": None, "log_start_offset": 0, "log_end_offset": 5, "leader_epochs": [[0, 0]],
           "high_watermark": None, "recovery_point": None}  # fmt: skip
    lines = [
        told | {"at": seen[0], "what": "partition", "name": "t-0"} | log,
        told | {"at": seen[1], "what": "directory", "n": 2, "meta": "broker.id=3\nversion=0\n"},
    ]
    [directory] = directories_of(lines, Path())
    copied = BrokerDirectory(3, "c", directory, None, "test")
    assert list(lives_of_directories([copied], two).values()) == [life]
    undated = Incarnations(two.lifetimes, two.created_anew, frozenset("t"))
    assert list(lives_of_directories([copied], undated).values()) == [None]


def test_a_log_is_of_the_life_in_which_its_broker_says_that_it_set_it_aside(
    tmp_path: Path,
) -> None:
    """No id, no batch and no time tells. Of the only known id the line tells whose it is."""
    written(tmp_path / "1" / DELETED, None)
    gone = LogLineFact(
        "log_marked_deleted", 5, 1, "", 1, "t", 0, {"directory": f"/var/kafka/{DELETED}"}
    )
    first = Life("x", None, {1: Stretch([gone])})
    two = Incarnations({"t": [("x", None, 100), ("", 100, None)]}, {"t": [first, Life("", 100)]})
    assert lives(tmp_path, two) == {f"1/{DELETED}": "x"}

    written(tmp_path / "2" / DELETED, b"early", A)
    written(tmp_path / "2" / "t-0", b"late")
    signs = Births()
    facts = [
        line("became_leader", at=1, number=1, leader_epoch=0),
        line("became_leader", at=2, number=2, leader_epoch=1),
        line("log_marked_deleted", at=5, number=3, directory=f"/var/kafka/{DELETED}"),
        line("log_created", at=9, number=4),
        line("became_leader", at=10, number=5, leader_epoch=0),
    ]
    for fact in facts:
        signs.take(fact)
    copied = BrokerDirectory(2, "c", read_log_directory(tmp_path / "2"), None, "test")
    cluster = ClusterEvidence("c", logs=(log(2, *facts, births=signs),), directories=(copied,))
    told = incarnations(cluster, lines_by_broker(cluster.logs))
    assert [topic_id for topic_id, _, _ in told.of("t")] == [A, ""]
    found = lives_of_directories([copied], told)
    assert {path.name: life for path, life in found.items()} == {DELETED: A, "t-0": ""}


def begun_at(moment: int) -> Stretch:
    return Stretch([LogLineFact("log_created", moment, 1, "", 3, "t", 0, {})], True)


def test_a_name_that_was_used_once_is_one_life(tmp_path: Path) -> None:
    written(tmp_path / "1" / "t-0", b"x")

    assert lives(tmp_path, Incarnations({"t": [(A, None, None)]})) == {"1/t-0": A}
