"""Older copies and directories set aside: which records only they still hold."""

from dataclasses import dataclass

from replication.protocol.ground.model import Span, normalized, overlaps, same_record, uncovered
from replication.protocol.ground.topic_partition import Copy, Replica, State


@dataclass(frozen=True, slots=True)
class OlderCopy:
    """A copy, and the runs of offsets [first, end) at which no present log has its record.

    Offsets below where the logs begin now are not among them: retention took those.
    """

    replica: int
    kind: str
    as_of: int | None
    shown_by: str
    alone: tuple[tuple[int, int], ...]


def older_copies(state: State) -> list[OlderCopy]:
    """One for each copy that still holds something by itself, by replica. The directory of a broker
    that was taken out of the assignment is such a copy."""
    known = [
        r.log for r in state.replicas.values() if state.log_is_known(r) and is_assigned(state, r)
    ]
    start = max((log.log_start_offset for log in known), default=0)
    found = []
    left = [
        Copy(r.replica, r.log.spans, r.as_of, "older", r.observed_at)
        for r in state.replicas.values()
        if r.captured and r.as_of is not None and not is_assigned(state, r)
    ]
    for copy in [*state.history.copies, *left]:
        alone = [run for run in _alone(copy, [log.spans for log in known]) if run[1] > start]
        if alone:
            runs = tuple((max(first, start), end) for first, end in alone)
            found.append(OlderCopy(copy.replica, copy.kind, copy.observed_at, copy.as_of, runs))
    return sorted(found, key=lambda c: (c.replica, c.kind, c.alone))


def is_assigned(state: State, replica: Replica) -> bool:
    """Whether it is one of the partition's replicas, as far as they are known."""
    assigned = state.settings.assigned_replicas
    return assigned is None or replica.replica in assigned


def _alone(copy: Copy, logs: list[list[Span]]) -> list[tuple[int, int]]:
    """Where no log has the copy's record; what cannot be told apart counts as the same."""
    held = [
        Span(first, end, None, None)
        for spans in logs
        for first, end, mine, theirs in overlaps(copy.spans, spans)
        if same_record(mine, theirs) is not False
    ]
    runs: list[tuple[int, int]] = []
    for span in copy.spans:
        for first, end in uncovered(span.first_offset, span.end_offset, normalized(held)):
            if runs and runs[-1][1] == first:
                runs[-1] = (runs[-1][0], end)
            else:
                runs.append((first, end))
    return runs
