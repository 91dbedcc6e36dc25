"""What a job says: words, or a line of JSON each where the environment asks for it."""

import io
import json

import pytest

from replication.progress import LOG_FORMAT
from replication.spark.failures import failed
from replication.spark.progress import Progress

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
    assert rows[1]["micro_batch_id"] == 3
    assert rows[1]["figures"] == {k: v for k, v in FIGURES.items() if v is not None}
