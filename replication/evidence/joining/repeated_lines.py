"""Lines that were handed over more than once: a log copied twice, half-way and whole, collected.

A line is the same as one of another file when everything it says is, with its millisecond. Within
one file it may say the same twice, and has then happened twice; but where its clock falls back in
between, the file holds the same log once more. A dump of settings that a file's end cut off is the
begin of one that another file holds whole.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from replication.evidence.broker_logs.broker_log import LogLineFact

# Threads write their lines in another order than they were told, by less than this, ms.
_OUT_OF_ORDER = 1_000


def each_once(facts: Iterable[LogLineFact]) -> Iterator[LogLineFact]:
    """One broker's lines without the repeats from other files.

    facts: in the order of their clock; those without one are passed on as they are. Of a line that
    several files hold, as many are kept as the one that holds most of them has.
    """
    told = list(facts)
    again = _behind_a_fall_back(told)
    for at, group in groupby(told, key=lambda fact: fact.at):
        together = list(group)
        if at is None or len({(fact.path, id(fact) in again) for fact in together}) < 2:
            yield from together
        else:
            yield from _once(together, again)


def _behind_a_fall_back(facts: list[LogLineFact]) -> set[int]:
    """The lines (by id) behind one that comes late: the file had lines of later moments before
    it."""
    latest: dict[str, int] = {}
    fallen: set[str] = set()
    found: set[int] = set()
    for fact in sorted(facts, key=lambda fact: fact.line):
        if fact.at is not None:
            if fact.at + _OUT_OF_ORDER < latest.get(fact.path, fact.at):
                fallen.add(fact.path)
            if fact.path in fallen:
                found.add(id(fact))
            latest[fact.path] = max(fact.at, latest.get(fact.path, fact.at))
    return found


def _once(together: list[LogLineFact], again: set[int]) -> Iterator[LogLineFact]:
    """Of lines of one millisecond those that happened."""
    in_file: dict[tuple[str, bool, str], int] = {}
    happened: dict[str, int] = {}
    for fact in (fact for fact in together if not _is_begin(fact, together)):
        said = repr((fact.kind, fact.broker, fact.topic, fact.partition, sorted(fact.fields)))
        said += repr([fact.fields[name] for name in sorted(fact.fields)])
        place = (fact.path, id(fact) in again, said)
        count = in_file[place] = in_file.get(place, 0) + 1
        if count > happened.get(said, 0):
            happened[said] = count
            yield fact


def _is_begin(fact: LogLineFact, together: list[LogLineFact]) -> bool:
    """Whether a dump of settings is the begin of one of that millisecond in another file."""
    if fact.kind != "settings":
        return False
    told = fact.fields["values"].items()
    return any(
        other.kind == "settings"
        and other.path != fact.path
        and told < other.fields["values"].items()
        for other in together
    )
