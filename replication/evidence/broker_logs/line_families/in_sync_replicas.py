"""Lines by which a leader proposes, learns or is refused a change of its in-sync replicas."""

import re

from replication.evidence.broker_logs.line_families.family import (
    PARTITION_PREFIX,
    Found,
    LineFamily,
    example,
    found_by_groups,
    ignored,
)

_PARTITION = ("Partition",)
_OUT_OF_SYNC = re.compile(r"\(brokerId: (\d+), endOffset: (-?\w+)")


def _shrink(match: re.Match[str]) -> list[Found]:
    """`out_of_sync`: (replica, its log end offset as the leader knows it), None where unknown."""
    found = found_by_groups(match)
    replicas = found.fields.pop("rest", None)
    if replicas is not None:
        found.fields["out_of_sync"] = tuple(
            (int(replica), int(end) if end.isdecimal() else None)
            for replica, end in _OUT_OF_SYNC.findall(replicas)
        )
    return [found]


# Printed when the change is proposed, also in releases where the controller may still refuse it.
_SHRINKING = LineFamily(
    kind="isr_shrink_proposed",
    versions="0.10 - 4.3",
    loggers=_PARTITION,
    words=("Shrinking",),
    trigger="Shrinking ISR ",
    pattern=PARTITION_PREFIX + r"Shrinking ISR (?:for partition \S+ )?from (?P<from_isr>[\d,]+) to "
    r"(?P<to_isr>[\d,]*)(?:\. Leader: \(highWatermark: (?P<high_watermark>-?\d+), endOffset: "
    r"(?P<log_end_offset>-?\d+)\)\. Out of sync replicas: (?P<rest>.*))?$",
    convert=_shrink,
    examples=(
        example(
            "Partition [t,0] on broker 1: Shrinking ISR for partition [t,0] from 1,2 to 1",
            node=1, topic="t", partition=0, from_isr=(1, 2), to_isr=(1,),
        ),
        example(
            "[Partition t-1 broker=2] Shrinking ISR from 2,1,3 to 2,3",
            node=2, topic="t", partition=1, from_isr=(2, 1, 3), to_isr=(2, 3),
        ),
        example(
            "[Partition t-0 broker=1] Shrinking ISR from 1,2,3 to 1. Leader: (highWatermark: 10, "
            "endOffset: 18). Out of sync replicas: (brokerId: 2, endOffset: 10, lastCaughtUpTimeMs: "
            "1795189302862) (brokerId: 3, endOffset: 10, lastCaughtUpTimeMs: 1795189302862).",
            node=1, topic="t", partition=0, from_isr=(1, 2, 3), to_isr=(1,), high_watermark=10,
            log_end_offset=18, out_of_sync=((2, 10), (3, 10)),
        ),
        example(
            "[Partition t-0 broker=1] Shrinking ISR from 1,2 to 1. Leader: (highWatermark: 10, "
            "endOffset: 18). Out of sync replicas: (brokerId: 2, endOffset: unknown, "
            "lastCaughtUpTimeMs: unknown).",
            node=1, topic="t", partition=0, from_isr=(1, 2), to_isr=(1,), high_watermark=10,
            log_end_offset=18, out_of_sync=((2, None),),
        ),
    ),
)  # fmt: skip

_EXPANDING = LineFamily(
    kind="isr_expanded",
    versions="0.10 - 2.7",
    loggers=_PARTITION,
    words=("Expanding",),
    trigger="Expanding ISR ",
    pattern=PARTITION_PREFIX + r"Expanding ISR (?:for partition \S+ )?from (?P<from_isr>[\d,]*) to "
    r"(?P<to_isr>[\d,]+)$",
    examples=(
        example(
            "Partition [t,0] on broker 1: Expanding ISR for partition t-0 from 1 to 1,2",
            node=1, topic="t", partition=0, from_isr=(1,), to_isr=(1, 2),
        ),
        example(
            "[Partition t-0 broker=2] Expanding ISR from 2 to 2,1",
            node=2, topic="t", partition=0, from_isr=(2,), to_isr=(2, 1),
        ),
    ),
)  # fmt: skip

