"""What clients were told, as runs of offsets with one identity each."""

from collections.abc import Iterable, Iterator

from replication.evidence.clients.client_logs import Acknowledgement
from replication.evidence.joining.acknowledged_twice import record_of, replaced, told_twice
from replication.evidence.joining.by_clock import epochs_by_clock
from replication.evidence.joining.copies import UNSEEN_CONTENT, Contents, Copy, latest
from replication.evidence.joining.event_order import LAST, Entry
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.payload_ids import Promise
from replication.evidence.joining.places import Place, sequence_key
from replication.evidence.joining.unseen_records import contents_of_unseen
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import clipped


def promised(evidence: PartitionEvidence) -> Iterator[Entry]:
    """Acknowledgements and consumptions as runs of offsets with one identity each.

    Raises by_clock.ClocksDisagree.
    """
    known = latest(evidence.copies)
    leader = leaders_copy(evidence)
    # Only where all that could lead was looked through, a payload found nowhere is gone.
    looked_at = [leader] if leader is not None else list(known.values())
    acked = [a for a in evidence.acknowledgements if a.status == "acked" and a.acks != "0"]
    repeated = _repeated(acked)
    if repeated:
        evidence.notes.append(
            f"{evidence.topic}-{evidence.partition}: {len(repeated)} payload ids were acknowledged "
            "at several offsets; they are not unique and are ignored"
        )
    claimed = _claimed(evidence, leader)
    others = claimed_elsewhere(evidence, leader)
    led = led_by(evidence)
    unseen, seen_there = _by_what_copies_show(evidence, acked, repeated, leader)
    gone = replaced(evidence, acked, unseen, seen_there, _wrote(leader, led, acked))
    compacted = _compacted(evidence, leader, {a.offset for a in acked if (a.path, a.line) in gone})
    twice = [a for several in told_twice(unseen).values() for a in several]
    if twice and _told_their_own(evidence, acked, twice, repeated, by_leaders=bool(compacted)):
        compacted |= _compacted(evidence, leader, {a.offset for a in twice})
    clocks = epochs_by_clock(evidence)
    rows: list[_Row] = []
    records: list[object] = []
    others_answered: Acknowledgement | None = None
    for a in acked:
        payload = None if a.payload_id in repeated else evidence.naming.name(a)
        name = _name(evidence.contents, a, payload)
        seen_all = _seen_all(evidence.contents, looked_at, by_payload=payload is not None)
        if payload is not None and not evidence.naming.is_declared(a):
            seen_all = seen_all and a.offset in claimed
        if payload is not None and not seen_all and a.offset in others:
            seen_all = _seen_all(evidence.contents, evidence.copies, by_payload=True)
        place = _place(evidence.contents, leader, a.offset, name, seen_all)
        if a.offset is not None and (a.path, a.line) in gone:
            shown = set() if name is not None else _shown_beside(evidence, leader, a.offset)
            place = (a.offset, *_gone(shown, leader))
        elif place is not None and place[0] in compacted and place[1:] == (None, None):
            place = (place[0], None, UNSEEN_CONTENT)
        if clocks is not None and place is not None and place[0] == a.offset:
            clocks.hold(a, place[1])
            if place[1:] == (None, None):
                place = (a.offset, clocks.epoch_of(a), None)
        if place is not None:
            by = a.broker if place[1] is None else None
            if a.acks == "1" and _is_anothers(led, a, place):
                others_answered = others_answered or a
            source = ev.Source(a.path, a.line)
            rows.append((place[0], a.acks, place[1], place[2], a.ts, source, by))
            records.append(record_of(a))
    if others_answered is not None:
        rows = [(*row[:6], None) for row in rows]
        evidence.notes.append(_said_of_brokers(evidence, others_answered))
    rows = _told_apart(rows, records)
    for index, run in enumerate(_runs(rows)):
        first, end, acks, leader_epoch, content, at, source, by, until = run
        ack = ev.RecordsAcknowledged(first, end, acks, leader_epoch, content, by, until)
        yield Entry(float(at or 0), LAST, 1 << 20, index, ack, source, "forensic", at)
    yield from _consumed(evidence, leader, looked_at, claimed)


