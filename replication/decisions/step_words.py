"""A plan and its steps in words: its command, its check, and how to take it back."""

from collections.abc import Iterator, Sequence
from typing import Any

from replication.decisions import commands
from replication.protocol.ground.versions import NEWEST_KNOWN
from replication.reports.vocabulary import name

# Steps whose check shows that their broker leads.
_LEADS = (commands.LEAD, commands.LEAD_UNCLEANLY, commands.ELECT)


def step_words(step: dict[str, Any]) -> Iterator[str]:
    """A step's command, its check and how to take it back."""
    if step.get("done"):
        yield f"       check: {step['check']}"
        yield f"              prints: {step['prints']}{_until(step)}"
        return
    if step["command"] is None:
        yield f"       No command: {step['note']}."
        return
    yield from _command_words(step)


def _command_words(step: dict[str, Any]) -> Iterator[str]:
    at = f"   (on the machine of broker {step['broker']})" if step["at_broker"] else ""
    yield f"       {step['command']}{at}"
    if step["note"]:
        yield f"       ({step['note']})"
    yield f"       check: {step['check']}"
    yield f"              prints: {step['prints']}{_until(step)}"
    if step["undo"] is not None:
        yield f"       undo:  {step['undo']}"
    else:
        yield f"       IRREVERSIBLE: copy first: {step['copy_first']}"
    yield f"       tried: {', '.join(step['tried']) or 'no'}"


def _until(step: dict[str, Any]) -> str:
    """How long what a check prints may be something else."""
    seconds = step["within"]
    return f"; ask again until it does, for up to {seconds} s" if seconds else ""


def plan_words(row: dict[str, Any]) -> Iterator[str]:
    """The plan of a partition, step by step; nothing where it has none."""
    if not row["steps"]:
        return
    yield "  Plan (nothing of it was run; go on only where the check prints what it must)"
    if not row["release_known"]:
        told = f"Nothing tells the release: these are the commands of {NEWEST_KNOWN}."
        yield f"    {told} Call it with --kafka."
    yield from _waiting(row)
    for step in row["steps"]:
        yield f"    {step['number']}. {step['words']}"
        yield from step_words(step)


def _waiting(row: dict[str, Any]) -> Iterator[str]:
    """Which brokers this plan keeps down, until when and why; whose directories it leaves alone."""
    waiting, leader = [x["broker"] for x in row["not_yet"]], row["replica"]
    if not waiting:
        return
    led = [x["number"] for x in row["steps"] if x["action"] in _LEADS and x["broker"] == leader]
    if leader is None:
        until = "a leader is chosen: --elect N then tells when each may start"
    elif led:
        until = f"the check of step {led[-1]} shows that broker {leader} leads"
    else:
        until = f"broker {leader} leads"
    yield f"    Do not start before {until}:"
    for x in row["not_yet"]:
        yield f"      broker {x['broker']}: {x['because']}"
    alone = [n for n in waiting if n not in directories_copied([row])]
    leading = [c for c in row["candidates"] if c["replica"] == leader]
    holding = {copy["replica"] for c in leading for copy in c["copies"]}
    if have := [n for n in alone if n in holding]:
        yield (
            f"    Copy the directory of {brokers(have)}, too, if its disk can be had: records are "
            f"there that broker {leader} lacks, and no step copies what is not waited for."
        )
    alone = [n for n in alone if n not in holding]
    if alone and leader is not None:
        yield (
            f"    The plan copies no directory of {brokers(alone)}: as far as the evidence shows, "
            f"no record is there that broker {leader} lacks."
        )


def next_step_text(row: dict[str, Any], step: dict[str, Any], done: int, of: int) -> str:
    """The step that comes next of a plan that is carried out step by step."""
    lines = [f"Step {done + 1} of {of}, {name(row)}: {step['words']}", *step_words(step)]
    return "\n".join(lines) + "\n"


def directories_copied(rows: Sequence[dict[str, Any]]) -> set[int]:
    """The brokers whose directories the plans copy: those that a step may change."""
    return {x["broker"] for row in rows for x in row["steps"] if x["action"] == commands.COPY}


def brokers(numbers: Sequence[int]) -> str:
    told = ", ".join(map(str, numbers))
    return f"broker{'' if len(numbers) == 1 else 's'} {told}"
