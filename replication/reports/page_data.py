"""What the incident page shows, as plain data within a size: partitions and their stories.

The worst partitions are told event by event, the others by the state they ended in, and where even
that is too much by their row in the overview; what was left out is said in words.
"""

import json
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replication.protocol.ground.events import Event
from replication.protocol.judgement.bounded import Identity
from replication.reports import moments
from replication.reports.evidence_lines import Quotes
from replication.reports.inventory_words import clock_words
from replication.reports.loss_words import badness
from replication.reports.ranking import Partition, damage_words, partitions
from replication.reports.safe_text import plain

# Bytes of JSON; together with words and drawing code they keep a page below 20 MB.
STORIES_LIMIT = 9_000_000
# Partitions with nothing wrong are told while all stories are smaller than this.
FINE_STORIES_LIMIT = 3_000_000
STATES_LIMIT = 5_000_000
ROWS_LIMIT = 3_000_000
QUOTES_LIMIT = 1_500_000
# Moments of one partition, and of all together.
MOST_MOMENTS = 4_000
MOST_MOMENTS_IN_ALL = 120_000
SHOWN_VERDICTS = ("committed_records_survive", "acknowledged_records_survive", "log_matching")
# Marks of the moments that a proof is best shown at, the most telling first.
TELLING = (moments.UNCLEAN, moments.CUT, moments.CRASH, moments.ELECTION, moments.LEADERLESS)


@dataclass(slots=True)
class PageData:
    """JSON texts to embed, and in words what they lack.

    overview: one object. states: {index: end state}. stories: {index: moments}. places: event_id
    of a proof's step -> where it was read. moments: finding_id -> event_id of the step that tells
    most. root: the folder that all places are in. span: first and last ms of all events' clocks.
    """

    ranked: list[Partition]
    overview: str
    states: str
    stories: dict[int, str]
    places: dict[str, str]
    moments: dict[str, str]
    left_out: list[str]
    root: str
    span: tuple[int, int] | None


def build(
    answer: dict[str, Any],
    events: Mapping[Identity, Sequence[Event]],
    quotes: Quotes | None = None,
) -> PageData:
    """Everything that goes into the page but its words.

    events: of every partition, or of as many as the caller could get, worst first.
    quotes: gives the text of lines of evidence, where they can still be read.
    """
    ranked = partitions(answer)
    root = _common_folder(events)
    told, left_out = _stories(ranked, events, root, quotes)
    for story in told.values():
        story["clock"] = clock_words(answer)
    places = {i: _place_words(s, at) for s in told.values() for i, at in s["events"].items()}
    chosen = {
        f["finding_id"]: event_id
        for p in ranked
        if p.index in told
        for f in p.findings
        if (event_id := _telling(f, p, told[p.index]))
    }
    for partition in ranked:
        if partition.index in told:
            told[partition.index]["opening"] = _opening(partition, told[partition.index], chosen)
    states = _states(ranked, left_out)
    overview = _overview(ranked, answer, set(told), left_out)
    texts = {i: to_text(story) for i, story in told.items()}
    times = [e.observed_at for own in events.values() for e in own if e.observed_at is not None]
    span = (min(times), max(times)) if times else None
    return PageData(ranked, overview, states, texts, places, chosen, left_out, root, span)


def _common_folder(events: Mapping[Identity, Sequence[Event]]) -> str:
    """The folder that all evidence lies in, so that places can be named briefly; "" if none."""
    paths = {e.source.path for own in events.values() for e in own if e.source is not None}
    folders = {posixpath.dirname(path) for path in paths}
    if not folders or len({f.startswith("/") for f in folders}) > 1:
        return ""
    folder = posixpath.commonpath(folders)
    return f"{folder}/" if folder and folder != "/" else ""


def _telling(finding: dict[str, Any], partition: Partition, story: dict[str, Any]) -> str | None:
    """The event whose moment tells a finding best: what was done, before what was found later."""
    at: dict[str, int] = story["events"]
    proof = [s["event_id"] for s in finding["witness"] if s["event_id"] in at]

    def rank(event_id: str) -> tuple[int, int]:
        row = story["moments"][at[event_id]]
        if row[5] in TELLING:
            return (TELLING.index(row[5]), at[event_id])
        takes_over = row[7] is not None and story["rules"][row[7]] == "become_leader"
        return (len(TELLING) if takes_over else 99, -at[event_id])

    best = min(proof, key=rank, default=None)
    if best is not None and rank(best)[0] < 99:
        return best
    cuts = [event_id for event_id, step in at.items() if _drops(story, step, finding, partition)]
    return max(cuts, key=lambda event_id: at[event_id], default=best)


