"""The library that speaks to clusters, its settings, and what its errors say."""

import importlib
from pathlib import Path
from typing import Any

from replication.paths import how_to_install
from replication.recovery.folder import NotUsable


def client(wanted_by: str) -> Any:
    """The library that speaks to clusters. wanted_by: what needs it. Raises NotUsable where it is
    not installed."""
    try:
        return importlib.import_module("confluent_kafka")
    except ImportError:
        raise NotUsable(
            f"{wanted_by} needs confluent-kafka, which is not installed: "
            f"{how_to_install('produce')}"
        ) from None


def settings_of(path: Path | None, said_by: str) -> tuple[tuple[str, str], ...]:
    """Name and value of each line of a properties file. said_by: what names the file. Raises
    NotUsable where it cannot be read."""
    if path is None:
        return ()
    found = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise NotUsable(f"{said_by} {path}: {error}") from None
    for number, line in enumerate(lines, 1):
        name, is_one, value = line.partition("=")
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            if not is_one:
                raise NotUsable(f"{said_by} {path} line {number}: expected NAME=VALUE")
            found.append((name.strip(), value.strip()))
    return tuple(found)


def said(error: Any) -> str:
    """What the library's exception says."""
    first = error.args[0] if error.args else error
    told = first.str() if hasattr(first, "str") else str(first)
    return str(told)
