"""Whether Kafka had promised to keep what was lost, and which settings let it be lost."""

from replication.protocol.ground.topic_partition import LeaderTerm, State
from replication.protocol.judgement.loss_cause import BY_DISK, Cause
from replication.protocol.judgement.unseen_terms import truncates_to_high_watermark


def allowed_by(state: State, cause: Cause, tier: str) -> list[tuple[str, str]]:
    """(setting, value) of what let the loss happen, by the names of Kafka's settings."""
    found = []
    if tier == "acknowledged_by_leader":
        found.append(("acks", "1"))
    if cause.election is not None and _permitted(state, cause.election):
        found.append(("unclean.leader.election.enable", "true"))
    needed = state.min_insync_replicas_in(cause.term)
    if cause.name in BY_DISK and needed is not None and len(cause.lossy) >= needed:
        found.append(("min.insync.replicas", str(needed)))
    used = state.settings.inter_broker_version or state.settings.kafka_version
    if cause.name == "truncate_to_high_watermark" and used and truncates_to_high_watermark(state):
        found.append(("inter.broker.protocol.version", used))
    return found


def _permitted(state: State, election: LeaderTerm) -> bool | None:
    """Whether unclean election was allowed then; as set now where that is not known."""
    if election.unclean_permitted is None:
        return state.settings.unclean_leader_election
    return election.unclean_permitted


def contract_of(state: State, cause: Cause, tier: str) -> str:
    """Whether Kafka had promised to keep the records: broken, not_promised or unknown."""
    if tier == "acknowledged_by_leader":
        return "not_promised"
    permitted: bool | None = False
    if cause.election is not None:
        permitted = _permitted(state, cause.election)
    if permitted:
        return "not_promised"
    if cause.name in BY_DISK:
        needed = state.min_insync_replicas_in(cause.term)
        if needed is None:
            return "unknown"
        if len(cause.lossy) >= needed:
            return "not_promised"
    if permitted is None or cause.name == "unknown":
        return "unknown"
    return "broken"
