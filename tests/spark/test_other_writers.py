"""Commits that this tool has not made are told, whatever they are called, until taken back."""

import json
from pathlib import Path
from typing import Any

import pytest

from replication.spark.other_writers import made_by_others

MOVED = {"path": "a", "dataChange": False}
GONE, NEW = {"remove": {"path": "a", "dataChange": True}}, {"add": {"path": "b"}}
OWN = {"txn": {"appId": "fold/0c2aced9-754c/verdicts", "version": 4}}


def commit(folder: Path, version: int, told: dict[str, Any], *actions: dict[str, Any]) -> None:
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(action) + "\n" for action in ({"commitInfo": told}, *actions))
    (log / f"{version:020d}.json").write_text(text)


def operation(name: str, **parameters: Any) -> dict[str, Any]:
    return {"operation": name, "operationParameters": parameters}


def test_what_somebody_else_has_changed_since_is_told_until_it_is_taken_back(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "verdicts"

    def found(since: int | None = 3) -> str:
        return str(made_by_others(folder, since)[0])

    commit(folder, 3, operation("DELETE"), GONE)
    commit(folder, 4, operation("WRITE", mode="Overwrite"), OWN, GONE, NEW)
    commit(folder, 5, operation("OPTIMIZE"), {"add": MOVED}, {"remove": MOVED})
    assert found() == "None"
    assert made_by_others(folder, 3) == (None, 5)
    assert "version 3" in found(None)
    commit(folder, 6, operation("UPDATE"), GONE)
    commit(folder, 7, operation("DELETE"), GONE)
    assert found().startswith("version 6 of verdicts is a UPDATE: somebody else")
    assert "TO VERSION AS OF 5" in found()
    commit(folder, 8, operation("RESTORE", version=6), GONE)
    assert "version 6" in found()
    commit(folder, 9, operation("RESTORE", version=5), GONE)
    assert found() == "None"
    commit(folder, 10, operation("RESTORE", version=2), GONE)
    assert "version 10 of verdicts is a RESTORE" in found()


OTHERS: list[tuple[dict[str, Any], tuple[dict[str, Any], ...]]] = [
    # As many rows as were counted are not the rows that were written.
    (operation("WRITE", mode="Overwrite"), (GONE, NEW)),
    (operation("WRITE", mode="Append"), (NEW,)),
    (operation("WRITE", mode="Overwrite"), ({"txn": {"appId": "nightly"}}, GONE, NEW)),
    (operation("WRITE"), ({"txn": {"appId": "fold/1/loss_ledger"}}, GONE, NEW)),
    (operation("CREATE OR REPLACE TABLE AS SELECT"), ({"metaData": {}}, GONE, NEW)),
    (operation("STREAMING UPDATE", outputMode="Complete"), ({"txn": {"appId": "7"}}, GONE, NEW)),
    (operation("MERGE"), (GONE, NEW)),
    (operation("DELETE", predicate='["(micro_batch_id <= 7)"]'), (GONE,)),
    ({}, (GONE, NEW)),
    ({}, ({"add": {"path": "b", "dataChange": True}},)),
]  # fmt: skip
ANYBODYS = [
    (operation("SET TBLPROPERTIES"), ({"metaData": {}},)),
    (operation("ADD COLUMNS"), ({"metaData": {}},)),
    (operation("VACUUM END"), ()),
    (operation("OPTIMIZE"), ({"add": MOVED}, {"remove": MOVED})),
    (operation("WRITE", mode="Overwrite"), (OWN, GONE, NEW)),
    (operation("WRITE"), ({"txn": {"appId": "fold/1.2+a/7/verdicts/refused"}}, NEW)),
]


@pytest.mark.parametrize(("told", "actions"), OTHERS)
def test_whatever_changes_rows_and_is_not_ours_is_told(
    told: dict[str, Any], actions: tuple[dict[str, Any], ...], tmp_path: Path
) -> None:
    commit(tmp_path / "verdicts", 4, told, *actions)
    assert "version 4 of verdicts" in str(made_by_others(tmp_path / "verdicts", 3)[0])


@pytest.mark.parametrize(("told", "actions"), ANYBODYS)
def test_what_changes_no_rows_or_is_ours_is_not(
    told: dict[str, Any], actions: tuple[dict[str, Any], ...], tmp_path: Path
) -> None:
    commit(tmp_path / "verdicts", 4, told, *actions)
    assert made_by_others(tmp_path / "verdicts", 3) == (None, 4)


@pytest.mark.parametrize(
    ("condition", "is_ours"),
    [
        ('["((run = first) AND (micro_batch_id <= 12))"]', True),
        ('["((run#1 = first) AND (micro_batch_id#45L <= 12))"]', True),
        ('["(topic = x)"]', False),
        ("[]", False),
    ],
)
def test_retention_deletes_events_by_their_micro_batch(
    condition: str, is_ours: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "replica_events"
    commit(folder, 1, operation("DELETE", predicate=condition), GONE)
    assert (made_by_others(folder, 0)[0] is None) == is_ours
