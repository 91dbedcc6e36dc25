"""`whatif` against the machine's truth, on captured incidents, and its command line."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from replication.cli import main
from replication.foresight.interventions import parsed
from replication.foresight.whatif import Column, Verdict, ask, exit_status
from replication.protocol.ground.events import LeadershipRecorded, PartitionDescribed
from tests.docs.test_answer_schema import closed
from tests.foresight.fault_scripts import PAIRS, as_events, compare, ledger_of
from tests.protocol.stories import begun, tell

ROOT = Path(__file__).parents[2]
INCIDENTS = ROOT / "tests" / "incidents"
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "whatif.schema.json").read_text("utf-8"))
UNCLEAN, KIP_101 = "unclean_election__2.8.2", "kip101_scenario_1__0.10.2.2__loss_only"
ACKS_1 = "acks1_loss__3.9.1"


def asked(incident: str, capsys: pytest.CaptureFixture[str], *sets: str) -> tuple[int, Any]:
    options = [part for each in sets for part in ("--set", each)]
    status = main(["whatif", "--format", "json", str(INCIDENTS / incident), *options])
    return status, json.loads(capsys.readouterr().out)


def test_no_pair_of_runs_is_foretold_wrongly() -> None:
    """More of it: `python -m tests.foresight.fault_scripts 200`."""
    score = compare(range(100, 112))
    assert not score.wrong, score.wrong[:3]
    counts = score.counts
    decided = counts["not_lost"] + counts["still_lost"]
    assert decided >= 5
    assert counts["depends"] <= decided
    assert len(PAIRS) == 8


@pytest.mark.parametrize(
    ("incident", "said", "answer"),
    [
        (UNCLEAN, "unclean.leader.election.enable=false", "not_lost"),
        (UNCLEAN, "acks=1", "still_lost"),
        (KIP_101, "kafka=1.1.1", "not_lost"),
        (KIP_101, "min.insync.replicas=2", "still_lost"),
        (ACKS_1, "acks=all", "not_lost"),
        (ACKS_1, "min.insync.replicas=2", "still_lost"),
    ],
)
def test_captured_incidents(
    incident: str, said: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """KIP-101 under 1.1.1 is what the laboratory's control run of that script kept."""
    status, told = asked(incident, capsys, said)
    assert [cell["answer"] for row in told["losses"] for cell in row["if"]] == [answer]
    assert status == (0 if answer == "not_lost" else 1)


def test_the_price_stands_beside_the_benefit(capsys: pytest.CaptureFixture[str]) -> None:
    _, told = asked(UNCLEAN, capsys, "unclean.leader.election.enable=false")
    cell = told["losses"][0]["if"][0]
    assert cell["leaderless_ms"][0] > cell["was_leaderless_ms"][1] > 0
    _, told = asked(ACKS_1, capsys, "acks=all")
    cell = told["losses"][0]["if"][0]
    assert cell["answered"] is False
    assert cell["records_refused"] == [12, 12]


def test_every_field_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    _, told = asked(KIP_101, capsys, "kafka=1.1.1", "election.7=no,restart.2=no")
    validator = jsonschema.Draft202012Validator(closed(SCHEMA))
    wrong = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(told)]
    assert wrong == [], "add what is new to docs/whatif.schema.json"


