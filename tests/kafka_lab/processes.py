"""Java processes of the laboratory: started without a shell, always ended, also when frozen."""

import ctypes
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.kafka_lab.node_settings import JVM_OPTIONS

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
# Below what Linux gives to outgoing connections, so that a stopped broker's port stays its own.
FIRST_PORT, LAST_PORT = 20_000, 31_000


class LabTimeout(Exception):
    """What the laboratory waited for did not happen."""


def wait_for(what: str, reached: Callable[[], bool], seconds: float, pause: float = 0.1) -> None:
    end = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > end:
            raise LabTimeout(f"{what}: not within {seconds:.0f} s")
        time.sleep(pause)


def accepts(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False


def free_ports(count: int, seed: int) -> list[int]:
    """Ports that nobody listens on; `seed` spreads neighbours apart."""
    found: list[int] = []
    port = FIRST_PORT + seed * 37 % (LAST_PORT - FIRST_PORT)
    while len(found) < count:
        port = port + 1 if port < LAST_PORT else FIRST_PORT
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
    return found


def _die_with_parent() -> None:
    """A test run that is killed leaves no cluster behind."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def java() -> str:
    found = shutil.which("java")
    if found is None:
        raise LabTimeout("no java in PATH: the laboratory needs Java 17")
    return found


def run_tool(class_path: str, arguments: list[str], seconds: float = 300) -> str:
    """A Kafka command line tool to its end; its standard output. Raises where it fails."""
    done = subprocess.run(
        [java(), *JVM_OPTIONS, "-cp", class_path, *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise LabTimeout(f"{arguments[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


class JavaProcess:
    """One server; `console` takes what it prints outside its logs."""

    def __init__(self, class_path: str, options: list[str], main: list[str], console: Path) -> None:
        console.parent.mkdir(parents=True, exist_ok=True)
        self.console = console
        self.frozen = False
        with console.open("ab") as output:
            self.process = subprocess.Popen(
                [java(), *JVM_OPTIONS, *options, "-cp", class_path, *main],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=console.parent,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """SIGKILL also ends a frozen process."""
        self.process.kill()
        self.process.wait(timeout=30)
        self.frozen = False

    def terminate(self, seconds: float = 30) -> bool:
        """SIGTERM; whether it ended by itself in time, else it was killed."""
        self.resume()
        self.process.terminate()
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        self.frozen = True

    def resume(self) -> None:
        if self.frozen:
            self.process.send_signal(signal.SIGCONT)
            self.frozen = False
