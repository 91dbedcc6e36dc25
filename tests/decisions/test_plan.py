"""The steps of an election, in the order that the release needs."""

import pytest

from replication.decisions.answer import Decision, decide, partition_json
from replication.decisions.choosing import ELECT, START
from replication.decisions.plan import plan_of
from replication.decisions.step_words import step_words
from replication.decisions.words import partition_lines
from replication.machine.scenario_check import fold_steps
from tests.decisions.told_stories import A, B, C, story

# A wrote x alone in the ISR, and is down.
ALONE = ["isr remove=B,C", "produce A x acks=1", "crash A kind=process", "fence A"]
# C, which is to lead, has nothing that could be copied.
COPIES = ["copy", "dump"]
ELECTS = ["elect_uncleanly"]
FOLLOW = ["start_to_follow", "start_to_follow"]
BACK = "Take the setting back, unless it is to stay as it was before this"


def planned(version: str, mode: str, *down: int) -> Decision:
    world = story(f"kafka={version} controller={mode} unclean=no", ALONE).world
    return decide(fold_steps(world), down=frozenset(down), elect=C)


def actions(decision: Decision) -> list[str]:
    return [step.action for step in decision.plan.steps]


@pytest.mark.parametrize(
    ("version", "mode", "elects"),
    [
        # The setting elects nobody before the next start of a broker: it is set first.
        ("0.10.2.2", "zookeeper", ["leaderless", *ELECTS, "start_to_lead_uncleanly"]),
        ("1.1.1", "zookeeper", ["leaderless", *ELECTS, "start_to_lead_uncleanly"]),
        # It acts at once, on whoever runs.
        ("2.3.1", "zookeeper", ["start", "leaderless", *ELECTS, "unclean_off"]),
        # No setting is left on.
        ("2.8.1", "zookeeper", ["start", "leaderless", *ELECTS]),
        ("3.9.1", "zookeeper", ["start", "leaderless", *ELECTS]),
        ("3.9.1", "kraft", ["start", "leaderless", *ELECTS]),
    ],
)
def test_an_election_where_all_are_down(version: str, mode: str, elects: list[str]) -> None:
    found = planned(version, mode, A, B, C)
    # Without the setting a follower that has more than its leader stops its broker: it stays on.
    off_last = ["unclean_off"] if "start_to_lead_uncleanly" in elects else []
    first = ["start_controllers"] if mode == "kraft" else []
    # By the high watermark alone it need not cut what it has more: then it starts without it.
    moved = ["move_away"] if off_last else []
    assert actions(found) == [*COPIES, *first, *moved, *elects, *FOLLOW, *off_last, "prefer"]
    assert found.choice.as_asked
    assert any(s.shows == rf"Partition: 0\s+Leader: {C}\s" for s in found.plan.steps)


@pytest.mark.parametrize(
    ("version", "mode", "unclean", "asks"),
    [
        ("4.1.0", "kraft", "unclean=yes", False),
        ("4.1.0", "kraft", "", False),  # Nothing tells whether it is on.
        ("4.1.0", "kraft", "unclean=no", True),
        ("3.9.1", "zookeeper", "unclean=yes", False),
        ("3.6.1", "kraft", "unclean=yes", True),  # Ignored there.
    ],
)
def test_a_start_that_may_elect_by_itself_is_not_asked_for_a_partition_without_leader(
    version: str, mode: str, unclean: str, asks: bool
) -> None:
    state = fold_steps(story(f"kafka={version} controller={mode} elr=off {unclean}", ALONE).world)
    if not unclean:
        state.settings.unclean_leader_election = None
    found = decide(state, down=frozenset([A, B, C]), elect=C)
    told = actions(found)
    assert told[told.index("start") + 1] == ("leaderless" if asks else "elect_uncleanly")
    (elects,) = [step for step in found.plan.steps if step.action == "elect_uncleanly"]
    assert elects.words.startswith("If nobody leads") is not asks


@pytest.mark.parametrize(
    ("version", "unclean", "words"),
    [
        ("3.6.1", "yes", [f"{BACK}: from 3.9 on it would elect at the next crash."]),
        ("3.6.1", "no", []),
        ("4.1.0", "yes", [f"{BACK}."]),
    ],
)
def test_a_setting_that_is_on_is_taken_back(version: str, unclean: str, words: list[str]) -> None:
    """Also where it is ignored: after an upgrade it is not."""
    given = f"kafka={version} controller=kraft elr=off unclean={unclean}"
    found = decide(fold_steps(story(given, ALONE).world), down=frozenset([A, B, C]), elect=C)
    assert [s.words for s in found.plan.steps if s.action == "unclean_off"] == words


@pytest.mark.parametrize(("version", "stops"), [("1.1.1", [B, C]), ("2.8.1", [B])])
def test_whoever_else_runs_is_stopped_first(version: str, stops: list[int]) -> None:
    """Before 2.1 the one that is to lead as well: its start is what elects it."""
    steps = planned(version, "zookeeper", A).plan.steps
    assert [s.broker for s in steps if s.action == "stop"] == stops
    order = [s.action for s in steps]
    assert order.index("stop") < order.index("elect_uncleanly")


