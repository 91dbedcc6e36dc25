"""Every group of the evidence with its offsets by partition, and what a loss did to it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from replication.evidence.coordinator_records import GROUP_TOPIC, SHARE_TOPIC
from replication.evidence.importer import Import
from replication.evidence.joining.copies import latest
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import finished
from replication.protocol.ground.model import Span, moment
from replication.protocol.judgement.bounded import FoldedPartition, Identity
from replication.recovery.groups.coordinator_logs import CoordinatorLog, coordinator_log, is_of
from replication.recovery.groups.effects import (
    Effect,
    LeaderLog,
    Lost,
    effect_of,
    has_read,
)
from replication.recovery.groups.group_state import Commit, GroupState, Where
from replication.recovery.ledger_rows import NOT_BACK
from replication.recovery.moments import last_leader, log_of
from replication.recovery.producing import PROGRESS_GROUP

# By how much brokers' clocks are taken to differ at most where nobody said (--clock-bound), ms.
CLOCKS_DIFFER_MS = 5_000

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
    "no copy of the leader's log is at hand: the offsets are those of the copy that reaches "
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
    for rows in clusters_groups(imported, folded, losses, result):
        result.rows += rows.all()
    return result


def clusters_groups(
    imported: Import,
    folded: list[FoldedPartition],
    losses: list[dict[str, Any]],
    told: GroupsRead,
) -> list["ClusterGroups"]:
    """What the coordinators' logs of each cluster say. told: takes notes and sources."""
    states = {f.identity: f for f in folded}
    found: dict[str, ClusterGroups] = {}
    for partition in imported.partitions:
        if partition.topic not in (GROUP_TOPIC, SHARE_TOPIC):
            continue
        cluster_id, identity = partition.cluster_id, _name(partition)
        log = coordinator_log(finished(partition), states[identity], losses)
        if log.present is None:
            continue
        told.logs += 1
        told.sources |= log.sources
        groups = found.setdefault(cluster_id, ClusterGroups(imported, cluster_id, states, losses))
        known = set(groups.state.first)
        groups.state.take_present(log.now())
        groups.note_beginnings(log, identity, groups.state.first.keys() - known)
        groups.state.take_elsewhere(log.elsewhere())
        told.notes += log.notes
        if not log.is_leaders:
            groups.is_unsure = True
            told.notes.append(f"{partition.topic}-{partition.partition}: {NO_LEADERS_COPY}")
    return [found[cluster_id] for cluster_id in sorted(found)]


def _name(partition: PartitionEvidence) -> Identity:
    return partition.cluster_id, partition.topic, partition.topic_id, partition.partition


def group_names(rows: list[dict[str, Any]]) -> list[str]:
    """The groups that rows are of, each once."""
    return list(dict.fromkeys(f"{row['cluster_id']}/{row['group']}" for row in rows))


class Elected(NamedTuple):
    """Where and when a leader epoch of a partition began: an offset of the metadata log, and the
    controller's clock, ms since 1970."""

    leader_epoch: int
    metadata_offset: int
    at: int

    def is_before(self, other: "Elected") -> bool:
        """Whether it began before another one; those of one batch, when a broker is fenced, say,
        begin at once."""
        return self.metadata_offset < other.metadata_offset and self.at != other.at


