"""The laboratory's own instruments, on made bytes: without Java, so they run every time."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from kafka.record import MemoryRecordsBuilder

from tests.kafka_lab import causes, dump_tool, truth
from tests.kafka_lab.__main__ import report
from tests.kafka_lab.ablation import names_of, withheld_by
from tests.kafka_lab.comparing import (
    Comparison,
    compare_causes,
    named_by_offset,
    of_its_lineage,
)
from tests.kafka_lab.history import (
    Election,
    LeaderStart,
    Life,
    high_watermark_of,
    leader_start_of,
    lives,
    terms,
)
from tests.kafka_lab.lineage import Replicas
from tests.kafka_lab.logs_on_disk import batches, checkpoint_entries, cut_suffix, records
from tests.kafka_lab.notes import HighWatermarkSample, LogSample, Notes
from tests.kafka_lab.versions import Version


def batch(first_offset: int, leader_epoch: int, *payload_ids: str, key: str = "") -> bytes:
    """A batch as a leader of that epoch would have put it on its disk."""
    made = MemoryRecordsBuilder(2, 0, 10_000)
    for payload_id in payload_ids:
        named = (key or payload_id).encode()
        made.append(timestamp=1, key=named, value=payload_id.encode().ljust(9, b"."))
    made.close()
    found = bytearray(made.buffer())
    struct.pack_into(">q", found, 0, first_offset)
    struct.pack_into(">i", found, 12, leader_epoch)
    return bytes(found)


def marker(of: bytes) -> bytes:
    """The batch as one of transaction markers (attributes, bit 5)."""
    found = bytearray(of)
    found[22] |= 0x20
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


def test_a_cut_of_transaction_markers_alone_names_where_they_stood(directory: Path) -> None:
    path = directory / "00000000000000000000.log"
    path.write_bytes(FIRST + SECOND + marker(THIRD))
    cut = cut_suffix(directory, 1)
    assert cut is not None
    assert (cut.kept_end_offset, cut.removed) == (3, ())
    assert path.read_bytes() == FIRST + SECOND


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
        dump_tool.Dumped(one.offset, one.leader_epoch, one.payload_id, one.key)
        for part in held
        for one in records(part)
    ]


IN_SYNC = [Election(1, 0, 1, (1, 2)), Election(10, 1, 2, (1, 2))]
SHRUNK = [Election(1, 0, 1, (1, 2)), Election(2, 0, 1, (1,)), Election(10, 1, 2, (2,))]
# Broker 1 has a record that broker 2, the next leader, has not.
LONGER = [
    log_sample(0.9, 1, FIRST),
    log_sample(0.9, 2, FIRST),
    log_sample(4.9, 1, FIRST, SECOND),
    log_sample(10.6, 2, FIRST),
]


CUT_IT = "truncate_to_high_watermark"


def view(**known: object) -> truth.View:
    """Broker 1 leads from second 1, broker 2 from second 10; the end is at 20."""
    fields: dict[str, object] = {
        "partition": ("t", 0),
        "life": Life(0, 20),
        "acks": [],
        "elections": IN_SYNC,
        "starts": [LeaderStart(1.1, 1, 0, 0), LeaderStart(10.1, 2, 1, 2)],
        "samples": [log_sample(0.9, 1, FIRST), log_sample(0.9, 2, FIRST)],
        "high_watermarks": [],
        "finals": {1: dumped(FIRST), 2: dumped(FIRST)},
        "shown": set(),
        "storage": [],
        "settings": causes.Settings(Version("4.3.0")),
    }
    return truth.View(**{**fields, **known})  # type: ignore[arg-type]


def verdicts(one: truth.PartitionTruth) -> tuple[str | None, str | None]:
    told = one.verdicts
    return told["committed_records_survive"], told["acknowledged_records_survive"]


def test_nothing_lost() -> None:
    found = truth.judge(view(acks=[acked("a", 0, "05.000", "all", 1)]))
    assert set(found.verdicts.values()) == {"HOLDS"}
    assert found.leader == 2


def test_an_acknowledged_record_that_no_leader_has() -> None:
    one = view(samples=LONGER, acks=[acked("c", 2, "05.000", "all", 1)])
    found = truth.judge(one)
    assert verdicts(found) == ("VIOLATED", "VIOLATED")
    assert found.lost("all") == {2}
    (loss,) = found.losses
    assert loss.missing_from == "leader 2 in epoch 1"
    assert (loss.contracts, loss.statuses) == (["broken"], ["lost"])
    one = view(samples=LONGER, acks=[acked("c", 2, "05.000", "1", 1)])
    found = truth.judge(one)
    assert verdicts(found) == ("HOLDS", "VIOLATED")
    assert found.losses[0].causes == ["acks_one_failover"]
    assert found.losses[0].contracts == ["not_promised"]


def test_what_a_zombie_acknowledges_is_not_committed() -> None:
    one = view(samples=LONGER, acks=[acked("c", 2, "15.000", "all", 1)])
    assert verdicts(truth.judge(one)) == ("HOLDS", "VIOLATED")


def test_an_acknowledgement_around_the_election_is_not_judged() -> None:
    late = {**acked("c", 2, "10.100", "all", 1), "sent_ts": "1970-01-01T00:00:09.000Z"}
    assert verdicts(truth.judge(view(samples=LONGER, acks=[late])))[0] is None


def test_a_record_below_a_high_watermark_is_committed() -> None:
    high_watermarks = [HighWatermarkSample(5.0, 1, "t", 0, 3)]
    found = truth.judge(view(samples=LONGER, high_watermarks=high_watermarks))
    assert verdicts(found)[0] == "VIOLATED"
    assert found.only_beyond_evidence
    shown = view(samples=LONGER, high_watermarks=high_watermarks, shown={"c"})
    assert truth.judge(shown).only_beyond_evidence is False


def test_a_deposed_leader_raises_its_high_watermark_in_vain() -> None:
    late = [HighWatermarkSample(15.0, 1, "t", 0, 3)]
    written_late = [*LONGER[:2], log_sample(14.0, 1, FIRST, SECOND)]
    assert verdicts(truth.judge(view(samples=written_late, high_watermarks=late)))[0] == "HOLDS"


def test_whether_a_deposed_leader_had_committed_before_is_not_known() -> None:
    late = [HighWatermarkSample(15.0, 1, "t", 0, 3)]
    assert verdicts(truth.judge(view(samples=LONGER, high_watermarks=late)))[0] is None


def test_a_lone_leader_commits_what_it_writes() -> None:
    """Also what it was asked to write at acks=0; from 3.7 not below the minimum of the ISR."""
    samples = [*LONGER, log_sample(7.0, 1, FIRST, SECOND, batch(3, 0, "d"))]
    one = view(samples=samples, elections=SHRUNK)
    assert {loss.payload_id for loss in truth.judge(one).losses if loss.committed} == {"c", "d"}
    waits = causes.Settings(Version("4.3.0"), min_insync_replicas=2)
    assert not any(loss.committed for loss in truth.judge(replace(one, settings=waits)).losses)


def test_a_lone_leader_waits_for_who_fetches_again() -> None:
    """Caught up and about to join the ISR; then it stops once more."""
    last = batch(3, 0, "d")
    samples = [
        *LONGER, log_sample(6.0, 2, FIRST, SECOND), log_sample(7.0, 1, FIRST, SECOND, last),
    ]  # fmt: skip
    one = view(samples=samples, elections=SHRUNK)
    assert not any(loss.committed for loss in truth.judge(one).losses)


def test_what_is_written_anew_after_a_disk_lost_records_is_not_committed_with_those() -> None:
    lost, anew = batch(3, 0, "d"), batch(2, 0, "e")
    samples = [
        *LONGER,
        log_sample(5.1, 1, FIRST, SECOND, lost),
        log_sample(6.0, 1, FIRST),
        log_sample(7.0, 1, FIRST, anew),
    ]
    acks = [acked("d", 3, "05.200", "all", 1), acked("e", 2, "07.000", "1", 1)]
    found = truth.judge(view(samples=samples, acks=acks))
    assert {one.payload_id for one in found.losses if one.committed} == {"c", "d"}


def test_an_unclean_election_is_the_cause_and_promises_nothing_where_permitted() -> None:
    acks = [acked("c", 2, "05.000", "all", 1)]
    for permitted, contract in ((True, "not_promised"), (False, "broken")):
        settings = causes.Settings(Version("4.3.0"), unclean=permitted)
        one = view(samples=LONGER, elections=SHRUNK, acks=acks, settings=settings)
        (loss,) = truth.judge(one).losses
        assert (loss.causes, loss.contracts) == (["unclean_election"], [contract])


def test_a_disk_that_was_cut_is_the_cause() -> None:
    """The last member of the ISR loses it, and leads again; one of two that must hold it."""
    elections = [*SHRUNK[:2], Election(9, 1, None, (1,)), Election(10, 2, 1, (1,))]
    one = view(
        samples=[*LONGER, log_sample(8.0, 1, FIRST), log_sample(10.6, 1, FIRST)],
        elections=elections,
        acks=[acked("c", 2, "05.000", "all", 1)],
        starts=[LeaderStart(1.1, 1, 0, 0), LeaderStart(10.1, 1, 2, 2)],
        storage=[causes.StorageLoss(7.9, 1, frozenset({"c"}))],
    )
    (loss,) = truth.judge(one).losses
    assert (loss.causes, loss.contracts) == (["storage_loss"], ["not_promised"])
    demanding = causes.Settings(Version("4.3.0"), min_insync_replicas=2)
    (loss,) = truth.judge(replace(one, settings=demanding)).losses
    assert (loss.causes, loss.contracts) == (["last_replica_standing"], ["broken"])


def test_a_log_that_changes_no_more_after_its_cut_is_lacking_at_the_next_election() -> None:
    """No look follows the election: what the broker has when the run is over tells it."""
    one = view(
        samples=[*LONGER[:3], log_sample(5.0, 2, FIRST, SECOND), log_sample(9.0, 2, FIRST)],
        elections=[IN_SYNC[0], Election(7, 0, 1, (1,)), Election(10, 1, 2, (2,))],
        acks=[acked("c", 2, "05.500", "all", 1)],
        storage=[causes.StorageLoss(8.9, 2, frozenset({"c"}))],
    )
    (loss,) = truth.judge(one).losses
    assert loss.causes == ["storage_loss", "unclean_election"]
    assert loss.missing_from == "leader 2 in epoch 1"


def test_a_disk_that_nobody_led_after_is_the_cause() -> None:
    """All had crashed; the last member of the ISR comes back empty and is not elected any more."""
    elections = [*IN_SYNC, Election(12, 1, 2, (2,)), Election(13, 2, None, ())]
    both = [log_sample(5.0, 2, FIRST, SECOND), log_sample(15.0, 2), log_sample(15.0, 1)]
    one = view(
        samples=[*LONGER[:3], *both],
        elections=elections,
        acks=[acked("c", 2, "05.500", "all", 1)],
        storage=[causes.StorageLoss(14.0, 1, None), causes.StorageLoss(14.0, 2, None)],
        finals={1: [], 2: []},
        settings=causes.Settings(Version("4.3.0"), min_insync_replicas=2),
    )
    found = {(tuple(x.causes), tuple(x.contracts)) for x in truth.judge(one).losses}
    assert found == {(("last_replica_standing",), ("not_promised",))}


def test_what_no_look_saw_was_on_the_disk_of_the_last_leader_that_answered_for_it() -> None:
    one = view(
        acks=[acked("c", 2, "15.000", "all", 2)],
        storage=[causes.StorageLoss(16.0, broker, frozenset("c")) for broker in (1, 2)],
    )
    (loss,) = truth.judge(one).losses
    assert (loss.causes, loss.contracts) == (["storage_loss"], ["not_promised"])


def test_a_disk_that_is_lost_while_its_broker_is_down_was_lost_at_some_time_of_it() -> None:
    """Broker 1 is down at the unclean election; its disk is emptied after that."""
    actions = [
        {"ts": "1970-01-01T00:00:09.000Z", "action": "kill9", "broker": 1},
        {"ts": "1970-01-01T00:00:12.000Z", "action": "empty_disk", "broker": 1},
    ]
    (storage,) = causes.storage_losses(actions, 0)
    assert (storage.at, storage.down_since) == (12, 9)
    one = view(
        samples=[*LONGER, log_sample(12.1, 1)],
        elections=SHRUNK,
        acks=[acked("c", 2, "05.000", "all", 1)],
        storage=[storage],
    )
    (loss,) = truth.judge(one).losses
    assert (loss.causes, loss.contracts) == (
        ["storage_loss", "unclean_election"],
        ["broken", "not_promised"],
    )
    early = replace(storage, down_since=11.0)
    (loss,) = truth.judge(replace(one, storage=[early])).losses
    assert loss.causes == ["unclean_election"]


def test_a_row_is_held_against_the_recordsof_its_lineage() -> None:
    found = truth.judge(view(samples=LONGER, acks=[acked("c", 2, "05.000", "all", 1)])).losses
    known = [*found, replace(found[0], payload_id="z", leader_epoch=4)]

    def meant(leader_epoch: int | None) -> list[str]:
        return [one.payload_id for one in of_its_lineage(known, {"leader_epoch": leader_epoch})]

    assert meant(0) == ["c"]
    assert meant(4) == ["z"]
    assert meant(None) == meant(7) == ["c", "z"]


def test_a_row_of_another_lineage_that_was_written_there_is_held_against_no_record() -> None:
    """What stood there in epoch 0 is back, and the record of epoch 4 is lost."""
    row = {
        "topic": "t", "partition": 0, "first_offset": 2, "end_offset": 3, "leader_epoch": 0,
        "status": "recovered", "cause": "storage_loss", "contract": "broken",
    }  # fmt: skip
    samples = [*LONGER, log_sample(5.0, 3, FIRST, marker(batch(2, 3, "", key="\0\0\0\1")))]
    found = truth.judge(view(samples=samples, acks=[acked("c", 2, "05.000", "all", 1)]))
    assert found.held == [[2, 0], [2, 3]]
    found.losses = [replace(one, leader_epoch=4, statuses=["lost"]) for one in found.losses]

    def causes_told(of: truth.PartitionTruth) -> int:
        told = Comparison("run")
        compare_causes(told, {"losses": [row]}, ("t", 0), of)
        return told.causes

    assert causes_told(found) == 0
    assert causes_told(replace(found, held=[])) == 3


def test_a_leader_without_epochs_may_have_cut_what_it_had_answered_for_at_acks_one() -> None:
    """Broker 2 had the record, and cut it to its high watermark when broker 3 was to lead."""
    samples = [*LONGER, log_sample(5.0, 2, FIRST, SECOND), log_sample(8.0, 2, FIRST)]
    acks = [acked("c", 2, "05.000", "1", 1)]
    new = view(samples=samples, acks=acks, settings=causes.Settings(Version("1.1.1")))
    old = replace(new, settings=causes.Settings(Version("0.10.2.2")))
    told = [set(truth.judge(one).losses[0].causes) for one in (new, old)]
    assert told[1] - told[0] == {"truncate_to_high_watermark"}


def test_what_came_and_went_between_two_looks_was_there() -> None:
    """A leader said that it wrote it, and nobody knows who had fetched it."""
    old = causes.Settings(Version("1.1.1"))
    for settings, cut in ((old, []), (replace(old, version=Version("0.10.2.2")), [CUT_IT])):
        one = view(acks=[acked("c", 2, "05.000", "1", 1)], settings=settings)
        found = truth.judge(one)
        assert found.gone_offsets == [2]
        assert found.losses[0].causes == ["acks_one_failover", *cut]


def test_what_a_deposed_leader_took_went_with_the_election_that_deposed_it() -> None:
    """Broker 1 answers after broker 2's unclean election, and before the clean one of broker 3."""
    unclean = [*SHRUNK, Election(12, 1, 2, (2, 3)), Election(16, 2, 3, (2, 3))]
    seen = [(0.9, 1), (0.9, 2), (10.6, 2), (15.9, 3), (16.3, 3)]
    one = view(
        elections=unclean,
        starts=[LeaderStart(1.1, 1, 0, 0), LeaderStart(10.1, 2, 1, 2), LeaderStart(16.1, 3, 2, 2)],
        samples=[*(log_sample(*when, FIRST) for when in seen), log_sample(14.9, 1, FIRST, SECOND)],
        acks=[acked("c", 2, "15.000", "1", 1)],
        finals={3: dumped(FIRST)},
    )
    (loss,) = truth.judge(one).losses
    assert loss.causes == ["unclean_election"]


