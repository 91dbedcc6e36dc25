"""Random schedules: their shortening keeps a loss, and what is beyond the search is told."""

from pathlib import Path

import pytest

from replication.cli import main
from replication.foresight.failures import BY_NAME
from replication.foresight.search import Bound, search
from replication.foresight.settings import Settings
from replication.foresight.worlds import ACKS_ALL
from tests.foresight.walks import Walk, again, shortened, walk

# Two crashes, a late answer, a move of leadership: a leader that crashed takes a follower without
# the record into the ISR (KAFKA-7128). Found by a random schedule.
JOINED_EARLY = [
    ("crash A kind=process",),
    ("fence A",),
    ("produce B r0 acks=all",),
    ("fetch C",),
    ("fetch C",),
    ("crash B kind=process",),
    ("start A",),
    ("start B",),
    ("fetch A response=delayed",),
    ("elect cause=preferred",),
]
SETTINGS = Settings("2.8.2", 3, 2, True, "zookeeper")


def losing() -> Walk:
    """The first schedule that loses such a record."""
    walks = (walk(SETTINGS, BY_NAME["power_of_one"], seed) for seed in range(2000))
    return next(one for one in walks if ACKS_ALL in one.lost)


def test_a_schedule_is_shortened_to_what_loses_its_record() -> None:
    short = shortened(losing(), {ACKS_ALL})
    assert ACKS_ALL in short.lost
    assert len(short.moves) < len(losing().moves)
    for at in range(len(short.moves)):
        less = [*short.moves[:at], *short.moves[at + 1 :]]
        assert ACKS_ALL not in again(short, less).lost


def test_a_schedule_told_again_is_the_same() -> None:
    one = losing()
    told = again(one, one.moves)
    assert (told.moves, told.spent, told.lost) == (one.moves, one.spent, one.lost)


def test_nothing_of_a_history_of_the_search_is_beyond_it() -> None:
    failure = BY_NAME["power_of_one"]
    history = search(SETTINGS, failure, Bound()).lost[ACKS_ALL]
    one = again(Walk(SETTINGS, failure, history.leader), history.moves)
    assert ACKS_ALL in one.lost
    assert one.beyond() == []


def test_what_the_search_does_not_look_at_is_named() -> None:
    moves = [("produce A r0 acks=all",), ("produce A r1 acks=all",), ("fetch B response=lost",)]
    one = again(Walk(SETTINGS, BY_NAME["one_broker"], 1), moves)
    assert one.beyond() == [
        "2 records where the search has 1",
        "an answer to a fetch that is lost or late",
    ]


@pytest.mark.parametrize(
    ("release", "is_lost"), [("0.10.2.2", True), ("1.1.1", True), ("2.0.0", True), ("2.0.1", False)]
)
def test_who_joined_the_isr_too_early_leads_without_the_record(release: str, is_lost: bool) -> None:
    settings = Settings(release, 3, 2, False, "zookeeper")
    one = again(Walk(settings, BY_NAME["two_brokers"], 1), JOINED_EARLY)
    assert one.moves == JOINED_EARLY
    assert (ACKS_ALL in one.lost) == is_lost
    assert one.beyond() == [
        "1 moves of leadership where the search has 0",
        "an answer to a fetch that is lost or late",
    ]


@pytest.mark.parametrize(("release", "is_told"), [("2.0.0", True), ("2.0.1", False)])
def test_preflight_says_what_two_crashes_can_lose_besides(
    release: str, is_told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = tmp_path / "describe.txt"
    topics.write_text(
        "Topic: t\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"
    )
    main(
        [
            "preflight",
            str(topics),
            "--kafka",
            release,
            "--failure",
            "two_brokers",
            "--states",
            "100",
        ]
    )
    assert ("KAFKA-7128" in capsys.readouterr().out) == is_told
