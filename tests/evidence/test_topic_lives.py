"""Topics created anew under their name: the lives that lines tell, in the smallest forms."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.broker_logs.births import Births
from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.broker_lines import BrokerLines
from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.lines_by_incarnation import lines_by_incarnation
from replication.evidence.joining.lives_side_by_side import lives_of_topic
from replication.evidence.joining.topic_lives import (
    Life,
    Stretch,
    life_of_directory,
    lifetimes_of_lives,
    stretches,
)
from tests.evidence.test_placement import copy_of

DAY = 24 * 3_600_000


def line(at: int, kind: str, leader_epoch: int | None = None, **fields: Any) -> LogLineFact:
    if leader_epoch is not None:
        fields["leader_epoch"] = leader_epoch
    return LogLineFact(kind, at, at, "server.log", 1, "t", 0, fields)


def cut_at(facts: list[LogLineFact]) -> list[int | None]:
    return [stretch.first_at for stretch in stretches(facts)]


def cached(at: int, leader_epoch: int, partition_epoch: int) -> LogLineFact:
    """What the controller tells every broker."""
    told = {"partition_epoch": partition_epoch, "replicas": (1, 2)}
    return line(at, "leadership_cached", leader_epoch, **told)


LED = [
    line(1, "log_created"),
    line(2, "became_leader", 0, partition_epoch=0),
    line(3, "became_follower", 1, partition_epoch=1),
]
NEW_LIVES: dict[str, tuple[list[LogLineFact], list[int | None]]] = {
    "a controller decides on lower epochs than one before": (
        [
            line(5, "partition_state_changed", 2, partition_epoch=2),
            line(9, "replica_removed_from_isr", 1, partition_epoch=1),
        ],
        [5, 9],
    ),
    "the leader epoch falls to 0": ([*LED, line(10, "became_leader", 0)], [1, 10]),
    "its log's creation belongs to it": (
        [*LED, line(9, "log_created"), line(10, "became_follower", 0)],
        [1, 9],
    ),
    "deleted and created within epoch 0": (
        [
            *LED[:2],
            line(8, "log_marked_deleted"),
            line(9, "log_created"),
            line(10, "became_leader", 0),
        ],
        [1, 9],
    ),
    "of the life before only its end is left": (
        [line(8, "log_marked_deleted"), line(9, "log_created"), line(10, "became_leader", 0)],
        [8, 9],
    ),
    "the partition epoch falls within epoch 0": (
        [
            *LED[:1],
            line(2, "became_leader", 0, partition_epoch=4),
            line(10, "became_leader", 0, partition_epoch=0),
        ],
        [1, 10],
    ),
    "a request that is obeyed": (
        [*LED, line(9, "leader_and_isr_received", 0), line(10, "role_change_started")],
        [1, 9],
    ),
    "the controller names a new topic": ([*LED, line(10, "partition_assigned")], [1, 10]),
    "every broker is told of the first epochs again": (
        [*LED, cached(4, 1, 1), line(5, "log_loaded", log_end_offset=9), cached(10, 0, 0)],
        [1, 10],
    ),
    "the partition epoch that every broker is told of falls within epoch 0": (
        [cached(4, 0, 2), cached(10, 0, 0)],
        [4, 10],
    ),
    "the first that a broker is asked for, of a topic of which it was told later epochs": (
        [
            cached(4, 1, 1),
            line(9, "leader_and_isr_received", 0),
            line(10, "role_change_started"),
            cached(11, 0, 0),
        ],
        [4, 9],
    ),
    "the replica was removed by a request, and the next one names its first epoch": (
        [*LED[:2], line(8, "replica_removed"), line(10, "became_leader", 0, partition_epoch=0)],
        [1, 10],
    ),
    "a topic is created with another leader": (
        [
            line(1, "leader_and_isr_received", 0, partition_epoch=0, leader=1),
            line(2, "role_change_started"),
            line(9, "leader_and_isr_received", 0, partition_epoch=0, leader=3),
            line(10, "role_change_started"),
        ],
        [1, 9],
    ),
    "who followed in the first epoch leads in it": (
        [line(1, "became_follower", 0), line(9, "log_created"), line(10, "became_leader", 0)],
        [1, 9],
    ),
    "every broker is told of another first leader": (
        [
            line(1, "leadership_cached", 0, partition_epoch=0, leader=1, replicas=(1, 3)),
            line(9, "leadership_cached", 0, partition_epoch=0, leader=3, replicas=(1, 3)),
        ],
        [1, 9],
    ),
    "the controller names it right after the life before": (
        [*[line(1, "partition_assigned")] * 2, line(10, "partition_assigned")],
        [1, 10],
    ),
    "both epochs fall after years": (
        [*LED, line(900 * DAY, "became_leader", 0, partition_epoch=0)],
        [1, 900 * DAY],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NEW_LIVES)
def test_where_a_new_life_begins(name: str) -> None:
    facts, expected = NEW_LIVES[name]
    assert cut_at(facts) == expected


ONE_LIFE: dict[str, list[LogLineFact]] = {
    "a stale controller's request is refused": [
        *LED,
        line(9, "leader_and_isr_received", 0, partition_epoch=0),
        line(9, "leader_and_isr_ignored", 0),
        line(10, "became_leader", 2),
    ],
    "a disk that came back empty": [
        *LED,
        line(9, "log_created"),
        line(10, "became_follower", 2, partition_epoch=2),
    ],
    "a replica that was moved off and on": [
        *LED,
        line(8, "log_marked_deleted"),
        line(9, "log_created"),
        line(10, "became_follower", 5, partition_epoch=9),
    ],
    "a leader is named by those it has, and nobody while a topic is deleted": [
        line(1, "leader_and_isr_received", 0, partition_epoch=0, leader=1),
        line(2, "became_leader", 0, partition_epoch=0),
        line(3, "leadership_cached", 0, partition_epoch=0, leader=-2, replicas=(1, 3)),
        line(4, "leadership_cached", 0, partition_epoch=0, leader=None, replicas=(1, 3)),
        line(5, "became_leader", 0, partition_epoch=1),
    ],
    "moved off and on, and nothing is left from before": [
        line(8, "log_marked_deleted"),
        line(9, "log_created"),
        line(10, "became_follower", 5, partition_epoch=9),
    ],
    "every broker is told what others were asked for before": [
        *LED,
        cached(4, 0, 0),
        cached(5, 1, 1),
    ],
    "what a controller lists as known to itself is ahead of its broker": [
        line(1, "leadership_cached", 1, partition_epoch=1),
        *LED,
        cached(4, 0, 0),
    ],
    "an older epoch of a reordered line": [*LED, line(3, "became_follower", 1, partition_epoch=0)],
}


@pytest.mark.parametrize("name", ONE_LIFE)
def test_what_is_no_new_life(name: str) -> None:
    assert len(stretches(ONE_LIFE[name])) == 1


def test_where_others_saw_more_a_log_begins_a_life_only_where_there_had_been_one() -> None:
    """A leader names its epoch before it creates its log, in the first life as in any other."""
    asked = [line(1, "leader_and_isr_received", 0), line(2, "role_change_started")]
    first = [*asked, line(3, "log_created"), line(4, "became_leader", 0)]
    assert len(stretches(first, others=True)) == 1
    again = [*first, line(9, "log_created"), line(10, "became_leader", 0)]
    assert [s.first_at for s in stretches(again, others=True)] == [1, 9]


def test_where_others_saw_more_a_log_created_where_one_was_deleted_begins_a_life() -> None:
    """A follower's server.log names no epoch, and that of a leader none below its first."""
    first = [line(3, "log_created"), line(4, "log_marked_deleted")]
    again = [*first, line(9, "log_created"), line(10, "became_leader", 2)]
    assert [s.first_at for s in stretches(again, others=True)] == [3, 9]
    assert len(stretches(again)) == 1


