"""Decodes the records of the coordinators' own topics.

A record's key begins with an int16 that says its type, its value with an int16 version; both go on
with the fields of a layout (replication.evidence.messages). Sources: CoordinatorRecordTypes of the
group coordinator (KIP-62, KIP-848, KIP-932, KIP-1071), of the transaction coordinator (KIP-98) and
of the share coordinator (KIP-932) in 4.3.0.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from replication.evidence.messages.byte_reader import ByteReader
from replication.evidence.messages.layouts import Layout, layouts_of_type
from replication.evidence.messages.reading import read_message, read_whole

GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_TOPIC = "__share_group_state"
# An offset commit in its first form, which nobody has written since 0.8.2; it says the same.
LEGACY = "LegacyOffsetCommit"
OFFSET_COMMIT = "OffsetCommit"


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """One record. kind: the layout's name without Key and Value. value: None for a tombstone."""

    kind: str
    key: dict[str, Any]
    value: dict[str, Any] | None
    version: int | None


def _topic_of(layout: Layout) -> str:
    if layout.name.startswith("TransactionLog"):
        return TRANSACTION_TOPIC
    return SHARE_TOPIC if layout.name.startswith(("ShareSnapshot", "ShareUpdate")) else GROUP_TOPIC


def _by_topic(layouts: Iterable[Layout]) -> dict[tuple[str, int], Layout]:
    return {(_topic_of(one), one.api_key): one for one in layouts if one.api_key is not None}


_KEYS = _by_topic(layouts_of_type("coordinator-key"))
_VALUES = _by_topic(layouts_of_type("coordinator-value"))
TOPICS = frozenset(topic for topic, _ in _KEYS)


def decode_coordinator_record(
    topic: str, key: bytes | None, value: bytes | None
) -> CoordinatorRecord | None:
    """A record of one of TOPICS; None for a type that a later release has. Raises MessageError."""
    reader = ByteReader(key or b"")
    record_type = int(reader.scalar("int16"))
    layout = _KEYS.get((topic, record_type))
    if layout is None:
        return None
    fields = read_whole(layout, 0, reader)
    kind = layout.name.removesuffix("Key")
    if value is None:
        return CoordinatorRecord(OFFSET_COMMIT if kind == LEGACY else kind, fields, None, None)
    # Commits in the old form of the key have had values in the new form since.
    written = _VALUES[topic, 1] if kind == LEGACY else _VALUES[topic, record_type]
    reader = ByteReader(value)
    version = int(reader.scalar("int16"))
    kind = OFFSET_COMMIT if kind == LEGACY else kind
    return CoordinatorRecord(kind, fields, read_message(written, version, reader), version)
