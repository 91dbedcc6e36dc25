"""Truncation before leader epochs: down to one's own high watermark."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a follower's log must end. finished False: ask the leader again after the cut.

    to_offset may lie at or past the log end: nothing is cut. rule: the deciding rule's name.
    """

    to_offset: int
    finished: bool
    rule: str
    because: str


def truncate_to_high_watermark(high_watermark: int) -> Cut:
    """Decides where a new follower cuts: what it knows to be committed stays.

    Versions: 0.8 to 0.10.2, and any release that speaks below 0.11.0-IV2. Later rules fall back
    to it where a replica knows no leader epoch, or its leader cannot answer.
    Followed: nothing. Gave way to: truncate_to_leader_end_offset (KIP-101), because a follower
    learns of a commitment one fetch late and so cuts committed records (s01_kip_101_loss.txt), or
    keeps what the leader never had (s02_kip_101_divergence.txt).
    Leaves unchanged: records below the high watermark, whatever the leader has there.
    Unknown: nothing.
    """
    return Cut(
        high_watermark,
        True,
        "truncate_to_high_watermark",
        f"its own high watermark is {high_watermark}",
    )
