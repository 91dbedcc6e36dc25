"""Captured incidents in clothes that once changed the answer: what is handed over twice, what
cannot be read. Each mutation says nothing new of the cluster, so no verdict may become wrong.

`python -m tests.mutated_evidence` runs all of it over every incident and prints counts per class;
the tests run a few of each class.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from tests.changed_evidence import (
    EXPECTED,
    Change,
    broker_logs,
    changed_copy,
    living,
    log_directories,
    nodes,
    verdicts_of,
    wrong_verdicts,
)

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 5\n"


def segments_below(folders: list[Path]) -> Iterator[Path]:
    """The segments of topic partitions, not of the metadata log."""
    for folder in folders:
        for path in sorted(folder.glob("*-*/*.log")):
            if not path.parent.name.startswith("__") and path.stat().st_size:
                yield path


def pointers_for_segments(chosen: Callable[[Path], bool]) -> Change:
    """Segments that were checked out without their contents, in the log directories chosen."""

    def change(evidence: Path) -> None:
        for path in segments_below([d for d in log_directories(evidence) if chosen(d)]):
            path.write_bytes(POINTER)

    return change


def damaged_first_batches(evidence: Path) -> None:
    """The first batch of every segment has a length that cannot be."""
    for path in segments_below(log_directories(evidence)):
        content = bytearray(path.read_bytes())
        content[11] ^= 0x01
        path.write_bytes(content)


def unreadable_segments(incident: str) -> Iterator[tuple[str, Change]]:
    """(what, how): segments that are there and cannot be read."""
    yield "all segments", pointers_for_segments(lambda _: True)
    yield "final segments", pointers_for_segments(lambda d: d.name == "disk-final")
    yield "older segments", pointers_for_segments(lambda d: d.name != "disk-final")
    for node in nodes(incident):
        yield f"segments of {node}", pointers_for_segments(lambda d, n=node: d.parent.name == n)
    yield "first batches", damaged_first_batches


def everything_twice(evidence: Path) -> None:
    """The whole folder once more inside itself."""
    again = evidence.parent / "again"
    shutil.copytree(evidence, again)
    again.rename(evidence / "again")


def logs_twice(evidence: Path) -> None:
    """Each broker's logs once more in one file, as a shipper collects them."""
    for node in {path.parent for path in broker_logs(evidence)}:
        parts = [path.read_bytes() for path in broker_logs(evidence) if path.parent == node]
        (node / "collected.log").write_bytes(b"".join(parts))


def logs_in_two_stages(evidence: Path) -> None:
    """Each log as it was copied half-way, beside the whole."""
    for path in broker_logs(evidence):
        lines = path.read_bytes().splitlines(keepends=True)
        first = path.parent / "earlier" / path.name
        first.parent.mkdir(exist_ok=True)
        first.write_bytes(b"".join(lines[: len(lines) * 2 // 3]))


def directories_twice(evidence: Path) -> None:
    """The final log directories under two names."""
    for directory in log_directories(evidence):
        if directory.name == "disk-final":
            shutil.copytree(directory, directory.with_name("disk-once-more"))


def repeats(incident: str) -> Iterator[tuple[str, Change]]:
    """(what, how): the same evidence handed over more than once."""
    yield "everything twice", everything_twice
    yield "logs collected besides", logs_twice
    yield "logs in two stages", logs_in_two_stages
    yield "directories twice", directories_twice


SAME_ANSWER = {"repeats": repeats}
NOTHING_WRONG = {"unreadable segments": unreadable_segments}


def folded(evidence: list[Path]) -> list[FoldedPartition]:
    """All that the evidence tells."""
    return fold_all(import_evidence(evidence).events())


def wrong_in(incident: str, partitions: list[FoldedPartition]) -> list[str]:
    """Verdicts that contradict the incident's ground truth."""
    found = []
    for topic_partition in EXPECTED[incident]:
        partition = living(partitions, topic_partition)
        if partition is not None:
            found += wrong_verdicts(incident, topic_partition, verdicts_of(partition))
    return found


def outcome(partitions: list[FoldedPartition]) -> list[object]:
    """What is told of every partition, but for where it was read and in which words."""
    fields = ("first_offset", "end_offset", "tier", "contract", "status", "cause")
    return [
        (
            f.identity,
            [(v["invariant"], v["verdict"]) for v in f.answer.verdicts],
            [[loss[name] for name in fields] for loss in f.answer.losses],
            [(d["replicas"], d["first_offset"], d["status"]) for d in f.answer.divergences],
            [(e["leader"], e["leader_epoch"], e["kind"]) for e in f.answer.partition["elections"]],
        )
        for f in partitions
    ]


def mutated(incident: str, change: Change) -> list[FoldedPartition]:
    """The incident's partitions after a change."""
    with TemporaryDirectory() as into:
        return folded([changed_copy(incident, change, Path(into))])


def main() -> int:
    """Runs every mutation over every incident."""
    failures = 0
    for name, mutations in {**SAME_ANSWER, **NOTHING_WRONG}.items():
        runs, bad = 0, []
        for incident in EXPECTED:
            intact = outcome(mutated(incident, lambda _: None))
            for what, change in mutations(incident):
                partitions = mutated(incident, change)
                runs += 1
                wrong = wrong_in(incident, partitions)
                if name in SAME_ANSWER and outcome(partitions) != intact:
                    wrong.append("another answer than without the change")
                bad += [f"{incident}, {what}: {w}" for w in wrong]
        print(f"{name}: {runs} runs, {len(bad)} wrong", *bad, sep="\n  ", flush=True)
        failures += len(bad)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