def test_brokers_are_laid_side_by_side_by_number_whatever_their_clocks_say() -> None:
    first = stretches([*LED, line(100, "became_leader", 0)])
    followed = [line(2, "became_follower", 0), line(100, "became_follower", 0)]
    begun = [line(1, "log_created"), followed[0], line(3, "became_leader", 1), followed[1]]
    ahead = [replace_at(f, 5_000_000) for f in begun]
    late = stretches([line(105, "became_follower", 0), line(120, "became_leader", 1)])
    lives = lives_of_topic({1: first, 2: stretches(ahead), 3: late})
    assert [sorted(life.stretches) for life in lives] == [[1, 2], [1, 2, 3]]
    assert lives[1].begun_at == 100


def replace_at(fact: LogLineFact, later: int) -> LogLineFact:
    return fact._replace(at=(fact.at or 0) + later)


def test_ids_go_to_the_newest_lives_and_the_rest_is_counted() -> None:
    def lives() -> Any:
        return lives_of_topic({1: stretches([*LED, line(100, "became_leader", 0)])})

    assert lifetimes_of_lives(lives(), ["a", "b"]) == [("a", None, 100), ("b", 100, None)]
    assert lifetimes_of_lives(lives(), ["b"]) == [("incarnation-1", None, 100), ("b", 100, None)]
    assert lifetimes_of_lives(lives(), []) == [("incarnation-1", None, 100), ("", 100, None)]
    three = lifetimes_of_lives(lives(), ["a", "b", "c"])
    assert [topic_id for topic_id, _, _ in three] == ["a", "b", "c"]


