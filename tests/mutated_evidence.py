"""Captured incidents in clothes that once changed the answer: what is handed over twice, what
cannot be read. Each mutation says nothing new of the cluster, so no verdict may become wrong.

`python -m tests.mutated_evidence` runs all of it over every incident and prints counts per class;
the tests run a few of each class.
"""

import base64
import hashlib
import json
import re
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import crc32c

from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from tests.changed_evidence import (
    EXPECTED,
    INCIDENTS,
    Change,
    as_captured,
    broker_logs,
    folded_with,
    living,
    log_directories,
    nodes,
    verdicts_of,
    wrong_verdicts,
)
from tests.damage import batch_starts

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


def acknowledged_as(renamed: Callable[[int, dict[str, Any]], str]) -> Change:
    """Other payload ids in the producers' log."""

    def change(evidence: Path) -> None:
        path = evidence / "acks.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        rows = [{**row, "payload_id": renamed(n, row)} for n, row in enumerate(rows)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    return change


def told_no_offset(of: Callable[[int, dict[str, Any]], bool]) -> Change:
    """Producers that were not told at which offset: after a second attempt at a write."""

    def change(evidence: Path) -> None:
        path = evidence / "acks.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        rows = [{**row, "offset": None} if of(n, row) else row for n, row in enumerate(rows)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    return change


def acknowledged_without_offsets(incident: str) -> Iterator[tuple[str, Change]]:
    """(what, how): acknowledgements without an offset, of records that are gone or not."""
    yield "all", told_no_offset(lambda _, __: True)
    yield "every third", told_no_offset(lambda n, _: n % 3 == 0)
    yield "acks=all", told_no_offset(lambda _, row: row["acks"] == "all")
    yield "the last half", told_no_offset(lambda _, row: (row["offset"] or 0) > 9)


# What the laboratory writes: the id as key, and behind its length once more in a JSON value.
_IN_RECORD = re.compile(rb'([\w-]+)((?:\x00\x00\x00)?.)\{"id": "\1"\}', re.DOTALL)


def rewritten_records(*, keys: bool, values: bool) -> Change:
    """Keys that all are the same, or values without an id, in every copy; sizes stay."""

    def rewritten(found: re.Match[bytes]) -> bytes:
        key, between = found[1], found[2]
        value = b'{"id": "' + (b"v" * len(key) if values else key) + b'"}'
        return (b"k" * len(key) if keys else key) + between + value

    def change(evidence: Path) -> None:
        for path in segments_below(log_directories(evidence)):
            content = bytearray(path.read_bytes())
            for start in batch_starts(bytes(content)):
                size = 12 + int.from_bytes(content[start + 8 : start + 12], "big")
                batch = bytearray(_IN_RECORD.sub(rewritten, bytes(content[start : start + size])))
                if batch[16] == 2:
                    batch[17:21] = crc32c.crc32c(bytes(batch[21:])).to_bytes(4, "big")
                else:
                    batch[12:16] = zlib.crc32(bytes(batch[16:])).to_bytes(4, "big")
                content[start : start + size] = batch
            path.write_bytes(content)

    return change


def ids_that_name_records(incident: str) -> Iterator[tuple[str, Change]]:
    """(what, how): payload ids that stand in the records in some other form."""
    yield "ids in the value", rewritten_records(keys=True, values=False)
    for name, encoded in (
        ("hex", lambda text: text.encode().hex()),
        ("base64", lambda text: base64.b64encode(text.encode()).decode()),
    ):
        yield f"ids in {name}", acknowledged_as(lambda _, row, e=encoded: e(row["payload_id"]))


def ids_that_name_nothing(incident: str) -> Iterator[tuple[str, Change]]:
    """(what, how): payload ids that are not the records' own, or not all."""

    def hashed(_: int, row: dict[str, Any]) -> str:
        return hashlib.sha1(row["payload_id"].encode()).hexdigest()

    yield "hashed ids", acknowledged_as(hashed)
    yield "ids counted anew", acknowledged_as(lambda n, _: str(n))
    yield "ids shifted by one", acknowledged_as(lambda n, row: f"p0-{n + 1:06d}")
    yield "ids of seven kinds", acknowledged_as(lambda n, row: f"p0-{n % 7:06d}")
    yield (
        "every third id hashed",
        acknowledged_as(lambda n, row: row["payload_id"] if n % 3 else hashed(n, row)),
    )
    yield "records without ids", rewritten_records(keys=True, values=True)


