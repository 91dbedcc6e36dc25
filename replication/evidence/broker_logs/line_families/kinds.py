"""Per kind of line the fields that its readers ask for: a family of the kind gives them these names.

A field's name is all that joins a wording to its readers: one that no reader asks for is a number
that nobody sees. A family that names one, or lacks one that its kind needs, is refused when it is
made. `tests/evidence/test_fields_of_kinds.py` holds the readers to the same table.
"""

from collections.abc import Iterable
from typing import NamedTuple

REPLICA_LISTS = (
    "isr", "replicas", "adding", "removing", "elr", "last_known_elr", "live", "from_isr", "to_isr",
    "new", "deleted", "bounced", "all_live", "isr_before", "isr_after", "elr_before", "elr_after",
    "last_known_elr_before", "last_known_elr_after",
)  # fmt: skip
LEADERS = ("leader", "previous_leader", "leader_before", "leader_after")
NAMES_OF_BROKERS = (*REPLICA_LISTS, *LEADERS, "replica", "follower")
"""The fields that name brokers, one or several."""

OF_ANY_KIND = frozenset(
    ("topic_id", "directory", "leader_epoch", "partition_epoch", "controller_epoch",
     "log_end_offset", *NAMES_OF_BROKERS)
)  # fmt: skip
"""Asked of every line: which log and topic it is about, how far epochs and the log have come, and
which brokers it names."""

FATAL_KINDS = frozenset(
    ("process_failed", "all_log_dirs_failed", "quorum_unreachable", "truncation_refused")
)
"""What a process prints that ends itself: after it the broker is down."""


class KindFields(NamedTuple):
    """needs: without these a line of the kind tells nothing, so every wording gives them. uses:
    readers ask for them where a wording prints them. kept: no reader asks for them; they tell one
    line from another, and `observations` hands them on as printed."""

    needs: frozenset[str]
    uses: frozenset[str]
    kept: frozenset[str]


def misnamed(kind: str, names: Iterable[str]) -> str:
    """What is wrong with the names that a wording gives its fields, in words; else nothing."""
    known = FIELDS.get(kind)
    if known is None:
        return f"`{kind}` is no kind that anybody reads: name its fields and readers in kinds.py"
    strange = ", ".join(sorted(set(names).difference(OF_ANY_KIND, *known)))
    asked = ", ".join(sorted(known.needs | known.uses)) or "for nothing of its own"
    text = (
        f"no reader of `{kind}` asks for {strange} (they ask: {asked}). Name the group so, or "
        "leave it unnamed; a new field belongs into kinds.py with its reader"
    )
    return text if strange else ""


def lacking(kind: str, names: Iterable[str]) -> str:
    """Which fields a wording lacks without which its line tells nothing, in words; else nothing."""
    known = FIELDS.get(kind)
    without = ", ".join(sorted(known.needs.difference(names))) if known else ""
    return f"every wording of `{kind}` gives {without}: this one does not" if without else ""


def _kind(needs: str = "", uses: str = "", kept: str = "") -> KindFields:
    return KindFields(frozenset(needs.split()), frozenset(uses.split()), frozenset(kept.split()))


