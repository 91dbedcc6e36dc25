"""A follower's log ends and the fetches that its leader saw: one sequence, read at two brokers.

A follower fetches at its log end, and appends only what it fetched there. So while its log grows,
the offsets at which its leader saw it fetch are the log ends from which it appended, in order.
Where one broker's lines run ahead of the other's, a Channel holds what the other has yet to tell;
where they are in step there is none, and Replica.fetched is all there is to know. A log that falls
back (a truncation, a crash) while the lines are out of step ends the comparison for that epoch.
"""

from replication.protocol.folding.conformance.expected import (
    diverging_fetch_counts,
    is_excluded,
    is_fenced,
    miss,
    miss_fetches,
    takes_late_answers,
    wait,
    worded,
)
from replication.protocol.ground import events as ev
from replication.protocol.ground.held_steps import Channel, Expectation, Stage
from replication.protocol.ground.topic_partition import Replica, State, place_of

LIMIT = 4_000


def find(state: State, leader_epoch: int, replica: int) -> Channel | None:
    """The open channel of a follower in a leader epoch."""
    for channel in state.conformance.channels:
        if channel.replica == replica and channel.leader_epoch == leader_epoch:
            return channel
    return None


def _open(state: State, leader_epoch: int, replica: int) -> Channel:
    channel = Channel(leader_epoch, replica)
    state.conformance.channels.append(channel)
    return channel


def _close(state: State, channel: Channel, *, lost: bool = False) -> None:
    held = state.conformance
    held.channels = [c for c in held.channels if c is not channel]
    term = held.terms.get(channel.leader_epoch)
    if lost and term is not None and channel.replica not in term.lost:
        term.lost.append(channel.replica)
    miss_fetches(state, channel)


def _is_lost(state: State, leader_epoch: int, replica: int) -> bool:
    term = state.conformance.terms.get(leader_epoch)
    return term is not None and replica in term.lost


def begin(
    state: State, follower: Replica, leader: int | None, leader_epoch: int, log_end_offset: int
) -> None:
    """The follower fetches from the leader of this epoch from now on."""
    # Unfenced, or where late answers are taken, the same leader may have seen its fetch before
    # either had heard of the epoch; but there is none before the first one.
    same = leader is None or follower.leader is None or leader == follower.leader
    flags = state.behaviour(follower.replica)
    late = flags is not None and takes_late_answers(flags)
    fenced = is_fenced(state, follower.replica, leader) and not late
    follower.fetched = same and leader_epoch > 0 and not fenced
    channel = find(state, leader_epoch, follower.replica)
    if channel is not None:
        channel.stages = [Stage(log_end_offset, seen=follower.fetched)]
        if _led_before(state, leader_epoch):
            # It fetched on before it heard of the new epoch of the same leader, and cuts nothing.
            channel.fetches = [f for f in channel.fetches if f[0] >= log_end_offset]
        _match(state, channel, follower)


def _led_before(state: State, leader_epoch: int) -> bool:
    """Whether an unfenced follower's leader led in the epoch before as well."""
    terms = state.conformance.terms
    now, before = terms.get(leader_epoch), terms.get(leader_epoch - 1)
    if now is None or before is None or is_fenced(state, now.leader):
        return False
    return now.leader is not None and now.leader == before.leader


def fell_back(state: State, follower: Replica) -> None:
    """The follower's log ends earlier than before, in the same leader epoch."""
    if follower.leader_epoch is None:
        return
    channel = find(state, follower.leader_epoch, follower.replica)
    term = state.conformance.terms.get(follower.leader_epoch)
    asked = term is not None and follower.replica in term.asked
    flags = state.behaviour(term.leader if term is not None else None)
    if channel is not None:
        # Before its first fetch, nothing has been compared yet.
        _close(state, channel, lost=asked or bool(channel.fetches))
    elif flags is not None and diverging_fetch_counts(flags):
        # The trace may still show the fetch that was answered with the diverging epoch.
        _close(state, Channel(follower.leader_epoch, follower.replica), lost=True)
    # Whether it has been seen to fetch there already, lines of another order may have told.
    follower.fetched = asked


