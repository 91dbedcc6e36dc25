"""The table of what each incident still tells without one of its artefacts: made and written.

`python -m tests.removals` writes `incidents/removals.json` anew, for a change of the product that
explains the difference; it refuses while a verdict contradicts the ground truth.
"""

import json
import sys
from collections import Counter

from replication.protocol.judgement.bounded import FoldedPartition
from tests.changed_evidence import (
    DECIDING,
    EXPECTED,
    INCIDENTS,
    Change,
    as_captured,
    folded_with,
    living,
    removals,
    verdicts_of,
    wrong_verdicts,
)
from tests.damaged_artefacts import lost, said_first

TABLE = INCIDENTS / "removals.json"
NOTHING_LEFT = "nothing of this partition is left"

Row = dict[str, list[str]]


def other_words(incident: str, topic_partition: str, found: FoldedPartition) -> list[str]:
    """Another cause or contract of a loss than all evidence gives, but for unknown; more losses
    than there are; fewer, as if they were all."""
    whole = living(as_captured(incident), topic_partition)
    assert whole is not None
    told, every = lost(found), lost(whole)
    other = [
        f"{topic_partition} offset {offset}: {words}, not {sorted(every[offset])}"
        for offset, rows in told.items()
        for words in rows
        if offset in every
        for place in (0, 1)
        if words[place] not in {"unknown"} | {row[place] for row in every[offset]}
    ]
    count, right = (sum(x["records"] or 0 for x in f.answer.losses) for f in (found, whole))
    if count > right or (count < right and said_first(found)[0].isdigit()):
        other.append(f"{topic_partition}: {count} lost, not {right}: {said_first(found)}")
    return other


def row_of(incident: str, change: Change) -> tuple[Row, list[str]]:
    """(the three verdicts of each partition after the change, what contradicts the truth)."""
    folded = folded_with(incident, change)
    row: Row = {}
    wrong: list[str] = []
    for topic_partition in EXPECTED[incident]:
        found = living(folded, topic_partition)
        if found is None:
            row[topic_partition] = [f"UNKNOWN: {NOTHING_LEFT}"] * len(DECIDING)
            continue
        verdicts = verdicts_of(found)
        row[topic_partition] = [verdicts[name] for name in DECIDING]
        wrong += wrong_verdicts(incident, topic_partition, verdicts)
        wrong += other_words(incident, topic_partition, found)
    return row, wrong


def written_table() -> dict[str, dict[str, Row]]:
    """The table as committed: incident, what was withheld, partition, verdicts."""
    table: dict[str, dict[str, Row]] = json.loads(TABLE.read_text())
    return table


def main() -> int:
    """Works the whole table out and writes it."""
    table: dict[str, dict[str, Row]] = {}
    contradictions = []
    for incident in EXPECTED:
        for withheld, change in removals(incident):
            row, wrong = row_of(incident, change)
            table.setdefault(incident, {})[withheld] = row
            contradictions += [f"{incident} without {withheld}: {w}" for w in wrong]
    for line in contradictions:
        print(line, file=sys.stderr)
    if contradictions:
        return 1
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
    words = Counter(
        verdict.partition(":")[0]
        for rows in table.values()
        for row in rows.values()
        for verdicts in row.values()
        for verdict in verdicts
    )
    print(f"{TABLE.name}: {dict(sorted(words.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
