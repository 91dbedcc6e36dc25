"""What the first block of `decide` says."""

from typing import Any

import pytest

from replication.decisions.first_words import TIERS, do_now, promised
from replication.decisions.words import _advice


def candidate(replica: int, *ranges: tuple[int, int | None]) -> dict[str, Any]:
    """One that loses these committed records; of those that were acknowledged the first ones."""
    lost: dict[str, dict[str, list[Any]]] = {t: {"surely": [], "perhaps": []} for t in TIERS}
    lost["committed"]["surely"] = [*ranges]
    lost["acknowledged_by_isr"]["surely"] = [(a, a + 1) for a, _ in ranges]
    return {"replica": replica, "lost": lost, "costs": lost, "copies": []}


def row(partition: int, advice: str, *candidates: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "topic": "t", "partition": partition, "advice": advice, "replica": 1, "rivals": [],
        "candidates": [*candidates], "not_yet": [], "steps": [], "nobody_leads_without": [],
        "log_ends": [], **more,
    }  # fmt: skip


def said(rows: list[dict[str, Any]], *brokers: int) -> list[str]:
    orders = [{"cluster_id": "c", "brokers": [*brokers]}] if brokers else []
    return do_now({"partitions": rows, "start_orders": orders}, ["e"])


def test_a_choice_is_asked_for_first_with_what_each_loses() -> None:
    rivals = (candidate(1, (29, 37)), candidate(2, (29, 61)))
    rows = [row(n, "show_both", *rivals, rivals=[1, 2]) for n in range(3)]
    rows.append(row(9, "start", candidate(1)))
    assert promised(rows, 2) == 96
    assert said(rows, 1, 2)[-1] == (
        "choose the leader of t-0..2, and call this again with it: --elect 1 (loses what was "
        "promised at 24 offsets), --elect 2 (loses what was promised at 96 offsets); t-9: "
        "start broker 1."
    )


def test_ranges_that_overlap_are_told_as_one() -> None:
    lost = candidate(2, (29, 61))
    lost["lost"]["acknowledged_by_isr"]["surely"] = [(29, 31), (32, 34)]
    runs = {"cut_by_first_fetch": [(29, 40)], "kept_and_diverging": [], "either": [(40, 61)]}
    lost["copies"] = [{"replica": 1, **runs}]
    alone = said([row(0, "start", candidate(1), lost)])[0]
    assert alone == "One failure away: t-0 offsets 29..60 on broker 1 alone."


def test_what_a_third_one_has_as_well_is_not_one_failure_away() -> None:
    lost, third = candidate(2, (29, 61)), candidate(3, (50, 61))
    lost["copies"] = [held(1, (29, 61)), held(3, (29, 50))]
    third["copies"] = [held(1, (50, 61))]
    alone = said([row(0, "start", candidate(1), lost, third)])[0]
    assert alone == "One failure away: t-0 offsets 50..60 on broker 1 alone."


def held(replica: int, run: tuple[int, int]) -> dict[str, Any]:
    return {
        "replica": replica, "cut_by_first_fetch": [run], "kept_and_diverging": [], "either": [],
    }  # fmt: skip


def test_where_there_is_an_order_of_starts_it_is_said() -> None:
    waits = [{"broker": 2}, {"broker": 3}]
    steps = [{"action": "copy", "broker": 1}]
    chosen = row(0, "elect_uncleanly", not_yet=waits, steps=steps)
    found = said([chosen, row(1, "any_order")], 1, 3, 2)
    assert found == [
        "Do not start brokers 2, 3 before broker 1 leads t-0. Copy first, as below: the directory "
        "of broker 1.",
        "Then: start the brokers in this order: 1, then 3, then 2, each as the plans below say.",
    ]
    assert said([chosen, chosen | {"replica": 2, "partition": 1}])[0].startswith(
        "Do not start brokers 2, 3 before t-0, 1 are led as their plans below say. Copy first"
    )
    assert said([row(4, "any_order")]) == ["t-4: start the brokers in any order."]
    alone = row(0, "any_order", candidate(3), candidate(1), nobody_leads_without=[2])
    assert said([alone, row(4, "any_order")]) == [
        "Without broker 2 nobody leads t-0, whoever starts: somebody has to elect a leader. The "
        "steps: this call again with --elect 3 or --elect 1.",
        "Then: t-4: start the brokers in any order.",
    ]


@pytest.mark.parametrize(
    ("fetches", "leads", "cuts", "told"),
    [(True, True, "cut_by_first_fetch", True), (True, True, "either", True),
     (False, True, "either", False), (True, False, "either", False),
     (True, True, "kept_and_diverging", False)],
)  # fmt: skip
def test_nobody_is_told_to_wait_beside_a_fetcher_that_cuts_the_last_copy(
    fetches: bool, leads: bool, cuts: str, told: bool
) -> None:
    none = {"cut_by_first_fetch": [], "kept_and_diverging": [], "either": []}
    leader = {**candidate(1, (29, 61)), "runs": leads, "log_is_here": True}
    leader["copies"] = [{"replica": 2, **none, cuts: [(29, 61)]}]
    follower = {**candidate(2), "runs": fetches, "log_is_here": True}
    of = row(0, "undecided", leader, follower, leader=1, ranking=[2, 1], assuming=[])
    of |= {"undecided_because": "histories_differ", "settled_by": ["a log"]}
    at_once = "Before you wait, stop broker 2 and copy its directory: its next fetch from broker 1"
    assert (said([of])[0] == f"{at_once} may cut offsets 29..60 of t-0.") is told
    many = said([of | {"partition": n} for n in range(60)])
    assert (many[0].endswith("that its leader lacks: broker 2 (t-0..59).")) is told
    assert len(many) <= 6
    lines = [*_advice(of)]
    assert any(at_once in line for line in lines) is told
    assert ("  Until then wait. None of the steps below destroys anything." in lines) is not told
