"""Every traced incident judged by the rules of every generation, told by `--kafka`.

By its own release a trace has no finding. By another one whose flags are the same it has none
either; where a finding is made, it names the rule in which the two releases differ.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.ground.events import Event, PartitionDescribed
from replication.protocol.ground.versions import GENERATIONS, behaviour
from replication.protocol.judgement.bounded import fold_all
from replication.protocol.rules import RULES

INCIDENTS = Path(__file__).parent.parent / "incidents"
TRACED = sorted(p.name for p in INCIDENTS.glob("*__trace"))
RELEASES = sorted({*GENERATIONS.values(), "0.10.2.2", "1.1.1", "2.8.2", "3.9.1", "4.1.1", "4.3.0"})


@cache
def events(name: str) -> tuple[Event, ...]:
    return tuple(import_evidence([INCIDENTS / name]).events())


def under(event: Event, release: str | None) -> Event:
    """The event as `--kafka` gives it."""
    fact = event.fact
    if release is None or not isinstance(fact, PartitionDescribed):
        return event
    told = replace(fact, kafka_version=release, inter_broker_version=None)
    return replace(event, fact=told)


@cache
def judged(name: str, release: str | None) -> dict[str, str]:
    """Verdict and reason of version_conformance, the worst of the incident's partitions."""
    found = [
        v
        for f in fold_all(under(e, release) for e in events(name))
        for v in f.answer.verdicts
        if v["invariant"] == "version_conformance"
    ]
    order = ("VIOLATED", "HOLDS", "UNKNOWN")
    return min(found, key=lambda v: order.index(v["verdict"]))


@pytest.mark.parametrize("name", TRACED)
def test_every_release_holds_or_names_the_rule(name: str) -> None:
    own = name.split("__")[1]
    assert judged(name, None)["verdict"] == "HOLDS"
    for release in RELEASES:
        verdict = judged(name, release)
        if behaviour(release).flags == behaviour(own).flags:
            assert verdict["verdict"] == "HOLDS", (release, verdict["reason"])
        if verdict["verdict"] == "VIOLATED":
            assert any(rule.__name__ in verdict["reason"] for rule in RULES), verdict["reason"]


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
    verdict = judged(name, release)

    assert verdict["verdict"] == "VIOLATED"
    assert rule in verdict["reason"]


def test_the_warning_names_both_releases() -> None:
    imported = import_evidence([INCIDENTS / TRACED[0]], kafka_version="4.1.1")
    described = [e.fact for e in imported.events() if isinstance(e.fact, PartitionDescribed)]

    assert {d.kafka_version for d in described} == {"4.1.1"}
    assert any("4.1.1" in n and "1.1.1" in n and "warning" in n for n in imported.notes)
