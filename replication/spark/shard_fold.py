"""Folds frames of events, one shard of topic partitions at a time, and writes down what comes out.

A shard is what the stream keeps under one key: the encoded states of its topic partitions, of
which only those that have events in a micro-batch are decoded.
"""

import gc
import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from replication.protocol.folding import steady
from replication.protocol.folding.codec import CorruptState
from replication.protocol.folding.sequencing import HELD_LIMIT
from replication.spark import contracts
from replication.spark.partition_fold import (
    COUNTS,
    ROWS_OF,
    Out,
    PartitionFold,
)
from replication.spark.topic_partition_ids import parts_of
from replication.spark.transport import ABSENT, Rows

OUT_DDL = "out_table string, topic_partition_id string, replaces boolean, rows string, state binary"
OUT_NAMES = tuple(part.strip().split(" ")[0] for part in OUT_DDL.split(","))
FIGURES, REFOLD, STATE = "_figures", "_refold", "_state"
SHARD_MAGIC = b"RSH1"
# What takes the place of a refold's state, when a partition could not be folded again.
UNSETTLED = b"unsettled:"
ASKS_AGAIN = (
    "folded again from all stored events, the partition asks for that once more: a defect of this "
    "tool; the answer stays as it was"
)
COUNT = struct.Struct(">I")
SLOT = ["topic_partition_id", "trace_generation", "trace_id", "sequence"]
# Late rows of a partition go out in pieces of this many, so that no row of a frame is huge.
PIECE = 5_000


# What a state holds stays until its shard is done: to look for garbage as often as Python does
# takes a third of judging, and a tenth of folding.
GARBAGE_AFTER = 50_000

# By the code of a kind: what folds it where nothing new is learnt, None where that never happens.
STEPS = [steady.STEPS.get(kind) for kind in contracts.event_kinds()]


