"""Which analyzer writes: its version and a digest of the core, so that a change of either shows."""

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from replication import VERSION


@cache
def analyzer_version() -> str:
    """The package's version, and eight digits of what decides every answer: the core's source."""
    digest = hashlib.sha256()
    sources = list(_sources(resources.files("replication.protocol"), ()))
    for _, source in sorted(sources, key=lambda each: each[0]):
        digest.update(source.read_bytes())
    digest.update((resources.files("replication.spark") / "partition_fold.py").read_bytes())
    return f"{VERSION}+{digest.hexdigest()[:8]}"


def _sources(
    folder: Traversable, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Traversable]]:
    """Every module below a folder, or a folder in a zip, with its place there."""
    for item in folder.iterdir():
        place = (*above, item.name)
        if item.is_dir():
            yield from _sources(item, place)
        elif item.name.endswith(".py"):
            yield place, item
