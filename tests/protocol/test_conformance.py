"""Single rules of conformance in smallest form: what is excluded, what timing explains."""

from replication.protocol.ground import events as ev
from tests.protocol.judgement.told import conforms, told, traced


def copied(end: int) -> list[ev.Fact]:
    """Both followers fetch and append up to an offset, and the leader's high watermark follows."""
    facts: list[ev.Fact] = [ev.LeaderAppended(1, 0, end, 0)]
    for follower in (2, 3):
        facts += [ev.FetchRequested(follower, 1, 0), ev.FollowerAppended(follower, 0, end)]
    for follower in (2, 3):
        facts.append(ev.FetchRequested(follower, 1, end))
    return [*facts, ev.HighWatermarkAdvanced(1, end)]


def refuted(facts: list[ev.Fact]) -> str | None:
    """Why version_conformance is VIOLATED, if it is."""
    verdict = conforms(told([*facts, ev.InputEnded()], "traced"))
    return verdict.reason if verdict.verdict == "VIOLATED" else None


def led_on(mark: int) -> list[ev.Fact]:
    """Leader and followers go on into epoch 1; the leader's line names a high watermark."""
    return [
        ev.LeadershipRecorded(1, 1, (1, 2, 3), 1, "same_leader", (1, 2, 3)),
        ev.BecameLeader(1, 1, 5, mark, 1),
        *(ev.BecameFollower(r, 1, 1, 5, 0, 1) for r in (2, 3)),
    ]


def test_a_change_of_role_leaves_the_high_watermark_as_it_was() -> None:
    begun = [*traced("3.9.1"), *copied(5)]
    assert refuted([*begun, *led_on(5)]) is None
    found = refuted([*begun, *led_on(4)])
    assert found is not None
    assert "high_watermark_of_leader gives the high watermark 5 that it had, observed 4" in found


def test_a_followers_high_watermark_may_rise_unprinted_and_never_falls() -> None:
    begun = [*traced("3.9.1"), *copied(5), ev.HighWatermarkAdvanced(2, 5)]
    elected = ev.LeadershipRecorded(1, 1, (1, 2, 3), 1, "same_leader", (1, 2, 3))
    again = [elected, ev.BecameLeader(1, 1, 5, 5, 1)]
    assert refuted([*begun, *again, ev.BecameFollower(3, 1, 1, 5, 5, 1)]) is None
    found = refuted([*begun, *again, ev.BecameFollower(2, 1, 1, 5, 4, 1)])
    assert found is not None
    assert "high_watermark_of_follower" in found


def test_a_log_that_begins_past_it_has_moved_the_high_watermark() -> None:
    begun = [*traced("3.9.1"), *copied(5), ev.LogStartAdvanced(2, 3, "retention")]
    follows = ev.BecameFollower(2, 1, 1, 5, 3, 1)
    elected = ev.LeadershipRecorded(1, 1, (1, 2, 3), 1, "same_leader", (1, 2, 3))
    assert refuted([*begun, elected, ev.BecameLeader(1, 1, 5, 5, 1), follows]) is None


def test_a_fenced_follower_hears_no_high_watermark_from_before_the_epoch() -> None:
    begun = [*traced("3.9.1"), *copied(5), *led_on(5)]
    assert refuted([*begun, ev.HighWatermarkAdvanced(2, 5)]) is None
    found = refuted([*begun, ev.HighWatermarkAdvanced(2, 4)])
    assert found is not None
    assert "high_watermark_of_follower" in found


def test_one_that_the_same_leader_had_in_the_epoch_before_may_come_late() -> None:
    begun = [*traced("2.8.2"), *copied(5)]
    further = [
        ev.LeaderAppended(1, 5, 7, 0),
        *(f for r in (2, 3) for f in (ev.FetchRequested(r, 1, 5), ev.FollowerAppended(r, 5, 7))),
        *(ev.FetchRequested(r, 1, 7) for r in (2, 3)),
        ev.HighWatermarkAdvanced(1, 7),
        ev.LeadershipRecorded(1, 1, (1, 2, 3), 1, "same_leader", (1, 2, 3)),
        ev.BecameLeader(1, 1, 7, 7, 1),
        *(ev.BecameFollower(r, 1, 1, 7, 0, 1) for r in (2, 3)),
    ]
    assert refuted([*begun, *further, ev.HighWatermarkAdvanced(2, 5)]) is None
    assert refuted([*begun, *further, ev.HighWatermarkAdvanced(2, 6)]) is not None


