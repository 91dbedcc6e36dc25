"""What `explain` says of a name that is no finding: what there is to explain instead."""

from collections.abc import Iterator
from typing import Any

from replication.reports.natural import of_partition
from replication.reports.vocabulary import INVARIANT_WORDS, name, offsets

MOST_LISTED = 20


def instead(answer: dict[str, Any], word: str, near: str) -> str:
    """Of a partition without an open question its findings; of any other word all findings, each
    with what it is about. near: a word that is explained and was perhaps meant."""
    findings = sorted(answer["findings"], key=of_partition)
    own = [f for f in findings if name(f) == word]
    if any(name(p) == word for p in answer["partitions"]):
        if not own:
            return f"{word} has no finding, and no two histories to show: diagnose has its verdicts"
        head = f"no question about {word} is left open by two histories; its findings"
        return f"{head}: {'; '.join(_listed(answer, own))}"
    head = (
        f"no finding {word} in this evidence, no undecided partition, and no word that is "
        f"explained{near}"
    )
    if not findings:
        return f"{head}; findings: none"
    return f"{head}; findings: {'; '.join(_listed(answer, findings))}"


def _listed(answer: dict[str, Any], findings: list[dict[str, Any]]) -> Iterator[str]:
    lost = {row["finding_id"]: row for row in answer["losses"]}
    different = {row["finding_id"]: row for row in answer["divergences"]}
    for finding in findings[:MOST_LISTED]:
        told = finding["finding_id"]
        if row := lost.get(told):
            about = f"{offsets(row['first_offset'], row['end_offset'])}, {row['status']}"
        elif row := different.get(told):
            a, b = row["replicas"]
            where = offsets(row["first_offset"], row["end_offset"])
            about = f"{where}, replicas {a} and {b} differ"
        else:
            what = finding.get("kind") or finding["invariant"]
            about = INVARIANT_WORDS.get(what, what)
        yield f"{told} ({name(finding)} {about})"
    if len(findings) > MOST_LISTED:
        yield f"and {len(findings) - MOST_LISTED} more (diagnose --format json has all)"
