"""The recipes of conf/containers, their steps run here without a daemon: does what they make work?

    python -m tests.container_recipes

Each stage has a folder in place of its root file system. What changes the machine itself (apt-get,
useradd) is not run; of each package it is asked whether apt knows it. Needs the package registries
and Maven.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "conf" / "containers").glob("*.Dockerfile"))
# Images of our own, by which a recipe may begin.
OURS = "replication-analyzer"
KNOWN = ("FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD")
OF_THE_MACHINE = ("apt-get ", "useradd ")
INCIDENT = ROOT / "tests" / "incidents" / "unclean_election__4.1.1"


@dataclass(slots=True)
class Stage:
    """FROM an image to the next one. steps: (instruction, its words)."""

    image: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def last(self, instruction: str) -> str | None:
        """The words of the last such step."""
        return next((words for i, words in reversed(self.steps) if i == instruction), None)


def parsed(text: str) -> list[Stage]:
    """The stages of a recipe. Raises ValueError at what is no step that is known here."""
    stages: list[Stage] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        instruction, _, words = line.partition(" ")
        if instruction not in KNOWN or not words:
            raise ValueError(f"no step that is known here: {line}")
        if instruction == "FROM":
            found = re.fullmatch(r"(\S+)(?: AS ([a-z]+))?", words)
            if found is None:
                raise ValueError(f"no image and name: {line}")
            stages.append(Stage(found[1], found[2] or ""))
        elif not stages:
            raise ValueError(f"before the first FROM: {line}")
        else:
            stages[-1].steps.append((instruction, words))
    return stages


def ignored(path: Path) -> bool:
    """Whether .dockerignore keeps a path, relative to the root, out of the context."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    return any(
        path.match(p.removeprefix("**/"))
        if p.startswith("**/")
        else Path(p) in (path, *path.parents)
        for p in patterns
    )


def _copy(stage_root: Path, roots: dict[str, Path], words: str) -> None:
    parts = words.split()
    source = ROOT
    if parts[0].startswith("--from="):
        source = roots[parts.pop(0).removeprefix("--from=")]
    for name in parts[:-1]:
        origin, target = source / name.lstrip("/"), stage_root / parts[-1].lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_file():
            shutil.copy(origin, target)
            continue

        def left_out(folder: str, names: list[str], origin: Path = origin) -> list[str]:
            if origin != ROOT:
                return []
            here = Path(folder).relative_to(ROOT)
            return [n for n in names if ignored(here / n)]

        shutil.copytree(origin, target, ignore=left_out, dirs_exist_ok=True, symlinks=True)


def _run(stage_root: Path, words: str, environment: dict[str, str]) -> str | None:
    """What went wrong; None: nothing."""
    if words.startswith(OF_THE_MACHINE):
        asked = re.search(r"apt-get install -y --no-install-recommends ([^&]+)", words)
        for package in asked[1].split() if asked else ():
            known = subprocess.run(["apt-cache", "show", package], capture_output=True, check=False)
            if known.returncode:
                return f"apt knows no {package}"
        return None
    own = re.sub(r"(?<=[\s\"=])/(?=\w)", f"{stage_root}/", words)
    done = subprocess.run(
        ["sh", "-c", own],
        cwd=stage_root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode == 0 else f"{words}: {done.stderr.strip()[-500:]}"


def made(recipe: Path, folder: Path) -> tuple[dict[str, str], list[str]]:
    """Runs all steps; the environment of what comes out, and what went wrong."""
    roots: dict[str, Path] = {}
    wrong: list[str] = []
    environment = {}
    for number, stage in enumerate(parsed(recipe.read_text(encoding="utf-8"))):
        stage_root = folder / str(number)
        stage_root.mkdir(parents=True)
        roots[stage.name] = stage_root
        subprocess.run([sys.executable, "-m", "venv", str(stage_root / "python")], check=True)
        environment = {"HOME": os.environ.get("HOME", ""), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        environment |= {name: os.environ[name] for name in os.environ if name.startswith("PIP_")}
        path = [p for p in os.environ["PATH"].split(":") if not p.startswith(sys.prefix)]
        environment["PATH"] = ":".join([str(stage_root / "python" / "bin"), *path])
        for instruction, words in stage.steps:
            if instruction == "COPY":
                _copy(stage_root, roots, words)
            elif instruction == "RUN":
                told = _run(stage_root, words, environment)
                wrong += [] if told is None else [told]
            elif instruction == "ENV":
                name, _, value = words.partition("=")
                environment[name] = f"{stage_root}{value}" if value.startswith("/") else value
    return environment, wrong


def _called(environment: dict[str, str], *words: str) -> tuple[int, str]:
    done = subprocess.run(
        words, cwd=INCIDENT, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    """Exit status 0 where all steps run, and what they make answers."""
    failed = 0
    for recipe in RECIPES:
        with tempfile.TemporaryDirectory(prefix="recipe-") as name:
            environment, wrong = made(recipe, Path(name))
            last = parsed(recipe.read_text(encoding="utf-8"))[-1]
            start = json.loads(last.last("ENTRYPOINT") or last.last("CMD") or "[]")
            words = [*start, "diagnose", "."] if last.last("ENTRYPOINT") else start
            # On top of another image of ours it only brings files.
            status, said = _called(environment, *words) if words else (0, "")
            wanted = 1 if last.last("ENTRYPOINT") else 0
            if status != wanted:
                wrong.append(f"{shlex.join(words)} ended with {status}: {said[-800:]}")
            print(f"{'WRONG' if wrong else 'ok':6} {recipe.name}: {shlex.join(words)}: {status}")
            print("".join(f"       {one}\n" for one in wrong), end="")
            failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