@dataclass(slots=True)
class ClusterGroups:
    """The groups of one cluster. is_unsure: a coordinator's log lacks its leader's own copy. began:
    by group, since when it is there, where that is known: an offset of the metadata log."""

    imported: Import
    cluster_id: str
    states: dict[Identity, FoldedPartition]
    losses: list[dict[str, Any]]
    state: GroupState = field(default_factory=GroupState)
    is_unsure: bool = False
    began: dict[str, int] = field(default_factory=dict)
    _elected: dict[tuple[str, int], list[Elected]] = field(default_factory=dict)
    _logs: dict[Identity, LeaderLog] = field(default_factory=dict)
    _named: dict[tuple[str, int], list[Identity]] = field(default_factory=dict)

    def all(self) -> Iterator[dict[str, Any]]:
        """The rows, in the order of group, topic and partition."""
        state = self.state
        for where in sorted(state.furthest):
            if PROGRESS_GROUP.fullmatch(where[0]):
                continue  # Its offsets count what `recover --produce` has done.
            now, displaced = state.now.get(where), state.displaced.get(where)
            if now is None and displaced is None:
                continue  # deleted or expired
            identity = self._identity(where, now or displaced)
            log = LeaderLog(None, None, None) if identity is None else self._log(identity)
            log = self._as_met(where[0], log, identity)
            effect = effect_of(
                None if now is None else self._dated(now, identity),
                None if displaced is None else self._dated(displaced, identity),
                [self._dated(c, identity) for c in state.commits(where)],
                log,
            )
            if displaced is not None:
                effect.finding_ids += self._losses_of(displaced, effect.finding_ids)
            yield self._row(where, identity, log, effect)

    def that_read(
        self, identity: Identity, offset: int, leader_epoch: int | None
    ) -> list[dict[str, Any]]:
        """The groups that by any commit had done with a record: `group`, and whether it is
        `certain`."""
        found: dict[str, bool] = {}
        for where in self.state.furthest:
            if where[2] != identity[3]:
                continue
            for commit in self.state.commits(where):
                if self._identity(where, commit) != identity:
                    continue
                dated = self._dated(commit, identity)
                sure = has_read(dated, offset, leader_epoch, self._log(identity))
                if sure is not None:
                    found[where[0]] = found.get(where[0], False) or sure
        return [{"group": name, "certain": sure} for name, sure in sorted(found.items())]

    def note_beginnings(self, log: CoordinatorLog, identity: Identity, new: Iterable[str]) -> None:
        """Notes since when groups are there: with the leader epoch of the coordinator's log that
        their first record is of, where that log shows all that was ever written before it."""
        whole = log.now_whole_up_to() if log.is_leaders else 0
        for name in new:
            first, group = self.state.first[name], self.state.groups.get(name)
            # Of one that never had members nobody knows since when it reads.
            if first.offset < whole and group is not None and group.kind is not None:
                at = self._elected_at(identity, first.leader_epoch)
                if at is not None:
                    self.began[name] = at

    def _as_met(self, name: str, log: LeaderLog, identity: Identity | None) -> LeaderLog:
        """The log as a group met it: what was lost before the group was there it cannot have
        read."""
        began = self.began.get(name)
        if began is None or identity is None or not log.lost:
            return log
        parted = ((x, self._elected_at(identity, x.parted_in)) for x in log.lost)
        return replace(log, lost=[x for x, at in parted if at is None or at > began])

    def _elected_at(self, identity: Identity, leader_epoch: int | None) -> int | None:
        """The offset of the metadata log at which a leader epoch of a partition began; None where
        it does not tell."""
        elected = self._elections(identity)
        return {e.leader_epoch: e.metadata_offset for e in elected}.get(leader_epoch or 0)

    def _elections(self, identity: Identity) -> list[Elected]:
        """The leader epochs of a partition behind its first one that the metadata log tells of."""
        history = self.imported.collection.histories.get(self.cluster_id)
        if history is not None and not self._elected:
            for change in history.changes:
                of = change.after
                if change.before is not None and change.before.leader_epoch != of.leader_epoch:
                    each = self._elected.setdefault((of.topic_id, of.partition), [])
                    each.append(Elected(of.leader_epoch, change.metadata_offset, change.at))
        return self._elected.get((identity[2], identity[3]), [])

    def _dated(self, commit: Commit, identity: Identity | None) -> Commit:
        """A commit without a leader epoch, with the last one of its partition that had begun.

        The metadata log's order tells: whatever the coordinator wrote in one leader epoch, it wrote
        before the next one began. Else the clocks tell, as far as they cannot be wrong."""
        elected = [] if identity is None else self._elections(identity)
        if commit.leader_epoch is not None or not elected:
            return commit
        ended, by_clock = self._written_before(commit), None
        if commit.at is not None:
            bound = self._clock_bound
            reached = commit.at + (CLOCKS_DIFFER_MS if bound is None else bound)
            by_clock = _latest(elected, lambda e: e.at <= reached)
        latest = None if ended is None else _latest(elected, lambda e: e.is_before(ended))
        if by_clock is None or (latest is not None and latest <= by_clock):
            return replace(commit, latest_epoch=latest)
        return replace(commit, latest_epoch=by_clock, by_clock=self._clock_bound is None)

    @property
    def _clock_bound(self) -> int | None:
        """By how much all clocks differ at most, ms, as far as the user said so."""
        return next((p.clock_bound for p in self.imported.partitions), None)

    def _written_before(self, commit: Commit) -> Elected | None:
        """The next leader epoch of the coordinator's log behind the one in which a commit was
        written; None: not known, or none began."""
        topic, _, number = commit.path.parent.name.partition(".")[0].rpartition("-")
        named = self._named.get((topic, int(number)), []) if number.isdigit() else []
        if commit.log_leader_epoch is None or len(named) != 1:
            return None
        later = (e for e in self._elections(named[0]) if e.leader_epoch > commit.log_leader_epoch)
        return min(later, key=lambda e: e.metadata_offset, default=None)

    def _log(self, identity: Identity) -> LeaderLog:
        if identity not in self._logs:
            self._logs[identity] = self._leader_log(identity)
        return self._logs[identity]

    def _identity(self, where: Where, commit: Commit | None) -> Identity | None:
        """The topic partition that is meant: by the topic's id, else the last of that name."""
        if not self._named:
            for known in self.states:
                if known[0] == self.cluster_id:
                    for name in {known[1], known[2]} - {""}:
                        self._named.setdefault((name, known[3]), []).append(known)
        _, topic, partition = where
        by_id = commit.topic_id if commit is not None else None
        if by_id is not None and (by_id, partition) in self._named:
            return self._named[by_id, partition][-1]
        named = self._named.get((topic, partition), [])
        living = [i for i in named if last_leader(self.states[i]) is not None]
        return next(iter([*living[-1:], *named[-1:]]), None)

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
                 x["status"] != "undetermined", x["finding_id"],
                 _parted_in(spans, x["first_offset"], x["leader_epoch"]))
            for x in self.losses
            if x["status"] in NOT_BACK and is_of(x, identity)
        ]  # fmt: skip
        if spans is None or leader is None:
            return LeaderLog(None, None, None, rows)
        log = folded.state.replicas[leader].log
        copies = [c for p in self.imported.partitions if _name(p) == identity for c in p.copies]
        copied = latest(copies).get(leader)
        is_final = copied is not None and copied.clean
        return LeaderLog(spans, log.log_start_offset, log.log_end_offset, rows, is_final)

    def _row(
        self,
        where: Where,
        identity: Identity | None,
        log: LeaderLog,
        effect: Effect,
    ) -> dict[str, Any]:
        name, topic, partition = where
        state = self.state
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


def _latest(elected: Sequence[Elected], began: Callable[[Elected], bool]) -> int:
    """The last of the leader epochs that had begun; the one before the first where none had."""
    begun = [e.leader_epoch for e in elected if began(e)]
    return max(begun, default=min(e.leader_epoch for e in elected) - 1)


def _parted_in(spans: Sequence[Span] | None, first: int, leader_epoch: int | None) -> int | None:
    """The first later leader epoch of which the leader's log has records where others were lost."""
    epochs = [s.leader_epoch for s in spans or () if s.end_offset > first]
    later = [e for e in epochs if e is not None and leader_epoch is not None and e > leader_epoch]
    return min(later, default=None)
