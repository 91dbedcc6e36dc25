"""The mutants are many, each differs from its source, and what is called equivalent exists."""

import ast
from pathlib import Path

from tests.protocol.mutants import EQUIVALENT, FILES, caught_by, mutants

ALL = mutants()


def test_every_rule_with_a_condition_has_mutants() -> None:
    mutated = {m.module.rsplit(".", 1)[1] for m in ALL}
    with_condition = {
        path.stem
        for path in FILES
        if any(isinstance(n, ast.If | ast.Compare) for n in ast.walk(_tree(path)))
    }

    assert len(ALL) > 400
    assert mutated >= with_condition


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_what_is_called_equivalent_exists() -> None:
    assert EQUIVALENT.keys() <= {m.key for m in ALL}


def test_a_mutant_is_caught() -> None:
    shifted = next(m for m in ALL if m.key.startswith("produce_admission: isr_size <"))

    assert caught_by(shifted) == "unit tests"
