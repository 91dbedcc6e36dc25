"""Asks the command `decide`, as a person does: about an evidence folder, by its JSON."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replication.paths import project_root


class NoAnswer(Exception):
    """`decide` refused, or gave no JSON."""


def asked(
    evidence: Path, *more: str, away: Sequence[int] = ()
) -> tuple[int, dict[str, Any] | None]:
    """The exit status, and what it says of the one partition; None: nothing is to be decided."""
    gone = ["--away", ",".join(map(str, away))] if away else []
    done = subprocess.run(
        [
            *(sys.executable, "-m", "replication", "decide", str(evidence)),
            *("--all-producers", "--format", "json", "--topic", "t", "--down", "all", *gone, *more),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=project_root(),
        check=False,
    )
    if done.returncode not in (0, 1, 3) or not done.stdout.strip():
        raise NoAnswer(f"status {done.returncode}: {done.stderr.strip()[-600:]}")
    rows = json.loads(done.stdout)["partitions"]
    return done.returncode, rows[0] if rows else None


def candidate_of(row: dict[str, Any], replica: int) -> dict[str, Any]:
    """What a row foretells of one replica."""
    found: dict[str, Any] = next(c for c in row["candidates"] if c["replica"] == replica)
    return found
