"""The laboratory's own instruments, on made bytes: without Java, so they run every time."""

import struct
from pathlib import Path

import pytest
from kafka.record import MemoryRecordsBuilder

from tests.kafka_lab import dump_tool, truth
from tests.kafka_lab.history import (
    Election,
    LeaderStart,
    high_watermark_of,
    leader_start_of,
)
from tests.kafka_lab.logs_on_disk import batches, checkpoint_entries, cut_suffix, records
from tests.kafka_lab.sampler import HighWatermarkSample, LogSample


def batch(first_offset: int, leader_epoch: int, *payload_ids: str) -> bytes:
    """A batch as a leader of that epoch would have put it on its disk."""
    made = MemoryRecordsBuilder(2, 0, 10_000)
    for payload_id in payload_ids:
        made.append(timestamp=1, key=payload_id.encode(), value=b"v")
    made.close()
    found = bytearray(made.buffer())
    struct.pack_into(">q", found, 0, first_offset)
    struct.pack_into(">i", found, 12, leader_epoch)
    return bytes(found)


FIRST, SECOND, THIRD = batch(0, 0, "a", "b"), batch(2, 0, "c"), batch(3, 1, "d")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "00000000000000000000.log").write_bytes(FIRST + SECOND + THIRD)
    return tmp_path


def test_records_of_a_batch() -> None:
    assert [(held.offset, held.leader_epoch, held.payload_id) for held in records(FIRST)] == [
        (0, 0, "a"),
        (1, 0, "b"),
    ]


def test_a_torn_tail_is_no_batch() -> None:
    whole = [found for _, found in batches(FIRST + SECOND[:-1])]
    assert whole == [FIRST]
    assert [found for _, found in batches(FIRST + bytes(100))] == [FIRST]


def test_a_cut_ends_at_a_batch(directory: Path) -> None:
    cut = cut_suffix(directory, 2)
    assert cut is not None
    assert (cut.kept_end_offset, cut.removed) == (2, ("c", "d"))
    assert (directory / cut.file).read_bytes() == FIRST


def test_what_was_flushed_is_not_cut(directory: Path) -> None:
    cut = cut_suffix(directory, 3, recovery_point=3)
    assert cut is not None
    assert cut.removed == ("d",)
    assert cut_suffix(directory, 3, recovery_point=3) is None


def test_checkpoint_entries(tmp_path: Path) -> None:
    path = tmp_path / "replication-offset-checkpoint"
    assert checkpoint_entries(path) == {}
    path.write_bytes(b"")
    assert checkpoint_entries(path) == {}
    path.write_text("0\n2\nt 0 17\nother-topic 3 4\n")
    assert checkpoint_entries(path) == {("t", 0): 17, ("other-topic", 3): 4}


@pytest.mark.parametrize(
    ("line", "offset", "payload_id"),
    [
        (
            "offset: 3 position: 186 CreateTime: 17 isvalid: true payloadsize: 4 magic: 1 "
            "compresscodec: NONE crc: 5 keysize: 9 key: p0-000003 payload: p0..",
            3,
            "p0-000003",
        ),
        (
            "| offset: 10 CreateTime: 17 keySize: 9 valueSize: 19 sequence: -1 headerKeys: [] "
            'key: p0-000010 payload: {"id": 1}',
            10,
            "p0-000010",
        ),
        (
            "offset: 1 position: 0 CreateTime: 17 isvalid: true keysize: 2 valuesize: 1 magic: 2 "
            "compresscodec: NONE producerId: -1 producerEpoch: -1 sequence: -1 "
            "isTransactional: false headerKeys: [] key: k1 payload: v",
            1,
            "k1",
        ),
    ],
)
def test_record_lines_of_the_dump_tool(line: str, offset: int, payload_id: str) -> None:
    match = dump_tool.RECORD.match(line)
    assert match is not None
    assert (int(match[1]), match[2]) == (offset, payload_id)


