"""From what was collected about one topic partition to its events, in one causal order.

Controller records come in partition epoch order, each broker's lines in the order they were
written, copies between the lives of the process they fit, acknowledgements at their clock. Clocks
only interleave what nothing else orders.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from replication.evidence.joining.copies import Copy, in_time
from replication.evidence.joining.declared_coverage import declared_coverage, is_traced
from replication.evidence.joining.dumps_moment import earliest_place
from replication.evidence.joining.event_order import LAST, RANKS, Entry
from replication.evidence.joining.line_steps import TRACE_KINDS, Step, steps_of_lines
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.promised_records import promised
from replication.evidence.joining.shown_by_copies import shown_by
from replication.evidence.tools.dumped_logs import DumpedDirectory
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import LAST_MOMENT

_AT_LAST = float("inf")
# Of a slot between two lives of a process (placement.py): nearer to the first one.
_EARLY_IN_A_LIFE = 0.4


def events_of(evidence: PartitionEvidence, trace_id: str, generation: int) -> Iterator[ev.Event]:
    """The partition's events with gap-free sequence numbers from 0; ids are left to the wire."""
    entries = list(_entries(evidence))
    entries.sort(key=lambda e: (e.at, e.rank, e.stream, e.index))
    facts: list[Entry] = [
        Entry(0, 0, 0, 0, evidence.described, None, "forensic", None),
        *[Entry(0, 0, 0, 0, c, None, "forensic", None) for c in declared_coverage(evidence)],
        *[Entry(0, 0, 0, 0, c, None, "forensic", None) for c in _silent(evidence)],
        *entries,
        *[Entry(0, 0, 0, 0, d, None, "forensic", None) for d in _last_described(evidence)],
        Entry(0, 0, 0, 0, ev.InputEnded(), None, "forensic", None),
    ]
    for sequence, entry in enumerate(facts):
        yield ev.Event(
            event_id="",
            trace_id=trace_id,
            cluster_id=evidence.cluster_id,
            topic=evidence.topic,
            topic_id=evidence.topic_id,
            partition=evidence.partition,
            sequence=sequence,
            fact=entry.fact,
            observed_at=_date(entry.shown_at),
            grade=entry.grade,
            source=entry.source and replace(entry.source, path=evidence.shown(entry.source.path)),
            trace_generation=generation,
        )


def _date(at: int | None) -> int | None:
    """The millisecond, None where it is no date: producers choose the times of their records."""
    return at if at is not None and 0 <= at <= LAST_MOMENT else None


def _silent(evidence: PartitionEvidence) -> Iterator[ev.CoverageDeclared]:
    """Coverage ends where a broker's lines end: what it did since is missing."""
    for broker in sorted(set(evidence.silent) & _hosts(evidence)):
        yield ev.CoverageDeclared("replica_trace", broker, False, evidence.silent[broker])


def _last_described(evidence: PartitionEvidence) -> Iterator[ev.PartitionDescribed]:
    if evidence.reassigned is not None:
        yield ev.PartitionDescribed(assigned_replicas=evidence.reassigned)


def _entries(evidence: PartitionEvidence) -> Iterator[Entry]:
    clock = 0.0
    for index, recorded in enumerate(evidence.recorded):
        clock = max(clock, float(recorded.at or 0))
        yield Entry(
            clock,
            RANKS["leadership_recorded"],
            -1,
            index,
            recorded.fact,
            recorded.source,
            "forensic",
            recorded.at,
        )
    for broker in sorted(_hosts(evidence)):
        yield from _broker_entries(evidence, broker)
    yield from promised(evidence)


def _hosts(evidence: PartitionEvidence) -> set[int]:
    """Brokers that hold or held a replica: others (controllers) print about it too."""
    assigned = set(evidence.described.assigned_replicas or ())
    for recorded in evidence.recorded:
        assigned.update(recorded.fact.assigned_replicas or ())
    copied = {c.broker for c in evidence.copies}
    if not assigned:
        own = ("log_loaded", "became_leader", "became_follower", "leader_and_isr_received")
        return copied | {
            b for b, lines in evidence.lines.items() if any(f.kind in own for f in lines)
        }
    return copied | (assigned & set(evidence.lines))


