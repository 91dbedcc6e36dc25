"""What really became of the records, from bytes on disk, acknowledgements and the controller.

Nothing here uses the product. The final logs are read by Kafka's own kafka-dump-log, what was on
the disks meanwhile by kafka-python; where both saw the same log they must agree.

A record counts as committed from the moment it was acknowledged at acks=all by the broker that the
controller named leader, or from when a replica's checkpointed high watermark was seen above it. It
survives if every leader that starts later, and the last one, holds it.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.kafka_lab import dump_tool
from tests.kafka_lab.history import (
    Election,
    LeaderStart,
    TopicPartition,
    elections,
    leader_at,
    leader_starts,
    traced_high_watermarks,
)
from tests.kafka_lab.logs_on_disk import (
    Held,
    checkpoint_entries,
    read_batches,
    records,
    segment_files,
)
from tests.kafka_lab.notes import HighWatermarkSample, LogSample, Notes
from tests.kafka_lab.sampler import HIGH_WATERMARK_FILE
from tests.kafka_lab.site import Site, partitions_of

HOLDS, VIOLATED = "HOLDS", "VIOLATED"
# Log lines, acknowledgements and samples of different processes, all on one clock.
CLOCK_SLACK = 0.05
SOON = 0.4

Excused = Callable[[str], bool]


@dataclass
class Commitment:
    """Since when a record is known to be committed, by what, and whether the evidence shows it."""

    at: float
    by: str
    in_evidence: bool


@dataclass
class PartitionTruth:
    """The verdicts (None where the laboratory itself cannot tell) and what they rest on."""

    verdicts: dict[str, str | None]
    lost: dict[str, list[int]]
    lost_payload_ids: list[str]
    lost_committed: list[str]
    missing_at_start: list[str]
    only_beyond_evidence: bool
    divergent_offsets: dict[str, list[int]]
    leader: int | None
    elections: list[Election]
    acked: int
    notes: list[str] = field(default_factory=list)
    # Where any replica ever held a record that the last leader does not hold there, though its
    # payload may stand elsewhere, sent again; None: not recorded.
    gone_offsets: list[int] | None = None

    def as_json(self) -> dict[str, Any]:
        shown = dict(self.__dict__)
        shown["elections"] = [vars(election) for election in self.elections]
        return shown


def save_truths(path: Path, truths: dict[TopicPartition, PartitionTruth]) -> None:
    shown = {f"{topic}-{number}": truth.as_json() for (topic, number), truth in truths.items()}
    path.write_text(json.dumps(shown, indent=1))


def load_truths(path: Path) -> dict[TopicPartition, PartitionTruth]:
    """What `save_truths` wrote: a kept capture can be judged again."""
    found = {}
    for name, fields in json.loads(path.read_text()).items():
        topic, _, number = name.rpartition("-")
        fields["elections"] = [
            Election(**{**election, "isr": tuple(election["isr"])})
            for election in fields["elections"]
        ]
        found[topic, int(number)] = PartitionTruth(**fields)
    return found


def establish(
    site: Site,
    notes: Notes,
    evidence: Path,
    acknowledgements: Path,
    excused: Excused = lambda payload_id: False,
) -> dict[TopicPartition, PartitionTruth]:
    """The truth of every partition; the cluster is stopped, its disks as it left them.

    `acknowledgements` is the laboratory's own log, with every payload id.
    """
    acks = _acknowledged(acknowledgements)
    quiet = [line for line in site.actions() if line["action"] == "quiet_point"]
    quiet_at = _seconds(quiet[-1]["ts"])
    known = elections(site, notes)
    starts = leader_starts(site)
    finals = _final_logs(site)
    high_watermarks = [*notes.high_watermarks, *traced_high_watermarks(site)]
    found = {}
    for partition in partitions_of(site.assignments):
        view = View(
            partition,
            [ack for ack in acks if (ack["topic"], ack["partition"]) == partition],
            known.get(partition, []),
            [start for start in starts.get(partition, []) if start.at <= quiet_at],
            [one for one in notes.logs if (one.topic, one.partition) == partition],
            [
                one
                for one in high_watermarks
                if (one.topic, one.partition) == partition and one.written_at <= quiet_at
            ],
            {broker: logs[partition] for broker, logs in finals.items() if partition in logs},
            quiet_at,
        )
        found[partition] = judge(view, _committed_by_copies(site, evidence, partition), excused)
    return found


@dataclass
class View:
    """All that is known of one partition."""

    partition: TopicPartition
    acks: list[dict[str, Any]]
    elections: list[Election]
    starts: list[LeaderStart]
    samples: list[LogSample]
    high_watermarks: list[HighWatermarkSample]
    finals: dict[int, list[dump_tool.Dumped]]
    quiet_at: float


def judge(view: View, shown: set[str], excused: Excused) -> PartitionTruth:
    last = leader_at(view.elections, view.quiet_at)
    leader = None if last is None else last.leader
    committed, doubtful = _committed(view, shown)
    acked = {ack["payload_id"]: ack for ack in view.acks if ack["status"] == "acked"}
    missing = _missing_at_starts(view, committed, acked, excused)
    standing = {(one.offset, one.payload_id) for one in view.finals.get(leader or 0, [])}
    final = {payload_id for _, payload_id in standing}
    gone = [name for name in {**acked, **committed} if name not in final and not excused(name)]
    lost_committed = sorted(name for name in gone if name in committed)
    lost_acked = sorted(name for name in gone if name in acked)
    missing_committed = {name for _, name in missing if name in committed}
    broken = set(lost_committed) | missing_committed
    broken_acked = set(lost_acked) | {name for _, name in missing if name in acked}
    divergent, unsettled = _divergent(view.finals, () if last is None else last.isr)
    notes = [f"{name}: {committed[name].by}" for name in sorted(broken)]
    verdicts: dict[str, str | None] = {
        "committed_records_survive": VIOLATED if broken else HOLDS,
        "acknowledged_records_survive": VIOLATED if broken_acked else HOLDS,
        "log_matching": VIOLATED if divergent else HOLDS,
    }
    if leader is None:
        notes.append("no leader at the end")
        verdicts = dict.fromkeys(verdicts)
    if not broken and any(name in doubtful for name in gone):
        verdicts["committed_records_survive"] = None
        notes.append("acknowledged around a change of leader, and gone")
    if unsettled and not divergent:
        verdicts["log_matching"] = None
        notes.append(f"differs outside the ISR: {unsettled}")
    lost: dict[str, list[int]] = {}
    for name in lost_acked:
        offset = acked[name]["offset"]
        lost.setdefault(acked[name]["acks"], []).append(
            offset if offset is not None else min(one.offset for one in _seen(view.samples, name))
        )
    offsets = {
        held.offset
        for name in gone
        if name not in acked and name in shown
        for held in _seen(view.samples, name)
    }
    if offsets:
        lost["none"] = sorted(offsets)
    return PartitionTruth(
        verdicts=verdicts,
        lost={acks: sorted(offsets) for acks, offsets in lost.items()},
        lost_payload_ids=sorted(gone),
        lost_committed=lost_committed,
        missing_at_start=[f"{start}: {name}" for start, name in missing],
        only_beyond_evidence=bool(broken) and not any(committed[n].in_evidence for n in broken),
        divergent_offsets=divergent,
        leader=leader,
        elections=view.elections,
        acked=len(acked),
        notes=notes,
        gone_offsets=sorted(
            {
                held.offset
                for sample in view.samples
                for batch in sample.batches
                for held in records(batch)
                if (held.offset, held.payload_id) not in standing
            }
        ),
    )


def read_lines(path: Path) -> list[dict[str, Any]]:
    """A JSON Lines file; nothing where the experiment wrote none."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _acknowledged(path: Path) -> list[dict[str, Any]]:
    return [line for line in read_lines(path) if line.get("payload_id")]


