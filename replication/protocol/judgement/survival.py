"""Whether records of which something was promised survived: one verdict by all admitted histories.

HOLDS where every history keeps the promise at every offset, VIOLATED where every history breaks it
at one, UNKNOWN with two histories else.
"""

from collections.abc import Sequence

from replication.protocol.ground.verdict import Verdict, holds, unknown, violated
from replication.protocol.histories.stretches import Stretch
from replication.protocol.judgement.declared_gaps import unplaced
from replication.protocol.judgement.loss import Loss
from replication.protocol.judgement.questions import ACKNOWLEDGED, COMMITTED, CONSUMED
from replication.protocol.judgement.reference import what_is_missing
from replication.protocol.judgement.settling import artefacts
from replication.protocol.judgement.two_histories import TwoHistories, two_histories, words
from replication.protocol.judgement.view import View

LACKS_LINES = "no history fits unless lines of a broker are missing (or misread); if they are, "


# What a record had been, by the promise that its loss breaks.
PROMISED = {
    COMMITTED: "committed",
    ACKNOWLEDGED: "acknowledged",
    CONSUMED: "given to a consumer",
}


def lost_sides(name: str) -> tuple[str, str]:
    """How two histories end, one of each kind, where both lose a record all the same."""
    lost = "the lost record had"
    return f"{lost} not been {PROMISED[name]}", f"{lost} been {PROMISED[name]}"


def judge_promise(view: View, name: str, rows: list[Loss]) -> Verdict:
    """The verdict on one promise, by its name. rows: the ledger's rows that break it."""
    fates = view.fates
    if view.state.settings.deleted:
        return holds(name, "the topic was deleted, and its records with it")
    broken = fates.broken(name)
    if broken:
        findings = [row.finding for row in rows if row.finding is not None]
        verdict = violated(name, findings)
        verdict.assuming = min((sorted(a) for _, a in broken), key=lambda a: (len(a), a))
        if fates.undecided(name):
            verdict.add_open(_open_promise(view, name))
        return verdict
    if not fates.undecided(name):
        not_known = unknown_log(view)
        if not_known is not None:
            return unknown(name, *not_known)
        missing = unplaced(view.gaps)
        if missing and name in (COMMITTED, ACKNOWLEDGED):
            return unknown(name, f"not all of the evidence is here: {missing}", [missing])
        lost = f"a record that had been {PROMISED[name]}"
        verdict = holds(name, f"no history that fits the evidence loses {lost}")
        verdict.assuming = sorted(fates.assumed_to_hold(name))
        return verdict
    return _open_promise(view, name)


def _open_promise(view: View, name: str) -> Verdict:
    """UNKNOWN, by a run at which some history loses nothing at all. Where there is none, every
    history loses a record, and which promise it breaks is the question."""
    lost = {id(fate) for each in PROMISED for fate, _ in view.fates.broken(each)}
    stretches = [fate.stretch for fate in view.fates.undecided(name) if id(fate) not in lost]
    if stretches:
        return open_verdict(view, name, "the record is kept", "it is lost", stretches)
    verdict = open_verdict(view, name, *lost_sides(name))
    if verdict.histories is not None:
        verdict.histories["lost_in_both"] = True
    return verdict


def unknown_log(view: View) -> tuple[str, list[str]] | None:
    """Why nothing shows a log, and what would; None where lines or copies of any replica do."""
    line = view.fates.line
    shown = view.state.story.set_aside or any(s.spans for own in line.own.values() for s in own)
    if shown or any(line.own.get(number) for number in line.covered):
        return None  # What is not seen of the leader's log is taken for granted by name, or asked.
    may_lead = [line.final_leader] if line.final_leader is not None else line.replicas
    blind = [
        number for number in may_lead if number not in line.covered and number in line.not_captured
    ]
    if not blind and may_lead:
        return None
    reason, artefact = what_is_missing(view.state, view.ref)
    wanted = [f"the log directory of broker {n}" for n in blind if n >= 0]
    return reason, [*dict.fromkeys([artefact, *wanted])]


def open_verdict(
    view: View, name: str, kept: str, broken: str, among: Sequence[Stretch] = ()
) -> Verdict:
    """UNKNOWN, with one history of each kind. kept, broken: how they end, in words. among: the runs
    that are not decided; all of them, if there are none."""
    stretches = among or [fate.stretch for fate in view.fates.undecided(name)]
    contradicted = [s for s in stretches if s.contradicted]
    if contradicted:
        first = contradicted[0]
        return unknown(
            name,
            f"{_where(first.first, first.end)}: no history that the rules of the "
            "release allow explains the evidence: some of it was misread or belongs to another "
            "cluster, or a rule of this tool is too narrow",
            [
                *artefacts(first.admitted.line, (), name),
                "the same evidence, copied again",
                "a report of this case to the authors",
            ],
        )
    over = [s for s in stretches if s.admitted.too_many]
    if len(over) == len(stretches):
        return unknown(
            name,
            f"{_where(over[0].first, over[0].end)}: more histories fit the evidence than are "
            "followed",
            two_histories(over[0], name).settled_by,
        )
    first = next(s for s in stretches if not s.admitted.too_many)
    both = two_histories(first, name)
    verdict = unknown(
        name,
        f"{_where(first.first, first.end)}: {LACKS_LINES if first.lines_missing else ''}"
        f"{_parting(both, kept, broken)}",
        both.settled_by,
    )
    verdict.histories = both.as_json()
    return verdict


def _parting(both: TwoHistories, kept: str, broken: str) -> str:
    """Where the two histories part, in words."""
    mine, other = both.parts
    if not mine and not other:
        return f"a history in which {kept} and one in which {broken} both fit the evidence"
    at = (*mine, *other)[0]
    here = "; ".join(map(words, mine[:2])) or "nothing of this happens"
    there = "; ".join(map(words, other[:2])) or "nothing of this happens"
    when = "after it ends" if at.leader_epoch is None else f"in leader epoch {at.leader_epoch}"
    return (
        f"two histories fit the evidence; {when}, either {here} "
        f"(and {kept}), or {there} (and {broken})"
    )


def _where(first: int, end: int | None) -> str:
    if end is None:
        return f"from offset {first} on"
    return f"offset {first}" if end == first + 1 else f"offsets {first}..{end - 1}"
