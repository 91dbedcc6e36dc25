"""What somebody is told to do first: a few lines, and only where something is to be done."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from replication.cli import main
from replication.reports.do_now import do_now, do_now_html, do_now_text

INCIDENTS = Path(__file__).parents[1] / "incidents"

QUIET: dict[str, Any] = {
    "inventory": {"brokers": [{"broker": 1}], "files": []},
    "losses": [],
    "divergences": [],
    "at_risk": [],
    "partitions": [{"topic": "t", "partition": 0, "leader": 1, "elections": [{}]}],
}
PLACE = {"cluster_id": "c", "topic": "t", "topic_id": None, "partition": 0}
LOSS = {
    **PLACE,
    "status": "recoverable",
    "tier": "acknowledged_by_isr",
    "contract": "broken",
    "first_offset": 10,
    "end_offset": 12,
    "records": 2,
    "surviving_copies": [{"replica": 2, "destroyed_when": "broker 2 follows broker 1"}],
}
DANGER = {
    **PLACE,
    "over": False,
    "first_offset": 0,
    "end_offset": 10,
    "failures": ["broker 1 comes back with an emptied directory"],
}
OTHER = {**DANGER, "failures": ["broker 2 comes back with an emptied directory"]}


def test_nothing_to_do_is_not_told() -> None:
    assert do_now_text(QUIET) == []
    assert do_now_html(QUIET) == ""
    assert do_now({**QUIET, "at_risk": [{**DANGER, "over": True}]}) == []
    assert do_now({**QUIET, "losses": [{**LOSS, "status": "recovered"}]}) == []


def test_four_lines_say_what_to_keep_what_is_in_danger_who_has_it_and_where_the_plan_is() -> None:
    nobody = [{"topic": "t", "partition": 0, "leader": None, "isr": [], "elections": [{}]}]
    answer = {**QUIET, "losses": [LOSS], "at_risk": [DANGER, OTHER], "partitions": nobody}
    assert do_now(answer) == [
        "Restart nothing before it is copied: broker 2's copy of t-0 offsets 10..11 is destroyed "
        "when broker 2 follows broker 1.",
        "One failure away: t-0 offsets 0..9, if broker 1 comes back with an emptied directory "
        "(and 1 more danger).",
        "Which copies still have it: replication-analyzer trace PATH --offset t-0:10",
        "The plan, whom to start first: replication-analyzer decide PATH",
    ]


def test_what_a_start_deletes_of_a_deleted_topic_is_copied_first() -> None:
    folder = {
        "broker": 1,
        "kind": "deleted",
        "path": "x-delete",
        "first_offset": 0,
        "end_offset": 9,
    }
    row = {**PLACE, "why": "topic_deleted", "copies": [folder, {**folder, "kind": "stray"}]}
    told = do_now({**QUIET, "removed": [row]})
    assert told[0].startswith("Before any start copy what is left of the deleted topic t: x-delete")
    assert told[1].endswith("recover PATH --out FOLDER --deleted-topics")
    # A -stray folder stays; of what no folder has there is nothing to take.
    assert len(do_now({**QUIET, "removed": [{**row, "copies": row["copies"][1:]}]})) == 1
    assert do_now({**QUIET, "removed": [{**row, "copies": []}]}) == []


def test_a_danger_alone_needs_no_plan_and_no_leader_needs_one() -> None:
    assert [line.split(":")[0] for line in do_now({**QUIET, "at_risk": [DANGER]})] == [
        "One failure away"
    ]
    nobody = [{"topic": "t", "partition": 0, "leader": None, "isr": [], "elections": [{}]}]
    told = do_now({**QUIET, "partitions": nobody})
    assert told[0] == "Start no broker before you have seen the plan: t-0 has no leader."
    assert len(told) == 2
    # That none is told is not that there is none.
    led = {"elections": [{"leader": 1}], "replicas": [{"replica": 1, "stopped": True}]}
    untold = [{**nobody[0], **led, "isr": None}]
    told = do_now({**QUIET, "partitions": untold})
    assert told[0] == "Start no broker before you have seen the plan: no leader of t-0 is known."
    down = [{**untold[0], "partition": n, "leader": 1, "isr": [1]} for n in (1, 2)]
    told = do_now({**QUIET, "partitions": [*down, *untold]})
    assert told[0].endswith("the leader of t-1 (and 1 more) is down; no leader of t-0 is known.")


def test_a_leader_whose_own_lines_go_on_needs_no_plan() -> None:
    """Without any record of the controller its broker's log tells that it leads."""
    led = {**QUIET["partitions"][0], "leader": None, "isr": None, "elections": [{"leader": 1}]}
    for stopped, plan in ((False, 0), (None, 2), (True, 2)):
        rows = [{"replica": 1, "stopped": stopped}]
        assert len(do_now({**QUIET, "partitions": [{**led, "replicas": rows}]})) == plan
    # Of a leader that others' lines alone name nothing tells that it runs.
    others = [{"replica": 2, "stopped": False}]
    assert len(do_now({**QUIET, "partitions": [{**led, "replicas": others}]})) == 2


