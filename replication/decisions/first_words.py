"""The first block of `decide` for a person who was woken for it: what to do now, in a few lines."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from replication.decisions.ranges import common
from replication.decisions.step_words import brokers, directories_copied
from replication.protocol.ground.model import joined_ranges
from replication.reports.inventory_words import counted
from replication.reports.natural import names
from replication.reports.vocabulary import name, runs_of_offsets

MOST_NAMED = 4
TIERS = {
    "acknowledged_by_isr": "acknowledged with acks=all",
    "consumed": "read by consumers",
    "committed": "committed",
    "acknowledged_by_leader": "acknowledged with acks=1",
}
PROMISED = tuple(tier for tier in TIERS if tier != "acknowledged_by_leader")
_STARTS = {"start", "elect_uncleanly", "any_order"}
# The end of a range that nothing shows to end.
_OPEN_END = 1 << 62


def do_now(answer: dict[str, Any], paths: Sequence[object]) -> list[str]:
    """At most six lines: who is to stop before it cuts what others lack, without whom nobody leads,
    what not to start, what is one failure away, how to look at what would be lost, what then."""
    rows = answer["partitions"]
    where = " ".join(shlex.quote(str(p)) for p in paths) or "PATH"
    waits = [row for row in rows if row["advice"] == "undecided"]
    found = [*_stop_first(waits), *_needs_election(rows), *_not_yet(rows)]
    alone = _one_failure_away(rows)
    if alone:
        found.append(f"One failure away: {some(alone, '; ')}.")
    if any(c["copies"] for row in rows for c in row["candidates"]):
        at_stake = next(row for row in rows if any(c["copies"] for c in row["candidates"]))
        found.append(
            f"See the records at stake: replication-analyzer show {where} --topic-partition "
            f"{name(at_stake)}"
        )
    then = _then(answer)
    if then:
        found.append(f"Then: {then}." if found else f"{then}.")
    return found


def _stop_first(waits: list[dict[str, Any]]) -> Iterator[str]:
    """Who is to be stopped before anybody waits, in one line, however many these are."""
    cut = [(row, *told) for row in waits for told in cut_while_waiting(row)]
    if len(cut) == 1:
        row, _, told = cut[0]
        yield f"Before you wait, {told} of {name(row)}."
    elif cut:
        of: dict[int, list[dict[str, Any]]] = {}
        for row, broker, _ in cut:
            of.setdefault(broker, []).append(row)
        alike: dict[str, list[int]] = {}
        for broker in sorted(of):
            alike.setdefault(names(of[broker]), []).append(broker)
        each = some([f"{brokers(those)} ({where})" for where, those in alike.items()], "; ")
        yield (
            "Before you wait, stop these brokers and copy their directories: with its next fetch "
            f"each may cut records that its leader lacks: {each}."
        )


def cut_while_waiting(row: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Which brokers, not known to be down, follow a leader that is there, and cut records that it
    lacks with their next fetch: whoever waits loses these copies. Each with what to do."""
    running = {c["replica"] for c in row["candidates"] if c["runs"]}
    leader = next((c for c in row["candidates"] if c["replica"] == row["leader"]), None)
    for copy in leader["copies"] if leader is not None and leader["runs"] else ():
        at_stake = sorted((*copy["cut_by_first_fetch"], *copy["either"]), key=lambda run: run[0])
        if copy["replica"] in running and at_stake:
            told = (
                f"stop broker {copy['replica']} and copy its directory: its next fetch from broker "
                f"{row['leader']} may cut {runs_of_offsets(at_stake)}"
            )
            yield copy["replica"], told


