"""Evidence written by an enemy: it is read, or refused in words; nothing else happens.

What is printed holds nothing that steers a terminal or forges a line, no value ends the process,
nothing leaves the folder it belongs to, and nothing unpacks to more than its limit.
"""

import gzip
import io
import json
import os
import random
import re
import shutil
import tarfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replication.cli import main
from replication.evidence import event_dumps
from replication.evidence.broker_logs.line_families import FAMILIES
from replication.evidence.collecting.archives import Limits, Unpacked
from replication.evidence.importer import import_evidence
from replication.evidence.log_directories.digest_reader import restore_cluster_metadata
from replication.protocol.ground import wire
from replication.reports.safe_text import UNSEEN
from tests.evidence.test_opening import tar_of, zip_of
from tests.spark.event_rows import made_trace

LOST = Path(__file__).parent / "incidents" / "unclean_election__4.1.1"
# Clear the screen, ring, turn the reading direction round, end a line, be half of a character.
STEERING = ("\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\u202e", "\u2066", "\u2028", "\x7f", "\x00")
NAMES = (
    *(f"t{c}x" for c in STEERING),
    "t\nNothing was lost.", "t\r0 records lost", "<img src=x onerror=alert(1)>", "'; DROP t; --",
    "..", "%s%n{0}{topic}", "$(id)`id`",
)  # fmt: skip


def steering(text: str) -> set[str]:
    """The characters of a text that a terminal acts on or that cannot be seen."""
    return {c for c in text if unicodedata.category(c) in UNSEEN and c != "\n"}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = tmp_path_factory.mktemp("events") / "e.jsonl"
    assert main(["import", str(LOST), "--out", str(path)]) == 0
    return [json.loads(line) for line in path.read_text().splitlines()]


