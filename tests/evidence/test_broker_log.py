"""The reader of broker logs: layouts, time, places, bounds, and every captured incident."""

import bz2
import gzip
import json
import lzma
import random
import re
import tracemalloc
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact, is_broker_log, read_broker_log
from replication.evidence.unreadable import Unreadable

INCIDENTS = Path(__file__).parents[1] / "incidents"
LOGS = sorted(
    path
    for path in INCIDENTS.glob("*/*/*.log*")
    if not re.search(r"/\d{20}", str(path)) and path.stat().st_size
)

MESSAGE = "[Partition t-0 broker=1] ISR updated to 1,2  and version updated to 3"
LOGGER = "kafka.cluster.Partition"
AT = 1795187850518  # 2026-11-20 15:17:30.518 UTC
LINE = f"[2026-11-20 15:17:30,518] INFO {MESSAGE} ({LOGGER})"
OTHER = "[2026-11-20 15:17:30,518] INFO Awaiting socket connections (kafka.network.Acceptor)"


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(path: Path, **named: object) -> list[LogLineFact | Unreadable]:
    return list(read_broker_log(path, **named))  # type: ignore[arg-type]


def facts(path: Path, **named: object) -> list[LogLineFact]:
    answers = read(path, **named)
    assert [answer for answer in answers if isinstance(answer, Unreadable)] == []
    return [answer for answer in answers if isinstance(answer, LogLineFact)]


def the_fact(path: Path, **named: object) -> LogLineFact:
    (only,) = facts(path, **named)
    assert only.kind == "isr_updated"
    assert only.fields == {"isr": (1, 2), "partition_epoch": 3}
    assert (only.broker, only.topic, only.partition) == (1, "t", 0)
    assert only.path == str(path)
    return only


def test_plain(tmp_path: Path) -> None:
    fact = the_fact(write(tmp_path / "server.log", OTHER, LINE))
    assert (fact.at, fact.line) == (AT, 2)


DOCKER_JSON = json.dumps(
    {"log": LINE + "\n", "stream": "stdout", "time": "2026-11-20T15:17:30.6Z"},
    separators=(",", ":"),
)
LAYOUTS = {
    "iso": f"[2026-11-20T15:17:30.518] INFO {MESSAGE} ({LOGGER})",
    "iso with zone": f"[2026-11-20T16:17:30.518+01:00] INFO {MESSAGE} ({LOGGER})",
    "iso, zulu, no brackets": f"2026-11-20T15:17:30.518Z INFO {MESSAGE} ({LOGGER})",
    "nanoseconds": f"[2026-11-20T15:17:30,518999999Z] INFO {MESSAGE} ({LOGGER})",
    "padded level": f"[2026-11-20 15:17:30,518] INFO  {MESSAGE} ({LOGGER})",
    "level in brackets": f"[2026-11-20 15:17:30,518] [INFO] {MESSAGE} ({LOGGER})",
    "thread behind": f"2026-11-20 15:17:30,518 INFO {MESSAGE} ({LOGGER}) [kafka-scheduler-1]",
    "logger: message": f"2026-11-20 15:17:30,518 INFO {LOGGER}: {MESSAGE}",
    "thread and logger": f"2026-11-20 15:17:30,518 INFO  [main] {LOGGER}:66 - {MESSAGE}",
    "thread before level": f"2026-11-20 15:17:30,518 [main] INFO {LOGGER} - {MESSAGE}",
    "no logger": f"[2026-11-20 15:17:30,518] INFO {MESSAGE}",
    "short logger": f"[2026-11-20 15:17:30,518] INFO {MESSAGE} (Partition)",
    "docker logs -t": f"2026-11-20T15:17:31.000000001Z {LINE}",
    "docker json-file": DOCKER_JSON,
    "docker compose": f"kafka-1  | {LINE}",
    "docker compose with times": f"kafka-1  | 2026-11-20T15:17:31.000000001Z {LINE}",
    "containerd": f"2026-11-20T15:17:31.000000001Z stdout F {LINE}",
    "journald": f"Nov 20 15:17:31 host1 kafka[123]: {LINE}",
    "journald iso": f"2026-11-20T15:17:31+0000 host1 kafka-server-start.sh[123]: {LINE}",
    "journald dates it": f"2026-11-20T15:17:30.518+0000 host1 kafka[1]: INFO {MESSAGE} ({LOGGER})",
    "log4j 2 JsonTemplate": json.dumps(
        {"@timestamp": "2026-11-20T15:17:30.518Z", "log.level": "INFO", "message": MESSAGE}
        | {"log.logger": LOGGER}
    ),
    "log4j 2 JsonLayout": json.dumps(
        {"instant": {"epochSecond": 1795187850, "nanoOfSecond": 518000000}, "level": "INFO"}
        | {"loggerName": LOGGER, "message": MESSAGE}
    ),
    "confluent json": json.dumps(
        {"level": "INFO", "timestamp": AT, "logger": LOGGER, "message": MESSAGE}
    ),
    "json with timeMillis": json.dumps(
        {"timeMillis": AT, "loggerName": LOGGER, "message": MESSAGE}, separators=(",", ":")
    ),
    "collector wraps the line": json.dumps({"kubernetes": {"pod": "k"}, "message": LINE}),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str, tmp_path: Path) -> None:
    """The same line in each layout is the same fact at the same time, in its own line."""
    line = LAYOUTS[name]
    path = write(tmp_path / "server.log", line, line)
    answers = facts(path)
    assert [answer.line for answer in answers] == [1, 2]
    assert {answer.at for answer in answers} == {AT}
    assert {(answer.kind, answer.topic, answer.broker) for answer in answers} == {
        ("isr_updated", "t", 1)
    }
    if name not in ("no logger", "short logger"):
        assert is_broker_log(path)


