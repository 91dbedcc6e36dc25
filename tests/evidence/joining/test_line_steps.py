"""A replica's steps by its broker's lines, each read by the role that the broker has."""

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.line_steps import steps_of_lines
from replication.protocol.ground import events as ev
from tests.evidence.joining.evidence import evidence, follows, leads, started
from tests.evidence.joining.lines import line, process


def facts(*lines: LogLineFact, **more: str) -> list[ev.Fact | None]:
    return [step.fact for step in steps_of_lines(evidence(*lines, **more), 1)]


def asked(leader: int, number: int, leader_epoch: int = 3) -> LogLineFact:
    return line(
        "leader_and_isr_received", number=number, at=number, leader=leader,
        leader_epoch=leader_epoch,
    )  # fmt: skip


def test_an_append_is_the_leaders_or_the_followers_by_what_was_said_before() -> None:
    def append(number: int) -> LogLineFact:
        return line("log_appended", number=number, at=number, first_offset=5, end_offset=7)

    found = facts(append(1), leads(4, 2), append(3), follows(5, 4), append(5))
    assert found[0] == ev.FollowerAppended(1, 5, 7)
    assert found[2] == ev.LeaderAppended(1, 5, 7, 4)
    assert found[4] == ev.FollowerAppended(1, 5, 7)


def test_a_request_changes_the_role_only_where_the_version_prints_no_line_of_its_own() -> None:
    assert facts(asked(1, 1)) == [ev.BecameLeader(1, 3)]
    assert facts(asked(2, 1)) == [ev.BecameFollower(1, 3, 2)]
    assert facts(asked(1, 1), leads(3, 2)) == [ev.BecameLeader(1, 3)]
    assert facts(asked(2, 1), follows(3, 2)) == [ev.BecameFollower(1, 3)]


def test_a_broker_that_was_upgraded_changed_its_role_by_requests_before() -> None:
    def runs(version: str, number: int) -> LogLineFact:
        return line("kafka_version", number=number, at=number, version=version)

    before = (runs("1.1.1", 1), asked(2, 2))
    after = (started(3, 3), runs("2.8.2", 4), asked(2, 5, 4), follows(4, 6))
    followed = [ev.BecameFollower(1, 3, 2), ev.BecameFollower(1, 4)]
    changes = [f for f in facts(*before, *after) if isinstance(f, ev.BecameFollower)]
    assert changes == followed
    # Where the first life does not tell its version, what it prints does.
    assert [f for f in facts(before[1], *after) if isinstance(f, ev.BecameFollower)] == followed
    # The same version that was killed before it printed its role had none.
    same = (runs("2.8.2", 1), asked(2, 2), *after)
    assert [f for f in facts(*same) if isinstance(f, ev.BecameFollower)] == followed[1:]


def test_what_is_appended_before_the_fetchers_are_removed_is_of_the_role_before() -> None:
    """Request, append and the change of role are three threads' work (1.1.1)."""

    def append(number: int) -> LogLineFact:
        return line("log_appended", number=number, at=number, first_offset=5, end_offset=7)

    def removed(number: int) -> LogLineFact:
        return line("fetcher_removed", number=number, at=number)

    led, follows_then = ev.LeaderAppended(1, 5, 7, 3), ev.BecameFollower(1, 4, 2)
    first = (asked(1, 1), removed(2), asked(2, 3, 4))
    assert facts(*first, append(4), removed(5))[1:] == [led, follows_then]
    assert facts(*first, removed(4), append(5))[1:] == [follows_then, ev.FollowerAppended(1, 5, 7)]
    # Nothing tells when it obeyed; and a process that ended obeyed nothing.
    assert facts(*first, append(4))[1] == follows_then
    assert facts(*first, append(4), started(5), removed(6))[1] == follows_then
    # Asked once more to follow the same one it does nothing.
    again = (asked(2, 1), removed(2), asked(2, 3, 4), append(4), removed(5))
    assert facts(*again)[1:] == [follows_then, ev.FollowerAppended(1, 5, 7)]
    leader = (asked(2, 1), removed(2), asked(1, 3, 4), append(4), removed(5))
    assert facts(*leader)[1:] == [ev.FollowerAppended(1, 5, 7), ev.BecameLeader(1, 4)]


def test_who_is_asked_to_follow_a_leader_that_is_down_follows_nobody() -> None:
    """Kafka makes its log and no follower of it, and keeps no epoch of such a request."""

    def failed(leader: int, number: int) -> LogLineFact:
        return line("become_follower_failed", number=number, at=number, leader=leader)

    assert facts(asked(2, 1), failed(2, 2)) == []
    assert facts(asked(2, 1), failed(2, 2), asked(1, 3, 4)) == [ev.BecameLeader(1, 4)]
    assert facts(asked(2, 1), failed(3, 2)) == [ev.BecameFollower(1, 3, 2)]
    assert facts(asked(2, 1), asked(2, 2, 4), failed(2, 3)) == [ev.BecameFollower(1, 3, 2)]


