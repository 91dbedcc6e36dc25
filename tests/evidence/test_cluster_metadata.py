"""The KRaft metadata log: real ones against what Kafka's own decoder said of them, and made ones.

`cluster_metadata/<incident>/` are controllers' logs from captured incidents; `elections.json` in
each was worked out with Kafka's kafka-dump-log and the brokers' log lines, not with this reader.
"""

import contextlib
import gzip
import json
import shutil
import struct
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.evidence.messages.byte_reader import uuid_text
from replication.evidence.metadata_log.cluster_metadata import (
    read_cluster_metadata,
    read_metadata_bytes,
)
from replication.evidence.metadata_log.history import MetadataHistory, PartitionRegistration
from replication.evidence.metadata_log.metadata_records import MetadataRecordError, decode_record
from replication.evidence.metadata_log.several_copies import longest_history
from tests.evidence.metadata_log.log_bytes import (
    LOG,
    OTHER_TOPIC_ID,
    TOPIC_ID,
    abort,
    batch,
    begin,
    change,
    config,
    end,
    feature,
    framed,
    ints,
    log,
    partition,
    register,
    remove_topic,
    snapshot,
    standing,
    tags,
    text,
    topic,
)

CAPTURED = Path(__file__).parent / "cluster_metadata"
# One of three controllers of a 4.1.1 cluster with a dynamic quorum (KIP-853), its nodes restarted
# and killed in turn: six leader epochs, four segments, snapshots in between.
QUORUM = Path(__file__).parent / "metadata_quorum"
QUORUM_FILES = {path.name: path.read_bytes() for path in QUORUM.iterdir()}
# The one at 0 names the voters only, and that at 76 lies within the first segment.
SNAPSHOTS = sorted(name for name in QUORUM_FILES if name.endswith(".checkpoint"))[2:]
INCIDENTS = sorted(path.name for path in CAPTURED.iterdir())


def history(*values: bytes, **files: bytes) -> MetadataHistory:
    return read_metadata_bytes("made", {LOG: log(*values), **files})


def elections(found: MetadataHistory) -> list[str | None]:
    return [one.election for one in found.changes]


def states(found: MetadataHistory) -> list[PartitionRegistration]:
    return [one.after for one in found.changes]


# -- real logs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("incident", INCIDENTS)
def test_the_elections_of_a_real_log(incident: str) -> None:
    found = read_cluster_metadata(CAPTURED / incident)
    expected = json.loads((CAPTURED / incident / "elections.json").read_text())
    assert found.unreadable == ()
    assert [
        {
            "topic_partition": f"{one.after.topic}-{one.after.partition}",
            "topic_id": one.after.topic_id,
            "leader": one.after.leader,
            "leader_epoch": one.after.leader_epoch,
            "partition_epoch": one.after.partition_epoch,
            "isr": list(one.after.isr),
            "kind": one.election,
            "metadata_offset": one.metadata_offset,
            "at": one.at,
        }
        for one in found.changes
        if one.election
    ] == [
        {key: value for key, value in row.items() if key != "ts"}
        | {"at": round(datetime.fromisoformat(row["ts"]).timestamp() * 1000)}
        for row in expected
    ]


def test_what_else_a_real_log_tells() -> None:
    found = read_cluster_metadata(CAPTURED / "not_loss_traps__4.3.0__topic_recreated")
    assert found.features["metadata.version"] == 30
    assert found.features["eligible.leader.replicas.version"] == 1
    old, new = found.topics.items()
    assert [old[0], old[1].name] == ["vtpakRnaS-GLWtebB6vJfw", "t"]
    assert new[1].name == "t"
    assert new[1].deleted_at is None
    assert old[1].created_at < old[1].deleted_at <= new[1].created_at  # type: ignore[operator]
    settings = [(one.key, one.value) for one in found.topic_configs["t"]]
    assert settings == [("min.insync.replicas", value) for value in ("2", None, "2")]
    assert (found.voters, found.controllers[0].controller) == ((100,), 100)
    assert found.committed_end_offset == found.end_offset == 94
    assert {one.kind for one in found.brokers if one.broker == 1} >= {"registered", "unfenced"}
    assert all(one.log_dirs for one in found.brokers if one.kind == "registered")


