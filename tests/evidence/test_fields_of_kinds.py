"""A family names its groups as the readers of its kind ask for them, and gives what they need."""

import re
from collections import defaultdict
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from replication.evidence.broker_logs import excerpts
from replication.evidence.broker_logs.line_families import FAMILIES
from replication.evidence.broker_logs.line_families.family import LineFamily, example
from replication.evidence.broker_logs.line_families.kinds import (
    FIELDS,
    NAMES_OF_BROKERS,
    lacking,
    misnamed,
)
from replication.evidence.joining import line_steps
from replication.reports import line_words
from tests.evidence.joining.lines import line

ROOT = Path(__file__).parents[2] / "replication"
FOLDER = ROOT / "evidence/broker_logs/line_families"
OF_FAMILIES = sorted({family.kind for family in FAMILIES if family.kind})
READERS = sorted(FIELDS.keys() & (line_steps._READERS.keys() | line_words._WORDS.keys()))
# What `Telling` adds to a line's own fields.
ADDED = frozenset(("log_end_offset_before", "partitions", "refused", "repeats"))


def family(kind: str, pattern: str, message: str, **fields: Any) -> LineFamily:
    return LineFamily(kind, "4.4", ("Log",), ("Cut",), pattern, (example(message, **fields),))


def test_a_family_is_refused_that_names_a_field_as_no_reader_does() -> None:
    asked = "no reader of `truncated` asks for from_offset \\(they ask: leader, log_end_offset, to_"
    with pytest.raises(ValueError, match=asked):
        family("truncated", r"^Cut (?P<from_offset>\d+) (?P<to_offset>\d+)$", "Cut 9 7",
               from_offset=9, to_offset=7)  # fmt: skip
    family("truncated", r"^Cut (?P<log_end_offset>\d+) (?P<to_offset>\d+)$", "Cut 9 7",
           log_end_offset=9, to_offset=7)  # fmt: skip
    # An optional group that no example has, too.
    with pytest.raises(ValueError, match="asks for offset "):
        family("truncated", r"^Cut (?P<to_offset>\d+)( (?P<offset>\d+))?$", "Cut 7", to_offset=7)


def test_a_family_is_refused_that_lacks_a_field_or_whose_kind_nobody_reads() -> None:
    with pytest.raises(ValueError, match="every wording of `truncated` gives to_offset"):
        family("truncated", r"^Cut (?P<log_end_offset>\d+)$", "Cut 9", log_end_offset=9)
    with pytest.raises(ValueError, match="`cut` is no kind"):
        family("cut", r"^Cut (?P<to_offset>\d+)$", "Cut 9", to_offset=9)


@pytest.mark.parametrize("kind", sorted(FIELDS.keys() - set(OF_FAMILIES)))
def test_what_exceptions_say_is_named_so_too(kind: str) -> None:
    found = [pattern for name, pattern in excerpts._EXCEPTIONS if name == kind]
    assert found, f"no line is of the kind `{kind}`"
    for pattern in found:
        names = {name for name in pattern.groupindex if not name.startswith("tp")}
        assert misnamed(kind, names) + lacking(kind, names) == ""


class Asked(dict[str, Any]):
    """A line's fields that note who asks for what; all are there, as small numbers."""

    def __init__(self) -> None:
        self.always: set[str] = set()
        self.perhaps: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.always.add(name)
        return (1, 2) if name in ("replicas", "to_isr") else 7

    def get(self, name: str, default: Any = None) -> Any:
        self.perhaps.add(name)
        if name in NAMES_OF_BROKERS and not name.startswith(("leader", "previous", "replica")):
            return (1, 2)
        return None if name == "reason" else 7

    def __contains__(self, name: object) -> bool:
        self.perhaps.add(str(name))
        return False


def asked(kind: str) -> Asked:
    """What the step that a line is, and the sentence that it makes, ask of its fields."""
    fields = Asked()
    if kind in line_words._SIMPLE:
        names = {name for _, name, _, _ in Formatter().parse(line_words._SIMPLE[kind])}
        fields.always |= {name for name in names if name} - {"who"}
    elif kind in line_words._WORDS:
        line_words._WORDS[kind]("broker 1", fields)
    if kind in line_steps._READERS:
        role = line_steps._Role(True, True, "leader_epoch")
        line_steps._READERS[kind](1, line(kind)._replace(fields=fields), role)
    return fields


@pytest.mark.parametrize("kind", READERS)
def test_readers_ask_for_what_the_table_says(kind: str) -> None:
    fields, known = asked(kind), FIELDS[kind]
    everything = (fields.always | fields.perhaps) - ADDED
    assert everything <= known.needs | known.uses, kind
    surely = fields.always - fields.perhaps - ADDED
    assert surely <= known.needs, f"`{kind}`: without these its reader fails"


def test_what_the_table_says_is_asked_for_is() -> None:
    """Each name stands in the code that joins and tells, or in a sentence."""
    code = "".join(p.read_text() for p in ROOT.rglob("*.py") if FOLDER not in p.parents)
    words = set(re.findall(r'"(\w+)"', code)) | set(re.findall(r"\{(\w+)\}", code))
    names: dict[str, set[str]] = defaultdict(set)
    for kind, known in FIELDS.items():
        for name in known.needs | known.uses:
            names[name].add(kind)
    assert {name: kinds for name, kinds in names.items() if name not in words} == {}
