"""Runs suites over tables: outcomes as rows of `expectation_results`, as words, as exit status."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from replication.progress import ERROR, INFO, WARNING, steps
from replication.quality.acceptances import Acceptance
from replication.quality.candidates import ACCEPTED, ROW, frame_of, refused
from replication.quality.great_expectations_suite import Judge, Own
from replication.quality.next_steps import LOST, MISSING, NOT_AS_WRITTEN, after, proof
from replication.quality.offline_docs import WOULD_FAIL
from replication.quality.row_words import printable, row_words
from replication.quality.suites import DECIDED, Expectation, Suite, check_names
from replication.quality.verdict_sums import Sums
from replication.reports.inventory_words import counted

# Failing rows that are written down per expectation; all of them are counted.
LISTED = 1_000
SHOWN = 5
# What Spark raises, which pyspark knows only in part.
REFUSALS = (PySparkException, Py4JJavaError)
# What fails an expectation, or why it cannot be asked.
Found = list[Row] | str
# Suites whose queries run at the same time.
AT_ONCE = 2
EXIT_PASSED, EXIT_FAILED, EXIT_NOT_JUDGED = 0, 1, 2


@dataclass(frozen=True)
class Result:
    """What one expectation came to. rows: the failing rows (columns of ROW), the first LISTED.

    allowed: how many rows more may deviate, and reasons: why, beside those of findings that
    somebody accepts, which are in accepted: finding -> rows (of the first LISTED that deviate).
    is_judged: not where it could not be: it fails then, with the reason as its only row. left_open,
    granted: of the verdicts that it asks for, which nobody knows, and which take what for granted.
    """

    suite: str
    expectation: Expectation
    failing: int
    allowed: int
    observed_value: float
    rows: tuple[Mapping[str, Any], ...]
    is_judged: bool = True
    accepted: Mapping[str, int] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    left_open: tuple[str, ...] = ()
    granted: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no row fails."""
        return self.failing == 0

    @property
    def outcome(self) -> str:
        """passed, failed or not_judged."""
        if not self.is_judged:
            return "not_judged"
        return "passed" if self.passed else "failed"


def run(
    spark: SparkSession, suites: Sequence[Suite], views: Mapping[str, str], judge: Judge,
    accepted: Mapping[str, Acceptance] | None = None, sums: Sums | None = None,
) -> list[Result]:  # fmt: skip
    """Judges every suite. views: table or documented view -> the session's name for it. accepted:
    by finding, those that fail nothing. sums: of the verdicts in the tables.

    Raises SuiteError where a suite names a table that there is not, JudgeError.
    """
    accepted = accepted or {}
    for suite in suites:
        check_names(suite, views)
    # Planning a query is most of what a small table costs, and keeps one processor busy.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = pool.map(lambda suite: _asked(spark, suite, views, accepted), suites)
        listed_of = zip(steps(suites, "suites judged"), asked, strict=True)
        return [
            r for suite, listed in listed_of for r in _judged(suite, listed, judge, sums, accepted)
        ]


def unusable(
    spark: SparkSession, suites: Sequence[Suite], views: Mapping[str, str]
) -> list[Result]:
    """The expectations whose SQL Spark refuses, as not judged; nothing is asked of the tables.

    Raises SuiteError where a suite names a table that there is not.
    """
    found = []
    for suite in suites:
        check_names(suite, views)
        for each in suite.expectations:
            try:
                frame_of(spark, replace(suite, expectations=(each,)), views)
            except REFUSALS as error:
                found.append(_result(suite, each, f"cannot be judged: {refused(error)}"))
    return found


def _asked(
    spark: SparkSession, suite: Suite, views: Mapping[str, str], accepted: Collection[str]
) -> dict[str, Found]:
    """Expectation -> what fails it. Where Spark refuses the SQL of one, the others are asked."""
    try:
        return dict(_listed(frame_of(spark, suite, views, accepted)))
    except REFUSALS as error:
        if len(suite.expectations) == 1:
            return {suite.expectations[0].name: f"cannot be judged: {refused(error)}"}
    found: dict[str, Found] = {}
    for each in suite.expectations:
        found |= _asked(spark, replace(suite, expectations=(each,)), views, accepted)
    return found


