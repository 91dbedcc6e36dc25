"""Clusters that one installation served in turn, its logs all in one folder.

Whoever deletes ZooKeeper's data or formats storage anew starts another cluster, and the brokers go
on writing into the same files. Each start prints the id of its cluster: what stands between two
such starts is of the first. A file that names no cluster is laid beside those of its folder.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from replication.evidence.broker_logs.births import Births
from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.packed_facts import PackedLines, Packer
from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.collecting.installations import unrotated

# So long after its start a broker decides as controller, at most, where that is its first word.
_UP_WITHIN = 600_000
# From when on, by the writers' clock, a folder's logs are of which cluster; oldest first.
Turns = list[tuple[int, str]]


def apart_by_cluster(
    logs: Iterable[BrokerLog], place: Callable[[Path], Path], notes: list[str]
) -> list[BrokerLog]:
    """The logs, those of several clusters taken apart. place: where a file lies for the user."""
    folders: dict[Path, list[BrokerLog]] = {}
    for log in logs:
        folders.setdefault(place(Path(log.path)).parent, []).append(log)
    result: list[BrokerLog] = []
    for found in folders.values():
        by_name: dict[str, list[BrokerLog]] = {}
        for log in found:
            by_name.setdefault(unrotated(Path(log.path).name), []).append(log)
        own = {name: _turns(pieces, found) for name, pieces in by_name.items()}
        of_all = _of_folder(found, own)
        for name, pieces in by_name.items():
            for log in pieces:
                result += _apart(log, own[name] or of_all)
        notes += _said(found, [*own.values(), of_all])
    return result


def _turns(logs: list[BrokerLog], controllers: Iterable[BrokerLog] = ()) -> Turns:
    """When which cluster's turn began, by all starts that these logs print.

    controllers: logs whose controllers tell when ZooKeeper was emptied. From then on it is the
    cluster that the next start names.
    """
    named = sorted(start for log in logs for start in log.clusters)
    starts = sorted(f.at for log in logs for f in log.processes if _is_start(f) and f.at)
    emptied = [_start_before(at, starts) for at in _emptied(controllers)] if named else []
    told = []
    for number, at in enumerate(emptied):
        end = emptied[number + 1] if number + 1 < len(emptied) else None
        following = [n for n in named if at <= n[0] and (end is None or n[0] < end)]
        told += [(at, cluster) for _, cluster in following[:1]]
    result: Turns = []
    for began, cluster in sorted([*named, *told]):
        if not result or result[-1][1] != cluster:
            result.append((began, cluster))
    return result


def _is_start(fact: LogLineFact) -> bool:
    return fact.kind == "process_started"


def _start_before(at: int, starts: list[int]) -> int:
    """When the process started that was controller a little later."""
    before = [start for start in starts if at - _UP_WITHIN <= start <= at]
    return before[-1] if before else at


def _emptied(logs: Iterable[BrokerLog]) -> list[int]:
    """When ZooKeeper's count of controllers began anew: an epoch below one that was reached, and
    of no controller that had been cut off: it never was one before, or has been a later one since.
    """
    reigns = sorted(reign for log in logs for reign in log.controllers)
    result: list[int] = []
    reached: dict[int, int] = {}
    for number, (at, broker, epoch) in enumerate(reigns):
        highest = max(reached.values(), default=0)
        goes_on = any(reached.get(b, -1) == e == highest for _, b, e in reigns[number + 1 :])
        if epoch < reached.get(broker, 0) or (
            epoch <= highest and reached.get(broker) is None and not goes_on
        ):
            result.append(at)
            reached.clear()
        reached[broker] = max(epoch, reached.get(broker, epoch))
    return result


def _of_folder(logs: list[BrokerLog], own: dict[str, Turns]) -> Turns:
    """The turns of all logs of a folder; none where files of different names were of different
    clusters at one time."""
    result = _turns(logs, logs)
    at_once = any(
        own[name] and _whose(log.last_at, own[name]) != _whose(log.last_at, result)
        for name, log in ((unrotated(Path(log.path).name), log) for log in logs)
    )
    return [] if at_once else result


def _said(logs: list[BrokerLog], turns: list[Turns]) -> list[str]:
    """A note where logs of the folder are of several clusters."""
    several = [t for t in turns if len({cluster for _, cluster in t}) > 1]
    if not several:
        return []
    named = ", ".join(dict.fromkeys(cluster for t in several for _, cluster in t))
    return [
        f"{Path(min(log.path for log in logs)).parent}: its logs are of clusters {named} in turn, "
        "by the ids that starts print; each line is of the cluster of the start before it"
    ]


def _apart(log: BrokerLog, turns: Turns) -> list[BrokerLog]:
    """One log for each cluster whose turns it covers, its own lines only."""
    if not turns:
        return [log]
    first, last = (_whose(at, turns) for at in (log.first_at, log.last_at))
    if first == last and len({c for _, c in log.clusters}) < 2 and _is_within(log, turns):
        return [replace(log, cluster_id=log.cluster_id or first)]
    parts = {cluster: _Part(log, cluster) for _, cluster in turns}
    for packed in log.lines:
        for fact in packed:
            parts[_whose(fact.at, turns)].take(fact)
    for fact in log.processes:
        parts[_whose(fact.at, turns)].processes.append(fact)
    for fact in log.telling:
        parts[_whose(fact.at, turns)].telling.append(fact)
    return [part.done() for part in parts.values() if part.count]


def _whose(at: int | None, turns: Turns) -> str:
    """Whose turn it was; what is older than every start is of the first."""
    which = 0 if at is None else bisect_right([began for began, _ in turns], at) - 1
    return turns[max(which, 0)][1]


def _is_within(log: BrokerLog, turns: Turns) -> bool:
    """Whether no other turn began while the log was written."""
    return log.last_at is None or not any(
        log.first_at is not None and log.first_at < began <= log.last_at for began, _ in turns[1:]
    )


class _Part:
    """What of a log is one cluster's."""

    def __init__(self, log: BrokerLog, cluster: str) -> None:
        self.log, self.cluster = log, cluster
        self.packer = Packer(log.path)
        self.processes: list[LogLineFact] = []
        self.telling: list[LogLineFact] = []
        self.births = Births()
        self.seen: dict[int | None, None] = {}
        self.topic_ids: dict[tuple[int | None, str, str], int | None] = {}
        self.times: list[int] = []
        self.lines = self.nobodys = 0
        self.unsure: dict[tuple[str, int] | None, set[int]] = {
            about: brokers for about, brokers in log.unsure.items() if about is None
        }

    @property
    def count(self) -> int:
        return self.lines + len(self.processes)

    def take(self, fact: LogLineFact) -> None:
        """A line about a topic partition."""
        self.lines += 1
        self.packer.add(fact)
        self.births.take(fact)
        self.seen[fact.broker] = None
        if "one_of" in fact.fields:
            self.nobodys += 1
            place = (str(fact.topic), int(fact.partition or 0))
            self.unsure.setdefault(place, set()).update(fact.fields["one_of"])
        if fact.at is not None:
            self.times.append(fact.at)
        if fact.fields.get("topic_id"):
            key = (fact.broker, str(fact.topic), str(fact.fields["topic_id"]))
            self.topic_ids.setdefault(key, fact.at)

    def done(self) -> BrokerLog:
        lines: list[PackedLines] = self.packer.done()
        self.seen.update((fact.broker, None) for fact in self.processes)
        times = [*self.times, *(f.at for f in self.processes if f.at is not None)]
        printed = {
            (f.broker, f.topic, str(f.fields["topic_id"])): f.at
            for f in self.processes
            if f.topic is not None and f.fields.get("topic_id")
        }
        return replace(
            self.log,
            cluster_id=self.cluster,
            count=self.count,
            processes=self.processes,
            lines=lines,
            writers=list(self.seen),
            topic_ids=printed | self.topic_ids,
            in_lines=set(self.topic_ids),
            first_at=min(times, default=None),
            last_at=max(times, default=None),
            telling=self.telling,
            nobodys=self.nobodys,
            unsure=self.unsure,
            births=self.births,
        )
