"""Lines about one replica's log in its directory: loaded, recovered, created, deleted, epochs kept."""

import re

from replication.evidence.broker_logs.line_families.family import (
    LOG_PREFIX,
    PARTITION_PREFIX,
    TP,
    Found,
    LineFamily,
    example,
    found_by_groups,
    ignored,
    topic_partition,
)
from replication.evidence.broker_logs.line_families.settings import pairs
from replication.evidence.digest import DIRECTORY_NAME

_LOG = ("Log", "UnifiedLog", "LogLoader")
_MANAGER = ("LogManager",)
_EPOCHS = ("LeaderEpochFileCache",)
_D = "/var/lib/kafka/b1"
# The text of 4.x `[LeaderEpochCache t-0] `, missing before 2.0.
_EPOCH_PREFIX = r"^(?:\[LeaderEpochCache (?P<tp>\S+)\] )?"

_LOADED_BY_LOG = LineFamily(
    kind="log_loaded",
    versions="0.10 - 2.7",
    loggers=_LOG,
    words=("Completed",),
    trigger="Completed load of log",
    pattern=r"(?:" + LOG_PREFIX + r"|^)Completed load of log (?:" + TP + r" )?with (?P<segments>\d+) "
    r"(?:log )?segments(?:, log start offset (?P<log_start_offset>\d+))? and log end offset "
    r"(?P<log_end_offset>\d+) in \d+ ?ms\b",
    examples=(
        example(
            "Completed load of log t-0 with 1 log segments and log end offset 10 in 61 ms",
            topic="t", partition=0, segments=1, log_end_offset=10,
        ),
        example(
            "Completed load of log t-0 with 1 log segments, log start offset 0 and log end offset 9 "
            "in 61 ms",
            topic="t", partition=0, segments=1, log_start_offset=0, log_end_offset=9,
        ),
        example(
            "[Log partition=t-0, dir=/var/lib/kafka/b1] Completed load of log with 1 segments, log "
            "start offset 0 and log end offset 10 in 19 ms",
            topic="t", partition=0, directory=_D, segments=1, log_start_offset=0, log_end_offset=10,
        ),
    ),
)  # fmt: skip

# The high watermark printed inside is not the checkpointed one: it is left out.
_LOADED_BY_MANAGER = LineFamily(
    kind="log_loaded",
    versions="2.7 - 4.3",
    loggers=_MANAGER,
    words=("Completed",),
    trigger="Completed load of Log(",
    pattern=r"^Completed load of Log\(dir=(?P<directory>.*?), (?:topicId=(?P<topic_id>[^,]+), )?"
    r"topic=(?P<topic>[^,]+), partition=(?P<partition>\d+), highWatermark=-?\d+, "
    r"lastStableOffset=-?\d+, logStartOffset=(?P<log_start_offset>\d+), "
    r"logEndOffset=(?P<log_end_offset>\d+)\) with (?P<segments>\d+) segments",
    examples=(
        example(
            "Completed load of Log(dir=/var/lib/kafka/b1/t-0, topic=t, partition=0, highWatermark=0,"
            " lastStableOffset=0, logStartOffset=0, logEndOffset=4) with 1 segments in 80ms (1/2 "
            "loaded in /var/lib/kafka/b1)",
            topic="t", partition=0, directory=_D + "/t-0", segments=1, log_start_offset=0,
            log_end_offset=4,
        ),
        example(
            "Completed load of Log(dir=/var/lib/kafka/b1/t-0, topicId=Ix8NaKEJR-atO-v7XPgawQ, "
            "topic=t, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, "
            "logEndOffset=32) with 1 segments, local-log-start-offset 0 and log-end-offset 32 in "
            "11ms (1/1 completed in /var/lib/kafka/b1)",
            topic="t", partition=0, topic_id="Ix8NaKEJR-atO-v7XPgawQ", directory=_D + "/t-0",
            segments=1, log_start_offset=0, log_end_offset=32,
        ),
    ),
)  # fmt: skip