def _consumed(
    evidence: PartitionEvidence, leader: Copy | None, looked_at: list[Copy], claimed: set[int]
) -> Iterator[Entry]:
    """Consumptions alone."""
    seen: list[_Row] = []
    for c in evidence.consumptions:
        payload = evidence.naming.name(c) if evidence.contents.payloads_read else None
        seen_all = _seen_all(evidence.contents, looked_at, by_payload=True)
        if not evidence.naming.is_declared(c):
            seen_all = seen_all and c.offset in claimed
        place = _place(evidence.contents, leader, c.offset, payload, seen_all)
        if place is not None:
            seen.append((place[0], "", place[1], place[2], c.ts, ev.Source(c.path, c.line), None))
    for index, (first, end, _, leader_epoch, content, at, source, *_) in enumerate(_runs(seen)):
        consumed = ev.RecordsConsumed(first, end, leader_epoch, content)
        yield Entry(float(at or 0), LAST, 1 << 21, index, consumed, source, "forensic", at)


def led_by(evidence: PartitionEvidence) -> dict[int, set[int]]:
    """The leaders of each leader epoch, as far as the controller's lines tell."""
    led: dict[int, set[int]] = {}
    for r in evidence.recorded:
        if r.fact.leader is not None:
            led.setdefault(r.fact.leader_epoch, set()).add(r.fact.leader)
    return led


def _wrote(
    leader: Copy | None, led: dict[int, set[int]], acked: list[Acknowledgement]
) -> dict[int, set[int]]:
    """The leaders of the epochs of those records in the leader's log whose offsets clients name."""
    offsets = {a.offset for a in acked if a.broker is not None} - {None}
    return {
        offset: led.get(span.leader_epoch, set())
        for span in (leader.spans if leader is not None else ())
        if span.leader_epoch is not None
        for offset in offsets.intersection(range(span.first_offset, span.end_offset))
        if offset is not None
    }


def _is_anothers(
    led: dict[int, set[int]], a: Acknowledgement, place: tuple[int, int | None, int | None]
) -> bool:
    """Whether the broker that is said to have answered did not lead when the record was written."""
    if a.broker is None or place[0] != a.offset or place[1] is None:
        return False
    return a.broker not in led.get(place[1], {a.broker})


def _said_of_brokers(evidence: PartitionEvidence, a: Acknowledgement) -> str:
    return (
        f"{evidence.topic}-{evidence.partition}: {a.path} line {a.line}: broker "
        f"{a.broker} did not lead when this record was written. So the field "
        "`broker` does not name the one that answered, and is not used"
    )


def unplaced(evidence: PartitionEvidence) -> list[Acknowledgement]:
    """Acknowledged records of which neither an offset nor a copy tells where they are.

    A producer that wrote twice is told of the second attempt without an offset; the first one's
    line may have it.
    """
    acked = [a for a in evidence.acknowledgements if a.status == "acked" and a.acks != "0"]
    told = {key for a in acked if a.offset is not None for key in _keys(a)}
    places = evidence.contents.places
    return [
        a
        for a in acked
        if a.offset is None
        and not told.intersection(_keys(a))
        and not places.get(_name(evidence.contents, a, evidence.naming.name(a)) or "")
    ]


def unanswered(evidence: PartitionEvidence) -> list[Acknowledgement]:
    """Sends of which nobody was told what became, and whose record no copy shows: it may have been
    written, and committed by a leader that was alone."""
    told = {k for a in evidence.acknowledgements if a.status == "acked" for k in _keys(a)}
    places = evidence.contents.places
    return [
        a
        for a in evidence.acknowledgements
        if a.status in ("sent", "unknown")
        and not told.intersection(_keys(a))
        and not places.get(_name(evidence.contents, a, evidence.naming.name(a)) or "")
    ]


def _keys(a: Acknowledgement) -> list[tuple[object, ...]]:
    """What tells a record from every other, of what its line says."""
    ids: list[tuple[object, ...]] = [] if a.payload_id is None else [("id", a.payload_id)]
    if None in (a.producer_id, a.producer_epoch, a.sequence):
        return ids
    return [*ids, (a.producer_id, a.producer_epoch, a.sequence)]


def leaders_copy(evidence: PartitionEvidence) -> Copy | None:
    """The last copy of the last recorded leader's log."""
    leaders = [r.fact.leader for r in evidence.recorded if r.fact.leader is not None]
    return latest(evidence.copies).get(leaders[-1]) if leaders else None


def _by_what_copies_show(
    evidence: PartitionEvidence,
    acked: list[Acknowledgement],
    repeated: set[str],
    leader: Copy | None,
) -> tuple[list[Acknowledgement], list[Acknowledgement]]:
    """Those whose record no copy shows, and those whose record is in the leader's log.

    An older copy says nothing of what is at the offset now.
    """
    unseen, seen_there = [], []
    for a in acked:
        name = _name(evidence.contents, a, evidence.naming.name(a))
        places = evidence.contents.places.get(name or "", [])
        if a.payload_id not in repeated and not places:
            unseen.append(a)
        elif any(place.offset == a.offset and _in_log(leader, place) for place in places):
            seen_there.append(a)
    return unseen, seen_there


