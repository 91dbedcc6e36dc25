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
    """Changes of one reason: how many, and one of them with the event that showed it."""

    reason: str
    changes: int
    example: str
    event_id: str | None


def misses(state: State) -> list[tuple[str | None, str, str]]:
    """Changes that were not foretold, as (event id, what, reason): the first of those given up,
    and all that wait."""
    held = state.conformance
    found: list[tuple[str | None, str, str]] = list(held.unpredicted)
    return found + _waiting(state)


def _waiting(state: State) -> list[tuple[str | None, str, str]]:
    """Changes that lines still to come may explain."""
    found: list[tuple[str | None, str, str]] = [
        (x.event_id, x.summary, WAITS_FOR[x.about])
        for x in state.conformance.open
        if not is_excluded(state, x)
    ]
    return found + [
        (None, f"high watermark {r.claimed} of {r.replica}", "fetch_to_come")
        for r in state.replicas.values()
        if r.claimed is not None
    ]


def unforetold(state: State) -> list[Unforetold]:
    """Every change that was not foretold, by reason."""
    counts = dict(state.conformance.missed)
    examples: dict[str, tuple[str, str | None]] = {}
    for told_by, what, reason in state.conformance.unpredicted:
        examples.setdefault(reason, (what, told_by))
    for event_id, what, reason in _waiting(state):
        counts[reason] = counts.get(reason, 0) + 1
        examples.setdefault(reason, (what, event_id))
    return [
        Unforetold(reason, counts[reason], *examples.get(reason, ("", None)))
        for reason in sorted(counts)
    ]
