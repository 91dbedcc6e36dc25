"""The style checks themselves: each finds what it is for, and lets pass what is allowed."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.style import house_rules

PADDING = "\n    x = 1"


def found(check: Callable[[ast.Module], Iterator[str]], text: str) -> list[str]:
    return list(check(ast.parse(text)))


def test_length_counts_from_def_to_the_last_line() -> None:
    assert found(house_rules.long_functions, "def f():" + PADDING * 69) == []
    assert found(house_rules.long_functions, "@d\ndef f():" + PADDING * 70) == ["2: f has 71 lines"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('"""Why."""\n', 0),
        ("# Why.\nx = 1\n", 0),
        ("x = 1\n", 1),
        ("", 1),
        ("#!/usr/bin/env python3\nx = 1\n", 1),
    ],
)
def test_first_comment(text: str, count: int) -> None:
    assert len(list(house_rules.no_first_comment(text, ast.parse(text)))) == count


@pytest.mark.parametrize(
    "text",
    [
        "leader_hw = 1",
        "def f(leo): pass",
        "class HwMark: pass",
        "self.epoch = 1",
        "for checkpoint in (): pass",
        "class A:\n    watermark: int",
        "import json as hw",
        "match x:\n    case leo: pass",
        "def min_isr(): pass",
        "_epoch = 2",
    ],
)
def test_banned_names_wherever_they_are_defined(text: str) -> None:
    assert len(list(house_rules.banned_names(ast.parse(text), in_spark=False))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "high_watermark = leader_epoch = 1",
        "show = 1",
        "x.checkpoint()",
        "f(epoch=1)",
        "replication_offset_checkpoint = 1",
    ],
)
def test_names_that_are_allowed(text: str) -> None:
    assert list(house_rules.banned_names(ast.parse(text), in_spark=False)) == []


def test_spark_may_use_its_own_words() -> None:
    assert list(house_rules.banned_names(ast.parse("checkpoint = 1"), in_spark=True)) == []
    assert list(house_rules.banned_names(ast.parse("leo = 1"), in_spark=True)) != []


@pytest.mark.parametrize(
    "text",
    [
        '"""A leader that led\n    on past it."""',
        "# The record stands at\n# offset 4.",
        'print("an election beside the ISR")',
        "x = 1  # below its mark",
        '"""Who leads cuts nothing."""',
        "# a line that told of its start",
        "f'{x} stood there'",
        "# one reign,",
    ],
)
def test_banned_phrases_in_what_people_read(text: str) -> None:
    assert len(list(house_rules.banned_phrases(house_rules.texts_of_python(text)))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "stands = led_on(mark)",
        "# A producer was told of the record; `?` stands for one that nobody saw.",
        "# the mark of a clean shutdown, the last replica standing, which broker leads once more",
    ],
)
def test_phrases_that_are_allowed(text: str) -> None:
    assert list(house_rules.banned_phrases(house_rules.texts_of_python(text))) == []


def test_imports_inside_functions() -> None:
    text = "def f():\n    import json\n    import great_expectations as gx"
    assert found(house_rules.misplaced_imports, text) == ["2: json is imported inside a function"]
    top = "import great_expectations\ndef f():\n    from great_expectations import x"
    assert len(found(house_rules.great_expectations_at_top, top)) == 1


def test_type_checking() -> None:
    assert found(house_rules.type_checking_imports, "from typing import TYPE_CHECKING") != []
    assert found(house_rules.type_checking_imports, "from typing import Any") == []


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("from replication.protocol.ground.model import X", True),
        ("import json, dataclasses", True),
        ("from replication.protocol.ground import model", True),
        ("from replication.evidence import x", False),
        ("from replication import paths", False),
        ("import pyarrow", False),
        ("import os.path", False),
        ("from time import monotonic", False),
        ("open('x')", False),
        ("datetime.now()", False),
    ],
)
def test_the_core_is_pure(text: str, clean: bool) -> None:
    assert (found(house_rules.impure_core, text) == []) == clean


def test_dead_modules() -> None:
    files = {
        "replication/__init__.py": "",
        "replication/cli.py": "from replication.protocol.folding import fold",
        "replication/protocol/__init__.py": "",
        "replication/protocol/folding/fold.py": "from replication.protocol.folding import fold",
        "replication/protocol/unused.py": "import replication.protocol.unused",
        "replication/spark/demo.py": "",
        "jobs/stream.py": "import replication.spark.ingest",
        "replication/spark/ingest.py": "",
    }
    trees = {Path(name): ast.parse(text) for name, text in files.items()}
    dead = house_rules.dead_modules(trees, {"replication.cli", "replication.spark.demo"})
    assert dead == ["replication/protocol/unused.py"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("see /wo" + "rk/main/x", True),
        ("https://py" + "pi.org/simple", True),
        ("https://repo.maven" + ".apache.org/maven2", True),
        ("http://maven.apache.org/POM/4.0.0", False),
        ("/var/lib/kafka/t-0", False),
        ("the network/disk", False),
    ],
)
def test_what_committed_files_may_not_name(text: str, named: bool) -> None:
    pattern = "|".join(house_rules.NOT_IN_COMMITTED_FILES)
    assert (re.search(pattern, text) is not None) == named
