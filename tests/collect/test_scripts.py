"""The scripts of `collect --for`, run against commands that give what an incident left.

Only the commands of the platform are pretended (docker, kubectl, aws, journalctl, Kafka's tools);
tar, du, df, digest.py and the scripts are the real ones. What is collected has to give the
incident's losses, by the tool itself.
"""

import json
import os
import re
import shutil
import subprocess
import tarfile
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
# A controller alone (MUTE: its name) and a broker that is down (DOWN) answer no tool.
KAFKA_TOOL = f"""told=$(dirname "$0")/told
env >>"$told.environment"
printf '%s\\n' "$*" >>"$told.words"
if [ "$4" = /dev/stdin ]; then cat /dev/stdin >>"$told.words"; fi
case " $MUTE " in
*" ${{POD:-here}} "*) echo "Timed out waiting for a node. Call: listTopics" >&2; exit 1 ;;
esac
case "$0" in
*kafka-topics*) {DESCRIBE} ;;
*kafka-log-dirs*) ;;
*) {NO_QUORUM} ;;
esac
"""
# What a container's settings give to all that runs in it.
WITHIN = """POD=$name KAFKA_HEAP_OPTS=-Xms4g KAFKA_OPTS=-javaagent:agent.jar JMX_PORT=9999 \\
  KAFKA_JMX_OPTS=-Dport=1 KAFKA_LOG4J_OPTS=-Dlog=server.log"""
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
inspect)
  if [ -n "$UNREACHABLE" ]; then echo "Cannot connect to the Docker daemon" >&2; exit 1; fi
  if [ ! -d {INCIDENT}/"$2" ]; then echo "Error: No such object: $2" >&2; exit 1; fi ;;
logs)
  name=$3
  {OUTPUT} ;;
exec)
  name=$3
  shift 3
  case " $DOWN " in
  *" $name "*) echo "Error response from daemon: container $name is not running" >&2; exit 1 ;;
  esac
  {WITHIN} "${{@//"/var/lib/kafka/data"/{INCIDENT}/$name/{DISK}}}" ;;
cp)
  name=${{2%%:*}} path=${{2#*:}}
  if [ "$path" != /var/lib/kafka/data ]; then
    echo "Error response from daemon: Could not find the file $path in container $name" >&2
    exit 1
  fi
  tar -C {INCIDENT}/"$name" -cf - {DISK} ;;
esac
""",
    "kubectl": f"""
shift 2
printf '%s\\n' "$*" >>"$(dirname "$0")/told.kubectl"
if [ -n "$UNREACHABLE" ]; then echo "The connection to the server was refused" >&2; exit 1; fi
case "$1:$2:$4" in
get:pods:*none*) ;;
get:pods:*zookeeper*) if [ -n "$ZOOKEEPER_RUNS" ]; then echo pod/zookeeper-0; fi ;;
get:pods:*) printf 'pod/%s\\n' {" ".join(BROKERS)} ;;
get:pod:*) printf 'data-0-%s' "$3" ;;
logs:*)
  name=$2
  case "$*" in
  *--previous*)
    echo "Error from server (BadRequest): previous terminated container" \\
      "\\"kafka\\" in pod \\"$name\\" not found" >&2
    exit 1 ;;
  esac
  {OUTPUT} ;;
exec:*)
  name=$2
  while [ "$1" != -- ]; do shift; done
  shift
  case " $DOWN " in
  *" $name "*)
    echo 'error: Internal error occurred: unable to upgrade connection:' \\
      'container not found ("kafka")' >&2
    exit 1 ;;
  esac
  set -- "${{@//"/var/lib/kafka"/{INCIDENT}/$name/{DISK}}}"
  set -- "${{@//"/mnt/data/data0"/{INCIDENT}/$name/{DISK}}}"
  {WITHIN} "${{@//"/var/lib/zookeeper"/$ZOOKEEPER_RUNS}}" && exit 0
  status=$?
  echo "command terminated with exit code $status" >&2
  exit $status ;;
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
        wanted = [] if platform == "msk" else ["metadata-quorum.txt"]
        named = [Path(line.split()[2].rstrip(":")).name for line in missed]
        assert named == wanted, done.stderr
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
        ("bare-metal", {"CONFIG": "nowhere"}, "nowhere is not there, or this user may not read it"),
        ("docker", {"CONTAINERS": "x"}, "NOT TAKEN: x: Error: No such object: x. docker ps -a"),
        ("docker", {"CONTAINERS": "x", "UNREACHABLE": "1"}, "x: Cannot connect to the Docker"),
        ("strimzi", {"UNREACHABLE": "1"}, "in kafka: The connection to the server was refused"),
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
    # Each is said once, with its own cause.
    assert "NOT TAKEN:  " not in done.stderr
    assert ("no pod of" in done.stderr) is (settings.get("SELECTORS") == "app=none")
    assert "of the steps failed: see NOT TAKEN above" in done.stderr


