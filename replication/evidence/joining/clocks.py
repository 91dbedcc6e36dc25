"""How far a broker log's clock is ahead of UTC, by what it and the other evidence both show.

Kafka's own layout prints local time without a zone; records, acknowledgements and the metadata log
carry UTC. A record of a leader epoch was written after that epoch's first line and before the
next one's; a new partition's first record after its log was created, and a log's newest record
before its broker stopped: so of all offsets that zones have, few fit. The date in meta.properties
names the zone, by letters that stand for one or a few. Where just one offset fits all, it is taken.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.packed_facts import PackedLines
from replication.evidence.clients.client_logs import Acknowledgement
from replication.evidence.collecting.broker_text_log import BrokerLog
from replication.evidence.collecting.collection import BrokerDirectory
from replication.evidence.joining.clock_runs import ClockRuns, SetBack, clock_runs
from replication.evidence.joining.logs_by_clock import ClockAhead, apart, settled, together
from replication.evidence.log_directories.log_directory import PartitionDirectory
from replication.evidence.metadata_log.history import MetadataHistory
from replication.evidence.zookeeper.history import ZooKeeperHistory

_MINUTE = 60_000
# Every zone's offset is a multiple of it.
_STEP = 15 * _MINUTE
_OFFSETS = tuple(range(-12 * 60 * _MINUTE, 14 * 60 * _MINUTE + 1, _STEP))
# How far clocks of one cluster's machines may differ, and lines lag behind what they tell of.
_TOLERANCE = 3 * _MINUTE
_MOST_BATCHES = 50_000
_ROLE_KINDS = frozenset(("became_leader", "became_follower", "leader_and_isr_received"))

# A date in meta.properties this far from a log's lines may be of the other half of the year.
_SEASON = 7 * 24 * 60 * _MINUTE
_CREATED_WITHIN = _MINUTE

_Term = tuple[str, int, int]
# By (topic, partition): when each leader epoch began.
_Terms = dict[tuple[str, int], dict[int, int]]


class Clocks:
    """What evidence in UTC tells of leader epochs, each a (topic, partition, leader epoch): the
    first and the last moment at which something of it is known to have been."""

    def __init__(
        self,
        directories: Iterable[BrokerDirectory],
        history: MetadataHistory | None,
        zookeeper: ZooKeeperHistory | None,
        acknowledgements: Iterable[Acknowledgement],
    ) -> None:
        self._known: dict[_Term, tuple[int, int]] = {}
        self._exact: dict[_Term, int] = {}
        # The time of each partition's very first record, and the newest of brokers' final copies.
        self._first: dict[tuple[str, int], int] = {}
        self._newest: dict[int, int] = {}
        self._dates: dict[int, list[str]] = {}
        epochs: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        left = _MOST_BATCHES
        for found in directories:
            meta = found.directory.meta
            if meta is not None and meta.written:
                self._dates.setdefault(found.broker, []).append(meta.written)
            if found.directory.clean_shutdown is not None:
                times = [p.max_timestamp or 0 for p in found.directory.partitions]
                known = self._newest.get(found.broker, 0)
                self._newest[found.broker] = max([known, *times])
            for p in found.directory.partitions:
                epochs.setdefault((p.topic, p.partition), []).extend(
                    (s[1], s[2], s[0]) for s in p.spans if s[0] is not None
                )
                if p.batch_count <= left:
                    left -= p.batch_count
                    self._take_batches(p)
        for change in history.changes if history is not None else ():
            after = change.after
            if change.at and after.topic is not None:
                key = (after.topic, after.partition, after.leader_epoch)
                self._exact[key] = min(change.at, self._exact.get(key, change.at))
        for life in zookeeper.topics if zookeeper is not None else ():
            for state in (s for states in life.states.values() for s in states):
                key = (state.topic, state.partition, state.leader_epoch)
                self._exact[key] = min(state.at, self._exact.get(key, state.at))
        for a in acknowledgements:
            if a.ts is None or a.offset is None or a.status != "acked":
                continue
            of = {
                e
                for first, end, e in epochs.get((a.topic, a.partition), ())
                if first <= a.offset < end
            }
            if len(of) == 1:
                self._widen((a.topic, a.partition, of.pop()), a.ts)

    def _take_batches(self, partition: PartitionDirectory) -> None:
        for batch in partition.iter_batches():
            if batch.base_offset == 0 and batch.max_timestamp:
                place = (partition.topic, partition.partition)
                first = self._first.get(place, batch.max_timestamp)
                self._first[place] = min(first, batch.max_timestamp)
            if batch.leader_epoch is not None and batch.max_timestamp and not batch.is_control:
                key = (partition.topic, partition.partition, batch.leader_epoch)
                self._widen(key, batch.max_timestamp)

    def _widen(self, key: _Term, at: int) -> None:
        first, last = self._known.get(key, (at, at))
        self._known[key] = (min(first, at), max(last, at))

    def in_utc(self, logs: Iterable[BrokerLog], notes: list[str]) -> list[BrokerLog]:
        """The logs with their times in UTC; as they are where they are so, or where nothing tells.

        A broker's logs have one clock; those that tell nothing have that of all that do. Where it
        was set back they have several, one after the other.
        """
        logs = list(logs)
        groups = _by_broker(logs)
        set_back = clocks_set_back(logs)
        found = {n: self._ahead(mine) for n, mine in groups.items() if n not in set_back}
        told = {ahead for ahead in found.values() if ahead is not None}
        of_all = next(iter(told)) if len(told) == 1 else None
        moved: dict[int, BrokerLog] = {}
        for name, ahead in found.items():
            ahead = of_all if ahead is None else ahead
            for log in groups[name]:
                log.ahead = ahead
                moved[id(log)] = _moved_log(log)
            if ahead:
                notes.append(_local(groups[name][0].path, len(groups[name]) - 1, ahead))
        others = [moved.get(id(log), log) for log in logs]
        return self.in_order(others, set_back, notes, of_all or 0)

    def in_order(
        self,
        logs: list[BrokerLog],
        set_back: dict[object, ClockRuns],
        notes: list[str],
        otherwise: int = 0,
    ) -> list[BrokerLog]:
        """The logs, those of brokers whose clocks were set back moved so that no stamp falls.

        All others are in UTC. otherwise: how far ahead such a clock was where nothing tells.
        """
        groups = _by_broker(logs)
        others = _earliest(
            log for name, mine in groups.items() if name not in set_back for log in mine
        )
        moved: dict[int, BrokerLog] = {}
        for name, runs in set_back.items():
            notes += [_said(name, step) for step in runs.set_back]
            settled_logs = self._settled(groups[name], runs, others, otherwise)
            moved.update(zip(map(id, groups[name]), settled_logs, strict=True))
        return [moved.get(id(log), log) for log in logs]

    def _settled(
        self, logs: list[BrokerLog], runs: ClockRuns, others: _Terms, otherwise: int
    ) -> list[BrokerLog]:
        """The logs of a broker whose clock was set back, moved so that no stamp falls."""
        by_clock = apart(logs, runs)
        clocks = []
        for parts in by_clock:
            begun = _begun(lines for part in parts for lines in part.lines)
            times = [t for p in parts for t in (p.first_at, p.last_at) if t is not None]
            known = self._ahead(parts)
            bounds = _between(begun, others)
            clocks.append(ClockAhead(min(times, default=0), max(times, default=0), known, bounds))
        for parts, clock, ahead in zip(by_clock, clocks, settled(clocks, otherwise), strict=True):
            for number, part in enumerate(parts):
                part.ahead = ahead
                parts[number] = _moved_log(part)
                parts[number].ahead = clock.known
        return [
            together(log, list(parts))
            for log, parts in zip(logs, zip(*by_clock, strict=True), strict=True)
        ]

    def _ahead(self, logs: list[BrokerLog]) -> int | None:
        """The one offset that fits all that both sides show; None where none does or several do."""
        if all(log.names_zone for log in logs):
            return 0
        least, most = _OFFSETS[0] - _TOLERANCE, _OFFSETS[-1] + _TOLERANCE
        told = 0
        begun = _begun(lines for log in logs for lines in log.lines)
        for low, high in (*self._bounds(begun), *self._by_first_and_last(logs, begun)):
            told += 1
            least, most = max(least, low), min(most, high)
        fitting = [offset for offset in _OFFSETS if least <= offset <= most] if told else []
        dated = self._by_dates(logs)
        both = [offset for offset in dated if offset in fitting or not told]
        if both:
            return both[0] if len(both) == 1 else None
        if 0 in fitting and not dated:
            return 0
        return fitting[0] if len(fitting) == 1 else None

    def _by_dates(self, logs: list[BrokerLog]) -> list[int]:
        """The offsets that the dates in the broker's meta.properties leave possible."""
        possible: set[int] | None = None
        wrote = {w if w is not None else log.broker for log in logs for w in log.writers}
        for text in (d for w in wrote if w is not None for d in self._dates.get(w, ())):
            at, offsets = dated(text)
            near = any(
                log.first_at is not None
                and log.last_at is not None
                and log.first_at - _SEASON <= at <= log.last_at + _SEASON
                for log in logs
            )
            named = offsets if near else {o + d for o in offsets for d in (-60, 0, 60)}
            possible = named if possible is None else possible & named
        return sorted(o * _MINUTE for o in possible or ())

    def _by_first_and_last(
        self, logs: list[BrokerLog], begun: dict[tuple[str, int], dict[int, int]]
    ) -> Iterator[tuple[int, int]]:
        """Bounds by what needs no leader epochs: 0.10's records name none."""
        widest = 2 * _OFFSETS[-1]
        for log in logs:
            for packed in log.lines:
                _, topic, partition = packed.about
                assert topic is not None
                assert partition is not None
                first = self._first.get((topic, partition))
                initial = begun.get((topic, partition), {}).get(0)
                if first is None or initial is None:
                    continue
                for fact in packed:
                    if fact.kind == "log_created" and _is_near(fact.at, initial):
                        yield initial - first - _TOLERANCE, widest
        stops = [
            fact.at
            for log in logs
            for fact in log.processes
            if fact.kind == "stopped_cleanly" and fact.at is not None
        ]
        newest = self._newest.get(logs[0].broker) if logs[0].broker is not None else None
        if stops and newest and max(stops) == max(log.last_at or 0 for log in logs):
            yield -widest, max(stops) - newest + _TOLERANCE

    def _bounds(self, begun: dict[tuple[str, int], dict[int, int]]) -> Iterator[tuple[int, int]]:
        """Between which a log's offset must lie, by each epoch that both sides know."""
        widest = 2 * _OFFSETS[-1]
        for (topic, partition), epochs in begun.items():
            numbers = sorted(epochs)
            for index, number in enumerate(numbers):
                key = (topic, partition, number)
                exact = self._exact.get(key)
                if exact is not None and index:
                    # The first epoch of a log may have begun before the log does.
                    yield epochs[number] - exact - _TOLERANCE, epochs[number] - exact + _TOLERANCE
                known = self._known.get(key)
                if known is None:
                    continue
                if index:
                    yield epochs[number] - known[0] - _TOLERANCE, widest
                if index + 1 < len(numbers):
                    yield -widest, epochs[numbers[index + 1]] - known[1] + _TOLERANCE


