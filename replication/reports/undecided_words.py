"""What is seen of partitions that are not decided.

Unclean elections, older copies that alone hold records, the last leaders, and where logs ended.
"""

from typing import Any

from replication.protocol.ground.events import UNCLEAN_KINDS
from replication.reports.do_now import has_stopped
from replication.reports.headline import counted, undecided
from replication.reports.natural import names, of_partition
from replication.reports.vocabulary import runs_of_offsets

MOST_SEEN = 6


def seen_of(answer: dict[str, Any]) -> list[str]:
    """A line for each older copy that alone holds records and each unclean election, and for
    each partition its last leader and where logs ended, as far as was read."""
    open_ones = {_identity(v) for v in undecided(answer)}
    rows = [p for p in answer["partitions"] if _identity(p) in open_ones]
    rows.sort(key=of_partition)
    told = [*_copies(rows), *_elections(rows), *(_state(p) for p in rows if _state(p))]
    if not told:
        return []
    lines = ["What is seen all the same:", *(f"  {t}" for t in told[:MOST_SEEN])]
    left = len(told) - MOST_SEEN
    return [*lines, *([f"  ... and {left} more (--format json has all)"] if left > 0 else [])]


def _identity(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["cluster_id"], row["topic"], row["topic_id"], row["partition"])


def _copies(partitions: list[dict[str, Any]]) -> list[str]:
    """Older copies with records that no log here has, those with most first."""
    found = [
        (sum(end - first for first, end in copy["alone"]), p, copy)
        for p in partitions
        for copy in p.get("older_copies", ())
        if copy["alone"]
    ]
    found.sort(key=lambda each: -each[0])
    lines = []
    for number, p, copy in found:
        where = runs_of_offsets(copy["alone"])
        place = f" ({copy['path']})" if copy["path"] else ""
        lines.append(
            f"{p['topic']}-{p['partition']}: an older copy of broker {copy['replica']} holds "
            f"what was at {counted(number, 'offset')} and no replica's log here has, {where}{place}"
        )
    return lines


def _elections(partitions: list[dict[str, Any]]) -> list[str]:
    """Unclean elections; those of one leader at one moment are one line."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for p in partitions:
        for e in p["elections"]:
            if e["kind"] in UNCLEAN_KINDS:
                moment = (e["observed_at"] or "")[:19]
                groups.setdefault((e["leader"], moment), []).append(p)
    return [
        f"{names(rows, 3)}: broker {leader} was elected although it was not in sync"
        + (f" at {moment}" if moment else "")
        + " (unclean election): records that only in-sync replicas had may be lost"
        for (leader, moment), rows in sorted(groups.items(), key=lambda kv: -len(kv[1]))
    ]


def _state(p: dict[str, Any]) -> str:
    """Leader, ISR and the ends of logs as far as the evidence names them."""
    told = []
    if p["leader"] is not None:
        since = f" in leader epoch {p['leader_epoch']}" if p["leader_epoch"] is not None else ""
        isr = f", ISR {', '.join(map(str, p['isr']))}" if p["isr"] else ""
        down = has_stopped(p, p["leader"])
        told.append(f"broker {p['leader']} {'led last' if down else 'leads'}{since}{isr}")
        told += ["it has stopped"] if down else []
    for r in p["replicas"]:
        ends = (("log end", r["log_end_offset"]), ("high watermark", r["high_watermark"]))
        known = [f"{what} {offset}" for what, offset in ends if offset is not None]
        if known:
            told.append(f"broker {r['replica']}: {', '.join(known)}")
    return f"{p['topic']}-{p['partition']}: {'; '.join(told)}" if told else ""
