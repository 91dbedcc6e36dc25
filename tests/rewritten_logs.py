"""Captured incidents whose broker logs say the same in other ways; no verdict may become wrong.

`python -m tests.rewritten_logs FIRST END` runs every way over every incident with many seeds:
- summer time: the logs print the local time of a zone whose clocks are set within the run;
- an earlier life: before the topic there was one of the same name, whose deletion ends at any time,
  of which only some brokers' lines tell;
- wrapped: lines are broken at a width, as in a terminal or a ticket.
"""

import random
import re
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo

from replication.evidence.collecting.collection import NOTHING_TOLD, Told
from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import fold_all
from tests.changed_evidence import (
    EXPECTED,
    INCIDENTS,
    Change,
    broker_logs,
    changed_copy,
    living,
    verdicts_of,
    wrong_verdicts,
)
from tests.test_clock_skew import STAMP

_CREATED = re.compile(r"^\[[^]]*\] INFO Created log for partition (\[t,0\]|t-0) in (\S+) .*$", re.M)
_NAMED = re.compile(r"^\[([^],]*),\d+\] .*(?:\[t,0\]|\bt-0\b).*$", re.M)
Outcome = tuple[list[str], Counter[str]]


def outcomes(incident: str, change: Change, told: Told = NOTHING_TOLD, lives: int = 1) -> Outcome:
    """What is wrong, and how many verdicts of each sort there are. lives: of each topic, at most,
    but for the topic that was created anew in the captured run."""
    with tempfile.TemporaryDirectory() as into:
        evidence = changed_copy(incident, change, Path(into))
        folded = fold_all(import_evidence([evidence], told=told).events())
    wrong: list[str] = []
    sorts: Counter[str] = Counter()
    for topic_partition in EXPECTED[incident]:
        found = living(folded, topic_partition)
        if found is None:
            wrong.append(f"{topic_partition}: no living topic")
            continue
        verdicts = verdicts_of(found)
        sorts.update(verdict.split(":")[0] for verdict in verdicts.values())
        wrong += wrong_verdicts(incident, topic_partition, verdicts)
    counted = Counter(f"{f.identity[1]}-{f.identity[3]}" for f in folded)
    most = lives + ("recreated" in incident)
    wrong += [f"{each}: {count} lives" for each, count in counted.items() if count > most]
    return wrong, sorts


def _rewrite(path: Path, change: Callable[[str], str]) -> None:
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    path.write_bytes(change(text).encode("utf-8", "surrogateescape"))


# -- summer time ----------------------------------------------------------------------------------
def zone_set_at(moment: datetime, before: int, after: int) -> ZoneInfo:
    """A time zone whose clocks are set at a moment. before, after: seconds ahead of UTC."""
    header = b"TZif2" + bytes(15)
    # Counts: UT/local, standard/wall, leap seconds, transitions, types, characters of names.
    counts = struct.pack(">6I", 0, 0, 0, 1, 2, 8)
    types = struct.pack(">iBB", before, 0, 0) + struct.pack(">iBB", after, 1, 4)
    names, at = b"ONE\0TWO\0", int(moment.timestamp())
    block = b"\1" + types + names
    body = header + counts + struct.pack(">i", at) + block
    body += header + counts + struct.pack(">q", at) + block + b"\n\n"
    return ZoneInfo.from_file(BytesIO(body), key="Laboratory/Summer")


