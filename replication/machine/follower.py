"""What a broker does as a follower: ask its leader, take the answer, cut its log, hear of a new
leader.

Rules answer, the functions here act, as in leader.
"""

from dataclasses import replace

from replication.machine.leader import admit, answer_producers
from replication.machine.machine_state import (
    Broker,
    Controller,
    Impossible,
    Request,
    Response,
    World,
)
from replication.machine.replica import (
    advance_log_start,
    append_span,
    apply_cut,
    empty_at,
    end_process,
    set_high_watermark,
)
from replication.protocol.ground import events as ev
from replication.protocol.ground.leader_epoch_cache import (
    as_asked,
    end_offset_for_epoch,
    latest_epoch,
)
from replication.protocol.ground.model import EpochEndOffset
from replication.protocol.rules.fetch_admission import (
    FollowerFetch,
    leader_epoch_error,
)
from replication.protocol.rules.high_watermark_of_follower import high_watermark_of_follower
from replication.protocol.rules.log_start import log_start_of_follower
from replication.protocol.rules.out_of_range_reset import out_of_range_reset
from replication.protocol.rules.truncate_by_common_epoch import truncate_by_common_epoch
from replication.protocol.rules.truncate_on_fetch import (
    truncate_on_fetch,
    truncates_before_fetching,
)
from replication.protocol.rules.truncate_to_high_watermark import Cut, truncate_to_high_watermark
from replication.protocol.rules.truncate_to_leader_end_offset import truncate_to_leader_end_offset
from replication.protocol.rules.when_to_truncate import when_to_truncate


def fetch_once(
    world: World, follower: Broker, *, max_records: int | None = None, at_once: bool = False
) -> Response | None:
    """A follower asks its leader for records; the leader's side happens, the answer is returned.

    at_once: another partition of the same request has records, so an empty answer does not wait.
    None when the follower does not ask, or its leader does not answer: the notes say why.
    """
    request = ask(world, follower)
    if request is None:
        return None
    return admit(world, request, follower, max_records, at_once)


def ask(world: World, follower: Broker) -> Request | None:
    """A follower's side of a fetch, up to the request; None when it does not ask."""
    leader = _leader_to_ask(world, follower)
    if leader is None:
        return None
    if follower.truncating:
        truncate_in_rounds(world, follower)
        if follower.truncating:
            return None
    epochs = follower.behaviour.has("fetch_carries_leader_epoch")
    on_fetch = follower.behaviour.has("truncates_on_fetch")
    offset = follower.log.log_end_offset
    request = FollowerFetch(
        offset,
        follower.leader_epoch if epochs else None,
        latest_epoch(follower.epoch_entries) if on_fetch else None,
        follower.broker_epoch if _sends_broker_epoch(follower) else None,
    )
    world.emit(
        ev.FetchRequested(
            follower.replica,
            leader.replica,
            offset,
            follower.leader_epoch,
            request.last_fetched_epoch,
            follower.log.log_start_offset,
        )
    )
    return Request(leader.replica, request, follower.broker_epoch)


def _sends_broker_epoch(follower: Broker) -> bool:
    """KIP-903 is KRaft's: with ZooKeeper a fetch says -1."""
    b = follower.behaviour
    return b.controller == "kraft" and b.has("isr_needs_broker_epoch")


def reach_leader(world: World, follower: Broker) -> Response | None:
    """A fetch that was on its way reaches its leader; None when nobody waits for the answer.

    The follower's broker may have ended since, and started again.
    """
    request = world.requests.pop(follower.replica, None)
    if request is None:
        raise Impossible(f"no fetch of {world.name(follower.replica)} is on its way")
    leader = world.broker(request.leader)
    if not leader.running or leader.isolated:
        return None
    response = admit(world, request, follower, None, False)
    same_life = follower.running and follower.broker_epoch == request.life
    return replace(response, outdated=request.outdated) if same_life else None