def _judged(
    suite: Suite, listed: Mapping[str, Found], judge: Judge, sums: Sums | None,
    accepted: Mapping[str, Acceptance],
) -> list[Result]:  # fmt: skip
    found = [_result(suite, e, listed.get(e.name, [])) for e in suite.expectations]
    if sums is not None:
        found = [_with_what_is_not_shown(r, sums) for r in found]
    words = {r.expectation.name: [row_words(row) for row in r.rows] for r in found}
    steps = {r.expectation.name: _after(r) for r in found if r.failing}
    beside = {
        r.expectation.name: [*_accepted(r, accepted), *r.left_open, *r.granted] for r in found
    }
    passed = judge.judge(suite, words, steps, beside)
    assert all(passed[r.expectation.name] == r.passed for r in found)
    return found


def _listed(candidates: DataFrame) -> dict[str, list[Row]]:
    """Expectation -> its first rows of each sort (failing, allowed, bare result), counted."""
    sort = Window.partitionBy("expectation", "listed", F.col("allowed").isNotNull())
    order = sort.orderBy("topic_partition_id", "first_offset", "end_offset", "detail")
    numbered = candidates.withColumns(
        {"place": F.row_number().over(order), "all": F.count(F.lit(1)).over(sort)}
    )
    listed: dict[str, list[Row]] = {}
    for row in numbered.filter(F.col("place") <= LISTED).collect():
        listed.setdefault(row["expectation"], []).append(row)
    return listed


def _result(suite: Suite, expectation: Expectation, found: Found) -> Result:
    if isinstance(found, str):
        return Result(suite.table, expectation, 1, 0, 0.0, (in_words(found),), False)
    rows = [r for r in found if r["listed"] and r["allowed"] is None]
    rows.sort(key=lambda r: r["place"])
    unlisted = [r for r in found if not r["listed"] and r["value"] is not None]
    nulls = [r for r in unlisted if math.isnan(r["value"])]
    if nulls and not rows:
        count = nulls[0]["all"] - (len(unlisted) - len(nulls))
        where = row_words({**{name: nulls[0][name] for name in ROW}, "detail": None})
        first = f", the first {where}" if where else ""
        what = "observed" if expectation.kind == "limit" else "broken"
        why = f"cannot be judged: {what} is NULL in {counted(count, 'row')}{first}"
        return _result(suite, expectation, why)
    failing = rows[0]["all"] if rows else 0
    deviating = [r for r in found if r["listed"] and r["allowed"] is not None]
    accepted = Counter(r["finding_id"] for r in deviating if r["allowed"] == ACCEPTED)
    reasons = dict.fromkeys(r["allowed"] for r in deviating if r["allowed"] != ACCEPTED)
    if expectation.kind in ("limit", "share"):
        values = [
            r["value"] for r in found if r["value"] is not None and not math.isnan(r["value"])
        ]
        observed = max(values, default=0.0)
    else:
        observed = float(failing)
    return Result(
        suite.table, expectation, failing, deviating[0]["all"] if deviating else 0, observed,
        tuple({name: r[name] for name in ROW} for r in rows), accepted=accepted,
        reasons=tuple(reasons),
    )  # fmt: skip


def _with_what_is_not_shown(r: Result, sums: Sums) -> Result:
    """That no row fails is no answer where nobody knows, and hangs on what is assumed elsewhere."""
    e = r.expectation
    if r.suite != "verdicts" or not (e.family == "health" or e.name == DECIDED):
        return r
    sql = f"{e.sql} {e.where}"
    left_open = () if e.name == DECIDED else tuple(sums.left_open(sql))
    return replace(r, left_open=left_open, granted=tuple(sums.granted(sql)))


def _accepted(r: Result, accepted: Mapping[str, Acceptance]) -> Iterator[str]:
    """Which rows fail nothing since somebody accepts their finding."""
    for finding, rows in r.accepted.items():
        some = "at least " if r.allowed > LISTED else ""
        more = " more" if r.failing else ""
        yield f"{some}{counted(rows, 'row')}{more} {WOULD_FAIL} {accepted[finding]}"


