"""What the controller recorded: assignment, settings, leader and ISR."""

from itertools import takewhile

from replication.protocol.folding.steps.terms import note_recorded, term_of, was_left_in_isr
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import State

FROM_THE_ISR = ("clean", "preferred")


def partition_described(state: State, event: ev.Event, fact: ev.PartitionDescribed) -> None:
    """Settings and assignment, as far as they are told."""
    for name in ev.FACT_FIELDS[fact.kind]:
        value = getattr(fact, name)
        if value is not None:
            setattr(state.settings, name, value)
    state.ever_assigned.update(fact.assigned_replicas or ())


def leadership_recorded(state: State, event: ev.Event, fact: ev.LeadershipRecorded) -> None:
    """An election or a change of the ISR; an older one changes the history alone."""
    state.ever_assigned.update(fact.assigned_replicas or ())
    newer = _is_newer(state, fact)
    if fact.leader is not None and fact.election_kind is not None:
        _note_election(state, event, fact, fact.leader)
    if fact.isr and fact.assigned_replicas:
        _refute_outsiders(state, event, fact)
    if newer:
        _refute_earlier_epoch(state, event, fact)
        _register(state, event, fact)


def _note_election(state: State, event: ev.Event, fact: ev.LeadershipRecorded, leader: int) -> None:
    term = term_of(state, fact.leader_epoch, leader)
    term.recorded = True
    term.event_id = term.event_id or state.witness(event)
    term.isr = fact.isr if fact.isr is not None else term.isr
    term.election_kind = fact.election_kind
    if fact.election_kind in FROM_THE_ISR and was_left_in_isr(state, leader, fact.leader_epoch):
        term.election_kind = "unknown"
    note_recorded(state, term)
    if term.observed_at is None:
        term.observed_at = event.observed_at
    if term.unclean_permitted is None:
        term.unclean_permitted = state.settings.unclean_leader_election
    if term.min_insync_replicas is None:
        term.min_insync_replicas = state.settings.min_insync_replicas


def _refute_earlier_epoch(state: State, event: ev.Event, fact: ev.LeadershipRecorded) -> None:
    registration = state.registration
    if fact.partition_epoch is None or registration.partition_epoch is None:
        return
    if fact.leader_epoch < registration.leader_epoch:
        state.refute(
            "leader_epochs_monotonic",
            event,
            f"leader epoch fell from {registration.leader_epoch} to {fact.leader_epoch}",
            registration.event_id,
            "the earlier registration",
        )


def _register(state: State, event: ev.Event, fact: ev.LeadershipRecorded) -> None:
    _replace_source(state, event)
    registration = state.registration
    registration.leader = fact.leader
    registration.leader_epoch = fact.leader_epoch
    registration.partition_epoch = fact.partition_epoch
    if fact.isr is not None:
        registration.isr = fact.isr
        registration.last_members = fact.isr or registration.last_members
    registration.eligible_leader_replicas = fact.eligible_leader_replicas or ()
    registration.last_known_leader_replicas = fact.last_known_leader_replicas or ()
    registration.recovering = bool(fact.recovering)
    if fact.assigned_replicas is not None:
        state.settings.assigned_replicas = fact.assigned_replicas


def _replace_source(state: State, event: ev.Event) -> None:
    """Forgets where the registration before this one was read, unless an election or perhaps a
    refutation rests on it: of a partition whose ISR changes for years only the last is kept."""
    registration = state.registration
    elected = (
        term.event_id
        for term in takewhile(
            lambda term: term.leader_epoch >= registration.leader_epoch,
            reversed(state.history.terms),
        )
    )
    if not state.history.refutations and registration.event_id not in elected:
        state.sources.pop(registration.event_id, None)
    registration.event_id = state.witness(event)


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
    one with the present ISR, and takes the replicas that leave out of it thereafter
    (KafkaController.onPartitionReassignment). So only who joined just now can be no member.
    """
    before = state.registration
    if fact.partition_epoch is None or before.partition_epoch != fact.partition_epoch - 1:
        return False
    return not set(outsiders) <= {*(before.isr or ()), *state.ever_assigned}
