"""What files of a log directory tell, held against what lines of default levels told before.

No trace is needed: a leader's own line names its log's end as it starts. No replica has a record of
that epoch below that end, so none caches the epoch there. A leader may have begun its epoch before
the lines at hand, or a line of it may be missing: so it counts only where the leader's own log has
older records there. That a checkpointed high watermark is lower than the one a line names says
nothing: a line that is missing may tell of a term in between.
"""

from replication.protocol.folding.conformance.expected import worded
from replication.protocol.ground.model import EpochEntry, clipped, uncovered
from replication.protocol.ground.topic_partition import LeaderTerm, Replica, State
from replication.protocol.ground.verdict import Finding, Step
from replication.protocol.judgement.reference import all_logs_are_covered

NAME = "version_conformance"


def files_against_lines(state: State) -> list[Finding]:
    """Epoch entries below where their leader began."""
    if state.settings.deleted or not all_logs_are_covered(state):
        return []
    found = []
    for _, replica in sorted(state.replicas.items()):
        for entry in _filed(state, replica):
            term = _began_later(state, entry)
            if term is not None:
                found.append(_too_early(replica, entry, term))
    return found


def _filed(state: State, replica: Replica) -> list[EpochEntry]:
    """What its epoch file named when it was read last."""
    flags, last = state.behaviour(replica.replica), replica.filed_epoch
    if last is None or flags is None or not flags.has("leader_epoch_in_record_batches"):
        return []
    return [e for e in replica.epoch_entries if e.leader_epoch <= last]


def _began_later(state: State, entry: EpochEntry) -> LeaderTerm | None:
    """The term of that epoch, if every line of a leader in it names a later log end."""
    terms = [t for t in state.history.terms if t.leader_epoch == entry.leader_epoch]
    starts = [t.start_offset for t in terms if t.start_event_id and t.start_offset is not None]
    if not terms or len(starts) < len(terms) or entry.start_offset >= min(starts):
        return None
    return terms[0] if _began_in_sight(state, terms[0], entry) else None


def _began_in_sight(state: State, term: LeaderTerm, entry: EpochEntry) -> bool:
    """Whether the leader's log has older records at the offsets in question."""
    leader = state.replicas.get(term.leader)
    if leader is None or term.start_offset is None:
        return False
    held = clipped(leader.log.spans, entry.start_offset, term.start_offset)
    whole = not uncovered(entry.start_offset, term.start_offset, held)
    return whole and all(
        s.leader_epoch is not None and s.leader_epoch < term.leader_epoch for s in held
    )


def _too_early(replica: Replica, entry: EpochEntry, term: LeaderTerm) -> Finding:
    what = f"broker {replica.replica}'s leader-epoch-checkpoint has epoch {entry.leader_epoch}"
    expected = f"no offset before {term.start_offset}, where its leader {term.leader} began it"
    summary = worded("assign", what, expected, entry.start_offset)
    key = ("epoch_file", replica.replica, entry.leader_epoch, entry.start_offset)
    began = f"broker {term.leader} began epoch {term.leader_epoch} at {term.start_offset}"
    steps = [Step(term.start_event_id, began)]
    if replica.as_of is not None:
        steps.append(Step(replica.as_of, summary))
    return Finding(NAME, "critical", summary, key, steps)
