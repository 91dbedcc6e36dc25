"""The only place where the state of a topic partition changes: one event in, one step of the state.

Every handler does three things: it moves the replica's own state (log, high watermark, role) to
what was observed, it notes in the history what was promised or cut on the way, and it refutes an
invariant where the step itself contradicts one. What all of it means is decided later, by the
invariants, from the state alone: so verdicts follow from epochs and offsets, not from the order
in which observers on different brokers were read.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from replication.protocol.folding import conformance
from replication.protocol.folding.conformance.truncations import derived_cut
from replication.protocol.ground import events as ev
from replication.protocol.ground.leader_epoch_cache import (
    assign,
    latest_epoch,
    truncate_from_end,
    truncate_from_start,
)
from replication.protocol.ground.model import (
    Span,
    clipped,
    normalized,
    overlaps,
    touching,
    uncovered,
)
from replication.protocol.ground.replica_log import ReplicaLog
from replication.protocol.ground.topic_partition import (
    Copy,
    LeaderTerm,
    Promise,
    Removal,
    Replica,
    State,
    StorageLoss,
    Truncation,
)
from replication.protocol.ground.versions import NEWEST_KNOWN, Behaviour, behaviour
from replication.protocol.rules.become_leader import become_leader
from replication.protocol.rules.start_up_recovery import OnDisk, start_up_recovery

NEWEST = behaviour(NEWEST_KNOWN)
ANY_OCCURRENCE = 1 << 30


class Rejected(ValueError):
    """The event cannot belong to this partition; the caller quarantines it under its event_id."""


def new_state(cluster_id: str, topic: str, topic_id: str, partition: int) -> State:
    """The state of a partition of which nothing has been observed."""
    return State(cluster_id, topic, topic_id, partition)


def apply(state: State, event: ev.Event) -> None:
    """Folds one event into the state, in place.

    Raises Rejected, with the state unchanged, for a replica that was never assigned and for
    offsets that contradict themselves.
    """
    fact = event.fact
    _check(state, fact)
    state.calm = None
    if event.grade == "traced":
        state.grade = "traced"
    conformance.hold(state, event, fact)
    HANDLERS[type(fact)](state, event, fact)
    state.applied += 1


def _check(state: State, fact: ev.Fact) -> None:
    replica = getattr(fact, "replica", None)
    if (
        replica is not None
        and state.ever_assigned
        and replica not in state.ever_assigned
        and not isinstance(fact, (ev.ReplicaLogObserved, ev.CoverageDeclared))
    ):
        assigned = ",".join(str(r) for r in sorted(state.ever_assigned))
        raise Rejected(
            f"replica {replica} is not assigned to {state.topic}-{state.partition} "
            f"(assigned: {assigned})"
        )
    first = getattr(fact, "first_offset", None)
    end = getattr(fact, "end_offset", None)
    if first is not None and end is not None and not 0 <= first < end:
        raise Rejected(f"offsets [{first}, {end}) are no range")


def _replica(state: State, number: int) -> Replica:
    known = state.replicas.get(number)
    if known is None:
        known = state.replicas[number] = Replica(number)
    return known


def _partition_described(state: State, event: ev.Event, fact: ev.PartitionDescribed) -> None:
    for name in ev.FACT_FIELDS[fact.kind]:
        value = getattr(fact, name)
        if value is not None:
            setattr(state.settings, name, value)
    state.ever_assigned.update(fact.assigned_replicas or ())


def _leadership_recorded(state: State, event: ev.Event, fact: ev.LeadershipRecorded) -> None:
    registration = state.registration
    state.ever_assigned.update(fact.assigned_replicas or ())
    newer = _is_newer(state, fact)
    if fact.leader is not None and fact.election_kind is not None:
        term = _term(state, fact.leader_epoch, fact.leader)
        term.recorded = True
        term.event_id = term.event_id or state.witness(event)
        term.isr = fact.isr if fact.isr is not None else term.isr
        term.election_kind = fact.election_kind
        if term.observed_at is None:
            term.observed_at = event.observed_at
        if newer and registration.last_members is not None:
            term.isr_before = registration.last_members
            term.outside_at = registration.outside.get(fact.leader)
        if term.unclean_permitted is None:
            term.unclean_permitted = state.settings.unclean_leader_election
        if term.min_insync_replicas is None:
            term.min_insync_replicas = state.settings.min_insync_replicas
    if fact.isr and fact.assigned_replicas:
        _refute_outsiders(state, event, fact)
    if not newer:
        return
    if (
        fact.partition_epoch is not None
        and registration.partition_epoch is not None
        and fact.leader_epoch < registration.leader_epoch
    ):
        state.refute(
            "leader_epochs_monotonic",
            event,
            f"leader epoch fell from {registration.leader_epoch} to {fact.leader_epoch}",
            registration.event_id,
            "the earlier registration",
        )
    registration.leader = fact.leader
    registration.leader_epoch = fact.leader_epoch
    registration.partition_epoch = fact.partition_epoch
    if fact.isr is not None:
        registration.isr = fact.isr
        registration.last_members = fact.isr or registration.last_members
    if fact.isr and fact.partition_epoch is not None:
        for replica in state.ever_assigned.difference(fact.isr):
            registration.outside[replica] = fact.partition_epoch
    registration.eligible_leader_replicas = fact.eligible_leader_replicas or ()
    registration.last_known_leader_replicas = fact.last_known_leader_replicas or ()
    registration.recovering = bool(fact.recovering)
    registration.event_id = state.witness(event)
    if fact.assigned_replicas is not None:
        state.settings.assigned_replicas = fact.assigned_replicas


def _is_newer(state: State, fact: ev.LeadershipRecorded) -> bool:
    registration = state.registration
    if fact.partition_epoch is not None and registration.partition_epoch is not None:
        return fact.partition_epoch > registration.partition_epoch
    return fact.leader_epoch >= registration.leader_epoch


def _refute_outsiders(state: State, event: ev.Event, fact: ev.LeadershipRecorded) -> None:
    outsiders = sorted(set(fact.isr or ()) - set(fact.assigned_replicas or ()))
    if state.settings.controller != "kraft" and not _joined_outside(state, fact, outsiders):
        outsiders = []
    if outsiders:
        state.refute(
            "isr_within_assignment",
            event,
            f"ISR {list(fact.isr or ())} names {outsiders}, outside the assignment "
            f"{list(fact.assigned_replicas or ())}",
        )
    if fact.leader is not None and fact.leader not in (fact.isr or ()):
        state.refute(
            "leader_in_isr",
            event,
            f"leader {fact.leader} is not in its ISR {list(fact.isr or ())}",
        )


def _joined_outside(state: State, fact: ev.LeadershipRecorded, outsiders: list[int]) -> bool:
    """Whether replicas came into the ISR that no assignment has named.

    The znode of a partition's state has no assignment: a controller with ZooKeeper sends the new
    one with the ISR as it stands, and takes the replicas that leave out of it thereafter
    (KafkaController.onPartitionReassignment). So only who joined just now can be no member.
    """
    before = state.registration
    if fact.partition_epoch is None or before.partition_epoch != fact.partition_epoch - 1:
        return False
    return not set(outsiders) <= {*(before.isr or ()), *state.ever_assigned}


def _term(state: State, leader_epoch: int, leader: int, occurrence: int = 0) -> LeaderTerm:
    terms, order = state.history.terms, (leader_epoch, occurrence, leader)
    place = bisect_left(terms, order, key=_order_of)
    if place < len(terms) and _order_of(terms[place]) == order:
        return terms[place]
    term = LeaderTerm(leader_epoch, leader, occurrence)
    terms.insert(place, term)
    return term


def _end_term(
    state: State, replica: Replica, how: str, line: ev.BecameLeader | ev.BecameFollower | None
) -> None:
    """Notes how the term in which a replica leads ends by its own lines; the first one counts."""
    if replica.role != "leader":
        return
    term = _last_led(state, replica)
    if term is not None and term.ended is None:
        term.ended = how
        # What a copy showed of it while it led is not what it came to.
        term.end_log_end_offset = None if line is None else line.log_end_offset
        term.end_is_certain = term.end_log_end_offset is not None
        if line is None and state.is_traced(replica.replica):
            term.end_log_end_offset, term.end_is_certain = replica.log.log_end_offset, True
        if line is not None:
            term.end_high_watermark = line.high_watermark


def _note_log_end(
    state: State, replica: Replica, log_end_offset: int | None, *, certain: bool
) -> None:
    """What a stopped leader still holds when it is next seen; a copy of one that was not seen to
    stop may be its last."""
    term = _last_led(state, replica) if replica.led_in_epoch else None
    if term is None or term.ended not in (None, "stopped"):
        return
    better = certain and not term.end_is_certain
    if term.end_log_end_offset is None or term.ended is None or better:
        term.end_log_end_offset = log_end_offset
        term.end_is_certain = certain and log_end_offset is not None


def _last_led(state: State, replica: Replica) -> LeaderTerm | None:
    """The term in which a replica led in the last epoch that it knows of."""
    for term in reversed(state.history.terms):
        if (term.leader, term.leader_epoch, term.occurrence) == (
            replica.replica,
            replica.leader_epoch,
            replica.term_occurrence,
        ):
            return term
    return None


def _order_of(term: LeaderTerm) -> tuple[int, int, int]:
    """The order in which the history keeps its terms."""
    return (term.leader_epoch, term.occurrence, term.leader)


def _replica_started(state: State, event: ev.Event, fact: ev.ReplicaStarted) -> None:
    replica = _replica(state, fact.replica)
    replica.stopped = False
    if replica.known_log_end_offset is not None and not replica.just_started:
        # The log was loaded before and something happened since: this is another process.
        _end_term(state, replica, "stopped", None)
        replica.role = None
    replica.just_started = True
    replica.kafka_version = fact.kafka_version or replica.kafka_version
    _lives_on(state, replica)
    replica.clean_start = fact.clean
    if not fact.clean:
        _note_unclean_start(state, replica, fact.log_end_offset)
    if replica.role is None:
        # The line of a log that is made when its broker leads already tells nothing of an end.
        _note_log_end(state, replica, fact.log_end_offset, certain=bool(fact.clean))
    if fact.log_end_offset is not None:
        _observe_log_end(state, replica, fact.log_end_offset, event)
        replica.tail_known = True
        _promise_lost_suffix(state, replica, fact.log_end_offset, event)
    if fact.high_watermark is not None:
        replica.high_watermark = fact.high_watermark
        _promise_committed(state, replica, fact.high_watermark, event, "load")
    if fact.log_start_offset is not None:
        replica.log.advance_log_start(fact.log_start_offset)
    if replica.tail_known:
        _cut_epochs(state, replica, unclean=fact.clean is False)


def _note_unclean_start(state: State, replica: Replica, log_end_offset: int | None) -> None:
    """What a replica came back with from a stop that was not seen to be clean."""
    end, lowest = log_end_offset or 0, replica.may_have_lost_from
    if _has_led(state, replica.replica):
        replica.may_have_lost_from = end if lowest is None else min(lowest, end)
    if log_end_offset is not None and replica.known_log_end_offset is not None:
        before = replica.came_back_with
        replica.came_back_with = end if before is None else min(before, end)


def _has_led(state: State, replica: int) -> bool:
    """Whether it has led by its own lines, whose order is certain."""
    return any(t.leader == replica and t.start_event_id for t in state.history.terms)


def _promise_lost_suffix(state: State, replica: Replica, end: int, event: ev.Event) -> None:
    """A start found less in the log than the checkpointed high watermark had reached: what lay
    between was committed, under an epoch that the replica's own cache still names."""
    known = replica.checkpointed
    replica.checkpointed = None
    if known is None or known[1] <= end:
        return
    if not any(s.event_id == event.event_id for s in state.history.storage_losses[-1:]):
        # A copy alone that ends below its checkpoint may be torn, or of a running broker.
        members = state.registration.last_members
        loss = StorageLoss(
            replica.replica, known[1], end, state.witness(event), members, known[0],
            at=state.applied,
        )  # fmt: skip
        state.history.storage_losses.append(loss)
    if known[0] is None:
        return
    _add_promise(
        state.history.commitments,
        Promise(
            Span(end, known[1], None, None),
            _before_leading_again(replica, known[0]),
            "checkpoint",
            state.witness(event),
            replica.replica,
            event.observed_at,
        ),
    )


