"""A checkpoint directory has one process at a time."""

import fcntl
from pathlib import Path

import pytest

from replication.spark.locks import CheckpointLock, LockedError


def test_a_checkpoint_directory_has_one_process(tmp_path: Path) -> None:
    first, second = CheckpointLock(tmp_path / "ck"), CheckpointLock(tmp_path / "ck")
    first.take()
    with pytest.raises(LockedError, match=r"in use by another stream \(process \d+ on "):
        second.take()
    first.release()
    second.take()
    second.release()


def test_a_start_that_is_refused_leaves_no_folder_behind(tmp_path: Path) -> None:
    """Neither a new folder with nothing but a lock; what was there, or has come, stays."""
    (tmp_path / "there").mkdir()
    for name in ("new", "there", "used"):
        lock = CheckpointLock(tmp_path / name)
        lock.take()
        if name == "used":
            (tmp_path / name / "fold").mkdir()
        lock.release()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there", "used"]
    assert (tmp_path / "used" / "fold").is_dir()


def test_whoever_opened_the_lock_of_one_that_ended_keeps_others_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would hold a file that has no name any more, and a third would make a new one."""
    first, second, third = (CheckpointLock(tmp_path / "ck") for _ in range(3))
    first.take()
    real = fcntl.flock

    def once_it_has_ended(file: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        first.release()
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", once_it_has_ended)
    second.take()
    with pytest.raises(LockedError):
        third.take()
    third.release()
    assert (tmp_path / "ck" / "lock").exists()
