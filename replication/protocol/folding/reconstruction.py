"""What nobody observed and the rules force: values between two observations, marked as derived.

A view of the present state: the leader's high watermark after the last follower's fetch, the
epoch entries of appends and elections whose file nobody read, and the cuts that a later step shows
though no line tells of them (the fold notes those as it meets them). No verdict rests on one alone.
"""

from replication.protocol.folding.conformance.expected import behaviour_of
from replication.protocol.folding.conformance.leaders import forced_high_watermark
from replication.protocol.ground.topic_partition import Derived, Replica, State


def derived_values(state: State) -> list[Derived]:
    """Every derived value, by replica; of one replica epoch entries, cuts, then high watermark."""
    led = {(t.leader, t.leader_epoch) for t in state.history.terms if t.start_event_id}
    found: list[Derived] = []
    for number, replica in sorted(state.replicas.items()):
        found += _epoch_entries(state, replica, led)
        found += [d for d in state.history.derived if d.replica == number]
        found += _high_watermark(state, replica)
    return found


def _epoch_entries(state: State, replica: Replica, led: set[tuple[int, int]]) -> list[Derived]:
    flags, found = state.behaviour(replica.replica), []
    if flags is None or not flags.has("leader_epoch_in_record_batches"):
        return []
    number, filed = replica.replica, -1 if replica.filed_epoch is None else replica.filed_epoch
    at_election = flags.has("epoch_cached_at_election")
    for leader_epoch, offset in replica.epoch_entries:
        if leader_epoch <= filed:
            continue
        rule, because = "assign", "its first record of that leader epoch is there"
        if at_election and (number, leader_epoch) in led:
            rule, because = "become_leader", "its log ended there when it took that leader epoch"
        found.append(Derived("epoch_entry", number, offset, leader_epoch, rule, because))
    return found


def _high_watermark(state: State, leader: Replica) -> list[Derived]:
    """At least so far, where all assigned replicas were seen to fetch further than it was seen."""
    flags, leader_epoch = behaviour_of(state, leader.replica), leader.leader_epoch
    term = state.conformance.terms.get(-1 if leader_epoch is None else leader_epoch)
    if flags is None or leader.role != "leader" or term is None:
        return []
    found = forced_high_watermark(state, leader, term, flags)
    if found is None or found[2] or (term.least or 0) < found[1]:
        return []
    rule, because = "high_watermark_of_leader", "every assigned replica has fetched from there on"
    return [Derived("high_watermark", leader.replica, found[0], leader_epoch, rule, because)]
