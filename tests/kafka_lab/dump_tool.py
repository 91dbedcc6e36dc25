"""Kafka's own kafka-dump-log as a witness: records of segments, and the controller's history."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kafka_lab.processes import run_tool
from tests.kafka_lab.versions import Version

DUMPED = re.compile(r"^Dumping (.+)$")
RECORD = re.compile(r"^(?:\| )?offset: (\d+) .*?(?: key: (.*?))?(?: payload: (.*))?$")
BATCH = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) .*partitionLeaderEpoch: (-?\d+) ")
CREATED = re.compile(r"CreateTime: (\d+)")


@dataclass(frozen=True)
class Dumped:
    """One record as the tool prints it."""

    offset: int
    leader_epoch: int | None
    payload_id: str
    key: str


def dump_segments(version: Version, files: list[Path]) -> dict[Path, list[Dumped]]:
    """Every record of every segment, control records left out."""
    if not files:
        return {}
    found: dict[Path, list[Dumped]] = {path: [] for path in files}
    epochs = _epochs_of_old_tool(version, files) if not version.at_least(2, 4) else {}
    current, leader_epoch = files[0], None
    for line in _run(version, ["--print-data-log", "--deep-iteration"], files):
        if match := DUMPED.match(line):
            current, leader_epoch = Path(match[1]), None
        elif match := BATCH.match(line):
            leader_epoch = int(match[3])
        elif (match := RECORD.match(line)) and match[2] is not None:
            offset = int(match[1])
            told = epochs[current].get(offset) if current in epochs else leader_epoch
            found[current].append(Dumped(offset, told, (match[3] or "").rstrip("."), match[2]))
    return found


def metadata_records(version: Version, files: list[Path]) -> list[tuple[int, dict[str, Any]]]:
    """The controller's records in order: append time in milliseconds, and the decoded record."""
    found = []
    for line in _run(version, ["--cluster-metadata-decoder"], files):
        _, mark, payload = line.partition(" payload: ")
        created = CREATED.search(line)
        if mark and payload.startswith("{") and created:
            found.append((int(created[1]), json.loads(payload)))
    return found


def _epochs_of_old_tool(version: Version, files: list[Path]) -> dict[Path, dict[int, int]]:
    """Tools before 2.4 print the epoch only without the records."""
    if version.magic < 2:
        return {}
    found: dict[Path, dict[int, int]] = {path: {} for path in files}
    current = files[0]
    for line in _run(version, [], files):
        if match := DUMPED.match(line):
            current = Path(match[1])
        elif match := BATCH.match(line):
            for offset in range(int(match[1]), int(match[2]) + 1):
                found[current][offset] = int(match[3])
    return found


def _run(version: Version, options: list[str], files: list[Path]) -> list[str]:
    names = ",".join(map(str, files))
    return run_tool(
        version.class_path, [version.dump_tool, *options, "--files", names]
    ).splitlines()
