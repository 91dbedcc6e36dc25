"""A topic that a stream follows: whether its brokers answer and let this job in, whether the topic
is there, and whether it still holds what the stream has not read.

Spark's Kafka source finds all this out later, after minutes of Kafka's own patience, and names
neither address nor topic. So the job looks before its queries start, and once more when one of
them has failed, to say what happened.
"""

import json
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from replication.places import Place, rename
from replication.reports.inventory_words import counted
from replication.spark.event_files import REFUSED, Slice, SourceError
from replication.spark.failures import EXIT_UNUSABLE, first_cause, of_kafka
from replication.spark.runs import Run
from replication.spark.settings import Settings

# So long an address may take to accept a connection, and the brokers to answer what they are asked.
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 15
ADDRESS = re.compile(r"(?:[A-Za-z_]+://)?\[?([0-9A-Za-z\-._:%]+?)\]?:(\d{1,5})")
# Of a broker that knows no ids of topics.
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
NOTE = "topic.json"
# In the place of a topic's name, which has no sign like it.
FILES = "/"
# The reason code of messages that a topic no longer held when they were to be read.
MESSAGES_GONE = "messages_gone"


class KafkaAwayError(RuntimeError):
    """No broker answers, and one may again; the text says which were asked, and what to do."""


@dataclass(frozen=True)
class KafkaSource:
    """A topic. options: Kafka's client settings (`kafka.*`), security among them; never printed."""

    bootstrap_servers: str
    topic: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def check_address(self) -> None:
        """Raises SourceError where an address is none, KafkaAwayError where none is reached."""
        why: dict[str, str] = {}
        for address in self.bootstrap_servers.split(","):
            found = ADDRESS.fullmatch(address.strip())
            if found is None or not 0 < int(found[2]) < 65_536:
                raise SourceError(
                    f"--bootstrap-servers {self.bootstrap_servers}: {address.strip() or 'nothing'} "
                    "is not HOST:PORT"
                )
            try:
                with socket.create_connection((found[1], int(found[2])), CONNECT_SECONDS):
                    return
            except (OSError, UnicodeError) as error:
                why[address.strip()] = getattr(error, "strerror", None) or str(error)
        told = ", ".join(f"{address}: {words}" for address, words in why.items())
        raise KafkaAwayError(
            f"no broker accepts a connection ({told}): see to it that Kafka runs there and that "
            "--bootstrap-servers names it; start it again when that is mended"
        )


@dataclass(frozen=True)
class Topic:
    """What the brokers say of a topic. first, end: by partition, the first offset that it holds,
    and the one behind its last."""

    id: str
    first: Mapping[int, int]
    end: Mapping[int, int]


@dataclass(frozen=True)
class Gone:
    """Messages of a partition that were never read and that its topic no longer holds."""

    partition: int
    first_offset: int
    end_offset: int

    def __str__(self) -> str:
        return f"offsets {self.first_offset} to {self.end_offset - 1} of partition {self.partition}"


def asked(spark: SparkSession, source: KafkaSource, *, was_there: bool) -> Topic:
    """Asks the brokers. was_there: the stream has read the topic before. Raises SourceError,
    KafkaAwayError."""
    source.check_address()
    jvm: Any = spark.sparkContext._jvm
    settings = jvm.java.util.Properties()
    patience = str(ANSWER_SECONDS * 1000)
    given = {name.removeprefix("kafka."): value for name, value in source.options.items()}
    given["bootstrap.servers"] = source.bootstrap_servers
    given |= {"request.timeout.ms": patience, "default.api.timeout.ms": patience}
    for name, value in given.items():
        settings.setProperty(name, value)
    # What Kafka's client logs of a refusal is told below, once.
    configurator = jvm.org.apache.logging.log4j.core.config.Configurator
    levels = jvm.org.apache.logging.log4j.Level
    loggers = jvm.org.apache.logging.log4j.LogManager
    before = loggers.getLogger("org.apache.kafka").getLevel()
    configurator.setLevel("org.apache.kafka", levels.OFF)
    admin = None
    try:
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        return _described(jvm, admin, source.topic)
    except Py4JJavaError as error:
        refusal = _refusal(source, error, made=admin is not None, was_there=was_there)
    finally:
        if admin is not None:
            admin.close(jvm.java.time.Duration.ZERO)
        configurator.setLevel("org.apache.kafka", before)
    raise refusal


