"""What a loss did to a group in one topic partition, by its commits and the leader's log.

A committed offset is the next record to read, and since 2.1 (KIP-320) it carries the leader epoch
of the last record that was read. So it says which of two histories the group had read: a commit of
the leader epoch whose records were lost read those; one of a leader epoch that the leader's log has
was made on that log. A commit without a leader epoch says it where its offset never held another
record, or where it was made before a later leader wrote others (`Commit.latest_epoch`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from replication.protocol.ground.model import Span
from replication.protocol.ground.wire import MAX_OFFSET
from replication.recovery.groups.group_state import Commit

READ_LOST = "read_lost_records"
BEYOND_END = "committed_beyond_the_end"
SKIPS = "skips_records"
COMMIT_LOST = "commit_lost"
READS_AGAIN = "reads_again"
EFFECTS = (READ_LOST, BEYOND_END, SKIPS, COMMIT_LOST, READS_AGAIN)


# Offsets [first, end).
Range = tuple[int, int]


def joined(ranges: Iterable[Range]) -> list[Range]:
    """The same offsets in ranges that are in order and apart."""
    result: list[Range] = []
    for first, end in sorted(r for r in ranges if r[0] < r[1]):
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((first, end))
    return result


def common(some: Sequence[Range], others: Sequence[Range]) -> list[Range]:
    """The offsets that are in both; each in order and apart."""
    result, at = [], 0
    for first, end in some:
        while at < len(others) and others[at][1] <= first:
            at += 1
        behind = at
        while behind < len(others) and others[behind][0] < end:
            result.append((max(first, others[behind][0]), min(end, others[behind][1])))
            behind += 1
    return result


def done(commit: Commit | None) -> list[Range]:
    """What a group with this commit will not read: all below it, and what it acknowledged above."""
    if commit is None:
        return []
    return joined([(0, commit.offset), *commit.acknowledged])


@dataclass(frozen=True, slots=True)
class Lost:
    """A row of the loss ledger: records [first, end) of one leader epoch that are not back.

    parted_in: the leader epoch in which the leader's log goes on without them; None: not known.
    """

    first: int
    end: int
    leader_epoch: int | None
    is_sure: bool
    finding_id: str | None
    parted_in: int | None = None


@dataclass(frozen=True, slots=True)
class LeaderLog:
    """What a group meets in a partition: the leader's log at the evidence's end, and what was lost.

    spans: None where nobody knows the log. end_is_final: nothing can have been written behind it.
    """

    spans: Sequence[Span] | None
    log_start_offset: int | None
    log_end_offset: int | None
    lost: Sequence[Lost] = ()
    end_is_final: bool = False

    def records(self, ranges: Iterable[Range]) -> int:
        """How many offsets in the ranges the log has records at."""
        held = [(s.first_offset, s.end_offset) for s in self.spans or ()]
        return sum(end - first for first, end in common(joined(ranges), held))

    def has_epoch(self, leader_epoch: int) -> bool:
        """Whether a record of that leader epoch is in it."""
        return any(s.leader_epoch == leader_epoch for s in self.spans or ())

    def has_of(self, offset: int, leader_epoch: int | None) -> bool:
        """Whether a record of that leader epoch is in it at an offset."""
        return any(
            s.first_offset <= offset < s.end_offset and s.leader_epoch == leader_epoch
            for s in self.spans or ()
        )


@dataclass(slots=True)
class Effect:
    """What became of a group in a partition. Numbers are offsets, control records among them.

    parts_at: from where on the log that the present commit was made on is not the leader's.
    is_sure: whether the commits themselves tell all of it.
    """

    effects: list[str] = field(default_factory=list)
    lost_read: int = 0
    skipped: int = 0
    read_again: int = 0
    parts_at: int | None = None
    is_sure: bool = True
    finding_ids: list[str] = field(default_factory=list)


def effect_of(
    now: Commit | None, displaced: Commit | None, every: Iterable[Commit], log: LeaderLog
) -> Effect:
    """now: the commit that counts. displaced: the newest one that the coordinator's log lost.
    every: the furthest of each leader epoch that any copy shows."""
    result = Effect()
    _read_of_lost(result, list(every), log)
    if now is not None:
        _of_present(result, now, log)
    if displaced is not None:
        _of_lost_commit(result, now, displaced, log)
    result.effects.sort(key=EFFECTS.index)
    return result


def _read_of_lost(result: Effect, commits: list[Commit], log: LeaderLog) -> None:
    """Counts the lost records that were read, each once."""
    for row in log.lost:
        read: list[Range] = []
        sure = False
        for commit in commits:
            told = reads(commit, row, log)
            if told is None:
                continue
            ranges = common(done(commit), [(row.first, row.end)])
            read += ranges
            sure = sure or (told and bool(ranges) and not commit.by_clock)
        count = sum(end - first for first, end in joined(read))
        if count:
            result.lost_read += count
            result.is_sure = result.is_sure and sure and row.is_sure
            _add(result, READ_LOST, row.finding_id)


def reads(commit: Commit, row: Lost, log: LeaderLog) -> bool | None:
    """Whether the history of a commit has the records of a row; None: it surely does not, False:
    nothing tells."""
    leader_epoch = commit.leader_epoch
    if row.leader_epoch is None or leader_epoch is None:
        if _is_older(commit, row.leader_epoch):
            return None
        # Where the leader's log has nothing at these offsets, nothing else can have been read.
        nothing_else = log.spans is not None and (log.log_end_offset or 0) <= row.first
        return nothing_else or _knew_one_log(commit, row, log)
    if leader_epoch == row.leader_epoch:
        return not log.has_of(row.first, leader_epoch)
    if leader_epoch < row.leader_epoch or log.has_epoch(leader_epoch):
        return None
    if row.parted_in is not None and leader_epoch >= row.parted_in:
        return None  # Of a later leader than the copy of the log shows.
    return any(x.leader_epoch == leader_epoch and x.first >= row.end for x in log.lost)


def _is_older(commit: Commit, leader_epoch: int | None) -> bool:
    """Whether a commit was made before a leader epoch began: it read nothing of it."""
    latest = commit.leader_epoch if commit.leader_epoch is not None else commit.latest_epoch
    return None not in (latest, leader_epoch) and (latest or 0) < (leader_epoch or 0)


def _knew_one_log(commit: Commit, row: Lost, log: LeaderLog) -> bool:
    """Whether a commit without a leader epoch was made when a row's records were the only ones that
    any leader had written at their offsets."""
    latest = commit.latest_epoch
    if latest is None or row.leader_epoch is None or row.parted_in is None:
        return False
    return latest < row.parted_in and not any(
        x.leader_epoch != row.leader_epoch
        and (x.leader_epoch is None or x.leader_epoch <= latest)
        and x.first < row.end
        and row.first < x.end
        for x in log.lost
    )


def has_read(commit: Commit, offset: int, leader_epoch: int | None, log: LeaderLog) -> bool | None:
    """Whether a commit shows that a record was read; None: it shows nothing, False: perhaps.

    leader_epoch: the record's own."""
    if not common(done(commit), [(offset, offset + 1)]):
        return None
    if _is_older(commit, leader_epoch):
        return None
    made_in = commit.leader_epoch
    if not log.has_of(offset, leader_epoch):
        return reads(commit, Lost(offset, offset + 1, leader_epoch, True, None), log)
    if made_in is not None and log.has_epoch(made_in):
        return True
    # Below where anything was lost all histories have the same records.
    return all(offset < row.first for row in log.lost)


