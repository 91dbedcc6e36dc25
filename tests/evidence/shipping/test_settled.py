"""Bases of settled partitions: what is forgotten changes no verdict, and what is open is kept."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from benchmarks.live import Fleet
from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.packed_facts import Packer
from replication.evidence.collecting.envelopes import ShippedLine
from replication.evidence.importer import import_evidence
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.shipping import compaction, live_join
from replication.evidence.shipping.live_join import LiveJoin, named
from replication.evidence.shipping.settled import Base, without_settled
from replication.protocol.judgement.bounded import fold_all
from tests.evidence.shipping.test_live_join import newest

MINUTES = 6
QUIET = 2
PARTITIONS = 2
BASE_AFTER = 60.0
RESTARTED = re.compile(r"(from offset) \d+(.*high watermark) \d+")
Change = Callable[[ShippedLine], ShippedLine | None]


@dataclass(frozen=True)
class Followed:
    """A stream after its last minute. verdicts: after some minutes; events: how many at last."""

    live: LiveJoin
    verdicts: list[dict[Any, list[tuple[str, str]]]]
    events: int


@pytest.fixture(autouse=True, scope="module")
def _at_once() -> Iterator[None]:
    """Every partition is asked in every micro-batch, and files are joined soon."""
    soon = mock.patch.object(compaction, "TOGETHER", 2)
    with mock.patch.object(live_join, "SETTLED_IN_TURN", 1), soon:
        yield


def fleet_lines(partitions: int = PARTITIONS) -> list[list[ShippedLine]]:
    """Three brokers and some partitions, a minute's lines each; in all but the last two every
    partition gets another leader."""
    fleet = Fleet(3, 1)
    fleet.cluster.partitions[:] = fleet.cluster.partitions[:partitions]
    found = [list(fleet.begins())]
    for number in range(MINUTES):
        moved = fleet.cluster.partitions if number < MINUTES - QUIET else []
        lines = list(fleet.moved(moved))
        fleet.cluster.now += 60_000
        found.append([*lines, *fleet.digests(moved)])
    return found


def steady_lines(minutes: int = MINUTES) -> tuple[Fleet, list[list[ShippedLine]]]:
    """Nobody is elected any more, but four partitions' ISR shrinks and grows again and retention
    goes on each minute."""
    fleet = Fleet(3, 1)
    few = fleet.cluster.partitions[:4]
    fleet.cluster.partitions[:] = few
    found = [list(fleet.begins())]
    for _ in range(minutes):
        lines = [line for story in ("expired", "shrunk") for line in fleet.told(story, few)]
        fleet.cluster.now += 60_000
        found.append([*lines, *fleet.digests(few)])
    return fleet, found


def made_anew(stamp: str, *brokers: int) -> list[ShippedLine]:
    """Brokers found none of the four logs in their directories."""
    made = "INFO Created log for partition {} in /var/lib/kafka/data/{} with properties {{}}"
    return [
        ShippedLine(f"{stamp}{made.format(name, name)} (kafka.log.LogManager)",
                    f"broker-{broker}", "server.log", "fleet", offset=10_000_000 + number)
        for broker in brokers
        for number, name in enumerate(f"orders-00-{n}" for n in range(4))
    ]  # fmt: skip


def shipped(folder: Path, minutes: list[list[ShippedLine]], base_after: float) -> LiveJoin:
    live = LiveJoin(folder / "live", folder / "events", base_after=base_after)
    for number, lines in enumerate(minutes):
        live.step(number, lines)
    return live


def verdicts(folder: Path) -> dict[Any, list[tuple[str, str]]]:
    return {
        f.identity: [(v["invariant"], v["verdict"]) for v in f.answer.verdicts]
        for f in fold_all(newest(folder / "events"))
    }


def losses(folder: Path) -> set[tuple[Any, ...]]:
    return {
        (f.identity, loss["first_offset"], loss["end_offset"], loss["cause"], loss["tier"])
        for f in fold_all(newest(folder / "events"))
        for loss in f.answer.losses
    }


def bases(live: LiveJoin) -> dict[str, Any]:
    newest_state = sorted(live.folder.glob("*.partitions.json"))[-1]
    found: dict[str, Any] = json.loads(newest_state.read_text())["bases"]
    return found


def told(live: LiveJoin) -> int:
    return sum(p.read_text().count("leader epoch") for p in live.folder.rglob("*.log"))


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> dict[float, Followed]:
    """A fleet's minutes with bases and without; whoever goes on from there takes a copy."""
    found = {}
    for base_after in (BASE_AFTER, 0.0):
        folder = tmp_path_factory.mktemp("fleet")
        live = LiveJoin(folder / "live", folder / "events", base_after=base_after)
        told = []
        for number, lines in enumerate(fleet_lines()):
            live.step(number, lines)
            if number % 3 == 0:
                told.append(verdicts(folder))
        found[base_after] = Followed(live, told, len(newest(live.out)))
    return found


