"""`make bench` fails where a figure beside its yardstick falls by more than a fifth."""

from pathlib import Path

import pytest

from benchmarks import all as bench
from benchmarks import figures

COST = "stream: an event of 10,000 topic partitions costs {} times one of 64 (aim: at most 1.1)"
RATE = "headers: times the rate of kafka-dump-log, aim 5: {} by CPU time (reached)"
SLOW = "504 small files: read at 23 MB a CPU second; {} times the rate of grep -E"


def test_figures_are_those_beside_a_yardstick() -> None:
    lines = [
        COST.format("1.34 (1.20..1.50)"), RATE.format("6.14"), SLOW.format("0.06"),
        "300,050 events of 10 partitions", COST.format("1.40"),
    ]  # fmt: skip
    found = figures.figures_of("streaming", lines)
    assert list(found.values()) == [
        (1.34, "lower"), (6.14, "higher"), (0.06, "higher"), (1.4, "lower"),
    ]  # fmt: skip
    names = [words for _, words in found]
    assert names[0].startswith("stream: an event of # topic partitions costs # times")
    assert names[3] == f"{names[0]} [2]"


@pytest.mark.parametrize(
    ("line", "was", "is_now", "falls"),
    [
        (COST, 1.0, 1.19, False), (COST, 1.0, 1.21, True), (COST, 1.0, 0.1, False),
        (RATE, 5.0, 4.1, False), (RATE, 5.0, 3.9, True), (RATE, 5.0, 50, False),
    ],
)  # fmt: skip
def test_a_fall_of_more_than_a_fifth_fails_and_is_not_recorded(
    line: str, was: float, is_now: float, falls: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "figures.csv"
    sound = figures.recorded, figures.record
    monkeypatch.setattr(figures, "recorded", lambda: sound[0](path))
    monkeypatch.setattr(figures, "record", lambda commit, found: sound[1](commit, found, path))
    assert bench.compared({"x": [line.format(was)]}, "aaa", False) == 0
    assert bench.compared({"x": [line.format(is_now)]}, "bbb", False) == int(falls)
    assert ("at aaa" in capsys.readouterr().out) == falls
    assert ("bbb" in path.read_text()) != falls
    if falls:
        assert bench.compared({"x": [line.format(is_now)]}, "bbb", True) == 0
        assert bench.compared({"x": [line.format(is_now)]}, "ccc", False) == 0


def test_the_figures_of_the_results_are_recorded() -> None:
    assert len(figures.recorded()) >= 10
