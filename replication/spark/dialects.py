"""SQL of the documented views and of conf/questions.sql for engines that know other words.

Spark's words are those of the files. DuckDB gets them as macros (conf/duckdb.sql). DataFusion,
which deltalake's QueryBuilder runs, takes none from Python: calls are put in its own words.
"""

import re
from collections.abc import Callable

from replication.paths import project_root

ENGINES = ("spark", "duckdb", "datafusion")
DUCKDB_FUNCTIONS = "conf/duckdb.sql"
# What the views and questions call an exploded struct, whose fields they name behind a dot.
STRUCTS = ("copy", "cut", "span", "step")
WORDS: dict[str, Callable[[list[str]], str]] = {
    "explode": lambda a: f"unnest({a[0]})",
    "size": lambda a: f"coalesce(cardinality({a[0]}), 0)",
    "slice": lambda a: f"array_slice({a[0]}, {a[1]}, {a[1]} + {a[2]} - 1)",
    "timestamp_millis": lambda a: (
        f"arrow_cast(({a[0]}) * 1000, 'Timestamp(Microsecond, Some(\"UTC\"))')"
    ),
    "unix_millis": lambda a: f"arrow_cast(arrow_cast({a[0]}, {MILLISECONDS}), 'Int64')",
    "max_by": lambda a: f"last_value({a[0]} ORDER BY {a[1]} NULLS FIRST)",
}
MILLISECONDS = "'Timestamp(Millisecond, Some(\"UTC\"))'"
# The last value that is known so far, as a window has it.
LAST_KNOWN = re.compile(r"max_by\((\w+), CASE WHEN \1 IS NOT NULL THEN \w+ END\) OVER")


def for_engine(sql: str, engine: str) -> str:
    """SQL of a view or a question in an engine's words."""
    if engine != "datafusion":
        return sql
    sql = LAST_KNOWN.sub(r"last_value(\1) IGNORE NULLS OVER", sql)
    for name, said in WORDS.items():
        sql = _replaced(sql, name, said)
    return re.sub(rf"\b({'|'.join(STRUCTS)})\.(\w+)", r"\1['\2']", sql)


def beforehand(engine: str) -> str:
    """What an engine is told before any of it."""
    if engine != "duckdb":
        return ""
    return (project_root() / DUCKDB_FUNCTIONS).read_text(encoding="utf-8")


def _replaced(sql: str, name: str, said: Callable[[list[str]], str]) -> str:
    """With each call of a function said otherwise."""
    done = ""
    while found := re.search(rf"(?<!\w){name}\(", sql):
        end = _closed(sql, found.end())
        done += sql[: found.start()]
        sql = said(_arguments(sql[found.end() : end])) + sql[end + 1 :]
    return done + sql


def _closed(sql: str, start: int) -> int:
    """Where the bracket ends that was opened just before start."""
    depth = 1
    for place in range(start, len(sql)):
        depth += {"(": 1, ")": -1}.get(sql[place], 0)
        if not depth:
            return place
    raise ValueError(f"a bracket is not closed: {sql[start - 20 : start + 20]}")


def _arguments(text: str) -> list[str]:
    """Those of a call, parted at its own commas."""
    found, depth = [""], 0
    for sign in text:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and not depth:
            found.append("")
        else:
            found[-1] += sign
    return [each.strip() for each in found]
