"""The layouts that broker logs come in, and which one a file has."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from io import BytesIO
from pathlib import Path

from replication.evidence.broker_logs.json_lines import json_line_fields
from replication.evidence.broker_logs.line_headers import HEADER, HEADER_BEGINS
from replication.evidence.broker_logs.line_wrappers import (
    COLOURS,
    DockerJson,
    OneObjectALine,
    Transform,
    dating_lines,
    is_docker_json,
    unwrapping,
    wrapper_of,
)
from replication.evidence.broker_logs.loggers_in_lines import (
    BROKERS_PREFIX,
    BROKERS_PREFIX_BYTES,
    LOGGER_FIRST,
    TRAILING_LOGGER,
    behind_what_layouts_print,
    is_shortened,
    trailing_logger,
)
from replication.evidence.broker_logs.wrapped_lines import WholeLines, whole_lines
from replication.evidence.opening import (
    READ_ERRORS,
    is_no_text,
    open_unpacked,
    read_up_to,
    without_holes,
)

SAMPLE = 1 << 18
_SAMPLE_LINES = 600
_MOSTLY_ENOUGH = (1 << 17, None)

# Where three quarters of so many lines are in one form, most of the others are.
_FEW = 64
_FORMS = ("brackets", "logger_first", "no_logger")
_BROKER_LOGGER = re.compile(
    r"^(?:state\.change\.logger|kafka\.(?!examples|javaapi|consumer|producer|mirrormaker|etl)[\w.$]+"
    r"|org\.apache\.kafka\.(?:controller|server|storage|image|raft|metadata|coordinator|network|queue)"
    r"\.[\w.$]+)$"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file's lines are laid out: `form` and what is taken off each block before."""

    form: str  # "brackets", "logger_first", "no_logger", "json"
    transforms: tuple[str, ...]
    wrapper: re.Pattern[bytes] | None = None
    widths: tuple[int, int] = (0, 0)
    anywhere: bool = False

    @property
    def is_broken(self) -> bool:
        """Whether its lines were broken at a width."""
        return "broken" in self.transforms

    def transform(self, year: int | None) -> Transform | None:
        chain: list[Transform] = []
        for name in self.transforms:
            if name == "docker":
                chain.append(DockerJson())
            elif name == "objects":
                chain.append(OneObjectALine())
            elif name == "colours":
                chain.append(lambda block: COLOURS.sub(b"", block))
            elif name == "broken":
                chain.append(WholeLines(self.widths, anywhere=self.anywhere))
            elif self.wrapper is not None and name == "dating":
                chain.append(dating_lines(self.wrapper, year))
            elif self.wrapper is not None:
                chain.append(unwrapping(self.wrapper))
        if not chain:
            return None
        return lambda block: reduce(lambda text, change: change(text), chain, block)


# One file is asked for its layout several times in a row. Comparing its beginning takes a tenth of
# the time that a hash of it takes.
_last: tuple[bytes, Layout | None] = (b"", None)


def detect_layout(sample: bytes) -> Layout | None:
    """The layout of a file that begins with `sample`; None where no line looks like a log line."""
    global _last
    if sample != _last[0]:
        _last = (sample, _layout_of(sample))
    return _last[1]


def _layout_of(sample: bytes) -> Layout | None:
    transforms: tuple[str, ...] = ()
    if COLOURS.search(sample):
        sample, transforms = COLOURS.sub(b"", sample), ("colours",)
    lines = _first_lines(sample)
    if (lines and lines[0].lstrip().startswith((b"{", b"[{"))) or lines[:1] == [b"["]:
        if not is_docker_json(lines[0]):
            if any(map(json_line_fields, lines[:50])):
                return Layout("json", transforms)
            objects = OneObjectALine()(sample).splitlines()
            spread = any(map(json_line_fields, [line for line in objects if line][:50]))
            return Layout("json", (*transforms, "objects")) if spread else None
        transforms = (*transforms, "docker")
        lines = DockerJson()(b"\n".join(lines) + b"\n").splitlines()
    wrapper, taken_off = wrapper_of(lines)
    if wrapper is not None:
        transforms = (*transforms, taken_off)
        strip = dating_lines(wrapper, None) if taken_off == "dating" else unwrapping(wrapper)
        lines = strip(b"\n".join(lines) + b"\n").splitlines()
    whole = whole_lines(lines)
    how = (whole.widths, whole.anywhere) if whole is not None else ()
    if whole is not None:
        transforms = (*transforms, "broken")
        lines = whole(b"\n".join(lines) + b"\n").splitlines()
    form = _form_of(lines)
    return None if form is None else Layout(form, transforms, wrapper, *how)


def _first_lines(sample: bytes) -> list[bytes]:
    """The first lines that are not blank."""
    for size in _MOSTLY_ENOUGH:
        lines = [line for line in sample[:size].splitlines() if line.strip()]
        # The last one of a part goes on.
        if len(lines) > _SAMPLE_LINES:
            break
    return lines[:_SAMPLE_LINES]