def _broker_entries(evidence: PartitionEvidence, broker: int) -> list[Entry]:
    """One broker's lines and copies in its own order; its clock is made to never run backwards."""
    steps = list(steps_of_lines(evidence, broker))
    traced = is_traced(evidence, broker)
    copies = sorted((c for c in evidence.copies if c.broker == broker), key=in_time)
    placed = _placed(copies, steps)
    story = _Story(broker)
    for position, step in enumerate(steps):
        for copy in placed.get(position, ()):
            at = step.at if copy.read_at is None else copy.read_at
            story.add(_shown(evidence, copy), max(story.clock, float(at or 0)), copy)
        story.clock = max(story.clock, float(step.at or 0))
        if step.fact is None:
            continue
        if step.kind not in TRACE_KINDS:
            story.add(step.fact, story.clock, step)
        elif traced:
            # A trace with a hole would give records to the wrong leader epoch.
            story.add(step.fact, story.clock, step, "traced")
    # After the last line nothing else tells the time: a copy closes the broker's story.
    for copy in placed.get(len(steps), ()):
        seen = copy.read_at
        at_last = _AT_LAST if seen is None else max(story.clock, float(seen))
        story.add(_shown(evidence, copy), at_last, copy)
    if copies and not copies[-1].order_known:
        # Another copy may be later: what the last one lacks may have come after it.
        lived_on = Step("life", None, None, ev.Source(copies[-1].path))
        story.add(ev.ReplicaStarted(broker), _AT_LAST, lived_on)
    return story.entries


def _placed(copies: list[Copy], steps: list[Step]) -> dict[int, list[Copy]]:
    """The copies by the step that they stand before; len(steps): behind them all."""
    starts = [i for i, step in enumerate(steps) if step.kind == "life"]
    placed: dict[int, list[Copy]] = {}
    for copy in copies:
        if isinstance(copy.directory, DumpedDirectory):
            position = earliest_place(steps, copy.directory)
        elif (read_at := copy.read_at) is not None:
            later = (n for n, step in enumerate(steps) if step.at is not None and step.at > read_at)
            position = next(later, len(steps))
        else:
            life = int(copy.slot)
            before = life if copy.slot - life < _EARLY_IN_A_LIFE else life + 1
            position = starts[before] if before < len(starts) else len(steps)
        placed.setdefault(position, []).append(copy)
    return placed


def _shown(evidence: PartitionEvidence, copy: Copy) -> ev.Fact:
    keeps = evidence.described.cleanup_policy in ("delete", "[delete]")
    return shown_by(copy, keeps, evidence.described)


@dataclass(slots=True)
class _Story:
    """A broker's entries so far, and its clock, ms, which never runs backwards."""

    broker: int
    clock: float = 0.0
    entries: list[Entry] = field(default_factory=list)

    def add(self, fact: ev.Fact, at: float, told: Step | Copy, grade: str = "forensic") -> None:
        """Of one moment's entries none comes before one that is there already."""
        rank = RANKS.get(fact.kind, LAST)
<<<<<<< HEAD
        if result and result[-1].at == moment:
            rank = max(rank, result[-1].rank)
        result.append(_Entry(moment, rank, broker, len(result), fact, source, grade, at))

    for position in range(len(steps) + 1):
        for copy in placed.get(position, ()):
            # After the last line nothing else tells the time: the copy closes the broker's story.
            moment = end if position == len(steps) else clock
            if position < len(steps) and steps[position][2] is not None:
                moment = max(clock, float(steps[position][2] or 0))
            source = ev.Source(copy.path)
            add(
                _observed(copy, keeps, evidence.described),
                copy.latest_timestamp,
                source,
                "forensic",
                moment,
            )
        if position == len(steps):
            if copies and not copies[-1].order_known:
                # Another copy may be later: what the last one lacks may have come after it.
                lived_on = ev.ReplicaStarted(broker, None, None, None, None)
                add(lived_on, None, ev.Source(copies[-1].path), "forensic", end)
            break
        kind, fact, at, line = steps[position]
        clock = max(clock, float(at or 0))
        if kind == "life" or fact is None:
            continue
        if kind not in TRACE_KINDS:
            add(fact, at, line, "forensic", clock)
        elif traced:
            # A trace with a hole would give records to the wrong leader epoch.
            add(fact, at, line, "traced", clock)
    return result


