"""ZooKeeper's own files, written by real servers for real brokers: the history of leaders and ISR.

`unclean_election__V.tar.gz` holds what the laboratory's run of that name left on Kafka V (with
ZooKeeper 3.4.9, 3.4.10, 3.5.9): log directories, acknowledgements and ZooKeeper's log, no broker
log. `unclean_election__2.8.2__zookeeper_V.tar.gz` are runs under later servers, made by
tests.kafka_lab.zookeepers. `zookeeper_3.8.4.*` is what ZooKeeper 3.8.4 wrote when it was started
on the run of 1.1.1: a snapshot of it, and a log in which one more topic was made;
`zookeeper_3.9.3.*` is the same by 3.9.3, the snapshot packed. Losses are those of the runs' truth.
"""

import gzip
import random
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.evidence.unreadable import Unreadable
from replication.evidence.zookeeper.files import (
    LogEnd,
    ZnodeChange,
    is_zookeeper_file,
    read_zookeeper_file,
)
from replication.evidence.zookeeper.history import TopicLife, ZooKeeperHistory, histories
from replication.protocol.judgement.bounded import fold_all

FILES = Path(__file__).parent / "zookeeper"
OLD = [(1, 0, "initial"), (2, 1, "unclean"), (2, 2, "same_leader"), (2, 3, "same_leader")]
ELECTIONS = {
    "0.10.2.2": OLD,
    "1.1.1": OLD,
    "2.8.2": [
        (1, 0, "initial"), (1, 1, "same_leader"), (1, 2, "same_leader"), (2, 4, "unclean"),
        (2, 5, "same_leader"), (2, 6, "same_leader"),
    ],
}  # fmt: skip
BY_LEADERS = ("single_leader_per_epoch", "leader_in_isr", "leader_epochs_monotonic")
LOSSES = {
    "0.10.2.2": [(20, 26, "recoverable"), (26, 30, "lost")],
    "1.1.1": [(20, 30, "lost")],
    "2.8.2": [(20, 30, "lost")],
}


@pytest.mark.parametrize(
    "version", ["1.1.1", *(pytest.param(v, marks=pytest.mark.slow) for v in ("0.10.2.2", "2.8.2"))]
)
def test_log_directories_and_zookeeper_decide_as_broker_logs_do(version: str) -> None:
    imported = import_evidence(
        [FILES / f"unclean_election__{version}.tar.gz"], kafka_version=version
    )
    (folded,) = fold_all(imported.events())
    answer = folded.answer
    verdicts = {v["invariant"]: v["verdict"] for v in answer.verdicts}
    assert verdicts["committed_records_survive"] == "VIOLATED"
    assert verdicts["acknowledged_records_survive"] == "VIOLATED"
    # Before KIP-101 a deposed leader keeps what its own high watermark lets it keep.
    assert verdicts["log_matching"] == ("VIOLATED" if version == "0.10.2.2" else "HOLDS")
    assert {(x["tier"], x["contract"], x["cause"]) for x in answer.losses} == {
        ("acknowledged_by_isr", "not_promised", "unclean_election")
    }
    found = [(x["first_offset"], x["end_offset"], x["status"]) for x in answer.losses]
    assert found == LOSSES[version]
    elections = answer.partition["elections"]
    assert [(e["leader"], e["leader_epoch"], e["kind"]) for e in elections] == ELECTIONS[version]
    assert imported.unreadable == []


@pytest.mark.parametrize(
    "server",
    ["3.9.3", *(pytest.param(v, marks=pytest.mark.slow) for v in ("3.6.4", "3.7.2", "3.8.4"))],
)
def test_an_incident_under_each_later_server_is_decided(server: str) -> None:
    imported = import_evidence(
        [FILES / f"unclean_election__2.8.2__zookeeper_{server}.tar.gz"], kafka_version="2.8.2"
    )
    (folded,) = fold_all(imported.events())
    answer = folded.answer
    verdicts = {v["invariant"]: v["verdict"] for v in answer.verdicts}
    assert verdicts["committed_records_survive"] == "VIOLATED"
    assert verdicts["acknowledged_records_survive"] == "VIOLATED"
    assert {verdicts[name] for name in (*BY_LEADERS, "log_matching")} == {"HOLDS"}
    told = ("first_offset", "end_offset", "status", "cause", "contract")
    assert [tuple(x[name] for name in told) for x in answer.losses] == [
        (20, 30, "lost", "unclean_election", "not_promised")
    ]
    unclean = [e for e in answer.partition["elections"] if e["kind"] == "unclean"]
    assert [e["leader"] for e in unclean] == [2]
    assert imported.unreadable == []