@pytest.mark.parametrize(
    ("line", "leader_epoch", "first_offset"),
    [
        (
            "[2026-11-20 15:18:29,843] INFO [Broker id=2] Leader t-0 with topic id Some(x) starts "
            "at leader epoch 2 from offset 20 with partition epoch 4, high watermark 20, "
            "ISR [2] (state.change.logger)",
            2,
            20,
        ),
        (
            "[2026-11-20 15:18:29,843] INFO [Partition t-0 broker=2] t-0 starts at Leader Epoch 1 "
            "from offset 11. Previous Leader Epoch was: -1 (kafka.cluster.Partition)",
            1,
            11,
        ),
        (
            "[2026-11-20 15:18:29,843] TRACE Broker 2 completed LeaderAndIsr request "
            "correlationId 3 from controller 1 epoch 1 for the become-leader transition for "
            "partition t-0 (state.change.logger)",
            None,
            None,
        ),
    ],
)
def test_lines_of_a_leader_that_starts(
    line: str, leader_epoch: int | None, first_offset: int | None
) -> None:
    partition, start = leader_start_of(line, broker=2)
    assert partition == ("t", 0)
    assert start is not None
    assert (start.broker, start.leader_epoch, start.first_offset) == (
        2,
        leader_epoch,
        first_offset,
    )
    assert start.at == pytest.approx(1795187909.843)


@pytest.mark.parametrize(
    ("text", "high_watermark"),
    [
        (
            "[Partition t-0 broker=1] High watermark updated from (offset=4 segment=[0:388]) to "
            "(offset=5 segment=[0:485]) (kafka.cluster.Partition)",
            5,
        ),
        (
            "[Partition t-0 broker=1] High watermark updated from (offset=4, segment=[0:388]) to "
            "(offset=6, segment=[0:485]) (kafka.cluster.Partition)",
            6,
        ),
        ("[Partition t-0 broker=1] High watermark updated to 14 [0 : 1346] (kafka.x)", 14),
        (
            "Partition [t,0] on broker 1: High watermark for partition [t,0] updated to 1 [0 : 62] "
            "(kafka.cluster.Partition)",
            1,
        ),
    ],
)
def test_lines_of_a_high_watermark(text: str, high_watermark: int) -> None:
    found = high_watermark_of(f"[2026-11-20 15:18:29,843] DEBUG {text}", broker=1)
    assert found is not None
    assert (found.topic, found.partition, found.high_watermark) == ("t", 0, high_watermark)
    assert found.in_logs


def log_sample(at: float, broker: int, *held: bytes) -> LogSample:
    return LogSample(at, broker, "t", 0, held)


def acked(payload_id: str, offset: int, ts: str, acks: str, broker: int) -> dict[str, object]:
    return {
        "topic": "t",
        "partition": 0,
        "payload_id": payload_id,
        "offset": offset,
        "ts": f"1970-01-01T00:00:{ts}Z",
        "acks": acks,
        "status": "acked",
        "broker": broker,
    }


def dumped(*held: bytes) -> list[dump_tool.Dumped]:
    return [
        dump_tool.Dumped(one.offset, one.leader_epoch, one.payload_id, "v")
        for part in held
        for one in records(part)
    ]


def view(**known: object) -> truth.View:
    """Broker 1 leads from second 1, broker 2 from second 10; the end is at 20."""
    fields: dict[str, object] = {
        "partition": ("t", 0),
        "acks": [],
        "elections": [Election(1, 0, 1, (1, 2)), Election(10, 1, 2, (1, 2))],
        "starts": [LeaderStart(1.1, 1, 0, 0), LeaderStart(10.1, 2, 1, 2)],
        "samples": [log_sample(1.0, 1, FIRST), log_sample(1.0, 2, FIRST)],
        "high_watermarks": [],
        "finals": {1: dumped(FIRST), 2: dumped(FIRST)},
        "quiet_at": 20.0,
    }
    return truth.View(**{**fields, **known})  # type: ignore[arg-type]


