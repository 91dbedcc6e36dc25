"""Reads conf/expectations/: one file per table, each expectation with what it means and allows."""

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from replication.nearest import did_you_mean

FAMILIES = ("integrity", "health", "evidence")
SEVERITIES = ("critical", "warning", "info")
# What each kind needs beside name, family, severity and meaning, and what it may have.
NEEDS = {
    "unique": {"columns"},
    "rows": {"where"},
    "query": {"sql"},
    "limit": {"sql", "at_most"},
    "share": {"sql", "at_most"},
}
MAY_HAVE = {"rows": {"detail"}}
COMMON = {"name", "family", "severity", "meaning", "kind"}
# What all rests on, as the checks' SQL names it.
COMMITS_OF_OTHERS = "commits_of_others"
# What an owner may choose to make critical: verdicts.toml has both.
DECIDED = "promised_records_are_decided"
NOTHING_ASSUMED = "promised_records_take_nothing_for_granted"
# A table or a documented view in SQL; {batch} is the suite's own table.
TABLE = re.compile(r"\{(\w+)\}")


class SuiteError(ValueError):
    """A file of expectations that cannot be used; the text says which, where and why."""


@dataclass(frozen=True)
class AllowedDeviation:
    """Rows that may deviate: a SQL condition over the failing row, and why it is no failure."""

    where: str
    reason: str


@dataclass(frozen=True)
class Expectation:
    """One expectation.

    kind says how sql, where, columns and at_most are meant:
      unique  no two rows agree in columns
      rows    no row of the table fulfils the condition where; detail: SQL for what is wrong
      query   sql returns no row; it names the failing rows
      limit   sql returns rows with a column observed (a double), none above at_most
      share   sql returns rows with a boolean column broken; their share is at most at_most
    """

    name: str
    family: str
    severity: str
    meaning: str
    kind: str
    sql: str = ""
    where: str = ""
    detail: str = "CAST(NULL AS STRING)"
    columns: tuple[str, ...] = ()
    at_most: float = 0.0
    allowed: tuple[AllowedDeviation, ...] = ()


@dataclass(frozen=True)
class Suite:
    """The expectations of one table."""

    table: str
    about: str
    expectations: tuple[Expectation, ...]

    def reads(self) -> set[str]:
        """The tables and views that the suite looks at, its own among them."""
        named = {n for e in self.expectations for n in TABLE.findall(e.sql)}
        return (named - {"batch"}) | {self.table}

    def sql(self) -> str:
        """All SQL of the suite, and the name of its table."""
        asked = [f"{e.sql} {e.where} {e.detail}" for e in self.expectations]
        return "\n".join([self.table, *asked])


def load(
    folder: Path, only: tuple[str, ...] = (), own: Path | None = None,
    fail_on: Collection[str] = (),
) -> list[Suite]:  # fmt: skip
    """Every suite of a folder, in the order of their names; only: the tables to take, () for all.

    own: a folder whose expectations join those. Whether somebody else has written is always asked:
    no table is right where that is so. fail_on: of DECIDED and NOTHING_ASSUMED, those that are
    critical here, and always asked too. Raises SuiteError.
    """
    files = _files(folder)
    theirs = _files(own) if own is not None else {}
    tables = sorted({*files, *theirs})
    unknown = sorted(set(only) - set(tables))
    if unknown:
        near = did_you_mean(unknown[0], tables)
        raise SuiteError(f"no suite {', '.join(unknown)}{near}: there are {', '.join(tables)}")
    found = [_joined(files.get(table), theirs.get(table)) for table in tables]
    found = [
        replace(s, expectations=tuple(_critical(e, fail_on) for e in s.expectations)) for s in found
    ]
    if not only:
        return found
    always = [replace(s, expectations=tuple(
                  e for e in s.expectations if e.name in fail_on or _asks_for_others(e)))
              for s in found if s.table not in only]  # fmt: skip
    return [s for s in always if s.expectations] + [s for s in found if s.table in only]


def not_chosen(own: Path | None, only: tuple[str, ...]) -> list[Suite]:
    """The suites of a folder of somebody's own whose tables are not among those to take: they are
    not judged, but whether they could be is looked at. Raises SuiteError."""
    if own is None or not only:
        return []
    return [suite_of(path) for table, path in _files(own).items() if table not in only]


def _critical(expectation: Expectation, chosen: Collection[str]) -> Expectation:
    return replace(expectation, severity="critical") if expectation.name in chosen else expectation


def _asks_for_others(expectation: Expectation) -> bool:
    return f"{{{COMMITS_OF_OTHERS}}}" in expectation.sql


def _files(folder: Path) -> dict[str, Path]:
    files = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    if not files:
        raise SuiteError(f"no expectations in {folder}")
    return files


