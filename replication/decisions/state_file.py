"""A plan that is carried out step by step: which steps have passed is kept in a file."""

import json
import os
from pathlib import Path
from typing import Any

from replication.decisions.walkthrough import in_one_order

FORMAT_VERSION = 2
_OF_A_PARTITION = ("cluster_id", "topic", "partition", "advice", "replica", "steps")


class BadState(ValueError):
    """The file is no plan, or of no use now; the text says what to do."""


def begin(path: Path, answer: dict[str, Any]) -> dict[str, Any]:
    """Writes the plans of an answer as one, with no step passed. Raises BadState where the file is
    there already, or where nothing is planned."""
    if path.exists():
        raise BadState(
            f"{path} has a plan already. To go on with it leave the evidence out; for a new plan "
            "name another file"
        )
    rows = [row for row in answer["partitions"] if row["steps"]]
    planned = [{name: row[name] for name in _OF_A_PARTITION} for row in rows]
    if not planned:
        raise BadState("there is nothing to carry out: no plan has a step")
    orders = {o["cluster_id"]: o["brokers"] or [] for o in answer["start_orders"]}
    state = {
        "format_version": FORMAT_VERSION,
        "partitions": planned,
        "order": in_one_order(planned, orders),
        "passed": [],
    }
    _write(path, state)
    return state


def read(path: Path) -> dict[str, Any]:
    """What `begin` or `passed` wrote. Raises BadState."""
    try:
        state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if state["format_version"] != FORMAT_VERSION:
            raise BadState(f"{path} was written by another release of this tool: begin anew")
        _all_steps(state)
        return state
    except OSError as error:
        raise BadState(f"{path}: {error.strerror}. Name the evidence as well to begin") from None
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, BadState):
            raise
        raise BadState(f"{path} is no plan that this tool wrote") from None


def passed(path: Path, state: dict[str, Any]) -> None:
    """Keeps that the check of the next step printed what it must. Raises BadState where no step is
    left."""
    following = next_step(state)
    if following is None:
        raise BadState("each step has passed already")
    state["passed"].append(len(state["passed"]) + 1)
    _write(path, state)


def next_step(state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The partition and the step that come next; None: all passed."""
    left = _all_steps(state)[len(state["passed"]) :]
    return left[0] if left else None


def count(state: dict[str, Any]) -> tuple[int, int]:
    """How many steps have passed, and how many there are."""
    return len(state["passed"]), len(_all_steps(state))


def _all_steps(state: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each step with its partition's row, in the order of all plans. Of those that another
    partition's plan has as well the check alone is left."""
    found = []
    for place, number, again in state["order"]:
        row = state["partitions"][place]
        step = row["steps"][number]
        if again:
            words = f"{step['words']} A step before did that: make this check alone."
            step = {**step, "words": words, "done": True}
        found.append((row, step))
    return found


def _write(path: Path, state: dict[str, Any]) -> None:
    """In one go: an interrupted call leaves the file as it was."""
    beside = path.with_name(f"{path.name}.new")
    with beside.open("w", encoding="utf-8") as file:
        json.dump(state, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
