"""Which groups a loss hurt: commits in made logs of coordinators, and in a captured cluster's."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import jsonschema
import pyarrow.parquet as pq
import pytest

from replication.cli import main
from replication.evidence.importer import import_evidence
from replication.evidence.metadata_log.history import (
    MetadataHistory,
    PartitionChange,
    PartitionRegistration,
)
from replication.protocol.ground.model import Span
from replication.protocol.judgement.bounded import fold_all
from replication.recovery.groups.affected_groups import GroupsRead, read_groups
from replication.recovery.groups.affected_transactions import affected_transactions
from replication.recovery.groups.effects import LeaderLog, effect_of
from replication.recovery.groups.group_state import Commit
from replication.reports.group_words import group_sentences
from replication.reports.transaction_words import transaction_sentence
from tests.evidence.messages.from_jars import LAYOUTS
from tests.evidence.messages.writing import kept, made_up, versions
from tests.evidence.segment_bytes import Record, batch
from tests.recovery.groups.coordinator_bytes import (
    AT,
    OFFSETS,
    beside,
    commit,
    in_transaction,
    log,
    marker,
    record,
    with_leader,
)
from tests.recovery.lost_evidence import CLUSTER, TOPIC_ID, lines_of, lost_evidence, row

HERE = Path(__file__).parent
CAPTURED = HERE / "unclean_election__4.3.0__offsets_too.tgz"
SCHEMA = json.loads((HERE.parents[2] / "docs" / "answer.schema.json").read_text())
LOST = batch(3, *(Record(b"lost", key=b"k%d" % n) for n in range(6)))
OTHERS = batch(3, *(Record(b"new", key=b"n%d" % n) for n in range(2)), leader_epoch=1)


def hurt(
    folder: Path, logs: dict[int, bytes], *, others: bytes = OTHERS, leader: int = 2, **more: Any
) -> GroupsRead:
    """Offsets 3 to 8 of leader epoch 0 are lost, broker 2 leads t and wrote `others`."""
    evidence = lost_evidence(folder, LOST, 9, others=others)
    with_leader(beside(evidence, logs), leader)
    imported = import_evidence([evidence])
    return read_groups(imported, fold_all(imported.events()), [row(9, **more)])


def told(found: GroupsRead, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(r[name] for name in names) for r in found.rows]


COUNTS = ("effects", "lost_read", "skipped", "read_again", "certain")


# A commit's offset and leader epoch, and what it tells.
TOLD_BY_COMMITS: list[tuple[int, int | None, tuple[Any, ...]]] = [
    (3, 0, ([], 0, 0, 0, True)),
    (5, 0, (["read_lost_records", "skips_records"], 2, 2, 0, True)),
    (9, 0, (["read_lost_records", "committed_beyond_the_end", "skips_records"], 6, 2, 0, True)),
    (5, 1, ([], 0, 0, 0, True)),
    (5, None, (["read_lost_records"], 2, 0, 0, False)),
    (7, None, (["read_lost_records", "committed_beyond_the_end"], 4, 0, 0, False)),
]


def test_a_commit_tells_which_records_were_read(tmp_path: Path) -> None:
    """By its leader epoch; without one only where nothing else ever stood there."""
    commits = (commit(o, e, group=f"g{n}") for n, (o, e, _) in enumerate(TOLD_BY_COMMITS))
    both = log(*commits)
    found = hurt(tmp_path, {1: both, 2: both})
    assert told(found, *COUNTS) == [expected for _, _, expected in TOLD_BY_COMMITS]
    assert told(found, "committed_offset", "log_end_offset") == [
        (offset, 5) for offset, _, _ in TOLD_BY_COMMITS
    ]


@pytest.mark.parametrize(
    ("elected", "members", "read"),
    [
        ([(0, 5), (1, 7)], True, 0),  # The coordinator's leader epoch began after the loss.
        ([(0, 2), (1, 5)], True, 2),  # It began before: the group may be as old.
        ([(0, 5), (1, 7)], False, 2),  # Who had no members may have read before, and told later.
        ([], True, 2),  # Nothing tells the order.
    ],
)
def test_a_group_that_came_after_the_loss_had_not_read_what_was_lost(
    elected: list[tuple[int, int]], members: bool, read: int, tmp_path: Path
) -> None:
    """By the order of the controllers' log; its commits name no leader epoch."""
    evidence = lost_evidence(tmp_path, LOST, 9, others=OTHERS)
    joined = record("GroupMetadata", {"group": "late"}, kept_by_a_member())
    first = [joined] if members else []
    both = log(commit(1, 0, group="old")) + log(
        *first, commit(5, None, group="late"), first=1, leader_epoch=1
    )
    with_leader(beside(evidence, {1: both, 2: both}), 2)
    for entries in evidence.glob(f"broker-*/{OFFSETS}-0/leader-epoch-checkpoint"):
        entries.write_text("0\n2\n0 0\n1 1\n")
    imported = import_evidence([evidence])
    coordinator = next(p.topic_id for p in imported.partitions if p.topic == OFFSETS)
    loss = elections(TOPIC_ID, [(0, 4), (1, 6)])
    changes = [*elections(coordinator, elected), *loss]
    imported.collection.histories[CLUSTER] = history_of(changes)
    found = read_groups(imported, fold_all(imported.events()), [row(9)])
    assert told(found, "group", "lost_read") == [("late", read), ("old", 0)]