_HIGH_WATERMARK_LOADED = LineFamily(
    kind="high_watermark_loaded",
    versions="2.4 - 4.3",
    loggers=("Partition",),
    words=("Log",),
    trigger="Log loaded for partition ",
    pattern=PARTITION_PREFIX + r"Log loaded for partition \S+ with initial high watermark "
    r"(?P<high_watermark>\d+)$",
    examples=(
        example(
            "[Partition s-0 broker=1] Log loaded for partition s-0 with initial high watermark 30",
            node=1, topic="s", partition=0, high_watermark=30,
        ),
    ),
)  # fmt: skip

# Once per replica object, the remote ones with 0, and no word of whose it is.
_REPLICA_LOADED = LineFamily(
    kind="replica_loaded",
    versions="1.1 - 2.3",
    loggers=("Replica",),
    words=("Replica",),
    trigger="Replica loaded for partition ",
    pattern=r"^Replica loaded for partition (?P<tp>\S+) with initial high watermark "
    r"(?P<high_watermark>\d+)$",
    examples=(
        example(
            "Replica loaded for partition t-0 with initial high watermark 25",
            topic="t", partition=0, high_watermark=25,
        ),
    ),
)  # fmt: skip

_HIGH_WATERMARK_MISSING = LineFamily(
    kind="high_watermark_missing",
    versions="0.10 - 4.3",
    loggers=("Partition",),
    words=("No",),
    trigger="No checkpointed highwatermark",
    pattern=PARTITION_PREFIX + r"No checkpointed highwatermark is found for partition \S+$",
    examples=(
        example(
            "Partition [t,0] on broker 1: No checkpointed highwatermark is found for partition t-0",
            node=1, topic="t", partition=0,
        ),
        example(
            "[Partition t-0 broker=1] No checkpointed highwatermark is found for partition t-0",
            node=1, topic="t", partition=0,
        ),
    ),
)  # fmt: skip

_SEGMENT_RECOVERED = LineFamily(
    kind="segment_recovered",
    versions="0.10 - 4.3",
    loggers=_LOG,
    words=("Recovering",),
    trigger="Recovering unflushed segment ",
    pattern=r"(?:" + LOG_PREFIX + r"|^)Recovering unflushed segment (?P<segment>\d+)"
    r"(?: in log (?P<tp__2>\S+?)\.?|\.? .*| *)$",
    examples=(
        example(
            "Recovering unflushed segment 0 in log t-0.", topic="t", partition=0, segment=0
        ),
        example(
            "[Log partition=t-0, dir=/var/lib/kafka/b1] Recovering unflushed segment 0",
            topic="t", partition=0, directory=_D, segment=0,
        ),
        example(
            "[LogLoader partition=t-0, dir=/var/lib/kafka/b1] Recovering unflushed segment 0. 0/1 "
            "recovered for t-0.",
            topic="t", partition=0, directory=_D, segment=0,
        ),
    ),
)  # fmt: skip

_CORRUPTION = LineFamily(
    kind="corruption_found",
    versions="0.10 - 4.3",
    loggers=_LOG,
    words=("Corruption",),
    trigger="Corruption found in segment ",
    pattern=r"(?:" + LOG_PREFIX + r"|^)Corruption found in segment (?P<segment>\d+)(?: of log "
    + TP + r")?,? truncating to offset (?P<to_offset>\d+)\.?$",
    examples=(
        example(
            "Corruption found in segment 0 of log t-0, truncating to offset 9.",
            topic="t", partition=0, segment=0, to_offset=9,
        ),
        example(
            "[LogLoader partition=t-0, dir=/var/lib/kafka/b1] Corruption found in segment 0, "
            "truncating to offset 14",
            topic="t", partition=0, directory=_D, segment=0, to_offset=14,
        ),
    ),
)  # fmt: skip

