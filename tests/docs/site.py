"""docs/ as a static site, by Sphinx and MyST; a link that leads nowhere ends it.

    python -m tests.docs.site FOLDER

Exit status: 0 it is made, 1 a page or a link is wrong (said on stderr).
"""

import os
import sys
import tempfile
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import SphinxError

from replication import VERSION

DOCS = Path(__file__).parents[2] / "docs"
SETTINGS = {
    "project": "Replication analyzer",
    "release": VERSION,
    "extensions": ["myst_parser"],
    "exclude_patterns": ["*.json"],
    # Headings are link targets, as they are where the pages are read in a repository.
    "myst_heading_anchors": 3,
    "html_theme": "alabaster",
    "html_theme_options": {"page_width": "70em", "fixed_sidebar": True},
    "html_copy_source": False,
    # `json` and `yaml` blocks are examples, some with `..` for what is left out.
    "suppress_warnings": ["misc.highlighting_failure"],
}


def build(folder: Path) -> None:
    """Makes the site. Raises SphinxError at the first page or link that is wrong."""
    with tempfile.TemporaryDirectory(prefix="site-") as made, open(os.devnull, "w") as nothing:
        site = Sphinx(
            srcdir=DOCS, confdir=None, outdir=folder, doctreedir=made, buildername="html",
            confoverrides=SETTINGS, status=nothing, warningiserror=True, freshenv=True,
        )  # fmt: skip
        site.build(force_all=True)
        if site.statuscode:
            raise SphinxError("a page or a link is wrong: see above")


def main(words: list[str]) -> int:
    """The command."""
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        build(Path(words[0]))
    except SphinxError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"site: {words[0]}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
