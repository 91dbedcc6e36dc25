"""Reads a KRaft cluster's metadata log (`__cluster_metadata-0`), of which every broker and
controller keeps a copy."""

import json
from collections.abc import Iterable, Mapping
from io import BytesIO
from itertools import chain
from pathlib import Path

from replication.evidence.metadata_log.history import MetadataHistory
from replication.evidence.metadata_log.log_parts import (
    Opener,
    Part,
    PlacedRecord,
    file_error,
    parts_of_files,
    parts_of_records,
    snapshot_ends,
)
from replication.evidence.metadata_log.replay import history_of
from replication.evidence.opening import regular
from replication.evidence.unreadable import Unreadable


def read_cluster_metadata(directory: Path) -> MetadataHistory:
    """Replay a `__cluster_metadata-0` directory. What cannot be read is in `unreadable`."""
    files: dict[str, Opener] = {}
    unreadable: list[Unreadable] = []
    try:
        for entry in sorted(directory.iterdir()):
            if entry.is_file():
                files[entry.name] = lambda entry=entry: regular(entry).open("rb")  # type: ignore[misc]
    except OSError as error:
        unreadable.append(file_error(str(directory), error))
    properties = directory.parent / "meta.properties"
    if properties.is_file():
        files["meta.properties"] = lambda: regular(properties).open("rb")
    return _history(str(directory), files, unreadable)


def read_metadata_bytes(path: str, files: Mapping[str, bytes]) -> MetadataHistory:
    """The same from the files' contents by name; `meta.properties` may be among them."""
    openers: dict[str, Opener] = {
        name: lambda content=content: BytesIO(content)  # type: ignore[misc]
        for name, content in files.items()
    }
    return _history(path, openers, [])


def replay_records(
    path: str, placed: Iterable[tuple[PlacedRecord, int] | Unreadable]
) -> MetadataHistory:
    """The same from records somebody else decoded, each with its leader epoch, in log order.

    An Unreadable among them stands for records that are missing.
    """
    return history_of(path, parts_of_records(path, placed))


def _history(path: str, files: Mapping[str, Opener], before: Iterable[Part]) -> MetadataHistory:
    properties = dict(
        line.split("=", 1)
        for line in _small_file(files, "meta.properties").splitlines()
        if "=" in line
    )
    return history_of(
        path,
        chain(before, parts_of_files(path, files)),
        properties,
        quorum_state_voters(_small_file(files, "quorum-state")),
        [end_offset for end_offset, _ in snapshot_ends(files)],
    )


def _small_file(files: Mapping[str, Opener], name: str) -> str:
    try:
        with files[name]() as file:
            return file.read(1 << 20).decode("utf-8", "replace")
    except (KeyError, OSError):
        return ""


def quorum_state_voters(text: str) -> tuple[int, ...]:
    """The voters that a static quorum's `quorum-state` names; () for a dynamic quorum's."""
    try:
        voters = json.loads(text)["currentVoters"]
        return tuple(sorted(int(voter["voterId"]) for voter in voters))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return ()
