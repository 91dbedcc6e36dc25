"""Evidence as it is handed over: packed, renamed, unreadable in part, with logs of other programs.

What is packed or renamed gives the same answer; what cannot be used is said, with what to do.
"""

import bz2
import json
import lzma
import os
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import zstandard

from replication.cli import main
from replication.evidence.collecting.collection import Told
from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import fold_all
from tests.changed_evidence import (
    EXPECTED,
    INCIDENTS,
    as_captured,
    broker_logs,
    changed_copy,
    each_incident,
    each_incident_in,
    folded_with,
    living,
    log_directories,
    verdicts_of,
    wrong_verdicts,
)
from tests.merged_logs import on_one_path
from tests.test_layouts import QUICK, conclusions, one_file_of_all

LOST = "unclean_election__2.8.2"


def packed_tar(mode: str) -> Callable[[Path], None]:
    """Each machine's folder as one archive, as people collect them."""

    def change(evidence: Path) -> None:
        for folder in [p for p in sorted(evidence.iterdir()) if p.is_dir()]:
            with tarfile.open(f"{folder}.tar", mode) as tar:  # type: ignore[call-overload]
                tar.add(folder, folder.name)
            shutil.rmtree(folder)

    return change


def one_zip_of_tars(evidence: Path) -> None:
    """Everything in one zip, the machines as archives within it."""
    packed_tar("w:gz")(evidence)
    files = sorted(p for p in evidence.iterdir() if p.is_file())
    with zipfile.ZipFile(evidence / "case.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        for path in files:
            zipped.write(path, f"case/{path.name}")
    for path in files:
        path.unlink()


def every_file(suffix: str, pack: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Logs and tools' and clients' files, each packed by itself."""

    def change(evidence: Path) -> None:
        others = [p for p in evidence.iterdir() if p.is_file()]
        for path in [*broker_logs(evidence), *others]:
            path.with_name(path.name + suffix).write_bytes(pack(path.read_bytes()))
            path.unlink()

    return change


def as_utf_16(text: bytes) -> bytes:
    return text.decode("utf-8", "replace").encode("utf-16")


def folders_named_by_date(evidence: Path) -> None:
    folders = [p for p in sorted(evidence.iterdir()) if p.is_dir()]
    for number, folder in enumerate(folders):
        folder.rename(evidence / f"2018-05-{24 + number}")


CLOTHES: dict[str, Callable[[Path], None]] = {
    "tar": packed_tar("w"),
    "tar.gz": packed_tar("w:gz"),
    "tar.bz2": packed_tar("w:bz2"),
    "tar.xz": packed_tar("w:xz"),
    "a zip of tar.gz": one_zip_of_tars,
    "bz2": every_file(".bz2", bz2.compress),
    "xz": every_file(".xz", lzma.compress),
    "zst": every_file(".zst", zstandard.compress),
    "utf-16": every_file(".txt", as_utf_16),
    "folders named by date": folders_named_by_date,
}


def known(conclusion: Any, evidence: str) -> Any:
    """Without the places of files, which are all that may differ."""
    return json.loads(json.dumps(conclusion).replace(evidence, ""))


@pytest.mark.parametrize(("incident", "clothes"), each_incident_in(QUICK[:1], CLOTHES))
def test_other_clothes_give_the_same_answer(incident: str, clothes: str, tmp_path: Path) -> None:
    evidence = changed_copy(incident, CLOTHES[clothes], tmp_path)
    imported = import_evidence([evidence])
    folded = fold_all(imported.events(), strict=True)
    assert imported.unreadable == []
    for topic_partition in EXPECTED[incident]:
        expected = conclusions(living(as_captured(incident), topic_partition))
        found = conclusions(living(folded, topic_partition))
        assert known(found, str(evidence)) == known(expected, str(evidence))


def one_directory_path_for_all(evidence: Path) -> None:
    """As on three machines of one make, where every broker's disk has the same path."""
    for path in broker_logs(evidence):
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        path.write_bytes(on_one_path(text).encode("utf-8", "surrogateescape"))
    one_file_of_all(evidence)


MERGED = {"one installation": one_file_of_all, "many machines": one_directory_path_for_all}


@pytest.mark.parametrize(("incident", "change"), each_incident_in(QUICK, MERGED))
def test_no_line_of_a_merged_file_is_given_to_the_wrong_broker(incident: str, change: str) -> None:
    """Less may be known; but each cut that is told is one that its own broker's log tells. 0.10
    prints one also where nothing is cut."""
    own = {
        (int(path.parent.name.rpartition("-")[2]), int(cut))
        for path in broker_logs(INCIDENTS / incident)
        for cut in re.findall(
            r" Truncating (?:log \S+ )?to offset (\d+)", path.read_text("latin-1")
        )
    }

    def cuts(folded: Any) -> set[tuple[int, int]]:
        found = folded.answer.partition["truncations"] if folded else []
        return {(t["replica"], t["to_offset"]) for t in found}

    merged = folded_with(incident, MERGED[change])
    for topic_partition in EXPECTED[incident]:
        found = living(merged, topic_partition)
        assert cuts(found) <= own
        if found is not None:
            assert wrong_verdicts(incident, topic_partition, verdicts_of(found)) == []


STAMP = re.compile(r"(?m)^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),")
# What Java calls the zone; the letters of some stand for several.
ZONES = {-8.0: "PST", -3.5: "GMT-03:30", 1.0: "CET", 5.5: "IST", 9.0: "JST"}
WRITTEN = re.compile(r"(?m)^#\w{3} (\w{3} \d\d \d\d:\d\d:\d\d) UTC (\d{4})$")


def in_zone(hours: float) -> Callable[[Path], None]:
    """Broker logs, and the dates in meta.properties, as a JVM in that zone prints them."""

    def moved(found: re.Match[str]) -> str:
        at = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S") + timedelta(hours=hours)
        return f"[{at:%Y-%m-%d %H:%M:%S},"

    def dated(found: re.Match[str]) -> str:
        at = datetime.strptime(f"{found[1]} {found[2]}", "%b %d %H:%M:%S %Y")
        return f"#{at + timedelta(hours=hours):%a %b %d %H:%M:%S} {ZONES[hours]} {found[2]}"

    def change(evidence: Path) -> None:
        for path in evidence.rglob("meta.properties"):
            path.write_text(WRITTEN.sub(dated, path.read_text()))
        for path in broker_logs(evidence):
            text = path.read_bytes().decode("utf-8", "surrogateescape")
            path.write_bytes(STAMP.sub(moved, text).encode("utf-8", "surrogateescape"))

    return change


# Before 0.11 records name no leader epoch.
NO_EPOCHS = [incident for incident in sorted(EXPECTED) if "0.10" in incident]


@pytest.mark.parametrize(("incident", "hours"), each_incident_in(QUICK[:1], ZONES))
def test_local_time_gives_the_same_answer(incident: str, hours: float, tmp_path: Path) -> None:
    imported = import_evidence([changed_copy(incident, in_zone(hours), tmp_path)])
    folded = fold_all(imported.events(), strict=True)
    for topic_partition in EXPECTED[incident]:
        found, right = (
            living(folded, topic_partition),
            living(as_captured(incident), topic_partition),
        )
        assert found is not None
        assert conclusions(found) == conclusions(right)


def undated(evidence: Path) -> None:
    """Nothing that shows the zone: no date in meta.properties, no acknowledgement, no metadata."""
    in_zone(5.5)(evidence)
    for path in evidence.rglob("meta.properties"):
        path.write_text(re.sub(r"(?m)^#.*\n", "", path.read_text()))
    for path in evidence.rglob("acks.jsonl"):
        path.unlink()
    for path in list(evidence.rglob("__cluster_metadata-0")):
        shutil.rmtree(path)


@pytest.mark.parametrize("incident", each_incident(NO_EPOCHS))
def test_where_nothing_shows_the_zone_nothing_rests_on_it(incident: str, tmp_path: Path) -> None:
    """Less is known, and nothing wrong is said."""
    folded = fold_all(import_evidence([changed_copy(incident, undated, tmp_path)]).events())
    for topic_partition in EXPECTED[incident]:
        found = living(folded, topic_partition)
        assert found is not None
        assert wrong_verdicts(incident, topic_partition, verdicts_of(found)) == []


def test_a_moment_of_no_known_zone_is_not_called_utc(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Broker logs alone: of the loss they tell when, by their own clock."""

    def logs_alone(evidence: Path) -> None:
        undated(evidence)
        for directory in log_directories(evidence):
            shutil.rmtree(directory)

    evidence = changed_copy(LOST, logs_alone, tmp_path)
    assert main(["diagnose", str(evidence)]) == 1
    text = capsys.readouterr().out
    assert "local time of an unknown zone (say it with --time-zone)" in text
    assert "2026-11-20 20:54:22, local time, zone unknown)" in text
    assert "Z)" not in text
    assert main(["diagnose", str(evidence), "--time-zone", "+05:30"]) == 1
    assert "at 2026-11-20T15:24:22.646Z)" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert main(["diagnose", str(evidence), "--format", "json", "--report", str(page)]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["losses"][0]["lost_at"] == "2026-11-20T20:54:22.646"
    told = [answer[part] for part in ("partitions", "losses", "at_risk", "loss_details")]
    assert not re.search(r'\dZ"', json.dumps(told))
    assert '"clock":"local time, zone unknown"' in page.read_text()
    assert " UTC" not in re.sub(r"<script.*?</script>", "", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("hours", [-8.0, 5.5])
@pytest.mark.parametrize("incident", each_incident(QUICK[:1]))
def test_one_broker_may_be_in_a_zone_of_its_own(
    incident: str, hours: float, tmp_path: Path
) -> None:
    def one_moved(evidence: Path) -> None:
        node = tmp_path / "one" / "broker-1"
        shutil.move(evidence / "broker-1", node)
        in_zone(hours)(node.parent)
        shutil.move(node, evidence / "broker-1")

    folded = fold_all(import_evidence([changed_copy(incident, one_moved, tmp_path)]).events())
    for topic_partition in EXPECTED[incident]:
        found = living(folded, topic_partition)
        assert found is not None
        assert wrong_verdicts(incident, topic_partition, verdicts_of(found)) == []


@pytest.mark.parametrize("incident", NO_EPOCHS)
def test_the_user_may_say_the_zone(incident: str, tmp_path: Path) -> None:
    evidence = changed_copy(incident, in_zone(5.5), tmp_path)
    told = Told(time_zone=timezone(timedelta(hours=5.5)))
    folded = fold_all(import_evidence([evidence], told=told).events())
    for topic_partition in EXPECTED[incident]:
        right = living(as_captured(incident), topic_partition)
        assert conclusions(living(folded, topic_partition)) == conclusions(right)


def test_places_in_archives_are_named_and_can_be_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = changed_copy(LOST, one_zip_of_tars, tmp_path)
    page = tmp_path / "page.html"
    assert main(["diagnose", str(evidence), "--format", "json", "--report", str(page)]) == 1
    text = capsys.readouterr().out
    answer = json.loads(text)
    log = f"{evidence}/case.zip/case/broker-2.tar/broker-2/server.log"
    paths = {s["path"] for f in answer["findings"] for s in f["source"] if s}
    assert any(path.startswith(f"{evidence}/case.zip/case/broker-") for path in paths)
    assert log in {x["path"] for b in answer["inventory"]["brokers"] for x in b["logs"]}
    assert "/replication-analyzer-" not in text
    assert "/replication-analyzer-" not in page.read_text()
    places = [s for f in answer["findings"] for s in f["source"] if s and s.get("line")]
    first = next(s for s in places if ".tar/" in s["path"])
    real = INCIDENTS / LOST / first["path"].split(".tar/", 1)[1]
    line = real.read_text().splitlines()[first["line"] - 1]
    assert line[:60].replace("<", "&lt;") in page.read_text()


@contextmanager
def nobody() -> Iterator[None]:
    """As a user whom files' modes bind."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_what_may_not_be_read_is_said(tmp_path: Path) -> None:
    evidence = changed_copy(LOST, lambda evidence: None, tmp_path)
    for path in [
        tmp_path,
        *(p for p in tmp_path.parents if p.name.startswith(("pytest-", "popen-"))),
    ]:
        path.chmod(0o755)
    closed = [evidence / "broker-1" / "server.log", evidence / "broker-2" / "disk-final"]
    closed = [p for p in closed if p.exists()] + [evidence / "acks.jsonl"]
    for path in closed:
        path.chmod(0)
    import_evidence([INCIDENTS / LOST])  # What is imported late lies where nobody may read, too.
    with nobody():
        said = {u.path: u.reason for u in import_evidence([evidence]).unreadable}
    for path in closed:
        path.chmod(0o755)
        assert "Permission denied" in said[str(path)]


ACKS = (INCIDENTS / LOST / "acks.jsonl").read_text().splitlines()


def others_acks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As a service of somebody's writes them: other names, and only successes."""
    return [
        {
            "timestamp": r["ts"], "key": r["payload_id"], "topic": r["topic"],
            "partition": r["partition"], "offset": r["offset"],
        }
        for r in rows
        if r["status"] == "acked"
    ]  # fmt: skip


MAPPED = "ts=timestamp,payload_id=key,status=:acked,acks=:all,client=:orders"


@pytest.mark.parametrize("form", ["json lines", "csv"])
def test_a_near_miss_names_the_fix_and_the_fix_works(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = others_acks([json.loads(line) for line in ACKS])
    if form == "csv":
        lines = [",".join(rows[0]), *(",".join(str(v) for v in row.values()) for row in rows)]
    else:
        lines = [json.dumps(row) for row in rows]

    def change(evidence: Path) -> None:
        (evidence / "acks.jsonl").write_text("\n".join(lines) + "\n")

    evidence = str(changed_copy(LOST, change, tmp_path))
    assert main(["diagnose", evidence]) == 2
    said = capsys.readouterr().err
    assert "--ack-fields ts=timestamp,payload_id=key" in said
    assert "acks, client, status" in said
    assert main(["diagnose", evidence, "--format", "json", "--ack-fields", MAPPED]) == 1
    lost = json.loads(capsys.readouterr().out)["losses"]
    assert main(["diagnose", str(INCIDENTS / LOST), "--format", "json"]) == 1
    expected = json.loads(capsys.readouterr().out)["losses"]
    fields = ("first_offset", "end_offset", "tier", "status")
    assert [[x[f] for f in fields] for x in lost] == [[x[f] for f in fields] for x in expected]
    assert main(["diagnose", evidence, "--format", "json", "--ack-fields", "none"]) == 1
    ignored = json.loads(capsys.readouterr().out)["inventory"]["ignored"]
    assert f"{evidence}/acks.jsonl" in {row["path"] for row in ignored}


def test_folders_named_by_dates_are_no_brokers(tmp_path: Path) -> None:
    """Copies without meta.properties in folders of two days: nobody knows whose they are."""
    for day, node in (("2018-05-24", "broker-1"), ("2018-05-25", "broker-2")):
        disk = next((INCIDENTS / LOST / node).glob("disk-*"))
        shutil.copytree(disk, tmp_path / day, ignore=shutil.ignore_patterns("meta.properties"))
    (tmp_path / "acks.jsonl").write_text("\n".join(ACKS) + "\n")
    imported = import_evidence([tmp_path])
    assert {c.broker for p in imported.partitions for c in p.copies} == set()
    assert sum("whose log directory it is" in u.reason for u in imported.unreadable) == 2
    (tmp_path / "2018-05-24").rename(tmp_path / "kafka-logs-1")
    (tmp_path / "2018-05-25").rename(tmp_path / "node2.example.org")
    imported = import_evidence([tmp_path])
    assert {c.broker for p in imported.partitions for c in p.copies} == {1, 2}
    assert sum("by its folder's name" in note for note in imported.notes) == 2


def test_copies_saved_by_broker_beside_each_other_are_of_their_own_brokers(tmp_path: Path) -> None:
    """As the plan of `decide` lays them: SAFE/broker-N, without meta.properties."""
    shutil.copytree(INCIDENTS / LOST, tmp_path / "live")
    for node in (1, 2):
        disk = INCIDENTS / LOST / f"broker-{node}" / "disk-final"
        shutil.copytree(disk / "t-0", tmp_path / "SAFE" / f"broker-{node}" / "t-0")
    imported = import_evidence([tmp_path])
    saved = {
        (str(c.path).split("/SAFE/")[1].split("/")[0], c.broker)
        for p in imported.partitions
        for c in p.copies
        if "/SAFE/" in str(c.path)
    }
    assert saved == {("broker-1", 1), ("broker-2", 2)}


def test_the_user_may_say_whose_a_file_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = next((INCIDENTS / LOST / "broker-1").glob("disk-*"))
    place = tmp_path / "mystery"
    shutil.copytree(disk, place, ignore=shutil.ignore_patterns("meta.properties"))
    assert main(["diagnose", "--broker", "7", str(place), str(tmp_path), "--format", "json"]) in (
        0,
        3,
    )
    answer = json.loads(capsys.readouterr().out)
    assert [b["broker"] for b in answer["inventory"]["brokers"]] == [7]


def test_a_report_to_a_bad_place_does_not_cost_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "no" / "such" / "page.html"
    assert main(["diagnose", str(INCIDENTS / LOST), "--report", str(bad)]) == 2
    said = capsys.readouterr()
    assert "LOST" in said.out
    assert "--report" in said.err