def _leader_to_ask(world: World, follower: Broker) -> Broker | None:
    name = world.name(follower.replica)
    if not follower.running or follower.role != "follower":
        raise Impossible(f"{name} does not follow anyone")
    if follower.leader is None or not follower.fetching:
        world.note(f"{name} waits for a leader epoch")
        return None
    leader = world.broker(follower.leader)
    if not world.reachable(leader, follower):
        world.note(f"{world.name(leader.replica)} does not answer {name}")
        return None
    return leader


def take(world: World, follower: Broker, response: Response) -> None:
    """A follower takes a fetch response: dropped when it answers a question of another state.

    It compares the offset that it asks for, and from KAFKA-18991 also the leader epoch that it
    asked in. A follower that was put before a truncation since has another state; one that
    truncates on fetch has not.
    """
    name = world.name(follower.replica)
    late = response.request_leader_epoch not in (None, follower.leader_epoch)
    if (
        follower.role != "follower"
        or not follower.running
        or follower.leader != response.leader
        or follower.truncating
        or response.outdated
        or follower.log.log_end_offset != response.fetch_offset
        or (late and follower.behaviour.has("late_fetch_response_dropped"))
    ):
        world.note(f"{name} drops a late response")
        return
    diverging = response.diverging or EpochEndOffset(None, None)
    answered = ev.FetchAnswered(
        follower.replica,
        response.leader,
        None if response.error else response.high_watermark,
        None if response.error else response.log_start_offset,
        diverging.leader_epoch,
        diverging.end_offset,
        response.error,
    )
    if response.error:
        world.emit(answered)
        _receive_error(world, follower, response.error, late=late)
    elif response.diverging:
        world.emit(answered)
        _receive_divergence(world, follower, response, response.diverging)
    else:
        _receive_records(world, follower, response, answered)


def _receive_error(world: World, follower: Broker, error: str, *, late: bool) -> None:
    if error == "FENCED_LEADER_EPOCH":
        follower.fetching = follower.fetching and late
    elif error == "OFFSET_OUT_OF_RANGE":
        _out_of_range(world, follower)


def _receive_divergence(
    world: World, follower: Broker, response: Response, diverging: EpochEndOffset
) -> None:
    if not follower.behaviour.has("truncates_before_high_watermark"):
        _take_high_watermark(world, follower, response.high_watermark)
    cut = truncate_on_fetch(
        diverging,
        follower.epoch_entries,
        follower.log.log_end_offset,
        follower.high_watermark,
        follower.behaviour,
    )
    apply_cut(world, follower, cut)


def _receive_records(
    world: World, follower: Broker, response: Response, answered: ev.FetchAnswered
) -> None:
    for span in response.spans:
        append_span(follower, span)
        world.emit(ev.FollowerAppended(follower.replica, *span))
    world.emit(answered)
    _take_high_watermark(world, follower, response.high_watermark)
    start = log_start_of_follower(
        response.log_start_offset, follower.log.log_start_offset, follower.high_watermark
    )
    advance_log_start(world, follower, start, "leader")


def _take_high_watermark(world: World, follower: Broker, answered: int) -> None:
    value = high_watermark_of_follower(
        answered, follower.log.log_start_offset, follower.log.log_end_offset, follower.behaviour
    )
    set_high_watermark(world, follower, value)


def _out_of_range(world: World, follower: Broker) -> None:
    name = world.name(follower.replica)
    leader = _leader_to_ask(world, follower)
    if leader is None:
        return
    error = _refusal(follower, leader)
    if error:
        world.note(f"{world.name(leader.replica)} does not tell {name} where it ends: {error}")
        return
    reset = out_of_range_reset(
        follower.log.log_end_offset,
        leader.log.log_start_offset,
        leader.log.log_end_offset,
        world.unclean_leader_election,
        follower.behaviour,
    )
    if reset.action == "halt":
        world.note(
            f"{name} halts its broker (out_of_range_reset: its log end is beyond the leader's, "
            "and unclean election is disabled)"
        )
        end_process(world, follower, "process_crash")
    elif reset.action == "truncate":
        because = f"its log end is beyond the leader's, {reset.offset}"
        apply_cut(world, follower, Cut(reset.offset, True, "out_of_range_reset", because))
    elif reset.action == "restart_at":
        empty_at(world, follower, reset.offset, f"the leader's log starts at {reset.offset}")


