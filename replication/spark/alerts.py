"""What people are told when the answer changes: which alerts are active, and words that lead to
proof.

No Spark in here. An alert is named by its labels; told is each change of its status or severity,
once. What was told is kept on disk: a process that is killed between telling and noting tells it
again, under the same fingerprint and notification id.
"""

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from replication.places import Place, rename
from replication.protocol.ground.model import moment
from replication.spark.topic_partition_ids import parts_of

Row = dict[str, Any]
FIRING, RESOLVED = "firing", "resolved"
CRITICAL, WARNING = "critical", "warning"
PROMISED = ("consumed", "acknowledged_by_isr", "committed")
# A danger of promised records that nobody else holds is critical when it has stood for so long:
# every restart makes shorter ones.
CRITICAL_AFTER_MS = 60_000
# One alert of an alert's name and partition speaks for all of its rows; this many are named.
MOST_TOLD = 5
# Which alert a row of the loss ledger is told by, by its status, and how its summary goes on.
LOSSES = {
    "lost": "RecordsLost", "recoverable": "RecordsRecoverable",
    "undetermined": "RecordsUndetermined",
}  # fmt: skip
OUTCOMES = {
    "RecordsLost": "are lost", "RecordsRecoverable": "can be saved",
    "RecordsUndetermined": "may be lost",
}  # fmt: skip
# Why the check of the same loss is more severe.
NOT_PROMISED = (
    " Nothing says that Kafka had promised to keep them, so this is a warning; check_quality fails "
    "as critical where they were committed, for they are missing from the topic."
)
MEANINGS = {
    "RecordsAtRisk": "One failure would lose these records, or make a replica leader that lacks "
    "them. Do not restart the brokers that are named, nor replace their disks, before what ends "
    "the danger has come.",
    "RecordsLost": "Records are gone from the leader and from every replica that is known.",
    "RecordsRecoverable": "Records are gone from the leader, and a replica still holds them. Save "
    "that replica's directory before it follows or is restarted.",
    "RecordsUndetermined": "Records were missing under a leader. Whether a replica still holds "
    "them, or they are back, nothing tells yet: ship the lines and digests of every replica.",
    "ReplicasDiverged": "Replicas hold different records at one offset: consumers read other "
    "records after the next change of the leader.",
    "InvariantViolated": "Replication has not kept a promise that it makes in every release.",
    "BrokerSilent": "Nothing comes from this broker any more, while others go on: it has died, or "
    "its shipper. What rests on it is UNKNOWN.",
}


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that somebody should know of. starts_at: ISO 8601, None where no time is told."""

    labels: Mapping[str, str]
    severity: str
    annotations: Mapping[str, str]
    starts_at: str | None = None

    @property
    def fingerprint(self) -> str:
        """What names it, the same in every process."""
        text = json.dumps(sorted(self.labels.items()))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(slots=True)
class Answer:
    """The rows that alerts are made of, by topic partition, as the fold writes them.

    silent: by cluster the brokers from which nothing comes, None before any line was taken.
    clock: the newest event's time, in milliseconds. names: a cluster's readable name by its id.
    tables: where the tables are, as a command takes it.
    """

    at_risk: dict[str, list[Row]] = field(default_factory=dict)
    loss_ledger: dict[str, list[Row]] = field(default_factory=dict)
    verdicts: dict[str, list[Row]] = field(default_factory=dict)
    silent: dict[str, dict[int, str]] | None = None
    clock: int | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    tables: str = "TABLES"

    def put(self, table: str, topic_partition_id: str, rows: Iterable[Row]) -> None:
        """Takes a topic partition's rows of one table, all of them."""
        kept = [row for row in rows if _matters(table, row)]
        of_table: dict[str, list[Row]] = getattr(self, table)
        of_table.pop(topic_partition_id, None)
        if kept:
            of_table[topic_partition_id] = kept


TABLES = ("at_risk", "loss_ledger", "verdicts")


def _matters(table: str, row: Row) -> bool:
    if table == "at_risk":
        return not row["over"]
    if table == "verdicts":
        return bool(row["verdict"] != "HOLDS")
    return row["status"] in LOSSES


