"""A replica's steps by its broker's lines: each a fact, read by the role that the broker has."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.lines_without_effect import loaded_under_one_name, not_obeyed
from replication.evidence.joining.missing_lines import is_covered
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.process_lives import lives_of
from replication.evidence.joining.traces import in_order
from replication.protocol.ground import events as ev

# A start of which nothing follows any more (shipping/settled.py).
SETTLED = "settled"
# A fetcher announces a cut and makes it at once, ms.
_AT_ONCE = 1_000
_REASONS = ("high_watermark", "leader_epoch", "diverging_epoch", "out_of_range")
TRACE_KINDS = frozenset(
    ("log_appended", "leader_high_watermark_updated", "high_watermark_set",
     "fetch_response_received", "follower_log_end_recorded")
)  # fmt: skip


class Step(NamedTuple):
    """`kind`: the line's, "stop", or "life" where a process starts. at: the broker's clock, ms, by
    which the step has its place; shown_at: what the line of its source says, where that differs."""

    kind: str
    fact: ev.Fact | None
    at: int | None
    source: ev.Source | None
    shown_at: int | None = None

    @property
    def printed_at(self) -> int | None:
        """The time of the line that the step was read from."""
        return self.at if self.shown_at is None else self.shown_at


_Answer = tuple[int | None, int | None, int | None]
"""(leader epoch, where the leader ends it, where the follower cuts by that)."""


@dataclass(slots=True)
class _Role:
    """What the lines so far say of the broker: they are read by it.

    prints_leadership, prints_following: its version prints lines of its own for these. cuts_to:
    what a cut follows that no line explains; reason: (when, why) as the fetcher announced the next
    cut; answer: by which answer of its leader. clean: how the process before ended, by what this
    one found; stopped: by its own last lines, the last of them told_by. high_watermark, and before:
    as it leads, the last one that was printed, and the one before that. log_end: where the log
    ended as it was loaded, or by what was printed since, if the broker has neither led nor cut
    since, nor fetched unseen: before it cuts or need not a follower fetches nothing.
    followed: the epoch in which it did first.
    """

    prints_leadership: bool
    prints_following: bool
    cuts_to: str
    leads: bool = False
    leader_epoch: int | None = None
    reason: tuple[int | None, str | None] | None = None
    answer: _Answer | None = None
    clean: bool | None = None
    stopped: str | None = None
    told_by: LogLineFact | None = None
    high_watermark: int | None = None
    before: int | None = None
    version: str | None = None
    log_end: int | None = None
    as_loaded: bool = False
    followed: int | None = None
    obeys: int | None = None

    def begin(self, version: str | None, printed: frozenset[str]) -> None:
        """A process begins: its version, and the kinds of lines that this version prints."""
        self.version = version
        self.prints_leadership = "became_leader" in printed
        self.prints_following = "became_follower" in printed

    def follow(self, leader_epoch: int, log_end: int | None) -> None:
        """It follows in an epoch. From an earlier one it may have fetched; log_end: as printed."""
        if log_end is not None or self.followed not in (None, leader_epoch):
            self.log_end, self.as_loaded = log_end, False
        self.leads, self.leader_epoch = False, leader_epoch
        self.followed = leader_epoch

    def raise_to(self, high_watermark: int) -> None:
        """A line printed how far the high watermark has come."""
        self.before, self.high_watermark = self.high_watermark, high_watermark


def steps_of_lines(evidence: PartitionEvidence, broker: int) -> Iterator[Step]:
    """The replica's steps in the order of its broker's lines, but a log that is made while its
    broker takes up its role on a request, since it found none, was there before it had the role."""
    asked: Step | None = None
    loaded = False
    for step in _as_printed(evidence, broker):
        if step.kind in ("log_loaded", "log_created"):
            loaded = True
            if asked is not None:
                step = step._replace(at=asked.at, shown_at=step.at)
            yield step
            continue
        if asked is not None:
            yield asked
            asked = None
        loaded = loaded and step.kind != "life"
        if step.kind == "leader_and_isr_received" and not loaded:
            asked = step
        else:
            yield step
    if asked is not None:
        yield asked


def _as_printed(evidence: PartitionEvidence, broker: int) -> Iterator[Step]:
    lines = in_order(evidence.lines.get(broker, []), broker)
    role = _Role(False, False, evidence.truncates_by)
    covered: bool | None = None
    lives = lives_of(lines)
    role.begin(*next(lives))
    unsure, passed_by = loaded_under_one_name(lines), not_obeyed(lines)
    for line in lines:
        source = ev.Source(line.path, line.line)
        if line.kind == "process_started":
            if role.leader_epoch is not None or role.stopped:
                yield _stop(broker, line, role)
            role.leads, role.clean, role.stopped, role.log_end = False, None, None, None
            role.told_by = None
            role.obeys, role.followed = None, None
            role.begin(*next(lives))
            yield Step("life", None, line.at, source)
            continue
        if (line.path, line.line) in passed_by or line.fields.get(SETTLED):
            continue
        if line.kind == "truncated" and role.as_loaded:
            # Of the files of its lines one may reach back to its start, and another not.
            covered = is_covered(evidence, broker) if covered is None else covered
            if not covered or (role.followed is None and role.obeys is None):
                role.log_end = None
        fact = _READERS[line.kind](broker, line, role) if line.kind in _READERS else None
        if (line.path, line.line) in unsure:
            role.log_end = None
            fact = ev.ReplicaStarted(broker, None, None, None, role.clean, role.version)
        if fact is not None:
            yield Step(line.kind, fact, line.at, source)
    starts = sum(line.kind == "process_started" for line in lines)
    if role.stopped == "clean" and not any(
        c.broker == broker and c.is_since(starts) for c in evidence.copies
    ):
        # A copy from after the last start tells it better: of what the broker left.
        yield _stop(broker, lines[-1], role)


def _stop(broker: int, start: LogLineFact, role: _Role) -> Step:
    """The end of the process before a start: read from the line that tells of it, or, where it has
    none, as that of a crash, from the start."""
    told = role.told_by or start
    ended = ev.ReplicaStopped(broker, role.stopped or "process_crash")
    return Step("stop", ended, told.at, ev.Source(told.path, told.line))


def _ended(broker: int, line: LogLineFact, role: _Role) -> None:
    role.stopped = "clean" if line.kind == "stopped_cleanly" else "unknown"
    role.told_by = line


def _start_found(broker: int, line: LogLineFact, role: _Role) -> None:
    role.clean = line.kind == "clean_shutdown_found"


def _by_request(broker: int, line: LogLineFact, role: _Role) -> ev.Fact | None:
    """Role changes from LeaderAndIsr requests, where the version prints no line of its own."""
    f = line.fields
    if f.get("leader") is None or f.get("leader_epoch") is None:
        return None
    if role.obeys is not None and f["leader_epoch"] < role.obeys:
        # Of a controller that was overtaken by its next request: it is ignored.
        return None
    role.obeys = f["leader_epoch"]
    leads = f["leader"] == broker
    # With a line of its own it leads from that on: until then its fetchers still append.
    if role.prints_leadership if leads else role.prints_following:
        return None
    if leads:
        role.leads, role.leader_epoch, role.log_end = True, f["leader_epoch"], None
    else:
        role.follow(f["leader_epoch"], None)
    partition_epoch = f.get("partition_epoch")
    if leads:
        return ev.BecameLeader(broker, f["leader_epoch"], partition_epoch=partition_epoch)
    return ev.BecameFollower(
        broker, f["leader_epoch"], f["leader"], partition_epoch=partition_epoch
    )


def _log_loaded(broker: int, line: LogLineFact, role: _Role) -> ev.Fact:
    f = line.fields
    start, end = f.get("log_start_offset"), f.get("log_end_offset")
    role.log_end, role.followed = None if role.leads else end, None
    role.as_loaded = role.log_end is not None
    return ev.ReplicaStarted(broker, start, end, None, role.clean, role.version)


def _log_created(broker: int, line: LogLineFact, role: _Role) -> ev.Fact:
    return ev.ReplicaStarted(broker, 0, 0, None, None, role.version)


def _high_watermark_loaded(broker: int, line: LogLineFact, role: _Role) -> ev.Fact | None:
    value = line.fields.get("high_watermark")
    return ev.CheckpointObserved(broker, value) if value else None


def _became_leader(broker: int, line: LogLineFact, role: _Role) -> ev.Fact:
    f = line.fields
    before = f.get("previous_leader_epoch")
    # Up to 3.5 the line has the epoch alone; that it led then is told by its own line of then.
    led = role.leads and role.leader_epoch == before
    if f.get("previous_leader", broker if led else None) != broker:
        before = None
    role.leads, role.leader_epoch, role.log_end = True, f["leader_epoch"], None
    role.high_watermark, role.before = f.get("high_watermark"), None
    return ev.BecameLeader(broker, f["leader_epoch"], *_at_the_change(f), before)


def _became_follower(broker: int, line: LogLineFact, role: _Role) -> ev.Fact:
    f = line.fields
    role.follow(f["leader_epoch"], f.get("log_end_offset"))
    return ev.BecameFollower(broker, f["leader_epoch"], f.get("leader"), *_at_the_change(f))


def _at_the_change(f: dict[str, Any]) -> tuple[int | None, int | None, int | None]:
    """Log end, high watermark and partition epoch that a line names as a role changes."""
    return f.get("log_end_offset"), f.get("high_watermark"), f.get("partition_epoch")


def _truncation_reason(broker: int, line: LogLineFact, role: _Role) -> None:
    f = line.fields
    role.reason = (line.at, f.get("reason"))
    # The answer counts for the cut that its own line announces, and no other.
    answer = (f.get("leader_epoch"), f.get("end_offset"), f.get("to_offset"))
    role.answer = answer if f.get("reason") == "leader_epoch" else None


def _out_of_range(broker: int, line: LogLineFact, role: _Role) -> None:
    role.reason = (line.at, "out_of_range")


def _fetch_offset_reset(broker: int, line: LogLineFact, role: _Role) -> ev.Fact | None:
    role.reason = (line.at, "out_of_range")
    f = line.fields
    if (
        f.get("to") == "start"
        and f.get("to_offset") is not None
        and (f.get("from_offset") is not None and f["from_offset"] < f["to_offset"])
    ):
        return ev.Truncated(broker, f["to_offset"], f["from_offset"], "full")
    return None


def _truncated(broker: int, line: LogLineFact, role: _Role) -> ev.Fact | None:
    f = line.fields
    reason = role.cuts_to
    if role.reason is not None:
        at, named = role.reason
        if at is None or line.at is None or abs(line.at - at) <= _AT_ONCE:
            reason = named if named in _REASONS else "leader_epoch"
        role.reason = None
    told, role.answer = role.answer, None
    by_answer = told is not None and reason == "leader_epoch" and told[2] == f["to_offset"]
    epoch_end = told[:2] if told is not None and by_answer and _is_defined(told) else (None, None)
    end, role.log_end = f.get("log_end_offset", role.log_end), None
    return ev.Truncated(broker, f["to_offset"], end, reason, *epoch_end)


def _not_truncated(broker: int, line: LogLineFact, role: _Role) -> ev.Fact | None:
    """A cut that leaves all there is tells where the log ends."""
    role.log_end, role.reason, role.answer = None, None, None  # It fetches from there on.
    last_offset = line.fields.get("last_offset")
    if last_offset is None or role.leads or role.leader_epoch is None:
        return None
    return ev.Truncated(broker, last_offset + 1, last_offset + 1, "leader_epoch")


def _is_defined(answer: _Answer) -> bool:
    """Whether the leader knew the epoch: Kafka prints -1 where it did not."""
    return all(number is not None and number >= 0 for number in answer)


def _log_start_advanced(broker: int, line: LogLineFact, role: _Role) -> ev.Fact | None:
    value = line.fields.get("log_start_offset")
    if value is None:
        return None
    return ev.LogStartAdvanced(broker, value, line.fields.get("reason"))


def _log_appended(broker: int, line: LogLineFact, role: _Role) -> ev.Fact | None:
    first, end = line.fields.get("first_offset"), line.fields.get("end_offset")
    if first is None or end is None or end <= first:
        return None
    if role.leads:
        return ev.LeaderAppended(broker, first, end, role.leader_epoch)
    role.log_end = None if role.log_end is None else end
    return ev.FollowerAppended(broker, first, end)


def _leader_high_watermark(broker: int, line: LogLineFact, role: _Role) -> ev.Fact | None:
    value = line.fields.get("to_high_watermark")
    if value is None or _is_late(line, role, value):
        return None
    role.raise_to(value)
    return ev.HighWatermarkAdvanced(broker, value)


def _is_late(line: LogLineFact, role: _Role, value: int) -> bool:
    """Whether a line says how far a high watermark had come that has gone on since.

    Several threads raise it, and each prints that only after it has let go of the log's lock
    (Partition.maybeIncrementLeaderHW). A line that names a fall itself is not late.
    """
    before = line.fields.get("from_high_watermark")
    known = role.high_watermark if role.leads else None
    return known is not None and value < known and (before is None or before <= value)


def _high_watermark_set(broker: int, line: LogLineFact, role: _Role) -> ev.Fact | None:
    value = line.fields.get("high_watermark")
    if value is None or line.fields.get("replica", broker) != broker:
        return None
    if value == role.high_watermark or _is_printed_late(role, value):
        return None
    role.raise_to(value)
    return ev.HighWatermarkAdvanced(broker, value)


def _is_printed_late(role: _Role, value: int) -> bool:
    """Whether a leader was at a high watermark between the last two that were printed: threads set
    it first and print it then, each by itself (Replica.highWatermark_=, Log.updateHighWatermark).
    """
    if not role.leads or role.before is None or role.high_watermark is None:
        return False
    return role.before < value < role.high_watermark


def _follower_log_end(broker: int, line: LogLineFact, role: _Role) -> ev.Fact | None:
    f = line.fields
    if f.get("replica") is None or f.get("log_end_offset") is None or f["replica"] == broker:
        return None
    return ev.FetchRequested(f["replica"], broker, f["log_end_offset"])


_READERS: dict[str, Callable[[int, LogLineFact, _Role], ev.Fact | None]] = {
    "leader_and_isr_received": _by_request,
    "clean_shutdown_found": _start_found,
    "unclean_recovery": _start_found,
    "process_signalled": _ended,
    "stopping": _ended,
    "stopped_cleanly": _ended,
    "log_loaded": _log_loaded,
    "log_created": _log_created,
    "high_watermark_loaded": _high_watermark_loaded,
    # One line for each replica, of which only the local one's is not 0 (1.1 - 2.3).
    "replica_loaded": _high_watermark_loaded,
    "became_leader": _became_leader,
    "became_follower": _became_follower,
    "truncation_reason": _truncation_reason,
    "fetch_offset_reset": _fetch_offset_reset,
    "fetch_out_of_range": _out_of_range,
    "truncated": _truncated,
    "truncation_without_effect": _not_truncated,
    "log_start_advanced": _log_start_advanced,
    "log_appended": _log_appended,
    "leader_high_watermark_updated": _leader_high_watermark,
    "high_watermark_set": _high_watermark_set,
    "follower_log_end_recorded": _follower_log_end,
}
