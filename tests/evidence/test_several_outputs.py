"""A file of several kinds of output gives what each of them gives alone, in any order and however
it was pasted; what cannot be told apart is said."""

import gzip
import json
from itertools import permutations
from pathlib import Path

import pytest

from replication.evidence.collecting.collection import Collection, read_file

ID = "Ax3KaJQfT_y1mUr2sRkWjA"
RECORD = (
    "| offset: 0 CreateTime: 1795188000000 keySize: 1 valueSize: 1 sequence: -1 headerKeys: [] "
    "key: a payload: b"
)
BATCH = (
    "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 "
    "producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: false "
    "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1795188000000 size: 70 magic: 2 "
    "compresscodec: none crc: 1 isvalid: true"
)
METADATA = (
    "| offset: 0 CreateTime: 1795188000000 keySize: -1 valueSize: 9 sequence: -1 headerKeys: [] "
    'payload: {"type":"TOPIC_RECORD","version":0,"data":{"name":"t","topicId":"' + ID + '"}}'
)
CUT = "[UnifiedLog partition=t-0, dir=/d] Truncating to offset 7"
LOG = f"[2026-05-01 10:00:00,100] INFO {CUT} (kafka.log.UnifiedLog)"
ACK = {"ts": "2026-05-01T10:00:00Z", "client": "c", "topic": "t", "partition": 0, "offset": 3,
       "acks": "all", "status": "acked"}  # fmt: skip
REPLICA = {"partition": "t-0", "size": 9, "offsetLag": 0, "isFuture": False}
DIRECTORY = {"logDir": "/d", "error": None, "partitions": [REPLICA]}
DIRECTORIES = {"version": 1, "brokers": [{"broker": 1, "logDirs": [DIRECTORY]}]}
PIECES = {
    "describe": "Topic: t\tTopicId: " + ID + "\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: "
    "min.insync.replicas=1\n\tTopic: t\tPartition: 0\tLeader: 2\tReplicas: 1,2\tIsr: 2",
    "describe as pasted": "Topic: t   PartitionCount: 1   ReplicationFactor: 2   Configs: \n"
    "   Topic: t   Partition: 0    Leader: 2   Replicas: 1,2   Isr: 2",
    "describe as wrapped": "Topic: t\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: a.b=1\n"
    "\tTopic: t\tPartition: 0\tLeader: 2\n\tReplicas: 1,\n2\tIsr: 2",
    "log": f"{LOG}\n{LOG.replace('t-0', 't-1')}",
    "log without stamp": f"INFO {CUT}",
    "log without anything": CUT,
    "log in JSON": json.dumps({"timestamp": "2026-05-01T10:00:00Z", "level": "INFO",
                               "logger": "kafka.log.UnifiedLog", "message": CUT}),
    "dump": f"Dumping /d/t-0/00000000000000000000.log\nStarting offset: 0\n{BATCH}\n{RECORD}",
    "metadata dump": "Dumping /d/__cluster_metadata-0/00000000000000000000.log\n"
    f"Starting offset: 0\n{BATCH}\n{METADATA}",
    "directories": "Querying brokers for log directories information\nReceived log directory "
    f"information from brokers 1\n{json.dumps(DIRECTORIES)}",
    "directories on many lines": json.dumps(DIRECTORIES, indent=2),
    "quorum": f"ClusterId:              {ID}\nLeaderId:               100\nLeaderEpoch:     1\n"
    "HighWatermark:          50\nCurrentVoters:          [100]\nCurrentObservers:       [1]",
    "quorum's replicas": "NodeId\tLogEndOffset\tLag\tLastFetchTimestamp\tLastCaughtUpTimestamp\t"
    "Status\n100\t50\t0\t1795188000000\t1795188000000\tLeader",
    "acknowledgements": f"{json.dumps(ACK)}\n{json.dumps({**ACK, 'offset': 4})}",
    "acknowledgements in CSV": f"{','.join(ACK)}\n{','.join(map(str, ACK.values()))}",
}  # fmt: skip
# Directly behind a printed record it may be the rest of that.
MAY_BE_PAYLOAD = (
    "log", "log without stamp", "log without anything", "log in JSON", "acknowledgements",
    "directories on many lines",
)  # fmt: skip
BETWEEN = {"nothing": "", "an empty line": "\n", "a command": "\n$ kafka-topics.sh --describe\n",
           "a sentence": "\nThis is what we saw next, on the third broker:\n\n"}  # fmt: skip


