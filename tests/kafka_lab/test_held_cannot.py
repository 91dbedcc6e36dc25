"""Which kinds of failure a kept run's actions amount to."""

from typing import Any

from tests.kafka_lab.held_cannot import beyond, struck


def line(second: int, action: str, broker: int, **more: Any) -> dict[str, Any]:
    return {"ts": f"2026-11-30T07:00:{second:02d}.000Z", "action": action, "broker": broker, **more}


def test_a_kill_whose_log_was_cut_is_a_loss_of_power() -> None:
    actions = [
        line(1, "kill9", 1), line(2, "cut_suffix", 1), line(3, "start", 1), line(9, "kill9", 1),
        line(4, "kill9", 3),
    ]  # fmt: skip
    assert struck(actions, (1, 2)) == {"power_of_one": 1, "one_broker": 1}


def test_who_loses_power_at_the_same_moment() -> None:
    actions = [line(1, "kill9", 1), line(1, "kill9", 2)]
    actions += [line(3, "cut_suffix", 1), line(3, "cut_suffix", 2)]
    assert struck(actions, (1, 2, 3))["power_of_all"] == 1
    actions[1]["ts"] = "2026-11-30T07:00:02.500Z"
    assert struck(actions, (1, 2, 3))["power_of_all"] == 0


def test_the_stop_at_the_end_is_no_failure() -> None:
    actions = [line(1, "sigterm", 1), line(2, "start", 1), line(8, "sigterm", 1)]
    assert struck(actions, (1,)) == {"one_broker": 1}


def test_what_the_search_does_not_look_at_is_named() -> None:
    one = [line(1, "kill9", 1), line(2, "start", 1)]
    assert beyond(struck(one, (1, 2)), one) == []
    more = [*one, line(3, "kill9", 2), line(4, "kill9", 1), line(5, "elect_preferred", 1)]
    assert beyond(struck(more, (1, 2)), more) == ["two_brokers 3 times", "the leadership moved"]
