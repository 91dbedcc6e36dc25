"""Folds all events of a bounded input at once: what the laptop tool does with what it has read."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from replication.protocol.folding import fold, steady
from replication.protocol.folding.sequencing import gap_of, in_order, several_imports, with_gap
from replication.protocol.ground.events import Event
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement import risk_watch
from replication.protocol.judgement.defects import answer_or_defect, cannot_be_folded
from replication.protocol.judgement.judge import PartitionAnswer

Identity = tuple[str, str, str, int]


@dataclass(slots=True)
class FoldedPartition:
    """One topic partition folded to its end: the answer, and what did not count and why.

    refused: (event_id, reason) of events that the fold rejects or that share a slot. defect: what
    of this tool failed on the partition, whose verdicts are all UNKNOWN then. several_imports: in
    words, that several tell of it, of which one counts.
    """

    identity: Identity
    state: State
    answer: PartitionAnswer
    counts: dict[str, int]
    refused: list[tuple[str, str]] = field(default_factory=list)
    defect: str | None = None
    several_imports: str | None = None


def identity_of(event: Event) -> Identity:
    """(cluster id, topic, topic id, partition)."""
    return (event.cluster_id, event.topic, event.topic_id, event.partition)


def fold_all(events: Iterable[Event], *, strict: bool = False) -> list[FoldedPartition]:
    """Every topic partition of the events, in the order of identities. strict: nothing is taken
    for granted."""
    by_partition: dict[Identity, list[Event]] = {}
    for event in events:
        by_partition.setdefault(identity_of(event), []).append(event)
    return [fold_partition(i, by_partition[i], strict=strict) for i in sorted(by_partition)]


def fold_partition(
    identity: Identity, events: list[Event], *, strict: bool = False
) -> FoldedPartition:
    """One topic partition's events, in any order, to its answer."""
    ordered = in_order(events)
    state = fold.new_state(*identity)
    refused = [
        (e.event_id, f"sequence_conflict: two different events have sequence {e.sequence}")
        for e in ordered.conflicts
    ]
    defect = None
    for event in ordered.ready:
        try:
            risk_watch.before(state, event)
            steady.fold_event(state, event)
            risk_watch.after(state, event)
            continue
        except fold.Rejected as error:
            refused.append((event.event_id, str(error)))
        except Exception as error:
            reason = cannot_be_folded(event, error)
            refused.append((event.event_id, reason))
            defect = defect or reason
        ordered.sequencer.reject()
    judged, defect = answer_or_defect(state, defect, strict=strict)
    judged.verdicts = with_gap(judged.verdicts, gap_of(ordered.sequencer, state))
    counts = ordered.sequencer.counts()
    several = several_imports(ordered.sequencer)
    return FoldedPartition(identity, state, judged, counts, refused, defect, several)
