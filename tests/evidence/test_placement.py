"""Where a copy of a log directory belongs among the lives of its broker, in the smallest forms."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.partition_events import events_of
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.placement import Life, Ordered, lives_of, place
from replication.evidence.log_directories.log_directory import LogDirectory, PartitionDirectory
from replication.protocol.ground import events as ev

OF_THE_PROCESS = (
    "process_started", "stopped_cleanly", "clean_shutdown_found", "broker_epoch_granted",
)  # fmt: skip


def line(number: int, kind: str, **fields: Any) -> LogLineFact:
    partition = None if kind in OF_THE_PROCESS else 0
    topic = None if partition is None else "t"
    return LogLineFact(kind, 1_000 * number, number, "server.log", None, topic, partition, fields)


def copy_of(name: str, end: int, *, clean: bool, newest: int | None = None) -> Copy:
    directory = PartitionDirectory(
        path=Path(name) / "t-0",
        topic="t",
        partition=0,
        kind="replica",
        topic_id=None,
        log_start_offset=0,
        first_batch_offset=0,
        log_end_offset=end,
        end_is_certain=True,
        batch_count=1,
        spans=((0, 0, end),),
        epoch_entries=((0, 0),),
        high_watermark=None,
        recovery_point=None,
        last_snapshot_offset=None,
        max_timestamp=newest,
        unreadable=(),
        segments=(),
    )
    parent = LogDirectory(Path(name), None, None, (directory,), (), None)
    return Copy(1, directory, parent, clean, latest_timestamp=newest)


def placed(copies: list[Copy], lines: list[LogLineFact]) -> list[Copy]:
    ordered: list[Ordered] = [((n, 0, n, 0), f) for n, f in enumerate(lines)]
    processes = [each for each in ordered if each[1].topic is None]
    place(copies, lives_of(processes, [[each for each in ordered if each[1].topic is not None]]))
    return copies


def test_a_copy_of_a_clean_stop_is_not_of_before_a_start_after_a_crash() -> None:
    """0.10 does not say whether it found the marker, but it recovers segments where it did not."""
    lines = [
        line(1, "process_started"),
        line(2, "log_loaded", log_end_offset=0),
        line(3, "stopped_cleanly"),
        line(4, "process_started"),
        line(5, "log_loaded", log_end_offset=10),
        line(6, "process_started"),
        line(7, "segment_recovered"),
        line(8, "log_loaded", log_end_offset=10),
        line(9, "became_follower", leader_epoch=1, log_end_offset=12),
    ]
    (clean,) = placed([copy_of("clean", 10, clean=True)], lines)
    assert (clean.slot, clean.order_known) == (1.0, True)
    (unclean,) = placed([copy_of("unclean", 10, clean=False)], lines)
    assert (unclean.slot, unclean.order_known) == (2.0, True)


@pytest.mark.parametrize("beside", [{"high_watermark": 20}, {"last_snapshot_offset": 20}, {}])
def test_a_copy_that_ends_below_what_lies_beside_it_has_no_known_place(
    beside: dict[str, int],
) -> None:
    """Its newest segments may be missing: neither its end nor its newest record tells its life."""
    lines = [
        line(1, "process_started"),
        line(2, "became_follower", leader_epoch=0, log_end_offset=0),
        line(4, "process_started"),
        line(5, "log_loaded", log_end_offset=10),
        line(6, "became_follower", leader_epoch=1, log_end_offset=15),
    ]
    for newest in (None, 2_000):
        copy = copy_of("running", 5, clean=False, newest=newest)
        copy.directory = replace(copy.directory, **beside)
        (found,) = placed([copy], lines)
        assert found.order_known is not bool(beside)
    # Of the last life it is where its newest record is.
    copy = copy_of("running", 12, clean=False, newest=6_000)
    copy.directory = replace(copy.directory, high_watermark=20)
    (found,) = placed([copy], lines)
    assert found.order_known


def test_a_copy_of_a_clean_stop_that_no_line_tells_has_no_known_place() -> None:
    lines = [line(1, "process_started"), line(2, "log_loaded", log_end_offset=10)]
    (clean,) = placed([copy_of("clean", 10, clean=True)], lines)
    assert not clean.order_known


@pytest.mark.parametrize(("clean", "slot"), [(True, 1.0), (False, 2.0)])
def test_a_copy_that_may_be_from_before_a_start_or_from_the_end(clean: bool, slot: float) -> None:
    """Of a clean stop it would prove at the end that what was written since the start is gone."""
    stop = [line(3, "stopped_cleanly")] if clean else []
    lines = [
        line(1, "process_started"),
        line(2, "log_loaded", log_end_offset=0),
        *stop,
        line(4, "process_started"),
        line(5, "log_loaded", log_end_offset=10),
        *stop,
    ]
    (copy,) = placed([copy_of("copy", 10, clean=clean)], lines)
    assert (copy.slot, copy.order_known) == (slot, True)


@pytest.mark.parametrize(("newest", "slot"), [(4_500, 2.0), (2_500, 0.5)])
def test_a_copy_with_records_of_a_life_that_it_does_not_fit_is_of_before_a_start_unseen(
    newest: int, slot: float
) -> None:
    """In a file of several brokers the lines of one start may be nobody's."""
    lines = [
        line(1, "process_started"),
        line(2, "log_loaded", log_end_offset=0),
        line(3, "process_started"),
        line(4, "log_loaded", log_end_offset=25),
        line(5, "process_started"),
        line(6, "process_started"),
        line(7, "log_loaded", log_end_offset=20),
    ]
    (copy,) = placed([copy_of("copy", 24, clean=False, newest=newest)], lines)
    assert copy.slot == slot