# What Java calls zones, in minutes ahead of UTC; letters that stand for several have all of them.
_LETTERS = {
    "UTC": {0}, "GMT": {0}, "WET": {0}, "WEST": {60}, "BST": {60, 360}, "IST": {330, 60, 120},
    "CET": {60}, "MEZ": {60}, "CEST": {120}, "MESZ": {120}, "EET": {120}, "EEST": {180},
    "MSK": {180}, "TRT": {180}, "GST": {240}, "PKT": {300}, "ICT": {420}, "WIB": {420},
    "SGT": {480}, "HKT": {480}, "CST": {-360, 480}, "CDT": {-300, 540}, "JST": {540}, "KST": {540},
    "AEST": {600}, "AEDT": {660}, "ACST": {570}, "ACDT": {630}, "AWST": {480}, "NZST": {720},
    "NZDT": {780}, "SAST": {120}, "BRT": {-180}, "ART": {-180}, "NST": {-210}, "NDT": {-150},
    "AST": {-240}, "ADT": {-180}, "EST": {-300, 600}, "EDT": {-240, 660}, "MST": {-420},
    "MDT": {-360}, "PST": {-480}, "PDT": {-420}, "AKST": {-540}, "AKDT": {-480}, "HST": {-600},
}  # fmt: skip
_BY_NUMBER = re.compile(r"(?:GMT|UTC)?([+-])(\d\d):?(\d\d)")


