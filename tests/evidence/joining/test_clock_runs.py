"""Where a broker's clock was set back, and where files were only put together."""

from pathlib import Path

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.collecting.broker_text_log import BrokerLog, read_log
from replication.evidence.joining.clock_runs import clock_runs
from replication.evidence.joining.clocks import Clocks, clocks_set_back
from replication.evidence.joining.logs_by_clock import ClockAhead, settled
from replication.evidence.joining.one_cluster import ClusterEvidence, with_logs_in_utc
from tests.evidence.joining.lines import acknowledged, line, process

MINUTE = 60_000
HOUR = 60 * MINUTE


def led(at: int, leader_epoch: int) -> LogLineFact:
    return line("became_leader", at=at, leader_epoch=leader_epoch)


def cut(at: int) -> LogLineFact:
    return line("truncated", at=at, to_offset=0)


def start(at: int) -> LogLineFact:
    return process("process_started", at=at)


def file(name: str, *facts: LogLineFact) -> BrokerLog:
    path = f"broker-1/{name}"
    told = [f._replace(path=path, line=n, broker=None) for n, f in enumerate(facts, 1)]
    log = read_log(Path(path), told, None, [])
    log.broker = 1
    return log


def begins(*logs: BrokerLog) -> list[tuple[str, int]]:
    """(file, line) of each line behind which another clock goes on."""
    runs = clock_runs(logs)
    return [] if runs is None else [(Path(s.path).name, s.line) for s in runs.set_back]


SET_BACK = {
    "leader epochs rise all the same": [
        file("server.log", cut(HOUR), led(HOUR, 0), cut(0), led(MINUTE, 1)),
    ],
    "the same kinds of lines go on": [
        file("server.log", cut(HOUR), cut(2 * HOUR), cut(HOUR + 1), cut(HOUR + MINUTE)),
    ],
    "a piece of a rotated log began before": [
        file("server.log", start(0), cut(MINUTE)),
        file("server.log.2026-11-26-11", start(5 * HOUR), cut(6 * HOUR)),
    ],
}
PUT_TOGETHER = {
    "the same log once more": [file("server.log", cut(0), cut(HOUR), cut(0), cut(HOUR))],
    "a log of another logger": [
        file("all.log", cut(0), process("stopping", at=HOUR), led(MINUTE, 0), led(HOUR, 1)),
    ],
    "an older piece behind the newer one": [
        file("all.log", cut(2 * HOUR), cut(3 * HOUR), cut(0), cut(2 * HOUR - 1000)),
    ],
    "leader epochs fall": [file("all.log", led(HOUR, 2), led(2 * HOUR, 3), led(0, 0))],
    "pieces of which the newest has the highest number": [
        file("server.log.1", cut(0), cut(1)), file("server.log.2", cut(HOUR), cut(HOUR + 1)),
        file("server.log", cut(2 * HOUR)),
    ],
    "a copy of another file behind the controller's lines": [
        file("collected.log", start(HOUR), start(0), cut(MINUTE)),
        file("server.log", start(0), cut(MINUTE)),
    ],
    "lines of two threads": [file("server.log", cut(900), cut(100))],
}  # fmt: skip


@pytest.mark.parametrize("name", SET_BACK)
def test_a_clock_was_set_back(name: str) -> None:
    assert len(begins(*SET_BACK[name])) == 1


@pytest.mark.parametrize("name", PUT_TOGETHER)
def test_files_were_put_together(name: str) -> None:
    assert begins(*PUT_TOGETHER[name]) == []


def test_what_one_file_of_a_broker_tells_counts_for_its_others() -> None:
    server = file("server.log", led(2 * HOUR, 0), cut(2 * HOUR), cut(HOUR), led(2 * HOUR, 1))
    other = file("state-change.log", led(2 * HOUR, 0), led(HOUR, 0))
    quiet = file("controller.log", cut(HOUR + MINUTE))
    runs = clock_runs([server, other, quiet])
    assert runs is not None
    told = {Path(path).name: places for path, places in runs.by_file.items()}
    assert told == {
        "server.log": [(1, 0), (3, 1)], "state-change.log": [(1, 0), (2, 1)],
        "controller.log": [(1, 1)],
    }  # fmt: skip


def test_lines_of_a_clock_that_was_set_back_stand_in_the_order_of_their_file() -> None:
    log = file("server.log", led(HOUR, 0), led(2 * HOUR, 1), start(0), led(MINUTE, 2))
    notes: list[str] = []
    (moved,) = Clocks([], None, None, []).in_utc([log], notes)
    facts = sorted((f for packed in moved.lines for f in packed), key=lambda f: f.at or 0)
    assert [f.fields["leader_epoch"] for f in facts] == [0, 1, 2]
    assert (facts[1].at or 0) < (moved.processes[0].at or 0) < (facts[2].at or 0)
    assert "line 3: the clock of broker 1 was set back, by 2:00:00 or more" in notes[0]


def test_with_a_zone_that_is_told_only_clocks_that_were_set_are_in_doubt() -> None:
    evidence = ClusterEvidence("", acknowledgements=(acknowledged("a"),))
    log = file("server.log", led(HOUR, 0), led(2 * HOUR, 1), start(0), led(MINUTE, 2))
    for logs, compare, said in (((log,), False, 2), ((file("server.log", cut(0)),), True, 0)):
        cluster = ClusterEvidence("", logs=logs, acknowledgements=evidence.acknowledgements)
        held, notes = with_logs_in_utc(cluster, [], zone_is_told=True)
        assert (held.clocks_compare, len(notes)) == (compare, said)
    assert clocks_set_back([log])


ANY = (-(1 << 60), 1 << 60)


@pytest.mark.parametrize(
    ("clocks", "moved"),
    [
        # Nothing tells: each goes on where the one before ended.
        ([ClockAhead(0, 100, None, ANY), ClockAhead(40, 90, None, ANY)], [0, -61]),
        # The second one's is known: the first ended before.
        ([ClockAhead(500, 600, None, ANY), ClockAhead(40, 90, 0, ANY)], [561, 0]),
        # Other brokers' lines tell between which bounds it is.
        ([ClockAhead(0, 100, 0, ANY), ClockAhead(40, 90, None, (-500, -200))], [0, -200]),
        ([ClockAhead(0, 100, None, (50, 60)), ClockAhead(40, 90, None, ANY)], [50, -11]),
    ],
)
def test_by_how_much_each_clock_is_moved(clocks: list[ClockAhead], moved: list[int]) -> None:
    assert settled(clocks, 0) == moved


def test_lines_that_are_read_behind_those_that_follow_them_set_no_clock_back() -> None:
    """Small files are read twice: the second time for what a reader of whole logs leaves out."""
    facts = [cut(0), cut(HOUR), cut(MINUTE)]
    told = [f._replace(line=n, path="server.log") for n, f in zip((1, 9, 5), facts, strict=True)]
    assert len(read_log(Path("server.log"), told, None, []).runs) == 1