def unfenced(*fetches: int) -> list[ev.Fact]:
    """A follower of 1.1.1 that heard of epoch 1 of its leader; the leader sees these fetches, and
    it appends [0, 3) and [3, 5)."""
    return [
        *traced("1.1.1"),
        ev.LeaderAppended(1, 0, 5, 0),
        ev.LeadershipRecorded(1, 1, (1, 2, 3), 1, "same_leader", (1, 2, 3)),
        ev.BecameLeader(1, 1, 5, 0, 1),
        ev.BecameFollower(2, 1, 1, 0, 0, 1),
        *(ev.FetchRequested(2, 1, offset) for offset in fetches),
        ev.FollowerAppended(2, 0, 3),
        ev.FollowerAppended(2, 3, 5),
    ]


def test_an_unfenced_fetch_comes_in_its_leaders_order() -> None:
    assert refuted(unfenced(0, 3, 5)) is None
    found = refuted(unfenced(0, 5))
    assert found is not None
    assert "fetch_admission gives a fetch at 3 first, observed 5" in found


def test_a_late_answer_of_the_same_leader_is_appended_where_releases_take_it() -> None:
    """It fetched in epoch 0, heard of epoch 1, and appends what comes then (KAFKA-18991)."""
    late = [
        ev.FetchRequested(2, 1, 5), ev.LeaderAppended(1, 5, 6, 0),
        ev.LeadershipRecorded(1, 1, (1, 2, 3), 1, "same_leader", (1, 2, 3)),
        ev.BecameFollower(2, 1, 1, 5, 5, 1), ev.BecameLeader(1, 1, 6, 5, 1),
        ev.FollowerAppended(2, 5, 6), ev.FetchRequested(2, 1, 6),
    ]  # fmt: skip
    for version in ("2.8.2", "3.9.0"):
        assert refuted([*traced(version), *copied(5), *late]) is None
    for version in ("2.7.2", "3.9.1"):
        found = refuted([*traced(version), *copied(5), *late])
        assert found is not None
        assert "fetch_admission gives a fetch at 5 first, observed 6" in found


def test_an_unfenced_followers_high_watermark_is_one_of_its_leaders_epochs() -> None:
    """The leader leads on into epoch 1, of which the follower never hears."""
    begun = [
        *traced("1.1.1"),
        *copied(5),
        ev.LeadershipRecorded(1, 1, (1, 2, 3), 1, "same_leader", (1, 2, 3)),
        ev.BecameLeader(1, 1, 5, 5, 1),
        ev.LeaderAppended(1, 5, 9, 1),
        *(f for r in (2, 3) for f in (ev.FetchRequested(r, 1, 5), ev.FollowerAppended(r, 5, 9))),
        *(ev.FetchRequested(r, 1, 9) for r in (2, 3)),
    ]
    last = ev.HighWatermarkAdvanced(1, 9)
    assert refuted([*begun, last, ev.HighWatermarkAdvanced(2, 9)]) is None
    assert refuted([*begun, ev.HighWatermarkAdvanced(2, 9), last]) is None
    found = refuted([*begun, ev.HighWatermarkAdvanced(2, 7), last])
    assert found is not None
    assert "high_watermark_of_follower" in found


def test_a_start_may_find_more_than_the_last_lines_before_it_told_of() -> None:
    """A leader appends after its log has gone silent: killed, or by the hook that stops log4j2."""
    stopped = [ev.ReplicaStopped(1, "clean"), ev.ReplicaStarted(1, 0, 4, 0, True)]

    assert refuted([*traced("4.3.0", "kraft"), *copied(2), *stopped]) is None
