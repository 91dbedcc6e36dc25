"""All steps of joining one cluster together, on what a broker's log alone tells."""

from replication.evidence.collecting.collection import Collection
from replication.evidence.joining.cluster_join import join_cluster
from tests.evidence.joining.history import created, history
from tests.evidence.joining.lines import acknowledged, line, log, process


def collection() -> Collection:
    started = process("process_started", at=1)
    return Collection(
        logs=[log(1, started, line("became_leader", at=2), cluster_id="c")],
        histories={"c": history(changes=(created("", "u"),))},
        acknowledgements=[acknowledged("x", path="mine.txt"), acknowledged("y", path="other.txt")],
        all_producers=True,
    )


def test_every_partition_that_anything_names_is_joined() -> None:
    joined = join_cluster(collection(), "c", files={"mine.txt"})
    t, u = joined.partitions
    assert ((t.topic, u.topic), joined.facts.controller) == (("t", "u"), "kraft")
    assert [a.payload_id for a in t.acknowledgements] == ["x"]
    assert (t.has_all_producers, t.has_consumption_log) == (True, False)
    assert ([f.kind for f in t.processes[1]], u.processes) == (["process_started"], {})
    assert [fact.kind for packed in t.packed[1] for fact in packed] == ["became_leader"]
    assert ([r.fact.leader for r in u.recorded], u.history_complete) == ([1], True)


def test_only_one_topic_is_joined_where_that_is_asked_for() -> None:
    joined = join_cluster(collection(), "c", files=set(), only_topics=frozenset({"u"}))
    assert [p.topic for p in joined.partitions] == ["u"]
    assert not joined.partitions[0].has_all_producers


def test_joining_changes_nothing_that_was_collected() -> None:
    known = collection()
    join_cluster(known, "c", "1.1.1", files={"mine.txt"})
    assert (known.notes, known.unreadable) == ([], [])
    assert [packed.ahead for each in known.logs for packed in each.lines] == [0]