def test_a_record_that_came_back_was_missing() -> None:
    """Gone under leader 2, back under leader 1: survived at the end, lost in between."""
    one = view(
        acks=[acked("c", 2, "05.000", "all", 1)],
        elections=[*IN_SYNC, Election(12, 2, 1, (1,))],
        samples=LONGER,
        finals={1: dumped(FIRST, SECOND), 2: dumped(FIRST, SECOND)},
    )
    found = truth.judge(one)
    assert found.lost("all") == set()
    assert [loss.statuses for loss in found.losses] == [["recovered"]]
    assert verdicts(found)[0] == "VIOLATED"


def test_what_came_back_after_a_close_call_may_be_told_as_recovered() -> None:
    """Acknowledged as leader 2 is elected, which lacks it; back under leader 1."""
    one = view(
        acks=[acked("c", 2, "10.040", "1", 1)],
        elections=[*IN_SYNC, Election(12, 2, 1, (1,))],
        starts=[LeaderStart(1.1, 1, 0, 0), LeaderStart(10.08, 2, 1, 2)],
        samples=LONGER,
        finals={1: dumped(FIRST, SECOND), 2: dumped(FIRST, SECOND)},
    )
    found = truth.judge(one)
    (loss,) = found.losses
    assert (loss.statuses, loss.sure, loss.leader_epoch) == (["recovered"], False, 0)
    assert verdicts(found)[1] is None


