"""Lines at DEBUG and TRACE: appends, fetches, every high watermark and log end offset."""

import re

from replication.evidence.broker_logs.line_families.family import (
    FETCHER_PREFIX,
    LOG_CLASSES,
    LOG_PREFIX,
    PARTITION_PREFIX,
    TP,
    Fields,
    Found,
    LineFamily,
    example,
    fetcher,
    found_by_groups,
    ignored,
    offset_metadata,
    topic_partition,
    whole_number,
)

_PARTITION = ("Partition",)
_REPLICA = ("Replica",)
_FETCHER = ("ReplicaFetcherThread",)
_D = "/var/lib/kafka/b1"

# --- the log itself ----------------------------------------------------------------------------

_CRC = re.compile(r"\(offset=(\d+),record=Record\(magic = \d.*?\bcrc = (\d+)")


def _appended(match: re.Match[str]) -> list[Found]:
    """`end_offset` is exclusive. 0.10 prints each record with its CRC: (offset, crc) pairs."""
    found = found_by_groups(match)
    crcs = _CRC.findall(found.fields.pop("rest"))
    if crcs:
        found.fields["crcs"] = tuple((int(offset), int(crc)) for offset, crc in crcs)
    return [found]


# The same line for a leader's and for a follower's append.
_APPENDED = LineFamily(
    kind="log_appended",
    versions="0.10 - 4.3 TRACE",
    loggers=LOG_CLASSES,
    words=("Appended",),
    trigger="Appended message set ",
    pattern=r"(?:" + LOG_PREFIX + r"|^)Appended message set (?:to log " + TP + r" )?with "
    r"(?:last offset:? (?P<last_offset>-?\d+),? )?first offset: (?:None|(?:Some\()?(?:\(offset=|"
    r"LogOffsetMetadata\((?:messageOffset|offset)=)?(?P<first_offset>-?\d+)[^\n]*?), next offset: "
    r"(?P<end_offset>\d+),? and messages: (?P<rest>.*)$",
    convert=_appended,
    examples=(
        example(
            "Appended message set to log t-0 with first offset: 0, next offset: 2, and messages: "
            "[(offset=0,record=Record(magic = 1, attributes = 0, compression = NONE, crc = "
            "3522794006, CreateTime = 1795189113709, key = 9 bytes, value = 19 bytes)), (offset=1,"
            "record=Record(magic = 1, attributes = 0, compression = NONE, crc = 77, CreateTime = "
            "1795189113710, key = 9 bytes, value = 19 bytes))]",
            topic="t", partition=0, first_offset=0, end_offset=2, crcs=((0, 3522794006), (1, 77)),
        ),
        example(
            "[Log partition=t-0, dir=/var/lib/kafka/b1] Appended message set with last offset: 23, "
            "first offset: 20, next offset: 24, and messages: [(record=DefaultRecord(offset=20, "
            "timestamp=1795189373789, key=9 bytes, value=19 bytes))]",
            topic="t", partition=0, directory=_D, last_offset=23, first_offset=20, end_offset=24,
        ),
        example(
            "[Log partition=t-0, dir=/var/lib/kafka/b1] Appended message set with last offset: 0, "
            "first offset: Some((offset=0 segment=[0:0])), next offset: 1, and messages: "
            "MemoryRecords(size=96, buffer=java.nio.HeapByteBuffer[pos=0 lim=96 cap=99])",
            topic="t", partition=0, directory=_D, last_offset=0, first_offset=0, end_offset=1,
        ),
        example(
            "[UnifiedLog partition=t-0, dir=/var/lib/kafka/b1] Appended message set with last "
            "offset: 1, first offset: 0, next offset: 2, and messages: MemoryRecords(size=131, "
            "buffer=java.nio.HeapByteBuffer[pos=0 lim=131 cap=131])",
            topic="t", partition=0, directory=_D, last_offset=1, first_offset=0, end_offset=2,
        ),
    ),
)  # fmt: skip