def test_the_high_watermark_that_a_replica_object_is_loaded_with_counts() -> None:
    """1.1 prints it for each replica, of which the remote ones' are 0."""
    evidence = PartitionEvidence("", "t", "", 0)
    evidence.described = ev.PartitionDescribed(assigned_replicas=(1, 2))
    evidence.lines[1] = [
        line(1, "process_started"),
        line(2, "log_loaded", log_end_offset=10),
        line(3, "replica_loaded", high_watermark=0),
        line(4, "replica_loaded", high_watermark=8),
    ]
    found = [e.fact for e in events_of(evidence, "trace", 0)]
    seen = [f for f in found if isinstance(f, ev.CheckpointObserved)]
    assert seen == [ev.CheckpointObserved(1, 8)]


def test_a_deleted_topics_log_beside_this_one_tells_nothing_of_when_both_were_copied() -> None:
    """Start 1 loads both under one name; only this one's end is what lines are held against."""
    lines = [
        line(1, "process_started"),
        line(2, "log_loaded", log_end_offset=26),
        line(3, "stopped_cleanly"),
        line(4, "process_started"),
        line(5, "log_loaded", log_end_offset=28),
        line(6, "log_loaded", log_end_offset=0),
        line(7, "became_leader", log_end_offset=30),
        line(8, "stopped_cleanly"),
    ]
    here = copy_of("b1", 28, clean=True)
    aside = copy_of("b1", 112, clean=True)
    aside.directory = replace(aside.directory, kind="deleted")

    assert [copy.slot for copy in placed([here, aside], lines)] == [1.0, 1.0]
    assert [copy.slot for copy in placed([copy_of("b1", 30, clean=True)], lines)] == [2.0]