def _earliest(steps: list[_Step], dump: DumpedDirectory) -> int:
    """Before which of the broker's steps a dump stands, which tells no time: as early as can be.

    So whatever was cut later is cut from it too. It cannot be from before the broker's first step,
    where the lines begin with the topic, nor from before its newest leader epoch and what the
    broker cut for that, nor, while nothing was cut, from before the log was known to be shorter.
    """
    end = dump.log_end_offset or 0
    position = _first_possible(steps, dump.latest_epoch)
    begins = position > 0
    for index in range(position, len(steps)):
        fact = steps[index][1]
        if isinstance(fact, ev.Truncated):
            if begins and fact.reason in ("high_watermark", "leader_epoch", "diverging_epoch"):
                position = index + 1
            elif fact.to_offset is None or fact.to_offset < end:
                break
        elif isinstance(fact, (ev.ReplicaStarted, ev.BecameLeader, ev.BecameFollower)):
            known = fact.log_end_offset
            unsafe = isinstance(fact, ev.ReplicaStarted) and fact.clean is not True
            if unsafe and (known is None or known < end):
                break  # What the log held before, the broker may have lost.
            begins = known is not None and known < end
            position = index + 1 if begins else position
            if known is not None and known >= end:
                break  # From here on it may always have been shorter again.
    return position


def _first_possible(steps: list[_Step], latest_epoch: int) -> int:
    """Behind which step a log must have been seen to hold records, the newest of latest_epoch.

    Lines that begin later than the topic say nothing of what was before them. So an epoch's first
    line counts only behind one of an earlier epoch, or where the log's creation is told.
    """
    epochs = [getattr(fact, "leader_epoch", None) for _, fact, _, _ in steps]
    named = [(i, e) for i, e in enumerate(epochs) if e is not None]
    position = 0
    created = next((i for i, (kind, *_) in enumerate(steps) if kind == "log_created"), None)
    if created is not None and named and named[0][1] == 0:
        ends = [getattr(fact, "log_end_offset", None) for _, fact, _, _ in steps[:created]]
        position = 0 if any(ends) else created + 1
    if latest_epoch < 0 or not named:
        return position
    reached = next((i for i, e in named if e >= latest_epoch), None)
    if reached is None:
        return len(steps)
    if position or named[0][1] < latest_epoch:
        return max(position, reached + 1)
    return position


def _of_dump(
    broker: int, dump: DumpedDirectory, seen: list[Span], described: ev.PartitionDescribed
) -> ev.ReplicaLogObserved:
    """What a dump shows. What lies between its stretches was not seen, unless bytes that join and
    compaction of the topic say that nothing does."""
    start, end = dump.log_start_offset or 0, dump.log_end_offset or 0
    policy = described.cleanup_policy or ""
    holes = [Span(*hole, None, None) for hole in dump.holes if "compact" in policy]
    unseen = [Span(a, b, None, None) for a, b in uncovered(start, end, [*seen, *holes])]
    return ev.ReplicaLogObserved(
        replica=broker,
        log_start_offset=start,
        log_end_offset=end,
        spans=tuple(clipped(normalized([*seen, *unseen]), start, end)),
        stopped=False if dump.is_whole else None,
        copy="part",
    )


