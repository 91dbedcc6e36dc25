"""Output of Kafka's own tools, as Kafka printed it.

`tool_output/dump-log-<version>[-records].txt` is what kafka-dump-log of that version said of
`segment-<version>.log`, from captured incidents: two readers of the same bytes must agree.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.log_directories.segments import RecordBatch, read_batches
from replication.evidence.metadata_log import metadata_records
from replication.evidence.metadata_log.cluster_metadata import read_cluster_metadata
from replication.evidence.tools.dump_log import (
    DumpedBatch,
    DumpedRecord,
    DumpedSegment,
    read_dump_log,
)
from replication.evidence.tools.log_dirs import LogDirectoryError, LogDirectorySize, read_log_dirs
from replication.evidence.tools.metadata_dump import is_metadata_dump, read_metadata_dump
from replication.evidence.tools.metadata_quorum import (
    QuorumReplica,
    QuorumStatus,
    read_metadata_quorum,
)
from replication.evidence.tools.tool_output import tool_output_kind
from replication.evidence.unreadable import Unreadable

HERE = Path(__file__).parent / "tool_output"
VERSIONS = ["0.10.2.2", "1.1.1", "2.8.2", "4.1.1"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "text"


def dumped(file: Path, text: str) -> list[Any]:
    file.write_text(text)
    return [one for one in read_dump_log(file) if not isinstance(one, DumpedSegment)]


# -- kafka-dump-log -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_the_tool_and_the_bytes_agree_on_every_batch(version: str) -> None:
    read = list(read_dump_log(HERE / f"dump-log-{version}.txt"))
    batches = [one.batch for one in read if isinstance(one, DumpedBatch)]
    bytes_say = [
        # the tool prints the count of a batch since 2.1
        one._replace(record_count=None) if version == "1.1.1" else one
        for one in read_batches(HERE / f"segment-{version}.log")
        if isinstance(one, RecordBatch)
    ]
    assert len(batches) > 10
    assert batches == bytes_say
    assert not [one for one in read if isinstance(one, Unreadable)]
    named = {(one.topic, one.partition) for one in read if not isinstance(one, Unreadable)}
    assert named == {("t", 0)}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_records_and_their_keys(version: str) -> None:
    read = list(read_dump_log(HERE / f"dump-log-{version}-records.txt"))
    records = [one for one in read if isinstance(one, DumpedRecord)]
    assert [one.offset for one in records] == list(range(len(records)))
    assert records[0].key == "p0-000000"
    assert all(re.fullmatch(r"p\d-\d{6}", str(one.key)) for one in records)
    assert not [one for one in read if isinstance(one, Unreadable)]
    assert records[-1].producer_id is None


BATCH = (
    "baseOffset: 4 lastOffset: 5 count: 2 baseSequence: 7 lastSequence: 8 producerId: 1000 "
    "producerEpoch: 0 partitionLeaderEpoch: 3 isTransactional: true isControl: false "
    "deleteHorizonMs: OptionalLong.empty position: 262 CreateTime: 1795187956880 size: 131 "
    "magic: 2 compresscodec: zstd crc: 2258598459 isvalid: true\n"
)


def test_a_transactional_batch_of_an_idempotent_producer(file: Path) -> None:
    (found,) = dumped(file, "Dumping /data/a-b-12/00.log\nLog starting offset: 4\n" + BATCH)
    assert (found.topic, found.partition, found.segment) == ("a-b", 12, "/data/a-b-12/00.log")
    assert found.batch == RecordBatch(
        base_offset=4,
        end_offset=6,
        leader_epoch=3,
        magic=2,
        crc=2258598459,
        size=131,
        position=262,
        producer_id=1000,
        producer_epoch=0,
        base_sequence=7,
        is_control=False,
        is_transactional=True,
        record_count=2,
        max_timestamp=1795187956880,
        codec=4,
    )


def test_keys_with_spaces_colons_and_payload_in_them(file: Path) -> None:
    key = "a payload: b"
    line = (
        f"| offset: 4 CreateTime: 5 keySize: {len(key)} valueSize: 3 sequence: 7 "
        f"headerKeys: [x,y] key: {key} payload: one\n"
    )
    found = dumped(file, BATCH + line + "two lines of\n\nbaseless text\n" + line)
    assert [type(one) for one in found] == [DumpedBatch, DumpedRecord, DumpedRecord]
    assert (found[1].key, found[1].sequence, found[1].at) == (key, 7, 5)


def test_several_files_and_indexes_between_them(file: Path) -> None:
    text = (
        f"Dumping d/t-0/00.log\n{BATCH}Dumping d/t-0/00.index\noffset: 4 position: 262\n"
        f"Dumping d\\u-1\\00.log\n{BATCH}"
    )
    assert [(one.topic, one.partition) for one in dumped(file, text)] == [("t", 0), ("u", 1)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BATCH.rstrip("\n"), "ends within this line"),
        (BATCH.replace("isvalid: true", "isvalid: false"), "offset 4 to be damaged"),
        (BATCH.replace("lastOffset: 5", "lastOffset: 3"), "ends at offset 3"),
        (BATCH.replace(" crc: 2258598459", ""), "crc missing"),
        (BATCH.replace("zstd", "brotli"), "compresscodec brotli"),
        ("something else\n", "no line of kafka-dump-log"),
        ("Found 17 invalid bytes at the end of 00.log\n", "17 invalid bytes"),
        (
            "offset: 3 position: 0 CreateTime: 5 isvalid: true payloadsize: 9 magic: 1 "
            "compresscodec: GZIP crc: 5 keysize: -1\n",
            "--deep-iteration",
        ),
    ],
)
def test_what_cannot_be_used(file: Path, text: str, reason: str) -> None:
    (found,) = dumped(file, text)
    assert isinstance(found, Unreadable)
    assert reason in found.reason
    assert found.where == "line 1"


def test_the_metadata_records_are_what_the_tool_decoded() -> None:
    """Kafka's decoder against ours, field by field, on a log with ELR elections."""
    log = HERE.parent / "cluster_metadata/last_replica_standing__4.1.1__elr_on" / f"{0:020}.log"
    ours: dict[int, metadata_records.MetadataRecord | None] = {}
    with log.open("rb") as stream:
        for batch in metadata_records.metadata_batches(stream, str(log)):
            assert not isinstance(batch, Unreadable)
            for delta, _, _, value in metadata_records.batch_records(
                batch.payload, batch.record_count
            ):
                if not batch.is_control:
                    ours[batch.base_offset + delta] = metadata_records.decode_record(value)
    text = (HERE / "dump-log-4.1.1-cluster-metadata.txt").read_text()
    decoded = re.findall(r"^\| offset: (\d+) .* payload: (\{.*\})$", text, re.MULTILINE)
    assert len(decoded) == len(ours) == 99

    def snake(name: str) -> str:
        name = re.sub(r"(?=[A-Z])", "_", name).lower()
        return "partition" if name == "partition_id" else name

    def named(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [
            {snake(k): v for k, v in one.items()} if isinstance(one, dict) else one for one in value
        ]

    compared = 0
    for offset, payload in decoded:
        record, theirs = ours[int(offset)], json.loads(payload)
        if record is None:
            continue
        not_compared = {"end_points"}
        assert record.version == theirs["version"]
        assert record.name.lower() == theirs["type"].replace("_", "").lower()
        assert {k: v for k, v in record.values.items() if k not in not_compared} == {
            snake(k): named(v) for k, v in theirs["data"].items() if snake(k) not in not_compared
        }
        compared += 1
    assert compared > 90


# -- kafka-log-dirs -------------------------------------------------------------------------------

LOG_DIRS: dict[str, Any] = {
    "version": 1,
    "brokers": [
        {
            "broker": 1,
            "logDirs": [
                {
                    "logDir": "/data/1",
                    "error": None,
                    "partitions": [
                        {"partition": "a-b-3", "size": 42, "offsetLag": 0, "isFuture": False},
                        {"partition": "t-0", "size": 7, "offsetLag": 2, "isFuture": True},
                    ],
                },
                {"logDir": "/data/2", "error": "KafkaStorageException", "partitions": []},
            ],
        }
    ],
}
HEAD = (
    "Querying brokers for log directories information\n"
    "Received log directory information from brokers 1\n"
)


@pytest.mark.parametrize("indent", [None, 2])
def test_log_dirs(file: Path, indent: int | None) -> None:
    file.write_text(HEAD + json.dumps(LOG_DIRS, indent=indent) + "\n")
    assert tool_output_kind(file) == "log_dirs"
    assert list(read_log_dirs(file)) == [
        LogDirectorySize(1, "/data/1", "a-b", 3, 42, False, str(file), 0),
        LogDirectorySize(1, "/data/1", "t", 0, 7, True, str(file), 2),
        LogDirectoryError(1, "/data/2", "KafkaStorageException", str(file)),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (json.dumps(LOG_DIRS)[:-30] + "\n", "cut or damaged"),
        ('{"version":1,"brokers":[{"broker":1}]}\n', "lacks 'logDirs'"),
        (json.dumps(LOG_DIRS).replace("42", '"42"') + "\n", "42 is no number"),
        (json.dumps(LOG_DIRS).replace("t-0", "t0") + "\n", "t0 is no topic partition"),
        ('{"brokers":[7]}\n', "no output of kafka-log-dirs"),
    ],
)
def test_log_dirs_that_cannot_be_used(file: Path, text: str, reason: str) -> None:
    file.write_text(HEAD + text)
    last = list(read_log_dirs(file))[-1]
    assert isinstance(last, Unreadable)
    assert reason in last.reason
    assert last.where == "line 3"


