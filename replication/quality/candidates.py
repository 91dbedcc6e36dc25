"""A suite as one frame: the rows of its table that may fail, found in as few passes as can be.

Great Expectations would run two Spark jobs per expectation. So the tables are read here, all row
conditions of a suite in one pass and all of a suite in one query; what is left is small, and is
what the expectations are then judged on.
"""

import math
import re
from collections.abc import Collection, Mapping
from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from replication.nearest import did_you_mean
from replication.quality.suites import TABLE, Expectation, Suite

# A failing row as people get to see it.
ROW = {
    "topic_partition_id": "string",
    "topic": "string",
    "partition": "bigint",
    "replicas": "array<bigint>",
    "first_offset": "bigint",
    "end_offset": "bigint",
    "finding_id": "string",
    "detail": "string",
    "observed": "double",
    "cluster_id": "string",
    "incident": "string",
}
# SQL over a topic_partition_id, which ends /partition or /partition@incident.
PARTS = {
    "cluster_id": "nullif(regexp_extract(topic_partition_id, '^(.*)/[^/]*/[^/]*/[^/]*$', 1), '')",
    "incident": "nullif(regexp_extract(topic_partition_id, '/[0-9]+@([^/]+)$', 1), '')",
    "topic": "element_at(split(topic_partition_id, '/'), -3)",
    "partition": "CAST(regexp_extract(topic_partition_id, '/([0-9]+)(@[^/]+)?$', 1) AS BIGINT)",
}
# Beside ROW: the expectation, the reason of the allowed deviation that covers the row, whether it
# is a row at all (not the bare result of a limit or a share), and that result.
COLUMNS = ("expectation", "allowed", "listed", "value", *ROW)

# The value of a row whose observed, or broken, is NULL: it is no row that fails.
NOTHING_TO_COMPARE = math.nan
# The reason of a deviation that somebody has accepted by its finding.
ACCEPTED = "accepted"


def frame_of(
    spark: SparkSession, suite: Suite, views: Mapping[str, str], accepted: Collection[str] = ()
) -> DataFrame:
    """The candidates of a suite, with COLUMNS. views: table or view -> its name in the session.
    accepted: the findings whose rows may deviate, for the reason ACCEPTED.

    Nothing runs yet. Raises PySparkException where SQL does not fit the tables.
    """
    parts: list[DataFrame] = []
    conditions = [e for e in suite.expectations if e.kind == "rows"]
    if conditions:
        parts.append(_by_condition(spark.table(views[suite.table]), conditions))
    for expectation in suite.expectations:
        if expectation.kind != "rows":
            parts.append(_candidates(spark, suite, expectation, views))
    whole = reduce(DataFrame.unionByName, parts)
    if not accepted:
        return whole
    is_accepted = F.col("allowed").isNull() & F.col("finding_id").isin(*sorted(accepted))
    allowed = F.when(is_accepted, F.lit(ACCEPTED)).otherwise(F.col("allowed"))
    return whole.withColumn("allowed", allowed)


def refused(error: PySparkException | Py4JJavaError) -> str:
    """What Spark says of SQL that it does not take, in one line."""
    if isinstance(error, Py4JJavaError):
        causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
        return causes[-1].removeprefix("Caused by: ") if causes else str(error).splitlines()[0]
    parameters = error.getMessageParameters() or {}
    if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
        return str(error).strip().splitlines()[0]
    column = parameters.get("objectName", "?").replace("`", "")
    known = [each.strip() for each in parameters.get("proposal", "").replace("`", "").split(",")]
    near = did_you_mean(column, known) or f" (nearest: {', '.join(known)})"
    return f"no column {column}{near}"


def _candidates(
    spark: SparkSession, suite: Suite, expectation: Expectation, views: Mapping[str, str]
) -> DataFrame:
    if expectation.kind == "unique":
        keys = ", ".join(f"`{c}`" for c in expectation.columns)
        words = ", ', ', ".join(f"'{c} ', CAST(`{c}` AS STRING)" for c in expectation.columns)
        sql = (
            f"SELECT {keys}, concat(times, ' rows: ', {words}) AS detail FROM "
            f"(SELECT {keys}, count(*) AS times FROM {{batch}} GROUP BY {keys}) WHERE times > 1"
        )
    else:
        sql = expectation.sql
    found = spark.sql(_with_tables(sql, suite, views))
    if expectation.kind == "limit":
        # Of a query without such a column, Spark says so.
        found = found.withColumn("observed", F.col("observed").cast("double"))
        return _limited(found, expectation)
    if expectation.kind == "share":
        return _shared(found, expectation)
    rows = found.select(*_marks(expectation), *_row(found))
    return rows.select(*COLUMNS)


def _with_tables(sql: str, suite: Suite, views: Mapping[str, str]) -> str:
    def name(match: re.Match[str]) -> str:
        table = match[1]
        return f"`{views[suite.table if table == 'batch' else table]}`"

    return TABLE.sub(name, sql)