_HIGH_WATERMARK_IN_LOG = LineFamily(
    kind="high_watermark_set",
    versions="2.4 - 4.3 TRACE, leader and follower, also where nothing changes",
    loggers=LOG_CLASSES,
    words=("Setting",),
    trigger="Setting high watermark ",
    pattern=LOG_PREFIX + r"Setting high watermark " + offset_metadata("high_watermark") + r"$",
    examples=(
        example(
            "[Log partition=t-0, dir=/var/lib/kafka/b1] Setting high watermark (offset=1 "
            "segment=[0:96])",
            topic="t", partition=0, directory=_D, high_watermark=1,
        ),
        example(
            "[UnifiedLog partition=t-0, dir=/var/lib/kafka/b1] Setting high watermark (offset=2, "
            "segment=[-1:-1])",
            topic="t", partition=0, directory=_D, high_watermark=2,
        ),
    ),
)  # fmt: skip

# --- replica objects (0.10 - 2.3) --------------------------------------------------------------

_HIGH_WATERMARK_OF_REPLICA = LineFamily(
    kind="high_watermark_set",
    versions="0.10 - 2.3 TRACE",
    loggers=_REPLICA,
    words=("Setting",),
    trigger="Setting high watermark for replica ",
    pattern=r"^Setting high watermark for replica (?P<replica>\d+) partition " + TP + r" to \["
    + offset_metadata("high_watermark") + r"\]$",
    examples=(
        example(
            "Setting high watermark for replica 1 partition t-0 to [10 [-1 : -1]]",
            topic="t", partition=0, replica=1, high_watermark=10,
        ),
    ),
)  # fmt: skip

# -1: a leader does not know yet where that follower's log ends.
# --- the leader's view -------------------------------------------------------------------------

# 2.8 prints it before the `Recorded replica` line that caused it.
_HIGH_WATERMARK_UPDATED = LineFamily(
    kind="leader_high_watermark_updated",
    versions="0.10 - 4.3 DEBUG",
    loggers=_PARTITION,
    words=("High",),
    trigger="High watermark ",
    pattern=PARTITION_PREFIX + r"High watermark (?:for partition \S+ )?updated (?:from "
    + offset_metadata("from_high_watermark") + r" )?to " + offset_metadata("to_high_watermark") + r"$",
    examples=(
        example(
            "Partition [t,0] on broker 1: High watermark for partition [t,0] updated to 11 [0 : 682]",
            node=1, topic="t", partition=0, to_high_watermark=11,
        ),
        example(
            "[Partition t-0 broker=1] High watermark updated to 14 [0 : 1346]",
            node=1, topic="t", partition=0, to_high_watermark=14,
        ),
        example(
            "[Partition t-0 broker=1] High watermark updated from (offset=0, segment=[0:0]) to "
            "(offset=1, segment=[0:96])",
            node=1, topic="t", partition=0, from_high_watermark=0, to_high_watermark=1,
        ),
    ),
)  # fmt: skip

_RECORDED = LineFamily(
    kind="follower_log_end_recorded",
    versions="0.10 - 4.3 DEBUG",
    loggers=_PARTITION,
    words=("Recorded",),
    trigger="Recorded replica ",
    pattern=PARTITION_PREFIX + r"Recorded replica (?P<replica>\d+) log end offset \(LEO\) position "
    r"(?P<log_end_offset>-?\d+)(?: for partition \S+?| and log start offset "
    r"(?P<log_start_offset>-?\d+))?\.$",
    examples=(
        example(
            "Partition [t,0] on broker 1: Recorded replica 2 log end offset (LEO) position 11 for "
            "partition t-0.",
            node=1, topic="t", partition=0, replica=2, log_end_offset=11,
        ),
        example(
            "[Partition t-0 broker=1] Recorded replica 2 log end offset (LEO) position 5.",
            node=1, topic="t", partition=0, replica=2, log_end_offset=5,
        ),
        example(
            "[Partition t-0 broker=1] Recorded replica 3 log end offset (LEO) position 2 and log "
            "start offset 0.",
            node=1, topic="t", partition=0, replica=3, log_end_offset=2, log_start_offset=0,
        ),
    ),
)  # fmt: skip