_SEGMENT_FILE = re.compile(r"([^/\\]+-\d+)(?:\.[0-9a-f]{32}-\w+)?[/\\](\d{20})\.log")


def _in_segment_file(match: re.Match[str]) -> list[Found]:
    """Lines that name a partition only by the path of its segment or index file."""
    found = found_by_groups(match)
    file = _SEGMENT_FILE.search(found.fields.pop("file"))
    if file is None:
        return [found]
    found.fields["segment"] = int(file[2])
    return [Found(found.fields, found.node, *topic_partition(file[1]))]


_INVALID_MESSAGES = LineFamily(
    kind="invalid_records_found",
    versions="0.10 - 4.3",
    loggers=("LogSegment",),
    words=("Found",),
    trigger="Found invalid messages in log segment ",
    pattern=r"Found invalid messages in log segment (?P<file>\S+) at byte offset (?P<byte_offset>\d+)",
    convert=_in_segment_file,
    examples=(
        example(
            "Found invalid messages in log segment "
            "/var/lib/kafka/b1/t-0/00000000000000000000.log at byte offset 910: Record is corrupt "
            "(stored crc = 1, computed crc = 2).",
            topic="t", partition=0, segment=0, byte_offset=910,
        ),
    ),
)  # fmt: skip

_INVALID_OFFSET = LineFamily(
    kind="corrupt_segment_deleted",
    versions="0.10 - 4.3",
    loggers=_LOG,
    words=("Found",),
    trigger="Found invalid offset during recovery",
    pattern=r"(?:" + LOG_PREFIX + r"|^)Found invalid offset during recovery(?: for log " + TP + r")?\. "
    r"Deleting the corrupt segment and creating an empty one with starting offset "
    r"(?P<to_offset>\d+)",
    examples=(
        example(
            "[LogLoader partition=t-0, dir=/var/lib/kafka/b1] Found invalid offset during recovery. "
            "Deleting the corrupt segment and creating an empty one with starting offset 100",
            topic="t", partition=0, directory=_D, to_offset=100,
        ),
    ),
)  # fmt: skip


def _corrupt_index(match: re.Match[str]) -> list[Found]:
    """Up to 0.11 only the index file's path tells the partition."""
    found = found_by_groups(match)
    file = _SEGMENT_FILE.search(
        match["rest"].replace(".index", ".log").replace(".timeindex", ".log")
    )
    del found.fields["rest"]
    if found.topic is None and file is not None:
        return [Found(found.fields, None, *topic_partition(file[1]))]
    return [found]


# Normal after every crash, because indexes are allocated ahead: a witness of the crash, no more.
_CORRUPT_INDEX = LineFamily(
    kind="corrupt_index_found",
    versions="0.10 - 4.3",
    loggers=_LOG,
    words=("Found",),
    trigger="Found a corrupted index file",
    pattern=r"(?:" + LOG_PREFIX + r"|^)Found a corrupted index file (?P<rest>.*)$",
    convert=_corrupt_index,
    examples=(
        example(
            "Found a corrupted index file due to requirement failed: Corrupt index found, index "
            "file (/var/lib/kafka/b1/data/t-0/00000000000000000000.index) has non-zero size but the "
            "last offset is 0 which is no larger than the base offset 0.}. deleting "
            "/var/lib/kafka/b1/data/t-0/00000000000000000000.timeindex, "
            "/var/lib/kafka/b1/data/t-0/00000000000000000000.index and rebuilding index...",
            topic="t", partition=0,
        ),
        example(
            "[Log partition=t-0, dir=/var/lib/kafka/b1] Found a corrupted index file corresponding "
            "to log file /var/lib/kafka/b1/t-0/00000000000000000000.log due to Corrupt index found, "
            "index file (/var/lib/kafka/b1/t-0/00000000000000000000.index) has non-zero size but "
            "the last offset is 0 which is no greater than the base offset 0.}, recovering segment "
            "and rebuilding index files...",
            topic="t", partition=0, directory=_D,
        ),
    ),
)  # fmt: skip


