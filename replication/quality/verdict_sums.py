"""The sum of all verdicts, for a report: how many hold, are violated, unknown, or are not there.

Every invariant is asked of every topic partition, so the four add up. Without a verdict is what no
row speaks of, and what a defect of this tool has left open; metrics call it not_judged.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replication.protocol.histories.assumptions import RECORDS_AS_SEEN
from replication.protocol.judgement.judge import INVARIANTS
from replication.reports.inventory_words import counted
from replication.reports.without_a_trace import NOT_KNOWN

NAMES = tuple(module.__name__.rpartition(".")[2] for module in INVARIANTS)
HOLDS, VIOLATED, UNKNOWN, NOT_JUDGED = "HOLDS", "VIOLATED", "UNKNOWN", "not_judged"
WORDS = (HOLDS, VIOLATED, UNKNOWN, NOT_JUDGED)
# Those that people read otherwise: an expectation that cannot be judged is NOT JUDGED, too.
SAID = {NOT_JUDGED: "without a verdict"}
# How the reason of a verdict begins that nobody could judge.
DEFECT = "a defect of this tool"


@dataclass(frozen=True)
class Sums:
    """partitions: how many topic partitions the tables hold. counts: (invariant, word of WORDS) ->
    verdicts. not_supplied: how many of the UNKNOWN lack a kind of evidence that was never handed
    over. assumed: invariant -> how many of its HOLDS rest on an assumption, and on which."""

    partitions: int
    counts: Mapping[tuple[str, str], int]
    not_supplied: int = 0
    assumed: Mapping[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    @property
    def holds_assuming(self) -> int:
        """How many of the HOLDS rest on an assumption."""
        return sum(count for count, _ in self.assumed.values())

    @property
    def assumptions(self) -> list[str]:
        """The assumptions that some verdict HOLDS rests on."""
        return sorted({name for _, names in self.assumed.values() for name in names})

    def of(self, word: str) -> int:
        """How many verdicts are of that word."""
        return sum(count for (_, each), count in self.counts.items() if each == word)

    def figures(self) -> dict[str, Any]:
        """All of it, for a line of JSON."""
        told = {word: self.of(word) for word in WORDS}
        return {"partitions": self.partitions, "invariants": len(NAMES), **told,
                "not_supplied": self.not_supplied, "holds_assuming": self.holds_assuming,
                "assuming": self.assumptions}  # fmt: skip

    def left_open(self, sql: str) -> Iterator[str]:
        """Of the invariants that SQL asks for, those of which nobody knows whether they hold."""
        for name in _asked_by(sql):
            if unknown := self.counts.get((name, UNKNOWN), 0):
                yield f"{name} is UNKNOWN for {unknown} of {self._whole}"
            if missing := self.counts.get((name, NOT_JUDGED), 0):
                yield f"{name} has no verdict for {missing} of {self._whole}"

    def granted(self, sql: str) -> Iterator[str]:
        """Of the invariants that SQL asks for, those that hold as far as something does that no
        evidence shows."""
        for name in _asked_by(sql):
            if name in self.assumed:
                count, names = self.assumed[name]
                told = f"{name} HOLDS for {count} of {self._whole}"
                vanished = f": {NOT_KNOWN}" if RECORDS_AS_SEEN in names else ""
                yield f"{told} taking {', '.join(names)} for granted{vanished}"

    @property
    def _whole(self) -> str:
        return counted(self.partitions, "topic partition")

    def __str__(self) -> str:
        parts = [f"{self.of(word)} {SAID.get(word, word)}" for word in WORDS]
        if self.assumed:
            some = "it" if self.of(HOLDS) == 1 else f"{self.holds_assuming} of them"
            parts[0] += f" ({some} taking {', '.join(self.assumptions)} for granted)"
        said = f"verdicts: {len(NAMES)} invariants of {self._whole} = " + " + ".join(parts)
        if self.not_supplied:
            said += (
                f"; {self.not_supplied} of the UNKNOWN for want of a kind of evidence that was "
                "never handed over"
            )
        if self.of(NOT_JUDGED):
            said += "; why some have no verdict: the table quarantine, or what failed above"
        return said


def _asked_by(sql: str) -> list[str]:
    return [name for name in NAMES if re.search(rf"\b{name}\b", sql)]


def in_one_line(sums: Sums, verdicts: DataFrame, lost_records: DataFrame) -> str:
    """The answer for whoever reads one line: topics, records that are gone, what is not decided."""
    topics = verdicts.select("cluster_id", "topic").distinct().count()
    least = F.col("records").isNull() | (F.col("end_offset_bound") != "exact")
    told = lost_records.groupBy("status").agg(
        F.coalesce(F.sum("records"), F.lit(0)).alias("records"), F.max(least).alias("least")
    )
    gone = {row["status"]: row for row in told.collect()}

    def said(status: str) -> str:
        row = gone.get(status)
        some = "at least " if row is not None and row["least"] else ""
        return f"{some}{counted(0 if row is None else row['records'], 'record')} {status}"

    lost = ", ".join(said(status) for status in ("lost", "recoverable", "undetermined"))
    whole = sum(sums.of(word) for word in WORDS)
    return (
        f"{counted(topics, 'topic')}, {counted(sums.partitions, 'partition')}: {lost}; of "
        f"{counted(whole, 'verdict')} {sums.of(VIOLATED)} VIOLATED, {sums.of(UNKNOWN)} UNKNOWN."
    )


def sums_of(verdicts: DataFrame, replica_states: DataFrame) -> Sums:
    """The sum over the tables verdicts and replica_states."""
    judged = verdicts.select("topic_partition_id")
    whole = judged.unionByName(replica_states.select("topic_partition_id"))
    partitions = whole.distinct().count()
    unjudged = F.coalesce(F.col("reason"), F.lit("")).startswith(DEFECT)
    word = F.when(unjudged, F.lit(NOT_JUDGED)).otherwise(F.col("verdict"))
    rows = verdicts.filter(F.col("invariant").isin(*NAMES)).select(
        "topic_partition_id", "invariant", word.alias("word"), "not_supplied",
        F.coalesce(F.col("assuming"), F.array().cast("array<string>")).alias("assuming"),
    )  # fmt: skip
    # A row that is there twice is one verdict.
    keys = ("invariant", "word", "not_supplied", "assuming")
    grouped = rows.distinct().groupBy(*keys).count().collect()
    counts: Counter[tuple[str, str]] = Counter()
    for row in grouped:
        counts[row["invariant"], row["word"]] += row["count"]
    for name in NAMES:
        there = sum(counts[name, each] for each in WORDS)
        counts[name, NOT_JUDGED] += max(partitions - there, 0)
    lacking = sum(r["count"] for r in grouped if r["not_supplied"] and r["word"] == UNKNOWN)
    assumed: dict[str, tuple[int, tuple[str, ...]]] = {}
    for row in grouped:
        if row["assuming"] and row["word"] == HOLDS:
            count, names = assumed.get(row["invariant"], (0, ()))
            both = tuple(sorted({*names, *row["assuming"]}))
            assumed[row["invariant"]] = count + row["count"], both
    return Sums(partitions, dict(counts), lacking, assumed)
