"""What collectors put around log lines (docker, journald, syslog), and how it is taken off."""

import json
import re
from collections.abc import Callable

from replication.evidence.broker_logs.line_headers import HEADER, LEVEL

# A line beyond this is no log line; what is read of it is given up.
LONGEST_LINE = 8 << 20

# Wrappers: what collectors put in front of each line, continuation lines included.
_ISO = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_SYSLOG_TIME = rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
_SENDER = rb" [\w.-]+ [^\s:\[]+(?:\[\d+\])?: "
_WRAPPERS = tuple(
    re.compile(rb"(?m)^" + pattern)
    for pattern in (
        # CRI (containerd, cri-o)
        _ISO + rb" (?:stdout|stderr) [FP] ",
        # docker compose, with and without its time stamps
        rb"[\w.-]+ *\| +" + _ISO + rb" ",
        rb"[\w.-]+ *\| ",
        # journald (short-iso) and rsyslog, journald (short) and classic syslog
        rb"(?:<\d+>)?(?P<iso>" + _ISO + rb")" + _SENDER,
        rb"(?:<\d+>)?(?P<syslog>" + _SYSLOG_TIME + rb")" + _SENDER,
        # docker logs -t, kubectl logs --timestamps
        rb"(?P<iso>" + _ISO + rb") ",
        # kubectl logs --prefix, with and without --timestamps
        rb"\[pod/[^\]\s]+\] (?:" + _ISO + rb" )?",
        # stern: pod and container
        rb"[\w.-]+ [\w.-]+ ",
    )
)
# Kafka's own header, of a second and a level at least; and whatever comes before it in a line.
_KAFKAS_HEADER = rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] " + LEVEL + rb" "
_MOST_BEFORE = 400
_ANYTHING_BEFORE = re.compile(rb"(?m)^[^\n]{1,%d}?(?=" % _MOST_BEFORE + _KAFKAS_HEADER + rb")")
_LATER_HEADER = re.compile(_KAFKAS_HEADER)
_HEADER_WITHIN = re.compile(rb"\[(?<=[^\n]\[)" + _KAFKAS_HEADER[2:])
_LONGEST_HEADER = 40
COLOURS = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
_MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_STARTS_WITH_LEVEL = re.compile(LEVEL + rb"[ :]")

Transform = Callable[[bytes], bytes]


class DockerJson:
    """Docker's json-file driver: one object per line, `{"log":"..\\n","stream":..,"time":..}`.

    A long line is split over objects; its pieces are joined in the last one's place.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def __call__(self, block: bytes) -> bytes:
        return b"".join(self._line(line) for line in block.splitlines(keepends=True))

    def _line(self, line: bytes) -> bytes:
        try:
            text = json.loads(line)["log"].encode("utf-8", "replace")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return line if line.endswith(b"\n") else line + b"\n"
        self._pieces.append(text)
        self._length += len(text)
        if not text.endswith(b"\n") and self._length <= LONGEST_LINE:
            return b"\n"
        text = b"".join(self._pieces)
        self._pieces, self._length = [], 0
        return text.rstrip(b"\r\n").replace(b"\n", b" ") + b"\n"


class OneObjectALine:
    """JSON objects that are spread over lines (log4j2's JSON layout), or that are in an array: each
    in one line, with the line ends that it had behind it."""

    _MARKS = re.compile(rb'\\.|["{}\n]')

    def __init__(self) -> None:
        self._pending = b""
        self._depth = 0
        self._quoted = False

    def __call__(self, block: bytes) -> bytes:
        done: list[bytes] = []
        start, lines = 0, 0
        text = self._pending + block
        for mark in self._MARKS.finditer(text, len(self._pending)):
            sign = mark[0]
            if sign == b'"':
                self._quoted = not self._quoted
            elif sign == b"\n" and not self._depth:
                done.append(b"\n")
                start = mark.end()
            elif not self._quoted and sign == b"{":
                start = start if self._depth else mark.start()
                self._depth += 1
            elif not self._quoted and sign == b"}" and self._depth:
                self._depth -= 1
                if not self._depth:
                    whole = text[start : mark.end()]
                    lines = whole.count(b"\n")
                    done.append(whole.replace(b"\n", b" ") + b"\n" * lines)
                    start = mark.end()
        self._pending = text[start:] if self._depth else b""
        if len(self._pending) > LONGEST_LINE:
            self._pending, self._depth, self._quoted = b"", 0, False
        result = b"".join(done)
        return result if result.endswith(b"\n") or not result else result + b"\n"


def unwrapping(wrapper: re.Pattern[bytes]) -> Transform:
    return lambda block: wrapper.sub(b"", block)


def dating_lines(wrapper: re.Pattern[bytes], year: int | None) -> Transform:
    """For messages that carry no date of their own: the wrapper's becomes theirs."""

    def dated(match: re.Match[bytes]) -> bytes:
        if not _STARTS_WITH_LEVEL.match(match.string, match.end()):
            return b""
        groups = match.groupdict()
        if groups.get("iso"):
            return b"[" + match["iso"] + b"] "
        month, day, time = match["syslog"].split()
        if year is None or month not in _MONTHS:
            return b"[" + time + b"] "
        date = f"{year:04d}-{_MONTHS.index(month) + 1:02d}-{int(day):02d} "
        return b"[" + date.encode() + time + b"] "

    return lambda block: wrapper.sub(dated, block)


def is_docker_json(line: bytes) -> bool:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and isinstance(fields.get("log"), str)


def wrapper_of(lines: list[bytes]) -> tuple[re.Pattern[bytes] | None, str]:
    """The wrapper behind which most lines begin as log lines do; none where lines begin bare."""
    # As `_ANYTHING_BEFORE`, which looks at every place.
    end = 1 + _MOST_BEFORE + _LONGEST_HEADER
    behind = bare = 0
    if _HEADER_WITHIN.search(b"\n".join(lines)):
        found = (_LATER_HEADER.search(line, 1, end) for line in lines)
        behind = sum(match is not None and match.start() <= _MOST_BEFORE for match in found)
    for line in lines:
        bare += HEADER.match(line) is not None
        if bare > behind:
            return None, ""
    best: tuple[int, re.Pattern[bytes] | None, str] = (0, None, "")
    for wrapper in _WRAPPERS:
        inside = dateless = 0
        for line in lines:
            match = wrapper.match(line)
            if match and HEADER.match(line, match.end()):
                inside += 1
            elif match and match.groupdict() and _STARTS_WITH_LEVEL.match(line, match.end()):
                dateless += 1
        if inside > best[0]:
            best = (inside, wrapper, "unwrapping")
        if dateless > best[0]:
            best = (dateless, wrapper, "dating")
    if behind > best[0] or bare:
        return _ANYTHING_BEFORE, "unwrapping"
    return best[1], best[2]
