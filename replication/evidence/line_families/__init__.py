"""All line families, and the way from a message to the families that may have written it."""

from collections.abc import Iterable

from replication.evidence.line_families import (
    controller,
    in_sync_replicas,
    leadership,
    lifecycle,
    logs,
    settings,
    truncation,
)
from replication.evidence.line_families.family import Found, LineFamily

FAMILIES: tuple[LineFamily, ...] = (
    *lifecycle.FAMILIES,
    *leadership.FAMILIES,
    *truncation.FAMILIES,
    *logs.FAMILIES,
    *in_sync_replicas.FAMILIES,
    *controller.FAMILIES,
    *settings.FAMILIES,
)

# Loggers whose last name component alone would not tell them apart.
_WHOLE_NAMES = ("state.change.logger", "kafka.request.logger")


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


class FamilyIndex:
    """Families by the first word of their text; those of any word are tried for every message."""

    def __init__(self, families: Iterable[LineFamily]) -> None:
        self._by_word: dict[str, list[LineFamily]] = {}
        self._of_any_word: list[LineFamily] = []
        for family in families:
            for word in family.words:
                self._by_word.setdefault(word, []).append(family)
            if not family.words:
                self._of_any_word.append(family)

    def read(
        self, message: str, logger: str | None
    ) -> tuple[LineFamily, list[Found] | None] | None:
        """The family of a message with what it says; None for a line that no family claims.

        A family with None: the line begins as that family's lines do, but the wording is unknown.
        """
        text = text_behind_prefix(message)
        word = text.partition(" ")[0]
        claimed: LineFamily | None = None
        for family in (*self._by_word.get(word, ()), *self._of_any_word):
            if logger is not None and logger not in family.loggers:
                continue
            if family.trigger not in text:
                continue
            found = family.read(message)
            if found is not None:
                return family, found
            claimed = claimed or family
        return None if claimed is None else (claimed, None)


INDEX = FamilyIndex(FAMILIES)
LOGGERS: frozenset[str] = frozenset(logger for family in FAMILIES for logger in family.loggers)
