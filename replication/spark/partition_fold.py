"""One topic partition in a Spark host: its place in the trace, its state, its rows of the tables.

No Spark in here: the stateful stream, the batch replay and the tests call the same class. What
goes out are rows as JSON text by table, and only for tables whose rows have changed.
"""

import hashlib
import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from replication.protocol.folding import codec, fold
from replication.protocol.folding.sequencing import (
    HELD_LIMIT,
    Sequencer,
    gap_of,
    several_imports,
    with_gap,
)
from replication.protocol.ground import wire
from replication.protocol.ground.events import Event
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement import risk_watch
from replication.protocol.judgement.defects import answer_or_defect, cannot_be_folded
from replication.spark import contracts
from replication.spark.topic_partition_ids import parts_of

STATE_MAGIC = b"RPF5"
HEAD = struct.Struct(">4sI")
ANSWER_TABLES = (
    "replica_states", "verdicts", "loss_ledger", "divergences", "findings", "at_risk",
)  # fmt: skip
APPENDED_TABLES = ("isr_and_leadership", "quarantine")
TABLES = ANSWER_TABLES + APPENDED_TABLES
# What a note on a partition of several imports is called in `quarantine`.
SEVERAL_IMPORTS = "several_imports"
LEADERSHIP_KINDS = ("leadership_recorded", "became_leader", "became_follower")
# The figure that says by how much a table's rows have changed.
ROWS_OF = {table: f"rows/{table}" for table in TABLES}
COUNTS = (
    "applied", "duplicates", "quarantined", "held", "superseded", "findings", "held_in_state",
)  # fmt: skip


@dataclass(slots=True)
class Out:
    """Rows that go out of the fold. replaces: rows of this partition are in the table already."""

    table: str
    topic_partition_id: str
    rows: list[dict[str, Any]]
    replaces: bool = False


