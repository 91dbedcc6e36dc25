"""What people write into a project of Great Expectations, told by file and by the name meant."""

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from replication.nearest import did_you_mean

# How Great Expectations says that there is no such column.
NO_COLUMN = re.compile(r'The column "([^"]+)" in BatchData does not exist')


def broken(root: Path, name: str) -> str | None:
    """The first file that is no JSON, and why, of a checkpoint of that name, its validations and
    their suites; None where all are. root: the folder that Great Expectations keeps them in."""
    try:
        for definition in _named_in(_read(root, "checkpoints", name), "validation_definitions"):
            found = _read(root, "validation_definitions", definition)
            for suite in _named_in(found, "suite"):
                _read(root, "expectations", suite)
    except _NoJson as error:
        return str(error)
    return None


def no_column(said: str, columns: Collection[str]) -> str:
    """What Great Expectations said; of a column that there is not, with the name that was meant."""
    found = NO_COLUMN.search(said)
    if found is None:
        return said
    near = did_you_mean(found[1], columns)
    return f"no column {found[1]}{near}"


class _NoJson(ValueError):
    pass


def _read(root: Path, folder: str, name: str) -> Any:
    path = root / folder / f"{name}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _NoJson(f"{path} is not there") from None
    except ValueError as error:
        raise _NoJson(f"{path} is no JSON: {error}") from None


def _named_in(text: Any, key: str) -> list[str]:
    """The names of what a file refers to under a key: one, or a list."""
    found = text.get(key) if isinstance(text, dict) else None
    listed = found if isinstance(found, list) else [found]
    return [str(each["name"]) for each in listed if isinstance(each, dict) and "name" in each]
