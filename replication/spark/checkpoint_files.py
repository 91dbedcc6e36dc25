"""Spark's own small files of a checkpoint location: who writes them, and whether they are whole.

Spark reads them without a word of which one is broken (StreamMetadata, OffsetSeqLog, CommitLog,
FileStreamSourceLog, StateSchemaCompatibilityChecker), so that is asked before a query starts. What
it keeps of state is its state store's to say.
"""

import json
from collections.abc import Iterator

from pyspark.sql import SparkSession

from replication.places import HadoopPath, Place, matching
from replication.spark.hadoop_files import CHECKPOINTS

ON_THIS_DISK = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
# A line of the offsets of a source that has given nothing yet.
NOTHING = "-"


def written_without_processes(spark: SparkSession, checkpoint_dir: Place) -> None:
    """Has Spark write a checkpoint on this machine's disk by Hadoop's FileSystem, unless --conf
    names what writes it.

    By FileContext, which Spark prefers, each file costs processes of chmod and readlink
    (RawLocalFileSystem, FileUtil.readLink), a fifth of a small micro-batch. No other process
    writes there (CheckpointLock). A checksum that a kill may have left beside a newer file goes.
    """
    local = not isinstance(checkpoint_dir, HadoopPath)
    if spark.conf.get(CHECKPOINTS, "") in ("", ON_THIS_DISK):
        if local:
            spark.conf.set(CHECKPOINTS, ON_THIS_DISK)
        else:
            spark.conf.unset(CHECKPOINTS)
    if local:
        for path in checkpoint_dir.glob("*/spark/**/.*.crc"):
            path.unlink()


def clear_unbegun(location: Place) -> None:
    """Takes away what a first micro-batch left whose offsets could not be written, on a full disk:
    Spark begins a query only where their folder is empty."""
    offsets = location / "offsets"
    if not _numbered(offsets):
        for path in offsets.glob("*"):
            path.unlink()


def broken(location: Place) -> str | None:
    """The first file that Spark would read at a start and that is not whole, in words, or None."""
    metadata = location / "metadata"
    if metadata.is_file() and not _is_json(metadata.read_text("utf-8", "replace")):
        return f"{metadata} is cut or empty"
    for schema in matching(location, "state/*/0/_metadata/schema"):
        if not _is_state_schema(schema.read_bytes()):
            return f"{schema} is cut or empty"
    read = list(_read_at_a_start(location))
    gone = next((path for path in read if not path.is_file()), None)
    if gone is not None:
        return f"{gone} is gone"
    told = {path: _lines_of(path) for path in read}
    # Of each source a line, in the two newest alike.
    sources = max((len(lines) for path, lines in told.items() if _in(path, "offsets")), default=0)
    for path, (version, *lines) in told.items():
        whole = all(line == NOTHING or _is_json(line) for line in lines)
        lacking = (_in(path, "offsets") and len(lines) + 1 < sources) or (
            not lines and not _in(path.parent, "sources")
        )
        if not version.startswith("v") or not whole or lacking:
            return f"{path} is cut or empty"
    return None


def _is_state_schema(data: bytes) -> bool:
    """Whether all is there that the second format holds: its name, then of key and value each how
    many texts, and these. Of other formats the name has to be enough."""

    def text(at: int) -> tuple[str, int]:
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        if at + 2 > len(data) or end > len(data):
            raise EOFError
        return data[at + 2 : end].decode("utf-8", "replace"), end

    try:
        version, at = text(0)
        if version != "v2":
            return version.startswith("v")
        for _ in ("key", "value"):
            count, at = int.from_bytes(data[at : at + 4], "big"), at + 4
            for _ in range(count):
                _, at = text(at)
    except EOFError:
        return False
    return at == len(data)


def _in(path: Place, folder: str) -> bool:
    return path.parent.name == folder


def _lines_of(path: Place) -> list[str]:
    # Kafka's first offsets begin with a zero byte (KafkaSourceInitialOffsetWriter).
    return path.read_text("utf-8", "replace").removeprefix("\0").splitlines() or [""]


def _read_at_a_start(location: Place) -> Iterator[Place]:
    """The two newest offsets, the newest commit, what the state stores are, and each source's log
    since it was compacted; of what is numbered those between, too, whether they are there or not.
    """
    newest = _numbered(location / "offsets")[-1:]
    before = [path.with_name(str(int(path.stem) - 1)) for path in newest if int(path.stem)]
    yield from [*before, *newest]
    yield from _numbered(location / "commits")[-1:]
    yield from matching(location, "state/*/_metadata/metadata")
    for log in matching(location / "sources", "*"):
        files = _numbered(log)
        compacted = [place for place, path in enumerate(files) if path.suffix == ".compact"]
        since = {int(path.stem): path for path in files[max(compacted, default=0) :]}
        first = min(since, default=0) if compacted else 0
        for number in range(first, max(since, default=-1) + 1):
            yield since.get(number, log / str(number))


def _numbered(folder: Place) -> list[Place]:
    files = [path for path in folder.glob("[0-9]*") if path.stem.isdigit()]
    return sorted(files, key=lambda path: int(path.stem))


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list | int)
    except ValueError:
        return False
