"""Judges one capture: what `decide` says of it, by all evidence and by parts of it, and what usual
rules would have chosen; and adds up many."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.kafka_lab.ablation import WITHHELD, withheld_copy
from tests.kafka_lab.elections.asking import NoAnswer, asked, candidate_of
from tests.kafka_lab.elections.holding import Score, by_log_ends, hold, hold_copies, promised
from tests.kafka_lab.elections.measured import Measured

WHOLE = "whole"
# What people often lack; without broker 1: the machine that led is broken for good.
PARTS = (
    "no_acknowledgements",
    "no_description",
    "no_metadata_log",
    "no_broker_logs",
    "no_broker_1",
    "no_broker_2",
    "no_acknowledgements+no_broker_logs",
)


def judged(measured: Measured, evidence: Path, whole_only: bool) -> tuple[Measured, Score]:
    """Everything that is said of one capture against what its elections measured."""
    score = Score()
    score.counts["captures"] += 1
    score.counts["elections"] += sum(one.led for one in measured.elections)
    score.counts["elections of an older copy"] += sum(one.led for one in measured.put_back)
    for election in (*measured.elections, *measured.put_back):
        score.add(_steps(measured, election.replica, election.led, election.steps))
    row = _ask(score, measured, WHOLE, evidence)
    if row is not None:
        score.add(_usual_rules(measured, row))
    for part in () if whole_only else PARTS:
        with tempfile.TemporaryDirectory(prefix="part-") as scratch:
            less = Path(scratch) / "evidence"
            withheld_copy(evidence, less, WITHHELD[part])
            _ask(score, measured, part, less)
            shutil.rmtree(less, ignore_errors=True)
    for failure in score.failures:
        print(f"  {failure}", flush=True)
    return measured, score


def _ask(score: Score, measured: Measured, part: str, evidence: Path) -> dict[str, Any] | None:
    where = f"{measured.name} ({part})"
    kind = WHOLE if part == WHOLE else "parts"
    try:
        _, row = asked(evidence, away=measured.away)
    except NoAnswer as error:
        score.counts[f"{kind}: no answer"] += 1
        if part == WHOLE:
            score.failures.append(f"{where}: {error}")
        return None
    if row is None:
        score.counts[f"{kind}: nothing to decide"] += 1
        if part == WHOLE:
            score.failures.append(f"{where}: nothing to decide, though nobody leads")
        return None
    score.counts[f"{kind}: advice {row['advice']}"] += 1
    this = Score()
    for election in measured.elections:
        known = [c["replica"] for c in row["candidates"]]
        if not election.led or election.replica not in known:
            continue
        foretold = candidate_of(row, election.replica)
        this.add(hold(measured, where, foretold, election.log))
        moved = {s["broker"] for s in election.steps if s["action"] == "move_away"}
        this.add(hold_copies(where, foretold, measured.logs, election.after, moved))
    for copy in measured.put_back:
        for x in row["older_copies"]:
            if copy.led and x["replica"] == copy.replica and x["lost"] is not None:
                told = f"{where}, older copy"
                this.add(hold(measured, told, {**x, "log_is_here": True}, copy.log))
    this.add(_choice(measured, where, row))
    score.counts.update({f"{kind}: {what}": n for what, n in this.counts.items()})
    score.failures += this.failures
    return row


def _choice(measured: Measured, where: str, row: dict[str, Any]) -> Score:
    """Whether what is chosen lost more than another one did."""
    score = Score()
    lost = {e.replica: promised(measured, e.log) for e in measured.elections if e.led}
    chosen = row["replica"]
    if chosen not in lost:
        score.counts["nothing chosen"] += 1
        return score
    least = min(lost.values())
    score.counts["chosen"] += 1
    if lost[chosen] > least:
        score.counts["chosen WORSE"] += 1
        score.failures.append(f"{where}: chosen {chosen} loses {lost[chosen]}, another {least}")
    return score


def _usual_rules(measured: Measured, row: dict[str, Any]) -> Score:
    """What log ends alone choose among all replicas; and among those that are left where the
    replica that is best is gone for good. Not where `decide` leaves the choice to the caller."""
    score = Score()
    if row["replica"] is None:
        score.counts["usual: not asked, since nothing is chosen"] += 1
        return score
    lost = {e.replica: promised(measured, e.log) for e in measured.elections if e.led}
    for among in (measured.replicas, [r for r in measured.replicas if r != row["last_leader"]]):
        here = [r for r in among if r in lost]
        ranked = [r for r in row["ranking"] if r in here]
        if not ranked:
            continue
        for rule, chosen in by_log_ends(measured, here).items():
            worse = lost[chosen] - lost[ranked[0]]
            suffix = "" if among is measured.replicas else " (the last leader gone)"
            score.counts[f"usual: {rule}{suffix}: asked"] += 1
            score.counts[f"usual: {rule}{suffix}: WORSE than decide"] += worse > 0
            score.counts[f"usual: {rule}{suffix}: better"] += worse < 0
            keeps_all = worse > 0 and not lost[ranked[0]]
            score.counts[f"usual: {rule}{suffix}: loses where decide loses nothing"] += keeps_all
            if worse > 0:
                told = f"elects {chosen}, which loses {worse} more than {ranked[0]}"
                print(f"  {measured.name}: {rule}{suffix} {told}", flush=True)
    return score


def _steps(measured: Measured, replica: int, led: bool, steps: list[dict[str, Any]]) -> Score:
    score = Score()
    no_command = not led and not any(s["action"].startswith("elect") for s in steps)
    for step in steps:
        good = step["passed"] and step["status"] == 0
        score.counts["steps as the plan says" if good else "steps NOT as the plan says"] += 1
        if not good:
            score.failures.append(
                f"{measured.name}, plan for {replica}: {step['action']} {step['broker']} ended "
                f"with {step['status']}, check {'passed' if step['passed'] else 'failed'}: "
                f"{step['output'].strip()[-300:]} | {step['printed'].strip()[-300:]}"
            )
    if not led:
        score.counts["elections that no command makes" if no_command else "NOT elected"] += 1
    return score


def report(done: list[tuple[Measured, Score]], spoilt: list[str]) -> int:
    """Prints the sums; exit status 1 where anything is wrong."""
    total = Score()
    for _, score in done:
        total.add(score)
    for what, number in sorted(total.counts.items()):
        print(f"{number:7} {what}")
    wrong = len(total.failures)
    print(f"{len(done)} captures, {wrong} failures; {len(spoilt)} experiments failed {spoilt}")
    return 0 if done and not (wrong or spoilt) else 1