def findings_of(results: Iterable[Result]) -> tuple[set[str], set[str]]:
    """The findings of rows that are accepted, and of those that fail."""
    told = list(results)
    failing = {row["finding_id"] for r in told for row in r.rows} - {None}
    return {finding for r in told for finding in r.accepted}, failing


def in_words(detail: str) -> dict[str, Any]:
    """A failing row of which nothing is known but what is wrong."""
    return {**dict.fromkeys(ROW), "detail": detail}


def result_of(own: Own) -> Result:
    """What an expectation of a project's owners came to, in the shape of ours."""
    expectation = Expectation(own.name, "own", own.severity, own.meaning, "query")
    rows = tuple(map(in_words, own.details[:LISTED]))
    return Result(
        own.suite, expectation, own.failing, 0, own.observed, rows, is_judged=own.is_judged
    )


def result_rows(
    results: Iterable[Result],
    run_name: str,
    checked: tuple[str | None, int | None],
    at: int,
    whose: tuple[list[str], list[str]],
) -> list[dict[str, Any]]:
    """Rows of `expectation_results`. checked: run and micro-batch of the fold; at: milliseconds;
    whose: the clusters and incidents that the tables hold.
    """
    return [
        {
            "run": run_name,
            "cluster_ids": whose[0],
            "incidents": whose[1],
            "suite": r.suite,
            "expectation": r.expectation.name,
            "family": r.expectation.family,
            "severity": r.expectation.severity,
            "outcome": r.outcome,
            "observed_value": r.observed_value,
            "at_most": float(r.expectation.at_most),
            "failing": r.failing,
            "allowed": r.allowed,
            "failing_rows": [dict(row) for row in r.rows],
            "meaning": r.expectation.meaning,
            "checked_run": checked[0],
            "checked_micro_batch_id": checked[1],
            "at": at,
        }
        for r in results
    ]


def exit_status(results: Iterable[Result]) -> int:
    """1 where a critical expectation failed, else 2 where one could not be judged, else 0."""
    failed = [r for r in results if not r.passed]
    if any(r.is_judged and r.expectation.severity == "critical" for r in failed):
        return EXIT_FAILED
    return EXIT_PASSED if all(r.is_judged for r in failed) else EXIT_NOT_JUDGED


def worst(made: Sequence[int], in_vain: Sequence[int]) -> tuple[int, str]:
    """The exit status of several looks, and how they went. made: the statuses of those that were
    made; in_vain: of those that could not be. As within a look, a critical expectation that failed
    outranks what could not be judged."""
    every = [*made, *in_vain]
    status = EXIT_FAILED if EXIT_FAILED in made else max(every, default=EXIT_PASSED)
    failed, unjudged = made.count(EXIT_FAILED), made.count(EXIT_NOT_JUDGED)
    told = [f"a critical expectation failed in {counted(failed, 'look')}"] if failed else []
    if unjudged:
        told.append(f"in {counted(unjudged, 'look')} some expectation could not be judged")
    if in_vain:
        told.append(f"{counted(len(in_vain), 'look')} could not be made (status {max(in_vain)})")
    why = f": {'; '.join(told)}" if told else ""
    return status, f"ended after {counted(len(every), 'look')}; the worst status was {status}{why}"


