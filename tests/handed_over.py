"""Captured incidents as people hand them over: directories alone, logs alone, one broker alone,
pastes, and files into which several kinds of output were put, cut or wrapped.

The truth stays what it was: no verdict may contradict it, and by default few may be UNKNOWN.

    python -m tests.handed_over [--incidents N] [--seed S] [SHAPE ..]
"""

import argparse
import gzip
import html
import json
import random
import re
import shutil
import sys
import tarfile
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

from replication.evidence.collecting.collection import NoEvidence
from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import fold_all
from tests.changed_evidence import (
    DECIDING,
    EXPECTED,
    Change,
    broker_logs,
    changed_copy,
    digests_for_directories,
    dumps_for_directories,
    living,
    log_directories,
    nodes,
    verdicts_of,
    wrong_verdicts,
)

Lines = Callable[[list[str]], list[str]]
STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d),(\d{3})\] ")
CUT = re.compile(r"[Tt]runcat|ISR|[Ll]eader|LEADER")


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _text(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8", "surrogateescape").splitlines()


def _write(path: Path, lines: Sequence[str], end: str = "\n") -> None:
    path.write_bytes("".join(line + end for line in lines).encode("utf-8", "surrogateescape"))


def only(*kept: str) -> Change:
    """Leaves "logs", "directories", "acks", "describe" or what a file or folder is named."""

    def change(evidence: Path) -> None:
        logs, directories = broker_logs(evidence), log_directories(evidence)
        _remove([] if "logs" in kept else logs)
        _remove([] if "directories" in kept else directories)
        _remove([] if "acks" in kept else evidence.glob("acks.jsonl"))
        _remove([] if "describe" in kept else evidence.glob("describe*"))

    return change


def one_behind_the_other(*changes: Change) -> Change:
    def change(evidence: Path) -> None:
        for each in changes:
            each(evidence)

    return change


def each_log(told: Lines, end: str = "\n") -> Change:
    """Every broker log line by line as somebody has it."""

    def change(evidence: Path) -> None:
        for path in broker_logs(evidence):
            _write(path, told(_text(path)), end)

    return change


def of_one_broker(number: int) -> Change:
    """The folder of one broker alone."""

    def change(evidence: Path) -> None:
        brokers = sorted(p for p in evidence.glob("broker-*") if p.is_dir())
        kept = brokers[number % len(brokers)]
        _remove(p for p in evidence.iterdir() if p.is_dir() and p != kept)

    return change


def without_checkpoints(evidence: Path) -> None:
    _remove(p for d in log_directories(evidence) for p in d.rglob("*checkpoint*"))


def packed(evidence: Path) -> None:
    for folder in [p for p in sorted(evidence.iterdir()) if p.is_dir()]:
        with tarfile.open(f"{folder}.tgz", "w:gz") as tar:
            tar.add(folder, folder.name)
        shutil.rmtree(folder)


def rotated(evidence: Path) -> None:
    """In packed pieces of 300 lines, named as log4j rolls by size."""
    for path in broker_logs(evidence):
        lines = _text(path)
        count = (len(lines) + 299) // 300
        for piece in range(count - 1):
            text = "".join(f"{line}\n" for line in lines[piece * 300 : piece * 300 + 300])
            old = path.with_name(f"{path.name}.{count - 1 - piece}.gz")
            old.write_bytes(gzip.compress(text.encode("utf-8", "surrogateescape")))
        _write(path, lines[max(0, count - 1) * 300 :])


def without_stamps(lines: list[str]) -> list[str]:
    return [STAMP.sub("", line) for line in lines]


def wrapped(lines: list[str]) -> list[str]:
    """As a terminal of 120 columns, copied."""
    rows = (textwrap.wrap(line, 120, break_on_hyphens=False, break_long_words=False) or [""]
            for line in lines)  # fmt: skip
    return [row for each in rows for row in each]


def about(*words: str) -> Lines:
    """What grep leaves."""
    return lambda lines: [line for line in lines if any(word in line for word in words)]


def around_what_tells(lines: list[str]) -> list[str]:
    near = {n + more for n, line in enumerate(lines) if CUT.search(line) for more in (-1, 0, 1)}
    return [line for n, line in enumerate(lines) if n in near]


def as_iso(line: str) -> str:
    return STAMP.sub(r"\1T\2.\g<3>Z ", line)[:24]


def in_json(lines: list[str]) -> list[str]:
    return [json.dumps({"@timestamp": as_iso(x), "message": x}) for x in lines if STAMP.match(x)]


def by_containerd(lines: list[str]) -> list[str]:
    last = "2026-11-20T00:00:00.000Z"
    told = []
    for line in lines:
        last = as_iso(line) if STAMP.match(line) else last
        told.append(f"{last} stdout F {line}")
    return told


def into_one_file(evidence: Path) -> None:
    """All logs of each broker in one file, by time."""
    for folder in sorted({path.parent for path in broker_logs(evidence)}):
        paths = [path for path in broker_logs(evidence) if path.parent == folder]
        blocks: list[list[str]] = []
        for path in paths:
            for line in _text(path):
                if STAMP.match(line) or not blocks:
                    blocks.append([])
                blocks[-1].append(line)
        blocks.sort(key=lambda block: block[0][:25])
        _remove(paths)
        _write(folder / "everything.txt", [line for block in blocks for line in block])


def together(first: str, second: str, change_lines: Lines = list) -> Change:
    """Two kinds of output put into one file, with a word of somebody's before each."""

    def change(evidence: Path) -> None:
        told: list[str] = []
        for kind in (first, second):
            for path in _of_kind(evidence, kind):
                told += ["", f"This is what we have of {path.parent.name}:", "", *_text(path), ""]
                _remove([path])
        _write(evidence / "ticket.txt", change_lines(told))

    return change


def _of_kind(evidence: Path, kind: str) -> list[Path]:
    if kind == "log":
        return [path for path in broker_logs(evidence) if path.name in ("server.log", "all.log")]
    return sorted(
        evidence.rglob({"acks": "acks.jsonl", "describe": "describe*", "dump": "dump.txt"}[kind])
    )


def cut_at(share: float, *, end: bool = False) -> Lines:
    """The last part of the lines, or with end the first."""
    return lambda lines: (
        lines[: int(len(lines) * share)] if end else lines[int(len(lines) * (1 - share)) :]
    )


def dumped(incident: str) -> Change:
    return dumps_for_directories(incident, nodes(incident))


LOGS, DISKS = only("logs"), only("directories")
SHAPES: dict[str, Change] = {
    "directories alone": DISKS,
    "directories without checkpoints": one_behind_the_other(DISKS, without_checkpoints),
    "directories as digests": one_behind_the_other(DISKS, digests_for_directories),
    "directories, packed": one_behind_the_other(DISKS, packed),
    "directories and describe": only("directories", "describe"),
    "directories and acks": only("directories", "acks"),
    "logs alone": LOGS,
    "logs and acks": only("logs", "acks"),
    "logs and describe": only("logs", "describe"),
    "logs, the last half": one_behind_the_other(LOGS, each_log(cut_at(0.5))),
    "logs, the first half": one_behind_the_other(LOGS, each_log(cut_at(0.5, end=True))),
    "everything, of logs the last third": each_log(cut_at(0.34)),
    "everything, of logs the first third": each_log(cut_at(0.34, end=True)),
    "everything, logs without stamps": each_log(without_stamps),
    "logs without stamps": one_behind_the_other(LOGS, each_log(without_stamps)),
    "everything, logs wrapped": each_log(wrapped),
    "logs wrapped": one_behind_the_other(LOGS, each_log(wrapped)),
    "logs quoted": one_behind_the_other(LOGS, each_log(lambda lines: [f"> {x}" for x in lines])),
    "logs in one file a broker": one_behind_the_other(LOGS, into_one_file),
    "logs of docker compose": each_log(lambda lines: [f"kafka-1  | {x}" for x in lines]),
    "logs of containerd": each_log(by_containerd),
    "logs in JSON": each_log(in_json),
    "logs with CRLF": each_log(list, "\r\n"),
    "logs in colours": each_log(lambda lines: [f"\x1b[32m{x}\x1b[0m" for x in lines]),
    "logs from a web page": each_log(lambda lines: [html.escape(x) for x in lines]),
    "logs rotated and packed": one_behind_the_other(LOGS, rotated),
    "logs, lines about the topic": one_behind_the_other(LOGS, each_log(about("t-0", "[t,0]"))),
    "logs, warnings": each_log(about("] WARN ", "] ERROR ", "] FATAL ")),
    "logs, around what tells": one_behind_the_other(LOGS, each_log(around_what_tells)),
    "broker 1 alone": of_one_broker(0),
    "broker 2 alone": of_one_broker(1),
    "broker 3 alone": of_one_broker(2),
    "logs of broker 1": one_behind_the_other(LOGS, of_one_broker(0)),
    "logs of broker 3": one_behind_the_other(LOGS, of_one_broker(2)),
    "directories of broker 2": one_behind_the_other(DISKS, of_one_broker(1)),
}  # fmt: skip
# What was done to a file into which two kinds of output were put.
DONE: dict[str, Lines] = {
    "": list,
    ", cut": cut_at(0.7, end=True),
    ", the last part": cut_at(0.6),
    ", wrapped": wrapped,
    ", quoted": lambda lines: [f"> {x}" for x in lines],
}
MIXED: dict[str, Change] = {
    f"{first} and {second} in a file{how}": together(first, second, change)
    for first, second in permutations(("log", "describe", "acks", "dump"), 2)
    for how, change in DONE.items()
}
OF_DUMPS = {shape: change for shape, change in MIXED.items() if "dump" in shape}
SHAPES |= {shape: change for shape, change in MIXED.items() if shape not in OF_DUMPS}


BEFORE_THE_END = frozenset(
    ("logs, the first half", *(s for s in MIXED if "log" in s and s.endswith(", cut")))
)


@dataclass
class Outcome:
    """What is wrong; what is wrong and takes for granted, and says so, what was not; how many
    verdicts there are of each sort."""

    wrong: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    sorts: Counter[str] = field(default_factory=Counter)


def outcome(incident: str, change: Change, *, to_the_end: bool = True) -> Outcome:
    """One incident handed over in one way, read as `diagnose` does by default. to_the_end: what was
    lost had been lost by then."""
    found = Outcome()
    with tempfile.TemporaryDirectory() as into:
        evidence = changed_copy(incident, change, Path(into))
        try:
            folded = fold_all(import_evidence([evidence]).events())
        except NoEvidence:
            folded = []
    for topic_partition in EXPECTED[incident]:
        life = living(folded, topic_partition)
        if life is None:
            found.sorts["nothing said"] += len(DECIDING)
            continue
        verdicts = verdicts_of(life)
        truth = dict(zip(DECIDING, EXPECTED[incident][topic_partition]["verdicts"], strict=True))
        for name in DECIDING:
            sort = verdicts[name].split(":")[0]
            found.sorts[f"UNKNOWN, {truth[name]} in truth" if sort == "UNKNOWN" else sort] += 1
            found.sorts["without a history"] += "no history that the rules" in verdicts[name]
        assumed = {v["invariant"]: v.get("assuming") for v in life.answer.verdicts}
        for each in wrong_verdicts(incident, topic_partition, verdicts):
            name = each.split(":")[0].rpartition(" ")[2]
            if verdicts[name] == "HOLDS" and not to_the_end:
                continue
            under = assumed.get(name)
            found.sorts["wrong as assumed"] += bool(under)
            (found.assumed if under else found.wrong).append(f"{each} (assuming {under})")
    return found


def main() -> int:
    """Each shape of some incidents: what is wrong, how much stays decided."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help="all of them else")
    parser.add_argument("--incidents", type=int, default=3, help="so many for each shape")
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()
    chance = random.Random(flags.seed)
    total: Counter[str] = Counter()
    for shape, change in (SHAPES | OF_DUMPS).items():
        chosen = chance.sample(sorted(EXPECTED), min(flags.incidents, len(EXPECTED)))
        sorts: Counter[str] = Counter()
        for incident in chosen if not flags.shapes or shape in flags.shapes else ():
            first = dumped(incident) if shape in OF_DUMPS else lambda _: None
            found = outcome(
                incident,
                one_behind_the_other(first, change),
                to_the_end=shape not in BEFORE_THE_END,
            )
            sorts += found.sorts
            sorts["wrong"] += len(found.wrong)
            for each in found.wrong + found.assumed:
                print(f"WRONG {shape}, {incident}: {each}", flush=True)
        total += sorts
        if sorts:
            print(f"{shape}: {dict(sorts)}", flush=True)
    print(f"all: {dict(total)}")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
