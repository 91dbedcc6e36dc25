"""Incidents of which every log directory is here and nothing else: nobody names the leader."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import fold_all
from tests.changed_evidence import (
    DECIDING,
    EXPECTED,
    MORE,
    broker_logs,
    changed_copy,
    living,
    verdicts_of,
    wrong_verdicts,
)
from tests.test_layouts import QUICK

# Of the deciding verdicts over all incidents so many are given without the leader's name.
LEAST_DECIDED = {"committed_records_survive": 7, "acknowledged_records_survive": 20,
                 "log_matching": 20}  # fmt: skip


def directories_alone(evidence: Path) -> None:
    """Log directories, acknowledgements and kafka-topics from a time without a leader."""
    for path in broker_logs(evidence):
        path.unlink()
    for path in list(evidence.rglob("__cluster_metadata-0")):
        shutil.rmtree(path)
    for path in evidence.glob("*.txt"):
        path.write_text(re.sub(r"Leader: \S+", "Leader: none", path.read_text()))


def decided(incident: str, into: Path) -> Counter[str]:
    """Which verdicts are given; none of them may be wrong."""
    release = re.search(r"__(\d+(?:\.\d+)+)", incident)
    assert release
    evidence = changed_copy(incident, directories_alone, into)
    folded = fold_all(import_evidence([evidence], kafka_version=release[1]).events())
    found: Counter[str] = Counter()
    for topic_partition in EXPECTED[incident]:
        verdicts = verdicts_of(living(folded, topic_partition))
        assert wrong_verdicts(incident, topic_partition, verdicts) == []
        found.update(n for n in DECIDING if not verdicts[n].startswith("UNKNOWN"))
        said = [v for v in verdicts.values() if "nothing names the leader" in v]
        assert all(re.search(r"if brokers? \d", text) for text in said)
    return found


@pytest.mark.parametrize(
    "incident", [*QUICK, *(pytest.param(i, marks=pytest.mark.slow) for i in MORE)]
)
def test_what_holds_whoever_leads_is_decided(incident: str, tmp_path: Path) -> None:
    found = decided(incident, tmp_path)
    assert set(found) >= set(DECIDING if incident in QUICK else DECIDING[:2])


@pytest.mark.sweep
def test_over_all_incidents_nothing_is_wrong_and_most_is_decided(tmp_path: Path) -> None:
    found: Counter[str] = Counter()
    for incident in sorted(EXPECTED):
        found += decided(incident, tmp_path / incident)
    assert all(found[name] >= least for name, least in LEAST_DECIDED.items()), found