def _before_leading_again(replica: Replica, leader_epoch: int) -> tuple[int, int]:
    """The order of the term by whose end a replica had reached what its disk lost since."""
    led = replica.led_in_epoch and replica.leader_epoch == leader_epoch
    return leader_epoch, replica.term_occurrence if led else ANY_OCCURRENCE


def _lives_on(state: State, replica: Replica) -> None:
    """The broker acts after what was last seen of its log: only a trace still tells its end."""
    if not state.is_traced(replica.replica):
        # Of a part, nobody knew the end anyway; what is cut from it, the broker's log tells.
        told = ("broker_log", replica.replica) in state.coverage
        replica.stale = replica.captured and not (replica.partial and told)
        replica.tail_known = False


def _observe_log_end(state: State, replica: Replica, end: int, event: ev.Event) -> None:
    """The log end as a start or transition line names it, held against what was known."""
    had = replica.known_log_end_offset
    if had is not None and end < had:
        state.history.storage_losses.append(
            StorageLoss(
                replica.replica,
                had,
                end,
                state.witness(event),
                state.registration.last_members,
                replica.leader_epoch,
                clipped(replica.log.spans, end, had),
                state.applied,
            )
        )
    if end < replica.log.log_end_offset:
        lost = touching(replica.log.spans, end, replica.log.log_end_offset)
        _set_aside(state, replica, clipped(lost, end, replica.log.log_end_offset))
        replica.promised_below = None
        replica.log.truncate_to(end)
    replica.log.log_end_offset = end
    replica.known_log_end_offset = end
    replica.epoch_entries = truncate_from_end(replica.epoch_entries, end)


