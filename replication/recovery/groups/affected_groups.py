"""Every group of the evidence with its offsets by partition, and what a loss did to it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from replication.evidence.coordinator_records import GROUP_TOPIC, SHARE_TOPIC
from replication.evidence.importer import Import
from replication.evidence.joining.partition_join import finished
from replication.protocol.ground.model import moment
from replication.protocol.judgement.bounded import FoldedPartition, Identity
from replication.recovery.groups.coordinator_logs import CoordinatorLog, coordinator_log
from replication.recovery.groups.effects import NOT_BACK, Effect, LeaderLog, Lost, effect_of
from replication.recovery.groups.group_state import Commit, GroupState, Where
from replication.recovery.moments import last_leader, log_of

_TEXT, _NUMBER, _FLAG, _TEXTS = pa.string(), pa.int64(), pa.bool_(), pa.list_(pa.string())
GROUPS = pa.schema(
    [
        ("cluster_id", _TEXT), ("group", _TEXT), ("group_type", _TEXT), ("members", _TEXTS),
        ("topic", _TEXT), ("topic_id", _TEXT), ("partition", _NUMBER), ("effects", _TEXTS),
        ("committed_offset", _NUMBER), ("committed_leader_epoch", _NUMBER),
        ("committed_at", _TEXT), ("lost_committed_offset", _NUMBER),
        ("lost_committed_leader_epoch", _NUMBER), ("lost_committed_at", _TEXT),
        ("log_start_offset", _NUMBER), ("log_end_offset", _NUMBER), ("parts_at", _NUMBER),
        ("lost_read", _NUMBER), ("skipped", _NUMBER), ("read_again", _NUMBER),
        ("certain", _FLAG), ("finding_ids", _TEXTS), ("path", _TEXT), ("position", _NUMBER),
    ]
)  # fmt: skip
NO_LEADERS_COPY = (
    "no copy of the log of who leads is at hand: the offsets are those of the copy that reaches "
    "furthest, and commits may have been made since"
)


@dataclass(slots=True)
class GroupsRead:
    """rows: of GROUPS, by group, topic and partition. notes: what could not be read or told.

    logs: how many partitions of the coordinators' topics were there. sources: their segments.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    logs: int = 0
    sources: set[Path] = field(default_factory=set)

    @property
    def affected(self) -> list[dict[str, Any]]:
        """The rows of groups that a loss did something to."""
        return [row for row in self.rows if row["effects"]]


def read_groups(
    imported: Import, folded: list[FoldedPartition], losses: list[dict[str, Any]]
) -> GroupsRead:
    """The groups of all clusters in the evidence. losses: the loss ledger."""
    result = GroupsRead()
    states = {f.identity: f for f in folded}
    by_cluster: dict[str, GroupState] = {}
    unsure: set[str] = set()
    for partition in imported.partitions:
        if partition.topic not in (GROUP_TOPIC, SHARE_TOPIC):
            continue
        identity = (
            partition.cluster_id, partition.topic, partition.topic_id, partition.partition,
        )  # fmt: skip
        log = coordinator_log(finished(partition), states[identity])
        if log.present is None:
            continue
        result.logs += 1
        result.sources |= log.sources
        _take(by_cluster.setdefault(partition.cluster_id, GroupState()), log)
        result.notes += log.notes
        if not log.is_leaders:
            unsure.add(partition.cluster_id)
            result.notes.append(f"{partition.topic}-{partition.partition}: {NO_LEADERS_COPY}")
    for cluster_id, state in sorted(by_cluster.items()):
        rows = _Rows(imported, cluster_id, states, losses, cluster_id in unsure)
        result.rows += rows.of(state)
    return result


def group_names(rows: list[dict[str, Any]]) -> list[str]:
    """The groups that rows are of, each once."""
    return list(dict.fromkeys(f"{row['cluster_id']}/{row['group']}" for row in rows))


def _take(state: GroupState, log: CoordinatorLog) -> None:
    state.take_present(log.now())
    state.take_elsewhere(log.elsewhere())


