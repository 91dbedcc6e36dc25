"""Where every replica's log is here and only the leader's name is missing: what is so in any case.

Each replica is taken for the leader in turn and judged; what comes out the same for all of them is
decided, and of the rest it is said which leader would mean what.
"""

from collections.abc import Callable

from replication.protocol.ground.verdict import HOLDS, VIOLATED, Finding, Verdict, holds, unknown
from replication.protocol.ground.verdict import violated as refuted
from replication.protocol.judgement.reference import LEADERS_NAME, Reference
from replication.protocol.judgement.view import View, view_of

Judge = Callable[[View], Verdict]


def judged_for_any(view: View, judge: Judge) -> Verdict:
    """The verdict that stands whichever of the candidates leads; UNKNOWN where it depends on that.

    view: of the joint judgement, whose losses are those that every candidate lacks.
    """
    found = {r.replica: judge(_led_by(view, r.replica)) for r in view.ref.candidates}
    verdicts = list(found.values())
    name, ids = verdicts[0].invariant, either(list(found))
    if all(v.verdict == HOLDS for v in verdicts):
        reasons = {v.reason.replace(f"leader {c}'s log", "its log") for c, v in found.items()}
        return holds(name, f"whichever of brokers {ids} leads: {min(reasons)}")
    if all(v.verdict == VIOLATED for v in verdicts):
        joint = judge(view)
        if joint.verdict == VIOLATED:
            joint.reason = f"whichever of brokers {ids} leads: {joint.reason}"
            return joint
        return refuted(name, [_if_led(f, c) for c, v in found.items() for f in v.findings])
    if len({(v.verdict, v.reason, v.not_supplied) for v in verdicts}) == 1:
        return verdicts[0]
    wanted = {artefact for v in verdicts for artefact in v.settled_by}
    return unknown(
        name, f"nothing names the leader: {_cases(found)}", [LEADERS_NAME, *sorted(wanted)]
    )


def either(brokers: list[int]) -> str:
    """`1, 2 or 3`."""
    names = [str(b) for b in sorted(brokers)]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _led_by(view: View, leader: int) -> View:
    """The partition as it is if that replica leads."""
    state = view.state
    return view_of(state, Reference(leader, state.replicas[leader], None, view.ref.starts))


def _cases(found: dict[int, Verdict]) -> str:
    """What each leader would mean, the worst first."""
    groups: dict[tuple[str, str], list[int]] = {}
    for leader, verdict in found.items():
        said = "nothing that is known is wrong" if verdict.verdict == HOLDS else verdict.reason
        groups.setdefault((verdict.verdict, said), []).append(leader)
    worst = sorted(groups.items(), key=lambda kv: (kv[0][0] != VIOLATED, kv[0][0] == HOLDS, kv[1]))
    return "; ".join(f"if broker {either(leaders)} leads, {said}" for (_, said), leaders in worst)


def _if_led(finding: Finding, leader: int) -> Finding:
    """A finding that stands if that broker leads."""
    return Finding(
        finding.invariant,
        finding.severity,
        f"if broker {leader} leads: {finding.summary}",
        (*finding.key, "leader", leader),
        finding.steps,
        finding.warns,
    )
