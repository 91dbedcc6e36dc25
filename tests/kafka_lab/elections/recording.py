"""Writes on which brokers each command did what its check says: replication/decisions/tried.py."""

from pathlib import Path

from replication.decisions.commands import row_of
from replication.paths import project_root
from tests.kafka_lab.elections.measured import Measured
from tests.kafka_lab.versions import Version

TRIED = Path("replication/decisions/tried.py")
HEAD = '''"""On brokers of which releases each command did what its check says: by a recorded run.

`python -m tests.kafka_lab.elections --again DIR --record` writes it; by the row's key.
"""

'''
MODES = {"zookeeper": "ZooKeeper", "kraft": "KRaft"}


def tried(measured: list[Measured]) -> dict[str, tuple[str, ...]]:
    """By row: the releases where its command ended with 0 and its check passed, at every try."""
    good: dict[str, set[tuple[tuple[int, ...], str]]] = {}
    bad: dict[str, set[tuple[tuple[int, ...], str]]] = {}
    for one in measured:
        release = Version(one.version).numbers
        for step in [step for election in one.elections for step in election.steps]:
            row = row_of(step["action"], release, one.mode)
            assert row is not None, step
            done = step["passed"] and step["status"] == 0
            (good if done else bad).setdefault(row.key, set()).add((release, MODES[one.mode]))
    return {
        key: tuple(
            f"{'.'.join(map(str, release))} {mode}"
            for release, mode in sorted(places - bad.get(key, set()))
        )
        for key, places in sorted(good.items())
    }


def record(measured: list[Measured]) -> None:
    """Writes the module anew."""
    lines = [HEAD, "TRIED: dict[str, tuple[str, ...]] = {\n"]
    for key, places in tried(measured).items():
        lines.append(f'    "{key}": (\n')
        lines += [f'        "{place}",\n' for place in places]
        lines.append("    ),\n")
    lines.append("}\n")
    (project_root() / TRIED).write_text("".join(lines))
