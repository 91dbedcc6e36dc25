"""The scenario language as text: a file into stanzas of commands, with the place of each mistake.

A file is prose (`#` lines) and stanzas, parted by blank lines. A stanza is one or more commands, a
line of four dashes, and the expected output. A command is a word, its arguments, and settings as
`key=value` (lists with commas, no blanks). `given` is followed by the lines of a picture. What the
commands mean is scenario.py's; COMMANDS says which there are.

Words that do not explain themselves: `drain` is a controlled shutdown, `depose` puts another broker
in the controller's place, `deliver late=N` tells a broker the registration as it was N changes ago,
`propose` sends the controller an AlterPartition (with ZooKeeper: writes the ISR) as it is written,
`fetch request=delayed` is on its way until `arrive`, `latest` asks a leader for ListOffsets,
`compact` takes away what a replica's log cleaner removed (in a topic given with cleanup=compact),
`upgrade controller` gives the controller another release or the cluster another inter-broker
version, `with=` tries a remedy that no release holds (replication/protocol/ground/boundaries.py),
`recreate` deletes the topic and creates it again, with another topic id and empty logs, `stop
directory=deleted` is a clean stop after which somebody deletes the partition's directory.
"""

import re
from dataclasses import dataclass, field

DIVIDER = "----"


class ScenarioError(ValueError):
    """A mistake in a scenario file, with its line and column (both from 1)."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Form:
    """How a command is written. settings: key to kind (number, word, list, version)."""

    usage: str
    least: int
    most: int
    settings: dict[str, str] = field(default_factory=dict)


_PLACE = {"kafka": "version", "inter_broker": "version", "elr": "switch", "with": "word"}
COMMANDS: dict[str, Form] = {
    "given": Form(
        "given isr=A,B kafka=VERSION [min_insync_replicas=N] [unclean=yes|no] [inter_broker=V] "
        "[controller=zookeeper|kraft] [elr=on|off] [isr_changes=wait] [versions=A:V,B:V] "
        "[assigned=A,B] [cleanup=compact|delete] [with=REMEDY]",
        0,
        0,
        {
            **_PLACE,
            "isr": "list",
            "min_insync_replicas": "number",
            "unclean": "switch",
            "controller": "word",
            "isr_changes": "word",
            "versions": "list",
            "assigned": "list",
            "cleanup": "word",
        },
    ),
    "produce": Form(
        "produce BROKER RECORD[*COUNT] [acks=0|1|N|all] [producer=P] [producer_epoch=N] "
        "[sequence=N] [transaction=T]",
        2,
        2,
        {
            "acks": "word",
            "producer": "word",
            "producer_epoch": "number",
            "sequence": "number",
            "transaction": "word",
        },
    ),
    "end": Form("end BROKER TRANSACTION outcome=commit|abort", 2, 2, {"outcome": "word"}),
    "consume": Form(
        "consume BROKER offset=N [isolation=read_committed] [last_epoch=N] [near=B]",
        1,
        1,
        {"offset": "number", "isolation": "word", "last_epoch": "number", "near": "word"},
    ),
    "latest": Form("latest BROKER", 1, 1),
    "compact": Form("compact BROKER offsets=N,N", 1, 1, {"offsets": "list"}),
    "delete_records": Form("delete_records [before=N]", 0, 0, {"before": "number"}),
    "fetch": Form(
        "fetch BROKER [offset=N] [max=N] [response=lost|delayed] [at_once=yes] [request=delayed]",
        1,
        1,
        {
            "offset": "number",
            "max": "number",
            "response": "word",
            "at_once": "switch",
            "request": "word",
        },
    ),
    "arrive": Form("arrive BROKER", 1, 1),
    "receive": Form("receive BROKER", 1, 1),
    "truncate": Form("truncate BROKER", 1, 1),
    "stop": Form("stop BROKER [directory=deleted]", 1, 1, {"directory": "word"}),
    "crash": Form(
        "crash BROKER kind=process|power|disk [to=N] [checkpoint=N] [epochs=lost]",
        1,
        1,
        {"kind": "word", "to": "number", "checkpoint": "number", "epochs": "word"},
    ),
    "start": Form("start BROKER [deliver=no]", 1, 1, {"deliver": "switch"}),
    "restart": Form(
        "restart BROKER [kind=clean|process|power|disk] [to=N] [checkpoint=N] [deliver=no]",
        1,
        1,
        {"kind": "word", "to": "number", "checkpoint": "number", "deliver": "switch"},
    ),
    "checkpoint": Form("checkpoint BROKER", 1, 1),
    "isolate": Form("isolate BROKER", 1, 1),
    "rejoin": Form("rejoin BROKER", 1, 1),
    "upgrade": Form(
        "upgrade BROKER kafka=VERSION [inter_broker=V], "
        "or upgrade controller kafka=VERSION [inter_broker=V] [elr=on|off]",
        1,
        1,
        _PLACE,
    ),
    "tick": Form("tick ms=N", 0, 0, {"ms": "number"}),
    "elect": Form(
        "elect BROKER [epoch=N] [isr=A,B] [deliver=A,B], or elect [cause=preferred|unclean]",
        0,
        1,
        {"epoch": "number", "isr": "list", "deliver": "list", "cause": "word"},
    ),
    "rebalance": Form("rebalance [percentage=N]", 0, 0, {"percentage": "number"}),
    "reassign": Form("reassign to=A,B [deliver=A,B]", 0, 0, {"to": "list", "deliver": "list"}),
    "recreate": Form("recreate", 0, 0),
    "fence": Form("fence BROKER", 1, 1),
    "unfence": Form("unfence BROKER", 1, 1),
    "drain": Form("drain BROKER", 1, 1),
    "depose": Form("depose", 0, 0),
    "deliver": Form("deliver BROKER [late=N]", 1, 1, {"late": "number"}),
    "propose": Form(
        "propose BROKER isr=A,B [epoch=N] [partition_epoch=N] [recovering=yes]",
        1,
        1,
        {"isr": "list", "epoch": "number", "partition_epoch": "number", "recovering": "switch"},
    ),
    "isr": Form(
        "isr [remove=A] [add=B], isr check, isr commit, or isr refuse [error=CODE]",
        0,
        1,
        {"remove": "list", "add": "list", "error": "word"},
    ),
    "controller": Form("controller", 0, 0),
    "caches": Form("caches", 0, 0),
    "check": Form("check [all | INVARIANT]", 0, 1),
    "mark": Form("mark", 0, 0),
    "rewind": Form(
        "rewind kafka=VERSION [inter_broker=VERSION] [elr=on|off] [with=REMEDY]", 0, 0, _PLACE
    ),
    "replay": Form(
        "replay kafka=VERSION [inter_broker=VERSION] [elr=on|off] [with=REMEDY]", 0, 0, _PLACE
    ),
}


@dataclass(frozen=True, slots=True)
class Word:
    """One token and its column (from 1)."""

    text: str
    column: int


@dataclass(slots=True)
class Command:
    """One command. lines: what follows `given`, each with its line number."""

    name: str
    arguments: list[Word]
    settings: dict[str, Word]
    line: int
    lines: list[tuple[int, str]] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join([self.name, *(a.text for a in self.arguments)])

    def error(self, message: str, word: Word | None = None) -> ScenarioError:
        """A mistake in this command, at a word of it or at its start."""
        return ScenarioError(self.line, word.column if word else 1, message)

    def number(self, key: str) -> int | None:
        """A setting as a number; its form was checked when the file was read."""
        return int(self.settings[key].text) if key in self.settings else None

    def text(self, key: str) -> str | None:
        """A setting as text."""
        return self.settings[key].text if key in self.settings else None

    def switch(self, key: str) -> bool | None:
        """A setting that is yes, no, on or off."""
        return None if key not in self.settings else self.settings[key].text in ("yes", "on")


@dataclass(slots=True)
class Stanza:
    """Commands and the output the file expects. source: the lines up to the divider, as written."""

    commands: list[Command]
    source: list[str]
    expected: list[str]


def parse(text: str) -> list[Stanza | list[str]]:
    """A file as stanzas and runs of other lines (prose and blanks), in order.

    Raises ScenarioError at the first mistake.
    """
    parts: list[Stanza | list[str]] = []
    lines = text.split("\n")
    position = 0
    while position < len(lines):
        end = position
        while end < len(lines) and lines[end].strip():
            end += 1
        block = lines[position:end]
        if any(not line.startswith("#") for line in block):
            parts.append(_stanza(block, position + 1))
        elif block:
            parts.append(block)
        if end < len(lines):
            parts.append([""])
        position = end + 1
    return parts


def render(parts: list[Stanza | list[str]]) -> str:
    """The file again, with whatever outputs its stanzas hold now."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Stanza):
            lines += [*part.source, DIVIDER, *part.expected]
        else:
            lines += part
    return "\n".join(lines).rstrip("\n") + "\n"


