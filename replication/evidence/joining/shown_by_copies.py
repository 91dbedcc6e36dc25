"""What a copy or a dump of a replica's log shows of it."""

from collections.abc import Iterator

from replication.evidence.joining.copies import Copy
from replication.evidence.log_directories.log_directory import NothingLeft, PartitionDirectory
from replication.evidence.tools.dumped_logs import DumpedDirectory
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import (
    EpochEntry,
    Span,
    clipped,
    normalized,
    uncovered,
)
from replication.protocol.ground.versions import known_behaviour


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


COMPACT_ALONE = ("compact", "[compact]")


def shown_by(
    copy: Copy, keeps_every_offset: bool, described: ev.PartitionDescribed
) -> ev.ReplicaLogObserved | ev.ReplicaStarted:
    """What a copy shows; a copy without any segment only shows that the broker lived on.

    A log has at least one segment file, so none is a copy that is not whole. The same holds for
    what could not be read, for an offset between two segments and for those below the first one
    that the epoch file still names: such records may be held but were not handed over, and are
    as a span without epoch and content. Where the log's last segments are among them, only a part
    of it was seen. keeps_every_offset: the topic is not compacted, so that a gap is no lawful one;
    of one that is compacted and nothing else, no segment before the first one was removed lawfully.
    """
    directory = copy.directory
    if isinstance(directory, DumpedDirectory):
        return _of_dump(copy.broker, directory, copy.spans, described)
    if copy.read_at is not None:
        return _seen(copy, "compact" in (described.cleanup_policy or "compact"))
    if isinstance(directory, NothingLeft):
        return ev.ReplicaLogObserved(copy.broker, 0, 0, (), stopped=False, copy="current")
    if directory.log_start_offset is None or not directory.segments:
        return ev.ReplicaStarted(copy.broker)
    start = directory.log_start_offset
    end = directory.log_end_offset if directory.log_end_offset is not None else start
    unread, entries = _unread(copy, described), _entries(copy)
    spans = list(copy.spans)
    goes_on = bool(unread) and unread[-1][1] is None
    if goes_on and directory.unread == unread:
        end = max(end, *_reached(directory), directory.high_watermark or 0)
    # What the files do not reach may be nowhere; what cannot be read in them is there.
    unseen = [(a, end if b is None else b) for a, b in unread]
    if keeps_every_offset:
        if entries and entries[0][1] < directory.segments[0].base_offset == start:
            start = entries[0][1]
        unseen += uncovered(start, directory.segments[-1].base_offset, copy.spans)
    base = directory.segments[0].base_offset
    if described.cleanup_policy in COMPACT_ALONE and base == start:
        unseen += [(0, start)] if start else []
        start = 0
    for a, b in unseen:
        spans += [Span(x, y, None, None) for x, y in uncovered(a, b, spans)]
    whole = directory.end_is_certain and (directory.last_snapshot_offset or 0) <= end
    kind = {"replica": "current", "deleted": "failed"}.get(directory.kind, directory.kind)
    stopped = copy.clean and whole and _high_watermark(copy, described) <= end
    # Of which of its leaders a doubted log had it, its epochs do not tell.
    high_watermark = directory.high_watermark if copy.unread_from is None else None
    return ev.ReplicaLogObserved(
        replica=copy.broker,
        log_start_offset=start,
        log_end_offset=end,
        spans=tuple(clipped(normalized(spans), start, max(end, start))),
        high_watermark=high_watermark,
        recovery_point=directory.recovery_point,
        epoch_entries=None if entries is None else tuple(EpochEntry(*e) for e in entries),
        stopped=None if goes_on and kind == "current" else stopped,
        copy="part" if goes_on and kind == "current" else kind,
    )


def _unread(copy: Copy, described: ev.PartitionDescribed) -> tuple[tuple[int, int | None], ...]:
    """From where to where (None: to the end) the log could not be read or is not believed."""
    doubted = copy.unread_from if copy.unread_from is not None else _cut_at(copy, described)
    if doubted is None:
        return copy.directory.unread
    return (*((a, b) for a, b in copy.directory.unread if a < doubted), (doubted, None))


def _cut_at(copy: Copy, described: ev.PartitionDescribed) -> int | None:
    """Where the log of a broker that stopped cleanly ends before what its own files say it holds:
    somebody cut the copy. A log that was not closed may lack its end by itself."""
    end = copy.directory.log_end_offset or 0
    reached = max(*_reached(copy.directory), _high_watermark(copy, described))
    short = reached > end or not copy.directory.end_is_certain
    unread = copy.directory.unread
    return end if copy.clean and short and not (unread and unread[-1][1] is None) else None


def _entries(copy: Copy) -> tuple[tuple[int, int], ...] | None:
    """The epoch file, as far as the log is believed."""
    entries, doubted = copy.directory.epoch_entries, copy.unread_from
    if entries is None or doubted is None:
        return entries
    return tuple(e for e in entries if e[1] < doubted)


def _seen(copy: Copy, compacted: bool) -> ev.ReplicaLogObserved:
    """What a line of a digest tells of a replica: all but the bytes of its records.

    Of a log that is compacted it does not tell where records are: a follower that fetched an epoch
    after its first records were cleaned notes its begin later than its leader did.
    """
    directory, spans = copy.directory, copy.spans
    if compacted:
        spans = normalized([span._replace(leader_epoch=None) for span in spans])
    entries = directory.epoch_entries
    kind = {"replica": "current" if copy.clean else "live", "deleted": "failed"}
    return ev.ReplicaLogObserved(
        replica=copy.broker,
        log_start_offset=directory.log_start_offset or 0,
        log_end_offset=directory.log_end_offset or 0,
        spans=tuple(spans),
        high_watermark=directory.high_watermark,
        recovery_point=directory.recovery_point,
        epoch_entries=None if entries is None else tuple(EpochEntry(*e) for e in entries),
        stopped=copy.clean,
        copy=kind.get(directory.kind, directory.kind),
    )


def _high_watermark(copy: Copy, described: ev.PartitionDescribed) -> int:
    """How far the log had reached by its high watermark.

    Up to 2.3 that stays where it was when the log is cut, and a clean stop may write it down so:
    the recovery point, which such a stop puts at the log's end, tells then.
    """
    directory = copy.directory
    flags = known_behaviour(described.kafka_version, described.inter_broker_version)
    cut = flags is not None and not flags.has("high_watermark_kept_within_log")
    if cut and copy.clean and directory.recovery_point == directory.log_end_offset:
        return 0
    return directory.high_watermark or 0


def _reached(directory: PartitionDirectory) -> Iterator[int]:
    """Offsets that a log had reached by the small files beside its segments, but for its high
    watermark."""
    yield directory.recovery_point or 0
    yield directory.last_snapshot_offset or 0
    yield from (start for _, start in directory.epoch_entries or ())
