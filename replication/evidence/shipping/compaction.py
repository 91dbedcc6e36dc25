"""Many small files of one log made one, without the lines that tell nothing.

A line is left out only where the log reads the same without it: every fact, whose it is, what is
known of the log as a whole; or where it tells of a partition what came before its base (`settled`),
and all else reads the same. So a spool grows with what counts, not with what was shipped.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import UTC, tzinfo
from operator import itemgetter
from pathlib import Path
from typing import Any

from replication.evidence.broker_logs.broker_log import LogLineFact, is_broker_log
from replication.evidence.collecting.broker_text_log import BrokerLog, read_log, with_excerpts
from replication.evidence.collecting.laid_out import UNFINISHED
from replication.evidence.shipping.divided_dumps import counts, without_begins
from replication.evidence.shipping.settled import Base
from replication.evidence.unreadable import Unreadable

# So many files of a log become one, so many of those one again.
TOGETHER = 32
# A file is written anew where so large a share of its telling lines is forgotten.
WORTH_IT = 0.1
# What lines about partitions leave in what is known of a log beside themselves. It tells of a
# topic's lives, of the clusters that a log served, and of losses; a settled partition has had none.
_BESIDE = frozenset(
    ("count", "topic_ids", "in_lines", "first_at", "last_at", "telling", "births", "controllers",
     "writers", "homes")
)  # fmt: skip
Bases = Mapping[tuple[str, int], Base]
NO_BASES: Bases = {}
_NUMBER = re.compile(r"^(?P<log>.*)\.(?P<number>\d{10})(?P<level>m*)\.log$")
# What a folder must not be called, for a file may be.
IN_A_SPOOL = re.compile(r"\.\d{10}m*\.log(\.trial)?$")
_HEADED = re.compile(r"^\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]?\d*)")


def number_of(path: Path) -> int | None:
    """The newest micro-batch whose lines a file holds; None where it is no file of a spool."""
    found = _NUMBER.match(path.name)
    return int(found["number"]) if found else None


def compact(folder: Path, before: int, bases: Mapping[str, Bases], zone: tzinfo = UTC) -> None:
    """Makes one of each log's files, where there are many. before: files of this micro-batch and
    later ones stay as they are. bases: of a cluster's partitions. A crash leaves lines twice, until
    the next time."""
    levels: dict[tuple[Path, str], dict[str, list[tuple[int, Path]]]] = {}
    for path in folder.rglob("*.log"):
        found = _NUMBER.match(path.name)
        if found and int(found["number"]) < before:
            of_log = levels.setdefault((path.parent, found["log"]), {})
            of_log.setdefault(found["level"], []).append((int(found["number"]), path))
    for (parent, log), of_log in levels.items():
        for level in sorted(of_log):
            above = (at for higher, at in of_log.items() if higher > level)
            done = max((number for at in above for number, _ in at), default=-1)
            files = []
            for number, path in sorted(of_log[level]):
                if number <= done:
                    path.unlink()
                else:
                    files.append(path)
            if len(files) >= TOGETHER:
                newest = number_of(files[-1])
                target = parent / f"{log}.{newest:010}{level}m.log"
                cluster = parent.relative_to(folder).parts[0]
                of_cluster = bases.get(cluster, NO_BASES)
                _join(files, folder.with_name("unfinished.log"), target, of_cluster, zone)
    if before % TOGETHER == 0:
        _forget(folder, before, bases, zone)


def _forget(folder: Path, before: int, bases: Mapping[str, Bases], zone: tzinfo) -> None:
    """Takes what came before the bases out of files that were joined from many."""
    for path in sorted(folder.rglob("*m.log")):
        number = number_of(path)
        of_cluster = bases.get(path.relative_to(folder).parts[0], NO_BASES)
        if not of_cluster or number is None or number >= before:
            continue
        log, _ = _reading(path, NO_BASES, zone)
        told = (
            [_forgets(of_cluster, fact, log) for lines in log.lines for fact in lines]
            if log
            else []
        )
        if sum(told) > WORTH_IT * len(told):
            shorter = _without_silent_lines(path, of_cluster, zone)
            if shorter is not None:
                unfinished = folder.with_name("unfinished.log")
                _write(unfinished, shorter)
                unfinished.replace(path)


def _forgets(bases: Bases, fact: LogLineFact, log: BrokerLog) -> bool:
    """Whether a line of a log tells of a partition what came before its base."""
    base = bases.get((fact.topic or "", -1 if fact.partition is None else fact.partition))
    broker = log.broker if fact.broker is None else fact.broker
    return base is not None and base.forgets(fact, broker)


def _join(files: list[Path], unfinished: Path, target: Path, bases: Bases, zone: tzinfo) -> None:
    """unfinished: a place outside of what is imported: half a file is no evidence."""
    _write(unfinished, _by_stamps(files))
    shorter = _without_silent_lines(unfinished, bases, zone) if bases else None
    shorter = shorter or _without_silent_lines(unfinished, NO_BASES, zone)
    if shorter is not None:
        _write(unfinished, shorter)
    unfinished.replace(target)
    for path in files:
        path.unlink()


def _by_stamps(files: list[Path]) -> str:
    """All messages in the order of their stamps; lines without one stay behind the one before.

    Of one that several files hold as many stay as the file that holds most of them has: it was
    shipped again (joining takes each once, too, but within a file for what happened twice). A dump
    of settings that goes on in a later file is there whole.
    """
    messages: list[tuple[str, str]] = []
    happened: Counter[str] = Counter()
    last = ""
    for path in files:
        here: Counter[str] = Counter()
        for stamp, text in _messages(path, last):
            last = stamp
            here[text] += 1
            if here[text] > happened[text]:
                happened[text] += 1
                messages.append((stamp, text))
    whole = without_begins(messages)
    return "".join(text for _, text in sorted(whole, key=itemgetter(0)))


def _messages(path: Path, stamp: str) -> Iterator[tuple[str, str]]:
    """Each message with its stamp; lines before the first go on with the one of before."""
    text = ""
    for line in _lines(path):
        found = _HEADED.match(line)
        if found:
            if text:
                yield stamp, text
            stamp, text = found[1], ""
        text += line
    if text:
        yield stamp, text


def _lines(path: Path) -> list[str]:
    """As readers of logs count them: by line feeds alone."""
    return re.findall(r"[^\n]*\n|[^\n]+", path.read_bytes().decode("utf-8"))


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8"))


def _without_silent_lines(path: Path, bases: Bases, zone: tzinfo) -> str | None:
    """The text of a log without the lines of which nothing is taken, or nothing any more; None
    where it must stay."""
    lines = _lines(path)
    whole, told = _reading(path, bases, zone)
    if whole is None or not whole.speaks_for_one:
        return None
    kept: list[str] = []
    keep = True
    for number, line in enumerate(lines, 1):
        if _HEADED.match(line):
            keep = number in told
        if (keep and counts(line)) or number in told:
            kept.append(line)
    trial = path.with_name(f"{path.name}{UNFINISHED}")
    try:
        _write(trial, "".join(kept))
        again, _ = _reading(trial, bases, zone)
        same = again is not None and _known(whole, bases) == _known(again, bases)
    finally:
        trial.unlink()
    return "".join(kept) if same else None


def _reading(path: Path, bases: Bases, zone: tzinfo) -> tuple[BrokerLog | None, set[int]]:
    """A log as `import` reads it, and the lines of which it takes something that counts."""
    unreadable: list[Unreadable] = []
    if not is_broker_log(path):
        return None, set()
    facts = list(with_excerpts(path, zone))
    log = read_log(path, facts, None, unreadable)
    read = [fact for fact in facts if not isinstance(fact, Unreadable)]
    told = {fact.line for fact in read if not _forgets(bases, fact, log)}
    return (None if unreadable else log), told


def _known(log: BrokerLog, bases: Bases) -> list[Any]:
    """All that is known of a log and counts, without its lines' places."""
    found: list[Any] = []
    for each in fields(log):
        value = getattr(log, each.name)
        if each.name in ("path", "runs") or (bases and each.name in _BESIDE):
            continue
        if each.name == "lines":
            rest = ((p.about, [f for f in p if not _forgets(bases, f, log)]) for p in value)
            # In any order: which partition was named first may have hung on forgotten lines.
            value = {about: _plain(facts) for about, facts in rest if facts}
        elif each.name in ("processes", "telling"):
            value = _plain(value)
        found.append(value)
    return found


def _plain(facts: Iterable[Any]) -> list[Any]:
    return [fact._replace(path="", line=0) for fact in facts]
