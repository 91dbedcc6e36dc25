"""Logs beside a replica's change no answer: what waits to be deleted, what fills another directory.

Into the lines of every captured incident others are written, as brokers print them: a log of before
is deleted at last; one in another directory is filled and given up, or takes the replica's place.
"""

import random
import re
from pathlib import Path

import pytest

from tests.changed_evidence import as_captured, broker_logs, each_incident, folded_with
from tests.test_clock_skew import conclusions

QUICK = ("unclean_election__2.8.2",)
SEEDS = range(3)
_STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]")
_MADE = re.compile(r"Created log for partition (?:\[(\S+),(\d+)\]|(\S+)-(\d+)) in (\S+) ")


def deleted(topic_partition: str, home: str, other: str, hashed: str) -> list[str]:
    """The log of an earlier topic of the name, or of another directory."""
    return [
        f"Deleted log for partition {topic_partition} in {home}/{topic_partition}.{hashed}-delete."
    ]


def given_up(topic_partition: str, home: str, other: str, hashed: str) -> list[str]:
    """A log in another directory that never took the replica's place."""
    name, aside = f"{other}/{topic_partition}.{hashed}", hashed[::-1]
    return [
        f"Created log for partition {topic_partition} in {name}-future with properties {{}}",
        f"Log for partition {topic_partition} is renamed to "
        f"{other}/{topic_partition}.{aside}-delete and is scheduled for deletion",
        f"Deleted log for partition {topic_partition} in {other}/{topic_partition}.{aside}-delete.",
    ]


def moved(topic_partition: str, home: str, other: str, hashed: str) -> list[str]:
    """A log in another directory that takes the replica's place."""
    name = f"{other}/{topic_partition}.{hashed}-future"
    return [
        f"Created log for partition {topic_partition} in {name} with properties {{}}",
        f"[Log partition={topic_partition}, dir={other}] Truncating to offset 0",
        f"The current replica is successfully replaced with the future replica for "
        f"{topic_partition}",
        *deleted(topic_partition, home, other, hashed[::-1]),
    ]


WRITTEN = {"deleted": deleted, "given up": given_up, "moved": moved}


def write_into(path: Path, what: str, seed: int) -> None:
    """Writes the lines behind one that stands anywhere after the log's creation."""
    chance = random.Random(f"{path.parent.name} {what} {seed}")
    lines = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    made = [(n, found) for n, line in enumerate(lines) if (found := _MADE.search(line))]
    if not made:
        return
    number, found = chance.choice(made)
    topic_partition = f"{found[1] or found[3]}-{found[2] or found[4]}"
    home = found[5].removesuffix(f"/{topic_partition}")
    other = f"/second{home}"
    stamped = [n for n in range(number, len(lines)) if _STAMP.match(lines[n])]
    place = chance.choice(stamped)
    at = _STAMP.match(lines[place])
    assert at is not None
    hashed = f"{chance.getrandbits(128):032x}"
    told = [
        f"[{at[1]}] INFO {text} (kafka.log.{'Log' if text[0] == '[' else 'LogManager'})"
        for text in WRITTEN[what](topic_partition, home, other, hashed)
    ]
    behind = lines[place + 1 :]
    if what == "moved":
        of_it = re.compile(rf"\b{re.escape(topic_partition)}\b|\[{found[1]},{found[2]}\]")
        behind = [x.replace(home, other) if of_it.search(x) else x for x in behind]
    text = "\n".join([*lines[: place + 1], *told, *behind])
    # Its settings name both directories.
    text = re.sub(rf"(\blog\.dirs? = ){re.escape(home)}$", rf"\1{home},{other}", text, flags=re.M)
    listed = rf"(\blog\.dirs = \[{re.escape(home)})\]$"  # As Kafka 4.3 prints them.
    text = re.sub(listed, rf"\1, {other}]", text, flags=re.M)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("what", WRITTEN)
@pytest.mark.parametrize("incident", each_incident(QUICK))
def test_a_log_beside_a_replica_changes_nothing(incident: str, what: str) -> None:
    for seed in SEEDS:

        def change(evidence: Path, seed: int = seed) -> None:
            for path in broker_logs(evidence):
                write_into(path, what, seed)

        assert conclusions(folded_with(incident, change)) == conclusions(as_captured(incident)), (
            seed
        )
