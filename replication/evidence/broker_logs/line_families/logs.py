"""What a broker says of a log while it runs: made, deleted, stray, where it starts, its segments."""

import re

from replication.evidence.broker_logs.line_families.family import (
    LOG_CLASSES,
    LOG_PREFIX,
    TP,
    Found,
    LineFamily,
    example,
    found_by_groups,
    ignored,
)
from replication.evidence.broker_logs.line_families.settings import pairs
from replication.evidence.digest import DIRECTORY_NAME

LOG = (*LOG_CLASSES, "LogLoader")
MANAGER = ("LogManager",)
DIRECTORY = "/var/lib/kafka/b1"


def _with_settings(match: re.Match[str]) -> list[Found]:
    found = found_by_groups(match)
    found.fields["settings"] = pairs(found.fields["settings"])
    return [found]


# To 2.7 all settings of the log, later only what differs from the broker's.
_CREATED = LineFamily(
    kind="log_created",
    versions="0.10 - 4.3",
    loggers=MANAGER,
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
            topic="t", partition=0, directory=DIRECTORY + "/t-0",
            settings={"min.insync.replicas": "2", "unclean.leader.election.enable": "true"},
        ),
        example(
            "Created log for partition t-0 in /var/lib/kafka/b1/t-0 with properties {}",
            topic="t", partition=0, directory=DIRECTORY + "/t-0", settings={},
        ),
    ),
)  # fmt: skip

_MARKED_DELETED = LineFamily(
    kind="log_marked_deleted",
    versions="1.0 - 4.3",
    loggers=MANAGER,
    words=("Log",),
    trigger="is scheduled for deletion",
    pattern=r"^Log for partition (?P<tp>\S+) is renamed to (?P<directory>.+?) and is scheduled for "
    r"deletion",
    examples=(
        example(
            "Log for partition t-0 is renamed to "
            "/var/lib/kafka/b1/t-0.e19b58ac380d41e1a039437d5a429c3b-delete and is scheduled for "
            "deletion",
            topic="t", partition=0, directory=DIRECTORY + "/t-0.e19b58ac380d41e1a039437d5a429c3b-delete",
        ),
    ),
)  # fmt: skip

_DELETED = LineFamily(
    kind="log_deleted",
    versions="0.10 - 4.3",
    loggers=MANAGER,
    words=("Deleted",),
    trigger="Deleted log for partition ",
    pattern=r"^Deleted log for partition " + TP + r" in (?P<directory>.+?)\.?$",
    examples=(
        example(
            "Deleted log for partition [t,0] in /var/lib/kafka/b1.",
            topic="t", partition=0, directory=DIRECTORY,
        ),
        example(
            "Deleted log for partition t-0 in "
            "/var/lib/kafka/b1/t-0.e19b58ac380d41e1a039437d5a429c3b-delete.",
            topic="t", partition=0, directory=DIRECTORY + "/t-0.e19b58ac380d41e1a039437d5a429c3b-delete",
        ),
    ),
)  # fmt: skip

# Moved to another log directory of its broker (KIP-113): what lay there before is deleted later.
_REPLACED = LineFamily(
    kind="log_replaced",
    versions="1.1 - 4.3",
    loggers=MANAGER,
    words=("The",),
    trigger="is successfully replaced with the future replica for ",
    pattern=r"^The current replica is successfully replaced with the future replica for "
    r"(?P<tp>\S+)$",
    examples=(
        example(
            "The current replica is successfully replaced with the future replica for t-0",
            topic="t", partition=0,
        ),
    ),
)  # fmt: skip

