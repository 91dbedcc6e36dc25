"""Which incarnation of a topic a line or a promise is about, where it gives only the topic's name.

A broker that prints topic ids at all prints them in the order of the incarnations, so its own lines
tell, and no clock is compared with another's. Producers name no topic id: a payload that is in
the log of one incarnation is of that one, and those around it follow. Where that and the clocks
disagree, nothing is said.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise
from typing import TypeVar

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.clients.client_logs import Acknowledgement, Consumption
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.payload_ids import texts_of
from replication.evidence.joining.topic_lives import ON_DISK, Stretch, stretches
from replication.evidence.log_directories.record_payloads import read_record_identities
from replication.evidence.unreadable import Unreadable

ByClock = Callable[[str, int | None], str]
Promise = TypeVar("Promise", Acknowledgement, Consumption)


def incarnations_of_lines(
    facts: Iterable[LogLineFact], order: list[str], by_clock: ByClock, printed: Collection[str] = ()
) -> Iterator[tuple[LogLineFact, str]]:
    """(line, topic id) for one broker's lines about a topic's partitions, in their order.

    order: the topic's ids, oldest first. printed: those that any line of the broker names. A line
    without an id is of the life that it is in, and a life of which the broker prints none of an
    id between those of the lives around it. by_clock: where that leaves several. A log created
    where one was deleted is of another life, or of a replica that was moved away and back: what
    came before is of any life up to that one.
    """
    lines = [f for f in facts if f.topic is not None and f.partition is not None]
    lives, moved = stretches(lines), False
    if len(lives) < len(order):
        again = stretches(lines, others=True)
        if len(lives) < len(again) <= len(order):
            lives, moved = again, True
    ids = [_id_of(number, lives) for number in range(len(lives))]
    if len(lives) == len(printed) == 1:
        ids = list(printed)
    for number, life in enumerate(lives):
        between = [ids[number]] if ids[number] else _between(ids, number, order, moved)
        nearest = next((i for i in (*reversed(ids[:number]), *ids[number:]) if i), "")
        for fact in life.facts:
            timed = between[0] if len(between) == 1 else by_clock(str(fact.topic), fact.at)
            placed = timed if timed in between or not nearest else nearest
            yield fact, str(fact.fields.get("topic_id") or "") or placed


def _id_of(number: int, lives: list[Stretch]) -> str:
    """What a life's lines print: their own id, or again that of a life that was cut in two."""
    if lives[number].topic_id:
        return lives[number].topic_id
    before = next((life.topic_id for life in reversed(lives[:number]) if life.topic_id), "")
    facts = (f for f in lives[number].facts if f.kind not in ON_DISK)
    again = any(f.fields.get("topic_id") == before for f in facts)
    return before if before and again else ""


def _between(ids: list[str], number: int, order: list[str], moved: bool) -> list[str]:
    """The ids that a life without one may be of; one, where as many lives as ids lie between.

    moved: one life may have been cut in two, so that those around it may be of its id.
    """
    first = next((i + 1 for i in reversed(range(number)) if ids[i]), 0)
    last = next((i for i in range(number, len(ids)) if ids[i]), len(ids))
    lower = order.index(ids[first - 1]) + 1 if first and ids[first - 1] in order else 0
    upper = order.index(ids[last]) if last < len(ids) and ids[last] in order else len(order)
    if moved:
        return order[max(lower - 1, 0) : upper + 1]
    between = order[lower:upper]
    return between[number - first :][:1] if len(between) == last - first else between


def payloads_by_incarnation(
    copies: Iterable[tuple[str, Copy]], wanted: set[str]
) -> dict[str, set[str]]:
    """In which incarnations' logs each wanted payload id is found; copies: each with its topic
    id."""
    result: dict[str, set[str]] = {}
    for topic_id, copy in copies:
        for path, batch in copy.directory.iter_batches_with_path():
            records = read_record_identities(path, batch)
            for record in [] if isinstance(records, Unreadable) else records:
                for text in {text for _, text in texts_of(record)} & wanted:
                    result.setdefault(text, set()).add(topic_id)
    return result


