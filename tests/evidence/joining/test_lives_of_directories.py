"""Of a topic that was created anew, which life each copied replica is of, from real segments."""

from pathlib import Path

from replication.evidence.collecting.collection import BrokerDirectory
from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.lives_of_directories import lives_of_directories
from replication.evidence.joining.topic_lives import Life
from replication.evidence.log_directories.log_directory import read_log_directory
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


def test_a_name_that_was_used_once_is_one_life(tmp_path: Path) -> None:
    written(tmp_path / "1" / "t-0", b"x")

    assert lives(tmp_path, Incarnations({"t": [(A, None, None)]})) == {"1/t-0": A}
