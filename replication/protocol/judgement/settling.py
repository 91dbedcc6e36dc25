"""Which artefacts would settle a question that were not handed over already."""

import re
from collections.abc import Collection

from replication.protocol.ground.topic_partition import State
from replication.protocol.histories.filters.timeline import Timeline
from replication.protocol.judgement.questions import ACKNOWLEDGED

CONTROLLER = "the controller's history (metadata log or state-change.log)"
ASSIGNMENT = "the assignment (kafka-topics --describe, metadata log or state-change.log)"
ACKNOWLEDGEMENTS = "an acknowledgement log of the producers"
LATER = "the same evidence, copied again when a leader is elected and its followers have fetched"
CONSUMPTIONS = "a consumption log of the consumers"

DIRECTORY = re.compile(r"the log director(?:y|ies)(?: or broker log)? of broker (\d+)")
BROKER_LOG = re.compile(r"(?:the (?:whole )?broker log|state-change\.log) of broker (\d+)")
# What is left where all that Kafka keeps by itself is here already.
ONLY_BEFOREHAND = "nothing that Kafka keeps by itself: only loggers at TRACE before the incident"


def still_to_get(state: State, settled_by: list[str]) -> list[str]:
    """Of what would settle a question, what is not among the evidence; what is left is never
    empty."""
    left = [_with_why(state, each) for each in settled_by if not _is_here(state, each)]
    return left or [ONLY_BEFOREHAND]


def _with_why(state: State, artefact: str) -> str:
    """The artefact, and why what is here of it is not enough."""
    log = BROKER_LOG.search(artefact) or DIRECTORY.search(artefact)
    if log is None or "log of broker" not in artefact:
        return artefact
    why = state.why_missing("broker_log", int(log[1]))
    return f"{artefact} ({why})" if why else artefact


def _is_here(state: State, artefact: str) -> bool:
    directory = DIRECTORY.search(artefact)
    if directory is not None:
        return _directory_is_here(state, int(directory[1])) and (
            "or broker log" not in artefact or state.covered("broker_log", int(directory[1]))
        )
    log = BROKER_LOG.search(artefact)
    if log is not None:
        return state.covered("broker_log", int(log[1]))
    if artefact in ("an acknowledgement log", ACKNOWLEDGEMENTS):
        return state.covered("acknowledgements")
    if artefact == CONSUMPTIONS:
        return state.told_of("consumptions")
    if artefact.startswith("the controller's history"):
        return state.covered("controller_history")
    if "--kafka" in artefact or "print the version" in artefact:
        return state.settings.kafka_version is not None
    return False


def _directory_is_here(state: State, broker: int) -> bool:
    """Whether the copy that is here shows the log as it was left: of a clean stop, and whole."""
    replica = state.replicas.get(broker)
    if replica is None:
        return False
    return replica.captured and replica.stopped is True and not (replica.stale or replica.partial)


def artefacts(
    line: Timeline, brokers: Collection[int], question: str, *, after_all: bool = False
) -> list[str]:
    """What the evidence lacks. brokers: those that tell two histories apart, named first.
    after_all: they part after the evidence ends, where no log that is here can tell anything."""
    found: list[str] = []
    if line.assigned is None:
        found.append(ASSIGNMENT)
    ordered = [*sorted({*brokers} & {*line.replicas}), *line.replicas]
    for number in dict.fromkeys(ordered):
        if number < 0:
            continue
        handed_over = ("broker_log", number) in line.state.coverage
        if number not in line.covered and not (after_all and handed_over):
            found.append(f"the broker log of broker {number}")
        if number in line.not_captured:
            found.append(f"the log directory of broker {number}")
    if any(w.unnamed or w.shown or not w.recorded for w in line.windows) or line.ends_early:
        found.append(CONTROLLER)
    if not line.acks_covered:
        found.append(ACKNOWLEDGEMENTS)
    elif not line.every_send_answered or question != ACKNOWLEDGED:
        found.append(CONSUMPTIONS)
    return [*found, LATER] if after_all else found
