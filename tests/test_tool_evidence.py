"""kafka-metadata-quorum and kafka-log-dirs beside an incident: what they add to the answer."""

import json
from pathlib import Path

import pytest

from replication.evidence.importer import Import, import_evidence
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from tests.changed_evidence import (
    DECIDING,
    EXPECTED,
    Change,
    changed_copy,
    living,
    verdicts_of,
    wrong_verdicts,
)

HEALTHY, LOSS = "healthy_rolling_restart__4.3.0", "last_replica_standing__4.1.1__elr_off"
STATUS = """ClusterId:              {cluster}
LeaderId:               100
LeaderEpoch:            1
HighWatermark:          {offset}
MaxFollowerLag:         0
MaxFollowerLagTimeMs:   24
CurrentVoters:          [100]
CurrentObservers:       [1,2,3]
"""
REPLICATION = (
    "NodeId\tLogEndOffset\tLag\tLastFetchTimestamp\tLastCaughtUpTimestamp\tStatus  \t\n"
    "100   \t{leader}      \t0  \t1727139256030     \t1727139256030        \tLeader  \t\n"
    "101   \t{second}      \t8  \t1727139255964     \t1727139255964        \tFollower\t\n"
    "102   \t1             \t8  \t1727139255964     \t1727139255964        \tFollower\t\n"
    "1     \t{leader}      \t8  \t1727139255964     \t1727139255964        \tObserver\t\n"
)


def read(
    incident: str, change: Change, into: Path, *, strict: bool = True
) -> tuple[Import, FoldedPartition]:
    imported = import_evidence([changed_copy(incident, change, into)])
    found = living(fold_all(imported.events(), strict=strict), "t-0")
    assert found is not None
    return imported, found


def history_of(incident: str, into: Path) -> tuple[str, int]:
    """(cluster id, end of the longest copy of the metadata log) of the intact incident."""
    imported, _ = read(incident, lambda evidence: None, into / "intact")
    ((cluster, history),) = imported.collection.histories.items()
    return cluster, history.end_offset


def saying(text: str) -> Change:
    return lambda evidence: (evidence / "quorum.txt").write_text(text) and None


@pytest.mark.parametrize("tool", ["status", "replication"])
def test_what_held_is_unknown_where_the_metadata_log_ends_early(tool: str, tmp_path: Path) -> None:
    cluster, end = history_of(HEALTHY, tmp_path)
    text = STATUS.format(cluster=cluster, offset=end + 5)
    if tool == "replication":
        text = REPLICATION.format(leader=end + 9, second=end + 5)
    imported, folded = read(HEALTHY, saying(text), tmp_path)
    verdicts = verdicts_of(folded)
    missing = f"the metadata log's offsets {end}..{end + 4}, which its quorum had committed"
    for name in ("leader_epochs_monotonic", "leader_in_isr"):
        assert verdicts[name] == f"UNKNOWN: not all of the evidence is here: {missing}"
    assert verdicts["log_matching"] == "HOLDS"
    (note,) = [n for n in imported.collection.notes if "quorum.txt" in n]
    assert f"ends before offsets {end}..{end + 4}" in note


def test_a_violation_stands_whatever_was_elected_later(tmp_path: Path) -> None:
    cluster, end = history_of(LOSS, tmp_path)
    _, folded = read(LOSS, saying(STATUS.format(cluster=cluster, offset=end + 5)), tmp_path)
    verdicts = verdicts_of(folded)
    assert [verdicts[name] for name in DECIDING[:2]] == ["VIOLATED", "VIOLATED"]
    assert wrong_verdicts(LOSS, "t-0", verdicts) == []


@pytest.mark.parametrize("behind", [0, 7])
def test_a_metadata_log_that_was_copied_later_is_whole(behind: int, tmp_path: Path) -> None:
    cluster, end = history_of(HEALTHY, tmp_path)
    text = STATUS.format(cluster=cluster, offset=end - behind)
    imported, folded = read(HEALTHY, saying(text), tmp_path)
    verdicts = verdicts_of(folded)
    assert [verdicts[name] for name in DECIDING] == EXPECTED[HEALTHY]["t-0"]["verdicts"]
    assert [n for n in imported.collection.notes if "quorum" in n] == []


def test_the_quorum_of_another_cluster_says_nothing(tmp_path: Path) -> None:
    _, end = history_of(HEALTHY, tmp_path)
    text = STATUS.format(cluster="q1Sh-9_ISia_zwGINzRvyQ", offset=end + 99)
    _, folded = read(HEALTHY, saying(text), tmp_path)
    assert verdicts_of(folded)["committed_records_survive"] == "HOLDS"


def test_a_quorum_without_any_copy_of_its_log_asks_for_one(tmp_path: Path) -> None:
    incident = "unclean_election__2.8.2"
    imported, _ = read(incident, saying(STATUS.format(cluster="", offset=66)), tmp_path)
    assert any("66 committed offsets, and no copy of it" in n for n in imported.collection.notes)


# -- kafka-log-dirs -------------------------------------------------------------------------------


def log_dirs(*brokers: int, error: str | None = None, future: bool = False) -> str:
    row = {"partition": "t-0", "size": 9, "offsetLag": 3 if future else 0, "isFuture": future}
    dirs = {"logDir": "/data/1", "error": error, "partitions": [] if error else [row]}
    listed = [{"broker": number, "logDirs": [dirs]} for number in brokers]
    return "Querying brokers\n" + json.dumps({"version": 1, "brokers": listed}) + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (log_dirs(1, error="KafkaStorageException"), "broker 1 could not describe its log dir"),
        (log_dirs(2, future=True), "broker 2 was moving t-0 to /data/1, 3 offsets behind"),
        (log_dirs(1, 2, 3, 9), "lists a replica on broker 9, but neither its log directory nor"),
    ],
)
def test_what_log_dirs_says_is_told(text: str, said: str, tmp_path: Path) -> None:
    imported, folded = read(HEALTHY, saying(text), tmp_path)
    assert any(said in note for note in imported.collection.notes)
    verdicts = verdicts_of(folded)
    assert [verdicts[name] for name in DECIDING] == EXPECTED[HEALTHY]["t-0"]["verdicts"]


def test_a_listed_replica_counts_where_nothing_else_names_the_assignment(tmp_path: Path) -> None:
    """Directories of two brokers and nothing else: that a third has a replica, too, matters."""

    def only_directories(evidence: Path) -> None:
        (evidence / "describe.txt").unlink()
        (evidence / "acks.jsonl").unlink()
        for path in [p for p in evidence.glob("*/*") if p.name != "disk-final"]:
            if path.is_file():
                path.unlink()

    def with_list(evidence: Path) -> None:
        only_directories(evidence)
        (evidence / "dirs.txt").write_text(log_dirs(1, 2, 3))

    incident = "unclean_election__2.8.2"
    _, bare = read(incident, only_directories, tmp_path / "bare", strict=False)
    _, told = read(incident, with_list, tmp_path / "told", strict=False)
    for name in ("committed_records_survive", "log_matching"):
        without, listed = (
            next(v for v in found.answer.verdicts if v["invariant"] == name)
            for found in (bare, told)
        )
        assert without["verdict"] == "HOLDS"
        assert "replicas_as_seen" in without["assuming"]
        assert listed["verdict"] == "UNKNOWN"
        assert "the log directory of broker 3" in listed["settled_by"]
