"""Folders as the jobs are given them: paths that driver and workers share, or a refusal in words.

The jobs read and write by the machines' own file system: a disk, or a store mounted on every
machine. The paths of Hadoop's file systems (`hdfs:`, `s3a:`, `abfss:`, `gs:`) are refused, where
they would name a local folder of that name otherwise.
"""

import argparse
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def folder(text: str) -> Path:
    """The path of an argument, `file:` taken off. For argparse: refuses any other scheme."""
    found = _SCHEME.match(text)
    if found is None:
        return Path(text)
    if found[1].lower() == "file":
        parts = urlsplit(text)
        if parts.netloc in ("", "localhost"):
            return Path(unquote(parts.path))
    raise argparse.ArgumentTypeError(
        f"{text}: the jobs read and write by paths of the machine's file system, not by "
        f"{found[1]}: (docs/running.md). Mount the store at one path on the driver and every worker"
    )


def plain_folder(text: str) -> Path:
    """As `folder`, of a folder that Spark's file source follows: in its path no sign of patterns,
    since of n files below such a path it reads each n times (DataSource.checkAndGlobPathIfNecessary
    without globbing). For argparse."""
    path = folder(text)
    signs = sorted(set(str(path.absolute())) & set("{}[]*?\\"))
    if signs:
        raise argparse.ArgumentTypeError(
            f"{path}: has {' '.join(signs)} in its path, which Spark's file source takes for signs "
            "of a pattern: name another folder"
        )
    return path
