"""Real brokers' records in every message format: lost, recovered, produced again by killed calls.

    python -m tests.recovery.produced_again [--kills N] [--format N]...

Format 2 is what a 4.3.0 broker wrote: five codecs, each plain, idempotent, in committed, aborted
and open transactions; formats 0 and 1 what a 0.10.2.2 broker wrote in four codecs. The directory is
set aside as a broker would before it deletes it; `recover` finds the records, `--produce` brings
them into a 4.3.0 cluster while it is killed at random moments, and what consumers of committed
records are given is held against what was lost: as multisets, byte for byte.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import confluent_kafka as ck

from tests.kafka_lab.cluster import Cluster, Plan
from tests.kafka_lab.versions import Version
from tests.recovery.lost_evidence import recover_rows, row
from tests.recovery.test_real_brokers import (
    Content,
    consumed,
    produce_all,
    without_origin,
)

TIMES = 5
OLD_CODECS = ("none", "gzip", "snappy", "lz4")
OLD_FORMATS = {0: "0.9.0", 1: "0.10.2"}
# No headers before format 2, and no time in format 0.
OLD_RECORDS: tuple[tuple[bytes | None, bytes | None], ...] = (
    (None, b"no key"),
    (b"tombstone", None),
    (None, None),
    (bytes(range(256)), b"\xff\xfe\0"),
    (b"", b""),
    (b"large", b"x" * 900_000),
)
PRODUCE = (
    "from replication.recovery import producing; producing.RECORDS_IN_BATCH = 1\n"
    "from replication.cli import main; import sys; sys.exit(main())"
)


def old_format(bootstrap: str) -> Counter[Content]:
    """Every kind of record that formats 0 and 1 have, in every codec of theirs."""
    found: Counter[Content] = Counter()
    for codec in OLD_CODECS:
        settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50}
        producer = ck.Producer({**settings, "enable.idempotence": False})
        for number, (key, value) in enumerate(OLD_RECORDS * TIMES):
            at = 1_600_000_000_000 + number * 30 * 86_400_000
            producer.produce("t", value, key, partition=0, timestamp=at)
            found[key, value, (), at] += 1
        assert producer.flush(60) == 0
    return found


def written(message_format: int, directory: Path) -> tuple[Counter[Content], int, dict[str, Any]]:
    """What a broker wrote of that format (its directory is set aside under `directory`/evidence):
    what consumers may see, how many others there are, and the ledger's row."""
    is_new = message_format == 2
    version = Version("4.3.0" if is_new else "0.10.2.2")
    plan = Plan(version, brokers=(1,))
    with Cluster(plan, directory / "source") as cluster:
        settings = {} if is_new else {"message_format_version": OLD_FORMATS[message_format]}
        cluster.create_topic("t", {0: [1]}, retention_ms=-1, **settings)
        bootstrap = f"127.0.0.1:{cluster.external[1]}"
        visible: Counter[Content] = Counter()
        left_open = 0
        if is_new:
            for _ in range(TIMES - 1):
                told, open_ones = produce_all(bootstrap)
                visible += told
                # Whoever begins anew under the same id aborts what it left open.
                left_open = open_ones.total()
                time.sleep(1)
        else:
            visible = old_format(bootstrap)
        cluster.terminate(1)
        copied = directory / "evidence" / "broker-1"
        shutil.copytree(cluster.data(1)[0], copied)
        (copied / "t-0").rename(copied / f"t-0.{'0' * 32}-delete")
        # The log directories of old releases name no cluster.
        named = cluster.cluster_id if is_new else None
        ledger = row(
            1 << 40, first=0, topic_id=cluster.topic_ids.get("t"), cluster_id=named,
            leader_epoch=None,
        )  # fmt: skip
    return visible, left_open, ledger


def killed_and_run_again(out: Path, bootstrap: str, kills: int, seed: int) -> int:
    """Runs `--produce` until it is through; how often it was killed on the way."""
    chance = random.Random(seed)
    command = [
        sys.executable, "-c", PRODUCE, "recover", "--out", str(out), "--produce", bootstrap,
        "--to-topic", "back", "--yes",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}
    killed = 0
    while True:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("Guarantee") and killed < kills:
                # From here on it produces, or is still asking for its own progress.
                time.sleep(chance.uniform(0, 0.3))
                process.send_signal(signal.SIGKILL)
                killed += 1
        status = process.wait()
        if status == -signal.SIGKILL:
            continue
        assert status in (0, 1, 5), "".join(said)
        if status != 5:
            return killed


def without_time(found: Counter[Content]) -> Counter[Content]:
    """The same without timestamps, which format 0 has none of."""
    return Counter((key, value, headers, 0) for key, value, headers, _ in found.elements())


def run(message_format: int, kills: int, directory: Path) -> str | None:
    """What is wrong with one format, None where nothing is."""
    visible, left_open, ledger = written(message_format, directory)
    out = directory / "out"
    result = recover_rows(directory / "evidence", out, ledger)
    if message_format == 0:
        visible = without_time(visible)
    if result.became["recovered"] != visible.total():
        return f"{visible.total()} were lost, {result.became['recovered']} recovered"
    if result.became["held_back"] != left_open:
        return f"{left_open} were left open, {result.became['held_back']} held back"
    with Cluster(Plan(Version("4.3.0"), brokers=(1,)), directory / "target") as cluster:
        bootstrap = f"127.0.0.1:{cluster.external[1]}"
        cluster.create_topic("back", {0: [1]}, retention_ms=-1)
        killed = killed_and_run_again(out, bootstrap, kills, message_format)
        found = without_origin(consumed(bootstrap, "back"))
    if message_format == 0:
        found = without_time(found)
    missing, extra = (visible - found).total(), (found - visible).total()
    print(
        f"format {message_format}: {visible.total()} records lost, produced again by a call that "
        f"was killed {killed} times: {missing} missing, {extra} extra",
        flush=True,
    )
    if killed < kills:
        return f"it was killed only {killed} times"
    return f"{missing} missing, {extra} extra" if missing or extra else None


def main(words: list[str]) -> int:
    """Exit status 1 where a record is missing or there twice."""
    parser = argparse.ArgumentParser(prog="python -m tests.recovery.produced_again")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--format", type=int, action="append", choices=(0, 1, 2), default=[])
    chosen = parser.parse_args(words)
    wrong = []
    for message_format in chosen.format or (0, 1, 2):
        with tempfile.TemporaryDirectory(prefix="produced-again-") as scratch:
            told = run(message_format, chosen.kills, Path(scratch))
            wrong += [f"format {message_format}: {told}"] if told else []
    print("\n".join(wrong) or "nothing missing, nothing twice")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
