"""CHANGELOG.md keeps its form, and its versions are those of the package."""

import re
from pathlib import Path

import pytest

from replication import VERSION
from replication.cli import main

LINES = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
RELEASES = [line for line in LINES if line.startswith("## ")]


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def test_the_releases_are_in_order_and_have_dates() -> None:
    assert RELEASES[0] == "## [Unreleased]"
    form = re.compile(r"## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d")
    matches = [form.fullmatch(line) for line in RELEASES[1:]]
    assert all(matches)
    found = [numbers(match[1]) for match in matches if match]
    assert found == sorted(found, reverse=True)


def test_the_version_is_that_of_the_release_to_come(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"replication-analyzer {VERSION}\n"
    coming, _, stage = VERSION.partition(".dev")
    assert stage.isdigit(), "a release gets its own heading in CHANGELOG.md; then the next .dev0"
    assert f"Will be {coming}." in LINES
    assert numbers(coming) > numbers(RELEASES[1].split("[")[1].split("]")[0])


def test_a_change_is_one_line_under_its_kind() -> None:
    """One line a change: whoever cannot say it in one line tells two changes, or tells the how."""
    wrong, kind = [], ""
    for number, line in enumerate(LINES, 1):
        if line.startswith("## "):
            kind = ""
        elif line.startswith("### "):
            kind = line[4:]
            if kind not in {"Added", "Changed", "Fixed", "Removed"}:
                wrong.append(f"{number}: {line}")
        elif kind and line and not (line.startswith("- ") and len(line) <= 175):
            wrong.append(f"{number}: {line}")
    assert wrong == []
    assert len(LINES) <= 260


def test_what_a_newer_version_reads_is_told_once_and_linked_from_where_people_look() -> None:
    root = Path(__file__).parents[2]
    told = re.compile(r"^\| .*under 0\.\d", re.MULTILINE)
    pages = [*(root / "docs").glob("*.md"), *root.glob("*.md")]
    assert {p.name for p in pages if told.search(p.read_text("utf-8"))} == {"tables.md"}
    heading = "What a newer version makes of what an older one wrote"
    assert f"## {heading}\n" in (root / "docs" / "tables.md").read_text("utf-8")
    anchor = f"tables.md#{heading.lower().replace(' ', '-')}"
    for page in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/index.md"):
        assert anchor in (root / page).read_text("utf-8"), page
