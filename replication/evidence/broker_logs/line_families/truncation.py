"""Lines by which a replica cuts its log, or says why it does, does not or must not."""

import re

from replication.evidence.broker_logs.line_families.family import (
    FETCHER_MANAGER_PREFIX,
    FETCHER_PREFIX,
    LOG_CLASSES,
    LOG_PREFIX,
    SHORTENED,
    TP,
    Fields,
    Found,
    LineFamily,
    example,
    found_by_groups,
    topic_id,
    topic_partition,
    whole_number,
)

_FETCHER = ("ReplicaFetcherThread",)

# 0.10 prints this on every become-follower, also where nothing is cut: compare with the log's end.
_TRUNCATING = LineFamily(
    kind="truncated",
    versions="0.10 - 4.3",
    loggers=LOG_CLASSES,
    words=("Truncating",),
    trigger=" to offset ",
    pattern=r"(?:" + LOG_PREFIX + r"Truncating|^Truncating log " + TP + r") to offset "
    r"(?P<to_offset>\d+)\.?$",
    examples=(
        example(
            "Truncating log t-0 to offset 10.", topic="t", partition=0, to_offset=10
        ),
        example(
            "[UnifiedLog partition=t-0, dir=/var/lib/kafka/b1] Truncating to offset 20",
            topic="t", partition=0, directory="/var/lib/kafka/b1", to_offset=20,
        ),
        example(
            "[MergedLog partition=t-0, dir=/var/lib/kafka/b1] Truncating to offset 20",
            topic="t", partition=0, directory="/var/lib/kafka/b1", to_offset=20,
        ),
    ),
)  # fmt: skip

# 4.2 says it before the cut and repeats the partition; 2.0 - 2.3 said it in the fetcher. In 2.4 - 4.1
# the line is there but never printed (KAFKA-19474).
_BELOW_HIGH_WATERMARK = LineFamily(
    kind="truncated_below_high_watermark",
    versions="2.0 - 2.3 (fetcher), 4.2 - 4.3 (log)",
    loggers=(*LOG_CLASSES, *_FETCHER),
    words=("Truncating",),
    trigger=" below high watermark ",
    pattern=r"(?:" + LOG_PREFIX + r"|" + FETCHER_PREFIX.replace("P<", "P<fetcher_") + r")"
    r"Truncating " + TP + r" to offset (?P<to_offset>\d+) below high watermark "
    r"(?P<high_watermark>\d+)$",
    convert=lambda match: [_from_log_or_fetcher(match)],
    examples=(
        example(
            "[UnifiedLog partition=t-0, dir=/var/lib/kafka/b1] Truncating t-0 to offset 20 below "
            "high watermark 30",
            topic="t", partition=0, directory="/var/lib/kafka/b1", to_offset=20, high_watermark=30,
        ),
        example(
            "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating t-0 to offset 20 "
            "below high watermark 30",
            node=1, topic="t", partition=0, leader=2, to_offset=20, high_watermark=30,
        ),
    ),
)  # fmt: skip


def _from_log_or_fetcher(match: re.Match[str]) -> Found:
    found = found_by_groups(match)
    fields = found.fields
    node = fields.pop("fetcher_node", None)
    leader = fields.pop("fetcher_leader", None)
    if leader is not None:
        fields["leader"] = int(leader)
    return Found(fields, None if node is None else int(node), found.topic, found.partition)


_WITHOUT_EFFECT = LineFamily(
    kind="truncation_without_effect",
    versions="0.10 - 4.3",
    loggers=LOG_CLASSES,
    words=("Truncating",),
    trigger=" has no effect ",
    pattern=r"(?:" + LOG_PREFIX + r"Truncating|^Truncating " + TP + r") to (?P<to_offset>\d+) has no "
    r"effect as the largest offset in the log is (?P<last_offset>-?\d+)\.?$",
    examples=(
        example(
            "Truncating t-0 to 11 has no effect as the largest offset in the log is 9.",
            topic="t", partition=0, to_offset=11, last_offset=9,
        ),
        example(
            "[Log partition=t-0, dir=/var/lib/kafka/b2/data] Truncating to 0 has no effect as the "
            "largest offset in the log is -1",
            topic="t", partition=0, directory="/var/lib/kafka/b2/data", to_offset=0, last_offset=-1,
        ),
    ),
)  # fmt: skip

