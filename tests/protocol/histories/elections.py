"""Traces of one partition with many elections of a kind, all of it traced."""

from collections.abc import Iterator

from replication.protocol.folding.fold import apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import State

KINDS = ("clean", "preferred", "unclean", "restarts", "crashes", "truncations")


def facts(kind: str, elections: int) -> Iterator[ev.Fact]:
    """Two brokers take turns. clean, preferred: nothing is lost; restarts: the leader stops each
    time and comes back, crashes: without a clean stop; unclean: the other lacks two records, which
    are cut; truncations: one broker leads alone in its ISR, its disk loses two records each time,
    and its follower cuts them."""
    yield ev.PartitionDescribed((1, 2), 1, True, "delete", "4.1.1", "4.1", "kraft")
    for subject in ("controller_history", "acknowledgements"):
        yield ev.CoverageDeclared(subject, None, True)
    for replica in (1, 2):
        yield ev.CoverageDeclared("replica_trace", replica, True)
    yield ev.LeadershipRecorded(1, 0, (1, 2), 0, "initial", (1, 2))
    yield ev.BecameLeader(1, 0, 0, 0, 0)
    yield ev.BecameFollower(2, 0, 1, 0, 0)
    end, leader = 0, 1
    turn = {"unclean": _lost, "truncations": _cut}.get(kind, _kept)
    for leader_epoch in range(1, elections + 1):
        yield from turn(leader_epoch, end, leader, kind)
        end += 1 if kind in ("unclean", "truncations") else 2
        leader = leader if kind == "truncations" else 3 - leader


def _kept(leader_epoch: int, end: int, leader: int, kind: str) -> Iterator[ev.Fact]:
    other, after = 3 - leader, end + 2
    restarts, elected = (
        kind in ("restarts", "crashes"),
        "preferred" if kind == "preferred" else "clean",
    )
    yield ev.LeaderAppended(leader, end, after, leader_epoch - 1)
    yield ev.FollowerAppended(other, end, after, leader_epoch - 1)
    yield ev.FetchRequested(other, leader, after, leader_epoch - 1)
    yield ev.HighWatermarkAdvanced(leader, after)
    yield ev.RecordsAcknowledged(end, after, "all", leader_epoch - 1)
    yield ev.FetchAnswered(other, leader, after)
    yield ev.HighWatermarkAdvanced(other, after)
    if restarts:
        clean = kind == "restarts"
        yield ev.ReplicaStopped(leader, *(("clean", after) if clean else ("process_crash", None)))
    yield ev.LeadershipRecorded(other, leader_epoch, (1, 2), leader_epoch, elected, (1, 2))
    yield ev.BecameLeader(other, leader_epoch, after, after, leader_epoch)
    if restarts:
        yield ev.ReplicaStarted(leader, 0, after, after, clean)
    yield ev.BecameFollower(leader, leader_epoch, other, after, after, leader_epoch)


def _cut(leader_epoch: int, end: int, leader: int, kind: str) -> Iterator[ev.Fact]:
    follower, after, isr = 3 - leader, end + 2, (leader,)
    yield ev.LeaderAppended(leader, end, after, leader_epoch - 1)
    yield ev.FollowerAppended(follower, end, after, leader_epoch - 1)
    yield ev.ReplicaStopped(leader, "power_loss")
    yield ev.ReplicaStarted(leader, 0, end, end, False)
    yield ev.LeadershipRecorded(leader, leader_epoch, isr, leader_epoch, "clean", (1, 2))
    yield ev.BecameLeader(leader, leader_epoch, end, end, leader_epoch)
    yield ev.BecameFollower(follower, leader_epoch, leader, after, end, leader_epoch)
    yield ev.Truncated(follower, end, after, "diverging_epoch")
    yield ev.LeaderAppended(leader, end, end + 1, leader_epoch)
    yield ev.HighWatermarkAdvanced(leader, end + 1)
    yield ev.FollowerAppended(follower, end, end + 1, leader_epoch)
    yield ev.HighWatermarkAdvanced(follower, end + 1)


def _lost(leader_epoch: int, end: int, leader: int, kind: str) -> Iterator[ev.Fact]:
    other, after, alone = 3 - leader, end + 2, leader_epoch > 1
    high_watermark = after if alone else end
    yield ev.LeaderAppended(leader, end, after, leader_epoch - 1)
    yield ev.HighWatermarkAdvanced(leader, high_watermark)
    yield ev.RecordsAcknowledged(end, after, "all" if alone else "1", leader_epoch - 1)
    yield ev.LeadershipRecorded(other, leader_epoch, (other,), leader_epoch, "unclean", (1, 2))
    yield ev.BecameLeader(other, leader_epoch, end, end, leader_epoch)
    yield ev.BecameFollower(leader, leader_epoch, other, after, high_watermark, leader_epoch)
    yield ev.Truncated(leader, end, after, "diverging_epoch")
    yield ev.LeaderAppended(other, end, end + 1, leader_epoch)
    yield ev.HighWatermarkAdvanced(other, end + 1)
    yield ev.FollowerAppended(leader, end, end + 1, leader_epoch)
    yield ev.HighWatermarkAdvanced(leader, end + 1)


def state(kind: str, elections: int) -> State:
    """The state that the trace of so many elections leads to."""
    folded = new_state("", "elections", "", 0)
    for number, fact in enumerate(facts(kind, elections)):
        event = ev.Event(str(number), "e", "", "e", "", 0, number, fact, None, "traced")
        apply(folded, event)
    return folded
