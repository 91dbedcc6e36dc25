"""Carries out a plan of `decide` on a real cluster: the commands that it prints, step by step.

Only the placeholders are filled in, as a person would. A server is started and stopped as its own
scripts do it, the same class and the same signal, but as a process of the laboratory.
"""

import os
import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kafka_lab.cluster import Cluster
from tests.kafka_lab.node_settings import CONTROLLER_ID
from tests.kafka_lab.processes import LabTimeout

TOOL_SECONDS = 120.0


@dataclass
class Done:
    """What became of one step. status: of its command; passed: its check printed what it must;
    seconds: how long it took until it did."""

    action: str
    broker: int | None
    command: str
    status: int
    output: str
    check: str = ""
    passed: bool = False
    printed: str = ""
    seconds: float = 0.0


@dataclass
class Hands:
    """Whoever carries out a plan. tools: the folder of the release's scripts; scratch: for copies
    of directories and files; older: the folder of an older copy that is put back."""

    cluster: Cluster
    tools: Path
    scratch: Path
    older: Path | None = None
    done: list[Done] = field(default_factory=list)

    def carry_out(self, step: dict[str, Any]) -> Done:
        """One step and its check."""
        made = Done(step["action"], step["broker"], step["command"], 0, "")
        self.done.append(made)
        made.status, made.output = self._run(step["command"], step)
        same = step["check"] == "the same command"
        made.check = step["command"] if same else step["check"]
        began = time.monotonic()
        made.printed = made.output if same else self._run(made.check, step)[1]
        while not passes(step, made.printed) and time.monotonic() - began < step["within"]:
            time.sleep(0.5)
            made.printed = self._run(made.check, step)[1]
        made.passed = passes(step, made.printed)
        made.seconds = round(time.monotonic() - began, 1)
        return made

    def _run(self, command: str, step: dict[str, Any]) -> tuple[int, str]:
        """Its exit status, and all that it prints."""
        broker = step["broker"]
        if command.startswith("kafka-server-start.sh"):
            return self._start(broker)
        if command.startswith("kafka-server-stop.sh"):
            assert broker is not None, command
            running = self.cluster.running(broker)
            if running:
                self.cluster.terminate(broker)
            return int(not running), "" if running else "No kafka server to stop"
        if command == "jps":
            runs = self.cluster.running(CONTROLLER_ID if broker is None else broker)
            return 0, "2 Jps\n1 Kafka" if runs else "2 Jps"
        self.scratch.mkdir(parents=True, exist_ok=True)
        found = subprocess.run(
            ["bash", "-c", self.filled(command, broker)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TOOL_SECONDS,
            check=False,
            cwd=self.scratch,
            env={**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}"},
        )
        return found.returncode, found.stdout

    def _start(self, broker: int | None) -> tuple[int, str]:
        """broker: None for the controllers, of which the laboratory has one."""
        if broker is None:
            if not self.cluster.running(CONTROLLER_ID):
                self.cluster.start_keeper()
            return 0, ""
        if self.cluster.running(broker):
            return 0, "it runs already"
        try:
            self.cluster.start_broker(broker)
        except (LabTimeout, ChildProcessError) as error:
            return 1, str(error)
        return 0, ""

    def filled(self, command: str, broker: int | None) -> str:
        """The command with the placeholders of the plan filled in for this cluster."""
        named = ",".join(
            f"127.0.0.1:{self.cluster.external[b]}" for b in self.cluster.answering()
        ) or next(f"127.0.0.1:{port}" for port in self.cluster.external.values())
        command = re.sub(r"--bootstrap-server B\b", f"--bootstrap-server {named}", command)
        controller = f"--bootstrap-controller 127.0.0.1:{self.cluster.controller_port}"
        command = re.sub(r"--bootstrap-controller C\b", controller, command)
        zookeeper = f"127.0.0.1:{self.cluster.meeting_port}"
        command = re.sub(r"(--zookeeper|zookeeper-shell\.sh) Z\b", rf"\1 {zookeeper}", command)
        command = re.sub(r"\bOLDER\b", str(self.older), command)
        command = re.sub(r"\bSAFE\b", str(self.scratch / "safe"), command)
        command = re.sub(r"\bFILE\b", str(self.scratch / "partitions.json"), command)
        return re.sub(r"\bLOG_DIR/(\S+)", lambda m: str(self._replica(broker, m[1])), command)

    def _replica(self, broker: int | None, name: str) -> Path:
        """Of the broker's log directories the one that the partition lies in."""
        assert broker is not None, name
        places = [data / name for data in self.cluster.data(broker)]
        return next((place for place in places if place.is_dir()), places[0])


def passes(step: dict[str, Any], printed: str) -> bool:
    """Whether a check printed what its step says."""
    lines = printed.splitlines()
    hides = step["hides"]
    return any(re.search(step["shows"], line) for line in lines) and not (
        hides and any(re.search(hides, line) for line in lines)
    )