def _set_aside(state: State, replica: Replica, spans: list[Span]) -> None:
    """Records that the replica no longer holds, kept as a salvage copy when a copy showed them."""
    if spans and replica.captured:
        state.history.copies.append(
            Copy(replica.replica, spans, replica.as_of or "", observed_at=replica.observed_at)
        )


def _replica_stopped(state: State, event: ev.Event, fact: ev.ReplicaStopped) -> None:
    replica = _replica(state, fact.replica)
    replica.stopped = fact.reason == "clean"
    _end_term(state, replica, "stopped", None)
    replica.role = None
    if fact.log_end_offset is not None:
        if fact.reason in ("power_loss", "disk_loss"):
            _observe_log_end(state, replica, fact.log_end_offset, event)
        else:
            replica.promised_below = None
            replica.log.truncate_to(fact.log_end_offset)
    if fact.reason == "disk_loss":
        replica.epoch_entries = ()


def _became_leader(state: State, event: ev.Event, fact: ev.BecameLeader) -> None:
    replica = _replica(state, fact.replica)
    leads = replica.role == "leader"
    again = leads and replica.leader_epoch == fact.leader_epoch
    _refute_second_leader(state, event, fact)
    if not again:
        _end_term(state, replica, "led_on", fact)
    occurrence = replica.term_occurrence if replica.leader_epoch == fact.leader_epoch else 0
    if not again and replica.leader_epoch == fact.leader_epoch and replica.led_in_epoch:
        occurrence += 1
    if fact.log_end_offset is not None and not again:
        if fact.log_end_offset != replica.log.log_end_offset:
            _observe_log_end(state, replica, fact.log_end_offset, event)
        replica.known_log_end_offset = fact.log_end_offset
    if fact.high_watermark is not None:
        replica.high_watermark = fact.high_watermark
        before = fact.leader_epoch if replica.leader_epoch is None else replica.leader_epoch
        _promise_committed(
            state,
            replica,
            fact.high_watermark,
            event,
            "start_line",
            latest_term=(before, ANY_OCCURRENCE),
        )
    # It leads on from what it loaded, with nothing fetched in between.
    untouched = replica.role is None and replica.just_started and replica.tail_known
    loaded = replica.log.log_end_offset if untouched else None
    _lives_on(state, replica)
    replica.role = "leader"
    replica.obeyed_partition_epoch = fact.partition_epoch
    replica.leader = fact.replica
    replica.leader_epoch = fact.leader_epoch
    replica.led_in_epoch = True
    replica.term_occurrence = occurrence
    if again:
        return
    if not leads:
        # Who leads on into a new epoch keeps what it knows of its followers (become_leader).
        replica.remote_log_end_offsets = {}
    term = _term(state, fact.leader_epoch, fact.replica, occurrence)
    known = fact.log_end_offset if fact.log_end_offset is not None else loaded
    replica.just_started = False
    if term.start_offset is None:
        term.start_offset = known
        term.start_event_id = state.witness(event)
        term.started_at = state.applied
        if occurrence:
            term.isr_before = _isr_in(state, fact.leader_epoch)
        term.high_watermark = fact.high_watermark
        term.leads_on = leads
        term.led_until_now_in = fact.previous_leader_epoch
    if term.observed_at is None:
        term.observed_at = event.observed_at
    replica.leader_epoch_start_offset = known
    flags = state.behaviour(fact.replica)
    if known is not None and (flags is None or flags.has("leader_epoch_in_record_batches")):
        taken = become_leader(
            fact.leader_epoch, known, replica.epoch_entries, leads, _epoch_rules(state, replica)
        )
        replica.epoch_entries = taken.epoch_entries