def kept_by_a_member() -> dict[str, Any]:
    return {
        "protocolType": "consumer", "generation": 1, "protocol": "range", "leader": "m",
        "members": [
            {"memberId": "m", "clientId": "c", "clientHost": "/h", "sessionTimeout": 1,
             "rebalanceTimeout": 1, "subscription": b"", "assignment": b""}
        ],
    }  # fmt: skip


def elections(topic_id: str, told_at: list[tuple[int, int]]) -> list[PartitionChange]:
    """Leader epochs of partition 0, and the metadata offsets at which they began."""
    states = [PartitionRegistration(topic_id, None, 0, 1, e, e, (1, 2), (1, 2)) for e, _ in told_at]
    return [
        PartitionChange(before, after, at, AT, "clean")
        for before, after, (_, at) in zip([None, *states], states, told_at, strict=False)
    ]


def history_of(changes: list[PartitionChange]) -> MetadataHistory:
    return MetadataHistory(
        "m", {}, {}, {}, {}, tuple(changes), (), (), 0, 9, None, (), CLUSTER, None, (), None, ()
    )


def test_the_progress_of_recover_is_no_group_that_was_hurt(tmp_path: Path) -> None:
    both = log(commit(9, None, group="recovered-0123456789abcdef"), commit(9, None, group="g"))
    found = hurt(tmp_path, {1: both, 2: both})
    assert told(found, "group") == [("g",)]
    (said,) = [s for s in group_sentences(found.affected) if s.startswith("  t-0")]
    assert "Reset it to 3, where its log and this one part" in said


def test_a_commit_of_a_later_leader_epoch_than_the_copy_shows_was_made_on_its_log(
    tmp_path: Path,
) -> None:
    both = log(commit(7, 2))
    assert told(hurt(tmp_path, {1: both, 2: both}), "lost_read") == [(0,)]


def test_without_other_records_a_commit_needs_no_leader_epoch(tmp_path: Path) -> None:
    both = log(commit(7, None))
    found = hurt(tmp_path, {1: both, 2: both}, others=b"")
    effects = ["read_lost_records", "committed_beyond_the_end"]
    assert told(found, *COUNTS, "log_end_offset") == [(effects, 4, 0, 0, True, 3)]


def test_an_earlier_commit_tells_what_was_read_before(tmp_path: Path) -> None:
    """The group went on in the new log; another copy still has what it committed on the old one."""
    older = log(commit(2), commit(8), commit(9))
    newer = log(commit(2), commit(8), commit(9), commit(5, 1))
    found = hurt(tmp_path, {1: older, 2: newer})
    assert told(found, *COUNTS) == [(["read_lost_records"], 6, 0, 0, True)]