@dataclass
class ShardFold:
    """The topic partitions of one shard. blobs: encoded ones that nothing has touched yet."""

    limit: int = HELD_LIMIT
    blobs: dict[str, bytes] = field(default_factory=dict)
    live: dict[str, PartitionFold] = field(default_factory=dict)
    before: dict[str, dict[str, int]] = field(default_factory=dict)
    rows_in: int = 0
    ignored: int = 0
    newest_event_time: int = ABSENT

    def __post_init__(self) -> None:
        gc.set_threshold(GARBAGE_AFTER)

    def partition(self, name: str) -> PartitionFold:
        """The topic partition of that id, decoded on its first use."""
        known = self.live.get(name)
        if known is None:
            data = self.blobs.pop(name, None)
            known = PartitionFold(name) if data is None else PartitionFold.decode(name, data)
            self.live[name] = known
            self.before[name] = known.counts()
        return known

    def take(self, frame: pd.DataFrame) -> None:
        """Takes the events of a frame of transport's columns, in any order."""
        rows = Rows(frame)
        self.rows_in += len(frame)
        self.newest_event_time = max(self.newest_event_time, rows.newest_event_time)
        # Within a partition the winning trace first, then its order.
        order = np.lexsort(
            (rows.sequence, _descending(rows.traces)[rows.trace_codes], -rows.generation,
             rows.codes)
        )  # fmt: skip
        codes = rows.codes[order]
        starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
        for first, end in zip(starts, [*starts[1:], len(codes)], strict=True):
            self._take_partition(rows, order[first:end])

    def _take_partition(self, rows: Rows, places: "np.ndarray[Any, Any]") -> None:
        name = rows.names[rows.codes[places[0]]]
        part = self.partition(name)
        ingest = rows.ingest[places]
        if part.folded >= 0:
            known = ingest <= part.folded
            self.ignored += int(known.sum())
            places, ingest = places[~known], ingest[~known]
            if not len(places):
                return
        part.ingest = max(part.ingest, int(ingest.max()))
        first = int(places[0])
        trace = (int(rows.generation[first]), rows.traces[rows.trace_codes[first]])
        sequence = rows.sequence[places]
        one_trace = (rows.generation[places] == trace[0]).all() and (
            rows.trace_codes[places] == rows.trace_codes[first]
        ).all()
        gap_free = (
            len(sequence) == int(sequence[-1]) - int(sequence[0]) + 1
            and (np.diff(sequence) == 1).all()
        )
        plain = one_trace and gap_free and part.enter_trace(trace)
        if plain and part.sequencer.is_next(int(sequence[0])):
            self._fold_run(part, rows, places)
            return
        identity = parts_of(name).identity
        for place in places.tolist():
            part.offer(rows.event(place, identity), self.limit)
        part.drain(self.limit)

    def _fold_run(self, part: PartitionFold, rows: Rows, places: "np.ndarray[Any, Any]") -> None:
        """Folds events that are simply the next ones of their trace."""
        identity = parts_of(part.topic_partition_id).identity
        state = part.present_state()
        refused = 0
        columns = [column[places].tolist() for column in rows.step_columns]
        # Names for all six: gathering them in a list costs a tenth of the fold.
        for i, kind, traced, word, a0, a1, a2, a3, a4, a5 in zip(
            places.tolist(), *columns, strict=True
        ):
            step = STEPS[kind]
            try:
                if step is not None and step(state, a0, a1, a2, a3, a4, a5, word, traced):
                    continue
            except Exception as error:
                part.fail(rows.event(i, identity), error)
                refused += 1
                continue
            if not part.fold_one(rows.event(i, identity)):
                refused += 1
        part.sequencer.advance(len(places))
        for _ in range(refused):
            part.sequencer.reject()

    def adopt(self, name: str, data: bytes, ingest: int) -> None:
        """Takes over what a refold made of a partition's events up to a micro-batch of the ingest.

        Where newer events have come by since, the refold is asked for again. Data that begins with
        UNSETTLED says instead why it was not folded again.
        """
        part = self.partition(name)
        if data.startswith(UNSETTLED):
            part.cannot_settle(data.removeprefix(UNSETTLED).decode())
            return
        again = PartitionFold.decode(name, data)
        if again.asks_for_refold:
            # All that is stored was folded, and it asks for the same once more: it would for ever.
            part.cannot_settle(ASKS_AGAIN)
            return
        again.folded = ingest
        if part.ingest > ingest:
            part.refold_again = True
            return
        again.digests, again.findings, again.ingest = part.digests, part.findings, part.ingest
        again.standing, again.unjudged, again.afresh = part.standing, part.unjudged, True
        self.live[name] = again

    def touch_all(self) -> None:
        """Makes every partition of the shard one that answers anew."""
        for name in list(self.blobs):
            self.partition(name)

    def outcome(self) -> Iterator[Out]:
        """The rows that go out: changed answers, what was refused, refolds asked for, figures."""
        figures = dict.fromkeys((*COUNTS, *ROWS_OF.values()), 0)
        for name, part in self.live.items():
            part.answer()
            sequencer = part.sequencer
            if part.asks_for_refold:
                next_sequence = sequencer.next_sequence if sequencer.stalled else ABSENT
                yield Out(REFOLD, name, [{"next_sequence": next_sequence}])
                part.refold_again = False
            yield from part.take_out()
            after, before = part.counts(), self.before[name]
            for key in after:
                figures[key] += after[key] - before[key]
        newest = self.newest_event_time
        yield Out(FIGURES, "", [{
            **figures, "rows_in": self.rows_in, "ignored": self.ignored,
            "newest_event_time": newest if newest >= 0 else None,
        }])  # fmt: skip

    def encode(self) -> bytes:
        """All partitions of the shard as bytes."""
        blobs = self.blobs | {name: part.encode() for name, part in self.live.items()}
        parts = [SHARD_MAGIC, COUNT.pack(len(blobs))]
        for name, blob in blobs.items():
            text = name.encode()
            parts += [COUNT.pack(len(text)), text, COUNT.pack(len(blob)), blob]
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes, limit: int = HELD_LIMIT) -> "ShardFold":
        """The shard of encode(). Raises CorruptState."""
        view = memoryview(data)
        if bytes(view[:4]) != SHARD_MAGIC:
            raise CorruptState("the state of a shard begins with other bytes than it should")
        (count,) = COUNT.unpack_from(view, 4)
        position = 8
        blobs = {}
        try:
            for _ in range(count):
                (length,) = COUNT.unpack_from(view, position)
                name = bytes(view[position + 4 : position + 4 + length]).decode()
                position += 4 + length
                (length,) = COUNT.unpack_from(view, position)
                blobs[name] = bytes(view[position + 4 : position + 4 + length])
                position += 4 + length
        except struct.error as error:
            raise CorruptState(f"the state of a shard is cut: {error}") from None
        return cls(limit=limit, blobs=blobs)


