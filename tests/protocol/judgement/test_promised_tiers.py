"""The strongest promise about each record of a log: where it is cut, and what counts for which."""

from replication.protocol.ground import events as ev
from replication.protocol.judgement.promised_tiers import by_tier
from tests.protocol.judgement.danger_stories import live, of_two


def acknowledged(acks: str, first: int, end: int, leader_epoch: int | None = 0) -> ev.Fact:
    """A client's answers."""
    return ev.RecordsAcknowledged(first, end, acks, leader_epoch)


def test_each_record_has_its_strongest_promise() -> None:
    state = of_two(
        live(1, 1000, 10), acknowledged("1", 0, 8), acknowledged("all", 2, 5),
        isr=(1,),
    )  # fmt: skip
    assert by_tier(state, state.replicas[1], 0, 10) == [
        (0, 2, "acknowledged_by_leader"),
        (2, 5, "acknowledged_by_isr"),
        (5, 8, "acknowledged_by_leader"),
        (8, 10, "undetermined"),
    ]
    assert by_tier(state, state.replicas[1], 3, 6) == [
        (3, 5, "acknowledged_by_isr"),
        (5, 6, "acknowledged_by_leader"),
    ]


def test_a_promise_of_another_record_at_the_offset_counts_for_nothing() -> None:
    state = of_two(live(1, 1000, 10), acknowledged("all", 4, 6, leader_epoch=3), isr=(1,))
    assert by_tier(state, state.replicas[1], 0, 10) == [(0, 10, "undetermined")]


def test_what_a_high_watermark_covers_is_committed() -> None:
    state = of_two(live(1, 1000, 10), acknowledged("1", 0, 10), isr=(1,))
    leader = state.replicas[1]
    leader.high_watermark = 7
    assert by_tier(state, leader, 0, 10) == [(0, 7, "committed"), (7, 10, "acknowledged_by_leader")]
