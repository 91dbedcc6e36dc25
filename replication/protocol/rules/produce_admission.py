"""Whether a leader takes a produce request at all."""

from replication.protocol.ground.versions import Behaviour


def produce_admission(acks: str, isr_size: int, min_insync_replicas: int) -> str | None:
    """Decides the error before anything is written, None to append.

    min_insync_replicas is the effective one; isr_size counts the committed ISR.

    Shown by not_enough_replicas_after_append.txt.

    Versions: since min.insync.replicas exists (0.8.2).
    Followed: nothing. Gave way to: nothing.
    Leaves unchanged: the log when refused: such a record is nowhere.
    Unknown: nothing.
    """
    if acks == "all" and isr_size < min_insync_replicas:
        return "NOT_ENOUGH_REPLICAS"
    return None


def effective_min_insync_replicas(
    min_insync_replicas: int, replication_factor: int, behaviour: Behaviour
) -> int:
    """min.insync.replicas as the rules use it: capped by the replication factor from 3.7."""
    if behaviour.has("min_insync_replicas_capped"):
        return min(min_insync_replicas, replication_factor)
    return min_insync_replicas
