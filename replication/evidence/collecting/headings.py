"""Which broker a ticket or somebody's notes say that the output below is of.

A heading names one broker and says nothing else ("Broker 2:", "## on node 3 (leader)"); the command
that printed the output may name the machine it ran on (a shell's prompt, `ssh`, `kubectl exec`).
What a sentence tells of brokers is no heading, and any text behind a heading but a fence or a plain
command ends it.
"""

import re
from collections.abc import Iterable, Sequence

from replication.evidence.collecting.owners import broker_by_name

Line = tuple[int, str]
"""The number of a line of other text, and what it says."""

# "Kafka 3" is a release.
_BROKER = r"(?:(?:broker|node|host|server|replica)(?:[-_ ]?id)?\W{0,3}|kafka[-_]?)"
_BEFORE = r"(?:on|from|of|for|at|in|the|this|is|here|what|we|have|output|dumps?|logs?|segments?)"
_BEHIND = r"(?:output|dumps?|logs?|segments?|leader|follower|says|has|shows)"
_HEADING = re.compile(
    rf"^\W*(?:{_BEFORE}\W+){{0,8}}{_BROKER}(\d{{1,9}})(?:\s*\([^()]*\))?(?:\W+{_BEHIND}){{0,3}}\W*$",
    re.IGNORECASE,
)
_PROMPT = re.compile(r"^\W{0,3}\w[\w.-]*@([\w.-]+)[^$#>%]{0,80}[$#>%]\s")
_ELSEWHERE = re.compile(
    r"\b(?:ssh|(?:kubectl|oc|docker|podman|docker-compose|compose)\b.*?\bexec)\s"
)
# Behind these options of `exec` and `ssh` is their value.
_WITH_VALUE = re.compile(
    r"-(?:n|c|u|e|w|l|i|p|o|F|J|-namespace|-container|-user|-env|-workdir|-index)"
)
_FENCE = re.compile(r"^\s*(?:```|~~~)\w*\s*$")
_COMMAND = re.compile(r"^\W{0,4}\S*kafka-(?:dump-log|run-class)")
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
        return _machine(line[elsewhere.end() :].split())
    prompt = _PROMPT.match(line)
    return None if prompt is None else broker_by_name(prompt[1])


def _machine(words: Sequence[str]) -> int | None:
    """The broker that the first word names which is no option, nor the value of one."""
    values = False
    for word in words:
        if word.startswith("-") and not values:
            values = _WITH_VALUE.fullmatch(word) is not None
        elif values:
            values = False
        else:
            return broker_by_name(word.rpartition("@")[2])
    return None


def headed(starts: Iterable[int], text: Sequence[Line]) -> list[int | None]:
    """By output, in order of the lines on which they start, the broker that the text above names:
    the last heading since the output before, with nothing said behind it. Where no text is between
    two outputs the second is of the first one's broker."""
    found: list[int | None] = []
    before, last = 0, None
    for start in starts:
        between = [t for n, t in text if before < n < start and not _FENCE.match(t)]
        if between:
            last = _named_last(between)
        found.append(last)
        before = start
    return found


def _named_last(lines: Sequence[str]) -> int | None:
    for line in reversed(lines):
        broker = heading_of(line)
        if broker is not None:
            return broker
        if not _COMMAND.match(line):
            return None
    return None
