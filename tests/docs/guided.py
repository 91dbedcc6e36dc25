"""docs/start_here.md: the commands of a guided incident, each with the answer that it gives.

`python -m tests.docs.guided --write` runs them one after the other and puts the answers in.
"""

import contextlib
import io
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from replication.cli import main as command_line

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "start_here.md"
INCIDENT = ROOT / "tests" / "incidents" / "unclean_election__4.1.1"
STEP = re.compile(
    r"(?P<most><!-- the first (?P<lines>\d+) lines -->\n)?"
    r"```console\n\$ replication-analyzer (?P<call>[^\n]+)\n(?P<told>.*?)```\n",
    re.DOTALL,
)
CUT = "[..]\n"


def answer_to(call: str) -> str:
    """What a call prints, its notes too, but for how far it has come."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        command_line(shlex.split(call))
    told = out.getvalue().splitlines(keepends=True)
    return "".join(line for line in told if not line.startswith("... "))


def carried_out(page: str) -> str:
    """The page with the answers that its commands give in a folder with the incident's evidence."""

    def step(found: re.Match[str]) -> str:
        told = answer_to(found["call"])
        if found["lines"]:
            lines = told.splitlines(keepends=True)
            told = "".join(lines[: int(found["lines"])]) + CUT
        most = found["most"] or ""
        return f"{most}```console\n$ replication-analyzer {found['call']}\n{told}```\n"

    with tempfile.TemporaryDirectory() as folder:
        left_out = shutil.ignore_patterns("truth.json")
        shutil.copytree(INCIDENT, Path(folder) / "evidence", ignore=left_out)
        with contextlib.chdir(folder):
            return STEP.sub(step, page)


if __name__ == "__main__":
    as_told = carried_out(PAGE.read_text(encoding="utf-8"))
    if "--write" in sys.argv:
        PAGE.write_text(as_told, encoding="utf-8")
    else:
        sys.stdout.write(as_told)
