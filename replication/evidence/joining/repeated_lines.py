"""Lines that were handed over more than once: a log copied twice, half-way and whole, collected.

A line is the same as one of another file when everything it says is, with its millisecond. Within
one file it may say the same twice, and has then happened twice.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from replication.evidence.broker_logs.broker_log import LogLineFact


def each_once(facts: Iterable[LogLineFact]) -> Iterator[LogLineFact]:
    """One broker's lines without the repeats from other files.

    facts: in the order of their clock; those without one are passed on as they are. Of a line that
    several files hold, as many are kept as the one that holds most of them has.
    """
    for at, group in groupby(facts, key=lambda fact: fact.at):
        together = list(group)
        if at is None or len({fact.path for fact in together}) < 2:
            yield from together
        else:
            yield from _once(together)


def _once(together: list[LogLineFact]) -> Iterator[LogLineFact]:
    """Of lines of one millisecond those that happened."""
    in_file: dict[tuple[str, str], int] = {}
    happened: dict[str, int] = {}
    for fact in together:
        said = repr((fact.kind, fact.broker, fact.topic, fact.partition, sorted(fact.fields)))
        said += repr([fact.fields[name] for name in sorted(fact.fields)])
        count = in_file[fact.path, said] = in_file.get((fact.path, said), 0) + 1
        if count > happened.get(said, 0):
            happened[said] = count
            yield fact
