"""A standalone cluster of processes, and a real HDFS: each worker with a disk of its own."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from replication.paths import project_root, spark_jars
from tests.spark.jobs_in_process import shipped_settings

ROOT = project_root()
HOME = Path(pyspark.__file__).parent
PATIENCE = 300.0
HDFS_JARS = ROOT / ".jars" / "hdfs"
# Of short runs on a busy machine, as jobs_in_process.py has them.
QUICK = (
    *(
        f"{name}={value}"
        for name, value in shipped_settings().items()
        if name.startswith(("spark.sql.codegen", "spark.sql.adaptive", "spark.driver.extra"))
    ),
    "spark.driver.memory=1500m",
    "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
)
JAVA = ("java", "-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def environment() -> dict[str, str]:
    """Of every process of Spark."""
    return {**os.environ, "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}  # fmt: skip


@contextmanager
def processes() -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Starts processes, each a session of its own; all of them end with the block."""
    started: list[subprocess.Popen[bytes]] = []

    def start(
        command: list[str], log: Path, settings: Mapping[str, str], folder: Path | None = None
    ) -> "subprocess.Popen[bytes]":
        with log.open("wb") as out:
            started.append(subprocess.Popen(command, env=dict(settings), stdout=out, stderr=out,
                                            start_new_session=True, cwd=folder))  # fmt: skip
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def waited_for(reached: Callable[[], bool], what: str) -> None:
    """Waits until it is so. Raises AssertionError."""
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


@dataclass(frozen=True)
class Cluster:
    """A master's address, and the sessions of its workers, executors among them. settings: of the
    jobs, NAME=VALUE."""

    address: str
    workers: list[int] = field(default_factory=list)
    settings: tuple[str, ...] = ()


@contextmanager
def cluster(
    folder: Path, hidden: Path, workers: int = 2, settings: tuple[str, ...] = ()
) -> Iterator[Cluster]:
    """A master and workers of one core. hidden: a folder of the driver's that each worker sees
    empty. Needs root and unshare."""
    address = f"spark://127.0.0.1:{free_port()}"
    spark_class = str(HOME / "bin" / "spark-class")
    master = [spark_class, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1",
              "--port", address.rpartition(":")[2], "--webui-port", "0"]  # fmt: skip
    alone = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {hidden} && exec "$@"', "sh"]
    log = folder / "master.log"
    with processes() as start:
        start(master, log, environment())
        waited_for(lambda: "ALIVE" in log.read_text(), "no master")
        sessions = []
        for number in range(workers):
            worker = [spark_class, "org.apache.spark.deploy.worker.Worker", "--cores", "1",
                      "--memory", "1g", "--webui-port", "0", "--work-dir",
                      str(folder / f"work-{number}"), address]  # fmt: skip
            told = folder / f"worker-{number}.log"
            sessions.append(start([*alone, *worker], told, environment()).pid)
        joined = "Registering worker"
        waited_for(lambda: log.read_text().count(joined) == workers, "no workers")
        yield Cluster(address, sessions, settings)


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """A NameNode and a DataNode; the address of its root."""
    port = free_port()
    address = f"hdfs://127.0.0.1:{port}"
    settings = {
        "fs.defaultFS": address, "hadoop.tmp.dir": f"{folder}/hdfs", "dfs.replication": "1",
        "dfs.namenode.http-address": "127.0.0.1:0", "dfs.datanode.address": "127.0.0.1:0",
        "dfs.datanode.http.address": "127.0.0.1:0", "dfs.datanode.ipc.address": "127.0.0.1:0",
        "dfs.permissions.enabled": "false",
    }  # fmt: skip
    conf = folder / "hdfs-conf"
    conf.mkdir()
    for name in ("core-site.xml", "hdfs-site.xml"):
        write_settings(conf / name, settings)
    java = [*JAVA, "-cp", f"{conf}:{HDFS_JARS}/*"]
    name_node = [*java, "org.apache.hadoop.hdfs.server.namenode.NameNode"]
    subprocess.run([*name_node, "-format", "-nonInteractive"], check=True, capture_output=True)
    with processes() as start:
        start(name_node, folder / "namenode.log", os.environ)
        start([*java, "org.apache.hadoop.hdfs.server.datanode.DataNode"], folder / "datanode.log",
              os.environ)  # fmt: skip
        command = [*java, "org.apache.hadoop.fs.FsShell", "-mkdir", "-p", f"{address}/ready"]

        def ready() -> bool:
            if subprocess.run(command, capture_output=True, check=False).returncode:
                return False
            put = [*command[:-3], "-put", "-f", str(conf / "core-site.xml"), f"{address}/ready/x"]
            return not subprocess.run(put, capture_output=True, check=False).returncode

        waited_for(ready, "no HDFS")
        yield address


def copied(
    address: str, *arguments: str, settings: Mapping[str, str] | None = None, jars: str = ""
) -> None:
    """`hadoop fs ARGUMENTS`, by Spark's own client: -put, -get. settings: Hadoop's. jars: of the
    classpath, behind Spark's."""
    with tempfile.TemporaryDirectory() as conf:
        # The shell of Hadoop wants the file, whatever it says.
        write_settings(Path(conf, "core-site.xml"), settings or {})
        command = [*JAVA, "-cp", f"{conf}:{HOME}/jars/*:{jars}", "org.apache.hadoop.fs.FsShell",
                   "-fs", address, *arguments]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)


def write_settings(path: Path, settings: Mapping[str, str]) -> None:
    """A file of Hadoop's settings."""
    told = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    path.write_text(f"<configuration>{told}</configuration>", encoding="utf-8")


def submit(job: str, cluster: Cluster, *flags: object) -> list[str]:
    """The call of a job of jobs/."""
    settings = (
        "spark.executor.memory=600m", "spark.driver.memory=1200m",
        f"spark.jars={','.join(map(str, spark_jars()))}", *cluster.settings,
    )  # fmt: skip
    return [
        str(HOME / "bin" / "spark-submit"), "--master", cluster.address,
        "--properties-file", "conf/spark-defaults.conf",
        *(word for setting in settings for word in ("--conf", setting)),
        f"jobs/{job}.py", *map(str, flags),
    ]  # fmt: skip


def submitted(job: str, cluster: Cluster, *flags: object) -> subprocess.CompletedProcess[str]:
    """A job, run to its end."""
    return subprocess.run(submit(job, cluster, *flags), cwd=ROOT, env=environment(),
                          capture_output=True, text=True, check=False)  # fmt: skip