# --- the follower ------------------------------------------------------------------------------

_FETCHED_PARTITION = re.compile(
    r"(?P<tp>[^\s{,=]+-\d+)=(?:PartitionData)?\((?:topicId=(?P<id>[^,]+), )?(?:fetchOffset|offset)="
    r"(?P<fetch>-?\d+), logStartOffset=(?P<start>-?\d+), maxBytes=\d+"
    r"(?:, currentLeaderEpoch=Optional(?:\[(?P<current>\d+)\]|\.empty))?"
    r"(?:, lastFetchedEpoch=Optional(?:\[(?P<last>\d+)\]|\.empty))?\)"
)
_REPLICA_ID = re.compile(r"\breplicaId=(\d+)")
_SESSION = re.compile(r"metadata=\(sessionId=(\w+), epoch=(\w+)\)")


def _fetched_partitions(match: re.Match[str]) -> list[Found]:
    """One fact per partition. `session_id` and `session_epoch` (0 opens a session) since 1.1.

    A request of a running session names only the partitions whose position changed.
    """
    node, leader = fetcher(match)
    rest = match["rest"]
    named = _REPLICA_ID.search(rest)
    if node is None and named is not None:
        node = int(named[1])
    common: Fields = {"follower": node, "leader": leader}
    session = _SESSION.search(rest)
    if session:
        common["session_id"] = None if session[1] == "INVALID" else int(session[1])
        epochs = {"INITIAL": 0, "FINAL": None}
        common["session_epoch"] = epochs[session[2]] if session[2] in epochs else int(session[2])
    found = []
    for item in _FETCHED_PARTITION.finditer(rest):
        fields = dict(common, fetch_offset=int(item["fetch"]))
        fields["log_start_offset"] = whole_number(item["start"])
        if item["id"] is not None:
            fields["topic_id"] = item["id"]
        if "currentLeaderEpoch=" in item[0]:
            fields["leader_epoch"] = None if item["current"] is None else int(item["current"])
        if "lastFetchedEpoch=" in item[0]:
            fields["last_fetched_epoch"] = None if item["last"] is None else int(item["last"])
        found.append(Found(fields, node, *topic_partition(item["tp"])))
    return found


# Default level: where a follower was when its leader died.
_FETCH_FAILED = LineFamily(
    kind="fetch_failed",
    versions="0.11 - 4.3 WARN (0.10 prints no content)",
    loggers=_FETCHER,
    words=("Error",),
    trigger=" (type=",
    pattern=FETCHER_PREFIX + r"Error in (?:response for fetch request|fetch to broker \d+, request) "
    r"(?P<rest>\(type=.*)$",
    convert=_fetched_partitions,
    examples=(
        example(
            "[ReplicaFetcherThread-0-2]: Error in fetch to broker 2, request (type=FetchRequest, "
            "replicaId=1, maxWait=500, minBytes=1, maxBytes=10485760, fetchData={t-0=(offset=7, "
            "logStartOffset=0, maxBytes=1048576)})",
            node=1, topic="t", partition=0, follower=1, leader=2, fetch_offset=7,
            log_start_offset=0,
        ),
        example(
            "[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Error in response for fetch "
            "request (type=FetchRequest, replicaId=2, maxWait=500, minBytes=1, maxBytes=10485760, "
            "fetchData={t-0=PartitionData(topicId=Ix8NaKEJR-atO-v7XPgawQ, fetchOffset=20, "
            "logStartOffset=0, maxBytes=1048576, currentLeaderEpoch=Optional[0], lastFetchedEpoch="
            "Optional[0])}, isolationLevel=read_uncommitted, removed=, replaced=, metadata=("
            "sessionId=130231195, epoch=INITIAL), rackId=)",
            node=2, topic="t", partition=0, follower=2, leader=1, topic_id="Ix8NaKEJR-atO-v7XPgawQ",
            fetch_offset=20, log_start_offset=0, leader_epoch=0, last_fetched_epoch=0,
            session_id=130231195, session_epoch=0,
        ),
    ),
)  # fmt: skip


