"""Bytes of messages that Kafka's own classes wrote, recorded for tests that start no Java.

    python -m tests.evidence.messages.through_kafka   # writes recorded.jsonl.gz anew

Of every layout and version values are made up and given to the generated class of Kafka 4.3.0.
"""

import gzip
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from tests.evidence.messages.from_jars import LAYOUTS, jars
from tests.evidence.messages.writing import kept, made_up, versions

RECORDED = Path(__file__).with_name("recorded.jsonl.gz")
TIMES = 5
PACKAGES = {
    "metadata": "org.apache.kafka.common.metadata",
    "data": "org.apache.kafka.common.message",
    "Transaction": "org.apache.kafka.coordinator.transaction.generated",
    "ShareSnapshot": "org.apache.kafka.coordinator.share.generated",
    "ShareUpdate": "org.apache.kafka.coordinator.share.generated",
}


def class_name(layout: dict[str, Any]) -> str:
    """The class that Kafka generates of a schema."""
    name = layout["name"]
    if layout["type"] in PACKAGES:
        return f"{PACKAGES[layout['type']]}.{name}"
    beginnings = [p for beginning, p in PACKAGES.items() if name.startswith(beginning)]
    package = beginnings[0] if beginnings else "org.apache.kafka.coordinator.group.generated"
    return f"{package}.{name}"


def cases() -> Iterator[dict[str, Any]]:
    """Each layout in each version with values, the same in every run."""
    for path in sorted(LAYOUTS.glob("*.json")):
        layout = kept(path.stem)
        random = Random(path.stem)
        for version in versions(layout):
            for _ in range(TIMES):
                values = made_up(layout, version, random)
                yield {"name": path.stem, "version": version, "values": values}


def written_by_kafka() -> list[dict[str, Any]]:
    """The cases with the bytes that Kafka wrote, and the values that it read back."""
    given = list(cases())
    lines = [
        f"{class_name(kept(c['name']))} {c['version']} {json.dumps(c['values'])}" for c in given
    ]
    program = Path(__file__).with_name("ThroughKafka.java")
    ran = subprocess.run(
        ["java", "-cp", f"{jars()}/*", str(program)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = [line.split(" ", 1) for line in ran.stdout.splitlines()]
    assert len(told) == len(given)
    return [
        {**case, "bytes": content, "read": json.loads(read)}
        for case, (content, read) in zip(given, told, strict=True)
    ]


def recorded() -> list[dict[str, Any]]:
    """The cases as they were recorded."""
    with gzip.open(RECORDED, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


if __name__ == "__main__":
    text = "".join(json.dumps(c, separators=(",", ":")) + "\n" for c in written_by_kafka())
    RECORDED.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{text.count(chr(10))} messages in {RECORDED}")
