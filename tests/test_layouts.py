"""The same evidence in other clothes: layouts, wrappers, rotation, mixed files and folders.

Every rewriting keeps what the lines say, so the verdicts and the lost offsets stay; only where two
brokers share a file, or no line carries a date, less can be known: then nothing wrong is said.
"""

import gzip
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from tests.changed_evidence import (
    EXPECTED,
    INCIDENTS,
    as_captured,
    broker_logs,
    changed_copy,
    each_incident_in,
    folded_with,
    living,
    log_directories,
    verdicts_of,
    wrong_verdicts,
)

LINE = re.compile(r"^\[(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d),(\d{3})\] ([A-Z]+) (.*)$", re.DOTALL)
LOGGER = re.compile(r"^(.*) \(([\w.$]+)\)\s*$", re.DOTALL)
QUICK = ("unclean_election__2.8.2", "last_replica_standing__4.1.1__elr_off")


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def rewritten(path: Path, lines: list[str]) -> None:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))


def messages(path: Path) -> Iterator[str]:
    """Whole messages, of one line or of many."""
    message: list[str] = []
    for line in text_of(path).splitlines():
        if LINE.match(line) and message:
            yield "\n".join(message)
            message = []
        message.append(line)
    if message:
        yield "\n".join(message)


def json_layout(path: Path) -> None:
    """log4j 2's JsonTemplateLayout: a message, stack trace and all, is one object."""
    rows = []
    for message in messages(path):
        found = LINE.match(message)
        told = LOGGER.match(found[5]) if found else None
        if found and told:
            at = f"{found[1]}T{found[2]}.{found[3]}Z"
            row = {"@timestamp": at, "log.level": found[4], "message": told[1]}
            rows.append(json.dumps({**row, "log.logger": told[2]}))
        else:
            rows.append(json.dumps({"message": message}))
    rewritten(path, rows)


def docker_json(path: Path) -> None:
    lines = text_of(path).splitlines()
    rewritten(path, [json.dumps({"log": line + "\n", "stream": "stdout"}) for line in lines])


def objects_over_lines(path: Path) -> None:
    """log4j 2's older JSON layout: an object is spread over lines."""
    json_layout(path)
    rows = [json.loads(line) for line in text_of(path).splitlines()]
    rewritten(path, json.dumps(rows, indent=2).splitlines())


def journald_json(path: Path) -> None:
    lines = text_of(path).splitlines()
    rewritten(path, [json.dumps({"_HOSTNAME": "host1", "MESSAGE": line}) for line in lines])


def prefixed(prefix: str) -> Callable[[Path], None]:
    return lambda path: rewritten(path, [prefix + line for line in text_of(path).splitlines()])


def without_dates(path: Path) -> None:
    """journald's own time without a year, in front of messages without a time."""
    lines = []
    for line in text_of(path).splitlines():
        found = LINE.match(line)
        at = found[2] if found else "00:00:00"
        text = f"{found[4]} {found[5]}" if found else line
        lines.append(f"Nov 20 {at} host1 kafka[77]: {text}")
    rewritten(path, lines)


def rotated(path: Path) -> None:
    """Three files, the older two gzipped, cut between messages."""
    every = list(messages(path))
    size = len(every) // 3 + 1
    for number in (2, 1):
        part = "\n".join(every[(2 - number) * size : (3 - number) * size]) + "\n"
        packed = gzip.compress(part.encode("utf-8", "surrogateescape"))
        path.with_name(f"{path.name}.{number}.gz").write_bytes(packed)
    rewritten(path, every[2 * size :])


FILE_BY_FILE: dict[str, Callable[[Path], None]] = {
    "json layout": json_layout,
    "docker json-file": docker_json,
    "docker compose": prefixed("kafka-1  | "),
    "kubernetes": prefixed("2026-11-21T09:00:00.123456789Z stdout F "),
    "journald": prefixed("Nov 21 09:00:00 host1 kafka[77]: "),
    "rotated": rotated,
    "spread over lines": objects_over_lines,
    "kubectl with prefix and time": prefixed("[pod/kafka-1/kafka] 2026-11-21T09:00:00.123456789Z "),
    "stern in colours": prefixed("\x1b[36mkafka-1\x1b[0m \x1b[35mkafka\x1b[0m "),
}


def conclusions(folded: FoldedPartition | None) -> Any:
    """What an operator acts on."""
    if folded is None:
        return None
    answer = folded.answer
    fields = ("first_offset", "end_offset", "tier", "contract", "status", "cause")
    return (
        [(v["invariant"], v["verdict"]) for v in answer.verdicts],
        [[loss[f] for f in fields] for loss in answer.losses],
        [(d["replicas"], d["first_offset"], d["status"]) for d in answer.divergences],
        [(e["leader"], e["leader_epoch"], e["kind"]) for e in answer.partition["elections"]],
    )


def every_log(change: Callable[[Path], None]) -> Callable[[Path], None]:
    def changed(evidence: Path) -> None:
        for path in broker_logs(evidence):
            change(path)

    return changed


@pytest.mark.parametrize(("incident", "layout"), each_incident_in(QUICK, FILE_BY_FILE))
def test_another_layout_gives_the_same_answer(incident: str, layout: str) -> None:
    folded = folded_with(incident, every_log(FILE_BY_FILE[layout]))
    for topic_partition in EXPECTED[incident]:
        expected = conclusions(living(as_captured(incident), topic_partition))
        assert conclusions(living(folded, topic_partition)) == expected