def _observed(
    copy: Copy, keeps_every_offset: bool, described: ev.PartitionDescribed
) -> ev.ReplicaLogObserved | ev.ReplicaStarted:
    """What a copy shows; a copy without any segment only shows that the broker lived on.

    A log has at least one segment file, so none is a copy that is not whole. The same holds for
    what could not be read, for an offset between two segments and for those below the first one
    that the epoch file still names: such records may be held but were not handed over, and stand
    as a span without epoch and content. Where the log's last segments are among them, only a part
    of it was seen. keeps_every_offset: the topic is not compacted, so that a gap is no lawful one.
    """
    directory = copy.directory
    if isinstance(directory, DumpedDirectory):
        return _of_dump(copy.broker, directory, copy.spans, described)
    if directory.log_start_offset is None or not directory.segments:
        return ev.ReplicaStarted(copy.broker)
    start = directory.log_start_offset
    end = directory.log_end_offset if directory.log_end_offset is not None else start
    entries = directory.epoch_entries
    spans = list(copy.spans)
    goes_on = bool(directory.unread) and directory.unread[-1][1] is None
    if goes_on:
        end = max(end, *_reached(directory))
    unseen = [(a, end if b is None else b) for a, b in directory.unread]
    if keeps_every_offset:
        if entries and entries[0][1] < directory.segments[0].base_offset == start:
            start = entries[0][1]
        unseen += uncovered(start, directory.segments[-1].base_offset, copy.spans)
    for a, b in unseen:
        spans += [Span(x, y, None, None) for x, y in uncovered(a, b, spans)]
    whole = directory.end_is_certain and (directory.last_snapshot_offset or 0) <= end
    kind = {"replica": "current", "deleted": "failed"}.get(directory.kind, directory.kind)
    stopped = copy.clean and whole and (directory.high_watermark or 0) <= end
    return ev.ReplicaLogObserved(
        replica=copy.broker,
        log_start_offset=start,
        log_end_offset=end,
        spans=tuple(clipped(normalized(spans), start, max(end, start))),
        high_watermark=directory.high_watermark,
        recovery_point=directory.recovery_point,
        epoch_entries=None if entries is None else tuple(EpochEntry(*e) for e in entries),
        stopped=None if goes_on and kind == "current" else stopped,
        copy="part" if goes_on and kind == "current" else kind,
    )


def _reached(directory: PartitionDirectory) -> Iterator[int]:
    """Offsets that a log had reached by the small files beside its segments."""
    yield directory.high_watermark or 0
    yield directory.recovery_point or 0
    yield directory.last_snapshot_offset or 0
    yield from (start for _, start in directory.epoch_entries or ())


def _line_facts(evidence: PartitionEvidence, broker: int) -> Iterator[_Step]:
    """The broker's lines as (kind, fact, clock, source); ("life", ...) marks a process start."""
    lines = in_order(evidence.lines.get(broker, []), broker)
    prints_leadership = any(f.kind == "became_leader" for f in lines)
    prints_following = any(f.kind == "became_follower" for f in lines)
    role: dict[str, Any] = {
        "leads": False,
        "reason": None,
        "epoch": None,
        "clean": None,
        "stopped": None,
        "high_watermark": None,
        "cuts_to": evidence.truncates_by,
    }
    for fact in lines:
        source = ev.Source(fact.path, fact.line)
        if fact.kind == "process_started":
            if role["epoch"] is not None or role["stopped"]:
                yield (
                    "stop",
                    ev.ReplicaStopped(broker, role["stopped"] or "process_crash"),
                    (fact.at),
                    source,
                )
            role.update(leads=False, clean=None, stopped=None)
            yield "life", None, fact.at, source
            continue
        if fact.kind in ("clean_shutdown_found", "unclean_recovery"):
            role["clean"] = fact.kind == "clean_shutdown_found"
            continue
        if fact.kind in STOP_KINDS:
            role["stopped"] = "clean" if fact.kind == "stopped_cleanly" else "unknown"
            continue
        if fact.kind in ("leader_and_isr_received", "leadership_cached"):
            if fact.kind == "leader_and_isr_received":
                made = _by_request(broker, fact, prints_leadership, prints_following, role)
                if made is not None:
                    yield fact.kind, made, fact.at, source
            continue
        made = _CONVERTERS[fact.kind](broker, fact, role) if fact.kind in _CONVERTERS else None
        if made is not None:
            yield fact.kind, made, fact.at, source


def _by_request(
    broker: int, fact: LogLineFact, leader_lines: bool, follower_lines: bool, role: dict[str, Any]
) -> ev.Fact | None:
    """Role changes from LeaderAndIsr requests, where the version prints no line of its own."""
    f = fact.fields
    if f.get("leader") is None or f.get("leader_epoch") is None:
        return None
    if f["leader"] == broker:
        if leader_lines:
            # It leads from its own line on: until then its fetchers still append.
            return None
        role.update(leads=True, epoch=f["leader_epoch"])
        return ev.BecameLeader(broker, f["leader_epoch"], partition_epoch=f.get("partition_epoch"))
    if follower_lines:
        return None
    role.update(leads=False, epoch=f["leader_epoch"])
    return ev.BecameFollower(
        broker, f["leader_epoch"], f["leader"], partition_epoch=f.get("partition_epoch")
    )


