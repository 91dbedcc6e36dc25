"""What a follower does when its fetch offset is outside the leader's log."""

from dataclasses import dataclass

from replication.protocol.ground.versions import Behaviour


@dataclass(frozen=True, slots=True)
class Reset:
    """action: halt (the broker exits), truncate, restart_at (empty the log there), keep.

    offset: where to truncate or restart, or from where to fetch on.
    """

    action: str
    offset: int


def out_of_range_reset(
    log_end_offset: int,
    leader_log_start_offset: int,
    leader_log_end_offset: int,
    unclean_leader_election: bool,
    behaviour: Behaviour,
) -> Reset:
    """Decides by offsets alone, after asking the leader for its log end and start.

    The leader is asked in the follower's leader epoch, by ListOffsets: who does not lead, or from
    2.1 leads another epoch, answers with an error (fetch_admission.leader_epoch_error), and nothing
    is decided.

    Versions: a follower ahead of its leader truncates; up to 2.0.0 with unclean election disabled
    for the topic it halts its broker instead (KAFKA-7414).
    Followed: halting. Gave way to: truncating. Neither compares epochs, so offsets below the
    leader's end may keep differing (s09_unclean_election.txt, out_of_range_boundaries.txt).
    Leaves unchanged: records below the offset.
    Unknown: nothing.
    """
    if leader_log_end_offset < log_end_offset:
        if not unclean_leader_election and not behaviour.has("survives_out_of_range"):
            return Reset("halt", log_end_offset)
        return Reset("truncate", leader_log_end_offset)
    if leader_log_start_offset > log_end_offset:
        return Reset("restart_at", leader_log_start_offset)
    return Reset("keep", log_end_offset)
