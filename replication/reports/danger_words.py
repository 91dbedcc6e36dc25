"""A danger in words: of stopped brokers nothing is said as if they ran."""

import re
from collections.abc import Collection, Iterable
from typing import Any

from replication.protocol.ground.model import joined_ranges

# What a row says is not to be done to a broker that runs, and cannot be done to a stopped one.
_DO_NOT = re.compile(r" Until then do not stop or restart .*?\.(?= |$)")


# What two dangers of a partition have in common if they differ in their offsets alone.
_ALIKE = (
    "cluster_id", "topic", "topic_id", "partition", "failure", "failures", "broker", "next_leader",
    "cause", "since", "ends_when", "one_more_failure", "over",
)  # fmt: skip


def alike(
    dangers: Iterable[dict[str, Any]], divergences: Collection[dict[str, Any]] = ()
) -> list[list[dict[str, Any]]]:
    """The dangers in their order, those together that differ in their offsets alone. divergences:
    of their partition."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for danger in dangers:
        said = [bool(danger.get("holders")), _holds_another(danger, divergences)]
        key = repr([danger.get(name) for name in _ALIKE] + said)
        groups.setdefault(key, []).append(danger)
    return list(groups.values())


def ranges(dangers: Iterable[dict[str, Any]]) -> list[tuple[int, int]]:
    """The offsets that dangers name, their ends exclusive, each offset once."""
    return joined_ranges([(d["first_offset"], d["end_offset"]) for d in dangers])


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
    if not _holds_another(danger, divergences):
        return said
    heir = danger["next_leader"]
    first, _, rest = said.partition(".")
    return (
        f"No fetch ends this: broker {heir} holds another record there. {first} into a log that "
        f"was emptied before it follows.{rest}"
    )


def _holds_another(danger: dict[str, Any], divergences: Iterable[dict[str, Any]]) -> bool:
    """Whether the next leader holds another record for good where the leader's stop would cost
    one."""
    return danger.get("failure") == "leader_stops" and any(
        d["status"] == "settled"
        and set(d["replicas"]) == {danger["broker"], danger["next_leader"]}
        and d["first_offset"] < danger["end_offset"]
        and d["end_offset"] > danger["first_offset"]
        for d in divergences
    )