def alerts_of(answer: Answer) -> list[Alert]:
    """Every active alert."""
    found = [
        _at_risk(answer, name, [r for r in rows if r["tier"] != "undetermined"])
        for name, rows in answer.at_risk.items()
    ]
    for name, rows in answer.loss_ledger.items():
        losses: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            losses.setdefault((LOSSES[row["status"]], told_epoch(row)), []).append(row)
        found += [_lost(answer, kind, name, epoch, of) for (kind, epoch), of in losses.items()]
    for name, rows in answer.verdicts.items():
        found += [_violated(answer, name, r) for r in rows if r["verdict"] == "VIOLATED"]
    for cluster, brokers in (answer.silent or {}).items():
        found += [_silent(answer, cluster, b, words) for b, words in brokers.items()]
    return [alert for alert in found if alert is not None]


def _at_risk(answer: Answer, name: str, rows: list[Row]) -> Alert | None:
    if not rows:
        return None
    alone = [r for r in rows if r["tier"] in PROMISED and not r["holders"]]
    begun = [r["since"] for r in rows if r["since"]]
    stood = min((at for r in alone if (at := _milliseconds(r["since"])) is not None), default=None)
    old = answer.clock is not None and stood is not None
    critical = old and (answer.clock or 0) - (stood or 0) >= CRITICAL_AFTER_MS
    told = [
        f"if {' and '.join(r['failures']) or 'broker ' + str(r['next_leader']) + ' is elected'} "
        f"now, offsets {r['first_offset']}..{r['end_offset'] - 1} ({r['tier']}) are lost "
        f"({r['cause']}); {r['one_more_failure']}. {r['ends_when']}"
        for r in rows
    ]
    return _alert(
        answer, "RecordsAtRisk", name, CRITICAL if critical else WARNING,
        f"one failure away from losing records of {_short(name)}", told,
        f"SELECT * FROM at_risk WHERE NOT over AND topic_partition_id = '{name}'",
        min(begun, default=None),
    )  # fmt: skip


def told_epoch(row: Row) -> str:
    """What tells one loss of a partition from the next, and stays the same as evidence grows: the
    leader epoch in which a broker was the first to lead without the records; "": not known."""
    epoch = row.get("next_leader_epoch")  # Rows of 0.2 have none.
    return "" if epoch is None else str(epoch)


def _lost(answer: Answer, kind: str, name: str, epoch: str, rows: list[Row]) -> Alert:
    promised = any(r["contract"] == "broken" for r in rows)
    urgent = kind == "RecordsRecoverable" or (kind == "RecordsLost" and promised)
    told = [
        f"offsets {r['first_offset']}..{r['end_offset'] - 1} ({r['tier']}, {r['status']}): "
        f"{r['cause']}, contract {r['contract']}; finding {r['finding_id']}"
        for r in rows
    ]
    is_milder = kind == "RecordsLost" and not promised
    return _alert(
        answer, kind, name, CRITICAL if urgent else WARNING, f"records of {_short(name)} "
        f"{OUTCOMES[kind]}", told,
        f"SELECT * FROM lost_records WHERE topic_partition_id = '{name}'",
        more={"next_leader_epoch": epoch} if epoch else None, why=NOT_PROMISED if is_milder else "",
    )  # fmt: skip


def _violated(answer: Answer, name: str, row: Row) -> Alert | None:
    if row["invariant"].endswith("_survive"):
        return None  # The loss ledger says more.
    differ = row["invariant"] == "log_matching"
    return _alert(
        answer, "ReplicasDiverged" if differ else "InvariantViolated", name,
        CRITICAL if differ else WARNING,
        f"{row['invariant']} is violated in {_short(name)}", [row["reason"] or ""],
        f"SELECT * FROM findings WHERE topic_partition_id = '{name}'",
        more={"invariant": row["invariant"]},
    )  # fmt: skip


def _silent(answer: Answer, cluster: str, broker: int, words: str) -> Alert:
    labels = {"alertname": "BrokerSilent", "cluster": cluster, "broker": str(broker),
              "cluster_name": answer.names.get(cluster, cluster)}  # fmt: skip
    return Alert(labels, WARNING, {
        "summary": f"broker {broker} of {cluster} is silent",
        "description": f"{MEANINGS['BrokerSilent']} {words}.",
        "runbook": f"Does broker {broker} run? Does its shipper? Proof: SELECT * FROM verdicts "
        f"WHERE cluster_id = '{cluster}' AND reason LIKE '%broker {broker} (%'",
    })  # fmt: skip