def test_layout_without_a_date(tmp_path: Path) -> None:
    path = write(tmp_path / "server.log", f"15:17:30,518 INFO {MESSAGE} ({LOGGER})")
    assert the_fact(path).at is None


@pytest.mark.parametrize(("year", "at"), [(2026, AT - 518), (None, None)])
def test_journald_prefix_dates_messages_that_have_no_date(
    year: int | None, at: int | None, tmp_path: Path
) -> None:
    line = f"Nov 20 15:17:30 host1 kafka[123]: INFO {MESSAGE} ({LOGGER})"
    assert the_fact(write(tmp_path / "kafka.log", line), year=year).at == at


@pytest.mark.parametrize(
    ("printed", "utc"),
    [
        (["01:59", "02:00", "02:30", "02:59", "02:00", "02:30", "02:59", "03:00"],
         ["23:59", "00:00", "00:30", "00:59", "01:00", "01:30", "01:59", "02:00"]),
        # Nothing was written in the hour's first half, or two threads of one minute's end.
        (["01:10", "02:59", "02:40"], ["23:10", "00:59", "01:40"]),
        (["02:30", "02:29", "02:31"], ["00:30", "00:29", "00:31"]),
    ],
)  # fmt: skip
def test_the_hour_that_comes_twice_as_summer_time_ends(
    printed: list[str], utc: list[str], tmp_path: Path
) -> None:
    lines = [f"[2026-10-25 {at}:30,518] INFO {MESSAGE} ({LOGGER})" for at in printed]
    read = facts(write(tmp_path / "server.log", *lines), time_zone=ZoneInfo("Europe/Berlin"))
    told = [datetime.fromtimestamp((fact.at or 0) // 1000, UTC) for fact in read]
    assert [f"{at:%H:%M}" for at in told] == utc


def test_time_zone_is_that_of_the_broker(tmp_path: Path) -> None:
    path = write(tmp_path / "server.log", LINE)
    assert the_fact(path, time_zone=timezone(timedelta(hours=2))).at == AT - 2 * 3600_000
    assert the_fact(path, time_zone=ZoneInfo("America/New_York")).at == AT + 5 * 3600_000
    # A zone in the line wins.
    path = write(tmp_path / "zoned.log", LAYOUTS["iso with zone"])
    assert the_fact(path, time_zone=timezone(timedelta(hours=2))).at == AT


def test_impossible_time_is_no_time(tmp_path: Path) -> None:
    path = write(tmp_path / "server.log", LINE.replace("11-20", "13-40"))
    assert the_fact(path).at is None


@pytest.mark.parametrize(
    ("name", "opener"),
    [("server.log.1.gz", gzip.open), ("server.log.bz2", bz2.open), ("server.log.xz", lzma.open)],
)
def test_packed_and_rotated(name: str, opener: object, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    with opener(path, "wb") as stream:  # type: ignore[operator]
        stream.write((OTHER + "\n" + LINE + "\n").encode())
    assert is_broker_log(path)
    assert the_fact(path).line == 2


def test_cut_gzip_gives_what_is_left_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "server.log.gz"
    noise = random.Random(5)
    lines = [f"{OTHER} {noise.random()}" for _ in range(20_000)]
    whole = gzip.compress("\n".join([LINE, *lines]).encode())
    path.write_bytes(whole[: len(whole) // 2])
    first, last = read(path)
    assert isinstance(first, LogLineFact)
    assert isinstance(last, Unreadable)
    assert "reading stops here" in last.reason


def test_windows_line_ends_and_undecodable_bytes(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    bad = LINE.encode().replace(b"INFO [Part", b"INFO \xff[Part")
    path.write_bytes(bad + b"\r\n" + LINE.encode() + b"\r\n")
    fact = the_fact(path)
    assert (fact.line, fact.at) == (2, AT)


def test_last_line_without_its_end(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text(f"{OTHER}\n{LINE}", encoding="utf-8")
    assert the_fact(path).line == 2


def test_a_last_line_that_the_file_cuts_tells_nothing(tmp_path: Path) -> None:
    """Of "1 to 1,2 (kafka.cluster.Partition)" may be left "1 to 1"."""
    path = tmp_path / "server.log"
    cut = LINE[: LINE.rindex(" (")]
    path.write_text(f"{OTHER}\n{cut}", encoding="utf-8")
    (found,) = read(path)
    assert isinstance(found, Unreadable)
    assert (found.where, found.reason) == ("line 2", "the file ends within this line")
    # One line alone is pasted, not cut.
    path.write_text(cut, encoding="utf-8")
    assert not any(isinstance(each, Unreadable) for each in read(path))


def test_two_brokers_in_one_file(tmp_path: Path) -> None:
    path = write(tmp_path / "all.log", LINE, LINE.replace("broker=1", "broker=2"))
    assert [fact.broker for fact in facts(path)] == [1, 2]


def test_stack_traces_and_quoted_lines_are_passed_over(tmp_path: Path) -> None:
    path = write(
        tmp_path / "server.log",
        "[2026-11-20 15:17:30,518] ERROR Uncaught exception (kafka.server.KafkaRequestHandler)",
        "java.lang.IllegalStateException: " + LINE,
        "\tat kafka.cluster.Partition.x(P.scala:1) ISR updated to 1 (kafka.cluster.Partition)",
        "[2026-11-20 15:17:30,518] INFO They wrote: ISR updated (kafka.cluster.Partition) (x.Y)",
        LINE,
    )
    assert the_fact(path).line == 5


SETTINGS = [
    "\tbroker.id = 1",
    "\tadvertised.listeners = INT://a:1,EXT://b:2",
    "\tnode.id = null",
] + [f"\tsome.setting.{number} = {number}" for number in range(300)]
DUMP = [
    "[2026-11-20 15:17:30,518] INFO KafkaConfig values: ",
    *SETTINGS,
    "\tmin.insync.replicas = 2",
    " (kafka.server.KafkaConfig)",
]


def test_settings_dump(tmp_path: Path) -> None:
    path = write(tmp_path / "server.log", OTHER, *DUMP, LINE)
    dump, after = facts(path)
    assert (dump.kind, dump.line, dump.at) == ("settings", 2, AT)
    assert dump.fields == {"values": {"broker.id": "1", "min.insync.replicas": "2"}}
    assert (after.kind, after.line) == ("isr_updated", 2 + len(DUMP))


@pytest.mark.parametrize(
    "prefix",
    ["kafka-1  | ", "2026-11-20T15:17:31.000000001Z stdout F ", "Nov 20 15:17:31 h k[1]: "],
)
def test_settings_dump_behind_a_prefix(prefix: str, tmp_path: Path) -> None:
    path = write(tmp_path / "server.log", *(prefix + line for line in [*DUMP, LINE]))
    assert [fact.kind for fact in facts(path)] == ["settings", "isr_updated"]


def test_settings_dump_in_docker_json(tmp_path: Path) -> None:
    lines = [json.dumps({"log": line + "\n", "stream": "stdout"}) for line in [*DUMP, LINE]]
    dump, after = facts(write(tmp_path / "x-json.log", *lines))
    assert (dump.kind, dump.fields["values"]["min.insync.replicas"]) == ("settings", "2")
    assert after.line == len(lines)


def test_long_docker_lines_come_in_pieces(tmp_path: Path) -> None:
    pieces = [LINE[:60], LINE[60:] + "\n"]
    lines = [json.dumps({"log": piece, "stream": "stdout"}) for piece in pieces]
    assert the_fact(write(tmp_path / "x-json.log", *lines)).line == 2


def test_every_line_is_found_wherever_blocks_end(tmp_path: Path) -> None:
    """Several blocks, dumps and lines of ours strewn among others: all found, rightly numbered."""
    noise = random.Random(7)
    lines: list[str] = []
    expected: list[tuple[str, int]] = []
    while len(lines) < 60_000:
        draw = noise.random()
        if draw < 0.01:
            expected.append(("isr_updated", len(lines) + 1))
            lines.append(LINE)
        elif draw < 0.011:
            expected.append(("settings", len(lines) + 1))
            lines.extend(DUMP)
        else:
            lines.append(OTHER + " " * noise.randrange(80))
    path = write(tmp_path / "server.log", *lines)
    assert path.stat().st_size > 4 << 20
    assert [(fact.kind, fact.line) for fact in facts(path)] == expected
    packed = tmp_path / "server.log.gz"
    packed.write_bytes(gzip.compress(path.read_bytes(), 1))
    assert [(fact.kind, fact.line) for fact in facts(packed)] == expected


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    with path.open("w", encoding="utf-8") as stream:
        for _ in range(40):
            stream.write((OTHER + "\n") * 6_000 + LINE + "\n")
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_broker_log(path)) == 40
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 18 << 20
    assert peak < 9 << 20


def test_a_line_without_end_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    with path.open("w", encoding="utf-8") as stream:
        stream.write(LINE + "\n")
        stream.write("x" * (20 << 20) + "\n")
        stream.write(LINE + "\n")
    first, given_up, last = read(path)
    assert isinstance(given_up, Unreadable)
    assert "a line of more than" in given_up.reason
    assert isinstance(first, LogLineFact)
    assert isinstance(last, LogLineFact)
    assert (first.line, last.line) == (1, 3)


def test_unknown_wordings_are_listed_and_beyond_fifty_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "server.log", *[LINE.replace("1,2", "everybody")] * 120)
    answers = read(path)
    assert all(isinstance(answer, Unreadable) for answer in answers)
    assert len(answers) == 51
    assert isinstance(answers[0], Unreadable)
    assert answers[0].where == "line 1"
    assert isinstance(answers[-1], Unreadable)
    assert "70 more" in answers[-1].reason


def test_start_of_old_brokers(tmp_path: Path) -> None:
    """Up to 0.11 `starting` is the first line; later it follows another and is no second start."""
    starting = "[2026-11-20 15:17:30,518] INFO starting (kafka.server.KafkaServer)"
    old = write(tmp_path / "old.log", starting, starting)
    assert [fact.kind for fact in facts(old)] == ["process_started", "process_started"]
    first = (
        "[2026-11-20 15:17:30,500] INFO Registered kafka:type=kafka.Log4jController MBean "
        "(kafka.utils.Log4jControllerRegistration$)"
    )
    new = write(tmp_path / "new.log", first, starting, first, starting)
    assert Counter(fact.kind for fact in facts(new)) == {
        "process_started": 2,
        "server_starting": 2,
    }


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (gone,) = read(tmp_path / "missing.log")
    assert isinstance(gone, Unreadable)
    assert not is_broker_log(tmp_path / "missing.log")
    assert not is_broker_log(tmp_path)
    empty = write(tmp_path / "empty.log")
    assert read(empty) == []
    assert not is_broker_log(empty)


@pytest.mark.parametrize(
    "text",
    [
        "just text\nof another kind\n",
        "0\n1\nt 0 20\n",
        '{"ts": "2026-11-20T15:17:30Z", "topic": "t", "partition": 0, "offset": 1}\n',
        "Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n",
        "[2026-11-20 15:17:30,518] INFO ProducerConfig values: "
        "(org.apache.kafka.clients.producer.ProducerConfig)\n",
        "[2026-11-20 15:17:30,518] INFO Started (org.springframework.boot.Application)\n",
        "[0.005s][info][gc] Using Serial\n",
        "\0\0\0\0\0\0\0\0\0\0\0\x2d" + LINE,
    ],
)
def test_other_files_are_no_broker_logs(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text, encoding="utf-8")
    assert not is_broker_log(path)


def test_a_log_that_begins_inside_a_settings_dump(tmp_path: Path) -> None:
    path = write(tmp_path / "server.log.2026-11-20-16", *DUMP[100:], LINE)
    assert is_broker_log(path)
    assert the_fact(path).line == len(DUMP[100:]) + 1


@pytest.mark.parametrize("path", LOGS, ids=lambda path: "/".join(path.parts[-3:]))
def test_captured_logs_are_read_without_a_doubt(path: Path) -> None:
    """No unreadable line in an intact log, lines in order, times in order within a second."""
    assert is_broker_log(path)
    answers = facts(path)
    assert [fact.line for fact in answers] == sorted(fact.line for fact in answers)
    times = [fact.at for fact in answers]
    assert None not in times
    late = [b - a for a, b in pairwise(at for at in times if at is not None)]
    assert min(late, default=0) > -1000


# A plain search for the wording, written apart from the families, and how many facts a line gives.
COUNTED = {
    "became_leader": r"\] Leader \S+ .*starts at leader epoch |\S+ starts at Leader Epoch ",
    "became_follower": r"\] Follower \S+ starts at leader epoch ",
    "truncated": r"Truncating (?:log \S+ )?to offset \d+\.? \(",
    "truncation_without_effect": r" has no effect as the largest offset ",
    "truncation_reason": r"No truncation needed|Truncating partition |replied with an unknown ",
    "high_watermark_regressed": r"Non-monotonic update of high watermark",
    "truncation_refused": r"Exiting because log truncation is not allowed",
    "isr_shrink_proposed": r"Shrinking ISR ",
    "isr_expanded": r"Expanding ISR ",
    "isr_updated": r"\] ISR updated to |on broker \d+: ISR updated to ",
    "leadership_kept": r"[Ss]kipped the become-",
    "leader_and_isr_received": r"eceived LeaderAndIsr request ",
    "log_loaded": r"Completed load of ",
    "log_created": r"Created log for partition",
    "partition_changed": r"\] (?:UNCLEAN )?partition change for ",
    "partition_state_changed": r"[Cc]hanged partition ",
    "settings": r"KafkaConfig values: $",
    "process_signalled": r"Terminating process due to signal",
    "high_watermark_set": r"Setting high watermark ",
    "log_appended": r"Appended message set ",
    "follower_log_end_recorded": r"Recorded replica ",
    "fetch_response_received": r" and leader hw ",
    "follower_appended": r" after appending \d+ bytes ",
    "leader_high_watermark_updated": r"High watermark .*updated ",
}


@pytest.mark.slow
def test_as_many_facts_as_lines_in_all_captured_logs() -> None:
    searches = {kind: re.compile(pattern) for kind, pattern in COUNTED.items()}
    searched: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for path in LOGS:
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            if line.startswith("["):
                searched.update(kind for kind, search in searches.items() if search.search(line))
        found.update(fact.kind for fact in facts(path) if fact.kind in COUNTED)
    assert found == searched
    assert set(searched) == set(COUNTED)


def test_damaged_logs_never_raise(tmp_path: Path) -> None:
    """Bytes flipped, deleted and doubled: an answer for every line, none of them an exception."""
    noise = random.Random(11)
    path = tmp_path / "server.log"
    for source in LOGS[:: max(1, len(LOGS) // 12)]:
        data = bytearray(source.read_bytes()[:200_000])
        for _ in range(400):
            place = noise.randrange(len(data))
            data[place : place + noise.randrange(3)] = noise.randbytes(noise.randrange(4))
        path.write_bytes(data)
        for answer in read_broker_log(path, time_zone=UTC):
            assert isinstance(answer, LogLineFact | Unreadable)


@pytest.mark.parametrize(
    "head",
    [
        "[2026-03-04 05:06:07,089] INFO KafkaConfig values: ",
        "2026-03-04 05:06:07,089 INFO  [main] kafka.server.KafkaConfig: KafkaConfig values: ",
        "2026-03-04 05:06:07 INFO KafkaConfig:376 - KafkaConfig values: ",
        "2026-03-04T05:06:07.089Z INFO [main] o.a.k.c.c.AbstractConfig - KafkaConfig values:",
    ],
)
def test_a_dump_of_settings_is_read_in_every_layout_of_lines(head: str, tmp_path: Path) -> None:
    """Of a log's piece nothing may be left but the begin of a dump."""
    values = {"broker.id": "1", "min.insync.replicas": "2"}
    path = tmp_path / "server.log"
    for behind in ("", "2026-03-04 05:06:08,000 INFO [KafkaServer id=1] started\n"):
        path.write_text("\n".join([head, *(f"\t{n} = {v}" for n, v in values.items()), behind]))
        assert is_broker_log(path)
        told = [fact for fact in read_broker_log(path) if isinstance(fact, LogLineFact)]
        assert [fact.fields["values"] for fact in told if fact.kind == "settings"] == [values]
        assert told[0].broker == 1
