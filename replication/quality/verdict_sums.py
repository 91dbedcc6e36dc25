"""The sum of all verdicts, for a report: how many hold, are violated, unknown, or were not judged.

Every invariant is asked of every topic partition, so the four add up. Not judged is what no row
speaks of, and what a defect of this tool has left open.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replication.protocol.judgement.judge import INVARIANTS
from replication.reports.inventory_words import counted

NAMES = tuple(module.__name__.rpartition(".")[2] for module in INVARIANTS)
HOLDS, VIOLATED, UNKNOWN, NOT_JUDGED = "HOLDS", "VIOLATED", "UNKNOWN", "not_judged"
WORDS = (HOLDS, VIOLATED, UNKNOWN, NOT_JUDGED)
# How the reason of a verdict begins that nobody could judge.
DEFECT = "a defect of this tool"


@dataclass(frozen=True)
class Sums:
    """partitions: how many topic partitions the tables hold. counts: (invariant, word of WORDS) ->
    verdicts. not_supplied: how many of the UNKNOWN lack a kind of evidence that was never handed
    over."""

    partitions: int
    counts: Mapping[tuple[str, str], int]
    not_supplied: int = 0

    def of(self, word: str) -> int:
        """How many verdicts are of that word."""
        return sum(count for (_, each), count in self.counts.items() if each == word)

    def figures(self) -> dict[str, int]:
        """All of it, for a line of JSON."""
        told = {word: self.of(word) for word in WORDS}
        return {"partitions": self.partitions, "invariants": len(NAMES), **told,
                "not_supplied": self.not_supplied}  # fmt: skip

    def __str__(self) -> str:
        parts = [f"{self.of(word)} {word.replace('_', ' ')}" for word in WORDS]
        said = (
            f"verdicts: {len(NAMES)} invariants of {counted(self.partitions, 'topic partition')} = "
            + " + ".join(parts)
        )
        if self.not_supplied:
            said += (
                f"; {self.not_supplied} of the UNKNOWN for want of a kind of evidence that was "
                "never handed over"
            )
        if self.of(NOT_JUDGED):
            said += "; why some were not judged: the table quarantine, or what failed above"
        return said


def sums_of(verdicts: DataFrame, replica_states: DataFrame) -> Sums:
    """The sum over the tables verdicts and replica_states."""
    judged = verdicts.select("topic_partition_id")
    whole = judged.unionByName(replica_states.select("topic_partition_id"))
    partitions = whole.distinct().count()
    unjudged = F.coalesce(F.col("reason"), F.lit("")).startswith(DEFECT)
    word = F.when(unjudged, F.lit(NOT_JUDGED)).otherwise(F.col("verdict"))
    rows = verdicts.filter(F.col("invariant").isin(*NAMES)).select(
        "topic_partition_id", "invariant", word.alias("word"), "not_supplied"
    )
    # A row that is there twice is one verdict.
    grouped = rows.distinct().groupBy("invariant", "word", "not_supplied").count().collect()
    counts: Counter[tuple[str, str]] = Counter()
    for row in grouped:
        counts[row["invariant"], row["word"]] += row["count"]
    for name in NAMES:
        there = sum(counts[name, each] for each in WORDS)
        counts[name, NOT_JUDGED] += max(partitions - there, 0)
    lacking = sum(r["count"] for r in grouped if r["not_supplied"] and r["word"] == UNKNOWN)
    return Sums(partitions, dict(counts), lacking)