def judged(one: truth.View, shown: frozenset[str] = frozenset()) -> truth.PartitionTruth:
    return truth.judge(one, set(shown), lambda payload_id: False)


def test_nothing_lost() -> None:
    found = judged(view(acks=[acked("a", 0, "05.000", "all", 1)]))
    assert set(found.verdicts.values()) == {"HOLDS"}
    assert found.leader == 2


def test_an_acknowledged_record_that_no_leader_has() -> None:
    found = judged(view(acks=[acked("c", 2, "05.000", "all", 1)]))
    assert found.verdicts["committed_records_survive"] == "VIOLATED"
    assert found.lost == {"all": [2]}
    assert found.missing_at_start == ["leader 2 in epoch 1 from 2: c"]
    found = judged(view(acks=[acked("c", 2, "05.000", "1", 1)]))
    assert found.verdicts["committed_records_survive"] == "HOLDS"
    assert found.verdicts["acknowledged_records_survive"] == "VIOLATED"


def test_what_a_zombie_acknowledges_is_not_committed() -> None:
    found = judged(view(acks=[acked("c", 2, "15.000", "all", 1)]))
    assert found.verdicts["committed_records_survive"] == "HOLDS"
    assert found.verdicts["acknowledged_records_survive"] == "VIOLATED"


def test_an_acknowledgement_around_the_election_is_not_judged() -> None:
    found = judged(view(acks=[acked("c", 2, "10.100", "all", 1)]))
    assert found.verdicts["committed_records_survive"] is None


def test_a_record_below_a_high_watermark_is_committed() -> None:
    samples = [log_sample(1.0, 1, FIRST, SECOND), log_sample(1.0, 2, FIRST)]
    one = view(
        samples=samples,
        high_watermarks=[HighWatermarkSample(5.0, 1, "t", 0, 3)],
    )
    found = judged(one)
    assert found.lost_committed == ["c"]
    assert found.only_beyond_evidence
    assert judged(one, frozenset({"c"})).only_beyond_evidence is False


def test_a_deposed_leader_raises_its_high_watermark_in_vain() -> None:
    samples = [log_sample(1.0, 1, FIRST, SECOND), log_sample(1.0, 2, FIRST)]
    late = [HighWatermarkSample(15.0, 1, "t", 0, 3)]
    assert judged(view(samples=samples, high_watermarks=late)).lost_committed == []


def test_a_record_that_came_back_was_missing() -> None:
    """Gone under leader 2, back under leader 1: survived at the end, lost in between."""
    acks = [acked("c", 2, "05.000", "all", 1)]
    elections = [*view().elections, Election(12, 2, 1, (1,))]
    found = judged(
        view(
            acks=acks,
            elections=elections,
            samples=[log_sample(1.0, 1, FIRST, SECOND), log_sample(1.0, 2, FIRST)],
            finals={1: dumped(FIRST, SECOND), 2: dumped(FIRST, SECOND)},
        )
    )
    assert found.lost == {}
    assert found.verdicts["committed_records_survive"] == "VIOLATED"


def test_a_kept_truth_is_read_back(tmp_path: Path) -> None:
    found = {("t-x", 0): judged(view(acks=[acked("c", 2, "05.000", "all", 1)]))}
    truth.save_truths(tmp_path / "truth.json", found)
    assert truth.load_truths(tmp_path / "truth.json") == found


def test_divergence_counts_between_members_of_the_isr() -> None:
    finals = {1: dumped(FIRST, SECOND), 2: dumped(FIRST, batch(2, 1, "x"))}
    found = judged(view(finals=finals))
    assert found.verdicts["log_matching"] == "VIOLATED"
    assert found.divergent_offsets == {"1,2": [2]}
    elections = [Election(1, 0, 1, (1, 2)), Election(10, 1, 2, (2,))]
    assert judged(view(finals=finals, elections=elections)).verdicts["log_matching"] is None
