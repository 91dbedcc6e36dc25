"""The format of conf/expectations/, what it refuses, and the words of an outcome."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from replication.paths import project_root
from replication.protocol.judgement.judge import INVARIANTS
from replication.quality import checks, suites
from replication.quality.checks import Result
from replication.quality.row_words import row_words
from replication.quality.suites import Expectation, SuiteError
from replication.spark import contracts, views

SHIPPED = project_root() / "conf" / "expectations"
GOOD = """
about = "a table"
[[expectation]]
name = "no_negative"
family = "integrity"
severity = "critical"
meaning = "Nothing is negative."
kind = "rows"
where = "x < 0"
"""


def test_every_table_has_a_suite_and_every_suite_a_table() -> None:
    stored = {t.name for t in contracts.tables().values() if t.is_of_jobs}
    loaded = suites.load(SHIPPED)
    assert {s.table for s in loaded} == stored - {"_refolds", "expectation_results"}
    assert {e.family for s in loaded for e in s.expectations} == set(suites.FAMILIES)
    for suite in loaded:
        assert suite.reads() <= {*contracts.tables(), views.OTHERS}


def test_the_list_of_invariants_is_that_of_the_protocol() -> None:
    verdicts = next(s for s in suites.load(SHIPPED) if s.table == "verdicts")
    listing = next(e for e in verdicts.expectations if e.name == "every_invariant_is_judged")
    for module in INVARIANTS:
        assert f"'{module.__name__.rsplit('.', 1)[1]}'" in listing.sql


@pytest.mark.parametrize(
    ("table", "array", "never"),
    [("loss_ledger", "losses", set()), ("at_risk", "at_risk", {"unknown"})],
)
def test_the_causes_are_those_of_the_answer(table: str, array: str, never: set[str]) -> None:
    schema = json.loads((project_root() / "docs" / "answer.schema.json").read_text())
    causes = schema["properties"][array]["items"]["properties"]["cause"]["enum"]
    suite = next(s for s in suites.load(SHIPPED) if s.table == table)
    words = next(e for e in suite.expectations if e.name == "words_are_known").where
    assert {c for c in causes if f"'{c}'" not in words} == never


def test_no_query_indexes_an_array_that_may_be_empty() -> None:
    """arr[n] beyond the end is an error in ANSI SQL and ends the job; get(arr, n) is null."""
    files = [*SHIPPED.glob("*.toml"), *(project_root() / "schemas").glob("*.json")]
    assert len(files) > 20
    found = [f"{f.name}: {m[0]}" for f in files for m in re.finditer(r"\w\[\d+\]", f.read_text())]
    assert found == []


def test_one_suite_may_be_chosen_by_name() -> None:
    always, chosen = suites.load(SHIPPED, ("verdicts",))
    assert chosen == next(s for s in suites.load(SHIPPED) if s.table == "verdicts")
    assert [e.name for e in always.expectations] == ["nobody_else_has_written"]
    with pytest.raises(SuiteError, match="no suite nonsense"):
        suites.load(SHIPPED, ("nonsense",))


def test_own_expectations_join_ours(tmp_path: Path) -> None:
    ours, own = tmp_path / "ours", tmp_path / "own"
    for folder in (ours, own):
        folder.mkdir()
    (ours / "t.toml").write_text(GOOD)
    (own / "t.toml").write_text(GOOD.replace("no_negative", "no_large"))
    (own / "u.toml").write_text(GOOD)
    joined = suites.load(ours, (), own)
    assert [(s.table, [(e.name, e.where) for e in s.expectations]) for s in joined] == [
        ("t", [("no_negative", "x < 0"), ("no_large", "x < 0")]),
        ("u", [("no_negative", "x < 0")]),
    ]
    assert [s.table for s in suites.load(ours, ("u",), own)] == ["u"]
    with pytest.raises(SuiteError, match="no suite tt"):
        suites.load(ours, ("tt",), own)
    shipped = suites.load(SHIPPED)
    assert len(suites.load(SHIPPED, (), own)) == len(shipped) + 2


def test_an_own_expectation_takes_the_place_of_none_of_ours(tmp_path: Path) -> None:
    for suite in suites.load(SHIPPED):
        for name in (e.name for e in suite.expectations):
            file = tmp_path / f"{suite.table}.toml"
            milder = GOOD.replace("no_negative", name).replace("critical", "warning")
            file.write_text(milder)
            with pytest.raises(SuiteError, match=f"{file}: .* is called '{name}' too"):
                suites.load(SHIPPED, (), tmp_path)
            file.unlink()
            (tmp_path / "own.toml").write_text(milder)
            assert len(suites.load(SHIPPED, (), tmp_path)) == len(suites.load(SHIPPED)) + 1


def test_a_misspelt_table_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "verdict.toml").write_text(GOOD)
    suite = suites.suite_of(tmp_path / "verdict.toml")
    with pytest.raises(SuiteError, match=r"asks for verdict: .*\(did you mean verdicts\?\)"):
        suites.check_names(suite, ["verdicts", "findings"])
    suites.check_names(suite, ["verdict"])


def test_a_good_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(GOOD)
    suite = suites.suite_of(tmp_path / "t.toml")
    assert suite.table == "t"
    assert suite.expectations[0].where == "x < 0"


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('family = "integrity"', 'family = "looks"', "family 'looks' is none of"),
        ('severity = "critical"', 'severity = "fatal"', "severity 'fatal' is none of"),
        ('kind = "rows"', 'kind = "vibes"', "kind 'vibes' is none of"),
        ('kind = "rows"', 'kind = "row"', "(did you mean rows?)"),
        ('kind = "rows"', "", "lacks kind: one of unique, rows"),
        ('where = "x < 0"', "", "lacks where"),
        ('where = "x < 0"', 'sql = "SELECT 1"', "unknown key sql"),
        ("where =", "were =", "unknown key were (did you mean where?)"),
        ("[[expectation]]", "[[expectations]]", "(did you mean expectation?)"),
        ("[[expectation]]", "[expectation]", "in two pairs of brackets"),
        ('where = "x < 0"', 'where = "x < 0"\nallowed = "y"', "is written [[expectation.allowed]]"),
        ('where = "x < 0"', 'where = "x < 0', 'at line 9, column 15): where = "x < 0'),
        ('where = "x < 0"', 'where = "x < 0"\ncolour = "red"', "unknown key colour"),
        ('where = "x < 0"', "where = 3", "where is a text in quotes, not 3"),
        ('name = "no_negative"', 'name = "No Negative"', "a name is lower case"),
        ('about = "a table"', "", "needs about"),
        ('about = "a table"', "about = ", "t.toml is no TOML: "),
        ('about = "a table"', 'about = "a"\nowner = "me"', "unknown key owner"),
        (
            'where = "x < 0"',
            'where = "x < 0"\n[[expectation.allowed]]\nwhere = "y"',
            "an allowed deviation: lacks reason",
        ),
    ],
)
def test_a_bad_file_is_refused_with_its_place(
    tmp_path: Path, before: str, after: str, says: str
) -> None:
    assert before in GOOD
    (tmp_path / "t.toml").write_text(GOOD.replace(before, after))
    with pytest.raises(SuiteError, match=r"t\.toml") as refused:
        suites.load(tmp_path)
    assert says in str(refused.value)


def test_two_expectations_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(GOOD + GOOD.split("\n", 2)[2])
    with pytest.raises(SuiteError, match="two expectations are called 'no_negative'"):
        suites.load(tmp_path)


def test_no_file_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="no expectations in"):
        suites.load(tmp_path)


def outcome(severity: str, failing: int, **row: Any) -> Result:
    expectation = Expectation("e", "health", severity, "It is so.", "query", sql="SELECT 1")
    empty: dict[str, Any] = dict.fromkeys(
        ("topic_partition_id", "cluster_id", "incident", "topic", "partition", "replicas",
         "first_offset", "end_offset", "finding_id", "detail", "observed")
    )  # fmt: skip
    return Result("verdicts", expectation, failing, 0, float(failing), ({**empty, **row},))


def test_only_a_failed_critical_expectation_makes_status_1() -> None:
    assert checks.exit_status([outcome("critical", 0), outcome("warning", 2)]) == 0
    assert checks.exit_status([outcome("critical", 1)]) == 1


def test_the_worst_comes_first_and_offsets_are_told_inclusively() -> None:
    said = checks.text(
        [
            outcome("warning", 1, detail="a"),
            outcome("critical", 7, topic="t", partition=0, first_offset=20, end_offset=30),
        ]
    ).splitlines()
    assert said[0] == "FAILED  critical  verdicts.e: 7 rows"
    assert said[2] == "        - t-0 offsets 20..29"
    assert said[3] == "        - and 2 more"
    assert said[-1] == "0 of 2 expectations passed, 2 failed"


def test_hostile_names_cannot_steer_a_terminal() -> None:
    row = outcome("critical", 1, topic="\x1b[2Jt", partition=0, detail="a\nb\x07").rows[0]
    words = row_words(row)
    assert words == "\\x1b[2Jt-0: a\\nb\\x07"