# To 2.3 whole replica objects at TRACE.
_UPDATED = LineFamily(
    kind="isr_updated",
    versions="0.10 - 2.3 TRACE, 2.4 - 4.3",
    loggers=_PARTITION,
    words=("ISR",),
    trigger="ISR updated ",
    pattern=PARTITION_PREFIX + r"ISR updated (?:from AlterIsr )?to (?:\[(?P<isr>.*?)\]|(?P<isr__2>[\d,]+))"
    r"\s*(?:\(under-min-isr\))?\s*and (?:zkVersion|version) updated to \[?(?P<partition_epoch>\d+)\]?$",
    examples=(
        example(
            "Partition [t,0] on broker 1: ISR updated to [ReplicaId: 1; Topic: t; Partition: 0; "
            "isLocal: true; lastCaughtUpTimeMs: 0; Highwatermark: 11 [0 : 682],ReplicaId: 2; Topic: "
            "t; Partition: 0; isLocal: false; lastCaughtUpTimeMs: 1795189127815] and zkVersion "
            "updated to [2]",
            node=1, topic="t", partition=0, isr=(1, 2), partition_epoch=2,
        ),
        example(
            "[Partition t-0 broker=1] ISR updated to [1,2] and zkVersion updated to [7]",
            node=1, topic="t", partition=0, isr=(1, 2), partition_epoch=7,
        ),
        example(
            "[Partition t-0 broker=1] ISR updated to 1,2 and version updated to [2]",
            node=1, topic="t", partition=0, isr=(1, 2), partition_epoch=2,
        ),
        example(
            "[Partition t-0 broker=2] ISR updated to 2,1  and version updated to 2",
            node=2, topic="t", partition=0, isr=(2, 1), partition_epoch=2,
        ),
        example(
            "[Partition t-0 broker=2] ISR updated to 2 (under-min-isr) and version updated to 3",
            node=2, topic="t", partition=0, isr=(2,), partition_epoch=3,
        ),
    ),
)  # fmt: skip

_ZOOKEEPER_REFUSED = LineFamily(
    kind="isr_update_refused",
    versions="0.10 - 2.6",
    loggers=_PARTITION,
    words=("Cached",),
    trigger="Cached zkVersion ",
    pattern=PARTITION_PREFIX + r"Cached zkVersion \[?(?P<partition_epoch>\d+)\]? not equal to that in "
    r"zookeeper, skip updating ISR",
    constants={"reason": "cached zkVersion not equal to that in zookeeper"},
    examples=(
        example(
            "Partition [t,0] on broker 1: Cached zkVersion [5] not equal to that in zookeeper, skip "
            "updating ISR",
            node=1, topic="t", partition=0, partition_epoch=5,
            reason="cached zkVersion not equal to that in zookeeper",
        ),
    ),
)  # fmt: skip


def _refused(versions: str, trigger: str, *examples_: tuple[str, str]) -> LineFamily:
    return LineFamily(
        kind="isr_update_refused",
        versions=versions,
        loggers=_PARTITION,
        words=("Failed", "Controller"),
        trigger=trigger,
        pattern=PARTITION_PREFIX
        + r"(?:Controller f|F)ailed to (?:update ISR|alter partition) to .*?"
        r"(?:since the controller rejected the request with|due to|because|since) (?P<reason>.+?)\.?$",
        examples=tuple(
            example(line, node=1, topic="t", partition=0, reason=reason)
            for line, reason in examples_
        ),
    )


_CONTROLLER_REFUSED = _refused(
    "3.2 - 4.3",
    "Failed to alter partition to ",
    (
        "[Partition t-0 broker=1] Failed to alter partition to PendingExpandIsr("
        "newInSyncReplicaId=2) since the controller rejected the request with INELIGIBLE_REPLICA.",
        "INELIGIBLE_REPLICA",
    ),
)
_CONTROLLER_REFUSED_EARLIER = _refused(
    "2.7 - 3.1",
    "ailed to update ISR to ",
    (
        "[Partition t-0 broker=1] Failed to update ISR to PendingShrinkIsr(isr=Set(1, 2), "
        "outOfSyncReplicaIds=Set(2)) due to invalid version. Giving up.",
        "invalid version. Giving up",
    ),
    (
        "[Partition t-0 broker=1] Controller failed to update ISR to PendingShrinkIsr(isr=Set(1, 2), "
        "outOfSyncReplicaIds=Set(2)) since we sent an old leader epoch. Giving up.",
        "we sent an old leader epoch. Giving up",
    ),
)

_IGNORED_FAILURE = ignored(
    "2.8 - 4.3: the change came true by the metadata log before the answer",
    _PARTITION,
    ("Ignoring",),
    "Ignoring failed ISR update ",
    r"Ignoring failed ISR update to ",
    "[Partition t-0 broker=2] Ignoring failed ISR update to PendingExpandIsr(newInSyncReplicaId=1) "
    "since we have already updated state to CommittedPartitionState(isr=Set(2, 3, 1))",
)

FAMILIES: tuple[LineFamily, ...] = (
    _SHRINKING,
    _EXPANDING,
    _UPDATED,
    _ZOOKEEPER_REFUSED,
    _CONTROLLER_REFUSED,
    _CONTROLLER_REFUSED_EARLIER,
    _IGNORED_FAILURE,
)
