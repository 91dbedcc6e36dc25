"""What one broker does with its replica, by the rules: append, fetch, truncate, lead, follow.

Rules answer, the functions here act: they change the brokers of a World and emit what happened as
facts, with every observable value filled in. What the controller does is partition_machine's.
"""

from dataclasses import replace

from replication.machine.machine_state import (
    Broker,
    Controller,
    Follower,
    Impossible,
    PendingAck,
    Request,
    Response,
    World,
)
from replication.protocol.ground import events as ev
from replication.protocol.ground.leader_epoch_cache import (
    as_asked,
    assign,
    end_offset_for_epoch,
    latest_epoch,
    truncate_from_start,
)
from replication.protocol.ground.model import EpochEndOffset, EpochEntry, Span, clipped
from replication.protocol.ground.replica_log import ReplicaLog
from replication.protocol.rules.acknowledge import acknowledge
from replication.protocol.rules.become_leader import become_leader as leadership_taken
from replication.protocol.rules.fetch_admission import (
    FetchDecision,
    FetchTarget,
    FollowerFetch,
    fetch_admission,
    leader_epoch_error,
)
from replication.protocol.rules.fetch_response_high_watermark import (
    answers_at_once,
    fetch_response_high_watermark,
)
from replication.protocol.rules.high_watermark_of_follower import high_watermark_of_follower
from replication.protocol.rules.high_watermark_of_leader import (
    RemoteReplica,
    high_watermark_of_leader,
)
from replication.protocol.rules.isr_commit import (
    IsrProposal,
    Registered,
    commit_raises_high_watermark,
    isr_commit,
    maximal_isr,
    request_version,
)
from replication.protocol.rules.isr_expand import isr_expand
from replication.protocol.rules.last_caught_up import FetchMemory, is_caught_up, last_caught_up
from replication.protocol.rules.log_start import log_start, log_start_of_follower
from replication.protocol.rules.out_of_range_reset import out_of_range_reset
from replication.protocol.rules.produce_admission import (
    effective_min_insync_replicas,
    produce_admission,
)
from replication.protocol.rules.start_up_recovery import OnDisk, start_up_recovery
from replication.protocol.rules.truncate_by_common_epoch import truncate_by_common_epoch
from replication.protocol.rules.truncate_on_fetch import (
    truncate_on_fetch,
    truncates_before_fetching,
)
from replication.protocol.rules.truncate_to_high_watermark import Cut, truncate_to_high_watermark
from replication.protocol.rules.truncate_to_leader_end_offset import truncate_to_leader_end_offset
from replication.protocol.rules.truncation_effect import emptied_at, truncation_effect
from replication.protocol.rules.when_to_truncate import when_to_truncate

REASONS = {
    "truncate_to_high_watermark": "high_watermark",
    "truncate_to_leader_end_offset": "leader_epoch",
    "truncate_by_common_epoch": "leader_epoch",
    "truncate_on_fetch": "diverging_epoch",
    "out_of_range_reset": "out_of_range",
}


def produce(
    world: World, broker: Broker, content: int, count: int = 1, acks: str | None = None
) -> bool:
    """A leader takes count records of one content; acks None: nobody asks for an answer.

    False when it refuses them. Impossible where the broker does not believe that it leads.
    """
    if not broker.running or broker.role != "leader" or broker.leader_epoch is None:
        raise Impossible(f"{world.name(broker.replica)} does not lead")
    name = world.contents[content]
    if acks not in (None, "0", "1", "all") and broker.behaviour.has("isr_by_time_alone"):
        raise Impossible(f"acks={acks} exists only in 0.8")
    error = produce_admission(acks or "1", len(broker.isr), _min_insync(world, broker))
    if error:
        world.note(f"{world.name(broker.replica)} refuses {name}: {error}")
        return False
    first = broker.log.log_end_offset
    span = Span(first, first + count, broker.leader_epoch, content)
    append_span(broker, span)
    world.emit(ev.LeaderAppended(broker.replica, *span))
    advance_high_watermark(world, broker)
    if acks is not None:
        broker.pending.append(PendingAck(span, broker.leader_epoch, acks, name))
        answer_producers(world, broker)
    return True


