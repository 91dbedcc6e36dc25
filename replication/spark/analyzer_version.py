"""Which analyzer writes: its version and a digest of the core, so that a change of either shows."""

import hashlib
from functools import cache
from importlib import metadata
from pathlib import Path

import replication.protocol
from replication.spark import partition_fold


@cache
def analyzer_version() -> str:
    """The package's version, and eight digits of what decides every answer: the core's source."""
    digest = hashlib.sha256()
    folder = Path(replication.protocol.__file__).parent
    for path in [*sorted(folder.rglob("*.py")), Path(partition_fold.__file__)]:
        digest.update(path.read_bytes())
    try:
        version = metadata.version("replication-analyzer")
    except metadata.PackageNotFoundError:
        version = "0"
    return f"{version}+{digest.hexdigest()[:8]}"
