"""What jobs/stream.py does: its queries in one application, until all is read or for ever."""

import argparse
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from replication import places
from replication.command_line import (
    INCIDENT_HELP,
    Parser,
    ack_fields,
    incident_name,
    time_zone,
)
from replication.evidence.collecting.envelopes import FieldNames
from replication.places import HadoopPath, Place
from replication.progress import WARNING
from replication.protocol.folding import codec
from replication.reports.inventory_words import counted
from replication.spark import fold_stream, ingest, quarantine, runs, session, settings
from replication.spark.alerting import Alerting, channels_of
from replication.spark.checkpoint_files import written_without_processes
from replication.spark.ending import Stop, last_micro_batch, stopped
from replication.spark.event_files import Admission, SourceError, event_files
from replication.spark.failures import ended_by, of_kafka
from replication.spark.fold_stream import Fold
from replication.spark.ingest import Ingest
from replication.spark.kafka_source import (
    KafkaAwayError,
    KafkaSource,
    Topic,
    look,
    note_id,
    read_to,
)
from replication.spark.live import QUERY as LIVE
from replication.spark.live import Live, ShippedSource
from replication.spark.locks import CheckpointLock
from replication.spark.progress import Progress, sum_of
from replication.spark.settings import Settings
from replication.spark.tables import Store, TablesError, check_counts

FLAGS = (
    "trigger", "max_files_per_trigger", "max_offsets_per_trigger", "fold_max_files_per_trigger",
    "fold_max_bytes_per_trigger",
    "settle_seconds", "poll_seconds", "state_shards", "held_limit", "held_total_limit",
    "write_threads", "starting_offsets", "fail_on_data_loss", "silence_bound",
    "base_after",
)  # fmt: skip
EXIT_OK, EXIT_NOTHING_FITS = 0, 3
LAST_TRIES = 3


def parser() -> argparse.ArgumentParser:
    """The command line of jobs/stream.py."""
    made = Parser(
        prog="stream.py",
        description="Reads events from a folder or a Kafka topic, or with --shipped the brokers' "
        "own log lines as shippers send them, and writes verdicts into Delta tables.",
        epilog="Exit status: 0 done, 2 the call or the input is unusable, 3 all that ever came in "
        "is in quarantine, 4 a defect of this tool, 5 what it depends on failed and may come back "
        "(a full disk, Kafka): start it again. What to do about each: docs/running.md. SIGTERM or "
        "SIGINT ends it between two micro-batches; spark-submit itself then ends with 143 or 130.",
    )
    made.add_argument(
        "--source", required=True, metavar="DIR|kafka",
        help="a folder of JSON Lines (.gz too) or Parquet event files, or the word kafka",
    )  # fmt: skip
    made.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="with --source kafka")
    made.add_argument(
        "--topic", help="with --source kafka: the topic of events as JSON, or of shipped lines"
    )
    made.add_argument(
        "--kafka-options", type=Path, metavar="FILE",
        help="with --source kafka: a properties file of client settings (kafka.security.protocol, "
        "kafka.sasl.jaas.config, ..); ${NAME} in it is taken from the environment",
    )  # fmt: skip
    _add_shipped(made)
    made.add_argument(
        "--tables", required=True, type=places.tables_folder, metavar="DIR", help=places.TABLES_HELP
    )
    made.add_argument(
        "--checkpoint-dir", required=True, type=places.plain_folder, metavar="DIR",
        help="where the stream keeps its state and how far it has read; with --shipped a folder of "
        "the driver's own file system, on a volume that outlasts the machine",
    )  # fmt: skip
    made.add_argument(
        "--new-run", metavar="NAME",
        help="write anew, under this name, what an earlier run has written into the tables: for a "
        "new --checkpoint-dir, or one in which the fold's folder was deleted",
    )  # fmt: skip
    made.add_argument("--incident", metavar="NAME", type=incident_name, help=INCIDENT_HELP)
    made.add_argument(
        "--alert", action="append", default=[], metavar="prometheus=[HOST:]PORT|webhook=URL",
        help="prometheus: serve metrics and /health at that port (of HOST, else of all "
        "addresses). webhook: post each change of an alert there, in the format of "
        "Alertmanager's webhook; ${NAME} is taken from the environment. May be given twice",
    )  # fmt: skip
    settings.add_flags(made, FLAGS)
    return made


