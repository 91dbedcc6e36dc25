"""What is declared whole: where something is absent there, it was not."""

from dataclasses import replace
from types import SimpleNamespace

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.declared_coverage import declared_coverage, is_traced
from replication.evidence.joining.registrations import Recorded
from replication.evidence.joining.traces import NEEDED_KINDS
from replication.protocol.ground import events as ev
from tests.evidence.joining.evidence import evidence, leads, started
from tests.evidence.joining.lines import line
from tests.evidence.test_placement import copy_of


def declared(each: object) -> set[tuple[str, int | None, bool]]:
    return {(c.subject, c.replica, c.complete) for c in declared_coverage(each)}  # type: ignore[arg-type]


def test_a_brokers_log_covers_where_it_begins_with_a_start_and_no_line_is_anybodys() -> None:
    whole = evidence(started(), leads(0, 1))
    assert declared(whole) == {("broker_log", 1, True)}
    assert declared(evidence(leads(0, 1))) == {("broker_log", 1, False)}
    assert ("whole_log", 1, False) in declared(evidence(started(), line("corruption_found")))
    assert declared(replace(whole, unsure_lines={1: "whose?"})) == {("broker_log", 1, False)}


def test_who_changed_the_isr_in_an_epoch_that_no_line_of_its_names_has_lost_lines() -> None:
    """With ZooKeeper the leader writes the ISR itself. A rotated file in the middle is gone."""

    def covered(*versions: int, leader_epoch: int = 0, controller: str = "zookeeper") -> bool:
        recorded = [
            Recorded(
                ev.LeadershipRecorded(1, leader_epoch, partition_epoch=v), None, ev.Source("x")
            )
            for v in versions
        ]
        found = evidence(
            started(), line("log_created"), leads(3, 1), recorded=recorded,
            described=ev.PartitionDescribed(controller=controller),
        )  # fmt: skip
        return ("broker_log", 1, True) in declared(found)

    assert not covered(4)
    assert not covered(5, 6, leader_epoch=1)
    # It may not have heard of that epoch, or its lines end before.
    assert [covered(0), covered(5, leader_epoch=1)] == [True, True]
    assert [covered(5, 6, leader_epoch=3), covered(5, 6, leader_epoch=4)] == [True, True]
    assert covered(4, controller="kraft")


def test_what_clients_logs_and_controllers_cover() -> None:
    found = evidence(
        has_acknowledgement_log=True, has_consumption_log=True, has_all_producers=True,
        history_complete=True, later_history="the quorum committed more",
        unplaced_by_isr="1 acknowledged without an offset", unanswered="1 sent",
    )  # fmt: skip
    assert {subject for subject, _, _ in declared(found)} == {
        "acknowledgements", "consumptions", "all_producers", "controller_history",
        "controller_history_end", "committed_records", "sends",
    }  # fmt: skip


def test_of_clients_logs_with_lines_that_cannot_be_read_some_is_missing() -> None:
    found = evidence(
        has_acknowledgement_log=True, has_consumption_log=True, has_all_producers=True,
        missing={"acknowledgements": "1 line cannot be read"},
    )  # fmt: skip
    assert declared(found) == {("acknowledgements", None, False), ("consumptions", None, True)}


def test_a_listed_replica_without_its_directory_is_known_to_be_missing() -> None:
    assert declared(evidence(listed_replicas={3})) == {("log_directory", 3, False)}


def traced_lines() -> list[LogLineFact]:
    kinds = sorted(NEEDED_KINDS)
    return [leads(4, 1), *(line(k, at=9, number=n, leader_epoch=4) for n, k in enumerate(kinds, 2))]


def test_a_trace_that_lacks_a_term_which_the_controller_gave_is_none() -> None:
    def given(*leader_epochs: int) -> list[Recorded]:
        return [Recorded(ev.LeadershipRecorded(1, e), None, ev.Source("x")) for e in leader_epochs]

    assert is_traced(evidence(*traced_lines(), recorded=given(4)), 1)
    lacks_one = evidence(*traced_lines(), recorded=given(3, 4))
    assert not is_traced(lacks_one, 1)
    # A stream has forgotten what was told of it.
    assert is_traced(replace(lacks_one, settled_below=4), 1)
    assert not is_traced(evidence(*traced_lines(), damaged_lines={1}), 1)
    assert not is_traced(evidence(leads(4, 1)), 1)


def test_a_trace_that_ends_before_what_its_log_knows_of_is_none() -> None:
    """The newer half of its file is not here: its log has records of a later leader epoch."""
    by = ev.PartitionDescribed(controller="kraft")
    for last, traced in ((4, True), (5, False)):
        copy = copy_of("copy", 10, clean=True)
        copy = replace(copy, broker=1, directory=replace(copy.directory, spans=((last, 0, 1),)))
        assert is_traced(evidence(*traced_lines(), described=by, copies=[copy]), 1) is traced


def test_a_copy_of_a_clean_stop_that_no_line_tells_shows_that_lines_are_missing() -> None:
    whole = evidence(started(), leads(0, 1))
    for clean, known, covered in ((True, False, False), (True, True, True), (False, False, True)):
        copy = SimpleNamespace(
            broker=1, clean=clean, order_known=known, is_dump=True, read_at=None, slot=0.0,
            spans=[], directory=SimpleNamespace(kind="replica", spans=(), epoch_entries=()),
        )  # fmt: skip
        found = declared(replace(whole, copies=[copy]))
        assert ("broker_log", 1, covered) in found
