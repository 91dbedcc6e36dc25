"""A broker's log that was broken at a width tells what it told before."""

import random
from pathlib import Path

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact, read_broker_log
from replication.evidence.broker_logs.wrapped_lines import WholeLines, whole_lines
from tests.changed_evidence import INCIDENTS, broker_logs
from tests.rewritten_logs import folded_at

LOGS = [
    log
    for incident in ("last_replica_standing__4.1.1__elr_off", "acks1_loss__1.1.1__trace")
    for log in sorted(broker_logs(INCIDENTS / incident))
]


def facts(log: Path) -> list[object]:
    """What a log tells, with the numbers of its lines left out."""
    return [
        fact._replace(line=0, path="") if isinstance(fact, LogLineFact) else fact.reason
        for fact in read_broker_log(log)
    ]


@pytest.mark.parametrize("width", [100, 120, 200])
@pytest.mark.parametrize("at_words", [True, False])
@pytest.mark.parametrize("prefix", ["", "kafka-1  | "])
def test_broken_logs_tell_what_they_told(
    tmp_path: Path, width: int, at_words: bool, prefix: str
) -> None:
    """prefix: what a collector put before each line, before it was broken."""
    told = 0
    for number, log in enumerate(LOGS):
        lines = log.read_text().split("\n")
        broken = tmp_path / f"{number}.log"
        broken.write_text(
            "\n".join(p for line in lines for p in folded_at(prefix + line, width, at_words))
        )
        before, now = facts(log), facts(broken)
        # Of a word of over 40 letters nobody can tell whether it was broken: its line is not read.
        assert len(now) == len(before), log
        read = [fact for fact in now if isinstance(fact, LogLineFact)]
        assert [fact for fact in read if fact not in before] == [], log
        told += len(read)
    assert told > 300


def test_whole_logs_are_left_as_they_are() -> None:
    assert LOGS
    for log in LOGS:
        assert whole_lines([line for line in log.read_bytes().splitlines() if line.strip()]) is None


def test_blocks_may_end_in_the_midst_of_a_line_and_no_line_loses_its_number() -> None:
    text = b"".join(log.read_bytes() for log in LOGS[:4])
    broken = "\n".join(
        p for line in text.decode().split("\n") for p in folded_at(line, 100, at_words=True)
    ).encode()
    lines = broken.splitlines(keepends=True)
    chance = random.Random(5)
    whole, made = WholeLines((100, 100), anywhere=False), b""
    while lines:
        some = chance.randrange(1, 9)
        made += whole(b"".join(lines[:some]))
        lines = lines[some:]
    assert made == WholeLines((100, 100), anywhere=False)(broken)
    assert [x for x in made.splitlines() if x[:2] == b"[2"] == [
        x for x in text.splitlines() if x[:2] == b"[2"
    ]
    starts = [n for n, line in enumerate(made.split(b"\n")) if line.startswith(b"[2")]
    assert starts == [n for n, line in enumerate(broken.split(b"\n")) if line.startswith(b"[2")]
