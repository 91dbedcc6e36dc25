"""Shipped lines laid out as the logs they came from, so that `import` reads them like a copy.

    <folder>/<cluster>/<host>/<path of the log>.<micro-batch>.log

A micro-batch writes files of its own: one that is done again after a failure writes the same ones
again; those of many are made one later on (`compaction`). A line that was shipped twice is in
two files, or is dropped within one; joining takes each once. A dump of settings that two
micro-batches divide is whole in the later one's file. Of a digest's lines only the newest about
each replica are kept, in one file of a host.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from replication.evidence.clients.client_logs import ACKNOWLEDGEMENTS, CONSUMPTION
from replication.evidence.collecting.envelopes import NotALine, ShippedLine
from replication.evidence.collecting.laid_out import (
    ACKNOWLEDGED,
    CONSUMED,
    DIGEST,
    OBJECTS,
    SIGN,
    named_for,
)
from replication.evidence.digest import LINES_NAME, LINES_VERSION
from replication.evidence.log_directories.digest_lines import checked, order_of, subject_of
from replication.evidence.opening import is_packed
from replication.evidence.shipping.compaction import IN_A_SPOOL, Bases, compact, number_of
from replication.evidence.shipping.divided_dumps import Line, put_together
from replication.evidence.shipping.silence import AHEAD_MS, Heard, moment_of
from replication.evidence.text_lines import LONGEST_LINE
from replication.protocol.ground.model import LAST_MOMENT

# A file's name and a host's are somebody's words: nothing in them leads out of the folder.
_SAFE = re.compile(r"[^A-Za-z0-9._-]+")
_STAMP = re.compile(r"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]?\d*)")
NO_HOST, NO_LOG, ONE_CLUSTER = "unnamed-host", "broker.log", "cluster"
_OF_CLIENTS = {ACKNOWLEDGEMENTS: ACKNOWLEDGED, CONSUMPTION: CONSUMED}
DEEPEST = 8


@dataclass(slots=True)
class Taken:
    """What became of the lines of one micro-batch: rows = kept + repeated + refused. heard: when
    each host was heard of the last time."""

    rows: int = 0
    kept: int = 0
    repeated: int = 0
    refused: list[NotALine] = field(default_factory=list)
    clusters: set[str] = field(default_factory=set)
    heard: Heard = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spool:
    """The folder. Files of a micro-batch are whole or not there. zone: that of the time that lines
    print. clock: of the job, milliseconds, when the micro-batch came."""

    folder: Path
    zone: tzinfo = UTC
    clock: int = LAST_MOMENT

    def take(self, micro_batch_id: int, lines: Iterable[ShippedLine | NotALine]) -> Taken:
        """Lays out the lines of one micro-batch. Raises OSError where the disk refuses."""
        taken = Taken()
        logs: dict[Path, _Log] = {}
        begun = self._begun_before(micro_batch_id)
        digests: dict[Path, list[dict[str, Any]]] = {}
        for line in lines:
            taken.rows += 1
            if isinstance(line, NotALine):
                taken.refused.append(line)
                continue
            place = self._place(line)
            if line.digest:
                digests.setdefault(self._host(line), []).append(json.loads(line.text))
                continue
            if place not in logs:
                logs[place] = begun.pop(str(place.relative_to(self.folder)), _Log())
            log = logs[place]
            if log.add(line):
                taken.kept += 1
                taken.clusters.add(place.relative_to(self.folder).parts[0])
                self._hear(taken, line, "log", moment_of(log.stamp, self.zone))
            else:
                taken.repeated += 1
        for host, found in digests.items():
            self._take_digest(micro_batch_id, host, found, taken)
        self._forget(micro_batch_id)
        for place, log in logs.items():
            begun[str(place.relative_to(self.folder))] = log
            for name, texts in _by_kind(place.name, log.written(micro_batch_id)):
                place.parent.mkdir(parents=True, exist_ok=True)
                target = place.with_name(f"{name}.{micro_batch_id:010}.log")
                unfinished = target.with_name(f".{target.name}")
                unfinished.write_text(as_a_file(texts), encoding="utf-8")
                unfinished.replace(target)
        self._keep_begun(micro_batch_id, begun)
        return taken

    def _begun_before(self, micro_batch_id: int) -> dict[str, "_Log"]:
        """By log, what of its lines has not come: half of one is no evidence."""
        kept = self.folder.parent / "cut"
        before = [p for p in kept.glob("*.json") if int(p.stem) < micro_batch_id]
        found = json.loads(max(before).read_text(encoding="utf-8")) if before else {}
        return {name: _Log.begun(left) for name, left in found.items()}

    def _keep_begun(self, micro_batch_id: int, begun: dict[str, "_Log"]) -> None:
        kept = self.folder.parent / "cut"
        before = sorted(p for p in kept.glob("*.json") if int(p.stem) < micro_batch_id)
        left = {name: [log.open_part, *log.loose] for name, log in begun.items()}
        left = {name: each for name, each in left.items() if any(each)}
        if left or before:
            kept.mkdir(parents=True, exist_ok=True)
            target = kept / f"{micro_batch_id:010}.json"
            unfinished = target.with_name(f".{target.name}.unfinished")
            unfinished.write_text(json.dumps(left, sort_keys=True), encoding="utf-8")
            unfinished.replace(target)
        later = (p for p in kept.glob("*.json") if int(p.stem) > micro_batch_id)
        for old in (*before[:-1], *later):
            old.unlink()

    def _hear(self, taken: Taken, line: ShippedLine, clock: str, at: int | None) -> None:
        cluster, host = self._host(line).relative_to(self.folder).parts
        if at is not None:
            clocks = taken.heard.setdefault(f"{cluster}/{host}", {})
            clocks[clock] = max(at, clocks.get(clock, at))

    def _take_digest(
        self, micro_batch_id: int, host: Path, lines: list[dict[str, Any]], taken: Taken
    ) -> None:
        """Puts the newest of a host's lines in the place of what it told before."""
        kept_in = self.folder.parent / "digests" / host.relative_to(self.folder)
        kept_in.mkdir(parents=True, exist_ok=True)
        told = {int(p.stem): p for p in kept_in.glob("*.lines")}
        before = [n for n in told if n < micro_batch_id]
        newest: dict[tuple[str, str, str, int], dict[str, Any]] = {}
        if before:
            for text in told[max(before)].read_text(encoding="utf-8").splitlines():
                known = checked(text)
                if not isinstance(known, str):  # Of an older tool, that let more through.
                    newest[subject_of(known)] = known
        clocks = taken.heard.setdefault("/".join(host.relative_to(self.folder).parts), {})
        for line in lines:
            before_it = newest.get(subject_of(line))
            if before_it is not None and not self._is_newer(line, before_it):
                taken.repeated += 1
                continue
            newest[subject_of(line)] = line
            taken.kept += 1
            taken.clusters.add(host.relative_to(self.folder).parts[0])
            clocks["digest"] = max(line["at"], clocks.get("digest", 0))
            clocks["every"] = int(line.get("every", 60) * 1000)
        text = "".join(json.dumps(line) + "\n" for line in _digest_first(newest.values()))
        host.mkdir(parents=True, exist_ok=True)
        for target in (kept_in / f"{micro_batch_id:010}.lines", host / DIGEST):
            unfinished = target.with_name(f".{target.name}.unfinished")
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(target)
        for number in sorted(before)[:-1]:
            told[number].unlink()

    def _is_newer(self, line: dict[str, Any], known: dict[str, Any]) -> bool:
        """Whether a digest's line is newer than another about the same. A process that was started
        while its machine's clock was ahead is older than one that was started when it was not."""
        ahead = [each["started"] > self.clock + AHEAD_MS for each in (known, line)]
        return ahead == [True, False] or order_of(line) > order_of(known)

    def compact(self, micro_batch_id: int, bases: Mapping[str, Bases]) -> None:
        """Makes few files of what earlier micro-batches brought. bases: of partitions, by cluster,
        as they were before this micro-batch."""
        compact(self.folder, micro_batch_id, bases, self.zone)

    def clusters(self) -> list[Path]:
        """A folder of evidence for each cluster."""
        return sorted(p for p in self.folder.glob("*") if p.is_dir())

    def _forget(self, micro_batch_id: int) -> None:
        """What an attempt at the same micro-batch, or a later one of a lost checkpoint, left."""
        for path in self.folder.rglob("*.log"):
            number = number_of(path)
            if number is not None and number >= micro_batch_id:
                path.unlink()

    def _place(self, line: ShippedLine) -> Path:
        parts = [safe_name(part) for part in line.path.split("/")]
        *folders, log = [part for part in parts if part][-DEEPEST:] or [NO_LOG]
        if line.client:
            log = named_for(log, _OF_CLIENTS[line.client])
        return Path(self._host(line), *map(_as_folder, folders), log)

    def _host(self, line: ShippedLine) -> Path:
        cluster = safe_name(line.cluster) or ONE_CLUSTER
        host = safe_name(line.host) or NO_HOST
        return Path(self.folder, _as_folder(cluster), _as_folder(host))


