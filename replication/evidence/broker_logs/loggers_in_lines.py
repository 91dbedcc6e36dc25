"""Where a line names its logger and its thread: in front of the message, or behind it."""

import re
from datetime import UTC

from replication.evidence.broker_logs.line_families import LOGGERS, short_logger
from replication.evidence.broker_logs.line_headers import HEADER, Clock

# `[thread] logger:line - message` and `logger: message` behind the level.
# In front of them Spring Boot puts the process and, from 3.2, the application.
LOGGER_FIRST = re.compile(
    rb"(?:\d+ --- )?(?:\[(?P<thread>[^\]\n]*)\] +){0,2}(?P<logger>[\w.$]+)(?::\d+)?"
    rb"(?: *\([^)\n]*\))?"
    rb" *(?:-|:) +"
)
# Exports put the line into quotes, which then end it.
TRAILING_LOGGER = re.compile(
    rb"[ \t]\((?P<logger>[\w.$]+)(?::\d+)?\)(?: \[(?P<thread>[^\]\n]*)\])?[\"',;]*\s*$"
)
_BEHIND_A_LOGGER = frozenset((b")", b"]", b'"', b"'", b",", b";"))

# What brokers begin their messages with, behind whatever other layouts put in front.
WRITER_IN_BRACKETS = (
    r"\[(?:ReplicaFetcher replicaId=\d|ReplicaFetcherThread-\d+-\d+\]"
    r"|(?:Unified|Merged|Local)?Log(?:Loader)? partition=|RemoteLogManager=\d"
    r"|Partition \S+ broker=\d|ReplicaManager broker=\d|ReplicaFetcherManager on broker "
    r"|Kafka ?(?:Raft)?Server |Broker(?:Server)? id=\d|Controller (?:id=)?\d|QuorumController id=\d"
    r"|GroupCoordinator )"
)
BROKERS_PREFIX = re.compile(WRITER_IN_BRACKETS + "|KafkaConfig values:")
BROKERS_PREFIX_BYTES = re.compile(BROKERS_PREFIX.pattern.encode())
# What layouts put between level and message: a thread, a logger, in brackets or before a dash, a
# colon or a bar.
_BETWEEN = re.compile(
    rb"(?:\[(?!Replica\w*Thread-|Controller-)(?P<a>[\w.$:#-]*)\]:? *|\([\w.$ :-]+\) +"
    rb"|(?P<b>[\w.$]+)(?::\d+)? *(?:--?|:|\|) +|(?P<c>(?:[\w$]+\.)+[\w$]+)(?::\d+)? +)"
)
_MOST_BETWEEN = 3


def behind_what_layouts_print(
    line: bytes, begin: int, known: re.Pattern[bytes]
) -> tuple[int, str | None]:
    """Where a message that matches `known` begins, behind all that layouts print, and the logger
    before it, where Kafka has it."""
    logger, place, best = None, begin, begin
    for _ in range(_MOST_BETWEEN + 1):
        if known.match(line, place):
            best = place
        found = None if BROKERS_PREFIX_BYTES.match(line, place) else _BETWEEN.match(line, place)
        if found is None:
            break
        name = (found["a"] or found["b"] or found["c"] or b"").decode("utf-8", "replace")
        logger = logger or vouched(name)
        place = found.end()
    return best, logger if best > begin else None


def vouched(name: str) -> str | None:
    """The logger's short name where line families know it."""
    short = short_logger(name)
    return short if short in LOGGERS else None


def is_shortened(name: str) -> bool:
    """Whether a name may be that of a logger of Kafka's, shortened: `k.c.Partition`, `k.P`."""
    if name.startswith(("kafka.", "org.", "state.")):
        return False
    *packages, last = name.split(".")
    return all(len(part) == 1 for part in packages) or vouched(last) is not None


def may_be_kafkas(logger: str, message: str) -> bool:
    """Whether a line of a logger that line families do not know may be a broker's all the same."""
    return is_shortened(logger) or BROKERS_PREFIX.match(message) is not None


_UTC_CLOCK = Clock(UTC)


def split_line(text: str) -> tuple[int | None, str, str | None, bool]:
    """One line by itself: its time (UTC where it names no zone), message, logger, and whether it
    begins as log lines do."""
    line = text.encode("utf-8", "replace")
    header = HEADER.match(line)
    begin = header.end() if header else 0
    message, logger, _ = without_logger(line, begin)
    at = _UTC_CLOCK.at(header) if header else None
    return at, message.decode("utf-8", "replace").strip(), logger, header is not None


# Few loggers write many lines: short names by whole ones.
_short_names: dict[bytes, str] = {}
_LOGGER_NAME = re.compile(rb"[\w.$]+")
_MANY_NAMES = 10_000


def without_logger(line: bytes, begin: int) -> tuple[bytes, str | None, str | None]:
    """The message from begin on, and the logger and the thread that are behind it in brackets."""
    if line.endswith(b")"):
        place = line.rfind(b" (", begin)
        name = line[place + 2 : -1]
        short = _short_names.get(name)
        if short is None and place >= 0 and _LOGGER_NAME.fullmatch(name):
            if len(_short_names) > _MANY_NAMES:
                _short_names.clear()
            short = _short_names[name] = short_logger(name.decode())
        if short is not None:
            return line[begin:place], short, None
    trailing = TRAILING_LOGGER.search(line, begin)
    if trailing is None:
        return line[begin:], None, None
    logger = short_logger(trailing["logger"].decode())
    return line[begin : trailing.start()], logger, thread_of(trailing)


def ends_without_logger(line: bytes) -> bool:
    """Whether a look at its last byte tells that no logger ends the line."""
    return line.rstrip()[-1:] not in _BEHIND_A_LOGGER


def trailing_logger(line: bytes, begin: int) -> bytes | None:
    """The whole name of the logger that is behind the message which begins there."""
    if line.endswith(b")"):
        place = line.rfind(b" (", begin)
        name = line[place + 2 : -1]
        if place >= 0 and (name in _short_names or _LOGGER_NAME.fullmatch(name)):
            return name
    elif ends_without_logger(line):
        return None
    trailing = TRAILING_LOGGER.search(line, begin)
    return None if trailing is None else trailing["logger"]


def thread_of(*found: re.Match[bytes] | None) -> str | None:
    """The thread that one of them names."""
    named = next((match["thread"] for match in found if match and match["thread"]), None)
    return None if named is None else named.decode("utf-8", "replace")
