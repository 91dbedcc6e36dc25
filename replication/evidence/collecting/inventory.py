"""What of the evidence was recognised, of whom, over which time; what was left aside, and why."""

from typing import Any

from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.collecting.collection import Collection


def inventory(collection: Collection) -> dict[str, Any]:
    """The answer's `inventory`, plain values for JSON.

    `brokers`: per cluster and broker its `logs` (`first_at` and `last_at` in ms since 1970 as they
    were printed, None without a date; `lines` that told something), `directories` and `dumps`.
    `files`: everything else that was recognised. `ignored`: what was left aside.
    """
    shown = collection.unpacked.shown
    brokers: dict[tuple[str, int], dict[str, Any]] = {}

    def of(cluster_id: str, broker: int) -> dict[str, Any]:
        empty: dict[str, Any] = {
            "cluster_id": cluster_id or None,
            "broker": broker,
            "logs": [],
            "directories": [],
            "dumps": [],
        }
        return brokers.setdefault((cluster_id, broker), empty)

    nobodys: list[dict[str, Any]] = []
    for log in sorted(collection.logs, key=lambda log: log.path):
        row = _log(log, shown(log.path), told=collection.time_zone is not None)
        owners = _owners(log)
        for owner in owners:
            of(log.cluster_id, owner)["logs"].append(row)
        if not owners:
            nobodys.append({"path": row["path"], "kind": "broker log, of which broker is not told"})
    for d in sorted(collection.directories, key=lambda d: str(d.directory.path)):
        partitions = {(p.topic, p.partition) for p in d.directory.partitions}
        of(d.cluster_id, d.broker)["directories"].append(
            {
                "path": shown(str(d.directory.path)),
                "known_by": d.known_by,
                "partitions": len(partitions),
                "metadata_log": d.metadata is not None,
                "clean_shutdown": d.directory.clean_shutdown is not None,
            }
        )
    for dump in collection.dumps:
        path = shown(str(min(s.path for s in dump.segments)))
        row = {"path": path, "segments": len(dump.segments)}
        of(dump.cluster_id, dump.broker)["dumps"].append(row)
    kinds = {shown(path): kind for path, kind in collection.recognised.items()}
    kinds |= {shown(str(path)): "event dump" for path in collection.event_dumps}
    return {
        "brokers": [brokers[key] for key in sorted(brokers)],
        "files": [*({"path": p, "kind": k} for p, k in sorted(kinds.items())), *nobodys],
        "archives": sorted(str(path) for path in collection.unpacked.folders),
        "ignored": sorted(
            ({"path": shown(u.path), "reason": shown(u.reason)} for u in collection.ignored),
            key=lambda row: (row["path"], row["reason"]),
        ),
    }


def _owners(log: BrokerLog) -> list[int]:
    """The brokers that lines of the file are of."""
    named = {writer if writer is not None else log.broker for writer in log.writers}
    return sorted(broker for broker in named if broker is not None)


def _log(log: BrokerLog, path: str, *, told: bool) -> dict[str, Any]:
    return {
        "path": path,
        "known_by": log.known_by,
        "lines": log.count,
        "first_at": log.first_at,
        "last_at": log.last_at,
        "minutes_ahead_of_utc": None if log.ahead is None else log.ahead // 60_000,
        "zone_known_by": _zone_known_by(log, told),
    }


def _zone_known_by(log: BrokerLog, told: bool) -> str | None:
    """How the zone of the log's times is known. told: the user said it: they are in UTC then."""
    if log.names_zone:
        return "its time stamps"
    if told:
        return "--time-zone"
    return None if log.ahead is None else "the other evidence"
