"""Commits that this tool has not made are told, whatever they are and whosever table, until taken
back; what moves rows only, or is ours, is not."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from replication.spark import contracts, runs
from replication.spark.delta_schemas import MARK, first_commit
from replication.spark.other_writers import BY_QUERIES, OtherCommit, made_by_others
from replication.spark.small_commit import SmallCommit, schema_of
from replication.spark.tables import Store, TablesError

STORED = [t.name for t in contracts.tables().values() if t.written != "view"]


def append(folder: Path, rows: int = 1, text: str = "x") -> None:
    """Somebody's rows."""
    nothing = schema_of(folder.name).empty_table()
    columns = {f.name: pa.array(_values(f.type, rows, text), f.type) for f in nothing.schema}
    write_deltalake(folder, pa.table(columns), mode="append")


def _values(kind: pa.DataType, rows: int, text: str) -> list[Any]:
    empty: Any = None
    for is_kind, value in (
        (pa.types.is_string, text), (pa.types.is_binary, b"x"), (pa.types.is_integer, 1),
        (pa.types.is_boolean, True),
        (pa.types.is_floating, 1.0), (pa.types.is_list, []), (pa.types.is_map, []),
        (pa.types.is_timestamp, 0),
    ):  # fmt: skip
        if is_kind(kind):
            empty = value
    return [empty] * rows


