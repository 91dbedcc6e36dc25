"""Changes that the rules did not foretell though nothing excludes them: each with its reason.

What was counted on the way is by reason in Conformance.missed; what still waits for another
broker's line is added by what it waits for. What is excluded is a finding, and none of these.
"""

from dataclasses import dataclass

from replication.protocol.folding.conformance.expected import WAITS_FOR, is_excluded
from replication.protocol.ground.topic_partition import State

# By reason: what the prediction lacks.
REASONS = {
    "later_epoch": "the follower's own lines have gone on to a later leader epoch",
    "out_of_step": "the follower's log fell back while its lines and its leader's were out of step",
    "printed_late": "it is its leader's own log end, which another thread printed first",
    "fetch_to_come": "the fetch that moved it is not in the lines, which end there",
    "leaders_line_to_come": "the leader's line of this high watermark is not in the lines",
    "leader_not_known": "which epochs the leader's log had when it answered is not known",
    "isr_to_come": "the ISR may have been another when it happened",
    "epoch_goes_on": "the leader's lines of this epoch have not ended",
    "unfenced": "the fetch may be of an epoch before, of which the follower had not heard",
}


@dataclass(frozen=True, slots=True)
class Unforetold:
    """Changes of one reason: how many, and one of them with the event that told of it."""

    reason: str
    changes: int
    example: str
    event_id: str | None


def unforetold(state: State) -> list[Unforetold]:
    """Every change that was not foretold, by reason."""
    held = state.conformance
    counts = dict(held.missed)
    examples: dict[str, tuple[str, str | None]] = {}
    for event_id, what, reason in held.unpredicted:
        examples.setdefault(reason, (what, event_id))
    waiting: list[tuple[str, str, str | None]] = [
        (WAITS_FOR[x.about], x.summary, x.event_id) for x in held.open if not is_excluded(state, x)
    ]
    waiting += [
        ("fetch_to_come", f"high watermark {r.claimed} of {r.replica}", None)
        for r in state.replicas.values()
        if r.claimed is not None
    ]
    for reason, what, told_by in waiting:
        counts[reason] = counts.get(reason, 0) + 1
        examples.setdefault(reason, (what, told_by))
    return [
        Unforetold(reason, counts[reason], *examples.get(reason, ("", None)))
        for reason in sorted(counts)
    ]