def steps_of(path: Path) -> tuple[list[ZnodeChange], list[Unreadable]]:
    read = list(read_zookeeper_file(path))
    return (
        [r for r in read if isinstance(r, ZnodeChange)],
        [r for r in read if isinstance(r, Unreadable)],
    )


def topics(history: ZooKeeperHistory) -> dict[str, TopicLife]:
    return {life.topic: life for life in history.topics}


def test_a_snapshot_and_a_log_of_a_new_server(tmp_path: Path) -> None:
    steps, unreadable = steps_of(FILES / "zookeeper_3.8.4.snapshot.18b.gz")
    more, more_unreadable = steps_of(FILES / "zookeeper_3.8.4.log.18c.gz")
    assert unreadable + more_unreadable == []
    (history,) = histories([*more, *steps])
    assert history.cluster_id == "kEe_iyC2TEGn4UktGnsUKg"
    assert history.settings["t"]["unclean.leader.election.enable"] == "true"
    (last,) = topics(history)["t"].states[0]
    assert (last.version, last.leader, last.leader_epoch, last.isr) == (6, 2, 3, (2,))
    assert not topics(history)["t"].is_whole(0)
    late = topics(history)["late"]
    assert late.replicas == {0: (3, 1)}
    assert late.is_whole(0)


@pytest.mark.parametrize("packed", ["snappy", "gz"])
def test_a_packed_snapshot_and_a_log_of_zookeeper_3_9(packed: str) -> None:
    """What ZooKeeper 3.9.3 wrote when it was started on the run of 1.1.1, with each method of
    snapshot.compression.method; behind the snapshot one more topic was made."""
    steps, unreadable = steps_of(FILES / f"zookeeper_3.9.3.snapshot.18b.{packed}")
    more, more_unreadable = steps_of(FILES / "zookeeper_3.9.3.log.18c.gz")
    assert unreadable + more_unreadable == []
    (history,) = histories([*more, *steps])
    (before,) = histories(steps_of(FILES / "zookeeper_3.8.4.snapshot.18b.gz")[0])
    assert history.cluster_id == before.cluster_id
    assert topics(history)["t"].states == {
        0: tuple(replace(s, file=f"{FILES}/zookeeper_3.9.3.snapshot.18b.{packed}")
                 for s in topics(before)["t"].states[0])
    }  # fmt: skip
    late = topics(history)["late"]
    assert (late.replicas, late.is_whole(0)) == ({0: (3, 1)}, True)


@pytest.mark.parametrize("old_log", [True, False])
def test_an_incident_told_by_a_server_of_3_9(old_log: bool, tmp_path: Path) -> None:
    """The directory of a server that was upgraded from 3.4, and what is left of it when the old log
    was purged: then the losses are told, and no cause."""
    with tarfile.open(FILES / "unclean_election__1.1.1.tar.gz") as tar:
        tar.extractall(tmp_path)
    folder = tmp_path / "zookeeper" / "version-2"
    if not old_log:
        (folder / "log.1").unlink()
    (folder / "log.18c").write_bytes(
        gzip.decompress((FILES / "zookeeper_3.9.3.log.18c.gz").read_bytes())
    )
    packed = (FILES / "zookeeper_3.9.3.snapshot.18b.snappy").read_bytes()
    (folder / "snapshot.18b.snappy").write_bytes(packed)
    folded = fold_all(import_evidence([tmp_path], kafka_version="1.1.1").events())
    (found,) = [f.answer for f in folded if f.answer.partition["topic"] == "t"]
    verdicts = {v["invariant"]: v["verdict"] for v in found.verdicts}
    assert verdicts["committed_records_survive"] == "VIOLATED"
    assert verdicts["acknowledged_records_survive"] == "VIOLATED"
    assert verdicts["log_matching"] == "HOLDS"
    lost = [(x["first_offset"], x["end_offset"], x["status"]) for x in found.losses]
    assert lost == LOSSES["1.1.1"]
    assert [x["cause"] for x in found.losses] == ["unclean_election" if old_log else "unknown"]


