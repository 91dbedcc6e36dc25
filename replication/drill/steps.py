"""Steps of a drill, done by the operator or by a command line, and the journal of what was done."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from replication.drill.cluster import NoDrill
from replication.drill.plan import Step

_SHOWN = 300
_STDERR = 2


class Journal:
    """An object a line, each written whole: what the drill did, and when."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, did: str, **more: Any) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json.dumps({"at": at, "did": did, **more}, ensure_ascii=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def read(self) -> list[dict[str, Any]]:
        """Every whole line; none where there is no journal."""
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found


def carry_out(name: str, step: Step, folder: Path, environment: Mapping[str, str]) -> str:
    """Does one step, and says how it went. name: what it is called, "fault 1 of 2". folder: where a
    command runs. Raises NoDrill where it failed and may not."""
    if step.say is not None:
        print(f"{name}: {step.say}\n  Done? Press Enter: ", end="", file=sys.stderr, flush=True)
        if not sys.stdin.readline():
            raise NoDrill(
                f"{name} waits for Enter, and nobody can press it: standard input has ended. Call "
                "the drill from a terminal, or give a command line (run) instead"
            )
        return "done by the operator"
    print(f"{name}: {step.told}", file=sys.stderr, flush=True)
    assert step.run is not None
    told = _run(step.run, step.timeout, folder, environment)
    if told is None:
        return "ended with status 0"
    if step.may_fail:
        print(f"{name}: {told}; it may fail", file=sys.stderr, flush=True)
        return told
    raise NoDrill(
        f"{name} failed: `{step.run[:_SHOWN]}` {told}. Mend the command line, or say "
        "may_fail = true"
    )


def _run(line: str, seconds: float, folder: Path, environment: Mapping[str, str]) -> str | None:
    """What went wrong, None: nothing. What the command prints goes to stderr: stdout is the
    answer's."""
    try:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=_STDERR,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"took longer than {seconds:g} s and was ended"
    except OSError as error:
        return f"did not start ({error.strerror})"
    if done.returncode < 0:
        return f"was ended by signal {-done.returncode}"
    return f"ended with status {done.returncode}" if done.returncode else None