def test_the_life_of_a_directory_without_an_id() -> None:
    lives = [("incarnation-1", None, 10 * DAY), ("", 10 * DAY, None)]
    directory = copy_of("d", 5, clean=True).directory

    def life(at: int | None, kind: Any = "replica") -> str | None:
        return life_of_directory(replace(directory, max_timestamp=at, kind=kind), lives)

    assert life(10 * DAY - 5) == "incarnation-1"
    assert life(10 * DAY + 5) == ""
    assert life(10 * DAY + 5, "deleted") == "incarnation-1"
    assert life(None) is None
    assert life(900 * DAY) is None  # A producer's own idea of time.
    assert Path(directory.path).name == "t-0"


def test_which_topics_are_looked_at() -> None:
    births = Births()
    for fact in LED:
        births.take(fact)
    assert births.topics() == set()
    other = Births()
    other.take(line(10, "became_leader", 0))
    births.add(other, 1)
    assert births.topics() == {"t"}


def test_a_topic_that_two_brokers_led_at_its_creation_is_looked_at() -> None:
    """In the lines of one broker, of one file or of two."""
    births, other = Births(), Births()
    births.take(line(1, "leader_and_isr_received", 0, partition_epoch=0, leader=1))
    births.add(births, 1)
    assert births.topics() == set()
    other.take(line(9, "leader_and_isr_received", 0, partition_epoch=0, leader=3))
    births.add(other, 1)
    assert births.topics() == {"t"}
    other = Births()
    other.take(line(8, "replica_removed"))
    assert other.topics() == {"t"}


def test_epochs_that_begin_anew_do_not_say_that_the_logs_were_deleted() -> None:
    later = line(900 * DAY, "became_leader", 0, partition_epoch=0, log_end_offset=30)
    (_, kept) = lives_of_topic({1: stretches([*LED, later])})
    assert not kept.begins_empty
    empty = line(900 * DAY, "became_leader", 0, partition_epoch=0, log_end_offset=0)
    (gone, now) = lives_of_topic({1: stretches([*LED, empty])})
    assert (gone.ends_deleted, now.begins_empty) == (False, True)


def test_an_id_that_was_never_printed_is_a_new_life_whatever_the_line_says() -> None:
    first = [line(1, "replica_created", topic_id="a"), line(2, "became_leader", 0, topic_id="a")]
    second = [line(9, "replica_created", topic_id="b"), line(10, "log_created"),
              line(11, "became_leader", 0, topic_id="b")]  # fmt: skip
    late = line(12, "log_deleted", topic_id="a")
    (old, new) = stretches([*first, *second, late])
    assert (old.topic_id, len(old.facts)) == ("a", 2)
    assert new.facts[:3] == second
    assert [i for i, _, _ in lifetimes_of_lives(lives_of_topic({1: [old, new]}), [])] == ["a", "b"]


def test_all_partitions_that_one_line_assigns_are_of_one_life() -> None:
    """A controller names them in one line, from 2.8 on with the topic's id."""
    named = line(1, "partition_assigned", topic_id="a")
    other = LogLineFact("partition_assigned", 1, 1, "server.log", 1, "t", 1, {"topic_id": "a"})
    created = [named, other, line(2, "became_leader", 0, topic_id="a")]
    assert [s.facts for s in stretches(created)] == [created]


