"""Brokers from which nothing comes any more: by the lines' own time, never by a wall clock."""

import json
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.collecting.envelopes import NotALine, ShippedLine, shipped_lines
from replication.evidence.digest import DigestLines
from replication.evidence.shipping.live_join import LiveJoin
from replication.evidence.shipping.silence import heard_of, moment_of, silent_hosts
from replication.evidence.shipping.spool import Spool
from replication.protocol.judgement.bounded import fold_all
from tests.evidence.shipping.test_live_join import newest
from tests.evidence.shipping.test_spool import INCIDENTS, sent_of

MINUTE = 60_000


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
    assert heard_of(before, now) == {"c/a": {"log": 5, "digest": 9}, "c/b": {"log": 1}}
    assert (
        moment_of("1970-01-01 00:00:01,5") is None or moment_of("1970-01-01 00:00:01,500") == 1500
    )
    assert moment_of("no stamp") is None


def told(folder: Path) -> dict[str, tuple[str, str]]:
    found = fold_all(newest(folder))
    return {v["invariant"]: (v["verdict"], v["reason"]) for f in found for v in f.answer.verdicts}


def shipped(sent: list[bytes]) -> list[ShippedLine | NotALine]:
    return [line for each in sent for line in shipped_lines(each)]


def later(host: str, minutes: int) -> bytes:
    """A line of no weight that a broker printed so long after the capture."""
    text = f"[2036-01-01 00:{minutes:02}:00,000] INFO x (kafka.server.KafkaServer)"
    return json.dumps({"host": host, "file": "/l/server.log", "message": text}).encode()


def test_what_rests_on_a_silent_broker_is_unknown_and_names_it_until_it_speaks(
    tmp_path: Path,
) -> None:
    sent = sent_of("healthy_rolling_restart__4.3.0")
    # The capture ends with clean stops: brokers that run on print something else last.
    sent = [s for s in sent if b"shut" not in s.lower() and b"Terminating" not in s]
    hosts = ("broker-1", "broker-2", "broker-3", "controller-100")
    live = LiveJoin(tmp_path / "live", tmp_path / "events", silence_bound=300)
    live.step(0, shipped([*sent, *(later(host, 0) for host in hosts)]))
    before = told(tmp_path / "events")
    joined = live.step(1, shipped([later(host, 20) for host in hosts if host != "broker-2"]))
    assert set(joined.silent["cluster"]) == {2}
    started_anew = LiveJoin(tmp_path / "live", tmp_path / "events").known()
    assert set(started_anew.silent["cluster"]) == {"2"}
    assert {host.partition("/")[2] for host in started_anew.heard} == set(hosts)
    after = told(tmp_path / "events")
    undone = [after[i] for i in before if before[i][0] == "HOLDS" and after[i][0] != "HOLDS"]
    assert undone
    for verdict, reason in undone:
        assert verdict == "UNKNOWN"
        assert "broker 2 (nothing came from it after 2036-01-01T00:00:00" in reason
    joined = live.step(2, shipped([later("broker-2", 21)]))
    assert joined.silent["cluster"] == {} == live.known().silent["cluster"]
    assert told(tmp_path / "events") == before


def test_a_broker_that_stopped_is_not_silent(tmp_path: Path) -> None:
    sent = sent_of("healthy_rolling_restart__4.3.0")
    live = LiveJoin(tmp_path / "live", tmp_path / "events", silence_bound=300)
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
