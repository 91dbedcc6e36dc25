"""What clients were told, as runs of offsets with one identity each."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from replication.evidence.clients.client_logs import Acknowledgement, Consumption
from replication.evidence.joining.copies import UNSEEN_CONTENT, Contents, Copy
from replication.evidence.joining.event_order import Entry
from replication.evidence.joining.places import Place
from replication.evidence.joining.promised_records import (
    claimed_elsewhere,
    promised,
    unanswered,
    unplaced,
)
from replication.evidence.joining.registrations import Recorded
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from tests.evidence.joining.evidence import evidence
from tests.evidence.joining.lines import acknowledged, line


def told(offset: int, **more: Any) -> Acknowledgement:
    return acknowledged(str(offset), ts=offset, offset=offset, **more)


def runs(*acks: Acknowledgement, **more: Any) -> list[Entry]:
    return list(promised(evidence(acknowledgements=list(acks), **more)))


def bare(entry: Entry) -> ev.Fact:
    """What an acknowledgement says, without the time of the last one."""
    assert isinstance(entry.fact, ev.RecordsAcknowledged)
    return replace(entry.fact, observed_until=None)


def until(entry: Entry) -> int | None:
    assert isinstance(entry.fact, ev.RecordsAcknowledged)
    return entry.fact.observed_until


def test_neighbours_of_one_kind_are_one_run_from_the_first_ones_time_on() -> None:
    found = runs(told(7), told(5), told(6), told(9), told(8, acks="1"))
    assert [entry.fact for entry in found] == [
        ev.RecordsAcknowledged(5, 8, "all", observed_until=7),
        ev.RecordsAcknowledged(8, 9, "1", observed_until=8),
        ev.RecordsAcknowledged(9, 10, "all", observed_until=9),
    ]
    assert [entry.at for entry in found] == [5, 8, 9]


def test_when_the_last_was_told_is_known_where_each_has_a_time() -> None:
    found = runs(replace(told(5), ts=8), told(6), told(7), replace(told(8), ts=None))
    assert [bare(entry) for entry in found] == [ev.RecordsAcknowledged(5, 9, "all")]
    assert [until(entry) for entry in found] == [None]
    found = runs(replace(told(5), ts=8), told(6), told(7))
    assert [until(entry) for entry in found] == [8]


def test_a_record_that_was_told_of_long_before_the_one_below_begins_a_run_of_its_own() -> None:
    found = runs(replace(told(5), ts=9_000), told(6), told(7))
    assert [bare(entry) for entry in found] == [
        ev.RecordsAcknowledged(5, 6, "all"), ev.RecordsAcknowledged(6, 8, "all"),
    ]  # fmt: skip


def test_what_nobody_promised_is_no_promise() -> None:
    assert runs(told(5, acks="0"), told(6, status="failed"), told(7, status="unknown")) == []


def test_an_id_that_was_acknowledged_at_two_offsets_names_nothing() -> None:
    twice = [acknowledged("a", offset=5), acknowledged("a", offset=9)]
    each = evidence(acknowledgements=twice)
    assert [bare(entry) for entry in promised(each)] == [
        ev.RecordsAcknowledged(5, 6, "all"), ev.RecordsAcknowledged(9, 10, "all"),
    ]  # fmt: skip
    assert "1 payload ids were acknowledged at several offsets" in each.notes[0]


def test_consumed_records() -> None:
    seen = [Consumption(ts=n, client="c", topic="t", partition=0, offset=n, payload_id=None,
                        topic_id=None, path="c.jsonl", line=n) for n in (3, 4)]  # fmt: skip
    found = list(promised(evidence(consumptions=seen)))
    assert [entry.fact for entry in found] == [ev.RecordsConsumed(3, 5)]


def test_a_compacted_record_is_none_of_those_that_clients_name_at_its_offset_elsewhere() -> None:
    """What an older copy has at offset 1 somebody names: the other id there is of another record.
    At offset 2 nobody names it, so it may be the very record after all."""
    acks = [acknowledged(name, offset=o) for name, o in (("a", 1), ("b", 1), ("c", 2))]
    places = {"a": [Place(1, 0, 0)]}
    leader = cast(Copy, SimpleNamespace(spans=[], path="now"))
    older = SimpleNamespace(spans=[Span(1, 3, 0, 0)], path="then")
    each = evidence(acknowledgements=acks, contents=Contents(places=places), copies=[leader, older])
    assert claimed_elsewhere(each, leader) == {1}


def test_a_record_that_was_sent_again_after_an_election_is_of_either_leader_epoch() -> None:
    """An idempotent producer wrote it to a leader that was replaced, and to the next one: which of
    the two it was told of nobody knows."""
    once, again = Place(5, 0, 0), Place(5, 1, 0)

    def leader_epoch(*places: Place) -> int | None:
        contents = Contents(places={"5": list(places)}, payloads_read=True)
        (entry,) = runs(told(5), contents=contents)
        fact = entry.fact
        assert isinstance(fact, ev.RecordsAcknowledged)
        assert (fact.first_offset, fact.content) == (5, 0)
        return fact.leader_epoch

    assert leader_epoch(once) == leader_epoch(once, once) == 0
    assert leader_epoch(once, again) is None
    assert leader_epoch(once, Place(9, 1, 0)) == 0


def test_a_record_that_another_replaced_at_its_offset_is_found_in_no_copy() -> None:
    by_offset = [replace(told(n, line=n), payload_id=None, offset=o) for n, o in ((1, 2), (2, 6))]
    again = replace(by_offset[1], ts=9, line=3)
    anew = line("became_leader", leader_epoch=1, log_end_offset=5)
    each = evidence(anew, acknowledgements=[*by_offset, again])
    assert [bare(entry) for entry in promised(each)] == [
        ev.RecordsAcknowledged(2, 3, "all"),
        ev.RecordsAcknowledged(6, 7, "all"),
        ev.RecordsAcknowledged(6, 7, "all", None, UNSEEN_CONTENT),
    ]


def test_what_a_copy_shows_is_not_the_record_that_is_gone_where_nobody_knows_what_stands() -> None:
    """The log of the last leader is not here: of two records of an offset another log shows one."""
    first, again = (replace(told(n, line=n), payload_id=None, offset=6) for n in (1, 2))
    below = replace(told(0, line=3), payload_id=None, offset=2)
    anew = line("became_leader", leader_epoch=1, log_end_offset=5)
    copy = SimpleNamespace(
        broker=2, path="here", spans=[Span(0, 9, 1, 0)], slot=0.0, is_dump=False, read_at=None,
        directory=SimpleNamespace(epoch_entries=(), kind="replica", spans=()),
    )  # fmt: skip
    recorded = [Recorded(ev.LeadershipRecorded(1, 1), None, ev.Source("x"))]
    each = evidence(anew, acknowledgements=[below, first, again], recorded=recorded, copies=[copy])
    assert {(f.first_offset, f.leader_epoch, f.content) for f in map(bare, promised(each))} == {
        (2, None, None), (6, None, None),
    }  # fmt: skip


def test_what_was_acknowledged_without_an_offset_and_stands_nowhere_is_told() -> None:
    def by_offset(offset: int | None, **more: Any) -> Acknowledgement:
        return replace(told(1, line=9, **more), payload_id=None, offset=offset)

    found = acknowledged("here", offset=None)
    again, first = acknowledged("twice", offset=None), acknowledged("twice", offset=4)
    by_sequence = {"producer_id": 7, "producer_epoch": 0, "sequence": 3}
    gone, nothing = acknowledged("gone", offset=None), by_offset(None)
    sent = acknowledged("sent", offset=None, acks="0")
    each = evidence(
        acknowledgements=[
            found, again, first, gone, nothing, sent,
            by_offset(None, **by_sequence), by_offset(5, **by_sequence),
        ],
        contents=Contents(places={"here": [Place(1, 0, 0)]}, payloads_read=True),
    )  # fmt: skip
    assert unplaced(each) == [gone, nothing]


def test_of_a_send_without_an_answer_a_copy_or_another_attempt_may_tell() -> None:
    lost, bare_one = (
        told(1, status="sent", acks="0"),
        replace(told(2, status="unknown"), payload_id=None),
    )
    stands, refused = told(3, status="unknown"), told(4, status="failed")
    again = told(5, status="unknown")
    each = evidence(
        acknowledgements=[lost, bare_one, stands, refused, again, replace(again, status="acked")],
        contents=Contents(places={"3": [Place(3, 0, 0)]}, payloads_read=True),
    )
    assert unanswered(each) == [lost, bare_one]


def test_a_record_that_nothing_names_and_that_is_gone_is_the_one_that_another_copy_shows() -> None:
    by_offset = [replace(told(n, line=n), payload_id=None, offset=o) for n, o in ((1, 2), (2, 6))]
    again = replace(by_offset[1], ts=9, line=3)
    now, then = (
        SimpleNamespace(
            broker=broker, is_dump=False, slot=0, read_at=None, clean=True, path=str(broker),
            spans=[Span(5, 7, leader_epoch, leader_epoch)],
            directory=SimpleNamespace(epoch_entries=(), kind="replica"),
        )
        for broker, leader_epoch in ((1, 1), (2, 0))
    )  # fmt: skip
    anew = line("became_leader", leader_epoch=1, log_end_offset=5)
    led = [Recorded(ev.LeadershipRecorded(1, 1), None, ev.Source("x"))]
    each = evidence(anew, acknowledgements=[*by_offset, again], copies=[now, then], recorded=led)
    assert ev.RecordsAcknowledged(6, 7, "all", 0, 0) in [bare(entry) for entry in promised(each)]


def test_of_two_records_told_at_a_compacted_offset_each_has_a_content_of_its_own() -> None:
    by_offset = [replace(told(n, line=n), payload_id=None, offset=o) for n, o in ((1, 2), (2, 6))]
    again = replace(by_offset[1], ts=9, line=3)
    stands = SimpleNamespace(
        broker=1, is_dump=False, slot=0, read_at=None, clean=True, path="1",
        spans=[Span(7, 9, 1, 0)], directory=SimpleNamespace(epoch_entries=(), kind="replica"),
    )  # fmt: skip
    anew = line("became_leader", leader_epoch=1, log_end_offset=5)
    led = [Recorded(ev.LeadershipRecorded(1, 1), None, ev.Source("x"))]
    each = evidence(anew, acknowledgements=[*by_offset, again], copies=[stands], recorded=led)
    contents = [f.content for f in map(bare, promised(each)) if f.first_offset == 6]
    assert len(set(contents)) == 2
    assert None not in contents


def at_a_compacted_offset(*acks: Acknowledgement, stands_at: int = 8) -> list[ev.Fact]:
    """What is told of these, of which no copy shows any, and of the record "here" that its client
    was told to be at offset 8."""
    leader = SimpleNamespace(
        broker=1, is_dump=False, slot=0, read_at=None, clean=True, path="1",
        spans=[Span(8, 10, 1, 0)], directory=SimpleNamespace(epoch_entries=(), kind="replica"),
    )  # fmt: skip
    led = [Recorded(ev.LeadershipRecorded(1, 1), None, ev.Source("x"))]
    contents = Contents(places={"here": [Place(stands_at, 1, 0)]}, payloads_read=True)
    here = acknowledged("here", ts=9, offset=8, line=9)
    each = evidence(acknowledgements=[*acks, here], copies=[leader], recorded=led,
                    contents=contents)  # fmt: skip
    return [entry.fact for entry in promised(each)]


@pytest.mark.parametrize(("client", "stands_at", "found"), [("p", 8, 2), ("p", 9, 1), ("d", 8, 1)])
def test_an_offset_told_of_two_records_is_their_own_where_copies_show_its_client_right(
    client: str, stands_at: int, found: int
) -> None:
    two = [acknowledged(n, ts=at, line=at, offset=0) for n, at in (("a", 1), ("b", 2))]
    told_of = at_a_compacted_offset(*[replace(a, client=client) for a in two], stands_at=stands_at)
    assert len({f.content for f in told_of if f.first_offset == 0}) == found


def test_the_same_record_told_twice_is_no_other_one() -> None:
    two = [acknowledged("a", ts=at, line=at, offset=0) for at in (1, 2)]
    other = acknowledged("b", ts=3, line=3, offset=0)
    for acks, found in ((two, 1), ([*two, other], 2)):
        told_of = at_a_compacted_offset(*acks)
        assert len({f.content for f in told_of if f.first_offset == 0}) == found
