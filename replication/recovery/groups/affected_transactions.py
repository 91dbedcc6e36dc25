"""Transactions that a loss left hanging, half known or half there.

Three ways (KAFKA-20716 names the first two): a log has records of a transaction that its
coordinator is not going to end, so that the last stable offset stays before them; the coordinator's
newest record was lost, and it goes on from an older one; records of a committed transaction were
lost in one partition and are there in another.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from replication.evidence.coordinator_records import SHARE_TOPIC, TRANSACTION_TOPIC
from replication.evidence.importer import Import
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import finished
from replication.protocol.ground.model import moment, touching
from replication.protocol.judgement.bounded import FoldedPartition, Identity
from replication.recovery import transactions as tx
from replication.recovery.groups.coordinator_logs import CoordinatorLog, coordinator_log, is_of
from replication.recovery.groups.transaction_state import UNFINISHED, Known, TransactionalIds
from replication.recovery.groups.transactions_in_logs import InLog, transactions_in
from replication.recovery.ledger_rows import NOT_BACK

# The share coordinator writes none; the transaction coordinator's own records are not in one.
NO_TRANSACTIONS = (TRANSACTION_TOPIC, SHARE_TOPIC)
# transaction.max.timeout.ms where nobody says otherwise.
LONGEST = 15 * 60_000
HANGING, FORGOTTEN, IN_PART = "hanging", "coordinator_forgot", "lost_in_part"
_TEXT, _NUMBER, _FLAG = pa.string(), pa.int64(), pa.bool_()
TRANSACTIONS = pa.schema(
    [
        ("cluster_id", _TEXT), ("kind", _TEXT), ("transactional_id", _TEXT),
        ("producer_id", _NUMBER), ("producer_epoch", _NUMBER), ("coordinator_status", _TEXT),
        ("lost_coordinator_status", _TEXT), ("coordinator_at", _TEXT), ("topic", _TEXT),
        ("topic_id", _TEXT), ("partition", _NUMBER), ("first_offset", _NUMBER),
        ("end_offset", _NUMBER), ("records", _NUMBER), ("also_in", pa.list_(_TEXT)),
        ("certain", _FLAG), ("path", _TEXT), ("position", _NUMBER),
    ]
)  # fmt: skip


@dataclass(slots=True)
class _Log:
    """One topic partition's log: transactions of its present copy, and those that lost records.

    is_sure: whether nothing can have been written behind what that copy shows.
    """

    identity: Identity
    is_sure: bool
    present: list[InLog] = field(default_factory=list)
    lost: list[InLog] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.identity[1]}-{self.identity[3]}"


def affected_transactions(
    imported: Import, folded: list[FoldedPartition], losses: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows (of TRANSACTIONS) of all clusters of which a coordinator's log is at hand.

    losses: the loss ledger.
    """
    states = {f.identity: f for f in folded}
    ids: dict[str, TransactionalIds] = {}
    sure: dict[str, bool] = {}
    for partition in imported.partitions:
        if partition.topic == TRANSACTION_TOPIC:
            log = coordinator_log(finished(partition), states[_identity(partition)], losses)
            if log.present is not None:
                known = ids.setdefault(partition.cluster_id, TransactionalIds())
                known.take_present(log.now())
                known.take_elsewhere(log.elsewhere())
                is_sure = log.is_leaders and log.present.clean
                sure[partition.cluster_id] = sure.get(partition.cluster_id, True) and is_sure
    rows: list[dict[str, Any]] = []
    for cluster_id, known in sorted(ids.items()):
        if not known.now and not known.displaced:
            continue  # nobody uses transactions
        logs = _logs(imported, cluster_id, states, losses)
        made = _Rows(imported, cluster_id, known, logs, sure[cluster_id])
        rows += [*made.forgotten(), *made.hanging(), *made.in_part()]
    return rows


def _identity(partition: PartitionEvidence) -> Identity:
    return partition.cluster_id, partition.topic, partition.topic_id, partition.partition


def _logs(
    imported: Import,
    cluster_id: str,
    states: dict[Identity, FoldedPartition],
    losses: list[dict[str, Any]],
) -> list[_Log]:
    """The logs of a cluster's topics, with what is needed of their transactions.

    Copies are compared record by record only where something was lost."""
    made: list[tuple[_Log, CoordinatorLog]] = []
    for partition in imported.partitions:
        if partition.cluster_id != cluster_id or partition.topic in NO_TRANSACTIONS:
            continue
        identity = _identity(partition)
        rows = [x for x in losses if x["status"] in NOT_BACK and is_of(x, identity)]
        log = coordinator_log(finished(partition) if rows else partition, states[identity])
        if log.present is not None:
            found = _Log(identity, log.is_leaders and log.present.clean)
            found.lost = _lost(log, rows) if rows else []
            made.append((found, log))
    of_interest = {one.producer_id for found, _ in made for one in found.lost}
    for found, log in made:
        if log.present is not None:
            found.present = [
                one
                for one in transactions_in(log.present)
                if one.outcome == tx.OPEN or one.producer_id in of_interest
            ]
    return [found for found, _ in made]


def _lost(log: CoordinatorLog, rows: list[dict[str, Any]]) -> list[InLog]:
    """The transactions of which records are in the ledger's rows, each once."""
    found: dict[tuple[int, int], InLog] = {}
    for copy in log.others:
        for one in transactions_in(copy):
            lost = any(
                row["first_offset"] < one.end
                and one.first < row["end_offset"]
                and row["leader_epoch"] in (None, *_leader_epochs(copy, one))
                for row in rows
            )
            if lost:
                known = found.setdefault((one.producer_id, one.first), one)
                if known.outcome == tx.OPEN:
                    found[one.producer_id, one.first] = one
    return list(found.values())


