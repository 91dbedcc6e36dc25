"""The wheel in an environment that was empty, from another folder: the tool and each of its jobs.

Everything the wheel needs comes from the package registries, jars too. As a command:

    python -m tests.wheel_jobs
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from replication.paths import project_root

ROOT = project_root()
INCIDENT = ROOT / "tests" / "incidents" / "unclean_election__4.1.1"
COPIED = ("replication", "schemas", "conf", "jobs", "docs")
SKIPPED = ("__pycache__", ".mypy_cache", "*.egg-info", "build", "dist")
# Command, its flags, the exit status of an incident that lost records, what it leaves behind.
CALLS: tuple[tuple[str, str, int, str], ...] = (
    ("replication-analyzer", "diagnose evidence", 1, ""),
    ("replication-analyzer", "doctor", 0, ""),
    ("replication-import", "evidence --out events", 0, "events"),
    ("replication-stream", "--source events --tables tables --checkpoint-dir ck --settle-seconds 0",
     0, "tables/loss_ledger/_delta_log"),
    ("replication-replay", "--source events --tables replayed --keep-events", 1,
     "replayed/verdicts/_delta_log"),
    ("replication-quality", "--tables replayed", 1, "replayed/expectation_results/_delta_log"),
    ("replication-report", "--tables replayed --out page.html", 0, "page.html"),
    ("replication-views", "--tables replayed", 0, "replayed/views.sql"),
    ("replication-maintain", "--tables tables --checkpoint-dir ck", 0, ""),
)  # fmt: skip


def built(folder: Path) -> Path:
    """The wheel, built in a folder of a copy without what `make` and tools left behind."""
    for name in COPIED:
        ignored = shutil.ignore_patterns(*SKIPPED)
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet",
               "--disable-pip-version-check", "--wheel-dir", str(folder / "dist"),
               str(folder)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next((folder / "dist").glob("*.whl"))


def environment(folder: Path, wheel: Path) -> Path:
    """A new virtual environment with the wheel and what it asks for; its programs' folder."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet",
               "--disable-pip-version-check", "--constraint",
               str(ROOT / "conf" / "constraints.txt"), f"{wheel}[spark,quality]"]  # fmt: skip
    subprocess.run(command, check=True)
    return folder / "bin"


def called(programs: Path, folder: Path, command: str, flags: str) -> tuple[int, str]:
    """Exit status, and what was said."""
    left_out = ("PYTHONPATH", "SPARK_HOME", "VIRTUAL_ENV", "PYSPARK_PYTHON")
    cleaned = {k: v for k, v in os.environ.items() if k not in left_out}
    own = os.path.dirname(sys.executable)
    cleaned["PATH"] = os.pathsep.join(p for p in cleaned["PATH"].split(os.pathsep) if p != own)
    done = subprocess.run([str(programs / command), *flags.split()], cwd=folder, env=cleaned,
                          capture_output=True, text=True, check=False)  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    """The command; exit status 0 when every call ends as it has to."""
    with tempfile.TemporaryDirectory(prefix="wheel-jobs-") as name:
        own = Path(name)
        programs = environment(own / "environment", built(own / "source"))
        shutil.rmtree(own / "source")
        folder = own / "elsewhere"
        shutil.copytree(INCIDENT, folder / "evidence")
        for command, flags, wanted, left in CALLS:
            started = time.monotonic()
            status, said = called(programs, folder, command, flags)
            good = status == wanted and (folder / left).exists()
            seconds = time.monotonic() - started
            print(f"{'ok ' if good else 'WRONG'} {command} {flags}: status {status}, "
                  f"{seconds:.0f} s", flush=True)  # fmt: skip
            if not good:
                print(said[-2000:])
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
