"""The stream over a Kafka topic: a real broker of Kafka 4.3.0, records of every sort."""

import io
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.process_tree import descendants
from replication.paths import project_root
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.spark import settings
from replication.spark.demo import JAVA_OPTIONS, PROPERTIES
from replication.spark.ending import Stop
from replication.spark.event_files import SourceError
from replication.spark.failures import ended_by
from replication.spark.kafka_source import KafkaAwayError, KafkaSource
from replication.spark.live import ShippedSource
from replication.spark.maintain import Kept
from replication.spark.progress import Progress
from replication.spark.stream import StreamJob
from replication.spark.tables import TablesError
from tests.evidence.shipping.test_spool import sent_of
from tests.kafka_lab.processes import wait_for
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import rows, run_stream
from tests.spark.kafka_broker import (
    Broker,
    delete_messages,
    delete_topic,
    login,
    make_topic,
    send,
    started_broker,
)
from tests.spark.test_maintain import leave_verdicts, maintain
from tests.spark.test_stream import ANSWERED, laptop, same_rows

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with started_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


def stream(
    spark: SparkSession, folder: Path, broker: Broker, topic: str,
    source: KafkaSource | ShippedSource | None = None, **flags: str,
) -> str:  # fmt: skip
    chosen = {"max_offsets_per_trigger": "40", **flags}
    source = source or KafkaSource(broker.address, topic)
    return run_stream(spark, folder, source=source, **chosen)


def test_records_of_a_topic_fold_as_the_same_lines_of_a_file(
    spark: SparkSession, folder: Path, broker: Broker
) -> None:
    """Two partitions, so that events come out of order; junk and a null value between."""
    events: list[Event] = made_trace(0)
    values: list[bytes | None] = [wire.to_json(event).encode() for event in events]
    values[10:10] = [b"\x00\xff junk", None]
    make_topic(broker, "events")
    send(broker, "events", values[:25])
    stream(spark, folder, broker, "events")
    send(broker, "events", values[25:])
    said = stream(spark, folder, broker, "events")
    for table in ANSWERED:
        same_rows(rows(spark, folder / "tables", table), laptop(events, table))
    assert (
        f"in all: {len(values)} rows = {len(events)} applied + 0 duplicates + 2 quarantined + "
        "0 held" in said
    )
    found = rows(spark, folder / "tables", "quarantine")
    assert {(r["origin"], r["origin_offset"]) for r in found} == {
        ("kafka:events-0", 5),
        ("kafka:events-1", 5),
    }
    assert all(r["reason"] for r in found)


def submitted(folder: Path, address: str, topic: str, *more: str) -> list[str]:
    """jobs/stream.py over a topic, by spark-submit."""
    return [
        str(Path(sys.executable).with_name("spark-submit")), "--properties-file", PROPERTIES,
        "--conf", JAVA_OPTIONS, "jobs/stream.py", "--source", "kafka", "--topic", topic,
        "--bootstrap-servers", address, "--tables", str(folder / "tables"),
        "--checkpoint-dir", str(folder / "checkpoint"), *more,
    ]  # fmt: skip


def command_lines(root: int) -> set[bytes]:
    """Those of a process and of all below it."""
    found = set()
    for pid in descendants(root) | {root}:
        try:
            found.add(Path(f"/proc/{pid}/cmdline").read_bytes())
        except OSError:
            continue
    return found


