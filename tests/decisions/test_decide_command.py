"""`decide` from the command line: its first block, its JSON, its exit status; who points there."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from replication.cli import main
from replication.evidence.event_dumps import write_events
from replication.protocol.ground import events as ev
from replication.reports.words import what_now_text
from tests.decisions.told_stories import OLDER_EPOCH_COMMITTED, story
from tests.docs.test_answer_schema import closed
from tests.protocol.default_evidence import evidence, left_by

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "decisions.schema.json").read_text("utf-8"))
INCIDENTS = ROOT / "tests" / "incidents"
FORK, HEALTHY = "same_epoch_power_loss__1.1.1", "healthy_rolling_restart__4.3.0"
GONE, UNPROMISED = "last_replica_standing__4.1.1__elr_off", "acks1_loss__3.9.1"
ANEW = "not_loss_traps__4.3.0__topic_recreated"
GONE_WITH_A = frozenset(["directory 1"])
POINTER = "replication-analyzer decide PATH"


def asked(incident: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    status = main(["decide", *options, str(INCIDENTS / incident)])
    return status, capsys.readouterr().out


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    ("incident", "advice", "status"),
    [
        (FORK, {"show_both"}, 1),
        (HEALTHY, {"any_order"}, 0),
        (GONE, {"any_order"}, 1),
        (UNPROMISED, {"any_order"}, 0),
        (ANEW, {"any_order"}, 0),
    ],
)
def test_every_field_is_described(
    incident: str, advice: set[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out = asked(incident, capsys, "--format", "json")
    answer = json.loads(out)
    validator = jsonschema.Draft202012Validator(closed(SCHEMA))
    wrong = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(answer)]
    assert wrong == [], "add what is new to docs/decisions.schema.json"
    assert {row["advice"] for row in answer["partitions"]} == advice
    assert found == status
    # A start deletes what is left of a deleted topic: two folders are named before any start.
    assert [c["broker"] for c in answer["copy_first"]] == ([1, 2] if incident == ANEW else [])
    _, text = asked(incident, capsys)
    assert ("Before any start copy" in text.splitlines()[1]) == (incident == ANEW)


def test_who_is_fenced_at_the_end_of_the_metadata_log_is_down(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of one broker's folder alone: its own copy of the metadata log tells of the others."""
    _, out = asked(f"{HEALTHY}/broker-1", capsys)
    assert "broker 2 (is down, is elected cleanly, its log is not here)" in out
    assert "Nothing tells that" not in out


def test_two_forks_in_one_epoch_are_yours_to_choose(capsys: pytest.CaptureFixture[str]) -> None:
    """Both brokers answered for a record at offset 9, and neither cuts its own: ZooKeeper, 1.1."""
    _, out = asked(FORK, capsys)
    head, _, rest = out.partition("\n\n")
    assert head.splitlines()[0] == "Do now"
    assert 1 <= len(head.splitlines()[1:]) <= 4
    assert "choose the leader of t-0, and call this again with it: --elect 1" in head
    assert "broker 2 still has offset 9 and does not cut that: the logs then differ" in rest
    assert rest.count("cp -a LOG_DIR/t-0") == 2
    assert "undo:  rm -r" in rest
    assert rest.count("       tried: ") == 2


def test_records_that_are_gone_are_told_apart_from_what_a_choice_costs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out = asked(GONE, capsys)
    assert "ANY ORDER: whichever broker leads, it loses nothing more that was promised." in out
    assert "Lost whoever leads, since no replica has them any more: offsets 21..29" in out


