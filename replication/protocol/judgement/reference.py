"""The log that counts now, and how far each replica's log is known."""

from dataclasses import dataclass

from replication.protocol.ground.events import UNCLEAN_KINDS
from replication.protocol.ground.model import Span, touching
from replication.protocol.ground.topic_partition import LeaderTerm, Replica, State

# Elections of a replica that need not have had all that was committed.
UNSURE_KINDS = (*UNCLEAN_KINDS, "unknown", None)


@dataclass(slots=True)
class Reference:
    """The log that counts now: the current leader's, else that of the last valid leader."""

    leader: int | None
    replica: Replica | None
    term: LeaderTerm | None

    @property
    def spans(self) -> list[Span]:
        """The known spans of that log; empty when it was not handed over."""
        return self.replica.log.spans if self.replica else []


def log_is_covered(state: State, replica: int) -> bool:
    """Whether the lines of a broker were handed over from a start on, or its whole trace."""
    return state.covered("broker_log", replica) or state.covered("replica_trace", replica)


def never_began(state: State, term: LeaderTerm) -> bool:
    """Whether a broker was elected and never led: all its lines are here, and none tells of it."""
    return log_is_covered(state, term.leader) and not term.start_event_id


def all_logs_are_covered(state: State) -> bool:
    """Whether no broker can have led without a line of its own."""
    assigned = state.ever_assigned | state.replicas.keys()
    return bool(assigned) and all(log_is_covered(state, r) for r in assigned)


def reference(state: State) -> Reference:
    """The current leader by the controller, else the leader of the last term, else the one that
    kafka-topics named."""
    leader = state.registration.leader
    terms = state.history.terms
    term = None
    newest = newest_leader_epoch(state)
    if newest > state.registration.leader_epoch:
        # The controller's history at hand ends before the brokers' does.
        leader = None
        if not terms or not all_logs_are_covered(state):
            return _by_description(state, newest)
    if leader is not None:
        led = [t for t in terms if t.leader == leader]
        term = led[-1] if led else None
    elif terms:
        term = terms[-1]
        leader = term.leader
    replica = state.replicas.get(leader) if leader is not None else None
    if leader is None:
        return _by_description(state, newest)
    return Reference(leader, replica if state.log_is_known(replica) else None, term)


def _by_description(state: State, newest: int) -> Reference:
    """The leader that kafka-topics named, where nothing else names one.

    A leader's own epoch cache names its epoch: a description that names a broker without the newest
    epoch is from before the logs were copied.
    """
    leader = state.settings.leader
    replica = state.replicas.get(leader) if leader is not None else None
    if leader is None or (state.log_is_known(replica) and _latest_epoch(replica) < newest):
        return Reference(None, None, None)
    return Reference(leader, replica if state.log_is_known(replica) else None, None)


def _latest_epoch(replica: Replica | None) -> int:
    """The highest leader epoch that a replica knows; -1 if none."""
    if replica is None:
        return -1
    named = [e.leader_epoch for e in replica.epoch_entries]
    named += [s.leader_epoch for s in replica.log.spans if s.leader_epoch is not None]
    return max([*named, -1 if replica.leader_epoch is None else replica.leader_epoch], default=-1)


def what_is_missing(state: State, ref: Reference) -> tuple[str, str]:
    """Why the log that counts is not known, and the artefact that would tell."""
    if ref.leader is not None:
        return (
            f"the log directory of broker {ref.leader}, the leader, was not handed over",
            f"the log directory of broker {ref.leader}",
        )
    known = [r for r in sorted(state.replicas) if state.log_is_known(state.replicas[r])]
    assigned = state.settings.assigned_replicas or tuple(sorted(state.ever_assigned))
    absent = [r for r in assigned if r not in known]
    if absent:
        return f"nothing names the leader, nor shows broker {absent[0]}'s log", (
            f"the log directory of broker {absent[0]}"
        )
    if known:
        ids = ", ".join(str(r) for r in known)
        whose = f"the log of {ids} is" if len(known) == 1 else f"the logs of {ids} are"
        return (
            f"{whose} here, but nothing tells which brokers have a replica, nor "
            "which of them leads",
            "the assignment (kafka-topics --describe, metadata log or state-change.log)",
        )
    return "no leader is known", "the log directories of the brokers"


def newest_leader_epoch(state: State) -> int:
    """The highest leader epoch that anything names: a line, a log, an epoch cache; -1 if none."""
    named = [t.leader_epoch for t in state.history.terms]
    return max([*named, *map(_latest_epoch, state.replicas.values())], default=-1)


def tail_is_known(state: State, replica: Replica) -> bool:
    """Whether the log still ends where it was last seen to: a broker that runs on may have grown
    it, unless its whole trace is here."""
    traced = state.covered("replica_trace", replica.replica)
    return replica.tail_known and (traced or replica.stopped is not False)


def lived_on_unseen(state: State, replica: Replica | None) -> bool:
    """Whether the log that a copy shows may have been cut since, where no line would tell."""
    if replica is None or not replica.stale:
        return False
    return not log_is_covered(state, replica.replica)


def log_at(state: State, replica: Replica, offset: int) -> list[Span] | None:
    """What a log shows at an offset: one span, or none; None where it is not known."""
    if not state.log_is_known(replica) or lived_on_unseen(state, replica):
        return None
    spans = replica.log.spans
    near = touching(spans, offset, offset + 1)
    here = [span for span in near if span.first_offset <= offset < span.end_offset]
    # What was appended since the log was seen, no copy shows.
    shown = not replica.stale or (bool(spans) and offset < spans[-1].end_offset)
    return here if here or (shown and not replica.partial) else None


def is_compacted_away(state: State, number: int, offset: int) -> bool:
    """Whether a replica's log, where compaction may take records, shows none at an offset."""
    replica = state.replicas.get(number)
    if replica is None or not state.may_be_compacted() or not state.still_has_records(replica):
        return False
    return offset < replica.log.log_end_offset and log_at(state, replica, offset) == []


def is_kept(state: State, number: int, offset: int) -> bool:
    """Whether a replica that came to hold a record at an offset has one still: not where compaction
    may have taken it and nothing of its log shows one there."""
    replica = state.replicas.get(number)
    return not state.may_be_compacted() or (
        replica is not None and bool(log_at(state, replica, offset))
    )
