"""The jobs on a real HDFS, by a master and two workers that share no disk: local mode's tables.

A NameNode, a DataNode, a master and two workers are processes; the workers see the driver's folder
empty. Evidence goes in by `hdfs:`, everything else lies there too: event files, tables, checkpoint
directory, the page. While the stream runs, an executor is killed in mid-batch. As a command, as
root (mounts):

    python -m tests.spark.on_hdfs

tests/spark/on_s3.py has the same of an S3-compatible server.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from replication.evidence.event_dumps import read_events
from replication.evidence.importer import import_evidence
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.spark import contracts
from replication.spark.failures import EXIT_TRY_AGAIN
from tests.changed_evidence import INCIDENTS
from tests.spark import standalone
from tests.spark.jobs_in_process import (
    rows,
    run_replay,
    run_stream,
    start_session,
)
from tests.spark.kill_executors import EXECUTOR

# Four clusters in one folder; the last has many partitions.
EVIDENCE = (
    "unclean_election__4.1.1", "not_loss_traps__4.3.0__topic_recreated",
    "isr_shrink_expand__2.8.2__trace", "chaos__2.8.2__seed36",
)  # fmt: skip
STREAM = ("--settle-seconds", "0", "--profile", "small-batches")
STARTS = 5
WHEN = ("at", "at_timestamp")


class Wrong(AssertionError):
    """What is not as it must be."""


def events_below(folder: Path, evidence: str) -> list[str]:
    """Every event, as text, with paths from the evidence's folder on."""
    found = [event for path in sorted(folder.iterdir()) for event in read_events(path)]
    return texts([e for e in found if isinstance(e, Event)], evidence)


def texts(events: list[Event], evidence: str) -> list[str]:
    """Events as text, with paths from the evidence's folder on."""
    return sorted(wire.to_json(event).replace(evidence, "") for event in events)


