"""What ties a line that names no broker to one of several that wrote a file."""

from typing import Any

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.log_places import directories_of_settings, log_directory
from replication.evidence.broker_logs.starts import Starts, mark
from replication.evidence.broker_logs.threads import broker_of_thread, leader_of_thread
from replication.evidence.broker_logs.writers import Writers

SECOND = 1000


def said(kind: str, broker: int | None = None, at: int = 0, **fields: Any) -> LogLineFact:
    thread = fields.pop("thread", None)
    return LogLineFact(kind, at * SECOND, 0, "server.log", broker, "t", 0, fields, thread)


def settings(broker: int, directory: str, at: int = 0) -> LogLineFact:
    values = {"broker.id": str(broker), "log.dirs": directory}
    return process("settings", broker, at, values=values)


def process(kind: str, broker: int | None = None, at: int = 0, **fields: Any) -> LogLineFact:
    return said(kind, broker, at, **fields)._replace(topic=None, partition=None)


def writer_of_last(*lines: LogLineFact) -> int | tuple[int, ...] | None:
    """The writer of the last line, or those that it may be of."""
    numbered = [fact._replace(line=number) for number, fact in enumerate(lines, 1)]
    writers = Writers()
    for fact in numbered:
        writers.learn(fact)
    *_, last = writers.resolved(numbered)
    assert isinstance(last, LogLineFact)
    return last.fields["one_of"] if last.broker is None else last.broker


def cut(to: int = 20, at: int = 100, **fields: Any) -> LogLineFact:
    return said("truncated", at=at, to_offset=to, **fields)


TWO = (said("high_watermark_loaded", 1), said("high_watermark_loaded", 2))


def test_nothing_ties_a_line() -> None:
    assert writer_of_last(*TWO, cut()) == (1, 2)


def test_a_directory_that_one_of_all_has() -> None:
    own = (settings(1, "/data/1/"), settings(2, "/data/2,/data/3"))
    assert writer_of_last(*own, cut(directory="/data/3")) == 2
    assert writer_of_last(*own, said("log_loaded", directory="/data/1/t-0")) == 1


def test_a_directory_that_others_may_have_too() -> None:
    """Of broker 2's directories nothing is known: on machines of one make they are the same."""
    assert writer_of_last(*TWO, settings(1, "/data"), cut(directory="/data")) == (1, 2)
    same = (settings(1, "/data"), settings(2, "/data"))
    assert writer_of_last(*same, cut(directory="/data")) == (1, 2)


def test_a_broker_that_is_only_named_by_others_may_have_written_it() -> None:
    own = (settings(1, "/1"), settings(2, "/2"), said("isr_expanded", 1, to_isr=(1, 2, 3)))
    assert writer_of_last(*own, cut(directory="/2")) == (2, 3)


ONE = said("high_watermark_loaded", 1)


def placed_in(*directories: str) -> list[LogLineFact]:
    return [said("log_appended", directory=directory) for directory in directories]


def test_a_replica_is_not_in_two_directories_in_turn() -> None:
    """Of a file that names one broker: others wrote it, too."""
    assert writer_of_last(ONE, *placed_in("/1", "/2", "/1")) == (1,)
    assert writer_of_last(ONE, *placed_in("/1", "/1/t-0", "//1")) == 1
    moved = placed_in("/1", "/2/t-0.f00-future", "/2", "/2")
    assert writer_of_last(ONE, *moved) == 1


def test_a_directory_that_is_in_nobodys_settings() -> None:
    assert writer_of_last(settings(1, "/1"), *placed_in("/2"), cut()) == (1,)
    assert writer_of_last(*placed_in("/2"), settings(1, "/1"), *placed_in("/1"), cut()) == 1


def test_a_log_start_moves_but_once_to_where_it_is() -> None:
    def moved(at: int, to: int) -> LogLineFact:
        return said("log_start_advanced", at=at, log_start_offset=to)

    assert writer_of_last(ONE, moved(1, 5), moved(2, 9), moved(2, 9)) == 1
    assert writer_of_last(ONE, moved(1, 5), moved(2, 5)) == (1,)
    anew = (moved(1, 5), said("log_loaded", at=2, log_end_offset=0), moved(3, 5))
    assert writer_of_last(ONE, *anew) == 1


def test_a_leader_cuts_nothing() -> None:
    roles = (said("became_follower", 1, 10), said("became_leader", 1, 20), TWO[1])
    assert writer_of_last(*roles, cut()) == 2
    again = (*roles, said("fetcher_removed", 1, 50))
    assert writer_of_last(*again, cut()) == (1, 2)


def test_one_of_whom_no_line_tells_when_it_follows_may_have_stopped_leading() -> None:
    assert writer_of_last(said("became_leader", 1, 20), TWO[1], cut()) == (1, 2)