def copied(live: LiveJoin, folder: Path) -> LiveJoin:
    """The same stream, started again in another folder."""
    shutil.copytree(live.folder, folder / "live")
    shutil.copytree(live.out, folder / "events")
    return LiveJoin(folder / "live", folder / "events", base_after=live.base_after)


@pytest.mark.slow
def test_elections_of_before_are_forgotten_and_no_verdict_changes(
    followed: dict[float, Followed], tmp_path: Path
) -> None:
    kept, whole = followed[BASE_AFTER], followed[0.0]
    assert kept.verdicts == whole.verdicts
    assert len(bases(kept.live)) == PARTITIONS
    assert not bases(whole.live)
    assert kept.events < whole.events * 0.7
    # What is forgotten leaves the spool when files are joined the next time.
    lives = [copied(each.live, tmp_path / str(n)) for n, each in enumerate((kept, whole))]
    last = fleet_lines()[-1]
    for number in range(MINUTES + 1, MINUTES + 5):
        for one in lives:
            one.step(number, last)
    assert told(lives[0]) < told(lives[1]) * 0.7
    assert verdicts(tmp_path / "0") == verdicts(tmp_path / "1")


@pytest.mark.slow
def test_changes_of_the_isr_and_retention_within_a_leader_epoch_are_forgotten(
    tmp_path: Path,
) -> None:
    fleet, minutes = steady_lines()
    live = shipped(tmp_path / "with", minutes, BASE_AFTER)
    without = shipped(tmp_path / "without", minutes, 0)
    assert len(bases(live)) == 4
    assert verdicts(tmp_path / "with") == verdicts(tmp_path / "without")
    lengths = [len(newest(one.out)) for one in (live, without)]
    assert lengths[0] < lengths[1] * 0.6
    # Whoever leads without what was committed before the base is told of, as it is without one.
    stamp = next(fleet.told("shrunk", fleet.cluster.partitions)).text[:26]
    fleet.cluster.now += 1_000
    moved = list(fleet.moved(fleet.cluster.partitions))
    short = [replace(line, text=RESTARTED.sub(r"\1 0\2 0", line.text))
             if not line.digest else line for line in moved]  # fmt: skip
    for one in (live, without):
        one.step(len(minutes), [*made_anew(stamp, 1, 2, 3), *short])
    found, expected = verdicts(tmp_path / "with"), verdicts(tmp_path / "without")
    for identity, rows in expected.items():
        decided = [row for row in rows if row[1] != "UNKNOWN"]
        assert [row for row in found[identity] if row in decided] == decided
    assert all(("committed_records_survive", "VIOLATED") in rows for rows in found.values())
    assert losses(tmp_path / "without") <= losses(tmp_path / "with")


def test_who_has_not_what_a_smaller_isr_may_have_committed_keeps_its_changes(
    tmp_path: Path,
) -> None:
    """Broker 3's logs end where they did before the ISR shrank to grow again: that is short of what
    the leader had then, unless it leads itself."""
    _, minutes = steady_lines(4)
    ends: dict[str, int] = {}

    def stuck(line: ShippedLine) -> ShippedLine:
        told = json.loads(line.text) if line.digest and line.host == "broker-3" else {}
        if "name" not in told:
            return line
        told["log_end_offset"] = ends.setdefault(told["name"], told["log_end_offset"])
        return replace(line, text=json.dumps(told))

    live = shipped(tmp_path, [[stuck(line) for line in lines] for lines in minutes], BASE_AFTER)
    assert [json.loads(key)[3] for key in bases(live)] == [1]


def test_what_a_log_came_back_with_before_a_base_is_made_up_for(tmp_path: Path) -> None:
    """That a log was made, or loaded after a crash, is no doubt of who leads after the base."""
    _, minutes = steady_lines()
    stamp = next(line.text[:26] for line in minutes[0] if not line.digest)
    minutes[0] += made_anew(stamp, 3)
    live = shipped(tmp_path / "with", minutes, BASE_AFTER)
    without = shipped(tmp_path / "without", minutes, 0)
    assert len(bases(live)) == 4
    started = [[e for e in newest(one.out) if e.fact.kind == "replica_started"]
               for one in (live, without)]  # fmt: skip
    assert [len(each) for each in started] == [0, 4]


