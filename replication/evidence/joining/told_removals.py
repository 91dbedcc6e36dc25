"""What the evidence tells of records that were removed lawfully: by what, when, by which setting,
in which line, and which copies still have them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.topic_lives import GONE, Lifetime
from replication.evidence.log_directories.log_directory import SegmentFile
from replication.protocol.ground.model import moment
from replication.protocol.judgement.lawful_removals import LOG_START, TOPIC_DELETED

DELETE_RECORDS, NOT_TOLD = "delete_records", "not_told"
# By the reason that a broker's line gives for deleting segments: which setting it was.
SETTINGS = {"retention_time": "retention.ms", "retention_size": "retention.bytes"}
# How a broker prints that its log starts later because a client asked for it.
_ASKED_FOR = "client delete records request"
_STRAY_OR_GONE = GONE | {"log_marked_stray"}
_OF_REMOVALS = _STRAY_OR_GONE | {"segments_deleted", "log_start_advanced"}


@dataclass(slots=True)
class ToldRemovals:
    """Of one incarnation of a topic partition. steps: each removal at the log's start that lines
    tell, in offset order; deleted: what is known of the topic's deletion; copies: those whose
    records are here."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    deleted: dict[str, Any] = field(default_factory=dict)
    copies: list[dict[str, Any]] = field(default_factory=list)

    def added_to(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row of the answer's `removed`, with what lines and copies add to it."""
        first, end = row["first_offset"], row["end_offset"]
        at_start, with_topic = row["why"] == LOG_START, row["why"] == TOPIC_DELETED
        return {
            **row,
            "by": list(_up_to(self.steps, end)) if at_start else [],
            **(self.deleted if with_topic else dict.fromkeys(_OF_DELETION)),
            "copies": [
                c for c in self.copies if c["first_offset"] < end and first < c["end_offset"]
            ],
        }


_OF_DELETION = ("deleted_at", "next_topic_id", "next_created_at", "broker", "path", "line")


def told_removals(partition: PartitionEvidence) -> ToldRemovals:
    """What a finished partition's lines and copies add."""
    facts = [
        (broker, fact)
        for broker, lines in partition.lines.items()
        for fact in lines
        if fact.kind in _OF_REMOVALS
    ]
    facts.sort(key=lambda each: (each[1].at is None, each[1].at or 0))
    return ToldRemovals(
        list(_steps(partition, facts)),
        _deletion(partition, facts) if partition.described.deleted else {},
        sorted(_copies(partition), key=lambda copy: (copy["broker"], copy["path"])),
    )


def _steps(
    partition: PartitionEvidence, facts: list[tuple[int, LogLineFact]]
) -> Iterator[dict[str, Any]]:
    """One for each place to which a leader's log start came, by the first line that tells why."""
    starts = sorted(
        f.fields["log_start_offset"]
        for _, f in facts
        if f.kind == "log_start_advanced" and f.fields.get("log_start_offset") is not None
    )
    told: dict[int, dict[str, Any]] = {}
    for broker, fact in facts:
        f = fact.fields
        first, how, setting = None, None, None
        below = f.get("log_start_offset")
        if fact.kind == "segments_deleted" and f.get("reason") in SETTINGS and f["base_offsets"]:
            first, how = min(f["base_offsets"]), f["reason"]
            below = next((s for s in starts if s > max(f["base_offsets"])), None)
            limit = f.get("limit")
            setting = None if limit is None else f"{SETTINGS[how]}={limit}"
        elif fact.kind == "log_start_advanced":
            how = DELETE_RECORDS if f.get("reason") == _ASKED_FOR else None
        if how is not None and below is not None and below not in told:
            told[below] = {
                "how": how, "first_offset": first, "end_offset": below, "setting": setting,
                **_place(partition, broker, fact),
            }  # fmt: skip
    yield from (told[below] for below in sorted(told))


def _place(partition: PartitionEvidence, broker: int, fact: LogLineFact) -> dict[str, Any]:
    return {
        "broker": broker,
        "at": moment(fact.at),
        "path": partition.shown(fact.path),
        "line": fact.line,
    }


def _up_to(steps: Iterable[dict[str, Any]], end: int) -> Iterator[dict[str, Any]]:
    """What removed offsets [0, end): the steps, those of one cause behind each other as one, and
    between them what no line tells the cause of."""
    runs: list[dict[str, Any]] = []
    reached = 0
    for step in steps:
        if step["end_offset"] > end:
            break
        first = reached if step["first_offset"] is None else max(reached, step["first_offset"])
        if first > reached:
            runs.append(_not_told(reached, first))
        last = runs[-1] if runs else None
        cause = (step["how"], step["setting"])
        if last is not None and (last["how"], last["setting"]) == cause:
            last |= {
                "end_offset": step["end_offset"], "until": step["at"], "lines": last["lines"] + 1,
                **{name: step[name] for name in ("broker", "path", "line")},
            }  # fmt: skip
        else:
            at = step["at"]
            runs.append(
                {k: v for k, v in step.items() if k != "at"}
                | {"first_offset": first, "from": at, "until": at, "lines": 1}
            )
        reached = step["end_offset"]
    if reached < end:
        runs.append(_not_told(reached, end))
    yield from runs


def _not_told(first: int, end: int) -> dict[str, Any]:
    return {
        "how": NOT_TOLD, "first_offset": first, "end_offset": end, "setting": None, "from": None,
        "until": None, "lines": 0, "broker": None, "path": None, "line": None,
    }  # fmt: skip


def _deletion(partition: PartitionEvidence, facts: list[tuple[int, LogLineFact]]) -> dict[str, Any]:
    """When the topic was deleted, by the controllers' records or else the first broker that
    printed it, in which line, and which topic has had its name since."""
    own, following = _lifetimes(partition)
    gone = [(b, f) for b, f in facts if f.kind in _STRAY_OR_GONE]
    place = _place(partition, *gone[0]) if gone else dict.fromkeys(("broker", "at", "path", "line"))
    printed = place.pop("at")
    recorded = moment(own[2]) if own is not None and own[2] else None
    created = None if following is None else moment(following[1])
    # Where nothing records it, a life ends where the next begins: a broker's line is nearer.
    is_told = recorded is not None and recorded != created
    return {
        "deleted_at": recorded if is_told else printed or recorded,
        "next_topic_id": None if following is None else following[0] or None,
        "next_created_at": created,
        **place,
    }


def _lifetimes(partition: PartitionEvidence) -> tuple[Lifetime | None, Lifetime | None]:
    """The incarnation's own life, and the one after it under the name."""
    lives = partition.lifetimes
    at = next((n for n, life in enumerate(lives) if life[0] == partition.topic_id), None)
    if at is None:
        return None, None
    return lives[at], lives[at + 1] if at + 1 < len(lives) else None


def _copies(partition: PartitionEvidence) -> Iterator[dict[str, Any]]:
    for copy in partition.copies:
        own = copy.directory
        records = any(isinstance(segment, SegmentFile) for segment in own.segments)
        first, end = own.log_start_offset or 0, own.log_end_offset or 0
        if records and end > first:
            yield {
                "broker": copy.broker,
                "kind": own.kind,
                "path": partition.shown(str(own.path)),
                "first_offset": first,
                "end_offset": end,
            }
