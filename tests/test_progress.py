"""What takes long is not silent, what is quick says nothing, an interruption is quiet."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from replication import progress
from replication.cli import main
from tests.changed_evidence import INCIDENTS

LOST = str(INCIDENTS / "unclean_election__2.8.2")


def test_a_silence_ends_with_what_is_being_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.02)
    with progress.told():
        progress.doing("reading the evidence")
        time.sleep(0.2)
    said = capsys.readouterr().err.splitlines()
    assert said
    assert all(line.startswith("... reading the evidence, ") for line in said)
    # The same is said again later and later.
    assert len(said) <= 5


def test_what_is_quick_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 5.0)
    with progress.told():
        assert list(progress.steps([1, 2], "things done")) == [1, 2]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["diagnose", "--report", "page.html"], ["files or folders read", "partitions judged"]),
        (["import", "--out", "events.jsonl"], ["files or folders read", "partitions written"]),
        (["show", "--topic-partition", "t-0"], ["partitions judged"]),
        (["explain", "0"], ["partitions judged"]),
    ],
    ids=lambda value: value[0],
)
def test_every_command_that_reads_evidence_says_how_far_it_is(
    command: list[str],
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress._voice, "say", lambda text: print(text, file=sys.stderr))
    monkeypatch.chdir(tmp_path)
    main([*command, LOST])
    said = capsys.readouterr().err
    assert all(word in said for word in words)
    if "--report" in command:
        assert progress._voice.doing == "writing page.html"


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_an_interruption_is_quiet(processes: str, tmp_path: Path) -> None:
    """While it reads for many seconds."""
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    (evidence / "a.log").write_bytes((INCIDENTS / LOST / "broker-1" / "server.log").read_bytes())
    line = "[2021-05-24 11:22:30,%03d] INFO [Partition t-%d broker=1] ISR updated to 1 "
    line += "(kafka.cluster.Partition)\n"
    for number in range(8):
        lines = (line % (k % 1000, number) for k in range(300_000))
        (evidence / f"server.log.{number}").write_text("".join(lines))
    command = [sys.executable, "-m", "replication", "diagnose", str(evidence)]
    running = subprocess.Popen(
        [*command, "--processes", processes],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        # Whoever runs the tests in the background has interruptions ignored, and hands that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert running.stderr is not None
    assert running.stderr.readline().startswith("... ")
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "status", "told", "level"),
    [
        (["diagnose", "/nowhere"], 2, "replication-analyzer diagnose: /nowhere", "error"),
        (["diagnos"], 2, "did you mean diagnose?", "error"),
        (["trace", LOST, "--offset", "t-0:5", "--groups"], 0, "note: ", "warning"),
        (["diagnose", LOST, "--report", "page.html"], 1, "report: page.html", "info"),
    ],
)
def test_who_collects_logs_gets_each_line_as_an_object(
    words: list[str],
    status: int,
    told: str,
    level: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [str(Path(word).absolute()) if word == LOST else word for word in words]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(progress.LOG_FORMAT, "json")
    try:
        ended: int | str | None = main(words)
    except SystemExit as end:
        ended = end.code
    said = capsys.readouterr()
    lines = [json.loads(line) for line in said.err.splitlines()]
    assert ended == status
    [said_at] = {line["level"] for line in lines if told in line["message"]}
    assert said_at == level
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT.*\+00:00", line["at"]) for line in lines)
    assert bool(said.out) == (status != 2)
