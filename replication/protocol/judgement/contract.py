"""Whether Kafka had promised to keep what was lost, and which settings let it be lost."""

from replication.protocol.ground.events import UNCLEAN_KINDS
from replication.protocol.ground.topic_partition import LeaderTerm, State
from replication.protocol.judgement.cause import BY_DISK, Cause
from replication.protocol.rules.produce_admission import effective_min_insync_replicas


def allowed_by(
    state: State, cause: Cause, tier: str, term: LeaderTerm | None, *, may_be_committed: bool
) -> list[tuple[str, str]]:
    """(setting, value) of what let the loss happen, by the names of Kafka's settings."""
    found = []
    if tier == "acknowledged_by_leader" and not may_be_committed:
        found.append(("acks", "1"))
    flags = state.behaviour()
    heeded = (
        flags is None or flags.controller != "kraft" or flags.has("kraft_heeds_unclean_setting")
    )
    if _is_unclean(cause) and heeded and _unclean_is_permitted(state, cause, term):
        found.append(("unclean.leader.election.enable", "true"))
    needed = _needed(state, term)
    if cause.name in BY_DISK and needed is not None and len(cause.lossy) >= needed:
        found.append(("min.insync.replicas", str(state.min_insync_replicas_in(term))))
    used = state.settings.inter_broker_version or state.settings.kafka_version
    by_rule = flags is not None and flags.truncation == "truncate_to_high_watermark"
    if cause.name == "truncate_to_high_watermark" and used and by_rule:
        found.append(("inter.broker.protocol.version", used))
    return found


def contract_of(
    state: State, cause: Cause, tier: str, term: LeaderTerm | None, *, may_be_committed: bool
) -> str:
    """Whether Kafka had promised to keep the records: broken, not_promised or unknown.

    may_be_committed: some history commits them before they are lost; then what a leader answered at
    acks=1 may have been promised all the same.
    """
    if tier == "acknowledged_by_leader" and not may_be_committed:
        return "not_promised"
    if cause.name == "unknown":
        return "unknown"
    if _is_unclean(cause):
        permitted = _unclean_is_permitted(state, cause, term)
        if permitted is not False:
            return "not_promised" if permitted else "unknown"
    needed = _needed(state, term)
    if cause.name in BY_DISK:
        if needed is None:
            return "unknown"
        if len(cause.lossy) >= needed:
            return "not_promised"
    if cause.perhaps and len(cause.lossy | cause.perhaps) >= (needed or 1):
        return "unknown"  # So many disks may have lost it that nothing was promised.
    return "unknown" if tier == "acknowledged_by_leader" else "broken"


def _is_unclean(cause: Cause) -> bool:
    """Whether it is, or came with, an election of a replica that was not in sync."""
    by_window = cause.window is not None and cause.window.kind in UNCLEAN_KINDS
    return by_window or cause.name == "unclean_election"


def _needed(state: State, term: LeaderTerm | None) -> int | None:
    """How many members of the ISR acks=all needed before a leader was elected; None where nothing
    tells."""
    needed, flags = state.min_insync_replicas_in(term), state.behaviour()
    told = [
        r.assigned_replicas
        for r in state.story.recorded
        if r.assigned_replicas and (term is None or r.leader_epoch < term.leader_epoch)
    ]
    assigned = told[-1] if told else state.settings.assigned_replicas
    if needed is None or flags is None or not assigned:
        return needed
    return effective_min_insync_replicas(needed, len(assigned), flags)


def _unclean_is_permitted(state: State, cause: Cause, term: LeaderTerm | None) -> bool | None:
    """Whether unclean election was allowed when it happened; None where nothing tells."""
    if term is None:
        return state.settings.unclean_leader_election
    return state.unclean_permitted_in(term)