def test_a_request_that_is_refused_since_its_epoch_is_known_is_no_step() -> None:
    def refused(number: int, leader_epoch: int = 3) -> LogLineFact:
        return line(
            "leader_and_isr_ignored", number=number, at=number, leader_epoch=leader_epoch,
            current_leader_epoch=3,
        )  # fmt: skip

    followed = ev.BecameFollower(1, 3, 2)
    obeyed = line("role_change_started", number=2, at=2, role="follower")
    assert facts(asked(2, 1), asked(2, 2), refused(3)) == [followed]
    assert facts(asked(2, 1), obeyed, asked(2, 3), refused(4), refused(5)) == [followed]
    # Of a request that is refused the line itself may be missing.
    assert facts(asked(2, 1), obeyed, refused(3)) == [followed]
    assert facts(asked(2, 1), refused(2, 2)) == [followed]


def test_a_request_that_a_later_one_overtook_is_ignored_but_not_by_the_next_process() -> None:
    """A reassignment and an election cross: Kafka takes no lower epoch than it is at."""
    followed = ev.BecameFollower(1, 3, 2)
    assert facts(asked(2, 1), asked(2, 2, 2)) == [followed]
    assert facts(asked(2, 1), started(2, 2), asked(1, 3, 2))[-1] == ev.BecameLeader(1, 2)
    assert facts(asked(2, 1), asked(1, 2, 4)) == [followed, ev.BecameLeader(1, 4)]


def test_a_start_ends_the_life_before_as_its_last_lines_say() -> None:
    crashed = facts(started(0), leads(1, 1), started(2, 2))
    assert crashed[2] == ev.ReplicaStopped(1, "process_crash")
    stopped = facts(leads(1, 1), process("stopped_cleanly", 2, 2), started(3, 3))
    assert stopped[1] == ev.ReplicaStopped(1, "clean")
    assert facts(started(0)) == [None]


def test_a_load_is_clean_as_the_marker_before_it_says() -> None:
    loaded = line("log_loaded", at=2, number=2, log_end_offset=9)
    for kind, clean in (("clean_shutdown_found", True), ("unclean_recovery", False)):
        found = facts(process(kind, 1, 1), loaded)
        assert found == [ev.ReplicaStarted(1, None, 9, None, clean)]


def test_a_cut_has_the_reason_announced_just_before_it_else_the_versions() -> None:
    why = line("truncation_reason", at=0, number=1, reason="diverging_epoch")
    cut = line("truncated", at=900, number=2, to_offset=5)
    late = cut._replace(at=1_500)
    assert facts(why, cut) == [ev.Truncated(1, 5, None, "diverging_epoch")]
    assert facts(why, late, truncates_by="leader_epoch") == [
        ev.Truncated(1, 5, None, "leader_epoch")
    ]
    assert facts(cut, truncates_by="high_watermark") == [ev.Truncated(1, 5, None, "high_watermark")]
    out = line("fetch_out_of_range", at=0, number=1)
    assert facts(out, cut) == [ev.Truncated(1, 5, None, "out_of_range")]


def test_a_high_watermark_is_told_once_though_two_lines_print_it() -> None:
    moved = line("leader_high_watermark_updated", at=1, number=1, to_high_watermark=5)
    printed = line("high_watermark_set", at=1, number=2, high_watermark=5)
    others = line("high_watermark_set", at=1, number=3, high_watermark=7, replica=2)
    assert facts(moved, printed, others) == [ev.HighWatermarkAdvanced(1, 5)]


def test_threads_that_print_in_another_order_than_they_raised_lower_no_high_watermark() -> None:
    def raised(number: int, before: int, after: int) -> LogLineFact:
        return line(
            "leader_high_watermark_updated",
            number=number, from_high_watermark=before, to_high_watermark=after,
        )  # fmt: skip

    def told(*lines: LogLineFact) -> list[int]:
        found = facts(leads(4, 1), *lines)
        return [f.high_watermark for f in found if isinstance(f, ev.HighWatermarkAdvanced)]

    assert told(raised(2, 138, 140), raised(3, 137, 138), raised(4, 140, 141)) == [140, 141]
    assert told(raised(2, 138, 140), raised(3, 140, 138)) == [140, 138]
    assert told(raised(2, 5, 6), leads(3, 5), raised(4, 3, 4)) == [6, 4]


def test_a_leader_that_set_two_high_watermarks_prints_them_in_any_order() -> None:
    """Each thread sets one, then prints it (seen in 1.1.1): between the last two it was there."""

    def printed(*values: int) -> list[LogLineFact]:
        return [
            line("high_watermark_set", number=n, high_watermark=v) for n, v in enumerate(values)
        ]

    def moved(*values: int) -> list[ev.Fact | None]:
        return [ev.HighWatermarkAdvanced(1, value) for value in values]

    begins = leads(4, 0)
    assert facts(begins, *printed(27, 29, 28, 30))[1:] == moved(27, 29, 30)
    assert facts(begins, *printed(27, 29, 26))[1:] == moved(27, 29, 26)
    assert facts(follows(4, 0), *printed(27, 29, 28))[1:] == moved(27, 29, 28)


