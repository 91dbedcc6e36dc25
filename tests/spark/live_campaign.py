"""Taped runs of the laboratory shipped live again: was every loss that could be told told before?

    python -m tests.spark.live_campaign RUNS [RUNS ..] [--only NAME] [--out FILE]

RUNS holds what `python -m tests.kafka_lab --chaos (or --healthy) --tape --keep RUNS` left. Each
tape is shipped in its order and at its moments into the joining and the fold that the stream runs,
a micro-batch for each half second of the tape. Held against it, from the laboratory's own notes:

- each acknowledged loss that had been one failure away for two seconds stood in `at_risk` before
  it, with the cause that took it; beside it what UnderMinIsr, AtMinIsr and under-replicated would
  have told of its partition within the same time;
- at the end the verdicts are those of importing the same lines as a folder;
- nothing is violated that the whole evidence, with the brokers' disks, does not show violated;
- on a healthy run no alert is critical.

Exit status 0 only where all of it is so.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.evidence.collecting.envelopes import NotALine, ShippedLine, shipped_lines
from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import fold_all
from tests.kafka_lab.history import (
    Election,
    TopicPartition,
    elections,
    leader_at,
    leader_starts,
    lives,
    seconds_of,
)
from tests.kafka_lab.lineage import Replicas
from tests.kafka_lab.notes import Notes
from tests.kafka_lab.site import Site, partitions_of
from tests.kafka_lab.truth import Run, load_truths, read_lines
from tests.kafka_lab.windows import Lifetimes, Partition, Window, assignments_of
from tests.spark.fleet import Fleet

EVERY = 0.5
SHORTEST = 2.0
OURS = "at_risk"
STORAGE = ("leader_loses_its_tail", "leader_loses_its_log")
YARDSTICKS = ("UnderMinIsr", "AtMinIsr", "UnderReplicated")


@dataclass
class Found:
    """What one run showed. told: by who told, of how many losses; missed: those that we did not."""

    name: str
    windows: int = 0
    shorter: int = 0
    without: int = 0
    told: Counter[str] = field(default_factory=Counter)
    looks: Counter[str] = field(default_factory=Counter)
    founded: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    unequal: list[str] = field(default_factory=list)
    beside_evidence: Counter[str] = field(default_factory=Counter)
    critical: list[str] = field(default_factory=list)
    steps: int = 0
    median: float = 0.0

    @property
    def healthy(self) -> bool:
        """Whether nothing failed in it."""
        return self.name.startswith("healthy")

    @property
    def right(self) -> bool:
        """Whether it is as wanted."""
        critical = self.healthy and self.critical
        return not (self.missed or self.unequal or critical or self.false_words)

    @property
    def false_words(self) -> list[str]:
        """What is violated by what was shipped, and not by the whole evidence."""
        pairs = ((each, *each.partition(" -> ")[::2]) for each in self.beside_evidence)
        return [
            each
            for each, whole, live in pairs
            if live.count("VIOLATED") > whole.count("VIOLATED") and live
        ]

    def text(self) -> str:
        """One line, and one for each thing that is not as wanted."""
        told = ", ".join(f"{who} {self.told[who]}" for who in (OURS, *YARDSTICKS))
        lines = [
            f"{self.name}: {self.steps} micro-batches (median {self.median:.2f} s); of "
            f"{self.windows} losses told before: {told}; {self.shorter} had less than "
            f"{SHORTEST:.0f} s, {self.without} none; {len(self.critical)} looks with a critical "
            f"alert"
        ]
        lines += [f"  missed: {each}" for each in self.missed]
        lines += [f"  unequal: {each}" for each in self.unequal]
        lines += [f"  false word: {each}" for each in self.false_words]
        lines += [f"  critical: {each}" for each in self.critical[:2] if self.healthy]
        return "\n".join(lines)


def lines_of(told: dict[str, Any]) -> Iterator[ShippedLine | NotALine]:
    """The lines of one entry of a tape, as a shipper sends them."""
    at = told["offset"]
    for line in told["text"].encode().splitlines(keepends=True):
        for each in shipped_lines(line.rstrip(b"\n")):
            if isinstance(each, ShippedLine):
                name = told["host"], told["file"]
                yield ShippedLine(each.text, *name, "", at, False, each.digest)
            else:
                yield each
        at += len(line)


def shipped(tape: list[dict[str, Any]], work: Path) -> Fleet:
    """The whole tape, micro-batch by micro-batch; the clock is the tape's."""
    fleet = Fleet(work, work)
    now, waiting = tape[0]["at"], list[dict[str, Any]]()
    for told in [*tape, None]:
        while told is None or told["at"] > now:
            lines = [line for each in waiting for line in lines_of(each)]
            fleet.ship(lines, lambda at=now: at)  # type: ignore[misc]
            now, waiting = now + EVERY, []
            if told is None:
                return fleet
        waiting.append(told)
    return fleet


