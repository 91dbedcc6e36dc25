"""Log lines that are JSON objects: where layouts, collectors and exports put message and logger."""

import json
from typing import Any, NamedTuple

from replication.evidence.broker_logs.line_headers import HEADER, Clock
from replication.evidence.broker_logs.loggers_in_lines import BROKERS_PREFIX

_MESSAGE_KEYS = (
    "message", "msg", "@message", "log", "MESSAGE", "short_message", "textPayload", "_raw",
)  # fmt: skip
# Where exports and agents put the fields: one object within another.
_WITHIN = ("_source", "attributes", "fields", "jsonPayload", "result", "record", "event")
_LOGGER_KEYS = (
    "loggerName", "logger", "logger_name", "log.logger", "_logger", "_loggerName", "class",
    "category", "name",
)  # fmt: skip
_TIME_KEYS = ("timestamp", "@timestamp", "timeMillis", "time", "ts", "instant", "date")

_THREAD_KEYS = ("thread", "thread_name", "threadName", "_thread", "process.thread.name")


class JsonLine(NamedTuple):
    """Message, logger, time as it is printed, and thread, each None where the object has none."""

    message: str
    logger: str | None
    time: Any
    thread: str | None


def json_line_fields(line: bytes) -> JsonLine | None:
    """What a JSON line says; None for anything else."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    inner = next((fields[key] for key in _WITHIN if isinstance(fields.get(key), dict)), None)
    if inner is not None and not any(isinstance(fields.get(k), str) for k in _MESSAGE_KEYS):
        fields = inner
    message = next((fields[key] for key in _MESSAGE_KEYS if isinstance(fields.get(key), str)), None)
    if message is None:
        return None
    logger = next((fields[key] for key in _LOGGER_KEYS if isinstance(fields.get(key), str)), None)
    nested = fields.get("log")
    if logger is None and isinstance(nested, dict) and isinstance(nested.get("logger"), str):
        logger = nested["logger"]
    headed = HEADER.match(message.encode("utf-8", "replace"))
    if logger is None and not headed and not BROKERS_PREFIX.match(message):
        return None
    time = next((fields[key] for key in _TIME_KEYS if key in fields), None)
    thread = next((fields[key] for key in _THREAD_KEYS if isinstance(fields.get(key), str)), None)
    return JsonLine(message, logger, time, thread)


def json_time(value: Any, clock: Clock) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        return int(value) if value.isdecimal() and len(value) <= 15 else clock.at_text(value)
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        # Seconds with a fraction; not-a-number compares false.
        return round(value * 1000) if 0 <= value < 1e11 else None
    if isinstance(value, dict):
        seconds, nanos = value.get("epochSecond"), value.get("nanoOfSecond", 0)
        if isinstance(seconds, int) and isinstance(nanos, int):
            return seconds * 1000 + nanos // 1_000_000
    return None
