"""How a job fails: the one line that tells a user what happened, and the exit status."""

import errno
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from replication.progress import ERROR, line_of
from replication.reports.safe_text import plain_output
from replication.spark.java_stderr import silence_java, stderr_of_spark_submit
from replication.spark.log_files import RESTORE

EXIT_UNUSABLE, EXIT_DEFECT, EXIT_TRY_AGAIN, EXIT_INTERRUPTED = 2, 4, 5, 130
# Failures of what the job depends on: they pass, or somebody mends them, and then it goes on.
OUTSIDE = (
    "No space left on device", "Disk quota exceeded", "Input/output error", "Stale file handle",
    "Read-only file system", "Permission denied", "AccessDeniedException", "Too many open files",
    "Cannot allocate memory", "OutOfMemoryError", "Connection refused", "Connection reset",
    "No route to host", "UnknownHostException", "operation timed out", "error sending request",
    # Spark was ended from elsewhere: its master went, or somebody killed the application.
    "stopped SparkContext", "SparkContext was shut down", "SparkContext has been shutdown",
    # A worker that the system killed, for want of memory mostly.
    "Python worker exited unexpectedly", "ExecutorLostFailure",
    # Somebody has added a column: the next start reads the table as it is then.
    "DELTA_SCHEMA_CHANGED",
    # Another job has committed to the table meanwhile, or altered it, as maintenance does.
    "DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "CameSecondError",
)  # fmt: skip
# Which folder of several lies on the full disk nothing tells: so the room in each is told.
FULL = ("No space left on device", "Disk quota exceeded")
WRITTEN = ("--tables", "--checkpoint-dir", "--out")
# What passes, or somebody mends, where a job looks at what it was given.
PASSES = "|".join(("Connection refused", "Connection reset", "No route to host", "timed out",
                        *FULL, "Read-only file system"))  # fmt: skip
# How a refusal tells the system's words: behind a colon, and never within a path.
TOLD_AWAY = re.compile(rf": [^:/]*({PASSES})|^--master \S+ does not answer")
QUOTING = ("SessionError", "SourceError")
# What Delta raises, which PySpark knows only in part: its conflicts are Java's own exceptions here.
OF_DELTA = (PySparkException, Py4JJavaError)
OUTSIDE_NUMBERS = (
    errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE,
    errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT, errno.ECONNREFUSED, errno.ECONNRESET,
    errno.EHOSTUNREACH,
)  # fmt: skip
# How deltalake's Rust tells the system's number, the cause below each cause, and both in colour.
OF_THE_SYSTEM = re.compile(r"\(os error (\d+)\)")
COLOUR, BELOW = re.compile(r"\x1b\[[0-9;]*m"), re.compile(r"\s*\n\s*\u21b3\s*")
# A refusal of ours that passes, by the name of its class.
AWAY = "KafkaAwayError"
# What a job refuses before it asks Spark for anything, by the names of their classes.
USAGE = ("SessionError", "SettingsError", "SourceError", "TablesError", "LockedError", "SuiteError",
         "ProjectError", "Unusable", "NoEvidence", "NotUsable", "ClocksDisagree",
         "DamagedError", AWAY)  # fmt: skip
# Ours, by the names of their classes: text is all that comes through Spark.
REFUSALS = ("TakenOverError", "TablesError", "SourceError", "ClocksDisagree", "DamagedError", AWAY)
# Spark's state store, where files of it are missing or broken.
STATE_BROKEN = ("CANNOT_LOAD_STATE_STORE", "STATE_STORE_", "RocksDBException", "CorruptState",
                "UnknownFormat")  # fmt: skip