def test_a_lost_commit_is_read_again_up_to_where_the_logs_part(tmp_path: Path) -> None:
    found = hurt(tmp_path, {1: log(commit(1), commit(9)), 2: log(commit(1))})
    effects = ["read_lost_records", "commit_lost", "reads_again"]
    assert told(found, *COUNTS) == [(effects, 6, 0, 2, True)]
    assert told(found, "committed_offset", "lost_committed_offset") == [(1, 9)]
    gone = hurt(tmp_path / "gone", {1: log(commit(2)), 2: b""})
    assert told(gone, *COUNTS) == [(["commit_lost", "reads_again"], 0, 0, 2, True)]
    assert told(gone, "committed_offset", "lost_committed_offset") == [(None, 2)]


def test_copies_of_running_brokers_may_be_of_different_moments(tmp_path: Path) -> None:
    """What another copy has behind the leader's is newer, unless an older epoch or the ledger says
    that it was lost."""

    def running(name: str, logs: dict[int, bytes], *losses: dict[str, Any]) -> GroupsRead:
        evidence = lost_evidence(tmp_path / name, LOST, 9, others=OTHERS)
        with_leader(beside(evidence, logs), 2)
        for mark in evidence.rglob(".kafka_cleanshutdown"):
            mark.unlink()
        imported = import_evidence([evidence])
        return read_groups(imported, fold_all(imported.events()), [row(9), *losses])

    effects = ("effects", "committed_offset", "lost_committed_offset")
    newer = {1: log(commit(1), commit(2)), 2: log(commit(1))}
    assert told(running("newer", newer), *effects) == [([], 1, None)]
    lost = row(2, first=1, topic=OFFSETS, topic_id="O" * 21 + "A")
    gone = (["commit_lost", "reads_again"], 1, 2)
    assert told(running("ledger", newer, lost), *effects) == [gone]
    since = {1: log(commit(1), commit(2)), 2: log(commit(1, 1), leader_epoch=1)}
    assert told(running("epoch", since), *effects) == [(["commit_lost"], 1, 2)]
    beyond = LeaderLog([Span(0, 5, 1, 0)], 0, 5)
    now = Commit(7, 1, None, None, Path("x"), 0, 0, 1)
    assert effect_of(now, None, [now], beyond).effects == []
    final = replace(beyond, end_is_final=True)
    assert effect_of(now, None, [now], final).effects == ["committed_beyond_the_end"]


def test_a_group_that_committed_since_has_read_again_already(tmp_path: Path) -> None:
    newer = log(commit(1)) + log(commit(2), first=1, leader_epoch=1)
    found = hurt(tmp_path, {1: log(commit(1), commit(3)), 2: newer})
    assert told(found, *COUNTS) == [(["commit_lost"], 0, 0, 0, True)]


def test_commits_of_transactions_count_once_committed(tmp_path: Path) -> None:
    logs = (
        in_transaction(0, commit(2, group="a"), 1)
        + in_transaction(1, commit(2, group="b"), 2)
        + in_transaction(2, commit(2, group="c"), 3)
        + marker(3, 1, commits=True)
        + marker(4, 2, commits=False)
    )
    found = hurt(tmp_path, {1: logs, 2: logs})
    assert told(found, "group", "committed_offset") == [("a", 2)]


def test_deleted_offsets_unknown_types_and_broken_records(tmp_path: Path) -> None:
    logs = log(
        commit(2, group="deleted"),
        commit(None, group="deleted"),
        Record(b"\0\0later", key=b"\0\x63whatever"),
        Record(b"\0\3\0", key=commit(1, group="broken").key),
        Record(b"x", key=None),
        commit(3, group="kept"),
    )
    found = hurt(tmp_path, {1: logs, 2: logs})
    assert told(found, "group", "committed_offset") == [("kept", 3)]
    assert len(found.notes) == 2
    assert "offset 3: needs 8 bytes" in found.notes[0]


