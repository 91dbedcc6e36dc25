"""What is answered about a topic partition on which this tool itself fails: UNKNOWN, and why.

A defect of ours must not cost the other partitions their answers, nor pass for a finding.
"""

from replication.protocol.ground.events import Event
from replication.protocol.ground.topic_partition import State
from replication.protocol.ground.verdict import UNKNOWN
from replication.protocol.judgement import judge
from replication.protocol.judgement.judge import PartitionAnswer


def answer_or_defect(
    state: State, defect: str | None, *, strict: bool = False
) -> tuple[PartitionAnswer, str | None]:
    """The answer, and what failed: where judging does too, or folding did before (defect)."""
    if defect is None:
        try:
            return judge.answer(state, strict=strict), None
        except Exception as error:
            defect = f"the partition cannot be judged: {words_of(error)}"
    return undecided(state, defect), defect


def undecided(state: State, defect: str) -> PartitionAnswer:
    """UNKNOWN for every invariant, nothing claimed besides.

    state: of it only the identity counts. defect: what failed, in words.
    """
    blank = State(state.cluster_id, state.topic, state.topic_id, state.partition)
    answer = judge.answer(blank)
    unknown = {
        "verdict": UNKNOWN,
        "not_supplied": False,
        "finding_ids": [],
        "reason": f"a defect of this tool: {defect}",
        "settled_by": ["a release of this tool without that defect"],
        "assuming": [],
        "histories": None,
    }
    answer.verdicts = [{**verdict, **unknown} for verdict in answer.verdicts]
    return answer


def cannot_be_folded(event: Event, error: Exception) -> str:
    """Words for an event on which the fold failed: the event is quarantined, the defect is ours."""
    return (
        f"event {event.event_id} (sequence {event.sequence}, {event.fact.kind}) cannot be folded: "
        f"{words_of(error)}"
    )


def words_of(error: Exception) -> str:
    """An exception in one short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