def imported(tape: list[dict[str, Any]], folder: Path) -> dict[tuple[str, int], Any]:
    """What importing the same lines as a folder says of each partition."""
    for told in tape:
        path = folder / told["host"] / told["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as out:
            out.write(told["text"].encode())
    found: dict[tuple[str, int], Any] = {}
    for each in fold_all(import_evidence([folder]).events()):
        found.setdefault(each.identity[1::2], []).append(plain(each.answer.verdicts))
    return {name: sorted(told) for name, told in found.items()}


def plain(verdicts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted((v["invariant"], v["verdict"]) for v in verdicts)


@dataclass
class Taped:
    """A kept run: what the laboratory knows of it."""

    folder: Path

    def __post_init__(self) -> None:
        self.site = Site.kept(self.folder / "cluster")
        notes = Notes.load(self.site.directory)
        acks = [a for a in read_lines(self.folder / "acknowledgements.jsonl") if "payload_id" in a]
        self.truths = load_truths(self.folder / "truth.json")
        # Of several lives of a topic they are not kept, and read once more.
        known = {name: truth.elections for name, truth in self.truths.items()}
        if not all(known.values()):
            known = elections(self.site, notes)
        evidence = self.folder / "evidence"
        starts = leader_starts(self.site)
        self.run = Run(self.site, evidence, acks, notes, known, starts, {}, [])

    def tape(self) -> list[dict[str, Any]]:
        """In the order in which it was seen."""
        found = read_lines(self.folder / "tape.jsonl")
        return sorted(found, key=lambda told: float(told["at"]))

    def windows(self, partition: TopicPartition) -> tuple[list[Window], int]:
        """Of each acknowledged loss of the topic's last life; and how many had none."""
        actions = self.site.actions()
        life = lives(actions, partition[0])[-1]
        view = self.run.view(partition, life, last=True)
        unclean = view.settings.unclean and not view.settings.version.kraft
        known = Partition(
            view.elections, view.starts, Replicas(view.samples), Lifetimes.of(actions),
            assignments_of(actions, *partition), life.ends, unclean, view.compacted,
        )  # fmt: skip
        told: dict[str, tuple[float, int]] = {}
        for ack in view.acks:
            if ack["status"] == "acked":
                now = seconds_of(ack["ts"]), ack["broker"]
                told[ack["payload_id"]] = min(now, told.get(ack["payload_id"], now))
        losses = [
            loss
            for loss in self.truths[partition].losses
            if loss.sure and loss.acks in ("all", "1") and loss.payload_id in told
        ]
        found = [known.window(loss, *told[loss.payload_id]) for loss in losses]
        return [one for one in found if one], sum(1 for one in found if one is None)

    def isr_alerts(self, partition: TopicPartition, at: float) -> set[str]:
        """Which of the usual alerts would stand for the partition, by the controller's records."""
        known: list[Election] = self.run.elections.get(partition, [])
        decided = leader_at(known, at)
        actions = [a for a in self.site.actions() if seconds_of(a["ts"]) <= at]
        assigned = assignments_of(actions, *partition)
        if decided is None or not assigned:
            return set()
        configs = next(a["configs"] for a in actions if a.get("topic") == partition[0])
        minimum, isr = int(configs.get("min.insync.replicas", 1)), len(decided.isr)
        # Of a partition without a leader nobody reports these; it counts as under min ISR.
        isr = 0 if decided.leader is None else isr
        stands = {
            "UnderMinIsr": isr < minimum,
            "AtMinIsr": isr == minimum,
            "UnderReplicated": isr < len(assigned[-1][1]),
        }
        return {name for name, so in stands.items() if so}


def judged(folder: Path, work: Path) -> Found:
    """One run, shipped and held against what the laboratory knows."""
    run, found = Taped(folder), Found(folder.name)
    tape = run.tape()
    fleet = shipped(tape, work / "live")
    found.steps, found.median = fleet.steps, sorted(fleet.took)[len(fleet.took) // 2]
    found.critical = [f"{at:.0f} {words}" for at, words in fleet.critical]
    for partition in partitions_of(run.site.assignments):
        hold(found, run, fleet, partition)
    expected = imported(tape, work / "folder")
    came: dict[tuple[str, int], Any] = {}
    for identity, verdicts in fleet.verdicts.items():
        came.setdefault(identity[1::2], []).append(plain(verdicts))
    for name in sorted(expected.keys() | came.keys()):
        if sorted(came.get(name, [])) != expected.get(name, []):
            found.unequal.append(f"{name}: {came.get(name)}, imported {expected.get(name)}")
    found.beside_evidence = beside(folder, came)
    return found


def hold(found: Found, run: Taped, fleet: Fleet, partition: TopicPartition) -> None:
    """What stood when, against each loss of one partition."""
    windows, without = run.windows(partition)
    found.without += without
    found.shorter += sum(1 for one in windows if one.seconds < SHORTEST)
    long = [one for one in windows if one.seconds >= SHORTEST]
    found.windows += len(long)
    stood = [(at, rows_of(rows, partition)) for at, rows in fleet.seen]
    usual = [(at, run.isr_alerts(partition, at)) for at, _ in fleet.seen]
    for window in long:
        if any(names(row, window) for row in within(stood, window)):
            found.told[OURS] += 1
        else:
            found.missed.append(missed(partition, window, within(stood, window)))
        for name in set(within(usual, window)):
            found.told[name] += 1
    for (at, rows), (_, names_now) in zip(stood, usual, strict=True):
        danger = any(one.begins <= at < one.lost for one in windows)
        for name in [*names_now, *([OURS] if rows else [])]:
            found.looks[name] += 1
            found.founded[name] += danger


def within(looks: "list[tuple[float, Any]]", window: Window) -> list[Any]:
    """All that stood at any look before the loss, while it was one failure away."""
    return [each for at, told in looks if window.begins <= at < window.lost for each in told]


def names(row: dict[str, Any], window: Window) -> bool:
    """Whether the row tells of the record, with a cause that later killed it."""
    offset = window.record.offset
    in_range = row["first_offset"] <= offset < row["end_offset"]
    # Of its causes, all that the ledger may call it come first. What took the last copy is the
    # failure, whatever election made it a loss later on.
    took = window.from_disk and row["failure"] in STORAGE
    return in_range and (took or any(cause in window.record.causes for cause in row["causes"]))


def rows_of(rows: Iterable[dict[str, Any]], partition: TopicPartition) -> list[dict[str, Any]]:
    return [r for r in rows if (r["topic"], r["partition"]) == partition]


def missed(partition: TopicPartition, window: Window, rows: list[dict[str, Any]]) -> str:
    """One loss of which nobody was told, in words."""
    record = window.record
    causes = {r["cause"] for r in rows if r["first_offset"] <= record.offset < r["end_offset"]}
    told = f"told as {sorted(causes)}" if causes else "not told"
    return (
        f"{partition[0]}-{partition[1]} offset {record.offset} (acks={record.acks}), "
        f"{' or '.join(record.causes)} by {record.missing_from}, in danger for "
        f"{window.seconds:.1f} s from {window.begins:.1f}: {told}"
    )


def beside(folder: Path, came: dict[tuple[str, int], Any]) -> Counter[str]:
    """How the verdicts of what was shipped compare with diagnose on the whole evidence."""
    answer = json.loads((folder / "answer.json").read_text())
    whole: dict[tuple[str, int], Any] = {}
    for row in answer["verdicts"]:
        name = row["topic"], row["partition"]
        whole.setdefault(name, {}).setdefault(row["invariant"], []).append(row["verdict"])
    found: Counter[str] = Counter()
    for name, by_invariant in whole.items():
        shipped_ones: dict[str, list[str]] = {}
        for told in came.get(name, []):
            for invariant, verdict in told:
                shipped_ones.setdefault(invariant, []).append(verdict)
        for invariant, verdicts in by_invariant.items():
            live = sorted(shipped_ones.get(invariant, []))
            if live == sorted(verdicts):
                found["same"] += len(verdicts)
            else:
                found[f"{'/'.join(sorted(verdicts))} -> {'/'.join(live) or 'none'}"] += 1
    return found


def summed(done: list[Found]) -> int:
    """Prints the sums; the exit status."""
    chaos, healthy = [d for d in done if not d.healthy], [d for d in done if d.healthy]
    windows = sum(d.windows for d in done)
    print(f"\n{len(chaos)} chaos runs, {len(healthy)} healthy ones, "
          f"{sum(d.steps for d in done)} micro-batches")  # fmt: skip
    shorter, without = sum(d.shorter for d in done), sum(d.without for d in done)
    print(f"{windows} acknowledged losses had been one failure away for {SHORTEST:.0f} s or more "
          f"({shorter} for less, {without} never)")  # fmt: skip
    for who in (OURS, *YARDSTICKS):
        told, looks = sum(d.told[who] for d in done), sum(d.looks[who] for d in done)
        founded, runs = sum(d.founded[who] for d in done), sum(d.looks[who] for d in healthy)
        print(f"  {who:16} told {told} of {windows} before; stood at {looks} looks, at {founded} "
              f"of them a loss was one failure away; on healthy runs at {runs}")  # fmt: skip
    compared: Counter[str] = Counter()
    for each in done:
        compared += each.beside_evidence
    print(f"unequal to importing the same lines: {sum(len(d.unequal) for d in done)} partitions")
    print(f"beside diagnose on the whole evidence: {dict(compared.most_common())}")
    print(f"healthy runs with a critical alert: {sum(1 for d in healthy if d.critical)}")
    wrong = [d.name for d in done if not d.right]
    print(f"not as wanted: {wrong or 'none'}")
    return 0 if done and not wrong else 1


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="folders of kept, taped runs")
    parser.add_argument("--only", default="", help="runs whose name has this")
    parser.add_argument("--out", type=Path, help="one JSON line for each run, as they are judged")
    flags = parser.parse_args(argv)
    folders = sorted(p.parent for runs in flags.runs for p in runs.glob("*/tape.jsonl"))
    done = []
    for folder in folders:
        if flags.only not in folder.name or not (folder / "answer.json").exists():
            continue
        with tempfile.TemporaryDirectory() as work:
            found = judged(folder, Path(work))
        print(found.text(), flush=True)
        done.append(found)
        if flags.out:
            with flags.out.open("a") as out:
                out.write(json.dumps(vars(found)) + "\n")
    return summed(done)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
