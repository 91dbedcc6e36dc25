"""Which generator guards which property: docs/guards.md is made from guards.toml.

`python -m tests.guards --write` makes the page. A guard is a module: `python -m MODULE`, from the
checkout, with `.venv/bin/python`.
"""

import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "guards.md"
GUARDS: list[dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())[
    "guard"
]
BEGIN = "<!-- guards: written by `python -m tests.guards --write` -->\n"
END = "<!-- end -->"


def table() -> str:
    """The guards as rows, room by room."""
    rows = [
        "| guards | command | what must hold | minutes | needs, beside `make setup` | last count |",
        "|---|---|---|---|---|---|",
    ]
    for guard in GUARDS:
        command = f"python -m {guard['module']} {guard.get('arguments', '')}".strip()
        needs = guard.get("needs", "").replace("kafka-jars", "`make kafka-jars`")
        rows.append(
            f"| {guard['room']} | `{command}` | {guard['holds']} | {guard['minutes']} | {needs} "
            f"| {guard.get('last', '')} |"
        )
    return "\n".join(rows) + "\n"


def with_table(text: str) -> str:
    """The page with the table as it is in guards.toml."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def missing() -> list[str]:
    """Modules that the table names and that are not here."""
    return [guard["module"] for guard in GUARDS if find_spec(guard["module"]) is None]


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table())
