"""Text logs that tell of several clusters: a disk formatted anew, two clusters' hosts collected.

A process is of one cluster, which it names when it starts. So one broker's file falls into parts at
its starts; of what is before the first one, or behind a start that names none, nobody can say
of which it is. Where several brokers wrote such a file no line of it is anybody's.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.collecting.broker_text_log import BrokerLog, read_log, with_excerpts
from replication.evidence.unreadable import Unreadable

_Facts = Iterable[LogLineFact | Unreadable]


def clusters_apart(
    logs: list[BrokerLog],
    *,
    spread: Callable[..., Iterable[Any]],
    zone: tzinfo,
    folder: Path | None,
    notes: list[str],
) -> list[BrokerLog]:
    """The logs, those of several clusters as one log for each of them; notes: gets what is said."""
    mixed = [log for log in logs if len(log.cluster_ids) > 1]
    if not mixed:
        return logs
    notes += [_said(log) for log in mixed]
    apart = spread(_Reader(zone, folder), mixed)
    found = dict(zip((log.path for log in mixed), apart, strict=True))
    return [part for log in logs for part in found.get(log.path, [log])]


def of_nobody(log: BrokerLog) -> BrokerLog:
    """The log with nothing but the lines that tell something by themselves."""
    telling = [fact._replace(broker=None) for fact in log.telling]
    return BrokerLog(
        log.path, count=log.count, telling=telling, several=True, first_at=log.first_at,
        last_at=log.last_at, names_zone=log.names_zone, damaged=log.damaged, cluster_unknown=True,
    )  # fmt: skip


class _Reader:
    """Reads one log; a class, so that it can be sent to other processes."""

    def __init__(self, zone: tzinfo, folder: Path | None) -> None:
        self.zone, self.folder = zone, folder

    def __call__(self, log: BrokerLog) -> list[BrokerLog]:
        if not log.speaks_for_one:
            return [of_nobody(log)]
        path = Path(log.path)
        starts = list(_starts(with_excerpts(path, self.zone)))
        parts = []
        for cluster_id in ("", *log.cluster_ids):
            facts = of_cluster(with_excerpts(path, self.zone), starts, cluster_id)
            part = read_log(path, facts, self.folder, [])
            part.names_zone, part.damaged = log.names_zone, log.damaged
            part.broker = part.broker if part.broker is not None else log.broker
            # Those of no known cluster are still told line by line.
            parts.append(part if cluster_id else of_nobody(part))
        return [part for part in parts if part.count]


def _starts(facts: _Facts) -> Iterator[tuple[int, str]]:
    """(first line, cluster id or "") of each process, in the order of the file."""
    begin, cluster_id, settings = 0, "", None
    for fact in facts:
        if not isinstance(fact, LogLineFact):
            continue
        if fact.kind == "process_started":
            yield begin, cluster_id
            # 0.10 prints its settings first.
            begin, cluster_id = fact.line if settings is None else settings, ""
        elif fact.kind == "cluster_id":
            cluster_id = str(fact.fields["cluster_id"])
        settings = fact.line if fact.kind == "settings" else None
    yield begin, cluster_id


def of_cluster(facts: _Facts, starts: list[tuple[int, str]], cluster_id: str) -> _Facts:
    """The facts of processes of that cluster. starts: as `_starts` answers them."""
    ends = [*(begin for begin, _ in starts[1:]), None]
    mine = [
        (begin, end)
        for (begin, named), end in zip(starts, ends, strict=True)
        if named == cluster_id
    ]
    for fact in facts:
        if isinstance(fact, LogLineFact) and any(
            begin <= fact.line and (end is None or fact.line < end) for begin, end in mine
        ):
            yield fact


def _said(log: BrokerLog) -> str:
    named = ", ".join(log.cluster_ids)
    if log.speaks_for_one:
        return (
            f"{log.path}: holds lines of {len(log.cluster_ids)} clusters ({named}), told apart "
            "by the starts between them"
        )
    return (
        f"{log.path}: several brokers of {len(log.cluster_ids)} clusters "
        f"({named}) wrote it, and nobody can tell which line is of which cluster: "
        "no verdict uses it. Hand over each host's own log"
    )