@dataclass(slots=True)
class PartitionFold:
    """One topic partition. ingest: the newest micro-batch of the ingest that was seen; folded: the
    newest one that a refold has covered, whose events count for nothing when they come by.
    refold_again: a refold came that did not cover all that had been seen. standing: by table the
    rows of this partition that are there; afresh: those of appended tables are to be replaced,
    because what they tell of has turned out not to count. defect: what of this tool failed while
    folding; unjudged: or while judging, the last time. unsettled: it can't be folded again, because
    events of its trace were deleted."""

    topic_partition_id: str
    sequencer: Sequencer = field(default_factory=Sequencer)
    state: State | None = None
    digests: dict[str, str] = field(default_factory=dict)
    findings: int = 0
    ingest: int = -1
    folded: int = -1
    out: list[Out] = field(default_factory=list)
    leadership: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    late: list[dict[str, Any]] = field(default_factory=list)
    refold_again: bool = False
    standing: dict[str, int] = field(default_factory=dict)
    afresh: bool = False
    defect: str | None = None
    unjudged: str | None = None
    unsettled: bool = False

    def counts(self) -> dict[str, int]:
        """The sequencer's counts, the number of findings, of events that the state itself holds,
        and of the rows in each table."""
        rows = {figure: self.standing.get(table, 0) for table, figure in ROWS_OF.items()}
        own = {"findings": self.findings, "held_in_state": len(self.sequencer.held)}
        return {**self.sequencer.counts(), **own, **rows}

    def enter_trace(self, trace: tuple[int, str]) -> bool:
        """Whether events of trace count; a higher trace makes the state start afresh."""
        before = self.sequencer.trace
        known = several_imports(self.sequencer)
        counts = self.sequencer.start_trace(trace)
        if counts and before != trace:
            self.state = self.defect = None
            self.unsettled = False
            self.leadership, self.refused = [], []
            self.afresh = True
        several = several_imports(self.sequencer)
        if several is not None and several != known:
            self.refuse(None, None, SEVERAL_IMPORTS, several)
        return counts

    def present_state(self) -> State:
        """The state, a new one where nothing has been folded yet."""
        if self.state is None:
            self.state = fold.new_state(*parts_of(self.topic_partition_id).identity)
        return self.state

    def offer(self, event: Event, limit: int = HELD_LIMIT) -> None:
        """Takes one event in any order; drain() then folds what can be."""
        if not self.enter_trace((event.trace_generation, event.trace_id)):
            self.sequencer.superseded += 1
            return
        arrival = self.sequencer.offer(event, limit)
        if arrival.what == "late":
            self.late.append({
                "sequence": event.sequence, "event_id": event.event_id,
                "trace_generation": event.trace_generation, "trace_id": event.trace_id,
            })  # fmt: skip
        for event_id in arrival.event_ids:
            self.refuse(
                event_id,
                event.sequence,
                "sequence_conflict",
                f"two different events have sequence {event.sequence} in trace {event.trace_id}: "
                "neither counts",
            )

    def drain(self, limit: int = HELD_LIMIT) -> None:
        """Folds the events that are next in the trace."""
        for event in self.sequencer.ready(limit):
            if not self.fold_one(event):
                self.sequencer.reject()

    def fold_one(self, event: Event) -> bool:
        """Folds an event that is next in the trace; False where the fold refuses it, or fails."""
        state = self.present_state()
        try:
            risk_watch.before(state, event)
            fold.apply(state, event)
            risk_watch.after(state, event)
        except fold.Rejected as error:
            self.refuse(event.event_id, event.sequence, "rejected_by_fold", str(error))
            return False
        except Exception as error:
            self.fail(event, error)
            return False
        if event.fact.kind in LEADERSHIP_KINDS:
            self.leadership.append(_leadership_row(event))
        return True

    def fail(self, event: Event, error: Exception) -> None:
        """Notes that the fold failed on an event, which costs the partition its verdicts."""
        reason = cannot_be_folded(event, error)
        self.refuse(event.event_id, event.sequence, "cannot_be_folded", reason)
        self.defect = self.defect or reason

    def cannot_settle(self, reason: str) -> None:
        """Notes, once a trace, that what came late cannot be settled by folding again."""
        if not self.unsettled:
            self.refuse(None, None, "cannot_be_settled", reason)
        self.unsettled = True

    @property
    def asks_for_refold(self) -> bool:
        """Whether only folding all stored events again settles what has come."""
        return (self.sequencer.wants_refold or self.refold_again) and not self.unsettled

    def refuse(self, event_id: str | None, sequence: int | None, code: str, reason: str) -> None:
        """Puts an event into quarantine by its event_id; without one, a note on the partition."""
        row = {"reason_code": code, "reason": reason, "event_id": event_id, "sequence": sequence,
               "rows": 0 if event_id is None else 1}  # fmt: skip
        self.refused.append(row)

    def answer(self) -> None:
        """Judges the state and notes the rows of each table whose rows have changed."""
        state = self.present_state()
        answer, defect = answer_or_defect(state, self.defect)
        unjudged = None if self.defect else defect
        if unjudged is not None and unjudged != self.unjudged:
            self.refuse(None, None, "cannot_be_judged", unjudged)
        self.unjudged = unjudged
        self.findings = len(answer.findings)
        found: dict[str, list[dict[str, Any]]] = {
            "replica_states": _replica_rows(answer.partition),
            "verdicts": verdict_rows(with_gap(answer.verdicts, gap_of(self.sequencer, state))),
            "loss_ledger": answer.losses,
            "divergences": answer.divergences,
            "findings": answer.findings,
            "at_risk": [*answer.at_risk, *answer.past_risks],
        }
        for table in ANSWER_TABLES:
            rows = found[table]
            digest = _digest(table, rows)
            before = self.digests.get(table, "")
            if digest != before:
                replaces = before != ""
                self.out.append(Out(table, self.topic_partition_id, rows, replaces))
                self.digests[table] = digest
                self.standing[table] = len(rows)

    def take_out(self) -> list[Out]:
        """What has come out since the last call."""
        result = self.out
        for table, rows in zip(APPENDED_TABLES, (self.leadership, self.refused), strict=True):
            standing = self.standing.get(table, 0)
            replaces = self.afresh and standing > 0
            if rows or replaces:
                result.append(Out(table, self.topic_partition_id, rows, replaces))
                self.standing[table] = len(rows) + (0 if replaces else standing)
        if self.late:
            result.append(Out("_late", self.topic_partition_id, self.late))
        self.out, self.leadership, self.refused, self.late = [], [], [], []
        self.afresh = False
        return result

    def encode(self) -> bytes:
        """Everything that the next micro-batch needs, as bytes."""
        s = self.sequencer
        header = [
            s.trace, s.next_sequence, s.end_sequence, s.applied, s.duplicates, s.quarantined,
            s.superseded, s.dropped, s.stalled, s.ended,
            [wire.to_row(event) for event in s.held.values()],
            list(s.conflicts.items()), s.missing,
            self.digests, self.standing,
            self.findings, self.ingest, self.folded, self.leadership, self.refused, self.defect,
            self.unjudged, self.unsettled, s.other_import,
        ]  # fmt: skip
        text = json.dumps(header, separators=(",", ":")).encode()
        state = b"" if self.state is None else codec.encode(self.state)
        return HEAD.pack(STATE_MAGIC, len(text)) + text + state

    @classmethod
    def decode(cls, topic_partition_id: str, data: bytes) -> "PartitionFold":
        """The partition of encode(). Raises codec.CorruptState where the bytes are none."""
        if len(data) < HEAD.size or data[:4] != STATE_MAGIC:
            raise codec.CorruptState(f"the state of {topic_partition_id} is none of this fold")
        length = HEAD.unpack_from(data)[1]
        text, state = data[HEAD.size : HEAD.size + length], data[HEAD.size + length :]
        try:
            h = json.loads(text)
        except ValueError as error:
            raise codec.CorruptState(f"the state of {topic_partition_id}: {error}") from None
        trace = None if h[0] is None else (h[0][0], h[0][1])
        held = {row["sequence"]: wire.from_row(row) for row in h[10]}
        values = [trace, *h[1:10], held, dict(h[11]), h[12], h[23]]
        return cls(
            topic_partition_id, Sequencer(*values), codec.decode(state) if state else None,
            h[13],
            findings=h[15], ingest=h[16], folded=h[17], leadership=h[18], refused=h[19],
            standing=h[14],
            defect=h[20], unjudged=h[21], unsettled=h[22],
        )  # fmt: skip


