"""The incident page in a real browser: silent, offline, every event reachable, true numbers."""

import json
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from replication import cli
from replication.protocol.judgement.bounded import fold_all, identity_of
from replication.reports import page
from replication.reports.answer import assemble
from replication.reports.safe_text import plain
from tests.reports.chromium import Browser, missing
from tests.reports.many_partitions import large
from tests.reports.test_page import HOSTILE, INCIDENTS, figure, hostile_events

pytestmark = pytest.mark.browser
TELLING = "kip101_scenario_1__0.10.2.2__silent_divergence__trace"
SHORT = "unclean_election__2.8.2"
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    absent = missing()
    # No skip: a machine that runs these tests has to have what they need.
    assert absent is None, absent
    with Browser() as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page and the JSON answer of every incident."""
    folder = tmp_path_factory.mktemp("pages")
    for incident in INCIDENTS:
        arguments = ["diagnose", str(incident), "--report", str(folder / f"{incident.name}.html")]
        cli.main(arguments)
    return folder


def opened(browser: Browser, path: Path, fragment: str = "") -> float:
    """Opens a page afresh, so that a fragment counts; seconds until it stands."""
    browser.run("window.location.replace('about:blank')")
    browser.console()
    browser.requests()
    return browser.open(path, fragment)


def quiet(browser: Browser, path: Path) -> None:
    """Nothing was written to the console and nothing but the page itself was asked for."""
    assert browser.console() == []
    asked = [u.partition("#")[0] for u in browser.requests() if not u.startswith("data:,")]
    assert set(asked) == {path.resolve().as_uri()}


def position(browser: Browser) -> tuple[int, int]:
    """Which event is shown, and of how many."""
    now, most, words, shown = browser.run(
        "const s = document.getElementById('timeline');"
        "const said = ['valuenow', 'valuemax', 'valuetext'].map(n => s.getAttribute('aria-' + n));"
        "return [...said, document.getElementById('moment').innerText]"
    )
    assert words.startswith(f"Event {now} of {most}: ")
    assert words.partition(": ")[2] in shown
    return int(now), int(most)


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda path: path.name)
def test_every_incident_opens_silent_and_offline(
    browser: Browser, pages: Path, incident: Path
) -> None:
    path = pages / f"{incident.name}.html"
    opened(browser, path)
    text = path.read_text()
    for key in ("lost", "recoverable", "at-risk", "diverged", "undecided"):
        shown = browser.text(f"#figure-{key} b").replace(",", "")
        assert int(shown) == figure(text, key)
    partitions = browser.run("return document.querySelectorAll('#rows tr').length")
    for row in range(partitions):
        browser.run(f"document.querySelectorAll('#rows button')[{row}].click()")
        position(browser)
        lanes = browser.run("return document.querySelectorAll('#drawing svg').length")
        assert lanes == 1
    quiet(browser, path)


@pytest.mark.parametrize("name", [TELLING, SHORT])
def test_the_keyboard_reaches_every_event(browser: Browser, pages: Path, name: str) -> None:
    opened(browser, pages / f"{name}.html")
    browser.run("document.getElementById('timeline').focus()")
    browser.press("Home")
    first, count = position(browser)
    assert first == 1
    for wanted in range(2, count + 1):
        browser.press("ArrowRight")
        assert position(browser)[0] == wanted
    browser.press("ArrowRight")
    assert position(browser)[0] == count
    browser.press("ArrowLeft")
    assert position(browser)[0] == count - 1
    browser.press("End")
    assert position(browser)[0] == count
    browser.press("PageUp")
    assert position(browser)[0] < count
    quiet(browser, pages / f"{name}.html")


def test_the_mouse_reaches_every_event_by_the_buttons(browser: Browser, pages: Path) -> None:
    opened(browser, pages / f"{TELLING}.html")
    browser.click("#first")
    reached = [position(browser)[0]]
    count = position(browser)[1]
    middle = (
        "const b = document.getElementById('forward'), r = b.getBoundingClientRect();"
        "return b.disabled ? null : [r.left + r.width / 2, r.top + r.height / 2]"
    )
    while (point := browser.run(middle)) is not None:
        browser.click_at(*point)
        reached.append(position(browser)[0])
    assert reached == list(range(1, count + 1))


def test_the_mouse_reaches_every_event_on_the_time_axis(browser: Browser, pages: Path) -> None:
    opened(browser, pages / f"{SHORT}.html")
    count = position(browser)[1]
    browser.run("document.getElementById('timeline').scrollIntoView({block: 'center'})")
    left, top, width = browser.run(
        "const b = document.getElementById('timeline').getBoundingClientRect();"
        "return [b.left, b.top + b.height / 2, b.width]"
    )
    reached = set()
    clicks = count * 6
    for click in range(clicks + 1):
        browser.click_at(left + 1 + (width - 2) * click / clicks, top)
        reached.add(position(browser)[0])
    assert reached == set(range(1, count + 1))


def test_a_finding_leads_to_its_moment_in_one_click(browser: Browser, pages: Path) -> None:
    opened(browser, pages / f"{SHORT}.html")
    browser.click("#last")
    browser.click("article .actions button.go")
    event, _ = position(browser)
    assert "Broker 2 takes over as leader of leader epoch 3" in browser.text("#moment")
    assert "broker-2/state-change.log, line 14" in browser.text("#moment")
    # The very line of the broker's log, as the file has it.
    incident = next(p for p in INCIDENTS if p.name == SHORT)
    lines = (incident / "broker-2" / "state-change.log").read_text().splitlines()
    assert browser.text("#moment pre") == lines[13]
    assert browser.run("return location.hash") == f"#p0e{event}"
    assert browser.run("return document.activeElement.id") == "timeline"
    steps = browser.run("return document.querySelectorAll('.proof button.go').length")
    seen = set()
    for step in range(steps):
        browser.run(f"document.querySelectorAll('.proof button.go')[{step}].click()")
        place = browser.run(
            f"return document.querySelectorAll('.proof button.go')[{step}].innerText"
        )
        assert place in browser.text("#moment")
        seen.add(position(browser)[0])
    assert len(seen) == steps


def test_an_address_with_a_moment_opens_there(browser: Browser, pages: Path) -> None:
    opened(browser, pages / f"{SHORT}.html", "#p0e17")
    assert position(browser)[0] == 17


def test_the_replicas_table_is_the_answer_at_the_end(
    browser: Browser, pages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    incident = next(p for p in INCIDENTS if p.name == TELLING)
    cli.main(["diagnose", str(incident), "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    opened(browser, pages / f"{TELLING}.html")
    browser.click("#last")
    rows = browser.run(
        "return [...document.querySelectorAll('#replicas tr')].map("
        "r => [...r.children].map(c => c.innerText))"
    )
    expected = [
        [str(r["replica"]), str(r["log_start_offset"]), str(r["log_end_offset"]),
         str(r["high_watermark"])]
        for r in answer["partitions"][0]["replicas"]
    ]  # fmt: skip
    assert [[row[0], *row[3:6]] for row in rows] == expected


def test_hostile_names_stay_text(browser: Browser, tmp_path: Path) -> None:
    events = hostile_events()
    counts = {"files": 1, "events": len(events), "applied": len(events), "duplicates": 0,
              "superseded": 0, "quarantined": 0, "held": 0, "unreadable": []}  # fmt: skip
    answer = assemble([], counts, [f.answer for f in fold_all(events)])
    path = tmp_path / "hostile.html"
    page.write_page(
        path, answer, {identity_of(events[0]): events}, lambda p: dict.fromkeys(p, HOSTILE)
    )
    opened(browser, path)
    assert browser.text("#partition-name") == f"Partition {plain(HOSTILE)}-0"
    browser.click("#back")
    assert plain(HOSTILE) in browser.text("#moment pre")
    assert browser.run("return document.querySelectorAll('img').length") == 0
    quiet(browser, path)


@pytest.fixture(scope="module")
def large_page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """10,000 partitions and a million events."""
    path = tmp_path_factory.mktemp("large") / "large.html"
    answer, events = large(10_000, 100, 200)
    assert sum(map(len, events.values())) >= 1_000_000
    page.write_page(path, answer, events)
    return path, answer


def test_a_large_page_opens_fast(browser: Browser, large_page: tuple[Path, dict[str, Any]]) -> None:
    path, _ = large_page
    assert path.stat().st_size < 20_000_000
    # The best of three: the machine may be busy with something else.
    seconds = []
    for _ in range(3):
        seconds.append(opened(browser, path))
        assert position(browser)[1] >= 100
    assert min(seconds) < 3
    assert "partitions are told" in browser.text("#left-out")
    quiet(browser, path)


def test_partitions_are_found_among_many(
    browser: Browser, large_page: tuple[Path, dict[str, Any]]
) -> None:
    path, answer = large_page
    opened(browser, path)
    assert browser.text("#found") == "10,000 of 10,000 partitions"
    last = answer["partitions"][-1]
    label = f"{last['topic']}-{last['partition']}"
    browser.write("#search", label)
    assert browser.text("#found") == "1 of 10,000 partitions"
    browser.click("#rows button")
    assert browser.text("#partition-name") == f"Partition {label}"
    assert "end state only" in browser.text("#scale-note")
    assert "3" in browser.text("#replicas")
    browser.run(
        "const f = document.getElementById('filter'); f.selectedIndex = 1;"
        "document.getElementById('search').value = '';"
        "f.dispatchEvent(new Event('change'))"
    )
    assert browser.text("#found") == "200 of 10,000 partitions"
    browser.click("#more-rows")
    assert browser.run("return document.querySelectorAll('#rows tr').length") == 200
    quiet(browser, path)


@pytest.mark.parametrize("name", [TELLING, SHORT, "chaos__4.1.1__seed2"])
def test_a_phone_shows_it_without_sideways_scrolling(
    browser: Browser, pages: Path, name: str
) -> None:
    browser.cdp("Emulation.setDeviceMetricsOverride", **PHONE)
    try:
        opened(browser, pages / f"{name}.html")
        wide, shown = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= shown == 390
        smallest = browser.run(
            "return Math.min(...[...document.querySelectorAll('.transport button')]"
            ".filter(b => b.offsetParent).map(b => Math.min(b.offsetWidth, b.offsetHeight)))"
        )
        assert smallest >= 44
    finally:
        browser.cdp("Emulation.clearDeviceMetricsOverride")


def test_dark_and_paper_have_their_own_look(browser: Browser, pages: Path) -> None:
    opened(browser, pages / f"{SHORT}.html")
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(ground)
    dark_look = [{"name": "prefers-color-scheme", "value": "dark"}]
    try:
        browser.cdp("Emulation.setEmulatedMedia", media="", features=dark_look)
        dark = browser.run(ground)
        browser.cdp("Emulation.setEmulatedMedia", media="print", features=dark_look)
        paper = browser.run(ground)
        hidden = browser.run(
            "return getComputedStyle(document.querySelector('.transport')).display"
        )
    finally:
        browser.cdp("Emulation.setEmulatedMedia", media="", features=[])
    assert dark != light == paper
    assert hidden == "none"


def test_a_screen_reader_finds_names_and_order(browser: Browser, pages: Path) -> None:
    opened(browser, pages / f"{TELLING}.html")
    without_a_name = browser.run(
        "return [...document.querySelectorAll("
        "'button, input, select, [role=slider], svg[role=img]')]"
        ".filter(e => !(e.getAttribute('aria-label') || e.innerText || (e.labels || []).length))"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert without_a_name == []
    levels = browser.run(
        "return [...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1])"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    ids = browser.run("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert browser.run("return document.getElementById('moment').getAttribute('aria-live')") == (
        "polite"
    )
    assert browser.run("return document.documentElement.lang") == "en"


def test_tab_reaches_the_time_axis(browser: Browser, pages: Path) -> None:
    opened(browser, pages / f"{SHORT}.html")
    deadline = time.monotonic() + 60
    while browser.run("return document.activeElement.id") != "timeline":
        assert time.monotonic() < deadline
        browser.press("Tab")
    before = position(browser)[0]
    browser.press("ArrowLeft")
    assert position(browser)[0] == before - 1


def test_what_a_rule_forces_is_drawn_apart(browser: Browser, pages: Path) -> None:
    """Derived values stand in the drawing and in words, with the rule's name."""
    name = "unclean_election__4.1.1__trace"
    opened(browser, pages / f"{name}.html")
    browser.click("#first")
    drawn, words = 0, ""
    for _ in range(position(browser)[1]):
        drawn = browser.run("return document.querySelectorAll('#drawing .derived').length")
        words = browser.text("#derived") if drawn else ""
        if drawn:
            break
        browser.run("document.getElementById('forward').click()")
    assert drawn
    assert "derived by " in words
    assert "leader epoch 0 begins at 0" in words
    assert "derived by a rule, not observed" in browser.text("#legend")
    quiet(browser, pages / f"{name}.html")
