"""A failing row in words."""

from collections.abc import Mapping
from typing import Any


def row_words(row: Mapping[str, Any]) -> str:
    """A failing row in one line: where, offsets (the last one included), replicas, finding."""
    words = []
    if row["topic"] is not None:
        words.append(f"{row['topic']}-{row['partition']}")
    for name, told in (("cluster_id", "cluster"), ("incident", "incident")):
        if row[name] is not None:
            words.append(f"of {told} {row[name]}" if words else f"{told} {row[name]}")
    if row["first_offset"] is not None and row["end_offset"] is not None:
        words.append(_offsets(row["first_offset"], row["end_offset"]))
    if row["replicas"]:
        many = "replicas" if len(row["replicas"]) > 1 else "replica"
        words.append(f"{many} " + ",".join(str(r) for r in row["replicas"]))
    if row["finding_id"] is not None:
        words.append(f"finding {row['finding_id']}")
    if row["observed"] is not None:
        words.append(f"observed {row['observed']:g}")
    place = " ".join(words)
    detail = printable(row["detail"] or "")
    return f"{printable(place)}: {detail}" if place and detail else printable(place) or detail


def _offsets(first: int, end: int) -> str:
    return f"offset {first}" if end == first + 1 else f"offsets {first}..{end - 1}"


def printable(value: str) -> str:
    """Text from the evidence as text: nothing in it may steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in value)
