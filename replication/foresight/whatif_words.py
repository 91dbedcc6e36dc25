"""The answer of `whatif` for people: a table for the postmortem, the cost, what it rests on."""

from collections.abc import Iterator, Sequence
from typing import Any

from replication.reports.inventory_words import counted

CELLS = {
    "not_lost": "NOT LOST", "still_lost": "STILL LOST", "depends": "DEPENDS",
    "not_told": "not told",
}  # fmt: skip
TIERS = {
    "acknowledged_by_isr": "acks=all",
    "consumed": "read",
    "committed": "committed",
    "acknowledged_by_leader": "acks=1",
    "never_acknowledged": "no acknowledgement",
    "undetermined": "acks not known",
}
MOST_STEPS = 12


def text(answer: dict[str, Any], unseen: Sequence[str] = ()) -> str:
    """The answer of `whatif --format text`. unseen: what is not known of losses without a trace."""
    told, undecided = _of_losses(answer["losses"]), answer["partitions_undecided"]
    besides = [*unseen]
    if undecided:
        more = " more" if told else ""
        besides.insert(
            0,
            f"CANNOT TELL whether anything{more} is lost in {counted(undecided, 'partition')}: "
            "`diagnose` says what would decide it.",
        )
    if told:
        return "\n".join([told, *(f"{each}\n" for each in besides)]) if besides else told
    head = (
        "No loss is known, so none is told otherwise."
        if besides
        else "Nothing was lost, so nothing is to be told otherwise."
    )
    return "".join(f"{each}\n" for each in (head, *besides))


def _of_losses(rows: list[dict[str, Any]]) -> str:
    """The table of the losses and what each intervention costs; empty where there are none."""
    if not rows:
        return ""
    if not any(_is_told(cell) for row in rows for cell in row["if"]):
        return _nothing_told(rows)
    interventions = [cell["set"] for cell in rows[0]["if"]]
    names = [_named(row) for row in rows]
    width = max(map(len, [*names, "loss"])) + 2
    lines = [
        "  ".join(["loss".ljust(width), *(name.ljust(_width(name)) for name in interventions)])
    ]
    for name, row in zip(names, rows, strict=True):
        cells = (CELLS[c["answer"]].ljust(_width(c["set"])) for c in row["if"])
        lines.append("  ".join([name.ljust(width), *cells]))
    for number, name in enumerate(interventions):
        was = " (as it was)" if _is_as_it_was(rows, number) else ""
        lines += ["", f"{name}{was}:", *(f"  {line}" for line in _told(rows, names, number))]
    lines = [line.rstrip() for line in lines]
    return "\n".join(lines) + "\n"


def _is_as_it_was(rows: list[dict[str, Any]], number: int) -> bool:
    """Whether an intervention changes nothing wherever it is told: all that it names was so."""
    told = [row["if"][number] for row in rows if _is_told(row["if"][number])]
    return bool(told) and all(cell["as_it_was"] for cell in told)


def _is_told(cell: dict[str, Any]) -> bool:
    return bool(cell["answer"] != "not_told")


def _nothing_told(rows: list[dict[str, Any]]) -> str:
    """Where not one loss can be told again: why, a line for each reason, and what else answers."""
    reasons: dict[str, dict[str, None]] = {}
    for row in rows:
        for cell in row["if"]:
            named = reasons.setdefault(cell["because"], {})
            named[f"{row['topic']}-{row['partition']}"] = None
    lines = ["whatif can tell nothing of this incident:"]
    lines += [f"  {', '.join(named)}: {because}." for because, named in reasons.items()]
    causes = sorted({row["cause"] for row in rows} - {"unknown"})
    lines += [f"What prevents such a loss: replication-analyzer explain {c}" for c in causes]
    lines.append(
        "What another setting closes and what it costs: replication-analyzer preflight DESCRIBE "
        "CONFIGS, with the setting as it would be."
    )
    return "\n".join(lines) + "\n"


def _width(name: str) -> int:
    return max(len(name), len("STILL LOST"))


def _named(row: dict[str, Any]) -> str:
    where = f"{row['topic']}-{row['partition']}"
    first, last = row["first_offset"], row["end_offset"] - 1
    offsets = f"offset {first}" if first == last else f"offsets {first}..{last}"
    return f"{where} {offsets} ({TIERS[row['tier']]})"


def _told(rows: list[dict[str, Any]], names: list[str], number: int) -> Iterator[str]:
    """What an intervention costs, partition by partition, and what its answers rest on."""
    seen: set[str] = set()
    for row, name in zip(rows, names, strict=True):
        cell = row["if"][number]
        where = f"{row['topic']}-{row['partition']}"
        if where not in seen:
            seen.add(where)
            yield from _cost(where, cell)
        if cell["answer"] == "not_told":
            yield f"{name}: cannot be told again: {cell['because']}."
        elif cell["answer"] == "not_lost" and not cell["answered"]:
            yield f"{name}: its producer or consumer would not have been promised it."
        elif cell["answer"] == "depends":
            yield f"{name}: depends on this step: {cell['depends_on']}."
            for word in ("kept", "lost"):
                steps = cell[f"{word}_in"][-MOST_STEPS:]
                yield f"  {word} if: {'; '.join(steps)}"


def _cost(where: str, cell: dict[str, Any]) -> Iterator[str]:
    if cell["answer"] == "not_told":
        return
    least, most = cell["records_refused"]
    before, after = cell["was_leaderless_ms"], cell["leaderless_ms"]
    refused = f"{counted(most, 'record')}" if least == most else f"{least} to {most} records"
    told = [] if not most else [f"{refused} fewer would have been answered for"]
    if _seconds(after) != _seconds(before):
        told.append(f"nobody would have led for {_seconds(after)}, where it was {_seconds(before)}")
    price = "; ".join(told) or "it costs nothing in this incident"
    ways = f"{counted(cell['stories'], 'course')} of events that the evidence allows"
    yield f"{where}: {price} (told in {ways})."


def _seconds(bounds: list[int]) -> str:
    least, most = (f"{ms / 1000:.1f}" for ms in bounds)
    return f"{least} s" if least == most else f"{least} to {most} s"
