"""A leader's steps: how it takes over, what it appends, which fetches it sees."""

from bisect import bisect_left

from replication.protocol.folding import conformance
from replication.protocol.folding.steps.promises import promise_by_line
from replication.protocol.folding.steps.replica import (
    append,
    epoch_rules,
    lives_on,
    replica_of,
    take_log_end,
)
from replication.protocol.folding.steps.terms import end_term, order_of, term_of
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.rules.become_leader import become_leader


def became_leader(state: State, event: ev.Event, fact: ev.BecameLeader) -> None:
    """A broker takes over, goes on into a later epoch, or says again that it leads."""
    replica = replica_of(state, fact.replica)
    leads = replica.role == "leader"
    again = leads and replica.leader_epoch == fact.leader_epoch
    _refute_second_leader(state, event, fact)
    if not again:
        end_term(state, replica, "re_elected")
    occurrence = _occurrence(replica, fact, again)
    if not again:
        take_log_end(state, replica, event, fact.log_end_offset)
    promise_by_line(state, replica, event, fact)
    loaded = replica.log.log_end_offset if _leads_from_load(state, replica, fact) else None
    lives_on(state, replica)
    replica.role, replica.clean_start = "leader", None
    replica.leader = fact.replica
    replica.leader_epoch = fact.leader_epoch
    replica.led_in_epoch = True
    replica.term_occurrence = occurrence
    if not again:
        known = fact.log_end_offset if fact.log_end_offset is not None else loaded
        _begin_term(state, event, fact, replica, known, leads)


def _leads_from_load(state: State, replica: Replica, fact: ev.BecameLeader) -> bool:
    """Whether it leads with what it loaded, with nothing fetched in between: its lines tell."""
    told = any(state.covered(s, replica.replica) for s in ("broker_log", "replica_trace"))
    untouched = replica.role is None and replica.just_started and replica.tail_known
    return told and untouched and not _was_named_since(state, replica, fact.leader_epoch)


def _was_named_since(state: State, replica: Replica, leader_epoch: int) -> bool:
    """Whether it was named for an epoch in between, and may have led in it: of the files of its
    lines one may reach back to its start, and another not."""
    since = -1 if replica.leader_epoch is None else replica.leader_epoch
    return any(
        term.leader == replica.replica and since < term.leader_epoch < leader_epoch
        for term in state.history.terms
    )


def _occurrence(replica: Replica, fact: ev.BecameLeader, again: bool) -> int:
    """How often it has led in this epoch before; a line said again is no other time."""
    if replica.leader_epoch != fact.leader_epoch:
        return 0
    return replica.term_occurrence + (not again and replica.led_in_epoch)


def _begin_term(
    state: State,
    event: ev.Event,
    fact: ev.BecameLeader,
    replica: Replica,
    known: int | None,
    leads: bool,
) -> None:
    """Notes the term that begins at a log end (None: not known). leads: it led until now."""
    if not leads:
        # A leader that is re-elected keeps what it knows of its followers (become_leader).
        replica.remote_log_end_offsets = {}
    replica.just_started = False
    _note_start(state, event, fact, replica.term_occurrence, known, leads)
    flags = state.behaviour(fact.replica)
    if known is not None and (flags is None or flags.has("leader_epoch_in_record_batches")):
        taken = become_leader(
            fact.leader_epoch, known, replica.epoch_entries, leads, epoch_rules(state, replica)
        )
        replica.epoch_entries = taken.epoch_entries


def _note_start(
    state: State,
    event: ev.Event,
    fact: ev.BecameLeader,
    occurrence: int,
    known: int | None,
    leads: bool,
) -> None:
    term = term_of(state, fact.leader_epoch, fact.replica, occurrence)
    if term.start_offset is None:
        term.start_offset = known
        state.history.note_start(term, state.witness(event))
        term.started_at = state.applied
        term.high_watermark = fact.high_watermark
        term.led_until_now_in = fact.previous_leader_epoch
    if term.observed_at is None:
        term.observed_at = event.observed_at


def _refute_second_leader(state: State, event: ev.Event, fact: ev.BecameLeader) -> None:
    terms = state.history.terms
    for term in terms[bisect_left(terms, (fact.leader_epoch, -1, -1), key=order_of) :]:
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


def leader_appended(state: State, event: ev.Event, fact: ev.LeaderAppended) -> None:
    """Records of the leader's own epoch where the line names no other."""
    replica = replica_of(state, fact.replica)
    leader_epoch = fact.leader_epoch if fact.leader_epoch is not None else replica.leader_epoch
    append(state, replica, fact.first_offset, fact.end_offset, leader_epoch, fact.content)


def fetch_requested(state: State, event: ev.Event, fact: ev.FetchRequested) -> None:
    """A fetch tells its leader where the follower's log ends, where the rules let it count."""
    moves = conformance.leaders.fetch_requested(state, event, fact)
    leader = replica_of(state, fact.leader)
    if moves:
        leader.remote_log_end_offsets[fact.replica] = fact.fetch_offset
