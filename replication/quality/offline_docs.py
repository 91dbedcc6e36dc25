"""Data Docs that need no network: their pages without remote styles and scripts, with ours.

Great Expectations writes pages that load Bootstrap and scripts from elsewhere. Here each page gets
a small style of its own instead, words where an icon of a remote font was, shows everything
unfolded, and says whose tables it is about.
"""

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

from replication.quality.suites import SEVERITIES

# What pages of validations of our suites begin with, as the data source of failing rows is called.
CANDIDATES = "replication_candidates"
REMOTE = re.compile(
    r"<link\b[^>]*\bhref=\"https?://[^>]*>|<script\b.*?</script>"
    r"|<img\b[^>]*\bsrc=\"https?://[^>]*>",
    re.DOTALL,
)
STYLE = """<style>
body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:75rem;padding:0 1rem;color:#222}
table{border-collapse:collapse;width:100%;margin:.5rem 0}
td,th{border:1px solid #ccc;padding:.3rem .5rem;text-align:left;vertical-align:top}
td,th{overflow-wrap:anywhere}nav,.navbar{border-bottom:1px solid #ccc}
ul{padding-left:1.2rem}a{color:#0b5cad}.collapse,.tab-content>.tab-pane{display:block!important}
.alert,.card{border:1px solid #ccc;border-radius:4px;padding:.5rem;margin:.5rem 0}
.text-danger,.text-danger a,
.fa-times{color:#b00020}.text-success,.fa-check-circle{color:#1b6e20}.whose{background:#eef3f8;
padding:.5rem 1rem;margin:0 -1rem}.modal{display:none}
@media(prefers-color-scheme:dark){body{background:#181a1b;color:#ddd}.whose{background:#22303c}
a{color:#7db7f0}td,th,.card,.alert,nav{border-color:#444}}
</style>"""
# What a remote font draws in a Status column.
LINK = re.compile(r"<a\b[^>]*\bhref=\"https?://[^>]*>(.*?)</a>", re.DOTALL)
ICON = re.compile(r"<i\b[^>]*\bclass=\"[^\"]*\b(fa-[a-z-]+)\b[^\"]*\"[^>]*>\s*</i>")
STATUS = {
    "fa-check-circle": '<b class="text-success">passed</b>',
    "fa-times": '<b class="text-danger">failed</b>',
    "fa-exclamation-triangle": '<b class="text-danger">cannot be judged</b>',
}
# A page of our suites (named by CANDIDATES) is about a column of failing rows that must be empty:
# what Great Expectations counts there are cells.
OURS = (
    (re.compile(r">[^<>]*\b100% null<"), ">no row fails<"),
    (re.compile(r">[^<>]*% null<"), ">rows fail<"),
    (
        re.compile(r"(\S+) unexpected values found\.[^<]*"),
        r"Failing rows: \1; the first are listed.",
    ),
    (re.compile(r"Unexpected Value"), "Failing row"),
    (re.compile(r"Observed Value"), "Outcome"),
)
RANKS = [
    "failed (critical)", "failed", "failed (warning)", "failed (info)",
    "passed but for what is accepted", "passed",
]  # fmt: skip
BAD = ' class="text-danger"'
# How an expectation says of rows that somebody accepts their finding, and what came of it then.
WOULD_FAIL = "would fail if nobody had accepted"
SECTION = re.compile(r'(?=<div id="section-\d+" class="ge-section)')
FAILED = (STATUS["fa-times"], STATUS["fa-exclamation-triangle"])
BODY = re.compile(r"<body[^>]*>")
INDEX = re.compile(r'<div class="pages">.*?</div>\n?', re.DOTALL)
SEVERITY = re.compile(r"Severity: (critical|warning|info)\.")
NAVIGATION = re.compile(
    r'<li class="nav-item col-12">\s*<a\b[^>]*href="#section-(\d+)".*?</li>', re.DOTALL
)
DIVISION = re.compile(r"<(/?)div\b")


def whose_words(cluster_ids: list[str], incidents: list[str]) -> str:
    """Clusters and incidents in one line."""
    clusters = ", ".join(cluster_ids) or "not named by any evidence"
    named = f"; incidents: {', '.join(incidents)}" if incidents else ""
    return f"Cluster: {clusters}{named}"