def _isr_in(state: State, leader_epoch: int) -> tuple[int, ...] | None:
    """The last ISR of an epoch, also where the controller has gone on since."""
    if state.registration.leader_epoch > leader_epoch:
        told = [t.isr for t in state.history.terms if t.leader_epoch == leader_epoch and t.isr]
        later = [t for t in state.history.terms if t.leader_epoch > leader_epoch and t.recorded]
        told += [t.isr_before for t in later[:1] if t.isr_before]
        return told[-1] if told else state.registration.last_members
    return state.registration.last_members


def _refute_second_leader(state: State, event: ev.Event, fact: ev.BecameLeader) -> None:
    terms = state.history.terms
    for term in terms[bisect_left(terms, (fact.leader_epoch, -1, -1), key=_order_of) :]:
        if term.leader_epoch != fact.leader_epoch:
            return
        if term.leader != fact.replica:
            state.refute(
                "single_leader_per_epoch",
                event,
                f"broker {fact.replica} leads epoch {fact.leader_epoch}, "
                f"which broker {term.leader} leads",
                term.event_id or term.start_event_id,
                f"broker {term.leader} leads it",
            )
            return


def _epoch_rules(state: State, replica: Replica) -> Behaviour:
    """The rules by which an epoch cache is kept: its broker's version's, if it keeps one."""
    flags = state.behaviour(replica.replica)
    return flags if flags is not None and flags.has("leader_epoch_in_record_batches") else NEWEST


def _cut_epochs(state: State, replica: Replica, *, unclean: bool = False) -> None:
    """What is left of the epoch cache when the log was cut at either end, as a start finds it."""
    log = replica.log
    disk = OnDisk(
        log.log_end_offset,
        log_start_offset=log.log_start_offset,
        epoch_entries=replica.epoch_entries,
        batch_epochs=log.epoch_entries() if unclean else (),
    )
    replica.epoch_entries = start_up_recovery(disk, _epoch_rules(state, replica)).epoch_entries