def _told_their_own(
    evidence: PartitionEvidence,
    acked: list[Acknowledgement],
    twice: list[Acknowledgement],
    repeated: set[str],
    *,
    by_leaders: bool,
) -> bool:
    """Whether the clients that were told one offset of several records wrote down the offset of the
    very record, and not its batch's or another one's: what copies show of theirs is where they
    were told. by_leaders: where leaders wrote anew shows it, of clients whose records name nothing.
    """
    right: set[str] = set()
    wrong: set[str] = set()
    clients = {a.client for a in twice}
    for a in acked:
        if a.client in clients and a.offset is not None and a.payload_id not in repeated:
            name = _name(evidence.contents, a, evidence.naming.name(a))
            places = evidence.contents.places.get(name or "", [])
            if places:
                stands = any(place.offset == a.offset for place in places)
                (right if stands else wrong).add(a.client)
    return not wrong and (by_leaders or clients <= right)


def _shown_beside(
    evidence: PartitionEvidence, leader: Copy | None, offset: int
) -> set[tuple[int | None, int | None]]:
    """(leader epoch, content) of the records that copies show at an offset and the leader's log has
    not: one that nothing names and that is gone is one of these, if there are any."""
    held = [s for copy in evidence.copies for s in clipped(copy.spans, offset, offset + 1)]
    stands = clipped(leader.spans, offset, offset + 1) if leader is not None else []
    records = {(s.leader_epoch, s.content) for s in held}
    return records - {(s.leader_epoch, s.content) for s in stands}


def _compacted(
    evidence: PartitionEvidence, leader: Copy | None, offsets: set[int | None]
) -> set[int]:
    """Those of the offsets at which no copy shows a record, and the leader's log goes on behind."""
    if leader is None:
        return set()
    end = max((s.end_offset for s in leader.spans), default=0)
    held = [s for copy in evidence.copies for s in copy.spans]
    return {o for o in offsets if o is not None and o < end and not clipped(held, o, o + 1)}


def _gone(
    shown: set[tuple[int | None, int | None]], leader: Copy | None
) -> tuple[int | None, int | None]:
    """(leader epoch, content) of a record that nothing names and that is gone, of those that copies
    show beside the leader's log. Where that is not here, one of them may show what it has."""
    if shown and leader is None:
        return None, None
    return shown.pop() if len(shown) == 1 else (None, _unseen(shown))


def _unseen(shown: set[tuple[int | None, int | None]]) -> int | None:
    """The content of a record that none of the copies has; None where it may be one of several."""
    return None if shown else UNSEEN_CONTENT


def _claimed(evidence: PartitionEvidence, leader: Copy | None) -> set[int]:
    """Offsets with a record that some client names by its own id.

    A record whose id is found nowhere is gone from there. Where nobody names what is there, it
    may be the very record, and its id no name of it after all.
    """
    promises: list[Promise] = [*evidence.acknowledgements, *evidence.consumptions]
    named = {p.payload_id for p in promises} - {None}
    places = evidence.contents.places
    return {
        place.offset
        for payload_id in named
        for place in places.get(str(payload_id), ())
        if leader is None or _in_log(leader, place)
    }


def claimed_elsewhere(evidence: PartitionEvidence, leader: Copy | None) -> set[int]:
    """Offsets at which the leader has nothing (compacted), and every record that another copy shows
    is one that some client names by its own id: a record not found there is none of these."""
    promises: list[Promise] = [*evidence.acknowledgements, *evidence.consumptions]
    names, places = {p.payload_id for p in promises} - {None}, evidence.contents.places
    sought = {p.offset for p in promises if p.payload_id and p.payload_id not in places}
    named: dict[int, set[tuple[int | None, int | None]]] = {}
    for place in (p for name in names for p in places.get(str(name), ()) if p.offset in sought):
        named.setdefault(place.offset, set()).add((place.leader_epoch, place.content))
    spans = [] if leader is None else leader.spans
    return {
        offset
        for offset, known in named.items()
        if not clipped(spans, offset, offset + 1)
        and all(
            (s.leader_epoch, s.content) in known
            for copy in evidence.copies
            for s in clipped(copy.spans, offset, offset + 1)
        )
    }


def _repeated(acked: Iterable[Acknowledgement]) -> set[str]:
    seen: dict[str, int | None] = {}
    repeated = set()
    for a in acked:
        if a.payload_id is None or a.offset is None:
            continue
        if seen.setdefault(a.payload_id, a.offset) != a.offset:
            repeated.add(a.payload_id)
    return repeated