def dated(text: str) -> tuple[int, set[int]]:
    """A date as java.util.Date prints it: its wall clock as if in UTC, ms since 1970, and the
    offsets in minutes that its zone may stand for."""
    _, month, day, time, zone, year = text.split()
    try:
        at = datetime.strptime(f"{year} {month} {day} {time}", "%Y %b %d %H:%M:%S")
    except ValueError:
        return 0, set()
    number = _BY_NUMBER.fullmatch(zone)
    if number:
        minutes = int(number[2]) * 60 + int(number[3])
        offsets = {-minutes if number[1] == "-" else minutes}
    else:
        offsets = _LETTERS.get(zone, set())
    return int(at.replace(tzinfo=UTC).timestamp() * 1000), offsets


def _is_near(at: int | None, other: int) -> bool:
    return at is not None and abs(at - other) <= _CREATED_WITHIN


def _begun(lines: Iterable[PackedLines]) -> _Terms:
    """Per partition when each leader epoch is first named by a line about the broker's own role."""
    result: dict[tuple[str, int], dict[int, int]] = {}
    for packed in lines:
        for fact in packed:
            number = fact.fields.get("leader_epoch")
            if fact.kind in _ROLE_KINDS and fact.at is not None and isinstance(number, int):
                assert fact.topic is not None
                assert fact.partition is not None
                epochs = result.setdefault((fact.topic, fact.partition), {})
                epochs[number] = min(fact.at, epochs.get(number, fact.at))
    return result


