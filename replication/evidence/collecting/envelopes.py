"""What a log shipper sends, taken apart: the broker's own line, and where it was read.

Recognised by their fields, not by configuration: Fluent Bit and Fluentd (`log`), Vector and
Filebeat (`message`, file path, host), rsyslog and syslog-ng as JSON (`msg` or `message`,
`hostname`), Kubernetes metadata in any of them, Kubernetes' own container format and docker's JSON
lines, and raw lines. A mapping names fields where a fleet has its own. Lines of `digest.py
--to-stdout` come the same ways, or as the envelope itself where a shipper takes JSON apart.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from replication.evidence.broker_logs.json_lines import json_line_fields
from replication.evidence.broker_logs.line_headers import HEADER
from replication.evidence.clients.client_logs import AS_THEY_ARE, AckFields, line_of_client
from replication.evidence.digest import LINES_NAME
from replication.evidence.log_directories.digest_lines import (
    checked,
    checked_object,
    is_digest_line,
)

# Dotted names of fields, the most telling first.
LINE_FIELDS = ("message", "log", "msg", "MESSAGE", "event.original", "line", "@message")
HOST_FIELDS = (
    "kubernetes.pod_name", "kubernetes.pod.name", "host.name", "host.hostname", "hostname",
    "host", "labels.pod", "labels.host", "labels.instance", "agent.hostname", "_HOSTNAME",
    "beat.hostname", "source_host", "logsource",
)  # fmt: skip
PATH_FIELDS = (
    "log.file.path", "file", "path", "filename", "$!metadata.filename", "metadata.filename",
    "source", "log_path", "kubernetes.container_name",
)  # fmt: skip
OFFSET_FIELDS = ("log.offset", "offset", "$!metadata.fileoffset", "metadata.fileoffset")
CLUSTER_FIELDS = (
    "kafka_cluster", "kafka.cluster", "fields.kafka_cluster", "fields.cluster", "labels.cluster",
    "kubernetes.labels.strimzi_io/cluster", "kubernetes.labels.strimzi.io/cluster", "cluster",
)  # fmt: skip
WITHIN = ("_source", "attributes", "fields", "jsonPayload", "result", "record", "event")
# So many objects one within another are opened: exports have two or three.
MOST_WITHIN = 8
CONTAINER_LINE = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) ([FP]) ?"
)
LONGEST_ENVELOPE = 1 << 20
# Halves of characters, which JSON can name and nobody can write down, and NUL, by which readers
# tell what is no text.
_NO_TEXT = re.compile("[\ud800-\udfff\0]")
_IN_ITS_PLACE = "?"  # as long as a NUL, so that later lines of the envelope keep their bytes


@dataclass(frozen=True, slots=True)
class ShippedLine:
    """One line of a broker's log. host, path, cluster: "" where the envelope does not say.

    offset: the byte at which the line begins in its file, None where the envelope does not say.
    partial: the container runtime cut the line here, and the next one goes on with it. digest: it
    is a line of `digest.py --to-stdout`, not of the broker. client: the kind of client's log that
    it is of, "" for a broker's.
    """

    text: str
    host: str = ""
    path: str = ""
    cluster: str = ""
    offset: int | None = None
    partial: bool = False
    digest: bool = False
    client: str = ""


@dataclass(frozen=True, slots=True)
class NotALine:
    """An envelope that holds no line, and why: quarantined, never dropped in silence."""

    reason: str


@dataclass(frozen=True, slots=True)
class FieldNames:
    """Dotted names of fields that a fleet uses, looked at before the known ones.

    one_cluster: the name of the cluster that all lines are of, where nothing in them says.
    ack_fields: how an acknowledgement's fields are named; None: what is nearly one is none.
    """

    line: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    offset: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    one_cluster: str = ""
    ack_fields: AckFields | None = AS_THEY_ARE


KNOWN_FIELDS = FieldNames()


def shipped_lines(
    sent: bytes, names: FieldNames = KNOWN_FIELDS
) -> Iterator[ShippedLine | NotALine]:
    """The lines in one message of a topic, or in one line of a file that a shipper writes.

    An envelope may hold several lines (a shipper that joins exceptions), and an array several
    envelopes. Never raises: what cannot be taken apart says why.
    """
    if len(sent) > LONGEST_ENVELOPE:
        yield NotALine(f"longer than {LONGEST_ENVELOPE} bytes")
        return
    try:
        text = sent.decode("utf-8")
    except UnicodeDecodeError:
        text = sent.decode("latin-1")
    if text[:1] not in ("{", "["):
        yield from _lines(text, names, {})
        return
    try:
        envelope = json.loads(text)
    except (ValueError, RecursionError):
        # A log line in brackets, or an envelope that was cut: the first is a line like any other.
        yield from (
            _lines(text, names, {})
            if text[0] == "["
            else iter([NotALine("an envelope that is no whole JSON object")])
        )
        return
    for each in envelope if isinstance(envelope, list) else [envelope]:
        yield from _opened(each, names)


def _opened(envelope: Any, names: FieldNames) -> Iterator[ShippedLine | NotALine]:
    if not isinstance(envelope, dict):
        yield NotALine("JSON, but no envelope of a log line")
        return
    envelope = _unwrapped(envelope, names)
    if LINES_NAME in envelope:
        yield from _digest_line(checked_object(envelope), names, envelope)
        return
    line = _first(envelope, names.line + LINE_FIELDS)
    if isinstance(line, str):
        if not HEADER.match(line.encode("utf-8", "replace")):
            line = _as_printed(line, envelope)
        yield from _lines(line, names, envelope)
        return
    own = _as_text(envelope)
    client, refused = _of_client(own.decode(), partial=False, names=names)
    if client or refused:
        yield from _lines(own.decode(), names, {})  # A client's log, sent as it is.
        return
    yield NotALine(
        f"no field holds a line; of the names {', '.join(names.line + LINE_FIELDS)} none is "
        "there: name the one that does (--line-field)"
    )


def _as_text(envelope: dict[str, Any]) -> bytes:
    """Empty where it is too deep to be written."""
    try:
        return json.dumps(envelope).encode()
    except RecursionError:
        return b""


def _as_printed(message: str, envelope: dict[str, Any]) -> str:
    """A message whose time and logger lie beside it, as a layout that prints JSON has it; without
    what its shipper has added. Any other text as it is."""
    layout = json_line_fields(_as_text(envelope))
    if layout is None or layout.logger is None or layout.time is None:
        return message
    told = {"timestamp": layout.time, "logger": layout.logger, "thread": layout.thread}
    kept = {name: value for name, value in told.items() if value is not None}
    return json.dumps({**kept, "message": layout.message})


def _unwrapped(envelope: dict[str, Any], names: FieldNames) -> dict[str, Any]:
    """The object that holds the line, where a search or a collector's sink exports one object
    within another; with the fields of those around it that it does not have itself."""
    for _ in range(MOST_WITHIN):
        if LINES_NAME in envelope or isinstance(_first(envelope, names.line + LINE_FIELDS), str):
            break
        inner = next((envelope[k] for k in WITHIN if isinstance(envelope.get(k), dict)), None)
        if inner is None:
            break
        envelope = {**{k: v for k, v in envelope.items() if k not in WITHIN}, **inner}
    return envelope


def _digest_line(
    line: dict[str, Any] | str, names: FieldNames, envelope: dict[str, Any]
) -> Iterator[ShippedLine | NotALine]:
    if isinstance(line, str):
        yield NotALine(f"a line of a digest, but {line}")
        return
    host = _text(_first(envelope, names.host + HOST_FIELDS))
    cluster = _text(_first(envelope, names.cluster + CLUSTER_FIELDS)) or names.one_cluster
    text = json.dumps({LINES_NAME: line[LINES_NAME], **dict(sorted(line.items()))})
    yield ShippedLine(text, host, "", cluster, digest=True)


def _lines(
    text: str, names: FieldNames, envelope: dict[str, Any]
) -> Iterator[ShippedLine | NotALine]:
    host = _text(_first(envelope, names.host + HOST_FIELDS))
    path = _text(_first(envelope, names.path + PATH_FIELDS))
    cluster = _text(_first(envelope, names.cluster + CLUSTER_FIELDS)) or names.one_cluster
    offset = _first(envelope, names.offset + OFFSET_FIELDS)
    at = int(offset) if re.fullmatch(r"[0-9]{1,18}", str(offset)) else None
    for line in _NO_TEXT.sub(_IN_ITS_PLACE, text).splitlines():
        partial = False
        wrapped = CONTAINER_LINE.match(line)
        if wrapped is not None:
            partial, line = wrapped[1] == "P", line[wrapped.end() :]
        if is_digest_line(line):
            yield from _digest_line(checked(line), names, envelope)
        elif line.strip():
            client, refused = _of_client(line, partial=partial, names=names)
            yield (
                ShippedLine(line, host, path, cluster, at, partial, client=client)
                if refused is None
                else NotALine(refused)
            )
        if at is not None:
            at += len(line.encode()) + 1


def _of_client(line: str, *, partial: bool, names: FieldNames) -> tuple[str, str | None]:
    """Of which kind of client's log a line is, "" for none; and why nothing can be done with it."""
    if partial or not line.startswith("{") or json_line_fields(line.encode()) is not None:
        return "", None
    kind, refused = line_of_client(line, names.ack_fields)
    return kind or "", refused


def _first(envelope: dict[str, Any], dotted: tuple[str, ...]) -> Any:
    """The value of the first name that is there: `a.b` as a field of that name, or b inside a."""
    for name in dotted:
        found = envelope[name] if name in envelope else _inside(envelope, name.split("."))
        if isinstance(found, dict):
            found = found.get("name")
        if found not in (None, ""):
            return found
    return None


def _inside(value: Any, parts: list[str]) -> Any:
    for number, part in enumerate(parts):
        if not isinstance(value, dict):
            return None
        rest = ".".join(parts[number:])
        if rest in value:
            return value[rest]
        value = value.get(part)
    return value


def _text(value: Any) -> str:
    return _NO_TEXT.sub(_IN_ITS_PLACE, value) if isinstance(value, str) else ""