def _with_settings(match: re.Match[str]) -> list[Found]:
    found = found_by_groups(match)
    found.fields["settings"] = pairs(found.fields["settings"])
    return [found]


# To 2.7 all settings of the log, later only what differs from the broker's.
_CREATED = LineFamily(
    kind="log_created",
    versions="0.10 - 4.3",
    loggers=_MANAGER,
    words=("Created",),
    trigger="Created log for partition ",
    pattern=r"^Created log for partition " + TP + r" in (?P<directory>.+?) with properties "
    r"(?P<settings>\{.*\})\.?$",
    convert=_with_settings,
    examples=(
        example(
            "Created log for partition [t,0] in /var/lib/kafka/b1/data with properties "
            "{compression.type -> producer, message.format.version -> 0.10.2-IV0, "
            "min.insync.replicas -> 1, cleanup.policy -> [compact, delete], flush.ms -> 9}.",
            topic="t", partition=0, directory="/var/lib/kafka/b1/data",
            settings={
                "compression.type": "producer", "message.format.version": "0.10.2-IV0",
                "min.insync.replicas": "1", "cleanup.policy": "[compact, delete]", "flush.ms": "9",
            },
        ),
        example(
            "Created log for partition t-0 in /var/lib/kafka/b1/t-0 with properties "
            "{min.insync.replicas=2, unclean.leader.election.enable=true}",
            topic="t", partition=0, directory=_D + "/t-0",
            settings={"min.insync.replicas": "2", "unclean.leader.election.enable": "true"},
        ),
        example(
            "Created log for partition t-0 in /var/lib/kafka/b1/t-0 with properties {}",
            topic="t", partition=0, directory=_D + "/t-0", settings={},
        ),
    ),
)  # fmt: skip

_MARKED_DELETED = LineFamily(
    kind="log_marked_deleted",
    versions="1.0 - 4.3",
    loggers=_MANAGER,
    words=("Log",),
    trigger="is scheduled for deletion",
    pattern=r"^Log for partition (?P<tp>\S+) is renamed to (?P<directory>.+?) and is scheduled for "
    r"deletion",
    examples=(
        example(
            "Log for partition t-0 is renamed to "
            "/var/lib/kafka/b1/t-0.e19b58ac380d41e1a039437d5a429c3b-delete and is scheduled for "
            "deletion",
            topic="t", partition=0, directory=_D + "/t-0.e19b58ac380d41e1a039437d5a429c3b-delete",
        ),
    ),
)  # fmt: skip

_DELETED = LineFamily(
    kind="log_deleted",
    versions="0.10 - 4.3",
    loggers=_MANAGER,
    words=("Deleted",),
    trigger="Deleted log for partition ",
    pattern=r"^Deleted log for partition " + TP + r" in (?P<directory>.+?)\.?$",
    examples=(
        example(
            "Deleted log for partition [t,0] in /var/lib/kafka/b1.",
            topic="t", partition=0, directory=_D,
        ),
        example(
            "Deleted log for partition t-0 in "
            "/var/lib/kafka/b1/t-0.e19b58ac380d41e1a039437d5a429c3b-delete.",
            topic="t", partition=0, directory=_D + "/t-0.e19b58ac380d41e1a039437d5a429c3b-delete",
        ),
    ),
)  # fmt: skip

_STRAY_FOUND = LineFamily(
    kind="log_marked_stray",
    versions="3.7 - 4.3",
    loggers=_MANAGER,
    words=("Found",),
    trigger="Found stray log dir ",
    pattern=r"^Found stray log dir Log\(dir=(?P<directory>.*?), (?:topicId=(?P<topic_id>[^,]+), )?"
    r"topic=(?P<topic>[^,]+), partition=(?P<partition>\d+), .*?\): (?P<reason>.*?)\.?$",
    examples=(
        example(
            "Found stray log dir Log(dir=/var/lib/kafka/b3/t-0, topicId=vtpakRnaS-GLWtebB6vJfw, "
            "topic=t, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, "
            "logEndOffset=20): the topicId vtpakRnaS-GLWtebB6vJfw does not exist in the metadata "
            "image.",
            topic="t", partition=0, directory="/var/lib/kafka/b3/t-0",
            topic_id="vtpakRnaS-GLWtebB6vJfw",
            reason="the topicId vtpakRnaS-GLWtebB6vJfw does not exist in the metadata image",
        ),
    ),
)  # fmt: skip