def test_groups_have_their_kind_and_members(tmp_path: Path) -> None:
    member = {
        "memberId": "m", "groupInstanceId": None, "clientId": "app", "clientHost": "/10.0.0.1",
        "rebalanceTimeout": 1, "sessionTimeout": 1, "subscription": "", "assignment": "",
    }  # fmt: skip
    classic = {
        "protocolType": "consumer", "generation": 1, "protocol": "range", "leader": "m",
        "currentStateTimestamp": 1, "members": [member],
    }  # fmt: skip
    newer = {
        "instanceId": None, "rackId": None, "clientId": "new", "clientHost": "/10.0.0.2",
        "subscribedTopicNames": ["t"], "subscribedTopicRegex": None, "rebalanceTimeoutMs": 1,
        "serverAssignor": None,
    }  # fmt: skip
    key = {"groupId": "b", "memberId": "m"}
    logs = log(
        record("GroupMetadata", {"group": "a"}, classic, 3),
        commit(9, group="a"),
        record("ConsumerGroupMetadata", {"groupId": "b"}, {"epoch": 1}),
        record("ConsumerGroupMemberMetadata", key, newer),
        record("ConsumerGroupMemberMetadata", {**key, "memberId": "gone"}, newer),
        record("ConsumerGroupMemberMetadata", {**key, "memberId": "gone"}, None),
        commit(9, group="b"),
        commit(9, group="c"),
    )
    found = hurt(tmp_path, {1: logs, 2: logs})
    assert told(found, "group", "group_type", "members") == [
        ("a", "classic", ["app (10.0.0.1)"]),
        ("b", "consumer", ["new (10.0.0.2)"]),
        ("c", None, []),
    ]


def test_a_records_story_has_the_groups_that_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A lost record, the one at its offset now, and one from before."""

    def readers(*words: str) -> list[list[tuple[str, bool]]]:
        assert main(["trace", str(CAPTURED), *words, "--groups", "--format", "json"]) == 0
        records = json.loads(capsys.readouterr().out)["records"]
        return [[(g["group"], g["certain"]) for g in r["groups"]] for r in records]

    shared = ("shared", True)
    # Offset 23 of t-0: the lost record, which was read below 25, 24 and not 21, then the new one.
    assert readers("--offset", "t-0:23") == [
        [("classic-0", True), ("classic-1", True), shared], []
    ]  # fmt: skip
    everybody = [(name, True) for name in ("classic-0", "classic-1", "consumer-2")]
    assert readers("--offset", "t-0:5") == [[*everybody, shared]]
    assert main(["trace", str(CAPTURED), "--offset", "t-0:24", "--groups"]) == 0
    assert "read by consumer groups classic-0, shared\n" in capsys.readouterr().out


def test_without_the_leaders_copy_nothing_is_certain(tmp_path: Path) -> None:
    found = hurt(tmp_path, {1: log(commit(9))})
    assert told(found, "effects", "certain") == [
        (["read_lost_records", "committed_beyond_the_end", "skips_records"], False)
    ]
    assert "no copy of the leader's log is at hand" in found.notes[0]


def test_a_captured_cluster_whose_commits_were_lost_with_its_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What kafka-consumer-groups printed before the cut, and at the end."""
    before = {
        "classic-0": (25, 30), "classic-1": (24, 30), "consumer-2": (21, 30), "shared": (14, 24),
    }  # fmt: skip
    after = {"classic-0": (5, 6), "classic-1": (6, 10), "consumer-2": (7, 16), "shared": (14, -1)}
    assert main(["groups", str(CAPTURED), "--format", "json"]) == 1
    rows = json.loads(capsys.readouterr().out)["groups"]
    for name, found in (("lost_committed_offset", before), ("committed_offset", after)):
        told_of = {(r["group"], r["partition"]): r[name] for r in rows}
        assert told_of == {(g, p): offsets[p] for g, offsets in found.items() for p in (0, 1)}
    assert {r["group"]: r["group_type"] for r in rows} == {
        "classic-0": "classic", "classic-1": "classic", "consumer-2": "consumer", "shared": "share",
    }  # fmt: skip
    assert [r["lost_read"] for r in rows] == [5, 10, 4, 10, 1, 10, 10, 4]
    assert [r["read_again"] for r in rows] == [15, 14, 14, 10, 13, 4, 6, 20]
    assert all(r["certain"] and len(r["finding_ids"]) == 2 for r in rows)
    out = tmp_path / "out"
    assert main(["recover", str(CAPTURED), "--out", str(out)]) == 0
    assert "Hurt: 4 consumer groups" in capsys.readouterr().out
    assert lines_of(out / "affected_groups.jsonl") == rows
    assert pq.read_table(out / "affected_groups.parquet").to_pylist() == rows
    keys = f"SELECT client, acks, count(*) FROM '{out / 'lost_records_keys.parquet'}'"
    assert duckdb.sql(f"{keys} WHERE topic = 't' GROUP BY ALL").fetchall() == [("p1", "all", 20)]
    assert main(["recover", "--out", str(out), "--produce", "nowhere:1", "--to-topic", "x"]) == 0
    planned = capsys.readouterr().out
    assert "To nowhere:1, 20 records:" in planned
    assert "Left out, 31 records: of a topic of Kafka's coordinators" in planned


