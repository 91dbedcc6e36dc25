"""conf/questions.sql, question by question."""

from collections.abc import Iterator

from replication.paths import project_root

QUESTIONS = project_root() / "conf" / "questions.sql"


def questions() -> Iterator[tuple[str, str]]:
    """(question, its SQL)."""
    for block in QUESTIONS.read_text(encoding="utf-8").split("-- ? ")[1:]:
        question, sql = block.split("\n", 1)
        assert sql.strip().endswith(";"), question
        yield question, sql.strip().rstrip(";")