def _by_condition(table: DataFrame, expectations: list[Expectation]) -> DataFrame:
    """All row conditions of a suite in one pass over its table."""
    broken = [
        F.when(
            F.expr(e.where),
            F.struct(
                F.lit(e.name).alias("expectation"),
                _allowed(e).alias("allowed"),
                F.expr(e.detail).cast("string").alias("detail"),
            ),
        )
        for e in expectations
    ]
    any_of = " OR ".join(f"({e.where})" for e in expectations)
    failing = table.filter(any_of).select(
        *[c for n, c in zip(ROW, _row(table), strict=True) if n != "detail"],
        F.explode(F.array_compact(F.array(*broken))).alias("broken"),
    )
    return failing.select(
        "broken.expectation", "broken.allowed", F.lit(True).alias("listed"),
        F.lit(None).cast("double").alias("value"),
        *[F.col("broken.detail") if n == "detail" else F.col(n) for n in ROW],
    )  # fmt: skip


def _limited(found: DataFrame, expectation: Expectation) -> DataFrame:
    """The rows above the limit, each with the highest value, or that value alone."""
    rows = found.select(_allowed(expectation).alias("allowed"), *_row(found))
    is_null = F.col("observed").isNull() & F.col("allowed").isNull()
    counts = is_null | (F.col("observed") > expectation.at_most)
    above = F.when(counts, F.struct(is_null.alias("is_null"), "allowed", *ROW))
    highest = F.max(F.when(F.col("allowed").isNull(), F.col("observed")))
    result = rows.agg(highest.alias("value"), F.collect_list(above).alias("above"))
    rows = result.select("value", F.inline_outer("above"))
    value = F.when(F.col("is_null"), F.lit(NOTHING_TO_COMPARE)).otherwise(F.col("value"))
    return _with_result(rows.withColumn("value", value), expectation)


def _shared(found: DataFrame, expectation: Expectation) -> DataFrame:
    """The broken rows where their share is above the limit, and the share."""
    rows = found.select("broken", _allowed(expectation).alias("allowed"), *_row(found))
    counted = F.when(F.col("allowed").isNull(), F.col("broken").cast("double"))
    share = rows.agg(F.coalesce(F.avg(counted), F.lit(0.0)).alias("value"))
    is_null = F.col("broken").isNull()
    too_many = F.col("allowed").isNotNull() | is_null | (F.col("value") > expectation.at_most)
    some = rows.filter("broken OR broken IS NULL AND allowed IS NULL")
    broken = some.crossJoin(F.broadcast(share)).filter(too_many)
    value = F.when(is_null, F.lit(NOTHING_TO_COMPARE)).otherwise(F.col("value"))
    alone = share.select(
        "value", F.lit(None).cast("string").alias("allowed"),
        *[F.lit(None).cast(t).alias(n) for n, t in ROW.items()],
    )  # fmt: skip
    listed = broken.select(*_marks(expectation, F.col("allowed"), ~is_null, value), *ROW)
    both = listed.unionByName(_with_result(alone, expectation))
    return both.select(*COLUMNS)


def _with_result(rows: DataFrame, expectation: Expectation) -> DataFrame:
    """Rows of value, allowed and ROW; those without an observed value are no rows of the table."""
    listed = F.col("observed").isNotNull()
    marks = _marks(expectation, F.col("allowed"), listed, F.col("value"))
    return rows.select(*marks, *ROW).select(*COLUMNS)


def _marks(
    expectation: Expectation,
    allowed: Column | None = None,
    listed: Column | None = None,
    value: Column | None = None,
) -> list[Column]:
    return [
        F.lit(expectation.name).alias("expectation"),
        (_allowed(expectation) if allowed is None else allowed).alias("allowed"),
        (F.lit(True) if listed is None else listed).alias("listed"),
        (F.lit(None).cast("double") if value is None else value).alias("value"),
    ]


def _allowed(expectation: Expectation) -> Column:
    """The reason of the first allowed deviation that covers the row, null where none does."""
    reason = F.lit(None).cast("string")
    for deviation in reversed(expectation.allowed):
        reason = F.when(F.expr(deviation.where), F.lit(deviation.reason)).otherwise(reason)
    return reason


def _row(found: DataFrame) -> list[Column]:
    """The columns of ROW, from what a query or a table has of them."""
    have = set(found.columns)
    derived: dict[str, Column] = {}
    if "topic_partition_id" in have:
        derived |= {name: F.expr(sql) for name, sql in PARTS.items()}
    if "replica" in have:
        derived["replicas"] = F.array("replica")
    result = []
    for name, kind in ROW.items():
        column = F.col(name) if name in have else derived.get(name, F.lit(None))
        result.append(column.cast(kind).alias(name))
    return result