@pytest.mark.parametrize(
    ("leader_epoch", "end", "clean", "place_of_copy"),
    [(3, 6, False, 1), (0, 6, False, 3), (3, 5, False, 3), (3, 6, True, 3)],
)
def test_a_copy_of_a_running_broker_with_what_was_cut_later_is_from_before(
    leader_epoch: int, end: int, clean: bool, place_of_copy: int
) -> None:
    """Broker 1 follows, and cuts to 5; the copy's records are of epoch 0, and one stands at 5."""
    evidence = PartitionEvidence("", "t", "", 0)
    evidence.lines[1] = [
        line(1, "process_started"),
        line(2, "became_leader", leader_epoch=0, log_end_offset=2),
        line(3, "became_follower", leader_epoch=leader_epoch, log_end_offset=8),
        line(4, "truncated", to_offset=5),
    ]
    copy = copy_of("b1", end, clean=clean)
    copy.slot = 0.5
    evidence.copies = [copy]
    found = [e.fact for e in events_of(evidence, "trace", 0)]
    found = [f for f in found if not isinstance(f, ev.CoverageDeclared)][1:]
    # Without segments it only shows that its broker lived on.
    (number,) = [n for n, f in enumerate(found) if isinstance(f, ev.ReplicaStarted)]

    assert number == place_of_copy


def test_a_copy_from_before_the_first_start_that_a_log_tells_of() -> None:
    """The log begins in the middle of a life, of which no start is told."""
    lines = [
        line(1, "became_leader", leader_epoch=0, log_end_offset=8),
        line(2, "stopped_cleanly"),
        line(3, "process_started"),
        line(4, "log_loaded", log_end_offset=9),
        line(5, "became_leader", leader_epoch=1, log_end_offset=9),
        line(6, "process_started"),
        line(7, "log_loaded", log_end_offset=12),
    ]
    copies = placed([copy_of("before", 9, clean=True), copy_of("live", 8, clean=False)], lines)
    assert [copy.slot for copy in copies] == [0.0, -0.5]

    evidence = PartitionEvidence("", "t", "", 0)
    evidence.lines[1], evidence.copies = lines, copies[:1]
    found = [e.fact for e in events_of(evidence, "trace", 0)]
    started = [f.log_end_offset for f in found if isinstance(f, ev.ReplicaStarted)]
    # Without segments a copy only shows that its broker lived on.
    assert started == [None, 9, 12]


@pytest.mark.parametrize(
    ("end", "clean", "unread_from"), [(10, True, 10), (12, True, None), (10, False, None)]
)
def test_of_a_copy_that_ends_before_its_log_did_segments_are_missing(
    end: int, clean: bool, unread_from: int | None
) -> None:
    """A log that was not closed may lack its end by itself."""
    lines = [
        line(1, "process_started"),
        line(2, "became_leader", leader_epoch=0, log_end_offset=0),
        line(3, "log_appended", end_offset=12),
        *([line(4, "stopped_cleanly")] if clean else []),
    ]
    (copy,) = placed([copy_of("copy", end, clean=clean)], lines)
    assert copy.unread_from == unread_from


def test_a_cut_above_the_log_says_nothing_of_where_it_ended() -> None:
    """Up to 0.11 a line says that the log is cut to an offset that it never reached, and the next
    one that this has no effect."""
    lines = [
        line(1, "process_started"),
        line(2, "truncated", to_offset=3),
        line(3, "truncated", to_offset=18),
        line(4, "truncation_without_effect", to_offset=18, last_offset=2),
        line(5, "stopped_cleanly"),
    ]
    (copy,) = placed([copy_of("copy", 6, clean=True)], lines)
    assert copy.unread_from is None


@pytest.mark.parametrize(("newest", "cut", "known"), [
    (0, None, True), (2, None, False), (0, 24, False),
    # Its log was deleted, and not made anew.
    (0, 0, True),
])  # fmt: skip
def test_what_a_broker_has_beyond_where_it_began_to_lead_bears_that_leader_epoch(
    newest: int, cut: int | None, known: bool
) -> None:
    """Two lives that no clock tells apart; in the later one the broker led from offset 24 on."""
    copy = copy_of("copy", 26, clean=False, newest=4_500)
    copy = replace(copy, directory=replace(copy.directory, spans=((newest, 0, 26),)))
    lives = [Life(ends={("t", 0): (0, 20, 20)}), Life(ends={("t", 0): (24, 40, 40)})]
    lives[1].began = {("t", 0): [(2, 24)]}
    lives[1].cuts = {} if cut is None else {("t", 0): {cut}}
    place([copy], lives)
    assert (copy.slot, copy.order_known) == ((0.5, True) if known else (2.0, False))