_TRUNCATE_FULLY = LineFamily(
    kind="truncated_fully",
    versions="0.10 - 4.3 DEBUG",
    loggers=LOG_CLASSES,
    words=("Truncate",),
    trigger="Truncate and start ",
    pattern=r"(?:" + LOG_PREFIX + r"|^)Truncate and start (?:log '?" + TP + r"'? )?(?:at offset|to) "
    r"(?P<to_offset>\d+)(?:, logStartOffset (?P<log_start_offset>\d+))?\.?$",
    examples=(
        example(
            "Truncate and start log 't-0' to 50", topic="t", partition=0, to_offset=50
        ),
        example(
            "[UnifiedLog partition=t-0, dir=/var/lib/kafka/b1] Truncate and start at offset 50",
            topic="t", partition=0, directory="/var/lib/kafka/b1", to_offset=50,
        ),
        example(
            "[UnifiedLog partition=t-0, dir=/var/lib/kafka/b1] Truncate and start at offset 50, "
            "logStartOffset 48",
            topic="t", partition=0, directory="/var/lib/kafka/b1", to_offset=50,
            log_start_offset=48,
        ),
    ),
)  # fmt: skip


def _reason(
    reason: str, versions: str, trigger: str, pattern: str, *examples_: object
) -> LineFamily:
    return LineFamily(
        kind="truncation_reason",
        versions=versions,
        loggers=_FETCHER,
        words=("Truncating",) if pattern.startswith("Truncating") else ("Based", "Leader"),
        trigger=trigger,
        pattern=FETCHER_PREFIX + pattern,
        constants={"reason": reason},
        examples=tuple(examples_),  # type: ignore[arg-type]
    )


_FETCHER_1_OF_2 = "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] "
_AT = {"node": 1, "leader": 2, "topic": "t", "partition": 0}

_TO_HIGH_WATERMARK = _reason(
    "high_watermark",
    "2.4 - 4.3",
    "to local high watermark ",
    r"Truncating partition " + TP + r" (?:to local high watermark (?P<to_offset>\d+)"
    r"|with TruncationState\(offset=(?P<to_offset__2>\d+), completed=(?P<completed>\w+)\) "
    r"due to local high watermark (?P<high_watermark>\d+))$",
    example(
        _FETCHER_1_OF_2 + "Truncating partition t-0 to local high watermark 7",
        **_AT, to_offset=7, reason="high_watermark",
    ),
    example(
        _FETCHER_1_OF_2 + "Truncating partition t-0 with TruncationState(offset=0, completed=true) "
        "due to local high watermark 0",
        **_AT, to_offset=0, high_watermark=0, completed=True, reason="high_watermark",
    ),
)  # fmt: skip

_TO_LEADER_EPOCH = _reason(
    "leader_epoch",
    "3.1 - 4.3",
    "due to leader epoch and offset ",
    r"Truncating partition " + TP + r" with TruncationState\(offset=(?P<to_offset>\d+), "
    r"completed=(?P<completed>\w+)\) due to leader epoch and offset EpochEndOffset\(errorCode=\d+, "
    r"partition=\d+, leaderEpoch=(?P<leader_epoch>-?\d+), endOffset=(?P<end_offset>-?\d+)\)$",
    example(
        _FETCHER_1_OF_2 + "Truncating partition t-0 with TruncationState(offset=20, completed=true) "
        "due to leader epoch and offset EpochEndOffset(errorCode=0, partition=0, leaderEpoch=0, "
        "endOffset=20)",
        **_AT, to_offset=20, leader_epoch=0, end_offset=20, completed=True, reason="leader_epoch",
    ),
)  # fmt: skip

# Somebody shortened the line: why it cuts is not there, what it cuts to and who told it is.
_SHORTENED = LineFamily(
    kind="truncation_reason",
    versions="2.4 - 4.3, shortened behind the state by who pasted it",
    loggers=_FETCHER,
    words=("Truncating",),
    trigger=" with TruncationState(",
    pattern=FETCHER_PREFIX + r"Truncating partition " + TP + r" with TruncationState\("
    r"offset=(?P<to_offset>\d+), completed=(?P<completed>\w+)\)(?: due to ?[a-z ]*)? ?" + SHORTENED,
    examples=(
        example(
            _FETCHER_1_OF_2 + "Truncating partition t-0 with TruncationState(offset=20, "
            "completed=true) ...",
            **_AT, to_offset=20, completed=True,
        ),
    ),
)  # fmt: skip

