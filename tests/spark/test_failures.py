"""No job ends with a status that stands for a finding where nothing was found."""

from pathlib import Path

import pytest

from replication.paths import project_root
from replication.spark.failures import exit_status

JOBS = sorted((project_root() / "jobs").glob("*.py"))


def test_a_jobs_own_status_is_kept() -> None:
    assert exit_status(lambda argv: len(argv), ["jobs/replay.py", "a", "b", "c"]) == 3


def test_a_folder_that_cannot_be_used_is_no_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()

    def main(argv: list[str]) -> int:
        (file / argv[0]).mkdir()
        return 0

    assert exit_status(main, ["jobs/replay.py", "tables"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("replay.py: ")
    assert str(file / "tables") in said


def test_a_defect_is_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    def main(argv: list[str]) -> int:
        raise KeyError("nobody expected it")

    assert exit_status(main, ["jobs/stream.py"]) == 4
    assert "stream.py: a defect of this tool" in capsys.readouterr().err


@pytest.mark.parametrize("job", JOBS, ids=lambda path: path.name)
def test_every_job_ends_so(job: Path) -> None:
    assert "sys.exit(exit_status(main, sys.argv))" in job.read_text()