FIELDS: dict[str, KindFields] = {
    "all_log_dirs_failed": _kind("directory"),
    "became_controller": _kind(),
    "became_follower": _kind(
        "leader_epoch",
        "leader previous_leader_epoch partition_epoch log_end_offset high_watermark",
    ),
    "became_leader": _kind(
        "leader_epoch",
        "previous_leader previous_leader_epoch partition_epoch log_end_offset high_watermark",
    ),
    "become_follower_failed": _kind("leader"),
    "broker_epoch_granted": _kind("broker_epoch"),
    "broker_shutdown_granted": _kind(kept="broker how"),
    "broker_unclean_shutdown": _kind(kept="partitions"),
    "clean_shutdown_found": _kind(kept="logs"),
    "cluster_id": _kind("cluster_id", kept="incarnation"),
    "cluster_settings_changed": _kind("settings"),
    "controller_resigned": _kind(),
    "corrupt_index_found": _kind(),
    "corrupt_segment_deleted": _kind(uses="to_offset"),
    "corruption_found": _kind(uses="to_offset", kept="segment"),
    "disk_error": _kind("operation directory"),
    "epoch_entries_cleared": _kind("end offset", kept="entries"),
    "epoch_entry_added": _kind("leader_epoch start_offset", "conflicting", "previous_leader_epoch"),
    "epoch_entry_refused": _kind(kept="reason start_offset"),
    "fenced": _kind(),
    "fetch_failed": _kind(
        "fetch_offset", kept="last_fetched_epoch log_start_offset session_epoch session_id"
    ),
    "fetch_offset_mismatch": _kind("fetch_offset log_end_offset"),
    "fetch_offset_reset": _kind("to from_offset to_offset", "leader", "full"),
    "fetch_out_of_range": _kind(uses="leader fetch_offset", kept="reset_to"),
    "fetch_processing_failed": _kind("fetch_offset"),
    "fetch_response_received": _kind(kept="bytes high_watermark"),
    "fetcher_added": _kind(kept="fetch_offset"),
    "fetcher_removed": _kind(),
    "fetching_failed": _kind(),
    "follower_appended": _kind(kept="bytes"),
    "follower_log_end_recorded": _kind("replica log_end_offset", kept="log_start_offset"),
    "high_watermark_loaded": _kind("high_watermark"),
    "high_watermark_missing": _kind(),
    "high_watermark_regressed": _kind("from_high_watermark to_high_watermark"),
    "high_watermark_set": _kind("high_watermark", "replica"),
    "invalid_records_found": _kind(uses="to_offset", kept="byte_offset segment"),
    "isr_changed_by_leader": _kind("isr partition_epoch"),
    "isr_expanded": _kind("to_isr", "from_isr"),
    "isr_shrink_proposed": _kind("to_isr", "from_isr", "high_watermark out_of_sync"),
    "isr_update_refused": _kind(kept="reason"),
    "isr_updated": _kind("isr partition_epoch"),
    "kafka_version": _kind("version"),
    "last_isr_retained": _kind(),
    "leader_and_isr_ignored": _kind(kept="current_leader_epoch"),
    "leader_and_isr_received": _kind(
        "leader leader_epoch",
        "partition_epoch isr replicas elr last_known_elr recovering",
        "is_new",
    ),
    "leader_and_isr_sent": _kind(
        "leader leader_epoch",
        "partition_epoch isr replicas elr last_known_elr recovering",
        "is_new role",
    ),
    "leader_elected": _kind("topic_id how leader", kept="previous"),
    "leader_high_watermark_updated": _kind("to_high_watermark", "from_high_watermark"),
    "leader_recovered": _kind(),
    "leader_selected": _kind("leader", kept="selector"),
    "leadership_cached": _kind(
        "leader leader_epoch", "partition_epoch isr replicas elr last_known_elr recovering"
    ),
    "leadership_kept": _kind(kept="role is_new high_watermark recovering"),
    "log_appended": _kind("first_offset end_offset", kept="crcs last_offset"),
    "log_created": _kind(uses="settings"),
    "log_deleted": _kind(),
    "log_dir_failed": _kind(),
    "log_loaded": _kind("log_end_offset", "log_start_offset", "segments"),
    "log_marked_deleted": _kind(),
    "log_marked_stray": _kind(kept="reason"),
    "log_replaced": _kind(),
    "log_start_above_high_watermark": _kind("log_start_offset high_watermark"),
    "log_start_advanced": _kind("log_start_offset", "reason"),
    "offline_directories_partitions": _kind("broker", kept="directory_id partitions"),
    "offsets_out_of_order": _kind(),
    "partition_assigned": _kind("replicas"),
    "partition_changed": _kind(
        "partition_epoch_after",
        "leader_before leader_after leader_epoch_after isr_before isr_after replicas_after "
        "elr_before elr_after last_known_elr_before last_known_elr_after recovering_after",
        "unclean partition_epoch_before leader_epoch_before replicas_before recovering_before",
    ),
    "partition_created": _kind(
        "replicas isr leader leader_epoch partition_epoch", "elr last_known_elr recovering"
    ),
    "partition_state_change_failed": _kind("to_state", kept="from_state"),
    "partition_state_changed": _kind(
        "from_state",
        "leader leader_epoch partition_epoch isr replicas recovering",
        "to_state",
    ),
    "process_failed": _kind("reason"),
    "process_signalled": _kind(kept="signal"),
    "process_started": _kind(),
    "quorum_candidate": _kind("controller_epoch"),
    "quorum_unreachable": _kind(),
    "replica_created": _kind("topic_id"),
    "replica_loaded": _kind("high_watermark"),
    "replica_removed": _kind(),
    "replica_removed_from_isr": _kind("replica"),
    "role_change_started": _kind(kept="role"),
    "segment_recovered": _kind(kept="segment"),
    "segments_deleted": _kind("reason", "base_offsets limit"),
    "server_started": _kind(),
    "server_starting": _kind(),
    "server_state_changed": _kind("state"),
    "settings": _kind("values"),
    "stopped_cleanly": _kind(),
    "stopping": _kind(),
    "tiered_segment_copied": _kind("segment"),
    "tiered_segment_deleted": _kind("reason"),
    "topic_created": _kind("topic_id"),
    "topic_removed": _kind("topic_id"),
    "topic_settings_changed": _kind("settings"),
    "truncated": _kind("to_offset", "log_end_offset leader"),
    "truncated_below_high_watermark": _kind("to_offset high_watermark"),
    "truncated_fully": _kind("to_offset", kept="log_start_offset"),
    "truncation_reason": _kind(
        "leader", "leader_epoch reason end_offset to_offset", "completed high_watermark"
    ),
    "truncation_refused": _kind("log_end_offset leader_log_end_offset", "leader"),
    "truncation_without_effect": _kind("to_offset", "last_offset"),
    "unclean_election_triggered": _kind(),
    "unclean_leader_elected": _kind("leader", kept="live"),
    "unclean_recovery": _kind(kept="logs"),
    "unexpected_append_offset": _kind(uses="first_offset log_end_offset", kept="log_start_offset"),
    "unknown_leader_epoch": _kind(),
}
