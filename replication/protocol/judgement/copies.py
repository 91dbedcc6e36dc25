"""Where records that the leader's log lacks still are: replicas, older copies, directories set
aside."""

from dataclasses import dataclass

from replication.protocol.ground.model import Span, clipped, same_record
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.divergence import is_cut_by_following
from replication.protocol.judgement.older_copies import is_assigned
from replication.protocol.judgement.reference import lived_on_unseen, reference


@dataclass(slots=True)
class SurvivingCopy:
    """A place that still holds lost records. kind: replica (a current log) or salvage.

    as_of: ms since the Unix epoch of the newest record beside them. shown_by: the event that
    showed the copy.
    """

    replica: int
    kind: str
    as_of: int | None
    destroyed_when: str | None
    shown_by: str | None = None


def surviving_copies(
    state: State, leaders: set[int], record: Span, holders: dict[int, bool]
) -> list[SurvivingCopy]:
    """Every copy of the record beside the last leader's log. holders: by broker, whether it holds
    the record in every admitted history, or only in some."""
    found = []
    for number, replica in sorted(state.replicas.items()):
        if number in leaders or not _holds(replica.log.spans, record):
            continue
        kind, when = "replica", None
        if not is_assigned(state, replica):
            kind, when = "salvage", f"broker {number} deletes it: it is no replica any more"
        elif holders.get(number) and state.still_has_records(replica):
            when = _destroyed_when(state, number, record.first_offset)
        elif replica.stale or lived_on_unseen(state, replica) or number not in holders:
            kind = "salvage"  # A copy of what the replica may have lost since.
        else:
            continue
        found.append(SurvivingCopy(number, kind, replica.observed_at, when, replica.as_of))
    salvage: dict[tuple[int, str], SurvivingCopy] = {}
    for aside in state.history.copies:
        if _holds(aside.spans, record):
            when = None if aside.kind == "older" else "the directory is deleted"
            salvage[(aside.replica, aside.kind)] = SurvivingCopy(
                aside.replica, "salvage", aside.observed_at, when, aside.as_of
            )
    return found + [salvage[key] for key in sorted(salvage)]


def _holds(spans: list[Span], record: Span) -> bool:
    """Whether spans hold the record at its first offset, as far as can be told."""
    held = clipped(spans, record.first_offset, record.first_offset + 1)
    return any(same_record(span, record) is True for span in held)


def _destroyed_when(state: State, replica: int, offset: int) -> str:
    """What would end the copy: a start as a follower only where the version's rule cuts there."""
    held = state.replicas[replica]
    isr = state.registration.isr or ()
    if not is_cut_by_following(state, reference(state), held, offset):
        return f"broker {replica} loses this directory"
    if held.stopped or replica not in isr:
        return f"broker {replica} starts as a follower"
    return f"broker {replica} truncates its log or loses this directory"
