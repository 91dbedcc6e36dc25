"""Which brokers of a cluster are down at the end of the evidence, by what tells it of a process."""

from collections.abc import Iterator

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.line_families.kinds import FATAL_KINDS
from replication.evidence.joining.one_cluster import ClusterEvidence

# Printed by a process that lives, after whatever ended the one before.
_ALIVE_KINDS = frozenset(("process_started", "kafka_version", "broker_epoch_granted"))
_ALIVE_CHANGES = frozenset(("registered", "unfenced"))
# So long a process that ends itself may go on to print lines: it tries a controlled shutdown.
_ENDING_MILLISECONDS = 120_000


def ended(cluster: ClusterEvidence) -> frozenset[int]:
    """Whom the metadata log fences or lets stop, and whose last lines are of a process that ends
    itself."""
    return _fenced(cluster) | _ended_by_own_lines(cluster)


def _process_lines(cluster: ClusterEvidence) -> Iterator[tuple[int, LogLineFact]]:
    for log in cluster.logs:
        for fact in log.processes:
            writer = fact.broker if fact.broker is not None else log.broker
            if writer is not None:
                yield writer, fact


def _fenced(cluster: ClusterEvidence) -> frozenset[int]:
    """Not who registered again after the end of this copy, as its own log tells."""
    epochs: dict[int, int] = {}
    for writer, fact in _process_lines(cluster):
        if fact.kind == "broker_epoch_granted":
            granted = int(fact.fields["broker_epoch"])
            epochs[writer] = max(granted, epochs.get(writer, granted))
    changes = cluster.history.brokers if cluster.history is not None else ()
    last = {change.broker: change for change in changes if change.kind != "unregistered"}
    return frozenset(
        broker
        for broker, change in last.items()
        if change.kind in ("fenced", "controlled_shutdown")
        and epochs.get(broker, -1) <= change.broker_epoch
    )


def _ended_by_own_lines(cluster: ClusterEvidence) -> frozenset[int]:
    """Not whose process is alive after its last fatal line, by any log or the controller."""
    fatal: dict[int, int] = {}
    alive: dict[int, int] = {}
    for writer, fact in _process_lines(cluster):
        if fact.at is not None and fact.kind in FATAL_KINDS:
            fatal[writer] = max(fact.at, fatal.get(writer, fact.at))
        elif fact.at is not None and fact.kind in _ALIVE_KINDS:
            alive[writer] = max(fact.at, alive.get(writer, fact.at))
    for change in cluster.history.brokers if cluster.history is not None else ():
        if change.kind in _ALIVE_CHANGES and change.at is not None:
            alive[change.broker] = max(change.at, alive.get(change.broker, change.at))
    for log in cluster.logs:
        if log.broker in fatal and log.speaks_for_one and log.last_at is not None:
            went_on = log.last_at - (log.ahead or 0) - _ENDING_MILLISECONDS
            alive[log.broker] = max(went_on, alive.get(log.broker, went_on))
    return frozenset(n for n, at in fatal.items() if alive.get(n, at) <= at)