def test_a_healthy_rolling_restart_has_controlled_shutdowns_and_preferred_or_clean_elections() -> (
    None
):
    found = read_cluster_metadata(CAPTURED / "healthy_rolling_restart__4.3.0")
    kinds = {one.kind for one in found.brokers}
    assert kinds == {"registered", "fenced", "unfenced", "controlled_shutdown"}
    incarnations = {one.incarnation for one in found.brokers if one.broker == 1}
    assert len(incarnations) == 2
    assert not any(one.after.recovering for one in found.changes)


def test_a_copy_and_its_meta_properties(tmp_path: Path) -> None:
    copy = tmp_path / "__cluster_metadata-0"
    shutil.copytree(CAPTURED / "unclean_election__4.1.1", copy)
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=100\ncluster.id=abc\n")
    found = read_cluster_metadata(copy)
    assert (found.node_id, found.cluster_id, found.path) == (100, "abc", str(copy))


def test_no_directory_is_reported() -> None:
    found = read_cluster_metadata(Path("no/such/directory"))
    assert (found.changes, len(found.unreadable)) == ((), 2)
    assert read_metadata_bytes("empty", {}).unreadable[0].reason.startswith("holds no segment")


# -- elections, one kind after the other ---------------------------------------------------------


def test_leader_epoch_rises_with_the_leader_field_and_partition_epoch_always() -> None:
    found = history(topic(), partition(), change(isr=(1, 2)), change(leader=1), change(leader=-1))
    assert [(one.leader, one.leader_epoch, one.partition_epoch) for one in states(found)] == [
        (1, 0, 0),
        (1, 0, 1),
        (1, 1, 2),
        (None, 2, 3),
    ]
    assert elections(found) == ["initial", None, "same_leader", None]
    assert found.changes[1].before == found.changes[0].after
    assert (found.changes[1].metadata_offset, found.changes[1].at) == (2, 1002)


def test_clean_and_preferred() -> None:
    found = history(
        topic(),
        partition(leader=2),
        change(leader=1),  # the head of the assignment, broker 2 goes on in the ISR
        change(leader=2, isr=(2, 3)),  # 1 left the ISR
        change(isr=(2, 3, 1)),
        change(leader=3),  # not the head
        register(3, 7),
        standing(3, 7, fenced=-1),
        standing(3, 7, shutdown=1),
        change(leader=1),  # the head, but broker 3 is shutting down
    )
    assert elections(found) == ["initial", "preferred", "clean", None, "clean", "clean"]


def test_unclean_elections_are_marked_only_when_the_mark_changes() -> None:
    found = history(
        topic(),
        partition(isr=(1,)),
        change(leader=-1),
        change(leader=2, isr=(2,), recovery=1),
        change(leader=-1),
        change(leader=3, isr=(3,)),  # still recovering: no mark
        change(recovery=0),
    )
    assert elections(found) == ["initial", None, "unclean", None, "unclean", None]
    assert [one.recovering for one in states(found)] == [False, False, True, True, True, False]


def test_elections_from_the_elr_and_of_the_last_known_leader() -> None:
    found = history(
        feature("eligible.leader.replicas.version", 1),
        topic(),
        partition(),
        change(leader=-1, isr=(), elr=(1, 3), last_known=(1,)),
        change(leader=3, isr=(3,), elr=(1,), last_known=()),
        change(leader=-1, isr=(), elr=(1, 3), last_known=(3,)),
        change(elr=()),  # both were struck
        change(leader=3, isr=(3,), recovery=1, last_known=()),
    )
    kinds = ["initial", None, "eligible_leader_replica", None, None, "last_known_leader"]
    assert elections(found) == kinds


