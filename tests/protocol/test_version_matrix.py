"""Every traced incident judged by the rules of every release, told by `--kafka`.

By its own release a trace has no finding, by one that behaves alike on it neither; where a finding
is made, it names the rule. `python -m tests.protocol.version_matrix` does the same for any folder.
"""

from functools import cache
from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.ground.events import Event, PartitionDescribed
from tests.protocol.version_matrix import contradictions, events_of, judged, matrix, releases

INCIDENTS = Path(__file__).parent.parent / "incidents"
TRACED = sorted(p.name for p in INCIDENTS.glob("*__trace"))
# Half of what all of them take: the longest traces.
LONG = ("chaos__1.1.1__seed39__trace", "kip101_scenario_1__0.10.2.2__silent_divergence__trace")


@cache
def events(name: str) -> list[Event]:
    return events_of(INCIDENTS / name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.sweep if name in LONG else pytest.mark.slow)
        for name in TRACED
    ],
)
def test_releases_are_alike_or_told_apart_by_a_rule(name: str) -> None:
    own, groups = matrix(events(name))

    assert own.verdict == "HOLDS"
    assert list(contradictions(events(name))) == []
    assert sorted(r for _, members in groups for r in members) == sorted(releases())
    assert len(groups) > 4


@pytest.mark.parametrize(
    ("name", "release", "rule"),
    [
        ("acks1_loss__1.1.1__trace", "0.10.2.2", "truncate_to_high_watermark"),
        ("unclean_election__4.1.1__trace", "0.10.2.2", "truncate_to_high_watermark"),
        # Unfenced, its follower fetched on under a leader epoch that it had not heard of.
        ("chaos__1.1.1__seed39__trace", "2.1.0", "fetch_admission"),
    ],
)
def test_other_rules_are_told_from_ones_own(name: str, release: str, rule: str) -> None:
    found = judged(events(name), release)

    assert found.verdict == "VIOLATED"
    assert found.rule == rule


def test_the_warning_names_both_releases() -> None:
    imported = import_evidence([INCIDENTS / TRACED[0]], kafka_version="4.1.1")
    described = [e.fact for e in imported.events() if isinstance(e.fact, PartitionDescribed)]

    assert {d.kafka_version for d in described} == {"4.1.1"}
    assert any("4.1.1" in n and "1.1.1" in n and "warning" in n for n in imported.notes)