def dumped(rows: list[dict[str, Any]], folder: Path, **changed: Any) -> Path:
    path = folder / "events.jsonl"
    made = [{k: v for k, v in (row | changed).items() if k != "event_id"} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    return path


def run(capsys: pytest.CaptureFixture[str], *command: object) -> tuple[int, str]:
    """Exit status and everything that was printed."""
    capsys.readouterr()
    status = main([str(word) for word in command])
    said = capsys.readouterr()
    assert status != 4, said.err
    return status, said.out + said.err


@pytest.mark.parametrize("name", NAMES)
def test_names_from_evidence_steer_no_terminal_and_forge_no_line(
    name: str, events: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, harmless = run(capsys, "diagnose", dumped(events, tmp_path))
    dump = dumped(events, tmp_path, topic=name, cluster_id=name, source_path=name)
    status, text = run(capsys, "diagnose", dump)
    assert steering(text) == set()
    if "\0" not in name:
        assert status == 1
        assert len(text.splitlines()) == len(harmless.splitlines())
        _, answer = run(capsys, "diagnose", dump, "--format", "json")
        assert steering(answer) == set()
        finding = json.loads(answer)["findings"][0]["finding_id"]
        for words in (["diagnose", "--topic", name + "?"], ["explain", finding],
                      ["show", "--topic-partition", f"{name}-0"]):  # fmt: skip
            assert steering(run(capsys, *words, dump)[1]) == set(), words


@pytest.mark.parametrize("place", ["client", "error", "topic", "acks", "status", "payload_id"])
def test_what_clients_wrote_steers_no_terminal(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = tmp_path / "evidence"
    shutil.copytree(LOST, evidence)
    acks = evidence / "acks.jsonl"
    rows = [json.loads(line) for line in acks.read_text().splitlines()]
    altered = [row | {place: NAMES[n % len(NAMES)] + str(n)} for n, row in enumerate(rows)]
    acks.write_text("".join(json.dumps(row) + "\n" for row in [*altered, *rows]))
    for more in ([], ["--format", "json"]):
        assert steering(run(capsys, "diagnose", evidence, *more)[1]) == set()


def test_a_json_answer_means_what_it_would_without_its_escapes(
    events: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "ä€ \U000e0041 \u202e \x9b \x1b"
    dump = dumped(events, tmp_path, topic=name)
    answer = json.loads(run(capsys, "diagnose", dump, "--format", "json")[1])
    assert {v["topic"] for v in answer["verdicts"]} == {name}


def test_names_of_files_steer_no_terminal_whatever_bytes_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = tmp_path / "evidence"
    shutil.copytree(LOST, evidence)
    for name in (b"a\x1b[2J\xff.log", "b\u202e\n.txt".encode(), b"c\xfe.tar"):
        path = os.path.join(os.fsencode(evidence), name)
        with open(path, "wb") as file:
            file.write(tar_of({"x": b"junk"}) if name.endswith(b".tar") else b"junk kafka \x00\n")
        shutil.copy(LOST / "broker-1" / "server.log", path + b".1")
    for more in ([], ["--format", "json"], ["--report", tmp_path / "page.html"]):
        assert steering(run(capsys, "diagnose", evidence, *more)[1]) == set()
    page = (tmp_path / "page.html").read_text()
    assert steering(page) <= {"\t"}


@pytest.mark.parametrize("zeros", [1, 16, 17, 40, 63, 64, 5_000])
def test_zeros_in_a_log_cost_no_other_line(zeros: int, tmp_path: Path) -> None:
    """The characters of a name, or what a power failure leaves where nothing was written."""
    evidence = tmp_path / "evidence"
    shutil.copytree(LOST, evidence)
    for path in evidence.glob("*/*.log"):
        lines = path.read_bytes().split(b"\n")
        lines[1:1] = [b"[2026-11-20 15:18:14,000] INFO x" + bytes(zeros) + b"y (kafka.Kafka)"]
        path.write_bytes(b"\n".join(lines))
    facts = [[e.fact for e in import_evidence([each]).events()] for each in (LOST, evidence)]
    assert facts[0] == facts[1]


# --- values that are too much ---------------------------------------------------------------------

QUORUM_STATE = "disk/__cluster_metadata-0/quorum-state"
DEEP = ["[" * depth + "]" * depth for depth in (900, 960, 980, 990, 1_000, 20_000)]
DEEP += ['{"a":' * depth + "1" + "}" * depth for depth in (970, 985, 995)]
MUCH = [
    "9" * 5_000, "-" + "9" * 5_000, "1e999", "-1e999", "NaN", "Infinity", "1e-999", str(2**63),
    str(-(2**63) - 1), "1.5", '"\\ud800"', '"\\u0000"', "true", "null", '""',
    '"' + "x" * 70_000 + '"', *DEEP,
]  # fmt: skip


# Where one more file is read for each.
FEW = ["9" * 5_000, "9" * 19, "4294967296", "NaN", "²", DEEP[3], DEEP[-1]]


def overdone(line: str, values: list[str]) -> Iterator[str]:
    """A JSON line with each of its values in turn replaced by each of values, as text."""
    row = json.loads(line)
    for name in row:
        for value in values:
            whole = json.dumps(row | {name: "\x00HERE"})
            yield whole.replace('"\\u0000HERE"', value)
    yield from values


@pytest.mark.slow
def test_no_value_of_an_event_dump_ends_the_process(
    events: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.jsonl"
    lines = [json.dumps(row) for row in events]
    kinds = {row["kind"]: line for row, line in zip(events, lines, strict=True)}
    bad = [text for line in kinds.values() for text in overdone(line, MUCH)]
    path.write_text("\n".join([*lines, *bad]) + "\n")
    status, text = run(capsys, "diagnose", path, "--format", "json")
    answer, _ = json.JSONDecoder().raw_decode(text)
    counts = answer["input"]
    assert status in (1, 3)
    assert counts["events"] == len(lines) + len(bad) == (
        counts["applied"] + counts["duplicates"] + counts["quarantined"] + counts["held"]
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["acknowledgements", "consumption"])
def test_no_value_of_a_clients_log_ends_the_process(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = tmp_path / "evidence"
    shutil.copytree(LOST, evidence)
    rows = [json.loads(line) for line in (LOST / "acks.jsonl").read_text().splitlines()]
    if kind == "consumption":
        kept = ("ts", "client", "topic", "partition", "offset", "payload_id")
        rows = [{k: row[k] for k in kept} for row in rows]
    lines = [json.dumps(row) for row in rows]
    bad = list(overdone(lines[0], MUCH))
    (evidence / "acks.jsonl").write_text("\n".join([*lines, *bad]) + "\n")
    run(capsys, "diagnose", evidence)
    run(capsys, "diagnose", evidence, "--ack-fields", "ts=ts")


JSON_LINE = (
    '{"@timestamp":"2026-11-20T15:18:20.000Z","level":"INFO","logger":"kafka.cluster.Partition",'
    '"message":"[Partition t-0 broker=1] Log loaded for partition t-0 with initial high '
    'watermark 0"}'
)
DOCKER_LINE = (
    '{"log":"[2026-11-20 15:18:20,000] INFO [Partition t-0 broker=1] Log loaded for partition t-0 '
    'with initial high watermark 0 (kafka.cluster.Partition)\\n","stream":"stdout",'
    '"time":"2026-11-20T15:18:20.000Z"}'
)
REQUEST_LINE = (
    '[2026-11-20 15:18:20,000] DEBUG Completed request:{"requestHeader":{"requestApiKey":4,'
    '"requestApiVersion":5,"correlationId":1,"clientId":"1"},"request":HERE} '
    "(kafka.request.logger)"
)


@pytest.mark.slow
@pytest.mark.parametrize("line", [JSON_LINE, DOCKER_LINE], ids=["json layout", "docker"])
def test_no_value_of_a_json_log_line_ends_the_process(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, bad in enumerate(overdone(line, MUCH)):
        if number % 3 == 0:  # Each file is read as a log of its own: all would take seconds.
            (tmp_path / "server.log").write_text(f"{line}\n{bad}\n{line}\n")
            run(capsys, "diagnose", tmp_path)
    for value in MUCH:
        (tmp_path / "server.log").write_text(REQUEST_LINE.replace("HERE", value) + "\n")
        run(capsys, "diagnose", tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (QUORUM_STATE, '{"clusterId":"","leaderId":HERE,"currentVoters":HERE}'),
        (QUORUM_STATE, '{"currentVoters":[{"voterId":HERE}]}'),
        ("disk/meta.properties", "version=HERE\nnode.id=HERE\ncluster.id=HERE\n"),
        ("disk/replication-offset-checkpoint", "0\n1\nt 0 HERE\n"),
        ("disk/replication-offset-checkpoint", "0\nHERE\nt HERE 1\n"),
        ("disk/t-0/leader-epoch-checkpoint", "0\n1\nHERE HERE\n"),
        ("disk/.kafka_cleanshutdown", '{"version":HERE,"brokerEpoch":HERE}'),
        ("log-dirs.txt", '{"version":1,"brokers":[{"broker":HERE,"logDirs":[{"logDir":"/d",'
         '"error":null,"partitions":[{"partition":"t-0","size":HERE,"offsetLag":HERE,'
         '"isFuture":false}]}]}]}'),
        ("describe.txt", "Topic: t\tTopicId: a\tPartitionCount: HERE\tReplicationFactor: 3\t"
         "Configs: \n\tTopic: t\tPartition: 0\tLeader: HERE\tReplicas: 1,HERE\tIsr: HERE\n"),
        ("dump.txt", "Dumping /d/t-0/00000000000000000000.log\nLog starting offset: HERE\n"
         "baseOffset: HERE lastOffset: 9 count: HERE baseSequence: -1 lastSequence: -1 "
         "producerId: -1 producerEpoch: -1 partitionLeaderEpoch: HERE "
         "isTransactional: false isControl: false "
         "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: HERE size: 800 magic: 2 "
         "compresscodec: none crc: 1 isvalid: true\n"),
    ],
)  # fmt: skip
def test_no_value_of_a_small_file_or_a_tools_output_ends_the_process(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = tmp_path / "evidence"
    shutil.copytree(LOST / "broker-1" / "disk-final", evidence / "disk")
    shutil.copy(LOST / "broker-1" / "server.log", evidence)
    path = evidence / name
    for value in FEW:
        path.write_text(text.replace("HERE", value))
        assert steering(run(capsys, "diagnose", evidence)[1]) == set()


# --- archives -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_damaged_archives_give_what_stands_whole_and_never_end_the_process(
    kind: str, tmp_path: Path
) -> None:
    made = {"a/server.log": b"hello\n" * 50, "b/mäta.properties": b"broker.id=1\n"}
    whole = zip_of(made) if kind == "zip" else tar_of(made)
    for seed in range(300):
        chance = random.Random(seed)
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 4))):
            data[chance.randrange(len(data))] = chance.choice(
                (0, 0xFF, 0x7F, chance.randrange(256))
            )
        path = tmp_path / "x"
        path.write_bytes(data[: chance.randrange(len(data))] if seed % 10 == 0 else data)
        into = tmp_path / str(seed)
        into.mkdir()
        Unpacked(into).take(path)


def test_one_unreadable_member_of_a_zip_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    content = zip_of({"a.log": b"first\n", "b.log": b"second\n" * 99, "c.log": b"third\n"})
    at = content.index(b"b.log") + len(b"b.log")
    path.write_bytes(content[:at] + bytes((content[at] ^ 0x55,)) + content[at + 1 :])
    (tmp_path / "into").mkdir()
    unpacked = Unpacked(tmp_path / "into")
    folder = unpacked.take(path)
    assert folder is not None
    assert (folder / "c.log").read_bytes() == b"third\n"
    assert [u.path for u in unpacked.unreadable] == [f"{path}/b.log"]


def test_a_topic_of_the_longest_name_keeps_it_in_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    folder = "t" * 249 + "-0"
    names = {f"{folder}/00000000000000000000.log": b"x", "ä" * 200 + ".log": b"y",
             "/".join(["deep" * 40] * 40): b"z", "last.log": b"end"}  # fmt: skip
    path.write_bytes(tar_of(names))
    (tmp_path / "into").mkdir()
    unpacked = Unpacked(tmp_path / "into")
    into = unpacked.take(path)
    assert into is not None
    assert (into / folder / "00000000000000000000.log").read_bytes() == b"x"
    assert (into / "last.log").read_bytes() == b"end"
    assert unpacked.unreadable == []
    assert ["too long" in u.reason for u in unpacked.left_out] == [True, True]


def members(count: int, kind: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for number in range(count):
            member = tarfile.TarInfo(f"{number}.index")
            member.type = kind
            tar.addfile(member)
    return file.getvalue()


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.REGTYPE])
def test_members_that_hold_nothing_are_counted_too(kind: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(gzip.compress(members(200, kind)))
    (tmp_path / "into").mkdir()
    unpacked = Unpacked(tmp_path / "into", Limits(members=100))
    unpacked.take(path)
    assert "more than 100 members" in unpacked.unreadable[0].reason


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE])
def test_a_tar_header_that_unpacks_to_gigabytes_is_refused_unread(
    kind: bytes, tmp_path: Path
) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 3 << 30
    path = tmp_path / "x.tar.gz"
    path.write_bytes(gzip.compress(header.tobuf() + b"7" * (1 << 20)))
    (tmp_path / "into").mkdir()
    unpacked = Unpacked(tmp_path / "into")
    unpacked.take(path)
    assert "header of 3221225472 bytes" in unpacked.unreadable[0].reason


def test_a_folder_whose_links_lead_out_gives_nothing_from_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "outside"
    shutil.copytree(LOST / "broker-2", secret)
    evidence = tmp_path / "evidence"
    shutil.copytree(LOST / "broker-1", evidence)
    (evidence / "more").symlink_to(secret)
    (evidence / "other.log").symlink_to(secret / "server.log")
    (evidence / "disk-final" / "u-0").symlink_to(secret / "disk-final" / "t-0")
    (evidence / "loop").symlink_to(evidence)
    segment = evidence / "disk-final" / "t-0" / "00000000000000000000.log"
    segment.unlink()
    segment.symlink_to(secret / "disk-final" / "t-0" / segment.name)
    os.mkfifo(segment.with_name(f"{40:020}.log"))
    (evidence / "disk-final" / "gone.log").symlink_to(tmp_path / "nowhere")
    (evidence / "self").symlink_to(evidence / "self")
    (evidence / "disk-final" / ".kafka_cleanshutdown").unlink()
    (evidence / "disk-final" / ".kafka_cleanshutdown").symlink_to("/dev/zero")
    _, text = run(capsys, "diagnose", evidence, "--format", "json")
    answer = json.loads(text)
    links = [p for p in answer["partitions"] if p["topic"] == "u"]
    assert not any(r["spans"] for p in links for r in p["replicas"])
    told = [u["path"] + u["reason"] for u in answer["input"]["unreadable"]]
    assert any(segment.name in t and "link" in t for t in told)
    assert any(f"{40:020}.log" in t and "no file" in t for t in told)
    assert any(".kafka_cleanshutdown" in t and "link" in t for t in told)


def test_a_digest_writes_no_file_larger_than_what_it_holds(tmp_path: Path) -> None:
    digest = tmp_path / "d.gz"
    lines = [
        {"digest": "kafka-log-directory-digest"},
        {"piece_of": "__cluster_metadata-0/a.log", "at": 0, "base64": "YWFh"},
        {"piece_of": "__cluster_metadata-0/a.log", "at": 1 << 40, "base64": "YWFh"},
    ]
    digest.write_bytes(gzip.compress("".join(json.dumps(x) + "\n" for x in lines).encode()))
    restore_cluster_metadata(digest, tmp_path)
    assert (tmp_path / "__cluster_metadata-0" / "a.log").read_bytes() == b"aaa"
    for name in ("../up", "../../up", "__cluster_metadata-0/../up", "__cluster_metadata-0/.x"):
        lines[2] = {"piece_of": name, "at": 0, "base64": "YWFh"}
        digest.write_bytes(gzip.compress("".join(json.dumps(x) + "\n" for x in lines).encode()))
        restore_cluster_metadata(digest, tmp_path)
    found = {str(p.relative_to(tmp_path)): p.stat().st_size for p in tmp_path.rglob("*.*")}
    assert found == {"d.gz": digest.stat().st_size, "__cluster_metadata-0/a.log": 3}


def with_numbers(digits: str) -> Iterator[str]:
    """Each example of a broker's line with each of its numbers in turn replaced, as logged."""
    for family in FAMILIES:
        for number, example in enumerate(family.examples):
            for found in re.finditer(r"\d+", example.message):
                text = example.message[: found.start()] + digits + example.message[found.end() :]
                logger = family.loggers[number % len(family.loggers)] if family.loggers else "x"
                yield f"[2026-11-20 15:18:20,000] INFO {text} ({logger})"


@pytest.mark.slow
@pytest.mark.parametrize("digits", ["9" * 30, "9" * 5_000, "٣", "²"], ids=["30", "5000", "٣", "²"])
def test_no_number_of_a_log_line_ends_the_process(
    digits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = tmp_path / "evidence"
    shutil.copytree(LOST / "broker-1", evidence)
    with (evidence / "server.log").open("a") as log:
        log.write("\n".join(with_numbers(digits)) + "\n")
    run(capsys, "diagnose", evidence, "--processes", 1)
    status, _ = run(capsys, "import", evidence, "--out", tmp_path / "e.parquet", "--processes", 1)
    assert status == 0
    status, text = run(capsys, "diagnose", tmp_path / "e.parquet", "--format", "json")
    assert [u["reason"] for u in json.loads(text)["input"]["unreadable"]] == []


def test_of_very_many_lines_that_are_no_events_the_first_are_told_and_the_others_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_dumps, "TOLD_ONE_BY_ONE", 3)
    good = [wire.to_json(event) + "\n" for event in made_trace(0)]
    (tmp_path / "a.jsonl").write_text("".join(good))
    (tmp_path / "b.jsonl").write_text(good[0] + "junk\n" * 10)
    main(["diagnose", str(tmp_path), "--format", "json"])
    told = json.loads(capsys.readouterr().out)["input"]
    assert (told["events"], told["quarantined"]) == (len(good) + 11, 10)
    assert [u["where"] for u in told["unreadable"]] == ["line 2", "line 3", "line 4", "line 11"]
    assert told["unreadable"][3]["reason"].startswith("7 more hold no event; of this one: no JSON")
