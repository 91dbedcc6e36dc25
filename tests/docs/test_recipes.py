"""What someone who followed docs/recipes.md forgot, by name."""

import json
import re
from pathlib import Path

import pytest

from replication.evidence.broker_logs.line_families import FAMILIES
from replication.evidence.metadata_log.metadata_versions import branch_of
from replication.protocol.ground.versions import KNOWN_BRANCHES, NEWEST_KNOWN, behaviour
from replication.protocol.judgement import invariants, judge
from tests.kafka_lab.versions import FOR_COMMANDS, SUPPORTED

ROOT = Path(__file__).parents[2]
CONTRACT = (ROOT / "docs" / "answers.md").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / "docs" / "answer.schema.json").read_text(encoding="utf-8"))
NOT_BY_THE_FOLD = {"_batches", "_refolds", "replica_events", "expectation_results"}


def newest_in(text: str) -> set[str]:
    """The last release of each span such as `0.10 to 4.3` in a text."""
    return set(re.findall(r"\b0\.10 to (\d+\.\d+)\b", text))


def places_of_the_newest_release() -> dict[str, bool]:
    """Where the newest known release must stand besides versions.py: place and what to do, and
    whether it does. Whatever is not named here takes it from versions.py."""
    readme, contract = (ROOT / "README.md").read_text(), (ROOT / "docs/contract.md").read_text()
    jars = {p.stem.rpartition(".")[0] for p in (ROOT / "conf" / "kafka").glob("*.xml")}
    levels = "replication/evidence/metadata_log/metadata_versions.py: the branch's first level"
    return {
        "README.md: `Kafka 0.10 to ..`": newest_in(readme) == {NEWEST_KNOWN},
        "docs/contract.md: `Kafka 0.10 to ..`": newest_in(contract) == {NEWEST_KNOWN},
        f"{levels} (Kafka's class MetadataVersion)": NEWEST_KNOWN in branches_by_level(),
        "conf/kafka/<version>.xml, and SUPPORTED in tests/kafka_lab/versions.py": (
            NEWEST_KNOWN in jars
        ),
    }


def branches_by_level() -> list[str]:
    """The branches that metadata_versions.py knows, by their levels."""
    found = [branch for level in range(1_000) if (branch := branch_of(level)) is not None]
    return list(dict.fromkeys(found))


def test_a_release_stands_wherever_it_must_be_named() -> None:
    missing = [place for place, there in places_of_the_newest_release().items() if not there]
    assert not missing, f"{NEWEST_KNOWN} is missing in:\n" + "\n".join(missing)


def test_each_line_of_tests_names_files_that_are_there() -> None:
    """Each recipe that changes the product ends with the tests for it."""
    recipes = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").split("\n## ")[1:]
    with_steps = [text for text in recipes if "\n1. " in text]
    assert len(with_steps) == 5
    for text in with_steps:
        runs = re.findall(r"`PYTEST ([^`]+)`", text)
        assert runs, text.splitlines()[0]
        paths = [word for run in runs for word in run.split() if word.startswith("tests/")]
        assert [path for path in paths if not (ROOT / path).exists()] == []


def test_each_branch_that_registers_features_has_its_levels() -> None:
    since = KNOWN_BRANCHES.index((3, 3))
    assert branches_by_level() == [".".join(map(str, b)) for b in KNOWN_BRANCHES[since:]]


def test_a_kafka_version_is_known_to_rules_and_laboratory_alike() -> None:
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