_NO_TRUNCATION_NEEDED = _reason(
    "no_truncation_needed",
    "0.11 - 1.1",
    "No truncation needed",
    r"Based on follower's leader epoch, leader replied with an offset (?P<end_offset>\d+) >= the "
    r"follower's log end offset (?P<log_end_offset>\d+) in " + TP + r"\. No truncation needed\.$",
    example(
        _FETCHER_1_OF_2 + "Based on follower's leader epoch, leader replied with an offset 23 >= "
        "the follower's log end offset 23 in t-0. No truncation needed.",
        **_AT, end_offset=23, log_end_offset=23, reason="no_truncation_needed",
    ),
    example(
        "[ReplicaFetcherThread-0-2]: Based on follower's leader epoch, leader replied with an "
        "offset 9 >= the follower's log end offset 9 in t-0. No truncation needed.",
        leader=2, topic="t", partition=0, end_offset=9, log_end_offset=9,
        reason="no_truncation_needed",
    ),
)  # fmt: skip

# 0.11 falls back to its high watermark, later releases to the offset the fetch was to start at.
_UNKNOWN_OFFSET = _reason(
    "unknown_epoch",
    "0.11 - 3.0",
    "leader replied with an unknown offset",
    r"Based on (?:[\w ]+'s )?leader epoch, leader replied with an unknown offset in " + TP + r"\. "
    r"(?:High watermark (?P<high_watermark>\d+)|The initial fetch offset (?P<to_offset>\d+)) will be "
    r"used for truncation\.$",
    example(
        _FETCHER_1_OF_2 + "Based on follower's leader epoch, leader replied with an unknown offset "
        "in t-0. The initial fetch offset 0 will be used for truncation.",
        **_AT, to_offset=0, reason="unknown_epoch",
    ),
    example(
        _FETCHER_1_OF_2 + "Based on follower's leader epoch, leader replied with an unknown offset "
        "in t-0. High watermark 5 will be used for truncation.",
        **_AT, high_watermark=5, reason="unknown_epoch",
    ),
)  # fmt: skip

# KIP-279: the follower does not know the epoch it was told, cuts to its own smaller one, asks again.
_ASKS_AGAIN = _reason(
    "diverging_epoch",
    "2.0 - 4.3",
    "leader replied with epoch ",
    r"Based on (?:[\w ]+'s )?leader epoch, leader replied with epoch (?P<leader_epoch>\d+) "
    r"(?:unknown to the [\w ]+|below any [\w' ]*epochs) for " + TP + r"\. "
    r"(?:Will truncate to (?P<to_offset>\d+) and send another leader epoch request to the leader\."
    r"|The leader's offset (?:only )?(?P<end_offset>\d+) will be used for truncation.*)$",
    example(
        _FETCHER_1_OF_2 + "Based on replica's leader epoch, leader replied with epoch 3 unknown to "
        "the replica for t-0. Will truncate to 10 and send another leader epoch request to the "
        "leader.",
        **_AT, leader_epoch=3, to_offset=10, reason="diverging_epoch",
    ),
    example(
        _FETCHER_1_OF_2 + "Based on replica's leader epoch, leader replied with epoch 3 below any "
        "replica's tracked epochs for t-0. The leader's offset only 12 will be used for truncation.",
        **_AT, leader_epoch=3, end_offset=12, reason="diverging_epoch",
    ),
)  # fmt: skip

_OLD_PROTOCOL = _reason(
    "leader_epoch",
    "2.0 - 3.0 with an inter-broker protocol below 2.0",
    "protocol version where leader epoch is not considered",
    r"Leader or \w+ is on protocol version where leader epoch is not considered in the "
    r"OffsetsForLeaderEpoch response\. The leader's offset (?P<end_offset>\d+) will be used for "
    r"truncation in " + TP + r"\.$",
    example(
        _FETCHER_1_OF_2 + "Leader or replica is on protocol version where leader epoch is not "
        "considered in the OffsetsForLeaderEpoch response. The leader's offset 12 will be used for "
        "truncation in t-0.",
        **_AT, end_offset=12, reason="leader_epoch",
    ),
)  # fmt: skip

