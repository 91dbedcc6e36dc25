"""A topic id belongs to one cluster, whatever that calls itself."""

from pathlib import Path

from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import fold_all

TOPIC = "0nFqYQ3jQ0uCE5pUVcJ0aA"
START = (
    "INFO Registered kafka:type=kafka.Log4jController MBean "
    "(kafka.utils.Log4jControllerRegistration$)"
)
CLUSTERS = ("Lx1o3rZ9Qk6oG8t0n1bWdg", "uP6fTnY5SJ-0o9d3kqKq3w")


def led(leader_epoch: int, end: int, topic_id: str) -> str:
    return (
        f"INFO [Broker id=1] Leader t-0 with topic id Some({topic_id}) starts at leader epoch "
        f"{leader_epoch} from offset {end} with high watermark {end} ISR [1] addingReplicas [] "
        f"removingReplicas []. Previous leader epoch was {leader_epoch - 1}. (state.change.logger)"
    )


def one_log(folder: Path, second_topic: str) -> list[tuple[str, str, list[tuple[str, str]]]]:
    told = [
        START, f"INFO Cluster ID = {CLUSTERS[0]} (kafka.server.KafkaServer)", led(0, 0, TOPIC),
        led(1, 900, TOPIC),
        START, f"INFO Cluster ID = {CLUSTERS[1]} (kafka.server.KafkaServer)",
        led(2, 700, second_topic),
    ]  # fmt: skip
    lines = [f"[2026-03-02 10:{n:02}:00,000] {text}\n" for n, text in enumerate(told)]
    (folder / "server.log").write_text("".join(lines))
    imported = import_evidence([folder])
    answers = [
        (f.identity[0], f.identity[2], [(v["invariant"], v["verdict"]) for v in f.answer.verdicts])
        for f in fold_all(imported.events())
    ]
    assert any("whose id changed" in note for note in imported.notes) == (len(answers) == 1)
    return answers


def test_a_cluster_whose_id_changed_keeps_its_topics_and_their_losses(tmp_path: Path) -> None:
    ((cluster, topic_id, verdicts),) = one_log(tmp_path, TOPIC)
    assert (cluster, topic_id) == (CLUSTERS[1], TOPIC)
    assert dict(verdicts)["committed_records_survive"] == "VIOLATED"


def test_two_clusters_with_topics_of_their_own_stay_apart(tmp_path: Path) -> None:
    answers = one_log(tmp_path, "y1TtD2tXRyS2m1rQ9vJ4Zg")
    assert {cluster for cluster, *_ in answers} == set(CLUSTERS)
    assert all(dict(v)["committed_records_survive"] != "VIOLATED" for *_, v in answers)
