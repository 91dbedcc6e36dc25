"""The tables of docs/protocol.md that are the code's own: rules, and flags by release.

`python -m tests.docs.tables --write` puts them between their marks.
"""

import inspect
import re
import sys
from pathlib import Path

from replication.protocol.ground.boundaries import BOUNDARIES
from replication.protocol.rules import RULES

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
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


TABLES = {"rules": rules_table, "flags": flags_table}


def with_tables(text: str) -> str:
    """The page with every table as the code has it. ValueError for a page without a mark."""
    for name, table in TABLES.items():
        mark = MARK.format(name)
        if mark not in text:
            raise ValueError(f"docs/protocol.md has no mark for {name}")
        text = re.sub(
            re.escape(mark) + r".*?" + re.escape(END),
            lambda _, mark=mark, table=table: f"{mark}\n{table()}\n{END}",  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
    return text


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    if "--write" in sys.argv[1:]:
        PAGE.write_text(with_tables(page), encoding="utf-8")
    else:
        print(with_tables(page))
