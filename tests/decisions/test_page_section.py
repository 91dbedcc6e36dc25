"""The page tells what is to be decided, as `decide` does, and lets nothing of a name out."""

from pathlib import Path
from typing import Any

import pytest

from replication.cli import main
from replication.decisions.page_section import MOST, decisions_html
from replication.reports.safe_text import escaped
from tests.changed_evidence import INCIDENTS


def page_of(incident: str, tmp_path: Path) -> str:
    page = tmp_path / "page.html"
    main(["diagnose", str(INCIDENTS / incident), "--report", str(page)])
    return page.read_text()


def test_the_page_has_what_decide_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = page_of("last_replica_standing__4.1.1__elr_on", tmp_path)
    capsys.readouterr()
    main(["decide", str(INCIDENTS / "last_replica_standing__4.1.1__elr_on")])
    said = capsys.readouterr().out
    assert '<section id="decide">' in page
    told = [line for line in said.splitlines() if line.startswith(("    broker", "    1. "))]
    assert told
    assert all(escaped(line) in page for line in told)


def row(topic: str, costs: str) -> dict[str, Any]:
    return {
        "topic": topic, "partition": 0, "occasion": "no_leader", "leader": None,
        "last_leader": 1, "isr": [], "advice": "any_order", "replica": None, "costs": costs,
        "safe": [1], "rivals": [], "perhaps_running": [], "assuming": [], "away": [],
        "nobody_leads_without": [], "lost_under_every_choice": {}, "older_copies": [],
        "candidates": [], "traps": [],
        "newest_epoch_then_longest_log": None, "steps": [], "release_known": True,
    }  # fmt: skip


def test_the_costliest_come_first_and_the_rest_is_counted() -> None:
    rows = [row(f"t{n}", "nothing") for n in range(MOST + 1)] + [row("<b>", "promised")]
    section = decisions_html(rows)
    assert section.index("&lt;b&gt;-0") < section.index("t0-0")
    assert "<b>" not in section
    assert "2 partitions more" in section
    assert decisions_html([]) == ""
