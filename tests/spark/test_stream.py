"""The stream, the replay and the laptop tool give one answer, however the events come."""

import io
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replication.evidence.event_dumps import write_events
from replication.evidence.importer import import_evidence
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from replication.spark import answer_tables, settings, tables, views
from replication.spark.ending import Stop
from replication.spark.event_files import Admission
from replication.spark.progress import Progress
from replication.spark.stream import StreamJob
from replication.spark.tables import Store, TablesError
from tests.spark.event_rows import made_trace, other_content
from tests.spark.faults import another_version
from tests.spark.jobs_in_process import (
    ANSWERS,
    answers,
    rows,
    run_replay,
    run_stream,
    waited_for,
)

pytestmark = pytest.mark.spark
INCIDENT = Path(__file__).parents[1] / "incidents" / "unclean_election__4.1.1"
ANSWERED = {
    "verdicts": "verdicts",
    "loss_ledger": "losses",
    "divergences": "divergences",
    "findings": "findings",
}


@pytest.fixture(scope="module")
def incident() -> list[Event]:
    return list(import_evidence([INCIDENT]).events())


@cache
def judged(events: tuple[Event, ...]) -> list[FoldedPartition]:
    """Once for all tables that are compared."""
    return fold_all(events)


def laptop(events: Sequence[Event], table: str) -> list[dict[str, Any]]:
    """What the laptop tool answers, as rows of a table."""
    result = []
    for part in judged(tuple(events)):
        name = "/".join(str(p) for p in part.identity)
        for row in getattr(part.answer, ANSWERED[table]):
            result.append({"topic_partition_id": name, **row})
    return result