def test_the_first_id_that_a_broker_prints_may_be_a_new_lifes() -> None:
    """Another broker was the controller that named the first life, and no other line has ids."""
    named = line(9, "partition_assigned", topic_id="b")
    assert [(s.first_at, s.topic_id) for s in stretches([*LED, named])] == [(1, ""), (9, "b")]


def test_a_controller_that_reads_what_it_sent_before_it_elected_tells_of_no_new_life() -> None:
    def asked(at: int) -> LogLineFact:
        return line(at, "leader_and_isr_received", 0, partition_epoch=0)

    elected = line(5, "leader_selected", 1)
    late = [asked(1), line(2, "role_change_started"), elected, asked(6)]
    late.append(line(7, "role_change_started"))
    assert len(stretches(late)) == 1
    assert len(stretches([elected, line(8, "leader_selected", 0)])) == 2


def test_a_life_that_began_without_an_id_takes_the_first_new_one() -> None:
    """A follower's lines name none until it fetches."""
    first = [line(1, "replica_created", topic_id="a"), *LED]
    gone = [line(8, "log_marked_deleted"), line(9, "log_created"), line(10, "became_follower", 0)]
    (_, new) = stretches([*first, *gone, line(11, "fetcher_added", 0, topic_id="b")])
    assert (new.topic_id, [f.at for f in new.facts]) == ("b", [9, 10, 11])


def test_what_lies_on_a_disk_begins_no_life_and_is_of_its_own_id() -> None:
    """A broker that starts loads a log that it has yet to delete, of which no line is left."""
    first = [line(1, "replica_created", topic_id="b"), line(2, "became_leader", 0, topic_id="b")]
    loaded = [line(9, "log_loaded", topic_id="a"), line(9, "log_loaded", topic_id="b")]
    follows = line(10, "became_follower", 1)
    assert [s.topic_id for s in stretches([*first, *loaded, follows])] == ["b"]
    old = Life("a", None, {1: Stretch([*LED])})
    new = Life("b", 1, {1: Stretch([*first, *loaded, follows], True, "b")})
    told = Incarnations({"t": [("a", None, 1), ("b", 1, None)]}, {"t": [old, new]})
    found = lines_by_incarnation(1, BrokerLines(), told)
    assert {key[1]: sum(len(list(p)) for p in lines) for key, lines in found.items()} == {
        "a": len(LED) + 1,
        "b": 4,
    }


def test_a_log_created_before_the_first_word_of_a_new_id_is_the_new_lifes() -> None:
    """A broker finds the log of a deleted topic astray, and makes one of the topic's next life."""
    stray = [line(7, "log_marked_stray"), line(7, "log_loaded", topic_id="a")]
    made = [line(9, "log_created"), line(9, "fetcher_removed"),
            line(10, "became_leader", 2, topic_id="b")]  # fmt: skip
    led = [line(1, "became_leader", 0, topic_id="a")]
    assert [s.first_at for s in stretches([*led, *stray, *made])] == [1, 9]
    named = line(9, "replica_created", topic_id="b")
    again = [line(8, "log_marked_deleted"), named, *made[:2], line(10, "became_leader", 0)]
    assert [s.facts[0] for s in stretches(again)] == [again[0], named]


def test_a_topic_whose_lines_were_cut_in_two_is_not_deleted() -> None:
    again = [line(99, "log_created"), line(100, "became_leader", 0)]
    lives = lives_of_topic({1: stretches([*LED, *again])})
    lives[0].topic_id = lives[1].topic_id = "a"
    told = Incarnations({"t": lifetimes_of_lives(lives, [])}, {"t": lives})
    assert not told.is_deleted("t", "a")


def test_requests_about_several_partitions_may_come_before_any_is_obeyed() -> None:
    """A broker is told of all partitions of a new topic in one request, and then takes its roles in
    any order of them."""
    deleted = [line(4, "log_marked_deleted"), line(4, "log_marked_deleted")._replace(partition=1)]
    first = [*LED, *(fact._replace(partition=1) for fact in LED), *deleted]
    asked = [line(10, "leader_and_isr_received", 0)._replace(partition=p) for p in (1, 0)]
    obeyed = [line(11, "role_change_started")._replace(partition=p) for p in (0, 1)]
    before, after = stretches([*first, *asked, *obeyed])
    assert before.facts == first
    assert after.facts == [*asked, *obeyed]
