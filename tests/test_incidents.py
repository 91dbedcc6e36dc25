"""Every captured incident, diagnosed from its folder, answers what its ground truth says.

`expected.json` beside the incidents was worked out from the recorded steps and from bytes, not
from this tool's output: verdicts of committed_records_survive, acknowledged_records_survive and
log_matching; lost offsets by acknowledgement; divergent offsets; ledger rows. Elections are held
against each incident's truth.json.
"""

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from replication.cli import main
from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import FoldedPartition, fold_all

INCIDENTS = Path(__file__).parent / "incidents"
EXPECTED: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (INCIDENTS / "expected.json").read_text()
)
DECIDING = ("committed_records_survive", "acknowledged_records_survive", "log_matching")
CASES = [(i, tp) for i, partitions in EXPECTED.items() for tp in partitions]


@cache
def diagnosed(incident: str) -> list[FoldedPartition]:
    return fold_all(import_evidence([INCIDENTS / incident]).events())


def the_living(incident: str, topic_partition: str) -> FoldedPartition:
    found = [
        f
        for f in diagnosed(incident)
        if f"{f.identity[1]}-{f.identity[3]}" == topic_partition and not f.state.settings.deleted
    ]
    assert len(found) == 1
    return found[0]


def offsets(rows: list[dict[str, Any]], *tiers: str) -> list[int]:
    gone = [r for r in rows if r["tier"] in tiers and r["status"] != "recovered"]
    return sorted(o for r in gone for o in range(r["first_offset"], r["end_offset"]))


@pytest.mark.parametrize(("incident", "topic_partition"), CASES)
def test_verdicts_are_those_of_the_ground_truth(incident: str, topic_partition: str) -> None:
    answer = the_living(incident, topic_partition).answer
    verdicts = {v["invariant"]: v["verdict"] for v in answer.verdicts}
    expected = EXPECTED[incident][topic_partition]["verdicts"]
    assert [verdicts[i] for i in DECIDING] == expected
    if expected == ["HOLDS"] * 3:
        assert answer.findings == []
        assert "VIOLATED" not in verdicts.values()


@pytest.mark.parametrize(("incident", "topic_partition"), CASES)
def test_lost_and_divergent_offsets_are_exact(incident: str, topic_partition: str) -> None:
    answer = the_living(incident, topic_partition).answer
    expected = EXPECTED[incident][topic_partition]
    assert offsets(answer.losses, "acknowledged_by_isr") == expected.get("lost_all", [])
    assert offsets(answer.losses, "acknowledged_by_leader") == expected.get("lost_one", [])
    assert offsets(answer.losses, "committed") == []
    settled = [
        [d["replicas"], d["first_offset"], d["end_offset"]]
        for d in answer.divergences
        if d["status"] == "settled"
    ]
    assert settled == expected.get("divergent", [])


@pytest.mark.parametrize(
    ("incident", "topic_partition"), [c for c in CASES if "losses" in EXPECTED[c[0]][c[1]]]
)
def test_ledger_names_tier_contract_status_and_cause(incident: str, topic_partition: str) -> None:
    answer = the_living(incident, topic_partition).answer
    fields = ("first_offset", "end_offset", "tier", "contract", "status", "cause", "contributing")
    rows = [[loss[f] for f in fields] for loss in answer.losses]
    assert rows == EXPECTED[incident][topic_partition]["losses"]


@pytest.mark.parametrize("incident", EXPECTED)
def test_what_was_removed_lawfully_is_told(
    incident: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By truth.json and the clients' logs alone: acknowledged records below where the logs begin,
    and those of a topic that another one of the name has followed."""
    folder = INCIDENTS / incident
    truth = json.loads((folder / "truth.json").read_text())["partitions"]
    path = folder / "acks.jsonl"
    wanted: Counter[tuple[str, str, str]] = Counter()
    for line in path.read_text().splitlines() if path.exists() else ():
        told = json.loads(line)
        place = f"{told['topic']}-{told['partition']}"
        if told["status"] != "acked" or told["offset"] is None or place not in truth:
            continue
        living = truth[place].get("topic_id") or told.get("topic_id") or ""
        own = told.get("topic_id") or living
        starts = [r["log_start_offset"] or 0 for r in truth[place].get("replicas", {}).values()]
        if own != living:
            wanted[place, own, "topic_deleted"] += 1
        elif told["offset"] < min(starts, default=0):
            wanted[place, own, "log_start"] += 1
    main(["diagnose", str(folder), "--format", "json"])
    rows = json.loads(capsys.readouterr().out)["removed"]
    found = {
        (f"{r['topic']}-{r['partition']}", r["topic_id"] or "", r["why"]): r["acknowledged"]
        for r in rows
    }
    assert found == dict(wanted)
    # Why, by which setting, and up to where; of a deleted topic which copies a start deletes.
    for row in rows:
        told = EXPECTED[incident][f"{row['topic']}-{row['partition']}"]["removed"]
        assert [[b["how"], b["setting"], b["end_offset"]] for b in row["by"]] == told["by"]
        assert (row["deleted_at"], row["next_topic_id"]) == tuple(told["deleted"])
        assert sorted([c["broker"], c["kind"]] for c in row["copies"]) == told["copies"]


def elections() -> Iterator[tuple[str, str]]:
    yield from CASES


@pytest.mark.parametrize(("incident", "topic_partition"), list(elections()))
def test_elections_and_their_kinds(incident: str, topic_partition: str) -> None:
    """A kind may be unknown where the state just before was not printed, never another one."""
    folded = the_living(incident, topic_partition)
    truth = json.loads((INCIDENTS / incident / "truth.json").read_text())
    recorded = {
        (e["leader"], e["leader_epoch"]): e["kind"]
        for e in truth["elections"]
        if e["topic_partition"] == topic_partition
        and e.get("topic_id", folded.identity[2]) == folded.identity[2]
    }
    found = {
        (e["leader"], e["leader_epoch"]): e["kind"] for e in folded.answer.partition["elections"]
    }
    assert set(found) == set(recorded)
    wrong = {k: (v, recorded[k]) for k, v in found.items() if v not in (recorded[k], "unknown")}
    assert wrong == {}