# 2.8 prints it twice per truncation: first the leader's smaller value is taken, then the log is cut.
_NON_MONOTONIC = LineFamily(
    kind="high_watermark_regressed",
    versions="2.8 - 4.3",
    loggers=LOG_CLASSES,
    words=("Non-monotonic",),
    trigger="Non-monotonic update of high watermark ",
    pattern=LOG_PREFIX + r"Non-monotonic update of high watermark from \(offset="
    r"(?P<from_high_watermark>-?\d+),? segment=\[-?\d+:-?\d+\]\) to \(offset="
    r"(?P<to_high_watermark>-?\d+),? segment=\[-?\d+:-?\d+\]\)$",
    examples=(
        example(
            "[Log partition=t-0, dir=/var/lib/kafka/b1/data] Non-monotonic update of high watermark "
            "from (offset=25 segment=[0:2400]) to (offset=23 segment=[-1:-1])",
            topic="t", partition=0, directory="/var/lib/kafka/b1/data", from_high_watermark=25,
            to_high_watermark=23,
        ),
        example(
            "[UnifiedLog partition=t-0, dir=/var/lib/kafka/b1] Non-monotonic update of high "
            "watermark from (offset=10, segment=[-1:-1]) to (offset=8, segment=[0:585])",
            topic="t", partition=0, directory="/var/lib/kafka/b1", from_high_watermark=10,
            to_high_watermark=8,
        ),
    ),
)  # fmt: skip

_OUT_OF_RANGE = LineFamily(
    kind="fetch_out_of_range",
    versions="0.10 - 4.3",
    loggers=_FETCHER,
    words=("Current",),
    trigger="out of range",
    pattern=FETCHER_PREFIX + r"Current offset (?P<fetch_offset>\d+) for partition " + TP + r" (?:is )?"
    r"out of range(?:;|, which typically implies a leader change\.) [Rr]eset (?:fetch )?offset to "
    r"(?P<reset_to>\d+)\.?$",
    examples=(
        example(
            "[ReplicaFetcherThread-0-1], Current offset 11 for partition [t,0] out of range; reset "
            "offset to 10",
            leader=1, topic="t", partition=0, fetch_offset=11, reset_to=10,
        ),
        example(
            "[ReplicaFetcher replicaId=3, leaderId=1, fetcherId=0] Current offset 20 for partition "
            "t-0 is out of range, which typically implies a leader change. Reset fetch offset to 35",
            node=3, leader=1, topic="t", partition=0, fetch_offset=20, reset_to=35,
        ),
    ),
)  # fmt: skip


def _offset_reset(match: re.Match[str]) -> list[Found]:
    """`full` says that the whole log was given up, which a reset to the leader's start means."""
    found = found_by_groups(match)
    start = found.fields.pop("which") == "start"
    found.fields.update(to="start" if start else "latest", full=start)
    return [found]


_OFFSET_RESET = LineFamily(
    kind="fetch_offset_reset",
    versions="0.10 - 4.3",
    loggers=_FETCHER,
    words=("Replica", "Reset", "Truncate"),
    trigger="eset ",
    pattern=FETCHER_PREFIX
    + r"(?:Replica (?P<node__3>\d+) for partition (?P<tp>\S+) reset its fetch offset"
    r"|Reset fetch offset for partition (?P<tp__2>\S+)"
    r"|Truncate fully and reset fetch offset for partition (?P<tp__4>\S+)) "
    r"from (?P<from_offset>\d+) to (?:the )?current leader(?: (?P<leader__3>\d+))?'s "
    r"(?P<which>latest|start) offset (?P<to_offset>-?\d+)(?: because .*)?$",
    convert=_offset_reset,
    examples=(
        example(
            "[ReplicaFetcherThread-0-1], Replica 2 for partition t-0 reset its fetch offset from 11 "
            "to current leader 1's latest offset 10",
            node=2, leader=1, topic="t", partition=0, from_offset=11, to_offset=10, to="latest",
            full=False,
        ),
        example(
            _FETCHER_1_OF_2 + "Reset fetch offset for partition t-0 from 11 to current leader's "
            "latest offset 10",
            **_AT, from_offset=11, to_offset=10, to="latest", full=False,
        ),
        example(
            "[ReplicaFetcher replicaId=3, leaderId=1, fetcherId=0] Truncate fully and reset fetch "
            "offset for partition t-0 from 20 to the current leader's start offset 35 because the "
            "local replica's end offset is smaller than the current leader's start offsets.",
            node=3, leader=1, topic="t", partition=0, from_offset=20, to_offset=35, to="start",
            full=True,
        ),
    ),
)  # fmt: skip