def _alert(
    answer: Answer, kind: str, name: str, severity: str, summary: str, told: list[str], sql: str,
    starts_at: str | None = None, more: Mapping[str, str] | None = None, why: str = "",
) -> Alert:  # fmt: skip
    cluster, topic, _, partition, incident = parts_of(name)
    labels = {
        "alertname": kind, "cluster": cluster, "cluster_name": answer.names.get(cluster, cluster),
        "topic": topic, "partition": str(partition), "topic_partition_id": name,
        **({"incident": incident} if incident else {}), **(more or {}),
    }  # fmt: skip
    rest = [f"and {len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else []
    return Alert(labels, severity, {
        "summary": summary,
        "description": f"{MEANINGS[kind]} {'. '.join([*told[:MOST_TOLD], *rest])}.{why}",
        "runbook": f"{MEANINGS[kind]} Proof: {sql}; the whole story: replication-report --tables "
        f"{shlex.quote(answer.tables)} --topic {shlex.quote(topic)} --out page.html",
    }, starts_at)  # fmt: skip


def _short(name: str) -> str:
    cluster, topic, _, partition, incident = parts_of(name)
    place = f"{topic}-{partition} of {cluster}" if cluster else f"{topic}-{partition}"
    return f"{place}, incident {incident}" if incident else place


def _milliseconds(text: str | None) -> int | None:
    if text is None:
        return None
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


@dataclass(slots=True)
class Outbox:
    """What receivers were last told about each alert, and what they have to be told now. path:
    where that is kept."""

    path: Place
    told: dict[str, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            self.told = json.loads(self.path.read_text(encoding="utf-8"))

    def due(self, standing: Iterable[Alert], keeps: Iterable[str] = ()) -> list[Row]:
        """Alerts as a webhook has them whose status or severity nobody has been told yet.

        keeps: names of alerts that are not known to be over, since nothing was looked at yet.
        """
        found, seen = [], set()
        for alert in sorted(standing, key=lambda a: sorted(a.labels.items())):
            seen.add(alert.fingerprint)
            known = self.told.get(alert.fingerprint)
            if known is None or known["labels"]["severity"] != alert.severity:
                found.append(_shown(alert, known))
        for fingerprint, known in sorted(self.told.items()):
            if fingerprint not in seen and known["labels"]["alertname"] not in set(keeps):
                ended = datetime.now(UTC).isoformat(timespec="milliseconds")
                found.append({**known, "status": RESOLVED, "endsAt": ended})
        return found

    def was_told(self, rows: Iterable[Row]) -> None:
        """Notes what has been told. Raises OSError."""
        for row in rows:
            if row["status"] == RESOLVED:
                self.told.pop(row["fingerprint"], None)
            else:
                self.told[row["fingerprint"]] = row
        unfinished = self.path.with_name(f".{self.path.name}.unfinished")
        unfinished.write_text(json.dumps(self.told, sort_keys=True), encoding="utf-8")
        rename(unfinished, self.path)


def _shown(alert: Alert, known: Row | None) -> Row:
    begun = known["startsAt"] if known is not None else alert.starts_at
    return {
        "status": FIRING,
        "labels": {**alert.labels, "severity": alert.severity},
        "annotations": dict(alert.annotations),
        "startsAt": begun or moment(int(datetime.now(UTC).timestamp() * 1000)),
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "",
        "fingerprint": alert.fingerprint,
    }


def payload(rows: list[Row]) -> Row:
    """Rows as one notification in the format of Alertmanager's webhook receiver, version 4.

    notification_id is the same when the same is told again.
    """
    firing = any(r["status"] == FIRING for r in rows)
    told = sorted((r["fingerprint"], r["status"], r["labels"]["severity"]) for r in rows)
    return {
        "version": "4",
        "groupKey": "{}:{}",
        "truncatedAlerts": 0,
        "status": FIRING if firing else RESOLVED,
        "receiver": "replication-analyzer",
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "",
        "notification_id": hashlib.blake2b(json.dumps(told).encode(), digest_size=8).hexdigest(),
        "alerts": rows,
    }
