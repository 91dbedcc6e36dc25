"""What a broker says of a log's leader epoch cache: entries made, refused and cleared."""

import re

from replication.evidence.broker_logs.line_families.family import (
    Found,
    LineFamily,
    example,
    found_by_groups,
)

_EPOCHS = ("LeaderEpochFileCache",)
# The text of 4.x `[LeaderEpochCache t-0] `, missing before 2.0.
_EPOCH_PREFIX = r"^(?:\[LeaderEpochCache (?P<tp>\S+)\] )?"

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
    _EPOCH_UPDATED,
    _EPOCH_APPENDED,
    _EPOCH_REFUSED,
    _EPOCHS_CLEARED,
    _EPOCHS_CLEARED_2,
)
