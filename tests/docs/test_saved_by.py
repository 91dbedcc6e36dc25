"""docs/saved_by.md is what the machine tells, and says what docs/protocol.md says."""

from pathlib import Path

import pytest

from tests.docs.saved_by import COLUMNS, DIFFER, KEPT, LOST, PAGE, outcome, with_table

PROTOCOL = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
BY_NAME = {column.name: column for column in COLUMNS}
# What protocol.md says; the scenario; what happens before the change, and in which column it ends.
CLAIMS = [
    ("committed records cut (KIP-101 1)", "s01_kip_101_loss", LOST, "0.10.2", "1.1 (KIP-101)"),
    ("forks kept (KIP-101 2)", "s02_kip_101_divergence", DIFFER, "0.10.2", "1.1 (KIP-101)"),
    (
        "forks after two quick elections (KIP-279)",
        "s03_kip_279_fast_failover_15", DIFFER, "1.1 (KIP-101)", "2.0.1 (KIP-279)",
    ),
    ("caches its epoch late (KAFKA-7415)", "s08_epoch_not_cached", LOST, None, "2.0.1 (KIP-279)"),
    (
        "a follower that heard of no election appends over a fork",
        "s04_kip_320_zombie", DIFFER, "2.0.1 (KIP-279)", "2.1 (KIP-320)",
    ),
    ("KAFKA-13141", "s15_diverging_fetch_counts", LOST, None, "2.8.1 (on fetch)"),
    (
        "lossy failures are survived with ELR",
        "s10_last_replica_standing", LOST, "3.9 (KRaft)", "4.1 (KIP-966, ELR)",
    ),
]  # fmt: skip


def test_the_page_is_as_the_machine_tells() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text, "run: python -m tests.docs.saved_by --write"


@pytest.mark.parametrize(("said", "scenario", "what", "before", "since"), CLAIMS)
def test_the_protocol_says_so_too(
    said: str, scenario: str, what: str, before: str | None, since: str
) -> None:
    assert said in PROTOCOL
    assert what in outcome(scenario, None if before is None else BY_NAME[before])
    assert what not in outcome(scenario, BY_NAME[since])


def test_settings_save_what_no_release_does() -> None:
    releases = [c for c in COLUMNS if c.settings[0][0] == "kafka"]
    assert all(LOST in outcome("s09_unclean_election", c) for c in releases)
    assert outcome("s09_unclean_election", BY_NAME["as told, no unclean election"]) == KEPT
    assert all(LOST in outcome("s12_min_insync_one", c) for c in releases)
    assert outcome("s12_min_insync_one", BY_NAME["as told, min ISR 2"]) == KEPT
