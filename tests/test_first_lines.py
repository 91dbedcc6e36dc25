"""What the first line of an error says of a wrong input: what is wrong with it, and what to do."""

import gzip
import json
from pathlib import Path

import pytest

from replication.cli import main
from replication.protocol.ground.versions import NEWEST_KNOWN

LOST = Path(__file__).parent / "incidents" / "unclean_election__4.1.1"
LOG = (LOST / "broker-2" / "server.log").read_bytes()


def acknowledged(**fields: object) -> list[dict[str, object]]:
    """Five rows of a producer's log."""
    return [{"topic": "t", "partition": 0, "offset": n, **fields} for n in range(5)]


def lines(rows: list[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


TIMED = {"timestamp": "2026-05-01T10:00:00Z", "key": "k"}
WHOLE = {"ts": "2026-05-01T10:00:00Z", "client": "c", "acks": "all", "status": "acked"}
CSV = b"time,topic,partition,offset,key,result\n2026-05-01T10:00:00Z,t,0,1,k1,ok\n"
# A file's name and content, and what the first line names: the file or place, then the remedy.
FILES: list[tuple[str, bytes, tuple[str, ...]]] = [
    ("acks.jsonl", lines(acknowledged(**TIMED)),
     ("acks.jsonl", "--ack-fields ts=timestamp,payload_id=key,", "--ack-fields none")),
    ("acks.csv", CSV, ("acks.csv", "--ack-fields ts=time,status=result,payload_id=key,")),
    ("acks.tsv", CSV.replace(b",", b"\t"), ("acks.tsv", "--ack-fields ts=time,")),
    ("acks.json", json.dumps(acknowledged(**TIMED)).encode(),
     ("acks.json", "one object per line", "--ack-fields none")),
    ("acks.json", json.dumps(acknowledged(**WHOLE), indent=2).encode(),
     ("acks.json", "one object per line", "jq -c '.[]'")),
    ("acks.jsonl", lines(acknowledged(**{**WHOLE, "ts": "noon"})),
     ("acks.jsonl", "line 1", "no time", "--ack-fields")),
    ("acks.jsonl", lines([{**row, "offset": "one"} for row in acknowledged(**WHOLE)]),
     ("acks.jsonl", "line 1", 'offset "one"', "not a number")),
    ("x.log", b"hello\nworld\n", ("no evidence of a Kafka cluster found", "x.log: text without")),
    ("server.log", b"", ("no evidence", "server.log: empty")),
    ("x.bin", b"\0\1\2" * 99, ("no evidence", "x.bin: binary")),
    ("core.bin", bytes(range(1, 256)) * 9, ("no evidence", "core.bin: binary")),
    ("server.log", LOG[:3000], ("no topic partition found", "Hand over server.log", "ends within")),
    ("server.log.gz", gzip.compress(LOG, mtime=0)[:200], ("server.log.gz", "reading stops here")),
    ("case.tar.gz", gzip.compress(LOG, mtime=0)[:150], ("case.tar.gz: cannot be unpacked",)),
    ("case.rar", b"Rar!\x1a\x07\x01\x00" + bytes(99), ("case.rar: a RAR", "unpack it first")),
    ("case.7z", b"7z\xbc\xaf\x27\x1c" + bytes(99), ("case.7z: a 7-Zip", "unpack it first")),
]  # fmt: skip


def said_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The only line of an error, and that nothing else came of it."""
    try:
        status = main(arguments)
    except SystemExit as end:
        status = end.code  # type: ignore[assignment]
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert line.startswith("replication-analyzer")
    return line


@pytest.mark.parametrize(("name", "content", "words"), FILES, ids=range(len(FILES)))
def test_a_file_that_cannot_be_used(
    name: str,
    content: bytes,
    words: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / name).write_bytes(content)
    line = said_of(["diagnose", str(tmp_path)], capsys)
    assert [word for word in words if word not in line] == []


CALLS: list[tuple[list[str], tuple[str, ...]]] = [
    (["diagnose"], ("no PATH given",)),
    (["diagnose", "/no/such"], ("/no/such: no such file or folder",)),
    (["diagnose", "EVIDENCE", "--kafka", "seven"], ("--kafka: 'seven'", "one like 3.9.1")),
    (
        ["diagnose", "EVIDENCE", "--kafka", "9.9"],
        ("the rules of Kafka 9.9 are not known", f"{NEWEST_KNOWN} are. Get a newer"),
    ),
    (["diagnose", "EVIDENCE", "--time-zone", "Mars"], ("--time-zone Mars", "+05:30")),
    (["diagnose", "EVIDENCE", "--broker", "x", "EVIDENCE"], ("--broker x", "a broker id")),
    (["diagnose", "EVIDENCE", "--topic", "nope"], ("no topic nope",)),
    (["diagnose", "EVIDENCE", "--ack-fields", "when=at"], ("when is none of ts, client",)),
    (["diagnose", "EVIDENCE", "--ack-fields", "at"], ("NAME=FIELD or NAME=:VALUE",)),
    (["diagnose", "EVIDENCE", "--format", "xml"], ("'xml'", "text", "json", "--help")),
    (["diagnose", "EVIDENCE", "--incident", "a/b"], ("'a/b'", "letters, digits")),
    (["diagnose", "EVIDENCE", "--payload-id-in", "x"], ("'x'", "key, value or header:NAME")),
    (["diagnose", "EVIDENCE", "--nope"], ("unrecognized arguments: --nope", "--help")),
    (["diagnos", "EVIDENCE"], ("'diagnos'", "diagnose", "--help")),
    ([], ("required: COMMAND", "--help")),
    (["show", "EVIDENCE"], ("required: --topic-partition", "show --help")),
    (["show", "EVIDENCE", "--topic-partition", "t"], ("expected TOPIC-NUMBER",)),
    (["show", "EVIDENCE", "--topic-partition", "t-9"], ("no t-9", "known: t-0")),
    (["explain", "zzz", "EVIDENCE"], ("no finding zzz", "findings: 13ff94368ca89895")),
    (["import", "EVIDENCE"], ("required: --out", "import --help")),
    (["versions", "seven"], ("'seven'", "one like 3.9.1")),
]


@pytest.mark.parametrize(("call", "words"), CALLS, ids=range(len(CALLS)))
def test_a_call_that_cannot_be_used(
    call: list[str], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    line = said_of([str(LOST) if each == "EVIDENCE" else each for each in call], capsys)
    assert [word for word in words if word not in line] == []
