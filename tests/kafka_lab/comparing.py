"""Runs `diagnose` on an evidence folder and holds its answer against the truth."""

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.paths import project_root
from tests.kafka_lab.history import TopicPartition
from tests.kafka_lab.truth import HOLDS, VIOLATED, LostRecord, PartitionTruth

JUDGED = ("committed_records_survive", "acknowledged_records_survive", "log_matching")
UNKNOWN = "UNKNOWN"
OF_DISKS = {"storage_loss", "last_replica_standing"}
# By what the client was promised: "none" are records that nobody acknowledged, but committed.
TIERS = {
    ("all",): ("acknowledged_by_isr",),
    ("1", "none"): ("acknowledged_by_leader", "committed", "never_acknowledged"),
}


@dataclass
class Comparison:
    """What differs, worst first: wrong verdicts, then what is unknown, then details.

    causes: how often a cause, a contract or a status was held against the truth, once per record.
    by_offset: how many of the verdicts rest on acknowledgements that name some records by their
    offset alone, as the laboratory withholds their ids in some runs: not all was handed over, and
    what is UNKNOWN of these (`unknown_by_offset`) is not in `unknown`.
    change: what was done to the evidence before. assumed: verdicts that are not so, under an
    assumption that they name. contradicted: of which no history is left.
    """

    name: str
    change: str = ""
    verdicts: int = 0
    by_offset: int = 0
    causes: int = 0
    wrong: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    wrong_causes: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    contradicted: list[str] = field(default_factory=list)
    # Of rows that take for granted, and say so, that no disk lost what a disk had lost.
    as_assumed: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unknown_by_offset: list[str] = field(default_factory=list)
    beyond_evidence: list[str] = field(default_factory=list)
    unknown_details: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        return not self.wrong and not self.false_alarms and not self.wrong_causes

    def text(self) -> str:
        told_all = self.verdicts - self.by_offset
        share = len(self.unknown) / told_all if told_all else 0.0
        lines = [
            f"{self.name}: {self.verdicts} verdicts, {len(self.wrong)} wrong, "
            f"{len(self.false_alarms)} false alarms, {len(self.wrong_causes)} wrong causes "
            f"({self.causes} told), UNKNOWN {share:.0%}"
        ]
        titles = (
            "wrong", "false_alarms", "wrong_causes", "assumed", "as_assumed", "contradicted",
            "unknown", "unknown_by_offset",
        )  # fmt: skip
        for title in (*titles, "unknown_details", "beyond_evidence", "details"):
            lines += [f"  {title}: {line}" for line in getattr(self, title)]
        return "\n".join(lines)


def diagnose(evidence: Path, clock_bound: int | None) -> tuple[int, dict[str, Any], str]:
    """Exit status, answer (empty when it gave none) and what it wrote to stderr.

    The laboratory's log of acknowledgements is that of all its producers.
    """
    declared = [] if clock_bound is None else ["--clock-bound", str(clock_bound)]
    done = subprocess.run(
        [
            sys.executable, "-m", "replication", "diagnose", str(evidence), "--format", "json",
            "--all-producers", *declared,
        ],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=project_root(),
        check=False,
    )  # fmt: skip
    answer = json.loads(done.stdout) if done.stdout.strip() else {}
    return done.returncode, answer, done.stderr


def compare(
    name: str,
    evidence: Path,
    truths: dict[TopicPartition, PartitionTruth],
    clock_bound: int | None = None,
    *,
    to_the_end: bool = True,
    may_say_nothing: bool = False,
) -> tuple[Comparison, dict[str, Any]]:
    """Judges one answer; the answer itself is for whoever looks into a difference.

    clock_bound: what is declared of the clocks, ms; all of them are the one of this machine.
    to_the_end: what was lost had been lost by the end of the evidence. may_say_nothing: what is
    handed over may name no partition.
    """
    found = Comparison(name)
    status, answer, told = diagnose(evidence, clock_bound)
    if may_say_nothing and status == 2 and not answer:
        return found, answer
    if status not in (0, 1, 3) or not answer:
        found.wrong.append(f"exit status {status}: {told.strip()[-500:]}")
        return found, answer
    without_ids = named_by_offset(evidence)
    for partition, truth in truths.items():
        if may_say_nothing and partition not in {
            (verdict["topic"], verdict["partition"]) for verdict in answer["verdicts"]
        }:
            continue
        _compare_partition(found, answer, partition, truth, partition in without_ids, to_the_end)
    refused = answer["input"]["quarantined"] + answer["input"]["held"]
    if refused:
        found.wrong.append(f"{refused} events of a real cluster were refused")
    if status == 1 and not any(verdict["verdict"] == VIOLATED for verdict in answer["verdicts"]):
        found.wrong.append("exit status 1 without a violated verdict")
    return found, answer