def append_span(broker: Broker, span: Span) -> None:
    """Records at the end of a log, and their epoch in the cache."""
    broker.log.append(span.first_offset, span.end_offset, span.leader_epoch, span.content)
    if broker.behaviour.has("leader_epoch_in_record_batches") and span.leader_epoch is not None:
        broker.epoch_entries = assign(
            broker.epoch_entries, span.leader_epoch, span.first_offset, broker.behaviour
        )


def _min_insync(world: World, broker: Broker) -> int:
    return effective_min_insync_replicas(
        world.min_insync_replicas, len(world.assigned_replicas), broker.behaviour
    )


def counted_isr(broker: Broker) -> frozenset[int]:
    """The ISR that this leader's high watermark waits for."""
    return maximal_isr(broker.isr, broker.proposed)


def advance_high_watermark(world: World, leader: Broker) -> None:
    """Moves a leader's high watermark if the rule lets it, and answers producers that wait."""
    counted = counted_isr(leader)
    remotes = []
    for replica, follower in leader.followers.items():
        caught_up = is_caught_up(
            follower.memory.last_caught_up_ms,
            world.now_ms,
            leader.behaviour.replica_lag_time_max_ms,
        )
        remotes.append(
            RemoteReplica(
                follower.log_end_offset,
                replica in counted,
                caught_up,
                _may_join(world, leader, replica, follower),
            )
        )
    value = high_watermark_of_leader(
        leader.high_watermark,
        leader.log.log_end_offset,
        remotes,
        len(leader.isr),
        _min_insync(world, leader),
        leader.behaviour,
    )
    _set_high_watermark(world, leader, value)
    answer_producers(world, leader)


def _may_join(world: World, leader: Broker, replica: int, follower: Follower) -> bool:
    """Whether a replica outside the ISR is one that the leader could propose."""
    if replica not in world.controller.active:
        return False
    if leader.behaviour.controller == "zookeeper":
        return True
    if not leader.behaviour.has("isr_needs_broker_epoch"):
        return True
    return follower.broker_epoch == world.broker(replica).broker_epoch


def _set_high_watermark(world: World, broker: Broker, value: int) -> None:
    before = broker.high_watermark
    if value != before:
        broker.high_watermark = value
        world.emit(ev.HighWatermarkAdvanced(broker.replica, value), before)


def answer_producers(world: World, leader: Broker) -> None:
    """Answers every waiting producer whose records are acknowledged, or no longer can be."""
    waiting = []
    for pending in leader.pending:
        end = pending.span.end_offset
        known = [f.log_end_offset for r, f in leader.followers.items() if r in leader.isr]
        answer = acknowledge(
            pending.acks,
            end,
            leader.high_watermark,
            len(counted_isr(leader)),
            _min_insync(world, leader),
            1 + sum(1 for offset in known if offset is not None and offset >= end),
            leads=leader.role == "leader",
        )
        if answer == "pending":
            waiting.append(pending)
        elif answer == "NONE":
            # In 0.8 any other number promises no more than 1 does: it is not the ISR that answered.
            acks = "all" if pending.acks == "all" else "1"
            first, end, written_in, content = pending.span
            world.emit(ev.RecordsAcknowledged(first, end, acks, written_in, content))
            world.note(f"{pending.name} is acknowledged (acks={pending.acks})")
        elif answer != "none":
            world.note(f"the producer of {pending.name} gets {answer}")
    leader.pending = waiting


def fetch(
    world: World, follower: Broker, *, max_records: int | None = None, at_once: bool = False
) -> Response | None:
    """A follower asks its leader for records; the leader's side happens, the answer is returned.

    at_once: another partition of the same request has records, so an empty answer does not wait.
    None when the follower does not ask, or its leader does not answer: the notes say why.
    """
    request = ask(world, follower)
    if request is None:
        return None
    return _admit(world, request, follower, max_records, at_once)


def ask(world: World, follower: Broker) -> Request | None:
    """A follower's side of a fetch, up to the request; None when it does not ask."""
    leader = _leader_to_ask(world, follower)
    if leader is None:
        return None
    if follower.truncating:
        truncate(world, follower)
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


