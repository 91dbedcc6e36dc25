"""At any moment: what has been shipped so far, imported as a folder, gives the same answer.

Real captures of several releases with digests of their directories, in micro-batches, each line
late by up to a bound, some of them sent twice; looked at after every micro-batch.
"""

import json
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from replication.evidence import digest
from replication.evidence.collecting.envelopes import ShippedLine, shipped_lines
from replication.evidence.importer import import_evidence
from replication.evidence.shipping.live_join import LiveJoin, named
from replication.evidence.shipping.silence import moment_of
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import fold_all
from tests.evidence.shipping.test_live_join import newest
from tests.evidence.shipping.test_spool import INCIDENTS, folder_of, logs_of, sent_of

CAPTURES = (
    "kip101_scenario_1__0.10.2.2__loss_only", "same_epoch_power_loss__1.1.1",
    "unclean_election__2.8.2", "acks1_loss__3.9.1", "unclean_election__4.1.1",
    "not_loss_traps__4.3.0__topic_recreated",
)  # fmt: skip
QUICK = ("kip101_scenario_1__0.10.2.2__loss_only", "acks1_loss__3.9.1")
# A third of the time of all.
LONG = "unclean_election__2.8.2"
BATCHES, LATE, ROUNDS = 6, 60, 4


def stamps(incident: str) -> tuple[int, int]:
    """When its first and its last line was printed."""
    text = "\n".join(log.read_text(encoding="utf-8") for log in logs_of(incident))
    found = [moment_of(line[1:24]) for line in text.split("\n") if line.startswith("[2")]
    return min(at for at in found if at), max(at for at in found if at)


def digests_of(
    incident: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[float, bytes]]:
    """(share of the capture's time, line) of some rounds beside each broker's directory, in whose
    place a later copy, and at last nothing, comes to lie. Broker 1 is down in the last rounds."""
    first, last = stamps(incident)
    found: list[tuple[float, bytes]] = []
    for home in sorted((INCIDENTS / incident).glob("broker-*")):
        copies = sorted(home.glob("disk-*"), key=lambda copy: copy.name == "disk-final")
        beside, printed = work / home.name, list[str]()
        lines = digest.DigestLines(str(beside), 60, printed.append)
        for number in range(ROUNDS):
            share = (number + 1) / ROUNDS
            at = int(first + (last - first) * share)
            runs = home.name != "broker-1" or number + 2 < ROUNDS
            monkeypatch.setattr(digest, "_now", lambda at=at: at)
            monkeypatch.setattr(digest, "is_locked", lambda _, runs=runs: runs)
            shutil.rmtree(beside, ignore_errors=True)
            if number + 1 < ROUNDS or home.name != "broker-2":
                shutil.copytree(copies[min(number, len(copies) - 1)], beside)
            else:
                beside.mkdir()
            lines.tell()
            for text in printed:
                sent = json.dumps({"hostname": home.name, "msg": text}).encode()
                found.append((share, sent))
            printed.clear()
    return found


def answers(events: Iterable[Event]) -> dict[tuple[str, int], Any]:
    """By topic and partition, whatever ids they are called by."""
    found: dict[tuple[str, int], Any] = {}
    for folded in fold_all(list(events)):
        answer, (_, topic, _, partition, *_) = folded.answer, folded.identity
        verdicts = [(v["invariant"], v["verdict"], v["reason"]) for v in answer.verdicts]
        rows = [
            {k: v for k, v in row.items() if k not in ("finding_id", "cluster_id", "topic_id")}
            for row in (*answer.losses, *answer.at_risk)
        ]
        told = (verdicts, rows, folded.counts["quarantined"], folded.counts["held"])
        found.setdefault((topic, partition), []).append(told)
    return {name: sorted(told, key=repr) for name, told in found.items()}


def copied(sent: list[bytes], folder: Path) -> Path:
    """The same as a person would have copied it: logs, and what each digest had printed."""
    logs = []
    for each in sent:
        [line] = shipped_lines(each)
        assert isinstance(line, ShippedLine)
        if not line.digest:
            logs.append(each)
            continue
        path = folder / line.host / "printed.digest"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as out:
            out.write(json.loads(each)["msg"] + "\n")
    # As logs are: in the order of their bytes, whenever their lines came.
    return folder_of(logs, folder)


@pytest.mark.parametrize(
    "incident",
    [
        pytest.param(
            i, marks=[pytest.mark.slow] * (i not in QUICK) + [pytest.mark.sweep] * (i == LONG)
        )
        for i in CAPTURES
    ],
)
def test_every_prefix_says_what_an_import_of_it_says(
    incident: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(11)
    lines = sent_of(incident)
    placed = [(number / len(lines), each) for number, each in enumerate(lines)]
    told = digests_of(incident, tmp_path / "beside", monkeypatch)
    assert told
    sent = [each for _, each in sorted([*placed, *told], key=lambda p: p[0])]
    order = sorted(range(len(sent)), key=lambda n: n + chance.uniform(0, LATE))
    live = LiveJoin(tmp_path / "live", tmp_path / "events")
    seen: list[int] = []
    for number in range(BATCHES):
        part = order[number * len(order) // BATCHES : (number + 1) * len(order) // BATCHES]
        seen += part
        again = chance.sample(seen, len(part) // 5)
        live.step(number, [line for n in (*part, *again) for line in shipped_lines(sent[n])])
        folder = copied([sent[n] for n in sorted(seen)], tmp_path / f"copied-{number}")
        events = [named(event, "cluster") for event in import_evidence([folder]).events()]
        assert answers(newest(tmp_path / "events")) == answers(events), number
