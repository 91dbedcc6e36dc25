"""The jobs on an S3-compatible server, as tests/spark/on_hdfs.py has them on HDFS.

One driver writes at a time, by Delta's LogStore for that (docs/running.md); without it the jobs
refuse. As a command, as root (mounts); `make .jars/s3/.complete` gets what it needs:

    python -m tests.spark.on_s3
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from replication.paths import spark_jars
from tests.spark import on_hdfs, standalone

S3 = standalone.ROOT / ".jars" / "s3"
BUCKET = "s3a://replication"
KEPT = (
    "spark.delta.logStore.s3a.impl=io.delta.storage.S3SingleDriverLogStore",
    "spark.sql.streaming.checkpointFileManagerClass="
    "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager",
)


@contextmanager
def server(folder: Path) -> Iterator[dict[str, str]]:
    """A server with an empty bucket; Hadoop's settings for it."""
    port = standalone.free_port()
    command = [str(S3 / "moto" / "bin" / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    with standalone.processes() as start:
        start(command, folder / "s3.log", os.environ)

        def listens() -> bool:
            with socket.socket() as one:
                return one.connect_ex(("127.0.0.1", port)) == 0

        standalone.waited_for(listens, "no S3 server")
        code = ("import boto3, sys; boto3.client('s3', endpoint_url=sys.argv[1], region_name="
                "'us-east-1', aws_access_key_id='a', aws_secret_access_key='b')"
                ".create_bucket(Bucket='replication')")  # fmt: skip
        address = f"http://127.0.0.1:{port}"
        python = str(S3 / "moto" / "bin" / "python")
        subprocess.run([python, "-c", code, address], check=True)
        yield {
            "fs.s3a.endpoint": address, "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true", "fs.s3a.access.key": "a",
            "fs.s3a.secret.key": "b", "fs.s3a.connection.ssl.enabled": "false",
        }  # fmt: skip


def refused(cluster: standalone.Cluster) -> None:
    """A job without a LogStore that keeps writers apart. Raises Wrong where it begins."""
    flags = ("--source", f"{BUCKET}/events", "--tables", f"{BUCKET}/tables")
    done = standalone.submitted("replay", cluster, *flags)
    # spark-submit puts both on one.
    said = done.stdout + done.stderr
    if done.returncode != 2 or "two writers of s3a: would not be kept apart" not in said:
        raise on_hdfs.Wrong(f"not refused: {done.returncode}\n{said[-2000:]}")
    on_hdfs.say("replay without a LogStore for S3: status 2, refused")


def main(argv: list[str]) -> int:
    """The command; exit status 0 when every table is local mode's."""
    argparse.ArgumentParser(description=__doc__).parse_args(argv)
    jars = f"{S3}/*"
    brought = [f"local:{path}" for path in sorted(S3.resolve().glob("*.jar"))]
    with tempfile.TemporaryDirectory(prefix="on-s3-") as name:
        folder = on_hdfs.FOLDER[:] = [Path(name).resolve()]
        hidden, workers = folder[0] / "drivers", folder[0] / "workers"
        for each in (hidden, workers):
            each.mkdir()
        with server(workers) as hadoop:
            settings = (
                *standalone.QUICK,
                # On each machine already, and behind Spark's own: the SDK brings an older logger.
                f"spark.jars={','.join([*map(str, spark_jars()), *brought])}",
                *(f"spark.hadoop.{key}={value}" for key, value in hadoop.items()),
            )  # fmt: skip
            with standalone.cluster(workers, hidden, settings=(*settings, *KEPT)) as cluster:
                copied = partial(standalone.copied, BUCKET, settings=hadoop, jars=jars)
                try:
                    refused(standalone.Cluster(cluster.address, settings=settings))
                    on_hdfs.checked(hidden, BUCKET, cluster, copied)
                except on_hdfs.Wrong as error:
                    print(error)
                    return 1
    print("on S3 without a shared disk: every table is local mode's")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
