"""The recipes of conf/containers as texts; `python -m tests.container_recipes` runs their steps."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.container_recipes import RECIPES, ROOT, Stage, ignored, parsed

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def stages(recipe: Path) -> list[Stage]:
    return parsed(recipe.read_text(encoding="utf-8"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_builds_the_wheel_and_starts_what_is_there(recipe: Path) -> None:
    made = stages(recipe)
    final = made[-1]
    # What is copied is in the checkout and the context, or is of an earlier stage.
    seen: set[str] = set()
    for stage in made:
        for instruction, words in stage.steps:
            if instruction == "COPY":
                *sources, _ = words.split()
                if sources[0].startswith("--from="):
                    assert sources[0].removeprefix("--from=") in seen
                else:
                    for name in sources:
                        assert (ROOT / name).exists()
                        assert not ignored(Path(name))
        seen.add(stage.name)
    installs = [w for i, w in final.steps if i == "RUN" and w.startswith("pip install")]
    [install] = installs
    extras = install.rpartition("[")[2].rstrip('"]').split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    assert "--constraint" in install
    assert any("pip wheel" in words for stage in made for _, words in stage.steps)
    # Nobody runs as root, and what starts is a command of the wheel.
    assert final.last("USER") not in (None, "root", "0")
    start = json.loads(final.last("ENTRYPOINT") or final.last("CMD") or "[]")
    assert start[0] in PROJECT["scripts"]
    assert all(stage.image.partition(":")[2] for stage in made)


def test_the_jobs_find_their_jars_and_java() -> None:
    text = (ROOT / "conf" / "containers" / "jobs.Dockerfile").read_text(encoding="utf-8")
    final = parsed(text)[-1]
    name, _, folder = (final.last("ENV") or "").partition("=")
    assert name == "REPLICATION_ANALYZER_JARS"
    assert f"COPY --from=jars {folder} {folder}" in text
    assert f"touch {folder}/.complete" in text
    assert "openjdk-17-jre-headless" in text


@pytest.mark.parametrize("text", ["RUN ls", "FROM a AS b c", "FROM a:1\nADD x y", "FROM"])
def test_what_is_no_step_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no step|no image|before the first"):
        parsed(text)


def test_the_context_has_no_set_up_and_all_that_the_wheel_needs() -> None:
    for name in (".venv", ".jars/a.jar", "replication/__pycache__", "tests/incidents", ".git/HEAD"):
        assert ignored(Path(name))
    for name in ("setup.py", "docs/answer.schema.json", "schemas/findings.json", "README.md"):
        assert not ignored(Path(name))