_REFUSED = LineFamily(
    kind="truncation_refused",
    versions="0.10 - 1.1",
    loggers=_FETCHER,
    words=("Exiting",),
    trigger="because log truncation is not allowed",
    pattern=FETCHER_PREFIX + r"Exiting because log truncation is not allowed for partition " + TP + r", "
    r"[Cc]urrent leader(?: (?P<leader__3>\d+))?'s latest offset (?P<leader_log_end_offset>\d+) is less "
    r"than replica(?: (?P<node__3>\d+))?'s latest offset (?P<log_end_offset>\d+)\.?$",
    examples=(
        example(
            "[ReplicaFetcherThread-0-1], Exiting because log truncation is not allowed for "
            "partition t-0, Current leader 1's latest offset 10 is less than replica 2's latest "
            "offset 11",
            node=2, leader=1, topic="t", partition=0, leader_log_end_offset=10, log_end_offset=11,
        ),
    ),
)  # fmt: skip

_FENCED = LineFamily(
    kind="fenced",
    versions="2.1 - 4.3",
    loggers=_FETCHER,
    words=("Partition",),
    trigger=" has an older epoch ",
    pattern=FETCHER_PREFIX + r"Partition (?P<tp>\S+) has an older epoch \((?P<leader_epoch>\d+)\) than "
    r"the current leader\.",
    examples=(
        example(
            _FETCHER_1_OF_2 + "Partition t-0 has an older epoch (1) than the current leader. Will "
            "await the new LeaderAndIsr state before resuming fetching.",
            **_AT, leader_epoch=1,
        ),
    ),
)  # fmt: skip

_FETCHING_FAILED = LineFamily(
    kind="fetching_failed",
    versions="2.3 - 4.3",
    loggers=_FETCHER,
    words=("Partition",),
    trigger=" marked as failed",
    pattern=FETCHER_PREFIX + r"Partition (?P<tp>\S+) marked as failed$",
    examples=(
        example(_FETCHER_1_OF_2 + "Partition t-0 marked as failed", **_AT),
    ),
)  # fmt: skip

_ADDED = re.compile(
    # 0.10 - 2.0
    r"\[(?P<tp1>[^\s\[\],]+-\d+|\[[^\]]+\]), initOffset (?P<offset1>-?\d+) to broker "
    r"BrokerEndPoint\((?P<leader1>\d+),"
    # 2.1 - 2.7
    r"|(?P<tp2>[^\s(,]+-\d+) -> \(offset=(?P<offset2>-?\d+), leaderEpoch=(?P<epoch2>-?\d+)\)"
    # 2.8 - 4.3
    r"|(?P<tp3>[^\s(,]+-\d+) -> InitialFetchState\((?:(?P<id3>Some\([^)]*\)|None),)?"
    r"BrokerEndPoint[(\[](?:id=)?(?P<leader3>\d+),[^)\]]*[)\]],(?P<epoch3>-?\d+),(?P<offset3>-?\d+)\)"
)


def _fetchers_added(match: re.Match[str]) -> list[Found]:
    found = []
    for item in _ADDED.finditer(match["rest"]):
        groups = {name: text for name, text in item.groupdict().items() if text is not None}
        form = item.lastgroup[-1] if item.lastgroup else ""
        leader = groups.get("leader" + form, match["leader"])
        fields: Fields = {
            "leader": None if leader is None else int(leader),
            "fetch_offset": whole_number(groups["offset" + form]),
        }
        if "epoch" + form in groups:
            fields["leader_epoch"] = whole_number(groups["epoch" + form])
        if "id" + form in groups:
            fields["topic_id"] = topic_id(groups["id" + form])
        found.append(Found(fields, int(match["node"]), *topic_partition(groups["tp" + form])))
    return found