def one_file_of_all(evidence: Path) -> None:
    """All brokers' lines by time in one file, as a collector without labels stores them."""
    found: list[tuple[str, str]] = []
    for path in broker_logs(evidence):
        found += [(message[:25], message) for message in messages(path)]
        path.unlink()
    found.sort(key=lambda row: row[0])
    rewritten(evidence / "all-brokers.log", [message for _, message in found])


def labelled_file_of_all(evidence: Path) -> None:
    """The same as docker compose prints it."""
    found: list[tuple[str, str]] = []
    for path in broker_logs(evidence):
        label = f"{path.parent.name}  | "
        for message in messages(path):
            lines = "\n".join(label + line for line in message.split("\n"))
            found.append((message[:25], lines))
        path.unlink()
    found.sort(key=lambda row: row[0])
    rewritten(evidence / "compose.log", [lines for _, lines in found])


LESS_KNOWN: dict[str, Callable[[Path], None]] = {
    # Lines without a header of their own, settings dumps among them, are objects that say nothing.
    "journald's JSON": every_log(journald_json),
    "a test's container": every_log(prefixed("09:00:00.123 [tc-1] INFO  tc.kafka - STDOUT: ")),
    "no dates": every_log(without_dates),
    "one file": one_file_of_all,
    "one labelled file": labelled_file_of_all,
}


@pytest.mark.parametrize(("incident", "change"), each_incident_in(QUICK, LESS_KNOWN))
def test_where_less_can_be_known_nothing_wrong_is_said(incident: str, change: str) -> None:
    folded = folded_with(incident, LESS_KNOWN[change])
    wrong = []
    for topic_partition in EXPECTED[incident]:
        found = living(folded, topic_partition)
        if found is not None:
            wrong += wrong_verdicts(incident, topic_partition, verdicts_of(found))
    assert wrong == []


def answers_below(folder: Path) -> dict[tuple[str, str, str, int], Any]:
    return {f.identity: conclusions(f) for f in fold_all(import_evidence([folder]).events())}


PAIRS = [
    ("unclean_election__4.1.1", "last_replica_standing__4.1.1__elr_off"),
    ("unclean_election__2.8.2", "same_epoch_power_loss__1.1.1"),
    ("kip101_scenario_1__0.10.2.2__loss_only", "healthy_rolling_restart__4.3.0"),
]


@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_two_clusters_in_one_folder_are_two(pair: tuple[str, str], tmp_path: Path) -> None:
    """Same topic names, same broker ids: the cluster id tells them apart."""
    alone = {}
    for incident in pair:
        changed_copy(incident, lambda evidence: None, tmp_path / incident)
        alone |= answers_below(tmp_path / incident)
    assert len({identity[0] for identity in alone}) == 2
    assert answers_below(tmp_path) == alone


@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_a_directory_of_another_cluster_is_told_apart(
    pair: tuple[str, str], tmp_path: Path
) -> None:
    """A copy in the wrong broker's folder. Client logs name no cluster: nobody can say any more of
    which of the two they are, so less is known, and the note says why."""
    evidence = changed_copy(pair[0], lambda evidence: None, tmp_path / "a")
    cluster = next(iter(answers_below(evidence)))[0]
    stranger = changed_copy(pair[1], lambda evidence: None, tmp_path / "b")
    shutil.copytree(log_directories(stranger)[-1], evidence / "broker-1" / "disk-of-a-stranger")
    imported = import_evidence([evidence])
    folded = [f for f in fold_all(imported.events()) if f.identity[0] == cluster]
    told = [*imported.collection.notes, *(u.reason for u in imported.unreadable)]
    assert any("names no cluster" in text or "of which cluster" in text for text in told)
    for topic_partition in EXPECTED[pair[0]]:
        found = living(folded, topic_partition)
        assert found is not None
        assert wrong_verdicts(pair[0], topic_partition, verdicts_of(found)) == []
        alone = living(as_captured(pair[0]), topic_partition)
        assert alone is not None
        _, losses, divergences, _ = conclusions(found)
        _, losses_alone, divergences_alone, _ = conclusions(alone)
        offsets = [row[:2] for row in losses_alone]
        assert [row for row in losses if row[:2] not in offsets] == []
        assert divergences == divergences_alone


def two_log_dirs(evidence: Path) -> None:
    """Every broker keeps its partitions on two disks, each with the files of its own."""
    for directory in log_directories(evidence):
        second = directory.with_name(f"{directory.name}-b")
        second.mkdir()
        for path in sorted(directory.iterdir()):
            if path.name.endswith("-1") and path.is_dir():
                path.rename(second / path.name)
            elif path.is_file():
                shutil.copy(path, second / path.name)


@pytest.mark.parametrize("incident", ["chaos__4.1.1__seed2", "chaos__2.8.2__seed36"])
def test_several_log_dirs_of_a_broker(incident: str) -> None:
    folded = folded_with(incident, two_log_dirs)
    for topic_partition in EXPECTED[incident]:
        expected = conclusions(living(as_captured(incident), topic_partition))
        assert conclusions(living(folded, topic_partition)) == expected


def test_copies_of_all_incidents_are_there() -> None:
    """A renamed incident must not silently leave the tests."""
    named = {incident for pair in PAIRS for incident in pair} | set(QUICK)
    assert all((INCIDENTS / name).is_dir() for name in named)
