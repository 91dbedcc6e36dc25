"""The questions that are put to admitted histories: is a promise broken at a run of offsets?

Each answers with every outcome that some history gives: True where the promise is broken there.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from typing import NamedTuple

from replication.protocol.ground.model import Span, same_record
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.histories.assumptions import ELECTIONS_AS_RECORDED
from replication.protocol.histories.filters.at_offset import Claim
from replication.protocol.histories.filters.items import Records
from replication.protocol.histories.moves.by_rule import (
    BY_COMMON_EPOCH,
    keeps_by_epoch,
    truncation_of,
)
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.stretches import KEPT, OPEN, Admitted, Outcomes
from replication.protocol.judgement.divergence import keeps_below
from replication.protocol.judgement.reference import is_compacted_away, log_at, log_is_covered

COMMITTED = "committed_records_survive"
ACKNOWLEDGED = "acknowledged_records_survive"
CONSUMED = "consumed_records_survive"
MATCHING = "log_matching"
BROKEN: Outcomes = frozenset([True])
STAYS: Outcomes = frozenset([True])
ANY_ACKNOWLEDGED = ("acks_all", "acks_1")


class Log(NamedTuple):
    """A replica whose whole log is known, and by their numbers the records that it may show at the
    offset: 0 for none."""

    replica: Replica
    records: Records


def last_leaders(admitted: Admitted) -> list[int | None]:
    """The places of the replicas that may lead at the end; None where no replica is left."""
    line, place = admitted.line, admitted.run.place
    if line.state.settings.deleted:
        return [None]
    ends_early = line.ends_early and ELECTIONS_AS_RECORDED not in admitted.run.assumed.names
    leader = line.final_leader
    if leader in place and not ends_early:
        return [place[leader]]
    return [place[r] for r in line.assigned or line.replicas if r in place] or [None]


def held_by(at: At, leader: int | None) -> int:
    """The record that the last leader holds, as a mask; all where the topic is gone with them."""
    if leader is None:
        return ~0
    record = at.records[leader]
    return 1 << record if record else 0


def is_removed(admitted: Admitted) -> bool:
    """Whether the records of the run were removed lawfully: retention, or deletion of records."""
    return admitted.end is not None and admitted.end <= admitted.line.log_start


def committed(admitted: Admitted) -> Outcomes:
    """Whether a record that was committed is missing from a later leader's log."""
    return frozenset(
        bool(at.committed & (at.missed_committed | ~held_by(at, leader)))
        for at in admitted.ends
        for leader in last_leaders(admitted)
    )


def acknowledged(admitted: Admitted) -> Outcomes:
    """Whether a record of which a producer was told is missing from a later leader's log."""
    return _told(admitted, ANY_ACKNOWLEDGED, may_be_untold=not admitted.line.acks_covered)


def consumed(admitted: Admitted) -> Outcomes:
    """Whether a record that a consumer was given is missing from a later leader's log."""
    return _told(admitted, ("consumed",), may_be_untold=False)


def _told(admitted: Admitted, how: tuple[str, ...], *, may_be_untold: bool) -> Outcomes:
    claims = [c for c in admitted.run.claims if c.how in how]
    found: set[object] = set()
    for at in admitted.ends:
        for leader in last_leaders(admitted):
            gone = ~held_by(at, leader)
            untold = at.missed & 1 or at.appended & ~1 & (at.missed | gone)
            outcomes = {False, True} if may_be_untold and untold else {False}
            for claim in claims:
                lost, kept = fate_of(admitted, at, claim, leader)
                kept = kept or not claim.sure
                this = ({True} if lost else set()) | ({False} if kept else set())
                outcomes = {a or b for a in outcomes for b in this}
            found |= outcomes
    return frozenset(found)


def fate_of(admitted: Admitted, at: At, claim: Claim, leader: int | None) -> tuple[int, int]:
    """Of the records that a client may have been told of: those that are missing from a later
    leader's log, and those that are not, as masks."""
    possible = _possible(admitted, at, claim)
    missed = at.missed if claim.how == "acks_1" else at.missed_by_any
    if claim.how in ANY_ACKNOWLEDGED:  # One send has one acks: another's record is not this one's.
        for other in admitted.run.claims:
            if other.how in ANY_ACKNOWLEDGED and other.how != claim.how and other.sure:
                theirs = _possible(admitted, at, other)
                if theirs & (theirs - 1) == 0 and possible & ~theirs:
                    possible &= ~theirs
    gone = missed | ~held_by(at, leader)
    return possible & gone, possible & ~gone


def _possible(admitted: Admitted, at: At, claim: Claim) -> int:
    """The records that a client may have been told of in one history, as a mask."""
    mask = at.appended if claim.how == "acks_1" else at.committed_by_any
    return admitted.search.records.meant(claim) & mask


