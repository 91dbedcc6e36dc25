"""Poison: every kind of event by extreme values of every field, as rows that a user could deliver.

Each case is one row of the event contract, in the middle of the made trace of its own topic
partition; whether it is an event at all is for protocol.wire to say. As a command, all cases in one
stream of two micro-batches and in one replay, by Spark, held against the laptop tool:

    python -m tests.spark.poison [N]      every N-th case
"""

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from replication.protocol.ground import events as ev
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from replication.spark import contracts
from replication.spark.partition_fold import ANSWER_TABLES, verdict_rows
from replication.spark.shard_fold import FIGURES, ShardFold, fold_sorted
from tests.spark.event_rows import frame_of, identified, made_trace
from tests.spark.jobs_in_process import answers, rows, run_replay, run_stream, start_session

INT32, INT64 = (1 << 31) - 1, (1 << 63) - 1
# What a clock in microseconds, nanoseconds or seconds gives for a day of 2026, and the last date.
TIMES = (0, 1_790_000_000, 1_790_000_000_000_000, 1_790_000_000_000_000_000)
LAST_DATE = 253_402_300_799_999
NUMBERS = (-1, 0, 1, INT32, INT32 + 1, LAST_DATE, LAST_DATE + 1, INT64, INT64 + 1, 1 << 200,
           *TIMES, 1.5, "7", True)  # fmt: skip
TEXTS = ("", "x", "\x00", "\ud800", "\U0001f600", "a/b", "'; DROP", "%s{}\\", "9" * 400,
         "all", "none", "current", "part", "full", "clean", "unclean", "4.1.1", "0.7",
         7)  # fmt: skip
LISTS = ((), (0,), (1, 1), (INT64,), tuple(range(300)), (-1,), (None,), "12", 7)
SPANS = (
    (), ((0, INT64, 0, 0),), ((0, 5, 0, 0), (3, 9, 1, 1)), ((5, 9, 0, 0), (0, 3, 0, 0)),
    ((0, 1, INT64, INT64),), ((INT64 - 1, INT64, None, None),), ((5, 5, 0, 0),), ((-1, 5, 0, 0),),
)  # fmt: skip
ENTRIES = ((), ((0, 0),), ((5, 9), (1, 0)), ((INT64, INT64),), ((0, 0), (0, 5)), ((-1, 0),))
# Where the event is put into the trace: early, in the middle of steady traffic, at its end.
PLACES = (4, 13, 26)
# So many events of a partition come in a micro-batch without Spark, and in the first one with it.
AT_ONCE, HALF = 11, 15
JUDGED = ("verdicts", "loss_ledger", "divergences", "findings")


@dataclass(frozen=True)
class Poison:
    """One case: which field of which kind has which value. row: as it would be delivered."""

    kind: str
    field: str
    value: Any
    place: int
    row: dict[str, Any]

    @property
    def name(self) -> str:
        """Kind, field and value, for a reader."""
        return f"{self.kind}.{self.field}={str(self.value)[:40]!r} at {self.place}"


def ordinary(kind: str) -> dict[str, Any]:
    """The columns of an ordinary fact of a kind, every field given."""
    values = {"int": 1, "str": "unknown", "bool": True, "ints": [1, 2],
              "spans": [{"first_offset": 0, "end_offset": 3, "leader_epoch": 0, "content": 1}],
              "epoch_entries": [{"leader_epoch": 0, "start_offset": 0}]}  # fmt: skip
    row = {name: values[word] for name, (word, _) in wire.FIELD_TYPES[kind].items()}
    if "first_offset" in row:
        row["first_offset"] = 0
    return row


def extremes(name: str, word: str) -> tuple[Any, ...]:
    """The extreme values of a field."""
    if word == "spans":
        keys = ("first_offset", "end_offset", "leader_epoch", "content")
        return tuple([dict(zip(keys, span, strict=True)) for span in spans] for spans in SPANS)
    if word == "epoch_entries":
        keys = ("leader_epoch", "start_offset")
        return tuple([dict(zip(keys, e, strict=True)) for e in entries] for entries in ENTRIES)
    if word == "ints":
        return tuple(list(v) if isinstance(v, tuple) else v for v in LISTS)
    return {"int": NUMBERS, "str": TEXTS, "bool": (True, False, 1, "true")}[word]


