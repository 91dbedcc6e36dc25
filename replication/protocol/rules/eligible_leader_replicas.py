"""Which replicas outside the ISR surely hold every committed record (KIP-966)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Eligible:
    """replicas: the ELR. last_known_leader: remembered once ISR and ELR are empty."""

    replicas: frozenset[int]
    last_known_leader: int | None


def eligible_leader_replicas(
    old_isr: frozenset[int],
    new_isr: frozenset[int],
    old_eligible: frozenset[int],
    min_insync_replicas: int,
    *,
    unclean_shutdown: frozenset[int] = frozenset(),
    old_leader: int | None = None,
    new_leader: int | None = None,
    last_known_leader: int | None = None,
) -> Eligible:
    """Decides the ELR after an ISR change. min_insync_replicas is the effective one.

    unclean_shutdown: replicas whose brokers just registered without a clean stop.

    Versions: metadata version 4.0-IV1 with the feature eligible.leader.replicas.version=1 (off by
    default in 4.0, on for new clusters from 4.1).
    Followed: keeping only the last ISR member (s10_last_replica_standing.txt). Gave way to:
    nothing. It is safe because the high watermark does not move below min.insync.replicas from 3.7.
    Leaves unchanged: members that are merely fenced. A change of min.insync.replicas clears the
    ELR; that is the caller's to say, with an empty old_eligible.
    Unknown: the mode that remembers several last known replicas, a builder switch off by default.
    """
    if len(new_isr) >= min_insync_replicas:
        return Eligible(frozenset(), None)
    replicas = (old_eligible | old_isr) - new_isr - unclean_shutdown
    remembered = last_known_leader
    if new_leader is not None:
        remembered = None
    elif not new_isr and remembered is None:
        remembered = old_leader
    return Eligible(replicas, remembered)