def make_offline(folder: Path, whose: str, told: Iterable[str] = ()) -> int:
    """Rewrites every page below folder; returns how many. A page that was rewritten stays. told: of
    the run, what the index says before all."""
    pages = sorted(folder.rglob("*.html"))
    for path in pages:
        text = path.read_text(encoding="utf-8")
        if STYLE not in text:
            text = offline(text, whose)
            text = _in_our_words(text) if path.name.startswith(CANDIDATES) else text
            path.write_text(text, encoding="utf-8")
    index = folder / "index.html"
    if index.exists():
        listed = index_of(
            {
                path.relative_to(folder): state_of(path.read_text(encoding="utf-8"))
                for path in pages
                if path != index
            }
        )
        said = "".join(f"<p>{escape(line)}</p>" for line in told)
        text = INDEX.sub("", index.read_text(encoding="utf-8"))
        text = text.replace("</p>", f'</p><div class="pages">{said}{listed}</div>\n', 1)
        index.write_text(text, encoding="utf-8")
    return len(pages)


def _in_our_words(page: str) -> str:
    for found, told in OURS:
        page = found.sub(told, page)
    start, *sections = SECTION.split(page)
    but = ">no row fails but what is accepted<"
    sections = [s.replace(">no row fails<", but) if WOULD_FAIL in s else s for s in sections]
    return _worst_first(start, sections)


def _worst_first(start: str, sections: list[str]) -> str:
    """A page whose expectations are ordered by what became of them, in place of by their names.
    sections: the overview, then one of each expectation; start: the page before them."""
    if len(sections) < 2:
        return start + "".join(sections)
    end = _end_of_division(sections[-1])
    rest = sections[-1][end:]
    sections[-1] = sections[-1][:end]
    order = [0, *sorted(range(1, len(sections)), key=lambda n: RANKS.index(state_of(sections[n])))]
    links = {int(found[1]) - 1: found[0] for found in NAVIGATION.finditer(start)}
    if set(links) == set(order):
        ordered = iter(order)
        start = NAVIGATION.sub(lambda _: links[next(ordered)], start)
    return start + "\n".join(sections[n] for n in order) + rest


def _end_of_division(text: str) -> int:
    """Where the division ends that a text begins with."""
    depth = 0
    for found in DIVISION.finditer(text):
        depth += -1 if found[1] else 1
        if depth == 0:
            return text.index(">", found.end()) + 1
    return len(text)


def state_of(page: str) -> str:
    """What became of all that a page, or a section of it, tells of: one of RANKS."""
    if any(each in page for each in FAILED):
        failed = [s for s in SECTION.split(page)[1:] or [page] if any(f in s for f in FAILED)]
        severities = {found for s in failed for found in SEVERITY.findall(s)[:1]}
        worst = next((each for each in SEVERITIES if each in severities), None)
        return f"failed ({worst})" if worst else "failed"
    return "passed but for what is accepted" if WOULD_FAIL in page else "passed"


def index_of(pages: dict[Path, str]) -> str:
    """Links to the other pages, those where something failed first: the list that a script would
    have made of them. pages: each with its state_of."""
    rows = "".join(
        f'<li{BAD if state.startswith("failed") else ""}><a href="{escape(path.as_posix())}">'
        f"{escape(page_name(path, state))}</a></li>"
        for path, state in sorted(pages.items(), key=_place)
        if len(path.parts) > 1
    )
    return f'<ul class="pages">{rows}</ul>'


def _place(page: tuple[Path, str]) -> tuple[int, bool]:
    """First what failed, the worst before, then runs, then what is expected."""
    path, state = page
    return min(RANKS.index(state), RANKS.index("passed but for what is accepted")), path.parts[
        0
    ] != "validations"


def page_name(path: Path, state: str) -> str:
    """What a page is about: a suite (expectations/SUITE.html), or what a run came to
    (validations/SUITE/RUN/TIME/BATCH.html)."""
    parts = path.with_suffix("").parts
    if parts[0] == "expectations":
        return f"What is expected of {'/'.join(parts[1:])}"
    if parts[0] == "validations" and len(parts) > 3:
        return f"{parts[1]}: {state}, run {', '.join(parts[2:-1])}"
    return " / ".join(parts)


def offline(page: str, whose: str) -> str:
    """A page without what it would load, with a style and the words whose it is."""
    page = LINK.sub(r"\1", REMOTE.sub("", page))
    page = ICON.sub(lambda found: STATUS.get(found[1], found[0]), page)
    page = page.replace("</head>", f"{STYLE}\n</head>", 1)
    told = f'<p class="whose">{escape(whose)}</p>'
    return BODY.sub(lambda found: found[0] + told, page, count=1)
