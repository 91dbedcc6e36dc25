"""Several plans as one: each server is started once, in the order of all plans, settings are taken
back last."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

from replication.decisions import commands

# Which step of which row; a step of another row has its command already where `again` says so.
Place = tuple[int, int, bool]
_ONLY_LOOKS = ("copy", "dump")
_STARTS = (commands.START, commands.FOLLOW, commands.LEAD, commands.LEAD_UNCLEANLY)
_ONCE = (commands.CONTROLLERS, commands.UNCLEAN_OFF)
# What a command does, and where: two steps with the same one are done in one go.
Deed = tuple[str | int | None, ...]


def in_one_order(
    rows: Sequence[dict[str, Any]], orders: Mapping[str | None, Sequence[int]]
) -> list[Place]:
    """All steps of the plans of several partitions, each plan's own in their order.

    What only copies and looks comes first. orders: by cluster, in which order its brokers are to
    start. Plans that contradict each other are left one after the other.
    """
    first = [
        (row, number, False)
        for row, plan in enumerate(rows)
        for number, step in enumerate(plan["steps"])
        if step["action"] in _ONLY_LOOKS
    ]
    for each in (orders, {}):
        found = _merged(rows, each)
        if found is not None:
            return [*first, *_each_check_once(rows, found)]
    return [
        *first,
        *(
            (row, number, False)
            for row, plan in enumerate(rows)
            for number, step in enumerate(plan["steps"])
            if step["action"] not in _ONLY_LOOKS
        ),
    ]


def _each_check_once(rows: Sequence[dict[str, Any]], places: list[Place]) -> Iterator[Place]:
    """Without the steps whose command and check another plan had just before."""
    made: set[tuple[str, str]] = set()
    for row, number, again in places:
        step = rows[row]["steps"][number]
        made = made if again else set()
        if (step["check"], step["prints"]) not in made:
            yield row, number, again
        made.add((step["check"], step["prints"]))


def _merged(
    rows: Sequence[dict[str, Any]], orders: Mapping[str | None, Sequence[int]]
) -> list[Place] | None:
    """The steps that do something; None where no order keeps all plans."""
    deeds: dict[Deed, list[tuple[int, int]]] = {}
    after: dict[Deed, set[Deed]] = {}
    for row, plan in enumerate(rows):
        before: set[Deed] = set()
        followers: set[Deed] = set()  # Which of them starts first makes no difference.
        for number, step in enumerate(plan["steps"]):
            if step["action"] in _ONLY_LOOKS:
                continue
            deed = _deed(row, number, plan, step)
            deeds.setdefault(deed, []).append((row, number))
            if step["action"] == commands.FOLLOW:
                followers.add(deed)
                after.setdefault(deed, set()).update(before)
            else:
                after.setdefault(deed, set()).update((before | followers) - {deed})
                before, followers = {deed}, set()
            if step["action"] == commands.MOVE_AWAY:
                # A broker that starts for one partition starts with all its directories.
                start = ("start", plan["cluster_id"], step["broker"])
                after.setdefault(start, set()).add(deed)
    after = {deed: before for deed, before in after.items() if deed in deeds}
    for cluster, brokers in orders.items():
        starts: list[Deed] = [("start", cluster, broker) for broker in brokers]
        for one, two in pairwise(deed for deed in starts if deed in deeds):
            after[two].add(one)
    for places in deeds.values():
        places.sort(key=lambda place: _told_first(rows[place[0]]["steps"][place[1]]))
    return _sorted(deeds, after)


def _told_first(step: dict[str, Any]) -> tuple[bool, bool]:
    """Of several steps with one command the one that says most about what it does: that no other
    broker may run, then that it destroys something."""
    return step["action"] != commands.LEAD_UNCLEANLY, step["undo"] is not None


def _sorted(
    deeds: dict[Deed, list[tuple[int, int]]], after: dict[Deed, set[Deed]]
) -> list[Place] | None:
    waiting = {deed: set(before) for deed, before in after.items()}
    ready = [(min(places), deed) for deed, places in deeds.items() if not waiting[deed]]
    heapify(ready)
    found: list[Place] = []
    while ready:
        _, deed = heappop(ready)
        found += [(*place, n > 0) for n, place in enumerate(deeds[deed])]
        del waiting[deed]
        for other, before in waiting.items():
            if deed in before:
                before.discard(deed)
                if not before:
                    heappush(ready, (min(deeds[other]), other))
    return None if waiting else found


def _deed(row: int, number: int, plan: dict[str, Any], step: dict[str, Any]) -> Deed:
    if step["action"] in _STARTS:
        return "start", plan["cluster_id"], step["broker"]
    if step["action"] in _ONCE:
        return step["action"], plan["cluster_id"], step["command"]
    return "", row, number
