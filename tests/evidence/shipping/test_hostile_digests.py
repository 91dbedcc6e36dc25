"""Every field of every kind of line of a digest, by every JSON type and extreme, among good lines.

Whatever one line says, the live source goes on: it is a line of a digest or it is refused with the
field named, and what is refused changes nothing of the answer to the others.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.collecting.envelopes import NotALine, ShippedLine, shipped_lines
from replication.evidence.log_directories.digest_lines import checked_object, directories_of
from replication.evidence.shipping.live_join import LiveJoin
from tests.evidence.shipping.test_live_join import answers, newest
from tests.evidence.test_digest_lines import Beside

INT64 = (1 << 63) - 1
DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]
NUMBERS = (-1, 0, 1, 5, (1 << 31) - 1, 1 << 31, 10**12, INT64, INT64 + 1, 1 << 200, -INT64, 1.5,
           1e308, float("nan"), float("inf"), -float("inf"))  # fmt: skip
TEXTS = ("", "x", "7", "\0", "\ud800", "\udfff\ud800", "a/b", "../..", ".", "..", "t-0", "t--1",
         "t-999999999", "9" * 300, "AA==", "=", "meta.properties", "\n", "é",
         "broker.id=3")  # fmt: skip
OTHERS = (None, True, False, [], [1], [[0, 0]], [[1, 2], [1, 2]], [[5, 9], [1, 0]],
          [[INT64, INT64]], [[0]], [["a", "b"]], [None], ["a"], [True, True], [[True, 0]], {},
          {"a": 1}, DEEP)  # fmt: skip
VALUES = (*NUMBERS, *TEXTS, *OTHERS)


def good_lines(folder: Path) -> list[dict[str, Any]]:
    """What a digest prints of a log directory with a controller's log; each kind is among it."""
    beside = Beside(folder)
    beside.write("__cluster_metadata-0/00000000000000000000.log", bytes(range(256)) * 20)
    beside.round()
    found = list(beside.printed)
    found.append(
        {**found[0], "what": "gone", "name": "old-0", "topic_id": None, "emptied": True, "n": 900}
    )
    found.append({**found[0], "what": "error", "name": "t-1", "reason": "denied", "n": 901})
    kinds = {line["what"] for line in found}
    assert kinds >= {"partition", "directory", "metadata", "metadata_files", "gone", "error"}
    return found


def hostile(lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One line of each kind with one field changed, or taken out."""
    of_kind = {line["what"]: line for line in lines}
    for line in of_kind.values():
        for name in line:
            if name != "replication_digest":
                yield {k: v for k, v in line.items() if k != name}
            for value in VALUES:
                yield {**line, name: value}


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_no_value_of_a_line_ends_the_reader_or_makes_a_large_file(tmp_path: Path) -> None:
    lines = good_lines(tmp_path / "data")
    accepted = refused = 0
    for number, line in enumerate(hostile(lines)):
        found = checked_object(line)
        if isinstance(found, str):
            refused += 1
            assert found.isascii()
            continue
        accepted += 1
        found = json.loads(json.dumps(found))
        work = tmp_path / "work"
        for order in ([*lines, found], [found, *lines]):
            whole = [{**each, "path": "x"} for each in order]
            directories_of(whole, work / str(number))
        assert size_of(work / str(number)) < 4 * size_of(tmp_path / "data")
    assert accepted > 150
    assert refused > 1_500


def test_a_terabyte_is_no_file_of_a_metadata_log(tmp_path: Path) -> None:
    lines = good_lines(tmp_path / "data")
    piece = next(line for line in lines if line["what"] == "metadata")
    assert isinstance(checked_object({**piece, "size": 10**12}), str)
    far = {**piece, "at_byte": 10**9, "size": 2 * 10**9}
    [directory] = directories_of([{**each, "path": "x"} for each in (piece, far)], tmp_path / "w")
    assert size_of(tmp_path / "w") == 4096
    assert "most of it did not come" in directory.unreadable[0].reason


def test_the_live_source_goes_on_whatever_one_line_says(tmp_path: Path) -> None:
    """All at once, each from a host of its own; then the good lines alone."""
    good = good_lines(tmp_path / "data")
    sent = [
        json.dumps({**line, "host": f"h{number}"}).encode()
        for number, line in enumerate(hostile(good))
    ]
    good_sent = [json.dumps({**line, "host": "good"}).encode() for line in good]
    lines = [line for each in (*sent, *good_sent) for line in shipped_lines(each)]
    live = LiveJoin(tmp_path / "live", tmp_path / "events")
    for number in range(2):
        taken = live.step(number, lines).taken
        assert taken.rows == taken.kept + taken.repeated + len(taken.refused) == len(lines)
    refused = [line for line in lines if isinstance(line, NotALine)]
    assert len(refused) > 1_500
    alone = LiveJoin(tmp_path / "alone", tmp_path / "events-alone")
    kept = [line for each in good_sent for line in shipped_lines(each)]
    assert all(isinstance(line, ShippedLine) for line in kept)
    alone.step(0, [*kept, *refused])
    undisturbed = LiveJoin(tmp_path / "undisturbed", tmp_path / "events-undisturbed")
    undisturbed.step(0, kept)
    assert answers(newest(tmp_path / "events-alone")) == answers(
        newest(tmp_path / "events-undisturbed")
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [("every", "x"), ("at_byte", []), ("base64", "x"), ("topic_id", True), ("size", 10**12)],
)
def test_what_a_line_says_otherwise_is_refused_by_its_name(
    field: str, value: Any, tmp_path: Path
) -> None:
    [line] = [each for each in good_lines(tmp_path) if field in each][:1]
    [found] = shipped_lines(json.dumps({**line, field: value}).encode())
    assert isinstance(found, NotALine)
    assert f"its {field} is" in found.reason
