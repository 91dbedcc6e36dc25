"""Lines at DEBUG and TRACE: appends, fetches, every high watermark and log end offset."""

import re

from replication.evidence.broker_logs.line_families.family import (
    FETCHER_PREFIX,
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
    read_field,
    topic_partition,
    whole_number,
)

_LOG = ("Log", "UnifiedLog")
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
    loggers=_LOG,
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
    loggers=_LOG,
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
_LOG_END_OF_REPLICA = LineFamily(
    kind="log_end_offset_set",
    versions="0.10 - 2.3 TRACE",
    loggers=_REPLICA,
    words=("Setting",),
    trigger="Setting log end offset for replica ",
    pattern=r"^Setting log end offset for replica (?P<replica>\d+) for partition " + TP + r" to \["
    + offset_metadata("log_end_offset") + r"\]$",
    examples=(
        example(
            "Setting log end offset for replica 2 for partition t-0 to [11 [0 : 682]]",
            topic="t", partition=0, replica=2, log_end_offset=11,
        ),
        example(
            "Setting log end offset for replica 2 for partition t-0 to [-1 [0 : 0]]",
            topic="t", partition=0, replica=2, log_end_offset=None,
        ),
    ),
)  # fmt: skip

_LOG_START_OF_REPLICA = LineFamily(
    kind="log_start_offset_set",
    versions="0.11 - 2.3 TRACE",
    loggers=_REPLICA,
    words=("Setting",),
    trigger="Setting log start offset for ",
    pattern=r"^Setting log start offset for remote replica (?P<replica>\d+) for partition " + TP
    + r" to \[(?P<log_start_offset>-?\d+)\]$",
    examples=(
        example(
            "Setting log start offset for remote replica 2 for partition t-0 to [0]",
            topic="t", partition=0, replica=2, log_start_offset=0,
        ),
    ),
)  # fmt: skip

_REPLICA_RESET = LineFamily(
    kind="follower_state_reset",
    versions="2.4 - 4.3 TRACE, by a new leader",
    loggers=_REPLICA,
    words=("Reset",),
    trigger="Reset state of replica to ",
    pattern=r"^Reset state of replica to Replica\(replicaId=(?P<replica>\d+), topic=(?P<topic>[^,]+), "
    r"partition=(?P<partition>\d+), .*?logStartOffset=(?P<log_start_offset>-?\d+), "
    r"logEndOffset=(?P<log_end_offset>-?\d+),",
    examples=(
        example(
            "Reset state of replica to Replica(replicaId=2, topic=t, partition=0, "
            "lastCaughtUpTimeMs=1795188670209, logStartOffset=-1, logEndOffset=23, "
            "logEndOffsetMetadata=(offset=23 segment=[0:0]), lastFetchLeaderLogEndOffset=0, "
            "lastFetchTimeMs=1795188670209)",
            topic="t", partition=0, replica=2, log_start_offset=None, log_end_offset=23,
        ),
    ),
)  # fmt: skip

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

_NAMED_END = re.compile(r"replica (\d+): \(offset=(-?\d+)")


def _not_updated(match: re.Match[str]) -> list[Found]:
    """`high_watermark` is the one kept (2.4+ do not print it), `candidate_high_watermark` the one
    refused; `log_end_offsets` by replica (2.4+; older ones print no replica ids).
    """
    found = found_by_groups(match)
    ends = _NAMED_END.findall(found.fields.pop("rest", ""))
    if ends:
        found.fields["log_end_offsets"] = {
            int(replica): whole_number(offset) for replica, offset in ends
        }
    return [found]


