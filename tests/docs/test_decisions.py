"""docs/decisions: each page has its parts, and quotes what benchmarks/RESULTS.md has."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "decisions").glob("*.md"))
RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8").splitlines()
PARTS = ["Question", "Decision", "Measured", "What follows"]


def test_there_are_decisions_and_contributors_find_them() -> None:
    assert len(PAGES) >= 5
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"decisions/{page.name}" not in contributing] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_its_parts_and_the_numbers_that_were_measured(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == PARTS
    assert len(text.splitlines()) <= 60
    assert re.search(r"Decided \d{4}-\d\d-\d\d", text.split("\n\n")[1])
    quoted = [line for block in re.findall(r"```\n(.*?)```", text, re.DOTALL)
              for line in block.splitlines()]  # fmt: skip
    assert [line for line in quoted if line not in RESULTS] == []


def test_a_commit_is_held_against_what_ci_checks() -> None:
    """One hook that calls make: a list of tools of its own would differ one day."""
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"^ +entry: (.*)$", hooks, re.MULTILINE) == ["make lint"]