def agree_for_sure(state: State, assigned: Iterable[int], offset: int) -> bool:
    """Whether the logs of all replicas, each known as it is by now, show one record at an offset,
    or no record."""
    found: list[Span] = []
    for replica in map(state.replicas.get, assigned):
        log = None if replica is None else log_at(state, replica, offset)
        if replica is None or log is None or not _is_known_by_now(state, replica, offset):
            return False
        found += log
    return all(same_record(found[0], span) for span in found[1:])


def _is_known_by_now(state: State, replica: Replica, offset: int) -> bool:
    """Whether a log is still as it was seen: its broker has stopped, or all its lines are here."""
    if state.is_traced(replica.replica) or replica.stopped is True:
        return True
    return log_is_covered(state, replica.replica) and offset < replica.log.log_end_offset


def differ(admitted: Admitted) -> Outcomes:
    """Whether two replicas hold different records, and will when they have followed the leader."""
    line, place = admitted.line, admitted.run.place
    if line.state.settings.deleted:
        return KEPT
    assigned = [place[r] for r in line.assigned or line.replicas if r in place]
    logs = [_log(admitted, p) for p in range(len(line.replicas))]
    gone = {n for n in place if is_compacted_away(line.state, n, admitted.first)}
    assigned = [p for p in assigned if line.replicas[p] not in gone]
    found: set[object] = set()
    for at in admitted.ends:
        for leader in last_leaders(admitted):
            held = [p for p in assigned if at.records[p]]
            fates = [(at.records[p], _stays(admitted, at, p, leader, logs)) for p in held]
            may = {record for record, stays in fates if True in stays}
            must = {record for record, stays in fates if False not in stays}
            found |= {len(may) > 1, len(must) > 1}
    return frozenset(found)


def differing(admitted: Admitted) -> tuple[int, int]:
    """Two replicas with different records in some history, in as many as any two."""
    numbers = admitted.line.assigned or admitted.line.replicas
    found = Counter(
        (a, b)
        for at in admitted.ends
        for a, b in combinations([n for n in numbers if n in admitted.run.place], 2)
        if len({at.records[admitted.run.place[n]] for n in (a, b)} - {0}) > 1
    )
    return found.most_common(1)[0][0]


def _stays(
    admitted: Admitted, at: At, place: int, leader: int | None, logs: list[Log | None]
) -> Outcomes:
    """Whether a replica that follows the leader next keeps the record that it holds."""
    flags, epochs = admitted.line.flags, admitted.search.records.epochs
    state = admitted.line.state
    own_log = logs[place] if at.records[place] in _records(logs[place]) else None
    if own_log is not None and not state.still_has_records(own_log.replica):
        return OPEN
    if leader is None or place == leader:
        return STAYS
    leaders_log = logs[leader] if at.records[leader] in _records(logs[leader]) else None
    if own_log is not None and leaders_log is not None:
        kept = admitted.line.kept_below
        if (place, leader) not in kept:
            kept[place, leader] = keeps_below(state, own_log.replica, leaders_log.replica)
        return frozenset(admitted.first < end for end in kept[place, leader])
    if truncation_of(flags) not in BY_COMMON_EPOCH:
        return OPEN
    own, leaders = epochs[at.records[place]], epochs[at.records[leader]]
    if leaders is None and not at.records[leader]:
        return frozenset([keeps_by_epoch(own or 0, None, flags)])
    if own is not None and leaders is not None:
        return frozenset([keeps_by_epoch(own, leaders, flags)])
    known = own if leaders is None else leaders
    if known is None or _may_have_two(admitted, known):
        return OPEN
    # The other record is of some other leader epoch, an earlier or a later one.
    pairs = [(known, e) if leaders is None else (e, known) for e in (known - 1, known + 1)]
    return frozenset(keeps_by_epoch(*pair, flags) for pair in pairs)


def _log(admitted: Admitted, place: int) -> Log | None:
    """A replica's whole log, where it is known."""
    state, run = admitted.line.state, admitted.run
    replica = state.replicas.get(admitted.line.replicas[place])
    here = None if replica is None else log_at(state, replica, admitted.first)
    if replica is None or here is None:
        return None
    shown = (run.records(span.leader_epoch, span.content) for span in here)
    return Log(replica, next(shown, frozenset([0])))


def _records(log: Log | None) -> Records:
    return frozenset() if log is None else log.records


def _may_have_two(admitted: Admitted, leader_epoch: int) -> bool:
    """Whether two records may have been written in a leader epoch at the offset."""
    window = admitted.line.by_epoch.get(leader_epoch)
    if window is None or window.leader not in admitted.run.place:
        return True
    return admitted.run.several(window.leader, leader_epoch)


QUESTIONS = {
    COMMITTED: committed,
    ACKNOWLEDGED: acknowledged,
    CONSUMED: consumed,
    MATCHING: differ,
}