def _described(jvm: Any, admin: Any, name: str) -> Topic:
    names = jvm.java.util.ArrayList()
    names.add(name)
    described = admin.describeTopics(names).allTopicNames().get().get(name)
    partitions = [each.partition() for each in described.partitions()]
    found = []
    specs = jvm.org.apache.kafka.clients.admin.OffsetSpec
    for spec in (specs.earliest(), specs.latest()):
        wanted = jvm.java.util.HashMap()
        for number in partitions:
            wanted.put(jvm.org.apache.kafka.common.TopicPartition(name, number), spec)
        offsets = admin.listOffsets(wanted).all().get()
        found.append({each.partition(): offsets[each].offset() for each in offsets})
    return Topic(described.topicId().toString(), *found)


def _refusal(
    source: KafkaSource, error: Py4JJavaError, *, made: bool, was_there: bool
) -> Exception:
    """What is to be raised for what Kafka's client raised. made: there was a client already."""
    cause = first_cause(error)
    kind = of_kafka(error)
    if not made:
        return SourceError(f"{cause}: a setting of --kafka-options that Kafka's client refuses")
    if kind is not None and kind.topic_is_missing:
        where = f"at {source.bootstrap_servers}"
        if was_there:
            return SourceError(
                f"topic {source.topic} does not exist any more {where}: it was deleted, and what "
                "was not read of it is gone. The answers up to there stay. A topic of that name "
                "that is made again is read with an empty --checkpoint-dir and --new-run NAME"
            )
        return SourceError(
            f"topic {source.topic} does not exist {where}: create it, or correct --topic"
        )
    if kind is not None and kind.status == EXIT_UNUSABLE:
        return SourceError(f"--bootstrap-servers {source.bootstrap_servers}: {cause}: {kind.words}")
    return KafkaAwayError(
        f"--bootstrap-servers {source.bootstrap_servers}: accepts connections and does not answer "
        f"as a broker does ({cause}): it may be starting; or the addresses that it advertises are "
        "not reached from here; or its listener wants another kafka.security.protocol than "
        "--kafka-options has. "
        "Start it again when that is mended"
    )


def unread(topic: Topic, first_unread: Mapping[int, int]) -> list[Gone]:
    """What the topic no longer holds of what is still to be read, by partition."""
    return [
        Gone(number, offset, topic.first[number])
        for number, offset in sorted(first_unread.items())
        if topic.first.get(number, -1) > offset
    ]


def gone_in(
    spark: SparkSession, source: object, settings: Settings, run: Run, micro_batch_id: int
) -> list[Slice]:
    """Of the messages that a micro-batch is about to read, those that the topic no longer holds, as
    what is refused. Only where the stream goes on without them: else Spark ends it."""
    if not isinstance(source, KafkaSource) or settings.fail_on_data_loss:
        return []
    location = run.folder / "spark"
    first = _offsets(location, micro_batch_id - 1).get(source.topic, {})
    end = _offsets(location, micro_batch_id).get(source.topic, {})
    found = []
    for gone in unread(asked(spark, source, was_there=True), first):
        until = min(gone.end_offset, end.get(gone.partition, gone.end_offset))
        if until > gone.first_offset:
            told = replace(gone, end_offset=until)
            reason = f"{told}: the topic no longer held these messages when they were to be read"
            origin = f"kafka:{source.topic}-{gone.partition}"
            rows = until - gone.first_offset
            found.append(Slice(origin, REFUSED, 0, 0, MESSAGES_GONE, reason, rows))
    return found


def read_to(location: Place, topic: str | None) -> dict[int, int]:
    """By partition, the first offset that finished micro-batches of a checkpoint location have not
    read; {} where there are none yet. topic: None where files are to be read. Raises SourceError
    where they read another source.
    """
    done = [int(p.name) for p in (location / "commits").glob("[0-9]*") if p.name.isdigit()]
    offsets = _offsets(location, max(done, default=-1))
    wanted = topic or FILES
    read = next((name for name in offsets if name != wanted), None)
    if read is not None:
        asked_for = f"--topic {topic}" if topic else "--source"
        was = "files of a folder" if read == FILES else f"topic {read}"
        raise SourceError(
            f"{asked_for}: {location.parent} has read {was}: go on with that, or give another "
            "--checkpoint-dir with --new-run NAME"
        )
    return offsets.get(wanted, {})


