"""A danger is told as it is: of brokers that are stopped, and of a log that holds other records."""

from typing import Any

import pytest

from replication.reports.danger_words import ends_when, happens
from replication.reports.do_now import do_now
from replication.reports.page_words import one_failure_away
from replication.reports.ranking import Partition

DANGER: dict[str, Any] = {
    "failure": "leader_stops", "failures": ["broker 2 stops"], "broker": 2, "next_leader": 4,
    "first_offset": 0, "end_offset": 1,
    "ends_when": "Safe again once broker 4 has fetched offset 0. Until then do not stop or restart "
    "broker 2. Should it happen, decide has broker 2 lead, as long as it still has them.",
}  # fmt: skip


def replicas(*stopped: bool | None) -> dict[str, Any]:
    return {"replicas": [{"replica": n, "stopped": one} for n, one in enumerate(stopped, 1)]}


def different(status: str = "settled", first: int = 0, *between: int) -> list[dict[str, Any]]:
    pair = list(between) or [2, 4]
    return [{"status": status, "replicas": pair, "first_offset": first, "end_offset": first + 9}]


@pytest.mark.parametrize("stopped", [(False, True), (None, True), ()])
def test_whoever_may_run_is_spoken_of_as_running(stopped: tuple[bool | None, ...]) -> None:
    state = replicas(*stopped)
    assert happens(DANGER, state, " now") == "broker 2 stops now"
    assert ends_when(DANGER, state, []) == DANGER["ends_when"]


def test_a_stopped_broker_is_not_told_to_go_on_running() -> None:
    state = replicas(True, True)
    assert happens(DANGER, state, " now") == "broker 2 leads again and stops then"
    told = ends_when(DANGER, state, [])
    assert told == (
        "Safe again once broker 4 has fetched offset 0. Should it happen, decide has broker 2 "
        "lead, as long as it still has them."
    )


def test_who_holds_another_record_there_fetches_none() -> None:
    told = ends_when(DANGER, replicas(False, False), different())
    assert told.startswith("No fetch ends this: broker 4 holds another record there.")
    assert "emptied" in told


@pytest.mark.parametrize(
    "none", [different("pending"), different("settled", 5), different("settled", 0, 1, 4)]
)
def test_a_difference_elsewhere_or_of_others_changes_nothing(none: list[dict[str, Any]]) -> None:
    assert ends_when(DANGER, replicas(False), none) == DANGER["ends_when"]


def test_dangers_that_differ_in_their_offsets_alone_are_one_paragraph_and_one_of_so_many() -> None:
    place = {"cluster_id": "c", "topic": "t", "topic_id": None, "partition": 0}
    common = {
        **place, **DANGER, "cause": "storage_loss", "since": None, "holders": [4], "over": False,
        "one_more_failure": "no copy is left", "ends_when": "Safe again once broker 4 is back.",
    }  # fmt: skip
    runs = [(n, n + 1 + n % 2) for n in range(0, 52, 2)]
    rows = [{**common, "first_offset": a, "end_offset": b, "records": b - a} for a, b in runs]
    rows += [{**row, "failures": ["broker 3 stops"]} for row in rows[:1]]
    state = {**place, **replicas(False, False), "leader": 2, "elections": []}
    partition = Partition(0, state, at_risk=rows, label="t-0")
    html = one_failure_away([partition])
    assert html.count("<li>") == 2
    assert "offset 0, offset 2, offset 4, offset 6, offset 8 and 21 more ranges are lost" in html
    answer = {"losses": [], "divergences": [], "at_risk": rows, "partitions": [state]}
    (said,) = do_now(answer)
    assert said.endswith("(and 1 more danger).")
    # One that ends otherwise is told by itself: there the next leader holds another record.
    differing = Partition(0, state, at_risk=rows, divergences=different("settled", 40), label="t-0")
    assert one_failure_away([differing]).count("<li>") == 3