def _stray_renamed(match: re.Match[str]) -> list[Found]:
    directory = match["directory"]
    name = DIRECTORY_NAME.fullmatch(re.split(r"[/\\]", directory)[-1])
    if name is None:
        return [Found({"directory": directory})]
    return [Found({"directory": directory}, None, name["topic"], int(name["partition"]))]


_STRAY_RENAMED = LineFamily(
    kind="log_marked_stray",
    versions="3.7 - 4.3",
    loggers=_MANAGER,
    words=("Log",),
    trigger=" marked stray and renamed to ",
    pattern=r"^Log in .+ marked stray and renamed to (?P<directory>.+)$",
    convert=_stray_renamed,
    examples=(
        example(
            "Log in /var/lib/kafka/b3/t-0 marked stray and renamed to "
            "/var/lib/kafka/b3/t-0.fecb276742bd49e18e83a8477c3b0161-stray",
            topic="t", partition=0,
            directory="/var/lib/kafka/b3/t-0.fecb276742bd49e18e83a8477c3b0161-stray",
        ),
    ),
)  # fmt: skip

_LOG_START = LineFamily(
    kind="log_start_advanced",
    versions="0.11 - 4.3",
    loggers=_LOG,
    words=("Incrementing", "Incremented"),
    trigger=" log start offset ",
    pattern=r"(?:" + LOG_PREFIX + r"|^)Increment(?:ing|ed) log start offset (?:of partition " + TP
    + r" )?to (?P<log_start_offset>\d+)(?: in dir (?P<directory__2>\S+?))?"
    r"(?: due to (?P<reason>.*?))?\.?$",
    examples=(
        example(
            "Incrementing log start offset of partition t-0 to 50 in dir /var/lib/kafka/b1",
            topic="t", partition=0, log_start_offset=50, directory=_D,
        ),
        example(
            "[Log partition=t-0, dir=/var/lib/kafka/b1] Incrementing log start offset to 50",
            topic="t", partition=0, directory=_D, log_start_offset=50,
        ),
        example(
            "[UnifiedLog partition=t-0, dir=/var/lib/kafka/b1] Incremented log start offset to 5 "
            "due to segment deletion",
            topic="t", partition=0, directory=_D, log_start_offset=5, reason="segment deletion",
        ),
    ),
)  # fmt: skip

_LOCAL_LOG_START = ignored(
    "3.6 - 4.3: tiered storage moved the local start, the log's own stays",
    _LOG,
    ("Incremented",),
    "Incremented local log start offset ",
    r"Incremented local log start offset to \d+",
    "[UnifiedLog partition=t-0, dir=/var/lib/kafka/b1] Incremented local log start offset to 5 due to "
    "reason local log deletion",
)

_BASE_OFFSET = re.compile(r"baseOffset=(\d+)|LogSegment\((\d+)")
_LISTED_OFFSETS = re.compile(r"base offsets? \[([\d,]*)\]")


def _segments_deleted(match: re.Match[str]) -> list[Found]:
    """`reason` is one of retention_time, retention_size, log_start_offset, truncation, other."""
    found = found_by_groups(match)
    rest = found.fields.pop("rest")
    listed = _LISTED_OFFSETS.search(rest)
    if listed:
        bases = tuple(int(text) for text in listed[1].split(",") if text)
    else:
        bases = tuple(int(first or second) for first, second in _BASE_OFFSET.findall(rest))
    reasons = (
        ("retention time", "retention_time"),
        ("retention size", "retention_size"),
        ("log start offset", "log_start_offset"),
        ("truncation", "truncation"),
    )
    found.fields["reason"] = next((code for words, code in reasons if words in rest), "other")
    found.fields["base_offsets"] = bases
    return [found]