def verdict_rows(verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The verdicts as their table has them: histories as JSON text."""
    return [
        {**v, "histories": None if v["histories"] is None else json.dumps(v["histories"])}
        for v in verdicts
    ]


def _digest(table: str, rows: list[dict[str, Any]]) -> str:
    """Of rows as a table holds them: one that has got new columns holds them otherwise."""
    if not rows:
        return ""
    text = _columns(table) + json.dumps(rows, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@cache
def _columns(table: str) -> str:
    return ",".join(c.name for c in contracts.tables()[table].columns)


def _leadership_row(event: Event) -> dict[str, Any]:
    fact: Any = event.fact
    replica = getattr(fact, "replica", None)
    leader = replica if fact.kind == "became_leader" else fact.leader
    return {
        "sequence": event.sequence,
        "event_id": event.event_id,
        "kind": fact.kind,
        "replica": replica,
        "leader": leader,
        "leader_epoch": fact.leader_epoch,
        "partition_epoch": fact.partition_epoch,
        "isr": _listed(getattr(fact, "isr", None)),
        "election_kind": getattr(fact, "election_kind", None),
        "eligible_leader_replicas": _listed(getattr(fact, "eligible_leader_replicas", None)),
        "observed_at": event.observed_at,
        "trace_generation": event.trace_generation,
    }


def _listed(values: Iterable[int] | None) -> list[int] | None:
    return None if values is None else list(values)


def _replica_rows(partition: dict[str, Any]) -> list[dict[str, Any]]:
    """The replicas of an answer as rows, with the partition's registration and their own cuts."""
    shared = {
        name: partition[name]
        for name in ("leader", "leader_epoch", "isr", "assigned_replicas", "min_insync_replicas")
    }
    rows = []
    for replica in partition["replicas"]:
        spans = [
            {"leader_epoch": epoch, "first_offset": first, "end_offset": end}
            for epoch, first, end in replica["spans"]
        ]
        cuts = [
            {key: cut[key] for key in ("from_offset", "to_offset", "reason", "observed_at")}
            for cut in partition["truncations"]
            if cut["replica"] == replica["replica"]
        ]
        derived = [
            {key: d[key] for key in ("what", "offset", "leader_epoch", "rule", "because")}
            for d in partition["derived"]
            if d["replica"] == replica["replica"]
        ]
        more = {"spans": spans, "truncations": cuts, "derived": derived}
        rows.append({**shared, **replica, **more})
    return rows
