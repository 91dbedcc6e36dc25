"""What a copy of a replica's log shows: what was not handed over is not absent."""

from types import SimpleNamespace
from typing import Any

from replication.evidence.joining.shown_by_copies import shown_by
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import EpochEntry, Span

DESCRIBED = ev.PartitionDescribed()


def copy(
    spans: list[Span], segments: tuple[int, ...] = (0,), clean: bool = True,
    read_at: int | None = None, unread_from: int | None = None, **more: Any,
) -> Any:  # fmt: skip
    directory = SimpleNamespace(
        log_start_offset=segments[0] if segments else None,
        log_end_offset=spans[-1].end_offset if spans else None,
        segments=[SimpleNamespace(base_offset=base) for base in segments],
        epoch_entries=None, unread=(), high_watermark=None, recovery_point=None,
        last_snapshot_offset=None, end_is_certain=True, kind="replica",
    )  # fmt: skip
    vars(directory).update(more)
    return SimpleNamespace(
        broker=1, directory=directory, spans=spans, clean=clean, read_at=read_at,
        unread_from=unread_from,
    )  # fmt: skip


def seen(each: Any, keeps: bool = True) -> ev.ReplicaLogObserved:
    found = shown_by(each, keeps, DESCRIBED)
    assert isinstance(found, ev.ReplicaLogObserved)
    return found


def test_a_copy_without_segments_only_shows_that_the_broker_lived() -> None:
    assert shown_by(copy([], segments=()), True, DESCRIBED) == ev.ReplicaStarted(1)


def test_a_whole_copy() -> None:
    found = seen(copy([Span(0, 9, 2, 0)], high_watermark=9))
    assert (found.spans, found.log_end_offset, found.stopped) == ((Span(0, 9, 2, 0),), 9, True)
    assert found.copy == "current"


def test_a_clean_stop_holds_what_its_files_say_and_a_crashed_one_may_not() -> None:
    held = [Span(0, 9, 2, 0)]
    for more in ({"high_watermark": 12}, {"recovery_point": 12}, {"last_snapshot_offset": 12}):
        found = seen(copy(held, **more))
        assert (found.copy, found.stopped, found.log_end_offset) == ("part", None, 9)
        assert found.spans == tuple(held)
    assert seen(copy(held, end_is_certain=False)).copy == "part"
    crashed = seen(copy(held, clean=False, high_watermark=12))
    assert (crashed.copy, crashed.stopped, crashed.log_end_offset) == ("current", False, 9)


def test_a_cut_leaves_the_high_watermark_up_to_2_3_and_a_clean_stop_writes_it_down() -> None:
    held = [Span(0, 4, 0, 0)]

    def found(version: str | None, **more: Any) -> ev.Fact:
        each = copy(held, high_watermark=15, **more)
        return shown_by(each, True, ev.PartitionDescribed(kafka_version=version))

    shown = found("1.1.1", recovery_point=4)
    assert isinstance(shown, ev.ReplicaLogObserved)
    assert (shown.copy, shown.stopped, shown.log_end_offset) == ("current", True, 4)
    for unsure in (
        found("2.8.2", recovery_point=4),
        found(None, recovery_point=4),
        found("1.1.1"),
        found("1.1.1", recovery_point=15),
        found("1.1.1", recovery_point=4, last_snapshot_offset=9),
    ):
        assert isinstance(unsure, ev.ReplicaLogObserved)
        assert (unsure.copy, unsure.stopped) == ("part", None)


def test_a_segment_that_is_missing_in_between_is_unknown_unless_the_topic_is_compacted() -> None:
    two = [Span(0, 5, 2, 0), Span(9, 12, 2, 0)]
    unknown = Span(5, 9, None, None)
    assert seen(copy(two, segments=(0, 9))).spans == (two[0], unknown, two[1])
    assert seen(copy(two, segments=(0, 9)), keeps=False).spans == tuple(two)


def test_records_below_the_first_segment_that_the_epochs_name_are_unknown() -> None:
    found = seen(copy([Span(5, 9, 2, 0)], segments=(5,), epoch_entries=((2, 0),)))
    assert (found.log_start_offset, found.spans[0]) == (0, Span(0, 5, None, None))


def test_where_the_last_segments_are_unread_only_a_part_was_seen() -> None:
    found = seen(copy([Span(0, 5, 2, 0)], unread=((5, None),), high_watermark=20))
    assert (found.log_end_offset, found.copy, found.stopped) == (20, "part", None)
    assert found.spans[-1] == Span(5, 20, None, None)


def test_what_was_seen_beside_a_running_broker_is_live_and_of_one_that_stopped_current() -> None:
    spans = [Span(0, 9, 0, None)]
    described = ev.PartitionDescribed(cleanup_policy="delete")
    beside = copy(spans, clean=False, read_at=5, high_watermark=7)
    runs = shown_by(beside, False, described)
    assert isinstance(runs, ev.ReplicaLogObserved)
    assert (runs.copy, runs.stopped, runs.high_watermark) == ("live", False, 7)
    assert (runs.log_end_offset, runs.spans) == (9, tuple(spans))
    assert seen(copy(spans, read_at=5)).copy == "current"


def test_where_records_are_in_a_compacted_log_its_epochs_do_not_tell() -> None:
    """A follower that fetched epoch 1 after its first records were cleaned notes its begin late."""
    early, late = (
        [Span(0, 4, 0, None), Span(4, 9, 1, None)],
        [Span(0, 8, 0, None), Span(8, 9, 1, None)],
    )
    for policy in ("compact", "[compact, delete]", None):
        described = ev.PartitionDescribed(cleanup_policy=policy)
        for each in (early, late):
            shown = shown_by(copy(each, clean=False, read_at=5), False, described)
            assert isinstance(shown, ev.ReplicaLogObserved)
            assert shown.spans == (Span(0, 9, None, None),)


def test_from_where_its_files_contradict_each_other_a_copy_counts_as_unread() -> None:
    found = seen(copy(
        [Span(0, 20, 0, 0)], unread_from=20, high_watermark=25, epoch_entries=((0, 0), (1, 20)),
    ))  # fmt: skip
    assert (found.copy, found.stopped, found.high_watermark) == ("part", None, None)
    assert found.spans == (Span(0, 20, 0, 0),)
    assert found.epoch_entries == (EpochEntry(0, 0),)


def test_a_topic_that_is_compacted_and_nothing_else_began_at_0() -> None:
    """No retention takes its segments: of one that is not there, nobody knows what it holds."""

    def found(policy: str, segments: tuple[int, ...], **more: Any) -> tuple[int, Span]:
        each = copy([Span(1846, 1888, 2, 0)], segments=segments, **more)
        shown = shown_by(each, False, ev.PartitionDescribed(cleanup_policy=policy))
        assert isinstance(shown, ev.ReplicaLogObserved)
        return shown.log_start_offset, shown.spans[0]

    held = Span(1846, 1888, 2, 0)
    assert found("compact", (1824,)) == (0, Span(0, 1824, None, None))
    assert found("compact", (0, 1824)) == (0, held)
    assert found("compact,delete", (1824,)) == (1824, held)
    assert found("compact", (1824,), log_start_offset=1840) == (1840, held)