def test_a_secured_topic_is_read_and_its_password_is_nowhere_to_be_seen(
    spark: SparkSession, folder: Path, broker: Broker
) -> None:
    """By spark-submit, the password from the environment: it is in no command line, no line that
    the job prints and no file that it leaves."""
    events: list[Event] = made_trace(0)
    make_topic(broker, "secured")
    send(broker, "secured", [wire.to_json(event).encode() for event in events])
    options = folder / "client.properties"
    options.write_text(
        "kafka.security.protocol=SASL_PLAINTEXT\nkafka.sasl.mechanism=PLAIN\n"
        f"kafka.sasl.jaas.config={login('${BROKER_PASSWORD}')}\n"
    )
    command = submitted(folder, broker.secured, "secured", "--kafka-options", str(options))
    secret = broker.password
    seen = set[bytes]()
    with (folder / "said.txt").open("wb") as said:
        job = subprocess.Popen(
            command, cwd=project_root(), stdout=said, stderr=said,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "BROKER_PASSWORD": secret},
        )  # fmt: skip
        while job.poll() is None:
            seen |= command_lines(job.pid)
            time.sleep(0.1)
    text = (folder / "said.txt").read_text()
    assert job.returncode == 0, text
    for table in ANSWERED:
        same_rows(rows(spark, folder / "tables", table), laptop(events, table))
    assert any(b"--kafka-options" in line for line in seen)
    assert any(b"pyspark.daemon" in line for line in seen)
    assert not [line for line in seen if secret.encode() in line]
    left = (path for path in folder.rglob("*") if path.is_file())
    assert not [path for path in left if secret.encode() in path.read_bytes()]


EVENTS: list[bytes | None] = [wire.to_json(event).encode() for event in made_trace(0)]
LINES: list[bytes | None] = [*sent_of("unclean_election__2.8.2")[:60]]


def refused(kind: type[Exception], words: str, call: Callable[[], object], status: int) -> None:
    with pytest.raises(kind) as found:
        call()
    assert words in str(found.value), found.value
    assert ended_by(found.value, "stream.py") == status


@pytest.mark.parametrize("shipped", [False, True])
def test_a_stream_over_a_topic_is_maintained_and_no_other_source_takes_its_checkpoint(
    spark: SparkSession, folder: Path, broker: Broker, shipped: bool
) -> None:
    topic = f"maintained-{shipped}"
    make_topic(broker, topic)
    send(broker, topic, [*LINES, b"junk", b"{}"] if shipped else EVENTS)
    of_events = KafkaSource(broker.address, topic)
    of_lines = ShippedSource(of_events)
    own, other = (of_lines, of_events) if shipped else (of_events, of_lines)
    said = stream(spark, folder, broker, topic, own)
    if shipped:
        assert "1 quarantined (see table quarantine; 1 row: " in said
    for source, words in (
        (other, "is the checkpoint directory of a stream of " + ("shipped" if shipped else "ev")),
        (folder / "in", "shipped lines" if shipped else f"has read topic {topic}"),
        (ShippedSource(folder / "in"), f"has read topic {topic}" if shipped else "of events"),
    ):
        kind = SourceError if "has read" in words else TablesError
        refused(kind, words, lambda source=source: run_stream(spark, folder, source=source), 2)  # type: ignore[misc]
    leave_verdicts(folder / "tables")
    jvm: Any = spark.sparkContext._jvm
    console = jvm.java.io.ByteArrayOutputStream()
    scala_console = getattr(getattr(jvm.scala, "Console$"), "MODULE$")
    scala_console.setOutDirect(jvm.java.io.PrintStream(console))
    maintained = maintain(spark, folder, Kept(0.0, 1.0, 1.0))
    assert console.toString() == ""
    reads = "live" if shipped else "ingest"
    assert f"{reads}: no notes to join, since it reads no files" in maintained
    assert "no events are deleted: no micro-batch of the ingest is older" in maintained
    assert "_batches: no two rows are old enough" in maintained


def test_a_topic_that_is_not_there_is_named_before_anything_is_written(
    spark: SparkSession, folder: Path, broker: Broker
) -> None:
    words = f"topic nix does not exist at {broker.address}: create it, or correct --topic"
    refused(SourceError, words, lambda: stream(spark, folder, broker, "nix"), 2)
    assert not (folder / "tables").exists()


