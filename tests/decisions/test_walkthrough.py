"""The plans of several partitions as one: each server is started once, in the order of them all."""

from typing import Any

from replication.decisions.walkthrough import in_one_order


def row(partition: int, *steps: tuple[str, int | None]) -> dict[str, Any]:
    """A partition's plan: (action, broker) of each step; a check of its own but for settings."""
    return {
        "cluster_id": "c",
        "steps": [
            {
                "action": action,
                "broker": broker,
                "command": f"{action} {broker}",
                "check": "set" if action == "unclean_off" else f"t-{partition} {broker}",
                "prints": "yes",
                "undo": None if action == "start_to_follow" and partition == 1 else "stop",
            }
            for action, broker in steps
        ],
    }


def walked(
    rows: list[dict[str, Any]], *brokers: int, cluster: str = "c"
) -> list[tuple[int, str, int | None, bool]]:
    found = []
    for place, number, again in in_one_order(rows, {cluster: brokers}):
        step = rows[place]["steps"][number]
        found.append((place, step["action"], step["broker"], again))
    return found


def test_a_broker_is_started_once_and_each_partition_makes_its_check() -> None:
    rows = [
        row(0, ("copy", 1), ("start_to_lead", 1), ("start_to_follow", 3), ("start_to_follow", 2)),
        row(
            1, ("copy", 2), ("start_to_lead_uncleanly", 1), ("elect_uncleanly", 1),
            ("unclean_off", None), ("start_to_follow", 2), ("start_to_follow", 3),
        ),
        row(2, ("start_to_lead_uncleanly", 1), ("unclean_off", None)),
    ]  # fmt: skip
    assert walked(rows, 1, 2, 3) == [
        (0, "copy", 1, False),
        (1, "copy", 2, False),
        (1, "start_to_lead_uncleanly", 1, False),
        (2, "start_to_lead_uncleanly", 1, True),
        (0, "start_to_lead", 1, True),
        (1, "elect_uncleanly", 1, False),
        (1, "unclean_off", None, False),
        (1, "start_to_follow", 2, False),
        (0, "start_to_follow", 2, True),
        (1, "start_to_follow", 3, False),
        (0, "start_to_follow", 3, True),
    ]


def test_plans_that_contradict_each_other_come_one_after_the_other() -> None:
    rows = [
        row(0, ("start_to_lead", 1), ("start_to_follow", 2)),
        row(1, ("copy", 3), ("start_to_lead", 2), ("start_to_follow", 1)),
    ]
    assert walked(rows) == [
        (1, "copy", 3, False),
        (0, "start_to_lead", 1, False),
        (0, "start_to_follow", 2, False),
        (1, "start_to_lead", 2, False),
        (1, "start_to_follow", 1, False),
    ]


def test_clusters_have_brokers_of_their_own() -> None:
    rows = [row(0, ("start_to_lead", 1)), row(1, ("start_to_lead", 1))]
    rows[1]["cluster_id"] = "d"
    assert [again for *_, again in walked(rows)] == [False, False]