def _descending(texts: list[str]) -> "np.ndarray[Any, Any]":
    """Each text's place in descending order."""
    places = np.empty(len(texts), dtype=np.int64)
    for place, index in enumerate(sorted(range(len(texts)), key=lambda i: texts[i], reverse=True)):
        places[index] = place
    return places


def out_frame(outs: Iterable[Out]) -> pd.DataFrame:
    """Rows that go out as a frame of OUT_DDL."""
    table, name, replaces, rows = [], [], [], []
    for out in outs:
        pieces = [out.rows]
        if len(out.rows) > PIECE and not out.replaces:
            pieces = [out.rows[i : i + PIECE] for i in range(0, len(out.rows), PIECE)]
        for piece in pieces:
            table.append(out.table)
            name.append(out.topic_partition_id)
            replaces.append(out.replaces)
            rows.append(json.dumps(piece, separators=(",", ":")))
    states = [None] * len(table)
    columns = zip(OUT_NAMES, (table, name, replaces, rows, states), strict=True)
    return pd.DataFrame(dict(columns))


def fold_sorted(
    frames: Iterable[pd.DataFrame], limit: int, with_states: bool
) -> Iterator[pd.DataFrame]:
    """Folds frames whose rows are sorted by partition, winning trace and sequence; one pass.

    with_states: for each partition its encoded state too, as a row of table _state.
    """
    shard = ShardFold(limit=limit)
    carried: pd.DataFrame | None = None
    for frame in frames:
        if not len(frame):
            continue
        both = frame if carried is None else pd.concat([carried, frame], ignore_index=True)
        last = both.iloc[-1]
        # A slot with two contents must be seen whole: the last slot waits for the next frame. Only
        # of its own trace: another one's slot that waited would be a gap, for those behind it.
        same = (both[SLOT] == last[SLOT]).all(axis=1)
        carried = both[same].reset_index(drop=True)
        ready = both[~same]
        if len(ready):
            shard.take(ready.reset_index(drop=True))
        yield from _finished(shard, str(last["topic_partition_id"]), with_states)
    if carried is not None:
        shard.take(carried)
    yield from _finished(shard, None, with_states)


def _finished(shard: ShardFold, open_name: str | None, with_states: bool) -> Iterator[pd.DataFrame]:
    """The outcome of all partitions but the one that is still open."""
    kept = shard.live.pop(open_name, None) if open_name is not None else None
    before = shard.before.get(open_name or "")
    if shard.live or open_name is None:
        # Before the answer: what goes out of a refold goes out where the stream takes it over.
        encoded = [(n, part.encode()) for n, part in shard.live.items()] if with_states else []
        frame = out_frame(shard.outcome())
        if with_states:
            states = pd.DataFrame(
                [(STATE, name, False, "[]", data) for name, data in encoded], columns=OUT_NAMES
            )
            frame = pd.concat([frame, states], ignore_index=True)
        yield frame
        shard.live, shard.before = {}, {}
        shard.rows_in = shard.ignored = 0
    if kept is not None and open_name is not None:
        shard.live[open_name] = kept
        shard.before[open_name] = before or dict.fromkeys((*COUNTS, *ROWS_OF.values()), 0)
