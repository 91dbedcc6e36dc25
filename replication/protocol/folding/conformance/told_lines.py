"""What single lines and files of default levels tell, held against the rules without a trace.

A leader names its log's end and its high watermark as it starts; a follower that cuts its log names
the leader's answer that it cuts by. Steps that lie between such lines are unknown at INFO, so only
what holds whatever they were is held: everything else waits for a trace.
"""

from replication.protocol.folding.conformance.expected import exclude
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import Replica, State


def became_leader(state: State, event: ev.Event, fact: ev.BecameLeader) -> None:
    """From 2.4 on no high watermark lies past its log's end.

    Of a follower's line nothing follows: its fetcher may append between the two numbers.
    """
    end, high_watermark, flags = (
        fact.log_end_offset,
        fact.high_watermark,
        state.behaviour(fact.replica),
    )
    if end is None or high_watermark is None or flags is None or high_watermark <= end:
        return
    if flags.has("high_watermark_kept_within_log"):
        what = f"leader {fact.replica} started with a high watermark"
        exclude(state, event, "become_leader", what, f"at most its log end {end}", high_watermark)


def truncated(state: State, event: ev.Event, fact: ev.Truncated, replica: Replica) -> None:
    """A cut by the leader's epochs keeps nothing past where the leader said that the epoch ends,
    and what the leader has of earlier epochs ends where its own begins."""
    flags, told = state.behaviour(fact.replica), fact.diverging_end_offset
    if flags is None or told is None or fact.to_offset is None:
        return
    what = f"broker {fact.replica} truncated its log"
    if fact.to_offset > told:
        expected = f"at most {told}, where its leader ends epoch {fact.diverging_epoch}"
        exclude(state, event, flags.truncation, what, expected, fact.to_offset)
    start = _start_of(state, replica)
    earlier = (fact.diverging_epoch or 0) < (replica.leader_epoch or 0)
    if start is not None and earlier and told > start:
        what = f"broker {fact.replica} was told that epoch {fact.diverging_epoch} ends"
        expected = f"at most {start}, where its leader's epoch {replica.leader_epoch} began"
        exclude(state, event, flags.truncation, what, expected, told)


def recovery_point(state: State, event: ev.Event, fact: ev.ReplicaLogObserved) -> None:
    """A clean stop flushes the log and writes down to where: nothing lies past its end.

    After a crash it may: what was flushed can have been cut before the file was written anew.
    """
    point, end = fact.recovery_point, fact.log_end_offset
    if point is None or not fact.stopped or fact.copy != "current" or point <= end:
        return
    if state.behaviour(fact.replica) is not None:
        what = f"broker {fact.replica} stopped cleanly with its recovery point"
        exclude(state, event, "truncation_effect", what, f"at most its log end {end}", point)


def _start_of(state: State, replica: Replica) -> int | None:
    """Where the epoch that it follows began, by its leader's own line.

    None where the leader has led in another epoch too: up to 3.9.0 a late answer may be of that.
    """
    terms = [t for t in state.history.terms if t.leader_epoch == replica.leader_epoch]
    if replica.role != "follower" or len(terms) != 1:
        return None
    if any(t.leader == terms[0].leader and t is not terms[0] for t in state.history.terms):
        return None
    return terms[0].start_offset
