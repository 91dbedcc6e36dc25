"""The page's section for `trace`: of each loss its first record, with all that is known of it."""

from collections.abc import Iterator
from typing import Any

from replication.evidence.importer import Import
from replication.protocol.judgement.bounded import FoldedPartition
from replication.recovery.ledger_rows import NOT_BACK
from replication.recovery.trace_command import UNSURE, headline, is_unsure, story_lines
from replication.recovery.tracing import Asked, traced
from replication.reports.loss_words import badness
from replication.reports.safe_text import escaped

# So many losses are told by a record, the worst first.
MOST = 5


def records_html(imported: Import, folded: list[FoldedPartition], answer: dict[str, Any]) -> str:
    """ "" where no record is lost, or none of the evidence is here but its events."""
    stories = list(_stories(imported, folded, answer))
    told = "".join(
        f"<details><summary>{escaped(headline(story))}</summary>"
        f"<pre>{escaped_lines(story)}</pre></details>"
        for story in stories
    )
    if not told:
        return ""
    return (
        '<section id="records"><h2>One record of each loss</h2>'
        "<p>Who wrote, held, copied and cut it, and who was told of it. Any other record: "
        "<code>replication-analyzer trace</code>.</p>"
        f"{told}{f'<p>{UNSURE}</p>' if any(map(is_unsure, stories)) else ''}</section>"
    )


def escaped_lines(story: dict[str, Any]) -> str:
    """A story as HTML, a line each."""
    return "\n".join(escaped(line) for line in story_lines(story))


def _stories(
    imported: Import, folded: list[FoldedPartition], answer: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    lost = sorted((x for x in answer["losses"] if x["status"] in NOT_BACK), key=badness)
    for loss in lost[:MOST]:
        where = (loss["topic"], loss["partition"], loss["first_offset"])
        for part in traced(imported, folded, answer, Asked(where=where)):
            for story in part.stories:
                if any(x["finding_id"] == loss["finding_id"] for x in story["losses"]):
                    yield story