def _drops(story: dict[str, Any], step: int, finding: dict[str, Any], partition: Partition) -> bool:
    """Whether at this moment a log loses some of the records that the finding is about."""
    dropped = story["moments"][step][-1].get("dropped", ())
    about = [
        (x["first_offset"], x["end_offset"])
        for x in partition.losses
        if x["finding_id"] == finding["finding_id"]
    ]
    return any(row[1] < end and first < row[2] for row in dropped for first, end in about)


def _opening(partition: Partition, story: dict[str, Any], chosen: dict[str, str]) -> int:
    """The moment a partition's drawing opens at: that of its worst finding, else the end."""
    for row in [*sorted(partition.losses, key=badness), *partition.divergences]:
        event_id = chosen.get(row["finding_id"] or "")
        if event_id is not None:
            at: int = story["events"][event_id]
            return at
    return len(story["moments"]) - 1


def to_text(value: Any) -> str:
    """JSON that is safe inside a script element: no character of it can end the element."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _stories(
    ranked: list[Partition],
    events: Mapping[Identity, Sequence[Event]],
    root: str,
    quotes: Quotes | None,
) -> tuple[dict[int, dict[str, Any]], list[str]]:
    """The stories of the most damaged partitions by index, and what is left out of them."""
    told: dict[int, dict[str, Any]] = {}
    size = shown = total = 0
    for partition in ranked:
        own = events.get(partition.identity)
        room = min(MOST_MOMENTS, MOST_MOMENTS_IN_ALL - shown)
        if not own:
            continue
        enough = partition.damage == "fine" and size > FINE_STORIES_LIMIT
        if enough or room < min(len(own), MOST_MOMENTS):
            break
        story, length = _fitting(partition, own, room)
        if size + length > STORIES_LIMIT:
            break
        told[partition.index] = story
        size += length
        shown += len(story["moments"])
        total += story["total"]
    missing = len(ranked) - len(told)
    if quotes is not None:
        _add_quotes(told, quotes)
    for story in told.values():
        story["files"] = [plain(f.removeprefix(root)) for f in story["files"]]
    left_out = []
    if missing and told:
        left_out.append(
            f"Event by event, {len(told):,} of {len(ranked):,} partitions are told, the most "
            f"damaged ones; of the other {missing:,} the page has the answer only."
        )
    if missing and not told:
        left_out.append("No partition is told event by event: the events were not at hand.")
    if total > shown:
        left_out.append(
            f"Of the {total:,} events of those partitions, {shown:,} are shown one by one; the "
            "others, routine copying where possible, are merged into the event that follows them."
        )
    return told, left_out


def _fitting(
    partition: Partition, events: Sequence[Event], most: int
) -> tuple[dict[str, Any], int]:
    """The partition's story and its length, with fewer moments where one would crowd out others."""
    witnesses = {s["event_id"] for f in partition.findings for s in f["witness"]}
    witnesses |= {c["as_of"] for x in partition.losses for c in x["surviving_copies"]}
    while True:
        told = _written(moments.story(partition.identity, events, witnesses, most), witnesses)
        length = len(to_text(told))
        if length <= STORIES_LIMIT // 3 or most < 8:
            return told, length
        most //= 3


def _written(story: moments.Story, witnesses: set[str]) -> dict[str, Any]:
    """A story as arrays: time, words, events merged, sequence, grade, mark, broker, rule,
    file, line, byte, change."""
    times = [m.event.observed_at for m in story.moments if m.event.observed_at is not None]
    base = min(times, default=0)
    tables: dict[str, list[str]] = {"rules": [], "files": []}
    known: dict[str, dict[str, int]] = {"rules": {}, "files": {}}

    def code(table: str, text: str | None) -> int | None:
        if text is None:
            return None
        if text not in known[table]:
            known[table][text] = len(tables[table])
            tables[table].append(text)
        return known[table][text]

    rows = []
    for m in story.moments:
        at, source = m.event.observed_at, m.event.source
        rows.append(
            [
                None if at is None else at - base,
                plain(m.words),
                m.merged,
                m.event.sequence,
                1 if m.event.grade == "traced" else 0,
                m.mark,
                getattr(m.event.fact, "replica", None),
                code("rules", m.rule),
                None if source is None else code("files", source.path),
                None if source is None else source.line,
                None if source is None else source.byte_offset,
                m.change,
            ]
        )
    return {
        "base": base,
        "total": story.total,
        **tables,
        "moments": rows,
        "events": {
            m.event.event_id: i
            for i, m in enumerate(story.moments)
            if m.event.event_id in witnesses or "dropped" in m.change
        },
    }