def _log_loaded(broker: int, fact: LogLineFact, role: dict[str, Any]) -> ev.Fact:
    f = fact.fields
    return ev.ReplicaStarted(
        broker, f.get("log_start_offset"), f.get("log_end_offset"), None, role["clean"]
    )


def _log_created(broker: int, fact: LogLineFact, role: dict[str, Any]) -> ev.Fact:
    return ev.ReplicaStarted(broker, 0, 0, None, None)


def _high_watermark_loaded(broker: int, fact: LogLineFact, role: dict[str, Any]) -> ev.Fact | None:
    value = fact.fields.get("high_watermark")
    return ev.CheckpointObserved(broker, value) if value else None


def _became_leader(broker: int, fact: LogLineFact, role: dict[str, Any]) -> ev.Fact:
    f = fact.fields
    before = f.get("previous_leader_epoch")
    # Up to 3.5 the line has the epoch alone; that it led then is told by its own line of then.
    led = role.get("leads") and role.get("epoch") == before
    if f.get("previous_leader", broker if led else None) != broker:
        before = None
    role.update(leads=True, epoch=f["leader_epoch"])
    return ev.BecameLeader(
        broker,
        f["leader_epoch"],
        f.get("log_end_offset"),
        f.get("high_watermark"),
        f.get("partition_epoch"),
        before,
    )


def _became_follower(broker: int, fact: LogLineFact, role: dict[str, Any]) -> ev.Fact:
    f = fact.fields
    role.update(leads=False, epoch=f["leader_epoch"])
    return ev.BecameFollower(
        broker,
        f["leader_epoch"],
        f.get("leader"),
        f.get("log_end_offset"),
        f.get("high_watermark"),
        f.get("partition_epoch"),
    )


def _truncation_reason(broker: int, fact: LogLineFact, role: dict[str, Any]) -> None:
    role["reason"] = (fact.at, fact.fields.get("reason"))


def _fetch_offset_reset(broker: int, fact: LogLineFact, role: dict[str, Any]) -> ev.Fact | None:
    role["reason"] = (fact.at, "out_of_range")
    f = fact.fields
    if (
        f.get("to") == "start"
        and f.get("to_offset") is not None
        and (f.get("from_offset") is not None and f["from_offset"] < f["to_offset"])
    ):
        return ev.Truncated(broker, f["to_offset"], f["from_offset"], "full")
    return None


def _truncated(broker: int, fact: LogLineFact, role: dict[str, Any]) -> ev.Fact | None:
    f = fact.fields
    reason = str(role["cuts_to"])
    if role["reason"] is not None:
        at, named = role["reason"]
        if at is None or fact.at is None or abs(fact.at - at) <= 1_000:
            reason = (
                named
                if named in ("high_watermark", "leader_epoch", "diverging_epoch", "out_of_range")
                else "leader_epoch"
            )
        role["reason"] = None
    return ev.Truncated(broker, f["to_offset"], f.get("log_end_offset"), reason)


def _log_start_advanced(broker: int, fact: LogLineFact, role: dict[str, Any]) -> ev.Fact | None:
    value = fact.fields.get("log_start_offset")
    if value is None:
        return None
    return ev.LogStartAdvanced(broker, value, fact.fields.get("reason"))


def _log_appended(broker: int, fact: LogLineFact, role: dict[str, Any]) -> ev.Fact | None:
    first, end = fact.fields.get("first_offset"), fact.fields.get("end_offset")
    if first is None or end is None or end <= first:
        return None
    if role["leads"]:
        return ev.LeaderAppended(broker, first, end, role["epoch"])
    return ev.FollowerAppended(broker, first, end)


def _leader_high_watermark(broker: int, fact: LogLineFact, role: dict[str, Any]) -> ev.Fact | None:
    value = fact.fields.get("to_high_watermark")
    if value is None:
        return None
    role["high_watermark"] = value
    return ev.HighWatermarkAdvanced(broker, value)


