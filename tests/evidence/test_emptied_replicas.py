"""A log directory that was formatted anew: its broker comes back with nothing."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from replication.decisions.answer import decide
from replication.decisions.commands import COPY
from replication.evidence.importer import import_evidence
from replication.evidence.joining.emptied_replicas import emptied_replicas
from replication.protocol.ground import events as ev
from replication.protocol.judgement.bounded import fold_all

HEALTHY = Path("tests/incidents/healthy_rolling_restart__4.3.0")
INCIDENT = Path("tests/incidents/last_replica_standing__4.1.1__elr_off")
# Its broker 3 alone had the last record.
LAST_LEADER = Path("tests/incidents/chaos__4.1.1__seed2")
ALL = frozenset([1, 2, 3])


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """What an incident left; of broker 1's newest directory only its name."""
    return emptied(INCIDENT, 1, tmp_path)


def emptied(incident: Path, broker: int, scratch: Path, *, formatted_anew: bool = True) -> Path:
    """A disk that was replaced, or of whose directory only the name is handed over."""
    shutil.copytree(incident, scratch / "evidence")
    bare = scratch / "evidence" / f"broker-{broker}"
    for place in bare.glob("disk-*"):
        name = (place / "meta.properties").read_bytes()
        shutil.rmtree(place)
        if place.name == "disk-final":
            place.mkdir()
            new = b"directory.id=AAAAAAAAAAAAAAAAAAAAAQ" if formatted_anew else rb"\g<0>"
            (place / "meta.properties").write_bytes(re.sub(rb"directory\.id=.*", new, name))
    return scratch / "evidence"


def observed(evidence: Path, broker: int) -> list[ev.ReplicaLogObserved]:
    facts = [e.fact for e in import_evidence([evidence]).events()]
    return [f for f in facts if isinstance(f, ev.ReplicaLogObserved) and f.replica == broker]


def test_it_is_a_copy_without_a_record_and_the_last(evidence: Path) -> None:
    (copy,) = observed(evidence, 1)
    assert not [n for n in import_evidence([evidence]).notes if "only its name" in n]
    assert (copy.log_start_offset, copy.log_end_offset, copy.spans) == (0, 0, ())
    assert not copy.stopped, "it says nothing of a clean stop"


def test_whoever_has_nothing_is_not_chosen(evidence: Path) -> None:
    """Without the look at its directory, broker 1 was taken to have all that its lines tell."""
    (folded,) = fold_all(import_evidence([evidence]).events())
    found = decide(folded.state, down=ALL)
    (emptied,) = [c for c in found.outlook.candidates if c.replica == 1]
    others = [c for c in found.outlook.candidates if c.replica != 1]
    assert emptied.at_hand
    assert emptied.worst()
    assert not any(c.worst() for c in others[:1])
    assert found.choice.replica != 1
    emptied_leads = decide(folded.state, down=ALL, elect=1).plan.steps
    copied = [s.broker for s in emptied_leads if s.action == COPY]
    assert copied
    assert 1 not in copied, "there is nothing to copy"


def test_what_it_alone_had_is_lost(tmp_path: Path) -> None:
    """Without a look at the disk its broker was taken to have the record still: recoverable, from a
    copy that nothing could name."""
    (folded,) = fold_all(import_evidence([emptied(LAST_LEADER, 3, tmp_path)]).events())
    rows = {row["status"] for row in folded.answer.losses if row["end_offset"] > 23}
    assert rows == {"lost"}


def test_a_checkpoint_or_another_copy_says_that_it_is_not_empty(evidence: Path) -> None:
    place = evidence / "broker-1" / "disk-final"
    (place / "replication-offset-checkpoint").write_text("0\n1\nt 0 3\n")
    assert observed(evidence, 1) == []
    (place / "replication-offset-checkpoint").unlink()
    shutil.copytree(INCIDENT / "broker-1" / "disk-final", evidence / "broker-1" / "disk-older")
    assert [c.log_end_offset > 0 for c in observed(evidence, 1)] == [True]


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_a_name_that_the_controllers_know_tells_of_no_loss(broker: int, tmp_path: Path) -> None:
    """Somebody handed over meta.properties beside the broker logs, and nothing else of the disk."""
    bare = emptied(HEALTHY, broker, tmp_path, formatted_anew=False)
    assert observed(bare, broker) == []
    imported = import_evidence([bare])
    assert [n for n in imported.notes if f"broker {broker}'s log directory only its name" in n]
    for folded in fold_all(imported.events()):
        assert folded.answer.losses == []


def test_the_names_of_all_directories_tell_of_no_loss(tmp_path: Path) -> None:
    bare = emptied(HEALTHY, 1, tmp_path, formatted_anew=False)
    for broker in (2, 3):
        for place in (bare / f"broker-{broker}").glob("disk-*"):
            for other in place.iterdir():
                if other.name != "meta.properties":
                    shutil.rmtree(other) if other.is_dir() else other.unlink()
    for folded in fold_all(import_evidence([bare]).events()):
        assert folded.answer.losses == []


@pytest.mark.parametrize(
    ("known", "is_new"), [(("x",), True), (("a",), False), ((), False), (("b", "x"), False)]
)
def test_what_the_controllers_know_of_the_brokers_directories_counts(
    evidence: Path, known: tuple[str, ...], *, is_new: bool
) -> None:
    collection = import_evidence([evidence]).collection
    (history,) = collection.histories.values()
    mine = next(d for d in collection.directories if d.broker == 1)
    assert mine.directory.meta is not None
    meta = replace(mine.directory.meta, directory_id="a")
    bare = replace(mine, directory=replace(mine.directory, meta=meta))
    brokers = tuple(replace(b, log_dirs=known) for b in history.brokers)
    found = list(emptied_replicas([bare], replace(history, brokers=brokers), {}))
    assert bool(found) is is_new
