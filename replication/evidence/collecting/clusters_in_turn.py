"""Clusters that one installation served in turn, its logs all in one folder.

Whoever empties ZooKeeper or formats storage anew starts another cluster, and the brokers go on
writing into the same files. A start prints its cluster and its broker: what this broker writes
from then on, into whichever file of the folder, is of that cluster until its next start. What
is before its first start, or behind the moment in which controller epochs began anew, is of
nobody knows which.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from replication.evidence.broker_logs.births import Births
from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.packed_facts import Packer
from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.collecting.clusters_apart import of_nobody

# From when on a broker is of which cluster, by its own clock, oldest first; "": nobody knows.
_Turns = list[tuple[int, str]]
# So long after its start a broker decides as controller, at most, where that is its first word.
_UP_WITHIN = 600_000


def clusters_in_turn(
    logs: list[BrokerLog], place: Callable[[Path], Path], notes: list[str]
) -> list[BrokerLog]:
    """The logs, those of installations that served several clusters taken apart.

    place: where a file lies for the user. Left as they are: logs of a folder whose starts do not
    all tell which broker it is that starts.
    """
    folders: dict[Path, list[BrokerLog]] = {}
    for log in logs:
        folders.setdefault(place(Path(log.path)).parent, []).append(log)
    apart: dict[int, list[BrokerLog]] = {}
    for found in folders.values():
        turns = _turns(found)
        if turns:
            apart.update((id(log), _apart(log, turns)) for log in found)
            notes.append(_said(found))
    return [part for log in logs for part in apart.get(id(log), [log])]


def _turns(logs: list[BrokerLog]) -> dict[int, _Turns]:
    """By broker; empty where one cluster is named, or where it is not told whose a start is."""
    one = {w for log in logs for w in log.writers if w is not None}
    only = next(iter(one)) if len(one) == 1 else None
    result: dict[int, _Turns] = {}
    for log in logs:
        for began, cluster, named in log.starts:
            broker = named if named is not None else only
            if broker is None:
                return {}
            result.setdefault(broker, []).append((began, cluster))
    if len({cluster for turns in result.values() for _, cluster in turns}) < 2:
        return {}
    emptied = _emptied(logs)
    for turns in result.values():
        turns += ((at, "") for at in emptied)
        turns.sort()
    return result


def _emptied(logs: list[BrokerLog]) -> list[int]:
    """When ZooKeeper's count of controllers began anew: an epoch below one that was reached, not by
    a controller that had been cut off: it never was one before, or was a later one since."""
    starts = sorted(
        f.at for log in logs for f in log.processes if f.kind == "process_started" and f.at
    )
    terms = sorted(term for log in logs for term in log.controllers)
    result: list[int] = []
    reached: dict[int, int] = {}
    for number, (at, broker, controller_epoch) in enumerate(terms):
        highest = max(reached.values(), default=0)
        later = {term[1:] for term in terms[number + 1 :]}
        goes_on = any(e == highest and (b, e) in later for b, e in reached.items())
        before = reached.get(broker)
        if not goes_on and (
            controller_epoch <= highest if before is None else controller_epoch < before
        ):
            begun = [start for start in starts if at - _UP_WITHIN <= start <= at]
            result.append(begun[-1] if begun else at)
            reached.clear()
        reached[broker] = max(controller_epoch, reached.get(broker, 0))
    return result


def _said(logs: list[BrokerLog]) -> str:
    starts = sorted(start for log in logs for start in log.starts)
    named = ", ".join(dict.fromkeys(cluster for _, cluster, _ in starts))
    return (
        f"{Path(min(log.path for log in logs)).parent}: its logs are of "
        f"clusters {named}, one after the other; each line belongs to the cluster "
        "that the last start before it names"
    )


def _apart(log: BrokerLog, turns: dict[int, _Turns]) -> list[BrokerLog]:
    """One log for each cluster that it tells of, with its lines only."""
    parts: dict[str, _Part] = {}

    def part(fact: LogLineFact) -> _Part:
        cluster = _whose(fact, log.broker, turns)
        return parts.setdefault(cluster, _Part(log, cluster))

    for packed in log.lines:
        for fact in packed:
            part(fact).take(fact)
    for fact in log.processes:
        part(fact).processes.append(fact)
    for fact in log.telling:
        part(fact).telling.append(fact)
    return [found.done() for found in parts.values()]


def _whose(fact: LogLineFact, owner: int | None, turns: dict[int, _Turns]) -> str:
    """The cluster that a line is of. One that names no broker: where all were of the same."""
    broker = fact.broker if fact.broker is not None else owner
    asked = [turns[broker]] if broker in turns else list(turns.values())
    found = {_at(fact.at, each) for each in asked} if fact.at is not None else {""}
    return found.pop() if len(found) == 1 else ""


def _at(at: int, turns: _Turns) -> str:
    which = bisect_right([began for began, _ in turns], at) - 1
    return turns[which][1] if which >= 0 else ""


class _Part:
    """What of a log is one cluster's."""

    def __init__(self, log: BrokerLog, cluster: str) -> None:
        self.log, self.cluster = log, cluster
        self.packer = Packer(log.path)
        self.processes: list[LogLineFact] = []
        self.telling: list[LogLineFact] = []
        self.births = Births()
        self.nobodys = 0
        self.unsure: dict[tuple[str, int] | None, set[int]] = {
            about: brokers for about, brokers in log.unsure.items() if about is None
        }
        self.topic_ids: dict[tuple[int | None, str, str], int | None] = {}
        self.seen: dict[int | None, None] = {}
        self.times: list[int] = []
        self.lines = 0

    def take(self, fact: LogLineFact) -> None:
        """A line about a topic partition."""
        self.lines += 1
        self.packer.add(fact)
        self.births.take(fact)
        self._see(fact)
        if "one_of" in fact.fields:
            self.nobodys += 1
            place = (str(fact.topic), int(fact.partition or 0))
            self.unsure.setdefault(place, set()).update(fact.fields["one_of"])
        if fact.fields.get("topic_id"):
            key = (fact.broker, str(fact.topic), str(fact.fields["topic_id"]))
            self.topic_ids.setdefault(key, fact.at)

    def _see(self, fact: LogLineFact) -> None:
        self.seen[fact.broker] = None
        if fact.at is not None:
            self.times.append(fact.at)

    def done(self) -> BrokerLog:
        in_lines = set(self.topic_ids)
        for fact in self.processes:
            self._see(fact)
            if fact.topic is not None and fact.fields.get("topic_id"):
                key = (fact.broker, fact.topic, str(fact.fields["topic_id"]))
                self.topic_ids.setdefault(key, fact.at)
        log = replace(
            self.log,
            cluster_id=self.cluster,
            cluster_ids=[self.cluster] if self.cluster else [],
            count=self.lines + len(self.processes) or len(self.telling),
            processes=self.processes,
            lines=self.packer.done(),
            writers=list(self.seen),
            topic_ids=self.topic_ids,
            in_lines=in_lines,
            first_at=min(self.times, default=None),
            last_at=max(self.times, default=None),
            telling=self.telling,
            births=self.births,
            nobodys=self.nobodys,
            unsure=self.unsure,
        )
        return log if self.cluster else of_nobody(log)