def clocks_set_back(logs: Iterable[BrokerLog]) -> dict[object, ClockRuns]:
    """By which clocks the brokers wrote their logs whose clocks were set back."""
    found = {
        name: clock_runs(mine)
        for name, mine in _by_broker(logs).items()
        if all(log.broker is not None and log.speaks_for_one for log in mine)
    }
    return {name: runs for name, runs in found.items() if runs is not None}


def _by_broker(logs: Iterable[BrokerLog]) -> dict[object, list[BrokerLog]]:
    """By broker, those of nobody each by itself."""
    groups: dict[object, list[BrokerLog]] = {}
    for log in logs:
        groups.setdefault(log.path if log.broker is None else log.broker, []).append(log)
    return groups


def _earliest(logs: Iterable[BrokerLog]) -> _Terms:
    """When each leader epoch was first named by any broker whose clock is known, but for the first
    that a broker names, which may have begun before its lines do."""
    found: _Terms = {}
    by_broker: dict[object, list[BrokerLog]] = {}
    for log in logs:
        by_broker.setdefault(log.broker, []).append(log)
    for mine in by_broker.values():
        for place, epochs in _begun(lines for log in mine for lines in log.lines).items():
            known = found.setdefault(place, {})
            for number in sorted(epochs)[1:]:
                known[number] = min(epochs[number], known.get(number, epochs[number]))
    return found


def _between(begun: _Terms, others: _Terms) -> tuple[int, int]:
    """Between which a clock is ahead, by the leader epochs that other brokers name, too: none is
    named before it began, or first named after the next one did."""
    least, most = -(1 << 60), 1 << 60
    for place, epochs in begun.items():
        known = others.get(place, {})
        for number, at in epochs.items():
            if number in known:
                most = min(most, at - known[number] + _TOLERANCE)
            following = min((e for e in known if e > number), default=None)
            if following is not None:
                least = max(least, at - known[following] - _TOLERANCE)
    return least, most


def _said(broker: object, step: SetBack) -> str:
    by = timedelta(seconds=(step.before - step.after) // 1000)
    return (
        f"{step.path} line {step.line}: the clock of broker {broker} was set back, by {by} or "
        "more: its lines count in the order of the file"
    )


def _local(path: str, more: int, ahead: int) -> str:
    hours, minutes = divmod(abs(ahead) // _MINUTE, 60)
    zone = f"UTC{'+' if ahead > 0 else '-'}{hours:02d}:{minutes:02d}"
    others = f" (and {more} more of its broker)" if more else ""
    return (
        f"{path}{others}: local time, {zone}, by what leader epochs and the other evidence show; "
        "--time-zone says otherwise"
    )


def _moved_log(log: BrokerLog) -> BrokerLog:
    ahead = log.ahead
    if not ahead:
        return log
    return replace(
        log,
        lines=[replace(lines, ahead=ahead) for lines in log.lines],
        processes=[_moved(fact, ahead) for fact in log.processes],
        topic_ids={k: None if at is None else at - ahead for k, at in log.topic_ids.items()},
    )


def _moved(fact: LogLineFact, ahead: int) -> LogLineFact:
    return fact if fact.at is None else fact._replace(at=fact.at - ahead)
