"""Names and numbers in the order in which people count."""

from replication.reports.natural import names, natural, runs


def test_numbers_count() -> None:
    assert sorted(["t10", "t2", "a-1.9", "a-1.10", "t", ""], key=natural) == [
        "", "a-1.9", "a-1.10", "t", "t2", "t10",
    ]  # fmt: skip


def test_runs_join_neighbours() -> None:
    assert runs([3, 0, 1, 2, 7, 9, 10, 7]) == "0..3, 7, 9, 10"


def test_partitions_of_a_topic_are_named_together() -> None:
    rows = [{"topic": t, "partition": p} for t, p in (("t10", 0), ("t2", 1), ("t2", 0), ("t2", 2))]
    assert names(rows) == "t2-0..2; t10-0"
    assert names(rows, 1) == "t2-0..2 and 1 more topic"
