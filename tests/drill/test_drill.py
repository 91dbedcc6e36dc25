"""Drills from the command line, against the library's own mock of a cluster: speaking real Kafka,
keeping nothing. What real brokers do is in test_real_drill.py."""

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest

from replication.cli import main
from replication.drill import cluster as drilled_cluster
from replication.drill.cluster import NoDrill
from replication.drill.collecting import take
from replication.drill.load import RunningLoad
from replication.drill.plan import Step, read_plan
from replication.drill.steps import carry_out
from replication.paths import project_root

INCIDENT = project_root() / "tests" / "incidents" / "unclean_election__4.1.1"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """Three brokers, topics t and u."""
    settings = {"bootstrap.servers": "none:1", "test.mock.num.brokers": 3, "log_level": "0"}
    mock = ck.Producer(settings)
    found = mock.list_topics("t", timeout=10)
    mock.list_topics("u", timeout=10)
    yield ",".join(f"{b.host}:{b.port}" for b in found.brokers.values())
    del mock


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock describes nothing, and takes its time to say so."""
    monkeypatch.setattr(drilled_cluster, "DETAIL_SECONDS", 0.05)


def plan(folder: Path, bootstrap: str, more: str = "", load: str = "") -> Path:
    path = folder / "plan.toml"
    path.write_text(
        f'bootstrap = "{bootstrap}"\nout = "out"\n[[topic]]\nname = "t"\ncreate = false\n'
        f"[load]\nrate = 500\nseconds = 1\nafter = 0.2\nkeys = 40\ntimeout = 5\n{load}\n{more}"
    )
    return path


def acknowledged(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in (folder / "out" / "evidence" / "acknowledged").iterdir()
        for line in path.read_text().splitlines()
    ]


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(x) for x in (folder / "out" / "drill.jsonl").read_text().splitlines()]


def test_load_fault_collection_and_the_answer(
    tmp_path: Path, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The evidence that is collected is of a real incident: its loss is the answer."""
    taken = tmp_path / "logs"
    shutil.copytree(INCIDENT, taken)
    more = (
        '[[fault]]\npause = 0.2\nrun = "echo hurt $DRILL_BOOTSTRAP > $DRILL_OUT/done"\n'
        f'[[collect.step]]\nrun = "test -d $DRILL_EVIDENCE"\n[collect.take]\nall = "{taken}"\n'
    )
    path = plan(tmp_path, bootstrap, more)
    path.write_text(path.read_text().replace('name = "t"', 'name = "u"'))
    status = main(["drill", str(path), "--topic", "t"])
    out, err = capsys.readouterr()
    assert status == 1, err
    assert (tmp_path / "out" / "done").read_text() == f"hurt {bootstrap}\n"
    lines = acknowledged(tmp_path)
    assert {line["status"] for line in lines} == {"acked"}
    assert len({line["payload_id"] for line in lines}) == len(lines) > 300
    told = out.splitlines()
    assert told[0] == f"Drill of u at {bootstrap}."
    assert f"{len(lines):,} acknowledged with acks=all, 0 not." in told[1]
    assert told[2] == "Faults: 1 of 1 carried out:"
    assert "fault 1 of 1: run: echo hurt" in told[3]
    assert "10 records lost in t-0" in out
    assert "10 records lost" in (tmp_path / "out" / "page.html").read_text()


