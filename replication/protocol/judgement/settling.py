"""Which artefacts would settle a question that were not handed over already."""

import re

from replication.protocol.ground.topic_partition import State

DIRECTORY = re.compile(r"the log director(?:y|ies)(?: or broker log)? of broker (\d+)")
BROKER_LOG = re.compile(r"(?:the (?:whole )?broker log|state-change\.log) of broker (\d+)")
# What is left where all that Kafka keeps by itself is here already.
ONLY_BEFOREHAND = "nothing that Kafka keeps by itself: only loggers at TRACE before the incident"


def still_to_get(state: State, settled_by: list[str]) -> list[str]:
    """settled_by without what is among the evidence; what is left is never empty."""
    left = [_with_why(state, each) for each in settled_by if not _is_here(state, each)]
    return left or ([ONLY_BEFOREHAND] if settled_by else [])


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
    if artefact in ("an acknowledgement log", "an acknowledgement log of the producers"):
        return state.covered("acknowledgements")
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