def test_compaction_takes_what_a_later_record_of_its_key_replaces() -> None:
    newer = batch(3, 0, "d", key="c")
    one = view(
        acks=[acked("c", 2, "05.000", "all", 1)],
        samples=[log_sample(4.9, 1, FIRST, SECOND), log_sample(8.0, 2, FIRST, newer)],
        finals={2: dumped(FIRST, newer)},
        compacted=True,
    )
    assert verdicts(truth.judge(one)) == ("HOLDS", "HOLDS")
    assert verdicts(truth.judge(replace(one, compacted=False))) == ("VIOLATED", "VIOLATED")


def test_an_emptied_disk_took_what_compaction_had_left_in_a_records_place() -> None:
    newer = batch(3, 0, "d", key="c")
    replicas = Replicas(
        [log_sample(2.0, 1, FIRST, SECOND), log_sample(4.0, 1, FIRST, newer), log_sample(9.0, 1)]
    )
    (held,) = records(SECOND)
    loss = causes.Loss(held, 3.0, 10.0, terms(IN_SYNC, 20)[0], promised=True)
    emptied = [causes.StorageLoss(8.0, 1, None)]
    why = causes.why(loss, replicas, emptied, causes.Settings(Version("4.3.0")))
    assert why.causes == {"storage_loss"}


