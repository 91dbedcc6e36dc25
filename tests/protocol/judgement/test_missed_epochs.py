"""A leader that missed an epoch of another one: a warning, and only where it matters."""

from dataclasses import replace
from pathlib import Path

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.ground import events as ev
from replication.protocol.judgement.bounded import fold_all
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.missed_epochs import KIND
from tests.protocol.judgement.told import told

AGAIN = ev.BecameLeader(1, 2, 11, 10, 4, previous_leader_epoch=0)


def recorded(leader: int, leader_epoch: int, *isr: int) -> ev.Fact:
    kind = "initial" if leader_epoch == 0 else "clean"
    return ev.LeadershipRecorded(leader, leader_epoch, isr, 2 * leader_epoch, kind, (1, 2, 3))


def warnings(*facts: ev.Fact) -> list[tuple[str, str]]:
    known = [ev.PartitionDescribed((1, 2, 3), 1, False, "delete", "4.3.0"), recorded(1, 0, 1, 2, 3)]
    found = answer(told([*known, ev.BecameLeader(1, 0, 0, 0), *facts])).findings
    return [(f["kind"], f["severity"]) for f in found if "kind" in f]


MISSED = [(KIND, "warning")]


def test_an_epoch_of_another_leader_was_missed() -> None:
    assert warnings(recorded(3, 1, 1, 2, 3), recorded(1, 2, 1, 2, 3), AGAIN) == MISSED
    # That broker 3 led is told by its own line as well.
    assert warnings(ev.BecameLeader(3, 1, 10, 10), recorded(1, 2, 1, 2, 3), AGAIN) == MISSED


@pytest.mark.parametrize(
    "facts",
    [
        (recorded(3, 1, 1, 2, 3), recorded(1, 2, 1), AGAIN),
        (recorded(1, 1, 1, 2, 3), recorded(1, 2, 1, 2, 3), AGAIN),
        (recorded(3, 1, 1, 2, 3), recorded(1, 2, 1, 2, 3), replace(AGAIN, log_end_offset=10)),
        (recorded(3, 1, 1, 2), recorded(1, 2, 1, 2), replace(AGAIN, previous_leader_epoch=None)),
        (recorded(1, 2, 1, 2, 3), replace(AGAIN, previous_leader_epoch=1)),
    ],
    ids=["alone", "its own", "all committed", "followed", "none missed"],
)
def test_nothing_rests_on_stale_ends(facts: tuple[ev.Fact, ...]) -> None:
    assert warnings(*facts) == []


LINES = {
    "3.6": "adding replicas [] and removing replicas [] . Previous leader Some({by}) and previous "
    "leader epoch was {number}.",
    "2.8": "addingReplicas [] removingReplicas []. Previous leader epoch was {number}.",
}


def leads(
    second: int, broker: int, leader_epoch: int, end: int, high_watermark: int, before: str
) -> str:
    return (
        f"[2026-11-22 10:00:{second:02},000] INFO [Broker id={broker}] Leader t-0 starts at leader "
        f"epoch {leader_epoch} from offset {end} with high watermark {high_watermark}, "
        f"ISR [1,2,3], {before} (state.change.logger)\n"
    )


@pytest.mark.parametrize("release", LINES)
def test_it_is_read_off_the_lines_of_leaders(release: str, tmp_path: Path) -> None:
    """Up to 3.5 the line does not say who led before; the broker's own line of then does."""
    line = LINES[release]
    first, again = line.format(by=-1, number=-1), line.format(by=1, number=0)
    for broker, text in (
        (1, leads(1, 1, 0, 0, 0, first) + leads(9, 1, 2, 11, 10, again)),
        (3, leads(5, 3, 1, 10, 10, line.format(by=1, number=0))),
    ):
        folder = tmp_path / f"broker-{broker}"
        folder.mkdir()
        (folder / "state-change.log").write_text(text)
    (folded,) = fold_all(import_evidence([tmp_path]).events())
    findings = [f for f in answer(folded.state).findings if "kind" in f]
    assert [f["kind"] for f in findings] == ["leader_missed_epoch"]
    assert "broker 3 led epoch 1" in findings[0]["summary"]
    read_in = {Path(place["path"]).parent.name for place in findings[0]["source"]}
    assert read_in == {"broker-1", "broker-3"}
