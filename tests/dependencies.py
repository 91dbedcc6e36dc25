"""What the environment is made of: complete, as pinned, under which licences, known to be unsafe?

    python -m tests.dependencies [--advisories DIR] [--strict]

Advisories are files of the OSV format (https://osv.dev: one JSON object each, any folders), as a
mirror of the ecosystems PyPI and Maven has them. Nothing is asked of a network. Without such files
the question is open, and said to be: UNKNOWN, which --strict counts as a failure.

Exit status: 0 nothing is wrong, 1 something is, 3 with --strict: something was not decided.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What pip itself is made of comes with the interpreter; the last one is ours.
NOT_PINNED = {"pip", "setuptools", "wheel", "replication-analyzer"}
POM = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")


@dataclass(frozen=True, order=True)
class Part:
    """A distribution or jar. ecosystem: OSV's word for where it comes from."""

    ecosystem: str
    name: str
    version: str


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed() -> list[Part]:
    """The distributions of this interpreter."""
    found = {Part("PyPI", normal(d.name), d.version) for d in metadata.distributions()}
    return sorted(found)


def pinned(path: Path) -> dict[str, str]:
    """Name -> version of a file of constraints."""
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {normal(name): version for name, version in pairs}


def not_as_pinned(parts: Iterable[Part], pins: dict[str, str]) -> list[str]:
    """In words, each difference between what is installed and what is pinned."""
    found = {p.name: p.version for p in parts if p.name not in NOT_PINNED}
    wrong = [
        f"{name} {version} is installed, {pins.get(name, 'nothing')} is pinned"
        for name, version in found.items()
        if pins.get(name) != version
    ]
    return wrong + [f"{name} is pinned and not installed" for name in sorted(pins.keys() - found)]


def licence_of(distribution: metadata.Distribution) -> str:
    """What a distribution says of its licence, its shortest form first."""
    told = distribution.metadata
    classified = [c for c in told.get_all("Classifier", []) if c.startswith("License ::")]
    text = (told.get("License") or "").strip()
    return (
        told.get("License-Expression")
        or " OR ".join(c.split(" :: ")[-1] for c in classified)
        or text.partition("\n")[0]
        or "none told"
    )


def other_licences(told: dict[str, str], allowed: list[str]) -> list[str]:
    """In words, each licence of which a word is not among those allowed."""
    known = sorted(allowed, key=len, reverse=True)
    wrong = []
    for name, licence in sorted(told.items()):
        rest = licence
        for word in known:
            rest = rest.replace(word, "")
        if re.sub(r"\b(AND|OR)\b|[\s()]", "", rest):
            wrong.append(f"{name}: {licence}")
    return wrong


def jars() -> Iterator[Part]:
    """The jars beside the jobs and within pyspark, as they name themselves inside."""
    spark = util.find_spec("pyspark")
    folders = [ROOT / ".jars"]
    places = spark.submodule_search_locations if spark is not None else None
    folders += [Path(place) / "jars" for place in places or ()]
    for path in sorted(jar for folder in folders for jar in folder.glob("*.jar")):
        with zipfile.ZipFile(path) as jar:
            for name in filter(POM.fullmatch, jar.namelist()):
                lines = jar.read(name).decode("utf-8", "replace").splitlines()
                told = dict(line.split("=", 1) for line in lines if "=" in line)
                group, artifact = told.get("groupId", ""), told.get("artifactId", "")
                yield Part("Maven", f"{group}:{artifact}".strip(), told.get("version", "").strip())


def advised(parts: Iterable[Part], folder: Path) -> tuple[list[str], int]:
    """(in words, each part of which an advisory speaks; how many advisories were read).

    An advisory that lists no versions is one of every version: better told once too often.
    """
    here = {(p.ecosystem, p.name): p.version for p in parts}
    found, read = [], 0
    for path in sorted(folder.rglob("*.json")):
        advisory = json.loads(path.read_text(encoding="utf-8"))
        if advisory.get("withdrawn"):
            continue
        read += 1
        for affected in advisory.get("affected", ()):
            package = affected.get("package", {})
            name = package.get("name", "")
            ecosystem = package.get("ecosystem", "")
            key = (ecosystem, normal(name) if ecosystem == "PyPI" else name)
            version = here.get(key)
            versions = affected.get("versions") or [version]
            if version is not None and version in versions:
                summary = advisory.get("summary", "")
                found.append(f"{name} {version}: {advisory.get('id')} {summary}".rstrip())
    return found, read


def main(argv: list[str]) -> int:
    """Prints what was found; returns the exit status."""
    made = argparse.ArgumentParser(prog="dependencies")
    made.add_argument("--advisories", type=Path, metavar="DIR", help="advisories of the OSV format")
    made.add_argument("--strict", action="store_true", help="what was not decided is a failure")
    flags = made.parse_args(argv)
    parts, inside = installed(), sorted(set(jars()))
    check = [sys.executable, "-m", "pip", "--disable-pip-version-check", "check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    told = {normal(d.name): licence_of(d) for d in metadata.distributions()}
    allowed = tomllib.loads((ROOT / "tests" / "licences.toml").read_text(encoding="utf-8"))
    wrong = {
        "fit each other (pip check)": done.stdout.splitlines() if done.returncode else [],
        "as conf/constraints.txt pins": not_as_pinned(parts, pinned(ROOT / "conf/constraints.txt")),
        "licences of tests/licences.toml": other_licences(told, allowed["allowed"]),
    }
    for what, found in wrong.items():
        print(f"{'WRONG' if found else 'ok':7} {len(parts)} distributions, {what}")
        print("".join(f"        {line}\n" for line in found), end="")
    undecided = flags.advisories is None
    if flags.advisories is None:
        print("UNKNOWN known vulnerabilities: no --advisories were given, nothing was compared")
    else:
        found, read = advised([*parts, *inside], flags.advisories)
        wrong["advisories"], undecided = found, not read
        word = "UNKNOWN" if undecided else "WRONG" if found else "ok"
        print(
            f"{word:7} {len(parts)} distributions and {len(inside)} parts of jars against {read} "
            "advisories"
        )
        print("".join(f"        {line}\n" for line in found), end="")
    print(
        "not looked at: whether an index gave what it gave before (the pins have no hashes), "
        "compiled code inside of wheels, jars that name no pom, Java and Python themselves"
    )
    if any(wrong.values()):
        return 1
    return 3 if undecided and flags.strict else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
