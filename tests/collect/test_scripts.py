"""The scripts of `collect --for`, run against commands that give what an incident left.

Only the commands of the platform are pretended (docker, kubectl, aws, journalctl, Kafka's tools);
tar, du, df, digest.py and the scripts are the real ones. What is collected has to give the
incident's losses, by the tool itself.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from replication.cli import main
from replication.collect.command import PLATFORMS, script
from replication.evidence import digest

INCIDENT = Path(__file__).parents[1] / "incidents" / "unclean_election__4.1.1"
BROKERS = ("broker-1", "broker-2", "broker-3", "controller-100")
DISK = "disk-final"
LOGS = {"server.log", "controller.log", "state-change.log"}
DESCRIBE = f"cat {INCIDENT}/describe.txt"
NO_QUORUM = 'echo "no quorum is pretended" >&2; exit 1'
KAFKA_TOOL = f"""case "$0" in
*kafka-topics*) {DESCRIBE} ;;
*kafka-log-dirs*) ;;
*) {NO_QUORUM} ;;
esac
"""
# All that a process logs is one stream by time, each line with the moment at which it was read.
OUTPUT = f"""python3 - {INCIDENT}/"$name"/*.log <<'END'
import sys
lines, at = [], ""
for path in sys.argv[1:]:
    for line in open(path, encoding="utf-8"):
        at = line[1:24] if line.startswith("[2026-") else at
        lines.append((at, line))
for at, line in sorted(lines, key=lambda each: each[0]):
    print(at.replace(" ", "T").replace(",", ".") + "000001Z", line, end="")
END
"""
COMMANDS = {
    "docker": f"""
case "$1" in
inspect) [ -d {INCIDENT}/"${{@: -1}}" ] || exit 1; echo true ;;
logs)
  name=$3
  {OUTPUT} ;;
exec) {DESCRIBE} ;;
cp)
  name=${{2%%:*}} path=${{2#*:}}
  [ "$path" = /var/lib/kafka/data ] || exit 1
  tar -C {INCIDENT}/"$name" -cf - {DISK} ;;
esac
""",
    "kubectl": f"""
shift 2
case "$1" in
get) [ "${{4#*=}}" = none ] || printf 'pod/%s\\n' {" ".join(BROKERS)} ;;
logs)
  name=$2
  case "$*" in *--previous*) exit 1 ;; esac
  {OUTPUT} ;;
exec)
  name=$2
  while [ "$1" != -- ]; do shift; done
  case "$2" in
  du) du -sk {INCIDENT}/"$name"/{DISK} ;;
  tar) tar -C {INCIDENT}/"$name"/{DISK} -cf - . ;;
  *kafka-topics*) {DESCRIBE} ;;
  *kafka-log-dirs*) ;;
  *) {NO_QUORUM} ;;
  esac ;;
esac
""",
    "journalctl": f"cat {INCIDENT}/$JOURNAL_OF/server.log",
    "aws": f"""
case "$*" in
*describe-log-streams*) printf 'broker-1\\tbroker-2\\tbroker-3\\n' ;;
*filter-log-events*)
  while [ "$1" != --log-stream-names ]; do shift; done
  cat {INCIDENT}/"$2"/*.log | python3 -c 'import json, sys
print(json.dumps({{"events": [{{"message": line.rstrip()}} for line in sys.stdin]}}))' ;;
*LoggingInfo*) echo '{{"BrokerLogs": {{}}}}' ;;
esac
""",
}
# Settings of each platform, beside OUT; then for which of BROKERS the script is run on its own.
SETTINGS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "bare-metal": ({"BROKER_LOGS": "{logs}"}, BROKERS),
    "systemd": ({"BROKER_LOGS": "{logs}", "COPY": "whole"}, BROKERS),
    "docker": ({"CONTAINERS": " ".join(BROKERS)}, ("",)),
    "strimzi": ({}, ("",)),
    "confluent-for-kubernetes": ({}, ("",)),
    "msk": ({"LOG_GROUP": "g", "BOOTSTRAP": "b:1", "CLUSTER_ARN": "arn"}, ("",)),
}


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine on which those commands are first in PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in {
        **COMMANDS,
        **dict.fromkeys(
            ("kafka-topics.sh", "kafka-log-dirs.sh", "kafka-metadata-quorum.sh"), KAFKA_TOOL
        ),
    }.items():
        (folder / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "KAFKA_BIN": str(folder)}


def collected(
    platform: str, machine: dict[str, str], folder: Path, **settings: str
) -> subprocess.CompletedProcess[str]:
    program = folder / f"{platform}.sh"
    program.write_text(script(platform))
    return subprocess.run(
        ["bash", str(program), settings.pop("mode", "collect")],
        cwd=folder, env={**machine, **settings}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def losses(path: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    main(["diagnose", "--format", "json", str(path)])
    answer = json.loads(capsys.readouterr().out)
    names = ("topic", "partition", "first_offset", "end_offset", "cause", "contract")
    return [{name: row[name] for name in names} for row in answer["losses"]]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_a_script_collects_shows_the_loss(
    platform: str, machine: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "evidence"
    settings, alone = SETTINGS[platform]
    config = tmp_path / "server.properties"
    for broker in alone:
        disk, logs = INCIDENT / broker / DISK, tmp_path / "logs" / broker
        shutil.copytree(INCIDENT / broker, logs, ignore=lambda _, names: set(names) - LOGS)
        config.write_text(f"#log.dirs=/no\nlog.dirs = {disk}\nmetadata.log.dir={disk}\n")
        done = collected(
            platform, machine, tmp_path,
            OUT=str(out / broker), CONFIG=str(config), DIGEST=str(Path(digest.__file__)),
            JOURNAL_OF=broker,
            **{name: value.format(logs=logs) for name, value in settings.items()},
        )  # fmt: skip
        # What the pretended cluster has not got is said, and nothing else fails.
        missed = [line for line in done.stderr.splitlines() if "  NOT TAKEN: " in line]
        wanted = [] if platform in ("docker", "msk") else ["metadata-quorum.txt"]
        assert [Path(line.split()[2]).name for line in missed] == wanted, done.stderr
        assert done.returncode == (1 if wanted else 0)
    shutil.copy(INCIDENT / "acks.jsonl", out)
    wanted_losses = losses(INCIDENT, capsys)
    if platform == "msk":
        # Neither a disk nor the metadata log is there to tell why.
        wanted_losses = [row | {"cause": "unknown", "contract": "unknown"} for row in wanted_losses]
    assert losses(out, capsys) == wanted_losses
    assert not list(out.rglob("*.err"))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_sizes_takes_nothing_and_a_call_without_a_word_explains_itself(
    platform: str, machine: dict[str, str], tmp_path: Path
) -> None:
    settings, _ = SETTINGS[platform]
    more = {name: value.format(logs=INCIDENT / BROKERS[0]) for name, value in settings.items()}
    told = {"OUT": str(tmp_path / "e"), "DATA_DIRS": str(INCIDENT / BROKERS[0] / DISK), **more}
    done = collected(platform, machine, tmp_path, mode="sizes", **told)
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "e").rglob("*"))
    assert ("KiB" if platform != "msk" else "broker-2 of g") in done.stderr
    asked = collected(platform, machine, tmp_path, mode="", **told)
    assert asked.returncode == 2
    assert "Read this script and its settings first" in asked.stderr


@pytest.mark.parametrize(
    ("platform", "settings", "told"),
    [
        ("bare-metal", {"CONFIG": "nowhere"}, "no log.dirs in nowhere: set CONFIG"),
        ("bare-metal", {"DATA_DIRS": "/nowhere"}, "/nowhere is not there"),
        ("bare-metal", {"BROKER_LOGS": "/nowhere"}, "set BROKER_LOGS"),
        (
            "bare-metal",
            {"DATA_DIRS": f"{INCIDENT}/broker-1/{DISK}"},
            f"there is no ./digest.py. Copy it here: where the tool is, it is {digest.__file__}.",
        ),
        (
            "bare-metal",
            {"KAFKA_BIN": "/nowhere"},
            "KAFKA_BIN=/nowhere: set KAFKA_BIN to the folder",
        ),
        ("docker", {}, "no CONTAINERS: name them"),
        ("docker", {"CONTAINERS": "x"}, "x: no such container here"),
        ("strimzi", {"SELECTORS": "app=none"}, "set NAMESPACE and SELECTORS"),
        ("msk", {}, "set LOG_GROUP or S3_LOGS"),
    ],
)
def test_what_cannot_be_had_is_said_and_counted(
    platform: str, settings: dict[str, str], told: str, machine: dict[str, str], tmp_path: Path
) -> None:
    done = collected(platform, machine, tmp_path, OUT=str(tmp_path / "e"), **settings)
    assert done.returncode == 1
    assert f"{told}" in done.stderr
    assert "of the steps failed: see NOT TAKEN above" in done.stderr


@pytest.mark.parametrize("platform", [p for p in PLATFORMS if p != "msk"])
def test_disks_that_are_left_out_on_purpose_are_said_and_are_no_failure(
    platform: str, machine: dict[str, str], tmp_path: Path
) -> None:
    quorum = Path(machine["KAFKA_BIN"]) / "kafka-metadata-quorum.sh"
    quorum.write_text("#!/bin/sh\n")
    kubectl = Path(machine["KAFKA_BIN"]) / "kubectl"
    kubectl.write_text(kubectl.read_text().replace("exit 1 ;;\n  esac ;;", ";;\n  esac ;;"))
    settings, _ = SETTINGS[platform]
    more = {name: value.format(logs=INCIDENT / BROKERS[0]) for name, value in settings.items()}
    disks = {"DATA_DIRS": str(INCIDENT / BROKERS[0] / DISK), "JOURNAL_OF": BROKERS[0]}
    out = tmp_path / "e"
    done = collected(platform, machine, tmp_path, **{**disks, **more, "COPY": "none"}, OUT=str(out))
    assert "LEFT OUT, as COPY=none says: " in done.stderr
    assert "no copy of a lost record can be found" in done.stderr
    assert "NOT TAKEN" not in done.stderr
    assert done.returncode == 0
    assert not list(out.rglob("disk*"))
    wrong = collected(platform, machine, tmp_path, **{**disks, **more, "COPY": "all"})
    assert wrong.returncode == 2
    assert "COPY=all is none of what this script knows: " in wrong.stderr


def test_a_disk_without_room_is_not_begun(machine: dict[str, str], tmp_path: Path) -> None:
    df = Path(machine["KAFKA_BIN"]) / "df"
    df.write_text("#!/bin/sh\nprintf 'h\\nd 9 9 9 9%% /\\n'\n")
    df.chmod(0o755)
    out = tmp_path / "e"
    done = collected("strimzi", machine, tmp_path, OUT=str(out))
    assert done.stderr.count("has room for 9 KiB. Set OUT to a larger disk") == len(BROKERS)
    assert not list(out.rglob("disk.tar"))
    assert list(out.rglob("output.log"))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_scripts_are_sound(platform: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "--for", platform]) == 0
    text = capsys.readouterr().out
    assert text == script(platform)
    assert "# <" not in text
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
    shellcheck = shutil.which("shellcheck")
    if shellcheck is not None:
        told = subprocess.run(
            [shellcheck, "--severity=style", "-"],
            input=text, capture_output=True, text=True, check=False,
        ).stdout  # fmt: skip
        assert told == ""
    changes = ("rm -r", " delete", "docker stop", "kubectl apply", "mv ", "systemctl stop")
    code = [line.split(" #")[0] for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in code if any(word in line for word in changes)] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--for", "kubernetes"], "'kubernetes'"),
        ([], "--for PLATFORM or a PATH"),
        (["--for", "docker", str(INCIDENT)], "takes no PATH"),
        (["/nowhere"], "/nowhere"),
    ],
)
def test_a_call_that_cannot_be_is_refused_in_one_line(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: int | str | None = main(["collect", *words])
    except SystemExit as end:
        status = end.code
    said = capsys.readouterr().err
    assert status == 2
    assert told in said
    assert said.count("\n") == 1