def _high_watermark_set(broker: int, fact: LogLineFact, role: dict[str, Any]) -> ev.Fact | None:
    value = fact.fields.get("high_watermark")
    if value is None or fact.fields.get("replica", broker) != broker:
        return None
    if value == role["high_watermark"]:
        return None
    role["high_watermark"] = value
    return ev.HighWatermarkAdvanced(broker, value)


def _follower_log_end(broker: int, fact: LogLineFact, role: dict[str, Any]) -> ev.Fact | None:
    f = fact.fields
    if f.get("replica") is None or f.get("log_end_offset") is None or f["replica"] == broker:
        return None
    return ev.FetchRequested(f["replica"], broker, f["log_end_offset"])


_CONVERTERS: dict[str, Any] = {
    "log_loaded": _log_loaded,
    "log_created": _log_created,
    "high_watermark_loaded": _high_watermark_loaded,
    # One line for each replica, of which only the local one's is not 0 (1.1 - 2.3).
    "replica_loaded": _high_watermark_loaded,
    "became_leader": _became_leader,
    "became_follower": _became_follower,
    "truncation_reason": _truncation_reason,
    "fetch_offset_reset": _fetch_offset_reset,
    "fetch_out_of_range": lambda b, f, r: r.update(reason=(f.at, "out_of_range")),
    "truncated": _truncated,
    "log_start_advanced": _log_start_advanced,
    "log_appended": _log_appended,
    "leader_high_watermark_updated": _leader_high_watermark,
    "high_watermark_set": _high_watermark_set,
    "follower_log_end_recorded": _follower_log_end,
}


def is_traced(evidence: PartitionEvidence, broker: int) -> bool:
    """Whether a broker's lines are a trace of its replica, complete as far as they tell.

    Each term of leadership that the controller gave it before its last one must stand in them:
    without such a line its appends would be taken for an earlier epoch's.
    """
    lines = evidence.lines.get(broker, [])
    if broker in evidence.unsure_lines | evidence.damaged_lines:
        return False
    if not {f.kind for f in lines} >= NEEDED_KINDS:
        return False
    # A version that prints a line of its own leads from that line on, not from the request.
    prints_own = any(f.kind == "became_leader" for f in lines)
    kind = "became_leader" if prints_own else "leader_and_isr_received"
    told = {f.fields.get("leader_epoch") for f in lines if f.kind == kind}
    followed = {f.fields.get("leader_epoch") for f in lines if f.kind == "became_follower"}
    last = max((e for e in told | followed if isinstance(e, int)), default=-1)
    given = {r.fact.leader_epoch for r in evidence.recorded if r.fact.leader == broker}
    if any(e not in told for e in given if e < last):
        return False
    return is_whole(in_order(lines, broker), broker)


LISTED = "kafka-log-dirs lists a replica"


def _coverage(evidence: PartitionEvidence) -> Iterator[ev.CoverageDeclared]:
    if evidence.has_acknowledgement_log:
        yield ev.CoverageDeclared("acknowledgements", None, True)
    if evidence.has_all_producers:
        yield ev.CoverageDeclared("all_producers", None, True)
    if evidence.has_consumption_log:
        yield ev.CoverageDeclared("consumptions", None, True)
    if evidence.history_complete:
        yield ev.CoverageDeclared("controller_history", None, True)
    if evidence.later_history is not None:
        yield ev.CoverageDeclared("controller_history_end", None, False, evidence.later_history)
    if evidence.copies and evidence.bytes_verified and not evidence.contents.unreadable:
        yield ev.CoverageDeclared("payloads", None, True)
    if evidence.naming.looked and evidence.naming.unnamed:
        yield ev.CoverageDeclared("payload_ids", None, False, NO_NAMES)
    for broker in sorted(evidence.lines):
        kinds = {f.kind for f in evidence.lines[broker]}
        covered = "process_started" in kinds and broker not in evidence.unsure_lines
        yield ev.CoverageDeclared("broker_log", broker, covered)
        if is_traced(evidence, broker):
            yield ev.CoverageDeclared("replica_trace", broker, True)
    handed_over = {b for b, copy in latest(evidence.copies).items() if not copy.is_dump}
    listed = evidence.listed_replicas
    for broker in sorted(handed_over):
        told = LISTED if broker in listed else None
        yield ev.CoverageDeclared("log_directory", broker, True, told)
    for broker in sorted(listed - handed_over):
        yield ev.CoverageDeclared("log_directory", broker, False, LISTED)