# Captures of one release on brokers of the same ids, the earlier one first.
_FOLLOWING = [
    (
        "kip101_scenario_1__0.10.2.2__loss_only",
        "kip101_scenario_1__0.10.2.2__silent_divergence__trace",
    ),
    ("kip101_scenario_1__1.1.1__control", "acks1_loss__1.1.1__trace"),
    ("acks1_loss__1.1.1__trace", "same_epoch_power_loss__1.1.1"),
    ("acks1_loss__1.1.1__trace", "chaos__1.1.1__seed39__trace"),
    ("same_epoch_power_loss__1.1.1", "chaos__1.1.1__seed39__trace"),
    ("unclean_election__2.8.2", "isr_shrink_expand__2.8.2__trace"),
    ("unclean_election__2.8.2", "chaos__2.8.2__seed36"),
    ("isr_shrink_expand__2.8.2__trace", "chaos__2.8.2__seed36"),
]
_CLUSTER_ID = re.compile(rb"(?:cluster\.id=|Cluster ID: |Cluster ID = )([\w-]{22})")


def cluster_ids(folder: Path) -> set[bytes]:
    """The cluster ids that logs and meta.properties name."""
    files = [*folder.glob("*/*.log*"), *folder.rglob("meta.properties")]
    return {i for path in files for i in _CLUSTER_ID.findall(path.read_bytes())}


def created_anew_after(first: str) -> Change:
    """The topics lived before, on the same cluster: an earlier capture's evidence joins."""

    def change(evidence: Path) -> None:
        earlier = evidence.parent / "earlier"
        shutil.copytree(INCIDENTS / first, earlier, ignore=shutil.ignore_patterns("truth.json"))
        (known, *_), (now, *_) = [*cluster_ids(earlier), b""], [*cluster_ids(evidence), b""]
        for path in [*earlier.glob("*/*.log*"), *earlier.rglob("meta.properties")]:
            if known and now:
                path.write_bytes(path.read_bytes().replace(known, now))
        for path in [*broker_logs(earlier), earlier / "acks.jsonl", earlier / "describe.txt"]:
            place = evidence / path.relative_to(earlier)
            later = place.read_bytes() if place.exists() else b""
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(path.read_bytes() + later)
        for directory in log_directories(earlier):
            directory.rename(evidence / directory.parent.name / f"before-{directory.name}")
        shutil.rmtree(earlier)

    return change


def topics_created_anew(incident: str) -> Iterator[tuple[str, Change]]:
    """(what, how): the same topics with an earlier life on the same brokers."""
    for first, second in _FOLLOWING:
        if second == incident:
            yield f"after {first}", created_anew_after(first)


def moved_off(broker: int) -> Change:
    """A last description without a broker, whose directories are gone with its replicas."""

    def change(evidence: Path) -> None:
        path = evidence / "describe.txt"
        text = path.read_text()
        latest = text.rpartition("# ")[2]
        without = re.sub(rf"(Replicas: [\d,]*?),?\b{broker}\b,?", r"\1", latest)
        path.write_text(f"{text}# 2030-01-01T00:00:00.000Z\n{without.partition(chr(10))[2]}")
        for directory in log_directories(evidence):
            if directory.parent.name == f"broker-{broker}":
                shutil.rmtree(directory)

    return change


def reassignments(incident: str) -> Iterator[tuple[str, Change]]:
    """(what, how): a replica that was moved off after all that the logs tell.

    Where replicas diverged, that mends it.
    """
    if any("divergent" in expected for expected in EXPECTED[incident].values()):
        return
    for node in nodes(incident):
        if node.startswith("broker-"):
            yield f"moved off {node}", moved_off(int(node.removeprefix("broker-")))


SAME_ANSWER = {"repeats": repeats, "ids that name records": ids_that_name_records}
NOTHING_WRONG = {
    "unreadable segments": unreadable_segments,
    "ids that name nothing": ids_that_name_nothing,
    "acknowledged without offsets": acknowledged_without_offsets,
    "topics created anew": topics_created_anew,
    "reassignments": reassignments,
}


def folded(evidence: list[Path]) -> list[FoldedPartition]:
    """All that the evidence tells, with nothing taken for granted."""
    return fold_all(import_evidence(evidence).events(), strict=True)


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


def main(chosen: list[str]) -> int:
    """Runs every mutation over every incident; chosen: only these classes."""
    failures = 0
    for name, mutations in {**SAME_ANSWER, **NOTHING_WRONG}.items():
        if chosen and name not in chosen:
            continue
        runs, bad = 0, []
        for incident in EXPECTED:
            intact = outcome(as_captured(incident))
            for what, change in mutations(incident):
                partitions = folded_with(incident, change)
                runs += 1
                wrong = wrong_in(incident, partitions)
                if name in SAME_ANSWER and outcome(partitions) != intact:
                    wrong.append("another answer than without the change")
                bad += [f"{incident}, {what}: {w}" for w in wrong]
        print(f"{name}: {runs} runs, {len(bad)} wrong", *bad, sep="\n  ", flush=True)
        failures += len(bad)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
