"""What was recognised of the evidence, and what was not, in a few lines."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from replication.reports.safe_text import escaped

MOST_SHOWN = 8
# Of how many partitions the same is said one by one.
_SAID_OF = 3


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `3 files`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def of_first_partitions(notes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """What is said of the first partitions, each by its name, and of how many more there are."""
    told = list(notes)
    yield from (f"{partition}: {words}" for partition, words in told[:_SAID_OF])
    if len(told) > _SAID_OF:
        yield f"the same holds of {counted(len(told) - _SAID_OF, 'more partition')}"


def inventory_text(inventory: dict[str, Any]) -> list[str]:
    """The short form: a line per broker, a line per other file, what was left aside by reason."""
    if not inventory:
        return []
    clusters = {row["cluster_id"] for row in inventory["brokers"]}
    lines = ["Evidence:"]
    for row in inventory["brokers"]:
        cluster = f" of {row['cluster_id']}" if len(clusters) > 1 and row["cluster_id"] else ""
        lines.append(f"  broker {row['broker']}{cluster}: {broker_words(row)}")
    other = Counter(row["kind"] for row in inventory["files"])
    for kind, count in sorted(other.items()):
        first = next(row["path"] for row in inventory["files"] if row["kind"] == kind)
        more = "" if count == 1 else f" and {count - 1} more"
        lines.append(f"  {kind}: {first}{more}")
    for path in inventory["archives"][:MOST_SHOWN]:
        lines.append(f"  opened: {path}")
    ignored = inventory["ignored"]
    if ignored:
        lines.append(f"  left aside: {counted(len(ignored), 'file')}")
        for reason, count in Counter(row["reason"] for row in ignored).most_common(MOST_SHOWN):
            first = next(row["path"] for row in ignored if row["reason"] == reason)
            more = "" if count == 1 else f" and {count - 1} more"
            lines.append(f"    {first}{more}: {reason}")
    return [*lines, ""]


def broker_words(row: dict[str, Any]) -> str:
    """What there is of one broker."""
    parts = []
    if row["logs"]:
        told = counted(len(row["logs"]), "broker log")
        span = _span(row["logs"])
        parts.append(told + (f" ({span})" if span else ""))
    if row["directories"]:
        partitions = sum(d["partitions"] for d in row["directories"])
        told = counted(len(row["directories"]), "log directory", "log directories")
        parts.append(f"{told} with {counted(partitions, 'partition')}")
        if any(d["metadata_log"] for d in row["directories"]):
            parts.append("the metadata log")
    if row["dumps"]:
        parts.append(counted(sum(d["segments"] for d in row["dumps"]), "dumped segment"))
    return ", ".join(parts) or "nothing"


def _span(logs: list[dict[str, Any]]) -> str:
    """The time that the logs' lines cover, in UTC where their zone is known."""
    return span_of(logs) or "without dates"


def span_of(logs: list[dict[str, Any]]) -> str:
    """`.. to .. UTC`, and the zone that the logs print; nothing where they have no dates."""
    dated = [x for x in logs if x["first_at"] is not None and x["last_at"] is not None]
    if not dated:
        return ""
    known = zones_are_known(dated)
    ahead = [(x.get("minutes_ahead_of_utc") or 0) if known else 0 for x in dated]
    first = min(x["first_at"] - 60_000 * a for x, a in zip(dated, ahead, strict=True))
    last = max(x["last_at"] - 60_000 * a for x, a in zip(dated, ahead, strict=True))
    if not known:
        zone = "local time of an unknown zone (say it with --time-zone)"
        return f"{moment(first)} to {moment(last)}, {zone}"
    zones = sorted(set(ahead) - {0})
    printed = f" (the logs print {', '.join(map(zone_words, zones))})" if zones else ""
    return f"{moment(first)} to {moment(last)} UTC{printed}"


def zones_are_known(logs: list[dict[str, Any]]) -> bool:
    """Whether the zone is known in which each log prints the time, if it does."""
    return all(x.get("zone_known_by") for x in logs if x["first_at"] is not None)


def zone_is_known(answer: dict[str, Any]) -> bool:
    """Whether the answer's moments are UTC: no log printed them in a zone that nothing shows."""
    brokers = (answer.get("inventory") or {}).get("brokers", ())
    return zones_are_known([log for broker in brokers for log in broker["logs"]])


def clock_words(answer: dict[str, Any]) -> str:
    """What a moment rests on: whose clock tells it. Events alone do not know their zone."""
    if not (answer.get("inventory") or {}).get("brokers"):
        return "by the clock of who saw it"
    return "UTC" if zone_is_known(answer) else "local time, zone unknown"


def zone_words(ahead: int) -> str:
    """`UTC+05:30`. ahead: minutes."""
    hours, minutes = divmod(abs(ahead), 60)
    return f"UTC{'-' if ahead < 0 else '+'}{hours:02d}:{minutes:02d}"


def moment(at: int) -> str:
    """Milliseconds since 1970 as date and time."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def inventory_html(inventory: dict[str, Any]) -> str:
    """All of it, for the page: folded, every file by name."""
    if not inventory:
        return ""
    rows: list[tuple[str, str]] = []
    for broker in inventory["brokers"]:
        who = f"broker {broker['broker']}"
        for log in broker["logs"]:
            span = _span([log])
            told = f"broker log, {counted(log['lines'], 'telling line')}"
            rows.append((log["path"], f"{who}: {told}, {span} (known by {log['known_by']})"))
        for d in broker["directories"]:
            told = f"log directory with {counted(d['partitions'], 'partition')}"
            rows.append((d["path"], f"{who}: {told} (known by {d['known_by']})"))
        for dump in broker["dumps"]:
            told = counted(dump["segments"], "dumped segment")
            rows.append((dump["path"], f"{who}: {told}"))
    rows += [(row["path"], row["kind"]) for row in inventory["files"]]
    rows += [(path, "archive, opened") for path in inventory["archives"]]
    rows += [(row["path"], f"left aside: {row['reason']}") for row in inventory["ignored"]]
    body = "".join(
        f"<tr><td>{escaped(path)}</td><td>{escaped(told)}</td></tr>" for path, told in rows
    )
    summary = f"What was read, and what was left aside ({counted(len(rows), 'entry', 'entries')})"
    return (
        f'<section id="inventory"><details><summary>{summary}</summary>'
        f"<table><tbody>{body}</tbody></table></details></section>"
    )