def test_who_came_back_with_less_and_is_eligible_no_more_was_the_last_to_be_waited_for() -> None:
    """KIP-966: the ISR is empty, and its last member's unclean start takes it from the ELR too."""
    known = [
        Election(1, 0, 1, (1,)),
        Election(9, 1, None, (), elr=(1,)),
        Election(9.9, 1, None, ()),
    ]
    one = view(
        samples=[*LONGER, log_sample(9.5, 1, FIRST)],
        elections=[*known, Election(10, 2, 2, (2,))],
        acks=[acked("c", 2, "05.000", "all", 1)],
        starts=[LeaderStart(1.1, 1, 0, 0), LeaderStart(10.1, 2, 2, 2)],
        storage=[causes.StorageLoss(9.4, 1, frozenset({"c"}), 8.0)],
    )
    (loss,) = truth.judge(one).losses
    assert loss.causes == ["storage_loss", "unclean_election"]


@pytest.mark.parametrize(("adding", "unclean"), [((), False), ((3,), True)])
def test_who_was_added_by_a_reassignment_that_ended_so_was_in_sync(
    adding: tuple[int, ...], unclean: bool
) -> None:
    """Alone: the rest of its target is away (KAFKA-19975)."""
    known = [Election(1, 0, 1, (1,), adding=(3,)), Election(10, 1, 3, (3,), adding=adding)]
    assert terms(known, 20)[-1].unclean is unclean
    assert terms([replace(known[0], adding=()), known[1]], 20)[-1].unclean


