"""One self-contained HTML page about an incident: words first, then the replicas' logs drawn.

No network, no fonts, no images: what it shows is inside it, as text and as JSON that its own
script draws. The same evidence gives the same bytes.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from replication.places import Place
from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import Identity
from replication.reports import page_words
from replication.reports.do_now import do_now_html
from replication.reports.evidence_lines import Quotes
from replication.reports.group_words import groups_html
from replication.reports.headline import headline
from replication.reports.inventory_words import inventory_html
from replication.reports.page_data import PageData, build
from replication.reports.removed_words import removed_html
from replication.reports.safe_text import escaped
from replication.reports.transaction_words import transactions_html

# So many partitions are seen at a glance; more can be searched.
FEW = 8
PARTS = resources.files("replication.reports") / "page_parts"


@dataclass(frozen=True, slots=True)
class Beside:
    """Sections, as HTML, of what is no part of the answer. what_now: who is to lead; records: what
    became of single ones."""

    what_now: str = ""
    records: str = ""


NOTHING_BESIDE = Beside()


def write_page(
    path: Place,
    answer: dict[str, Any],
    events: Mapping[Identity, Sequence[Event]],
    quotes: Quotes | None = None,
    beside: Beside = NOTHING_BESIDE,
) -> None:
    """Writes the page about an answer. OSError where the file cannot be written.

    answer: the outward contract's object. events: by (cluster id, topic, topic id, partition),
    absent ids empty; partitions without events are shown by the answer alone. quotes: gives the
    text of lines of evidence by (path, line), where they can still be read. beside: what is
    no part of the answer.
    """
    path.write_bytes(page(answer, events, quotes, beside).encode("utf-8", "replace"))


def page(
    answer: dict[str, Any],
    events: Mapping[Identity, Sequence[Event]],
    quotes: Quotes | None = None,
    beside: Beside = NOTHING_BESIDE,
) -> str:
    """The page as one text."""
    data = build(answer, events, quotes)
    title = headline(answer)
    style = _part("page.css")
    script = _part("page.js")
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            _head(title, style, script),
            "<body>",
            "<main>",
            page_words.header(answer, _title_html(title, data)),
            do_now_html(answer),
            beside.what_now,
            page_words.figures(answer),
            page_words.keep_safe(data.ranked),
            page_words.what_happened(
                data.ranked, answer, page_words.Seen(data.places, data.moments)
            ),
            removed_html(answer),
            page_words.one_failure_away(data.ranked),
            _overview(data),
            _part("panel.html"),
            beside.records,
            groups_html(answer),
            transactions_html(answer),
            page_words.not_known(answer),
            inventory_html(answer.get("inventory", {})),
            page_words.read_from(answer, data.left_out, data.root, data.span),
            "<footer>Offsets that are named as a range include both ends. Written by "
            "replication-analyzer; this page needs no network.</footer>",
            "</main>",
            _embedded(data),
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        )
    )


def _title_html(title: str, data: PageData) -> str:
    text = escaped(title)
    if data.ranked and title.endswith(f" in {data.ranked[0].label}"):
        label = data.ranked[0].label
        return text.removesuffix(escaped(label)) + page_words.name_of(label)
    return text


def _head(title: str, style: str, script: str) -> str:
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        (
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            # An empty icon: otherwise browsers ask the server for one.
            '<link rel="icon" href="data:,">',
            f"<title>{escaped(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
        )
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _embedded(data: PageData) -> str:
    scripts = [("overview-data", data.overview), ("states-data", data.states)]
    scripts += [(f"story-{index}", text) for index, text in sorted(data.stories.items())]
    return "\n".join(
        f'<script type="application/json" id="{name}">{text}</script>' for name, text in scripts
    )


def _overview(data: PageData) -> str:
    """The list of partitions; one partition needs none."""
    count = len(data.ranked)
    damaged = count > 0 and data.ranked[0].damage != "fine"
    frame = _part("overview.html").replace("{count}", f"{count:,}")
    frame = frame.replace("{searched}", "" if count > FEW else "hidden")
    frame = frame.replace("{heading}", "Partitions, worst first" if damaged else "Partitions")
    return frame.replace("{shown}", "hidden" if count == 1 else "")


def _part(name: str) -> str:
    return (PARTS / name).read_text(encoding="utf-8")