def _add_shipped(made: argparse.ArgumentParser) -> None:
    shipped = made.add_argument_group(
        "shipped lines", "the source holds brokers' log lines as shippers send them, no events"
    )
    shipped.add_argument(
        "--shipped", action="store_true",
        help="the source holds raw lines, or the JSON of Fluent Bit, Vector, Filebeat, rsyslog, "
        "Kubernetes (docs/live.md)",
    )  # fmt: skip
    shipped.add_argument(
        "--cluster", action="append", default=[], metavar="NAME[=ID]",
        help="with --shipped: ID is Kafka's id of the cluster that lines call NAME. May be given "
        "for each cluster; given once, it holds for the lines that name no cluster, too",
    )  # fmt: skip
    shipped.add_argument(
        "--only-named-clusters", action="store_true",
        help="with --shipped: take the lines of the clusters alone that --cluster names; all "
        "others go to quarantine. Without it whoever may send lines makes clusters and series",
    )  # fmt: skip
    for part, held in (
        ("line", "holds the line"), ("host", "names the host that printed the line"),
        ("path", "names the file that the line was in"), ("cluster", "names the cluster"),
    ):  # fmt: skip
        shipped.add_argument(
            f"--{part}-field",
            metavar="NAME",
            help=f"with --shipped: the field of a shipper's JSON that {held}, where it is none of "
            "those that docs/live.md lists",
        )
    shipped.add_argument(
        "--ack-fields", metavar="OURS=THEIRS,..|none",
        help="with --shipped: how acknowledgement logs name their fields, as for `diagnose`",
    )  # fmt: skip
    shipped.add_argument(
        "--time-zone", metavar="ZONE",
        help="with --shipped: the time zone in which the brokers' logs print the time",
    )  # fmt: skip
    shipped.add_argument(
        "--kafka", metavar="VERSION",
        help="with --shipped: the Kafka release of brokers whose lines do not tell it",
    )  # fmt: skip


def main(argv: list[str]) -> int:
    """Runs the job; returns the exit status."""
    flags = parser().parse_args(argv)
    progress = Progress()
    chosen = settings.load(vars(flags))
    source = _source(flags)
    channels = channels_of(flags.alert)
    topic = _topic_of(source)
    if topic is not None:
        topic.check_address()
    shared = [flags.tables.absolute(), flags.checkpoint_dir.absolute()]
    spark = session.start("replication-analyzer stream", shared, _folders(source))
    stop = Stop()
    stop.listen(spark)
    try:
        checkpoint_dir = flags.checkpoint_dir.absolute()
        alerting = None
        if flags.alert:
            ids = source.cluster_ids if isinstance(source, ShippedSource) else {}
            names = {cluster_id: name for name, cluster_id in ids.items()}
            alerting = Alerting(channels, checkpoint_dir, progress, names)
        job = StreamJob(
            spark, flags.tables.absolute(), checkpoint_dir, chosen, progress, stop, alerting,
            flags.incident,
        )  # fmt: skip
        job.run(source, flags.new_run)
        return EXIT_NOTHING_FITS if job.nothing_fits else EXIT_OK
    except Exception as error:
        return ended_by(error, "stream.py")  # Before the JVM is let go, which may wait to end.
    finally:
        spark.stop()
        stop.leave()


def _source(flags: argparse.Namespace) -> KafkaSource | Place | ShippedSource:
    where = _where(flags)
    if flags.shipped:
        if isinstance(flags.checkpoint_dir, HadoopPath):
            raise SourceError(
                "--shipped: the lines are joined on the driver, in --checkpoint-dir: give a folder "
                "of its file system that outlasts it"
            )
        return _shipped(flags, where)
    told = (flags.cluster, flags.only_named_clusters, flags.kafka, flags.ack_fields,
            flags.time_zone)  # fmt: skip
    if any(told) or any(_own_fields(flags).values()):
        raise SourceError(
            "--cluster, --only-named-clusters, --kafka, --ack-fields, --time-zone and the fields "
            "of envelopes go with --shipped only"
        )
    return where


def _reading(source: KafkaSource | Place | ShippedSource) -> str:
    """The query that reads the source."""
    return LIVE if isinstance(source, ShippedSource) else ingest.QUERY


def _folders(source: KafkaSource | Place | ShippedSource) -> list[Place]:
    """The folder that is followed, where it is one."""
    where = source.where if isinstance(source, ShippedSource) else source
    return [] if isinstance(where, KafkaSource) else [where]