def _promises(evidence: PartitionEvidence) -> Iterator[_Entry]:
    """Acknowledgements and consumptions as runs of offsets with one identity each."""
    known = latest(evidence.copies)
    leaders = [r.fact.leader for r in evidence.recorded if r.fact.leader is not None]
    leader = known.get(leaders[-1]) if leaders else None
    # Only where all that could lead was looked through, a payload found nowhere is gone.
    looked_at = [leader] if leader is not None else list(known.values())
    acked = [a for a in evidence.acknowledgements if a.status == "acked" and a.acks != "0"]
    repeated = _repeated(acked)
    if repeated:
        evidence.notes.append(
            f"{evidence.topic}-{evidence.partition}: {len(repeated)} payload ids were acknowledged "
            "at several offsets; they are not unique and are ignored"
        )
    claimed = _claimed(evidence, leader)
    others = _claimed_elsewhere(evidence, leader)
    rows: list[tuple[int, str, int | None, int | None, int | None, ev.Source]] = []
    for a in acked:
        payload = None if a.payload_id in repeated else evidence.naming.name(a)
        name = _name(evidence.contents, a, payload)
        seen_all = _seen_all(evidence.contents, looked_at, by_payload=payload is not None)
        if payload is not None and not evidence.naming.is_declared(a):
            seen_all = seen_all and a.offset in claimed
        if payload is not None and not seen_all and a.offset in others:
            seen_all = _seen_all(evidence.contents, evidence.copies, by_payload=True)
        place = _place(evidence.contents, leader, a.offset, name, seen_all)
        if place is not None:
            rows.append((place[0], a.acks, place[1], place[2], a.ts, ev.Source(a.path, a.line)))
    for index, (first, end, acks, leader_epoch, content, at, source) in enumerate(_runs(rows)):
        ack = ev.RecordsAcknowledged(first, end, acks, leader_epoch, content)
        yield _Entry(float(at or 0), LAST, 1 << 20, index, ack, source, "forensic", at)
    seen = []
    for c in evidence.consumptions:
        payload = evidence.naming.name(c) if evidence.contents.payloads_read else None
        seen_all = _seen_all(evidence.contents, looked_at, by_payload=True)
        if not evidence.naming.is_declared(c):
            seen_all = seen_all and c.offset in claimed
        place = _place(evidence.contents, leader, c.offset, payload, seen_all)
        if place is not None:
            seen.append((place[0], "", place[1], place[2], c.ts, ev.Source(c.path, c.line)))
    for index, (first, end, _, leader_epoch, content, at, source) in enumerate(_runs(seen)):
        consumed = ev.RecordsConsumed(first, end, leader_epoch, content)
        yield _Entry(float(at or 0), LAST, 1 << 21, index, consumed, source, "forensic", at)


def _claimed(evidence: PartitionEvidence, leader: Copy | None) -> set[int]:
    """Offsets at which a record stands that some client names by its own id.

    A record whose id is found nowhere is gone from there. Where nobody names what stands there, it
    may be the very record, and its id no name of it after all.
    """
    promises: list[Promise] = [*evidence.acknowledgements, *evidence.consumptions]
    named = {p.payload_id for p in promises} - {None}
    places = evidence.contents.places
    return {
        place.offset
        for payload_id in named
        for place in places.get(str(payload_id), ())
        if leader is None or _in_log(leader, place)
    }


