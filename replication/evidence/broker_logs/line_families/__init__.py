"""All line families, and the way from a message to the families that may have written it."""

import re
from collections.abc import Iterable

from replication.evidence.broker_logs.line_families import (
    controller_kraft,
    controller_zookeeper,
    failures,
    in_sync_replicas,
    leader_epoch_caches,
    leadership,
    lifecycle,
    log_loading,
    logs,
    settings,
    traces,
    truncation,
)
from replication.evidence.broker_logs.line_families.family import Found, LineFamily

FAMILIES: tuple[LineFamily, ...] = (
    *lifecycle.FAMILIES,
    *failures.FAMILIES,
    *leadership.FAMILIES,
    *truncation.FAMILIES,
    *log_loading.FAMILIES,
    *logs.FAMILIES,
    *leader_epoch_caches.FAMILIES,
    *in_sync_replicas.FAMILIES,
    *controller_zookeeper.FAMILIES,
    *controller_kraft.FAMILIES,
    *settings.FAMILIES,
    *traces.FAMILIES,
)

# Loggers whose last name component alone would not tell them apart.
_WHOLE_NAMES = ("state.change.logger",)


def short_logger(name: str) -> str:
    """`kafka.log.UnifiedLog$` and `org.apache.kafka.storage.internals.log.UnifiedLog` are one."""
    if name in _WHOLE_NAMES:
        return name
    last = name.rpartition(".")[2].rstrip("$")
    return last.rpartition("$")[2]


def text_behind_prefix(message: str) -> str:
    """The message without what names its writer: `[..] `, `[..], `, `Broker 1 `, `Partition [t,0] ..: `."""
    if message.startswith("["):
        end = message.find("]")
        return message[end + 1 :].lstrip(",: ")
    if message.startswith("Partition ["):
        return message.partition(": ")[2]
    if message.startswith("Broker "):
        return message.split(" ", 2)[-1]
    if message.startswith("Controller "):
        return message.split(" ", 4)[-1]
    return message


# More loggers than Kafka has: damaged text makes up names without end.
_MOST_ASKED = 20_000


class FamilyIndex:
    """Families by the first word of their text; those of any word are tried for every message."""

    def __init__(self, families: Iterable[LineFamily]) -> None:
        families = tuple(families)
        self._of_any_word = [family for family in families if not family.words]
        words = {word for family in families for word in family.words}
        self._by_word = {
            word: [f for f in families if word in f.words] + self._of_any_word for word in words
        }
        # Families by first word and logger, as lines ask for them.
        self._asked: dict[tuple[str, str | None], list[LineFamily]] = {}

    def _candidates(self, word: str, logger: str | None) -> list[LineFamily]:
        key = (word if word in self._by_word else "", logger)
        found = self._asked.get(key)
        if found is None:
            of_word = self._by_word.get(word, self._of_any_word)
            found = [f for f in of_word if logger is None or logger in f.loggers]
            if len(self._asked) < _MOST_ASKED:
                self._asked[key] = found
        return found

    def read(
        self, message: str, logger: str | None
    ) -> tuple[LineFamily, list[Found] | None] | None:
        """The family of a message with what it says; None for a line that no family claims.

        A family with None: the line begins as that family's lines do, but the wording is unknown.
        """
        text = text_behind_prefix(message)
        word = text[: text.find(" ")] if " " in text else text
        if "[" in word:
            word = word.partition("[")[0]
        claimed: LineFamily | None = None
        for family in self._candidates(word, logger):
            if family.trigger not in text:
                continue
            found = family.read(message)
            if found is not None:
                return family, found
            # Where no logger vouches for a line, its first word alone is not enough.
            if logger is not None or family.trigger:
                claimed = claimed or family
        return None if claimed is None else (claimed, None)


def _beginnings(families: Iterable[LineFamily]) -> tuple[set[str], set[str]]:
    """What the texts of families begin with: literally, and behind a first word of any kind."""
    literal: set[str] = set()
    later: set[str] = set()
    for family in families:
        for word in family.words:
            literal.add(family.trigger if family.trigger.startswith(word) else word)
        if not family.words:
            later.add(family.trigger)
    return literal, later


def _one_of(literals: Iterable[str]) -> str:
    """A pattern for any of the literals, sharing what they have in common: the regex engine tries
    alternatives one by one.
    """
    by_first: dict[str, set[str]] = {}
    for literal in literals:
        if not literal:
            return ""
        by_first.setdefault(literal[0], set()).add(literal[1:])
    branches = [re.escape(first) + _one_of(by_first[first]) for first in sorted(by_first)]
    return branches[0] if len(branches) == 1 else "(?:" + "|".join(branches) + ")"


def start_pattern(families: Iterable[LineFamily]) -> str:
    """A pattern for the beginning of a message that some family may claim.

    Possessive throughout: no message is tried twice.
    """
    literal, later = _beginnings(families)
    return (
        r"(?:\[[^\]\n]*+\][,: ]++|Partition \[[^\]\n]*+\] on broker \d++: |Broker \d++ "
        r"|Controller \d++ epoch \d++ )?+(?:"
        + _one_of(literal)
        + r"|[^\s]++"
        + _one_of(later)
        + ")"
    )


def logger_pattern(loggers: Iterable[str]) -> str:
    """A pattern for the full name of any of the loggers, in whichever package of Kafka."""
    classes = {name for name in loggers if "." not in name}
    whole = "|".join(re.escape(name) for name in sorted(set(loggers) - classes))
    return (
        r"(?:(?:kafka|org\.apache\.kafka)\.[a-z.]*+(?:\w++\$(?=\w))?"
        # The pattern (%c:%L) puts the line of the source behind.
        + _one_of(name + end for name in classes for end in ("$)", ")", "$:", ":"))
        + r"|(?:"
        + whole
        + r")\))"
    )


# Loggers that write much and little that matters: their few families are looked for by wording.
_CHATTY = frozenset(("LogSegment", "LocalLog", "KafkaConfig", "AbstractConfig"))

INDEX = FamilyIndex(FAMILIES)
START = start_pattern(FAMILIES)
LOGGERS: frozenset[str] = frozenset(logger for family in FAMILIES for logger in family.loggers)
LOGGER_IN_BRACKETS = r"\(" + logger_pattern(LOGGERS - _CHATTY)
RARE_WORDINGS: tuple[str, ...] = tuple(
    sorted({family.trigger for family in FAMILIES if _CHATTY.intersection(family.loggers)})
)