def test_lines_tell_where_a_broker_began_to_lead_and_whose_logs_it_cut() -> None:
    lines = [
        line(1, "process_started"),
        line(2, "became_leader", leader_epoch=2, log_end_offset=24),
        line(3, "process_started"),
        line(4, "truncated", to_offset=18),
    ]
    ordered: list[Ordered] = [((n, 0, n, 0), f) for n, f in enumerate(lines)]
    processes = [each for each in ordered if each[1].topic is None]
    led, cut = lives_of(processes, [[each for each in ordered if each[1].topic is not None]])
    assert (led.began, led.cuts) == ({("t", 0): [(2, 24)]}, {})
    assert (cut.began, cut.cuts) == ({}, {("t", 0): {18}})


@pytest.mark.parametrize("reused", [False, True])
def test_an_older_copy_is_not_placed_after_the_one_that_came_later(reused: bool) -> None:
    """The lines that tell of a cut are missing: the log ended last where the older copy ends."""
    old, new = copy_of("old", 72, clean=False), copy_of("new", 48, clean=False)
    old = replace(old, directory=replace(old.directory, spans=((2, 0, 72),)))
    new = replace(new, directory=replace(new.directory, spans=((2, 0, 40), (4, 40, 48))))
    life = Life(ends={("t", 0): (0, 72, 72)})
    place([old, new], [life], reused=("t",) if reused else ())
    assert (old.slot < new.slot) is not reused


def test_a_copy_of_a_clean_stop_whose_first_segments_are_missing_is_no_older_one() -> None:
    """The log of the other begins later; the lines tell of the clean stop."""
    last, before = copy_of("last", 24, clean=True), copy_of("before", 25, clean=False)
    before = replace(before, directory=replace(before.directory, log_start_offset=24))
    lives = [Life(), Life(ended_clean=True, ends={("t", 0): (24, 24, 24)})]
    lives[0].ends = {("t", 0): (0, 25, 25)}
    place([last, before], lives)
    assert last.slot > before.slot


@pytest.mark.parametrize(("broker_epoch", "slot"), [(19, 0.0), (137, 1.0), (None, 1.0)])
def test_the_epoch_beside_a_marker_tells_which_life_left_it(
    broker_epoch: int | None, slot: float
) -> None:
    """The lines begin with a start that loaded what a copy of the stop before it holds."""
    lines = [
        line(1, "process_started"),
        line(2, "clean_shutdown_found"),
        line(3, "broker_epoch_granted", broker_epoch=137),
        line(4, "log_loaded", log_end_offset=61),
        line(5, "became_leader", leader_epoch=5, log_end_offset=61),
        line(6, "stopped_cleanly"),
    ]
    copy = replace(copy_of("copy", 61, clean=True), broker_epoch=broker_epoch)
    (copy,) = placed([copy], lines)
    assert (copy.slot, copy.order_known) == (slot, True)


@pytest.mark.parametrize("registrations", [2, 9])
def test_a_copy_of_before_all_registrations_that_lines_tell_is_of_before_them(
    registrations: int,
) -> None:
    life = Life(registered=True)
    seen = replace(copy_of("copy", 61, clean=True), registrations=1)
    place([seen], [life], registrations=registrations)
    assert seen.slot == 0.0


