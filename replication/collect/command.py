"""The command `collect`: prints a script for a platform, or says what evidence lacks."""

import argparse
import json
import re
import shlex
from importlib import resources
from typing import Any

from replication.collect.manifest import is_enough, manifest
from replication.collect.words import text
from replication.evidence import digest
from replication.reports.safe_text import plain, plain_json

PLATFORMS = ("bare-metal", "systemd", "docker", "strimzi", "confluent-for-kubernetes", "msk")
ENOUGH, NOT_DECIDED = 0, 3
_PART = re.compile(r"^# <([a-z-]+)>$", re.MULTILINE)


def arguments(command: argparse.ArgumentParser) -> None:
    """What `collect` takes besides the evidence."""
    command.add_argument(
        "--for",
        dest="platform",
        choices=PLATFORMS,
        metavar="PLATFORM",
        help=f"print a shell script that collects evidence there: {', '.join(PLATFORMS)}. Read it "
        "first; without PATH",
    )
    command.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="what PATH lacks, for people (the default) or for scripts",
    )


def script(platform: str) -> str:
    """The script for one of PLATFORMS: it changes nothing on brokers, and runs in bash 3.2 on."""
    folder = resources.files("replication.collect") / "scripts"

    def text_of(name: str) -> str:
        return (folder / f"{name}.sh").read_text(encoding="utf-8")

    whole = _PART.sub(lambda part: text_of(part[1]).rstrip(), text_of(platform))
    return whole.replace("@digest@", shlex.quote(digest.__file__))


def run(options: argparse.Namespace, answer: dict[str, Any]) -> int:
    """Says what is missing. answer: that of `diagnose`.

    Exit status: 0 whether records are lost or replicas differ hangs on nothing that is missing, 3
    it does.
    """
    told = manifest(answer)
    if options.format == "json":
        print(plain_json(json.dumps(told, sort_keys=True, indent=1, ensure_ascii=False)))
    else:
        for line in text(told):
            print(plain(line))
    return ENOUGH if is_enough(told) else NOT_DECIDED