def test_a_log_that_ends_where_it_is_cut_is_not_cut() -> None:
    ends = (
        said("became_follower", 1, 10, log_end_offset=20),
        said("became_follower", 2, 10, log_end_offset=23),
    )
    assert writer_of_last(*ends, cut(to=20)) == 2
    assert writer_of_last(*ends, cut(to=19)) == (1, 2)


def test_lines_of_one_moment_stand_in_any_order() -> None:
    """Two appenders write two files; merged by time the cut may stand before the role."""
    roles = (said("became_follower", 1, 1), said("became_leader", 1, 20), TWO[1])
    beside = said("became_follower", 1, 100, log_end_offset=30)
    assert writer_of_last(*roles, beside, cut()) == (1, 2)


def test_a_log_is_loaded_to_where_the_next_role_begins() -> None:
    loaded = said("log_loaded", at=5, log_end_offset=23)
    later = (
        said("became_follower", 1, 10, log_end_offset=20),
        said("became_follower", 2, 10, log_end_offset=23),
    )
    assert writer_of_last(*later, loaded) == 2
    assert writer_of_last(*later, process("cluster_id", 1, 7), loaded) == (1, 2)


def test_a_start_that_no_other_overlaps() -> None:
    up = (process("server_started", 1), process("stopping", 2))
    start = (process("process_started", at=1), settings(2, "/d", at=2))
    ended = process("server_started", 2, 9)
    loaded = said("log_loaded", at=5, log_end_offset=23)
    version = process("kafka_version", at=8, version="2.8.2")
    alone = (*up, *start, ended)
    for line in (loaded, version):
        numbered = [f._replace(line=n) for n, f in enumerate((*up, *start, line, ended), 1)]
        writers = Writers()
        for fact in numbered:
            writers.learn(fact)
        told = [f for f in writers.resolved(numbered) if isinstance(f, LogLineFact)]
        assert [f.broker for f in told] == [1, 2, 2, 2, 2, 2]
    assert writer_of_last(*alone, loaded) == (1, 2)


def test_of_starts_that_overlap_each_is_told_by_the_line_that_names_it() -> None:
    lines = (
        process("process_started"), process("process_started"), settings(1, "/1"),
        settings(2, "/2"), process("server_started", 2), process("server_started", 1),
    )  # fmt: skip
    numbered = [fact._replace(line=number) for number, fact in enumerate(lines, 1)]
    writers = Writers()
    for fact in numbered:
        writers.learn(fact)
    told = [f for f in writers.resolved(numbered) if isinstance(f, LogLineFact)]
    started = [(f.broker, f.line) for f in told if f.kind == "process_started"]
    assert started == [(None, 1), (None, 2), (1, 3), (2, 4)]
    assert not any("one_of" in f.fields for f in told)


def test_a_start_that_failed_makes_none_of_the_later_ones_longer() -> None:
    """One first line too many stays in hand; a start that ended is no part of a later one."""

    def start(*brokers: int) -> list[LogLineFact]:
        return [
            *(process("process_started") for _ in brokers),
            *(settings(broker, f"/{broker}") for broker in brokers),
            *(process("kafka_version", version="1.1.1") for _ in brokers),
            *(process("server_started", broker) for broker in brokers),
        ]

    failed = [process("process_started"), settings(3, "/3")]
    lines = [*failed, *start(3), *start(1, 2), *start(3)]
    numbered = [fact._replace(line=number) for number, fact in enumerate(lines, 1)]
    writers = Writers()
    for fact in numbered:
        writers.learn(fact)
    told = [f for f in writers.resolved(numbered) if isinstance(f, LogLineFact)]
    versions = [f.broker for f in told if f.kind == "kafka_version"]
    assert versions == [3, None, None, 3]


def told(*lines: LogLineFact) -> list[tuple[str, int | None]]:
    """(kind, writer) of each line, lines that stand in for a first one included."""
    numbered = [fact._replace(line=number) for number, fact in enumerate(lines, 1)]
    writers = Writers()
    for fact in numbered:
        writers.learn(fact)
    return [(f.kind, f.broker) for f in writers.resolved(numbered) if isinstance(f, LogLineFact)]


def begun() -> LogLineFact:
    return process("process_started")


def test_a_file_that_begins_amid_a_start_tells_nothing_of_the_next() -> None:
    """The first line may be of broker 2, which names itself behind the end of the file."""
    cut_off = (process("server_started", 2), begun(), settings(1, "/1"), TWO[0])
    assert told(*cut_off)[1] == ("process_started", None)
    stopped = (process("stopping", 1), *cut_off)
    assert told(*stopped)[2] == ("process_started", 1)