# -- kafka-metadata-quorum ------------------------------------------------------------------------

STATUS = """ClusterId:              q1Sh-9_ISia_zwGINzRvyQ
LeaderId:               2
LeaderEpoch:            5
HighWatermark:          66
MaxFollowerLag:         0
MaxFollowerLagTimeMs:   24
CurrentVoters:          {voters}
CurrentObservers:       []
"""
NEW_VOTERS = (
    '[{"id": 1, "directoryId": null, "endpoints": ["CONTROLLER://host:9093"]}, {"id": 2, '
    '"directoryId": null, "endpoints": ["CONTROLLER://host:9093"]}]'
)


@pytest.mark.parametrize("voters", ["[1,2]", NEW_VOTERS])
def test_quorum_status(file: Path, voters: str) -> None:
    file.write_text(STATUS.format(voters=voters))
    assert tool_output_kind(file) == "metadata_quorum"
    assert list(read_metadata_quorum(file)) == [
        QuorumStatus("q1Sh-9_ISia_zwGINzRvyQ", 2, 5, 66, (1, 2), (), str(file), 1)
    ]


def test_a_quorum_that_knows_no_high_watermark_yet(file: Path) -> None:
    file.write_text(STATUS.format(voters="[1]").replace("66", "-1") * 2)
    found = list(read_metadata_quorum(file))
    assert [getattr(one, "high_watermark", 0) for one in found] == [None, None]


