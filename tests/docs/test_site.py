"""The site of docs/: every page is in it, every link leads somewhere, each page is for somebody."""

import re
import shutil
from pathlib import Path

import pytest
from sphinx.errors import SphinxError

from tests.docs import site

PAGES = sorted(p.relative_to(site.DOCS) for p in site.DOCS.rglob("*.md"))


def test_the_site_has_every_page(tmp_path: Path) -> None:
    site.build(tmp_path)
    assert [p for p in PAGES if not (tmp_path / p.with_suffix(".html")).is_file()] == []
    first = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert [
        p for p in PAGES if f'href="{p.with_suffix(".html")}"' not in first and p.stem != "index"
    ] == []


@pytest.mark.parametrize(
    "line", ["[x](nowhere.md)", "[x](evidence.md#nowhere)", "[x](#nowhere)", "[x](no.schema.json)"]
)
def test_a_link_that_leads_nowhere_ends_it(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(
        f"# A\n\n{line}\n\n```{{toctree}}\nevidence\n```\n", encoding="utf-8"
    )
    shutil.copy(site.DOCS / "limits.md", tmp_path / "docs" / "evidence.md")
    monkeypatch.setattr(site, "DOCS", tmp_path / "docs")
    with pytest.raises(SphinxError):
        site.build(tmp_path / "site")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_is_short_and_says_for_whom(page: Path) -> None:
    lines = (site.DOCS / page).read_text(encoding="utf-8").splitlines()
    assert len(lines) < 200
    assert re.match(r"# \S", lines[0])
    assert re.match(r"For ", lines[2]), "the first paragraph says for whom the page is"