def _claimed_elsewhere(evidence: PartitionEvidence, leader: Copy | None) -> set[int]:
    """Offsets at which the leader has nothing (compacted), and every record that another copy shows
    is one that some client names by its own id: a record not found there is none of these."""
    promises: list[Promise] = [*evidence.acknowledgements, *evidence.consumptions]
    names, places = {p.payload_id for p in promises} - {None}, evidence.contents.places
    sought = {p.offset for p in promises if p.payload_id and p.payload_id not in places}
    named: dict[int, set[tuple[int | None, int | None]]] = {}
    for place in (p for name in names for p in places.get(str(name), ()) if p.offset in sought):
        named.setdefault(place.offset, set()).add((place.leader_epoch, place.content))
    spans = [] if leader is None else leader.spans
    return {
        offset
        for offset, known in named.items()
        if not clipped(spans, offset, offset + 1)
        and all(
            (s.leader_epoch, s.content) in known
            for copy in evidence.copies
            for s in clipped(copy.spans, offset, offset + 1)
        )
    }


def _repeated(acked: Iterable[Acknowledgement]) -> set[str]:
    seen: dict[str, int | None] = {}
    repeated = set()
    for a in acked:
        if a.payload_id is None or a.offset is None:
            continue
        if seen.setdefault(a.payload_id, a.offset) != a.offset:
            repeated.add(a.payload_id)
    return repeated


def _name(contents: Contents, a: Acknowledgement, payload: str | None) -> str | None:
    """By what an acknowledged record is looked for: its payload id, else its sequence number."""
    if payload is not None and contents.payloads_read:
        return payload
    if not contents.sequences_read or a.producer_id is None or a.producer_epoch is None:
        return None
    return None if a.sequence is None else sequence_key(a.producer_id, a.producer_epoch, a.sequence)


def _seen_all(contents: Contents, copies: list[Copy], *, by_payload: bool) -> bool:
    """Whether a name that none of the copies showed is in none of them."""
    hidden = contents.unread | contents.damaged if by_payload else contents.damaged
    return bool(copies) and not any(c.path in hidden for c in copies)


def _place(
    contents: Contents,
    leader: Copy | None,
    offset: int | None,
    name: str | None,
    seen_all: bool,
) -> tuple[int, int | None, int | None] | None:
    """Offset, leader epoch and content of the very record that was promised, as far as known."""
    if name is None:
        return None if offset is None else (offset, None, None)
    places = contents.places.get(name, [])
    surviving = [p for p in places if _in_log(leader, p)]
    here = [p for p in places if p.offset == offset]
    for choice in ([p for p in surviving if p.offset == offset], surviving, here, places):
        if choice:
            return (choice[0].offset, choice[0].leader_epoch, choice[0].content)
    return None if offset is None else (offset, None, UNSEEN_CONTENT if seen_all else None)


def _in_log(copy: Copy | None, place: Place) -> bool:
    if copy is None:
        return False
    return any(
        s.content == place.content and s.leader_epoch == place.leader_epoch
        for s in clipped(copy.spans, place.offset, place.offset + 1)
    )


_Row = tuple[int, str, int | None, int | None, int | None, ev.Source]
_Run = tuple[int, int, str, int | None, int | None, int | None, ev.Source]


def _runs(rows: list[_Row]) -> list[_Run]:
    """Rows of single offsets as runs of neighbours with equal identity; the first row's source."""
    ordered = sorted(
        set(rows),
        key=lambda r: (r[0], r[1], r[2] or -1, r[3] or -1, r[4] or 0, r[5].path, r[5].line or 0),
    )
    result: list[_Run] = []
    open_runs: dict[tuple[str, int | None, int | None], int] = {}
    for offset, acks, leader_epoch, content, at, source in ordered:
        key = (acks, leader_epoch, content)
        index = open_runs.get(key)
        if index is not None and result[index][1] >= offset:
            first, end, *rest = result[index]
            result[index] = (first, max(end, offset + 1), *rest)  # type: ignore[assignment]
            continue
        open_runs[key] = len(result)
        result.append((offset, offset + 1, acks, leader_epoch, content, at, source))
    return result
=======
        if self.entries and self.entries[-1].at == at:
            rank = max(rank, self.entries[-1].rank)
        source = ev.Source(told.path) if isinstance(told, Copy) else told.source
        shown_at = told.shown_at if isinstance(told, Copy) else told.at
        number = len(self.entries)
        self.entries.append(Entry(at, rank, self.broker, number, fact, source, grade, shown_at))
>>>>>>> main
