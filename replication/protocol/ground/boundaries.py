"""Every way in which Kafka's releases differ: the flag, its first releases, its source."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Boundary:
    """One flag and where it turns on.

    first_releases: the first release on each branch that has it, oldest first; none for a remedy.
    Branches after the last one named have it, earlier branches that are not named have not.
    ended_by: the same for its end. inter_broker_version: also needed; None if the code alone
    decides. means: what is true when the flag is on.
    """

    flag: str
    first_releases: tuple[str, ...]
    source: str
    means: str
    inter_broker_version: str | None = None
    ended_by: tuple[str, ...] = ()


BOUNDARIES: tuple[Boundary, ...] = (
    Boundary(
        "high_watermark_counts_caught_up_outsiders",
        ("0.10.2.0",),
        "KAFKA-4485",
        "the leader's high watermark also waits for assigned replicas that are caught up",
    ),
    Boundary(
        "caught_up_by_previous_fetch",
        ("0.10.2.0",),
        "KAFKA-4485",
        "a fetch that reaches the end remembered from earlier fetches counts as caught up",
    ),
    Boundary(
        "leading_on_keeps_followers",
        ("0.9.0.0",),
        "KAFKA-2721",
        "a leader that is re-elected keeps what it knows of its followers' log ends",
    ),
    Boundary(
        "isr_by_time_alone",
        ("0.9.0.0",),
        "KIP-16",
        "ISR membership follows replica.lag.time.max.ms; replica.lag.max.messages is gone",
    ),
    Boundary(
        "leader_epoch_in_record_batches",
        ("0.11.0.0",),
        "KIP-98, KIP-101",
        "record batches carry the leader epoch and replicas cache it",
    ),
    Boundary(
        "truncates_to_leader_end_offset",
        ("0.11.0.0",),
        "KIP-101",
        "a follower asks its leader where its latest epoch ends, and cuts there",
        "0.11.0-IV2",
    ),
    Boundary(
        "last_isr_member_always_kept",
        ("1.1.0",),
        "KAFKA-5083, KAFKA-5642",
        "a dying last ISR member stays in the ISR whatever unclean.leader.election.enable says",
    ),
    Boundary(
        "fetch_answers_high_watermark_after_update",
        ("1.0.0",),
        "KAFKA-5758, undone by KAFKA-7104",
        "a fetch response carries the high watermark from after the fetch it answers",
        ended_by=("1.0.2", "1.1.1", "2.0.0"),
    ),
    Boundary(
        "undefined_epoch_has_no_end",
        ("0.11.0.3", "1.0.2", "1.1.1", "2.0.0"),
        "KAFKA-6857",
        "a leader without epochs answers 'undefined' to a follower without epochs, not its log end",
    ),
    Boundary(
        "truncates_by_common_epoch",
        ("2.0.0",),
        "KIP-279",
        "a follower cuts where its and its leader's logs share the last epoch, in rounds",
        "0.11.0-IV2",
    ),
    Boundary(
        "epoch_end_offset_names_epoch",
        ("2.0.0",),
        "KIP-279",
        "the answer to OffsetsForLeaderEpoch names the epoch its end offset belongs to",
        "2.0-IV0",
    ),
    Boundary(
        "epoch_cached_at_election",
        ("2.0.1", "2.1.0"),
        "KAFKA-7415",
        "a leader caches its epoch when it takes over, not at its first append",
    ),
    Boundary(
        "epoch_before_cache_has_end",
        ("2.0.1", "2.1.0"),
        "LeaderEpochFileCache",
        "an epoch older than the first cached one ends where the first cached one starts",
    ),
    Boundary(
        "retruncates_after_missed_epoch",
        ("2.0.1", "2.1.0"),
        "KAFKA-7164",
        "a follower that missed an epoch truncates again though the leader is the same broker",
    ),
    Boundary(
        "isr_expansion_waits_for_epoch_start",
        ("2.0.1", "2.1.0"),
        "KAFKA-7128",
        "joining the ISR needs a log end at or past the leader epoch's start offset",
    ),
    Boundary(
        "survives_out_of_range",
        ("2.0.1", "2.1.0"),
        "KAFKA-7414",
        "a follower ahead of its leader truncates; before, without unclean election, it halted",
    ),
    Boundary(
        "log_end_is_in_sync",
        ("2.1.0",),
        "KAFKA-7152",
        "a follower at the leader's log end stays in the ISR however long ago it fetched",
    ),
    Boundary(
        "retruncates_on_every_leader_epoch",
        ("2.1.0",),
        "KIP-320",
        "every raise of the leader epoch makes a follower check its log again",
    ),
    Boundary(
        "fetch_carries_leader_epoch",
        ("2.1.0",),
        "KIP-320",
        "requests carry the current leader epoch and are fenced by it, both ways",
        "2.1-IV1",
    ),
    Boundary(
        "latest_offset_waits_for_epoch_start",
        ("2.2.0",),
        "KIP-207",
        "ListOffsets(latest) for clients waits until the high watermark reaches the epoch start",
        "2.2-IV1",
    ),
    Boundary(
        "restart_is_noticed",
        ("2.2.0",),
        "KIP-380",
        "a ZooKeeper controller tells a broker's new life by its broker epoch, and that it failed",
    ),
    Boundary(
        "consumers_may_fetch_from_followers",
        ("2.4.0",),
        "KIP-392",
        "a consumer may read from an in-sync follower, up to that follower's high watermark",
        "2.3-IV1",
    ),
    Boundary(
        "high_watermark_kept_within_log",
        ("2.4.0",),
        "UnifiedLog",
        "truncation lowers the high watermark too, and it never lies below the log start",
    ),
    Boundary(
        "fetch_answers_at_once_for_new_high_watermark",
        ("2.4.0",),
        "KAFKA-8443, KAFKA-9731, removed by KAFKA-9952",
        "a fetch is answered at once when the follower's high watermark is behind",
        ended_by=("2.6.0",),
    ),
    Boundary(
        "high_watermark_reset_by_full_truncation",
        ("2.4.1", "2.5.0"),
        "KAFKA-9491",
        "a log emptied and restarted at an offset has its high watermark there too",
    ),
    Boundary(
        "lag_limit_is_30_seconds",
        ("2.5.0",),
        "KIP-537",
        "replica.lag.time.max.ms is 30000 by default; before, 10000",
    ),
    Boundary(
        "empty_epoch_dropped_at_log_end",
        ("2.6.1", "2.7.0"),
        "KAFKA-10706",
        "a truncation that cuts nothing still drops a cached epoch that starts at the log end",
    ),
    Boundary(
        "maximal_isr",
        ("2.7.0",),
        "KIP-497",
        "the high watermark counts proposed ISR members before the controller confirms them",
        "2.7-IV2",
    ),
    Boundary(
        "leader_answers_diverging_epoch",
        ("2.7.0",),
        "KAFKA-10554",
        "a leader answers a fetch whose last epoch does not fit with the diverging epoch",
        "2.7-IV1",
    ),
    Boundary(
        "diverging_fetch_is_no_progress",
        ("2.7.2", "2.8.1", "3.0.0"),
        "KAFKA-13141",
        "a fetch answered with a diverging epoch does not move the follower's state at the leader",
    ),
    Boundary(
        "log_start_checked_before_divergence",
        ("2.7.2", "2.8.1", "3.0.0"),
        "KAFKA-12996",
        "a fetch below the log start is out of range even if its last epoch diverges",
    ),
    Boundary(
        "truncates_on_fetch",
        ("2.8.0",),
        "KAFKA-10554",
        "a follower that knows its last epoch fetches at once and cuts when the answer diverges",
        "2.7-IV1",
    ),
    Boundary(
        "isr_commit_raises_high_watermark",
        ("3.1.0",),
        "KAFKA-13091",
        "a committed ISR change raises the high watermark at once, not at the next append or fetch",
    ),
    Boundary(
        "acks_all_by_default",
        ("3.0.0",),
        "KIP-679",
        "producers ask for acks=all and are idempotent by default; before, acks=1",
    ),
    Boundary(
        "unclean_leader_is_recovering",
        ("3.2.0",),
        "KIP-704",
        "after an unclean election the ISR stays at one member until the leader has recovered",
        "3.2-IV0",
    ),
    Boundary(
        "kraft_heeds_unclean_setting",
        ("3.9.0",),
        "KAFKA-12670",
        "a KRaft controller elects by unclean.leader.election.enable; before, only the tool does",
    ),
    Boundary(
        "isr_needs_unfenced_broker",
        ("3.3.0",),
        "KIP-841",
        "leader and controller keep a fenced, stopping or dead broker out of the ISR",
    ),
    Boundary(
        "isr_request_ahead_is_not_controller",
        ("3.3.0",),
        "KAFKA-14154",
        "an ISR change asked for in an epoch above the controller's gets NOT_CONTROLLER",
    ),
    Boundary(
        "ineligible_replica_has_error",
        ("3.3.0",),
        "KIP-841",
        "a leader asks with AlterPartition version 2, whose error INELIGIBLE_REPLICA it knows",
        "2.8-IV0",
    ),
    Boundary(
        "preferred_read_replica_is_in_isr",
        ("3.3.2", "3.4.0"),
        "KAFKA-14372",
        "a leader sends a consumer to members of the ISR only; before, to whoever has the offset",
    ),
    Boundary(
        "truncates_before_high_watermark",
        ("3.4.1", "3.5.0"),
        "KAFKA-14704",
        "a diverging answer makes a follower cut before it takes any high watermark",
    ),
    Boundary(
        "isr_needs_broker_epoch",
        ("3.5.0",),
        "KIP-903",
        "a fetch from an earlier life of a broker does not let it into the ISR (KRaft)",
        "3.5-IV1",
    ),
    Boundary(
        "high_watermark_counts_eligible_only",
        ("3.6.0",),
        "KAFKA-15021",
        "caught-up replicas outside the ISR count only if they may join it",
    ),
    Boundary(
        "isr_shrink_keeps_leader_epoch",
        ("3.6.0",),
        "KAFKA-15021",
        "in KRaft an ISR shrink no longer raises the leader epoch",
        "3.6-IV0",
    ),
    Boundary(
        "high_watermark_waits_for_min_insync_replicas",
        ("3.7.0",),
        "KAFKA-15583",
        "the leader's high watermark waits while the committed ISR is below min.insync.replicas",
    ),
    Boundary(
        "min_insync_replicas_capped",
        ("3.7.0",),
        "KAFKA-15583",
        "the min.insync.replicas that counts is at most the replication factor",
    ),
    Boundary(
        "reassignment_waits_for_whole_target",
        ("3.8.0",),
        "KAFKA-15665",
        "in KRaft a reassignment ends once all its target is in the ISR, not just what it adds",
    ),
    Boundary(
        "reassignment_waits_for_added_alone",
        ("4.3.0",),
        "KAFKA-19975",
        "in KRaft one that takes away no more than it adds ends once what it adds is in the ISR",
    ),
    Boundary(
        "late_fetch_response_dropped",
        ("3.9.1", "4.0.1", "4.1.0"),
        "KAFKA-18991",
        "a follower drops a fetch response that it asked for in an earlier leader epoch",
    ),
    Boundary(
        "eligible_leader_replicas_known",
        ("4.0.0",),
        "KIP-966",
        "the controller can remember replicas outside the ISR that hold all committed records",
        "4.0-IV1",
    ),
    Boundary(
        "last_known_leader_must_be_active",
        ("4.1.0",),
        "KAFKA-19522",
        "a last known leader is elected once it is unfenced; before, at once, though it is away",
    ),
)

REMEDIES: tuple[Boundary, ...] = (
    Boundary(
        "leader_forgets_followers_after_missed_epoch",
        (),
        "docs/kafka_leader_missed_epoch.md",
        "a leader that is re-elected forgets its followers' log ends if an epoch lies between",
    ),
    Boundary(
        "leader_forgets_followers_at_every_epoch",
        (),
        "docs/kafka_leader_missed_epoch.md",
        "a leader that is re-elected forgets its followers' log ends in every new epoch",
    ),
)
"""Changes that no release holds, to be tried in the executable machine: `with_remedy`."""
