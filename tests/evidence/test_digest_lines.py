"""Lines of a digest: handed over, they give the answer of the directories that they tell of."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from replication import cli
from replication.evidence import digest
from replication.evidence.digest import DigestLines
from replication.evidence.log_directories.digest_lines import (
    SeenDirectory,
    checked,
    directories_of,
    is_digest_lines,
    read_digest_lines,
)
from replication.evidence.log_directories.log_directory import read_log_directory
from replication.evidence.unreadable import Unreadable
from tests.evidence.segment_bytes import Record, batch

INCIDENTS = Path(__file__).parents[1] / "incidents"
TOLD = (
    "unclean_election__4.1.1", "healthy_rolling_restart__4.3.0", "unclean_election__2.8.2",
    "not_loss_traps__4.3.0__topic_recreated", "last_replica_standing__4.1.1__elr_off",
)  # fmt: skip


def lines_of(directory: Path, rounds: int = 1) -> list[str]:
    found: list[str] = []
    lines = DigestLines(str(directory), 60, found.append)
    for _ in range(rounds):
        lines.tell()
    return found


def last_directories(incident: Path) -> list[Path]:
    """Of each broker the directory as it was copied last."""
    return sorted(p for p in incident.glob("*/disk-final") if p.is_dir())


def verdicts(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    cli.main(["diagnose", "--format", "json", str(folder)])
    answer = json.loads(capsys.readouterr().out)
    return {
        (v["topic"], v["partition"], v["topic_id"], v["invariant"]): v["verdict"]
        for v in answer["verdicts"]
    }


@pytest.mark.parametrize("incident", TOLD)
def test_the_lines_give_the_verdicts_of_the_directories(
    incident: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But for what only the records' bytes tell, which lines do not carry."""
    chance = random.Random(5)
    copied, told = tmp_path / "copied", tmp_path / "told"
    for folder in (copied, told):
        shutil.copytree(INCIDENTS / incident, folder)
        (folder / "truth.json").unlink()
        (folder / "acks.jsonl").unlink(missing_ok=True)
        for other in [p for p in folder.glob("*/disk-*") if p.name != "disk-final"]:
            shutil.rmtree(other)
    assert last_directories(told)
    for directory in last_directories(told):
        lines = lines_of(directory)
        lines += chance.sample(lines, len(lines) // 3)
        chance.shuffle(lines)
        (directory.parent / "digest.out").write_text("\n".join(lines) + "\n")
        shutil.rmtree(directory)
    assert verdicts(told, capsys) == verdicts(copied, capsys)
