"""Older copies and directories set aside: which records only they still hold."""

from dataclasses import dataclass

from replication.protocol.ground.model import Span, normalized, overlaps, same_record, uncovered
from replication.protocol.ground.topic_partition import Copy, Replica, State


@dataclass(frozen=True, slots=True)
class OlderCopy:
    """A copy, and the runs of offsets [first, end) at which no present log has its record.

    Offsets below where the logs begin now are not among them: retention took those. Nor are records
    that compaction took from the logs, which once had them.
    """

    replica: int
    kind: str
    as_of: int | None
    shown_by: str
    alone: tuple[tuple[int, int], ...]


def older_copies(state: State) -> list[OlderCopy]:
    """One for each copy that still holds something by itself, by replica. The directory of a broker
    that was taken out of the assignment is such a copy."""
    known = [r for r in state.replicas.values() if state.log_is_known(r) and is_assigned(state, r)]
    start = max((r.log.log_start_offset for r in known), default=0)
    compacted = "compact" in (state.settings.cleanup_policy or "")
    found = []
    left = [
        Copy(r.replica, r.log.spans, r.as_of, "older", r.observed_at)
        for r in state.replicas.values()
        if r.captured and r.as_of is not None and not is_assigned(state, r)
    ]
    for copy in [*state.history.copies, *left]:
        alone = [run for run in _alone(copy, known, compacted) if run[1] > start]
        if alone:
            runs = tuple((max(first, start), end) for first, end in alone)
            found.append(OlderCopy(copy.replica, copy.kind, copy.observed_at, copy.as_of, runs))
    return sorted(found, key=lambda c: (c.replica, c.kind, c.alone))


def is_assigned(state: State, replica: Replica) -> bool:
    """Whether it is one of the partition's replicas, as far as they are known."""
    assigned = state.settings.assigned_replicas
    return assigned is None or replica.replica in assigned


def _alone(copy: Copy, known: list[Replica], compacted: bool) -> list[tuple[int, int]]:
    """Where no log has the copy's record; what cannot be told apart counts as the same."""
    held = [
        Span(first, end, None, None)
        for r in known
        for first, end, mine, theirs in overlaps(copy.spans, r.log.spans)
        if same_record(mine, theirs) is not False
    ]
    if compacted and known:
        held += [taken for span in copy.spans for taken in _compacted_away(span, known)]
    runs: list[tuple[int, int]] = []
    for span in copy.spans:
        for first, end in uncovered(span.first_offset, span.end_offset, normalized(held)):
            if runs and runs[-1][1] == first:
                runs[-1] = (runs[-1][0], end)
            else:
                runs.append((first, end))
    return runs


def _compacted_away(span: Span, known: list[Replica]) -> list[Span]:
    """Where every log has nothing in the span's place, and had its leader epoch there."""
    taken = [Span(span.first_offset, span.end_offset, None, None)]
    for r in known:
        logs_own = _of_leader_epoch(r, span.leader_epoch)
        holes = [
            (max(first, a), min(end, b))
            for a, b in logs_own
            for x in taken
            for first, end in uncovered(x.first_offset, x.end_offset, normalized(r.log.spans))
        ]
        taken = [Span(first, end, None, None) for first, end in holes if first < end]
    return taken


def _of_leader_epoch(r: Replica, leader_epoch: int | None) -> list[tuple[int, int]]:
    """The offsets that a log's own epoch file gives to a leader epoch, below the log's end."""
    starts = [*(e.start_offset for e in r.epoch_entries), r.log.log_end_offset]
    return [
        (entry.start_offset, end)
        for entry, end in zip(r.epoch_entries, starts[1:], strict=True)
        if entry.leader_epoch == leader_epoch
    ]