def _became_follower(state: State, event: ev.Event, fact: ev.BecameFollower) -> None:
    replica = _replica(state, fact.replica)
    if fact.log_end_offset is not None:
        if fact.log_end_offset != replica.log.log_end_offset:
            _observe_log_end(state, replica, fact.log_end_offset, event)
        replica.known_log_end_offset = fact.log_end_offset
    if fact.high_watermark is not None:
        replica.high_watermark = fact.high_watermark
        # It was reached under the epoch known before this line, or, where none was, possibly
        # under this very epoch in an earlier life of the process.
        before = fact.leader_epoch if replica.leader_epoch is None else replica.leader_epoch
        _promise_committed(
            state,
            replica,
            fact.high_watermark,
            event,
            "start_line",
            latest_term=(before, ANY_OCCURRENCE),
        )
    _lives_on(state, replica)
    _end_term(state, replica, "followed", fact)
    replica.role = "follower"
    replica.obeyed_partition_epoch = fact.partition_epoch
    replica.just_started = False
    replica.leader = fact.leader
    if fact.leader is not None:
        # Its leader was elected, though no line of that leader or of the controller may say so.
        term = _term(state, fact.leader_epoch, fact.leader)
        term.event_id = term.event_id or state.witness(event)
    if replica.leader_epoch != fact.leader_epoch:
        replica.led_in_epoch = False
    replica.leader_epoch = fact.leader_epoch


def _truncated(state: State, event: ev.Event, fact: ev.Truncated) -> None:
    replica = _replica(state, fact.replica)
    target = fact.to_offset
    inferred = target is None
    if target is None:
        cut = derived_cut(state, replica)
        target = (replica.high_watermark or 0) if cut is None else cut.offset
        if cut is not None:
            state.history.derived.append(cut)
    elif fact.reason == "high_watermark":
        _note_last_high_watermark(state, replica, target, event)
    end = fact.from_offset
    if end is None and (replica.tail_known or replica.log.log_end_offset > target):
        end = replica.log.log_end_offset
    if fact.reason == "full" and end is not None and target >= end:
        # It restarts ahead of its end, where its leader's log begins: what is gone, retention took.
        if replica.role == "follower":
            _note_removal(state, replica, target)
        replica.promised_below = None
        replica.log.truncate_fully_and_start_at(target)
        replica.known_log_end_offset = target
        replica.epoch_entries = ()
        return
    if end is not None and target >= end:
        if fact.reason == "high_watermark" or fact.from_offset is not None:
            # Such a line is printed without effect too (Kafka 0.10).
            return
        end = None
    if fact.reason == "full":
        replica.promised_below = None
        dropped = replica.log.truncate_fully_and_start_at(target)
        replica.epoch_entries = ()
    else:
        replica.promised_below = None
        dropped = replica.log.truncate_to(target)
        replica.log.log_end_offset = target
    _set_aside(state, replica, dropped)
    replica.known_log_end_offset = target
    replica.epoch_entries = truncate_from_end(replica.epoch_entries, target)
    state.history.truncations.append(
        Truncation(
            fact.replica,
            end,
            target,
            fact.reason,
            state.witness(event),
            event.observed_at,
            dropped,
            replica.leader_epoch,
            inferred,
            state.applied,
            replica.obeyed_partition_epoch,
        )
    )
    if replica.high_watermark is not None:
        replica.high_watermark = min(replica.high_watermark, target)
    if replica.role == "leader" and event.grade == "traced":
        state.refute(
            "version_conformance",
            event,
            f"broker {fact.replica} truncated to {target} while it led; a leader never does",
        )


def _note_last_high_watermark(
    state: State, replica: Replica, high_watermark: int, event: ev.Event
) -> None:
    """A leader that follows cuts to its high watermark first (before KIP-101): so far it had
    committed."""
    led = [t for t in state.history.terms if t.leader == replica.replica and t.start_event_id]
    if replica.role != "follower" or not led or led[-1].ended != "followed":
        return
    if led[-1].end_high_watermark is None:
        led[-1].end_high_watermark = high_watermark
        _promise_committed(state, replica, high_watermark, event, "start_line", led[-1].order)


def _leader_appended(state: State, event: ev.Event, fact: ev.LeaderAppended) -> None:
    replica = _replica(state, fact.replica)
    leader_epoch = fact.leader_epoch if fact.leader_epoch is not None else replica.leader_epoch
    _append(state, replica, fact.first_offset, fact.end_offset, leader_epoch, fact.content)


def _append(
    state: State,
    replica: Replica,
    first: int,
    end: int,
    leader_epoch: int | None,
    content: int | None,
) -> None:
    log = replica.log
    if first < log.log_end_offset:
        replica.promised_below = None
        log.truncate_to(first)
    elif not log.spans and not log.log_end_offset:
        log.log_start_offset = first
    log.append(first, end, leader_epoch, content)
    replica.known_log_end_offset = end
    if leader_epoch is not None:
        entries = replica.epoch_entries
        if not entries or entries[-1].leader_epoch != leader_epoch:
            replica.epoch_entries = assign(
                entries, leader_epoch, first, _epoch_rules(state, replica)
            )


def _follower_appended(state: State, event: ev.Event, fact: ev.FollowerAppended) -> None:
    replica = _replica(state, fact.replica)
    if fact.leader_epoch is not None or fact.content is not None:
        _append(state, replica, fact.first_offset, fact.end_offset, fact.leader_epoch, fact.content)
        return
    leader = state.replicas.get(replica.leader) if replica.leader is not None else None
    source = leader.log.spans if leader is not None else []
    source = touching(source, fact.first_offset, fact.end_offset)
    copied = clipped(source, fact.first_offset, fact.end_offset)
    holes = [
        Span(a, b, None, None) for a, b in uncovered(fact.first_offset, fact.end_offset, copied)
    ]
    for span in normalized(copied + holes):
        _append(state, replica, span.first_offset, span.end_offset, span.leader_epoch, span.content)


