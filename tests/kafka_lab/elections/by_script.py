"""Carries out the script that `decide --script` writes, on real brokers: nobody is asked."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.kafka_lab import node_settings
from tests.kafka_lab.cluster import Cluster
from tests.kafka_lab.elections.asking import asked
from tests.kafka_lab.elections.stopped import Stopped, log_of
from tests.kafka_lab.elections.tools import write_tools
from tests.kafka_lab.processes import java

PATIENCE = 400.0
START = """#!/usr/bin/env bash
# As a distribution's own: -daemon CONFIG. The process is known by the file beside its settings.
home="$(dirname "$2")"
setsid {java} {options} -Dkafka.logs.dir="$home/logs" -cp "{class_path}" kafka.Kafka "$2" \\
  > "$home/script-console.txt" 2>&1 < /dev/null &
echo $! > "$2.pid"
"""
STOP = """#!/usr/bin/env bash
kill "$(cat "$CONFIG_HERE.pid")" || {{ echo "No kafka server to stop"; exit 1; }}
"""
JPS = """#!/usr/bin/env bash
echo "2 Jps"
kill -0 "$(cat "$CONFIG_HERE.pid" 2> /dev/null)" 2> /dev/null && echo "1 Kafka" || true
"""


class NotCarriedOut(Exception):
    """The script stopped; what it printed."""


def elect_by_script(stopped: Stopped, replica: int) -> dict[int, tuple[str, int | None]]:
    """The disks put back, the script run to its end; what the elected log holds then."""
    cluster, scratch = stopped.cluster, stopped.experiment.directory / "elect-by-script"
    scratch.mkdir()
    path = scratch / "plan.sh"
    asked(stopped.evidence, "--elect", str(replica), "--script", str(path))
    stopped.put_back()
    try:
        done = subprocess.run(
            [str(path)],
            env={**os.environ, **_settings(cluster, scratch)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode:
            raise NotCarriedOut(done.stdout[-3000:])
        return log_of(cluster, replica)
    finally:
        for broker in cluster.brokers:
            _end(_config(cluster, broker))
        cluster.kill_everything()


def _settings(cluster: Cluster, scratch: Path) -> dict[str, str]:
    tools = write_tools(cluster.version, scratch / "bin")
    start = START.format(
        java=java(),
        options=" ".join(node_settings.JVM_OPTIONS),
        class_path=cluster.version.class_path,
    )
    for name, text in (
        ("kafka-server-start.sh", start),
        ("kafka-server-stop.sh", STOP.replace("{{", "{").replace("}}", "}")),
        ("jps", JPS),
    ):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    found = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "YES": "1",
        "SAFE": str(scratch / "safe"),
        "B": ",".join(f"127.0.0.1:{port}" for port in cluster.external.values()),
        "Z": f"127.0.0.1:{cluster.meeting_port}",
    }
    if cluster.version.kraft:  # It runs already.
        found |= {
            "C": f"127.0.0.1:{cluster.controller_port}",
            "CONTROLLER_CONFIG": "none",
            "AT_controller": "bash -c true",
        }
    for n in cluster.brokers:
        config = _config(cluster, n)
        found[f"LOG_DIR_{n}"] = str(cluster.data(n)[0])
        found[f"CONFIG_{n}"] = str(config)
        found[f"AT_{n}"] = f"env CONFIG_HERE={config} bash -c"
    return found


def _config(cluster: Cluster, broker: int) -> Path:
    return cluster.home(broker) / "node.properties"


def _end(config: Path) -> None:
    """The process that the script started, by its own number."""
    named = config.with_name(f"{config.name}.pid")
    if named.exists():
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(named.read_text()), signal.SIGKILL)
        named.unlink()
