"""schemas/ against the code: the event contract is the same in both, the tables are well formed."""

import json

import pytest

from replication.evidence.importer import import_evidence
from replication.paths import project_root
from replication.protocol.ground import events, wire
from replication.protocol.judgement import judge
from replication.reports import event_words
from replication.spark import contracts, transport
from replication.spark.delta_schemas import first_commit
from replication.spark.partition_fold import PartitionFold
from tests.protocol.judgement.test_risk_rows import row
from tests.spark.event_rows import made_trace

TYPES = {
    "int": "bigint",
    "ints": "array<bigint>",
    "str": "string",
    "bool": "boolean",
    "spans": "array<struct<first_offset:bigint,end_offset:bigint,leader_epoch:bigint,"
    "content:bigint>>",
    "epoch_entries": "array<struct<leader_epoch:bigint,start_offset:bigint>>",
}
ANSWERED = {
    "verdicts": "verdicts",
    "loss_ledger": "losses",
    "divergences": "divergences",
    "findings": "findings",
}


def test_the_event_contract_is_what_the_protocol_speaks() -> None:
    assert tuple(c.name for c in contracts.event_columns()) == wire.COLUMNS
    assert set(contracts.event_kinds()) == set(events.FACT_TYPES)
    for column in contracts.event_columns():
        required = {k for k, f in wire.FIELD_TYPES.items() if f.get(column.name, ("", False))[1]}
        known = {k for k, f in wire.FIELD_TYPES.items() if column.name in f}
        assert set(column.required_for) == required, column.name
        assert set(column.optional_for) == known - required, column.name
        for kind in known:
            assert column.type == TYPES[wire.FIELD_TYPES[kind][column.name][0]]


def test_the_words_of_a_text_are_those_that_answers_know() -> None:
    """And those that default logs and directories of real brokers give."""
    given: dict[tuple[str, str], set[str]] = {}
    for incident in ("unclean_election__4.1.1", "kip101_scenario_1__0.10.2.2__loss_only"):
        imported = import_evidence([project_root() / "tests" / "incidents" / incident])
        for told_of in map(wire.to_row, imported.events()):
            for name in ("election_kind", "reason", "subject"):
                if name in told_of and told_of["kind"] != "log_start_advanced":
                    given.setdefault((name, told_of["kind"]), set()).add(told_of[name])
    told = {
        (column.name, kind): set(words)
        for column in contracts.event_columns()
        for kind, words in column.words.items()
    }
    assert set(told) == {
        (name, kind)
        for name in ("election_kind", "reason", "subject")
        for kind, fields in wire.FIELD_TYPES.items()
        if name in fields
    }
    assert told["election_kind", "leadership_recorded"] == set(event_words.ELECTION_WORDS)
    assert told["subject", "coverage_declared"] == set(event_words.SUBJECT_WORDS)
    assert told["reason", "replica_stopped"] == set(event_words.STOP_WORDS)
    assert told["reason", "truncated"] == {*event_words.CUT_WORDS, "unknown"}
    assert len(given) == 4
    assert all(words <= told[key] for key, words in given.items()), given


def test_every_integer_is_a_bigint_and_every_column_says_what_it_means() -> None:
    for table in contracts.tables().values():
        assert table.about
        assert table.written in ("append", "current", "evidence", "view")
        names = [c.name for c in table.columns]
        assert len(names) == len(set(names))
        for column in table.columns:
            assert column.meaning
            assert " int" not in column.type
            assert "smallint" not in column.type


def test_the_tables_of_the_outward_contract_are_there() -> None:
    outward = {
        "replica_events", "quarantine", "replica_states", "replica_log_spans",
        "isr_and_leadership", "findings", "verdicts", "loss_ledger", "divergences", "_batches",
        "at_risk",
    }  # fmt: skip
    assert outward <= set(contracts.tables())
    for name in (project_root() / "schemas").glob("*.json"):
        assert name.stem == json.loads(name.read_text())["table"]


@pytest.mark.parametrize("table", sorted(ANSWERED))
def test_an_answer_has_a_column_for_each_of_its_words(table: str) -> None:
    part = PartitionFold("cluster/t/id/0")
    for event in made_trace():
        part.offer(event)
    part.drain()
    assert part.state is not None
    rows = getattr(judge.answer(part.state), ANSWERED[table])
    columns = {c.name for c in contracts.tables()[table].columns}
    for found in rows:
        assert set(found) - columns == set()
    assert rows or table == "divergences"


def test_a_danger_has_a_column_for_each_of_its_words() -> None:
    columns = {c.name for c in contracts.tables()["at_risk"].answer_columns}
    identity = {"cluster_id", "topic", "topic_id", "partition"}
    assert set(row()) | identity | {"topic_partition_id"} == columns


def test_numeric_kinds_fit_their_columns_and_hold_nothing_else() -> None:
    for kind, (names, word) in transport.ARGUMENTS.items():
        assert len(names) <= transport.NUMBERS
        words = {n: t[0] for n, t in wire.FIELD_TYPES[kind].items()}
        assert all(words.pop(n) == "int" for n in names)
        assert words == ({word: "str"} if word else {})


def test_a_table_begins_with_a_commit_that_holds_its_schema() -> None:
    for table in contracts.tables().values():
        actions = [json.loads(line) for line in first_commit(table, 100).splitlines()]
        schema = json.loads(next(a["metaData"] for a in actions if "metaData" in a)["schemaString"])
        assert [f["name"] for f in schema["fields"]] == [c.name for c in table.columns]
