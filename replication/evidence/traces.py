"""Whether a broker's trace of one replica is whole, and its lines in the order of what they say.

A trace proves by what it does not say, so one missing line makes it no trace. Appends tell: each
begins where the log ended before. Threads write the lines of one millisecond in any order; a high
watermark above the log's end is then one whose append is the next line.
"""

from collections.abc import Iterable

from replication.evidence.broker_log import LogLineFact

# What a trace consists of: with any of these missing, nothing is concluded from silence.
NEEDED_KINDS = frozenset(("log_appended", "high_watermark_set", "log_created"))
_HIGH_WATERMARKS = {
    "leader_high_watermark_updated": "to_high_watermark",
    "high_watermark_set": "high_watermark",
}


def in_order(lines: list[LogLineFact], broker: int) -> list[LogLineFact]:
    """The lines, each high watermark behind the appends of its millisecond that it rests on."""
    result: list[LogLineFact] = []
    waiting: list[LogLineFact] = []
    end: int | None = None
    for fact in lines:
        if waiting and fact.at != waiting[0].at:
            result += waiting
            waiting = []
        end = _log_end(end, fact)
        high_watermark = _high_watermark(fact, broker)
        if high_watermark is not None and end is not None and high_watermark > end:
            waiting.append(fact)
            continue
        result.append(fact)
        if fact.kind == "log_appended" and end is not None:
            result += [w for w in waiting if (_high_watermark(w, broker) or 0) <= end]
            waiting = [w for w in waiting if (_high_watermark(w, broker) or 0) > end]
    return result + waiting


def is_whole(lines: Iterable[LogLineFact], broker: int) -> bool:
    """Whether no append is missing from a trace, as far as the ones that are there tell.

    A high watermark above the known end is either an append that was not printed or a broker's
    fault: the next append says which.
    """
    end: int | None = None
    above: int | None = None
    for fact in lines:
        if fact.kind == "log_appended":
            first = fact.fields.get("first_offset")
            if end is not None and first is not None and first != end:
                return False
            above = None
        high_watermark = _high_watermark(fact, broker)
        end = _log_end(end, fact)
        if high_watermark is not None and end is not None and high_watermark > end:
            above = high_watermark
    return above is None


def _high_watermark(fact: LogLineFact, broker: int) -> int | None:
    name = _HIGH_WATERMARKS.get(fact.kind)
    if name is None or fact.fields.get("replica", broker) != broker:
        return None
    value = fact.fields.get(name)
    return value if isinstance(value, int) else None


def _log_end(end: int | None, fact: LogLineFact) -> int | None:
    """Where the log ends after a line."""
    f = fact.fields
    if fact.kind == "process_started":
        return None
    if fact.kind == "log_created":
        return 0
    if fact.kind in ("log_loaded", "became_leader", "became_follower"):
        return f.get("log_end_offset", end)
    if fact.kind == "log_appended":
        return f.get("end_offset", end)
    if fact.kind == "truncated" and f.get("to_offset") is not None:
        return int(f["to_offset"]) if end is None else min(end, int(f["to_offset"]))
    if fact.kind == "fetch_offset_reset":
        return None
    return end
