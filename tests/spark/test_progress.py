"""What a job says: words, or a line of JSON each where the environment asks for it."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from replication.progress import LOG_FORMAT
from replication.protocol.ground import wire
from replication.spark import quarantine
from replication.spark.event_files import REFUSED, Slice
from replication.spark.failures import failed
from replication.spark.progress import Progress
from tests.spark.event_rows import made_trace

FIGURES = {"rows_in": 7, "applied": 5, "duplicates": 2, "milliseconds": 1000, "lag": None}


def said() -> list[str]:
    out = io.StringIO()
    progress = Progress(out)
    progress.say("a note\nof two lines")
    progress.report("fold", 3, FIGURES)
    failed("stream.py", RuntimeError("java.io.IOException: No space left on device"), out)
    return out.getvalue().splitlines()


def test_each_line_is_an_object_of_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LOG_FORMAT, raising=False)
    words = said()
    monkeypatch.setenv(LOG_FORMAT, "json")
    rows = [json.loads(line) for line in said()]
    assert "\n".join(row["message"] for row in rows).splitlines() == words
    assert all(row["at"].endswith("+00:00") for row in rows)
    assert [row["level"] for row in rows] == ["info", "info", "error"]
    assert rows[1]["micro_batch_id"] == 3
    assert rows[1]["figures"] == {k: v for k, v in FIGURES.items() if v is not None}


def test_a_micro_batch_names_the_three_most_frequent_reasons(tmp_path: Path) -> None:
    """Of files that were refused whole and of what the fold refused, each with its rows."""
    reasons = [("junk", 43), ("a broken gzip file: " + "x" * 300, 1), ("of 4.9", 12), ("cut", 20)]
    files = [
        Slice(str(tmp_path / str(n)), REFUSED, 0, 9, "unreadable_file", reason, rows)
        for n, (reason, rows) in enumerate(reasons)
    ]
    refusals = quarantine.of(None, files, 0, None)
    out = io.StringIO()
    Progress(out).report("ingest", 0, {"rows_in": 76, "quarantined": 76}, refusals.why)
    told = "76 quarantined (see table quarantine; 43 rows: junk; 20 rows: cut; 12 rows: of 4.9)"
    assert told in out.getvalue()


@pytest.mark.parametrize(
    ("changes", "said_so"),
    [
        ({"format_version": 2}, True),
        ({"format_version": 0}, False),
        ({"kind": "quorum_lost"}, True),
        ({"quorum": 3}, True),
        ({"sequence": -1}, False),
    ],
)
def test_what_a_newer_version_wrote_is_refused_with_what_to_do(
    changes: dict[str, Any], said_so: bool
) -> None:
    row = {**wire.to_row(made_trace(0)[8]), **changes}
    with pytest.raises(wire.Misfit) as refused:
        wire.from_row(row)
    newer = "a newer version of this tool wrote it" in str(refused.value)
    assert newer == ("update this one" in str(refused.value)) == said_so