def _joined(*files: Path | None) -> Suite:
    """Ours, theirs, or both as one. Raises SuiteError where one of theirs is called as one of ours:
    one of the two would be judged, and nobody would be told which."""
    first, *more = [suite_of(path) for path in files if path is not None]
    for suite in more:
        both = {e.name for e in first.expectations} & {e.name for e in suite.expectations}
        if both:
            raise SuiteError(
                f"{files[-1]}: an expectation of the tool is called {min(both)!r} too, and is "
                "judged in any case: give yours another name"
            )
        first = replace(first, expectations=first.expectations + suite.expectations)
    return first


def check_names(suite: Suite, known: Collection[str]) -> None:
    """Raises SuiteError where a suite is of, or asks for, a table or view that there is not."""
    for name in sorted(suite.reads() - set(known)):
        whose = "a suite" if name == suite.table else f"the suite of {suite.table}"
        near = did_you_mean(name, known)
        raise SuiteError(f"{whose} asks for {name}: no such table or view{near}")


def file_of(path: Path) -> dict[str, Any]:
    """What a file of TOML says. Raises SuiteError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path}: is no text in UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise SuiteError(f"{path}: {error.strerror}") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        line = f": {text.splitlines()[int(place[1]) - 1].strip()}" if place else ""
        raise SuiteError(f"{path} is no TOML: {error}{line}") from None


def suite_of(path: Path) -> Suite:
    """The suite of one file. Raises SuiteError."""
    text = file_of(path)
    about, listed = text.pop("about", None), text.pop("expectation", None)
    check_keys(str(path), text, (), ("about", "expectation"))
    if not isinstance(about, str):
        raise SuiteError(f'{path}: needs about = "..", before the first [[expectation]]')
    if not isinstance(listed, list) or not listed or not all(type(e) is dict for e in listed):
        raise SuiteError(f"{path}: needs at least one [[expectation]], in two pairs of brackets")
    expectations = tuple(_expectation(path, entry) for entry in listed)
    names = [e.name for e in expectations]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise SuiteError(f"{path}: two expectations are called {twice[0]!r}")
    return Suite(path.stem, about, expectations)


def _expectation(path: Path, entry: dict[str, Any]) -> Expectation:
    where = f"{path}: expectation {entry.get('name', '?')!r}"
    if "kind" not in entry:
        raise SuiteError(f"{where} lacks kind: one of {', '.join(NEEDS)}")
    kind = _one_of(where, entry, "kind", tuple(NEEDS))
    given = dict(entry)
    deviations = given.pop("allowed", [])
    if not isinstance(deviations, list):
        raise SuiteError(f"{where}: allowed is written [[expectation.allowed]]")
    allowed = tuple(_allowed(where, a) for a in deviations)
    wanted = COMMON | NEEDS[kind]
    check_keys(f"{where}, kind {kind}", given, wanted, MAY_HAVE.get(kind, set()) | {"allowed"})
    check_types(where, given)
    for key, words in (("family", FAMILIES), ("severity", SEVERITIES)):
        _one_of(where, given, key, words)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", given["name"]):
        raise SuiteError(f"{where}: a name is lower case letters, digits and _")
    given["columns"] = tuple(given.get("columns", ()))
    return Expectation(**given, allowed=allowed)


def check_keys(
    where: str, given: Mapping[str, Any], wanted: Collection[str], may_have: Collection[str] = ()
) -> None:
    """Raises SuiteError where a key is unknown, or one that is wanted is not there. Of one that is
    misspelt both is so: it is told as unknown."""
    for key in sorted(set(given) - {*wanted, *may_have}):
        near = did_you_mean(key, sorted({*wanted, *may_have}))
        raise SuiteError(f"{where}: has an unknown key {key}{near}")
    for key in sorted(set(wanted) - set(given)):
        raise SuiteError(f"{where}: lacks {key}")


def _one_of(where: str, given: dict[str, Any], key: str, words: tuple[str, ...]) -> str:
    value = given[key]
    if value not in words:
        near = did_you_mean(str(value), words)
        raise SuiteError(f"{where}: {key} {value!r} is none of {', '.join(words)}{near}")
    return str(value)


def check_types(where: str, given: Mapping[str, Any]) -> None:
    """Raises SuiteError where a value is not of the type that its key has."""
    for key, value in given.items():
        if key == "at_most":
            good = isinstance(value, int | float) and not isinstance(value, bool)
            wanted = "a number without quotes"
        elif key == "until":
            good = type(value) is date
            wanted = "a day without quotes, like 2026-12-31"
        elif key == "columns":
            good = isinstance(value, list) and bool(value) and all(type(v) is str for v in value)
            wanted = 'a list of texts, like ["topic", "partition"]'
        else:
            good = isinstance(value, str) and bool(value.strip())
            wanted = "a text in quotes"
        if not good:
            raise SuiteError(f"{where}: {key} is {wanted}, not {value!r}")


def _allowed(where: str, entry: Any) -> AllowedDeviation:
    if not isinstance(entry, dict):
        raise SuiteError(f"{where}: an allowed deviation has where and reason")
    check_keys(f"{where}, an allowed deviation", entry, ("where", "reason"))
    check_types(where, entry)
    return AllowedDeviation(**entry)