def test_without_evidence_of_brokers_it_is_not_decided(
    tmp_path: Path, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And --collect judges again what a drill left, with what was added since."""
    path = plan(tmp_path, bootstrap, load="sample = 0.5")
    assert main(["drill", str(path)]) == 3
    told = capsys.readouterr().out
    assert "Sample: the answers for 50 % of the keys were noted" in told
    assert "one that took 4 keys or more with 90 %" in " ".join(told.split())
    ended = next(e for e in journal(tmp_path) if e["did"] == "load ended")
    assert ended["noted"] == len(acknowledged(tmp_path)) < ended["sent"]
    assert ended["noted"] + ended["left_out"] == ended["sent"]
    assert main(["drill", str(path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert main(["drill", str(path), "--collect", "--format", "json"]) == 3
    assert json.loads(capsys.readouterr().out)["partitions"]


def test_a_check_changes_nothing(
    tmp_path: Path, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = plan(tmp_path, bootstrap, '[[fault]]\nsay = "pull the plug"\n')
    assert main(["drill", str(path), "--check"]) == 0
    told = capsys.readouterr().out
    assert "cluster: 3 brokers (1, 2, 3)" in told
    assert "topic t: is there, 4 partitions" in told
    assert "fault 1 of 1: after 10 s: pull the plug" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ('run = "exit 7"', "fault 1 of 1 failed: `exit 7` ended with status 7"),
        ('run = "sleep 9"\ntimeout = 0.3', "took longer than 0.3 s and was ended"),
        ('run = "kill -INT $PPID; sleep 5"', "interrupted"),
        ('say = "unplug it"', "nobody can press it"),
    ],
)
def test_a_drill_that_ends_early_says_what_it_did_and_how_to_go_on(
    tmp_path: Path, bootstrap: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch, fault: str, said: str,
) -> None:  # fmt: skip
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        path = plan(tmp_path, bootstrap, f"[[fault]]\npause = 0.5\n{fault}\n")
        # What a shell starts in the background is told to ignore an interruption.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            assert main(["drill", str(path)]) == 2
        finally:
            signal.signal(signal.SIGINT, before)
    err = capsys.readouterr().err
    assert said in err
    assert "Begun, and perhaps carried out: fault 1 of 1." in err
    assert f"replication-analyzer drill {path} --collect" in err
    lines = acknowledged(tmp_path)
    assert len(lines) > 100
    ended = next(e for e in journal(tmp_path) if e["did"] == "load ended")
    assert ended["acknowledged"] == sum(line["status"] == "acked" for line in lines)
    assert ended["sent"] == len(lines)
    assert main(["drill", str(path), "--collect"]) == 3


def test_a_cluster_that_does_not_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drilled_cluster, "SECONDS", 0.5)
    assert main(["drill", str(plan(tmp_path, "127.0.0.1:1"))]) == 2
    err = capsys.readouterr().err
    assert "bootstrap 127.0.0.1:1: no broker answers within" in err
    assert "refused" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ('name = "t"', "topic t is there already"),
        ('name = "new"\nreplication = 4', "replication = 4, and the cluster has 3 brokers"),
        ('name = "nwe"\ncreate = false', "no topic nwe in the cluster"),
    ],
)
def test_topics_that_do_not_fit_the_cluster(
    tmp_path: Path, bootstrap: str, capsys: pytest.CaptureFixture[str], topic: str, said: str
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f'bootstrap = "{bootstrap}"\nout = "out"\n[[topic]]\n{topic}\n')
    assert main(["drill", str(path)]) == 2
    assert said in capsys.readouterr().err


def test_collect_without_a_drill(
    tmp_path: Path, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drill", str(plan(tmp_path, bootstrap)), "--collect"]) == 2
    assert "holds no drill that began" in capsys.readouterr().err


def test_a_platforms_script_is_written_and_asked_for(
    tmp_path: Path, bootstrap: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    pressed = tmp_path / "pressed"
    pressed.write_text("\n")
    with pressed.open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        main(["drill", str(plan(tmp_path, bootstrap, "[collect]\nplatform = 'docker'\n"))])
    script = tmp_path / "out" / "collect-docker.sh"
    assert "docker" in script.read_text()
    assert f"collect 1 of 1: {script}" in capsys.readouterr().err


def test_copies_keep_folders_of_one_name_apart_and_leave_out_what_is_no_file(
    tmp_path: Path,
) -> None:
    for disk in ("a", "b"):
        (tmp_path / disk / "data").mkdir(parents=True)
        (tmp_path / disk / "data" / "file").write_text(disk)
    os.mkfifo(tmp_path / "a" / "data" / "pipe")
    path = plan(tmp_path, "b:1", '[collect.take]\nbroker-1 = ["a/data", "b/data"]\n')
    for _ in range(2):
        assert len(take(read_plan(path))) == 2
    taken = tmp_path / "out" / "evidence" / "broker-1"
    assert [(taken / name / "file").read_text() for name in ("data", "data-2")] == ["a", "b"]
    assert {p.name for p in taken.rglob("*")} == {"data", "data-2", "file"}
    path = plan(tmp_path, "b:1", '[collect.take]\nx = "none"\n')
    with pytest.raises(NoDrill, match="take x: there is no"):
        take(read_plan(path))


def test_a_command_that_may_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = Step(run="exit 3", may_fail=True)
    assert carry_out("fault 1 of 1", step, tmp_path, {}) == "ended with status 3"
    assert "it may fail" in capsys.readouterr().err


class Fatal(Exception):
    """As the library's error; it says itself whether the producer has ended."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name

    def fatal(self) -> bool:
        return self._name != "_FATAL"


class KafkaException(Exception):
    pass


class Answered:
    def __init__(self, value: str, at: int) -> None:
        self.topic, self.partition, self.offset = (lambda: "t"), (lambda: 0), (lambda: at)
        self.key, self.value = (lambda: b"k"), (lambda: value.encode())


class Forgetful:
    """A library whose only partition loses what is above offset 10 once it has reached 60: its
    idempotent producer ends there, as `raised_by` says. takes: whether records are taken later."""

    KafkaException, KafkaError = KafkaException, Fatal

    def __init__(self, raised_by: str, *, takes: bool = True) -> None:
        self.raised_by, self.takes = raised_by, takes
        self.log_end_offset, self.producers = 0, 0

    def Producer(self, settings: Any, logger: Any) -> "OfForgetful":
        self.producers += 1
        if self.producers > 1:
            self.log_end_offset = 10
        return OfForgetful(self, self.producers)


class OfForgetful:
    def __init__(self, library: Forgetful, number: int) -> None:
        self._library, self._number, self._waiting = library, number, list[Any]()

    def __len__(self) -> int:
        return len(self._waiting)

    def _ended(self, what: str) -> None:
        ends = self._number == 1 and self._library.log_end_offset >= 60
        if ends and what == self._library.raised_by:
            raise KafkaException(Fatal("_FATAL" if what == "produce" else "OUT_OF_ORDER"))

    def produce(self, topic: str, value: str, key: str, partition: int, on_delivery: Any) -> None:
        self._ended("produce")
        self._waiting.append((value, on_delivery))

    def poll(self, _: float) -> None:
        self._ended("poll")
        self.flush(0)

    def flush(self, _: float) -> int:
        if self._number > 1 and not self._library.takes:
            return len(self._waiting)
        while self._waiting:
            value, on_delivery = self._waiting.pop(0)
            on_delivery(None, Answered(value, self._library.log_end_offset))
            self._library.log_end_offset += 1
        return 0

    def purge(self) -> None:
        self._waiting.clear()


def loaded(folder: Path, library: Forgetful, seconds: float) -> RunningLoad:
    load = RunningLoad(library, read_plan(plan(folder, "b:1")), {}, folder / "acks", "run")
    load.start()
    end = time.monotonic() + 10
    while load.running_for < seconds or library.producers == 1:
        assert time.monotonic() < end
        time.sleep(0.01)
    load.stop(1)
    return load


@pytest.mark.parametrize("raised_by", ["produce", "poll"])
def test_the_load_outlives_its_idempotent_producer(tmp_path: Path, raised_by: str) -> None:
    """A cluster that lost acknowledged records ends the producer, just where it matters."""
    library = Forgetful(raised_by)
    load = loaded(tmp_path, library, 0.6)
    assert (load.renewed, library.producers) == (1, 2)
    assert load.sent == load.acknowledged == load.log.noted > 100


def test_each_partition_grows_past_what_was_acknowledged(tmp_path: Path) -> None:
    """Records were lost from 10 on and the load ends at once: all of them have another one in
    their place then."""
    library = Forgetful("poll")
    load = loaded(tmp_path, library, 0)
    assert library.log_end_offset > 60
    assert load.not_grown == {}


def test_a_partition_that_takes_no_more_is_named(tmp_path: Path) -> None:
    library = Forgetful("poll", takes=False)
    load = loaded(tmp_path, library, 0)
    assert list(load.not_grown) == [("t", 0)]
    assert load.not_grown["t", 0] >= 59