def _name(contents: Contents, a: Acknowledgement, payload: str | None) -> str | None:
    """By what an acknowledged record is looked for: its payload id, else its sequence number."""
    if payload is not None and contents.payloads_read:
        return payload
    if not contents.sequences_read or a.producer_id is None or a.producer_epoch is None:
        return None
    return None if a.sequence is None else sequence_key(a.producer_id, a.producer_epoch, a.sequence)


def _seen_all(contents: Contents, copies: list[Copy], *, by_payload: bool) -> bool:
    """Whether a name that none of the copies showed is in none of them."""
    hidden = contents.unread | contents.damaged if by_payload else contents.damaged
    return bool(copies) and not any(c.path in hidden for c in copies)


def _place(
    contents: Contents,
    leader: Copy | None,
    offset: int | None,
    name: str | None,
    seen_all: bool,
) -> tuple[int, int | None, int | None] | None:
    """Offset, leader epoch and content of the very record that was promised, as far as known."""
    if name is None:
        return None if offset is None else (offset, None, None)
    places = contents.places.get(name, [])
    surviving = [p for p in places if _in_log(leader, p)]
    here = [p for p in places if p.offset == offset]
    for choice in ([p for p in surviving if p.offset == offset], surviving, here, places):
        if choice:
            at, content = choice[0].offset, choice[0].content
            # One that an idempotent producer sent again may be there under two leader epochs.
            epochs = {p.leader_epoch for p in choice if (p.offset, p.content) == (at, content)}
            return at, epochs.pop() if len(epochs) == 1 else None, content
    return None if offset is None else (offset, None, UNSEEN_CONTENT if seen_all else None)


def _in_log(copy: Copy | None, place: Place) -> bool:
    if copy is None:
        return False
    return any(
        s.content == place.content and s.leader_epoch == place.leader_epoch
        for s in clipped(copy.spans, place.offset, place.offset + 1)
    )


# Clients that write side by side are told in another order than they wrote, by less than this, ms.
_IN_TURN = 1_000
# Offset, acks, leader epoch, content, time, source, and who answered where the epoch is unknown.
_Row = tuple[int, str, int | None, int | None, int | None, ev.Source, int | None]
# First and end offset, and of the first row the rest; the last moment of all, if each has one.
_Run = tuple[
    int, int, str, int | None, int | None, int | None, ev.Source, int | None, int | None
]  # fmt: skip


def _told_apart(rows: list[_Row], records: list[object]) -> list[_Row]:
    """With a content of its own for each of the records at one offset that no copy shows. records:
    what tells each row's record from every other; of one that is told twice the first time counts.
    """
    first: dict[tuple[int, object], int] = {}
    for row, record in zip(rows, records, strict=True):
        if row[3] == UNSEEN_CONTENT:
            at, place = row[4] or 0, (row[0], record)
            first[place] = min(at, first.get(place, at))
    contents = contents_of_unseen((place[0], at, place) for place, at in first.items())
    return [
        (*row[:3], contents[row[0], record], *row[4:]) if row[3] == UNSEEN_CONTENT else row
        for row, record in zip(rows, records, strict=True)
    ]


def _runs(rows: list[_Row]) -> list[_Run]:
    """Rows of single offsets as runs of neighbours with equal identity; the first row's source.

    A record that was acknowledged before the one below it has nothing to do with that one.
    """
    ordered = sorted(
        set(rows),
        key=lambda r: (
            *(r[0], r[1], r[2] or -1, r[3] or -1),
            *(r[4] or 0, r[5].path, r[5].line or 0),
        ),
    )
    result: list[_Run] = []
    open_runs: dict[tuple[str | int | None, ...], int] = {}
    told: dict[tuple[str | int | None, ...], int] = {}
    for offset, acks, leader_epoch, content, at, source, by in ordered:
        key = (acks, leader_epoch, content, by)
        index = open_runs.get(key)
        is_earlier = at is not None and at + _IN_TURN < told.get(key, at)
        told[key] = told.get(key, 0) if at is None else at
        if index is not None and result[index][1] >= offset and not is_earlier:
            first, end, *rest, until = result[index]
            until = None if until is None or at is None else max(until, at)
            result[index] = (first, max(end, offset + 1), *rest, until)  # type: ignore[assignment]
            continue
        open_runs[key] = len(result)
        result.append((offset, offset + 1, acks, leader_epoch, content, at, source, by, at))
    return result
