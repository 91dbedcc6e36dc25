"""Every flag of every command and job says what it is for."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2] / "replication"


def silent_flags(path: Path) -> list[str]:
    return [
        f"{path.name}:{node.lineno}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "add_argument"
        and not {"help", "version"} & {keyword.arg for keyword in node.keywords}
    ]


def test_every_flag_has_help() -> None:
    found = [flag for path in ROOT.rglob("*.py") for flag in silent_flags(path)]
    assert found == []
    assert any("add_argument" in path.read_text() for path in (ROOT / "spark").glob("*.py"))