def test_an_election_from_the_elr_in_the_record_that_takes_the_last_isr_member() -> None:
    """The last ISR member is fenced and goes into the ELR, from which another one is elected."""
    last = [topic(), partition(), change(isr=(1,), elr=(3,))]
    found = history(*last, change(leader=3, isr=(3,), elr=(1,)))
    assert elections(found)[-1] == "eligible_leader_replica"
    # The last member crashed: it goes into no ELR.
    found = history(*last, change(leader=3, isr=(3,), elr=()))
    assert elections(found)[-1] == "eligible_leader_replica"
    # Outside of the ELR the choice is unclean, and marked so.
    found = history(*last, change(leader=2, isr=(2,), elr=(), recovery=1))
    assert elections(found)[-1] == "unclean"


def test_an_unclean_election_passes_over_the_elr_where_it_is_allowed() -> None:
    setting = config("unclean.leader.election.enable", "true")
    gone = change(leader=-1, isr=(), elr=(1,), last_known=(1,))
    found = history(
        topic(), setting, partition(), gone, change(leader=2, isr=(2,), elr=(), recovery=1)
    )
    assert elections(found)[-1] == "unclean"
    # struck from the ELR and elected as the last known leader in one record (before 4.1.0)
    found = history(topic(), partition(), gone, change(leader=1, isr=(1,), elr=(), recovery=1))
    assert elections(found)[-1] == "last_known_leader"
    found = history(
        topic(), setting, partition(), gone, change(leader=1, isr=(1,), elr=(), recovery=1)
    )
    assert elections(found)[-1] == "unclean"


def test_clear_elr_changes_only_what_has_something_to_clear() -> None:
    found = history(
        topic(),
        topic("u", OTHER_TOPIC_ID),
        partition(elr=(3,), isr=(1, 2)),
        partition(topic_id=OTHER_TOPIC_ID),
        framed(28, 0, text("t") + tags({})),
        framed(28, 0, text("") + tags({})),
    )
    assert len(found.changes) == 3
    assert (states(found)[2].elr, states(found)[2].partition_epoch) == ((), 1)


# -- brokers, topics, settings -------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_registrations_of_every_version(version: int) -> None:
    found = history(
        register(1, 5, version),
        standing(1, 5, fenced=-1),
        framed(7, 0, struct.pack(">iq", 1, 5) + tags({})),
        framed(8, 0, struct.pack(">iq", 1, 5) + tags({})),
        framed(1, 0, struct.pack(">iq", 1, 5) + tags({})),
    )
    assert found.unreadable == ()
    kinds = [one.kind for one in found.brokers]
    assert kinds == ["registered", "unfenced", "fenced", "unfenced", "unregistered"]
    assert {one.incarnation for one in found.brokers} == {uuid_text(b"\1" * 16)}
    assert found.brokers[0].log_dirs == ((uuid_text(b"\1" * 16),) if version >= 3 else ())


def test_settings_end_with_their_topic() -> None:
    found = history(
        topic(),
        config("min.insync.replicas", "2"),
        config("min.insync.replicas", "2", name="", kind=4),
        config("log.level", "TRACE", name="1", kind=8),
        remove_topic(),
    )
    assert [one.value for one in found.topic_configs["t"]] == ["2", None]
    assert [one.value for one in found.cluster_configs[""]] == ["2"]
    assert list(found.cluster_configs) == [""]
    assert found.topics[uuid_text(TOPIC_ID)] == ("t", 1000, 1004)


# -- transactions --------------------------------------------------------------------------------


def test_an_aborted_transaction_changes_nothing() -> None:
    found = history(topic(), begin(), partition(), abort(), partition(leader=2))
    assert [one.leader for one in states(found)] == [2]
    assert found.unreadable == ()


def test_a_transaction_counts_when_it_has_ended() -> None:
    found = history(begin(), topic(), partition(), end())
    assert (len(found.changes), found.unreadable) == (1, ())
    found = history(begin(), topic(), partition())
    assert (found.changes, found.topics) == ((), {})
    assert "has not ended" in found.unreadable[0].reason


