"""A line that comes in pieces takes twice the steps for twice the pieces, and is copied once."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from replication.evidence.broker_logs import line_wrappers
from replication.evidence.broker_logs.line_wrappers import DockerJson, OneObjectALine
from replication.evidence.collecting.envelopes import ShippedLine, shipped_lines
from replication.evidence.shipping.spool import Spool
from tests.growth import LARGE_SIZES, grows

Work = Callable[[], object]


def docker_objects(count: int) -> Work:
    """A line that docker has split over objects."""
    block = b"".join(json.dumps({"log": "x"}).encode() + b"\n" for _ in range(count))
    return lambda: DockerJson()(block)


def blocks_of_docker_objects(count: int) -> Work:
    """The same, block by block."""
    reader = DockerJson()
    block = json.dumps({"log": "x"}).encode() + b"\n"
    return lambda: [reader(block) for _ in range(count)]


def object_of_many_lines(count: int) -> Work:
    """A JSON object of which each field stands in a line of its own."""
    block = b"{\n" + b'"a": 1,\n' * count + b'"b": 2}\n'
    return lambda: OneObjectALine()(block)


def shipped_pieces(count: int) -> Work:
    """A line that a container's runtime has cut, as it is shipped."""
    sent = b"2026-03-04T05:06:08.1Z stdout P x"
    return lambda: [list(shipped_lines(sent)) for _ in range(count)]


def pieces_in_one_micro_batch(count: int) -> Work:
    """The same, put together for the micro-batch's file."""
    pieces = [ShippedLine("x", "k", "c.log", partial=True)] * count

    def take() -> None:
        with tempfile.TemporaryDirectory() as name:
            Spool(Path(name) / "spool").take(0, [*pieces, ShippedLine("y", "k", "c.log")])

    return take


@pytest.mark.parametrize(
    "make",
    [docker_objects, blocks_of_docker_objects, object_of_many_lines, shipped_pieces,
     pieces_in_one_micro_batch],
    ids=lambda make: make.__name__,
)  # fmt: skip
def test_pieces_grow_with_their_number_alone(make: Callable[[int], Work]) -> None:
    assert not grows(make, LARGE_SIZES)


def test_each_piece_of_dockers_is_held_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """And put together at the end of the line, or where it is longer than any line."""
    monkeypatch.setattr(line_wrappers, "LONGEST_LINE", 5_000)
    reader = DockerJson()
    for number in range(1, 5_001):
        assert reader(b'{"log":"x"}\n') == b"\n"
        assert len(reader._pieces) == number
    assert reader(b'{"log":"y\\n"}\n') == b"x" * 5_000 + b"y\n"
    assert reader._pieces == []
    found = b"".join(reader(b'{"log":"xxxx"}\n') for _ in range(1_251))
    assert found.split(b"\n")[-2] == b"x" * 5_004
    assert reader(b'{"log":"a line\\n"}\n') == b"a line\n"