HEADER = {
    "trace_id": "str", "trace_generation": "int", "cluster_id": "str", "topic": "str",
    "topic_id": "str", "partition": "int", "sequence": "int", "observed_at": "int",
    "grade": "str", "source_path": "str", "source_line": "int", "source_byte_offset": "int",
    "event_id": "str", "format_version": "int",
}  # fmt: skip


def cases(
    places: tuple[int, ...] = PLACES, step: int = 1
) -> Iterator[tuple[Poison, list[dict[str, Any]]]]:
    """Each case, or every step-th, with all rows of its topic partition, itself among them."""
    number = 0
    trace = [wire.to_row(event) for event in ordinary_trace()]
    for kind in ev.FACT_TYPES:
        fields = {name: word for name, (word, _) in wire.FIELD_TYPES[kind].items()} | HEADER
        for name, word in fields.items():
            for value in (*extremes(name, word), None):
                for place in places if name not in HEADER else places[-1:]:
                    if number % step == 0:
                        yield _case(trace, kind, name, value, place, number)
                    number += 1


def ordinary_trace() -> list[Event]:
    """The made trace, and that all elections are told: to follow those that are not takes ten times
    as long, and is the same in every host."""
    facts = [event.fact for event in made_trace(0, rounds=2)]
    facts.insert(1, ev.CoverageDeclared("controller_history", None, True))
    of_trace = made_trace(0, rounds=3)
    return [identified(replace(of_trace[n], fact=fact)) for n, fact in enumerate(facts)]


def _case(
    trace: list[dict[str, Any]], kind: str, name: str, value: Any, place: int, number: int
) -> tuple[Poison, list[dict[str, Any]]]:
    rows = [{**row, "partition": number} for row in trace]
    header = {k: v for k, v in rows[place].items() if k in wire.HEADER and k != "event_id"}
    row = {**header, **ordinary(kind), "kind": kind, name: value}
    row = {k: v for k, v in row.items() if v is not None}
    rows[place] = row
    return Poison(kind, name, value, place, row), rows


def delivered(rows: list[dict[str, Any]]) -> list[Event]:
    """The events among rows, as the laptop tool takes them."""
    found = []
    for row in rows:
        try:
            found.append(wire.from_json(json.dumps(row)))
        except wire.Misfit:
            continue
    return found


def laptop(events: list[Event]) -> dict[tuple[str, str], str]:
    """(table, partition) -> its rows as text, as the laptop tool answers."""
    return {key: row for part in fold_all(events) for key, row in _of_partition(part)}


def _of_partition(part: FoldedPartition) -> list[tuple[tuple[str, str], str]]:
    name = "/".join(str(p) for p in part.identity)
    a = part.answer
    tables = zip(
        JUDGED, (verdict_rows(a.verdicts), a.losses, a.divergences, a.findings), strict=True
    )
    return [((table, name), json.dumps(found)) for table, found in tables if found]