# -- what cannot be decoded ----------------------------------------------------------------------


def test_an_unknown_record_type_is_passed_over_and_reported() -> None:
    found = history(topic(), framed(99, 0, b"abc"), partition())
    assert elections(found) == ["initial"]
    assert "record type 99" in found.unreadable[0].reason
    assert found.damaged_from is None


def test_records_that_are_not_about_replicas_are_not_looked_into() -> None:
    found = history(topic(), framed(11, 0, b"not a credential at all"), partition())
    assert found.unreadable == ()


def test_a_newer_version_decodes_when_it_only_appends_tagged_fields() -> None:
    body = struct.pack(">i", 0) + TOPIC_ID
    newer = framed(5, 3, body + tags({0: ints((1, 2)), 9: b"anything"}))
    found = history(topic(), partition(), newer)
    assert (states(found)[1].isr, found.unreadable) == ((1, 2), ())


def test_a_newer_version_with_a_new_field_is_not_guessed_and_loses_its_partition_only() -> None:
    body = struct.pack(">i", 0) + TOPIC_ID + struct.pack(">i", 77)
    newer = framed(5, 3, body + tags({0: ints((1, 2))}))
    other = topic("u", OTHER_TOPIC_ID), partition(topic_id=OTHER_TOPIC_ID)
    found = history(
        topic(), *other, partition(), newer, change(leader=2), change(OTHER_TOPIC_ID, leader=3)
    )
    assert elections(found) == ["initial", "initial", "clean"]
    assert found.changes[2].after.topic == "u"
    assert len(found.unreadable) == 2
    assert "PartitionChangeRecord version 3, newer than 2" in found.unreadable[0].reason
    assert "partition 0 of topic t from metadata offset 5" in found.unreadable[1].reason
    assert (found.damaged_from, found.known_end_offset) == (4, 4)


def test_frame_version_0_of_the_preview_is_refused() -> None:
    with pytest.raises(MetadataRecordError, match="frame version 0"):
        decode_record(b"\0" + topic()[1:])


def test_tags_out_of_order_are_refused() -> None:
    body = struct.pack(">i", 0) + TOPIC_ID
    swapped = b"\2" + b"\1\4" + struct.pack(">i", 2) + b"\0\1\1"
    with pytest.raises(MetadataRecordError, match="tags must rise"):
        decode_record(framed(5, 2, body + swapped))


def test_after_a_broken_batch_the_partitions_are_unknown_until_registered_again() -> None:
    good = [topic(), partition(), change(isr=(1, 2)), change(leader=2)]
    broken = bytearray(log(*good))
    broken[-len(log(good[3])) - 3] ^= 1  # in the third record's value
    found = read_metadata_bytes("made", {LOG: bytes(broken) + log(change(leader=1), base=4)})
    assert elections(found) == ["initial"]
    assert "fails its checksum" in found.unreadable[0].reason
    assert found.damaged_from == 2


def test_a_torn_tail_is_reported_and_the_rest_stands() -> None:
    whole = log(topic(), partition(), change(leader=2))
    for cut in (1, 40, len(log(change(leader=2))) - 30):
        found = read_metadata_bytes("made", {LOG: whole[:-cut]})
        assert elections(found) == ["initial"]
        assert len(found.unreadable) == 1
        assert found.end_offset == found.known_end_offset == 2


def test_zeros_at_the_end_are_no_damage() -> None:
    found = read_metadata_bytes("made", {LOG: log(topic(), partition()) + bytes(5000)})
    assert (elections(found), found.unreadable, found.damaged_from) == (["initial"], (), None)


