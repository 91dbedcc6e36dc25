"""Sends that were lost and of which no producer was promised anything: acks=0, or no answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from replication.cli import main
from replication.recovery.unpromised import unpromised_words
from tests.evidence.segment_bytes import Record, batch
from tests.recovery.lost_evidence import (
    BEFORE,
    FIRST_LOST,
    acknowledged,
    lines_of,
    log_directory,
    lost_evidence,
    partition,
    recover_rows,
    row,
)

INCIDENTS = Path(__file__).parents[1] / "incidents"
KEYS = [b"a", b"quiet", b"b"]
LOST = batch(FIRST_LOST, *(Record(b"v-" + key, key=key) for key in KEYS))
# Of the leader's own epoch, and its copy ends before it: it may have come after the copy.
FETCHED = batch(4, Record(b"v-fetched", key=b"fetched"), leader_epoch=1)
# By it the leader's copy is of 2026-01-02, and of leader epoch 1.
NEWEST = batch(FIRST_LOST, Record(b"new", timestamp=1_767_312_000_000), leader_epoch=1)


def sends(*, retried: bool = False) -> str:
    """Two answered sends that are lost; one with acks=0 beside them, one that nobody answered and
    no log shows, one that nobody answered and the leader has, and one that was refused; two that
    the leader may have: its copy is of before them."""
    told = [acknowledged([3], payload_id="a"), acknowledged([5], payload_id="b")]
    told += [acknowledged([n], payload_id=f"before-{n}") for n in range(2)]
    told.append(acknowledged([None], payload_id="quiet", acks="0", status="sent", client="q"))
    told.append(acknowledged([None], payload_id="nowhere", status="unknown"))
    told.append(acknowledged([None], payload_id="before-2", status="unknown"))
    told.append(acknowledged([None], payload_id="refused", status="failed"))
    told.append(acknowledged([None], payload_id="fetched", status="unknown"))
    late = "2026-01-03T00:00:00.000Z"
    told.append(acknowledged([None], payload_id="late", status="unknown", ts=late))
    told += [acknowledged([None], payload_id="a", status="unknown")] if retried else []
    return "".join(told)


Told = list[tuple[str, str, str, bool | None, int | None]]


def told_of(evidence: Path, out: Path, *ledger: dict[str, Any]) -> Told:
    recover_rows(evidence, out, *(ledger or (row(4), row(6, first=5))))
    rows = lines_of(out / "sent_never_promised.jsonl")
    names = ("client", "payload_id", "acks", "written", "offset")
    return [tuple(r[n] for n in names) for r in rows]  # type: ignore[misc]


@pytest.mark.parametrize("retried", [False, True])
def test_what_the_leader_lacks_and_nobody_was_promised_is_told_beside(
    retried: bool, tmp_path: Path
) -> None:
    acks = sends(retried=retried)
    evidence = lost_evidence(tmp_path / "e", LOST, 6, acks=acks, others=NEWEST)
    later = log_directory(evidence / "broker-3", 3)
    partition(later, BEFORE + NEWEST + FETCHED, [(0, 0), (1, FIRST_LOST)])
    assert told_of(evidence, tmp_path / "out") == [
        ("p", "nowhere", "all", None, None), ("q", "quiet", "0", True, 4),
    ]  # fmt: skip
    keys = lines_of(tmp_path / "out" / "lost_records_keys.jsonl")
    assert [k["payload_id"] for k in keys if k["client"]] == ["a", "b"]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["sent_never_promised"] == 2
    # What the ledger names is recovered by it, and not told a second time.
    named = told_of(evidence, tmp_path / "named", row(6))
    assert [payload_id for _, payload_id, *_ in named] == ["nowhere"]


def test_where_the_leaders_log_is_not_whole_only_what_a_copy_shows_is_told(tmp_path: Path) -> None:
    evidence = lost_evidence(tmp_path / "e", LOST, 6, acks=sends(), others=NEWEST)
    (evidence / "broker-2" / "log-start-offset-checkpoint").write_text("0\n1\nt 0 1\n")
    assert [name for _, name, *_ in told_of(evidence, tmp_path / "a")] == ["quiet"]
    # A leader's log that is not at hand tells nothing.
    nobody = tmp_path / "n"
    partition(log_directory(nobody / "broker-1", 1), BEFORE + LOST, [(0, 0)])
    (nobody / "acks.jsonl").write_text(sends())
    assert told_of(nobody, tmp_path / "b") == []


def test_a_real_incident_says_how_many_of_whom(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = INCIDENTS / "chaos__4.1.1__seed2"
    main(["recover", str(evidence), "--out", str(tmp_path / "out")])
    said = capsys.readouterr().out
    rows = lines_of(tmp_path / "out" / "sent_never_promised.jsonl")
    assert unpromised_words(rows)[0] in said
    asked = {a["payload_id"]: a["status"] for a in lines_of(evidence / "acks.jsonl")}
    assert rows
    assert {asked[r["payload_id"]] for r in rows} == {"unknown"}
