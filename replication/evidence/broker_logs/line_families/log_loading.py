"""What a broker says of a log as it loads it: its ends, its high watermark, what was damaged."""

import re

from replication.evidence.broker_logs.line_families.family import (
    LOG_PREFIX,
    PARTITION_PREFIX,
    TP,
    Found,
    LineFamily,
    example,
    found_by_groups,
    topic_partition,
)
from replication.evidence.broker_logs.line_families.logs import DIRECTORY, LOG, MANAGER

_LOADED_BY_LOG = LineFamily(
    kind="log_loaded",
    versions="0.10 - 2.7",
    loggers=LOG,
    words=("Completed",),
    trigger="Completed load of log",
    pattern=r"(?:" + LOG_PREFIX + r"|^)Completed load of log (?:" + TP + r" )?with (?:"
    r"(?P<segments>\d+) (?:log )?segments(?:, log start offset (?P<log_start_offset>\d+))? and log "
    r"end offset (?P<log_end_offset>\d+) in \d+ ?ms\b|log end offset (?P<log_end_offset__2>\d+)$)",
    examples=(
        # 0.10.0
        example(
            "Completed load of log t-0 with log end offset 10",
            topic="t", partition=0, log_end_offset=10,
        ),
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
            topic="t", partition=0, directory=DIRECTORY, segments=1, log_start_offset=0, log_end_offset=10,
        ),
    ),
)  # fmt: skip

# The high watermark printed inside is not the checkpointed one: it is left out.
_LOADED_BY_MANAGER = LineFamily(
    kind="log_loaded",
    versions="2.7 - 4.3",
    loggers=MANAGER,
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
            topic="t", partition=0, directory=DIRECTORY + "/t-0", segments=1, log_start_offset=0,
            log_end_offset=4,
        ),
        example(
            "Completed load of Log(dir=/var/lib/kafka/b1/t-0, topicId=Ix8NaKEJR-atO-v7XPgawQ, "
            "topic=t, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, "
            "logEndOffset=32) with 1 segments, local-log-start-offset 0 and log-end-offset 32 in "
            "11ms (1/1 completed in /var/lib/kafka/b1)",
            topic="t", partition=0, topic_id="Ix8NaKEJR-atO-v7XPgawQ", directory=DIRECTORY + "/t-0",
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
    loggers=LOG,
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
            topic="t", partition=0, directory=DIRECTORY, segment=0,
        ),
        example(
            "[LogLoader partition=t-0, dir=/var/lib/kafka/b1] Recovering unflushed segment 0. 0/1 "
            "recovered for t-0.",
            topic="t", partition=0, directory=DIRECTORY, segment=0,
        ),
    ),
)  # fmt: skip

_CORRUPTION = LineFamily(
    kind="corruption_found",
    versions="0.10 - 4.3",
    loggers=LOG,
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
            topic="t", partition=0, directory=DIRECTORY, segment=0, to_offset=14,
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
    loggers=LOG,
    words=("Found",),
    trigger="Found invalid offset during recovery",
    pattern=r"(?:" + LOG_PREFIX + r"|^)Found invalid offset during recovery(?: for log " + TP + r")?\. "
    r"Deleting the corrupt segment and creating an empty one with starting offset "
    r"(?P<to_offset>\d+)",
    examples=(
        example(
            "[LogLoader partition=t-0, dir=/var/lib/kafka/b1] Found invalid offset during recovery. "
            "Deleting the corrupt segment and creating an empty one with starting offset 100",
            topic="t", partition=0, directory=DIRECTORY, to_offset=100,
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
    loggers=LOG,
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
            topic="t", partition=0, directory=DIRECTORY,
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
)