def _topic_of(source: KafkaSource | Place | ShippedSource) -> KafkaSource | None:
    """The topic that is followed, where it is one."""
    where = source.where if isinstance(source, ShippedSource) else source
    return where if isinstance(where, KafkaSource) else None


def _where(flags: argparse.Namespace) -> KafkaSource | Place:
    kafka = (flags.bootstrap_servers, flags.topic)
    if flags.source == "kafka":
        if not all(kafka):
            raise SourceError("--source kafka needs --bootstrap-servers and --topic")
        return KafkaSource(*kafka, options=kafka_options(flags.kafka_options))
    if any(kafka) or flags.kafka_options:
        raise SourceError(
            "--bootstrap-servers, --topic and --kafka-options go with --source kafka only"
        )
    try:
        folder = places.folder(flags.source).absolute()
    except argparse.ArgumentTypeError as error:
        raise SourceError(f"--source {error}") from None
    if isinstance(folder, Path):
        event_files(folder)
    return folder


def _own_fields(flags: argparse.Namespace) -> dict[str, Any]:
    parts = ("line", "host", "path", "cluster")
    given = {part: getattr(flags, f"{part}_field") for part in parts}
    return {part: (name,) if name else () for part, name in given.items()}


def _shipped(flags: argparse.Namespace, where: KafkaSource | Place) -> ShippedSource:
    ids = dict(each.split("=", 1) for each in flags.cluster if "=" in each)
    clusters = [each.split("=", 1)[0] for each in flags.cluster]
    if flags.only_named_clusters and not clusters:
        raise SourceError("--only-named-clusters: no --cluster names one")
    allowed = frozenset(clusters if flags.only_named_clusters else ())
    try:
        names = FieldNames(
            one_cluster=clusters[0] if len(clusters) == 1 else "",
            ack_fields=ack_fields(flags.ack_fields),
        )
        zone = time_zone(flags.time_zone)
    except ValueError as error:
        raise SourceError(str(error)) from None
    return ShippedSource(
        where, replace(names, **_own_fields(flags)), ids, flags.kafka, zone, allowed
    )


def kafka_options(path: Path | None) -> dict[str, str]:
    """The client settings of a properties file; `${NAME}` is taken from the environment.

    Raises SourceError where the file, a line or a variable is not as it must be; values are never
    told.
    """
    found: dict[str, str] = {}
    if path is None:
        return found
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"--kafka-options {path}: {error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip().startswith("kafka."):
            raise SourceError(f"--kafka-options {path}, line {number}: not kafka.NAME=VALUE")
        try:
            found[name.strip()] = re.sub(
                r"\$\{(\w+)\}", lambda match: os.environ[match[1]], value.strip()
            )
        except KeyError as error:
            raise SourceError(
                f"--kafka-options {path}, line {number}: {error} is not in the environment"
            ) from None
    jaas = found.get("kafka.sasl.jaas.config")
    if jaas is not None and not jaas.endswith(";"):
        raise SourceError(
            f"--kafka-options {path}: kafka.sasl.jaas.config does not end with a semicolon, which "
            "Kafka's client asks for"
        )
    return found


