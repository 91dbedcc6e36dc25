"""What the rules foretold of traced evidence, and every change that they did not, by reason.

The product's own conformance makes the predictions while it folds; nothing here predicts anything.
`python -m tests.protocol.foretold FOLDER..` prints it for each folder of evidence, and the sums.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from replication.evidence.importer import import_evidence
from replication.protocol.folding.conformance.unforetold import REASONS, Unforetold, unforetold
from replication.protocol.judgement.bounded import FoldedPartition, fold_all


def folded(evidence: Path) -> tuple[FoldedPartition, ...]:
    """Every topic partition of a folder of evidence."""
    return tuple(fold_all(import_evidence([evidence]).events()))


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
    """Exit status 1 below 99 %, where a step is refuted, or where a change has no reason."""
    foretold, reasons, wrong = 0, Counter[str](), 0
    for folder in folders:
        partitions = folded(Path(folder))
        predicted, missed = score(partitions)
        foretold += predicted
        print(f"{folder}: {predicted} foretold, {sum(x.changes for x in missed)} not")
        for x in missed:
            reasons[x.reason] += x.changes
            print(f"  {x.changes} {x.reason}: {REASONS[x.reason]} (such as {x.example})")
        for reason in refuted(partitions):
            wrong += 1
            print(f"  VIOLATED: {reason}")
    missed_in_all = sum(reasons.values())
    print(f"{foretold} of {foretold + missed_in_all} foretold; the rest: {dict(reasons)}")
    return int(wrong > 0 or foretold < 0.99 * (foretold + missed_in_all))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
