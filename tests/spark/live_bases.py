"""Taped runs shipped twice, with bases as early as can be and without: the same verdicts.

    python -m tests.spark.live_bases DIR..

DIR holds kept, taped runs (python -m tests.kafka_lab --chaos --calm 4 --tape --keep DIR). After
each micro-batch the verdicts are held against each other; of a partition on a base one may be
decided that is UNKNOWN without (a doubt of before the base is none after it), and nothing else.
Exit status 0 where nothing differs and bases were found at all.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from replication.evidence.shipping import compaction, live_join
from replication.evidence.shipping.live_join import LiveJoin
from tests.kafka_lab.truth import read_lines
from tests.spark.fleet import Fleet
from tests.spark.live_campaign import EVERY, lines_of, plain

AT_ONCE = 0.001
Verdicts = dict[Any, list[tuple[str, str]]]


def looks(tape: list[dict[str, Any]], work: Path, base_after: float) -> tuple[list[Verdicts], int]:
    """The verdicts after each micro-batch, and how many partitions stand on a base at the end."""
    fleet = Fleet(work, work)
    fleet.joining = LiveJoin(work / "live", work / "events", base_after=base_after)
    found: list[Verdicts] = []
    now, waiting = tape[0]["at"], list[dict[str, Any]]()
    for told in [*tape, None]:
        while told is None or told["at"] > now:
            lines = [line for each in waiting for line in lines_of(each)]
            fleet.ship(lines, lambda at=now: at)  # type: ignore[misc]
            found.append({name: plain(rows) for name, rows in fleet.verdicts.items()})
            now, waiting = now + EVERY, []
            if told is None:
                break
        else:
            waiting.append(told)
    state = sorted((work / "live").glob(f"*.{live_join.STATE}"))[-1]
    return found, len(json.loads(state.read_text())["bases"])


def differences(without: list[Verdicts], with_bases: list[Verdicts]) -> tuple[list[str], int]:
    """What differs though it was decided, in words; and how many doubts a base has decided."""
    wrong, decided = [], 0
    for look, (one, other) in enumerate(zip(without, with_bases, strict=True)):
        for name in one.keys() | other.keys():
            for (invariant, a), (_, b) in zip(one.get(name, []), other.get(name, []), strict=True):
                if a == "UNKNOWN" != b:
                    decided += 1
                elif a != b:
                    wrong.append(
                        f"micro-batch {look}, {name[1:]} {invariant}: {a}, with a base {b}"
                    )
    return wrong, decided


def main(argv: list[str]) -> int:
    """The command."""
    live_join.SETTLED_IN_TURN, compaction.TOGETHER = 1, 3
    failed = bases = 0
    for tape in sorted(path for each in argv for path in Path(each).glob("**/tape.jsonl")):
        told = sorted(read_lines(tape), key=lambda line: float(line["at"]))
        with tempfile.TemporaryDirectory() as work:
            without, _ = looks(told, Path(work) / "without", 0)
            with_bases, count = looks(told, Path(work) / "with", AT_ONCE)
        wrong, decided = differences(without, with_bases)
        failed, bases = failed + bool(wrong), bases + count
        print(f"{tape.parent.name}: {len(without)} micro-batches, {count} partitions on a base, "
              f"{len(wrong)} verdicts differ, {decided} UNKNOWN decided", flush=True)  # fmt: skip
        for line in wrong[:5]:
            print(f"  {line}")
    return 1 if failed or not bases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
