"""What the transaction coordinator's records say of transactional ids: now, and before a loss.

The coordinator writes each change of a transaction before it acts on it, so the newest record says
who has to write markers to which partitions. Source: TransactionLog, TransactionState (KIP-98).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from replication.recovery.groups.coordinator_logs import Entry

STATUS = (
    "empty", "ongoing", "prepare_commit", "prepare_abort", "complete_commit", "complete_abort",
    "dead", "prepare_epoch_fence",
)  # fmt: skip
# While it is in one of these the coordinator is going to end it in each partition that it names.
UNFINISHED = frozenset(("ongoing", "prepare_commit", "prepare_abort", "prepare_epoch_fence"))


@dataclass(frozen=True, slots=True)
class Known:
    """A coordinator's record of one transactional id. partitions: (topic, partition) in it.

    at: when it last changed, ms since 1970 by the coordinator's clock. timeout: ms.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    status: str
    partitions: frozenset[tuple[str, int]]
    at: int
    timeout: int
    log_offset: int
    log_leader_epoch: int | None
    path: str
    position: int


@dataclass(slots=True)
class TransactionalIds:
    """Of one cluster: the record of each id that counts now, and the newest one that was lost."""

    now: dict[str, Known] = field(default_factory=dict)
    displaced: dict[str, Known] = field(default_factory=dict)

    def take_present(self, entries: Iterable[Entry]) -> None:
        """The records of a log that counts, in its order."""
        for entry in entries:
            name = entry.record.key["transactional_id"]
            if entry.record.value is None:
                self.now.pop(name, None)
            else:
                self.now[name] = known_of(entry, entry.record.value)

    def take_elsewhere(self, entries: Iterable[Entry]) -> None:
        """The records of other copies of such a log."""
        for entry in entries:
            if entry.record.value is None or not entry.displaced:
                continue
            one = known_of(entry, entry.record.value)
            before = self.displaced.get(one.transactional_id)
            if before is None or _age(before) < _age(one):
                self.displaced[one.transactional_id] = one

    def of_producer(self, producer_id: int) -> Known | None:
        """The id whose producer id this is now."""
        return next((k for k in self.now.values() if k.producer_id == producer_id), None)


def _age(known: Known) -> tuple[int, int]:
    before = known.log_leader_epoch
    return (-1 if before is None else before, known.log_offset)


def known_of(entry: Entry, value: dict[str, Any]) -> Known:
    """A record with a value, in words."""
    status = value["transaction_status"]
    return Known(
        entry.record.key["transactional_id"],
        value["producer_id"],
        value["producer_epoch"],
        STATUS[status] if 0 <= status < len(STATUS) else str(status),
        frozenset(
            (topic["topic"], number)
            for topic in value["transaction_partitions"] or ()
            for number in topic["partition_ids"]
        ),
        value["transaction_last_update_timestamp_ms"],
        value["transaction_timeout_ms"],
        entry.offset,
        entry.leader_epoch,
        str(entry.path),
        entry.position,
    )