def arrive(world: World, follower: Broker) -> Response | None:
    """A fetch that was on its way reaches its leader; None when nobody waits for the answer.

    The follower's broker may have ended since, and started again.
    """
    request = world.requests.pop(follower.replica, None)
    if request is None:
        raise Impossible(f"no fetch of {world.name(follower.replica)} is on its way")
    leader = world.broker(request.leader)
    if not leader.running or leader.isolated:
        return None
    response = _admit(world, request, follower, None, False)
    same_life = follower.running and follower.broker_epoch == request.life
    return replace(response, outdated=request.outdated) if same_life else None


def _admit(
    world: World, request: Request, follower: Broker, max_records: int | None, at_once: bool
) -> Response:
    leader = world.broker(request.leader)
    decision = fetch_admission(
        request.fetch, _fetch_target(world, leader, follower), leader.behaviour
    )
    response = _answer(world, leader, follower, request.fetch, decision, max_records, at_once)
    if response.error:
        name = world.name(follower.replica)
        world.note(f"{world.name(leader.replica)} answers {name}: {response.error}")
    return response


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


def _fetch_target(world: World, leader: Broker, follower: Broker) -> FetchTarget:
    """What the asked broker knows; a leader knows the replicas that it has heard of."""
    leads = leader.role == "leader"
    return FetchTarget(
        leads,
        -1 if leader.leader_epoch is None else leader.leader_epoch,
        leader.log.log_start_offset,
        leader.log.log_end_offset,
        leader.epoch_entries,
        follower.replica in (leader.followers if leads else world.assigned_replicas),
        world.broker(follower.replica).broker_epoch,
    )


def _answer(
    world: World,
    leader: Broker,
    follower: Broker,
    request: FollowerFetch,
    decision: FetchDecision,
    max_records: int | None,
    at_once: bool,
) -> Response:
    """Reads first, then lets the fetch count: so the answer's high watermark is the earlier one."""
    offset = request.fetch_offset
    end = leader.log.log_end_offset
    if max_records is not None:
        end = min(end, offset + max_records)
    plain = decision.error is None and decision.diverging is None
    spans = tuple(clipped(leader.log.spans, offset, end)) if plain else ()
    before = leader.high_watermark
    known = leader.followers.get(follower.replica)
    if decision.updates_follower and known is not None:
        _count_fetch(world, leader, follower.replica, known, request)
    last_sent = known.last_sent_high_watermark if known else None
    waited = plain and not at_once
    if answers_at_once(last_sent, before, bool(spans), leader.behaviour):
        waited = False
    carried = fetch_response_high_watermark(before, leader.high_watermark, waited, leader.behaviour)
    if known is not None:
        known.last_sent_high_watermark = carried
    return Response(
        leader.replica,
        offset,
        request.current_leader_epoch,
        decision.error,
        decision.diverging,
        spans,
        carried,
        leader.log.log_start_offset,
    )


def _count_fetch(
    world: World, leader: Broker, replica: int, known: Follower, request: FollowerFetch
) -> None:
    """A fetch proves that the follower holds all below its offset: ISR first, then commit."""
    offset = request.fetch_offset
    known.memory = last_caught_up(
        known.memory, offset, leader.log.log_end_offset, world.now_ms, leader.behaviour
    )
    known.log_end_offset = offset
    known.log_start_offset = world.broker(replica).log.log_start_offset
    known.broker_epoch = request.broker_epoch
    if replica not in counted_isr(leader) and isr_expand(
        offset,
        leader.high_watermark,
        leader.leader_epoch_start_offset,
        leader.behaviour,
        active=replica in world.controller.active,
    ):
        propose_isr(world, leader, leader.isr | {replica})
    advance_high_watermark(world, leader)


def propose_isr(world: World, leader: Broker, isr: frozenset[int]) -> None:
    """A leader asks for another ISR: a conditional write at once, or a proposal in flight."""
    if leader.proposed is not None or isr == leader.isr:
        return
    if leader.behaviour.has("maximal_isr"):
        leader.proposed = isr
        return
    error = isr_commit(proposal_of(leader, isr), registered(world, leader), leader.behaviour)
    if error is None:
        record_isr(world, leader, isr)
        after_isr_commit(world, leader)


