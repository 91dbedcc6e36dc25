"""What files of a log directory tell, held against what lines of default levels told before.

No trace is needed: a leader's own line names its log's end and its high watermark as it starts. No
replica has a record of that epoch below that end, so none caches the epoch there; and no high
watermark falls while its broker leads. Of a broker whose lines are not here from a start on nothing
is said: it may have led in the same epoch again, or the topic may have been made anew.
"""

from replication.protocol.folding.conformance.expected import worded
from replication.protocol.ground.model import EpochEntry, touching, uncovered
from replication.protocol.ground.topic_partition import LeaderTerm, Replica, State
from replication.protocol.ground.verdict import Finding, Step
from replication.protocol.judgement.reference import all_logs_are_covered

NAME = "version_conformance"


def files_against_lines(state: State) -> list[Finding]:
    """Epoch entries below where their leader began, and high watermarks that fell while it led."""
    if state.settings.deleted or not all_logs_are_covered(state):
        return []
    found = [_fallen(term) for term in state.history.terms if _fell(term)]
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
    """Whether the leader was not yet in that epoch before its first line of it.

    It may have led in the same epoch before its lines begin. Not where a line of its own tells that
    it led in an earlier epoch, nor where its log has older records at the offsets in question.
    """
    leader_epoch, start = term.leader_epoch, term.start_offset
    if any(
        t.leader == term.leader and t.leader_epoch < leader_epoch and t.start_event_id
        for t in state.history.terms
    ):
        return True
    leader = state.replicas.get(term.leader)
    if leader is None or start is None:
        return False
    held = touching(leader.log.spans, entry.start_offset, start)
    whole = not uncovered(entry.start_offset, start, held)
    return whole and all(s.leader_epoch is not None and s.leader_epoch < leader_epoch for s in held)


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


def _fell(term: LeaderTerm) -> bool:
    """Whether a leader's high watermark was lower at the end of its term than as it began.

    Up to 2.3 one that lies past the log's end as it begins is forgotten.
    """
    began, ended, start = term.high_watermark, term.end_high_watermark, term.start_offset
    if began is None or ended is None or start is None or began > start:
        return False
    return ended < began


def _fallen(term: LeaderTerm) -> Finding:
    began, ended = term.high_watermark, term.end_high_watermark
    what = f"leader {term.leader} ended epoch {term.leader_epoch} with a high watermark"
    summary = worded("high_watermark_of_leader", what, f"at least {began}, as it began", ended)
    key = ("high_watermark_fell", term.leader, term.leader_epoch, term.occurrence)
    step = Step(term.start_event_id, f"it began with the high watermark {began}")
    return Finding(NAME, "critical", summary, key, [step])