_SEGMENTS_DELETED = LineFamily(
    kind="segments_deleted",
    versions="2.4 - 4.3",
    loggers=_LOG,
    words=("Deleting",),
    trigger=" due to ",
    pattern=LOG_PREFIX + r"Deleting segments? (?:files )?(?P<rest>.*due to .*)$",
    convert=_segments_deleted,
    examples=(
        example(
            "[UnifiedLog partition=t-0, dir=/var/lib/kafka/b1] Deleting segment LogSegment("
            "baseOffset=0, size=236, lastModifiedTime=1795188181406, "
            "largestRecordTimestamp=1795188181385) due to log retention time 4000ms breach based on "
            "the largest record timestamp in the segment",
            topic="t", partition=0, directory=_D, reason="retention_time", base_offsets=(0,),
        ),
        example(
            "[UnifiedLog partition=s-0, dir=/var/lib/kafka/b1] Deleting segments due to log start "
            "offset 15 breach: LogSegment(baseOffset=10, size=236, lastModifiedTime=1795188184083, "
            "largestRecordTimestamp=1795188184039)",
            topic="s", partition=0, directory=_D, reason="log_start_offset", base_offsets=(10,),
        ),
    ),
)  # fmt: skip

_SEGMENTS_CUT_OFF = LineFamily(
    kind="segments_deleted",
    versions="2.4 - 4.3",
    loggers=(*_LOG, "LocalLog"),
    words=("Deleting",),
    trigger="Deleting segments as part of log truncation",
    pattern=LOG_PREFIX + r"Deleting segments (?P<rest>as part of log truncation.*)$",
    convert=_segments_deleted,
    examples=(
        example(
            "[LocalLog partition=t-0, dir=/var/lib/kafka/b1] Deleting segments as part of log "
            "truncation: LogSegment(baseOffset=15, size=236, lastModifiedTime=1795188185151, "
            "largestRecordTimestamp=-1)",
            topic="t", partition=0, directory=_D, reason="truncation", base_offsets=(15,),
        ),
    ),
)  # fmt: skip

_DELETABLE_FOUND = LineFamily(
    kind="segments_deleted",
    versions="1.0 - 2.5",
    loggers=_LOG,
    words=("Found",),
    trigger="Found deletable segments ",
    pattern=LOG_PREFIX + r"Found deletable segments with (?P<rest>.*)$",
    convert=_segments_deleted,
    examples=(
        example(
            "[Log partition=t-0, dir=/var/lib/kafka/b1] Found deletable segments with base offsets "
            "[0,5] due to retention time 604800000ms breach",
            topic="t", partition=0, directory=_D, reason="retention_time", base_offsets=(0, 5),
        ),
    ),
)  # fmt: skip

_UNEXPECTED_OFFSET = LineFamily(
    kind="unexpected_append_offset",
    versions="1.1 - 4.3",
    loggers=("Partition", *_LOG),
    words=("Unexpected",),
    trigger="Unexpected offset in append to ",
    pattern=r"Unexpected offset in append to (?P<tp__4>\S+)\. First offset (?:or last offset of the first "
    r"batch )?(?P<first_offset>\d+) is less than (?:log start offset (?P<log_start_offset>\d+)|"
    r"the next offset (?P<log_end_offset>\d+))",
    examples=(
        example(
            "[Partition t-0 broker=3] Unexpected offset in append to t-0. First offset 48 is less "
            "than log start offset 50. Since this is the first record to be appended to the "
            "follower's log, will start the log from offset 48.",
            topic="t", partition=0, first_offset=48, log_start_offset=50,
        ),
    ),
)  # fmt: skip