def given(path: Path) -> dict[str, int]:
    """How much of what a file gives."""
    read: Collection = read_file(path)
    assert read.ignored == []
    return {
        "descriptions": len(read.descriptions),
        "dumps": len(read.found_dumps),
        "histories": len(read.metadata_dumps),
        "directories": len(read.log_dirs),
        "quorum": len(read.quorum),
        "acknowledgements": len(read.acknowledgements),
        "lines": sum(log.count for log in read.found_logs),
        "telling": sum(
            1 + fact.fields.get("repeats", 0) for log in read.found_logs for fact in log.telling
        ),
    }


def alone(text: str, folder: Path) -> dict[str, int]:
    (folder / "alone.txt").write_text(text + "\n")
    found = given(folder / "alone.txt")
    assert any(found.values())
    return found


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("first", PIECES)
def test_any_two_in_one_file_give_what_each_gives(first: str, between: str, tmp_path: Path) -> None:
    for second in PIECES:
        if second == first or {first, second} == {"acknowledgements", "acknowledgements in CSV"}:
            continue
        text = f"{PIECES[first]}\n{BETWEEN[between]}{PIECES[second]}\n"
        path = tmp_path / "ticket.txt"
        path.write_text(text)
        a, b = alone(PIECES[first], tmp_path), alone(PIECES[second], tmp_path)
        both = {what: a[what] + b[what] for what in a}
        if first.endswith("dump") and between == "nothing" and second in MAY_BE_PAYLOAD:
            said = [u.reason for u in read_file(path).unreadable]
            assert len(said) == 1, second
            assert "may be that record's payload" in said[0]
            continue
        assert given(path) == both, f"{second} behind {first}"


def test_all_in_one_file_packed(tmp_path: Path) -> None:
    texts = [PIECES[kind] for kind in PIECES if kind != "acknowledgements in CSV"]
    total: dict[str, int] = {}
    for text in texts:
        for what, count in alone(text, tmp_path).items():
            total[what] = total.get(what, 0) + count
    path = tmp_path / "case.txt.gz"
    path.write_bytes(gzip.compress("\n\n".join([*texts, ""]).encode()))
    assert given(path) == total


def test_other_text_is_told_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(f"It went so:\n{PIECES['describe']}\nAnd then?\n{LOG}\n")
    (told,) = read_file(path).recognised.values()
    assert told == (
        "several kinds in one file: other text, not read (line 1 and 1 more), output of "
        "kafka-topics (lines 2..3), a broker's log (line 5)"
    )


def test_a_log_of_one_kind_is_not_taken_apart(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text(f"{LOG}\nand a line of a stack\n{LOG}\n")
    read = read_file(path)
    assert (read.recognised, [log.count for log in read.found_logs]) == ({}, [2])


def test_a_record_that_holds_a_log_line_is_no_log(tmp_path: Path) -> None:
    """A topic of logs, dumped with its payloads."""
    path = tmp_path / "dump.txt"
    path.write_text(f"{PIECES['dump']}{LOG}\n{RECORD}{LOG}\n\tat a.b.C\n")
    read = read_file(path)
    assert read.found_logs == []
    assert len(read.found_dumps) == 1


def test_kinds_of_output_in_all_orders(tmp_path: Path) -> None:
    for order in permutations(("describe", "log", "quorum", "dump")):
        path = tmp_path / "case.txt"
        path.write_text("\n\n".join(PIECES[kind] for kind in order) + "\n")
        found = given(path)
        counts = [found[w] for w in ("descriptions", "lines", "quorum", "dumps")]
        assert counts == [2, 2, 1, 1], order