def named_by_offset(evidence: Path) -> set[TopicPartition]:
    """Partitions of which acknowledgements name records by their offset and by nothing else."""
    found: set[TopicPartition] = set()
    for path in evidence.rglob("acks.jsonl"):
        for text in path.read_text().splitlines():
            line = json.loads(text)
            named = {"payload_id", "sequence"} & line.keys()
            if line["status"] == "acked" and not named:
                found.add((line["topic"], line["partition"]))
    return found


def _compare_partition(
    found: Comparison,
    answer: dict[str, Any],
    partition: TopicPartition,
    truth: PartitionTruth,
    without_ids: bool,
    to_the_end: bool,
) -> None:
    name = f"{partition[0]}-{partition[1]}"
    told = [
        verdict
        for verdict in answer["verdicts"]
        if (verdict["topic"], verdict["partition"]) == partition
    ]
    if not told:
        found.wrong.append(f"{name}: the answer does not have it")
        return
    for invariant in JUDGED:
        expected = truth.verdicts[invariant]
        verdicts = [one for one in told if one["invariant"] == invariant]
        actual = _together([one["verdict"] for one in verdicts])
        if expected is None:
            continue
        by_offset = without_ids and invariant != "log_matching"
        found.verdicts += 1
        found.by_offset += by_offset
        line = f"{name} {invariant}: expected {expected}, came {actual}"
        reasons = "; ".join(str(one["reason"]) for one in verdicts)
        if "no history that the rules" in reasons:
            found.contradicted.append(f"{line} ({reasons})")
        if actual == expected or (actual == HOLDS and not to_the_end):
            continue
        assuming = [one["assuming"] for one in verdicts if one.get("assuming")]
        if actual == UNKNOWN:
            unknown = found.unknown_by_offset if by_offset else found.unknown
            unknown.append(f"{line} ({reasons})")
        elif assuming:
            found.assumed.append(f"{line} (assuming {assuming}: {reasons})")
        elif expected == HOLDS:
            found.false_alarms.append(f"{line} ({reasons})")
        elif truth.only_beyond_evidence and invariant == "committed_records_survive":
            found.beyond_evidence.append(f"{line} ({reasons})")
        else:
            found.wrong.append(f"{line} ({reasons})")
    _compare_others(found, name, told)
    _compare_offsets(found, answer, partition, truth)


def _together(verdicts: list[str]) -> str:
    """Of several incarnations of a topic the worst counts."""
    for verdict in (VIOLATED, UNKNOWN, HOLDS):
        if verdict in verdicts:
            return verdict
    return "none"


def _compare_others(found: Comparison, name: str, told: list[dict[str, Any]]) -> None:
    """A real cluster keeps the other invariants, whatever is done to it."""
    for verdict in told:
        if verdict["invariant"] not in JUDGED and verdict["verdict"] == VIOLATED:
            found.false_alarms.append(
                f"{name} {verdict['invariant']}: VIOLATED on a real cluster ({verdict['reason']})"
            )


