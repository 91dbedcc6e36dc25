"""What a real broker wrote comes back, and goes out to a real broker once, killed on the way."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest

from replication.cli import main
from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.scenarios import SCENARIOS
from tests.kafka_lab.test_kafka_lab import tells_the_truth
from tests.kafka_lab.versions import Version
from tests.recovery.lost_evidence import lines_of, recover_rows, row

pytestmark = pytest.mark.kafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KILLS = 4
Content = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]
RECORDS: tuple[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int], ...] = (
    (None, b"no key", [], 1_700_000_000_000),
    (b"tombstone", None, [], 1_700_000_000_001),
    (None, None, [("a", None)], 1_600_000_000_000),
    (bytes(range(256)), b"\xff\xfe\0", [(f"h{n}", bytes([n, 255])) for n in range(20)], 1),
    (b"", b"", [("twice", b"1"), ("twice", b"2")], 1_700_000_000_002),
    (b"large", b"x" * 900_000, [], 1_700_000_000_003),
)


def sent(producer: ck.Producer, name: str, topic: str = "t") -> Counter[Content]:
    """Produces each of RECORDS; name tells one producer's from another's."""
    found: Counter[Content] = Counter()
    for key, value, headers, timestamp in RECORDS:
        whole = [*headers, ("by", name.encode())]
        producer.produce(topic, value, key, partition=0, headers=whole, timestamp=timestamp)
        found[key, value, tuple(whole), timestamp] += 1
    assert producer.flush(60) == 0
    return found


def produce_all(bootstrap: str) -> tuple[Counter[Content], Counter[Content]]:
    """Every kind of record in every codec: (those that a consumer may see, those left open)."""
    visible: Counter[Content] = Counter()
    for codec in CODECS:
        common = {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50}
        visible += sent(ck.Producer(common), f"plain {codec}")
        visible += sent(ck.Producer({**common, "enable.idempotence": True}), f"once {codec}")
        producer = ck.Producer({**common, "transactional.id": f"tx-{codec}"})
        producer.init_transactions(60)
        for outcome in ("committed", "aborted"):
            producer.begin_transaction()
            told = sent(producer, f"{outcome} {codec}")
            if outcome == "committed":
                producer.commit_transaction(60)
                visible += told
            else:
                producer.abort_transaction(60)
    producer = ck.Producer({"bootstrap.servers": bootstrap, "transactional.id": "tx-open"})
    producer.init_transactions(60)
    producer.begin_transaction()
    left_open = sent(producer, "open")
    # Neither committed nor aborted: its broker stops before it can be.
    producer.purge()
    return visible, left_open


def consumed(bootstrap: str, topic: str) -> Counter[Content]:
    """What a consumer of committed records is given, up to the topic's end."""
    consumer = ck.Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True,
            "auto.offset.reset": "earliest", "isolation.level": "read_committed",
        }
    )  # fmt: skip
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    found: Counter[Content] = Counter()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        message = consumer.poll(5)
        if message is None:
            continue
        if message.error() is not None:
            assert message.error().code() == ck.KafkaError._PARTITION_EOF
            break
        headers = tuple(message.headers() or ())
        found[message.key(), message.value(), headers, message.timestamp()[1]] += 1
    consumer.close()
    return found


def without_origin(found: Counter[Content]) -> Counter[Content]:
    """The same without the header that tells where a record was."""
    result: Counter[Content] = Counter()
    for (key, value, headers, timestamp), count in found.items():
        kept = tuple(h for h in headers if h[0] != "recovered-from")
        assert len(kept) == len(headers) - 1
        result[key, value, kept, timestamp] += count
    return result


def produced_in_the_end(out: Path, bootstrap: str) -> int:
    """Runs the command until it is through, killed KILLS times; how often it was."""
    command = [
        sys.executable, "-c",
        "from replication.recovery import producing; producing.RECORDS_IN_BATCH = 1\n"
        "from replication.cli import main; import sys; sys.exit(main())",
        "recover", "--out", str(out), "--produce", bootstrap, "--to-topic", "back", "--yes",
    ]  # fmt: skip
    killed = 0
    for attempt in range(40):
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=1.2 + 0.3 * attempt if killed < KILLS else 240)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed += 1
            continue
        assert process.returncode in (0, 1, 5), said
        if process.returncode != 5:
            return killed
    raise AssertionError("never done")


@pytest.mark.sweep
def test_what_a_real_broker_wrote_comes_back_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(Version("4.3.0"), brokers=(1,))
    with Cluster(plan, tmp_path / "cluster") as cluster:
        bootstrap = f"127.0.0.1:{cluster.external[1]}"
        cluster.create_topic("t", {0: [1]}, retention_ms=-1)
        cluster.create_topic("back", {0: [1]}, retention_ms=-1)
        visible, left_open = produce_all(bootstrap)
        assert consumed(bootstrap, "t") == visible
        cluster.terminate(1)
        copied = tmp_path / "evidence" / "broker-1"
        shutil.copytree(cluster.data(1)[0], copied)
        # As its broker would set it aside: nobody's log has the records then.
        (copied / "t-0").rename(copied / f"t-0.{'0' * 32}-delete")
        cluster.start_broker(1)
        cluster.wait_for_leader("back", 0, 1)
        topic_id: Any = cluster.topic_ids["t"]
        out = tmp_path / "out"
        ledger = row(
            1 << 40, first=0, topic_id=topic_id, cluster_id=cluster.cluster_id, leader_epoch=None
        )
        result = recover_rows(tmp_path / "evidence", out, ledger)
        assert result.became["recovered"] == visible.total()
        assert result.became["held_back"] == left_open.total()
        assert result.became["aborted_transaction"] == len(CODECS) * len(RECORDS)
        assert result.became["control_record"] == 2 * len(CODECS)
        # Its topic still has them: looked up, they need not be produced.
        cluster.wait_for_leader("t", 0, 1)
        assert main(["recover", "--out", str(out), "--produce", bootstrap]) == 0
        assert f"Already there, {visible.total()} records" in capsys.readouterr().out
        assert produced_in_the_end(out, bootstrap) >= 1
        assert without_origin(consumed(bootstrap, "back")) == visible


def test_from_a_broken_cluster_to_consumers_that_have_everything_again(tmp_path: Path) -> None:
    """As a user would: evidence of a real loss, `recover`, a new cluster; held to the truth."""
    experiment = SCENARIOS["unclean_election"].run(Version("4.3.0"), tmp_path / "lab")
    tells_the_truth(experiment, "unclean_election__4.3.0", {"unclean_election"})
    truth = experiment.truths["t", 0]
    lost = {one.payload_id for one in truth.losses if one.sure and not one.recovered}
    assert lost
    out = tmp_path / "out"
    assert main(["recover", str(experiment.evidence), "--out", str(out)]) == 0
    keys = lines_of(out / "lost_records_keys.jsonl")
    assert {k["payload_id"] for k in keys} == lost
    with Cluster(Plan(Version("4.3.0"), brokers=(1,)), tmp_path / "new") as cluster:
        bootstrap = f"127.0.0.1:{cluster.external[1]}"
        cluster.create_topic("t", {0: [1]}, retention_ms=-1)
        assert main(["recover", "--out", str(out), "--produce", bootstrap, "--yes"]) == 0
        found = consumed(bootstrap, "t")
    ids = Counter((value or b"").rstrip(b".").decode() for _, value, _, _ in found.elements())
    assert ids == dict.fromkeys(lost, 1)