def _leader_epochs(copy: Copy, one: InLog) -> set[int | None]:
    """The leader epochs of the records from a transaction's first to its last."""
    return {s.leader_epoch for s in touching(copy.spans, one.first, one.end)}


@dataclass(slots=True)
class _Rows:
    """Makes the rows of one cluster. is_sure: whether the coordinator's present is known."""

    imported: Import
    cluster_id: str
    ids: TransactionalIds
    logs: list[_Log]
    is_sure: bool

    def forgotten(self) -> Iterator[dict[str, Any]]:
        """Ids of which the newest record was lost, while the coordinator goes on from another."""
        for name, lost in sorted(self.ids.displaced.items()):
            now = self.ids.now.get(name)
            if now is not None and _is_later(now, lost):
                continue
            row = self._row(FORGOTTEN, now, lost, is_sure=self.is_sure)
            row.update(path=self._shown(lost.path), position=lost.position)
            row["also_in"] = sorted(f"{t}-{n}" for t, n in lost.partitions)
            yield row

    def hanging(self) -> Iterator[dict[str, Any]]:
        """Open transactions that nobody is going to end."""
        for log in self.logs:
            for one in log.present:
                if one.outcome != tx.OPEN:
                    continue
                known = self.ids.of_producer(one.producer_id)
                if known is not None and _will_end(known, one, log):
                    continue
                lost = self._lost_of(one.producer_id)
                at_one_time = self.is_sure and log.is_sure
                if not at_one_time and not self._is_overdue(one, known or lost):
                    continue
                sure = at_one_time and (known or lost) is not None
                yield self._in(HANGING, log, one, known, lost, is_sure=sure)

    def _is_overdue(self, one: InLog, known: Known | None) -> bool:
        """Whether a transaction is open for longer than its coordinator lets it be: else copies of
        running brokers may just be of different moments."""
        newest = [k.at for k in self.ids.now.values()]
        newest += [one.began for log in self.logs for one in log.present if one.began is not None]
        timeout = LONGEST if known is None else known.timeout
        return one.began is not None and one.began + timeout < max(newest, default=0)

    def in_part(self) -> Iterator[dict[str, Any]]:
        """Lost records of transactions of which other partitions have theirs, committed."""
        for log in self.logs:
            for one in log.lost:
                if one.outcome == tx.ABORTED:
                    continue
                others = [
                    other.name
                    for other in self.logs
                    if other is not log and any(_same(one, x) for x in other.present)
                ]
                if others:
                    known = self.ids.of_producer(one.producer_id)
                    lost = self._lost_of(one.producer_id)
                    row = self._in(IN_PART, log, one, known, lost, is_sure=False)
                    row["also_in"] = others
                    yield row

    def _lost_of(self, producer_id: int) -> Known | None:
        found = (k for k in self.ids.displaced.values() if k.producer_id == producer_id)
        return next(found, None)

    def _in(
        self,
        kind: str,
        log: _Log,
        one: InLog,
        known: Known | None,
        lost: Known | None,
        *,
        is_sure: bool,
    ) -> dict[str, Any]:
        row = self._row(kind, known, lost, is_sure=is_sure)
        _, topic, topic_id, partition = log.identity
        row.update(
            producer_id=one.producer_id,
            producer_epoch=one.producer_epoch,
            topic=topic,
            topic_id=topic_id or None,
            partition=partition,
            first_offset=one.first,
            end_offset=one.end,
            records=one.records,
            path=self._shown(str(one.path)),
            position=one.position,
        )
        return row

    def _row(
        self, kind: str, now: Known | None, lost: Known | None, *, is_sure: bool
    ) -> dict[str, Any]:
        shown = now or lost
        return {
            **dict.fromkeys(TRANSACTIONS.names),
            "cluster_id": self.cluster_id or None,
            "kind": kind,
            "transactional_id": None if shown is None else shown.transactional_id,
            "producer_id": None if shown is None else shown.producer_id,
            "producer_epoch": None if shown is None else shown.producer_epoch,
            "coordinator_status": None if now is None else now.status,
            "lost_coordinator_status": None if lost is None else lost.status,
            "coordinator_at": None if shown is None else moment(shown.at),
            "also_in": [],
            "certain": is_sure,
        }

    def _shown(self, path: str) -> str:
        return self.imported.collection.unpacked.shown(path)


def _is_later(now: Known, lost: Known) -> bool:
    """Whether the id has gone on since its record was lost."""
    return (now.producer_id, now.producer_epoch) != (lost.producer_id, lost.producer_epoch) or (
        now.at > lost.at
    )


def _will_end(known: Known, one: InLog, log: _Log) -> bool:
    """Whether the coordinator has this very transaction, with this partition in it, to end."""
    if known.status not in UNFINISHED or known.producer_epoch < one.producer_epoch:
        return False
    return (log.identity[1], log.identity[3]) in known.partitions


def _same(one: InLog, other: InLog) -> bool:
    """Whether two parts are of one committed transaction."""
    names = (one.producer_id, one.producer_epoch) == (other.producer_id, other.producer_epoch)
    return names and other.outcome == tx.COMMITTED and one.is_at_one_time_with(other)
