"""Two clusters whose lines stand in one file, or whose rotated logs lie in one folder."""

import shutil
from pathlib import Path

import pytest

from replication.evidence.importer import Import, import_evidence
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from tests.changed_evidence import EXPECTED, INCIDENTS, broker_logs, verdicts_of, wrong_verdicts
from tests.merged_logs import Merged, Written, by_time, in_pieces, whole, written
from tests.test_layouts import PAIRS

_OTHERS = shutil.ignore_patterns("truth.json", "acks.jsonl", "describe.txt")

IN_TURN = "each line belongs to the cluster that the last start before it names"


def of(incident: str, node: int) -> list[Written]:
    return [line for line in written(incident) if line[2] == node]


def disks(incident: str, into: Path) -> None:
    shutil.copytree(INCIDENTS / incident, into, ignore=_OTHERS)
    for path in broker_logs(into):
        path.unlink()


def answered(folder: Path) -> tuple[Import, dict[str, list[FoldedPartition]]]:
    """What was read, and the partitions by cluster id."""
    imported = import_evidence([folder])
    found: dict[str, list[FoldedPartition]] = {}
    for folded in fold_all(imported.events(), strict=True):
        found.setdefault(folded.identity[0], []).append(folded)
    return imported, found


def cluster_of(incident: str) -> str:
    return import_evidence([INCIDENTS / incident]).clusters[0].cluster_id


def nothing_is_wrong(incident: str, folded: list[FoldedPartition]) -> None:
    for each in folded:
        place = f"{each.identity[1]}-{each.identity[3]}"
        if place in EXPECTED[incident] and not each.state.settings.deleted:
            assert wrong_verdicts(incident, place, verdicts_of(each)) == []


@pytest.mark.parametrize("pair", PAIRS[:2], ids="+".join)
def test_a_broker_that_was_formatted_anew_is_of_two_clusters(
    pair: tuple[str, str], tmp_path: Path
) -> None:
    """The years of one file: each life's lines beside the disks of their own cluster."""
    for node in (1, 2, 3):
        folder = tmp_path / f"broker-{node}"
        folder.mkdir()
        lines = [line for incident in pair for line in of(incident, node)]
        if lines:
            whole(lines, folder, Merged())
    for number, incident in enumerate(pair):
        disks(incident, tmp_path / f"disks-{number}")
    imported, found = answered(tmp_path)
    ids = [cluster_of(incident) for incident in pair]
    assert set(ids) == set(found)
    assert sum(IN_TURN in note for note in imported.notes) >= 2
    for incident, cluster_id in zip(pair, ids, strict=True):
        nothing_is_wrong(incident, found[cluster_id])
        elections = [e for f in found[cluster_id] for e in f.answer.partition["elections"]]
        assert elections


@pytest.mark.parametrize("pair", PAIRS[:2], ids="+".join)
def test_two_clusters_in_one_file_are_taken_in_turn(pair: tuple[str, str], tmp_path: Path) -> None:
    lines = by_time([line for incident in pair for line in written(incident)])
    whole(lines, tmp_path, Merged())
    for number, incident in enumerate(pair):
        disks(incident, tmp_path / f"disks-{number}")
    imported, found = answered(tmp_path)
    assert any(IN_TURN in note for note in imported.notes)
    for incident in pair:
        nothing_is_wrong(incident, found.get(cluster_of(incident), []))


@pytest.mark.parametrize("pair", PAIRS[:2], ids="+".join)
def test_rotated_logs_of_two_clusters_in_one_folder_stay_apart(
    pair: tuple[str, str], tmp_path: Path
) -> None:
    """Pieces of one name; of those that name no cluster nobody can say of which they are."""
    folder = tmp_path / "logs"
    folder.mkdir()
    in_pieces([line for incident in pair for line in of(incident, 1)], folder, Merged())
    for number, incident in enumerate(pair):
        disks(incident, tmp_path / f"disks-{number}")
    imported, found = answered(tmp_path)
    assert any(IN_TURN in note for note in imported.notes)
    assert set(found) == {cluster_of(incident) for incident in pair}
    for incident in pair:
        nothing_is_wrong(incident, found[cluster_of(incident)])