def hosts(events: list[Event]) -> list[dict[tuple[str, str], str]]:
    """The same from micro-batches and from one sorted pass; counts must add up in both."""
    shard, streamed, late = ShardFold(), {}, False
    for first in range(0, len(events), AT_ONCE):
        shard = ShardFold.decode(shard.encode())
        shard.take(frame_of(events[first : first + AT_ONCE], first))
        for out in shard.outcome():
            late |= out.table == "_late"
            if out.table in ANSWER_TABLES and out.table != "replica_states":
                streamed[out.table, out.topic_partition_id] = json.dumps(out.rows)
    parts = [shard.partition(name) for name in [*shard.blobs, *shard.live]]
    classes = ("applied", "duplicates", "quarantined", "held", "superseded")
    assert sum(part.counts()[c] for part in parts for c in classes) == len(events)
    ordered = sorted(events, key=lambda e: (-e.trace_generation, e.trace_id, e.sequence))
    frame = frame_of(ordered).sort_values("topic_partition_id", kind="stable")
    replayed = {}
    for found in fold_sorted([frame], 10_000, with_states=False):
        for out in found.itertuples():
            if out.out_table == FIGURES or out.out_table == "replica_states":
                continue
            if out.out_table in ANSWER_TABLES:
                text = json.dumps(json.loads(str(out.rows)))
                replayed[str(out.out_table), str(out.topic_partition_id)] = text
    both = [replayed] if late else [streamed, replayed]
    return [{k: v for k, v in found.items() if v != "[]"} for found in both]


def by_spark(
    spark: SparkSession, folder: Path, chosen: Iterable[tuple[Poison, list[dict[str, Any]]]]
) -> tuple[int, set[str]]:
    """How many cases, and in which rows a stream of two micro-batches, a replay and the laptop
    tool differ.

    Of the rows that are no events the first at each place has its trace with it, which stops there.
    """
    parts: list[list[str]] = [[], []]
    total, taken, stopped = 0, [], set()
    for poison, of_case in chosen:
        total += 1
        events = delivered(of_case)
        alone = len(events) < len(of_case) and poison.place in stopped
        if len(events) < len(of_case):
            stopped.add(poison.place)
        taken += [] if alone else events
        for place, row in enumerate(of_case):
            if place == poison.place or not alone:
                parts[place >= HALF].append(json.dumps(row))
    for number, lines in enumerate(parts):
        (folder / "in" / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
        run_stream(spark, folder)
    run_replay(spark, folder)
    tables = {host: folder / host for host in ("tables", "replayed")}
    judged = {host: answers(spark, path) for host, path in tables.items()}
    expected = laptop(taken)
    differing = {
        f"{table} of {name} in {host}"
        for host in tables
        for table in JUDGED
        for name in _differing(table, judged[host][table], expected)
    }
    for table in ("replica_states", "at_risk", "quarantine", "isr_and_leadership"):
        texts = [
            # A replay's ingest is its fold.
            {repr({**row, "query": None}) for row in judged[h].get(table) or rows(spark, p, table)}
            for h, p in tables.items()
        ]
        differing |= {f"{table} of one host alone: {text}" for text in texts[0] ^ texts[1]}
    return total, differing


def _differing(
    table: str, kept: list[dict[str, Any]], expected: dict[tuple[str, str], str]
) -> Iterator[str]:
    """The partitions whose rows of a table are other than the laptop tool's."""
    wanted = {name: json.loads(text) for (of, name), text in expected.items() if of == table}
    found: dict[str, list[dict[str, Any]]] = {}
    for row in kept:
        found.setdefault(row["topic_partition_id"], []).append(row)
    columns = {c.name for c in contracts.tables()[table].columns}
    for name in found.keys() | wanted.keys():
        both = [of.get(name, []) for of in (found, wanted)]
        told = columns & set(both[1][0] if both[1] else both[0][0])
        texts = [sorted(repr(_plain({c: row[c] for c in told})) for row in each) for each in both]
        if texts[0] != texts[1]:
            yield name


def _plain(value: Any) -> Any:
    """Without fields that a table has and says nothing in."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in sorted(value.items()) if v is not None}
    return [_plain(v) for v in value] if isinstance(value, list) else value


def main(arguments: list[str]) -> int:
    """The sweep; exit status 0 where stream, replay and laptop give one answer to each case."""
    step = int(arguments[0]) if arguments else 1
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "in").mkdir()
        spark = start_session(Path(name) / "warehouse")
        total, differing = by_spark(spark, Path(name), cases(step=step))
        spark.stop()
    for each in sorted(differing):
        print(f"differs: {each}")
    print(f"{total} cases, {len(differing)} rows in which hosts differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