def test_from_evidence_to_the_election_of_a_survivor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last leader's disk is gone; of the two that are left the one with the older last epoch
    has what acks=all promised."""
    told = evidence(left_by(story(*OLDER_EPOCH_COMMITTED).world, random.Random(1)), GONE_WITH_A)
    events = [
        ev.Event(str(n), "e", "", "orders", "", 0, n, fact, None) for n, fact in enumerate(told)
    ]
    write_events(tmp_path / "events.jsonl", events)
    assert main(["decide", str(tmp_path / "events.jsonl")]) == 0
    out = capsys.readouterr().out
    assert "ELECT 3: it loses nothing that was promised." in out
    elects = "kafka-leader-election.sh --bootstrap-server B --election-type unclean"
    assert f"{elects} --topic orders --partition 0" in out
    lines = out.splitlines()
    assert [x.split(".")[0].strip() for x in lines if x.strip()[:2] in ("1.", "2.", "3.")] == [
        "1", "2", "3",
    ]  # fmt: skip
    # It is stopped before, and started after, whatever could be elected in its place.
    assert out.index("Stop broker 2") < out.index("Elect broker 3") < out.index("Start broker 2")
    assert main(["decide", "--format", "json", str(tmp_path / "events.jsonl")]) == 0
    answer = json.loads(capsys.readouterr().out)
    jsonschema.validate(answer, closed(SCHEMA))
    (row,) = answer["partitions"]
    assert (row["advice"], row["replica"], row["newest_epoch_then_longest_log"]) == (
        "elect_uncleanly", 3, 2,
    )  # fmt: skip
    assert row["proof"] == {"leader_epoch": 2, "isr": [1, 3], "min_insync_replicas": 2}


@pytest.mark.parametrize("incident", [FORK, GONE])
def test_diagnose_points_there(incident: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(INCIDENTS / incident)
    main(["diagnose", path])
    last = capsys.readouterr().out.rstrip().splitlines()[-2:]
    assert any(line.endswith(POINTER.replace("PATH", path)) for line in last)


@pytest.mark.parametrize(
    ("changed", "points"),
    [
        ({}, False),
        ({"losses": [{"status": "recovered"}]}, False),
        ({"losses": [{"status": "recoverable", "surviving_copies": []}]}, True),
        ({"divergences": [{}]}, True),
        ({"partitions": [{"leader": None, "isr": [], "elections": [{}]}]}, True),
        ({"partitions": [{"leader": None, "elections": []}]}, False),
    ],
)
def test_diagnose_points_there_only_where_something_is_to_be_decided(
    changed: dict[str, Any], *, points: bool
) -> None:
    answer = {"losses": [], "divergences": [], "partitions": [{"leader": 1, "elections": [{}]}]}
    assert (POINTER in "".join(what_now_text({**answer, **changed}))) is points


def test_who_leads_comes_before_the_records_where_nobody_leads() -> None:
    loss = {"status": "recoverable", "surviving_copies": ["a"]}
    answer = {
        "losses": [loss], "divergences": [], "partitions": [{"leader": 1, "elections": [{}]}],
    }  # fmt: skip
    _, first, second = what_now_text(answer)
    assert first.startswith("The records that a copy still has: ")
    assert POINTER in second
    _, first, second = what_now_text(
        {**answer, "partitions": [{"leader": None, "isr": [], "elections": [{}]}]}
    )
    assert POINTER in first
    assert second.startswith("After the election, the records that a copy still has: ")


def left_by_three_disks(tmp_path: Path) -> str:
    """All that default log levels and directories leave of the story."""
    told = evidence(left_by(story(*OLDER_EPOCH_COMMITTED).world, random.Random(1)), frozenset())
    events = [
        ev.Event(str(n), "e", "", "orders", "", 0, n, fact, None) for n, fact in enumerate(told)
    ]
    write_events(tmp_path / "events.jsonl", events)
    return str(tmp_path / "events.jsonl")


def test_another_replica_than_the_one_advised_has_a_plan_and_its_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The newest leader epoch's: it is not refused, and what it costs is said first."""
    path = left_by_three_disks(tmp_path)
    assert main(["decide", path]) == 0
    assert "START 1: it loses nothing" in capsys.readouterr().out
    assert main(["decide", path, "--down", "all", "--elect", "2"]) == 1
    out = capsys.readouterr().out
    assert "ELECT 2, as you asked: it loses records that were promised" in out
    assert out.index("Copy the partition's directory of broker 1") < out.index("Elect broker 2")
    assert main(["decide", path, "--down", "all", "--elect", "2", "--format", "json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["partitions"]
    assert (row["as_asked"], row["replica"], row["costs"]) == (True, 2, "promised")
    # Nobody has to be stopped: all of them are down.
    assert "stop" not in {step["action"] for step in row["steps"]}


def test_who_is_no_replica_cannot_be_elected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["decide", left_by_three_disks(tmp_path), "--elect", "7"]) == 2
    assert "has a replica on broker 7" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--down", "--away"])
def test_a_broker_that_nothing_names_is_a_typing_error(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["decide", left_by_three_disks(tmp_path), option, "1,7"]) == 2
    assert f"{option}: no broker 7 in this evidence; there are 1, 2, 3" in capsys.readouterr().err


@pytest.mark.parametrize("told", ["one", "1;2", ""])
def test_brokers_that_are_down_are_numbers(told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["decide", "--down", told])
    assert "name brokers by their numbers" in capsys.readouterr().err


def test_without_evidence_the_call_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decide"]) == 2
    assert "no PATH given" in capsys.readouterr().err


UNCLEAN = (
    "[2025-01-01 00:00:00,000] INFO [QuorumController id=3000] UNCLEAN partition change for t-0 "
    "with topic ID rl58HvsoSpSSjs2LmuACUA: isr: [1] -> [2], leader: 1 -> 2, leaderEpoch: 3 -> 4, "
    "partitionEpoch: 5 -> 6 (org.apache.kafka.controller.ReplicationControlManager)\n"
)


def test_where_logs_are_missing_it_does_not_say_that_nothing_is_to_be_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "controller.log").write_text(UNCLEAN)
    assert main(["decide", str(tmp_path)]) == 3
    out = capsys.readouterr().out
    assert out.startswith(
        "CANNOT TELL of 1 partition whether another replica has a promised record"
    )
    assert "kafka-topics --describe" in out
    assert main(["decide", str(tmp_path), "--format", "json"]) == 3
    (row,) = json.loads(capsys.readouterr().out)["partitions_not_known"]
    assert (row["leader"], row["replicas_known"], row["replicas_not_seen"]) == (2, False, [2])


