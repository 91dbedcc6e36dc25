"""What someone who followed docs/recipes.md forgot, by name."""

import json
from pathlib import Path

import pytest

from replication.evidence.broker_logs.line_families import FAMILIES
from replication.protocol.ground.versions import KNOWN_BRANCHES, NEWEST_KNOWN, behaviour
from replication.protocol.judgement import invariants, judge
from tests.kafka_lab.versions import FOR_COMMANDS, SUPPORTED

ROOT = Path(__file__).parents[2]
CONTRACT = (ROOT / "docs" / "answers.md").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / "docs" / "answer.schema.json").read_text(encoding="utf-8"))
NOT_BY_THE_FOLD = {"_batches", "_refolds", "replica_events", "expectation_results"}


def test_a_kafka_version_is_known_to_rules_and_laboratory_alike() -> None:
    assert ".".join(map(str, KNOWN_BRANCHES[-1])) == NEWEST_KNOWN
    with_jars = {path.stem for path in (ROOT / "conf" / "kafka").glob("*.xml")}
    assert with_jars == {*SUPPORTED, *FOR_COMMANDS}
    for version in with_jars:
        assert behaviour(version).kafka_version == version


def test_a_log_line_has_its_examples() -> None:
    assert [f.kind for f in FAMILIES if f.kind and not f.examples] == []


def test_an_invariant_is_judged_and_explained() -> None:
    files = {p.stem for p in Path(invariants.__file__).parent.glob("*.py")}
    judged = {module.__name__.rsplit(".", 1)[-1] for module in judge.INVARIANTS}
    assert judged == files - {"__init__", "refuted"}
    assert [name for name in sorted(judged) if f"`{name}`" not in CONTRACT] == []


def test_words_of_the_contract_are_those_of_the_schema() -> None:
    loss = SCHEMA["properties"]["losses"]["items"]["properties"]
    words = [w for key in ("tier", "status", "contract", "cause") for w in loss[key]["enum"]]
    words += SCHEMA["properties"]["verdicts"]["items"]["properties"]["verdict"]["enum"]
    assert [word for word in words if word not in CONTRACT] == []


@pytest.mark.parametrize("path", sorted((ROOT / "schemas").glob("*.json")), ids=lambda p: p.stem)
def test_a_table_is_written_and_named(path: Path) -> None:
    table = json.loads(path.read_text(encoding="utf-8"))
    if table["written"] == "view":
        assert table["sql"]
        return
    order = (ROOT / "replication/spark/answer_tables.py").read_text(encoding="utf-8")
    order = order[order.index("ORDER = (") : order.index("LATE = ")]
    if table["written"] == "evidence":
        order = (ROOT / "replication/spark/evidence_tables.py").read_text(encoding="utf-8")
    assert f'"{path.stem}"' in order or path.stem in NOT_BY_THE_FOLD
    if not path.stem.startswith("_refolds"):
        assert f"[`{path.stem}`]" in (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
        suites = [p.stem for p in (ROOT / "conf" / "expectations").glob("*.toml")]
        checked = table["written"] != "evidence" and path.stem != "expectation_results"
        assert path.stem in suites or not checked
