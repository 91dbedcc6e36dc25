"""Several copies of one metadata log: which tail counts, and what an older copy adds."""

from typing import Any

import pytest

from replication.evidence.messages.byte_reader import uuid_text
from replication.evidence.metadata_log.cluster_metadata import read_metadata_bytes
from replication.evidence.metadata_log.history import MetadataHistory
from replication.evidence.metadata_log.several_copies import are_of_two_lives, longest_history
from tests.evidence.metadata_log.log_bytes import (
    LOG,
    TOPIC_ID,
    change,
    config,
    log,
    new_controller,
    partition,
    snapshot,
    topic,
)

SNAPSHOT = f"{10:020}-{3:010}.checkpoint"


def leaders(found: MetadataHistory) -> list[int | None]:
    return [one.after.leader for one in found.changes]


def test_the_longest_of_several_prefixes() -> None:
    records = [topic(), partition(), change(leader=2), change(leader=3)]
    copies = [read_metadata_bytes(str(n), {LOG: log(*records[:n])}) for n in (2, 4, 3)]
    found = longest_history(copies)
    assert (found.path, len(found.changes), found.unreadable) == ("4", 3, ())


def test_a_tail_the_quorum_never_accepted_does_not_count() -> None:
    same = log(topic(), partition())
    stale = read_metadata_bytes("a", {LOG: same + log(change(leader=2), change(leader=3), base=2)})
    rest = new_controller(2, leader_epoch=2) + log(change(leader=3), base=3, leader_epoch=2)
    fresh = read_metadata_bytes("b", {LOG: same + rest})
    found = longest_history([stale, fresh])
    assert (found.path, leaders(found)) == ("b", [1, 3])
    assert "from metadata offset 2 on this copy differs from b" in found.unreadable[0].reason


def test_one_changed_leader_epoch_makes_no_copy_newer() -> None:
    whole = new_controller(0, 1) + log(topic(), partition(), change(leader=2), base=1)
    damaged = bytearray(whole)
    damaged[len(whole) - len(log(change(leader=2))) + 12] ^= 0x40
    longer = read_metadata_bytes("longer", {LOG: whole + log(change(leader=3), base=4)})
    found = longest_history([longer, read_metadata_bytes("flipped", {LOG: bytes(damaged)})])
    assert (found.path, found.epoch_starts, found.voters) == ("longer", ((1, 0),), (100,))
    assert "leader epoch 1073741825: not believed" in found.unreadable[0].reason


def test_a_copy_counts_up_to_its_damage() -> None:
    records = log(topic(), partition(), change(leader=2))
    broken = bytearray(records + log(change(leader=3), base=3))
    broken[len(log(topic())) + 70] ^= 1
    copies = [
        read_metadata_bytes("broken", {LOG: bytes(broken)}),
        read_metadata_bytes("whole", {LOG: records}),
    ]
    found = longest_history(copies)
    assert (found.path, len(found.changes), len(found.unreadable)) == ("whole", 2, 2)


def test_a_copy_from_before_the_snapshot_completes_one_that_begins_with_it() -> None:
    records = [topic(), config("a.b", "1"), partition()] + [change(leader=2), change(leader=1)] * 4
    old = read_metadata_bytes("old", {LOG: log(*records)})
    taken = snapshot(topic(), config("a.b", "1"), partition(leader_epoch=7, partition_epoch=7))
    rest = log(change(leader=1), change(leader=2), base=10)
    new = read_metadata_bytes("new", {SNAPSHOT: taken, f"{10:020}.log": rest})
    found = longest_history([new, old])
    assert (found.first_offset, found.end_offset) == (0, 12)
    assert [one.after.leader_epoch for one in found.changes] == list(range(10))
    assert len(found.topic_configs["t"]) == 1
    assert found.topics[uuid_text(TOPIC_ID)].created_at == 1000


def test_what_a_majority_of_the_voters_holds_is_committed() -> None:
    voters = b'{"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}'
    records = [topic(), partition(), change(leader=2), change(leader=3)]

    def copy(node: int, length: int) -> MetadataHistory:
        return read_metadata_bytes(
            str(node),
            {
                LOG: log(*records[:length]),
                "quorum-state": voters,
                "meta.properties": b"node.id=%d\n" % node,
            },
        )

    assert longest_history([copy(1, 4)]).committed_end_offset is None
    assert longest_history([copy(1, 4), copy(2, 3)]).committed_end_offset == 3
    assert longest_history([copy(1, 4), copy(9, 4)]).committed_end_offset is None


def test_no_copy_is_an_error() -> None:
    with pytest.raises(ValueError, match="no copy"):
        longest_history([])


def test_copies_of_two_lives_share_nothing_where_both_tell() -> None:
    one, other = bytes([1]) * 16, bytes([2]) * 16

    def life(name: str, topic_id: bytes) -> MetadataHistory:
        records: Any = log(topic(topic_id=topic_id), partition(topic_id=topic_id))
        return read_metadata_bytes(name, {LOG: records})

    assert are_of_two_lives(life("a", one), life("b", other))
    assert not are_of_two_lives(life("a", one), life("b", one))


def test_what_no_copy_tells_behind_a_torn_place_is_unknown() -> None:
    whole = log(topic(), partition(), change(leader=2))
    torn = read_metadata_bytes("torn", {LOG: whole[:-5]})
    as_long = read_metadata_bytes("short", {LOG: log(topic(), partition())})
    found = longest_history([torn, as_long])
    assert (found.unknown_since, leaders(found)) == (2, [1])
    assert longest_history([torn, read_metadata_bytes("whole", {LOG: whole})]).unknown_since is None
    assert read_metadata_bytes("whole", {LOG: whole}).unknown_since is None


def test_a_snapshot_behind_the_torn_place_tells_again() -> None:
    files = {LOG: log(topic(), partition())[:-5], SNAPSHOT: snapshot(topic(), partition())}
    found = read_metadata_bytes("a", {**files, f"{10:020}.log": log(change(leader=2), base=10)})
    assert (found.damaged_from, found.unknown_since) == (1, None)
