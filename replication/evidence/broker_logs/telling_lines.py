"""Lines that say something of losses by themselves, whatever else is known of their broker."""

from dataclasses import dataclass, field

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.log_places import log_directory

TELLING_KINDS = frozenset(
    ("truncated", "truncated_below_high_watermark", "truncated_fully", "truncation_reason",
     "leader_elected", "epoch_entry_added", "epoch_entries_cleared", "segments_deleted",
     "corrupt_index_found", "broker_unclean_shutdown", "offline_directories_partitions",
     "high_watermark_regressed", "fetch_out_of_range", "fetch_offset_reset", "truncation_refused",
     "fenced", "fetching_failed", "unexpected_append_offset", "unclean_leader_elected",
     "unclean_election_triggered", "corruption_found", "invalid_records_found",
     "corrupt_segment_deleted", "log_dir_failed", "epoch_entry_refused", "log_marked_stray",
     "high_watermark_missing", "last_isr_retained", "fetch_offset_mismatch",
     "fetch_processing_failed",
     "offsets_out_of_order", "log_start_above_high_watermark", "unknown_leader_epoch",
     "leader_recovered", "replica_removed_from_isr", "partition_state_change_failed",
     "isr_update_refused", "process_failed", "unclean_recovery", "become_follower_failed",
     "truncation_without_effect", "isr_shrink_proposed", "replicas_differ",
     "tiered_segment_deleted", "tiered_segment_copied", "all_log_dirs_failed", "disk_error",
     "quorum_unreachable", "quorum_candidate")
)  # fmt: skip
# So many lines of one kind about one partition are kept; they say the same again and again. Of what
# changed nothing one line of a file is kept for each broker, and how many partitions have it.
_KEPT = 3
_COUNTED = frozenset(("truncation_without_effect",))
_ANY = "any directory"
# What comes of a proposal to change the ISR, or the next one.
_ANSWERS = frozenset(
    ("isr_update_refused", "isr_updated", "isr_expanded", "isr_shrink_proposed", "became_leader",
     "became_follower")
)  # fmt: skip


@dataclass(slots=True)
class Telling:
    """Picks such lines out of a file's facts. lines: the first few of each kind and partition;
    `repeats` among a line's fields counts those that were left out behind it."""

    lines: list[LogLineFact] = field(default_factory=list)
    _seen: dict[tuple[object, ...], list[int]] = field(default_factory=dict)
    # By broker, partition and log directory, as far as lines name them.
    _ends: dict[tuple[object, ...], int] = field(default_factory=dict)
    _brokers: set[int] = field(default_factory=set)
    _counted: dict[tuple[object, ...], set[tuple[object, ...]]] = field(default_factory=dict)
    # Who told a follower to cut a partition's log to where.
    _told: dict[tuple[object, ...], LogLineFact] = field(default_factory=dict)
    # By broker and partition the last proposal to shrink the ISR, where its line is kept.
    _proposed: dict[tuple[object, ...], int | None] = field(default_factory=dict)

    def take(self, fact: LogLineFact) -> None:
        """A file's next fact."""
        place = (fact.broker, fact.topic, fact.partition)
        self._brokers.update([] if fact.broker is None else [fact.broker])
        if fact.kind == "truncation_reason":
            self._told[*place[1:], fact.fields.get("to_offset")] = fact
        proposed = self._proposed.pop(place, None) if fact.kind in _ANSWERS else None
        if fact.kind == "isr_update_refused" and proposed is not None:
            self.lines[proposed].fields["refused"] = True
        if _tells(fact):
            self._keep(fact, place)
        end = fact.fields.get("log_end_offset")
        if fact.kind == "truncation_without_effect" and "last_offset" in fact.fields:
            end = int(fact.fields["last_offset"]) + 1
        if fact.kind == "truncated":
            end = fact.fields.get("to_offset")
        if fact.kind == "fetch_failed":
            end = fact.fields.get("fetch_offset")
        if isinstance(end, int) and fact.partition is not None:
            for whose in (place, (None, *place[1:])):
                self._ends[*whose, log_directory(fact)] = self._ends[*whose, _ANY] = end

    def _end_before(self, fact: LogLineFact, place: tuple[object, ...]) -> int | None:
        """Where the log had ended by the lines before: the last that tell of this very log."""
        home = log_directory(fact)
        homes: tuple[str | None, ...] = (_ANY,) if home is None else (home, None)
        # A log's own lines often name no broker, where its partition's do.
        one = len(self._brokers) < 2 and "one_of" not in fact.fields
        whose = [place, (None, *place[1:])] if one else [place]
        if not one and fact.broker is None:
            homes = (home,) if home is not None else ()
        found = (self._ends.get((*each, h)) for each in whose for h in homes)
        return next((end for end in found if end is not None), None)

    def _keep(self, fact: LogLineFact, place: tuple[object, ...]) -> None:
        if fact.kind in _COUNTED:
            self._count(fact)
            return
        kept = self._seen.setdefault((fact.kind, fact.fields.get("topic_id"), *place), [])
        if len(kept) >= _KEPT:
            last = self.lines[kept[-1]].fields
            last["repeats"] = last.get("repeats", 0) + 1
            return
        fields = dict(fact.fields)
        if fact.kind == "truncated" and fields.get("log_end_offset") is None:
            known = self._end_before(fact, place)
            if known is not None and known >= fields.get("to_offset", known + 1):
                fields["log_end_offset_before"] = known
        if fact.kind == "truncated":
            told = self._told.get((*place[1:], fields.get("to_offset")))
            if told is not None and (fact.broker == told.broker or len(self._brokers) < 2):
                fields.setdefault("leader", told.fields.get("leader"))
        if fact.kind == "isr_shrink_proposed":
            self._proposed[place] = len(self.lines)
        kept.append(len(self.lines))
        self.lines.append(fact._replace(fields=fields))

    def _count(self, fact: LogLineFact) -> None:
        kept = self._seen.setdefault((fact.kind, fact.broker, fact.fields.get("one_of")), [])
        where = self._counted.setdefault((fact.kind, fact.broker), set())
        where.add((fact.topic, fact.partition))
        if not kept:
            kept.append(len(self.lines))
            self.lines.append(fact._replace(fields=dict(fact.fields)))
            return
        fields = self.lines[kept[0]].fields
        fields["repeats"] = fields.get("repeats", 0) + 1
        if len(where) > 1:
            fields["partitions"] = len(where)


def _tells(fact: LogLineFact) -> bool:
    """Some kinds tell only by what they say: most elections are clean, most entries follow on."""
    match fact.kind:
        case "leader_elected":
            return fact.fields.get("how") == "unclean" and fact.fields.get("leader") is not None
        case "epoch_entry_added":
            return bool(fact.fields.get("conflicting"))
        case "epoch_entries_cleared":
            return fact.fields.get("end") == "latest"
        case "segments_deleted":
            return fact.fields.get("reason") != "truncation"
    return fact.kind in TELLING_KINDS
