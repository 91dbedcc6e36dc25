"""Of every kept incident and every replica of it as the choice: what its plan lets start."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from replication.decisions.answer import as_json, decide
from replication.decisions.command import _replicas as replicas_of
from replication.decisions.words import text
from replication.evidence.importer import import_evidence
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.bounded import fold_all

INCIDENTS = Path(__file__).parents[1] / "incidents"
KEPT = sorted(path for path in INCIDENTS.iterdir() if path.is_dir())
STARTS = {"start", "start_to_follow", "start_to_lead", "start_to_lead_uncleanly"}


def answers(states: list[State], *, all_down: bool) -> list[tuple[dict[str, Any], str]]:
    """The answer of `decide` as it is, and of each replica that can be elected: as data and as
    text. As the command gives them (tests/decisions/test_decide_command.py), without reading and
    folding the evidence anew for each."""
    found: list[tuple[dict[str, Any], str]] = []
    asked: list[int | None] = [None]
    while asked:
        elect = asked.pop(0)
        # Brokers that are said to be down change what is known of their copies.
        decisions = [
            decide(deepcopy(s), down=replicas_of(s) if all_down else frozenset(), elect=elect)
            for s in states
        ]
        if elect is not None and not any(d.choice.as_asked for d in decisions):
            continue
        answer = as_json(decisions, None)
        found.append((answer, text(answer, ["evidence"])))
        if elect is None:
            asked += sorted(
                {c["replica"] for row in answer["partitions"] for c in row["candidates"]}
            )
    return found


@pytest.mark.parametrize(
    "incident",
    [
        pytest.param(p, id=p.name, marks=[pytest.mark.slow] * (n % 4 > 0))
        for n, p in enumerate(KEPT)
    ],
)
def test_no_plan_starts_a_log_that_would_differ_and_each_keeps_the_order_of_starts(
    incident: Path,
) -> None:
    states = [f.state for f in fold_all(import_evidence([incident]).events())]
    found = [*answers(states, all_down=False), *answers(states, all_down=True)]
    for answer, said in found:
        for row in answer["partitions"]:
            moves_what_would_differ(row)
            sets_nothing_twice(row, said)
            sees_only_what_is_there(row)
            counts_what_it_names(row, said)
            consumptions = any("consum" in path.name for path in incident.rglob("*"))
            asked = " ".join(row["settled_by"])
            assert "consumption log" not in asked or not consumptions
        for order in answer["start_orders"]:
            of = [r for r in answer["partitions"] if r["cluster_id"] == order["cluster_id"]]
            keeps_the_order(order, of)


def moves_what_would_differ(row: dict[str, Any]) -> None:
    """A follower of which the choice says that its log differs, or may, starts without it."""
    steps = [(s["action"], s["broker"]) for s in row["steps"]]
    for c in row["candidates"]:
        if c["replica"] != row["replica"]:
            continue
        for copy in c["copies"]:
            n = copy["replica"]
            starts = [at for at, step in enumerate(steps) if step[0] in STARTS and step[1] == n]
            if starts and (copy["kept_and_diverging"] or copy["either"]):
                first = min(starts)
                assert ("copy", n) in steps[:first], (row["topic"], n)
                assert ("move_away", n) in steps[:first], (row["topic"], n)
                assert steps.index(("copy", n)) < steps.index(("move_away", n))


def sets_nothing_twice(row: dict[str, Any], said: str) -> None:
    """Where unclean elections were allowed before, no step allows them, so that no way back
    forbids them; the one that forbids them says that they were."""
    settings = [s for s in row["steps"] if "--entity-type topics" in (s["command"] or "")]
    if any(trap["name"] == "unclean_is_on" for trap in row["traps"]) and settings:
        assert all(s["action"] == "unclean_off" for s in settings), said
        assert all("--delete-config" in s["command"] for s in settings)


def sees_only_what_is_there(row: dict[str, Any]) -> None:
    """What a dump of a copy is to print is what the choice says that the copy has."""
    dumps = [s for s in row["steps"] if s["action"] == "dump"]
    chosen = [c for c in row["candidates"] if c["replica"] == row["replica"]]
    has = {
        x["replica"]: [*x["cut_by_first_fetch"], *x["kept_and_diverging"], *x["either"]]
        for c in chosen
        for x in c["copies"]
    }
    for step in dumps:
        first = min(run[0] for run in has[step["broker"]])
        assert f"offset: {first}(" in step["shows"]


def counts_what_it_names(row: dict[str, Any], said: str) -> None:
    """The number beside a rival is that of the promised offsets in its line."""
    for n in row["rivals"]:
        (costs,) = [c["costs"] for c in row["candidates"] if c["replica"] == n]
        offsets = {
            offset
            for tier in ("acknowledged_by_isr", "consumed", "committed")
            for first, end in costs[tier]["surely"]
            for offset in range(first, end)
        }
        assert f"broker {n} at {len(offsets)} offset" in said


def keeps_the_order(order: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Each plan starts its brokers in START ORDER, or it is said of which broker not."""
    if not order["brokers"]:
        return
    early = {(x["partition"], x["broker"]) for x in order["early"]}
    for row in rows:
        name = f"{row['topic']}-{row['partition']}"
        starts = [s["broker"] for s in row["steps"] if s["action"] in STARTS]
        told = [n for n in dict.fromkeys(starts) if (name, n) not in early]
        places = [order["brokers"].index(n) for n in told if n in order["brokers"]]
        assert places == sorted(places), (name, starts, order["brokers"])
