"""A check while a new run is at work judges what the run before it wrote, and calls nothing old."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs import check_quality
from replication.evidence.event_dumps import write_events
from replication.paths import project_root
from replication.quality import suites
from replication.spark.tables import START, Store
from tests.spark.event_rows import made_trace
from tests.spark.jobs_in_process import run_replay

SUITES = suites.load(project_root() / "conf" / "expectations")


@pytest.mark.spark
@pytest.mark.parametrize("keep_events", [True, pytest.param(False, marks=pytest.mark.sweep)])
def test_a_check_during_a_replay_judges_what_the_run_before_has_written(
    session: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch, keep_events: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def checked() -> tuple[int, str, str]:
        flags = check_quality.parser().parse_args(["--tables", str(folder / "tables")])
        status = check_quality.check(session, flags, SUITES)
        return (status, *capsys.readouterr())

    source = folder / "in" / "a.jsonl"
    write_events(source, made_trace())
    run_replay(session, folder, "tables", keep_events=True)
    before = checked()
    assert (before[0], "FAILED  critical  verdicts.no_committed_loss" in before[1]) == (1, True)
    assert "FAILED  critical  _batches" not in before[1]
    finish, looks = Store.finish, []

    def finished(store: Store, writer: Any, micro_batch_id: int, *more: Any) -> None:
        # Once after the run has begun, once before the micro-batch whose rows are all there.
        if micro_batch_id == START:
            finish(store, writer, micro_batch_id, *more)
            looks.append(checked())
        else:
            looks.append(checked())
            finish(store, writer, micro_batch_id, *more)

    monkeypatch.setattr(Store, "finish", finished)
    write_events(source, made_trace()[:20])
    run_replay(session, folder, "tables", new_run="second", keep_events=keep_events)
    assert len(looks) == 2
    for status, said, log in looks:
        assert (status, said) == before[:2]
        assert (
            "run 'second' has begun and has finished no micro-batch: judged is what run 'first' "
            "has written" in log
        )
    status, said, log = checked()
    assert (status, "FAILED  critical" in said, "has begun" in log) == (0, False, False), said