def _fetch_requested(state: State, event: ev.Event, fact: ev.FetchRequested) -> None:
    moves = conformance.leaders.fetch_requested(state, event, fact)
    leader = _replica(state, fact.leader)
    if moves:
        leader.remote_log_end_offsets[fact.replica] = fact.fetch_offset


def _fetch_answered(state: State, event: ev.Event, fact: ev.FetchAnswered) -> None:
    replica = _replica(state, fact.replica)
    if fact.error is not None or fact.diverging_epoch is not None:
        return
    if fact.high_watermark is not None:
        replica.high_watermark = min(fact.high_watermark, replica.log.log_end_offset)
    if fact.log_start_offset is not None:
        _advance_log_start(replica, fact.log_start_offset)


def _advance_log_start(replica: Replica, offset: int) -> None:
    if offset > replica.log.log_start_offset:
        replica.log.advance_log_start(offset)
        replica.epoch_entries = truncate_from_start(replica.epoch_entries, offset)


def _high_watermark_advanced(state: State, event: ev.Event, fact: ev.HighWatermarkAdvanced) -> None:
    replica = _replica(state, fact.replica)
    before = replica.high_watermark
    if replica.role == "leader":
        if before is not None and fact.high_watermark < before and event.grade == "traced":
            state.refute(
                "leader_high_watermark_monotonic",
                event,
                f"leader {fact.replica}'s high watermark fell from {before} to "
                f"{fact.high_watermark} in epoch {replica.leader_epoch}",
            )
        if (
            replica.tail_known
            and event.grade == "traced"
            and fact.high_watermark > replica.log.log_end_offset
        ):
            state.refute(
                "high_watermark_within_log",
                event,
                f"leader {fact.replica}'s high watermark {fact.high_watermark} is above its "
                f"log end {replica.log.log_end_offset}",
            )
    replica.high_watermark = fact.high_watermark
    _promise_committed(state, replica, fact.high_watermark, event, "high_watermark")


def _promise_committed(
    state: State,
    replica: Replica,
    high_watermark: int,
    event: ev.Event,
    how: str,
    latest_term: tuple[int, int] | None = None,
) -> None:
    """Notes that everything below high_watermark in this replica's log was committed.

    A follower's high watermark comes from a leader of the epoch it follows, or an earlier one:
    the epoch last known to the replica bounds from above when the promise was made. A zombie
    leader's high watermark (its epoch is superseded by then) promises nothing new.
    """
    if event.grade == "traced" and _promises_nothing(state, replica):
        return
    if latest_term is None and replica.leader_epoch is not None:
        occurrence = replica.term_occurrence if replica.role == "leader" else ANY_OCCURRENCE
        latest_term = (replica.leader_epoch, occurrence)
    start = replica.log.log_start_offset
    offset_alone = how in ("load", "start_line")
    if not offset_alone and replica.promised_below is not None:
        before, below = replica.promised_below
        # What a complete trace promised by the end of an earlier term stays promised later.
        earlier = event.grade == "traced" and before is not None and _not_later(before, latest_term)
        if before == latest_term or earlier:
            start = max(start, below)
    if high_watermark <= start:
        return
    if not offset_alone:
        replica.promised_below = (latest_term, high_watermark)
    # Before KIP-320 a follower fetches on from a leader whose newer epoch it has not heard of: the
    # epoch it knows does not bound when its high watermark was reached. For records that the
    # evidence does not show, nothing else does.
    # A broker that last led is bounded by the epoch it led in.
    led = replica.role == "leader" or (replica.role is None and replica.led_in_epoch)
    ended = latest_term is not None and latest_term[1] < ANY_OCCURRENCE
    bounded = latest_term is not None and (led or ended or _fences(state, replica))
    if offset_alone:
        if not bounded:
            return
        # A line tells the offset alone: which records lay below it, the known log may have missed.
        held = [Span(start, high_watermark, None, None)]
    else:
        held = clipped(touching(replica.log.spans, start, high_watermark), start, high_watermark)
    for span in held:
        if latest_term is not None and (span.leader_epoch or 0) > latest_term[0]:
            latest_term = (span.leader_epoch or 0, ANY_OCCURRENCE)
        shown = span.leader_epoch is not None or span.content is not None
        if (shown or bounded) and not _already_promised(state, span, latest_term):
            promise = Promise(
                span,
                latest_term,
                how,
                event.event_id,
                replica.replica,
                event.observed_at,
                state.applied,
            )
            if _add_promise(state.history.commitments, promise):
                state.history.note_commitment(promise)
                state.witness(event)


def _promises_nothing(state: State, replica: Replica) -> bool:
    """Whether a traced high watermark adds nothing to what was committed.

    A deposed leader commits nothing. Where every leader's own steps are here, a follower's value
    adds nothing, and may lie over records that it is about to cut (KAFKA-14704).
    """
    if replica.role == "leader":
        return _is_superseded(state, replica.leader_epoch)
    return state.is_wholly_traced()


