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
from tests.kafka_lab.truth import HOLDS, VIOLATED, PartitionTruth

JUDGED = ("committed_records_survive", "acknowledged_records_survive", "log_matching")
UNKNOWN = "UNKNOWN"
# By what the client was promised: "none" are records that nobody acknowledged, but committed.
TIERS = {
    ("all",): ("acknowledged_by_isr",),
    ("1", "none"): ("acknowledged_by_leader", "committed"),
}


@dataclass
class Comparison:
    """What differs, worst first: wrong verdicts, then what is unknown, then details."""

    name: str
    verdicts: int = 0
    wrong: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    beyond_evidence: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        return not self.wrong and not self.false_alarms

    def text(self) -> str:
        share = len(self.unknown) / self.verdicts if self.verdicts else 0.0
        lines = [
            f"{self.name}: {self.verdicts} verdicts, {len(self.wrong)} wrong, "
            f"{len(self.false_alarms)} false alarms, UNKNOWN {share:.0%}"
        ]
        for title in ("wrong", "false_alarms", "unknown", "beyond_evidence", "details"):
            lines += [f"  {title}: {line}" for line in getattr(self, title)]
        return "\n".join(lines)


def diagnose(evidence: Path) -> tuple[int, dict[str, Any], str]:
    """Exit status, answer (empty when it gave none) and what it wrote to stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "replication", "diagnose", str(evidence), "--format", "json"],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=project_root(),
        check=False,
    )
    answer = json.loads(done.stdout) if done.stdout.strip() else {}
    return done.returncode, answer, done.stderr


def compare(
    name: str, evidence: Path, truths: dict[TopicPartition, PartitionTruth]
) -> tuple[Comparison, dict[str, Any]]:
    """Judges one answer; the answer itself is for whoever looks into a difference."""
    found = Comparison(name)
    status, answer, told = diagnose(evidence)
    if status not in (0, 1, 3) or not answer:
        found.wrong.append(f"exit status {status}: {told.strip()[-500:]}")
        return found, answer
    for partition, truth in truths.items():
        _compare_partition(found, answer, partition, truth)
    if status == 1 and not any(verdict["verdict"] == VIOLATED for verdict in answer["verdicts"]):
        found.wrong.append("exit status 1 without a violated verdict")
    return found, answer


def _compare_partition(
    found: Comparison, answer: dict[str, Any], partition: TopicPartition, truth: PartitionTruth
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
        found.verdicts += 1
        line = f"{name} {invariant}: expected {expected}, came {actual}"
        reasons = "; ".join(str(one["reason"]) for one in verdicts)
        if actual == expected:
            continue
        if actual == UNKNOWN:
            found.unknown.append(f"{line} ({reasons})")
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
        expected = {offset for one in acks for offset in truth.lost.get(one, [])}
        if told != expected:
            found.details.append(
                f"{name} lost at acks={'/'.join(acks)}: not told {sorted(expected - told)}, "
                f"told besides {sorted(told - expected)}"
            )
    told = _offsets(losses)
    if truth.gone_offsets is not None and told - set(truth.gone_offsets):
        never = sorted(told - set(truth.gone_offsets))
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


def _offsets(spans: Iterable[dict[str, Any]]) -> set[int]:
    return {offset for span in spans for offset in range(span["first_offset"], span["end_offset"])}


def _compare_elections(
    found: Comparison, answer: dict[str, Any], partition: TopicPartition, truth: PartitionTruth
) -> None:
    expected = {
        election.leader_epoch: election.leader
        for election in truth.elections
        if election.leader is not None
    }
    for one in answer["partitions"]:
        if (one["topic"], one["partition"]) != partition:
            continue
        for election in one["elections"]:
            leader_epoch, leader = election["leader_epoch"], election["leader"]
            if leader_epoch in expected and leader not in (None, expected[leader_epoch]):
                found.wrong.append(
                    f"{partition}: epoch {leader_epoch} was led by {expected[leader_epoch]}, "
                    f"not {leader}"
                )
