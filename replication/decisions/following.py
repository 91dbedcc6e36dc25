"""What becomes of the other copies: which records they cut as they follow a new leader."""

from replication.protocol.ground.versions import Behaviour
from replication.protocol.histories.moves.by_rule import (
    BY_COMMON_EPOCH,
    BY_HIGH_WATERMARK,
    keeps_by_epoch,
    keeps_by_high_watermark,
    possible,
)
from replication.protocol.histories.moves.states import At
from replication.protocol.histories.stretches import Admitted

CUT = frozenset([False])
KEPT = frozenset([True])
EITHER = CUT | KEPT


def keeps(admitted: Admitted, at: At, follower: int, leader: int) -> frozenset[bool]:
    """Whether a follower keeps its record after its first fetches from a new leader, by the rules
    of the release; both where that is not decided. By places."""
    own, theirs = at.records[follower], at.records[leader]
    if own == theirs:
        return KEPT
    if not own:
        return CUT
    each = (_by(rules, admitted, at, follower, leader) for rules in possible(admitted.line.flags))
    return frozenset().union(*each)


def _by(
    rules: Behaviour, admitted: Admitted, at: At, follower: int, leader: int
) -> frozenset[bool]:
    epochs = admitted.search.records.epochs
    own, theirs = epochs[at.records[follower]], epochs[at.records[leader]]
    if rules.truncation == BY_HIGH_WATERMARK:
        return _by_high_watermark(admitted, at, follower, leader)
    if rules.truncation in BY_COMMON_EPOCH:
        if not at.records[leader]:
            return CUT
        if own is None or theirs is None:
            return EITHER
        if own != theirs and not rules.has("fetch_carries_leader_epoch"):
            return EITHER  # Above a fork both may have the same records: then nothing is cut.
        return frozenset([keeps_by_epoch(own, theirs, rules)])
    # By the end of the follower's latest epoch alone, two quick elections may leave a fork.
    return KEPT if at.records[leader] and own == theirs is not None else EITHER


def _by_high_watermark(admitted: Admitted, at: At, follower: int, leader: int) -> frozenset[bool]:
    """A follower with its high watermark past its leader's log end does not cut: it stops, unless
    unclean elections are allowed."""
    if admitted.line.replicas[follower] not in admitted.line.covered:
        return EITHER
    if not keeps_by_high_watermark(bool(at.above >> follower & 1)):
        return CUT
    return KEPT if at.records[leader] else EITHER
