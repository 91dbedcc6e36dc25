"""Which broker a ticket or somebody's notes say that the output below is of.

A heading names one broker and says nothing else ("Broker 2:", "## on node 3 (leader)"); the command
that printed the output may name the machine it ran on (a shell's prompt, `ssh`, `kubectl exec`).
What a sentence tells of brokers is no heading.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable

from replication.evidence.collecting.owners import broker_by_name

Heading = tuple[int, int]
"""The number of a line, and the broker that what is below it is of."""

# "Kafka 3" is a release.
_BROKER = r"(?:(?:broker|node|host|server|replica)(?:[-_ ]?id)?\W{0,3}|kafka[-_]?)"
_MORE = (
    r"(?:on|from|of|for|at|in|the|this|that|is|here|what|we|have|got|see|output|dumps?|logs?"
    r"|segments?|leader|follower|replica|now|then|says|has|shows|kafka-dump-log(?:\.sh)?)"
)
_HEADING = re.compile(
    rf"^\W*(?:{_MORE}\W+){{0,8}}{_BROKER}(\d{{1,9}})(?:\s*\([^()]*\))?(?:\W+{_MORE}){{0,3}}\W*$",
    re.IGNORECASE,
)
_PROMPT = re.compile(r"^\W{0,3}\w[\w.-]*@([\w.-]+)[^$#>%]{0,80}[$#>%]\s")
_ELSEWHERE = re.compile(
    r"\b(?:ssh|(?:kubectl|oc|docker|podman|docker-compose|compose)\b.*?\bexec)\s"
)
_LONGEST = 400


def heading_of(line: str) -> int | None:
    """The one broker that a line says what is below it is of; None where it says none."""
    if len(line) > _LONGEST:
        return None
    found = _HEADING.match(line)
    if found is not None:
        return int(found[1])
    elsewhere = _ELSEWHERE.search(line)
    if elsewhere is not None:
        named = {broker_by_name(word) for word in line[elsewhere.end() :].split()[:8]} - {None}
        return named.pop() if len(named) == 1 else None
    prompt = _PROMPT.match(line)
    return None if prompt is None else broker_by_name(prompt[1])


def headings(lines: Iterable[tuple[int, str]]) -> list[Heading]:
    """The headings among numbered lines, in their order."""
    return [(n, broker) for n, text in lines if (broker := heading_of(text)) is not None]


def broker_above(named: list[Heading], line: int) -> int | None:
    """The broker that the last heading above a line names."""
    place = bisect_right(named, line, key=lambda heading: heading[0])
    return named[place - 1][1] if place else None