def job(
    name: str, cluster: standalone.Cluster, *flags: object, status: tuple[int, ...] = (0,)
) -> str:
    """Runs a job to its end; its answer. Raises Wrong."""
    started = time.monotonic()
    done = standalone.submitted(name, cluster, *flags)
    if done.returncode not in status:
        raise Wrong(f"{name} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
    say(f"{name}: status {done.returncode}, {time.monotonic() - started:.0f} s")
    return done.stdout


def say(text: str) -> None:
    """One line of progress."""
    print(text, file=sys.stderr, flush=True)


def streamed(cluster: standalone.Cluster, root: str) -> int:
    """Runs the stream, kills one executor after its first commit of events, and goes on to the
    end; how many were killed in mid-batch."""
    flags = ("--source", f"{root}/events", "--tables", f"{root}/streamed",
             "--checkpoint-dir", f"{root}/ck", *STREAM)  # fmt: skip
    killed = 0
    for _ in range(STARTS):
        with running(standalone.submit("stream", cluster, *flags)) as (process, log):
            while process.poll() is None:
                if not killed and "fold micro-batch 0" in log.read_text("utf-8", "replace"):
                    victims = [pid for pid in executors() if pid]
                    os.kill(victims[0], signal.SIGKILL)
                    killed += 1
                    say(f"executor {victims[0]} killed while the stream runs")
                time.sleep(0.05)
        say(f"stream: status {process.returncode}")
        if process.returncode == 0:
            return killed
        if process.returncode != EXIT_TRY_AGAIN:
            raise Wrong(f"the stream ended with {process.returncode}:\n{log.read_text()[-4000:]}")
    raise Wrong("the stream does not come to its end")


@contextmanager
def running(command: list[str]) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """A job that is running, and the file of what it says."""
    with tempfile.TemporaryDirectory() as name, standalone.processes() as start:
        log = Path(name) / "log.txt"
        yield start(command, log, standalone.environment(), standalone.ROOT), log


def executors() -> list[int]:
    """The executors' JVMs of this machine that this process's workers have started."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if EXECUTOR in command and b"on_hdfs" not in command and mine(entry):
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(found)


def mine(entry: Path) -> bool:
    """Whether a process stands in a folder of this run."""
    return Path(os.readlink(entry / "cwd")).is_relative_to(FOLDER[0])


FOLDER: list[Path] = []


def compared(spark: SparkSession, name: str, far: Path, near: Path) -> None:
    """Raises Wrong where a table that was copied from HDFS is not local mode's."""
    for table in contracts.tables().values():
        if not table.is_of_jobs or table.name == "_batches":
            continue
        if not (far / table.name).is_dir():
            say(f"{name}: no {table.name}")
            continue
        a, b = (plain(rows(spark, folder, table.name)) for folder in (far, near))
        if a != b:
            raise Wrong(f"{name}: {table.name}: {len(a)} rows, local mode's {len(b)}")
        say(f"{name}: {table.name}: {len(a)} rows, equal")


def plain(found: list[dict[str, Any]]) -> list[str]:
    """Rows without when they were written."""
    return sorted(repr({k: v for k, v in row.items() if k not in WHEN}) for row in found)


def checked(
    folder: Path, root: str, cluster: standalone.Cluster, copied: Callable[..., None]
) -> None:
    """The whole round. copied: `hadoop fs`. Raises Wrong."""
    evidence, far, near = folder / "evidence", folder / "far", folder / "near"
    for name in EVIDENCE:
        shutil.copytree(INCIDENTS / name, evidence / name)
    copied("-put", str(evidence), f"{root}/evidence")
    said = job("import_artifacts", cluster, f"{root}/evidence", "--out", f"{root}/events")
    say(said.strip().splitlines()[-1])
    job("replay", cluster, "--source", f"{root}/events", "--tables", f"{root}/replayed",
        "--keep-events", status=(0, 1, 3))  # fmt: skip
    killed = streamed(cluster, root)
    asked(cluster, root)
    job("maintain", cluster, "--tables", f"{root}/streamed", "--checkpoint-dir", f"{root}/ck",
        "--keep-hours", "0", "--files", "2")  # fmt: skip
    far.mkdir()
    copied("-get", *(f"{root}/{n}" for n in ("events", "replayed", "streamed", "page.html")),
           str(far))  # fmt: skip
    laptops = texts(list(import_evidence([evidence]).events()), str(evidence))
    if events_below(far / "events", f"{root}/evidence") != laptops:
        raise Wrong("the imported events are not the laptop's")
    say(f"import: {len(laptops)} events, equal")
    near.mkdir()
    (near / "in").symlink_to(far / "events")
    spark = start_session(folder / "warehouse")
    run_replay(spark, near, keep_events=True)
    run_stream(spark, near, profile="small-batches")
    spark.stop()
    asked(standalone.Cluster("local[2]", settings=standalone.QUICK), str(near))
    spark = start_session(folder / "warehouse")
    compared(spark, "replay", far / "replayed", near / "replayed")
    compared(spark, "stream", far / "streamed", near / "tables")
    spark.stop()
    pages = [page_of(each, (root, str(near))) for each in (far, near)]
    if pages[0] != pages[1]:
        raise Wrong("the page is not local mode's")
    say(f"page: {len(pages[0])} characters, equal")
    if not killed:
        raise Wrong("no executor was killed")


def asked(cluster: standalone.Cluster, root: str) -> None:
    """The checks and the page of the replay's tables."""
    job("check_quality", cluster, "--tables", f"{root}/replayed", status=(0, 1))
    job("report", cluster, "--tables", f"{root}/replayed", "--out", f"{root}/page.html")


def page_of(folder: Path, roots: Sequence[str]) -> str:
    """The page, without where evidence and tables lie."""
    text = (folder / "page.html").read_text(encoding="utf-8")
    for root in roots:
        text = text.replace(root, "")
    return text


def main(argv: list[str]) -> int:
    """The command; exit status 0 when every table is local mode's."""
    argparse.ArgumentParser(description=__doc__).parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="on-hdfs-") as name:
        folder = FOLDER[:] = [Path(name).resolve()]
        [own] = folder
        hidden, workers = own / "drivers", own / "workers"
        for each in (hidden, workers):
            each.mkdir()
        with (
            standalone.hdfs(workers) as root,
            standalone.cluster(workers, hidden, settings=standalone.QUICK) as cluster,
        ):
            try:
                checked(hidden, root, cluster, partial(standalone.copied, root))
            except Wrong as error:
                print(error)
                return 1
    print("on HDFS without a shared disk: every table is local mode's")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
