"""Brokers from which nothing comes any more, while others' lines go on.

A silent broker is not a healthy one: it may have died, or its shipper, and what it did since nobody
told. Time is that of the lines: of logs by what they print, of digests by their machine's clock,
each clock by itself, so that a zone of one does not count against the other. It is never later than
the clock of the job: a host whose lines are counts as heard of when they came, and tells nothing of
what time it is, unless all hosts do so.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.collecting.collection import Collection
from replication.protocol.ground.model import moment

Heard = dict[str, dict[str, int]]
"""By "cluster/host": log, digest: milliseconds of the newest line; every: between two digests.
log_ahead, digest_ahead: the newest line was so many milliseconds later than the clock of the job,
and counts as printed when it came."""

CLOCKS = ("log", "digest")
# Clocks of a fleet differ by less.
AHEAD_MS = 300_000

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
    before: Mapping[str, Mapping[str, int]], now: Mapping[str, Mapping[str, int]], clock: int
) -> Heard:
    """Both together: of each clock its newest moment. now: as the lines tell. clock: of the job,
    milliseconds, when what is new came."""
    found: Heard = {host: dict(clocks) for host, clocks in before.items()}
    for known in found.values():
        for name in CLOCKS:
            if known.get(name, 0) > clock + AHEAD_MS:  # Kept by an earlier release.
                _hear(known, name, known[name], clock)
    for host, clocks in now.items():
        known = found.setdefault(host, {})
        if "every" in clocks:
            known["every"] = clocks["every"]
        for name in CLOCKS:
            if name in clocks:
                _hear(known, name, clocks[name], clock)
    return found


def _hear(known: dict[str, int], name: str, at: int, clock: int) -> None:
    """Takes the newest moment of one of a host's clocks."""
    lead = f"{name}_ahead"
    if at > clock + AHEAD_MS:
        known[name], known[lead] = clock, max(at - clock, known.get(lead, 0))
        return
    # What came before was no moment of this clock.
    was_ahead = known.pop(lead, None) is not None
    known[name] = min(at, clock) if was_ahead else max(min(at, clock), known.get(name, 0))


def ahead_of(heard: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Host -> by how many milliseconds its newest line was later than the clock of the job."""
    found = {
        host: max(clocks.get(f"{name}_ahead", 0) for name in CLOCKS)
        for host, clocks in heard.items()
    }
    return {host: lead for host, lead in found.items() if lead}


def newest_of(heard: Iterable[Mapping[str, int]], name: str) -> int:
    """The newest moment of one clock of several hosts; 0: none. Hosts whose lines are later than
    the clock of the job are asked only where all are so."""
    told = [clocks for clocks in heard if name in clocks]
    sound = [clocks for clocks in told if f"{name}_ahead" not in clocks]
    return max((clocks[name] for clocks in sound or told), default=0)


def silent_hosts(heard: Mapping[str, Mapping[str, int]], bound: float) -> dict[str, int]:
    """Of one cluster's hosts those that are silent: host -> when it was heard of the last time.

    bound: seconds without a line on any of its clocks, while another host went on; 0: only digests
    count, by their interval.
    """
    newest = {clock: newest_of(heard.values(), clock) for clock in CLOCKS}
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