def test_quorum_replication(file: Path) -> None:
    file.write_text(
        "NodeId\tLogEndOffset\tLag\tLastFetchTimestamp\tLastCaughtUpTimestamp\tStatus  \t\n"
        "3     \t318         \t0  \t1727139256030     \t1727139256030        \tLeader  \t\n"
        "1     \t310         \t8  \t1727139255964     \t1727139255964        \tFollower\t\n"
        "5     \tx           \t8  \t-1                \t-1                   \tObserver\t\n"
    )
    assert tool_output_kind(file) == "metadata_quorum"
    leader, follower, bad = read_metadata_quorum(file)
    assert leader == QuorumReplica(3, None, 318, "Leader", str(file), 2)
    assert follower == QuorumReplica(1, None, 310, "Follower", str(file), 3)
    assert isinstance(bad, Unreadable)


def test_quorum_replication_with_directories_pasted_from_a_terminal(file: Path) -> None:
    directory = "q1Sh-9_ISia_zwGINzRvyQ"
    file.write_text(
        "NodeId  DirectoryId             LogEndOffset    Lag     LastFetchTimestamp"
        "      LastCaughtUpTimestamp   Status\n"
        f"3       {directory}  318             0       6 ms ago                6 ms ago"
        "                Leader\n"
        f"4       {directory} 317 1 1727139255964 1727139255964 Observer\n"
    )
    first, second = read_metadata_quorum(file)
    assert first == QuorumReplica(3, directory, 318, "Leader", str(file), 2)
    assert second == QuorumReplica(4, directory, 317, "Observer", str(file), 3)


