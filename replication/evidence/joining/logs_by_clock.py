"""Logs of a broker whose clock was set back: each file's lines apart by clock, and together again.

By which zone and how far ahead each clock was is found out for each by itself (clocks.py). Moved by
that, no stamp falls any more, and the lines are in order of time in their files.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from replication.evidence.broker_logs.births import Births
from replication.evidence.broker_logs.packed_facts import PackedLines, Packer
from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.joining.clock_runs import ClockRuns

Bounds = tuple[int, int]


def apart(logs: Iterable[BrokerLog], runs: ClockRuns) -> list[list[BrokerLog]]:
    """For each clock, what each file holds of its lines."""
    found: list[list[BrokerLog]] = [[] for _ in runs.ends]
    for log in logs:
        for mine, part in zip(found, _parts(log, runs), strict=True):
            mine.append(part)
    return found


def _parts(log: BrokerLog, runs: ClockRuns) -> list[BrokerLog]:
    packers = [Packer(log.path) for _ in runs.ends]
    births = [Births() for _ in runs.ends]
    for fact in (fact for packed in log.lines for fact in packed):
        which = runs.of(fact)
        packers[which].add(fact)
        births[which].take(fact)
    parts = []
    for which, packer in enumerate(packers):
        processes = [f for f in log.processes if runs.of(f) == which]
        lines = packer.done()
        times = [f.at for f in processes if f.at is not None]
        times += [f.at for packed in lines for f in packed if f.at is not None]
        part = replace(
            log,
            lines=lines,
            processes=processes,
            births=births[which],
            topic_ids=_topic_ids(lines, processes, log),
            first_at=min(times, default=None),
            last_at=max(times, default=None),
        )
        parts.append(part)
    return parts


def _topic_ids(
    lines: list[PackedLines], processes: Iterable[object], log: BrokerLog
) -> dict[tuple[int | None, str, str], int | None]:
    """When each topic id was first printed by one clock."""
    found: dict[tuple[int | None, str, str], int | None] = {}
    for fact in (fact for packed in lines for fact in packed):
        printed = fact.fields.get("topic_id")
        if printed and fact.topic is not None:
            key = (fact.broker, fact.topic, str(printed))
            known = found.get(key)
            found[key] = fact.at if known is None else min(known, fact.at or known)
    return found


def together(log: BrokerLog, parts: list[BrokerLog]) -> BrokerLog:
    """A file's parts, moved to one time, in one again."""
    ahead = None if any(part.ahead is None for part in parts) else parts[-1].ahead
    births = Births()
    topic_ids: dict[tuple[int | None, str, str], int | None] = {}
    for part in parts:
        births.add(part.births, None)
        for key, at in part.topic_ids.items():
            topic_ids.setdefault(key, at)
    times = [at for part in parts for at in (part.first_at, part.last_at) if at is not None]
    return replace(
        log,
        lines=[packed for part in parts for packed in part.lines],
        processes=sorted((f for part in parts for f in part.processes), key=lambda f: f.line),
        births=births,
        topic_ids={key: topic_ids.get(key) for key in log.topic_ids},
        first_at=min(times, default=None),
        last_at=max(times, default=None),
        ahead=ahead,
    )


@dataclass(slots=True)
class ClockAhead:
    """One clock's lines: its first and last stamp, by how much it is ahead of UTC if that is known,
    and between which bounds it is, by what other brokers tell; ms."""

    first: int
    last: int
    known: int | None
    bounds: Bounds

    def bounded(self, ahead: int) -> int:
        """What comes nearest within the bounds."""
        least, most = self.bounds
        return ahead if least > most else min(max(ahead, least), most)


def settled(clocks: list[ClockAhead], otherwise: int) -> list[int]:
    """By how much to move each clock's lines, so that each goes on where the one before ended.

    otherwise: what the first one is taken for where nothing tells of any.
    """
    base = next((n for n, clock in enumerate(clocks) if clock.known is not None), 0)
    told = clocks[base].known
    moved = {base: clocks[base].bounded(otherwise) if told is None else told}
    for n in range(base - 1, -1, -1):
        begin = clocks[n + 1].first - moved[n + 1]
        moved[n] = max(clocks[n].bounded(clocks[n].last - begin + 1), clocks[n].last - begin + 1)
    for n in range(base + 1, len(clocks)):
        end = clocks[n - 1].last - moved[n - 1]
        told, follows = clocks[n].known, clocks[n].first - end - 1
        moved[n] = min(clocks[n].bounded(follows) if told is None else told, follows)
    return [moved[n] for n in range(len(clocks))]
