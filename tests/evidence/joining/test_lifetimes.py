"""Which topics bore a name, and when, by records of the controllers and by brokers' lines."""

from replication.evidence.broker_logs.births import Births
from replication.evidence.joining.broker_lines import lines_by_broker
from replication.evidence.joining.lifetimes import Incarnations, incarnations
from replication.evidence.joining.one_cluster import ClusterEvidence
from replication.evidence.metadata_log.history import TopicLifetime
from tests.evidence.joining.history import history
from tests.evidence.joining.lines import line, log, process

ANEW = [
    line("log_created", at=1, number=1),
    line("became_leader", at=2, number=2, leader_epoch=0),
    line("became_leader", at=3, number=3, leader_epoch=1),
    line("log_marked_deleted", at=8, number=4),
    line("log_created", at=9, number=5),
    line("became_leader", at=10, number=6, leader_epoch=0),
]


def found(cluster: ClusterEvidence) -> Incarnations:
    return incarnations(cluster, lines_by_broker(cluster.logs))


def of_lines() -> ClusterEvidence:
    signs = Births()
    for fact in ANEW:
        signs.take(fact._replace(broker=None))
    return ClusterEvidence("c", logs=(log(1, *ANEW, births=signs),))


def test_the_metadata_log_gives_ids_and_times() -> None:
    topics = {"a": TopicLifetime("t", 10, 20), "b": TopicLifetime("t", 20, None)}
    lives = found(ClusterEvidence("c", history=history(topics=topics)))
    assert [topic_id for topic_id, _, _ in lives.of("t")] == ["a", "b"]
    assert [lives.at("t", at) for at in (15, 20, None)] == ["a", "b", "b"]
    assert (lives.is_deleted("t", "a"), lives.is_deleted("t", "b")) == (True, False)
    assert (lives.of("u"), lives.at("u", 5)) == ([], "")


def test_ids_that_lines_print_follow_each_other_as_they_were_printed() -> None:
    printed: dict[tuple[int | None, str, str], int | None] = {
        (None, "t", "new"): 50, (None, "t", "old"): 5,
    }  # fmt: skip
    assert found(ClusterEvidence("c", logs=(log(1, topic_ids=printed),))).of("t") == [
        ("old", None, 50), ("new", 50, None),
    ]  # fmt: skip
    # Of a file that is nobody's it is not known whose lines they are.
    assert found(ClusterEvidence("c", logs=(log(None, topic_ids=printed),))).of("t") == []


def test_lines_alone_show_that_a_topic_was_created_anew() -> None:
    lives = found(of_lines())
    assert [topic_id for topic_id, _, _ in lives.of("t")] == ["incarnation-1", ""]
    assert lives.is_deleted("t", "incarnation-1")
    assert not lives.is_deleted("t", "")


def test_where_the_metadata_log_tells_of_the_topic_it_decides() -> None:
    cluster = of_lines()
    known = history(topics={"a": TopicLifetime("t", 1, None)})
    lives = found(ClusterEvidence("c", logs=cluster.logs, history=known))
    assert lives.created_anew == {}
    assert [topic_id for topic_id, _, _ in lives.of("t")] == ["a"]


def test_a_kraft_controllers_lines_tell_of_created_and_removed_topics() -> None:
    def said(kind: str, at: int, topic_id: str):  # type: ignore[no-untyped-def]
        return process(kind, at, topic_id=topic_id)._replace(topic="t")

    lines = [said("topic_created", 1, "a"), said("topic_removed", 5, "a"),
             said("topic_created", 5, "b")]  # fmt: skip
    controllers = log(100)
    controllers.processes = lines
    lives = found(ClusterEvidence("c", logs=(controllers,)))
    assert [(i, gone) for i, _, gone in lives.of("t")] == [("a", 5), ("b", None)]
    assert (lives.is_deleted("t", "a"), lives.is_deleted("t", "b")) == (True, False)
    # The metadata log, where it names the topic, is believed.
    topics = {"a": TopicLifetime("t", 1, None)}
    recorded = ClusterEvidence("c", logs=(controllers,), history=history(topics=topics))
    assert not found(recorded).is_deleted("t", "a") or len(found(recorded).of("t")) > 1