def summer_time(incident: str, seed: int) -> tuple[Change, Told]:
    """All brokers' logs by one zone whose clocks go forward or back within the run."""
    chance = random.Random(seed)
    stamps = sorted(
        match[1]
        for path in broker_logs(INCIDENTS / incident)
        for match in STAMP.finditer(path.read_bytes().decode("utf-8", "replace"))
    )
    moment = datetime.strptime(chance.choice(stamps), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    winter = chance.choice((-5, 0, 1, 10)) * 3600
    ahead = chance.choice((3600, 3600, 1800))
    zone = zone_set_at(moment, *chance.choice(((winter, winter + ahead), (winter + ahead, winter))))

    def local(match: re.Match[str]) -> str:
        at = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        return f"[{at.astimezone(zone):%Y-%m-%d %H:%M:%S},{match[2]}]"

    def change(evidence: Path) -> None:
        for path in broker_logs(evidence):
            _rewrite(path, lambda text: STAMP.sub(local, text))

    return change, Told(time_zone=zone)


# -- an earlier life ------------------------------------------------------------------------------
def earlier_life(seed: int) -> Change:
    """A topic of the same name before: created, renamed, and deleted at any time since; each line
    may be missing from a broker's log, and all of a broker's."""
    chance = random.Random(seed)

    def told(text: str, at: str) -> str:
        created = _CREATED.search(text)
        if created is None or chance.random() < 0.2:
            return text
        directory = created[2] if created[2].endswith("t-0") else f"{created[2]}/t-0"
        set_aside = f"{directory}.{chance.getrandbits(128):032x}-delete"
        lines = [
            f"INFO Created log for partition {created[1]} in {created[2]} with properties {{}}. "
            "(kafka.log.LogManager)",
            f"INFO Log for partition {created[1]} is renamed to {set_aside} and is scheduled for "
            "deletion (kafka.log.LogManager)",
        ]
        before = "".join(f"[{at},000] {line}\n" for line in lines if chance.random() < 0.8)
        since = next(match.start() for match in STAMP.finditer(text) if match[1] >= at)
        head, tail = text[:since] + before, text[since:]
        if chance.random() < 0.8:
            where = chance.choice(list(STAMP.finditer(tail)))
            tail = (
                f"{tail[: where.start()]}{where[0]} INFO Deleted log for partition {created[1]} in "
                f"{set_aside}. (kafka.log.LogManager)\n{tail[where.start() :]}"
            )
        return head + tail

    def change(evidence: Path) -> None:
        logs = broker_logs(evidence)
        texts = [path.read_bytes().decode("utf-8", "replace") for path in logs]
        first = min(match[1] for text in texts for match in _NAMED.finditer(text))
        at = datetime.strptime(first, "%Y-%m-%d %H:%M:%S") - timedelta(seconds=1)
        for path in logs:
            if path.name in ("server.log", "all.log"):
                _rewrite(path, lambda text: told(text, f"{at:%Y-%m-%d %H:%M:%S}"))

    return change


# -- wrapped --------------------------------------------------------------------------------------
def folded_at(line: str, width: int, at_words: bool) -> Iterator[str]:
    """A line broken at a width, between words or anywhere; every character stays."""
    while len(line) > width:
        cut = (line.rfind(" ", 40, width) + 1 if at_words else 0) or width
        yield line[:cut]
        line = line[cut:]
    yield line


def wrapped(seed: int) -> Change:
    """Every line of some brokers' logs broken at a width, between words or anywhere."""
    chance = random.Random(seed)
    width, at_words = chance.choice((80, 100, 120, 160, 200)), chance.random() < 0.5

    def fold(text: str) -> str:
        return "\n".join(p for line in text.split("\n") for p in folded_at(line, width, at_words))

    def change(evidence: Path) -> None:
        for path in broker_logs(evidence):
            if chance.random() < 0.7:
                _rewrite(path, fold)

    return change


WAYS: dict[str, Callable[[str, int], Outcome]] = {
    "summer time": lambda incident, seed: outcomes(incident, *summer_time(incident, seed)),
    "an earlier life": lambda incident, seed: outcomes(incident, earlier_life(seed), lives=2),
    "wrapped": lambda incident, seed: outcomes(incident, wrapped(seed)),
}


def main(seeds: range) -> None:
    """What came out wrong, and how much stayed decided."""
    for way, judged in WAYS.items():
        total: Counter[str] = Counter()
        for seed in seeds:
            for incident in EXPECTED:
                wrong, sorts = judged(incident, seed)
                total += sorts
                total += Counter(runs=1, wrong=len(wrong))
                if wrong:
                    print(f"{way}: {incident} {seed}: {wrong}", flush=True)
        print(f"{way}: {dict(total)}", flush=True)


if __name__ == "__main__":
    main(range(*map(int, sys.argv[1:] or ("0", "4"))))
