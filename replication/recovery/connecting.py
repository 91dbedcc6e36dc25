"""The library that speaks to clusters, its settings, and what its errors say."""

import importlib
from pathlib import Path
from typing import Any

from replication.recovery.folder import NotUsable


def client() -> Any:
    """The library that speaks to clusters. Raises NotUsable where it is not installed."""
    try:
        return importlib.import_module("confluent_kafka")
    except ImportError:
        raise NotUsable(
            "--produce needs confluent-kafka, which is not installed: "
            "pip install 'replication-analyzer[produce]'"
        ) from None


def settings_of(path: Path | None) -> tuple[tuple[str, str], ...]:
    """Name and value of each line of a properties file."""
    if path is None:
        return ()
    found = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise NotUsable(f"--producer-config {path}: {error}") from None
    for number, line in enumerate(lines, 1):
        name, is_one, value = line.partition("=")
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            if not is_one:
                raise NotUsable(f"--producer-config {path} line {number}: expected NAME=VALUE")
            found.append((name.strip(), value.strip()))
    return tuple(found)


def said(error: Any) -> str:
    """What the library's exception says."""
    first = error.args[0] if error.args else error
    told = first.str() if hasattr(first, "str") else str(first)
    return str(told)
