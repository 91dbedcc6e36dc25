"""Brokers from which nothing comes any more, while others' lines go on.

A silent broker is not a healthy one: it may have died, or its shipper, and what it did since nobody
told. Time is that of the lines: of logs by what they print, of digests by their machine's clock,
each clock by itself, so that a zone of one does not count against the other.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.collecting.collection import Collection
from replication.protocol.ground.model import moment

Heard = dict[str, dict[str, int]]
"""By "cluster/host": log, digest: milliseconds of the newest line; every: between two digests."""

# A host whose digests come at an interval is silent after so many of them, whatever else was set.
MISSED_ROUNDS = 10
# Whose life ended so has nothing more to tell until its next start. KRaft brokers' logs break off
# while stopping.
_ENDED = ("process_signalled", "stopping", "stopped_cleanly")


def moment_of(stamp: str, zone: tzinfo = UTC) -> int | None:
    """Milliseconds of a log line's stamp, which is printed in that zone."""
    text = stamp.replace(",", ".").replace("T", " ")
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int(at.replace(tzinfo=zone).timestamp() * 1000)


def heard_of(
    before: Mapping[str, Mapping[str, int]], now: Mapping[str, Mapping[str, int]]
) -> Heard:
    """Both together: of each clock its newest moment."""
    found: Heard = {host: dict(clocks) for host, clocks in before.items()}
    for host, clocks in now.items():
        known = found.setdefault(host, {})
        for clock, at in clocks.items():
            known[clock] = at if clock == "every" else max(at, known.get(clock, at))
    return found


def silent_hosts(heard: Mapping[str, Mapping[str, int]], bound: float) -> dict[str, int]:
    """Of one cluster's hosts those that are silent: host -> when it was heard of the last time.

    bound: seconds without a line on any of its clocks, while another host went on; 0: only digests
    count, by their interval.
    """
    newest = {
        clock: max((c[clock] for c in heard.values() if clock in c), default=0)
        for clock in ("log", "digest")
    }
    found = {}
    for host, clocks in heard.items():
        limits = {"digest": bound * 1000 or MISSED_ROUNDS * clocks.get("every", 0)}
        if bound:
            limits["log"] = bound * 1000
        quiet = [newest[c] - clocks[c] > limit for c, limit in limits.items() if c in clocks]
        if quiet and all(quiet):
            found[host] = max(clocks[c] for c in limits if c in clocks)
    return found


def silent_brokers(
    collection: Collection, cluster: Path, heard: Mapping[str, Mapping[str, int]], bound: float
) -> dict[int, str]:
    """Broker -> what is missing of it, in words. cluster: the folder of its hosts' folders."""
    own = {h.split("/", 1)[1]: c for h, c in heard.items() if h.split("/", 1)[0] == cluster.name}
    silent = silent_hosts(own, bound)
    found: dict[int, str] = {}
    for broker, path in _whose(collection):
        if cluster not in path.parents:
            continue
        host = path.relative_to(cluster).parts[0]
        if host in silent and not _has_ended(collection, broker):
            found[broker] = f"nothing came from it after {moment(silent[host])}"
    return found


def _whose(collection: Collection) -> Iterable[tuple[int, Path]]:
    for log in collection.logs:
        if log.broker is not None:
            yield log.broker, Path(log.path)
    for directory in collection.directories:
        yield directory.broker, directory.directory.path


def _has_ended(collection: Collection, broker: int) -> bool:
    """Whether its lines, or its directory, say that it stopped."""
    own: list[BrokerLog] = [log for log in collection.logs if log.broker == broker]
    steps = sorted(
        (fact.at, fact.kind)
        for log in own
        for fact in log.processes
        if fact.at is not None and fact.kind in (*_ENDED, "process_started")
    )
    clean = [d.directory.clean_shutdown for d in collection.directories if d.broker == broker]
    return bool(steps and steps[-1][1] in _ENDED) or any(c is not None for c in clean)
