"""Lines of a digest: handed over, they give the answer of the directories that they tell of."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from replication import cli
from replication.evidence import digest
from replication.evidence.digest import DigestLines
from replication.evidence.importer import import_evidence
from replication.evidence.joining.copies import Copy
from replication.evidence.log_directories.digest_lines import (
    SeenDirectory,
    checked,
    directories_of,
    is_digest_lines,
    read_digest_lines,
    subject_of,
)
from replication.evidence.unreadable import Unreadable
from tests.evidence.segment_bytes import Record, batch

INCIDENTS = Path(__file__).parents[1] / "incidents"
TOLD = ("unclean_election__4.1.1", "unclean_election__2.8.2",
        "not_loss_traps__4.3.0__topic_recreated")  # fmt: skip


def lines_of(directory: Path, rounds: int = 1) -> list[str]:
    found: list[str] = []
    lines = DigestLines(str(directory), 60, found.append)
    for _ in range(rounds):
        lines.tell()
    return found


def last_directories(incident: Path) -> list[Path]:
    """Of each broker the directory as it was copied last."""
    return sorted(p for p in incident.glob("*/disk-final") if p.is_dir())


def verdicts(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    cli.main(["diagnose", "--format", "json", str(folder)])
    answer = json.loads(capsys.readouterr().out)
    return {
        (v["topic"], v["partition"], v["topic_id"], v["invariant"]): v["verdict"]
        for v in answer["verdicts"]
    }


@pytest.mark.parametrize("incident", TOLD)
def test_the_lines_give_the_verdicts_of_the_directories(
    incident: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But for what only the records' bytes tell, which lines do not carry."""
    chance = random.Random(5)
    copied, told = tmp_path / "copied", tmp_path / "told"
    for folder in (copied, told):
        shutil.copytree(INCIDENTS / incident, folder)
        (folder / "truth.json").unlink()
        (folder / "acks.jsonl").unlink(missing_ok=True)
        for other in [p for p in folder.glob("*/disk-*") if p.name != "disk-final"]:
            shutil.rmtree(other)
    assert last_directories(told)
    for directory in last_directories(told):
        lines = lines_of(directory)
        lines += chance.sample(lines, len(lines) // 3)
        chance.shuffle(lines)
        (directory.parent / "digest.out").write_text("\n".join(lines) + "\n")
        shutil.rmtree(directory)
    assert verdicts(told, capsys) == verdicts(copied, capsys)


class Beside:
    """A log directory that changes beside a digest process, and all that this has printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed: list[dict[str, Any]] = []
        self.lines = DigestLines(
            str(folder), 60, lambda text: self.printed.append(json.loads(text))
        )
        self.write("meta.properties", "version=1\nnode.id=3\ncluster.id=c\n")
        self.write("t-0/partition.metadata", "version: 0\ntopic_id: 4Uu25ilRQ3mamw4tl1E6PA")
        self.epochs((0, 0))
        self.log(batch(0), batch(1))

    def write(self, name: str, content: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def epochs(self, *entries: tuple[int, int]) -> None:
        rows = "".join(f"{entry} {start}\n" for entry, start in entries)
        self.write("t-0/leader-epoch-checkpoint", f"0\n{len(entries)}\n{rows}")
        old = 1_700_000_000
        os.utime(self.folder / "t-0/leader-epoch-checkpoint", (old, old))

    def log(self, *batches: bytes) -> None:
        self.write("t-0/00000000000000000000.log", b"".join(batches))

    def round(self) -> list[dict[str, Any]]:
        self.printed.clear()
        self.lines.tell()
        return [line for line in self.printed if line["what"] != "directory"]

    def tell(self, out: Path) -> None:
        """One more round, whose lines are added to a file."""
        self.round()
        with out.open("a") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in self.printed)

    def told(self) -> dict[str, Any]:
        [line] = [line for line in self.round() if line["what"] == "partition"]
        return line


def test_only_what_has_changed_is_told_and_that_the_process_lives(tmp_path: Path) -> None:
    beside = Beside(tmp_path)
    first = beside.told()
    assert (first["log_end_offset"], first["leader_epochs"]) == (2, [[0, 0]])
    assert first["topic_id"] == "4Uu25ilRQ3mamw4tl1E6PA"
    assert beside.round() == []
    assert [line["what"] for line in beside.printed] == ["directory"]
    beside.log(batch(0), batch(1), batch(2))
    assert beside.told()["log_end_offset"] == 3
    shutil.rmtree(tmp_path / "t-0")
    assert [(line["what"], line["name"]) for line in beside.round()] == [("gone", "t-0")]


def test_what_is_gone_is_told_in_the_round_that_tells_all_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "ROUNDS_UNTIL_ALL", 1)
    beside = Beside(tmp_path)
    beside.write(".lock", "")
    beside.round()
    shutil.rmtree(tmp_path / "t-0")
    [gone] = beside.round()
    assert (gone["what"], gone["emptied"]) == ("gone", False), "a broker may have deleted it"
    assert gone["topic_id"] == "4Uu25ilRQ3mamw4tl1E6PA"
    beside.log(batch(0))
    beside.round()
    for name in ("t-0", ".lock"):
        shutil.rmtree(tmp_path / name) if name == "t-0" else (tmp_path / name).unlink()
    assert [line["emptied"] for line in beside.round()] == [True]


LOG = {"topic_id": None, "log_start_offset": 0, "log_end_offset": 5, "leader_epochs": [[0, 0]],
       "high_watermark": None, "recovery_point": None}  # fmt: skip


def seen(*lines: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """What is known of t-0 by the lines of broker 3's directories: log end, told at, read at."""
    whole = [
        {"replication_digest": 1, "n": n, "started": 0, "directory": "/a", "path": "x"} | line
        for n, line in enumerate(lines, 1)
    ]
    found = [p for d in directories_of(whole, Path()) for p in d.partitions]
    return {
        p.path.name: (p.log_end_offset or 0, p.told_at, p.read_at)
        for p in found
        if isinstance(p, SeenDirectory)
    }


def at(moment: int, what: str, **more: Any) -> dict[str, Any]:
    return {"at": moment, "what": what} | (
        {"name": "t-0"} if what in ("partition", "gone") else {"meta": "broker.id=3\nversion=0\n"}
    ) | more  # fmt: skip


HELD = at(1, "partition", **LOG)


def test_what_checkpoints_say_later_says_nothing_of_when_the_log_had_grown_so_far() -> None:
    """It had five records at 3; that five were committed, in a later epoch, was printed at 7."""
    later = {"high_watermark": 5, "leader_epochs": [[0, 0], [2, 5]]}
    line = at(7, "partition", **{**LOG, **later}, grown=[[2, 4], [3, 5]])
    line |= {"replication_digest": 1, "n": 1, "started": 0, "directory": "/a", "path": "x"}
    (parent,) = directories_of([line, {**line, **at(9, "directory"), "n": 2}], Path())
    copy = Copy(3, parent.partitions[0], parent, clean=True)
    assert [one.clean for one in copy.sightings()] == [False, False, False, True]
    found = [one.directory for one in copy.sightings()]
    assert [(one.read_at, one.log_end_offset, one.high_watermark) for one in found] == [
        (2, 4, None), (3, 5, None), (7, 5, 5), (9, 5, 5),
    ]  # fmt: skip
    assert [len(one.epoch_entries or ()) for one in found] == [1, 1, 2, 2]


def test_a_replica_that_somebody_took_away_holds_nothing_from_then_on() -> None:
    gone = at(2, "gone", emptied=True)
    assert seen(HELD, at(1, "directory")) == {"t-0": (5, 1, 1)}
    assert seen(HELD, at(1, "directory"), gone, at(9, "directory")) == {"t-0": (0, 2, 9)}
    # With its meta.properties: whose it was, an older line tells.
    emptied = at(9, "directory", meta=None)
    assert seen(HELD, at(1, "directory"), gone, emptied) == {"t-0": (0, 2, 9)}
    assert (
        len({subject_of(line | {"directory": "/a"}) for line in (emptied, at(1, "directory"))}) == 2
    )
    # A broker that runs deletes what it is told to, and moves logs to other directories.
    assert seen(HELD, at(2, "gone", emptied=False), at(9, "directory")) == {}
    other = {"directory": "/b"}
    there = [HELD | other | {"at": 3}, at(4, "directory", **other)]
    assert seen(HELD, *there, gone, at(9, "directory")) == {"t-0": (5, 3, 4)}
    deleted = at(2, "partition", **LOG) | {"name": "t-0.0123456789abcdef0123456789abcdef-delete"}
    assert "t-0" not in seen(HELD, deleted, gone, at(9, "directory"))
    # Another directory has not been looked at since: it may have been put there.
    assert seen(HELD, at(1, "directory", **other), gone, at(9, "directory")) == {}


def test_an_older_digest_tells_by_the_directory_whether_a_broker_took_it_away() -> None:
    for runs, left in ((False, {"t-0": (0, 2, 9)}), (True, {}), (None, {})):
        assert seen(HELD, at(2, "gone"), at(9, "directory", broker_runs=runs)) == left


def test_a_process_that_began_anew_and_told_all_leaves_out_what_is_gone() -> None:
    anew = {"started": 7}
    stays = {"t-0": (5, 1, 1)}
    assert seen(HELD, at(8, "directory", partitions=1, **anew)) == stays, "a line is on its way"
    down = at(8, "directory", partitions=0, broker_runs=False, **anew)
    assert seen(HELD, down) == {"t-0": (0, 7, 8)}
    assert seen(HELD, at(8, "directory", partitions=0, broker_runs=True, **anew)) == {}


def test_a_line_says_where_the_log_ended_in_the_last_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, now = Beside(tmp_path), 1_700_000_000_000

    def grown_at(seconds: int, *batches: bytes) -> list[list[int]]:
        monkeypatch.setattr(digest, "_now", lambda: now + 1000 * seconds)
        beside.log(*batches)
        return [[(at - now) // 1000, end] for at, end in beside.told()["grown"]]

    three = [batch(0), batch(1), batch(2)]
    assert grown_at(0, *three[:1]) == [[0, 1]]
    assert grown_at(1, *three[:2]) == [[0, 1], [1, 2]]
    monkeypatch.setattr(digest, "_now", lambda: now + 2000)
    assert beside.round() == []
    assert grown_at(5, *three) == [[1, 2], [5, 3]]
    # What was cut since does not count.
    assert grown_at(6, *three[:2]) == [[6, 2]]
    assert grown_at(7, *three) == [[6, 2], [7, 3]]
    beside.epochs((0, 0), (1, 1))
    assert grown_at(8, three[0], batch(1, leader_epoch=1), batch(2, leader_epoch=1)) == [[8, 3]]


def test_a_cut_and_other_records_in_its_place_are_seen(tmp_path: Path) -> None:
    """The file is longer than where it was read to, and what stands there is something else."""
    beside = Beside(tmp_path)
    beside.told()
    beside.epochs((0, 0), (1, 1))
    long = batch(1, *[Record(value=b"x" * 90)] * 9, leader_epoch=1)
    beside.log(batch(0), long, batch(10, leader_epoch=1))
    told = beside.told()
    assert (told["log_end_offset"], told["leader_epochs"]) == (11, [[0, 0], [1, 1]])


def test_a_torn_tail_is_not_counted_until_it_is_whole(tmp_path: Path) -> None:
    beside = Beside(tmp_path)
    beside.log(batch(0), batch(1), batch(2)[:30])
    assert beside.told()["log_end_offset"] == 2
    beside.log(batch(0), batch(1), batch(2))
    assert beside.told()["log_end_offset"] == 3


def test_epochs_that_do_not_fit_the_log_wait_for_the_next_round(tmp_path: Path) -> None:
    beside = Beside(tmp_path)
    beside.told()
    beside.log(batch(0), batch(1), batch(2, leader_epoch=4))
    assert beside.round() == []
    beside.epochs((0, 0), (4, 2))
    assert beside.told()["leader_epochs"] == [[0, 0], [4, 2]]


def test_a_high_watermark_from_before_the_last_cut_says_nothing(tmp_path: Path) -> None:
    beside = Beside(tmp_path)
    beside.write("replication-offset-checkpoint", "0\n1\nt 0 2\n")
    assert beside.told()["high_watermark"] == 2
    now = time.time()
    os.utime(tmp_path / "t-0/leader-epoch-checkpoint", (now, now))
    assert beside.told()["high_watermark"] is None


def test_what_cannot_be_read_is_a_line(tmp_path: Path) -> None:
    beside = Beside(tmp_path)
    (tmp_path / "t-0/00000000000000000000.log").unlink()
    (tmp_path / "t-0/00000000000000000000.log").mkdir()
    [line] = beside.round()
    assert (line["what"], line["name"]) == ("error", "t-0")
    path = tmp_path / "lines"
    path.write_text("\n".join(map(json.dumps, beside.printed)))
    read = [line for line in read_digest_lines(path) if not isinstance(line, Unreadable)]
    [directory] = directories_of(read, tmp_path)
    assert directory.meta is not None
    assert [u.where for u in directory.unreadable] == ["file"]


def test_lines_in_any_order_from_several_files_are_the_newest_state(tmp_path: Path) -> None:
    beside = Beside(tmp_path / "data")
    everything: list[dict[str, Any]] = []
    for end in range(2, 9):
        beside.log(*[batch(n) for n in range(end)])
        beside.round()
        everything += beside.printed
    for seed in range(5):
        lines = everything + everything[::3]
        random.Random(seed).shuffle(lines)
        files = [tmp_path / f"{seed}-{n}" for n in range(2)]
        for n, path in enumerate(files):
            path.write_text("\n".join(json.dumps(line) for line in lines[n::2]))
        read = [line for path in files for line in read_digest_lines(path)]
        [directory] = directories_of([r for r in read if not isinstance(r, Unreadable)], tmp_path)
        [partition] = directory.partitions
        assert isinstance(partition, SeenDirectory)
        assert (partition.log_end_offset, partition.spans) == (8, ((0, 0, 8),))
        assert partition.read_at == max(line["at"] for line in everything)


def test_the_metadata_log_is_put_together_as_it_grows(tmp_path: Path) -> None:
    folder = tmp_path / "kraft"
    name = "__cluster_metadata-0/00000000000000000000.log"
    (folder / "__cluster_metadata-0").mkdir(parents=True)
    (folder / "meta.properties").write_text("version=1\nnode.id=100\ncluster.id=c\n")
    whole = bytes(range(256)) * 40
    printed: list[dict[str, Any]] = []
    lines = DigestLines(str(folder), 60, lambda text: printed.append(json.loads(text)))
    for end in (5, 4_096, 5_000, len(whole)):
        (folder / name).write_bytes(whole[:end])
        lines.tell()
    pieces = [line for line in printed if line["what"] == "metadata"]
    assert sum(len(line["base64"]) for line in pieces) < 1.4 * len(whole), "each byte once"
    random.Random(1).shuffle(printed)
    [directory] = directories_of([{**line, "path": "x"} for line in printed], tmp_path / "work")
    assert directory.has_cluster_metadata is not None
    assert (directory.has_cluster_metadata / Path(name).name).read_bytes() == whole


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", '{"replication_digest": 2}', '{"replication_digest": 1, "n": "1"}'],
)
def test_what_is_no_such_line_says_why(text: str) -> None:
    assert isinstance(checked(text), str)


def test_the_file_runs_alone_and_ends_when_told(tmp_path: Path) -> None:
    beside = Beside(tmp_path / "data")
    script = tmp_path / "digest.py"
    shutil.copy(digest.__file__, script)
    command = [sys.executable, "-I", str(script), str(beside.folder), "--every", "0.1"]
    process = subprocess.Popen([*command, "--to-stdout"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert {line["what"] for line in first} == {"partition", "directory"}
    process.terminate()
    assert process.wait(20) == 0
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
    saved = tmp_path / "saved"
    saved.write_text("\n".join(map(json.dumps, first)))
    assert is_digest_lines(saved)


HOLDS_LOCK = """
import fcntl, sys
lock = open(sys.argv[1], "ab")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def of_broker(beside: Beside, out: Path) -> tuple[bool | None, bool]:
    """What a round says of the broker: whether it runs, and whether the events tell of a crash."""
    beside.tell(out)
    events = import_evidence([out]).events()
    return beside.printed[-1]["broker_runs"], any(e.fact.kind == "replica_stopped" for e in events)


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="locks are asked for as Linux does"
)
def test_a_broker_that_is_gone_without_a_clean_stop_has_crashed(tmp_path: Path) -> None:
    beside, out = Beside(tmp_path / "data"), tmp_path / "lines"
    assert of_broker(beside, out) == (None, False)
    # Of a lock that nobody was seen to hold, as in a copied directory, nothing is said.
    beside.write(".lock", "")
    assert of_broker(beside, out) == (None, False)
    command = [sys.executable, "-c", HOLDS_LOCK, str(beside.folder / ".lock")]
    for ends_cleanly in (False, True):
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as broker:
            assert broker.stdout is not None
            assert broker.stdout.readline() == "locked\n"
            assert of_broker(beside, out) == (True, False)
            assert beside.printed[-1]["down_since"] is None
            if ends_cleanly:
                beside.write(".kafka_cleanshutdown", '{"version":0,"brokerEpoch":7}')
        assert of_broker(beside, out) == (False, not ends_cleanly)
        since = beside.printed[-1]["down_since"]
        assert since <= beside.printed[-1]["at"]
        beside.tell(out)
        assert beside.printed[-1]["down_since"] == since


def stopped_at(tmp_path: Path, *lines: dict[str, Any]) -> list[tuple[str, int | None]]:
    """What events tell of a replica's log and of its broker's end, and of when."""
    out = tmp_path / "lines"
    whole = [
        {"replication_digest": 1, "n": n, "started": 0, "directory": "/a"} | line
        for n, line in enumerate(lines, 1)
    ]
    out.write_text("".join(json.dumps(line) + "\n" for line in whole))
    kinds = "replica_log_observed", "replica_stopped"
    return [
        (e.fact.kind, e.observed_at) for e in import_evidence([out]).events()
        if e.fact.kind in kinds
    ]  # fmt: skip


def test_a_broker_is_down_since_the_first_round_that_saw_it(tmp_path: Path) -> None:
    def down(now: int, **more: Any) -> dict[str, Any]:
        gone = {"broker_runs": False, "down_since": 40, "clean_shutdown": None}
        return at(now, "directory", **gone) | more

    told = [("replica_log_observed", 1), ("replica_log_observed", 40), ("replica_stopped", 40)]
    for now in (41, 100, 9_000):
        assert stopped_at(tmp_path, HELD, down(now)) == told
    # All is told again after some rounds: it was so already.
    again = HELD | {"at": 8_000}
    assert stopped_at(tmp_path, HELD, again, down(9_000)) == told[1:]
    # It ran once more, unseen, and its log grew.
    grown = HELD | {"at": 8_000, "log_end_offset": 6, "grown": [[70, 5], [80, 6]]}
    assert stopped_at(tmp_path, HELD, grown, down(9_000))[-1] == ("replica_stopped", 80)
    # An older digest says nothing of it, a later round that it runs.
    assert stopped_at(tmp_path, HELD, down(100, down_since=None))[-1] == ("replica_stopped", 100)
    runs = down(100, broker_runs=True, down_since=None)
    assert [kind for kind, _ in stopped_at(tmp_path, HELD, runs)] == ["replica_log_observed"] * 2
    # What was taken away later was not gone by then.
    taken = [at(60, "gone", emptied=True), down(9_000, partitions=0)]
    assert stopped_at(tmp_path, HELD, *taken) == [
        ("replica_log_observed", 60), ("replica_stopped", 60)
    ]  # fmt: skip
