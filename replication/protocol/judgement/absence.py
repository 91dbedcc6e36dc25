"""What became of part of a promise: a proven absence, or a doubt, and the words for both."""

from dataclasses import dataclass, field

from replication.protocol.ground.model import Span
from replication.protocol.ground.topic_partition import LeaderTerm, Promise, State
from replication.protocol.ground.verdict import Step
from replication.protocol.judgement.reference import Reference
from replication.protocol.judgement.term_starts import term_start


@dataclass(slots=True)
class Absence:
    """Part of a promise that a later leader's log lacks.

    term: the first later term known to lack it. back: the reference log holds it again. final:
    True when the reference log was seen to lack it, None when that log was not handed over.
    perhaps_by_zombie: it was acknowledged, but perhaps by a leader that was deposed by then.
    one_of_several: this record or another that was acknowledged at its offset, whichever is gone.
    perhaps_back: back or not, by which of several it was, or who leads last.
    was_committed: by the time at which it was acknowledged at acks=1, its leader had committed it.
    """

    first_offset: int
    end_offset: int
    promise: Promise
    term: LeaderTerm | None
    back: bool
    final: bool | None
    steps: list[Step] = field(default_factory=list)
    perhaps_by_zombie: bool = False
    one_of_several: bool = False
    perhaps_back: bool = False
    was_committed: bool = False


@dataclass(slots=True)
class Doubt:
    """Part of a promise whose fate the evidence does not decide, and what would decide it.

    by_offset: for want of anything but its offset to know the record by. of_who_answered: only
    whether its leader was still valid when it acknowledged the record.
    """

    first_offset: int
    end_offset: int
    promise: Promise
    reason: str
    settled_by: str
    by_offset: bool = False
    of_who_answered: bool = False


def absence(
    state: State,
    ref: Reference,
    promise: Promise,
    first: int,
    end: int,
    term: LeaderTerm | None,
    *,
    back: bool,
    final: bool | None,
    held: Span | None = None,
) -> Absence:
    steps = [Step(promise.event_id, _promised(promise, first, end))]
    if term is not None:
        start = term_start(state, term)
        steps.append(
            Step(
                term.start_event_id or term.event_id,
                f"broker {term.leader} leads epoch {term.leader_epoch} from offset {start}: "
                f"its log ended below {end}",
            )
        )
    replica = ref.replica
    if final and replica is not None:
        because = f"leader {ref.leader}'s log ends at {replica.log.log_end_offset}"
        if held is not None:
            leader_epoch = "" if held.leader_epoch is None else f" of epoch {held.leader_epoch}"
            because = (
                f"leader {ref.leader} holds another record{leader_epoch} at {_range(first, end)}"
            )
        steps.append(Step(replica.as_of or promise.event_id, because))
    return Absence(first, end, promise, term, back, final, steps)


def _range(first: int, end: int) -> str:
    return f"offset {first}" if end == first + 1 else f"offsets {first}..{end - 1}"


def _promised(promise: Promise, first: int, end: int) -> str:
    what = {
        "acks_all": "acknowledged to a producer with acks=all",
        "acks_1": "acknowledged to a producer with acks=1",
        "consumed": "given to a consumer",
        "checkpoint": f"below replica {promise.replica}'s checkpointed high watermark",
        "load": f"below the high watermark that replica {promise.replica} loaded",
        "start_line": f"below replica {promise.replica}'s high watermark at a transition",
        "high_watermark": f"below replica {promise.replica}'s high watermark",
    }[promise.how]
    return f"{_range(first, end)}: {what}"