# Hadoop's check of each file of a checkpoint.
CHECKPOINT_BROKEN = "ChecksumException"
# The same of a file of the tables.
TABLE_CHANGED = re.compile(r"Checksum error: \S*(\.parquet|/_delta_log/)")
# Spark keeps the whole names of the files that a query has read.
CHECKPOINT_MOVED = "Wrong basePath"
# Files of the tables, Delta's own among them, that are missing, cut or changed.
TABLES_BROKEN = (
    "DELTA_FILE_NOT_FOUND", "DELTA_LOG_FILE_NOT_FOUND", "DELTA_STATE_RECOVER_ERROR",
    "DELTA_TRUNCATED_TRANSACTION_LOG", "DELTA_VERSIONS_NOT_CONTIGUOUS", "DELTA_LOG_FILE_MALFORMED",
    "DELTA_INVALID_FORMAT", "FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER", "FileReadException",
    "is not a Parquet file", "ParquetDecodingException", "ParquetCorruptionException",
    "CRC checksum verification failed",
)  # fmt: skip
# Settings of Kafka's client that it refuses, where it makes no class of its own of that.
CLIENT_REFUSES = ("JAAS config entry", "Could not find a 'KafkaClient' entry")
ANEW = "delete the fold's folder in --checkpoint-dir and start anew with --new-run NAME"
DEFECTS = ("MiscountedError", "CorruptState", "UnknownFormat")
# What wraps a cause and says nothing of its own.
WRAPPERS = (
    "StreamingQueryException", "SparkException", "Py4JJavaError", "PythonException",
    "Py4JException", "ExecutionException", "CompletionException", "StreamExecutionException",
)  # fmt: skip
# Spark's own words around the first line of what ended a query.
QUERY_ENDED = re.compile(
    r"^\[STREAM_FAILED\] Query .*? terminated with exception: |( SQLSTATE: \w+)$"
)
CAUSE = re.compile(
    r"^(?:Caused by: |: )?([\w.$]*?\w*(?:Error|Exception|Format|State|Disagree)): (.+)$"
)


@dataclass(frozen=True)
class OfKafka:
    """What a failure means that Kafka's client raised. topic_is_missing: as far as the brokers know
    now."""

    status: int
    words: str
    topic_is_missing: bool = False


MESSAGES_GONE = OfKafka(
    EXIT_UNUSABLE,
    "the topic no longer holds messages that were not read (retention, or it was deleted): to go "
    "on without them start it with --fail-on-data-loss false",
)
# By the classes that Kafka makes its errors of (org.apache.kafka): the first that one is of.
KAFKA_CLASSES = {
    "common.errors.AuthenticationException": OfKafka(
        EXIT_UNUSABLE,
        "the brokers refuse the login: correct the security protocol, the mechanism, the user or "
        "the password in the file of --kafka-options",
    ),
    "common.errors.AuthorizationException": OfKafka(
        EXIT_UNUSABLE,
        "the user of --kafka-options may not do this: allow it to DESCRIBE and READ the topic",
    ),
    "common.config.ConfigException": OfKafka(
        EXIT_UNUSABLE, "a setting of --kafka-options that Kafka's client does not take"
    ),
    "common.errors.InvalidTopicException": OfKafka(
        EXIT_UNUSABLE, "Kafka allows no such name: correct --topic"
    ),
    "common.errors.InvalidOffsetException": MESSAGES_GONE,
    "clients.consumer.InvalidOffsetException": MESSAGES_GONE,
    "common.errors.UnknownTopicOrPartitionException": OfKafka(
        EXIT_TRY_AGAIN, "the brokers did not know the topic; start it again", topic_is_missing=True
    ),
    "common.errors.RetriableException": OfKafka(
        EXIT_TRY_AGAIN, "Kafka did not answer; start it again when it does"
    ),
}
KAFKA_CLASS = re.compile(r"(?:^|: )org\.apache\.kafka\.([\w.]+Exception)(?=:|$)", re.MULTILINE)
# Spark's own, where a micro-batch finds that messages are gone (KafkaExceptions).
KAFKA_DATA_LOSS = ("KAFKA_DATA_LOSS", "kafka010.KafkaIllegalStateException")


def of_kafka(error: BaseException) -> OfKafka | None:
    """What an error means that came of Kafka's client or of Spark's source of topics, by its
    classes and those of its causes; None where none is Kafka's."""
    text = _with_causes(error)
    if any(name in text for name in KAFKA_DATA_LOSS):
        return MESSAGES_GONE
    named = dict.fromkeys(KAFKA_CLASS.findall(text))
    classes = {each for name in named for each in _and_above(f"org.apache.kafka.{name}")}
    return next(
        (known for name, known in KAFKA_CLASSES.items() if f"org.apache.kafka.{name}" in classes),
        None,
    )


def _with_causes(error: BaseException) -> str:
    """All that an error says, and where it is Java's, its causes with the names of their classes:
    PySpark's text of a query that failed has those of the outermost alone."""
    texts = [f"{type(error).__name__}: {error}"]
    cause: Any = getattr(error, "_cause", None)
    while cause is not None:
        texts += [str(getattr(cause, "_stackTrace", "")), str(_condition(cause))]
        cause = getattr(cause, "_cause", None)
    return "\n".join(texts)


