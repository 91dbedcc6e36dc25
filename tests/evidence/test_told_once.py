"""A client's log that lies in the evidence twice: each line counts once."""

import shutil
from pathlib import Path

from replication.evidence.clients.client_logs import Consumption
from replication.evidence.clients.told_once import told_once
from tests.evidence.segment_bytes import Record, batch
from tests.recovery.lost_evidence import FIRST_LOST, lines_of, lost_evidence, recover_rows, row


def line(path: str, number: int, offset: int, client: str = "c") -> Consumption:
    return Consumption(1, client, "t", 0, offset, None, None, path, number)


def test_equal_lines_of_another_file_are_left_out_and_those_of_one_file_stay() -> None:
    first = [line("a", 1, 5), line("a", 2, 5), line("a", 3, 6)]
    assert told_once(first) == tuple(first)
    newer = [line("b", 1, 5), line("b", 2, 6), line("b", 3, 7), line("b", 4, 6, "other")]
    assert told_once(first + newer) == (*first, newer[2], newer[3])


def test_a_lost_record_has_one_key_where_the_log_was_copied(tmp_path: Path) -> None:
    lost = batch(FIRST_LOST, *(Record(b"v", key=b"k%d" % n) for n in range(4)))
    evidence = lost_evidence(tmp_path / "evidence", lost, 7)
    (evidence / "saved").mkdir()
    shutil.copy(evidence / "acks.jsonl", evidence / "saved" / "acks.jsonl")
    recover_rows(evidence, tmp_path / "out", row(7))
    keys = lines_of(tmp_path / "out" / "lost_records_keys.jsonl")
    assert [(k["key"], k["line"]) for k in keys] == [(f"k{n}", n + 1) for n in range(4)]
    assert all(k["certain"] for k in keys)
