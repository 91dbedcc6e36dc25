"""Whether a broker's trace of one replica is whole, and its lines in the order of what they say.

A trace proves by what it does not say, so one missing line makes it no trace. Appends tell: each
begins where the log ended before. Threads write the lines of one millisecond in any order; a high
watermark above the log's end is then one whose append is the next line.
"""

from collections.abc import Iterable

from replication.evidence.broker_logs.broker_log import LogLineFact

# What a trace consists of: with any of these missing, nothing is concluded from silence.
NEEDED_KINDS = frozenset(("log_appended", "high_watermark_set", "log_created"))
_FOLLOWS = frozenset(("leader_and_isr_received", "became_follower"))
_ROLES = frozenset(("became_leader", "became_follower"))
_HIGH_WATERMARKS = {
    "leader_high_watermark_updated": "to_high_watermark",
    "high_watermark_set": "high_watermark",
}


def in_order(lines: list[LogLineFact], broker: int) -> list[LogLineFact]:
    """The lines, each high watermark behind the appends of its millisecond that it rests on, each
    cut behind the role of its millisecond, from another file, for which a follower makes it, and
    each request for another role behind the appends that its broker still made in the one before.
    """
    lines = _roles_before_cuts(_requests_as_obeyed(lines, broker), broker)
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


def _roles_before_cuts(lines: list[LogLineFact], broker: int) -> list[LogLineFact]:
    """With a role as follower before the cuts of the same millisecond: a leader cuts nothing."""
    result: list[LogLineFact] = []
    for fact in lines:
        place = len(result)
        if fact.kind in _FOLLOWS and fact.fields.get("leader") not in (None, broker):
            same = place
            while same and fact.at is not None and result[same - 1].at == fact.at:
                same -= 1
                if result[same].kind == "truncated" and result[same].path != fact.path:
                    place = same
        result.insert(place, fact)
    return result


def _requests_as_obeyed(lines: list[LogLineFact], broker: int) -> list[LogLineFact]:
    """With a request for another role where its broker removes its fetchers for that: what is
    appended before, it appends in its role of before (`makeFollowers`, `makeLeaders`)."""
    result: list[LogLineFact] = []
    asked: int | None = None
    led: bool | None = None
    appended = False
    for fact in lines:
        if asked is not None and fact.kind == "fetcher_removed" and appended:
            result.append(result.pop(asked))
        if fact.kind in ("fetcher_removed", "process_started"):
            asked = None
        if fact.kind == "process_started":
            led = None
        appended = appended or fact.kind == "log_appended"
        if fact.kind == "leader_and_isr_received":
            leads = fact.fields.get("leader") == broker
            asked = len(result) if leads is not led and led is not None else None
            led, appended = leads, False
        result.append(fact)
    return result


def is_whole(lines: Iterable[LogLineFact], broker: int) -> bool:
    """Whether no line is missing from a trace, as far as the ones that are there tell.

    An append begins where the log ended, as does a role; a start loads no more than there was; a
    change of role names the leader epoch before it. A high watermark above the known end is either
    an append that was not printed or a broker's fault: the same life's next append says which.
    """
    end: int | None = None
    above = False
    leader_epoch: int | None = None
    left: int | None = None
    for fact in lines:
        f = fact.fields
        if fact.kind == "process_started":
            if above:
                return False
            leader_epoch, left = None, end
        elif fact.kind == "log_appended" and end is not None:
            if f.get("first_offset", end) != end:
                return False
            above = False
        elif fact.kind == "log_loaded" and left is not None:
            if (f.get("log_end_offset") or 0) > left:
                return False
        elif fact.kind in _ROLES:
            # A follower prints its new epoch as the one before (seen in 4.1).
            before = f.get("previous_leader_epoch")
            told = before is not None and leader_epoch is not None
            if told and before not in (leader_epoch, f.get("leader_epoch")):
                return False
            if end is not None and f.get("log_end_offset", end) != end:
                return False
            leader_epoch = f.get("leader_epoch")
        high_watermark = _high_watermark(fact, broker)
        end = _log_end(end, fact)
        above = above or (high_watermark is not None and end is not None and high_watermark > end)
    return not above


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