def _final_logs(site: Site) -> dict[int, dict[TopicPartition, list[dump_tool.Dumped]]]:
    """The logs as kafka-dump-log reads them, held against kafka-python's reading."""
    places = {
        (broker, (topic, partition)): directory / f"{topic}-{partition}"
        for broker in site.brokers
        for directory in site.data(broker)
        for topic, partition in partitions_of(site.assignments)
        if (directory / f"{topic}-{partition}").is_dir()
    }
    files = [path for place in places.values() for path in segment_files(place)]
    dumped = dump_tool.dump_segments(site.version, files)
    found: dict[int, dict[TopicPartition, list[dump_tool.Dumped]]] = {}
    for (broker, partition), place in places.items():
        log = [one for path in segment_files(place) for one in dumped[path]]
        by_tool = [(one.offset, one.leader_epoch, one.payload_id) for one in log]
        by_library = [
            (held.offset, held.leader_epoch, held.payload_id)
            for batch in read_batches(place)
            for held in records(batch)
        ]
        if by_tool != by_library:
            raise AssertionError(f"{place}: kafka-dump-log and kafka-python read different logs")
        found.setdefault(broker, {})[partition] = log
    return found


def _committed(view: View, shown: set[str]) -> tuple[dict[str, Commitment], set[str]]:
    """Committed payload ids, and those where the laboratory cannot tell."""
    found: dict[str, Commitment] = {}
    doubtful: set[str] = set()
    for ack in view.acks:
        if ack["status"] != "acked" or ack["acks"] != "all":
            continue
        at = _seconds(ack["ts"])
        name = ack["payload_id"]
        if _by_leader(view.elections, ack["broker"], at):
            found[name] = Commitment(at, "acknowledged with acks=all", True)
        elif _by_leader(view.elections, ack["broker"], at - SOON) or _nobody(view.elections, at):
            doubtful.add(name)
    for sample in view.high_watermarks:
        for name in _below(view, sample):
            if name not in found or found[name].at > sample.written_at:
                by = f"below {sample.high_watermark}, high watermark of {sample.broker}"
                known = name in found or name in shown or sample.in_logs
                found[name] = Commitment(sample.written_at, by, known)
    for name in shown - found.keys():
        found[name] = Commitment(view.quiet_at, "below the high watermark of a copy", True)
    return found, doubtful


