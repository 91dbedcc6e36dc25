"""A danger in words: of stopped brokers nothing is said as if they ran."""

import re
from collections.abc import Iterable
from typing import Any

# What a row says is not to be done to a broker that runs, and cannot be done to a stopped one.
_DO_NOT = re.compile(r" Until then do not stop or restart .*?\.(?= |$)")


def all_stopped(state: dict[str, Any]) -> bool:
    """Whether every replica of a partition is known to be stopped."""
    replicas = state["replicas"]
    return bool(replicas) and all(r["stopped"] is True for r in replicas)


def happens(danger: dict[str, Any], state: dict[str, Any], now: str) -> str:
    """What would have to happen. now: said of what may happen to brokers that run."""
    what = " and ".join(danger["failures"]) or f"broker {danger['next_leader']} is elected"
    if danger["failure"] == "leader_stops" and all_stopped(state):
        return f"broker {danger['broker']} leads again and stops then"
    return what if all_stopped(state) else f"{what}{now}"


def ends_when(
    danger: dict[str, Any], state: dict[str, Any], divergences: Iterable[dict[str, Any]]
) -> str:
    """What ends the danger, and what not to do until then."""
    said: str = danger["ends_when"]
    if all_stopped(state):
        said = _DO_NOT.sub("", said)
    pair = {danger["broker"], danger["next_leader"]}
    last = danger["end_offset"] - 1
    other = any(
        d["status"] == "settled"
        and set(d["replicas"]) == pair
        and d["first_offset"] <= last
        and d["end_offset"] > danger["first_offset"]
        for d in divergences
    )
    if danger["failure"] != "leader_stops" or not other:
        return said
    heir = danger["next_leader"]
    first, _, rest = said.partition(".")
    return (
        f"No fetch ends this: broker {heir} holds another record there. {first} into a log that "
        f"was emptied before it follows.{rest}"
    )