def _compare_offsets(
    found: Comparison, answer: dict[str, Any], partition: TopicPartition, truth: PartitionTruth
) -> None:
    name = f"{partition[0]}-{partition[1]}"
    losses = [
        loss
        for loss in answer["losses"]
        if (loss["topic"], loss["partition"]) == partition
        and loss["status"] not in ("recovered", "at_risk")
    ]
    for acks, tiers in TIERS.items():
        told = _offsets(loss for loss in losses if loss["tier"] in tiers)
        expected = truth.lost(*acks)
        allowed = {one.offset for one in truth.losses if one.acks in acks}
        if expected - told or told - allowed:
            found.details.append(
                f"{name} lost at acks={'/'.join(acks)}: not told {sorted(expected - told)}, "
                f"told besides {sorted(told - allowed)}"
            )
    # Of a row that does not know what became of its records some may be back.
    unsure = _offsets(loss for loss in losses if loss["status"] == "undetermined")
    back = unsure & {*truth.missed_offsets, *(one.offset for one in truth.losses)}
    told = _offsets(losses)
    if told - set(truth.gone_offsets) - back:
        never = sorted(told - set(truth.gone_offsets) - back)
        found.false_alarms.append(f"{name}: told as lost, but nothing there ever was: {never}")
    told_divergent = _offsets(
        divergence
        for divergence in answer["divergences"]
        if (divergence["topic"], divergence["partition"]) == partition
        and divergence["status"] == "settled"
    )
    divergent = {offset for offsets in truth.divergent_offsets.values() for offset in offsets}
    if told_divergent != divergent:
        found.details.append(
            f"{name} divergent: expected {sorted(divergent)}, came {sorted(told_divergent)}"
        )
    _compare_elections(found, answer, partition, truth)
    compare_causes(found, answer, partition, truth)


def compare_causes(
    found: Comparison, answer: dict[str, Any], partition: TopicPartition, truth: PartitionTruth
) -> None:
    """Cause, contract and status of every loss that both know of; one line for each kind.

    A row of a lineage that was written there, and of which nothing is known to be lost, is not of
    another's record: it may be a transaction marker, or one that was missing for a moment.
    """
    differing: dict[str, set[int]] = {}
    assumed: set[str] = set()
    for told in answer["losses"]:
        if (told["topic"], told["partition"]) != partition or told["status"] == "at_risk":
            continue
        for offset in range(told["first_offset"], told["end_offset"]):
            known = of_its_lineage([one for one in truth.losses if one.offset == offset], told)
            epochs = {one.leader_epoch for one in known}
            other = [offset, told["leader_epoch"]] in truth.held
            if not known or (other and not epochs & {told["leader_epoch"], None}):
                continue
            for word, right in (
                ("cause", {cause for one in known for cause in one.causes}),
                ("contract", {contract for one in known for contract in one.contracts}),
                ("status", {status for one in known for status in one.statuses}),
            ):
                found.causes += 1
                if told[word] not in right:
                    line = f"{word} {told[word]}, not {'/'.join(sorted(right))}"
                    of_disks = OF_DISKS & {cause for one in known for cause in one.causes}
                    if of_disks and "disks_keep" in told.get("assuming", ()):
                        line += ", assuming disks_keep"
                        assumed.add(line)
                    differing.setdefault(line, set()).add(offset)
    for line, offsets in sorted(differing.items()):
        told_at = f"{partition[0]}-{partition[1]} {sorted(offsets)}: {line}"
        undecided = line.split()[1].rstrip(",") in ("unknown", "undetermined")
        wrong = found.as_assumed if line in assumed else found.wrong_causes
        (found.unknown_details if undecided else wrong).append(told_at)


def of_its_lineage(known: list[LostRecord], told: dict[str, Any]) -> list[LostRecord]:
    """Of the records that were lost at one offset those that a row can mean: several leaders may
    have written there. Where its leader epoch is of none of them, all."""
    named = told["leader_epoch"]
    same = [one for one in known if None in (named, one.leader_epoch) or one.leader_epoch == named]
    return same or known


def _offsets(spans: Iterable[dict[str, Any]]) -> set[int]:
    return {offset for span in spans for offset in range(span["first_offset"], span["end_offset"])}


def _compare_elections(
    found: Comparison, answer: dict[str, Any], partition: TopicPartition, truth: PartitionTruth
) -> None:
    # Of all lives of the topic: which of them an incarnation of the answer is, is not asked.
    expected: dict[int, set[int]] = {}
    for election in truth.elections:
        if election.leader is not None:
            expected.setdefault(election.leader_epoch, set()).add(election.leader)
    for one in answer["partitions"]:
        if (one["topic"], one["partition"]) != partition:
            continue
        for election in one["elections"]:
            leader_epoch, leader = election["leader_epoch"], election["leader"]
            led_by = expected.get(leader_epoch)
            if led_by is not None and leader not in (None, *led_by):
                found.wrong.append(
                    f"{partition}: epoch {leader_epoch} was led by {led_by}, not {leader}"
                )
