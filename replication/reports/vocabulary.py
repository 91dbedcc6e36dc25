"""The outward contract's codes in plain words, for text and page alike."""

from collections.abc import Sequence
from typing import Any

from replication.protocol.judgement.survival import lost_sides

INVARIANT_WORDS = {
    "committed_records_survive": "committed records",
    "acknowledged_records_survive": "acknowledged records",
    "log_matching": "replicas agree",
}
TIER_WORDS = {
    "consumed": "that a consumer was given",
    "acknowledged_by_isr": "acknowledged with acks=all",
    "committed": "committed, acknowledged with acks=1 or not known to be",
    "acknowledged_by_leader": "acknowledged with acks=1 only",
    "never_acknowledged": "never acknowledged",
    "undetermined": "committed; whether a producer was told of them is not known",
}
STATUS_WORDS = {
    "lost": "No replica has them any more",
    "recoverable": "The leader does not have them; a copy still does",
    "recovered": "An earlier leader did not have them; they are back",
    "at_risk": "A replica without them could be elected",
    "undetermined": "The leader does not have them; whether another replica does is not known",
}
CAUSE_WORDS = {
    "unclean_election": "an unclean election made a replica leader that did not have them",
    "truncate_to_high_watermark": "a follower cut its log to its own high watermark, then led "
    "(before KIP-101)",
    "storage_loss": "a broker came back with less on its disk than it had held",
    "last_replica_standing": "the ISR had shrunk below min.insync.replicas, and the last member "
    "lost its tail (KIP-966)",
    "acks_one_failover": "another broker was made leader before it had copied them; acks=1 "
    "does not wait for that",
    "divergence_overwrite": "the leader's log was overwritten by another line of records",
    "out_of_range_reset": "a follower reset its log by offset alone",
    "early_isr_join": "a replica joined the ISR before it had everything (KAFKA-7128)",
    "premature_high_watermark": "the high watermark passed records that a member of the ISR lacked",
    "log_dir_failure": "a log directory failed",
    "unknown": "the cause is not known",
}
CONTRACT_WORDS = {
    "broken": "Kafka had promised to keep them.",
    "not_promised": "Kafka's settings here did not promise to keep them.",
    "unknown": "Whether Kafka had promised to keep them is not known.",
}


def offsets(first: int, end: int) -> str:
    """An offset range in words; the end is exclusive."""
    return f"offset {first}" if end == first + 1 else f"offsets {first}..{end - 1}"


def runs_of_offsets(runs: Sequence[Sequence[int | None]], most: int = 4) -> str:
    """Some ranges of offsets, their ends exclusive, None where nobody knows one: `offsets 3, 5..7
    and 2 ranges more`."""
    closed = [(a or 0, b) for a, b in runs[:most] if b is not None]
    each = [f"{a}" if b == a + 1 else f"{a}..{b - 1}" for a, b in closed]
    many = len(each) > 1 or any(".." in x for x in each)
    told = [f"offset{'s' if many else ''} {', '.join(each)}"] if each else []
    told += [f"any record from offset {a} on" for a, b in runs[:most] if b is None]
    more = len(runs) - most
    told += [f"{more} range{'' if more == 1 else 's'} more"] if more > 0 else []
    return " and ".join(told)


def name(row: dict[str, Any]) -> str:
    """The partition's name as Kafka prints it."""
    return f"{row['topic']}-{row['partition']}"


def sides(verdict: dict[str, Any]) -> tuple[str, str]:
    """What the two histories behind an UNKNOWN come to; the one that keeps the invariant first."""
    if verdict["invariant"] == "log_matching":
        return "The replicas agree", "Two replicas differ"
    if not verdict["histories"].get("lost_in_both"):
        return "Nothing is lost", "A record is lost"
    kept, broken = lost_sides(verdict["invariant"])
    return kept.capitalize(), broken.capitalize()
