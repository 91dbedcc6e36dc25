"""Which of a broker's lines about a partition are about its replica's log, and which about another.

Beside the log that a replica has lies one that waits to be deleted, of an earlier topic of the name
or of the directory that the replica was moved from; or one that is being filled in another log
directory, which takes the replica's place once it has everything (KIP-113). What happens to those
says nothing of the replica. A log that waits is deleted file.delete.delay.ms after it was renamed:
the renaming is the moment, and what is deleted then may be of a topic before.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.log_places import is_aside, log_directory

# About what is taken away from a replica's place: the lines name the place to which it went.
_TAKEN_AWAY = frozenset(("log_marked_deleted", "log_marked_stray"))
_LOG_MADE = frozenset(("log_created", "log_loaded"))


@dataclass(slots=True)
class _Places:
    """The log directories of a partition's logs on one broker. present: of the replica's own;
    future: of the one that is being filled to take its place."""

    present: str | None = None
    future: str | None = None


def replicas_own_lines(facts: Iterable[LogLineFact]) -> Iterator[LogLineFact]:
    """One broker's lines in their order, without those about logs beside its replicas'."""
    known: dict[tuple[str, int], _Places] = {}
    for fact in facts:
        if fact.topic is None or fact.partition is None:
            if fact.kind == "process_started":
                # The directory of a log that was being filled is loaded anew, under its own name.
                for places in known.values():
                    places.future = None
            yield fact
            continue
        places = known.setdefault((fact.topic, fact.partition), _Places())
        if _is_of_the_replica(fact, places):
            yield fact


def _is_of_the_replica(fact: LogLineFact, places: _Places) -> bool:
    """Whether a line is about the replica's own log; learns where that lies."""
    home, aside = log_directory(fact), is_aside(fact)
    if fact.kind == "log_replaced":
        places.present, places.future = places.future, None
        return False
    if aside and fact.kind in _LOG_MADE and str(fact.fields["directory"]).endswith("-future"):
        places.future = home
        return False
    if home is not None and home == places.future != places.present:
        # Given up, it is renamed like a replica's.
        places.future = None if fact.kind in _TAKEN_AWAY else places.future
        return False
    if fact.kind in _TAKEN_AWAY:
        places.present = None
        return True
    if home is not None and not aside:
        places.present = home
    return not aside