def test_what_is_left_of_lines_in_local_time_is_in_local_time() -> None:
    packer, hour = Packer("server.log"), 3_600_000
    for at in (hour + 5, hour + 20):
        packer.add(LogLineFact("truncated", at, 1, "server.log", None, "t", 0, {"to_offset": 3}))
    lines = replace(packer.done()[0], ahead=hour)
    whole = PartitionEvidence("", "t", "", 0, packed={1: [lines]})
    base = Base(1, 1, (1,), since={1: hour + 10})
    for _ in range(2):
        whole = without_settled(whole, base)
        assert [(fact.at, each.ahead) for each in whole.packed[1] for fact in each] == [(20, hour)]


@pytest.mark.slow
def test_what_is_shipped_again_of_before_a_base_counts_for_nothing(
    followed: dict[float, Followed], tmp_path: Path
) -> None:
    live = copied(followed[BASE_AFTER].live, tmp_path)
    for number, lines in enumerate(fleet_lines(), MINUTES + 1):
        assert live.step(number, lines).changed == []


@pytest.mark.slow
def test_a_micro_batch_that_is_done_again_finds_the_same_bases(
    followed: dict[float, Followed], tmp_path: Path
) -> None:
    before = followed[BASE_AFTER]
    started = copied(before.live, tmp_path)
    started.step(MINUTES, fleet_lines()[-1])
    assert bases(started) == bases(before.live) != {}
    assert verdicts(tmp_path) == before.verdicts[-1]


def behind(line: ShippedLine) -> ShippedLine | None:
    """Broker 3's logs end at their start."""
    if not line.digest or line.host != "broker-3":
        return line
    told = json.loads(line.text)
    if told["what"] == "partition":
        told["log_end_offset"] = told["log_start_offset"]
    return replace(line, text=json.dumps(told))


def forked(line: ShippedLine) -> ShippedLine | None:
    """Broker 3's logs have a leader epoch that no other one has."""
    if not line.digest or line.host != "broker-3":
        return line
    told = json.loads(line.text)
    if told["what"] == "partition":
        told["leader_epochs"] = [[e + (e > 0), at] for e, at in told["leader_epochs"]]
    return replace(line, text=json.dumps(told))


def undigested(line: ShippedLine) -> ShippedLine | None:
    """No digest is made beside broker 3."""
    return None if line.digest and line.host == "broker-3" else line


def shrunk(line: ShippedLine) -> ShippedLine | None:
    """Leaders begin with themselves alone in the ISR."""
    if "starts at leader epoch" not in line.text or ", ISR [" not in line.text:
        return line
    before, _, rest = line.text.partition(", ISR [")
    members, _, rest = rest.partition("]")
    return replace(line, text=f"{before}, ISR [{members.split(',')[0]}]{rest}")


@pytest.mark.parametrize("change", [behind, forked, undigested, shrunk])
def test_what_is_open_is_kept(change: Change, tmp_path: Path) -> None:
    """Where a replica is behind, differs, is not seen or not in the ISR."""
    minutes = [
        [new for line in lines if (new := change(line)) is not None] for lines in fleet_lines()
    ]
    live = shipped(tmp_path, minutes, BASE_AFTER)
    assert not bases(live)
    without = shipped(tmp_path / "without", minutes, 0)
    assert [e.fact for e in newest(live.out)] == [e.fact for e in newest(without.out)] != []


def test_a_base_is_kept_as_it_is() -> None:
    base = Base(7, 11, (3, 1, 2), {1: 5, 2: 6}, {1: 4})
    assert Base.from_json(json.loads(json.dumps(base.to_json()))) == base


@pytest.mark.slow
def test_the_folder_says_the_same_as_what_is_kept(followed: dict[float, Followed]) -> None:
    """Importing what is left in the spool, without the bases, contradicts nothing."""
    kept = followed[BASE_AFTER]
    spool = kept.live.folder / "spool" / "fleet"
    events = [named(event, "fleet") for event in import_evidence([spool]).events()]
    left = {
        f.identity: {v["invariant"]: v["verdict"] for v in f.answer.verdicts}
        for f in fold_all(events)
    }
    for identity, rows in kept.verdicts[-1].items():
        for invariant, verdict in rows:
            assert left[identity][invariant] in (verdict, "UNKNOWN")