@pytest.mark.parametrize("incident", [UNCLEAN, "healthy_rolling_restart__4.3.0"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_without_an_intervention_it_is_todays_verdict(
    incident: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(INCIDENTS / incident)
    status = main(["diagnose", path, "--format", form])
    said = capsys.readouterr().out
    assert main(["whatif", path, "--format", form]) == status
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("said", "because"),
    [
        ("election.3=no", "nobody forced it, the setting did"),
        ("election.1=no", "nothing tells of an unclean election"),
        ("restart.7=no", "broker 7 has no replica here"),
        ("replication.factor=1", "2 to 7 can be asked about"),
    ],
)
def test_what_was_not_so_is_not_told_otherwise(
    said: str, because: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, told = asked(UNCLEAN, capsys, said)
    cell = told["losses"][0]["if"][0]
    assert (status, cell["answer"]) == (3, "not_told")
    assert because in cell["because"]


def test_a_forced_election_that_nobody_forces() -> None:
    """The setting forbids unclean elections, and somebody has one made: without it nothing is
    lost, and nobody leads until the last of the ISR is back."""
    story = begun("given isr=A,B kafka=3.9.1 controller=kraft unclean=no", "AB")
    tell(
        story, "isr remove=B", "produce A r0 acks=all", "crash A kind=process", "fence A",
        "elect cause=unclean", "start A", "fetch A", "fetch A",
    )  # fmt: skip
    events = as_events(story.world, 1)
    losses = ledger_of(events)
    assert len(losses) == 1
    columns = ask(events, losses, [parsed("election.2=no"), parsed("acks=all")])
    assert [c.verdicts[0].answer for c in columns] == ["not_lost", "still_lost"]
    # Had the setting been changed for it, nobody would have forced it.
    place = next(n for n, e in enumerate(events) if isinstance(e.fact, LeadershipRecorded)) + 1
    changed = replace(events[place], fact=PartitionDescribed(unclean_leader_election=True))
    unclean = "unclean.leader.election.enable"
    (column,) = ask(
        [*events[:place], changed, *events[place:]], losses, [parsed(f"{unclean}=false")]
    )
    assert (column.verdicts[0].answer, unclean in str(column.verdicts[0].because)) == (
        "not_told", True,
    )  # fmt: skip


def test_what_cannot_be_told_again_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["whatif", str(INCIDENTS / UNCLEAN), "--set", "kafka=4.1.0,controller=zookeeper"]) == 3
    )
    assert "Kafka 4.1.0 has no ZooKeeper mode" in capsys.readouterr().out


def test_the_table_for_a_postmortem(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(INCIDENTS / ACKS_1)
    assert main(["whatif", path, "--set", "acks=all", "--set", "min.insync.replicas=2"]) == 0
    head, row, *rest = capsys.readouterr().out.splitlines()
    assert head.split() == ["loss", "acks=all", "min.insync.replicas=2"]
    assert row.split()[-4:] == ["NOT", "LOST", "STILL", "LOST"]
    assert any("12 records fewer would have been answered for" in line for line in rest)
    # It had that setting already: nothing can come of it.
    assert "min.insync.replicas=2:" in rest


def test_what_was_so_already_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    sets = ("min.insync.replicas=1", "acks=all", "acks=1", "restart.1=no")
    _, told = asked(UNCLEAN, capsys, *sets)
    cells = {cell["set"]: cell["as_it_was"] for cell in told["losses"][0]["if"]}
    assert cells == {
        "min.insync.replicas=1": True, "acks=all": True, "acks=1": False, "restart.1=no": False,
    }  # fmt: skip
    main(["whatif", str(INCIDENTS / UNCLEAN), "--set", "acks=all"])
    assert "\nacks=all (as it was):\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "said",
    [
        "min.insync.replicas",
        "min.insync.replicas=0",
        "acks=2",
        "colour=red",
        "restart.2=yes",
        "a=b,",
    ],
)
def test_bad_input_is_said(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", str(INCIDENTS / ACKS_1), "--set", said]) == 2
    assert "--set" in capsys.readouterr().err
    with pytest.raises(ValueError, match="--set"):
        parsed(said)


def test_where_nothing_can_be_told_it_is_said_why_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["whatif", str(INCIDENTS / UNCLEAN), "--set", "restart.7=no", "--set", "election.3=no"])
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "whatif can tell nothing of this incident:"
    assert sum("broker 7 has no replica here" in line for line in told) == 1
    assert any("preflight" in line for line in told)
    assert "What prevents such a loss: replication-analyzer explain unclean_election" in told


@pytest.mark.parametrize(
    ("undecided", "answer", "status"),
    [(0, None, 0), (1, None, 3), (0, "not_lost", 0), (1, "not_lost", 3), (1, "still_lost", 1)],
)
def test_undecided_partitions_hide_no_loss(undecided: int, answer: str | None, status: int) -> None:
    columns = [] if answer is None else [Column(parsed("acks=all"), [Verdict(answer)])]
    losses = [({}, [{}], columns)] if columns else []
    assert exit_status(losses, undecided) == status