@pytest.mark.parametrize(
    ("secured", "given", "kind", "words"),
    [
        (False, "x", SourceError, "IllegalSaslStateException"),
        (True, "x", SourceError, "SaslAuthenticationException"),
        (True, None, KafkaAwayError, "does not answer as a broker does"),
    ],
)
def test_a_login_that_brokers_refuse_is_told_from_brokers_that_do_not_answer(
    spark: SparkSession, folder: Path, broker: Broker, secured: bool, given: str | None,
    kind: type[Exception], words: str,
) -> None:  # fmt: skip
    options = {
        "kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": login(given or ""),
    } if given else {}  # fmt: skip
    source = KafkaSource(broker.secured if secured else broker.address, "any", options)
    status = 2 if kind is SourceError else 5
    refused(kind, words, lambda: stream(spark, folder, broker, "any", source), status)
    refused(kind, "--kafka-options", lambda: stream(spark, folder, broker, "any", source), status)


@pytest.mark.parametrize("shipped", [False, True])
def test_unread_messages_that_a_topic_no_longer_has_end_the_stream_or_are_told_of(
    spark: SparkSession, folder: Path, broker: Broker, shipped: bool
) -> None:
    """With --fail-on-data-loss false they are in quarantine, and every count adds up."""
    topic, values = f"gone-{shipped}", LINES if shipped else EVENTS
    make_topic(broker, topic)
    send(broker, topic, values[:20])
    of_events = KafkaSource(broker.address, topic)
    source = ShippedSource(of_events) if shipped else of_events
    stream(spark, folder, broker, topic, source)
    send(broker, topic, values[20:40])
    delete_messages(broker, topic, {0: 13, 1: 15})
    words = (
        f"topic {topic} at {broker.address} no longer holds 8 messages that this stream has not "
        "read (offsets 10 to 12 of partition 0; offsets 10 to 14 of partition 1)"
    )
    refused(SourceError, words, lambda: stream(spark, folder, broker, topic, source), 2)
    refused(
        SourceError,
        "--fail-on-data-loss false",
        lambda: stream(spark, folder, broker, topic, source),
        2,
    )
    said = stream(spark, folder, broker, topic, source, fail_on_data_loss="false")
    assert f"note: {words}" in said
    assert ("HOLDS no longer means" if shipped else "stays UNKNOWN") in said
    found = rows(spark, folder / "tables", "quarantine")
    assert [(r["reason_code"], r["origin"], r["rows"]) for r in found] == [
        ("messages_gone", f"kafka:{topic}-0", 3), ("messages_gone", f"kafka:{topic}-1", 5),
    ]  # fmt: skip
    if not shipped:
        answers = rows(spark, folder / "tables", "verdicts")
        assert {(r["verdict"], r["reason"].partition(":")[0]) for r in answers} == {
            ("UNKNOWN", "trace_gap")
        }
    send(broker, topic, values[40:42])
    assert "note: topic" not in stream(spark, folder, broker, topic, source)


def test_a_topic_that_was_made_again_is_not_taken_for_the_one_that_was_read(
    spark: SparkSession, folder: Path, broker: Broker
) -> None:
    """Also where it holds more than was read: what lies below those offsets would be left out."""
    make_topic(broker, "again")
    send(broker, "again", EVENTS[:4])
    stream(spark, folder, broker, "again")
    for count in (2, 40):
        delete_topic(broker, "again")
        make_topic(broker, "again")
        send(broker, "again", EVENTS[:count])
        words = (
            f"topic again at {broker.address} was deleted and made again since this stream has "
            "read it (partition 0 to offset 2, partition 1 to offset 2)"
        )
        refused(SourceError, words, lambda: stream(spark, folder, broker, "again"), 2)