def _form_of(lines: list[bytes]) -> str | None:
    """Which of the forms most lines with a header are in."""
    # A header begins like this; beneath a line there are often a hundred of a stack.
    begun = [line for line in lines if line[:1] in HEADER_BEGINS]
    counts = _forms(begun[:: max(1, len(begun) // _FEW)])
    if not counts or max(counts.values()) * 4 < counts.total() * 3:
        counts = _forms(begun)
    if not counts:
        # A settings dump may fill the whole sample; its last line names the logger.
        return "brackets" if any(TRAILING_LOGGER.search(line) for line in lines) else None
    return max(_FORMS, key=lambda form: counts[form])


def _forms(lines: list[bytes]) -> Counter[str]:
    """How many lines with a header are in each form."""
    counts: Counter[str] = Counter()
    for line in lines:
        header = HEADER.match(line)
        if header is None:
            continue
        trailing = trailing_logger(line, header.end())
        if trailing is not None and _is_whole(trailing, line, header.end()):
            counts["brackets"] += 1
        elif (leading := LOGGER_FIRST.match(line, header.end())) and b"." in leading["logger"]:
            counts["logger_first"] += 1
        else:
            counts["no_logger"] += 1
    return counts


def stamps_name_zone(path: Path) -> bool:
    """Whether the file's time stamps say which zone they are in; Kafka's own layout does not."""
    try:
        with open_unpacked(path) as stream:
            sample = read_up_to(stream, SAMPLE)
    except READ_ERRORS:
        return False
    layout = detect_layout(sample)
    if layout is None:
        return False
    transform = layout.transform(None)
    for line in BytesIO(transform(sample) if transform else sample):
        fields = json_line_fields(line) if layout.form == "json" else None
        if fields is not None and fields[1] is not None:
            text = fields[2] if isinstance(fields[2], str) else ""
            return not text or text.isdecimal() or _names_zone(text.encode() + b" INFO ")
        header = line if fields is None else fields[0].encode("utf-8", "replace")
        if HEADER.match(header):
            return _names_zone(header)
    return False


def _names_zone(header: bytes) -> bool:
    found = HEADER.match(header)
    return found is not None and found["zone"] is not None


def looks_like_broker_log(path: Path) -> bool:
    """Whether the beginning of the file holds lines of a broker's or controller's loggers."""
    try:
        with open_unpacked(path) as stream:
            sample = read_up_to(stream, SAMPLE)
    except READ_ERRORS:
        return False
    if is_no_text(sample):
        return False
    sample = without_holes(sample)
    layout = detect_layout(sample)
    if layout is None:
        return False
    transform = layout.transform(None)
    if transform:
        sample = transform(sample if sample.endswith(b"\n") else sample + b"\n")
    if layout.form == "json":
        return any(_is_broker_line(line, "json") for line in BytesIO(sample))
    return any(_is_broker_line(line, layout.form) for line in _may_be_brokers(sample))


def _may_be_brokers(text: bytes) -> Iterator[bytes]:
    """The lines that may have what `_is_broker_line` asks for: a broker's logger, or a prefix."""
    prefixed = BROKERS_PREFIX_BYTES.search(text) is not None
    for line in BytesIO(text):
        if b"kafka." in line or b"state.change.logger" in line:
            logger = trailing_logger(line.rstrip(), 0)
            if logger is None or _kind_of_name(logger)[0]:
                yield line
                continue
        if prefixed and BROKERS_PREFIX_BYTES.search(line):
            yield line


def _is_broker_line(line: bytes, form: str) -> bool:
    if form == "json":
        fields = json_line_fields(line)
        if fields is None:
            return False
        if fields.logger is None and HEADER.match(fields.message.encode("utf-8", "replace")):
            return _is_broker_line(fields.message.encode("utf-8", "replace"), "brackets")
        return _is_brokers(fields.logger, fields.message)
    header = HEADER.match(line)
    trailing = TRAILING_LOGGER.search(line)
    if header is None:
        # The last line of a message of several lines has no header.
        return bool(form == "brackets" and trailing and _is_brokers(_name(trailing), ""))
    if trailing:
        message = line[header.end() : trailing.start()]
        return _is_brokers(_name(trailing), message.decode("utf-8", "replace"))
    leading = LOGGER_FIRST.match(line, header.end())
    if leading and b"." in leading["logger"] and _BROKER_LOGGER.match(_name(leading)):
        return True
    begin, logger = behind_what_layouts_print(line, header.end(), BROKERS_PREFIX_BYTES)
    return _is_brokers(logger, line[begin:].decode("utf-8", "replace"))


def _is_whole(logger: bytes, line: bytes, begin: int) -> bool:
    """Whether a logger's name is printed whole, Kafka's or of another program."""
    of_broker, whole = _kind_of_name(logger)
    return of_broker or (whole and not BROKERS_PREFIX_BYTES.match(line, begin))


@lru_cache(maxsize=1 << 10)
def _kind_of_name(logger: bytes) -> tuple[bool, bool]:
    """Whether a logger is a broker's, and whether its name is whole, whosever it is."""
    name = logger.decode("utf-8", "replace")
    return _BROKER_LOGGER.match(name) is not None, "." in name and not is_shortened(name)


def _name(found: re.Match[bytes]) -> str:
    return found["logger"].decode("utf-8", "replace")


def _is_brokers(logger: str | None, message: str) -> bool:
    """Whether the logger is one of a broker's, or may be one and the message begins as theirs."""
    if logger is not None and _BROKER_LOGGER.match(logger):
        return True
    return BROKERS_PREFIX.match(message) is not None