def test_a_log_that_nobody_could_read_is_not_one_without_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Broker 2 alone has offset 10, of which broker 1's log tells nothing."""
    for number in (1, 2):
        disk = INCIDENTS / "kip101_scenario_1__0.10.2.2__loss_only" / f"broker-{number}"
        shutil.copytree(disk / "disk-final", tmp_path / str(number))
    asked_now = ["decide", "--format=json", "--down=all", str(tmp_path)]
    assert main(asked_now) == 0
    (row,) = json.loads(capsys.readouterr().out)["partitions"]
    assert (row["advice"], row["replica"]) == ("start", 2)
    (segment,) = (tmp_path / "2" / "t-0").glob("*.log")
    segment.write_text("permission denied\n")
    assert main(asked_now) == 3
    (row,) = json.loads(capsys.readouterr().out)["partitions"]
    assert row["advice"] not in ("start", "any_order")
    (of_1,) = (c for c in row["candidates"] if c["replica"] == 1)
    assert of_1["lost"]["committed"]["perhaps"]


def test_what_may_be_lost_already_is_said_whoever_leads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the last copies alone: no choice costs more, and `diagnose` cannot tell what is gone."""
    for number in (1, 2, 3):
        disk = INCIDENTS / "unclean_election__4.1.1" / f"broker-{number}" / "disk-final"
        shutil.copytree(disk, tmp_path / str(number))
    assert main(["diagnose", str(tmp_path)]) == 3
    capsys.readouterr()
    main(["decide", "--down=all", str(tmp_path)])
    said = capsys.readouterr().out
    assert "it loses nothing more that was promised" in said
    assert "Perhaps lost already, whoever leads: any record from offset 20 on" in said


def test_who_is_not_waited_for_may_have_what_is_to_be_copied(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, said = asked("kip101_scenario_1__0.10.2.2__loss_only", capsys, "--away", "2")
    assert status == 1
    assert "Copy the directory of broker 2, too, if its disk can be had" in said
    assert "The plan copies no directory of broker 2" not in said
    assert "Waiting for broker 1 is best" not in said