def _offsets(location: Place, micro_batch_id: int) -> dict[str, dict[int, int]]:
    """By topic and partition, the offset behind the last one of a micro-batch, as Spark has written
    it; -1: at which the first micro-batch begins. {} where it has written none; of files FILES has
    taken the place of a topic."""
    path = location / "offsets" / str(micro_batch_id)
    if micro_batch_id < 0:
        path = location / "sources" / "0" / "0"
    lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
    if not lines or not lines[-1].startswith("{"):
        return {}
    try:
        told = json.loads(lines[-1])
    except ValueError:
        return {}  # Cut: what looks at the whole checkpoint names the file.
    if isinstance(told.get("logOffset"), int) or isinstance(told.get("path"), str):
        return {FILES: {}}
    if not all(isinstance(offsets, dict) for offsets in told.values()):
        return {}
    return {
        topic: {int(number): offset for number, offset in offsets.items()}
        for topic, offsets in told.items()
    }


def noted_id(folder: Place) -> str | None:
    """The id of the topic that a run has read, None where none is noted."""
    with suppress(FileNotFoundError, ValueError):
        return dict(json.loads((folder / NOTE).read_text("utf-8"))).get("id")
    return None


def note_id(folder: Place, topic: Topic) -> None:
    """Notes the id of the topic that a run reads from now on."""
    partial = folder / f"{NOTE}.partial"
    partial.write_text(json.dumps({"id": topic.id}), encoding="utf-8")
    rename(partial, folder / NOTE)


def look(
    spark: SparkSession, source: KafkaSource, folder: Place, *, events: bool, fails: bool
) -> tuple[Topic, list[str]]:
    """Looks whether a stream can go on over a topic; what there is to note where messages of it are
    missing. folder: of the run that reads it. events: whether it holds events, else shipped lines.
    fails: whether missing messages end the job. Raises SourceError, KafkaAwayError.
    """
    first_unread = read_to(folder / "spark", source.topic)
    topic = asked(spark, source, was_there=bool(first_unread))
    told = _missing(topic, first_unread, source, noted_id(folder))
    if not told:
        return topic, []
    then = OF_EVENTS if events else OF_LINES
    if fails:
        raise SourceError(
            f"{told}. To go on without them: --fail-on-data-loss false. {then}. To read all that "
            "the topic holds into new answers: an empty --checkpoint-dir and --new-run NAME"
        )
    return topic, [f"{told}. {then}"]


def _missing(
    topic: Topic, first_unread: Mapping[int, int], source: KafkaSource, known: str | None
) -> str:
    where = f"topic {source.topic} at {source.bootstrap_servers}"
    read = ", ".join(f"partition {n} to offset {o}" for n, o in sorted(first_unread.items()))
    if first_unread and known not in (None, NO_ID, topic.id):
        return (
            f"{where} was deleted and made again since this stream has read it ({read}): what was "
            "not read of the old one is gone, and of the new one nothing is read below these "
            "offsets"
        )
    if any(topic.end.get(number, 0) < offset for number, offset in first_unread.items()):
        return (
            f"{where} ends before the place to which this stream has read it ({read}): an unclean "
            "leader election cut it, or it was made again. Nothing is read below these offsets"
        )
    gone = unread(topic, first_unread)
    if not gone:
        return ""
    messages = sum(each.end_offset - each.first_offset for each in gone)
    return (
        f"{where} no longer holds "
        f"{counted(messages, 'message')} that this stream has not read "
        f"({'; '.join(map(str, gone))}): retention or somebody deleted them"
    )


OF_EVENTS = (
    "Events are missing then: a partition whose trace has a gap stays UNKNOWN, and of a trace that "
    "is missing wholly, or at its end, no verdict tells"
)
OF_LINES = (
    "Lines are missing then, of which no verdict knows: HOLDS no longer means that nothing was lost"
)
