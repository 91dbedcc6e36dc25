"""The live source: a real capture's broker logs, shipped line by line, through the whole stream."""

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replication.evidence.collecting.envelopes import FieldNames
from replication.evidence.importer import import_evidence
from replication.evidence.shipping.live_join import Joined, named
from replication.evidence.shipping.silence import heard_of
from replication.protocol.judgement.bounded import fold_all
from replication.spark.alerting import Alerting, Channels
from replication.spark.event_files import SourceError
from replication.spark.live import Live, ShippedSource, from_the_future, newest_lines
from replication.spark.maintain import Kept
from replication.spark.progress import Progress
from replication.spark.stream import _source, kafka_options, parser
from tests.evidence.shipping.test_spool import folder_of, sent_of
from tests.spark.jobs_in_process import rows, run_stream
from tests.spark.test_alerts import Receiver
from tests.spark.test_maintain import maintain

INCIDENT = "unclean_election__2.8.2"


def said_of(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((r["cluster_id"], r["topic"], r["invariant"], r["verdict"]) for r in found)


@pytest.mark.spark
def test_shipped_lines_end_in_the_verdicts_of_an_import(spark: SparkSession, folder: Path) -> None:
    sent = sent_of(INCIDENT)
    junk = b'{"level": "info", "nothing": "here"}'
    ahead = json.loads(sent[-1]) | {"message": "[2099-11-20 15:20:00,000] INFO nothing (kafka.x)"}
    half = len(sent) // 2
    source = ShippedSource(folder / "in", FieldNames(one_cluster="orders"), {"orders": "Id-1"})
    receiver = Receiver(refuse=100)

    def alerting() -> Alerting:
        channels = Channels(webhook=receiver.address)
        return Alerting(
            channels, folder / "checkpoint", Progress(io.StringIO()), {"Id-1": "orders"}
        )

    (folder / "in" / "a.jsonl").write_bytes(b"\n".join([*sent[:half], junk]) + b"\n")
    (folder / "in" / "b.jsonl").write_bytes(b"\n".join([*sent[half:], *sent[:50]]) + b"\n")
    one = {"max_files_per_trigger": "1"}
    said = run_stream(spark, folder, source=source, alerting=alerting(), **one)
    assert "live micro-batch 1" in said
    assert "told at the next start" in said
    last = said.splitlines()[-1]
    assert last.startswith(f"1 of {len(sent) + 51} rows (")
    assert "; 1 of them: " in last
    assert "query IN ('live')" in last
    receiver.left = 0
    for _ in range(2):
        anew = alerting()
        run_stream(spark, folder, source=source, alerting=anew)
    # Nothing came: what was known before is scraped all the same.
    series = {
        (s.name.removeprefix("replication_"), s.labels.get("query") or s.labels.get("cluster")): s
        for family in anew.metrics.registry.collect()
        for s in family.samples
    }
    assert (
        series["newest_line_timestamp_seconds", "Id-1"].value
        < series["started_timestamp_seconds", None].value - 3600
    )
    assert series["newest_line_timestamp_seconds", "Id-1"].labels["cluster_name"] == "orders"
    for query in ("live", "ingest", "fold"):
        assert series["rows_in_total", query].value == 0
        # A start commits its fence to the events: to the fold that is a micro-batch of nothing.
        assert query == "fold" or series["micro_batch", query].value == -1
    assert receiver.rows() == [("firing", "RecordsLost", "warning")]
    assert receiver.told[0]["alerts"][0]["labels"]["cluster_name"] == "orders"
    copied = folder_of(sent, folder / "copied")
    events = [named(event, "Id-1") for event in import_evidence([copied]).events()]
    expected = [v for f in fold_all(events) for v in f.answer.verdicts]
    assert said_of(rows(spark, folder / "tables", "verdicts")) == said_of(expected)
    [refused] = rows(spark, folder / "tables", "quarantine")
    assert refused["raw"] == junk.decode()
    assert refused["query"] == "live"
    assert "no field holds a line" in refused["reason"]
    # What the months leave behind is deleted and joined, and the stream goes on over it.
    written = folder / "checkpoint" / "live" / "events"
    assert len(list(written.glob("*.jsonl"))) == 2
    told = maintain(spark, folder, Kept(0.0, None, 0.0))
    assert "1 file of joined lines' events deleted" in told
    assert "live: 2 notes of what was read joined into one" in told
    assert len(list(written.glob("*.jsonl"))) == 1
    (folder / "in" / "c.jsonl").write_bytes(sent[0] + b"\n" + json.dumps(ahead).encode() + b"\n")
    told = alerting()
    said = run_stream(spark, folder, source=source, alerting=told)
    assert "2 lines = " in said
    assert "days later than the clock of this machine" in said
    newest = told.metrics.newest.labels("Id-1", "orders")._value.get()
    assert time.time() - 600 < newest <= time.time()
    assert said_of(rows(spark, folder / "tables", "verdicts")) == said_of(expected)


@pytest.mark.spark
def test_of_named_clusters_alone_lines_are_taken_where_so_is_asked(
    spark: SparkSession, folder: Path
) -> None:
    own = [json.loads(line) | {"cluster": "orders"} for line in sent_of(INCIDENT)[:40]]
    others = [own[0] | {"cluster": "made-up"}, {k: v for k, v in own[1].items() if k != "cluster"}]
    sent = "".join(json.dumps(line) + "\n" for line in [*own, *others])
    (folder / "in" / "a.jsonl").write_text(sent)
    flags = ["--shipped", "--source", str(folder / "in"), "--cluster", "orders=Id-1"]
    flags += ["--cluster", "billing", "--tables", "t", "--checkpoint-dir", "c"]
    asked = _source(parser().parse_args([*flags, "--only-named-clusters"]))
    assert "40 kept + 0 repeated + 2 quarantined" in run_stream(spark, folder, source=asked)
    why = [row["reason"] for row in rows(spark, folder / "tables", "quarantine")]
    assert sorted(text.partition(", and --only")[0] for text in why) == [
        "the line names no cluster", "the line names the cluster 'made-up'",
    ]  # fmt: skip
    assert all("takes those of billing, orders alone" in text for text in why)
    spool = folder / "checkpoint" / "live" / "spool"
    assert [path.name for path in spool.iterdir()] == ["orders"]
    with pytest.raises(SourceError, match="no --cluster names one"):
        _source(
            parser().parse_args(["--shipped", "--only-named-clusters", *flags[1:3], *flags[7:]])
        )
    with pytest.raises(SourceError, match="go with --shipped only"):
        _source(parser().parse_args(["--only-named-clusters", *flags[1:3], *flags[7:]]))


def test_a_note_is_said_again_only_when_it_has_changed(tmp_path: Path) -> None:
    unused: Any = None
    source = ShippedSource(tmp_path)
    live = Live(unused, unused, unused, unused, Progress(), source)
    note, other = "orders: 4 files left aside", "orders: 5 files left aside"
    taken: Any = None
    silent = {"orders": {2: "nothing came from it after noon"}}
    assert len(live.news(Joined(taken, notes=[note], silent=silent))) == 2
    assert live.news(Joined(taken, notes=[note], silent=silent)) == []
    assert live.news(Joined(taken, notes=[other], silent=silent)) == [f"note: {other}"]
    assert live.news(Joined(taken)) == []
    assert live.news(Joined(taken, notes=[note])) == [f"note: {note}"]


def test_a_line_from_the_future_hides_no_silence_and_is_told() -> None:
    at, year_2099 = 1_700_000_000_000, 4_098_871_200_000
    before = {
        "orders/kafka-1": {"log": at - 1_000_000, "every": 60_000},
        "orders/kafka-2": {"digest": at - 2_000_000},
    }
    came = {"other/kafka-1": {"log": year_2099}, "orders/kafka-2": {"log": at + 9 * 3_600_000}}
    heard = heard_of(before, came, at)
    assert newest_lines(heard) == {"orders": at / 1000, "other": at / 1000}
    heard = heard_of(heard, {"orders/kafka-1": {"log": at + 700_000}}, at + 800_000)
    assert newest_lines(heard) == {"orders": at / 1000 + 700, "other": at / 1000}
    taken: Any = None
    told = from_the_future(Joined(taken, heard=heard))
    assert [line.partition(" later")[0] for line in told] == [
        "orders/kafka-2: its newest line is 9 hours",
        "other/kafka-1: its newest line is 27765 days",
    ]
    near = heard_of({}, {"orders/kafka-1": {"log": at + 60_000}}, at)
    assert from_the_future(Joined(taken, heard=near)) == []


def test_secrets_come_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER_PASSWORD", "hush=hush")
    path = tmp_path / "client.properties"
    path.write_text(
        "# to the fleet\nkafka.security.protocol=SASL_SSL\nkafka.x = a ${BROKER_PASSWORD}\n"
    )
    assert kafka_options(path) == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.x": "a hush=hush",
    }
    path.write_text("kafka.x=${NOT_THERE_AT_ALL}\n")
    with pytest.raises(SourceError, match="NOT_THERE_AT_ALL"):
        kafka_options(path)
    path.write_text('kafka.sasl.jaas.config=x.PlainLoginModule required password="hush"\n')
    with pytest.raises(SourceError, match="semicolon") as refused:
        kafka_options(path)
    assert "hush" not in str(refused.value)
    path.write_text("security.protocol=SSL\n")
    with pytest.raises(SourceError, match=r"line 1: not kafka\.NAME=VALUE"):
        kafka_options(path)
    assert json.dumps(kafka_options(None)) == "{}"
