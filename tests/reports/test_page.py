"""The incident page as a text: its numbers are the answer's, nothing of the evidence is markup."""

import base64
import contextlib
import gzip
import hashlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replication import cli
from replication.protocol import rules
from replication.protocol.ground import events as ev
from replication.protocol.judgement.bounded import FoldedPartition, fold_all, identity_of
from replication.reports import event_words, moments, page, page_data, ranking
from replication.reports.answer import assemble
from replication.reports.danger_words import ends_when
from replication.reports.evidence_lines import LONGEST, read_lines
from replication.reports.safe_text import plain
from tests.changed_evidence import each_incident
from tests.reports.many_partitions import large, trace

INCIDENTS = sorted(p for p in (Path(__file__).parents[1] / "incidents").iterdir() if p.is_dir())
QUICK = ("unclean_election__4.1.1__trace", "same_epoch_power_loss__1.1.1")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\u202etxt"


def made(
    folder: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[dict[str, Any], str]:
    """The answer and the page of one and the same call of the command."""
    cli.main(["diagnose", str(folder), "--format", "json", "--report", str(target)])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer, target.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], str]:
    """The answer and the page of an incident, made once for all tests that ask it."""
    page_of, said = tmp_path_factory.mktemp("page") / "page.html", io.StringIO()
    incident = str(INCIDENTS[0].parent / request.param)
    with contextlib.redirect_stdout(said):
        cli.main(["diagnose", incident, "--format", "json", "--report", str(page_of)])
    return json.loads(said.getvalue()), page_of.read_text(encoding="utf-8")


def embedded(text: str) -> dict[str, Any]:
    """The JSON that the page carries, by the id of its element."""
    found = re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', text, re.S)
    return {name: json.loads(body) for name, body in found}


def figure(text: str, key: str) -> int:
    number = re.search(rf'id="figure-{key}"[^>]*><b>([\d,]+)</b>', text)
    assert number is not None
    return int(number[1].replace(",", ""))


def last_view(story: dict[str, Any]) -> dict[int, dict[int, Any]]:
    """All changes of a story added up: replica -> column -> value."""
    view: dict[int, dict[int, Any]] = {}
    for row in story["moments"]:
        for number, columns in row[-1].get("replicas", {}).items():
            view.setdefault(int(number), {}).update({int(c): v for c, v in columns.items()})
    return view


