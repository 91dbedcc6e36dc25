"""Stories in the scenario language, and what is decided about where they end."""

import random

from replication.decisions.answer import Decision, decide
from replication.machine.scenario import Story
from replication.machine.scenario_check import fold_steps
from replication.protocol.ground.topic_partition import State
from tests.protocol.default_evidence import evidence, folded, left_by
from tests.protocol.stories import story_of

A, B, C = 1, 2, 3


def story(given: str, lines: list[str]) -> Story:
    """The story that commands tell of three empty replicas, of which A leads."""
    return story_of(given, *lines)


def left(told: Story, *withheld: str) -> State:
    """The state by what default log levels and directories leave, less some artefacts."""
    return folded(evidence(left_by(told.world, random.Random(1)), frozenset(withheld)))


def decided(given: str, *lines: str) -> Decision:
    """What is decided by the whole trace of a story."""
    return decide(fold_steps(story(given, [*lines]).world))


# A writes b while B falls out of the ISR; C leads in between and writes c, which B alone fetches; A
# leads again, and b becomes committed by A and C: a record of an older leader epoch than c. Then A
# dies as the only member of the ISR.
OLDER_EPOCH_COMMITTED = (
    "kafka=4.1.0 controller=kraft min_insync_replicas=2 unclean=no elr=off",
    [
        "produce A b acks=all producer=7 producer_epoch=0 sequence=0",
        "isr remove=B",
        "elect C isr=C,A",
        "produce C c acks=all",
        "fetch B",
        "fetch B",
        "elect A isr=A,C deliver=A,C",
        "produce A b acks=all producer=7 producer_epoch=0 sequence=0",
        "fetch C",
        "fetch C",
        "fetch C",
        "isr remove=C",
        "crash A kind=process",
        "fence A",
    ],
)