@dataclass(slots=True)
class _Log:
    """The lines of one log in one micro-batch, in the order of their bytes, else of stamps."""

    lines: list[tuple[int | None, str, int, str]] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)
    stamp: str = ""
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    loose: list[Line] = field(default_factory=list)

    @classmethod
    def begun(cls, left: str | list[Any]) -> "_Log":
        """What earlier micro-batches left of it; where they kept no dumps, the begin of a line."""
        part, *loose = [left] if isinstance(left, str) else left
        pieces = [part] if part else []
        return cls(pieces=pieces, length=len(part), loose=[Line(*line) for line in loose])

    @property
    def open_part(self) -> str:
        """What has come of a line that a container's runtime cut."""
        return "".join(self.pieces)

    def add(self, line: ShippedLine) -> bool:
        """Whether it is new: a stamped line that says the same at the same place is a repeat."""
        if self.length <= LONGEST_LINE:  # A longer one nobody reads, and its reader says so.
            self.pieces.append(line.text)
            self.length += len(line.text)
        if line.partial:
            return True
        text = self.open_part
        self.pieces, self.length = [], 0
        found = _STAMP.match(text)
        if found is not None:
            identity = hashlib.blake2b(f"{line.offset} {text}".encode(), digest_size=16).digest()
            if identity in self.seen:
                return False
            self.seen.add(identity)
            self.stamp = found[1]
        self.lines.append((line.offset, self.stamp, len(self.lines), text))
        return True

    def written(self, micro_batch_id: int) -> list[str]:
        """The texts for this micro-batch's file. A stack trace or a dump of settings stays behind
        the line it belongs to."""
        if all(offset is not None for offset, *_ in self.lines):
            ordered = sorted(self.lines, key=lambda each: (each[0] or 0, each[2]))
        else:
            ordered = sorted(self.lines, key=lambda each: (each[1], each[2]))
        lines = [Line(offset, text, micro_batch_id) for offset, _, _, text in ordered]
        texts, self.loose = put_together(self.loose, lines)
        return texts


