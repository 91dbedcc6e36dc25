"""The command `drill`: from a plan to the evidence of a drill, which `diagnose` then judges."""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from replication import progress
from replication.drill import collecting
from replication.drill.cluster import DrilledCluster, NoDrill
from replication.drill.load import RunningLoad
from replication.drill.plan import Plan, Step, read_plan
from replication.drill.steps import Journal, carry_out
from replication.drill.words import done_lines, load_lines, named, plan_lines, sample_lines
from replication.protocol.ground.model import moment
from replication.recovery.connecting import client, settings_of
from replication.reports.safe_text import plain

# What an end that was not planned waits for answers.
HASTE_SECONDS = 5.0
_TICK_SECONDS = 0.1


def arguments(command: argparse.ArgumentParser) -> None:
    """What `drill` takes besides what `diagnose` does."""
    command.add_argument(
        "plan",
        type=Path,
        metavar="PLAN",
        help="a TOML file: cluster, topics, load, faults, what to collect (docs/drill.md)",
    )
    command.add_argument(
        "--check",
        action="store_true",
        help="read the plan, ask the cluster, say what would be done, and change nothing",
    )
    command.add_argument(
        "--collect",
        action="store_true",
        help="go on where a drill ended early: collect, and judge what it noted; no load, no fault",
    )


def run(options: argparse.Namespace) -> Plan | None:
    """Makes the drill, up to the evidence. None where it was only checked.

    Raises NoDrill, BadPlan, recovery.folder.NotUsable.
    """
    plan = read_plan(options.plan)
    settings = settings_of(plan.client_config, "client_config")
    library = client("drill")
    if options.collect:
        _go_on(plan, DrilledCluster(library, plan, settings))
        return plan
    cluster = DrilledCluster(library, plan, settings)
    progress.doing("asking the cluster")
    found = cluster.check()
    if options.check:
        for line in [*found, *plan_lines(plan)]:
            print(plain(line))
        return None
    for line in [*found, *plan_lines(plan)]:
        _say(line)
    _make_out(plan)
    journal = Journal(plan.journal)
    journal.write("plan", path=str(plan.path), bootstrap=plan.bootstrap)
    cluster.create()
    cluster.describe(_descriptions(plan))
    _load_and_faults(plan, cluster, library, journal)
    _collect(plan, cluster, journal)
    return plan


def summary(plan: Plan) -> list[str]:
    """What the drill did and what its acknowledgement log can prove, for the top of the answer."""
    entries = Journal(plan.journal).read()
    lines = [f"Drill of {', '.join(t.name for t in plan.topics)} at {plan.bootstrap}."]
    ended = next((e for e in reversed(entries) if e["did"] == "load ended"), None)
    if ended is None:
        lines.append("Load: it was cut off; what it noted until then is judged.")
    else:
        lines += load_lines(ended)
    faults = list(done_lines(entries))
    planned = len(plan.faults)
    lines.append(f"Faults: {len(faults)} of {planned} carried out{':' if faults else '.'}")
    lines += faults
    if ended is not None:
        lines += sample_lines(plan.load.sample, plan.load.keys, ended["noted"], ended["left_out"])
    return [plain(line) for line in lines]


def _say(line: str) -> None:
    print(plain(line), file=sys.stderr, flush=True)


def _make_out(plan: Plan) -> None:
    """Raises NoDrill where the folder is not new or empty."""
    try:
        plan.out.mkdir(parents=True, exist_ok=True)
        if any(plan.out.iterdir()):
            raise NoDrill(
                f"{plan.out} is not empty: name another folder as `out`; or, where a drill of this "
                "plan ended early, go on with --collect"
            )
        plan.evidence.mkdir()
    except OSError as error:
        raise NoDrill(f"{plan.out}: {error.strerror}") from None


def _descriptions(plan: Plan) -> Path:
    return plan.evidence / "kafka-topics-describe.txt"


