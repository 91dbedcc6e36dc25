"""conf/questions.sql, question by question, and what engines answer, in one form."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from replication.paths import project_root

QUESTIONS = project_root() / "conf" / "questions.sql"


def questions() -> Iterator[tuple[str, str]]:
    """(question, its SQL)."""
    for block in QUESTIONS.read_text(encoding="utf-8").split("-- ? ")[1:]:
        question, sql = block.split("\n", 1)
        assert sql.strip().endswith(";"), question
        yield question, sql.strip().rstrip(";")


def plain(name: str, value: Any) -> Any:
    """Values of several engines in one form: maps as dicts, moments as the session's local time."""
    if name in ("table_versions", "table_rows"):
        return dict(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone().replace(tzinfo=None)
    return value


def in_one_form(rows: list[dict[str, Any]]) -> list[str]:
    """Rows of an engine, as a sorted multiset."""
    return sorted(repr(_ordered({k: plain(k, v) for k, v in row.items()})) for row in rows)


def _ordered(row: dict[str, Any]) -> dict[str, Any]:
    return {
        k: dict(sorted(v.items())) if isinstance(v, dict) else v for k, v in sorted(row.items())
    }
