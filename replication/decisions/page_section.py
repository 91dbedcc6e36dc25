"""The page's section for `decide`: each partition at which something is to be decided, its plan."""

from typing import Any

from replication.decisions.first_words import in_short
from replication.decisions.words import partition_lines
from replication.reports.inventory_words import counted
from replication.reports.safe_text import escaped

# So many partitions are told at length, those at which a choice costs most first.
MOST = 20
_WORST = ("promised", "not_known", "only_unpromised", "nothing")


def decisions_html(rows: list[dict[str, Any]]) -> str:
    """rows: as `decide --format json` has its partitions. "" where there is nothing to decide."""
    if not rows:
        return ""
    ordered = sorted(rows, key=lambda row: _WORST.index(row["costs"]))
    told = "".join(_partition_html(row) for row in ordered[:MOST])
    left = len(ordered) - MOST
    more = f"<p>{counted(left, 'partition')} more: <code>decide</code> tells all.</p>"
    return (
        '<section id="decide"><h2>Which replica is to lead now</h2>'
        "<p>What each choice loses, and the steps. Nothing of it was run.</p>"
        f"{told}{more if left > 0 else ''}</section>"
    )


def _partition_html(row: dict[str, Any]) -> str:
    lines = "\n".join(escaped(line) for line in partition_lines(row))
    return f"<details><summary>{escaped(in_short(row))}</summary><pre>{lines}</pre></details>"
