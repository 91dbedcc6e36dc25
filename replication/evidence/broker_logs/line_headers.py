"""What comes before a broker's message, and the clock that reads its time."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

LEVELS = (b"TRACE", b"DEBUG", b"INFO", b"WARN", b"ERROR", b"FATAL")
LEVEL = rb"\[?(?:" + b"|".join(LEVELS) + rb")\]?"
HEADER_PATTERN = (
    rb"\[?(?:(?P<date>\d{4}-\d\d-\d\d)[ T])?(?P<minute>\d\d:\d\d):(?P<second>\d\d)"
    rb"(?:[,.](?P<fraction>\d{1,9}))?(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d))?\]?[ \t]+"
    rb"(?:\[(?!\d{4}-)(?P<thread>[^\]\n]*)\][ \t]+)?" + LEVEL + rb"[ \t:]+"
)
HEADER = re.compile(HEADER_PATTERN)
HEADER_BEGINS = frozenset((b"[", *(b"%d" % digit for digit in range(10))))
_KAFKAS_MINUTE = re.compile(rb"\[(\d{4}-\d\d-\d\d) (\d\d:\d\d):")
_LEVELS = frozenset(LEVELS)
_SPACES = (b"", b" ", b":")
# Threads may write lines in another order than their minutes, by less than this, ms.
_OUT_OF_ORDER = 120_000


class Clock:
    """Printed times to ms since the Unix epoch, in the zone the broker's JVM ran in."""

    def __init__(self, time_zone: tzinfo) -> None:
        self._time_zone = time_zone
        # Consecutive lines mostly share their minute.
        self._minute: tuple[bytes, bytes, bytes | None] | None = None
        self._base: int | None = None
        # The minute before, ms: an hour that a zone has twice is read by what came before.
        self._before: int | None = None
        self._kafkas_minute = b""
        self._kafkas_base: int | None = None

    def at(self, header: re.Match[bytes]) -> int | None:
        """None where the layout prints no date, or an impossible one."""
        date, minute, second, fraction, zone, _ = header.groups()
        if date is None:
            return None
        if self._minute != (date, minute, zone):
            self._minute = (date, minute, zone)
            self._base = self._milliseconds(date, minute, zone)
        if self._base is None:
            return None
        if fraction is None:
            fraction = b"000"
        elif len(fraction) != 3:
            fraction = fraction.ljust(3, b"0")[:3]
        return self._base + int(second) * 1000 + int(fraction)

    def at_kafkas(self, line: bytes) -> tuple[int | None, int]:
        """The time of a line in Kafka's own layout, and where its message begins; 0 for any other.

        Nearly every line is in this layout, and slices take a third of the time of a pattern.
        """
        moment = line[18:20] + line[21:24]
        begin = line.find(b" ", 26) + 1
        if (
            line[24:26] != b"] "
            or line[20:21] != b","
            or line[26 : begin - 1] not in _LEVELS
            or line[begin : begin + 1] in _SPACES
            or not moment.isdigit()
        ):
            return None, 0
        if line[:18] != self._kafkas_minute:
            found = _KAFKAS_MINUTE.fullmatch(line, 0, 18)
            if found is None:
                return None, 0
            self._kafkas_minute = line[:18]
            self._kafkas_base = self._milliseconds(found[1], found[2], None)
        return None if self._kafkas_base is None else self._kafkas_base + int(moment), begin

    def _milliseconds(self, date: bytes, minute: bytes, zone: bytes | None) -> int | None:
        try:
            year, month, day = map(int, date.split(b"-"))
            hour, minutes = int(minute[:2]), int(minute[3:])
            moment = datetime(
                year, month, day, hour, minutes, tzinfo=_zone(zone) or self._time_zone
            )
        except ValueError:
            return None
        at = self._in_order(moment)
        self._before = at
        return at

    def _in_order(self, moment: datetime) -> int:
        """The moment, the second one of its name where the first would be before the last line:
        when summer time ends an hour comes twice (PEP 495)."""
        first = _milliseconds(moment)
        if self._before is None or first + _OUT_OF_ORDER >= self._before:
            return first
        return max(first, _milliseconds(moment.replace(fold=1)))

    def at_text(self, text: str) -> int | None:
        """A time stamp as JSON layouts print it."""
        header = HEADER.match(text.encode() + b" INFO ")
        return None if header is None else self.at(header)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000


def _zone(text: bytes | None) -> tzinfo | None:
    if text is None:
        return None
    if text in (b"Z", b"UTC", b"GMT"):
        return UTC
    digits = text[1:].replace(b":", b"")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    if offset >= timedelta(hours=24):
        return None
    return timezone(-offset if text.startswith(b"-") else offset)