@dataclass(slots=True)
class _Rows:
    """Makes the rows of one cluster."""

    imported: Import
    cluster_id: str
    states: dict[Identity, FoldedPartition]
    losses: list[dict[str, Any]]
    is_unsure: bool
    _logs: dict[Identity, LeaderLog] = field(default_factory=dict)

    def of(self, state: GroupState) -> Iterator[dict[str, Any]]:
        """In the order of group, topic and partition."""
        for where in sorted(state.furthest):
            now, displaced = state.now.get(where), state.displaced.get(where)
            if now is None and displaced is None:
                continue  # deleted or expired
            identity = self._identity(where, now or displaced)
            if identity is None:
                log = LeaderLog(None, None, None)
            else:
                log = self._logs.setdefault(identity, self._leader_log(identity))
            effect = effect_of(now, displaced, state.commits(where), log)
            if displaced is not None:
                effect.finding_ids += self._losses_of(displaced, effect.finding_ids)
            yield self._row(state, where, identity, log, effect)

    def _identity(self, where: Where, commit: Commit | None) -> Identity | None:
        """The topic partition that is meant: by the topic's id, else the last of that name."""
        _, topic, partition = where
        ids = {topic, commit.topic_id if commit is not None else None}
        of_cluster = [i for i in self.states if (i[0], i[3]) == (self.cluster_id, partition)]
        by_id = [i for i in of_cluster if i[2] and i[2] in ids]
        named = [i for i in of_cluster if i[1] == topic]
        living = [i for i in named if last_leader(self.states[i]) is not None]
        return next(iter([*by_id, *living[-1:], *named[-1:]]), None)

    def _losses_of(self, commit: Commit, known: list[str]) -> list[str]:
        """The loss of the commit's own record, as the ledger has it."""
        return [
            x["finding_id"]
            for x in self.losses
            if x["topic"] in (GROUP_TOPIC, SHARE_TOPIC)
            and commit.path.parent.name.partition(".")[0] == f"{x['topic']}-{x['partition']}"
            and x["first_offset"] <= commit.log_offset < x["end_offset"]
            and x["leader_epoch"] in (None, commit.log_leader_epoch)
            and (x["cluster_id"] or "") == self.cluster_id
            and x["finding_id"] is not None
            and x["finding_id"] not in known
        ]

    def _leader_log(self, identity: Identity) -> LeaderLog:
        folded = self.states[identity]
        leader = last_leader(folded)
        spans = log_of(folded.state, leader)
        rows = [
            Lost(x["first_offset"], x["end_offset"], x["leader_epoch"],
                 x["status"] != "undetermined", x["finding_id"])
            for x in self.losses
            if x["status"] in NOT_BACK
            and identity
            == (x["cluster_id"] or "", x["topic"], x["topic_id"] or "", x["partition"])
        ]  # fmt: skip
        if spans is None or leader is None:
            return LeaderLog(None, None, None, rows)
        log = folded.state.replicas[leader].log
        return LeaderLog(spans, log.log_start_offset, log.log_end_offset, rows)

    def _row(
        self,
        state: GroupState,
        where: Where,
        identity: Identity | None,
        log: LeaderLog,
        effect: Effect,
    ) -> dict[str, Any]:
        name, topic, partition = where
        now, lost = state.now.get(where), state.displaced.get(where)
        group, shown = state.groups[name], now or lost
        path = None if shown is None else self.imported.collection.unpacked.shown(str(shown.path))
        return {
            "cluster_id": self.cluster_id or None,
            "group": name,
            "group_type": group.kind,
            "members": sorted(set(group.members.values())),
            "topic": topic if identity is None else identity[1],
            "topic_id": None if identity is None else identity[2] or None,
            "partition": partition,
            "effects": effect.effects,
            "committed_offset": None if now is None else now.offset,
            "committed_leader_epoch": None if now is None else now.leader_epoch,
            "committed_at": None if now is None else moment(now.at),
            "lost_committed_offset": None if lost is None else lost.offset,
            "lost_committed_leader_epoch": None if lost is None else lost.leader_epoch,
            "lost_committed_at": None if lost is None else moment(lost.at),
            "log_start_offset": log.log_start_offset,
            "log_end_offset": log.log_end_offset,
            "parts_at": effect.parts_at,
            "lost_read": effect.lost_read,
            "skipped": effect.skipped,
            "read_again": effect.read_again,
            "certain": effect.is_sure and not self.is_unsure,
            "finding_ids": effect.finding_ids,
            "path": path,
            "position": None if shown is None else shown.position,
        }
