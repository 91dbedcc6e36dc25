"""An interruption in the first second, while modules still load, ends as any later one."""

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