def of_its_partition(
    answer: dict[str, Any], row: dict[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    same = ("cluster_id", "topic", "topic_id", "partition")

    def own(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [one for one in rows if all(one[n] == row[n] for n in same)]

    return own(answer["partitions"])[0], own(answer["divergences"])


@pytest.mark.parametrize("reported", each_incident(QUICK), indirect=True)
def test_numbers_are_those_of_the_answer(reported: tuple[dict[str, Any], str]) -> None:
    answer, text = reported

    def total(*statuses: str) -> int:
        return sum(x["records"] for x in answer["losses"] if x["status"] in statuses)

    assert figure(text, "lost") == total("lost", "undetermined")
    assert figure(text, "recoverable") == total("recoverable")
    in_danger = {
        (d["cluster_id"], d["topic"], d["partition"], offset)
        for d in answer["at_risk"]
        for offset in range(d["first_offset"], d["end_offset"])
    }
    assert figure(text, "at-risk") == len(in_danger)
    for danger in answer["at_risk"]:
        assert "One failure away" in text
        assert ends_when(danger, *of_its_partition(answer, danger)) in text
    settled = [d for d in answer["divergences"] if d["status"] == "settled"]
    assert figure(text, "diverged") == len(settled)
    for loss in answer["losses"]:
        offsets = event_words.offset_range(loss["first_offset"], loss["end_offset"])
        assert offsets in text or offsets.capitalize() in text  # A sentence may begin with it.
        assert f"finding {loss['finding_id']}" in text
    data = embedded(text)
    assert data["overview-data"]["total"] == len(answer["partitions"])
    stories = [story for name, story in data.items() if name.startswith("story-")]
    assert sum(row[2] for s in stories for row in s["moments"]) == answer["input"]["events"]
    assert "left-out" not in text


@pytest.mark.parametrize("reported", each_incident(QUICK), indirect=True)
def test_the_last_moment_is_the_state_of_the_answer(reported: tuple[dict[str, Any], str]) -> None:
    answer, text = reported
    data = embedded(text)
    for index, partition in enumerate(answer["partitions"]):
        view = last_view(data[f"story-{index}"])
        assert sorted(view) == [r["replica"] for r in partition["replicas"]]
        for replica in partition["replicas"]:
            _, _, start, end, high, spans, _ = (view[replica["replica"]].get(c) for c in range(7))
            assert start == replica["log_start_offset"]
            assert (end or 0) == replica["log_end_offset"]
            assert high == replica["high_watermark"]
            assert _joined(spans) == replica["spans"]
        keys = ("what", "offset", "leader_epoch", "rule")
        derived = [(d["replica"], *(d[k] for k in keys)) for d in partition["derived"]]
        assert _last_derived(data[f"story-{index}"]) == sorted(derived, key=lambda d: d[0])


def _last_derived(story: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What rules force at the end, by the changes of a story added up: as the script does."""
    view: dict[int, list[Any]] = {}
    for row in story["moments"]:
        for number, (kept, *values) in row[-1].get("derived", {}).items():
            view[int(number)] = view.get(int(number), [])[:kept] + values
    return [(number, *value) for number in sorted(view) for value in view[number]]


def _joined(spans: list[list[Any]]) -> list[list[Any]]:
    """Spans that were seen, as the answer has them: contents apart, neighbours joined."""
    joined: list[list[Any]] = []
    for leader_epoch, first, end, _, seen in spans:
        if not seen:
            continue
        if joined and joined[-1][0] == leader_epoch and joined[-1][2] == first:
            joined[-1][2] = end
        else:
            joined.append([leader_epoch, first, end])
    return joined


def test_the_same_evidence_gives_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = made(INCIDENTS[0], tmp_path / "a.html", capsys)[1]
    assert made(INCIDENTS[0], tmp_path / "b.html", capsys)[1] == first


def test_a_page_names_no_address_and_allows_only_its_own_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text = made(INCIDENTS[0], tmp_path / "page.html", capsys)
    outside = re.findall(r"""(?:src|href|url|import|fetch)\W{0,3}\(?["']?(https?:|//)""", text)
    assert outside == []
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    script = re.search(r"<script>(.*?)</script>", text, re.S)
    assert policy is not None
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert "default-src 'none'" in policy[1]
    assert f"script-src 'sha256-{digest}'" in policy[1]


def hostile_events() -> list[ev.Event]:
    """An incident whose topic, settings and paths are written by an enemy."""
    return [
        ev.Event(e.event_id, e.trace_id, HOSTILE, HOSTILE, HOSTILE, e.partition, e.sequence, e.fact,
                 e.observed_at, e.grade, ev.Source(f"{HOSTILE}/server.log", 7))
        for e in trace("t", 0, 60, True).events
    ]  # fmt: skip


def test_hostile_names_and_lines_are_text() -> None:
    events = hostile_events()
    folded = fold_all(events)
    by_identity = {identity_of(events[0]): events}
    text = page.page(_answer(folded), by_identity, lambda places: dict.fromkeys(places, HOSTILE))
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "\u202e" not in text
    assert text.count("<script>") == 1
    data = embedded(text)
    shown = plain(HOSTILE)
    assert data["overview-data"]["rows"][0][1] == f"{shown}-0"
    assert shown in data["story-0"]["quotes"].values()


def _answer(folded: list[FoldedPartition]) -> dict[str, Any]:
    counts = {"files": 1, "events": 0, "applied": 0, "duplicates": 0, "superseded": 0,
              "quarantined": 0, "held": 0,
              "unreadable": [{"path": HOSTILE, "where": HOSTILE, "reason": HOSTILE}]}  # fmt: skip
    return assemble([], counts, [f.answer for f in folded])


@pytest.mark.slow
def test_a_large_cluster_gives_a_page_within_its_size_that_says_what_it_lacks() -> None:
    answer, events = large(10_000, 100, 200)
    assert sum(map(len, events.values())) >= 1_000_000
    text = page.page(answer, events)
    assert len(text.encode()) < 20_000_000
    data = embedded(text)
    assert len(data["overview-data"]["rows"]) == 10_000
    ranks = [ranking.CLASSES.index(row[2]) for row in data["overview-data"]["rows"]]
    assert ranks == sorted(ranks)
    told = {int(name.partition("-")[2]) for name in data if name.startswith("story-")}
    damaged = {row[0] for row in data["overview-data"]["rows"] if row[2] != "fine"}
    assert len(damaged) == 200
    assert damaged <= told
    assert f"{len(told):,} of 10,000 partitions are told" in text
    assert figure(text, "lost") == sum(x["records"] for x in answer["losses"])


@pytest.mark.slow
def test_one_election_that_cost_many_partitions_is_one_article() -> None:
    answer, events = large(128, 100, 64)
    assert len({(x["topic"], x["partition"]) for x in answer["losses"]}) == 64
    text = page.page(answer, events)
    assert text.count("<article ") == 1
    article = text.partition("<article ")[2].partition("</article>")[0]
    assert "<h3><span class=name>64 partitions</span>: " in article
    assert article.count("<p class=lead>Proof</p>") == len(answer["losses"])
    assert "What allowed it: unclean.leader.election.enable=true; what prevents it: " in article


def test_one_partition_with_very_many_events_keeps_its_proofs() -> None:
    made = trace("t", 0, 30_000, True)
    folded = fold_all(made.events)
    text = page.page(_answer(folded), {made.identity: made.events})
    story = embedded(text)["story-0"]
    assert len(story["moments"]) <= page_data.MOST_MOMENTS
    assert sum(row[2] for row in story["moments"]) == len(made.events)
    proofs = {s["event_id"] for f in folded[0].answer.findings for s in f["witness"]}
    assert proofs
    assert proofs <= set(story["events"])
    assert "are shown one by one" in text


@pytest.mark.parametrize("most", [1, 7, 40, 10_000])
def test_fewer_moments_end_in_the_same_state(most: int) -> None:
    made = trace("t", 0, 200, True)
    whole = moments.story(made.identity, made.events, set(), 10_000)
    fewer = moments.story(made.identity, made.events, set(), most)
    assert len(fewer.moments) <= max(most, 1)
    assert sum(m.merged for m in fewer.moments) == len(made.events) == fewer.total
    assert _summed(fewer) == _summed(whole)


def _summed(story: moments.Story) -> dict[int, dict[int, Any]]:
    view: dict[int, dict[int, Any]] = {}
    for moment in story.moments:
        for number, columns in moment.change.get("replicas", {}).items():
            view.setdefault(number, {}).update(columns)
    return view


def test_every_kind_of_fact_has_words_and_rules_that_exist() -> None:
    assert set(event_words.WORDS) == set(ev.FACT_TYPES.values())
    folder = Path(rules.__file__).parent
    named = {*event_words.RULES.values(), *event_words.CUT_RULES.values(), "isr_expand",
             "isr_shrink", "election_kraft", "election_zookeeper", "high_watermark_of_leader",
             "high_watermark_of_follower"}  # fmt: skip
    assert [n for n in sorted(named) if not (folder / f"{n}.py").is_file()] == []
    assert set(event_words.RULES) <= set(ev.FACT_TYPES)


def test_lines_of_evidence_are_read_plain_and_packed(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"one\ntwo \xff\r\n" + b"x" * 5000 + b"\n")
    with gzip.open(tmp_path / "b.log.gz", "wb") as file:
        file.write(b"first\nsecond\n")
    (tmp_path / "torn.gz").write_bytes(gzip.compress(b"line\n" * 9000)[:40])
    wanted = (("a.log", 2), ("a.log", 3), ("a.log", 9), ("b.log.gz", 2), ("gone.log", 1),
              ("torn.gz", 8000))  # fmt: skip
    places = {(str(tmp_path / name), line) for name, line in wanted}
    lines = {(Path(p).name, n): text for (p, n), text in read_lines(places).items()}
    assert lines == {
        ("a.log", 2): "two �",
        ("a.log", 3): "x" * LONGEST + " …",
        ("b.log.gz", 2): "second",
    }


def test_a_report_that_cannot_be_written_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "no such folder" / "page.html"
    assert cli.main(["diagnose", str(INCIDENTS[0]), "--report", str(target)]) == cli.UNUSABLE
    assert f"--report {target}" in capsys.readouterr().err


def colours() -> Iterator[tuple[str, dict[str, str]]]:
    """The custom properties of the light and of the dark look."""
    css = (Path(page.__file__).parent / "page_parts" / "page.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", css, re.S)[:2]
    base = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))
    yield "light", base
    yield "dark", base | dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark))


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio of two colours #rrggbb."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("look", "colour"), list(colours()))
def test_words_can_be_read_on_their_ground(look: str, colour: dict[str, str]) -> None:
    pairs = [(ink, ground) for ink in ("ink", "soft", "accent", "bad", "warn", "calm")
             for ground in ("paper", "sheet")]  # fmt: skip
    pairs += [("ink", f"e{n}") for n in range(6)] + [("ink", "none"), ("on-accent", "accent")]
    pairs += [("ink", "warn-sheet")]
    weak = {p: round(contrast(colour[p[0]], colour[p[1]]), 2) for p in pairs
            if contrast(colour[p[0]], colour[p[1]]) < 4.5}  # fmt: skip
    assert weak == {}