def _digest_first(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """In a canonical order, each beginning as such a line is known."""
    ordered = sorted(lines, key=order_of)
    return [{LINES_NAME: LINES_VERSION, **line} for line in ordered]


def _by_kind(name: str, texts: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The lines of a log by the files they belong in: JSON objects in one of their own."""
    if SIGN in name:
        yield from [(name, texts)] if texts else []
        return
    objects = [text for text in texts if text.startswith("{")]
    others = [text for text in texts if not text.startswith("{")]
    if others:
        yield name, others
    if objects:
        yield named_for(name, OBJECTS), objects


def as_a_file(texts: list[str]) -> str:
    """The lines as text that is taken for no packed file, whatever the first one begins with."""
    packed = bool(texts) and is_packed(texts[0].encode())
    return "".join(("\n" if packed else "", "\n".join(texts), "\n"))


def _as_folder(name: str) -> str:
    """The name for a folder: no file of a log, nor of digests, is ever called so."""
    return f"{name}{SIGN}" if name == DIGEST or IN_A_SPOOL.search(name) else name


def safe_name(text: str) -> str:
    """A name without anything that a file system understands; "" for nothing or dots alone."""
    name = _SAFE.sub("_", text.strip())[:120]
    return "" if not name.strip("._") else name.lstrip(".")
