"""Alerts: which stand, told once on each change, at least once through kills, and what they say."""

import http.server
import io
import json
import re
import shutil
import socketserver
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Gauge, generate_latest
from ruamel.yaml import YAML

from replication.paths import project_root
from replication.protocol.ground.model import moment
from replication.protocol.judgement.judge import INVARIANTS
from replication.quality.metrics import Metrics as QualityMetrics
from replication.spark.alerting import Alerting, Channels, channels_of
from replication.spark.alerts import (
    CRITICAL_AFTER_MS,
    MEANINGS,
    Answer,
    Outbox,
    alerts_of,
    payload,
)
from replication.spark.answer_tables import Outcome
from replication.spark.event_files import SourceError
from replication.spark.metrics import Metrics
from replication.spark.progress import Progress
from replication.spark.topic_partition_ids import INCIDENT_MARK
from tests.protocol.judgement.test_risk_rows import row as danger
from tests.quality.test_outcomes import SUMS
from tests.quality.test_outcomes import outcome as quality_outcome

NAME = "Id-1/t/topic-id/3"
# What becomes of records is told as records that are gone.
INVARIANT_NAMES = [
    name
    for name in (module.__name__.rpartition(".")[2] for module in INVARIANTS)
    if not name.endswith("_survive")
]
RULES = project_root() / "conf" / "prometheus" / "alerts.yml"
DASHBOARD = project_root() / "conf" / "prometheus" / "grafana-dashboard.json"
SINCE = "2026-03-04T05:06:00.000Z"
BEGAN = 1772600760000


def loss(**changes: Any) -> dict[str, Any]:
    return {
        "first_offset": 5, "end_offset": 9, "records": 4, "tier": "committed", "status": "lost",
        "contract": "broken", "cause": "unclean_election", "finding_id": "f1",
        "next_leader_epoch": 7,
    } | changes  # fmt: skip


def verdict(invariant: str, word: str) -> dict[str, Any]:
    return {"invariant": invariant, "verdict": word, "reason": "because"}


def answered(*dangers: dict[str, Any], clock: int | None = None, **tables: Any) -> Answer:
    answer = Answer(names={"Id-1": "orders"}, clock=clock)
    answer.put("at_risk", NAME, dangers)
    for table, rows in tables.items():
        answer.put(table, NAME, rows)
    return answer


def at_risk(**changes: Any) -> dict[str, Any]:
    return {**danger(), "since": SINCE, "holders": [], **changes}


def said(answer: Answer) -> set[tuple[str, str]]:
    return {(a.labels["alertname"], a.severity) for a in alerts_of(answer)}