def _by_leader(known: list[Election], broker: int, at: float) -> bool:
    last = leader_at(known, at)
    return last is not None and last.leader == broker


def _nobody(known: list[Election], at: float) -> bool:
    last = leader_at(known, at)
    return last is None or last.leader is None


def _seen(samples: list[LogSample], name: str) -> set[Held]:
    """The record as any replica ever held it."""
    return {
        held
        for sample in samples
        for batch in sample.batches
        for held in records(batch)
        if held.payload_id == name
    }


def _below(view: View, sample: HighWatermarkSample) -> Iterator[str]:
    """Records that were in the log under this high watermark around its writing.

    An offset that held one record just before and another soon after is left out.
    A deposed leader that does not know it yet may raise its own high watermark over records that
    are no part of the partition: those of its own last reign are left out.
    """
    own = [one for one in view.samples if one.broker == sample.broker]
    before = [one for one in own if one.at <= sample.written_at]
    after = [one for one in own if 0 < one.at - sample.written_at < SOON]
    deposed = _deposed_epochs(view.elections, sample.broker, sample.written_at)
    there: dict[int, set[Held]] = {}
    for one in before[-1:] + after[:1]:
        for batch in one.batches:
            for held in records(batch):
                there.setdefault(held.offset, set()).add(held)
    for offset, found in there.items():
        if offset < sample.high_watermark and len(found) == 1:
            (held,) = found
            if not deposed or held.leader_epoch not in (None, *deposed):
                yield held.payload_id


def _deposed_epochs(known: list[Election], broker: int, at: float) -> set[int]:
    """Epochs that this broker led, where somebody else, or nobody, leads now."""
    if _by_leader(known, broker, at):
        return set()
    return {one.leader_epoch for one in known if one.at <= at and one.leader == broker}


def payload_ids(sample: LogSample) -> set[str]:
    return {held.payload_id for batch in sample.batches for held in records(batch)}


def _missing_at_starts(
    view: View, committed: dict[str, Commitment], acked: dict[str, Any], excused: Excused
) -> list[tuple[str, str]]:
    """(leader start, payload id) of what a new valid leader did not hold."""
    found = []
    for start in view.starts:
        elected = leader_at(view.elections, start.at + CLOCK_SLACK)
        if elected is None or elected.leader != start.broker:
            continue
        if start.leader_epoch not in (None, elected.leader_epoch):
            continue
        held = _held_around(view.samples, start)
        if held is None:
            continue
        for name, commitment in committed.items():
            if commitment.at < start.at - CLOCK_SLACK and name not in held and not excused(name):
                found.append((_shown(start), name))
        for name, ack in acked.items():
            if name in committed or name in held or excused(name):
                continue
            if _seconds(ack["ts"]) < start.at - CLOCK_SLACK:
                found.append((_shown(start), name))
    return found


def _held_around(samples: list[LogSample], start: LeaderStart) -> set[str] | None:
    """What the broker held just before or soon after it took up leadership."""
    own = [one for one in samples if one.broker == start.broker]
    before = [one for one in own if one.at <= start.at]
    after = [one for one in own if start.at < one.at < start.at + SOON]
    if not before and not after:
        return None
    return {name for one in before[-1:] + after[:1] for name in payload_ids(one)}


def _shown(start: LeaderStart) -> str:
    return f"leader {start.broker} in epoch {start.leader_epoch} from {start.first_offset}"


def _divergent(
    finals: dict[int, list[dump_tool.Dumped]], isr: tuple[int, ...]
) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Offsets with different records: of two members of the last ISR, and of other pairs."""
    settled: dict[str, list[int]] = {}
    open_still: dict[str, list[int]] = {}
    brokers = sorted(finals)
    for index, first in enumerate(brokers):
        for second in brokers[index + 1 :]:
            one = {dumped.offset: dumped for dumped in finals[first]}
            other = {dumped.offset: dumped for dumped in finals[second]}
            differing = sorted(
                offset
                for offset in one.keys() & other.keys()
                if (one[offset].payload_id, one[offset].key)
                != (other[offset].payload_id, other[offset].key)
            )
            if differing:
                where = settled if {first, second} <= set(isr) else open_still
                where[f"{first},{second}"] = differing
    return settled, open_still


def _committed_by_copies(site: Site, evidence: Path, partition: TopicPartition) -> set[str]:
    """What the copies in the evidence themselves show to lie below a high watermark."""
    found = set()
    for path in sorted(evidence.rglob(HIGH_WATERMARK_FILE)):
        high_watermark = checkpoint_entries(path).get(partition)
        place = path.parent / f"{partition[0]}-{partition[1]}"
        if high_watermark is None or not place.is_dir():
            continue
        for batch in read_batches(place):
            for held in records(batch):
                if held.offset < high_watermark:
                    found.add(held.payload_id)
    return found


def _seconds(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC).timestamp()