def test_without_a_command_the_plan_says_what_does_it() -> None:
    steps = planned("3.0.1", "kraft", A, B, C).plan.steps
    (elects,) = [s for s in steps if s.action == "elect_uncleanly"]
    assert elects.command is None
    assert "bring a member of the ISR back" in elects.note


def test_nobody_is_asked_while_nobody_runs() -> None:
    """With KRaft a broker answers; where none runs the step is left out."""
    world = story("kafka=4.1.0 controller=kraft unclean=no elr=off", ALONE).world
    found = decide(fold_steps(world), down=frozenset([A, B, C]))
    assert actions(found)[:3] == ["copy", "start_controllers", "start_to_lead"]
    asked = decide(fold_steps(world), down=frozenset([A]))
    assert "leaderless" in actions(asked)
    assert "start_controllers" not in actions(asked), "who runs has a controller"


def test_a_step_says_how_long_to_ask_its_check() -> None:
    steps = partition_json(planned("4.1.0", "kraft", A, B, C))["steps"]
    for step in steps:
        asked = f"ask again until it does, for up to {step['within']} s"
        assert (asked in "\n".join(step_words(step))) is (step["within"] > 0)
    assert {step["action"] for step in steps if not step["within"]} == {"copy", "dump"}


@pytest.mark.parametrize(
    ("version", "unclean", "needs"),
    [("1.1.1", "no", True), ("1.1.1", "yes", False), ("2.8.1", "no", False)],
)
def test_a_follower_with_more_than_its_leader_needs_the_setting(
    version: str, unclean: str, needs: bool
) -> None:
    """Seen on 1.1.1: without it the follower stops its broker, and is never in the ISR."""
    given = f"kafka={version} controller=zookeeper unclean={unclean}"
    lines = ["produce A x acks=1", "fetch C", "isr remove=B,C", "crash A kind=process", "fence A"]
    found = decide(fold_steps(story(given, lines).world), down=frozenset([A, B, C]), elect=B)
    found.choice.advice = START
    found.outlook.state.settings.unclean_leader_election = unclean == "yes"
    moved = [s.action for s in plan_of(found.outlook, found.choice).steps]
    assert "elect_uncleanly" not in moved, "what is moved away before has not more"
    for copy in [x for c in found.outlook.candidates for x in c.copies]:
        copy.cut, copy.undecided = [*copy.cut, *copy.undecided], []
    told = [(s.action, s.broker) for s in plan_of(found.outlook, found.choice).steps]
    sets = ("elect_uncleanly", B)
    assert (sets in told) is needs
    if needs:
        follows = [n for n, (action, _) in enumerate(told) if action == "start_to_follow"]
        assert told.index(("start_to_lead", B)) < told.index(sets) < follows[0]
        assert follows[-1] < told.index(("unclean_off", B))


def test_who_stays_away_is_not_waited_for() -> None:
    """A alone has x, and is gone for long: the plan does without it, and says not to start it."""
    world = story("kafka=4.1.0 controller=kraft unclean=no elr=off", ALONE).world
    waited = decide(fold_steps(world), down=frozenset([A, B, C]))
    assert (waited.choice.advice, waited.choice.replica) == (START, A)
    found = decide(fold_steps(world), down=frozenset([B, C]), away=frozenset([A]))
    assert found.choice.replica in (B, C)
    assert found.choice.advice == ELECT
    assert A not in {s.broker for s in found.plan.steps}
    assert [n.broker for n in found.plan.not_yet] == [A]
    row = partition_json(found)
    assert (row["away"], [c["replica"] for c in row["candidates"]]) == ([A], [B, C])
    assert "Not waited for, as you said: broker 1." in "\n".join(partition_lines(row))
    every = decide(fold_steps(world), away=frozenset([A, B, C]))
    assert every.choice.replica == A, "one of them has to be waited for"


def test_a_start_that_harms_nothing_need_not_be_the_first() -> None:
    world = story("kafka=4.1.0 controller=kraft unclean=no elr=off", ALONE).world
    (leads,) = [
        s
        for s in decide(fold_steps(world), down=frozenset([A, B, C])).plan.steps
        if s.action == "start_to_lead"
    ]
    assert leads.words == "Start broker 1."


def test_who_is_taken_to_run_is_said() -> None:
    world = story("kafka=4.1.0 controller=kraft unclean=no elr=off", ALONE).world
    some = partition_json(decide(fold_steps(world), down=frozenset([A])))
    told = "\n".join(partition_lines(some))
    assert "Nothing tells that brokers 2, 3 are down, so it is taken that they run." in told
    all_down = partition_json(decide(fold_steps(world), down=frozenset([A, B, C])))
    assert "taken that" not in "\n".join(partition_lines(all_down))
