"""The order in which people count: t2 before t10."""

import re
from typing import Any

_DIGITS = re.compile(r"(\d+)")


def natural(text: str) -> tuple[tuple[int, int | str], ...]:
    """Sort key of a name: its numbers as numbers."""
    parts = _DIGITS.split(text)
    return tuple((0, int(p)) if p.isdecimal() else (1, p) for p in parts if p)


def of_partition(row: dict[str, Any]) -> tuple[Any, ...]:
    """Sort key of a row of the answer by its topic and partition."""
    return (natural(row["topic"]), row["partition"], row["topic_id"] or "")


def runs(numbers: list[int]) -> str:
    """`0..3, 7`: numbers with neighbours joined."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(
        str(p[0]) if len(p) == 1 else f"{p[0]}{', ' if len(p) == 2 else '..'}{p[-1]}" for p in parts
    )


def names(rows: list[dict[str, Any]], most: int = 8) -> str:
    """`orders-0..63, t-2`: the partitions of the rows, topic by topic."""
    by_topic: dict[str, list[int]] = {}
    for row in rows:
        by_topic.setdefault(row["topic"], []).append(row["partition"])
    told = [f"{topic}-{runs(by_topic[topic])}" for topic in sorted(by_topic, key=natural)]
    left = len(told) - most
    more = f" and {left} more topic{'' if left == 1 else 's'}" if left > 0 else ""
    return "; ".join(told[:most]) + more