def _is_superseded(state: State, leader_epoch: int | None) -> bool:
    """Whether the controller has registered a later epoch by now."""
    return leader_epoch is not None and leader_epoch < state.registration.leader_epoch


def _fences(state: State, replica: Replica) -> bool:
    """Whether its fetches carry the leader epoch, so that its epoch is its leader's."""
    flags = state.behaviour(replica.replica)
    return flags is not None and flags.has("fetch_carries_leader_epoch")


def _already_promised(state: State, span: Span, latest_term: tuple[int, int] | None) -> bool:
    for promise in state.history.committed_of(span.leader_epoch, span.content):
        p = promise.span
        if (
            p.first_offset <= span.first_offset
            and p.end_offset >= span.end_offset
            and _not_later(promise.latest_term, latest_term)
        ):
            return True
    return False


def _not_later(a: tuple[int, int] | None, b: tuple[int, int] | None) -> bool:
    return b is None or (a is not None and a <= b)


def _add_promise(promises: list[Promise], new: Promise) -> bool:
    """Lengthens a promise that the new one continues; True where it had to be added instead."""
    for old in reversed(promises[-4:]):
        if (
            old.latest_term == new.latest_term
            and old.how == new.how
            and old.replica == new.replica
            and old.span[2:] == new.span[2:]
            and old.span.first_offset <= new.span.first_offset <= old.span.end_offset
        ):
            end = max(old.span.end_offset, new.span.end_offset)
            old.span = Span(old.span.first_offset, end, *new.span[2:])
            return False
    promises.append(new)
    return True


def _log_start_advanced(state: State, event: ev.Event, fact: ev.LogStartAdvanced) -> None:
    replica = _replica(state, fact.replica)
    _advance_log_start(replica, fact.log_start_offset)
    if replica.role == "leader" or (replica.role == "follower" and fact.reason == "leader"):
        _note_removal(state, replica, fact.log_start_offset)


def _note_removal(state: State, replica: Replica, below: int) -> None:
    """Keeps from where on the log of the leader that a replica is, or follows, begins."""
    leader_epoch = replica.leader_epoch
    if leader_epoch is None or _is_superseded(state, leader_epoch):
        return
    term = (leader_epoch, replica.term_occurrence if replica.role == "leader" else 0)
    known = state.history.removals
    if known and (known[-1].leader_epoch, known[-1].occurrence) == term:
        known[-1].below = max(known[-1].below, below)
    else:
        known.append(Removal(*term, below))


def _records_acknowledged(state: State, event: ev.Event, fact: ev.RecordsAcknowledged) -> None:
    latest_term = None if fact.leader_epoch is None else (fact.leader_epoch, ANY_OCCURRENCE)
    span = Span(fact.first_offset, fact.end_offset, fact.leader_epoch, fact.content)
    how = "acks_all" if fact.acks == "all" else "acks_1"
    superseded = event.grade == "traced" and _is_superseded(state, fact.leader_epoch)
    if superseded and not _is_committed(state, span):
        how = "acks_1"  # A deposed leader promises no more than itself.
    promise = Promise(span, latest_term, how, event.event_id, None, event.observed_at)
    if _add_promise(state.history.acknowledgements, promise):
        state.witness(event)


def _is_committed(state: State, span: Span) -> bool:
    """Whether the registered leader's high watermark has passed these very records."""
    leader = state.replicas.get(state.registration.leader or 0)
    if leader is None or (leader.high_watermark or 0) < span.end_offset:
        return False
    held = touching(leader.log.spans, span.first_offset, span.end_offset)
    held = clipped(held, span.first_offset, span.end_offset)
    same = [s for s in held if s.leader_epoch == span.leader_epoch]
    return not uncovered(span.first_offset, span.end_offset, same)


def _records_consumed(state: State, event: ev.Event, fact: ev.RecordsConsumed) -> None:
    latest_term = None if fact.leader_epoch is None else (fact.leader_epoch, ANY_OCCURRENCE)
    span = Span(fact.first_offset, fact.end_offset, fact.leader_epoch, fact.content)
    promise = Promise(span, latest_term, "consumed", event.event_id, None, event.observed_at)
    if _add_promise(state.history.consumptions, promise):
        state.witness(event)