_STRAY_FOUND = LineFamily(
    kind="log_marked_stray",
    versions="3.7 - 4.3",
    loggers=MANAGER,
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
    loggers=MANAGER,
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
    loggers=LOG,
    words=("Incrementing", "Incremented"),
    trigger=" log start offset ",
    pattern=r"(?:" + LOG_PREFIX + r"|^)Increment(?:ing|ed) log start offset (?:of partition " + TP
    + r" )?to (?P<log_start_offset>\d+)(?: in dir (?P<directory__2>\S+?))?"
    r"(?: due to (?P<reason>.*?))?\.?$",
    examples=(
        example(
            "Incrementing log start offset of partition t-0 to 50 in dir /var/lib/kafka/b1",
            topic="t", partition=0, log_start_offset=50, directory=DIRECTORY,
        ),
        example(
            "[Log partition=t-0, dir=/var/lib/kafka/b1] Incrementing log start offset to 50",
            topic="t", partition=0, directory=DIRECTORY, log_start_offset=50,
        ),
        example(
            "[UnifiedLog partition=t-0, dir=/var/lib/kafka/b1] Incremented log start offset to 5 "
            "due to segment deletion",
            topic="t", partition=0, directory=DIRECTORY, log_start_offset=5, reason="segment deletion",
        ),
    ),
)  # fmt: skip

_LOCAL_LOG_START = ignored(
    "3.6 - 4.3: tiered storage moved the local start, the log's own stays",
    LOG,
    ("Incremented",),
    "Incremented local log start offset ",
    r"Incremented local log start offset to \d+",
    "[UnifiedLog partition=t-0, dir=/var/lib/kafka/b1] Incremented local log start offset to 5 due to "
    "reason local log deletion",
)

_TIERED_PREFIX = (
    r"^\[RemoteLogManager=(?P<node>\d+) partition=(?P<topic_id>[\w-]{22}):(?P<tp>[^\]]+-\d+)\] "
)


def _tiered_deleted(match: re.Match[str]) -> list[Found]:
    found = found_by_groups(match)
    why = found.fields.pop("why")
    found.fields["reason"] = next((code for words, code in _TIERED_WHY if words in why), "other")
    return [found]


_TIERED_WHY = (
    ("retention time", "retention_time"),
    ("retention size", "retention_size"),
    ("log-start-offset", "log_start_offset"),
    ("leader-epoch-cache truncation", "leader_epoch"),
)
# "About to delete .." is printed before it, of the same segment.
_TIERED_DELETED = LineFamily(
    kind="tiered_segment_deleted",
    versions="3.6 - 4.3",
    loggers=("RemoteLogManager", "RLMTask", "RLMExpirationTask"),
    words=("About", "Deleted"),
    trigger=" remote log segment ",
    pattern=_TIERED_PREFIX + r"(?:About to delete|Deleted) remote log segment (?P<why>.*)$",
    convert=_tiered_deleted,
    examples=(
        example(
            "[RemoteLogManager=1 partition=Ix8NaKEJR-atO-v7XPgawQ:t-0] Deleted remote log segment "
            "RemoteLogSegmentId{topicIdPartition=Ix8NaKEJR-atO-v7XPgawQ:t-0, "
            "id=lr1ecSWHT8mZTzOtwIRw7A} due to leader-epoch-cache truncation. Current earliest-epoch-"
            "entry: EpochEntry(epoch=2, startOffset=40), segment-end-offset: 39 and segment-epochs: "
            "[0]",
            node=1, topic="t", partition=0, topic_id="Ix8NaKEJR-atO-v7XPgawQ", reason="leader_epoch",
        ),
    ),
)  # fmt: skip

_TIERED_COPIED = LineFamily(
    kind="tiered_segment_copied",
    versions="3.6 - 4.3",
    loggers=("RemoteLogManager", "RLMTask", "RLMCopyTask"),
    words=("Copied",),
    trigger=" to remote storage with segment-id",
    pattern=_TIERED_PREFIX + r"Copied 0*(?P<segment>\d+)\.log to remote storage with segment-id",
    examples=(
        example(
            "[RemoteLogManager=1 partition=Ix8NaKEJR-atO-v7XPgawQ:t-0] Copied "
            "00000000000000000015.log to remote storage with segment-id: RemoteLogSegmentId{"
            "topicIdPartition=Ix8NaKEJR-atO-v7XPgawQ:t-0, id=lr1ecSWHT8mZTzOtwIRw7A}",
            node=1, topic="t", partition=0, topic_id="Ix8NaKEJR-atO-v7XPgawQ", segment=15,
        ),
    ),
)  # fmt: skip

