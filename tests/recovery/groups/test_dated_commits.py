"""Commits that name no leader epoch: which log they were made on, by when they were made."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.importer import import_evidence
from replication.evidence.metadata_log.history import PartitionChange
from replication.protocol.judgement.bounded import fold_all
from replication.recovery.groups.affected_groups import CLOCKS_DIFFER_MS, GroupsRead, read_groups
from replication.recovery.groups.effects import LeaderLog, has_read
from replication.recovery.groups.group_state import Commit
from replication.reports.group_words import group_sentences
from tests.evidence.segment_bytes import Record, batch
from tests.recovery.groups.coordinator_bytes import AT, OFFSETS, beside, commit, log, with_leader
from tests.recovery.groups.test_groups import LOST, elections, history_of, told
from tests.recovery.lost_evidence import CLUSTER, TOPIC_ID, lost_evidence, row

# What broker 2 wrote, and what was produced again: offsets 3 to 12 of leader epoch 1.
MORE = batch(3, *(Record(b"new", key=b"n%d" % n) for n in range(10)), leader_epoch=1)
COORDINATOR = "O" * 21 + "A"
COUNTS = ("effects", "lost_read", "skipped", "parts_at", "certain")
SKIPS = ["read_lost_records", "skips_records"]


def groups(
    folder: Path,
    both: bytes,
    changes: list[PartitionChange],
    *,
    leader: int = 2,
    of: tuple[int, int] = (9, 0),
    **said: Any,
) -> GroupsRead:
    """The groups whose coordinator's log is `both`. of: end and leader epoch of what is lost."""
    evidence = lost_evidence(folder, LOST, 9, others=MORE)
    if leader == 1:
        text = (evidence / "describe.txt").read_text()
        (evidence / "describe.txt").write_text(text.replace("Leader: 2", "Leader: 1"))
    with_leader(beside(evidence, {1: both, 2: both}), leader)
    for entries in evidence.glob(f"broker-*/{OFFSETS}-0/leader-epoch-checkpoint"):
        entries.write_text("0\n2\n0 0\n1 1\n")
    imported = import_evidence([evidence])
    for partition in imported.partitions:
        partition.clock_bound = said.get("clock_bound")
    imported.collection.histories[CLUSTER] = history_of(changes)
    end, leader_epoch = of
    return read_groups(imported, fold_all(imported.events()), [row(end, leader_epoch=leader_epoch)])


def at(changes: list[PartitionChange], ms: int) -> list[PartitionChange]:
    """The same, each ms after AT, the time of the commits."""
    return [replace(c, at=AT + ms) for c in changes]


SOON, LATE = 1_000, CLOCKS_DIFFER_MS + 1_000


@pytest.mark.parametrize(
    ("coordinator", "loss", "later", "clock_bound", "expected"),
    [
        # The coordinator's leader epoch of the commit was over before the loss.
        ([(0, 2), (1, 4)], [(0, 1), (1, 6)], SOON, None, (SKIPS, 6, 6, 3, True)),
        # One record of the controllers ended both: the broker that led was fenced.
        ([(0, 2), (1, 7)], [(0, 1), (1, 6)], SOON, None, (SKIPS, 6, 6, 3, True)),
        # It outlived the loss, and the clocks are too near, or too far apart, or declared.
        ([(0, 2)], [(0, 1), (1, 6)], SOON, None, (SKIPS[:1], 6, 0, None, False)),
        ([(0, 2)], [(0, 1), (1, 6)], LATE, None, (SKIPS, 6, 6, 3, False)),
        ([(0, 2)], [(0, 1), (1, 6)], SOON, 10, (SKIPS, 6, 6, 3, True)),
        ([(0, 2)], [(0, 1), (1, 6)], -LATE, None, (SKIPS[:1], 6, 0, None, False)),
        ([], [], LATE, None, (SKIPS[:1], 6, 0, None, False)),
    ],
)
def test_a_commit_made_before_the_loss_read_what_was_lost_whatever_was_written_since(
    coordinator: list[tuple[int, int]],
    loss: list[tuple[int, int]],
    later: int,
    clock_bound: int | None,
    expected: tuple[Any, ...],
    tmp_path: Path,
) -> None:
    changes = at([*elections(COORDINATOR, coordinator), *elections(TOPIC_ID, loss)], later)
    if coordinator == [(0, 2), (1, 4)]:
        changes[:2] = at(changes[:2], 0)
    found = groups(tmp_path, log(commit(9, None)), changes, clock_bound=clock_bound)
    assert told(found, *COUNTS) == [expected]


def test_what_was_written_after_a_commit_it_had_not_read(tmp_path: Path) -> None:
    """Broker 1 was elected again; broker 2's records of leader epoch 1 are the lost ones."""
    changes = at([*elections(TOPIC_ID, [(0, 1), (1, 6), (2, 8)])], LATE)
    both = log(commit(9, None))
    assert told(groups(tmp_path, both, changes, leader=1, of=(13, 1)), *COUNTS) == [
        ([], 0, 0, None, True)
    ]
    silent = groups(tmp_path / "silent", both, [], leader=1, of=(13, 1))
    assert told(silent, "lost_read", "certain") == [(6, False)]
    older = Commit(9, None, AT, None, Path("x"), 0, 0, 0, latest_epoch=0)
    assert has_read(older, 5, 1, LeaderLog([], 0, 3)) is None


def test_a_reset_is_told_with_its_command(tmp_path: Path) -> None:
    changes = at(elections(TOPIC_ID, [(0, 1), (1, 6)]), LATE)
    both = log(commit(9, None, group="it's"), commit(9, 0, group="newer"), commit(3, 0, group="ok"))
    said = list(group_sentences(groups(tmp_path, both, changes).affected))
    assert (
        "  Before it is started: kafka-consumer-groups.sh --bootstrap-server HOST:PORT "
        "--group 'it'\"'\"'s' --topic t:0 --reset-offsets --to-offset 3 --execute"
    ) in said
    (without, with_epoch) = [s for s in said if s.startswith("  t-0")]
    assert "KIP-320" in with_epoch
    assert "KIP-320" not in without
    assert not any("ok" in s for s in said)
