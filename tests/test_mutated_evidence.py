"""Mutations of captured incidents that must not change the answer, or not make it wrong."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.collecting.collection import NoEvidence
from replication.evidence.event_dumps import read_events, write_events
from replication.evidence.importer import import_evidence
from replication.evidence.unreadable import Unreadable
from replication.protocol.judgement.bounded import fold_all
from tests.changed_evidence import (
    EXPECTED,
    INCIDENTS,
    Change,
    as_captured,
    changed_copy,
    folded_with,
    marks_of,
)
from tests.mutated_evidence import (
    NOTHING_WRONG,
    SAME_ANSWER,
    cluster_ids,
    folded,
    outcome,
    wrong_in,
)

QUICK = ("same_epoch_power_loss__1.1.1", "unclean_election__4.1.1__trace")


def cases(classes: dict[str, Any]) -> Iterator[Any]:
    for mutations in classes.values():
        for incident in EXPECTED:
            for turn, (what, change) in enumerate(mutations(incident)):
                marks = marks_of(incident, QUICK, turn)
                yield pytest.param(incident, change, id=f"{incident}, {what}", marks=marks)


@pytest.mark.parametrize(("incident", "change"), list(cases(SAME_ANSWER)))
def test_the_same_evidence_gives_the_same_answer(incident: str, change: Change) -> None:
    assert outcome(folded_with(incident, change)) == outcome(as_captured(incident))


@pytest.mark.parametrize(("incident", "change"), list(cases(NOTHING_WRONG)))
def test_nothing_becomes_wrong(incident: str, change: Change) -> None:
    assert wrong_in(incident, folded_with(incident, change)) == []


def spellings(folder: Path) -> list[list[Path]]:
    """The same folder under other names."""
    link = folder.parent / "link"
    link.symlink_to(folder)
    roundabout = folder / ".." / folder.name
    return [[link], [roundabout], [folder, link], [folder, folder / "broker-1"], [link, roundabout]]


@pytest.mark.parametrize("incident", ["unclean_election__2.8.2"])
def test_another_spelling_of_a_path_is_the_same_evidence(incident: str, tmp_path: Path) -> None:
    folder = changed_copy(incident, lambda _: None, tmp_path)
    first = import_evidence([folder])
    expected = list(first.events())
    for paths in spellings(folder):
        again = import_evidence(paths)
        assert again.trace_id == first.trace_id, paths
        assert [e.event_id for e in again.events()] == [e.event_id for e in expected], paths
        assert outcome(folded(paths)) == outcome(folded([folder])), paths


def test_evidence_imported_twice_into_one_folder_is_the_same_evidence(tmp_path: Path) -> None:
    """Each import names the files as it was given them: the events are the same ones."""
    folder = INCIDENTS / "unclean_election__2.8.2"
    link = tmp_path / "link"
    link.symlink_to(folder)
    for number, path in enumerate((folder, link)):
        write_events(tmp_path / f"{number}.jsonl", import_evidence([path]).events())
    read = [e for p in sorted(tmp_path.glob("*.jsonl")) for e in read_events(p)]
    events = [e for e in read if not isinstance(e, Unreadable)]
    (partition,) = fold_all(events)
    counts = partition.counts
    assert counts["quarantined"] == counts["held"] == 0
    assert counts["applied"] == counts["duplicates"] == len(events) // 2
    assert outcome([partition]) == outcome(folded([folder]))


def under_one_id(first: str, second: str, into: Path) -> Path:
    """Two captures of KRaft clusters as two lives under the second one's cluster id."""
    for name, incident in (("before", first), ("now", second)):
        changed_copy(incident, lambda _: None, into / name)
    (known,), (now,) = (cluster_ids(into / name / "evidence") for name in ("before", "now"))
    for path in [*into.glob("before/*/*/*.log*"), *into.rglob("meta.properties")]:
        path.write_bytes(path.read_bytes().replace(known, now))
    return into


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("unclean_election__4.1.1", "last_replica_standing__4.1.1__elr_on"),
        ("healthy_rolling_restart__4.3.0", "not_loss_traps__4.3.0__retention"),
        ("acks1_loss__3.9.1", "unclean_election__4.1.1"),
    ],
)
def test_a_cluster_formatted_anew_under_its_id_is_refused(
    first: str, second: str, tmp_path: Path
) -> None:
    """The older life's topics are not the newer one's deleted ones: never "nothing lost"."""
    both = under_one_id(first, second, tmp_path)
    with pytest.raises(NoEvidence, match="formatted anew under the same cluster id"):
        import_evidence([both])
    assert import_evidence([both / "before"]).partitions
    assert import_evidence([both / "now"]).partitions
