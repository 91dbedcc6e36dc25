"""The questions that are put to admitted histories: is a promise broken at a run of offsets?

Each answers with every outcome that some history gives: True where the promise is broken there.
"""

from replication.protocol.histories.assumptions import ELECTIONS_AS_RECORDED
from replication.protocol.histories.filters.at_offset import Claim
from replication.protocol.histories.moves.by_rule import (
    BY_COMMON_EPOCH,
    keeps_by_epoch,
    truncation_of,
)
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.stretches import KEPT, Admitted, Outcomes

COMMITTED = "committed_records_survive"
ACKNOWLEDGED = "acknowledged_records_survive"
CONSUMED = "consumed_records_survive"
OF_LOSSES = (COMMITTED, ACKNOWLEDGED, CONSUMED)
MATCHING = "log_matching"
BROKEN: Outcomes = frozenset([True])
ANY_ACKNOWLEDGED = ("acks_all", "acks_1")


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


def differ(admitted: Admitted) -> Outcomes:
    """Whether two replicas hold different records, and will when they have followed the leader."""
    line, place = admitted.line, admitted.run.place
    if line.state.settings.deleted:
        return KEPT
    assigned = [place[r] for r in line.assigned or line.replicas if r in place]
    return frozenset(
        len({at.records[p] for p in assigned if _stays(admitted, at, p, leader)} - {0}) > 1
        for at in admitted.ends
        for leader in last_leaders(admitted)
    )


def _stays(admitted: Admitted, at: At, place: int, leader: int | None) -> bool:
    """Whether a replica that follows the leader next may keep the record that it holds."""
    flags, epochs = admitted.line.flags, admitted.search.records.epochs
    if leader is None or place == leader or truncation_of(flags) not in BY_COMMON_EPOCH:
        return True
    own, leaders = epochs[at.records[place]], epochs[at.records[leader]]
    if leaders is None and not at.records[leader]:
        return keeps_by_epoch(own or 0, None, flags)
    if own is not None and leaders is not None:
        return keeps_by_epoch(own, leaders, flags)
    known = own if leaders is None else leaders
    if known is None or _may_have_two(admitted, known):
        return True
    # The other record is of some other leader epoch, an earlier or a later one.
    pairs = [(known, e) if leaders is None else (e, known) for e in (known - 1, known + 1)]
    return any(keeps_by_epoch(*pair, flags) for pair in pairs)


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