# All copies are missing, or only those of the brokers' end.
MISSING = [(i.name, "disk*") for i in sorted(INCIDENTS.iterdir()) if i.is_dir()]
MISSING += [
    (n, "disk-final") for n, _ in MISSING if len([*INCIDENTS.glob(f"{n}/broker-1/disk*")]) > 1
]


@pytest.mark.parametrize(("name", "missing"), MISSING)
def test_without_copies_of_the_end_no_stopped_broker_leads_and_a_plan_is_where_one_is_said_to_be(
    name: str, missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs_alone = ("metadata*", "acks*") if missing == "disk*" else ()
    left_out = shutil.ignore_patterns(missing, "*.json", *logs_alone)
    shutil.copytree(INCIDENTS / name, tmp_path, ignore=left_out, dirs_exist_ok=True)
    down = {
        int(log.parent.name.removeprefix("broker-"))
        for log in tmp_path.glob("broker-*/server.log")
        if any("shut down completed" in line for line in log.read_text().splitlines()[-2:])
    }
    main(["diagnose", str(tmp_path), "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    main(["diagnose", str(tmp_path)])
    told = capsys.readouterr().out
    assert not [n for n in down if f"broker {n} leads" in told]
    stopped = {r["replica"] for p in answer["partitions"] for r in p["replicas"] if r["stopped"]}
    led = {p["leader"] for p in answer["partitions"] for r in p["replicas"]}
    assert down & led <= stopped
    main(["decide", str(tmp_path)])
    decided = capsys.readouterr().out.lower()
    assert "The plan, whom to start first" not in told or "nothing to decide" not in decided


def test_names_of_the_evidence_are_escaped_on_the_page() -> None:
    nobody = [{"topic": "<b>", "partition": 0, "leader": None, "isr": [], "elections": [{}]}]
    assert "&lt;b&gt;-0" in do_now_html({**QUIET, "partitions": nobody})


def test_of_what_no_copy_has_the_owner_is_looked_for() -> None:
    gone = {**LOSS, "status": "lost", "surviving_copies": [], "first_offset": 5}
    told = do_now({**QUIET, "losses": [gone]})
    assert (
        told[0] == "Whose it was, to send it again: replication-analyzer trace PATH --offset t-0:5"
    )
    gone |= {"finding_id": "f", "acknowledged_from": "10:00", "acknowledged_until": "10:02"}
    client = {"client": "p", "acks": "all", "records": 1}
    known = {"finding_id": "f", "by_client": [client], "first_keys": ["k"]}
    told = do_now({**QUIET, "losses": [gone], "loss_details": [known]})
    assert "recover PATH --out FOLDER (lost_records_keys.jsonl)" in told[0]
    # An empty list of keys is promised to nobody.
    others = [{**client, "client": f"p{n}"} for n in (10, 9, 2)]
    for clients, who in (
        ([client], "client p"),
        ([*others, client], "clients p, p2, p9 (and 1 more)"),
    ):
        unnamed = {**known, "first_keys": [], "by_client": clients}
        told = do_now({**QUIET, "losses": [gone], "loss_details": [unnamed]})
        assert told[0] == (
            "Whose it was, to send it again: the acknowledgement log names no keys; ask "
            f"{who} for what was sent and acknowledged from 10:00 to 10:02"
        )
    # One that a copy has is asked for first.
    assert "Which copies still have it" in "".join(do_now({**QUIET, "losses": [gone, LOSS]}))


def test_of_a_dump_of_events_no_command_is_named_that_finds_no_record() -> None:
    dump = {"brokers": [], "files": [{"kind": "event dump", "path": "a.jsonl"}]}
    of_tables = {name: value for name, value in QUIET.items() if name != "inventory"}
    for loss in (LOSS, {**LOSS, "status": "lost", "surviving_copies": []}):
        for answer in ({**QUIET, "inventory": dump}, of_tables):
            [line] = [line for line in do_now({**answer, "losses": [loss]}) if "trace" in line]
            assert "events hold no records" in line
            assert "trace PATH" not in line
        beside = {"brokers": [{"broker": 1}], "files": dump["files"]}
        assert "trace PATH --offset" in str(
            do_now({**QUIET, "losses": [loss], "inventory": beside})
        )
