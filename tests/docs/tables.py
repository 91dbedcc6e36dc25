"""The tables of docs/ that are the code's own: rules, flags by release, Delta tables and columns.

`python -m tests.docs.tables --write` puts them between their marks.
"""

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

from replication.protocol.ground.boundaries import BOUNDARIES
from replication.protocol.rules import RULES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Columns that nearly every table has; told once.
COMMON = (
    "topic_partition_id", "cluster_id", "incident", "topic", "topic_id", "partition", "run",
    "micro_batch_id",
)  # fmt: skip
WRITTEN = {
    "current": "the current answer, each row once",
    "append": "only grows",
    "evidence": "by `import --tables`, each row once",
    "view": "a view",
}
MARK = "<!-- {}: written by `python -m tests.docs.tables --write` -->\n"
END = "<!-- end -->"


def rules_table() -> str:
    """A row per rule, in the order of RULES: its name, and the first line of its file."""
    rows = ["| rule | decides |", "|---|---|"]
    for rule in RULES:
        doc = inspect.getdoc(sys.modules[rule.__module__]) or ""
        rows.append(f"| `{rule.__name__}` | {' '.join(doc.split(chr(10) * 2)[0].split())} |")
    return "\n".join(rows) + "\n"


def flags_table() -> str:
    """A row per flag: the first releases that have it, what else it needs, and what it means."""
    rows = [
        "| flag | from (also needs) | until | what it means | source |",
        "|---|---|---|---|---|",
    ]
    for b in BOUNDARIES:
        needs = f" ({b.inter_broker_version})" if b.inter_broker_version else ""
        rows.append(
            f"| `{b.flag}` | {', '.join(b.first_releases)}{needs} | {', '.join(b.ended_by)} "
            f"| {b.means} | {b.source} |"
        )
    return "\n".join(rows) + "\n"


def _schemas() -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in sorted((ROOT / "schemas").glob("*.json"))]
    return sorted(found, key=lambda each: (str(each["table"]).startswith("_"), each["table"]))


def delta_tables() -> str:
    """A row per table and view: how it is written, and what a row of it is."""
    rows = ["| table | written | a row is |", "|---|---|---|"]
    for each in _schemas():
        name, written = each["table"], WRITTEN[each["written"]]
        rows.append(f"| [`{name}`](columns.md#{name}) | {written} | {each['about']} |")
    return "\n".join(rows) + "\n"


def columns() -> str:
    """Every column of every table: its type and what it means; those of all tables once."""
    common: dict[str, dict[str, Any]] = {}
    parts = []
    for each in _schemas():
        own = []
        for column in each["columns"]:
            if column["name"] in COMMON:
                common.setdefault(column["name"], column)
            else:
                own.append(column)
        parts.append(f"## {each['table']}\n\n{each['about']}\n\n{_rows(own)}")
    first = f"## In nearly every table\n\n{_rows([common[n] for n in COMMON if n in common])}"
    return "\n".join([first, *parts])


def _rows(columns: list[dict[str, Any]]) -> str:
    rows = ["| column | type | meaning |", "|---|---|---|"]
    for column in columns:
        kind = column["type"] + ("" if column["nullable"] else ", never null")
        rows.append(f"| `{column['name']}` | {kind} | {column['meaning']} |".replace("\n", " "))
    return "\n".join(rows) + "\n"


TABLES = {
    "protocol.md": {"rules": rules_table, "flags": flags_table},
    "tables.md": {"tables": delta_tables},
    "columns.md": {"columns": columns},
}


def with_tables(page: str) -> str:
    """The page of this name with every table as the code has it. ValueError without a mark."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, table in TABLES[page].items():
        mark = MARK.format(name)
        if mark not in text:
            raise ValueError(f"docs/{page} has no mark for {name}")
        text = re.sub(
            re.escape(mark) + r".*?" + re.escape(END),
            lambda _, mark=mark, table=table: f"{mark}\n{table()}\n{END}",  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
    return text


if __name__ == "__main__":
    for page in TABLES:
        if "--write" in sys.argv[1:]:
            (DOCS / page).write_text(with_tables(page), encoding="utf-8")
        else:
            print(with_tables(page))
