"""The command `scenario`: runs scenario files and holds what comes out against what they say."""

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from replication.machine.scenario import run_scenario
from replication.machine.scenario_text import ScenarioError

DESCRIPTION = "Run scenario files and compare what comes out with what they say."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments behind `scenario`."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="scenario file, or a folder of them (*.txt)"
    )
    parser.add_argument("--kafka", metavar="VERSION", help="instead of the version each file gives")
    parser.add_argument("--rewrite", action="store_true", help="write what came out to the file")


def main(argv: Sequence[str] | None = None) -> int:
    """The command by itself. argv: the arguments after `scenario`."""
    parser = argparse.ArgumentParser(
        prog="replication-analyzer scenario", description=DESCRIPTION, allow_abbrev=False
    )
    add_arguments(parser)
    return run(parser.parse_args(argv))


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 every file's outcome is as written in it, 1 some differ, 2 unusable input.

    The difference goes to stdout.
    """
    return max(_run(Path(name), options.kafka, options.rewrite) for name in options.files)


def _run(path: Path, kafka: str | None, rewrite: bool) -> int:
    """A file, or every scenario file below a folder."""
    if not path.is_dir():
        return _run_file(path, kafka, rewrite)
    found = sorted(path.rglob("*.txt"))
    if not found:
        print(f"{path}: a folder without scenario files (*.txt)", file=sys.stderr)
        return 2
    return max(_run_file(file, kafka, rewrite) for file in found)


def _run_file(path: Path, kafka: str | None, rewrite: bool) -> int:
    try:
        text = path.read_text(encoding="utf-8")
        same, actual = run_scenario(text, kafka)
    except (OSError, UnicodeDecodeError) as error:
        print(f"{path}: cannot be read: {error}", file=sys.stderr)
        return 2
    except ScenarioError as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 2
    if same:
        return 0
    if rewrite:
        path.write_text(actual, encoding="utf-8")
        print(f"{path}: rewritten", file=sys.stderr)
        return 0
    names = f"{path} as written", f"{path} as it came out"
    print(
        "\n".join(difflib.unified_diff(text.split("\n"), actual.split("\n"), *names, lineterm=""))
    )
    return 1