def test_a_stream_whose_kafka_does_not_answer_ends_soon_and_says_so(
    spark: SparkSession, folder: Path, broker: Broker
) -> None:
    """Kafka's client goes on asking, three times for so long."""
    make_topic(broker, "still")
    patience = dict.fromkeys(("kafka.request.timeout.ms", "kafka.default.api.timeout.ms"), "20000")
    stop, said = Stop(), io.StringIO()
    chosen = settings.load({"trigger": "1 second"})
    job = StreamJob(spark, folder / "tables", folder / "checkpoint", chosen, Progress(said), stop)
    asked: list[float] = []

    def ask() -> None:
        while "ingest micro-batch 0" not in said.getvalue():
            time.sleep(0.2)
        broker.process.freeze()
        seen = 0
        while seen < 10:
            messages = [query.status["message"] for query in spark.streams.active]
            seen = seen + 1 if any("Getting offsets" in each for each in messages) else 0
            time.sleep(0.2)
        asked.append(time.monotonic())
        stop.asked = True

    threading.Thread(target=ask, daemon=True).start()
    try:
        job.run(KafkaSource(broker.address, "still", patience), None)
    finally:
        broker.process.resume()
    assert time.monotonic() - asked[0] < 25
    assert "ingest: its source had not answered (Getting offsets from Kafka" in said.getvalue()
    assert "the next start goes on from the last whole micro-batch" in said.getvalue()
    for query in spark.streams.active:
        query.awaitTermination(30)
    assert spark.streams.active == []


def deleted(job: "subprocess.Popen[bytes]", broker: Broker, folder: Path) -> None:
    delete_topic(broker, folder.name)


def killed(job: "subprocess.Popen[bytes]", broker: Broker, folder: Path) -> None:
    broker.process.kill()


def asked_to_end(job: "subprocess.Popen[bytes]", broker: Broker, folder: Path) -> None:
    job.terminate()


def filled(job: "subprocess.Popen[bytes]", broker: Broker, folder: Path) -> None:
    with suppress(OSError), (folder / "fills").open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
    send(broker, folder.name, EVENTS[30:])


def taken_away(job: "subprocess.Popen[bytes]", broker: Broker, folder: Path) -> None:
    (folder / "tables").rename(folder / "elsewhere")
    send(broker, folder.name, EVENTS[30:])


@pytest.mark.parametrize(
    ("happens", "status", "words"),
    [
        (deleted, 2, "stream.py: topic .* does not exist any more at .*: it was deleted"),
        (asked_to_end, 143, "tables: "),
        pytest.param(killed, 5, "stream.py: no broker accepts a connection .*--bootstrap-servers",
                     marks=pytest.mark.sweep),
        pytest.param(filled, 5, "stream.py: .*No space left on device.*; free: ",
                     marks=pytest.mark.sweep),
        pytest.param(taken_away, 2, "stream.py: .*/tables.*gone", marks=pytest.mark.sweep),
    ],
)  # fmt: skip
def test_the_last_line_on_stderr_is_the_job_s_own_however_it_ends(
    broker: Broker, tmp_path: Path, happens: Callable[..., None], status: int, words: str
) -> None:
    """Of a query that failed, and of all that is stopped then, Spark logs on a hundred lines."""
    folder = tmp_path / f"end-{happens.__name__}"
    folder.mkdir()
    mounted = happens is filled
    if mounted:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], check=True)
    make_topic(broker, folder.name)
    send(broker, folder.name, EVENTS[:30])
    impatient = tmp_path / "impatient.properties"
    impatient.write_text("kafka.request.timeout.ms=5000\nkafka.default.api.timeout.ms=5000\n")
    more = ["--kafka-options", str(impatient), "--trigger", "1 second"]
    said = tmp_path / "said.txt"
    try:
        with said.open("wb") as stderr:
            job = subprocess.Popen(
                submitted(folder, broker.address, folder.name, *more), cwd=project_root(),
                stderr=stderr, env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            )  # fmt: skip
            begun = re.compile("^fold micro-batch 0", re.MULTILINE)
            wait_for(
                "a micro-batch", lambda: job.poll() or begun.search(said.read_text()) is not None,
                300,
            )  # fmt: skip
            happens(job, broker, folder)
            assert job.wait(300) == status
        assert re.match(words, said.read_text().splitlines()[-1]), said.read_text()[-3000:]
    finally:
        if happens is killed:
            broker.restart()
        if mounted:
            subprocess.run(["umount", folder], check=True)