def same_rows(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    """Equal, where a column that an answer does not speak of is null or a moment told twice."""
    assert sorted(plain(row) for row in found) == sorted(plain(row) for row in wanted)


def plain(value: Any) -> str:
    """A value as text, without what is null and the timestamps that stand beside moments."""

    def present(value: Any) -> Any:
        if isinstance(value, dict):
            told = {k: v for k, v in value.items() if not isinstance(v, datetime)}
            return {k: present(v) for k, v in told.items() if v is not None}
        return [present(v) for v in value] if isinstance(value, list) else value

    return json.dumps(present(value), sort_keys=True)


@pytest.fixture(scope="module")
def undisturbed(
    spark: SparkSession, incident: list[Event], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The incident's events in one file, streamed in one go."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "in").mkdir()
    write_events(folder / "in" / "a.jsonl", incident)
    run_stream(spark, folder)
    return folder


def test_the_stream_answers_what_the_laptop_tool_answers(
    spark: SparkSession, incident: list[Event], undisturbed: Path
) -> None:
    for table in ANSWERED:
        same_rows(rows(spark, undisturbed / "tables", table), laptop(incident, table))
    ledger = rows(spark, undisturbed / "tables", "loss_ledger")
    assert [(r["first_offset"], r["end_offset"], r["cause"]) for r in ledger] == [
        (20, 30, "unclean_election")
    ]


def test_the_replay_answers_the_same(
    spark: SparkSession, incident: list[Event], undisturbed: Path, folder: Path
) -> None:
    write_events(folder / "in" / "a.jsonl", incident)
    verdicts, said = run_replay(spark, folder)
    assert answers(spark, folder / "replayed") == answers(spark, undisturbed / "tables")
    assert verdicts[("committed_records_survive", "VIOLATED")] == 1
    assert f"in all: {len(incident)} rows = {len(incident)} applied" in said
    whole, without = (filled(spark, path) for path in (undisturbed / "tables", folder / "replayed"))
    assert whole - without == {"replica_events", *views.of_events()}
    told = [line for line in said.splitlines() if "--keep-events fills them" in line]
    assert len(told) == 1
    assert all(name in told[0] for name in whole - without)
    with pytest.raises(TablesError, match="--new-run"):
        run_replay(spark, folder)
    run_replay(spark, folder, new_run="again", keep_events=True)
    assert answers(spark, folder / "replayed") == answers(spark, undisturbed / "tables")
    assert len(rows(spark, folder / "replayed", "replica_events")) == len(incident)
    assert filled(spark, folder / "replayed") == whole


def filled(spark: SparkSession, tables: Path) -> set[str]:
    """The tables and views of a fold that have a row, but for what the stream keeps for itself."""
    views.opened(spark, tables).register()
    names = {*views.folded(), *views.documented()} - {"_refolds"}
    return {name for name in names if not spark.sql(f"SELECT * FROM {name}").isEmpty()}


@pytest.mark.parametrize("count", [3, pytest.param(20, marks=pytest.mark.sweep)])
def test_many_micro_batches_in_reverse_with_duplicates_and_a_restart(
    spark: SparkSession, incident: list[Event], undisturbed: Path, folder: Path, count: int
) -> None:
    """Files in reverse order, every third event twice, the stream stopped in the middle and gone on
    with by a newer analyzer."""
    bounds = [n * len(incident) // count for n in range(count + 1)]
    pieces = [incident[a:b] for a, b in pairwise(bounds)]
    pieces.reverse()
    half = count * 2 // 3
    for number, piece in enumerate(pieces[:half]):
        write_events(folder / "in" / f"{number:03}.jsonl", piece)
    run_stream(spark, folder, profile="small-batches")
    before = rows(spark, folder / "tables", "verdicts")
    assert {r["verdict"] for r in before} == {"UNKNOWN"}
    assert all(r["reason"].startswith("trace_gap") for r in before)
    for number, piece in enumerate([*pieces[half:], incident[::3]], start=half):
        write_events(folder / "in" / f"{number:03}.jsonl", piece)
    with another_version("9.9+changed"):
        said = run_stream(spark, folder, profile="small-batches")
    assert "judges every topic partition anew" in said
    folds = Store(spark, folder / "tables").newest_batches()["fold"]["micro_batch_id"] + 1
    assert folds >= count
    assert answers(spark, folder / "tables") == answers(spark, undisturbed / "tables")
    doubled = len(incident[::3])
    assert (
        f"in all: {len(incident) + doubled} rows = {len(incident)} applied + {doubled} duplicates "
        "+ 0 quarantined + 0 held" in said
    )


@pytest.mark.parametrize(
    ("few", "by_name"),
    [(answer_tables.FEW_CHARACTERS, 0), (-1, tables.REPLACED_BY_NAME), (-1, 1)],
)
def test_new_topic_partitions_come_beside_known_ones(
    spark: SparkSession, folder: Path, few: int, by_name: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that replace others and rows that are new, in one commit: few rows at the driver; by
    Spark where they are many, by name and by rewriting."""
    monkeypatch.setattr(answer_tables, "FEW_CHARACTERS", few)
    monkeypatch.setattr(tables, "REPLACED_BY_NAME", by_name)
    first, second = made_trace(0), made_trace(1)
    for number, piece in enumerate([first[:25], first[25:] + second]):
        write_events(folder / "in" / f"{number}.jsonl", piece)
    run_stream(spark, folder, profile="small-batches")
    for table in ANSWERED:
        same_rows(rows(spark, folder / "tables", table), laptop(first + second, table))


def test_the_stored_events_can_be_folded_again_without_the_checkpoint(
    spark: SparkSession, incident: list[Event], undisturbed: Path, folder: Path
) -> None:
    write_events(folder / "in" / "a.jsonl", incident)
    run_stream(spark, folder)
    for path in sorted((folder / "checkpoint" / "fold").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder / "checkpoint" / "fold").rmdir()
    said_so = (
        rf"NAME .* run 'first' \(process {os.getpid()} on .*\), is stopped where it still runs"
    )
    with pytest.raises(TablesError, match=said_so):
        run_stream(spark, folder)
    said = run_stream(spark, folder, new_run="second")
    assert "fold micro-batch 0" in said
    assert answers(spark, folder / "tables") == answers(spark, undisturbed / "tables")
    assert len(rows(spark, folder / "tables", "replica_events")) == len(incident)
    with pytest.raises(TablesError, match="goes on with run 'second'"):
        run_stream(spark, folder, new_run="third")


def test_nothing_new_is_said_only_where_nothing_waits(spark: SparkSession, folder: Path) -> None:
    """A start that noted a file and was killed before it read it leaves the file waiting."""
    events = made_trace(0)
    write_events(folder / "in" / "0.jsonl", events[:30])
    run_stream(spark, folder)
    write_events(folder / "in" / "1.jsonl", events[30:])
    assert Admission(folder / "in", folder / "checkpoint" / "ingest" / "admitted", 0).admit() == 1
    said = run_stream(spark, folder)
    assert f"ingest micro-batch 1: {len(events) - 30} in" in said
    assert "nothing new" not in said
    assert f"nothing new in {folder / 'in'}" in run_stream(spark, folder)


@dataclass(frozen=True)
class Eventful:
    """One stream over three partitions, each with what cannot be folded at once: of 0 an event that
    contradicts a folded one, of 1 the first event after too many others, of 2 a second import.
    early: the rows of its tables before all of that came; said: what it said of the rest."""

    folder: Path
    early: dict[str, list[dict[str, Any]]]
    said: str
    tables: dict[str, list[dict[str, Any]]]

    def of(self, partition: int, table: str) -> list[dict[str, Any]]:
        return [row for row in self.tables[table] if row["partition"] == partition]


CONFLICT, CLASH = made_trace(0), other_content(made_trace(0)[8])
# More events than HELD.
GAP = made_trace(1, rounds=10)
OLD, NEW = made_trace(2, rounds=2), made_trace(2, rounds=6, generation=1, trace_id="second")
HELD = 60


@pytest.fixture(scope="module")
def eventful(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Eventful:
    folder = tmp_path_factory.mktemp("eventful")
    (folder / "in").mkdir()
    write_events(folder / "in" / "0.jsonl", [*CONFLICT[:20], *GAP[1:], *OLD])
    run_stream(spark, folder, profile="small-batches", held_limit=HELD)
    early = answers(spark, folder / "tables")
    write_events(folder / "in" / "1.jsonl", [CLASH, *GAP[:1], *NEW])
    write_events(folder / "in" / "2.jsonl", CONFLICT[20:])
    said = run_stream(spark, folder, profile="small-batches", held_limit=HELD)
    looked_at = (*ANSWERED, "quarantine", "isr_and_leadership")
    return Eventful(folder, early, said, {t: rows(spark, folder / "tables", t) for t in looked_at})


def test_what_cannot_be_folded_at_once_is_counted_once(eventful: Eventful) -> None:
    assert "folding 2 topic partitions again" in eventful.said
    applied, held = 8 + len(GAP) + len(NEW), len(CONFLICT) - 9
    given, old = applied + len(OLD) + 2 + held, len(OLD)
    assert (
        f"in all: {given} rows = {applied} applied + {old} duplicates ({old} superseded) + "
        f"2 quarantined + {held} held" in eventful.said
    )


def test_the_totals_by_sql_are_those_of_the_last_line_and_of_a_replay(
    spark: SparkSession, eventful: Eventful
) -> None:
    counted = (
        "rows_in, applied, duplicates, quarantined, held, superseded, not_yet_folded, findings"
    )
    run_replay(spark, eventful.folder)
    totals = []
    for written in ("tables", "replayed"):
        views.opened(spark, eventful.folder / written).register()
        [row] = spark.sql(f"SELECT incident, {counted} FROM event_totals").collect()
        totals.append(row.asDict())
    assert totals[0] == totals[1]
    assert totals[0]["superseded"] == len(OLD)
    said = (
        "in all: {rows_in} rows = {applied} applied + {duplicates} duplicates ({superseded} "
        "superseded) + {quarantined} quarantined + {held} held; {findings} findings"
    )
    assert said.format(**totals[0]) in eventful.said
    assert totals[0]["not_yet_folded"] == 0


def test_a_late_conflict_is_found_in_the_stored_events_and_folded_again(
    eventful: Eventful,
) -> None:
    for table in ANSWERED:
        same_rows(eventful.of(0, table), laptop([*CONFLICT, CLASH], table))
    quarantine = eventful.tables["quarantine"]
    assert {r["event_id"] for r in quarantine} == {CONFLICT[8].event_id, CLASH.event_id}
    assert {r["reason_code"] for r in quarantine} == {"sequence_conflict"}


def test_a_stalled_partition_is_folded_again_when_its_gap_closes(eventful: Eventful) -> None:
    early = [row["verdict"] for row in eventful.early["verdicts"] if row["partition"] == 1]
    assert set(early) == {"UNKNOWN"}
    for table in ANSWERED:
        same_rows(eventful.of(1, table), laptop(GAP, table))
    kinds = sorted(r["sequence"] for r in eventful.of(1, "isr_and_leadership"))
    wanted = [e.sequence for e in GAP if e.fact.kind.startswith(("leader", "became"))]
    assert kinds == [n for n in wanted if GAP[n].fact.kind != "leader_appended"]


def test_a_new_import_of_a_higher_generation_replaces_the_answer(eventful: Eventful) -> None:
    early = [row for row in eventful.early["loss_ledger"] if row["partition"] == 2]
    same_rows(early, laptop(OLD, "loss_ledger"))
    for table in ANSWERED:
        same_rows(eventful.of(2, table), laptop(NEW, table))


def test_a_stream_with_an_interval_follows_until_it_is_stopped(
    spark: SparkSession, folder: Path
) -> None:
    events = made_trace(0)
    write_events(folder / "in" / "0.jsonl", events[:30])
    said, stop = io.StringIO(), Stop()
    chosen = settings.load({"trigger": "500 ms", "poll_seconds": "0.2", "settle_seconds": "0"})
    job = StreamJob(spark, folder / "tables", folder / "checkpoint", chosen, Progress(said), stop)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(job.run, folder / "in", None)
        waited_for(lambda: "fold micro-batch 0" in said.getvalue(), running)
        write_events(folder / "in" / "1.jsonl", events[30:])
        waited_for(lambda: "fold micro-batch 1" in said.getvalue(), running)
        stop.asked = True
        running.result(300)
    for table in ANSWERED:
        same_rows(rows(spark, folder / "tables", table), laptop(events, table))
    assert f"in all: {len(events)} rows = {len(events)} applied" in said.getvalue()
    with pytest.raises(TablesError, match="state_shards is 1024 for the life of"):
        run_stream(spark, folder, state_shards="8")


def test_every_table_of_the_contract_is_there_for_sql(
    spark: SparkSession, undisturbed: Path
) -> None:
    store = Store(spark, undisturbed / "tables")
    views.opened(spark, undisturbed / "tables").register()
    spans = spark.sql("SELECT replica, first_offset, end_offset FROM replica_log_spans").collect()
    assert {(r.replica, r.first_offset) for r in spans} >= {(1, 0), (2, 0), (3, 0)}
    for table in (*ANSWERS, "replica_events", "quarantine", "isr_and_leadership", "_batches"):
        assert spark.sql(f"SELECT count(*) AS n FROM {table}").collect()[0].n >= 0
    versions = store.newest_batches()["fold"]["table_versions"]
    assert versions["verdicts"] == store.version("verdicts")
