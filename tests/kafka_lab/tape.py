"""What shippers beside a running cluster would have sent, and when: to be shipped again later."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from replication.evidence import digest
from tests.kafka_lab.cluster import Cluster

EVERY = 0.5


class Tape:
    """Records the growth of every log file and of what digest.py prints beside each node.

    `directory`/tape.jsonl holds {at, host, file, offset, text}: seconds since 1970 when it was
    seen, the node's folder, the file's name, the byte where the text begins; whole lines.
    """

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self._machines = cluster.directory
        self._digests = directory / "digests"
        self._digests.mkdir(parents=True, exist_ok=True)
        self._out = (directory / "tape.jsonl").open("w")
        self._read: dict[int, int] = {}
        self._ended = threading.Event()
        self._printing = [
            self._started(node, data) for node in cluster.nodes() for data in cluster.data(node)
        ]
        self._thread = threading.Thread(target=self._follow)

    def __enter__(self) -> "Tape":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._printing:
            process.terminate()
            process.wait()
        self._ended.set()
        self._thread.join()
        self._out.close()

    def _started(self, node: int, data: Path) -> "subprocess.Popen[bytes]":
        with (self._digests / f"{data.parent.name}.digest").open("ab") as out:
            command = [sys.executable, "-I", digest.__file__, str(data), "--every", "1"]
            return subprocess.Popen([*command, "--to-stdout"], stdout=out)

    def _follow(self) -> None:
        while not self._ended.wait(EVERY):
            self._look()
        self._look()

    def _look(self) -> None:
        files = [*self._machines.glob("*/logs/*.log*"), *self._digests.glob("*.digest")]
        for path in sorted(files):
            host = path.stem if path.suffix == ".digest" else path.parent.parent.name
            with path.open("rb") as stream:
                file = os.fstat(stream.fileno()).st_ino
                at = self._read.get(file, 0)
                stream.seek(at)
                whole = b"".join(stream.read().rpartition(b"\n")[:2])
            if whole:
                text = whole.decode("utf-8", "replace")
                told = {"at": time.time(), "host": host, "file": path.name, "offset": at}
                self._out.write(json.dumps({**told, "text": text}) + "\n")
                self._read[file] = at + len(whole)
        self._out.flush()