def _condition(error: Any) -> str:
    """Spark's name of an error, "" where it has none or cannot be asked any more."""
    try:
        return error.getCondition() or ""
    except Exception:
        return ""


def _and_above(name: str) -> Iterator[str]:
    """A class of Java's and those above it, as far as the JVM can be asked."""
    yield name
    jvm: Any = SparkContext._jvm
    if jvm is None:
        return
    try:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        found = jvm.java.lang.Class.forName(name, False, loader).getSuperclass()
        while found is not None:
            yield found.getName()
            found = found.getSuperclass()
    except (Py4JError, OSError):
        return


def is_conflict(error: BaseException) -> bool:
    """Whether a commit was refused because of another that came before it; that may be repeated."""
    return any(word in str(error) for word in ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED"))


def exit_status(main: Callable[[list[str]], int], command: Sequence[str]) -> int:
    """What a job ends with: its own status, or that of what it did not see coming.

    Python itself would end with 1, which says that something is violated. command: as sys.argv.
    """
    with stderr_of_spark_submit(), plain_output():
        return _status(main, command)


def _status(main: Callable[[list[str]], int], command: Sequence[str]) -> int:
    job = Path(command[0]).name
    try:
        return main(list(command[1:]))
    except KeyboardInterrupt:
        pass
    except Exception as error:
        if not _came_of_an_interrupt(error):
            return ended_by(error, job)
    silence_java()
    _say(f"{job}: interrupted before it had finished", sys.stderr)
    return EXIT_INTERRUPTED


def _came_of_an_interrupt(error: BaseException | None) -> bool:
    """Whether it is of what was still to be done after Ctrl-C, with a JVM that ends, too."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def ended_by(error: Exception, job: str) -> int:
    """Says on stderr what ended a job, in one line unless it is a defect; the exit status."""
    silence_java()
    number = system_number(error)
    if number is not None or isinstance(error, OSError):
        said = in_one_line(error)
        room = room_told(sys.argv) if number in (errno.ENOSPC, errno.EDQUOT) else ""
        said += flag_told(error, sys.argv)
        passes = number in OUTSIDE_NUMBERS
        if number is None or isinstance(error, DeltaError):
            passes = passes or any(words in said for words in OUTSIDE)
        again = "; start it again when that is mended" if passes else ""
        _say(f"{job}: {said}{again}{room}", sys.stderr)
        return EXIT_TRY_AGAIN if passes else EXIT_UNUSABLE
    if type(error).__name__ in USAGE:
        if type(error).__name__ == AWAY:
            _say(f"{job}: {error}", sys.stderr)
            return EXIT_TRY_AGAIN
        away = _is_of_what_is_away(error)
        again = "; start it again when that is mended" if away else ""
        _say(f"{job}: {error}{again}", sys.stderr)
        return EXIT_TRY_AGAIN if away else EXIT_UNUSABLE
    # What comes through Spark names its cause, and brings the JVM's own trace along.
    if not isinstance(error, OF_DELTA) and type(error).__name__ not in DEFECTS:
        _say("".join(traceback.format_exception(error)).rstrip(), sys.stderr)
    return failed(job, error, sys.stderr)


def _is_of_what_is_away(error: BaseException) -> bool:
    """Whether a refusal came of an error of the system or a library that passes, or quotes one."""
    if type(error).__name__ in QUOTING and TOLD_AWAY.search(str(error)):
        return True
    cause = error.__cause__ or error.__context__
    while cause is not None and not isinstance(cause, (OSError, DeltaError, *OF_DELTA)):
        cause = cause.__cause__ or cause.__context__
    said = (cause.strerror if isinstance(cause, OSError) else None) or str(cause or "")
    return re.search(PASSES, said) is not None


def system_number(error: BaseException) -> int | None:
    """The system's number (errno) of an error that is the system's, also where deltalake tells it
    in words alone; None of every other error."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = OF_THE_SYSTEM.search(str(error)) if isinstance(error, OSError | DeltaError) else None
    return int(found[1]) if found else None


def in_one_line(error: BaseException) -> str:
    """An error's words, without colours, each cause behind the one that it explains."""
    return " ".join(BELOW.sub(": ", COLOUR.sub("", str(error))).split())


def failed(job: str, error: BaseException, out: TextIO) -> int:
    """Says in the last line why a job failed; returns the exit status for that.

    2: what it was given cannot be used, 5: what it depends on failed and may come back (a full
    disk, a broker), 4: everything else.
    """
    cause, text = first_cause(error), f"{type(error).__name__}: {error}"
    if any(name in text for name in REFUSALS):
        _say(f"{job}: {cause}", out)
        return EXIT_TRY_AGAIN if AWAY in text else EXIT_UNUSABLE
    kafka = of_kafka(error)
    if kafka is not None:
        _say(f"{job}: {cause}: {kafka.words}", out)
        return kafka.status
    if any(name in text for name in OUTSIDE):
        room = room_told(sys.argv) if any(words in text for words in FULL) else ""
        said = f"{job}: {cause}; start it again when that is mended{room}"
        _say(said, out)
        return EXIT_TRY_AGAIN
    if any(name in text for name in CLIENT_REFUSES):
        whose = "a setting of --kafka-options that Kafka's client does not take"
        _say(f"{job}: {cause}; {whose}", out)
        return EXIT_UNUSABLE
    if CHECKPOINT_BROKEN in text and not TABLE_CHANGED.search(text):
        whose = "restore it, or delete the folder of that query in --checkpoint-dir and start anew"
        _say(f"{job}: {cause}; {whose} with --new-run NAME", out)
        return EXIT_UNUSABLE
    if CHECKPOINT_MOVED in text:
        whose = "--checkpoint-dir lay elsewhere when it was made: move it back, or start anew with"
        _say(f"{job}: {cause}; {whose} an empty one and --new-run NAME", out)
        return EXIT_UNUSABLE
    if any(name in text for name in STATE_BROKEN):
        _say(f"{job}: the fold's state cannot be read: {cause}; {ANEW}", out)
        return EXIT_UNUSABLE
    if any(name in text for name in (*TABLES_BROKEN, CHECKPOINT_BROKEN)):
        _say(f"{job}: {cause}; a file of the tables is missing or damaged: {RESTORE}", out)
        return EXIT_UNUSABLE
    _say(f"{job}: a defect of this tool: {cause}", out)
    return EXIT_DEFECT


def _say(text: str, out: TextIO) -> None:
    print(line_of(text, ERROR), file=out, flush=True)


def room_told(command: Sequence[str]) -> str:
    """How much is free where a job writes on this machine: `; free: ..`. command: as sys.argv."""
    folders = [(Path(value), name) for name, value in _flags(command) if name in WRITTEN]
    scratch = os.environ.get("SPARK_LOCAL_DIRS", "/tmp").split(",")
    folders += [(Path(folder), "temporary files") for folder in scratch]
    told = []
    for folder, name in folders:
        there = next((p for p in (folder, *folder.parents) if p.is_dir()), None)
        if there is not None and not re.match(r"[a-z0-9]{2,}:", str(folder)):
            free = shutil.disk_usage(there).free // 2**20
            told.append(f"{free:,} MB in {folder} ({name})")
    return f"; free: {', '.join(told)}"


def flag_told(error: BaseException, command: Sequence[str]) -> str:
    """By which flag a job was given the folder of the file that an error is about: ` (--tables)`.
    "" where it is of none of them. command: as sys.argv."""
    name = getattr(error, "filename", None)
    if not isinstance(name, str):
        return ""
    path = Path(name).absolute()
    flags = {Path(value).absolute(): flag for flag, value in _flags(command)}
    found = next((flags[each] for each in (path, *path.parents) if each in flags), None)
    return f" ({found})" if found else ""


def _flags(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The flags of a command line that have a value, and it."""
    words = [part for word in command for part in word.split("=", 1)]
    for name, value in pairwise(words):
        if name.startswith("--") and not value.startswith("--"):
            yield name, value


def first_cause(error: BaseException) -> str:
    """The innermost cause that an error names, in one line; of ours the words alone."""
    text = BELOW.sub(": ", COLOUR.sub("", str(error)))
    lines = [QUERY_ENDED.sub("", line.strip()) for line in text.splitlines() if line.strip()]
    named = [(m[1].rsplit(".", 1)[-1], m[2]) for m in map(CAUSE.match, lines) if m]
    for name, words in named:
        if name in REFUSALS:
            return words
        if name in DEFECTS:
            return f"{name}: {words}"
    told = [(name, words) for name, words in named if name not in WRAPPERS]
    outside = [f"{n}: {w}" for n, w in told if any(text in f"{n}: {w}" for text in OUTSIDE)]
    if outside:
        return outside[-1]
    if told:
        return ": ".join(told[-1])
    return lines[0] if lines else repr(error)