def incarnations_of_promises(
    promises: Iterable[Promise],
    order: list[str],
    standing: dict[str, set[str]],
    by_clock: ByClock,
) -> Iterator[tuple[Promise, str | None]]:
    """(promise, topic id) for promises of one topic partition; None where it cannot be told.

    order: the topic's ids, oldest first. standing: of `payloads_by_incarnation`. One client's
    promises follow each other; one whose payload is found nowhere is of the incarnation around it,
    by its place in the client's log or by the time of what the same log shows to be of which.
    """
    by_client: dict[tuple[str, str], list[Promise]] = {}
    for promise in promises:
        by_client.setdefault((promise.path, promise.client), []).append(promise)
    for mine in by_client.values():
        mine.sort(key=lambda p: p.line)
    times = _times(by_client.values(), order, standing, by_clock)
    for mine in by_client.values():
        known = [_standing_in(p, standing) for p in mine]
        by_offsets = _by_offsets(mine, order)
        for index, promise in enumerate(mine):
            found = known[index]
            if found is not None or len(order) < 2:
                yield promise, found or by_clock(promise.topic, promise.ts)
                continue
            before = next((k for k in reversed(known[:index]) if k is not None), None)
            after = next((k for k in known[index + 1 :] if k is not None), None)
            timed = by_clock(promise.topic, promise.ts)
            lower = order.index(before) if before in order else 0
            upper = order.index(after) if after in order else len(order) - 1
            fits = order[lower : upper + 1]
            if len(fits) == 1:
                yield promise, fits[0]
            elif timed in fits and (
                timed == by_offsets[index]
                or _in_time(promise.ts, order.index(timed), times.get(promise.path, []))
            ):
                yield promise, timed
            else:
                yield promise, None


def _times(
    clients: Iterable[list[Promise]],
    order: list[str],
    standing: dict[str, set[str]],
    by_clock: ByClock,
) -> dict[str, list[tuple[int, int]]]:
    """By log, (time, place in the order) of the promises that are shown to be of an incarnation.

    By what is in its copies, else by a client's offsets where the clock never contradicts them.
    """
    times: dict[str, list[tuple[int, int]]] = {}
    for mine in clients:
        named = list(zip(mine, _by_offsets(mine, order), strict=True))
        agree = all(by in (None, by_clock(p.topic, p.ts)) for p, by in named if p.ts is not None)
        for promise, by in named:
            found = _standing_in(promise, standing) or (by if agree else None)
            if found in order and promise.ts is not None:
                times.setdefault(promise.path, []).append((promise.ts, order.index(found)))
    return times


def _in_time(ts: int | None, which: int, times: list[tuple[int, int]]) -> bool:
    """Whether a time is of an incarnation by what is known of the same log: after all that is of
    earlier ones, before all of later ones, and there is some of it or of a later one to tell."""
    if ts is None:
        return False
    earlier = [at for at, i in times if i < which]
    later = [at for at, i in times if i > which]
    begun = any(i == which and at <= ts for at, i in times)
    return max(earlier, default=ts) <= ts <= min(later, default=ts) and (begun or bool(later))


def _standing_in(
    promise: Acknowledgement | Consumption, standing: dict[str, set[str]]
) -> str | None:
    if promise.topic_id:
        return promise.topic_id
    places = standing.get(promise.payload_id or "", set())
    return next(iter(places)) if len(places) == 1 else None


def _by_offsets(mine: list[Promise], order: list[str]) -> list[str | None]:
    """The incarnation of each of a client's promises, by offsets, which begin anew with each."""
    placed = [p for p in mine if p.offset is not None]
    restarts = [b.line for a, b in pairwise(placed) if (b.offset or 0) < (a.offset or 0)]
    if len(restarts) != len(order) - 1:
        return [None] * len(mine)
    return [order[sum(1 for line in restarts if line <= p.line)] for p in mine]
