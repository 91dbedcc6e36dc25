"""The laptop tool's answers to what is no evidence, and its exit statuses on what is."""

import argparse
import io
import json
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replication import cli
from replication.cli import main
from replication.command_line import _commands
from replication.protocol.ground.versions import NEWEST_KNOWN
from replication.quality import command as check_quality
from replication.reports.without_a_trace import NOT_KNOWN
from replication.spark import import_artifacts, incident_page, maintain, replay, stream, views
from tests.changed_evidence import changed_copy

INCIDENTS = Path(__file__).parent / "incidents"
LOST = INCIDENTS / "unclean_election__4.1.1"
LOG = (LOST / "broker-2" / "server.log").read_text()


OF_PARTITIONS = [
    "diagnose PATH",
    "import PATH --out OUT",
    "show PATH --topic-partition t-0",
    "explain 13ff94368ca89895 PATH",
    "recover PATH --out OUT",
    "trace PATH --offset t-0:7",
    "groups PATH",
    "decide PATH",
    "whatif PATH --set min.insync.replicas=2",
]


@pytest.mark.parametrize("call", OF_PARTITIONS)
@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "no evidence of a Kafka cluster found"),
        ({"x.log": "hello\nworld\n"}, "no evidence of a Kafka cluster found"),
        ({"server.log": LOG[:3000]}, "no topic partition found"),
    ],
    ids=["an empty folder", "junk lines", "a log cut before any partition"],
)
def test_what_is_no_evidence_is_refused_in_one_line(
    call: str,
    files: dict[str, str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    evidence, out = tmp_path / "evidence", tmp_path / "out.jsonl"
    evidence.mkdir()
    for name, text in files.items():
        (evidence / name).write_text(text)
    places = {"PATH": str(evidence), "OUT": str(out)}
    assert main([places.get(word, word) for word in call.split()]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not out.exists()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("diagnose PATH", "CANNOT TELL whether anything is lost in 1 of 1 partition"),
        ("decide PATH", "CANNOT TELL of 1 partition"),
        ("recover PATH --out OUT", "More may be lost than the ledger names in t-0"),
        ("groups PATH", "CANNOT TELL whether anything more is lost in 1 partition"),
        ("whatif PATH --set min.insync.replicas=2", "No loss is known, so none is told otherwise."),
    ],
)
def test_where_nothing_is_decided_no_command_says_that_nothing_is_lost(
    call: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each ends with 3; the last three ended with 0."""
    places = {"PATH": str(told_alone(tmp_path)), "OUT": str(tmp_path / "out")}
    assert main([places.get(word, word) for word in call.split()]) == 3
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    "call",
    [
        "diagnose PATH",
        "decide PATH",
        "recover PATH --out OUT",
        "groups PATH",
        "whatif PATH --set min.insync.replicas=2",
    ],
)
def test_no_command_is_surer_than_the_evidence_that_no_record_vanished(
    call: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of an incident that lost nine acks=all records, the directories alone: they agree."""
    evidence, lost = tmp_path / "e", INCIDENTS / "last_replica_standing__4.1.1__elr_off"
    for final in lost.glob("*/disk-final"):
        shutil.copytree(final, evidence / final.parent.name / "disk-final")
    places = {"PATH": str(evidence), "OUT": str(tmp_path / "out")}
    status = main([places.get(word, word) for word in call.split()])
    out = capsys.readouterr().out
    assert NOT_KNOWN in out.replace("Whether", "whether")
    assert f"replication-analyzer collect {evidence}" in out
    # A verdict under a named assumption is decided; `groups` lacks the coordinators' logs.
    assert status == (3 if call.startswith("groups") else 0)


def test_what_is_not_known_is_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evidence = str(told_alone(tmp_path))
    assert main(["show", evidence, "--topic-partition", "t-0"]) == 0
    assert capsys.readouterr().out == (
        "t-0 at the end: leader not known, leader epoch not known, ISR not known\n"
        "No replica's log is known: no log directory and no line tells of one.\n"
    )
    assert main(["trace", evidence, "--offset", "t-0:1"]) == 1
    assert "No copy of a log of t-0 is in this evidence" in capsys.readouterr().out


def told_alone(folder: Path) -> Path:
    """What a client was told of one partition, and nothing else."""
    told = {"client": "p", "topic": "t", "partition": 0, "offset": 0, "acks": "all"}
    row = {**told, "status": "acked", "ts": "2026-01-01T00:00:00Z"}
    path = folder / "acks.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return path


def test_a_topic_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out.jsonl")
    assert main(["import", str(LOST), "--topic", "nope", "--out", out]) == 2
    assert main(["diagnose", str(LOST), "--topic", "nope"]) == 2
    assert capsys.readouterr().err.count("no topic nope in this evidence") == 2


def test_several_topics_are_named_with_commas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is not there takes nothing from the others; of each that is, all is imported."""
    rows = []
    for number, topic in enumerate(("a", "b", "c")):
        told = {"client": "p", "topic": topic, "partition": 0, "offset": number, "acks": "all"}
        rows.append(json.dumps({**told, "status": "acked", "ts": "2026-01-01T00:00:00Z"}))
    (tmp_path / "acks.jsonl").write_text("\n".join(rows) + "\n")
    out = tmp_path / "out.jsonl"
    assert main(["import", str(tmp_path), "--topic", "a, c,nope", "--out", str(out)]) == 0
    topics = {json.loads(line)["topic"] for line in out.read_text().splitlines()}
    assert topics == {"a", "c"}
    assert main(["diagnose", str(tmp_path / "acks.jsonl"), "--topic", "y,x"]) == 2
    assert "no topic x, y in this evidence" in capsys.readouterr().err
    assert main(["diagnose", str(out), "--topic", "c", "--format", "json"]) == 3
    partitions = json.loads(capsys.readouterr().out)["partitions"]
    assert [p["topic"] for p in partitions] == ["c"]


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "1" * 20])
def test_a_number_of_processes_that_can_read_nothing_is_refused(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["diagnose", str(LOST), "--processes", number])
    assert ended.value.code == 2
    assert "expected a whole number from 1 on" in capsys.readouterr().err


def test_a_clock_bound_that_the_evidence_contradicts_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def an_hour_earlier(folder: Path) -> None:
        path = folder / "acks.jsonl"
        path.write_text(path.read_text().replace("T15:", "T14:"))

    folder = str(changed_copy(LOST.name, an_hour_earlier, tmp_path))
    assert main(["diagnose", folder]) == 1
    assert main(["diagnose", folder, "--clock-bound", "500"]) == 2
    assert "the clocks differ by more; declare a larger bound" in capsys.readouterr().err
    assert main(["diagnose", folder, "--clock-bound", "3700000"]) == 1


@pytest.mark.parametrize("incident", ["unclean_election__4.1.1", "healthy_rolling_restart__4.3.0"])
def test_a_dump_that_is_cut_off_anywhere_says_nothing_holds(
    incident: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "whole.jsonl"
    assert main(["import", str(INCIDENTS / incident), "--out", str(dump)]) == 0
    whole = dump.read_bytes()
    lines = whole.splitlines(keepends=True)
    for left in (1, len(lines) // 3, len(lines) // 2 + 4, len(lines) - 1):
        for more in (b"", lines[left][: len(lines[left]) // 2]):
            dump.write_bytes(b"".join(lines[:left]) + more)
            capsys.readouterr()
            status = main(["diagnose", str(dump)])
            said = capsys.readouterr().out
            assert status in (1, 3)
            assert "Nothing lost" not in said
            assert ("Not all of the evidence was read" in said) == bool(more)


def test_event_dumps_are_not_imported_again_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "events" / "one.jsonl"
    dump.parent.mkdir()
    assert main(["import", str(LOST), "--out", str(dump)]) == 0
    out = str(tmp_path / "out.jsonl")
    assert main(["import", str(dump), "--out", out]) == 2
    assert "hold events already" in capsys.readouterr().err
    assert main(["import", str(LOST), str(dump), "--out", out]) == 0
    assert f"{dump}: holds events already and was not imported" in capsys.readouterr().err
    assert main(["diagnose", str(dump)]) == 1


def test_incidents_of_one_cluster_are_told_apart_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    for name in ("april", "may"):
        out = str(folder / f"{name}.parquet")
        assert main(["import", str(LOST), "--out", out, "--incident", name]) == 0
    assert main(["diagnose", str(folder)]) == 2
    assert "of several incidents (april, may)" in capsys.readouterr().err
    assert main(["diagnose", str(folder), "--incident", "june"]) == 2
    assert "no incident june in the event dumps" in capsys.readouterr().err
    assert main(["diagnose", str(LOST), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["incident"] is None
    page = tmp_path / "page.html"
    may = ["diagnose", str(folder), "--incident", "may", "--format", "json", "--report", str(page)]
    assert main(may) == 1
    said = capsys.readouterr()
    assert "of other incidents (april) passed by" in said.err
    assert json.loads(said.out)["losses"] == told["losses"]
    assert json.loads(said.out)["incident"] == "may"
    assert "<p class=facts>incident may</p>" in page.read_text(encoding="utf-8")
    # Told by the events alone.
    assert main(["diagnose", str(folder / "april.parquet"), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["incident"] == "april"
    with pytest.raises(SystemExit):
        main(["import", str(LOST), "--out", str(folder / "x.jsonl"), "--incident", "a/b"])


@pytest.mark.parametrize(
    ("incident", "status"),
    [
        ("healthy_rolling_restart__4.3.0", 0),
        ("unclean_election__4.1.1", 1),
    ],
)
def test_the_exit_status_says_what_was_found(
    incident: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", str(INCIDENTS / incident), "--format", "json"]) == status
    answer = json.loads(capsys.readouterr().out)
    counts = answer["input"]
    assert counts["events"] == sum(
        counts[name] for name in ("applied", "duplicates", "quarantined", "held")
    )


def test_without_log_directories_the_status_is_undecided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "server.log").write_text(LOG)
    assert main(["diagnose", str(tmp_path)]) == 3
    assert "What would decide it" in capsys.readouterr().out


def test_import_makes_the_folder_of_its_dump(tmp_path: Path) -> None:
    """As the README has it: `--out events/incident.jsonl` on a machine without that folder."""
    out = tmp_path / "events" / "incident.jsonl"
    assert main(["import", str(INCIDENTS / "unclean_election__2.8.2"), "--out", str(out)]) == 0
    assert out.stat().st_size


PARSERS: dict[str, Callable[[], argparse.ArgumentParser]] = {
    "replication-analyzer": cli._parser,
    **{
        module.__name__: module.parser
        for module in (
            check_quality,
            import_artifacts,
            incident_page,
            maintain,
            replay,
            stream,
            views,
        )
    },
}


@pytest.mark.parametrize("command", PARSERS)
def test_every_flag_has_help(command: str) -> None:
    waiting = [PARSERS[command]()]
    silent = []
    while waiting:
        parser = waiting.pop()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()
            elif not action.help:
                silent.append(f"{parser.prog} {action.option_strings or action.dest}")
    assert silent == []


@pytest.mark.parametrize("piped", ["a tar of it", "a log", "nothing"])
def test_what_is_piped_in_is_read_like_a_file(
    piped: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = io.BytesIO()
    if piped == "a tar of it":
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            tar.add(LOST, arcname="evidence")
    elif piped == "a log":
        packed.write(LOG.encode())
    packed.seek(0)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(packed))

    status = main(["diagnose", "-"])
    said = capsys.readouterr()
    if piped == "a tar of it":
        assert status == 1
        assert said.out.startswith("10 records lost in t-0")
        assert "standard input/evidence/broker-1/disk-before-restart/t-0" in said.out
        assert "replication-analyzer decide -" in said.out
        packed.seek(0)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(packed))
        [proof] = re.findall(r"replication-analyzer explain (\w+) -", said.out)
        assert main(["explain", proof, "-"]) == 0
        assert "\n     | [" in capsys.readouterr().out, "the lines are quoted"
    elif piped == "a log":
        assert status == 3
        assert "standard input, line " in said.out
    else:
        assert status == 2
        assert "standard input: empty" in said.err


def test_a_release_whose_rules_are_not_known_is_told_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "[2026-11-20 15:18:14,000] INFO Kafka version: 5.1.0 "
        "(org.apache.kafka.common.utils.AppInfoParser)\n"
        "[2026-11-20 15:18:16,000] INFO [Broker id=1] Leader t-0 with topic id Some(abc) starts at "
        "leader epoch 0 from offset 0 with partition epoch 0, high watermark 0, ISR [1], adding "
        "replicas [] and removing replicas []. Previous leader epoch was -1. "
        "(state.change.logger)\n"
    )
    main(["diagnose", str(log)])
    said = capsys.readouterr().err
    assert (
        "note: the evidence names a release: the rules of Kafka 5.1.0 are not known here; those of "
        f"0.8.0 to {NEWEST_KNOWN} are. Get a newer version of this tool, or name the nearest of "
        "these releases: its rules are taken then; --kafka names it\n"
    ) in said
    main(["diagnose", str(log), "--kafka", "4.3.0"])
    assert "are not known here" not in capsys.readouterr().err


def test_of_two_imports_of_a_partition_it_is_said_which_one_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    less = tmp_path / "less"
    changed_copy(LOST.name, lambda copy: (copy / "acks.jsonl").unlink(), less)
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    assert main(["import", str(LOST), "--out", str(dumps / "all.jsonl")]) == 0
    assert main(["import", str(less), "--out", str(dumps / "less.jsonl")]) == 0
    capsys.readouterr()

    main(["diagnose", str(dumps)])
    said = capsys.readouterr().err
    assert "note: t-0: there are several imports of it with trace_generation 0" in said
    assert "with --generation 1" in said

    again = ["--out", str(dumps / "less.jsonl"), "--generation", "1"]
    assert main(["import", str(less), *again]) == 0
    assert main(["diagnose", str(dumps)]) == 1
    assert "imports of it" not in capsys.readouterr().err


JOBS = (check_quality, import_artifacts, incident_page, maintain, replay, stream, views)


@pytest.mark.parametrize("job", JOBS)
def test_an_option_of_a_job_that_is_misspelt_is_named_before_what_is_missing(
    job: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever writes `--tabels DIR` is not told first that --tables is missing."""
    with pytest.raises(SystemExit) as ended:
        job.parser().parse_args(["--tabels", "DIR", "--out", "x"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "unrecognized arguments: --tabels (did you mean --tables?)" in said
    assert said.count("\n") == 1


def test_no_option_is_known_by_its_beginning_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """`--sourc DIR` would mean another flag as soon as there are two that begin so. Of each flag of
    each job and command the shortest beginning that is told from those of the others."""
    commands = _commands(cli._parser())
    parsers = {job.parser().prog: job.parser() for job in JOBS} | commands
    tried = 0
    for name, parser in parsers.items():
        flags = [flag for flag in parser._option_string_actions if flag.startswith("--")]
        for flag in flags:
            begun = next(
                flag[:length]
                for length in range(3, len(flag) + 1)
                if sum(other.startswith(flag[:length]) for other in flags) == 1
                or flag[length:] == ""
            )
            if begun in flags:
                continue
            with pytest.raises(SystemExit):
                parser.parse_args([begun, "x"])
            said = capsys.readouterr().err
            assert f"unrecognized arguments: {begun} (did you mean {flag}?)" in said, name
            tried += 1
    assert tried > 150


@pytest.mark.parametrize(
    ("call", "status", "says"),
    [
        (["diagnose", "--help", "--nope"], 0, "usage: replication-analyzer diagnose"),
        (["diagnose", "--nope", "-h"], 0, "usage: replication-analyzer diagnose"),
        (["diagnose", "--", "--help"], 2, "--help"),
        (["whatif", "x", "--set", "--x=1"], 2, "whatif: a value for --set is missing ("),
        (["diagnose", "x", "--strict", "--x=1"], 2, "unrecognized arguments: --x ("),
    ],
)
def test_help_is_given_whatever_else_is_wrong_and_a_missing_value_is_named(
    call: list[str], status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        ended = main(call)
    except SystemExit as left:
        ended = left.code
    assert ended == status
    assert says in "".join(capsys.readouterr())


def test_an_option_that_is_misspelt_is_named_before_what_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["recover", "x", "--outt", "y"])
    said = capsys.readouterr().err
    assert "recover: unrecognized arguments: --outt (did you mean --out?)" in said
