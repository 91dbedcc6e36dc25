"""Invariants that a single step contradicts: the fold noted the refutation where it happened."""

from replication.protocol.ground.verdict import Finding, Step, Verdict, holds, unknown, violated
from replication.protocol.judgement.view import View


def findings(view: View, name: str) -> list[Finding]:
    """The refutations of one invariant as findings."""
    return [
        Finding(
            name,
            "critical",
            r.summary,
            ("step", r.witness),
            [Step(event_id, because) for event_id, because in r.witness],
        )
        for r in view.state.history.refutations
        if r.invariant == name
    ]


def judge_by_controller(view: View, name: str, reason: str) -> Verdict:
    """For what the controller's history decides."""
    broken = findings(view, name)
    if broken:
        return violated(name, broken)
    if not view.state.history.terms:
        return unknown(
            name,
            "no election and no leader was observed",
            ["the metadata log (KRaft) or state-change.log (ZooKeeper)"],
            missing=True,
        )
    how = (
        "the controller's whole history"
        if view.covered("controller_history")
        else (f"{len(view.state.history.terms)} observed terms of leadership")
    )
    return holds(name, f"{reason} (in {how})")


def judge_by_trace(view: View, name: str, reason: str, loggers: str) -> Verdict:
    """For what only steps decide: HOLDS needs a complete trace of the leaders."""
    broken = findings(view, name)
    if broken:
        return violated(name, broken)
    leaders = {t.leader for t in view.state.history.terms}
    untraced = [b for b in sorted(leaders) if not view.covered("replica_trace", b)]
    if untraced or not leaders:
        who = ", ".join(f"broker {b}" for b in untraced if b is not None) or "the leaders"
        return unknown(name, f"the steps of {who} were not traced", [loggers], missing=True)
    return holds(name, reason)
