"""Brokers' lines through shipper, topic and stream, each of them killed, all sent twice.

    python -m tests.spark.live_faults [--seed 1] [--faults 6] [--tape RUN]

Needs rsyslog with its Kafka output. The files of a committed capture (or of a taped run of the
laboratory) grow over some minutes; rsyslog ships them into a topic of a real broker, and the
stream joins, judges and alerts. Meanwhile, in an order and at moments of the seed: the shipper,
the topic's broker and the stream are killed with SIGKILL and started again, and a second shipper
sends every line once more. In the end the tables say what importing the same files says, no event
is there twice, nothing is in quarantine, and each change of an alert came once, or again under the
same notification_id. Exit status 0 only then.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.evidence.importer import import_evidence
from replication.evidence.shipping.live_join import named
from replication.protocol.judgement.bounded import fold_all
from tests.evidence.shipping.test_spool import logs_of
from tests.kafka_lab.truth import read_lines
from tests.spark.kafka_broker import Broker, make_topic, started_broker
from tests.spark.live_fleet import NAME, TOPIC, rows_of, start_rsyslog, start_stream, verdicts
from tests.spark.test_alerts import Receiver

INCIDENT = "unclean_election__2.8.2"
PATIENCE = 420.0
KINDS = ("stream", "shipper", "topic's broker", "all sent twice")
CLASSES = ("applied", "duplicates", "quarantined", "held", "superseded")
Chunk = tuple[str, str, bytes]


def chunks_of_capture() -> list[Chunk]:
    """(host, file, text) in the order of the lines' stamps."""
    found: list[tuple[str, Chunk]] = []
    for log in logs_of(INCIDENT):
        stamp = ""
        for line in log.read_bytes().splitlines(keepends=True):
            stamp = line[1:24].decode("ascii", "replace") if line.startswith(b"[2") else stamp
            found.append((stamp, (log.parent.name, log.name, line)))
    return [chunk for _, chunk in sorted(found, key=lambda each: each[0])]


def chunks_of_tape(run: Path) -> list[Chunk]:
    told = sorted(read_lines(run / "tape.jsonl"), key=lambda each: float(each["at"]))
    return [(t["host"], t["file"], t["text"].encode()) for t in told]