def _stanza(block: list[str], first_line: int) -> Stanza:
    if DIVIDER not in block:
        raise ScenarioError(
            first_line + len(block), 1, f"expected {DIVIDER} and the output after the commands"
        )
    divider = block.index(DIVIDER)
    commands: list[Command] = []
    for number, line in enumerate(block[:divider], first_line):
        if line.startswith("#"):
            continue
        picture = commands and commands[-1].name == "given" and _starts_row(line)
        if picture:
            commands[-1].lines.append((number, line))
        else:
            commands.append(parse_command(line, number))
    if not commands:
        raise ScenarioError(first_line + divider, 1, "expected a command before the divider")
    return Stanza(commands, block[:divider], block[divider + 1 :])


def _starts_row(line: str) -> bool:
    """Whether a line after `given` is a row of its picture: its second word is an epoch."""
    words = line.split()
    return len(words) > 1 and bool(re.fullmatch(r"e(\d+|-)?\S*", words[1])) and "=" not in line


def parse_command(line: str, number: int) -> Command:
    """One line as a command; ScenarioError where it is none."""
    words = [Word(m[0], m.start() + 1) for m in re.finditer(r"\S+", line)]
    name = words[0]
    form = COMMANDS.get(name.text)
    if form is None:
        known = ", ".join(COMMANDS)
        raise ScenarioError(
            number, name.column, f"unknown command {name.text!r}, expected one of {known}"
        )
    arguments: list[Word] = []
    settings: dict[str, Word] = {}
    for word in words[1:]:
        key, equals, value = word.text.partition("=")
        if not equals:
            arguments.append(word)
            continue
        _check_setting(form, key, value, word, number)
        if key in settings:
            raise ScenarioError(number, word.column, f"{key} is set twice")
        settings[key] = Word(value, word.column + len(key) + 1)
    if not form.least <= len(arguments) <= form.most:
        at = arguments[form.most].column if len(arguments) > form.most else len(line) + 1
        raise ScenarioError(number, at, f"expected {form.usage}")
    return Command(name.text, arguments, settings, number)


def _check_setting(form: Form, key: str, value: str, word: Word, number: int) -> None:
    kind = form.settings.get(key)
    if kind is None:
        raise ScenarioError(number, word.column, f"unknown setting {key!r}, expected {form.usage}")
    at = word.column + len(key) + 1
    if kind == "number" and not re.fullmatch(r"\d+", value, re.ASCII):
        raise ScenarioError(number, at, f"{key} must be a number, found {value!r}")
    if kind == "switch" and value not in ("yes", "no", "on", "off"):
        raise ScenarioError(number, at, f"{key} must be yes or no, found {value!r}")
    if not value and kind != "list":
        raise ScenarioError(number, at, f"{key} needs a value")