def after_isr_commit(world: World, leader: Broker) -> None:
    """A leader learns that its ISR change is committed."""
    if commit_raises_high_watermark(leader.behaviour):
        advance_high_watermark(world, leader)


def proposal_of(leader: Broker, isr: frozenset[int]) -> IsrProposal:
    """A leader's proposal as the controller receives it."""
    epochs = (leader.leader_epoch or 0, leader.partition_epoch or 0)
    return IsrProposal(leader.replica, *epochs, isr, version=request_version(leader.behaviour))


def registered(world: World, leader: Broker) -> Registered:
    """The registration as a proposal is held against it.

    A proposal names the broker epochs that its leader saw in fetches (KIP-903): a broker that has
    registered anew since may have lost what it had then.
    """
    c = world.controller
    restarted = {
        r
        for r, f in leader.followers.items()
        if f.broker_epoch not in (None, world.broker(r).broker_epoch)
    }
    return Registered(
        c.leader,
        c.leader_epoch,
        c.partition_epoch,
        frozenset(world.assigned_replicas),
        c.recovering,
        frozenset(world.assigned_replicas) - frozenset(c.active),
        frozenset(restarted),
    )


def record_isr(
    world: World, leader: Broker, isr: frozenset[int], *, recovering: bool = False
) -> None:
    """The controller has committed a leader's ISR without raising the leader epoch."""
    c = world.controller
    c.isr = tuple(r for r in world.assigned_replicas if r in isr)
    c.partition_epoch += 1
    c.recovering = recovering
    leader.isr = isr
    leader.proposed = None
    leader.partition_epoch = c.partition_epoch
    world.emit(leadership_fact(world, None))
    remember_registration(world)


def remember_registration(world: World) -> None:
    """Keeps the registration as it is now: a notification of it may come late."""
    c = world.controller
    world.registrations.append(replace(c, active=set(c.active)))


def leadership_fact(world: World, kind: str | None) -> ev.LeadershipRecorded:
    """The registration as it stands, as a fact."""
    c = world.controller
    last_known = None if c.last_known_leader is None else (c.last_known_leader,)
    return ev.LeadershipRecorded(
        c.leader,
        c.leader_epoch,
        c.isr,
        c.partition_epoch,
        kind,
        world.assigned_replicas,
        tuple(sorted(c.eligible)) or None,
        last_known,
        c.recovering or None,
    )