def test_an_emptied_disk_took_what_came_just_before_its_broker_went_down() -> None:
    replicas = Replicas(
        [log_sample(7.0, 1, FIRST), log_sample(7.8, 1, FIRST, SECOND), log_sample(9.0, 1)]
    )
    (held,) = records(SECOND)
    loss = causes.Loss(held, 7.7, 10.0, terms(IN_SYNC, 20)[0], promised=True)
    emptied = [causes.StorageLoss(8.0, 1, None)]
    why = causes.why(loss, replicas, emptied, causes.Settings(Version("4.3.0")))
    assert why.causes == {"storage_loss"}


def test_lives_of_a_topic_are_told_apart() -> None:
    actions = [
        {"action": kind, "topic": "t", "topic_id": number, "ts": f"1970-01-01T00:00:{at:02}.000Z"}
        for kind, number, at in (
            ("create_topic", "A", 1),
            ("delete_topic", None, 5),
            ("deleted_topic", None, 6),
            ("create_topic", "B", 7),
            ("quiet_point", None, 9),
        )
    ]
    assert lives(actions, "t") == [Life(0, 5, "A"), Life(6, 9, "B")]


def test_samples_and_truths_are_read_back(tmp_path: Path) -> None:
    notes = Notes(LONGER, [HighWatermarkSample(5.0, 1, "t", 0, 3)])
    notes.save(tmp_path)
    assert Notes.load(tmp_path) == notes
    one = view(samples=LONGER, acks=[acked("c", 2, "05.000", "all", 1)])
    found = {("t-x", 0): truth.judge(one)}
    truth.save_truths(tmp_path / "truth.json", found)
    assert truth.load_truths(tmp_path / "truth.json") == found


