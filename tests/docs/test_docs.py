"""The pages of docs/: tables as in the code, links that lead somewhere, files that exist."""

import argparse
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from replication.cli import _parser, main
from tests import injections
from tests.docs.tables import DOCS, TABLES, with_tables
from tests.docs.test_running import PARSERS
from tests.guards import PAGE, missing, with_table

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
# A cited page is a word that ends so, in code, comment or page.
# Targets that others run, or that say by themselves what they do.
PARTS_OF_OTHERS = {"help", "kafka-jars", "browser", "lint", "clean"}
CITED = re.compile(r"(?<![\w/*-])(?:docs/)?([a-z][a-z0-9_/]*\.md)\b")


@pytest.mark.parametrize("page", sorted(TABLES))
def test_the_tables_are_those_of_the_code(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert with_tables(page) == text, "run: python -m tests.docs.tables --write"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    dead = [x for x in links if "://" not in x and not (page.parent / x).exists()]
    assert dead == []


def test_every_cited_page_is_in_the_repository() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.toml"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    pages = {page.name for page in PAGES}
    missing = {
        f"{name}: {cited}"
        for name in listed
        if (ROOT / name).is_file() and not name.startswith("tests/docs/")
        for cited in CITED.findall((ROOT / name).read_text(encoding="utf-8"))
        if cited.rsplit("/", 1)[-1] not in pages
    }
    assert missing == set()


def flags_and_help() -> Iterator[tuple[str, str]]:
    """Each flag of the commands and jobs, and what its help says."""
    waiting = [_parser(), *(made() for made in PARSERS.values())]
    while waiting:
        for action in waiting.pop()._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()
            for flag in action.option_strings[-1:]:
                yield flag, action.help or ""


def test_a_page_that_help_points_to_has_the_flag() -> None:
    told = [(flag, page) for flag, said in flags_and_help() for page in CITED.findall(said)]
    assert {flag for flag, _ in told} >= {"--base-after", "--state-shards", "--line-field"}
    lacking = {
        f"{flag}: {page}"
        for flag, page in told
        if not re.search(
            rf"{flag}\b|\b{flag[2:].replace('-', '_')}\b", (DOCS / page).read_text(encoding="utf-8")
        )
    }
    assert lacking == set()


def test_a_heading_that_is_pointed_to_is_on_the_page() -> None:
    """`docs/PAGE.md, Heading`, as messages, scripts and rules say it."""
    listed = [
        *(ROOT / "replication").rglob("*.py"), *(ROOT / "replication").rglob("*.sh"),
        *(ROOT / "jobs").glob("*.py"), *(ROOT / "conf").rglob("*.yml"),
    ]  # fmt: skip
    told = {
        (page, heading)
        for path in listed
        for page, heading in re.findall(
            r"docs/(\w+\.md), ([A-Z][\w ]+)", path.read_text(encoding="utf-8")
        )
    }
    assert len(told) >= 2
    assert {
        f"{page}: {heading}"
        for page, heading in told
        if not re.search(
            rf"^#+ {heading}$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE
        )
    } == set()


def test_the_contract_names_every_command_and_flag(capsys: pytest.CaptureFixture[str]) -> None:
    """By what the tool itself offers to a shell that completes."""
    assert main(["completion"]) == 0
    offered = capsys.readouterr().out
    contract = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
    flags = set(re.findall(r"--[a-z][a-z-]+", offered)) - {"--help", "--version"}
    assert len(flags) > 10
    assert sorted(flag for flag in flags if flag not in contract) == []
    commands = re.findall(r"^    ([a-z]+) +\S", help_text(capsys), re.MULTILINE)
    assert len(commands) > 5
    assert [c for c in commands if f"`{c}" not in contract] == []


def help_text(capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        main(["--help"])
    return capsys.readouterr().out


def test_every_long_check_is_in_the_table_of_guards() -> None:
    """A check that nobody is told of is run by nobody; one that is told of has to be there."""
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert len(targets) <= 20
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    told = {t for p in pages for t in re.findall(r"`make ([a-z-]+)", p.read_text(encoding="utf-8"))}
    told |= set(re.findall(r"^make ([a-z-]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    # What is set up is said beside the docs, too.
    for path in [*(ROOT / "conf").rglob("*.*"), *(ROOT / "replication").rglob("*.py")]:
        told |= set(re.findall(r"`make ([a-z-]+)", path.read_text(encoding="utf-8")))
    assert targets - told - PARTS_OF_OTHERS == set()
    assert told - targets == set()
    guards = PAGE.read_text(encoding="utf-8")
    assert with_table(guards) == guards, "run: python -m tests.guards --write"
    assert missing() == []


def test_each_defence_and_its_test_are_there() -> None:
    """`make injections` takes an hour: what has got another name is noticed here."""
    assert injections.missing() == []


def test_the_readme_is_short_and_its_answer_is_the_one_that_comes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 120
    shown = r"\n\.venv/bin/replication-analyzer (diagnose .*?)\n```\n\n```\n(.*?)```"
    call, told = re.findall(shown, readme, re.DOTALL)[0]
    assert main(call.split()) == 1
    assert capsys.readouterr().out.startswith(told)