def test_what_is_loaded_while_two_start_is_of_either() -> None:
    up = [process("server_started", broker) for broker in (1, 2, 3)]
    both = [begun(), settings(1, "/1"), begun(), settings(2, "/2")]
    ends = [process("server_started", broker) for broker in (1, 2)]
    version = process("kafka_version", version="4.1.1")
    assert told(*up, *both, version, *ends)[-3] == ("kafka_version", None)
    assert told(*up, *both, ends[0], version, ends[1])[-2] == ("kafka_version", 2)


def test_settings_that_kraft_prints_late_are_no_start() -> None:
    starting = process("server_state_changed", 100, state="STARTING")
    controller = (begun(), starting, process("server_started", 100))
    other = process("server_state_changed", 1, state="STARTING")
    late = process("settings", 100, values={"process.roles": "[controller]"})
    lines = (*controller, begun(), late, other, process("server_started", 1))
    assert [who for kind, who in told(*lines) if kind == "process_started"] == [100, 1]


def test_a_start_goes_on_in_the_next_piece_of_a_rotated_log() -> None:
    first = [process("stopping", 1), process("stopping", 2), begun()]
    second = [settings(2, "/2"), begun(), settings(1, "/1")]
    third = [process("server_started", broker) for broker in (2, 1)]
    pieces = [
        [mark(fact._replace(line=n)) for n, fact in enumerate(piece, 1)]
        for piece in (first, second, third)
    ]
    starts = Starts.of([[m for m in piece if m] for piece in pieces], {1, 2})
    assert starts.accounted == {(0, 3), (1, 2)}
    assert starts.stand_ins == {(1, 1): 2, (1, 3): 1}
    alone = Starts.of([[m for m in pieces[1] if m]], {1, 2})
    assert (alone.first_lines, alone.accounted) == ({}, set())


def test_a_log_that_is_set_aside_is_none_that_a_role_begins_with() -> None:
    later = (
        said("became_follower", 1, 10, log_end_offset=20),
        said("became_follower", 2, 10, log_end_offset=23),
        settings(1, "/1"),
    )
    aside = said("log_loaded", at=5, log_end_offset=23, directory="/1/t-0.fec-stray")
    assert writer_of_last(*later, aside) == (1, 2)
    assert writer_of_last(settings(1, "/1"), settings(2, "/2"), aside) == 1


def test_a_signal_is_of_the_one_that_stops_at_once() -> None:
    signal = process("process_signalled", at=5)
    assert writer_of_last(*TWO, process("stopping", 2, 5), signal) == 2
    assert writer_of_last(*TWO, process("stopping", 2, 7), signal) == (1, 2)
    both = (process("stopping", 2, 5), process("stopping", 1, 5))
    assert writer_of_last(*TWO, *both, signal) == (1, 2)


def test_only_a_replica_cuts() -> None:
    asked = said("leader_and_isr_sent", 3, replicas=(1, 2), leader=1)
    assert writer_of_last(asked, *TWO, cut()) == (1, 2)


def test_nobody_fetches_from_itself() -> None:
    refused = said("truncation_refused", leader=1, leader_log_end_offset=3, log_end_offset=5)
    assert writer_of_last(*TWO, refused) == 2
    assert writer_of_last(*TWO, cut(thread="ReplicaFetcherThread-0-2")) == 1


@pytest.mark.parametrize(
    ("thread", "broker"),
    [
        ("data-plane-kafka-network-thread-4-ListenerName(PLAINTEXT)-PLAINTEXT-2", 4),
        ("kafka-network-thread-4-SSL-0", 4),
        ("Controller-4-to-broker-2-send-thread", 4),
        ("ExpirationReaper-4-Produce", 4),
        ("broker-4-to-controller-alter-partition-channel-manager", 4),
        ("kafka-4-raft-io-thread", 4),
        ("quorum-controller-4-event-handler", 4),
        ("data-plane-kafka-request-handler-4", None),
        ("ReplicaFetcherThread-0-4", None),
        ("kafka-scheduler-4", None),
        ("main", None),
    ],
)
def test_threads_that_bear_their_brokers_id(thread: str, broker: int | None) -> None:
    assert broker_of_thread(thread) == broker


def test_a_fetchers_thread_bears_its_leaders_id() -> None:
    assert leader_of_thread("ReplicaFetcherThread-3-12") == 12
    assert leader_of_thread("ReplicaAlterLogDirsThread-0") is None


def test_directories_as_lines_and_settings_print_them() -> None:
    windows = said("log_loaded", directory="C:\\kafka\\logs\\t-0")
    assert directories_of_settings({"log.dirs": "C:\\kafka\\logs"}) == {log_directory(windows)}
    assert directories_of_settings({"log.dirs": "[/a/, /b]"}) == {"/a", "/b"}
    assert directories_of_settings({"log.dirs": "data"}) is None
    assert directories_of_settings({"log.dir": "/tmp/kafka-logs"}) == {"/tmp/kafka-logs"}