@dataclass
class StreamJob:
    """Both queries over one source, one folder of tables and one checkpoint directory."""

    spark: SparkSession
    tables: Place
    checkpoint_dir: Place
    settings: Settings
    progress: Progress
    stop: Stop
    alerting: Alerting | None = None
    incident: str | None = None
    nothing_fits: bool = False  # All that came in is in quarantine.

    def run(self, source: KafkaSource | Place | ShippedSource, new_run: str | None) -> None:
        """Until all that is there has been folded, or until asked to stop.

        Raises SourceError, TablesError.
        """
        lock = CheckpointLock(self.checkpoint_dir)
        lock.take()
        store = Store(self.spark, self.tables)
        try:
            self._run_locked(store, source, new_run)
            return
        except Exception as error:
            # Spark, too, fails on a table that went away, in words of its own.
            with suppress(OSError):
                store.check_there()
            told = self._of_the_topic(source, error)
            if told is None:
                raise
        finally:
            lock.release()
        raise told

    def _of_the_topic(
        self, source: KafkaSource | Place | ShippedSource, error: Exception
    ) -> Exception | None:
        """What a look at the topic says of a failure of Kafka's; None where that says nothing."""
        topic = _topic_of(source)
        if topic is None or of_kafka(error) is None or isinstance(error, SourceError):
            return None
        try:
            self._looked_at(topic, _reading(source))
        except (SourceError, KafkaAwayError) as found:
            return found
        return None

    def _looked_at(self, topic: KafkaSource, query: str) -> tuple[Topic, list[str]]:
        fails = self.settings.fail_on_data_loss
        folder = self.checkpoint_dir / query
        return look(self.spark, topic, folder, events=query != LIVE, fails=fails)

    def _check_same_source(
        self, query: str, topic: KafkaSource | None, new_run: str | None
    ) -> None:
        """Raises TablesError or SourceError where the checkpoint directory is that of a stream over
        a source of another kind."""
        was_shipped = (self.checkpoint_dir / LIVE / runs.NOTE).is_file()
        begun = (self.checkpoint_dir / ingest.QUERY / runs.NOTE).is_file()
        # Of shipped lines, who starts anew has deleted the folder that tells it.
        was_of_events = begun and not was_shipped and new_run is None
        if was_of_events if query == LIVE else was_shipped:
            kind, what = ("shipped lines", "give") if was_shipped else ("events", "leave out")
            raise TablesError(
                f"{self.checkpoint_dir} is the checkpoint directory of a stream of {kind}: {what} "
                "--shipped, or give another --checkpoint-dir with --new-run NAME"
            )
        read_to(self.checkpoint_dir / query / "spark", topic.topic if topic else None)

    def _run_locked(
        self, store: Store, source: KafkaSource | Place | ShippedSource, new_run: str | None
    ) -> None:
        written_without_processes(self.spark, self.checkpoint_dir)
        store.check_checkpoint(self.checkpoint_dir)
        topic, query = _topic_of(source), _reading(source)
        self._check_same_source(query, topic, new_run)
        found = None if topic is None else self._looked_at(topic, query)
        store.create()
        queries = [*dict.fromkeys((query, ingest.QUERY, fold_stream.QUERY))]
        for each in queries:
            runs.check_known(store, self.checkpoint_dir, each, new_run)
        live = shipped = live_run = None
        if query == LIVE:
            # First: by this run a stream of shipped lines is known as one.
            live_run = runs.enter(store, self.checkpoint_dir, LIVE, new_run, incident=self.incident)
        ingest_run, fold_run = self._enter(store, new_run)
        if isinstance(source, ShippedSource):
            assert live_run is not None
            live = Live(
                self.spark, store, live_run, self.settings, self.progress, source, self.alerting
            )
            live.stop = self.stop
            if not isinstance(source.where, KafkaSource):
                shipped = Admission(source.where, live.notes, self.settings.settle_seconds)
                shipped.admit()
            source = live.events
            source.mkdir(parents=True, exist_ok=True)
        if found is not None:
            note_id(self.checkpoint_dir / query, found[0])
            for text in found[1]:
                self.progress.say(f"note: {text}")
        if self.alerting is not None:
            self.alerting.begin(store, fold_run.name, queries)
            if live is not None:
                live.begin()
            self.alerting.open()
        if live is not None and self.settings.interval_seconds is None:
            self._wait(live.start())
        admission = None
        notes: KafkaSource | str
        if not isinstance(source, KafkaSource):
            source = source.absolute()
            noted = ingest_run.folder / "admitted"
            notes = str(noted)
            admission = Admission(source, noted, self.settings.settle_seconds, self.progress.say)
            admission.admit()
            if live is None and not event_files(source):
                self.progress.say(f"no event files in {source} yet")
        else:
            notes = source
        reading = Ingest(self.spark, store, ingest_run, self.settings, self.progress)
        folding = Fold(self.spark, store, fold_run, ingest_run.name, self.settings, self.progress)
        reading.alerting = folding.alerting = self.alerting
        reading.stop = folding.stop = self.stop
        folding.judge_anew()
        if self.settings.interval_seconds is None:
            self._wait(reading.start(notes))
            # Only now: what an earlier start had noted and not read may have been waiting.
            if reading.has_read_nothing and admission is not None and event_files(admission.source):
                self.progress.say(f"nothing new in {source}")
            self._fold_all(folding)
        else:
            self._follow(reading, folding, notes, [a for a in (shipped, admission) if a], live)
        if self.alerting is not None and not self.alerting.deliver(LAST_TRIES):
            self.progress.say("alerts that nobody could be told of are told at the next start")
        of_live = None if live is None else live.run
        self._finish(store, shipped or admission, ingest_run, fold_run, of_live)
        if live is not None:
            check_counts(store, {LIVE: live.run.name})

    def _enter(self, store: Store, new_run: str | None) -> tuple[runs.Run, runs.Run]:
        reading = runs.enter(
            store, self.checkpoint_dir, ingest.QUERY, new_run, incident=self.incident
        )
        fixed = {"state_shards": self.settings.state_shards, "state_layout": codec.layout()}
        folding = runs.enter(
            store, self.checkpoint_dir, fold_stream.QUERY, new_run, fixed, self.incident
        )
        if new_run is not None and new_run not in (reading.name, folding.name):
            raise TablesError(
                f"--new-run {new_run!r}: {self.checkpoint_dir} goes on with run {folding.name!r}. "
                f"Delete {folding.folder} to fold the stored events anew, and {reading.folder} "
                "to read the source anew too"
            )
        return reading, folding

    def _fold_all(self, folding: Fold) -> None:
        refolds = -1
        while refolds != folding.refolds and not self.stop.asked:
            # What was folded again comes back through a table that the query reads: once more then.
            refolds = folding.refolds
            self._wait(folding.start())

    def _wait(self, query: StreamingQuery) -> None:
        while query.isActive:
            if self.stop.asked:
                break
            self._turned()
            query.awaitTermination(1)
        self._end(query)

    def _turned(self) -> None:
        """Tells probes that this loop goes on."""
        if self.alerting is not None:
            self.alerting.metrics.turn()

    def _follow(
        self,
        reading: Ingest,
        folding: Fold,
        source: KafkaSource | str,
        admissions: Sequence[Admission],
        live: Live | None,
    ) -> None:
        queries = [] if live is None else [live.start()]
        queries += [reading.start(source), folding.start()]
        self.progress.say(f"following; stop with SIGTERM or Ctrl-C (process {os.getpid()})")
        while not self.stop.asked and all(query.isActive for query in queries):
            time.sleep(self.settings.poll_seconds)
            self._turned()
            for admission in admissions:
                admission.admit()
            if self.alerting is not None:
                self.alerting.deliver()
        for query in queries:
            self._end(query)

    def _end(self, query: StreamingQuery) -> None:
        """Ends a query between two micro-batches if it can; raises what it failed with."""
        waited_for = last_micro_batch(query, self.stop)
        if query.isActive:
            self.stop.stopping(query.name)
            has_stopped = stopped(self.spark, query)
            if waited_for or not has_stopped:
                why = "its source had not answered" if waited_for else "it was still busy"
                self.progress.say(
                    f"{query.name}: {why} ({waited_for or query.status['message']}), and was "
                    "ended without waiting longer; the next start goes on from the last whole "
                    "micro-batch",
                    level=WARNING,
                )
        failure = query.exception()
        if failure is not None:
            raise failure

    def _finish(
        self, store: Store, admission: Admission | None, reading: runs.Run, folding: runs.Run,
        live: runs.Run | None,
    ) -> None:  # fmt: skip
        if admission is not None:
            for text in admission.waiting():
                self.progress.say(f"left for later, as it may still grow: {text}")
        sums = sums_of(store, reading, folding)
        for line in totals(sums):
            self.progress.say(line)
        check_counts(store, {ingest.QUERY: reading.name, fold_stream.QUERY: folding.name})
        self.progress.say(f"tables: {self.tables}")
        self._say_what_is_left_out(store, sums, reading, folding)
        if live is not None:
            self._say_what_is_left_out(store, store.sums(live.name, live.query), live)

    def _say_what_is_left_out(self, store: Store, sums: Mapping[str, int], *of: runs.Run) -> None:
        left_out = quarantine.told_at_the_end(store, {run.query: run.name for run in of}, sums)
        self.nothing_fits |= quarantine.is_all(sums)
        if left_out:
            self.progress.say(left_out)


def sums_of(store: Store, reading: runs.Run, folding: runs.Run) -> dict[str, int]:
    """The sums of both runs, from `_batches`."""
    sums = {q: store.sums(run, q) for q, run in (("ingest", reading.name), ("fold", folding.name))}
    both = {**sums["fold"], "rows_in": sums["ingest"]["rows_in"]}
    both["quarantined"] += sums["ingest"]["quarantined"]
    return both


def totals(both: Mapping[str, int]) -> list[str]:
    """How the sums of both runs add up."""
    lines = [sum_of(both)]
    classes = ("applied", "duplicates", "superseded", "quarantined", "held")
    left = both["rows_in"] - sum(both[name] for name in classes)
    if left:
        lines.append(f"{counted(left, 'row')} ingested, still to be folded")
    return lines