def _load_and_faults(plan: Plan, cluster: DrilledCluster, library: Any, journal: Journal) -> None:
    run = f"{int(time.time()):x}"
    try:
        load = RunningLoad(library, plan, cluster.settings, plan.evidence / "acknowledged", run)
    except OSError as error:
        raise NoDrill(f"{plan.evidence}: {error.strerror}") from None
    load.start()
    journal.write("load began", client=f"drill-{run}")
    _say(f"load: began at {moment(int(time.time() * 1000))}")
    patience = HASTE_SECONDS
    why: str | None = None
    try:
        _faults(plan, load, journal)
        patience = plan.load.timeout
    except KeyboardInterrupt:
        why = "interrupted"
    except NoDrill as error:
        why = str(error)
    load.stop(patience)
    not_grown = {f"{topic}-{number}": at for (topic, number), at in load.not_grown.items()}
    journal.write(
        "load ended", sent=load.sent, acknowledged=load.acknowledged, errors=dict(load.errors),
        seconds=round(load.seconds, 1), acks=plan.load.acks, noted=load.log.noted,
        left_out=load.log.left_out, renewed=load.renewed,
        not_grown=not_grown, dropped=load.log.dropped,
    )  # fmt: skip
    cluster.describe(_descriptions(plan))
    if why is not None:
        journal.write("stopped early", why=why)
        raise NoDrill(f"{why}\n{_how_to_go_on(plan, journal)}")


def _faults(plan: Plan, load: RunningLoad, journal: Journal) -> None:
    for name, step in named("fault", plan.faults):
        _wait(f"load, {name} is next", load.running_for + step.pause, load)
        _do(name, step, plan, journal, "fault")
        _say(f"load: {load.sent:,} sent, {load.acknowledged:,} acknowledged")
    last = load.running_for + plan.load.after if plan.faults else 0.0
    _wait("load", max(plan.load.seconds, last), load)


def _wait(what: str, until: float, load: RunningLoad) -> None:
    """until: seconds since the load began."""
    progress.doing(what)
    while load.running_for < until:
        time.sleep(_TICK_SECONDS)


def _do(name: str, step: Step, plan: Plan, journal: Journal, kind: str) -> None:
    progress.doing(f"{name}: waiting for Enter" if step.run is None else name)
    journal.write(f"{kind} began", name=name, what=step.told)
    environment = {
        "DRILL_OUT": str(plan.out),
        "DRILL_EVIDENCE": str(plan.evidence),
        "DRILL_BOOTSTRAP": plan.bootstrap,
    }
    outcome = carry_out(name, step, plan.path.resolve().parent, environment)
    journal.write(kind, name=name, what=step.told, outcome=outcome)


def _how_to_go_on(plan: Plan, journal: Journal) -> str:
    """What was done so far, and what can be done with it."""
    entries = journal.read()
    faults = [e["name"] for e in entries if e["did"] == "fault"]
    begun = [e["name"] for e in entries if e["did"] == "fault began"]
    half = [name for name in begun if name not in faults]
    ended = next((e for e in reversed(entries) if e["did"] == "load ended"), None)
    lines = []
    if ended is not None:
        lines += list(load_lines(ended))
    lines.append(f"Carried out: {', '.join(faults) or 'no fault'}.")
    if half:
        lines.append(f"Begun, and perhaps carried out: {', '.join(half)}.")
    lines += [
        f"The acknowledgement log is whole: {plan.evidence / 'acknowledged'}.",
        "Bring the cluster back to where you want it, then judge what there is: "
        f"replication-analyzer drill {plan.path} --collect",
    ]
    return "\n".join(lines)


def _go_on(plan: Plan, cluster: DrilledCluster) -> None:
    journal = Journal(plan.journal)
    if not any(entry["did"] == "load began" for entry in journal.read()):
        raise NoDrill(f"--collect: {plan.out} holds no drill that began; call without --collect")
    _collect(plan, cluster, journal)


def _collect(plan: Plan, cluster: DrilledCluster, journal: Journal) -> None:
    """Raises NoDrill, which says how to go on."""
    steps = list(plan.collect.steps)
    made = collecting.script_file(plan)
    if made is not None and not steps:
        asked = (
            f"{made} collects on this platform: read it, run it where it says, and put what it "
            f"took below {plan.evidence}; then press Enter"
        )
        steps = [Step(pause=0, say=asked)]
    try:
        cluster.describe(_descriptions(plan))
        for name, step in named("collect", steps):
            time.sleep(step.pause)
            _do(name, step, plan, journal, "collect")
        for line in collecting.take(plan):
            _say(f"collect: copied {line}")
    except (KeyboardInterrupt, NoDrill) as error:
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
        raise NoDrill(
            f"{why}\nThe load and the faults are done. To collect again: "
            f"replication-analyzer drill {plan.path} --collect"
        ) from None
    journal.write("collected")