_BASE_OFFSET = re.compile(r"baseOffset=(\d+)|LogSegment\((\d+)")
_LISTED_OFFSETS = re.compile(r"base offsets? \[([\d,]*)\]")
_LIMIT = re.compile(r"retention (?:time|size) (\d+)(?:ms)? breach")


def _segments_deleted(match: re.Match[str]) -> list[Found]:
    """`reason` is one of retention_time, retention_size, log_start_offset, truncation, other;
    `limit` the retention.ms or retention.bytes that the segments were beyond."""
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
    limit = _LIMIT.search(rest)
    if limit:
        found.fields["limit"] = int(limit[1])
    return [found]


_SEGMENTS_DELETED = LineFamily(
    kind="segments_deleted",
    versions="2.4 - 4.3",
    loggers=LOG,
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
            topic="t", partition=0, directory=DIRECTORY, reason="retention_time", base_offsets=(0,),
            limit=4000,
        ),
        example(
            "[UnifiedLog partition=s-0, dir=/var/lib/kafka/b1] Deleting segments due to log start "
            "offset 15 breach: LogSegment(baseOffset=10, size=236, lastModifiedTime=1795188184083, "
            "largestRecordTimestamp=1795188184039)",
            topic="s", partition=0, directory=DIRECTORY, reason="log_start_offset", base_offsets=(10,),
        ),
    ),
)  # fmt: skip

_SEGMENTS_CUT_OFF = LineFamily(
    kind="segments_deleted",
    versions="2.4 - 4.3",
    loggers=(*LOG, "LocalLog"),
    words=("Deleting",),
    trigger="Deleting segments as part of log truncation",
    pattern=LOG_PREFIX + r"Deleting segments (?P<rest>as part of log truncation.*)$",
    convert=_segments_deleted,
    examples=(
        example(
            "[LocalLog partition=t-0, dir=/var/lib/kafka/b1] Deleting segments as part of log "
            "truncation: LogSegment(baseOffset=15, size=236, lastModifiedTime=1795188185151, "
            "largestRecordTimestamp=-1)",
            topic="t", partition=0, directory=DIRECTORY, reason="truncation", base_offsets=(15,),
        ),
    ),
)  # fmt: skip

_DELETABLE_FOUND = LineFamily(
    kind="segments_deleted",
    versions="1.0 - 2.5",
    loggers=LOG,
    words=("Found",),
    trigger="Found deletable segments ",
    pattern=LOG_PREFIX + r"Found deletable segments with (?P<rest>.*)$",
    convert=_segments_deleted,
    examples=(
        example(
            "[Log partition=t-0, dir=/var/lib/kafka/b1] Found deletable segments with base offsets "
            "[0,5] due to retention time 604800000ms breach",
            topic="t", partition=0, directory=DIRECTORY, reason="retention_time", base_offsets=(0, 5),
            limit=604800000,
        ),
    ),
)  # fmt: skip

_UNEXPECTED_OFFSET = LineFamily(
    kind="unexpected_append_offset",
    versions="1.1 - 4.3",
    loggers=("Partition", *LOG),
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

FAMILIES: tuple[LineFamily, ...] = (
    _CREATED,
    _MARKED_DELETED,
    _DELETED,
    _REPLACED,
    _STRAY_FOUND,
    _STRAY_RENAMED,
    _LOG_START,
    _LOCAL_LOG_START,
    _TIERED_DELETED,
    _TIERED_COPIED,
    _SEGMENTS_DELETED,
    _SEGMENTS_CUT_OFF,
    _DELETABLE_FOUND,
    _UNEXPECTED_OFFSET,
)
