"""The recipes of conf/containers as texts; `python -m tests.container_recipes` runs their steps."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.container_recipes import OURS, RECIPES, ROOT, Stage, ignored, parsed

S3 = ROOT / "conf" / "containers" / "jobs-s3.Dockerfile"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def stages(recipe: Path) -> list[Stage]:
    return parsed(recipe.read_text(encoding="utf-8"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_what_is_copied_is_in_the_checkout_or_of_an_earlier_stage(recipe: Path) -> None:
    seen: set[str] = set()
    for stage in stages(recipe):
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
        assert stage.image.partition(":")[2]


@pytest.mark.parametrize("recipe", [r for r in RECIPES if r != S3], ids=lambda path: path.name)
def test_a_recipe_builds_the_wheel_and_starts_what_is_there(recipe: Path) -> None:
    made = stages(recipe)
    final = made[-1]
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


def test_the_jars_of_an_object_store_go_beside_those_of_the_jobs() -> None:
    """A job takes all jars of that folder, and the image keeps its user and its start."""
    jars, final = stages(S3)
    below = (S3.with_name("jobs.Dockerfile")).read_text(encoding="utf-8")
    assert final.image == f"{OURS}-jobs:latest"
    assert f"-t {OURS}-jobs ." in below
    [(instruction, words)] = final.steps
    assert (instruction, words.split()[-1]) == ("COPY", "/jars")
    assert "ENV REPLICATION_ANALYZER_JARS=/jars\n" in below
    [run] = [words for instruction, words in jars.steps if instruction == "RUN"]
    assert run.endswith(f"-DoutputDirectory={words.split()[-2]}")


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