def receive(world: World, follower: Broker, response: Response) -> None:
    """A follower takes a fetch response: dropped when it answers a question of another state.

    It compares where it stands, and from KAFKA-18991 also the leader epoch that it asked in. A
    follower that was put before a truncation since has another state; one that truncates on fetch
    has not.
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
    _set_high_watermark(world, follower, value)


def advance_log_start(world: World, broker: Broker, offset: int, reason: str) -> None:
    """Removes records from the front of a log; no effect if they are gone already."""
    if offset <= broker.log.log_start_offset:
        return
    broker.log.advance_log_start(offset)
    broker.epoch_entries = truncate_from_start(broker.epoch_entries, offset)
    world.emit(ev.LogStartAdvanced(broker.replica, offset, reason))


def delete_records(world: World, leader: Broker, before: int | None) -> None:
    """A leader removes records below before (None: below its high watermark)."""
    answer = log_start(before, leader.log.log_start_offset, leader.high_watermark)
    if isinstance(answer, str):
        world.note(f"{world.name(leader.replica)} refuses to delete records: {answer}")
    else:
        advance_log_start(world, leader, answer, "deletion")


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
        stop(world, follower, "process_crash")
    elif reset.action == "truncate":
        because = f"its log end is beyond the leader's, {reset.offset}"
        apply_cut(world, follower, Cut(reset.offset, True, "out_of_range_reset", because))
    elif reset.action == "restart_at":
        empty_at(world, follower, reset.offset, f"the leader's log starts at {reset.offset}")


def truncate(world: World, follower: Broker) -> None:
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


def apply_cut(world: World, broker: Broker, cut: Cut) -> None:
    """Cuts a log and what hangs on it; emits the truncation if records went."""
    before = broker.log.log_end_offset
    after = truncation_effect(
        cut.to_offset,
        broker.log.log_start_offset,
        before,
        broker.high_watermark,
        broker.epoch_entries,
        broker.behaviour,
        first_segment_offset=broker.first_segment_offset,
    )
    if after.log_end_offset < before:
        cuts = f"truncates {before} -> {after.log_end_offset}"
        if after.emptied:
            cuts = f"restarts its log at {after.log_end_offset}"
        world.note(f"{world.name(broker.replica)} {cuts} ({cut.rule}: {cut.because})")
        reason = "full" if after.emptied else REASONS[cut.rule]
        fact = ev.Truncated(broker.replica, after.log_end_offset, before, reason)
        world.emit(fact, before, cut.rule)
    if after.emptied:
        broker.log.truncate_fully_and_start_at(after.log_end_offset)
        broker.first_segment_offset = after.log_start_offset
    else:
        broker.log.truncate_to(cut.to_offset)
        broker.log.log_start_offset = after.log_start_offset
    broker.epoch_entries = after.epoch_entries
    _set_high_watermark(world, broker, after.high_watermark)


def empty_at(world: World, broker: Broker, offset: int, because: str) -> None:
    """Empties a log and restarts it at offset."""
    before = broker.log.log_end_offset
    after = emptied_at(offset, broker.high_watermark, broker.behaviour)
    world.note(f"{world.name(broker.replica)} restarts its log at {offset} ({because})")
    world.emit(ev.Truncated(broker.replica, offset, before, "full"), before, "out_of_range_reset")
    broker.log.truncate_fully_and_start_at(offset)
    broker.first_segment_offset = offset
    broker.epoch_entries = after.epoch_entries
    _set_high_watermark(world, broker, after.high_watermark)


def lead(world: World, broker: Broker, c: Controller) -> None:
    """A broker takes the leadership that the controller registered: c, as the broker hears it."""
    led = broker.role == "leader"
    if led and broker.leader_epoch == c.leader_epoch:
        broker.partition_epoch = c.partition_epoch
        broker.isr = frozenset(c.isr)
        broker.proposed = None
        for replica in world.assigned_replicas:
            if replica not in (broker.replica, *broker.followers):
                broker.followers[replica] = Follower(None, FetchMemory(0))
        advance_high_watermark(world, broker)
        return
    taken = leadership_taken(
        c.leader_epoch,
        broker.log.log_end_offset,
        broker.epoch_entries,
        broker.leader_epoch if led else None,
        broker.behaviour,
    )
    broker.role = "leader"
    broker.leader, broker.leader_epoch = broker.replica, c.leader_epoch
    broker.partition_epoch = c.partition_epoch
    broker.truncated_for, broker.truncating = None, False
    broker.epoch_entries = taken.epoch_entries
    broker.leader_epoch_start_offset = taken.leader_epoch_start_offset
    broker.isr, broker.proposed = frozenset(c.isr), None
    old = broker.followers if taken.keeps_followers else {}
    broker.followers = {
        r: _fresh_follower(world, broker, r, old.get(r))
        for r in world.assigned_replicas
        if r != broker.replica
    }
    world.emit(
        ev.BecameLeader(
            broker.replica,
            c.leader_epoch,
            broker.log.log_end_offset,
            broker.high_watermark,
            c.partition_epoch,
        )
    )
    advance_high_watermark(world, broker)


def _fresh_follower(world: World, leader: Broker, replica: int, old: Follower | None) -> Follower:
    """What a leader of a new epoch knows of a follower: nothing, or its log end as before."""
    time = world.now_ms if replica in leader.isr else 0
    if old is None:
        return Follower(None, FetchMemory(time))
    memory = FetchMemory(time, time, leader.log.log_end_offset)
    return Follower(old.log_end_offset, memory, None, old.broker_epoch)


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


def stop(
    world: World,
    broker: Broker,
    reason: str,
    *,
    surviving: int | None = None,
    high_watermark_checkpoint: int | None = None,
    epochs_lost: bool = False,
) -> None:
    """A broker's process ends: clean, process_crash, power_loss or disk_loss.

    surviving: the log end that the disk keeps, by default all (none after disk_loss); it may lie
    below the log start, where that is inside the first segment. high_watermark_checkpoint: what
    the file says, by default what was written to it last. epochs_lost: the file of the leader epoch
    cache comes back empty (KAFKA-16541).
    """
    if not broker.running:
        raise Impossible(f"{world.name(broker.replica)} is stopped already")
    end = broker.log.log_end_offset
    if reason == "clean":
        broker.checkpointed_high_watermark = broker.high_watermark
    if high_watermark_checkpoint is not None:
        broker.checkpointed_high_watermark = high_watermark_checkpoint
    if reason == "disk_loss":
        broker.log, broker.first_segment_offset = ReplicaLog(), 0
        broker.epoch_entries, broker.checkpointed_high_watermark = (), 0
    elif surviving is not None:
        if not broker.first_segment_offset <= surviving <= end:
            raise Impossible(f"{world.name(broker.replica)} has no offset {surviving}")
        start = broker.log.log_start_offset
        broker.log.truncate_to(surviving)
        broker.log.log_start_offset = start
    if epochs_lost:
        broker.epoch_entries = ()
    if reason == "disk_loss":
        broker.topic_id = ""
    broker.running, broker.clean, broker.controller_epoch = False, reason == "clean", 0
    broker.role, broker.leader, broker.leader_epoch, broker.partition_epoch = (None,) * 4
    broker.pending = []
    broker.truncated_for, broker.truncating, broker.in_flight = None, False, None
    broker.followers, broker.proposed, broker.isr = {}, None, frozenset()
    world.emit(ev.ReplicaStopped(broker.replica, reason, broker.log.log_end_offset))


def start(world: World, broker: Broker) -> None:
    """A broker's process starts and loads what its disk holds."""
    if broker.running:
        raise Impossible(f"{world.name(broker.replica)} runs already")
    stamped = () if broker.clean else tuple(broker.log.epoch_entries())
    disk = OnDisk(
        broker.log.log_end_offset,
        broker.first_segment_offset,
        broker.log.log_start_offset,
        broker.checkpointed_high_watermark,
        broker.epoch_entries,
        stamped,
    )
    recovered = start_up_recovery(disk, broker.behaviour)
    if recovered.emptied:
        broker.log.truncate_fully_and_start_at(recovered.log_start_offset)
        broker.first_segment_offset = recovered.log_start_offset
    broker.log.log_start_offset = recovered.log_start_offset
    broker.high_watermark = recovered.high_watermark
    broker.epoch_entries = recovered.epoch_entries
    broker.running, broker.fetching = True, True
    broker.broker_epoch += 1
    world.emit(
        ev.ReplicaStarted(
            broker.replica,
            recovered.log_start_offset,
            recovered.log_end_offset,
            recovered.high_watermark,
            broker.clean,
        )
    )


def stop_replica(world: World, broker: Broker) -> None:
    """A broker deletes a replica that is no longer assigned to it."""
    forget_replica(broker)
    world.note(f"{world.name(broker.replica)} deletes its replica")
    world.emit(ev.ReplicaStopped(broker.replica, "unknown", None))


def forget_replica(broker: Broker) -> None:
    """A broker without a directory of the partition, and without a part in it."""
    broker.topic_id = ""
    broker.log, broker.first_segment_offset, broker.epoch_entries = ReplicaLog(), 0, ()
    broker.high_watermark = broker.checkpointed_high_watermark = 0
    broker.role, broker.leader, broker.leader_epoch, broker.partition_epoch = (None,) * 4
    broker.truncated_for, broker.truncating, broker.in_flight = None, False, None
    broker.followers, broker.proposed, broker.isr, broker.pending = {}, None, frozenset(), []


def cached_epochs(broker: Broker) -> tuple[EpochEntry, ...]:
    """The epoch cache that appending this log from its start would have left."""
    fresh = replace(broker, log=ReplicaLog(), epoch_entries=())
    for span in broker.log.spans:
        append_span(fresh, span)
    return fresh.epoch_entries