@pytest.mark.parametrize("shown", [3, 4])
def test_a_copy_of_before_all_lines_stands_before_them(shown: int) -> None:
    """The lines begin within a life, and the copy is of before that one had registered."""
    lines = [
        line(1, "log_loaded", log_end_offset=61),
        line(2, "broker_epoch_granted", broker_epoch=137),
        line(3, "became_leader", leader_epoch=5, log_end_offset=61),
        line(4, "process_started"),
    ][:shown]
    (copy,) = placed([replace(copy_of("copy", 40, clean=True), broker_epoch=19)], lines)
    evidence = PartitionEvidence("c", "t", "", 0, lines={1: lines}, copies=[copy])
    told_by = [e.source.path for e in events_of(evidence, "trace", 0) if e.source is not None]
    assert told_by.index(str(copy.directory.path)) < told_by.index("server.log")


@pytest.mark.parametrize(("newest", "slot"), [(4, 1.0), (5, 2.0)])
def test_an_epoch_newer_than_lines_before_a_start_tells_only_where_some_line_names_it(
    newest: int, slot: float
) -> None:
    """A server.log without its state-change.log names few of the epochs."""
    lines = [
        line(1, "process_started"),
        line(2, "truncated", leader_epoch=4, to_offset=129),
        line(3, "stopped_cleanly"),
        line(4, "process_started"),
        line(5, "log_loaded", log_end_offset=187),
        line(6, "isr_updated", leader_epoch=newest),
        line(7, "stopped_cleanly"),
    ]
    (copy,) = placed([replace(copy_of("copy", 187, clean=True), latest_epoch=5)], lines)
    assert (copy.slot, copy.order_known) == (slot, True)


def of_topic(
    folder: str, topic: str, topic_id: str | None, leader_epoch: int, end: int, newest: int
) -> Copy:
    copy = copy_of(folder, end, clean=False, newest=newest)
    directory = replace(
        copy.directory, topic=topic, topic_id=topic_id, spans=((leader_epoch, 0, end),),
        epoch_entries=((leader_epoch, 0),),
    )  # fmt: skip
    return replace(copy, directory=directory, latest_epoch=leader_epoch)


@pytest.mark.parametrize(
    ("ids", "epochs", "order", "known"),
    [
        # Topic t was created anew: the later copy has lower epochs.
        (("first", "second"), (9, 0), ["then", "now"], False),
        (("first", "first"), (0, 9), ["then", "now"], True),
        (("first", "first"), (9, 0), ["now", "then"], True),
        # A file with the id may be missing.
        ((None, "first"), (0, 9), ["then", "now"], True),
    ],
)
def test_epochs_tell_the_order_of_copies_only_within_one_life_of_a_topic(
    ids: tuple[str | None, str | None], epochs: tuple[int, int], order: list[str], known: bool
) -> None:
    copies = []
    for folder, topic_id, leader_epoch, newest in zip(
        ("then", "now"), ids, epochs, (1, 2), strict=True
    ):
        copies.append(of_topic(folder, "t", topic_id, leader_epoch, 3, newest))
        copies.append(of_topic(folder, "u", "u", 1, 10 * newest, newest))
    parents = {folder: next(c for c in copies if c.path.startswith(folder)) for folder in order}
    copies = [replace(c, parent=parents[c.path.split("/")[0]].parent) for c in copies]
    for copy in copies:
        copy.latest_epoch = max(1, parents[copy.path.split("/")[0]].latest_epoch)
    place(copies, [])
    placed_in = sorted(parents, key=lambda f: min(c.slot for c in copies if c.path.startswith(f)))
    assert (all(c.order_known for c in copies), placed_in if known else order) == (known, order)