def test_brokers_and_controllers_elections_are_told(tmp_path: Path) -> None:
    """Registrations are ephemeral: the transaction logs have them, and the counter of elections."""
    source = FILES / "unclean_election__2.8.2.tar.gz"
    imported = import_evidence([source], kafka_version="2.8.2")
    (cluster,) = imported.clusters
    assert cluster.brokers == [1, 2, 3]
    assert any("a controller was elected" in note for note in imported.notes)


def test_a_packed_snapshot_that_is_cut_says_so(tmp_path: Path) -> None:
    whole = (FILES / "zookeeper_3.9.3.snapshot.18b.snappy").read_bytes()
    for size in (17, 19, 21, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:size])
        found, unreadable = steps_of(tmp_path / "cut")
        assert (found, len(unreadable)) == ([], 1)


def test_what_is_cut_or_changed_ends_the_file_and_says_so(tmp_path: Path) -> None:
    """Every log carries check sums: a changed byte costs what follows, and never says otherwise."""
    chance = random.Random(7)
    for name in ("zookeeper_3.8.4.log.18c.gz", "zookeeper_3.8.4.snapshot.18b.gz"):
        whole = gzip.decompress((FILES / name).read_bytes())
        right, _ = steps_of(FILES / name)
        path = tmp_path / "file"
        for _ in range(150):
            place = chance.randrange(len(whole))
            path.write_bytes(whole[:place])
            found, _ = steps_of(path)
            assert [s.zxid for s in found] == [s.zxid for s in right][: len(found)]
            changed = bytearray(whole)
            changed[place] ^= 1 << chance.randrange(8)
            path.write_bytes(changed)
            found, unreadable = steps_of(path)
            if "log" in name and place >= 16:
                assert unreadable or len(found) <= len(right)
                assert [s.zxid for s in found] == [s.zxid for s in right][: len(found)]


def test_other_files_are_none(tmp_path: Path) -> None:
    for content in (b"", b"ZKL", b"text", b"\0" * 64):
        (tmp_path / "x").write_bytes(content)
        assert not is_zookeeper_file(tmp_path / "x")


def test_a_log_that_breaks_off_leaves_what_follows_unknown(tmp_path: Path) -> None:
    log = gzip.decompress((FILES / "zookeeper_3.8.4.log.18c.gz").read_bytes()).rstrip(b"\0")
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    whole.write_bytes(log)
    torn.write_bytes(log[:-5])
    (told,) = histories(read_zookeeper_file(whole))
    (broken,) = histories(read_zookeeper_file(torn))
    (both,) = histories([*read_zookeeper_file(torn), *read_zookeeper_file(whole)])
    assert (told.torn, broken.torn, both.torn) == (None, str(torn), None)
    torn.write_bytes(log[:40])
    assert LogEnd(None, True, str(torn)) in list(read_zookeeper_file(torn))
    (unsure,) = histories([*read_zookeeper_file(torn), *read_zookeeper_file(whole)])
    assert unsure.torn == str(torn)


def test_nothing_holds_by_the_silence_of_a_log_that_breaks_off(tmp_path: Path) -> None:
    with tarfile.open(FILES / "unclean_election__1.1.1.tar.gz") as packed:
        packed.extractall(tmp_path)
    (log,) = tmp_path.rglob("version-2/log.*")
    content = log.read_bytes()
    state = content.index(b'"leader":2')
    log.write_bytes(content[:state])
    (folded,) = fold_all(import_evidence([tmp_path], kafka_version="1.1.1").events())
    verdicts = {v["invariant"]: v for v in folded.answer.verdicts}
    assert "HOLDS" not in {verdicts[name]["verdict"] for name in BY_LEADERS}
    assert "behind its last whole transaction" in verdicts["leader_in_isr"]["reason"]
