"""The mutants are many, each differs from its source, and what is called equivalent exists."""

import ast
from pathlib import Path

import pytest

from tests.protocol.mutants import EQUIVALENT, FILES, Mutant, caught_by, mutants

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def every() -> list[Mutant]:
    """All mutants; made only where they are looked at, for that takes seconds."""
    return mutants()


def test_every_rule_with_a_condition_has_mutants(every: list[Mutant]) -> None:
    mutated = {m.module.rsplit(".", 1)[1] for m in every}
    with_condition = {
        path.stem
        for path in FILES
        if any(isinstance(n, ast.If | ast.Compare) for n in ast.walk(_tree(path)))
    }

    assert len(every) > 400
    assert mutated >= with_condition


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_what_is_called_equivalent_exists(every: list[Mutant]) -> None:
    assert EQUIVALENT.keys() <= {m.key for m in every}


def test_a_mutant_is_caught(every: list[Mutant]) -> None:
    shifted = next(m for m in every if m.key.startswith("produce_admission: isr_size <"))

    assert caught_by(shifted) == "scenarios"