def test_divergence_counts_between_members_of_the_isr() -> None:
    finals = {1: dumped(FIRST, SECOND), 2: dumped(FIRST, batch(2, 1, "x"))}
    found = truth.judge(view(finals=finals))
    assert found.verdicts["log_matching"] == "VIOLATED"
    assert found.divergent_offsets == {"1,2": [2]}
    elections = [Election(1, 0, 1, (1, 2)), Election(10, 1, 2, (2,))]
    assert truth.judge(view(finals=finals, elections=elections)).verdicts["log_matching"] is None


def test_what_a_leader_cuts_after_a_short_term_was_in_its_line() -> None:
    """Broker 2 leads for a moment, acknowledges, and follows again before it is looked at."""
    elections = [*IN_SYNC, Election(10.2, 2, 1, (1, 2))]
    samples = [log_sample(0.9, 1, FIRST), log_sample(0.9, 2, FIRST, SECOND)]
    samples.append(log_sample(10.3, 2, FIRST))
    acks = [acked("c", 2, "10.100", "all", 2)]
    found = truth.judge(view(elections=elections, samples=samples, acks=acks))
    assert verdicts(found) == ("VIOLATED", "VIOLATED")


def test_what_a_leader_that_never_took_up_leadership_lacks_is_not_judged() -> None:
    """Broker 2 is named while it is frozen, and broker 1 leads on with all that it has."""
    one = view(
        acks=[acked("c", 2, "05.000", "1", 1)],
        elections=[*IN_SYNC, Election(12, 2, 1, (1,))],
        starts=[LeaderStart(1.1, 1, 0, 0), LeaderStart(12.1, 1, 2, 3)],
        samples=LONGER,
        finals={1: dumped(FIRST, SECOND), 2: dumped(FIRST, SECOND)},
    )
    assert verdicts(truth.judge(one))[1] is None
    took_it = [*one.starts, LeaderStart(10.1, 2, 1, 2)]
    assert verdicts(truth.judge(replace(one, starts=took_it)))[1] == "VIOLATED"


def test_acknowledgements_that_name_records_by_offset_alone(tmp_path: Path) -> None:
    line = {"topic": "t", "status": "acked", "offset": 1}
    lines = [
        {**line, "partition": 0, "payload_id": "a"},
        {**line, "partition": 1, "sequence": 3},
        {**line, "partition": 1, "status": "unknown"},
        {**line, "partition": 2, "payload_id": "b"},
        {**line, "partition": 2},
    ]
    (tmp_path / "acks.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    assert named_by_offset(tmp_path) == {("t", 2)}


def test_what_is_unknown_without_ids_is_no_share_of_what_was_handed_over(
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = Comparison("whole", verdicts=4, unknown=["t-0"])
    without = Comparison("without", verdicts=6, by_offset=4, unknown_by_offset=["t-0", "t-1"])
    report([whole, without], [])
    told = capsys.readouterr().out
    assert "2 runs, 10 verdicts" in told
    assert "1 UNKNOWN of 6 (16.7%)" in told
    assert "2 UNKNOWN of 4 verdicts in 1 runs" in told


def test_random_subsets_of_the_artefacts_are_the_same_ones_every_time() -> None:
    node = Path("broker-1")
    segments = [node / "disk-final" / "t-0" / f"{n:020}.log" for n in (0, 9)]
    rotated = [node / name for name in ("server.log", "server.log.2026-11-25-19")]
    names = names_of(["random:40"])
    assert names_of(["no_controller", *names]) == ["no_controller", *names]
    for together in (segments, rotated):
        gone = [[withheld_by(name)(path) for path in together] for name in names]
        assert all(first == second for first, second in gone)
        assert 0 < sum(first for first, _ in gone) < len(names)
    assert not withheld_by("skewed_clocks")(rotated[0])
