"""Holds every observed step against what the rules of the declared version force.

`hold` runs before the fold moves the state: what was known until now and the observed inputs go
into the functions of protocol/rules, and what comes out is compared with the step. A step that no
order of the brokers' lines explains is a finding of version_conformance. Lines of one broker come
in its own order; between brokers there is none, so what another broker's later line may explain
waits as an Expectation, and what that broker's lines have passed by is decided.

steady.py does the same for uneventful steps, faster; tests/protocol/test_steady.py keeps the two
equal.
"""

from collections.abc import Callable
from typing import Any

from replication.protocol.folding.conformance import disks, followers, leaders
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import State

_HELD: dict[type[Any], Callable[[State, ev.Event, Any], None]] = {
    ev.LeadershipRecorded: leaders.leadership_recorded,
    ev.BecameLeader: leaders.became_leader,
    ev.LeaderAppended: leaders.leader_appended,
    ev.FollowerAppended: followers.follower_appended,
    ev.FetchAnswered: followers.fetch_answered,
    ev.BecameFollower: followers.became_follower,
    ev.Truncated: followers.truncated,
    ev.ReplicaStarted: disks.replica_started,
    ev.ReplicaStopped: disks.replica_stopped,
    ev.ReplicaLogObserved: disks.replica_log_observed,
}


def hold(state: State, event: ev.Event, fact: ev.Fact) -> None:
    """Holds a step against the rules, before the fold takes it.

    But for fetches, of which the fold asks leaders.fetch_requested itself whether they count.
    """
    if isinstance(fact, ev.HighWatermarkAdvanced):
        replica = state.replicas.get(fact.replica)
        if replica is not None and replica.role == "leader":
            leaders.high_watermark_advanced(state, event, fact, replica)
        elif replica is not None and replica.role == "follower":
            followers.high_watermark_advanced(state, event, fact, replica)
        return
    if isinstance(fact, ev.CoverageDeclared):
        if fact.subject == "replica_trace" and fact.replica is not None:
            traced = state.conformance.traced
            (traced.add if fact.complete else traced.discard)(fact.replica)
        return
    held = _HELD.get(type(fact))
    if held is not None:
        held(state, event, fact)