def _place_words(story: dict[str, Any], step: int) -> str:
    _, _, _, _, _, _, _, _, file, line, byte_offset, _ = story["moments"][step]
    if file is None:
        return ""
    place: str = story["files"][file]
    if line is not None:
        place += f", line {line}"
    elif byte_offset is not None:
        place += f", byte {byte_offset}"
    return place


def _add_quotes(told: dict[int, dict[str, Any]], quotes: Quotes) -> None:
    """Puts the very lines of evidence beside the moments that rest on them, while there is room."""
    wanted = {
        (story["files"][row[8]], row[9])
        for story in told.values()
        for row in story["moments"]
        if row[8] is not None and row[9] is not None
    }
    lines = quotes(wanted)
    room = QUOTES_LIMIT
    for story in told.values():
        quoted = {}
        for step, row in enumerate(story["moments"]):
            line = lines.get((story["files"][row[8]], row[9])) if row[8] is not None else None
            if line is not None and room > 0:
                quoted[step] = plain(line)
                room -= len(to_text(line)) + 8
        story["quotes"] = quoted


def _states(ranked: list[Partition], left_out: list[str]) -> str:
    """End states of as many partitions as fit, reasons and the like written once."""
    strings: dict[str, int] = {}
    states: dict[int, Any] = {}
    size = 0
    for position, partition in enumerate(ranked):
        state = _end_state(partition, strings)
        size += len(to_text(state)) + 12
        if size + sum(map(len, strings)) > STATES_LIMIT:
            rest = len(ranked) - position
            left_out.append(
                f"Of {rest:,} partitions, the least damaged ones, the page has the row in the "
                "overview only, without logs and verdicts."
            )
            break
        states[partition.index] = state
    return to_text({"strings": list(strings), "states": states})


def _end_state(partition: Partition, strings: dict[str, int]) -> dict[str, Any]:
    def code(text: str) -> int:
        return strings.setdefault(plain(text), len(strings))

    state = partition.state
    result: dict[str, Any] = {
        "assigned": state["assigned_replicas"],
        "min": state["min_insync_replicas"],
        "registration": [state["leader"], state["leader_epoch"], state["isr"]],
        "replicas": [
            [
                r["replica"],
                r["log_start_offset"],
                r["log_end_offset"],
                r["high_watermark"],
                r["spans"],
                r["stopped"],
            ]
            for r in state["replicas"]
        ],
        "verdicts": [
            [
                code(v["invariant"]),
                v["verdict"][0],
                code(v["reason"]),
                [code(s) for s in v["settled_by"]],
                1 if v["not_supplied"] else 0,
            ]
            for v in partition.verdicts
        ],
    }
    if state.get("derived"):
        result["derived"] = [
            [d["replica"], d["what"], d["offset"], d["leader_epoch"], d["rule"]]
            for d in state["derived"]
        ]
    if partition.losses:
        result["losses"] = [
            [x["first_offset"], x["end_offset"], x["status"], x["finding_id"]]
            for x in partition.losses
        ]
    if partition.divergences:
        result["divergences"] = [
            [d["first_offset"], d["end_offset"], d["status"], d["replicas"], d["finding_id"]]
            for d in partition.divergences
        ]
    if partition.findings:
        result["findings"] = [
            [
                f["finding_id"],
                plain(f["summary"]),
                [[s["event_id"], plain(s["because"])] for s in f["witness"]],
            ]
            for f in partition.findings
        ]
    return result


def _overview(
    ranked: list[Partition], answer: dict[str, Any], told: set[int], left_out: list[str]
) -> str:
    """A row per partition: index, label, damage, words, verdicts, leader, ISR, has a story."""
    rows: list[list[Any]] = []
    size = 0
    for partition in ranked:
        verdicts = {v["invariant"]: v["verdict"][0] for v in partition.verdicts}
        row = [
            partition.index,
            partition.label,
            partition.damage,
            damage_words(partition),
            "".join(verdicts.get(name, "-") for name in SHOWN_VERDICTS),
            partition.state["leader"],
            partition.state["isr"],
            1 if partition.index in told else 0,
        ]
        size += len(to_text(row)) + 1
        if size > ROWS_LIMIT:
            rest = len(ranked) - len(rows)
            left_out.append(f"The overview lacks the {rest:,} least damaged partitions.")
            break
        rows.append(row)
    return to_text(
        {
            "format_version": answer["format_version"],
            "total": len(ranked),
            "rows": rows,
        }
    )
