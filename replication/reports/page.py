"""One self-contained HTML page about an incident: words first, then the replicas' logs drawn.

No network, no fonts, no images: what it shows is inside it, as text and as JSON that its own
script draws. The same evidence gives the same bytes.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from replication.protocol.bounded import Identity
from replication.protocol.events import Event
from replication.reports import page_words, words
from replication.reports.page_data import PageData, Quotes, build
from replication.reports.safe_text import escaped

PARTS = resources.files("replication.reports") / "page_parts"


def write_page(
    path: Path,
    answer: dict[str, Any],
    events: Mapping[Identity, Sequence[Event]],
    quotes: Quotes | None = None,
) -> None:
    """Writes the page about an answer. OSError where the file cannot be written.

    answer: the outward contract's object. events: by (cluster id, topic, topic id, partition),
    absent ids empty; partitions without events are shown by the answer alone. quotes: gives the
    text of lines of evidence by (path, line), where they can still be read.
    """
    path.write_bytes(page(answer, events, quotes).encode("utf-8", "replace"))


def page(
    answer: dict[str, Any],
    events: Mapping[Identity, Sequence[Event]],
    quotes: Quotes | None = None,
) -> str:
    """The page as one text."""
    data = build(answer, events, quotes)
    title = headline(answer, data)
    style = (PARTS / "page.css").read_text(encoding="utf-8")
    script = (PARTS / "page.js").read_text(encoding="utf-8")
    return "\n".join((
        "<!doctype html>",
        '<html lang="en">',
        _head(title, style, script),
        "<body>",
        "<main>",
        page_words.header(answer, title),
        page_words.figures(answer),
        page_words.keep_safe(data.ranked),
        page_words.what_happened(data.ranked, data.places),
        _overview(len(data.ranked)),
        _panel(),
        page_words.not_known(answer),
        page_words.read_from(answer, data.left_out, data.span),
        "<footer>Offsets that are named as a range include both ends. Written by "
        "replication-analyzer; this page needs no network.</footer>",
        "</main>",
        _embedded(data),
        f"<script>{script}</script>",
        "</body>",
        "</html>",
        "",
    ))


def headline(answer: dict[str, Any], data: PageData) -> str:
    """What is wrong in one sentence, naming the place where there is just one."""
    damaged = [p for p in data.ranked if p.damage not in ("undecided", "fine")]
    sentence = words.headline(answer)
    if len(damaged) == 1 and len(data.ranked) > 1:
        return f"{sentence.rstrip('.')}: {damaged[0].label}."
    return sentence


def _head(title: str, style: str, script: str) -> str:
    policy = (f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
              "base-uri 'none'; form-action 'none'")
    return "\n".join((
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
    ))


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _embedded(data: PageData) -> str:
    scripts = [("overview-data", data.overview), ("states-data", data.states)]
    scripts += [(f"story-{index}", text) for index, text in sorted(data.stories.items())]
    return "\n".join(f'<script type="application/json" id="{name}">{text}</script>'
                     for name, text in scripts)


def _overview(count: int) -> str:
    """The list of partitions; one partition needs none."""
    hidden = ' class="hidden"' if count == 1 else ""
    return f"""<section id="overview"{hidden}>
<h2>Partitions, most damaged first</h2>
<div class="search" role="search">
<label>Find a partition <input id="search" type="search" autocomplete="off" spellcheck="false"></label>
<label>Show <select id="filter">
<option value="">all {count:,}</option>
<option value="lost diverged broken recoverable at_risk recovered">with findings</option>
<option value="undecided">not fully decided</option>
<option value="fine">nothing wrong</option>
</select></label>
<output id="found" aria-live="polite"></output>
</div>
<div class="scroll" tabindex="0" role="region" aria-label="List of partitions">
<table>
<thead><tr><th scope="col">Partition</th><th scope="col">What is wrong</th>
<th scope="col" class="wide">Committed survive</th><th scope="col" class="wide">Acknowledged survive</th>
<th scope="col" class="wide">Replicas agree</th><th scope="col" class="wide number">Leader</th>
<th scope="col" class="wide">ISR</th></tr></thead>
<tbody id="rows"></tbody>
</table></div>
<p class="more-rows"><button type="button" id="more-rows">Show more</button></p>
</section>"""


def _panel() -> str:
    """The frame that the script draws one partition into."""
    return """<section id="partition" class="panel" aria-labelledby="partition-name">
<h2 id="partition-name" tabindex="-1">One partition, drawn</h2>
<p class="facts" id="partition-facts"></p>
<noscript><p>The drawings below need this page's own script; the words above do not.</p></noscript>
<div id="story">
<div class="timeline" id="timeline" role="slider" tabindex="0" aria-label="Moment"
 aria-valuemin="1" aria-valuemax="1" aria-valuenow="1"></div>
<div class="transport" role="group" aria-label="Step through the events">
<button type="button" id="first">First</button>
<button type="button" id="key-back">&#8249;&#8249; Key moment</button>
<button type="button" id="back">&#8249; Event</button>
<button type="button" id="forward">Event &#8250;</button>
<button type="button" id="key-forward">Key moment &#8250;&#8250;</button>
<button type="button" id="last">Last</button>
<output id="position"></output>
</div>
<div class="moment" id="moment" aria-live="polite"></div>
</div>
<div class="drawing" id="drawing"></div>
<ul class="legend" id="legend"></ul>
<p class="note" id="scale-note"></p>
<h3 class="part" id="table-title">The replicas at this moment</h3>
<div class="scroll" tabindex="0" role="region" aria-labelledby="table-title">
<table><thead><tr><th scope="col">Broker</th><th scope="col">Role</th><th scope="col">In ISR</th>
<th scope="col" class="number">Log start</th><th scope="col" class="number">Log end</th>
<th scope="col" class="number">High watermark</th><th scope="col">Leader epochs held</th></tr></thead>
<tbody id="replicas"></tbody></table></div>
<div id="key-moments"><h3 class="part">Key moments</h3>
<label class="toggle"><input type="checkbox" id="routine"> every event</label>
<ol class="keys" id="keys"></ol>
<p class="more-rows"><button type="button" id="more-keys">Show more</button></p></div>
<h3 class="part">Every promise judged</h3>
<div class="scroll" tabindex="0" role="region" aria-label="Verdicts">
<table><thead><tr><th scope="col">Promise</th><th scope="col">Verdict</th><th scope="col">Why</th></tr></thead>
<tbody id="verdicts"></tbody></table></div>
</section>"""