@pytest.mark.parametrize(
    ("mark", "in_life_0", "loaded", "slot"),
    [
        (36, (), 36, 1.0),
        (54, (), 36, 1.5),
        (54, (), 39, 1.0),
        (54, (), None, 1.0),
        (30, (), 36, 0.5),
        # A follower of two leaders takes the lower mark of the second, who cuts, too.
        (54, (line(3, "became_follower", leader_epoch=1, log_end_offset=39),), 36, None),
        (54, (line(3, "truncated", to_offset=36),), 36, None),
        (54, (line(3, "log_marked_deleted"),), 36, None),
    ],
)
def test_a_start_loads_the_high_watermark_of_the_copy_that_was_taken_before_it(
    mark: int, in_life_0: tuple[LogLineFact, ...], loaded: int | None, slot: float | None
) -> None:
    """Of a later copy the last segment is missing: its log ends where that start's did, too."""
    lines = [
        line(1, "process_started"),
        line(2, "became_leader", leader_epoch=0, log_end_offset=0),
        *in_life_0,
        line(5, "process_started"),
        line(6, "log_loaded", log_end_offset=39),
        *([] if loaded is None else [line(7, "high_watermark_loaded", high_watermark=loaded)]),
        line(8, "became_follower", leader_epoch=4, log_end_offset=39),
        line(9, "became_follower", leader_epoch=5, log_end_offset=60),
    ]
    copy = copy_of("copied", 39, clean=False, newest=2_000)
    copy.directory = replace(copy.directory, high_watermark=mark)
    (found,) = placed([copy], lines)
    assert (found.slot if found.order_known else None) == slot


def test_a_folder_of_which_no_segment_is_here_is_not_older_than_another_copy() -> None:
    """Of the later copy of a broker's directory no file of the log was handed over."""
    empty = copy_of("later", 0, clean=False)
    nothing = {"log_start_offset": None, "log_end_offset": None, "spans": (), "epoch_entries": None}
    empty.directory = replace(empty.directory, **nothing)
    whole = copy_of("earlier", 10, clean=True)
    placed([empty, whole], [])
    assert not whole.order_known


@pytest.mark.parametrize(
    ("recovery_points", "known"),
    [
        ((None, 13), True),
        ((0, 13), True),
        # The log may have been cut to where it ends, after the other copy was made.
        ((9, 13), False),
        # No checkpoints were copied with either.
        ((None, None), False),
    ],
)
def test_a_recovery_point_tells_which_of_two_copies_is_the_last(
    recovery_points: tuple[int | None, int | None], known: bool
) -> None:
    copies = [copy_of("before", 9, clean=False), copy_of("now", 13, clean=True)]
    for copy, point in zip(copies, recovery_points, strict=True):
        mark = None if recovery_points == (None, None) else 9
        copy.directory = replace(copy.directory, recovery_point=point, high_watermark=mark)
    before, now = placed(copies, [])
    assert (before.order_known, now.order_known) == (known, known)
    assert (before.slot < now.slot) == known


@pytest.mark.parametrize("flushed_since", [13, 17])
def test_a_recovery_point_that_a_cut_took_back_makes_no_copy_the_older(flushed_since: int) -> None:
    """0.10.2.2: the log was cut to 13, flushed up to 20 before, and had grown since as a copy was
    made beside the running broker."""
    lines = [
        line(1, "process_started"),
        line(2, "log_loaded", log_end_offset=0),
        line(3, "stopped_cleanly"),
        line(4, "process_started"),
        line(5, "log_loaded", log_end_offset=20),
        line(6, "truncated", to_offset=13),
        line(7, "process_started"),
        line(8, "log_loaded", log_end_offset=90),
        line(9, "stopped_cleanly"),
    ]
    copies = [
        copy_of("stopped", 20, clean=True, newest=3_500),
        copy_of("running", 90, clean=False, newest=6_500),
    ]
    for copy, flushed in zip(copies, (20, flushed_since), strict=True):
        copy.directory = replace(copy.directory, recovery_point=flushed, high_watermark=flushed)
    assert [(copy.slot, copy.order_known) for copy in placed(copies, lines)] == [
        (1.0, True),
        (2.0, True),
    ]
