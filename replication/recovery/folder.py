"""The folder that `recover` writes to: its own and empty, apart from the evidence."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from replication.recovery.rows_out import as_json

SUMMARY = "summary.json"
TABLES = (
    "records", "lost_records_keys", "sent_never_promised", "affected_groups",
    "affected_transactions",
)  # fmt: skip
# How many of what was found, in the summary.
_FOUND = (
    "records_written", "keys_written", "sent_never_promised", "groups_hurt", "transactions_hurt",
)  # fmt: skip
_UNFINISHED = ".partial"
_ROWS_PER_GROUP, _BYTES_PER_GROUP = 10_000, 64 << 20


class NotUsable(ValueError):
    """The folder or the evidence cannot be used; the text says why and what to do."""


def refuse_early(folder: Path, evidence: Iterable[Path]) -> None:
    """Raises NotUsable where the folder is not empty, or where it and the evidence lie in one
    another: evidence is never written to. Makes nothing."""
    real = folder.resolve()
    for path in evidence:
        own = path.resolve()
        if real == own or own in real.parents or real in own.parents:
            raise NotUsable(
                f"--out {folder}: it is within the evidence {path}, or has the evidence "
                "within it. Name a folder elsewhere, so that the evidence stays as it is"
            )
    try:
        if folder.exists() and any(folder.iterdir()) and not _holds_nothing(folder):
            raise NotUsable(f"--out {folder}: is not empty; name a new folder")
    except OSError as error:
        raise NotUsable(f"--out {folder}: {error.strerror}") from None


def _holds_nothing(folder: Path) -> bool:
    """Whether all that is there is what a call left that had nothing to recover."""
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        found = [*summary["offsets"].values(), *(summary[name] for name in _FOUND)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    own = {SUMMARY, "not_recovered.jsonl"}
    own |= {f"{name}.{kind}" for name in TABLES for kind in ("jsonl", "parquet")}
    return not any(found) and {path.name for path in folder.iterdir()} <= own


def prepared(folder: Path, evidence: Iterable[Path]) -> Path:
    """The folder, made where it is missing, emptied where an earlier call found nothing. Raises
    NotUsable."""
    refuse_early(folder, evidence)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left in [*folder.iterdir()]:
            left.unlink()
    except OSError as error:
        raise NotUsable(f"--out {folder}: {error.strerror}") from None
    return folder


def changed_since(began: int, files: Iterable[Path], ours: Path) -> str:
    """Which of the files was changed since `began` (ns since the Unix epoch), and what to do: what
    was judged is not what was read then; "" where none was. ours: what archives were unpacked to.
    """
    for path in sorted(set(files)):
        if ours in path.parents:
            continue
        try:
            status = path.stat()
            changed = max(status.st_mtime_ns, status.st_ctime_ns) >= began
        except OSError:
            changed = True
        if changed:
            return (
                f"{path}: it was changed while it was read, so its records may not be "
                "those that were judged. Copy the directory away from the running broker "
                "and start again"
            )
    return ""


def unchanged_since(began: int, files: Iterable[Path], ours: Path) -> None:
    """Raises NotUsable where `changed_since` names a file."""
    problem = changed_since(began, files, ours)
    if problem:
        raise NotUsable(problem)


class Table:
    """Rows written as JSON Lines and as Parquet beside it, under their names once all are there."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        self._lines, self._parquet = folder / f"{name}.jsonl", folder / f"{name}.parquet"
        self._schema = schema
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0
        self.count = 0

    def __enter__(self) -> "Table":
        self._text: TextIO = _new(_partial(self._lines))
        self._writer = pq.ParquetWriter(
            _partial(self._parquet), self._schema, compression="zstd", write_page_checksum=True
        )
        return self

    def add(self, row: dict[str, Any]) -> None:
        """Writes one row, its fields in the schema's order."""
        row = {name: row[name] for name in self._schema.names}
        self._text.write(as_json(row) + "\n")
        self._rows.append(row)
        self._bytes += sum(len(v) for v in row.values() if isinstance(v, bytes | str))
        self.count += 1
        if len(self._rows) >= _ROWS_PER_GROUP or self._bytes >= _BYTES_PER_GROUP:
            self._write_group()

    def _write_group(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._bytes = [], 0

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._write_group()
        finally:
            self._text.close()
            self._writer.close()
        for path in (self._lines, self._parquet):
            if kind is None:
                os.replace(_partial(path), path)
            else:
                _partial(path).unlink(missing_ok=True)


def leaders_in(folder: Path) -> dict[tuple[str, int], int]:
    """By topic and partition, under which leader the folder's records are missing; {} where its
    summary does not tell."""
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        return {
            (p["topic"], p["partition"]): p["leader"]
            for p in summary["partitions"]
            if p.get("leader") is not None
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _partial(path: Path) -> Path:
    return path.with_name(path.name + _UNFINISHED)


def _new(path: Path) -> TextIO:
    return path.open("x", encoding="utf-8", newline="\n")


def write_text(path: Path, text: str) -> None:
    """A file that was not there before."""
    with _new(path) as stream:
        stream.write(text)