_EPOCH_UPDATED = LineFamily(
    kind="epoch_entry_added",
    versions="0.11 - 1.1",
    loggers=_EPOCHS,
    words=("Updated",),
    trigger="Updated PartitionLeaderEpoch.",
    pattern=r"^Updated PartitionLeaderEpoch\. New: \{epoch:(?P<leader_epoch>\d+), "
    r"offset:?(?P<start_offset>-?\d+)\}, Current: \{epoch:(?P<previous_leader_epoch>-?\d+), "
    r"offset:?-?\d+\} for Partition: (?P<tp>\S+?)\.",
    examples=(
        example(
            "Updated PartitionLeaderEpoch. New: {epoch:1, offset:20}, Current: {epoch:0, offset:0} "
            "for Partition: t-0. Cache now contains 1 entries.",
            topic="t", partition=0, leader_epoch=1, start_offset=20, previous_leader_epoch=0,
        ),
        example(
            "Updated PartitionLeaderEpoch. New: {epoch:0, offset:0}, Current: {epoch:-1, offset-1} "
            "for Partition: t-0. Cache now contains 0 entries.",
            topic="t", partition=0, leader_epoch=0, start_offset=0, previous_leader_epoch=None,
        ),
    ),
)  # fmt: skip

_ENTRY = re.compile(r"EpochEntry[(\[](?:epoch=)?(\d+), ?(?:startOffset=)?(\d+)[)\]]")


def _entries(text: str) -> tuple[tuple[int, int], ...]:
    """(leader epoch, start offset) of each printed entry."""
    return tuple((int(entry), int(start)) for entry, start in _ENTRY.findall(text))


def _epoch_appended(match: re.Match[str]) -> list[Found]:
    """`conflicting` holds the entries that the new one drove out, where some were."""
    found = found_by_groups(match)
    (leader_epoch, start), *conflicting = _entries(found.fields.pop("rest"))
    found.fields.update(leader_epoch=leader_epoch, start_offset=start)
    if conflicting:
        found.fields["conflicting"] = tuple(conflicting)
    return [found]


_EPOCH_APPENDED = LineFamily(
    kind="epoch_entry_added",
    versions="2.0 - 4.3 DEBUG (WARN where entries conflict)",
    loggers=_EPOCHS,
    words=("Appended", "New"),
    trigger="epoch entry EpochEntry",
    pattern=_EPOCH_PREFIX + r"(?:Appended new epoch entry (?P<rest>EpochEntry.+?)\. Cache now"
    r"|New epoch entry (?P<rest__2>EpochEntry.+ caused truncation of conflicting entries .*)\. Cache)",
    convert=_epoch_appended,
    examples=(
        example(
            "[LeaderEpochCache t-0] Appended new epoch entry EpochEntry(epoch=0, startOffset=0). "
            "Cache now contains 1 entries.",
            topic="t", partition=0, leader_epoch=0, start_offset=0,
        ),
        example(
            "[LeaderEpochCache t-0] New epoch entry EpochEntry(epoch=3, startOffset=10) caused "
            "truncation of conflicting entries ListBuffer(EpochEntry(epoch=2, startOffset=12)). "
            "Cache now contains 2 entries.",
            topic="t", partition=0, leader_epoch=3, start_offset=10, conflicting=((2, 12),),
        ),
    ),
)  # fmt: skip


_EPOCH_REFUSED = LineFamily(
    kind="epoch_entry_refused",
    versions="0.11 - 1.1",
    loggers=_EPOCHS,
    words=("Received",),
    trigger="Received a PartitionLeaderEpoch assignment ",
    pattern=r"^Received a PartitionLeaderEpoch assignment for an (?P<reason>epoch < latestEpoch|offset < "
    r"latestOffset)\b.*?New: \{epoch:(?P<leader_epoch>\d+), offset:?(?P<start_offset>-?\d+)\}, "
    r"Current: .*? for Partition: (?P<tp>\S+?)\.?$",
    examples=(
        example(
            "Received a PartitionLeaderEpoch assignment for an epoch < latestEpoch. This implies "
            "messages have arrived out of order. New: {epoch:1, offset:12}, Current: {epoch:2, "
            "offset:10} for Partition: t-0",
            topic="t", partition=0, leader_epoch=1, start_offset=12,
            reason="epoch < latestEpoch",
        ),
    ),
)  # fmt: skip