def _needs_election(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Where no start brings a leader, and it makes no difference which broker it is."""
    of = [row for row in rows if row["advice"] == "any_order" and row["nobody_leads_without"]]
    if of:
        away = sorted({n for row in of for n in row["nobody_leads_without"]})
        others = dict.fromkeys(c["replica"] for row in of for c in row["candidates"])
        elect = " or ".join(f"--elect {n}" for n in others)
        yield (
            f"Without {brokers(away)} nobody leads {names(of)}, whoever starts: somebody has to "
            f"elect a leader. The steps: this call again with {elect}."
        )


def _not_yet(rows: list[dict[str, Any]]) -> list[str]:
    """Which brokers must not start yet, until when, and what is to be copied before."""
    because = [row for row in rows if row["not_yet"]]
    if not because:
        return []
    waiting = sorted({each["broker"] for row in because for each in row["not_yet"]})
    leaders = {row["replica"] for row in because}
    if None in leaders:
        until = f"the leader of {names([r for r in because if r['replica'] is None])} is chosen"
    elif len(leaders) == 1:
        until = f"broker {leaders.pop()} leads {names(because)}"
    else:
        until = f"{names(because)} are led as their plans below say"
    copied = sorted(directories_copied(because))
    those = "directory" if len(copied) == 1 else "directories"
    copy = f" Copy first, as below: the {those} of {brokers(copied)}." if copied else ""
    return [f"Do not start {brokers(waiting)} before {until}.{copy}"]


def _one_failure_away(rows: list[dict[str, Any]]) -> list[str]:
    """Promised records that one replica alone has: all others lose them. By replica."""
    found: dict[int, list[str]] = {}
    for row in rows:
        for c in row["candidates"]:
            others = [o for o in row["candidates"] if o is not c]
            each = [
                common(_held(o, c["replica"]), joined_ranges(_ranges(o, surely=True)))
                for o in others
            ]
            alone = each[0] if each else []
            for held in each[1:]:
                alone = common(alone, held)
            if alone:
                runs = [(first, None if end == _OPEN_END else end) for first, end in alone]
                told = f"{name(row)} {runs_of_offsets(runs)}"
                found.setdefault(c["replica"], []).append(told)
    return [f"{some(told)} on broker {number} alone" for number, told in sorted(found.items())]


def _held(candidate: dict[str, Any], other: int) -> list[tuple[int, int]]:
    """Where another one has a record that a candidate loses: offsets alone do not tell that, where
    two logs have different records there."""
    return joined_ranges(
        [
            (first, _OPEN_END if end is None else end)
            for copy in candidate["copies"]
            if copy["replica"] == other
            for kind in ("cut_by_first_fetch", "kept_and_diverging", "either")
            for first, end in copy[kind]
        ]
    )


def _ranges(c: dict[str, Any], *, surely: bool, of: str = "lost") -> list[tuple[int, int]]:
    """Ranges of promised records that a candidate loses. of: costs, what another one has alone."""
    kinds = ("surely",) if surely else ("surely", "perhaps")
    return [
        (first, _OPEN_END if end is None else end)
        for tier in PROMISED
        for kind in kinds
        for first, end in c[of][tier][kind]
    ]


def promised(rows: Sequence[dict[str, Any]], replica: int) -> int:
    """At how many offsets a candidate surely loses a promised record of these partitions that
    another one has, as far as it is known where they end."""
    return sum(
        end - first
        for row in rows
        for c in row["candidates"]
        if c["replica"] == replica
        for first, end in joined_ranges(_ranges(c, surely=True, of="costs"))
        if end != _OPEN_END
    )


def _then(answer: dict[str, Any]) -> str:
    """What to do: first whatever a person has to choose, since the order of starts hangs on it."""
    rows = answer["partitions"]
    chosen = [row for row in rows if row["advice"] == "show_both"]
    rivals = [*dict.fromkeys(r for row in chosen for r in row["rivals"])]
    if chosen:
        costs = ", ".join(
            f"--elect {r} (loses what was promised at {counted(promised(chosen, r), 'offset')})"
            for r in rivals
        )
        rest = [in_short(row) for row in rows if row["advice"] not in ("show_both", "any_order")]
        first = f"choose the leader of {names(chosen)}, and call this again with it: {costs}"
        return f"{first}; {some(rest, '; ')}" if rest else first
    orders = [order["brokers"] for order in answer["start_orders"]]
    if len(orders) == 1 and orders[0] and {row["advice"] for row in rows} <= _STARTS:
        told = ", then ".join(map(str, orders[0]))
        return f"start the brokers in this order: {told}, each as the plans below say"
    each = [in_short(row) for row in rows if row["advice"] != "any_order"]
    others = [r for r in rows if r["advice"] == "any_order" and not r["nobody_leads_without"]]
    if others:
        each.append(f"{names(others)}: start the brokers in any order")
    return some(each, "; ")


def in_short(row: dict[str, Any]) -> str:
    """The advice in some words."""
    n = row["replica"]
    return (
        name(row)
        + {
            "start": f": start broker {n}",
            "elect_uncleanly": f": elect broker {n}",
            "keep_leader": f": keep broker {n}",
            "show_both": f": yours to choose, {' or '.join(map(str, row['rivals']))}",
            "undecided": ": get what settles it",
            "any_order": ": start the brokers in any order",
        }[row["advice"]]
    )


def some(told: Sequence[str], between: str = ", ") -> str:
    more = len(told) - MOST_NAMED
    return between.join(told[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
