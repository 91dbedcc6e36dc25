"""In which leader epoch of the metadata log its records were written.

The epoch of a batch is outside its checksum, and one changed byte there would make a copy look
newer than all others. So a run of batches, from one LeaderChange (or a break) to the next, has the
epoch that most of them say, and no single batch is believed.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class Run(NamedTuple):
    """Batches from metadata offset `start` on; `said`: how many of them say which epoch."""

    start: int
    said: Counter[int]


def epoch_starts(runs: Sequence[Run]) -> tuple[tuple[tuple[int, int], ...], list[str]]:
    """(leader epoch, first offset) by what most batches of a run say; and what is not believed."""
    starts: dict[int, int] = {}
    doubts = []
    for run in runs:
        believed = run.said.most_common(1)[0][0]
        starts.setdefault(believed, run.start)
        others = ", ".join(str(one) for one in sorted(run.said) if one != believed)
        if others:
            doubts.append(
                f"after metadata offset {run.start}, in leader epoch {believed}, batches carry"
                f" leader epoch {others}: not believed"
            )
    return tuple(sorted(starts.items(), key=lambda start: start[1])), doubts
