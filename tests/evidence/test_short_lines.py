"""Files of a great many lines of nearly nothing: a small packed one would take minutes to read."""

import bz2
import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from replication.evidence.collecting.collection import NoEvidence, read_file
from replication.evidence.collecting.exports import laid_out
from replication.evidence.importer import import_evidence
from replication.evidence.text_lines import MANY_LINES, of_short_lines, short_lines
from tests.growth import steps_of

LINES = {"empty": b"\n", "blank": b" \t\n", "objects": b"{}\n", "words": b"x" * 14 + b"\n"}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress,
}  # fmt: skip


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("what", LINES)
def test_such_a_file_is_said_and_not_read(what: str, packed: str, tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    many = LINES[what] * (MANY_LINES + 1)
    path.write_bytes(PACKED[packed](b"a first line that says something\n" + many))
    steps = steps_of(lambda: read_file(path)).total()
    assert steps < 20_000
    [told] = read_file(path).unreadable
    assert f"{MANY_LINES + 2} lines of fewer than 16 bytes on average" in told.reason


def test_in_an_archive_as_well(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bundle.zip", "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("server.log", b"\n" * (MANY_LINES + 1))

    def refused() -> None:
        with pytest.raises(NoEvidence, match="lines of fewer than 16 bytes"):
            import_evidence([tmp_path])

    assert steps_of(refused).total() < 100_000


def test_what_has_lines_of_a_log_is_read_however_long_it_is(tmp_path: Path) -> None:
    assert short_lines(16 * MANY_LINES * 9, 9 * MANY_LINES) == ""
    assert short_lines(MANY_LINES, MANY_LINES) == ""
    assert short_lines(MANY_LINES, MANY_LINES + 1) != ""
    path = tmp_path / "server.log"
    path.write_bytes(b"\n" * 1_000)
    assert of_short_lines(path) is None


def test_no_envelope_is_looked_for_behind_blank_lines_without_end(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_bytes(b"{}\n" + b"\n" * 500_000)
    assert steps_of(lambda: laid_out(path, tmp_path)).total() < 5_000


def test_places_that_cannot_be_read_are_told_in_their_order(tmp_path: Path) -> None:
    good = '{"ts": "2026-01-01T00:00:00Z", "client": "p", "topic": "t", "partition": 0, '
    good += '"offset": 1, "acks": "all", "status": "acked"}\n'
    (tmp_path / "acks.jsonl").write_text((good + "junk\n") * 60)
    told = [u.where for u in import_evidence([tmp_path]).unreadable]
    assert told == [f"line {2 * n}" for n in range(1, 61)]
