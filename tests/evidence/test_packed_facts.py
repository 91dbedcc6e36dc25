"""Facts come back from packing as they were, in memory and in files, by one process or several."""

from pathlib import Path

import pytest

from replication.cli import main
from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.line_families import FAMILIES
from replication.evidence.broker_logs.packed_facts import Packer
from replication.evidence.collecting.many_processes import spread_over

INCIDENT = Path(__file__).parents[1] / "incidents" / "unclean_election__2.8.2"


def facts_of_all_families() -> list[LogLineFact]:
    """Every example's facts about partitions: all types of fields that there are."""
    found = [
        (family.kind, item)
        for family in FAMILIES
        for example in family.examples
        for item in example.found
    ]
    return [
        LogLineFact(kind, 1_000 + n, n, "server.log", f.node, f.topic, f.partition, f.fields)
        for n, (kind, f) in enumerate(found)
        if f.topic is not None and f.partition is not None
    ]


@pytest.mark.parametrize("in_files", [False, True])
def test_every_fact_comes_back_with_its_partition(in_files: bool, tmp_path: Path) -> None:
    facts = facts_of_all_families()
    packer = Packer("server.log", tmp_path if in_files else None)
    for _ in range(300):
        for fact in facts:
            packer.add(fact)
    packed = packer.done()
    for lines in packed:
        about = [f for f in facts if (f.broker, f.topic, f.partition) == lines.about]
        assert list(lines) == about * 300
        assert list(lines) == about * 300
    assert len(packed) == len({(f.broker, f.topic, f.partition) for f in facts})
    assert bool(list(tmp_path.iterdir())) == in_files


def test_several_processes_give_the_same_events(tmp_path: Path) -> None:
    for processes in (1, 2):
        out = tmp_path / f"{processes}.jsonl"
        assert (
            main(["import", str(INCIDENT), "--out", str(out), "--processes", f"{processes}"]) == 0
        )
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


def test_little_evidence_is_read_by_one_process() -> None:
    with spread_over([INCIDENT], None) as spread:
        assert spread is map
