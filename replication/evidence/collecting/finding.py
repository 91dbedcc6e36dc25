"""Finds what there is to read below the folders handed over, archives opened.

Log directories' own files are theirs and not listed; everything else is, each file once. What
cannot be listed or opened is said, and so is what was left aside: nothing is dropped in silence.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from replication.evidence.broker_logs.loggers_in_lines import BROKERS_PREFIX_BYTES
from replication.evidence.collecting.archives import Unpacked, foreign_archive
from replication.evidence.digest import DIRECTORY_NAME
from replication.evidence.log_directories.log_directory import find_log_directories
from replication.evidence.opening import READ_ERRORS, is_no_text, open_unpacked
from replication.evidence.unreadable import Unreadable

SEGMENT_PARTS = re.compile(
    r"\.(log|index|timeindex|txnindex|snapshot|checkpoint|deleted|swap|cleaned|lock|tmp)$"
)
DIRECTORY_FILES = frozenset(
    (
        "meta.properties", "replication-offset-checkpoint", "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint", "cleaner-offset-checkpoint", ".kafka_cleanshutdown",
        "bootstrap.checkpoint", ".lock", "quorum-state", "leader-epoch-checkpoint",
        "partition.metadata",
    )
)  # fmt: skip
_NO_LEAVE = "run as a user who may read it, or copy it as one"


@dataclass(slots=True)
class Found:
    """directories: log directories. files: all others, sorted. ignored: left aside, and why."""

    directories: list[Path] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    ignored: list[Unreadable] = field(default_factory=list)


def find(roots: Iterable[Path], unpacked: Unpacked) -> Found:
    """Everything at or below roots, and in the archives there."""
    result = Found()
    waiting = list(roots)
    seen: set[Path] = set()
    while waiting:
        directories = find_log_directories([r for r in waiting if r.is_dir()])
        result.directories += directories
        listed = list(_files(waiting, directories, result))
        waiting = []
        for path in listed:
            real = path.resolve()
            if real in seen:
                continue
            seen.add(real)
            folder = unpacked.take(path)
            if folder is None:
                result.files.append(path)
            else:
                waiting.append(folder)
    result.files.sort()
    result.directories.sort()
    result.unreadable += unpacked.unreadable
    result.ignored += unpacked.left_out
    return result


def _files(roots: list[Path], directories: list[Path], result: Found) -> Iterator[Path]:
    """Files that are not part of a log directory's own machinery."""
    own = {d.resolve() for d in directories}
    for root in roots:
        if root.is_file():
            yield root
            continue

        def refused(error: OSError) -> None:
            told = f"cannot be listed: {error.strerror or error} ({_NO_LEAVE})"
            result.unreadable.append(Unreadable(str(error.filename), "file", told))

        for folder, subfolders, names in os.walk(root, onerror=refused):
            subfolders.sort()
            parent = Path(folder).resolve()
            for name in sorted(names + [s for s in subfolders if Path(folder, s).is_symlink()]):
                path = Path(folder, name)
                if _is_regular(path, roots, result) and not _is_machinery(parent, name, own):
                    yield path


def _is_regular(path: Path, roots: list[Path], result: Found) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        told = f"cannot be opened: {error.strerror or error} ({_NO_LEAVE})"
        result.unreadable.append(Unreadable(str(path), "file", told))
        return False
    if stat.S_ISREG(mode):
        return True
    if stat.S_ISLNK(mode):
        target = Path(os.path.realpath(path))
        if not any(root.resolve() in (target, *target.parents) for root in roots):
            told = f"a link to {os.readlink(path)}, which was not handed over"
            result.ignored.append(Unreadable(str(path), "file", told))
    elif not stat.S_ISDIR(mode):
        told = "no file (a device, a pipe or a socket)"
        result.ignored.append(Unreadable(str(path), "file", told))
    return False


def _is_machinery(parent: Path, name: str, own: set[Path]) -> bool:
    """Whether a file is a log directory's own, or a segment's or an index's in a partition's."""
    if parent in own:
        return name in DIRECTORY_FILES
    return (
        parent.parent in own
        and DIRECTORY_NAME.fullmatch(parent.name) is not None
        and (SEGMENT_PARTS.search(name) is not None or name in DIRECTORY_FILES)
    )


def cannot_be_opened(path: Path) -> Unreadable | None:
    """Why a file cannot be opened; None where it can be."""
    try:
        with path.open("rb"):
            return None
    except OSError as error:
        told = f"cannot be opened: {error.strerror or error} ({_NO_LEAVE})"
        return Unreadable(str(path), "file", told)


def is_binary(path: Path) -> bool:
    """Whether a file is no text, whatever it is packed in."""
    try:
        with open_unpacked(path) as stream:
            head = stream.read(1 << 16)
    except READ_ERRORS:
        return False
    return is_no_text(head)


# How texts begin that show log lines and are no evidence, and what they are.
_NO_EVIDENCE = {
    b"KRaft (aka KIP-500) mode": "a text of Kafka's own distribution",
    b"What a script of replication-analyzer collect did not take": (
        "what a script of collect did not take, and why: read it"
    ),
}


def is_no_evidence(path: Path) -> bool:
    """Whether a file's lines are of no broker that anybody ran: a text of Kafka's distribution, or
    what `collect` could not take."""
    try:
        with open_unpacked(path) as stream:
            return _no_evidence(stream.read(80)) is not None
    except READ_ERRORS:
        return False


def _no_evidence(head: bytes) -> str | None:
    began = head.lstrip()
    return next((what for text, what in _NO_EVIDENCE.items() if began.startswith(text)), None)


_SEGMENT_NAME = re.compile(r"^\d{20}\.log(\.\w+)?$")
_KAFKA_WORDS = re.compile(rb"kafka|zookeeper|leader|replica|partition|offset", re.IGNORECASE)
# A log line too may begin with a bracket: before its date.
_JSON = re.compile(rb'\s*[{\[]\s*(["{\[\]}]|$|-?\d+(\.\d+)?\s*[,\]])')


# Bytes that no text has, but for a few: control characters. Colours of a terminal begin by ESC.
_CONTROLS = bytes(n for n in range(32) if n not in b"\t\n\r\f\b\x1b")
_ONE_IN = 50


def _is_binary(head: bytes) -> bool:
    """Whether more of it are control characters than any text has."""
    return len(head) - len(head.translate(None, _CONTROLS)) > len(head) // _ONE_IN


def why_ignored(path: Path) -> str:
    """What a file is that no reader took, as far as its beginning tells."""
    try:
        with path.open("rb") as raw:
            foreign = foreign_archive(raw.read(8))
        with open_unpacked(path) as stream:
            head = stream.read(1 << 16)
    except READ_ERRORS as error:
        return f"cannot be unpacked: {error}"
    if (known := _no_evidence(head)) is not None:
        return known
    if foreign:
        return f"{foreign}, which is not opened here: unpack it first"
    if not head.strip():
        return "empty"
    if _SEGMENT_NAME.match(path.name):
        return (
            "a log segment outside of its partition's folder: put it into a folder TOPIC-PARTITION"
        )
    if is_no_text(head) or _is_binary(head):
        return "binary, of no kind that is known"
    if BROKERS_PREFIX_BYTES.search(head):
        return "a broker's log in a layout that is not read (Kafka's own is [%d] %p %m (%c)%n)"
    if _JSON.match(head):
        return "JSON of no kind that is known"
    if _KAFKA_WORDS.search(head):
        return "text that no reader knows, though it has Kafka's words"
    return "text without anything of Kafka's"