def _epochs_cleared(match: re.Match[str]) -> list[Found]:
    """`end` is "latest" for a cut at the log's end, "earliest" for one at its start."""
    found = found_by_groups(match)
    end = found.fields["end"]
    found.fields["end"] = "earliest" if end in ("earliest", "start") else "latest"
    found.fields["entries"] = _entries(found.fields.pop("rest"))
    return [found]


_EPOCHS_CLEARED = LineFamily(
    kind="epoch_entries_cleared",
    versions="0.11 - 1.1",
    loggers=_EPOCHS,
    words=("Cleared",),
    trigger=" from epoch cache based on passed offset ",
    pattern=r"^Cleared (?P<end>latest|earliest) (?P<rest>.*?) from epoch cache based on passed offset "
    r"(?P<offset>\d+) leaving \d+ in EpochFile for partition (?P<tp>\S+)$",
    convert=_epochs_cleared,
    examples=(
        example(
            "Cleared latest Set(EpochEntry(1,20)) entries from epoch cache based on passed offset "
            "20 leaving 1 in EpochFile for partition t-0",
            topic="t", partition=0, end="latest", entries=((1, 20),), offset=20,
        ),
    ),
)  # fmt: skip

_EPOCHS_CLEARED_2 = LineFamily(
    kind="epoch_entries_cleared",
    versions="2.0 - 4.3 DEBUG",
    loggers=_EPOCHS,
    words=("Cleared",),
    trigger="after truncating to ",
    pattern=_EPOCH_PREFIX + r"Cleared (?:entries )?(?P<rest>.*?) (?:from epoch cache )?after truncating to "
    r"(?P<end>end|start) offset (?P<offset>\d+),? leaving ",
    convert=_epochs_cleared,
    examples=(
        example(
            "[LeaderEpochCache t-0] Cleared entries ListBuffer(EpochEntry(epoch=1, startOffset=20)) "
            "from epoch cache after truncating to end offset 20, leaving 1 entries in the cache.",
            topic="t", partition=0, end="latest", entries=((1, 20),), offset=20,
        ),
        example(
            "[LeaderEpochCache t-0] Cleared entries [EpochEntry(epoch=0, startOffset=0)] and rewrote "
            "first entry EpochEntry(epoch=0, startOffset=5) after truncating to start offset 5, "
            "leaving 1 in the cache.",
            topic="t", partition=0, end="earliest", entries=((0, 0), (0, 5)), offset=5,
        ),
    ),
)  # fmt: skip

FAMILIES: tuple[LineFamily, ...] = (
    _LOADED_BY_LOG,
    _LOADED_BY_MANAGER,
    _HIGH_WATERMARK_LOADED,
    _REPLICA_LOADED,
    _HIGH_WATERMARK_MISSING,
    _SEGMENT_RECOVERED,
    _CORRUPTION,
    _INVALID_MESSAGES,
    _INVALID_OFFSET,
    _CORRUPT_INDEX,
    _CREATED,
    _MARKED_DELETED,
    _DELETED,
    _STRAY_FOUND,
    _STRAY_RENAMED,
    _LOG_START,
    _LOCAL_LOG_START,
    _SEGMENTS_DELETED,
    _SEGMENTS_CUT_OFF,
    _DELETABLE_FOUND,
    _UNEXPECTED_OFFSET,
    _EPOCH_UPDATED,
    _EPOCH_APPENDED,
    _EPOCH_REFUSED,
    _EPOCHS_CLEARED,
    _EPOCHS_CLEARED_2,
)
