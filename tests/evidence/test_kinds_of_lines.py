"""Every kind of line that is read changes an answer, or says whose a file is."""

import re
from pathlib import Path

import pytest

from replication.evidence.broker_logs.line_families import FAMILIES
from replication.evidence.broker_logs.line_families.family import LineFamily
from replication.evidence.broker_logs.telling_lines import TELLING_KINDS, _tells
from replication.evidence.collecting.collection import read_file
from replication.reports import line_words
from tests.evidence.joining.lines import line

ROOT = Path(__file__).parents[2] / "replication"
FOLDER = ROOT / "evidence/broker_logs/line_families"
KINDS = sorted({family.kind for family in FAMILIES if family.kind})
CODE = "".join(p.read_text() for p in ROOT.rglob("*.py") if FOLDER not in p.parents)
# No name of theirs stands in the code: of any line it counts who wrote it, and which leader
# epoch. These are common in logs that say nothing else.
SAY_WHO_WROTE = {"became_controller", "controller_resigned"}


def lines_of(kind: str) -> list[tuple[str, str, str]]:
    """Each example of the kind with a logger that writes it: pattern, message, logger."""
    return [
        (family.pattern, example.message, logger)
        for family in FAMILIES
        if family.kind == kind
        for example in family.examples
        if example.found
        for logger in family.loggers
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_used(kind: str) -> None:
    named = re.search(rf'"{kind}"', CODE) is not None
    assert named != (kind in SAY_WHO_WROTE), kind


@pytest.mark.parametrize("kind", sorted(SAY_WHO_WROTE))
def test_a_line_says_whose_a_file_is(kind: str, tmp_path: Path) -> None:
    for number, (_, message, logger) in enumerate(lines_of(kind)):
        path = tmp_path / f"{number}.log"
        path.write_text(f"[2026-11-20 15:17:30,518] INFO {message} ({logger})\n")
        (log,) = read_file(path).found_logs
        assert log.broker is not None
        if kind == "replica_created":
            assert [topic for _, topic, _ in log.topic_ids] == ["t"]


def tells(family: LineFamily, kind: str) -> bool:
    """Whether lines of the wording tell: some do only by what they print."""
    said = [found.fields for example in family.examples for found in example.found]
    return family.kind == kind and any(
        _tells(line(kind)._replace(fields=fields))
        and (kind != "truncation_reason" or "to_offset" in fields)
        for fields in said
    )


def test_what_tells_has_words() -> None:
    # kafka-topics tells the other one.
    assert set(line_words.KINDS) == TELLING_KINDS | {"partition_described"}


@pytest.mark.parametrize("kind", sorted(TELLING_KINDS & set(KINDS)))
def test_the_words_fit_what_the_lines_print(kind: str, tmp_path: Path) -> None:
    """Each wording that tells is read by the name of each of its loggers, and gives a sentence with
    no placeholder left in it: one that gives none lacks a field, or has it by another name."""
    told: dict[str, list[str]] = {}
    for number, (pattern, message, logger) in enumerate(lines_of(kind)):
        path = tmp_path / f"{number}.log"
        path.write_text(f"[2026-11-20 15:17:30,518] INFO {message} ({logger})\n")
        for log in read_file(path).found_logs:
            for fact in log.telling:
                row = {"kind": fact.kind, "broker": 1, "fields": fact.fields}
                told.setdefault(pattern + logger, []).append(line_words.sentence(row))
    wordings = {f.pattern + logger for f in FAMILIES if tells(f, kind) for logger in f.loggers}
    assert sorted(w for w in wordings if not any(told.get(w, ()))) == []
    assert not any("{" in text for texts in told.values() for text in texts)
