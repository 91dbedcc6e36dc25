"""The query before the other two where brokers' own log lines come in, as shippers send them.

Each micro-batch is joined by `evidence/shipping` with all that was shipped before; the events of
partitions that changed are written into a folder of event files, which the stream then follows
like any other. What is no line goes to `quarantine`; rows in = applied + duplicates + quarantined,
in lines, where duplicates are lines that one micro-batch brought twice.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from replication.evidence.collecting.envelopes import (
    KNOWN_FIELDS,
    FieldNames,
    NotALine,
    ShippedLine,
    shipped_lines,
)
from replication.evidence.shipping.live_join import Joined, LiveJoin
from replication.evidence.shipping.silence import CLOCKS, Heard, ahead_of
from replication.places import Place, place
from replication.reports.inventory_words import counted
from replication.spark import quarantine
from replication.spark.alerting import Alerting
from replication.spark.ending import Stop
from replication.spark.event_files import REFUSED, Slice, lines_of, still_readable
from replication.spark.ingest import begun, followed, query_id
from replication.spark.kafka_source import KafkaSource, gone_in
from replication.spark.progress import Progress, quarantined
from replication.spark.refused_rows import Entries, raw_text
from replication.spark.runs import Run
from replication.spark.settings import Settings
from replication.spark.tables import Store

QUERY = "live"


@dataclass(frozen=True)
class ShippedSource:
    """Log lines in a topic or in the files of a growing folder.

    names: fields of a fleet's own envelopes. cluster_ids: Kafka's cluster id by a cluster's name.
    kafka_version: of brokers that do not print theirs. zone: of the time that their logs print.
    allowed: the names of the only clusters whose lines are taken; empty: of any.
    """

    where: KafkaSource | Place
    names: FieldNames = KNOWN_FIELDS
    cluster_ids: Mapping[str, str] = field(default_factory=dict)
    kafka_version: str | None = None
    zone: tzinfo | None = None
    allowed: frozenset[str] = frozenset()

    def refusal(self, line: ShippedLine) -> str | None:
        """Why a line is not taken, as far as its cluster decides that; None where it is taken."""
        if not self.allowed or line.cluster in self.allowed:
            return None
        said = f"names the cluster {line.cluster!r}" if line.cluster else "names no cluster"
        return (
            f"the line {said}, and --only-named-clusters takes those of "
            f"{', '.join(sorted(self.allowed))} alone: if it is to be taken, name it by --cluster"
        )


@dataclass(frozen=True)
class _Sent:
    """One message of a topic or line of a file, and where it was."""

    value: bytes
    origin: str
    line: int | None
    offset: int | None
    host: str = ""
    path: str = ""


@dataclass
class Live:
    """The query of one run. said: what the newest micro-batch had to note."""

    spark: SparkSession
    store: Store
    run: Run
    settings: Settings
    progress: Progress
    source: ShippedSource
    alerting: Alerting | None = None
    stop: Stop = field(default_factory=Stop)
    said: set[str] = field(default_factory=set)

    @cached_property
    def joining(self) -> LiveJoin:
        """Kept, since it remembers what it has read."""
        folder, events = Path(str(self.run.folder)), Path(str(self.events))
        bounds = self.settings.silence_bound, self.settings.base_after
        names = self.source.names.ack_fields
        ids, zone = self.source.cluster_ids, self.source.zone
        return LiveJoin(folder, events, ids, *bounds, ack_fields=names, zone=zone)

    @property
    def events(self) -> Place:
        """The folder of event files that the stream follows."""
        return self.run.folder / "events"

    @property
    def notes(self) -> Place:
        """The folder of the admitted slices' notes, where lines come in files."""
        return self.run.folder / "admitted"

    def start(self) -> StreamingQuery:
        """Starts the query."""
        topic = self.source.where
        source = topic if isinstance(topic, KafkaSource) else str(self.notes)
        return begun(followed(self.spark, source, self.settings), QUERY, self)

    def take(self, frame: DataFrame, micro_batch_id: int) -> None:
        """Joins one micro-batch; its refusals and its row of `_batches` are written last."""
        started = time.monotonic()
        self.store.check_there()
        session = frame.sparkSession
        writer = self.run.writer(query_id(session))
        refused, why = Entries(), Counter[str]()
        gone = gone_in(self.spark, self.source.where, self.settings, self.run, micro_batch_id)
        for part in gone:
            refused.add((part.reason_code, part.reason, None, part.rows, part.path, None, None))
            why[part.reason] += part.rows
        joined = self.joining.step(
            micro_batch_id, self._lines(frame, refused), self.source.kafka_version
        )
        entries = refused.told()
        if entries:
            rows = quarantine.entries_frame(session, entries)
            told = quarantine.told(rows, writer, micro_batch_id)
            self.store.append(quarantine.TABLE, told, writer, micro_batch_id)
        taken = joined.taken
        why.update(line.reason for line in taken.refused)
        missing = sum(part.rows for part in gone)
        figures = {
            "rows_in": taken.rows + missing,
            "applied": taken.kept,
            "duplicates": taken.repeated,
            "quarantined": len(taken.refused) + missing,
            "rows/quarantine": len(entries),
            "milliseconds": int((time.monotonic() - started) * 1000),
        }
        self.store.finish(writer, micro_batch_id, figures)
        self._tell(joined.heard, joined.silent)
        if self.alerting is not None:
            self.alerting.progressed(QUERY, micro_batch_id, figures)
        most = why.most_common(quarantine.MOST)
        for line in (_told(micro_batch_id, joined, missing, most), *self.news(joined)):
            self.progress.say(line)
        self.stop.between(QUERY)

    def news(self, joined: Joined) -> list[str]:
        """What the micro-batch before did not say: silent brokers, and what the import notes."""
        told = [
            f"silent: broker {broker} of {cluster}: {since}"
            for cluster, brokers in sorted(joined.silent.items())
            for broker, since in sorted(brokers.items())
        ] + [f"note: {note}" for note in [*joined.notes, *from_the_future(joined)]]
        said, self.said = self.said, set(told)
        return [line for line in told if line not in said]

    def begin(self) -> None:
        """Tells what was heard before this start; a cluster of which nothing came yet counts as
        heard now."""
        if self.alerting is None:
            return
        known = self.joining.known()
        ids = self.source.cluster_ids
        named = {*ids.values(), *filter(None, [self.source.names.one_cluster])} - ids.keys()
        self.alerting.heard({}, dict.fromkeys(named, time.time()))
        silent = {
            cluster: {int(broker): words for broker, words in brokers.items()}
            for cluster, brokers in known.silent.items()
        }
        self._tell(known.heard, silent)

    def _tell(self, heard: Heard, silent: Mapping[str, dict[int, str]]) -> None:
        """Hands over what alerts and metrics are made of, by cluster ids."""
        if self.alerting is None:
            return
        ids = self.source.cluster_ids
        newest = {ids.get(c, c): at for c, at in newest_lines(heard).items()}
        self.alerting.heard({ids.get(c, c): brokers for c, brokers in silent.items()}, newest)

    def _lines(self, frame: DataFrame, refused: Entries) -> Iterator[ShippedLine | NotALine]:
        for sent in self._sent(frame, refused):
            for line in shipped_lines(sent.value, self.source.names):
                if isinstance(line, ShippedLine) and (why := self.source.refusal(line)):
                    line = NotALine(why)
                if isinstance(line, NotALine):
                    raw = raw_text(sent.value)
                    refused.add(
                        ("not_an_event", line.reason, raw, 1, sent.origin, sent.line, sent.offset)
                    )
                    yield line
                else:
                    yield replace(line, host=line.host or sent.host, path=line.path or sent.path)

    def _sent(self, frame: DataFrame, refused: Entries) -> Iterator[_Sent]:
        rows: Iterator[Row] = frame.toLocalIterator()
        if "value" in frame.columns:
            for row in rows:
                origin = f"kafka:{row.topic}-{row.partition}"
                key = bytes(row.key).decode("utf-8", "replace") if row.key else ""
                yield _Sent(bytes(row.value or b""), origin, None, row.offset, key)
            return
        for row in rows:
            part = still_readable(Slice(**row.asDict()))
            if part.format == REFUSED:
                refused.add((part.reason_code, part.reason, None, part.rows, part.path, None, None))
                continue
            path = place(part.path)
            for number, value in enumerate(lines_of(part.path, part.first_byte, part.end_byte), 1):
                if value.strip():
                    line = number if part.first_byte == 0 else None
                    yield _Sent(value, part.path, line, None, path.parent.name, path.name)


