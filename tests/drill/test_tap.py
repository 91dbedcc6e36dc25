"""The acknowledgement log of one's own producer: what its lines say, and that each is whole."""

import json
import os
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.clients.client_logs import (
    ACKNOWLEDGEMENTS,
    Acknowledgement,
    client_log_kind,
    read_acknowledgements,
)
from replication.paths import project_root
from replication.tap import AcknowledgementLog


class Answer:
    """A delivered message, as confluent-kafka gives it to a callback."""

    def __init__(
        self, offset: int, key: bytes | None = b"k", value: bytes = b"v", partition: int = 0
    ) -> None:
        self._told = {"offset": offset, "key": key, "value": value, "partition": partition}

    def topic(self) -> str:
        return 'a"b\\'

    def __getattr__(self, name: str) -> Any:
        return lambda: self._told[name]


class Failure:
    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name


def told(folder: Path) -> list[Acknowledgement]:
    """As the product reads it; a line that it cannot read fails the test."""
    found = []
    for path in sorted(folder.iterdir()):
        assert client_log_kind(path) == ACKNOWLEDGEMENTS
        for line in read_acknowledgements(path):
            assert isinstance(line, Acknowledgement), line
            found.append(line)
    return found


def test_the_product_reads_what_the_client_was_told(tmp_path: Path) -> None:
    before = int(time.time() * 1000)
    with AcknowledgementLog(tmp_path, client="é1", acks="-1") as log:
        log(None, Answer(7, b"\xff\x00"))
        log(None, Answer(8, 'schlüssel\n"'.encode(), partition=3))
        log(Failure("_MSG_TIMED_OUT"), Answer(-1001))
        log(Failure("MSG_SIZE_TOO_LARGE"), Answer(-1001, None))
        log(Failure("_MSG_TIMED_OUT"), Answer(-1001, partition=-1))
    lines = told(tmp_path)
    assert [(a.offset, a.status, a.payload_id, a.error, a.partition) for a in lines] == [
        (7, "acked", "ff00", None, 0),
        (8, "acked", 'schlüssel\n"', None, 3),
        (None, "unknown", "k", "_MSG_TIMED_OUT", 0),
        (None, "failed", None, "MSG_SIZE_TOO_LARGE", 0),
    ]
    assert {(a.client, a.topic, a.acks, a.payload_id_in) for a in lines} == {
        ("é1", 'a"b\\', "all", "key")
    }
    assert all(a.ts is not None and before <= a.ts <= int(time.time() * 1000) for a in lines)
    assert (log.noted, log.left_out, log.dropped) == (4, 0, 0)


def test_acks_0_promises_nothing(tmp_path: Path) -> None:
    with AcknowledgementLog(tmp_path, client="c", acks="0", payload_id=None) as log:
        log(None, Answer(-1001))
    assert [(a.status, a.payload_id) for a in told(tmp_path)] == [("sent", None)]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"payload_id": "value"}, ("order-7", "value")),
        ({"payload_id": lambda m: m.value().decode()[-1:], "found_in": "header:id"},
         ("!", "header:id")),
    ],
)  # fmt: skip
def test_what_names_a_record(tmp_path: Path, how: Any, expected: tuple[str, str]) -> None:
    with AcknowledgementLog(tmp_path, client="c", **how) as log:
        log(None, Answer(0, value=b' "order-7" ..!'))
    assert [(a.payload_id, a.payload_id_in) for a in told(tmp_path)] == [expected]


def test_a_sample_is_of_keys_and_always_the_same(tmp_path: Path) -> None:
    keys = [b"key-%d" % number for number in range(400)]
    with AcknowledgementLog(tmp_path, client="c", sample=0.25) as log:
        for offset, key in enumerate(keys * 2):
            log(None, Answer(offset, key))
    noted = [a.payload_id for a in told(tmp_path)]
    expected = [key.decode() for key in keys if zlib.crc32(key) < 2**30]
    assert noted == expected * 2
    assert 60 < len(expected) < 140
    assert log.noted + log.left_out == 800


def test_files_follow_one_another_and_the_oldest_go(tmp_path: Path) -> None:
    with AcknowledgementLog(tmp_path, client="a/b", file_bytes=200, keep_files=2) as log:
        for offset in range(5):
            log(None, Answer(offset))
            log(None, Answer(offset + 100))
            log.flush()
    assert sorted(a.offset or 0 for a in told(tmp_path)) == [3, 4, 103, 104]
    assert {path.name[:8] for path in tmp_path.iterdir()} == {"acks-a_b"}


def test_two_logs_of_one_name_never_share_a_file(tmp_path: Path) -> None:
    logs = [AcknowledgementLog(tmp_path, client="c") for _ in range(3)]
    for offset, log in enumerate(logs):
        log(None, Answer(offset))
        log.close()
    assert sorted(a.offset or 0 for a in told(tmp_path)) == [0, 1, 2]


def test_a_line_is_written_within_a_second_and_at_the_end_of_the_process(tmp_path: Path) -> None:
    log = AcknowledgementLog(tmp_path, client="c")
    log(None, Answer(1))
    end = time.monotonic() + 5
    while not any(path.stat().st_size for path in tmp_path.iterdir()):
        assert time.monotonic() < end
        time.sleep(0.02)
    log.close()
    code = (
        "import sys; from tests.drill.test_tap import Answer; from replication.tap import *\n"
        "log = AcknowledgementLog(sys.argv[1], client='ends'); log(None, Answer(2))"
    )
    environment = {**os.environ, "PYTHONPATH": str(project_root())}
    command = [sys.executable, "-c", code, str(tmp_path)]
    subprocess.run(command, check=True, env=environment)
    assert sorted(a.offset or 0 for a in told(tmp_path)) == [1, 2]


def test_a_full_disk_stops_nobody_and_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = AcknowledgementLog(tmp_path, client="c")
    write = os.write
    full = True

    def half(descriptor: int, data: bytes) -> int:
        if not full:
            return write(descriptor, data)
        if len(data) > 30:
            return write(descriptor, data[:30])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("replication.tap.os.write", half)
    log._files._descriptor, kept = None, log._files._descriptor
    assert kept is not None
    os.close(kept)
    log(None, Answer(1))
    log(None, Answer(2))
    log.flush()
    log(None, Answer(3))
    log.flush()
    full = False
    log(None, Answer(4))
    log.close()
    assert log.dropped + log.noted == 4
    assert log.noted >= 1
    assert capsys.readouterr().err.count("lines are dropped") == 1
    whole = [
        json.loads(line)["offset"]
        for path in tmp_path.iterdir()
        for line in path.read_text().splitlines()
        if line.endswith("}")
    ]
    assert whole[-1:] == [4] or 4 in whole


@pytest.mark.parametrize(
    "how",
    [{"acks": "2"}, {"sample": 0}, {"sample": 1.5}, {"client": ""}, {"payload_id": "header:x"}],
)
def test_what_cannot_be_is_refused(tmp_path: Path, how: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        AcknowledgementLog(tmp_path, **{"client": "c", **how})


def test_your_own_callback_is_called_too(tmp_path: Path) -> None:
    heard: list[tuple[Any, Any]] = []
    with AcknowledgementLog(tmp_path, client="c") as log:
        message = Answer(5)
        log.then(lambda error, told: heard.append((error, told)))(None, message)
    assert heard == [(None, message)]
    assert [a.offset for a in told(tmp_path)] == [5]