def text(results: list[Result], told: Iterable[str] = ()) -> str:
    """What failed, the worst first, each with its first rows; what is told; then the sum."""
    order = {"critical": 0, "warning": 1, "info": 2}
    failed = [r for r in results if not r.passed]
    lines: list[str] = []
    failed.sort(key=lambda r: (order[r.expectation.severity], r.suite))
    for r in failed:
        e = r.expectation
        lines += [headline(r), f"        {e.meaning}"]
        lines += [f"        - {row_words(row)}" for row in r.rows[:SHOWN]]
        # Of family own a row is a value, which may be that of many.
        more = (len(r.rows) if e.family == "own" else r.failing) - SHOWN
        lines += [f"        - and {more} more"] if more > 0 else []
    lines += [headline(r) for r in results if r.passed and r.left_open]
    lines += [
        f"ALLOWED  {r.suite}.{r.expectation.name}: {counted(r.allowed, 'row')} may deviate: "
        f"{'; '.join(r.reasons)}"
        for r in results
        if r.reasons
    ]
    lines += [*told, *_next_steps(failed)]
    allowed = sum(r.allowed for r in results)
    unjudged = sum(not r.is_judged for r in failed)
    lines.append(
        f"{len(results) - len(failed)} of {counted(len(results), 'expectation')} passed, "
        f"{len(failed) - unjudged} failed"
        + (f", {unjudged} could not be judged" if unjudged else "")
        + (f"; allowed exceptions: {counted(allowed, 'row')}" if allowed else "")
    )
    return "\n".join(lines)


def headline(r: Result) -> str:
    """An expectation with its outcome, in one line."""
    name = f"{r.expectation.severity}  {r.suite}.{r.expectation.name}"
    if not r.is_judged:
        return f"NOT JUDGED  {name}"
    if r.failing:
        return f"FAILED  {name}: {counted(r.failing, 'row')}{_limit(r)}"
    return f"PASSED  {name}: {'; '.join(['no row fails', *r.left_open])}"


def to_log(results: Iterable[Result]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Of each expectation that failed, was not judged, or is not answered: a line, its level, and
    all of it."""
    levels = {"critical": ERROR, "warning": WARNING, "info": INFO}
    for r in results:
        if r.passed and not r.left_open:
            continue
        e = r.expectation
        yield headline(r), INFO if r.passed else levels[e.severity], {
            "suite": r.suite, "name": e.name, "family": e.family, "severity": e.severity,
            "outcome": r.outcome, "failing": r.failing, "left_open": list(r.left_open),
            "findings": sorted({row["finding_id"] for row in r.rows} - {None}),
            "first_rows": [row_words(row) for row in r.rows[:SHOWN]], "meaning": e.meaning,
        }  # fmt: skip


def counts(results: Iterable[Result]) -> dict[str, int]:
    """How many expectations came to which outcome."""
    found = Counter(r.outcome for r in results)
    return {outcome: found[outcome] for outcome in ("passed", "failed", "not_judged")}


def _next_steps(failed: Sequence[Result]) -> Iterator[str]:
    """What failed by the same finding, and where to go on."""
    by_finding: dict[str, list[str]] = {}
    for r in failed:
        for finding in {row["finding_id"] for row in r.rows} - {None}:
            by_finding.setdefault(finding, []).append(f"{r.suite}.{r.expectation.name}")
    same = [(finding, names) for finding, names in by_finding.items() if len(names) > 1]
    for finding, names in same[:SHOWN]:
        yield f"ONE FINDING  {finding} fails {len(names)} of these: {', '.join(sorted(names))}"
    if len(same) > SHOWN:
        yield f"ONE FINDING  and {len(same) - SHOWN} more fail several of these"
    # The first that is printed above.
    shown = [row for r in failed for row in r.rows[:SHOWN] if row["finding_id"] is not None]
    if shown:
        whose = f" of incident {printable(shown[0]['incident'])}" if shown[0]["incident"] else ""
        command = proof(shown[0]["finding_id"])
        yield f"NEXT  the proof, from the evidence{whose} in PATH: {command}"
        yield f"NEXT  {': '.join(LOST)}"
    families = {r.expectation.family for r in failed}
    if "evidence" in families:
        yield f"NEXT  {': '.join(MISSING)}"
    if "integrity" in families:
        yield f"NEXT  {NOT_AS_WRITTEN.format('the line above')}"


def _after(r: Result) -> list[str]:
    """What to do next, by what failed it first."""
    if not r.is_judged:
        return ["mend the expectation, as the failing row says"]
    named = (row["finding_id"] for row in r.rows if row["finding_id"] is not None)
    return after(r.expectation, next(named, None))


def _limit(r: Result) -> str:
    if r.expectation.kind in ("limit", "share"):
        return f", observed {r.observed_value:g}, at most {r.expectation.at_most:g}"
    return ""
