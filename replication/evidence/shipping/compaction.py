"""Many small files of one log made one, without the lines that tell nothing.

A line is left out only where the log reads the same without it: every fact, whose it is, what is
known of the log as a whole. So a spool grows with what was told, not with what was shipped.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from datetime import UTC
from operator import itemgetter
from pathlib import Path
from typing import Any

from replication.evidence.broker_logs.broker_log import is_broker_log
from replication.evidence.collecting.broker_text_log import BrokerLog, read_log, with_excerpts
from replication.evidence.unreadable import Unreadable

# So many files of a log become one, so many of those one again.
TOGETHER = 32
_NUMBER = re.compile(r"^(?P<log>.*)\.(?P<number>\d{10})(?P<level>m*)\.log$")
_HEADED = re.compile(r"^\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]?\d*)")


def number_of(path: Path) -> int | None:
    """The newest micro-batch whose lines a file holds; None where it is no file of a spool."""
    found = _NUMBER.match(path.name)
    return int(found["number"]) if found else None


def compact(folder: Path, before: int) -> None:
    """Makes one of each log's files, where there are many. before: files of this micro-batch and
    later ones stay as they are. A crash leaves lines twice, until the next time."""
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
                _join(files, folder.with_name("unfinished.log"), target)


def _join(files: list[Path], unfinished: Path, target: Path) -> None:
    """unfinished: a place outside of what is imported: half a file is no evidence."""
    _write(unfinished, _by_stamps(files))
    shorter = _without_silent_lines(unfinished)
    if shorter is not None:
        _write(unfinished, shorter)
    unfinished.replace(target)
    for path in files:
        path.unlink()


def _by_stamps(files: list[Path]) -> str:
    """All messages in the order of their stamps; lines without one stay behind the one before.

    Of one that several files hold as many stay as the file that holds most of them has: it was
    shipped again (joining takes each once, too, but within a file for what happened twice).
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
    return "".join(text for _, text in sorted(messages, key=itemgetter(0)))


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


def _without_silent_lines(path: Path) -> str | None:
    """The text of a log without the lines of which nothing is taken; None where it must stay."""
    lines = _lines(path)
    whole, told = _reading(path)
    if whole is None or not whole.speaks_for_one:
        return None
    kept: list[str] = []
    keep = True
    for number, line in enumerate(lines, 1):
        if _HEADED.match(line):
            keep = number in told
        if keep or number in told:
            kept.append(line)
    trial = path.with_name(f"{path.name}.trial")
    try:
        _write(trial, "".join(kept))
        again, _ = _reading(trial)
        same = again is not None and _known(whole) == _known(again)
    finally:
        trial.unlink()
    return "".join(kept) if same else None


def _reading(path: Path) -> tuple[BrokerLog | None, set[int]]:
    """A log as `import` reads it, and the lines of which it takes something."""
    unreadable: list[Unreadable] = []
    if not is_broker_log(path):
        return None, set()
    facts = list(with_excerpts(path, UTC))
    log = read_log(path, facts, None, unreadable)
    told = {fact.line for fact in facts if not isinstance(fact, Unreadable)}
    return (None if unreadable else log), told


def _known(log: BrokerLog) -> list[Any]:
    """All that is known of a log, without its lines' places."""
    found: list[Any] = []
    for each in fields(log):
        value = getattr(log, each.name)
        if each.name == "path":
            continue
        if each.name == "lines":
            value = [(packed.about, _plain(packed)) for packed in value]
        elif each.name in ("processes", "telling"):
            value = _plain(value)
        found.append(value)
    return found


def _plain(facts: Iterable[Any]) -> list[Any]:
    return [fact._replace(path="", line=0) for fact in facts]