def _replica_log_observed(state: State, event: ev.Event, fact: ev.ReplicaLogObserved) -> None:
    event_id = state.witness(event)
    if fact.copy not in ("current", "live", "part"):
        state.history.copies.append(
            Copy(fact.replica, list(fact.spans), event_id, fact.copy, event.observed_at)
        )
        return
    replica = _replica(state, fact.replica)
    is_part = fact.copy == "part"
    start, spans = fact.log_start_offset, list(fact.spans)
    if is_part and fact.stopped is None and replica.log.log_start_offset < start:
        # What lies before the first offset that was seen may have been removed, or not.
        spans.append(Span(replica.log.log_start_offset, start, None, None))
        start = replica.log.log_start_offset
    lost = _not_held(replica.log.spans, spans)
    lost = clipped(lost, start, ANY_OCCURRENCE << 32)
    _set_aside(state, replica, lost)
    replica.promised_below = None
    had = replica.log.log_end_offset
    replica.log = ReplicaLog()
    replica.log.replace(spans, start, fact.log_end_offset)
    replica.captured = True
    replica.stale = False
    replica.partial = is_part and fact.stopped is None
    replica.tail_known = bool(fact.stopped)
    replica.stopped = fact.stopped
    replica.as_of = event_id
    replica.observed_at = event.observed_at
    _note_sighting(replica, event, as_before=not lost and fact.log_end_offset == had)
    if not is_part:
        # Whether less than before is a loss of storage, the next start will tell. A part may be
        # of any later moment.
        replica.known_log_end_offset = max(replica.known_log_end_offset or 0, fact.log_end_offset)
    if fact.epoch_entries is not None:
        replica.epoch_entries = fact.epoch_entries
        replica.filed_epoch = latest_epoch(fact.epoch_entries)
    else:
        replica.epoch_entries, replica.filed_epoch = replica.log.epoch_entries(), None
    if not is_part:
        _note_log_end(state, replica, fact.log_end_offset, certain=bool(fact.stopped))
    epochs = _epochs_of(replica, fact.spans)
    if fact.high_watermark is None:
        return
    led_until_then = fact.stopped and replica.led_in_epoch and not replica.just_started
    led = _last_led(state, replica) if led_until_then else None
    if led is not None and led.end_high_watermark is None and led.ended != "followed":
        led.end_high_watermark = fact.high_watermark
    replica.checkpointed = (max(epochs, default=None), fact.high_watermark)
    replica.high_watermark = min(fact.high_watermark, fact.log_end_offset)
    latest_term = (max(epochs), ANY_OCCURRENCE) if epochs else None
    _promise_committed(state, replica, replica.high_watermark, event, "checkpoint", latest_term)
    if latest_term is not None and fact.high_watermark > fact.log_end_offset:
        # Of what lay between, the log at hand shows nothing.
        missing = Span(fact.log_end_offset, fact.high_watermark, None, None)
        latest_term = _before_leading_again(replica, latest_term[0])
        _add_promise(
            state.history.commitments,
            Promise(missing, latest_term, "checkpoint", event_id, fact.replica, event.observed_at),
        )


def _note_sighting(replica: Replica, event: ev.Event, *, as_before: bool) -> None:
    """When a running broker's log was read; since when it is the same."""
    live = getattr(event.fact, "copy", "") == "live"
    if not live or replica.seen_at is None or not as_before:
        replica.seen_since = event.observed_at if live else None
    replica.seen_at = event.observed_at if live else None


def _epochs_of(replica: Replica, spans: tuple[Span, ...]) -> list[int]:
    """Every leader epoch that the replica and its log name."""
    epochs = [e.leader_epoch for e in replica.epoch_entries]
    epochs += [s.leader_epoch for s in spans if s.leader_epoch is not None]
    return epochs if replica.leader_epoch is None else [*epochs, replica.leader_epoch]


def _not_held(spans: list[Span], now: list[Span]) -> list[Span]:
    """The parts of spans whose record is not at its offset in now."""
    now = normalized(now)
    kept = [Span(first, end, 0, 0) for first, end, a, b in overlaps(spans, now) if a[2:] == b[2:]]
    kept = normalized(kept)
    result = []
    for span in spans:
        for first, end in uncovered(span.first_offset, span.end_offset, kept):
            result.append(Span(first, end, span.leader_epoch, span.content))
    return result


def _checkpoint_observed(state: State, event: ev.Event, fact: ev.CheckpointObserved) -> None:
    replica = _replica(state, fact.replica)
    _promise_committed(state, replica, fact.high_watermark, event, "load")


def _coverage_declared(state: State, event: ev.Event, fact: ev.CoverageDeclared) -> None:
    state.coverage[(fact.subject, fact.replica)] = (fact.complete, fact.detail)


def _input_ended(state: State, event: ev.Event, fact: ev.InputEnded) -> None:
    state.ended = True


HANDLERS: dict[type[Any], Callable[[State, ev.Event, Any], None]] = {
    ev.PartitionDescribed: _partition_described,
    ev.LeadershipRecorded: _leadership_recorded,
    ev.ReplicaStarted: _replica_started,
    ev.ReplicaStopped: _replica_stopped,
    ev.BecameLeader: _became_leader,
    ev.BecameFollower: _became_follower,
    ev.Truncated: _truncated,
    ev.LeaderAppended: _leader_appended,
    ev.FollowerAppended: _follower_appended,
    ev.FetchRequested: _fetch_requested,
    ev.FetchAnswered: _fetch_answered,
    ev.HighWatermarkAdvanced: _high_watermark_advanced,
    ev.LogStartAdvanced: _log_start_advanced,
    ev.RecordsAcknowledged: _records_acknowledged,
    ev.RecordsConsumed: _records_consumed,
    ev.ReplicaLogObserved: _replica_log_observed,
    ev.CheckpointObserved: _checkpoint_observed,
    ev.CoverageDeclared: _coverage_declared,
    ev.InputEnded: _input_ended,
}