def test_diagnose_and_its_page_tell_of_the_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["diagnose", str(CAPTURED), "--format", "json", "--report", str(page)]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["affected_groups"]) == 8
    jsonschema.validate(answer, SCHEMA)
    described = SCHEMA["properties"]["affected_groups"]["items"]["properties"]
    assert described.keys() == answer["affected_groups"][0].keys()
    assert "<h2>Consumer groups that were hurt</h2>" in page.read_text()
    assert "t-0: It had read 1 record that is lost." in page.read_text()
    assert main(["diagnose", str(CAPTURED)]) == 1
    text = capsys.readouterr().out
    assert "HURT  4 consumer groups: classic-0, classic-1, consumer-2, shared\n" in text
    assert "They will read again 96 records." in text


def test_a_groups_name_does_not_steer_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = log(commit(9, group="\x1b]0;x\x07g"))
    evidence = with_leader(
        beside(lost_evidence(tmp_path, LOST, 9, others=OTHERS), {1: both, 2: both}), 2
    )
    for more in ([], ["--format", "json"]):
        assert main(["groups", str(evidence), *more]) == 1
        said = capsys.readouterr()
        assert not {"\x1b", "\x07"} & set(said.out + said.err)
    assert main(["groups", str(evidence), "--group", "other"]) == 3
    assert main(["groups", str(HERE.parents[1] / "incidents" / "acks1_loss__3.9.1")]) == 3
    assert f"no copy of {OFFSETS}" in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(3))
def test_any_records_of_coordinators_are_answered(seed: int, tmp_path: Path) -> None:
    """Fields of every size and sign, and bytes that are no records, in each coordinator's topic."""
    random = Random(seed)
    names = sorted(p.stem.removesuffix("Key") for p in LAYOUTS.glob("*Key.json"))
    evidence = lost_evidence(tmp_path, LOST, 9, others=OTHERS)
    for topic in (OFFSETS, "__share_group_state", "__transaction_state"):
        records = []
        for name in names * 8:
            value = kept(f"{name}Value")
            version = random.choice(list(versions(value)))
            key = made_up(kept(f"{name}Key"), 0, random)
            told = None if random.random() < 0.1 else made_up(value, version, random)
            made = record(name, key, told, version)
            if random.random() < 0.2:
                made = Record(random.randbytes(random.randrange(30)), key=made.key)
            records.append(made)
        both = log(*records)
        beside(evidence, {1: both, 2: both[: len(both) // 2]}, topic, f"{topic[2]}" * 21 + "A")
        with_leader(evidence, 2, [topic])
    imported = import_evidence([evidence])
    folded = fold_all(imported.events())
    found = read_groups(imported, folded, [row(9)])
    hurt_ones = affected_transactions(imported, folded, [row(9)])
    assert found.rows
    assert json.dumps([found.rows, hurt_ones])
    assert list(group_sentences(found.affected))
    assert len([transaction_sentence(r) for r in hurt_ones]) == len(hurt_ones)