def _of_present(result: Effect, now: Commit, log: LeaderLog) -> None:
    """How far the group has come in the leader's log."""
    parted = [
        x
        for x in log.lost
        if reads(now, x, log) is not None and common(done(now), [(x.first, x.end)])
    ]
    surely = [x for x in parted if reads(now, x, log)]
    if surely:
        result.parts_at = min(x.first for x in surely)
        result.is_sure = result.is_sure and not now.by_clock
        behind = [(result.parts_at, max(end for _, end in done(now)))]
        result.skipped = log.records(common(done(now), behind))
        if result.skipped:
            _add(result, SKIPS, *(x.finding_id for x in surely))
    # Without a loss below it, the copy of a running broker's log may be older than the commit.
    may_tell = log.end_is_final or bool(parted)
    if may_tell and log.log_end_offset is not None and now.offset > log.log_end_offset:
        _add(result, BEYOND_END, *(x.finding_id for x in parted))
        if result.parts_at is None:
            # Above this log's end it was made on another one, whatever its leader epoch.
            result.parts_at = min((x.first for x in parted), default=None)


def _of_lost_commit(result: Effect, now: Commit | None, lost: Commit, log: LeaderLog) -> None:
    """A commit that the coordinator no longer knows of: what the group reads again for that."""
    _add(result, COMMIT_LOST)
    if now is not None and _is_behind(now, lost):
        return
    parted = [x.first for x in log.lost if reads(lost, x, log)]
    was_done = common(done(lost), [(0, min([MAX_OFFSET, *parted]))])
    result.read_again = log.records(was_done) - log.records(common(was_done, done(now)))
    if result.read_again:
        _add(result, READS_AGAIN)


def _is_behind(now: Commit, lost: Commit) -> bool:
    """Whether the present commit was made after the coordinator had lost the other one."""
    if now.log_leader_epoch is None or lost.log_leader_epoch is None:
        return now.log_offset >= lost.log_offset
    return now.log_leader_epoch > lost.log_leader_epoch


def _add(result: Effect, word: str, *finding_ids: str | None) -> None:
    if word not in result.effects:
        result.effects.append(word)
    result.finding_ids += [f for f in finding_ids if f and f not in result.finding_ids]
