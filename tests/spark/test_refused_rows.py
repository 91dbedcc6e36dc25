"""What is refused on the driver is told line by line, or as one where an origin brings too much."""

import pytest

from replication.spark import refused_rows
from replication.spark.quarantine import share_of
from replication.spark.refused_rows import Entries, Entry, entries_of


def entry(number: int, origin: str) -> Entry:
    return ("not_an_event", f"reason {number}", f"raw {number}", 1, origin, number, None)


def test_very_many_lines_of_one_origin_are_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_rows, "TOLD_ONE_BY_ONE", 3)
    entries = Entries()
    for number in range(1_000):
        entries.add(entry(number, "many"))
        assert len(entries.by_origin["many"]) <= 3
    for number in range(3):
        entries.add(entry(number, "few"))
    told = entries.told()
    assert [t for t in told if t[4] == "few"] == [entry(n, "few") for n in range(3)]
    assert [t for t in told if t[4] == "many"] == [
        ("not_an_event", "1000 lines that are no events, the first: reason 0", "raw 0", 1_000,
         "many", None, None)
    ]  # fmt: skip
    assert sum(t[3] for t in told) == 1_003
    assert entries_of({"many": 1_000, "few": 3}) == len(told)


def test_a_share_is_told_in_at_most_two_digits_and_as_all_only_where_it_is_all() -> None:
    told = [share_of(part, 8_000) for part in (1, 180, 7_000, 7_919, 7_999, 8_000)]
    assert told == ["0.013", "2.2", "88", "99", "over 99", "100"]