_FETCHER_ADDED = LineFamily(
    kind="fetcher_added",
    versions="0.10 - 4.3",
    loggers=("ReplicaFetcherManager",),
    words=("Added",),
    trigger="Added fetcher ",
    pattern=FETCHER_MANAGER_PREFIX + r"Added fetcher (?:to broker (?:BrokerEndPoint\(id=)?"
    r"(?P<leader>\d+)(?:, [^)]*\))? )?for partitions (?P<rest>[\w.$]*[({].*)$",
    convert=_fetchers_added,
    examples=(
        example(
            "[ReplicaFetcherManager on broker 1] Added fetcher for partitions List([t-1, initOffset "
            "23 to broker BrokerEndPoint(3,127.0.0.1,19313)] , [t-0, initOffset 27 to broker "
            "BrokerEndPoint(3,127.0.0.1,19313)] )",
            Found({"leader": 3, "fetch_offset": 23}, 1, "t", 1),
            Found({"leader": 3, "fetch_offset": 27}, 1, "t", 0),
        ),
        example(
            "[ReplicaFetcherManager on broker 1] Added fetcher to broker BrokerEndPoint(id=2, "
            "host=b2:9092) for partitions Map(t-0 -> (offset=5, leaderEpoch=3))",
            node=1, topic="t", partition=0, leader=2, fetch_offset=5, leader_epoch=3,
        ),
        example(
            "[ReplicaFetcherManager on broker 2] Added fetcher to broker 1 for partitions Map(t-0 "
            "-> InitialFetchState(BrokerEndPoint(id=1, host=127.0.0.1:19311),0,4))",
            node=2, topic="t", partition=0, leader=1, fetch_offset=4, leader_epoch=0,
        ),
        example(
            "[ReplicaFetcherManager on broker 1] Added fetcher to broker 2 for partitions HashMap("
            "t-1 -> InitialFetchState(Some(qSMoNKWOSQ6Q-w4CrVSYLQ),BrokerEndPoint[id=2, "
            "host=127.0.0.1, port=19102],0,1), t-0 -> InitialFetchState(Some(qSMoNKWOSQ6Q-w4CrVSYLQ)"
            ",BrokerEndPoint[id=2, host=127.0.0.1, port=19102],1,2))",
            Found(
                {"leader": 2, "fetch_offset": 1, "leader_epoch": 0,
                 "topic_id": "qSMoNKWOSQ6Q-w4CrVSYLQ"}, 1, "t", 1,
            ),
            Found(
                {"leader": 2, "fetch_offset": 2, "leader_epoch": 1,
                 "topic_id": "qSMoNKWOSQ6Q-w4CrVSYLQ"}, 1, "t", 0,
            ),
        ),
    ),
)  # fmt: skip

_NAMED_PARTITION = re.compile(r"\[[^\[\]\s]+,\d+\]|[^\s,()]+-\d+")


def _fetchers_removed(match: re.Match[str]) -> list[Found]:
    named = _NAMED_PARTITION.findall(match["rest"])
    return [Found({}, int(match["node"]), *topic_partition(text)) for text in named]


_FETCHER_REMOVED = LineFamily(
    kind="fetcher_removed",
    versions="0.10 - 4.3",
    loggers=("ReplicaFetcherManager",),
    words=("Removed",),
    trigger="Removed fetcher for partitions",
    pattern=FETCHER_MANAGER_PREFIX + r"Removed fetcher for partitions ?(?P<rest>.*)$",
    convert=_fetchers_removed,
    examples=(
        example(
            "[ReplicaFetcherManager on broker 1] Removed fetcher for partitions t-1,t-0",
            Found({}, 1, "t", 1),
            Found({}, 1, "t", 0),
        ),
        example(
            "[ReplicaFetcherManager on broker 2] Removed fetcher for partitions HashSet(t-1, t-0)",
            Found({}, 2, "t", 1),
            Found({}, 2, "t", 0),
        ),
    ),
)  # fmt: skip

FAMILIES: tuple[LineFamily, ...] = (
    _TRUNCATING,
    _BELOW_HIGH_WATERMARK,
    _WITHOUT_EFFECT,
    _TRUNCATE_FULLY,
    _TO_HIGH_WATERMARK,
    _TO_LEADER_EPOCH,
    _SHORTENED,
    _NO_TRUNCATION_NEEDED,
    _UNKNOWN_OFFSET,
    _ASKS_AGAIN,
    _OLD_PROTOCOL,
    _NON_MONOTONIC,
    _OUT_OF_RANGE,
    _OFFSET_RESET,
    _REFUSED,
    _FENCED,
    _FETCHING_FAILED,
    _FETCHER_ADDED,
    _FETCHER_REMOVED,
)
