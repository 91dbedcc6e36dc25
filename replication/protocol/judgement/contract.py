"""Whether Kafka had promised to keep what was lost, and which settings let it be lost."""

from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import LeaderTerm, State
from replication.protocol.judgement.isr_members import may_have_led_without
from replication.protocol.judgement.loss_cause import BY_CUT, BY_DISK, Cause
from replication.protocol.judgement.lost_record import Lost, never_had
from replication.protocol.judgement.reference import all_logs_are_covered, log_is_covered
from replication.protocol.judgement.term_starts import UNSURE_KINDS
from replication.protocol.judgement.unseen_terms import never_began, truncates_to_high_watermark


def allowed_by(state: State, cause: Cause, tier: str, record: Span) -> list[tuple[str, str]]:
    """(setting, value) of what let the loss happen, by the names of Kafka's settings."""
    found = []
    if tier == "acknowledged_by_leader" and not _may_be_committed(state, cause, record):
        found.append(("acks", "1"))
    if cause.election is not None and state.unclean_permitted_in(cause.election):
        found.append(("unclean.leader.election.enable", "true"))
    needed = state.min_insync_replicas_in(cause.term)
    if cause.name in BY_DISK and needed is not None and len(cause.lossy) >= needed:
        found.append(("min.insync.replicas", str(needed)))
    used = state.settings.inter_broker_version or state.settings.kafka_version
    if cause.name == "truncate_to_high_watermark" and used and truncates_to_high_watermark(state):
        found.append(("inter.broker.protocol.version", used))
    return found


def contract_of(state: State, cause: Cause, tier: str, record: Span) -> str:
    """Whether Kafka had promised to keep the records: broken, not_promised or unknown.

    What a leader answered for at acks=1 may be committed as well.
    """
    if tier == "acknowledged_by_leader" and not _may_be_committed(state, cause, record):
        return "not_promised"
    permitted: bool | None = False
    if cause.election is not None:
        permitted = state.unclean_permitted_in(cause.election)
    if permitted:
        return "not_promised"
    if cause.name in BY_DISK:
        needed = state.min_insync_replicas_in(cause.term)
        if needed is None:
            return "unknown"
        if len(cause.lossy) >= needed:
            return "not_promised"
        if tier == "acknowledged_by_leader":
            return "unknown"
        if len(cause.lossy | _may_have_lost_it(state, record.first_offset)) >= needed:
            return "unknown"
    if permitted is None or cause.name == "unknown":
        return "unknown"
    if cause.term is None and _may_be_by_election(state):
        return "unknown"
    return "unknown" if tier == "acknowledged_by_leader" else "broken"


def _may_be_by_election(state: State) -> bool:
    """Whether, where nothing tells which leader was the first without the records, one was elected
    beside the ISR that the settings permitted, or may have been."""
    return any(
        term.election_kind in UNSURE_KINDS and state.unclean_permitted_in(term) is not False
        for term in state.history.terms
    )


def _may_be_committed(state: State, cause: Cause, record: Span) -> bool:
    """Whether what went with a leader's disk may have been: it may have been alone in the ISR,
    where it commits by itself; from 3.7 on only as many as acks=all needs do (KAFKA-15583).

    Nor does anything tell of what went in a way that nobody knows, or by an unclean election that
    was not permitted, or may not have been.
    """
    flags, needed = state.behaviour(), state.min_insync_replicas_in(cause.term)
    if state.is_wholly_traced() or _was_not_reached(state, cause, record):
        return False
    if _a_member_lacked(state, record):
        return False
    if cause.name == "unknown":
        return True
    if cause.election is not None and not state.unclean_permitted_in(cause.election):
        return True
    if cause.name == "acks_one_failover" and may_have_led_without(
        state, cause.term, record.first_offset
    ):
        return True
    if cause.name not in BY_DISK:
        return cause.name in BY_CUT.values()
    if flags is None or not flags.has("high_watermark_waits_for_min_insync_replicas"):
        return True
    if cause.isr is None or needed is None or len(cause.isr) >= needed:
        return True
    assigned = state.settings.assigned_replicas or ()
    lost = Lost(record, "acknowledged_by_leader", None)
    # Who left the ISR was not waited for any more, as long as enough stayed.
    left = state.registration.outside.keys()
    for isr in [t.isr_before or assigned for t in _since(state, record, cause)]:
        lacking = {member for member in isr if never_had(state, member, lost)}
        if lacking <= left and len(isr) - len(lacking) >= needed:
            return True
    return False


def _since(state: State, record: Span, cause: Cause) -> list[LeaderTerm]:
    """The terms from the one in which it was written until one led without it."""
    return [
        t
        for t in state.history.terms
        if (record.leader_epoch is None or t.leader_epoch >= record.leader_epoch)
        and (cause.term is None or t.order < cause.term.order)
        and not never_began(state, t)
    ]


def _was_not_reached(state: State, cause: Cause, record: Span) -> bool:
    """Whether no high watermark had come to it: those of all who led from its epoch on, until one
    led without it, ended at or below it."""
    if cause.term is None or record.leader_epoch is None:
        return False
    led = [
        t
        for t in state.history.terms
        if t.leader_epoch >= record.leader_epoch and t.order < cause.term.order
    ]
    marks = [t.end_high_watermark for t in led if not never_began(state, t)]
    return bool(marks) and all(m is not None and m <= record.first_offset for m in marks)


def _a_member_lacked(state: State, record: Span) -> bool:
    """Whether a member without which no ISR ever was never had it: nothing has committed it."""
    terms = state.history.terms
    if not terms or terms[0].leader_epoch or not terms[0].recorded:
        return False
    if not (all_logs_are_covered(state) or state.covered("controller_history")):
        return False
    lost = Lost(record, "acknowledged_by_leader", None)
    always = set(terms[0].isr or ()) - state.registration.outside.keys()
    return any(never_had(state, member, lost) for member in always)


def _may_have_lost_it(state: State, offset: int) -> frozenset[int]:
    """Who may have lost the record as well: back from a stop that nothing shows to be clean, with
    less, and with nothing to tell what it had; or one that held replicas and of whose lines some
    may be missing."""
    return frozenset(
        number
        for number in state.ever_assigned | state.replicas.keys()
        if not state.is_traced(number)
        and (_came_back_without(state, number, offset) or not log_is_covered(state, number))
    )


def _came_back_without(state: State, number: int, offset: int) -> bool:
    replica = state.replicas.get(number)
    back = None if replica is None else replica.came_back_with
    return back is not None and back <= offset