def test_a_changed_base_offset_is_noticed_although_no_checksum_covers_it() -> None:
    whole = bytearray(log(topic(), partition(), change(leader=2)))
    whole[len(log(topic(), partition())) + 7] ^= 0x40
    found = read_metadata_bytes("made", {LOG: bytes(whole)})
    assert elections(found) == ["initial"]
    assert "where 2 is due" in found.unreadable[0].reason


def test_a_compressed_batch() -> None:
    plain = batch(0, topic(), partition())
    packed = gzip.compress(plain[61:])
    checked = struct.pack(">h", 1) + plain[23:61] + packed
    after = plain[12:17] + struct.pack(">I", crc32c.crc32c(checked)) + checked
    data = plain[:8] + struct.pack(">i", len(after)) + after
    assert elections(read_metadata_bytes("made", {LOG: data})) == ["initial"]


# -- snapshots and missing segments --------------------------------------------------------------

SNAPSHOT = f"{10:020}-{3:010}.checkpoint"


def test_a_log_that_begins_with_a_snapshot() -> None:
    taken = snapshot(
        topic(),
        partition(leader=2, leader_epoch=4, partition_epoch=9),
        register(1, 5, fenced=False),
    )
    rest = log(change(leader=3), base=10)
    found = read_metadata_bytes("made", {SNAPSHOT: taken, f"{10:020}.log": rest})
    assert (found.first_offset, found.end_offset, found.unreadable) == (10, 11, ())
    assert elections(found) == [None, "clean"]
    assert (found.changes[0].metadata_offset, found.changes[0].at) == (9, 900)
    assert states(found)[1].leader_epoch == 5
    assert [one.kind for one in found.brokers] == ["registered", "unfenced"]
    assert found.topics[uuid_text(TOPIC_ID)].created_at is None


def test_records_already_in_the_snapshot_do_not_count_twice() -> None:
    taken = snapshot(topic(), partition(leader=2, leader_epoch=1, partition_epoch=1))
    rest = log(change(leader=2), change(leader=3), base=9)
    found = read_metadata_bytes(
        "made", {SNAPSHOT: taken, f"{8:020}.log": log(change(isr=(2,)), base=8) + rest}
    )
    assert [one.leader_epoch for one in states(found)] == [1, 2]
    assert found.unreadable == ()


def test_a_whole_log_is_not_replaced_by_its_snapshots() -> None:
    whole = log(topic(), partition(), *[change(leader=1)] * 10)
    taken = snapshot(topic(), partition(leader=1, leader_epoch=8, partition_epoch=8))
    found = read_metadata_bytes("made", {LOG: whole, SNAPSHOT: taken})
    assert (found.first_offset, len(found.changes)) == (0, 11)
    assert found.committed_end_offset == 10


def test_a_snapshot_without_its_footer_is_not_used() -> None:
    taken = snapshot(topic(), partition(), footer=False)
    found = read_metadata_bytes(
        "made", {SNAPSHOT: taken, f"{10:020}.log": log(change(leader=3), base=10)}
    )
    assert found.changes == ()
    assert any("no footer" in one.reason for one in found.unreadable)


def test_a_missing_segment_is_bridged_by_a_later_snapshot() -> None:
    files = {
        LOG: log(topic(), partition()),
        SNAPSHOT: snapshot(topic(), partition(leader=2, leader_epoch=4, partition_epoch=9)),
        f"{8:020}.log": log(change(leader=2), change(leader=2), change(leader=3), base=8),
    }
    found = read_metadata_bytes("made", files)
    assert [(one.leader, one.leader_epoch) for one in states(found)] == [(1, 0), (2, 4), (3, 5)]
    assert "metadata offsets 2 to 7 are missing; continued" in found.unreadable[0].reason
    assert found.damaged_from == 2


def test_a_missing_segment_without_a_snapshot_leaves_the_partitions_unknown() -> None:
    files = {LOG: log(topic(), partition()), f"{8:020}.log": log(change(leader=2), base=8)}
    found = read_metadata_bytes("made", files)
    assert elections(found) == ["initial"]
    assert len(found.unreadable) == 2