def newest_lines(heard: Heard) -> dict[str, float]:
    """Cluster -> when its newest line was written, in seconds since 1970; of a line that is later
    than the clock of the job, when it came."""
    newest: dict[str, float] = {}
    for host, clocks in heard.items():
        cluster = host.split("/")[0]
        at = [clocks[name] / 1000 for name in CLOCKS if name in clocks]
        if at:
            newest[cluster] = max(*at, newest.get(cluster, 0.0))
    return newest


def from_the_future(joined: Joined) -> list[str]:
    """Of each host whose newest line is later than the clock of the job, a note."""
    return [
        f"{host}: its newest line is {_length(lead)} later than the clock of this machine: the "
        "clock of that host is ahead, or the zone of its log is another one (--time-zone). The "
        "line counts as written when it came, and makes no other broker count as silent"
        for host, lead in sorted(ahead_of(joined.heard).items())
    ]


def _length(milliseconds: int) -> str:
    """A length of time in days, hours or minutes, so that there are at least two of them."""
    minutes = round(milliseconds / 60_000)
    for size, unit in ((1440, "day"), (60, "hour")):
        if minutes >= 2 * size:
            return counted(round(minutes / size), unit)
    return counted(minutes, "minute")


def _told(micro_batch_id: int, joined: Joined, missing: int, why: Sequence[tuple[str, int]]) -> str:
    taken = joined.taken
    refused = quarantined(len(taken.refused) + missing, why)
    return (
        f"live micro-batch {micro_batch_id}: {counted(taken.rows + missing, 'line')} = "
        f"{taken.kept} kept + {taken.repeated} repeated + {refused}; "
        f"{counted(len(joined.changed), 'partition')} changed, {counted(joined.events, 'event')}"
    )