@dataclass
class Site:
    """Everything that runs. copied: the same files as a person would have copied them."""

    folder: Path
    broker: Broker
    receiver: Receiver = field(default_factory=lambda: Receiver(refuse=3))
    shippers: "list[subprocess.Popen[bytes]]" = field(default_factory=list)
    stream: "subprocess.Popen[bytes] | None" = None
    done: Counter[str] = field(default_factory=Counter)

    @property
    def machines(self) -> Path:
        return self.folder / "machines"

    @property
    def copied(self) -> Path:
        return self.folder / "copied"

    def ship(self, name: str) -> None:
        """A shipper with a memory of its own by that name."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        self.shippers.append(start_rsyslog(folder, self.machines, self.broker, self.folder))

    def begin(self) -> None:
        """Starts the stream, which alerts."""
        alert = "--alert", f"webhook={self.receiver.address}"
        self.stream = start_stream(self.folder, self.broker, alert)

    def feed(self, chunks: list[Chunk], seconds: float) -> None:
        """Lets the files grow, evenly."""
        pause = 1.0
        each = max(1, int(len(chunks) * pause / seconds))
        for first in range(0, len(chunks), each):
            for host, file, text in chunks[first : first + each]:
                grows = self.folder / file if file.endswith(".digest") else (
                    self.machines / host / "logs" / file
                )  # fmt: skip
                for path in (grows, self.copied / host / file):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("ab") as out:
                        out.write(text)
            time.sleep(pause)

    def strike(self, kind: str, chance: random.Random) -> None:
        """One fault, and what puts it right."""
        self.done[kind] += 1
        print(f"{time.strftime('%H:%M:%S')} {kind}", flush=True)
        if kind == "stream":
            assert self.stream is not None
            assert self.stream.poll() is None, f"the stream ended with {self.stream.returncode}"
            os.killpg(self.stream.pid, signal.SIGKILL)
            self.stream.wait()
            self.begin()
        elif kind == "shipper":
            self.shippers[0].kill()
            self.shippers.pop(0).wait()
            time.sleep(chance.choice((0, 3)))
            self.ship("first")
        elif kind == "topic's broker":
            self.broker.process.kill()
            time.sleep(chance.choice((0, 3)))
            self.broker.restart()
        else:
            self.ship(f"again-{self.done[kind]}")

    def end(self) -> None:
        for process in self.shippers:
            process.kill()
            process.wait()
        if self.stream is not None and self.stream.poll() is None:
            self.stream.terminate()
            try:
                self.stream.wait(120)
            except subprocess.TimeoutExpired:
                os.killpg(self.stream.pid, signal.SIGKILL)
        self.receiver.server.shutdown()


def wanted(copied: Path) -> dict[str, Any]:
    """What importing the files says: rows of each table as `shown` has them."""
    folded = fold_all(named(e, NAME) for e in import_evidence([copied]).events())
    return {
        "verdicts": shown("verdicts", (v for f in folded for v in f.answer.verdicts)),
        "loss_ledger": shown("loss_ledger", (x for f in folded for x in f.answer.losses)),
        "at_risk": shown("at_risk", (r for f in folded for r in f.answer.at_risk)),
    }


COLUMNS = {
    "verdicts": ("topic", "partition", "invariant", "verdict"),
    "loss_ledger": ("topic", "partition", "first_offset", "end_offset", "tier", "cause", "status"),
    "at_risk": ("topic", "partition", "failure", "broker", "first_offset", "end_offset", "cause"),
}


def shown(table: str, rows: Iterator[dict[str, Any]]) -> list[tuple[Any, ...]]:
    kept = (row for row in rows if not row.get("over"))
    return sorted(tuple(row[c] for c in COLUMNS[table]) for row in kept)


def differences(site: Site, expected: dict[str, Any]) -> list[str]:
    """What is not as it should be, in words."""
    tables, found = site.folder / "tables", []
    for table, rows in expected.items():
        came = shown(table, iter(rows_of(tables, table)))
        if came != rows:
            found.append(f"{table}: {came}, imported {rows}")
    events = [row["event_id"] for row in rows_of(tables, "replica_events")]
    if len(events) != len(set(events)):
        found.append(f"{len(events) - len(set(events))} events are there twice")
    refused = rows_of(tables, "quarantine")
    if refused:
        found.append(f"{len(refused)} rows in quarantine, such as {refused[0]['reason']}")
    for row in rows_of(tables, "_batches"):
        if row["rows_in"] != sum(row[what] or 0 for what in CLASSES):
            found.append(f"{row['query']} {row['micro_batch_id']} does not add up")
    return found


def told_wrongly(receiver: Receiver) -> list[str]:
    """Alerts that were told twice under another id, or that do not follow from one another."""
    found, last = list[str](), dict[str, tuple[str, str, str]]()
    for each in receiver.told:
        for alert in each["alerts"]:
            now = alert["status"], alert["labels"]["severity"], each["notification_id"]
            before = last.get(alert["fingerprint"])
            if before is not None and before[:2] == now[:2] and before[2] != now[2]:
                found.append(f"{alert['labels']['alertname']} told twice as {now[:2]}")
            last[alert["fingerprint"]] = now
    return found


def run(folder: Path, chunks: list[Chunk], seed: int, faults: int, seconds: float) -> int:
    """The whole story; the exit status."""
    chance = random.Random(seed)
    kinds = [KINDS[n % len(KINDS)] for n in range(faults)]
    chance.shuffle(kinds)
    (folder / "log-broker").mkdir()
    with started_broker(folder / "log-broker") as broker:
        make_topic(broker, TOPIC)
        site = Site(folder, broker)
        site.machines.mkdir()
        growing = threading.Thread(target=site.feed, args=(chunks, seconds))
        try:
            site.ship("first")
            site.begin()
            growing.start()
            for kind in kinds:
                time.sleep(chance.uniform(0.5, 2.0) * seconds / max(1, faults))
                site.strike(kind, chance)
            growing.join()
            print(f"{len(chunks)} pieces; killed or doubled: {dict(site.done)}", flush=True)
            wrong = _settled(site, wanted(site.copied))
        finally:
            growing.join()
            site.end()
    wrong += told_wrongly(site.receiver)
    told = Counter(f"{a[1]} {a[0]} {a[2]}" for a in site.receiver.rows())
    print(f"{len(site.receiver.told)} notifications: {dict(told)}")
    print("\n".join(wrong) or "nothing lost, nothing doubled: the tables are those of an import")
    return 1 if wrong or not site.receiver.told else 0


def _settled(site: Site, expected: dict[str, Any]) -> list[str]:
    """What still differs when nothing changes any more, or after so long."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert site.stream is not None
        assert site.stream.poll() is None, f"the stream ended with {site.stream.returncode}"
        wrong = differences(site, expected) if verdicts(site.folder / "tables") else ["no verdict"]
        if not wrong and not _pending(site):
            return []
        time.sleep(2)
    return wrong or ["alerts are still to be delivered"]


def _pending(site: Site) -> bool:
    """Whether what was lost has not been told yet."""
    told = {a[1] for a in site.receiver.rows()}
    lost = any(r["status"] == "lost" for r in rows_of(site.folder / "tables", "loss_ledger"))
    return lost and "RecordsLost" not in told


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=180.0, help="over which the files grow")
    parser.add_argument("--tape", type=Path, help="a taped run of the laboratory")
    parser.add_argument("--keep", type=Path, help="leave everything in this folder")
    flags = parser.parse_args(argv)
    if shutil.which("rsyslogd") is None:
        print("live_faults: install rsyslog and rsyslog-kafka", file=sys.stderr)
        return 2
    chunks = chunks_of_tape(flags.tape) if flags.tape else chunks_of_capture()
    if flags.keep:
        flags.keep.mkdir(parents=True)
        return run(flags.keep, chunks, flags.seed, flags.faults, flags.seconds)
    with tempfile.TemporaryDirectory() as name:
        return run(Path(name), chunks, flags.seed, flags.faults, flags.seconds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
