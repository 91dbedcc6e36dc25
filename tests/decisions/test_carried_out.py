"""A plan step by step, kept in a file; and as a script, which stops where a check fails."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from replication.cli import main
from replication.decisions.script import NoScript, script
from replication.evidence.event_dumps import write_events
from replication.protocol.ground import events as ev
from tests.decisions.told_stories import OLDER_EPOCH_COMMITTED, story
from tests.protocol.default_evidence import evidence, left_by

# What each command of the plan does in a folder that stands for the cluster: servers are files.
TOOLS = {
    "kafka-server-start.sh": 'touch "$HERE/runs-${2##*-}"',
    "kafka-broker-api-versions.sh": 'for f in "$HERE"/runs-*; do echo "(id: ${f##*-} )"; done',
    "kafka-leader-election.sh": 'ls "$HERE" | sed -n "s/runs-//p" | head -1 > "$HERE/leader"',
    "kafka-dump-log.sh": 'cat "${@: -1}"',
    "kafka-metadata-quorum.sh": '[ "$2" = c:9093 ] && ls "$HERE"/runs-controller > /dev/null &&'
    ' echo "LeaderId: 9"',
    "kafka-topics.sh": r"""
line="\tTopic: orders\tPartition: 0\tLeader: %s\tReplicas: 1,2,3\tIsr: %s\n"
case "$*" in
  *unavailable*) printf "$line" none "" ;;
  *) printf "$line" "$(cat "$HERE/leader")" "$(ls "$HERE" | sed -n 's/runs-//p' | paste -s -d,)" ;;
esac""",
}


@pytest.fixture
def dump(tmp_path: Path) -> str:
    told = evidence(left_by(story(*OLDER_EPOCH_COMMITTED).world, random.Random(1)), frozenset())
    events = [
        ev.Event(str(n), "e", "", "orders", "", 0, n, fact, None) for n, fact in enumerate(told)
    ]
    write_events(tmp_path / "events.jsonl", events)
    return str(tmp_path / "events.jsonl")


def test_a_plan_goes_on_where_it_was_left(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = str(tmp_path / "plan.json")
    main(["decide", dump, "--down", "all", "--elect", "2", "--state", state])
    capsys.readouterr()
    assert main(["decide", "--state", state]) == 0
    first = capsys.readouterr().out
    assert main(["decide", "--state", state]) == 0
    assert capsys.readouterr().out == first
    assert first.startswith("Step 1 of ")
    seen = [first]
    while "Each step has passed." not in seen[-1]:
        assert main(["decide", "--passed", "--state", state]) == 0
        seen.append(capsys.readouterr().out)
    assert len(seen) == 1 + int(first.split()[3].rstrip(","))
    copies = [n for n, text in enumerate(seen) if "Copy the" in text]
    assert copies == list(range(len(copies))), "what is destroyed later is copied first"
    assert main(["decide", "--passed", "--state", state]) == 2


def test_a_plan_is_not_written_over(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "plan.json"
    main(["decide", dump, "--state", str(state)])
    before = state.read_bytes()
    assert main(["decide", dump, "--state", str(state)]) == 2
    assert state.read_bytes() == before
    assert "has a plan already" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format_version": 9}'])
def test_a_file_that_is_no_plan_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    assert main(["decide", "--state", str(path)]) == 2
    assert main(["decide", "--state", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("replication-analyzer decide: ") == 2


def carried_out(tmp_path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """The script, run on a folder that stands for the cluster."""
    tools = tmp_path / "tools"
    tools.mkdir(exist_ok=True)
    for name, does in TOOLS.items():
        (tools / name).write_text(f"#!/usr/bin/env bash\n{does}\n")
        (tools / name).chmod(0o755)
    for n in (1, 2, 3):
        (tmp_path / f"disk-{n}" / "orders-0").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"disk-{n}" / "orders-0" / "0.log").write_text("offset: 0 x\n")
    settings = {
        "HERE": str(tmp_path), "PATH": f"{tools}:{os.environ['PATH']}", "B": "b:9092",
        "SAFE": str(tmp_path / "safe"), "YES": "1", "WAIT": "2",
        **{f"LOG_DIR_{n}": str(tmp_path / f"disk-{n}") for n in (1, 2, 3)},
        **{f"CONFIG_{n}": f"broker-{n}" for n in (1, 2, 3)},
        **{f"AT_{n}": "bash -c" for n in (1, 2, 3, "controller")},
        "C": "c:9093", "CONTROLLER_CONFIG": "of-controller",
    }  # fmt: skip
    return subprocess.run(
        [str(tmp_path / "plan.sh")],
        env={**settings, **more},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_a_script_carries_the_plan_out_and_goes_on_behind_what_passed(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["decide", dump, "--down", "all", "--elect", "2", "--script", str(tmp_path / "plan.sh")]
    assert main(asked) == 1
    done = carried_out(tmp_path, AT_2="false")
    assert done.returncode == 1
    assert "Nothing after it was run." in done.stdout
    assert not (tmp_path / "runs-2").exists()
    assert (tmp_path / "safe" / "broker-1" / "orders-0" / "0.log").exists()
    done = carried_out(tmp_path)
    assert "(done before)" in done.stdout
    # The last step makes broker 1 the leader again, which this cluster elects first anyway.
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "orders-0: each step passed.")
    assert main(asked) == 2, "a script that is there is not written over"


def test_a_script_stops_where_a_check_does_not_print_what_it_must(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["decide", dump, "--down", "all", "--elect", "2", "--script", str(tmp_path / "plan.sh")])
    (tmp_path / "runs-1").touch()  # Somebody started broker 1: it is elected in the place of 2.
    done = carried_out(tmp_path)
    assert done.returncode == 1
    assert "does not print: Partition: 0 with Leader: 2" in done.stdout
    assert not (tmp_path / "runs-3").exists()


def test_no_script_is_made_of_a_name_that_a_shell_could_read(
    dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["decide", dump, "--down", "all", "--elect", "2", "--format", "json"])
    (row,) = json.loads(capsys.readouterr().out)["partitions"]
    assert "step 1 1 there" in script(row)
    for name in ("a b", "$(id)", "x;y", "", "t\n"):
        with pytest.raises(NoScript):
            script({**row, "topic": name})
