"""What the rules foretold of traced evidence, and every change that they did not, one by one.

The product's own conformance makes the predictions while it folds; nothing here predicts anything.
`python -m tests.protocol.foretold FOLDER..` prints it for each folder of evidence, or of runs with
a folder `evidence`, and the sums. Each change that was not foretold is named with what told of it
and with the reason: nothing excludes it, and what the prediction lacks is said.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from replication.protocol.folding.conformance.unforetold import (
    REASONS,
    Unforetold,
    misses,
    unforetold,
)
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from tests.protocol.version_matrix import events_of


def folded(evidence: Path) -> tuple[FoldedPartition, ...]:
    """Every topic partition of a folder of evidence, or of a run that has one inside."""
    return tuple(fold_all(events_of(evidence)))


def each(partitions: Sequence[FoldedPartition], events: Sequence[Event]) -> Iterator[str]:
    """Every change that was not foretold: where it was read, what it is, and why."""
    sources = {e.event_id: e.source for e in events}
    for partition in partitions:
        for event_id, what, reason in misses(partition.state):
            source = sources.get(event_id or "")
            at = "" if source is None else f"{source.path}:{source.line} "
            yield f"{at}{what}: {REASONS[reason]}"


def score(partitions: Sequence[FoldedPartition]) -> tuple[int, list[Unforetold]]:
    """How many changes were foretold, and those that were not."""
    states = [p.state for p in partitions]
    missed = [x for state in states for x in unforetold(state)]
    return sum(s.conformance.predicted for s in states), missed


def refuted(partitions: Sequence[FoldedPartition]) -> list[str]:
    """Why version_conformance is VIOLATED, if it is."""
    verdicts = [v for p in partitions for v in p.answer.verdicts]
    return [
        v["reason"]
        for v in verdicts
        if v["invariant"] == "version_conformance" and v["verdict"] == "VIOLATED"
    ]


def main(folders: list[str]) -> int:
    """Exit status 1 where a run below 99 % has a change without a reason, or refutes its release,
    or where fewer than 99 % of all changes were foretold."""
    foretold, reasons, wrong = 0, Counter[str](), 0
    for folder in folders:
        events = events_of(Path(folder))
        partitions = fold_all(events)
        predicted, missed = score(partitions)
        foretold += predicted
        changes = predicted + sum(x.changes for x in missed)
        share = 100 * predicted / changes if changes else 100
        print(f"{folder}: {predicted} of {changes} foretold ({share:.1f} %)")
        named = list(each(partitions, events))
        for line in named:
            print(f"  {line}")
        for x in missed:
            reasons[x.reason] += x.changes
        if len(named) < sum(x.changes for x in missed):
            wrong += 1
            print("  more changes than are kept one by one")
        for reason in refuted(partitions):
            wrong += 1
            print(f"  VIOLATED: {reason}")
    missed_in_all = sum(reasons.values())
    print(f"{foretold} of {foretold + missed_in_all} foretold; the rest: {dict(reasons)}")
    return int(wrong > 0 or foretold < 0.99 * (foretold + missed_in_all))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
