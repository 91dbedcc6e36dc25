"""`trace` over every record of kept captures, held against the laboratory's truth.

    python -m tests.recovery.traced DIR...

DIR holds captures as `python -m tests.kafka_lab --keep DIR` leaves them. Of each record that any
copy holds or a producer was told of: every place (file and byte) as the files have it, by a reader
that does not know the product's copies; lost or not as the truth has it, or said unknown.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from replication.evidence.importer import import_evidence
from replication.evidence.log_directories.record_payloads import read_record_identities
from replication.evidence.log_directories.segments import RecordBatch, read_batches
from replication.protocol.judgement.bounded import fold_all
from replication.recovery.tracing import Asked, traced
from tests.kafka_lab.truth import PartitionTruth, load_truths

Name = tuple[str, int, str, int]


def held(evidence: Path) -> dict[Name, set[tuple[str, int]]]:
    """(topic, partition, value's id, offset) -> (file, byte of the batch) of every copy."""
    found: dict[Name, set[tuple[str, int]]] = {}
    for path in sorted(evidence.glob("*/*/**/*.log")):
        topic, _, number = path.parent.name.partition(".")[0].rpartition("-")
        if not path.stem.isdecimal() or not number.isdecimal() or topic.startswith("__"):
            continue
        for item in read_batches(path):
            if not isinstance(item, RecordBatch) or item.is_control:
                continue
            records = read_record_identities(path, item)
            for record in records if isinstance(records, list) else []:
                named = (record.value or b"").rstrip(b".").decode("utf-8", "replace")
                place = (str(path), item.position)
                found.setdefault((topic, int(number), named, record.offset), set()).add(place)
    return found


def stories(evidence: Path, clients: set[str]) -> list[dict[str, Any]]:
    """What `trace` tells of all records of these clients; the evidence is read once."""
    imported = import_evidence([evidence])
    folded = fold_all(imported.events())
    answer = {
        "losses": [x for f in folded for x in f.answer.losses],
        "verdicts": [v for f in folded for v in f.answer.verdicts],
    }
    return [
        story
        for client in sorted(clients)
        for part in traced(imported, folded, answer, Asked(client=client))
        for story in part.stories
    ]


def differences(directory: Path, counts: Counter[str]) -> Iterator[str]:
    """What is told otherwise than it was. counts: how many stories came to what."""
    evidence = directory / "evidence"
    truths = load_truths(directory / "truth.json")
    lines = (evidence / "acks.jsonl").read_text().splitlines()
    expected = held(evidence)
    seen = set()
    for story in stories(evidence, {json.loads(line)["client"] for line in lines}):
        topic, number, offset = story["topic"], story["partition"], story["offset"]
        truth = truths.get((topic, number))
        record = story["record"]
        counts["records"] += 1
        if record is not None:
            value = (record["value"] or "").rstrip(".")
            name = (topic, number, value, offset)
            places = {(p["file"], p["position"]) for p in story["places"]}
            seen.add(name)
            if places != expected.get(name):
                yield f"{name}: places {sorted(places)}, files {sorted(expected.get(name, ()))}"
        if truth is not None:
            wrong = _of_loss(story, truth, counts)
            if wrong:
                yield f"{topic}-{number} offset {offset}: {wrong}"
    counts["places"] += sum(len(expected[name]) for name in seen if name in expected)


def _of_loss(story: dict[str, Any], truth: PartitionTruth, counts: Counter[str]) -> str | None:
    """What is wrong with what a story says of the record's loss."""
    record = story["record"]
    named = None if record is None else (record["value"] or "").rstrip(".")
    rows = [
        one
        for one in truth.losses
        if one.offset == story["offset"] and named in (None, one.payload_id)
    ]
    told = {x["status"] for x in story["losses"]}
    unknown = bool(story["not_known"]) or "undetermined" in told
    surely = [one for one in rows if one.sure and not one.recovered]
    gone = bool(told & {"lost", "recoverable"})
    if surely and not gone:
        counts["lost, said unknown" if unknown else "lost, not told"] += 1
        return None if unknown else "lost, and no loss is told"
    if gone and not rows and record is not None:
        counts["not lost, told lost"] += 1
        return "told lost, and the truth has no such loss"
    counts["lost, told" if surely else "not lost"] += 1
    return None


def main(words: list[str]) -> int:
    """Exit status 1 where anything is told wrongly."""
    counts: Counter[str] = Counter()
    captures = sorted(p.parent for word in words for p in Path(word).glob("**/truth.json"))
    wrong = 0
    for directory in captures:
        told = list(differences(directory, counts))
        wrong += bool(told)
        print(f"{directory.name}: {len(told)} wrong", *told[:5], sep="\n  ", flush=True)
    print(f"{len(captures)} captures, {wrong} with wrong stories: {dict(counts)}")
    return 1 if wrong or not captures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
