"""What a drill did and what its acknowledgement log can prove, in lines for people."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from replication.drill.plan import Plan
from replication.reports.inventory_words import counted

# A loss of so many keys is noticed by a sample with this chance.
CHANCE = 0.9


def plan_lines(plan: Plan) -> Iterator[str]:
    """What the drill is going to do."""
    load = plan.load
    keys = f"{load.keys:,} keys" if load.keys else "no keys"
    yield (
        f"load: {load.rate:,} records a second for {load.seconds:g} s or until {load.after:g} s "
        f"after the last fault, acks={load.acks}, {keys}"
    )
    for name, step in named("fault", plan.faults):
        yield f"{name}: after {step.pause:g} s: {step.told}"
    for name, step in named("collect", plan.collect.steps):
        yield f"{name}: {step.told}"
    for name, paths in plan.collect.take.items():
        yield f"collect: copy {', '.join(map(str, paths))} to {plan.evidence / name}"
    yield f"evidence: {plan.evidence}"


def named(kind: str, steps: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Each step with what it is called."""
    all_of_them = list(steps)
    for number, step in enumerate(all_of_them, 1):
        yield f"{kind} {number} of {len(all_of_them)}", step


def load_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """What the load came to. told: the journal's entry of its end."""
    errors = {name: int(count) for name, count in told["errors"].items()}
    without = told["sent"] - told["acknowledged"]
    why = ", ".join(f"{name} {count:,}" for name, count in sorted(errors.items()))
    yield (
        f"Load: {counted(told['sent'], 'record')} in {told['seconds']:.0f} s, "
        f"{told['acknowledged']:,} acknowledged with acks={told['acks']}, {without:,} not"
        + (f" ({why})." if why else ".")
    )
    if told["renewed"]:
        yield (
            f"The idempotent producer ended {counted(told['renewed'], 'time')} (its sequence "
            "numbers did not fit what the leader has) and was begun anew."
        )
    if told["not_grown"]:
        each = ", ".join(f"{p} (offset {at})" for p, at in sorted(told["not_grown"].items()))
        yield (
            f"Not grown past what was acknowledged there: {each}. Whether a loss at the end of "
            "such a partition shows hangs on copies of brokers that were stopped cleanly."
        )
    if told["dropped"]:
        yield (
            f"The acknowledgement log lacks {told['dropped']:,} of the answers: it could not be "
            "written. A loss among these is not found by it."
        )


def sample_lines(sample: float, keys: int, noted: int, left_out: int) -> Iterator[str]:
    """What the noted answers can and cannot prove; nothing where all were noted."""
    if sample >= 1:
        return
    what = "keys" if keys else "records"
    enough = many_enough(sample)
    yield (
        f"Sample: the answers for {100 * sample:g} % of the {what} were noted, {noted:,} of "
        f"{noted + left_out:,}. One noted record that is lost proves the loss. That none of them "
        f"is lost proves nothing about the others: a loss that took the records of one key alone "
        f"is noticed with a chance of {100 * sample:g} %, one that took {enough:,} {what} or more "
        f"with {100 * CHANCE:g} %."
    )


def many_enough(sample: float) -> int:
    """How many keys a loss has to take so that a sample has one of them with the chance CHANCE."""
    return 1 if sample >= CHANCE else math.ceil(math.log(1 - CHANCE) / math.log(1 - sample))


def done_lines(journal: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The faults that were carried out, with their times."""
    for entry in journal:
        if entry.get("did") == "fault":
            yield f"  {entry['at']}  {entry['name']}: {entry['what']} ({entry['outcome']})"
