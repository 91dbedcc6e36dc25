"""Evidence on a Hadoop store: Spark brings it to each machine, and there it is read as files.

It is read under one path everywhere, the driver's: elsewhere that is a link to what Spark brought.
Each machine must have room for all of it.
"""

import functools
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from replication.places import HadoopPath
from replication.spark import hadoop_files


@dataclass
class AtHand:
    """What one import has brought. links: path -> its name among what Spark brings. told: path ->
    the name that a user knows it by."""

    spark: SparkSession
    links: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    _shared: frozenset[str] = frozenset()

    def take(self, evidence: HadoopPath) -> Path:
        """Brings a file or folder of a store; where it lies now. Raises OSError, ValueError where
        another one of that name is here."""
        if evidence.name in self.links.values():
            raise ValueError(f"{evidence}: another one of that name is given: give what holds both")
        self.spark.sparkContext.addFile(str(evidence), recursive=evidence.is_dir())
        path = SparkFiles.get(evidence.name)
        self.links[path] = evidence.name
        self.told[path] = str(evidence)
        return Path(path)

    def share(self, store: HadoopPath) -> None:
        """Brings to each machine what this one has unpacked in `tempfile.tempdir`, by way of a
        folder of the store; nothing where that has not changed."""
        own = Path(tempfile.gettempdir())
        found = frozenset(str(path) for path in own.rglob("*") if path.is_file())
        if found == self._shared:
            return
        self._shared = found
        name = f"{own.name}-{len(found)}"
        hadoop_files.upload(self.spark, own, store / name)
        self.spark.sparkContext.addFile(str(store / name), recursive=True)
        self.links[str(own)] = name

    def shown(self, text: str) -> str:
        """A text with the names that a user knows."""
        return shown(text, self.told)

    def there(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as a worker can call it: with the same files under the same paths."""
        return (
            functools.partial(_with_links, dict(self.links), function) if self.links else function
        )


def shown(text: str, told: Mapping[str, str]) -> str:
    """A text with the names that a user knows. told: path -> name."""
    for path, name in told.items():
        text = text.replace(path, name)
    return text


def _with_links(links: Mapping[str, str], function: Callable[..., Any], *given: Any) -> Any:
    for path, name in links.items():
        _link(path, SparkFiles.get(name))
    return function(*given)


def _link(path: str, own: str) -> None:
    """Has path lead to what this machine was brought; on the driver's it is that itself."""
    while os.path.realpath(path) != os.path.realpath(own):
        if os.path.exists(path) and not os.path.islink(path):
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        other = f"{path}.{os.getpid()}"
        os.symlink(own, other)
        os.replace(other, path)
