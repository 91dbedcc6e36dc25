"""One rule is one file, one function, one name, and a docstring of five parts."""

import ast
import inspect
from pathlib import Path

import pytest

import replication.protocol.rules
from replication.protocol.rules import RULES

FOLDER = Path(replication.protocol.rules.__file__).parent
PARTS = ("Versions:", "Followed:", "Gave way to:", "Leaves unchanged:", "Unknown:")


def test_list_and_folder_agree() -> None:
    files = {p.stem for p in FOLDER.glob("*.py")} - {"__init__"}

    assert len(RULES) == len(set(RULES))
    assert {r.__name__ for r in RULES} == files
    for rule in RULES:
        assert rule.__module__ == f"replication.protocol.rules.{rule.__name__}"


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_a_rule_says_its_five_parts_in_order(rule: object) -> None:
    text = " ".join((inspect.getdoc(rule) or "").split())
    places = [text.find(part) for part in PARTS]

    assert text.startswith("Decides")
    assert -1 not in places
    assert places == sorted(places)


def test_rules_import_no_state_and_no_clock() -> None:
    allowed = ("collections.abc", "dataclasses", "replication.protocol.")
    forbidden = ("fold", "judge", "machine", "topic_partition", "scenario", "events")
    for path in FOLDER.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and path.stem != "__init__":
                assert (node.module or "").startswith(allowed), f"{path.name}: {node.module}"
                assert not any(word in (node.module or "") for word in forbidden), path.name