def truncate_in_rounds(world: World, follower: Broker) -> None:
    """Runs truncation rounds until the follower may fetch, or its leader does not answer."""
    while follower.truncating:
        cut = _next_cut(world, follower)
        if cut is None:
            return
        before = (follower.log.log_end_offset, follower.epoch_entries)
        follower.truncating = not cut.finished
        apply_cut(world, follower, cut)
        if follower.truncating and before == (follower.log.log_end_offset, follower.epoch_entries):
            # KAFKA-10706: an epoch without records at the log end gets the same answer for ever.
            world.note(f"{world.name(follower.replica)} goes on asking ({cut.because})")
            return


def _next_cut(world: World, follower: Broker) -> Cut | None:
    """One round of truncation; None when it needs an answer that does not come."""
    latest = latest_epoch(follower.epoch_entries)
    rule = follower.behaviour.truncation
    local = rule == "truncate_to_high_watermark"
    if local or (latest is None and rule != "truncate_to_leader_end_offset"):
        return truncate_to_high_watermark(follower.high_watermark)
    leader = _leader_to_ask(world, follower)
    if leader is None:
        return None
    if _refusal(follower, leader):
        return None
    answer = end_offset_for_epoch(
        leader.epoch_entries, latest, leader.log.log_end_offset, leader.behaviour
    )
    answer = as_asked(answer, follower.behaviour)
    end = follower.log.log_end_offset
    if rule == "truncate_to_leader_end_offset":
        return truncate_to_leader_end_offset(
            latest, answer.end_offset, end, follower.high_watermark
        )
    return truncate_by_common_epoch(
        answer, follower.epoch_entries, end, follower.high_watermark, follower.behaviour
    )


def _refusal(follower: Broker, leader: Broker) -> str | None:
    """The error that the asked broker answers to ListOffsets or OffsetsForLeaderEpoch, if any."""
    speaks = follower.behaviour.has("fetch_carries_leader_epoch")
    error = leader_epoch_error(
        (follower.leader_epoch or 0) if speaks else None,
        -1 if leader.leader_epoch is None else leader.leader_epoch,
        leader.behaviour,
        leads=leader.role == "leader",
    )
    if error == "FENCED_LEADER_EPOCH":
        follower.fetching = False
    return error


def follow(world: World, broker: Broker, c: Controller) -> None:
    """A broker learns whom it follows, from the registration c as it hears it."""
    if broker.role == "leader":
        broker.role = "follower"
        answer_producers(world, broker)
    repeated = (
        broker.role == "follower"
        and broker.leader_epoch == c.leader_epoch
        and broker.leader == c.leader
    )
    broker.role = "follower"
    broker.leader, broker.leader_epoch = c.leader, c.leader_epoch
    broker.partition_epoch = c.partition_epoch
    broker.followers, broker.proposed, broker.isr = {}, None, frozenset()
    if c.leader is None:
        return
    if not repeated:
        broker.fetching = True
        world.emit(
            ev.BecameFollower(
                broker.replica,
                c.leader_epoch,
                c.leader,
                broker.log.log_end_offset,
                broker.high_watermark,
                c.partition_epoch,
            )
        )
    due = when_to_truncate(broker.truncated_for, c.leader, c.leader_epoch, broker.behaviour)
    broker.truncated_for = (c.leader, c.leader_epoch)
    if due:
        latest = latest_epoch(broker.epoch_entries)
        broker.truncating = truncates_before_fetching(latest, broker.behaviour)
        if broker.truncating and broker.behaviour.has("leader_epoch_in_record_batches"):
            _outdate_fetches(world, broker)


def _outdate_fetches(world: World, follower: Broker) -> None:
    """A truncation phase is due: what was asked before it will be dropped."""
    if follower.in_flight is not None:
        follower.in_flight = replace(follower.in_flight, outdated=True)
    request = world.requests.get(follower.replica)
    if request is not None:
        world.requests[follower.replica] = replace(request, outdated=True)
