"""What kafka-log-dirs adds: who has a replica, and what is wrong with directories."""

from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.listed_replicas import listed_replicas
from replication.evidence.tools.log_dirs import LogDirectoryError, LogDirectorySize
from tests.evidence.test_placement import copy_of


def size(broker: int, topic: str = "t", *, is_future: bool = False) -> LogDirectorySize:
    return LogDirectorySize(broker, "/data", topic, 0, 100, is_future, "dirs.json", 7)


ONE = Incarnations({"t": [("a", None, None)]})
COPIES = {("t", "a", 0): [copy_of("copy", 5, clean=True)]}


def test_a_listed_replica_of_which_nothing_is_here_is_missing() -> None:
    listed, notes = listed_replicas([size(1), size(2), size(1, "unknown")], ONE, COPIES)
    assert listed == {("t", "a", 0): {1, 2}}
    assert len(notes) == 1
    assert "replica on broker 2" in notes[0]


def test_a_log_on_the_move_is_no_replica_yet_and_an_offline_directory_is_told() -> None:
    offline = LogDirectoryError(3, "/data", "KAFKA_STORAGE_ERROR", "dirs.json")
    listed, notes = listed_replicas([size(2, is_future=True), offline], ONE, COPIES)
    assert listed == {}
    assert "was moving t-0 to /data, 7 offsets behind" in notes[0]
    assert "KAFKA_STORAGE_ERROR" in notes[1]


def test_of_two_incarnations_the_tool_does_not_say_which_it_lists() -> None:
    two = Incarnations({"t": [("b", None, 5), ("a", 5, None)]})
    assert listed_replicas([size(2)], two, COPIES) == ({}, [])