class Receiver:
    """A real HTTP receiver. refuse: answers 503 so often first; hang: never answers."""

    def __init__(self, refuse: int = 0) -> None:
        self.told: list[dict[str, Any]] = []
        self.left = refuse
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.left:
                    receiver.left -= 1
                    self.send_error(503)
                    return
                receiver.told.append(json.loads(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing on stderr."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/hook"

    def rows(self) -> list[tuple[str, str, str]]:
        return [
            (a["status"], a["labels"]["alertname"], a["labels"]["severity"])
            for each in self.told
            for a in each["alerts"]
        ]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()


def alerting(folder: Path, receiver: Receiver, answer: Answer) -> Alerting:
    made = Alerting(Channels(webhook=receiver.address), folder, Progress())
    made.answer = answer
    return made


def test_a_danger_warns_at_once_and_is_critical_when_it_stands() -> None:
    young, old = BEGAN + 59_000, BEGAN + 60_000
    assert said(answered(at_risk(), clock=young)) == {("RecordsAtRisk", "warning")}
    assert said(answered(at_risk(), clock=old)) == {("RecordsAtRisk", "critical")}
    assert said(answered(at_risk(holders=[3]), clock=old)) == {("RecordsAtRisk", "warning")}
    assert said(answered(at_risk(tier="acknowledged_by_leader"), clock=old)) == {
        ("RecordsAtRisk", "warning")
    }
    assert said(answered(at_risk(over=True), clock=old)) == set()
    assert said(answered(at_risk(tier="undetermined"), clock=old)) == set()


def test_the_page_names_the_labels_of_the_webhook() -> None:
    page = (project_root() / "docs" / "alerts.md").read_text(encoding="utf-8")
    told = page.partition("The webhook's labels are ")[2].partition("None has")[0]
    answer = answered(
        at_risk(), loss_ledger=[loss()], verdicts=[verdict("leader_in_isr", "VIOLATED")]
    )
    answer.silent = {"Id-1": {2: "nothing came from it after noon"}}
    answer.put("loss_ledger", f"{NAME}{INCIDENT_MARK}monday", [loss()])
    labels = {name for alert in alerts_of(answer) for name in alert.labels}
    assert "incident" in labels
    assert set(re.findall(r"`(\w+)`", told)) == {*labels, "severity"}


def test_losses_and_other_broken_promises() -> None:
    assert said(answered(loss_ledger=[loss()])) == {("RecordsLost", "critical")}
    assert said(answered(loss_ledger=[loss(contract="not_promised")])) == {
        ("RecordsLost", "warning")
    }
    assert said(answered(loss_ledger=[loss(status="recoverable"), loss()])) == {
        ("RecordsLost", "critical"), ("RecordsRecoverable", "critical"),
    }  # fmt: skip
    assert said(answered(loss_ledger=[loss(contract="unknown")])) == {("RecordsLost", "warning")}
    assert said(answered(loss_ledger=[loss(status="undetermined")])) == {
        ("RecordsUndetermined", "warning")
    }
    assert said(answered(loss_ledger=[loss(status="recovered")])) == set()
    verdicts = [verdict("log_matching", "VIOLATED"), verdict("leader_in_isr", "VIOLATED"),
                verdict("committed_records_survive", "VIOLATED"),
                verdict("version_conformance", "UNKNOWN")]  # fmt: skip
    assert said(answered(verdicts=verdicts)) == {
        ("ReplicasDiverged", "critical"), ("InvariantViolated", "warning"),
    }  # fmt: skip


def test_one_loss_is_told_once_however_evidence_grows_and_the_next_one_anew(
    tmp_path: Path, receiver: Receiver
) -> None:
    job = alerting(tmp_path, receiver, answered(loss_ledger=[loss(end_offset=7, cause="unknown")]))
    assert job.deliver()
    grown = loss(finding_id="f2", tier="consumed", end_offset=12)
    job.answer.put("loss_ledger", NAME, [grown])
    assert job.deliver()
    assert receiver.rows() == [("firing", "RecordsLost", "critical")]
    # The same offsets, lost by a later leader.
    job.answer.put("loss_ledger", NAME, [grown, loss(finding_id="f3", next_leader_epoch=9)])
    assert job.deliver()
    assert receiver.rows() == [("firing", "RecordsLost", "critical")] * 2
    epochs = [each["alerts"][0]["labels"]["next_leader_epoch"] for each in receiver.told]
    assert epochs == ["7", "9"]


def test_every_alert_says_what_it_means_and_where_the_proof_is() -> None:
    answer = answered(at_risk(), loss_ledger=[loss(), loss(status="recoverable")],
                      verdicts=[verdict("log_matching", "VIOLATED")])  # fmt: skip
    answer.silent = {"Id-1": {2: "nothing came from it after noon"}}
    found = alerts_of(answer)
    assert len({a.fingerprint for a in found}) == len(found) == 5
    for alert in found:
        assert "SELECT" in alert.annotations["runbook"]
        assert len(alert.annotations["description"]) > 60
        assert (alert.labels["cluster"], alert.labels["cluster_name"]) == ("Id-1", "orders")


def test_a_broker_whose_clock_is_ahead_makes_no_danger_older_than_it_is(
    tmp_path: Path, receiver: Receiver
) -> None:
    now = int(time.time() * 1000)
    job = alerting(tmp_path, receiver, answered(at_risk(since=moment(now))))
    unused: Any = None
    ahead = {"newest_event_time": now + 10 * CRITICAL_AFTER_MS}
    job.take(Outcome(unused, {}, {}, {}, ahead), 1)
    assert said(job.answer) == {("RecordsAtRisk", "warning")}
    assert abs((job.answer.clock or 0) - now) < CRITICAL_AFTER_MS


def test_each_change_is_told_once(tmp_path: Path, receiver: Receiver) -> None:
    job = alerting(tmp_path, receiver, answered(at_risk(), clock=BEGAN))
    assert job.deliver()
    assert job.deliver()
    assert receiver.rows() == [("firing", "RecordsAtRisk", "warning")]
    job.answer.clock = BEGAN + 90_000
    assert job.deliver()
    job.answer.put("at_risk", NAME, [])
    assert job.deliver()
    assert job.deliver()
    assert receiver.rows()[1:] == [
        ("firing", "RecordsAtRisk", "critical"), ("resolved", "RecordsAtRisk", "critical"),
    ]  # fmt: skip
    first, _, last = (each["alerts"][0] for each in receiver.told)
    assert first["startsAt"] == last["startsAt"] == SINCE
    assert last["endsAt"] > SINCE
    assert len({each["notification_id"] for each in receiver.told}) == 3


def test_what_the_receiver_refuses_is_told_later_and_only_once(tmp_path: Path) -> None:
    receiver = Receiver(refuse=2)
    job = alerting(tmp_path, receiver, answered(at_risk()))
    assert not job.deliver()
    assert not job.deliver(), "a pause first"
    assert receiver.left == 1
    job.not_before = 0.0
    assert not job.deliver()
    assert job.deliver(tries=3)
    assert receiver.rows() == [("firing", "RecordsAtRisk", "warning")]
    receiver.server.shutdown()
    job.answer.put("at_risk", NAME, [])
    receiver.server.server_close()
    assert not job.deliver()
    assert job.metrics.pending._value.get() == 1  # type: ignore[attr-defined]


def test_killed_between_telling_and_noting_it_tells_the_same_again(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = alerting(tmp_path, receiver, answered(at_risk()))

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Outbox, "was_told", killed)
    with pytest.raises(KeyboardInterrupt):
        job.deliver()
    monkeypatch.undo()
    for _ in range(2):
        assert alerting(tmp_path, receiver, answered(at_risk())).deliver()
    first, again = receiver.told
    assert first["notification_id"] == again["notification_id"]
    assert first["alerts"][0]["fingerprint"] == again["alerts"][0]["fingerprint"]


def test_a_silent_broker_stays_told_until_lines_were_looked_at(
    tmp_path: Path, receiver: Receiver
) -> None:
    job = alerting(tmp_path, receiver, answered())
    job.heard({"Id-1": {2: "nothing came from it after noon"}}, {"Id-1": 5})
    assert job.deliver()
    anew = alerting(tmp_path, receiver, answered())
    assert anew.deliver()
    assert len(receiver.told) == 1
    anew.heard({"Id-1": {}}, {"Id-1": 6})
    assert anew.deliver()
    assert [status for status, *_ in receiver.rows()] == ["firing", "resolved"]


def test_many_alerts_come_in_several_notifications(tmp_path: Path, receiver: Receiver) -> None:
    answer = answered()
    for number in range(230):
        answer.put("loss_ledger", f"c/t//{number}", [loss()])
    assert alerting(tmp_path, receiver, answer).deliver()
    assert [len(each["alerts"]) for each in receiver.told] == [100, 100, 30]
    assert payload([])["version"] == "4"


@pytest.mark.parametrize("answer", [b"nonsense\r\n\r\n", b"", b"HTTP/1.1 200\r\nA" * 9_000])
def test_a_receiver_that_speaks_no_http_is_tried_again(answer: bytes, tmp_path: Path) -> None:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1 << 16)
            self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said = io.StringIO()
        address = f"http://127.0.0.1:{server.server_address[1]}/s3cret"
        made = Alerting(Channels(webhook=address), tmp_path, Progress(said))
        made.answer = answered(at_risk(), clock=BEGAN)
        assert not made.deliver()
        server.shutdown()
    assert "not delivered, tried again" in said.getvalue()
    assert "s3cret" not in said.getvalue()


@pytest.mark.parametrize(
    "host", ["127.0.0.1:1/s3cret\x1f", "a..b/s3cret", "[/s3cret", "x:y/s3cret"]
)
def test_an_address_that_is_none_is_no_part_of_what_is_said(host: str, tmp_path: Path) -> None:
    said = io.StringIO()
    made = Alerting(Channels(webhook=f"http://{host}"), tmp_path, Progress(said))
    made.answer = answered(at_risk(), clock=BEGAN)
    assert not made.deliver()
    assert "not delivered" in said.getvalue()
    assert "s3cret" not in said.getvalue()


def test_where_to_tell_is_checked_and_secrets_come_from_the_environment() -> None:
    found = channels_of(["prometheus=9464", "webhook=https://x/${KEY}"], {"KEY": "s3cret"})
    assert found == Channels(9464, "https://x/s3cret")
    for wrong in (["mail=a"], ["prometheus=0"], ["prometheus=x"], ["webhook=ftp://x"],
                  ["webhook=http://${NOT_THERE}"]):  # fmt: skip
        with pytest.raises(SourceError):
            channels_of(wrong, {})


def metrics_of(answer: Answer) -> str:
    metrics = Metrics()
    metrics.begin("/share/tables", ("ingest", "fold"), 3, 0.5)
    metrics.show(answer, alerts_of(answer))
    metrics.progress("fold", 7, {"milliseconds": 1500, "rows_in": 4, "held": -2}, 1.0)
    metrics.heard({"Id-1": BEGAN / 1000}, answer.names)
    return generate_latest(metrics.registry).decode()


def test_metrics_are_by_cluster_and_topic_and_go_when_they_no_longer_hold() -> None:
    answer = answered(at_risk(), loss_ledger=[loss()])
    where = 'cluster="Id-1",cluster_name="orders"'
    text = metrics_of(answer)
    assert (
        f'replication_records_at_risk{{{where},failure="leader_stops",tier="committed",'
        'topic="t"} 5.0' in text
    )
    assert 'replication_micro_batch{query="fold"} 7.0' in text
    assert 'replication_rows_in_total{query="fold"} 4.0' in text
    assert "replication_events_held 1.0" in text
    assert 'replication_micro_batch_seconds{query="fold"} 1.5' in text
    answer.put("at_risk", NAME, [])
    assert "replication_records_at_risk{" not in metrics_of(answer)


def test_how_many_are_gone_may_not_be_known_that_they_are_is() -> None:
    text = metrics_of(answered(loss_ledger=[loss(records=None)]))
    assert re.search(r'^replication_records_gone\{.*partition="3".*\} 1.0$', text, re.M)


def test_what_a_newer_trace_superseded_counts_as_a_duplicate_as_in_the_jobs_lines() -> None:
    metrics, said = Metrics(), io.StringIO()
    figures = {"rows_in": 38, "applied": 14, "superseded": 23, "duplicates": 1, "held": 0}
    metrics.progress("fold", 7, figures, 1.0)
    Progress(said).report("fold", 7, figures)
    assert "38 in, 14 applied, 24 duplicates (23 superseded), 0 quarantined" in said.getvalue()
    count = {name: c.labels("fold")._value.get() for name, c in metrics.rows.items()}
    assert count == {"rows_in": 38, "applied": 14, "duplicates": 24, "quarantined": 0}


def test_a_scrape_finds_what_holds_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a gauge is emptied and set anew, a scrape between resolves a critical alert."""
    metrics, answer = Metrics(), answered(at_risk(), loss_ledger=[loss()])
    metrics.show(answer, alerts_of(answer))
    answer.put("loss_ledger", NAME, [loss(), loss(next_leader_epoch=9)])
    answer.put("at_risk", NAME, [])
    scrapes = []
    real = Gauge.labels

    def scraped(self: Gauge, *labels: Any) -> Any:
        scrapes.append(generate_latest(metrics.registry).decode())
        return real(self, *labels)

    monkeypatch.setattr(Gauge, "labels", scraped)
    metrics.show(answer, alerts_of(answer))
    assert scrapes
    assert all('next_leader_epoch="7"' in text for text in scrapes)
    last = generate_latest(metrics.registry).decode()
    assert 'next_leader_epoch="9"' in last
    assert "replication_records_at_risk{" not in last


def test_the_endpoint_answers(tmp_path: Path) -> None:
    metrics = Metrics()
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as free:
        port = free.server_address[1]
    metrics.serve(port)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as found:
        assert b"replication_micro_batch" in found.read()


def exported() -> set[str]:
    answer = answered(at_risk(), loss_ledger=[loss()], verdicts=[verdict("x", "UNKNOWN")])
    answer.silent = {"c": {1: "x"}}
    checks = QualityMetrics("/share/tables", None)
    checks.show([quality_outcome("e", "critical", 1)], [], 1.0, SUMS)
    text = metrics_of(answer) + generate_latest(checks.registry).decode()
    return set(re.findall(r"^(replication_\w+)(?:\{| )", text, re.M))


@pytest.mark.parametrize("path", [RULES, DASHBOARD], ids=lambda p: p.name)
def test_rules_and_dashboard_ask_for_metrics_and_labels_that_are_there(path: Path) -> None:
    text = path.read_text()
    asked = set(re.findall(r"\b(replication_[a-z_]+)", text))
    assert asked
    assert asked <= exported()
    if path == DASHBOARD:
        panels = json.loads(text)["panels"]
        assert len({p["id"] for p in panels}) == len(panels) > 5


def _takes(selector: str, labels: dict[str, str]) -> bool:
    """Whether a selector of the rules takes a series with these labels."""
    for name, how, value in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', selector):
        own = labels.get(name, "")
        same = re.fullmatch(value, own) is not None if "~" in how else own == value
        if same != (how in ("=", "=~")):
            return False
    return True


@pytest.mark.parametrize("contract", ["broken", "not_promised", "unknown"])
@pytest.mark.parametrize("status", ["lost", "undetermined", "recoverable"])
def test_the_rules_tell_of_every_loss_once_and_as_the_webhook_does(
    status: str, contract: str
) -> None:
    rules = YAML(typ="safe").load(RULES.read_text())["groups"][0]["rules"]
    told = [
        (rule["alert"], rule["labels"]["severity"])
        for rule in rules
        for selector in re.findall(r"replication_records_gone\{(.*?)\}", rule["expr"])
        if _takes(selector, {"status": status, "contract": contract})
    ]
    [alert] = alerts_of(answered(loss_ledger=[loss(status=status, contract=contract)]))
    assert told == [(alert.labels["alertname"], alert.severity)]


def test_a_dead_stream_is_told_by_what_every_stream_has_from_the_first_scrape_on() -> None:
    rules = YAML(typ="safe").load(RULES.read_text())["groups"][0]["rules"]
    [absent] = [r for r in rules if "absent(" in r["expr"]]
    assert (absent["alert"], absent["labels"]["severity"]) == ("StreamDown", "critical")
    metrics = Metrics()
    metrics.begin("/share/tables", ("live", "ingest", "fold"), 0, 12.5)
    metrics.heard({"Id-1": 12.5}, {})
    metrics.show(Answer(), [])
    text = generate_latest(metrics.registry).decode()
    there = set(re.findall(r"^(replication_\w+)(?:\{| )", text, re.M))
    for rule in rules:
        watched = set(
            re.findall(r"(?:time\(\) - |absent\(|> )\D*(replication_[a-z_]+)", rule["expr"])
        )
        ours = {name for name in watched if "quality" not in name}
        assert ours <= there, rule["alert"]


@pytest.mark.parametrize("invariant", INVARIANT_NAMES)
def test_the_rules_tell_of_every_violated_invariant_as_the_webhook_does(invariant: str) -> None:
    rules = YAML(typ="safe").load(RULES.read_text())["groups"][0]["rules"]
    told = [
        (rule["alert"], rule["labels"]["severity"])
        for rule in rules
        for selector in re.findall(r"replication_verdicts\{(.*?)\}", rule["expr"])
        if _takes(selector, {"invariant": invariant, "verdict": "VIOLATED"})
    ]
    assert set(told) == said(answered(verdicts=[verdict(invariant, "VIOLATED")]))
    assert len(told) == 1


def test_the_page_says_which_rules_the_webhook_has_not() -> None:
    page = (project_root() / "docs" / "alerts.md").read_text(encoding="utf-8")
    rules = {
        rule["alert"] for rule in YAML(typ="safe").load(RULES.read_text())["groups"][0]["rules"]
    }
    told, _, lacking = page.partition("It tells of ")[2].partition("The webhook has no ")
    its = set(re.findall(r"\b[A-Z][a-z]+[A-Z]\w+", told.partition(". ")[0]))
    assert its == set(MEANINGS)
    assert its | set(re.findall(r"\b[A-Z][a-z]+[A-Z]\w+", lacking.partition(".")[0])) == rules


def test_promtool_takes_the_rules(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool (Debian: prometheus) is not installed")
    checked = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True)
    assert checked.returncode == 0, checked.stderr
    assert f"{RULES.read_text().count('- alert: ')} rules found" in checked.stdout.decode()
    tried = subprocess.run(
        [promtool, "test", "rules", str(Path(__file__).with_name("alert_rules.yml"))],
        capture_output=True,
        text=True,
    )
    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_probes_are_told_while_the_loop_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Metrics()
    server = job.serve(0)
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        job.turn()
        with urllib.request.urlopen(f"{address}/health", timeout=60) as answer:
            assert answer.status == 200
        with urllib.request.urlopen(f"{address}/metrics", timeout=60) as answer:
            assert b"replication_events_held" in answer.read()
        monkeypatch.setattr("replication.spark.metrics.STANDSTILL_SECONDS", 0.0)
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(f"{address}/health", timeout=60)
        monkeypatch.setattr("replication.spark.metrics.STANDSTILL_SECONDS", 1e9)
        with urllib.request.urlopen(f"{address}/health", timeout=60) as answer:
            assert answer.status == 200
    finally:
        server.shutdown()
        server.server_close()
