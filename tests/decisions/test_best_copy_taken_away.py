"""A kept incident: the runbook for an offline partition that takes the dead broker out of the
assignment, and with it the only copy of the last records.

`python -m tests.kafka_lab --scenario runbook_takes_the_best_copy_away` captures it, and
`tests/scenarios/runbook_deletes_the_best_copy.txt` tells it.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from replication.decisions.answer import decide, partition_json
from replication.decisions.choosing import ANY, START
from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from replication.reports.loss_words import with_paths
from tests.kafka_lab.comparing import compare
from tests.kafka_lab.truth import load_truths

KEPT = Path(__file__).parent / "captures" / "runbook_takes_the_best_copy_away__4.3.0"
EVIDENCE = KEPT / "evidence"
ALL = frozenset([1, 2, 3])
# Before the first broker was started again.
OFFLINE = "2026-11-28 13:36:54"
BEST_COPY = "disk-before-restart/t-0"


def only(evidence: Path) -> FoldedPartition:
    (folded,) = fold_all(import_evidence([evidence]).events())
    return folded


@pytest.fixture(scope="module")
def afterwards() -> FoldedPartition:
    return only(EVIDENCE)


def test_what_is_told_is_what_happened() -> None:
    found, _ = compare(KEPT.name, EVIDENCE, load_truths(KEPT / "truth.json"))
    assert found.right, found.text()


def test_before_the_runbook_the_advice_loses_nothing(tmp_path: Path) -> None:
    """The same machines, looked at while the partition was offline."""
    shutil.copytree(EVIDENCE, tmp_path / "evidence")
    as_it_was(tmp_path / "evidence")
    found = decide(only(tmp_path / "evidence").state, down=ALL)
    assert (found.choice.advice, found.choice.replica) == (START, 1)
    lost = {c.replica: c.worst() for c in found.outlook.candidates}
    assert lost == {1: [], 2: [(16, 24)], 3: [(16, 24)]}


def as_it_was(evidence: Path) -> None:
    for place in evidence.glob("*/disk-final"):
        shutil.rmtree(place)
    (evidence / "describe.txt").unlink()
    for log in evidence.glob("*/*.log"):
        lines = log.read_text().splitlines(keepends=True)
        later = (n for n, line in enumerate(lines) if line.startswith("[") and line[1:] > OFFLINE)
        log.write_text("".join(lines[: next(later, len(lines))]))
    acks = evidence / "acks.jsonl"
    sent = [json.loads(line) for line in acks.read_text().splitlines()]
    kept = [one for one in sent if one["ts"].replace("T", " ") < OFFLINE]
    acks.write_text("".join(json.dumps(one) + "\n" for one in kept))


def test_each_copy_that_is_left_is_named(afterwards: FoldedPartition) -> None:
    """Both lay on one broker, and one place was said of both."""
    answer = afterwards.answer
    (loss,), (detail,) = answer.losses, answer.loss_details
    assert (loss["status"], loss["first_offset"], loss["end_offset"]) == ("recoverable", 16, 24)
    told = [(copy["kind"], copy["destroyed_when"], path) for copy, path in with_paths(loss, detail)]
    assert [kind for kind, _, _ in told] == ["salvage", "salvage"]
    places = [path or "" for _, _, path in told]
    assert places[0].endswith(BEST_COPY)
    assert places[1].endswith("-stray")
    # Broker 1 fetches nothing any more: a start as a follower takes nothing away.
    assert not any("follower" in (when or "") for _, when, _ in told)


def test_who_is_no_replica_any_more_is_no_follower(afterwards: FoldedPartition) -> None:
    row: dict[str, Any] = partition_json(decide(afterwards.state, down=ALL))
    assert row["advice"] == ANY
    assert [c["replica"] for c in row["candidates"]] == [2, 3]
    assert [copy for c in row["candidates"] for copy in c["copies"]] == []
    assert [(x["replica"], x["kind"], x["alone"]) for x in row["older_copies"]] == [
        (1, "older", [[16, 24]]),
        (1, "stray", [[16, 24]]),
    ]