# -- which tool -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Starting offset: 0\n", "dump_log"),
        ("$ kafka-dump-log ...\nDumping x/t-0/00.log\n", "dump_log"),
        ("Dumping core\n", None),
        (json.dumps({"brokers": [1]}), None),
        ("[2026-11-20 15:17:30,518] INFO Dumping 00.log\n", None),
        ("Topic: t\tPartitionCount: 1\n", None),
        ("", None),
    ],
)
def test_a_file_is_known_by_its_content(file: Path, text: str, kind: str | None) -> None:
    file.write_text(text)
    assert tool_output_kind(file) == kind


def test_no_text_at_all(file: Path) -> None:
    file.write_bytes(bytes(range(256)) * 9)
    assert tool_output_kind(file) is None
    for read in (read_dump_log, read_log_dirs, read_metadata_quorum):
        assert all(isinstance(one, Unreadable) for one in read(file))


# -- kafka-dump-log --cluster-metadata-decoder ----------------------------------------------------

METADATA_DUMP = HERE / "dump-log-4.1.1-cluster-metadata.txt"


def test_the_dumped_metadata_log_tells_the_same_history_as_its_bytes() -> None:
    from_text = read_metadata_dump(METADATA_DUMP)
    from_bytes = read_cluster_metadata(
        HERE.parent / "cluster_metadata/last_replica_standing__4.1.1__elr_on"
    )
    assert tool_output_kind(METADATA_DUMP) == "metadata_dump"
    assert len(from_text.changes) > 10
    assert replace(from_text, path="") == replace(from_bytes, path="")


def test_a_dump_without_record_metadata(file: Path) -> None:
    """What --skip-record-metadata leaves: offsets have to be counted from the batch lines."""
    text = METADATA_DUMP.read_text()
    short = re.sub(r"^\| offset: .*?headerKeys: \[\] (payload: .*)$", r" \1", text, flags=re.M)
    file.write_text(re.sub(r"^\| offset: .*LeaderChange: .*$", "", short, flags=re.M))
    found, whole = read_metadata_dump(file), read_metadata_dump(METADATA_DUMP)
    assert is_metadata_dump(file)
    assert found.changes == whole.changes
    assert found.unreadable == ()


@pytest.mark.parametrize(("record_type", "known"), [(0, True), (5, False)])
def test_records_that_an_older_tool_passed_over(file: Path, record_type: int, known: bool) -> None:
    lines = METADATA_DUMP.read_text().splitlines(keepends=True)
    wanted = "REGISTER_BROKER_RECORD" if known else "PARTITION_CHANGE_RECORD"
    at = next(n for n, line in enumerate(lines) if wanted in line)
    offset = re.search(r"offset: (\d+)", lines[at])[1]  # type: ignore[index]
    failed = f"Error at {offset}, skipping. Failed to deserialize record with type {record_type}"
    lines[at] = re.sub(r"payload: .*", f"payload: {failed}", lines[at])
    file.write_text("".join(lines))
    found, whole = read_metadata_dump(file), read_metadata_dump(METADATA_DUMP)
    assert found.unreadable[0].where == f"line {at + 1}"
    if known:
        assert found.changes == whole.changes
        assert found.damaged_from is None
    else:
        assert found.changes == tuple(
            one for one in whole.changes if one.metadata_offset < int(offset)
        )
        assert found.damaged_from == int(offset)


def test_a_cut_dump_is_a_prefix(file: Path) -> None:
    whole = read_metadata_dump(METADATA_DUMP).changes
    text = METADATA_DUMP.read_text()
    for size in range(0, len(text), 997):
        file.write_text(text[:size])
        changes = read_metadata_dump(file).changes
        assert changes == whole[: len(changes)]