def test_a_log_that_begins_late_without_a_snapshot() -> None:
    found = read_metadata_bytes(
        "made",
        {f"{8:020}.log": log(change(leader=2), topic(), partition(), change(leader=3), base=8)},
    )
    assert found.first_offset == 8
    assert elections(found) == ["initial", "clean"]


def test_a_real_controller_of_a_dynamic_quorum() -> None:
    found = read_cluster_metadata(QUORUM)
    assert (found.unreadable, found.first_offset, found.end_offset) == ((), 0, 422)
    assert found.voters == (1, 2, 3)
    assert found.committed_end_offset == 397  # the newest snapshot: a copy alone knows no more
    assert [one[0] for one in found.epoch_starts] == [1, 2, 3, 4, 5, 6]
    assert [one.controller for one in found.controllers] == [3, 1, 2, 3, 2, 1]
    kinds = {one.election for one in found.changes}
    assert kinds == {None, "initial", "clean", "preferred", "eligible_leader_replica"}


@pytest.mark.parametrize("snapshot_name", SNAPSHOTS)
def test_a_real_snapshot_stands_for_the_records_below_it(snapshot_name: str) -> None:
    whole = read_metadata_bytes("whole", QUORUM_FILES)
    end_offset = int(snapshot_name[:20])
    segments = sorted(name for name in QUORUM_FILES if name.endswith(".log"))
    kept = [
        name
        for name, following in zip(segments, [*segments[1:], None], strict=True)
        if following is None or int(following[:20]) > end_offset
    ]
    files = {name: QUORUM_FILES[name] for name in [*kept, snapshot_name]}
    found = read_metadata_bytes("from the snapshot", files)
    assert (found.first_offset, found.unreadable) == (end_offset, ())
    # `before` of each change is the snapshot's state, or what became of it
    assert [one for one in found.changes if one.metadata_offset >= end_offset] == [
        one for one in whole.changes if one.metadata_offset >= end_offset
    ]
    assert found.features == whole.features
    joined = longest_history([found, whole])
    assert joined.changes == whole.changes
    assert (joined.topics, joined.topic_configs) == (whole.topics, whole.topic_configs)
    assert (joined.brokers, joined.controllers) == (whole.brokers, whole.controllers)


# -- nothing raises, nothing is invented ---------------------------------------------------------

REAL = (CAPTURED / "chaos__4.1.1__seed2" / LOG).read_bytes()
REAL_HISTORY = read_metadata_bytes("real", {LOG: REAL})


@given(st.lists(st.tuples(st.integers(0, len(REAL) - 1), st.integers(1, 255)), max_size=4))
def test_flipped_bytes_give_fewer_changes_never_others(flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(REAL)
    for position, bits in flips:
        damaged[position] ^= bits
    found = read_metadata_bytes("real", {LOG: bytes(damaged)})
    before_damage = [one for one in found.changes if one.metadata_offset < found.known_end_offset]
    assert before_damage == list(REAL_HISTORY.changes[: len(before_damage)])
    # The checksum does not cover a batch's base offset: behind damage, which hides where the next
    # batch is due, an offset may be wrong, but never what it says of the partition.
    assert {replace(c, metadata_offset=0) for c in found.changes} <= {
        replace(c, metadata_offset=0) for c in REAL_HISTORY.changes
    }
    if found.changes != REAL_HISTORY.changes:
        assert found.unreadable


@given(st.integers(0, len(REAL)))
def test_a_cut_log_is_a_prefix(size: int) -> None:
    found = read_metadata_bytes("real", {LOG: REAL[:size]})
    assert found.changes == REAL_HISTORY.changes[: len(found.changes)]


@given(st.binary(max_size=300))
def test_any_bytes_are_answered(data: bytes) -> None:
    found = read_metadata_bytes("any", {LOG: data, SNAPSHOT: data, "quorum-state": data})
    assert found.changes == ()
    with contextlib.suppress(MetadataRecordError):
        decode_record(data)