def appended(state: State, event: ev.Event, follower: Replica, end: int, needed: bool) -> None:
    """The follower appended from its log end. needed: it must have fetched right there."""
    leader_epoch = follower.leader_epoch
    if leader_epoch is None or _is_lost(state, leader_epoch, follower.replica):
        follower.fetched = False
        return
    channel = find(state, leader_epoch, follower.replica)
    if channel is None:
        if follower.fetched or not needed:
            follower.fetched = False
            return
        channel = _open(state, leader_epoch, follower.replica)
        channel.stages.append(Stage(follower.log.log_end_offset))
    if not channel.stages:
        channel.stages.append(Stage(follower.log.log_end_offset))
    last = channel.stages[-1]
    last.closed, last.needed = True, needed
    if needed:
        last.event_id, last.place = event.event_id, place_of(event)
    channel.stages.append(Stage(end))
    _match(state, channel, follower)


def fetched(
    state: State, event: ev.Event, fact: ev.FetchRequested, leader_epoch: int, repeated: bool
) -> None:
    """The leader of this epoch saw a fetch. repeated: at the same offset as the one before."""
    follower = state.replicas.get(fact.replica)
    at = -1 if follower is None or follower.leader_epoch is None else follower.leader_epoch
    if at > leader_epoch or _is_lost(state, leader_epoch, fact.replica):
        if not repeated:
            reason = "later_epoch" if at > leader_epoch else "out_of_step"
            what = f"fetch of {fact.replica} at {fact.fetch_offset}"
            miss(state, event.event_id, what, reason)
        return
    channel = find(state, leader_epoch, fact.replica)
    if channel is None:
        if follower is not None and at == leader_epoch:
            end = follower.log.log_end_offset
            if end == fact.fetch_offset:
                follower.fetched = True
                state.conformance.predicted += not repeated
                return
            if repeated and fact.fetch_offset < end:
                return
            channel = _open(state, leader_epoch, fact.replica)
            channel.stages.append(Stage(end, seen=follower.fetched))
        else:
            channel = _open(state, leader_epoch, fact.replica)
    if not channel.fetches or channel.fetches[-1][0] != fact.fetch_offset:
        told = (fact.fetch_offset, event.event_id, place_of(event), repeated)
        channel.fetches.append(told)
    if len(channel.fetches) + len(channel.stages) > LIMIT:
        _close(state, channel, lost=True)
    else:
        _match(state, channel, follower)


def _match(state: State, channel: Channel, follower: Replica | None) -> None:
    """Takes away what both sides tell alike, and finds where they differ."""
    while channel.fetches and channel.stages:
        stage, (offset, event_id, place, repeated) = channel.stages[0], channel.fetches[0]
        if offset == stage.offset:
            stage.seen = True
            state.conformance.predicted += not repeated
            channel.fetches.pop(0)
        elif offset < stage.offset:
            if not repeated:
                _close(state, channel, lost=True)
                return
            channel.fetches.pop(0)
        elif not stage.closed:
            return
        elif stage.seen or not stage.needed:
            channel.stages.pop(0)
        else:
            what = f"broker {channel.replica} fetched again after it appended at {stage.offset}"
            summary = worded("fetch_admission", what, f"a fetch at {stage.offset} first", offset)
            told = (channel.leader_epoch, channel.replica, stage.offset, offset, event_id, summary)
            expectation = Expectation("fetch", "fetch_admission", *told)
            if is_excluded(state, expectation):
                wait(state, expectation, place)
            _close(state, channel, lost=True)
            return
    stages = channel.stages
    while len(stages) > 1 and not channel.fetches and (stages[0].seen or not stages[0].needed):
        stages.pop(0)
    in_step = follower is not None and follower.leader_epoch == channel.leader_epoch
    if follower is not None and in_step and not channel.fetches and len(stages) == 1:
        follower.fetched = stages[0].seen
        _close(state, channel)
