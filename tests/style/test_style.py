"""Style is a test: every Python file that git knows, and every new one, keeps the house's rules."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from replication.paths import project_root
from tests.style import house_rules

ROOT = Path(__file__).resolve().parents[2]
# What people read of the repository, beside its tests.
READ = ("replication", "jobs", "schemas", "conf", "docs", "README.md", "CHANGELOG.md",
        "CONTRIBUTING.md")  # fmt: skip


def known_files(*patterns: str) -> list[Path]:
    """Committed and new files, without ignored ones, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = sorted({Path(name) for name in listed.stdout.split("\0") if name})
    return [path for path in paths if (ROOT / path).is_file()]


Trees = dict[Path, ast.Module]


@pytest.fixture(scope="module")
def trees() -> Trees:
    """Parsed when a test asks, and let go: a run that leaves these tests out does not pay."""
    paths = known_files("*.py")
    return {path: ast.parse((ROOT / path).read_text("utf-8"), str(path)) for path in paths}


def offences(
    trees: Trees, check: Callable[[ast.Module], Iterator[str]], under: str = ""
) -> list[str]:
    return [
        f"{path}:{offence}"
        for path, tree in trees.items()
        if str(path).startswith(under)
        for offence in check(tree)
    ]


def test_there_are_files_to_judge(trees: Trees) -> None:
    assert Path("replication/doctor.py") in trees
    assert Path("tests/style/test_style.py") in trees


def test_functions_are_short(trees: Trees) -> None:
    assert offences(trees, house_rules.long_functions) == []


def test_every_file_says_what_it_is_for(trees: Trees) -> None:
    silent = [
        f"{path}:{offence}"
        for path, tree in trees.items()
        for offence in house_rules.no_first_comment((ROOT / path).read_text("utf-8"), tree)
    ]
    assert silent == []


def test_names_are_those_of_the_glossary(trees: Trees) -> None:
    wrong = [
        f"{path}:{offence}"
        for path, tree in trees.items()
        for offence in house_rules.banned_names(tree, in_spark="spark" in path.parts)
    ]
    assert wrong == []


def test_what_people_read_has_no_private_phrases() -> None:
    wrong = []
    for path in known_files(*READ):
        try:
            text = (ROOT / path).read_text("utf-8")
        except UnicodeDecodeError:
            continue
        python = path.suffix == ".py"
        texts = house_rules.texts_of_python(text) if python else house_rules.texts_of_page(text)
        wrong += [f"{path}:{offence}" for offence in house_rules.banned_phrases(texts)]
    assert wrong == []


def test_imports_stand_at_the_top(trees: Trees) -> None:
    assert offences(trees, house_rules.misplaced_imports) == []


def test_great_expectations_is_imported_late(trees: Trees) -> None:
    assert offences(trees, house_rules.great_expectations_at_top, under="replication/") == []
    assert offences(trees, house_rules.great_expectations_at_top, under="jobs/") == []


def test_no_import_only_for_types(trees: Trees) -> None:
    assert offences(trees, house_rules.type_checking_imports) == []


def test_the_core_knows_nothing(trees: Trees) -> None:
    assert offences(trees, house_rules.impure_core, under="replication/protocol/") == []


def started_modules() -> set[str]:
    """What pyproject.toml and the Makefile start, not what a list here claims."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    scripts = {target.partition(":")[0] for target in project["scripts"].values()}
    make = (ROOT / "Makefile").read_text()
    return scripts | set(re.findall(r"-m (replication[.\w]*)", make))


def test_no_dead_file(trees: Trees) -> None:
    alive = {path: tree for path, tree in trees.items() if path.parts[0] != "tests"}
    assert house_rules.dead_modules(alive, started_modules()) == []


def test_committed_files_name_no_machine_and_no_registry() -> None:
    # Incidents are what brokers wrote on their own machines, byte for byte.
    pattern = "|".join(house_rules.NOT_IN_COMMITTED_FILES)
    found = subprocess.run(
        ["git", "grep", "-nIE", "--untracked", pattern, "--", ".", ":!tests/incidents"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode in (0, 1), found.stderr
    assert found.stdout == ""


def test_every_folder_of_the_package_is_a_package(trees: Trees) -> None:
    """The import contracts and the wheel leave out a folder without `__init__.py`, silently."""
    folders = {path.parent for path in trees if path.parts[0] == "replication"}
    assert [str(folder) for folder in sorted(folders) if folder / "__init__.py" not in trees] == []


@pytest.mark.parametrize(
    "room", ["evidence/joining", "evidence/metadata_log", "protocol/judgement"]
)
def test_every_module_has_a_test_file_that_imports_it(room: str, trees: Trees) -> None:
    """Where inference and verdicts are made, a failing incident must name a culprit."""
    tests = [t for path, t in trees.items() if path.name.startswith("test_")]
    imported = {
        name
        for tree in tests
        for node in ast.walk(tree)
        for name in house_rules.imported_modules(node)
    }
    modules = [path for path in trees if path.is_relative_to(Path("replication") / room)]
    assert len(modules) > 9
    names = {".".join(path.with_suffix("").parts) for path in modules if path.stem != "__init__"}
    assert sorted(names - imported) == []


def test_the_laptop_tool_loads_no_spark() -> None:
    """What the import contracts say of our own files, seen from outside, third parties included."""
    forbidden = {"pyspark", "py4j", "pandas", "delta", "great_expectations"}
    code = f"import sys, replication.cli; print(sorted({forbidden} & sys.modules.keys()))"
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (child.stdout, child.stderr) == ("[]\n", "")


def test_root_is_the_checkout() -> None:
    assert project_root() == ROOT
