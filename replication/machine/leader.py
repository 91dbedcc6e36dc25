"""What a broker does as the leader: append, answer producers and fetches, count its followers.

Rules answer, the functions here act: they change the brokers of a World and emit what happened as
facts, with every observable value filled in.
"""

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
from replication.machine.registered import (
    proposal_of,
    record_isr,
    registered,
)
from replication.machine.replica import advance_log_start, append_span, set_high_watermark
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span, clipped
from replication.protocol.rules.acknowledge import acknowledge
from replication.protocol.rules.become_leader import become_leader as leadership_taken
from replication.protocol.rules.fetch_admission import (
    FetchDecision,
    FetchTarget,
    FollowerFetch,
    fetch_admission,
)
from replication.protocol.rules.fetch_response_high_watermark import (
    answers_at_once,
    fetch_response_high_watermark,
)
from replication.protocol.rules.high_watermark_of_leader import (
    RemoteReplica,
    high_watermark_of_leader,
)
from replication.protocol.rules.isr_commit import (
    commit_raises_high_watermark,
    isr_commit,
    maximal_isr,
)
from replication.protocol.rules.isr_expand import isr_expand
from replication.protocol.rules.last_caught_up import FetchMemory, is_caught_up, last_caught_up
from replication.protocol.rules.log_start import log_start
from replication.protocol.rules.produce_admission import (
    effective_min_insync_replicas,
    produce_admission,
)


def append_for_producer(
    world: World, broker: Broker, content: int, count: int = 1, acks: str | None = None
) -> bool:
    """A leader takes count records of one content; acks None: nobody asks for an answer.

    False when it refuses them. Impossible where the broker does not believe that it leads.
    """
    if not _admits(world, broker, world.contents[content], acks):
        return False
    first = broker.log.log_end_offset
    span = Span(first, first + count, broker.leader_epoch, content)
    append_span(broker, span)
    world.emit(ev.LeaderAppended(broker.replica, *span))
    advance_high_watermark(world, broker)
    _answer_for(world, broker, span, acks)
    return True


def answer_again(world: World, broker: Broker, content: int, acks: str | None = None) -> bool:
    """A leader answers for records that are in its log already, as it does for new ones: at
    acks=all when its high watermark is above them. False when it refuses them."""
    if not _admits(world, broker, world.contents[content], acks):
        return False
    for span in broker.log.spans:
        if span.content == content:
            _answer_for(world, broker, span, acks)
    return True


def _admits(world: World, broker: Broker, name: str, acks: str | None) -> bool:
    """Whether a leader takes records of a producer. Impossible where it does not lead."""
    if not broker.running or broker.role != "leader" or broker.leader_epoch is None:
        raise Impossible(f"{world.name(broker.replica)} does not lead")
    if acks not in (None, "0", "1", "all") and broker.behaviour.has("isr_by_time_alone"):
        raise Impossible(f"acks={acks} exists only in 0.8")
    error = produce_admission(acks or "1", len(broker.isr), _min_insync(world, broker))
    if error:
        world.note(f"{world.name(broker.replica)} refuses {name}: {error}")
    return not error


def _answer_for(world: World, broker: Broker, span: Span, acks: str | None) -> None:
    """The producer of these records waits for an answer, if it asked for one."""
    if acks is not None and broker.leader_epoch is not None:
        name = world.contents[span.content or 0]
        broker.pending.append(PendingAck(span, broker.leader_epoch, acks, name))
        answer_producers(world, broker)


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
    set_high_watermark(world, leader, value)
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


def admit(
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
        propose(world, leader, leader.isr | {replica})
    advance_high_watermark(world, leader)


def propose(world: World, leader: Broker, isr: frozenset[int]) -> None:
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


def delete_before(world: World, leader: Broker, before: int | None) -> None:
    """A leader removes records below before (None: below its high watermark)."""
    answer = log_start(before, leader.log.log_start_offset, leader.high_watermark)
    if isinstance(answer, str):
        world.note(f"{world.name(leader.replica)} refuses to delete records: {answer}")
    else:
        advance_log_start(world, leader, answer, "deletion")


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
