"""Writes on which brokers each command did what its check says: replication/decisions/tried.py."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from replication.decisions.commands import row_of
from replication.decisions.tried import TRIED
from replication.paths import project_root
from tests.kafka_lab.elections.measured import Measured
from tests.kafka_lab.versions import Version

MODULE = Path("replication/decisions/tried.py")
HEAD = '''"""On brokers of which releases each command did what its check says: by a recorded run.

`python -m tests.kafka_lab.elections --again DIR --record` writes it; by the row's key.
"""

'''
MODES = {"zookeeper": "ZooKeeper", "kraft": "KRaft"}


Places = dict[str, set[tuple[tuple[int, ...], str]]]
"""By row, the releases and modes."""


def tried(measured: list[Measured], before: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """By row: the releases where its command ended with 0 and its check passed, at every try.
    before: what was recorded of earlier runs, which counts where these do not say otherwise."""
    good: Places = {key: {_place(told) for told in places} for key, places in before.items()}
    bad: Places = {}
    for one in measured:
        release = Version(one.version).numbers
        for step in [s for election in (*one.elections, *one.put_back) for s in election.steps]:
            row = row_of(step["action"], release, one.mode)
            assert row is not None, step
            done = step["passed"] and step["status"] == 0
            (good if done else bad).setdefault(row.key, set()).add((release, MODES[one.mode]))
    kept = {key: sorted(places - bad.get(key, set())) for key, places in sorted(good.items())}
    return {
        key: [f"{'.'.join(map(str, release))} {mode}" for release, mode in places]
        for key, places in kept.items()
        if places
    }


def _place(told: str) -> tuple[tuple[int, ...], str]:
    release, mode = told.split()
    return Version(release).numbers, mode


def record(measured: list[Measured]) -> None:
    """Writes the module anew, with what it had already. Where a row's command or check changes,
    take its entry out before."""
    lines = [HEAD, "TRIED: dict[str, tuple[str, ...]] = {\n"]
    for key, places in tried(measured, TRIED).items():
        if len(places) == 1:  # As the formatter has it.
            lines.append(f'    "{key}": ("{places[0]}",),\n')
            continue
        lines.append(f'    "{key}": (\n')
        lines += [f'        "{place}",\n' for place in places]
        lines.append("    ),\n")
    lines.append("}\n")
    (project_root() / MODULE).write_text("".join(lines))
