"""How calls end that are interrupted as modules load, or find no room for their answer."""

import subprocess
import sys

import pytest

# Presses Ctrl-C at the moment in which a module is looked for.
PRESSED = """
import os, signal, sys

class Presses:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Presses())
from replication.entry import main
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["replication.cli", "replication.evidence.importer", "pyarrow"])
def test_an_interruption_while_modules_load_is_quiet(module: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PRESSED.format(module=module)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


@pytest.mark.parametrize("call", [["versions", "4.1.1"], ["versions"]])
def test_an_answer_that_finds_no_room_on_its_disk_says_so(call: list[str]) -> None:
    """However short: Python's own last words would come behind, and another status."""
    command = [sys.executable, "-m", "replication", *call]
    with open("/dev/full", "w") as full:
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert run.returncode == 2
    assert run.stderr.startswith("replication-analyzer versions: No space left on device: ")
    assert run.stderr.count("\n") == 1
