"""The page tells one record of each loss as `trace` tells it."""

from pathlib import Path

import pytest

from replication.cli import main
from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import fold_all
from replication.recovery.page_section import records_html
from replication.reports.safe_text import escaped
from tests.changed_evidence import INCIDENTS
from tests.evidence.segment_bytes import Record, batch
from tests.recovery.lost_evidence import lost_evidence

LOST = INCIDENTS / "unclean_election__4.1.1"


def test_the_page_has_what_trace_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["diagnose", str(LOST), "--report", str(page)]) == 1
    capsys.readouterr()
    assert main(["trace", str(LOST), "--offset", "t-0:20"]) == 0
    story = capsys.readouterr().out.split("t-0 offset 20, leader epoch 0: ", 1)[1]
    story = story.partition("\nt-0 offset 20, leader epoch 2: ")[0]
    section = page.read_text().partition('<section id="records">')[2].partition("</section>")[0]
    lines = story.splitlines()
    assert len(lines) > 5
    assert all(escaped(line) in section for line in lines)
    assert section.count("<details>") == 1


def test_a_record_adds_nothing_to_the_page_but_text(tmp_path: Path) -> None:
    lost = batch(3, Record(b"</pre><script>x</script>", key=b"\x1b]0;k\x07"))
    evidence = lost_evidence(tmp_path / "e", lost, 4)
    imported = import_evidence([evidence])
    folded = fold_all(imported.events())
    answer = {
        "losses": [x for f in folded for x in f.answer.losses],
        "verdicts": [v for f in folded for v in f.answer.verdicts],
    }
    section = records_html(imported, folded, answer)
    assert "&lt;script&gt;" in section
    assert [word for word in ("<script>", "\x1b", "\x07") if word in section] == []
    assert records_html(imported, folded, {**answer, "losses": []}) == ""
