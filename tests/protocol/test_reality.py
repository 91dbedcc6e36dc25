"""The fold foretells by the rules what real brokers did, every change of it.

What counts as a change: a high watermark that moved, a fetch further on (where its follower's log
ends by its own lines), a cut.
"""

from pathlib import Path

import pytest

from benchmarks.core import beginning
from replication.evidence.importer import import_evidence
from replication.protocol.folding.conformance.unforetold import misses, unforetold
from replication.protocol.ground import events as ev
from replication.protocol.judgement.bounded import fold_all
from tests.protocol.judgement.told import told, traced

INCIDENTS = Path(__file__).parent.parent / "incidents"
TRACED = sorted(p.name for p in INCIDENTS.glob("*__trace"))


@pytest.mark.parametrize("name", TRACED)
def test_what_real_brokers_did_is_foretold(name: str) -> None:
    partitions = fold_all(import_evidence([INCIDENTS / name]).events())
    verdicts = [v for p in partitions for v in p.answer.verdicts]

    assert sum(p.state.conformance.predicted for p in partitions) > 40
    assert [x for p in partitions for x in unforetold(p.state)] == []
    assert "VIOLATED" not in {
        v["verdict"] for v in verdicts if v["invariant"] == "version_conformance"
    }


def test_too_small_an_isr_keeps_the_high_watermark_where_it_is() -> None:
    """From 4.1 on it waits for min.insync.replicas: that it stands still is what the rule gives."""
    facts: list[ev.Fact] = [
        *traced("4.1.1", "kraft", min_insync=2),
        ev.LeadershipRecorded(1, 0, (1,), 1),
        ev.LeaderAppended(1, 0, 5, 0),
    ]
    for follower in (2, 3):
        facts += [ev.FetchRequested(follower, 1, 0), ev.FollowerAppended(follower, 0, 5)]
    facts += [ev.FetchRequested(follower, 1, 5) for follower in (2, 3, 2)]
    state = told(facts, "traced")

    assert state.replicas[1].remote_log_end_offsets == {2: 5, 3: 5}
    assert state.replicas[1].high_watermark == 0
    assert [x.summary for x in state.conformance.open] == []
    assert unforetold(state) == []


def test_each_change_that_was_not_foretold_is_named_with_its_reason() -> None:
    facts = [
        *beginning(),
        ev.LeaderAppended(1, 0, 5, 0),
        ev.FollowerAppended(2, 0, 5, 0),
        ev.HighWatermarkAdvanced(2, 3),
    ]
    state = told(facts, "traced")
    [(event_id, what, reason)] = misses(state)

    assert (event_id, reason) == (str(len(facts) - 1), "leaders_line_to_come")
    assert "high watermark" in what
    assert [(x.reason, x.changes) for x in unforetold(state)] == [(reason, 1)]
