"""What a verdict may still say where evidence is declared to be missing.

A declared gap (coverage_declared, complete=False) is more than silence: something was there and is
gone. What lies in it may be any steps of those brokers, any registrations, any acknowledgements.
A verdict holds if every way to fill the gap leads to it; the rules below are sufficient for that,
not necessary, so a verdict that no filling could change may still become UNKNOWN.
"""

from dataclasses import dataclass

from replication.protocol.ground.topic_partition import State
from replication.protocol.ground.verdict import HOLDS, VIOLATED, Verdict, unknown

BY_REGISTRATION = ("leader_epochs_monotonic", "isr_within_assignment", "leader_in_isr")
BY_CLIENTS = {
    "committed_records_survive": "acknowledgements",
    "acknowledged_records_survive": "acknowledgements",
    "consumed_records_survive": "consumptions",
}
# Contradicted by two steps of one broker, if it did nothing unseen between them.
BY_TRACE = ("leader_high_watermark_monotonic", "high_watermark_within_log", "version_conformance")
COMMITTED = ("committed_records", None)
END = ("controller_history_end", None)
UNPLACED = "at which offsets some committed records are"
# A step that contradicts one of these does so whatever else happened.
BY_ONE_STEP = (*BY_REGISTRATION, "single_leader_per_epoch")


@dataclass(frozen=True, slots=True)
class Gaps:
    """What is declared missing. brokers: those of whose steps some are.

    untraced: brokers in whose partition single steps were traced, but not all of theirs. later:
    what of the controller's history is known to follow the part that is here; None if nothing is.
    What was violated before stays so, what held may not. unplaced: that records were acknowledged
    at acks=all of which nothing tells where they are.
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


def unplaced(gaps: Gaps) -> str | None:
    """That committed records are missing from what tells where they are; None where none are."""
    return gaps.unplaced


def with_gaps(gaps: Gaps, state: State, verdict: Verdict) -> Verdict:
    """The verdict beside the gaps: itself, or UNKNOWN with what is missing."""
    if verdict.invariant in BY_CLIENTS:
        return verdict  # The histories know what is missing.
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
    if gaps.later and verdict.verdict == HOLDS and name in BY_ONE_STEP:
        return [] if state.settings.deleted else [gaps.later]
    if not gaps or verdict.verdict not in (HOLDS, VIOLATED):
        return []
    if verdict.verdict == VIOLATED and name in BY_ONE_STEP:
        return []
    history = _told(state, "some of the controller's history", ("controller_history", None))
    controller = [history] if gaps.controller else []
    if name in BY_REGISTRATION:
        return controller
    return controller + [_steps_of(state, r) for r in sorted(gaps.brokers)]


def _steps_of(state: State, replica: int) -> str:
    """What is missing of a broker, and as far as it was declared, why."""
    return _told(state, f"some steps of broker {replica}", ("replica_trace", replica))


def _told(state: State, what: str, subject: tuple[str, int | None]) -> str:
    """With what was declared of it."""
    detail = state.why_missing(*subject)
    return f"{what} ({detail})" if detail else what