_NOT_UPDATED = LineFamily(
    kind="high_watermark_not_updated",
    versions="0.10 - 1.1 DEBUG, 2.0 - 4.3 TRACE",
    loggers=_PARTITION,
    words=("Skipping",),
    trigger="Skipping update high watermark since ",
    pattern=PARTITION_PREFIX + r"Skipping update high watermark since (?:"
    r"new hw " + offset_metadata("candidate_high_watermark")
    + r" is not larger than old (?:value\. All current|hw (?P<high_watermark>-?\d+) \[-?\d+ : -?\d+\]\. ?"
    r"All) LEOs are (?P<rest>.*)"
    r"|Old hw (?P<high_watermark__2>-?\d+) \[-?\d+ : -?\d+\] is larger than new hw "
    r"(?P<candidate_high_watermark__3>-?\d+) \[.*)$",
    convert=_not_updated,
    examples=(
        example(
            "Partition [t,0] on broker 1: Skipping update high watermark since Old hw 11 [0 : 682] "
            "is larger than new hw 10 [0 : 620] for partition [t,0]. All leo's are 12 [0 : 744],11 "
            "[0 : 682]",
            node=1, topic="t", partition=0, high_watermark=11, candidate_high_watermark=10,
        ),
        example(
            "[Partition t-0 broker=1] Skipping update high watermark since new hw -1 [0 : 0] is not "
            "larger than old hw 4 [0 : 392].All LEOs are 7 [0 : 684],-1 [0 : 0]",
            node=1, topic="t", partition=0, high_watermark=4, candidate_high_watermark=None,
        ),
        example(
            "[Partition t-0 broker=1] Skipping update high watermark since new hw (offset=0, "
            "segment=[0:0]) is not larger than old value. All current LEOs are Set(replica 2: "
            "(offset=-1, segment=[-1:-1]), replica 1: (offset=2, segment=[0:131]))",
            node=1, topic="t", partition=0, candidate_high_watermark=0,
            log_end_offsets={2: None, 1: 2},
        ),
    ),
)  # fmt: skip