def _with_follower(match: re.Match[str]) -> list[Found]:
    """The follower's id: in the text up to 0.11, in the prefix since."""
    found = found_by_groups(match)
    node = found.fields.get("follower", found.node)
    if node is not None:
        found.fields["follower"] = node
    return [Found(found.fields, node, found.topic, found.partition)]


_FOLLOWER = r"Follower (?:\[?(?P<follower>\d+)\]? )?"

# "Received N messages" counts bytes in every release.
_RESPONSE = LineFamily(
    kind="fetch_response_received",
    versions="0.10 - 4.3 TRACE",
    loggers=_FETCHER,
    words=("Follower",),
    trigger=" and leader hw ",
    pattern=FETCHER_PREFIX + _FOLLOWER + r"has replica log end offset (?P<log_end_offset>\d+) for partition "
    + TP + r"\. Received (?P<bytes>\d+) (?:messages|bytes of messages) and leader hw "
    r"(?P<high_watermark>-?\d+)$",
    convert=_with_follower,
    examples=(
        example(
            "[ReplicaFetcherThread-0-2], Follower 1 has replica log end offset 9 for partition "
            "t-0. Received 62 messages and leader hw 9",
            node=1, topic="t", partition=0, follower=1, leader=2, log_end_offset=9, bytes=62,
            high_watermark=9,
        ),
        example(
            "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Follower has replica log end "
            "offset 2 for partition t-1. Received 131 bytes of messages and leader hw 2",
            node=1, topic="t", partition=1, follower=1, leader=2, log_end_offset=2, bytes=131,
            high_watermark=2,
        ),
    ),
)  # fmt: skip

_FOLLOWER_APPENDED = LineFamily(
    kind="follower_appended",
    versions="0.10 - 4.3 TRACE",
    loggers=_FETCHER,
    words=("Follower",),
    trigger=" after appending ",
    pattern=FETCHER_PREFIX + _FOLLOWER + r"has replica log end offset (?P<log_end_offset>\d+) after "
    r"appending (?P<bytes>\d+) bytes of messages for partition " + TP + r"$",
    convert=_with_follower,
    examples=(
        example(
            "[ReplicaFetcherThread-0-2], Follower 1 has replica log end offset 10 after appending 62"
            " bytes of messages for partition t-0",
            node=1, topic="t", partition=0, follower=1, leader=2, log_end_offset=10, bytes=62,
        ),
        example(
            "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Follower has replica log end "
            "offset 24 after appending 384 bytes of messages for partition t-0",
            node=1, topic="t", partition=0, follower=1, leader=2, log_end_offset=24, bytes=384,
        ),
    ),
)  # fmt: skip


# The only place where 1.x prints the epoch a follower asked for.
_ACKS_SATISFIED = ignored(
    "0.10 - 1.1 TRACE: `Recorded replica` says the same with offsets",
    _PARTITION,
    ("Replica",),
    " received offset ",
    r"Replica \d+ (?:of \S+ )?received offset \d+",
    "[Partition t-0 broker=1] Replica 2 received offset 1",
)

FAMILIES: tuple[LineFamily, ...] = (
    _APPENDED,
    _HIGH_WATERMARK_IN_LOG,
    _HIGH_WATERMARK_OF_REPLICA,
    _HIGH_WATERMARK_UPDATED,
    _RECORDED,
    _ACKS_SATISFIED,
    _FETCH_FAILED,
    _RESPONSE,
    _FOLLOWER_APPENDED,
)