def test_a_log_that_is_made_as_its_broker_takes_up_its_role_was_there_before() -> None:
    """A disk that was emptied is found out only then: "handling LeaderAndIsr request" comes before
    "Completed load of log t-0 with 1 log segments and log end offset 0" (0.10.2.2)."""
    made = line("log_loaded", number=3, at=5, log_end_offset=0)
    again = line("log_created", number=4, at=5)
    lead, load = ev.BecameLeader(1, 3), ev.ReplicaStarted(1, None, 0)

    assert facts(started(1), asked(1, 2), made) == [None, load, lead]
    assert facts(started(1), asked(1, 2), made, again) == [
        None, load, ev.ReplicaStarted(1, 0, 0), lead,
    ]  # fmt: skip
    assert facts(started(1), made, asked(1, 4)) == [None, load, lead]
    assert facts(started(1), asked(1, 2), asked(1, 4), made) == [None, lead, load, lead]
    steps = list(steps_of_lines(evidence(started(1), asked(1, 2), made), 1))
    assert [step.at for step in steps] == [0, 2, 2]


def test_the_first_cut_after_a_load_is_from_where_the_log_ended_then() -> None:
    loaded = line("log_loaded", number=1, log_end_offset=9)
    cut = line("truncated", number=9, to_offset=5)
    lower = line("truncated", number=10, to_offset=4)

    def ends(*lines: LogLineFact) -> list[int | None]:
        found = facts(*lines, truncates_by="high_watermark")
        return [f.from_offset for f in found if isinstance(f, ev.Truncated)]

    begun = started(0)
    assert ends(begun, loaded, asked(2, 2), cut, lower) == [9, None]
    # Lines that tell of roles are of another file, which may not reach back so far.
    assert ends(loaded, asked(2, 2), cut) == [None]
    assert ends(begun, loaded, cut) == [None]
    assert ends(begun, loaded, asked(1, 2), asked(2, 3), cut) == [None]
    assert ends(begun, loaded, started(2), cut) == [None]
    made = line("log_loaded", number=3, log_end_offset=0)
    assert ends(started(1), asked(1, 2), made, asked(2, 4), cut) == [None]
    # From the leader of an epoch before it may have fetched, and where it needed no cut as well.
    assert ends(begun, loaded, asked(2, 2), asked(3, 3, 4), cut) == [None]
    unneeded = line("truncation_without_effect", number=8)
    assert ends(begun, loaded, asked(2, 2), unneeded, cut) == [None]


def test_a_cut_is_from_where_lines_say_that_the_log_ended_before_it() -> None:
    follows = [
        line("became_follower", number=n, leader_epoch=n, log_end_offset=end)
        for n, end in ((2, 9), (3, 30))
    ]
    fetched = line("log_appended", number=4, first_offset=30, end_offset=40)
    loaded, cut = line("log_loaded", number=1, log_end_offset=9), line("truncated", to_offset=20)

    def ends(*lines: LogLineFact) -> list[int | None]:
        return [f.from_offset for f in facts(*lines) if isinstance(f, ev.Truncated)]

    assert ends(loaded, *follows, cut) == [30]
    assert ends(loaded, *follows, fetched, cut) == [40]


def test_of_two_logs_that_a_start_loads_under_one_name_none_tells_where_it_ended() -> None:
    """A deleted topic's lies beside the new one's, and 1.1 prints the directory above alone."""
    here = line("log_loaded", number=1, log_end_offset=28)
    aside = line("log_loaded", number=2, log_end_offset=0)
    later = line("log_loaded", number=9, log_end_offset=0)

    def ends(*lines: LogLineFact) -> list[int | None]:
        return [f.log_end_offset for f in facts(*lines) if isinstance(f, ev.ReplicaStarted)]

    assert ends(started(0), here, aside) == [None, None]
    assert ends(started(0), here, here) == [28, 28]
    assert ends(started(0), here, leads(1, 3), later) == [28, 0]
    assert ends(started(0), here, started(2), aside) == [28, 0]


def test_a_cut_without_effect_tells_where_a_followers_log_ends() -> None:
    def no_effect(number: int, last_offset: int | None = 10) -> LogLineFact:
        return line(
            "truncation_without_effect", number=number, to_offset=20, last_offset=last_offset
        )

    ends = ev.Truncated(1, 11, 11, "leader_epoch")
    assert facts(follows(4, 1), no_effect(2)) == [ev.BecameFollower(1, 4), ends]
    assert facts(follows(4, 1), no_effect(2, None)) == [ev.BecameFollower(1, 4)]
    assert facts(leads(4, 1), no_effect(2)) == [ev.BecameLeader(1, 4)]
    assert facts(no_effect(1)) == []
