"""The consistent cut: each query names what it writes, whatever others do to the files."""

import json
from pathlib import Path
from typing import Any

from replication.spark.cut import cut_of, rearranged


def batch(query: str, micro_batch_id: int, **versions: int) -> dict[str, Any]:
    return {"query": query, "run": "first", "run_number": 0, "micro_batch_id": micro_batch_id,
            "table_versions": versions}  # fmt: skip


def test_rows_of_a_micro_batch_that_is_not_finished_are_left_out(tmp_path: Path) -> None:
    rows = [batch("ingest", 4, replica_events=7, quarantine=3),
            batch("fold", 2, verdicts=5, quarantine=4), batch("fold", 1, verdicts=9)]  # fmt: skip
    cut = cut_of(rows, tmp_path)
    assert cut == {"replica_events": 7, "quarantine": 4, "verdicts": 5}
    assert cut.condition("verdicts") is None
    assert cut.condition("replica_events") == (
        "NOT (true AND run = 'first' AND micro_batch_id > 4)"
    )
    assert str(cut.condition("quarantine")).count("NOT (query = ") == 2


def test_a_run_that_has_finished_nothing_does_not_replace_the_one_before(tmp_path: Path) -> None:
    begun = batch("fold", -1, verdicts=6, quarantine=5) | {"run": "second", "run_number": 1}
    rows = [batch("ingest", 4, replica_events=7, quarantine=9),
            batch("fold", 2, verdicts=5, quarantine=4)]  # fmt: skip
    cut = cut_of([*rows, begun], tmp_path)
    assert dict(cut) == dict(cut_of(rows, tmp_path))
    assert cut.begun == {"fold": "second"}
    assert cut.through["fold"] == ("first", 2)
    others = "NOT (query = 'fold' AND run = 'second')"
    assert cut.condition("_batches") == others
    # The ingest has named a version that may hold rows of the run that has begun.
    assert str(cut.condition("quarantine")).endswith(f" AND {others}")
    assert cut.condition("verdicts") is None
    finished = begun | {"micro_batch_id": 0, "table_versions": {"verdicts": 8}}
    cut = cut_of([*rows, begun, finished], tmp_path)
    assert (cut["verdicts"], cut.begun, cut.condition("_batches")) == (8, {}, None)
    # Before anything was folded, the tables are those that the first run has begun with.
    assert cut_of([batch("fold", -1, verdicts=0)], tmp_path)["verdicts"] == 0


def test_commits_that_only_move_rows_between_files_are_followed(tmp_path: Path) -> None:
    log = tmp_path / "verdicts" / "_delta_log"
    log.mkdir(parents=True)

    def commit(version: int, *actions: dict[str, Any]) -> None:
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (log / f"{version:020d}.json").write_text(text)

    moved = {"path": "a", "dataChange": False}
    commit(6, {"commitInfo": {"operation": "OPTIMIZE"}}, {"add": moved}, {"remove": moved})
    commit(7, {"commitInfo": {"operation": "VACUUM START"}})
    commit(8, {"commitInfo": {}}, {"add": {"path": "b", "dataChange": True}})
    commit(9, {"commitInfo": {}}, {"add": moved})
    assert cut_of([batch("fold", 0, verdicts=5)], tmp_path)["verdicts"] == 7
    assert rearranged(tmp_path / "verdicts", 8) == 9
    commit(8, {"metaData": {}})
    assert rearranged(tmp_path / "verdicts", 5) == 7