@pytest.mark.parametrize("platform", [p for p in PLATFORMS if p != "msk"])
def test_disks_that_are_left_out_on_purpose_are_said_and_are_no_failure(
    platform: str, machine: dict[str, str], tmp_path: Path
) -> None:
    quorum = Path(machine["KAFKA_BIN"]) / "kafka-metadata-quorum.sh"
    quorum.write_text("#!/bin/sh\n")
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


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        ("file changed as we read it", False),
        ("File removed before we read it", False),
        ("Cannot open: Permission denied", True),
        ("file changed as we read it\\nerror: unexpected EOF", True),
    ],
)
def test_a_copy_beside_a_broker_that_goes_on_writing_is_of_use(
    words: str, counts: bool, machine: dict[str, str], tmp_path: Path
) -> None:
    tar = Path(machine["KAFKA_BIN"]) / "tar"
    tar.write_text(
        f"#!/bin/sh\n{shutil.which('tar')} \"$@\"\nprintf 'tar: ./a: {words}\\n' >&2\nexit 1\n"
    )
    tar.chmod(0o755)
    done = collected("strimzi", machine, tmp_path, OUT=str(tmp_path / "e"))
    assert ("disk.tar (exit status 1): " in done.stderr) is counts


def test_a_folder_that_cannot_be_made_ends_it_before_anything_is_asked(
    machine: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    done = collected("strimzi", machine, tmp_path, OUT=str(tmp_path / "file"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no folder can be made there. Set OUT to a folder" in done.stderr
    assert not (Path(machine["KAFKA_BIN"]) / "told.kubectl").exists()


def test_a_disk_without_room_is_not_begun(machine: dict[str, str], tmp_path: Path) -> None:
    df = Path(machine["KAFKA_BIN"]) / "df"
    df.write_text("#!/bin/sh\nprintf 'h\\nd 9 9 9 9%% /\\n'\n")
    df.chmod(0o755)
    out = tmp_path / "e"
    done = collected("strimzi", machine, tmp_path, OUT=str(out))
    assert done.stderr.count("has room for 9 KiB. Set OUT to a larger disk") == len(BROKERS)
    assert not list(out.rglob("disk.tar"))
    assert list(out.rglob("output.log"))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_second_run_leaves_what_the_first_took(
    platform: str, machine: dict[str, str], tmp_path: Path
) -> None:
    """After the broker was stopped, as the scripts advise: no tool gets an answer any more."""
    out = tmp_path / "e"
    settings, _ = SETTINGS[platform]
    more = {name: value.format(logs=INCIDENT / BROKERS[0]) for name, value in settings.items()}
    more |= {"DATA_DIRS": str(INCIDENT / BROKERS[0] / DISK), "JOURNAL_OF": BROKERS[0]}
    more |= {"OUT": str(out), "COPY": settings.get("COPY", "whole")}
    collected(platform, machine, tmp_path, **more)
    first = contents(out)
    assert {Path(name).name for name in first} >= {"describe.txt", "log-dirs.txt"}
    collected(platform, machine, tmp_path, **more, MUTE=" ".join((*BROKERS, "here")))
    both = contents(out)
    assert {name: both.get(name) for name in first} == first
    assert both.keys() > first.keys()
    assert len(list(out.iterdir())) == 2


@pytest.mark.parametrize("copy", ["whole", "digest"])
def test_copies_of_a_running_and_of_a_stopped_broker_are_read_together(
    copy: str, machine: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "evidence"
    for disk, mute in (("disk-before-restart", ""), (DISK, "here")):
        for broker in BROKERS:
            if not (INCIDENT / broker / disk).is_dir():
                continue
            logs = tmp_path / "logs" / broker
            if not logs.exists():
                shutil.copytree(INCIDENT / broker, logs, ignore=lambda _, n: set(n) - LOGS)
            collected(
                "bare-metal", machine, tmp_path, OUT=str(out / broker), BROKER_LOGS=str(logs),
                DATA_DIRS=str(INCIDENT / broker / disk), COPY=copy, MUTE=mute,
                DIGEST=str(Path(digest.__file__)),
            )  # fmt: skip
    shutil.copy(INCIDENT / "acks.jsonl", out)
    assert len(list(out.rglob("disk-1.*"))) == 7
    assert losses(out, capsys) == losses(INCIDENT, capsys)


CONTAINERS = ("docker", "strimzi", "confluent-for-kubernetes")


@pytest.mark.parametrize("platform", CONTAINERS)
@pytest.mark.parametrize("silent", ["MUTE", "DOWN"])
def test_one_that_does_not_answer_does_not_keep_the_others_from_being_asked(
    platform: str, silent: str, machine: dict[str, str], tmp_path: Path
) -> None:
    settings, out = SETTINGS[platform][0], tmp_path / "e"
    first_of_them = {silent: " ".join(BROKERS[:2])}
    done = collected(platform, machine, tmp_path, OUT=str(out), **settings, **first_of_them)
    [described] = out.rglob("describe.txt")
    assert described.read_bytes() == (INCIDENT / "describe.txt").read_bytes()
    assert [p.name for p in out.rglob("log-dirs.txt")] == ["log-dirs.txt"]
    nobody = collected(
        platform, machine, tmp_path, OUT=str(out), **settings, **{silent: " ".join(BROKERS)}
    )
    why = {"MUTE": "Call: listTopics", "DOWN": "not found", "docker": "is not running"}
    told = why["docker" if platform == "docker" and silent == "DOWN" else silent]
    [line] = [li for li in nobody.stderr.splitlines() if "NOT TAKEN" in li and "describe" in li]
    assert all(f"{broker} (exit status 1): " in line for broker in BROKERS)
    assert told in line
    assert "command terminated" not in done.stderr + nobody.stderr


@pytest.mark.parametrize("platform", ["strimzi", "confluent-for-kubernetes"])
@pytest.mark.parametrize("copy", ["whole", "digest"])
def test_the_disk_of_a_pod_that_is_down_is_told_with_the_cause_and_the_way_to_it(
    platform: str, copy: str, machine: dict[str, str], tmp_path: Path
) -> None:
    more = {"OUT": str(tmp_path / "e"), "COPY": copy, "DIGEST": str(Path(digest.__file__))}
    done = collected(platform, machine, tmp_path, DOWN=BROKERS[1], **more)
    told = [li for li in done.stderr.splitlines() if "NOT TAKEN: broker-2:" in li]
    assert len(told) == 1
    assert 'container not found ("kafka")' in told[0]
    assert "mount its PersistentVolumeClaim (data-0-broker-2), or a snapshot" in told[0]
    assert "DATA_DIR to" not in told[0]
    wrong = collected(platform, machine, tmp_path, **more, DATA_DIR="/nowhere")
    assert "No such file or directory. Set DATA_DIR to log.dirs" in wrong.stderr


@pytest.mark.parametrize("platform", CONTAINERS)
def test_tools_in_a_brokers_container_take_none_of_its_javas_settings(
    platform: str, machine: dict[str, str], tmp_path: Path
) -> None:
    client = tmp_path / "client.properties"
    client.write_text("security.protocol=SASL_SSL\n")
    done = collected(
        platform, machine, tmp_path, OUT=str(tmp_path / "e"), **SETTINGS[platform][0],
        COMMAND_CONFIG=str(client), TOOL_OPTS="-Djava.security.krb5.conf=krb5.conf",
    )  # fmt: skip
    told = (Path(machine["KAFKA_BIN"]) / "told.environment").read_text()
    assert told.count("KAFKA_HEAP_OPTS=-Xmx256m\n") == 3, done.stderr
    assert told.count("KAFKA_OPTS=-Djava.security.krb5.conf=krb5.conf\n") == 3
    for name in ("JMX_PORT", "KAFKA_JMX_OPTS", "KAFKA_LOG4J_OPTS", "JAVA_TOOL_OPTIONS"):
        assert told.count(f"\n{name}=\n") == 3
    words = (Path(machine["KAFKA_BIN"]) / "told.words").read_text()
    assert words.count("security.protocol=SASL_SSL\n") == 3


@pytest.mark.parametrize("platform", PLATFORMS)
def test_client_settings_come_before_a_tools_own_word(
    platform: str, machine: dict[str, str], tmp_path: Path
) -> None:
    """kafka-metadata-quorum takes them nowhere else (tried with 4.1.1)."""
    client = tmp_path / "client.properties"
    client.write_text("a=b\n")
    settings, _ = SETTINGS[platform]
    more = {name: value.format(logs=INCIDENT / BROKERS[0]) for name, value in settings.items()}
    more |= {"DATA_DIRS": str(INCIDENT / BROKERS[0] / DISK), "JOURNAL_OF": BROKERS[0]}
    more |= {"OUT": str(tmp_path / "e"), "COPY": settings.get("COPY", "none")}
    collected(platform, machine, tmp_path, **more, COMMAND_CONFIG=str(client))
    words = (Path(machine["KAFKA_BIN"]) / "told.words").read_text().splitlines()
    calls = [line for line in words if "--bootstrap-server" in line]
    assert len(calls) == (2 if platform == "msk" else 3)
    assert all(re.search(r"--command-config \S+ (--)?describe", line) for line in calls), calls
    gone = collected(platform, machine, tmp_path, **more, COMMAND_CONFIG="/nowhere/client")
    assert gone.returncode == 2
    assert "COMMAND_CONFIG=/nowhere/client cannot be read" in gone.stderr


def test_a_pods_output_is_fetched_once(machine: dict[str, str], tmp_path: Path) -> None:
    collected("strimzi", machine, tmp_path, OUT=str(tmp_path / "e"))
    calls = (Path(machine["KAFKA_BIN"]) / "told.kubectl").read_text().splitlines()
    logs = sorted(line for line in calls if line.startswith("logs "))
    previous = [line for line in logs if "--previous" in line]
    assert (len(logs), len(previous)) == (2 * len(BROKERS), len(BROKERS))


def test_zookeepers_pods_are_read_as_well(machine: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "zk"
    (folder / "data" / "version-2").mkdir(parents=True)
    (folder / "data" / "version-2" / "log.1").write_bytes(b"ZKLG")
    out = tmp_path / "e"
    done = collected(
        "strimzi", machine, tmp_path, OUT=str(out), ZOOKEEPER_RUNS=str(folder), COPY="none"
    )
    [kept] = out.rglob("zookeeper.tar")
    with tarfile.open(kept) as opened:
        assert "./data/version-2/log.1" in opened.getnames()
    calls = (Path(machine["KAFKA_BIN"]) / "told.kubectl").read_text()
    assert "exec zookeeper-0 -i -c zookeeper -- tar" in calls, done.stderr


def test_digests_are_made_in_pods_that_have_python(
    machine: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "e"
    done = collected(
        "strimzi", machine, tmp_path, OUT=str(out), COPY="digest",
        DIGEST=str(Path(digest.__file__)),
    )  # fmt: skip
    assert len(list(out.rglob("disk-1.digest.jsonl.gz"))) == len(BROKERS), done.stderr
    shutil.copy(INCIDENT / "acks.jsonl", out)
    assert losses(out, capsys) == losses(INCIDENT, capsys)
    (Path(machine["KAFKA_BIN"]) / "python3").write_text(
        '#!/bin/sh\necho "sh: python3: not found" >&2\nexit 127\n'
    )
    (Path(machine["KAFKA_BIN"]) / "python3").chmod(0o755)
    without = collected(
        "strimzi", machine, tmp_path, OUT=str(tmp_path / "other"), COPY="digest",
        DIGEST=str(Path(digest.__file__)),
    )  # fmt: skip
    assert without.stderr.count("python3: not found. Where the image has no python3") == len(
        BROKERS
    )
    assert not list((tmp_path / "other").rglob("*.gz"))


def test_what_was_not_taken_is_written_down_and_is_no_evidence(
    machine: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, logs = tmp_path / "e", str(INCIDENT / "broker-1")
    quorum = Path(machine["KAFKA_BIN"]) / "kafka-metadata-quorum.sh"
    # A tool's own error has the form of a line of a broker's log.
    error = (
        "[2026-11-27 15:18:20,101] INFO [Broker id=7] Leader t-0 with topic id Some(x) starts at "
        "leader epoch 9 from offset 4 (state.change.logger)"
    )
    quorum.write_text(f"#!/bin/sh\necho '{error}' >&2\nexit 1\n")
    more = {"BROKER_LOGS": logs, "DATA_DIRS": f"{INCIDENT}/broker-1/{DISK}"}
    done = collected("bare-metal", machine, tmp_path, OUT=str(out), COPY="none", **more)
    [noted] = out.rglob("not-taken.txt")
    text = noted.read_text()
    assert error in text
    assert "LEFT OUT, as COPY=none says" in text
    told = [
        li.strip() for li in done.stderr.splitlines() if "NOT TAKEN: " in li or "LEFT OUT" in li
    ]
    assert len(told) == len(text.splitlines()) - 1
    capsys.readouterr()
    main(["diagnose", "--format", "json", str(out)])
    inventory = json.loads(capsys.readouterr().out)["inventory"]
    assert [row["broker"] for row in inventory["brokers"]] == [1]
    [ignored] = [row for row in inventory["ignored"] if row["path"].endswith("not-taken.txt")]
    assert ignored["reason"] == "what a script of collect did not take, and why: read it"


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
