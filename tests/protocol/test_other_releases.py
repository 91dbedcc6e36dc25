"""Traced incidents judged by the rules of another release, told by `--kafka`.

That each rule finds the step that contradicts it is held by `tests.protocol.planted`, and each
condition of the rules by `tests.protocol.mutants`.
"""

from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import fold_all

INCIDENTS = Path(__file__).parent.parent / "incidents"


@pytest.mark.parametrize(
    ("name", "release", "rule"),
    [
        ("acks1_loss__1.1.1__trace", "0.10.2.2", "truncate_to_high_watermark"),
        ("unclean_election__4.1.1__trace", "0.10.2.2", "truncate_to_high_watermark"),
        # Unfenced, its follower fetched on under a leader epoch that it had not heard of.
        ("chaos__1.1.1__seed39__trace", "2.1.0", "fetch_admission"),
    ],
)
def test_other_rules_are_told_from_ones_own_and_both_releases_are_named(
    name: str, release: str, rule: str
) -> None:
    imported = import_evidence([INCIDENTS / name], kafka_version=release)
    verdicts = [v for p in fold_all(imported.events()) for v in p.answer.verdicts]
    refuted = [
        v["reason"]
        for v in verdicts
        if (v["invariant"], v["verdict"]) == ("version_conformance", "VIOLATED")
    ]

    assert any(f"{rule} gives" in reason for reason in refuted)
    own = name.split("__")[1]
    assert any(own in n and release in n and "warning" in n for n in imported.notes)
