"""Brokers from which nothing comes any more: by the lines' own time, never later than the clock."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.collecting.envelopes import NotALine, ShippedLine, shipped_lines
from replication.evidence.digest import DigestLines
from replication.evidence.shipping.live_join import LiveJoin
from replication.evidence.shipping.silence import (
    ahead_of,
    heard_of,
    moment_of,
    newest_of,
    silent_hosts,
)
from replication.evidence.shipping.spool import Spool
from replication.protocol.judgement.bounded import fold_all
from tests.evidence.shipping.test_live_join import newest
from tests.evidence.shipping.test_spool import INCIDENTS, sent_of

MINUTE = 60_000
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC).timestamp()


def live_join(folder: Path, name: str = "live") -> LiveJoin:
    """At the turn of the year."""
    return LiveJoin(
        folder / name, folder / f"{name}-events", silence_bound=300, now=lambda: NEW_YEAR
    )


def test_a_host_is_silent_when_others_went_on_for_longer_than_the_bound() -> None:
    heard = {"a": {"log": 0}, "b": {"log": 5 * MINUTE}, "c": {"log": 4 * MINUTE}}
    assert silent_hosts(heard, 120) == {"a": 0}
    assert silent_hosts(heard, 300) == {}
    assert silent_hosts({"a": {"log": 0}}, 1) == {}, "nobody else went on"


def test_without_a_bound_only_missed_digests_count() -> None:
    heard = {
        "a": {"log": 0, "digest": 0, "every": MINUTE},
        "b": {"log": 90 * MINUTE, "digest": 9 * MINUTE, "every": MINUTE},
    }
    assert silent_hosts(heard, 0) == {}
    heard["b"]["digest"] = 11 * MINUTE
    assert silent_hosts(heard, 0) == {"a": 0}


def test_whoever_speaks_on_one_clock_is_not_silent() -> None:
    heard = {"a": {"log": 0, "digest": 60 * MINUTE}, "b": {"log": 60 * MINUTE, "digest": 0}}
    assert silent_hosts(heard, 60) == {}


def test_the_newest_moment_of_each_clock_is_kept() -> None:
    before, now = {"c/a": {"log": 5}}, {"c/a": {"log": 3, "digest": 9}, "c/b": {"log": 1}}
    assert heard_of(before, now, 10) == {"c/a": {"log": 5, "digest": 9}, "c/b": {"log": 1}}
    assert (
        moment_of("1970-01-01 00:00:01,5") is None or moment_of("1970-01-01 00:00:01,500") == 1500
    )
    assert moment_of("no stamp") is None


@pytest.mark.parametrize("clock", ["log", "digest"])
def test_a_line_from_the_future_is_told_and_silences_nobody(clock: str) -> None:
    now, bound = 60 * MINUTE, 300
    sound = {f"c/{host}": {clock: now - MINUTE} for host in "ab"}
    heard = heard_of(sound, {"c/f": {clock: 10**6 * MINUTE}}, now)
    assert ahead_of(heard) == {"c/f": (10**6 - 60) * MINUTE}
    assert silent_hosts(heard, bound) == {}
    assert newest_of(heard.values(), clock) == now - MINUTE
    # What came before is read hours late: the line says nothing of what time it is for others.
    late = {f"c/{host}": {clock: MINUTE} for host in "ab"}
    late = heard_of(late, {"c/f": {clock: 10**6 * MINUTE}}, now)
    assert silent_hosts(late, bound) == {}
    # Nor does it hide later on that nothing comes from that host any more.
    heard = heard_of(heard, {"c/a": {clock: now + 9 * MINUTE}}, now + 9 * MINUTE)
    assert silent_hosts(heard, bound) == {"c/b": now - MINUTE, "c/f": now}
    # Its clock was set right: its next line counts as it is printed.
    heard = heard_of(heard, {"c/f": {clock: now - MINUTE}}, now + 9 * MINUTE)
    assert (ahead_of(heard), heard["c/f"]) == ({}, {clock: now - MINUTE})


def test_a_fleet_whose_zone_nobody_told_still_has_silent_brokers() -> None:
    hours, now = 9 * 60 * MINUTE, 60 * MINUTE
    heard = heard_of({}, {f"c/{h}": {"log": now + hours} for h in "ab"}, now)
    assert silent_hosts(heard, 300) == {}
    now += 10 * MINUTE
    heard = heard_of(heard, {"c/a": {"log": now + hours}}, now)
    assert silent_hosts(heard, 300) == {"c/b": 60 * MINUTE}
    assert set(ahead_of(heard)) == {"c/a", "c/b"}


def test_what_an_earlier_release_kept_from_the_future_counts_as_heard_when_it_is_read() -> None:
    before = {"c/a": {"log": 0}, "c/f": {"log": 10**6 * MINUTE, "every": 5}}
    heard = heard_of(before, {}, MINUTE)
    assert heard["c/f"] == {"log": MINUTE, "log_ahead": (10**6 - 1) * MINUTE, "every": 5}


def told(folder: Path) -> dict[str, tuple[str, str]]:
    found = fold_all(newest(folder))
    return {v["invariant"]: (v["verdict"], v["reason"]) for f in found for v in f.answer.verdicts}


def shipped(sent: list[bytes]) -> list[ShippedLine | NotALine]:
    return [line for each in sent for line in shipped_lines(each)]


def later(host: str, minutes: int, year: int = 2026) -> bytes:
    """A line of no weight that a broker printed so long after the capture."""
    text = f"[{year}-12-31 00:{minutes:02}:00,000] INFO x (kafka.server.KafkaServer)"
    return json.dumps({"host": host, "file": "/l/server.log", "message": text}).encode()


def test_what_rests_on_a_silent_broker_is_unknown_and_names_it_until_it_speaks(
    tmp_path: Path,
) -> None:
    sent = sent_of("healthy_rolling_restart__4.3.0")
    # The capture ends with clean stops: brokers that run on print something else last.
    sent = [s for s in sent if b"shut" not in s.lower() and b"Terminating" not in s]
    hosts = ("broker-1", "broker-2", "broker-3", "controller-100")
    live = live_join(tmp_path)
    live.step(0, shipped([*sent, *(later(host, 0) for host in hosts)]))
    before = told(live.out)
    joined = live.step(1, shipped([later(host, 20) for host in hosts if host != "broker-2"]))
    assert set(joined.silent["cluster"]) == {2}
    started_anew = live_join(tmp_path).known()
    assert set(started_anew.silent["cluster"]) == {"2"}
    assert {host.partition("/")[2] for host in started_anew.heard} == set(hosts)
    after = told(live.out)
    undone = [after[i] for i in before if before[i][0] == "HOLDS" and after[i][0] != "HOLDS"]
    assert undone
    for verdict, reason in undone:
        assert verdict == "UNKNOWN"
        assert "broker 2 (nothing came from it after 2026-12-31T00:00:00" in reason
    joined = live.step(2, shipped([later("broker-2", 21)]))
    assert joined.silent["cluster"] == {} == live.known().silent["cluster"]
    assert told(live.out) == before


def test_one_shipped_line_from_the_future_silences_nobody_when_it_is_taken_twice_either(
    tmp_path: Path,
) -> None:
    sent = sent_of("healthy_rolling_restart__4.3.0")
    sent = [s for s in sent if b"shut" not in s.lower() and b"Terminating" not in s]
    hosts = ("broker-1", "broker-2", "broker-3", "controller-100")
    live = live_join(tmp_path)
    live.step(0, shipped([*sent, *(later(host, 0) for host in hosts)]))
    before = told(live.out)
    ahead = [*(later(host, 1) for host in hosts), later("broker-2", 0, year=2099)]
    for now in (NEW_YEAR, NEW_YEAR + 100 * 366 * 86_400):
        # Done again decades later, as after a failure, it comes to the same.
        joined = replace(live, now=lambda now=now: now).step(1, shipped(ahead))
        assert joined.silent["cluster"] == {}
        assert set(ahead_of(joined.heard)) == {"cluster/broker-2"}
        assert told(live.out) == before


def test_a_digest_started_while_its_clock_was_ahead_gives_way_to_the_next_one(
    tmp_path: Path,
) -> None:
    clock = 50 * MINUTE

    def line(started: int, end: int) -> bytes:
        return json.dumps({
            "replication_digest": 1, "n": 1, "started": started, "at": started, "directory": "/d",
            "what": "partition", "name": "t-0", "log_start_offset": 0, "log_end_offset": end,
            "leader_epochs": [[0, 0]], "high_watermark": end, "recovery_point": 0,
            "topic_id": None,
        }).encode()  # fmt: skip

    spool = Spool(tmp_path / "spool", clock=clock)
    spool.take(0, shipped([line(10**6 * MINUTE, 5)]))
    taken = spool.take(1, shipped([line(clock, 9)]))
    assert (taken.kept, taken.repeated) == (1, 0)
    [kept] = [path for path in tmp_path.rglob("*.lines") if path.stem.endswith("1")]
    assert json.loads(kept.read_text())["log_end_offset"] == 9
    taken = spool.take(2, shipped([line(clock - MINUTE, 7)]))
    assert (taken.kept, taken.repeated) == (0, 1), "an older process, of a clock that was right"


def test_a_broker_that_stopped_is_not_silent(tmp_path: Path) -> None:
    sent = sent_of("healthy_rolling_restart__4.3.0")
    live = live_join(tmp_path)
    live.step(0, shipped(sent))
    joined = live.step(1, shipped([later("broker-1", 20), later("broker-3", 20)]))
    assert joined.silent["cluster"] == {}


def digest_of(directory: Path, host: str) -> list[bytes]:
    printed: list[str] = []
    DigestLines(str(directory), 60, printed.append).tell()
    return [json.dumps({"hostname": host, "msg": text}).encode() for text in printed]


def test_a_digests_lines_are_kept_once_and_join_like_the_directories(tmp_path: Path) -> None:
    """Whatever the micro-batches, and however often they are done."""
    sent = sent_of("unclean_election__4.1.1")
    homes = sorted((INCIDENTS / "unclean_election__4.1.1").glob("broker-*/disk-final"))
    lines = [line for home in homes for line in digest_of(home, home.parent.name)]
    at_once = LiveJoin(tmp_path / "one", tmp_path / "one-events")
    at_once.step(0, shipped([*sent, *lines]))
    live = LiveJoin(tmp_path / "live", tmp_path / "events")
    parts: list[list[Any]] = [lines[::2], sent, lines, lines[1::2]]
    for number, part in enumerate(parts):
        first = live.step(number, shipped(part))
        again = live.step(number, shipped(part))
        assert (first.taken.kept, first.events) == (again.taken.kept, again.events)
    assert first.taken.kept == 0, "all of them were known"
    assert told(tmp_path / "events") == told(tmp_path / "one-events")
    kinds = [e.fact.kind for e in newest(tmp_path / "events")]
    assert set(kinds) >= {"replica_log_observed"}
    assert kinds.count("replica_log_observed") <= 2 * len(homes), "first and last sight"


@pytest.mark.parametrize("fields", [{}, {"hostname": "kafka-1", "kafka_cluster": "orders"}])
def test_a_line_of_a_digest_is_known_in_any_envelope(fields: dict[str, str]) -> None:
    line = {"replication_digest": 1, "n": 1, "started": 1, "at": 5, "directory": "/d",
            "what": "directory", "every": 60}  # fmt: skip
    for sent in (json.dumps(line | fields), json.dumps({**fields, "message": json.dumps(line)})):
        [found] = shipped_lines(sent.encode())
        assert isinstance(found, ShippedLine)
        assert found.digest
        assert found.host == fields.get("hostname", "")
        assert json.loads(found.text)["at"] == 5
    [broken] = shipped_lines(b'{"replication_digest": 1, "what": 5}')
    assert isinstance(broken, NotALine)


def test_rows_always_add_up(tmp_path: Path) -> None:
    line = json.dumps({"replication_digest": 1, "n": 1, "started": 1, "at": 5, "directory": "/d",
                       "what": "directory"}).encode()  # fmt: skip
    taken = Spool(tmp_path / "spool").take(0, shipped([line, line, later("a", 1), b'{"a": 1}']))
    assert (taken.rows, taken.kept, taken.repeated, len(taken.refused)) == (4, 2, 1, 1)
