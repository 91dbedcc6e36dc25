"""What a verdict may still say where evidence is declared to be missing.

A declared gap (coverage_declared, complete=False) is more than silence: something was there and is
gone. What lies in it may be any steps of those brokers, any registrations, any acknowledgements.
A verdict stands if every way to fill the gap leads to it; the rules below are sufficient for that,
not necessary, so a verdict that no filling could change may still become UNKNOWN.
"""

from dataclasses import dataclass

from replication.protocol.ground.topic_partition import Promise, State
from replication.protocol.ground.verdict import HOLDS, VIOLATED, Verdict, unknown
from replication.protocol.judgement.absence import Absence
from replication.protocol.judgement.reference import Reference

BY_REGISTRATION = ("leader_epochs_monotonic", "isr_within_assignment", "leader_in_isr")
BY_CLIENTS = {
    "committed_records_survive": "acknowledgements",
    "acknowledged_records_survive": "acknowledgements",
    "consumed_records_survive": "consumptions",
}
TOLD_TO_CLIENTS = ("acks_all", "acks_1", "consumed")
# Contradicted by two steps of one broker, if it did nothing unseen between them.
BY_TRACE = ("leader_high_watermark_monotonic", "high_watermark_within_log", "version_conformance")
COMMITTED = ("committed_records", None)
END = ("controller_history_end", None)
UNPLACED = "where some committed records stand"
# A step that contradicts one of these does so whatever else happened.
BY_ONE_STEP = (*BY_REGISTRATION, "single_leader_per_epoch")


@dataclass(frozen=True, slots=True)
class Gaps:
    """What is declared missing. brokers: those of whose steps some are.

    untraced: brokers in whose partition single steps were traced, but not all of theirs. later:
    what of the controller's history is known to follow the part that is here; None if nothing is.
    What was violated before stays so, what held may not. unplaced: that records were acknowledged
    at acks=all of which nothing tells where they stand.
    """

    brokers: frozenset[int]
    controller: bool
    clients: frozenset[str]
    untraced: frozenset[int] = frozenset()
    later: str | None = None
    unplaced: str | None = None

    def __bool__(self) -> bool:
        return bool(self.brokers or self.controller or self.clients or self.unplaced)


def declared_gaps(state: State) -> Gaps:
    """The gaps that coverage facts declare; a broker's default log is none."""
    missing = {key for key, (complete, _) in state.coverage.items() if not complete}
    later = state.why_missing(*END)
    untraced = {
        r
        for r in state.ever_assigned
        if state.grade == "traced" and not state.told_of("replica_trace", r)
    }
    return Gaps(
        frozenset(r for s, r in missing if s == "replica_trace" and r is not None),
        any(s == "controller_history" for s, _ in missing),
        frozenset(s for s, _ in missing if s in BY_CLIENTS.values()),
        frozenset(untraced),
        (later or "the end of the controller's history") if END in missing else None,
        _told(state, UNPLACED, COMMITTED) if COMMITTED in missing else None,
    )


def stands(gaps: Gaps, state: State, ref: Reference, absence: Absence) -> bool:
    """Whether an absence is proven by steps that nothing in a gap can undo.

    The promise must be one: a high watermark counts if its replica's steps and the registrations
    are all there, or nobody could say whether it led then. And the leader that lacks it must: by
    its own line at the start of its term, or by its whole trace. The log that counts now must be
    known, and the steps of all who led meanwhile, since records may have been deleted there.
    """
    if gaps.controller or ref.leader in gaps.brokers or _may_have_deleted(gaps, state, absence):
        return False
    promise = absence.promise
    by_mark = promise.replica is not None and promise.how not in TOLD_TO_CLIENTS
    if by_mark and (not _led(state, promise) or promise.replica in gaps.brokers):
        return False  # A follower's is its leader's, and may lie over other records of its own.
    term = absence.term
    if term is not None and term.start_offset is None and gaps.brokers:
        return False
    return term is None or term.leader not in gaps.brokers


def _may_have_deleted(gaps: Gaps, state: State, absence: Absence) -> bool:
    """Whether a leader that had the records, and of whose steps some are missing, may have removed
    them lawfully before another one lacked them."""
    if state.settings.cleanup_policy == "compact":
        return False
    promise, missed = absence.promise, absence.term
    since = promise.span.leader_epoch or 0
    return any(
        t.leader in gaps.brokers
        and t.leader_epoch >= since
        and (missed is None or t.order < missed.order)
        for t in state.history.terms
    )


def _led(state: State, promise: Promise) -> bool:
    """Whether the replica that saw a high watermark led in the epoch that bounds it."""
    return promise.latest_term is not None and any(
        t.leader == promise.replica and t.leader_epoch == promise.latest_term[0]
        for t in state.history.terms
    )


def with_gaps(gaps: Gaps, state: State, verdict: Verdict) -> Verdict:
    """The verdict as it stands beside the gaps: itself, or UNKNOWN with what is missing."""
    missing = _in_the_way(gaps, state, verdict)
    if not missing:
        return verdict
    return unknown(
        verdict.invariant,
        f"not all of the evidence is here: {'; '.join(missing)}",
        missing,
    )


def _in_the_way(gaps: Gaps, state: State, verdict: Verdict) -> list[str]:
    """Of what is missing, all that could change the verdict, in words."""
    name = verdict.invariant
    if verdict.verdict == VIOLATED and name in BY_TRACE and gaps.untraced:
        return [_steps_of(state, r) for r in sorted(gaps.untraced | gaps.brokers)]
    rests_on_leaders = name in BY_CLIENTS or name in BY_ONE_STEP
    if gaps.later and verdict.verdict == HOLDS and rests_on_leaders and not state.settings.deleted:
        return [gaps.later]
    if not gaps or verdict.verdict not in (HOLDS, VIOLATED):
        return []
    if verdict.verdict == VIOLATED and (name in BY_ONE_STEP or name in BY_CLIENTS):
        return []  # Losses that do not stand have been made doubts before.
    history = _told(state, "some of the controller's history", ("controller_history", None))
    controller = [history] if gaps.controller else []
    if name in BY_REGISTRATION:
        return controller
    # Every leader is known where the controller's history is whole; others promise nothing.
    leaders = {t.leader for t in state.history.terms} | {state.registration.leader}
    matter = gaps.brokers
    if not gaps.controller and name != "log_matching":
        matter = gaps.brokers & leaders
    found = [_steps_of(state, r) for r in sorted(matter)]
    clients = BY_CLIENTS.get(name)
    if clients in gaps.clients and (name != "committed_records_survive" or found or controller):
        found.append(_told(state, f"some {clients}", (clients, None)))
    if gaps.unplaced and name == "committed_records_survive":
        found.append(gaps.unplaced)
    return controller + found


def _steps_of(state: State, replica: int) -> str:
    """What is missing of a broker, and as far as it was declared, why."""
    return _told(state, f"some steps of broker {replica}", ("replica_trace", replica))


def _told(state: State, what: str, subject: tuple[str, int | None]) -> str:
    """With what was declared of it."""
    detail = state.why_missing(*subject)
    return f"{what} ({detail})" if detail else what