def own(folder: Path, micro_batch_id: int) -> None:
    """A row of ours, as a micro-batch or one of the jobs appends it."""
    query = "fold" if folder.name in BY_QUERIES else "quality"
    before = DeltaTable(folder).version()
    append(folder)
    # As it is committed by us: with a transaction of the query, or our mark.
    path = folder / "_delta_log" / f"{before + 1:020d}.json"
    lines = path.read_text().splitlines()
    if query == "fold":
        app = {"appId": f"fold/1b/{folder.name}", "version": micro_batch_id}
        lines.append(json.dumps({"txn": app}))
    else:
        lines = [line.replace('{"commitInfo":{', f'{{"commitInfo":{{"userMetadata":"{MARK}",')
                 for line in lines]  # fmt: skip
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def made(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a table with two micro-batches of ours, versions 1 and 2."""

    def make(name: str) -> Path:
        folder = tmp_path / name
        (folder / "_delta_log").mkdir(parents=True)
        first = first_commit(contracts.tables()[name], 100)
        (folder / "_delta_log" / f"{0:020d}.json").write_text(first)
        own(folder, 0)
        own(folder, 1)
        return folder

    return make


def text_column(folder: Path) -> str:
    return next(f.name for f in schema_of(folder.name) if pa.types.is_string(f.type))


def update(folder: Path) -> None:
    DeltaTable(folder).update({text_column(folder): "'y'"})


def delete(folder: Path) -> None:
    DeltaTable(folder).delete(f"{text_column(folder)} = 'x'")


def merge(folder: Path) -> None:
    name = text_column(folder)
    source = DeltaTable(folder).to_pyarrow_table().slice(0, 1)
    source = source.set_column(source.column_names.index(name), name, pa.array(["z"]))
    found = DeltaTable(folder).merge(source, f"a.{name} = b.{name}", "b", "a")
    found.when_not_matched_insert_all().execute()


def overwrite(folder: Path) -> None:
    # As many rows as were there are not the rows that were written.
    write_deltalake(folder, DeltaTable(folder).to_pyarrow_table(), mode="overwrite")


def back_too_far(folder: Path) -> None:
    DeltaTable(folder).restore(1)


CHANGES = {
    "WRITE": append, "UPDATE": update, "DELETE": delete, "MERGE": merge,
    "WRITE of all": overwrite, "RESTORE": back_too_far,
}  # fmt: skip


def compact(folder: Path) -> None:
    DeltaTable(folder).optimize.compact()


def order(folder: Path) -> None:
    DeltaTable(folder).optimize.z_order([text_column(folder)])


def vacuum(folder: Path) -> None:
    DeltaTable(folder).vacuum(0, enforce_retention_duration=False, dry_run=False)


def set_property(folder: Path) -> None:
    DeltaTable(folder).alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})


HARMLESS = {f.__name__: f for f in (compact, order, vacuum, set_property)}


@pytest.mark.parametrize(
    ("table", "change", "before"),
    # With every other pair, files were joined before.
    [
        pytest.param(
            table,
            change,
            "compact" if (n + m) % 2 else None,
            marks=[pytest.mark.slow] * ((n + m) % 4 > 1),
        )
        for n, table in enumerate(STORED)
        for m, change in enumerate(CHANGES)
    ],
)
def test_whatever_changes_rows_of_any_table_is_told_until_it_is_taken_back(
    made: Callable[[str], Path], table: str, change: str, before: str | None
) -> None:
    folder = made(table)
    if before:
        HARMLESS[before](folder)
    version = DeltaTable(folder).version()
    CHANGES[change](folder)
    compact(folder)
    # Who wrote the others is known from the mark of their first commit on.
    for since in (None, 2) if table in BY_QUERIES else (None,):
        (found,) = made_by_others(folder, since)[0]
        told = (found.table, found.version, found.operation)
        assert told == (table, version + 1, change.split()[0])
        assert "delta-rs" in found.who
        assert found.at is not None
        command = shlex.split(found.remedy.split(" -e ")[1])[0]
        assert command == f"RESTORE TABLE delta.`{folder}` TO VERSION AS OF {version}"
    update(folder)
    assert next(c.version for c in made_by_others(folder, None)[0]) == version + 1
    DeltaTable(folder).restore(version)
    assert made_by_others(folder, None) == ([], DeltaTable(folder).version())


@pytest.mark.parametrize(
    "table",
    [pytest.param(t, marks=[pytest.mark.slow] * (n % 4 > 0)) for n, t in enumerate(STORED)],
)
@pytest.mark.parametrize("change", HARMLESS)
def test_what_moves_rows_only_or_is_ours_is_not(
    made: Callable[[str], Path], table: str, change: str
) -> None:
    folder = made(table)
    HARMLESS[change](folder)
    own(folder, 2)
    HARMLESS[change](folder)
    assert made_by_others(folder, None)[0] == []


def test_what_was_added_and_deleted_again_is_taken_back(made: Callable[[str], Path]) -> None:
    folder = made("verdicts")
    append(folder, 2)
    update(folder)
    DeltaTable(folder).restore(3)
    (found,) = made_by_others(folder, None)[0]
    assert (found.version, made_by_others(folder, 3)[0]) == (3, [])
    own(folder, 2)
    DeltaTable(folder).restore(2)
    # What the fold has written since is gone with it.
    assert [c.operation for c in made_by_others(folder, None)[0]] == ["WRITE", "RESTORE"]
    folder = made("loss_ledger")
    append(folder, text="y")
    own(folder, 2)
    assert len(made_by_others(folder, None)[0]) == 1
    DeltaTable(folder).delete(f"{text_column(folder)} = 'y'")
    assert made_by_others(folder, None)[0] == []


LOOSE = ("expectation_results", "affected_groups", "lost_records_keys")


@pytest.mark.parametrize("table", LOOSE)
@pytest.mark.parametrize("change", CHANGES)
def test_what_belongs_to_no_micro_batch_may_go_with_what_is_taken_back(
    made: Callable[[str], Path], table: str, change: str
) -> None:
    folder = made(table)
    version = DeltaTable(folder).version()
    CHANGES[change](folder)
    append(folder)
    own(folder, 2)
    found = made_by_others(folder, None)[0]
    assert [c.version for c in found] == [version + 1, version + 2]
    assert {c.remedy for c in found} == {found[0].remedy}
    assert f"TO VERSION AS OF {version}'" in found[0].remedy
    assert "since goes with it" in found[0].remedy
    # An empty table was ours once, before our rows.
    DeltaTable(folder).delete()
    assert [c.operation for c in made_by_others(folder, None)[0]][-1] == "DELETE"
    DeltaTable(folder).restore(version)
    assert made_by_others(folder, None)[0] == []
    own(folder, 3)
    assert made_by_others(folder, None)[0] == []


@pytest.mark.parametrize("table", ["verdicts", "replica_events", "_batches"])
def test_what_a_micro_batch_has_written_since_is_not_taken_back(
    made: Callable[[str], Path], table: str
) -> None:
    folder = made(table)
    append(folder)
    own(folder, 2)
    (found,) = made_by_others(folder, None)[0]
    assert "into new tables" in found.remedy
    assert "RESTORE TABLE" not in found.remedy


@pytest.mark.parametrize("change", CHANGES)
def test_no_run_begins_or_goes_on_where_others_have_changed_batches(
    made: Callable[[str], Path], change: str
) -> None:
    """Deleted rows would let it start anew over rows that it has written."""
    folder = made("_batches")
    store = Store(None, folder.parent)  # type: ignore[arg-type]
    store.look("_batches")
    own(folder, 2)
    store.look("_batches")
    CHANGES[change](folder)
    with pytest.raises(TablesError, match=r"RESTORE TABLE delta\.`.*_batches` TO VERSION AS OF 3"):
        store.look("_batches")
    for enter in (
        lambda: runs.enter(store, folder.parent / "checkpoint", "fold", "anew"),
        lambda: runs.bounded(store, "fold", "anew"),
    ):
        with pytest.raises(TablesError, match="RESTORE TABLE"):
            enter()


def test_maintenance_of_a_store_is_ours(tmp_path: Path) -> None:
    """There no mark is beside what it says of events that it deletes, only its transaction."""
    folder = tmp_path / "_batches"
    commit(folder, 0, {"operation": "CREATE TABLE", "userMetadata": MARK})
    commit(folder, 1, {"operation": "WRITE"}, NEW, {"txn": {"appId": "retention/first/_batches"}})
    assert made_by_others(folder, None)[0] == []


def test_small_commits_are_ours_and_keep_the_rows_of_others(made: Callable[[str], Path]) -> None:
    folder = made("verdicts")
    rows = DeltaTable(folder).to_pyarrow_table().slice(0, 1).cast(schema_of("verdicts"))
    table = contracts.tables()["verdicts"]
    append(folder)
    SmallCommit(table, rows, frozenset({"none such"}), None).save(str(folder))
    (found,) = made_by_others(folder, None)[0]
    assert found.version == 3


def commit(folder: Path, version: int, told: dict[str, Any], *actions: dict[str, Any]) -> None:
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(action) + "\n" for action in ({"commitInfo": told}, *actions))
    (log / f"{version:020d}.json").write_text(text)


NEW = {"add": {"path": "b"}}
OWN = {"txn": {"appId": "fold/0c2aced9-754c/verdicts", "version": 4}}


@pytest.mark.parametrize("condition", [None, "true", "true AND true", "((true) AND (true))"])
def test_a_new_run_leaves_nothing_of_others(tmp_path: Path, condition: str | None) -> None:
    folder = tmp_path / "verdicts"
    commit(folder, 1, {"operation": "MERGE"}, NEW)
    told = {"mode": "Overwrite"} | ({} if condition is None else {"predicate": condition})
    commit(folder, 2, {"operation": "WRITE", "operationParameters": told}, OWN)
    assert made_by_others(folder, None) == ([], 2)
    some = {"mode": "Overwrite", "predicate": "(incident = 'true')"}
    commit(folder, 3, {}, NEW)
    commit(folder, 4, {"operation": "WRITE", "operationParameters": some}, OWN)
    by_deltalake = {"clientVersion": "delta-rs.1", "operation": "WRITE"}
    commit(folder, 5, {**by_deltalake, "operationParameters": {"mode": "Append"}}, OWN)
    (nameless,), newest = made_by_others(folder, None)
    told = OtherCommit("verdicts", 3, "commit without a name", None, "", nameless.remedy)
    assert (nameless, newest) == (told, 5)
    told = {"mode": "Append", "predicate": "true"}
    commit(folder, 6, {**by_deltalake, "operationParameters": told}, OWN)
    assert made_by_others(folder, None) == ([], 6)


@pytest.mark.parametrize("app", ["nightly", "fold/1/loss_ledger", "7"])
def test_transactions_of_others_are_not_ours(app: str, tmp_path: Path) -> None:
    commit(tmp_path / "verdicts", 4, {"operation": "WRITE"}, {"txn": {"appId": app}}, NEW)
    assert [c.version for c in made_by_others(tmp_path / "verdicts", 3)[0]] == [4]


def test_what_older_versions_of_this_tool_wrote_unmarked_is_ours(tmp_path: Path) -> None:
    folder = tmp_path / "_batches"
    commit(folder, 0, {"operation": "CREATE TABLE"})
    commit(folder, 1, {"operation": "WRITE"}, NEW)
    assert made_by_others(folder, None)[0] == []
    commit(folder, 2, {"operation": "WRITE", "userMetadata": MARK}, {"add": {"path": "c"}})
    commit(folder, 3, {"operation": "WRITE"}, {"add": {"path": "d"}})
    assert [c.version for c in made_by_others(folder, None)[0]] == [3]


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
    told = {"operation": "DELETE", "operationParameters": {"predicate": condition}}
    commit(folder, 1, told, {"remove": {"path": "a"}})
    assert (not made_by_others(folder, 0)[0]) == is_ours
