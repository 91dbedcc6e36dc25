"""What the coordinators' records say of groups: who they are, and which offsets they committed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from replication.evidence.coordinator_records import OFFSET_COMMIT
from replication.recovery.groups.coordinator_logs import Entry

# The kind of a group, by the kind of record that names it.
_KINDS = {
    "GroupMetadata": "classic",
    "ConsumerGroupMetadata": "consumer",
    "ShareGroupMetadata": "share",
    "StreamsGroupMetadata": "streams",
}
_MEMBERS = {
    "ConsumerGroupMemberMetadata", "ShareGroupMemberMetadata", "StreamsGroupMemberMetadata",
}  # fmt: skip
SNAPSHOT, UPDATE = "ShareSnapshot", "ShareUpdate"
_ACKNOWLEDGED = 2
# (group, topic, partition); a share group's records name the topic by its id.
Where = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed offset, or the start offset of a share group.

    leader_epoch: of the last record that was read before the commit; of a share group that of the
    partition's leader. at: ms since 1970. acknowledged: ranges of records above the offset that a
    share group has done with. latest_epoch: of a commit without a leader epoch, the last one of its
    partition that had begun when it was made; None: not known. by_clock: brokers' clocks alone tell
    that, and nobody said by how much they differ. entry: the record it was read from.
    """

    offset: int
    leader_epoch: int | None
    at: int | None
    topic_id: str | None
    path: Path
    position: int
    log_offset: int
    log_leader_epoch: int | None
    displaced: bool = False
    acknowledged: tuple[tuple[int, int], ...] = ()
    latest_epoch: int | None = None
    by_clock: bool = False


@dataclass(slots=True)
class Group:
    """One group. kind: `classic`, `consumer`, `share`, `streams`; None where only its offsets are
    known. members: "client id (host)" by member id."""

    name: str
    kind: str | None = None
    members: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class GroupState:
    """The groups of one cluster.

    now: the offsets that count. furthest: the furthest commits that any copy shows, one of each
    leader epoch, and of those without one, one of each leader epoch of the coordinator's log.
    displaced: the newest commit that the present log does not have. first: by group its first
    record in the logs that count.
    """

    groups: dict[str, Group] = field(default_factory=dict)
    now: dict[Where, Commit] = field(default_factory=dict)
    furthest: dict[Where, dict[tuple[int | None, int | None], Commit]] = field(default_factory=dict)
    displaced: dict[Where, Commit] = field(default_factory=dict)
    first: dict[str, Entry] = field(default_factory=dict)

    def take_present(self, entries: Iterable[Entry]) -> None:
        """The records of a log that counts, in its order."""
        for entry in entries:
            kind, key, value = entry.record.kind, entry.record.key, entry.record.value
            self.first.setdefault(key.get("group", key.get("group_id", "")), entry)
            if kind == OFFSET_COMMIT or kind in (SNAPSHOT, UPDATE):
                where = _where(entry)
                if value is None:
                    self.now.pop(where, None)
                else:
                    self._take(where, self.now, commit_of(entry, self.now.get(where)))
            elif kind in _KINDS:
                self._take_group(_KINDS[kind], entry)
            elif kind in _MEMBERS and value is None:
                self._group(key["group_id"]).members.pop(key["member_id"], None)
            elif kind in _MEMBERS:
                self._group(key["group_id"]).members[key["member_id"]] = _client(value or {})

    def take_elsewhere(self, entries: Iterable[Entry]) -> None:
        """The records of other copies of such a log, copy by copy."""
        last: dict[Where, Commit] = {}
        for entry in entries:
            kind = entry.record.kind
            if entry.record.value is None or kind not in (OFFSET_COMMIT, SNAPSHOT, UPDATE):
                continue
            where = _where(entry)
            commit = commit_of(entry, last.get(where))
            self._take(where, last, commit)
            known = self.displaced.get(where)
            if commit.displaced and (known is None or _age(known) < _age(commit)):
                self.displaced[where] = commit

    def _take(self, where: Where, into: dict[Where, Commit], commit: Commit) -> None:
        into[where] = commit
        self._group(where[0])
        epochs = self.furthest.setdefault(where, {})
        made_in = commit.leader_epoch
        of = (made_in, None) if made_in is not None else (None, commit.log_leader_epoch)
        known = epochs.get(of)
        if known is None or (known.offset, known.acknowledged) < (
            commit.offset,
            commit.acknowledged,
        ):
            epochs[of] = commit

    def _group(self, name: str) -> Group:
        return self.groups.setdefault(name, Group(name))

    def _take_group(self, kind: str, entry: Entry) -> None:
        key, value = entry.record.key, entry.record.value
        group = self._group(key.get("group", key.get("group_id", "")))
        if value is None:
            group.members = {} if kind == "classic" else group.members
            return
        group.kind = kind
        if kind == "classic":
            group.members = {m["member_id"]: _client(m) for m in value["members"]}
            if not value["protocol_type"] and not group.members:
                group.kind = None

    def commits(self, where: Where) -> Iterator[Commit]:
        """The furthest commits that any copy shows, and those that count or counted last."""
        yield from {c for c in (self.now.get(where), self.displaced.get(where)) if c is not None}
        yield from self.furthest.get(where, {}).values()


def _age(commit: Commit) -> tuple[int, int]:
    leader_epoch = commit.log_leader_epoch
    return (-1 if leader_epoch is None else leader_epoch, commit.log_offset)


def _client(member: dict[str, object]) -> str:
    return f"{member.get('client_id')} ({str(member.get('client_host')).removeprefix('/')})"


def _where(entry: Entry) -> Where:
    key = entry.record.key
    if entry.record.kind == OFFSET_COMMIT:
        return key["group"], key["topic"], key["partition"]
    return key["group_id"], key["topic_id"], key["partition"]


def commit_of(entry: Entry, before: Commit | None) -> Commit:
    """What an entry with a value commits; before: what a share group's update goes on from."""
    value = entry.record.value or {}
    common = (
        entry.path, entry.position, entry.offset, entry.leader_epoch, entry.displaced,
    )  # fmt: skip
    leader_epoch = value.get("leader_epoch", -1)
    known = leader_epoch if leader_epoch >= 0 else None
    if entry.record.kind == OFFSET_COMMIT:
        at, topic_id = value["commit_timestamp"], value.get("topic_id")
        return Commit(value["offset"], known, at, topic_id, *common)
    start = value["start_offset"]
    if start < 0:
        start = -1 if before is None else before.offset
    done = {
        (b["first_offset"], b["last_offset"] + 1)
        for b in value["state_batches"]
        if b["delivery_state"] == _ACKNOWLEDGED
    }
    if entry.record.kind == UPDATE and before is not None:
        done |= set(before.acknowledged)
    ranges = tuple(sorted((first, end) for first, end in done if end > start))
    at = value.get("write_timestamp")
    return Commit(start, known, at, entry.record.key["topic_id"], *common, ranges)