_UNDER_MIN_ISR = LineFamily(
    kind="high_watermark_not_updated",
    versions="3.7 - 4.3 TRACE",
    loggers=_PARTITION,
    words=("Not",),
    trigger="Not increasing HWM ",
    pattern=PARTITION_PREFIX + r"Not increasing HWM because partition is under min ISR\(ISR=(?P<isr>[^)]*)",
    constants={"reason": "under_min_isr"},
    examples=(
        example(
            "[Partition t-0 broker=1] Not increasing HWM because partition is under min "
            "ISR(ISR=CommittedPartitionState(isr=Set(1), leaderRecoveryState=RECOVERED)",
            node=1, topic="t", partition=0, isr=(1,), reason="under_min_isr",
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

_BROKER_AT = re.compile(r"broker (\d+): (-?\d+)")


def _acks(match: re.Match[str]) -> list[Found]:
    """`acked` and `awaiting`: log end offsets by broker, as the leader knows them."""
    found = found_by_groups(match)
    for name in ("acked", "awaiting"):
        found.fields[name] = {
            int(broker): whole_number(offset)
            for broker, offset in _BROKER_AT.findall(found.fields[name])
        }
    return [found]


_ACKS = LineFamily(
    kind="acks_awaited",
    versions="2.0 - 4.3 TRACE",
    loggers=_PARTITION,
    words=("Progress",),
    trigger="Progress awaiting ISR acks ",
    pattern=PARTITION_PREFIX + r"Progress awaiting ISR acks for offset (?P<required_offset>\d+): acked: "
    r"(?P<acked>.*?), awaiting (?P<awaiting>\w+\(.*\))$",
    convert=_acks,
    examples=(
        example(
            "[Partition t-0 broker=1] Progress awaiting ISR acks for offset 7: acked: Set(broker 1: "
            "7, broker 2: 8), awaiting Set(broker 3: 6)",
            node=1, topic="t", partition=0, required_offset=7, acked={1: 7, 2: 8}, awaiting={3: 6},
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


_FETCH_SENT = LineFamily(
    kind="fetch_sent",
    versions="1.1 - 4.3 TRACE (0.10 and 0.11 print no content)",
    loggers=_FETCHER,
    words=("Sending",),
    trigger="Sending fetch request ",
    pattern=FETCHER_PREFIX + r"Sending fetch request (?P<rest>\(type=.*)$",
    convert=_fetched_partitions,
    examples=(
        example(
            "[ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Sending fetch request (type="
            "FetchRequest, replicaId=1, maxWait=500, minBytes=1, maxBytes=10485760, fetchData={t-1=("
            "offset=30, logStartOffset=0, maxBytes=1048576), t-0=(offset=36, logStartOffset=0, "
            "maxBytes=1048576)}, isolationLevel=READ_UNCOMMITTED, toForget=, metadata=(sessionId="
            "INVALID, epoch=INITIAL))",
            Found({"follower": 1, "leader": 3, "session_id": None, "session_epoch": 0,
                   "fetch_offset": 30, "log_start_offset": 0}, 1, "t", 1),
            Found({"follower": 1, "leader": 3, "session_id": None, "session_epoch": 0,
                   "fetch_offset": 36, "log_start_offset": 0}, 1, "t", 0),
        ),
        example(
            "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Sending fetch request (type="
            "FetchRequest, replicaId=1, maxWait=500, minBytes=1, maxBytes=10485760, fetchData={t-1="
            "PartitionData(topicId=qSMoNKWOSQ6Q-w4CrVSYLQ, fetchOffset=1, logStartOffset=0, "
            "maxBytes=1048576, currentLeaderEpoch=Optional[1], lastFetchedEpoch=Optional.empty)}, "
            "isolationLevel=read_uncommitted, removed=, replaced=, metadata=(sessionId=354249247, "
            "epoch=2), rackId=)",
            node=1, topic="t", partition=1, follower=1, leader=2, topic_id="qSMoNKWOSQ6Q-w4CrVSYLQ",
            fetch_offset=1, log_start_offset=0, leader_epoch=1, last_fetched_epoch=None,
            session_id=354249247, session_epoch=2,
        ),
    ),
)  # fmt: skip

# Default level: where a follower stood when its leader died.
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


def _follower_high_watermark(match: re.Match[str]) -> list[Found]:
    """`updated` False: the follower kept its own; `high_watermark` is then what the leader offered."""
    (found,) = _with_follower(match)
    found.fields["updated"] = found.fields.pop("kept", None) is None
    return [found]


_FOLLOWER_HIGH_WATERMARK = LineFamily(
    kind="follower_high_watermark_set",
    versions="0.10 - 4.3 TRACE",
    loggers=_FETCHER,
    words=("Follower",),
    trigger=" replica high watermark",
    pattern=FETCHER_PREFIX + _FOLLOWER + r"(?:set replica high watermark for partition "
    r"(?P<tp>\[[^\]]+\]|\S+) to (?:(?P<high_watermark>\d+)\b.*)"
    r"|received high watermark (?P<leader_high_watermark>\d+) from the leader and updated replica high "
    r"watermark to (?P<high_watermark__2>\d+) for partition (?P<tp__2>\S+)"
    r"|received high watermark (?P<high_watermark__3>\d+) from the leader but "
    r"(?P<kept>did not update) replica high watermark for partition (?P<tp__4>\S+))$",
    convert=_follower_high_watermark,
    examples=(
        example(
            "[ReplicaFetcherThread-0-2], Follower 1 set replica high watermark for partition [t,0] "
            "to 10",
            node=1, topic="t", partition=0, follower=1, leader=2, high_watermark=10, updated=True,
        ),
        example(
            "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Follower set replica high "
            "watermark for partition t-0 to 24",
            node=1, topic="t", partition=0, follower=1, leader=2, high_watermark=24, updated=True,
        ),
        example(
            "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Follower received high watermark "
            "4 from the leader and updated replica high watermark to 4 for partition t-1",
            node=1, topic="t", partition=1, follower=1, leader=2, leader_high_watermark=4,
            high_watermark=4, updated=True,
        ),
        example(
            "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Follower received high watermark "
            "0 from the leader but did not update replica high watermark for partition t-1",
            node=1, topic="t", partition=1, follower=1, leader=2, high_watermark=0, updated=False,
        ),
    ),
)  # fmt: skip

_END_OFFSET = re.compile(r"(?P<tp>[^\s{(,=]+-\d+)(?: -> |=)EpochEndOffset[{(](?P<rest>[^)}]*)[)}]")
_END_OFFSET_FIELDS = (
    ("leader_epoch", re.compile(r"\bleaderEpoch=(-?\d+)")),
    ("end_offset", re.compile(r"\bendOffset=(-?\d+)")),
)
_ERROR = re.compile(r"\berror(?:Code)?=(\w+)")


def _epoch_answers(match: re.Match[str]) -> list[Found]:
    """One fact per partition; `error` where the leader refused. No end offset: epoch unknown."""
    node = None if match["node"] is None else int(match["node"])
    found = []
    for item in _END_OFFSET.finditer(match["rest"]):
        fields: Fields = {}
        leader = match["leader"]
        if leader is not None:
            fields["leader"] = int(leader)
        for name, pattern in _END_OFFSET_FIELDS:
            value = pattern.search(item["rest"])
            if value:
                fields[name] = read_field(name, value[1])
        error = _ERROR.search(item["rest"])
        if error and error[1] not in ("NONE", "0"):
            fields["error"] = error[1]
        found.append(Found(fields, node, *topic_partition(item["tp"])))
    return found


_EPOCH_ANSWER = LineFamily(
    kind="epoch_answer_received",
    versions="0.11 - 3.x DEBUG",
    loggers=(*_FETCHER, "RemoteLeaderEndPoint"),
    words=("Receive", "Received"),
    trigger=" leaderEpoch response ",
    pattern=r"^(?:\[ReplicaFetcher replicaId=(?P<node>\d+), leaderId=(?P<leader>\d+), fetcherId=\d+\] |"
    r"\[[^\]]*\][,:]? )?Received? leaderEpoch response (?P<rest>.*)$",
    convert=_epoch_answers,
    examples=(
        example(
            "[ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Receive leaderEpoch response Map("
            "t-1 -> EpochEndOffset{error=NONE, endOffset=38}, t-0 -> EpochEndOffset{error="
            "NOT_LEADER_FOR_PARTITION, endOffset=-1})",
            Found({"leader": 3, "end_offset": 38}, 1, "t", 1),
            Found(
                {"leader": 3, "end_offset": None, "error": "NOT_LEADER_FOR_PARTITION"}, 1, "t", 0
            ),
        ),
        example(
            "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Receive leaderEpoch response Map("
            "t-0 -> EpochEndOffset(errorCode=0, partition=0, leaderEpoch=1, endOffset=9))",
            node=1, topic="t", partition=0, leader=2, leader_epoch=1, end_offset=9,
        ),
    ),
)  # fmt: skip

_ASKED = re.compile(r"([^\s{(,=]+-\d+)(?: -> |=)(\d+)")


def _epoch_questions(match: re.Match[str]) -> list[Found]:
    node, leader = fetcher(match)
    return [
        Found({"leader": leader, "leader_epoch": int(asked)}, node, *topic_partition(name))
        for name, asked in _ASKED.findall(match["rest"])
    ]


# The only place where 1.x prints the epoch a follower asked for.
_EPOCH_QUESTION_FAILED = LineFamily(
    kind="epoch_request_failed",
    versions="0.11 - 2.x WARN",
    loggers=_FETCHER,
    words=("Error",),
    trigger="Error when sending leader epoch request ",
    pattern=FETCHER_PREFIX + r"Error when sending leader epoch request for (?P<rest>.*)$",
    convert=_epoch_questions,
    examples=(
        example(
            "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Error when sending leader epoch "
            "request for Map(t-0 -> 0)",
            node=1, topic="t", partition=0, leader=2, leader_epoch=0,
        ),
    ),
)  # fmt: skip

_EPOCH_LOOKED_UP = LineFamily(
    kind="epoch_end_offset_answered",
    versions="0.11 - 4.3 DEBUG or TRACE: what a leader's (or its own) epoch cache answers",
    loggers=("LeaderEpochFileCache",),
    words=("Processed",),
    trigger="Processed ",
    pattern=r"^(?:\[LeaderEpochCache (?P<tp>\S+)\] )?Processed (?:end offset request for epoch "
    r"(?P<requested_epoch>-?\d+) and returning epoch (?P<leader_epoch>-?\d+) with end offset "
    r"(?P<end_offset>-?\d+)|offset for epoch request for partition (?P<tp__2>\S+) epoch:"
    r"(?P<requested_epoch__2>-?\d+) and returning offset (?P<end_offset__2>-?\d+)) from epoch ",
    examples=(
        example(
            "Processed offset for epoch request for partition t-0 epoch:-1 and returning offset -1 "
            "from epoch list of size 0",
            topic="t", partition=0, requested_epoch=None, end_offset=None,
        ),
        example(
            "[LeaderEpochCache t-0] Processed end offset request for epoch 0 and returning epoch 0 "
            "with end offset 20 from epoch cache of size 2}",
            topic="t", partition=0, requested_epoch=0, leader_epoch=0, end_offset=20,
        ),
    ),
)  # fmt: skip


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
    _LOG_END_OF_REPLICA,
    _LOG_START_OF_REPLICA,
    _REPLICA_RESET,
    _HIGH_WATERMARK_UPDATED,
    _NOT_UPDATED,
    _UNDER_MIN_ISR,
    _RECORDED,
    _ACKS,
    _ACKS_SATISFIED,
    _FETCH_SENT,
    _FETCH_FAILED,
    _RESPONSE,
    _FOLLOWER_APPENDED,
    _FOLLOWER_HIGH_WATERMARK,
    _EPOCH_ANSWER,
    _EPOCH_QUESTION_FAILED,
    _EPOCH_LOOKED_UP,
)
