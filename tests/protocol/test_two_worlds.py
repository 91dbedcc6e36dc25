"""Classes of docs/limits.md in which nobody can tell: two stories that leave the same evidence.

In one of them promised records survive, in the other they do not. Whatever brokers' lines at
default levels, log directories, the controller's history and the producers' log tell of one story,
they tell of the other, too; so UNKNOWN is the only answer that is never wrong.
"""

import random
from dataclasses import replace

import pytest

from replication.machine.machine_state import World
from replication.machine.scenario_check import fold_steps
from replication.protocol.ground import events as ev
from replication.protocol.ground.versions import NEWEST_KNOWN
from replication.protocol.histories.assumptions import EVERY_SEND_IS_KNOWN
from replication.protocol.judgement.judge import answer
from tests.protocol.default_evidence import evidence, folded, left_by
from tests.protocol.stories import played

COMMITTED = "committed_records_survive"
ACKNOWLEDGED = "acknowledged_records_survive"
SENDS = ev.CoverageDeclared("sends", None, False, "1 without an answer")
GIVEN = """given isr=L,F kafka={kafka} controller={controller} unclean=no
L* e0  0:a*6 |
F  e0  0:a*6 |
----
ok

produce L b acks=all
fetch F
fetch F
"""
# L alone is in the ISR, commits by itself, and comes back from a power failure.
ALONE = """stop F
fence F
controller
{sent}crash L kind=power to=7
fence L
start L
controller
produce L d acks=all
start F
fetch F
fetch F
----
"""
# L, alone in the ISR, is away; F is elected beside it.
BESIDE = """stop F
fence F
controller
{sent}crash L kind=power to=7
fence L
start F
controller
produce F d acks=all
start L
fetch L
fetch L
----
"""
RELEASES = (
    ("1.1.0", "zookeeper"), ("2.8.1", "zookeeper"), ("3.9.1", "kraft"),
    (f"{NEWEST_KNOWN}.0", "kraft"),
)  # fmt: skip


def truth_of(world: World, invariant: str) -> str:
    """The verdict by every step of the story, in the order in which they happened."""
    judged = answer(fold_steps(world)).verdicts
    return next(str(v["verdict"]) for v in judged if v["invariant"] == invariant)


def told(world: World) -> list[ev.Fact]:
    """All that the story leaves at default levels; contents are named as they come up."""
    names: dict[int | None, int | None] = {None: None}
    facts: list[ev.Fact] = []
    for fact in evidence(left_by(world, random.Random(1), as_on_disk=True), frozenset()):
        if isinstance(fact, ev.RecordsAcknowledged):
            fact = replace(fact, content=names.setdefault(fact.content, len(names)))
        elif isinstance(fact, ev.ReplicaLogObserved):
            spans = [
                s._replace(content=names.setdefault(s.content, len(names))) for s in fact.spans
            ]
            fact = replace(fact, spans=tuple(spans))
        facts.append(fact)
    return facts


@pytest.mark.parametrize(("kafka", "controller"), RELEASES)
@pytest.mark.parametrize("story", [ALONE, BESIDE], ids=["alone", "beside"])
def test_a_send_that_nobody_answered_was_written_and_lost_or_never_arrived(
    story: str, kafka: str, controller: str
) -> None:
    text = GIVEN + story
    if story is BESIDE:
        text = text.replace("unclean=no", "unclean=yes")
    arrived, lost_on_its_way = (
        played(text.format(kafka=kafka, controller=controller, sent=sent)).world
        for sent in ("produce L s acks=0\n", "")
    )
    assert truth_of(arrived, COMMITTED) == "VIOLATED"
    assert truth_of(lost_on_its_way, COMMITTED) == "HOLDS"
    assert told(arrived) == told(lost_on_its_way)

    for complete in ([], [ev.CoverageDeclared("all_producers", None, True)]):
        judged = answer(folded([*told(arrived), SENDS, *complete]), strict=True).verdicts
        assert {v["verdict"] for v in judged if v["invariant"] == COMMITTED} == {"UNKNOWN"}


@pytest.mark.parametrize(("kafka", "controller"), RELEASES)
def test_where_every_send_was_answered_an_election_beside_the_isr_cost_nothing(
    kafka: str, controller: str
) -> None:
    text = (GIVEN + BESIDE).replace("unclean=no", "unclean=yes")
    world = played(text.format(kafka=kafka, controller=controller, sent="")).world
    facts = [*told(world), ev.CoverageDeclared("all_producers", None, True)]
    (committed,) = (v for v in answer(folded(facts)).verdicts if v["invariant"] == COMMITTED)
    assert committed["verdict"] == "HOLDS"
    assert EVERY_SEND_IS_KNOWN in committed["assuming"]


# L, alone, answers for k at offset 8, loses all that it wrote, and writes two others in its place.
BEFORE = """stop F
fence F
controller
produce L s acks=0
produce L k acks=1
crash L kind=power to=7
fence L
start L
controller
produce L q acks=0
produce L r acks=0
"""
# What L loses nobody was answered for; it answers for k at offset 8 after that.
SINCE = """stop F
fence F
controller
produce L s acks=0
produce L r acks=0
crash L kind=power to=7
fence L
start L
controller
produce L q acks=0
produce L k acks=1
"""
COMPACTED = """produce L d acks=all
start F
compact L offsets=7,8
fetch F
fetch F
----
"""


@pytest.mark.parametrize(("kafka", "controller"), RELEASES)
def test_what_a_leader_answered_for_that_led_twice_and_compaction_took_may_be_of_either_time(
    kafka: str, controller: str
) -> None:
    """The order in which lines of clients' logs stand is no evidence, nor are their times."""
    given = GIVEN.replace("unclean=no", "unclean=no cleanup=compact")
    lost, removed = (
        played((given + story + COMPACTED).format(kafka=kafka, controller=controller)).world
        for story in (BEFORE, SINCE)
    )
    assert truth_of(lost, ACKNOWLEDGED) == "VIOLATED"
    assert truth_of(removed, ACKNOWLEDGED) == "HOLDS"
    assert sorted(told(lost), key=repr) == sorted(told(removed), key=repr)

    for facts in (told(lost), told(removed)):
        judged = answer(folded(facts), strict=True).verdicts
        assert {v["verdict"] for v in judged if v["invariant"] == ACKNOWLEDGED} == {"UNKNOWN"}
